package supernic

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// figure3 is the planner of the paper's DAGa, (nt1 → nt2) beside nt3, then nt4,
// with NTs of so many cycles.
func figure3(cycles int) planner {
	nts := make([]NT, 4)
	for i := range nts {
		nts[i] = NT{Name: fmt.Sprintf("nt%d", i+1), Cycles: cycles, Gbps: 100, Area: 1, Shareable: true}
	}
	return planner{
		graph: &graph{nts: []int{0, 1, 2, 3}, before: []set{0, 0b1, 0, 0b110}},
		nts:   nts, area: 4, regions: 4, pass: 16, parallel: true, demand: 40,
	}
}

func text(nts []NT, p *Plan) string {
	var stages []string
	for _, stage := range p.Stages {
		var branches []string
		for _, b := range stage {
			s := chainText(nts, b.NTs)
			if b.Region != New {
				s += fmt.Sprintf(" @%d", b.Region)
			}
			branches = append(branches, s)
		}
		stages = append(stages, strings.Join(branches, " | "))
	}
	return strings.Join(stages, " ; ")
}

// DAG parallelism is used where it shortens execution by more than the pass
// through the scheduler costs, and where share and free regions allow it.
func TestParallel(t *testing.T) {
	for _, test := range []struct {
		name    string
		cycles  int
		free    int
		allowed float64
		change  func(*planner)
		want    string
		latency int
		why     string
	}{
		{"long NTs", 50, 4, 4, nil, "nt1 → nt2 | nt3 ; nt4", 166, "in parallel: 166 cycles instead of 200"},
		{"short NTs", 10, 4, 4, nil, "nt1 → nt2 → nt3 → nt4", 40, "not in parallel: 46 cycles, with 16 for another pass"},
		{"as long as a pass", 16, 4, 4, nil, "nt1 → nt2 → nt3 → nt4", 64, "not in parallel"},
		{"just longer", 17, 4, 4, nil, "nt1 → nt2 | nt3 ; nt4", 67, "in parallel"},
		{"branches meet in 4 cycles", 20, 4, 4, func(p *planner) { p.sync = 4 }, "nt1 → nt2 → nt3 → nt4", 80, "not in parallel: 80 cycles"},
		{"and it is still worth it", 21, 4, 4, func(p *planner) { p.sync = 4 }, "nt1 → nt2 | nt3 ; nt4", 83, "in parallel: 83 cycles instead of 84"},
		{"two free regions", 50, 2, 4, nil, "nt1 → nt2 → nt3 → nt4", 200, "would take 3 regions to configure, of which the DAG fills 1.2; 2 are free"},
		{"small share", 50, 4, 1.1, nil, "nt1 → nt2 → nt3 → nt4", 200, "the user's fair share leaves 1.1"},
		{"share just enough", 50, 4, 1.2, nil, "nt1 → nt2 | nt3 ; nt4", 166, "in parallel"},
		{"not shareable takes whole regions", 50, 4, 2.9, func(p *planner) {
			for i := range p.nts {
				p.nts[i].Shareable = false
			}
		}, "nt1 → nt2 → nt3 → nt4", 200, "the DAG fills 3;"},
		{"policy", 50, 4, 4, func(p *planner) { p.parallel = false }, "nt1 → nt2 → nt3 → nt4", 200, "the policy does not allow it"},
		{"regions of two NTs", 50, 2, 4, func(p *planner) { p.area = 2 }, "nt1 → nt2 ; nt3 → nt4", 216, "not one chain: its area would be 4, a region's is 2"},
		{"PANIC passes at every NT", 50, 4, 0, func(p *planner) { p.everyNT = true }, "nt1 → nt2 → nt3 → nt4", 248, ""},
	} {
		p := figure3(test.cycles)
		if test.change != nil {
			test.change(&p)
		}
		plan := p.plan(test.free, test.allowed)
		if got := text(p.nts, plan); got != test.want || plan.Cycles != test.latency {
			t.Errorf("%s: %s in %d cycles, want %s in %d", test.name, got, plan.Cycles, test.want, test.latency)
		}
		if why := strings.Join(plan.Why, "\n"); !strings.Contains(why, test.why) {
			t.Errorf("%s: it says\n%s\nwithout %q", test.name, why, test.why)
		}
	}
}

// all is a running region of a chain that everybody may use.
func all(region int, spare float64, chain ...int) running {
	r := running{region: region, chain: chain}
	for range chain {
		r.usable, r.spare = append(r.usable, true), append(r.spare, spare)
	}
	return r
}

