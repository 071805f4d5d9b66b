package traffic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

// chiSquare returns the probability of draws at least as far from p as these:
// ranks apart up to 64, then by doubling ranges, pooled so that every cell
// expects 20 draws or more.
func chiSquare(p Popularity, draws []int64) float64 {
	var edges []int64 // cell c is ranks edges[c-1]..edges[c]-1
	for hi, last := int64(1), 0.0; ; {
		mass := p.Top(hi)
		if float64(len(draws))*(mass-last) >= 20 && float64(len(draws))*(1-mass) >= 20 {
			edges, last = append(edges, hi), mass
		}
		if hi >= p.N() {
			edges = append(edges, p.N())
			break
		}
		if hi < 64 {
			hi++
		} else {
			hi = min(2*hi, p.N())
		}
	}
	counts := make([]float64, len(edges))
	for _, d := range draws {
		counts[sort.Search(len(edges), func(c int) bool { return d < edges[c] })]++
	}
	statistic, below := 0.0, 0.0
	for c, hi := range edges {
		want := float64(len(draws)) * (p.Top(hi) - below)
		statistic += (counts[c] - want) * (counts[c] - want) / want
		below = p.Top(hi)
	}
	if len(edges) == 1 {
		return 1
	}
	return distuv.ChiSquared{K: float64(len(edges) - 1)}.Survival(statistic)
}

func draw(p Popularity, n int, seed uint64) []int64 {
	r := rand.New(rand.NewPCG(seed, 1))
	draws := make([]int64, n)
	for i := range draws {
		draws[i] = p.Draw(r)
	}
	return draws
}

// The sampler is exact for exponents on both sides of 1, at 1, and for few and
// very many ranks. Seeds are fixed, so a pass is a pass; the bound would fail
// one good sampler in a million.
func TestZipfIsExact(t *testing.T) {
	for _, alpha := range []float64{0.01, 0.5, 0.99, 1, 1 + 1e-9, 1.2, 2.5, 8, MaxAlpha} {
		for _, n := range []int64{1, 2, 3, 10, 1000, 1 << 23, 1 << 40} {
			z := NewZipf(n, alpha)
			if p := chiSquare(z, draw(z, 200_000, uint64(n))); p < 1e-6 {
				t.Errorf("alpha %v, %d ranks: chi-square p = %.2g", alpha, n, p)
			}
		}
	}
}

// The test above can tell: draws of a neighbouring exponent, or off by one rank
// in twenty, fail it.
func TestChiSquareTells(t *testing.T) {
	z := NewZipf(1000, 0.99)
	if p := chiSquare(z, draw(NewZipf(1000, 0.97), 200_000, 1)); p > 1e-6 {
		t.Errorf("exponent 0.97 passes as 0.99: p = %.2g", p)
	}
	shifted := draw(z, 200_000, 1)
	for i := range shifted {
		if i%20 == 0 {
			shifted[i] = min(shifted[i]+1, 999)
		}
	}
	if p := chiSquare(z, shifted); p > 1e-6 {
		t.Errorf("one in twenty off by a rank passes: p = %.2g", p)
	}
}

func TestZipfProbabilities(t *testing.T) {
	for _, alpha := range []float64{0.5, 1, 2.5} {
		z := NewZipf(5000, alpha)
		sum := 0.0
		for rank := range int64(5000) {
			sum += z.P(rank)
			if top := z.Top(rank + 1); math.Abs(top-sum) > 1e-12 {
				t.Fatalf("alpha %v: Top(%d) = %v, the sum of P is %v", alpha, rank+1, top, sum)
			}
		}
		if z.P(-1) != 0 || z.P(5000) != 0 || z.Top(-1) != 0 || z.Top(9999) != 1 {
			t.Error("outside the ranks")
		}
	}
	// P(0) of 1e5 keys at 0.99, as YCSB's constants give it: 1/zeta(1e5, 0.99).
	if got, want := NewZipf(100_000, 0.99).P(0), 0.07825743810383679; math.Abs(got/want-1) > 1e-12 {
		t.Errorf("P(0) = %v, want %v", got, want)
	}
}

