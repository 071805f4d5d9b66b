package traffic

import "math/bits"

// groupTable numbers distinct keys of some words from 0 in the order of their
// first appearance: open addressing with linear probing, 8 bytes a slot, the
// keys side by side in one array.
type groupTable struct {
	width int
	keys  []uint64
	slots []uint64 // number+1 in the lower half, hash in the upper; 0 is free
	n     int
}

// maxGroups is the most groups that a table numbers.
const maxGroups = 1<<31 - 2

func newGroupTable(width int) *groupTable {
	return &groupTable{width: width, slots: make([]uint64, 1024)}
}

// hash mixes by 128-bit products, as wyhash does.
func hash(key []uint64) uint64 {
	const a, b = 0xa0761d6478bd642f, 0xe7037ed1a0b428db
	h := uint64(a)
	for _, w := range key {
		hi, lo := bits.Mul64(w^h, b^uint64(len(key)))
		h = hi ^ lo ^ a
	}
	hi, lo := bits.Mul64(h^b, a)
	return hi ^ lo
}

// number returns the number of a key, a new one when it was not seen before.
func (t *groupTable) number(key []uint64) int32 {
	h := hash(key) >> 32
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := t.slots[i]
		if s == 0 {
			return t.insert(key, h, i)
		}
		if s>>32 != h {
			continue
		}
		n := int(s&0xffffffff) - 1
		if equal(t.keys[n*t.width:][:t.width], key) {
			return int32(n)
		}
	}
}

func equal(a, b []uint64) bool {
	for i, w := range a {
		if w != b[i] {
			return false
		}
	}
	return true
}

func (t *groupTable) insert(key []uint64, h, slot uint64) int32 {
	t.keys = append(t.keys, key...)
	t.n++
	t.slots[slot] = h<<32 | uint64(t.n)
	if t.n*3 > len(t.slots)*2 {
		t.grow()
	}
	return int32(t.n - 1)
}

func (t *groupTable) grow() {
	old := t.slots
	t.slots = make([]uint64, 2*len(old))
	mask := uint64(len(t.slots) - 1)
	for _, s := range old {
		if s == 0 {
			continue
		}
		i := s >> 32 & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
}
