package host

import (
	"unsafe"

	"nicprof/program"
)

// An operation does n stateless operations on the frame at p, starting from v,
// and returns what they made of it.
type operation func(p unsafe.Pointer, n int, v uint64) uint64

// operations by kind. Each depends on the one before, so that none can be left
// out or done at the same time as another.
var operations = map[string]operation{
	program.ALU:      alu,
	program.Multiply: multiply,
	program.Modulo:   modulo,
	program.Hash:     hash,
	program.Checksum: checksum,
	program.Header:   header,
}

// alu alternates additions and exclusive ors of a header word.
func alu(p unsafe.Pointer, n int, v uint64) uint64 {
	w := uint64(get32(p, offSource)) | 1
	for ; n >= 8; n -= 8 {
		v += w
		v ^= w
		v += w
		v ^= w
		v += w
		v ^= w
		v += w
		v ^= w
	}
	for ; n > 0; n-- {
		v += w
		w = -w
	}
	return v
}

// multiply multiplies by an odd header word.
func multiply(p unsafe.Pointer, n int, v uint64) uint64 {
	w := uint64(get32(p, offSource))<<1 | 1
	v |= 1
	for ; n > 0; n-- {
		v *= w
	}
	return v
}

// modulo takes the remainder of a 64-bit number and a header word.
func modulo(p unsafe.Pointer, n int, v uint64) uint64 {
	w := uint64(get32(p, offSource)) | 1
	for ; n > 0; n-- {
		v = (v | 1<<62) % w
	}
	return v
}

// hash is FNV-1a over the 13 bytes of addresses, ports and protocol, from v on.
func hash(p unsafe.Pointer, n int, v uint64) uint64 {
	const prime = 1099511628211
	for ; n > 0; n-- {
		v ^= 14695981039346656037
		for i := range 12 {
			v = (v ^ uint64(*(*uint8)(unsafe.Add(p, offSource+i)))) * prime
		}
		v = (v ^ uint64(*(*uint8)(unsafe.Add(p, offProto)))) * prime
	}
	return v
}

// checksum computes the IPv4 header's checksum with v's lower bits as its
// identification, and writes both: RFC 791's full sum, not an update.
func checksum(p unsafe.Pointer, n int, v uint64) uint64 {
	for ; n > 0; n-- {
		put16(p, offIP+4, uint16(v))
		put16(p, offChecksum, 0)
		s := ^headerSum(p)
		put16(p, offChecksum, s)
		v += uint64(s)
	}
	return v
}

// tagBytes of an IEEE 802.1Q tag.
const tagBytes = 4

// header adds an IEEE 802.1Q tag and removes it again, in turn: the addresses
// move by four bytes into the headroom and back. After an odd number the frame
// begins tagBytes before p.
func header(p unsafe.Pointer, n int, v uint64) uint64 {
	for k := range n {
		if k&1 == 0 {
			*(*[12]byte)(unsafe.Add(p, -4)) = *(*[12]byte)(p)
			put16(p, 8, etherVLAN)
			put16(p, 10, uint16(v)&0xfff)
		} else {
			*(*[12]byte)(p) = *(*[12]byte)(unsafe.Add(p, -4))
		}
	}
	return v + uint64(get16(p, 10))
}
