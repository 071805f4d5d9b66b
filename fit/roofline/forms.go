package roofline

import (
	"math"
	"slices"

	"nicprof/internal/stats"
)

// Parameters of Eq. 1 and Eq. 2: ln A, B, ln C, ln Roof.
const (
	curveA = iota
	curveB
	curveC
	curveRoof
)

// curve is Eq. 1 or Eq. 2 with its parameters undone from their logarithms.
type curve struct{ a, b, c, roof float64 }

func newCurve(q []float64) curve {
	return curve{math.Exp(q[curveA]), q[curveB], math.Exp(q[curveC]), math.Exp(q[curveRoof])}
}

// sides are the time of a packet, µs, below the roof and on it.
func (v curve) sides(i float64) (below, roof float64) { return v.a + v.c*delayed(i, v.b), i / v.roof }

// curveLogT is ln T for 1/T = max(A + C·e^(−B/i)·i, i/Roof).
func curveLogT(q []float64) func(Point) float64 {
	v := newCurve(q)
	return func(p Point) float64 { return -math.Log(max(v.sides(p.Intensity))) }
}

// delayed is e^(−b/i)·i: the accesses that a packet has to wait for.
func delayed(i, b float64) float64 {
	if i == 0 {
		return 0
	}
	return i * math.Exp(-b/i)
}

// curveGrad is ∂ ln T/∂q.
func curveGrad(q []float64) func(Point, []float64) {
	v := newCurve(q)
	return func(p Point, g []float64) {
		clear(g)
		below, roof := v.sides(p.Intensity)
		if roof > below {
			g[curveRoof] = 1
			return
		}
		access := (below - v.a) / below
		g[curveA] = -v.a / below
		g[curveC] = -access
		if p.Intensity > 0 {
			g[curveB] = access / p.Intensity
		}
	}
}

// curveCandidates are the nested forms of Eq. 1 and Eq. 2, fewest parameters
// first: data that never leave the flat part, or never leave the roof, do not
// tell the other parameters. form keeps those of one equation only.
func curveCandidates(points []Point, form string) []candidate {
	places := places(points)
	m := len(places)
	var cs []candidate
	add := func(f string, free ...int) {
		// One intensity more than parameters, so that a held-out one can be
		// predicted; two parameters are as few as a slope needs.
		if form != "" && f != form || m < 2 || len(free) > 2 && m <= len(free) {
			return
		}
		c := candidate{form: f, free: free, absent: []float64{math.Inf(-1), 0, math.Inf(-1), math.Inf(1)}, logT: curveLogT, grad: curveGrad}
		for _, j := range free {
			c.names = append(c.names, []string{"a_us", "b", "c_us", "roof_mops"}[j])
		}
		c.lower, c.upper = curveBounds(places)
		c.starts = curveStarts(places, c)
		c.usable = func(q []float64, _ []Point) bool { return shows(newCurve(q), c, places) }
		cs = append(cs, c)
	}
	add(Eq1, curveRoof)
	add(Eq1, curveA)
	add(Eq1, curveA, curveC)
	add(Eq1, curveA, curveRoof)
	add(Eq1, curveA, curveC, curveRoof)
	add(Eq2, curveA, curveB, curveC)
	add(Eq2, curveA, curveB, curveC, curveRoof)
	return cs
}

// shows says whether the data show the terms of the form: a roof holds two
// intensities at least, since one tells it from nothing, and at the lowest
// intensity a packet spends some time of its own, since without it the cost of
// an access is the roof; where a packet's own time alone bounds it there, that
// exceeds the roof's by more than the scatter of the first point.
func shows(v curve, c candidate, places []Point) bool {
	const ownTime = 0.02
	below, _ := v.sides(places[0].Intensity)
	if slices.Contains(c.free, curveC) && v.a < ownTime*below {
		return false
	}
	if !slices.Contains(c.free, curveRoof) {
		return true
	}
	if below, roof := v.sides(places[0].Intensity); slices.Contains(c.free, curveA) && !slices.Contains(c.free, curveC) && below < (1+ownTime)*roof {
		return false
	}
	past := 0
	for _, p := range places {
		if below, roof := v.sides(p.Intensity); roof > below {
			past++
		}
	}
	return past >= wellPast
}

