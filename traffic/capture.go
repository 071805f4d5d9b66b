package traffic

import (
	"io"
	"slices"

	"nicprof/internal/fault"
	"nicprof/traffic/capture"
)

// ReadCapture reads a pcap or pcapng, plain or gzipped: the flows (5-tuples of
// the outer IP header; what is not IP is one flow an EtherType) with their
// shares of the packets, the frame sizes as on the wire (with check sequence
// and padding), and the mean rate by the time stamps, 0 when these do not
// tell. A file that is cut gives what is before the cut and a warning.
func ReadCapture(in io.Reader, name string) (Traffic, error) {
	s, err := capture.FromReader(in, name)
	if err != nil {
		return Traffic{}, err
	}
	return sourceTraffic(s, name)
}

// ReadCaptures reads captures as one, see capture.Source and ReadCapture.
func ReadCaptures(paths ...string) (Traffic, error) {
	s, err := capture.Open(paths...)
	if err != nil {
		return Traffic{}, err
	}
	defer s.Close()
	return sourceTraffic(s, paths[0])
}

func sourceTraffic(s *capture.Source, name string) (Traffic, error) {
	x, err := NewExtractor(FiveTuple())
	if err != nil {
		return Traffic{}, err
	}
	flows := newGroupTable(x.Words())
	key := make([]uint64, x.Words())
	var m tally
	for p, err := range packets(s, &Volumes{}) {
		if err != nil {
			return Traffic{}, err
		}
		size := p.FrameBytes()
		if size > MaxPacketBytes {
			return Traffic{}, fault.Inputf("%s: packet %d: %d bytes; expected at most %d: switch segmentation offload off when capturing", name, p.Number, size, MaxPacketBytes)
		}
		x.Extract(p.headers, key)
		m.add(flows.number(key, hash(key)), size, 1)
	}
	t, ok := m.traffic()
	if !ok {
		return Traffic{}, noPackets(s, name)
	}
	if seconds, gaps := s.Seconds(); gaps > 0 {
		t.RateMpps = gaps / seconds / 1e6
	}
	t.Warnings = s.Warnings()
	return t, nil
}

// tally adds packets up by flow and by size. Its zero value is empty.
type tally struct {
	total float64
	flows []float64
	sizes [MaxPacketBytes + 1]float64
}

// add counts packets, or packets a second, of one flow and size. Flows are
// numbered in the order in which they come first.
func (m *tally) add(flow, bytes int, packets float64) {
	if flow == len(m.flows) {
		m.flows = append(m.flows, 0)
	}
	m.total += packets
	m.flows[flow] += packets
	m.sizes[bytes] += packets
}

// traffic returns the flows' shares and the sizes, or false without a packet.
func (m *tally) traffic() (Traffic, bool) {
	if m.total == 0 {
		return Traffic{}, false
	}
	shares := make([]float64, 0, len(m.flows))
	for _, packets := range m.flows {
		if packets > 0 {
			shares = append(shares, packets/m.total)
		}
	}
	slices.Sort(shares)
	slices.Reverse(shares)
	t := Traffic{Flows: &Flows{Count: len(shares), Shares: shares}}
	var bytes, weights []float64
	for size, packets := range m.sizes {
		if packets > 0 {
			bytes, weights = append(bytes, float64(size)), append(weights, packets)
		}
	}
	if len(bytes) == 1 {
		t.PacketBytes = int(bytes[0])
	} else {
		t.Sizes = weighted("", bytes, weights)
	}
	return t, true
}
