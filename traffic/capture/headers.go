package capture

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Layer is a header of a packet. Headers are those from the outside: what
// GRE, VXLAN or IP in IP carry is Payload.
type Layer uint8

// Layers.
const (
	Frame    Layer = iota // all of a packet from its first captured byte
	Ethernet              // destination, source, EtherType or length
	VLAN                  // outer tag: TCI and the EtherType behind it
	VLAN2                 // inner tag of QinQ
	MPLS                  // label stack from its top
	IPv4
	IPv6    // without extension headers
	NonIP   // what follows Ethernet and tags when it is not IP: EtherType (16 bits), then its payload
	TCP     //
	UDP     //
	SCTP    //
	ICMP    // of IPv4 or IPv6
	Payload // what follows TCP, UDP or SCTP; of other protocols what follows IP and its extension headers
	numLayers
)

var layerNames = [numLayers]string{"frame", "ethernet", "vlan", "vlan2", "mpls", "ipv4", "ipv6", "nonip", "tcp", "udp", "sctp", "icmp", "payload"}

func (l Layer) String() string {
	if l < numLayers {
		return layerNames[l]
	}
	return fmt.Sprintf("layer %d", uint8(l))
}

// ParseLayer returns the layer of a name.
func ParseLayer(name string) (Layer, bool) {
	i := slices.Index(layerNames[:], name)
	return Layer(max(i, 0)), i >= 0
}

// Layers lists all layers.
func Layers() []Layer {
	all := make([]Layer, numLayers)
	for i := range all {
		all[i] = Layer(i)
	}
	return all
}

// EtherTypes, IP protocols and extension headers that are followed.
const (
	typeIPv4   = 0x0800
	typeIPv6   = 0x86dd
	typeVLAN   = 0x8100
	typeQinQ   = 0x88a8
	typeQinQ2  = 0x9100
	typeMPLS   = 0x8847
	typeMPLSUp = 0x8848

	protoHopByHop = 0
	protoICMP     = 1
	protoTCP      = 6
	protoUDP      = 17
	protoRouting  = 43
	protoFragment = 44
	protoAH       = 51
	protoICMP6    = 58
	protoNone     = 59
	protoOptions  = 60
	protoSCTP     = 132
	protoMobility = 135
	protoHIP      = 139
	protoShim6    = 140
)

// Headers are the headers found in one packet.
type Headers struct {
	data    []byte
	l4      []byte // of the first fragment, for later ones
	present uint16 // by Layer
	cut     bool
	at      [numLayers]int32

	fragment fragment
	id       int32 // where the fragment's identification is
	idBytes  int32
	proto    uint8 // above IP
}

type fragment uint8

const (
	whole fragment = iota
	first
	later
)

// Has reports whether the packet has a header of the layer, be it cut.
func (h *Headers) Has(l Layer) bool { return h.present>>l&1 != 0 }

// Cut reports whether the captured bytes end before the headers do.
func (h *Headers) Cut() bool { return h.cut }

// LaterFragment reports whether the packet is an IP fragment without its
// transport header.
func (h *Headers) LaterFragment() bool { return h.fragment == later }

// Bytes returns what was captured from the first byte of a layer's header on:
// nil when the packet has no such layer, fewer than the header when it is cut.
func (h *Headers) Bytes(l Layer) []byte {
	if h.present>>l&1 == 0 {
		return nil
	}
	if l >= TCP && h.l4 != nil {
		return h.l4[min(int(h.at[l]), len(h.l4)):]
	}
	if at := int(h.at[l]); at < len(h.data) {
		return h.data[at:]
	}
	return nil
}

func (h *Headers) set(l Layer, at int) {
	h.present |= 1 << l
	h.at[l] = int32(at)
}

// Parse finds the headers of a packet whose link type is known. The result
// refers to p.Data.
func (h *Headers) Parse(p *Packet) {
	h.data, h.l4, h.cut, h.fragment = p.Data, nil, false, whole
	h.present = 0
	h.set(Frame, 0)
	d := p.Data
	switch p.Link {
	case Ethernet2:
		h.set(Ethernet, 0)
		if len(d) < 14 {
			h.cut = true
			return
		}
		h.network(12)
	case SLL:
		if len(d) < 16 {
			h.cut = true
			return
		}
		h.network(14)
	case SLL2:
		if len(d) < 20 {
			h.cut = true
			return
		}
		h.protocol(binary.BigEndian.Uint16(d), 20, -1)
	case Null, Loop:
		if len(d) < 4 {
			h.cut = true
			return
		}
		h.ip(4)
	default:
		h.ip(0)
	}
}

// network goes on at an EtherType at d[at:], through tags.
func (h *Headers) network(at int) {
	d := h.data
	for tags := 0; ; tags++ {
		if len(d) < at+2 {
			h.cut = true
			return
		}
		t := binary.BigEndian.Uint16(d[at:])
		if t != typeVLAN && t != typeQinQ && t != typeQinQ2 || tags == maxTags {
			h.protocol(t, at+2, at)
			return
		}
		if tags < 2 {
			h.set(VLAN+Layer(tags), at+2)
		}
		at += 4
	}
}

// maxTags bounds the VLAN tags and MPLS labels that are followed.
const maxTags = 16

// protocol goes on at the payload of an EtherType, which is itself at typeAt,
// or elsewhere than before its payload when that is negative.
func (h *Headers) protocol(t uint16, at, typeAt int) {
	switch t {
	case typeIPv4, typeIPv6:
		h.ip(at)
	case typeMPLS, typeMPLSUp:
		h.set(MPLS, at)
		for range maxTags {
			if len(h.data) < at+4 {
				h.cut = true
				return
			}
			bottom := h.data[at+2]&1 != 0
			at += 4
			if bottom {
				h.ip(at) // or something else, which ip leaves alone
				return
			}
		}
	default:
		if typeAt >= 0 {
			h.set(NonIP, typeAt)
		}
	}
}

