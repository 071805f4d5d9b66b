package capture

import (
	"bytes"
	"math"
	"math/bits"
)

// Types of pcapng blocks.
const (
	blockInterface = 1
	blockOld       = 2 // obsolete packet block
	blockSimple    = 3
	blockEnhanced  = 6
	blockSection   = 0x0a0d0d0a
)

// Options of an interface.
const (
	optResolution = 9
	optCheck      = 13
	optOffset     = 14
)

// maxBlock bounds a block that must be held whole: packet data, options.
const maxBlock = MaxCaptured + 1<<20

// section reads a section header, which fixes the byte order and forgets the
// interfaces.
func (r *Reader) section() error {
	if !r.in.need(28) {
		return r.ended()
	}
	h := r.in.bytes()
	switch {
	case bytes.Equal(h[8:12], []byte{0x4d, 0x3c, 0x2b, 0x1a}):
		r.swap = false
	case bytes.Equal(h[8:12], []byte{0x1a, 0x2b, 0x3c, 0x4d}):
		r.swap = true
	default:
		return r.fail("a section header with byte order % x", h[8:12])
	}
	if major := r.u16(h[12:]); major != 1 {
		return r.fail("pcapng version %d; expected 1", major)
	}
	length := r.u32(h[4:])
	if length < 28 || length%4 != 0 {
		return r.fail("a section header of %d bytes", length)
	}
	r.ports += len(r.ifaces)
	r.ifaces = r.ifaces[:0]
	if !r.in.skip(int64(length)) {
		r.cut = true
	}
	return nil
}

// nextBlock reads blocks up to the next packet.
func (r *Reader) nextBlock(p *Packet) error {
	for {
		if !r.in.need(12) {
			return r.ended()
		}
		h := r.in.bytes()
		kind, length := r.u32(h), r.u32(h[4:])
		if kind == blockSection { // the same in either byte order; length is not
			if err := r.section(); err != nil {
				return err
			}
			continue
		}
		if length < 12 || length%4 != 0 {
			return r.damaged("a block of type %d with length %d; expected a multiple of 4 from 12", kind, length)
		}
		switch kind {
		case blockInterface, blockOld, blockSimple, blockEnhanced:
		default:
			if !r.in.skip(int64(length)) {
				r.cut = true
				return r.ended()
			}
			continue
		}
		if length > maxBlock {
			return r.damaged("a block of type %d with length %d; expected at most %d", kind, length, maxBlock)
		}
		if !r.in.need(int(length)) {
			return r.ended()
		}
		b := r.in.take(int(length))
		if end := r.u32(b[length-4:]); end != length {
			return r.damaged("a block of type %d begins with length %d and ends with %d", kind, length, end)
		}
		b = b[8 : length-4]
		if kind == blockInterface {
			if err := r.newInterface(b); err != nil {
				return err
			}
			continue
		}
		return r.blockPacket(p, kind, b)
	}
}

// newInterface reads an interface description.
func (r *Reader) newInterface(b []byte) error {
	if len(b) < 8 {
		return r.fail("an interface description of %d bytes; expected at least 8", len(b))
	}
	check := 0
	f := iface{units: 1e6}
	for o := b[8:]; len(o) >= 4; {
		code, n := r.u16(o), int(r.u16(o[2:]))
		if code == 0 || 4+n > len(o) {
			break // the end, or an option that is cut: what is known stays
		}
		v := o[4 : 4+n]
		switch {
		case code == optResolution && n == 1 && v[0]&0x80 != 0:
			f.units, f.shift = 0, uint(v[0]&0x7f)
		case code == optResolution && n == 1:
			if v[0] > 19 {
				return r.fail("interface %d: a time resolution of 10^-%d s; expected up to 10^-19", len(r.ifaces), v[0])
			}
			f.units = uint64(math.Pow10(int(v[0])))
		case code == optCheck && n == 1:
			check = int(v[0])
		case code == optOffset && n == 8:
			lo, hi := uint64(r.u32(v)), uint64(r.u32(v[4:]))
			if r.swap {
				lo, hi = hi, lo
			}
			f.offset = int64(hi<<32 | lo)
		}
		o = o[min(len(o), 4+(n+3)&^3):]
	}
	if f.units == 0 && f.shift > 63 {
		return r.fail("interface %d: a time resolution of 2^-%d s; expected up to 2^-63", len(r.ifaces), f.shift)
	}
	n := newInterface(LinkType(r.u16(b)), r.u32(b[4:]), check)
	n.units, n.shift, n.offset = f.units, f.shift, f.offset
	r.ifaces = append(r.ifaces, n)
	return nil
}

// blockPacket reads a packet from the body of its block.
func (r *Reader) blockPacket(p *Packet, kind uint32, b []byte) error {
	head := 20
	if kind == blockSimple {
		head = 4
	}
	if len(b) < head {
		return r.fail("a packet block of %d bytes; expected at least %d", len(b)+12, head+12)
	}
	var id, captured, length uint32
	switch kind {
	case blockEnhanced:
		id, captured, length = r.u32(b), r.u32(b[12:]), r.u32(b[16:])
	case blockOld:
		id, captured, length = uint32(r.u16(b)), r.u32(b[12:]), r.u32(b[16:])
	default:
		length = r.u32(b)
		captured = length
	}
	if int64(id) >= int64(len(r.ifaces)) {
		return r.fail("it is of interface %d; the section describes %d", id, len(r.ifaces))
	}
	f := &r.ifaces[id]
	if kind == blockSimple {
		p.Time = NoTime
		if f.snap != 0 {
			captured = min(captured, f.snap)
		}
	} else {
		t, ok := f.time(uint64(r.u32(b[4:]))<<32 | uint64(r.u32(b[8:])))
		if !ok {
			return r.fail("its time is outside the years 1678..2262")
		}
		p.Time = t
	}
	if captured > MaxCaptured || int(captured) > len(b)-head {
		return r.damaged("a captured length of %d bytes in a block of %d", captured, len(b)+12)
	}
	p.Data = b[head : head+int(captured) : head+int(captured)]
	p.Port = r.ports + int(id)
	r.packet(p, f, captured, length)
	return nil
}

// time returns a time stamp as ns since 1970, or false when that is beyond 64
// bits.
func (f *iface) time(stamp uint64) (int64, bool) {
	var seconds, ns uint64
	switch {
	case f.units == 0:
		seconds = stamp >> f.shift
		hi, lo := bits.Mul64(stamp&(1<<f.shift-1), 1e9)
		ns = lo>>f.shift | hi<<(64-f.shift)
	default:
		seconds = stamp / f.units
		hi, lo := bits.Mul64(stamp%f.units, 1e9)
		ns, _ = bits.Div64(hi, lo, f.units)
	}
	const limit = math.MaxInt64/1_000_000_000 - 1
	if seconds > limit || f.offset > limit || f.offset < -limit {
		return 0, false
	}
	s := int64(seconds) + f.offset
	if s > limit || s < -limit {
		return 0, false
	}
	return s*1e9 + int64(ns), true
}
