// Package lm fits nonlinear models to data that has outliers: robust least
// squares by Levenberg and Marquardt's method from many starts, with Nelder
// and Mead's as a second opinion, and covariances that say which parameters
// the data cannot tell. It knows nothing of boards.
//
// The caller's residuals are usually ln(measured/model), so that errors are
// relative, and its parameters logarithms where they must stay positive.
// Problems are small (tens of points, up to ten parameters); a model with a
// hard minimum has one local optimum for each place of its knee, which is why
// the starts are the caller's to enumerate and all of them are polished.
package lm

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"

	"nicprof/internal/stats"
)

// Problem is a model held against data.
type Problem struct {
	Points int // number of residuals
	Params int // number of parameters
	// Residuals writes the residual of each point at p into r.
	Residuals func(p, r []float64)
	// Jacobian writes ∂r[k]/∂p[j] into jac[k*Params+j]. Nil: central
	// differences.
	Jacobian func(p, jac []float64)
	// Sigma is the known standard deviation of each residual, from the
	// measurement's own interval; nil or 0: not known. It adds to the scale
	// that the residuals show, so a noisy point weighs less and a point
	// measured more finely than the model is true weighs no more than others.
	Sigma []float64
	// Lower and Upper bound the parameters; nil: none.
	Lower, Upper []float64
}

// Loss is the price of a residual.
type Loss string

// Losses. Cauchy's with its usual constant 2.385 keeps 95 % efficiency on
// normal data and gives outliers next to no weight.
const (
	Cauchy Loss = "cauchy"
	Huber  Loss = "huber"
	L2     Loss = "l2"

	cauchyC = 2.385
	huberK  = 1.345
)

// Method is the way to the optimum.
type Method string

// Methods.
const (
	LM         Method = "lm"
	NelderMead Method = "nelder-mead"
)

// Options of a fit. The zero value is Cauchy's loss by Levenberg–Marquardt.
type Options struct {
	Loss   Loss
	Method Method
	Scale  float64 // fixed residual scale; 0: from the residuals' MAD, in three rounds
	// Iterations of LM at most for one start; 0: 60.
	Iterations int
}

// Solution is the best fit.
type Solution struct {
	P         []float64
	Objective float64   // Σ ρ(r/sd), for comparing fits at the same Scale
	Scale     float64   // robust scale of the residuals
	Residuals []float64 // at P
	Weights   []float64 // 0..1, what the loss left of each point's weight
	SE        []float64 // standard error of each parameter; +Inf where the data cannot tell it
	AtBound   []bool    // the parameter lies on one of its bounds
	DF        int       // degrees of freedom of SE
}

// minScale keeps exact data from being judged by its rounding errors: a
// residual of one part in a million is never an outlier.
const minScale = 1e-6

// maxCondition of the scaled normal equations, above which they do not
// identify all parameters.
const maxCondition = 1e8

// ErrNoStart says that no start gave finite residuals.
var ErrNoStart = errors.New("no start gives finite residuals")

