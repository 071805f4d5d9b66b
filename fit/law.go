package fit

import (
	"cmp"
	"math"
	"slices"

	"nicprof/board"
	"nicprof/microbench"
	"nicprof/model"
	"nicprof/program"
)

// pageBytes is the page that a native measurement gets without huge pages.
const pageBytes = 4096

const (
	// nativeScale is the residual scale of samples of a real machine, about what
	// measuring one again at another time shows.
	nativeScale = 0.1
	// coarseScale is that of the first fit, from starts that may be off by a
	// factor: what is far off is no outlier yet, but what has to be explained.
	coarseScale = 0.5
)

// newLawFit sets up the fit of the rule cores: a first guess of everything from
// the samples that show it best.
func newLawFit(m *model.Model, b *board.Board, samples []microbench.Sample) *resourceFit {
	f := newFit(m, model.RuleCores)
	law := &model.CoreLaw{LockMemory: m.Queueing.LockMemory, Apart: native(m)}
	m.CoreLaw = law
	if b != nil {
		law.LockStride = int64(b.Locks.WordStride.Value)
	}
	for _, mem := range m.Memories {
		if mem.SharedBy > 1 && float64(mem.SharedBy) < coresOf(m) {
			law.Tile = mem.SharedBy
		}
	}
	f.touches, f.prune, f.oneSided, f.patience = f.touchesLaw, true, true, 12
	if native(m) {
		f.scale, f.coarse = nativeScale, coarseScale
	}
	g := lawStarts{resourceFit: f, law: law, samples: samples}
	g.bases()
	for _, k := range program.Kinds {
		if us, ok := g.stateless(k); ok {
			law.Stateless = append(law.Stateless, model.KindCost{Kind: k, US: model.Value{Value: us}})
		}
	}
	g.access()
	g.atomics()
	g.caches()
	g.stolen()
	g.locks(b)
	// the numbers lie in slices that are complete now
	for i := range law.Bases {
		f.restart(&law.Bases[i].CoreUS, weakPrior, 50)
		if law.Bases[i].IOMpps.Value > 0 {
			f.restart(&law.Bases[i].IOMpps, firmPrior, 50)
		}
	}
	for i := range law.Bases {
		f.restart(&law.Bases[i].Lines, weakPrior, 50)
	}
	for i := range law.Again {
		f.restart(&law.Again[i].Share, weakPrior, 2)
	}
	f.start(&law.DrawUS, 0.002, weakPrior)
	f.start(&law.DrawLines, 64, weakPrior)
	for i := range law.Stateless {
		f.restart(&law.Stateless[i].US, weakPrior, 50)
	}
	for i := range law.Access {
		f.restart(&law.Access[i].US, weakPrior, 50)
	}
	if native(m) {
		// a guess: some ten instructions and a call through a pointer
		const first = 0.004
		f.start(&law.AheadUS, first, weakPrior)
		for i := range law.Stateless {
			f.start(&law.Stateless[i].FirstUS, first, weakPrior)
		}
		for i := range law.Access {
			f.start(&law.Access[i].FirstUS, first, weakPrior)
		}
	}
	for i := range law.Caches {
		c := &law.Caches[i]
		f.restart(&c.Bytes, firmPrior, 3)
		f.params[len(f.params)-1].lower = 0.3
		for k := range c.Miss {
			f.restart(&c.Miss[k].US, weakPrior, 50)
		}
		if c.Behind != "" {
			f.restart(&c.SharedUS, weakPrior, 50)
			f.restart(&c.WrittenUS, weakPrior, 50)
		}
	}
	if native(m) {
		f.overlaps()
	} else {
		law.Window.Value = 1 // until it is found
	}
	for _, ts := range [][]model.OpTime{law.Stolen, law.Fresh, law.Line} {
		for i := range ts {
			f.restart(&ts[i].US, weakPrior, 50)
		}
	}
	for i := range law.Kept {
		f.restart(&law.Kept[i].Share, weakPrior, 1/law.Kept[i].Share.Value)
	}
	f.start(&law.Near, 0.5, weakPrior)
	f.params[len(f.params)-1].upper = 4
	f.start(&law.Wait, 0.5, weakPrior)
	f.params[len(f.params)-1].upper = 2
	if len(law.Locks) > 0 {
		f.start(&law.Early, 0.5, weakPrior)
		f.params[len(f.params)-1].upper = 2
	}
	for i := range law.Locks {
		f.restart(&law.Locks[i].TakeUS, weakPrior, 50)
		f.restart(&law.Locks[i].MoveUS, weakPrior, 50)
		f.restart(&law.Locks[i].HandUS, weakPrior, 50)
		f.restart(&law.Locks[i].BackUS, weakPrior, 50)
		f.restart(&law.Locks[i].CrowdUS, weakPrior, 50)
		if law.Locks[i].PauseUS.Value > 0 {
			f.restart(&law.Locks[i].PauseUS, firmPrior, 10)
		}
	}
	f.index()
	return f
}

