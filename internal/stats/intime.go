package stats

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Thresholds of InTime. A finding must be both significant and large enough to
// matter: with a steady board a shift of 0.1 % is significant and harmless.
const (
	MinSeries   = 10   // fewer values tell nothing about time
	RegimeSize  = 0.02 // least step between regimes, of the larger level
	DriftSize   = 0.01 // least change over the series, of the median
	regimeNoise = 3    // least step, in spreads of the values around their level
	inTimeAlpha = 0.01 // significance of the tests
)

// Kinds of findings about a series in time. A warning that begins with
// Regimes marks values that are no single measurement; see IsRegimes.
const (
	Regimes = "regimes in time"
	Drift   = "drift in time"
)

// Finding is what InTime has to say; Text starts with Kind and is complete for
// a reader.
type Finding struct {
	Kind     string    `json:"kind"`
	Text     string    `json:"text"`
	Segments []Segment `json:"segments,omitempty"` // of regimes
}

// Segment is a stretch of a series, values First to Last counted from 1, with
// its median level.
type Segment struct {
	First int     `json:"first"`
	Last  int     `json:"last"`
	Level float64 `json:"level"`
}

// IsRegimes says whether one of a measurement's warnings is a regimes finding:
// its mean then describes no state that the board was in, and a fitter leaves
// the point out.
func IsRegimes(warnings []string) bool {
	return slices.ContainsFunc(warnings, func(w string) bool { return strings.HasPrefix(w, Regimes) })
}

// InTime looks for regimes (levels that change at once) and drift (a steady
// trend) in a series in the order of measurement. Change points are Pettitt's,
// found by binary segmentation: the statistic uses ranks only, so single wild
// values do not make a regime. Drift is Mann and Kendall's test with Theil and
// Sen's slope. A trend also looks like a step and a step like a trend; the
// description with the smaller absolute residual is reported.
func InTime(xs []float64) []Finding {
	if len(xs) < MinSeries || check(xs) != nil {
		return nil
	}
	segments := segment(xs, 0)
	drift, change, residual := trend(xs)
	if len(segments) > 1 && (!drift || residualOf(xs, segments) < residual) {
		parts := make([]string, len(segments))
		for i, s := range segments {
			parts[i] = fmt.Sprintf("%.4g (values %d to %d)", s.Level, s.First, s.Last)
		}
		return []Finding{{Kind: Regimes, Segments: segments,
			Text: fmt.Sprintf("%s: %s; measure again, the mean describes none of them", Regimes, strings.Join(parts, ", then "))}}
	}
	if drift {
		return []Finding{{Kind: Drift,
			Text: fmt.Sprintf("%s: %+.1f %% of the median over %d values; let the board settle and measure again", Drift, 100*change, len(xs))}}
	}
	return nil
}

// segment splits xs, which starts at value offset of the series, at its change
// points.
func segment(xs []float64, offset int) []Segment {
	if at, ok := changePoint(xs); ok {
		return append(segment(xs[:at], offset), segment(xs[at:], offset+at)...)
	}
	return []Segment{{First: offset + 1, Last: offset + len(xs), Level: Median(xs)}}
}

// changePoint returns the index that starts a second regime: where Pettitt's
// |U_t| is greatest, if that is significant and the step is large both against
// the level and against the noise.
func changePoint(xs []float64) (int, bool) {
	n := len(xs)
	if n < MinSeries {
		return 0, false
	}
	at, most, sum := 0, 0.0, 0.0
	for t, r := range ranks(xs) {
		sum += r
		if u := math.Abs(2*sum - float64((t+1)*(n+1))); u > most {
			at, most = t+1, u
		}
	}
	N := float64(n)
	if at == 0 || 2*math.Exp(-6*most*most/(N*N*N+N*N)) > inTimeAlpha {
		return 0, false
	}
	a, b := Median(xs[:at]), Median(xs[at:])
	step := math.Abs(a - b)
	noise := math.Max(Spread(xs[:at]), Spread(xs[at:]))
	return at, step > RegimeSize*math.Max(math.Abs(a), math.Abs(b)) && step > regimeNoise*noise
}

// residualOf is the sum of absolute deviations from the segments' levels.
func residualOf(xs []float64, segments []Segment) float64 {
	sum := 0.0
	for _, s := range segments {
		for _, x := range xs[s.First-1 : s.Last] {
			sum += math.Abs(x - s.Level)
		}
	}
	return sum
}

// trend says whether xs drifts: by how much of its median over the series, and
// the sum of absolute deviations from the trend line. Long series are thinned
// by medians of equal stretches, since the slopes of all pairs are needed.
func trend(xs []float64) (drift bool, change, residual float64) {
	ys, ts := thin(xs, 200)
	n := len(ys)
	s, slopes := 0, make([]float64, 0, n*(n-1)/2)
	for i := range ys {
		for j := i + 1; j < n; j++ {
			s += sign(ys[j] - ys[i])
			slopes = append(slopes, (ys[j]-ys[i])/(ts[j]-ts[i]))
		}
	}
	slope := Median(slopes)
	offsets := make([]float64, n)
	for i := range ys {
		offsets[i] = ys[i] - slope*ts[i]
	}
	offset := Median(offsets)
	for i, x := range xs {
		residual += math.Abs(x - offset - slope*float64(i))
	}
	N := float64(n)
	z := (math.Abs(float64(s)) - 1) / math.Sqrt(N*(N-1)*(2*N+5)/18-tieTerm(ys)/18)
	level := math.Abs(Median(xs))
	if level == 0 || !(z > zQuantile(1-inTimeAlpha/2)) {
		return false, 0, residual
	}
	change = slope * float64(len(xs)-1) / level
	return math.Abs(change) > DriftSize, change, residual
}

// thin returns at most limit medians of equal stretches of xs, with the mean
// index of each stretch.
func thin(xs []float64, limit int) (ys, ts []float64) {
	width := (len(xs) + limit - 1) / limit
	for i := 0; i < len(xs); i += width {
		end := min(i+width, len(xs))
		ys = append(ys, Median(xs[i:end]))
		ts = append(ts, float64(i+end-1)/2)
	}
	return ys, ts
}

func sign(x float64) int {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}
