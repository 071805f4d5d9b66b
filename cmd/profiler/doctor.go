package main

import (
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/internal/table"
	"nicprof/microbench"
)

func (a *app) doctor() *cobra.Command {
	var on target
	var sysroot string
	c := &cobra.Command{
		Use:   "doctor [--board B | --sysroot DIR]",
		Short: "Say what can be measured here, and what would spoil a measurement",
		Long: `Say what this machine can measure of a board, or of every board of the
catalogue, and what would spoil a measurement. Exits with 3 when the board named
cannot be measured. --board host measures where the caches' levels lie as well.

--sysroot looks at a copy of another machine's /proc and /sys instead, which
tells what its files tell; what must be measured is left out.`,
		Example: "  profiler doctor\n  profiler doctor --board nfp\n  profiler doctor --sysroot /",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !slices.Contains(append([]string{""}, microbench.Backends...), on.backend) {
				return fault.Inputf("backend %q is unknown; expected one of %s", on.backend, join(microbench.Backends))
			}
			if sysroot != "" {
				return a.doctorOf(c, sysroot)
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
	c.Flags().StringVar(&sysroot, "sysroot", "", "look at the copy of a machine in `DIR` instead, with its proc and sys")
	return c
}

// doctorOf looks at a copy of a machine, which has no boards.
func (a *app) doctorOf(c *cobra.Command, dir string) error {
	for _, flag := range []string{"board", "backend", "host"} {
		if c.Flags().Changed(flag) {
			return fault.Inputf("doctor: --sysroot looks at a machine's files, not at a board: leave --%s out", flag)
		}
	}
	root := os.DirFS(dir)
	for _, name := range []string{"proc", "sys"} {
		if info, err := fs.Stat(root, name); err != nil || !info.IsDir() {
			return fault.Inputf("doctor: --sysroot %s holds no directory %s; expected a copy of a machine's root", dir, name)
		}
	}
	report := microbench.DoctorOf(root)
	report.Board = dir
	if a.json {
		return a.document(report)
	}
	return a.print(machineTable("machine of "+dir, report.Machine))
}

// tones of the levels of findings.
var tones = map[string]table.Tone{
	microbench.LevelOK: table.Good, microbench.LevelWarning: table.Warn, microbench.LevelMissing: table.Bad,
}

func machineTable(title string, found []microbench.Finding) *table.Table {
	t := table.New(title, "", "topic", "finding", "what to do")
	for _, f := range found {
		t.Row(tones[f.Level].Of(f.Level), f.Topic, f.Text, f.Remedy)
	}
	return t
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
		if len(r.Machine) > 0 { // the same for each board that this machine holds
			tables = append(tables, machineTable("the machine that measures", r.Machine))
			break
		}
	}
	for _, r := range reports {
		t := table.New(fmt.Sprintf("%s (class %s, %s)", r.Board, r.Class, r.Backend), "", "finding", "what to do")
		for _, f := range r.Findings {
			t.Row(tones[f.Level].Of(f.Level), f.Text, f.Remedy)
		}
		if len(r.Groups) > 0 {
			t.Row(tones[microbench.LevelOK].Of(microbench.LevelOK), "groups of workloads: "+join(r.Groups), "")
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
