package snic_test

import (
	"math"
	"strings"
	"testing"

	"nicprof/board"
	"nicprof/fit"
	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/microbench/snic"
	"nicprof/model"
	"nicprof/program"
	"nicprof/traffic"
)

// sweep measures the quick suite on a board.
func sweep(t *testing.T, b *board.Board) []microbench.Sample {
	t.Helper()
	plan, err := microbench.Plan(b, "quick", nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	d, err := snic.New(b, microbench.Emulated)
	if err != nil {
		t.Fatal(err)
	}
	var samples []microbench.Sample
	for _, w := range plan {
		s, err := d.Measure(t.Context(), w.Program, w.Traffic, w.Options)
		if err != nil {
			t.Fatalf("%s: %v", w.Key, err)
		}
		s.Index, s.Key, s.Group = w.Index, w.Key, w.Group
		samples = append(samples, s)
	}
	return samples
}

func load(t *testing.T) *board.Board {
	t.Helper()
	b, err := board.Load("snic")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFitFindsTheBoard: the law fitted from samples alone has the board's numbers,
// those of the board and of one whose clock, scheduler and regions differ.
func TestFitFindsTheBoard(t *testing.T) {
	other := load(t)
	other.ClockMHz.Value = 400
	other.FPGA.Scheduler.Interval.Value = 4
	other.FPGA.Scheduler.Return.Value = 12
	other.FPGA.Regions.PRms.Value = 2
	for name, b := range map[string]*board.Board{"as it is": load(t), "another": other} {
		samples := sweep(t, b)
		m, r, err := fit.Fit(samples, fit.Options{Board: b})
		if err != nil {
			t.Fatal(err)
		}
		cycle := 1 / b.ClockMHz.Value
		f := b.FPGA
		c := m.Chains
		for _, w := range []struct {
			what string
			got  model.Value
			want float64
		}{
			{"beat", c.BeatUS, cycle},
			{"interval", c.IntervalUS, f.Scheduler.Interval.Value * cycle},
			{"credit loop", c.LoopUS, (f.Scheduler.Dispatch.Value + f.Scheduler.Return.Value) * cycle},
			{"core", c.CoreUS, f.Cycles()*cycle + f.PHYNS.Value/1000},
			{"pass", c.PassUS, 16 * cycle},
			{"NT's cycle", c.CycleUS, cycle},
			{"configuration", c.ConfigureUS, 1000 * f.Regions.PRms.Value},
			{"context switch", c.SwitchUS, 1000*f.Regions.PRms.Value + f.Regions.SaveUS.Value},
		} {
			if !w.got.Identified || math.Abs(w.got.Value/w.want-1) > .03 {
				t.Errorf("%s: %s: %v us, want %v", name, w.what, w.got.Value, w.want)
			}
		}
		if skip := f.Regions.Skip.Value * cycle; math.Abs(c.SkipUS.Value-skip) > .1*cycle {
			t.Errorf("%s: %v us past a skipped NT, want %v", name, c.SkipUS.Value, skip)
		}
		if m.Quality.MAPE > 5 || len(r.Residuals) == 0 || len(m.Rules) != 1 || m.Rules[0].N == 0 {
			t.Errorf("%s: quality %+v, left out %+v", name, m.Quality, m.Rules)
		}

		// The model file reads back and predicts the same.
		data, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := model.Decode(data, "model.json")
		if err != nil {
			t.Fatal(err)
		}
		p := program.Program{Chain: []program.Stage{{Name: "aes"}, {Name: "nat"}}, PacketBytes: 512}
		x, err := m.Predict(p, traffic.Traffic{}, model.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if y, err := again.Predict(p, traffic.Traffic{}, model.Options{}); err != nil || y.Mpps != x.Mpps {
			t.Errorf("%s: read back %v Mpps (%v), written %v", name, y.Mpps, err, x.Mpps)
		}
		if x.Bottleneck != "aes" || math.Abs(x.Mpps-30/(.512*8)) > .01 || !(x.Low <= x.Mpps && x.Mpps <= x.High) {
			t.Errorf("%s: %v Mpps (%v to %v) by %s", name, x.Mpps, x.Low, x.High, x.Bottleneck)
		}
		if want := c.CoreUS.Value + 60*c.CycleUS.Value; math.Abs(x.UnloadedUS-want) > 1e-9 {
			t.Errorf("%s: %v us unloaded, want %v", name, x.UnloadedUS, want)
		}
	}
}

// TestMissingGroups: without a group that the law needs the fit says which; without
// the others it says what is not known.
func TestMissingGroups(t *testing.T) {
	b := load(t)
	samples := sweep(t, b)
	without := func(groups ...string) []microbench.Sample {
		var rest []microbench.Sample
		for _, s := range samples {
			if !strings.Contains(strings.Join(groups, " "), s.Group) {
				rest = append(rest, s)
			}
		}
		return rest
	}
	for _, g := range []string{microbench.GroupCredits, microbench.GroupChains} {
		if _, _, err := fit.Fit(without(g), fit.Options{Board: b}); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "group "+g) {
			t.Errorf("without %s: %v", g, err)
		}
	}
	m, _, err := fit.Fit(without(microbench.GroupSkip, microbench.GroupPR), fit.Options{Board: b})
	if err != nil {
		t.Fatal(err)
	}
	for what, v := range map[string]model.Value{"skip": m.Chains.SkipUS, "configuration": m.Chains.ConfigureUS, "context switch": m.Chains.SwitchUS} {
		if v.Identified || v.Note == "" {
			t.Errorf("%s without a sample of it: %+v", what, v)
		}
	}
}

// TestPredictComplaints: what chains cannot be asked is an input fault.
func TestPredictComplaints(t *testing.T) {
	b := load(t)
	m, _, err := fit.Fit(sweep(t, b), fit.Options{Board: b})
	if err != nil {
		t.Fatal(err)
	}
	nt := program.Stage{Name: "nt", Cycles: 1}
	for what, c := range map[string]struct {
		p program.Program
		o model.Options
	}{
		"accesses":        {p: program.Program{Accesses: []program.Access{{Memory: "emem"}}}},
		"an unknown NT":   {p: program.Program{Chain: []program.Stage{{Name: "warp"}}}},
		"an unknown base": {p: program.Program{Base: "forward"}},
		"another rule":    {o: model.Options{Rule: model.RuleCommon}},
		"many instances":  {p: program.Program{Chain: []program.Stage{nt}}, o: model.Options{Cores: 5}},
		"many regions":    {p: program.Program{Chain: []program.Stage{nt, nt, nt, nt, nt}, Parallel: true}},
	} {
		if _, err := m.Predict(c.p, traffic.Traffic{}, c.o); fault.KindOf(err) != fault.Input {
			t.Errorf("%s: %v", what, err)
		}
	}
}
