package fit

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/internal/stats"
	"nicprof/microbench"
	"nicprof/model"
	"nicprof/program"
	"nicprof/sim"
)

func known(v float64) model.Value { return model.Value{Value: v, Identified: true} }

// truth is a board as the resources rule sees it, in round numbers: EMEM's
// engines share a front, IMEM's do not.
func truth(t testing.TB, b *board.Board) *model.Model {
	t.Helper()
	m := &model.Model{
		Schema: model.Schema, Board: b.Name, BoardClass: b.Class, Version: "truth", ClockMHz: b.ClockMHz.Value, LinkGbps: b.LinkGbps.Value,
		Queueing: model.Queueing{CoreWait: known(0.6), IOWait: known(0.1), Wait: known(0.6), Depth: known(32), LockMemory: b.Locks.Memory,
			TestUS: known(0.005), SpinUS: known(0.02), TurnUS: known(0.15)},
		DefaultRule: model.RuleResources,
	}
	for _, mem := range b.Swept() {
		m.Memories = append(m.Memories, memoryOf(mem))
		m.Queueing.Latency = append(m.Queueing.Latency, model.Latency{Memory: mem.Name, US: known(0.25), MissUS: known(0.3)})
		for _, e := range mem.Engines {
			front := mem.Name + "." + string(e.Mode)
			if mem.Name == "emem" {
				front = "emem"
			}
			m.Memories[len(m.Memories)-1].Engines[len(m.Composition)%2].Front = front
			m.Composition = append(m.Composition, model.Group{Name: front, Engines: []string{mem.Name + "." + string(e.Mode)}})
			for _, op := range []program.Op{program.Read, program.Write, program.Add} {
				if e.Command(op) == nil {
					continue
				}
				slow := 1.0
				if op != program.Read {
					slow = 1.5
				}
				if e.Mode == program.Atomic {
					slow *= 2
				}
				for _, n := range []int{4, 128} {
					if n > int(e.MaxBytes.Value) {
						n = int(e.MaxBytes.Value)
					}
					m.Costs = append(m.Costs, model.Cost{
						Class: model.Class{Memory: mem.Name, Op: op, Mode: e.Mode}, Bytes: n,
						Front: known(slow * (0.002 + float64(n)/16000)), Line: known(slow * 0.02), Miss: known(slow * 0.02),
					})
				}
			}
		}
	}
	for i, base := range b.Bases {
		core := []float64{1.8, 1.9, 0.3, 1.75}[i]
		x := model.Base{Name: base.Name, Cores: int(base.Cores.Value), Threads: int(base.Threads.Value), PerPacket: base.Index == "packet",
			BareMpps: base0(base.IOMpps.Value), IOMpps: known(base.IOMpps.Value), CoreUS: known(core), WaitUS: known(0.5), AccessUS: known(0.05), LockUS: known(0.1)}
		if core > 1 {
			x.Demand = []model.Demand{{Resource: "emem", US: known(0.02)}}
		}
		m.Bases = append(m.Bases, x)
	}
	for _, k := range program.Kinds {
		m.Stateless = append(m.Stateless, model.OpCost{Kind: k, US: known(b.Stateless[k].Value / b.ClockMHz.Value)})
	}
	for _, idiom := range []program.Idiom{program.Spin, "sleep-200", "sleep-1000", program.Ticket} {
		m.Locks = append(m.Locks, model.Lock{Idiom: idiom, Base: "profiling", HoldUS: known(0.05)})
	}
	return m
}

func base0(v float64) model.Value { return known(v) }

// measure is a sweep of a suite on the truth, with noise of 0.3 %.
func measure(t testing.TB, b *board.Board, m *model.Model, suite string, seed uint64) []microbench.Sample {
	t.Helper()
	plan, err := microbench.Plan(b, suite, nil, seed)
	if err != nil {
		t.Fatal(err)
	}
	noise := sim.NewStream(seed, "noise")
	out := make([]microbench.Sample, len(plan))
	for i, w := range plan {
		p, err := m.Predict(w.Program, w.Traffic, model.Options{Cores: w.Options.Cores, Threads: w.Options.Threads})
		if err != nil {
			t.Fatal(w.Key, err)
		}
		mpps := p.Mpps * (1 + 0.003*noise.NormFloat64())
		base, err := b.Base(w.Program.Base)
		if err != nil {
			t.Fatal(err)
		}
		s := microbench.Sample{Index: i, Key: w.Key, Group: w.Group, Board: b.Name, Backend: microbench.Emulated, Status: microbench.StatusOK,
			Program: w.Program, Traffic: w.Traffic, Cores: w.Options.Cores, Threads: w.Options.Threads, Mpps: mpps, Low: mpps * 0.994, High: mpps * 1.006}
		if s.Cores == 0 {
			s.Cores = int(base.Cores.Value)
		}
		if s.Threads == 0 {
			s.Threads = int(base.Threads.Value)
		}
		out[i] = s
	}
	return out
}

