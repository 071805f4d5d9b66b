package roofline_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nicprof/fit/roofline"
	"nicprof/internal/fault"
	"nicprof/program"
)

// truth is a curve with known parameters.
type truth struct{ a, b, c, roof float64 }

func (v truth) mpps(i float64) float64 {
	below := v.a
	if i > 0 {
		below += v.c * i * math.Exp(-v.b/i)
	}
	return 1 / max(below, i/v.roof)
}

var none = math.Inf(1) // no roof

func sweep(v truth, is []float64, times int, noise func() float64) []roofline.Point {
	var points []roofline.Point
	for _, i := range is {
		for range times {
			points = append(points, roofline.Point{Intensity: i, Mpps: v.mpps(i) * noise()})
		}
	}
	return points
}

func exact() float64 { return 1 }

// dirty is 1 % noise with one point in twenty 10 to 40 % low.
func dirty(rng *rand.Rand) func() float64 {
	return func() float64 {
		f := math.Exp(0.01 * rng.NormFloat64())
		if rng.Float64() < 0.05 {
			f *= 1 - 0.1 - 0.3*rng.Float64()
		}
		return f
	}
}

var wide = []float64{1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32, 48, 64}

// Nominal 95 % intervals hold the true parameters in 92 to 98 % of 200 data
// sets with 1 % noise and 5 % outliers, the form being chosen from the data.
func TestIntervalsCover(t *testing.T) {
	for name, v := range map[string]truth{
		"eq1":           {0.04, 0, 0.006, 130},
		"eq2":           {0.04, 8, 0.005, none},
		"eq2 and roof ": {1 / 28.0, 2, 0.0042, 180},
	} {
		rng := rand.New(rand.NewPCG(11, 1))
		const sets = 200
		held, told := map[string]float64{}, map[string]float64{}
		for range sets {
			r := fit(t, sweep(v, wide, 3, dirty(rng)), roofline.Options{})
			for _, p := range []struct {
				name      string
				low, high float64
				ok        bool
				want      float64
			}{
				{"a", r.A.Low, r.A.High, r.A.Identified, v.a}, {"b", r.B.Low, r.B.High, r.B.Identified, v.b},
				{"c", r.C.Low, r.C.High, r.C.Identified, v.c}, {"roof", r.Roof.Low, r.Roof.High, r.Roof.Identified, v.roof},
			} {
				if p.ok {
					told[p.name]++
					if p.low <= p.want && p.want <= p.high {
						held[p.name]++
					}
				}
			}
		}
		for _, p := range []struct {
			name  string
			there bool
		}{{"a", true}, {"b", v.b > 0}, {"c", true}, {"roof", v.roof < none}} {
			switch share := held[p.name] / told[p.name]; {
			case !p.there && told[p.name] > sets/20:
				t.Errorf("%s: %s is not in the data and was identified in %v of %d sets", name, p.name, told[p.name], sets)
			case p.there && told[p.name] < 0.95*sets:
				t.Errorf("%s: %s identified in only %v of %d sets", name, p.name, told[p.name], sets)
			case p.there && (share < 0.92 || share > 0.98):
				t.Errorf("%s: the interval of %s holds the truth in %.1f %% of sets, want 92 to 98", name, p.name, 100*share)
			}
		}
	}
}

// Known parameters come back from thousands of curves without noise, and
// nearly so with it; what is reported as identified must be right.
func TestRecoversParameters(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 1))
	uniform := func(low, high float64) float64 { return low + (high-low)*rng.Float64() }
	is := []float64{0, 1, 2, 4, 7, 10, 14, 19, 25}
	const sets = 2000
	told := 0
	for k := range sets {
		v := truth{uniform(0.02, 0.08), 0, math.Exp(uniform(math.Log(0.001), math.Log(0.02))), none}
		form := roofline.Eq1
		if k%2 == 1 {
			form, v.b = roofline.Eq2, uniform(0.5, 20)
		}
		if k%4 == 0 { // a roof with its knee between two and twenty accesses
			knee := uniform(2, 14)
			v.roof = knee / (v.a + v.c*knee*0.9)
			v.c *= 0.7
		}
		noise, tolerance := exact, 0.01
		if k%8 == 5 {
			noise, tolerance = func() float64 { return math.Exp(0.002 * rng.NormFloat64()) }, 1.5
		}
		r := fit(t, sweep(v, is, 1, noise), roofline.Options{Form: form})
		for _, i := range is {
			if e := 100 * math.Abs(r.Mpps(i, 0)/v.mpps(i)-1); e > tolerance {
				t.Errorf("set %d %+v: T(%v) misses by %.3f %%", k, v, i, e)
			}
		}
		if tolerance > 1 {
			continue
		}
		if r.A.Identified && r.C.Identified {
			told++
		}
		for _, p := range []struct {
			name string
			got  float64
			ok   bool
			want float64
		}{{"a", r.A.Value, r.A.Identified, v.a}, {"b", r.B.Value, r.B.Identified, v.b}, {"c", r.C.Value, r.C.Identified, v.c}, {"roof", r.Roof.Value, r.Roof.Identified, v.roof}} {
			if p.ok && math.Abs(p.got/p.want-1) > 0.01 {
				t.Errorf("set %d %+v: %s = %v", k, v, p.name, p.got)
			}
		}
	}
	if told < sets*7/8*9/10 {
		t.Errorf("a and c identified in only %d of %d sets without noise", told, sets*7/8)
	}
}

