package partition

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nicprof/internal/fault"
)

func drawProblem(t *rapid.T) *Problem {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 4))
	return randomProblem(r, rapid.IntRange(1, 4).Draw(t, "blocks"), rapid.IntRange(1, 10).Draw(t, "groups"),
		rapid.IntRange(1, 40).Draw(t, "classes"))
}

// Every plan says of itself what the checker finds: objective, both directions
// of PCIe, and whether it keeps all limits. Its bound is not above it.
func TestPlansAgainstChecker(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		printed, err := Solve(p, Cora, Options{NoRepair: true})
		if err != nil {
			t.Fatal(err)
		}
		plans, err := SolveAll(p, Options{Nodes: 20_000}, Strategies...)
		if err != nil {
			t.Fatal(err)
		}
		for _, plan := range append(plans, printed) {
			memory, on := masks(plan)
			v := check(p, memory, on)
			near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(b)) }
			if !near(plan.Objective, v.objective) || !near(plan.ToHostGbps, v.toHost) || !near(plan.ToNICGbps, v.toNIC) {
				t.Errorf("%s: objective %v, PCIe %v and %v; the checker has %v, %v and %v", plan.Strategy,
					plan.Objective, plan.ToHostGbps, plan.ToNICGbps, v.objective, v.toHost, v.toNIC)
			}
			if plan.Feasible != (len(v.broken) == 0) {
				t.Errorf("%s: feasible %v, broken %v; the checker has %v", plan.Strategy, plan.Feasible, plan.Broken, v.broken)
			}
			if plan.Feasible && (plan.Bound > plan.Objective || plan.DroppedMpps > 1e-6) {
				t.Errorf("%s: bound %v above %v, or %v Mpps dropped", plan.Strategy, plan.Bound, plan.Objective, plan.DroppedMpps)
			}
			if !near(plan.NICMpps+plan.HostMpps, plan.OfferedMpps) || plan.HostCores > plan.CoresAllHost+1e-9 && plan.HostMpps == 0 {
				t.Errorf("%s: %v + %v of %v Mpps, %v of %v cores", plan.Strategy, plan.NICMpps, plan.HostMpps,
					plan.OfferedMpps, plan.HostCores, plan.CoresAllHost)
			}
		}
	})
}

// flow keeps whole classes on one side, and state whole blocks.
func TestStrawmenKeepTheirRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		plans, err := SolveAll(p, Options{}, State, Flow)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range plans[0].Blocks {
			if b.Groups != 0 && b.Groups != len(b.OnNIC) {
				t.Errorf("state splits a block: %d of %d groups", b.Groups, len(b.OnNIC))
			}
		}
		for i, c := range p.Classes {
			for k, b := range p.Paths[c.Path].Blocks {
				first := plans[1].Blocks[p.Paths[c.Path].Blocks[0]].OnNIC[c.Groups[0]]
				if plans[1].Blocks[b].OnNIC[c.Groups[k]] != first {
					t.Errorf("flow splits class %d at step %d", i, k)
				}
			}
		}
	})
}

// More of a resource never makes the best plan worse, and never raises the bound.
func TestMoreIsNotWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		p := randomProblem(r, 1+r.IntN(3), 5, 1+r.IntN(12))
		less, err := Solve(p, Exact, Options{})
		if err != nil {
			t.Fatal(err)
		}
		more := *p
		more.Memories = append([]Memory(nil), p.Memories...)
		for m := range more.Memories {
			more.Memories[m].Bytes += int64(r.IntN(500))
		}
		if p.TableEntries > 0 {
			more.TableEntries += int64(r.IntN(10))
		}
		if p.PCIeGbps > 0 {
			more.PCIeGbps *= 1 + r.Float64()
		}
		plan, err := Solve(&more, Exact, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if less.Feasible && (!plan.Feasible || less.Gap < 1e-6 && plan.Bound > less.Objective*(1+1e-6)+1e-9) {
			t.Errorf("with more: feasible %v, bound %v; before %v", plan.Feasible, plan.Bound, less.Objective)
		}
		if less.Feasible && less.Gap < 1e-6 && plan.Gap < 1e-6 && plan.Objective > less.Objective*(1+1e-6)+1e-9 {
			t.Errorf("with more %v, before %v", plan.Objective, less.Objective)
		}
	})
}

func TestSolveIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		a, err := SolveAll(p, Options{Nodes: 5000}, Strategies...)
		if err != nil {
			t.Fatal(err)
		}
		b, err := SolveAll(p, Options{Nodes: 5000}, Strategies...)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a, b) {
			t.Error("two runs, two plans")
		}
	})
}

