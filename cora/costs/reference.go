package costs

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// The operations as a packet application on a host has them. Each is built once
// over memory that it is given, then run over a list of elements: one a packet.

// operation does its work on one element after the other. prepare gets the
// elements that run will be called with.
type operation interface {
	prepare(elements []uint32)
	run(elements []uint32) (sum uint64)
}

// direct is an operation that needs no preparation.
type direct func(elements []uint32) uint64

func (d direct) prepare([]uint32) {}

func (d direct) run(elements []uint32) uint64 { return d(elements) }

// hash64 mixes a key of some words.
func hash64(key []byte) uint64 {
	h := uint64(len(key)) * 0x9e3779b97f4a7c15
	for ; len(key) >= 8; key = key[8:] {
		hi, lo := bits.Mul64(h^binary.LittleEndian.Uint64(key), 0xff51afd7ed558ccd)
		h = hi ^ lo
	}
	if len(key) >= 4 {
		hi, lo := bits.Mul64(h^uint64(binary.LittleEndian.Uint32(key)), 0xff51afd7ed558ccd)
		h = hi ^ lo
	}
	return h
}

// hashTable is an exact-match table: buckets of eight slots in one cache line of
// 64 B (8 × 16-bit signature, 8 × 32-bit entry number, 16 B unused), entries of
// key and data side by side in an array. A full bucket overflows into the next.
type hashTable struct {
	buckets []byte
	entries []byte
	mask    uint64
	key     int // bytes
	entry   int // bytes of key and data
	wanted  []byte
}

const (
	bucketBytes = 64
	slots       = 8
)

// tableBytes is the memory that a table of n entries takes: buckets half full.
func tableBytes(n int64, key, data int) (buckets, entries int64) {
	count := int64(1)
	for count*slots < 2*n {
		count *= 2
	}
	return count * bucketBytes, n * int64(key+data)
}

// fill inserts keys 0..n-1, as keyOf writes them.
func (t *hashTable) fill(n int64) {
	for i := range n {
		e := t.entries[i*int64(t.entry):][:t.entry]
		keyOf(e[:t.key], uint64(i))
		h := hash64(e[:t.key])
		for b := h & t.mask; !t.put(b, h, uint32(i)); b = (b + 1) & t.mask {
		}
	}
}

func (t *hashTable) put(b, h uint64, n uint32) bool {
	line := t.buckets[b*bucketBytes:][:bucketBytes]
	for s := range slots {
		if binary.LittleEndian.Uint32(line[16+4*s:]) == 0 {
			binary.LittleEndian.PutUint16(line[2*s:], uint16(h>>48))
			binary.LittleEndian.PutUint32(line[16+4*s:], n+1)
			return true
		}
	}
	return false
}

// find returns the data of a key, or nil.
func (t *hashTable) find(key []byte) []byte {
	h := hash64(key)
	for b := h & t.mask; ; b = (b + 1) & t.mask {
		line := (*[bucketBytes]byte)(t.buckets[b*bucketBytes:])
		full := true
		for s := range slots {
			n := binary.LittleEndian.Uint32(line[16+4*s:])
			if n == 0 {
				full = false
				break
			}
			if binary.LittleEndian.Uint16(line[2*s:]) != uint16(h>>48) {
				continue
			}
			if e := t.entries[int(n-1)*t.entry:][:t.entry]; equal(e[:t.key], key) {
				return e[t.key:]
			}
		}
		if !full {
			return nil
		}
	}
}

func equal(a, b []byte) bool { return string(a) == string(b) }

// keyOf writes key i: every byte depends on it, and unlike i have unlike keys.
func keyOf(to []byte, i uint64) {
	for at := 0; at < len(to); at += 4 {
		v := uint32(i)*0x9e3779b1 + uint32(at)
		binary.LittleEndian.PutUint32(to[at:], v)
	}
}

// keysOf writes keys side by side, as packets that arrived before have them. A
// key put together just before its look-up would wait for its own stores, and
// with it the look-ups of the packets before.
func keysOf(bytes int, elements []uint32) []byte {
	all := make([]byte, bytes*len(elements))
	for n, i := range elements {
		keyOf(all[n*bytes:][:bytes], uint64(i))
	}
	return all
}

func (t *hashTable) prepare(elements []uint32) { t.wanted = keysOf(t.key, elements) }

func (t *hashTable) run(elements []uint32) (sum uint64) {
	for n := range elements {
		if data := t.find(t.wanted[n*t.key:][:t.key]); len(data) >= 4 {
			sum += uint64(binary.LittleEndian.Uint32(data))
		}
	}
	return sum
}

// routes is a longest-prefix table as DIR-24-8: 2^24 entries of 4 B by the first
// 24 bits, and blocks of 256 for longer prefixes.
type routes struct {
	first  []uint32
	blocks []uint32
	addrs  []uint32 // an address in each prefix
}

const isBlock = 1 << 31

// fill installs n prefixes, one in eight longer than 24 bits.
func (r *routes) fill(n int64) {
	for i := range n {
		addr := uint32(i)*0x9e3779b1 | 1
		r.addrs = append(r.addrs, addr)
		if i%8 != 0 {
			r.first[addr>>8] = uint32(i) + 1
			continue
		}
		r.first[addr>>8] = isBlock | uint32(len(r.blocks)/256)
		for range 256 {
			r.blocks = append(r.blocks, uint32(i)+1)
		}
	}
}

func (r *routes) find(addr uint32) uint32 {
	v := r.first[addr>>8]
	if v&isBlock != 0 {
		v = r.blocks[(v&^isBlock)<<8|addr&0xff]
	}
	return v
}

