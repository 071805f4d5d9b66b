package stats

import (
	"encoding/json"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func compareOK(t *testing.T, before, after []float64) Comparison {
	t.Helper()
	c, err := Compare(before, after)
	if err != nil {
		t.Fatalf("Compare(%v, %v): %v", before, after, err)
	}
	return c
}

func repeat(x float64, n int) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = x
	}
	return xs
}

func TestFiveIdenticalAgainstFiveOthersDiffer(t *testing.T) {
	c := compareOK(t, repeat(20, 5), repeat(19, 5))
	if c.Verdict != Different || c.Change != -1 || c.Low != -1 || c.High != -1 || !c.Below(4.9) || c.Below(5.1) {
		t.Errorf("five times 20 against five times 19: %+v", c)
	}
	if c.Percent == nil || math.Abs(c.Percent.Change+5) > 1e-9 {
		t.Errorf("change in per cent: %+v, want -5", c.Percent)
	}
	c = compareOK(t, repeat(20, 5), []float64{21, 22, 21.5, 23, 21.2})
	if c.Verdict != Different || c.Below(0) {
		t.Errorf("five identical values against five larger ones: %+v", c)
	}
	if c = compareOK(t, repeat(20, 5), repeat(20, 5)); c.Verdict != Same || c.P != 1 {
		t.Errorf("five identical values against the same: %+v", c)
	}
}

func TestTooFewSamples(t *testing.T) {
	for _, n := range [][2]int{{1, 1}, {1, 5}, {2, 2}, {3, 3}} {
		c := compareOK(t, repeat(20, n[0]), repeat(10, n[1]))
		if c.Verdict != TooFew || c.Below(0) || c.P != 1 {
			t.Errorf("%d against %d values: %+v, want %q", n[0], n[1], c, TooFew)
		}
	}
	if c := compareOK(t, repeat(20, 4), repeat(10, 4)); c.Verdict != Different {
		t.Errorf("four against four apart values: %+v", c)
	}
}

func TestRegressionNeedsAnIntervalWithoutZero(t *testing.T) {
	c := compareOK(t, []float64{10, 11, 12, 13, 14}, []float64{9, 10.5, 11.5, 12.5, 13})
	if c.Verdict != Same || !(c.Low < 0 && c.High > 0) || c.Below(0) {
		t.Errorf("overlapping values: %+v", c)
	}
	c = compareOK(t, []float64{10, 10.1, 10.2, 10.1, 10}, []float64{9.8, 9.85, 9.9, 9.8, 9.88})
	if !c.Below(0) || c.Below(3) {
		t.Errorf("a loss of some 2.5 %%: %+v is below by more than 0 and not by more than 3 %%", c)
	}
}

// Every input of finite numbers gives finite numbers or an error: JSON has
// neither infinities nor NaN.
func TestComparisonIsFinite(t *testing.T) {
	value := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 1, -1, 5e-324, math.MaxFloat64, -math.MaxFloat64}))
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(value, 1, 6).Draw(t, "a")
		b := rapid.SliceOfN(value, 1, 6).Draw(t, "b")
		c, err := Compare(a, b)
		if err != nil {
			return
		}
		if _, err := json.Marshal(c); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if c.Low > c.Change || c.Change > c.High || c.P < 0 || c.P > 1 {
			t.Fatalf("%+v is out of order", c)
		}
	})
	c := compareOK(t, repeat(0, 5), repeat(3, 5))
	if c.Verdict != Different || c.Percent != nil || c.Change != 3 {
		t.Errorf("from zero to three: %+v; there is a difference and no ratio", c)
	}
	if c = compareOK(t, repeat(0, 5), repeat(0, 5)); c.Verdict != Same || c.Percent != nil {
		t.Errorf("zeros: %+v", c)
	}
	for _, xs := range [][]float64{nil, {math.NaN()}, {math.Inf(1), 1}} {
		if _, err := Compare(xs, []float64{1}); err == nil {
			t.Errorf("Compare(%v, …) gives no error", xs)
		}
		if _, err := Compare([]float64{1}, xs); err == nil {
			t.Errorf("Compare(…, %v) gives no error", xs)
		}
	}
}

// bruteP is the two-sided probability by listing all ways to choose the first
// set out of both.
func bruteP(before, after []float64) float64 {
	all := append(append([]float64{}, before...), after...)
	r := ranks(all)
	seen := 0.0
	for _, x := range r[:len(before)] {
		seen += x
	}
	var lower, upper, total float64
	for mask := range 1 << len(all) {
		if bits.OnesCount(uint(mask)) != len(before) {
			continue
		}
		sum := 0.0
		for i, x := range r {
			if mask>>i&1 == 1 {
				sum += x
			}
		}
		total++
		if sum <= seen {
			lower++
		}
		if sum >= seen {
			upper++
		}
	}
	return min(1, 2*min(lower, upper)/total)
}

