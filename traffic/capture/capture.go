// Package capture reads packets from pcap and pcapng files, plain or gzipped,
// several at once in the order of their times, and finds the headers in them.
//
// It reads what others refuse: a packet longer than the snap length that the
// file declares, a snap length of 0, an original length below the captured
// one. A file that ends in the middle of a packet gives the packets before and
// a warning; a record that cannot be gives an error that names the packet.
// Formats: IETF drafts draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
package capture

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"nicprof/internal/fault"
)

// MaxCaptured is the largest captured length that is taken for a packet, that
// of libpcap (MAXIMUM_SNAPLEN). A larger one is damage.
const MaxCaptured = 1 << 18

// NoTime is the time of a packet that has none (pcapng's simple packets).
const NoTime = -1 << 63

// LinkType says which header a packet's data begins with.
type LinkType uint16

// Link types that Headers.Parse knows (tcpdump.org's registry).
const (
	Null      LinkType = 0   // BSD loopback: address family in the order of the capturing machine
	Ethernet2 LinkType = 1   // Ethernet II and 802.3
	RawBSD    LinkType = 12  // raw IP as some writers number it
	RawBSD14  LinkType = 14  // raw IP on OpenBSD
	Raw       LinkType = 101 // raw IP
	Loop      LinkType = 108 // OpenBSD loopback: address family, big endian
	SLL       LinkType = 113 // Linux cooked, 16 bytes
	RawIPv4   LinkType = 228
	RawIPv6   LinkType = 229
	SLL2      LinkType = 276 // Linux cooked, 20 bytes
)

// Known reports whether Headers.Parse knows the link type.
func (l LinkType) Known() bool { _, ok := linkHeader[l]; return ok }

// linkHeader is the length of the header that each link type's data begins with.
var linkHeader = map[LinkType]int{
	Null: 4, Ethernet2: 14, RawBSD: 0, RawBSD14: 0, Raw: 0, Loop: 4, SLL: 16, RawIPv4: 0, RawIPv6: 0, SLL2: 20,
}

// Packet is one packet of a capture. Data holds until the next call of Next.
type Packet struct {
	Number int64 // in its file, from 1
	Time   int64 // ns since 1970, or NoTime
	Length int   // bytes on the wire, counted as the capture counts them
	Data   []byte
	Link   LinkType
	Port   int // capturing interface: 0 in pcap, the interface's number in pcapng, counted on over its sections

	overhead int // what Length lacks of an Ethernet frame with its check sequence
}

// Sizes of Ethernet frames, with their check sequence.
const (
	minFrame      = 64
	checkSequence = 4
)

// FrameBytes returns the size of the packet as an Ethernet frame on the wire,
// with check sequence and padding, but without preamble and gap.
func (p *Packet) FrameBytes() int { return max(p.Length+p.overhead, minFrame) }

// iface is what a pcapng section says of an interface, or a pcap's header of
// its only one.
type iface struct {
	link     LinkType
	snap     uint32
	overhead int
	units    uint64 // time stamp units a second: a power of 10, or 0
	shift    uint   // a second is 1 << shift units, when units is 0
	offset   int64  // seconds to add
}

func newInterface(link LinkType, snap uint32, check int) iface {
	return iface{link: link, snap: snap, overhead: 14 - linkHeader[link] + checkSequence - check, units: 1e6}
}

// Reader reads one capture.
type Reader struct {
	name  string
	in    buffer
	swap  bool // big endian
	ng    bool
	extra int // bytes that a record header has besides its 16

	ifaces   []iface
	ports    int   // interfaces of the sections before
	number   int64 // packets read
	longest  int
	cut      bool  // the file ended in the middle of something
	overSnap int64 // packets longer than the snap length
	overWire int64 // packets with more captured than there was
	overTime int64 // µs time stamps beyond a second
}

var (
	gzipMagic   = []byte{0x1f, 0x8b}
	pcapngMagic = []byte{0x0a, 0x0d, 0x0d, 0x0a}
)

// Magic numbers of pcap: microseconds, nanoseconds, and Kuznetzov's with eight
// more bytes a packet.
const (
	magicMicro    = 0xa1b2c3d4
	magicNano     = 0xa1b23c4d
	magicModified = 0xa1b2cd34
)

// Is reports whether a file that begins with these bytes (at least 4) is a
// capture, or compressed with gzip.
func Is(magic []byte) bool {
	if len(magic) < 4 {
		return false
	}
	if bytes.HasPrefix(magic, gzipMagic) || bytes.HasPrefix(magic, pcapngMagic) {
		return true
	}
	for _, m := range []uint32{binary.LittleEndian.Uint32(magic), binary.BigEndian.Uint32(magic)} {
		if m == magicMicro || m == magicNano || m == magicModified {
			return true
		}
	}
	return false
}

