package runtime

import (
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nicprof/internal/fault"
)

func TestSketchNeverUnderestimates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Sketch
		truth := map[uint32]uint32{}
		for _, e := range rapid.SliceOfN(rapid.Uint32Range(0, 3000), 1, 500).Draw(t, "packets") {
			truth[e]++
			if got := s.Add(e, 1); got < truth[e] || got != s.Estimate(e) {
				t.Fatalf("entry %d: %d packets, added %d, estimate %d", e, truth[e], got, s.Estimate(e))
			}
		}
	})
}

// A row overestimates a key by N/columns on average. Three rows must do clearly
// better than one: they must not collide together.
func TestSketchRowsAreIndependent(t *testing.T) {
	const keys = 4096
	together := func(column func(key uint32, row int) uint32) (one, all int) {
		var meet [SketchRows][SketchColumns]int
		for k := range uint32(keys) {
			for r := range SketchRows {
				meet[r][column(k, r)]++
			}
		}
		for k := range uint32(keys) {
			for j := k + 1; j < keys; j++ {
				if column(k, 0) != column(j, 0) {
					continue
				}
				one++
				if column(k, 1) == column(j, 1) && column(k, 2) == column(j, 2) {
					all++
				}
			}
		}
		return one, all
	}
	one, all := together(func(k uint32, r int) uint32 { return mix(k, seeds[r]) % SketchColumns })
	if one < keys*keys/2/SketchColumns/2 || all > one/1000 {
		t.Errorf("of %d pairs of keys that meet in one row, %d meet in all", one, all)
	}
	// What the release does: one CRC, seeded three ways.
	one, all = together(func(k uint32, r int) uint32 {
		return crc32.Update(seeds[r], crc32.IEEETable, []byte{byte(k >> 24), byte(k >> 16), byte(k >> 8), byte(k)}) % SketchColumns
	})
	if one == 0 || all != one {
		t.Errorf("seeded CRC: of %d pairs that meet in one row, %d meet in all; expected all", one, all)
	}
}

func TestIslandFindsTheHeavyFlow(t *testing.T) {
	i, r := NewIsland(2), rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		e := r.Uint32N(5000)
		if r.IntN(10) == 0 {
			e = 7777
		}
		i.Served(r.IntN(2), e)
	}
	for thread := range 2 {
		if c, ok := i.Take(thread); !ok || c.Entry != 7777 || c.Packets < 1900 {
			t.Errorf("thread %d: %+v, %v", thread, c, ok)
		}
		if _, ok := i.Take(thread); ok {
			t.Errorf("thread %d brings its candidate twice", thread)
		}
	}
	i.Served(0, 1)
	i.Clear()
	if _, ok := i.Take(0); ok || i.sketch.Estimate(7777) != 0 {
		t.Error("something is left of the last interval")
	}
}

func TestMonitorJudgesByTheWindowAndKeepsStill(t *testing.T) {
	o := Defaults()
	m := NewMonitor(o)
	interval := func(us ...float64) Load {
		for _, v := range us {
			m.Reading(v)
		}
		return m.Interval(15)
	}
	for i, step := range []struct {
		us   []float64
		want Load
	}{
		{nil, Stable},              // nobody knows
		{[]float64{6}, Available},  // 6
		{[]float64{5.3}, Stable},   // 5.65
		{[]float64{5.3}, Overload}, // 5.53
		{nil, Overload},            // nobody knows better
		{[]float64{6.3}, Stable},   // 5.63: the 6 is out of the window
		{[]float64{5, 6}, Stable},  // 5.7, on the threshold
		{[]float64{8}, Available},  // 6.6
	} {
		if got := interval(step.us...); got != step.want {
			t.Errorf("interval %d: %v at a mean of %v, want %v", i, got, m.Mean(), step.want)
		}
	}
	msg, times := m.Flag(Overload)
	if times != 5 || msg.Op != OpFlag || msg.Flag != Available {
		t.Errorf("%+v, %d times", msg, times)
	}
	if _, times := m.Flag(Available); times != 0 {
		t.Errorf("told %d times what the NIC knows", times)
	}
	o.IdleThreads = [2]float64{75, 80}
	m = NewMonitor(o)
	if got := interval(5.1); got != Stable { // 75/15 = 5, 80/15 = 5.33
		t.Errorf("by threads: %v", got)
	}
}

