package explore

import (
	"fmt"

	"nicprof/cora/runtime"
)

type kind uint8

// Kinds of steps. Those up to timeout happen by themselves.
const (
	none     kind = iota
	finish        // the oldest item on the NIC leaves
	fromHost      // the NIC takes an item from the host
	toHost        // the host takes an item
	deliver       // a late message arrives
	timeout       // a command without an answer is sent again

	arrive       // a packet comes by the wire
	evict        // the controller moves a flow to the host
	offload      // and to the NIC
	loseUp       // a message or packet to the host is lost
	loseDown     // and one to the NIC
	doubleUp     // a message to the host will come once more
	doubleDown   // and one to the NIC
	delayUp      // a message to the host comes late
	delayDown    // and one to the NIC
	repeat       // a command is sent again though its answer may be under way
	fromHostFail // as fromHost, and writing the key fails
	arriveFail   // as arrive, and writing the key fails
)

// auto says whether steps of a kind happen by themselves: nobody asks for them,
// and nothing goes wrong.
func (k kind) auto() bool { return k <= timeout }

type step struct {
	kind kind
	n    uint8 // which entry, flow or late message
}

// steps appends the steps that a state allows.
func (w *world) steps(s []step) []step {
	room := len(w.pipe) < w.b.OnNIC
	if len(w.pipe) > 0 {
		s = append(s, step{finish, 0})
	}
	if len(w.up) > 0 {
		s = append(s, step{toHost, 0})
		s = w.mishaps(s, w.up[0], loseUp, doubleUp, delayUp)
	}
	if len(w.down) > 0 {
		if room {
			s = append(s, step{fromHost, 0})
			if w.left.write > 0 {
				s = append(s, step{fromHostFail, 0})
			}
		}
		s = w.mishaps(s, w.down[0], loseDown, doubleDown, delayDown)
	}
	for i, l := range w.late {
		if !l.toNIC || room {
			s = append(s, step{deliver, uint8(i)})
		}
	}
	for e := range w.b.Entries {
		if w.left.packets[e] > 0 && room {
			s = append(s, step{arrive, uint8(e)})
			if w.left.write > 0 {
				s = append(s, step{arriveFail, uint8(e)})
			}
		}
	}
	for f := range w.b.flows() {
		n := uint8(f)
		switch p := w.host.Phase(uint32(f)); {
		case p == runtime.Remote && w.left.moves > 0:
			s = append(s, step{evict, n})
		case p == runtime.Serving && w.left.moves > 0:
			s = append(s, step{offload, n})
		case w.host.Pending(uint32(f)):
			if !w.underWay(f) {
				s = append(s, step{timeout, n})
			} else if w.left.repeat > 0 {
				s = append(s, step{repeat, n})
			}
		}
	}
	return s
}

// mishaps appends what may go wrong with the first item of a queue.
func (w *world) mishaps(s []step, i item, lose, double, delay kind) []step {
	if !i.message {
		if w.left.losePacket > 0 {
			s = append(s, step{lose, 0})
		}
		return s
	}
	if w.left.lose > 0 {
		s = append(s, step{lose, 0})
	}
	if w.left.duplicate > 0 {
		s = append(s, step{double, 0})
	}
	if w.left.delay > 0 {
		s = append(s, step{delay, 0})
	}
	return s
}

// underWay says whether anything of a flow is between NIC and host that may bring
// an answer.
func (w *world) underWay(flow int) bool {
	for _, q := range [][]item{w.pipe, w.up, w.down} {
		for _, i := range q {
			e := int(i.p.entry)
			if i.message {
				e = int(i.m.Entry)
			}
			if e/w.b.width() == flow {
				return true
			}
		}
	}
	for _, l := range w.late {
		if int(l.m.Entry)/w.b.width() == flow {
			return true
		}
	}
	return false
}

// apply takes a step. It is false if the step does not exist after all: a write
// was to fail, and nothing was written.
func (w *world) apply(s step) bool {
	switch s.kind {
	case finish:
		w.finish()
	case fromHostFail, arriveFail:
		w.failWrite = true
		w.left.write--
		if s.kind == arriveFail {
			w.arriveByWire(s.n)
		} else {
			w.take(pop(&w.down))
		}
		return w.wrote
	case fromHost:
		w.take(pop(&w.down))
	case toHost:
		w.arrive(pop(&w.up))
	case deliver:
		l := w.late[s.n]
		w.late = append(w.late[:s.n], w.late[s.n+1:]...)
		if l.toNIC {
			w.obey(l.m)
		} else {
			w.echo(l.m)
		}
	case timeout, repeat:
		if s.kind == repeat {
			w.left.repeat--
		}
		m, _ := w.host.Repeat(uint32(s.n))
		w.send(m)
	case arrive:
		w.arriveByWire(s.n)
	case evict:
		w.left.moves--
		w.b.Break.evict(w, uint32(s.n))
	case offload:
		w.left.moves--
		m, _ := w.host.Offload(uint32(s.n))
		w.send(m)
	case loseUp:
		w.lose(pop(&w.up))
	case loseDown:
		w.lose(pop(&w.down))
	case doubleUp:
		w.left.duplicate--
		w.late = append(w.late, late{m: w.up[0].m})
	case doubleDown:
		w.left.duplicate--
		w.late = append(w.late, late{m: w.down[0].m, toNIC: true})
	case delayUp:
		w.left.delay--
		w.late = append(w.late, late{m: pop(&w.up).m})
	case delayDown:
		w.left.delay--
		w.late = append(w.late, late{m: pop(&w.down).m, toNIC: true})
	}
	return true
}

