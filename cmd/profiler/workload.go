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
	allowNoise     bool
	remote         remoteFlags
}

func (t *target) flags(c *cobra.Command) {
	c.Flags().StringVarP(&t.board, "board", "b", "", "`BOARD`: "+join(board.Names())+", or a board file")
	c.Flags().StringVar(&t.backend, "backend", "", "`KIND`: emulated, native or remote")
	t.remote.flags(c.Flags())
	c.Flags().BoolVar(&t.allowNoise, "allow-noise", false, "report in spite of noise, marked (an emulated board has none)")
	complete(c, "board", completeBoards)
	complete(c, "backend", cobra.FixedCompletions(microbench.Backends, cobra.ShellCompDirectiveNoFileComp))
}

// open returns the board's driver.
func (t *target) open(c *cobra.Command) (microbench.Driver, error) {
	if err := t.checkRemote(c); err != nil {
		return nil, err
	}
	b, err := loadBoard(c, t.board)
	if err != nil {
		return nil, err
	}
	var d microbench.Driver
	if t.backend == microbench.Remote {
		d, err = t.openRemote(c, b)
	} else {
		d, err = microbench.Open(b, t.backend)
	}
	if err == nil && t.allowNoise {
		d = microbench.AllowNoise(d)
	}
	return d, err
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
sleep-CYCLES, ticket, mutex (hosts) or none. --base, --flows and --traffic
override a file's.`

func (w *workload) flags(f *pflag.FlagSet) {
	f.StringArrayVarP(&w.access, "access", "a", nil, "state access `SPEC`; more specs may follow")
	f.StringArrayVar(&w.lock, "lock", nil, "lock `SPEC`; may be repeated")
	f.StringVar(&w.base, "base", "", "base program around the accesses: `NAME|CYCLES`")
	f.StringVar(&w.stateless, "stateless", "", "`N` plain arithmetic operations a packet")
	f.StringVar(&w.flows, "flows", "", "flows and their popularity: `N[:zipf:ALPHA]`")
	f.IntVar(&w.cores, "cores", 0, "`N` cores run the program (default: all of the base)")
	f.StringVar(&w.traffic, "traffic", "", "`FILE`: YAML, flow CSV, pcap or pcapng")
}

// job is a workload as given: a program with a name, its traffic, and what puts
// the program's lines on an error.
type job struct {
	program program.Program
	traffic traffic.Traffic
	locate  program.Locator
}

// load reads the files and flags that name the workload.
func (w *workload) load(c *cobra.Command, args []string) (job, error) {
	j, err := w.program(c, args)
	if err != nil {
		return job{}, err
	}
	p := &j.program
	if w.base != "" {
		p.Base = w.base
	}
	if w.flows != "" {
		flows, err := traffic.ParseFlows(w.flows)
		if err != nil {
			return job{}, err
		}
		p.Flows = &flows
	}
	if w.cores < 0 || w.cores == 0 && c.Flags().Changed("cores") {
		return job{}, fault.Inputf("--cores %d: expected at least 1, or leave it out for all cores of the base", w.cores)
	}
	if w.traffic != "" {
		if j.traffic, err = traffic.Load(w.traffic); err != nil {
			return job{}, err
		}
	}
	// What the traffic file leaves out is the program's.
	t := &j.traffic
	if t.PacketBytes == 0 && t.Sizes == nil {
		t.PacketBytes = p.PacketBytes
	}
	if t.Flows == nil {
		t.Flows = p.Flows
	}
	return j, nil
}

// program reads the program file or puts the flags together.
func (w *workload) program(c *cobra.Command, args []string) (job, error) {
	built := len(w.access)+len(w.lock) > 0 || w.stateless != ""
	switch {
	case len(w.access) == 0 && len(args) > 0 && built:
		return job{}, fault.Inputf("%sboth a program file (%s) and --lock or --stateless; give one or the other", prefix(c), args[0])
	case len(args) > 1 && !built:
		return job{}, fault.Inputf("%sexpected one program file, got %d; see %s --help", prefix(c), len(args), c.CommandPath())
	case len(args) == 0 && !built && w.base == "":
		return job{}, missingFlag(c, "a program file, --access, --lock, --stateless or --base")
	case len(args) == 1 && !built:
		p, locate, err := program.Load(args[0])
		if p.Name == "" {
			p.Name = strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0]))
		}
		return job{program: p, locate: locate}, err
	}
	var p program.Program
	var name []string
	for _, spec := range slices.Concat(w.access, args) {
		a, err := program.ParseAccess(spec)
		if err != nil {
			return job{}, err
		}
		p.Accesses = append(p.Accesses, a)
		name = append(name, spec)
	}
	for _, spec := range w.lock {
		l, err := program.ParseLock(spec)
		if err != nil {
			return job{}, err
		}
		p.Locks = append(p.Locks, l)
		name = append(name, spec)
	}
	if w.stateless != "" {
		var err error
		if p.Stateless, err = program.ParseStateless(w.stateless); err != nil {
			return job{}, err
		}
		name = append(name, w.stateless+" stateless")
	}
	if len(name) == 0 {
		name = []string{w.base}
	}
	p.Name = strings.Join(name, " + ")
	return job{program: p, locate: func(err error) error { return err }}, p.Validate()
}

func join(names []string) string { return strings.Join(names, ", ") }
