// Package locks fits the throughput of programs whose packets take a lock, by
// the number of lock elements that equal flows hit: Eq. 6 of the Cora paper
// (section 5.2). Each element passes T_lock, the elements work side by side,
// and together they pass no more than the same program without locks:
//
//	T(k) = min(k·T_lock, T_lockfree),   N_thread = T_lockfree/T_lock
//
// The straight line holds up to some number of elements only; how far, and
// whether the curve then jumps, bends or falls again, is part of the result.
package locks

import (
	"fmt"
	"math"
	"slices"

	"nicprof/internal/fault"
	"nicprof/internal/lm"
	"nicprof/internal/stats"
	"nicprof/model"
)

// Point is the throughput with equal flows on Elements locks.
type Point struct {
	Elements int      `json:"elements"`
	Mpps     float64  `json:"mpps"`
	Low      float64  `json:"low,omitempty"` // 95 % interval; both 0: not known
	High     float64  `json:"high,omitempty"`
	Label    string   `json:"label,omitempty"` // where the point is from, for findings
	Warnings []string `json:"warnings,omitempty"`
}

func (p Point) String() string {
	s := fmt.Sprintf("%.6g Mpps on %d lock element(s)", p.Mpps, p.Elements)
	if p.Label != "" {
		s += " (" + p.Label + ")"
	}
	return s
}

// Options of Fit.
type Options struct {
	// LockFree is the throughput of the same program without locks, Mpps, with
	// its interval; zero: taken from the plateau of the points, if they have
	// one. Its Elements are ignored.
	LockFree Point
	// Tolerance is the relative distance from the line that still counts as
	// linear; 0: 5 %.
	Tolerance float64
}

// Result is a fitted lock. Rates are Mpps.
type Result struct {
	TLock    model.Value   `json:"t_lock_mpps"`
	LockFree model.Value   `json:"lock_free_mpps"`
	NThread  model.Value   `json:"n_thread"`
	LinearTo int           `json:"linear_to"` // most elements within tolerance of k·T_lock, all fewer ones too; 0: none
	Jump     *Point        `json:"jump,omitempty"`
	Fall     *Fall         `json:"fall,omitempty"`
	Quality  model.Quality `json:"quality"` // of T(k) over all points
	Findings []string      `json:"findings,omitempty"`
}

// Fall is a retrograde stretch: throughput falls again beyond Best.
type Fall struct {
	Best Point `json:"best"`
	Last Point `json:"last"`
}

// Mpps is T(k) of k elements, 0 where T_lock is not identified.
func (r Result) Mpps(k int) float64 {
	t := float64(k) * r.TLock.Value
	if r.LockFree.Identified {
		t = min(t, r.LockFree.Value)
	}
	return t
}

const (
	defaultTolerance = 0.05
	belowKnee        = 0.9  // share of the lock-free rate below which a point can lie on the line
	fallSize         = 0.03 // least fall that is called retrograde
	normal95         = 1.959964
)

// Fit fits points. Errors are the input's fault.
func Fit(points []Point, o Options) (Result, error) {
	if o.Tolerance == 0 {
		o.Tolerance = defaultTolerance
	}
	if !(o.Tolerance > 0 && o.Tolerance < 1) {
		return Result{}, fault.Inputf("tolerance %v, expected a share between 0 and 1", o.Tolerance)
	}
	for k, p := range points {
		if p.Elements < 1 {
			return Result{}, fault.Inputf("%s: %d lock elements, expected 1 or more", p.where(k), p.Elements)
		}
		if err := p.check(p.where(k)); err != nil {
			return Result{}, err
		}
	}
	if o.LockFree.Mpps != 0 {
		if err := o.LockFree.check("the lock-free point"); err != nil {
			return Result{}, err
		}
	}
	var r Result
	kept := slices.DeleteFunc(slices.Clone(points), func(p Point) bool {
		if stats.IsRegimes(p.Warnings) {
			r.find("left out %v: it was measured in several regimes in time, so its mean is no measurement", p)
			return true
		}
		return false
	})
	places := places(kept)
	if len(places) < 2 {
		return Result{}, fault.Inputf("%d usable point(s) at %d number(s) of lock elements: the line needs at least 2; measure more numbers of elements", len(kept), len(places))
	}
	r.fall(places)
	r.lockFree(places, o)
	r.line(places, o.Tolerance)
	r.quality(kept, o.Tolerance)
	return r, nil
}

