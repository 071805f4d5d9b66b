// Package snic emulates the data plane of an FPGA SmartNIC as a mechanism: a
// parser and match-action table, a packet store of cells, a central scheduler
// that hands out credits, regions that run chains of network tasks (NTs), a
// synchronisation buffer and the way out. It holds no measured curve: every time
// comes from the board file, and every latency and rate is what packets take on
// their way. Which DAG runs where, and when a region is configured anew, is said
// from outside while it runs.
package snic

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/sim"
	"nicprof/traffic"
)

// NT is a network task. A packet takes Cycles through it; it accepts one every
// II cycles (0: 1), and no more than Gbps of packet bytes (0: no limit of its
// own), by a time a packet that varies as the board says. Area, MemoryMB and Shareable are the control plane's.
type NT struct {
	Name      string
	Cycles    int
	II        int
	Gbps      float64
	Area      float64
	MemoryMB  float64
	Shareable bool
}

// Policy is how the scheduler hands out credits.
type Policy int

const (
	// Reserve takes a credit of each NT that a packet needs in a region, so that
	// the chain runs without the scheduler. Where some NT has none, the packet
	// runs through those before it and comes back.
	Reserve Policy = iota
	// PANIC schedules one NT at a time: each is a pass through the scheduler.
	PANIC
)

// PolicyOf returns the policy of a base of the board: board.PolicySNIC or
// board.PolicyPANIC.
func PolicyOf(base string) Policy {
	if base == board.PolicyPANIC {
		return PANIC
	}
	return Reserve
}

// Config lays out a board.
type Config struct {
	Board *board.Board // of class fpga, with the user's overrides in it
	NTs   []NT
	// Regions are the chains, as indices into NTs, that the regions run at the
	// start; nil for an empty region. More regions than the board has are an
	// error, fewer leave the others empty.
	Regions [][]int
	Credits int // of each NT; 0: the board's
	Policy  Policy
	Seed    uint64 // of every stream
}

// Route is what the match-action table holds for a UID: the stages of its DAG in
// order. Without a stage packets only pass the core.
type Route []Stage

// Stage is branches that run in parallel, each on a copy of the header. The
// next stage begins when all are done.
type Stage []Branch

// Branch is the instances of one chain, which packets take in turn.
type Branch []Instance

// Instance is a chain in a region. Bit i of Run says that the packet runs
// through NT i of the region's chain; the others it skips.
type Instance struct {
	Region int
	Run    uint64
}

// All returns the Run of a chain of n NTs of which none is skipped.
func All(n int) uint64 { return 1<<n - 1 }

// MaxChain is the most NTs in a region, MaxUID the largest UID.
const (
	MaxChain = 64
	MaxUID   = 1<<16 - 1
)

// Load is the packets of one UID. Sizes, or else Bytes, say how large they are.
// They come with exponential gaps, or even ones with Paced, Burst at a time (0:
// 1), at Gbps of packet bytes; with Saturate there is always another. A Trace
// is packets at given times after the call instead, once.
type Load struct {
	Gbps     float64
	Saturate bool
	Bytes    int
	Sizes    *traffic.Sizes
	Paced    bool
	Burst    int
	Trace    []Arrival
}

// Arrival is one packet of a trace.
type Arrival struct {
	After sim.Time
	Bytes int
}

// Smallest and largest packet, bytes. A size drawn beyond them is cut.
const (
	MinBytes = 64
	MaxBytes = 9216
)

// RegionState is what a region does.
type RegionState int

// A region is empty until a chain is launched into it, runs it, is stopped (what
// is inside ends, what comes is buffered), or is being configured.
const (
	Empty RegionState = iota
	Running
	Stopped
	Configuring
)

func (s RegionState) String() string {
	return [...]string{"empty", "running", "stopped", "configuring"}[s]
}

