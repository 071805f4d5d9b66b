package host

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"nicprof/traffic"
)

func TestUniformDrawsCoverTheSpanEvenly(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 7, 64, 1000} {
		d := newDraws(n, 24, "", 0).seeded(99)
		count := make([]int, n)
		var at offsets
		const rounds = 4000
		for range rounds {
			d.fill(&at, chunk)
			for _, o := range at {
				if o%24 != 0 || o/24 >= uint64(n) {
					t.Fatalf("n %d: offset %d", n, o)
				}
				count[o/24]++
			}
		}
		want := float64(rounds*chunk) / float64(n)
		for i, c := range count {
			if math.Abs(float64(c)-want) > 6*math.Sqrt(want)+1 {
				t.Errorf("n %d: index %d drawn %d times, expected %.0f", n, i, c, want)
			}
		}
	}
}

// The shares of popular ranks are right to within a quantile, and so is their
// sum at every rank.
func TestZipfDrawsHaveTheSharesOfZipf(t *testing.T) {
	for _, c := range []struct {
		n     int64
		alpha float64
	}{{2, 1}, {10, 0.5}, {1000, 0.99}, {100000, 1.2}} {
		z := traffic.NewZipf(c.n, c.alpha)
		d := newDraws(c.n, 1, "zipf", c.alpha).seeded(5)
		count := make(map[uint64]int)
		const draws = 1 << 20
		for range draws {
			r := d.next()
			if r >= uint64(c.n) {
				t.Fatalf("rank %d of %d", r, c.n)
			}
			count[r]++
		}
		const quantile = 1.0 / (1 << quantileBits)
		sum := 0.0
		for r := range min(c.n, 500) {
			got := float64(count[uint64(r)]) / draws
			if want := z.P(r); math.Abs(got-want) > quantile+6*math.Sqrt(want/draws) {
				t.Errorf("n %d alpha %v: rank %d has %.5f of the draws, expected %.5f", c.n, c.alpha, r, got, want)
			}
			if sum += got; math.Abs(sum-z.Top(r+1)) > 2*quantile+0.005 {
				t.Errorf("n %d alpha %v: ranks to %d have %.5f of the draws, expected %.5f", c.n, c.alpha, r, sum, z.Top(r+1))
			}
		}
	}
}

// The quantiles of many ranks are those of the exact cumulative shares.
func TestQuantilesOfManyRanks(t *testing.T) {
	for _, alpha := range []float64{0.5, 0.99, 1, 1.3} {
		const n = 50_000_000
		z := traffic.NewZipf(n, alpha)
		table := newDraws(n, 1, "zipf", alpha).table
		for k := 1; k < len(table)-1; k++ {
			r, q := int64(table[k]), float64(k)/float64(len(table)-1)
			if below, with := z.Top(r), z.Top(r+1); below > q+1e-6 || with < q-1e-6 {
				t.Errorf("alpha %v: quantile %v at rank %d, whose cumulative share is %v to %v", alpha, q, r, below, with)
			}
		}
	}
}

// Elements of popular ranks are spread, and every element has its own rank.
func TestZipfElementsAreAPermutationOfRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(2, 5000).Draw(t, "n")
		d := newDraws(n, 1, "zipf", 0.9)
		seen := make([]bool, n)
		for r := range uint64(n) {
			i := r * d.step % d.n
			if seen[i] {
				t.Fatalf("n %d, step %d: two ranks at element %d", n, d.step, i)
			}
			seen[i] = true
		}
	})
}

func TestFlowsWithSharesAreDrawnByThem(t *testing.T) {
	f := traffic.Flows{Count: 3, Shares: []float64{0.7, 0.2, 0.1}}
	d := flowDraws(&f).seeded(8)
	var count [3]float64
	const draws = 200000
	for range draws {
		count[d.next()]++
	}
	for i, want := range f.Shares {
		if got := count[i] / draws; math.Abs(got-want) > 0.005 {
			t.Errorf("flow %d: %.4f, expected %v", i, got, want)
		}
	}
}

func TestRateCarriesFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		each := rapid.Float64Range(0, 100).Draw(t, "each")
		r := newRate(each)
		sum := 0
		const packets = 5000
		for range packets {
			n := r.take()
			if n != int(each) && n != int(each)+1 {
				t.Fatalf("%v a packet: %d in one", each, n)
			}
			sum += n
		}
		if math.Abs(float64(sum)-packets*each) > 1.001 {
			t.Fatalf("%v a packet: %d in %d packets", each, sum, packets)
		}
	})
}
