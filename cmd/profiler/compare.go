package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"nicprof/internal/fault"
	"nicprof/internal/table"
	"nicprof/microbench"
	"nicprof/model"
	"nicprof/report/compare"
)

func (a *app) compare() *cobra.Command {
	var threshold float64
	c := &cobra.Command{
		Use:   "compare OLD NEW",
		Short: "Say what changed between two runs or two models, beyond doubt",
		Long: `Compare two runs (directories or samples.jsonl) or two model files of a board,
and list the changes whose whole 95 % interval lies beyond the threshold, after
control of false discoveries. Exits with 1 when something is slower.`,
		Example: `  profiler compare runs/old runs/new
  profiler compare old/model.json new/model.json --threshold 2`,
		Args: exactArgs(2, "an old and a new run, or two model files"),
		RunE: func(c *cobra.Command, args []string) error {
			if !(threshold >= 0) {
				return fault.Inputf("--threshold %v: expected per cent, 0 or more", threshold)
			}
			r, err := a.compareFiles(args[0], args[1], threshold)
			if err != nil {
				return err
			}
			if err := a.printComparison(&r); err != nil {
				return err
			}
			return r.Check()
		},
	}
	c.Flags().Float64Var(&threshold, "threshold", compare.DefaultThreshold, "change that does not matter, `PERCENT`")
	return c
}

func (a *app) compareFiles(before, after string, threshold float64) (compare.Result, error) {
	fail := func(err error) (compare.Result, error) { return compare.Result{}, err }
	oldModel, newModel := isModel(before), isModel(after)
	if oldModel != newModel {
		return fail(fault.Inputf("%s and %s: one is a model and the other a run; compare two of a kind", before, after))
	}
	if newModel {
		old, err := model.Load(before)
		if err != nil {
			return fail(err)
		}
		new, err := model.Load(after)
		if err != nil {
			return fail(err)
		}
		return compare.Parameters(old, new, threshold)
	}
	var sides [2][]microbench.Sample
	for i, path := range []string{before, after} {
		samples, notes, err := microbench.ReadSamples(path)
		a.notes(notes)
		if err != nil {
			return fail(err)
		}
		sides[i] = samples
	}
	return compare.Samples(sides[0], sides[1], threshold)
}

// isModel tells a model file from a run's directory or samples.
func isModel(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && filepath.Ext(path) == ".json"
}

func (a *app) printComparison(r *compare.Result) error {
	if a.json {
		return a.document(r)
	}
	if len(r.Changes) > 0 {
		if err := a.print(changesTable(r)); err != nil {
			return err
		}
	}
	for _, key := range r.Broken {
		if err := a.printf("fails now: %s", key); err != nil {
			return err
		}
	}
	if n := len(r.OnlyOld) + len(r.OnlyNew); n > 0 {
		a.note("note: %d only in the old %s, %d only in the new one", len(r.OnlyOld), r.Kind, len(r.OnlyNew))
	}
	if r.TooFew > 0 {
		a.note("note: not enough samples to compare %d of %d", r.TooFew, r.Compared)
	}
	return a.printf("%d compared: %d slower, %d faster, %d without a change of more than %g %%",
		r.Compared, r.Regressions, len(r.Changes)-r.Regressions, r.Unchanged, r.Threshold)
}

// changesTable lists the changes of throughput of two runs, or of the numbers
// of two models.
func changesTable(r *compare.Result) *table.Table {
	runs := r.Kind == compare.Runs
	columns := []string{"part", "number", "old", "new", "change %", "95 %", "p", ""}
	if runs {
		columns = []string{"workload", "old Mpps", "new Mpps", "change %", "95 %", "p", ""}
	}
	t := table.New("", columns...)
	for _, c := range r.Changes {
		verdict, p := table.Good.Of("faster"), "<0.001"
		if c.Regression {
			verdict = table.Bad.Of("slower")
		}
		if c.P >= 0.001 {
			p = fmt.Sprintf("%.3f", c.P)
		}
		cells := []any{c.Key, c.Quantity, c.Old, c.New, signed(c.Percent), signed(c.Low) + " to " + signed(c.High), p, verdict}
		if runs {
			cells = slices.Delete(cells, 1, 2)
		}
		t.Row(cells...)
	}
	return t
}

func signed(v float64) string { return fmt.Sprintf("%+.1f", v) }
