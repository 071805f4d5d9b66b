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
// kernel orders events by At, and those of equal At in the order in which they
// were scheduled.
type Event struct {
	At    Time
	Arg   int64
	Actor int32
	Kind  int32
}

// Kernel is one simulation's clock and agenda. The zero value is not ready;
// use New. A Kernel is not safe for concurrent use: one kernel a run.
type Kernel struct {
	now    Time
	len    int
	agenda agenda
}

// New returns an empty kernel at time 0.
func New() *Kernel {
	k := &Kernel{}
	k.agenda.init()
	return k
}

// Now returns the time of the event last returned by Next.
func (k *Kernel) Now() Time { return k.now }

// Len returns the number of pending events.
func (k *Kernel) Len() int { return k.len }

// At schedules an event at t. A t before Now is a programming error and panics.
func (k *Kernel) At(t Time, kind, actor int32, arg int64) {
	if t < k.now {
		panic("sim: event scheduled in the past")
	}
	k.len++
	a := &k.agenda
	var e *Event
	if t > a.last {
		e = a.place(t)
	} else {
		e = a.placeInFront(t)
	}
	e.At, e.Arg, e.Actor, e.Kind = t, arg, actor, kind
}

// After schedules an event d after Now.
func (k *Kernel) After(d Time, kind, actor int32, arg int64) { k.At(k.now+d, kind, actor, arg) }

// Next removes the earliest event, moves the clock to it and returns it; false
// when none is pending.
func (k *Kernel) Next() (Event, bool) {
	a := &k.agenda
	if a.head == a.end {
		if k.len == 0 {
			return Event{}, false
		}
		a.refill()
	}
	e := a.front.first.events[a.head]
	a.head++
	k.len--
	k.now = e.At
	return e, true
}
