package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"nicprof/board"
	"nicprof/fit/validate"
	"nicprof/internal/fault"
	"nicprof/internal/table"
	"nicprof/microbench"
	"nicprof/model"
)

func (a *app) validate() *cobra.Command {
	var on target
	var modelPath, rule string
	var programs, parallel, worst int
	var maxError, maxP95 float64
	c := &cobra.Command{
		Use:   "validate --model M --board B",
		Short: "Hold a model against measurements of random programs",
		Long: `Measure random programs that no fit has seen, and predict them from a model.
Exits with 1 when the mean absolute error or its 95th percentile is beyond the
bounds. On real hardware every program is measured twice, and the difference is
the noise floor: the least error that a model can have there.`,
		Example: `  profiler validate --model runs/nfp-standard-1 --board nfp
  profiler validate --model runs/nfp-standard-1 --board nfp --programs 50 --rule common
  profiler validate --model runs/host-standard-1 --board host`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if programs < 1 && c.Flags().Changed("programs") {
				return fault.Inputf("--programs %d: expected at least 1", programs)
			}
			if worst < 1 {
				return fault.Inputf("--worst %d: expected at least 1", worst)
			}
			for _, bound := range []struct {
				flag string
				pct  float64
			}{{"max-error", maxError}, {"max-p95", maxP95}} {
				if !(bound.pct >= 0) {
					return fault.Inputf("--%s %v: expected per cent, at least 0", bound.flag, bound.pct)
				}
			}
			m, err := openModel(c, modelPath)
			if err != nil {
				return err
			}
			d, err := on.open(c)
			if err != nil {
				return err
			}
			if b := d.Board(); b.Name != m.Board {
				return fault.Inputf("the model is of board %s, not of %s", m.Board, b.Name)
			}
			mean, p95 := bounds95(d.Board())
			if c.Flags().Changed("max-error") {
				mean = maxError
			}
			if c.Flags().Changed("max-p95") {
				p95 = maxP95
			}
			real := microbench.DefaultBackend(d.Board(), on.backend) != microbench.Emulated
			if programs == 0 {
				programs = 200
				if real {
					programs = 50
				}
			}
			bar := a.progress("validating")
			r, err := validate.Run(c.Context(), m, d, validate.Options{
				Programs: programs, Twice: real, Seed: a.seed, Rule: rule, Parallel: parallel, Worst: worst, Progress: bar.count,
			})
			bar.end()
			if err != nil {
				return err
			}
			if err := a.printValidation(&r, m); err != nil {
				return err
			}
			return r.Check(mean, p95)
		},
	}
	on.flags(c)
	flags := c.Flags()
	flags.StringVarP(&modelPath, "model", "m", "", "model `FILE`, or the directory of a run")
	flags.StringVar(&rule, "rule", "", "`RULE`: "+join(model.Rules))
	flags.IntVar(&programs, "programs", 0, "`N` random programs (default 200; 50 on real hardware)")
	flags.IntVar(&worst, "worst", 5, "list the `N` worst cases")
	flags.IntVar(&parallel, "parallel", 0, "`N` measurements at a time (default: one a processor)")
	flags.Float64Var(&maxError, "max-error", 0, "largest mean error, `PERCENT` (default 5; 12 for a host)")
	flags.Float64Var(&maxP95, "max-p95", 0, "95th percentile, `PERCENT` (default 12; 30 for a host)")
	return c
}

// bounds95 are the default bounds of the mean error and of its 95th percentile,
// per cent: a real host is noisier than an emulated board.
func bounds95(b *board.Board) (mean, p95 float64) {
	if b.Class == "host" {
		return 12, 30
	}
	return 5, 12
}

func (a *app) printValidation(r *validate.Result, m *model.Model) error {
	if a.json {
		r.Worst = list(r.Worst)
		return a.document(r)
	}
	t := table.New(fmt.Sprintf("%s, rule %s, against %d random programs (seed %d)", m.ID(), r.Rule, r.N, r.Seed),
		"absolute error", "%")
	for _, row := range []struct {
		name string
		pct  float64
	}{{"mean", r.Mean}, {"median", r.Median}, {"95th percentile", r.P95}, {"largest", r.Max}} {
		t.Row(row.name, fmt.Sprintf("%.1f", row.pct))
	}
	if len(r.Kinds) > 1 {
		for _, k := range r.Kinds {
			t.Row(fmt.Sprintf("%s (%d), mean", k.Name, k.N), fmt.Sprintf("%.1f", k.Mean))
		}
	}
	if n := r.Noise; n != nil {
		t.Row("noise floor (measured twice), mean", fmt.Sprintf("%.1f", n.Mean))
		t.Row("noise floor, 95th percentile", fmt.Sprintf("%.1f", n.P95))
	}
	for _, s := range r.Skipped {
		a.note("left out %s: %s", s.Program, s.Reason)
	}
	worst := table.New("Worst cases", "predicted", "measured", "error %", "program: why")
	for _, c := range r.Worst {
		worst.Row(c.Predicted, c.Measured, fmt.Sprintf("%+.1f", c.ErrorPct), c.Program+": "+c.Why)
	}
	return a.print(t, worst)
}
