package explore

import "nicprof/cora/runtime"

// key appends the state to b so that equal states have equal keys, and load can
// read it back.
func (w *world) key(b []byte) []byte {
	b = w.nic.AppendState(b)
	b = w.host.AppendState(b)
	b = append(b, byte(len(w.pipe)), byte(len(w.up)), byte(len(w.down)), byte(len(w.held)), byte(len(w.late)))
	for _, q := range [][]item{w.pipe, w.up, w.down} {
		for i := range q {
			b = appendItem(b, &q[i])
		}
	}
	for _, p := range w.held {
		b = appendPacket(b, p)
	}
	for i := range w.late {
		b = append(b, flag(w.late[i].toNIC, 1))
		b = appendMessage(b, &w.late[i].m)
	}
	for e := range w.b.Entries {
		b = append(b, w.left.packets[e], w.came[e], w.served[e], w.away[e], w.astray[e], w.gone[e])
	}
	l := &w.left
	return append(b, l.moves, l.lose, l.duplicate, l.delay, l.write, l.repeat, l.losePacket)
}

func (w *world) load(b []byte) {
	b = w.host.SetState(w.nic.SetState(b))
	sizes := b[:5]
	b = b[5:]
	for i, q := range []*[]item{&w.pipe, &w.up, &w.down} {
		*q = (*q)[:0]
		for range sizes[i] {
			var x item
			x, b = readItem(b)
			*q = append(*q, x)
		}
	}
	w.held = w.held[:0]
	for range sizes[3] {
		w.held = append(w.held, readPacket(b))
		b = b[2:]
	}
	w.late = w.late[:0]
	for range sizes[4] {
		l := late{toNIC: b[0] != 0}
		l.m, b = readMessage(b[1:])
		w.late = append(w.late, l)
	}
	for e := range w.b.Entries {
		w.left.packets[e], w.came[e], w.served[e], w.away[e], w.astray[e], w.gone[e] = b[0], b[1], b[2], b[3], b[4], b[5]
		b = b[6:]
	}
	l := &w.left
	l.moves, l.lose, l.duplicate, l.delay, l.write, l.repeat, l.losePacket = b[0], b[1], b[2], b[3], b[4], b[5], b[6]
	w.failure, w.failWrite, w.wrote, w.overtaken = "", false, false, 0
}

func flag(v bool, bit byte) byte {
	if v {
		return bit
	}
	return 0
}

func appendPacket(b []byte, p packet) []byte {
	return append(b, p.entry<<4|p.seq, flag(p.served, 1))
}

func readPacket(b []byte) packet {
	return packet{entry: b[0] >> 4, seq: b[0] & 15, served: b[1] != 0}
}

func appendItem(b []byte, i *item) []byte {
	b = append(b, flag(i.message, 1)|flag(i.leaving, 2)|byte(i.action)<<2|byte(i.tag)<<4)
	if i.message {
		return appendMessage(b, &i.m)
	}
	return appendPacket(b, i.p)
}

func readItem(b []byte) (item, []byte) {
	i := item{message: b[0]&1 != 0, leaving: b[0]&2 != 0, action: runtime.Action(b[0] >> 2 & 3), tag: runtime.Tag(b[0] >> 4)}
	b = b[1:]
	if i.message {
		i.m, b = readMessage(b)
		return i, b
	}
	i.p = readPacket(b)
	return i, b[2:]
}

// appendMessage is for epochs and data below 256: bounds keep them there.
func appendMessage(b []byte, m *runtime.Message) []byte {
	return append(b, byte(m.Op)|flag(m.Failed, 8), byte(m.Epoch), byte(m.Entry), byte(m.Value[0]), byte(m.Value[1]))
}

func readMessage(b []byte) (runtime.Message, []byte) {
	return runtime.Message{
		Op: runtime.Op(b[0] & 7), Failed: b[0]&8 != 0, Epoch: uint16(b[1]), Entry: uint32(b[2]), Value: [2]uint64{uint64(b[3]), uint64(b[4])},
	}, b[5:]
}
