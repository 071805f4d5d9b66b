package partition

import (
	"math"
	"math/rand/v2"
	"testing"
)

func masks(p *Plan) (memory []int, on [][]bool) {
	for _, b := range p.Blocks {
		memory = append(memory, b.Memory)
		on = append(on, b.OnNIC)
	}
	return memory, on
}

// bruteForce tries every memory of every block and every set of groups.
func bruteForce(p *Problem) float64 {
	best := math.Inf(1)
	memory, on := make([]int, len(p.Blocks)), make([][]bool, len(p.Blocks))
	for b := range on {
		on[b] = make([]bool, p.Blocks[b].Groups)
	}
	var groups func(b, g int)
	groups = func(b, g int) {
		if b == len(p.Blocks) {
			if v := check(p, memory, on); len(v.broken) == 0 {
				best = min(best, v.objective)
			}
			return
		}
		if g == len(on[b]) {
			groups(b+1, 0)
			return
		}
		groups(b, g+1)
		if memory[b] != Host {
			on[b][g] = true
			groups(b, g+1)
			on[b][g] = false
		}
	}
	var place func(b int)
	place = func(b int) {
		if b == len(p.Blocks) {
			groups(0, 0)
			return
		}
		for m := range p.Memories {
			memory[b] = m
			place(b + 1)
		}
	}
	place(0)
	return best
}

func TestExactAgainstEnumeration(t *testing.T) {
	found := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := randomProblem(r, 1+r.IntN(3), 3, 1+r.IntN(8))
		plan, err := Solve(p, Exact, Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := bruteForce(p)
		if math.IsInf(want, 1) {
			if plan.Feasible {
				t.Errorf("seed %d: a plan where none keeps the limits", seed)
			}
			continue
		}
		found++
		if !plan.Feasible || math.Abs(plan.Objective-want) > 1e-6*max(1, want) {
			t.Errorf("seed %d: objective %v (feasible %v), by enumeration %v", seed, plan.Objective, plan.Feasible, want)
		}
		if plan.Bound > want+1e-6*max(1, want) || plan.Bound < want-1e-4*max(1, want) {
			t.Errorf("seed %d: bound %v, by enumeration %v", seed, plan.Bound, want)
		}
	}
	if found < 100 {
		t.Errorf("only %d problems have a plan", found)
	}
}