// foreign names formats that are no captures of ours by their first bytes.
var foreign = []struct{ magic, what string }{
	{"snoop\x00\x00\x00", "a snoop file; convert it with editcap -F pcapng"},
	{"GMBU", "a Network Monitor file; convert it with editcap -F pcapng"},
	{"\x28\xb5\x2f\xfd", "compressed with zstd; decompress it first"},
	{"\xfd7zXZ", "compressed with xz; decompress it first"},
	{"BZh", "compressed with bzip2; decompress it first"},
	{"TRSNIFF data", "a Sniffer file; convert it with editcap -F pcapng"},
}

// NewReader returns the reader of a pcap or pcapng, plain or gzipped. name is
// used in messages. An error is the user's fault.
func NewReader(in io.Reader, name string) (*Reader, error) {
	r := &Reader{name: name}
	r.in.reset(in)
	if r.in.need(2) && bytes.HasPrefix(r.in.bytes(), gzipMagic) {
		z, err := gzip.NewReader(io.MultiReader(bytes.NewReader(bytes.Clone(r.in.bytes())), in))
		if err != nil {
			return nil, fault.Inputf("%s: not a gzip file: %w", name, err)
		}
		r.in.reset(z)
	}
	if err := r.start(); err != nil {
		return nil, err
	}
	return r, nil
}

// start reads the file's header.
func (r *Reader) start() error {
	if !r.in.need(4) {
		if err := r.in.failure(); err != nil {
			return fault.Inputf("%s: %w", r.name, err)
		}
		return fault.Inputf("%s: not a capture: %d bytes long", r.name, len(r.in.bytes()))
	}
	magic := r.in.bytes()[:4]
	if bytes.Equal(magic, pcapngMagic) {
		r.ng = true
		if err := r.section(); err == io.EOF {
			return fault.Inputf("%s: not a capture: it ends in its first header, after %d bytes", r.name, len(r.in.bytes()))
		} else if err != nil {
			return err
		}
		return nil
	}
	nano := false
	switch little, big := binary.LittleEndian.Uint32(magic), binary.BigEndian.Uint32(magic); {
	case little == magicMicro:
	case big == magicMicro:
		r.swap = true
	case little == magicNano:
		nano = true
	case big == magicNano:
		r.swap, nano = true, true
	case little == magicModified:
		r.extra = 8
	case big == magicModified:
		r.swap, r.extra = true, 8
	default:
		r.in.need(16)
		for _, f := range foreign {
			if bytes.HasPrefix(r.in.bytes(), []byte(f.magic)) {
				return fault.Inputf("%s: %s", r.name, f.what)
			}
		}
		return fault.Inputf("%s: not a capture: it begins with % x; expected pcap or pcapng", r.name, magic)
	}
	if !r.in.need(24) {
		if err := r.in.failure(); err != nil {
			return fault.Inputf("%s: %w", r.name, err)
		}
		return fault.Inputf("%s: not a capture: it ends in its first header, after %d bytes", r.name, len(r.in.bytes()))
	}
	h := r.in.take(24)
	network := r.u32(h[20:])
	check := 0
	if network&0x04000000 != 0 { // the frames hold a check sequence, in units of 16 bits
		check = int(network>>28) * 2
	}
	f := newInterface(LinkType(network), r.u32(h[16:]), check)
	if nano {
		f.units = 1e9
	}
	r.ifaces = []iface{f}
	return nil
}

func (r *Reader) u32(b []byte) uint32 {
	v := binary.LittleEndian.Uint32(b)
	if r.swap {
		v = bits.ReverseBytes32(v)
	}
	return v
}

func (r *Reader) u16(b []byte) uint16 {
	v := binary.LittleEndian.Uint16(b)
	if r.swap {
		v = bits.ReverseBytes16(v)
	}
	return v
}

// fail is an error at the packet that comes next.
func (r *Reader) fail(format string, a ...any) error {
	return fault.Inputf("%s: packet %d: %w", r.name, r.number+1, fmt.Errorf(format, a...))
}

// damaged is an error at the packet that comes next, after which nothing can be
// found in the file.
func (r *Reader) damaged(format string, a ...any) error {
	what := fmt.Sprintf(format, a...)
	if r.number == 0 {
		return r.fail("%s: the file is damaged", what)
	}
	return r.fail("%s: the file is damaged there; keep what is before with: editcap -r %s OUT 1-%d", what, r.name, r.number)
}

