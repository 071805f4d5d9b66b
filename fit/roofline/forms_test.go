package roofline

import (
	"math"
	"math/rand/v2"
	"testing"

	"nicprof/internal/lm"
)

// noisySweep is the curve with a queuing term and a roof, 1 % noise and one
// point in twenty 10 to 40 % low.
func noisySweep(rng *rand.Rand) []Point {
	var points []Point
	for _, i := range []float64{1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32, 48, 64} {
		for range 3 {
			t := min(1/(1/28.0+4.2e-3*i*math.Exp(-2/i)), 180/i) * math.Exp(0.01*rng.NormFloat64())
			if rng.Float64() < 0.05 {
				t *= 1 - 0.1 - 0.3*rng.Float64()
			}
			points = append(points, Point{Intensity: i, Mpps: t})
		}
	}
	return points
}

// The enumerated starts find the best optimum that a hundred random starts
// know of; one start alone misses it in many data sets, each knee being an
// optimum of its own.
func TestStartsFindTheBestOptimum(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	const sets = 60
	missed, missedByOne := 0, 0
	for range sets {
		points := noisySweep(rng)
		cs := curveCandidates(points, Eq2)
		c := cs[len(cs)-1]
		if len(c.free) != 4 {
			t.Fatalf("the last candidate has parameters %v, want all four", c.names)
		}
		random := make([][]float64, 100)
		for k := range random {
			random[k] = []float64{math.Log(0.02 + 0.05*rng.Float64()), 8 * rng.Float64(), math.Log(0.001 + 0.01*rng.Float64()), math.Log(100 + 150*rng.Float64())}
		}
		o := lm.Options{Scale: 0.01}
		objective := func(starts [][]float64) float64 {
			s, _, err := c.fit(points, starts, o)
			if err != nil {
				t.Fatal(err)
			}
			return s.Objective
		}
		best := math.Inf(1)
		for _, q := range random {
			best = min(best, objective([][]float64{q}))
		}
		if objective(c.starts) > best*1.001 {
			missed++
		}
		if objective(random[:1]) > best*1.001 {
			missedByOne++
		}
	}
	t.Logf("of %d data sets the enumerated starts missed the best optimum in %d, one start in %d", sets, missed, missedByOne)
	if missed > 1 || missedByOne < 3 {
		t.Errorf("missed in %d of %d by enumerated starts, in %d by one", missed, sets, missedByOne)
	}
}

func TestGradients(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	log := func(low, high float64) float64 { return math.Log(low + (high-low)*rng.Float64()) }
	for k := range 2000 {
		p := Point{Intensity: float64(rng.IntN(30)), Cores: 1 + rng.IntN(50)}
		q := []float64{log(0.02, 0.07), 8 * rng.Float64(), log(0.001, 0.011), log(100, 250)}
		f, grad := curveLogT, curveGrad
		if k%2 == 0 {
			q = []float64{log(0.2, 0.7), log(0.01, 0.06), log(0.001, 0.01), log(100, 250), log(20, 60), log(4, 50)}
			f, grad = coreLogT, coreGrad
			if k%4 == 0 {
				q[coreSharp] = math.Inf(1)
			}
		}
		g := make([]float64, len(q))
		grad(q)(p, g)
		for j := range q {
			if math.IsInf(q[j], 0) {
				continue
			}
			const h = 1e-6
			up, down := append([]float64{}, q...), append([]float64{}, q...)
			up[j] += h
			down[j] -= h
			if want := (f(up)(p) - f(down)(p)) / (2 * h); math.Abs(g[j]-want) > 1e-5 {
				t.Errorf("∂lnT/∂q[%d] at %v, %+v: %v, by differences %v", j, q, p, g[j], want)
			}
		}
	}
}

// BenchmarkFit is a fit of 15 intensities measured three times each, with the
// choice of the form.
func BenchmarkFit(b *testing.B) {
	points := noisySweep(rand.New(rand.NewPCG(1, 1)))
	for b.Loop() {
		if _, err := Fit(points, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
