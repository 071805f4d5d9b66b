package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"nicprof/internal/fault"
	"nicprof/program"
	"nicprof/traffic"
)

// CoreLaw is what the rule cores knows of a board whose cores run a packet to
// completion: what a core spends on the parts of a packet, which accesses miss
// which cache, and what all cores share. Times are in µs.
type CoreLaw struct {
	Bases     []LawBase    `json:"bases"`
	Stateless []KindCost   `json:"stateless"`
	Access    []AccessCost `json:"access"`
	Caches    []Cache      `json:"caches"` // from the core on
	// NextLine is the share of a miss that each further line of one access costs.
	NextLine Value `json:"next_line"`
	// Overlap is the share of the smaller of work and misses that a core does at
	// the same time as the larger: 0 their sum counts, 1 their maximum. Of atomic
	// accesses Serial is the share that overlaps with nothing.
	Overlap Value     `json:"overlap"`
	Serial  []OpShare `json:"serial"`
	// AheadUS is how much of the base's work is done beside a chain of stateless
	// operations, each of which waits for the one before.
	AheadUS Value `json:"ahead_us"`
	// Again is the share of a command's time that each further command of an
	// atomic access costs.
	Again []OpShare `json:"again"`
	// DrawUS is what it costs to draw a Zipf element beyond a uniform one, and
	// DrawLines the cache lines of the table that it takes.
	DrawUS    Value `json:"zipf_us"`
	DrawLines Value `json:"zipf_lines"`
	// Stolen is what an access to a line that another core has changed costs in
	// place of a hit; Line is the time in which such a line serves nobody else.
	// Between the Tile cores that share a cache and an array both take Near times
	// as long.
	Stolen []OpTime `json:"stolen"`
	Line   []OpTime `json:"line"`
	Near   Value    `json:"near"`
	// Kept is the share of a packet's further accesses to such a line that find it
	// still there if no other core hits it by chance in between; else each of them may
	// have to fetch it anew.
	Kept []OpShare `json:"kept,omitempty"`
	// Fresh is what such an access costs in place of Stolen if the line still lies in
	// the other core's first cache: these lines come one by one, so that a core waits
	// for each and not for the last of several.
	Fresh []OpTime `json:"fresh,omitempty"`
	Tile  int      `json:"tile_cores,omitempty"`
	// StolenTailUS is what a run of accesses waits in the end if another core had
	// a line of them, as a cache's TailUS; a plain write, which a core does not wait
	// for, counts Posted times.
	StolenTailUS Value `json:"stolen_tail_us"`
	Posted       Value `json:"posted"`
	// Split is the share of the wait for a run's last miss that every access line of the
	// run has for itself: their misses do not overlap.
	Split Value `json:"split"`
	// Shadow is the share of the wait before a fence in which lines of other cores
	// that the fence's own accesses change are already on their way.
	Shadow Value `json:"shadow"`
	// Drained is the share of the rest that a core waits for after all at an atomic
	// change or a lock, before which its writes have to be done.
	Drained Value `json:"drained"`
	// Window is the number of lines that a core asks for before it waits for the first
	// of them. With one, a packet is followed access by access, and Overlap, Serial,
	// Split, Shadow, Drained, Posted, NextLine and the tails mean nothing; without,
	// they tell what overlaps.
	Window Value      `json:"window,omitzero"`
	Wait   Value      `json:"wait"` // of cores for each other at what they share, 0..1
	Locks  []LockCost `json:"locks"`
	// Early is the share of a lock's MoveUS that passes before the lock is held.
	Early Value `json:"move_early"`

	// Apart says that each access line has an array of its own; else lines of one
	// memory, span and stride share one.
	Apart      bool   `json:"arrays_apart,omitempty"`
	LockMemory string `json:"lock_memory,omitempty"`
	LockStride int64  `json:"lock_stride,omitempty"` // bytes between lock words
}

// LawBase is a base program: core time a packet, the ceiling of packet I/O (0:
// none was seen), and the cache lines of each core's packet ring, of which a
// packet touches one.
type LawBase struct {
	Name   string `json:"name"`
	CoreUS Value  `json:"core_us"`
	IOMpps Value  `json:"io_mpps"`
	Lines  Value  `json:"ring_lines"`
}

// KindCost is the core time of a stateless operation of a kind, and FirstUS what
// the first of a packet's costs more: the kernel around them begins.
type KindCost struct {
	Kind    string `json:"kind"`
	US      Value  `json:"us"`
	FirstUS Value  `json:"first_us"`
}

// AccessCost is the core time of one access of a size that hits the first cache;
// an atomic one of more bytes than a command has is several.
type AccessCost struct {
	Op    program.Op   `json:"op"`
	Mode  program.Mode `json:"mode"`
	Bytes int          `json:"bytes"`
	US    Value        `json:"us"`
	// FirstUS is what the first access of a packet's costs more.
	FirstUS Value `json:"first_us"`
}

// OpTime is a time by operation and mode.
type OpTime struct {
	Op   program.Op   `json:"op"`
	Mode program.Mode `json:"mode"`
	US   Value        `json:"us"`
}

// OpShare is a share, 0..1, by operation and mode.
type OpShare struct {
	Op    program.Op   `json:"op"`
	Mode  program.Mode `json:"mode"`
	Share Value        `json:"share"`
}

// Cache is a level that accesses hit or miss: a cache of lines, or a translation
// buffer of pages. Bytes is the capacity that the working sets show, of one
// instance that Cores cores share. Miss is what missing it adds to an access, on
// its core, where misses follow each other; TailUS what a run of accesses waits
// in the end if any of them missed: a run ends at an atomic change, a lock and
// the end of the packet (see also Split). SharedUS is the time of one missing line
// (Written, of a written one) at what lies behind, which all cores share and
// which is called Behind.
type Cache struct {
	Name      string   `json:"name"`
	Bytes     Value    `json:"bytes"`
	LineBytes int64    `json:"line_bytes"`
	Cores     int      `json:"cores"`
	Behind    string   `json:"behind,omitempty"`
	Miss      []OpTime `json:"miss"`
	TailUS    Value    `json:"tail_us"`
	SharedUS  Value    `json:"shared_us"`
	WrittenUS Value    `json:"written_us"`
}

