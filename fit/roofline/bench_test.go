package roofline

import (
	"math"
	"math/rand/v2"
	"testing"
)

// BenchmarkFit is a fit of 15 intensities in three repetitions with 1 % noise.
func BenchmarkFit(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	var ps []Point
	for _, i := range []float64{1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32, 48, 64} {
		for range 3 {
			t := min(1/(1/28.0+4.2e-3*i*math.Exp(-2/i)), 180/i)
			ps = append(ps, Point{Intensity: i, Mpps: t * math.Exp(0.01*rng.NormFloat64())})
		}
	}
	for b.Loop() {
		if _, err := Fit(ps, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
