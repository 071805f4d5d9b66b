package kernel

import "unsafe"

// processorStreams returns the kernels in assembly; every arm64 has NEON.
func processorStreams() []Stream {
	return []Stream{{Read, NEON, readNEON}, {Write, NEON, writeNEON}, {Copy, NEON, copyNEON}, {Triad, NEON, triadNEON}}
}

//go:noescape
func readNEON(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func writeNEON(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func copyNEON(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func triadNEON(a, b, c unsafe.Pointer, n int64) uint64
