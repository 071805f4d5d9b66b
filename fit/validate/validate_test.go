package validate

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/model"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

func nfp(t testing.TB) *board.Board {
	t.Helper()
	b, err := board.Load("nfp")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The programs run on the board, are the same for the same seed, and leave no
// part of it out.
func TestRandomPrograms(t *testing.T) {
	b := nfp(t)
	const n = 400
	ps := RandomPrograms(b, n, 7)
	if len(ps) != n {
		t.Fatalf("%d programs, want %d", len(ps), n)
	}
	if !reflect.DeepEqual(ps, RandomPrograms(b, n, 7)) {
		t.Error("the same seed gave other programs")
	}
	if reflect.DeepEqual(ps[:20], RandomPrograms(b, 20, 8)) {
		t.Error("another seed gave the same programs")
	}
	seen := map[string]int{}
	for _, p := range ps {
		if err := b.Check(p, 0, 0); err != nil {
			t.Fatal(err)
		}
		if len(p.Accesses) < 1 || len(p.Accesses) > 6 {
			t.Fatalf("%d accesses", len(p.Accesses))
		}
		seen["base "+p.Base]++
		for _, a := range p.Accesses {
			seen[a.Memory+" "+string(a.Op)+" "+string(a.Mode)]++
			if a.Popularity == "zipf" {
				seen["zipf"]++
			}
			if m := b.Memory(a.Memory); m.Cache != nil && float64(a.Span*a.Stride) > m.Cache.Bytes.Value {
				seen["beyond the cache"]++
			}
			if a.Span <= 8 {
				seen["few elements"]++
			}
			if a.PerPacket != math.Trunc(a.PerPacket) {
				seen["fractional"]++
			}
			if a.Bytes&(a.Bytes-1) != 0 {
				seen["odd size"]++
			}
		}
		for kind := range p.Stateless {
			seen["stateless "+kind]++
		}
		for _, l := range p.Locks {
			seen["lock "+string(l.Idiom)]++
		}
	}
	want := []string{"zipf", "beyond the cache", "few elements", "fractional", "odd size"}
	for _, base := range b.Bases {
		want = append(want, "base "+base.Name)
	}
	for _, m := range b.Swept() {
		for _, e := range m.Engines {
			for _, op := range []program.Op{program.Read, program.Write, program.Add} {
				if e.Command(op) != nil {
					want = append(want, m.Name+" "+string(op)+" "+string(e.Mode))
				}
			}
		}
	}
	for _, kind := range program.Kinds {
		want = append(want, "stateless "+kind)
	}
	for _, idiom := range []string{"spin", "ticket", "sleep-200", "sleep-1000", "none"} {
		want = append(want, "lock "+idiom)
	}
	for _, w := range want {
		if seen[w] < 3 {
			t.Errorf("%s: in %d of %d programs", w, seen[w], n)
		}
	}
}

// fake measures what the model says, changed by err.
type fake struct {
	b   *board.Board
	m   *model.Model
	err func(i float64) float64 // of a number in 0..1 drawn by the sample's seed
}

func (f *fake) Board() *board.Board { return f.b }

func (f *fake) Measure(ctx context.Context, p program.Program, t traffic.Traffic, o microbench.Options) (microbench.Sample, error) {
	if ctx.Err() != nil {
		return microbench.Sample{}, ctx.Err()
	}
	x, err := f.m.Predict(p, t, model.Options{})
	if err != nil {
		return microbench.Sample{}, err
	}
	v := x.Mpps / (1 + f.err(sim.NewStream(o.Seed, "error").Float64()))
	return microbench.Sample{Mpps: v, Low: v, High: v, Bottleneck: x.Bottleneck, Utilisation: x.Utilisation, Program: p}, nil
}

// flat is a model of one number: every packet takes as long, whatever it does.
func flat(b *board.Board) *model.Model {
	known := func(v float64) model.Value { return model.Value{Value: v, Identified: true} }
	m := &model.Model{Schema: model.Schema, Board: b.Name, BoardClass: b.Class, DefaultRule: model.RuleResources, ClockMHz: 800}
	for _, mem := range b.Swept() {
		x := model.Memory{Name: mem.Name, Bytes: mem.Bytes, LineBytes: 128, DefaultSpan: mem.DefaultSpan}
		for _, e := range mem.Engines {
			x.Engines = append(x.Engines, model.Engine{Mode: e.Mode, MaxBytes: int(e.MaxBytes.Value), Front: mem.Name})
			for _, op := range []program.Op{program.Read, program.Write, program.Add} {
				if e.Command(op) != nil {
					m.Costs = append(m.Costs, model.Cost{Class: model.Class{Memory: mem.Name, Op: op, Mode: e.Mode}, Bytes: 4, Front: known(0.001)})
				}
			}
		}
		m.Memories = append(m.Memories, x)
	}
	for _, base := range b.Bases {
		m.Bases = append(m.Bases, model.Base{Name: base.Name, Cores: int(base.Cores.Value), Threads: 8, IOMpps: known(20), BareMpps: known(20), CoreUS: known(0.1)})
	}
	for _, k := range program.Kinds {
		m.Stateless = append(m.Stateless, model.OpCost{Kind: k, US: known(0)})
	}
	return m
}

func TestRun(t *testing.T) {
	b := nfp(t)
	m := flat(b)
	// errors of 0..10 %, both ways
	d := &fake{b, m, func(x float64) float64 { return (x - 0.5) / 5 }}
	r, err := Run(context.Background(), m, d, Options{Seed: 3, Parallel: 4})
	if err != nil {
		t.Fatal(err)
	}
	if r.N != 200 || math.Abs(r.Mean-5) > 0.7 || math.Abs(r.Median-5) > 1 || math.Abs(r.P95-9.5) > 0.6 || r.Max > 10.001 {
		t.Errorf("%+v", r)
	}
	for i, c := range r.Worst {
		if i > 0 && math.Abs(c.ErrorPct) > math.Abs(r.Worst[i-1].ErrorPct) {
			t.Error("the worst cases are not sorted")
		}
		if c.Why == "" || c.Program == "" || math.Abs(100*(c.Predicted/c.Measured-1)-c.ErrorPct) > 1e-9 {
			t.Errorf("%+v", c)
		}
	}
	if len(r.Worst) != 5 || math.Abs(r.Worst[0].ErrorPct) != r.Max {
		t.Errorf("%d worst, the first %+v", len(r.Worst), r.Worst[0])
	}
	same, err := Run(context.Background(), m, d, Options{Seed: 3, Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r, same) {
		t.Error("the result depends on the number of measurements at a time")
	}
	if err := r.Check(6, 11); err != nil {
		t.Error(err)
	}
	for _, bound := range [][2]float64{{4, 11}, {6, 9}} {
		if err := r.Check(bound[0], bound[1]); fault.KindOf(err) != fault.Check {
			t.Errorf("bounds %v: %v; want a check fault", bound, err)
		}
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"n", "mean_error_pct", "median_error_pct", "p95_error_pct", "max_error_pct", "worst", "program", "predicted", "measured", "error_pct", "why"} {
		if !strings.Contains(string(data), `"`+key+`":`) {
			t.Errorf("no %q in the JSON", key)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	b := nfp(t)
	m := flat(b)
	d := &fake{b, m, func(float64) float64 { return 0 }}
	if _, err := Run(context.Background(), m, d, Options{Programs: -1}); fault.KindOf(err) != fault.Input {
		t.Errorf("-1 programs: %v", err)
	}
	other := flat(b)
	other.Board = "bluefield"
	if _, err := Run(context.Background(), other, d, Options{Programs: 3}); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "bluefield") {
		t.Errorf("model of another board: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, m, d, Options{Programs: 50}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	m.Costs = slices.DeleteFunc(m.Costs, func(c model.Cost) bool { return c.Memory == "emem" })
	m.Changed()
	if _, err := Run(context.Background(), m, d, Options{Programs: 50}); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "random-") {
		t.Errorf("a model that lacks a memory: %v", err)
	}
}

// Measured twice, a program's rate is the mean of both, and their difference is
// the noise floor; a machine too noisy for a few programs leaves these out, for
// many it fails the check.
func TestTwice(t *testing.T) {
	b := nfp(t)
	m := flat(b)
	const spread = 0.08
	d := &fake{b: b, m: m, err: func(u float64) float64 { return spread * (u - 0.5) }}
	r, err := Run(t.Context(), m, d, Options{Programs: 100, Seed: 3, Twice: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Noise == nil || r.Noise.N != 100 {
		t.Fatalf("noise floor %+v of 100 programs", r.Noise)
	}
	// two uniform errors of width s differ by s/3 on average, their mean is off by s/6
	if got, want := r.Noise.Mean, 100*spread/3; math.Abs(got/want-1) > 0.2 {
		t.Errorf("noise floor %.2f %%, want %.2f", got, want)
	}
	if got, want := r.Mean, 100*spread/6; math.Abs(got/want-1) > 0.2 {
		t.Errorf("mean error %.2f %%, want %.2f", got, want)
	}

	for share, failed := range map[float64]bool{0.03: false, 0.4: true} {
		n := 0
		noisy := &failing{fake: d, fails: func() bool { n++; return float64(n%100) < 100*share }}
		r, err := Run(t.Context(), m, noisy, Options{Programs: 100, Seed: 3, Twice: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Skipped) == 0 || r.N+len(r.Skipped) != 100 {
			t.Errorf("%d measured and %d left out of 100", r.N, len(r.Skipped))
		}
		if err := r.Check(50, 50); (fault.KindOf(err) == fault.Check) != failed {
			t.Errorf("%.0f %% of the measurements too noisy: %v", 100*share, err)
		}
	}
	none := &failing{fake: d, fails: func() bool { return true }}
	if _, err := Run(t.Context(), m, none, Options{Programs: 5, Seed: 3}); fault.KindOf(err) != fault.Check {
		t.Errorf("nothing could be measured: %v", err)
	}
}

// failing is a machine that is too noisy now and then.
type failing struct {
	*fake
	fails func() bool
}

func (f *failing) Measure(ctx context.Context, p program.Program, t traffic.Traffic, o microbench.Options) (microbench.Sample, error) {
	if f.fails() {
		return microbench.Sample{}, fault.Checkf("machine too noisy")
	}
	return f.fake.Measure(ctx, p, t, o)
}
