package fit

import (
	"math"
	"testing"

	"nicprof/board"
	"nicprof/microbench"
	"nicprof/model"
	"nicprof/program"
)

func load(t testing.TB, name string) *board.Board {
	t.Helper()
	b, err := board.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// coreTruth is a run-to-completion board as the rule cores sees it, in round
// numbers.
func coreTruth(t testing.TB, b *board.Board) *model.Model {
	t.Helper()
	law := &model.CoreLaw{
		LockMemory: b.Locks.Memory, LockStride: int64(b.Locks.WordStride.Value),
		Window: known(5), Wait: known(0.8), DrawUS: known(0.003), DrawLines: known(100),
		Near: known(0.4), Tile: 2,
	}
	m := &model.Model{
		Schema: model.Schema, Board: b.Name, BoardClass: b.Class, Version: "truth", ClockMHz: b.ClockMHz.Value, LinkGbps: b.LinkGbps.Value,
		DefaultRule: model.RuleCores, CoreLaw: law, Queueing: model.Queueing{LockMemory: b.Locks.Memory},
	}
	for _, base := range b.Bases {
		m.Bases = append(m.Bases, model.Base{Name: base.Name, Cores: int(base.Cores.Value), Threads: 1, BareMpps: known(base.Cores.Value * 10), IOMpps: known(148.8)})
		law.Bases = append(law.Bases, model.LawBase{Name: base.Name, CoreUS: known(0.1), Lines: known(100)})
	}
	for _, k := range program.Kinds {
		law.Stateless = append(law.Stateless, model.KindCost{Kind: k, US: known(b.Stateless[k].Value / b.ClockMHz.Value)})
	}
	for _, k := range law.Stateless {
		m.Stateless = append(m.Stateless, model.OpCost{Kind: k.Kind, US: k.US})
	}
	for _, op := range []program.Op{program.Read, program.Write, program.Add} {
		law.Again = append(law.Again, model.OpShare{Op: op, Mode: program.Atomic, Share: known(0.7)})
	}
	slow := map[program.Op]float64{program.Read: 1, program.Write: 1.5, program.Add: 2}
	ops := func(us float64) []model.OpTime {
		var out []model.OpTime
		for _, mode := range []program.Mode{program.Bulk, program.Atomic} {
			for _, op := range []program.Op{program.Read, program.Write, program.Add} {
				if mode == program.Bulk && op == program.Add {
					continue
				}
				t := us * slow[op]
				if mode == program.Atomic {
					t *= 3
				}
				out = append(out, model.OpTime{Op: op, Mode: mode, US: known(t)})
			}
		}
		return out
	}
	law.Stolen = ops(0.03)
	for _, o := range ops(0.04) {
		if o.Op != program.Read { // a line that nobody changes is everybody's
			law.Line = append(law.Line, o)
		}
	}
	for _, o := range ops(0.002) {
		largest := 128
		if o.Mode == program.Atomic {
			largest = 8
		}
		for _, bytes := range []int{4, largest} {
			law.Access = append(law.Access, model.AccessCost{Op: o.Op, Mode: o.Mode, Bytes: bytes, US: known(o.US.Value * (1 + float64(bytes)/100))})
		}
	}
	swept := b.Swept()
	for i, mem := range swept {
		m.Memories = append(m.Memories, memoryOf(mem))
		for _, e := range mem.Engines {
			engine := mem.Name + "." + string(e.Mode)
			m.Composition = append(m.Composition, model.Group{Name: engine, Engines: []string{engine}})
		}
		if i < len(swept)-1 {
			c := model.Cache{Name: mem.Name, Bytes: known(0.9 * float64(mem.Bytes)), LineBytes: 64, Cores: int(mem.SharedBy.Value), Miss: ops([]float64{0.002, 0.01, 0.04}[i])}
			if i > 0 {
				c.Behind = swept[i+1].Name
				c.SharedUS, c.WrittenUS = known([]float64{0, 0.001, 0.004}[i]), known([]float64{0, 0.0015, 0.007}[i])
			}
			law.Caches = append(law.Caches, c)
		}
	}
	for _, idiom := range []program.Idiom{program.Spin, program.Ticket, "sleep-200", "sleep-1000"} {
		c := model.LockCost{Idiom: idiom, TakeUS: known(0.02), MoveUS: known(0.05), HandUS: known(0.06), CrowdUS: known(0.01)}
		if cycles := float64(idiom.Sleep()); cycles > 0 {
			c.PauseUS = known(cycles / b.ClockMHz.Value)
		}
		law.Locks = append(law.Locks, c)
	}
	return m
}

// A sweep of a known run-to-completion board gives its numbers back, and the rule
// that made it predicts best.
func TestRecoversCores(t *testing.T) {
	b := load(t, "bluefield")
	want := coreTruth(t, b)
	const suite = "quick"
	samples := measure(t, b, want, suite, 1)
	got, r, err := Fit(samples, Options{Board: b, Suite: suite, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got.DefaultRule != model.RuleCores {
		t.Errorf("default rule %s: %+v", got.DefaultRule, got.Rules)
	}
	if got.Quality.MAPE > 1 {
		t.Errorf("mean error %.2f %% of samples with 0.3 %% noise", got.Quality.MAPE)
	}
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(got/want-1) <= tolerance) {
			t.Errorf("%s: %.5g, want %.5g within %.0f %%", what, got, want, 100*tolerance)
		}
	}
	for i, base := range want.CoreLaw.Bases {
		near("core of "+base.Name, got.CoreLaw.Bases[i].CoreUS.Value, base.CoreUS.Value, 0.02)
	}
	for i, op := range want.CoreLaw.Stateless {
		near("stateless "+op.Kind, got.CoreLaw.Stateless[i].US.Value, op.US.Value, 0.03)
	}
	for i, c := range want.CoreLaw.Caches {
		near("capacity of "+c.Name, got.CoreLaw.Caches[i].Bytes.Value, c.Bytes.Value, 0.1)
	}
	near("window", got.CoreLaw.Window.Value, want.CoreLaw.Window.Value, 0)
	t.Logf("%d samples, %+v, %+v", len(samples), got.Quality, got.Rules)
	worst := r.Residuals
	for range 10 {
		at := 0
		for i := range worst {
			if math.Abs(worst[i].Pct) > math.Abs(worst[at].Pct) {
				at = i
			}
		}
		t.Logf("%+.1f %% %s", worst[at].Pct, worst[at].Key)
		worst[at].Pct = 0
	}
	for _, p := range got.CoreLaw.Caches {
		t.Logf("%s %+v %+v %+v", p.Name, p.Bytes, p.SharedUS, p.WrittenUS)
	}
}

// What all cores pay on few elements beyond what one core pays tells what a line
// of another core costs, and whether a packet keeps it.
func TestStartsOfLines(t *testing.T) {
	b := load(t, "bluefield")
	const stolen, own = 0.05, 0.002 // µs
	var samples []microbench.Sample
	for _, span := range []int64{1, 64} {
		for _, n := range []float64{2, 12} {
			times := n // that a packet takes a line
			if span == 1 {
				times = 1
			}
			for _, cores := range []int{1, 4} {
				us := 0.1 + n*own + stolen*times*float64(cores-1)/float64(cores)
				a := program.Access{Memory: "llc", Op: program.Write, Mode: program.Bulk, Bytes: 64, PerPacket: n, Span: span, Stride: 64}
				samples = append(samples, microbench.Sample{Board: b.Name, Cores: cores, Threads: 1, Mpps: float64(cores) / us,
					Program: program.Program{Base: b.Bases[0].Name, Accesses: []program.Access{a}}})
			}
		}
	}
	m := &model.Model{BoardClass: b.Class, Bases: []model.Base{{Name: b.Bases[0].Name, Cores: 4, BareMpps: known(40)}}}
	for _, mem := range b.Swept() {
		m.Memories = append(m.Memories, memoryOf(mem))
	}
	newLawFit(m, b, samples)
	law := m.CoreLaw
	if len(law.Stolen) != 1 || len(law.Kept) != 1 || len(law.Line) != 1 {
		t.Fatalf("starts %+v, %+v, %+v", law.Stolen, law.Kept, law.Line)
	}
	if got := law.Stolen[0].US.Value; math.Abs(got/stolen-1) > 1e-6 {
		t.Errorf("a stolen line starts at %.4f µs, want %.4f", got, stolen)
	}
	if got := law.Kept[0].Share.Value; got < 0.9 {
		t.Errorf("a packet keeps a line %.2f of the time, want nearly always", got)
	}
	if got, most := law.Line[0].US.Value, 1/samples[1].Mpps; !(got > 0 && got <= most) {
		t.Errorf("a line starts at %.4f µs, want at most the %.4f of a packet", got, most)
	}
}
