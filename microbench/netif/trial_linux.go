package netif

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/traffic"
)

// Addresses of the generated packets. They are none of the interfaces', so that
// the namespaces' own IP layers leave the packets alone.
var (
	fromMAC = net.HardwareAddr{0x02, 0, 0, 0, 0, 0x01}
	toMAC   = net.HardwareAddr{0x02, 0, 0, 0, 0, 0x02}
)

const (
	sinkFrames = 1 << 16 // of the sink's ring: what arrives in 60 ms at 1 Mpps
	sinkNap    = time.Millisecond
	// mostMpps bounds the packets of a trial.
	mostMpps = 20
	// Packets are on their way until nothing has arrived for settleQuiet.
	settleQuiet = 20 * time.Millisecond
	settleMost  = time.Second
	settleLook  = 2 * time.Millisecond
	// A generator that is ahead sleeps through gaps longer than this, and spins
	// through shorter ones.
	shortGap = 200 * time.Microsecond
)

// path is a lab in which packets are forwarded.
type path struct {
	lab       *lab
	send      *sender
	sink      *receiver
	forwarder forwarder
	frames    *template
	cpus      cpus
	softirqs  []string // schedstat files of the kernel's soft interrupt threads
	mark      uint16
}

// cpus are the processors of the threads.
type cpus struct{ generator, forwarder, sink int }

func (c cpus) String() string {
	return fmt.Sprintf("generator on %d, forwarder on %d, sink on %d", c.generator, c.forwarder, c.sink)
}

// place spreads the threads over the processors allowed. With two, the sink
// shares the generator's: it wakes once a millisecond.
func place(allowed []int) cpus {
	n := len(allowed)
	c := cpus{generator: allowed[0], forwarder: allowed[1%n], sink: allowed[0]}
	if n > 2 {
		c.sink = allowed[2]
	}
	return c
}

// newPath sets up the lab with the forwarder of a base.
func newPath(p program.Program, t traffic.Traffic, seed uint64, c cpus, forward newForwarder) (_ *path, err error) {
	x := &path{cpus: c, frames: frames(p, t, fromMAC, toMAC, seed)}
	defer func() {
		if err != nil {
			x.close()
		}
	}()
	const standardMTU = 1500
	if x.lab, err = newLab(max(standardMTU, x.frames.longest-ethernetLen)); err != nil {
		return nil, err
	}
	if x.forwarder, err = forward(x.lab, c, x.frames.longest); err != nil {
		return nil, err
	}
	if x.sink, err = newReceiver(x.lab.sink, minFrame, sinkFrames); err != nil {
		return nil, err
	}
	if x.send, err = newSender(x.lab.send); err != nil {
		return nil, err
	}
	x.softirqs = softirqThreads()
	return x, nil
}

// close takes everything down.
func (x *path) close() {
	if x.forwarder != nil {
		_ = x.forwarder.close() // its trials have been accounted for
	}
	if x.send != nil {
		x.send.close()
	}
	if x.sink != nil {
		x.sink.close()
	}
	if x.lab != nil {
		x.lab.close()
	}
}

