package bluefield

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"nicprof/board"
	"nicprof/emu"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// load returns the board, changed.
func load(t testing.TB, change func(*board.Board)) *board.Board {
	t.Helper()
	b, err := board.Load("bluefield")
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(b)
	}
	return b
}

func run(t testing.TB, b *board.Board, p program.Program, tr traffic.Traffic, c emu.Config) *emu.Result {
	t.Helper()
	if err := b.Check(p, c.Cores, c.Threads); err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), b, b.Resolve(p), tr, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// saturated is the throughput of accesses and base on so many cores.
func saturated(t testing.TB, b *board.Board, cores int, base string, specs ...string) *emu.Result {
	t.Helper()
	return run(t, b, accesses(t, base, specs...), traffic.Traffic{}, emu.Config{Seed: 1, Cores: cores})
}

func accesses(t testing.TB, base string, specs ...string) program.Program {
	t.Helper()
	p := program.Program{Base: base}
	for _, s := range specs {
		a, err := program.ParseAccess(s)
		if err != nil {
			t.Fatal(err)
		}
		p.Accesses = append(p.Accesses, a)
	}
	return p
}

func locked(k int, idiom program.Idiom) program.Program {
	return program.Program{Locks: []program.Lock{{Name: "l", Elements: k, Idiom: idiom}}, Flows: &traffic.Flows{Count: 1000}}
}

func use(r *emu.Result, resource string) float64 {
	for _, u := range r.Utilisation {
		if u.Resource == resource {
			return u.Value
		}
	}
	return math.NaN()
}

// near complains unless got is within a fraction of want.
func near(t testing.TB, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got/want-1) <= within) {
		t.Errorf("%s: %.4g, want %.4g ± %v %%", what, got, want, 100*within)
	}
}

// Cycles of the base and of stateless work are the cores' time, and the line
// rate is a ceiling for packets and for bytes.
func TestCoresAndLine(t *testing.T) {
	b := load(t, nil)
	for _, cores := range []int{1, 3, 8} {
		near(t, fmt.Sprint("base of 250 cycles, cores: ", cores), saturated(t, b, cores, "").Mpps(), 10*float64(cores), 0.01)
	}
	p := program.Program{Stateless: program.Stateless{program.ALU: 100, program.Hash: 2}}
	cycles := 250 + 100*b.Stateless[program.ALU].Value + 2*b.Stateless[program.Hash].Value
	near(t, "with stateless work", run(t, b, p, traffic.Traffic{}, emu.Config{Seed: 1}).Mpps(), 8*2500/cycles, 0.01)
	r := saturated(t, b, 8, "100")
	near(t, "64 B frames at line rate", r.Mpps(), 148.8, 0.005)
	if u := use(r, "eswitch"); u < 0.99 {
		t.Errorf("at line rate the eSwitch is used to %v", u)
	}
	r = run(t, b, program.Program{PacketBytes: 1500}, traffic.Traffic{}, emu.Config{Seed: 1})
	near(t, "1500 B frames at line rate", r.Mpps(), 100e3/8/1520, 0.005)
}

// One dependent access after the other, 10 random lines of a large table: the
// hand calculation is 0.1 us of base and 10 x 130 ns of latency a packet, 0.71
// Mpps a core. The address of an access is worked out while the line before is on
// its way. Eight cores have eight times as much: the channel has room for them.
func TestDependentReads(t *testing.T) {
	b := load(t, func(b *board.Board) { b.Coherence.Window.Value = 1 })
	const table = "dram:read:bulk:64:10:134217728:64" // 8 GiB
	one := saturated(t, b, 1, "", table).Mpps()
	near(t, "one core", one, 1/(0.1+10*0.130), 0.02)
	near(t, "one core, by hand", one, 0.71, 0.02)
	near(t, "eight cores, by hand", saturated(t, b, 8, "", table).Mpps(), 5.7, 0.03)
}

