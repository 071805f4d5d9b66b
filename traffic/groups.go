package traffic

import (
	"math"
	"math/bits"
)

// groupTable numbers distinct keys of some words from 0 in the order of their
// first appearance, and counts packets and bytes by number: open addressing
// with linear probing, 8 bytes a slot. A key and its counts lie side by side,
// in chunks that never move.
type groupTable struct {
	width  int
	stride int // width and the two counts, as bits of a float64 each
	slots  []uint64
	chunks [][]uint64
	n      int
	warm   uint64 // keeps the reads of touch from being optimised away
}

const (
	maxGroups  = 1<<31 - 2 // the most groups that a table numbers
	chunkShift = 13
	chunkSize  = 1 << chunkShift // entries
)

func newGroupTable(width int) *groupTable {
	return &groupTable{width: width, stride: width + 2, slots: make([]uint64, 1024)} // number+1 in the lower half, hash in the upper; 0 is free
}

// newNumberTable is a table that numbers only, and counts nothing.
func newNumberTable(width int) *groupTable {
	t := newGroupTable(width)
	t.stride = width
	return t
}

// hash mixes by 128-bit products, as wyhash does.
func hash(key []uint64) uint32 {
	const a, b = 0xa0761d6478bd642f, 0xe7037ed1a0b428db
	h := uint64(a)
	for _, w := range key {
		hi, lo := bits.Mul64(w^h, b^uint64(len(key)))
		h = hi ^ lo ^ a
	}
	hi, lo := bits.Mul64(h^b, a)
	return uint32((hi ^ lo) >> 32)
}

// entry returns the key of a number and its counts.
func (t *groupTable) entry(n int) []uint64 {
	return t.chunks[n>>chunkShift][n&(chunkSize-1)*t.stride:][:t.stride:t.stride]
}

// touch reads what number will read for keys of these hashes, all at once
// rather than one after the other: in a large table each read waits for memory.
func (t *groupTable) touch(hashes []uint32) {
	mask := uint32(len(t.slots) - 1)
	var found [batchSize]uint64
	for i, h := range hashes {
		found[i] = t.slots[h&mask]
	}
	warm := uint64(0)
	for i, h := range hashes {
		if s := found[i]; uint32(s>>32) == h && s != 0 {
			e := t.entry(int(uint32(s)) - 1)
			warm += e[0] + e[len(e)-1]
		}
	}
	t.warm = warm
}

// number returns the number of a key, a new one when it was not seen before.
func (t *groupTable) number(key []uint64, h uint32) int {
	mask := uint32(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := t.slots[i]
		if s == 0 {
			return t.insert(key, h, i)
		}
		if uint32(s>>32) != h {
			continue
		}
		n := int(uint32(s)) - 1
		if equal(t.entry(n), key) {
			return n
		}
	}
}

// equal reports whether an entry has the key.
func equal(entry, key []uint64) bool {
	for i, w := range key {
		if w != entry[i] {
			return false
		}
	}
	return true
}

// push numbers a key that is known to be new, and will not be asked for.
func (t *groupTable) push(key []uint64) int {
	n := t.n
	if n&(chunkSize-1) == 0 {
		t.chunks = append(t.chunks, make([]uint64, chunkSize*t.stride))
	}
	copy(t.entry(n), key)
	t.n++
	return n
}

func (t *groupTable) insert(key []uint64, h, slot uint32) int {
	n := t.push(key)
	t.slots[slot] = uint64(h)<<32 | uint64(t.n)
	if t.n*3 > len(t.slots)*2 {
		t.grow()
	}
	return n
}

func (t *groupTable) grow() {
	old := t.slots
	t.slots = make([]uint64, 4*len(old))
	mask := uint32(len(t.slots) - 1)
	for _, s := range old {
		if s == 0 {
			continue
		}
		i := uint32(s>>32) & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
}

// add counts packets and bytes of a number.
func (t *groupTable) add(n int, packets, bytes float64) {
	counts := t.entry(n)[t.width:]
	counts[0] = math.Float64bits(math.Float64frombits(counts[0]) + packets)
	counts[1] = math.Float64bits(math.Float64frombits(counts[1]) + bytes)
}

// counts returns the packets and bytes by number.
func (t *groupTable) counts() (packets, bytes []float64) {
	packets, bytes = make([]float64, t.n), make([]float64, t.n)
	for n := range t.n {
		c := t.entry(n)[t.width:]
		packets[n], bytes[n] = math.Float64frombits(c[0]), math.Float64frombits(c[1])
	}
	return packets, bytes
}
