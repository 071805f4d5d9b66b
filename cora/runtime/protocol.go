// Package runtime is Cora's runtime as functions without time, queues or cores:
// what the NIC and the host decide about a packet, how a flow's entry moves
// between them in three steps, how load is judged and which flow moves next.
// Emulations put queues and time around it; the exploration in
// cora/runtime/explore puts every possible order of events around it.
//
// What the functions need from whoever calls them, and docs/runtime.md explains:
//
//   - Packets and echoes of one flow leave the NIC in the order in which their
//     lookups happened (an NFP's reorder block does this), and travel to the host
//     in one queue; what returns travels to the NIC in one queue. A control
//     message may be lost, arrive twice or late, but may not overtake packets.
//   - The host takes a flow's packets and echoes from one queue, one at a time.
//
// Nothing allocates once a NIC, a Host and a Controller have been made. None of
// them is safe for concurrent use.
package runtime

import (
	"math"

	"nicprof/internal/fault"
)

// State is an entry's state on the NIC.
type State uint8

// States. A packet whose entry is Valid is served on the NIC; in every other
// state it goes to the host.
const (
	Absent  State = iota // no entry, not even its key
	Invalid              // the host has it; the key stays, so that it is known
	Valid                // the NIC has it
	ToCPU                // frozen, about to move to the host
	ToNIC                // reserved, about to move to the NIC
	Initial              // a new flow that the host has not placed yet
)

func (s State) String() string {
	return [...]string{"absent", "invalid", "valid", "to_cpu", "to_nic", "initial"}[s]
}

// holds says whether an entry in this state takes room for its data.
func (s State) holds() bool { return s >= Valid }

// Op is what a control message asks for. The NIC sends each message that it
// obeys back to the host, behind the packets that it sent before: its echo.
type Op uint8

// Operations.
const (
	OpToCPU   Op = iota // eviction, first step: freeze the entry
	OpEvict             // eviction, second step: give up the entry; also the host's no to a new flow
	OpToNIC             // offload, first step: make room
	OpOffload           // offload, second step: take the entry; also the host's yes to a new flow
	OpMonitor           // heartbeat: asks for a reading of idle time
	OpFlag              // tells the NIC how loaded it is; it repeats this with every echo
)

func (o Op) String() string {
	return [...]string{"TO_CPU", "EVICT", "TO_NIC", "OFFLOAD", "MONITOR", "FLAG"}[o]
}

// Load is how loaded the NIC is.
type Load uint8

// Loads.
const (
	Stable Load = iota
	Overload
	Available
)

func (l Load) String() string { return [...]string{"stable", "overload", "available"}[l] }

// Message is a control message, and its echo.
type Message struct {
	Op     Op
	Failed bool      // echo of OpToNIC: there is no room, or the write failed
	Flag   Load      // with OpFlag what the NIC is told, with any echo what it was told last
	Epoch  uint16    // number of the flow's migration
	Entry  uint32    // of a pair the even one
	Value  [2]uint64 // data of the entry, and of a pair's other: with OpOffload and with the echo of OpEvict
}

// Tag says with what the NIC marks a packet for the host.
type Tag uint8

// Tags. Plain packets are the host's; they carry idle time and a candidate.
const (
	TagPlain Tag = iota
	TagToCPU
	TagToNIC
	TagInit
)

func (t Tag) String() string { return [...]string{"plain", "to_cpu", "to_nic", "init"}[t] }

