// Package flow is the flow level of Cora's emulation: minutes of a million flows.
// It knows flows by their rates and where their state is, and moves them with the
// runtime's own functions, one message after the other; what NIC and PCIe make of
// the traffic, how long threads wait, and how long a migration takes is measured
// at the packet level (Behaviour). Nothing here is a packet: what a flow's copies
// count, and the order of its packets, are the packet level's.
package flow

import (
	"context"
	"math"
	"slices"

	"nicprof/cora/runtime"
	"nicprof/cora/runtime/packet"
	"nicprof/cora/runtime/system"
	"nicprof/internal/fault"
	"nicprof/sim"
)

// Config of a run.
type Config struct {
	Runtime   runtime.Options
	Faults    runtime.Faults
	HostCores int
	Phases    []system.Phase // the first at 0 s, with a rate
	LengthS   float64
	StepS     float64 // of time; 0: a hundredth of the monitor's interval
	SampleS   float64 // of the timeline; 0: the monitor's interval
	Still     bool    // the runtime moves no flow
	Seed      uint64
	Behaviour *Behaviour // nil: a new one; else with the faults' traffic on PCIe
}

// Result of a run. Samples are those of the packet level; a drop that PCIe or the
// NIC makes counts as the NIC's ingress, one of the host as its rings'.
type Result struct {
	Samples   []packet.Sample
	Evicted   uint64
	Offloaded uint64
	Refused   uint64
	Repeats   uint64
	Reordered float64 // packets, expected
	Moves     []Move
	NIC       *runtime.NIC
	Host      *runtime.Host
	Injector  *runtime.Injector
	Behaviour *Behaviour
}

// Move sums up the migrations of one kind in a phase.
type Move struct {
	Phase   int
	Evict   bool
	Flows   uint64
	FirstS  float64 // when the first began
	LastS   float64 // when the last ended
	SearchS float64 // spent looking for flows
	MoveS   float64 // spent on messages
	Share   float64 // of the managed packets that the flows bring
}

type level struct {
	c    *Config
	sys  *system.System
	b    *Behaviour
	nic  *runtime.NIC
	host *runtime.Host
	ctl  *runtime.Controller
	mon  *runtime.Monitor
	inj  *runtime.Injector
	draw *sim.Stream

	shares  []float64 // of the managed packets, by flow
	order   []int32   // flows, the largest first
	core    []uint8   // by flow
	onHost  []float64 // share of the managed packets by core
	sum     float64   // of onHost
	managed float64   // share of all packets
	cost    hostCost
	sketch  *runtime.Sketch
	mpps    float64
	bytes   float64
	phase   int
	now     float64 // s
	turn    float64 // s, when the controller has its next
	at      Point   // of this step
	result  Result
	sample  sums
}

// hostCost is the host's time for a packet of the mix, ns.
type hostCost struct {
	flow   float64 // of a managed packet whose flow is on the host
	always float64 // of any packet, for blocks that are on the host, its flow on the NIC
	visits float64 // of any packet, how often it visits the host with its flow on the NIC
	more   float64 // and how much more often with its flow on the host
}

// sums are of a stretch of the timeline, weighed by time.
type sums struct {
	weight                                      float64
	offered, nic, host, visits, ingress, ring   float64
	cores, idle, busy, toHost, toNIC, reordered float64
	evicted, offloaded                          uint64
}

// Run emulates a system. An error is the system's or the context's.
func Run(ctx context.Context, sys *system.System, c Config) (*Result, error) {
	if err := c.Runtime.Check(); err != nil {
		return nil, err
	}
	if c.HostCores < 1 || c.HostCores > 255 || len(c.Phases) == 0 || !(c.Phases[0].Mpps > 0) || !(c.LengthS > 0) {
		return nil, fault.Inputf("flow level: %d host cores, %d phases, %v s; expected 1 to 255 cores, a phase with a rate and a length", c.HostCores, len(c.Phases), c.LengthS)
	}
	if b := c.Behaviour; b != nil && b.pcie != c.Faults.PCIeGbps {
		return nil, fault.Inputf("flow level: behaviour measured beside %v Gb/s of other traffic on PCIe; expected %v", b.pcie, c.Faults.PCIeGbps)
	}
	l := newLevel(sys, &c)
	interval := c.Runtime.IntervalUS / 1e6
	if c.StepS == 0 {
		c.StepS = interval / 100
	}
	if c.SampleS == 0 {
		c.SampleS = interval
	}
	steps := int(math.Round(c.LengthS / c.StepS))
	perInterval := max(1, int(math.Round(interval/c.StepS)))
	perSample := max(1, int(math.Round(c.SampleS/c.StepS)))
	next := 1
	for i := range steps {
		l.now = float64(i) * c.StepS
		for next < len(c.Phases) && c.Phases[next].AtS <= l.now+c.StepS/2 {
			l.setPhase(next)
			next++
		}
		if err := l.step(ctx); err != nil {
			return nil, err
		}
		if (i+1)%perInterval == 0 {
			l.interval()
		}
		if (i+1)%perSample == 0 {
			l.endSample(float64(i+1) * c.StepS)
		}
	}
	return l.finish(), nil
}

