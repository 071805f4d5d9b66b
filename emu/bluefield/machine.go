package bluefield

import (
	"context"
	"math"

	"nicprof/emu"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// Event kinds of the machine.
const (
	evCore    = iota // Actor: core that goes on
	evArrival        // a packet reaches the board (traffic with a rate)
)

type stepKind uint8

const (
	stepWork    stepKind = iota // cycles of the core
	stepBulk                    // loads or stores
	stepAtomic                  // acquiring loads, releasing stores, exclusive pairs
	stepAcquire                 // lock
	stepRelease                 // unlock
)

// step is one entry of the program that every packet runs through.
type step struct {
	kind     stepKind
	last     bool // of the packet
	drain    bool // after all accesses before
	op       program.Op
	first    sim.Time // issue before the first command of an access
	issue    sim.Time // of one command
	bytes    int64    // of an access
	command  int64    // largest command
	array    int
	times    int     // accesses a packet, whole
	fraction float64 // and the chance of one more
	zipf     *traffic.Zipf
	scatter  *traffic.Permutation
	lock     *lock
	frame    []string

	issued emu.Account
	found  [sources]emu.Account
}

// array is a range of elements, a copy for every by cores.
type array struct {
	memory       string
	base         int64
	span, stride int64
	copies, size int64
	by           int
	shared       bool // between tiles
}

// at is the address of element i for a core.
func (a *array) at(core int, i int64) int64 {
	return a.base + int64(core/a.by)*a.size + i*a.stride
}

// phase is where a core is within a step.
type phase uint8

const (
	phaseStart phase = iota
	phaseIssue       // the step's work or an access's address
	phaseSend        // the command's request
	phaseStore       // store-exclusive
	phaseTest        // the lock word has been loaded
)

// core runs one packet to completion.
type core struct {
	id     int32
	step   int32
	phase  phase
	idle   bool // without a packet
	more   int32
	addr   int64 // next byte of the access
	rest   int64 // bytes left of it
	flow   int64
	word   int32 // of the lock being taken or held
	ticket int64

	window []sim.Time // completion of the latest line fills, a ring
	oldest int
	latest sim.Time // completion of all accesses so far

	monitor  int64    // line of the exclusive monitor, -1: none
	lost     sim.Time // when the line leaves, if that is known
	watching int64    // line whose loss ends a spin, -1: none

	ring  sim.Line[packet]
	began sim.Time
	bytes float64
	gone  sim.Time // when its last packet left
	busy  sim.Time
}

// packet is one in a receive ring.
type packet struct {
	came, ready sim.Time
	bytes       float64
}

const (
	never  = sim.Time(math.MaxInt64)
	buffer = 256 // packets in the eSwitch
	// ringSize is the receive descriptors of a core: fewer than a driver's, as a
	// simulated trial is a small part of a second and must not end before a rate
	// that is too high has filled them.
	ringSize = 32
)

// machine is one run.
type machine struct {
	cycle   float64 // ps
	jitter  float64
	program string

	kernel  *sim.Kernel
	issue   *sim.Stream
	latency *sim.Stream
	choice  *sim.Stream

	cores     []core
	caches    hierarchy
	lineBytes int64
	latencies [levelDRAM + 1]sim.Time
	l2        []sim.Server
	llc, dram sim.Server
	l2Line    sim.Time // of the server
	llcLine   sim.Time
	dramLine  sim.Time
	sameTile  sim.Time
	otherTile sim.Time
	retry     sim.Time
	transit   [transitSlots]inTransit
	hotLine   sim.Time // busy time of the busiest line
	retries   int64    // store-exclusives that failed

	arrays []array
	next   int64 // next free address
	steps  []step
	starts []int32 // by program: its first step
	locks  []*lock

	eswitch, pcieIn, pcieOut sim.Server
	source                   emu.Source
	pciePerByte              float64 // ps
	dealt                    int     // core that the next packet goes to
	meter                    emu.Meter

	warmRounds int
	done       int
	profile    bool
	station    *Station // who gives and takes packets, nil: the source
	watch      func()   // after each event, for tests
}

func (m *machine) cycles(n float64) sim.Time { return sim.Time(n*m.cycle + 0.5) }

// run is the event loop. It allocates nothing per event.
func (m *machine) run(ctx context.Context) (*emu.Result, error) {
	if !m.source.Saturates() {
		for i := range m.cores {
			m.cores[i].idle = true
		}
		m.kernel.At(m.source.Gap(), evArrival, 0, 0)
	} else {
		for range ringSize {
			for i := range m.cores {
				m.refill(&m.cores[i])
			}
		}
		for i := range m.cores {
			m.take(&m.cores[i])
		}
	}
	const poll = 1 << 14
	for n := 0; !m.meter.Full(); n++ {
		if n%poll == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		ev, ok := m.kernel.Next()
		if !ok {
			break
		}
		m.handle(ev)
		if m.watch != nil {
			m.watch()
		}
	}
	return m.finish(), nil
}

func (m *machine) handle(ev sim.Event) {
	switch ev.Kind {
	case evCore:
		m.proceed(&m.cores[ev.Actor])
	case evArrival:
		m.arrive()
	}
}

// receive passes a packet through the eSwitch and PCIe into a core's ring.
func (m *machine) receive(c *core, bytes float64, service sim.Time) {
	now := m.kernel.Now()
	m.pcieIn.Serve(m.eswitch.Serve(now, service)+service, sim.Time(bytes*m.pciePerByte))
	c.ring.Push(packet{came: now, ready: m.pcieIn.Free(), bytes: bytes})
}

// refill receives a packet when there is always another.
func (m *machine) refill(c *core) {
	bytes, service := m.source.Packet()
	m.receive(c, bytes, service)
}

// arrive is a packet reaching the board at its offered rate. The eSwitch deals
// packets over the cores' rings in turn.
func (m *machine) arrive() {
	now := m.kernel.Now()
	m.kernel.At(now+m.source.Gap(), evArrival, 0, 0)
	if m.meter.On {
		m.meter.Offered++
	}
	c := &m.cores[m.dealt]
	if m.dealt++; m.dealt == len(m.cores) {
		m.dealt = 0
	}
	bytes, service := m.source.Packet()
	if c.ring.Len() >= ringSize || m.eswitch.Free()-now > buffer*service {
		if m.meter.On {
			m.meter.Dropped++
		}
		return
	}
	m.receive(c, bytes, service)
	if c.idle {
		c.idle = false
		m.take(c)
	}
}

// take starts a core on the next packet of its ring.
func (m *machine) take(c *core) {
	if c.ring.Len() == 0 {
		c.idle = true
		return
	}
	p := c.ring.Pop()
	if m.source.Saturates() {
		m.refill(c) // its descriptor is free again
		p.came = p.ready
	}
	c.began, c.bytes = p.came, p.bytes
	c.flow = m.source.Flow()
	c.step, c.phase = 0, phaseStart
	m.kernel.At(max(m.kernel.Now(), p.ready), evCore, c.id, 0)
}

// after has the core go on at t.
func (m *machine) after(c *core, t sim.Time, p phase) {
	c.phase = p
	m.kernel.At(t, evCore, c.id, 0)
}

// spend has the core work for a time, and then go on.
func (m *machine) spend(c *core, s *step, d sim.Time, p phase) {
	d = m.issue.Jitter(d, m.jitter)
	c.busy += d
	if m.profile && m.meter.On {
		s.issued.Visits++
		s.issued.Busy += d
	}
	m.after(c, m.kernel.Now()+d, p)
}

// proceed runs a core until it has to wait or time has to pass.
func (m *machine) proceed(c *core) {
	for {
		s := &m.steps[c.step]
		var waits bool
		switch s.kind {
		case stepWork:
			waits = m.work(c, s)
		case stepBulk:
			waits = m.bulk(c, s)
		case stepAtomic:
			waits = m.atomic(c, s)
		case stepAcquire:
			waits = m.acquire(c, s)
		case stepRelease:
			waits = m.release(c, s)
		}
		if waits {
			return
		}
		if s.last {
			m.leave(c)
			return
		}
		c.phase = phaseStart
		c.step++
	}
}

// drained tells whether all accesses of the core are complete; if not, the core
// goes on with the phase when they are.
func (m *machine) drained(c *core) bool {
	if c.latest <= m.kernel.Now() {
		return true
	}
	m.after(c, c.latest, c.phase)
	return false
}

func (m *machine) work(c *core, s *step) (waits bool) {
	if c.phase != phaseStart {
		return false
	}
	if s.drain && !m.drained(c) {
		return true
	}
	m.spend(c, s, s.issue, phaseIssue)
	return true
}

// count draws how often a packet makes an access.
func (m *machine) count(s *step, from *sim.Stream) int {
	if s.fraction > 0 && from.Float64() < s.fraction {
		return s.times + 1
	}
	return s.times
}

// aim draws the access's element.
func (m *machine) aim(c *core, s *step) {
	c.addr = m.arrays[s.array].at(int(c.id), m.element(s, m.choice))
	c.rest = s.bytes
}

func (m *machine) element(s *step, from *sim.Stream) int64 {
	a := &m.arrays[s.array]
	switch {
	case s.zipf != nil:
		return s.scatter.At(s.zipf.Draw(from.Rand))
	case a.span > 1:
		return from.Int64N(a.span)
	}
	return 0
}

// bulk is loads or stores. Each takes a place in the core's window until its
// line is there, and the core goes on while a place is free.
func (m *machine) bulk(c *core, s *step) (waits bool) {
	for {
		switch c.phase {
		case phaseStart:
			if c.more = int32(m.count(s, m.choice)); c.more == 0 {
				return false
			}
			c.phase = phaseIssue
		case phaseIssue:
			m.aim(c, s)
			m.spend(c, s, s.first+s.issue, phaseSend)
			return true
		default:
			if free := c.window[c.oldest]; free > m.kernel.Now() {
				m.after(c, free, phaseSend)
				return true
			}
			line := c.addr / m.lineBytes
			m.fill(c, m.request(c, s, line, s.op != program.Read, m.arrays[s.array].shared))
			inLine := (line+1)*m.lineBytes - c.addr
			c.addr += inLine
			if c.rest -= inLine; c.rest > 0 {
				continue
			}
			c.phase = phaseIssue
			if c.more--; c.more == 0 {
				return false
			}
		}
	}
}

// fill notes the completion of an access in the core's window.
func (m *machine) fill(c *core, done sim.Time) {
	c.window[c.oldest] = done
	c.oldest++
	if c.oldest == len(c.window) {
		c.oldest = 0
	}
	c.latest = max(c.latest, done)
}

// atomic is a run of commands of at most a word: loads that acquire (nothing
// passes them), stores that release (they pass nothing), exclusive pairs that do
// both.
func (m *machine) atomic(c *core, s *step) (waits bool) {
	for {
		switch c.phase {
		case phaseStart:
			if c.more = int32(m.count(s, m.choice)); c.more == 0 {
				return false
			}
			c.rest = 0
			c.phase = phaseIssue
		case phaseIssue:
			if s.op != program.Read && !m.drained(c) {
				return true
			}
			d := s.issue
			if s.op == program.Add {
				d /= 2 // the other half follows the load
			}
			if c.rest == 0 {
				m.aim(c, s)
				d += s.first
			}
			m.spend(c, s, d, phaseSend)
			return true
		case phaseSend:
			done := m.request(c, s, c.addr/m.lineBytes, s.op != program.Read, m.arrays[s.array].shared)
			switch s.op {
			case program.Read:
				m.after(c, done, phaseTest)
				return true
			case program.Write:
				m.fill(c, done)
				c.phase = phaseTest
			default:
				m.exclusive(c, s, c.addr/m.lineBytes, done)
				return true
			}
		case phaseStore:
			if !m.stored(c, s) {
				return true
			}
			c.phase = phaseTest
		default: // the command is complete
			c.addr += s.command
			c.rest -= s.command
			c.phase = phaseIssue
			if c.rest <= 0 {
				c.rest = 0
				if c.more--; c.more == 0 {
					return false
				}
			}
		}
	}
}

// exclusive sets the core's monitor on a line that it has from done on; the
// store-exclusive follows.
func (m *machine) exclusive(c *core, s *step, line int64, done sim.Time) {
	c.monitor, c.lost = line, never
	d := m.issue.Jitter(s.issue/2, m.jitter)
	c.busy += d
	m.after(c, done+d, phaseStore)
}

// stored tells whether a store-exclusive succeeds; if not, the core goes back to
// the load.
func (m *machine) stored(c *core, s *step) bool {
	lost := c.lost
	c.monitor = -1
	if lost > m.kernel.Now() {
		return true
	}
	m.retries++
	m.spend(c, s, m.retry, phaseSend)
	return false
}

// leave ends a packet and gives its core the next one.
func (m *machine) leave(c *core) {
	now := m.kernel.Now()
	m.pcieOut.Serve(now, sim.Time(c.bytes*m.pciePerByte))
	if m.station != nil {
		m.station.left(c)
		return
	}
	m.done++
	switch {
	case m.meter.On:
		m.meter.Leave(now, m.pcieOut.Free()-c.began, now-c.gone)
	case m.done >= m.warmRounds*len(m.cores):
		m.begin(now)
	}
	c.gone = now
	m.take(c)
}
