package snic_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"nicprof/emu/snic"
	"nicprof/internal/fault"
	"nicprof/sim"
	"nicprof/traffic"

	"pgregory.net/rapid"
)

const us = sim.Microsecond

// tester is what testing.T and rapid.T have in common.
type tester interface {
	Helper()
	Fatal(...any)
}

func must(t tester, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// gbps returns what UID 0 was served a while, Gb/s.
func gbps(b *snic.Board, uid int, over sim.Time) float64 {
	before := b.Flow(uid).Served
	b.Run(b.Now() + over)
	return b.Flow(uid).Served.Gbps(before, over)
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s: %.2f, want %.2f within %.0f %%", what, got, want, 100*tolerance)
	}
}

// two returns a board with an NT of 100 Gb/s in region 0, which UIDs 0 and 1
// share.
func two(t *testing.T) *snic.Board {
	b, err := snic.New(snic.Config{Board: load(t, "snic"), NTs: []snic.NT{{Cycles: 10, Gbps: 100}}, Regions: [][]int{{0}}})
	must(t, err)
	for uid := range 2 {
		must(t, b.SetRoute(uid, snic.Route{{{{Region: 0, Run: 1}}}}))
	}
	return b
}

// TestIngressIsTheThrottle: a limit holds one flow to its rate, counts what it
// drops, leaves the other flow alone, and is lifted at once.
func TestIngressIsTheThrottle(t *testing.T) {
	b := two(t)
	must(t,
		b.Offer(0, snic.Load{Gbps: 60, Bytes: 1024}),
		b.Offer(1, snic.Load{Gbps: 10, Bytes: 256}),
		b.SetIngress(0, 5))
	b.Run(500 * us)
	near(t, "throttled flow, Gb/s", gbps(b, 0, 500*us), 5, .01)
	if f := b.Flow(0); f.Dropped[snic.DropThrottle] == 0 || f.Dropped[snic.DropIngress] != 0 {
		t.Errorf("dropped %v", f.Dropped)
	}
	near(t, "flow beside it, Gb/s", gbps(b, 1, 500*us), 10, .1)
	if f := b.Flow(1); f.Dropped != [5]int64{} || f.Latency.Quantile(.99) > 500*sim.Nanosecond {
		t.Errorf("flow beside it: dropped %v, 99 %% within %d ps", f.Dropped, f.Latency.Quantile(.99))
	}
	must(t, b.SetIngress(0, 0))
	b.Run(b.Now() + 10*us)
	if got := gbps(b, 0, 100*us); got != 0 {
		t.Errorf("%v Gb/s pass a limit of 0", got)
	}
	must(t, b.SetIngress(0, math.Inf(1)))
	near(t, "flow without a limit, Gb/s", gbps(b, 0, 1000*us), 60, .05)
}

// TestUnknownUID: what the match-action table does not hold is counted, dropped,
// and takes no cell or credit with it.
func TestUnknownUID(t *testing.T) {
	b := two(t)
	must(t, b.Offer(7, snic.Load{Gbps: 10, Bytes: 64}))
	b.Run(100 * us)
	must(t, b.Offer(7, snic.Load{}))
	b.Run(101 * us)
	f := b.Flow(7)
	if f.Offered.Packets == 0 || f.Dropped[snic.DropUnknown] != f.Offered.Packets || f.Served.Packets != 0 {
		t.Errorf("offered %d, dropped %v, served %d", f.Offered.Packets, f.Dropped, f.Served.Packets)
	}
	must(t, b.Offer(0, snic.Load{Gbps: 1, Bytes: 64}), b.RemoveRoute(0))
	b.Run(201 * us)
	if f := b.Flow(0); f.Dropped[snic.DropUnknown] == 0 || f.Served.Packets != 0 {
		t.Errorf("a removed route serves: %+v", f.Served)
	}
}

