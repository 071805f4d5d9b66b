// Package roofline fits packet throughput against memory intensity: Eq. 1 and
// Eq. 2 of the Cora paper (section 5.1) where the number of cores is fixed,
// and a form that keeps the cores' cost and the memory's roof apart where it
// varies. It works on the logarithm of throughput, so errors are relative and
// all rates stay positive, with a loss that outliers cannot pull, and it
// chooses among the forms by the error on intensities that a fit did not see.
// What the data cannot tell is reported as not identified, never as a number.
package roofline

import (
	"fmt"
	"math"
	"slices"

	"nicprof/internal/fault"
	"nicprof/internal/lm"
	"nicprof/internal/stats"
	"nicprof/model"
	"nicprof/sim"
)

// Point is one measured throughput.
type Point struct {
	Intensity float64  `json:"intensity"` // accesses a packet
	Mpps      float64  `json:"mpps"`
	Low       float64  `json:"low,omitempty"` // 95 % interval; both 0: not known
	High      float64  `json:"high,omitempty"`
	Cores     int      `json:"cores,omitempty"` // 0: the same for all points
	Label     string   `json:"label,omitempty"` // where the point is from, for findings
	Warnings  []string `json:"warnings,omitempty"`
}

// Rate is the point's access rate M = i·T, Mops/s.
func (p Point) Rate() float64 { return p.Intensity * p.Mpps }

func (p Point) String() string {
	s := fmt.Sprintf("%.6g Mpps at %g accesses a packet", p.Mpps, p.Intensity)
	if p.Cores > 0 {
		s += fmt.Sprintf(" on %d cores", p.Cores)
	}
	if p.Label != "" {
		s += " (" + p.Label + ")"
	}
	return s
}

// Forms of the fitted curve. Cores is the two-dimensional one.
const (
	Eq1   = "eq1"
	Eq2   = "eq2"
	Cores = "cores"
)

// Options of Fit. The zero value is the default.
type Options struct {
	Method    string // lm (default) or nelder-mead
	Loss      string // cauchy (default), huber or l2
	Form      string // eq1 or eq2 instead of the choice by cross-validation
	Bootstrap int    // refits to resampled residuals, as a check of the intervals; 0: none
	Seed      uint64 // of the bootstrap
}

// Result is a fitted roofline. Throughput on N cores at intensity i is
//
//	1/T = max(A + C·e^(−B/i)·i, i/Roof)                    (eq1: B = 0; eq2)
//	1/T = ‖1/S, i/Roof, 1/IO‖ in the p-norm                (cores: p = Sharpness, ∞ without one)
//	N = S·(D0 + i·Dm + i·Wait·i·S/Roof)
//
// with the terms left out whose parameter the form does not have; Mpps is that
// function. S is what the cores alone would do, an access waiting up to Wait
// longer as the memory fills. A, C, D0, Dm and Wait are µs, Roof Mops/s, IO Mpps; A and C of the cores
// form are D0 and Dm over the largest number of cores measured. A Roof that is
// not identified carries the largest rate measured as a lower bound.
type Result struct {
	Form       string        `json:"form"`
	A          model.Value   `json:"a_us"`
	B          model.Value   `json:"b"`
	C          model.Value   `json:"c_us"`
	Roof       model.Value   `json:"roof_mops"`
	D0         model.Value   `json:"d0_us"`
	Dm         model.Value   `json:"dm_us"`
	Wait       model.Value   `json:"wait_us"`
	IO         model.Value   `json:"io_mpps"`
	Sharpness  model.Value   `json:"sharpness"`
	Quality    model.Quality `json:"quality"`
	Candidates []Candidate   `json:"candidates"`
	Residuals  []Residual    `json:"residuals"`
	Falls      []Fall        `json:"falls,omitempty"`
	Findings   []string      `json:"findings,omitempty"` // sentences for the reader
	Bootstrap  []Interval    `json:"bootstrap,omitempty"`

	fitted candidate
	q      []float64
}

// Mpps is the fitted throughput at intensity i on that many cores (used by the
// cores form only).
func (r Result) Mpps(i float64, cores int) float64 {
	return math.Exp(r.fitted.logT(r.q)(Point{Intensity: i, Cores: cores}))
}

