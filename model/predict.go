package model

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"sync"

	"nicprof/internal/fault"
	"nicprof/program"
	"nicprof/traffic"
)

// Composition rules.
const (
	RuleCommon    = "common"    // curves at the group's total intensity, weighted harmonic in a group, slowest group
	RuleLiteral   = "literal"   // Cora Eq. 3 to 5 as printed: each curve at its own intensity
	RuleRefit     = "refit"     // the combined curve fitted again by Eq. 2, as the authors' release does
	RuleResources = "resources" // bottleneck law over the times on every resource
	RuleCores     = "cores"     // core times of run-to-completion boards, and what their cores share
)

// Rules lists the rules in the order tables print them.
var Rules = []string{RuleCommon, RuleLiteral, RuleRefit, RuleResources, RuleCores}

// RulesFor lists the rules that models of a class of boards have.
func RulesFor(class string) []string {
	if class == "soc" || class == "host" {
		return Rules
	}
	return Rules[:len(Rules)-1]
}

// Options of one prediction. The zero value is the model's default rule on all
// cores of the base.
type Options struct {
	Cores   int
	Threads int    // contexts a core, 0: the base's
	Rule    string // "": the model's default
	Brief   bool   // leave Explain and Utilisation out: for planners that ask a million times

	// Returns is how often a packet is forwarded again, since it comes back from
	// the host: the base program's core time, and by the rule resources its
	// memory commands, count 1+Returns times. Packet I/O counts once: a packet
	// is received from the wire once and sent to it once. The rule cores, of
	// boards without a host, does not know it.
	Returns float64
}

// Term is the bound of one resource: the rate that it allows alone, and the
// share of it that the predicted rate uses.
type Term struct {
	Resource string  `json:"resource"`
	Mpps     float64 `json:"mpps"`
	Share    float64 `json:"share"`
}

// Prediction of a program under traffic. Low and High span 95 %: of the rule's
// held-out errors (where none was held out, of the model's errors on its own
// samples) and of the bottleneck's fitted numbers.
type Prediction struct {
	Board       string             `json:"board"`
	Model       string             `json:"model"`
	Rule        string             `json:"rule"`
	Program     string             `json:"program"`
	Mpps        float64            `json:"mpps"`
	Low         float64            `json:"mpps_low"`
	High        float64            `json:"mpps_high"`
	Bottleneck  string             `json:"bottleneck"`
	DroppedMpps float64            `json:"dropped_mpps"`
	Lock        string             `json:"lock,omitempty"`        // that a flow exceeds
	UnloadedUS  float64            `json:"unloaded_us,omitempty"` // latency of a packet alone, of chains of network tasks
	Utilisation map[string]float64 `json:"utilisation"`
	Explain     []Term             `json:"explain"`
	Warnings    []string           `json:"warnings"`
	Seed        uint64             `json:"seed"`
}

const (
	maxResources = 24
	minPacket    = 64
	wireOverhead = 20 // preamble and inter-frame gap, bytes
)

// job is a program and its traffic resolved against a model.
type job struct {
	x        *index
	p        program.Program
	t        traffic.Traffic
	base     *Base
	demands  []indexedDemand
	custom   Base // for a base that is a cycle count
	cores    int
	threads  int
	packet   float64 // mean bytes
	passes   float64 // of the base program, a packet
	flows    traffic.Flows
	accesses []access
	buffer   [16]access
	ranks    [256]population // of Zipf arrays, for the rule cores
	rates    [256]hitRate    // of their lines, by all accesses
	words    [maxLocks]program.Access
	stays    [maxCaches]stay // of the rule cores: how long lines stay in each cache
	mpps     float64         // and the rate worked out so far
	out      resourceTimes
}

// access is one access line with its defaults filled in.
type access struct {
	*program.Access
	mem     *memoryIndex
	engine  *engineIndex
	span    int64
	stride  int64
	lock    int                // index of the lock whose section it is in, or -1
	missing float64            // misses of the cache a packet
	miss    [maxCaches]float64 // of the rule cores: probability that an access misses the cache
	near    float64            // and that another core has taken the line, of the same tile
	far     float64            // or of another
	fresh   float64            // and of these that it lies in that core's first cache
	nearAt  int                // cache that the former miss
	farAt   int                // and the latter, and those before it
	gap     float64            // between two of a packet, µs
	blocked float64            // share of its lines that wait for the window's first
	slow    float64            // and more where it waits for a line of another core
	word    bool               // of a lock, not of the program's arrays
	byLine  [maxLines]ranking  // of a Zipf array

	// Of the rule resources, µs a packet.
	first  *access // to the same array
	line   float64 // of the first: the array's hottest line
	same   float64 // more at the front for a command to the line of the one before
	repeat float64 // of the front's time on the hottest line; of the first: by all
}

