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

// planModel adds the sweep that the model is fitted on and returns its suite.
// The quick one adds the curves of mixed sizes, which the paper's rules need, at
// a part of the standard suite's intensities.
func planModel(b *bench, sizes []int) (suite string, err error) {
	if b.env.Scale == experiments.Full {
		return "standard", b.plan("standard", nil, nil)
	}
	if err := b.plan("quick", nil, nil); err != nil {
		return "", err
	}
	intensities := []float64{2, 7, 15, 25}
	return "quick", b.plan("standard", []string{microbench.GroupSingle}, func(w microbench.Workload) bool {
		a := w.Program.Accesses
		return w.Options.Cores == 0 && w.Program.Base == "profiling" && len(a) == 1 &&
			slices.Contains(sizes, a[0].Bytes) && slices.Contains(intensities, a[0].PerPacket) &&
			a[0].Span == b.driver.Board().Memory(a[0].Memory).DefaultSpan && inPaper(model.Class{Op: a[0].Op})
	})
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
	n, sizes := 200, []int{4, 8, 16, 32, 64, 128}
	if env.Scale == experiments.Quick {
		n, sizes = 40, []int{8, 32, 128}
	}
	suite, err := planModel(b, sizes)
	if err != nil {
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
	all, err := predictMixes(m, programs, b.samples[fitted:])
	if err != nil {
		return res, err
	}

	res.Data.Columns = append([]string{"mix", "accesses", "mpps", "mpps_low", "mpps_high"}, rules...)
	for i, x := range all {
		s := b.samples[fitted+i]
		res.Data.Add(append([]any{i + 1, accessList(x.program), s.Mpps, s.Low, s.High}, numbers(x.predicted)...)...)
	}
	errors := report.Table{Title: "Error of each rule, % of the measured", Columns: []string{"rule", "mean", "median", "95th percentile", "largest", "default"}}
	for k, rule := range rules {
		var errs []float64
		mean := 0.0
		for _, x := range all {
			errs = append(errs, x.err(k))
			mean += x.err(k) / float64(n)
		}
		mark := ""
		if rule == m.DefaultRule {
			mark = "yes"
			claims.measured("default", mean, "")
		}
		if rule != model.RuleResources { // not the paper's
			claims.measured(rule, mean, "")
		}
		errors.Add(rule, mean, quantile(errs, 0.5), quantile(errs, 0.95), quantile(errs, 1), mark)
	}
	res.Claims = claims
	res.Tables = []report.Table{errors, missed(all, slices.Index(rules, m.DefaultRule))}
	res.Figure = mixPicture(all)
	res.Figure.Caption = fmt.Sprintf("%d mixes; lines: predicted = measured and ±5 %%; the paper's values are not public", n)
	res.Notes = []string{
		fmt.Sprintf("The model is fitted on the %s suite of the same seed, which has no program of these; its default rule is %s.", suite, m.DefaultRule),
		"common takes all curves of a group at the group's total intensity, as the authors' release does; literal takes each at its own, as Eq. 3 is printed, so that the base program's time is counted once an access kind; refit fits Eq. 2 to the combined curve; resources adds up the time on each resource.",
	}
	return res, nil
}

// rules are those that models of the board have.
var rules = model.RulesFor("nfp")

// mix is a measured program with the prediction of each of rules.
type mix struct {
	program   program.Program
	measured  float64
	predicted []float64
}

// err is the error of rule k, per cent of the measured.
func (x *mix) err(k int) float64 { return 100 * math.Abs(x.predicted[k]/x.measured-1) }

func predictMixes(m *model.Model, programs []program.Program, samples []microbench.Sample) ([]mix, error) {
	all := make([]mix, len(programs))
	for i, p := range programs {
		all[i] = mix{program: p, measured: samples[i].Mpps}
		for _, rule := range rules {
			got, err := m.Predict(p, traffic.Traffic{}, model.Options{Rule: rule, Brief: true})
			if err != nil {
				return nil, fmt.Errorf("mix %d by rule %s: %w", i+1, rule, err)
			}
			all[i].predicted = append(all[i].predicted, got.Mpps)
		}
	}
	return all, nil
}

// missed is a table of the five mixes that rule k misses most.
func missed(all []mix, k int) report.Table {
	t := report.Table{Title: "Mixes that the default rule misses most, Mpps", Columns: append([]string{"accesses", "measured"}, rules...)}
	worst := slices.Clone(all)
	slices.SortStableFunc(worst, func(a, b mix) int { return cmp.Compare(b.err(k), a.err(k)) })
	for _, x := range worst[:5] {
		t.Add(append([]any{accessList(x.program), x.measured}, numbers(x.predicted)...)...)
	}
	return t
}

// numbers makes values cells of a row.
func numbers(values []float64) []any {
	cells := make([]any, len(values))
	for i, v := range values {
		cells[i] = v
	}
	return cells
}

// mixPicture draws predicted against measured, a panel a rule.
func mixPicture(all []mix) report.Figure {
	f := report.Figure{Columns: 2, Shared: true}
	for k, rule := range rules {
		uniform := report.Series{Name: "uniform accesses", Kind: report.Markers}
		skewed := report.Series{Name: "skewed accesses (Zipf 0.99)", Kind: report.Markers, Style: 1}
		for _, x := range all {
			s := &uniform
			if x.program.Accesses[0].Popularity != "" {
				s = &skewed
			}
			s.Points = append(s.Points, report.Point{X: x.measured, Y: x.predicted[k]})
		}
		f.Panels = append(f.Panels, report.Panel{
			Title: "rule " + rule, Band: 0.05,
			X:      report.Axis{Label: "measured", Unit: "Mpps", Log: true},
			Y:      report.Axis{Label: "predicted", Unit: "Mpps", Log: true},
			Series: []report.Series{uniform, skewed},
		})
	}
	return f
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
