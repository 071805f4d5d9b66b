package traffic

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"nicprof/internal/fault"
)

// Shape says how the volumes of flows relate, whatever their unit: by a
// distribution of flow volumes, else by rank under Zipf's law with exponent
// Alpha, 0 for equal volumes.
type Shape struct {
	Alpha   float64
	Volumes *Sizes
}

// part is a component of a mixture: weight, and the distribution function of a
// uniform (0, to] or of a lognormal variable.
type part struct {
	weight    float64
	to        float64 // uniform when > 0
	sigma, mu float64 // of the logarithm
}

func (p part) below(x float64) float64 {
	if p.to > 0 {
		return min(x/p.to, 1)
	}
	return math.Erfc((p.mu-math.Log(x))/(p.sigma*math.Sqrt2)) / 2
}

// agh2015 is the mixture fitted to the packets a flow of 4.03e9 flows of the
// campus of AGH in Kraków, 30 days of 2015 (Jurkiewicz, Rzym and Boryło, "Flow
// length and size distributions in campus Internet traffic", Computer
// Communications 167, 2021; github.com/flow-models/agh_2015,
// mixtures/all/length, commit 690daad). A flow has the next whole number of
// packets.
var agh2015 = []part{
	{weight: 0.3050265769901237, to: 1},
	{weight: 0.2484198800441619, to: 2},
	{weight: 0.06366063664158106, to: 3},
	{weight: 0.049216499659328734, to: 4},
	{weight: 0.00931559166293732, to: 5},
	{weight: 0.08217474157187248, to: 6},
	{weight: 0.13126374982514846, sigma: 0.5207023493412835, mu: math.Log(7.8055992790704085)},
	{weight: 0.07328615421743477, sigma: 0.7701056575379265, mu: math.Log(22.10972501544739)},
	{weight: 0.0292891264871594, sigma: 1.1252645297342514, mu: math.Log(128.6451515069839)},
	{weight: 0.00834704290025077, sigma: 1.98383694524085, mu: math.Log(1084.4707584768782)},
}

// tabulate returns a mixture rounded up to whole numbers as a step
// distribution: exact up to 200, within 0.5 % above, up to where fewer than one
// in 10^10 is larger.
func tabulate(name string, mixture []part) *Sizes {
	total := 0.0
	for _, p := range mixture {
		total += p.weight
	}
	s := &Sizes{Name: name}
	for x := 1.0; ; x = math.Ceil(max(x+1, x*1.005)) {
		sum := 0.0
		for _, p := range mixture {
			sum += p.weight * p.below(x)
		}
		s.Bytes, s.P = append(s.Bytes, x), append(s.P, sum/total)
		if total-sum < 1e-10*total {
			s.P[len(s.P)-1] = 1
			return s
		}
	}
}

var agh2015Table = sync.OnceValue(func() *Sizes { return tabulate("agh2015", agh2015) })

// ShapeNames lists the distributions of flow volumes that NamedShape knows.
func ShapeNames() []string { return []string{"agh2015", "facebook", "websearch", "alistorage"} }

// NamedShape returns a published distribution of flow volumes: of packets a
// flow (agh2015), or of bytes a message (see NamedSizes), which in a shape is
// as good.
func NamedShape(name string) (Shape, error) {
	switch {
	case name == "agh2015":
		s := *agh2015Table()
		s.Bytes, s.P = slices.Clone(s.Bytes), slices.Clone(s.P)
		return Shape{Volumes: &s}, nil
	case slices.Contains(ShapeNames(), name):
		s, err := NamedSizes(name)
		return Shape{Volumes: s}, err
	}
	return Shape{}, fault.Inputf("no distribution of flow volumes %q; there are %s", name, strings.Join(ShapeNames(), ", "))
}

// weights returns n volumes of the shape in an arbitrary unit, the largest
// first: of a distribution the quantiles in the middle of n equal parts.
func (s Shape) weights(n int) []float64 {
	if s.Volumes != nil {
		return s.Volumes.middles(n)
	}
	w := make([]float64, n)
	for i := range w {
		w[i] = math.Pow(float64(i+1), -s.Alpha)
	}
	return w
}

