package emu

import "nicprof/sim"

// StationKinds is the first kind of events that the owner of a Station may give
// its own: the kinds below are the station's.
const StationKinds = 16

// Station is an emulated board as a part of a larger emulation, on whose kernel
// it runs. It is given packets and gives them back; which of its programs a
// packet runs is decided when a core or context takes it.
type Station interface {
	// Offer gives the board a packet, from the wire or from the host. It is false
	// where the packet finds no room and is dropped.
	Offer(packet int64, flow int64, bytes float64, from Port) bool

	// Handle takes an event of a kind below StationKinds.
	Handle(sim.Event)

	// Waiting is the packets that wait for a core or context.
	Waiting() int

	// Threads is the cores or contexts that packets run on.
	Threads() int
}

// Port is where a packet comes from.
type Port uint8

// Ports of a board.
const (
	Wire Port = iota
	FromHost
)

// StationOwner drives a Station.
type StationOwner interface {
	// Begin is called when a thread takes a packet, after it has waited idle for a
	// while. It returns which program the packet runs.
	Begin(packet int64, thread int, idle sim.Time) (program int)

	// Done gives a packet back. Packets of one flow come in the order in which
	// they began.
	Done(packet int64)
}
