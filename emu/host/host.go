// Package host emulates the host behind a SmartNIC as a mechanism: PCIe with a
// queue a way, and cores that poll their receive rings, take packets in bursts
// and run each to completion. What a packet costs a core is its owner's to say;
// the package adds nothing to it but waiting.
//
// Link and Cores are parts of a larger emulation and share its kernel.
package host

import (
	"nicprof/board"
	"nicprof/sim"
)

// Direction is a way over PCIe.
type Direction int

// Directions, as the NIC names them: it writes to the host and reads from it.
const (
	ToHost Direction = iota
	ToNIC
)

// Link is PCIe between NIC and host: of each way a first-in-first-out server
// with the board's rates, and the time of flight.
type Link struct {
	ways [2]way
}

type way struct {
	server  sim.Server
	command sim.Time // least time of a transfer
	perByte float64  // ps
	flight  sim.Time
	depth   int
	leaving sim.Line[sim.Time] // when those that wait or are served will be through
	slow    float64
	sent    int64
	dropped int64
	bytes   float64
}

// DefaultDepth is the transfers that wait for PCIe one way before packets are
// dropped: a ring of descriptors.
const DefaultDepth = 1024

// NewLink returns the link of a board. A transfer takes the board's time of a
// small one or that of its bytes, whichever is longer. A posted write is on its
// way for half of a read's round trip; a read takes all of it. depth 0 is
// DefaultDepth.
func NewLink(p board.PCIe, depth int) *Link {
	if depth == 0 {
		depth = DefaultDepth
	}
	l := &Link{}
	for d := range l.ways {
		w := &l.ways[d]
		w.depth, w.slow = depth, 1
		w.perByte = 8000 / p.LargeReadGbps.Value
		w.flight = sim.Time(p.ReadNS.Value * float64(sim.Nanosecond))
		w.command = perSecond(p.ReadsMps.Value)
		if Direction(d) == ToHost {
			w.flight /= 2
			w.command = perSecond(p.WritesMps.Value)
		}
	}
	return l
}

// perSecond is the time of one of so many millions a second, 0 of none.
func perSecond(m float64) sim.Time {
	if m == 0 {
		return 0
	}
	return sim.Time(1e6/m + 0.5)
}

// Send books a transfer that is ready now, which must not be before the last
// one's of that way. It returns when it will be on the other side; ok is false
// where the queue is full and the transfer is dropped.
func (l *Link) Send(d Direction, now sim.Time, bytes float64) (at sim.Time, ok bool) {
	w := &l.ways[d]
	for w.leaving.Len() > 0 && w.leaving.Front() <= now {
		w.leaving.Pop()
	}
	if w.leaving.Len() >= w.depth {
		w.dropped++
		return 0, false
	}
	service := sim.Time(w.slow * float64(max(w.command, sim.Time(bytes*w.perByte))))
	w.server.Serve(now, service)
	w.leaving.Push(w.server.Free())
	w.sent++
	w.bytes += bytes
	return w.server.Free() + w.flight, true
}

// Slow makes every transfer take so many times as long from now on: other users
// of the bus, or a fault.
func (l *Link) Slow(factor float64) {
	for d := range l.ways {
		l.ways[d].slow = factor
	}
}

// Busy returns the time spent on transfers of a way from 0 to now.
func (l *Link) Busy(d Direction, now sim.Time) sim.Time { return l.ways[d].server.Busy(now) }

// Sent returns the transfers and bytes of a way since the start, without those
// dropped.
func (l *Link) Sent(d Direction) (transfers int64, bytes float64) {
	return l.ways[d].sent, l.ways[d].bytes
}

// Dropped returns the transfers of a way that found the queue full.
func (l *Link) Dropped(d Direction) int64 { return l.ways[d].dropped }

// Owner says what packets cost and what becomes of them.
type Owner interface {
	// Serve returns the time of a core for a packet that it begins now.
	Serve(core int, packet int64) sim.Time
	// Sent gets a packet when the burst that it was in has been sent.
	Sent(core int, packet int64)
}

