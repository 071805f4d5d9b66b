package snic

import (
	"context"

	"nicprof/board"
	"nicprof/emu"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// Packets of a run: served before it measures, so that the packet store and the
// buffer of the port have filled where there is too much traffic, and measured.
const (
	warmPackets     = 4000
	measuredPackets = 3000
)

// Run emulates a chain of network tasks under traffic: Config.Cores instances of
// it, or the base's. Latencies are of the whole board, PHY and MAC included. The
// program must have been resolved against the board and have passed its check.
func Run(ctx context.Context, bd *board.Board, p program.Program, t traffic.Traffic, c emu.Config) (*emu.Result, error) {
	base, err := bd.Base(p.Base)
	if err != nil {
		return nil, err
	}
	instances := int(base.Cores.Value)
	if c.Cores > 0 {
		instances = c.Cores
	}
	cfg := Config{Board: bd, Credits: p.Credits, Policy: PolicyOf(base.Name), Seed: c.Seed}
	r := layOut(&cfg, bd.FPGA.StagesOf(p.Chain), p.Parallel, instances)
	b, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if err := b.SetRoute(0, r); err != nil {
		return nil, err
	}
	l := loadOf(p, t)
	if err := b.Offer(0, l); err != nil {
		return nil, err
	}
	m := &emu.Meter{}
	want := c.Packets
	if want == 0 {
		want = measuredPackets
	}
	length := max(1, c.Length)
	m.Expect(want*length, c.Batch, 0)
	b.meter = m
	slice := 10 * sim.Microsecond
	if t.RateMpps > 0 {
		slice = max(slice, sim.Time(50/t.RateMpps*float64(sim.Microsecond)))
	}
	for b.Flow(0).Served.Packets < int64(warmPackets*length) {
		if err := b.slice(ctx, slice); err != nil {
			return nil, err
		}
	}
	before := *b.Flow(0)
	resources := b.Resources(nil)
	m.Begin(b.Now())
	for !m.Full() {
		if err := b.slice(ctx, slice); err != nil {
			return nil, err
		}
	}
	m.Finish(b.Now())
	for i, u := range b.Resources(nil) {
		// A full store is what some other resource makes of too much traffic.
		if u.Name != storeName {
			m.Use(u.Name, u.Busy-resources[i].Busy)
		}
	}
	after := b.Flow(0)
	if t.RateMpps > 0 {
		m.Offered = after.Offered.Packets - before.Offered.Packets
		for i, n := range after.Dropped {
			m.Dropped += n - before.Dropped[i]
		}
	}
	if p.Configure != "" {
		if m.Outage, err = b.outage(ctx, bd.FPGA, p.Configure, slice); err != nil {
			return nil, err
		}
	}
	return &m.Result, nil
}

// slice lets time pass unless the run was interrupted.
func (b *Board) slice(ctx context.Context, d sim.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.Run(b.Now() + d)
	return nil
}

// layOut puts instances of a chain into regions: the whole chain into one, or
// its NTs side by side.
func layOut(c *Config, chain []program.Stage, parallel bool, instances int) Route {
	if len(chain) == 0 {
		return nil
	}
	var whole []int
	var run uint64
	for i, s := range chain {
		c.NTs = append(c.NTs, NT{Name: s.Name, Cycles: s.Cycles, II: s.II, Gbps: s.Gbps})
		whole = append(whole, i)
		if !s.Skip {
			run |= 1 << i
		}
	}
	add := func(in Branch, chain []int, run uint64) Branch {
		c.Regions = append(c.Regions, chain)
		return append(in, Instance{Region: len(c.Regions) - 1, Run: run})
	}
	var stage Stage
	if parallel {
		for i, s := range chain {
			if s.Skip {
				continue
			}
			var br Branch
			for range instances {
				br = add(br, []int{i}, 1)
			}
			stage = append(stage, br)
		}
		return Route{stage}
	}
	var br Branch
	for range instances {
		br = add(br, whole, run)
	}
	return Route{{br}}
}

// loadOf returns the packets of a program under traffic.
func loadOf(p program.Program, t traffic.Traffic) Load {
	l := Load{Saturate: t.RateMpps == 0, Bytes: p.PacketBytes, Sizes: t.Sizes}
	if t.PacketBytes > 0 {
		l.Bytes = t.PacketBytes
	}
	mean := float64(l.Bytes)
	if l.Sizes != nil {
		mean = l.Sizes.Mean()
	}
	l.Gbps = t.RateMpps * mean * 8 / 1000
	return l
}

// outage configures region 0 with the chain that it has and returns the longest
// time in which nothing was served meanwhile.
func (b *Board) outage(ctx context.Context, f *board.FPGA, how string, slice sim.Time) (sim.Time, error) {
	b.silence = 0
	if how == program.ContextSwitch {
		if err := b.Stop(0); err != nil {
			return 0, err
		}
		for b.Region(0).Inside > 0 {
			b.Run(b.Now() + sim.Microsecond/10)
		}
		b.Run(b.Now() + sim.Time(f.Regions.SaveUS.Value*float64(sim.Microsecond)))
	}
	if err := b.Launch(0, b.Region(0).Chain, sim.Time(f.Regions.PRms.Value*float64(sim.Millisecond))); err != nil {
		return 0, err
	}
	if err := b.SetRoute(0, Route{{{{Region: 0, Run: All(len(b.Region(0).Chain))}}}}); err != nil {
		return 0, err
	}
	for b.Region(0).State != Running {
		if err := b.slice(ctx, slice); err != nil {
			return 0, err
		}
	}
	// As many slices again for the first packets to come out.
	for range 10 {
		if err := b.slice(ctx, slice); err != nil {
			return 0, err
		}
	}
	return b.silence, nil
}
