// Package bluefield emulates a SmartNIC whose general-purpose cores run each
// packet to completion (class soc: BlueField-2) as a mechanism: an eSwitch and
// PCIe before a receive ring a core, cores with a window of outstanding line
// fills, set-associative caches by core, tile and board with their coherence, a
// DRAM channel, atomics as load-exclusive and store-exclusive that fail when the
// line is lost between them, and locks made of them. It holds no measured curve:
// every time comes from the board file.
package bluefield

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"nicprof/board"
	"nicprof/emu"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// Run emulates program p under traffic t. The program must have been resolved
// against the board and have passed its check.
func Run(ctx context.Context, b *board.Board, p program.Program, t traffic.Traffic, c emu.Config) (*emu.Result, error) {
	m, err := newMachine(b, p, t, c)
	if err != nil {
		return nil, err
	}
	return m.run(ctx)
}

// Levels of a soc board's memories.
const (
	levelL1 = iota
	levelL2
	levelLLC
	levelDRAM
)

// warmRounds packets of every core precede the measurement, after the caches
// have been filled.
const warmRounds = 16

// newMachine lays out one run.
func newMachine(b *board.Board, p program.Program, t traffic.Traffic, c emu.Config) (*machine, error) {
	m, base, err := layMachine(sim.New(), b, []program.Program{p}, c)
	if err != nil {
		return nil, err
	}
	length := max(1, c.Length)
	want, parallel := c.Packets, len(m.cores)
	m.warmRounds = warmRounds * length
	if want == 0 {
		want = 3000
		if m.contended() {
			want *= 4 // packets of cores that wait for each other vary much
		}
	}
	if t.RateMpps > 0 {
		parallel = 0
		m.warmRounds *= 60 // for the rings to fill, if they do
		if c.Packets == 0 {
			want = 24000
		}
	}
	m.meter.Expect(want*length, c.Batch, parallel)
	m.source = emu.NewSource(b, base, p, t, c.Seed, "bluefield")
	return m, nil
}

// layMachine builds a board that can run each of the programs, all of one base.
func layMachine(k *sim.Kernel, b *board.Board, programs []program.Program, c emu.Config) (*machine, board.Base, error) {
	base, err := b.Base(programs[0].Base)
	if err != nil {
		return nil, base, err
	}
	m := &machine{
		cycle:   1e6 / b.ClockMHz.Value,
		jitter:  b.Variability.Value,
		kernel:  k,
		issue:   sim.NewStream(c.Seed, "bluefield issue"),
		latency: sim.NewStream(c.Seed, "bluefield latency"),
		choice:  sim.NewStream(c.Seed, "bluefield element"),
		profile: c.Profile,
		program: programs[0].Name,
	}
	cores := int(base.Cores.Value)
	if c.Cores > 0 {
		cores = c.Cores
	}
	m.layCores(b, cores)
	m.layMemories(b)
	for _, p := range programs {
		m.starts = append(m.starts, int32(len(m.steps)))
		if err := m.compile(b, base, p); err != nil {
			return nil, base, err
		}
		m.steps[len(m.steps)-1].last = true
	}
	m.layPorts(b)
	m.prefill()
	return m, base, nil
}

// contended tells whether cores wait for each other's lines: those of locks, or of
// a few elements that all write.
func (m *machine) contended() bool {
	const fewElements = 64
	return len(m.locks) > 0 || slices.ContainsFunc(m.steps, func(s step) bool {
		return (s.kind == stepBulk || s.kind == stepAtomic) && s.op != program.Read &&
			m.arrays[s.array].shared && m.arrays[s.array].span <= fewElements
	})
}

func (m *machine) layCores(b *board.Board, n int) {
	window := int(b.Coherence.Window.Value)
	m.cores = make([]core, n)
	for i := range m.cores {
		c := &m.cores[i]
		c.id = int32(i)
		c.window = make([]sim.Time, window)
		c.watching, c.monitor = -1, -1
	}
	k := b.Coherence
	m.sameTile = sim.Time(k.SameTileNS.Value * float64(sim.Nanosecond))
	m.otherTile = sim.Time(k.OtherTileNS.Value * float64(sim.Nanosecond))
	m.retry = m.cycles(k.RetryCycles.Value)
}

