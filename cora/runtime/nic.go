package runtime

// Action is what the NIC does with a packet.
type Action uint8

// Actions.
const (
	Serve  Action = iota // on the NIC; Served follows when it is done
	ToHost               // with the tag
	Drop                 // belongs to no connection
)

// Decision is what the NIC does with a packet.
type Decision struct {
	Action Action
	Tag    Tag
}

// NIC is the NIC's side: entries and load counters.
type NIC struct {
	// WriteFails, if set, is asked before a key is written into the table; true
	// makes the write fail.
	WriteFails func() bool

	o     Options
	flag  Load
	state []State  // by entry
	epoch []uint16 // by entry: the last migration that it took part in
	value []uint64 // by entry: packets served, the data that moves with an entry
	load  []uint64 // by group: packets that left, served here or on the host
	keys  uint32   // entries that are not Absent
	used  uint32   // entries that hold data
	late  uint64
	lost  uint64
}

// NewNIC returns a NIC for entries 0…entries-1, all absent. The options must
// have passed Check.
func NewNIC(o Options, entries uint32) *NIC {
	return &NIC{
		o: o, state: make([]State, entries), epoch: make([]uint16, entries), value: make([]uint64, entries),
		load: make([]uint64, o.Groups),
	}
}

// State of an entry.
func (n *NIC) State(entry uint32) State { return n.state[entry] }

// Epoch is the number of the last migration that an entry took part in.
func (n *NIC) Epoch(entry uint32) uint16 { return n.epoch[entry] }

// Value is an entry's data: how many packets were served on it, as far as this
// copy knows.
func (n *NIC) Value(entry uint32) uint64 { return n.value[entry] }

// Load is a group's load counter: the group's packets that left.
func (n *NIC) Load(group uint32) uint64 { return n.load[group] }

// Entries is how many entries hold data.
func (n *NIC) Entries() uint32 { return n.used }

// Flag is the load that the NIC was told last.
func (n *NIC) Flag() Load { return n.flag }

// Late counts packets that were served on an entry which had moved meanwhile,
// and whose update is lost. It stays 0 if packets and echoes leave in order.
func (n *NIC) Late() uint64 { return n.late }

// WritesLost counts keys that could not be written.
func (n *NIC) WritesLost() uint64 { return n.lost }

// SetEntries changes how many entries may hold data. Those beyond stay until
// they are evicted.
func (n *NIC) SetEntries(entries uint32) { n.o.Entries = entries }

// Install gives the NIC a flow's entry, as if it had been offloaded: to start an
// emulation in its middle. The host must be told by its own Install.
func (n *NIC) Install(entry uint32, value uint64) {
	for e := n.o.first(entry); e < n.o.first(entry)+n.o.width(); e++ {
		n.set(e, Valid)
		n.value[e] = value
	}
}

// set changes an entry's state and keeps count.
func (n *NIC) set(entry uint32, s State) {
	old := n.state[entry]
	if old == Absent && s != Absent {
		n.keys++
	}
	if old.holds() && !s.holds() {
		n.used--
	}
	if !old.holds() && s.holds() {
		n.used++
	}
	n.state[entry] = s
}

// move changes the state of a flow's entries.
func (n *NIC) move(first uint32, s State, epoch uint16) {
	for e := first; e < first+n.o.width(); e++ {
		n.set(e, s)
		n.epoch[e] = epoch
	}
}

// room says whether a flow's entries can hold data, and whether their keys can
// be written.
func (n *NIC) room(first uint32) (data, keys bool) {
	w := n.o.width()
	data = n.state[first].holds() || n.used+w <= n.o.Entries
	if n.state[first] != Absent {
		return data, true
	}
	if n.keys+w > n.o.Slots || n.WriteFails != nil && n.WriteFails() {
		n.lost++
		return data, false
	}
	return data, true
}

// Packet decides about a packet at its lookup. A packet of an unknown flow gives
// it an entry, if there is room; the second half of a pair does not.
func (n *NIC) Packet(entry uint32) Decision {
	switch n.state[entry] {
	case Valid:
		return Decision{Action: Serve}
	case ToCPU:
		return Decision{ToHost, TagToCPU}
	case ToNIC:
		return Decision{ToHost, TagToNIC}
	case Initial:
		return Decision{ToHost, TagInit}
	case Invalid:
		return Decision{ToHost, TagPlain}
	}
	first := n.o.first(entry)
	if entry != first {
		return Decision{Action: Drop}
	}
	data, keys := n.room(first)
	switch {
	case !keys:
		return Decision{ToHost, TagPlain}
	case !data:
		n.move(first, Invalid, n.epoch[first])
		return Decision{ToHost, TagPlain}
	}
	n.move(first, Initial, n.epoch[first])
	return Decision{ToHost, TagInit}
}

// Served ends the service of packets on the NIC: their entry and load counter
// are updated, and they leave.
func (n *NIC) Served(entry uint32, packets uint64) {
	if s := n.state[entry]; s != Valid && s != ToCPU {
		n.late += packets
	}
	n.value[entry] += packets
	n.Returned(entry, packets)
}

// Returned is the NIC's egress: packets served on the host pass it on their way
// to the wire and are counted there.
func (n *NIC) Returned(entry uint32, packets uint64) {
	n.load[n.o.Flow(entry)%n.o.Groups] += packets
}

// Control obeys a message, and returns its echo; ok is false if there is none,
// because the message is out of date or asks for what its entry's state forbids.
// Obeying a message again changes nothing.
func (n *NIC) Control(m Message) (echo Message, ok bool) {
	switch m.Op {
	case OpFlag:
		n.flag = m.Flag
	case OpMonitor:
	default:
		if m, ok = n.migrate(m); !ok {
			return Message{}, false
		}
	}
	m.Flag = n.flag
	return m, true
}

func (n *NIC) migrate(m Message) (echo Message, ok bool) {
	e := m.Entry
	s, again := n.state[e], m.Epoch == n.epoch[e] && n.state[e] != Absent
	if !again && s != Absent && !after(m.Epoch, n.epoch[e]) {
		return Message{}, false
	}
	next := s
	switch m.Op {
	case OpToCPU:
		next = ToCPU
		ok = !again && s == Valid || again && s == ToCPU
	case OpEvict:
		next = Invalid
		ok = again && (s == ToCPU || s == Invalid) || !again && (s == ToNIC || s == Initial)
		for i := range n.o.width() {
			m.Value[i] = n.value[e+i]
		}
	case OpToNIC:
		next = ToNIC
		switch {
		case again:
			ok = s == ToNIC || s == Invalid
			m.Failed = s == Invalid
		case s != Valid && s != ToCPU:
			data, keys := n.room(e)
			if m.Failed = !data || !keys; !keys {
				return m, true
			}
			ok = true
		}
		if m.Failed {
			next = Invalid
		}
	case OpOffload:
		next = Valid
		ok = again && (s == ToNIC || s == Valid) || !again && s == Initial
		if ok && s != Valid {
			for i := range n.o.width() {
				n.value[e+i] = m.Value[i]
			}
		}
	}
	if ok {
		n.move(e, next, m.Epoch)
	}
	return m, ok
}