// moved runs a controller until it rests, with echoes at once, and returns the
// flows in the order in which they moved.
func moved(n *NIC, h *Host, c *Controller, load Load) (flows []uint32, now float64) {
	n.flag, h.nic = load, load
	for range 10_000 {
		turn := c.Step(now)
		now += turn.WaitUS
		if !turn.Send {
			if !c.busy && c.rests() {
				return flows, now
			}
			continue
		}
		now += turn.SearchUS - turn.WaitUS
		flows = append(flows, turn.Message.Entry)
		pass(n, h, turn.Message)
	}
	return flows, now
}

// rests says whether the controller has nothing to move.
func (c *Controller) rests() bool {
	cursor, r := c.cursor, *c.rand
	f, _, _ := c.choose()
	c.cursor, *c.rand = cursor, r
	return f == none
}

func controlled(t *testing.T, o Options, nic, host map[uint32]uint32) (*NIC, *Host, *Controller) {
	t.Helper()
	n, h := NewNIC(o, 16), NewHost(o, 16)
	c := NewController(o, h, 1)
	for f, packets := range nic {
		n.Install(f, 0)
		h.Install(f, true, 0)
		c.Report(Candidate{f, packets})
	}
	for f, packets := range host {
		h.Install(f, false, 0)
		c.Count(f, packets)
	}
	c.Interval()
	return n, h, c
}

func text(flows []uint32) string {
	var s []string
	for _, f := range flows {
		s = append(s, string(rune('a'+f)))
	}
	return strings.Join(s, "")
}

func TestControllerMovesHeavyFlowsOffAndBack(t *testing.T) {
	o := Defaults()
	o.Entries, o.HostFlows = 4, 3
	n, h, c := controlled(t, o, map[uint32]uint32{0: 10, 1: 1000, 2: 0, 3: 100}, nil)
	if flows, _ := moved(n, h, c, Overload); text(flows) != "bda" || c.Evicted != 3 {
		t.Errorf("overloaded: %s leave, want b d a and then no more, with 3 flows on the host", text(flows))
	}
	if flows, _ := moved(n, h, c, Stable); len(flows) > 0 {
		t.Errorf("stable: %s move", text(flows))
	}
	if flows, _ := moved(n, h, c, Available); text(flows) != "bda" || c.Offloaded != 3 {
		t.Errorf("available: %s come, want b d a", text(flows))
	}
}

func TestControllerEmptiesASmallerTableFromTheSmallEnd(t *testing.T) {
	o := Defaults()
	o.Entries = 4
	n, h, c := controlled(t, o, map[uint32]uint32{0: 10, 1: 1000, 2: 1, 3: 100}, nil)
	n.SetEntries(2)
	c.SetEntries(2)
	if flows, _ := moved(n, h, c, Stable); text(flows) != "ca" || n.Entries() != 2 {
		t.Errorf("%s leave, %d entries stay; want c a", text(flows), n.Entries())
	}
}

func TestControllerChangesPlacesOnlyForMuchHeavierFlows(t *testing.T) {
	o := Defaults()
	o.Entries = 2
	n, h, c := controlled(t, o, map[uint32]uint32{0: 10, 1: 1000}, map[uint32]uint32{2: 15, 3: 500, 4: 7})
	if flows, _ := moved(n, h, c, Available); text(flows) != "ad" {
		t.Errorf("%s move; want a out and d in: c weighs no more than twice a's", text(flows))
	}
	if h.Phase(0) != Serving || h.Phase(3) != Remote {
		t.Errorf("phases %v %v", h.Phase(0), h.Phase(3))
	}
}

