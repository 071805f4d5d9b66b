package fit

import (
	"fmt"
	"math"
	"slices"

	"nicprof/board"
	"nicprof/internal/lm"
	"nicprof/internal/stats"
	"nicprof/microbench"
	"nicprof/model"
	"nicprof/program"
)

// resourceFit fits every time of the resources rule at once, to all samples:
// what one curve leaves open (a bank or a front?) the pairs decide.
type resourceFit struct {
	m        *model.Model
	rule     string
	touches  func(*microbench.Sample) []int // parameters that a sample's prediction may depend on
	samples  []*microbench.Sample
	logs     []float64 // ln of the measured rates
	sigma    []float64 // relative standard errors
	params   []*param
	at       map[*model.Value]int
	ties     map[*model.Value]tie   // by the tied number
	tied     map[*model.Value][]tie // by the numbers that it follows
	touched  [][]int                // parameters by sample
	scale    float64                // of residuals that are no outliers
	coarse   float64                // the same in a first solution from the starts, 0: none
	patience int                    // iterations of a solution
	oneSided bool                   // derivatives by one difference: half the predictions
	prune    bool                   // before each solution leave out parameters that a sample does not show
}

// param is one fitted number. It is fitted relative to its start, which also is
// its prior: a number that no sample bears on stays there.
type param struct {
	v     *model.Value
	start float64
	lower float64 // relative
	upper float64
	prior float64 // relative standard deviation of the start
}

const (
	// weakPrior and the others are how far a start may be off: a factor of the
	// start itself.
	weakPrior = 2
	firmPrior = 0.3
	// off is the share of its start at which a time is as good as none.
	off = 1e-3
	// typicalScale is the residual scale that decides what an outlier is in
	// the first place: emulated samples have intervals of 1 %, native ones more.
	typicalScale = 0.015
)

// start sets a value and makes it a parameter.
func (f *resourceFit) start(v *model.Value, at, prior float64) {
	*v = model.Value{Value: at}
	f.params = append(f.params, &param{v: v, start: at, lower: off, upper: 50, prior: prior})
}

// fitResources fills Costs, Queueing, Stateless, the bases' and locks' times,
// and judges all rules on held-out samples.
func fitResources(m *model.Model, b *board.Board, samples []microbench.Sample, r *Report) error {
	f := newFit(m, model.RuleResources)
	f.touches = f.touchesResources
	f.starts(b, samples)
	f.index()
	fits := []*resourceFit{f}
	if slices.Contains(model.RulesFor(m.BoardClass), model.RuleCores) {
		fits = append(fits, newLawFit(m, b, samples))
	}
	train, test := split(samples)
	for _, f := range fits {
		if f.rule == model.RuleCores && m.CoreLaw.Window.Value > 0 {
			if err := f.window(train, r); err != nil {
				return err
			}
		}
		if err := f.train(train, r); err != nil {
			return err
		}
	}
	if law := fits[len(fits)-1]; law.rule == model.RuleCores {
		if err := law.ownCaches(); err != nil {
			return err
		}
	}
	m.Rules = judgeRules(m, test, r)
	for _, f := range fits {
		if err := f.use(samples, r); err != nil {
			return err
		}
		s, err := f.solve(12)
		if err != nil {
			return err
		}
		f.intervals(s)
	}
	judged := m.Rules
	if len(judged) == 0 { // nothing to hold out: the samples of the fit have to tell
		judged = judgeRules(m, samples, r)
	}
	best := math.Inf(1)
	for _, e := range judged {
		if e.MeanPct < best {
			best, m.DefaultRule = e.MeanPct, e.Rule
		}
	}
	m.Changed()
	return nil
}

