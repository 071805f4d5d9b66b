package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"nicprof/internal/linux"
	"nicprof/microbench/host/kernel"
)

// pinned runs f on a processor and returns how much of its time it did not run.
func pinned(cpu int, f func() error) (lost float64, err error) {
	unpin, err := linux.Pin(cpu)
	if err != nil {
		return 0, err
	}
	defer unpin()
	before := probe(probeTime)
	begin, busy := time.Now(), linux.ThreadCPU()
	err = f()
	busy = linux.ThreadCPU() - busy
	wall := time.Since(begin)
	return max(before, probe(probeTime), lostShare(wall, busy)), err
}

// probeTime is how long a probe before and after each of our readings takes.
const probeTime = 2 * time.Millisecond

// lostShare is the part of wall time that a thread was not busy; the two
// clocks' resolution must not make it negative.
func lostShare(wall, busy time.Duration) float64 {
	if wall <= 0 || busy >= wall {
		return 0
	}
	return 1 - busy.Seconds()/wall.Seconds()
}

// memory returns a region whose pages exist, touched by the processor that is
// going to use it.
func memory(cpu int, bytes int64, pages linux.Pages) (*linux.Region, error) {
	r, err := linux.Map(bytes, pages)
	if err != nil {
		return nil, err
	}
	unpin, err := linux.Pin(cpu)
	if err != nil {
		return nil, err
	}
	defer unpin()
	r.Touch(0, bytes)
	return r, nil
}

// describe says which pages a region got.
func describe(r *linux.Region) string {
	got, err := r.Pages()
	if err != nil {
		return "pages unknown"
	}
	return pageText(got.HugeBytes, r.Size(), got.Page)
}

// pageText says how much of size bytes lies on huge pages.
func pageText(huge, size, page int64) string {
	switch {
	case huge == 0:
		return fmt.Sprintf("%d KiB", page>>10)
	case huge >= size:
		return "huge"
	}
	return fmt.Sprintf("%.0f %% huge", 100*float64(huge)/float64(size))
}

// ourStream measures a streaming kernel: laps over arrays of its own, for d. Bandwidth in GB/s.
func ourStream(s kernel.Stream, each int64, pages linux.Pages, cpu int, d time.Duration) (reading, error) {
	var arrays [][]byte
	var got string
	for range s.Op.Arrays() {
		r, err := memory(cpu, each, pages)
		if err != nil {
			return reading{}, err
		}
		defer r.Close() //nolint:errcheck // the process would end with it anyway
		arrays = append(arrays, r.Bytes())
		fill(r.Bytes())
		got = describe(r)
	}
	var bandwidth float64
	lost, err := pinned(cpu, func() error {
		// A first lap warms; the next ones tell how many to run between two
		// looks at the clock, so that looking costs less than 1 in 1000.
		laps, one := int64(0), time.Duration(0)
		for laps = 1; ; laps *= 2 {
			begin := time.Now()
			if _, _, err := s.Run(laps, arrays...); err != nil {
				return err
			}
			if one = time.Since(begin); laps > 1 && one > 100*time.Microsecond || one > d/4 {
				break
			}
		}
		var moved int64
		kernel.Hold()
		defer kernel.Release()
		begin := time.Now()
		for time.Since(begin) < d {
			_, n, err := s.Run(laps, arrays...)
			if err != nil {
				return err
			}
			moved += n
		}
		bandwidth = float64(moved) / time.Since(begin).Seconds() / 1e9
		return nil
	})
	return reading{bandwidth, lost, got}, err
}

// fill writes 1.0 to all elements, as likwid-bench initialises its vectors.
func fill(mem []byte) {
	elements := unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/8)
	for i := range elements {
		elements[i] = 1
	}
}

// chaser is our side of a pointer chase.
type chaser struct {
	bytes int64
	order kernel.Order
	pages linux.Pages
	cpu   int
	seed  uint64

	region *linux.Region
	at     unsafe.Pointer
	lines  int64
	warm   time.Duration
}

// Sizes of the chase, the same as the C peer's.
const (
	cacheLine = 64
	smallPage = 4096
	chunk     = 32768 // steps between two looks at the clock

	// Most time of the lap that warms: a first lap in new memory, which on a
	// virtual machine is slow for as long as the host finds pages for it, and
	// the lap before each other measurement.
	warmNew   = 5 * time.Second
	warmAgain = 100 * time.Millisecond
)

// place builds a new ring. The old memory is given back only afterwards, so
// that the new pages are others.
func (c *chaser) place() error {
	old := c.region
	r, err := linux.Map(c.bytes, c.pages)
	if err != nil {
		return err
	}
	unpin, err := linux.Pin(c.cpu)
	if err != nil {
		return err
	}
	defer unpin()
	c.seed++
	c.at, c.lines, err = kernel.Ring(r.Bytes(), c.order, cacheLine, smallPage, c.seed)
	c.region, c.warm = r, warmNew
	runtime.GC() // of the permutation, which a long run would collect
	if old != nil {
		return old.Close()
	}
	return err
}

