package microbench

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// Groups of workloads, in plan order.
const (
	GroupStateless = "stateless" // stateless operations by kind and count
	GroupSingle    = "single"    // one access: the rooflines
	GroupPairs     = "pairs"     // two accesses, and each of them alone
	GroupLocks     = "locks"     // lock elements, flows, idioms, sections
	GroupCores     = "cores"     // cores and contexts, bare and with accesses
	GroupSkew      = "skew"      // one access whose elements are Zipf
	GroupMix       = "mix"       // random programs of several accesses, stateless work and locks

	// Of an sNIC.
	GroupCredits  = "credits"  // credits of one network task, by packet size
	GroupChains   = "chains"   // network tasks in one chain, alone and saturated
	GroupParallel = "parallel" // network tasks side by side
	GroupSkip     = "skip"     // a chain of which packets use a part
	GroupPR       = "pr"       // configuration of a region, and context switch
)

// Groups lists the groups in plan order. Mixes are measured on run-to-completion
// boards only, those from credits on by an sNIC alone.
var Groups = slices.Concat(programGroups, chainGroups)

var (
	programGroups = []string{GroupStateless, GroupSingle, GroupPairs, GroupLocks, GroupCores, GroupSkew, GroupMix}
	chainGroups   = []string{GroupCredits, GroupChains, GroupParallel, GroupSkip, GroupPR}
)

// Suites lists the suites from the smallest on: quick takes seconds of
// processor time, standard minutes, full hours (shard it).
var Suites = []string{"quick", "standard", "full"}

// Workload is one measurement of a plan. Key is unique in the plan and reads
// GROUP/BASE/what/cores; Options.Seed derives from the plan's seed and the key
// alone, so that a workload measures the same in every plan that has it.
type Workload struct {
	Index   int             `json:"index"`
	Key     string          `json:"key"`
	Group   string          `json:"group"`
	Program program.Program `json:"program"`
	Traffic traffic.Traffic `json:"traffic"`
	Options Options         `json:"options"`
}

// Plan returns the workloads of a suite on a board, in the order in which
// their samples are stored. only names the groups wanted, nil all. Every
// workload passes b.Check. A suite or group that does not exist is an input
// fault.
//
// The single accesses are swept on the base "profiling", as the published
// rooflines were measured, and the stateless operations on "forward"; a board
// without them uses its first base. All other bases get their bare rate over
// cores and some single accesses, from which their own costs follow.
func Plan(b *board.Board, suite string, only []string, seed uint64) ([]Workload, error) {
	s, ok := suites[suite]
	if !ok {
		return nil, fault.Inputf("suite %q is unknown; expected %s", suite, strings.Join(Suites, ", "))
	}
	if len(b.Bases) == 0 {
		return nil, fault.Inputf("board %s has no base program: nothing to measure", b.Name)
	}
	for _, g := range only {
		if groups := groupsOf(b); !slices.Contains(groups, g) {
			return nil, fault.Inputf("board %s has no group %q of workloads; expected some of %s", b.Name, g, strings.Join(groups, ","))
		}
	}
	p := planner{suite: s, board: b, only: only, seed: seed, seen: map[string]bool{}}
	p.sweep, p.plain = b.Bases[0], b.Bases[0]
	for _, base := range b.Bases {
		switch base.Name {
		case "profiling":
			p.sweep = base
		case "forward":
			p.plain = base
		}
	}
	switch {
	case b.Class == classNet:
		p.onInterface(suite)
	case RunToCompletion(b):
		p.onCores(suite)
	case b.FPGA != nil:
		p.onRegions(suite)
	default:
		p.stateless()
		p.single()
		p.pairs()
		if b.Locks.Memory != "" {
			p.locks()
		}
		p.cores()
		p.skew()
	}
	if p.err != nil {
		return nil, p.err
	}
	return p.plan, nil
}

