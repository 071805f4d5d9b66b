// Package nt is what network tasks do to packets: bytes in, bytes out. It knows
// no time and no board; what an NT costs is in the board file, and the emulated
// board makes packets wait for it.
//
// Packets are Ethernet frames without check sequence. NTs that look into them
// work on IPv4 with TCP or UDP and let other frames pass as they are, except
// where they say so.
package nt

import (
	"encoding/binary"
	"net/netip"
)

// Verdict is what becomes of a packet.
type Verdict int

// A packet goes on, back to where it came from, or nowhere.
const (
	Pass Verdict = iota
	Reply
	Drop
)

func (v Verdict) String() string { return [...]string{"pass", "reply", "drop"}[v] }

// NT processes one packet at a time. The packet that it returns may be the one
// it was given, changed; the caller keeps neither.
type NT interface {
	Process(packet []byte) ([]byte, Verdict)
}

// Chain is NTs one after the other, which a packet leaves where it is not passed.
type Chain []NT

// Process runs a packet through the chain.
func (c Chain) Process(packet []byte) ([]byte, Verdict) {
	for _, nt := range c {
		var v Verdict
		if packet, v = nt.Process(packet); v != Pass {
			return packet, v
		}
	}
	return packet, Pass
}

// Dummy passes every packet.
type Dummy struct{}

// Process passes the packet.
func (Dummy) Process(packet []byte) ([]byte, Verdict) { return packet, Pass }

// Protocols that NTs know.
const (
	TCP = 6
	UDP = 17
)

const (
	etherBytes = 14
	etherIPv4  = 0x0800
	ipv4Bytes  = 20
	udpBytes   = 8
	tcpBytes   = 20
)

// view is where the headers of an IPv4 packet lie.
type view struct {
	packet  []byte // up to the end of the IP packet
	l4      int
	payload int
	proto   byte
	ok      bool // IPv4, whole, TCP or UDP with ports
}

// look finds the headers of a packet.
func look(packet []byte) (v view) {
	if len(packet) < etherBytes+ipv4Bytes || binary.BigEndian.Uint16(packet[12:]) != etherIPv4 {
		return v
	}
	ip := packet[etherBytes:]
	head := int(ip[0]&0xf) * 4
	total := int(binary.BigEndian.Uint16(ip[2:]))
	if ip[0]>>4 != 4 || head < ipv4Bytes || total < head || total > len(ip) {
		return v
	}
	if binary.BigEndian.Uint16(ip[6:])&0x3fff != 0 {
		return v // a fragment: its ports are elsewhere, or its checksum covers more
	}
	v.packet, v.l4, v.proto = packet[:etherBytes+total], etherBytes+head, ip[9]
	switch l4 := v.packet[v.l4:]; v.proto {
	case UDP:
		v.payload = v.l4 + udpBytes
		v.ok = len(l4) >= udpBytes && int(binary.BigEndian.Uint16(l4[4:])) == len(l4)
	case TCP:
		if len(l4) >= tcpBytes {
			offset := int(l4[12]>>4) * 4
			v.payload = v.l4 + offset
			v.ok = offset >= tcpBytes && offset <= len(l4)
		}
	}
	return v
}

// Endpoint is an address and a port of a protocol.
type Endpoint struct {
	Addr  netip.Addr
	Port  uint16
	Proto byte
}

// Flow is the two ends of a packet.
type Flow struct{ From, To Endpoint }

func (v *view) flow() Flow {
	ip, l4 := v.packet[etherBytes:], v.packet[v.l4:]
	return Flow{
		Endpoint{netip.AddrFrom4([4]byte(ip[12:16])), binary.BigEndian.Uint16(l4), v.proto},
		Endpoint{netip.AddrFrom4([4]byte(ip[16:20])), binary.BigEndian.Uint16(l4[2:]), v.proto},
	}
}

// setFrom and setTo rewrite an end of the packet and bring its checksums along.
func (v *view) setFrom(e Endpoint) { v.set(12, 0, e) }
func (v *view) setTo(e Endpoint)   { v.set(16, 2, e) }

func (v *view) set(addr, port int, e Endpoint) {
	ip, l4 := v.packet[etherBytes:], v.packet[v.l4:]
	a := e.Addr.As4()
	var p [2]byte
	binary.BigEndian.PutUint16(p[:], e.Port)
	v.adjust(ip[10:12], ip[addr:addr+4], a[:], false)
	sum := v.checksum()
	none := v.proto == UDP && sum[0] == 0 && sum[1] == 0 // UDP without checksum keeps none
	if !none {
		v.adjust(sum, ip[addr:addr+4], a[:], v.proto == UDP)
		v.adjust(sum, l4[port:port+2], p[:], v.proto == UDP)
	}
	copy(ip[addr:], a[:])
	copy(l4[port:], p[:])
}

// checksum returns the place of the transport checksum.
func (v *view) checksum() []byte {
	at := v.l4 + 6
	if v.proto == TCP {
		at = v.l4 + 16
	}
	return v.packet[at : at+2]
}

// adjust updates a checksum for bytes that change from old to new (RFC 1624,
// equation 3). A UDP checksum of 0 is sent as all ones.
func (v *view) adjust(sum, old, new []byte, udp bool) {
	s := uint32(^binary.BigEndian.Uint16(sum))
	for i := 0; i < len(old); i += 2 {
		s += uint32(^binary.BigEndian.Uint16(old[i:])) + uint32(binary.BigEndian.Uint16(new[i:]))
	}
	binary.BigEndian.PutUint16(sum, fold(s, udp))
}

func fold(s uint32, udp bool) uint16 {
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	if r := ^uint16(s); r != 0 || !udp {
		return r
	}
	return 0xffff
}

// resum computes the lengths and checksums of a packet anew whose payload has
// changed.
func (v *view) resum() {
	ip, l4 := v.packet[etherBytes:], v.packet[v.l4:]
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	clear(ip[10:12])
	binary.BigEndian.PutUint16(ip[10:], fold(add(0, ip[:v.l4-etherBytes]), false))
	sum := v.checksum()
	none := v.proto == UDP && sum[0] == 0 && sum[1] == 0
	if v.proto == UDP {
		binary.BigEndian.PutUint16(l4[4:], uint16(len(l4)))
	}
	if none {
		return
	}
	clear(sum)
	s := add(uint32(v.proto)+uint32(len(l4)), ip[12:20])
	binary.BigEndian.PutUint16(sum, fold(add(s, l4), v.proto == UDP))
}

// add adds bytes to a ones' complement sum.
func add(s uint32, b []byte) uint32 {
	for ; len(b) > 1; b = b[2:] {
		s += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	return s
}
