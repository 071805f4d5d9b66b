// Package bluefield drives boards of class soc: SmartNICs whose general-purpose
// cores run each packet to completion.
package bluefield

import (
	"nicprof/board"
	emu "nicprof/emu/bluefield"
	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/microbench/emulated"
)

func init() { microbench.Register("soc", New) }

// New returns the driver of a board.
func New(b *board.Board, backend string) (microbench.Driver, error) {
	if backend != microbench.Emulated {
		return nil, fault.Missingf("board %s: backend %s is not available here; use --backend emulated", b.Name, backend)
	}
	return emulated.New(b, emu.Run, "memory latency"), nil
}
