// Package linux is the one place that asks the operating system about threads,
// processors, pages and clocks: affinity, thread CPU time, page faults, memory
// by mmap with the page size that it really got, limits of a sandbox. Only
// Linux is served; elsewhere every call that can fail returns a missing fault.
package linux

import (
	"time"
	"unsafe"
)

// Pages is a choice of page size.
type Pages int

// Page sizes to ask for.
const (
	SmallPages Pages = iota // the base page, no huge page even where the system would give one
	HugePages               // huge pages where there are any, small ones otherwise
)

// Faults counts the page faults of a thread: Minor ones needed no disk.
type Faults struct{ Minor, Major int64 }

// Sub returns the faults since an earlier count.
func (f Faults) Sub(earlier Faults) Faults {
	return Faults{f.Minor - earlier.Minor, f.Major - earlier.Major}
}

// Any says whether there was a fault.
func (f Faults) Any() bool { return f.Minor != 0 || f.Major != 0 }

// Usage is what a thread has used since it began. CPU is its time on a
// processor. Waited is the time that it was runnable and not running, as far as
// the kernel keeps it (Scheduled false: it does not).
type Usage struct {
	CPU       time.Duration
	Faults    Faults
	Waited    time.Duration
	Scheduled bool
}

// Region is anonymous memory outside the Go heap, readable and writable. Its
// pages do not exist until they are touched.
type Region struct {
	whole []byte // the mapping
	base  unsafe.Pointer
	size  int64
	want  Pages
}

// Base is the address of the first byte, on a boundary of the huge page size.
func (r *Region) Base() unsafe.Pointer { return r.base }

// Size is the number of bytes.
func (r *Region) Size() int64 { return r.size }

// Bytes is the region as a slice.
func (r *Region) Bytes() []byte { return unsafe.Slice((*byte)(r.base), r.size) }

// Touch writes to every small page from byte from up to byte to, so that the
// pages exist, near the calling thread. Reading would map the zero page.
func (r *Region) Touch(from, to int64) {
	const page = 4096
	for at := from &^ (page - 1); at < min(to, r.size); at += page {
		*(*byte)(unsafe.Add(r.base, at)) = 1
	}
}

// Got says which pages a region has.
type Got struct {
	Page int64 // bytes of a small page
	Huge int64 // bytes of a huge page, 0 unknown
	// HugeBytes of the region are on huge pages.
	HugeBytes int64
	// Resident bytes exist.
	Resident int64
}

// Memory says how much memory a process may still take.
type Memory struct {
	Bytes int64
	From  string // what sets the limit: MemAvailable, a control group
}
