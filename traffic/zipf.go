package traffic

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Zipf draws ranks 0..n-1 with probability proportional to (rank+1)^-alpha,
// exactly, for any exponent above 0, in constant time and without tables.
//
// It samples by rejection-inversion (Hörmann and Derflinger, "Rejection-
// inversion to generate variates from monotone discrete distributions", ACM
// TOMACS 6(3), 1996): invert the integral H of the density x^-alpha on
// [1/2, n+1/2] and accept the nearest rank k unless the point falls into the
// part of k's interval that H has beyond k^-alpha.
type Zipf struct {
	n     int64
	alpha float64
	norm  float64 // Harmonic(n, alpha)
	low   float64 // H(3/2) - 1: rank 1's interval starts here
	high  float64 // H(n + 1/2)
	sure  float64 // a point this near below its rank is accepted without a test
}

// NewZipf returns the sampler of n ranks. It panics unless n is 1..MaxFlows and
// alpha above 0 up to MaxAlpha, which CheckPopularity and Flows.Check report
// as errors.
func NewZipf(n int64, alpha float64) *Zipf {
	if n < 1 || n > MaxFlows || !(alpha > 0 && alpha <= MaxAlpha) {
		panic(fmt.Sprintf("traffic.NewZipf(%d, %v)", n, alpha))
	}
	z := &Zipf{n: n, alpha: alpha, norm: Harmonic(n, alpha)}
	z.low = z.integral(1.5) - 1
	z.high = z.integral(float64(n) + 0.5)
	z.sure = 2 - z.inverse(z.integral(2.5)-math.Pow(2, -alpha))
	return z
}

// N returns the number of ranks.
func (z *Zipf) N() int64 { return z.n }

// Draw returns a rank, 0 the most popular.
func (z *Zipf) Draw(r *rand.Rand) int64 {
	for {
		u := z.high + r.Float64()*(z.low-z.high)
		x := z.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), float64(z.n))
		if k-x <= z.sure || u >= z.integral(k+0.5)-math.Pow(k, -z.alpha) {
			return int64(k) - 1
		}
	}
}

// P returns the probability of a rank.
func (z *Zipf) P(rank int64) float64 {
	if rank < 0 || rank >= z.n {
		return 0
	}
	return math.Pow(float64(rank+1), -z.alpha) / z.norm
}

// Top returns the probability of the k most popular ranks together.
func (z *Zipf) Top(k int64) float64 {
	switch {
	case k <= 0:
		return 0
	case k >= z.n:
		return 1
	}
	return Harmonic(k, z.alpha) / z.norm
}

// integral is H(x) = ∫ t^-alpha dt from 1 to x, (x^(1-alpha) - 1)/(1-alpha),
// written so that it is smooth through alpha = 1, where it is ln x.
func (z *Zipf) integral(x float64) float64 {
	l := math.Log(x)
	return l * relative(math.Expm1, (1-z.alpha)*l)
}

// inverse of integral.
func (z *Zipf) inverse(y float64) float64 {
	t := max((1-z.alpha)*y, -1) // below -1 by rounding only
	return math.Exp(y * relative(math.Log1p, t))
}

// relative returns f(x)/x for f = Expm1 or Log1p, both ≈ x near 0.
func relative(f func(float64) float64, x float64) float64 {
	if math.Abs(x) < 1e-300 {
		return 1
	}
	return f(x) / x
}

// Harmonic returns the generalised harmonic number Σ k^-alpha for k = 1..n, to
// about 14 digits for any n: the head by summation, the rest by Euler–Maclaurin
// (integral, half the ends, and two correction terms).
func Harmonic(n int64, alpha float64) float64 {
	const head = 128
	sum := 0.0
	for k := min(n, head); k >= 1; k-- { // small terms first
		sum += math.Pow(float64(k), -alpha)
	}
	if n <= head {
		return sum
	}
	a, b := float64(head), float64(n)
	l := math.Log(b / a)
	sum += math.Pow(a, 1-alpha) * l * relative(math.Expm1, (1-alpha)*l) // ∫ from a to b
	sum += (math.Pow(b, -alpha) - math.Pow(a, -alpha)) / 2              // half of both ends; a is in the head
	sum += alpha / 12 * (math.Pow(a, -alpha-1) - math.Pow(b, -alpha-1))
	sum -= alpha * (alpha + 1) * (alpha + 2) / 720 * (math.Pow(a, -alpha-3) - math.Pow(b, -alpha-3))
	return sum
}

// Permutation is a seeded bijection of 0..n-1: it scatters ranks over indices,
// so that popular elements are not neighbours. It needs no table: a Feistel
// network over the next even power of two, walked until it lands inside n.
type Permutation struct {
	n    uint64
	half uint // bits of one half
	keys [4]uint64
}

// NewPermutation returns the permutation of n indices under a seed.
func NewPermutation(n int64, seed uint64) *Permutation {
	if n < 1 || n > MaxFlows {
		panic(fmt.Sprintf("traffic.NewPermutation(%d)", n))
	}
	p := &Permutation{n: uint64(n), half: 1}
	for p.n > 1<<(2*p.half) {
		p.half++
	}
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range p.keys {
		p.keys[i] = r.Uint64()
	}
	return p
}

// At returns where index i goes, 0 <= i < n.
func (p *Permutation) At(i int64) int64 {
	x := uint64(i)
	mask := uint64(1)<<p.half - 1
	for {
		left, right := x>>p.half, x&mask
		for _, key := range p.keys {
			left, right = right, left^mix(right^key)&mask
		}
		if x = left<<p.half | right; x < p.n {
			return int64(x)
		}
	}
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