// TestReconfiguration: while a region is configured its packets wait, as many as
// the buffer holds, and are served when it is done; a flow in another region does
// not notice.
func TestReconfiguration(t *testing.T) {
	bd := load(t, "snic")
	pr := sim.Time(bd.FPGA.Regions.PRms.Value) * sim.Millisecond
	b, err := snic.New(snic.Config{Board: bd, NTs: []snic.NT{{Cycles: 10}, {Cycles: 20}}, Regions: [][]int{{0}, {0}}})
	must(t, err,
		b.SetRoute(0, snic.Route{{{{Region: 0, Run: 1}}}}),
		b.SetRoute(1, snic.Route{{{{Region: 1, Run: 1}}}}),
		b.Offer(0, snic.Load{Gbps: 10, Bytes: 512, Paced: true}),
		b.Offer(1, snic.Load{Gbps: 10, Bytes: 512, Paced: true}))
	b.Run(50 * us)
	must(t, b.Stop(0))
	b.Run(51 * us)
	if r := b.Region(0); r.State != snic.Stopped || r.Inside != 0 || r.Waiting == 0 {
		t.Errorf("stopped: %+v", r)
	}
	// Packets of the old chain that wait are dropped, those after go to the new one.
	must(t, b.Launch(0, []int{1}, pr), b.SetRoute(0, snic.Route{{{{Region: 0, Run: 1}}}}))
	if n := b.Flow(0).Dropped[snic.DropChain]; n == 0 {
		t.Error("packets for a chain that is gone were kept")
	}
	b.Run(51*us + pr - 1)
	served := b.Flow(0).Served.Packets
	if r := b.Region(0); r.State != snic.Configuring || r.Waiting != int(bd.FPGA.Regions.Buffer.Value) {
		t.Errorf("being configured: %+v", r)
	}
	if n := b.Flow(0).Dropped[snic.DropBuffer]; n == 0 {
		t.Error("nothing dropped beyond the buffer")
	}
	b.Run(51*us + pr + 10*us)
	if r := b.Region(0); r.State != snic.Running || r.Waiting > 0 || b.Flow(0).Served.Packets < served+128 {
		t.Errorf("configured: %+v, %d packets served since", r, b.Flow(0).Served.Packets-served)
	}
	if l := b.Flow(0).Latency.Max(); l < 4*sim.Millisecond {
		t.Errorf("the packet that waited longest took %d ps", l)
	}
	if f := b.Flow(1); f.Dropped != [5]int64{} || f.Latency.Max() > us { // the ports are shared
		t.Errorf("flow in another region: dropped %v, up to %d ps", f.Dropped, f.Latency.Max())
	}
	must(t, b.Stop(0))
	b.Run(b.Now() + us)
	must(t, b.Resume(0))
	b.Run(b.Now() + 10*us)
	near(t, "resumed, Gb/s", gbps(b, 0, 200*us), 10, .02)
}

// TestIntendedLoad: what should go through an NT is counted before credits, by
// flow, NT and region; a skipped NT has none.
func TestIntendedLoad(t *testing.T) {
	c := snic.Config{Board: load(t, "snic"), Credits: 1, NTs: []snic.NT{{Cycles: 10}, {Cycles: 100, Gbps: 20}, {Cycles: 10}}, Regions: [][]int{{0, 1, 2}}}
	b := start(t, c, snic.Route{{{{Region: 0, Run: 0b110}}}}, snic.Load{Gbps: 40, Bytes: 1024, Paced: true})
	b.Run(20 * us)
	f := b.Flow(0)
	i := f.Intended
	near(t, "intended for the NT that is too slow, Gb/s", i[1].Gbps(snic.Volume{}, 20*us), 40, .05)
	near(t, "for its region, Gb/s", f.Wanted[0].Gbps(snic.Volume{}, 20*us), 40, .05)
	if i[0].Packets != 0 || i[2] != i[1] {
		t.Errorf("intended %v", i)
	}
	if got := f.Served.Gbps(snic.Volume{}, 20*us); got > 21 {
		t.Errorf("%.1f Gb/s served through an NT of 20", got)
	}
}