// New lays out a board. Its error is an input fault.
func New(c Config) (*Board, error) {
	if c.Board == nil || c.Board.FPGA == nil {
		return nil, fault.Inputf("snic: the board is not of class fpga")
	}
	f := c.Board.FPGA
	n := int(f.Regions.Count.Value)
	if len(c.Regions) > n {
		return nil, fault.Inputf("snic: %d regions; board %s has %d", len(c.Regions), c.Board.Name, n)
	}
	if c.Credits < 0 || c.Credits > maxCredits {
		return nil, fault.Inputf("snic: %d credits; expected 1..%d", c.Credits, maxCredits)
	}
	if c.Credits == 0 {
		c.Credits = int(f.Scheduler.Credits.Value)
	}
	b := &Board{
		kernel:    sim.New(),
		seed:      c.Seed,
		policy:    c.Policy,
		credits:   int32(c.Credits),
		cycle:     1e6 / c.Board.ClockMHz.Value,
		beatBytes: int(f.BusBits.Value) / 8,
		cellBytes: int(f.Store.CellBytes.Value),
		cells:     int(f.Store.Cells.Value),
		threshold: int(f.Store.Threshold.Value),
		rxBytes:   int(f.LinkBytes.Value),
		buffer:    int(f.Regions.Buffer.Value),
		vary:      c.Board.Variability.Value,
		services:  sim.NewStream(c.Seed, "snic services"),
		pick:      none,
	}
	b.gap = f.BusGap.Value
	b.interval = b.cycles(f.Scheduler.Interval.Value)
	b.dispatch = b.cycles(f.Scheduler.Dispatch.Value)
	b.giveBack = b.cycles(f.Scheduler.Return.Value)
	b.yield = b.cycles(f.Scheduler.Yield.Value)
	b.skip = b.cycles(f.Regions.Skip.Value)
	b.sync = b.cycles(f.Stage(board.SyncStage))
	b.phy = sim.Time(f.PHYNS.Value * 1000)
	before := true
	for _, s := range f.Stages {
		t := b.cycles(s.Cycles.Value)
		switch {
		case s.Name == board.SchedulerStage:
			before = false
			b.order = max(0, t-b.dispatch)
		case before:
			b.in = append(b.in, t)
			if s.Name == matchStage {
				b.match = len(b.in)
			}
		default:
			b.out = append(b.out, t)
		}
	}
	if b.match == 0 {
		b.match = len(b.in)
	}
	for _, nt := range c.NTs {
		if nt.Cycles < 0 || nt.II < 0 || nt.Gbps < 0 || math.IsNaN(nt.Gbps) {
			return nil, fault.Inputf("snic: NT %q: cycles %d, ii %d, gbps %v; none may be negative", nt.Name, nt.Cycles, nt.II, nt.Gbps)
		}
		k := kind{NT: nt, latency: b.cycles(float64(nt.Cycles)), interval: b.cycles(float64(max(1, nt.II)))}
		if nt.Gbps > 0 {
			k.perByte = 8000 / nt.Gbps
		}
		b.kinds = append(b.kinds, k)
	}
	b.regions = make([]region, n)
	for i := range b.regions {
		b.regions[i].name = fmt.Sprintf("region%d", i)
	}
	for i, chain := range c.Regions {
		if chain == nil {
			continue
		}
		if err := b.checkChain(i, chain); err != nil {
			return nil, err
		}
		b.install(int32(i), chain)
	}
	return b, nil
}

const (
	maxCredits = 1 << 16
	matchStage = "match_action"
)

// Now returns the simulated time.
func (b *Board) Now() sim.Time { return b.kernel.Now() }

// PHY returns the time in PHY and MAC, both ways together, which no packet of a
// board without loss escapes and no latency counted here includes.
func (b *Board) PHY() sim.Time { return b.phy }

// NTs returns the network tasks.
func (b *Board) NTs() []NT {
	var nts []NT
	for _, k := range b.kinds {
		nts = append(nts, k.NT)
	}
	return nts
}