// LockCost is a lock idiom: TakeUS of the core to take and release a free lock
// beside misses of its word, MoveUS more if another core had it last, HandUS from
// one holder to the next that waits, CrowdUS more for each further one that
// waits, PauseUS of a waiter between two attempts. A core that comes back to a lock
// within about BackUS may take it again before any other: handing it over then counts
// less.
type LockCost struct {
	Idiom   program.Idiom `json:"idiom"`
	TakeUS  Value         `json:"take_us"`
	MoveUS  Value         `json:"move_us"`
	HandUS  Value         `json:"hand_us"`
	BackUS  Value         `json:"back_us"`
	CrowdUS Value         `json:"crowd_us"`
	PauseUS Value         `json:"pause_us"`
}

// linesOfCache is the line that rings and tables are counted in, bytes.
const linesOfCache = 64

const (
	maxCaches = 6
	maxLines  = 2
	maxParts  = 6 + maxCaches
)

// lawIndex is what the rule looks up.
type lawIndex struct {
	*CoreLaw
	leaves []Group // the resources after packet I/O and cores: what lies behind caches, the hottest line
	behind []int   // by cache: index of the leaf, -1: nobody shares it
	line   int     // leaf of the hottest line
	parts  []string
	kinds  [kinds]*KindCost
	lines  []float64 // sizes of lines and pages, at most maxLines
	known  sync.Map  // ranks by rankKey
	count  atomic.Int64
}

// Parts of a core's time before those of the caches' misses.
const (
	partBase = iota
	partStateless
	partAccess
	partStolen
	partLock
	partMiss
)

func newLawIndex(m *Model) *lawIndex {
	if m.CoreLaw == nil {
		return nil
	}
	l := &lawIndex{CoreLaw: m.CoreLaw}
	l.parts = []string{"cores.base", "cores.stateless", "cores.accesses", "cores.stolen-lines", "cores.locks"}
	for i := range l.Caches {
		c := &l.Caches[i]
		at := -1
		if c.Behind != "" {
			at = slices.IndexFunc(l.leaves, func(g Group) bool { return g.Name == c.Behind })
			if at < 0 {
				at = len(l.leaves)
				l.leaves = append(l.leaves, Group{Name: c.Behind})
			}
		}
		l.behind = append(l.behind, at)
		if line := float64(c.LineBytes); !slices.Contains(l.lines, line) {
			l.lines = append(l.lines, line)
		}
		l.parts = append(l.parts, "cores."+c.Name+"-misses")
	}
	l.line = len(l.leaves)
	l.leaves = append(l.leaves, Group{Name: "line"})
	for i, k := range program.Kinds {
		for n := range l.Stateless {
			if l.Stateless[n].Kind == k {
				l.kinds[i] = &l.Stateless[n]
			}
		}
	}
	return l
}

// check holds the law's parts against what the rule can take.
func (l *CoreLaw) check(finite func(string, Value) error) error {
	var errs []error
	if len(l.Bases) == 0 {
		errs = append(errs, errors.New("core_law has no base"))
	}
	for _, b := range l.Bases {
		errs = append(errs, finite("core_law base "+b.Name+" core_us", b.CoreUS), finite("core_law base "+b.Name+" ring_lines", b.Lines))
		if !(b.CoreUS.Value > 0) {
			errs = append(errs, fmt.Errorf("core_law base %s takes no core time", b.Name))
		}
	}
	if w := l.Window.Value; w < 0 || w > mostWindow || w != math.Trunc(w) {
		errs = append(errs, fmt.Errorf("core_law window is %g lines; expected a whole number up to %d", w, mostWindow))
	}
	if len(l.Caches) > maxCaches {
		errs = append(errs, fmt.Errorf("core_law has %d caches; at most %d are supported", len(l.Caches), maxCaches))
	}
	var lines []int64
	for _, c := range l.Caches {
		if !slices.Contains(lines, c.LineBytes) {
			lines = append(lines, c.LineBytes)
		}
		if c.LineBytes < 1 || !(c.Bytes.Value >= float64(c.LineBytes)) {
			errs = append(errs, fmt.Errorf("core_law cache %s: %g B in lines of %d B", c.Name, c.Bytes.Value, c.LineBytes))
		}
		errs = append(errs, finite("core_law cache "+c.Name+" bytes", c.Bytes), finite("core_law cache "+c.Name+" tail_us", c.TailUS),
			finite("core_law cache "+c.Name+" shared_us", c.SharedUS), finite("core_law cache "+c.Name+" written_us", c.WrittenUS))
		for _, t := range c.Miss {
			errs = append(errs, finite("core_law cache "+c.Name+" miss", t.US))
		}
	}
	if len(lines) > maxLines {
		errs = append(errs, fmt.Errorf("core_law caches have lines of %v B; at most %d sizes are supported", lines, maxLines))
	}
	for _, a := range l.Access {
		errs = append(errs, finite(fmt.Sprintf("core_law access %s:%s %d B", a.Op, a.Mode, a.Bytes), a.US))
	}
	for _, c := range l.Locks {
		errs = append(errs, finite("core_law lock "+string(c.Idiom), c.TakeUS))
	}
	return errors.Join(errs...)
}

func (l *CoreLaw) base(name string) *LawBase {
	for i := range l.Bases {
		if l.Bases[i].Name == name {
			return &l.Bases[i]
		}
	}
	return nil
}

// opTime returns the time of an operation, 0 when it was not measured.
func opTime(ts []OpTime, op program.Op, mode program.Mode) float64 {
	for i := range ts {
		if ts[i].Op == op && ts[i].Mode == mode {
			return ts[i].US.Value
		}
	}
	return 0
}

