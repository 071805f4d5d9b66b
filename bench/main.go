// Command bench compares the event kernel with others, in one run:
//
//	go run ./bench [-rounds 3]
//
// An operation is one event taken off the agenda and its successor scheduled.
// The workloads are hold, in which each event schedules itself again after an
// exponential delay, so that the number pending stays the same; and nfp, a
// closed network of 54 cores that serve 8 customers each and 6 memory engines
// that serve all, whose times are multiples of a clock cycle.
//
// Every peer reads the same delays from one file and reports the simulated time
// of the same operation, which must agree: they have done the same work. Peers
// in other languages are programs called with WORKLOAD PENDING OPS CHECK
// DELAYS that print the CPU nanoseconds an operation and the simulated time of
// operation CHECK, in picoseconds. CPU time, of the run without its start, is
// what counts, and the peers alternate, so that other load on the machine
// spoils the figures less.
package main

import (
	"cmp"
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"nicprof/sim"
)

//go:embed ns3/agenda.cc simpy/agenda.py
var sources embed.FS

// workload is one row of the table.
type workload struct {
	name    string // hold or nfp
	pending int
	ops     int // by fast peers
}

var workloads = []workload{
	{"hold", 16, 3_000_000},
	{"hold", 1000, 3_000_000},
	{"hold", 100_000, 3_000_000},
	{"hold", 10_000_000, 3_000_000},
	{"nfp", 54 * 8, 3_000_000},
}

const (
	slowOps   = 200_000 // operations of a peer that is slow
	slowLimit = 100_000 // and the most events that it can hold in reasonable memory
	checkOps  = 100_000 // after which simulated times are compared
)

// result is what a peer reports of one workload.
type result struct {
	ns      float64 // CPU nanoseconds an operation
	checked int64   // simulated time of operation checkOps, in ps
}

// peer is one column of the table.
type peer struct {
	name string
	slow bool
	run  func(ctx context.Context, w workload, ops int) (result, error)
}

func main() {
	rounds := flag.Int("rounds", 3, "how often each peer runs each workload; the median counts")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := compare(ctx, os.Stdout, os.Stderr, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// compare runs all workloads on all peers that are there and prints the table.
func compare(ctx context.Context, out, notes io.Writer, rounds int) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	delays := exponentials()
	path := filepath.Join(dir, "delays")
	if err := writeDelays(path, delays); err != nil {
		return err
	}

	peers := goPeers(delays)
	var skipped []string
	for _, find := range []func(ctx context.Context, dir, delays string) (peer, error){ns3, simpy} {
		p, err := find(ctx, dir, path)
		var missing missingError
		switch {
		case errors.As(err, &missing):
			skipped = append(skipped, missing.Error())
		case err != nil:
			return err
		default:
			peers = append(peers, p)
		}
	}

	fmt.Fprintf(out, "CPU nanoseconds an operation (median of %d), and times nicprof's\n\n%-16s", rounds, "")
	for _, p := range peers {
		fmt.Fprintf(out, "%16s", p.name)
	}
	fmt.Fprintln(out)
	for _, w := range workloads {
		row, err := measure(ctx, notes, peers, w, rounds)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-5s%11d", w.name, w.pending)
		for i, ns := range row {
			switch {
			case ns == 0:
				fmt.Fprintf(out, "%16s", "-")
			case i == 0:
				fmt.Fprintf(out, "%16.1f", ns)
			default:
				fmt.Fprintf(out, "%9.1f %5.1fx", ns, ns/row[0])
			}
		}
		fmt.Fprintln(out)
	}
	for _, s := range skipped {
		fmt.Fprintln(out, "\nskipped:", s)
	}
	return nil
}

// measure returns each peer's median on a workload; 0 if it cannot run it.
func measure(ctx context.Context, notes io.Writer, peers []peer, w workload, rounds int) ([]float64, error) {
	all := make([][]float64, len(peers))
	var want int64
	for round := range rounds {
		fmt.Fprintf(notes, "%s %d: round %d of %d\n", w.name, w.pending, round+1, rounds)
		for i, p := range peers {
			ops := w.ops
			if p.slow {
				if w.pending > slowLimit {
					continue
				}
				ops = slowOps
			}
			runtime.GC()
			r, err := p.run(ctx, w, ops)
			if err != nil {
				return nil, fmt.Errorf("%s, %s with %d pending: %w", p.name, w.name, w.pending, err)
			}
			if want = cmp.Or(want, r.checked); r.checked != want {
				return nil, fmt.Errorf("%s, %s with %d pending: operation %d is at %d ps, by the others at %d ps",
					p.name, w.name, w.pending, checkOps, r.checked, want)
			}
			all[i] = append(all[i], r.ns)
		}
	}
	row := make([]float64, len(peers))
	for i, ns := range all {
		if slices.Sort(ns); len(ns) > 0 {
			row[i] = ns[len(ns)/2]
		}
	}
	return row, nil
}

// exponentials returns the delays, in ps: of mean 1 µs, and none is 0.
func exponentials() []int64 {
	s := sim.NewStream(1, "bench")
	d := make([]int64, 1<<20)
	for i := range d {
		d[i] = 1 + int64(s.Exp(sim.Microsecond))
	}
	return d
}

func writeDelays(path string, delays []int64) error {
	b := make([]byte, 0, 8*len(delays))
	for _, d := range delays {
		b = binary.NativeEndian.AppendUint64(b, uint64(d))
	}
	return os.WriteFile(path, b, 0o600)
}

// missingError says that a peer is not installed, and how to install it.
type missingError struct{ what, remedy string }

func (e missingError) Error() string { return e.what + " (to install: " + e.remedy + ")" }

// unpack writes an embedded source to dir.
func unpack(dir, name string) (string, error) {
	b, err := sources.ReadFile(name)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, filepath.Base(name))
	return path, os.WriteFile(path, b, 0o600)
}

