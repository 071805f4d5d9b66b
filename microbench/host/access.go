package host

import (
	"sync/atomic"
	"unsafe"

	"nicprof/program"
)

// An accessor does one operation on k elements of an array and returns a value
// that depends on all that it read, or on what it was given: nothing of it can
// be left out. Reads add what they find to v, writes store v, additions add 1.
type accessor func(base unsafe.Pointer, at *offsets, k int, v uint64) uint64

// accessorOf returns the accessor of an access and the class of its instructions:
// scalar ones where Go compiles to what C does, vectors of 64, 96 and 128 B. An
// atomic access is a command of 8 B after another, with one of 4 B at the end.
// An atomic read or write of the amd64 is a plain load and an exchange, an
// addition a locked one.
func accessorOf(op program.Op, mode program.Mode, bytes int) (accessor, string) {
	if mode == program.Atomic {
		return atomicAccessor(op, bytes), "atomic"
	}
	if k, class := vectorAccessor(op, bytes); k != nil {
		return k, class
	}
	return plainAccessor(op, bytes), "scalar"
}

// plainAccessor moves an element in blocks of 32 B and the rest in halves of it,
// as a compiler does that knows the size: a loop over its words would take several
// times as long as one over its elements.
func plainAccessor(op program.Op, bytes int) accessor {
	blocks, rest := bytes/32, bytes%32
	switch {
	case op == program.Read && bytes == 4:
		return read4
	case op == program.Read && bytes == 8:
		return read8
	case op == program.Read && bytes == 16:
		return read16
	case op == program.Read && bytes == 32:
		return read32
	case op == program.Read:
		return func(base unsafe.Pointer, at *offsets, k int, v uint64) uint64 {
			return readBlocks(base, at, k, blocks, rest, v)
		}
	case bytes == 4:
		return write4
	case bytes == 8:
		return write8
	case bytes == 16:
		return write16
	case bytes == 32:
		return write32
	}
	return func(base unsafe.Pointer, at *offsets, k int, v uint64) uint64 {
		return writeBlocks(base, at, k, blocks, rest, v)
	}
}

func readBlocks(base unsafe.Pointer, at *offsets, k, blocks, rest int, v uint64) uint64 {
	for _, o := range at[:k] {
		p := unsafe.Add(base, o)
		for range blocks {
			w := (*[4]uint64)(p)
			v += w[0] + w[1] + w[2] + w[3]
			p = unsafe.Add(p, 32)
		}
		if rest&16 != 0 {
			w := (*[2]uint64)(p)
			v += w[0] + w[1]
			p = unsafe.Add(p, 16)
		}
		if rest&8 != 0 {
			v += *(*uint64)(p)
			p = unsafe.Add(p, 8)
		}
		if rest&4 != 0 {
			v += uint64(*(*uint32)(p))
		}
	}
	return v
}

func writeBlocks(base unsafe.Pointer, at *offsets, k, blocks, rest int, v uint64) uint64 {
	for _, o := range at[:k] {
		p := unsafe.Add(base, o)
		for range blocks {
			w := (*[4]uint64)(p)
			w[0], w[1], w[2], w[3] = v, v, v, v
			p = unsafe.Add(p, 32)
		}
		if rest&16 != 0 {
			w := (*[2]uint64)(p)
			w[0], w[1] = v, v
			p = unsafe.Add(p, 16)
		}
		if rest&8 != 0 {
			*(*uint64)(p) = v
			p = unsafe.Add(p, 8)
		}
		if rest&4 != 0 {
			*(*uint32)(p) = uint32(v)
		}
	}
	return v
}

func read4(base unsafe.Pointer, at *offsets, k int, v uint64) uint64 {
	for _, o := range at[:k] {
		v += uint64(*(*uint32)(unsafe.Add(base, o)))
	}
	return v
}

func read8(base unsafe.Pointer, at *offsets, k int, v uint64) uint64 {
	for _, o := range at[:k] {
		v += *(*uint64)(unsafe.Add(base, o))
	}
	return v
}

func read16(base unsafe.Pointer, at *offsets, k int, v uint64) uint64 {
	for _, o := range at[:k] {
		p := (*[2]uint64)(unsafe.Add(base, o))
		v += p[0] + p[1]
	}
	return v
}

func read32(base unsafe.Pointer, at *offsets, k int, v uint64) uint64 {
	for _, o := range at[:k] {
		p := (*[4]uint64)(unsafe.Add(base, o))
		v += p[0] + p[1] + p[2] + p[3]
	}
	return v
}

func write4(base unsafe.Pointer, at *offsets, k int, v uint64) uint64 {
	for _, o := range at[:k] {
		*(*uint32)(unsafe.Add(base, o)) = uint32(v)
	}
	return v
}

func write8(base unsafe.Pointer, at *offsets, k int, v uint64) uint64 {
	for _, o := range at[:k] {
		*(*uint64)(unsafe.Add(base, o)) = v
	}
	return v
}

func write16(base unsafe.Pointer, at *offsets, k int, v uint64) uint64 {
	for _, o := range at[:k] {
		p := (*[2]uint64)(unsafe.Add(base, o))
		p[0], p[1] = v, v
	}
	return v
}

func write32(base unsafe.Pointer, at *offsets, k int, v uint64) uint64 {
	for _, o := range at[:k] {
		p := (*[4]uint64)(unsafe.Add(base, o))
		p[0], p[1], p[2], p[3] = v, v, v, v
	}
	return v
}

func atomicAccessor(op program.Op, bytes int) accessor {
	words, half := bytes/8, bytes%8 != 0
	switch op {
	case program.Read:
		return func(base unsafe.Pointer, at *offsets, k int, v uint64) uint64 {
			for _, o := range at[:k] {
				p := unsafe.Add(base, o)
				for range words {
					v += atomic.LoadUint64((*uint64)(p))
					p = unsafe.Add(p, 8)
				}
				if half {
					v += uint64(atomic.LoadUint32((*uint32)(p)))
				}
			}
			return v
		}
	case program.Write:
		return func(base unsafe.Pointer, at *offsets, k int, v uint64) uint64 {
			for _, o := range at[:k] {
				p := unsafe.Add(base, o)
				for range words {
					atomic.StoreUint64((*uint64)(p), v)
					p = unsafe.Add(p, 8)
				}
				if half {
					atomic.StoreUint32((*uint32)(p), uint32(v))
				}
			}
			return v
		}
	}
	return func(base unsafe.Pointer, at *offsets, k int, v uint64) uint64 {
		for _, o := range at[:k] {
			p := unsafe.Add(base, o)
			for range words {
				v += atomic.AddUint64((*uint64)(p), 1)
				p = unsafe.Add(p, 8)
			}
			if half {
				v += uint64(atomic.AddUint32((*uint32)(p), 1))
			}
		}
		return v
	}
}
