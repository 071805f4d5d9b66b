package host

import (
	"unsafe"

	"nicprof/program"
)

//go:noescape
func readNEON(base unsafe.Pointer, at *offsets, k, bytes int, v uint64) uint64

//go:noescape
func writeNEON(base unsafe.Pointer, at *offsets, k, bytes int, v uint64) uint64

// vectorAccessor returns the accessor for 64 and 128 B, or nil. Every arm64 that
// runs Linux has NEON.
func vectorAccessor(op program.Op, bytes int) (accessor, string) {
	switch {
	case bytes%64 != 0:
		return nil, ""
	case op == program.Read:
		return sized(readNEON, bytes), "NEON"
	}
	return sized(writeNEON, bytes), "NEON"
}
