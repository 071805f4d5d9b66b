package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"nicprof/cora/partition"
	"nicprof/cora/partition/synthetic"
	"nicprof/internal/atomicfile"
	"nicprof/internal/table"
)

// problem is one row of the comparison.
type problem struct {
	name string
	make func() (*partition.Problem, error)
}

// problems are of three sizes. The NIC's memories hold a fifth of the state, or
// three fifths, or a fifth with a PCIe that carries nine tenths of what the plan
// without that limit needs.
func problems() []problem {
	var out []problem
	for _, size := range [][2]int{{4, 50}, {6, 200}, {8, 1000}} {
		for _, kind := range []struct {
			name string
			fit  float64
			pcie bool
		}{{"a fifth fits", 0.2, false}, {"three fifths fit", 0.6, false}, {"a fifth, PCIe short", 0.2, true}} {
			out = append(out, problem{fmt.Sprintf("%d×%d, %s", size[0], size[1], kind.name), func() (*partition.Problem, error) {
				p := synthetic.Blocks(size[0], size[1], kind.fit, 1)
				if !kind.pcie {
					return p, nil
				}
				plan, err := partition.Solve(p, partition.Cora, partition.Options{})
				if err != nil {
					return nil, err
				}
				p.PCIeGbps = 0.9 * max(plan.ToHostGbps, plan.ToNICGbps)
				return p, nil
			}})
		}
	}
	return out
}

// answer is what a solver says: NaN where it says nothing.
type answer struct {
	objective, bound float64
	infeasible       bool
}

func compare(ctx context.Context, list []problem, limit time.Duration) (*table.Table, error) {
	t := table.New(fmt.Sprintf("Host instructions left (millions a second) and lower bounds; solvers stopped after %s", limit),
		"blocks × groups", "all on host", "cora", "s", "exact", "s", "our bound", "CBC", "CBC's bound", "GLPK", "cora above best bound", "CBC above it")
	for _, x := range list {
		p, err := x.make()
		if err != nil {
			return nil, err
		}
		cora, coraTime, err := ours(p, partition.Cora)
		if err != nil {
			return nil, err
		}
		exact, exactTime, err := ours(p, partition.Exact)
		if err != nil {
			return nil, err
		}
		cbc, err := solve(ctx, "cbc", p, limit)
		if err != nil {
			return nil, err
		}
		glpk, err := solve(ctx, "glpsol", p, limit)
		if err != nil {
			return nil, err
		}
		if !cora.Feasible || !exact.Feasible {
			return nil, fmt.Errorf("%s: no plan: %v", x.name, cora.Broken)
		}
		bound := max(exact.Bound, cora.Bound)
		if cbc.bound > bound {
			bound = cbc.bound
		}
		above := func(v float64) string {
			if math.IsNaN(v) {
				return "–"
			}
			return fmt.Sprintf("%.3f %%", 100*(v-bound)/bound)
		}
		t.Row(x.name, cora.AllHost, cora.Objective, coraTime, exact.Objective, exactTime, max(exact.Bound, cora.Bound),
			cbc.objective, cbc.bound, glpk.objective, above(cora.Objective), above(cbc.objective))
	}
	return t, nil
}

// ours is a plan and the processor seconds it took, garbage collection included.
func ours(p *partition.Problem, s partition.Strategy) (*partition.Plan, float64, error) {
	begun := cpuSeconds()
	plan, err := partition.Solve(p, s, partition.Options{})
	return plan, cpuSeconds() - begun, err
}

// cpuSeconds is the processor time that this process has used.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it has no way to fail with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// solve has another solver work on p. A solver that is not installed says
// nothing.
func solve(ctx context.Context, solver string, p *partition.Problem, limit time.Duration) (answer, error) {
	none := answer{math.NaN(), math.NaN(), false}
	path, err := exec.LookPath(solver)
	if err != nil {
		return none, nil
	}
	dir, err := os.MkdirTemp("", "partition")
	if err != nil {
		return none, err
	}
	defer os.RemoveAll(dir)
	file, seconds := filepath.Join(dir, "problem.lp"), strconv.Itoa(max(1, int(limit.Seconds())))
	var lp bytes.Buffer
	if err := partition.WriteLP(&lp, p); err != nil {
		return none, err
	}
	if err := atomicfile.Write(file, lp.Bytes()); err != nil {
		return none, err
	}
	args, parse := []string{file, "sec", seconds, "solve"}, parseCBC
	if solver == "glpsol" {
		args, parse = []string{"--lp", file, "--tmlim", seconds}, parseGLPK
	}
	// solvers look at their clock now and then only
	ctx, cancel := context.WithTimeout(ctx, 20*limit+time.Minute)
	defer cancel()
	said, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return none, fmt.Errorf("%s: %w\n%s", solver, err, said[max(0, len(said)-1000):])
	}
	return parse(string(said)), nil
}

var (
	cbcObjective = regexp.MustCompile(`(?m)^Objective value:\s+(\S+)`)
	cbcBound     = regexp.MustCompile(`(?m)^Lower bound:\s+(\S+)`)
	glpkProgress = regexp.MustCompile(`(?m)(?:mip =|>>>>>)\s+(not found yet|\S+) >=\s+(\S+)`)
)

// parseCBC reads the end of CBC's log. Its bound has four digits; a search that
// was completed has its objective as the bound.
func parseCBC(log string) answer {
	a := answer{math.NaN(), math.NaN(), false}
	if strings.Contains(log, "infeasible") && !strings.Contains(log, "Objective value") {
		a.infeasible = true
		return a
	}
	if m := cbcObjective.FindStringSubmatch(log); m != nil {
		a.objective = number(m[1])
	}
	if m := cbcBound.FindStringSubmatch(log); m != nil {
		a.bound = number(m[1])
	} else if strings.Contains(log, "Optimal solution found") {
		a.bound = a.objective
	}
	return a
}

// parseGLPK reads the last line of glpsol's progress.
func parseGLPK(log string) answer {
	a := answer{math.NaN(), math.NaN(), strings.Contains(log, "NO PRIMAL FEASIBLE SOLUTION") || strings.Contains(log, "NO INTEGER FEASIBLE")}
	if all := glpkProgress.FindAllStringSubmatch(log, -1); all != nil {
		last := all[len(all)-1]
		a.objective, a.bound = number(last[1]), number(last[2])
	}
	if strings.Contains(log, "INTEGER OPTIMAL SOLUTION FOUND") {
		a.bound = a.objective
	}
	return a
}

func number(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}