// With a window of w fills in flight, latencies overlap by that much, until the
// DRAM channel is full.
func TestWindow(t *testing.T) {
	const table = "dram:read:bulk:64:24:134217728:64"
	last := 0.0
	for w, gain := range map[float64]float64{2: 1.9, 4: 3.4} {
		at := func(w float64) float64 {
			b := load(t, func(b *board.Board) { b.Coherence.Window.Value = w })
			return 1/saturated(t, b, 1, "", table).Mpps() - 0.1
		}
		if got := at(1) / at(w); got < gain*0.9 || got > w {
			t.Errorf("a window of %v makes reads %.2f times as fast as one of 1", w, got)
		}
	}
	for _, cores := range []int{1, 2, 4, 8} {
		b := load(t, func(b *board.Board) { b.Coherence.Window.Value = 10 })
		r := saturated(t, b, cores, "", table)
		moved := r.Mpps() * 24 * 64 / 1000 // GB/s
		if moved > b.Memory("dram").Bandwidth.Value*1.02 || moved < last {
			t.Errorf("%d cores: %.1f GB/s, fewer had %.1f", cores, moved, last)
		}
		last = moved
		if cores == 8 && use(r, "dram") < 0.95 {
			t.Errorf("eight cores with ten fills each leave the channel idle: %v", r.Utilisation)
		}
	}
}

// Every level serves its own working set: the cost of one dependent read is the
// level's latency.
func TestLevels(t *testing.T) {
	b := load(t, func(b *board.Board) { b.Coherence.Window.Value = 1 })
	for _, c := range []struct {
		spec   string
		cycles float64
	}{
		{"l1:read:bulk:8:20", 4},
		{"l2:read:bulk:8:20:8192:128", 20},            // 1 MiB in half the sets of an L1 of 32 KiB
		{"llc:read:bulk:8:20:32768:64", 125*0.5 + 10}, // half of it is in the L2
		{"dram:read:bulk:8:20:134217728:64", 325},
	} {
		r := saturated(t, b, 1, "", c.spec)
		got := (2500/r.Mpps() - 250) / 20
		// the issue of an access overlaps with the latency of the one before
		if got < max(c.cycles, 13)*0.95 || got > c.cycles+14 {
			t.Errorf("%s: %.1f cycles an access, of which the level's latency is %.0f", c.spec, got, c.cycles)
		}
	}
}

// Demands on one channel add up, also those of writes, whose lines come and go;
// caches of different tiles have nothing in common.
func TestSharedAndPrivate(t *testing.T) {
	b := load(t, func(b *board.Board) {
		b.Coherence.Window.Value = 10
		b.Memory("dram").Bandwidth.Value = 6
	})
	const span = ":134217728:64"
	for _, c := range []struct {
		specs []string
		lines float64
	}{
		{[]string{"dram:read:bulk:64:16" + span}, 16},
		{[]string{"dram:write:bulk:64:16" + span}, 32},
		{[]string{"dram:read:bulk:64:10" + span, "dram:write:bulk:8:6" + span}, 22},
	} {
		r := saturated(t, b, 8, "", c.specs...)
		near(t, fmt.Sprint(c.specs), r.Mpps()*c.lines*64/1000, 6, 0.03)
	}
	plain := load(t, nil)
	tile := saturated(t, plain, 2, "", "l2:read:bulk:64:20").Mpps()
	near(t, "four tiles on their own L2s", saturated(t, plain, 8, "", "l2:read:bulk:64:20").Mpps(), 4*tile, 0.02)
	narrow := load(t, func(b *board.Board) { b.Memory("l2").Bandwidth.Value = 5 })
	r := saturated(t, narrow, 8, "", "l2:read:bulk:64:20")
	missed := 1 - 32.0/512 // an L1 of 32 KiB before 512 KiB
	near(t, "cores of a tile share its L2", r.Mpps()*20*missed*64/1000, 4*5, 0.03)
}

