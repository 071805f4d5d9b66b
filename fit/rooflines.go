package fit

import (
	"runtime"
	"slices"
	"sync"

	"nicprof/fit/locks"
	"nicprof/fit/roofline"
	"nicprof/internal/stats"
	"nicprof/microbench"
	"nicprof/model"
	"nicprof/program"
)

// curveOf names a curve; its samples differ in intensity and cores only.
type curveOf struct {
	memory string
	op     program.Op
	mode   program.Mode
	bytes  int
	span   int64
	stride int64
	base   string
}

// curve is the data of one roofline.
type curve struct {
	curveOf
	points []roofline.Point // on all cores measured
	few    bool             // points on fewer cores than the most are among them
	cores  int              // the most
	result roofline.Result
	apart  roofline.Result // with per-core cost and roof apart, when few
	err    error
}

// fitRooflines fits every curve that a single access was measured on. The rate
// of the bare base is intensity 0 of all its curves.
func fitRooflines(m *model.Model, samples []microbench.Sample, o Options, r *Report) error {
	var curves []*curve
	at := map[curveOf]*curve{}
	var bares []*microbench.Sample
	for i := range samples {
		s := &samples[i]
		if s.Threads > 0 && s.Threads < threadsOf(m, s.Program.Base) {
			continue // shows latencies, not the curve
		}
		if bare(s) {
			bares = append(bares, s)
		}
		p := &s.Program
		if len(p.Accesses) != 1 || len(p.Locks) > 0 || len(p.Stateless) > 0 || p.Accesses[0].Popularity == "zipf" || s.Traffic.RateMpps > 0 {
			continue
		}
		a := p.Accesses[0]
		key := curveOf{a.Memory, a.Op, a.Mode, a.Bytes, a.Span, a.Stride, p.Base}
		c := at[key]
		if c == nil {
			c = &curve{curveOf: key}
			at[key] = c
			curves = append(curves, c)
		}
		c.add(s, a.PerPacket)
	}
	kept := curves[:0]
	for _, c := range curves {
		for _, s := range bares {
			if s.Program.Base == c.base && s.Cores == c.cores {
				c.add(s, 0)
				break
			}
		}
		for _, p := range c.points {
			c.few = c.few || p.Cores != c.cores
		}
		kept = append(kept, c)
	}
	parallel(len(kept), func(i int) { kept[i].fit(o) })
	skipped := 0
	for _, c := range kept {
		if c.err != nil {
			if len(kept) == 1 {
				return c.err
			}
			skipped++
			continue
		}
		m.Rooflines = append(m.Rooflines, c.model())
		r.Rooflines = append(r.Rooflines, c.result)
		r.overCores = append(r.overCores, c.overCores())
		for _, f := range c.result.Findings {
			r.Findings = append(r.Findings, c.name()+": "+f)
		}
	}
	if skipped > 0 {
		r.note("%d curves have too few points for a roofline", skipped)
	}
	return nil
}

// threadsOf returns the contexts a core that a base uses.
func threadsOf(m *model.Model, name string) int {
	for i := range m.Bases {
		if m.Bases[i].Name == name {
			return m.Bases[i].Threads
		}
	}
	return 0
}

func (c *curve) name() string {
	a := program.Access{Memory: c.memory, Op: c.op, Mode: c.mode, Bytes: c.bytes, Span: c.span, Stride: c.stride}
	return a.String() + " on " + c.base
}

func (c *curve) add(s *microbench.Sample, intensity float64) {
	c.points = append(c.points, roofline.Point{
		Intensity: intensity, Mpps: s.Mpps, Low: s.Low, High: s.High, Cores: s.Cores, Label: s.Key, Warnings: s.Warnings,
	})
	c.cores = max(c.cores, s.Cores)
}

func (c *curve) fit(o Options) {
	opt := roofline.Options{Method: o.Method, Seed: o.Seed}
	all := c.points
	if c.few {
		all = slices.DeleteFunc(slices.Clone(c.points), func(p roofline.Point) bool { return p.Cores != c.cores })
		if c.apart, c.err = roofline.Fit(c.points, opt); c.err != nil {
			c.few = false
		}
	}
	c.result, c.err = roofline.Fit(all, opt)
	// a ceiling of packet I/O, which only the form over cores knows, or few
	// intensities on all cores
	const clearly, poor = 2, 3
	held := c.result.Quality.HeldOutPct
	if c.few && (c.err != nil || held > poor && held > clearly*c.apart.Quality.HeldOutPct) {
		c.result, c.err = c.apart, nil
	}
}

// model is the curve's entry. Numbers that the data do not identify are those
// of the fitted curve, with the note that says so.
func (c *curve) model() model.Roofline {
	out := model.Roofline{
		Memory: c.memory, Op: c.op, Mode: c.mode, Bytes: c.bytes, Span: c.span, Stride: c.stride, Base: c.base,
		Form: c.result.Form, A: c.result.A, B: c.result.B, C: c.result.C, Roof: c.result.Roof, Quality: c.result.Quality,
	}
	out.A.Value, out.B.Value, out.C.Value, _ = c.result.Curve(c.cores)
	if out.Form == roofline.Cores {
		out.Form = roofline.Eq1
	}
	none := model.Value{Note: "not identified: all points are on the same number of cores"}
	out.CoreUS, out.MemUS = none, none
	apart := c.overCores()
	if apart.Form == roofline.Cores {
		out.CoreUS = apart.Dm
		out.MemUS = inverse(apart.Roof)
		if !out.Roof.Identified && apart.Roof.Identified {
			out.MemUS.Note = "of the curves over cores"
		}
	} else if out.Roof.Identified {
		out.MemUS = inverse(out.Roof)
	}
	return out
}