// overlaps starts what tells how an out-of-order core overlaps work and misses.
func (f *resourceFit) overlaps() {
	law := f.m.CoreLaw
	for i := range law.Serial {
		f.restart(&law.Serial[i].Share, weakPrior, 2)
	}
	for i := range law.Caches {
		f.restart(&law.Caches[i].TailUS, weakPrior, 50)
	}
	f.start(&law.NextLine, 0.5, weakPrior)
	f.params[len(f.params)-1].upper = 4
	f.start(&law.StolenTailUS, 0.02, weakPrior)
	f.start(&law.Posted, 0.5, weakPrior)
	f.params[len(f.params)-1].upper = 5
	f.start(&law.Drained, 0.3, weakPrior)
	f.params[len(f.params)-1].upper = 1 / 0.3
	f.start(&law.Split, 0.7, weakPrior)
	f.params[len(f.params)-1].upper = 1 / 0.7
	f.start(&law.Shadow, 0.3, weakPrior)
	f.params[len(f.params)-1].upper = 1 / 0.3
	f.start(&law.Overlap, 0.5, weakPrior)
	f.params[len(f.params)-1].upper = 2
}

// window finds how many lines a core waits for at the same time, which is no smooth
// number, from single accesses to arrays of many elements: the one that explains them
// best.
func (f *resourceFit) window(samples []microbench.Sample, r *Report) error {
	var single []microbench.Sample
	for _, s := range samples {
		if p := &s.Program; len(p.Locks) == 0 && len(p.Stateless) == 0 && len(p.Accesses) == 1 &&
			p.Accesses[0].Span > fewElements && p.Accesses[0].Popularity != "zipf" {
			single = append(single, s)
		}
	}
	if err := f.use(single, r); err != nil {
		return err
	}
	all := make([]int, len(f.samples))
	for i := range all {
		all[i] = i
	}
	w := &f.m.CoreLaw.Window
	starts, best, found := f.values(), math.Inf(1), 1.0
	const most = 12
	for w.Value = 1; w.Value <= most; w.Value++ {
		f.put(starts)
		if _, err := f.solve(6); err != nil {
			return err
		}
		if loss := f.loss(all); loss < best {
			best, found = loss, w.Value
		}
	}
	w.Value = found
	f.put(starts)
	return nil
}

func (f *resourceFit) values() []float64 {
	out := make([]float64, len(f.params))
	for i, p := range f.params {
		out[i] = p.v.Value
	}
	return out
}

func (f *resourceFit) put(values []float64) {
	for i, p := range f.params {
		p.v.Value = values[i]
	}
}

// coresOf is the number of cores that the largest base uses.
func coresOf(m *model.Model) float64 {
	most := 0
	for i := range m.Bases {
		most = max(most, m.Bases[i].Cores)
	}
	return float64(most)
}

