package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nicprof/internal/fault"
	"nicprof/program"
	"nicprof/traffic"
)

// published is a model of the fitted coefficients of the Cora authors' open
// release (Vela): a packet's time is a + c·e^(−b/i)·i µs.
func published() *Model {
	known := func(v float64) Value { return Value{Value: v, Identified: true} }
	curve := func(mem string, op program.Op, mode program.Mode, bytes int, span int64, a, b, c float64) Roofline {
		return Roofline{Memory: mem, Op: op, Mode: mode, Bytes: bytes, Span: span, Stride: 128, Base: "profiling",
			Form: "eq2", A: known(a), B: known(b), C: known(c)}
	}
	const resident, missing = 1 << 13, 1 << 23
	return &Model{
		Schema: Schema, Board: "nfp", BoardClass: "nfp", Version: "test", ClockMHz: 800, LinkGbps: 80,
		Memories: []Memory{
			{Name: "imem", Bytes: 4 << 20, LineBytes: 128, Banks: 2, BankBytes: 1024, DefaultSpan: resident, Engines: []Engine{
				{Mode: program.Bulk, MaxBytes: 128, Front: "imem.bulk"}, {Mode: program.Atomic, MaxBytes: 32, Front: "imem.atomic"}}},
			{Name: "emem", Bytes: 2 << 30, LineBytes: 128, Banks: 2, BankBytes: 1024, DefaultSpan: resident, CacheBytes: 3 << 20, CacheLine: 64,
				Engines: []Engine{{Mode: program.Bulk, MaxBytes: 128, Front: "emem"}, {Mode: program.Atomic, MaxBytes: 32, Front: "emem"}}},
		},
		Bases: []Base{{Name: "profiling", Cores: 54, Threads: 8, PerPacket: true, BareMpps: known(25), IOMpps: known(25),
			CoreUS: known(1.9), WaitUS: known(0.5), AccessUS: known(0.05)}},
		Rooflines: []Roofline{
			curve("emem", program.Read, program.Atomic, 4, missing, 0.04, 3.999, 0.005),
			curve("emem", program.Write, program.Atomic, 4, missing, 0.07, 1.147, 0.014),
			curve("emem", program.Read, program.Bulk, 4, missing, 0.041, 10.77, 0.001),
			curve("imem", program.Read, program.Atomic, 32, resident, 0.039, 10.226, 0.005),
			curve("imem", program.Write, program.Atomic, 4, resident, 0.039, 13.727, 0.006),
			curve("imem", program.Write, program.Atomic, 32, resident, 0.034, 3.034, 0.016),
			curve("imem", program.Read, program.Bulk, 128, resident, 0.036, 3.932, 0.01),
		},
		Composition: []Group{{"imem.bulk", []string{"imem.bulk"}}, {"imem.atomic", []string{"imem.atomic"}}, {"emem", []string{"emem.atomic", "emem.bulk"}}},
		Locks:       []Lock{{Idiom: program.Spin, Base: "profiling", LockMpps: known(0.45), FreeMpps: known(23.33), Threads: known(23.33 / 0.45)}},
		DefaultRule: RuleCommon,
	}
}

func anAccess(mem string, op program.Op, mode program.Mode, bytes int, n float64, span int64) program.Access {
	return program.Access{Memory: mem, Op: op, Mode: mode, Bytes: bytes, PerPacket: n, Span: span}
}