// SetRoute sets what the match-action table holds for a UID: packets that the
// scheduler has seen go on by their old route. Its error is an input fault.
func (b *Board) SetRoute(uid int, r Route) error {
	f, err := b.flowOf(uid)
	if err != nil {
		return err
	}
	own := make(route, len(r))
	for i, s := range r {
		if len(s) == 0 {
			return fault.Inputf("snic: route of UID %d: stage %d has no branch", uid, i)
		}
		own[i] = make([]branch, len(s))
		for j, br := range s {
			if len(br) == 0 {
				return fault.Inputf("snic: route of UID %d: branch %d of stage %d has no instance", uid, j, i)
			}
			for _, in := range br {
				if in.Region < 0 || in.Region >= len(b.regions) {
					return fault.Inputf("snic: route of UID %d: region %d; the board has %d", uid, in.Region, len(b.regions))
				}
				g := &b.regions[in.Region]
				if n := len(g.chain); in.Run == 0 || in.Run>>n != 0 {
					return fault.Inputf("snic: route of UID %d: region %d has %d NTs; it runs %#b", uid, in.Region, n, in.Run)
				}
				own[i][j].instances = append(own[i][j].instances, instance{region: int32(in.Region), run: in.Run, generation: g.generation})
			}
		}
	}
	b.routes = append(b.routes, own)
	f.route = int32(len(b.routes) - 1)
	return nil
}

// RemoveRoute takes a UID out of the match-action table: its packets are dropped
// as unknown from now on.
func (b *Board) RemoveRoute(uid int) error {
	f, err := b.flowOf(uid)
	if err == nil {
		f.route = none
	}
	return err
}

// Offer replaces the packets of a UID from now on. Packets that came before stay.
func (b *Board) Offer(uid int, l Load) error {
	f, err := b.flowOf(uid)
	if err != nil {
		return err
	}
	switch {
	case l.Gbps < 0 || math.IsNaN(l.Gbps) || math.IsInf(l.Gbps, 0):
		return fault.Inputf("snic: UID %d offers %v Gb/s; expected 0 or more", uid, l.Gbps)
	case l.Burst < 0:
		return fault.Inputf("snic: UID %d: bursts of %d packets", uid, l.Burst)
	case l.Sizes == nil && l.Trace == nil && (l.Bytes < MinBytes || l.Bytes > MaxBytes) && (l.Gbps > 0 || l.Saturate):
		return fault.Inputf("snic: UID %d: packets of %d B; expected %d..%d", uid, l.Bytes, MinBytes, MaxBytes)
	}
	f.offer++
	f.load = l
	f.load.Burst = max(1, l.Burst)
	f.replayed = 0
	switch {
	case len(l.Trace) > 0:
		f.began = b.Now()
		b.kernel.At(f.began+max(0, l.Trace[0].After), kArrive, int32(uid), f.offer)
	case l.Saturate:
		if f.rx.Len() == 0 {
			b.receive(f, b.draw(f))
		}
	case l.Gbps > 0:
		b.nextArrival(f)
	}
	return nil
}

// SetIngress limits what enters of a UID to so many Gb/s of packet bytes, by a
// token bucket before the parser that holds one cell of the packet store: the
// only place at which a flow is throttled. Inf is no limit, which is the
// beginning; 0 lets nothing in.
func (b *Board) SetIngress(uid int, gbps float64) error {
	f, err := b.flowOf(uid)
	if err != nil {
		return err
	}
	if gbps < 0 || math.IsNaN(gbps) {
		return fault.Inputf("snic: ingress of UID %d limited to %v Gb/s; expected 0 or more", uid, gbps)
	}
	now := b.Now()
	debt := max(0, f.free-now)
	old := f.perByte
	f.perByte = 8000 / gbps // +Inf at 0, 0 without a limit
	switch {
	case gbps == 0:
		f.free = math.MaxInt64
	case debt > 0 && old > 0 && !math.IsInf(old, 1):
		f.free = now + sim.Time(float64(debt)*(f.perByte/old))
	default:
		f.free = min(f.free, now)
	}
	if f.state == waiting {
		f.state = idle
		f.wake++
		b.arm(f)
		b.enter()
	}
	return nil
}

