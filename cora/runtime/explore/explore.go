// Package explore runs Cora's migration protocol through every order of events
// within stated bounds: packets from the wire, commands of the controller,
// echoes, messages that are lost, doubled or late, writes that fail. It calls the
// functions of cora/runtime that emulations call, keeps the queues around them,
// and checks after each event what must hold:
//
//   - each packet is served exactly once, on the one copy of its entry that is
//     live, and that copy has counted every packet served so far;
//   - load counters equal the packets that left;
//   - packets of a flow leave in order, but for those that went to the host while
//     their entry moved to the NIC: these may be overtaken;
//   - no entry is without a copy, none has two; a pair's halves are together;
//   - the NIC holds no more entries than it has room for.
//
// Of the whole graph it then shows that, once nothing more is lost or asked for,
// every path ends, and ends with nothing held, pending or under way.
package explore

import (
	"fmt"
	"slices"

	"nicprof/cora/runtime"
	"nicprof/internal/fault"
)

// Start is where flows are at the beginning.
type Start uint8

// Starts.
const (
	Fresh Start = iota // nowhere: their first packets come
	OnNIC
	OnHost
)

func (s Start) String() string { return [...]string{"new", "on the NIC", "on the host"}[s] }

// groups is the number of load counters: all entries share one.
const groups = 1

// Bounds of an exploration: how much there is of everything.
type Bounds struct {
	Name    string
	Entries int  // 1 to 4
	Pairs   bool // entries are the two directions of flows
	Start   Start
	Room    int // entries that the NIC may hold
	Slots   int // keys; 0: as many as there are entries

	Packets int // of each entry, at most 8
	Moves   int // commands of the controller
	OnNIC   int // packets and messages on the NIC at a time

	Lose, Duplicate, Delay int // control messages
	Write                  int // writes of a key that fail
	Repeat                 int // commands sent again though their echo is still under way
	LosePacket             int // packets lost between NIC and host
	RepeatEvery            int // see runtime.Options

	Break Break
}

func (b *Bounds) width() int {
	if b.Pairs && b.Break != HalfPair {
		return 2
	}
	return 1
}

func (b *Bounds) flows() int { return b.Entries / b.width() }

func (b *Bounds) options() runtime.Options {
	o := runtime.Defaults()
	o.Entries, o.Slots, o.Groups = uint32(b.Room), uint32(b.Slots), groups
	o.Pairs = b.width() == 2
	o.RepeatEvery = uint8(b.RepeatEvery)
	if b.Slots == 0 {
		o.Slots = uint32(max(b.Entries, b.Room))
	}
	return o
}

func (b *Bounds) check() error {
	switch {
	case b.Entries < 1 || b.Entries > maxEntries || b.Pairs && b.Entries%2 != 0:
		return fault.Inputf("exploration of %d entries (pairs %v); expected 1 to %d, of pairs an even number", b.Entries, b.Pairs, maxEntries)
	case b.Packets < 0 || b.Packets > maxPackets || b.OnNIC < 1:
		return fault.Inputf("exploration of %d packets an entry, %d on the NIC at a time; expected 0 to %d, and 1 or more", b.Packets, b.OnNIC, maxPackets)
	}
	for _, n := range []int{b.Moves, b.Lose, b.Duplicate, b.Delay, b.Write, b.Repeat, b.LosePacket} {
		if n < 0 || n > 16 {
			return fault.Inputf("exploration with %d events of a kind; expected 0 to 16", n)
		}
	}
	return b.options().Check()
}

// Report is what an exploration found.
type Report struct {
	States    int
	Steps     int // between them
	Quiet     int // states in which nothing more happens by itself
	Longest   int // most steps from any state to a quiet one, nothing more being asked for or lost
	Overtaken int // steps in which a packet leaves ahead of an earlier one
	Cut       bool
	Failure   string   // the first thing that is wrong, "" if nothing is
	Trace     []string // the shortest way to it, a step a line
}

