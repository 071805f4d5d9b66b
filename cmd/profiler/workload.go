package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/traffic"
)

// target is the board that a verb measures, and how.
type target struct {
	board, backend string
}

func (t *target) flags(c *cobra.Command) {
	c.Flags().StringVarP(&t.board, "board", "b", "", "`BOARD`: "+join(board.Names())+", or a board file")
	c.Flags().StringVar(&t.backend, "backend", "", "`KIND`: emulated, native or remote")
	complete(c, "board", completeBoards)
	complete(c, "backend", cobra.FixedCompletions(microbench.Backends, cobra.ShellCompDirectiveNoFileComp))
}

// open returns the board's driver.
func (t *target) open(c *cobra.Command) (microbench.Driver, error) {
	b, err := loadBoard(c, t.board)
	if err != nil {
		return nil, err
	}
	return microbench.Open(b, t.backend)
}

func complete(c *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // no such flag
	}
}

// workload is what measure and predict have in common: a program, from a file
// or from flags, under traffic.
type workload struct {
	access, lock                    []string
	base, stateless, flows, traffic string
	cores                           int
}

const workloadHelp = `The program is a YAML file, or is put together by flags: --access takes
MEMORY:OP:MODE:BYTES:PER_PACKET[:SPAN[:STRIDE]] (OP read, write or add; MODE
bulk or atomic; SPAN elements, STRIDE bytes apart), more of them may follow;
--lock takes NAME:ELEMENTS[:IDIOM]:SPEC+SPEC...|empty with IDIOM spin,
sleep-CYCLES, ticket or none. --base, --flows and --traffic override a file's.`

func (w *workload) flags(f *pflag.FlagSet) {
	f.StringArrayVarP(&w.access, "access", "a", nil, "state access `SPEC`; more specs may follow")
	f.StringArrayVar(&w.lock, "lock", nil, "lock `SPEC`; may be repeated")
	f.StringVar(&w.base, "base", "", "base program around the accesses: `NAME|CYCLES`")
	f.StringVar(&w.stateless, "stateless", "", "`N` plain arithmetic operations a packet")
	f.StringVar(&w.flows, "flows", "", "flows and their popularity: `N[:zipf:ALPHA]`")
	f.IntVar(&w.cores, "cores", 0, "`N` cores run the program (default: all of the base)")
	f.StringVar(&w.traffic, "traffic", "", "`FILE`: YAML, flow CSV, pcap or pcapng")
}

// load returns the program with a name, its traffic, and the place of the
// program's lines in errors.
func (w *workload) load(c *cobra.Command, args []string) (program.Program, traffic.Traffic, program.Locator, error) {
	fail := func(err error) (program.Program, traffic.Traffic, program.Locator, error) {
		return program.Program{}, traffic.Traffic{}, nil, err
	}
	p, locate, err := w.program(c, args)
	if err != nil {
		return fail(err)
	}
	if w.base != "" {
		p.Base = w.base
	}
	if w.flows != "" {
		flows, err := traffic.ParseFlows(w.flows)
		if err != nil {
			return fail(err)
		}
		p.Flows = &flows
	}
	if w.cores < 0 || w.cores == 0 && c.Flags().Changed("cores") {
		return fail(fault.Inputf("--cores %d: expected at least 1, or leave it out for all cores of the base", w.cores))
	}
	t := traffic.Traffic{PacketBytes: p.PacketBytes, Flows: p.Flows}
	if w.traffic != "" {
		of, err := traffic.Load(w.traffic)
		if err != nil {
			return fail(err)
		}
		if of.PacketBytes == 0 && of.Sizes == nil {
			of.PacketBytes = p.PacketBytes
		}
		if of.Flows == nil {
			of.Flows = p.Flows
		}
		t = of
	}
	return p, t, locate, nil
}

// program reads the program file or puts the flags together.
func (w *workload) program(c *cobra.Command, args []string) (program.Program, program.Locator, error) {
	none := func(err error) error { return err }
	built := len(w.access)+len(w.lock) > 0 || w.stateless != ""
	switch {
	case !built && len(args) == 1:
		p, locate, err := program.Load(args[0])
		if err == nil && p.Name == "" {
			p.Name = strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0]))
		}
		return p, locate, err
	case len(w.access) == 0 && len(args) > 0 && built:
		return program.Program{}, nil, fault.Inputf("%sboth a program file (%s) and --lock or --stateless; give one or the other", prefix(c), args[0])
	case len(args) > 1 && !built:
		return program.Program{}, nil, fault.Inputf("%sexpected one program file, got %d; see %s --help", prefix(c), len(args), c.CommandPath())
	case !built && w.base == "":
		return program.Program{}, nil, missingFlag(c, "a program file, --access, --lock, --stateless or --base")
	}
	var p program.Program
	var name []string
	for _, spec := range slices.Concat(w.access, args) {
		a, err := program.ParseAccess(spec)
		if err != nil {
			return program.Program{}, nil, err
		}
		p.Accesses = append(p.Accesses, a)
		name = append(name, spec)
	}
	for _, spec := range w.lock {
		l, err := program.ParseLock(spec)
		if err != nil {
			return program.Program{}, nil, err
		}
		p.Locks = append(p.Locks, l)
		name = append(name, spec)
	}
	if w.stateless != "" {
		var err error
		if p.Stateless, err = program.ParseStateless(w.stateless); err != nil {
			return program.Program{}, nil, err
		}
		name = append(name, w.stateless+" stateless")
	}
	if len(name) == 0 {
		name = []string{w.base}
	}
	p.Name = strings.Join(name, " + ")
	return p, none, p.Validate()
}

func join(names []string) string { return strings.Join(names, ", ") }