// Candidate is a form that was tried, with its error on held-out intensities.
type Candidate struct {
	Form       string   `json:"form"`
	Params     []string `json:"params"`
	HeldOutPct float64  `json:"held_out_pct"` // mean absolute error, per cent
	Chosen     bool     `json:"chosen,omitempty"`
}

// Residual is what the fit left of a point.
type Residual struct {
	Point   Point   `json:"point"`
	Fitted  float64 `json:"fitted_mpps"`
	Pct     float64 `json:"pct"`    // measured above fitted, per cent of fitted
	Weight  float64 `json:"weight"` // 0..1, what the robust loss left of it
	Outlier bool    `json:"outlier,omitempty"`
}

// Fall is a retrograde stretch: throughput falls again beyond Best.
type Fall struct {
	Best Point `json:"best"`
	Last Point `json:"last"`
}

// Interval is a 95 % interval of a named parameter.
type Interval struct {
	Param string  `json:"param"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

const (
	fallSize  = 0.03 // least fall that is called retrograde
	tieAbs    = 0.01 // per cent of throughput that make no difference between forms
	decade    = 10   // an interval wider than this factor identifies nothing
	minPoints = 3
	// Beyond these no board is, and sums of squares overflow.
	maxIntensity = 1e6
	maxMpps      = 1e9
	normal95     = 1.959964
	wellPast     = 2    // distinct intensities past the knee that make a roof
	softPast     = 0.9  // share of the roof from which a point of the cores form is on it
	aboveShare   = 0.01 // least excess over the roof worth a finding
)

// Fit fits points. Errors are the input's fault.
func Fit(points []Point, o Options) (Result, error) {
	opt, err := o.check()
	if err != nil {
		return Result{}, err
	}
	if err := check(points); err != nil {
		return Result{}, err
	}
	var r Result
	kept := r.leaveOut(points)
	cells := distinct(kept, func(p Point) [2]float64 { return [2]float64{p.Intensity, float64(p.Cores)} })
	intensities := distinct(kept, func(p Point) float64 { return p.Intensity })
	coreCounts := distinct(kept, func(p Point) int { return p.Cores })
	if len(kept) < minPoints || len(cells) < 2 {
		return Result{}, fault.Inputf("%d usable point(s) at %d place(s): a roofline needs at least %d points at 2 or more intensities or core counts; measure more intensities",
			len(kept), len(cells), minPoints)
	}
	var cs []candidate
	group := func(p Point) [2]float64 { return [2]float64{p.Intensity, 0} }
	if len(coreCounts) > 1 {
		if o.Form != "" {
			return Result{}, fault.Inputf("form %s asked for, but the points are on %d different numbers of cores; leave the form out, or keep the points of one number of cores", o.Form, len(coreCounts))
		}
		cs = coreCandidates(kept, len(intensities))
		if len(intensities) < 4 {
			group = func(p Point) [2]float64 { return [2]float64{p.Intensity, float64(p.Cores)} }
		}
	} else {
		cs = curveCandidates(kept, o.Form)
	}
	s, err := r.choose(kept, cs, group, opt)
	if err != nil {
		return Result{}, err
	}
	r.values(kept, s)
	r.quality(kept, s)
	if o.Bootstrap > 0 {
		r.bootstrap(kept, s, opt, o)
	}
	return r, nil
}

func (o Options) check() (lm.Options, error) {
	opt := lm.Options{Method: lm.Method(o.Method), Loss: lm.Loss(o.Loss)}
	switch opt.Method {
	case "":
		opt.Method = lm.LM
	case lm.LM, lm.NelderMead:
	default:
		return opt, fault.Inputf("unknown fit method %q, expected %s or %s", o.Method, lm.LM, lm.NelderMead)
	}
	switch opt.Loss {
	case "":
		opt.Loss = lm.Cauchy
	case lm.Cauchy, lm.Huber, lm.L2:
	default:
		return opt, fault.Inputf("unknown loss %q, expected %s, %s or %s", o.Loss, lm.Cauchy, lm.Huber, lm.L2)
	}
	if o.Form != "" && o.Form != Eq1 && o.Form != Eq2 {
		return opt, fault.Inputf("unknown form %q, expected %s or %s", o.Form, Eq1, Eq2)
	}
	if o.Bootstrap < 0 {
		return opt, fault.Inputf("%d bootstrap refits, expected 0 or more", o.Bootstrap)
	}
	return opt, nil
}

func check(points []Point) error {
	for k, p := range points {
		where := fmt.Sprintf("point %d", k+1)
		if p.Label != "" {
			where = p.Label
		}
		switch {
		case p.Intensity != 0 && !(p.Intensity >= 1/maxIntensity && p.Intensity <= maxIntensity):
			return fault.Inputf("%s: intensity %v, expected 0 or %g to %g accesses a packet", where, p.Intensity, 1/maxIntensity, maxIntensity)
		case !(p.Mpps >= 1/maxMpps && p.Mpps <= maxMpps):
			return fault.Inputf("%s: throughput %v Mpps, expected a number above 0, up to %g; leave out measurements that failed", where, p.Mpps, maxMpps)
		case p.Cores < 0:
			return fault.Inputf("%s: %d cores, expected 1 or more (0: the same for all points)", where, p.Cores)
		case p.Low == 0 && p.High == 0:
		case !finite(p.Low) || !finite(p.High) || p.Low < 0 || p.Low > p.Mpps || p.High < p.Mpps:
			return fault.Inputf("%s: interval %v to %v does not hold its throughput %v Mpps", where, p.Low, p.High, p.Mpps)
		}
	}
	if slices.ContainsFunc(points, func(p Point) bool { return p.Cores == 0 }) && slices.ContainsFunc(points, func(p Point) bool { return p.Cores > 0 }) {
		return fault.Inputf("some points name their number of cores and some do not; name it for all or for none")
	}
	return nil
}

// leaveOut drops the points that no curve of these forms can hold, with a
// finding for each: measurements of two regimes, and what lies past the best
// number of cores where throughput falls again.
func (r *Result) leaveOut(points []Point) []Point {
	var kept []Point
	for _, p := range points {
		if stats.IsRegimes(p.Warnings) {
			r.find("left out %v: it was measured in several regimes in time, so its mean is no measurement", p)
			continue
		}
		kept = append(kept, p)
	}
	past := func(p Point, f Fall) bool { return p.Intensity == f.Best.Intensity && p.Cores > f.Best.Cores }
	for _, i := range distinct(kept, func(p Point) float64 { return p.Intensity }) {
		same := slices.DeleteFunc(slices.Clone(kept), func(p Point) bool { return p.Intensity != i })
		slices.SortStableFunc(same, func(a, b Point) int { return a.Cores - b.Cores })
		if f, ok := fall(same, func(p Point) float64 { return p.Mpps }); ok && f.Last.Cores > f.Best.Cores {
			r.Falls = append(r.Falls, f)
			r.find("retrograde: past %v throughput falls again, to %v; the best point counts, those beyond it are left out", f.Best, f.Last)
			kept = slices.DeleteFunc(kept, func(p Point) bool { return past(p, f) })
		}
	}
	if len(distinct(kept, func(p Point) int { return p.Cores })) == 1 {
		byIntensity := slices.Clone(kept)
		slices.SortStableFunc(byIntensity, func(a, b Point) int { return compare(a.Intensity, b.Intensity) })
		if f, ok := fall(byIntensity, Point.Rate); ok {
			r.Falls = append(r.Falls, f)
			r.find("retrograde: the access rate falls from %.4g Mops/s at %g accesses a packet to %.4g at %g", f.Best.Rate(), f.Best.Intensity, f.Last.Rate(), f.Last.Intensity)
		}
	}
	return kept
}

// fall says whether y of the last point lies below the greatest y beyond the
// noise of both. A greatest point whose neighbours agree with each other and
// not with it is a stray above a plateau, and no evidence of a fall.
func fall(points []Point, y func(Point) float64) (Fall, bool) {
	n := len(points)
	if n < minPoints {
		return Fall{}, false
	}
	b := 0
	for k := range points {
		if y(points[k]) > y(points[b]) {
			b = k
		}
	}
	best, last := points[b], points[n-1]
	drop := 1 - y(last)/y(best)
	if drop <= fallSize || drop <= normal95*math.Hypot(best.sigma(), last.sigma()) {
		return Fall{}, false
	}
	if b > 0 && math.Abs(y(points[b-1])/y(points[b+1])-1) <= fallSize {
		return fall(slices.Concat(points[:b], points[b+1:]), y)
	}
	return Fall{best, last}, true
}

// sigma is the relative standard error of the throughput, 0 if not known.
func (p Point) sigma() float64 { return (p.High - p.Low) / (2 * normal95 * p.Mpps) }

// candidate is a form with some of its parameters free: q is its full
// parameter vector, absent holds the values of those that it does without.
type candidate struct {
	form   string
	names  []string
	free   []int
	absent []float64
	starts [][]float64 // full vectors
	lower  []float64
	upper  []float64
	logT   func(q []float64) func(Point) float64
	grad   func(q []float64) func(p Point, g []float64) // ∂logT/∂q; nil: by differences
	usable func(q []float64, points []Point) bool       // nil: always
}

func (c candidate) problem(points []Point) lm.Problem {
	q, g := slices.Clone(c.absent), make([]float64, len(c.absent))
	spread := func(p []float64) {
		for x, j := range c.free {
			q[j] = p[x]
		}
	}
	pr := lm.Problem{Points: len(points), Params: len(c.free), Sigma: make([]float64, len(points)), Lower: pick(c.lower, c.free), Upper: pick(c.upper, c.free)}
	logs := make([]float64, len(points))
	for k, p := range points {
		logs[k], pr.Sigma[k] = math.Log(p.Mpps), p.sigma()
	}
	pr.Residuals = func(p, r []float64) {
		spread(p)
		logT := c.logT(q)
		for k, pt := range points {
			r[k] = logs[k] - logT(pt)
		}
	}
	if c.grad != nil {
		pr.Jacobian = func(p, jac []float64) {
			spread(p)
			grad := c.grad(q)
			for k, pt := range points {
				grad(pt, g)
				for x, j := range c.free {
					jac[k*len(c.free)+x] = -g[j]
				}
			}
		}
	}
	return pr
}

// fit returns the solution from the given full-vector starts and its full
// vector.
func (c candidate) fit(points []Point, starts [][]float64, o lm.Options) (lm.Solution, []float64, error) {
	free := make([][]float64, len(starts))
	for k, s := range starts {
		free[k] = pick(s, c.free)
	}
	s, err := lm.Solve(c.problem(points), free, o)
	if err != nil {
		return s, nil, err
	}
	q := slices.Clone(c.absent)
	for x, j := range c.free {
		q[j] = s.P[x]
	}
	return s, q, nil
}

// choose fits every candidate and measures its error on the groups of points
// that a refit did not see. It keeps the one with the fewest parameters (they
// come first in cs) whose error is within one standard error of the least,
// among those all of whose parameters the data tell, if there are any.
func (r *Result) choose(points []Point, cs []candidate, group func(Point) [2]float64, o lm.Options) (lm.Solution, error) {
	type fitted struct {
		candidate
		solution lm.Solution
		q        []float64
		errors   []float64 // held out
		tells    bool
	}
	var all []fitted
	best := 0
	for _, c := range cs {
		s, q, err := c.fit(points, c.starts, o)
		if err != nil || c.usable != nil && !c.usable(q, points) {
			continue
		}
		errs, ok := c.heldOut(points, q, group, lm.Options{Method: lm.LM, Loss: o.Loss, Scale: s.Scale})
		if !ok {
			continue
		}
		all = append(all, fitted{c, s, q, errs, c.tells(points, s)})
		r.Candidates = append(r.Candidates, Candidate{Form: c.form, Params: c.names, HeldOutPct: mean(errs)})
		if f := all[len(all)-1]; f.tells && !all[best].tells || f.tells == all[best].tells && mean(f.errors) < mean(all[best].errors) {
			best = len(all) - 1
		}
	}
	for k, f := range all {
		if worse, se := meanDifference(f.errors, all[best].errors); f.tells == all[best].tells && worse <= se+tieAbs {
			r.Candidates[k].Chosen = true
			r.Form, r.Quality.HeldOutPct = f.form, mean(f.errors)
			r.fitted, r.q = f.candidate, f.q
			return f.solution, nil
		}
	}
	return lm.Solution{}, fault.Inputf("no form fits: %d points at %d places are too few or too far apart; measure more intensities", len(points), len(distinct(points, group)))
}

// heldOut are the absolute errors, per cent, of points in groups that were
// left out of a refit from the full fit.
func (c candidate) heldOut(points []Point, q []float64, group func(Point) [2]float64, o lm.Options) ([]float64, bool) {
	var errs []float64
	for _, g := range distinct(points, group) {
		rest := slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return group(p) == g })
		if len(rest) < len(c.free) {
			return nil, false
		}
		_, at, err := c.fit(rest, [][]float64{q}, o)
		if err != nil {
			return nil, false
		}
		logT := c.logT(at)
		for _, p := range points {
			if group(p) == g {
				errs = append(errs, 100*math.Abs(math.Exp(logT(p))/p.Mpps-1))
			}
		}
	}
	return errs, finite(mean(errs))
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// meanDifference is the mean of a − b and its standard error.
func meanDifference(a, b []float64) (diff, se float64) {
	diff = mean(a) - mean(b)
	for k := range a {
		d := a[k] - b[k] - diff
		se += d * d
	}
	n := float64(len(a))
	return diff, math.Sqrt(se / n / max(n-1, 1))
}

func (r *Result) find(format string, a ...any) {
	r.Findings = append(r.Findings, fmt.Sprintf(format, a...))
}

// half is the half-width of the 95 % interval of free parameter x, of its
// logarithm where it is one. open says why the data leave it undetermined, ""
// where they do not.
func (c candidate) half(points []Point, s lm.Solution, x int) (half float64, open string) {
	half = stats.TQuantile(s.DF) * s.SE[x]
	largest := 0.0
	for _, p := range points {
		largest = max(largest, p.Intensity)
	}
	switch {
	case s.AtBound[x]:
		return half, "not identified: the fit ran to the bound of this parameter"
	case !finite(half):
		return half, "not identified: the data leave it undetermined"
	case c.isLog(c.free[x]) && math.Exp(2*half) > decade:
		return half, fmt.Sprintf("not identified: its interval spans a factor of %.3g", math.Exp(2*half))
	case !c.isLog(c.free[x]) && half > largest:
		return half, fmt.Sprintf("not identified: its interval is ± %.3g", half)
	}
	return half, ""
}

// tells says whether the data determine every parameter of the form, but for
// the sharpness of a knee, which only points right at it show.
func (c candidate) tells(points []Point, s lm.Solution) bool {
	for x, j := range c.free {
		if c.form == Cores && j == coreSharp {
			continue
		}
		if _, open := c.half(points, s, x); open != "" {
			return false
		}
	}
	return true
}

// values turns the solution into parameters with intervals.
func (r *Result) values(points []Point, s lm.Solution) {
	c, most := r.fitted, 0
	for _, p := range points {
		most = max(most, p.Cores)
	}
	value := func(j int, otherwise string) model.Value {
		x := slices.Index(c.free, j)
		if x < 0 {
			return model.Value{Note: otherwise}
		}
		half, open := c.half(points, s, x)
		if open != "" {
			return model.Value{Note: open}
		}
		v := model.Value{Value: c.natural(j, r.q[j]), Low: c.natural(j, r.q[j]-half), High: c.natural(j, r.q[j]+half), Identified: true}
		v.Low = max(v.Low, 0)
		return v
	}
	const notFitted = "not in the form that predicts best"
	if r.Form == Cores {
		r.D0, r.Dm = value(coreD0, notFitted), value(coreDm, "not identified: one intensity cannot tell the cost of an access")
		r.Roof, r.IO = value(coreRoof, "not identified: no point on the memory's roof"), value(coreIO, "not identified: no point on the I/O ceiling")
		r.Wait = value(coreWait, "no wait at a busy memory shows")
		r.Sharpness = value(coreSharp, "a hard knee predicts as well")
		r.A, r.C = over(r.D0, float64(most)), over(r.Dm, float64(most))
		r.B = model.Value{Note: "the cores form has no Eq. 2 term"}
	} else {
		r.A, r.C = value(curveA, "not identified: no point below the knee"), value(curveC, "not identified: no cost of an access shows")
		r.Roof = value(curveRoof, fmt.Sprintf("not identified: fewer than %d intensities lie past a knee", wellPast))
		r.B = value(curveB, "0: Eq. 1 has no queuing term")
		note := "not identified: all points are on the same number of cores"
		for _, v := range []*model.Value{&r.D0, &r.Dm, &r.Wait, &r.IO, &r.Sharpness} {
			v.Note = note
		}
	}
	if !r.Roof.Identified {
		for _, p := range points {
			r.Roof.Value = max(r.Roof.Value, p.Rate())
		}
		r.Roof.Note += "; at least the value"
	}
}

func over(v model.Value, n float64) model.Value {
	v.Value, v.Low, v.High = v.Value/n, v.Low/n, v.High/n
	return v
}

// quality fills goodness of fit and residuals, and reports outliers and points
// above the roof.
func (r *Result) quality(points []Point, s lm.Solution) {
	q := &r.Quality
	q.N, q.ResidualScale = len(points), s.Scale
	mean, residual, total, logT := 0.0, 0.0, 0.0, r.fitted.logT(r.q)
	for _, p := range points {
		mean += p.Mpps / float64(len(points))
	}
	for k, p := range points {
		fitted := math.Exp(logT(p))
		res := Residual{Point: p, Fitted: fitted, Pct: 100 * (p.Mpps/fitted - 1), Weight: s.Weights[k]}
		res.Outlier = math.Abs(s.Residuals[k]) > stats.OutlierCut*math.Hypot(s.Scale, p.sigma())
		r.Residuals = append(r.Residuals, res)
		pct := 100 * math.Abs(fitted/p.Mpps-1)
		q.MAPE += pct / float64(len(points))
		q.MaxPct = max(q.MaxPct, pct)
		residual += (p.Mpps - fitted) * (p.Mpps - fitted)
		total += (p.Mpps - mean) * (p.Mpps - mean)
		if res.Outlier {
			q.Outliers++
		}
		excess := p.Rate()/r.Roof.Value - 1
		switch {
		case r.Roof.Identified && excess > aboveShare && p.Rate() > r.Roof.High && res.Outlier:
			r.find("above the roof: %v is %.4g Mops/s, %.1f %% over the fitted roof of %.4g", p, p.Rate(), 100*excess, r.Roof.Value)
		case res.Outlier && math.Abs(res.Pct) > 100*aboveShare:
			r.find("outlier: %v, the fit says %.4g", p, fitted)
		}
	}
	if total > 0 {
		q.R2 = 1 - residual/total
	} else if residual == 0 {
		q.R2 = 1
	}
}

// bootstrap refits to the fitted curve with resampled residuals, and keeps the
// 2.5th and 97.5th percentile of each parameter.
func (r *Result) bootstrap(points []Point, s lm.Solution, opt lm.Options, o Options) {
	rng := sim.NewStream(o.Seed, "fit/roofline/bootstrap")
	opt.Scale = s.Scale
	again := slices.Clone(points)
	draws := make([][]float64, len(r.fitted.free))
	for range o.Bootstrap {
		for k, res := range r.Residuals {
			factor := math.Exp(s.Residuals[rng.IntN(len(points))])
			again[k].Mpps = res.Fitted * factor
			again[k].Low, again[k].High = points[k].Low*again[k].Mpps/points[k].Mpps, points[k].High*again[k].Mpps/points[k].Mpps
		}
		_, q, err := r.fitted.fit(again, [][]float64{r.q}, opt)
		if err != nil {
			continue
		}
		for x, j := range r.fitted.free {
			draws[x] = append(draws[x], r.fitted.natural(j, q[j]))
		}
	}
	for x, name := range r.fitted.names {
		d := stats.Sorted(draws[x])
		r.Bootstrap = append(r.Bootstrap, Interval{name, d.Percentile(2.5), d.Percentile(97.5)})
	}
}

// isLog says whether parameter j is a logarithm: all but B are.
func (c candidate) isLog(j int) bool { return c.form == Cores || j != curveB }

// natural undoes the logarithm of parameter j.
func (c candidate) natural(j int, v float64) float64 {
	if c.isLog(j) {
		return math.Exp(v)
	}
	return v
}

func pick(v []float64, at []int) []float64 {
	out := make([]float64, len(at))
	for x, j := range at {
		out[x] = v[j]
	}
	return out
}

// distinct returns the different keys of points in the order they first occur.
func distinct[K comparable](points []Point, key func(Point) K) []K {
	var out []K
	for _, p := range points {
		if k := key(p); !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
