package runtime

import (
	"math/bits"

	"nicprof/sim"
)

// classes of flows by weight: class c has 2^(c-1) to 2^c-1 packets an interval.
const classes = 33

// Turn is one turn of the controller.
type Turn struct {
	Message  Message
	Send     bool
	SearchUS float64 // before the message leaves: the time to choose a flow
	WaitUS   float64 // from now to the next turn, unless an echo ends the wait
}

// Controller moves flows, one at a time: off an overloaded NIC, off a table that
// has become too small, and back while the NIC has time and room.
type Controller struct {
	o    Options
	host *Host
	rand *sim.Stream

	weight []uint32               // by flow: packets of the last interval, as far as the host knows
	seen   []uint32               // by flow: packets of this interval
	side   []uint8                // by flow: where sizes counts it, 0: nowhere
	sizes  [sides][classes]uint32 // flows by side and class
	cursor uint32

	busy   bool // a migration goes on
	flow   uint32
	evict  bool
	sentAt float64 // µs

	// Evicted and Offloaded are how many flows have moved, Refused how many the
	// NIC had no room for, Repeats how many commands were sent again for want of
	// an echo, Looked how many flows were looked at.
	Evicted, Offloaded, Refused, Repeats, Looked uint64
}

// Sides of a flow, as the controller counts them.
const (
	nowhere = iota
	onNIC
	onHost
	waiting // for an echo, at the end of the last interval
	overdue // and at the end of the one before
	sides
)

// NewController returns a controller of a host's flows. The seed matters to
// AtRandom alone.
func NewController(o Options, h *Host, seed uint64) *Controller {
	n := len(h.phase)
	c := &Controller{
		o: o, host: h, rand: sim.NewStream(seed, "cora controller"),
		weight: make([]uint32, n), seen: make([]uint32, n), side: make([]uint8, n),
	}
	c.sizes[nowhere][0] = uint32(n)
	return c
}

// Count adds packets of a flow that the host has seen itself in this interval.
func (c *Controller) Count(flow, packets uint32) { c.seen[flow] += packets }

// Report takes a candidate that a packet or heartbeat brought.
func (c *Controller) Report(x Candidate) {
	f := c.o.Flow(x.Entry)
	c.seen[f] = max(c.seen[f], x.Packets)
}

// Interval ends an interval: what was seen in it becomes the flows' weights.
func (c *Controller) Interval() {
	c.weight, c.seen = c.seen, c.weight
	clear(c.seen)
	c.sizes = [sides][classes]uint32{}
	for f, w := range c.weight {
		old := c.side[f]
		c.side[f] = c.sideOf(uint32(f))
		if c.side[f] == waiting && old >= waiting {
			c.side[f] = overdue
		}
		c.sizes[c.side[f]][bits.Len32(w)]++
	}
}

func (c *Controller) sideOf(flow uint32) uint8 {
	switch p := c.host.phase[flow]; p {
	case Unknown:
		return nowhere
	case Remote:
		return onNIC
	case Serving:
		return onHost
	}
	return waiting
}

// place counts a flow where it is now.
func (c *Controller) place(flow uint32) {
	class := bits.Len32(c.weight[flow])
	c.sizes[c.side[flow]][class]--
	c.side[flow] = c.sideOf(flow)
	c.sizes[c.side[flow]][class]++
}

// SetEntries changes how many entries the NIC may hold data of.
func (c *Controller) SetEntries(entries uint32) {
	c.o.Entries = entries
	c.host.SetEntries(entries)
}

