// Package fit turns a board's samples into its model: rooflines, interference
// matrix, lock parameters, the times of every resource, and the rule that
// predicts held-out samples best.
package fit

import (
	"cmp"
	"fmt"
	"slices"

	"nicprof/board"
	"nicprof/fit/hybrid"
	"nicprof/fit/locks"
	"nicprof/fit/roofline"
	"nicprof/internal/fault"
	"nicprof/internal/stats"
	"nicprof/internal/version"
	"nicprof/microbench"
	"nicprof/model"
	"nicprof/program"
)

// Options of Fit. The zero value fits with Levenberg and Marquardt's method on
// the catalogue's board of the samples' name.
type Options struct {
	Board  *board.Board // nil: the catalogue's, and without one what the samples say
	Method string       // of rooflines: lm (default) or nelder-mead
	Suite  string       // for the model's provenance
	Seed   uint64
}

// Report is what a fit has to tell beside the model.
type Report struct {
	Notes     []string          // what was left out or could not be fitted, and why
	Findings  []string          // of the rooflines and locks: retrograde curves, points above a roof
	Rooflines []roofline.Result // parallel to Model.Rooflines
	Locks     []locks.Result    // parallel to Model.Locks

	overCores []roofline.Result // parallel to Rooflines: of the points on all core counts
	Hybrid    hybrid.Result
	Residuals []Residual // of the default rule, in the samples' order
}

// Residual is a sample against the model's default rule.
type Residual struct {
	Key       string
	Group     string
	Measured  float64
	Predicted float64
	Pct       float64 // predicted above measured, per cent of measured
}

func (r *Report) note(format string, a ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, a...)) }

// Fit fits samples of one board: of a sweep, or imported curves, which give
// rooflines only. Samples that failed or that changed regime in time are left
// out with a note. Errors are the input's fault: no usable sample, or samples
// of several boards.
func Fit(samples []microbench.Sample, o Options) (*model.Model, *Report, error) {
	r := &Report{}
	used, err := usable(samples, r)
	if err != nil {
		return nil, nil, err
	}
	b := o.Board
	if b == nil {
		if b, err = board.Load(used[0].Board); err != nil {
			r.note("board %s is not in the catalogue: capacities and defaults are unknown", used[0].Board)
			b = nil
		}
	}
	m := skeleton(used, b, o, r)
	if b != nil && b.FPGA != nil {
		return fitChains(m, b, used, r)
	}
	if err := fitRooflines(m, used, o, r); err != nil {
		return nil, nil, err
	}
	r.Hybrid = hybrid.Decide(used)
	r.Notes = append(r.Notes, r.Hybrid.Notes...)
	compose(m, r.Hybrid)
	fitLocks(m, used, r)
	m.DefaultRule = model.RuleCommon
	if full(m, used) {
		if err := fitResources(m, b, used, r); err != nil {
			return nil, nil, err
		}
	} else {
		coresOfCurves(m, r)
		r.note("the samples are curves only: no interference matrix, no base costs; rule %s is the default", m.DefaultRule)
	}
	residuals(m, used, r)
	m.Notes = r.Notes
	if _, err := m.Encode(); err != nil {
		return nil, nil, err
	}
	return m, r, nil
}

// usable drops what is no measurement.
func usable(samples []microbench.Sample, r *Report) ([]microbench.Sample, error) {
	var used []microbench.Sample
	failed := 0
	for _, s := range samples {
		switch {
		case s.Status != microbench.StatusOK && s.Status != "":
			failed++
		case stats.IsRegimes(s.Warnings):
			r.note("left out %s: several regimes in time, so its mean is no measurement", name(&s))
		case !(s.Mpps > 0):
			return nil, fault.Inputf("sample %s: throughput %v Mpps; expected a number above 0", name(&s), s.Mpps)
		case len(used) > 0 && s.Board != used[0].Board:
			return nil, fault.Inputf("sample %s is of board %s, others of %s: fit one board at a time", name(&s), s.Board, used[0].Board)
		default:
			used = append(used, s)
		}
	}
	if failed > 0 {
		r.note("left out %d samples that failed", failed)
	}
	if len(used) == 0 {
		return nil, fault.Inputf("none of %d samples is usable: nothing to fit", len(samples))
	}
	return used, nil
}

