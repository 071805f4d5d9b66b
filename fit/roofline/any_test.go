package roofline_test

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"

	"nicprof/fit/roofline"
	"nicprof/internal/fault"
)

// Whatever the points, the answer is an input fault or a result of finite
// numbers whose intervals hold their values.
func TestAnyPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		withCores := rapid.Bool().Draw(t, "cores")
		intensity := rapid.OneOf(rapid.Float64Range(1e-6, 64), rapid.SampledFrom([]float64{0, 1, 2, 4, 8, 16, 1e-6, 1e6}))
		mpps := rapid.OneOf(rapid.Float64Range(0.1, 60), rapid.SampledFrom([]float64{1e-9, 1e-3, 1, 20, 1e9}))
		points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) roofline.Point {
			p := roofline.Point{Intensity: intensity.Draw(t, "i"), Mpps: mpps.Draw(t, "mpps")}
			if withCores {
				p.Cores = rapid.IntRange(1, 60).Draw(t, "n")
			}
			if w := rapid.SampledFrom([]float64{0, 1e-12, 0.01, 1}).Draw(t, "w"); w > 0 {
				p.Low, p.High = p.Mpps*(1-w), p.Mpps*(1+w)
			}
			return p
		}), 0, 14).Draw(t, "points")
		o := roofline.Options{Method: rapid.SampledFrom([]string{"lm", "lm", "lm", "nelder-mead"}).Draw(t, "method"), Loss: rapid.SampledFrom([]string{"cauchy", "huber", "l2"}).Draw(t, "loss")}
		r, err := roofline.Fit(points, o)
		if err != nil {
			if fault.KindOf(err) != fault.Input {
				t.Fatalf("%v is no input fault", err)
			}
			return
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		for name, v := range map[string]struct {
			low, value, high float64
			ok               bool
		}{"a": {r.A.Low, r.A.Value, r.A.High, r.A.Identified}, "b": {r.B.Low, r.B.Value, r.B.High, r.B.Identified}, "c": {r.C.Low, r.C.Value, r.C.High, r.C.Identified},
			"roof": {r.Roof.Low, r.Roof.Value, r.Roof.High, r.Roof.Identified}, "d0": {r.D0.Low, r.D0.Value, r.D0.High, r.D0.Identified}} {
			if v.ok && !(0 <= v.low && v.low <= v.value && v.value <= v.high) {
				t.Fatalf("%s: %+v", name, v)
			}
		}
		for _, p := range points {
			if m := r.Mpps(p.Intensity, p.Cores); !(m > 0) || math.IsInf(m, 0) {
				t.Fatalf("T(%v) = %v", p, m)
			}
		}
	})
}
