package stats

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// series returns n values at level with relative normal noise, some of them
// wild (as the packet rates of real boards have).
func series(rng *rand.Rand, n int, level, noise float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = level * (1 + noise*rng.NormFloat64())
		if rng.IntN(12) == 0 {
			xs[i] = level * (1 - 8*noise)
		}
	}
	return xs
}

func TestSteadySeriesHasNoFindings(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for k := range 500 {
		n := 5 + rng.IntN(300)
		noise := []float64{0, 0.0005, 0.003, 0.02}[k%4]
		if f := InTime(series(rng, n, 40, noise)); len(f) > 0 {
			t.Errorf("series %d of %d values with noise %v: %s", k, n, noise, f[0].Text)
		}
	}
}

func TestRegimesAreFoundWhereTheyChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		n := rapid.IntRange(40, 400).Draw(t, "n")
		at := int(float64(n) * rapid.Float64Range(0.25, 0.75).Draw(t, "at"))
		step := rapid.Float64Range(0.05, 0.6).Draw(t, "step")
		if rapid.Bool().Draw(t, "down") {
			step = -step
		}
		xs := append(series(rng, at, 50, 0.002), series(rng, n-at, 50*(1+step), 0.002)...)
		f := InTime(xs)
		if len(f) != 1 || f[0].Kind != Regimes || len(f[0].Segments) != 2 {
			t.Fatalf("a step of %+.0f %% at %d of %d: %+v", 100*step, at, n, f)
		}
		a, b := f[0].Segments[0], f[0].Segments[1]
		if a.First != 1 || b.Last != n || b.First != a.Last+1 || math.Abs(float64(a.Last-at)) > 2 {
			t.Fatalf("segments %+v of a step at %d of %d", f[0].Segments, at, n)
		}
		if math.Abs(a.Level/50-1) > 0.01 || math.Abs(b.Level/(50*(1+step))-1) > 0.01 {
			t.Fatalf("levels %v and %v, want 50 and %v", a.Level, b.Level, 50*(1+step))
		}
		if !IsRegimes([]string{"other", f[0].Text}) {
			t.Fatalf("%q is not recognised as a regimes warning", f[0].Text)
		}
	})
}

func TestThreeRegimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	xs := series(rng, 100, 50, 0.002)
	xs = append(xs, series(rng, 80, 35, 0.002)...)
	xs = append(xs, series(rng, 120, 50, 0.002)...)
	f := InTime(xs)
	if len(f) != 1 || len(f[0].Segments) != 3 || f[0].Segments[1].First != 101 || f[0].Segments[1].Last != 180 {
		t.Errorf("50, 35, then 50 again: %+v", f)
	}
}

func TestDrift(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for _, n := range []int{30, 300, 1000} {
		for _, total := range []float64{0.05, -0.1} {
			xs := series(rng, n, 50, 0.002)
			for i := range xs {
				xs[i] *= 1 + total*float64(i)/float64(n-1)
			}
			f := InTime(xs)
			if len(f) != 1 || f[0].Kind != Drift || !strings.HasPrefix(f[0].Text, Drift) || IsRegimes([]string{f[0].Text}) {
				t.Errorf("drift of %+.0f %% over %d values: %+v", 100*total, n, f)
			}
		}
	}
}

func TestSmallChangesAreNoFindings(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	step := append(series(rng, 150, 50, 0.0002), series(rng, 150, 50*1.005, 0.0002)...)
	spikes := series(rng, 100, 50, 0.001)
	for i := 60; i < 64; i++ {
		spikes[i] = 20
	}
	for what, xs := range map[string][]float64{
		"step of 0.5 %":        step,
		"four wild values":     spikes,
		"nine values, a step":  {1, 1, 1, 1, 1, 2, 2, 2, 2},
		"zeros":                make([]float64, 50),
		"not a finite number":  append(make([]float64, 20), math.NaN()),
		"fewer than MinSeries": {1, 2},
	} {
		if f := InTime(xs); len(f) > 0 {
			t.Errorf("%s: %s", what, f[0].Text)
		}
	}
}