// layMemories builds the caches of the tiles in use and the servers behind.
func (m *machine) layMemories(b *board.Board) {
	level := func(i int) *board.Memory { return &b.Memories[i] }
	m.lineBytes = int64(level(levelLLC).LineBytes.Value)
	cache := func(i int) *tags {
		l := level(i)
		return newTags(l.Bytes, m.lineBytes, int64(l.Ways.Value))
	}
	mates := int(level(levelL2).SharedBy.Value)
	m.caches = hierarchy{mates: mates, llc: cache(levelLLC)}
	tiles := (len(m.cores) + mates - 1) / mates
	for range tiles * mates {
		m.caches.l1 = append(m.caches.l1, cache(levelL1))
	}
	for range tiles {
		m.caches.l2 = append(m.caches.l2, cache(levelL2))
	}
	m.l2 = make([]sim.Server, tiles)
	perLine := func(i int) sim.Time {
		return sim.Time(float64(m.lineBytes)/level(i).Bandwidth.Value*float64(sim.Nanosecond) + 0.5)
	}
	m.l2Line, m.llcLine, m.dramLine = perLine(levelL2), perLine(levelLLC), perLine(levelDRAM)
	for i := range m.latencies {
		m.latencies[i] = m.cycles(level(i).Latency.Value)
	}
	for i := range m.l2 {
		m.meter.Watch("l2", 0, &m.l2[i])
	}
	m.meter.Watch("llc", m.latencies[levelLLC]/2, &m.llc)
	m.meter.Watch("dram", m.latencies[levelDRAM]/2, &m.dram)
}

// compile turns the program into the steps that every packet runs through.
func (m *machine) compile(b *board.Board, base board.Base, p program.Program) error {
	half := step{kind: stepWork, issue: m.cycles(base.Cycles.Value / 2), frame: []string{"base " + base.Name}}
	m.steps = append(m.steps, half)
	cycles := 0.0
	for _, kind := range program.Kinds {
		cycles += p.Stateless[kind] * b.Stateless[kind].Value
	}
	if cycles > 0 {
		m.steps = append(m.steps, step{kind: stepWork, issue: m.cycles(cycles), frame: []string{"stateless"}})
	}
	for _, a := range p.Accesses {
		if err := m.access(b, base, a, nil); err != nil {
			return err
		}
	}
	for _, l := range p.Locks {
		if err := m.lock(b, base, l); err != nil {
			return err
		}
	}
	half.drain = true // what is sent depends on what was read
	m.steps = append(m.steps, half)
	return nil
}

// access appends the step of one access line.
func (m *machine) access(b *board.Board, base board.Base, a program.Access, frame []string) error {
	if a.PerPacket == 0 {
		return nil
	}
	bm := b.Memory(a.Memory)
	if bm == nil || bm.Engine(a.Mode) == nil || bm.Engine(a.Mode).Command(a.Op) == nil {
		return fmt.Errorf("emu/bluefield: board %s has no %s:%s:%s", b.Name, a.Memory, a.Op, a.Mode)
	}
	e := bm.Engine(a.Mode)
	cmd := e.Command(a.Op)
	whole := math.Floor(a.PerPacket)
	s := step{
		kind: stepBulk, op: a.Op, times: int(whole), fraction: a.PerPacket - whole,
		first: m.cycles(base.AccessCycles.Value), bytes: int64(a.Bytes), array: m.array(bm, a.Span, a.Stride),
		frame: append(frame, fmt.Sprintf("%s %s %s %d B", a.Memory, a.Op, a.Mode, a.Bytes)),
	}
	s.command = min(s.bytes, int64(e.MaxBytes.Value))
	issue := cmd.PipeMin.Value
	if rate := cmd.PipeBytes.Value; rate > 0 {
		issue = max(issue, float64(s.command)/rate)
	}
	if a.Mode == program.Atomic {
		s.kind = stepAtomic
	} else {
		issue *= math.Ceil(float64(s.bytes) / float64(s.command))
	}
	s.issue = m.cycles(issue)
	if a.Popularity == "zipf" {
		s.zipf = traffic.NewZipf(a.Span, a.Alpha)
		s.scatter = traffic.NewPermutation(a.Span, uint64(s.array))
	}
	m.steps = append(m.steps, s)
	return nil
}

// array returns the array of that memory, span and stride, laid out after the
// others, a copy an instance of the memory.
func (m *machine) array(bm *board.Memory, span, stride int64) int {
	for i, a := range m.arrays {
		if a.memory == bm.Name && a.span == span && a.stride == stride {
			return i
		}
	}
	by := int(bm.SharedBy.Value)
	copies := int64((len(m.cores) + by - 1) / by)
	const align = 4096
	size := (span*stride + align - 1) / align * align
	m.arrays = append(m.arrays, array{
		memory: bm.Name, base: m.next, span: span, stride: stride, copies: copies, size: size, by: by,
		shared: by > m.caches.mates,
	})
	m.next += size * copies
	return len(m.arrays) - 1
}

