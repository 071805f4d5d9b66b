package snic

import (
	"math"

	"nicprof/emu"
	"nicprof/sim"
)

// none is no packet, no flow, no route.
const none = -1

// never is longer than any run, and may be added to its times.
const never = 1 << 61

// Board is one run of the emulated board.
type Board struct {
	kernel  *sim.Kernel
	seed    uint64
	policy  Policy
	credits int32

	cycle                               float64 // ps
	vary                                float64 // ± fraction of an NT's time with a packet
	services                            *sim.Stream
	gap                                 float64 // between two packets on a bus, cycles
	beatBytes, cellBytes                int
	cells, threshold, rxBytes, buffer   int
	interval, order, dispatch, giveBack sim.Time
	yield                               sim.Time
	skip, sync, phy                     sim.Time
	in, out                             []sim.Time // stages before the scheduler and after it
	match                               int        // how many of in until the UID is known

	kinds   []kind
	regions []region
	flows   []*flow
	routes  []route

	packets sim.Pool[packet]
	headers sim.Pool[header]

	ready           sim.Line[int32] // flows with a packet that may enter
	pick            int32           // the flow whose packet waits for the packet store
	entering        bool            // the ingress bus is taken
	used            int             // cells
	held            float64         // cells times ps
	weighed         sim.Time        // until when held counts
	ingress, egress sim.Server
	scheduler       sim.Server

	lastSent, silence sim.Time   // when a packet last left, and the longest time between two
	meter             *emu.Meter // of Run
}

// kind is an NT with its times.
type kind struct {
	NT
	latency, interval sim.Time
	perByte           float64 // ps
}

// region runs a chain.
type region struct {
	name       string
	state      RegionState
	generation int32 // of chain, the last one launched
	installed  int32 // generation of tasks, those that run
	chain      []int
	tasks      []task
	queue      sim.Line[int32] // headers that wait until it runs
	ports      []port          // one, or by PANIC one an NT
	inside     int32           // headers
	pr         sim.Time
	past       sim.Time // busy with the chains before
}

// task is an NT in a region.
type task struct {
	kind    int32
	credits int32
	server  sim.Server
	queue   sim.Line[int32] // headers whose next NT it is, that wait for its credit
}

// port is where packet data enters a region and credits leave it.
type port struct {
	data      sim.Server
	returning sim.Line[credit] // that let the data pass
}

// port returns that of NT i: PANIC has every NT at a port of the crossbar, a
// chain is behind one.
func (b *Board) port(g *region, i int) (at int, p *port) {
	if b.policy != PANIC {
		i = 0
	}
	return i, &g.ports[i]
}

// credit is one on its way back, of the NT at a position of the chain.
type credit struct {
	position int32
	until    sim.Time // no longer does it let data pass
}

func (g *region) busy(now sim.Time) (most sim.Time) {
	for i := range g.tasks {
		most = max(most, g.tasks[i].server.Busy(now))
	}
	for i := range g.ports {
		most = max(most, g.ports[i].data.Busy(now))
	}
	return most
}

type (
	route  [][]branch
	branch struct {
		instances []instance
		turn      int
	}
	instance struct {
		region     int32
		generation int32
		run        uint64
	}
)

// flow is the packets of one UID.
type flow struct {
	Flow
	uid         int32
	route       int32
	load        Load
	offer       int64 // counts loads; events of older ones are stale
	began       sim.Time
	replayed    int
	gaps, sizes *sim.Stream

	rx        sim.Line[waiter]
	rxBytes   int
	state     state
	throttled bool     // the first packet had to wait for tokens
	wake      int64    // counts wakings; events of older ones are stale
	perByte   float64  // ps, of the token bucket
	free      sim.Time // when the bucket has paid for what entered
}

// waiter is a packet at the port.
type waiter struct {
	arrived sim.Time
	bytes   int32
}

// state of a flow at the port.
type state int8

const (
	idle    state = iota // no packet
	waiting              // for tokens
	queued               // in Board.ready
)

// packet is one in the board.
type packet struct {
	arrived sim.Time
	leaves  sim.Time
	flow    int32
	bytes   int32
	route   int32
	stage   int32
	left    int32 // copies of the header that are out
	passes  int32
	fate    Cause // causes: none
}

// header is a copy of a packet's header on one branch.
type header struct {
	packet     int32
	region     int32
	generation int32
	leads      bool   // the copy that takes the scheduler's time
	todo       uint64 // NTs still to run
	granted    uint64 // of them those with a credit
}