func (c *chaser) close() error {
	if c.region == nil {
		return nil
	}
	return c.region.Close()
}

// measure follows the ring for d after at most a lap of warm-up. It goes on
// from where the last measurement ended, so that no load is idle. Nanoseconds
// a step.
func (c *chaser) measure(d time.Duration) (reading, error) {
	var ns float64
	lost, err := pinned(c.cpu, func() error {
		p := c.at
		kernel.Hold()
		defer kernel.Release()
		begin := time.Now()
		for n := int64(0); n < c.lines && time.Since(begin) < c.warm; n += chunk {
			p = kernel.Chase(p, chunk)
		}
		c.warm = warmAgain
		var steps int64
		var elapsed time.Duration
		begin = time.Now()
		for elapsed < d {
			p = kernel.Chase(p, chunk)
			steps += chunk
			elapsed = time.Since(begin)
		}
		ns, c.at = float64(elapsed.Nanoseconds())/float64(steps), p
		return nil
	})
	return reading{ns, lost, describe(c.region)}, err
}

// Time before and after the window in which the threads of a contention work
// already and still, as in the C peer.
const (
	lead = 2 * time.Millisecond
	tail = time.Millisecond
)

// batch is the number of operations between two looks at the clock, the same as
// the C peer's. While one thread looks, the other has the line for itself, and
// Go's clock takes longer than C's.
const batch = 2048

// worker is what one thread of a contention saw.
type worker struct {
	ops, all    int64         // counted in the window, and done in all
	first, last time.Duration // the counted batches begin and end
	lost        float64
	err         error
}

// rate is operations a second.
func (w worker) rate() float64 {
	if w.ops == 0 {
		return 0
	}
	return float64(w.ops) / (w.last - w.first).Seconds()
}

// together runs batches of work on a thread of each processor at once and
// counts the whole batches within a window of d, before and after which all
// threads work too. Work that never blocks is held on its thread.
func together(cpus []int, d time.Duration, blocks bool, work func(n int64)) []worker {
	base := time.Now()
	var ready, broken atomic.Int64
	var begin atomic.Int64 // of the window, since base; 0 not yet known
	workers := make([]worker, len(cpus))
	done := make(chan int)
	for i, cpu := range cpus {
		go func() {
			defer func() { done <- i }()
			w := &workers[i]
			unpin, err := linux.Pin(cpu)
			if err != nil {
				broken.Store(1)
				w.err = err
				return
			}
			defer unpin()
			if ready.Add(1) == int64(len(cpus)) {
				begin.Store(int64(time.Since(base) + lead))
			}
			for begin.Load() == 0 {
				if broken.Load() != 0 {
					return
				}
			}
			from := time.Duration(begin.Load())
			to := from + d
			busy, start := linux.ThreadCPU(), time.Since(base)
			if !blocks {
				kernel.Hold()
			}
			t := start
			for t < to+tail {
				at := t
				work(batch)
				t = time.Since(base)
				w.all += batch
				if at >= from && t <= to {
					if w.ops == 0 {
						w.first = at
					}
					w.ops += batch
					w.last = t
				}
			}
			if !blocks {
				kernel.Release()
			}
			w.lost = lostShare(t-start, linux.ThreadCPU()-busy)
		}()
	}
	for range cpus {
		<-done
	}
	return workers
}

// contention is our side of threads at one cache line: a fetch-and-add (lock
// is nil) or a lock's hand-over. Nanoseconds between two operations of all
// threads together.
func contention(newLock func() kernel.Lock, cpus []int, d time.Duration) (reading, error) {
	counter := oneOfMany[kernel.Counter]()
	work := func(n int64) { kernel.FetchAdd(&counter.N, n) }
	name, blocks := "fetch-add", false
	if newLock != nil {
		lock := newLock()
		name = lock.Name()
		_, blocks = lock.(*kernel.Mutex)
		work = func(n int64) { lock.Sections(&counter.N, n) }
	}
	workers := together(cpus, d, blocks, work)
	var r reading
	var rate float64
	var all int64
	for _, w := range workers {
		if w.err != nil {
			return r, w.err
		}
		rate += w.rate()
		all += w.all
		r.lost = max(r.lost, w.lost)
	}
	if counter.N != uint64(all) {
		return r, fmt.Errorf("%s: %d operations done, %d counted: two were in at once", name, all, counter.N)
	}
	r.value = 1e9 / rate
	return r, nil
}

// oneOfMany returns one of many new values, another one each time: how fast a
// line moves between two cores depends on its address, since that decides which
// slice of the last cache it goes through.
func oneOfMany[T any]() *T {
	const words = 1024
	return &make([]T, words)[rand.IntN(words)]
}

// Locks for contention.
func newSpin() kernel.Lock   { return oneOfMany[kernel.Spin]() }
func newTicket() kernel.Lock { return oneOfMany[kernel.Ticket]() }
func newMutex() kernel.Lock  { return oneOfMany[kernel.Mutex]() }

// always wraps a measurement that needs no context.
func always(f func() (reading, error)) side {
	return func(context.Context) (reading, error) { return f() }
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
