package supernic

import (
	"context"
	"math"
	"slices"

	"nicprof/emu/snic"
	"nicprof/sim"
	"nicprof/supernic/fair"
)

// Options of a simulation.
type Options struct {
	Seed     uint64
	Progress func(done, total int) // of the simulated time; may be nil
}

const (
	// meterEpochs is how many epochs a load that falls is still believed.
	meterEpochs = 8
	// Packets that wait for a region in the scheduler hold the packet store of
	// all. With more than half of the board's buffer waiting, a region carries
	// less than its NTs could, since their credits do not suffice for their
	// latency: it counts for less, by backOff an epoch in which more come to wait,
	// and for more again by recovery an epoch without any.
	backOff  = 0.95
	recovery = 0.002
	// slack is how many times the load that a DAG was granted in full it may
	// bring in the next epoch, even where nothing is left to grant: else the
	// randomness of its arrivals would make it wait at the port for no gain.
	slack = 2
	// samples is how many times shares are noted in a run, at most once an epoch.
	samples = 200
)

// control is one run: the control plane over an emulated board.
type control struct {
	*manager
	board  *snic.Board
	epochs int

	meters  []*fair.Meter
	before  []snic.Volume // offered, by DAG, at the last epoch
	offered []float64     // in the last epoch, Gb/s
	believe []float64

	time      *fair.Time
	resources []fair.Resource
	regionOf  []int // by resource: the region, or -1
	dags      []fair.DAG
	grants    []fair.Grant

	waiting []int     // by region: packets in the scheduler at the last epoch
	carries []float64 // by region: the part of its NTs' rates that it carries
	shifted bool      // carries has changed since the last time step

	every   int             // epochs between two samples
	sampled sim.Time        // the last
	at      [][]snic.Volume // accepted and served, by DAG, at the last sample
	samples []sim.Time
	shares  []Share
}

// Simulate runs a scenario on the emulated board. An input fault says what of
// the scenario cannot be.
func Simulate(ctx context.Context, s *Scenario, o Options) (*Result, error) {
	c, err := newControl(s, o.Seed)
	if err != nil {
		return nil, err
	}
	end := sim.Time(s.DurationUS * float64(sim.Microsecond))
	actions := c.actions()
	next := s.Platform.Epoch
	for now := sim.Time(0); ; {
		for len(actions) > 0 && actions[0].at <= now {
			if err := actions[0].do(); err != nil {
				return nil, err
			}
			actions = actions[1:]
		}
		if c.changed {
			if err := c.divide(); err != nil {
				return nil, err
			}
		}
		if now >= end {
			break
		}
		until := min(end, next)
		if len(actions) > 0 {
			until = min(until, actions[0].at)
		}
		c.board.Run(until)
		now = until
		if now == next {
			if err := c.epochEnds(now); err != nil {
				return nil, err
			}
			next += s.Platform.Epoch
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if o.Progress != nil {
				o.Progress(int(now/sim.Microsecond), int(end/sim.Microsecond))
			}
		}
		if c.err != nil {
			return nil, c.err
		}
	}
	return c.result(end, o.Seed), nil
}

func newControl(s *Scenario, seed uint64) (*control, error) {
	nts := make([]snic.NT, len(s.NTs))
	for i, n := range s.NTs {
		nts[i] = snic.NT(n)
	}
	b, err := snic.New(snic.Config{Board: s.Platform.Board, NTs: nts, Policy: snic.PolicyOf(s.Policy.Scheduler), Seed: seed})
	if err != nil {
		return nil, err
	}
	memory, err := s.newMemory(seed)
	if err != nil {
		return nil, err
	}
	n := len(s.DAGs)
	c := &control{
		manager: newManager(s, b, memory), board: b,
		before: make([]snic.Volume, n), offered: make([]float64, n), believe: make([]float64, n), grants: make([]fair.Grant, n),
		at: [][]snic.Volume{make([]snic.Volume, n), make([]snic.Volume, n)},
	}
	for range c.regions {
		c.carries = append(c.carries, 1)
		c.waiting = append(c.waiting, 0)
	}
	for range s.DAGs {
		c.meters = append(c.meters, fair.NewMeter(meterEpochs))
	}
	epochs := s.DurationUS * float64(sim.Microsecond) / float64(s.Platform.Epoch)
	c.every = max(1, int(epochs/samples))
	return c, nil
}

