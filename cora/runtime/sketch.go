package runtime

// A sketch's size and the seeds of its rows: the authors' release keeps one of
// this size in each island's CTM.
const (
	SketchRows    = 3
	SketchColumns = 1024
)

var seeds = [SketchRows]uint32{1, 222, 333}

// mix hashes a key under a seed (the finaliser of MurmurHash3 over both). The
// release hashes with a CRC under these seeds. CRCs of keys of one length under
// two seeds differ by a constant, so that keys which meet in one of its rows meet
// in all three; a test shows it.
func mix(key, seed uint32) uint32 {
	h := key*0xcc9e2d51 + seed*0x1b873593 + 0x9e3779b9
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// Sketch estimates packets by entry: a count-min sketch, never too low.
type Sketch struct {
	cells [SketchRows][SketchColumns]uint32
}

// Add counts packets of an entry and returns its estimate.
func (s *Sketch) Add(entry, packets uint32) (estimate uint32) {
	estimate = ^uint32(0)
	for r := range s.cells {
		c := &s.cells[r][mix(entry, seeds[r])%SketchColumns]
		*c += packets
		estimate = min(estimate, *c)
	}
	return estimate
}

// Estimate is how many packets of an entry were counted, or more.
func (s *Sketch) Estimate(entry uint32) uint32 {
	estimate := ^uint32(0)
	for r := range s.cells {
		estimate = min(estimate, s.cells[r][mix(entry, seeds[r])%SketchColumns])
	}
	return estimate
}

// Island is what an island of the NIC knows of heavy flows: a sketch, and of
// each thread the entry with the highest estimate that it has seen.
type Island struct {
	sketch Sketch
	best   []Candidate // by thread
}

// Candidate is an entry that may be heavy, with its estimate.
type Candidate struct {
	Entry, Packets uint32
}

// NewIsland returns an island of so many threads.
func NewIsland(threads int) *Island { return &Island{best: make([]Candidate, threads)} }

// Served counts a packet that a thread served.
func (i *Island) Served(thread int, entry uint32) {
	if n := i.sketch.Add(entry, 1); n > i.best[thread].Packets {
		i.best[thread] = Candidate{entry, n}
	}
}

// Take returns a thread's candidate, for a packet to carry to the host, and lets
// the thread look for another. ok is false if it has none.
func (i *Island) Take(thread int) (c Candidate, ok bool) {
	c = i.best[thread]
	i.best[thread] = Candidate{}
	return c, c.Packets > 0
}

// Clear starts a new interval.
func (i *Island) Clear() {
	i.sketch = Sketch{}
	clear(i.best)
}