// Predict returns what the model expects of p under t: the mirror of
// Driver.Measure. Its error is the user's: a memory, operation or base that the
// model has not, or more cores than the base uses.
func (m *Model) Predict(p Program, t Traffic, o Options) (Prediction, error) {
	if m.Chains != nil {
		return m.chains(p, t, o)
	}
	x, err := m.prepared()
	if err != nil {
		return Prediction{}, fault.Inputf("model of board %s: %w", m.Board, err)
	}
	rule := o.Rule
	if rule == "" {
		rule = m.DefaultRule
	}
	if !slices.Contains(Rules, rule) {
		return Prediction{}, fault.Inputf("rule %q; the rules are %v", rule, Rules)
	}
	j := jobs.Get().(*job)
	defer jobs.Put(j)
	*j = job{x: x, p: p, t: t}
	if err := m.resolve(j, o); err != nil {
		return Prediction{}, err
	}
	switch rule {
	case RuleResources:
		err = m.resources(j, &j.out)
	case RuleCores:
		if o.Returns > 0 {
			return Prediction{}, fault.Inputf("rule %s does not know packets that come back from a host", rule)
		}
		err = m.coreLaw(j, &j.out)
	default:
		err = m.compose(j, rule, &j.out)
	}
	if err != nil {
		return Prediction{}, err
	}
	out := Prediction{Board: m.Board, Model: m.ID(), Rule: rule, Program: p.Name, Seed: m.Seed}
	m.conclude(j, &j.out, &out, o)
	return out, nil
}

// jobs are reused, so that a brief prediction allocates nothing.
var jobs = sync.Pool{New: func() any { return new(job) }}

// conclude turns the bounds into the prediction.
func (m *Model) conclude(j *job, times *resourceTimes, out *Prediction, o Options) {
	capacity := times.mpps
	out.Mpps = capacity
	if rate := j.t.RateMpps; rate > 0 {
		out.Mpps = min(rate, capacity)
		out.DroppedMpps = rate - out.Mpps
	}
	for l := range j.p.Locks {
		// Cora drops packets when a flow offers more than the lock takes
		if offered := max(j.t.RateMpps, out.Mpps); times.tLock[l] > 0 && out.Lock == "" &&
			times.bottleneck == times.locksAt+l && times.flow[l]*offered > 0.999*times.tLock[l] {
			out.Lock = j.p.Locks[l].Name
		}
	}
	out.Bottleneck = times.name(j.x, times.bottleneck, &j.p)
	rel := times.rel
	if e := j.x.rules[out.Rule]; e != nil {
		rel = math.Hypot(rel, e.p95(&j.p)/100)
	} else {
		rel = math.Hypot(rel, meanTo95*m.Quality.MAPE/100)
	}
	if out.DroppedMpps == 0 && j.t.RateMpps > 0 {
		// the offered rate is served in any case when it is below the capacity's interval
		out.Low, out.High = min(out.Mpps, capacity*math.Exp(-rel)), out.Mpps
	} else {
		out.Low, out.High = out.Mpps*math.Exp(-rel), out.Mpps*math.Exp(rel)
		if j.t.RateMpps > 0 {
			out.High = min(out.High, j.t.RateMpps)
		}
	}
	if o.Brief {
		return
	}
	out.Utilisation = make(map[string]float64, times.n)
	out.Explain = make([]Term, 0, times.n)
	for r := range times.n {
		if times.us[r] <= 0 {
			continue
		}
		name := times.name(j.x, r, &j.p)
		share := min(1, out.Mpps*times.us[r])
		out.Explain = append(out.Explain, Term{name, 1 / times.us[r], share})
		out.Utilisation[name] = share
	}
	for i, name := range times.partNames {
		if us := times.parts[i] / float64(j.cores); us > 0 {
			out.Explain = append(out.Explain, Term{name, 1 / us, min(1, out.Mpps*us)})
		}
	}
	slices.SortStableFunc(out.Explain, func(a, b Term) int { return cmp.Compare(a.Mpps, b.Mpps) })
	out.Warnings = times.warnings
	for _, l := range j.p.Locks {
		if l.Idiom != program.None && m.lock(l.Idiom, j.base.Name) == nil {
			out.Warnings = append(out.Warnings, "lock "+l.Name+" is taken to be free: the model knows no "+string(cmp.Or(l.Idiom, program.Spin))+" lock, measure the locks group")
		}
	}
}