// A packet that goes NIC, host, NIC counts in both directions; one that goes
// there twice, twice; one for the host ends there; a dropped one does not
// return.
func TestCrossings(t *testing.T) {
	for _, x := range []struct {
		sides         string // of blocks 0, 1, 2: n or h
		end           End
		toHost, toNIC float64
	}{
		{"nnn", Wire, 0, 0}, {"hhh", Wire, 1, 1}, {"nhn", Wire, 1, 1}, {"hnh", Wire, 2, 2}, {"hnn", Wire, 1, 1},
		{"nnn", ToHost, 1, 0}, {"nhn", ToHost, 2, 1}, {"nnh", ToHost, 1, 0}, {"hhh", ToHost, 1, 0},
		{"nnn", Dropped, 0, 0}, {"nnh", Dropped, 1, 0}, {"hnh", Dropped, 2, 1}, {"hnn", Dropped, 1, 1},
	} {
		p := &Problem{Memories: []Memory{{"emem", 100}}, Predictor: oneResource(3, 1e6),
			Paths:   []Path{{[]int{0, 1, 2}, x.end}},
			Classes: []Class{{Mpps: 2, Bytes: 500, Groups: []int32{0, 0, 0}}}}
		memory, on := make([]int, 3), make([][]bool, 3)
		for b := range 3 {
			p.Blocks = append(p.Blocks, Block{Name: fmt.Sprint(b), Groups: 1, Partitionable: true})
			on[b] = []bool{x.sides[b] == 'n'}
		}
		plan, err := Evaluate(p, memory, on)
		if err != nil {
			t.Fatal(err)
		}
		const each = 2 * 500 * 8 / 1000.0 // Gb/s
		if plan.ToHostGbps != x.toHost*each || plan.ToNICGbps != x.toNIC*each {
			t.Errorf("%s to %d: %v and %v Gb/s, expected %v and %v times %v", x.sides, x.end, plan.ToHostGbps, plan.ToNICGbps,
				x.toHost, x.toNIC, each)
		}
	}
}

// failing is a predictor that knows no program.
type failing struct{}

func (failing) Predict([]Use, float64) (float64, string, error) {
	return 0, "", fmt.Errorf("no such memory")
}

func TestBadProblems(t *testing.T) {
	good := func() *Problem {
		return &Problem{Blocks: []Block{{Name: "nat", Groups: 2, EntryBytes: 8, Partitionable: true}},
			Memories: []Memory{{"emem", 100}}, Predictor: oneResource(1, 10), Paths: []Path{{Blocks: []int{0}}},
			Classes: []Class{{Mpps: 1, Groups: []int32{1}}}}
	}
	if _, err := Solve(good(), Cora, Options{}); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Problem){
		"0 state blocks":             func(p *Problem) { p.Blocks = nil },
		"no performance model":       func(p *Problem) { p.Predictor = nil },
		"no such memory":             func(p *Problem) { p.Predictor = failing{} },
		"no packets":                 func(p *Problem) { p.Classes[0].Mpps = 0 },
		"touches group 2 of block":   func(p *Problem) { p.Classes[0].Groups[0] = 2 },
		"takes path 1":               func(p *Problem) { p.Classes[0].Path = 1 },
		"0 groups on a path of 1":    func(p *Problem) { p.Classes[0].Groups = nil },
		"visits block 3":             func(p *Problem) { p.Paths[0].Blocks[0] = 3 },
		"NaN Mpps":                   func(p *Problem) { p.Classes[0].Mpps = math.NaN() },
		"cannot be split":            func(p *Problem) { p.Blocks[0].Partitionable = false },
		"entry bytes -1":             func(p *Problem) { p.Blocks[0].EntryBytes = -1 },
		"more than can be counted":   func(p *Problem) { p.Blocks[0].Elements = math.MaxInt64 / 2 },
		"group rates for 2 memories": func(p *Problem) { p.Blocks[0].MaxGroupMpps = []float64{1, 2} },
		"65 visits":                  func(p *Problem) { p.Paths[0].Blocks = make([]int, 65) },
		"memory emem: -1 bytes":      func(p *Problem) { p.Memories[0].Bytes = -1 },
		"PCIe NaN Gb/s":              func(p *Problem) { p.PCIeGbps = math.NaN() },
		"-1 instructions":            func(p *Problem) { p.Blocks[0].Instructions = -1 },
		"block nat: -1 groups":       func(p *Problem) { p.Blocks[0].Groups = -1 },
		"target +Inf Mpps; expected": func(p *Problem) { p.TargetMpps = math.Inf(1) },
	} {
		p := good()
		spoil(p)
		for _, s := range Strategies {
			if _, err := Solve(p, s, Options{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; expected %q", s, err, want)
			}
		}
	}
	if _, err := Solve(good(), "best", Options{}); fault.KindOf(err) != fault.Input {
		t.Errorf("unknown strategy: %v", err)
	}
	if _, err := Evaluate(good(), []int{0}, [][]bool{{true}}); fault.KindOf(err) != fault.Input {
		t.Errorf("assignment of too few groups: %v", err)
	}
}

func TestCounters(t *testing.T) {
	p := &Problem{Blocks: []Block{{Name: "a", Partitionable: true}, {Name: "b", Partitionable: true}},
		Memories: []Memory{{"emem", 100}}, Predictor: oneResource(2, 10)}
	flows(p, 1, 1, 1)
	plan, err := Solve(p, Cora, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := plan.Plans
	for _, x := range []struct{ got, want string }{
		{c.Exhaustive.String(), "2^6"}, {c.Aggregated.String(), "2^6"}, {c.Local.String(), "16"}, {c.Global.String(), "7"},
	} {
		if x.got != x.want {
			t.Errorf("plans %s, expected %s", x.got, x.want)
		}
	}
}