// natLB is the operation list of the release's NAT with load balancer, one
// packet that hits: EMEM tables over 256 MB, IMEM counters and balancers.
func natLB() (emem, imem program.Program) {
	const missing = 1 << 23
	emem = program.Program{Base: "profiling", Accesses: []program.Access{
		anAccess("emem", program.Read, program.Atomic, 4, 1, missing), // 12 B key: rows over 256 MB move 32 B whatever their width
		anAccess("emem", program.Read, program.Bulk, 4, 2, missing),   // address, port
		anAccess("emem", program.Write, program.Atomic, 4, 1, missing),
	}}
	imem = program.Program{Base: "profiling", Accesses: []program.Access{
		anAccess("imem", program.Read, program.Atomic, 32, 1, 0),  // balancer, 24 B
		anAccess("imem", program.Write, program.Atomic, 4, 4, 0),  // increments, counter, lock
		anAccess("imem", program.Write, program.Atomic, 32, 1, 0), // balancer with unlock
	}}
	return emem, imem
}

func TestPublishedComposition(t *testing.T) {
	m := published()
	emem, imem := natLB()
	for _, c := range []struct {
		name string
		p    Program
		rule string
		want float64
		tol  float64
	}{
		// figures derived from the release's coefficients, which have 3 decimals
		{"emem common", emem, RuleCommon, 16.53, 0.01},
		{"emem refit", emem, RuleRefit, 16.57, 0.05},
		{"emem literal", emem, RuleLiteral, 6.43, 0.01},
		{"imem common", imem, RuleCommon, 19.54, 0.01},
		{"imem refit", imem, RuleRefit, 19.69, 0.05},
		{"imem literal", imem, RuleLiteral, 8.81, 0.01},
	} {
		got, err := m.Predict(c.p, Traffic{}, Options{Rule: c.rule})
		if err != nil {
			t.Fatal(c.name, err)
		}
		if math.Abs(got.Mpps-c.want) > c.tol {
			t.Errorf("%s: %.3f Mpps, want %.2f", c.name, got.Mpps, c.want)
		}
	}
	both := emem
	both.Accesses = append(append([]program.Access{}, emem.Accesses...), imem.Accesses...)
	got, err := m.Predict(both, Traffic{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(got.Mpps-16.53) > 0.01 || got.Bottleneck != "emem" {
		t.Errorf("disjoint memories: %.2f Mpps bounded by %s; want EMEM's 16.53", got.Mpps, got.Bottleneck)
	}
	if got.Explain[0].Resource != "emem" || math.Abs(got.Explain[0].Share-1) > 1e-9 {
		t.Errorf("explain starts with %+v", got.Explain[0])
	}
}

// Cora Section 5.3: 0.45 Mpps through one lock, 23.33 without, linear between.
func TestPublishedLocks(t *testing.T) {
	m := published()
	m.Bases[0].BareMpps.Value = 23.33
	for _, c := range []struct {
		flows int
		want  float64
	}{{1, 0.45}, {10, 4.5}, {40, 18}, {60, 23.33}, {1000, 23.33}} {
		p := Program{Base: "profiling", Locks: []program.Lock{{Name: "l", Elements: 4096}}, Flows: &traffic.Flows{Count: c.flows}}
		got, err := m.Predict(p, Traffic{}, Options{Rule: RuleCommon})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Mpps/c.want-1) > 0.005 {
			t.Errorf("%d flows: %.3f Mpps, want %.2f", c.flows, got.Mpps, c.want)
		}
	}
}

// A flow above T_lock drops packets, and the prediction names the lock, also
// among several.
func TestFlowAboveLockDrops(t *testing.T) {
	m := published()
	p := Program{Base: "profiling", Flows: &traffic.Flows{Count: 4}, Locks: []program.Lock{
		{Name: "free", Elements: 4, Idiom: program.None}, {Name: "wide", Elements: 4096}, {Name: "narrow", Elements: 2}}}
	got, err := m.Predict(p, Traffic{RateMpps: 10}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Lock != "narrow" || math.Abs(got.Mpps+got.DroppedMpps-10) > 1e-9 || got.DroppedMpps < 9 {
		t.Errorf("got %.2f Mpps, %.2f dropped, lock %q", got.Mpps, got.DroppedMpps, got.Lock)
	}
	got, err = m.Predict(p, Traffic{RateMpps: 0.5}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Lock != "" || got.DroppedMpps != 0 || got.Mpps != 0.5 {
		t.Errorf("below the lock's rate: %.2f Mpps, %.2f dropped, lock %q", got.Mpps, got.DroppedMpps, got.Lock)
	}
}

func TestPredictRefusesInput(t *testing.T) {
	m := published()
	read := anAccess("emem", program.Read, program.Atomic, 4, 1, 0)
	for name, c := range map[string]struct {
		change func(*Program, *Options)
		want   string
	}{
		"memory":    {func(p *Program, o *Options) { p.Accesses[0].Memory = "cls" }, "cls"},
		"mode":      {func(p *Program, o *Options) { p.Accesses[0].Mode = "burst" }, "burst"},
		"operation": {func(p *Program, o *Options) { p.Accesses[0].Op = program.Add }, "emem.add.atomic"},
		"base":      {func(p *Program, o *Options) { p.Base = "dpdk" }, "dpdk"},
		"cores":     {func(p *Program, o *Options) { o.Cores = 55 }, "1..54"},
		"rule":      {func(p *Program, o *Options) { o.Rule = "guess" }, "guess"},
		"bytes":     {func(p *Program, o *Options) { p.Accesses[0].Bytes = 6 }, "6 bytes"},
		"negative":  {func(p *Program, o *Options) { p.Accesses[0].PerPacket = -1 }, "-1 accesses"},
		"NaN":       {func(p *Program, o *Options) { p.Accesses[0].PerPacket = math.NaN() }, "NaN"},
		"span":      {func(p *Program, o *Options) { p.Accesses[0].Span = -1 }, "span -1"},
		"kind":      {func(p *Program, o *Options) { p.Stateless = program.Stateless{"sqrt": 1} }, "sqrt"},
		"no cost":   {func(p *Program, o *Options) { p.Stateless = program.Stateless{"alu": 1} }, "stateless"},
		"lock":      {func(p *Program, o *Options) { p.Locks = []program.Lock{{Name: "l"}} }, "0 elements"},
	} {
		p := Program{Base: "profiling", Accesses: []program.Access{read}}
		var o Options
		c.change(&p, &o)
		_, err := m.Predict(p, Traffic{}, o)
		if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v; want an input fault that says %q", name, err, c.want)
		}
	}
}

func randomProgram(t *rapid.T) Program {
	p := Program{Base: "profiling"}
	classes := []program.Access{
		anAccess("emem", program.Read, program.Atomic, 4, 0, 0), anAccess("emem", program.Write, program.Atomic, 4, 0, 0),
		anAccess("emem", program.Read, program.Bulk, 4, 0, 0), anAccess("imem", program.Read, program.Atomic, 32, 0, 0),
		anAccess("imem", program.Write, program.Atomic, 32, 0, 0), anAccess("imem", program.Read, program.Bulk, 128, 0, 0),
	}
	for range rapid.IntRange(0, 6).Draw(t, "accesses") {
		a := rapid.SampledFrom(classes).Draw(t, "class")
		a.PerPacket = rapid.Float64Range(0, 20).Draw(t, "per packet")
		a.Bytes = 4 * rapid.IntRange(1, 32).Draw(t, "words")
		a.Span = 1 << rapid.IntRange(0, 14).Draw(t, "log span")
		p.Accesses = append(p.Accesses, a)
	}
	if rapid.Bool().Draw(t, "lock") {
		p.Locks = []program.Lock{{Name: "l", Elements: rapid.IntRange(1, 300).Draw(t, "elements")}}
	}
	flows := traffic.Flows{Count: rapid.IntRange(1, 500).Draw(t, "flows")}
	p.Flows = &flows
	return p
}

// Every rule: the interval holds the rate, the rate is positive, no bound lies
// under it, an access more or a core less never raises it.
func TestPredictProperties(t *testing.T) {
	m := withCosts(published())
	rapid.Check(t, func(t *rapid.T) {
		p := randomProgram(t)
		rule := rapid.SampledFrom(RulesFor("nfp")).Draw(t, "rule")
		got, err := m.Predict(p, Traffic{}, Options{Rule: rule})
		if err != nil {
			t.Fatal(err)
		}
		if !(got.Mpps > 0) || math.IsInf(got.Mpps, 0) || got.Low > got.Mpps || got.High < got.Mpps {
			t.Fatalf("%v [%v, %v]", got.Mpps, got.Low, got.High)
		}
		for _, term := range got.Explain {
			if term.Mpps < got.Mpps*(1-1e-9) {
				t.Fatalf("predicted %v above the bound %v of %s", got.Mpps, term.Mpps, term.Resource)
			}
		}
		// a lock may speed up: work outside it keeps spinners away
		if rule == RuleLiteral || rule == RuleResources && len(p.Locks) == 0 {
			more := p
			a := anAccess("imem", program.Read, program.Bulk, 128, rapid.Float64Range(0.1, 9).Draw(t, "more"), 0)
			more.Accesses = append(append([]program.Access{}, p.Accesses...), a)
			next, err := m.Predict(more, Traffic{}, Options{Rule: rule})
			if err != nil {
				t.Fatal(err)
			}
			if next.Mpps > got.Mpps*(1+1e-9) {
				t.Fatalf("%s: %v Mpps with an access more than %v", rule, next.Mpps, got.Mpps)
			}
		}
		fewer, err := m.Predict(p, Traffic{}, Options{Rule: rule, Cores: rapid.IntRange(1, 54).Draw(t, "cores")})
		if err != nil {
			t.Fatal(err)
		}
		// a lock's spinners fall with the cores, so that rate may rise
		if len(p.Locks) == 0 && fewer.Mpps > got.Mpps*(1+1e-9) {
			t.Fatalf("%s: %v Mpps on fewer cores than %v", rule, fewer.Mpps, got.Mpps)
		}
	})
}

// withCosts adds what the resources rule needs, in round numbers.
func withCosts(m *Model) *Model {
	known := func(v float64) Value { return Value{Value: v, Identified: true} }
	for _, r := range m.Rooflines {
		c := Class{r.Memory, r.Op, r.Mode}
		for _, bytes := range []int{4, 32, 128} {
			if bytes == 128 && r.Mode == program.Atomic {
				continue
			}
			cost := Cost{Class: c, Bytes: bytes, Front: known(0.002 + float64(bytes)/16000), Bank: known(float64(bytes) / 8000), Line: known(0.005), Same: known(0.006)}
			if c.Memory == "emem" {
				cost.Miss = known(0.005)
			}
			m.Costs = append(m.Costs, cost)
		}
	}
	m.Queueing = Queueing{CoreWait: known(0.5), IOWait: known(0.1), Wait: known(0.5), Depth: known(32), LockMemory: "imem", TestUS: known(0.005), SpinUS: known(0.025), TurnUS: known(0.3),
		Latency: []Latency{{Memory: "imem", US: known(0.25)}, {Memory: "emem", US: known(0.3), MissUS: known(0.3)}}}
	m.Changed()
	return m
}

// A packet that comes back from the host costs its cores, and the base's memory
// commands, a second time, and packet I/O once.
func TestReturns(t *testing.T) {
	m := published()
	m.DefaultRule = RuleResources
	rate := func(p Program, returns float64) (float64, string) {
		t.Helper()
		p.Base = "profiling"
		x, err := m.Predict(p, Traffic{}, Options{Returns: returns})
		if err != nil {
			t.Fatal(err)
		}
		return x.Mpps, x.Bottleneck
	}
	if got, by := rate(Program{}, 0.1); math.Abs(got-25) > 1e-9 || by != "io" {
		t.Errorf("bare, one in ten comes back: %v Mpps by %s, expected packet I/O's 25", got, by)
	}
	if got, by := rate(Program{}, 1); math.Abs(got-54/3.8) > 1e-9 || by != "me" {
		t.Errorf("bare, all come back: %v Mpps by %s, expected 54 cores' of 3.8 µs", got, by)
	}
	if _, err := m.Predict(Program{Base: "profiling"}, Traffic{}, Options{Returns: -1}); err == nil {
		t.Error("-1 returns a packet were taken")
	}
}

func TestFootprint(t *testing.T) {
	m := withCosts(published())
	x, err := m.prepared()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		span, stride     int64
		alpha            float64
		hot, lines, bank float64
	}{
		{1, 128, 0, 1, 1, 1},                           // one line, one bank
		{8, 128, 0, 1. / 8, 8, 1},                      // 1 KB: still one bank
		{12, 128, 0, 1. / 12, 12, 2. / 3},              // 1.5 KB
		{16, 128, 0, 1. / 16, 16, 0.5},                 // 2 KB: both banks
		{8, 4, 0, 1, 1, 1},                             // all in one line
		{1 << 20, 32, 0, 4. / (1 << 20), 1 << 18, 0.5}, // four to a line
		{1000, 4096, 0, 1e-3, 1000, 1},                 // a stride that always meets one bank
	} {
		a := anAccess("emem", program.Read, program.Bulk, 4, 1, c.span)
		r := resolved(x, &a, c.span, c.stride)
		f := r.footprint()
		if math.Abs(f.hot-c.hot) > 1e-12 || math.Abs(f.lines-c.lines) > 1e-6 || math.Abs(f.bank-c.bank) > 1e-9 {
			t.Errorf("span %d stride %d: %+v; want %+v", c.span, c.stride, f, c)
		}
	}
}

func resolved(x *index, a *program.Access, span, stride int64) access {
	mem := x.memory(a.Memory)
	return access{Access: a, mem: mem, engine: mem.engine(a.Mode), span: span, stride: stride, lock: -1}
}

// A core with one context alternates; with many it is never idle; waiting makes
// it slower, and never faster than its own time.
func TestCoreRate(t *testing.T) {
	if got := coreRate(2, 3, 1, 0.7); math.Abs(got-0.2) > 1e-12 {
		t.Errorf("one context: %v, want 1/(2+3)", got)
	}
	if got := coreRate(2, 0, 8, 1); math.Abs(got-0.5) > 1e-12 {
		t.Errorf("no waiting elsewhere: %v, want 1/2", got)
	}
	// machine repair, 8 customers, exponential: exact mean value analysis
	exact := func(busy, away float64, n int) float64 {
		q, x := 0.0, 0.0
		for k := 1; k <= n; k++ {
			r := busy * (1 + q)
			x = float64(k) / (away + r)
			q = x * r
		}
		return x
	}
	for _, away := range []float64{0.5, 2, 7, 16, 40} {
		want := exact(1, away, 8)
		if got := coreRate(1, away, 8, 1); math.Abs(got/want-1) > 0.06 {
			t.Errorf("away %v: %v, exact %v", away, got, want)
		}
		if coreRate(1, away, 8, 0.5) < coreRate(1, away, 8, 1) {
			t.Errorf("away %v: less waiting is slower", away)
		}
	}
}

// The planner's quick sum against the exact one.
func TestHarmonic(t *testing.T) {
	for _, n := range []int64{1, 2, 9, 10, 11, 100, 5000, 1 << 30} {
		for _, s := range []float64{0.3, 0.6, 0.99, 1, 1.2, 2.4} {
			want := traffic.Harmonic(n, s)
			if got := harmonic(float64(n), s); math.Abs(got/want-1) > 1e-6 {
				t.Errorf("harmonic(%d, %v) = %v, want %v", n, s, got, want)
			}
		}
	}
}

// The characteristic time against a simulated LRU cache.
func TestMissesAgainstLRU(t *testing.T) {
	m := withCosts(published())
	x, err := m.prepared()
	if err != nil {
		t.Fatal(err)
	}
	uniform := anAccess("emem", program.Read, program.Bulk, 64, 2, 1<<16)
	other := anAccess("emem", program.Read, program.Bulk, 64, 1, 1<<17)
	j := job{x: x, base: &Base{}}
	j.accesses = []access{resolved(x, &uniform, 1<<16, 64), resolved(x, &other, 1<<17, 64)}
	j.misses()
	// LRU over 49,152 lines with two uniform populations: exact by the
	// characteristic time's own balance
	hit := 2 - j.accesses[0].missing
	hit2 := 1 - j.accesses[1].missing
	filled := hit/2*(1<<16) + hit2*(1<<17)
	if math.Abs(filled/(3<<20/64)-1) > 1e-3 {
		t.Errorf("lines held %.0f, want the cache's 49152", filled)
	}
	if !(hit/2 > hit2) {
		t.Error("the array that is hit more often misses more")
	}
	one := j.accesses[:1]
	j.accesses = one
	one[0].missing = 0
	one[0].span = 1 << 15
	j.misses()
	if one[0].missing != 0 {
		t.Errorf("a resident array misses %v", one[0].missing)
	}
}

var sink Prediction

func BenchmarkPredict(b *testing.B) {
	m := withCosts(published())
	emem, imem := natLB()
	p := emem
	p.Accesses = append(append([]program.Access{}, emem.Accesses...), imem.Accesses...)
	p.Locks = []program.Lock{{Name: "l", Elements: 256}}
	p.Flows = &traffic.Flows{Count: 1000}
	for _, rule := range Rules {
		for _, brief := range []bool{false, true} {
			name := rule
			if brief {
				name += "/brief"
			}
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					sink, _ = m.Predict(p, Traffic{}, Options{Rule: rule, Brief: brief})
				}
			})
		}
	}
}

