package netif

import (
	"bytes"
	"encoding/binary"
	"math"
	"net"

	"nicprof/internal/fault"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// A frame is Ethernet, IPv4 and UDP with a probe at the head of the payload: a
// mark that tells this trial's packets from all others, a sequence number, and
// the time of sending. Interfaces carry frames without the check sequence that
// packet sizes include.
const (
	checkSequence = 4
	ethernetLen   = 14
	ipv4Len       = 20
	udpLen        = 8
	probeAt       = ethernetLen + ipv4Len + udpLen
	probeLen      = 2 + 8 + 8
	minFrame      = probeAt + probeLen // 60: the smallest frame has just the room
	ttlAt         = ethernetLen + 8
	checksumAt    = ethernetLen + 10
	startTTL      = 64
	etherIPv4     = 0x0800
	protoUDP      = 17
)

// template is a set of frames to send in turn: sizes and flows are drawn once,
// before packets are timed.
type template struct {
	frames  [][]byte
	longest int
}

// templates is the number of frames drawn. Rarer flows and sizes than one in so
// many may be missing.
const templates = 8192

// frames draws the packets of a program under traffic: sizes from the traffic,
// else from the program, and flows likewise. Flow i has its own source address
// in 198.18.0.0/16 (RFC 2544's range for benchmarks) and its own ports.
func frames(p program.Program, t traffic.Traffic, from, to net.HardwareAddr, seed uint64) *template {
	flows := p.Flows
	if t.Flows != nil {
		flows = t.Flows
	}
	size := p.PacketBytes
	if t.PacketBytes > 0 {
		size = t.PacketBytes
	}
	sizes := sim.NewStream(seed, "packet sizes")
	which := sim.NewStream(seed, "flows")
	of := flows.Sampler()
	lengths := make([]int, templates)
	total := 0
	tp := &template{frames: make([][]byte, templates)}
	for i := range lengths {
		bytes := float64(size)
		if t.Sizes != nil {
			bytes = t.Sizes.Draw(sizes.Rand)
		}
		n := max(minFrame, int(math.Round(bytes))-checkSequence)
		lengths[i] = n
		total += n
		tp.longest = max(tp.longest, n)
	}
	memory := make([]byte, total)
	for i, n := range lengths {
		tp.frames[i], memory = memory[:n:n], memory[n:]
		build(tp.frames[i], from, to, uint64(of.Draw(which.Rand)))
	}
	return tp
}

// mark makes the frames those of one trial.
func (t *template) mark(mark uint16) {
	for _, f := range t.frames {
		binary.BigEndian.PutUint16(f[probeAt:], mark)
	}
}

// build writes the headers of a frame of a flow.
func build(f []byte, from, to net.HardwareAddr, flow uint64) {
	be := binary.BigEndian
	copy(f[0:], to)
	copy(f[6:], from)
	be.PutUint16(f[12:], etherIPv4)
	ip := f[ethernetLen:]
	ip[0], ip[1] = 0x45, 0
	be.PutUint16(ip[2:], uint16(len(f)-ethernetLen))
	be.PutUint32(ip[4:], 0) // no identification, may be fragmented
	ip[8], ip[9] = startTTL, protoUDP
	be.PutUint16(ip[10:], 0)
	copy(ip[12:], sourceNet)
	ip[14], ip[15] = byte(flow>>8), byte(flow)
	copy(ip[16:], destination)
	be.PutUint16(ip[10:], ^sum(ip[:ipv4Len]))
	udp := ip[ipv4Len:]
	be.PutUint16(udp[0:], uint16(flow>>16))
	be.PutUint16(udp[2:], uint16(flow>>32))
	be.PutUint16(udp[4:], uint16(len(f)-ethernetLen-ipv4Len))
	be.PutUint16(udp[6:], 0) // no checksum: it would have to change with every probe
}

// sum is the Internet checksum's sum of 16-bit words (RFC 1071) of an even
// number of bytes.
func sum(b []byte) uint16 {
	s := uint32(0)
	for ; len(b) > 1; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// stamp writes a probe's sequence number and time, ns since the epoch.
func stamp(f []byte, sequence uint64, now int64) {
	binary.LittleEndian.PutUint64(f[probeAt+2:], sequence)
	binary.LittleEndian.PutUint64(f[probeAt+10:], uint64(now))
}

// ours says whether a frame carries this trial's mark.
func ours(f []byte, mark uint16) bool {
	return len(f) >= minFrame && binary.BigEndian.Uint16(f[12:]) == etherIPv4 && f[ethernetLen] == 0x45 &&
		f[ethernetLen+9] == protoUDP && binary.BigEndian.Uint16(f[probeAt:]) == mark
}

// forward is the program: it takes over a frame of this trial as a router
// would, its time to live one less with the checksum brought up to date
// (RFC 1624), and swaps the MAC addresses. False: not of this trial, or expired.
func forward(f []byte, mark uint16) bool {
	if !ours(f, mark) || f[ttlAt] <= 1 {
		return false
	}
	f[ttlAt]--
	// The word of TTL and protocol became 0x0100 less, so the checksum becomes
	// that much more, in ones' complement.
	c := uint32(binary.BigEndian.Uint16(f[checksumAt:])) + 0x0100
	binary.BigEndian.PutUint16(f[checksumAt:], uint16(c+c>>16))
	var mac [6]byte
	copy(mac[:], f[0:6])
	copy(f[0:6], f[6:12])
	copy(f[6:12], mac[:])
	return true
}

// change is what a forwarder does to a packet, as far as the sink checks it.
type change struct {
	macs  macChange
	tuple bool // addresses and ports of IP and UDP swapped
	hop   bool // time to live one less
}

type macChange int

const (
	kept      macChange = iota
	swapped             // source and destination
	rewritten           // to the forwarder's own
)

// routed is what forward does.
var routed = change{macs: swapped, hop: true}

// sourceNet and destination are the first bytes of the packets' addresses.
var (
	sourceNet   = []byte{198, 18}
	destination = []byte{198, 19, 0, 1}
)

// probe is what the sink reads of a frame.
type probe struct {
	sequence uint64
	sent     int64 // ns since the epoch
	whole    bool  // changed by the forwarder as it should be, and not otherwise
}

// readProbe reads a frame of this trial. from and to are as the generator wrote
// them.
func readProbe(f []byte, from, to net.HardwareAddr, c change) probe {
	p := probe{
		sequence: binary.LittleEndian.Uint64(f[probeAt+2:]),
		sent:     int64(binary.LittleEndian.Uint64(f[probeAt+10:])),
	}
	ttl := byte(startTTL)
	if c.hop {
		ttl--
	}
	ip := f[ethernetLen : ethernetLen+ipv4Len]
	source, dest := ip[12:16], ip[16:20]
	if c.tuple {
		source, dest = dest, source
	}
	if c.macs == swapped {
		from, to = to, from
	}
	p.whole = f[ttlAt] == ttl && sum(ip) == 0xffff &&
		bytes.HasPrefix(source, sourceNet) && bytes.Equal(dest, destination) &&
		(c.macs == rewritten || bytes.Equal(f[0:6], to) && bytes.Equal(f[6:12], from))
	return p
}

// checkSizes refuses packets that the path does not carry.
func checkSizes(p program.Program, t traffic.Traffic, most int) error {
	size := float64(p.PacketBytes)
	if t.PacketBytes > 0 {
		size = float64(t.PacketBytes)
	}
	if t.Sizes != nil {
		size = t.Sizes.Max()
	}
	if size > float64(most) {
		return fault.Inputf("packets of up to %.0f B: base %s carries at most %d B", size, p.Base, most)
	}
	return nil
}
