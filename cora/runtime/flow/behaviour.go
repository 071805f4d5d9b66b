package flow

import (
	"context"
	"math"
	"slices"

	"nicprof/cora/runtime"
	"nicprof/cora/runtime/packet"
	"nicprof/cora/runtime/system"
	"nicprof/sim"
)

// Point is what the packet level measured of NIC and PCIe at an offered rate,
// with a share of the packets visiting the host: rates as shares of those
// offered, times in µs.
type Point struct {
	HostShare float64 `json:"host_share"` // of the managed packets, by their flow
	Mpps      float64 `json:"offered_mpps"`
	Bytes     float64 `json:"bytes"`
	NIC       float64 `json:"left_nic"`  // left without the host
	Host      float64 `json:"left_host"` // left after it
	Visits    float64 `json:"at_host"`   // that the host took
	IdleUS    float64 `json:"idle_us"`
	Busy      float64 `json:"busy_threads"`
	EvictUS   float64 `json:"evict_us"` // of a single flow, 0: not seen; where no migration ended, the window
	OffloadUS float64 `json:"offload_us"`
	Reordered float64 `json:"reordered"` // packets a migration
}

// Steps of the grid on which behaviour is measured, and of what lies between it
// is interpolated.
const (
	rateStep  = 0.5  // Mpps
	shareStep = 0.05 // of the packets
)

// node is a place on the grid.
type node struct{ rate, share, bytes int }

// Behaviour is a system's NIC and PCIe as the packet level measures them, a point
// of the grid at a time, when it is first asked for. The host has enough cores
// there: what the host cannot do is the flow level's to say.
type Behaviour struct {
	sys    *system.System
	pcie   float64 // other traffic, Gb/s each way
	seed   uint64
	points map[node]Point
	small  []float64 // shares of fewer flows, that load locks alike

	threads int // of the NIC, once a point has been measured
}

// NewBehaviour returns the behaviour of a system beside other traffic on PCIe,
// Gb/s each way; nothing of it is measured yet.
func NewBehaviour(sys *system.System, pcieGbps float64, seed uint64) *Behaviour {
	return &Behaviour{sys: sys, pcie: pcieGbps, seed: seed, points: map[node]Point{}, small: compress(sys.Shares)}
}

// Points returns what has been measured, in the order of bytes, share and rate.
func (b *Behaviour) Points() []Point {
	keys := make([]node, 0, len(b.points))
	for k := range b.points {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y node) int {
		for _, d := range []int{x.bytes - y.bytes, x.share - y.share, x.rate - y.rate} {
			if d != 0 {
				return d
			}
		}
		return 0
	})
	out := make([]Point, 0, len(keys))
	for _, k := range keys {
		out = append(out, b.points[k])
	}
	return out
}

// fewFlows is about how many flows the packet level runs a point with.
const fewFlows = 8192

// compress joins small flows until about fewFlows are left; a flow that is large
// stays as it is.
func compress(shares []float64) []float64 {
	if len(shares) <= fewFlows {
		return shares
	}
	var out []float64
	sum := 0.0
	for _, s := range shares {
		if s >= 1.0/fewFlows {
			out = append(out, s)
			continue
		}
		if sum += s; sum >= 1.0/fewFlows {
			out = append(out, sum)
			sum = 0
		}
	}
	if sum > 0 {
		out = append(out, sum)
	}
	return out
}