func TestExactProbability(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.Float64Range(0, 1)
		if rapid.Bool().Draw(t, "ties") {
			few = rapid.SampledFrom([]float64{1, 2, 3})
		}
		a := rapid.SliceOfN(few, 4, 6).Draw(t, "a")
		b := rapid.SliceOfN(few, 4, 6).Draw(t, "b")
		c, err := Compare(a, b)
		if err != nil {
			t.Fatal(err)
		}
		if want := bruteP(a, b); math.Abs(c.P-want) > 1e-9 {
			t.Fatalf("p of %v against %v = %v, want %v", a, b, c.P, want)
		}
	})
}

// Two sets of the same kind differ by chance in at most 5 of 100 comparisons,
// and the interval holds a true shift in at least 95, small sets (exact) and
// large ones (normal approximation).
func TestCompareKeepsItsPromises(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for _, n := range []int{5, 12, 40} {
		const runs = 1000
		wrong, held := 0, 0
		for range runs {
			a, b := make([]float64, n), make([]float64, n)
			for i := range a {
				a[i], b[i] = 10+rng.NormFloat64(), 10+rng.NormFloat64()
			}
			c := compareOK(t, a, b)
			if c.Verdict == Different {
				wrong++
			}
			if c.Low <= 0 && 0 <= c.High {
				held++
			}
		}
		// 5 % and three standard errors of 1000 runs.
		if wrong > 70 || held < 930 {
			t.Errorf("n = %d: %d of %d called different, the interval held no shift in %d", n, wrong, runs, held)
		}
	}
}

func TestCompareEstimates(t *testing.T) {
	e := func(v, half float64, n int) Estimate { return Estimate{v, v - half, v + half, n} }
	for _, c := range []struct {
		name          string
		before, after Estimate
		verdict       string
		below         bool
	}{
		{"one run each", e(20, 0, 1), e(10, 0, 1), TooFew, false},
		{"one run before", e(20, 0, 1), e(10, 0.1, 5), TooFew, false},
		{"apart", e(20, 0.1, 3), e(19, 0.1, 3), Different, true},
		{"apart upwards", e(20, 0.1, 3), e(21, 0.1, 3), Different, false},
		{"overlapping", e(20, 0.6, 3), e(19.4, 0.6, 3), Same, false},
		{"equal without noise", e(20, 0, 3), e(20, 0, 3), Same, false},
		{"unequal without noise", e(20, 0, 3), e(19, 0, 3), Different, true},
		{"from zero", e(0, 0, 3), e(5, 0.1, 3), Different, false},
	} {
		got, err := CompareEstimates(c.before, c.after)
		if err != nil || got.Verdict != c.verdict || got.Below(0) != c.below {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if got, _ := CompareEstimates(e(20, 0.3, 3), e(19, 0.4, 3)); math.Abs(got.Low+1.5) > 1e-9 || math.Abs(got.High+0.5) > 1e-9 {
		t.Errorf("20 ± 0.3 to 19 ± 0.4: change in [%v, %v], want -1 ± 0.5", got.Low, got.High)
	}
	for _, bad := range []Estimate{{math.NaN(), 0, 1, 3}, {1, 2, 3, 3}, {4, 2, 3, 3}, {1, 0, math.Inf(1), 3}} {
		if _, err := CompareEstimates(bad, e(1, 0, 3)); err == nil {
			t.Errorf("estimate %+v gives no error", bad)
		}
	}
}

// Benjamini and Hochberg 1995, section 4.1: of these fifteen p values (heart
// attack patients) four are significant at a false discovery rate of 5 %.
func TestFalseDiscovery(t *testing.T) {
	p := []float64{0.0459, 0.0001, 0.3240, 0.0004, 0.0019, 0.4262, 0.0095, 0.5719, 0.0201, 0.6528, 0.0278, 0.7590, 0.0298, 1, 0.0344}
	significant := 0
	for i, q := range FalseDiscovery(p) {
		if q < p[i] {
			t.Errorf("adjusted %v of %v became smaller", q, p[i])
		}
		if q < 0.05 {
			significant++
			if p[i] > 0.0095 {
				t.Errorf("p = %v is significant, the paper's limit is 0.0095", p[i])
			}
		}
	}
	if significant != 4 {
		t.Errorf("%d significant, the paper has 4", significant)
	}
}
