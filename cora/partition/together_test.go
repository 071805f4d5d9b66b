package partition

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// togetherProblem draws a problem, some of whose blocks have the same groups and
// must stay together: every packet that visits one of them is in the same group
// of each.
func togetherProblem(r *rand.Rand) *Problem {
	p := randomProblem(r, 3+r.IntN(2), 4, 2+r.IntN(12))
	set := r.Perm(len(p.Blocks))[:2+r.IntN(2)]
	first := &p.Blocks[set[0]]
	for _, b := range set {
		p.Blocks[b].Groups, p.Blocks[b].Partitionable = first.Groups, first.Partitionable
		if !first.Partitionable {
			p.Blocks[b].Table = false
		}
	}
	for i := range p.Classes {
		g := int32(r.IntN(first.Groups))
		for k, b := range p.Paths[p.Classes[i].Path].Blocks {
			for _, of := range set {
				if b == of {
					p.Classes[i].Groups[k] = g
				}
			}
		}
	}
	p.Together = [][]int{set}
	return p
}

// No plan tears blocks apart that stay together; of feasible plans none is better
// than exact's, by trying all, and none below its bound.
func TestTogether(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		p := togetherProblem(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6)))
		plans, err := SolveAll(p, Options{Nodes: 50_000}, Strategies...)
		if err != nil {
			t.Fatal(err)
		}
		sizes := 0
		for b := range p.Blocks {
			sizes += p.Blocks[b].Groups
		}
		best := math.Inf(1)
		if sizes <= 9 {
			best = bruteForce(p)
		}
		for _, plan := range plans {
			memory, on := masks(plan)
			v := check(p, memory, on)
			if torn := strings.Contains(strings.Join(v.broken, " "), "apart"); torn {
				t.Errorf("%s: %v", plan.Strategy, v.broken)
			}
			if plan.Feasible != (len(v.broken) == 0) {
				t.Errorf("%s: feasible %v, broken %v; the checker has %v", plan.Strategy, plan.Feasible, plan.Broken, v.broken)
			}
			if plan.Feasible {
				found++
				if plan.Objective < best*(1-1e-9) && !math.IsInf(best, 1) {
					t.Errorf("%s: %v, by enumeration %v", plan.Strategy, plan.Objective, best)
				}
			}
			if plan.Feasible && !math.IsInf(best, 1) && plan.Bound > best*(1+1e-6)+1e-9 {
				t.Errorf("%s: bound %v, by enumeration %v", plan.Strategy, plan.Bound, best)
			}
		}
	})
	if found == 0 {
		t.Error("no problem had a plan")
	}
}

// Two counters that one packet changes in one region, always both: the union is
// the same problem, and its plan the best there is.
func TestTogetherIsExactForPacketsThatVisitAll(t *testing.T) {
	p := &Problem{
		Blocks: []Block{
			{Name: "bytes", Instructions: 2, EntryBytes: 8, Partitionable: true},
			{Name: "packets", Instructions: 1, EntryBytes: 4, Partitionable: true},
		},
		Memories: []Memory{{"imem", 20}}, Predictor: oneResource(2, 100), Together: [][]int{{0, 1}},
	}
	flows(p, 4, 3, 2, 1)
	plan, err := Solve(p, Cora, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// 12 B a flow: one fits, though another's 8 would, too
	if plan.Blocks[0].Groups != 1 || plan.Blocks[1].Groups != 1 || plan.Objective != 3*6 || plan.Gap != 0 {
		t.Errorf("%d and %d groups, objective %v, gap %v; expected one flow of both and 18", plan.Blocks[0].Groups, plan.Blocks[1].Groups, plan.Objective, plan.Gap)
	}
	torn, err := Evaluate(p, []int{0, Host}, [][]bool{{true, false, false, false}, {false, false, false, false}})
	if err != nil || torn.Feasible || strings.Join(torn.Broken, "") != "bytes and packets apart" {
		t.Errorf("apart: feasible %v, %q (%v)", torn.Feasible, torn.Broken, err)
	}
	p.Blocks[1].Groups = 3
	if _, err := Solve(p, Cora, Options{}); err == nil || !strings.Contains(err.Error(), "do not have the same groups") {
		t.Errorf("unlike groups: %v", err)
	}
}