// ns3 compiles the workloads against the ns-3 library.
func ns3(ctx context.Context, dir, delays string) (peer, error) {
	missing := missingError{"ns-3", "apt-get install g++ libns3-dev"}
	compiler, err := exec.LookPath("g++")
	if err != nil {
		return peer{}, missing
	}
	probe := exec.CommandContext(ctx, compiler, "-E", "-x", "c++", "-")
	probe.Stdin = strings.NewReader("#include <ns3/core-module.h>\n")
	if probe.Run() != nil {
		return peer{}, missing
	}
	source, err := unpack(dir, "ns3/agenda.cc")
	if err != nil {
		return peer{}, err
	}
	program := filepath.Join(dir, "ns3-agenda")
	build := exec.CommandContext(ctx, compiler, "-O3", "-DNDEBUG", "-o", program, source, "-lns3-core")
	if msg, err := build.CombinedOutput(); err != nil {
		return peer{}, fmt.Errorf("compiling the ns-3 peer: %w\n%s", err, msg)
	}
	return peer{name: "ns-3", run: outside(delays, program)}, nil
}

// simpy finds a Python that has SimPy.
func simpy(ctx context.Context, dir, delays string) (peer, error) {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(ctx, python, "-c", "import simpy").Run() != nil {
			continue
		}
		source, err := unpack(dir, "simpy/agenda.py")
		if err != nil {
			return peer{}, err
		}
		return peer{name: "SimPy", slow: true, run: outside(delays, python, source)}, nil
	}
	return peer{}, missingError{"SimPy", "apt-get install python3-simpy3"}
}

// outside returns the run of a peer that is a program.
func outside(delays string, command ...string) func(context.Context, workload, int) (result, error) {
	return func(ctx context.Context, w workload, ops int) (result, error) {
		args := append(command[1:len(command):len(command)], w.name, fmt.Sprint(w.pending), fmt.Sprint(ops), fmt.Sprint(checkOps), delays)
		c := exec.CommandContext(ctx, command[0], args...)
		c.Stderr = os.Stderr
		b, err := c.Output()
		if err != nil {
			return result{}, err
		}
		var r result
		if _, err := fmt.Sscan(string(b), &r.ns, &r.checked); err != nil {
			return result{}, fmt.Errorf("printed %q: %w", b, err)
		}
		return r, nil
	}
}