// Kinds of events.
const (
	kStop    int32 = iota
	kArrive        // actor flow, arg offer
	kTokens        // actor flow, arg wake
	kBus           // the ingress bus is free
	kIn            // actor packet, arg stage: it has passed it
	kOrdered       // actor packet: ordered by the scheduler
	kBack          // actor header: the same, coming back
	kSend          // actor header: the scheduler sends it to its region
	kTask          // actor header, arg position: before an NT
	kDone          // actor header, arg position: after it
	kYield         // actor region, arg port and generation: credits may go
	kCredit        // actor region, arg position and generation: a credit is back
	kOut           // actor packet, arg stage: before it
	kSent          // actor packet: left the packet store
	kPR            // actor region, arg generation: configured
)

func (b *Board) cycles(n float64) sim.Time { return sim.Time(math.Round(n * b.cycle)) }

// occupancy returns the time a packet takes the bus.
func (b *Board) occupancy(bytes int32) sim.Time {
	return b.cycles(float64((int(bytes)+b.beatBytes-1)/b.beatBytes) + b.gap)
}

func (b *Board) cellsOf(bytes int32) int { return (int(bytes) + b.cellBytes - 1) / b.cellBytes }

// run handles events until the next stop.
func (b *Board) run() {
	for {
		e, _ := b.kernel.Next()
		switch e.Kind {
		case kStop:
			return
		case kArrive:
			b.arrive(b.flows[e.Actor], e.Arg)
		case kTokens:
			if f := b.flows[e.Actor]; f.wake == e.Arg && f.state == waiting {
				f.state = queued
				b.ready.Push(f.uid)
				b.enter()
			}
		case kBus:
			b.entering = false
			b.enter()
		case kIn:
			b.passIn(e.Actor, int(e.Arg))
		case kOrdered:
			b.fanOut(e.Actor)
		case kBack:
			b.enqueue(e.Actor)
		case kSend:
			b.send(e.Actor)
		case kTask:
			b.runTask(e.Actor, int(e.Arg))
		case kDone:
			b.taskDone(e.Actor, int(e.Arg))
		case kYield:
			if int32(e.Arg>>8) == b.regions[e.Actor].installed {
				b.giveCredits(e.Actor, int(e.Arg&0xff))
			}
		case kCredit:
			if g := &b.regions[e.Actor]; int32(e.Arg>>8) == g.installed {
				i := int(e.Arg & 0xff)
				g.tasks[i].credits++
				b.grant(e.Actor, i)
			}
		case kOut:
			b.passOut(e.Actor, int(e.Arg))
		case kSent:
			b.sent(e.Actor)
		case kPR:
			if g := &b.regions[e.Actor]; g.generation == int32(e.Arg) && g.state == Configuring {
				b.install(e.Actor, g.chain)
				b.resume(e.Actor)
			}
		}
	}
}

// draw returns the size of a flow's next packet.
func (b *Board) draw(f *flow) int32 {
	if f.load.Sizes == nil {
		return int32(f.load.Bytes)
	}
	return int32(min(MaxBytes, max(MinBytes, math.Ceil(f.load.Sizes.Draw(f.sizes.Rand)))))
}

// nextArrival schedules a flow's next burst.
func (b *Board) nextArrival(f *flow) {
	mean := float64(f.load.Bytes)
	if f.load.Sizes != nil {
		mean = f.load.Sizes.Mean()
	}
	gap := mean * 8000 / f.load.Gbps * float64(f.load.Burst)
	if !f.load.Paced {
		gap *= f.gaps.ExpFloat64()
	}
	b.kernel.After(sim.Time(min(gap, float64(never))), kArrive, f.uid, f.offer)
}

// arrive takes the packets that arrive now.
func (b *Board) arrive(f *flow, offer int64) {
	if offer != f.offer {
		return
	}
	if trace := f.load.Trace; len(trace) > 0 {
		b.receive(f, int32(min(MaxBytes, max(MinBytes, trace[f.replayed].Bytes))))
		if f.replayed++; f.replayed < len(trace) {
			b.kernel.At(max(b.Now(), f.began+trace[f.replayed].After), kArrive, f.uid, offer)
		}
		return
	}
	for range f.load.Burst {
		b.receive(f, b.draw(f))
	}
	b.nextArrival(f)
}