// action is something that the scenario asks for at a time.
type action struct {
	at sim.Time
	do func() error
}

// actions returns what the scenario asks for, in order: deployments, PRs, loads.
func (c *control) actions() []action {
	var list []action
	us := func(t float64) sim.Time { return sim.Time(math.Round(t * float64(sim.Microsecond))) }
	for i, d := range c.s.DAGs {
		at := us(d.DeployUS)
		list = append(list, action{at, func() error {
			c.now = at
			c.deploy(i)
			return c.err
		}})
	}
	for _, p := range c.s.PR {
		at := us(p.AtUS)
		chain := make([]int, len(p.Chain))
		for k, name := range p.Chain {
			chain[k] = c.s.nt(name)
		}
		list = append(list, action{at, func() error {
			c.now = at
			c.operate(p.Region, chain)
			return c.err
		}})
	}
	until := make([]sim.Time, len(c.s.offers))
	last := make([]sim.Time, len(c.s.DAGs))
	for i := range last {
		last[i] = us(c.s.DurationUS)
	}
	for i, o := range slices.Backward(c.s.offers) {
		until[i], last[o.dag] = last[o.dag], o.at
	}
	for i, o := range c.s.offers {
		list = append(list, action{o.at, func() error { return c.board.Offer(o.dag, o.load(until[i])) }})
	}
	slices.SortStableFunc(list, func(a, b action) int { return int(min(1, max(-1, a.at-b.at))) })
	return list
}

// load is an offer as the board takes it. Captures repeat until then.
func (o *offer) load(until sim.Time) snic.Load {
	if o.frames == nil || o.gbps == 0 {
		return snic.Load{Gbps: o.gbps, Bytes: o.size.PacketBytes, Sizes: o.size.Sizes, Burst: o.burst}
	}
	var l snic.Load
	for at := sim.Time(0); ; {
		for _, f := range o.frames {
			if at += f.gap; o.at+at > until || len(l.Trace) >= maxFrames {
				return l
			}
			l.Trace = append(l.Trace, snic.Arrival{After: at, Bytes: f.bytes})
		}
	}
}

// epochEnds measures what DAGs were offered, lets the manager act on it, and sets
// the ingress limits of the next epoch.
func (c *control) epochEnds(now sim.Time) error {
	c.epochs++
	for i := range c.tenants {
		f := c.board.Flow(i)
		if f == nil {
			continue
		}
		c.offered[i] = f.Offered.Gbps(c.before[i], c.s.Platform.Epoch)
		c.before[i] = f.Offered
	}
	c.weigh()
	c.epoch(now, c.offered)
	for i := range c.tenants {
		c.believe[i] = c.meters[i].Observe(c.offered[i])
	}
	if err := c.divide(); err != nil {
		return err
	}
	for i, g := range c.grants {
		t := &c.tenants[i]
		c.throttled(t, t.bound && g.Held)
	}
	if c.epochs%c.every == 0 {
		c.sample(now)
	}
	return nil
}

// weigh follows what regions carry.
func (c *control) weigh() {
	buffer := int(c.s.Platform.Board.FPGA.Regions.Buffer.Value)
	for i := range c.regions {
		was, before := c.carries[i], c.waiting[i]
		c.waiting[i] = c.board.Region(i).Waiting
		switch {
		case c.regions[i].state != serving:
			c.carries[i] = 1
		case c.waiting[i] > buffer/2 && c.waiting[i] >= before:
			c.carries[i] *= backOff
		case c.waiting[i] == 0:
			c.carries[i] = min(1, was+recovery)
		}
		c.shifted = c.shifted || c.carries[i] != was
	}
}

// throttled notes when a DAG begins to get less than it is offered: not again
// before it has had all that it was offered for a monitor period.
func (c *control) throttled(t *tenant, held bool) {
	if held {
		if t.eased = 0; !t.limited {
			t.limited = true
			c.event(EventThrottle, nil, New, t)
		}
	} else if t.eased += c.s.Platform.Epoch; t.eased >= c.s.Platform.Monitor {
		t.limited = false
	}
}

