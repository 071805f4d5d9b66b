package nfp

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"nicprof/board"
	"nicprof/program"
	"nicprof/traffic"
)

func load(t testing.TB) *board.Board {
	t.Helper()
	b, err := board.Load("nfp")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func run(t testing.TB, b *board.Board, p program.Program, tr traffic.Traffic, c Config) *Result {
	t.Helper()
	p = b.Resolve(p)
	if err := b.Check(p, c.Cores, c.Threads); err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), b, p, tr, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func use(r *Result, name string) float64 {
	for _, u := range r.Utilisation {
		if u.Resource == name {
			return u.Value
		}
	}
	return math.NaN()
}

func access(memory string, op program.Op, mode program.Mode, bytes int, n float64, span int64) program.Access {
	return program.Access{Memory: memory, Op: op, Mode: mode, Bytes: bytes, PerPacket: n, Span: span}
}

// drawAccess draws any access that the board has.
func drawAccess(t *rapid.T) program.Access {
	a := program.Access{
		Memory:    rapid.SampledFrom([]string{"imem", "emem"}).Draw(t, "memory"),
		Op:        rapid.SampledFrom([]program.Op{program.Read, program.Write, program.Add}).Draw(t, "op"),
		Mode:      rapid.SampledFrom([]program.Mode{program.Bulk, program.Atomic}).Draw(t, "mode"),
		Bytes:     4 * rapid.IntRange(1, 32).Draw(t, "words"),
		PerPacket: rapid.Float64Range(0, 12).Draw(t, "per packet"),
		Span:      rapid.SampledFrom([]int64{1, 8, 1024, 8192}).Draw(t, "span"),
	}
	if a.Op == program.Add {
		a.Mode = program.Atomic
	}
	return a
}

// TestLittlesAndUtilisationLaws holds a run against laws that any queueing
// network obeys: contexts = throughput × residence, and the utilisation of
// packet I/O = throughput × its service time.
func TestLittlesAndUtilisationLaws(t *testing.T) {
	b := load(t)
	rapid.Check(t, func(rt *rapid.T) {
		p := program.Program{Base: rapid.SampledFrom([]string{"forward", "profiling", "xdp"}).Draw(rt, "base")}
		for range rapid.IntRange(0, 3).Draw(rt, "accesses") {
			p.Accesses = append(p.Accesses, drawAccess(rt))
		}
		cores := rapid.IntRange(1, 50).Draw(rt, "cores")
		const packets = 8000
		r := run(t, b, p, traffic.Traffic{}, Config{Cores: cores, Seed: rapid.Uint64().Draw(rt, "seed"), Packets: packets})
		base, _ := b.Base(p.Base)
		x := r.Mpps()
		if got, want := use(r, "io"), x/base.IOMpps.Value; math.Abs(got-want) > 0.04*want {
			rt.Errorf("packet I/O is busy %.4f, throughput × service is %.4f", got, want)
		}
		residence := 0.0
		for _, l := range r.Latency {
			residence += float64(l) / 1e6 / packets // µs
		}
		// a context is with a packet but for the wait at packet I/O
		if busy := x * residence; busy > 1.02*float64(cores)*base.Threads.Value {
			rt.Errorf("%.1f packets in %d contexts", busy, cores*int(base.Threads.Value))
		}
		for _, u := range r.Utilisation {
			if u.Value < 0 || u.Value > 1 {
				rt.Errorf("%s is used %.3f", u.Resource, u.Value)
			}
		}
	})
}

// TestSameSeedSameResult runs twice and compares everything.
func TestSameSeedSameResult(t *testing.T) {
	b := load(t)
	p := program.Program{
		Base: "profiling", Accesses: []program.Access{access("emem", "write", "atomic", 32, 2.5, 8192)},
		Locks: []program.Lock{{Name: "l", Elements: 4}}, Flows: &traffic.Flows{Count: 9},
	}
	c := Config{Seed: 7, Packets: 1500, Profile: true}
	first := run(t, b, p, traffic.Traffic{}, c)
	for range 5 {
		if again := run(t, b, p, traffic.Traffic{}, c); !reflect.DeepEqual(first, again) {
			t.Fatal("two runs of one seed differ")
		}
	}
	c.Seed++
	if again := run(t, b, p, traffic.Traffic{}, c); reflect.DeepEqual(first.Batches, again.Batches) {
		t.Error("another seed gives the same batches")
	}
}

// TestNoAllocationPerEvent compares a run with one ten times as long.
func TestNoAllocationPerEvent(t *testing.T) {
	b := load(t)
	p := b.Resolve(program.Program{
		Base: "profiling", Accesses: []program.Access{access("emem", "read", "bulk", 64, 4, 8192)},
		Locks: []program.Lock{{Name: "l", Elements: 64}}, Flows: &traffic.Flows{Count: 64},
	})
	allocs := func(packets int) float64 {
		return testing.AllocsPerRun(3, func() {
			if _, err := Run(context.Background(), b, p, traffic.Traffic{}, Config{Packets: packets, Batch: packets / 50}); err != nil {
				t.Fatal(err)
			}
		})
	}
	short, long := allocs(500), allocs(5000)
	if long > short+20 {
		t.Errorf("%.0f allocations for 500 packets, %.0f for 5000", short, long)
	}
}

// TestEngineLaws checks saturated engines against the times in the board file.
func TestEngineLaws(t *testing.T) {
	b := load(t)
	const cycle = 1 / 0.8 // ns
	for _, c := range []struct {
		name   string
		access program.Access
		cycles float64 // of the saturated resource, an access
	}{
		{"IMEM bulk read 128 B: 16 B a cycle", access("imem", "read", "bulk", 128, 20, 8192), 8},
		{"EMEM bulk read 128 B of one line: one bank", access("emem", "read", "bulk", 128, 20, 1), 16},
		{"EMEM bulk write 4 B of one line: read-modify-write", access("emem", "write", "bulk", 4, 20, 1), 2 * (13 + 4/15.5)},
		{"EMEM bulk write 8 B of one line", access("emem", "write", "bulk", 8, 20, 1), 13 + 8/15.5},
		{"EMEM increments of one location", access("emem", "add", "atomic", 4, 40, 1), 3.2},
		{"IMEM atomic write 64 B is two commands", access("imem", "write", "atomic", 64, 20, 8192), 2 * 32 / 2.58},
	} {
		p := program.Program{Base: "500", Accesses: []program.Access{c.access}}
		r := run(t, b, p, traffic.Traffic{}, Config{Seed: 1})
		got := 1000 / r.Mpps() / c.access.PerPacket
		if want := c.cycles * cycle; math.Abs(got/want-1) > 0.03 {
			t.Errorf("%s: %.2f ns an access, the board file says %.2f", c.name, got, want)
		}
	}
}

// TestLinesInParallel: writes to k lines take 1/k of the time of one, less what
// a queue of finite length loses.
func TestLinesInParallel(t *testing.T) {
	b := load(t)
	queue := b.Memory("emem").Engine(program.Bulk).Queue.Value
	rate := func(span int64) float64 {
		a := access("emem", "write", "bulk", 4, 20, span)
		a.Stride = 128
		r := run(t, b, program.Program{Base: "500", Accesses: []program.Access{a}}, traffic.Traffic{}, Config{Seed: 1})
		return r.Mpps()
	}
	one := rate(1)
	for _, k := range []int64{2, 4, 8} {
		got := rate(k) / one
		// a closed network of that population loses least with constant, most
		// with exponential service
		worst := float64(k) * queue / (queue + float64(k) - 1)
		if got < 0.97*worst || got > float64(k) {
			t.Errorf("%d lines: %.2f times one line, a queue of %.0f gives %.2f to %d", k, got, queue, worst, k)
		}
	}
}

// TestCache: what fits hits, what does not misses, and in between the miss rate
// is the part that does not fit.
func TestCache(t *testing.T) {
	c := newCache(64*1024, 64, 8) // 1024 lines
	for pass := range 2 {
		missed := 0
		for line := range int64(1024) {
			missed += c.touch(line*64, 4)
		}
		if want := []int{1024, 0}[pass]; missed != want {
			t.Errorf("pass %d over 1024 lines: %d missed, want %d", pass, missed, want)
		}
	}
	if n := c.touch(64-4, 8); n != 0 {
		t.Errorf("an access across two cached lines missed %d", n)
	}
	if n := c.touch(1<<30, 128); n != 2 {
		t.Errorf("128 B elsewhere missed %d lines, want 2", n)
	}
	b := load(t)
	hit := run(t, b, program.Program{Base: "500", Accesses: []program.Access{access("emem", "add", "atomic", 4, 20, 8192)}}, traffic.Traffic{}, Config{Seed: 1})
	miss := run(t, b, program.Program{Base: "500", Accesses: []program.Access{access("emem", "add", "atomic", 4, 20, 64<<20)}}, traffic.Traffic{}, Config{Seed: 1})
	if u := use(hit, "emem.dram"); u != 0 {
		t.Errorf("a span of 32 KB reaches DRAM: %.3f", u)
	}
	if got, want := 1000/miss.Mpps()/20, 11.8/0.8; math.Abs(got/want-1) > 0.05 {
		t.Errorf("increments over 256 MB take %.2f ns, the board file says %.2f a miss", got, want)
	}
}

// TestLocks: a lock serialises whatever its idiom, idle waiting costs nothing
// that spinning costs, and without contention all idioms are equal.
func TestLocks(t *testing.T) {
	b := load(t)
	rate := func(idiom program.Idiom, k int) float64 {
		p := program.Program{Base: "profiling", Locks: []program.Lock{{Name: "l", Elements: k, Idiom: idiom}}, Flows: &traffic.Flows{Count: k}}
		return run(t, b, p, traffic.Traffic{}, Config{Seed: 1, Packets: 1500}).Mpps()
	}
	spin, short, long, ticket, none := rate("spin", 1), rate("sleep-200", 1), rate("sleep-1000", 1), rate("ticket", 1), rate("none", 1)
	if !(spin < short && short < long && long < ticket && ticket < none) {
		t.Errorf("one lock: spin %.2f, sleep-200 %.2f, sleep-1000 %.2f, ticket %.2f, lock-free %.2f Mpps are not in this order", spin, short, long, ticket, none)
	}
	// 432 spinners keep the atomic engine busy for 4 cycles each, and that is
	// how long a holder's commands wait
	if want := 1 / (432 * 4 / 800.0); math.Abs(spin/want-1) > 0.05 {
		t.Errorf("one spin lock %.3f Mpps, the spinners' engine time gives %.3f", spin, want)
	}
	for _, k := range []int{2, 8, 32} {
		if got := rate("spin", k) / spin; math.Abs(got/float64(k)-1) > 0.1 {
			t.Errorf("%d locks are %.2f times one", k, got)
		}
	}
	if many := rate("spin", 256); math.Abs(many/none-1) > 0.05 {
		t.Errorf("256 locks %.2f Mpps, lock-free %.2f", many, none)
	}
}

// TestLockExcludes walks a run's events: a held word is never taken.
func TestLockExcludes(t *testing.T) {
	b := load(t)
	for _, idiom := range []program.Idiom{"spin", "sleep-200", "ticket"} {
		p := b.Resolve(program.Program{
			Base:  "profiling",
			Locks: []program.Lock{{Name: "l", Elements: 3, Idiom: idiom, Section: []program.Access{access("emem", "read", "atomic", 4, 1, 8192)}}},
			Flows: &traffic.Flows{Count: 5},
		})
		m, err := newMachine(b, p, traffic.Traffic{}, Config{Seed: 3, Packets: 300})
		if err != nil {
			t.Fatal(err)
		}
		inside := func(word int32) int {
			n := 0
			for i := range m.contexts {
				c := &m.contexts[i]
				s := &m.steps[c.step]
				if c.word == word && (s.kind == stepAccess || s.kind == stepRelease) {
					n++
				}
			}
			return n
		}
		most := 0
		m.watch = func() {
			for w := range int32(3) {
				most = max(most, inside(w))
			}
		}
		if _, err := m.run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if most != 1 {
			t.Errorf("%s: %d contexts in one section", idiom, most)
		}
	}
}

// TestOfferedRate: below capacity everything offered is served, above it the
// rest is dropped, and latency rises in between.
func TestOfferedRate(t *testing.T) {
	b := load(t)
	p := program.Program{Base: "forward", Accesses: []program.Access{access("emem", "read", "bulk", 64, 10, 8192)}}
	full := run(t, b, p, traffic.Traffic{}, Config{Seed: 1, Packets: 20000}).Mpps()
	low := run(t, b, p, traffic.Traffic{RateMpps: full / 2}, Config{Seed: 1, Packets: 20000})
	if low.Dropped != 0 || math.Abs(low.Mpps()/(full/2)-1) > 0.03 {
		t.Errorf("offered %.2f Mpps: served %.2f, dropped %d", full/2, low.Mpps(), low.Dropped)
	}
	high := run(t, b, p, traffic.Traffic{RateMpps: 1.5 * full}, Config{Seed: 1, Packets: 20000})
	if math.Abs(high.Mpps()/full-1) > 0.02 {
		t.Errorf("overloaded %.2f Mpps, saturated %.2f", high.Mpps(), full)
	}
	if lost := float64(high.Dropped) / float64(high.Offered); math.Abs(lost-1.0/3) > 0.05 {
		t.Errorf("offered 1.5 times the capacity: %.3f lost, want a third", lost)
	}
	if low.Latency[len(low.Latency)/2] >= high.Latency[len(high.Latency)/2] {
		t.Error("latency does not rise with load")
	}
}

// TestWire: large packets are bound by the link.
func TestWire(t *testing.T) {
	b := load(t)
	r := run(t, b, program.Program{Base: "forward", PacketBytes: 1500}, traffic.Traffic{}, Config{Seed: 1})
	if want := b.LinkGbps.Value * 1000 / 8 / 1520; math.Abs(r.Mpps()/want-1) > 0.01 {
		t.Errorf("1500 B: %.3f Mpps, the wire carries %.3f", r.Mpps(), want)
	}
}

// TestProfileAccountsForThePacket: the stacks' times add up to the residence.
func TestProfileAccountsForThePacket(t *testing.T) {
	b := load(t)
	p := program.Program{Name: "x", Base: "profiling", Accesses: []program.Access{access("emem", "read", "bulk", 128, 10, 8192)}}
	r := run(t, b, p, traffic.Traffic{}, Config{Seed: 1, Packets: 8000, Profile: true})
	var accounted, residence float64
	banks := map[string]bool{}
	for _, s := range r.Stacks {
		accounted += float64(s.Busy + s.Wait)
		if f := s.Frames; len(f) > 4 {
			banks[f[len(f)-1]] = true
			if f[0] != "x" || f[1] != "emem read bulk 128 B" || f[2] != "emem" || f[3] != "emem bulk" {
				t.Errorf("frames %q", f)
			}
		}
	}
	for _, l := range r.Latency {
		residence += float64(l)
	}
	// what is missing is the way back from the memory and the base's swaps
	if share := accounted / residence; share < 0.7 || share > 1.01 {
		t.Errorf("%.2f of the packets' time is accounted for", share)
	}
	if len(banks) != 2 {
		t.Errorf("banks %v, want both", banks)
	}
}

func TestInterrupt(t *testing.T) {
	b := load(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Run(ctx, b, b.Resolve(program.Program{}), traffic.Traffic{}, Config{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// BenchmarkPacket is the cost of one packet with ten accesses.
func BenchmarkPacket(b *testing.B) {
	bd := load(b)
	p := bd.Resolve(program.Program{Base: "profiling", Accesses: []program.Access{access("emem", "read", "bulk", 64, 10, 8192)}})
	b.ReportAllocs()
	if _, err := Run(context.Background(), bd, p, traffic.Traffic{}, Config{Packets: max(100, b.N)}); err != nil {
		b.Fatal(err)
	}
}

// TestPerIsland: a memory of the island scales with the islands in use, a
// shared one does not.
func TestPerIsland(t *testing.T) {
	b := load(t)
	rate := func(memory string, cores int) float64 {
		p := program.Program{Base: "100", Accesses: []program.Access{access(memory, "write", "atomic", 32, 40, 64)}}
		return run(t, b, p, traffic.Traffic{}, Config{Seed: 1, Cores: cores, Packets: 3000}).Mpps()
	}
	// three microengines saturate an atomic engine with 32 B writes
	if got := rate("ctm", 50) / rate("ctm", 15); math.Abs(got-1) > 0.05 {
		t.Errorf("CTM: ten microengines an island are %.2f times three", got)
	}
	if got := rate("ctm", 50) / rate("imem", 50); math.Abs(got/b.Islands.Value-1) > 0.05 {
		t.Errorf("CTM of all islands is %.2f times IMEM", got)
	}
}

// TestPCIe holds DMA against pcie-bench: rates of one direction, both at once
// without sharing, and the unloaded latency of a read.
func TestPCIe(t *testing.T) {
	b := load(t)
	dma := func(op program.Op, bytes int) program.Access { return access("pcie", op, "bulk", bytes, 10, 8192) }
	rate := func(as ...program.Access) float64 {
		return 10 * run(t, b, program.Program{Base: "500", Accesses: as}, traffic.Traffic{}, Config{Seed: 1}).Mpps()
	}
	for _, c := range []struct {
		op    program.Op
		bytes int
		mops  float64
	}{{"read", 64, 62}, {"read", 128, 43.7 / 8 / 128 * 1e3}, {"write", 64, 47.4}, {"write", 128, 42.4 / 8 / 128 * 1e3}} {
		if got := rate(dma(c.op, c.bytes)); math.Abs(got/c.mops-1) > 0.03 {
			t.Errorf("DMA %s of %d B: %.1f M/s, pcie-bench %.1f", c.op, c.bytes, got, c.mops)
		}
	}
	if both := rate(dma("read", 64), dma("write", 64)); math.Abs(both/47.4-1) > 0.03 {
		t.Errorf("reads and writes together: %.1f M/s each, writes alone 47.4", both)
	}
	one := func(n float64) float64 {
		a := dma("read", 64)
		a.PerPacket = n
		r := run(t, b, program.Program{Base: "100", Accesses: []program.Access{a}}, traffic.Traffic{}, Config{Seed: 1, Cores: 1, Threads: 1, Packets: 2000})
		return 1000 / r.Mpps()
	}
	issue := b.Bases[0].AccessCycles.Value / 0.8
	if got := (one(11)-one(1))/10 - issue; math.Abs(got/560-1) > 0.06 {
		t.Errorf("one DMA read takes %.0f ns, pcie-bench's median is 560", got)
	}
}