// At returns the behaviour between the points of the grid around it.
func (b *Behaviour) At(ctx context.Context, mpps, share, bytes float64) (Point, error) {
	x, y := mpps/rateStep, share/shareStep
	x0, y0 := math.Floor(x), math.Floor(y)
	fx, fy := x-x0, y-y0
	out := Point{HostShare: share, Mpps: mpps, Bytes: bytes}
	var evict, offload float64 // weights of points that saw one
	for _, c := range [4]struct {
		dx, dy int
		w      float64
	}{{0, 0, (1 - fx) * (1 - fy)}, {1, 0, fx * (1 - fy)}, {0, 1, (1 - fx) * fy}, {1, 1, fx * fy}} {
		if c.w < 1e-9 {
			continue
		}
		p, err := b.point(ctx, node{int(x0) + c.dx, int(y0) + c.dy, int(math.Round(bytes))})
		if err != nil {
			return out, err
		}
		out.NIC += c.w * p.NIC
		out.Host += c.w * p.Host
		out.Visits += c.w * p.Visits
		out.IdleUS += c.w * p.IdleUS
		out.Busy += c.w * p.Busy
		out.Reordered += c.w * p.Reordered
		if p.EvictUS > 0 {
			out.EvictUS += c.w * p.EvictUS
			evict += c.w
		}
		if p.OffloadUS > 0 {
			out.OffloadUS += c.w * p.OffloadUS
			offload += c.w
		}
	}
	// Where all flows are on one side only one way is ever seen; the other takes
	// as many steps.
	switch {
	case evict == 0 && offload > 0:
		evict, out.EvictUS = offload, out.OffloadUS
	case offload == 0 && evict > 0:
		offload, out.OffloadUS = evict, out.EvictUS
	}
	if evict > 0 {
		out.EvictUS /= evict
		out.OffloadUS /= offload
	}
	return out, nil
}

// Windows of a point, in packets, and the time between its probes.
const (
	pointWarm    = 8_000
	pointPackets = 24_000
	pointProbe   = 40 * sim.Microsecond
)

func (b *Behaviour) point(ctx context.Context, n node) (Point, error) {
	n.rate = max(1, n.rate)
	if p, ok := b.points[n]; ok {
		return p, nil
	}
	p := Point{Mpps: float64(n.rate) * rateStep, HostShare: min(1, float64(n.share)*shareStep), Bytes: float64(n.bytes)}
	sys := *b.sys
	sys.Shares = b.small
	sys.OnNIC = b.place(p.HostShare)
	o := sys.Runtime()
	o.Entries = uint32(len(sys.Shares)) // probes find room
	o.IntervalUS = 1e3
	o.Heartbeats = 0
	window := func(packets float64) sim.Time { return sim.Time(packets / p.Mpps * float64(sim.Microsecond)) }
	c := packet.Config{
		Runtime: o, Faults: runtime.Faults{PCIeGbps: b.pcie}, HostCores: enoughCores, Phases: []system.Phase{{Mpps: p.Mpps, Bytes: p.Bytes}},
		Warm: window(pointWarm), Length: window(pointPackets), Still: true,
		Seed: b.seed + uint64(n.rate)<<32 + uint64(n.share)<<16 + uint64(n.bytes),
	}
	r, err := packet.Run(ctx, &sys, c)
	if err != nil {
		return p, err
	}
	// Migrations in a run of their own: flows that probes move change the rates.
	c.Probe = pointProbe
	probed, err := packet.Run(ctx, &sys, c)
	if err != nil {
		return p, err
	}
	b.threads = r.Threads
	s := r.Samples[0]
	p.NIC, p.Host, p.IdleUS, p.Busy = s.NIC/s.Offered, s.Host/s.Offered, s.IdleUS, s.Busy
	p.Visits = s.Visits / s.Offered
	var sums, counts [2]float64
	for _, m := range probed.Migrations {
		way := 0
		if !m.Evict {
			way = 1
		}
		sums[way] += m.TookUS
		counts[way]++
		p.Reordered += float64(m.Reordered)
	}
	if n := len(probed.Migrations); n > 0 {
		p.Reordered /= float64(n)
	}
	for way, to := range []*float64{&p.EvictUS, &p.OffloadUS} {
		if counts[way] > 0 {
			*to = sums[way] / counts[way]
		}
	}
	if len(probed.Migrations) == 0 {
		// The first began with the window and has not ended: it takes longer.
		p.EvictUS = pointPackets / p.Mpps
		p.OffloadUS = p.EvictUS
	}
	b.points[n] = p
	return p, nil
}

// enoughCores is more than any rate needs here.
const enoughCores = 64

// place puts flows on the host until they bring its share of the packets, taking
// them evenly from all sizes.
func (b *Behaviour) place(share float64) []bool {
	on := make([]bool, len(b.small))
	off, seen := 0.0, 0.0
	for f, s := range b.small {
		seen += s
		if off+s/2 <= share*seen {
			off += s
			continue
		}
		on[f] = true
	}
	return on
}