// native says whether samples were measured on real cores.
func native(m *model.Model) bool {
	return slices.Contains(m.Backends, microbench.Native) || slices.Contains(m.Backends, microbench.Remote)
}

// ownCaches tries whether the cores have a last cache each, though the machine
// says that they share one: of a guest whose processors lie on several core
// complexes no table tells. It keeps what fits better.
func (f *resourceFit) ownCaches() error {
	law := f.m.CoreLaw
	at := -1
	for i := range law.Caches {
		if law.Caches[i].Cores != 1 && law.Caches[i].LineBytes < pageBytes {
			at = i
		}
	}
	if at < 0 || !native(f.m) {
		return nil
	}
	shared, all := law.Caches[at].Cores, make([]int, len(f.samples))
	for i := range all {
		all[i] = i
	}
	before := f.loss(all)
	keep := f.values()
	law.Caches[at].Cores = 1
	if _, err := f.solve(15); err != nil {
		return err
	}
	if f.loss(all) < before {
		return nil
	}
	law.Caches[at].Cores = shared
	f.put(keep)
	return nil
}

// restart makes a value a parameter that starts at what it is.
func (f *resourceFit) restart(v *model.Value, prior, upper float64) {
	f.start(v, v.Value, prior)
	f.params[len(f.params)-1].upper = upper
}

// lawStarts reads first guesses off samples.
type lawStarts struct {
	*resourceFit
	law     *model.CoreLaw
	samples []microbench.Sample
}

// perPacket is the core time of a packet of a sample, waits included.
func perPacket(s *microbench.Sample) float64 { return float64(s.Cores) / s.Mpps }

// fewest calls get with the samples on the fewest cores among those that
// want takes, and says whether there are any.
func (g *lawStarts) fewest(want func(s *microbench.Sample) bool) (best []*microbench.Sample) {
	for i := range g.samples {
		s := &g.samples[i]
		if !want(s) {
			continue
		}
		switch {
		case len(best) == 0 || s.Cores == best[0].Cores:
			best = append(best, s)
		case s.Cores < best[0].Cores:
			best = append(best[:0], s)
		}
	}
	return best
}

func (g *lawStarts) bases() {
	for i := range g.m.Bases {
		base := &g.m.Bases[i]
		x := model.LawBase{Name: base.Name, Lines: model.Value{Value: 64}}
		few := g.fewest(func(s *microbench.Sample) bool { return s.Program.Base == base.Name && bare(s) })
		if len(few) == 0 {
			x.CoreUS.Value = float64(base.Cores) / base.BareMpps.Value
		} else {
			x.CoreUS.Value = perPacket(few[0])
			const linear = 0.97 // of the rate that the cores would have together
			if all := float64(base.Cores) / x.CoreUS.Value; base.BareMpps.Value < linear*all {
				x.IOMpps.Value = 1.001 * base.BareMpps.Value
			}
		}
		g.law.Bases = append(g.law.Bases, x)
	}
}

func (g *lawStarts) core(base string) float64 {
	for i := range g.law.Bases {
		if g.law.Bases[i].Name == base {
			return g.law.Bases[i].CoreUS.Value
		}
	}
	return 0
}

func (g *lawStarts) stateless(kind string) (float64, bool) {
	most, us := 0.0, 0.0
	for i := range g.samples {
		s := &g.samples[i]
		n := s.Program.Stateless[kind]
		if n > most && len(s.Program.Stateless) == 1 && len(s.Program.Accesses) == 0 && len(s.Program.Locks) == 0 {
			most, us = n, max(perPacket(s)-g.core(s.Program.Base), 0.001*perPacket(s))/n
		}
	}
	return us, most > 0
}

// alone returns the samples of one uniform access on the fewest cores.
func (g *lawStarts) alone(want func(s *microbench.Sample, a *program.Access) bool) []*microbench.Sample {
	return g.fewest(func(s *microbench.Sample) bool {
		p := &s.Program
		return len(p.Accesses) == 1 && len(p.Locks) == 0 && len(p.Stateless) == 0 && p.Accesses[0].Popularity != "zipf" &&
			p.Accesses[0].PerPacket >= 1 && want(s, &p.Accesses[0])
	})
}

