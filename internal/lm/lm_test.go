package lm

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*max(1, math.Abs(want))) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// line is y = p0 + p1·x held against data.
func line(xs, ys []float64) Problem {
	return Problem{Points: len(xs), Params: 2, Residuals: func(p, r []float64) {
		for k, x := range xs {
			r[k] = ys[k] - p[0] - p[1]*x
		}
	}, Jacobian: func(_, jac []float64) {
		for k, x := range xs {
			jac[2*k], jac[2*k+1] = -1, -x
		}
	}}
}

func noisyLine(rng *rand.Rand, n int) (xs, ys []float64) {
	for k := range n {
		xs = append(xs, float64(k))
		ys = append(ys, 3+0.5*float64(k)+0.2*rng.NormFloat64())
	}
	return xs, ys
}

func solve(t *testing.T, pr Problem, start []float64, o Options) Solution {
	t.Helper()
	s, err := Solve(pr, [][]float64{start}, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// With the plain loss the answer and its standard errors are those of linear
// regression.
func TestLinearRegression(t *testing.T) {
	xs, ys := noisyLine(rand.New(rand.NewPCG(1, 1)), 30)
	s := solve(t, line(xs, ys), []float64{0, 0}, Options{Loss: L2})
	alpha, beta := stat.LinearRegression(xs, ys, nil, false)
	near(t, "offset", s.P[0], alpha, 1e-6)
	near(t, "slope", s.P[1], beta, 1e-6)
	ss, sxx, mean := 0.0, 0.0, stat.Mean(xs, nil)
	for k, x := range xs {
		ss += (ys[k] - alpha - beta*x) * (ys[k] - alpha - beta*x)
		sxx += (x - mean) * (x - mean)
	}
	near(t, "standard error of the slope", s.SE[1], math.Sqrt(ss/28/sxx), 1e-6)
	near(t, "standard error of the offset", s.SE[0], math.Sqrt(ss/28*(1.0/30+mean*mean/sxx)), 1e-6)
	if s.DF != 28 {
		t.Errorf("%d degrees of freedom, want 28", s.DF)
	}
}

func TestOutliersDoNotPull(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for _, loss := range []Loss{Cauchy, Huber, L2} {
		xs, ys := noisyLine(rng, 40)
		ys[3], ys[17], ys[30] = -20, 60, 80
		s := solve(t, line(xs, ys), []float64{0, 0}, Options{Loss: loss})
		off := max(math.Abs(s.P[0]-3), 20*math.Abs(s.P[1]-0.5))
		switch {
		case loss == L2 && off < 1:
			t.Errorf("l2: %v; the outliers are too mild for this test", s.P)
		case loss == Huber && off > 0.5, loss == Cauchy && off > 0.25:
			t.Errorf("%s: %v is pulled from 3, 0.5", loss, s.P)
		}
		if loss == Cauchy && (s.Weights[17] > 0.01 || s.Scale < 0.1 || s.Scale > 0.35) {
			t.Errorf("weight of an outlier %v, scale %v of noise 0.2", s.Weights[17], s.Scale)
		}
	}
}

// Rosenbrock's valley as residuals: numeric and analytic Jacobian, both
// methods.
func TestRosenbrock(t *testing.T) {
	pr := Problem{Points: 2, Params: 2, Residuals: func(p, r []float64) { r[0], r[1] = 10*(p[1]-p[0]*p[0]), 1-p[0] }}
	analytic := pr
	analytic.Jacobian = func(p, jac []float64) { copy(jac, []float64{-20 * p[0], 10, -1, 0}) }
	for name, c := range map[string]struct {
		pr Problem
		o  Options
	}{"numeric": {pr, Options{Loss: L2, Scale: 1}}, "analytic": {analytic, Options{Loss: L2, Scale: 1}}, "simplex": {pr, Options{Loss: L2, Scale: 1, Method: NelderMead}}} {
		s := solve(t, c.pr, []float64{-1.2, 1}, c.o)
		near(t, name+" p0", s.P[0], 1, 1e-3)
		near(t, name+" p1", s.P[1], 1, 1e-3)
	}
}

// Of many starts in a function of many hollows the deepest wins.
func TestManyStarts(t *testing.T) {
	pr := Problem{Points: 2, Params: 1, Residuals: func(p, r []float64) { r[0], r[1] = p[0]/20-0.35, 2*math.Sin(p[0]) }}
	var starts [][]float64
	for x := -20.0; x <= 20; x++ {
		starts = append(starts, []float64{x})
	}
	s, err := Solve(pr, starts, Options{Loss: L2, Scale: 1})
	if err != nil || math.Abs(s.P[0]-2*math.Pi) > 0.01 {
		t.Errorf("%v, %v; want close to 2π", s.P, err)
	}
}

func TestBounds(t *testing.T) {
	xs, ys := noisyLine(rand.New(rand.NewPCG(3, 1)), 30)
	pr := line(xs, ys)
	pr.Lower, pr.Upper = []float64{math.Inf(-1), 0.6}, []float64{math.Inf(1), 2}
	for _, method := range []Method{LM, NelderMead} {
		s := solve(t, pr, []float64{0, 1}, Options{Loss: L2, Method: method})
		near(t, string(method)+" slope", s.P[1], 0.6, 1e-6)
		near(t, string(method)+" offset", s.P[0], stat.Mean(ys, nil)-0.6*stat.Mean(xs, nil), 1e-3)
		if method == LM && (!s.AtBound[1] || !math.IsInf(s.SE[1], 1) || s.AtBound[0] || math.IsInf(s.SE[0], 1)) {
			t.Errorf("at bound %v, standard errors %v", s.AtBound, s.SE)
		}
	}
}

// Two parameters that only their sum shows are not identified; the third is.
func TestNotIdentified(t *testing.T) {
	xs, ys := noisyLine(rand.New(rand.NewPCG(4, 1)), 30)
	pr := Problem{Points: 30, Params: 4, Residuals: func(p, r []float64) {
		for k, x := range xs {
			r[k] = ys[k] - p[0] - p[1] - p[2]*x
		}
	}}
	s := solve(t, pr, []float64{1, 1, 0, 7}, Options{})
	for j, want := range []bool{false, false, true, false} { // p[3] has no effect at all
		if got := !math.IsInf(s.SE[j], 1); got != want {
			t.Errorf("parameter %d identified: %v, want %v (standard errors %v)", j, got, want, s.SE)
		}
	}
	near(t, "slope", s.P[2], 0.5, 0.02)
}

// A point measured coarsely weighs by its own sigma once that exceeds the
// scatter: two groups give the classical weighted mean.
func TestSigmaWeighs(t *testing.T) {
	ys := []float64{1, 1, 1, 2}
	pr := Problem{Points: 4, Params: 1, Sigma: []float64{0.1, 0.1, 0.1, 0.3}, Residuals: func(p, r []float64) {
		for k, y := range ys {
			r[k] = y - p[0]
		}
	}}
	s := solve(t, pr, []float64{1.5}, Options{Loss: L2, Scale: 1e-9})
	near(t, "weighted mean", s.P[0], (300+2/0.09)/(300+1/0.09), 1e-6)
}

func TestHopelessProblemsEnd(t *testing.T) {
	nan := Problem{Points: 3, Params: 1, Residuals: func(_, r []float64) { r[0], r[1], r[2] = math.NaN(), 1, 2 }}
	if _, err := Solve(nan, [][]float64{{1}}, Options{}); !errors.Is(err, ErrNoStart) {
		t.Errorf("residuals that are no numbers: %v", err)
	}
	if _, err := Solve(nan, nil, Options{}); !errors.Is(err, ErrNoStart) {
		t.Errorf("no start: %v", err)
	}
	flat := Problem{Points: 3, Params: 1, Residuals: func(_, r []float64) { r[0], r[1], r[2] = 1, 1, 2 },
		Jacobian: func(_, jac []float64) { jac[0], jac[1], jac[2] = math.NaN(), 0, 0 }}
	s, err := Solve(flat, [][]float64{{1}}, Options{})
	if err != nil || s.P[0] != 1 || !math.IsInf(s.SE[0], 1) {
		t.Errorf("a Jacobian that is no number: %+v, %v", s, err)
	}
}
