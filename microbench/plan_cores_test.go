package microbench

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nicprof/board"
	"nicprof/program"
	"nicprof/sim"
)

// cacheBoard is a board of four run-to-completion cores with two private levels
// of cache and a shared one.
func cacheBoard(class string) *board.Board {
	n := func(v float64) board.Num { return board.Num{Value: v, Source: "test", Confidence: "M"} }
	cmd := &board.Command{PipeMin: n(1)}
	memory := func(name string, bytes, span int64, sharedBy float64) board.Memory {
		return board.Memory{
			Name: name, Kind: "sram", Bytes: bytes, LineBytes: n(64), DefaultSpan: span, SharedBy: n(sharedBy),
			Engines: []board.Engine{
				{Mode: program.Bulk, MaxBytes: n(128), Read: cmd, Write: cmd},
				{Mode: program.Atomic, MaxBytes: n(8), Read: cmd, Write: cmd, Add: cmd, TestSet: cmd},
			},
		}
	}
	return &board.Board{
		Name: "cached", Class: class, ClockMHz: n(2000), Cores: n(4), Threads: n(1),
		Bases: []board.Base{
			{Name: "forward", Cycles: n(200), IOMpps: n(100), Cores: n(4), Threads: n(1), Index: "access", Locks: true},
		},
		Stateless: board.OpCycles{program.ALU: n(1), program.Hash: n(40)},
		Locks:     board.LockSpec{Memory: "dram", WordStride: n(64)},
		Memories: []board.Memory{
			memory("l1", 32<<10, 256, 1), memory("l2", 1<<20, 8192, 1),
			memory("llc", 16<<20, 128<<10, 4), memory("dram", 4<<30, 1<<20, 4),
		},
	}
}

// Each kind of access is measured on working sets inside, at and beyond its level,
// on all cores and on one; the lock elements surround the core count.
func TestPlanOfCores(t *testing.T) {
	for _, class := range []string{classSoC, classHost} {
		b := cacheBoard(class)
		for _, suite := range Suites {
			p := plan(t, b, suite, nil, 1)
			has := func(what string, f func(w *Workload) bool) {
				t.Helper()
				if !slices.ContainsFunc(p, func(w Workload) bool { return f(&w) }) {
					t.Errorf("%s %s: no workload %s", class, suite, what)
				}
			}
			for m, mem := range b.Swept() {
				for j := range mem.Engines {
					for _, op := range opsOf(&mem.Engines[j]) {
						mine := func(w *Workload, cores int) *program.Access {
							if w.Group != GroupSingle || w.Options.Cores != cores || len(w.Program.Accesses) != 1 {
								return nil
							}
							a := &w.Program.Accesses[0]
							if a.Memory != mem.Name || a.Op != op || a.Mode != mem.Engines[j].Mode {
								return nil
							}
							return a
						}
						what := mem.Name + " " + string(op) + " " + string(mem.Engines[j].Mode)
						for _, cores := range []int{0, 1} {
							has(what+" at the whole level", func(w *Workload) bool {
								a := mine(w, cores)
								return a != nil && float64(a.Span*a.Stride) > 0.99*float64(mem.Bytes)
							})
							has(what+" just beyond the level before", func(w *Workload) bool {
								a := mine(w, cores)
								below := int64(4096)
								if m > 0 {
									below = b.Memories[m-1].Bytes
								}
								return a != nil && a.Span*a.Stride > below && a.Span*a.Stride <= 3*below
							})
						}
					}
				}
			}
			around := []int{1, 2, 4, 6, 16} // of four cores
			if suite == "quick" {
				around = []int{1, 4, 64}
			}
			for _, k := range around {
				has("with locks around the core count", func(w *Workload) bool {
					return len(w.Program.Locks) == 1 && w.Program.Locks[0].Elements == k
				})
			}
			for _, idiom := range append(slices.Clone(idioms), program.Spin, program.None) {
				has("of idiom "+string(idiom), func(w *Workload) bool {
					return w.Group == GroupLocks && w.Program.Locks[0].Idiom == idiom
				})
			}
			has("of lines that cores contend for", func(w *Workload) bool {
				a := w.Program.Accesses
				return w.Group == GroupSingle && len(a) == 1 && a[0].Memory == "llc" && a[0].Span == 1 && a[0].Op == program.Add && w.Options.Cores == 0
			})
		}
	}
}