// TestShortOfCredits: a chain that is short of credits falls back to passes
// through the scheduler, no more than PANIC's, and serves every packet.
func TestShortOfCredits(t *testing.T) {
	passes := func(p snic.Policy, credits int) float64 {
		c := snic.Config{Board: load(t, "snic"), Credits: credits, Policy: p, NTs: alternating(4)}
		r := layChains(&c, 4)
		b := start(t, c, r, snic.Load{Saturate: true, Bytes: 64})
		b.Run(100 * us)
		f := b.Flow(0)
		return float64(f.Passes) / float64(f.Served.Packets)
	}
	if got := passes(snic.Reserve, 1000); got != 1 {
		t.Errorf("%.3f passes a packet with enough credits", got)
	}
	if got := passes(snic.PANIC, 1000); got != 4 {
		t.Errorf("%.3f passes a packet by PANIC", got)
	}
	if got := passes(snic.Reserve, 2); got <= 1 || got > 4 {
		t.Errorf("%.3f passes a packet with two credits", got)
	}
}

// TestDropsAtTheStore: packets that an NT is too slow for fill the store, which
// stops the ingress; the port drops what its buffer does not hold.
func TestDropsAtTheStore(t *testing.T) {
	c := snic.Config{Board: load(t, "snic"), NTs: []snic.NT{{Cycles: 10, Gbps: 10}}, Regions: [][]int{{0}}}
	b := start(t, c, snic.Route{{{{Region: 0, Run: 1}}}}, snic.Load{Gbps: 40, Bytes: 1500})
	b.Run(2 * sim.Millisecond)
	near(t, "served, Gb/s", gbps(b, 0, sim.Millisecond), 10, .01)
	f := b.Flow(0)
	if f.Dropped[snic.DropIngress] == 0 {
		t.Error("nothing dropped")
	}
	cells := int64(c.Board.FPGA.Store.Cells.Value)
	if in := f.Accepted.Packets - f.Served.Packets; in > cells || in < cells-4 {
		t.Errorf("%d packets in a store of %d cells", in, cells)
	}
	for _, r := range b.Resources(nil) {
		busy := float64(r.Busy) / float64(b.Now())
		if r.Name == "region0" && busy < .99 || r.Name == "store" && busy < .8 || busy > 1 {
			t.Errorf("%s is busy %.2f of the time", r.Name, busy)
		}
	}
}

// TestTrace replays packets at their times.
func TestTrace(t *testing.T) {
	b := two(t)
	b.Run(5 * us)
	must(t, b.Offer(0, snic.Load{Trace: []snic.Arrival{{After: us, Bytes: 100}, {After: us, Bytes: 1500}, {After: 3 * us, Bytes: 64}}}))
	b.Run(6*us - 1)
	if n := b.Flow(0).Offered.Packets; n != 0 {
		t.Errorf("%d packets before their time", n)
	}
	b.Run(20 * us)
	if f := b.Flow(0); f.Offered != (snic.Volume{Packets: 3, Bytes: 1664}) || f.Served != f.Offered {
		t.Errorf("offered %v, served %v", f.Offered, f.Served)
	}
}

