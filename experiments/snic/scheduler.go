package snic

import (
	"context"
	"fmt"
	"slices"

	emu "nicprof/emu/snic"
	"nicprof/experiments"
	"nicprof/report"
	"nicprof/sim"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "snic/scheduler", Paper: paper, Title: "passes through the scheduler a packet and saturation rate by length of a chain", Run: scheduler,
	})
}

func scheduler(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("scheduler")
	if err != nil {
		return report.Result{}, err
	}
	sizes, err := facebook()
	if err != nil {
		return report.Result{}, err
	}
	lengths := []int{1, 2, 4, 7}
	if env.Scale == experiments.Full {
		lengths = through(1, 9)
	}
	curves := []struct {
		name   string
		id     string
		policy emu.Policy
		load   emu.Load
	}{
		{"sNIC, Facebook's packets", "snic-fb", emu.Reserve, emu.Load{Sizes: sizes}},
		{"PANIC, Facebook's packets", "panic-fb", emu.PANIC, emu.Load{Sizes: sizes}},
		{"sNIC, 64 B", "snic-64", emu.Reserve, emu.Load{Bytes: 64}},
		{"PANIC, 64 B", "panic-64", emu.PANIC, emu.Load{Bytes: 64}},
	}
	type point struct{ gbps, mpps, passes float64 }
	points := make([]point, len(curves)*len(lengths))
	err = env.Each(ctx, len(points), func(_ context.Context, i int) error {
		c, n := curves[i/len(lengths)], lengths[i%len(lengths)]
		r, err := inChains(boardName, dummies(slices.Repeat([]int{16}, n)...), through(0, n))
		if err != nil {
			return err
		}
		r.Policy, r.Seed = c.policy, env.Seed
		p := &points[i]
		p.gbps, p.mpps, p.passes, err = r.saturated(c.load, span(env, 500*sim.Microsecond, 4*sim.Millisecond))
		return err
	})
	if err != nil {
		return report.Result{}, err
	}

	res := result()
	res.Data.Columns = []string{"policy_and_load", "nts", "passes", "mpps", "gbps"}
	passes := report.Panel{Title: "passes a packet", X: report.Axis{Label: "NTs in the chain"}, Y: report.Axis{Label: "passes through the scheduler"}}
	rate := report.Panel{Title: "saturation", X: report.Axis{Label: "NTs in the chain"}, Y: report.Axis{Label: "throughput", Unit: "Gb/s"}}
	longest := map[string]point{}
	shortest := map[string]point{}
	for i, c := range curves {
		p := report.Series{Name: c.name, Style: i}
		g := report.Series{Name: c.name, Style: i}
		for k, n := range lengths {
			v := points[i*len(lengths)+k]
			p.Points = append(p.Points, report.Point{X: float64(n), Y: v.passes})
			g.Points = append(g.Points, report.Point{X: float64(n), Y: v.gbps})
			res.Data.Add(c.name, n, v.passes, v.mpps, v.gbps)
			if n == 7 {
				longest[c.id] = v
			}
			if n == 1 {
				shortest[c.id] = v
			}
		}
		passes.Series = append(passes.Series, p)
		rate.Series = append(rate.Series, g)
	}
	claims.Measured("snic-passes", longest["snic-fb"].passes, "")
	claims.Measured("panic-passes", longest["panic-fb"].passes, "")
	claims.Measured("snic-holds", longest["snic-fb"].gbps/shortest["snic-fb"].gbps, "")
	claims.Measured("gain-fb", longest["snic-fb"].gbps/longest["panic-fb"].gbps, "")
	claims.Measured("gain-64", longest["snic-64"].mpps/longest["panic-64"].mpps, "")
	claims.Measured("snic-64-passes", longest["snic-64"].passes, "")
	res.Claims = claims
	res.Figure = report.Figure{Panels: []report.Panel{passes, rate}, Caption: "emulated; the paper prints no numbers for it"}
	b, err := loadBoard(boardName, 1)
	if err != nil {
		return res, err
	}
	res.Notes = []string{
		"NTs of 16 cycles in one region, packets back to back. By PANIC every NT has a port of its own and every packet passes the scheduler once for each NT. For the Facebook distribution the scheduler has the time, and both ways fill the bus.",
		fmt.Sprintf("With packets of 64 B the %g credits of an NT run out: a chain's last credit is away for the whole chain. The scheduler then falls back to PANIC's order for what has none; passes rise to PANIC's, and the scheduler bounds both at the same rate.", b.FPGA.Scheduler.Credits.Value),
	}
	return res, nil
}
