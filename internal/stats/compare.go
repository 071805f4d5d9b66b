package stats

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Verdicts of a comparison.
const (
	Same      = "no difference"
	Different = "difference"
	TooFew    = "not enough samples"
)

// Comparison of old with new values. All its numbers are finite.
type Comparison struct {
	OldN    int     `json:"old_n"`
	NewN    int     `json:"new_n"`
	Old     float64 `json:"old"` // median, or the estimate itself
	New     float64 `json:"new"`
	Change  float64 `json:"change"` // new − old, with its 95 % interval
	Low     float64 `json:"change_low"`
	High    float64 `json:"change_high"`
	Percent *Ratio  `json:"percent,omitempty"` // absent unless all values are positive
	P       float64 `json:"p"`
	Verdict string  `json:"verdict"`
}

// Ratio is a relative change, per cent of old, with its 95 % interval.
type Ratio struct {
	Change float64 `json:"change"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Below says whether new is below old beyond doubt and by more than percent
// per cent (by anything where no ratio can be given): the whole interval of
// the change lies there, and the test agrees.
func (c Comparison) Below(percent float64) bool {
	if c.Verdict != Different {
		return false
	}
	if c.Percent == nil {
		return c.High < 0
	}
	return c.Percent.High < -percent
}

// Compare tests whether two independent sets of values differ: Mann and
// Whitney's test (exact with ties up to 60 values, else the normal
// approximation) and Hodges and Lehmann's interval of the shift. It answers
// "not enough samples" where no outcome of the test could have been
// significant, such as one value against one. It refuses empty sets, NaN and
// infinities.
func Compare(before, after []float64) (Comparison, error) {
	if err := check(before); err != nil {
		return Comparison{}, fmt.Errorf("old values: %w", err)
	}
	if err := check(after); err != nil {
		return Comparison{}, fmt.Errorf("new values: %w", err)
	}
	m, n := len(before), len(after)
	c := Comparison{OldN: m, NewN: n, Old: Median(before), New: Median(after), P: 1, Verdict: TooFew}
	all := ranks(append(slices.Clone(before), after...))
	null := newRankNull(all, m)
	cut := null.cut((1 - Confidence) / 2)
	c.Change, c.Low, c.High = shift(before, after, cut, func(o, n float64) float64 { return n - o })
	if slices.Min(before) > 0 && slices.Min(after) > 0 {
		mid, low, high := shift(before, after, cut, func(o, n float64) float64 { return math.Log(n / o) })
		if r := (Ratio{100 * math.Expm1(mid), 100 * math.Expm1(low), 100 * math.Expm1(high)}); finite(r.Change, r.Low, r.High) {
			c.Percent = &r
		}
	}
	if !finite(c.Change, c.Low, c.High) {
		return Comparison{}, fmt.Errorf("the values are too large to subtract")
	}
	if cut < 0 {
		return c, nil
	}
	sum := 0.0
	for _, r := range all[:m] {
		sum += r
	}
	c.P = null.p(sum)
	c.Verdict = Same
	if c.P < 1-Confidence && (c.Low > 0 || c.High < 0) {
		c.Verdict = Different
	}
	return c, nil
}

// Estimate is a value with its 95 % interval from N runs or batches.
type Estimate struct {
	Value, Low, High float64
	N                int
}

// CompareEstimates compares two independent estimates by their intervals, for
// measurements whose single values were not kept. The interval of the
// difference is Donner and Zou's (each side combined in quadrature). An
// estimate from fewer than two runs has no interval: "not enough samples".
func CompareEstimates(before, after Estimate) (Comparison, error) {
	for _, e := range []Estimate{before, after} {
		if !finite(e.Value, e.Low, e.High) || e.Low > e.Value || e.High < e.Value {
			return Comparison{}, fmt.Errorf("estimate %g [%g, %g], expected finite numbers in order", e.Value, e.Low, e.High)
		}
	}
	c := Comparison{OldN: before.N, NewN: after.N, Old: before.Value, New: after.Value, Change: after.Value - before.Value, P: 1, Verdict: TooFew}
	down := math.Hypot(after.Value-after.Low, before.High-before.Value)
	up := math.Hypot(after.High-after.Value, before.Value-before.Low)
	c.Low, c.High = c.Change-down, c.Change+up
	if !finite(c.Change, c.Low, c.High) {
		return Comparison{}, fmt.Errorf("the estimates are too large to subtract")
	}
	if before.Low > 0 && after.Low > 0 {
		o, n := before, after
		mid := math.Log(n.Value / o.Value)
		low := mid - math.Hypot(math.Log(n.Value/n.Low), math.Log(o.High/o.Value))
		high := mid + math.Hypot(math.Log(n.High/n.Value), math.Log(o.Value/o.Low))
		if r := (Ratio{100 * math.Expm1(mid), 100 * math.Expm1(low), 100 * math.Expm1(high)}); finite(r.Change, r.Low, r.High) {
			c.Percent = &r
		}
	}
	if before.N < 2 || after.N < 2 {
		return c, nil
	}
	c.Verdict = Same
	half := up // the side of the interval that faces zero
	if c.Change > 0 {
		half = down
	}
	switch {
	case c.Change == 0:
	case half == 0: // both exact and unequal
		c.P, c.Verdict = 0, Different
	default:
		c.P = 2 * distuv.UnitNormal.Survival(math.Abs(c.Change)/half*zQuantile(1-(1-Confidence)/2))
		if c.Low > 0 || c.High < 0 {
			c.Verdict = Different
		}
	}
	return c, nil
}

// FalseDiscovery returns Benjamini and Hochberg's adjusted p values, in the
// order given: of the differences whose adjusted value is below q, a share of
// at most q is expected to be chance. A comparison of two sweeps makes
// hundreds of tests, of which one in twenty would be "significant" at 5 %
// between two runs of the same board.
func FalseDiscovery(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return sign(p[b] - p[a]) })
	adjusted, least := make([]float64, len(p)), 1.0
	for k, i := range order { // from the largest p down
		least = min(least, p[i]*float64(len(p))/float64(len(p)-k))
		adjusted[i] = least
	}
	return adjusted
}

// shift returns the median of all pairwise differences and the pair of order
// statistics that the test's cut-off names; with no cut-off, their range.
func shift(before, after []float64, cut int, diff func(o, n float64) float64) (mid, low, high float64) {
	ds := make([]float64, 0, len(before)*len(after))
	for _, o := range before {
		for _, n := range after {
			ds = append(ds, diff(o, n))
		}
	}
	s := Sorted(ds)
	k := max(cut, 0)
	return s.Percentile(50), s[k], s[len(s)-1-k]
}

// ranks returns the rank of each value from 1, ties sharing their mean rank.
func ranks(xs []float64) []float64 {
	order := make([]int, len(xs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return sign(xs[a] - xs[b]) })
	r := make([]float64, len(xs))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && xs[order[j]] == xs[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			r[k] = float64(i+j+1) / 2
		}
		i = j
	}
	return r
}

// tieTerm is Σ t(t−1)(2t+5) over groups of t equal values: what ties take from
// the variance of Kendall's statistic.
func tieTerm(xs []float64) float64 {
	s, sum := Sorted(xs), 0.0
	for i := 0; i < len(s); {
		j := i
		for j < len(s) && s[j] == s[i] {
			j++
		}
		t := float64(j - i)
		sum += t * (t - 1) * (2*t + 5)
		i = j
	}
	return sum
}

// rankNull is the distribution of the rank sum of m of the given values when
// both sets come from one population.
type rankNull struct {
	m, n int
	cum  []float64 // exact: P(doubled rank sum ≤ s); nil: normal approximation
	mean float64
	sd   float64
}

const exactLimit = 60 // values of both sets together

func newRankNull(ranks []float64, m int) *rankNull {
	N := len(ranks)
	d := &rankNull{m: m, n: N - m, mean: float64(m) * float64(N+1) / 2}
	squares := 0.0
	for _, r := range ranks {
		squares += (r - float64(N+1)/2) * (r - float64(N+1)/2)
	}
	if N > 1 {
		d.sd = math.Sqrt(float64(m) * float64(N-m) * squares / float64(N*(N-1)))
	}
	if N > exactLimit {
		return d
	}
	// ways[k][s]: choices of k values with doubled rank sum s.
	top := N * (N + 1)
	ways := make([][]float64, m+1)
	for k := range ways {
		ways[k] = make([]float64, top+1)
	}
	ways[0][0] = 1
	for i, r := range ranks {
		w := int(math.Round(2 * r))
		for k := min(i+1, m); k > 0; k-- {
			for s := top; s >= w; s-- {
				ways[k][s] += ways[k-1][s-w]
			}
		}
	}
	d.cum = ways[m]
	for s := 1; s <= top; s++ {
		d.cum[s] += d.cum[s-1]
	}
	for s := range d.cum {
		d.cum[s] /= d.cum[top]
	}
	return d
}

// p returns the two-sided probability of a rank sum at least as far out.
func (d *rankNull) p(sum float64) float64 {
	if d.cum == nil {
		if d.sd == 0 {
			return 1
		}
		z := max(math.Abs(sum-d.mean)-0.5, 0) / d.sd
		return min(2*distuv.UnitNormal.Survival(z), 1)
	}
	s := int(math.Round(2 * sum))
	lower, upper := d.cum[s], 1.0
	if s > 0 {
		upper = 1 - d.cum[s-1]
	}
	return min(2*min(lower, upper), 1)
}

// cut returns how many pairwise differences to cut from each end so that the
// rest holds the shift with confidence 1 − 2·tail, from the distribution
// without ties; −1 where even the whole range does not.
func (d *rankNull) cut(tail float64) int {
	if d.m+d.n > exactLimit {
		sd := math.Sqrt(float64(d.m) * float64(d.n) * float64(d.m+d.n+1) / 12)
		return int(float64(d.m*d.n)/2 - 0.5 - zQuantile(1-tail)*sd)
	}
	plain := make([]float64, d.m+d.n)
	for i := range plain {
		plain[i] = float64(i + 1)
	}
	untied := newRankNull(plain, d.m)
	least := d.m * (d.m + 1) // doubled rank sum of U = 0
	k := -1
	for untied.cum[least+2*(k+1)] <= tail {
		k++
	}
	return k
}

func zQuantile(p float64) float64 { return distuv.UnitNormal.Quantile(p) }

func finite(xs ...float64) bool {
	for _, x := range xs {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}
