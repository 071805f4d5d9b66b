package snic_test

import (
	"math"
	"slices"
	"sync"
	"testing"

	"nicprof/board"
	"nicprof/emu/snic"
	"nicprof/sim"
)

var boards sync.Map // by name

// load returns a copy of a board of the catalogue, whose numbers a test may
// change.
func load(t tester, name string) *board.Board {
	t.Helper()
	b, ok := boards.Load(name)
	if !ok {
		loaded, err := board.Load(name)
		must(t, err)
		b, _ = boards.LoadOrStore(name, loaded)
	}
	own := *b.(*board.Board)
	if own.FPGA != nil {
		f := *own.FPGA
		f.Stages = slices.Clone(f.Stages)
		own.FPGA = &f
	}
	return &own
}

// alternating returns n NTs of 16 and 32 cycles in turn.
func alternating(n int) []snic.NT {
	var nts []snic.NT
	for i := range n {
		nts = append(nts, snic.NT{Name: "nt", Cycles: 16 << (i % 2)})
	}
	return nts
}

// wide returns the board with more regions than the 4 that it is taken to have.
func wide(t tester) *board.Board {
	b := load(t, "snic")
	b.FPGA.Regions.Count.Value = 8
	return b
}

// start returns a board on which UID 0 has a route and packets.
func start(t testing.TB, c snic.Config, r snic.Route, l snic.Load) *snic.Board {
	t.Helper()
	b, err := snic.New(c)
	if err == nil {
		err = b.SetRoute(0, r)
	}
	if err == nil {
		err = b.Offer(0, l)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// run returns the latencies of packets of 64 B that come evenly, Gb/s.
func run(t testing.TB, c snic.Config, r snic.Route, gbps float64) *snic.Histogram {
	t.Helper()
	b := start(t, c, r, snic.Load{Gbps: gbps, Bytes: 64, Paced: true})
	b.Run(sim.Time(1e4/gbps) * sim.Nanosecond) // 20 packets
	return &b.Flow(0).Latency
}

// latency returns the latency of packets that meet no other.
func latency(t testing.TB, c snic.Config, r snic.Route) sim.Time {
	t.Helper()
	l := run(t, c, r, .01)
	if l.N() < 8 || l.Min() != l.Max() {
		t.Fatalf("%d packets took %d to %d ps", l.N(), l.Min(), l.Max())
	}
	return l.Mean()
}

// layChains puts the NTs, in order, into chains of the given lengths, a region
// each, and returns the route through them.
func layChains(c *snic.Config, lengths ...int) snic.Route {
	var r snic.Route
	next := 0
	for i, n := range lengths {
		var chain []int
		for range n {
			chain = append(chain, next)
			next++
		}
		c.Regions = append(c.Regions, chain)
		r = append(r, snic.Stage{{{Region: i, Run: snic.All(n)}}})
	}
	return r
}

// chain returns the latency of NTs in chains of the given lengths.
func chain(t testing.TB, c snic.Config, lengths ...int) sim.Time {
	t.Helper()
	c.Regions = nil
	r := layChains(&c, lengths...)
	return latency(t, c, r)
}

// published are the latencies of 2 to 7 NTs in the thesis' data_nt_chain, ns: by
// PANIC, in one chain, in two.
var published = map[int][3]sim.Time{
	2: {452, 388, 452},
	3: {580, 452, 516},
	4: {772, 580, 644},
	5: {900, 644, 708},
	6: {1092, 772, 836},
	7: {1220, 836, 900},
}

// chains measures what published lists, by number of NTs.
func chains(t *testing.T, c snic.Config, nts func(n int) []snic.NT) map[int][3]sim.Time {
	t.Helper()
	got := map[int][3]sim.Time{}
	for n := range published {
		c.NTs = nts(n)
		c.Policy = snic.PANIC
		panics := chain(t, c, n)
		c.Policy = snic.Reserve
		got[n] = [3]sim.Time{panics, chain(t, c, n), chain(t, c, n/2, n-n/2)}
	}
	return got
}

// TestChains holds the latency of chains to the 18 published values.
func TestChains(t *testing.T) {
	for n, got := range chains(t, snic.Config{Board: load(t, "snic")}, alternating) {
		for i, want := range published[n] {
			if got[i] != want*sim.Nanosecond {
				t.Errorf("%d NTs, %s: %d ps, want %d ns", n, [...]string{"PANIC", "one chain", "two chains"}[i], got[i], want)
			}
		}
	}
}

// TestChainsComeFromTheMechanism: each of the 18 moves, and by how much it must,
// when a stage of the board, an NT or the credits change.
func TestChainsComeFromTheMechanism(t *testing.T) {
	longer := load(t, "snic")
	longer.FPGA.Stages[0].Cycles.Value += 3
	slower := load(t, "snic")
	for i := range slower.FPGA.Stages {
		if s := &slower.FPGA.Stages[i]; s.Name == board.SchedulerStage {
			s.Cycles.Value += 2
		}
	}
	stage := chains(t, snic.Config{Board: longer}, alternating)
	pass := chains(t, snic.Config{Board: slower}, alternating)
	nt := chains(t, snic.Config{Board: load(t, "snic")}, func(n int) []snic.NT {
		nts := alternating(n)
		nts[n-1].Cycles += 5
		return nts
	})
	for n, want := range published {
		for i, passes := range [3]sim.Time{sim.Time(n), 1, 2} {
			const cycle = 4
			ns := want[i]
			if stage[n][i] != (ns+3*cycle)*sim.Nanosecond {
				t.Errorf("%d NTs, %d passes: %d ps when the parser takes 3 cycles more, was %d ns", n, passes, stage[n][i], ns)
			}
			if pass[n][i] != (ns+2*cycle*passes)*sim.Nanosecond {
				t.Errorf("%d NTs, %d passes: %d ps when the scheduler takes 2 cycles more, was %d ns", n, passes, pass[n][i], ns)
			}
			if nt[n][i] != (ns+5*cycle)*sim.Nanosecond {
				t.Errorf("%d NTs, %d passes: %d ps when an NT takes 5 cycles more, was %d ns", n, passes, nt[n][i], ns)
			}
		}
	}
	// A packet every 36 cycles, so that none meets another's later pass in the
	// scheduler: eight credits are enough not to wait, one is not for an NT of 32.
	for n, want := range published {
		for i, lengths := range [][]int{{n}, {n}, {n / 2, n - n/2}} {
			c := snic.Config{Board: load(t, "snic"), NTs: alternating(n)}
			if i == 0 {
				c.Policy = snic.PANIC
			}
			r := layChains(&c, lengths...)
			c.Credits = 8
			eight := run(t, c, r, 32./9).Max()
			c.Credits = 1
			one := run(t, c, r, 32./9).Max()
			if eight != want[i]*sim.Nanosecond || one <= eight {
				t.Errorf("%d NTs, column %d: a packet every 36 cycles takes up to %d ps with eight credits and %d with one; alone %d ns", n, i, eight, one, want[i])
			}
		}
	}
}

// TestCore: the way through the board without an NT, and what a pass through the
// scheduler adds.
func TestCore(t *testing.T) {
	for _, w := range []struct {
		board           string
		core, scheduler sim.Time
	}{
		{"snic", 196 * sim.Nanosecond, 64 * sim.Nanosecond},
		{"snic-asic", 24500 * sim.Picosecond, 8 * sim.Nanosecond},
	} {
		c := snic.Config{Board: load(t, w.board), NTs: []snic.NT{{Cycles: 10}, {Cycles: 10}}}
		if got := latency(t, c, nil); got != w.core {
			t.Errorf("%s: the core takes %d ps, want %d", w.board, got, w.core)
		}
		if got := chain(t, c, 1, 1) - chain(t, c, 2); got != w.scheduler {
			t.Errorf("%s: a pass more takes %d ps, want %d", w.board, got, w.scheduler)
		}
	}
	b, err := snic.New(snic.Config{Board: load(t, "snic")})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.PHY() + 196*sim.Nanosecond; got != 1300*sim.Nanosecond {
		t.Errorf("through the whole board %d ps, want 1.3 us", got)
	}
}

// TestParallel: NTs of 16 cycles side by side take 260 ns, as many as there are;
// in two chains side by side they take the longer chain, and less than PANIC.
func TestParallel(t *testing.T) {
	for n := 2; n <= 7; n++ {
		c := snic.Config{Board: wide(t)}
		var all snic.Stage
		for i := range n {
			c.NTs = append(c.NTs, snic.NT{Cycles: 16})
			c.Regions = append(c.Regions, []int{i})
			all = append(all, snic.Branch{{Region: i, Run: 1}})
		}
		if got := latency(t, c, snic.Route{all}); got != 260*sim.Nanosecond {
			t.Errorf("%d NTs side by side: %d ps, want 260 ns", n, got)
		}
		c.NTs = alternating(n)
		c.Regions = nil
		half := layChains(&c, n/2, n-n/2)
		half = snic.Route{append(half[0], half[1]...)}
		longer := 0
		for i := n / 2; i < n; i++ {
			longer += c.NTs[i].Cycles
		}
		shorter := 0
		for i := range n / 2 {
			shorter += c.NTs[i].Cycles
		}
		want := sim.Time(196+4*max(longer, shorter)) * sim.Nanosecond
		if got := latency(t, c, half); got != want || got >= published[n][0]*sim.Nanosecond {
			t.Errorf("%d NTs in two chains side by side: %d ps, want %d and less than PANIC's %d ns", n, got, want, published[n][0])
		}
	}
}

// TestDAGs: the two DAGs of the paper's three schemes, NTs of 10 and of 50
// cycles. Going back to the scheduler takes 16 cycles and, where there are copies
// to wait for, the synchronisation buffer's 4.
func TestDAGs(t *testing.T) {
	for _, d := range []int{10, 50} {
		nts := []snic.NT{{Cycles: d}, {Cycles: d}, {Cycles: d}, {Cycles: d}}
		one := snic.Config{Board: load(t, "snic"), NTs: nts, Regions: [][]int{{0, 1, 2, 3}}}
		split := snic.Config{Board: load(t, "snic"), NTs: nts, Regions: [][]int{{0, 1}, {2}, {3}}}
		last := snic.Stage{{{Region: 2, Run: 1}}}
		cycles := func(c snic.Config, r snic.Route) int { return int(latency(t, c, r)/(4*sim.Nanosecond)) - 49 }
		a1 := cycles(one, snic.Route{{{{Region: 0, Run: snic.All(4)}}}})
		b1 := cycles(one, snic.Route{{{{Region: 0, Run: 0b1010}}}})
		a2 := cycles(split, snic.Route{{{{Region: 0, Run: snic.All(2)}}, {{Region: 1, Run: 1}}}, last})
		b2 := cycles(split, snic.Route{{{{Region: 0, Run: 0b10}}}, last})
		if a1 != 4*d || b1 != 2*d || a2 != 3*d+16+4 || b2 != 2*d+16 {
			t.Errorf("NTs of %d cycles: S1 %d and %d, S2 %d and %d cycles", d, a1, b1, a2, b2)
		}
		if helps := a2 < a1; helps != (d == 50) {
			t.Errorf("NTs of %d cycles: DAG a takes %d cycles in one chain, %d side by side", d, a1, a2)
		}
	}
}

// TestInstances: two instances of a chain take packets in turn, which doubles its
// rate and leaves the latency.
func TestInstances(t *testing.T) {
	c := snic.Config{Board: load(t, "snic"), NTs: []snic.NT{{Cycles: 10, Gbps: 20}}, Regions: [][]int{{0}, {0}}}
	first, second := snic.Instance{Region: 0, Run: 1}, snic.Instance{Region: 1, Run: 1}
	one, two := snic.Route{{{first}}}, snic.Route{{{first, second}}}
	if a, b := latency(t, c, one), latency(t, c, two); a != b {
		t.Errorf("%d ps with one instance, %d with two", a, b)
	}
	for r, want := range map[*snic.Route]float64{&one: 20, &two: 40} {
		b := start(t, c, *r, snic.Load{Saturate: true, Bytes: 512})
		b.Run(20 * sim.Microsecond)
		before := b.Flow(0).Served
		b.Run(420 * sim.Microsecond)
		if got := b.Flow(0).Served.Gbps(before, 400*sim.Microsecond); math.Abs(got/want-1) > .01 {
			t.Errorf("%.2f Gb/s, want %v", got, want)
		}
		if w := b.Flow(0).Wanted; len((*r)[0][0]) == 2 && w[0].Packets-w[1].Packets > 1 {
			t.Errorf("instances were sent %d and %d packets", w[0].Packets, w[1].Packets)
		}
	}
}