// train fits to samples from the starts on.
func (f *resourceFit) train(samples []microbench.Sample, r *Report) error {
	if err := f.use(samples, r); err != nil {
		return err
	}
	if f.coarse > 0 {
		fine := f.scale
		f.scale = f.coarse
		_, err := f.solve(15)
		f.scale = fine
		if err != nil {
			return err
		}
	}
	if _, err := f.solve(8); err != nil {
		return err
	}
	for range 2 {
		f.refine()
		if _, err := f.solve(f.patience); err != nil {
			return err
		}
	}
	return nil
}

// dropIdle leaves only parameters touched that change a sample's prediction when
// they are three times as large or a third.
func (f *resourceFit) dropIdle() {
	const far = 3
	for i, s := range f.samples {
		f.touched[i] = slices.DeleteFunc(f.touches(s), func(j int) bool {
			v := f.params[j].v
			at := v.Value
			here := f.residual(i)
			v.Value = at * far
			up := f.residual(i)
			v.Value = at / far
			down := f.residual(i)
			v.Value = at
			return up == here && down == here
		})
	}
}

// residual is the logarithm of a sample's rate over the predicted one.
func (f *resourceFit) residual(i int) float64 {
	mpps, err := f.predict(f.samples[i])
	if err != nil {
		return math.Inf(-1)
	}
	return f.logs[i] - math.Log(mpps)
}

func newFit(m *model.Model, rule string) *resourceFit {
	return &resourceFit{m: m, rule: rule, scale: typicalScale, patience: 20, at: map[*model.Value]int{}, ties: map[*model.Value]tie{}, tied: map[*model.Value][]tie{}}
}

// index makes the parameters that were started known by their numbers.
func (f *resourceFit) index() {
	f.m.Changed()
	for i, p := range f.params {
		f.at[p.v] = i
	}
}

// split holds every fifth sample out that combines or skews accesses or takes
// locks: what a composition rule is for.
func split(samples []microbench.Sample) (train, test []microbench.Sample) {
	n := 0
	for _, s := range samples {
		combined := len(s.Program.Accesses) > 1 || len(s.Program.Locks) > 0 || s.Group == microbench.GroupSkew
		if combined {
			n++
		}
		if combined && n%5 == 0 {
			test = append(test, s)
		} else {
			train = append(train, s)
		}
	}
	return train, test
}

// judgeRules holds every rule against samples that no fit has seen.
func judgeRules(m *model.Model, test []microbench.Sample, r *Report) []model.RuleError {
	var out []model.RuleError
	for _, rule := range model.RulesFor(m.BoardClass) {
		var pct, locked, free []float64
		var failed error
		for i := range test {
			s := &test[i]
			p, err := m.Predict(s.Program, s.Traffic, model.Options{Cores: s.Cores, Threads: s.Threads, Rule: rule, Brief: true})
			if err != nil {
				failed = err
				continue
			}
			e := 100 * math.Abs(p.Mpps/s.Mpps-1)
			pct = append(pct, e)
			if model.Locked(&s.Program) {
				locked = append(locked, e)
			} else {
				free = append(free, e)
			}
		}
		if failed != nil {
			r.note("rule %s: %d of %d samples left out of the fit are not predicted: %v", rule, len(test)-len(pct), len(test), failed)
		}
		if enough := float64(len(test)) * mostPredicted(m); len(pct) == 0 || float64(len(pct)) < enough {
			continue
		}
		mean, p95, most := errorsOf(pct)
		e := model.RuleError{Rule: rule, N: len(pct), MeanPct: mean, P95Pct: p95, MaxPct: most}
		if m.CoreLaw != nil {
			for i, kind := range [][]float64{free, locked} {
				if len(kind) > 0 {
					mean, p95, _ := errorsOf(kind)
					e.Kinds = append(e.Kinds, model.KindError{Locks: i == 1, N: len(kind), MeanPct: mean, P95Pct: p95})
				}
			}
		}
		out = append(out, e)
	}
	return out
}

// mostPredicted is the share of samples that a rule must predict to be judged: of
// a real machine a part may have been too noisy to measure.
func mostPredicted(m *model.Model) float64 {
	if native(m) {
		return 0.9
	}
	return 1
}