// planHash identifies a plan with its options.
func planHash(plan []Workload) string {
	h := sha256.New()
	e := json.NewEncoder(h)
	for i := range plan {
		if err := e.Encode(&plan[i]); err != nil {
			panic(err) // plans hold finite numbers and no functions
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// suite sizes the sweeps.
type suite struct {
	precision float64
	runs      int

	maxCommands float64 // a packet of a single access, 0: no limit; a large atomic access is several

	sizes       []int     // bytes of single accesses on the sweep's base
	intensities []float64 // of single accesses on the default span
	spanSizes   []int     // bytes of single accesses on the other spans
	spanInt     []float64
	smallSpans  []int64
	cacheSpans  []float64 // spans in caches: bytes touched over cache bytes
	lowCores    []lowCore // few cores: per-access cost apart from the memory's roof

	plainSizes []int // the same on the plain base
	plainInt   []float64
	otherInt   []float64 // and on the remaining bases, at one size

	splits    []float64 // of pairIntensity accesses, those of the pair's first
	readsOnly bool      // pair engines by their reads alone

	counts     map[string][]float64 // stateless operations by kind
	countCores []int

	elements      []int     // lock elements, with 1000 equal flows
	idiomElements []int     // the same with other idioms
	sectElements  []int     // the same with sections, and with Zipf flows
	sectOps       []float64 // reads, and as many writes, of a section
	flows         []int     // flows, with 256 elements
	zipf          []float64

	coreSteps int   // points of a scan over cores
	accCores  int   // points of a scan over cores with accesses
	threads   []int // contexts a core

	alphas    []float64
	skewInt   []float64
	skewSpans []int64 // beside the default span and the largest
}

// lowCore is a measurement on a few cores at one intensity.
type lowCore struct {
	cores     int
	intensity float64
}

// pairIntensity is the accesses a packet of a pair: enough to be past the knee
// of every engine's curve at its largest command.
const pairIntensity = 24

var suites = map[string]suite{
	"quick": {
		precision: 0.05, runs: 3, maxCommands: 40,
		sizes: []int{8, 128}, intensities: []float64{3, 20},
		spanSizes: []int{32}, spanInt: []float64{16}, smallSpans: []int64{1}, cacheSpans: []float64{96},
		lowCores:   []lowCore{{6, 8}},
		plainSizes: []int{32}, plainInt: []float64{12}, otherInt: []float64{12},
		splits: []float64{12}, readsOnly: true,
		counts: map[string][]float64{
			program.ALU: {400, 800}, program.Multiply: {200}, program.Modulo: {4}, program.Hash: {2},
			program.Checksum: {16}, program.Header: {16}},
		countCores: []int{0},
		elements:   []int{1, 16, 64}, idiomElements: []int{1, 4}, sectElements: []int{4}, sectOps: []float64{1}, flows: []int{8},
		coreSteps: 3, accCores: 2, threads: []int{1},
		alphas: []float64{0.99}, skewInt: []float64{16},
	},
	"standard": {
		precision: 0.02, runs: 3, maxCommands: 64,
		sizes: []int{4, 8, 16, 32, 64, 128}, intensities: []float64{1, 2, 4, 7, 10, 15, 25},
		spanSizes: []int{4, 8, 32, 128}, spanInt: []float64{4, 10, 25}, smallSpans: []int64{1, 8}, cacheSpans: []float64{1, 2, 96},
		lowCores:   []lowCore{{2, 4}, {6, 8}, {2, 16}},
		plainSizes: []int{4, 8, 32, 128}, plainInt: []float64{2, 6, 12, 20, 25}, otherInt: []float64{2, 4, 12, 18, 25},
		splits: []float64{6, 12, 18},
		counts: map[string][]float64{
			program.ALU: {50, 100, 200, 300, 400, 600, 800}, program.Multiply: {50, 100, 200, 300},
			program.Modulo: {1, 2, 4, 6}, program.Hash: {1, 2, 3}, program.Checksum: {4, 8, 16, 32}, program.Header: {4, 8, 16, 32}},
		countCores: []int{0, 10},
		elements:   []int{1, 2, 4, 8, 16, 24, 32, 40, 48, 52, 56, 64, 96, 128, 256}, idiomElements: []int{1, 2, 4, 8, 16, 32, 64}, sectElements: []int{1, 8, 32, 128}, sectOps: []float64{1, 2},
		flows: []int{1, 2, 4, 8, 16, 32, 64, 250}, zipf: []float64{0.6, 0.99, 1.2},
		coreSteps: 14, accCores: 6, threads: []int{1, 2},
		alphas: []float64{0.6, 0.99, 1.2}, skewInt: []float64{5, 20}, skewSpans: []int64{64},
	},
	"full": {
		precision: 0.005, runs: 8,
		sizes: []int{4, 8, 12, 16, 24, 32, 48, 64, 96, 128}, intensities: upTo(25),
		spanSizes: []int{4, 8, 12, 16, 24, 32, 48, 64, 96, 128}, spanInt: upTo(25),
		smallSpans: []int64{1, 2, 4, 8, 64, 1024}, cacheSpans: []float64{1, 1.5, 2, 8, 96},
		lowCores:   []lowCore{{1, 4}, {2, 4}, {2, 16}, {6, 8}, {12, 8}, {25, 12}},
		plainSizes: []int{4, 8, 16, 32, 64, 128}, plainInt: []float64{1, 2, 4, 7, 10, 14, 19, 25},
		otherInt: []float64{1, 2, 4, 7, 10, 14, 19, 25},
		splits:   []float64{2, 6, 10, 12, 14, 18, 22},
		counts: map[string][]float64{
			program.ALU: by(25, 800), program.Multiply: by(25, 400), program.Modulo: by(1, 10), program.Hash: by(1, 8),
			program.Checksum: by(2, 40), program.Header: by(2, 40)},
		countCores:    []int{0, 1, 10, 25},
		elements:      []int{1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 80, 96, 128, 192, 256},
		idiomElements: []int{1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256}, sectElements: []int{1, 2, 4, 8, 16, 32, 64, 128, 256}, sectOps: []float64{1, 2, 4},
		flows: []int{1, 2, 4, 8, 16, 24, 32, 40, 48, 52, 56, 64, 100, 200, 500}, zipf: []float64{0.6, 0.8, 0.99, 1.2},
		coreSteps: 54, accCores: 14, threads: []int{1, 2, 3, 4, 6},
		alphas: []float64{0.4, 0.6, 0.8, 0.99, 1.1, 1.2, 1.5}, skewInt: []float64{2, 5, 10, 16, 20, 25}, skewSpans: []int64{64, 512},
	},
}

// upTo returns 1, 2, … n.
func upTo(n int) []float64 { return by(1, float64(n)) }

// by returns step, 2·step, … last.
func by(step, last float64) []float64 {
	var v []float64
	for x := step; x <= last; x += step {
		v = append(v, x)
	}
	return v
}

// planner collects the workloads of one plan.
type planner struct {
	suite
	board *board.Board
	only  []string
	seed  uint64
	sweep board.Base // of accesses and locks
	plain board.Base // of stateless operations
	seen  map[string]bool
	plan  []Workload
	err   error
}

// part of a board: 0 cores or threads are all of the base's.
type part struct{ cores, threads int }

var whole part

// add appends a workload that saturates the board. One that two sweeps share is
// measured once.
func (p *planner) add(group, base string, prog program.Program, on part) {
	p.addAt(0, group, base, prog, on)
}

// addAt appends a workload at an offered rate, Mpps, 0 to saturate.
func (p *planner) addAt(mpps float64, group, base string, prog program.Program, on part) {
	if p.only != nil && !slices.Contains(p.only, group) {
		return
	}
	prog.Base = base
	prog = p.board.Resolve(prog)
	key := strings.Join([]string{group, base, describe(prog)}, "/")
	if on.cores > 0 {
		key += fmt.Sprintf("/%d-cores", on.cores)
	}
	if on.threads > 0 {
		key += fmt.Sprintf("/%d-threads", on.threads)
	}
	if mpps > 0 {
		key += fmt.Sprintf("/%g-mpps", mpps)
	}
	if p.seen[key] || p.err != nil {
		return
	}
	p.seen[key] = true
	if err := p.board.Check(prog, on.cores, on.threads); err != nil {
		p.err = fault.Inputf("board %s cannot run its own sweep: workload %s: %w", p.board.Name, key, err)
		return
	}
	p.plan = append(p.plan, Workload{
		Index:   len(p.plan),
		Key:     key,
		Group:   group,
		Program: prog,
		Traffic: traffic.Traffic{RateMpps: mpps},
		Options: Options{
			Cores:   on.cores,
			Threads: on.threads,
			// 53 bits, which every reader of JSON keeps.
			Seed:      sim.NewStream(p.seed, "workload/"+key).Uint64() >> 11,
			Precision: p.precision,
			MaxRuns:   p.runs,
		},
	})
}

// describe names what a program does, base apart.
func describe(p program.Program) string {
	var s []string
	for _, kind := range program.Kinds {
		if n := p.Stateless[kind]; n > 0 {
			s = append(s, kind+"="+strconv.FormatFloat(n, 'g', -1, 64))
		}
	}
	for _, a := range p.Accesses {
		s = append(s, a.String())
	}
	for _, l := range p.Locks {
		s = append(s, l.String())
	}
	if len(p.Chain) > 0 {
		s = append(s, DescribeChain(p))
	}
	if len(s) == 0 {
		s = append(s, "bare")
	}
	what := strings.Join(s, "+")
	if f := p.Flows; f != nil && f.Count > 1 {
		what += "/" + strconv.Itoa(f.Count) + "-flows"
		if f.Popularity != "" && f.Popularity != "uniform" {
			what += ":" + f.Popularity + ":" + strconv.FormatFloat(f.Alpha, 'g', -1, 64)
		}
	}
	return what
}

// target is a memory operation that the board has.
type target struct {
	memory  *board.Memory
	access  program.Access // Memory, Op and Mode
	command int            // bytes of the engine's largest command
}

func (p *planner) targets() []target {
	var ts []target
	for _, m := range p.board.Swept() {
		for j := range m.Engines {
			e := &m.Engines[j]
			for _, op := range opsOf(e) {
				ts = append(ts, target{
					memory:  m,
					access:  program.Access{Memory: m.Name, Op: op, Mode: e.Mode},
					command: min(int(e.MaxBytes.Value), 128),
				})
			}
		}
	}
	return ts
}

func (t target) of(bytes int, perPacket float64, span int64) program.Access {
	a := t.access
	a.Bytes, a.PerPacket, a.Span = bytes, perPacket, span
	return a
}

func one(a program.Access) program.Program {
	return program.Program{Accesses: []program.Access{a}}
}

// spans returns small below the memory's default span and, above it, the spans
// of t.of(bytes) on a base that touch the multiples of the memory's cache,
// rounded down to a power of two of elements.
func (p *planner) spans(t target, base string, bytes int, small []int64, multiples []float64) []int64 {
	var spans []int64
	for _, span := range small {
		if span < t.memory.DefaultSpan {
			spans = append(spans, span)
		}
	}
	if t.memory.Cache == nil {
		return spans
	}
	probe := one(t.of(bytes, 1, 1<<20)) // the stride may depend on the span
	probe.Base = base
	stride := p.board.Resolve(probe).Accesses[0].Stride
	for _, k := range multiples {
		touched := min(int64(k*t.memory.Cache.Bytes.Value), t.memory.Bytes)
		limit := (touched-int64(bytes))/stride + 1
		span := int64(1)
		for span*2 <= limit {
			span *= 2
		}
		if span > t.memory.DefaultSpan {
			spans = append(spans, span)
		}
	}
	return spans
}

// largest is the last of the suite's multiples of a cache.
func (p *planner) largest() []float64 { return p.cacheSpans[len(p.cacheSpans)-1:] }

func (p *planner) stateless() {
	for _, kind := range program.Kinds {
		if _, ok := p.board.Stateless[kind]; !ok {
			continue
		}
		for _, cores := range p.countCores {
			p.add(GroupStateless, p.plain.Name, program.Program{}, few(p.plain, cores))
			for _, n := range p.counts[kind] {
				p.add(GroupStateless, p.plain.Name, program.Program{Stateless: program.Stateless{kind: n}}, few(p.plain, cores))
			}
		}
	}
}

// few is n cores, or the whole board where a base does not have more; 0 is the
// whole board too.
func few(b board.Base, n int) part {
	if n >= int(b.Cores.Value) {
		return whole
	}
	return part{cores: n}
}

func (p *planner) single() {
	for _, base := range p.board.Bases {
		p.add(GroupSingle, base.Name, program.Program{}, whole) // intensity 0 of all curves
	}
	for _, t := range p.targets() {
		for _, bytes := range p.sizes {
			p.curve(t, p.sweep, bytes, t.memory.DefaultSpan, p.intensities, p.lowCores)
		}
		for _, bytes := range p.spanSizes {
			for _, span := range p.spans(t, p.sweep.Name, bytes, p.smallSpans, p.cacheSpans) {
				p.curve(t, p.sweep, bytes, span, p.spanInt, nil)
			}
		}
		for _, base := range p.board.Bases {
			switch base.Name {
			case p.sweep.Name:
			case p.plain.Name:
				for _, bytes := range p.plainSizes {
					p.curve(t, base, bytes, t.memory.DefaultSpan, p.plainInt, p.lowCores[:1])
					for _, span := range p.spans(t, base.Name, bytes, p.smallSpans, p.largest()) {
						p.curve(t, base, bytes, span, p.plainInt, nil)
					}
				}
			default:
				p.curve(t, base, min(32, t.command), t.memory.DefaultSpan, p.otherInt, p.lowCores[:1])
			}
		}
	}
}

func (p *planner) curve(t target, base board.Base, bytes int, span int64, intensities []float64, low []lowCore) {
	most := math.Inf(1)
	if p.maxCommands > 0 {
		most = math.Floor(p.maxCommands / math.Ceil(float64(bytes)/float64(t.command)))
	}
	for _, i := range intensities {
		p.add(GroupSingle, base.Name, one(t.of(bytes, min(i, most), span)), whole)
	}
	for _, l := range low {
		p.add(GroupSingle, base.Name, one(t.of(bytes, l.intensity, span)), few(base, l.cores))
	}
}

// pairs measures two accesses together in several splits and, so that the
// group decides by itself who shares a bottleneck, each access alone at the
// same intensities.
func (p *planner) pairs() {
	ts := p.targets()
	if p.readsOnly {
		ts = slices.DeleteFunc(ts, func(t target) bool { return t.access.Op != program.Read })
	}
	for _, t := range ts {
		for _, i := range append(slices.Clone(p.splits), pairIntensity) {
			p.add(GroupPairs, p.sweep.Name, one(t.of(t.command, i, t.memory.DefaultSpan)), whole)
		}
	}
	for n, a := range ts {
		for _, b := range ts[n:] {
			for _, i := range p.splits {
				if a.access == b.access && 2*i > pairIntensity {
					continue // the mirror image of a split before
				}
				p.add(GroupPairs, p.sweep.Name, program.Program{Accesses: []program.Access{
					a.of(a.command, i, a.memory.DefaultSpan),
					b.of(b.command, pairIntensity-i, b.memory.DefaultSpan),
				}}, whole)
			}
		}
	}
}

// idioms are the ways of taking a lock beside the spin.
var idioms = []program.Idiom{"sleep-200", "sleep-1000", program.Ticket}

// equalFlows is many more flows than lock elements, so that the elements are
// hit about equally.
const equalFlows = 1000

func (p *planner) locks() {
	lock := func(base board.Base, l program.Lock, f traffic.Flows) {
		l.Name = "lock"
		p.add(GroupLocks, base.Name, program.Program{Locks: []program.Lock{l}, Flows: &f}, whole)
	}
	uniform := traffic.Flows{Count: equalFlows}
	sections := append([][]program.Access{nil}, p.sections()...)

	for _, section := range sections { // the lock-free version of each
		for _, base := range p.board.Bases {
			lock(base, program.Lock{Elements: 1, Idiom: program.None, Section: section}, uniform)
		}
	}
	for _, k := range p.elements {
		lock(p.sweep, program.Lock{Elements: k, Idiom: program.Spin}, uniform)
	}
	for _, k := range p.idiomElements {
		for _, base := range p.board.Bases {
			if base.Name != p.sweep.Name {
				lock(base, program.Lock{Elements: k, Idiom: program.Spin}, uniform)
			}
			for _, idiom := range idioms {
				lock(base, program.Lock{Elements: k, Idiom: idiom}, uniform)
			}
		}
	}
	for _, k := range p.sectElements {
		for _, section := range sections[1:] {
			lock(p.sweep, program.Lock{Elements: k, Idiom: program.Spin, Section: section}, uniform)
			lock(p.sweep, program.Lock{Elements: k, Idiom: program.Ticket, Section: section}, uniform)
		}
	}
	const many = 256
	for _, n := range p.flows {
		lock(p.sweep, program.Lock{Elements: many, Idiom: program.Spin}, traffic.Flows{Count: n})
	}
	for _, alpha := range p.zipf {
		skewed := traffic.Flows{Count: equalFlows, Popularity: "zipf", Alpha: alpha}
		for _, k := range p.sectElements {
			lock(p.sweep, program.Lock{Elements: k, Idiom: program.Spin}, skewed)
		}
	}
}

// sections are critical sections of reads and as many writes in every memory,
// through its atomic engine.
func (p *planner) sections() [][]program.Access {
	var s [][]program.Access
	for _, m := range p.board.Swept() {
		e := m.Engine(program.Atomic)
		if e == nil || e.Read == nil || e.Write == nil {
			continue
		}
		for _, n := range p.sectOps {
			read := program.Access{Memory: m.Name, Op: program.Read, Mode: program.Atomic, Bytes: 4, PerPacket: n}
			write := read
			write.Op = program.Write
			s = append(s, []program.Access{read, write})
		}
	}
	return s
}

func (p *planner) cores() {
	for _, base := range p.board.Bases {
		for _, n := range steps(int(base.Cores.Value), p.coreSteps) {
			p.add(GroupCores, base.Name, program.Program{}, part{cores: n})
		}
	}
	for _, base := range []board.Base{p.sweep, p.plain} {
		fewer := slices.DeleteFunc(slices.Clone(p.threads), func(n int) bool { return n >= int(base.Threads.Value) })
		for _, n := range fewer {
			p.add(GroupCores, base.Name, program.Program{}, part{threads: n})
		}
		for _, t := range p.targets() {
			access := func(perPacket float64, span int64, on part) {
				p.add(GroupCores, base.Name, one(t.of(min(32, t.command), perPacket, span)), on)
			}
			if t.access.Op == program.Read {
				for _, n := range steps(int(base.Cores.Value), p.accCores) {
					access(10, t.memory.DefaultSpan, part{cores: n})
				}
			}
			// Few contexts hide no latency: hits, and misses where there is
			// a cache.
			big := p.spans(t, base.Name, min(32, t.command), nil, p.largest())
			for _, span := range append(big, t.memory.DefaultSpan) {
				for _, n := range fewer {
					access(6, span, part{threads: n})
				}
			}
		}
	}
}

// steps returns at most n whole numbers from 1 to last, evenly spread.
func steps(last, n int) []int {
	var v []int
	for i := range n {
		v = append(v, 1+(last-1)*i/max(1, n-1))
	}
	return slices.Compact(v)
}

func (p *planner) skew() {
	for _, base := range []board.Base{p.sweep, p.plain} {
		for _, t := range p.targets() {
			bytes := min(32, t.command)
			spans := append(p.spans(t, base.Name, bytes, p.skewSpans, p.largest()), t.memory.DefaultSpan)
			for _, span := range spans {
				for _, alpha := range p.alphas {
					for _, i := range p.skewInt {
						a := t.of(bytes, i, span)
						a.Popularity, a.Alpha = "zipf", alpha
						p.add(GroupSkew, base.Name, one(a), whole)
					}
				}
			}
		}
	}
}
