// Package microbenchtest is the conformance suite of drivers: what every
// microbench.Driver promises, whatever its board.
package microbenchtest

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/traffic"
)

// Run tests the driver that open returns; open is called once a subtest.
func Run(t *testing.T, open func(*testing.T) microbench.Driver) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(suite, *testing.T)
	}{
		{"SampleIsSane", suite.sane},
		{"SameSeedSameSample", suite.deterministic},
		{"SeedsDiffer", suite.seedsDiffer},
		{"ConcurrentCallsAgree", suite.concurrent},
		{"Interrupt", suite.interrupt},
		{"BadProgramsRefused", suite.badPrograms},
		{"MoreCoresNeverSlower", suite.cores},
		{"MoreAccessesNeverFaster", suite.accesses},
		{"OfferedRateIsKept", suite.offered},
		{"ProfileAddsUp", suite.profile},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t)
			c.test(suite{d: d, b: d.Board()}, t)
		})
	}
}

type suite struct {
	d microbench.Driver
	b *board.Board
}

// options of a quick measurement. A native driver reports here whatever the
// noise: no test is decided by a time.
func options(seed uint64) microbench.Options {
	return microbench.Options{Seed: seed, Precision: 0.02, MaxRuns: 2, AllowNoise: true}
}

func (s suite) measure(t *testing.T, p program.Program, tr traffic.Traffic, o microbench.Options) microbench.Sample {
	t.Helper()
	sample, err := s.d.Measure(t.Context(), p, tr, o)
	if err != nil {
		t.Fatalf("measure %+v: %v", p, err)
	}
	return sample
}

// access is an access that the board has, so many times a packet, or as many
// network tasks where a board runs those.
func (s suite) access(t *testing.T, perPacket float64) program.Program {
	t.Helper()
	if s.b.FPGA != nil {
		// A chain of network tasks, no longer than its credits last: one that is
		// short of them is slower saturated than just below, since its packets
		// then come back to the scheduler again and again.
		var p program.Program
		for range int(math.Ceil(perPacket / 4)) {
			p.Chain = append(p.Chain, program.Stage{Name: s.b.FPGA.NTs[0].Name})
		}
		return p
	}
	for i := range s.b.Memories {
		m := &s.b.Memories[i]
		for _, e := range m.Engines {
			if e.Read != nil {
				return program.Program{Accesses: []program.Access{{
					Memory: m.Name, Op: program.Read, Mode: e.Mode, Bytes: min(32, int(e.MaxBytes.Value)), PerPacket: perPacket,
				}}}
			}
		}
	}
	t.Skip("the board has no memory that a program reads")
	return program.Program{}
}

// programs are the bare board, an access and, where there are locks, a lock.
func (s suite) programs(t *testing.T) map[string]program.Program {
	t.Helper()
	ps := map[string]program.Program{"bare": {}, "access": s.access(t, 8)}
	if s.b.Locks.Memory != "" {
		ps["lock"] = program.Program{
			Locks: []program.Lock{{Name: "l", Elements: 4}},
			Flows: &traffic.Flows{Count: 16},
		}
	}
	return ps
}

func (s suite) sane(t *testing.T) {
	for name, p := range s.programs(t) {
		x := s.measure(t, p, traffic.Traffic{}, options(1))
		if x.Status != microbench.StatusOK || x.Board != s.b.Name || x.Backend == "" || x.Seed != 1 {
			t.Errorf("%s: status %q, board %q, backend %q, seed %d", name, x.Status, x.Board, x.Backend, x.Seed)
		}
		if !(x.Mpps > 0) || !(x.Low <= x.Mpps && x.Mpps <= x.High) || !(x.MedianMpps > 0) {
			t.Errorf("%s: mpps %v, interval %v to %v, median %v", name, x.Mpps, x.Low, x.High, x.MedianMpps)
		}
		if x.Runs < 1 || !(x.DurationUS > 0) || x.Cores < 1 || x.Cores > int(s.b.Cores.Value) {
			t.Errorf("%s: %d runs of together %v us on %d cores", name, x.Runs, x.DurationUS, x.Cores)
		}
		if !(x.Latency.P50 > 0 && x.Latency.P50 <= x.Latency.P99) {
			t.Errorf("%s: latency %+v", name, x.Latency)
		}
		if x.Bottleneck == "" || len(x.Utilisation) == 0 {
			t.Errorf("%s: bottleneck %q, utilisation %v", name, x.Bottleneck, x.Utilisation)
		}
		for resource, u := range x.Utilisation {
			if !(u >= 0 && u <= 1) {
				t.Errorf("%s: utilisation of %s is %v", name, resource, u)
			}
		}
		if _, err := json.Marshal(x); err != nil {
			t.Errorf("%s: sample cannot be stored: %v", name, err)
		}
	}
}

