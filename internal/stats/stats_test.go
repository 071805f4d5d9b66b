package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func upTo(n int) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = float64(i + 1)
	}
	return xs
}

func TestDefinitions(t *testing.T) {
	s, err := Summarise([]float64{4, 1, 3, 2})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "standard deviation of 1..4, of a sample", s.StdDev, math.Sqrt(5.0/3))
	near(t, "mean", s.Mean, 2.5)
	near(t, "median", s.Median, 2.5)
	near(t, "upper end of the mean's interval", s.MeanHigh, 2.5+3.182446305284263*math.Sqrt(5.0/3)/2)
	ten := Sorted(upTo(10))
	for p, want := range map[float64]float64{-1: 1, 0: 1, 25: 3.25, 50: 5.5, 75: 7.75, 100: 10, 101: 10} {
		near(t, "percentile of 1..10", ten.Percentile(p), want)
	}
	near(t, "spread", Spread([]float64{1, 2, 3, 4, 100}), 1.4826)
}

func TestOneValue(t *testing.T) {
	s, err := Summarise([]float64{7})
	if err != nil {
		t.Fatal(err)
	}
	if s.StdDev != 0 || s.MedianLow != 7 || s.MedianHigh != 7 || s.MedianConfidence != 0 || s.Outliers != 0 {
		t.Errorf("one value: %+v; it has no scatter and its interval no confidence", s)
	}
}

func TestBadValues(t *testing.T) {
	for _, xs := range [][]float64{nil, {}, {math.NaN()}, {1, math.Inf(1)}, {math.Inf(-1), 1}, {math.MaxFloat64, -math.MaxFloat64}} {
		if _, err := Summarise(xs); err == nil {
			t.Errorf("Summarise(%v) gives no error", xs)
		}
	}
}

// Quartile rules find no outlier in 1,2,3,4,100; and a rule that looks at one
// side only misses the low ones.
func TestOutliersOnBothSides(t *testing.T) {
	for _, c := range []struct {
		xs   []float64
		want []int
	}{
		{[]float64{1, 2, 3, 4, 100}, []int{4}},
		{[]float64{-100, 1, 2, 3, 4}, []int{0}},
		{[]float64{50, 10, 11, 12, 10, 11, -30, 12}, []int{0, 6}},
		{[]float64{5, 5, 5, 5, 5, 5, 5, 5, 5, 9}, []int{9}}, // spread 0
		{[]float64{5, 5, 5}, nil},
		{[]float64{1, 2, 3, 4, 5}, nil},
	} {
		if got := Outliers(c.xs); !slices.Equal(got, c.want) {
			t.Errorf("Outliers(%v) = %v, want %v", c.xs, got, c.want)
		}
	}
}

// Conover, Practical Nonparametric Statistics: for n = 20 the 6th and 15th
// order statistics hold the median with 95.86 %.
func TestMedianInterval(t *testing.T) {
	low, high, confidence := Sorted(upTo(20)).MedianInterval()
	if low != 6 || high != 15 || math.Abs(confidence-0.9586) > 1e-4 {
		t.Errorf("median of 1..20 in [%v, %v] with %v, want [6, 15] with 0.9586", low, high, confidence)
	}
	if low, high, confidence = Sorted(upTo(5)).MedianInterval(); low != 1 || high != 5 || confidence >= Confidence {
		t.Errorf("median of five values in [%v, %v] with %v: five cannot reach 95 %%", low, high, confidence)
	}
}

func TestMedianIntervalCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const sets = 2000
	held := 0
	for range sets {
		xs := make([]float64, 15)
		for i := range xs {
			xs[i] = rng.ExpFloat64()
		}
		if low, high, _ := Sorted(xs).MedianInterval(); low <= math.Ln2 && math.Ln2 <= high {
			held++
		}
	}
	// 96.5 % are expected; three standard errors of 2000 sets are 1.2 %.
	if share := float64(held) / sets; share < 0.95 {
		t.Errorf("the interval holds the median of an exponential in %.1f %% of sets, want at least 95", 100*share)
	}
}

func TestPercentileProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 40).Draw(t, "xs")
		s := Sorted(xs)
		p, q := rapid.Float64Range(0, 100).Draw(t, "p"), rapid.Float64Range(0, 100).Draw(t, "q")
		if p > q {
			p, q = q, p
		}
		a, b := s.Percentile(p), s.Percentile(q)
		if a > b || a < slices.Min(xs) || b > slices.Max(xs) {
			t.Fatalf("percentiles %v: %v and %v: %v of %v", p, a, q, b, xs)
		}
		if m := Median(xs); math.Abs(s.Percentile(50)-m) > 1e-9*max(1, math.Abs(m)) {
			t.Fatalf("50th percentile %v, median %v", s.Percentile(50), m)
		}
	})
}
