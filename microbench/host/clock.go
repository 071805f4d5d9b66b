package host

import (
	"time"

	"nicprof/internal/linux"
)

// clock turns ticks into nanoseconds.
type clock struct {
	nsPerTick float64
	overhead  float64 // ns of one reading, the least of many
}

// calibrate compares the ticks with the monotonic clock over some milliseconds.
func calibrate() clock {
	const span = 20 * time.Millisecond
	// The clocks are read one after the other: of several pairs the one that
	// was read fastest is the best.
	pair := func() (ns time.Duration, at uint64) {
		best := ^uint64(0)
		for range 20 {
			before := ticks()
			now := linux.Monotonic()
			after := ticks()
			if after-before < best {
				best, ns, at = after-before, now, before+(after-before)/2
			}
		}
		return ns, at
	}
	ns0, t0 := pair()
	for linux.Monotonic()-ns0 < span {
	}
	ns1, t1 := pair()
	c := clock{nsPerTick: float64(ns1-ns0) / float64(t1-t0)}
	const reads = 1000
	least := ^uint64(0)
	for range 20 {
		from := ticks()
		for range reads {
			ticks()
		}
		least = min(least, ticks()-from)
	}
	c.overhead = float64(least) * c.nsPerTick / (reads + 1)
	return c
}

// ns of a number of ticks.
func (c clock) ns(t uint64) float64 { return float64(t) * c.nsPerTick }

// ticks of a time.
func (c clock) ticks(ns float64) uint64 { return uint64(ns / c.nsPerTick) }

// between is the time from one reading to another with that many readings
// between them, each of which took time of its own. It is never negative:
// counters of two cores may differ by some ticks.
func (c clock) between(from, to uint64, readings int64) float64 {
	if to <= from {
		return 0
	}
	return max(0, c.ns(to-from)-float64(readings)*c.overhead)
}