// issue is the time of an access of n bytes that hits: interpolated between the
// measured sizes; an atomic one beyond a command is several.
func (l *CoreLaw) issue(op program.Op, mode program.Mode, bytes, command int) (us, first float64, known bool) {
	full := 0
	if mode == program.Atomic {
		full, bytes = bytes/command, bytes%command
	}
	at := func(n int) (us, first float64) {
		var lo, hi *AccessCost
		for i := range l.Access {
			c := &l.Access[i]
			if c.Op != op || c.Mode != mode || mode == program.Atomic && c.Bytes > command {
				continue
			}
			if c.Bytes <= n && (lo == nil || c.Bytes > lo.Bytes) {
				lo = c
			}
			if c.Bytes >= n && (hi == nil || c.Bytes < hi.Bytes) {
				hi = c
			}
		}
		switch {
		case lo == nil && hi == nil:
			return math.NaN(), 0
		case lo == nil:
			lo = hi
		case hi == nil:
			hi = lo
		}
		share := 0.0
		if hi.Bytes > lo.Bytes {
			share = float64(n-lo.Bytes) / float64(hi.Bytes-lo.Bytes)
		}
		return lo.US.Value + share*(hi.US.Value-lo.US.Value), lo.FirstUS.Value + share*(hi.FirstUS.Value-lo.FirstUS.Value)
	}
	if full == 0 {
		us, first = at(bytes)
		return us, first, !math.IsNaN(us)
	}
	again := 1.0
	for i := range l.Again {
		if s := &l.Again[i]; s.Op == op && s.Mode == mode {
			again = s.Share.Value
		}
	}
	us, first = at(command)
	us *= 1 + again*float64(full-1)
	if bytes > 0 {
		rest, _ := at(bytes)
		us += again * rest
	}
	return us, first, !math.IsNaN(us)
}

// coreLaw predicts by the rule cores: a core works through a packet's parts one
// after the other, save what it overlaps; all cores together are bounded by what
// they share, and wait for each other there and at locks.
func (m *Model) coreLaw(j *job, out *resourceTimes) error {
	l := j.x.law
	if l == nil {
		return fault.Inputf("the model of board %s has no core costs: fit a sweep of a soc or host board", m.Board)
	}
	base := l.base(j.base.Name)
	custom := j.base == &j.custom
	if base == nil && !custom {
		return fault.Inputf("the model has no core cost of base %s", j.base.Name)
	}
	out.leaves, out.n = l.leaves, resFirst+len(l.leaves)
	us := out.us[:out.n]
	var parts [maxParts]float64
	if custom {
		base = &LawBase{CoreUS: j.base.CoreUS, IOMpps: l.Bases[0].IOMpps}
	}
	parts[partBase], us[resIO] = base.CoreUS.Value, inverse(base.IOMpps.Value)
	us[resIO] = max(us[resIO], j.wireTime(m))
	for i, kind := range program.Kinds {
		if n := j.p.Stateless[kind]; n > 0 {
			if l.kinds[i] == nil {
				return fault.Inputf("the model has no cost of stateless %s operations: fit a run with the group stateless", kind)
			}
			parts[partStateless] += n*l.kinds[i].US.Value + min(1, n)*l.kinds[i].FirstUS.Value
		}
	}
	parts[partStateless] -= min(l.AheadUS.Value, parts[partBase], parts[partStateless])
	j.lockWords(l)
	j.rank(l)
	for k := range j.accesses {
		if a := &j.accesses[k]; !a.word {
			a.gap, _, _ = l.issue(a.Op, a.Mode, a.Bytes, a.engine.MaxBytes)
			a.slow = opTime(l.Stolen, a.Op, a.Mode)
		}
	}
	for c := range l.Caches {
		j.residence(c, base.Lines.Value)
	}
	pass := l.overlapping
	if l.Window.Value > 0 {
		pass = l.windowed
	}
	cores := float64(j.cores)
	out.locksAt = out.n
	var w walk
	var s sharing
	var assumed secant
	for range j.rounds() {
		j.cacheMisses()
		clear(us[resFirst:])
		w = walk{parts: parts, us: us}
		if err := pass(j, &w); err != nil {
			return err
		}
		us[resCores] = w.busy / cores
		s = sharing{us: us, busy: w.busy, cores: cores, wait: l.Wait.Value * w.seen, again: w.busy - w.words}
		us[resFirst+l.line] = j.contended(&s)
		for i := range j.p.Locks {
			s.lock(l, j, i, w.hold[i], w.section[i])
			out.tLock[i], out.flow[i] = inverse(s.locks[i].hold), s.locks[i].flow
		}
		out.mpps = s.rate()
		j.mpps = assumed.next(out.mpps)
	}
	for i := range j.p.Locks {
		held, _ := s.locks[i].held(out.mpps, s.locks[i].hot, s.others())
		out.us[out.n] = s.locks[i].hot * held
		out.n++
	}
	for r := range out.n {
		if out.us[r] > out.us[out.bottleneck] {
			out.bottleneck = r
		}
	}
	out.parts, out.partNames = w.parts, l.parts
	if out.bottleneck == resCores && base != nil {
		out.rel = base.CoreUS.Rel() * parts[partBase] / w.busy
	}
	return nil
}

