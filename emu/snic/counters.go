package snic

import (
	"math"
	"math/bits"

	"nicprof/sim"
)

// Cause is why a packet was dropped.
type Cause int

// Causes of drops. The buffer at a port is that of the link layer, for every UID.
const (
	DropThrottle Cause = iota // buffer full while the UID's token bucket was empty
	DropIngress               // buffer full while the bus or the packet store was
	DropUnknown               // UID not in the match-action table
	DropBuffer                // more than the scheduler buffers for a region that is not running
	DropChain                 // the region has another chain than the route says
	causes
)

// Causes are all causes, in the order of Flow.Dropped.
var Causes = [causes]Cause{DropThrottle, DropIngress, DropUnknown, DropBuffer, DropChain}

func (c Cause) String() string {
	return [...]string{"throttle", "ingress", "unknown UID", "buffer", "no chain"}[c]
}

// Volume is packets and their bytes.
type Volume struct{ Packets, Bytes int64 }

func (v *Volume) add(bytes int32) {
	v.Packets++
	v.Bytes += int64(bytes)
}

// Gbps returns the rate of what came since an earlier reading.
func (v Volume) Gbps(before Volume, over sim.Time) float64 {
	return float64(v.Bytes-before.Bytes) * 8000 / float64(over)
}

// Flow counts, from the start on, the packets of one UID: offered by the wire,
// accepted by the parser, served.
type Flow struct {
	Offered, Accepted, Served Volume
	Dropped                   [causes]int64
	Passes                    int64 // through the scheduler, of the packets served
	// Intended is what should go through each NT (by Config.NTs), and Wanted
	// through each region, counted when the scheduler sees the packet and before
	// any credit.
	Intended, Wanted []Volume
	// Latency is from the port, after PHY and MAC, to the first beat out.
	Latency Histogram
}

// Flow returns the counters of a UID; they go on counting. It returns nil for a
// UID that nothing was said about.
func (b *Board) Flow(uid int) *Flow {
	if uid < 0 || uid >= len(b.flows) {
		return nil
	}
	return &b.flows[uid].Flow
}

// Resource is a part of the board and the time that it was busy since the start.
// Of the packet store it is the mean share of cells in use times the time, of a
// region that of its busiest NT or of its port.
type Resource struct {
	Name string
	Busy sim.Time
}

// storeName is the packet store's name among the resources.
const storeName = "store"

// Resources appends the resources, always in the same order: ingress, store,
// scheduler, region0 and so on, egress.
func (b *Board) Resources(dst []Resource) []Resource {
	now := b.Now()
	b.weigh(now)
	dst = append(dst,
		Resource{"ingress", b.ingress.Busy(now)},
		Resource{storeName, sim.Time(b.held / float64(b.cells))},
		Resource{"scheduler", b.scheduler.Busy(now)})
	for i := range b.regions {
		g := &b.regions[i]
		dst = append(dst, Resource{g.name, g.past + g.busy(now)})
	}
	return append(dst, Resource{"egress", b.egress.Busy(now)})
}

// Region is a region's state, its chain, the packets that wait for it and those
// inside.
type Region struct {
	State   RegionState
	Chain   []int
	Waiting int
	Inside  int
}

// Region returns what a region of the board does.
func (b *Board) Region(i int) Region {
	g := &b.regions[i]
	waiting := g.queue.Len()
	for j := range g.tasks {
		waiting += g.tasks[j].queue.Len()
	}
	return Region{State: g.state, Chain: g.chain, Waiting: waiting, Inside: int(g.inside)}
}

// Histogram counts latencies: to the nanosecond below 1.024 us, within 0.2 %
// above. The zero value is empty.
type Histogram struct {
	counts   []int64
	n        int64
	sum      sim.Time
	min, max sim.Time
}

const (
	histBits  = 9 // of a bucket's position within its power of two
	histFirst = 1 << (histBits + 1)
)

func histBucket(ns uint64) int {
	if ns < histFirst {
		return int(ns)
	}
	shift := bits.Len64(ns) - histBits - 1
	return histFirst + (shift-1)<<histBits + int(ns>>shift) - 1<<histBits
}

// histMiddle returns the middle of a bucket, ns.
func histMiddle(bucket int) float64 {
	if bucket < histFirst {
		return float64(bucket)
	}
	shift := (bucket-histFirst)>>histBits + 1
	low := (uint64(bucket-histFirst)&(1<<histBits-1) + 1<<histBits) << shift
	return float64(low) + float64(uint64(1)<<shift)/2
}

func (h *Histogram) add(t sim.Time) {
	i := histBucket(uint64(t+sim.Nanosecond/2) / uint64(sim.Nanosecond))
	for i >= len(h.counts) {
		h.counts = append(h.counts, make([]int64, max(histFirst, i+1-len(h.counts)))...)
	}
	h.counts[i]++
	if h.n == 0 || t < h.min {
		h.min = t
	}
	h.max = max(h.max, t)
	h.n++
	h.sum += t
}

// N returns the number of packets.
func (h *Histogram) N() int64 { return h.n }

// Min, Max and Mean return the least, largest and mean latency; 0 if there is
// none.
func (h *Histogram) Min() sim.Time { return h.min }

// Max returns the largest latency.
func (h *Histogram) Max() sim.Time { return h.max }

// Mean returns the mean latency.
func (h *Histogram) Mean() sim.Time {
	if h.n == 0 {
		return 0
	}
	return h.sum / sim.Time(h.n)
}

// Quantile returns the latency that a share q of the packets does not exceed,
// 0 if there is none.
func (h *Histogram) Quantile(q float64) sim.Time {
	rank := int64(math.Ceil(q * float64(h.n)))
	for i, n := range h.counts {
		if rank -= n; n > 0 && rank <= 0 {
			return min(h.max, max(h.min, sim.Time(histMiddle(i)*float64(sim.Nanosecond))))
		}
	}
	return h.max
}

// Reset empties the histogram and keeps its room.
func (h *Histogram) Reset() {
	clear(h.counts)
	*h = Histogram{counts: h.counts}
}