// Solve polishes the starts, of many the two dozen closest to the data, at a
// common residual scale, estimates the scale from the best, and repeats with
// the best few.
func Solve(pr Problem, starts [][]float64, o Options) (Solution, error) {
	w := newWork(pr, o.Loss)
	if w.iterations = o.Iterations; w.iterations == 0 {
		w.iterations = 60
	}
	type candidate struct {
		p    []float64
		cost float64
	}
	var pool []candidate
	for _, s := range starts {
		p := slices.Clone(s)
		w.clamp(p)
		if cost := w.absolute(p); !math.IsNaN(cost) && !math.IsInf(cost, 0) {
			pool = append(pool, candidate{p, cost})
		}
	}
	if len(pool) == 0 {
		return Solution{}, ErrNoStart
	}
	byCost := func(a, b candidate) int {
		switch {
		case a.cost < b.cost:
			return -1
		case a.cost > b.cost:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(pool, byCost)
	const polished, keep = 24, 4
	pool = pool[:min(len(pool), polished)]
	rounds := 3
	if o.Scale > 0 {
		rounds = 1
	}
	for round := range rounds {
		if o.Scale > 0 {
			w.setScale(o.Scale)
		} else {
			w.setScale(w.scaleAt(pool[0].p))
		}
		for i := range pool {
			if o.Method == NelderMead && i < keep {
				pool[i].p = w.simplex(pool[i].p)
				pool[i].cost = w.objective(pool[i].p)
			} else {
				pool[i].cost = w.polish(pool[i].p)
			}
		}
		slices.SortStableFunc(pool, byCost)
		if round == 0 && len(pool) > keep {
			pool = pool[:keep]
		}
	}
	return w.solution(pool[0].p), nil
}

// work holds one problem's buffers, so that polishing allocates nothing.
type work struct {
	Problem
	loss  Loss
	scale float64
	sd    []float64 // of each residual: scale and its own Sigma

	iterations int
	r          []float64
	jac        []float64
	hess       []float64
	chol       []float64
	grad       []float64
	step       []float64
	trial      []float64
	fixed      []bool
	high, low  []float64 // residuals of numeric differences
}

func newWork(pr Problem, loss Loss) *work {
	n, p := pr.Points, pr.Params
	return &work{Problem: pr, loss: loss, r: make([]float64, n), jac: make([]float64, n*p), hess: make([]float64, p*p),
		chol: make([]float64, p*p), grad: make([]float64, p), step: make([]float64, p), trial: make([]float64, p),
		fixed: make([]bool, p), high: make([]float64, n), low: make([]float64, n), sd: make([]float64, n)}
}

func (w *work) clamp(p []float64) {
	for j := range p {
		if w.Lower != nil {
			p[j] = max(p[j], w.Lower[j])
		}
		if w.Upper != nil {
			p[j] = min(p[j], w.Upper[j])
		}
	}
}

// absolute is the sum of absolute residuals: it needs no scale, so it ranks
// starts before one is known.
func (w *work) absolute(p []float64) float64 {
	w.Residuals(p, w.r)
	sum := 0.0
	for _, r := range w.r {
		sum += math.Abs(r)
	}
	return sum
}

// scaleAt is the robust scale of the residuals at p around zero, with the
// degrees of freedom that the parameters took given back.
func (w *work) scaleAt(p []float64) float64 {
	w.Residuals(p, w.r)
	for k, r := range w.r {
		w.high[k] = math.Abs(r)
	}
	n := float64(w.Points)
	return max(stats.MADScale*stats.Median(w.high)*math.Sqrt(n/max(n-float64(w.Params), 1)), minScale)
}

// setScale fixes the residuals' scale, and with it what each is divided by.
func (w *work) setScale(scale float64) {
	w.scale = scale
	for k := range w.sd {
		w.sd[k] = scale
		if w.Sigma != nil {
			w.sd[k] = math.Hypot(scale, w.Sigma[k])
		}
	}
}

// rho is the loss of a standardised residual.
func (w *work) rho(z float64) float64 {
	switch w.loss {
	case L2:
		return z * z / 2
	case Huber:
		if a := math.Abs(z); a > huberK {
			return huberK * (a - huberK/2)
		}
		return z * z / 2
	}
	return cauchyC * cauchyC / 2 * math.Log1p(z*z/(cauchyC*cauchyC))
}

// slopes are ρ'(z)/z, which is the weight of the residual, and ρ″(z).
func (w *work) slopes(z float64) (weight, curve float64) {
	switch w.loss {
	case L2:
		return 1, 1
	case Huber:
		if a := math.Abs(z); a > huberK {
			return huberK / a, 0
		}
		return 1, 1
	}
	q := z * z / (cauchyC * cauchyC)
	return 1 / (1 + q), (1 - q) / ((1 + q) * (1 + q))
}

func (w *work) objective(p []float64) float64 {
	w.Residuals(p, w.r)
	sum := 0.0
	for k, r := range w.r {
		sum += w.rho(r / w.sd[k])
	}
	if math.IsNaN(sum) {
		return math.Inf(1)
	}
	return sum
}

func (w *work) jacobian(p []float64) {
	if w.Jacobian != nil {
		w.Jacobian(p, w.jac)
		return
	}
	for j := range p {
		h, at := 1e-6*max(math.Abs(p[j]), 1e-2), p[j]
		p[j] = at + h
		w.Residuals(p, w.high)
		p[j] = at - h
		w.Residuals(p, w.low)
		p[j] = at
		for k := range w.low {
			w.jac[k*w.Params+j] = (w.high[k] - w.low[k]) / (2 * h)
		}
	}
}

// normal fills the gradient and the Gauss–Newton matrix of the robust
// objective at p, whose residuals w.r holds, and fixes the parameters that
// their bounds hold.
func (w *work) normal(p []float64) {
	w.jacobian(p)
	clear(w.hess)
	clear(w.grad)
	n := w.Params
	for k, r := range w.r {
		weight, _ := w.slopes(r / w.sd[k])
		weight /= w.sd[k] * w.sd[k]
		row := w.jac[k*n : (k+1)*n]
		for i, ji := range row {
			w.grad[i] += weight * ji * r
			for j := range i + 1 {
				w.hess[i*n+j] += weight * ji * row[j]
			}
		}
	}
	for j := range p {
		w.fixed[j] = w.Lower != nil && p[j] <= w.Lower[j] && w.grad[j] > 0 ||
			w.Upper != nil && p[j] >= w.Upper[j] && w.grad[j] < 0
	}
}

// polish improves p in place and returns its objective. Each iteration that
// finds no better point raises the damping, so the loop is bounded even when
// the matrix never factorises.
func (w *work) polish(p []float64) float64 {
	const tolerance = 1e-8
	best, lambda, n := w.objective(p), 1e-3, w.Params
	for range w.iterations {
		w.normal(p)
		improved := false
		for ; lambda < 1e12; lambda *= 8 {
			if !w.damped(lambda) {
				continue
			}
			for j := range n {
				w.trial[j] = p[j] - w.step[j]
			}
			w.clamp(w.trial)
			if cost := w.objective(w.trial); cost < best {
				gain := best - cost
				copy(p, w.trial)
				best, lambda, improved = cost, max(lambda/8, 1e-12), gain > tolerance*(best+tolerance)
				break
			}
		}
		if !improved {
			break
		}
	}
	return best
}

// damped solves (H + λ·diag H) step = gradient by Cholesky's factorisation,
// fixed parameters left alone; false where the matrix is not positive.
func (w *work) damped(lambda float64) bool {
	n := w.Params
	copy(w.chol, w.hess)
	copy(w.step, w.grad)
	for i := range n {
		w.chol[i*n+i] += lambda*w.hess[i*n+i] + 1e-30
		if w.fixed[i] {
			for j := range n {
				w.chol[max(i, j)*n+min(i, j)] = 0
			}
			w.chol[i*n+i], w.step[i] = 1, 0
		}
	}
	for i := range n {
		for j := range i + 1 {
			sum := w.chol[i*n+j]
			for k := range j {
				sum -= w.chol[i*n+k] * w.chol[j*n+k]
			}
			if i != j {
				w.chol[i*n+j] = sum / w.chol[j*n+j]
				continue
			}
			if !(sum > 0) {
				return false
			}
			w.chol[i*n+i] = math.Sqrt(sum)
		}
	}
	for i := range n {
		for k := range i {
			w.step[i] -= w.chol[i*n+k] * w.step[k]
		}
		w.step[i] /= w.chol[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			w.step[i] -= w.chol[k*n+i] * w.step[k]
		}
		w.step[i] /= w.chol[i*n+i]
	}
	return true
}

// simplex minimises by gonum's Nelder–Mead from p; points beyond the bounds
// are judged where they touch them, plus a price for the distance. A method
// that stops early still leaves its best point.
func (w *work) simplex(p []float64) []float64 {
	inside := make([]float64, len(p))
	res, _ := optimize.Minimize(optimize.Problem{Func: func(x []float64) float64 {
		copy(inside, x)
		w.clamp(inside)
		beyond := 0.0
		for j := range x {
			beyond += math.Abs(x[j] - inside[j])
		}
		return w.objective(inside) + beyond
	}}, p, &optimize.Settings{FuncEvaluations: 4000,
		Converger: &optimize.FunctionConverge{Relative: 1e-11, Absolute: 1e-11, Iterations: 60}}, &optimize.NelderMead{})
	if res == nil {
		return p
	}
	best := slices.Clone(res.X)
	w.clamp(best)
	if w.objective(best) > w.objective(p) {
		return p
	}
	return best
}

// solution describes the fit at p. The covariance is Huber's for M-estimates,
// K²·[Σψ²·s²/(n−p)] / (mean ψ′)² · (JᵀJ)⁻¹ with standardised J, restricted to
// the parameters that the data identify.
func (w *work) solution(p []float64) Solution {
	s := Solution{P: p, Objective: w.objective(p), Scale: w.scale, Residuals: slices.Clone(w.r),
		Weights: make([]float64, w.Points), SE: make([]float64, w.Params), AtBound: make([]bool, w.Params)}
	var psi2, slope, slope2 float64
	for k, r := range s.Residuals {
		z := r / w.sd[k]
		weight, curve := w.slopes(z)
		s.Weights[k] = weight
		psi2 += weight * weight * z * z
		slope += curve
		slope2 += curve * curve
	}
	w.jacobian(p)
	free := make([]int, 0, w.Params)
	for j := range p {
		s.SE[j] = math.Inf(1)
		s.AtBound[j] = w.Lower != nil && p[j] <= w.Lower[j] || w.Upper != nil && p[j] >= w.Upper[j]
		if !s.AtBound[j] {
			free = append(free, j)
		}
	}
	n := float64(w.Points)
	s.DF = w.Points - len(free)
	slope /= n
	if s.DF < 1 || slope <= 0 {
		return s
	}
	k := 1 + float64(len(free))/n*max(slope2/n-slope*slope, 0)/(slope*slope)
	factor := k * k * psi2 / float64(s.DF) / (slope * slope)
	for j, variance := range w.inverse(free) {
		s.SE[j] = math.Sqrt(factor * variance)
	}
	return s
}

// inverse returns the diagonal of (JᵀJ)⁻¹ over the parameters of free that are
// identified. While the matrix, scaled to a unit diagonal, is too
// ill-conditioned, the parameters that make up its weakest direction are
// given up.
func (w *work) inverse(free []int) map[int]float64 {
	n := w.Params
	norm := func(j int) float64 {
		sum := 0.0
		for k := range w.Points {
			v := w.jac[k*n+j] / w.sd[k]
			sum += v * v
		}
		return math.Sqrt(sum)
	}
	free = slices.DeleteFunc(slices.Clone(free), func(j int) bool { v := norm(j); return !(v > 0) || math.IsInf(v, 0) })
	for len(free) > 0 {
		a := mat.NewSymDense(len(free), nil)
		for x, i := range free {
			for y := range x + 1 {
				j := free[y]
				sum := 0.0
				for k := range w.Points {
					sum += w.jac[k*n+i] * w.jac[k*n+j] / (w.sd[k] * w.sd[k])
				}
				a.SetSym(x, y, sum/(norm(i)*norm(j)))
			}
		}
		var eigen mat.EigenSym
		if !eigen.Factorize(a, true) {
			return nil
		}
		values := eigen.Values(nil) // ascending
		var vectors mat.Dense
		eigen.VectorsTo(&vectors)
		if values[0]*maxCondition > values[len(values)-1] {
			out := make(map[int]float64, len(free))
			for x, i := range free {
				sum := 0.0
				for e, v := range values {
					sum += vectors.At(x, e) * vectors.At(x, e) / v
				}
				out[i] = sum / (norm(i) * norm(i))
			}
			return out
		}
		var kept []int
		for x, i := range free {
			if math.Abs(vectors.At(x, 0)) < 0.1 {
				kept = append(kept, i)
			}
		}
		free = kept
	}
	return nil
}
