package model

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nicprof/internal/fault"
	"nicprof/program"
	"nicprof/traffic"
)

// lawModel is a board of four run-to-completion cores in round numbers: a private
// first cache of 64 lines, a second of 1024, and a memory that all share.
func lawModel() *Model {
	v := func(x float64) Value { return Value{Value: x, Identified: true} }
	ops := func(bulk, atomic float64) []OpTime {
		return []OpTime{
			{program.Read, program.Bulk, v(bulk)}, {program.Write, program.Bulk, v(bulk)},
			{program.Read, program.Atomic, v(atomic)}, {program.Write, program.Atomic, v(atomic)}, {program.Add, program.Atomic, v(atomic)},
		}
	}
	engines := func(name string) []Engine {
		return []Engine{{Mode: program.Bulk, MaxBytes: 128, Front: name + ".bulk"}, {Mode: program.Atomic, MaxBytes: 8, Front: name + ".atomic"}}
	}
	m := &Model{
		Schema: Schema, Board: "four", BoardClass: "soc", ClockMHz: 1000, DefaultRule: RuleCores,
		Bases: []Base{{Name: "forward", Cores: 4, Threads: 1, BareMpps: v(40), IOMpps: v(100), CoreUS: v(0.1)}},
		Memories: []Memory{
			{Name: "l1", Bytes: 4096, LineBytes: 64, DefaultSpan: 32, DefaultStride: 64, SharedBy: 1, Engines: engines("l1")},
			{Name: "l2", Bytes: 65536, LineBytes: 64, DefaultSpan: 512, DefaultStride: 64, SharedBy: 1, Engines: engines("l2")},
			{Name: "dram", Bytes: 1 << 30, LineBytes: 64, DefaultSpan: 1 << 20, DefaultStride: 64, SharedBy: 4, Engines: engines("dram")},
		},
		Stateless: []OpCost{{Kind: program.ALU, US: v(0.001)}},
		CoreLaw: &CoreLaw{
			Bases:     []LawBase{{Name: "forward", CoreUS: v(0.1)}},
			Stateless: []KindCost{{Kind: program.ALU, US: v(0.001)}},
			Caches: []Cache{
				{Name: "l1", Bytes: v(4096), LineBytes: 64, Cores: 1, Miss: ops(0.01, 0.01)},
				{Name: "l2", Bytes: v(65536), LineBytes: 64, Cores: 1, Behind: "dram", Miss: ops(0.1, 0.1), SharedUS: v(0.05), WrittenUS: v(0.05)},
			},
			Stolen: ops(0.05, 0.05), Line: ops(0, 0.05)[3:], Near: v(1), Posted: v(1),
			Serial: []OpShare{{program.Write, program.Atomic, v(1)}, {program.Add, program.Atomic, v(1)}},
			Locks: []LockCost{{Idiom: program.Spin, TakeUS: v(0.02), MoveUS: v(0.03), HandUS: v(0.05)},
				{Idiom: "sleep-1000", TakeUS: v(0.02), MoveUS: v(0.03), PauseUS: v(1)}},
			LockMemory: "dram", LockStride: 64,
		},
	}
	for _, o := range ops(0.01, 0.02) {
		largest := 128
		if o.Mode == program.Atomic {
			largest = 8
		}
		for _, n := range []int{4, largest} {
			m.CoreLaw.Access = append(m.CoreLaw.Access, AccessCost{Op: o.Op, Mode: o.Mode, Bytes: n, US: o.US})
		}
	}
	return m
}

func wordsOf(memory string, op program.Op, mode program.Mode, n float64, span int64) program.Access {
	return program.Access{Memory: memory, Op: op, Mode: mode, Bytes: 8, PerPacket: n, Span: span}
}

