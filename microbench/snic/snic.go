// Package snic drives boards of class fpga: SmartNICs whose regions run chains
// of network tasks. None can be bought, and no bitstream is public, so that there
// is the emulated backend only.
package snic

import (
	"nicprof/board"
	emu "nicprof/emu/snic"
	"nicprof/microbench"
	"nicprof/microbench/emulated"
)

func init() { microbench.Register("fpga", New) }

// New returns the driver of a board. Registry.Open refuses the native backend.
func New(b *board.Board, _ string) (microbench.Driver, error) {
	return emulated.New(b, emu.Run, "credits"), nil
}