func (p Point) where(k int) string {
	if p.Label != "" {
		return p.Label
	}
	return fmt.Sprintf("point %d", k+1)
}

func (p Point) check(where string) error {
	const most = 1e9 // Mpps that no board passes
	if !(p.Mpps >= 1/most && p.Mpps <= most) {
		return fault.Inputf("%s: throughput %v Mpps, expected a number above 0, up to %g; leave out measurements that failed", where, p.Mpps, most)
	}
	if (p.Low != 0 || p.High != 0) && !(p.Low >= 0 && p.Low <= p.Mpps && p.High >= p.Mpps && !math.IsInf(p.High, 0)) {
		return fault.Inputf("%s: interval %v to %v does not hold its throughput %v Mpps", where, p.Low, p.High, p.Mpps)
	}
	return nil
}

// places returns one point for each number of elements, ascending: the median
// throughput, and the widest interval of those measured there.
func places(points []Point) []Point {
	by := map[int][]Point{}
	for _, p := range points {
		by[p.Elements] = append(by[p.Elements], p)
	}
	var out []Point
	for k, ps := range by {
		var ys []float64
		widest := 0.0
		for _, p := range ps {
			ys = append(ys, p.Mpps)
			widest = max(widest, p.sigma())
		}
		m := stats.Median(ys)
		out = append(out, Point{Elements: k, Mpps: m, Low: m * (1 - normal95*widest), High: m * (1 + normal95*widest), Label: ps[0].Label})
	}
	slices.SortFunc(out, func(a, b Point) int { return a.Elements - b.Elements })
	return out
}

// sigma is the relative standard error of the throughput, 0 if not known.
func (p Point) sigma() float64 { return (p.High - p.Low) / (2 * normal95 * p.Mpps) }

// fall recognises throughput that falls again with more elements.
func (r *Result) fall(places []Point) {
	best, last := places[0], places[len(places)-1]
	for _, p := range places {
		if p.Mpps > best.Mpps {
			best = p
		}
	}
	drop := 1 - last.Mpps/best.Mpps
	if drop > fallSize && drop > normal95*math.Hypot(best.sigma(), last.sigma()) {
		r.Fall = &Fall{best, last}
		r.find("retrograde: past %v throughput falls again, to %v; the best point counts", best, last)
	}
}

// lockFree takes the bound from its own measurement, or from a plateau of at
// least two places up to the best one.
func (r *Result) lockFree(places []Point, o Options) {
	if f := o.LockFree; f.Mpps > 0 {
		r.LockFree = model.Value{Value: f.Mpps, Low: f.Mpps, High: f.Mpps, Identified: true}
		if f.High > 0 {
			r.LockFree.Low, r.LockFree.High = f.Low, f.High
		}
		return
	}
	best := 0
	for k, p := range places {
		if p.Mpps > places[best].Mpps {
			best = k
		}
	}
	var plateau []float64
	for _, p := range places {
		if p.Mpps > places[best].Mpps*(1-o.Tolerance) {
			plateau = append(plateau, p.Mpps)
		}
	}
	if len(plateau) < 2 {
		r.LockFree = model.Value{Value: places[best].Mpps, Note: "not identified: no plateau was measured and no lock-free rate given; at least the value"}
		return
	}
	s := stats.Sorted(plateau)
	r.LockFree = model.Value{Value: s.Percentile(50), Low: s[0], High: s[len(s)-1], Identified: true, Note: "from the plateau of the points"}
}

