package bluefield

// source is where an access finds its line, from the nearest on.
type source uint8

const (
	fromL1   source = iota
	fromL2          // of the core's tile
	fromMate        // modified, in the L1 of the core beside
	fromLLC
	fromTile // modified in, or taken away from, another tile
	fromDRAM
	sources
)

var sourceNames = [sources]string{"l1", "l2", "line from the core beside", "llc", "line from another tile", "dram"}

// A tag is a line, plus one so that 0 is an empty way, above these flags.
const (
	flagDirty  = 1 << iota // newer than the level below
	flagUnique             // L2: no other tile has it. L1: writable
	flagCore               // L2: the tile's first core may have it in its L1; the next bits, the next cores
	flagBits   = 8
	mostMates  = flagBits - 2 // cores a tile
)

// tags is one set-associative cache, least recently used out. A set's ways are
// in order of use, the latest first, and the empty ones last.
type tags struct {
	sets, ways int64
	entries    []uint64
}

func newTags(bytes, lineBytes, ways int64) *tags {
	sets := max(1, bytes/lineBytes/ways)
	return &tags{sets: sets, ways: ways, entries: make([]uint64, sets*ways)}
}

func (t *tags) set(line int64) []uint64 {
	first := line % t.sets * t.ways
	return t.entries[first : first+t.ways]
}

// find returns the line's entry, or nil. It does not count as a use.
func (t *tags) find(line int64) *uint64 {
	set := t.set(line)
	for i := range set {
		if set[i]>>flagBits == uint64(line)+1 {
			return &set[i]
		}
	}
	return nil
}

// touch returns the line's entry as the latest used, or nil.
func (t *tags) touch(line int64) *uint64 {
	set := t.set(line)
	for i := range set {
		if e := set[i]; e>>flagBits == uint64(line)+1 {
			copy(set[1:i+1], set[:i])
			set[0] = e
			return &set[0]
		}
	}
	return nil
}

// fill puts a line that is not there in and returns the entry that it drives
// out, 0 for none.
func (t *tags) fill(line int64, flags uint64) (out uint64) {
	set := t.set(line)
	out = set[len(set)-1]
	copy(set[1:], set)
	set[0] = (uint64(line)+1)<<flagBits | flags
	return out
}

// remove takes a line out, if it is there.
func (t *tags) remove(line int64) {
	set := t.set(line)
	for i := range set {
		if set[i]>>flagBits == uint64(line)+1 {
			copy(set[i:], set[i+1:])
			set[len(set)-1] = 0
			return
		}
	}
}

func lineOf(entry uint64) int64 { return int64(entry>>flagBits) - 1 }

// hierarchy is the state of all caches: an L1 a core, an L2 a tile that includes
// its L1s, and a last level that fills on a miss and takes what L2s write back.
// It says where a line is found and what moves; it knows nothing of time.
type hierarchy struct {
	mates int // cores a tile
	l1    []*tags
	l2    []*tags
	llc   *tags
}

// moved counts the lines that an access drives down.
type moved struct{ toLLC, toDRAM int }

// access brings a line to a core, alone if it writes. shared says that other
// tiles' cores may have it.
func (h *hierarchy) access(core int, line int64, write, shared bool) (from source, out moved) {
	l1 := h.l1[core]
	entry := l1.touch(line)
	if entry != nil && (!write || *entry&flagUnique != 0) {
		return fromL1, out
	}
	tile, me := core/h.mates, uint64(flagCore)<<(core%h.mates)
	l2 := h.l2[tile]
	e := l2.touch(line)
	if e == nil {
		return h.miss(core, line, write, shared)
	}
	from = fromL2
	for mate := range h.mates {
		if other := uint64(flagCore) << mate; other != me && *e&other != 0 {
			l := h.l1[tile*h.mates+mate]
			copied := l.find(line)
			switch {
			case copied == nil: // it has left
				*e &^= other
			case write:
				from = max(from, held(*copied))
				l.remove(line)
				*e &^= other
			default:
				from = max(from, held(*copied))
				*copied &^= flagUnique
			}
		}
	}
	if write && *e&flagUnique == 0 {
		from = fromLLC // the home node knows who else has it
		if shared && h.take(tile, line) {
			from = fromTile
		}
	}
	*e |= me
	if write {
		*e |= flagDirty | flagUnique
		if entry != nil {
			*entry |= flagUnique
			return from, out
		}
	}
	h.fillL1(core, line, write)
	return from, out
}

