// Package nfp emulates a Netronome NFP as a mechanism: a packet-I/O server,
// microengines that run contexts cooperatively and swap on memory commands,
// memories with bulk and atomic engines (pipeline, banks, busy lines), a cache
// before the DRAM, and locks whose spinning goes through the same engines as
// the work. It holds no measured curve: every time comes from the board file.
package nfp

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"nicprof/board"
	"nicprof/emu"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// Config, Result, Use and Stack are those of every emulator.
type (
	Config = emu.Config
	Result = emu.Result
	Use    = emu.Use
	Stack  = emu.Stack
)

// ingressBuffer is the number of packets that wait for a context before the
// packet-I/O block drops, when traffic has a rate.
const ingressBuffer = 256

// Run emulates program p under traffic t. The program must have been resolved
// against the board and have passed its check.
func Run(ctx context.Context, b *board.Board, p program.Program, t traffic.Traffic, c Config) (*Result, error) {
	m, err := newMachine(b, p, t, c)
	if err != nil {
		return nil, err
	}
	return m.run(ctx)
}

// newMachine lays out one run.
func newMachine(b *board.Board, p program.Program, t traffic.Traffic, c Config) (*machine, error) {
	m, base, err := layMachine(sim.New(), b, []program.Program{p}, c)
	if err != nil {
		return nil, err
	}
	length := max(1, c.Length)
	m.warmRounds = warmRounds * length
	if t.RateMpps > 0 {
		m.warmPackets = 6000 * length // for the ingress buffer to fill, if it does
	}
	want, contexts := c.Packets, m.cores*m.threads
	if want == 0 {
		want = 3000
	}
	if t.RateMpps > 0 {
		contexts = 0
		if c.Packets == 0 {
			want = 24000
		}
	}
	m.meter.Expect(want*length, c.Batch, contexts)
	if slices.ContainsFunc(p.Locks, spins) {
		m.gatherRounds = gatherRounds * length
		m.gatherTime = gatherTime * sim.Time(length)
	}
	m.source = emu.NewSource(b, base, p, t, c.Seed, "nfp")
	return m, nil
}

// layMachine builds a card that can run each of the programs, all of one base.
func layMachine(k *sim.Kernel, b *board.Board, programs []program.Program, c Config) (*machine, board.Base, error) {
	base, err := b.Base(programs[0].Base)
	if err != nil {
		return nil, base, err
	}
	m := &machine{
		cycle:     1e6 / b.ClockMHz.Value,
		jitter:    b.Variability.Value,
		cores:     int(base.Cores.Value),
		threads:   int(base.Threads.Value),
		perPacket: base.Index == "packet",
		kernel:    k,
		issue:     sim.NewStream(c.Seed, "nfp issue"),
		latency:   sim.NewStream(c.Seed, "nfp latency"),
		choice:    sim.NewStream(c.Seed, "nfp element"),
		profile:   c.Profile,
		program:   programs[0].Name,
	}
	if c.Cores > 0 {
		m.cores = c.Cores
	}
	if c.Threads > 0 {
		m.threads = c.Threads
	}
	m.meter.Watch("io", 0, &m.io)
	m.layMemories(b, base, programs)
	for _, p := range programs {
		m.starts = append(m.starts, int32(len(m.steps)))
		if err := m.compile(b, base, p); err != nil {
			return nil, base, err
		}
	}
	m.layContexts()
	return m, base, nil
}

// The warm-up takes warmRounds packets of every context, and with locks that
// spin also, until the contexts have gathered at the hottest one, gatherRounds
// or gatherTime. A ticket lock's queue is there after a round; over thousands of
// rounds its order drifts until neighbours share a microengine, a convoy that no
// run here is long enough to settle.
const (
	warmRounds   = 3
	gatherRounds = 40
	gatherTime   = 1500 * sim.Microsecond
)

func spins(l program.Lock) bool { return l.Idiom != program.None && l.Idiom != program.Ticket }

// layMemories builds the memories that the programs or their base use.
func (m *machine) layMemories(b *board.Board, base board.Base, programs []program.Program) {
	used := map[string]bool{}
	for _, d := range base.Demand {
		used[d.Memory] = true
	}
	mark := func(as []program.Access) {
		for _, a := range as {
			used[a.Memory] = true
		}
	}
	for _, p := range programs {
		mark(p.Accesses)
		for _, l := range p.Locks {
			used[b.Locks.Memory] = true
			mark(l.Section)
		}
	}
	for i := range b.Memories {
		bm := &b.Memories[i]
		if !used[bm.Name] {
			continue
		}
		copies := 1
		if bm.PerIsland {
			copies = int(b.Islands.Value)
		}
		for range copies {
			m.layMemory(bm)
		}
	}
}