func nfp(t testing.TB) *board.Board {
	t.Helper()
	b, err := board.Load("nfp")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A sweep of a known board gives its numbers back: what the quick suite shows.
func TestRecoversBoard(t *testing.T) {
	b := nfp(t)
	want := truth(t, b)
	samples := measure(t, b, want, "quick", 1)
	got, r, err := Fit(samples, Options{Board: b, Suite: "quick", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(got/want-1) <= tolerance) {
			t.Errorf("%s: %.5g, want %.5g within %.0f %%", what, got, want, 100*tolerance)
		}
	}
	for i, base := range want.Bases {
		near(base.Name+" core", got.Bases[i].CoreUS.Value, base.CoreUS.Value, 0.03)
		near(base.Name+" io", got.Bases[i].IOMpps.Value, base.IOMpps.Value, 0.02)
	}
	for i, op := range want.Stateless {
		near("stateless "+op.Kind, got.Stateless[i].US.Value, op.US.Value, 0.05)
	}
	shared := func(c model.Class) string {
		if c.Memory == "emem" {
			return "emem"
		}
		return c.Engine()
	}
	for _, p := range got.Interference {
		if p.Verdict == model.NotDecided {
			continue
		}
		if (p.Verdict == model.Shared) != (shared(p.A) == shared(p.B)) {
			t.Errorf("%s with %s: %s", p.A, p.B, p.Verdict)
		}
	}
	if got.DefaultRule != model.RuleResources || len(got.Rules) != len(model.RulesFor(b.Class)) {
		t.Errorf("default rule %s of %+v", got.DefaultRule, got.Rules)
	}
	if got.Quality.MAPE > 1.5 {
		t.Errorf("mean error on the samples %.2f %%", got.Quality.MAPE)
	}
	if len(r.Residuals) != len(samples) {
		t.Errorf("%d residuals of %d samples", len(r.Residuals), len(samples))
	}
	// a mix that no sample has
	p := program.Program{Base: "profiling", Accesses: []program.Access{
		{Memory: "emem", Op: program.Read, Mode: program.Bulk, Bytes: 128, PerPacket: 5}, {Memory: "imem", Op: program.Write, Mode: program.Atomic, Bytes: 32, PerPacket: 3}}}
	a, err := want.Predict(p, model.Traffic{}, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := got.Predict(p, model.Traffic{}, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	near("a mix", c.Mpps, a.Mpps, 0.05)
	if c.Low > a.Mpps || c.High < a.Mpps {
		t.Errorf("the truth %.2f is outside the interval %.2f to %.2f", a.Mpps, c.Low, c.High)
	}

	again, _, err := Fit(samples, Options{Board: b, Suite: "quick", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	one, err := got.Encode()
	if err != nil {
		t.Fatal(err)
	}
	two, err := again.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, two) {
		t.Error("the same samples gave another model file")
	}
	if _, err := model.Decode(one, "fitted"); err != nil {
		t.Error("the fitted model does not read back:", err)
	}
}

// imported are packet rates of a card by accesses a packet and cores: a roof of
// 198 M reads/s, 49.5 Mpps of packet I/O.
func imported() []microbench.Sample {
	var out []microbench.Sample
	for _, i := range []float64{1, 2, 4, 8, 12} {
		for _, cores := range []int{5, 10, 25, 50} {
			mpps := min(float64(cores)/(0.28+i*0.03), 198/i, 49.5)
			out = append(out, microbench.Sample{Index: len(out), Board: "their-card", Backend: "imported", Cores: cores, Mpps: mpps, Program: program.Program{
				Base: "xdp", Accesses: []program.Access{{Memory: "emem", Op: program.Read, Mode: program.Atomic, Bytes: 4, PerPacket: i, Span: 1, Stride: 4}}}})
		}
	}
	return out
}

// Groups that hold nothing back for judging the rules still give a default
// that predicts them.
func TestDefaultRuleOfSomeGroups(t *testing.T) {
	b := nfp(t)
	samples := slices.DeleteFunc(measure(t, b, truth(t, b), "quick", 1), func(s microbench.Sample) bool {
		return s.Group != microbench.GroupStateless && s.Group != microbench.GroupCores
	})
	m, r, err := Fit(samples, Options{Board: b, Suite: "quick", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if m.DefaultRule != model.RuleResources || len(m.Rules) != 0 {
		t.Errorf("default rule %s, held-out errors %+v", m.DefaultRule, m.Rules)
	}
	if len(r.Residuals) != len(samples) {
		t.Errorf("%d of %d samples predicted", len(r.Residuals), len(samples))
	}
}

func TestCurvesAlone(t *testing.T) {
	samples := imported()
	torn := samples[0]
	torn.Key, torn.Mpps = "torn", 20
	torn.Warnings = []string{stats.Regimes + ": 25 then 15"}
	samples = append(samples, torn)
	m, r, err := Fit(samples, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Rooflines) != 1 || math.Abs(m.Rooflines[0].Roof.Value/198-1) > 0.02 || !m.Rooflines[0].Roof.Identified {
		t.Fatalf("rooflines %+v", m.Rooflines)
	}
	if c := m.Rooflines[0]; math.Abs(c.CoreUS.Value/0.03-1) > 0.1 || math.Abs(c.MemUS.Value*198-1) > 0.02 {
		t.Errorf("a core takes %.4f µs an access, the memory %.5f", c.CoreUS.Value, c.MemUS.Value)
	}
	if len(m.Interference) != 0 || len(m.Costs) != 0 {
		t.Error("a matrix or resource times out of one curve")
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "torn") {
		t.Errorf("no note about the sample of two regimes: %v", r.Notes)
	}
	p := samples[0].Program
	p.Accesses = []program.Access{p.Accesses[0]}
	p.Accesses[0].PerPacket = 10
	got, err := m.Predict(p, model.Traffic{}, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(got.Mpps/19.8-1) > 0.03 {
		t.Errorf("10 reads: %.2f Mpps, want 19.8", got.Mpps)
	}
	if got.Low > 19.8 || got.High < 19.8 || got.High > 1.2*got.Low {
		t.Errorf("10 reads: an interval of %.2f to %.2f Mpps, the truth is 19.8", got.Low, got.High)
	}
	for _, s := range samples[:len(samples)-1] {
		got, err := m.Predict(s.Program, s.Traffic, model.Options{Cores: s.Cores})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Mpps/s.Mpps-1) > 0.1 {
			t.Errorf("%s on %d cores: predicted %.2f, measured %.2f", s.Key, s.Cores, got.Mpps, s.Mpps)
		}
	}
	if _, err := m.Predict(p, model.Traffic{}, model.Options{Rule: model.RuleResources}); fault.KindOf(err) != fault.Input {
		t.Errorf("resources rule without costs: %v", err)
	}
}

func TestFitRefuses(t *testing.T) {
	good := imported()
	for name, c := range map[string]struct {
		change func([]microbench.Sample) []microbench.Sample
		want   string
	}{
		"none":       {func(s []microbench.Sample) []microbench.Sample { return nil }, "nothing to fit"},
		"two boards": {func(s []microbench.Sample) []microbench.Sample { s[3].Board = "other"; return s }, "one board"},
		"zero":       {func(s []microbench.Sample) []microbench.Sample { s[2].Mpps = 0; return s }, "above 0"},
		"NaN":        {func(s []microbench.Sample) []microbench.Sample { s[2].Mpps = math.NaN(); return s }, "above 0"},
		"all failed": {func(s []microbench.Sample) []microbench.Sample {
			for i := range s {
				s[i].Status = microbench.StatusFailed
			}
			return s
		}, "nothing to fit"},
		"one point": {func(s []microbench.Sample) []microbench.Sample { return s[:1] }, "point"},
	} {
		_, _, err := Fit(c.change(append([]microbench.Sample{}, good...)), Options{})
		if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v; want an input fault that says %q", name, err, c.want)
		}
	}
}