// Loads and stores of plain state cost the same on one core, in every level:
// there is no asymmetry of engines. What stores add is traffic: write-backs, and
// lines that cores take from each other.
func TestReadsAndWrites(t *testing.T) {
	b := load(t, nil)
	for _, level := range []string{"l1", "l2", "llc", "dram"} {
		read := saturated(t, b, 1, "", level+":read:bulk:64:16").Mpps()
		near(t, level+", write against read on one core", saturated(t, b, 1, "", level+":write:bulk:64:16").Mpps(), read, 0.03)
	}
	moving := saturated(t, b, 8, "", "llc:write:bulk:64:16").Mpps()
	if still := saturated(t, b, 8, "", "llc:read:bulk:64:16").Mpps(); moving > 0.9*still || moving < 0.4*still {
		t.Errorf("stores to a table that all cores share: %v Mpps, loads %v", moving, still)
	}
}

// A counter that all cores add to passes from core to core, one transfer an
// addition, however many cores there are; and store-exclusives fail.
func TestContendedCounter(t *testing.T) {
	b := load(t, nil)
	transfer := b.Coherence.OtherTileNS.Value
	const counter = "llc:add:atomic:8:4:1"
	var rates []float64
	for _, cores := range []int{1, 2, 4, 6, 8} {
		p := b.Resolve(accesses(t, "", counter))
		m, err := newMachine(b, p, traffic.Traffic{}, emu.Config{Seed: 1, Cores: cores})
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rates = append(rates, 4*r.Mpps())
		if failed := m.retries > 0; failed != (cores > 1) {
			t.Errorf("%d cores: %d store-exclusives failed", cores, m.retries)
		}
		if cores >= 4 && use(r, "line") < 0.95 {
			t.Errorf("%d cores: the line is used to %v", cores, use(r, "line"))
		}
	}
	// alone: in the L1, at the cost of the pair and the access around it
	pair := b.Memory("llc").Engine(program.Atomic).Add.PipeMin.Value
	near(t, "one core", 1/rates[0], (250.0/4+b.Bases[0].AccessCycles.Value+pair+4)/2500, 0.03)
	for i, rate := range rates[2:] {
		if most := 1000 / transfer; rate > most*1.25 || rate < most*0.6 {
			t.Errorf("%d cores: %.1f M additions/s, a transfer each would be %.1f", 4+2*i, rate, most)
		}
	}
	if rates[4] > rates[2]*1.05 {
		t.Errorf("eight cores add faster than four: %v", rates)
	}
	slow := load(t, func(b *board.Board) { b.Coherence.OtherTileNS.Value *= 2; b.Coherence.SameTileNS.Value *= 2 })
	near(t, "transfers that take twice as long", 4*saturated(t, slow, 8, "", counter).Mpps(), rates[4]/2, 0.1)
	spread := 4 * saturated(t, b, 8, "", "llc:add:atomic:8:4:4096").Mpps()
	if spread < 4*rates[4] {
		t.Errorf("4096 counters: %v M additions/s, one %v", spread, rates[4])
	}
	own := 4 * saturated(t, b, 8, "", "l1:add:atomic:8:4:1").Mpps()
	near(t, "a counter of each core's own", own, 8*rates[0], 0.03)
}

// One lock costs a few transfers of its line a packet; with as many locks as
// cores throughput is near what it is with many, for there are no more than
// eight to wait: the knee of an NFP lies at about 52.
func TestLockScaling(t *testing.T) {
	b := load(t, nil)
	transfer := b.Coherence.OtherTileNS.Value / 1000
	for _, idiom := range []program.Idiom{program.Spin, program.Ticket, "sleep-200"} {
		rate := func(k int) float64 {
			return run(t, b, locked(k, idiom), traffic.Traffic{}, emu.Config{Seed: 1}).Mpps()
		}
		one, two, many := rate(1), rate(2), rate(1024)
		if one < 1/(5*transfer) || one > 1/(1.5*transfer) {
			t.Errorf("%s: one lock passes %.2f Mpps, %.1f transfers each", idiom, one, 1/one/transfer)
		}
		near(t, string(idiom)+": two locks", two, 2*one, 0.15)
		if knee := many / one; knee < 5 || knee > 14 {
			t.Errorf("%s: the knee lies at %.1f locks", idiom, knee)
		}
	}
	none := run(t, b, locked(1, program.None), traffic.Traffic{}, emu.Config{Seed: 1}).Mpps()
	near(t, "no lock", none, 80, 0.01)
}