// overlapping adds up a packet's way through a core that works out of order: of work
// and misses the smaller is hidden in part, and waits for the last of a run of misses
// are not.
func (l *lawIndex) overlapping(j *job, w *walk) error {
	parts := &w.parts
	work, stall, serial := parts[partBase]+parts[partStateless], 0.0, 0.0
	var together, apart run // of all access lines since the last fence, and of one
	split, last, behind := min(1, l.Split.Value), 0.0, 0.0
	for k := range j.accesses {
		a := &j.accesses[k]
		// nothing overlaps an atomic change or the border of a lock's section
		fence := a.word || a.Mode == program.Atomic && a.Op != program.Read
		before := last
		if fence || k > 0 && a.lock != j.accesses[k-1].lock {
			tail := together.end(l, fence, 1-split, 0, parts)
			stall += tail
			before += tail
			behind = 0
			if k > 0 && j.accesses[k-1].lock >= 0 {
				w.hold[j.accesses[k-1].lock] += tail
			}
		}
		own := 0.0
		if !a.word {
			us, first, ok := l.issue(a.Op, a.Mode, a.Bytes, a.engine.MaxBytes)
			if !ok {
				return fault.Inputf("the model has no core cost of %s:%s: it was fitted without it", a.Op, a.Mode)
			}
			if a.skewed() {
				us += l.DrawUS.Value
			}
			own = us*a.PerPacket + first*min(1, a.PerPacket)
		}
		away, alone, waits := 0.0, l.serial(a), 1.0
		if a.Mode == program.Bulk && a.Op != program.Read {
			waits = l.Posted.Value
		}
		for c := range l.Caches {
			cache := &l.Caches[c]
			missing := a.away(c)
			if missing *= a.PerPacket; missing <= 0 {
				continue
			}
			lines := a.linesOf(cache.LineBytes)
			t := missing * (1 + (lines-1)*l.NextLine.Value) * opTime(cache.Miss, a.Op, a.Mode)
			parts[partMiss+c] += t
			away += t
			together.missed[c].add(a.PerPacket, missing*(1-alone), waits)
			apart.missed[c].add(a.PerPacket, missing*(1-alone), waits)
			if at := l.behind[c]; at >= 0 {
				shared := cache.SharedUS.Value
				if a.Op != program.Read {
					shared = cache.WrittenUS.Value
				}
				w.us[resFirst+at] += missing * lines * shared
			}
		}
		early := 0.0
		if moved := a.PerPacket * (a.far + a.near*l.Near.Value); moved > 0 {
			if a.word {
				c, _ := l.lockCost(j.p.Locks[a.lock].Idiom)
				moved *= c.MoveUS.Value
				early = min(1, l.Early.Value) * moved
				w.words += moved
			} else {
				fresh := 0.0
				if us := opTime(l.Fresh, a.Op, a.Mode); us > 0 {
					n := a.PerPacket * min(a.fresh, a.far)
					moved -= n
					fresh = n * us
				}
				together.stolen.add(a.PerPacket, moved*(1-alone), waits)
				apart.stolen.add(a.PerPacket, moved*(1-alone), waits)
				moved = (moved*opTime(l.Stolen, a.Op, a.Mode) + fresh) * (1 + (a.linesOf(a.mem.LineBytes)-1)*l.NextLine.Value)
			}
			parts[partStolen] += moved
			away += moved
		}
		parts[partAccess] += own
		serial += alone * (own + away)
		if a.Mode == program.Atomic && a.Op == program.Read {
			// what it waits for is under way together with the misses before it
			hidden := alone * min(max(0, together.left(l)-behind), own+away)
			behind += hidden
			serial -= hidden
		}
		work += (1 - alone) * own
		stall += (1 - alone) * away
		last = apart.end(l, fence, split, before, parts)
		if fence {
			last += together.end(l, true, 1-split, before, parts)
			serial += last
			away += last
		} else {
			stall += last
			if a.lock >= 0 {
				away += last
			}
		}
		if a.lock >= 0 {
			w.hold[a.lock] += own + away - early
		}
	}
	stall += together.end(l, false, 1-split, 0, parts)
	for i := range j.p.Locks {
		if lock := &j.p.Locks[i]; lock.Idiom != program.None {
			c, _ := l.lockCost(lock.Idiom)
			parts[partLock] += c.TakeUS.Value
			serial += c.TakeUS.Value
			w.hold[i] += c.TakeUS.Value
		}
	}
	w.seen = 1
	w.busy = max(work, stall) + (1-min(1, l.Overlap.Value))*min(work, stall) + serial
	return nil
}

// run is what accesses that overlap have missed since the last fence.
type run struct {
	missed [maxCaches]events
	stolen events // lines that other cores had
}

// events happen in a packet, or not.
type events struct {
	n      float64 // on average
	weight float64 // of them that a core waits for
	none   float64 // logarithm of the probability that none does
}

// add counts n accesses of which some are events, which a core waits for so many
// times each.
func (e *events) add(n, some, times float64) {
	const never = 1e-9
	e.n += some
	e.weight += some * times
	if n < 1 {
		e.none += math.Log(max(never, 1-some))
	} else {
		e.none += n * math.Log(max(never, 1-some/n))
	}
}

// wait is how often a core waits for the last of them, with posted ones for the
// share of a fence that they hold up.
func (e *events) wait(drained float64) float64 {
	if e.n <= 0 {
		return 0
	}
	return -math.Expm1(e.none) * (e.weight + drained*(e.n-e.weight)) / e.n
}

// left is the time that a core will wait for the last miss of a run.
func (r *run) left(l *lawIndex) float64 {
	t := r.stolen.wait(0) * l.StolenTailUS.Value
	for c := range l.Caches {
		t += r.missed[c].wait(0) * l.Caches[c].TailUS.Value
	}
	return t
}

// end returns a share of the time that a core waits for the last miss of a run, at a
// fence or not, and begins the next. It waited until before.
func (r *run) end(l *lawIndex, fence bool, share, before float64, parts *[maxParts]float64) float64 {
	drained := 0.0
	if fence {
		drained = min(1, l.Drained.Value)
	}
	tail := share * r.stolen.wait(drained) * l.StolenTailUS.Value
	if fence {
		tail -= min(tail, l.Shadow.Value*before)
	}
	parts[partStolen] += tail
	for c := range l.Caches {
		t := share * r.missed[c].wait(drained) * l.Caches[c].TailUS.Value
		parts[partMiss+c] += t
		tail += t
	}
	*r = run{}
	return tail
}

func inverse(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return 1 / x
}

// rank lists the lines of each Zipf array once for all caches of one line size,
// with their rates of one core.
func (j *job) rank(l *lawIndex) {
	ps := j.ranks[:0]
	for k := range j.accesses {
		a := &j.accesses[k]
		if !a.skewed() {
			continue
		}
		for n, line := range l.lines {
			from := len(ps)
			for _, p := range l.ranks(a, line) {
				ps = append(ps, population{lines: p.lines, rate: p.rate * a.PerPacket})
			}
			a.byLine[n] = ranking{line: line, lines: ps[from:]}
		}
	}
	j.together(l)
}

