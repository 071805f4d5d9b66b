package runtime

import "encoding/binary"

// AppendState appends all that changes in a NIC to b, short where numbers are
// small: for explorations, which keep millions of states.
func (n *NIC) AppendState(b []byte) []byte {
	b = append(b, byte(n.flag))
	for e, s := range n.state {
		b = append(b, byte(s))
		b = binary.AppendUvarint(b, uint64(n.epoch[e]))
		b = binary.AppendUvarint(b, n.value[e])
	}
	for _, l := range n.load {
		b = binary.AppendUvarint(b, l)
	}
	return binary.AppendUvarint(b, n.late)
}

// SetState sets a NIC to what AppendState wrote of one with the same options and
// as many entries, and returns what follows it. WritesLost is left alone.
func (n *NIC) SetState(b []byte) (rest []byte) {
	n.flag, b = Load(b[0]), b[1:]
	n.keys, n.used = 0, 0
	for e := range n.state {
		n.state[e] = Absent // before set counts it anew
		n.set(uint32(e), State(b[0]))
		b = b[1:]
		n.epoch[e] = uint16(number(&b))
		n.value[e] = number(&b)
	}
	for g := range n.load {
		n.load[g] = number(&b)
	}
	n.late = number(&b)
	return b
}

// AppendState appends all that changes in a host; see NIC.AppendState.
func (h *Host) AppendState(b []byte) []byte {
	b = append(b, byte(h.nic))
	for f, p := range h.phase {
		b = append(b, byte(p), h.tries[f])
		b = binary.AppendUvarint(b, uint64(h.epoch[f]))
	}
	for _, v := range h.value {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

// SetState sets a host to what AppendState wrote; see NIC.SetState. What only
// counts events (Stale, Repeats) is left alone.
func (h *Host) SetState(b []byte) (rest []byte) {
	h.nic, b = Load(b[0]), b[1:]
	h.onNIC, h.onHost = 0, 0
	for f := range h.phase {
		h.phase[f], h.tries[f] = Phase(b[0]), b[1]
		h.count(uint32(f), 1)
		b = b[2:]
		h.epoch[f] = uint16(number(&b))
	}
	for e := range h.value {
		h.value[e] = number(&b)
	}
	return b
}

func number(b *[]byte) uint64 {
	v, n := binary.Uvarint(*b)
	*b = (*b)[n:]
	return v
}