func (m *machine) layMemory(bm *board.Memory) {
	mem := &memory{
		name:      bm.Name,
		half:      m.cycles(bm.Latency.Value / 2),
		lineBytes: int64(bm.LineBytes.Value),
		bankBytes: int64(bm.BankBytes.Value),
		banks:     make([]sim.Server, int(bm.Banks.Value)),
		shared:    bm.SharedFront,
	}
	m.memories = append(m.memories, mem)
	if k := bm.Cache; k != nil {
		mem.cache = newCache(int64(k.Bytes.Value), int64(k.LineBytes.Value), int64(k.Ways.Value))
		mem.missLat = m.cycles(k.MissLatency.Value)
		mem.missRead = m.cycles(k.ReadMiss.Value)
		mem.missWrite = m.cycles(k.WriteMiss.Value)
		mem.missAdd = m.cycles(k.AddMiss.Value)
		mem.missMore = m.cycles(k.ExtraLine.Value)
		m.meter.Watch(mem.name+".dram", mem.half, &mem.dram)
	}
	for j := range bm.Engines {
		be := &bm.Engines[j]
		e := &engine{
			mem:      mem,
			lastLine: -1,
			inFlight: make([]sim.Time, 0, int(be.Queue.Value)),
			id:       int32(len(m.queues)),
		}
		m.queues = append(m.queues, e)
		mem.engines[modeIndex(be.Mode)] = e
		name := mem.name
		if mem.shared {
			e.front = &mem.front
		} else {
			e.front = &e.own[0]
			name += "." + string(be.Mode)
		}
		m.meter.Watch(name, mem.half, e.front)
		e.reads = e.front
		if be.Duplex {
			e.reads = &e.own[1]
			m.meter.Watch(name, mem.half, e.reads)
		}
	}
	for j := range mem.banks {
		m.meter.Watch(mem.name+".bank", mem.half, &mem.banks[j])
	}
}

func modeIndex(mode program.Mode) int {
	if mode == program.Atomic {
		return 1
	}
	return 0
}

// memory returns the instances of a memory: one, or one an island.
func (m *machine) memory(name string) []*memory {
	var all []*memory
	for _, mem := range m.memories {
		if mem.name == name {
			all = append(all, mem)
		}
	}
	return all
}

// compile turns the program into the steps that every packet runs through.
func (m *machine) compile(b *board.Board, base board.Base, p program.Program) error {
	swaps := max(2, int(base.Swaps.Value)) // receive and transmit at least
	chunk := m.cycles(base.Cycles.Value / float64(swaps))
	var demands []demand
	for _, d := range base.Demand {
		mem := m.memory(d.Memory)[0]
		demands = append(demands, demand{
			engine: mem.engines[modeIndex(program.Mode(d.Mode))],
			cost:   cost{pipe: m.cycles(d.PipeCycles.Value), bank: m.cycles(d.BankCycles.Value)},
			each:   d.Commands.Value / float64(swaps),
		})
	}
	baseStep := step{kind: stepBase, issue: chunk, demands: demands, frame: []string{"base " + base.Name}}
	for range (swaps + 1) / 2 {
		m.steps = append(m.steps, baseStep)
	}
	if cycles := statelessCycles(b, p); cycles > 0 {
		m.steps = append(m.steps, step{kind: stepIssue, issue: m.cycles(cycles), frame: []string{"stateless"}})
	}
	for _, a := range p.Accesses {
		if err := m.access(b, base, a, []string{accessFrame(a)}); err != nil {
			return err
		}
	}
	for _, l := range p.Locks {
		if err := m.lock(b, base, l); err != nil {
			return err
		}
	}
	for range swaps / 2 {
		m.steps = append(m.steps, baseStep)
	}
	m.steps[len(m.steps)-1].last = true
	return nil
}

func statelessCycles(b *board.Board, p program.Program) float64 {
	total := 0.0
	for _, kind := range program.Kinds {
		total += p.Stateless[kind] * b.Stateless[kind].Value
	}
	return total
}

func accessFrame(a program.Access) string {
	return fmt.Sprintf("%s %s %s %d B", a.Memory, a.Op, a.Mode, a.Bytes)
}

// access appends the step of one access line.
func (m *machine) access(b *board.Board, base board.Base, a program.Access, frame []string) error {
	if a.PerPacket == 0 {
		return nil
	}
	bm := b.Memory(a.Memory)
	if bm == nil || bm.Engine(a.Mode) == nil || bm.Engine(a.Mode).Command(a.Op) == nil {
		return fmt.Errorf("emu/nfp: board %s has no %s:%s:%s", b.Name, a.Memory, a.Op, a.Mode)
	}
	cmd := bm.Engine(a.Mode).Command(a.Op)
	whole := math.Floor(a.PerPacket)
	s := step{
		kind: stepAccess, op: a.Op, atomic: a.Mode == program.Atomic, posted: cmd.Posted,
		times: int(whole), fraction: a.PerPacket - whole,
		issue: m.cycles(base.AccessCycles.Value), frame: frame, memory: make([]emu.Account, int(bm.Banks.Value)),
	}
	for _, mem := range m.memory(a.Memory) {
		s.engines = append(s.engines, mem.engines[modeIndex(a.Mode)])
		s.array = mem.array(a.Span, a.Stride)
	}
	largest := int(bm.Engine(a.Mode).MaxBytes.Value)
	for left := a.Bytes; left > 0; left -= largest {
		n := min(left, largest)
		s.sizes = append(s.sizes, int64(n))
		s.costs = append(s.costs, costOf(cmd, n, m.cycle))
	}
	if a.Popularity == "zipf" {
		s.zipf = traffic.NewZipf(a.Span, a.Alpha)
		s.scatter = traffic.NewPermutation(a.Span, uint64(s.array))
	}
	m.steps = append(m.steps, s)
	return nil
}

