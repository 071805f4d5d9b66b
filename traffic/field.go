package traffic

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"slices"
	"strings"

	"nicprof/internal/fault"
	"nicprof/traffic/capture"
)

// Field is a field of a packet: bits Offset up to Offset+Bits of the header of
// a layer, bit 0 the first on the wire. With Bits 0 it is whether the packet
// has such a header. Fields are named by place, not by spelling, since every
// program names its headers itself: whatever a program calls it, the field of
// 32 bits at bit 96 of its IPv4 header is {capture.IPv4, 96, 32}.
//
// A header that no layer describes can be reached from the layer before it:
// behind an EtherType of its own it begins at bit 16 of capture.NonIP, behind
// UDP or TCP at bit 0 of capture.Payload.
type Field struct {
	Layer  capture.Layer
	Offset int
	Bits   int
}

func (f Field) String() string {
	if name, ok := fieldNames[f]; ok {
		return name
	}
	if f.Bits == 0 {
		return f.Layer.String()
	}
	return fmt.Sprintf("%v[%d:%d]", f.Layer, f.Offset, f.Offset+f.Bits)
}

// Fields that every network engineer has a name for.
var (
	EtherSource = Field{capture.Ethernet, 48, 48}
	EtherDest   = Field{capture.Ethernet, 0, 48}
	VLANID      = Field{capture.VLAN, 4, 12}
	IPv4Source  = Field{capture.IPv4, 96, 32}
	IPv4Dest    = Field{capture.IPv4, 128, 32}
	IPv4Proto   = Field{capture.IPv4, 72, 8}
	IPv6Source  = Field{capture.IPv6, 64, 128}
	IPv6Dest    = Field{capture.IPv6, 192, 128}
	TCPSource   = Field{capture.TCP, 0, 16}
	TCPDest     = Field{capture.TCP, 16, 16}
	UDPSource   = Field{capture.UDP, 0, 16}
	UDPDest     = Field{capture.UDP, 16, 16}
)

var fieldNames = map[Field]string{
	EtherSource: "ethernet.src", EtherDest: "ethernet.dst", VLANID: "vlan.id",
	IPv4Source: "ipv4.src", IPv4Dest: "ipv4.dst", IPv4Proto: "ipv4.proto",
	IPv6Source: "ipv6.src", IPv6Dest: "ipv6.dst",
	TCPSource: "tcp.sport", TCPDest: "tcp.dport", UDPSource: "udp.sport", UDPDest: "udp.dport",
}

// Key is the fields that tell flow groups apart. Packets with equal fields are
// one group; a field whose header a packet lacks is equal to itself only. A
// packet that has none of the fields is in no group, and with an empty key all
// packets are one group.
type Key []Field

func (k Key) String() string {
	names := make([]string, len(k))
	for i, f := range k {
		names[i] = f.String()
	}
	return strings.Join(names, ",")
}

// FiveTuple is the key of a flow: addresses, protocol and ports of IPv4 and
// IPv6, and the EtherType of what is not IP.
func FiveTuple() Key {
	return Key{
		IPv4Source, IPv4Dest, IPv4Proto, IPv6Source, IPv6Dest,
		{capture.TCP, 0, 32}, {capture.UDP, 0, 32}, {capture.SCTP, 0, 32}, {Layer: capture.ICMP},
		{capture.NonIP, 0, 16},
	}
}

// Limits of a key.
const (
	maxKeyFields = 64
	maxKeyBits   = 4096
	maxOffset    = 1 << 16 // bits; the captured part of a packet ends sooner
)

// piece is up to 64 bits of a field and where they go: bits first up to
// first+bits of a word.
type piece struct {
	layer capture.Layer
	at    int // byte
	down  int // bits below the piece in the 64 from there
	size  int // bytes it lies in
	mask  uint64
	word  int
	up    int
}

// Extractor takes the fields of one key out of packets, as words of 64 bits:
// first a bit a field, whether it is there, then the fields. Fields of headers
// that exclude each other share their place.
type Extractor struct {
	key    Key
	words  int
	fields [][]piece
}

// exclusive numbers the layers that a packet has at most one of, by the set;
// 0 is for those that exclude none.
var exclusive = map[capture.Layer]int{
	capture.IPv4: 1, capture.IPv6: 1, capture.NonIP: 1,
	capture.TCP: 2, capture.UDP: 2, capture.SCTP: 2, capture.ICMP: 2,
}

