package explore

import (
	"fmt"
	"slices"

	"nicprof/cora/runtime"
)

// packet is one of an entry's packets, in the order in which they came.
type packet struct {
	entry, seq uint8
	served     bool
}

// item is a packet or message on its way.
type item struct {
	message bool
	p       packet
	m       runtime.Message

	// on the NIC, where items leave in the order in which they were looked up
	action  runtime.Action
	tag     runtime.Tag
	leaving bool // a packet that the host has served
}

// late is a message that has lost its place in the queue.
type late struct {
	m     runtime.Message
	toNIC bool
}

// budget is how often what need not happen may still happen.
type budget struct {
	packets                   [maxEntries]uint8
	moves                     uint8
	lose, duplicate, delay    uint8
	write, repeat, losePacket uint8
}

const (
	maxEntries = 4
	maxPackets = 8 // of an entry
)

// world is one state: the runtime's two sides and everything between them.
type world struct {
	b    *Bounds
	nic  *runtime.NIC
	host *runtime.Host

	pipe []item   // on the NIC
	up   []item   // NIC to host
	down []item   // host to NIC
	held []packet // on the host
	late []late
	left budget

	// what an observer knows who sees everything
	came, served [maxEntries]uint8
	away, astray [maxEntries]uint8 // bits by packet: has left or was lost; went to the host while its entry moved to the NIC
	gone         [maxEntries]uint8 // packets that left by the wire

	failWrite, wrote bool
	overtaken        int
	failure          string
}

func newWorld(b *Bounds) *world {
	o := b.options()
	w := &world{b: b, nic: runtime.NewNIC(o, uint32(b.Entries)), host: runtime.NewHost(o, uint32(b.Entries))}
	w.nic.WriteFails = func() bool {
		w.wrote = true
		return w.failWrite
	}
	for e := range b.Entries {
		w.left.packets[e] = uint8(b.Packets)
	}
	w.left.moves, w.left.lose, w.left.duplicate, w.left.delay = uint8(b.Moves), uint8(b.Lose), uint8(b.Duplicate), uint8(b.Delay)
	w.left.write, w.left.repeat, w.left.losePacket = uint8(b.Write), uint8(b.Repeat), uint8(b.LosePacket)
	for f := range b.flows() {
		e := uint32(f * b.width())
		switch b.Start {
		case OnNIC:
			w.nic.Install(e, 0)
			w.host.Install(e, true, 0)
		case OnHost:
			w.host.Install(e, false, 0)
		}
	}
	return w
}

// fail keeps the first thing that is wrong.
func (w *world) fail(format string, a ...any) {
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, a...)
	}
}

// nicLive says whether the NIC's copy of an entry is the one that packets are
// served on. A frozen one is until the host's takes over.
func (w *world) nicLive(e uint32) bool {
	s := w.nic.State(e)
	return s == runtime.Valid || s == runtime.ToCPU && !w.host.Live(e/uint32(w.b.width()))
}

// lookup is a packet's lookup on the NIC.
func (w *world) lookup(p packet) {
	d := w.nic.Packet(uint32(p.entry))
	if d.Action == runtime.Drop {
		w.away[p.entry] |= 1 << p.seq
		return
	}
	if d.Tag == runtime.TagToNIC || d.Tag == runtime.TagInit {
		w.astray[p.entry] |= 1 << p.seq
	}
	w.pipe = append(w.pipe, item{p: p, action: d.Action, tag: d.Tag})
}

// obey is a message's turn on the NIC; its echo leaves behind the packets that
// were looked up before.
func (w *world) obey(m runtime.Message) {
	echo, ok := w.b.Break.control(w, m)
	if !ok {
		return
	}
	i := item{message: true, m: echo}
	if w.b.Break == EchoOvertakes {
		w.up = append(w.up, i)
		return
	}
	w.pipe = append(w.pipe, i)
}