func TestHarmonic(t *testing.T) {
	for _, c := range []struct {
		n     int64
		alpha float64
		want  float64
	}{
		{1, 0.7, 1},
		{10, 1, 7381.0 / 2520},
		{1 << 40, 2, math.Pi*math.Pi/6 - 1/float64(1<<40)},
		{1 << 40, 4, math.Pow(math.Pi, 4) / 90},
		{1 << 40, 1, 40*math.Ln2 + 0.57721566490153286060},       // ln n + γ + 1/(2n)
		{10_000_000_000, 0.99, 26.46902820178302},                // YCSB ScrambledZipfianGenerator, ZETAN: its own sum, good to 1e-12
		{1 << 40, 0.5, 2*math.Sqrt(1<<40) - 1.46035450880958681}, // 2√n + ζ(1/2)
	} {
		if got := Harmonic(c.n, c.alpha); math.Abs(got/c.want-1) > 3e-12 {
			t.Errorf("Harmonic(%d, %v) = %.16g, want %.16g", c.n, c.alpha, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 20_000).Draw(t, "n")
		alpha := rapid.Float64Range(1e-6, MaxAlpha).Draw(t, "alpha")
		sum := 0.0
		for k := n; k >= 1; k-- {
			sum += math.Pow(float64(k), -alpha)
		}
		if got := Harmonic(n, alpha); math.Abs(got/sum-1) > 1e-12 {
			t.Fatalf("Harmonic(%d, %v) = %.16g, summed %.16g", n, alpha, got, sum)
		}
	})
}

// A permutation reaches every index once, differs by seed, and scatters
// neighbours.
func TestPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 5000).Draw(t, "n")
		p := NewPermutation(n, rapid.Uint64().Draw(t, "seed"))
		seen := make([]bool, n)
		for i := range n {
			j := p.At(i)
			if j < 0 || j >= n || seen[j] {
				t.Fatalf("At(%d) = %d: outside 0..%d or taken", i, j, n-1)
			}
			seen[j] = true
		}
	})
	const n = 1 << 40
	a, b := NewPermutation(n, 1), NewPermutation(n, 2)
	same, near := 0, 0
	for i := range int64(1000) {
		if a.At(i) == b.At(i) {
			same++
		}
		if d := a.At(i) - a.At(i+1); max(d, -d) < n/1000 {
			near++
		}
	}
	if same > 0 || near > 20 {
		t.Errorf("%d of 1000 alike under two seeds, %d neighbours stay within a thousandth", same, near)
	}
}

// Shares of a trace are drawn as given.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shares := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 40).Draw(t, "shares")
		sum := 0.0
		shares[0] += 1e-9
		for _, s := range shares {
			sum += s
		}
		for i := range shares {
			shares[i] /= sum
		}
		a := newAlias(shares)
		got := make([]float64, len(shares)) // exact probabilities out of the table
		for i, keep := range a.keep {
			keep = min(keep, 1)
			got[i] += keep / float64(len(shares))
			got[a.other[i]] += (1 - keep) / float64(len(shares))
		}
		for i, want := range shares {
			if math.Abs(got[i]-want) > 1e-9 {
				t.Fatalf("index %d is drawn with %v, its share is %v", i, got[i], want)
			}
		}
	})
	w := Flows{Count: 4, Shares: []float64{0.5, 0.3, 0.15, 0.05}}
	p := w.Sampler()
	if c := chiSquare(p, draw(p, 100_000, 3)); c < 1e-6 {
		t.Errorf("chi-square p = %.2g", c)
	}
	if p.N() != 4 || p.P(1) != 0.3 || p.P(4) != 0 || math.Abs(p.Top(2)-0.8) > 1e-12 || p.Top(9) < 0.999 {
		t.Error("probabilities of shares")
	}
}

func TestUniform(t *testing.T) {
	p := Flows{Count: 50, Popularity: "uniform"}.Sampler()
	if c := chiSquare(p, draw(p, 100_000, 3)); c < 1e-6 {
		t.Errorf("chi-square p = %.2g", c)
	}
	if p.N() != 50 || p.P(0) != 0.02 || p.P(50) != 0 || p.Top(25) != 0.5 || p.Top(99) != 1 {
		t.Error("probabilities of uniform flows")
	}
}

func BenchmarkZipfDraw(b *testing.B) {
	for _, alpha := range []float64{0.5, 0.99, 1.2} {
		b.Run(fmt.Sprint(alpha), func(b *testing.B) {
			z, r := NewZipf(1<<23, alpha), rand.New(rand.NewPCG(1, 1))
			b.ReportAllocs()
			for b.Loop() {
				z.Draw(r)
			}
		})
	}
}