// The cores form gives back the cost of a packet and of an access on one core,
// the wait, the roof and the ceiling, and names none that the data do not show.
func TestRecoversCoresForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(22, 1))
	tolerance := map[bool]float64{true: 0.1, false: 0.02} // a wait is a small part of the time
	for k := range 12 {
		d0, dm := 0.2+0.5*rng.Float64(), 0.02+0.05*rng.Float64()
		roof, io, sharp := 50/(d0/9+dm)*(0.5+0.4*rng.Float64()), none, 8+20*rng.Float64()
		if k%2 == 0 {
			io = 0.6 * min(roof/2, 50/(d0+2*dm))
		}
		wait := 0.0
		if k%3 == 2 {
			wait, sharp = 1.5/roof, 1e3
		}
		var points []roofline.Point
		for _, i := range []float64{2, 4, 8, 12, 20} {
			for cores := 5; cores <= 50; cores += 5 {
				n, own := float64(cores), d0+i*dm
				u := []float64{(own + math.Sqrt(own*own+4*n*i*i*wait/roof)) / (2 * n), i / roof, 1 / io}
				sum := 0.0
				for _, x := range u {
					sum += math.Pow(x/slices.Max(u), sharp)
				}
				mpps := 1 / (slices.Max(u) * math.Pow(sum, 1/sharp))
				points = append(points, roofline.Point{Intensity: i, Cores: cores, Mpps: mpps * math.Exp(0.001*rng.NormFloat64())})
			}
		}
		r := fit(t, points, roofline.Options{})
		for _, p := range []struct {
			name      string
			got       float64
			ok, there bool
			want      float64
		}{{"d0", r.D0.Value, r.D0.Identified, true, d0}, {"dm", r.Dm.Value, r.Dm.Identified, true, dm},
			{"roof", r.Roof.Value, r.Roof.Identified, true, roof}, {"io", r.IO.Value, r.IO.Identified, io < none, io},
			{"wait", r.Wait.Value, r.Wait.Identified, wait > 0, wait},
			{"a", r.A.Value, r.A.Identified, true, d0 / 50}, {"c", r.C.Value, r.C.Identified, true, dm / 50}} {
			switch {
			case p.ok != p.there:
				t.Errorf("set %d: %s identified: %v, in the data: %v (%+v)", k, p.name, p.ok, p.there, r.Candidates)
			case p.there && math.Abs(p.got/p.want-1) > tolerance[p.name == "wait"]:
				t.Errorf("set %d: %s = %v, want %v", k, p.name, p.got, p.want)
			}
		}
	}
}