func (w *world) arriveByWire(entry uint8) {
	w.left.packets[entry]--
	w.came[entry]++
	w.lookup(packet{entry: entry, seq: w.came[entry] - 1})
}

func (w *world) lose(i item) {
	if i.message {
		w.left.lose--
		return
	}
	w.left.losePacket--
	w.away[i.p.entry] |= 1 << i.p.seq
}

// pop takes the first item of a queue, and keeps the queue where it is in memory.
func pop(q *[]item) item {
	i := (*q)[0]
	*q = append((*q)[:0], (*q)[1:]...)
	return i
}

// text describes a step that is about to be taken.
func (w *world) text(s step) string {
	switch s.kind {
	case finish:
		i := w.pipe[0]
		switch {
		case i.message:
			return fmt.Sprintf("the echo of %s leaves the NIC", message(i.m))
		case i.leaving:
			return fmt.Sprintf("%s, served on the host, leaves by the wire", i.p)
		case i.action == runtime.Serve:
			return fmt.Sprintf("the NIC ends the service of %s, which leaves by the wire", i.p)
		}
		return fmt.Sprintf("%s leaves for the host, tagged %v", i.p, i.tag)
	case fromHost, fromHostFail:
		i := w.down[0]
		failing := map[bool]string{true: "; writing its key fails"}[s.kind == fromHostFail]
		switch {
		case i.message:
			return fmt.Sprintf("the NIC obeys %s (entry %v)%s", message(i.m), w.nic.State(i.m.Entry), failing)
		case i.leaving:
			return fmt.Sprintf("%s comes back from the host", i.p)
		}
		return fmt.Sprintf("%s comes back unserved; the NIC looks it up (entry %v)%s", i.p, w.nic.State(uint32(i.p.entry)), failing)
	case toHost:
		i := w.up[0]
		if i.message {
			return fmt.Sprintf("the host takes the echo of %s (%v)", message(i.m), w.host.Phase(i.m.Entry/uint32(w.b.width())))
		}
		return fmt.Sprintf("the host takes %s, tagged %v (%v)", i.p, i.tag, w.host.Phase(uint32(int(i.p.entry)/w.b.width())))
	case deliver:
		l := w.late[s.n]
		if l.toNIC {
			return fmt.Sprintf("late, the NIC obeys %s (entry %v)", message(l.m), w.nic.State(l.m.Entry))
		}
		return fmt.Sprintf("late, the host takes the echo of %s", message(l.m))
	case timeout, repeat:
		m, _ := w.host.Repeat(uint32(s.n))
		return fmt.Sprintf("the host sends %s again", message(m))
	case arrive, arriveFail:
		failing := map[bool]string{true: "; writing its key fails"}[s.kind == arriveFail]
		return fmt.Sprintf("packet %d of entry %d comes by the wire; the NIC looks it up (entry %v)%s",
			w.came[s.n]+1, s.n, w.nic.State(uint32(s.n)), failing)
	case evict:
		return fmt.Sprintf("the host starts to evict flow %d", s.n)
	case offload:
		return fmt.Sprintf("the host starts to offload flow %d", s.n)
	case loseUp:
		return w.lost("the echo of ", w.up[0])
	case loseDown:
		return w.lost("", w.down[0])
	case doubleUp:
		return fmt.Sprintf("the echo of %s is doubled", message(w.up[0].m))
	case doubleDown:
		return fmt.Sprintf("%s is doubled", message(w.down[0].m))
	case delayUp:
		return fmt.Sprintf("the echo of %s is delayed", message(w.up[0].m))
	default:
		return fmt.Sprintf("%s is delayed", message(w.down[0].m))
	}
}

func (w *world) lost(echo string, i item) string {
	if i.message {
		return echo + message(i.m) + " is lost"
	}
	return fmt.Sprintf("%s is lost between NIC and host", i.p)
}

func message(m runtime.Message) string {
	failed := map[bool]string{true: " (refused)"}[m.Failed]
	return fmt.Sprintf("%v of entry %d, migration %d%s", m.Op, m.Entry, m.Epoch, failed)
}