func name(s *microbench.Sample) string {
	if s.Key != "" {
		return s.Key
	}
	return fmt.Sprintf("number %d", s.Index)
}

// full says whether the samples are those of a sweep: bare rates of a base on
// several core counts.
func full(m *model.Model, samples []microbench.Sample) bool {
	cores := map[int]bool{}
	for i := range samples {
		if s := &samples[i]; bare(s) {
			cores[s.Cores] = true
		}
	}
	return len(cores) > 1 && len(m.Bases) > 0
}

func bare(s *microbench.Sample) bool {
	p := &s.Program
	return len(p.Accesses) == 0 && len(p.Locks) == 0 && len(p.Stateless) == 0
}

// skeleton is the model before any fit: provenance, and what the board's
// description or, without one, the samples say.
func skeleton(samples []microbench.Sample, b *board.Board, o Options, r *Report) *model.Model {
	m := &model.Model{
		Schema: model.Schema, Board: samples[0].Board, Suite: o.Suite, Seed: o.Seed,
		Version: version.Version, Samples: len(samples), BoardClass: "unknown",
	}
	for i := range samples {
		if s := &samples[i]; !slices.Contains(m.Backends, s.Backend) {
			m.Backends = append(m.Backends, s.Backend)
		}
	}
	slices.Sort(m.Backends)
	if b != nil {
		m.BoardClass, m.ClockMHz, m.LinkGbps = b.Class, b.ClockMHz.Value, b.LinkGbps.Value
		m.Queueing.LockMemory = b.Locks.Memory
		for _, mem := range b.Swept() {
			m.Memories = append(m.Memories, memoryOf(mem))
		}
	}
	bases(m, samples, b, r)
	for i := range samples {
		p := &samples[i].Program
		for _, a := range p.Accesses {
			addEngine(m, a)
		}
	}
	return m
}

func memoryOf(b *board.Memory) model.Memory {
	mem := model.Memory{
		Name: b.Name, Bytes: b.Bytes, LineBytes: max(1, int64(b.LineBytes.Value)), Banks: int(b.Banks.Value),
		BankBytes: int64(b.BankBytes.Value), DefaultSpan: max(1, b.DefaultSpan), DefaultStride: b.DefaultStride,
	}
	if b.Cache != nil {
		mem.CacheBytes, mem.CacheLine = int64(b.Cache.Bytes.Value), int64(b.Cache.LineBytes.Value)
	}
	mem.SharedBy = int(b.SharedBy.Value)
	for i := range b.Engines {
		e := &b.Engines[i]
		me := model.Engine{Mode: e.Mode, MaxBytes: min(program.MaxBytes, int(e.MaxBytes.Value)), Front: b.Name + "." + string(e.Mode)}
		for _, op := range []program.Op{program.Read, program.Write, program.Add} {
			if c := e.Command(op); c != nil && c.Posted {
				me.Posted = append(me.Posted, op)
			}
		}
		mem.Engines = append(mem.Engines, me)
	}
	return mem
}

// addEngine makes room for a memory that no board description names.
func addEngine(m *model.Model, a program.Access) {
	at := slices.IndexFunc(m.Memories, func(mem model.Memory) bool { return mem.Name == a.Memory })
	if at < 0 {
		at = len(m.Memories)
		m.Memories = append(m.Memories, model.Memory{Name: a.Memory, LineBytes: program.MaxBytes, DefaultSpan: max(1, a.Span)})
	}
	mem := &m.Memories[at]
	mem.DefaultSpan = max(mem.DefaultSpan, min(a.Span, 8192))
	if !slices.ContainsFunc(mem.Engines, func(e model.Engine) bool { return e.Mode == a.Mode }) {
		mem.Engines = append(mem.Engines, model.Engine{Mode: a.Mode, MaxBytes: program.MaxBytes, Front: a.Memory + "." + string(a.Mode)})
	}
}

