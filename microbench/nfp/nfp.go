// Package nfp drives boards of class nfp: emulated, and natively a Netronome
// card in this machine.
package nfp

import (
	"os"

	"nicprof/board"
	emu "nicprof/emu/nfp"
	"nicprof/microbench"
	"nicprof/microbench/emulated"
)

func init() { microbench.Register("nfp", New) }

// New returns the driver of a board: the emulator, or a card in this machine
// that the vendor's tools drive.
func New(b *board.Board, backend string) (microbench.Driver, error) {
	if backend == microbench.Native {
		return openNative(b, os.Getenv)
	}
	return emulated.New(b, emu.Run, "contexts"), nil
}
