package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/internal/linux"
	"nicprof/internal/perf"
	"nicprof/internal/stats"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

const (
	windowTime   = 10 * time.Millisecond // of one trial, unless the options say
	warmTime     = 4 * time.Millisecond
	readingTime  = 5 * time.Microsecond // between two readings of the clock
	wanted       = 7                    // undisturbed windows
	leastWindows = 5                    // undisturbed, for a result without a warning
	mostWindows  = 28                   // in all
	// lostShare is the share of a window that a worker may lose to others,
	// beyond what an idle processor loses, before the window counts as
	// contended.
	lostShare = 0.02
	// slowSpin is how much longer than at its best the calibrated spin may take
	// before a sample says so.
	slowSpin = 1.05
	// idleMost bounds what counts as the idle processor's loss: more is somebody
	// else's work.
	idleMost = 0.08
	// lostMost is the share that the windows counted may lose: beyond it the
	// program's company is measured rather than the program.
	lostMost = 0.25
	// noisy is the coefficient of variation of the windows, by the median
	// absolute deviation, above which nothing is reported.
	noisy = 0.05
	// warmBytes is the largest array whose every line is read before the first
	// packet; larger ones fit no cache.
	warmBytes = 64 << 20
)

// arena holds the arrays that all workers share, from one measurement to the
// next: touching gigabytes takes longer than measuring on them.
type arena struct{ slots []*linux.Region }