// lock appends acquire, section and release of one lock array.
func (m *machine) lock(b *board.Board, base board.Base, l program.Lock) error {
	frame := []string{"lock " + l.Name}
	section := func() error {
		for _, a := range l.Section {
			if err := m.access(b, base, a, frame[:1:1]); err != nil {
				return err
			}
		}
		return nil
	}
	if l.Idiom == program.None {
		return section()
	}
	bm := b.Memory(b.Locks.Memory)
	e := bm.Engine(program.Atomic)
	lk := &lock{
		name: l.Name, idiom: l.Idiom, hash: l.Hash, words: make([]lockWord, l.Elements),
		array: m.array(bm, int64(l.Elements), int64(b.Locks.WordStride.Value)),
		spin:  m.cycles(b.Locks.SpinCycles.Value),
	}
	for i := range lk.words {
		lk.words[i].holder = -1
	}
	if text, ok := strings.CutPrefix(string(l.Idiom), "sleep-"); ok {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("emu/bluefield: lock %s: idiom %q", l.Name, l.Idiom)
		}
		lk.sleep = m.cycles(float64(n))
	}
	if i := slices.IndexFunc(m.locks, func(o *lock) bool { return o.name == l.Name }); i >= 0 {
		lk = m.locks[i] // another program of the board takes the same locks
	} else {
		m.locks = append(m.locks, lk)
	}
	m.steps = append(m.steps, step{
		kind: stepAcquire, lock: lk, first: m.cycles(base.LockCycles.Value), issue: m.cycles(e.TestSet.PipeMin.Value),
		frame: append(frame[:1:1], "acquire"),
	})
	if err := section(); err != nil {
		return err
	}
	m.steps = append(m.steps, step{
		kind: stepRelease, lock: lk, issue: m.cycles(e.Write.PipeMin.Value), frame: append(frame[:1:1], "release"),
	})
	return nil
}

// layPorts prepares the eSwitch and PCIe.
func (m *machine) layPorts(b *board.Board) {
	m.pciePerByte = 8000 / b.PCIe.LargeReadGbps.Value
	m.meter.Watch("eswitch", 0, &m.eswitch)
	m.meter.Watch("pcie.in", 0, &m.pcieIn)
	m.meter.Watch("pcie.out", 0, &m.pcieOut)
}

// prefill brings the caches near their steady state without time: the elements
// of the arrays that fit into the last level, the most popular last, by the cores
// that use them; and where not all fit into the L2s, elements as packets draw
// them, so that arrays compete.
func (m *machine) prefill() {
	var users []*step
	for i := range m.steps {
		if s := &m.steps[i]; s.kind == stepBulk || s.kind == stepAtomic {
			users = append(users, s)
		}
	}
	l1, l2, llc := m.lines(levelL1), m.lines(levelL2), m.lines(levelLLC)
	var footprint int64
	for _, s := range users {
		a := &m.arrays[s.array]
		lines := a.span * ((s.bytes + m.lineBytes - 1) / m.lineBytes)
		footprint += lines * a.copies
		if lines > llc {
			continue
		}
		each := len(m.cores) // cores that take the elements in turn
		switch {
		case lines <= l1:
			each = 1
		case lines <= l2:
			each = m.caches.mates
		}
		for rank := a.span - 1; rank >= 0; rank-- {
			i := rank
			if s.zipf != nil {
				i = s.scatter.At(rank)
			}
			for first := 0; first < len(m.cores); first += each {
				m.fetch(s, min(first+int(rank)%each, len(m.cores)-1), i)
			}
		}
	}
	if footprint <= l2 {
		return
	}
	draws := l2 * int64(len(m.caches.l2))
	if footprint > llc {
		draws += llc
		if slices.ContainsFunc(users, func(s *step) bool { return s.op != program.Read }) {
			draws += llc // modified lines pass through the L2s and then the last level
		}
	}
	// What the last level holds is steady once all of it has come anew; accesses that
	// seldom miss it get there slowly, and change little.
	const most = 24 // accesses for each line of the last level
	replaced := int64(0)
	draw := sim.NewStream(uint64(footprint), "bluefield prefill")
	for n := int64(0); n < draws || footprint > llc && replaced < llc && n < most*llc; {
		for c := range m.cores {
			for _, s := range users {
				for range m.count(s, draw) {
					replaced += m.fetch(s, c, m.element(s, draw))
					n++
				}
			}
			n++ // accesses may be rare
		}
	}
}

// lines is the number of lines that a cache of a level holds.
func (m *machine) lines(level int) int64 {
	t := m.caches.llc
	switch level {
	case levelL1:
		t = m.caches.l1[0]
	case levelL2:
		t = m.caches.l2[0]
	}
	return int64(len(t.entries))
}

// fetch takes an element through the caches without time, and returns how many lines
// came from the DRAM.
func (m *machine) fetch(s *step, core int, i int64) (far int64) {
	a := &m.arrays[s.array]
	addr := a.at(core, i)
	for line := addr / m.lineBytes; line <= (addr+s.bytes-1)/m.lineBytes; line++ {
		if from, _ := m.caches.access(core, line, s.op != program.Read, a.shared); from == fromDRAM {
			far++
		}
	}
	return far
}