// places returns one point an intensity, ascending, with the median throughput.
func places(points []Point) []Point {
	var out []Point
	for _, i := range distinct(points, func(p Point) float64 { return p.Intensity }) {
		var ys []float64
		for _, p := range points {
			if p.Intensity == i {
				ys = append(ys, p.Mpps)
			}
		}
		out = append(out, Point{Intensity: i, Mpps: stats.Median(ys)})
	}
	slices.SortFunc(out, func(a, b Point) int { return compare(a.Intensity, b.Intensity) })
	return out
}

// curveBounds keeps the parameters within what data of this range could show:
// a term that is never more than a thousandth of a packet's time is not there.
func curveBounds(places []Point) (lower, upper []float64) {
	slow, fast := places[0].Mpps, places[0].Mpps
	low, high := math.Inf(1), 0.0
	for _, p := range places {
		slow, fast = min(slow, p.Mpps), max(fast, p.Mpps)
		if p.Intensity > 0 {
			low, high = min(low, p.Rate()), max(high, p.Rate())
		}
	}
	top := places[len(places)-1].Intensity
	const small, large = 1e-3, 10
	return []float64{math.Log(small / fast), 0, math.Log(small / (fast * top)), math.Log(low / 2)},
		[]float64{math.Log(large / slow), large * top, math.Log(large * large / (slow * top)), math.Log(high * large)}
}

// curveStarts enumerates the knee (the number of intensities below the roof)
// and B on a grid. For both given, 1/T = A + C·u is linear in A and C and the
// roof is the mean of ln M past the knee; for each knee the best B is kept,
// without a roof all of them.
func curveStarts(places []Point, c candidate) [][]float64 {
	m := len(places)
	bs := []float64{0}
	if slices.Contains(c.free, curveB) {
		top := places[m-1].Intensity
		for b := top / 64; b <= 2*top; b *= 2 {
			bs = append(bs, b)
		}
	}
	first, last := m, m // knees
	if slices.Contains(c.free, curveRoof) {
		first, last = 1, m-wellPast
		if !slices.Contains(c.free, curveA) {
			first, last = 0, 0
		}
	}
	var starts [][]float64
	for knee := first; knee <= last; knee++ {
		var best []float64
		least := math.Inf(1)
		for _, b := range bs {
			q := slices.Clone(c.absent)
			q[curveB] = b
			if slices.Contains(c.free, curveA) {
				a, slope := line(places[:knee], b, slices.Contains(c.free, curveC))
				q[curveA] = math.Log(a)
				if slices.Contains(c.free, curveC) {
					q[curveC] = math.Log(slope)
				}
			}
			if knee < m {
				q[curveRoof] = 0
				for _, p := range places[knee:] {
					q[curveRoof] += math.Log(p.Rate()) / float64(m-knee)
				}
			}
			for _, j := range c.free {
				q[j] = min(max(q[j], c.lower[j]), c.upper[j])
			}
			cost, logT := 0.0, curveLogT(q)
			for _, p := range places {
				cost += math.Abs(math.Log(p.Mpps) - logT(p))
			}
			if knee == m { // no roof: every b is a start
				starts = append(starts, q)
			} else if cost < least {
				best, least = q, cost
			}
		}
		if best != nil {
			starts = append(starts, best)
		}
	}
	return starts
}

// line returns A and C ≥ 0 of 1/T = A + C·u by least squares of the relative
// error, u = e^(−b/i)·i; C = 0 where it is not asked for or does not show.
func line(places []Point, b float64, withSlope bool) (a, c float64) {
	var aa, ac, cc, ra, rc float64
	for _, p := range places {
		u, v := p.Mpps, p.Mpps*delayed(p.Intensity, b)
		aa, ac, cc = aa+u*u, ac+u*v, cc+v*v
		ra, rc = ra+u, rc+v
	}
	if det := aa*cc - ac*ac; withSlope && det > 1e-12*aa*cc {
		a, c = (ra*cc-rc*ac)/det, (rc*aa-ra*ac)/det
		if a > 0 && c > 0 {
			return a, c
		}
		if a <= 0 {
			return 0, rc / cc
		}
	}
	return ra / aa, 0
}

// Parameters of the cores form, all logarithms: cost of a packet and of an
// access on one core, what an access waits more at a busy memory, the memory's
// roof, the I/O ceiling, and the sharpness of the knee between them.
const (
	coreD0 = iota
	coreDm
	coreWait
	coreRoof
	coreIO
	coreSharp
)

