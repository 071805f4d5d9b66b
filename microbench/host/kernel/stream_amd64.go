package kernel

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// processorStreams returns the kernels in assembly that this processor runs.
func processorStreams() []Stream {
	streams := []Stream{
		{Read, Scalar, readScalar}, {Write, Scalar, writeScalar}, {Copy, Scalar, copyScalar}, {Triad, Scalar, triadScalar},
		{Write, NTSSE2, writeNTSSE2},
	}
	if cpu.X86.HasAVX2 {
		streams = append(streams,
			Stream{Read, AVX2, readAVX2}, Stream{Write, AVX2, writeAVX2}, Stream{Copy, AVX2, copyAVX2}, Stream{Triad, AVX2, triadAVX2},
			Stream{Write, NTAVX2, writeNTAVX2}, Stream{Copy, NTAVX2, copyNTAVX2})
	}
	if cpu.X86.HasAVX512F {
		streams = append(streams,
			Stream{Read, AVX512, readAVX512}, Stream{Write, AVX512, writeAVX512}, Stream{Copy, AVX512, copyAVX512}, Stream{Triad, AVX512, triadAVX512},
			Stream{Write, NTAVX512, writeNTAVX512}, Stream{Copy, NTAVX512, copyNTAVX512})
	}
	return streams
}

//go:noescape
func readScalar(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func readAVX2(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func readAVX512(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func writeScalar(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func writeAVX2(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func writeAVX512(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func writeNTSSE2(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func writeNTAVX2(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func writeNTAVX512(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func copyScalar(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func copyAVX2(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func copyAVX512(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func copyNTAVX2(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func copyNTAVX512(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func triadScalar(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func triadAVX2(a, b, c unsafe.Pointer, n int64) uint64

//go:noescape
func triadAVX512(a, b, c unsafe.Pointer, n int64) uint64