// Burst is the packets that a core takes from its ring at once, as DPDK's
// applications do.
const Burst = 32

// DefaultRing is the descriptors of a receive ring, DPDK's examples' number.
const DefaultRing = 1024

// Cores poll a receive ring each.
type Cores struct {
	k     *sim.Kernel
	kind  int32
	owner Owner
	ring  int
	cores []core
}

type core struct {
	ring    sim.Line[int64]
	burst   [Burst]int64
	n, at   int // of the burst
	running bool
	busy    sim.Time
	until   sim.Time // of the packet being served
	stall   sim.Time // until when the core does nothing
	served  int64
	dropped int64
}

// NewCores returns n idle cores whose events on k have the kind given and go to
// Handle. ring 0 is DefaultRing.
func NewCores(k *sim.Kernel, kind int32, n, ring int, owner Owner) *Cores {
	if ring == 0 {
		ring = DefaultRing
	}
	return &Cores{k: k, kind: kind, owner: owner, ring: ring, cores: make([]core, n)}
}

// N returns the number of cores.
func (c *Cores) N() int { return len(c.cores) }

// Offer puts a packet into a core's ring. It is false where the ring is full and
// the packet dropped.
func (c *Cores) Offer(i int, packet int64) bool {
	x := &c.cores[i]
	if x.ring.Len() >= c.ring {
		x.dropped++
		return false
	}
	x.ring.Push(packet)
	if !x.running {
		c.poll(i)
	}
	return true
}

// poll takes the next burst, or leaves the core idle.
func (c *Cores) poll(i int) {
	x := &c.cores[i]
	x.n, x.at = min(x.ring.Len(), Burst), 0
	x.running = x.n > 0
	for k := range x.n {
		x.burst[k] = x.ring.Pop()
	}
	if x.running {
		c.begin(i)
	}
}

// begin starts the next packet of the burst, after a stall at its end.
func (c *Cores) begin(i int) {
	x := &c.cores[i]
	now := c.k.Now()
	if x.stall > now {
		c.k.At(x.stall, c.kind, int32(i), eventBegin)
		return
	}
	d := c.owner.Serve(i, x.burst[x.at])
	x.busy += d
	x.until = now + d
	c.k.At(x.until, c.kind, int32(i), eventEnd)
}

// Args of the cores' events.
const (
	eventBegin = iota
	eventEnd
)

// Handle takes an event of the cores.
func (c *Cores) Handle(ev sim.Event) {
	i := int(ev.Actor)
	x := &c.cores[i]
	if ev.Arg == eventBegin {
		c.begin(i)
		return
	}
	x.served++
	if x.at++; x.at < x.n {
		c.begin(i)
		return
	}
	for k := range x.n {
		c.owner.Sent(i, x.burst[k])
	}
	c.poll(i)
}

// Stall keeps a core from beginning a packet until a time.
func (c *Cores) Stall(i int, until sim.Time) {
	c.cores[i].stall = max(c.cores[i].stall, until)
}

// Busy returns the time that a core has spent on packets from 0 to now. Of a
// packet in progress the part done counts.
func (c *Cores) Busy(i int, now sim.Time) sim.Time {
	x := &c.cores[i]
	return x.busy - max(0, x.until-now)
}

// Used returns the cores in use between two times, of the busy times that All
// returned at them.
func Used(from, to []sim.Time, span sim.Time) float64 {
	var busy sim.Time
	for i := range from {
		busy += to[i] - from[i]
	}
	return float64(busy) / float64(span)
}

// All returns every core's busy time; see Busy.
func (c *Cores) All(now sim.Time) []sim.Time {
	all := make([]sim.Time, len(c.cores))
	for i := range all {
		all[i] = c.Busy(i, now)
	}
	return all
}

// Counts returns the packets that the cores have served, and those dropped
// because a ring was full.
func (c *Cores) Counts() (served, dropped int64) {
	for i := range c.cores {
		served += c.cores[i].served
		dropped += c.cores[i].dropped
	}
	return served, dropped
}
