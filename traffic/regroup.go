package traffic

// TakeOut takes a key out of counted volumes: kind numbers what is to be told
// apart of its groups, and of packets in none of them (NoGroup). Classes that are
// then alike, in the groups of the other keys and in that number, become one. It
// returns the number of each class.
func (v *Volumes) TakeOut(key int, kind func(group int) int32) []int32 {
	keys := append(append([][]int32{}, v.Group[:key]...), v.Group[key+1:]...)
	t := newGroupTable((len(keys) + 2) / 2)
	words := make([]uint64, t.width)
	packets, bytes := v.Packets, v.Bytes
	for class := range packets {
		clear(words)
		put := func(i int, n int32) { words[i/2] |= uint64(uint32(n)) << (32 * (i % 2)) }
		for i, groups := range keys {
			put(i, groups[class])
		}
		put(len(keys), kind(int(v.Group[key][class])))
		t.add(t.number(words, hash(words)), packets[class], bytes[class])
	}
	t.slots = nil
	v.Packets, v.Bytes = t.counts()
	at := func(class, i int) int32 { return int32(t.entry(class)[i/2] >> (32 * (i % 2))) }
	v.Group = nil
	for i := range keys {
		groups := make([]int32, t.n)
		for class := range groups {
			groups[class] = at(class, i)
		}
		v.Group = append(v.Group, groups)
	}
	kinds := make([]int32, t.n)
	for class := range kinds {
		kinds[class] = at(class, len(keys))
	}
	v.Keys = append(append([]*Groups{}, v.Keys[:key]...), v.Keys[key+1:]...)
	return kinds
}