// Explore runs through everything within the bounds, or through so many states
// and then says that it was cut short. An error is about the bounds.
func Explore(b Bounds, most int) (Report, error) {
	if b.RepeatEvery == 0 {
		b.RepeatEvery = int(runtime.Defaults().RepeatEvery)
	}
	if err := b.check(); err != nil {
		return Report{}, err
	}
	x := &explorer{b: b, w: newWorld(&b), states: newStore()}
	x.run(most)
	return x.r, nil
}

type explorer struct {
	b       Bounds
	w       *world
	states  *store
	scratch []byte
	from    []int32 // by state: the state before it on a shortest way
	by      []step  // and the step from there
	auto    []edge  // steps that happen by themselves
	r       Report
}

type edge struct{ from, to int32 }

func (x *explorer) run(most int) {
	x.w.check()
	x.visit(-1, step{})
	var steps []step
	for s := 0; s < x.states.len(); s++ {
		if x.r.Cut = x.states.len() > most; x.r.Cut {
			break
		}
		k := x.states.key(int32(s)) // stays as it is when more are added
		x.w.load(k)
		steps = x.w.steps(steps[:0])
		quiet := true
		for i, st := range steps {
			if i > 0 {
				x.w.load(k)
			}
			if !x.w.apply(st) {
				continue
			}
			x.w.check()
			x.r.Steps++
			if x.w.overtaken > 0 {
				x.r.Overtaken++
			}
			if x.w.failure != "" {
				x.fail(int32(s), st)
				return
			}
			to := x.visit(int32(s), st)
			if st.kind.auto() {
				quiet = false
				x.auto = append(x.auto, edge{int32(s), to})
			}
		}
		if !quiet {
			continue
		}
		x.r.Quiet++
		x.w.load(k)
		if x.w.quiet(); x.w.failure != "" {
			x.fail(int32(s), step{})
			return
		}
	}
	x.r.States = x.states.len()
	if !x.r.Cut {
		x.ends()
	}
}

// visit returns the number of the world's state, a new one if it is new.
func (x *explorer) visit(from int32, by step) int32 {
	x.scratch = x.w.key(x.scratch[:0])
	s, added := x.states.add(x.scratch)
	if added {
		x.from = append(x.from, from)
		x.by = append(x.by, by)
	}
	return s
}

// ends shows that steps which happen by themselves lead in no circle, by taking
// away states whose every such step has been taken away. A state without one is
// quiet, and has been checked.
func (x *explorer) ends() {
	n := x.states.len()
	open := make([]int32, n)   // steps onwards from a state
	before := make([]int32, n) // where its predecessors begin in preds
	for _, e := range x.auto {
		open[e.from]++
		before[e.to]++
	}
	sum := int32(0)
	for i, c := range before {
		before[i] = sum
		sum += c
	}
	preds := make([]int32, len(x.auto))
	at := slices.Clone(before)
	for _, e := range x.auto {
		preds[at[e.to]] = e.from
		at[e.to]++
	}
	var done []int32
	depth := make([]int32, n)
	for s := range n {
		if open[s] == 0 {
			done = append(done, int32(s))
		}
	}
	for i := 0; i < len(done); i++ {
		s := done[i]
		x.r.Longest = max(x.r.Longest, int(depth[s]))
		for _, p := range preds[before[s]:at[s]] {
			depth[p] = max(depth[p], depth[s]+1)
			if open[p]--; open[p] == 0 {
				done = append(done, p)
			}
		}
	}
	if len(done) == n {
		return
	}
	for s := range n {
		if open[s] > 0 {
			x.w.failure = fmt.Sprintf("%d states lie on or lead to a circle of steps: messages and packets may go round for ever", n-len(done))
			x.fail(int32(s), step{})
			return
		}
	}
}

// fail reports the failure after a step from a state, with the way to it.
func (x *explorer) fail(s int32, last step) {
	x.r.Failure = x.w.failure
	x.r.States = x.states.len()
	way := []step{last}
	for ; x.from[s] >= 0; s = x.from[s] {
		way = append(way, x.by[s])
	}
	slices.Reverse(way)
	w := newWorld(&x.b)
	for i, st := range way {
		if st.kind == none {
			break
		}
		x.r.Trace = append(x.r.Trace, fmt.Sprintf("%2d  %s", i+1, w.text(st)))
		w.apply(st)
	}
}