// each is the time of one access of such a sample.
func (g *lawStarts) each(s *microbench.Sample) float64 {
	us := perPacket(s)
	return max(us-g.core(s.Program.Base), 0.01*us) / s.Program.Accesses[0].PerPacket
}

// median of the times of one access over samples.
func (g *lawStarts) median(ss []*microbench.Sample) float64 {
	var us []float64
	for _, s := range ss {
		us = append(us, g.each(s))
	}
	slices.Sort(us)
	return us[len(us)/2]
}

// access takes each size's time from the first level, or where nothing was
// measured there, from the fastest.
func (g *lawStarts) access() {
	type kind struct {
		op    program.Op
		mode  program.Mode
		bytes int
	}
	first := g.m.Memories[0].Name
	var seen []kind
	for i := range g.samples {
		for _, a := range g.samples[i].Program.Accesses {
			k := kind{a.Op, a.Mode, a.Bytes}
			if a.Mode == program.Atomic && a.Bytes > g.command(&a) || slices.Contains(seen, k) || g.samples[i].Group == microbench.GroupMix {
				continue
			}
			seen = append(seen, k)
			of := func(memory string) []*microbench.Sample {
				return g.alone(func(_ *microbench.Sample, b *program.Access) bool {
					return b.Op == k.op && b.Mode == k.mode && b.Bytes == k.bytes && (memory == "" || b.Memory == memory) && b.Span > 1
				})
			}
			ss := of(first)
			if len(ss) == 0 {
				ss = of("")
			}
			if len(ss) > 0 {
				g.law.Access = append(g.law.Access, model.AccessCost{Op: k.op, Mode: k.mode, Bytes: k.bytes, US: model.Value{Value: g.median(ss)}})
			}
		}
	}
	slices.SortFunc(g.law.Access, func(a, b model.AccessCost) int {
		return cmp.Or(cmp.Compare(a.Mode, b.Mode), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Bytes, b.Bytes))
	})
}

// atomics starts atomic operations, where they may overlap, half way between that and
// not, and their further commands a little cheaper than the first.
func (g *lawStarts) atomics() {
	for _, o := range g.ops() {
		if o.Mode != program.Atomic {
			continue
		}
		if native(g.m) {
			g.law.Serial = append(g.law.Serial, model.OpShare{Op: o.Op, Mode: o.Mode, Share: model.Value{Value: 0.5}})
		}
		g.law.Again = append(g.law.Again, model.OpShare{Op: o.Op, Mode: o.Mode, Share: model.Value{Value: 0.8}})
	}
}

// command is the largest command of an access's engine.
func (f *resourceFit) command(a *program.Access) int {
	for _, mem := range f.m.Memories {
		for _, e := range mem.Engines {
			if mem.Name == a.Memory && e.Mode == a.Mode {
				return e.MaxBytes
			}
		}
	}
	return program.MaxBytes
}

// ops lists the operations and modes that were measured.
func (g *lawStarts) ops() []model.OpTime {
	var out []model.OpTime
	for _, a := range g.law.Access {
		if !slices.ContainsFunc(out, func(o model.OpTime) bool { return o.Op == a.Op && o.Mode == a.Mode }) {
			out = append(out, model.OpTime{Op: a.Op, Mode: a.Mode})
		}
	}
	return out
}