// errorsOf are the mean, the 95th percentile and the largest of errors.
func errorsOf(pct []float64) (mean, p95, most float64) {
	for _, e := range pct {
		mean += e
	}
	sorted := stats.Sorted(pct)
	return mean / float64(len(pct)), sorted.Percentile(95), sorted[len(sorted)-1]
}

// starts sets a first guess of everything from the samples that show it best.
func (f *resourceFit) starts(b *board.Board, samples []microbench.Sample) {
	m := f.m
	q := &m.Queueing
	for _, k := range program.Kinds {
		if us, ok := statelessStart(m, samples, k); ok {
			m.Stateless = append(m.Stateless, model.OpCost{Kind: k, US: model.Value{Value: us}})
		}
	}
	for i := range m.Stateless {
		f.start(&m.Stateless[i].US, m.Stateless[i].US.Value, weakPrior)
	}
	fronts := map[string]bool{}
	for _, mem := range m.Memories {
		for _, e := range mem.Engines {
			fronts[e.Front] = true
		}
	}
	for i := range m.Bases {
		base := &m.Bases[i]
		core, access := coreStarts(base, samples)
		f.start(&base.CoreUS, core, weakPrior)
		f.start(&base.WaitUS, core/4, weakPrior)
		f.start(&base.AccessUS, access, weakPrior)
		f.start(&base.IOMpps, base.BareMpps.Value*1.001, firmPrior)
		f.start(&base.LockUS, core/50, weakPrior)
		for _, mem := range m.Memories {
			var done []string
			for _, e := range mem.Engines {
				if !slices.Contains(done, e.Front) {
					done = append(done, e.Front)
				}
			}
			for _, front := range append(done, mem.Name+".bank") {
				base.Demand = append(base.Demand, model.Demand{Resource: front})
			}
		}
		for j := range base.Demand {
			f.start(&base.Demand[j].US, 0.1/base.BareMpps.Value, weakPrior)
		}
	}
	var seen []measuredSpans
	for _, c := range classes(samples) {
		for _, bytes := range sizes(m, samples, c) {
			cost, spans := f.costStart(samples, c, bytes)
			m.Costs, seen = append(m.Costs, cost), append(seen, spans)
		}
	}
	for i := range m.Costs {
		for k, v := range times(&m.Costs[i]) {
			if seen[i].of(k) && v.Value > 0 {
				f.start(v, v.Value, weakPrior)
				if v == &m.Costs[i].Front {
					f.params[len(f.params)-1].lower = 0.2 // every command passes
				}
			}
		}
	}
	f.tieSizes(seen)
	f.start(&q.CoreWait, 0.5, weakPrior)
	f.params[len(f.params)-1].upper = 2
	f.start(&q.Wait, 0.5, weakPrior)
	f.params[len(f.params)-1].upper = 2
	f.start(&q.IOWait, 0.1, weakPrior)
	f.params[len(f.params)-1].upper = 10
	f.start(&q.Depth, 32, weakPrior)
	for _, mem := range m.Memories {
		q.Latency = append(q.Latency, model.Latency{Memory: mem.Name})
	}
	for i := range q.Latency {
		f.start(&q.Latency[i].US, 0.25, firmPrior)
		if m.Memories[i].CacheBytes > 0 {
			f.start(&q.Latency[i].MissUS, 0.25, firmPrior)
		}
	}
	if len(m.Locks) > 0 {
		test := 0.005
		for _, c := range m.Costs {
			if c.Memory == q.LockMemory && c.Mode == program.Atomic && c.Op == program.Write && c.Bytes == 4 {
				test = c.Front.Value
			}
		}
		f.start(&q.TestUS, test, weakPrior)
		f.start(&q.SpinUS, 0.03, weakPrior)
		f.start(&q.TurnUS, 0.2, weakPrior)
		for i := range m.Locks {
			f.start(&m.Locks[i].HoldUS, 0.05, weakPrior)
		}
	}
}

