package partition

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestQuality holds cora's plans of a thousand random problems against the best
// there are, and against what the two rules of the literature find.
func TestQuality(t *testing.T) {
	var gaps []float64
	solved, printed := 0, 0
	for seed := uint64(0); solved < 1000 && seed < 4000; seed++ {
		r := rand.New(rand.NewPCG(seed, 2))
		p := randomProblem(r, 2+r.IntN(4), 12, 4+r.IntN(60))
		plans, err := SolveAll(p, Options{Nodes: 200_000}, Exact, Cora, State, Flow)
		if err != nil {
			t.Fatal(err)
		}
		exact, cora := plans[0], plans[1]
		if !exact.Feasible {
			continue
		}
		if exact.Gap > 1e-6 {
			t.Logf("seed %d: not solved: %v %v", seed, exact.Objective, exact.Bound)
			continue
		}
		solved++
		memory, on := masks(cora)
		if v := check(p, memory, on); len(v.broken) > 0 || !cora.Feasible {
			t.Errorf("seed %d: cora breaks %v", seed, v.broken)
		}
		gap := 0.0
		if exact.Objective > 1e-9 || cora.Objective > 1e-9 {
			gap = (cora.Objective - exact.Objective) / max(exact.Objective, 1e-9)
		}
		if gap < -1e-9 {
			t.Errorf("seed %d: cora %v below exact %v", seed, cora.Objective, exact.Objective)
		}
		if gap > 0.02 {
			t.Logf("seed %d: cora %v, exact %v, pcie %v", seed, cora.Objective, exact.Objective, p.PCIeGbps)
		}
		gaps = append(gaps, gap)
		paper, err := Solve(p, Cora, Options{NoRepair: true})
		if err != nil {
			t.Fatal(err)
		}
		if !paper.Feasible || paper.Objective > exact.Objective*(1+1e-9) {
			printed++
		}
		for _, other := range plans[2:] {
			if other.Feasible && other.Objective < cora.Objective*(1-1e-9) {
				t.Errorf("seed %d: %s %v is better than cora %v", seed, other.Strategy, other.Objective, cora.Objective)
			}
		}
	}
	slices.Sort(gaps)
	mean := 0.0
	for _, g := range gaps {
		mean += g / float64(len(gaps))
	}
	t.Logf("%d problems: mean gap %.3f %%, 99th percentile %.3f %%, largest %.3f %%; as printed %d worse than the best",
		len(gaps), 100*mean, 100*gaps[len(gaps)*99/100], 100*gaps[len(gaps)-1], printed)
	if solved < 1000 {
		t.Errorf("only %d problems solved", solved)
	}
	if mean > 0.01 || gaps[len(gaps)*99/100] > 0.05 {
		t.Errorf("mean gap %v, 99th percentile %v; at most 1 %% and 5 %%", mean, gaps[len(gaps)*99/100])
	}
}
