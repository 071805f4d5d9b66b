package compare

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/model"
)

// run returns samples w0, w1, … with these rates and 1 % intervals.
func run(rates ...float64) []microbench.Sample {
	var s []microbench.Sample
	for i, r := range rates {
		s = append(s, microbench.Sample{
			Key: fmt.Sprintf("w%d", i), Board: "nfp", Backend: "native", Status: microbench.StatusOK,
			Mpps: r, Low: r * 0.99, High: r * 1.01, Runs: 5,
		})
	}
	return s
}

func compare(t *testing.T, old, new []microbench.Sample) Result {
	t.Helper()
	r, err := Samples(old, new, DefaultThreshold)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSamples(t *testing.T) {
	r := compare(t, run(10, 20, 30, 40), run(10, 18, 36, 40.5))
	if r.Compared != 4 || r.Unchanged != 2 || r.Regressions != 1 || len(r.Changes) != 2 {
		t.Fatalf("%+v", r)
	}
	slower, faster := r.Changes[0], r.Changes[1]
	if slower.Key != "w1" || !slower.Regression || slower.Percent > -9.9 || slower.Percent < -10.1 || !(slower.Low < slower.Percent && slower.Percent < slower.High) {
		t.Errorf("slower: %+v", slower)
	}
	if faster.Key != "w2" || faster.Regression || faster.Percent < 19.9 || faster.P > 1e-6 {
		t.Errorf("faster: %+v", faster)
	}
	if err := r.Check(); fault.KindOf(err) != fault.Check {
		t.Errorf("Check: %v, want a check fault", err)
	}
	if r := compare(t, run(10, 20), run(10, 24)); r.Check() != nil {
		t.Errorf("an improvement fails the check: %v", r.Check())
	}
}

// A significant change within the threshold, and one whose interval reaches
// into it, are not reported.
func TestThreshold(t *testing.T) {
	old, new := run(10), run(10.08)
	for _, s := range []*microbench.Sample{&old[0], &new[0]} {
		s.Low, s.High = s.Mpps*0.9999, s.Mpps*1.0001
	}
	if r := compare(t, old, new); len(r.Changes) != 0 || r.Unchanged != 1 {
		t.Errorf("0.8 %%: %+v", r)
	}
	if r := compare(t, run(10), run(9.8)); len(r.Changes) != 0 {
		t.Errorf("2 %% down in an interval of 1.4 %%: %+v", r)
	}
}

func TestOneAgainstOneIsNotEnough(t *testing.T) {
	old, new := run(10), run(5)
	old[0].Runs, new[0].Runs = 1, 1
	if r := compare(t, old, new); r.TooFew != 1 || len(r.Changes) != 0 || r.Check() != nil {
		t.Errorf("%+v", r)
	}
}

func TestBrokenAndMissingWorkloads(t *testing.T) {
	old, new := run(10, 20, 30), run(10, 20, 30, 40)
	new[0].Status, new[0].Mpps, new[0].Low, new[0].High = microbench.StatusFailed, 0, 0, 0
	new = slices.Delete(new, 1, 2)
	r := compare(t, old, new)
	if !slices.Equal(r.Broken, []string{"w0"}) || !slices.Equal(r.OnlyNew, []string{"w3"}) || !slices.Equal(r.OnlyOld, []string{"w0", "w1"}) {
		t.Errorf("%+v", r)
	}
	if fault.KindOf(r.Check()) != fault.Check {
		t.Errorf("a workload that fails now passes the check")
	}
	old[0].Status = microbench.StatusFailed
	if r := compare(t, old, new); len(r.Broken) != 0 {
		t.Errorf("it failed before too: %+v", r)
	}
}

// Two runs of the same board differ by chance only; that is no regression in
// all but a few of them. Without control of false discoveries nearly every
// pair of 500 workloads would have one.
func TestChanceIsNoRegression(t *testing.T) {
	const trials, workloads, sigma = 100, 500, 0.01
	rng := rand.New(rand.NewPCG(1, 2))
	noisy := func() []microbench.Sample {
		rates := make([]float64, workloads)
		for i := range rates {
			rates[i] = 10 * (1 + sigma*rng.NormFloat64())
		}
		s := run(rates...)
		for i := range s {
			s[i].Low, s[i].High = s[i].Mpps*(1-1.96*sigma), s[i].Mpps*(1+1.96*sigma)
		}
		return s
	}
	bad := 0
	for range trials {
		r, err := Samples(noisy(), noisy(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if r.Regressions > 0 {
			bad++
		}
	}
	if bad > 10 {
		t.Errorf("%d of %d pairs of equal runs have a regression; want at most 10", bad, trials)
	}
}

func TestModels(t *testing.T) {
	value := func(v float64) model.Value {
		return model.Value{Value: v, Low: v * 0.99, High: v * 1.01, Identified: true}
	}
	build := func(bare, core, roof float64) *model.Model {
		return &model.Model{
			Board:     "nfp",
			Bases:     []model.Base{{Name: "forward", BareMpps: value(bare), CoreUS: value(core), LockUS: model.Value{Value: 3}}},
			Rooflines: []model.Roofline{{Memory: "emem", Op: "read", Mode: "bulk", Bytes: 64, Span: 8, Base: "profiling", Roof: value(roof)}},
		}
	}
	r, err := Parameters(build(28, 1, 150), build(28, 1.2, 180), DefaultThreshold)
	if err != nil {
		t.Fatal(err)
	}
	if r.Regressions != 1 || len(r.Changes) != 2 || r.Unchanged != 1 {
		t.Fatalf("%+v", r)
	}
	if c := r.Changes[0]; c.Quantity != "core_us" || !c.Regression {
		t.Errorf("more core time is a regression: %+v", c)
	}
	if c := r.Changes[1]; c.Quantity != "roof_mops" || c.Regression {
		t.Errorf("a higher roof is none: %+v", c)
	}
}

func TestRefusals(t *testing.T) {
	other := run(10)
	other[0].Board = "nfp6000"
	for name, err := range map[string]error{
		"boards":     second(Samples(run(10), other, 1)),
		"no samples": second(Samples(run(10), nil, 1)),
		"models":     second(Parameters(&model.Model{Board: "a"}, &model.Model{Board: "b"}, 1)),
	} {
		if fault.KindOf(err) != fault.Input {
			t.Errorf("%s: %v, want an input fault", name, err)
		}
	}
}

func second(_ Result, err error) error { return err }