// random draws a board with routes and loads of every kind.
func random(t *rapid.T) (*snic.Board, int) {
	bd := wide(t)
	c := snic.Config{Board: bd, Seed: rapid.Uint64().Draw(t, "seed"), Credits: rapid.IntRange(1, 9).Draw(t, "credits")}
	if rapid.Bool().Draw(t, "panic") {
		c.Policy = snic.PANIC
	}
	bd.FPGA.Regions.Skip.Value = float64(rapid.IntRange(0, 2).Draw(t, "skip"))
	bd.Variability.Value = rapid.Float64Range(0, .5).Draw(t, "vary")
	for i := range rapid.IntRange(1, 6).Draw(t, "nts") {
		c.NTs = append(c.NTs, snic.NT{Name: fmt.Sprint(i), Cycles: rapid.IntRange(0, 60).Draw(t, "cycles"),
			II: rapid.IntRange(0, 8).Draw(t, "ii"), Gbps: rapid.SampledFrom([]float64{0, 20, 100}).Draw(t, "gbps")})
	}
	nt := rapid.IntRange(0, len(c.NTs)-1)
	for range rapid.IntRange(1, 8).Draw(t, "regions") {
		c.Regions = append(c.Regions, rapid.SliceOfN(nt, 1, 5).Draw(t, "chain"))
	}
	b, err := snic.New(c)
	must(t, err)
	instance := rapid.Custom(func(t *rapid.T) snic.Instance {
		i := rapid.IntRange(0, len(c.Regions)-1).Draw(t, "region")
		return snic.Instance{Region: i, Run: rapid.Uint64Range(1, snic.All(len(c.Regions[i]))).Draw(t, "run")}
	})
	branch := rapid.Custom(func(t *rapid.T) snic.Branch { return rapid.SliceOfN(instance, 1, 3).Draw(t, "instances") })
	stage := rapid.Custom(func(t *rapid.T) snic.Stage { return rapid.SliceOfN(branch, 1, 3).Draw(t, "branches") })
	flows := rapid.IntRange(1, 4).Draw(t, "flows")
	for uid := range flows {
		if rapid.IntRange(0, 5).Draw(t, "known") > 0 {
			must(t, b.SetRoute(uid, rapid.SliceOfN(stage, 0, 3).Draw(t, "stages")))
		}
		l := snic.Load{Gbps: rapid.Float64Range(0, 60).Draw(t, "load"), Bytes: rapid.IntRange(snic.MinBytes, snic.MaxBytes).Draw(t, "bytes"),
			Paced: rapid.Bool().Draw(t, "paced"), Burst: rapid.IntRange(0, 30).Draw(t, "burst"), Saturate: rapid.IntRange(0, 3).Draw(t, "saturate") == 0}
		if rapid.Bool().Draw(t, "sizes") {
			l.Sizes, err = traffic.NamedSizes("facebook")
			must(t, err)
			l.Sizes = l.Sizes.Packets()
		}
		must(t, b.Offer(uid, l), b.SetIngress(uid, rapid.SampledFrom([]float64{3, 30, math.Inf(1)}).Draw(t, "limit")))
	}
	return b, flows
}

// TestNothingIsLost: whatever the routes, the policy and the load, and although
// regions are stopped and configured meanwhile, every packet offered is in the
// end served or counted as dropped, no region holds any, and no resource was used
// beyond the time there was.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, flows := random(t)
		for range rapid.IntRange(0, 4).Draw(t, "operations") {
			b.Run(b.Now() + sim.Time(rapid.IntRange(1, 20).Draw(t, "us"))*us)
			r := rapid.IntRange(0, 7).Draw(t, "region")
			switch rapid.IntRange(0, 2).Draw(t, "operation") {
			case 0:
				must(t, b.Stop(r))
			case 1:
				must(t, b.Resume(r))
			case 2:
				must(t, b.Launch(r, []int{0}, sim.Time(rapid.IntRange(0, 5).Draw(t, "pr"))*us))
			}
		}
		b.Run(b.Now() + 10*us)
		for uid := range flows {
			must(t, b.Offer(uid, snic.Load{}))
		}
		for r := range 8 {
			must(t, b.Resume(r))
		}
		b.Run(b.Now() + 10*sim.Millisecond)
		for _, r := range b.Resources(nil) {
			if r.Busy < 0 || r.Busy > b.Now() {
				t.Errorf("%s was busy %d of %d ps", r.Name, r.Busy, b.Now())
			}
		}
		for r := range 8 {
			if g := b.Region(r); g.Inside != 0 || g.Waiting != 0 {
				t.Errorf("region %d holds packets: %+v", r, g)
			}
		}
		for uid := range flows {
			f := b.Flow(uid)
			left := f.Offered.Packets - f.Served.Packets
			for _, n := range f.Dropped {
				left -= n
			}
			if left != 0 || f.Latency.N() != f.Served.Packets {
				t.Errorf("UID %d: offered %d, served %d, dropped %v, %d latencies", uid, f.Offered.Packets, f.Served.Packets, f.Dropped, f.Latency.N())
			}
		}
	})
}

