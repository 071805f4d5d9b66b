package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"nicprof/board"
	"nicprof/fit"
	"nicprof/internal/fault"
	"nicprof/internal/table"
	"nicprof/microbench"
	"nicprof/model"
)

// maxFailed is the share of a real machine's workloads that may fail, most of
// them for noise, before a run has failed.
const maxFailed = 0.2

// modelFile is the model's name in the directory of a run.
const modelFile = "model.json"

// sweepFlags are the flags of run.
type sweepFlags struct {
	target
	suite, out, shard     string
	only                  []string
	parallel              int
	resume, dryRun, noFit bool
}

// sweepReport is the JSON of run.
type sweepReport struct {
	Dir      string              `json:"dir"`
	Manifest microbench.Manifest `json:"manifest"`
	Model    string              `json:"model,omitempty"` // its file
	Summary  *fitReport          `json:"summary,omitempty"`
}

func (a *app) run() *cobra.Command {
	var f sweepFlags
	c := &cobra.Command{
		Use:   "run --board B",
		Short: "Measure a board by microbenchmarks and fit its model",
		Long: `Measure a board by a sweep of microbenchmarks, fit its performance model, and
print a summary. The directory gets manifest.json, samples.jsonl and model.json;
an interrupted run keeps what it has measured and goes on with --resume.`,
		Example: `  profiler run --board nfp
  profiler run --board nfp --suite quick --only stateless,cores --out r1
  profiler run --board nfp --suite full --dry-run
  profiler run --board nfp --backend native --suite quick --dry-run --out card`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.sweep(c, &f) },
	}
	f.flags(c)
	flags := c.Flags()
	flags.StringVar(&f.suite, "suite", "standard", "`SUITE`: "+join(microbench.Suites))
	flags.StringSliceVar(&f.only, "only", nil, "`GROUPS`: "+join(microbench.Groups))
	flags.StringVarP(&f.out, "out", "o", "", "`DIR` of the results (default runs/BOARD-SUITE-SEED)")
	flags.BoolVar(&f.resume, "resume", false, "go on with a run that was interrupted")
	flags.IntVar(&f.parallel, "parallel", 0, "`N` measurements at a time (default: one a processor)")
	flags.StringVar(&f.shard, "shard", "", "part `K/N` of the plan, or auto in a job array")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be measured; of a native card, write its firmware's sources to --out and print every command")
	flags.BoolVar(&f.noFit, "no-fit", false, "measure only")
	complete(c, "suite", cobra.FixedCompletions(microbench.Suites, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (a *app) sweep(c *cobra.Command, f *sweepFlags) error {
	if f.dryRun {
		b, d, err := f.dryRunner(c)
		if err != nil {
			return err
		}
		if d != nil {
			return a.sweepCommands(b, d, f)
		}
	}
	d, err := f.open(c)
	if err != nil {
		return err
	}
	b := d.Board()
	shard, err := microbench.ParseShard(f.shard, a.getenv)
	if err != nil {
		return err
	}
	if f.parallel < 0 {
		return fault.Inputf("--parallel %d: expected at least 1, or leave it out for one a processor", f.parallel)
	}
	if f.dryRun {
		return a.dryRun(b, f, shard)
	}
	if f.out == "" {
		f.out = microbench.DefaultDir(b.Name, f.suite, a.seed)
		if shard != (microbench.Shard{}) {
			f.out += fmt.Sprintf("-%d-of-%d", shard.K, shard.N)
		}
	}
	bar := a.progress("measuring")
	m, err := microbench.Sweep(c.Context(), d, microbench.SweepConfig{
		Dir: f.out, Backend: microbench.DefaultBackend(b, f.backend), Suite: f.suite, Only: f.only,
		Seed: a.seed, Shard: shard, Parallel: f.parallel, Resume: f.resume,
		Progress: func(p microbench.Progress) { bar.show(p.Done, p.Total, p.Left) },
		Note:     func(text string) { a.note("note: %s", text) },
	})
	bar.end()
	if err != nil {
		if m.Status == microbench.Interrupted {
			a.note("%d measurements are kept in %s; go on with the same command and --resume", m.Measured, f.out)
		}
		return err
	}
	if m.Failed > 0 {
		a.note("warning: %d of %d workloads failed; their reasons are in %s", m.Failed, m.Measured, filepath.Join(f.out, microbench.SamplesFile))
	}
	if most := maxFailed * float64(m.Measured); m.Backend != microbench.Emulated && float64(m.Failed) > most {
		return fault.Checkf("%d of %d workloads failed, more than %g %%: no model is fitted; see the reasons in %s, and measure on a quieter machine or with --allow-noise",
			m.Failed, m.Measured, 100*maxFailed, filepath.Join(f.out, microbench.SamplesFile))
	}
	r := sweepReport{Dir: f.out, Manifest: m}
	if f.noFit || shard != (microbench.Shard{}) {
		return a.printSweep(&r, f.board)
	}
	if r.Model, r.Summary, err = a.fitRun(c.Context(), f.out, &m, b); err != nil {
		return err
	}
	return a.printSweep(&r, f.board)
}

// fitRun fits the samples of a run's directory and writes the model beside them.
func (a *app) fitRun(ctx context.Context, dir string, m *microbench.Manifest, b *board.Board) (string, *fitReport, error) {
	samples, notes, err := microbench.ReadSamples(dir)
	a.notes(notes)
	if err != nil {
		return "", nil, err
	}
	a.note("fitting %d samples ...", len(samples))
	fitted, r, err := fitSamples(ctx, samples, fit.Options{Board: b, Suite: m.Suite, Seed: m.Seed})
	if err != nil {
		return "", nil, err
	}
	path := filepath.Join(dir, modelFile)
	if err := saveModel(fitted, path); err != nil {
		return "", nil, err
	}
	return path, newFitReport(fitted, r), nil
}

// saveModel writes a model file.
func saveModel(m *model.Model, path string) error {
	if err := m.Save(path); err != nil {
		return fault.Inputf("cannot write the model: %w", err)
	}
	return nil
}

// sweepCommands shows the commands of a native sweep.
func (a *app) sweepCommands(b *board.Board, d microbench.DryRunner, f *sweepFlags) error {
	plan, err := microbench.Plan(b, f.suite, f.only, a.seed)
	if err != nil {
		return err
	}
	shard, err := microbench.ParseShard(f.shard, a.getenv)
	if err != nil {
		return err
	}
	if f.out == "" {
		f.out = microbench.DefaultDir(b.Name, f.suite, a.seed) + "-dry-run"
	}
	return a.showDryRun(b, d, shard.Of(plan), f.out)
}

func (a *app) dryRun(b *board.Board, f *sweepFlags, shard microbench.Shard) error {
	plan, err := microbench.Plan(b, f.suite, f.only, a.seed)
	if err != nil {
		return err
	}
	part := shard.Of(plan)
	groups := map[string]int{}
	for _, w := range part {
		groups[w.Group]++
	}
	if a.json {
		return a.document(map[string]any{
			"board": b.Name, "backend": microbench.DefaultBackend(b, f.backend), "suite": f.suite,
			"seed": a.seed, "shard": shard.String(), "workloads": len(part), "groups": groups,
		})
	}
	t := table.New(fmt.Sprintf("suite %s of board %s, %s", f.suite, b.Name, shard), "group", "workloads", "such as")
	for _, g := range microbench.Groups {
		for _, w := range part {
			if w.Group == g {
				t.Row(g, groups[g], w.Key)
				break
			}
		}
	}
	t.Row("all", len(part), "")
	return a.print(t)
}

// printSweep says what was measured, what came out and what to do next. board is
// the board as the user named it.
func (a *app) printSweep(r *sweepReport, board string) error {
	if a.json {
		return a.document(r)
	}
	m := &r.Manifest
	if r.Summary != nil {
		if err := a.printFit(r.Summary); err != nil {
			return err
		}
		if err := a.printf(""); err != nil {
			return err
		}
	}
	next := "profiler fit " + r.Dir
	switch {
	case r.Model != "":
		next = fmt.Sprintf("profiler predict --model %s %s\n      profiler validate --model %s --board %s", r.Model, anAccess(r.Summary.Model), r.Model, board)
	case m.Shard != (microbench.Shard{}):
		next = "measure the other parts, then profiler merge DIR... --out DIR"
	}
	return a.printf("%d samples of board %s (%s, suite %s, seed %d)\nfiles: %s\nnext: %s",
		m.Measured, m.Board, m.Backend, m.Suite, m.Seed, r.Dir, next)
}

// anAccess is an example of a program that the model predicts.
func anAccess(m *model.Model) string {
	if len(m.Rooflines) == 0 {
		return "--base " + m.Bases[0].Name
	}
	r := &m.Rooflines[0]
	return fmt.Sprintf("--access %s:%s:%s:%d:10", r.Memory, r.Op, r.Mode, r.Bytes)
}