func newLevel(sys *system.System, c *Config) *level {
	n := uint32(len(sys.Shares))
	l := &level{
		c: c, sys: sys, b: c.Behaviour, nic: runtime.NewNIC(c.Runtime, n), host: runtime.NewHost(c.Runtime, n),
		mon: runtime.NewMonitor(c.Runtime), inj: runtime.NewInjector(c.Faults, c.Seed), draw: sim.NewStream(c.Seed, "flow level"),
		core: make([]uint8, n), order: make([]int32, n), onHost: make([]float64, c.HostCores), bytes: sys.Bytes,
		sketch: &runtime.Sketch{},
	}
	if l.b == nil {
		l.b = NewBehaviour(sys, c.Faults.PCIeGbps, c.Seed)
	}
	l.nic.WriteFails = l.inj.WriteFails
	l.ctl = runtime.NewController(c.Runtime, l.host, c.Seed)
	for f := range n {
		if sys.OnNIC[f] {
			l.nic.Install(f, 0)
		}
		l.host.Install(f, sys.OnNIC[f], 0)
		l.core[f] = uint8(packet.CoreOf(f, c.HostCores))
		l.order[f] = int32(f)
	}
	l.weigh()
	l.shares = sys.Shares
	l.setPhase(0)
	l.resort()
	l.place()
	return l
}

// weigh sums up what packets cost the host.
func (l *level) weigh() {
	all, flow := 0.0, 0.0
	for _, p := range l.sys.Paths {
		all += p.Share
		r := p.Routes[system.NIC]
		if r.Host {
			l.cost.always += p.Share * r.HostNS
			l.cost.visits += p.Share
		}
		if p.Managed {
			l.managed += p.Share
			flow += p.Share * (p.Routes[system.Host].HostNS - r.HostNS)
			if !r.Host {
				l.cost.more += p.Share
			}
		}
	}
	l.cost.always /= all
	l.cost.visits /= all
	l.cost.more /= all
	if l.managed > 0 {
		l.cost.flow = flow / l.managed
	}
	l.managed /= all
}

// setPhase changes the traffic or the NIC's table.
func (l *level) setPhase(i int) {
	p := l.c.Phases[i]
	l.phase = i
	if p.Mpps > 0 {
		l.mpps = p.Mpps
	}
	if p.Bytes > 0 {
		l.bytes = p.Bytes
	}
	if p.Entries > 0 {
		l.nic.SetEntries(p.Entries)
		l.ctl.SetEntries(p.Entries)
	}
	if p.Shares != nil {
		l.shares = p.Shares
		l.resort()
		l.place()
	}
}

func (l *level) resort() {
	slices.SortFunc(l.order, func(a, b int32) int {
		switch x, y := l.shares[a], l.shares[b]; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return int(a - b)
	})
}

// place adds up the flows that are on the host.
func (l *level) place() {
	clear(l.onHost)
	for f, s := range l.shares {
		if l.nic.State(uint32(f)) != runtime.Valid {
			l.onHost[l.core[f]] += s
		}
	}
	l.total()
}

func (l *level) total() {
	l.sum = 0
	for _, s := range l.onHost {
		l.sum += s
	}
	l.sum = min(1, max(0, l.sum))
}

// step lets time pass: the traffic of the step, then the controller's turns in
// it.
func (l *level) step(ctx context.Context) error {
	var err error
	if l.at, err = l.b.At(ctx, l.mpps, l.sum, l.bytes); err != nil {
		return err
	}
	l.traffic()
	if l.c.Still {
		return nil
	}
	end := l.now + l.c.StepS
	l.turn = max(l.turn, l.now)
	for l.turn < end {
		l.controller()
	}
	return ctx.Err()
}