// DAGb of the paper, nt2 → nt4, uses chains of DAGa and skips what it does not
// need, if order, permission and bandwidth are there.
func TestSkipping(t *testing.T) {
	for _, test := range []struct {
		name    string
		running []running
		want    string
		new     int
	}{
		{"nothing runs", nil, "nt2 → nt4", 1},
		{"one chain", []running{all(3, 100, 0, 1, 2, 3)}, "nt2 → nt4 @3", 0},
		{"two chains", []running{all(0, 100, 0, 1), all(1, 100, 2), all(2, 100, 3)}, "nt2 @0 ; nt4 @2", 0},
		{"the chain with less to skip", []running{all(3, 100, 0, 1, 2, 3), all(1, 50, 1, 2, 3)}, "nt2 → nt4 @1", 0},
		{"the chain with more to spare", []running{all(3, 60, 1, 3), all(1, 90, 1, 3)}, "nt2 → nt4 @1", 0},
		{"wrong order is two passes", []running{all(3, 100, 3, 1)}, "nt2 @3 ; nt4 @3", 0},
		{"no bandwidth", []running{all(3, 39, 0, 1, 2, 3)}, "nt2 → nt4", 1},
		{"one NT without bandwidth", []running{{region: 3, chain: []int{1, 3}, usable: []bool{true, true}, spare: []float64{100, 39}}}, "nt2 → nt4", 1},
		{"not shareable", []running{{region: 3, chain: []int{1, 3}, usable: []bool{true, false}, spare: []float64{100, 100}}}, "nt2 → nt4", 1},
		{"one NT is missing", []running{all(3, 100, 0, 1)}, "nt2 → nt4", 1},
	} {
		p := figure3(50)
		p.graph = &graph{nts: []int{1, 3}, before: []set{0, 1}}
		p.running = test.running
		plan := p.plan(4, 4)
		if got := text(p.nts, plan); got != test.want || plan.New != test.new {
			t.Errorf("%s: %s with %d new regions, want %s with %d", test.name, got, plan.New, test.want, test.new)
		}
	}
	p := figure3(50)
	p.graph = &graph{nts: []int{1, 3}, before: []set{0, 1}}
	p.running = []running{all(3, 100, 0, 1, 2, 3)}
	if why := strings.Join(p.plan(4, 4).Why, "\n"); !strings.Contains(why, "in region 3") || !strings.Contains(why, "past nt1 → nt3") {
		t.Errorf("it says %s", why)
	}
	p.skip = 3 // each NT that is skipped takes that long
	if got := p.plan(4, 4).Cycles; got != 106 {
		t.Errorf("%d cycles past two NTs of 3 cycles, want 106", got)
	}
}

// A DAG whose NTs no region holds has no plan, one with more chains than the
// board has regions neither.
func TestNoPlan(t *testing.T) {
	p := figure3(50)
	p.area, p.regions = 1, 3
	if plan := p.plan(3, 3); plan != nil {
		t.Errorf("four NTs in three regions of one: %s", text(p.nts, plan))
	}
}

// randomPlanner draws a DAG, regions that run chains already, and the board.
func randomPlanner(t *rapid.T, most int) planner {
	n := rapid.IntRange(1, most).Draw(t, "NTs")
	g := &graph{nts: make([]int, n), before: make([]set, n)}
	nts := make([]NT, n)
	for i := range n {
		g.nts[i] = i
		nts[i] = NT{
			Name: fmt.Sprint(i), Cycles: rapid.IntRange(1, 60).Draw(t, "cycles"), Gbps: rapid.Float64Range(30, 100).Draw(t, "gbps"),
			Area: rapid.Float64Range(0.2, 1).Draw(t, "area"), Shareable: rapid.Bool().Draw(t, "shareable"),
		}
		for before := range i {
			if rapid.IntRange(0, 2).Draw(t, "edge") == 0 {
				g.before[i] |= 1 << before
			}
		}
	}
	p := planner{graph: g, nts: nts, area: rapid.Float64Range(1, 3).Draw(t, "region"), regions: 2 * n, pass: 16,
		sync: rapid.IntRange(0, 9).Draw(t, "sync"), skip: rapid.IntRange(0, 2).Draw(t, "skip"), parallel: true, demand: rapid.Float64Range(0, 50).Draw(t, "demand")}
	for r := range rapid.IntRange(0, 2).Draw(t, "running") {
		chain := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 1, min(n, 3), rapid.ID[int]).Draw(t, "chain")
		x := running{region: r, chain: chain}
		for range chain {
			x.usable = append(x.usable, rapid.Bool().Draw(t, "usable"))
			x.spare = append(x.spare, rapid.Float64Range(0, 100).Draw(t, "spare"))
		}
		p.running = append(p.running, x)
	}
	return p
}

