package main

import (
	"errors"

	"github.com/spf13/cobra"

	"nicprof/board"
	"nicprof/internal/config"
	"nicprof/internal/fault"
	"nicprof/internal/table"
)

func (a *app) boards() *cobra.Command {
	c := &cobra.Command{
		Use:     "boards",
		Short:   "List the boards of the catalogue",
		Example: "  profiler boards\n  profiler boards show nfp",
		Args:    unknownVerb,
		RunE:    func(*cobra.Command, []string) error { return a.listBoards() },
	}
	c.AddCommand(
		&cobra.Command{
			Use:               "show NAME|FILE",
			Short:             "Print a board as YAML, every number with its source",
			Example:           "  profiler boards show nfp",
			Args:              exactArgs(1, "the name of a board or a board file"),
			ValidArgsFunction: completeBoards,
			RunE:              func(_ *cobra.Command, args []string) error { return a.showBoard(args[0]) },
		},
		&cobra.Command{
			Use:     "check FILE",
			Short:   "Validate a board file; exits with 1 when it has mistakes",
			Example: "  profiler boards check myboard.yaml",
			Args:    exactArgs(1, "a board file"),
			RunE:    func(_ *cobra.Command, args []string) error { return a.checkBoard(args[0]) },
		},
	)
	return c
}

func (a *app) listBoards() error {
	type entry struct {
		Name     string   `json:"name"`
		Class    string   `json:"class"`
		Title    string   `json:"title"`
		Cores    int      `json:"cores"`
		ClockMHz float64  `json:"clock_mhz"`
		Memories []string `json:"memories"`
		Bases    []string `json:"bases"`
	}
	entries := []entry{}
	t := table.New("", "board", "class", "cores", "MHz", "memories", "bases", "title")
	for _, name := range board.Names() {
		b, err := board.Load(name)
		if err != nil {
			return err
		}
		e := entry{Name: b.Name, Class: b.Class, Title: b.Title, Cores: int(b.Cores.Value), ClockMHz: b.ClockMHz.Value}
		for _, m := range b.Memories {
			e.Memories = append(e.Memories, m.Name)
		}
		for _, base := range b.Bases {
			e.Bases = append(e.Bases, base.Name)
		}
		entries = append(entries, e)
		t.Row(e.Name, e.Class, e.Cores, int(e.ClockMHz), join(e.Memories), join(e.Bases), e.Title)
	}
	if a.json {
		return a.document(entries)
	}
	return a.print(t)
}

func (a *app) showBoard(name string) error {
	if a.json {
		b, err := board.Load(name)
		if err != nil {
			return err
		}
		return a.document(b)
	}
	src, err := board.Source(name)
	if err != nil {
		return err
	}
	_, err = a.out.Write(src)
	return err
}

func (a *app) checkBoard(path string) error {
	type finding struct {
		File string `json:"file"`
		Line int    `json:"line"`
		Path string `json:"path"`
		Text string `json:"text"`
	}
	result := struct {
		File     string    `json:"file"`
		OK       bool      `json:"ok"`
		Findings []finding `json:"findings"`
	}{File: path, Findings: []finding{}}
	_, err := board.Load(path)
	var found *config.Error
	switch {
	case err == nil:
		result.OK = true
	case errors.As(err, &found):
		for _, f := range found.Findings {
			result.Findings = append(result.Findings, finding(f))
		}
		err = fault.Checkf("%w", err)
	default:
		return err // no file, or no board
	}
	if a.json {
		if derr := a.document(result); derr != nil {
			return derr
		}
	} else if result.OK {
		if perr := a.printf("%s: ok", path); perr != nil {
			return perr
		}
	}
	return err
}

// loadBoard loads the board of a --board flag.
func loadBoard(c *cobra.Command, name string) (*board.Board, error) {
	if name == "" {
		return nil, missingFlag(c, "--board NAME|FILE (one of "+join(board.Names())+", or a board file)")
	}
	return board.Load(name)
}

func completeBoards(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return board.Names(), cobra.ShellCompDirectiveDefault
}
