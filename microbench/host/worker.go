package host

import (
	"slices"
	"sync/atomic"
	"unsafe"

	"nicprof/internal/linux"
	"nicprof/internal/perf"
	"nicprof/program"
)

// A step is a part of the program on one frame.
type step func(w *worker, p unsafe.Pointer)

// apartBytes around what a worker writes while it runs keep the lines of others
// away: two cache lines, since some processors fetch them in pairs. Without them
// the allocator puts the state of two workers into one line, and the packets of
// both take half as long again.
type apartBytes [128]byte

// worker runs the program on one core, packet by packet to completion. What it
// writes while it runs is its own.
type worker struct {
	_     apartBytes
	cpu   int
	clock clock
	ring  *ring
	steps []step
	at    offsets // drawn last
	v     uint64  // what all operations came to
	flow  uint32  // of the frame at hand
	push  uint16  // bytes of headers put before it
	bad   int64   // frames that were not to be forwarded

	locks []*lockUse

	sleeps  bool               // a mutex may put the thread to sleep
	counted map[string]float64 // perf events while it measured, by packet
	missing []perf.Unavailable
	prepare func() // touches and fills the memory, on the worker's own processor

	rate     float64 // packets a ns that arrive; 0: always one more
	burst    int     // frames together
	bursts   int     // between two readings of the clock
	typical  uint64  // ticks of so many bursts, undisturbed
	gapLeast uint64  // ticks beyond typical that are a gap

	packets int64 // forwarded
	dropped int64
	from    uint64 // ticks when the first packet arrived
	taken   int64  // packets that have arrived and were taken or dropped

	latency []float32 // ns, of the newest bursts noted
	noted   int
	loads   int64

	windows [mostWindows]window
	opened  int // windows
	_       apartBytes
}

// window is what a worker did in one measured interval.
type window struct {
	ns      float64 // its length, clock readings subtracted
	packets int64
	dropped int64
	cpuNS   float64 // on the processor
	gapNS   float64 // lost in gaps that the worker saw
	faults  linux.Faults
	spinNS  float64 // a calibrated spin before it
	locks   []lockCount
}

// latencies kept of one worker.
const latencies = 1 << 12

// frame processes one frame.
func (w *worker) frame() {
	r := w.ring
	at := r.receive()
	p := unsafe.Add(r.memory, at+headroom)
	length := r.sizes[int(at)/r.slot]
	flow, ok := forward(p, length)
	if !ok {
		w.bad++
		r.fill(at)
		return
	}
	w.flow, w.push = flow, 0
	for _, s := range w.steps {
		s(w, p)
	}
	r.send(at, length, w.push)
}

// run processes n frames and drains them.
func (w *worker) run(n int) {
	for range n {
		w.frame()
	}
	w.ring.drain()
	w.packets += int64(n)
}

// spinSteps dependent multiplications are the calibrated spin, some µs.
const spinSteps = 4096

//go:noinline
func spin(n int, v uint64) uint64 {
	for range n {
		v *= multiplier
	}
	return v
}

// control is what the workers of a measurement share. No one writes it while
// they run but to end it.
type control struct {
	start  uint64 // ticks of the first window's start
	length uint64 // ticks of a window, at least
	_      apartBytes
	stop   atomic.Bool
	_      apartBytes
	done   []progress // windows that each worker has finished
}

// progress is a counter on a line of its own, written once a window.
type progress struct {
	atomic.Int64
	_ apartBytes
}

// measure runs windows until it is told to stop, and goes on after its last one
// as long as others measure: all of them always have their company.
func (w *worker) measure(id int, c *control) {
	if w.rate > 0 {
		w.from = ticks()
		w.taken = 0
	}
	var open *window
	var t0, gap uint64
	var n0, d0, readings int64
	var u0 linux.Usage
	length := max(c.length, 20*w.typical)
	last := ticks()
	w.hold()
	defer w.release()
	for !c.stop.Load() {
		w.load()
		now := ticks()
		readings++
		d := now - last
		last = now
		if d > w.typical+w.gapLeast {
			gap += d - w.typical
		}
		if open != nil {
			if now-t0 < length {
				continue
			}
			open.ns = w.clock.between(t0, now, readings)
			w.arrive(now)
			open.packets, open.dropped = w.packets-n0, w.dropped-d0
			w.release()
			open.cpuNS = float64(linux.ThreadCPU() - u0.CPU)
			open.faults = linux.ThreadFaults().Sub(u0.Faults)
			open.gapNS = w.clock.ns(gap)
			for i, l := range w.locks {
				open.locks[i] = l.count.since(open.locks[i])
			}
			open = nil
			c.done[id].Add(1)
			w.hold()
			last = ticks()
		}
		if now >= c.start && w.opened < mostWindows {
			open = &w.windows[w.opened]
			w.opened++
			from := ticks()
			w.v += spin(spinSteps, w.v)
			open.spinNS = w.clock.between(from, ticks(), 1)
			for i, l := range w.locks {
				open.locks[i] = l.count
			}
			w.release()
			u0 = linux.Usage{CPU: linux.ThreadCPU(), Faults: linux.ThreadFaults()}
			w.hold()
			t0 = ticks()
			w.arrive(t0) // what came while no window was open is not this one's
			n0, d0, readings, gap = w.packets, w.dropped, 0, 0
			last = t0
		}
	}
}