func (r *routes) run(elements []uint32) (sum uint64) {
	for _, i := range elements {
		sum += uint64(r.find(r.addrs[i]))
	}
	return sum
}

// rules is a list of rules in order of priority, searched one after the other.
type rules struct{ list []rule }

type rule struct{ value, mask [2]uint64 }

func (r *rules) fill(n int64) {
	for i := range n {
		r.list = append(r.list, rule{value: [2]uint64{uint64(i) << 16, 0}, mask: [2]uint64{0xffffffff0000, 0}})
	}
}

func (r *rules) find(k [2]uint64) int {
	for i := range r.list {
		if e := &r.list[i]; (k[0]^e.value[0])&e.mask[0]|(k[1]^e.value[1])&e.mask[1] == 0 {
			return i
		}
	}
	return -1
}

func (r *rules) run(elements []uint32) (sum uint64) {
	for _, i := range elements {
		sum += uint64(r.find([2]uint64{uint64(i)<<16 | 7, uint64(i)}))
	}
	return sum
}

// cells is an array of cells of some bytes.
type cells struct {
	memory []byte
	bytes  int
	stride int
}

// strideOf is the distance of cells: their bytes, at least 8 for those with a
// lock or an atomic operation.
func strideOf(k Kind, bytes int) int {
	switch k {
	case Add:
		return 8
	case Locked:
		return 8 + (bytes+7)/8*8 // lock word, then the cell
	default:
		return bytes
	}
}

func (c *cells) runRead(elements []uint32) (sum uint64) {
	var cell [64]byte
	for _, i := range elements {
		copy(cell[:c.bytes], c.memory[int(i)*c.stride:])
		sum += uint64(cell[0])
	}
	return sum
}

func (c *cells) runWrite(elements []uint32) uint64 {
	var cell [64]byte
	for n, i := range elements {
		cell[0] = byte(n)
		copy(c.memory[int(i)*c.stride:], cell[:c.bytes])
	}
	return 0
}

func (c *cells) runAdd(elements []uint32) uint64 {
	for _, i := range elements {
		atomic.AddUint64((*uint64)(unsafe.Pointer(&c.memory[int(i)*c.stride])), 1)
	}
	return 0
}

func (c *cells) runLocked(elements []uint32) uint64 {
	var cell [64]byte
	for _, i := range elements {
		at := c.memory[int(i)*c.stride:]
		lock := (*uint32)(unsafe.Pointer(&at[0]))
		for !atomic.CompareAndSwapUint32(lock, 0, 1) {
		}
		copy(cell[:c.bytes], at[8:])
		cell[0]++
		copy(at[8:], cell[:c.bytes])
		atomic.StoreUint32(lock, 0)
	}
	return 0
}

// hashes calls CRC-32 (Castagnoli) on keys of some bytes.
type hashes struct {
	bytes  int
	wanted []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (h *hashes) prepare(elements []uint32) { h.wanted = keysOf(h.bytes, elements) }

func (h *hashes) run(elements []uint32) (sum uint64) {
	for n := range elements {
		sum += uint64(crc32.Checksum(h.wanted[n*h.bytes:][:h.bytes], castagnoli))
	}
	return sum
}

// frames is a ring of packet buffers of 2 KiB with a TCP segment in each.
type frames struct{ memory []byte }

const (
	bufferBytes = 2048
	ipAt        = 14
)

func (f *frames) fill(n int64) {
	for i := range n {
		b := f.memory[i*bufferBytes:][:128]
		binary.BigEndian.PutUint16(b[12:], 0x0800)
		ip := b[ipAt:]
		ip[0], ip[8], ip[9] = 0x45, 64, 6
		binary.BigEndian.PutUint16(ip[2:], 114)
		binary.BigEndian.PutUint32(ip[12:], 0x0a000000|uint32(i))
		binary.BigEndian.PutUint32(ip[16:], 0x0a800000|uint32(i))
		binary.BigEndian.PutUint16(ip[10:], ^ones(ip[:20]))
	}
}

// ones is the ones' complement sum of a header.
func ones(b []byte) uint16 {
	sum := uint32(0)
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	sum = sum>>16 + sum&0xffff
	return uint16(sum>>16 + sum)
}

// forward does to a packet what a router does: it checks the headers, swaps the
// Ethernet addresses, and writes a destination, a time to live and a checksum.
// It reports whether the packet goes on.
func forward(b []byte) bool {
	if binary.BigEndian.Uint16(b[12:]) != 0x0800 {
		return false
	}
	ip := b[ipAt : ipAt+20]
	if ip[0] != 0x45 || ip[9] != 6 || ones(ip) != 0xffff {
		return false
	}
	tcp := b[ipAt+20:]
	ports := binary.BigEndian.Uint32(tcp)
	var mac [6]byte
	copy(mac[:], b[:6])
	copy(b[:6], b[6:12])
	copy(b[6:12], mac[:])
	ip[8] ^= 1 // the ring is used again and again: the time to live must not run out
	binary.BigEndian.PutUint32(ip[16:], binary.BigEndian.Uint32(ip[16:])^1)
	binary.BigEndian.PutUint32(tcp, ports^1)
	ip[10], ip[11] = 0, 0
	binary.BigEndian.PutUint16(ip[10:], ^ones(ip))
	return true
}

func (f *frames) run(elements []uint32) (sum uint64) {
	for _, i := range elements {
		if forward(f.memory[int(i)*bufferBytes:][:128]) {
			sum++
		}
	}
	return sum
}
