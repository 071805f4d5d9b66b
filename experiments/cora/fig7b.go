package cora

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"nicprof/experiments"
	"nicprof/fit"
	"nicprof/microbench"
	"nicprof/model"
	"nicprof/program"
	"nicprof/report"
	"nicprof/sim"
	"nicprof/traffic"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "cora/fig7b", Paper: paper, Title: "figure 7(b): mixed state accesses, predicted against measured", Run: fig7b,
	})
}

// maxMixed is the largest number of accesses a packet of a mix: the published
// curves, and the rules built on them, reach 25.
const maxMixed = 24

// largestAtomic is the largest atomic access in a mix, one command, bytes.
const largestAtomic = 32

// mixes returns n programs of two to four kinds of state access of the given
// sizes, every fourth with skewed ones.
func mixes(seed uint64, n int, sizes []int) []program.Program {
	s := sim.NewStream(seed, "cora/fig7b/mixes")
	all := make([]program.Program, n)
	for i := range all {
		p := program.Program{Base: "profiling"}
		left := maxMixed
		for k := 2 + s.IntN(3); k > 0; k-- {
			a := program.Access{
				Memory: []string{"imem", "emem"}[s.IntN(2)],
				Op:     []program.Op{program.Read, program.Write}[s.IntN(2)],
				Mode:   []program.Mode{program.Bulk, program.Atomic}[s.IntN(2)],
				Bytes:  sizes[s.IntN(len(sizes))],
			}
			if a.Mode == program.Atomic {
				a.Bytes = min(a.Bytes, largestAtomic)
			}
			most := left - 2*(k-1) // leaves two for each that follows
			n := 1 + s.IntN(most)
			left -= n
			a.PerPacket = float64(n)
			if i%4 == 3 {
				a.Popularity, a.Alpha = "zipf", 0.99
			}
			p.Accesses = append(p.Accesses, a)
		}
		all[i] = p
	}
	return all
}

func fig7b(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("fig7b")
	if err != nil {
		return report.Result{}, err
	}
	b, err := newBench(env, "cora/fig7b")
	if err != nil {
		return report.Result{}, err
	}
	suite, n, sizes := "standard", 200, []int{4, 8, 16, 32, 64, 128}
	if env.Scale == experiments.Quick {
		// The quick suite, and the curves that the paper's rules need.
		suite, n, sizes = "quick", 40, []int{8, 32, 128}
		curve := func(w microbench.Workload) bool {
			a := w.Program.Accesses
			return w.Options.Cores == 0 && w.Program.Base == "profiling" && len(a) == 1 && slices.Contains(sizes, a[0].Bytes) &&
				a[0].Span == b.driver.Board().Memory(a[0].Memory).DefaultSpan && inPaper(model.Class{Op: a[0].Op})
		}
		if err := b.plan("standard", []string{microbench.GroupSingle}, curve); err != nil {
			return report.Result{}, err
		}
	}
	if err := b.plan(suite, nil, nil); err != nil {
		return report.Result{}, err
	}
	fitted := len(b.workloads)
	programs := mixes(env.Seed, n, sizes)
	for i, p := range programs {
		b.add(fmt.Sprintf("mix %d", i+1), p)
	}
	res, err := b.run(ctx)
	if err != nil {
		return res, err
	}
	m, _, err := fit.Fit(b.samples[:fitted], fit.Options{Board: b.driver.Board(), Suite: suite, Seed: env.Seed})
	if err != nil {
		return res, err
	}

	rules := model.Rules
	errs := make([][]float64, len(rules))
	panels := make([]report.Panel, len(rules))
	res.Data.Columns = append([]string{"mix", "accesses", "mpps", "mpps_low", "mpps_high"}, rules...)
	worst := report.Table{Title: "Mixes that the default rule misses most, Mpps", Columns: append([]string{"accesses", "measured"}, rules...)}
	type row struct {
		cells []any
		err   float64
	}
	var rows []row
	for i, p := range programs {
		s := b.samples[fitted+i]
		cells := []any{accessList(p), s.Mpps}
		far := 0.0
		for k, rule := range rules {
			got, err := m.Predict(p, traffic.Traffic{}, model.Options{Rule: rule, Brief: true})
			if err != nil {
				return res, fmt.Errorf("mix %d by rule %s: %w", i+1, rule, err)
			}
			e := 100 * math.Abs(got.Mpps/s.Mpps-1)
			errs[k] = append(errs[k], e)
			if rule == m.DefaultRule {
				far = e
			}
			cells = append(cells, got.Mpps)
			if len(panels[k].Series) == 0 {
				panels[k] = report.Panel{
					Title: "rule " + rule, Band: 0.05,
					X:      report.Axis{Label: "measured", Unit: "Mpps", Log: true},
					Y:      report.Axis{Label: "predicted", Unit: "Mpps", Log: true},
					Series: []report.Series{{Name: "uniform", Kind: report.Markers}, {Name: "zipf 0.99", Kind: report.Markers, Style: 1}},
				}
			}
			kind := 0
			if p.Accesses[0].Popularity != "" {
				kind = 1
			}
			series := &panels[k].Series[kind]
			series.Points = append(series.Points, report.Point{X: s.Mpps, Y: got.Mpps})
		}
		res.Data.Add(slices.Concat([]any{i + 1, cells[0], s.Mpps, s.Low, s.High}, cells[2:])...)
		rows = append(rows, row{cells, far})
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.err, a.err) })
	for _, r := range rows[:5] {
		worst.Add(r.cells...)
	}
	table := report.Table{Title: "Error of each rule, % of the measured", Columns: []string{"rule", "mean", "median", "95th percentile", "largest", "default"}}
	for k, rule := range rules {
		mean := 0.0
		for _, e := range errs[k] {
			mean += e / float64(n)
		}
		mark := ""
		if rule == m.DefaultRule {
			mark = "yes"
			claims.measured("default", mean, "")
		}
		table.Add(rule, mean, quantile(errs[k], 0.5), quantile(errs[k], 0.95), quantile(errs[k], 1), mark)
		if rule != model.RuleResources {
			claims.measured(rule, mean, "")
		}
	}
	res.Claims = claims
	res.Tables = []report.Table{table, worst}
	res.Figure = report.Figure{
		Caption: fmt.Sprintf("%d mixes; lines: predicted = measured and ±5 %%; the paper's values are not public", n),
		Columns: 2, Shared: true, Panels: panels,
	}
	res.Notes = []string{
		fmt.Sprintf("The model is fitted on the %s suite of the same seed, which has no program of these; its default rule is %s.", suite, m.DefaultRule),
		"common takes all curves of a group at the group's total intensity, as the authors' release does; literal takes each at its own, as Eq. 3 is printed, so that the base program's time is counted once an access kind; refit fits Eq. 2 to the combined curve; resources adds up the time on each resource.",
	}
	return res, nil
}

// accessList names the accesses of a mix.
func accessList(p program.Program) string {
	var s []string
	for _, a := range p.Accesses {
		t := fmt.Sprintf("%g× %s %s %s %d B", a.PerPacket, a.Memory, a.Op, a.Mode, a.Bytes)
		if a.Popularity != "" {
			t += fmt.Sprintf(" %s %g", a.Popularity, a.Alpha)
		}
		s = append(s, t)
	}
	return strings.Join(s, ", ")
}
