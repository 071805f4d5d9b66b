package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/internal/table"
	"nicprof/microbench"
)

func (a *app) doctor() *cobra.Command {
	var on target
	c := &cobra.Command{
		Use:   "doctor [--board B]",
		Short: "Say what can be measured here, and what would spoil a measurement",
		Long: `Say what this machine can measure of a board, or of every board of the
catalogue, and what would spoil a measurement. Exits with 3 when the board named
cannot be measured.`,
		Example: "  profiler doctor\n  profiler doctor --board nfp",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !slices.Contains(append([]string{""}, microbench.Backends...), on.backend) {
				return fault.Inputf("backend %q is unknown; expected one of %s", on.backend, join(microbench.Backends))
			}
			names := board.Names()
			if on.board != "" {
				names = []string{on.board}
			}
			var boards []*board.Board
			for _, name := range names {
				b, err := board.Load(name)
				if err != nil {
					return err
				}
				boards = append(boards, b)
			}
			reports, err := on.examine(c, boards, on.board != "")
			if err != nil {
				return err
			}
			if err := a.printDoctor(reports, on.board == ""); err != nil {
				return err
			}
			if on.board == "" {
				return nil
			}
			return reports[0].Err()
		},
	}
	on.flags(c)
	return c
}

func (a *app) printDoctor(reports []microbench.Report, all bool) error {
	switch {
	case a.json && all:
		return a.document(reports)
	case a.json:
		return a.document(reports[0])
	}
	var tables []*table.Table
	for _, r := range reports {
		t := table.New(fmt.Sprintf("%s (class %s, %s)", r.Board, r.Class, r.Backend), "", "finding", "what to do")
		for _, f := range r.Findings {
			tone := map[string]table.Tone{
				microbench.LevelOK: table.Good, microbench.LevelWarning: table.Warn, microbench.LevelMissing: table.Bad,
			}[f.Level]
			t.Row(tone.Of(f.Level), f.Text, f.Remedy)
		}
		if len(r.Groups) > 0 {
			t.Row(table.Good.Of(microbench.LevelOK), "groups of workloads: "+join(r.Groups), "")
		}
		tables = append(tables, t)
		for _, measured := range r.Tables {
			m := table.New(measured.Title, measured.Columns...)
			for _, row := range measured.Rows {
				m.Row(row...)
			}
			tables = append(tables, m)
		}
	}
	return a.print(tables...)
}