// bytes of a sample as they would be stored.
func bytesOf(t *testing.T, x microbench.Sample) string {
	t.Helper()
	data, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// emulated skips a test of what only an emulator can promise.
func (s suite) emulated(t *testing.T) {
	t.Helper()
	if x := s.measure(t, program.Program{}, traffic.Traffic{}, options(1)); x.Backend != microbench.Emulated {
		t.Skipf("backend %s measures real time, anew each time", x.Backend)
	}
}

func (s suite) deterministic(t *testing.T) {
	s.emulated(t)
	for name, p := range s.programs(t) {
		first := bytesOf(t, s.measure(t, p, traffic.Traffic{}, options(3)))
		s.measure(t, p, traffic.Traffic{}, options(4)) // must not matter
		if again := bytesOf(t, s.measure(t, p, traffic.Traffic{}, options(3))); again != first {
			t.Errorf("%s: the same seed gives\n%s\nand\n%s", name, first, again)
		}
	}
}

func (s suite) seedsDiffer(t *testing.T) {
	s.emulated(t)
	if s.b.FPGA != nil && s.b.Variability.Value == 0 {
		t.Skip("nothing is random on this board when it is saturated")
	}
	p := s.access(t, 20)
	a, b := s.measure(t, p, traffic.Traffic{}, options(3)), s.measure(t, p, traffic.Traffic{}, options(4))
	a.Seed, b.Seed = 0, 0
	if bytesOf(t, a) == bytesOf(t, b) {
		t.Errorf("two seeds give the same sample: %+v", a)
	}
}

func (s suite) concurrent(t *testing.T) {
	s.emulated(t)
	p := s.access(t, 8)
	want := bytesOf(t, s.measure(t, p, traffic.Traffic{}, options(3)))
	const n = 4
	got := make(chan string, n)
	for range n {
		go func() {
			x, err := s.d.Measure(t.Context(), p, traffic.Traffic{}, options(3))
			data, jerr := json.Marshal(x)
			if err = errors.Join(err, jerr); err != nil {
				got <- err.Error()
				return
			}
			got <- string(data)
		}()
	}
	for range n {
		if g := <-got; g != want {
			t.Errorf("beside other measurements:\n%s\nalone:\n%s", g, want)
		}
	}
}

func (s suite) interrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.d.Measure(ctx, program.Program{}, traffic.Traffic{}, options(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v, want %v", err, context.Canceled)
	}
	// A measurement that would take far longer than the test may.
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	p := s.access(t, 20)
	go func() {
		_, err := s.d.Measure(ctx, p, traffic.Traffic{}, microbench.Options{Seed: 1, Precision: 1e-9, MaxRuns: 1 << 30})
		done <- err
	}()
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: %v, want %v", err, context.Canceled)
		}
	case <-time.After(time.Minute):
		t.Error("still measuring a minute after the interrupt")
	}
}

func (s suite) badPrograms(t *testing.T) {
	good := s.access(t, 8)
	change := func(f func(*program.Access)) program.Program {
		p := program.Program{Accesses: []program.Access{{Memory: "none", Op: program.Read, Mode: program.Bulk, Bytes: 8, PerPacket: 1}}}
		if len(good.Accesses) > 0 {
			p.Accesses[0] = good.Accesses[0]
		}
		f(&p.Accesses[0])
		return p
	}
	for name, p := range map[string]program.Program{
		"unknown memory":  change(func(a *program.Access) { a.Memory = "none" }),
		"unknown op":      change(func(a *program.Access) { a.Op = "swap" }),
		"unknown mode":    change(func(a *program.Access) { a.Mode = "fast" }),
		"add:bulk":        change(func(a *program.Access) { a.Op, a.Mode = program.Add, program.Bulk }),
		"no bytes":        change(func(a *program.Access) { a.Bytes = 0 }),
		"odd bytes":       change(func(a *program.Access) { a.Bytes = 6 }),
		"too many bytes":  change(func(a *program.Access) { a.Bytes = 256 }),
		"negative":        change(func(a *program.Access) { a.PerPacket = -1 }),
		"not a number":    change(func(a *program.Access) { a.PerPacket = math.NaN() }),
		"negative span":   change(func(a *program.Access) { a.Span = -1 }),
		"span too large":  change(func(a *program.Access) { a.Span = 1 << 50 }),
		"unknown base":    {Base: "none"},
		"unknown kind":    {Stateless: program.Stateless{"magic": 1}},
		"no lock element": {Locks: []program.Lock{{Name: "l"}}},
	} {
		if _, err := s.d.Measure(t.Context(), p, traffic.Traffic{}, options(1)); fault.KindOf(err) != fault.Input {
			t.Errorf("%s: %v, want an input fault", name, err)
		}
	}
	for name, o := range map[string]microbench.Options{
		"too many cores":   {Cores: int(s.b.Cores.Value) + 1},
		"negative cores":   {Cores: -1},
		"too many threads": {Threads: int(s.b.Threads.Value) + 1},
	} {
		if _, err := s.d.Measure(t.Context(), good, traffic.Traffic{}, o); fault.KindOf(err) != fault.Input {
			t.Errorf("%s: %v, want an input fault", name, err)
		}
	}
}

