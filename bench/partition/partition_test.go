package main

import (
	"context"
	"math"
	"os/exec"
	"testing"
	"time"

	"nicprof/cora/partition"
	"nicprof/cora/partition/synthetic"
)

// TestAgainstSolvers holds our best plans of small problems, and our bounds,
// against what general solvers prove.
func TestAgainstSolvers(t *testing.T) {
	for _, solver := range []string{"cbc", "glpsol"} {
		t.Run(solver, func(t *testing.T) {
			if _, err := exec.LookPath(solver); err != nil {
				t.Skip(solver + " is not installed")
			}
			proved := 0
			for seed := range uint64(4) {
				p := synthetic.Blocks(3, 12, 0.3, seed)
				if seed%2 == 1 {
					p.PCIeGbps = 20
				}
				ours, err := partition.Solve(p, partition.Exact, partition.Options{})
				if err != nil {
					t.Fatal(err)
				}
				theirs, err := solve(context.Background(), solver, p, 20*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				if math.IsNaN(theirs.objective) || math.IsNaN(theirs.bound) {
					if theirs.infeasible && ours.Feasible {
						t.Errorf("seed %d: a plan where %s says there is none", seed, solver)
					}
					continue
				}
				proved++
				// solvers keep rows to about 1e-7
				if near := 1e-4 * theirs.objective; ours.Objective < theirs.bound-near || ours.Bound > theirs.objective+near ||
					theirs.bound == theirs.objective && ours.Objective > theirs.objective+near {
					t.Errorf("seed %d: objective %v, bound %v; %s has %v, %v", seed, ours.Objective, ours.Bound, solver,
						theirs.objective, theirs.bound)
				}
			}
			if proved < 2 {
				t.Errorf("%s answered %d problems only", solver, proved)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for _, x := range []struct {
		parse            func(string) answer
		log              string
		objective, bound float64
	}{
		{parseCBC, "Result - Optimal solution found\n\nObjective value:                4.27\n", 4.27, 4.27},
		{parseCBC, "Result - Stopped on time limit\n\nObjective value:                6.5\nLower bound:                    5.25\nGap: 0.1\n", 6.5, 5.25},
		{parseCBC, "Problem is infeasible - 0.01 seconds\n", math.NaN(), math.NaN()},
		{parseGLPK, "+ 80: mip =     not found yet >=              -inf        (1; 0)\n+ 123: >>>>> 6.5e+01 >=   6.0e+01 0.1% (2; 0)\n+ 150: mip =   6.5e+01 >=   6.25e+01   0.1% (2; 0)\n", 65, 62.5},
		{parseGLPK, "+ 150: mip =   6.5e+01 >=     tree is empty   0.0% (0; 5)\nINTEGER OPTIMAL SOLUTION FOUND\n", 65, 65},
	} {
		a := x.parse(x.log)
		same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
		if !same(a.objective, x.objective) || !same(a.bound, x.bound) {
			t.Errorf("%q: %v, %v; expected %v, %v", x.log, a.objective, a.bound, x.objective, x.bound)
		}
	}
}

func TestScale(t *testing.T) {
	points, err := scale(context.Background(), []int{1000, 10_000})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range points {
		if x.flows != []int{1000, 10_000}[i] || x.seconds < x.low || x.high < x.seconds || x.gap < 0 {
			t.Errorf("point %d: %+v", i, x)
		}
	}
	if _, err := scaleFigure(points).SVG(); err != nil {
		t.Error(err)
	}
	for _, s := range []string{"x", "10,5", "0"} {
		if _, err := parseFlows(s); err == nil {
			t.Errorf("-flows %s was taken", s)
		}
	}
}
