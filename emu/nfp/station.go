package nfp

import (
	"nicprof/board"
	"nicprof/emu"
	"nicprof/program"
	"nicprof/sim"
)

// Station is the card as a part of a larger emulation; see emu.Station. Packets
// from the wire pass packet I/O on their way in. Those from the host do not pass
// it again: they have a line of their own, and contexts take from both in turn.
// Packets leave in the order in which contexts took them, as the card's reorder
// block has it.
type Station struct {
	m     *machine
	owner emu.StationOwner

	interval sim.Time // of packet I/O, whatever the size
	perByte  float64  // of the wire, ps
	lines    [2]sim.Line[offered]
	last     emu.Port        // that a context took from
	idle     sim.Line[int32] // contexts without a packet, the longest first
	order    sim.Line[int64] // packets in work, in the order in which they began
	held     []bool          // by place in order, of those that are done: a ring
	first    int64           // place of the first in order
	next     int64           // place of the next packet that begins
	places   []int64         // by context: its packet's place
}

type offered struct {
	packet, flow int64
	bytes        float64
}

var _ emu.Station = (*Station)(nil)

// NewStation returns a card that runs the programs, all of one base, on a kernel.
// The programs must have been resolved against the board and have passed its
// check.
func NewStation(k *sim.Kernel, b *board.Board, programs []program.Program, owner emu.StationOwner, c Config) (*Station, error) {
	m, base, err := layMachine(k, b, programs, c)
	if err != nil {
		return nil, err
	}
	s := &Station{
		m: m, owner: owner,
		interval: sim.Time(1e6/base.IOMpps.Value + 0.5),
		perByte:  8000 / b.LinkGbps.Value,
		places:   make([]int64, len(m.contexts)),
	}
	n := 1
	for n < 2*len(m.contexts) {
		n *= 2
	}
	s.held = make([]bool, n)
	// in turn over the microengines, as the load balancer deals
	for t := range m.threads {
		for e := range m.cores {
			s.idle.Push(int32(e*m.threads + t))
		}
	}
	m.station = s
	return s, nil
}

// Threads returns the number of contexts.
func (s *Station) Threads() int { return len(s.m.contexts) }

// Waiting returns the packets that wait for a context.
func (s *Station) Waiting() int { return s.lines[emu.Wire].Len() + s.lines[emu.FromHost].Len() }

// Handle takes an event of the card.
func (s *Station) Handle(ev sim.Event) { s.m.handle(ev) }

// Offer gives the card a packet; see emu.Station.
func (s *Station) Offer(packet, flow int64, bytes float64, from emu.Port) bool {
	if s.idle.Len() > 0 {
		s.take(s.idle.Pop(), offered{packet, flow, bytes}, from)
		return true
	}
	line := &s.lines[from]
	if line.Len() >= ingressBuffer {
		return false
	}
	line.Push(offered{packet, flow, bytes})
	return true
}

// take starts a context on a packet.
func (s *Station) take(c int32, o offered, from emu.Port) {
	m := s.m
	t := &m.contexts[c]
	at := m.kernel.Now()
	if from == emu.Wire {
		const overhead = 20 // preamble and inter-frame gap, bytes
		service := max(s.interval, sim.Time((o.bytes+overhead)*s.perByte))
		at = m.io.Serve(at, service) + service
	}
	s.places[c] = s.next
	s.next++
	s.order.Push(o.packet)
	m.start(c, at, s.owner.Begin(o.packet, int(c), at-t.left), o.flow)
}

// left is the end of a packet's program. The packet leaves when all before it
// have, its context takes the next at once.
func (s *Station) left(c int32) {
	m := s.m
	now := m.kernel.Now()
	m.contexts[c].left = now
	mask := int64(len(s.held) - 1)
	place := s.places[c]
	if place-s.first > mask {
		s.grow()
		mask = int64(len(s.held) - 1)
	}
	s.held[place&mask] = true
	for s.order.Len() > 0 && s.held[s.first&mask] {
		s.held[s.first&mask] = false
		s.first++
		s.owner.Done(s.order.Pop())
	}
	from := 1 - s.last
	if s.lines[from].Len() == 0 {
		from = s.last
	}
	if s.lines[from].Len() == 0 {
		s.idle.Push(c)
		return
	}
	s.last = from
	s.take(c, s.lines[from].Pop(), from)
}

// grow makes room for more packets that wait for one before them.
func (s *Station) grow() {
	old, oldMask := s.held, int64(len(s.held)-1)
	s.held = make([]bool, 2*len(old))
	mask := int64(len(s.held) - 1)
	for i := s.first; i <= s.first+oldMask; i++ {
		s.held[i&mask] = old[i&oldMask]
	}
}