// line finds T_lock: the rate an element that most places below the knee
// agree on, by a robust mean over those places.
func (r *Result) line(places []Point, tolerance float64) {
	var below []Point
	for _, p := range places {
		if !r.LockFree.Identified || p.Mpps < belowKnee*r.LockFree.Value {
			below = append(below, p)
		}
	}
	if len(below) == 0 {
		r.TLock = model.Value{Value: places[0].Mpps / float64(places[0].Elements),
			Note: "not identified: even the fewest elements reach the lock-free rate; at least the value"}
		r.NThread = model.Value{Note: "not identified: T_lock is not"}
		return
	}
	rate := func(p Point) float64 { return p.Mpps / float64(p.Elements) }
	var line []Point
	for _, p := range below {
		near := slices.DeleteFunc(slices.Clone(below), func(x Point) bool { return math.Abs(rate(x)/rate(p)-1) > tolerance })
		if len(near) > len(line) {
			line = near
		}
	}
	r.TLock = meanRate(line, rate, tolerance)
	if r.LockFree.Identified {
		v := r.LockFree.Value / r.TLock.Value
		half := math.Hypot(math.Log(r.TLock.High/r.TLock.Low), math.Log(r.LockFree.High/r.LockFree.Low)) / 2
		r.NThread = model.Value{Value: v, Low: v * math.Exp(-half), High: v * math.Exp(half), Identified: true}
	} else {
		r.NThread = model.Value{Value: r.LockFree.Value / r.TLock.Value, Note: "not identified: the lock-free rate is not; at least the value"}
	}
	r.shape(places, tolerance)
}

// meanRate is the robust mean of the logarithm of the rates an element, with
// its 95 % interval: from the scatter, from the measurements' own intervals
// where those are wider, and the tolerance where one place without an interval
// is all there is.
func meanRate(line []Point, rate func(Point) float64, tolerance float64) model.Value {
	pr := lm.Problem{Points: len(line), Params: 1, Sigma: make([]float64, len(line)),
		Residuals: func(p, r []float64) {
			for k, pt := range line {
				r[k] = math.Log(rate(pt)) - p[0]
			}
		}}
	rates, own := make([]float64, len(line)), 0.0
	for k, pt := range line {
		rates[k], pr.Sigma[k] = rate(pt), pt.sigma()
		own += pr.Sigma[k] * pr.Sigma[k]
	}
	half := normal95 * math.Sqrt(own) / float64(len(line))
	v := model.Value{Value: stats.Median(rates), Identified: true}
	// The start is finite since all rates are above zero, so Solve cannot fail.
	if s, err := lm.Solve(pr, [][]float64{{math.Log(v.Value)}}, lm.Options{}); err == nil && s.DF > 0 {
		v.Value = math.Exp(s.P[0])
		half = max(half, stats.TQuantile(s.DF)*s.SE[0])
	} else if half == 0 {
		half = tolerance
		v.Note = "from one point without an interval: the tolerance stands for it"
	}
	v.Low, v.High = v.Value*math.Exp(-half), v.Value*math.Exp(half)
	return v
}

// shape finds how far the line holds and what breaks it.
func (r *Result) shape(places []Point, tolerance float64) {
	for _, p := range places {
		off := p.Mpps/(float64(p.Elements)*r.TLock.Value) - 1
		if math.Abs(off) <= tolerance {
			r.LinearTo = p.Elements
			continue
		}
		if off > 0 {
			jump := p
			r.Jump = &jump
			r.find("jump: %v is %.0f %% above %d·T_lock; the locks no longer hold each other up", p, 100*off, p.Elements)
		}
		return
	}
}

// quality is the error of Eq. 6 over all points.
func (r *Result) quality(points []Point, tolerance float64) {
	q := &r.Quality
	q.N = len(points)
	if !r.TLock.Identified {
		return
	}
	mean, residual, total := 0.0, 0.0, 0.0
	for _, p := range points {
		mean += p.Mpps / float64(len(points))
	}
	logs := make([]float64, len(points))
	for k, p := range points {
		fitted := r.Mpps(p.Elements)
		logs[k] = math.Log(p.Mpps / fitted)
		pct := 100 * math.Abs(fitted/p.Mpps-1)
		q.MAPE += pct / float64(len(points))
		q.MaxPct = max(q.MaxPct, pct)
		residual += (p.Mpps - fitted) * (p.Mpps - fitted)
		total += (p.Mpps - mean) * (p.Mpps - mean)
		if r.LockFree.Identified && p.Mpps > r.LockFree.High*(1+tolerance) {
			r.find("above the lock-free rate: %v, without locks it is %.4g", p, r.LockFree.Value)
		}
	}
	q.Outliers, q.ResidualScale = len(stats.Outliers(logs)), stats.Spread(logs)
	if total > 0 {
		q.R2 = 1 - residual/total
	}
}

func (r *Result) find(format string, a ...any) {
	r.Findings = append(r.Findings, fmt.Sprintf(format, a...))
}