// slack is the part by which an interval may be too narrow: these tests ask
// for trends, not for coverage.
const slack = 0.02

func (s suite) cores(t *testing.T) {
	s.emulated(t)
	for _, p := range []program.Program{{}, s.access(t, 8)} {
		resolved := s.b.Resolve(p)
		base, err := s.b.Base(resolved.Base)
		if err != nil {
			t.Fatal(err)
		}
		all := int(base.Cores.Value)
		var last microbench.Sample
		for _, n := range []int{1, max(1, all/4), max(1, all/2), all} {
			o := options(1)
			o.Cores = n
			x := s.measure(t, p, traffic.Traffic{}, o)
			if x.Cores != n {
				t.Errorf("asked for %d cores, measured %d", n, x.Cores)
			}
			if x.High*(1+slack) < last.Low {
				t.Errorf("%d cores: %v Mpps (to %v), %d cores: %v (from %v)", n, x.Mpps, x.High, last.Cores, last.Mpps, last.Low)
			}
			last = x
		}
	}
}

func (s suite) accesses(t *testing.T) {
	s.emulated(t)
	last := s.measure(t, program.Program{}, traffic.Traffic{}, options(1))
	for _, i := range []float64{1, 2.5, 8, 25} {
		x := s.measure(t, s.access(t, i), traffic.Traffic{}, options(1))
		if x.Low > last.High*(1+slack) {
			t.Errorf("%v accesses a packet: %v Mpps, with fewer %v", i, x.Mpps, last.Mpps)
		}
		last = x
	}
}

func (s suite) offered(t *testing.T) {
	s.emulated(t)
	p := s.access(t, 8)
	full := s.measure(t, p, traffic.Traffic{}, options(1))
	half := s.measure(t, p, traffic.Traffic{RateMpps: full.Mpps / 2}, options(1))
	if math.Abs(half.Mpps/full.Mpps-0.5) > 0.02 || half.DroppedMpps > 0.01*full.Mpps {
		t.Errorf("offered half of %v Mpps: forwarded %v, dropped %v", full.Mpps, half.Mpps, half.DroppedMpps)
	}
	if half.Latency.P50 > full.Latency.P50*(1+slack) {
		t.Errorf("median latency %v us at half the load, %v us when saturated", half.Latency.P50, full.Latency.P50)
	}
	over := s.measure(t, p, traffic.Traffic{RateMpps: full.Mpps * 2}, options(1))
	if math.Abs(over.Mpps/full.Mpps-1) > 0.05 || over.DroppedMpps < 0.8*full.Mpps {
		t.Errorf("offered twice %v Mpps: forwarded %v, dropped %v", full.Mpps, over.Mpps, over.DroppedMpps)
	}
}

func (s suite) profile(t *testing.T) {
	o := options(1)
	p := s.access(t, 8)
	if x := s.measure(t, p, traffic.Traffic{}, o); x.Profile != nil {
		t.Error("a profile that nobody asked for")
	}
	o.Profile = true
	x := s.measure(t, p, traffic.Traffic{}, o)
	if x.Profile == nil {
		t.Skip("this driver collects no profiles")
	}
	if x.Profile.Packets < 1 || x.Profile.DurationNS < 1 || len(x.Profile.Stacks) == 0 {
		t.Fatalf("profile of %d packets, %d ns, %d stacks", x.Profile.Packets, x.Profile.DurationNS, len(x.Profile.Stacks))
	}
	for _, st := range x.Profile.Stacks {
		if len(st.Frames) == 0 || st.BusyNS < 0 || st.WaitNS < 0 || st.Packets < 0 {
			t.Errorf("stack %+v", st)
		}
	}
}
