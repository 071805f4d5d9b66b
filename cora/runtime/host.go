package runtime

// Phase is where the host stands with a flow.
type Phase uint8

// Phases. The host's copy is live in Serving, Adopting and Offering.
const (
	Unknown    Phase = iota
	Serving          // the host has it
	Remote           // the NIC has it
	Adopting         // a new flow of the host's: until the NIC's entry is given up
	Handing          // a new flow for the NIC: until the NIC has taken it
	Evicting         // until the NIC's entry is frozen
	Evicted          // until its data is here
	Offering         // until the NIC has made room
	Offloading       // until the NIC has taken the data
)

func (p Phase) String() string {
	return [...]string{"unknown", "serving", "remote", "adopting", "handing", "evicting", "evicted", "offering", "offloading"}[p]
}

// Verdict is what the host does with a packet.
type Verdict uint8

// Verdicts.
const (
	HostServes  Verdict = iota // now; the packet then returns to the NIC's egress
	HostHolds                  // until Control says Release for its flow
	HostBounces                // back to the NIC, to be looked up again
)

func (v Verdict) String() string { return [...]string{"serves", "holds", "bounces"}[v] }

// Host is the host's side: what it knows of each flow, and its copies.
type Host struct {
	o       Options
	phase   []Phase  // by flow
	epoch   []uint16 // by flow
	tries   []uint8  // by flow: packets since its command was sent, modulo RepeatEvery
	value   []uint64 // by entry
	onNIC   uint32   // flows that are on the NIC or about to be
	onHost  uint32   // other flows that are known
	nic     Load     // as the NIC's last echo said
	stale   uint64
	Repeats uint64 // commands that were sent again because packets kept coming
}

// NewHost returns a host that knows no flow of entries 0…entries-1. The options
// must have passed Check.
func NewHost(o Options, entries uint32) *Host {
	flows := (entries + o.width() - 1) / o.width()
	return &Host{
		o: o, phase: make([]Phase, flows), epoch: make([]uint16, flows), tries: make([]uint8, flows),
		value: make([]uint64, flows*o.width()),
	}
}

// Phase of a flow.
func (h *Host) Phase(flow uint32) Phase { return h.phase[flow] }

// Epoch is the number of a flow's last migration.
func (h *Host) Epoch(flow uint32) uint16 { return h.epoch[flow] }

// Value is the host's copy of an entry's data; see NIC.Value.
func (h *Host) Value(entry uint32) uint64 { return h.value[entry] }

// OnNIC is how many flows are on the NIC or about to be.
func (h *Host) OnNIC() uint32 { return h.onNIC }

// OnHost is how many other flows are known.
func (h *Host) OnHost() uint32 { return h.onHost }

// NICLoad is the load that the NIC's last echo told.
func (h *Host) NICLoad() Load { return h.nic }

// Stale counts echoes that were out of date.
func (h *Host) Stale() uint64 { return h.stale }

// Live says whether the host's copy of a flow is the one that packets are served
// on.
func (h *Host) Live(flow uint32) bool {
	p := h.phase[flow]
	return p == Serving || p == Adopting || p == Offering
}

// Pending says whether a command for a flow waits for its echo.
func (h *Host) Pending(flow uint32) bool { return h.phase[flow] > Remote }

// Install tells the host of a flow, as if it had been placed long ago: on the
// NIC, with NIC.Install, or on the host with its data.
func (h *Host) Install(entry uint32, onNIC bool, value uint64) {
	f := h.o.Flow(entry)
	h.count(f, -1)
	h.phase[f] = Serving
	if onNIC {
		h.phase[f] = Remote
	}
	h.count(f, 1)
	for e := h.o.first(entry); e < h.o.first(entry)+h.o.width(); e++ {
		h.value[e] = value
	}
}

// count adds by to the number of flows on the side where a flow is.
func (h *Host) count(flow uint32, by int) {
	switch h.phase[flow] {
	case Unknown:
	case Serving, Adopting:
		h.onHost += uint32(by)
	default:
		h.onNIC += uint32(by)
	}
}

// enter changes a flow's phase and keeps count.
func (h *Host) enter(flow uint32, p Phase) {
	h.count(flow, -1)
	h.phase[flow] = p
	h.count(flow, 1)
	h.tries[flow] = 0
}

// start begins a migration of a flow.
func (h *Host) start(flow uint32, p Phase) Message {
	h.epoch[flow]++
	h.enter(flow, p)
	m, _ := h.Repeat(flow)
	return m
}