// With points below the knee only, the roof is a lower bound and not a number;
// with points on the flat only, so is all but the packet's time.
func TestNotIdentified(t *testing.T) {
	r := fit(t, sweep(truth{0.04, 0, 0.006, 200}, []float64{0, 1, 2, 4, 6, 8, 10}, 1, exact), roofline.Options{})
	if r.Roof.Identified || !strings.Contains(r.Roof.Note, "not identified") || math.Abs(r.Roof.Value-100) > 1e-9 {
		t.Errorf("roof %+v: no point lies past the knee, and the largest rate is 100 Mops/s", r.Roof)
	}
	if !r.A.Identified || !r.C.Identified || math.Abs(r.C.Value-0.006) > 1e-6 {
		t.Errorf("a %+v, c %+v", r.A, r.C)
	}
	r = fit(t, sweep(truth{0.04, 0, 0, none}, []float64{0, 1, 2, 4, 8}, 1, exact), roofline.Options{})
	if !r.A.Identified || r.C.Identified || r.Roof.Identified {
		t.Errorf("flat data: a %+v, c %+v, roof %+v", r.A, r.C, r.Roof)
	}
	r = fit(t, []roofline.Point{{Intensity: 4, Cores: 1, Mpps: 1}, {Intensity: 4, Cores: 2, Mpps: 2}, {Intensity: 4, Cores: 4, Mpps: 4}}, roofline.Options{})
	if !r.D0.Identified || r.Dm.Identified || r.Roof.Identified || r.IO.Identified {
		t.Errorf("one intensity, no knee: d0 %+v, dm %+v, roof %+v, io %+v", r.D0, r.Dm, r.Roof, r.IO)
	}
}

func TestFormIsChosenByHeldOutError(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 1))
	for form, v := range map[string]truth{roofline.Eq1: {0.04, 0, 0.004, 120}, roofline.Eq2: {0.04, 8, 0.005, none}} {
		r := fit(t, sweep(v, wide, 3, dirty(rng)), roofline.Options{})
		if r.Form != form {
			t.Errorf("data of %s are fitted by %s", form, r.Form)
		}
		chosen := 0
		for _, c := range r.Candidates {
			if c.Chosen {
				chosen++
				if c.Form != r.Form || c.HeldOutPct != r.Quality.HeldOutPct {
					t.Errorf("the chosen candidate %+v is not the result's form %s, %v", c, r.Form, r.Quality.HeldOutPct)
				}
			}
		}
		if chosen != 1 || len(r.Candidates) < 4 {
			t.Errorf("%d of %d candidates chosen", chosen, len(r.Candidates))
		}
	}
}

// Both methods reach the same optimum: an error of one would show.
func TestMethodsAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 1))
	for _, v := range []truth{{0.04, 0, 0.006, 130}, {0.04, 8, 0.005, none}, {1 / 28.0, 2, 0.0042, 180}} {
		points := sweep(v, wide, 3, dirty(rng))
		a, b := fit(t, points, roofline.Options{}), fit(t, points, roofline.Options{Method: "nelder-mead"})
		for _, i := range wide {
			if x, y := a.Mpps(i, 0), b.Mpps(i, 0); math.Abs(x/y-1) > 1e-3 {
				t.Errorf("%+v at %v: lm %v, nelder-mead %v", v, i, x, y)
			}
		}
	}
}

// A point with a wide interval of its own pulls less than one measured finely.
func TestIntervalsWeigh(t *testing.T) {
	points := sweep(truth{0.04, 0, 0.006, none}, []float64{1, 2, 4, 8, 16, 25}, 1, exact)
	off := func(low, high float64) float64 {
		ps := slices.Clone(points)
		ps[3].Mpps *= 1.02
		ps[3].Low, ps[3].High = ps[3].Mpps*low, ps[3].Mpps*high
		return fit(t, ps, roofline.Options{Loss: "l2", Form: roofline.Eq1}).Residuals[3].Pct
	}
	if fine, coarse := off(0.999, 1.001), off(0.9, 1.1); coarse <= fine {
		t.Errorf("the point lies %.3f %% off the fit with a narrow interval and %.3f %% with a wide one", fine, coarse)
	}
}

func TestRetrogradeCores(t *testing.T) {
	var points []roofline.Point
	for _, i := range []float64{2, 6} {
		for cores := 1; cores <= 8; cores++ {
			mpps := float64(cores) / (0.5 + 0.1*i)
			if cores > 6 {
				mpps *= 1 - 0.2*float64(cores-6)
			}
			points = append(points, roofline.Point{Intensity: i, Cores: cores, Mpps: mpps})
		}
	}
	r := fit(t, points, roofline.Options{})
	if len(r.Falls) != 2 || r.Falls[0].Best.Cores != 6 || r.Falls[0].Last.Cores != 8 {
		t.Fatalf("falls %+v, want the best point on 6 cores at both intensities", r.Falls)
	}
	if !r.D0.Identified || math.Abs(r.D0.Value-0.5) > 1e-3 || len(r.Residuals) != 12 {
		t.Errorf("d0 %+v from %d points; the points past the best are left out", r.D0, len(r.Residuals))
	}
	if !strings.Contains(strings.Join(r.Findings, "\n"), "retrograde") {
		t.Errorf("findings %q", r.Findings)
	}
}

