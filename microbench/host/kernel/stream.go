package kernel

import (
	"fmt"
	"unsafe"
)

// Op is what a stream does with its arrays, element by element of 8 bytes.
type Op string

// The operations, with the bytes moved an element as STREAM and likwid-bench
// count them: what the program asks for. A line that a store misses is fetched
// first unless the store is non-temporal; that traffic is not counted.
const (
	Read  Op = "read"  // sum += a[i]: 8 B
	Write Op = "write" // a[i] = 1: 8 B
	Copy  Op = "copy"  // a[i] = b[i]: 16 B
	Triad Op = "triad" // a[i] = b[i] + 3·c[i]: 24 B
)

// Arrays is the number of arrays of an operation; it moves 8 B of each an
// element.
func (o Op) Arrays() int {
	switch o {
	case Copy:
		return 2
	case Triad:
		return 3
	}
	return 1
}

// Class is the kind of instructions that a stream is made of. Bandwidths of
// two programs compare only within a class.
type Class string

const (
	Go       Class = "go"        // plain Go on 8-byte integers (triad: float64), unrolled
	Scalar   Class = "scalar"    // an 8-byte load or store of a vector register for each element; read adds float64
	AVX2     Class = "avx2"      // 32 B
	AVX512   Class = "avx512"    // 64 B
	NTSSE2   Class = "nt-sse2"   // 16 B, non-temporal stores
	NTAVX2   Class = "nt-avx2"   // 32 B, non-temporal stores
	NTAVX512 Class = "nt-avx512" // 64 B, non-temporal stores
	NEON     Class = "neon"      // four registers of 16 B an instruction
)

const (
	one        float64 = 1 // what write stores
	triadScale float64 = 3 // what triad multiplies by
)

// Block is what the length of a stream's arrays must be a multiple of, in
// bytes: no kernel takes longer steps.
const Block = 256

// streamFunc is a kernel: one lap over n bytes of each of up to three arrays. It
// returns the sum of all words read if it reads, else 0: modulo 2⁶⁴, or in class
// Scalar the bits of their sum as float64.
type streamFunc func(a, b, c unsafe.Pointer, n int64) uint64

// Stream is a streaming kernel.
type Stream struct {
	Op    Op
	Class Class
	run   streamFunc
}

// Name is "read/avx2".
func (s Stream) Name() string { return string(s.Op) + "/" + string(s.Class) }

// Streams returns the kernels that this processor can run, plain Go first.
func Streams() []Stream {
	return append([]Stream{
		{Read, Go, readGo}, {Write, Go, writeGo}, {Copy, Go, copyGo}, {Triad, Go, triadGo},
	}, processorStreams()...)
}

// Find returns the kernel of an operation and class; false if this processor
// has none.
func Find(op Op, class Class) (Stream, bool) {
	for _, s := range Streams() {
		if s.Op == op && s.Class == class {
			return s, true
		}
	}
	return Stream{}, false
}

// Run goes reps times over the arrays (a, b and c of the operation), all of one
// length, a multiple of Block, aligned to 64 B and apart from each other. Each lap is
// a call of the kernel, as in likwid-bench: in small arrays it shows. Run
// returns the sum of the kernel's results (see streamFunc), modulo 2⁶⁴, and the
// bytes moved.
func (s Stream) Run(reps int64, arrays ...[]byte) (sum uint64, moved int64, err error) {
	if len(arrays) != s.Op.Arrays() {
		return 0, 0, fmt.Errorf("%s of %d arrays: want %d", s.Op, len(arrays), s.Op.Arrays())
	}
	if reps < 0 {
		return 0, 0, fmt.Errorf("%d laps: want 0 or more", reps)
	}
	n := len(arrays[0])
	var p [3]unsafe.Pointer
	for i, a := range arrays {
		switch {
		case len(a) != n || n%Block != 0:
			return 0, 0, fmt.Errorf("an array of %d B: want equal lengths, a multiple of %d B", len(a), Block)
		case uintptr(unsafe.Pointer(unsafe.SliceData(a)))%64 != 0:
			return 0, 0, fmt.Errorf("an array at %p: want it aligned to 64 B", unsafe.SliceData(a))
		}
		p[i] = unsafe.Pointer(unsafe.SliceData(a))
	}
	if n == 0 {
		return 0, 0, nil
	}
	for range reps {
		sum += s.run(p[0], p[1], p[2], int64(n))
	}
	return sum, reps * int64(n) * int64(len(arrays)), nil
}

// words returns n bytes at p as 8-byte elements.
func words[T uint64 | float64](p unsafe.Pointer, n int64) []T { return unsafe.Slice((*T)(p), n/8) }

func readGo(a, _, _ unsafe.Pointer, n int64) uint64 {
	var s0, s1, s2, s3 uint64
	for w := words[uint64](a, n); len(w) >= 8; w = w[8:] {
		s0 += w[0]
		s1 += w[1]
		s2 += w[2]
		s3 += w[3]
		s0 += w[4]
		s1 += w[5]
		s2 += w[6]
		s3 += w[7]
	}
	return s0 + s1 + s2 + s3
}

func writeGo(a, _, _ unsafe.Pointer, n int64) uint64 {
	for w := words[float64](a, n); len(w) >= 8; w = w[8:] {
		w[0] = one
		w[1] = one
		w[2] = one
		w[3] = one
		w[4] = one
		w[5] = one
		w[6] = one
		w[7] = one
	}
	return 0
}

func copyGo(a, b, _ unsafe.Pointer, n int64) uint64 {
	from := words[uint64](b, n)
	for to := words[uint64](a, n); len(to) >= 4 && len(from) >= 4; to, from = to[4:], from[4:] {
		w0, w1, w2, w3 := from[0], from[1], from[2], from[3]
		to[0], to[1], to[2], to[3] = w0, w1, w2, w3
	}
	return 0
}

func triadGo(a, b, c unsafe.Pointer, n int64) uint64 {
	x, y := words[float64](b, n), words[float64](c, n)
	for to := words[float64](a, n); len(to) >= 4 && len(x) >= 4 && len(y) >= 4; to, x, y = to[4:], x[4:], y[4:] {
		to[0] = x[0] + triadScale*y[0]
		to[1] = x[1] + triadScale*y[1]
		to[2] = x[2] + triadScale*y[2]
		to[3] = x[3] + triadScale*y[3]
	}
	return 0
}
