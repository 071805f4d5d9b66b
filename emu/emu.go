// Package emu says what the emulators of boards take and give. Each emulator is
// a package below it: a mechanism of one class of boards.
package emu

import (
	"context"

	"nicprof/board"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// Run emulates a program under traffic on a board. The program must have been
// resolved against the board and have passed its check.
type Run func(context.Context, *board.Board, program.Program, traffic.Traffic, Config) (*Result, error)

// Config of one run.
type Config struct {
	Cores   int    // 0: the base's
	Threads int    // contexts a core, 0: the base's
	Seed    uint64 // of every stream
	Packets int    // measured packets, 0: 3000 or the emulator's choice, or 24000 at an offered rate
	Batch   int    // packets a batch, 0: a sixtieth of them
	Length  int    // multiplies Packets and the warm-up, 0: 1
	Profile bool   // account time by path
}

// Result of one run. Times are simulated.
type Result struct {
	Packets     int64
	Duration    sim.Time   // of the measured packets
	Batches     []sim.Time // time of each batch of Batch packets, in order
	Batch       int
	Offered     int64      // packets that arrived while measuring (rate > 0)
	Dropped     int64      // of them, dropped at ingress
	Latency     []sim.Time // of each measured packet
	Utilisation []Use      // by resource, in a fixed order
	Stacks      []Stack    // with Config.Profile
	Outage      sim.Time   // of a program whose region is configured: nothing was served for so long
}

// Use is the utilisation of a resource, 0..1.
type Use struct {
	Resource string
	Value    float64
}

// Stack is a path with its busy and waiting time over the measured packets.
type Stack struct {
	Frames     []string
	Visits     int64
	Busy, Wait sim.Time
}

// Mpps returns the throughput over the batches.
func (r *Result) Mpps() float64 {
	var total sim.Time
	for _, d := range r.Batches {
		total += d
	}
	return float64(r.Batch*len(r.Batches)) / (float64(total) / float64(sim.Microsecond))
}