func TestRetrogradeRate(t *testing.T) {
	points := sweep(truth{0.04, 0, 0.004, 120}, []float64{1, 2, 4, 8, 12, 16, 20}, 1, exact)
	points = append(points, roofline.Point{Intensity: 25, Mpps: 3.6}) // 90 Mops/s after 120
	r := fit(t, points, roofline.Options{})
	if len(r.Falls) != 1 || r.Falls[0].Last.Intensity != 25 || r.Falls[0].Best.Rate() < 119 {
		t.Errorf("falls %+v, want from the roof of 120 Mops/s to 90 at 25 accesses", r.Falls)
	}
}

// A noisy plateau is no fall.
func TestPlateauIsNotRetrograde(t *testing.T) {
	if r := fit(t, xdpRates(t, program.Read, func(float64, int) bool { return true }), roofline.Options{}); len(r.Falls) > 0 {
		t.Errorf("falls %+v on a plateau within 0.4 %%", r.Falls)
	}
}

func TestPointAboveRoofIsAFinding(t *testing.T) {
	points := sweep(truth{0.04, 0, 0.004, 120}, wide, 1, exact)
	points[10].Mpps *= 1.15
	points[10].Label = "line 12"
	r := fit(t, points, roofline.Options{})
	if math.Abs(r.Roof.Value-120) > 0.5 {
		t.Errorf("roof %+v, want 120: one point does not move it", r.Roof)
	}
	if len(r.Findings) != 1 || !strings.Contains(r.Findings[0], "above the roof") || !strings.Contains(r.Findings[0], "line 12") {
		t.Errorf("findings %q", r.Findings)
	}
	if x := r.Residuals[10]; !x.Outlier || math.Abs(x.Pct-15) > 0.5 || x.Point.Mpps != points[10].Mpps {
		t.Errorf("residual %+v: kept as measured, 15 %% above", x)
	}
	if r.Quality.Outliers != 1 || r.Quality.MaxPct < 12 {
		t.Errorf("quality %+v hides it", r.Quality)
	}
}

func TestQuality(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 1))
	v := truth{0.04, 8, 0.005, none}
	r := fit(t, sweep(v, wide, 3, func() float64 { return math.Exp(0.01 * rng.NormFloat64()) }), roofline.Options{})
	if q := r.Quality; q.N != 45 || q.R2 < 0.99 || q.R2 > 1 || q.MAPE < 0.5 || q.MAPE > 1.2 || q.ResidualScale < 0.006 || q.ResidualScale > 0.014 || q.HeldOutPct < q.MAPE*0.9 {
		t.Errorf("1 %% noise: %+v", q)
	}
}

// The bootstrap, made from resampled residuals, agrees with the intervals of
// the covariance to a factor of two.
func TestBootstrapAgrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(61, 1))
	points := sweep(truth{0.04, 0, 0.006, 130}, wide, 3, dirty(rng))
	r := fit(t, points, roofline.Options{Bootstrap: 200, Seed: 1})
	if len(r.Bootstrap) != 3 {
		t.Fatalf("%+v, want a, c and roof", r.Bootstrap)
	}
	for k, v := range []struct{ low, high float64 }{{r.A.Low, r.A.High}, {r.C.Low, r.C.High}, {r.Roof.Low, r.Roof.High}} {
		if ratio := (r.Bootstrap[k].High - r.Bootstrap[k].Low) / (v.high - v.low); ratio < 0.5 || ratio > 2 {
			t.Errorf("%+v, by covariance %+v", r.Bootstrap[k], v)
		}
	}
	again := fit(t, points, roofline.Options{Bootstrap: 200, Seed: 1})
	if !reflect.DeepEqual(r.Bootstrap, again.Bootstrap) {
		t.Error("the same seed gives another bootstrap")
	}
	if other := fit(t, points, roofline.Options{Bootstrap: 200, Seed: 2}); reflect.DeepEqual(r.Bootstrap, other.Bootstrap) {
		t.Error("another seed gives the same bootstrap")
	}
}

