package explore

import "hash/maphash"

// store numbers keys in the order in which they come. It keeps the keys
// themselves, in memory without pointers: equal hashes decide nothing.
type store struct {
	seed  maphash.Seed
	bytes []byte
	ends  []uint64 // by key: where it ends in bytes
	table []int32  // number+1 of a key, by hash; a power of two, at most half full
}

func newStore() *store {
	return &store{seed: maphash.MakeSeed(), table: make([]int32, 1<<10)}
}

func (s *store) len() int { return len(s.ends) }

func (s *store) key(n int32) []byte {
	from := uint64(0)
	if n > 0 {
		from = s.ends[n-1]
	}
	return s.bytes[from:s.ends[n]]
}

// add returns a key's number, and whether it is new.
func (s *store) add(key []byte) (n int32, added bool) {
	slot := s.slot(key)
	if n = s.table[slot]; n > 0 {
		return n - 1, false
	}
	s.bytes = append(s.bytes, key...)
	s.ends = append(s.ends, uint64(len(s.bytes)))
	n = int32(len(s.ends))
	s.table[slot] = n
	if 2*len(s.ends) > len(s.table) {
		s.table = make([]int32, 2*len(s.table))
		for i := range n {
			s.table[s.slot(s.key(i))] = i + 1
		}
	}
	return n - 1, true
}

// slot is where a key is in the table, or would be.
func (s *store) slot(key []byte) uint64 {
	mask := uint64(len(s.table) - 1)
	slot := maphash.Bytes(s.seed, key) & mask
	for s.table[slot] > 0 && string(s.key(s.table[slot]-1)) != string(key) {
		slot = (slot + 1) & mask
	}
	return slot
}
