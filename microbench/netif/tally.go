package netif

// tally is the sink's account of a trial's packets by sequence number.
type tally struct {
	seen                            []uint64 // bitmap
	next                            uint64   // one more than the highest sequence number seen
	received, duplicated, reordered int64
	damaged, foreign                int64
	first, last                     int64  // arrivals, ns since the epoch
	every                           uint64 // the latency of one packet in so many is kept
	latency                         []int64
	backwards                       int64 // arrivals before they were sent: the clock was set
}

// mostLatencies is how many latencies of a trial are kept.
const mostLatencies = 1 << 17

// newTally has room for the sequence numbers below n.
func newTally(n uint64) *tally {
	every := n/mostLatencies + 1
	return &tally{seen: make([]uint64, n/64+1), every: every, latency: make([]int64, 0, n/every+1)}
}

// add counts a packet that arrived at a time, ns since the epoch.
func (t *tally) add(p probe, arrival int64) {
	word := p.sequence / 64
	if word >= uint64(len(t.seen)) || !p.whole {
		t.damaged++
		return
	}
	bit := uint64(1) << (p.sequence % 64)
	if t.seen[word]&bit != 0 {
		t.duplicated++
		return
	}
	t.seen[word] |= bit
	t.received++
	if t.received == 1 {
		t.first = arrival
	}
	t.last = max(t.last, arrival)
	if p.sequence < t.next {
		t.reordered++
	} else {
		t.next = p.sequence + 1
	}
	if arrival < p.sent {
		t.backwards++
		return
	}
	if p.sequence%t.every == 0 {
		t.latency = append(t.latency, arrival-p.sent)
	}
}