// ended is what a read that did not get all its bytes returns: the read error,
// or io.EOF, after a note when the file is cut.
func (r *Reader) ended() error {
	if err := r.in.failure(); err != nil {
		return r.fail("%w", err)
	}
	if len(r.in.bytes()) > 0 || errors.Is(r.in.err, io.ErrUnexpectedEOF) {
		r.cut = true
	}
	return io.EOF
}

// Next reads the next packet into p, or returns io.EOF. Other errors are the
// user's fault and name the packet.
func (r *Reader) Next(p *Packet) error {
	if r.ng {
		return r.nextBlock(p)
	}
	header := 16 + r.extra
	if !r.in.need(header) {
		return r.ended()
	}
	h := r.in.bytes()
	captured, length := r.u32(h[8:]), r.u32(h[12:])
	if captured > MaxCaptured {
		return r.damaged("a captured length of %d bytes; expected at most %d", captured, MaxCaptured)
	}
	f := &r.ifaces[0]
	fraction := int64(r.u32(h[4:]))
	if f.units == 1e6 {
		if fraction >= 1e6 {
			r.overTime++
		}
		fraction *= 1000
	}
	p.Time = int64(r.u32(h))*1e9 + fraction
	p.Port = 0
	if !r.in.need(header + int(captured)) {
		return r.ended()
	}
	p.Data = r.in.take(header + int(captured))[header:]
	r.packet(p, f, captured, length)
	return nil
}

// packet fills in what all kinds of packets have.
func (r *Reader) packet(p *Packet, f *iface, captured, length uint32) {
	r.number++
	if captured > length {
		r.overWire++
		length = captured
	}
	if f.snap != 0 && captured > f.snap {
		r.overSnap++
		r.longest = max(r.longest, int(captured))
	}
	p.Number = r.number
	p.Length = int(length)
	p.Link = f.link
	p.overhead = f.overhead
}

// Warnings says what the file has that it should not have, once all is read.
func (r *Reader) Warnings() []string {
	var w []string
	add := func(format string, a ...any) { w = append(w, r.name+": "+fmt.Sprintf(format, a...)) }
	if r.cut {
		add("the file ends in the middle of packet %d; what is before it was read", r.number+1)
	}
	if r.overSnap > 0 {
		add("%d packets are longer (up to %d bytes) than the snap length that the file declares; they were read whole", r.overSnap, r.longest)
	}
	if r.overWire > 0 {
		add("%d packets have more bytes captured than they had on the wire; the captured length was taken", r.overWire)
	}
	if r.overTime > 0 {
		add("%d time stamps have more than a million microseconds; the file says microseconds but may hold nanoseconds: rates are doubtful", r.overTime)
	}
	return w
}

// buffer is a window on a stream. The error of the stream is kept until its
// bytes are used up.
type buffer struct {
	in  io.Reader
	b   []byte
	r   int
	w   int
	err error
}

const bufferBytes = 1 << 18

func (b *buffer) reset(in io.Reader) { *b = buffer{in: in, b: make([]byte, bufferBytes)} }

func (b *buffer) bytes() []byte { return b.b[b.r:b.w] }

// need reports whether the next n bytes are there, reading them if necessary.
// It keeps at most a buffer of bufferBytes, or of n bytes.
func (b *buffer) need(n int) bool {
	if b.w-b.r >= n {
		return true
	}
	return b.fill(n)
}

func (b *buffer) fill(n int) bool {
	if n > len(b.b) {
		grown := make([]byte, n)
		b.w = copy(grown, b.bytes())
		b.b, b.r = grown, 0
	} else if b.r+n > len(b.b) {
		b.w = copy(b.b, b.bytes())
		b.r = 0
	}
	for b.w-b.r < n {
		if b.err != nil {
			return false
		}
		var k int
		k, b.err = b.in.Read(b.b[b.w:])
		b.w += k
	}
	return true
}

// take returns the next n bytes, which need has read, and passes them.
func (b *buffer) take(n int) []byte {
	b.r += n
	return b.b[b.r-n : b.r : b.r]
}

// skip passes n bytes, and reports whether they were all there.
func (b *buffer) skip(n int64) bool {
	for n > 0 {
		k := min(n, bufferBytes)
		if !b.need(int(k)) {
			b.r = b.w
			return false
		}
		b.r += int(k)
		n -= k
	}
	return true
}

// failure returns the error of the stream unless it is its end.
func (b *buffer) failure() error {
	if b.err == nil || errors.Is(b.err, io.EOF) || errors.Is(b.err, io.ErrUnexpectedEOF) {
		return nil
	}
	return b.err
}