// A planner calls Predict a million times: the brief form allocates nothing
// with the rules that need no refit.
func TestPredictAllocates(t *testing.T) {
	m := withCosts(published())
	emem, imem := natLB()
	p := emem
	p.Accesses = append(append([]program.Access{}, emem.Accesses...), imem.Accesses...)
	for rule, most := range map[string]float64{RuleResources: 0, RuleCommon: 0, RuleLiteral: 0} {
		n := testing.AllocsPerRun(100, func() {
			sink, _ = m.Predict(p, Traffic{}, Options{Rule: rule, Brief: true})
		})
		if n > most {
			t.Errorf("%s: %.0f allocations a prediction; at most %.0f", rule, n, most)
		}
	}
}

// TestPredictsManyAccesses: a program may have more accesses than a model has
// resources. On the NFP, where accesses of one memory, span and stride share an
// array, an access given in parts counts as the whole; of other models each has
// an array of its own, which can only slow it.
func TestPredictsManyAccesses(t *testing.T) {
	for name, memory := range map[string]string{"nfp": "emem", "host": "l2"} {
		m, err := Load("../results/" + name + "/model.json")
		if err != nil {
			t.Fatal(err)
		}
		const parts = 4 * maxResources
		part := program.Access{Memory: memory, Op: program.Read, Mode: program.Atomic, Bytes: 8, PerPacket: 0.125, Span: 1000}
		whole := part
		whole.PerPacket *= parts
		want, err := m.Predict(Program{Base: "forward", Accesses: []program.Access{whole}}, Traffic{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Predict(Program{Base: "forward", Accesses: slices.Repeat([]program.Access{part}, parts)}, Traffic{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Mpps > want.Mpps*(1+1e-4) || name == "nfp" && got.Mpps < want.Mpps*(1-1e-4) {
			t.Errorf("%s: %g Mpps in %d parts, %g as one access", name, got.Mpps, parts, want.Mpps)
		}
	}
}