// counting measures while the processor's and the kernel's counters run.
func (w *worker) counting(id int, c *control, events []perf.Event) error {
	g, missing := perf.Open(0, events)
	defer g.Close()
	if err := g.Start(); err != nil {
		return err
	}
	before := w.packets
	w.measure(id, c)
	if err := g.Stop(); err != nil {
		return err
	}
	counts, lost, err := g.Read()
	if err != nil {
		return err
	}
	w.counted = map[string]float64{}
	for name, n := range counts {
		w.counted[name] = n.Value / float64(max(1, w.packets-before))
	}
	w.missing = append(missing, lost...)
	return nil
}

// hold keeps the thread from being taken away, unless the program puts it to
// sleep itself.
func (w *worker) hold() {
	if !w.sleeps {
		procPin()
	}
}

func (w *worker) release() {
	if !w.sleeps {
		procUnpin()
	}
}

// load processes the frames of one reading of the clock.
func (w *worker) load() {
	if w.rate > 0 {
		w.paced()
		return
	}
	from := uint64(0)
	sample := w.loads%8 == 0
	w.loads++
	if sample {
		from = ticks()
	}
	w.run(w.burst)
	if sample {
		w.note(w.clock.between(from, ticks(), 1))
	}
	for range w.bursts - 1 {
		w.run(w.burst)
	}
}

// note keeps the latency of a burst's packets: they are sent when the burst is
// through.
func (w *worker) note(ns float64) {
	if len(w.latency) < latencies {
		w.latency = append(w.latency, float32(ns))
		return
	}
	w.latency[w.noted%latencies] = float32(ns)
	w.noted++
}

// arrive returns how many offered packets wait at a time. What found the ring
// full by then was dropped.
func (w *worker) arrive(now uint64) (waiting int64) {
	if w.rate == 0 {
		return 0
	}
	arrived := int64(w.clock.ns(now-w.from) * w.rate)
	waiting = arrived - w.taken
	if waiting > ringSlots {
		w.dropped += waiting - ringSlots
		w.taken = arrived - ringSlots
		waiting = ringSlots
	}
	return waiting
}

// paced takes what has arrived since.
func (w *worker) paced() {
	waiting := w.arrive(ticks())
	n := int(min(waiting, int64(w.burst)))
	if n == 0 {
		pause()
		return
	}
	oldest := float64(w.taken+1) / w.rate // ns after from
	w.run(n)
	w.taken += int64(n)
	w.note(max(0, w.clock.ns(ticks()-w.from)-oldest))
}

// gapNS is how much longer than typical the time between two readings of the
// clock is when the difference counts as lost to somebody else. Shorter ones are
// the program's own ups and downs.
const gapNS = 20_000

// idle spins for some windows of a few ms and returns the least share of one
// that was lost in gaps: what the system itself takes (timer ticks, and their
// exits to a hypervisor), which no window is free of.
func idle(c clock) float64 {
	const windows, length = 8, 5e6
	best := 1.0
	gap := c.ticks(gapNS)
	for range windows {
		from := ticks()
		last, lost := from, uint64(0)
		for c.ns(last-from) < length {
			now := ticks()
			if now-last > gap {
				lost += now - last
			}
			last = now
		}
		best = min(best, float64(lost)/float64(last-from))
	}
	return best
}

// tune finds the frames of a burst and the bursts between two readings of the
// clock, so that a reading costs little and a window has many of them. budget
// is the ticks wanted between two readings.
func (w *worker) tune(budget uint64) {
	w.burst, w.bursts = 1, 1
	one := budget * burstMost
	for range 5 { // the first ones touch code and data
		from := ticks()
		w.run(1)
		one = max(1, min(one, ticks()-from))
	}
	w.burst = int(min(burstMost, max(1, budget/one)))
	w.run(w.burst)
	var times []uint64
	for range 15 {
		from := ticks()
		w.run(w.burst)
		times = append(times, ticks()-from)
	}
	slices.Sort(times)
	median := max(1, times[len(times)/2])
	w.bursts = int(max(1, budget/median))
	w.typical = median * uint64(w.bursts)
	w.gapLeast = max(w.clock.ticks(gapNS), w.typical)
}

// stepState is what a step writes from packet to packet.
type stepState struct {
	_    apartBytes
	rate rate
	draw draws
	_    apartBytes
}

// stateless is the step of the operations of one kind.
func stateless(kind string, perPacket float64) step {
	do, st := operations[kind], &stepState{rate: newRate(perPacket)}
	if kind == program.Header {
		return func(w *worker, p unsafe.Pointer) {
			n := st.rate.take()
			w.v = do(p, n, w.v)
			w.push = tagBytes * uint16(n&1)
		}
	}
	return func(w *worker, p unsafe.Pointer) { w.v = do(p, st.rate.take(), w.v) }
}

// access is the step of one access line; once draws one element a packet.
func access(base unsafe.Pointer, a *program.Access, d draws, once bool) step {
	do, _ := accessorOf(a.Op, a.Mode, a.Bytes)
	st := &stepState{rate: newRate(a.PerPacket), draw: d}
	return func(w *worker, _ unsafe.Pointer) {
		n := st.rate.take()
		if once && n > 0 {
			st.draw.fill(&w.at, 1)
			for i := range w.at[:min(n, chunk)] {
				w.at[i] = w.at[0]
			}
		}
		for n > 0 {
			k := min(n, chunk)
			if !once {
				st.draw.fill(&w.at, k)
			}
			w.v = do(base, &w.at, k, w.v)
			n -= k
		}
	}
}