// finish ends the oldest item on the NIC.
func (w *world) finish() {
	i := pop(&w.pipe)
	e := uint32(i.p.entry)
	switch {
	case i.message:
		w.up = append(w.up, i)
	case i.leaving:
		if w.b.Break != CounterMoves {
			w.nic.Returned(e, 1)
		}
		w.leave(i.p)
	case i.action == runtime.Serve:
		w.serve(&i.p)
		if !w.nicLive(e) {
			w.fail("%s is served on an entry of the NIC that is %v", i.p, w.nic.State(e))
		}
		w.nic.Served(e, 1)
		w.leave(i.p)
	default:
		w.up = append(w.up, i)
	}
}

// serve notes that a packet is served, and that it was not before.
func (w *world) serve(p *packet) {
	if p.served {
		w.fail("%s is served twice", *p)
	}
	p.served = true
	w.served[p.entry]++
}

// leave notes that a packet leaves by the wire, and that it has overtaken none
// but packets that had gone to the host while their entry moved to the NIC.
func (w *world) leave(p packet) {
	if !p.served {
		w.fail("%s leaves without having been served", p)
	}
	w.away[p.entry] |= 1 << p.seq
	w.gone[p.entry]++
	for q := range p.seq {
		if w.away[p.entry]>>q&1 == 0 {
			w.overtaken++
			if w.astray[p.entry]>>q&1 == 0 {
				w.fail("%s overtakes packet %d, which did not meet an offload", p, q+1)
			}
		}
	}
}

// arrive is an item's turn on the host.
func (w *world) arrive(i item) {
	if i.message {
		w.echo(i.m)
		return
	}
	e, f := uint32(i.p.entry), uint32(int(i.p.entry)/w.b.width())
	repeats := w.host.Repeats
	v, m, send := w.host.Packet(e, i.tag)
	if send && (w.b.Break != NoRepeat || w.host.Repeats == repeats) {
		w.send(m)
	}
	switch v {
	case runtime.HostServes:
		w.hostServes(&i.p, f)
		w.down = append(w.down, item{p: i.p, leaving: true})
	case runtime.HostHolds:
		w.held = append(w.held, i.p)
	case runtime.HostBounces:
		w.down = append(w.down, item{p: i.p})
	}
}

func (w *world) hostServes(p *packet, flow uint32) {
	w.serve(p)
	if !w.host.Live(flow) {
		w.fail("%s is served on a copy of the host that is %v", *p, w.host.Phase(flow))
	}
	if w.nicLive(uint32(p.entry)) {
		w.fail("%s is served on the host while the NIC's entry is %v", *p, w.nic.State(uint32(p.entry)))
	}
}

// echo is an echo's turn on the host.
func (w *world) echo(m runtime.Message) {
	reply, send, release := w.b.Break.echo(w, m)
	if send {
		w.send(reply)
	}
	if !release {
		return
	}
	f := int(m.Entry) / w.b.width()
	kept := w.held[:0]
	for _, p := range w.held {
		if int(p.entry)/w.b.width() != f {
			kept = append(kept, p)
			continue
		}
		w.hostServes(&p, uint32(f))
		w.host.Release(uint32(p.entry))
		w.down = append(w.down, item{p: p, leaving: true})
	}
	w.held = kept
}

// send puts a message into the queue to the NIC.
func (w *world) send(m runtime.Message) { w.down = append(w.down, item{message: true, m: m}) }

// take is the NIC's turn with an item from the host.
func (w *world) take(i item) {
	switch {
	case i.message:
		w.obey(i.m)
	case i.leaving:
		w.pipe = append(w.pipe, i)
	default:
		w.lookup(i.p)
	}
}