// traffic accounts for the packets of a step.
func (l *level) traffic() {
	s, w := &l.sample, l.c.StepS
	through := l.at.NIC + l.at.Host // of the offered
	visits := l.mpps * l.at.Visits
	// The host's cores: of the packets that reach it, those that a core has no
	// time for are lost.
	cores, lost := 0.0, 0.0
	perPacket := l.cost.always + l.managed*l.sum*l.cost.flow // ns a packet of the mix
	reach := 0.0
	if share := l.cost.visits + l.cost.more*l.sum; share > 0 {
		reach = min(1, l.at.Visits/share) // of those that should visit the host, that do
	}
	want := l.mpps * reach * perPacket / 1000
	n := float64(len(l.onHost))
	capacity := 1.0
	if l.now >= l.c.Faults.StallAtS && l.now < l.c.Faults.StallAtS+l.c.Faults.StallMS/1000 {
		capacity = 0 // of core 0
	}
	for i, share := range l.onHost {
		load := l.mpps * reach * (l.cost.always/n + l.managed*share*l.cost.flow) / 1000
		most := 1.0
		if i == 0 {
			most = capacity
		}
		cores += min(most, load)
		lost += max(0, load-most)
	}
	kept := 1.0
	if want > 0 {
		kept = 1 - lost/want
	}
	s.weight += w
	s.offered += w * l.mpps
	s.nic += w * l.mpps * l.at.NIC
	s.host += w * l.mpps * l.at.Host * kept
	s.visits += w * visits * kept
	s.ingress += w * l.mpps * max(0, 1-through)
	s.ring += w * l.mpps * l.at.Host * (1 - kept)
	s.cores += w * cores
	s.idle += w * l.at.IdleUS
	s.busy += w * l.at.Busy
	s.toHost += w * visits * l.bytes * 8 / 1000
	s.toNIC += w * visits * kept * l.bytes * 8 / 1000
}

// controller takes a turn, with all messages that it leads to.
func (l *level) controller() {
	t := l.ctl.Step(l.turn * 1e6)
	if !t.Send {
		l.turn += max(t.WaitUS, 1e-3) / 1e6
		return
	}
	m := t.Message
	f := l.c.Runtime.Flow(m.Entry)
	was := l.host.Phase(f)
	took, done := l.exchange(m)
	us := t.SearchUS + took
	if !done {
		us = max(us, t.WaitUS)
	}
	if was == runtime.Evicting || was == runtime.Offering {
		l.moved(f, was == runtime.Evicting, t.SearchUS, took, us)
	}
	l.turn += us / 1e6
}

// exchange carries a command to the NIC and its echo back, and what follows from
// it, and returns how long it took. It is not done where a message was lost.
func (l *level) exchange(m runtime.Message) (us float64, done bool) {
	for {
		half := l.at.EvictUS / 2 // of a migration's two exchanges
		if m.Op == runtime.OpToNIC || m.Op == runtime.OpOffload {
			half = l.at.OffloadUS / 2
		}
		times, late := l.inj.Control()
		us += half + late
		if times == 0 {
			return us, false
		}
		var e runtime.Message
		var ok bool
		for range times {
			if x, answers := l.nic.Control(m); answers {
				e, ok = x, true
			}
		}
		if !ok {
			return us, true
		}
		if times, late = l.inj.Control(); times == 0 {
			return us + late, false
		}
		us += late
		reply, send, _ := l.host.Control(e)
		for range times - 1 {
			l.host.Control(e)
		}
		if !send {
			return us, true
		}
		m = reply
	}
}

// moved accounts for a flow that has been moved, or was to be.
func (l *level) moved(f uint32, evict bool, searchUS, moveUS, us float64) {
	on := l.nic.State(f) == runtime.Valid
	if on == evict {
		return // it is where it was
	}
	share := l.shares[f]
	if evict {
		l.onHost[l.core[f]] += share
		l.sample.evicted++
	} else {
		l.onHost[l.core[f]] -= share
		l.sample.offloaded++
	}
	l.total()
	l.sample.reordered += l.at.Reordered
	l.result.Reordered += l.at.Reordered
	moves := l.result.Moves
	i := slices.IndexFunc(moves, func(m Move) bool { return m.Phase == l.phase && m.Evict == evict })
	if i < 0 {
		i = len(moves)
		moves = append(moves, Move{Phase: l.phase, Evict: evict, FirstS: l.turn})
		l.result.Moves = moves
	}
	m := &moves[i]
	m.Flows++
	m.LastS = l.turn + us/1e6
	m.SearchS += searchUS / 1e6
	m.MoveS += moveUS / 1e6
	m.Share += share
}