// TestRunsAreEqual: the same seed gives the same counters, however the time is cut
// into runs; another seed does not.
func TestRunsAreEqual(t *testing.T) {
	flow := func(seed uint64, steps int) snic.Flow {
		c := snic.Config{Board: load(t, "snic"), NTs: alternating(3), Seed: seed}
		r := layChains(&c, 2, 1)
		sizes, err := traffic.NamedSizes("facebook")
		must(t, err)
		b := start(t, c, r, snic.Load{Gbps: 50, Sizes: sizes.Packets()})
		for i := range steps {
			b.Run(sim.Time(i+1) * 200 * us / sim.Time(steps))
		}
		return *b.Flow(0)
	}
	want := flow(1, 1)
	if got := flow(1, 10); !reflect.DeepEqual(got, want) {
		t.Errorf("in ten runs %+v, in one %+v", got.Served, want.Served)
	}
	if got := flow(2, 1); reflect.DeepEqual(got, want) {
		t.Error("another seed gives the same: the test shows nothing")
	}
}

// TestSteadyStateAllocatesNothing runs four NTs in a chain, short of credits too.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, credits := range []int{2, 64} {
		c := snic.Config{Board: load(t, "snic"), NTs: alternating(4), Credits: credits}
		r := layChains(&c, 4)
		b := start(t, c, r, snic.Load{Gbps: 30, Bytes: 128})
		b.Run(2 * sim.Millisecond)
		if n := testing.AllocsPerRun(10, func() { b.Run(b.Now() + 100*us) }); n > 0 {
			t.Errorf("%d credits: %v allocations in 100 us of %d packets", credits, n, b.Flow(0).Served.Packets)
		}
	}
}

// TestComplaints: what a board cannot do is an input fault.
func TestComplaints(t *testing.T) {
	bd := load(t, "snic")
	b, err := snic.New(snic.Config{Board: bd, NTs: []snic.NT{{Cycles: 1}}, Regions: [][]int{{0}}})
	must(t, err)
	route := func(i snic.Instance) error { return b.SetRoute(0, snic.Route{{{i}}}) }
	_, manyRegions := snic.New(snic.Config{Board: bd, Regions: make([][]int, 5)})
	_, noNT := snic.New(snic.Config{Board: bd, Regions: [][]int{{3}}})
	_, noCredits := snic.New(snic.Config{Board: bd, Credits: -1})
	_, negative := snic.New(snic.Config{Board: bd, NTs: []snic.NT{{Cycles: -1}}})
	_, noFPGA := snic.New(snic.Config{Board: load(t, "nfp")})
	for what, err := range map[string]error{
		"a board of another class":    noFPGA,
		"more regions than there are": manyRegions,
		"a chain of an unknown NT":    noNT,
		"negative credits":            noCredits,
		"an NT of negative cycles":    negative,
		"a route to no region":        route(snic.Instance{Region: 4, Run: 1}),
		"a route to an empty region":  route(snic.Instance{Region: 1, Run: 1}),
		"a route past the chain":      route(snic.Instance{Region: 0, Run: 2}),
		"a route that runs nothing":   route(snic.Instance{Region: 0}),
		"a stage without a branch":    b.SetRoute(0, snic.Route{{}}),
		"a branch without a region":   b.SetRoute(0, snic.Route{{{}}}),
		"a negative UID":              b.SetRoute(-1, nil),
		"a UID too large":             b.RemoveRoute(snic.MaxUID + 1),
		"a negative load":             b.Offer(0, snic.Load{Gbps: -1, Bytes: 64}),
		"an infinite load":            b.Offer(0, snic.Load{Gbps: math.Inf(1), Bytes: 64}),
		"packets of no size":          b.Offer(0, snic.Load{Gbps: 1}),
		"packets too large":           b.Offer(0, snic.Load{Saturate: true, Bytes: 10000}),
		"negative bursts":             b.Offer(0, snic.Load{Burst: -1}),
		"a negative limit":            b.SetIngress(0, -1),
		"no limit":                    b.SetIngress(0, math.NaN()),
		"a launch of an unknown NT":   b.Launch(0, []int{1}, 0),
		"a launch into no region":     b.Launch(9, []int{0}, 0),
		"a launch before now":         b.Launch(0, []int{0}, -1),
		"a stop of no region":         b.Stop(-1),
		"a resume of no region":       b.Resume(4),
	} {
		if fault.KindOf(err) != fault.Input {
			t.Errorf("%s: %v", what, err)
		}
	}
}