func (s Shape) check() error {
	if s.Volumes != nil {
		if s.Alpha != 0 {
			return fmt.Errorf("a distribution and exponent %v; expected one of them", s.Alpha)
		}
		return s.Volumes.Check().Err()
	}
	if !(s.Alpha >= 0 && s.Alpha <= MaxAlpha) {
		return fmt.Errorf("exponent %v; expected 0..%d", s.Alpha, MaxAlpha)
	}
	return nil
}

// maxSynthetic bounds the groups of a function that are made up.
const maxSynthetic = 20_000_000

// Rates returns the volumes of flow groups that sum to total and have the
// shape, the largest first. Given are groups, or largest, or both:
//
//   - groups only: so many groups of exactly the shape;
//   - largest only: as many groups as it takes for the largest to be that, the
//     smallest cut so that the sum is right;
//   - both: so many groups under Zipf's law with the exponent that makes the
//     largest that, to 10^-6 (exponent 20 at most); the shape must not fix another (be Shape{}).
//
// An error says what cannot be; it is the user's fault.
func (s Shape) Rates(total float64, groups int, largest float64) ([]float64, error) {
	const slack = 1e-9
	if err := s.check(); err != nil {
		return nil, fault.Inputf("shape of flow volumes: %w", err)
	}
	if !(total > 0 && total <= 1e15) {
		return nil, fault.Inputf("a volume of %v packets a second; expected above 0", total)
	}
	if groups < 0 || groups > maxSynthetic {
		return nil, fault.Inputf("%d flow groups; expected 1..%d, or 0 to find how many", groups, maxSynthetic)
	}
	if !(largest >= 0) || largest > total*(1+slack) {
		return nil, fault.Inputf("a largest flow of %v packets a second; expected up to the function's volume, %v", largest, total)
	}
	switch {
	case groups == 0 && largest == 0:
		return nil, fault.Inputf("neither the number of flow groups nor the largest is given; expected one of them (in YAML flows: {count: N}, or max_flow_pps)")
	case largest == 0:
		w := s.weights(groups)
		if w[0] == 0 {
			return nil, fault.Inputf("%d groups of a distribution whose middle quantiles are 0; expected more groups, or a distribution of the flows that have packets", groups)
		}
		return scale(w, total/sum(w)), nil
	case groups == 0:
		return s.ratesOf(total, largest)
	}
	if s != (Shape{}) {
		return nil, fault.Inputf("%d groups, the largest of %v packets a second, and a shape; leave one of them out", groups, largest)
	}
	if largest*float64(groups) < total*(1-slack) {
		return nil, fault.Inputf("%d groups of up to %v packets a second make no %v packets a second; expected a largest flow of at least %v", groups, largest, total, total/float64(groups))
	}
	n, share := int64(groups), min(largest/total, 1)
	low, high := 0.0, float64(MaxAlpha)
	for range 100 {
		mid := (low + high) / 2
		if 1/Harmonic(n, mid) < share {
			low = mid
		} else {
			high = mid
		}
	}
	w := Shape{Alpha: high}.weights(groups)
	return scale(w, total/sum(w)), nil
}

// ratesOf finds how many groups there are when the largest is given.
func (s Shape) ratesOf(total, largest float64) ([]float64, error) {
	// enough reports whether n groups make the volume or more.
	enough := func(n int) bool {
		w := s.weights(n)
		return w[0] > 0 && sum(w)/w[0]*largest >= total
	}
	if s.Volumes == nil {
		enough = func(n int) bool { return Harmonic(int64(n), s.Alpha)*largest >= total }
	}
	high := 1
	for !enough(high) {
		if high == maxSynthetic {
			return nil, fault.Inputf("%d groups of this shape, the largest of %v packets a second, make less than %v packets a second; expected a larger largest flow or a flatter shape", high, largest, total)
		}
		high = min(2*high, maxSynthetic)
	}
	low := high / 2
	for high-low > 1 {
		if mid := (low + high) / 2; enough(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	w := s.weights(high)
	w = scale(w, largest/w[0])
	for over := sum(w) - total; over > 0 && len(w) > 1; {
		last := len(w) - 1
		if w[last] > over {
			w[last] -= over
			break
		}
		over -= w[last]
		w = w[:last]
	}
	return scale(w, total/sum(w)), nil
}

// sum adds from the small end.
func sum(w []float64) float64 {
	s := 0.0
	for _, x := range slices.Backward(w) {
		s += x
	}
	return s
}

func scale(w []float64, by float64) []float64 {
	for i := range w {
		w[i] *= by
	}
	return w
}
