package roofline

import "math"

// Curve returns the numbers behind Mpps on that many cores, those included
// that the data do not identify by themselves: 1/T = max(a + c·e^(−b/i)·i,
// i/roof) with a and c in µs and roof in Mops/s, 0 where there is none.
func (r Result) Curve(cores int) (a, b, c, roof float64) {
	q := r.q
	finite := func(log float64) float64 {
		if v := math.Exp(log); !math.IsInf(v, 0) {
			return v
		}
		return 0
	}
	if r.Form == Cores {
		n := float64(max(1, cores))
		return math.Exp(q[coreD0]) / n, 0, math.Exp(q[coreDm]) / n, finite(q[coreRoof])
	}
	return math.Exp(q[curveA]), q[curveB], math.Exp(q[curveC]), finite(q[curveRoof])
}