// trial sends packets for d at a rate, Mpps (0: as fast as they go), waits until
// they have arrived, and accounts for them.
func (x *path) trial(ctx context.Context, d time.Duration, rate float64) (outcome, error) {
	if err := ctx.Err(); err != nil {
		return outcome{}, err
	}
	x.mark++
	x.frames.mark(x.mark)
	most := uint64(mostMpps * 1e6 * d.Seconds())
	if rate > 0 {
		most = uint64(math.Round(rate * 1e6 * d.Seconds()))
	}
	if most == 0 {
		return outcome{}, fault.Inputf("not one packet in %v at %v Mpps; raise the rate or the trial's length", d, rate)
	}
	before, err := x.interfaces()
	if err != nil {
		return outcome{}, err
	}
	if _, _, err := x.sink.statistics(); err != nil {
		return outcome{}, err
	}
	if err := x.forwarder.begin(x.mark); err != nil {
		return outcome{}, err
	}
	softirq := x.softirqTime()
	tally := newTally(most)
	var arrived atomic.Int64
	var stop atomic.Bool
	collector := startWorker(x.cpus.sink, func() error {
		x.collect(tally, &arrived, &stop)
		return nil
	})
	x.send.refused = 0
	gen := generator{x: x, most: most, rate: rate, length: d}
	generating := startWorker(x.cpus.generator, func() error { return gen.run(ctx) })
	genErr := generating.wait()
	settle(&arrived)
	h, endErr := x.forwarder.end()
	softirq = x.softirqTime() - softirq
	stop.Store(true)
	colErr := collector.wait()
	for _, err := range []error{ctx.Err(), genErr, endErr, colErr} {
		if err != nil {
			return outcome{}, err
		}
	}
	after, err := x.interfaces()
	if err != nil {
		return outcome{}, err
	}
	_, sinkFull, err := x.sink.statistics()
	if err != nil {
		return outcome{}, err
	}
	p := microbench.Packets{
		Sent: int64(gen.sent), Arrived: h.arrived, Forwarded: h.forwarded, Received: tally.received,
		Duplicated: tally.duplicated, Reordered: tally.reordered, Damaged: tally.damaged, Foreign: tally.foreign,
		Dropped: h.dropped,
	}
	if rate > 0 {
		p.Due = int64(most)
	}
	p.Dropped[causeToForwarder] = dropped(before.send, before.in, after.send, after.in) - x.send.refused - h.atInterface
	p.Dropped[causeToSink] = dropped(before.out, before.sink, after.out, after.sink) - h.refused
	p.Dropped[causeSink] = sinkFull
	if err := p.Account(); err != nil {
		return outcome{}, err
	}
	if tally.received == 0 {
		return outcome{}, fault.Checkf("none of %d packets sent came through; dropped: %v", p.Sent, p.Dropped)
	}
	// Queues still empty after the last packet was sent: what they hold counts,
	// and so does the time that it takes.
	seconds := max(d.Seconds(), float64(tally.last-gen.start)/1e9)
	if h.polled > 0 { // also while nothing was sent any more
		part := seconds / h.polled.Seconds()
		h.usage = usage{time.Duration(part * float64(h.usage.ran)), time.Duration(part * float64(h.usage.waited))}
	}
	o := outcome{
		mpps: millions(p.Received, seconds), offered: millions(p.Sent, d.Seconds()), dropped: millions(p.Lost(), seconds),
		packets: p, seconds: d.Seconds(), latency: tally.latency,
		cpu: map[string]float64{
			partGenerator: perPacket(generating.usage.ran, p.Sent),
			partForwarder: perPacket(h.usage.ran, p.Received),
			partSink:      perPacket(collector.usage.ran, p.Received),
			partSoftirq:   perPacket(softirq, p.Received),
		},
		busy: map[string]float64{
			partGenerator: generating.usage.ran.Seconds() / gen.took.Seconds(),
			partForwarder: h.usage.ran.Seconds() / seconds,
			partSink:      collector.usage.ran.Seconds() / seconds,
		},
	}
	// Threads that share a processor wait for each other by design.
	waited := generating.usage.waited + h.usage.waited
	if x.cpus.sink == x.cpus.generator || x.cpus.sink == x.cpus.forwarder {
		waited -= collector.usage.ran
	}
	if x.cpus.generator != x.cpus.forwarder {
		o.waited = max(0, waited.Seconds()/seconds)
	}
	if tally.backwards > 0 {
		o.warnings = append(o.warnings, "packets arrived before they were sent: the clock was set during a trial, latencies are wrong")
	}
	return o, nil
}

// perPacket is the time of one of n packets, ns.
func perPacket(t time.Duration, n int64) float64 { return float64(t) / float64(max(1, n)) }

// statistics of the interfaces.
type statistics struct{ send, in, out, sink netlink.LinkStatistics }

func (x *path) interfaces() (s statistics, err error) {
	for _, p := range []struct {
		port *port
		to   *netlink.LinkStatistics
	}{{&x.lab.send, &s.send}, {&x.lab.in, &s.in}, {&x.lab.out, &s.out}, {&x.lab.sink, &s.sink}} {
		if *p.to, err = p.port.counts(); err != nil {
			return s, err
		}
	}
	return s, nil
}

