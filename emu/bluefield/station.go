package bluefield

import (
	"nicprof/board"
	"nicprof/emu"
	"nicprof/program"
	"nicprof/sim"
)

// Station is the board as a part of a larger emulation; see emu.Station. Packets
// of one flow go to one core, so that they leave in order; those from the host
// have a ring of their own at each core, which takes from both in turn.
type Station struct {
	m     *machine
	owner emu.StationOwner

	interval sim.Time // of the eSwitch, whatever the size
	perByte  float64  // of the wire, ps
	ports    []port   // by core
	waiting  int
}

type port struct {
	lines  [2]sim.Line[offered]
	last   emu.Port // that the core took from
	packet int64    // on the core
}

type offered struct {
	packet, flow int64
	ready        sim.Time
	bytes        float64
}

// stationRing is the receive descriptors of a core.
const stationRing = 256

var _ emu.Station = (*Station)(nil)

// NewStation returns a board that runs the programs, all of one base, on a
// kernel. The programs must have been resolved against the board and have passed
// its check.
func NewStation(k *sim.Kernel, b *board.Board, programs []program.Program, owner emu.StationOwner, c emu.Config) (*Station, error) {
	m, base, err := layMachine(k, b, programs, c)
	if err != nil {
		return nil, err
	}
	for i := range m.cores {
		m.cores[i].idle = true
	}
	s := &Station{
		m: m, owner: owner,
		interval: sim.Time(1e6/base.IOMpps.Value + 0.5),
		perByte:  8000 / b.LinkGbps.Value,
		ports:    make([]port, len(m.cores)),
	}
	m.station = s
	return s, nil
}

// Threads returns the number of cores.
func (s *Station) Threads() int { return len(s.m.cores) }

// Waiting returns the packets in the cores' rings.
func (s *Station) Waiting() int { return s.waiting }

// Handle takes an event of the board.
func (s *Station) Handle(ev sim.Event) { s.m.handle(ev) }

// spread deals flows over cores as receive-side scaling does: by a hash.
func spread(flow int64, n int) int {
	h := uint64(flow) * 0x9e3779b97f4a7c15
	return int(h >> 32 * uint64(n) >> 32)
}

// Offer gives the board a packet; see emu.Station. It passes the eSwitch when it
// comes from the wire, and the PCIe of the board either way.
func (s *Station) Offer(packet, flow int64, bytes float64, from emu.Port) bool {
	m := s.m
	now := m.kernel.Now()
	i := spread(flow, len(s.ports))
	line := &s.ports[i].lines[from]
	if line.Len() >= stationRing {
		return false
	}
	ready := now
	if from == emu.Wire {
		const overhead = 20 // preamble and inter-frame gap, bytes
		service := max(s.interval, sim.Time((bytes+overhead)*s.perByte))
		if m.eswitch.Free()-now > buffer*service {
			return false
		}
		ready = m.eswitch.Serve(now, service) + service
	}
	m.pcieIn.Serve(max(ready, m.pcieIn.Free()), sim.Time(bytes*m.pciePerByte))
	line.Push(offered{packet, flow, m.pcieIn.Free(), bytes})
	s.waiting++
	if c := &m.cores[i]; c.idle {
		c.idle = false
		s.take(c)
	}
	return true
}

// take starts a core on its next packet.
func (s *Station) take(c *core) {
	p := &s.ports[c.id]
	from := 1 - p.last
	if p.lines[from].Len() == 0 {
		from = p.last
	}
	if p.lines[from].Len() == 0 {
		c.idle = true
		return
	}
	o := p.lines[from].Pop()
	s.waiting--
	p.last, p.packet = from, o.packet
	m := s.m
	at := max(m.kernel.Now(), o.ready)
	c.bytes, c.flow, c.phase = o.bytes, o.flow, phaseStart
	c.step = m.starts[s.owner.Begin(o.packet, int(c.id), at-c.gone)]
	m.kernel.At(at, evCore, c.id, 0)
}

// left is the end of a packet.
func (s *Station) left(c *core) {
	c.gone = s.m.kernel.Now()
	s.owner.Done(s.ports[c.id].packet)
	s.take(c)
}