// held is where a copy in the L1 of the core beside comes from.
func held(copied uint64) source {
	if copied&flagUnique != 0 {
		return fromMate
	}
	return fromL2
}

func (h *hierarchy) fillL1(core int, line int64, write bool) {
	var flags uint64
	if write {
		flags = flagUnique
	}
	h.l1[core].fill(line, flags) // what it drives out is in the L2
}

// take takes a line away from the other tiles and says whether one had it.
func (h *hierarchy) take(tile int, line int64) bool {
	had := false
	for t, l2 := range h.l2 {
		if t == tile {
			continue
		}
		if e := l2.find(line); e != nil {
			had = true
			h.removeL1(t, *e)
			l2.remove(line)
		}
	}
	return had
}

// removeL1 takes the line of an L2's entry out of the tile's L1s.
func (h *hierarchy) removeL1(tile int, entry uint64) {
	for mate := range h.mates {
		if entry&(flagCore<<mate) != 0 {
			h.l1[tile*h.mates+mate].remove(lineOf(entry))
		}
	}
}

// miss is an access that does not find its line in the core's tile.
func (h *hierarchy) miss(core int, line int64, write, shared bool) (from source, out moved) {
	tile := core / h.mates
	elsewhere, modified := false, false
	if shared {
		for t, l2 := range h.l2 {
			if t == tile {
				continue
			}
			e := l2.find(line)
			if e == nil {
				continue
			}
			elsewhere = true
			modified = modified || *e&flagDirty != 0
			if write {
				h.removeL1(t, *e)
				l2.remove(line)
				continue
			}
			h.share(t, e, &out)
		}
	}
	inLLC := h.llc.touch(line) != nil
	switch {
	case modified || elsewhere && (write || !inLLC):
		from = fromTile
	case inLLC:
		from = fromLLC
	default:
		from = fromDRAM
		h.fillLLC(line, 0, &out)
	}
	flags := uint64(flagCore) << (core % h.mates)
	if write {
		flags |= flagDirty | flagUnique
	} else if !elsewhere {
		flags |= flagUnique
	}
	if victim := h.l2[tile].fill(line, flags); victim != 0 {
		h.removeL1(tile, victim)
		if victim&flagDirty != 0 {
			h.writeBack(lineOf(victim), &out)
		}
	}
	h.fillL1(core, line, write)
	return from, out
}

// share makes a tile's line one that others may read too.
func (h *hierarchy) share(tile int, e *uint64, out *moved) {
	if *e&flagUnique == 0 {
		return
	}
	line := lineOf(*e)
	for mate := range h.mates {
		if *e&(flagCore<<mate) != 0 {
			if copied := h.l1[tile*h.mates+mate].find(line); copied != nil {
				*copied &^= flagUnique
			}
		}
	}
	if *e&flagDirty != 0 {
		h.writeBack(line, out)
	}
	*e &^= flagDirty | flagUnique
}

// writeBack puts a modified line into the last level.
func (h *hierarchy) writeBack(line int64, out *moved) {
	out.toLLC++
	if e := h.llc.touch(line); e != nil {
		*e |= flagDirty
		return
	}
	h.fillLLC(line, flagDirty, out)
}

func (h *hierarchy) fillLLC(line int64, flags uint64, out *moved) {
	if victim := h.llc.fill(line, flags); victim&flagDirty != 0 {
		out.toDRAM++
	}
}