// Of the cores at one lock word at most one is between acquire and release, and
// those with tickets enter in their order.
func TestMutualExclusion(t *testing.T) {
	b := load(t, nil)
	for _, idiom := range []program.Idiom{program.Spin, program.Ticket, "sleep-100"} {
		p := locked(3, idiom)
		p.Locks[0].Section = accesses(t, "", "llc:add:atomic:8:1:3", "dram:write:bulk:64:2").Accesses
		m, err := newMachine(b, b.Resolve(p), traffic.Traffic{}, emu.Config{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		acquire, release := -1, -1
		for i := range m.steps {
			switch m.steps[i].kind {
			case stepAcquire:
				acquire = i
			case stepRelease:
				release = i
			}
		}
		entered := make([]int64, 3) // ticket that entered last
		inside := make([]int32, 3)  // core in the section
		for i := range inside {
			inside[i], entered[i] = -1, -1
		}
		sections := 0
		m.watch = func() {
			for w := range inside {
				now := int32(-1)
				for i := range m.cores {
					c := &m.cores[i]
					if int(c.step) <= acquire || int(c.step) > release || int(c.word) != w {
						continue
					}
					if now >= 0 {
						t.Fatalf("%s: cores %d and %d hold lock %d", idiom, now, c.id, w)
					}
					now = c.id
				}
				if now >= 0 && now != inside[w] {
					sections++
					if ticket := m.cores[now].ticket; idiom == program.Ticket && ticket <= entered[w] {
						t.Fatalf("ticket %d enters after %d", ticket, entered[w])
					} else {
						entered[w] = ticket
					}
				}
				inside[w] = now
			}
		}
		if _, err := m.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if sections < 1000 {
			t.Errorf("%s: %d sections seen", idiom, sections)
		}
	}
}

// Packets are served or dropped, a core without work sleeps until one comes, and
// a rate beyond what the cores can do fills the rings.
func TestOffered(t *testing.T) {
	b := load(t, nil)
	for _, c := range []struct{ rate, served, dropped float64 }{
		{8, 8, 0}, {60, 60, 0}, {120, 80, 40}, {300, 80, 220},
	} {
		r := run(t, b, program.Program{}, traffic.Traffic{RateMpps: c.rate}, emu.Config{Seed: 1})
		near(t, fmt.Sprint("offered ", c.rate), r.Mpps(), c.served, 0.03)
		us := float64(r.Duration) / float64(sim.Microsecond)
		if got := float64(r.Dropped) / us; math.Abs(got-c.dropped) > 0.05*c.rate {
			t.Errorf("offered %v: dropped %.1f Mpps, want %v", c.rate, got, c.dropped)
		}
		// offered = served + dropped + what the rings took in
		if rest := r.Offered - r.Packets - r.Dropped; rest < -8*ringSize || rest > 8*ringSize {
			t.Errorf("offered %v: %d of %d packets unaccounted", c.rate, rest, r.Offered)
		}
		if u := use(r, "core"); c.rate == 8 && math.Abs(u-0.1) > 0.01 {
			t.Errorf("at a tenth of the rate the cores are busy %v", u)
		}
	}
}

// TestNoAllocationPerEvent compares a run with one ten times as long.
func TestNoAllocationPerEvent(t *testing.T) {
	b := load(t, nil)
	p := accesses(t, "", "l2:write:bulk:64:4", "llc:add:atomic:8:0.5:64")
	p.Locks, p.Flows = []program.Lock{{Name: "l", Elements: 4}}, &traffic.Flows{Count: 64}
	p = b.Resolve(p)
	allocs := func(packets int) float64 {
		return testing.AllocsPerRun(3, func() {
			if _, err := Run(context.Background(), b, p, traffic.Traffic{}, emu.Config{Packets: packets, Batch: packets / 50}); err != nil {
				t.Fatal(err)
			}
		})
	}
	short, long := allocs(500), allocs(5000)
	if long > short+20 {
		t.Errorf("%.0f allocations for 500 packets, %.0f for 5000", short, long)
	}
}

// A profile's visits are the program's accesses, and its core time is the time
// that the cores are busy.
func TestProfile(t *testing.T) {
	b := load(t, nil)
	p := accesses(t, "", "llc:read:bulk:128:3", "l1:write:bulk:8:2")
	r := run(t, b, p, traffic.Traffic{}, emu.Config{Seed: 1, Profile: true})
	lines := map[string]int64{}
	var core sim.Time
	for _, s := range r.Stacks {
		if last := s.Frames[len(s.Frames)-1]; last == "core" {
			core += s.Busy
		} else {
			lines[s.Frames[1]] += s.Visits
		}
	}
	near(t, "lines of the table", float64(lines["llc read bulk 128 B"]), float64(2*3*r.Packets), 0.02)
	near(t, "lines of the core's own", float64(lines["l1 write bulk 8 B"]), float64(2*r.Packets), 0.02)
	near(t, "core time", float64(core)/float64(8*r.Duration), use(r, "core"), 0.02)
}

// Whatever a program does, time passes and no resource is busier than always.
func TestAnyProgram(t *testing.T) {
	b := load(t, nil)
	rapid.Check(t, func(rt *rapid.T) {
		var p program.Program
		draw := func() program.Access {
			m := &b.Memories[rapid.IntRange(0, 3).Draw(rt, "memory")]
			e := &m.Engines[rapid.IntRange(0, 1).Draw(rt, "mode")]
			op := program.Read
			if rapid.Bool().Draw(rt, "write") {
				op = program.Write
			} else if e.Add != nil && rapid.Bool().Draw(rt, "add") {
				op = program.Add
			}
			a := program.Access{
				Memory: m.Name, Op: op, Mode: e.Mode, Bytes: 4 * rapid.IntRange(1, 32).Draw(rt, "words"),
				PerPacket: rapid.Float64Range(0, 4).Draw(rt, "accesses"), Span: rapid.Int64Range(1, 200).Draw(rt, "span"),
			}
			if rapid.Bool().Draw(rt, "zipf") {
				a.Popularity, a.Alpha = "zipf", rapid.Float64Range(0.1, 1.5).Draw(rt, "alpha")
			}
			return a
		}
		for range rapid.IntRange(0, 3).Draw(rt, "lines") {
			p.Accesses = append(p.Accesses, draw())
		}
		for i := range rapid.IntRange(0, 2).Draw(rt, "locks") {
			l := program.Lock{
				Name: fmt.Sprint(i), Elements: rapid.IntRange(1, 10).Draw(rt, "elements"), Hash: rapid.Bool().Draw(rt, "hash"),
				Idiom: rapid.SampledFrom([]program.Idiom{program.Spin, program.Ticket, program.None, "sleep-50"}).Draw(rt, "idiom"),
			}
			for range rapid.IntRange(0, 2).Draw(rt, "section") {
				l.Section = append(l.Section, draw())
			}
			p.Locks = append(p.Locks, l)
		}
		p.Flows = &traffic.Flows{Count: rapid.IntRange(1, 50).Draw(rt, "flows")}
		var tr traffic.Traffic
		if rapid.Bool().Draw(rt, "offered") {
			tr.RateMpps = rapid.Float64Range(0.1, 200).Draw(rt, "rate")
		}
		c := emu.Config{Seed: 1, Packets: 300, Cores: rapid.IntRange(1, 8).Draw(rt, "cores"), Profile: true}
		if err := b.Check(p, c.Cores, 0); err != nil {
			rt.Skip(err) // an array that its level cannot hold
		}
		r, err := Run(t.Context(), b, b.Resolve(p), tr, c)
		if err != nil {
			rt.Fatal(err)
		}
		if r.Packets != 300 || r.Duration <= 0 || !(r.Mpps() > 0) {
			rt.Fatalf("%d packets in %d ps, %v Mpps", r.Packets, r.Duration, r.Mpps())
		}
		for _, u := range r.Utilisation {
			if !(u.Value >= 0 && u.Value <= 1) {
				rt.Fatalf("%s used to %v", u.Resource, u.Value)
			}
		}
	})
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := load(t, nil)
	if _, err := Run(ctx, b, b.Resolve(program.Program{}), traffic.Traffic{}, emu.Config{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