func TestSameInputSameBytes(t *testing.T) {
	points := xdpRates(t, program.Read, func(float64, int) bool { return true })
	a, err := json.Marshal(fit(t, points, roofline.Options{Bootstrap: 10}))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if b, _ := json.Marshal(fit(t, points, roofline.Options{Bootstrap: 10})); string(a) != string(b) {
			t.Fatalf("the same points fitted again differ:\n%s\n%s", a, b)
		}
	}
}

func TestBadInput(t *testing.T) {
	good := sweep(truth{0.04, 0, 0.006, 130}, []float64{1, 2, 4, 8, 16}, 1, exact)
	with := func(change func(p []roofline.Point)) []roofline.Point {
		ps := slices.Clone(good)
		change(ps)
		return ps
	}
	for name, c := range map[string]struct {
		points []roofline.Point
		o      roofline.Options
		want   string
	}{
		"no point":       {nil, roofline.Options{}, "0 usable"},
		"one point":      {good[:1], roofline.Options{}, "at least 3"},
		"one intensity":  {[]roofline.Point{good[0], good[0], good[0], good[0]}, roofline.Options{}, "2 or more intensities"},
		"all zero":       {make([]roofline.Point, 5), roofline.Options{}, "above 0"},
		"NaN":            {with(func(p []roofline.Point) { p[2].Mpps = math.NaN() }), roofline.Options{}, "point 3"},
		"infinite":       {with(func(p []roofline.Point) { p[2].Mpps = none }), roofline.Options{}, "point 3"},
		"negative":       {with(func(p []roofline.Point) { p[1].Mpps = -1 }), roofline.Options{}, "point 2"},
		"intensity":      {with(func(p []roofline.Point) { p[1].Intensity = -1 }), roofline.Options{}, "intensity"},
		"intensity NaN":  {with(func(p []roofline.Point) { p[1].Intensity = math.NaN() }), roofline.Options{}, "intensity"},
		"interval":       {with(func(p []roofline.Point) { p[1].Low, p[1].High = 1, 2 }), roofline.Options{}, "interval"},
		"interval NaN":   {with(func(p []roofline.Point) { p[1].High = math.NaN() }), roofline.Options{}, "interval"},
		"cores":          {with(func(p []roofline.Point) { p[1].Cores = -4 }), roofline.Options{}, "cores"},
		"some cores":     {with(func(p []roofline.Point) { p[1].Cores = 4 }), roofline.Options{}, "for all or for none"},
		"method":         {good, roofline.Options{Method: "bfgs"}, "nelder-mead"},
		"loss":           {good, roofline.Options{Loss: "tukey"}, "cauchy"},
		"form":           {good, roofline.Options{Form: "eq3"}, "eq1"},
		"bootstrap":      {good, roofline.Options{Bootstrap: -1}, "bootstrap"},
		"form and cores": {with(func(p []roofline.Point) { p[0].Cores, p[1].Cores, p[2].Cores, p[3].Cores, p[4].Cores = 1, 2, 3, 4, 5 }), roofline.Options{Form: roofline.Eq1}, "number"},
	} {
		_, err := roofline.Fit(c.points, c.o)
		if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an input fault with %q", name, err, c.want)
		}
	}
}

// The plain roofline, flat up to its knee and then on its roof, has no cost of
// an access: both of its numbers come back, from four places on.
func TestPlainRooflineComesBack(t *testing.T) {
	for _, at := range [][]float64{{1, 4, 10, 25}, {1, 2, 3, 4, 5, 8, 10, 15, 20, 25}} {
		for _, noise := range []float64{0, 0.002} {
			scatter := rand.New(rand.NewPCG(1, 2))
			var points []roofline.Point
			for _, i := range at {
				points = append(points, roofline.Point{Intensity: i, Cores: 54, Mpps: min(25, 130/i) * (1 + noise*scatter.NormFloat64())})
			}
			r := fit(t, points, roofline.Options{})
			if !r.A.Identified || math.Abs(r.A.Value/0.04-1) > 0.01 || !r.Roof.Identified || math.Abs(r.Roof.Value/130-1) > 0.01 {
				t.Errorf("%d places, noise %g: a %+v, roof %+v; want 0.04 and 130", len(at), noise, r.A, r.Roof)
			}
			if r.Quality.MAPE > 0.5 || r.Quality.Outliers > 0 {
				t.Errorf("%d places, noise %g: mean error %.2f %%, %d outliers", len(at), noise, r.Quality.MAPE, r.Quality.Outliers)
			}
		}
	}
}