// together sets how often each core hits the lines of an array with Zipf accesses by all
// of its accesses: a rank is the same line for each of them.
func (j *job) together(l *lawIndex) {
	rates := j.rates[:0]
	for k := range j.accesses {
		a := &j.accesses[k]
		if !a.skewed() {
			continue
		}
		for n, line := range l.lines {
			from := len(rates)
			for g := range a.byLine[n].lines {
				sum := hitRate{}
				for o := range j.accesses {
					b := &j.accesses[o]
					if j.lawArray(o, true) != j.lawArray(k, true) {
						continue
					}
					rate := b.PerPacket * b.uniform(line)
					if b.skewed() {
						rate = b.byLine[n].lines[g].rate
					}
					sum.all += rate
					if b.Op != program.Read {
						sum.changes += rate
					}
				}
				rates = append(rates, sum)
			}
			a.byLine[n].all = rates[from:]
		}
	}
}

// skewedArray is the first Zipf access to access k's array, nil: all are uniform.
func (j *job) skewedArray(k int) *access {
	for o := range j.accesses {
		if b := &j.accesses[o]; b.skewed() && j.lawArray(o, true) == j.lawArray(k, true) {
			return b
		}
	}
	return nil
}

// rankKey identifies the lines of a Zipf array.
type rankKey struct {
	span, stride int64
	alpha, line  float64
}

// mostRanks is how many arrays' lines are remembered: more than a fit has.
const mostRanks = 1 << 12

// ranks returns the lines of an access's array at one draw a packet.
func (l *lawIndex) ranks(a *access, line float64) []population {
	key := rankKey{a.span, a.stride, a.Alpha, line}
	if ps, ok := l.known.Load(key); ok {
		return ps.([]population)
	}
	ps := a.ranksIn(nil, 1, line)
	if l.count.Add(1) <= mostRanks {
		l.known.Store(key, ps)
	}
	return ps
}

// ranking is the lines of a size of a Zipf array, by how often the access hits them,
// and how often all accesses to the array do.
type ranking struct {
	line  float64
	lines []population
	all   []hitRate
}

// hitRate is how often a core hits a line, a packet, and how often it changes it.
type hitRate struct{ all, changes float64 }

// written is the share of the hits that change the line, of one that others share.
func (r hitRate) written(shared bool) float64 {
	if !shared {
		return 0
	}
	return r.changes / r.all
}

func (a *access) ranked(line float64) *ranking {
	for i := range a.byLine {
		if a.byLine[i].line == line {
			return &a.byLine[i]
		}
	}
	return &ranking{}
}

// lockWords appends the words of the program's locks to the accesses: a word
// is missed or stolen as any line that all cores write.
func (j *job) lockWords(l *lawIndex) {
	mem := j.x.memory(l.LockMemory)
	if mem == nil {
		return
	}
	for i := range j.p.Locks {
		lock := &j.p.Locks[i]
		if lock.Idiom == program.None {
			continue
		}
		w := &j.words[i]
		*w = program.Access{Op: program.Write, Mode: program.Atomic, Bytes: 4, PerPacket: 1}
		used := lock.Elements
		if !lock.Hash {
			used = min(used, max(1, j.flows.Count))
			if j.flows.Popularity == "zipf" && lock.Elements >= j.flows.Count {
				w.Popularity, w.Alpha = "zipf", j.flows.Alpha
			}
		}
		j.accesses = append(j.accesses, access{Access: w, mem: mem, span: int64(used), stride: max(1, l.LockStride), lock: i, word: true})
	}
}

// serial is the share of an access that overlaps with nothing.
func (l *CoreLaw) serial(a *access) float64 {
	if a.word {
		return 1
	}
	return opShare(l.Serial, a)
}

// opShare returns the share of an access's operation, 0 when it was not measured.
func opShare(ss []OpShare, a *access) float64 {
	for i := range ss {
		if s := &ss[i]; s.Op == a.Op && s.Mode == a.Mode {
			return min(1, s.Share.Value)
		}
	}
	return 0
}

// linesOf is the number of lines (or pages) that one access touches.
func (a *access) linesOf(line int64) float64 {
	return math.Ceil(float64(a.Bytes) / float64(line))
}

// scope is the number of cores that share the access's array.
func (j *job) scope(a *access) float64 {
	if s := float64(a.mem.SharedBy); s > 0 {
		return min(s, float64(j.cores))
	}
	return float64(j.cores)
}

// cacheMisses sets how often an access of each array misses each cache: a line is
// there if it was hit within the time in which the cache's worth of distinct lines is
// hit, and if no core that does not share the cache has changed it since.
func (j *job) cacheMisses() {
	l := j.x.law
	for k := range j.accesses {
		a := &j.accesses[k]
		a.miss, a.near, a.far, a.fresh = [maxCaches]float64{}, 0, 0, 0
		a.nearAt, a.farAt = -1, -1
	}
	for at := range l.Caches {
		line := float64(l.Caches[at].LineBytes)
		stay := &j.stays[at]
		for k := range j.accesses {
			a := &j.accesses[k]
			s := j.siblings(k, at)
			b := j.skewedArray(k)
			if b == nil {
				j.seen(a, at, s, stay, j.uniformRate(j.lawArray(k, false), line), 1, a.uniform(line))
				continue
			}
			r := b.ranked(line)
			drawn := func(g int) float64 {
				if a.skewed() {
					return a.ranked(line).lines[g].rate / a.PerPacket
				}
				return a.uniform(line)
			}
			all := 0.0
			for g, p := range r.lines {
				all += p.lines * drawn(g)
			}
			shared := s.written > 0
			for g, p := range r.lines {
				s.written = r.all[g].written(shared)
				j.seen(a, at, s, stay, r.all[g].all, p.lines*drawn(g)/all, drawn(g))
			}
		}
	}
}

// stay is how long a line stays in a cache that nobody hits, packets; the same if
// what others take from the cache makes no room.
type stay struct{ all, full float64 }

