package snic

import (
	"context"
	"fmt"

	"nicprof/board"
	emu "nicprof/emu/snic"
	"nicprof/experiments"
	"nicprof/report"
	"nicprof/sim"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "snic/latency", Paper: paper, Title: "latency through the board: core, scheduler, whole; ASIC projection", Run: latency,
	})
}

// passage is what packets take that meet no other.
type passage struct {
	core, pass, phy sim.Time
}

func passageOf(name string) (p passage, b *board.Board, err error) {
	empty, err := inChains(name, nil)
	if err != nil {
		return p, nil, err
	}
	two := dummies(10, 10)
	once, err := inChains(name, two, []int{0, 1})
	if err != nil {
		return p, nil, err
	}
	twice, err := inChains(name, two, []int{0}, []int{1})
	if err != nil {
		return p, nil, err
	}
	var t [3]sim.Time
	for i, r := range []rig{empty, once, twice} {
		if t[i], err = r.alone(); err != nil {
			return p, nil, err
		}
	}
	e, err := emu.New(empty.Config)
	if err != nil {
		return p, nil, err
	}
	return passage{core: t[0], pass: t[2] - t[1], phy: e.PHY()}, empty.Board, nil
}

func latency(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("latency")
	if err != nil {
		return report.Result{}, err
	}
	res := result()
	stages := report.Table{Title: "Where the core's time goes (board file)", Columns: []string{"stage", "cycles", "FPGA, ns", "ASIC, ns"}}
	fpga, b, err := passageOf(boardName)
	if err != nil {
		return res, err
	}
	asic, a, err := passageOf(asicName)
	if err != nil {
		return res, err
	}
	for _, s := range b.FPGA.Stages {
		c := s.Cycles.Value
		stages.Add(s.Name, c, 1000*c/b.ClockMHz.Value, 1000*c/a.ClockMHz.Value)
	}
	claims.Measured("total", us(fpga.core+fpga.phy), "")
	claims.Measured("core", ns(fpga.core), "")
	claims.Measured("scheduler", ns(fpga.pass), "")
	claims.Measured("scheduler-cycles", cycles(b, fpga.pass), "")
	claims.Measured("core-asic", ns(asic.core), "")
	claims.Measured("scheduler-asic", ns(asic.pass), "")
	claims.Measured("core-share", 100*float64(fpga.core)/float64(fpga.core+fpga.phy), "")

	// Under load, through one NT of a cycle.
	sizes, err := facebook()
	if err != nil {
		return res, err
	}
	loads := []float64{5, 20, 40, 60, 80, 90, 95}
	if env.Scale == experiments.Full {
		loads = nil
		for g := 5.0; g <= 100; g += 5 {
			loads = append(loads, g)
		}
	}
	type point struct{ p50, p99 float64 }
	points := make([]point, len(loads))
	rig, err := inChains(boardName, dummies(1), []int{0})
	if err != nil {
		return res, err
	}
	err = env.Each(ctx, len(loads), func(_ context.Context, i int) error {
		r := rig
		r.Seed = env.Seed
		b, err := r.start(emu.Load{Gbps: loads[i], Sizes: sizes})
		if err != nil {
			return err
		}
		b.Run(100 * sim.Microsecond)
		l := &b.Flow(0).Latency
		l.Reset()
		b.Run(span(env, sim.Millisecond, 20*sim.Millisecond))
		points[i] = point{us(l.Quantile(0.5) + b.PHY()), us(l.Quantile(0.99) + b.PHY())}
		return nil
	})
	if err != nil {
		return res, err
	}
	res.Data.Columns = []string{"gbps", "p50_us", "p99_us"}
	median, tail := report.Series{Name: "median", Style: 0}, report.Series{Name: "99th percentile", Style: 1}
	for i, g := range loads {
		res.Data.Add(g, points[i].p50, points[i].p99)
		median.Points = append(median.Points, report.Point{X: g, Y: points[i].p50})
		tail.Points = append(tail.Points, report.Point{X: g, Y: points[i].p99})
	}
	unloaded := report.Series{Name: "published, no load", Kind: report.Markers, Style: 4, Points: []report.Point{{X: 0, Y: *claims.Find("total").Published}}}
	res.Claims, res.Tables = claims, []report.Table{stages}
	res.Figure = report.Figure{
		Panels: []report.Panel{{
			X:      report.Axis{Label: "offered, packets of the Facebook distribution", Unit: "Gb/s"},
			Y:      report.Axis{Label: "latency through the board", Unit: "us"},
			Series: []report.Series{median, tail, unloaded},
		}},
		Caption: "lines: " + backend + ", marker: published",
	}
	res.Notes = []string{
		fmt.Sprintf("The core's %.0f cycles and the scheduler's 16 are published and in the board file; how the rest divides between stages is not. That the stages, the passes and PHY and MAC add up is the mechanism's.", cycles(b, fpga.core)),
		"The ASIC projection is the same cycles at 2 GHz, the clock that the paper's 8 ns for 16 cycles imply: 24.5 ns for the core, printed as 25.",
		"Under load: one NT of one cycle, Poisson arrivals, packets of the messages of Facebook's Hadoop cluster (the published distribution behind it is not named more closely).",
	}
	return res, nil
}