// dropped is what the two ends of a cable counted as dropped on the way from
// one to the other between two readings.
func dropped(from0, to0, from, to netlink.LinkStatistics) int64 {
	return int64(from.TxDropped-from0.TxDropped) + int64(to.RxDropped-to0.RxDropped)
}

// generator sends packets in an open loop: what is late is sent as soon as
// possible, and the schedule does not move.
type generator struct {
	x      *path
	most   uint64
	rate   float64 // Mpps, 0: as fast as they go
	length time.Duration

	sent  uint64
	start int64         // ns since the epoch
	took  time.Duration // of sending
}

func (g *generator) run(ctx context.Context) error {
	all := g.x.frames.frames
	begin := time.Now()
	g.start = begin.UnixNano()
	// What fell due near the end may still be sent.
	end := g.length
	if g.rate > 0 {
		end += max(time.Millisecond, g.length/100)
	}
	done := ctx.Done()
	for g.sent < g.most {
		now := time.Now()
		g.took = now.Sub(begin)
		if g.took >= end {
			break
		}
		select {
		case <-done:
			return ctx.Err()
		default:
		}
		n := uint64(batch)
		if g.rate > 0 {
			due := min(g.most, uint64(g.rate*1e-3*float64(g.took))+1)
			if due <= g.sent {
				g.nap(g.sent, begin)
				continue
			}
			n = due - g.sent
		}
		n = min(n, batch, g.most-g.sent)
		at := now.UnixNano()
		for i := range n {
			f := all[(g.sent+i)%uint64(len(all))]
			stamp(f, g.sent+i, at)
			g.x.send.put(f)
		}
		taken, err := g.x.send.flush(1)
		if err != nil {
			return err
		}
		g.sent += uint64(taken)
	}
	return nil
}

// dueAt is when a packet falls due.
func (g *generator) dueAt(sequence uint64) time.Duration {
	return time.Duration(float64(sequence) / g.rate * 1e3)
}

// nap waits, not to the end, for the time of a packet.
func (g *generator) nap(sequence uint64, begin time.Time) {
	gap := g.dueAt(sequence) - time.Since(begin) - shortGap
	if gap > 0 {
		t := unix.NsecToTimespec(int64(gap))
		_ = unix.Nanosleep(&t, nil) // an interrupt only shortens it
	}
}

// collect is the sink.
func (x *path) collect(t *tally, arrived *atomic.Int64, stop *atomic.Bool) {
	change := x.forwarder.change()
	nap := unix.NsecToTimespec(int64(sinkNap))
	for {
		n := 0
		for n < sinkFrames/2 {
			h, packet := x.sink.peek(n)
			if h == nil {
				break
			}
			n++
			if !ours(packet, x.mark) {
				t.foreign++
				continue
			}
			t.add(readProbe(packet, fromMAC, toMAC, change), int64(h.Sec)*1e9+int64(h.Nsec))
		}
		x.sink.release(n)
		arrived.Add(int64(n))
		if n == 0 {
			if stop.Load() {
				return
			}
			_ = unix.Nanosleep(&nap, nil)
		}
	}
}

// settle returns when packets have stopped arriving.
func settle(arrived *atomic.Int64) {
	begin := time.Now()
	last, since := arrived.Load(), begin
	for time.Since(since) < settleQuiet && time.Since(begin) < settleMost {
		time.Sleep(settleLook)
		if now := arrived.Load(); now != last {
			last, since = now, time.Now()
		}
	}
}

// softirqThreads finds the schedstat files of the kernel's threads that do the
// work of soft interrupts when there is too much of it.
func softirqThreads() []string {
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		panic(err) // the pattern is sound
	}
	var found []string
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if err == nil && strings.HasPrefix(string(comm), "ksoftirqd/") {
			found = append(found, filepath.Join(filepath.Dir(name), "schedstat"))
		}
	}
	return found
}

// softirqTime is the time that these threads have run. It includes work for
// others.
func (x *path) softirqTime() time.Duration {
	total := time.Duration(0)
	for _, name := range x.softirqs {
		if data, err := os.ReadFile(name); err == nil {
			first, _, _ := strings.Cut(string(data), " ")
			if ns, err := strconv.ParseInt(first, 10, 64); err == nil {
				total += time.Duration(ns)
			}
		}
	}
	return total
}
