package microbench

import (
	"fmt"
	"math"
	"slices"

	"nicprof/board"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// Classes of boards whose cores run a packet to completion. Their memories are
// cache levels, from the core on, and accesses hit the level that the program's
// arrays fit in together, so these boards are swept over working sets.
const (
	classSoC  = "soc"
	classHost = "host"
	classNet  = "netif" // packet I/O on an interface; its bases are the paths
)

// RunToCompletion says whether a board's cores run a packet to completion,
// through caches.
func RunToCompletion(b *board.Board) bool { return b.Class == classSoC || b.Class == classHost }

// groupsOf lists the groups that a board's plans have, in plan order.
func groupsOf(b *board.Board) []string {
	switch {
	case b.Class == classNet:
		return []string{GroupSingle, GroupCores}
	case RunToCompletion(b):
		return programGroups
	case b.FPGA != nil:
		return chainGroups
	}
	return slices.DeleteFunc(slices.Clone(programGroups), func(g string) bool { return g == GroupMix })
}

// coreSuite sizes the sweeps of a run-to-completion board.
type coreSuite struct {
	precision float64
	runs      int

	bulk, atomic []int     // bytes of single accesses
	intensities  []float64 // on the default span, all cores
	oneCore      []float64 // the same on one core: the cost apart from what is shared

	spanBulk   []int     // bytes of accesses on the other working sets
	spanAtomic []int     // the same
	spanInt    float64   // their intensity
	beyond     float64   // working sets between two levels are this factor apart
	few        []int64   // elements that all cores contend for
	fewInt     []float64 // intensities there, on all cores and on one

	splits    []float64 // of corePairIntensity accesses, those of a pair's first
	readsOnly bool      // pair engines by their reads alone

	counts     map[string][]float64 // stateless operations by kind
	countCores []int

	perCore      []float64 // lock elements as multiples of the cores
	elements     []int     // and in numbers
	sectionModes int       // sections of each memory: atomic, then bulk
	flows        []int
	zipf         []float64
	work         []float64 // ALU operations outside the lock

	alphas  []float64
	skewInt []float64

	mixes int
}

// corePairIntensity is the accesses a packet of a pair.
const corePairIntensity = 16

var coreSuites = map[string]coreSuite{
	"quick": {
		precision: 0.05, runs: 3,
		bulk: []int{8, 128}, atomic: []int{8}, intensities: []float64{4, 16}, oneCore: []float64{16},
		spanBulk: []int{64}, spanAtomic: []int{8}, spanInt: 12, beyond: 1 << 20, few: []int64{1}, fewInt: []float64{8},
		splits: []float64{8}, readsOnly: true,
		counts: map[string][]float64{
			program.ALU: {400}, program.Multiply: {200}, program.Modulo: {20}, program.Hash: {4},
			program.Checksum: {16}, program.Header: {16}},
		countCores: []int{0},
		perCore:    []float64{1}, elements: []int{1, 64}, sectionModes: 1, flows: []int{4}, zipf: []float64{0.99}, work: []float64{200},
		alphas: []float64{0.99}, skewInt: []float64{12},
		mixes: 30,
	},
	"standard": {
		precision: 0.02, runs: 3,
		bulk: []int{4, 8, 16, 32, 64, 128}, atomic: []int{4, 8, 64}, intensities: []float64{1, 4, 10, 25}, oneCore: []float64{10},
		spanBulk: []int{8, 64}, spanAtomic: []int{8}, spanInt: 12, beyond: 4, few: []int64{1, 8, 64}, fewInt: []float64{2, 12},
		splits: []float64{4, 12},
		counts: map[string][]float64{
			program.ALU: {50, 200, 400, 800}, program.Multiply: {50, 100, 300}, program.Modulo: {2, 10, 40}, program.Hash: {1, 4, 16},
			program.Checksum: {4, 16, 32}, program.Header: {4, 16, 32}},
		countCores: []int{0, 1},
		perCore:    []float64{0.5, 1, 1.5, 2, 4}, elements: []int{1, 3, 16, 64, 1024}, sectionModes: 2,
		flows: []int{1, 2, 4, 8, 16, 64}, zipf: []float64{0.6, 0.99, 1.2}, work: []float64{100, 400},
		alphas: []float64{0.6, 0.99, 1.2}, skewInt: []float64{4, 16},
		mixes: 250,
	},
	"full": {
		precision: 0.01, runs: 5,
		bulk: []int{4, 8, 12, 16, 24, 32, 48, 64, 96, 128}, atomic: []int{4, 8, 16, 32, 64, 128}, intensities: upTo(25), oneCore: []float64{1, 2, 4, 8, 16, 25},
		spanBulk: []int{4, 8, 32, 64, 128}, spanAtomic: []int{4, 8, 64}, spanInt: 12, beyond: math.Sqrt2, few: []int64{1, 2, 4, 8, 16, 32, 64, 256}, fewInt: []float64{1, 4, 12, 25},
		splits: []float64{2, 4, 6, 8, 10, 12, 14},
		counts: map[string][]float64{
			program.ALU: by(50, 1600), program.Multiply: by(25, 400), program.Modulo: by(2, 40), program.Hash: by(1, 20),
			program.Checksum: by(2, 40), program.Header: by(2, 40)},
		countCores: []int{0, 1, 2},
		perCore:    []float64{0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4, 8}, elements: []int{1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64, 128, 256, 512, 1024, 4096}, sectionModes: 2,
		flows: []int{1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 500}, zipf: []float64{0.4, 0.6, 0.8, 0.99, 1.1, 1.2, 1.5}, work: []float64{50, 100, 200, 400, 800},
		alphas: []float64{0.4, 0.6, 0.8, 0.99, 1.1, 1.2, 1.5}, skewInt: []float64{1, 4, 8, 16, 25},
		mixes: 2000,
	},
}

// corePlanner plans for a board whose cores run a packet to completion.
type corePlanner struct {
	*planner
	coreSuite
}

// onCores plans a run-to-completion board: single accesses over working sets
// inside, at and beyond each level, on all cores and on one; pairs of levels and
// modes; locks around as many elements as there are cores; and mixes.
func (p *planner) onCores(suite string) {
	c := corePlanner{p, coreSuites[suite]}
	if p.board.Class == classHost && suite == "standard" {
		// measured one at a time, 0.2 s each
		c.bulk, c.intensities, c.splits = []int{4, 16, 64, 128}, []float64{1, 6, 25}, []float64{8}
	}
	p.precision, p.runs = c.coreSuite.precision, c.coreSuite.runs
	c.stateless()
	c.single()
	c.pairs()
	if p.board.Locks.Memory != "" {
		c.locks()
	}
	c.cores()
	c.skew()
	c.mixes()
}

// onInterface plans a board of packet paths: the bare rate of each over cores.
func (p *planner) onInterface(suite string) {
	p.precision, p.runs = coreSuites[suite].precision, coreSuites[suite].runs
	for _, base := range p.board.Bases {
		p.add(GroupSingle, base.Name, program.Program{}, whole)
		for n := 1; n < int(base.Cores.Value); n *= 2 {
			p.add(GroupCores, base.Name, program.Program{}, part{cores: n})
		}
	}
}

func (c *corePlanner) stateless() {
	for _, kind := range program.Kinds {
		if _, ok := c.board.Stateless[kind]; !ok {
			continue
		}
		for _, cores := range c.countCores {
			c.add(GroupStateless, c.plain.Name, program.Program{}, few(c.plain, cores))
			for _, n := range c.counts[kind] {
				c.add(GroupStateless, c.plain.Name, program.Program{Stateless: program.Stateless{kind: n}}, few(c.plain, cores))
			}
		}
	}
}

// sizesOf returns the bytes of single accesses of a target.
func (c *corePlanner) sizesOf(t target, bulk, atomic []int) []int {
	if t.access.Mode == program.Atomic {
		return atomic
	}
	return bulk
}

func (c *corePlanner) single() {
	for _, base := range c.board.Bases {
		c.add(GroupSingle, base.Name, program.Program{}, whole)
		c.add(GroupSingle, base.Name, program.Program{}, few(base, 1))
	}
	for _, t := range c.targets() {
		for _, bytes := range c.sizesOf(t, c.bulk, c.atomic) {
			for _, i := range c.intensities {
				c.access(GroupSingle, c.sweep, t.of(bytes, i, 0), whole)
			}
			for _, i := range c.oneCore {
				c.access(GroupSingle, c.sweep, t.of(bytes, i, 0), few(c.sweep, 1))
			}
		}
		for _, bytes := range c.sizesOf(t, c.spanBulk, c.spanAtomic) {
			for _, span := range c.spans(t, bytes) {
				c.access(GroupSingle, c.sweep, t.of(bytes, c.spanInt, span), whole)
				c.access(GroupSingle, c.sweep, t.of(bytes, c.spanInt, span), few(c.sweep, 1))
			}
		}
		if c.takesFew(t) {
			for _, bytes := range c.sizesOf(t, c.spanBulk, c.spanAtomic) {
				for _, span := range c.few {
					for _, i := range c.fewInt {
						c.access(GroupSingle, c.sweep, t.of(bytes, i, span), whole)
						c.access(GroupSingle, c.sweep, t.of(bytes, i, span), few(c.sweep, 1))
					}
				}
			}
		}
		for _, base := range c.board.Bases {
			if base.Name != c.sweep.Name {
				c.access(GroupSingle, base, t.of(8, c.spanInt, 0), whole)
				c.access(GroupSingle, base, t.of(8, c.spanInt, 0), few(base, 1))
			}
		}
	}
}

// takesFew says whether few elements of t are measured: of the level next to the
// core, where accesses to one element depend on each other, and of the first
// level that all cores share, where they contend for the line.
func (c *corePlanner) takesFew(t target) bool {
	swept := c.board.Swept()
	if t.memory == swept[0] {
		return true
	}
	shared := slices.IndexFunc(swept, func(m *board.Memory) bool {
		return m.SharedBy.Value == 0 || m.SharedBy.Value >= c.board.Cores.Value
	})
	return shared >= 0 && t.memory == swept[shared]
}

// access adds one access, unless the memory is too small for it.
func (c *corePlanner) access(group string, base board.Base, a program.Access, on part) {
	c.addIfFits(group, base, one(a), on)
}

// addIfFits adds a workload, unless its arrays do not fit their memories: a
// level may hold few elements of the largest size.
func (c *corePlanner) addIfFits(group string, base board.Base, p program.Program, on part) {
	p.Base = base.Name
	if c.board.Check(c.board.Resolve(p), on.cores, on.threads) == nil {
		c.add(group, base.Name, p, on)
	}
}

// spans returns the elements of accesses to t of working sets from twice the
// level before on, a factor of the suite's apart, to the whole level.
func (c *corePlanner) spans(t target, bytes int) []int64 {
	below := int64(4096)
	for _, m := range c.board.Swept() {
		if m == t.memory {
			break
		}
		below = m.Bytes
	}
	probe := one(t.of(bytes, 1, 1))
	probe.Base = c.sweep.Name
	stride := c.board.Resolve(probe).Accesses[0].Stride
	var spans []int64
	last := (t.memory.Bytes-int64(bytes))/stride + 1
	for set := 2 * float64(below); set < 0.8*float64(t.memory.Bytes); set *= c.beyond {
		if span := int64(set) / stride; span > 1 && span < last {
			spans = append(spans, span)
		}
	}
	return append(spans, last)
}

// pairs measures two accesses together and each of them alone, of a line in bulk
// and of the largest command through the atomic engine.
func (c *corePlanner) pairs() {
	ts := c.targets()
	if c.readsOnly {
		ts = slices.DeleteFunc(ts, func(t target) bool { return t.access.Op != program.Read })
	}
	const line = 64
	of := func(t target, i float64) program.Access { return t.of(min(t.command, line), i, 0) }
	for _, t := range ts {
		c.access(GroupPairs, c.sweep, of(t, corePairIntensity), whole)
		for _, i := range c.splits {
			c.access(GroupPairs, c.sweep, of(t, i), whole)
			c.access(GroupPairs, c.sweep, of(t, corePairIntensity-i), whole)
		}
	}
	for n, a := range ts {
		for _, b := range ts[n:] {
			for _, i := range c.splits {
				if a.access == b.access && 2*i > corePairIntensity {
					continue // the mirror image of a split before
				}
				c.addIfFits(GroupPairs, c.sweep, program.Program{Accesses: []program.Access{of(a, i), of(b, corePairIntensity-i)}}, whole)
			}
		}
	}
}

// lockElements are numbers of lock elements around the core count, and others,
// ascending.
func (c *corePlanner) lockElements() []int {
	v := slices.Clone(c.elements)
	for _, k := range c.perCore {
		v = append(v, max(1, int(k*c.sweep.Cores.Value)))
	}
	slices.Sort(v)
	return slices.Compact(v)
}

func (c *corePlanner) locks() {
	lock := func(l program.Lock, f traffic.Flows, outside program.Program, on part) {
		l.Name = "lock"
		outside.Locks, outside.Flows = []program.Lock{l}, &f
		c.addIfFits(GroupLocks, c.sweep, outside, on)
	}
	uniform := traffic.Flows{Count: equalFlows}
	elements := c.lockElements()
	ends := []int{1, int(c.sweep.Cores.Value), elements[len(elements)-1]}
	var nothing program.Program

	for _, idiom := range append([]program.Idiom{program.None, program.Spin}, idiomsOf(c.board)...) {
		for _, k := range elements {
			if idiom != program.None || k == 1 {
				lock(program.Lock{Elements: k, Idiom: idiom}, uniform, nothing, whole)
			}
		}
		for _, k := range []int{1, elements[len(elements)-1]} { // nobody waits
			lock(program.Lock{Elements: k, Idiom: idiom}, uniform, nothing, few(c.sweep, 1))
		}
		for _, section := range c.sectionsOf() {
			for _, k := range ends[:2] {
				lock(program.Lock{Elements: k, Idiom: idiom, Section: section}, uniform, nothing, whole)
			}
		}
		for _, n := range c.work {
			for _, k := range ends {
				lock(program.Lock{Elements: k, Idiom: idiom}, uniform, program.Program{Stateless: program.Stateless{program.ALU: n}}, whole)
			}
		}
	}
	const many = 256
	for _, n := range c.flows {
		lock(program.Lock{Elements: many, Idiom: program.Spin}, traffic.Flows{Count: n}, nothing, whole)
	}
	for _, alpha := range c.zipf {
		skewed := traffic.Flows{Count: equalFlows, Popularity: "zipf", Alpha: alpha}
		for _, idiom := range append([]program.Idiom{program.Spin}, idiomsOf(c.board)...) {
			lock(program.Lock{Elements: many, Idiom: idiom}, skewed, nothing, whole)
		}
	}
}

// sectionsOf are critical sections of a read and a write in every memory, through
// one engine after the other.
func (c *corePlanner) sectionsOf() [][]program.Access {
	var s [][]program.Access
	for _, m := range c.board.Swept() {
		for _, mode := range []program.Mode{program.Atomic, program.Bulk}[:c.sectionModes] {
			e := m.Engine(mode)
			if e == nil || e.Read == nil || e.Write == nil {
				continue
			}
			read := program.Access{Memory: m.Name, Op: program.Read, Mode: mode, Bytes: 4, PerPacket: 1}
			write := read
			write.Op = program.Write
			s = append(s, []program.Access{read, write})
		}
	}
	return s
}

// cores scans the cores: bare, and with accesses to each level and a lock.
func (c *corePlanner) cores() {
	for _, base := range c.board.Bases {
		most := int(base.Cores.Value)
		for n := 1; n < most; n = min(2*n, max(n+1, most-1)) {
			c.add(GroupCores, base.Name, program.Program{}, part{cores: n})
		}
	}
	most := int(c.sweep.Cores.Value)
	for n := 2; n < most; n = min(2*n, max(n+1, most-1)) {
		for _, t := range c.targets() {
			c.access(GroupCores, c.sweep, t.of(min(t.command, 64), c.spanInt, 0), part{cores: n})
		}
		if c.board.Locks.Memory != "" {
			l := program.Lock{Name: "lock", Elements: 1, Idiom: program.Spin}
			c.add(GroupCores, c.sweep.Name, program.Program{Locks: []program.Lock{l}}, part{cores: n})
		}
	}
}

// skew measures Zipf elements of each level, in lines and in words.
func (c *corePlanner) skew() {
	for _, t := range c.targets() {
		for _, bytes := range c.sizesOf(t, c.spanBulk, c.spanAtomic) {
			for _, alpha := range c.alphas {
				for _, i := range c.skewInt {
					a := t.of(bytes, i, 0)
					a.Popularity, a.Alpha = "zipf", alpha
					c.access(GroupSkew, c.sweep, a, whole)
				}
			}
		}
	}
}

// mixes measures random programs: what a rule of composition is for. They come
// from the generator of a validation's programs, by a stream of the suite's own.
func (c *corePlanner) mixes() {
	for _, p := range Mixes(c.board, c.coreSuite.mixes, sim.NewStream(c.seed, fmt.Sprintf("mixes of %d", c.coreSuite.mixes))) {
		c.add(GroupMix, p.Base, p, whole)
	}
}
