package traffic

import "math/rand/v2"

// Popularity draws indices 0..n-1, 0 the most popular.
type Popularity interface {
	N() int64
	Draw(r *rand.Rand) int64
	P(i int64) float64   // probability of index i
	Top(k int64) float64 // probability of the k most popular together
}

// NewPopularity returns the sampler of n indices under a popularity and
// exponent that CheckPopularity accepts.
func NewPopularity(n int64, popularity string, alpha float64) Popularity {
	if popularity == "zipf" {
		return NewZipf(n, alpha)
	}
	return uniform(n)
}

// Sampler returns the popularity of the flows: by their shares, if they have
// any.
func (w Flows) Sampler() Popularity {
	if w.Shares != nil {
		return newAlias(w.Shares)
	}
	return NewPopularity(int64(w.Count), w.Popularity, w.Alpha)
}

type uniform int64

func (n uniform) N() int64                { return int64(n) }
func (n uniform) Draw(r *rand.Rand) int64 { return r.Int64N(int64(n)) }
func (n uniform) Top(k int64) float64     { return float64(min(max(k, 0), int64(n))) / float64(n) }
func (n uniform) P(i int64) float64 {
	if i < 0 || i >= int64(n) {
		return 0
	}
	return 1 / float64(n)
}

// alias draws by given shares in constant time (Walker's alias method, tables
// as Vose builds them): column i is index i up to keep[i], other[i] above.
type alias struct {
	shares []float64
	keep   []float64
	other  []int
}

func newAlias(shares []float64) *alias {
	n := len(shares)
	a := &alias{shares: shares, keep: make([]float64, n), other: make([]int, n)}
	var small, large []int
	for i, s := range shares {
		a.keep[i] = s * float64(n)
		a.other[i] = i
		if a.keep[i] < 1 {
			small = append(small, i)
		} else {
			large = append(large, i)
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		a.other[s] = l
		if a.keep[l] -= 1 - a.keep[s]; a.keep[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	return a // what is left is 1 up to rounding; its other is itself
}

func (a *alias) N() int64 { return int64(len(a.shares)) }

func (a *alias) Draw(r *rand.Rand) int64 {
	i := r.IntN(len(a.keep))
	if r.Float64() >= a.keep[i] {
		i = a.other[i]
	}
	return int64(i)
}

func (a *alias) P(i int64) float64 {
	if i < 0 || i >= int64(len(a.shares)) {
		return 0
	}
	return a.shares[i]
}

func (a *alias) Top(k int64) float64 {
	sum := 0.0
	for _, s := range a.shares[:min(max(k, 0), int64(len(a.shares)))] {
		sum += s
	}
	return sum
}