// meanTo95 turns a mean absolute error into the half-width that holds 95 % of
// normally distributed errors: 1.96·√(π/2).
const meanTo95 = 2.456

// ID names the model in results.
func (m *Model) ID() string {
	if m.Suite == "" {
		return m.Board
	}
	return m.Board + "-" + m.Suite
}

// resourceTimes is the outcome of a rule: the time of one packet on each
// resource, locks last, and the rate that they allow together.
type resourceTimes struct {
	us         [maxResources + maxLocks]float64
	n          int
	leaves     []Group           // for the rules that bound leaves of the composition tree
	locksAt    int               // index in us of the program's first lock
	tLock      [maxLocks]float64 // rate of one element by lock, 0: does not bound
	flow       [maxLocks]float64 // packet share of the largest flow on one element
	mpps       float64
	rel        float64
	bottleneck int
	warnings   []string
	parts      [maxParts]float64 // of the rule cores: a core's time a packet by part
	partNames  []string
}

const maxLocks = 8

func (t *resourceTimes) name(x *index, r int, p *program.Program) string {
	if r >= t.locksAt {
		return "lock." + p.Locks[r-t.locksAt].Name
	}
	if r >= resFirst && t.leaves != nil {
		return t.leaves[r-resFirst].Name
	}
	return x.names[r]
}