// overCores is the fit to the points on all core counts.
func (c *curve) overCores() roofline.Result {
	if c.result.Form == roofline.Cores {
		return c.result
	}
	return c.apart
}

func inverse(v model.Value) model.Value {
	if !v.Identified || v.Value <= 0 {
		return model.Value{Note: v.Note}
	}
	out := model.Value{Value: 1 / v.Value, Identified: true}
	if v.Low > 0 {
		out.Low, out.High = 1/v.High, 1/v.Low
	}
	return out
}

// parallel runs f(0..n-1) on all processors; f(i) writes its own results only,
// so they do not depend on the order.
func parallel(n int, f func(int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// fitLocks fits Eq. 6 to each idiom and base: the rates of empty sections by
// lock elements that flows hit equally, and the lock-free program's.
func fitLocks(m *model.Model, samples []microbench.Sample, r *Report) {
	type scan struct {
		idiom  program.Idiom
		base   string
		points []locks.Point
	}
	var scans []*scan
	free := map[string]locks.Point{}
	for i := range samples {
		s := &samples[i]
		p := &s.Program
		if len(p.Locks) != 1 || len(p.Accesses) > 0 || len(p.Stateless) > 0 || len(p.Locks[0].Section) > 0 || s.Traffic.RateMpps > 0 {
			continue
		}
		l := p.Locks[0]
		k := l.Elements
		if f := p.Flows; f != nil && !l.Hash {
			if f.Popularity == "zipf" || len(f.Shares) > 0 || f.Count > k && f.Count < 8*k {
				continue // not hit equally
			}
			k = min(k, f.Count)
		}
		point := locks.Point{Elements: k, Mpps: s.Mpps, Low: s.Low, High: s.High, Label: s.Key, Warnings: s.Warnings}
		if l.Idiom == program.None {
			free[p.Base] = point
			continue
		}
		at := slices.IndexFunc(scans, func(c *scan) bool { return c.idiom == l.Idiom && c.base == p.Base })
		if at < 0 {
			at = len(scans)
			scans = append(scans, &scan{idiom: l.Idiom, base: p.Base})
		}
		scans[at].points = append(scans[at].points, point)
	}
	for _, c := range scans {
		fitted, err := locks.Fit(c.points, locks.Options{LockFree: free[c.base]})
		if err != nil {
			r.note("locks by %s on base %s: %v", c.idiom, c.base, err)
			fitted = fewLocks(c.points, free[c.base], err)
		}
		m.Locks = append(m.Locks, model.Lock{
			Idiom: c.idiom, Base: c.base, LockMpps: fitted.TLock, FreeMpps: fitted.LockFree, Threads: fitted.NThread,
			Linear: fitted.LinearTo, ErrorPct: fitted.Quality.MAPE, HoldUS: model.Value{Note: "not fitted"},
		})
		r.Locks = append(r.Locks, fitted)
		for _, f := range fitted.Findings {
			r.Findings = append(r.Findings, "lock "+string(c.idiom)+" on "+c.base+": "+f)
		}
	}
}

// fewLocks is Eq. 6 read off the point of the fewest locks, where there are too
// few for a line.
func fewLocks(points []locks.Point, free locks.Point, err error) locks.Result {
	p := slices.MinFunc(points, func(a, b locks.Point) int { return a.Elements - b.Elements })
	value := func(v float64) model.Value { return model.Value{Value: v, Note: "of one point: " + err.Error()} }
	out := locks.Result{TLock: value(p.Mpps / float64(p.Elements)), LockFree: value(max(free.Mpps, p.Mpps))}
	out.NThread = value(out.LockFree.Value / out.TLock.Value)
	return out
}

// quality sums residuals up.
func quality(rs []Residual) model.Quality {
	q := model.Quality{N: len(rs)}
	if q.N == 0 {
		return q
	}
	var pct []float64
	mean, ss, st := 0.0, 0.0, 0.0
	for _, r := range rs {
		pct = append(pct, r.Pct)
		mean += r.Measured / float64(q.N)
		q.MAPE += abs(r.Pct) / float64(q.N)
		q.MaxPct = max(q.MaxPct, abs(r.Pct))
	}
	for _, r := range rs {
		ss += (r.Predicted - r.Measured) * (r.Predicted - r.Measured)
		st += (r.Measured - mean) * (r.Measured - mean)
	}
	if st > 0 {
		q.R2 = 1 - ss/st
	}
	q.Outliers = len(stats.Outliers(pct))
	q.ResidualScale = stats.Spread(pct) / 100
	return q
}

func abs(x float64) float64 { return max(x, -x) }