// Each access of a pair is measured alone at its own and at the total intensity.
func TestPlanPairsOfCoresAreComplete(t *testing.T) {
	for _, suite := range Suites {
		p := plan(t, cacheBoard(classSoC), suite, []string{GroupPairs}, 1)
		alone := map[program.Access]bool{}
		pairs := 0
		for _, w := range p {
			if len(w.Program.Accesses) == 1 {
				alone[w.Program.Accesses[0]] = true
			}
		}
		for _, w := range p {
			if len(w.Program.Accesses) != 2 {
				continue
			}
			pairs++
			for _, a := range w.Program.Accesses {
				whole := a
				whole.PerPacket = corePairIntensity
				if !alone[a] || !alone[whole] {
					t.Errorf("%s: %s is not measured alone", w.Key, a)
				}
			}
		}
		if least := 8 * 9 / 2; pairs < least { // four levels, two modes
			t.Errorf("%s: %d pairs, want at least %d", suite, pairs, least)
		}
	}
}

// Without memories only the paths' bare rates are measured.
func TestPlanOfInterface(t *testing.T) {
	b := cacheBoard(classNet)
	b.Memories, b.Locks, b.Stateless = nil, board.LockSpec{}, nil
	var keys []string
	for _, w := range plan(t, b, "quick", nil, 1) {
		keys = append(keys, w.Key)
	}
	if want := []string{"single/forward/bare", "cores/forward/bare/1-cores", "cores/forward/bare/2-cores"}; !slices.Equal(keys, want) {
		t.Errorf("plan %v, want %v", keys, want)
	}
	_, err := Plan(b, "quick", []string{GroupLocks}, 1)
	wantError(t, err, `"locks"`, "single,cores")
}

// Mixes run on the board, are the same for the same stream, and leave no part of
// the board out.
func TestMixes(t *testing.T) {
	b := cacheBoard(classSoC)
	const n = 600
	ps := Mixes(b, n, sim.NewStream(1, "test"))
	if len(ps) != n || !reflect.DeepEqual(ps, Mixes(b, n, sim.NewStream(1, "test"))) {
		t.Fatalf("%d programs, or others from the same stream", len(ps))
	}
	if reflect.DeepEqual(ps, Mixes(b, n, sim.NewStream(2, "test"))) {
		t.Error("another seed gave the same programs")
	}
	seen := map[string]int{}
	for _, p := range ps {
		if err := b.Check(p, 0, 0); err != nil {
			t.Fatal(err)
		}
		for _, a := range p.Accesses {
			seen[a.Memory+" "+string(a.Op)+" "+string(a.Mode)]++
			seen[a.Popularity]++
			if a.Mode == program.Atomic && a.Bytes > 8 {
				seen["long atomic"]++
			}
			if a.PerPacket != math.Trunc(a.PerPacket) {
				seen["fractional"]++
			}
			if a.Span <= 64 {
				seen["few elements"]++
			}
		}
		for kind := range p.Stateless {
			seen["stateless "+kind]++
		}
		for _, l := range p.Locks {
			seen["lock "+string(l.Idiom)]++
			if len(l.Section) > 0 {
				seen["section"]++
			}
		}
	}
	want := []string{"zipf", "fractional", "few elements", "long atomic", "section", "stateless alu", "stateless hash"}
	for _, m := range b.Swept() {
		for j := range m.Engines {
			for _, op := range opsOf(&m.Engines[j]) {
				want = append(want, strings.Join([]string{m.Name, string(op), string(m.Engines[j].Mode)}, " "))
			}
		}
	}
	for _, idiom := range []program.Idiom{program.Spin, program.Ticket, "sleep-200", "sleep-1000", program.None} {
		want = append(want, "lock "+string(idiom))
	}
	for _, w := range want {
		if seen[w] < 5 {
			t.Errorf("%s: in %d of %d programs", w, seen[w], n)
		}
	}
}