// caches are the board's memories but the last, and, measured natively, a
// translation buffer of pages. What missing one costs is the difference between
// the memories around it.
func (g *lawStarts) caches() {
	all := g.m.Memories
	at := func(memory string, o model.OpTime) (float64, bool) {
		ss := g.alone(func(_ *microbench.Sample, a *program.Access) bool {
			return a.Memory == memory && a.Op == o.Op && a.Mode == o.Mode && a.Span > 64
		})
		if len(ss) == 0 {
			return 0, false
		}
		return g.median(ss), true
	}
	for i := range len(all) - 1 {
		mem, next := &all[i], &all[i+1]
		c := model.Cache{Name: mem.Name, Bytes: model.Value{Value: float64(mem.Bytes)}, LineBytes: mem.LineBytes, Cores: mem.SharedBy}
		for _, o := range g.ops() {
			here, ok := at(mem.Name, o)
			there, known := at(next.Name, o)
			if !ok || !known {
				continue
			}
			o.US.Value = max(there-here, 0.05*there)
			c.Miss = append(c.Miss, o)
			if native(g.m) {
				c.TailUS.Value = max(c.TailUS.Value, o.US.Value)
			}
		}
		if next.SharedBy == 0 || next.SharedBy > mem.SharedBy || i == len(all)-2 {
			c.Behind = next.Name
			c.SharedUS.Value, c.WrittenUS.Value = g.shared(next.Name, program.Read), g.shared(next.Name, program.Write)
		}
		g.law.Caches = append(g.law.Caches, c)
	}
	if !native(g.m) {
		return
	}
	const reach = 8 << 20 // of a second-level translation buffer of 2048 pages
	c := model.Cache{Name: "tlb", Bytes: model.Value{Value: reach}, LineBytes: pageBytes, Cores: 1}
	last := all[len(all)-1].Name
	for _, o := range g.ops() {
		if us, ok := at(last, o); ok {
			o.US.Value = 0.2 * us
			c.Miss = append(c.Miss, o)
			c.TailUS.Value = max(c.TailUS.Value, o.US.Value)
		}
	}
	g.law.Caches = append(g.law.Caches, c)
}

// shared guesses the time of a line at a shared level from the fastest rate on
// it: its whole where the cores' rates do not add up, else a third.
func (g *lawStarts) shared(memory string, op program.Op) float64 {
	lines := 0.0
	for i := range g.samples {
		s := &g.samples[i]
		if p := &s.Program; len(p.Accesses) == 1 && len(p.Locks) == 0 && p.Accesses[0].Memory == memory && (p.Accesses[0].Op == program.Read) == (op == program.Read) {
			a := &p.Accesses[0]
			lines = max(lines, s.Mpps*a.PerPacket*math.Ceil(float64(a.Bytes)/64))
		}
	}
	if lines == 0 {
		return 1e-3
	}
	return 0.5 / lines
}

// stolen guesses the price of lines that cores take from each other from what all
// cores pay beyond one, on few elements that all of them change: on several, where
// accesses seldom meet, of an access, and on one also of a packet that keeps the
// line for all of its accesses.
func (g *lawStarts) stolen() {
	for _, o := range g.ops() {
		if o.Op == program.Read {
			o.US.Value = 0.02
			g.law.Stolen = append(g.law.Stolen, o)
			continue
		}
		few := g.beyondOne(o, func(span int64) bool { return span > 1 && span <= fewElements })
		one := g.beyondOne(o, func(span int64) bool { return span == 1 })
		line, kept := o, model.OpShare{Op: o.Op, Mode: o.Mode, Share: model.Value{Value: 0.5}}
		o.US.Value, line.US.Value = 0.02, 0.02
		if n := len(few); n > 0 {
			o.US.Value = max(few[n-1].us/few[n-1].n, 1e-3)
		}
		if n := len(one); n > 0 {
			least, most := one[0], one[n-1]
			if more := most.n - least.n; more > 0 {
				each := (most.us - least.us) / more
				kept.Share.Value = min(0.95, max(0.05, 1-each/max(o.US.Value, least.us/least.n)))
			}
			// the line is no bottleneck for sure: cores wait for each other, too
			line.US.Value = 0.5 * least.all / (1 + (least.n-1)*(1-kept.Share.Value))
		}
		g.law.Stolen, g.law.Line, g.law.Kept = append(g.law.Stolen, o), append(g.law.Line, line), append(g.law.Kept, kept)
		if native(g.m) {
			g.law.Fresh = append(g.law.Fresh, o)
		}
	}
}