// Stop lets a region end what it runs and buffers what comes for it.
func (b *Board) Stop(i int) error {
	if err := b.checkRegion(i); err != nil {
		return err
	}
	if g := &b.regions[i]; g.state == Running {
		g.state = Stopped
	}
	return nil
}

// Resume lets a stopped region run again.
func (b *Board) Resume(i int) error {
	if err := b.checkRegion(i); err != nil {
		return err
	}
	if g := &b.regions[i]; g.state == Stopped {
		g.state = Running
		b.resume(int32(i))
	}
	return nil
}

// Launch configures a region with a chain of NTs, which takes pr once what it
// runs has ended. From now on routes may name the new chain: packets that come
// for it wait in the scheduler, as many as the board's buffer holds, and those
// that wait for the old one are dropped (DropChain). A nil chain empties the
// region. Its error is an input fault.
func (b *Board) Launch(i int, chain []int, pr sim.Time) error {
	if err := b.checkRegion(i); err != nil {
		return err
	}
	if err := b.checkChain(i, chain); err != nil {
		return err
	}
	if pr < 0 {
		return fault.Inputf("snic: region %d: reconfiguration of %d ps", i, pr)
	}
	g := &b.regions[i]
	g.generation++
	g.chain = slices.Clone(chain)
	g.state = Configuring
	g.pr = pr
	for n := g.queue.Len(); n > 0; n-- {
		b.drop(g.queue.Pop(), DropChain)
	}
	for j := range g.tasks {
		for q := &g.tasks[j].queue; q.Len() > 0; {
			b.drop(q.Pop(), DropChain)
		}
	}
	if g.inside == 0 {
		b.configure(int32(i))
	}
	return nil
}

func (b *Board) checkRegion(i int) error {
	if i < 0 || i >= len(b.regions) {
		return fault.Inputf("snic: region %d; the board has 0..%d", i, len(b.regions)-1)
	}
	return nil
}

func (b *Board) checkChain(i int, chain []int) error {
	if len(chain) > MaxChain {
		return fault.Inputf("snic: region %d: a chain of %d NTs; at most %d", i, len(chain), MaxChain)
	}
	for _, k := range chain {
		if k < 0 || k >= len(b.kinds) {
			return fault.Inputf("snic: region %d: NT %d; there are 0..%d", i, k, len(b.kinds)-1)
		}
	}
	return nil
}

// Run lets simulated time pass until then.
func (b *Board) Run(until sim.Time) {
	if until <= b.Now() {
		return
	}
	b.kernel.At(until, kStop, 0, 0)
	b.run()
}

// flowOf returns the flow of a UID, making those up to it known.
func (b *Board) flowOf(uid int) (*flow, error) {
	if uid < 0 || uid > MaxUID {
		return nil, fault.Inputf("snic: UID %d; expected 0..%d", uid, MaxUID)
	}
	for len(b.flows) <= uid {
		id := len(b.flows)
		f := &flow{
			uid:   int32(id),
			route: none,
			gaps:  sim.NewStream(b.seed, fmt.Sprintf("snic gaps %d", id)),
			sizes: sim.NewStream(b.seed, fmt.Sprintf("snic sizes %d", id)),
		}
		f.Intended = make([]Volume, len(b.kinds))
		f.Wanted = make([]Volume, len(b.regions))
		b.flows = append(b.flows, f)
	}
	return b.flows[uid], nil
}

// first returns the position of the lowest set bit.
func first(mask uint64) int { return bits.TrailingZeros64(mask) }
