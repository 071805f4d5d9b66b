package nfp

import (
	"context"
	"fmt"

	"nicprof/emu"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// Event kinds of the machine.
const (
	evReady   = iota // Actor: context that wants its microengine
	evIssued         // Actor: context whose issue chunk has ended
	evArrival        // a packet reaches the board (traffic with a rate)
	evAdmit          // Actor: engine whose queue has room for a waiting command
)

type stepKind uint8

const (
	stepBase    stepKind = iota // a chunk of the base program, then a swap
	stepIssue                   // stateless work, no swap
	stepAccess                  // memory commands
	stepAcquire                 // lock
	stepRelease                 // unlock
)

// demand is the base program's own posted commands at the end of a chunk.
type demand struct {
	engine *engine
	cost   cost
	each   float64
}

// step is one entry of the program that every packet runs through.
type step struct {
	kind     stepKind
	last     bool // of the packet
	op       program.Op
	atomic   bool
	posted   bool
	issue    sim.Time
	engines  []*engine // one, or one an island
	array    int
	times    int     // accesses a packet, whole
	fraction float64 // and the chance of one more
	sizes    []int64 // bytes of each command of one access
	costs    []cost
	zipf     *traffic.Zipf
	scatter  *traffic.Permutation
	lock     int
	demands  []demand
	frame    []string

	issued emu.Account   // on the microengine
	memory []emu.Account // by bank
}

func (s *step) bytes() int64 {
	var n int64
	for _, v := range s.sizes {
		n += v
	}
	return n
}

// lock is an array of lock words, served by the idiom that the program names.
type lock struct {
	name   string
	idiom  program.Idiom
	hash   bool
	words  []lockWord
	base   int64 // address of the first word
	stride int64
	test   cost // test_set, or the ticket's fetch-and-add
	free   cost // the releasing write
	spin   sim.Time
	sleep  sim.Time
}

const wordBytes = 4

func (l *lock) address(word int32) int64 { return l.base + int64(word)*l.stride }

// lockWord is one lock: its holder, and for tickets the queue of contexts.
type lockWord struct {
	holder      int32
	first, last int32
	held        sim.Time // total
	since       sim.Time
}

// thread is a hardware context working on one packet.
type thread struct {
	began   sim.Time // of the packet: handed over by packet I/O
	left    sim.Time // when its last packet left
	step    int32
	more    int32 // accesses left in the step
	command int32 // command within the access
	element int64 // address of the element
	word    int32 // of the lock being taken or held
	next    int32 // in a ticket queue
	flow    int64
	trying  bool     // spinning: the first attempt has been made
	ready   sim.Time // since when it has waited for its microengine or command
}

// microengine runs one context at a time; the others wait in ready.
type microengine struct {
	running int32
	ready   []int32
	busy    sim.Time
}

// machine is one run.
type machine struct {
	cycle     float64 // ps
	jitter    float64
	cores     int
	threads   int
	perPacket bool // one element a packet and access line
	program   string

	kernel  *sim.Kernel
	issue   *sim.Stream
	latency *sim.Stream
	choice  *sim.Stream

	memories []*memory
	queues   []*engine // by id
	steps    []step
	starts   []int32 // by program: its first step
	locks    []*lock
	contexts []thread
	engines  []microengine

	source  emu.Source
	io      sim.Server
	idle    []int32            // contexts without a packet (traffic with a rate)
	waiting sim.Line[sim.Time] // arrival times of packets without a context
	meter   emu.Meter

	warmRounds   int
	warmPackets  int
	gatherRounds int
	gatherTime   sim.Time
	done         int
	profile      bool
	station      *Station // who gives and takes packets, nil: the source
	watch        func()   // after each event, for tests
}

func (m *machine) cycles(n float64) sim.Time { return sim.Time(n*m.cycle + 0.5) }

// run is the event loop. It allocates nothing per event.
func (m *machine) run(ctx context.Context) (*Result, error) {
	if !m.source.Saturates() {
		for c := len(m.contexts) - 1; c >= 0; c-- {
			m.idle = append(m.idle, int32(c))
		}
		m.kernel.At(m.source.Gap(), evArrival, 0, 0)
	} else {
		// contexts in turn over the microengines, as the load balancer deals
		for t := range m.threads {
			for e := range m.cores {
				m.take(int32(e*m.threads + t))
			}
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
	case evReady:
		m.ready(ev.Actor)
	case evIssued:
		m.issued(ev.Actor)
	case evArrival:
		m.arrive()
	case evAdmit:
		m.admit(ev.Actor)
	}
}

// take gives a context its next packet from packet I/O, which is saturated.
func (m *machine) take(c int32) {
	m.assign(c, m.handOver())
}

// handOver passes a packet through packet I/O and returns when it is through.
func (m *machine) handOver() sim.Time {
	_, service := m.source.Packet()
	return m.io.Serve(m.kernel.Now(), service) + service
}

// arrive is a packet reaching the board at its offered rate.
func (m *machine) arrive() {
	now := m.kernel.Now()
	m.kernel.At(now+m.source.Gap(), evArrival, 0, 0)
	if m.meter.On {
		m.meter.Offered++
	}
	if n := len(m.idle); n > 0 {
		c := m.idle[n-1]
		m.idle = m.idle[:n-1]
		m.assign(c, m.handOver())
		m.contexts[c].began = now
		return
	}
	if m.waiting.Len() >= ingressBuffer {
		if m.meter.On {
			m.meter.Dropped++
		}
		return
	}
	m.waiting.Push(now)
}

// assign starts a packet on a context at a time.
func (m *machine) assign(c int32, at sim.Time) {
	m.contexts[c].began = at
	m.start(c, at, 0, m.source.Flow())
}

// start begins a program with a context's next packet.
func (m *machine) start(c int32, at sim.Time, program int, flow int64) {
	t := &m.contexts[c]
	t.flow = flow
	t.step = m.starts[program] - 1
	m.advance(c)
	m.kernel.At(at, evReady, c, 0)
}

// advance moves a context to its next step that has work.
func (m *machine) advance(c int32) {
	t := &m.contexts[c]
	for {
		t.step++
		s := &m.steps[t.step]
		t.trying = false
		switch s.kind {
		case stepAccess:
			t.more = int32(s.times)
			if s.fraction > 0 && m.choice.Float64() < s.fraction {
				t.more++
			}
			if t.more == 0 {
				continue
			}
			t.element = m.element(s, m.choice)
			t.command = 0
		case stepAcquire:
			l := m.locks[s.lock]
			if l.hash {
				t.word = int32(m.choice.IntN(len(l.words)))
			} else {
				t.word = int32(t.flow % int64(len(l.words)))
			}
		}
		return
	}
}

// element draws the address of an element of the step's array.
func (m *machine) element(s *step, from *sim.Stream) int64 {
	a := &s.engines[0].mem.arrays[s.array]
	var i int64
	switch {
	case s.zipf != nil:
		i = s.scatter.At(s.zipf.Draw(from.Rand))
	case a.span > 1:
		i = from.Int64N(a.span)
	}
	return a.base + i*a.stride
}

// ready queues a context for its microengine.
func (m *machine) ready(c int32) {
	e := &m.engines[int(c)/m.threads]
	m.contexts[c].ready = m.kernel.Now()
	if e.running >= 0 {
		e.ready = append(e.ready, c)
		return
	}
	m.dispatch(e, c)
}

// dispatch runs a context's next issue chunk.
func (m *machine) dispatch(e *microengine, c int32) {
	t := &m.contexts[c]
	s := &m.steps[t.step]
	d := s.issue
	if t.trying {
		d = m.locks[s.lock].spin
	}
	d = m.issue.Jitter(d, m.jitter)
	e.running = c
	e.busy += d
	if m.profile && m.meter.On {
		s.issued.Visits++
		s.issued.Busy += d
		s.issued.Wait += m.kernel.Now() - t.ready
	}
	m.kernel.After(d, evIssued, c, 0)
}

// issued is the end of an issue chunk: the context sends its command and swaps
// out, or goes on when there is nothing to wait for.
func (m *machine) issued(c int32) {
	e := &m.engines[int(c)/m.threads]
	s := &m.steps[m.contexts[c].step]
	now := m.kernel.Now()
	switch s.kind {
	case stepBase:
		for i := range s.demands {
			m.demand(&s.demands[i])
		}
		if s.last {
			m.leave(c)
		} else {
			m.advance(c)
			const swapCycles = 80 // header in CTM: 50-100 cycles
			m.kernel.At(now+m.latency.Jitter(m.cycles(swapCycles), m.jitter), evReady, c, 0)
		}
	case stepIssue:
		m.advance(c)
		m.goOn(e, c)
		return
	default:
		m.contexts[c].ready = now
		if q := m.engine(s, c); q.mustWait(now) {
			q.pending.Push(c)
			if q.pending.Len() == 1 {
				m.kernel.At(q.vacancy(now), evAdmit, q.id, 0)
			}
			break
		}
		back := m.execute(c)
		if back == now {
			m.goOn(e, c)
			return
		}
		if back > now {
			m.kernel.At(back, evReady, c, 0)
		}
	}
	m.next(e)
}

// engine returns the engine that a context's command of a step goes to.
func (m *machine) engine(s *step, c int32) *engine {
	if len(s.engines) == 1 {
		return s.engines[0]
	}
	return s.engines[int(c)/m.threads%len(s.engines)]
}

// goOn keeps a context on its microengine.
func (m *machine) goOn(e *microengine, c int32) {
	m.contexts[c].ready = m.kernel.Now()
	m.dispatch(e, c)
}

// admit lets the first waiting command into an engine's queue.
func (m *machine) admit(id int32) {
	e := m.queues[id]
	c := e.pending.Pop()
	if back := m.execute(c); back >= 0 {
		m.kernel.At(back, evReady, c, 0)
	}
	if e.pending.Len() > 0 {
		m.kernel.At(e.vacancy(m.kernel.Now()), evAdmit, id, 0)
	}
}

// execute performs the context's command now. It returns when the context is
// ready again: now for a command that is not waited for, -1 when another
// context's release will wake it.
func (m *machine) execute(c int32) sim.Time {
	t := &m.contexts[c]
	s := &m.steps[t.step]
	switch s.kind {
	case stepAccess:
		return m.command(c, t, s)
	case stepAcquire:
		return m.acquire(c, t, s)
	}
	m.release(c, t, s)
	m.advance(c)
	return m.kernel.Now()
}

// next hands the microengine to the context that has been ready the longest.
func (m *machine) next(e *microengine) {
	if len(e.ready) == 0 {
		e.running = -1
		return
	}
	c := e.ready[0]
	e.ready = e.ready[:copy(e.ready, e.ready[1:])]
	m.dispatch(e, c)
}

// demand sends the base program's posted commands of one chunk.
func (m *machine) demand(d *demand) {
	n := int(d.each)
	if f := d.each - float64(n); f > 0 && m.choice.Float64() < f {
		n++
	}
	mem := d.engine.mem
	at := m.kernel.Now() + mem.half
	for range n {
		start := d.engine.front.Serve(at, d.cost.pipe)
		mem.banks[m.choice.IntN(len(mem.banks))].Serve(start, d.cost.bank)
	}
}

// command sends the context's next command of an access and returns when it
// is back; a posted one is not waited for.
func (m *machine) command(c int32, t *thread, s *step) sim.Time {
	addr := t.element
	for i := range t.command {
		addr += s.sizes[i]
	}
	back := m.serve(c, s, &s.costs[t.command], s.op, addr, s.sizes[t.command])
	m.proceed(c, t, s)
	if s.posted {
		return m.kernel.Now()
	}
	return back
}

// serve runs one command through the step's engine and returns when its answer
// is back at the microengine.
func (m *machine) serve(c int32, s *step, cost *cost, op program.Op, addr, n int64) sim.Time {
	e := m.engine(s, c)
	mem := e.mem
	at := m.kernel.Now() + mem.half
	start, done := e.serve(at, cost, op, s.atomic, s.posted, addr, n)
	if m.profile && m.meter.On {
		a := &s.memory[mem.bank(addr)]
		a.Visits++
		a.Wait += start - m.contexts[c].ready
		a.Busy += done - start
	}
	return done + m.latency.Jitter(mem.half, min(1, 2*m.jitter))
}

// proceed moves past the command just sent.
func (m *machine) proceed(c int32, t *thread, s *step) {
	t.command++
	if int(t.command) < len(s.costs) {
		return
	}
	t.command = 0
	t.more--
	if t.more == 0 {
		m.advance(c)
	} else if !m.perPacket {
		t.element = m.element(s, m.choice)
	}
}

// acquire sends one attempt at the lock and returns when the context goes on,
// or -1 when a release will wake it.
func (m *machine) acquire(c int32, t *thread, s *step) sim.Time {
	l := m.locks[s.lock]
	w := &l.words[t.word]
	back := m.serve(c, s, &l.test, program.Write, l.address(t.word), wordBytes)
	switch {
	case l.idiom == program.None:
	case w.holder < 0:
		w.holder, w.since = c, m.kernel.Now()
	case l.idiom == program.Ticket:
		t.next = -1
		if w.first < 0 {
			w.first = c
		} else {
			m.contexts[w.last].next = c
		}
		w.last = c
		return -1
	default:
		t.trying = true
		return back + l.sleep
	}
	m.advance(c)
	return back
}

// release sends the releasing write. Whoever's test_set comes next finds the
// lock free; a ticket holder is signalled when the write is done.
func (m *machine) release(holder int32, t *thread, s *step) {
	l := m.locks[s.lock]
	w := &l.words[t.word]
	written := m.serve(holder, s, &l.free, program.Write, l.address(t.word), wordBytes)
	if l.idiom == program.None {
		return
	}
	now := m.kernel.Now()
	if m.meter.On {
		w.held += now - max(w.since, m.meter.Start)
	}
	w.holder = -1
	if w.first < 0 {
		return
	}
	c := w.first
	w.first = m.contexts[c].next
	w.holder, w.since = c, now
	m.advance(c)
	m.kernel.At(written, evReady, c, 0)
}

// leave ends a packet and gives its context the next one.
func (m *machine) leave(c int32) {
	if m.station != nil {
		m.station.left(c)
		return
	}
	now := m.kernel.Now()
	t := &m.contexts[c]
	m.done++
	switch {
	case m.meter.On:
		m.meter.Leave(now, now-t.began, now-t.left)
	case m.warm(now):
		m.begin()
	}
	t.left = now
	if m.source.Saturates() {
		m.take(c)
		return
	}
	if m.waiting.Len() == 0 {
		m.idle = append(m.idle, c)
		return
	}
	came := m.waiting.Pop()
	m.assign(c, m.handOver())
	t.began = came
}

// warm tells whether the warm-up is over.
func (m *machine) warm(now sim.Time) bool {
	rounds := m.done / len(m.contexts)
	return rounds >= m.warmRounds && m.done >= m.warmPackets && (rounds >= m.gatherRounds || now >= m.gatherTime)
}

// begin starts the measurement: all busy times are counted from here.
func (m *machine) begin() {
	m.meter.Begin(m.kernel.Now())
	for i := range m.engines {
		m.engines[i].busy = 0
	}
	for _, mem := range m.memories {
		mem.hotLine = 0
		for i := range mem.lines {
			mem.lines[i].busy = 0
		}
	}
	for _, l := range m.locks {
		for i := range l.words {
			l.words[i].held = 0
		}
	}
}

// finish summarises the run.
func (m *machine) finish() *Result {
	m.meter.Finish(m.kernel.Now())
	var me sim.Time
	for i := range m.engines {
		me += m.engines[i].busy
	}
	m.meter.Use("me", me/sim.Time(m.cores))
	for _, mem := range m.memories {
		m.meter.Use(mem.name+".line", mem.hotLine)
	}
	for _, l := range m.locks {
		var held sim.Time
		for i := range l.words {
			held = max(held, l.words[i].held)
		}
		m.meter.Use("lock."+l.name, held)
	}
	if m.profile {
		m.stacks()
	}
	return &m.meter.Result
}

// stacks turns the steps' accounts into paths: program, line of the program,
// and then the microengine or memory, engine and bank.
func (m *machine) stacks() {
	for i := range m.steps {
		s := &m.steps[i]
		m.meter.Add(s.issued, m.program, s.frame, []string{"microengine"})
		for b, a := range s.memory {
			mode := program.Bulk
			if s.atomic {
				mode = program.Atomic
			}
			mem := s.engines[0].mem.name
			engine := mem + " " + string(mode)
			m.meter.Add(a, m.program, s.frame, []string{mem, engine, fmt.Sprintf("%s bank %d", engine, b)})
		}
	}
}