// check holds what must be true in every state.
func (w *world) check() {
	if w.failure != "" {
		return
	}
	used, keys := 0, 0
	for e := range uint32(w.b.Entries) {
		s := w.nic.State(e)
		if s != runtime.Absent {
			keys++
		}
		if s >= runtime.Valid {
			used++
		}
		f := e / uint32(w.b.width())
		nic, host := w.nicLive(e), w.host.Live(f)
		served := uint64(w.served[e])
		switch p := w.host.Phase(f); {
		case nic && host:
			w.fail("entry %d has two live copies: %v on the NIC, %v on the host", e, w.nic.State(e), p)
		case nic && w.nic.Value(e) != served:
			w.fail("%d packets of entry %d were served; the NIC's live copy says %d", served, e, w.nic.Value(e))
		case host && w.host.Value(e) != served:
			w.fail("%d packets of entry %d were served; the host's live copy says %d", served, e, w.host.Value(e))
		case nic || host || p == runtime.Unknown:
		case (p == runtime.Offloading || p == runtime.Handing) && w.host.Value(e) != served,
			p == runtime.Evicted && w.nic.Value(e) != served:
			w.fail("%d packets of entry %d were served; no copy knows of all of them", served, e)
		case !w.host.Pending(f):
			w.fail("entry %d is orphaned: %v on the NIC, %v on the host", e, w.nic.State(e), p)
		}
		if !w.b.Pairs {
			continue
		}
		if s, t := w.nic.State(e), w.nic.State(e^1); s != t {
			w.fail("entries %d and %d are a pair, but %v and %v on the NIC", e, e^1, s, t)
		}
	}
	if used > w.b.Room {
		w.fail("%d entries on a NIC with room for %d", used, w.b.Room)
	}
	if slots := int(w.b.options().Slots); keys > slots {
		w.fail("%d keys in a table of %d slots", keys, slots)
	}
	for g := range uint32(groups) {
		left := uint64(0)
		for e := range uint32(w.b.Entries) {
			if e/uint32(w.b.width())%groups == g {
				left += uint64(w.gone[e])
			}
		}
		if got := w.nic.Load(g); got != left {
			w.fail("%d packets of group %d have left; its load counter says %d", left, g, got)
		}
	}
	if n := w.nic.Late(); n > 0 {
		w.fail("%d updates lost on the NIC", n)
	}
}

// quiet reports what is unfinished in a state in which nothing more happens by
// itself. If nobody knows of an entry's end because a message or the flow's last
// packet was lost, one more packet must settle it.
func (w *world) quiet() {
	for f := range uint32(w.b.flows()) {
		e := f * uint32(w.b.width())
		if s := w.nic.State(e); w.host.Phase(f) == runtime.Serving && (s == runtime.Initial || s == runtime.ToNIC) {
			w.left.packets[e], w.left.moves, w.left.repeat = 1, 0, 0
			w.arriveByWire(uint8(e))
			w.settle()
		}
	}
	for _, p := range w.held {
		w.fail("stuck: %s is held by the host for ever", p)
	}
	for f := range uint32(w.b.flows()) {
		s, p := w.nic.State(f*uint32(w.b.width())), w.host.Phase(f)
		switch {
		case w.host.Pending(f):
			w.fail("stuck: flow %d is %v for ever", f, p)
		case p == runtime.Serving && s != runtime.Invalid && s != runtime.Absent:
			w.fail("flow %d is on the host, but its entry on the NIC is %v for ever", f, s)
		case p == runtime.Remote && s != runtime.Valid:
			w.fail("flow %d is on the NIC, but its entry there is %v for ever", f, s)
		}
	}
}

// settle takes steps that happen by themselves until there are none.
func (w *world) settle() {
	for range 1000 {
		steps := slices.DeleteFunc(w.steps(nil), func(s step) bool { return !s.kind.auto() })
		if len(steps) == 0 {
			return
		}
		w.apply(steps[0])
		w.check()
	}
	w.fail("stuck: one more packet goes round for ever")
}

func (p packet) String() string { return fmt.Sprintf("packet %d of entry %d", p.seq+1, p.entry) }