// cores is the cores form with its parameters undone from their logarithms.
type cores struct{ d0, dm, wait, roof, io, sharp float64 }

func newCores(q []float64) cores {
	return cores{math.Exp(q[coreD0]), math.Exp(q[coreDm]), math.Exp(q[coreWait]), math.Exp(q[coreRoof]), math.Exp(q[coreIO]), math.Exp(q[coreSharp])}
}

// terms are the times of a packet, µs, that the cores, the memory and the I/O
// each allow: 1/S, i/Roof and 1/IO. S is what the cores alone would do: cores =
// S·(D0 + i·Dm + i·Wait·ρ), where ρ = i·S/Roof is their load on the memory. own
// and root are parts of the solution for 1/S.
func (v cores) terms(p Point) (u [3]float64, own, queue, root float64) {
	own, queue = v.d0+p.Intensity*v.dm, p.Intensity*p.Intensity*v.wait/v.roof
	root = math.Sqrt(own*own + 4*queue*float64(p.Cores))
	return [3]float64{(own + root) / float64(2*p.Cores), p.Intensity / v.roof, 1 / v.io}, own, queue, root
}

// coreLogT is ln T for 1/T = the p-norm of the terms, their maximum for a hard
// knee (p infinite).
func coreLogT(q []float64) func(Point) float64 {
	v := newCores(q)
	return func(p Point) float64 {
		u, _, _, _ := v.terms(p)
		top, sum := max(u[0], u[1], u[2]), 0.0
		if math.IsInf(v.sharp, 1) {
			return -math.Log(top)
		}
		for _, t := range u {
			if t > 0 {
				sum += math.Pow(t/top, v.sharp)
			}
		}
		return -math.Log(top) - math.Log(sum)/v.sharp
	}
}

// coreGrad is ∂ ln T/∂q.
func coreGrad(q []float64) func(Point, []float64) {
	v := newCores(q)
	return func(p Point, g []float64) {
		clear(g)
		u, own, queue, root := v.terms(p)
		top := max(u[0], u[1], u[2])
		var share [3]float64 // ∂ ln(1/T)/∂ ln u
		if math.IsInf(v.sharp, 1) {
			share[slices.Index(u[:], top)] = 1
		} else {
			sum, logs := 0.0, 0.0
			for k, t := range u {
				if t > 0 {
					share[k] = math.Pow(t/top, v.sharp)
					sum += share[k]
					logs += share[k] * math.Log(t/top)
				}
			}
			for k := range share {
				share[k] /= sum
			}
			g[coreSharp] = math.Log(sum)/v.sharp - logs/sum
		}
		byOwn := share[0] * (1 + own/root) / (own + root)
		byQueue := share[0] / u[0] / root
		g[coreD0] = -byOwn * v.d0
		g[coreDm] = -byOwn * p.Intensity * v.dm
		g[coreWait] = -byQueue * queue
		g[coreRoof] = byQueue*queue + share[1]
		g[coreIO] = share[2]
	}
}

// coreCandidates are the forms with and without each ceiling, a wait at the
// busy memory and a soft knee. With a single intensity the cost of an access is
// part of the packet's.
func coreCandidates(points []Point, intensities int) []candidate {
	var cs []candidate
	cells := len(distinct(points, func(p Point) [2]float64 { return [2]float64{p.Intensity, float64(p.Cores)} }))
	inf := math.Inf(1)
	add := func(more ...int) {
		free := append([]int{coreD0}, more...)
		if intensities > 1 {
			free = slices.Insert(free, 1, coreDm)
		}
		if cells <= len(free) {
			return
		}
		c := candidate{form: Cores, free: free, absent: []float64{-inf, -inf, -inf, inf, inf, inf}, logT: coreLogT, grad: coreGrad}
		for _, j := range free {
			c.names = append(c.names, []string{"d0_us", "dm_us", "wait_us", "roof_mops", "io_mpps", "sharpness"}[j])
		}
		c.lower, c.upper = coreBounds(points)
		c.starts = coreStarts(points, c)
		c.usable = func(q []float64, points []Point) bool { return ceilingsReached(q, c, points) }
		cs = append(cs, c)
	}
	add()
	for _, ceilings := range [][]int{{coreRoof}, {coreIO}, {coreRoof, coreIO}} {
		add(ceilings...)
		add(append(slices.Clone(ceilings), coreSharp)...)
		if ceilings[0] == coreRoof {
			add(append([]int{coreWait}, ceilings...)...)
			add(append([]int{coreWait}, append(slices.Clone(ceilings), coreSharp)...)...)
		}
	}
	slices.SortStableFunc(cs, func(a, b candidate) int { return len(a.free) - len(b.free) })
	return cs
}

