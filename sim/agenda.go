package sim

import "math/bits"

// agenda is a monotone priority queue: no event is ever inserted before the one
// last removed, and that is all it needs to be faster than a heap.
//
// It is a hierarchy of timing wheels over the digits, base 64, of the event's
// time. An event waits in the wheel of the highest digit in which its time
// differs from base, in the slot that this digit names; so every event of a
// wheel precedes every event of the wheels above it, a slot precedes the slots
// after it, and one bitmap a wheel finds the earliest slot. A slot that becomes
// the earliest is sorted where it lies if it is one chunk, else spread over the
// wheel below. Each event is therefore moved at most once a digit, whatever the
// number pending and however their times are distributed: there is no bucket
// width to tune and no horizon beyond which another structure takes over.
//
// Slots are lists of chunks, filled in order of insertion and spread in that
// order, so that events of equal time stay in the order in which they were
// scheduled without a sequence number. Chunks are recycled: in a steady state
// nothing is allocated.
type agenda struct {
	base Time // start of the range of the slot last taken as front
	last Time // the latest time in front: an event up to it belongs to front

	// front is the earliest slot, taken out of its wheel and sorted. If it has
	// more than one chunk, all its events have one time. Its unread part begins
	// at first.events[head]; end is the number of events in first.
	front     slot
	head, end int

	free   *chunk
	wheels uint16         // wheels that are not empty
	used   [digits]uint64 // slots of each wheel that are not empty
	slots  [digits * radix]slot
}

const (
	digitBits = 6
	radix     = 1 << digitBits
	digits    = (63 + digitBits - 1) / digitBits // of a non-negative Time
	chunkLen  = 21                               // a chunk is 512 bytes
	chunkMake = 32                               // chunks allocated at once
)

// chunk is a piece of a slot.
type chunk struct {
	events [chunkLen]Event
	next   *chunk
}

// slot is a list of chunks, all full but the last, which holds n events. The
// slot is empty, and first invalid, if last is nil.
type slot struct {
	first, last *chunk
	n           int
}

// wheelOf maps the bit length of time XOR base to the wheel.
var wheelOf = func() (w [65]uint8) {
	for n := range w {
		w[n] = uint8(max(n-1, 0) / digitBits)
	}
	return w
}()

func (a *agenda) init() {
	a.last = -1
	c := a.chunk()
	a.front = slot{first: c, last: c}
}

// chunk returns an unused chunk.
func (a *agenda) chunk() *chunk {
	if a.free == nil {
		block := make([]chunk, chunkMake)
		for i := range block[1:] {
			block[i].next = &block[i+1]
		}
		a.free = &block[0]
	}
	c := a.free
	a.free = c.next
	c.next = nil
	return c
}

func (a *agenda) release(c *chunk) {
	c.next = a.free
	a.free = c
}

// insert appends an event later than the whole front to its slot.
func (a *agenda) insert(e Event) {
	w := wheelOf[bits.Len64(uint64(e.At^a.base))]
	d := uint64(e.At) >> (w * digitBits) % radix
	s := &a.slots[uint64(w)*radix+d]
	if s.last == nil || s.n == chunkLen {
		a.extend(s)
		a.used[w] |= 1 << d
		a.wheels |= 1 << w
	}
	s.last.events[s.n] = e
	s.n++
}

// extend appends an empty chunk to a slot.
func (a *agenda) extend(s *slot) {
	c := a.chunk()
	if s.last == nil {
		s.first = c
	} else {
		s.last.next = c
	}
	s.last = c
	s.n = 0
}

