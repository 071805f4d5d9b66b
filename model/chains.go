package model

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"nicprof/internal/fault"
	"nicprof/program"
)

// Chains is the law of a board that runs chains of network tasks (NTs) in
// regions: what a packet takes of its data path, of the central scheduler, and of
// the credits between the scheduler and the NTs. Times are µs.
type Chains struct {
	BeatBytes int   `json:"beat_bytes"`
	BeatUS    Value `json:"beat_us"` // of the data path
	GapUS     Value `json:"gap_us"`  // between two packets on it

	IntervalUS Value `json:"interval_us"` // of the scheduler, a pass
	// A credit is used again LoopUS after the NT's own time, when no other packet
	// is about. Packets under way beyond AheadUS of the data path's time make its
	// return wait, YieldUS at most.
	LoopUS  Value `json:"loop_us"`
	AheadUS Value `json:"ahead_us"`
	YieldUS Value `json:"yield_us"`

	// Latency of a packet alone: without an NT, PHY and MAC included; a further
	// pass through the scheduler; a cycle of an NT; an NT passed by.
	CoreUS  Value `json:"core_us"`
	PassUS  Value `json:"pass_us"`
	CycleUS Value `json:"cycle_us"`
	SkipUS  Value `json:"skip_us"`

	ConfigureUS Value `json:"configure_us"`      // a region serves nothing for so long
	SwitchUS    Value `json:"context_switch_us"` // the same when it ran something before

	Regions int             `json:"regions"`
	Credits int             `json:"credits"`            // of an NT, unless a program says
	PerTask []string        `json:"per_task,omitempty"` // bases by which every NT is a pass
	NTs     []program.Stage `json:"nts,omitempty"`      // known by name
}

func (c *Chains) check(finite func(string, Value) error) error {
	var errs []error
	if c.BeatBytes < 1 || c.Regions < 1 || c.Credits < 1 {
		errs = append(errs, fmt.Errorf("chains: beats of %d B, %d regions, %d credits; expected at least 1", c.BeatBytes, c.Regions, c.Credits))
	}
	for what, v := range map[string]Value{"beat_us": c.BeatUS, "interval_us": c.IntervalUS, "loop_us": c.LoopUS, "core_us": c.CoreUS} {
		if v.Value <= 0 {
			errs = append(errs, fmt.Errorf("chains: %s is %g; expected above 0", what, v.Value))
		}
	}
	for _, v := range []Value{c.GapUS, c.AheadUS, c.YieldUS, c.PassUS, c.CycleUS, c.SkipUS, c.ConfigureUS, c.SwitchUS} {
		errs = append(errs, finite("chains", v))
	}
	return errors.Join(errs...)
}

// Packet returns the time of a packet of so many bytes on the data path, µs.
func (c *Chains) Packet(bytes float64) float64 {
	return math.Ceil(bytes/float64(c.BeatBytes))*c.BeatUS.Value + c.GapUS.Value
}

// Stretch returns what packets under way, one a credit, add to the credit loop, µs.
func (c *Chains) Stretch(credits int, bytes float64) float64 {
	return min(max(float64(credits)*c.Packet(bytes)-c.AheadUS.Value, 0), c.YieldUS.Value)
}

// Passes returns how often a chain that has credits enough takes a packet through
// the scheduler.
func (c *Chains) Passes(p *Program) int {
	if runs, _ := c.tasks(p); slices.Contains(c.PerTask, p.Base) && !p.Parallel {
		return max(1, len(runs))
	}
	return 1
}

// tasks returns the NTs that packets run through, with what is known of them by
// name, and how many they pass by.
func (c *Chains) tasks(p *Program) (runs []program.Stage, skipped int) {
	for _, s := range p.Chain {
		if s.Skip {
			skipped++
			continue
		}
		if s.Cycles == 0 {
			if at := slices.IndexFunc(c.NTs, func(n program.Stage) bool { return n.Name == s.Name }); at >= 0 {
				known := c.NTs[at]
				s.Cycles, s.II, s.Gbps = known.Cycles, cmp.Or(s.II, known.II), cmp.Or(s.Gbps, known.Gbps)
			}
		}
		runs = append(runs, s)
	}
	return runs, skipped
}

// Unloaded returns the latency of a packet that meets no other, µs.
func (c *Chains) Unloaded(p *Program) float64 {
	runs, skipped := c.tasks(p)
	cycles := 0
	for _, s := range runs {
		if p.Parallel {
			cycles = max(cycles, s.Cycles)
		} else {
			cycles += s.Cycles
		}
	}
	t := c.CoreUS.Value + float64(cycles)*c.CycleUS.Value + float64(c.Passes(p)-1)*c.PassUS.Value
	if !p.Parallel {
		t += float64(skipped) * c.SkipUS.Value
	}
	return t
}

