package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"nicprof/microbench/host/kernel"
)

// command runs a foreign tool and returns what it prints on both streams.
func command(ctx context.Context, limit time.Duration, env []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(append(os.Environ(), "LC_ALL=C"), env...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w %s", strings.Join(args, " "), err, short(string(out)))
	}
	return string(out), nil
}

// foreignRows compares with the tools that Debian does not have, where
// somebody has built them.
func foreignRows(ctx context.Context, o options, _ string, cpus []int, res *Result) ([]*contest, error) {
	var out []*contest
	for _, add := range []func(context.Context, options, []int, *Result) ([]*contest, error){
		multichaseRows, latMemRdRows, stream5Rows, lockhammerRows,
	} {
		some, err := add(ctx, o, cpus, res)
		if isMissing(err) {
			res.Skipped = append(res.Skipped, err.Error())
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// foreignChase is a row of our chase against a tool that places its own memory
// in every run.
func foreignChase(o options, set workingSet, order kernel.Order, cpu int, peer, as string, theirs side) *contest {
	c := &chaser{bytes: set.bytes, order: order, pages: streamPages(), cpu: cpu, seed: uint64(set.bytes)}
	return &contest{
		Comparison: Comparison{Group: "chase", Name: string(order), Peer: peer, As: as, Bytes: set.bytes, Level: set.level, Threads: 1, Unit: "ns", Aim: peerAim},
		placeEvery: placeEvery(c.bytes, o.scale.pairs),
		place:      c.place,
		ours:       always(func() (reading, error) { return c.measure(o.scale.time) }),
		theirs:     theirs,
		done:       c.close,
	}
}

// multichaseRows compares with github.com/google/multichase. Its locality in
// the TLB is set to the whole memory, so that its order is that of Lines.
func multichaseRows(_ context.Context, o options, cpus []int, res *Result) ([]*contest, error) {
	program, err := find("multichase", "build github.com/google/multichase and put it in PATH")
	if err != nil {
		return nil, err
	}
	res.tool("multichase", "has no version")
	var out []*contest
	for _, set := range o.sets {
		m := fmt.Sprint(set.bytes)
		args := []string{"taskset", "-c", fmt.Sprint(cpus[0]), program, "-a", "-n", "2", "-s", fmt.Sprint(cacheLine), "-m", m, "-T", m}
		out = append(out, foreignChase(o, set, kernel.Lines, cpus[0], "multichase", "multichase -T "+m, func(ctx context.Context) (reading, error) {
			text, err := command(ctx, answerLimit, nil, args...)
			if err != nil {
				return reading{}, err
			}
			ns, err := parseMultichase(text)
			return reading{value: ns}, err
		}))
	}
	return out, nil
}

// latMemRdRows compares with lmbench's lat_mem_rd -t, which visits the pages at
// random and all lines of a page before the next: page-local.
func latMemRdRows(_ context.Context, o options, cpus []int, res *Result) ([]*contest, error) {
	program, err := find("lat_mem_rd", "build lmbench and put its bin directory in PATH")
	if err != nil {
		return nil, err
	}
	res.tool("lat_mem_rd", "prints no version")
	var out []*contest
	for _, set := range o.sets {
		mib := fmt.Sprint(max(1, set.bytes>>20))
		args := []string{"taskset", "-c", fmt.Sprint(cpus[0]), program, "-t", "-P", "1", "-W", "0", "-N", "1", mib, fmt.Sprint(cacheLine)}
		out = append(out, foreignChase(o, set, kernel.PageLocal, cpus[0], "lat_mem_rd", "lat_mem_rd -t "+mib+" 64", func(ctx context.Context) (reading, error) {
			text, err := command(ctx, 5*answerLimit, nil, args...)
			if err != nil {
				return reading{}, err
			}
			ns, err := parseLatMemRd(text, set.bytes)
			return reading{value: ns}, err
		}))
	}
	return out, nil
}

// streamPrograms are the names that STREAM is built under. ImageMagick has a
// program called stream too.
var streamPrograms = []string{"stream_c", "stream_c.exe", "stream", "stream.exe"}

// stream5Rows compares with McCalpin's STREAM 5 at its own array size. Nothing
// says which class of instructions its compiler chose, so there is no aim.
func stream5Rows(ctx context.Context, o options, cpus []int, res *Result) ([]*contest, error) {
	missing := missingError{"STREAM", "build stream.c of cs.virginia.edu/stream and put it in PATH as stream_c"}
	env := []string{"OMP_NUM_THREADS=1"}
	for _, name := range streamPrograms {
		program, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		args := []string{"taskset", "-c", fmt.Sprint(cpus[0]), program}
		text, err := command(ctx, answerLimit, env, args...)
		if err != nil {
			continue // another program of that name
		}
		first, err := parseStream(text)
		if err != nil {
			continue
		}
		res.tool("STREAM", name+" on PATH, version 5")
		each := first.elements * 8 / kernel.Block * kernel.Block
		var out []*contest
		for op, label := range map[kernel.Op]string{kernel.Copy: "Copy", kernel.Triad: "Triad"} {
			for _, class := range []kernel.Class{kernel.Go, kernel.AVX2, kernel.NTAVX2, kernel.NEON} {
				s, ok := kernel.Find(op, class)
				if !ok {
					continue
				}
				out = append(out, &contest{
					Comparison: Comparison{Group: "stream", Name: s.Name(), Peer: "STREAM", As: label, Bytes: each * int64(op.Arrays()), Level: "as built", Threads: 1, Unit: "GB/s",
						Why: "the class of instructions that STREAM's compiler chose is unknown, and it reports its best pass"},
					ours: always(func() (reading, error) { return ourStream(s, each, streamPages(), cpus[0], o.scale.stream) }),
					theirs: func(ctx context.Context) (reading, error) {
						text, err := command(ctx, answerLimit, env, args...)
						if err != nil {
							return reading{}, err
						}
						r, err := parseStream(text)
						return reading{value: r.best[label]}, err
					},
				})
			}
		}
		return out, nil
	}
	return nil, missing
}

// lockhammerRows compares the ticket lock with Arm's lockhammer.
func lockhammerRows(_ context.Context, o options, cpus []int, res *Result) ([]*contest, error) {
	program, err := find("lh_ticket_spinlock", "build lockhammer of github.com/ARM-software/synchronization-benchmarks and put its build directory in PATH")
	if err != nil {
		return nil, err
	}
	res.tool("lockhammer", "prints no version")
	var list []string
	for _, cpu := range cpus {
		list = append(list, fmt.Sprint(cpu))
	}
	args := []string{program, "-c", "0", "-p", "0", "-D", fmt.Sprint(o.scale.time.Seconds()), "-o", strings.Join(list, ",")}
	return []*contest{{
		Comparison: Comparison{Group: "lock", Name: "ticket", Peer: "lockhammer", As: filepath.Base(program), Threads: len(cpus), Unit: "ns", Aim: peerAim},
		ours: always(func() (reading, error) {
			return contention(newTicket, cpus, o.scale.time)
		}),
		theirs: func(ctx context.Context) (reading, error) {
			text, err := command(ctx, answerLimit, nil, args...)
			if err != nil {
				return reading{}, err
			}
			ns, err := parseLockhammer(text)
			return reading{value: ns}, err
		},
	}}, nil
}

// beside runs the tools whose figures look alike and mean something else.
func beside(ctx context.Context, o options, res *Result, notes io.Writer) error {
	const mb = 64
	seconds := fmt.Sprint(max(1, int(o.scale.beside.Seconds())))
	for _, t := range []struct {
		name, from string
		runs       map[string][]string // what is shown by which arguments
		parse      func(text, what string) ([]Figure, error)
	}{
		{"sysbench", "apt-get install sysbench", map[string][]string{
			"memory, read, 1 KiB blocks":  {"memory", "--memory-oper=read", "--memory-block-size=1K", "--memory-total-size=1T", "--time=" + seconds, "run"},
			"memory, read, 1 MiB blocks":  {"memory", "--memory-oper=read", "--memory-block-size=1M", "--memory-total-size=1T", "--time=" + seconds, "run"},
			"memory, write, 1 MiB blocks": {"memory", "--memory-oper=write", "--memory-block-size=1M", "--memory-total-size=1T", "--time=" + seconds, "run"},
		}, func(text, what string) ([]Figure, error) {
			v, err := parseSysbench(text)
			return []Figure{{"sysbench", what, v, "GB/s"}}, err
		}},
		{"stress-ng", "apt-get install stress-ng", map[string][]string{
			"stream":  {"--metrics-brief", "--stream", "1", "-t", seconds},
			"memrate": {"--metrics-brief", "--memrate", "1", "--memrate-bytes", fmt.Sprint(mb, "M"), "-t", seconds},
		}, func(text, what string) ([]Figure, error) {
			metrics, err := parseStressNG(text, what)
			var out []Figure
			for _, m := range metrics[:min(len(metrics), o.scale.besideCap)] {
				out = append(out, Figure{"stress-ng", what + ": " + m.name, m.value, ""})
			}
			return out, err
		}},
	} {
		program, err := find(t.name, t.from)
		if err != nil {
			res.Skipped = append(res.Skipped, err.Error())
			continue
		}
		res.tool(t.name, firstLine(ctx, program, "--version"))
		for _, what := range sortedKeys(t.runs) {
			if !o.only.MatchString("beside " + what + " " + t.name) {
				continue
			}
			fmt.Fprintf(notes, "beside: %s %s\n", t.name, what)
			text, err := command(ctx, answerLimit, nil, append([]string{program}, t.runs[what]...)...)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			var figures []Figure
			if err == nil {
				figures, err = t.parse(text, what)
			}
			if err != nil {
				res.Warnings = append(res.Warnings, err.Error())
				continue
			}
			res.Beside = append(res.Beside, figures...)
		}
	}
	return nil
}