// Options of the runtime; Defaults has the sources of the numbers.
type Options struct {
	Entries uint32 // entries that the NIC may hold data of
	Slots   uint32 // keys that the NIC's table may hold, those of the host's entries included
	Pairs   bool   // entries 2k and 2k+1 are a flow's two directions and move together
	Groups  uint32 // load counters; flow f counts in f mod Groups

	NewOnNIC    float64 // share of new flows for the NIC, while it has room
	RepeatEvery uint8   // packets of an unacknowledged flow after which its command is sent again

	IntervalUS  float64 // of the monitor
	Window      int     // intervals that are averaged
	OverloadUS  float64 // mean idle time below which the NIC is overloaded
	AvailableUS float64 // and above which it has room for more
	// If IdleThreads is not {0, 0} the two thresholds are these numbers of idle
	// threads, divided by the rate at which the NIC takes packets.
	IdleThreads [2]float64
	Heartbeats  float64 // a second
	FlagRepeats int     // messages that tell of a change of load

	HostFlows    uint32    // flows on the host at which an overloaded NIC evicts no more
	PauseUS      float64   // after each migration while the NIC is not overloaded
	ScanUS       float64   // to look at one flow when one is chosen
	RetransmitUS float64   // without an echo, after which a command is sent again
	Selection    Selection // which flow moves
}

// Selection is the order in which flows move.
type Selection uint8

// Selections.
const (
	ByWeight Selection = iota // heavy ones off an overloaded NIC, small ones to make room, heavy ones back
	AtRandom
)

// ControlBytes is the size of a control message on PCIe: the authors' release
// sends 96 bytes.
const ControlBytes = 96

// Defaults returns options with the constants of the authors' open release where
// it has them. docs/runtime.md lists each with its source.
func Defaults() Options {
	return Options{
		Entries: 700_000, Slots: 1 << 24, Groups: 4096,
		NewOnNIC: 1, RepeatEvery: 5,
		IntervalUS: 1e6, Window: 3, OverloadUS: 5.6, AvailableUS: 5.7, Heartbeats: 10, FlagRepeats: 5,
		HostFlows: 450_000, PauseUS: 20, ScanUS: 0.01, RetransmitUS: 1000,
	}
}

// Check reports what is wrong with options.
func (o Options) Check() error {
	switch {
	case o.Groups == 0:
		return fault.Inputf("runtime: 0 load counters; expected 1 or more")
	case o.Slots < o.Entries:
		return fault.Inputf("runtime: %d slots for %d entries; expected no fewer slots than entries", o.Slots, o.Entries)
	case !(o.NewOnNIC >= 0 && o.NewOnNIC <= 1):
		return fault.Inputf("runtime: %v of new flows for the NIC; expected 0 to 1", o.NewOnNIC)
	case o.RepeatEvery == 0 || o.FlagRepeats < 1 || o.Window < 1:
		return fault.Inputf("runtime: commands repeated every %d packets, flags %d times, window %d; expected 1 or more", o.RepeatEvery, o.FlagRepeats, o.Window)
	case !(o.OverloadUS <= o.AvailableUS) || !(o.IdleThreads[0] <= o.IdleThreads[1]):
		return fault.Inputf("runtime: overloaded below %v µs or %v threads, available above %v µs or %v; expected the first no greater than the second",
			o.OverloadUS, o.IdleThreads[0], o.AvailableUS, o.IdleThreads[1])
	}
	for _, v := range []struct {
		name  string
		value float64
		least float64
	}{
		{"interval", o.IntervalUS, 1e-3}, {"overload threshold", o.OverloadUS, 0}, {"idle threads", o.IdleThreads[0], 0},
		{"heartbeats", o.Heartbeats, 0}, {"pause", o.PauseUS, 0}, {"scan time", o.ScanUS, 0}, {"retransmission", o.RetransmitUS, 1e-3},
	} {
		if !(v.value >= v.least) || math.IsInf(v.value, 0) {
			return fault.Inputf("runtime: %s %v; expected a number of at least %v", v.name, v.value, v.least)
		}
	}
	return nil
}

// width is how many entries a flow has.
func (o *Options) width() uint32 {
	if o.Pairs {
		return 2
	}
	return 1
}

// Flow is the flow of an entry.
func (o *Options) Flow(entry uint32) uint32 { return entry / o.width() }

// first is the entry that stands for a flow in messages.
func (o *Options) first(entry uint32) uint32 { return entry - entry%o.width() }

// after says whether epoch a comes after b. Epochs wrap around; a message that
// is late by 2^15 migrations of its flow would be taken for a new one.
func after(a, b uint16) bool { return int16(a-b) > 0 }
