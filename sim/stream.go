package sim

import (
	"hash/fnv"
	"math/rand/v2"
)

// Stream is a seeded random stream. Streams of different names are
// independent, so drawing more from one leaves the others' draws alone.
type Stream struct{ *rand.Rand }

// NewStream returns the stream of that name under a seed.
func NewStream(seed uint64, name string) *Stream {
	h := fnv.New64a()
	h.Write([]byte(name))
	return &Stream{rand.New(rand.NewPCG(seed, h.Sum64()))}
}

// Jitter returns d varied uniformly by ±frac of itself.
func (s *Stream) Jitter(d Time, frac float64) Time {
	if frac == 0 || d == 0 {
		return d
	}
	return d + Time(float64(d)*frac*(2*s.Float64()-1))
}

// Exp returns an exponential delay of the given mean.
func (s *Stream) Exp(mean Time) Time { return Time(float64(mean) * s.ExpFloat64()) }
