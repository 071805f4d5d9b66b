package model

import (
	"math"
	"slices"

	"nicprof/internal/fault"
)

// compose predicts by the paper's rules (Cora, Section 5): the accesses fall
// into the leaves of the composition tree; a leaf's curves combine as a
// weighted harmonic mean, and the slowest leaf counts. The core side and locks
// (Eq. 6) bound the result.
func (m *Model) compose(j *job, rule string, out *resourceTimes) error {
	out.leaves = m.Composition
	out.n = resFirst + len(m.Composition)
	out.us[resIO] = max(1/j.base.BareMpps.Value, j.wireTime(m))
	out.us[resCores] = j.coreTime() / float64(j.cores)
	slowest := max(out.us[resIO], out.us[resCores])
	out.rel = j.base.BareMpps.Rel()
	switch {
	case out.us[resCores] > out.us[resIO]:
		out.rel = j.coreRel()
	case out.rel == 0:
		out.rel = j.base.IOMpps.Rel()
	}
	for g := range m.Composition {
		us, rel, err := m.group(j, rule, g)
		if err != nil {
			return err
		}
		out.us[resFirst+g] = us
		if us > slowest {
			slowest, out.rel = us, rel
		}
	}
	out.locksAt = out.n
	free := 1 / slowest
	out.mpps = free
	for i := range j.p.Locks {
		l := &j.p.Locks[i]
		f := m.lock(l.Idiom, j.base.Name)
		if f != nil && f.Threads.Value > 0 {
			hot, flow := elementShare(l, j.flows)
			out.tLock[i], out.flow[i] = free/f.Threads.Value, flow
			out.us[out.n] = hot / out.tLock[i]
			out.mpps = min(out.mpps, 1/out.us[out.n])
		}
		out.n++
	}
	for r := range out.n {
		if out.us[r] > out.us[out.bottleneck] {
			out.bottleneck = r
		}
	}
	return nil
}

// weighted is one access of a group with its curve.
type weighted struct {
	i     float64
	curve *Roofline
	shift float64 // µs a packet: the program's base against the curve's
}

// group returns the time of a packet in a leaf of the tree, 0 when the program
// does not touch it.
func (m *Model) group(j *job, rule string, g int) (us, rel float64, err error) {
	var buffer [32]weighted
	ws := buffer[:0]
	total := 0.0
	for k := range j.accesses {
		a := &j.accesses[k]
		if leaf, ok := j.x.groups[a.engine.name]; !ok || leaf != g {
			continue
		}
		commands := max(1, math.Ceil(float64(a.Bytes)/float64(a.engine.MaxBytes)))
		bytes := 4 * int(math.Ceil(float64(a.Bytes)/4/commands))
		r, err := j.curve(a, bytes)
		if err != nil {
			return 0, 0, err
		}
		w := weighted{i: a.PerPacket * commands, curve: r}
		if r.Base != j.base.Name {
			for _, b := range j.x.bases {
				if b.Name == r.Base {
					w.shift = 1/j.base.BareMpps.Value - 1/b.BareMpps.Value
				}
			}
		}
		total += w.i
		ws = append(ws, w)
	}
	if total == 0 {
		return 0, 0, nil
	}
	for _, w := range ws {
		rel = max(rel, w.curve.rel(total)*w.i/total)
	}
	switch rule {
	case RuleLiteral:
		for _, w := range ws {
			us += w.curve.packetUS(w.i) + w.shift
		}
	case RuleRefit:
		us = refit(ws, total)
	default:
		us = common(ws, total, total)
	}
	return us, rel, nil
}

// common is the time of a packet with x accesses of the group's mix, every
// curve taken at x: 1/T = Σ w_k/T_k(x), so the base is counted once.
func common(ws []weighted, total, x float64) float64 {
	us := 0.0
	for _, w := range ws {
		us += w.i / total * (w.curve.packetUS(x) + w.shift)
	}
	return us
}