// times lists a cost's numbers in the order that measuredSpans.of knows.
func times(c *model.Cost) []*model.Value {
	return []*model.Value{&c.Front, &c.Bank, &c.Line, &c.Same, &c.Miss, &c.MissFront}
}

// measuredSpans says on which spans a command size was measured alone: few
// elements of one bank, one element, more than the cache holds.
type measuredSpans struct{ bank, line, miss bool }

func (s measuredSpans) of(k int) bool {
	return [...]bool{true, s.bank, s.line, s.line, s.miss, s.miss}[k]
}

// tie makes a number follow those of the next smaller and larger size that were
// measured on the span that shows it.
type tie struct {
	v, lo, hi *model.Value
	share     float64 // of hi
}

func (t tie) follow() { t.v.Value = t.lo.Value + t.share*(t.hi.Value-t.lo.Value) }

// tieSizes ties what a size was not measured for to its neighbours.
func (f *resourceFit) tieSizes(seen []measuredSpans) {
	costs := f.m.Costs
	for i := range costs {
		for k, v := range times(&costs[i]) {
			if seen[i].of(k) {
				continue
			}
			lo, hi := -1, -1
			for o := range costs {
				if costs[o].Class != costs[i].Class || !seen[o].of(k) {
					continue
				}
				if b := costs[o].Bytes; b < costs[i].Bytes && (lo < 0 || b > costs[lo].Bytes) {
					lo = o
				} else if b > costs[i].Bytes && (hi < 0 || b < costs[hi].Bytes) {
					hi = o
				}
			}
			switch {
			case lo < 0 && hi < 0:
				v.Note = "not measured on a span that shows it"
				continue
			case lo < 0:
				lo = hi
			case hi < 0:
				hi = lo
			}
			t := tie{v: v, lo: times(&costs[lo])[k], hi: times(&costs[hi])[k]}
			if lo != hi {
				t.share = float64(costs[i].Bytes-costs[lo].Bytes) / float64(costs[hi].Bytes-costs[lo].Bytes)
			}
			v.Note = "between the measured sizes"
			f.tied[t.lo] = append(f.tied[t.lo], t)
			if lo != hi {
				f.tied[t.hi] = append(f.tied[t.hi], t)
			}
			f.ties[v] = t
			t.follow()
		}
	}
}

// follow updates what is tied to v.
func (f *resourceFit) follow(v *model.Value) {
	for _, t := range f.tied[v] {
		t.follow()
	}
}

// coreStarts takes a base's time a packet from the fewest cores it was measured
// on, and its time a command from the rates with accesses on few cores.
func coreStarts(base *model.Base, samples []microbench.Sample) (core, access float64) {
	fewest := base.Cores + 1
	for i := range samples {
		if s := &samples[i]; s.Program.Base == base.Name && bare(s) && s.Cores < fewest && s.Threads >= base.Threads {
			fewest, core = s.Cores, float64(s.Cores)/s.Mpps
		}
	}
	least := math.Inf(1)
	for i := range samples {
		s := &samples[i]
		if s.Program.Base != base.Name || len(s.Program.Accesses) != 1 || len(s.Program.Locks) > 0 || 2*s.Cores > base.Cores || s.Threads < base.Threads {
			continue
		}
		if us := (float64(s.Cores)/s.Mpps - core) / s.Program.Accesses[0].PerPacket; us > 0 {
			least = min(least, us)
		}
	}
	if math.IsInf(least, 1) {
		least = core / 40
	}
	return core, least
}