// fewElements are so few that all cores keep the lines of them in their first caches.
const fewElements = 64

// paid is what all cores pay for accesses beyond what one core pays.
type paid struct {
	n   float64 // accesses a packet
	us  float64 // of a packet on its core, if another core had all lines
	all float64 // of a packet on all cores together
}

// beyondOne compares single accesses to an array that all cores
// share with the same on one core, by accesses a packet.
func (g *lawStarts) beyondOne(o model.OpTime, span func(int64) bool) (out []paid) {
	for i := range g.samples {
		s := &g.samples[i]
		p := &s.Program
		if len(p.Accesses) != 1 || len(p.Locks) > 0 || len(p.Stateless) > 0 || s.Cores < 2 || p.Accesses[0].Popularity == "zipf" {
			continue
		}
		a := &p.Accesses[0]
		if a.Op != o.Op || a.Mode != o.Mode || a.Bytes > g.command(a) || a.PerPacket < 1 || !span(a.Span) || !g.sharedArray(a) {
			continue
		}
		for k := range g.samples {
			one := &g.samples[k]
			if one.Cores == 1 && one.Program.Base == p.Base && len(one.Program.Accesses) == 1 && len(one.Program.Locks) == 0 && len(one.Program.Stateless) == 0 && one.Program.Accesses[0] == *a {
				others := float64(s.Cores-1) / float64(s.Cores)
				out = append(out, paid{a.PerPacket, (perPacket(s) - perPacket(one)) / others, 1 / s.Mpps})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b paid) int { return cmp.Compare(a.n, b.n) })
	return out
}
func (f *resourceFit) sharedArray(a *program.Access) bool {
	for _, mem := range f.m.Memories {
		if mem.Name == a.Memory {
			return mem.SharedBy != 1
		}
	}
	return false
}

// locks guesses what an idiom costs from one core, and its handing over from one
// element that all cores want.
func (g *lawStarts) locks(b *board.Board) {
	var idioms []program.Idiom
	for i := range g.samples {
		for _, l := range g.samples[i].Program.Locks {
			if l.Idiom != program.None && !slices.Contains(idioms, l.Idiom) {
				idioms = append(idioms, l.Idiom)
			}
		}
	}
	for _, idiom := range idioms {
		c := model.LockCost{Idiom: idiom}
		of := func(one bool) (us float64, ok bool) {
			n := 0
			for i := range g.samples {
				s := &g.samples[i]
				p := &s.Program
				if len(p.Locks) == 1 && p.Locks[0].Idiom == idiom && len(p.Locks[0].Section) == 0 && len(p.Accesses) == 0 && len(p.Stateless) == 0 &&
					(s.Cores == 1) == one && p.Locks[0].Elements == 1 {
					t := 1 / s.Mpps
					if one {
						t = max(t-g.core(p.Base), 0.01*t)
					}
					us += t
					n++
				}
			}
			return us / float64(max(n, 1)), n > 0
		}
		var ok bool
		if c.TakeUS.Value, ok = of(true); !ok {
			c.TakeUS.Value = 0.02
		}
		c.MoveUS.Value, c.HandUS.Value = 0.05, c.TakeUS.Value
		c.BackUS.Value = 0.02
		if contended, ok := of(false); ok {
			c.HandUS.Value = max(contended-c.TakeUS.Value, 0.1*contended)
		}
		c.CrowdUS.Value = 0.1 * c.HandUS.Value
		if cycles := float64(idiom.Sleep()); cycles > 0 {
			mhz := 2000.0 // where the board's clock is not known
			if b != nil && b.ClockMHz.Value > 0 {
				mhz = b.ClockMHz.Value
			}
			c.PauseUS.Value = cycles / mhz
		}
		g.law.Locks = append(g.law.Locks, c)
	}
}

// touchesLaw lists the parameters that a sample's prediction may depend on.
func (f *resourceFit) touchesLaw(s *microbench.Sample) []int {
	var out []int
	add := func(v *model.Value) {
		if i, ok := f.at[v]; ok && !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	law := f.m.CoreLaw
	for i := range law.Bases {
		if law.Bases[i].Name == s.Program.Base {
			add(&law.Bases[i].CoreUS)
			add(&law.Bases[i].IOMpps)
			add(&law.Bases[i].Lines)
		}
	}
	for i := range law.Stateless {
		if s.Program.Stateless[law.Stateless[i].Kind] > 0 {
			add(&law.Stateless[i].US)
			add(&law.Stateless[i].FirstUS)
			add(&law.AheadUS)
		}
	}
	access := func(a *program.Access) {
		for i := range law.Access {
			if c := &law.Access[i]; c.Op == a.Op && c.Mode == a.Mode && f.nearSize(c, a) {
				add(&c.US)
				add(&c.FirstUS)
			}
		}
		ops := func(ts []model.OpTime) {
			for i := range ts {
				if ts[i].Op == a.Op && ts[i].Mode == a.Mode {
					add(&ts[i].US)
				}
			}
		}
		for i := range law.Caches {
			c := &law.Caches[i]
			add(&c.Bytes)
			add(&c.SharedUS)
			add(&c.WrittenUS)
			add(&c.TailUS)
			ops(c.Miss)
		}
		shares := func(ss []model.OpShare) {
			for i := range ss {
				if ss[i].Op == a.Op && ss[i].Mode == a.Mode {
					add(&ss[i].Share)
				}
			}
		}
		shares(law.Serial)
		shares(law.Again)
		shares(law.Kept)
		if a.Popularity == "zipf" {
			add(&law.DrawUS)
			add(&law.DrawLines)
		}
		ops(law.Stolen)
		ops(law.Fresh)
		ops(law.Line)
		add(&law.NextLine)
		add(&law.StolenTailUS)
		add(&law.Posted)
		add(&law.Drained)
		add(&law.Split)
		add(&law.Shadow)
		add(&law.Near)
		add(&law.Overlap)
		add(&law.Wait)
	}
	for i := range s.Program.Accesses {
		access(&s.Program.Accesses[i])
	}
	for i := range s.Program.Locks {
		l := &s.Program.Locks[i]
		if l.Idiom == program.None {
			continue
		}
		for k := range law.Locks {
			if c := &law.Locks[k]; c.Idiom == l.Idiom {
				add(&c.TakeUS)
				add(&c.MoveUS)
				add(&c.HandUS)
				add(&c.BackUS)
				add(&law.Early)
				add(&c.CrowdUS)
				add(&c.PauseUS)
			}
		}
		word := program.Access{Memory: law.LockMemory, Op: program.Write, Mode: program.Atomic, Bytes: 4}
		access(&word)
		for k := range l.Section {
			access(&l.Section[k])
		}
	}
	return out
}

// nearSize says whether a size takes part in the time of an access: it, or a
// neighbour, of the whole or of the last command.
func (f *resourceFit) nearSize(c *model.AccessCost, a *program.Access) bool {
	want := []int{a.Bytes}
	if command := f.command(a); a.Mode == program.Atomic && a.Bytes > command {
		want = []int{command, a.Bytes % command}
	}
	for _, n := range want {
		lo, hi := 0, math.MaxInt
		for _, o := range f.m.CoreLaw.Access {
			if o.Op == c.Op && o.Mode == c.Mode {
				if o.Bytes <= n {
					lo = max(lo, o.Bytes)
				}
				if o.Bytes >= n {
					hi = min(hi, o.Bytes)
				}
			}
		}
		if n > 0 && (c.Bytes == lo || c.Bytes == hi) {
			return true
		}
	}
	return false
}
