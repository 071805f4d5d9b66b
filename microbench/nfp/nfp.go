// Package nfp drives boards of class nfp.
package nfp

import (
	"nicprof/board"
	emu "nicprof/emu/nfp"
	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/microbench/emulated"
)

func init() { microbench.Register("nfp", New) }

// New returns the driver of a board. Only the emulated backend exists: a card
// is driven by its vendor's firmware and SDK.
func New(b *board.Board, backend string) (microbench.Driver, error) {
	if backend != microbench.Emulated {
		return nil, fault.Missingf("board %s: backend %s is not available: it needs a card with the vendor's SDK and a profiling firmware; use --backend emulated", b.Name, backend)
	}
	return emulated.New(b, emu.Run, "contexts"), nil
}