// Each case is worked out by hand from the times of lawModel.
func TestCoreLaw(t *testing.T) {
	reads := func(memory string, n float64, span int64) program.Access {
		return wordsOf(memory, program.Read, program.Bulk, n, span)
	}
	adds := func(memory string, n float64, span int64) program.Access {
		return wordsOf(memory, program.Add, program.Atomic, n, span)
	}
	of := func(a ...program.Access) program.Program { return program.Program{Accesses: a} }
	lock := func(elements int, idiom program.Idiom) program.Program {
		return program.Program{Locks: []program.Lock{{Name: "lock", Elements: elements, Idiom: idiom, Hash: true}}}
	}
	for name, c := range map[string]struct {
		p          program.Program
		cores      int
		us         float64 // of a packet on all cores
		bottleneck string
	}{
		"bare":                {of(), 0, 0.1 / 4, "cores"},
		"on one core":         {of(), 1, 0.1, "cores"},
		"stateless work":      {program.Program{Stateless: program.Stateless{program.ALU: 100}}, 0, 0.2 / 4, "cores"},
		"hits":                {of(reads("l1", 10, 64)), 0, 0.2 / 4, "cores"},
		"an atomic of 16 B":   {of(program.Access{Memory: "l1", Op: program.Add, Mode: program.Atomic, Bytes: 16, PerPacket: 1, Span: 8}), 0, 0.14 / 4, "cores"},
		"bound by the memory": {of(reads("dram", 20, 1<<20)), 0, 0.05 * 20 * (1 - 1.0/1024), "dram"},
		// no overlap: every access misses the first cache 31/32 of the time, as
		// 2048 lines pass through 64
		"misses":     {of(reads("l2", 10, 1024)), 1, 0.2 + 10*0.01*(1-64.0/1024), "cores"},
		"few locks":  {lock(1, program.None), 0, 0.1 / 4, "cores"},
		"free locks": {lock(1, program.Spin), 1, 0.12, "cores"},
		// three of four times another core had the line
		"stolen": {of(adds("dram", 1, 64)), 0, (0.1 + 0.02 + 0.75*0.05) / 4, "cores"},
		"own":    {of(adds("l1", 1, 64)), 0, 0.12 / 4, "cores"},
		"line":   {of(adds("dram", 10, 1)), 0, meet(0.1+10*(0.02+0.05), 10*0.05, 1), "line"},
	} {
		m := lawModel()
		m.CoreLaw.Wait = Value{} // hard bounds
		p, err := m.Predict(c.p, traffic.Traffic{}, Options{Cores: c.cores})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !(math.Abs(p.Mpps*c.us-1) < 0.03) || p.Bottleneck != c.bottleneck {
			t.Errorf("%s: %.4g Mpps bound by %s, want %.4g by %s", name, p.Mpps, p.Bottleneck, 1/c.us, c.bottleneck)
		}
	}
}