// receive puts a packet into the buffer of the port.
func (b *Board) receive(f *flow, bytes int32) {
	f.Offered.add(bytes)
	if f.rx.Len() > 0 && f.rxBytes+int(bytes) > b.rxBytes {
		cause := DropIngress
		if f.throttled {
			cause = DropThrottle
		}
		f.Dropped[cause]++
		return
	}
	f.rx.Push(waiter{arrived: b.Now(), bytes: bytes})
	f.rxBytes += int(bytes)
	if f.state == idle {
		b.arm(f)
		b.enter()
	}
}

// arm makes an idle flow with a packet ready, or wakes it when it has tokens.
func (b *Board) arm(f *flow) {
	switch {
	case f.rx.Len() == 0:
	case b.Now() >= f.free:
		f.state, f.throttled = queued, false
		b.ready.Push(f.uid)
	default:
		f.state, f.throttled = waiting, true
		if f.wake++; f.free < math.MaxInt64 {
			b.kernel.At(f.free, kTokens, f.uid, f.wake)
		}
	}
}

// enter lets the next packet onto the bus, if that is free and the store has
// room; flows take turns.
func (b *Board) enter() {
	if b.entering {
		return
	}
	if b.pick == none {
		if b.ready.Len() == 0 {
			return
		}
		b.pick = b.ready.Pop()
	}
	f := b.flows[b.pick]
	w := f.rx.Front()
	cells := b.cellsOf(w.bytes)
	if b.used > 0 && b.cells-b.used-cells < b.threshold {
		return
	}
	b.pick = none
	f.rx.Pop()
	f.rxBytes -= int(w.bytes)
	f.Accepted.add(w.bytes)
	now := b.Now()
	b.weigh(now)
	b.used += cells
	if f.perByte > 0 {
		depth := sim.Time(float64(b.cellBytes) * f.perByte)
		f.free = max(f.free, now-depth) + sim.Time(float64(w.bytes)*f.perByte)
	}
	f.state = idle
	if f.load.Saturate && f.rx.Len() == 0 {
		w.arrived = now
		bytes := b.draw(f)
		f.Offered.add(bytes)
		f.rx.Push(waiter{arrived: now, bytes: bytes})
		f.rxBytes += int(bytes)
	}
	b.arm(f)
	busy := b.occupancy(w.bytes)
	b.ingress.Serve(now, busy)
	b.entering = true
	b.kernel.After(busy, kBus, 0, 0)
	p := b.packets.Put(packet{arrived: w.arrived, flow: f.uid, bytes: w.bytes, fate: causes})
	b.passIn(p, 0)
}

// passIn moves a packet on from before stage i.
func (b *Board) passIn(p int32, i int) {
	pk := &b.packets.Items[p]
	if i == b.match {
		f := b.flows[pk.flow]
		if f.route == none {
			pk.fate = DropUnknown
			b.discard(p)
			return
		}
		pk.route = f.route
	}
	if i == len(b.in) {
		b.schedule(p)
		return
	}
	b.kernel.After(b.in[i], kIn, p, int64(i+1))
}

// schedule begins a pass through the scheduler for the packet's stage.
func (b *Board) schedule(p int32) {
	b.packets.Items[p].passes++
	b.kernel.After(b.order, kOrdered, p, 0)
}

// fanOut makes a copy of the header for each branch of the packet's stage.
func (b *Board) fanOut(p int32) {
	pk := &b.packets.Items[p]
	r := b.routes[pk.route]
	if len(r) == 0 {
		start := b.scheduler.Serve(b.Now(), b.interval)
		b.kernel.At(start+b.dispatch, kOut, p, 0)
		return
	}
	f := b.flows[pk.flow]
	branches := r[pk.stage]
	pk.left = int32(len(branches))
	bytes := pk.bytes
	for i := range branches {
		in, ok := b.choose(&branches[i])
		g := &b.regions[in.region]
		h := b.headers.Put(header{packet: p, region: in.region, generation: in.generation, leads: i == 0, todo: in.run})
		if !ok {
			b.drop(h, DropChain)
			continue
		}
		f.Wanted[in.region].add(bytes)
		for m := in.run; m != 0; m &= m - 1 {
			f.Intended[g.chain[first(m)]].add(bytes)
		}
		b.enqueue(h)
	}
}

// choose returns the branch's next instance whose chain is there: one that runs,
// else one that will.
func (b *Board) choose(br *branch) (instance, bool) {
	later := none
	n := len(br.instances)
	for i := range n {
		at := (br.turn + i) % n
		in := br.instances[at]
		switch g := &b.regions[in.region]; {
		case g.generation != in.generation:
		case g.state == Running:
			br.turn = (at + 1) % n
			return in, true
		case later == none:
			later = at
		}
	}
	if later == none {
		return br.instances[0], false
	}
	br.turn = (later + 1) % n
	return br.instances[later], true
}