// hardKnee is the sharpness from which the p-norm cannot be told from a
// maximum: at the knee of two terms it is 0.35 % off.
const hardKnee = 200

// ceilingsReached says whether each ceiling of c holds some point to within a
// tenth: one that none touches is a free number.
func ceilingsReached(q []float64, c candidate, points []Point) bool {
	for _, j := range []int{coreRoof, coreIO} {
		if !slices.Contains(c.free, j) {
			continue
		}
		ceiling := math.Exp(q[j])
		if !slices.ContainsFunc(points, func(p Point) bool {
			if j == coreRoof {
				return p.Rate() > softPast*ceiling
			}
			return p.Mpps > softPast*ceiling
		}) {
			return false
		}
	}
	return true
}

func coreBounds(points []Point) (lower, upper []float64) {
	slowest, fastest, rate, top := math.Inf(1), 0.0, 0.0, 0.0
	mpps := 0.0
	for _, p := range points {
		perCore := p.Mpps / float64(p.Cores)
		slowest, fastest = min(slowest, perCore), max(fastest, perCore)
		rate, mpps, top = max(rate, p.Rate()), max(mpps, p.Mpps), max(top, p.Intensity)
	}
	const small, large = 1e-4, 10
	top, rate = max(top, 1), max(rate, mpps*small)
	return []float64{math.Log(small / fastest), math.Log(small / (fastest * top)), math.Log(small / rate), math.Log(rate / large), math.Log(mpps / large), 0},
		[]float64{math.Log(large / slowest), math.Log(large / (slowest / top)), math.Log(large / slowest), math.Log(rate * large), math.Log(mpps * large), math.Log(hardKnee)}
}

// coreStarts enumerates the roof (the rate of each place, since one of them
// lies on it if there is one) and the sharpness; the points well below the
// roof and the I/O ceiling give the cost on a core by linear least squares.
func coreStarts(points []Point, c candidate) [][]float64 {
	has := func(j int) bool { return slices.Contains(c.free, j) }
	roofs, ios := []float64{math.Inf(1)}, []float64{math.Inf(1)}
	if has(coreRoof) {
		roofs = levels(points, Point.Rate)
	}
	if has(coreIO) {
		ios = levels(points, func(p Point) float64 { return p.Mpps })
	}
	sharps := []float64{math.Inf(1)}
	if has(coreSharp) {
		sharps = []float64{4, 16, 64}
	}
	var starts [][]float64
	for _, roof := range roofs {
		for _, io := range ios {
			var below []Point // as on one core
			for _, p := range points {
				if p.Rate() < softPast*roof && p.Mpps < softPast*io {
					below = append(below, Point{Intensity: p.Intensity, Mpps: p.Mpps / float64(p.Cores)})
				}
			}
			if len(below) == 0 {
				continue
			}
			d0, dm := line(below, 0, has(coreDm))
			for _, sharp := range sharps {
				q := []float64{math.Log(d0), math.Log(dm), math.Log(0.5 / roof), math.Log(roof), math.Log(io), math.Log(sharp)}
				for j := range q {
					if has(j) {
						q[j] = min(max(q[j], c.lower[j]), c.upper[j])
					} else {
						q[j] = c.absent[j]
					}
				}
				starts = append(starts, q)
			}
		}
	}
	return starts
}

// levels returns up to eight values of y, spread over the upper half of its
// order: where a ceiling may lie.
func levels(points []Point, y func(Point) float64) []float64 {
	ys := make([]float64, len(points))
	for k, p := range points {
		ys[k] = y(p)
	}
	s := stats.Sorted(ys)
	var out []float64
	for p := 30.0; p <= 100; p += 10 {
		if v := s.Percentile(p); v > 0 && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
