package main

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"nicprof/board"
	"nicprof/experiments"
	"nicprof/internal/fault"
	"nicprof/internal/table"
	"nicprof/microbench"
	"nicprof/report"
)

func (a *app) reproduce() *cobra.Command {
	var scale, out string
	var strict bool
	var parallel int
	c := &cobra.Command{
		Use:   "reproduce ID... | all",
		Short: "Reproduce figures of the papers: expected against measured",
		Long: `Reproduce figures of the papers. Each gets data.csv, figure.svg, table.md and
figure.json below the results directory. Exits with 0 when every figure ran,
whatever its verdicts; --strict exits with 1 when a claim differs without a
reason, or when a verdict is not the stored one.`,
		Example: `  profiler reproduce list
  profiler reproduce cora/stateless --scale quick
  profiler reproduce all --scale full --out results --strict`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fault.Inputf("%sexpected figures, or all; profiler reproduce list shows them", prefix(c))
			}
			return nil
		},
		RunE: func(c *cobra.Command, ids []string) error {
			figures, err := selectFigures(ids)
			if err != nil {
				return err
			}
			s, err := experiments.ParseScale(scale)
			if err != nil {
				return err
			}
			var results []report.Result
			var failures []error
			for _, f := range figures {
				bar := a.progress(f.ID)
				env := experiments.Env{Seed: a.seed, Scale: s, Parallel: parallel, Open: openByName, Progress: bar.count}
				r, err := f.Run(c.Context(), env)
				bar.end()
				if err != nil {
					return err
				}
				results = append(results, r)
				failure, err := a.store(out, &r, strict)
				if err != nil {
					return err
				}
				failures = append(failures, failure)
			}
			if err := a.printResults(results, out); err != nil {
				return err
			}
			return errors.Join(failures...)
		},
	}
	flags := c.Flags()
	flags.StringVar(&scale, "scale", string(experiments.Quick), "`SCALE`: quick or full")
	flags.StringVarP(&out, "out", "o", "results", "`DIR` of the results")
	flags.BoolVar(&strict, "strict", false, "exit with 1 on an unexplained or a changed verdict")
	flags.IntVar(&parallel, "parallel", 0, "`N` measurements at a time (default: one a processor)")
	c.AddCommand(&cobra.Command{
		Use:     "list",
		Short:   "List the figures",
		Example: "  profiler reproduce list",
		Args:    noArgs,
		RunE:    func(*cobra.Command, []string) error { return a.listFigures() },
	})
	return c
}

// store writes a result. Where it has to be like the stored one (strict) and is
// not, the stored one stays, since else the next strict run would find nothing
// changed; failure says what differs.
func (a *app) store(out string, r *report.Result, strict bool) (failure, err error) {
	if strict {
		stored, err := report.Read(out, r.ID)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		failure = experiments.Strict(stored, *r)
		if failure != nil && stored != nil {
			a.note("note: the stored %s is kept; see the new one with another --out, or replace it without --strict", r.ID)
			return failure, nil
		}
	}
	return failure, report.Write(out, r)
}

func selectFigures(ids []string) ([]experiments.Figure, error) {
	if len(ids) == 1 && ids[0] == "all" {
		return experiments.List(), nil
	}
	var figures []experiments.Figure
	for _, id := range ids {
		f, err := experiments.Lookup(id)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f)
	}
	return figures, nil
}

func openByName(name string) (microbench.Driver, error) {
	b, err := board.Load(name)
	if err != nil {
		return nil, err
	}
	return microbench.Open(b, "")
}

func (a *app) listFigures() error {
	type entry struct {
		ID    string `json:"id"`
		Paper string `json:"paper"`
		Title string `json:"title"`
	}
	entries := []entry{}
	t := table.New("", "id", "paper", "title")
	for _, f := range experiments.List() {
		entries = append(entries, entry{f.ID, f.Paper, f.Title})
		t.Row(f.ID, f.Paper, f.Title)
	}
	if a.json {
		return a.document(entries)
	}
	return a.print(t)
}

// printResults prints one figure as its figure.json, several as a list.
func (a *app) printResults(results []report.Result, out string) error {
	if a.json {
		if len(results) == 1 {
			return a.document(results[0])
		}
		return a.document(results)
	}
	var tables []*table.Table
	for _, r := range results {
		t := table.New(r.ID+": "+r.Title+" ("+r.Backend+")", "claim", "paper", "measured", "unit", "verdict")
		for _, c := range r.Claims {
			measured := "–"
			if c.Measured != nil {
				measured = table.Number(*c.Measured)
			}
			tone := map[report.Verdict]table.Tone{report.Reproduced: table.Good, report.Differs: table.Bad}[c.Verdict]
			t.Row(c.Text, c.Expected(), measured, c.Unit, tone.Of(string(c.Verdict)))
		}
		tables = append(tables, t)
	}
	if err := a.print(tables...); err != nil {
		return err
	}
	for _, r := range results {
		a.note("%s: %s", r.ID, filepath.Join(report.Dir(out, r.ID), report.FigureFile))
	}
	return nil
}