// NewExtractor checks a key and returns its extractor.
func NewExtractor(k Key) (*Extractor, error) {
	x := &Extractor{key: k, fields: make([][]piece, len(k))}
	if len(k) > maxKeyFields {
		return nil, fault.Inputf("a key of %d fields; expected at most %d", len(k), maxKeyFields)
	}
	total := 0
	for i, f := range k {
		switch {
		case !f.Layer.Valid():
			return nil, fault.Inputf("field %d of the key: %v is not a layer; expected one of %v", i+1, f.Layer, capture.Layers())
		case f.Offset < 0 || f.Offset > maxOffset || f.Bits < 0 || f.Bits > maxKeyBits:
			return nil, fault.Inputf("field %d of the key: %d bits at bit %d of %v; expected up to %d bits at bit 0..%d", i+1, f.Bits, f.Offset, f.Layer, maxKeyBits, maxOffset)
		}
		total += f.Bits
	}
	if total > maxKeyBits {
		return nil, fault.Inputf("a key of %d bits; expected at most %d", total, maxKeyBits)
	}
	// Layers that exclude none follow each other; those of a set of exclusive
	// ones all begin behind what was there before the set.
	free := []int{max(1, len(k))} // bits used of each word
	for set := range 3 {
		start := free
		for _, layer := range capture.Layers() {
			if exclusive[layer] != set {
				continue
			}
			used := slices.Clone(start)
			if set == 0 {
				used = slices.Clone(free)
			}
			for i, f := range k {
				if f.Layer == layer {
					x.fields[i], used = pieces(f, used)
				}
			}
			for len(free) < len(used) {
				free = append(slices.Clone(free), 0)
			}
			for w, n := range used {
				used[w] = max(free[w], n)
			}
			free = append(used, free[len(used):]...)
		}
	}
	x.words = len(free)
	return x, nil
}

// pieces cuts a field and gives its pieces places in the words.
func pieces(f Field, used []int) ([]piece, []int) {
	var out []piece
	for offset, left := f.Offset, f.Bits; left > 0; {
		n := min(left, 64-offset%8)
		p := piece{layer: f.Layer, at: offset / 8, size: (offset%8 + n + 7) / 8, mask: 1<<n - 1}
		p.down = 64 - offset%8 - n
		for p.word = 0; p.word < len(used) && used[p.word]+n > 64; {
			p.word++
		}
		if p.word == len(used) {
			used = append(used, 0)
		}
		p.up = used[p.word]
		used[p.word] += n
		out = append(out, p)
		offset += n
		left -= n
	}
	return out, used
}

// Words returns the length of what Extract fills.
func (x *Extractor) Words() int { return x.words }

// Extract puts a packet's fields into out, of Words words, and reports whether
// it has any of them (an empty key's are always there). cut is set when the
// captured bytes of a packet end before a field whose header it has; such a
// field counts as missing.
func (x *Extractor) Extract(h *capture.Headers, out []uint64) (ok, cut bool) {
	clear(out)
	ok = len(x.fields) == 0
fields:
	for i, pieces := range x.fields {
		layer := x.key[i].Layer
		if !h.Has(layer) {
			continue
		}
		b := h.Bytes(layer)
		for _, p := range pieces {
			if len(b) < p.at+p.size {
				cut = true
				x.erase(i, out)
				continue fields
			}
			var v uint64
			if len(b) >= p.at+8 {
				v = binary.BigEndian.Uint64(b[p.at:])
			} else {
				for j, c := range b[p.at:] {
					v |= uint64(c) << (56 - 8*j)
				}
			}
			out[p.word] |= v >> p.down & p.mask << p.up
		}
		out[0] |= 1 << i
		ok = true
	}
	return ok, cut
}

// project fills out as Extract would, from what another extractor has filled in;
// at gives the place of each field among that one's.
func (x *Extractor) project(of *Extractor, at []int, words, out []uint64) (ok bool) {
	clear(out)
	for i, j := range at {
		if words[0]>>j&1 == 0 {
			continue
		}
		for k, to := range x.fields[i] {
			from := of.fields[j][k] // cut alike: that depends on the field alone
			out[to.word] |= words[from.word] >> from.up & from.mask << to.up
		}
		out[0] |= 1 << i
		ok = true
	}
	return ok || len(at) == 0
}

// erase takes back the pieces of a field that turned out to be cut.
func (x *Extractor) erase(field int, out []uint64) {
	for _, p := range x.fields[field] {
		out[p.word] &^= p.mask << p.up
	}
}

// Format writes the fields of a group that Extract filled as a person would:
// addresses as such, other numbers decimal, long ones hexadecimal, missing
// fields as -.
func (x *Extractor) Format(words []uint64) []string {
	out := make([]string, len(x.key))
	for i, f := range x.key {
		if words[0]>>i&1 == 0 {
			out[i] = "-"
			continue
		}
		if f.Bits == 0 {
			out[i] = f.Layer.String()
			continue
		}
		b := make([]byte, (f.Bits+7)/8)
		at := len(b)*8 - f.Bits // the first bit of the field in b
		for _, p := range x.fields[i] {
			v, n := words[p.word]>>p.up&p.mask, bits.Len64(p.mask)
			for j := range n {
				if v>>(n-1-j)&1 != 0 {
					b[(at+j)/8] |= 0x80 >> ((at + j) % 8)
				}
			}
			at += n
		}
		out[i] = formatField(f, b)
	}
	return out
}

func formatField(f Field, b []byte) string {
	switch f {
	case IPv4Source, IPv4Dest, IPv6Source, IPv6Dest:
		a, _ := netip.AddrFromSlice(b)
		return a.String()
	case EtherSource, EtherDest:
		return net.HardwareAddr(b).String()
	}
	if f.Bits > 64 {
		return fmt.Sprintf("0x%x", b)
	}
	v := uint64(0)
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return fmt.Sprint(v)
}