// Step takes a turn at a time in µs. Call it when the last turn's wait is over,
// and earlier when an echo has ended a migration.
func (c *Controller) Step(now float64) Turn {
	if c.busy && c.host.Pending(c.flow) {
		if left := c.sentAt + c.o.RetransmitUS - now; left > 0 {
			return Turn{WaitUS: left}
		}
		c.sentAt = now
		return c.repeat(c.flow, 0, c.o.RetransmitUS)
	}
	if c.busy {
		c.finish()
		if c.host.NICLoad() != Overload && c.o.PauseUS > 0 {
			return Turn{WaitUS: c.o.PauseUS}
		}
	}
	if class := c.smallest(overdue); class >= 0 {
		if f, looked := c.find(overdue, class); f != none {
			c.place(f)
			return c.repeat(f, c.search(looked), c.o.PauseUS)
		}
	}
	f, evict, looked := c.choose()
	search := c.search(looked)
	if f == none {
		return Turn{WaitUS: max(search, c.o.PauseUS, c.o.ScanUS)}
	}
	var m Message
	var ok bool
	if evict {
		m, ok = c.host.Evict(f)
	} else {
		m, ok = c.host.Offload(f)
	}
	c.place(f)
	if !ok {
		return Turn{WaitUS: search}
	}
	c.busy, c.flow, c.evict, c.sentAt = true, f, evict, now+search
	return Turn{Message: m, Send: true, SearchUS: search, WaitUS: search + c.o.RetransmitUS}
}

func (c *Controller) search(looked int) (us float64) {
	c.Looked += uint64(looked)
	return float64(looked) * c.o.ScanUS
}

func (c *Controller) repeat(flow uint32, searchUS, waitUS float64) Turn {
	m, send := c.host.Repeat(flow)
	if send {
		c.Repeats++
	}
	return Turn{Message: m, Send: send, SearchUS: searchUS, WaitUS: searchUS + waitUS}
}

// finish accounts for a migration that has ended.
func (c *Controller) finish() {
	c.busy = false
	c.place(c.flow)
	switch {
	case c.evict:
		c.Evicted++
	case c.host.phase[c.flow] == Remote:
		c.Offloaded++
	default:
		c.Refused++
	}
}

const none = ^uint32(0)

// choose returns the flow to move next, none if none should, and how many it has
// looked at.
func (c *Controller) choose() (flow uint32, evict bool, looked int) {
	used := c.host.OnNIC() * c.o.width()
	switch load := c.host.NICLoad(); {
	case load == Overload:
		if c.host.OnHost() >= c.o.HostFlows {
			return none, false, 0
		}
		flow, looked = c.find(onNIC, c.heaviest(onNIC))
		return flow, true, looked
	case used > c.o.Entries:
		flow, looked = c.find(onNIC, c.smallest(onNIC))
		return flow, true, looked
	case load == Available && used+c.o.width() <= c.o.Entries:
		flow, looked = c.find(onHost, c.heaviest(onHost))
		return flow, false, looked
	case load == Available && c.o.Selection == ByWeight:
		// A full table: a flow that weighs less than half of one on the host makes
		// room for it.
		if small := c.smallest(onNIC); small >= 0 && small+1 < c.heaviest(onHost) {
			flow, looked = c.find(onNIC, small)
			return flow, true, looked
		}
	}
	return none, false, 0
}

// heaviest is the heaviest class of a side that has flows, -1 if none has.
func (c *Controller) heaviest(side int) int {
	for class := classes - 1; class >= 0; class-- {
		if c.sizes[side][class] > 0 {
			return class
		}
	}
	return -1
}

// smallest is the lightest class of a side that has flows, -1 if none has.
func (c *Controller) smallest(side int) int {
	for class := range classes {
		if c.sizes[side][class] > 0 {
			return class
		}
	}
	return -1
}

// find looks for a flow of a class on a side, onwards from where the last search
// ended; at random, for any flow of the side, from anywhere.
func (c *Controller) find(side, class int) (flow uint32, looked int) {
	if class < 0 {
		return none, 0
	}
	n := uint32(len(c.side))
	random := c.o.Selection == AtRandom
	if random {
		c.cursor = c.rand.Uint32N(n)
	}
	for range n {
		f := c.cursor
		if c.cursor++; c.cursor == n {
			c.cursor = 0
		}
		looked++
		if int(c.side[f]) == side && (random || bits.Len32(c.weight[f]) == class) {
			return f, looked
		}
	}
	return none, looked
}