// residence sets how long lines stay in cache c, by Che's approximation. All arrays
// of the program, of all cores that share the cache, compete for it, and so do their
// packet rings and tables of draws.
func (j *job) residence(at int, ring float64) {
	c := &j.x.law.Caches[at]
	line := float64(c.LineBytes)
	capacity := c.Bytes.Value / line
	by := j.sharers(at)
	own := linesOfCache / line // of a core's ring and tables
	table := j.x.law.DrawLines.Value * own
	var buffer [128]population
	ps := buffer[:0]
	if ring > 0 {
		ps = append(ps, population{lines: by * ring * own, rate: 1 / ring / own})
	}
	for k := range j.accesses {
		a := &j.accesses[k]
		s := j.siblings(k, at)
		copies := max(1, by/(s.own+s.out))
		if a.skewed() && !a.word && table > 0 {
			ps = append(ps, population{lines: by * table, rate: a.PerPacket / table})
		}
		if b := j.skewedArray(k); b != nil {
			if b == a {
				r := a.ranked(line)
				for g, p := range r.lines {
					rate := r.all[g]
					ps = append(ps, population{p.lines * copies, rate.all * s.own, rate.all * s.out * rate.written(s.written > 0)})
				}
			}
		} else if j.lawArray(k, false) == k {
			r := j.uniformRate(k, line)
			ps = append(ps, population{a.linesIn(line) * copies, r * s.own, r * s.out * s.written})
		}
	}
	j.stays[at] = stay{all: characteristicTime(ps, capacity)}
	if at == 0 && len(j.x.law.Fresh) > 0 {
		for i := range ps {
			ps[i].taken = 0
		}
		j.stays[at].full = characteristicTime(ps, capacity)
	}
}

// characteristicTime is that of a cache, packets: that in which
// distinct lines fill it, infinite when they never do. Newton's method climbs to
// it from below, as the filling is concave in time.
func characteristicTime(ps []population, capacity float64) float64 {
	room, speed := capacity, 0.0
	for _, p := range ps {
		room -= p.lines * p.rate / (p.rate + p.taken)
		speed += p.lines * p.rate
	}
	if room >= 0 {
		return math.Inf(1)
	}
	t := capacity / speed
	for range 50 {
		left, speed := capacity, 0.0
		for _, p := range ps {
			all := p.rate + p.taken
			e := math.Exp(-all * t)
			left -= p.lines * p.rate / all * (1 - e)
			speed += p.lines * p.rate * e
		}
		step := left / speed
		t += step
		if !(step > 1e-9*t) {
			break
		}
	}
	return t
}

// siblings are the cores that share an array, as one instance of a cache sees
// them: own share the instance, next more the instance of the level beyond, and
// out in all do not share it. far says that these lie beyond all private caches.
type siblings struct {
	own, next, out float64
	far            bool
	written        float64 // share of the array's accesses that change it
}

func (j *job) siblings(k, at int) siblings {
	a := &j.accesses[k]
	scope, by := j.scope(a), j.sharers(at)
	s := siblings{own: min(scope, by)}
	if j.x.law.Caches[at].LineBytes > a.mem.LineBytes {
		s.own = min(scope, by) // a page's translation is not taken away
		return s
	}
	beyond := float64(j.cores)
	for c := at + 1; c < len(j.x.law.Caches); c++ {
		if j.x.law.Caches[c].LineBytes == j.x.law.Caches[at].LineBytes {
			beyond = j.sharers(c)
			break
		}
	}
	s.out = scope - s.own
	s.next = min(scope, beyond) - s.own
	s.far = beyond >= float64(j.cores) && j.cores > j.x.law.Tile
	if s.out > 0 {
		s.written = j.written(k)
	}
	return s
}

// inner says whether the lines that others have changed lie beyond this cache's
// own kind: in others' outer caches, and maybe nearer to them.
func (s *siblings) inner() bool { return s.out > 0 && s.next == 0 }

// seen adds, for a share of an access, how often it misses cache at, and how often
// another core has taken the line: one that each core hits at a rate a packet, an
// access of the share with the probability drawn.
func (j *job) seen(a *access, at int, s siblings, t *stay, rate, share, drawn float64) {
	// the line was touched last within t, by whom
	within := func(cores, t float64) float64 { return -math.Expm1(-cores * rate * t) }
	others, next := s.out, s.next
	if a.Op == program.Read {
		others, next = others*s.written, next*s.written
	}
	own := last(s.own, others, rate, drawn)
	if a.word && j.x.law.Window.Value == 0 {
		own = s.own / (s.own + others) // who gives a lock back is the first to see it free
	}
	here := own * within(s.own+others, t.all)
	first, again := share, 0.0
	if s.written > 0 {
		first, again = j.handed(a, others, rate, drawn)
		first, again = first*share, again*share
	}
	a.miss[at] += first*(1-here) + again
	if others == 0 {
		return
	}
	if at == 0 && s.inner() {
		a.fresh += first*(1-own)*within(s.own+others, t.full) + again
		return
	}
	taken := (first*(1-own)*within(s.own+next, t.all) + again) * next / others
	if s.far {
		a.far += taken
		a.farAt = at
	} else {
		a.near += taken
		a.nearAt = at
	}
}

// away is how often an access misses cache c and does not find the line in another
// core's either.
func (a *access) away(c int) float64 {
	missing := a.miss[c]
	if c <= a.farAt {
		missing -= a.far
	}
	if c <= a.nearAt {
		missing -= a.near
	}
	return missing
}

// last is the probability that of the cores that hit a line, each at a rate a packet
// by accesses that draw it with a probability, one of some own was the last before a
// packet, and none of the others. Cores go on packet by packet: the more often each of
// them hits it, the less often two packets of one do in a row.
func last(own, others, rate, drawn float64) float64 {
	if others == 0 {
		return 1
	}
	any := hits(rate/drawn, drawn)
	none := math.Pow(1-any, own-1+others)
	self := any * none / (1 - (1-any)*none)
	return self + (own-1)/(own-1+others)*(1-self)
}

// hits is the probability that any of n accesses, each with probability p, hits.
func hits(n, p float64) float64 {
	if p = min(1, p); n < 1 {
		return n * p
	}
	return -math.Expm1(n * math.Log1p(-p))
}

