// Package bluefield drives boards of class soc: SmartNICs whose general-purpose
// cores run each packet to completion. Emulated they are package emu/bluefield;
// natively, on the card's own Arm side, they are a Linux machine like any other,
// which package host measures.
package bluefield

import (
	"os"
	"runtime"

	"nicprof/board"
	emu "nicprof/emu/bluefield"
	"nicprof/microbench"
	"nicprof/microbench/bluefield/counters"
	"nicprof/microbench/emulated"
	"nicprof/microbench/host"
)

func init() { microbench.Register("soc", New) }

// New returns the driver of a board. The native backend exists on the card's Arm
// side only; elsewhere its error is a missing one.
func New(b *board.Board, backend string) (microbench.Driver, error) {
	if backend == microbench.Emulated {
		return emulated.New(b, emu.Run, "latency"), nil
	}
	if err := here(b, os.DirFS("/"), runtime.GOARCH); err != nil {
		return nil, err
	}
	d, err := host.New(b, backend)
	if err != nil {
		return nil, err
	}
	return joinPorts(counters.Join(d, "/"), os.Getenv(PortsVariable)), nil
}
