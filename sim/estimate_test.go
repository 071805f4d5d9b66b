package sim_test

import (
	"math"
	"testing"

	"nicprof/sim"

	"pgregory.net/rapid"
)

// autoregressive yields x' = 100 + r (x - 100) + noise from a start: a process
// of mean 100 whose correlation and initial bias are known.
func autoregressive(seed uint64, r, start float64) func() float64 {
	s := sim.NewStream(seed, "autoregressive")
	x := start
	return func() float64 {
		x = 100 + r*(x-100) + s.NormFloat64()
		return x
	}
}

func series(n int, next func() float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = next()
	}
	return x
}

func TestReplicationsIsStudentsInterval(t *testing.T) {
	// Mean 3, standard deviation sqrt(2.5), t(0.975; 4) = 2.776445 by the tables.
	got := sim.Replications([]float64{1, 2, 3, 4, 5}, .95)
	half := 2.776445 * math.Sqrt(2.5/5)
	if math.Abs(got.Mean-3) > 1e-12 || math.Abs(got.Half()-half) > 1e-5 || math.Abs(got.High-3-half) > 1e-5 {
		t.Errorf("got %+v, want 3 ± %v", got, half)
	}
	for _, x := range [][]float64{nil, {7}} {
		if i := sim.Replications(x, .95); !math.IsInf(i.Half(), 1) {
			t.Errorf("%d observations give the bounded interval %+v", len(x), i)
		}
	}
}

func TestBatchMeansAreWiderThanNaive(t *testing.T) {
	x := series(10_000, autoregressive(1, .9, 100))
	// The standard error of AR(1) is sqrt((1+r)/(1-r)) = 4.36 times the naive one.
	ratio := sim.BatchMeans(x, 20, .95).Half() / sim.Replications(x, .95).Half()
	if ratio < 3 || ratio > 6.5 {
		t.Errorf("batch means are %.2f times as wide as independent observations, want about 4.4", ratio)
	}
}

func TestWarmupIsRemoved(t *testing.T) {
	for seed := range uint64(20) {
		// A bias of 60 standard deviations that has decayed to one after 145.
		x := series(2000, autoregressive(seed, .97, 350))
		drop, steady := sim.Warmup(x)
		if !steady || drop < 80 || drop > 400 || drop%5 != 0 {
			t.Errorf("seed %d: dropped %d, steady %v", seed, drop, steady)
		}
	}
	if drop, steady := sim.Warmup(series(2000, autoregressive(1, 0, 100))); !steady || drop > 500 {
		t.Errorf("a run without a warm-up loses %d of 2000, steady %v", drop, steady)
	}
	if drop, steady := sim.Warmup(make([]float64, 100)); !steady || drop != 0 {
		t.Errorf("a constant run loses %d, steady %v", drop, steady)
	}
}

func TestUnsteadyRunsAreRecognised(t *testing.T) {
	noise := sim.NewStream(1, "noise")
	for name, f := range map[string]func(i int) float64{
		"growing":     func(i int) float64 { return float64(i) },
		"two regimes": func(i int) float64 { return 100 + 50*float64(i/600) + noise.NormFloat64() },
		"too short":   func(i int) float64 { return 1000 * math.Exp(-float64(i)/1000) },
	} {
		i := -1
		if e := sim.Steady(series(1000, func() float64 { i++; return f(i) }), .95); e.Steady {
			t.Errorf("%s: taken as steady: %+v", name, e)
		}
	}
	if e := sim.Steady([]float64{1, 2, 3}, .95); e.Steady {
		t.Errorf("three observations taken as steady: %+v", e)
	}
	unsteady := 0
	for seed := range uint64(200) {
		if !sim.Steady(series(2000, autoregressive(seed, .5, 100)), .95).Steady {
			unsteady++
		}
	}
	if unsteady > 8 { // the test is at the 1 % level
		t.Errorf("%d of 200 stationary runs taken as unsteady", unsteady)
	}
}

// TestPrecisionRunsUntilNarrow: runs stop when, and not long after, the
// interval is as narrow as asked, and the intervals still cover the mean.
func TestPrecisionRunsUntilNarrow(t *testing.T) {
	p := sim.Precision{Level: .95, Relative: .001, Min: 200, Max: 1_000_000}
	covered, total := 0, 0
	for seed := range uint64(200) {
		e := p.Run(autoregressive(seed, .8, 130))
		if !e.Precise || e.Half() > .1 || e.Dropped+e.Used >= p.Max {
			t.Fatalf("seed %d: %+v", seed, e)
		}
		if e.Contains(100) {
			covered++
		}
		total += e.Dropped + e.Used
	}
	// A half-width of 0.1 needs (2.09 × 5 / 0.1)² = 10 900 observations after the
	// warm-up, if their standard error were known.
	if mean := total / 200; mean < 5000 || mean > 22_000 {
		t.Errorf("%d observations on average", mean)
	}
	if covered < 178 { // 190 less four standard deviations
		t.Errorf("the 95 %% interval covers the mean in %d of 200 runs", covered)
	}

	made := 0
	next := autoregressive(1, .8, 100)
	e := sim.Precision{Level: .95, Relative: 1e-9, Min: 100, Max: 1234}.Run(func() float64 { made++; return next() })
	if e.Precise || made != 1234 {
		t.Errorf("after %d observations of at most 1234: %+v", made, e)
	}
}

// TestWarmupIgnoresUnits: the cut does not depend on the scale of the
// observations, nor on their origin.
func TestWarmupIgnoresUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := series(rapid.IntRange(0, 500).Draw(t, "n"), autoregressive(rapid.Uint64().Draw(t, "seed"), .7, 150))
		// Powers of two scale without rounding.
		scale := math.Ldexp(1, rapid.IntRange(-20, 20).Draw(t, "scale"))
		y := make([]float64, len(x))
		for i := range x {
			y[i] = x[i] * scale
		}
		drop, steady := sim.Warmup(x)
		scaled, scaledSteady := sim.Warmup(y)
		if drop != scaled || steady != scaledSteady {
			t.Fatalf("cut %d, %v; scaled by %v: %d, %v", drop, steady, scale, scaled, scaledSteady)
		}
		if drop < 0 || drop > len(x) {
			t.Fatalf("cut %d of %d", drop, len(x))
		}
	})
}
