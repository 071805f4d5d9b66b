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

func newDraws(n, stride int64, popularity string, alpha float64, seed uint64) draws {
	d := draws{state: seed, n: uint64(n), stride: uint64(stride)}
	if popularity == "zipf" && n > 1 {
		d.table = quantiles(traffic.NewZipf(n, alpha))
		d.step = coprime(d.n)
	}
	return d
}

// accessDraws are those of an access, resolved.
func accessDraws(a *program.Access, seed uint64) draws {
	return newDraws(a.Span, a.Stride, a.Popularity, a.Alpha, seed)
}

// flowDraws are those of flows, the most popular first.
func flowDraws(f *traffic.Flows, seed uint64) draws {
	d := newDraws(int64(f.Count), 1, "", 0, seed)
	if p := f.Sampler(); f.Shares != nil || f.Popularity == "zipf" && f.Count > 1 {
		d.table, d.step = quantiles(p), 1
	}
	return d
}

// quantiles returns the ranks at which the cumulative share of p reaches k/2^b.
func quantiles(p traffic.Popularity) []uint64 {
	const n = 1 << quantileBits
	table := make([]uint64, n+1)
	low := int64(0)
	for k := 1; k < n; k++ {
		// The least rank r whose Top(r) exceeds k/n is at or after the last one.
		q := float64(k) / n
		lo, hi := low, p.N()-1
		for lo < hi {
			mid := lo + (hi-lo)/2
			if p.Top(mid+1) > q {
				hi = mid
			} else {
				lo = mid + 1
			}
		}
		low = lo
		table[k] = uint64(lo)
	}
	table[n] = uint64(p.N() - 1)
	return table
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