func TestControllerAtRandomLooksAtNoWeights(t *testing.T) {
	o := Defaults()
	o.Entries, o.HostFlows, o.Selection = 16, 1, AtRandom
	first := map[uint32]bool{}
	for seed := range uint64(50) {
		n, h, _ := controlled(t, o, map[uint32]uint32{0: 10, 5: 1000, 10: 1}, nil)
		c := NewController(o, h, seed)
		c.Interval()
		flows, _ := moved(n, h, c, Overload)
		if len(flows) != 1 {
			t.Fatalf("%s move, want one", text(flows))
		}
		first[flows[0]] = true
	}
	if len(first) != 3 {
		t.Errorf("of three flows only %v were ever chosen", first)
	}
}

func TestControllerPaysForItsSearchAndItsPause(t *testing.T) {
	o := Defaults()
	o.Entries, o.ScanUS, o.PauseUS = 16, 2, 20
	n, h, c := controlled(t, o, map[uint32]uint32{3: 10, 9: 1000}, nil)
	n.flag, h.nic = Overload, Overload
	turn := c.Step(0)
	if turn.Message.Entry != 9 || turn.SearchUS != 20 || turn.WaitUS != 20+o.RetransmitUS { // flows 0 to 9
		t.Errorf("first: %+v", turn)
	}
	if turn := c.Step(500); turn.Send || turn.WaitUS != 520 {
		t.Errorf("no echo yet: %+v", turn)
	}
	if turn := c.Step(1020); !turn.Send || turn.Message.Op != OpToCPU || c.Repeats != 1 {
		t.Errorf("no echo for too long: %+v", turn)
	}
	pass(n, h, turn.Message)
	if turn := c.Step(1100); turn.Message.Entry != 3 || turn.SearchUS != 20 { // 10 to 15, 0 to 3
		t.Errorf("overloaded, the next at once: %+v", turn)
	}
	pass(n, h, Message{Op: OpToCPU, Entry: 3, Epoch: 1})
	h.nic, n.flag = Available, Available
	if turn := c.Step(1200); turn.Send || turn.WaitUS != 20 {
		t.Errorf("not overloaded, a pause: %+v", turn)
	}
}

func TestControllerRepeatsWhatStaysUnanswered(t *testing.T) {
	o := Defaults()
	n, h := NewNIC(o, 4), NewHost(o, 4)
	c := NewController(o, h, 1)
	o.NewOnNIC = 0
	h.o = o
	d := n.Packet(2)
	h.Packet(2, d.Tag) // its EVICT is lost, and no packet follows
	c.Interval()
	if turn := c.Step(0); turn.Send {
		t.Errorf("after one interval: %+v", turn)
	}
	c.Interval()
	turn := c.Step(1)
	if !turn.Send || turn.Message.Op != OpEvict || turn.Message.Entry != 2 {
		t.Fatalf("after two intervals: %+v", turn)
	}
	pass(n, h, turn.Message)
	if n.State(2) != Invalid || h.Phase(2) != Serving || n.Entries() != 0 {
		t.Errorf("%v, %v, %d entries", n.State(2), h.Phase(2), n.Entries())
	}
}

