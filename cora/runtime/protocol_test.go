package runtime

import (
	"testing"
)

// options of tests: little of everything.
func options() Options {
	o := Defaults()
	o.Entries, o.Slots, o.Groups = 2, 8, 2
	return o
}

// pass hands a message to the NIC and its echo to the host, and so on until
// nobody answers.
func pass(n *NIC, h *Host, m Message) (ops []Op, release bool) {
	for send := true; send; {
		ops = append(ops, m.Op)
		echo, ok := n.Control(m)
		if !ok {
			return ops, release
		}
		var r bool
		m, send, r = h.Control(echo)
		release = release || r
	}
	return ops, release
}

func TestFlowIsPlacedMovesToTheHostAndBack(t *testing.T) {
	n, h := NewNIC(options(), 4), NewHost(options(), 4)
	d := n.Packet(1)
	if d != (Decision{ToHost, TagInit}) || n.State(1) != Initial {
		t.Fatalf("first packet: %+v, entry %v", d, n.State(1))
	}
	v, m, send := h.Packet(1, d.Tag)
	if v != HostBounces || !send || m.Op != OpOffload || h.Phase(1) != Handing {
		t.Fatalf("host %v, %+v, phase %v", v, m, h.Phase(1))
	}
	pass(n, h, m)
	if d := n.Packet(1); d.Action != Serve || h.Phase(1) != Remote || n.Entries() != 1 {
		t.Fatalf("placed: %+v, phase %v, %d entries", d, h.Phase(1), n.Entries())
	}
	n.Served(1, 1)

	m, _ = h.Evict(1)
	ops, release := pass(n, h, m)
	if len(ops) != 2 || ops[0] != OpToCPU || ops[1] != OpEvict || !release {
		t.Errorf("eviction: %v, release %v", ops, release)
	}
	if n.State(1) != Invalid || h.Phase(1) != Serving || h.Value(1) != 1 || n.Entries() != 0 || h.OnHost() != 1 {
		t.Errorf("evicted: %v, %v, value %d, %d entries", n.State(1), h.Phase(1), h.Value(1), n.Entries())
	}
	d = n.Packet(1)
	if v, _, send := h.Packet(1, d.Tag); v != HostServes || send || d.Tag != TagPlain {
		t.Errorf("packet of the host's flow: %+v, %v", d, v)
	}
	n.Returned(1, 1)

	m, _ = h.Offload(1)
	ops, _ = pass(n, h, m)
	if len(ops) != 2 || ops[0] != OpToNIC || ops[1] != OpOffload {
		t.Errorf("offload: %v", ops)
	}
	if n.State(1) != Valid || h.Phase(1) != Remote || n.Value(1) != 2 || n.Load(1) != 2 || h.OnNIC() != 1 {
		t.Errorf("offloaded: %v, %v, value %d, load %d", n.State(1), h.Phase(1), n.Value(1), n.Load(1))
	}
}
