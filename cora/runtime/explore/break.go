package explore

import "nicprof/cora/runtime"

// Break is a step of the protocol that an exploration leaves out, to see that
// its invariants notice. The runtime's functions stay as they are: messages are
// changed on their way into them.
type Break uint8

// Breaks.
const (
	Nothing       Break = iota
	NoFreeze            // the host asks for the data at once, without OpToCPU and its echo
	NoFirstEcho         // OpEvict follows OpToCPU without waiting for the echo
	NoSecondEcho        // the host serves after the first echo, with the data read when the entry froze
	EchoOvertakes       // echoes do not wait for packets that were looked up before
	CounterMoves        // an evicted entry takes its load counter along to the host
	HalfPair            // the halves of a pair move on their own
	NoEpochs            // nobody numbers migrations: each message is obeyed as it comes
	ForgetsData         // an evicted entry's data is gone once its echo was sent
	NoRepeat            // packets that come back and forth do not make the host repeat its command
)

var breaks = []struct{ name, text string }{
	{"nothing", "the protocol as it is"},
	{"no-freeze", "eviction without TO_CPU: the entry is given up while packets are being served on it"},
	{"no-first-echo", "EVICT is sent right behind TO_CPU, without waiting for the echo"},
	{"no-second-echo", "the host serves after TO_CPU's echo, on the data that the entry had when it froze"},
	{"echo-overtakes", "echoes leave the NIC ahead of packets that were looked up before"},
	{"counter-moves", "the load counter goes to the host with an evicted entry"},
	{"half-pair", "the two entries of a connection move one by one"},
	{"no-epochs", "migrations have no numbers: a message is obeyed whenever it comes"},
	{"forgets-data", "the NIC forgets an evicted entry's data once the echo with it was sent"},
	{"no-repeat", "the host does not repeat its command every so many packets of an unacknowledged flow"},
}

func (b Break) String() string { return breaks[b].name }

// Text says what is left out.
func (b Break) Text() string { return breaks[b].text }

// evict starts an eviction.
func (b Break) evict(w *world, flow uint32) {
	m, ok := w.host.Evict(flow)
	if !ok {
		return
	}
	if b != NoFreeze {
		w.send(m)
	}
	if b == NoFreeze || b == NoFirstEcho {
		m, _, _ = w.host.Control(m)
		w.send(m)
	}
}

// control is the NIC's turn with a message.
func (b Break) control(w *world, m runtime.Message) (echo runtime.Message, ok bool) {
	n, e := w.nic, m.Entry
	switch {
	case b == NoFreeze && m.Op == runtime.OpEvict && n.State(e) == runtime.Valid:
		first := m
		first.Op = runtime.OpToCPU
		n.Control(first)
	case b == NoSecondEcho && m.Op == runtime.OpToCPU:
		if m, ok = n.Control(m); ok {
			m.Value = [2]uint64{n.Value(e)}
		}
		return m, ok
	case b == ForgetsData && m.Op == runtime.OpEvict && n.State(e) == runtime.Invalid:
		m, ok = n.Control(m)
		m.Value = [2]uint64{}
		return m, ok
	case b == NoEpochs:
		return w.blind(m)
	}
	return n.Control(m)
}

// blind makes the NIC obey a message whatever its number and the entry's state.
func (w *world) blind(m runtime.Message) (echo runtime.Message, ok bool) {
	data := w.nic.Value(m.Entry)
	switch m.Op {
	case runtime.OpToCPU:
		w.force(m.Entry, runtime.ToCPU, data)
	case runtime.OpEvict:
		w.force(m.Entry, runtime.Invalid, data)
		m.Value[0] = data
	case runtime.OpToNIC:
		w.force(m.Entry, runtime.ToNIC, data)
	case runtime.OpOffload:
		w.force(m.Entry, runtime.Valid, m.Value[0])
	}
	return m, true
}

// force leads an entry to a state, by messages that it must obey.
func (w *world) force(e uint32, to runtime.State, data uint64) {
	n := w.nic
	n.Install(e, data)
	for _, step := range []struct {
		state runtime.State
		op    runtime.Op
		fresh uint16
	}{{runtime.ToCPU, runtime.OpToCPU, 1}, {runtime.Invalid, runtime.OpEvict, 0}, {runtime.ToNIC, runtime.OpToNIC, 1}} {
		if n.State(e) == to {
			return
		}
		n.Control(runtime.Message{Op: step.op, Entry: e, Epoch: n.Epoch(e) + step.fresh})
	}
}

// echo is the host's turn with an echo.
func (b Break) echo(w *world, m runtime.Message) (reply runtime.Message, send, release bool) {
	if b == NoEpochs {
		m.Epoch = w.host.Epoch(m.Entry / uint32(w.b.width()))
	}
	reply, send, release = w.host.Control(m)
	if b == NoSecondEcho && send && reply.Op == runtime.OpEvict && m.Op == runtime.OpToCPU {
		reply.Value = m.Value
		_, _, release = w.host.Control(reply)
		reply.Value = [2]uint64{}
	}
	return reply, send, release
}