// get returns memory of at least size bytes for the k-th shared array, touched.
// New memory is touched by all processors in stripes.
func (a *arena) get(k int, size int64, cpus []int) (*linux.Region, error) {
	for len(a.slots) <= k {
		a.slots = append(a.slots, nil)
	}
	if r := a.slots[k]; r != nil {
		if r.Size() >= size {
			return r, nil
		}
		a.slots[k] = nil
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	memory, err := linux.Available()
	if err != nil {
		return nil, err
	}
	if size > memory.Bytes-memory.Bytes/8 {
		return nil, fault.Inputf("an array of %s does not fit: the program's arrays may take %s more (%s); use smaller spans", sizeText(size), sizeText(memory.Bytes), memory.From)
	}
	r, err := linux.Map(size, linux.HugePages)
	if err != nil {
		return nil, err
	}
	stripe := (size/int64(len(cpus)) + 4095) &^ 4095
	errs := make([]error, len(cpus))
	var touching sync.WaitGroup
	for i, cpu := range cpus {
		touching.Go(func() {
			unpin, err := linux.Pin(cpu)
			if err != nil {
				errs[i] = err
				return
			}
			defer unpin()
			r.Touch(int64(i)*stripe, int64(i+1)*stripe)
		})
	}
	touching.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	r.Collapse()
	a.slots[k] = r
	return r, nil
}

// measurement is one call of Measure.
type measurement struct {
	driver  *Driver
	program program.Program
	traffic traffic.Traffic
	options microbench.Options
	cores   int

	workers []*worker
	locks   []*lockArray
	words   []*linux.Region // of the locks
	own     []*linux.Region // of the workers
	shared  int             // slots of the arena in use
	classes []string        // of the accesses' instructions
}

// array is where one access line of one worker finds its elements.
type array struct {
	access *program.Access
	base   unsafe.Pointer
	bytes  int64
}

func arrayBytes(a *program.Access) int64 { return (a.Span-1)*a.Stride + int64(a.Bytes) }

func (m *measurement) run(ctx context.Context) (microbench.Sample, error) {
	defer m.close()
	if err := m.build(); err != nil {
		return microbench.Sample{}, err
	}
	group, restore, gerr := linux.RaiseAutogroup()
	defer restore()
	c := &control{done: make([]progress, m.cores)}
	window := windowTime
	if m.has(program.Mutex) {
		window *= 4 // a waiter sleeps for milliseconds where all processors are busy
	}
	if m.options.TrialSeconds > 0 {
		window = time.Duration(m.options.TrialSeconds * float64(time.Second))
	}
	c.length = m.driver.clock.ticks(float64(window))
	if err := m.measure(ctx, c, window); err != nil {
		return microbench.Sample{}, err
	}
	s, err := m.summarise(finished(c))
	if err != nil {
		return microbench.Sample{}, err
	}
	s.Conditions["priority"] = group
	if gerr != nil {
		s.Conditions["priority"] = strings.TrimPrefix(group+": "+gerr.Error(), ": ")
	}
	return s, nil
}

func (m *measurement) close() {
	for _, r := range slices.Concat(m.words, m.own) {
		if r != nil {
			// The memory ends with the process at the latest; what was
			// measured is not touched by that.
			_ = r.Close()
		}
	}
}

// build lays out memory and makes the workers' steps. Workers touch their own
// memory later, on their own processors.
func (m *measurement) build() error {
	d := m.driver
	base, err := d.board.Base(m.program.Base)
	if err != nil {
		return err
	}
	for i := range m.program.Locks {
		l := &m.program.Locks[i]
		r, err := linux.Map(int64(l.Elements)*lockStride, linux.HugePages)
		if err != nil {
			return err
		}
		m.words = append(m.words, r)
		r.Touch(0, r.Size())
		clear(r.Bytes())
		m.locks = append(m.locks, &lockArray{memory: r.Base(), elements: uint64(l.Elements), idiom: l.Idiom})
	}
	sizes := m.frameSizes()
	m.own = make([]*linux.Region, m.cores)
	slots := map[string]*linux.Region{}
	drawn := map[*program.Access]draws{}
	m.each(func(a *program.Access) { drawn[a] = accessDraws(a) })
	flows := flowDraws(m.flows())
	for id := range m.cores {
		w := &worker{cpu: d.cpus[id], clock: d.clock, sleeps: m.has(program.Mutex)}
		m.workers = append(m.workers, w)
		if rate := m.traffic.RateMpps; rate > 0 {
			w.rate = rate / 1000 / float64(m.cores)
		}
		s := sim.NewStream(m.options.Seed, fmt.Sprintf("host/core/%d", id))
		own := int64(ringSlots * slotBytes(slices.Max(sizes)))
		var private []*program.Access
		m.each(func(a *program.Access) {
			if m.sharedBy(a) == 1 {
				private = append(private, a)
				own += (arrayBytes(a) + lockStride - 1) &^ (lockStride - 1)
			}
		})
		r, err := linux.Map(own, linux.HugePages)
		if err != nil {
			return err
		}
		m.own[id] = r
		next := int64(ringSlots * slotBytes(slices.Max(sizes)))
		var arrays []array
		steps := func(list []program.Access, path string) ([]step, error) {
			var out []step
			for i := range list {
				a := &list[i]
				at := array{access: a, bytes: arrayBytes(a)}
				if by := m.sharedBy(a); by == 1 {
					at.base = unsafe.Add(r.Base(), next)
					next += (at.bytes + lockStride - 1) &^ (lockStride - 1)
				} else {
					key := fmt.Sprintf("%s/%d/%d", path, i, id/by)
					if slots[key] == nil {
						region, err := d.arena.get(m.shared, at.bytes, d.cpus[:m.cores])
						if err != nil {
							return nil, err
						}
						slots[key] = region
						m.shared++
					}
					at.base = slots[key].Base()
				}
				arrays = append(arrays, at)
				if id == 0 {
					_, class := accessorOf(a.Op, a.Mode, a.Bytes)
					m.classes = append(m.classes, class)
				}
				out = append(out, access(at.base, a, drawn[a].seeded(s.Uint64()), base.Index == "packet"))
			}
			return out, nil
		}
		for _, kind := range program.Kinds {
			if n := m.program.Stateless[kind]; n > 0 {
				w.steps = append(w.steps, stateless(kind, n))
			}
		}
		list, err := steps(m.program.Accesses, "accesses")
		if err != nil {
			return err
		}
		w.steps = append(w.steps, list...)
		for i := range m.program.Locks {
			l := &m.program.Locks[i]
			section, err := steps(l.Section, fmt.Sprintf("locks/%d", i))
			if err != nil {
				return err
			}
			use := &lockUse{}
			w.locks = append(w.locks, use)
			w.steps = append(w.steps, locked(m.locks[i], l.Hash, use, section, m.sleepNS(l.Idiom), d.clock, s))
		}
		for i := range mostWindows {
			w.windows[i].locks = make([]lockCount, len(w.locks))
		}
		w.latency = make([]float32, 0, latencies)
		arriving := flows.seeded(s.Uint64())
		w.prepare = func() {
			r.Touch(0, r.Size())
			r.Collapse()
			w.ring = newRing(r.Base(), sizes, arriving)
			for _, a := range arrays {
				if a.bytes <= warmBytes {
					w.v += readLines(a.base, a.bytes)
				}
			}
		}
	}
	return nil
}

// readLines reads a word of every line of an array.
func readLines(base unsafe.Pointer, bytes int64) uint64 {
	sum := uint64(0)
	for at := int64(0); at+4 <= bytes; at += 64 {
		sum += uint64(*(*uint32)(unsafe.Add(base, at)))
	}
	return sum
}

// each calls f with every access of the program.
func (m *measurement) each(f func(*program.Access)) {
	for i := range m.program.Accesses {
		f(&m.program.Accesses[i])
	}
	for i := range m.program.Locks {
		for j := range m.program.Locks[i].Section {
			f(&m.program.Locks[i].Section[j])
		}
	}
}

// sharedBy is how many of the cores in use share an array of an access.
func (m *measurement) sharedBy(a *program.Access) int {
	by := int(m.driver.board.Memory(a.Memory).SharedBy.Value)
	if by == 0 {
		by = m.cores
	}
	return by
}

// sleepNS is the pause of a sleep idiom: its cycles at the board's clock, or at
// nominalMHz where that is not known.
func (m *measurement) sleepNS(i program.Idiom) float64 {
	const nominalMHz = 2500
	mhz := m.driver.board.ClockMHz.Value
	if mhz == 0 {
		mhz = nominalMHz
	}
	return float64(i.Sleep()) * 1000 / mhz
}

// flows are the traffic's, else the program's.
func (m *measurement) flows() *traffic.Flows {
	if m.traffic.Flows != nil {
		return m.traffic.Flows
	}
	return m.program.Flows
}

// frameSizes are those of the ring's slots: of the traffic's distribution, at
// evenly spread quantiles, else the one size of traffic or program.
func (m *measurement) frameSizes() []int {
	if m.traffic.Sizes == nil {
		n := m.traffic.PacketBytes
		if n == 0 {
			n = m.program.PacketBytes
		}
		if n == 0 {
			n = board.DefaultPacketBytes
		}
		return []int{n}
	}
	stream := sim.NewStream(m.options.Seed, "host/sizes")
	sizes := make([]int, ringSlots)
	for i := range sizes {
		sizes[i] = min(max(int(math.Round(m.traffic.Sizes.Draw(stream.Rand))), traffic.MinPacketBytes), traffic.MaxPacketBytes)
	}
	return sizes
}

// measure lets the workers run until there are windows enough.
func (m *measurement) measure(ctx context.Context, c *control, window time.Duration) error {
	var built, ended sync.WaitGroup
	built.Add(m.cores)
	begin := make(chan struct{})
	info, _ := os.ReadFile("/proc/cpuinfo") // absent: the common events are left
	events := perf.EventsOf(info)
	errs := make([]error, m.cores)
	for id, w := range m.workers {
		ended.Go(func() {
			unpin, err := linux.Pin(w.cpu)
			if err != nil {
				errs[id] = err
				built.Done()
				return
			}
			defer unpin()
			w.prepare()
			built.Done()
			<-begin
			if c.stop.Load() {
				return
			}
			w.tune(m.driver.clock.ticks(float64(readingTime)))
			errs[id] = w.counting(id, c, events)
		})
	}
	built.Wait()
	for _, err := range errs {
		if err != nil {
			c.stop.Store(true)
			close(begin)
			ended.Wait()
			return err
		}
	}
	c.start = ticks() + m.driver.clock.ticks(float64(warmTime))
	close(begin)
	pause := warmTime + wanted*window + window/2
	for {
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		if ctx.Err() != nil || m.enough(c) {
			break
		}
		pause = 2 * window
	}
	c.stop.Store(true)
	ended.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

// finished is how many windows all workers have finished.
func finished(c *control) int {
	n := mostWindows
	for i := range c.done {
		n = min(n, int(c.done[i].Load()))
	}
	return n
}

// enough says whether there are windows enough to end.
func (m *measurement) enough(c *control) bool {
	n := finished(c)
	if n >= mostWindows {
		return true
	}
	fine := m.fine(n)
	if len(fine) < wanted {
		return false
	}
	precision := m.options.Precision
	if precision == 0 {
		precision = 0.005
	}
	rates := m.rates(fine)
	low, high, _ := stats.Sorted(rates).MedianInterval()
	return high-low <= 2*max(precision, 0.01)*stats.Median(rates) || len(fine) >= 3*wanted
}

// fine lists those of the first n windows that nothing disturbed.
func (m *measurement) fine(n int) []int {
	var list []int
	for k := range n {
		disturbed := slices.ContainsFunc(m.workers, func(w *worker) bool {
			v := &w.windows[k]
			return m.lost(v) > lostShare || v.faults.Any()
		})
		if !disturbed {
			list = append(list, k)
		}
	}
	return list
}

// rates returns the Mpps of windows, all workers together.
func (m *measurement) rates(windows []int) []float64 {
	rates := make([]float64, len(windows))
	for i, k := range windows {
		for _, w := range m.workers {
			rates[i] += 1000 * float64(w.windows[k].packets) / w.windows[k].ns
		}
	}
	return rates
}

// lost is the share of a window that its worker lost to others: off its
// processor, or in gaps. Who waits for a mutex leaves the processor by himself,
// and who waits for a lock sees gaps of its own.
func (m *measurement) lost(v *window) float64 {
	lost := 0.0
	if !m.has(program.Mutex) {
		lost = (v.ns - v.cpuNS) / v.ns
	}
	if len(m.locks) == 0 {
		lost = max(lost, v.gapNS/v.ns-min(m.driver.idle, idleMost))
	}
	return lost
}

func (m *measurement) has(i program.Idiom) bool {
	return slices.ContainsFunc(m.program.Locks, func(l program.Lock) bool { return l.Idiom == i })
}

// summarise makes the sample of the n windows measured.
func (m *measurement) summarise(n int) (microbench.Sample, error) {
	s := microbench.Sample{
		Board: m.driver.board.Name, Backend: microbench.Native, Status: microbench.StatusOK,
		Program: m.program, Traffic: m.traffic, Cores: m.cores, Threads: 1, Seed: m.options.Seed,
		Conditions: map[string]string{}, CPUNS: map[string]float64{},
	}
	warn := func(format string, a ...any) { s.Warnings = append(s.Warnings, fmt.Sprintf(format, a...)) }
	if err := m.excluded(); err != nil {
		return s, err
	}
	for _, w := range m.workers {
		if w.bad > 0 {
			return s, fault.Checkf("%d frames on processor %d were not to be forwarded: something writes over the ring", w.bad, w.cpu)
		}
	}
	windows := m.fine(n)
	switch disturbed := n - len(windows); {
	case len(windows) < leastWindows:
		var lost float64
		windows, lost = m.calmest(n)
		if lost > lostMost && !m.options.AllowNoise {
			return s, fault.Checkf("machine too noisy: other work took %.0f %% of the time even in the calmest of %d windows; stop it, or report all the same with --allow-noise", 100*lost, n)
		}
		warn("contended: %d of %d windows were disturbed by other work; the calmest %d count, which lost %.1f %% of their time", disturbed, n, len(windows), 100*lost)
	case disturbed > 0:
		warn("contended: %d of %d windows were disturbed by other work and left out", disturbed, n)
	}
	rates := m.rates(windows)
	s.Runs = len(rates)
	s.Mpps = stats.Median(rates)
	s.MedianMpps = s.Mpps
	s.Low, s.High, _ = stats.Sorted(rates).MedianInterval()
	s.Outliers = len(stats.Outliers(rates))
	if cv := stats.Spread(rates) / s.Mpps; cv > noisy {
		if !m.options.AllowNoise {
			return s, fault.Checkf("machine too noisy: the windows' rates vary by %.1f %% around %.4g Mpps, more than %g %%; stop other work, or report all the same with --allow-noise", 100*cv, s.Mpps, 100*noisy)
		}
		warn("noisy: the windows' rates vary by %.1f %%", 100*cv)
	}
	for _, f := range stats.InTime(rates) {
		warn("%s", f.Text)
	}
	m.account(&s, windows)
	return s, nil
}

// calmest returns those of the first n windows that lost least, in the order of
// time, and the share of their time that the worst of them lost. A page fault is
// as bad as a window lost.
func (m *measurement) calmest(n int) (windows []int, lost float64) {
	share := make([]float64, n)
	for k := range n {
		windows = append(windows, k)
		for _, w := range m.workers {
			v := &w.windows[k]
			share[k] = max(share[k], m.lost(v))
			if v.faults.Any() {
				share[k] = 1
			}
		}
	}
	slices.SortStableFunc(windows, func(a, b int) int { return cmp.Compare(share[a], share[b]) })
	windows = windows[:min(n, wanted)]
	for _, k := range windows {
		lost = max(lost, share[k])
	}
	slices.Sort(windows)
	return windows, lost
}

// account adds what the windows tell beside the rate.
func (m *measurement) account(s *microbench.Sample, windows []int) {
	var wall, cpu, waited, most float64
	var packets, dropped, faults int64
	var each, latency, spins []float64
	for _, w := range m.workers {
		own, ns := int64(0), 0.0
		for _, k := range windows {
			v := &w.windows[k]
			ns += v.ns
			cpu += v.cpuNS
			spins = append(spins, v.spinNS)
			own += v.packets
			dropped += v.dropped
			faults += v.faults.Minor + v.faults.Major
			for _, l := range v.locks {
				waited += l.waited
				most = max(most, l.most)
			}
		}
		wall += ns
		packets += own
		each = append(each, 1000*float64(own)/ns)
		for _, l := range w.latency {
			latency = append(latency, float64(l)/1000)
		}
	}
	s.DurationUS = wall / float64(m.cores) / 1000
	s.CPUNS["cores"] = cpu / float64(max(packets, 1))
	s.DroppedMpps = 1000 * float64(dropped) / wall * float64(m.cores)
	sorted := stats.Sorted(latency)
	s.Latency = microbench.Latency{P50: sorted.Percentile(50), P99: sorted.Percentile(99)}
	s.Utilisation = map[string]float64{"cores": math.Round(1e4*min(1, cpu/wall)) / 1e4}
	s.Bottleneck = "cores"
	if len(m.locks) > 0 {
		share := min(1, waited/wall)
		s.Utilisation["lock wait"] = math.Round(1e4*share) / 1e4
		if share > 0.5 {
			s.Bottleneck = "lock." + m.program.Locks[0].Name
		}
	}
	if m.traffic.RateMpps > 0 && dropped == 0 {
		s.Bottleneck = "offered rate"
	}
	s.Fairness = &microbench.Fairness{Least: slices.Min(each), Most: slices.Max(each), LongestWaitUS: most / 1000}
	d := m.driver
	if d.spin == 0 || slices.Min(spins) < d.spin {
		d.spin = slices.Min(spins)
	}
	if slower := stats.Median(spins) / d.spin; slower > slowSpin {
		s.Warnings = append(s.Warnings, fmt.Sprintf("a calibrated spin took %.2f times its best: the processors ran slower than before (frequency, or a neighbour on the same core)", slower))
	}
	if faults > 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%d page faults within the windows counted", faults))
	}
	m.counters(s)
	s.Conditions["clock"] = clockName
	s.Conditions["lost when idle"] = fmt.Sprintf("%.1f %% of the time", 100*m.driver.idle)
	if m.driver.idle > idleMost {
		s.Conditions["lost when idle"] = fmt.Sprintf("not known, the machine was busy; %g %% is assumed", 100*idleMost)
	}
	if len(m.classes) > 0 {
		slices.Sort(m.classes)
		s.Conditions["instructions"] = strings.Join(slices.Compact(m.classes), ", ")
	}
	if text := m.pagesGot(); text != "" {
		s.Conditions["pages"] = text
	}
}

// counters adds the perf events by packet, the mean of the workers, and why
// others are not there.
func (m *measurement) counters(s *microbench.Sample) {
	s.Counters = map[string]float64{}
	reasons := map[string][]string{}
	for _, u := range m.workers[0].missing {
		reasons[u.Reason] = append(reasons[u.Reason], u.Event)
	}
	for name := range m.workers[0].counted {
		sum := 0.0
		for _, w := range m.workers {
			sum += w.counted[name]
		}
		s.Counters[name] = sum / float64(len(m.workers))
	}
	var text []string
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		text = append(text, strings.Join(reasons[reason], ", ")+": "+reason)
	}
	if len(text) > 0 {
		s.Conditions["counters"] = strings.Join(text, "; ")
	}
}

// pagesGot says on what pages the arrays and rings lie.
func (m *measurement) pagesGot() string {
	var huge, resident, page int64
	regions := slices.Concat(m.own, m.driver.arena.slots[:m.shared])
	for _, r := range regions {
		g, err := r.Pages()
		if err != nil {
			return ""
		}
		huge += g.HugeBytes
		resident += g.Resident
		page = max(page, g.Huge)
	}
	if resident == 0 {
		return ""
	}
	if huge == 0 {
		return "small pages only"
	}
	return fmt.Sprintf("%.0f %% on huge pages of %s", 100*float64(huge)/float64(resident), sizeText(page))
}

// excluded says whether the locks let one in at a time: their counters, which
// only the holder adds to and not atomically, hold all sections.
func (m *measurement) excluded() error {
	for i, l := range m.locks {
		if l.idiom == program.None {
			continue
		}
		sections := int64(0)
		for _, w := range m.workers {
			sections += w.locks[i].total
		}
		if inside := l.inside(); inside != sections {
			return fault.Checkf("lock %s (%s) let more than one in: %d sections, its counters saw %d", m.program.Locks[i].Name, l.idiom, sections, inside)
		}
	}
	return nil
}