// resolve fills the job in.
func (m *Model) resolve(j *job, o Options) error {
	x, p, t := j.x, &j.p, &j.t
	if err := m.resolveBase(j, p.Base); err != nil {
		return err
	}
	j.cores, j.threads, j.passes = j.base.Cores, j.base.Threads, 1+o.Returns
	if !(o.Returns >= 0) || math.IsInf(o.Returns, 0) {
		return fault.Inputf("%v returns a packet; expected 0 or more", o.Returns)
	}
	if o.Cores < 0 || o.Cores > j.base.Cores {
		return fault.Inputf("%d cores; base %s of board %s uses 1..%d", o.Cores, j.base.Name, m.Board, j.base.Cores)
	}
	if o.Cores > 0 {
		j.cores = o.Cores
	}
	if o.Threads > 0 {
		j.threads = o.Threads
	}
	j.packet = minPacket
	switch {
	case t.Sizes != nil:
		j.packet = t.Sizes.Mean()
	case t.PacketBytes > 0:
		j.packet = float64(t.PacketBytes)
	case p.PacketBytes > 0:
		j.packet = float64(p.PacketBytes)
	}
	j.flows = traffic.Flows{Count: 1}
	if p.Flows != nil {
		j.flows = *p.Flows
	}
	if t.Flows != nil {
		j.flows = *t.Flows
	}
	for kind, n := range p.Stateless {
		if i := slices.Index(program.Kinds, kind); i < 0 {
			return fault.Inputf("unknown kind of stateless operation %q; known are %v", kind, program.Kinds)
		} else if n > 0 && x.kinds[i] == nil {
			return fault.Inputf("the model has no cost of stateless %s operations: fit a run with the groups stateless and cores", kind)
		} else if !(n >= 0) {
			return fault.Inputf("%v stateless %s operations; expected 0 or more", n, kind)
		}
	}
	if len(p.Locks) > maxLocks {
		return fault.Inputf("%d locks in one program; at most %d are predicted", len(p.Locks), maxLocks)
	}
	j.accesses = j.buffer[:0]
	for i := range p.Accesses {
		if err := m.resolveAccess(j, &p.Accesses[i], -1); err != nil {
			return err
		}
	}
	for l := range p.Locks {
		lock := &p.Locks[l]
		if lock.Elements < 1 {
			return fault.Inputf("lock %s: %d elements; expected at least 1", lock.Name, lock.Elements)
		}
		for i := range lock.Section {
			if err := m.resolveAccess(j, &lock.Section[i], l); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Model) resolveBase(j *job, name string) error {
	if len(j.x.bases) == 0 {
		return fault.Inputf("the model of board %s has no base program", m.Board)
	}
	if name == "" {
		j.base, j.demands = j.x.bases[0], j.x.demands[0]
		return nil
	}
	for i, b := range j.x.bases {
		if b.Name == name {
			j.base, j.demands = b, j.x.demands[i]
			return nil
		}
	}
	cycles, err := strconv.ParseFloat(name, 64)
	if err != nil || !(cycles >= 0) || math.IsInf(cycles, 0) {
		names := make([]string, len(j.x.bases))
		for i, b := range j.x.bases {
			names[i] = b.Name
		}
		return fault.Inputf("base %q: the model has %v; a cycle count such as 1200 is possible too", name, names)
	}
	if m.ClockMHz <= 0 {
		return fault.Inputf("base %q: the model has no clock, so a base cannot be a cycle count", name)
	}
	j.custom = *j.x.bases[0]
	j.custom.Name = name
	j.custom.CoreUS = Value{Value: cycles / m.ClockMHz, Identified: true}
	j.custom.Demand = nil
	j.custom.BareMpps = Value{Value: 1 / max(1/j.custom.IOMpps.Value, j.custom.CoreUS.Value/float64(j.custom.Cores)), Identified: true}
	j.base = &j.custom
	return nil
}

// resolveAccess appends an access with the defaults that the board's
// description gives.
func (m *Model) resolveAccess(j *job, a *program.Access, lock int) error {
	if !(a.PerPacket >= 0) || math.IsInf(a.PerPacket, 0) {
		return fault.Inputf("access %s:%s:%s: %v accesses a packet; expected 0 or more", a.Memory, a.Op, a.Mode, a.PerPacket)
	}
	if a.Bytes < 4 || a.Bytes%4 != 0 || a.Bytes > program.MaxBytes {
		return fault.Inputf("access %s:%s:%s: %d bytes; allowed are 4, 8, …, %d", a.Memory, a.Op, a.Mode, a.Bytes, program.MaxBytes)
	}
	if a.PerPacket == 0 {
		return nil
	}
	mem := j.x.memory(a.Memory)
	if mem == nil {
		names := make([]string, len(m.Memories))
		for i := range m.Memories {
			names[i] = m.Memories[i].Name
		}
		return fault.Inputf("memory %q: the model of board %s has %v", a.Memory, m.Board, names)
	}
	e := mem.engine(a.Mode)
	if e == nil {
		return fault.Inputf("access %s:%s:%s: the model has no %s engine of %s", a.Memory, a.Op, a.Mode, a.Mode, a.Memory)
	}
	r := access{Access: a, mem: mem, engine: e, span: a.Span, stride: a.Stride, lock: lock}
	if r.span == 0 {
		r.span = mem.DefaultSpan
	}
	if r.stride == 0 {
		r.stride = mem.defaultStride(j.base.PerPacket, a.Bytes, r.span)
	}
	if r.span < 1 || r.stride < 1 {
		return fault.Inputf("access %s:%s:%s: span %d and stride %d; expected at least 1", a.Memory, a.Op, a.Mode, r.span, r.stride)
	}
	if most := (mem.Bytes-int64(a.Bytes))/r.stride + 1; mem.Bytes > 0 && r.span > most {
		if a.Span > 0 {
			return fault.Inputf("access %s:%s:%s: %d elements %d B apart are more than the %d B of %s; at most %d",
				a.Memory, a.Op, a.Mode, r.span, r.stride, mem.Bytes, mem.Name, most)
		}
		r.span = max(1, most)
	}
	j.accesses = append(j.accesses, r)
	return nil
}

// defaultStride mirrors what a board does with an access that names none:
// descriptor-driven programs lay elements 128 B apart in a small array and 32 B
// apart in a large one, others round the access up to a power of two, or to the
// memory's own stride.
func (m *Memory) defaultStride(perPacket bool, bytes int, span int64) int64 {
	const small = 8192
	if perPacket {
		if span <= small {
			return 128
		}
		return 32
	}
	s := int64(4)
	for s < int64(bytes) {
		s *= 2
	}
	return max(s, m.DefaultStride)
}
