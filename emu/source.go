package emu

import (
	"nicprof/board"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// Source is the packets that reach a board: their times, sizes and flows, each
// from a stream of its own.
type Source struct {
	interval    sim.Time // of packet I/O, whatever the size
	perByte     float64  // of the wire, ps
	gap         float64  // mean, ps; 0: saturate
	bytes       float64
	distributed *traffic.Sizes
	flow        traffic.Popularity

	arrivals, sizes, flows *sim.Stream
}

// NewSource returns the packets of a resolved program under traffic. name begins
// those of the streams.
func NewSource(b *board.Board, base board.Base, p program.Program, t traffic.Traffic, seed uint64, name string) Source {
	s := Source{
		interval:    sim.Time(1e6/base.IOMpps.Value + 0.5),
		perByte:     8000 / b.LinkGbps.Value,
		bytes:       float64(p.PacketBytes),
		distributed: t.Sizes,
		arrivals:    sim.NewStream(seed, name+" arrival"),
		sizes:       sim.NewStream(seed, name+" size"),
		flows:       sim.NewStream(seed, name+" flow"),
	}
	if t.PacketBytes > 0 {
		s.bytes = float64(t.PacketBytes)
	}
	if t.RateMpps > 0 {
		s.gap = 1e6 / t.RateMpps
	}
	f := p.Flows
	if t.Flows != nil {
		f = t.Flows
	}
	if f != nil {
		s.flow = f.Sampler()
	}
	return s
}

// Saturates says that there is always another packet.
func (s *Source) Saturates() bool { return s.gap == 0 }

// Gap draws the time to the next packet at an offered rate.
func (s *Source) Gap() sim.Time { return sim.Time(s.arrivals.ExpFloat64() * s.gap) }

// Packet draws a packet's size and the time it takes at packet I/O: its interval
// or the wire's.
func (s *Source) Packet() (bytes float64, service sim.Time) {
	const overhead = 20 // preamble and inter-frame gap, bytes
	bytes = s.bytes
	if s.distributed != nil {
		bytes = s.distributed.Draw(s.sizes.Rand)
	}
	return bytes, max(s.interval, sim.Time((bytes+overhead)*s.perByte))
}

// Flow draws a packet's flow.
func (s *Source) Flow() int64 {
	if s.flow == nil {
		return 0
	}
	return s.flow.Draw(s.flows.Rand)
}