// handed is the share of an access's hits on a line that are a packet's first, and the
// share that finds it taken since the packet's own last hit.
func (j *job) handed(a *access, others, rate, drawn float64) (first, again float64) {
	n := a.PerPacket
	if n <= 1 || others == 0 {
		return 1, 0
	}
	p := min(1, drawn)
	first = hits(n, p) / (n * p)
	kept := opShare(j.x.law.Kept, a)
	gone := j.mpps / float64(j.cores) * others * rate // that others hit it, each µs
	if gone == 0 || first >= 1 {
		return first, (1 - first) * (1 - kept)
	}
	// the next hit is as many accesses later as a geometric distribution has it
	stays := func(us float64) float64 {
		e, q := math.Exp(-gone*us), 1-p
		end := math.Pow(q, n-1)
		return kept * p * e * (1 - end*math.Pow(e, n-1)) / ((1 - q*e) * (1 - end))
	}
	soon := stays(a.gap)
	if j.x.law.Window.Value == 0 {
		return first, (1 - first) * (1 - soon)
	}
	late := stays(a.gap + a.slow)
	if a.Mode == program.Atomic { // waits for the line after each that was taken
		return first, (1 - first) * (1 - soon) / (1 - soon + late)
	}
	return first, (1 - first) * (1 - soon + a.blocked*(soon-late))
}

// secant finds the rate from which the same rate follows.
type secant struct {
	known    int
	at, last float64 // logarithms of the rates assumed
	off      float64 // by how much the one that followed from last was above
}

// next takes the rate that followed from the last, at first from none, and returns the
// next to assume.
func (s *secant) next(rate float64) float64 {
	got := math.Log(rate)
	off := got - s.at
	step := off / 2
	switch s.known++; {
	case s.known == 1:
		step = off
	case s.known > 2 && off != s.off:
		step = off * (s.at - s.last) / (s.off - off)
		step = max(-math.Abs(off), min(math.Abs(off), step))
	}
	s.last, s.off = s.at, off
	s.at += step
	return math.Exp(s.at)
}

// rounds is how often a rate has to be worked out: what cores take from each other
// between the accesses of a packet depends on it.
func (j *job) rounds() int {
	const some = 5
	for k := range j.accesses {
		if a := &j.accesses[k]; !a.word && a.PerPacket > 1 && j.scope(a) > 1 && j.written(k) > 0 {
			return some
		}
	}
	return 1
}

// sharers is the number of cores in use that share one instance of a cache.
func (j *job) sharers(at int) float64 {
	if c := j.x.law.Caches[at].Cores; c > 0 {
		return float64(min(j.cores, c))
	}
	return float64(j.cores)
}

// uniformRate is how often a packet hits one line of a uniform array, by all of
// its uniform accesses; k is their first.
func (j *job) uniformRate(k int, line float64) float64 {
	rate := 0.0
	for o := range j.accesses {
		if b := &j.accesses[o]; !b.skewed() && j.lawArray(o, false) == k {
			rate += b.PerPacket
		}
	}
	a := &j.accesses[k]
	return rate * a.uniform(line)
}

// uniform is the probability that a uniform access hits one certain line.
func (a *access) uniform(line float64) float64 {
	return min(1, max(1, line/float64(a.stride))/float64(a.span))
}

// lawArray returns the first access to access k's array, of all or of its uniform
// ones.
func (j *job) lawArray(k int, skewed bool) int {
	a := &j.accesses[k]
	if a.word || j.x.law.Apart {
		return k
	}
	for o := range k {
		if b := &j.accesses[o]; b.mem == a.mem && b.span == a.span && b.stride == a.stride && !b.word && (skewed || !b.skewed()) {
			return o
		}
	}
	return k
}

// written is the share of the accesses to access k's array that change it.
func (j *job) written(k int) float64 {
	written, all := 0.0, 0.0
	for o := range j.accesses {
		if b := &j.accesses[o]; j.lawArray(o, true) == j.lawArray(k, true) {
			all += b.PerPacket
			if b.Op != program.Read {
				written += b.PerPacket
			}
		}
	}
	return written / all
}

// distance is how long a line takes from core to core of those that share the
// access's array, relative to all.
func (j *job) distance(a *access) float64 {
	if l := j.x.law; l.Tile > 1 && j.scope(a) <= float64(l.Tile) {
		return l.Near.Value
	}
	return 1
}

// hotLines are lines of an array that cores change in turn.
type hotLines struct {
	lines float64
	us    float64 // of a packet on each of them
	part  float64 // of all packets that go to one copy of the array
	scope float64 // cores that share it
}

// contended lists the lines that cores change in turn, and returns the time of a
// packet on the hottest; of an array that few cores share each of its copies takes
// its part.
func (j *job) contended(s *sharing) (hottest float64) {
	for k := range j.accesses {
		a := &j.accesses[k]
		scope := j.scope(a)
		if j.lawArray(k, true) != k || a.word || scope < 2 {
			continue
		}
		width := float64(a.mem.LineBytes)
		h := hotLines{part: scope / float64(j.cores), scope: scope}
		if !a.skewed() {
			p := a.uniform(width)
			h.lines, h.us = a.linesIn(width), p*j.changes(k, j.uniformRate(k, width), p)
			hottest = max(hottest, s.add(h))
			continue
		}
		ranks := a.ranked(width)
		for g, r := range ranks.lines {
			p := r.rate / a.PerPacket
			h.lines, h.us = r.lines, p*j.changes(k, ranks.all[g].all, p)
			hottest = max(hottest, s.add(h))
		}
	}
	return hottest
}

// changes is the time that a line of access k's array, hit at a rate by each core, is
// changed in a packet if every access draws it; they do with probability p.
func (j *job) changes(k int, rate, p float64) float64 {
	sum := 0.0
	others := j.scope(&j.accesses[k]) - 1
	for o := k; o < len(j.accesses); o++ {
		if b := &j.accesses[o]; j.lawArray(o, true) == k {
			us := opTime(j.x.law.Line, b.Op, b.Mode)
			if b.Mode == program.Atomic {
				us *= b.commands() / b.linesOf(b.mem.LineBytes) // between which others take the line
			}
			first, again := j.handed(b, others, rate, p)
			sum += b.PerPacket * us * (first*(1-last(1, others, rate, p)) + again)
		}
	}
	return sum * j.distance(&j.accesses[k])
}

// add takes lines into account that anybody may have to wait for.
func (s *sharing) add(h hotLines) float64 {
	const seen = 1e-3 // of the time of a packet
	if s.hotN < len(s.hot) && h.us*h.part > seen*s.busy/s.cores {
		s.hot[s.hotN] = h
		s.hotN++
	}
	return h.us * h.part
}