// enqueue lets a header wait for a credit of its next NT, or for its region to
// run.
func (b *Board) enqueue(h int32) {
	hd := &b.headers.Items[h]
	g := &b.regions[hd.region]
	switch {
	case g.generation != hd.generation:
		b.drop(h, DropChain)
	case g.state == Running:
		i := first(hd.todo)
		g.tasks[i].queue.Push(h)
		b.grant(hd.region, i)
	case g.queue.Len() >= b.buffer:
		b.drop(h, DropBuffer)
	default:
		g.queue.Push(h)
	}
}

// resume lets a region run what has waited for that.
func (b *Board) resume(r int32) {
	g := &b.regions[r]
	for n := g.queue.Len(); n > 0; n-- {
		b.enqueue(g.queue.Pop())
	}
	for i := range g.tasks {
		b.grant(r, i)
	}
}

// grant gives the credits of NT i to the headers whose next NT it is, in order,
// and with each, by the policy Reserve, one of every further NT that the header
// needs up to the first that has none.
func (b *Board) grant(r int32, i int) {
	g := &b.regions[r]
	if g.state != Running {
		return
	}
	for t := &g.tasks[i]; t.credits > 0 && t.queue.Len() > 0; {
		h := t.queue.Pop()
		hd := &b.headers.Items[h]
		granted := uint64(0)
		for m := hd.todo; m != 0; m &= m - 1 {
			next := &g.tasks[first(m)]
			if next.credits == 0 {
				break
			}
			next.credits--
			granted |= m & -m
			if b.policy == PANIC {
				break
			}
		}
		g.inside++
		hd.granted = granted
		if hd.leads {
			b.kernel.At(b.scheduler.Serve(b.Now(), b.interval), kSend, h, 0)
		} else {
			b.send(h)
		}
	}
}

// send moves a packet through the port of its region to the first NT granted.
func (b *Board) send(h int32) {
	hd := &b.headers.Items[h]
	i := first(hd.granted)
	_, p := b.port(&b.regions[hd.region], i)
	start := p.data.Serve(b.Now(), b.occupancy(b.packets.Items[hd.packet].bytes))
	b.kernel.At(start+b.dispatch+b.skip*sim.Time(i), kTask, h, int64(i))
}

// giveBackCredit sends a credit of NT i of a region to the scheduler. It looks at
// the port a picosecond after data has left it, so that data which comes right
// behind goes first.
func (b *Board) giveBackCredit(r int32, i int) {
	g := &b.regions[r]
	at, p := b.port(g, i)
	now := b.Now()
	if p.returning.Len() == 0 {
		if p.data.Free() <= now || b.yield == 0 {
			b.kernel.After(b.giveBack, kCredit, r, g.event(i))
			return
		}
		b.kernel.At(min(p.data.Free()+1, now+b.yield), kYield, r, g.event(at))
	}
	p.returning.Push(credit{int32(i), now + b.yield})
}

// giveCredits sends the credits that wait no longer: all if no data is in the
// port, else those that have let enough of it pass.
func (b *Board) giveCredits(r int32, at int) {
	g := &b.regions[r]
	p := &g.ports[at]
	now := b.Now()
	for p.returning.Len() > 0 {
		c := p.returning.Front()
		if now < c.until && now < p.data.Free() {
			b.kernel.At(min(p.data.Free()+1, c.until), kYield, r, g.event(at))
			return
		}
		p.returning.Pop()
		b.kernel.After(b.giveBack, kCredit, r, g.event(int(c.position)))
	}
}

// event returns the argument of an event of a position that is void once the
// region has another chain.
func (g *region) event(i int) int64 { return int64(g.installed)<<8 | int64(i) }

// runTask lets a header enter NT i of its region.
func (b *Board) runTask(h int32, i int) {
	hd := &b.headers.Items[h]
	t := &b.regions[hd.region].tasks[i]
	k := &b.kinds[t.kind]
	busy := k.interval
	if k.perByte > 0 {
		busy = max(busy, b.services.Jitter(sim.Time(float64(b.packets.Items[hd.packet].bytes)*k.perByte), b.vary))
	}
	start := t.server.Serve(b.Now(), busy)
	b.kernel.At(start+k.latency, kDone, h, int64(i))
}

