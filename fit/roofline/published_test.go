package roofline_test

import (
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"nicprof/fit/curves"
	"nicprof/fit/roofline"
	"nicprof/internal/lm"
	"nicprof/microbench"
	"nicprof/program"
)

func point(s microbench.Sample) roofline.Point {
	return roofline.Point{Intensity: s.Program.Accesses[0].PerPacket, Mpps: s.Mpps, Low: s.Low, High: s.High, Cores: s.Cores, Label: s.Key, Warnings: s.Warnings}
}

// xdpRates are the published rates of op that keep wants.
func xdpRates(t *testing.T, op program.Op, keep func(i float64, cores int) bool) []roofline.Point {
	t.Helper()
	samples, _, err := curves.Read("testdata/xdp_rates.csv", map[string]string{"memory": "emem", "mode": "atomic", "bytes": "8", "span": "1024"})
	if err != nil {
		t.Fatal(err)
	}
	var points []roofline.Point
	for _, s := range samples {
		if p := point(s); s.Program.Accesses[0].Op == op && keep(p.Intensity, p.Cores) {
			points = append(points, p)
		}
	}
	return points
}

func fit(t *testing.T, points []roofline.Point, o roofline.Options) roofline.Result {
	t.Helper()
	r, err := roofline.Fit(points, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// errors are the mean and the largest absolute error of predict on points, per
// cent.
func errors(points []roofline.Point, predict func(roofline.Point) float64) (mean, worst float64) {
	for _, p := range points {
		e := 100 * math.Abs(predict(p)/p.Mpps-1)
		mean, worst = mean+e/float64(len(points)), max(worst, e)
	}
	return mean, worst
}

// A fit to 4 and 12 reads a packet predicts 8 on 5 to 50 cores, better at its
// worst, which is at the knee, than the minimum of three numbers. What it finds
// is the machine: the wait of an access at a full memory is the memory's own
// service time, and the I/O ceiling is the firmware's some 50 Mpps.
func TestPredictsUnseenIntensity(t *testing.T) {
	seen := xdpRates(t, program.Read, func(i float64, _ int) bool { return i != 8 })
	unseen := xdpRates(t, program.Read, func(i float64, _ int) bool { return i == 8 })
	meanBare, worstBare := errors(unseen, bareRoofline(t, seen))
	for _, method := range []string{"lm", "nelder-mead"} {
		r := fit(t, seen, roofline.Options{Method: method})
		mean, worst := errors(unseen, func(p roofline.Point) float64 { return r.Mpps(p.Intensity, p.Cores) })
		t.Logf("%s: mean %.2f %%, worst %.2f %%; bare roofline %.2f and %.2f", method, mean, worst, meanBare, worstBare)
		if mean > 0.6 || worst > 1 || worst >= worstBare {
			t.Errorf("%s: 8 reads a packet predicted within %.2f %% on average, %.2f %% at worst; want 0.6 and 1, and less than %.2f", method, mean, worst, worstBare)
		}
		if !r.Wait.Identified || math.Abs(r.Wait.Value*r.Roof.Value-1) > 0.15 || !r.IO.Identified || math.Abs(r.IO.Value-50) > 1 {
			t.Errorf("%s: wait %+v at a roof of %+v, ceiling %+v", method, r.Wait, r.Roof, r.IO)
		}
	}
}

// bareRoofline is min(cores/(d0 + i·dm), roof/i) by plain least squares.
func bareRoofline(t *testing.T, points []roofline.Point) func(roofline.Point) float64 {
	t.Helper()
	at := func(q []float64, p roofline.Point) float64 {
		return min(float64(p.Cores)/(math.Exp(q[0])+p.Intensity*math.Exp(q[1])), math.Exp(q[2])/p.Intensity)
	}
	s, err := lm.Solve(lm.Problem{Points: len(points), Params: 3, Residuals: func(q, r []float64) {
		for k, p := range points {
			r[k] = math.Log(p.Mpps / at(q, p))
		}
	}}, [][]float64{{math.Log(0.3), math.Log(0.03), math.Log(200)}}, lm.Options{Loss: lm.L2})
	if err != nil {
		t.Fatal(err)
	}
	_, worst := errors(points, func(p roofline.Point) float64 { return at(s.P, p) })
	if worst > 8 {
		t.Fatalf("the bare roofline misses its own points by %.1f %%: it has not converged", worst)
	}
	return func(p roofline.Point) float64 { return at(s.P, p) }
}

// The increments saturate their engine at every intensity measured, so the
// data tell the roof, some 249.5 M a second, and nothing else.
func TestRoofOnlyIsRecognised(t *testing.T) {
	points := xdpRates(t, program.Add, func(float64, int) bool { return true })
	r := fit(t, points, roofline.Options{})
	if !r.Roof.Identified || math.Abs(r.Roof.Value-249.5) > 0.5 || r.A.Identified || r.C.Identified || r.B.Identified {
		t.Errorf("roof %+v, a %+v, c %+v", r.Roof, r.A, r.C)
	}
}

// The point measured in two regimes pulls the roof of 25 and more cores down
// to 139 M reads a second if its median is believed; it must be left out, with
// a note.
func TestTwoRegimesAreLeftOut(t *testing.T) {
	raw, err := curves.ReadRaw("../curves/testdata/xdp_read4_25cores_raw.csv", map[string]string{
		"memory": "emem", "op": "read", "mode": "atomic", "bytes": "8", "span": "1024", "intensity": "4", "cores": "25"})
	if err != nil {
		t.Fatal(err)
	}
	points := append(xdpRates(t, program.Read, func(i float64, cores int) bool { return i != 4 || cores != 25 }), point(raw))
	r := fit(t, points, roofline.Options{})
	if !r.Roof.Identified || math.Abs(r.Roof.Value-198) > 4 {
		t.Errorf("roof %+v, want 198 ± 4", r.Roof)
	}
	if len(r.Findings) == 0 || !strings.Contains(r.Findings[0], "left out") || !strings.Contains(r.Findings[0], "25 cores") {
		t.Errorf("findings %q name no point left out", r.Findings)
	}
	if slices.ContainsFunc(r.Residuals, func(x roofline.Residual) bool { return x.Point.Label == raw.Key }) {
		t.Error("the point in two regimes was fitted")
	}
}

type coefficients struct {
	name    string
	a, b, c float64
}

func (c coefficients) mpps(i float64) float64 { return 1 / (c.a + c.c*i*math.Exp(-c.b/i)) }

func published(t *testing.T) []coefficients {
	t.Helper()
	f, err := os.Open("testdata/rooflines.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil || len(rows) != 99 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	var out []coefficients
	for _, row := range rows[1:] {
		v := make([]float64, 3)
		for k := range v {
			if v[k], err = strconv.ParseFloat(row[3+k], 64); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, coefficients{strings.Join(row[:3], " "), v[0], v[1], v[2]})
	}
	return out
}

// Refitting the published rooflines from seven intensities gives all 25 back,
// and the coefficients of those that have a queuing term.
func TestPublishedRooflinesComeBack(t *testing.T) {
	for _, c := range published(t) {
		var points []roofline.Point
		for _, i := range []float64{1, 2, 5, 10, 15, 20, 25} {
			points = append(points, roofline.Point{Intensity: i, Mpps: c.mpps(i)})
		}
		r := fit(t, points, roofline.Options{})
		for i := 1.0; i <= 25; i++ {
			if e := 100 * math.Abs(r.Mpps(i, 0)/c.mpps(i)-1); e > 2 {
				t.Errorf("%s: M(%v) misses by %.2f %%, form %s", c.name, i, e, r.Form)
			}
		}
		within := func(what string, got, want float64) {
			if math.Abs(got/want-1) > 0.01 {
				t.Errorf("%s: %s = %v, published %v", c.name, what, got, want)
			}
		}
		if r.A.Identified {
			within("a", r.A.Value, c.a)
		}
		if c.b > 0 {
			if !r.A.Identified || !r.B.Identified || !r.C.Identified {
				t.Errorf("%s: exact data leave a %+v, b %+v, c %+v undetermined", c.name, r.A, r.B, r.C)
				continue
			}
			within("b", r.B.Value, c.b)
			within("c", r.C.Value, c.c)
		}
	}
}
