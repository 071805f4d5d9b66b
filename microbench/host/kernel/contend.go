package kernel

import (
	"sync"
	"sync/atomic"
)

// Line is the distance that keeps two words from sharing a cache line or the
// pair of lines that some prefetchers fetch together, in bytes.
const Line = 128

// Counter is an 8-byte word alone in its cache lines.
type Counter struct {
	_ [Line - 8]byte
	N uint64
	_ [Line]byte
}

// FetchAdd adds 1 to a word n times, atomically and using each result as the
// hardware returns it, and returns the sum of the values found.
//
// It does four a step: an atomic instruction waits for all before it, so that
// the loop's own three or four instructions count, and C's are one fewer.
func FetchAdd(word *uint64, n int64) (sum uint64) {
	for ; n >= 4; n -= 4 {
		sum += atomic.AddUint64(word, 1) - 1
		sum += atomic.AddUint64(word, 1) - 1
		sum += atomic.AddUint64(word, 1) - 1
		sum += atomic.AddUint64(word, 1) - 1
	}
	for ; n > 0; n-- {
		sum += atomic.AddUint64(word, 1) - 1
	}
	return sum
}

// Lock is a lock whose hand-over is measured. Every acquisition runs the
// section, which adds 1 to a plain counter: the counter ends at the number of
// acquisitions only if the lock never let two in.
type Lock interface {
	// Name is how the lock waits: spin, ticket or mutex.
	Name() string
	// Sections acquires, adds 1 to *counter and releases n times.
	Sections(counter *uint64, n int64)
}

// Locks returns a new lock of each kind.
func Locks() []Lock { return []Lock{new(Spin), new(Ticket), new(Mutex)} }

// Spin is a test-and-test-and-set lock: waiters poll a copy in their own cache
// with a pause between polls and exchange only when it looks free. Who comes
// first is left to the hardware.
type Spin struct {
	_    [Line - 4]byte
	held uint32
	_    [Line]byte
}

// Name is "spin".
func (*Spin) Name() string { return "spin" }

// Sections acquires, adds 1 to *counter and releases n times. It releases with
// a sequentially consistent store, as all of Go's atomic stores are.
func (l *Spin) Sections(counter *uint64, n int64) {
	for ; n > 0; n-- {
		if atomic.SwapUint32(&l.held, 1) != 0 {
			l.wait()
		}
		*counter++
		atomic.StoreUint32(&l.held, 0)
	}
}

// wait acquires when the lock was held a moment ago.
func (l *Spin) wait() {
	for {
		await(&l.held, 0)
		if atomic.LoadUint32(&l.held) == 0 && atomic.SwapUint32(&l.held, 1) == 0 {
			return
		}
	}
}

// Ticket is a lock that serves in the order of arrival.
type Ticket struct {
	_       [Line - 8]byte
	next    uint32
	serving uint32
	_       [Line]byte
}

// Name is "ticket".
func (*Ticket) Name() string { return "ticket" }

// Sections acquires, adds 1 to *counter and releases n times.
func (l *Ticket) Sections(counter *uint64, n int64) {
	for ; n > 0; n-- {
		if mine := atomic.AddUint32(&l.next, 1) - 1; atomic.LoadUint32(&l.serving) != mine {
			l.wait(mine)
		}
		*counter++
		atomic.StoreUint32(&l.serving, l.serving+1)
	}
}

func (l *Ticket) wait(mine uint32) {
	for atomic.LoadUint32(&l.serving) != mine {
		await(&l.serving, mine)
	}
}

// Mutex is Go's own: it spins for a while, then sleeps.
type Mutex struct {
	_  [Line - 8]byte
	mu sync.Mutex
	_  [Line]byte
}

// Name is "mutex".
func (*Mutex) Name() string { return "mutex" }

// Sections acquires, adds 1 to *counter and releases n times.
func (l *Mutex) Sections(counter *uint64, n int64) {
	for ; n > 0; n-- {
		l.mu.Lock()
		*counter++
		l.mu.Unlock()
	}
}