// taskDone gives the credit of NT i back and moves the header on.
func (b *Board) taskDone(h int32, i int) {
	hd := &b.headers.Items[h]
	g := &b.regions[hd.region]
	b.giveBackCredit(hd.region, i)
	hd.todo &^= 1 << i
	hd.granted &^= 1 << i
	if hd.granted != 0 {
		next := first(hd.granted)
		if d := b.skip * sim.Time(next-i-1); d > 0 {
			b.kernel.After(d, kTask, h, int64(next))
		} else {
			b.runTask(h, next)
		}
		return
	}
	r := hd.region
	if hd.todo != 0 {
		b.packets.Items[hd.packet].passes++
		hd.leads = true
		b.kernel.After(b.order, kBack, h, 0)
	} else {
		p := hd.packet
		b.headers.Free(h)
		b.joined(p, b.skip*sim.Time(len(g.tasks)-i-1))
	}
	if g.inside--; g.inside == 0 && g.state == Configuring {
		b.configure(r)
	}
}

// joined counts a branch of the packet's stage as done. After the last one the
// packet goes on to the next stage, through the synchronisation buffer if it had
// copies to wait for, or out.
func (b *Board) joined(p int32, late sim.Time) {
	pk := &b.packets.Items[p]
	if pk.left--; pk.left > 0 {
		return
	}
	if pk.fate != causes {
		b.discard(p)
		return
	}
	r := b.routes[pk.route]
	branches := len(r[pk.stage])
	pk.stage++
	switch {
	case int(pk.stage) == len(r):
		b.passOutAfter(late, p)
	case branches > 1:
		pk.passes++
		b.kernel.After(late+b.sync+b.order, kOrdered, p, 0)
	default:
		pk.passes++
		b.kernel.After(late+b.order, kOrdered, p, 0)
	}
}

func (b *Board) passOutAfter(late sim.Time, p int32) {
	if late > 0 {
		b.kernel.After(late, kOut, p, 0)
	} else {
		b.passOut(p, 0)
	}
}

// passOut moves a packet on from before stage i of those after the scheduler, of
// which the last is the bus out.
func (b *Board) passOut(p int32, i int) {
	if i < len(b.out)-1 {
		b.kernel.After(b.out[i], kOut, p, int64(i+1))
		return
	}
	pk := &b.packets.Items[p]
	busy := b.occupancy(pk.bytes)
	start := b.egress.Serve(b.Now(), busy)
	pk.leaves = start + b.out[i]
	b.kernel.At(start+busy, kSent, p, 0)
}

// sent counts a packet as served.
func (b *Board) sent(p int32) {
	pk := &b.packets.Items[p]
	f := b.flows[pk.flow]
	f.Served.add(pk.bytes)
	f.Passes += int64(pk.passes)
	latency := pk.leaves - pk.arrived
	f.Latency.add(latency)
	now := b.Now()
	b.silence = max(b.silence, now-b.lastSent)
	b.lastSent = now
	if b.meter != nil && b.meter.On && !b.meter.Full() {
		b.meter.Leave(now, latency+b.phy, 0)
	}
	b.release(p)
}

// drop takes a header out; its packet is dropped when all copies are back.
func (b *Board) drop(h int32, why Cause) {
	p := b.headers.Items[h].packet
	b.packets.Items[p].fate = why
	b.headers.Free(h)
	b.joined(p, 0)
}

// discard counts a packet as dropped.
func (b *Board) discard(p int32) {
	pk := &b.packets.Items[p]
	b.flows[pk.flow].Dropped[pk.fate]++
	b.release(p)
}

// release frees a packet and its cells, which lets the next one in.
func (b *Board) release(p int32) {
	b.weigh(b.Now())
	b.used -= b.cellsOf(b.packets.Items[p].bytes)
	b.packets.Free(p)
	b.enter()
}

// weigh counts the cells in use up to now.
func (b *Board) weigh(now sim.Time) {
	b.held += float64(b.used) * float64(now-b.weighed)
	b.weighed = now
}

// configure begins the reconfiguration of a region in which nothing runs.
func (b *Board) configure(r int32) {
	g := &b.regions[r]
	b.kernel.After(g.pr, kPR, r, int64(g.generation))
}

// install gives a region its chain.
func (b *Board) install(r int32, chain []int) {
	g := &b.regions[r]
	g.past += g.busy(b.Now())
	g.chain, g.installed = chain, g.generation
	g.ports = make([]port, max(1, len(chain)))
	g.tasks = make([]task, len(chain))
	for i, k := range chain {
		g.tasks[i] = task{kind: int32(k), credits: b.credits}
	}
	g.state = Running
	if len(chain) == 0 {
		g.state = Empty
	}
}
