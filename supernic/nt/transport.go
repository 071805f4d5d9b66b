package nt

import (
	"encoding/binary"

	"nicprof/sim"
)

// Segment is what a go-back-N transport sends: data with a sequence number, or
// an acknowledgement of all up to one. Sequence numbers count segments from 1.
type Segment struct {
	Seq  uint32 // of the data; 0 in an acknowledgement
	Ack  uint32 // the last segment received in order
	Data []byte
}

const segmentHead = 8

// Append appends the segment's bytes to b.
func (s Segment) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, s.Seq)
	b = binary.BigEndian.AppendUint32(b, s.Ack)
	return append(b, s.Data...)
}

// ParseSegment reads a segment, false if b is none. Data shares b's memory.
func ParseSegment(b []byte) (Segment, bool) {
	if len(b) < segmentHead {
		return Segment{}, false
	}
	return Segment{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), b[segmentHead:]}, true
}

// Sender is the sending side of go-back-N: up to Window segments are under way;
// when the oldest has not been acknowledged for Timeout, all of them are sent
// again. It has no clock: the caller says what time it is.
type Sender struct {
	Window  int
	Timeout sim.Time
	Resent  int64

	send   func(Segment)
	under  [][]byte // not acknowledged, in order
	first  uint32   // number of the first of them
	queue  [][]byte // beyond the window
	oldest sim.Time // when the first of under was sent last
}

// NewSender returns a sender that hands its segments to send.
func NewSender(window int, timeout sim.Time, send func(Segment)) *Sender {
	return &Sender{Window: window, Timeout: timeout, send: send, first: 1}
}

// Send sends data, at once or when the window has room.
func (s *Sender) Send(now sim.Time, data []byte) {
	s.queue = append(s.queue, data)
	s.fill(now)
}

func (s *Sender) fill(now sim.Time) {
	for len(s.queue) > 0 && len(s.under) < s.Window {
		if len(s.under) == 0 {
			s.oldest = now
		}
		s.under = append(s.under, s.queue[0])
		s.queue = s.queue[1:]
		s.send(Segment{Seq: s.first + uint32(len(s.under)) - 1, Data: s.under[len(s.under)-1]})
	}
}

// Receive takes an acknowledgement.
func (s *Sender) Receive(now sim.Time, a Segment) {
	n := int32(a.Ack - s.first + 1)
	if n <= 0 || int(n) > len(s.under) {
		return // an old one, or none of ours
	}
	s.under = s.under[n:]
	s.first += uint32(n)
	s.oldest = now
	s.fill(now)
}

// Tick sends all that is under way again if the oldest is overdue.
func (s *Sender) Tick(now sim.Time) {
	if len(s.under) == 0 || now-s.oldest < s.Timeout {
		return
	}
	s.oldest = now
	for i, data := range s.under {
		s.Resent++
		s.send(Segment{Seq: s.first + uint32(i), Data: data})
	}
}

// Idle says that everything was acknowledged.
func (s *Sender) Idle() bool { return len(s.under)+len(s.queue) == 0 }

// Receiver is the receiving side: it delivers segments in order, once each, and
// acknowledges the last one. Others it drops.
type Receiver struct {
	Dropped int64

	last    uint32
	send    func(Segment)
	deliver func([]byte)
}

// NewReceiver returns a receiver that hands data to deliver and acknowledgements
// to send.
func NewReceiver(send func(Segment), deliver func([]byte)) *Receiver {
	return &Receiver{send: send, deliver: deliver}
}

// Receive takes a segment of data.
func (r *Receiver) Receive(s Segment) {
	if s.Seq == r.last+1 {
		r.last++
		r.deliver(s.Data)
	} else {
		r.Dropped++
	}
	r.send(Segment{Ack: r.last})
}