// bases lists the base programs that were measured, in the board's order.
func bases(m *model.Model, samples []microbench.Sample, b *board.Board, r *Report) {
	measured := map[string][]*microbench.Sample{}
	var names []string
	for i := range samples {
		s := &samples[i]
		if _, ok := measured[s.Program.Base]; !ok {
			names = append(names, s.Program.Base)
		}
		measured[s.Program.Base] = append(measured[s.Program.Base], s)
	}
	if b != nil {
		slices.SortStableFunc(names, func(x, y string) int { return cmp.Compare(baseRank(b, x), baseRank(b, y)) })
		for i := range b.Bases {
			if _, ok := measured[b.Bases[i].Name]; !ok && len(names) > 1 {
				r.note("base %s was not measured: the model does not predict for it", b.Bases[i].Name)
			}
		}
	}
	for _, n := range names {
		base := model.Base{Name: n, Cores: 1, Threads: 1}
		fastest := 0.0
		for _, s := range measured[n] {
			base.Cores, base.Threads = max(base.Cores, s.Cores), max(base.Threads, s.Threads)
			fastest = max(fastest, s.Mpps)
		}
		for _, s := range measured[n] {
			if bare(s) && s.Cores == base.Cores && s.Threads >= base.Threads {
				base.BareMpps = model.Value{Value: s.Mpps, Low: s.Low, High: s.High, Identified: true}
			}
		}
		if b != nil {
			if bb, err := b.Base(n); err == nil {
				base.PerPacket = bb.Index == "packet"
			}
		}
		if !base.BareMpps.Identified {
			base.BareMpps = model.Value{Value: fastest, Note: "at least: no bare program was measured"}
		}
		base.IOMpps = base.BareMpps
		base.IOMpps.Identified, base.IOMpps.Note = false, "at least the bare rate"
		m.Bases = append(m.Bases, base)
	}
}

func baseRank(b *board.Board, name string) int {
	for i := range b.Bases {
		if b.Bases[i].Name == name {
			return i
		}
	}
	return len(b.Bases)
}

// compose turns the interference matrix into the composition tree and the
// fronts that engines pass.
func compose(m *model.Model, h hybrid.Result) {
	m.Interference, m.Composition = h.Pairs, h.Tree
	for i := range m.Memories {
		mem := &m.Memories[i]
		for j := range mem.Engines {
			e := &mem.Engines[j]
			engine := model.Class{Memory: mem.Name, Mode: e.Mode}.Engine()
			at := slices.IndexFunc(m.Composition, func(g model.Group) bool { return slices.Contains(g.Engines, engine) })
			if at < 0 {
				m.Composition = append(m.Composition, model.Group{Name: e.Front, Engines: []string{engine}})
				continue
			}
			e.Front = m.Composition[at].Name
		}
	}
}

// coresOfCurves gives a base the core times of the first of its curves that was
// measured on several core counts: what curves alone tell of cores.
func coresOfCurves(m *model.Model, r *Report) {
	for i := range m.Bases {
		base := &m.Bases[i]
		for j := range r.Rooflines {
			c := &r.overCores[j]
			if m.Rooflines[j].Base != base.Name || c.Form != roofline.Cores || !c.D0.Identified || !c.Dm.Identified {
				continue
			}
			base.CoreUS, base.AccessUS = c.D0, c.Dm
			if c.IO.Identified {
				base.IOMpps = c.IO
			}
			break
		}
	}
	m.Changed()
}

// residuals holds the samples against the default rule.
func residuals(m *model.Model, samples []microbench.Sample, r *Report) {
	for i := range samples {
		s := &samples[i]
		p, err := m.Predict(s.Program, s.Traffic, model.Options{Cores: s.Cores, Threads: s.Threads, Brief: true})
		if err != nil {
			r.note("%s is not predicted: %v", name(s), err)
			continue
		}
		res := Residual{Key: s.Key, Group: s.Group, Measured: s.Mpps, Predicted: p.Mpps, Pct: 100 * (p.Mpps/s.Mpps - 1)}
		r.Residuals = append(r.Residuals, res)
	}
	m.Quality = quality(r.Residuals)
}
