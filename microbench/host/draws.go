package host

import (
	"math"
	"math/bits"

	"nicprof/program"
	"nicprof/traffic"
)

// chunk is how many elements are drawn at a time.
const chunk = 32

// offsets are the bytes from the start of an array to the elements drawn.
type offsets [chunk]uint64

// A draws chooses the elements of an access or the flows of packets, cheaply:
// one multiplication a draw steps a generator, another scales its upper bits to
// the span. Where popularity is Zipf the bits pass through a table of quantiles:
// ranks whose share is above 1/quantiles are drawn with their share to within
// that, those of one quantile with equal ones.
type draws struct {
	state  uint64
	n      uint64 // indices 0..n-1
	stride uint64
	step   uint64   // rank r is index r*step mod n, coprime with n: popular ranks are no neighbours
	table  []uint64 // of ranks at the quantiles, len quantiles+1; nil: uniform
}

const quantileBits = 10

// multiplier and increment of the 64-bit linear congruential generator (Knuth,
// MMIX); its upper bits are used.
const (
	multiplier = 6364136223846793005
	increment  = 1442695040888963407
)

// seeded returns the same draws from another state.
func (d draws) seeded(seed uint64) draws {
	d.state = seed
	return d
}

func newDraws(n, stride int64, popularity string, alpha float64) draws {
	d := draws{n: uint64(n), stride: uint64(stride)}
	if popularity == "zipf" && n > 1 {
		z := traffic.NewZipf(n, alpha)
		d.table = quantiles(n, z.P, func(from int64, share float64) int64 { return beyond(z, from, alpha, share) })
		d.step = coprime(d.n)
	}
	return d
}

// accessDraws are those of an access, resolved.
func accessDraws(a *program.Access) draws {
	return newDraws(a.Span, a.Stride, a.Popularity, a.Alpha)
}

// flowDraws are those of flows, the most popular first.
func flowDraws(f *traffic.Flows) draws {
	if f.Shares == nil {
		d := newDraws(int64(f.Count), 1, f.Popularity, f.Alpha)
		d.step = 1
		return d
	}
	d := draws{n: uint64(f.Count), stride: 1, step: 1}
	if f.Count > 1 {
		d.table = quantiles(int64(f.Count), f.Sampler().P, nil)
	}
	return d
}

// headRanks are summed one by one; the ranks beyond follow the integral.
const headRanks = 1 << 13

// quantiles returns the ranks at which the cumulative share of n ranks of
// probability p, in descending order, exceeds k/2^quantileBits. Where tail is
// set it tells those beyond headRanks, from the share that they add.
func quantiles(n int64, p func(int64) float64, tail func(from int64, share float64) int64) []uint64 {
	const slots = 1 << quantileBits
	table := make([]uint64, slots+1)
	k, sum := 1, 0.0
	r := int64(0)
	for ; r < n && k < slots && (tail == nil || r < headRanks); r++ {
		for sum += p(r); k < slots && sum > float64(k)/slots; k++ {
			table[k] = uint64(r)
		}
	}
	for ; k < slots; k++ {
		table[k] = uint64(n - 1) // what rounding has left of the sum
		if tail != nil && r < n {
			table[k] = uint64(min(tail(r, float64(k)/slots-sum), n-1))
		}
	}
	table[slots] = uint64(n - 1)
	return table
}

// beyond is the rank at which the ranks from one on have added a share: the sum
// of (r+1)^-alpha is there the integral from one half before to one half after,
// to about 1e-9 of it.
func beyond(z *traffic.Zipf, from int64, alpha, share float64) int64 {
	low := float64(from) + 0.5
	area := share * math.Pow(float64(from+1), -alpha) / z.P(from)
	if math.Abs(1-alpha) < 1e-9 {
		return int64(low*math.Exp(area) - 0.5)
	}
	e := 1 - alpha
	x := math.Pow(math.Pow(low, e)+e*area, 1/e)
	if !(x < float64(z.N())) { // past the end by rounding
		return z.N() - 1
	}
	return int64(x - 0.5)
}

// coprime returns a factor near the golden ratio of n that shares no divisor
// with it.
func coprime(n uint64) uint64 {
	s := max(1, uint64(float64(n)*(math.Sqrt(5)-1)/2))
	for gcd(s, n) != 1 {
		s--
	}
	return s
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// fill draws k elements.
func (d *draws) fill(to *offsets, k int) {
	s := d.state
	switch {
	case d.n == 1:
		for i := range to[:k] {
			to[i] = 0
		}
		return
	case d.table == nil:
		for i := range to[:k] {
			s = s*multiplier + increment
			hi, _ := bits.Mul64(s, d.n)
			to[i] = hi * d.stride
		}
	default:
		for i := range to[:k] {
			s = s*multiplier + increment
			to[i] = d.rank(s) * d.step % d.n * d.stride
		}
	}
	d.state = s
}

// next draws one index.
func (d *draws) next() uint64 {
	d.state = d.state*multiplier + increment
	if d.table == nil {
		hi, _ := bits.Mul64(d.state, d.n)
		return hi
	}
	return d.rank(d.state)
}

// rank turns random bits into a rank: the upper ones choose the quantile, the
// others the rank in it.
func (d *draws) rank(s uint64) uint64 {
	k := s >> (64 - quantileBits)
	from, to := d.table[k], d.table[k+1]
	within, _ := bits.Mul64(s<<quantileBits, to-from+1)
	return from + within
}

// A rate counts out a number a packet that may be fractional: the fraction is
// carried from packet to packet, in 2^-32.
type rate struct{ each, carry uint64 }

func newRate(perPacket float64) rate { return rate{each: uint64(math.Round(perPacket * (1 << 32)))} }

// take is the number of this packet.
func (r *rate) take() int {
	r.carry += r.each
	n := r.carry >> 32
	r.carry &= 1<<32 - 1
	return int(n)
}