func TestFaultsAreRead(t *testing.T) {
	var f Faults
	for _, s := range []string{"lose=0.01", "duplicate=0.02", "delay=0.03:500", "write=0.5", "stall=10:100", "pcie=40"} {
		if err := f.Set(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	if want := (Faults{0.01, 0.02, 0.03, 500, 0.5, 10, 100, 40}); f != want {
		t.Errorf("%+v", f)
	}
	for s, want := range map[string]string{
		"losse=1":       "did you mean lose?",
		"x":             "there are lose, duplicate",
		"lose":          "expected a number of at least 0",
		"lose=2":        "a share of at most 1",
		"lose=NaN":      "a share of at most 1",
		"delay=0.1":     "expected delay=SHARE:MICROSECONDS",
		"stall=1:2:3":   "expected stall=AT_SECONDS:MILLISECONDS",
		"pcie=-1":       "at least 0",
		"stall=1:1e400": "at least 0",
	} {
		if err := f.Set(s); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", s, err, want)
		}
	}
}

func FuzzFaults(f *testing.F) {
	f.Add("delay=0.03:500")
	f.Add("stall=1:=")
	f.Fuzz(func(t *testing.T, s string) {
		var x Faults
		if err := x.Set(s); err == nil && (x.Lose > 1 || x.Write > 1 || x.StallMS < 0) {
			t.Errorf("%q read as %+v", s, x)
		}
	})
}

func TestInjectorKeepsItsShares(t *testing.T) {
	const n = 20_000
	draw := func(f Faults) (i *Injector, pattern string) {
		i = NewInjector(f, 7)
		var s strings.Builder
		for range n {
			times, late := i.Control()
			if late != 0 && late != f.DelayUS {
				t.Fatalf("%v µs late, want %v", late, f.DelayUS)
			}
			s.WriteByte('0' + byte(times))
		}
		return i, s.String()
	}
	i, all := draw(Faults{Lose: 0.1, Duplicate: 0.2, Delay: 0.3, DelayUS: 50})
	for name, got := range map[string][2]float64{
		"lost":    {float64(i.Lost), 0.1 * n},
		"doubled": {float64(i.Duplicated), 0.2 * 0.9 * n},
		"late":    {float64(i.Delayed), 0.3 * 0.9 * n},
	} {
		if got[0] < 0.9*got[1] || got[0] > 1.1*got[1] { // 10 % are more than four standard deviations
			t.Errorf("%v %s of %d, want about %v", got[0], name, n, got[1])
		}
	}
	if _, again := draw(Faults{Lose: 0.1, Duplicate: 0.2, Delay: 0.3, DelayUS: 50}); again != all {
		t.Error("the same seed draws other faults")
	}
	if i, none := draw(Faults{}); none != strings.Repeat("1", n) || i.WriteFails() {
		t.Error("something goes wrong without faults")
	}
	i = NewInjector(Faults{Write: 1}, 7)
	if !i.WriteFails() || i.WritesFailed != 1 {
		t.Error("a write that always fails did not")
	}
}

func TestFailedWritesLeaveTheFlowOnTheHost(t *testing.T) {
	n, h := NewNIC(options(), 4), NewHost(options(), 4)
	fails := true
	n.WriteFails = func() bool { return fails }
	d := n.Packet(0)
	if v, _, send := h.Packet(0, d.Tag); d.Tag != TagPlain || v != HostServes || send || n.State(0) != Absent || n.WritesLost() != 1 {
		t.Fatalf("%+v, %v, entry %v, %d writes lost", d, v, n.State(0), n.WritesLost())
	}
	m, _ := h.Offload(0)
	pass(n, h, m)
	if h.Phase(0) != Serving || h.OnHost() != 1 || h.OnNIC() != 0 {
		t.Errorf("refused: %v, %d on the host, %d on the NIC", h.Phase(0), h.OnHost(), h.OnNIC())
	}
	fails = false
	m, _ = h.Offload(0)
	pass(n, h, m)
	if h.Phase(0) != Remote || n.Value(0) != 1 {
		t.Errorf("accepted: %v, value %d", h.Phase(0), n.Value(0))
	}
}

// A million flows, 700,000 of them on an overloaded NIC, from which 56,000 are
// evicted: what the search costs. Packets follow Zipf's law.
func BenchmarkEviction(b *testing.B) {
	const flows, evictions = 1_000_000, 56_000
	o := Defaults()
	for b.Loop() {
		n, h := NewNIC(o, flows), NewHost(o, flows)
		c := NewController(o, h, 1)
		for f := range uint32(flows) {
			if h.Install(f, f < 700_000, 0); f < 700_000 {
				n.Install(f, 0)
			}
			c.Count(f, 1_000_000/(1+mix(f, 9)%flows))
		}
		c.Interval()
		h.nic, n.flag = Overload, Overload
		for now := 0.0; c.Evicted < evictions; {
			turn := c.Step(now)
			if now += turn.WaitUS; turn.Send {
				exchange(n, h, turn.Message)
			}
		}
		b.ReportMetric(float64(c.Looked)/evictions, "looked/move")
	}
}