// interval ends one of the monitor's: what packets and heartbeats told the host.
func (l *level) interval() {
	l.mon.Reading(l.at.IdleUS)
	if l.c.Still {
		return
	}
	l.report()
	l.mon.Interval(l.mpps * (l.at.NIC + l.at.Visits + l.at.Host)) // passes of packets
	l.ctl.Interval()
	m, times := l.mon.Flag(l.host.NICLoad())
	for range times {
		l.exchange(m)
	}
}

// report tells the controller what it would have seen in the interval: packets of
// the host's flows, and of the NIC's flows the candidates that threads put on
// packets to the host. A thread's candidate is the flow with the highest estimate
// that it has seen since its last one, so that a flow is reported where none
// larger came in between.
func (l *level) report() {
	*l.sketch = runtime.Sketch{}
	seconds := l.c.Runtime.IntervalUS / 1e6
	packets := l.mpps * 1e6 * seconds * l.managed // of the interval
	served := packets * l.at.NIC
	taken := l.mpps*1e6*seconds*l.at.Visits + l.c.Runtime.Heartbeats*seconds // candidates taken
	islands := float64(packet.Islands(l.b.threads))
	through := l.at.NIC + l.at.Host
	for _, f := range l.order {
		n := l.shares[f] * packets * through
		if l.nic.State(uint32(f)) != runtime.Valid {
			if k := l.count(n); k > 0 {
				l.ctl.Count(l.c.Runtime.Flow(uint32(f)), k)
			}
			continue
		}
		if k := l.count(n / islands); k > 0 {
			l.sketch.Add(uint32(f), k)
		}
	}
	if taken == 0 || served == 0 {
		return
	}
	window := served / taken // packets of a thread between two candidates
	larger := 0.0            // share of the NIC's packets of larger flows
	for _, f := range l.order {
		if l.nic.State(uint32(f)) != runtime.Valid {
			continue
		}
		n := l.shares[f] * packets * through
		reports := min(taken, n*math.Pow(max(0, 1-larger), max(0, window-1)))
		larger += n / served
		k := l.count(reports)
		if k == 0 {
			continue
		}
		// Of the estimates of k reports at times spread evenly, the last.
		e := float64(l.sketch.Estimate(uint32(f))) * float64(k) / float64(k+1)
		l.ctl.Report(runtime.Candidate{Entry: uint32(f), Packets: uint32(e)})
	}
}

// count rounds an expected number up or down, by chance.
func (l *level) count(n float64) uint32 {
	k := math.Floor(n)
	if l.draw.Float64() < n-k {
		k++
	}
	return uint32(k)
}

// endSample ends a stretch of the timeline.
func (l *level) endSample(at float64) {
	s := &l.sample
	w := s.weight
	l.result.Samples = append(l.result.Samples, packet.Sample{
		AtS: at, Offered: s.offered / w, NIC: s.nic / w, Host: s.host / w, Visits: s.visits / w,
		Dropped: packet.Drops{Ingress: s.ingress / w, Ring: s.ring / w},
		Cores:   s.cores / w, Load: l.host.NICLoad(), Flows: l.nic.Entries(), IdleUS: s.idle / w, Busy: s.busy / w,
		PCIe:    [2]float64{s.toHost / w, s.toNIC / w},
		Evicted: s.evicted, Offloaded: s.offloaded, Reordered: int64(math.Round(s.reordered)),
	})
	l.sample = sums{}
}

func (l *level) finish() *Result {
	r := &l.result
	r.Evicted, r.Offloaded, r.Refused, r.Repeats = l.ctl.Evicted, l.ctl.Offloaded, l.ctl.Refused, l.ctl.Repeats
	r.NIC, r.Host, r.Injector, r.Behaviour = l.nic, l.host, l.inj, l.b
	return r
}
