package host

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"nicprof/program"
)

//go:noescape
func readAVX2(base unsafe.Pointer, at *offsets, k, bytes int, v uint64) uint64

//go:noescape
func writeAVX2(base unsafe.Pointer, at *offsets, k, bytes int, v uint64) uint64

//go:noescape
func readAVX512(base unsafe.Pointer, at *offsets, k, bytes int, v uint64) uint64

//go:noescape
func writeAVX512(base unsafe.Pointer, at *offsets, k, bytes int, v uint64) uint64

// vectorAccessor returns the widest accessor that this processor has for 64, 96 and
// 128 B, or nil.
func vectorAccessor(op program.Op, bytes int) (accessor, string) {
	avx512 := cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && bytes%64 == 0
	switch {
	case bytes < 64 || bytes%32 != 0 || !cpu.X86.HasAVX2:
		return nil, ""
	case avx512 && op == program.Read:
		return sized(readAVX512, bytes), "AVX-512"
	case avx512:
		return sized(writeAVX512, bytes), "AVX-512"
	case op == program.Read:
		return sized(readAVX2, bytes), "AVX2"
	}
	return sized(writeAVX2, bytes), "AVX2"
}
