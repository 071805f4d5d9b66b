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
// the earliest is sorted if it is one chunk, else spread over the wheel below.
// Each event is therefore moved at most once a digit, whatever the number
// pending and however their times are distributed: there is no bucket width to
// tune and no horizon beyond which another structure takes over.
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

	// A larger chunk sorts more events at once, which costs less than to spread
	// them thinly over a wheel: on an exponential hold model with 432 pending,
	// and over all positions of the mean delay within a digit, an operation took
	// 16 to 28 ns with chunks of 21 events, 16 to 26 with 85 and 16 to 20 with
	// 127; beyond, insertion into front costs more.
	chunkLen  = 127
	chunkMake = 16 // chunks allocated at once
)

// chunk is a piece of a slot.
type chunk struct {
	events [chunkLen]Event
	next   *chunk
}

// slot is a list of chunks, all full but the last, which has room for more. The
// slot is empty, and first invalid, if last is nil.
type slot struct {
	first, last *chunk
	room        int
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
	a.front = slot{first: c, last: c, room: chunkLen}
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

// place returns the place of a new event later than the whole front: the next
// of its slot.
func (a *agenda) place(t Time) *Event {
	w := wheelOf[bits.Len64(uint64(t^a.base))]
	d := uint64(t) >> (w * digitBits & 63) % radix
	s := &a.slots[int(w)*radix+int(d)]
	if s.room == 0 {
		a.extend(s)
		a.used[w] |= 1 << d
		a.wheels |= 1 << w
	}
	s.room--
	return &s.last.events[chunkLen-1-s.room]
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
	s.room = chunkLen
}

// placeInFront makes a place for a new event not later than the latest of
// front: after those of its time.
func (a *agenda) placeInFront(t Time) *Event {
	f := &a.front
	switch {
	case f.room > 0:
	case f.first != f.last || a.head > 0 && f.last.events[a.head-1].At == a.last:
		// The last event read is of the latest time, so all there are.
		a.extend(f)
	case a.head == 0:
		a.spill()
		return a.place(t)
	}
	if f.first != f.last {
		f.room--
		return &f.last.events[chunkLen-1-f.room]
	}

	// Shift the shorter side: what is read leaves room before the head.
	events := &f.last.events
	if a.head > 0 && (f.room == 0 || t < events[(a.head+a.end)/2].At) {
		a.head--
		i := a.head
		for ; i+1 < a.end && events[i+1].At <= t; i++ {
			events[i] = events[i+1]
		}
		return &events[i]
	}
	f.room--
	i := a.end
	a.end++
	for ; i > a.head && events[i-1].At > t; i-- {
		events[i] = events[i-1]
	}
	return &events[i]
}

// spill returns a full front of one chunk to the wheels.
func (a *agenda) spill() {
	c := a.front.first
	a.front.room, a.head, a.end, a.last = chunkLen, 0, 0, -1
	for i := range c.events {
		*a.place(c.events[i].At) = c.events[i]
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
		} else if diff := taken.diff(); diff != 0 {
			a.distribute(taken, wheelOf[bits.Len64(diff)])
			continue
		}
		a.front = taken
		a.last = taken.last.events[chunkLen-1-taken.room].At
		a.open()
		return
	}
}

// open begins to read the first chunk of front.
func (a *agenda) open() {
	a.head, a.end = 0, chunkLen
	if a.front.first == a.front.last {
		a.end -= a.front.room
	}
}

// diff returns the bits in which the times of a slot differ.
func (s slot) diff() (diff uint64) {
	t := s.first.events[0].At
	for c := s.first; c != s.last; c = c.next {
		diff |= diffOf(t, c.events[:])
	}
	return diff | diffOf(t, s.last.events[:chunkLen-s.room])
}

// diffOf returns the bits in which the times of events differ from t.
func diffOf(t Time, events []Event) (diff uint64) {
	for i := range events {
		diff |= uint64(events[i].At ^ t)
	}
	return diff
}

// distribute spreads a slot over the empty wheel w, the highest in whose digit
// its events differ. Base takes the digits above, in which they agree; refill
// sets the lower ones.
func (a *agenda) distribute(s slot, w uint8) {
	a.base = s.first.events[0].At
	wheel := a.slots[int(w)*radix:][:radix]
	shift := w * digitBits & 63
	var used uint64
	for c := s.first; c != nil; {
		n := chunkLen
		if c == s.last {
			n -= s.room
		}
		for i := range c.events[:n] {
			e := &c.events[i]
			d := uint64(e.At) >> shift % radix
			to := &wheel[d]
			if to.room == 0 {
				a.extend(to)
				used |= 1 << d
			}
			to.last.events[chunkLen-to.room] = *e
			to.room--
		}
		next := c.next
		a.release(c)
		c = next
	}
	a.used[w] = used
	a.wheels |= 1 << w
}

// few is the number of events up to which ranking them is the faster sort.
const few = 12

// sort sorts a slot of one chunk by time, keeping the order of equals.
func (a *agenda) sort(s *slot) {
	n := chunkLen - s.room
	if n == 1 {
		return
	}
	from, to := s.last, a.chunk()
	if n <= few {
		rank(from.events[:n], to.events[:n])
	} else {
		scatter(from.events[:n], to.events[:n])
	}
	s.first, s.last = to, to
	a.release(from)
}

// rank sorts few events: each goes where the number of those before it says.
// There is no branch that their random order would make mispredicted.
func rank(from, to []Event) {
	var before [few]int
	for i := range from {
		t := from[i].At
		n := i
		for j := range from[:i] {
			later := toInt(from[j].At > t)
			before[j] += later
			n -= later
		}
		before[i] = n
	}
	for i := range from {
		to[before[i]] = from[i]
	}
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// scatter sorts many events: by counting over the highest six bits in which
// they differ, then by insertion.
func scatter(from, to []Event) {
	const buckets = 64
	shift := max(0, bits.Len64(diffOf(from[0].At, from))-6)
	var at [buckets]int
	for i := range from {
		at[uint64(from[i].At)>>shift%buckets]++
	}
	sum := 0
	for b, n := range at {
		at[b] = sum
		sum += n
	}
	for i := range from {
		b := uint64(from[i].At) >> shift % buckets
		to[at[b]] = from[i]
		at[b]++
	}
	for i := 1; i < len(to); i++ {
		e := to[i]
		j := i
		for ; j > 0 && to[j-1].At > e.At; j-- {
			to[j] = to[j-1]
		}
		to[j] = e
	}
}
