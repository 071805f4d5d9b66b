package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"nicprof/cora/frontend"
	"nicprof/internal/atomicfile"
	"nicprof/internal/fault"
	"nicprof/internal/table"
	"nicprof/p4"
	"nicprof/traffic"
)

func (a *app) p4() *cobra.Command {
	var include, define []string
	var deps, dot, trafficPath string
	c := &cobra.Command{
		Use:   "p4 PROGRAM.p4|PROGRAM.json",
		Short: "State blocks, flow groups and accesses of a P4 program",
		Long: `Read a P4_16 program, or the JSON that p4c makes of it for the behavioral model,
and print its state blocks, what determines the element that a packet touches
in each of them, the memory accesses and locks that an NFP needs for them, and
the branches whose shares a traffic file may set. Without --traffic the shares
are assumed; a note says which.`,
		Example: `  profiler p4 cora/apps/l4lb.p4
  profiler p4 cora/apps/l4lb.p4 --json
  profiler p4 cora/apps/natlb.p4 --dot natlb.dot`,
		Args: exactArgs(1, "one program"),
		RunE: func(c *cobra.Command, args []string) error {
			program, err := p4.Load(args[0], p4.Options{Include: include, Define: define})
			if err != nil {
				return err
			}
			r, err := frontend.Analyse(program, frontend.Options{Deps: deps})
			if err != nil {
				return err
			}
			var t traffic.Traffic
			if trafficPath != "" {
				if t, err = traffic.Load(trafficPath); err != nil {
					return err
				}
			}
			m, err := r.Mix(t.Branches)
			if err != nil {
				return err
			}
			if dot != "" {
				if err := atomicfile.WriteFunc(dot, r.Dot); err != nil {
					return fault.Inputf("write the graph: %w", err)
				}
			}
			if a.json {
				return a.document(m.Document())
			}
			return a.printBlocks(m)
		},
	}
	flags := c.Flags()
	flags.StringArrayVarP(&include, "include", "I", nil, "`DIR` searched for included files")
	flags.StringArrayVarP(&define, "define", "D", nil, "define the macro `NAME[=VALUE]`")
	flags.StringVar(&deps, "deps", frontend.DepsInstruction, "`KIND` of dependences: instruction, or action (coarser)")
	flags.StringVar(&dot, "dot", "", "write the instruction graph for Graphviz to `FILE`")
	flags.StringVar(&trafficPath, "traffic", "", "take the shares of branches from `FILE`")
	complete(c, "deps", cobra.FixedCompletions([]string{frontend.DepsInstruction, frontend.DepsAction}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// mostRows is how many ways and branches are printed; --json prints all.
const mostRows = 12

func (a *app) printBlocks(m *frontend.Mix) error {
	if err := a.print(blockTable(m), groupTable(m.Result), accessTable(m), pathTable(m), branchTable(m)); err != nil {
		return err
	}
	for _, w := range m.Result.Warnings {
		a.note("warning: %s", w.Error())
	}
	for _, w := range m.Warnings {
		a.note("note: %s", w)
	}
	return nil
}

func blockTable(m *frontend.Mix) *table.Table {
	r := m.Result
	arch := r.Program.Arch
	if arch == "" {
		arch = "no architecture"
	}
	t := table.New(fmt.Sprintf("state blocks of %s (%s, dependences by %s)", r.Program.Name, arch, r.Deps),
		"block", "objects", "cyclic", "instructions", "elements", "bytes", "packets")
	for _, b := range r.Blocks {
		var names []string
		for _, o := range b.Objects {
			names = append(names, r.Name(o))
		}
		t.Row(b.Name, join(names), yes(b.Cyclic), len(b.Instructions), b.Elements, b.Bytes, percent(m.Blocks[b.Index].Share))
	}
	return t
}

func groupTable(r *frontend.Result) *table.Table {
	t := table.New("what chooses the element, and whether flows can be divided", "block", "flow group", "divisible")
	for _, b := range r.Blocks {
		var groups []string
		for _, g := range b.Groups {
			groups = append(groups, g.String())
		}
		divisible := "yes"
		if !b.Partitionable {
			divisible = "no: " + b.Why
		}
		t.Row(b.Name, strings.Join(groups, "; "), divisible)
	}
	return t
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func accessTable(m *frontend.Mix) *table.Table {
	t := table.New("what a visiting packet does", "block", "object", "access", "a visit", "lock")
	for _, b := range m.Result.Blocks {
		v := &m.Blocks[b.Index]
		for _, x := range v.Accesses {
			lock := ""
			if x.Locked {
				lock = fmt.Sprintf("one of %d", v.Lock.Elements)
			}
			t.Row(b.Name, m.Result.Name(x.Object), fmt.Sprintf("%s:%s:%d", x.Op, x.Mode, x.Bytes), x.PerVisit, lock)
		}
	}
	return t
}

func pathTable(m *frontend.Mix) *table.Table {
	t := table.New("ways of packets through the blocks", "blocks", "packets", "end")
	for _, p := range m.Paths[:min(len(m.Paths), mostRows)] {
		var names []string
		for _, b := range p.Blocks {
			names = append(names, m.Result.Blocks[b].Name)
		}
		end := "forwarded"
		if p.Dropped {
			end = "dropped"
		}
		if p.Host != "" {
			end += ", by way of the host: " + p.Host
		}
		t.Row(cmp.Or(strings.Join(names, " "), "none"), percent(p.Share), end)
	}
	if more := len(m.Paths) - mostRows; more > 0 {
		t.Row(fmt.Sprintf("%d more", more), "", "")
	}
	return t
}

func branchTable(m *frontend.Mix) *table.Table {
	t := table.New("branches that a traffic file may set", "name", "assumed", "at", "condition")
	for _, b := range m.Open[:min(len(m.Open), 3*mostRows)] {
		for k, arm := range b.Arms {
			at, what := "", ""
			if k == 0 {
				at, what = fmt.Sprintf("%s:%d", filepath.Base(b.Pos.File), b.Pos.Line), b.What
			}
			t.Row(arm.Name, arm.Share, at, what)
		}
	}
	if more := len(m.Open) - 3*mostRows; more > 0 {
		t.Row(fmt.Sprintf("%d more branches", more), "", "", "")
	}
	return t
}