// Two arrays that fit the first cache one at a time do not fit it together.
func TestArraysCompete(t *testing.T) {
	m := lawModel()
	rate := func(a ...program.Access) float64 {
		p, err := m.Predict(program.Program{Accesses: a}, traffic.Traffic{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return p.Mpps
	}
	one, other := wordsOf("l1", program.Read, program.Bulk, 4, 60), wordsOf("l1", program.Read, program.Bulk, 4, 50)
	alone := 4 / (0.1 + 8*0.01)
	if got := rate(one, one); math.Abs(got/alone-1) > 1e-9 {
		t.Errorf("twice the same array: %.4f Mpps, want %.4f", got, alone)
	}
	if got := rate(one, other); got > 0.95*alone {
		t.Errorf("two arrays of 110 lines in 64: %.3f Mpps, as fast as hits, %.3f", got, alone)
	}
	skewed := one
	skewed.Popularity, skewed.Alpha = "zipf", 1.1
	if got := rate(one, skewed); math.Abs(got/alone-1) > 1e-9 {
		t.Errorf("the same array, popular elements and all alike: %.4f Mpps, want %.4f", got, alone)
	}
	m.CoreLaw.Apart = true
	m.Changed()
	if got := rate(one, skewed); got > 0.95*alone {
		t.Errorf("two arrays, one skewed: %.3f Mpps, as fast as hits, %.3f", got, alone)
	}
	if got := rate(one, one); got > 0.95*alone {
		t.Errorf("arrays apart of 120 lines in 64: %.3f Mpps, as fast as hits, %.3f", got, alone)
	}
}

// One lock serves a packet a hold time and hand-over; as many locks as cores are
// enough for nearly the free rate, many more for all of it. A pause holds a lock's
// waiters up, not its holder.
func TestLocksOfCores(t *testing.T) {
	m := lawModel()
	rate := func(elements int, idiom program.Idiom, shares *traffic.Flows) float64 {
		p, err := m.Predict(program.Program{
			Locks: []program.Lock{{Name: "lock", Elements: elements, Idiom: idiom, Hash: shares == nil}}, Flows: shares,
		}, traffic.Traffic{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return p.Mpps
	}
	held := 0.02 + 0.75*0.03 + 0.05 // take, move, hand over
	if got := rate(1, program.Spin, nil); math.Abs(got*held-1) > 0.05 {
		t.Errorf("one lock: %.3f Mpps, want %.3f", got, 1/held)
	}
	free := 4 / (0.1 + 0.02 + 0.75*0.03)
	if few, many := rate(4, program.Spin, nil), rate(4096, program.Spin, nil); few < 0.75*free || few > 0.99*free || many < 0.95*free {
		t.Errorf("%.2f Mpps of 4 locks, %.2f of 4096, free %.2f", few, many, free)
	}
	if spin, sleep := rate(4, program.Spin, nil), rate(4, "sleep-1000", nil); sleep > 0.9*spin {
		t.Errorf("pauses of 1 µs: %.2f Mpps, spinning %.2f", sleep, spin)
	}
	uniform, skewed := rate(64, program.Spin, &traffic.Flows{Count: 64}), rate(64, program.Spin, &traffic.Flows{Count: 64, Popularity: "zipf", Alpha: 1.5})
	if skewed > 0.95*uniform {
		t.Errorf("skewed flows: %.2f Mpps, uniform %.2f", skewed, uniform)
	}
	a, err := m.Predict(program.Program{Locks: []program.Lock{{Name: "lock", Elements: 1, Idiom: "sleep-2000"}}}, traffic.Traffic{}, Options{Cores: 1})
	if err != nil || math.Abs(a.Mpps*0.12-1) > 1e-9 {
		t.Errorf("a pause not measured: %v Mpps, %v", a.Mpps, err)
	}
}

// The explanation lists the parts of a core's time beside the shared resources.
func TestExplainCores(t *testing.T) {
	m := lawModel()
	p, err := m.Predict(program.Program{
		Stateless: program.Stateless{program.ALU: 10},
		Accesses:  []program.Access{wordsOf("dram", program.Add, program.Atomic, 2, 1<<20)},
	}, traffic.Traffic{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	shares := map[string]float64{}
	for _, x := range p.Explain {
		shares[x.Resource] = x.Share
		if !(x.Mpps > 0) || x.Share <= 0 || x.Share > 1 {
			t.Errorf("term %+v", x)
		}
	}
	parts := shares["cores.base"] + shares["cores.stateless"] + shares["cores.accesses"] + shares["cores.l1-misses"] + shares["cores.l2-misses"] + shares["cores.stolen-lines"]
	if math.Abs(parts/shares["cores"]-1) > 1e-6 { // atomic changes overlap with nothing
		t.Errorf("parts are %.3f of the cores' time, the whole %.3f: %+v", parts, shares["cores"], p.Explain)
	}
	if _, ok := shares["dram"]; !ok {
		t.Errorf("the memory is not explained: %+v", p.Explain)
	}
	if _, ok := p.Utilisation["cores.base"]; ok {
		t.Error("a part of the cores' time is no resource")
	}
}

// More work never makes a prediction faster; rates are finite and positive.
func TestCoreLawProperties(t *testing.T) {
	m := lawModel()
	m.CoreLaw.Wait, m.CoreLaw.Overlap = Value{Value: 0.7}, Value{Value: 0.5}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) program.Access {
			a := program.Access{
				Memory: rapid.SampledFrom([]string{"l1", "l2", "dram"}).Draw(t, label),
				Op:     rapid.SampledFrom([]program.Op{program.Read, program.Write}).Draw(t, "op"),
				Mode:   rapid.SampledFrom([]program.Mode{program.Bulk, program.Atomic}).Draw(t, "mode"),
				Bytes:  4 * rapid.IntRange(1, 32).Draw(t, "words"), PerPacket: rapid.Float64Range(0.1, 20).Draw(t, "n"),
				Span: int64(rapid.IntRange(1, 20).Draw(t, "span")),
			}
			if rapid.Bool().Draw(t, "skewed") {
				a.Popularity, a.Alpha = "zipf", rapid.Float64Range(0.3, 1.5).Draw(t, "alpha")
			}
			return a
		}
		p := program.Program{Stateless: program.Stateless{program.ALU: rapid.Float64Range(0, 500).Draw(t, "alu")}}
		for range rapid.IntRange(0, 4).Draw(t, "accesses") {
			p.Accesses = append(p.Accesses, draw("memory"))
		}
		if rapid.Bool().Draw(t, "lock") {
			p.Locks = []program.Lock{{Name: "l", Elements: rapid.IntRange(1, 100).Draw(t, "elements"), Idiom: program.Spin}}
			p.Flows = &traffic.Flows{Count: rapid.IntRange(1, 1000).Draw(t, "flows")}
		}
		rate := func(p program.Program) float64 {
			x, err := m.Predict(p, traffic.Traffic{}, Options{Cores: 4})
			if err != nil {
				t.Fatal(err)
			}
			if !(x.Mpps > 0) || math.IsInf(x.Mpps, 0) || x.Low > x.Mpps || x.High < x.Mpps {
				t.Fatalf("%v Mpps, %v to %v", x.Mpps, x.Low, x.High)
			}
			return x.Mpps
		}
		before := rate(p)
		p.Stateless = program.Stateless{program.ALU: p.Stateless[program.ALU] + 100}
		if more := rate(p); more > before*(1+1e-9) {
			t.Fatalf("%v Mpps with more stateless work, %v before", more, before)
		}
	})
}

// A model without core costs, or with parts that the rule cannot take, says so.
func TestCoreLawRefuses(t *testing.T) {
	m := lawModel()
	m.CoreLaw = nil
	if _, err := m.Predict(program.Program{}, traffic.Traffic{}, Options{}); fault.KindOf(err) != fault.Input {
		t.Errorf("a model without core costs: %v", err)
	}
	for want, change := range map[string]func(*CoreLaw){
		"no base":      func(l *CoreLaw) { l.Bases = nil },
		"no core time": func(l *CoreLaw) { l.Bases[0].CoreUS = Value{} },
		"at most 6": func(l *CoreLaw) {
			l.Caches = append(l.Caches, l.Caches[0], l.Caches[0], l.Caches[0], l.Caches[0], l.Caches[0])
		},
		"at most 2": func(l *CoreLaw) {
			l.Caches[0].LineBytes, l.Caches[1].LineBytes = 32, 64
			l.Caches = append(l.Caches, Cache{Name: "tlb", Bytes: Value{Value: 1 << 20}, LineBytes: 4096})
		},
		"in lines of":   func(l *CoreLaw) { l.Caches[0].Bytes = Value{} },
		"is not finite": func(l *CoreLaw) { l.Access[0].US.Value = math.Inf(1) },
		"is negative":   func(l *CoreLaw) { l.Caches[1].SharedUS.Value = -1 },
		"whole number":  func(l *CoreLaw) { l.Window.Value = 2.5 },
		"up to 32":      func(l *CoreLaw) { l.Window.Value = 33 },
	} {
		m := lawModel()
		change(m.CoreLaw)
		_, err := m.Predict(program.Program{}, traffic.Traffic{}, Options{})
		if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), strings.Replace(want, "is not finite", "is not a finite number", 1)) {
			t.Errorf("%s: %v", want, err)
		}
	}
	// the file keeps all of it
	data, err := lawModel().Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode(data, "law")
	if err != nil {
		t.Fatal(err)
	}
	if twice, err := again.Encode(); err != nil || string(twice) != string(data) {
		t.Errorf("a model with core costs changes on its way through a file: %v", err)
	}
}

// meet is the time of a packet on four cores that need busy µs each for it and queue
// at each of so many lines or locks that serve one of them at a time for us µs: x
// packets a µs for which x·(busy + lines·us·q/(1−q)) = 4 with q = ¾·x·us, and
// x·us ≤ 1.
func meet(busy, us, lines float64) float64 {
	q := 0.75 * us
	a, b := q*(lines*us-busy), busy+4*q
	x := (math.Sqrt(b*b+16*a) - b) / (2 * a)
	return max(1/x, us)
}

// away4 is the probability that of four cores whose packets each hit a line with a
// probability, one after the other, another than the own did last.
func away4(p float64) float64 {
	own, others := 0.0, math.Pow(1-p, 3)
	for k, not := 1, 1.0; k < 1000; k++ { // packets since the own hit
		not *= others
		own += p * math.Pow(1-p, float64(k-1)) * not
	}
	return 1 - own
}

// A packet that keeps a line for all its accesses takes it from another core once,
// if others leave it alone for so long; one that lies in that core's first cache costs
// its own price.
func TestLinesOfOthers(t *testing.T) {
	us := func(a program.Access, change func(*CoreLaw)) float64 {
		m := lawModel()
		m.CoreLaw.Wait = Value{}
		change(m.CoreLaw)
		p, err := m.Predict(program.Program{Accesses: []program.Access{a}}, traffic.Traffic{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return 1 / p.Mpps
	}
	v := func(x float64) Value { return Value{Value: x} }
	kept := func(share float64) func(*CoreLaw) {
		return func(l *CoreLaw) { l.Kept = []OpShare{{program.Add, program.Atomic, v(share)}} }
	}
	fresh := func(l *CoreLaw) { l.Fresh = []OpTime{{program.Add, program.Atomic, v(0.4)}} }
	adds := func(n float64, span int64) program.Access {
		return wordsOf("dram", program.Add, program.Atomic, n, span)
	}
	const base, add, stolen = 0.1, 0.02, 0.05
	// ten accesses to one line: the three other cores hit it 30 times a packet, and
	// between two of its own e^-(hits in 0.02 µs) of the packets find it left alone
	ten := func(kept float64) float64 {
		us := 0.3
		for range 100 {
			takes := 1 + 9*(1-kept*math.Exp(-30.0/4/us*add))
			us = math.Sqrt(us * meet(base+10*add+takes*stolen, takes*0.05, 1))
		}
		return us
	}
	// Of 512 lines an eighth are in a first cache: one is in another core's if that core
	// touched it last, and one of the four cores did so lately. Half of them are in the
	// first caches when lines that are taken make room; a quarter of these are a core's own.
	fresh4 := away4(1.0/512) * (1 - math.Pow(7.0/8, 4))
	for name, c := range map[string]struct {
		got, want float64
	}{
		"one access":         {us(adds(1, 64), kept(1)), (base + add + away4(1.0/64)*stolen) / 4},
		"of every packet":    {us(adds(1, 1), func(l *CoreLaw) { l.Line = nil }), (base + add + stolen) / 4},
		"each fetched anew":  {us(adds(10, 1), kept(0)), meet(base+10*add+10*stolen, 10*0.05, 1)},
		"kept":               {us(adds(10, 1), kept(1)), ten(1)},
		"kept half the time": {us(adds(10, 1), kept(0.5)), ten(0.5)},
		"seldom the same line": {us(adds(2, 64), func(l *CoreLaw) { kept(1)(l); l.Line = nil }),
			(base + 2*add + (2-1.0/64)*away4(2.0/64)*stolen) / 4},
		// 16 commands, eight of them on each of two lines
		"a long one": {us(program.Access{Memory: "dram", Op: program.Add, Mode: program.Atomic, Bytes: 128, PerPacket: 1, Span: 1, Stride: 128}, kept(0)),
			meet(base+16*add+stolen, 8*0.05, 2)},
		"in a first cache": {us(adds(1, 32), fresh), (base + add + away4(1.0/32)*0.4) / 4},
		"mostly beyond":    {us(adds(1, 512), fresh), (base + add + fresh4*0.4 + (0.75-fresh4)*0.05 + (0.25-0.125)*0.01) / 4},
	} {
		if !(math.Abs(c.got/c.want-1) < 0.005) {
			t.Errorf("%s: %.4g µs, want %.4g", name, c.got, c.want)
		}
	}
}

// A core that comes back to the only lock within the time of a hand-over takes it
// again; with more work outside it has to wait for the others. A word that moves
// before the lock is held does not lengthen the hold.
func TestLockTakenAgain(t *testing.T) {
	us := func(alu float64, change func(*CoreLaw)) float64 {
		m := lawModel()
		change(m.CoreLaw)
		p, err := m.Predict(program.Program{
			Stateless: program.Stateless{program.ALU: alu}, Locks: []program.Lock{{Name: "lock", Elements: 1, Idiom: program.Spin}},
		}, traffic.Traffic{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return 1 / p.Mpps
	}
	back := func(us float64) func(*CoreLaw) {
		return func(l *CoreLaw) { l.Locks[0].HandUS.Value, l.Locks[0].BackUS.Value = 0.5, us }
	}
	const take, move, hand, again = 0.02, 0.75 * 0.03, 0.05, 0.12
	const busy = again + move // again is base and taking the lock
	for name, c := range map[string]struct {
		got, want float64
	}{
		"handed over":        {us(0, back(0)), meet(busy, take+move+0.5, 1)},
		"taken again":        {us(0, back(3*again)), meet(busy, take+move+0.5/10, 1)},
		"work between":       {us(240, back(3*again)), meet(busy+0.24, take+move+0.5/2, 1)},
		"moved before":       {us(0, func(l *CoreLaw) { l.Early.Value = 1 }), meet(busy, take+hand, 1)},
		"moved half before":  {us(0, func(l *CoreLaw) { l.Early.Value = 0.5 }), meet(busy, take+move/2+hand, 1)},
		"moved while locked": {us(0, func(*CoreLaw) {}), meet(busy, take+move+hand, 1)},
	} {
		if !(math.Abs(c.got/c.want-1) < 0.005) {
			t.Errorf("%s: %.4g µs, want %.4g", name, c.got, c.want)
		}
	}
}

// Each case of a core's own time is worked out by hand: what begins a kernel, what a
// chain of stateless operations hides, and which waits for a last miss add up.
func TestWaitsOfACore(t *testing.T) {
	v := func(x float64) Value { return Value{Value: x} }
	set := func(to *Value, x float64) { to.Value = x }
	read := wordsOf("dram", program.Read, program.Bulk, 1, 1<<20)
	write := wordsOf("dram", program.Write, program.Bulk, 1, 1<<20)
	hit := wordsOf("l1", program.Add, program.Atomic, 1, 8)
	contended := wordsOf("dram", program.Add, program.Atomic, 1, 64)
	alu := program.Program{Stateless: program.Stateless{program.ALU: 100}}
	of := func(a ...program.Access) program.Program { return program.Program{Accesses: a} }
	const (
		base = 0.1
		miss = 0.01 + 0.01 + 0.1 // an access that misses both caches
		wait = 0.4
	)
	waiting := func(more func(*CoreLaw)) func(*CoreLaw) {
		return func(l *CoreLaw) {
			set(&l.Caches[1].TailUS, wait)
			l.Serial = nil
			more(l)
		}
	}
	acquire := func(n float64) program.Access { return wordsOf("dram", program.Read, program.Atomic, n, 1<<20) }
	acquires := func(l *CoreLaw) { l.Serial = []OpShare{{program.Read, program.Atomic, v(1)}} }
	first := func(l *CoreLaw) {
		for i := range l.Access {
			set(&l.Access[i].FirstUS, 0.03)
		}
		set(&l.Stateless[0].FirstUS, 0.02)
	}
	for name, c := range map[string]struct {
		p      program.Program
		cores  int
		change func(*CoreLaw)
		us     float64 // of a packet on its core
	}{
		"the first of ten accesses":   {of(wordsOf("l1", program.Read, program.Bulk, 10, 8)), 1, first, base + 10*0.01 + 0.03},
		"an access every other time":  {of(wordsOf("l1", program.Read, program.Bulk, 0.5, 8)), 1, first, base + 0.5*(0.01+0.03)},
		"the first operation":         {alu, 1, first, base + 0.1 + 0.02},
		"work ahead of a chain":       {alu, 1, func(l *CoreLaw) { set(&l.AheadUS, 0.04) }, base + 0.1 - 0.04},
		"no more ahead than there is": {program.Program{Stateless: program.Stateless{program.ALU: 10}}, 1, func(l *CoreLaw) { set(&l.AheadUS, 1) }, base},

		"one wait for two lines":  {of(read, read), 1, waiting(func(*CoreLaw) {}), base + 2*miss + wait},
		"a wait for each line":    {of(read, read), 1, waiting(func(l *CoreLaw) { l.Split = v(1) }), base + 2*miss + 2*wait},
		"half a wait more":        {of(read, read), 1, waiting(func(l *CoreLaw) { l.Split = v(0.5) }), base + 2*miss + 1.5*wait},
		"a plain write":           {of(write), 1, waiting(func(l *CoreLaw) { l.Posted = v(0.25) }), base + miss + wait/4},
		"a fence waits for it":    {of(write, hit), 1, waiting(func(l *CoreLaw) { l.Posted, l.Drained = v(0.25), v(1) }), base + miss + 0.02 + wait},
		"or for some of it":       {of(write, hit), 1, waiting(func(l *CoreLaw) { l.Posted, l.Drained = v(0.25), v(0.5) }), base + miss + 0.02 + wait*5/8},
		"a fence after its write": {of(hit, write), 1, waiting(func(l *CoreLaw) { l.Posted, l.Drained = v(0.25), v(1) }), base + miss + 0.02 + wait/4},

		// what an atomic read waits for is on its way together with what came before
		"a read after a miss":  {of(read, acquire(1)), 1, waiting(acquires), base + miss + wait},
		"many after a miss":    {of(read, acquire(5)), 1, waiting(acquires), base + miss + 5*(miss+0.01)},
		"a read before a miss": {of(acquire(1), read), 1, waiting(acquires), base + 2*miss + 0.01 + wait},

		// three of four times another core has the line
		"lines of others": {of(read, contended), 4, waiting(func(l *CoreLaw) { l.StolenTailUS = v(0.2) }), base + miss + wait + 0.02 + 0.75*(0.05+0.2)},
		"on their way":    {of(read, contended), 4, waiting(func(l *CoreLaw) { l.StolenTailUS, l.Shadow = v(0.2), v(1) }), base + miss + wait + 0.02 + 0.75*0.05},
		"partly":          {of(read, contended), 4, waiting(func(l *CoreLaw) { l.StolenTailUS, l.Shadow = v(0.2), v(0.25) }), base + miss + wait + 0.02 + 0.75*(0.05+0.2) - wait/4},
	} {
		m := lawModel()
		m.CoreLaw.Wait = Value{}
		c.change(m.CoreLaw)
		p, err := m.Predict(c.p, traffic.Traffic{}, Options{Cores: c.cores})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := float64(c.cores) / p.Mpps; !(math.Abs(got/c.us-1) < 0.01) {
			t.Errorf("%s: %.4f µs, want %.4f", name, got, c.us)
		}
	}
}