// lockCost returns the cost of an idiom, or of the sleep nearest to it with its
// pause in proportion.
func (l *CoreLaw) lockCost(idiom program.Idiom) (LockCost, bool) {
	if idiom == "" {
		idiom = program.Spin
	}
	best, score := LockCost{}, math.Inf(1)
	cycles := float64(idiom.Sleep())
	for _, c := range l.Locks {
		if c.Idiom == idiom {
			return c, true
		}
		if measured := float64(c.Idiom.Sleep()); cycles > 0 && measured > 0 && math.Abs(measured-cycles) < score {
			best, score = c, math.Abs(measured-cycles)
			best.PauseUS.Value *= cycles / measured
		}
	}
	return best, !math.IsInf(score, 1)
}

// sharing is what bounds all cores together.
type sharing struct {
	us    []float64 // of a packet by resource
	busy  float64   // of a core
	again float64   // the same if no word of a lock has to be fetched
	cores float64
	wait  float64
	locks [maxLocks]heldLock
	n     int
	hot   [64]hotLines
	hotN  int
}

// heldLock is a lock array under load.
type heldLock struct {
	hold      float64 // µs that a packet holds its element
	section   float64 // of it in its section
	hand      float64 // from one holder to the next
	crowd     float64 // more for each further waiter
	pause     float64 // of a waiter between attempts
	back      float64 // core time between two packets in which the lock is taken again, of the time that one takes
	hot, flow float64 // packet share of the hottest element, and of the largest flow on it
	shares    [32]elements
	n         int
}

// elements are equally hit ones.
type elements struct{ count, share float64 }

func (s *sharing) lock(l *lawIndex, j *job, i int, hold, section float64) {
	h := &s.locks[s.n]
	s.n++
	*h = heldLock{}
	lock := &j.p.Locks[i]
	c, ok := l.lockCost(lock.Idiom)
	if lock.Idiom == program.None || !ok {
		return
	}
	h.hold, h.section, h.hand, h.crowd, h.pause = hold, section, c.HandUS.Value, c.CrowdUS.Value, c.PauseUS.Value
	h.back = c.BackUS.Value / s.again
	h.hot, h.flow = elementShare(lock, j.flows)
	h.spread(lock, j.flows)
}

// spread lists the packet shares of the elements.
func (h *heldLock) spread(l *program.Lock, f traffic.Flows) {
	e, n := float64(l.Elements), float64(max(1, f.Count))
	add := func(count, share float64) {
		if count > 0 && share > 0 {
			h.shares[h.n] = elements{count, share}
			h.n++
		}
	}
	switch {
	case l.Hash:
		add(e, 1/e)
	case len(f.Shares) > 0 || e == 1:
		add(1, h.hot)
		add(e-1, (1-h.hot)/max(1, e-1))
	case f.Popularity == "zipf":
		total := harmonic(n, f.Alpha)
		wrapped := 0.0 // of flows beyond the elements, on each
		if n > e {
			wrapped = (1 - harmonic(e, f.Alpha)/total) / e
		}
		before, last := 0.0, min(e, n)
		for lo := 1.0; lo <= last; lo *= 2 {
			hi := min(2*lo-1, last)
			mass := harmonic(hi, f.Alpha) / total
			count := hi - lo + 1
			add(count, (mass-before)/count+wrapped)
			before = mass
		}
	default:
		each := math.Floor(n / e)
		more := n - each*e
		add(more, (each+1)/n)
		add(e-more, each/n)
	}
}

// held is the time that a packet keeps an element of that share from others at a
// rate, and the share of time that the element is taken: with waiters it is
// handed over, in a crowd more slowly. It is the least that holds.
func (h *heldLock) held(rate, share, others float64) (us, busy float64) {
	const steps, close = 64, 1e-4
	back := h.back * share
	handed := 1 / (1 + back*back)
	for range steps {
		before := us
		busy = min(1, rate*share*(h.hold+us))
		waiters := others * busy / max(1e-9, 1-others*busy)
		us = handed*h.hand*min(1, waiters) + h.crowded(waiters)
		if us-before <= close*(h.hold+us) {
			break
		}
	}
	return h.hold + us, rate * share * (h.hold + us)
}

// crowded is how long more it takes if there are further waiters: what they ask for
// passes in part while the holder is in its section.
func (h *heldLock) crowded(waiters float64) float64 {
	us := h.crowd * max(0, waiters-1)
	if us == 0 {
		return 0
	}
	return us * math.Exp(-h.section/us)
}

// others is the share of the cores that are not the one that asks.
func (s *sharing) others() float64 { return (s.cores - 1) / s.cores }

// rate solves Little's law for the cores: rate · (busy + waits) = cores, with the
// waits of Schweitzer's approximate mean value analysis, bounded by every
// resource and by the hottest element of every lock.
func (s *sharing) rate() float64 {
	top := s.cores / s.busy
	for r, us := range s.us {
		if r != resCores && us > 0 {
			top = min(top, 1/us)
		}
	}
	if s.inside(top) <= s.cores {
		return top
	}
	lo, hi := 0.0, top
	for range 40 {
		if mid := (lo + hi) / 2; s.inside(mid) > s.cores {
			hi = mid
		} else {
			lo = mid
		}
	}
	return lo
}

// inside is the number of cores that a rate keeps busy or waiting.
func (s *sharing) inside(rate float64) float64 {
	const least = 1e-9
	others := s.others()
	t := s.busy
	for r, us := range s.us[:len(s.us)-1] { // the hottest line is among the next
		if r != resCores && us > 0 {
			q := s.wait * others * rate * us
			t += us * q / max(1-q, least)
		}
	}
	for i := range s.hotN {
		h := &s.hot[i]
		q := (h.scope - 1) / h.scope * rate * h.part * h.us
		t += h.lines * h.us * q / max(1-q, least)
	}
	for i := range s.n {
		h := &s.locks[i]
		for _, e := range h.shares[:h.n] {
			hold, q := h.held(rate, e.share, others)
			if q > 1 {
				return math.Inf(1)
			}
			t += e.count * e.share * (hold + h.pause) * others * q / max(1-others*q, least)
		}
	}
	return rate * t
}
