package locks_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"nicprof/fit/locks"
	"nicprof/internal/fault"
)

// Whatever the points, the answer is an input fault or a result of finite
// numbers whose intervals hold their values.
func TestAnyPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mpps := rapid.OneOf(rapid.Float64Range(0.01, 60), rapid.SampledFrom([]float64{1e-9, 1, 20, 1e9}))
		points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) locks.Point {
			p := locks.Point{Elements: rapid.IntRange(1, 300).Draw(t, "k"), Mpps: mpps.Draw(t, "mpps")}
			if w := rapid.SampledFrom([]float64{0, 1e-12, 0.01, 1}).Draw(t, "w"); w > 0 {
				p.Low, p.High = p.Mpps*(1-w), p.Mpps*(1+w)
			}
			return p
		}), 0, 14).Draw(t, "points")
		o := locks.Options{}
		if rapid.Bool().Draw(t, "free") {
			o.LockFree.Mpps = mpps.Draw(t, "lock-free")
		}
		r, err := locks.Fit(points, o)
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
		}{"T_lock": {r.TLock.Low, r.TLock.Value, r.TLock.High, r.TLock.Identified}, "lock-free": {r.LockFree.Low, r.LockFree.Value, r.LockFree.High, r.LockFree.Identified},
			"N_thread": {r.NThread.Low, r.NThread.Value, r.NThread.High, r.NThread.Identified}} {
			if v.ok && !(0 <= v.low && v.low <= v.value && v.value <= v.high) {
				t.Fatalf("%s: %+v", name, v)
			}
		}
	})
}