// statelessStart is the core time of one operation of a kind: the slope of the
// time a packet over the count, where the count is largest.
func statelessStart(m *model.Model, samples []microbench.Sample, kind string) (float64, bool) {
	best, us := 0.0, 0.0
	for i := range samples {
		s := &samples[i]
		n := s.Program.Stateless[kind]
		if n <= best || len(s.Program.Stateless) != 1 || len(s.Program.Accesses) > 0 || s.Threads < threadsOf(m, s.Program.Base) {
			continue
		}
		for j := range m.Bases {
			if b := &m.Bases[j]; b.Name == s.Program.Base {
				best, us = n, float64(s.Cores)*max(1e-3/s.Mpps, 1/s.Mpps-1/b.BareMpps.Value)/n
			}
		}
	}
	return us, best > 0
}

func classes(samples []microbench.Sample) []model.Class {
	var out []model.Class
	for i := range samples {
		for _, a := range samples[i].Program.Accesses {
			if c := classOf(a); !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	return out
}

// sizes lists the command sizes that a class was measured alone with.
func sizes(m *model.Model, samples []microbench.Sample, c model.Class) []int {
	var out []int
	limit := program.MaxBytes
	for _, mem := range m.Memories {
		for _, e := range mem.Engines {
			if mem.Name == c.Memory && e.Mode == c.Mode {
				limit = e.MaxBytes
			}
		}
	}
	for i := range samples {
		p := &samples[i].Program
		if len(p.Accesses) != 1 || len(p.Locks) > 0 {
			continue
		}
		a := p.Accesses[0]
		if classOf(a) == c && a.Bytes <= limit && !slices.Contains(out, a.Bytes) {
			out = append(out, a.Bytes)
		}
	}
	slices.Sort(out)
	return out
}

// costStart reads a command's times from the slopes of its curves at the
// highest intensities: over the default span its front's, over one element its
// line's, over elements of one bank its bank's, beyond the cache its DRAM's.
func (f *resourceFit) costStart(samples []microbench.Sample, c model.Class, bytes int) (cost model.Cost, seen measuredSpans) {
	cost = model.Cost{Class: c, Bytes: bytes}
	var mem *model.Memory
	for i := range f.m.Memories {
		if f.m.Memories[i].Name == c.Memory {
			mem = &f.m.Memories[i]
		}
	}
	spans := map[int64]*spanData{}
	var order []int64
	for i := range samples {
		s := &samples[i]
		p := &s.Program
		if len(p.Accesses) != 1 || len(p.Locks) > 0 || len(p.Stateless) > 0 {
			continue
		}
		a := p.Accesses[0]
		base := f.base(p.Base)
		if classOf(a) != c || a.Bytes != bytes || a.Popularity == "zipf" || a.PerPacket < 1 || s.Cores < base.Cores || s.Threads < base.Threads {
			continue
		}
		t := spans[a.Span]
		if t == nil {
			t = &spanData{}
			spans[a.Span] = t
			order = append(order, a.Span)
		}
		t.add(a, 1/s.Mpps, base)
	}
	slices.Sort(order)
	spread, one, few := 0.0, 0.0, 0.0
	for _, span := range order {
		t := spans[span]
		size := float64(span) * t.stride
		switch {
		case mem.CacheBytes > 0 && size > float64(mem.CacheBytes):
			seen.miss = true
			extra := max(t.us-0.4*t.bare-t.i*spread, t.us/50) / t.draws / (1 - 0.9*float64(mem.CacheBytes)/size)
			cost.Miss.Value = max(cost.Miss.Value, extra)
			cost.MissFront.Value = cost.Miss.Value / 4
		case span == 1:
			seen.line = true
			one = t.slope()
		case size <= float64(mem.BankBytes):
			seen.bank = true
			few = t.slope()
		default:
			spread = t.slope() // the largest resident span comes last
		}
	}
	if spread == 0 {
		spread = max(few, one, 1e-4)
	}
	cost.Front.Value = spread
	const more = 1.1
	if few > more*spread {
		cost.Bank.Value = few
	}
	if one > more*max(spread, few) {
		cost.Line.Value, cost.Same.Value = one, one
	}
	return cost, seen
}

// spanData is what the samples of one span say: the two highest intensities.
type spanData struct {
	i, us         float64 // the highest, with its time a packet
	before, less  float64 // the one before
	bare          float64 // time of the bare base
	draws, stride float64 // elements chosen a packet
}

func (t *spanData) add(a program.Access, us float64, base *model.Base) {
	switch {
	case a.PerPacket > t.i:
		t.before, t.less = t.i, t.us
		t.i, t.us = a.PerPacket, us
		t.bare, t.stride, t.draws = 1/base.BareMpps.Value, float64(a.Stride), a.PerPacket
		if base.PerPacket {
			t.draws = 1
		}
	case a.PerPacket < t.i && a.PerPacket > t.before:
		t.before, t.less = a.PerPacket, us
	}
}

// slope is the time of one more access at the highest intensities.
func (t *spanData) slope() float64 {
	const apart = 0.8
	if t.before > 0 && t.before < apart*t.i && t.us > t.less {
		return (t.us - t.less) / (t.i - t.before)
	}
	return max(t.us-0.4*t.bare, 0.1*t.us) / t.i
}

func classOf(a program.Access) model.Class {
	return model.Class{Memory: a.Memory, Op: a.Op, Mode: a.Mode}
}

func (f *resourceFit) base(name string) *model.Base {
	for i := range f.m.Bases {
		if f.m.Bases[i].Name == name {
			return &f.m.Bases[i]
		}
	}
	return &f.m.Bases[0]
}

// use sets the samples to fit to.
func (f *resourceFit) use(samples []microbench.Sample, r *Report) error {
	f.samples, f.logs, f.sigma, f.touched = nil, nil, nil, nil
	for i := range samples {
		s := &samples[i]
		if s.Traffic.RateMpps > 0 {
			continue // shows the offered rate, not the board's
		}
		switch _, err := f.predict(s); {
		case err == nil:
		case native(f.m): // what a part of it costs was too noisy to measure
			r.note("rule %s: left out %s: %v", f.rule, name(s), err)
			continue
		default:
			return fmt.Errorf("sample %s: %w", name(s), err)
		}
		f.samples = append(f.samples, s)
		f.logs = append(f.logs, math.Log(s.Mpps))
		sd := 0.0
		if s.Low > 0 && s.High > s.Low {
			sd = (s.High - s.Low) / (2 * 1.96 * s.Mpps)
		}
		f.sigma = append(f.sigma, sd)
		f.touched = append(f.touched, f.touches(s))
	}
	return nil
}

func (f *resourceFit) predict(s *microbench.Sample) (float64, error) {
	p, err := f.m.Predict(s.Program, s.Traffic, model.Options{Cores: s.Cores, Threads: s.Threads, Rule: f.rule, Brief: true})
	return p.Mpps, err
}

// touchesResources lists the parameters that a sample's prediction may depend on.
func (f *resourceFit) touchesResources(s *microbench.Sample) []int {
	var out []int
	add := func(v *model.Value) {
		if i, ok := f.at[v]; ok && !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	m, q := f.m, &f.m.Queueing
	base := f.base(s.Program.Base)
	add(&base.CoreUS)
	add(&base.IOMpps)
	for i := range base.Demand {
		add(&base.Demand[i].US)
	}
	for i := range m.Stateless {
		if s.Program.Stateless[m.Stateless[i].Kind] > 0 {
			add(&m.Stateless[i].US)
		}
	}
	add(&q.CoreWait)
	add(&q.Wait)
	add(&q.IOWait)
	add(&base.WaitUS)
	access := func(a *program.Access) {
		add(&base.AccessUS)
		add(&q.Depth)
		for i := range q.Latency {
			if q.Latency[i].Memory == a.Memory {
				add(&q.Latency[i].US)
				add(&q.Latency[i].MissUS)
			}
		}
		for i := range m.Costs {
			if c := &m.Costs[i]; c.Class == classOf(*a) && f.near(c, a.Bytes) {
				for _, v := range times(c) {
					add(v)
					if t, ok := f.ties[v]; ok {
						add(t.lo)
						add(t.hi)
					}
				}
			}
		}
	}
	for i := range s.Program.Accesses {
		access(&s.Program.Accesses[i])
	}
	for i := range s.Program.Locks {
		l := &s.Program.Locks[i]
		word := program.Access{Memory: q.LockMemory, Op: program.Write, Mode: program.Atomic, Bytes: 4}
		access(&word)
		add(&base.LockUS)
		add(&q.TestUS)
		add(&q.SpinUS)
		add(&q.TurnUS)
		for j := range m.Locks {
			if m.Locks[j].Idiom == l.Idiom {
				add(&m.Locks[j].HoldUS)
			}
		}
		for j := range l.Section {
			access(&l.Section[j])
		}
	}
	return out
}

// near says whether a cost takes part in an access of n bytes: its size or a
// neighbour's, of the whole or of the last command.
func (f *resourceFit) near(c *model.Cost, n int) bool {
	lo, hi, limit := 0, math.MaxInt, 0
	for i := range f.m.Costs {
		if o := &f.m.Costs[i]; o.Class == c.Class {
			limit = max(limit, o.Bytes)
		}
	}
	last := n % limit
	for _, bytes := range []int{min(n, limit), last} {
		if bytes == 0 {
			continue
		}
		lo, hi = 0, math.MaxInt
		for i := range f.m.Costs {
			if o := &f.m.Costs[i]; o.Class == c.Class {
				if o.Bytes <= bytes {
					lo = max(lo, o.Bytes)
				}
				if o.Bytes >= bytes {
					hi = min(hi, o.Bytes)
				}
			}
		}
		if c.Bytes == lo || c.Bytes == hi {
			return true
		}
	}
	return false
}

// set writes parameters, given relative to their starts, into the model.
func (f *resourceFit) set(p []float64) {
	for i, x := range p {
		f.params[i].v.Value = x * f.params[i].start
		f.follow(f.params[i].v)
	}
}

// solve fits and leaves the best parameters in the model and as new starts.
func (f *resourceFit) solve(iterations int) (lm.Solution, error) {
	n, k := len(f.samples), len(f.params)
	problem := lm.Problem{Points: n + k, Params: k, Lower: make([]float64, k), Upper: make([]float64, k), Sigma: make([]float64, n+k)}
	start := make([]float64, k)
	if f.prune {
		f.dropIdle()
	}
	copy(problem.Sigma, f.sigma)
	for i, p := range f.params {
		start[i] = p.v.Value / p.start
		problem.Lower[i], problem.Upper[i] = p.lower, p.upper
	}
	var failed error
	residual := func(i int) float64 {
		mpps, err := f.predict(f.samples[i])
		if err != nil && failed == nil {
			failed = fmt.Errorf("sample %s: %w", name(f.samples[i]), err)
		}
		return f.logs[i] - math.Log(mpps)
	}
	problem.Residuals = func(p, r []float64) {
		f.set(p)
		for i := range f.samples {
			r[i] = residual(i)
		}
		for i, x := range p {
			r[n+i] = f.scale * math.Log(x) / f.params[i].prior
		}
	}
	problem.Jacobian = func(p, jac []float64) {
		clear(jac)
		f.set(p)
		for i := range f.samples {
			here := 0.0
			if f.oneSided {
				here = residual(i)
			}
			for _, j := range f.touched[i] {
				const h = 1e-4
				v := f.params[j].v
				at := v.Value
				v.Value = at * (1 + h)
				f.follow(v)
				up := residual(i)
				if f.oneSided {
					v.Value = at
					f.follow(v)
					jac[i*k+j] = (up - here) / (h * p[j])
					continue
				}
				v.Value = at * (1 - h)
				f.follow(v)
				down := residual(i)
				v.Value = at
				f.follow(v)
				jac[i*k+j] = (up - down) / (2 * h * p[j])
			}
		}
		for j, x := range p {
			jac[(n+j)*k+j] = f.scale / (f.params[j].prior * x)
		}
	}
	s, err := lm.Solve(problem, [][]float64{start}, lm.Options{Loss: lm.Huber, Scale: f.scale, Iterations: iterations})
	if err == nil {
		err = failed
	}
	if err != nil {
		return s, fmt.Errorf("fitting resource times: %w", err)
	}
	f.set(s.P)
	return s, nil
}

// refine tries every parameter, the others as they are, at other values and at
// its start, and keeps what lowers the loss of the samples that it touches.
// Under a maximum the loss has one local minimum a resource.
func (f *resourceFit) refine() {
	users := make([][]int, len(f.params))
	for i, ps := range f.touched {
		for _, j := range ps {
			users[j] = append(users[j], i)
		}
	}
	for range 2 {
		for i := range f.m.Costs {
			f.choose(&f.m.Costs[i], users) // of the rule resources alone
		}
		for j, p := range f.params {
			if len(users[j]) > len(f.samples)/4 {
				continue // of all samples: the solver sees it well
			}
			best := f.loss(users[j])
			at := p.v.Value
			for _, x := range []float64{p.start, 0.3 * at, 0.6 * at, 0.85 * at, 0.95 * at, 1.05 * at, 1.15 * at, 1.6 * at, 3 * at} {
				old := p.v.Value
				p.v.Value = min(max(x, p.lower*p.start), p.upper*p.start)
				f.follow(p.v)
				if loss := f.loss(users[j]); loss < best {
					best = loss
				} else {
					p.v.Value = old
					f.follow(p.v)
				}
			}
		}
	}
}

// choose tries a command's times as they started, with and without its bank,
// its line and its time after the same line: what one curve shows may come from
// each of them.
func (f *resourceFit) choose(c *model.Cost, users [][]int) {
	front, known := f.at[&c.Front]
	if !known {
		return
	}
	samples := users[front]
	best := f.loss(samples)
	keep := *c
	put := func(x model.Cost) {
		*c = x
		for _, v := range times(c) {
			f.follow(v)
		}
	}
	optional := []*model.Value{&c.Bank, &c.Line, &c.Same}
	for mask := range 1 << len(optional) {
		for _, x := range []float64{0, 0.6, 1, 1.4, 1.8} {
			put(keep)
			if x > 0 {
				c.Front.Value = x * f.params[front].start
			}
			for k, v := range optional {
				if j, ok := f.at[v]; ok {
					v.Value = f.params[j].start
					if mask&(1<<k) == 0 {
						v.Value *= off
					}
					f.follow(v)
				}
			}
			if loss := f.loss(samples); loss < best {
				best, keep = loss, *c
			}
		}
	}
	put(keep)
}

// loss is Huber's over some samples, without priors.
func (f *resourceFit) loss(samples []int) float64 {
	const k = 1.345
	sum := 0.0
	for _, i := range samples {
		mpps, err := f.predict(f.samples[i])
		if err != nil {
			return math.Inf(1)
		}
		z := math.Abs(f.logs[i]-math.Log(mpps)) / math.Hypot(f.scale, f.sigma[i])
		if z > k {
			sum += k * (z - k/2)
		} else {
			sum += z * z / 2
		}
	}
	return sum
}

// intervals sets the 95 % intervals. A number whose interval is as wide as the
// prior was not seen by the data.
func (f *resourceFit) intervals(s lm.Solution) {
	t := stats.TQuantile(s.DF)
	for i, p := range f.params {
		half := t * s.SE[i] * p.start
		switch {
		case s.AtBound[i]:
			p.v.Note = "not identified: the fit ran to the bound of this number"
		case !(half < p.v.Value):
			p.v.Note = "not identified: its interval is wider than its value"
		default:
			p.v.Identified = true
			p.v.Low, p.v.High = p.v.Value-half, p.v.Value+half
		}
	}
}