// rel is the half-width, relative, of the interval of the time of a packet with
// i accesses: the roof's where the roof counts, else that of A and C together.
func (r *Roofline) rel(i float64) float64 {
	queued := r.C.Value * math.Exp(-r.B.Value/i) * i
	if r.Roof.Identified && i/r.Roof.Value >= r.A.Value+queued {
		return r.Roof.Rel()
	}
	if us := r.A.Value + queued; us > 0 {
		return (r.A.Rel()*r.A.Value + r.C.Rel()*queued) / us
	}
	return 0
}

// packetUS is the curve: the time of a packet with i accesses, µs.
func (r *Roofline) packetUS(i float64) float64 {
	if i <= 0 {
		return r.A.Value
	}
	us := r.A.Value + r.C.Value*math.Exp(-r.B.Value/i)*i
	if r.Roof.Identified {
		us = max(us, i/r.Roof.Value)
	}
	return us
}

// curve finds the roofline of an access: the smallest tabulated size and span
// that are not below it, else the largest. A skewed access counts as a uniform
// one over as many elements as would give the hottest one its share.
func (j *job) curve(a *access, bytes int) (*Roofline, error) {
	c := Class{a.Memory, a.Op, a.Mode}
	span := a.span
	if a.Popularity == "zipf" {
		span = int64(math.Ceil(1 / zipfTop(a.span, a.Alpha)))
	}
	for n := bytes; n <= 128; n += 4 {
		if rs := j.x.curves[curveKey{c, n}]; rs != nil {
			return bySpan(rs, span, j.base.Name), nil
		}
	}
	for n := bytes; n >= 4; n -= 4 {
		if rs := j.x.curves[curveKey{c, n}]; rs != nil {
			return bySpan(rs, span, j.base.Name), nil
		}
	}
	return nil, fault.Inputf("the model has no roofline of %s: it was fitted without one", c)
}

// bySpan takes the curves of the program's own base, or all if it has none: a
// sweep measures few points of a curve on the other bases.
func bySpan(rs []*Roofline, span int64, base string) *Roofline {
	own := slices.ContainsFunc(rs, func(r *Roofline) bool { return r.Base == base })
	var last *Roofline
	for _, r := range rs {
		if own && r.Base != base {
			continue
		}
		last = r
		if r.Span >= span {
			break
		}
	}
	return last
}

// refit fits Eq. 2 to the group's combined curve over 1..25 accesses, as the
// authors' predictor does, and evaluates it at the group's intensity.
func refit(ws []weighted, total float64) float64 {
	const points = 25
	var y [points]float64
	for k := range points {
		y[k] = common(ws, total, float64(k+1))
	}
	best, at := math.Inf(1), 0.0
	try := func(b float64) float64 {
		a, c := solveEq2(y[:], b)
		sum := 0.0
		for k := range points {
			i := float64(k + 1)
			d := i/(a+c*math.Exp(-b/i)*i) - i/y[k]
			sum += d * d
		}
		if sum < best {
			best, at = sum, b
		}
		return sum
	}
	for b := 0.0; b <= 32; b++ {
		try(b)
	}
	for step := 0.5; step > 1e-4; step /= 2 {
		if b := at - step; b >= 0 {
			try(b)
		}
		try(at + step)
	}
	a, c := solveEq2(y[:], at)
	return a + c*math.Exp(-at/total)*total
}

// solveEq2 returns the non-negative a and c that fit a + c·e^(−b/i)·i to y at
// i = 1, 2, … by least squares of M(i).
func solveEq2(y []float64, b float64) (a, c float64) {
	var s11, s12, s22, r1, r2 float64
	for k, v := range y {
		i := float64(k + 1)
		u := math.Exp(-b/i) * i
		w := i * i / (v * v * v * v) // of M(i) = i/t, which the release fits
		s11, s12, s22 = s11+w, s12+w*u, s22+w*u*u
		r1, r2 = r1+w*v, r2+w*u*v
	}
	det := s11*s22 - s12*s12
	if det <= 1e-12*s11*s22 {
		return r1 / s11, 0
	}
	a, c = (r1*s22-r2*s12)/det, (r2*s11-r1*s12)/det
	switch {
	case c < 0:
		return r1 / s11, 0
	case a < 0:
		return 0, r2 / s22
	}
	return a, c
}
