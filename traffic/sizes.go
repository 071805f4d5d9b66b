package traffic

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"

	"nicprof/internal/config"
	"nicprof/internal/fault"
)

// A message longer than a packet travels as TCP segments: PayloadBytes each,
// in frames that add HeaderBytes (Ethernet with check sequence 18, IPv4 20,
// TCP 20).
const (
	PayloadBytes = 1460
	HeaderBytes  = 58
)

// weighted returns the step distribution of sizes by their weights.
func weighted(name string, bytes, weights []float64) *Sizes {
	total := 0.0
	for _, w := range weights {
		total += w
	}
	s := &Sizes{Name: name, Bytes: bytes, P: make([]float64, len(weights))}
	sum := 0.0
	for i, w := range weights {
		sum += w
		s.P[i] = sum / total
	}
	return s
}

func percent(p ...float64) []float64 {
	for i := range p {
		p[i] /= 100
	}
	return p
}

// published holds the distributions that have a name. Those of messages reach
// beyond MaxPacketBytes.
var published = []*Sizes{
	// Cisco's and TRex's 7:4:1 mix (trex-core scripts/stl/imix.py has 60, 590
	// and 1514 B without the check sequence).
	weighted("imix", []float64{64, 594, 1518}, []float64{7, 4, 1}),
	// FD.io CSIT IMIX_v4_1, 28:16:4.
	weighted("imix-csit", []float64{64, 570, 1518}, []float64{28, 16, 4}),
	// Messages of Facebook's Hadoop cluster (Roy et al., SIGCOMM 2015) as
	// shipped with HPCC's traffic generator, FbHdp_distribution.txt.
	{
		Name:   "facebook",
		Linear: true,
		Bytes:  []float64{0, 100, 200, 300, 350, 400, 500, 600, 700, 1000, 2000, 7000, 30000, 50000, 80000, 120000, 300000, 1e6, 2e6, 1e7},
		P:      percent(0, 1, 2, 5, 15, 20, 30, 40, 50, 60, 67, 70, 72, 82, 87, 90, 95, 97.5, 99, 100),
	},
	// Messages of a web search cluster (DCTCP, SIGCOMM 2010) as shipped with
	// HPCC's traffic generator, WebSearch_distribution.txt.
	{
		Name:   "websearch",
		Linear: true,
		Bytes:  []float64{0, 10000, 20000, 30000, 50000, 80000, 200000, 1e6, 2e6, 5e6, 1e7, 3e7},
		P:      percent(0, 15, 20, 30, 40, 53, 60, 70, 80, 90, 97, 100),
	},
	// Messages of Alibaba's storage, HPCC's traffic generator, AliStorage2019.txt.
	{
		Name:   "alistorage",
		Linear: true,
		Bytes:  []float64{0, 4000, 8000, 16000, 32000, 64000, 128000, 256000, 2e6},
		P:      percent(0, 22.93, 69.21, 80.61, 90.47, 93.53, 96.77, 97.53, 100),
	},
}

// SizeNames lists the distributions that NamedSizes knows.
func SizeNames() []string {
	names := make([]string, len(published))
	for i, s := range published {
		names[i] = s.Name
	}
	return names
}

// NamedSizes returns a published distribution, of packets (imix, imix-csit) or
// of messages (facebook, websearch, alistorage), which Packets cuts.
func NamedSizes(name string) (*Sizes, error) {
	for _, s := range published {
		if s.Name == name {
			c := *s
			c.Bytes, c.P = slices.Clone(s.Bytes), slices.Clone(s.P)
			return &c, nil
		}
	}
	return nil, fault.Inputf("no size distribution %q; there are %s", name, strings.Join(SizeNames(), ", "))
}

// Check complains about what is no cumulative distribution of sizes.
func (s *Sizes) Check() config.Findings {
	var f config.Findings
	if len(s.Bytes) == 0 || len(s.Bytes) != len(s.P) {
		f.Add("", "%d sizes with %d probabilities; expected one for each", len(s.Bytes), len(s.P))
		return f
	}
	for i, b := range s.Bytes {
		switch p := s.P[i]; {
		case !(b >= 0 && b <= MaxMessageBytes):
			f.Add("", "point %d: %v is not a size; expected 0..%v bytes", i+1, b, float64(MaxMessageBytes))
		case !(p >= 0 && p <= 1):
			f.Add("", "point %d: %v is not a probability; expected 0..1", i+1, p)
		case i > 0 && (b < s.Bytes[i-1] || p < s.P[i-1]):
			f.Add("", "point %d: sizes and probabilities of a cumulative distribution never fall", i+1)
		}
	}
	if last := s.P[len(s.P)-1]; last != 1 {
		f.Add("", "the last probability is %v; expected 1", last)
	}
	if len(f) == 0 && s.Mean() == 0 {
		f.Add("", "every size is 0")
	}
	return f
}