// divide makes the space step if it is due, then the time step, and sets the
// ingress limits.
func (c *control) divide() error {
	if err := c.divideSpace(); err != nil {
		return err
	}
	if c.changed {
		c.layResources()
		if err := fair.CheckDesired(c.resources, c.dags); err != nil {
			return c.s.source.Failf("dags", "%v", err)
		}
	}
	if c.changed || c.shifted {
		if err := c.layTime(); err != nil {
			return err
		}
	}
	if err := c.time.Step(c.believe, c.grants); err != nil {
		return err
	}
	for i, g := range c.grants {
		t := &c.tenants[i]
		t.limit = g.Limit
		if !g.Held && !c.isolated() {
			t.limit = max(t.limit, slack*c.believe[i])
		}
		if t.bound {
			c.ingress(t, t.limit)
		}
	}
	return c.err
}

// layTime makes the time step anew, since a DAG's way has changed or what a
// region carries.
func (c *control) layTime() error {
	c.changed, c.shifted = false, false
	resources := slices.Clone(c.resources)
	for i, region := range c.regionOf {
		if region >= 0 {
			resources[i].Capacity *= c.carries[region]
		}
	}
	var weights []float64
	for _, u := range c.s.Users {
		weights = append(weights, *u.Weight)
	}
	var err error
	c.time, err = fair.NewTime(fair.Policy(c.s.Policy.Fairness), resources, weights, c.dags)
	return err
}

// layResources lists what DAGs share in time, the ports, the packet store and
// each NT of each region, and what of it a DAG uses. One without a way uses
// nothing yet.
func (c *control) layResources() {
	p := &c.s.Platform
	f := p.Board.FPGA
	c.resources = []fair.Resource{
		{Name: "ingress", Unit: "Gb/s", Capacity: p.LinkGbps},
		{Name: "egress", Unit: "Gb/s", Capacity: p.LinkGbps},
		{Name: "packet store", Unit: "B", Capacity: (f.Store.Cells.Value - f.Store.Threshold.Value) * f.Store.CellBytes.Value},
	}
	c.regionOf = []int{-1, -1, -1}
	first := make([]int, len(c.regions))
	for i := range c.regions {
		first[i] = len(c.resources)
		for _, nt := range c.regions[i].chain {
			c.resources = append(c.resources, fair.Resource{Name: c.ntName(i, nt), Unit: "Gb/s", Capacity: c.ntGbps(nt)})
			c.regionOf = append(c.regionOf, i)
		}
	}
	c.dags = make([]fair.DAG, len(c.tenants))
	for i := range c.tenants {
		t := &c.tenants[i]
		d := fair.DAG{Name: c.s.DAGs[i].Name, User: t.user, Desired: c.s.DAGs[i].IngressGbps, Use: make([]float64, len(c.resources))}
		if t.legs != nil {
			stay := float64(p.Cycle) * (f.Cycles() + float64(t.cycles)) / float64(sim.Second) // in the store, s
			d.Use[0], d.Use[1], d.Use[2] = 1, 1, stay*1e9/8
			for k := range c.regions {
				r := &c.regions[k]
				addLoads(d.Use[first[k]:first[k]+len(r.chain)], r.chain, k, t.legs, 1)
			}
		}
		c.dags[i] = d
	}
}

// sample notes what each user had of each resource since the last sample.
func (c *control) sample(now sim.Time) {
	length := now - c.sampled
	c.sampled = now
	c.samples = append(c.samples, now)
	rates := make([]float64, len(c.tenants))
	for i := range c.tenants {
		if f := c.board.Flow(i); f != nil {
			rates[i] = f.Served.Gbps(c.at[1][i], length)
			c.at[1][i] = f.Served
		}
	}
	mine := make([]float64, len(rates))
	for u := range c.s.Users {
		for i := range mine {
			if mine[i] = rates[i]; c.tenants[i].user != u {
				mine[i] = 0
			}
		}
		for r, used := range c.time.Used(mine) {
			if used > 0 {
				c.shares = append(c.shares, Share{At: now, User: u, Resource: c.resources[r].Name, Share: used / c.resources[r].Capacity})
			}
		}
	}
}