// Whatever the DAG: a plan runs every NT once and after those before it, chains
// fit their regions, shared chains have the NTs in order, free to use, with
// bandwidth, and the plan's figures are those of its stages.
func TestPlanIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomPlanner(t, 7)
		free := rapid.IntRange(0, 7).Draw(t, "free")
		allowed := rapid.Float64Range(0, 7).Draw(t, "allowed")
		plan := p.plan(free, allowed)
		if plan == nil {
			t.Fatal("no plan, though each NT fits a region and there are enough")
		}
		var done set
		cycles, regions, share := p.pass*(len(plan.Stages)-1), 0, 0.0
		wide := false
		for i, stage := range plan.Stages {
			meet := 0
			if len(stage) > 1 && i < len(plan.Stages)-1 {
				meet = p.sync
			}
			longest := 0
			after := done
			taken := map[int]bool{}
			wide = wide || len(stage) > 1
			for _, b := range stage {
				had, area, time := done, 0.0, 0
				for _, n := range b.NTs {
					if p.graph.before[n]&^had != 0 {
						t.Fatalf("%s: NT %d before those that it follows", text(p.nts, plan), n)
					}
					if after.has(n) {
						t.Fatalf("%s: NT %d twice", text(p.nts, plan), n)
					}
					had |= 1 << n
					after |= 1 << n
					area += p.nts[n].Area
					time += p.nts[n].Cycles
				}
				if b.Region == New {
					regions++
					share += fills(p.nts, b.NTs, p.demand, false)
					if area > p.area+1e-6 {
						t.Fatalf("%s: area %v in a region of %v", text(p.nts, plan), area, p.area)
					}
				} else {
					r := p.at(b.Region)
					time += p.skip * (len(r.chain) - len(b.NTs))
					at := -1
					for _, n := range b.NTs {
						i := slices.Index(r.chain, n)
						if i <= at || !r.usable[i] || r.spare[i] < p.demand-1e-6 {
							t.Fatalf("%s: NT %d is no use at %d of %v", text(p.nts, plan), n, i, r)
						}
						at = i
					}
					if taken[b.Region] {
						t.Fatalf("%s: a stage takes region %d twice", text(p.nts, plan), b.Region)
					}
					taken[b.Region] = true
				}
				longest = max(longest, time)
			}
			done = after
			cycles += meet + longest
		}
		if done != p.graph.all() || cycles != plan.Cycles || regions != plan.New || math.Abs(share-plan.Share) > 1e-9 {
			t.Fatalf("%s: NTs %b; %d cycles, said %d; %d regions, said %d; share %v, said %v",
				text(p.nts, plan), done, cycles, plan.Cycles, regions, plan.New, share, plan.Share)
		}
		if wide && (regions > free || share > allowed+1e-6) {
			t.Fatalf("%s: in parallel beyond %d free regions, share %v of %v", text(p.nts, plan), free, share, allowed)
		}
		alone := p
		alone.parallel = false
		if base := alone.plan(free, allowed); plan.Cycles > base.Cycles || !wide && plan.New != base.New {
			t.Fatalf("%s in %d cycles; without parallelism %s in %d", text(p.nts, plan), plan.Cycles, text(p.nts, base), base.Cycles)
		}
	})
}

// The plan one after the other has the fewest regions that any cut of any order
// of the NTs into chains has, and of those the fewest cycles.
func TestPlanAgainstAllOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomPlanner(t, 5)
		p.running, p.parallel = nil, false
		plan := p.plan(10, 10)
		regions, cycles := math.MaxInt, math.MaxInt
		var try func(done set, area float64, chains, time int)
		try = func(done set, area float64, chains, time int) {
			if done == p.graph.all() {
				if chains < regions || chains == regions && time < cycles {
					regions, cycles = chains, time
				}
				return
			}
			p.graph.ready(done).each(func(n int) {
				nt := p.nts[n]
				if chains > 0 && area+nt.Area <= p.area*(1+areaSlack) {
					try(done|1<<n, area+nt.Area, chains, time+nt.Cycles)
				}
				cost := nt.Cycles
				if chains > 0 {
					cost += p.pass
				}
				try(done|1<<n, nt.Area, chains+1, time+cost)
			})
		}
		try(0, 0, 0, 0)
		if plan.New != regions || plan.Cycles != cycles {
			t.Fatalf("%s: %d regions and %d cycles, best are %d and %d", text(p.nts, plan), plan.New, plan.Cycles, regions, cycles)
		}
	})
}

// A DAG of many independent NTs is cut along one order, and planned at once.
func TestLargeDAG(t *testing.T) {
	p := figure3(50)
	p.graph = &graph{nts: make([]int, maxNodes), before: make([]set, maxNodes)}
	p.nts = nil
	for i := range maxNodes {
		p.graph.nts[i] = i
		p.nts = append(p.nts, NT{Name: fmt.Sprint(i), Cycles: 50, Gbps: 100, Area: 1, Shareable: true})
	}
	p.regions, p.demand = 16, 0
	if n := len(p.downsets()); n != maxNodes+1 {
		t.Fatalf("%d places to cut", n)
	}
	plan := p.plan(16, 16)
	// One stage of 16 branches of 2 NTs each is as wide as the board.
	if plan.Cycles != 100 || plan.New != 16 {
		t.Errorf("%d cycles in %d regions: %s", plan.Cycles, plan.New, text(p.nts, plan))
	}
}