// Max returns the largest size.
func (s *Sizes) Max() float64 { return s.Bytes[len(s.Bytes)-1] }

// Draw returns a size in bytes, fractional where sizes are interpolated.
func (s *Sizes) Draw(r *rand.Rand) float64 { return s.Quantile(r.Float64()) }

// Quantile returns the size that a part u of them, 0 <= u < 1, does not
// exceed.
func (s *Sizes) Quantile(u float64) float64 {
	return s.at(sort.Search(len(s.P)-1, func(i int) bool { return s.P[i] > u }), u)
}

// at returns the quantile u, which lies in step i.
func (s *Sizes) at(i int, u float64) float64 {
	if !s.Linear || i == 0 {
		return s.Bytes[i]
	}
	return s.Bytes[i-1] + (s.Bytes[i]-s.Bytes[i-1])*(u-s.P[i-1])/(s.P[i]-s.P[i-1])
}

// middles returns the n quantiles in the middle of equal parts, the largest
// first.
func (s *Sizes) middles(n int) []float64 {
	w := make([]float64, n)
	i := 0
	for k := range w {
		u := (float64(k) + 0.5) / float64(n)
		for i < len(s.P)-1 && s.P[i] <= u {
			i++
		}
		w[n-1-k] = s.at(i, u)
	}
	return w
}

// Mean returns the mean size in bytes.
func (s *Sizes) Mean() float64 {
	mean := 0.0
	s.parts(func(a, b, p float64) { mean += p * (a + b) / 2 })
	return mean
}

// parts calls f for the parts of the distribution: probability p uniformly
// between a and b, or all at a = b.
func (s *Sizes) parts(f func(a, b, p float64)) {
	last := 0.0
	for i, p := range s.P {
		if p > last {
			a := s.Bytes[i]
			if s.Linear && i > 0 {
				a = s.Bytes[i-1]
			}
			f(a, s.Bytes[i], p-last)
		}
		last = p
	}
}

// Packets returns the sizes of the frames that messages of these sizes travel
// in: full ones of PayloadBytes + HeaderBytes, and the rest of each message,
// MinPacketBytes at least.
func (s *Sizes) Packets() *Sizes {
	// The rest of a message, in (0, PayloadBytes], as a density that changes at
	// some rests, and probabilities that sit on some.
	const full = PayloadBytes
	change := map[float64]float64{}
	atom := map[float64]float64{}
	uniform := func(from, to, density float64) {
		change[from] += density
		change[to] -= density
	}
	s.parts(func(a, b, p float64) {
		if a == b {
			rest := a - full*(math.Ceil(a/full)-1)
			if a > 0 {
				atom[rest] += p
			}
			return
		}
		first, last := math.Floor(a/full), math.Floor(b/full)
		density := p / (b - a)
		if first == last {
			uniform(a-first*full, b-first*full, density)
			return
		}
		uniform(a-first*full, full, density)
		uniform(0, full, density*(last-first-1))
		uniform(0, b-last*full, density)
	})
	rests := []float64{0, MinPacketBytes - HeaderBytes, full} // below the second, frames are padded
	for r := range change {
		rests = append(rests, r)
	}
	for r := range atom {
		rests = append(rests, r)
	}
	slices.Sort(rests)
	rests = slices.Compact(rests)

	out := &Sizes{Name: s.Name, Linear: true}
	add := func(rest, sum float64) {
		out.Bytes = append(out.Bytes, max(rest+HeaderBytes, MinPacketBytes))
		out.P = append(out.P, sum)
	}
	sum, mean, density := 0.0, 0.0, 0.0
	for i, r := range rests {
		if i > 0 {
			d := max(0, density*(r-rests[i-1])) // not below 0 by rounding
			mean += d * (r + rests[i-1]) / 2
			sum += d
			add(r, sum)
		}
		density += change[r]
		if a := atom[r]; a > 0 || i == 0 {
			sum += a
			mean += a * r
			add(r, sum)
		}
	}
	// A message of length L has (L - rest)/PayloadBytes full frames besides.
	sum += max(0, (s.Mean()-mean)/full)
	add(full, sum)
	for i := range out.P {
		out.P[i] /= sum
	}
	out.P[len(out.P)-1] = 1
	return out
}
