// Package sim is the discrete-event kernel: integer time, events as plain
// values, seeded independent random streams, servers, steady-state estimation.
// It knows nothing of NICs.
package sim

// Time is simulated time in picoseconds.
type Time int64

// Units of Time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// Event is a value on the agenda. Kind, Actor and Arg belong to the model; the
// kernel orders events by (At, sequence of scheduling).
type Event struct {
	At    Time
	seq   uint64
	Arg   int64
	Actor int32
	Kind  int32
}

// Kernel is one simulation's clock and agenda. The zero value is not ready;
// use New. A Kernel is not safe for concurrent use: one kernel a run.
type Kernel struct {
	now  Time
	seq  uint64
	heap []Event
}

// New returns an empty kernel at time 0.
func New() *Kernel { return &Kernel{} }

// Now returns the time of the event last returned by Next.
func (k *Kernel) Now() Time { return k.now }

// Len returns the number of pending events.
func (k *Kernel) Len() int { return len(k.heap) }

// At schedules an event at t. A t before Now is a programming error and panics.
func (k *Kernel) At(t Time, kind, actor int32, arg int64) {
	if t < k.now {
		panic("sim: event scheduled in the past")
	}
	k.seq++
	k.heap = append(k.heap, Event{At: t, seq: k.seq, Arg: arg, Actor: actor, Kind: kind})
	h := k.heap
	i := len(h) - 1
	e := h[i]
	for i > 0 {
		p := (i - 1) >> 2
		if h[p].At < e.At || h[p].At == e.At && h[p].seq < e.seq {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = e
}

// After schedules an event d after Now.
func (k *Kernel) After(d Time, kind, actor int32, arg int64) { k.At(k.now+d, kind, actor, arg) }

// Next removes the earliest event, moves the clock to it and returns it; false
// when none is pending.
func (k *Kernel) Next() (Event, bool) {
	h := k.heap
	n := len(h) - 1
	if n < 0 {
		return Event{}, false
	}
	top, e := h[0], h[n]
	h = h[:n]
	k.heap = h
	if n > 0 {
		i := 0
		for {
			c := i<<2 + 1
			if c >= n {
				break
			}
			m := c
			for j := c + 1; j < n && j < c+4; j++ {
				if h[j].At < h[m].At || h[j].At == h[m].At && h[j].seq < h[m].seq {
					m = j
				}
			}
			if e.At < h[m].At || e.At == h[m].At && e.seq < h[m].seq {
				break
			}
			h[i] = h[m]
			i = m
		}
		h[i] = e
	}
	k.now = top.At
	return top, true
}