// insertFront puts an event not later than the latest of front into front,
// after those of the same time.
func (a *agenda) insertFront(e Event) {
	f := &a.front
	c := f.last
	if f.n == chunkLen {
		switch {
		case f.first != f.last || a.head == 0 && c.events[0].At == a.last:
			a.extend(f)
			c = f.last
		case a.head > 0:
			f.n = copy(c.events[:], c.events[a.head:])
			a.head = 0
		default:
			a.spill()
			a.insert(e)
			return
		}
	}
	i := f.n
	if f.first == f.last {
		for ; i > a.head && c.events[i-1].At > e.At; i-- {
			c.events[i] = c.events[i-1]
		}
		a.end = f.n + 1
	}
	c.events[i] = e
	f.n++
}

// spill returns a full front of one chunk to the wheels.
func (a *agenda) spill() {
	c := a.front.first
	a.front.n, a.head, a.end, a.last = 0, 0, 0, -1
	for i := range c.events {
		a.insert(c.events[i])
	}
}

// refill moves front to its next chunk, or replaces it by the earliest slot,
// when first is exhausted. An event must be pending.
func (a *agenda) refill() {
	exhausted := a.front.first
	a.front.first = exhausted.next
	a.release(exhausted)
	if a.front.first != nil {
		a.open()
		return
	}
	for {
		w := bits.TrailingZeros16(a.wheels)
		d := bits.TrailingZeros64(a.used[w])
		s := &a.slots[w*radix+d]
		taken := *s
		*s = slot{}
		if a.used[w] &= a.used[w] - 1; a.used[w] == 0 {
			a.wheels &^= 1 << w
		}
		shift := w * digitBits
		a.base = a.base>>(shift+digitBits)<<(shift+digitBits) | Time(d)<<shift

		if taken.first == taken.last {
			a.sort(&taken)
		} else if spread := taken.spread(); spread != 0 {
			a.distribute(taken, wheelOf[bits.Len64(spread)])
			continue
		}
		a.front = taken
		a.last = taken.last.events[taken.n-1].At
		a.open()
		return
	}
}

// open begins to read the first chunk of front.
func (a *agenda) open() {
	a.head, a.end = 0, chunkLen
	if a.front.first == a.front.last {
		a.end = a.front.n
	}
}

// spread returns the bits in which the times of a slot differ.
func (s slot) spread() (diff uint64) {
	t := s.first.events[0].At
	for c := s.first; c != s.last; c = c.next {
		for i := range c.events {
			diff |= uint64(c.events[i].At ^ t)
		}
	}
	for i := range s.last.events[:s.n] {
		diff |= uint64(s.last.events[i].At ^ t)
	}
	return diff
}

// distribute spreads a slot over the empty wheel w, the highest in whose digit
// its events differ. Base takes the digits above, in which they agree; refill
// sets the lower ones.
func (a *agenda) distribute(s slot, w uint8) {
	a.base = s.first.events[0].At
	wheel := a.slots[int(w)*radix:][:radix]
	shift := w * digitBits
	var used uint64
	for c := s.first; c != nil; {
		n := chunkLen
		if c == s.last {
			n = s.n
		}
		for i := range c.events[:n] {
			e := &c.events[i]
			d := uint64(e.At) >> shift % radix
			to := &wheel[d]
			if to.last == nil || to.n == chunkLen {
				a.extend(to)
			}
			to.last.events[to.n] = *e
			to.n++
			used |= 1 << d
		}
		next := c.next
		a.release(c)
		c = next
	}
	a.used[w] = used
	a.wheels |= 1 << w
}

// sort sorts a slot of one chunk by time, keeping the order of equals. Each
// event goes where the number of those before it says: so few compare faster
// without branches, which their random order would make mispredicted.
func (a *agenda) sort(s *slot) {
	if s.n == 1 {
		return
	}
	from, to := s.last, a.chunk()
	events := from.events[:s.n]
	for i := range events {
		t := events[i].At
		rank := 0
		for j := range events[:i] {
			rank += toInt(events[j].At <= t)
		}
		for j := i + 1; j < len(events); j++ {
			rank += toInt(events[j].At < t)
		}
		to.events[rank] = events[i]
	}
	s.first, s.last = to, to
	a.release(from)
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
