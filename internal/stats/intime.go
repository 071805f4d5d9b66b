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
	MinSeries    = 10   // fewer values tell nothing about time; a regime has at least half as many, and a tenth of the series
	RegimeSize   = 0.02 // least step between regimes, of the larger level
	DriftSize    = 0.01 // least change over the series, of the median
	regimeNoise  = 3    // least step, in spreads of the values around their level
	regimeStrays = 0.2  // most values of a regime that lie closer to the other level
	driftAlpha   = 1e-3 // significance of a drift
	maxBlocks    = 200  // stretches that a long series is thinned to
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
// trend) in a series in the order of measurement. Regimes are the least-cost
// partition of the series into levels (every change has a price, as in PELT);
// it works on medians of a few neighbours, so single wild values make none.
// Drift is Mann and Kendall's test with Theil and Sen's slope. A trend also
// looks like steps and a step like a trend; the description with the smaller
// absolute residual is reported.
func InTime(xs []float64) []Finding {
	if len(xs) < MinSeries || check(xs) != nil {
		return nil
	}
	segments := partition(xs)
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

// partition returns the regimes of xs, a single segment if it has but one.
func partition(xs []float64) []Segment {
	width := max(3, (len(xs)+maxBlocks-1)/maxBlocks)
	blocks, _ := thin(xs, width)
	var starts []int // of the segments, as indices of xs
	for _, b := range changes(blocks) {
		starts = append(starts, b*width)
	}
	// The changes lie anywhere in their blocks: move each to where the two
	// levels around it fit best.
	for k := 1; k < len(starts); k++ {
		end := len(xs)
		if k+1 < len(starts) {
			end = starts[k+1]
		}
		a, b := Median(xs[starts[k-1]:starts[k]]), Median(xs[starts[k]:end])
		first := max(starts[k]-2*width, starts[k-1]+1)
		at, cost, least := first, 0.0, 0.0
		for i := first; i < min(starts[k]+2*width, end); i++ {
			if cost < least {
				at, least = i, cost
			}
			cost += math.Abs(xs[i]-a) - math.Abs(xs[i]-b)
		}
		starts[k] = at
	}
	return merge(xs, starts)
}

// changes returns the first index of each level of the least-cost partition of
// ys: squared deviations from the mean of each stretch, in units of the noise
// between neighbours, plus a price a stretch.
func changes(ys []float64) []int {
	const shortest = 2
	n := len(ys)
	diffs, abs := make([]float64, n-1), make([]float64, n)
	sum, squares := make([]float64, n+1), make([]float64, n+1)
	centre := Median(ys) // keeps the squares' differences exact
	for i, y := range ys {
		if i > 0 {
			diffs[i-1] = y - ys[i-1]
		}
		abs[i] = math.Abs(y)
		sum[i+1], squares[i+1] = sum[i]+y-centre, squares[i]+(y-centre)*(y-centre)
	}
	noise := max(Spread(diffs)/math.Sqrt2, RegimeSize/8*Median(abs))
	price := 4 * math.Log(float64(n)) * noise * noise
	best, from := make([]float64, n+1), make([]int, n+1)
	for j := 1; j <= n; j++ {
		best[j] = math.Inf(1)
		for i := 0; i <= j-shortest; i++ {
			s := sum[j] - sum[i]
			if c := best[i] + squares[j] - squares[i] - s*s/float64(j-i) + price; c < best[j] {
				best[j], from[j] = c, i
			}
		}
	}
	var starts []int
	for j := n; j > 0; j = from[j] {
		starts = append(starts, from[j])
	}
	slices.Reverse(starts)
	return starts
}

// merge joins neighbouring segments that are too short or too alike to be
// regimes, the closest pair first.
func merge(xs []float64, starts []int) []Segment {
	starts = append(slices.Clone(starts), len(xs))
	shortest := max(MinSeries/2, len(xs)/10)
	for len(starts) > 2 {
		weakest, least := 0, 1.0
		for k := 1; k+1 < len(starts); k++ {
			if s := strength(xs[starts[k-1]:starts[k]], xs[starts[k]:starts[k+1]], shortest); s < least {
				weakest, least = k, s
			}
		}
		if weakest == 0 {
			break
		}
		starts = slices.Delete(starts, weakest, weakest+1)
	}
	segments := make([]Segment, len(starts)-1)
	for k := range segments {
		segments[k] = Segment{First: starts[k] + 1, Last: starts[k+1], Level: Median(xs[starts[k]:starts[k+1]])}
	}
	return segments
}

// strength is how clearly two neighbouring stretches are regimes of their own:
// the step between them in units of the least that counts, next to nothing if
// one is short or is a mixture (a cluster of wild values looks like a level).
func strength(left, right []float64, shortest int) float64 {
	a, b := Median(left), Median(right)
	step := math.Abs(a - b)
	if step == 0 {
		return 0
	}
	s := step / max(RegimeSize*max(math.Abs(a), math.Abs(b)), regimeNoise*max(Spread(left), Spread(right)))
	strays := func(xs []float64, own, other float64) float64 {
		n := 0.0
		for _, x := range xs {
			if math.Abs(x-own) > math.Abs(x-other) {
				n++
			}
		}
		return n / float64(len(xs))
	}
	if len(left) < shortest || len(right) < shortest || max(strays(left, a, b), strays(right, b, a)) > regimeStrays {
		s *= 1e-6
	}
	return s
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
	ys, ts := thin(xs, (len(xs)+maxBlocks-1)/maxBlocks)
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
	if level == 0 || !(z > zQuantile(1-driftAlpha/2)) {
		return false, 0, residual
	}
	change = slope * float64(len(xs)-1) / level
	return math.Abs(change) > DriftSize, change, residual
}

// thin returns the medians of stretches of xs of that width, with the mean
// index of each stretch.
func thin(xs []float64, width int) (ys, ts []float64) {
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
