// Package stats is the house's one face of statistics: summaries that put the
// median and the outlier count beside the mean, detection of regimes and drift
// in time, and comparison of two sets of values that never claims more than
// they show. Each notion has one definition here, so that two files of ours
// never mean different things by the same word:
//
//   - standard deviation: of a sample (n−1);
//   - percentile: linear between order statistics at rank p/100·(n−1);
//   - spread: MAD × 1.4826, which estimates the standard deviation of normal
//     data and ignores outliers;
//   - outlier: further than OutlierCut spreads from the median, on either side;
//   - median interval: distribution-free, from two order statistics.
package stats

import (
	"fmt"
	"math"
	"slices"

	mstats "github.com/montanaflynn/stats"
	"gonum.org/v1/gonum/stat/distuv"
)

// Constants of the definitions above.
const (
	Confidence = 0.95   // of every interval
	MADScale   = 1.4826 // MAD of normal data to its standard deviation
	OutlierCut = 3.5    // spreads from the median (Iglewicz and Hoaglin)
)

// Summary describes one set of values, in their own unit.
type Summary struct {
	N                int       `json:"n"`
	Mean             float64   `json:"mean"`
	MeanLow          float64   `json:"mean_low"` // 95 % interval of the mean (Student's t)
	MeanHigh         float64   `json:"mean_high"`
	StdDev           float64   `json:"stddev"` // of a sample; 0 for one value
	Median           float64   `json:"median"`
	MedianLow        float64   `json:"median_low"`
	MedianHigh       float64   `json:"median_high"`
	MedianConfidence float64   `json:"median_confidence"` // reached by the median's interval: below 0.95 when n < 6
	Spread           float64   `json:"spread"`            // MAD × 1.4826
	Min              float64   `json:"min"`
	P5               float64   `json:"p5"`
	P95              float64   `json:"p95"`
	Max              float64   `json:"max"`
	Outliers         int       `json:"outliers"`
	Findings         []Finding `json:"findings,omitempty"` // regimes or drift, when the values are a series in time
}

// Summarise describes xs, which are taken to be in the order in which they
// were measured. It refuses an empty set, NaN, infinities and what overflows.
func Summarise(xs []float64) (Summary, error) {
	if err := check(xs); err != nil {
		return Summary{}, err
	}
	sorted := Sorted(xs)
	s := Summary{
		N: len(xs), Mean: mean(xs), Median: sorted.Percentile(50), Spread: Spread(xs),
		Min: sorted[0], P5: sorted.Percentile(5), P95: sorted.Percentile(95), Max: sorted[len(sorted)-1],
		Outliers: len(Outliers(xs)), Findings: InTime(xs),
	}
	s.MeanLow, s.MeanHigh = s.Mean, s.Mean
	if s.N > 1 {
		s.StdDev = stdDev(xs)
		half := TQuantile(s.N-1) * s.StdDev / math.Sqrt(float64(s.N))
		s.MeanLow, s.MeanHigh = s.Mean-half, s.Mean+half
	}
	s.MedianLow, s.MedianHigh, s.MedianConfidence = sorted.MedianInterval()
	if !finite(s.Mean, s.MeanLow, s.MeanHigh, s.StdDev, s.Spread) {
		return Summary{}, fmt.Errorf("values from %g to %g are too large to square", s.Min, s.Max)
	}
	return s, nil
}

func check(xs []float64) error {
	if len(xs) == 0 {
		return fmt.Errorf("no values")
	}
	for i, x := range xs {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("value %d of %d is %v, expected a finite number", i+1, len(xs), x)
		}
	}
	return nil
}

// SortedValues are values in ascending order: sort once, then ask for many
// percentiles.
type SortedValues []float64

// Sorted returns the values of xs in ascending order; xs is left alone.
func Sorted(xs []float64) SortedValues {
	s := slices.Clone(xs)
	slices.Sort(s)
	return s
}

// Percentile returns the p-th percentile, 0 ≤ p ≤ 100, linear between order
// statistics at rank p/100·(n−1): 0 gives the least value, 100 the greatest.
// It is NaN for no values.
func (s SortedValues) Percentile(p float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	rank := min(max(p, 0), 100) / 100 * float64(len(s)-1)
	lo := int(rank)
	if lo+1 >= len(s) {
		return s[len(s)-1]
	}
	return s[lo] + (rank-float64(lo))*(s[lo+1]-s[lo])
}

// MedianInterval returns the narrowest symmetric pair of order statistics that
// holds the median with at least 95 % confidence, whatever the distribution,
// and the confidence it reaches. Fewer than six values cannot reach 95 %: then
// the interval is their whole range and says so by its confidence.
func (s SortedValues) MedianInterval() (low, high, confidence float64) {
	n := len(s)
	if n == 0 {
		return math.NaN(), math.NaN(), 0
	}
	b := distuv.Binomial{N: float64(n), P: 0.5}
	k := 0 // values cut from each end
	for k+1 < (n+1)/2 && 1-2*b.CDF(float64(k+1)) >= Confidence {
		k++
	}
	return s[k], s[n-1-k], 1 - 2*b.CDF(float64(k))
}

// Median returns the median of xs, NaN for none.
func Median(xs []float64) float64 {
	m, err := mstats.Median(xs)
	if err != nil {
		return math.NaN()
	}
	return m
}

// Spread returns MAD × 1.4826 of xs: the standard deviation that normal data
// of this spread would have, deaf to outliers. It is NaN for no values.
func Spread(xs []float64) float64 {
	m, err := mstats.MedianAbsoluteDeviation(xs)
	if err != nil {
		return math.NaN()
	}
	return MADScale * m
}

// Outliers returns the indices of the values further than OutlierCut spreads
// from the median, above as well as below. Where more than half of the values
// are equal the spread is zero; then the mean absolute deviation, scaled to
// the same normal data (× 1.2533), stands in.
func Outliers(xs []float64) []int {
	m, spread := Median(xs), Spread(xs)
	if spread == 0 {
		for _, x := range xs {
			spread += math.Abs(x - m)
		}
		spread *= math.Sqrt(math.Pi/2) / float64(len(xs))
	}
	var out []int
	for i, x := range xs {
		if math.Abs(x-m) > OutlierCut*spread {
			out = append(out, i)
		}
	}
	return out
}

// TQuantile returns the 97.5 % quantile of Student's t with df degrees of
// freedom: intervals are the estimate ± TQuantile(df) standard errors.
func TQuantile(df int) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(max(df, 1))}.Quantile(1 - (1-Confidence)/2)
}

// mean and stdDev are called on checked values only, so the library's errors
// (empty input) cannot arise.
func mean(xs []float64) float64 {
	m, _ := mstats.Mean(xs)
	return m
}

func stdDev(xs []float64) float64 {
	s, _ := mstats.StandardDeviationSample(xs)
	return s
}
