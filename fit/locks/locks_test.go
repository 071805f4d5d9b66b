package locks_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"nicprof/fit/locks"
	"nicprof/internal/fault"
)

var elements = []int{1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 96, 128}

func eq6(tLock, free float64, noise func() float64) []locks.Point {
	var points []locks.Point
	for _, k := range elements {
		points = append(points, locks.Point{Elements: k, Mpps: min(float64(k)*tLock, free) * noise()})
	}
	return points
}

func fit(t *testing.T, points []locks.Point, o locks.Options) locks.Result {
	t.Helper()
	r, err := locks.Fit(points, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The paper's two numbers (section 5.2): 0.45 Mpps a flow, 23.33 without
// locks, linear in between; their ratio is the N_thread of Eq. 6, 51.8.
func TestPaperNumbers(t *testing.T) {
	r := fit(t, eq6(0.45, 23.33, func() float64 { return 1 }), locks.Options{LockFree: locks.Point{Mpps: 23.33}})
	if math.Abs(r.TLock.Value-0.45) > 1e-6 || math.Abs(r.NThread.Value-51.8) > 0.1 || r.LinearTo != 48 {
		t.Errorf("T_lock %v, N_thread %v, linear to %d; want 0.45, 51.8, 48", r.TLock.Value, r.NThread.Value, r.LinearTo)
	}
	if r.Quality.MaxPct > 1e-6 || r.Jump != nil || r.Fall != nil {
		t.Errorf("a curve of Eq. 6 itself: %+v", r)
	}
}

// Known parameters come back from thousands of noisy curves, and the interval
// of T_lock holds the truth.
func TestRecoversParameters(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	const sets = 3000
	held := 0
	for k := range sets {
		free := 5 + 25*rng.Float64()
		tLock := free / (4 + 90*rng.Float64())
		o := locks.Options{LockFree: locks.Point{Mpps: free}}
		if k%2 == 0 && free/tLock < 60 {
			o.LockFree = locks.Point{} // from the plateau
		}
		points := eq6(tLock, free, func() float64 { return math.Exp(0.005 * rng.NormFloat64()) })
		if k%3 == 0 && free/tLock > 10 { // two places cannot outvote one
			points[rng.IntN(2)].Mpps *= 0.7 // a stray
		}
		r := fit(t, points, o)
		if !r.TLock.Identified || math.Abs(r.TLock.Value/tLock-1) > 0.03 {
			t.Errorf("set %d: T_lock %+v, want %v", k, r.TLock, tLock)
		}
		if !r.NThread.Identified || math.Abs(r.NThread.Value/(free/tLock)-1) > 0.04 {
			t.Errorf("set %d: N_thread %+v, want %v", k, r.NThread, free/tLock)
		}
		if r.TLock.Low <= tLock && tLock <= r.TLock.High {
			held++
		}
	}
	if share := float64(held) / sets; share < 0.90 || share > 0.985 {
		t.Errorf("the interval of T_lock holds the truth in %.1f %% of sets", 100*share)
	}
}

// A spinning lock measured on a simulated card (8 contexts, empty section):
// linear to 32 elements, then at once on the plateau.
func TestJump(t *testing.T) {
	var points []locks.Point
	for _, p := range []struct {
		k    int
		mpps float64
	}{{1, .450}, {2, .899}, {4, 1.80}, {8, 3.59}, {16, 7.20}, {24, 10.97}, {32, 15.07}, {40, 23.1}, {52, 23.5}} {
		points = append(points, locks.Point{Elements: p.k, Mpps: p.mpps})
	}
	r := fit(t, points, locks.Options{LockFree: locks.Point{Mpps: 23.48}})
	if r.LinearTo != 32 || r.Jump == nil || r.Jump.Elements != 40 || math.Abs(r.TLock.Value-0.45) > 0.005 {
		t.Errorf("T_lock %v, linear to %d, jump %+v; want 0.45, 32 and a jump at 40", r.TLock.Value, r.LinearTo, r.Jump)
	}
	if !strings.Contains(strings.Join(r.Findings, "\n"), "jump") {
		t.Errorf("findings %q", r.Findings)
	}
	if r.Quality.MAPE < 1 || r.Quality.MAPE > 10 {
		t.Errorf("Eq. 6 misses the jump by %.1f %% on average: %+v", r.Quality.MAPE, r.Quality)
	}
}

func TestBend(t *testing.T) {
	points := []locks.Point{{Elements: 1, Mpps: .46}, {Elements: 8, Mpps: 3.7}, {Elements: 24, Mpps: 11}, {Elements: 52, Mpps: 19.1}, {Elements: 64, Mpps: 21.4}, {Elements: 128, Mpps: 24.6}}
	r := fit(t, points, locks.Options{LockFree: locks.Point{Mpps: 24.8}})
	if r.LinearTo != 24 || r.Jump != nil {
		t.Errorf("linear to %d, jump %+v; want a bend after 24", r.LinearTo, r.Jump)
	}
}

func TestRetrograde(t *testing.T) {
	points := eq6(1, 20, func() float64 { return 1 })
	for i := range points {
		if points[i].Elements > 48 {
			points[i].Mpps *= 0.8
		}
	}
	r := fit(t, points, locks.Options{LockFree: locks.Point{Mpps: 20}})
	if r.Fall == nil || r.Fall.Best.Mpps != 20 || r.Fall.Best.Elements != 24 || r.Fall.Last.Elements != 128 {
		t.Errorf("fall %+v, want from 20 Mpps at 24 elements to 16 at 128", r.Fall)
	}
	if noisy := fit(t, eq6(1, 20, func() float64 { return 1 }), locks.Options{}); noisy.Fall != nil {
		t.Errorf("a plateau is no fall: %+v", noisy.Fall)
	}
}

func TestNotIdentified(t *testing.T) {
	flat := []locks.Point{{Elements: 8, Mpps: 20}, {Elements: 16, Mpps: 20.1}, {Elements: 32, Mpps: 19.9}}
	r := fit(t, flat, locks.Options{LockFree: locks.Point{Mpps: 20}})
	if r.TLock.Identified || r.NThread.Identified || math.Abs(r.TLock.Value-2.5) > 1e-9 {
		t.Errorf("no element count below the bound: T_lock %+v; all that is known is at least 2.5", r.TLock)
	}
	steep := []locks.Point{{Elements: 1, Mpps: .45}, {Elements: 2, Mpps: .9}, {Elements: 4, Mpps: 1.8}}
	r = fit(t, steep, locks.Options{})
	if !r.TLock.Identified || r.LockFree.Identified || r.NThread.Identified || r.LockFree.Value != 1.8 {
		t.Errorf("no plateau: lock-free %+v, N_thread %+v; all that is known is at least 1.8", r.LockFree, r.NThread)
	}
	if r.Mpps(10) < 4.4 {
		t.Errorf("T(10) = %v is cut at a bound that is not identified", r.Mpps(10))
	}
}

func TestRepetitionsAndOwnIntervals(t *testing.T) {
	points := []locks.Point{{Elements: 1, Mpps: 1, Low: 0.9, High: 1.1}, {Elements: 1, Mpps: 1.02, Low: 0.9, High: 1.1}, {Elements: 100, Mpps: 20}}
	r := fit(t, points, locks.Options{LockFree: locks.Point{Mpps: 20}})
	if half := (r.TLock.High - r.TLock.Low) / 2; math.Abs(r.TLock.Value-1.01) > 1e-9 || half < 0.05 || half > 0.15 {
		t.Errorf("one element, measured twice to ± 10 %%: %+v", r.TLock)
	}
}

func TestTwoRegimesAreLeftOut(t *testing.T) {
	points := eq6(0.45, 23.33, func() float64 { return 1 })
	points[3].Mpps *= 0.7
	points[3].Label, points[3].Warnings = "third line", []string{"regimes in time: 3.6, then 1.4"}
	r := fit(t, points, locks.Options{LockFree: locks.Point{Mpps: 23.33}})
	if r.Quality.N != len(points)-1 || r.Quality.MaxPct > 1e-6 || len(r.Findings) != 1 || !strings.Contains(r.Findings[0], "third line") {
		t.Errorf("%+v", r)
	}
}

func TestAboveLockFreeIsAFinding(t *testing.T) {
	points := eq6(0.45, 23.33, func() float64 { return 1 })
	points[12].Mpps = 26
	r := fit(t, points, locks.Options{LockFree: locks.Point{Mpps: 23.33, Low: 23.2, High: 23.5}})
	if !slices.ContainsFunc(r.Findings, func(f string) bool { return strings.Contains(f, "above the lock-free rate") }) {
		t.Errorf("findings %q", r.Findings)
	}
}

func TestBadInput(t *testing.T) {
	good := eq6(0.45, 23.33, func() float64 { return 1 })
	with := func(p locks.Point) []locks.Point { return append(slices.Clone(good), p) }
	for name, c := range map[string]struct {
		points []locks.Point
		o      locks.Options
		want   string
	}{
		"no point":         {nil, locks.Options{}, "at least 2"},
		"one point":        {good[:1], locks.Options{}, "at least 2"},
		"one place":        {[]locks.Point{good[0], good[0]}, locks.Options{}, "at least 2"},
		"all zero":         {make([]locks.Point, 3), locks.Options{}, "expected 1 or more"},
		"zero":             {with(locks.Point{Elements: 3}), locks.Options{}, "above 0"},
		"NaN":              {with(locks.Point{Elements: 3, Mpps: math.NaN()}), locks.Options{}, "point 14"},
		"infinite":         {with(locks.Point{Elements: 3, Mpps: math.Inf(1)}), locks.Options{}, "above 0"},
		"negative":         {with(locks.Point{Elements: 3, Mpps: -2}), locks.Options{}, "above 0"},
		"elements":         {with(locks.Point{Elements: -3, Mpps: 2}), locks.Options{}, "lock elements"},
		"interval":         {with(locks.Point{Elements: 3, Mpps: 2, Low: 3, High: 4}), locks.Options{}, "interval"},
		"interval NaN":     {with(locks.Point{Elements: 3, Mpps: 2, Low: math.NaN(), High: 4}), locks.Options{}, "interval"},
		"lock-free":        {good, locks.Options{LockFree: locks.Point{Mpps: -1}}, "lock-free"},
		"lock-free NaN":    {good, locks.Options{LockFree: locks.Point{Mpps: math.NaN()}}, "lock-free"},
		"tolerance":        {good, locks.Options{Tolerance: 2}, "tolerance"},
		"tolerance is NaN": {good, locks.Options{Tolerance: math.NaN()}, "tolerance"},
	} {
		_, err := locks.Fit(c.points, c.o)
		if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an input fault with %q", name, err, c.want)
		}
	}
}