// chains predicts a chain: the tightest of the data path, the scheduler, the
// credits and the NTs.
func (m *Model) chains(p Program, t Traffic, o Options) (Prediction, error) {
	c := m.Chains
	if len(p.Accesses) > 0 || len(p.Locks) > 0 || len(p.Stateless) > 0 {
		return Prediction{}, fault.Inputf("board %s runs chains of network tasks; it has no cores for accesses, locks or stateless operations", m.Board)
	}
	if o.Rule != "" && o.Rule != RuleResources {
		return Prediction{}, fault.Inputf("rule %q is for accesses; chains of network tasks have the rule %s", o.Rule, RuleResources)
	}
	if err := p.Validate(); err != nil {
		return Prediction{}, err
	}
	if p.Base == "" {
		p.Base = m.Bases[0].Name
	}
	at := slices.IndexFunc(m.Bases, func(b Base) bool { return b.Name == p.Base })
	if at < 0 {
		return Prediction{}, fault.Inputf("base: the model of board %s has no base %q", m.Board, p.Base)
	}
	instances := cmp.Or(o.Cores, m.Bases[at].Cores)
	runs, _ := c.tasks(&p)
	for i, s := range p.Chain {
		if s.Cycles == 0 && !s.Skip && !slices.ContainsFunc(c.NTs, func(n program.Stage) bool { return n.Name == s.Name }) {
			return Prediction{}, fault.Inputf("chain[%d]: the model knows no network task %q; give its cycles", i, s.Name)
		}
	}
	regions := instances
	if p.Parallel {
		regions *= len(runs)
	}
	if instances < 1 || regions > c.Regions {
		return Prediction{}, fault.Inputf("%d instances take %d regions; board %s has %d", instances, regions, m.Board, c.Regions)
	}
	bytes := packetBytes(p, t)
	out := Prediction{Board: m.Board, Model: m.ID(), Rule: RuleResources, Program: p.Name, Seed: m.Seed, UnloadedUS: c.Unloaded(&p)}
	rel := map[string]float64{}
	limit := func(resource string, mpps float64, v ...Value) {
		out.Explain = append(out.Explain, Term{Resource: resource, Mpps: mpps})
		for _, v := range v {
			rel[resource] = max(rel[resource], v.Rel())
		}
	}
	limit("bus", 1/c.Packet(bytes), c.BeatUS, c.GapUS)
	limit("scheduler", 1/(float64(c.Passes(&p))*c.IntervalUS.Value), c.IntervalUS)
	credits := cmp.Or(p.Credits, c.Credits)
	sum := 0.0
	for _, s := range runs {
		own := float64(s.Cycles) * c.CycleUS.Value
		if sum += own; !p.Parallel && c.Passes(&p) == 1 {
			own = sum // the credit is taken with the chain's first
		}
		limit("credits of "+s.Name, float64(instances*credits)/(c.LoopUS.Value+own+c.Stretch(credits, bytes)), c.LoopUS)
		busy := float64(max(1, s.II)) * c.CycleUS.Value
		if s.Gbps > 0 {
			busy = max(busy, bytes*8e-3/s.Gbps)
		}
		limit(s.Name, float64(instances)/busy, c.CycleUS)
	}
	slices.SortStableFunc(out.Explain, func(a, b Term) int { return cmp.Compare(a.Mpps, b.Mpps) })
	first := out.Explain[0]
	out.Mpps, out.Bottleneck = first.Mpps, first.Resource
	if t.RateMpps > 0 && t.RateMpps < out.Mpps {
		out.Mpps, out.Bottleneck = t.RateMpps, "offered rate"
	} else if t.RateMpps > 0 {
		out.DroppedMpps = t.RateMpps - out.Mpps
	}
	half := rel[first.Resource]
	if len(m.Rules) > 0 {
		half = max(half, m.Rules[0].P95Pct/100)
	}
	out.Low, out.High = out.Mpps*(1-half), out.Mpps*(1+half)
	if out.Bottleneck == "offered rate" {
		out.Low, out.High = out.Mpps, out.Mpps
	} else if len(runs) > 1 && !p.Parallel && c.Passes(&p) == 1 && slices.ContainsFunc(runs, func(s program.Stage) bool { return first.Resource == "credits of "+s.Name }) {
		out.Low = min(out.Low, 1/(float64(len(runs))*c.IntervalUS.Value), out.Mpps/float64(len(runs)))
		out.Warnings = append(out.Warnings, "the chain is short of credits: saturated, its packets come back to the scheduler and take more of its time than is counted here; give it more credits or offer less")
	}
	if o.Brief {
		out.Explain = nil
		return out, nil
	}
	out.Utilisation = map[string]float64{}
	for i := range out.Explain {
		e := &out.Explain[i]
		e.Share = out.Mpps / e.Mpps
		out.Utilisation[e.Resource] = e.Share
	}
	return out, nil
}

// packetBytes returns the mean size of a packet.
func packetBytes(p Program, t Traffic) float64 {
	switch {
	case t.Sizes != nil:
		return t.Sizes.Mean()
	case t.PacketBytes > 0:
		return float64(t.PacketBytes)
	case p.PacketBytes > 0:
		return float64(p.PacketBytes)
	}
	return minPacket
}