// ip goes on at an IP header of either version.
func (h *Headers) ip(at int) {
	if at >= len(h.data) {
		h.cut = true
		return
	}
	d := h.data[at:]
	switch d[0] >> 4 {
	case 4:
		h.set(IPv4, at)
		if len(d) < 20 {
			h.cut = true
			return
		}
		length := int(d[0]&15) * 4
		if length < 20 {
			return // malformed: what follows is unknown
		}
		if f := binary.BigEndian.Uint16(d[6:]); f&0x3fff != 0 {
			h.fragment = first
			if f&0x1fff != 0 {
				h.fragment = later
			}
			h.id, h.idBytes = int32(at+4), 2
		}
		h.transport(d[9], at+length)
	case 6:
		h.set(IPv6, at)
		if len(d) < 40 {
			h.cut = true
			return
		}
		h.extensions(d[6], at+40)
	}
}

// extensions goes on behind an IPv6 header, through extension headers.
func (h *Headers) extensions(next uint8, at int) {
	for {
		length := 0
		switch next {
		case protoHopByHop, protoRouting, protoOptions, protoMobility, protoHIP, protoShim6, protoFragment, protoAH:
			if len(h.data) < at+8 {
				h.cut = true
				return
			}
		default:
			h.transport(next, at)
			return
		}
		switch next {
		case protoFragment:
			length = 8
			if f := binary.BigEndian.Uint16(h.data[at+2:]); f&0xfff9 != 0 { // not atomic (RFC 6946)
				h.fragment = first
				if f&0xfff8 != 0 {
					h.fragment = later
				}
				h.id, h.idBytes = int32(at+4), 4
			}
		case protoAH:
			length = (int(h.data[at+1]) + 2) * 4
		default:
			length = (int(h.data[at+1]) + 1) * 8
		}
		next = h.data[at]
		at += length
		if h.fragment == later {
			h.proto = next
			return
		}
	}
}

// transport goes on behind IP.
func (h *Headers) transport(proto uint8, at int) {
	h.proto = proto
	if h.fragment == later {
		return
	}
	h.segment(h.data, proto, at)
}

// segment finds the transport header at d[at:].
func (h *Headers) segment(d []byte, proto uint8, at int) {
	switch proto {
	case protoTCP:
		h.set(TCP, at)
		if len(d) < at+20 {
			h.cut = true
		} else if length := int(d[at+12]>>4) * 4; length >= 20 {
			h.set(Payload, at+length)
		}
	case protoUDP:
		h.set(UDP, at)
		h.set(Payload, at+8)
		h.cut = h.cut || len(d) < at+8
	case protoSCTP:
		h.set(SCTP, at)
		h.set(Payload, at+12)
		h.cut = h.cut || len(d) < at+12
	case protoICMP, protoICMP6:
		h.set(ICMP, at)
		h.cut = h.cut || len(d) < at+8
	case protoNone:
	default:
		h.set(Payload, at)
	}
}

// Fragments gives later fragments the transport header of their first one. Its
// zero value remembers none.
type Fragments struct {
	seen map[fragmentID]datagram
	ring []fragmentID
	next int
	lost int64
}

type fragmentID struct {
	addresses [32]byte
	id        [4]byte
	proto     uint8
	v6        bool
}

type datagram struct {
	l4    []byte
	proto uint8
	time  int64
}

const (
	maxDatagrams   = 1 << 14 // remembered at a time
	keptBytes      = 128     // of a first fragment, from its transport header on
	reassemblyTime = 60e9    // ns; after it an identification is used again (RFC 8200, RFC 1122)
)

// Resolve remembers the transport header of a first fragment, and makes it
// that of the later ones. A later one whose first was not seen stays without,
// and is counted.
func (f *Fragments) Resolve(h *Headers, time int64) {
	if h.fragment == whole {
		return
	}
	k, ok := h.fragmentID()
	if !ok {
		return
	}
	if h.fragment == later {
		d, ok := f.seen[k]
		if !ok || time-d.time > reassemblyTime {
			f.lost++
			return
		}
		h.l4 = d.l4
		h.segment(d.l4, d.proto, 0)
		return
	}
	at := len(h.data)
	for l := TCP; l < numLayers; l++ {
		if h.Has(l) {
			at = min(at, int(h.at[l]))
		}
	}
	if f.seen == nil {
		f.seen, f.ring = map[fragmentID]datagram{}, make([]fragmentID, maxDatagrams)
	}
	if _, again := f.seen[k]; !again {
		delete(f.seen, f.ring[f.next])
		f.ring[f.next] = k
		f.next = (f.next + 1) % maxDatagrams
	}
	f.seen[k] = datagram{append([]byte{}, h.data[at:min(len(h.data), at+keptBytes)]...), h.proto, time}
}

// Lost returns how many later fragments came without their first.
func (f *Fragments) Lost() int64 { return f.lost }

func (h *Headers) fragmentID() (fragmentID, bool) {
	k := fragmentID{v6: h.Has(IPv6)}
	if int(h.id+h.idBytes) > len(h.data) {
		return k, false
	}
	copy(k.id[:], h.data[h.id:h.id+h.idBytes])
	if k.v6 {
		copy(k.addresses[:], h.data[h.at[IPv6]+8:h.at[IPv6]+40])
	} else {
		copy(k.addresses[:], h.data[h.at[IPv4]+12:h.at[IPv4]+20])
		k.proto = h.proto // IPv6 tells datagrams apart without it
	}
	return k, true
}

// Valid reports whether the layer exists.
func (l Layer) Valid() bool { return l < numLayers }
