package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"nicprof/board"
	"nicprof/internal/linux"
	"nicprof/microbench"
	_ "nicprof/microbench/host" // finds the levels
	"nicprof/microbench/host/kernel"
)

// Aims: how far a ratio may be from 1.
const (
	streamAim = 0.05 // bandwidth, against likwid-bench
	peerAim   = 0.03 // latencies, against C
)

// places is how many times a row's memory is laid out anew: which physical
// pages a buffer gets decides how well it fits a cache, so that one layout is
// one sample. Memory of evenSize or more has pages of all kinds, and one layout
// does.
const (
	places   = 4
	evenSize = 64 << 20
)

// placeEvery is how many pairs of a chase use the same memory; 0 all.
func placeEvery(bytes int64, pairs int) int {
	if bytes >= evenSize {
		return 0
	}
	return max(1, pairs/places)
}

// rows prepares what is to be compared: everything that the peers found here
// can do. A peer that is not here is noted in the result.
func rows(ctx context.Context, o options, dir string, cpus []int, res *Result) ([]*contest, error) {
	var all []*contest
	for _, add := range []func(context.Context, options, string, []int, *Result) ([]*contest, error){
		streamRows, chaseRows, contentionRows, foreignRows,
	} {
		some, err := add(ctx, o, dir, cpus, res)
		if isMissing(err) {
			res.Skipped = append(res.Skipped, err.Error())
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, c := range some {
			if o.only.MatchString(c.Group + " " + c.Name + " " + c.Peer) {
				all = append(all, c)
			}
		}
	}
	return all, nil
}

// streamPages are the pages that likwid-bench gets for its vectors, which it
// allocates with malloc: huge ones only where the system gives them unasked.
func streamPages() linux.Pages {
	thp, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled") // absent: there are none
	if strings.Contains(string(thp), "[always]") {
		return linux.HugePages
	}
	return linux.SmallPages
}

// streamRows compares bandwidths with likwid-bench.
func streamRows(ctx context.Context, o options, _ string, cpus []int, res *Result) ([]*contest, error) {
	program, err := find("likwid-bench", "apt-get install likwid")
	if err != nil {
		return nil, err
	}
	res.tool("likwid-bench", firstLine(ctx, program, "-v"))
	pages, cpu := streamPages(), cpus[0]
	var out []*contest
	for _, set := range o.sets {
		for _, s := range kernel.Streams() {
			test, ok := likwidNames[s.Op][s.Class]
			if !ok || o.scale.small && !quickStream(s, set) || set.cached && nonTemporal(s.Class) {
				continue
			}
			each := set.bytes / int64(s.Op.Arrays()) / kernel.Block * kernel.Block
			total := each * int64(s.Op.Arrays())
			var last float64 // our latest bandwidth, which tells how long to let likwid-bench run
			out = append(out, &contest{
				Comparison: Comparison{Group: "stream", Name: s.Name(), Peer: "likwid-bench", As: test, Bytes: total, Level: set.level, Threads: 1, Unit: "GB/s", Aim: streamAim},
				ours: always(func() (reading, error) {
					r, err := ourStream(s, each, pages, cpu, o.scale.stream)
					last = r.value
					return r, err
				}),
				theirs: func(ctx context.Context) (reading, error) {
					return likwid(ctx, program, test, total, cpu, o.scale.stream, last)
				},
			})
		}
	}
	return out, nil
}

// nonTemporal says whether a class's stores pass the caches by.
func nonTemporal(c kernel.Class) bool { return strings.HasPrefix(string(c), "nt-") }

// quickStream chooses one class of each operation, and for the largest working
// set a non-temporal one.
func quickStream(s kernel.Stream, set workingSet) bool {
	return s.Op != kernel.Triad && (s.Class == kernel.AVX2 || s.Class == kernel.NEON || !set.cached && s.Class == kernel.NTAVX2)
}

// chaseRows compares latencies with the C peer.
func chaseRows(ctx context.Context, o options, dir string, cpus []int, res *Result) ([]*contest, error) {
	version, err := compile(ctx, dir)
	if err != nil {
		return nil, err
	}
	res.tool("gcc", version)
	var out []*contest
	for _, set := range o.sets {
		for _, order := range kernel.Orders {
			for _, pages := range []linux.Pages{linux.SmallPages, linux.HugePages} {
				if pages == linux.HugePages && (set.bytes < 2<<20 || order != kernel.Lines) || o.scale.small && order != kernel.Lines {
					continue
				}
				name := string(order)
				if pages == linux.HugePages {
					name += ", huge pages asked for"
				}
				own := chaser{bytes: set.bytes, order: order, pages: pages, cpu: cpus[0], seed: uint64(set.bytes)}
				out = append(out, chaseRow(o, filepath.Join(dir, "chase"), own, name, set.level))
			}
		}
	}
	return out, nil
}

// chaseRow is one row of latencies; the C peer starts with the row's first
// placing.
func chaseRow(o options, program string, own chaser, name, level string) *contest {
	c := &own
	var peer *theirChase
	return &contest{
		Comparison: Comparison{Group: "chase", Name: name, Peer: "C", As: "chase.c, gcc -O2", Bytes: c.bytes, Level: level, Threads: 1, Unit: "ns", Aim: peerAim},
		tells:      true,
		placeEvery: placeEvery(c.bytes, o.scale.pairs),
		place: func() (err error) {
			if peer == nil {
				if peer, err = startChase(context.Background(), program, own); err != nil {
					return err
				}
			}
			if err := c.place(); err != nil {
				return err
			}
			return peer.place()
		},
		ours:   always(func() (reading, error) { return c.measure(o.scale.time) }),
		theirs: always(func() (reading, error) { return peer.measure(o.scale.time) }),
		done: func() error {
			err := c.close()
			if peer != nil {
				return peer.close()
			}
			return err
		},
	}
}

// contentionRows compares threads at one line with the C peer.
func contentionRows(_ context.Context, o options, dir string, cpus []int, _ *Result) ([]*contest, error) {
	program := filepath.Join(dir, "contend")
	if _, err := os.Stat(program); err != nil {
		return nil, nil // chaseRows has said why
	}
	const tight = "C releases by a plain store, where Go has only sequentially consistent ones, and polls endlessly, where a goroutine must let others run"
	kinds := []struct {
		group, name, as string
		lock            func() kernel.Lock
		aim             float64
		why             string
	}{
		{"fetch-add", "one word", "fetch-add", nil, peerAim, ""},
		{"lock", "spin", "spin", newSpin, peerAim, ""},
		{"lock", "ticket", "ticket", newTicket, peerAim, ""},
		{"lock", "spin", "spin-tight", newSpin, 0, tight},
		{"lock", "ticket", "ticket-tight", newTicket, 0, tight},
		{"lock", "mutex", "mutex", newMutex, 0, "two algorithms: Go's mutex parks goroutines, pthread_mutex sleeps in the kernel"},
	}
	var out []*contest
	for _, k := range kinds {
		for n := 1; n <= len(cpus); n = nextThreads(n, len(cpus)) {
			if k.aim == 0 && (n == 1 || o.scale.small) {
				continue
			}
			out = append(out, contentionRow(o, program, cpus[:n], k.group, k.name, k.as, k.lock, k.aim, k.why))
		}
	}
	return out, nil
}

// nextThreads doubles, ends with all processors, and then passes them.
func nextThreads(n, all int) int {
	if n < all && 2*n > all {
		return all
	}
	return 2 * n
}

func contentionRow(o options, program string, cpus []int, group, name, as string, lock func() kernel.Lock, aim float64, why string) *contest {
	var peer *process
	return &contest{
		Comparison: Comparison{Group: group, Name: name, Peer: "C", As: "contend.c " + as + ", gcc -O2", Threads: len(cpus), Unit: "ns", Aim: aim, Why: why},
		tells:      true,
		place: func() (err error) {
			args := []string{as}
			for _, cpu := range cpus {
				args = append(args, fmt.Sprint(cpu))
			}
			peer, err = start(context.Background(), program, args...)
			return err
		},
		ours:   always(func() (reading, error) { return contention(lock, cpus, o.scale.time) }),
		theirs: always(func() (reading, error) { return theirContention(peer, o.scale.time) }),
		done: func() error {
			if peer != nil {
				return peer.close()
			}
			return nil
		},
	}
}

// workingSet is a size to measure at.
type workingSet struct {
	bytes  int64
	level  string // where it lies
	cached bool   // in a cache
}

// workingSets are half of each cache and the default working set of the
// memory, of the levels that the host's driver finds on this machine; notes say
// what it has to say about them.
func workingSets() (sets []workingSet, notes []string, err error) {
	template, err := board.Load("host")
	if err != nil {
		return nil, nil, err
	}
	driver, err := microbench.Open(template, microbench.Native)
	if err != nil {
		return nil, nil, err
	}
	b := driver.Board()
	for i := range b.Memories {
		m := &b.Memories[i]
		sets = append(sets, workingSet{m.Bytes / 2, m.Name, i < len(b.Memories)-1})
	}
	return sets, b.Notes, nil
}