// Repeat returns the command that a flow waits for the echo of. ok is false if
// there is none.
func (h *Host) Repeat(flow uint32) (m Message, ok bool) {
	m = Message{Entry: flow * h.o.width(), Epoch: h.epoch[flow]}
	switch h.phase[flow] {
	case Evicting:
		m.Op = OpToCPU
	case Adopting, Evicted:
		m.Op = OpEvict
	case Offering:
		m.Op = OpToNIC
	case Handing, Offloading:
		m.Op = OpOffload
		copy(m.Value[:], h.value[m.Entry:m.Entry+h.o.width()])
	default:
		return Message{}, false
	}
	return m, true
}

// Packet decides about a packet from the NIC. If send is true, m must be sent
// to the NIC, ahead of the packet.
func (h *Host) Packet(entry uint32, tag Tag) (v Verdict, m Message, send bool) {
	f := h.o.Flow(entry)
	reserved := tag == TagInit || tag == TagToNIC // on the NIC room is kept for the flow
	switch p := h.phase[f]; {
	case p == Unknown && tag == TagInit && h.takes(f):
		m, send = h.start(f, Handing), true
	case (p == Unknown || p == Serving) && reserved: // the host's: the NIC need keep no room
		m, send = h.start(f, Adopting), true
	case p == Unknown:
		h.enter(f, Serving)
	case p == Adopting && reserved, p == Handing, p == Offloading:
		if h.tries[f]++; h.tries[f] == h.o.RepeatEvery {
			h.tries[f] = 0
			h.Repeats++
			m, send = h.Repeat(f)
		}
	}
	switch {
	case h.Live(f):
		h.value[entry]++
		return HostServes, m, send
	case h.phase[f] == Evicting, h.phase[f] == Evicted:
		return HostHolds, m, send
	}
	return HostBounces, m, send
}

// takes says whether a new flow is for the NIC.
func (h *Host) takes(flow uint32) bool {
	return (h.onNIC+1)*h.o.width() <= h.o.Entries && float64(mix(flow, 0)) < h.o.NewOnNIC*(1<<32)
}

// Served counts packets that the host served at once: emulations without single
// packets use it in place of Packet for flows whose copy is live.
func (h *Host) Served(entry uint32, packets uint64) { h.value[entry] += packets }

// Release serves a packet that was held, after Control said so.
func (h *Host) Release(entry uint32) { h.value[entry]++ }

// Control takes an echo. If send is true, reply must be sent to the NIC. If
// release is true, the packets held of the flow must be served now, by Release,
// in their order. Echoes out of date change nothing.
func (h *Host) Control(m Message) (reply Message, send, release bool) {
	h.nic = m.Flag
	if m.Op == OpMonitor || m.Op == OpFlag {
		return Message{}, false, false
	}
	f := h.o.Flow(m.Entry)
	p := h.phase[f]
	if m.Epoch == h.epoch[f] {
		switch {
		case p == Evicting && m.Op == OpToCPU:
			h.enter(f, Evicted)
			reply, send = h.Repeat(f)
			return reply, send, false
		case p == Evicted && m.Op == OpEvict:
			copy(h.value[m.Entry:m.Entry+h.o.width()], m.Value[:])
			h.enter(f, Serving)
			return Message{}, false, true
		case p == Adopting && m.Op == OpEvict, p == Offering && m.Op == OpToNIC && m.Failed:
			h.enter(f, Serving)
			return Message{}, false, false
		case p == Offering && m.Op == OpToNIC:
			h.enter(f, Offloading)
			reply, send = h.Repeat(f)
			return reply, send, false
		case (p == Handing || p == Offloading) && m.Op == OpOffload:
			h.enter(f, Remote)
			return Message{}, false, false
		case p == Serving && m.Op == OpToNIC && !m.Failed:
			return h.start(f, Adopting), true, false // made room after it had said that it cannot
		}
	}
	h.stale++
	return Message{}, false, false
}

// Evict starts to move a flow to the host. ok is false if it is not on the NIC.
func (h *Host) Evict(flow uint32) (m Message, ok bool) {
	if h.phase[flow] != Remote {
		return Message{}, false
	}
	return h.start(flow, Evicting), true
}

// Offload starts to move a flow to the NIC. ok is false if it is not on the host.
func (h *Host) Offload(flow uint32) (m Message, ok bool) {
	if h.phase[flow] != Serving {
		return Message{}, false
	}
	return h.start(flow, Offering), true
}

// SetEntries changes how many entries the NIC may hold data of.
func (h *Host) SetEntries(entries uint32) { h.o.Entries = entries }