// lock appends acquire, section and release of one lock array.
func (m *machine) lock(b *board.Board, base board.Base, l program.Lock) error {
	spec := b.Locks
	bm := b.Memory(spec.Memory)
	mem := m.memory(spec.Memory)[0]
	e := mem.engines[modeIndex(program.Atomic)]
	timing := bm.Engine(program.Atomic)
	words := mem.arrays[mem.array(int64(l.Elements), int64(spec.WordStride.Value))]
	lk := &lock{
		name: l.Name, words: make([]lockWord, l.Elements), hash: l.Hash,
		base: words.base, stride: words.stride,
		test:  costOf(timing.TestSet, wordBytes, m.cycle),
		free:  costOf(timing.Write, wordBytes, m.cycle),
		spin:  m.cycles(spec.SpinCycles.Value),
		idiom: l.Idiom,
	}
	for i := range lk.words {
		lk.words[i].holder, lk.words[i].first, lk.words[i].last = -1, -1, -1
	}
	if text, ok := cutSleep(l.Idiom); ok {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("emu/nfp: lock %s: idiom %q", l.Name, l.Idiom)
		}
		lk.sleep = m.cycles(float64(n))
	}
	index := slices.IndexFunc(m.locks, func(o *lock) bool { return o.name == l.Name })
	if index < 0 { // else another program of the card takes the same locks
		index = len(m.locks)
		m.locks = append(m.locks, lk)
	}
	frame := []string{"lock " + l.Name}
	common := step{engines: []*engine{e}, op: program.Write, atomic: true, lock: index}
	acquire := common
	acquire.memory = make([]emu.Account, len(mem.banks))
	acquire.kind, acquire.issue, acquire.frame = stepAcquire, m.cycles(base.AccessCycles.Value+base.LockCycles.Value), append(frame, "acquire")
	m.steps = append(m.steps, acquire)
	for _, a := range l.Section {
		if err := m.access(b, base, a, append(frame[:1:1], accessFrame(a))); err != nil {
			return err
		}
	}
	release := common
	release.memory = make([]emu.Account, len(mem.banks))
	release.kind, release.issue, release.frame = stepRelease, m.cycles(base.AccessCycles.Value), append(frame[:1:1], "release")
	m.steps = append(m.steps, release)
	return nil
}

func cutSleep(i program.Idiom) (string, bool) {
	const prefix = "sleep-"
	if len(i) > len(prefix) && i[:len(prefix)] == prefix {
		return string(i[len(prefix):]), true
	}
	return "", false
}

func (m *machine) layContexts() {
	n := m.cores * m.threads
	m.contexts = make([]thread, n)
	m.engines = make([]microengine, m.cores)
	for i := range m.engines {
		m.engines[i] = microengine{running: -1, ready: make([]int32, 0, m.threads)}
	}
	m.idle = make([]int32, 0, n)
	m.prefill()
}

// prefill brings the cache near its steady state: the whole arrays where they
// fit together, else the most popular elements of each access, the most popular
// last, and then elements as packets draw them, so that arrays compete, until
// as many lines have missed as the cache holds.
func (m *machine) prefill() {
	for _, mem := range m.memories {
		if mem.cache == nil {
			continue
		}
		lines := int64(len(mem.cache.tags))
		var footprint int64
		for _, a := range mem.arrays {
			footprint += a.span * a.stride / mem.cache.lineBytes
		}
		var users []*step
		for i := range m.steps {
			if s := &m.steps[i]; s.kind == stepAccess && s.engines[0].mem == mem {
				users = append(users, s)
			}
		}
		if len(users) == 0 {
			continue
		}
		for rank := lines - 1; rank >= 0; rank-- {
			for _, s := range users {
				a := mem.arrays[s.array]
				if rank >= a.span {
					continue
				}
				i := rank
				if s.zipf != nil {
					i = s.scatter.At(rank)
				}
				mem.cache.touch(a.base+i*a.stride, s.bytes())
			}
		}
		if footprint <= lines {
			continue
		}
		const most = 20 // draws by lines of the cache, when hardly any misses
		draw := sim.NewStream(uint64(lines), "nfp prefill")
		missed, n := int64(0), int64(0)
		for missed < lines && n < most*lines {
			for _, s := range users {
				times := s.times
				if s.fraction > 0 && draw.Float64() < s.fraction {
					times++
				}
				if m.perPacket {
					times = min(times, 1)
				}
				for range times {
					missed += int64(mem.cache.touch(m.element(s, draw), s.bytes()))
				}
				n += int64(times) + 1
			}
		}
	}
}
