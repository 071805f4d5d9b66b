package cora

import (
	"context"
	"fmt"

	"nicprof/experiments"
	"nicprof/internal/table"
	"nicprof/program"
	"nicprof/report"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "cora/stateless", Paper: paper, Title: "section 2.2: cost of stateless operations", Run: stateless,
	})
}

// calls are the counts of each costly kind that a figure measures; the largest
// takes a packet to some 4000 cycles.
var calls = map[string]int{program.Modulo: 8, program.Hash: 4, program.Multiply: 300, program.Checksum: 40, program.Header: 40}

// ioBound is the share of the bare rate above which the packet I/O, not the
// cores, may set a rate, so that it says nothing about cycles.
const ioBound = 0.97

func stateless(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("stateless")
	if err != nil {
		return report.Result{}, err
	}
	b, err := newBench(env, "cora/stateless")
	if err != nil {
		return report.Result{}, err
	}
	board := b.driver.Board()
	step, parts := 100, 4
	if env.Scale == experiments.Full {
		step, parts = 25, 8
	}
	type run struct {
		kind  string
		count int
		index int
	}
	var runs []run
	bare := b.add("bare", program.Program{Base: "forward"})
	for _, kind := range program.Kinds {
		if _, ok := board.Stateless[kind]; !ok {
			continue
		}
		counts := every(step, step, 800)
		if n, ok := calls[kind]; ok {
			counts = every(max(1, n/parts), max(1, n/parts), n)
		}
		for _, n := range counts {
			p := program.Program{Base: "forward", Stateless: program.Stateless{kind: float64(n)}}
			runs = append(runs, run{kind, n, b.add(fmt.Sprintf("%s=%d", kind, n), p)})
		}
	}
	res, err := b.run(ctx)
	if err != nil {
		return res, err
	}

	base, err := board.Base("forward")
	if err != nil {
		return res, err
	}
	cycles := func(mpps float64) float64 { return base.Cores.Value * board.ClockMHz.Value / mpps }
	bareMpps := b.samples[bare].Mpps
	rate := report.Series{Name: "emulated, arithmetic", Points: []report.Point{b.point(0, bare)}}
	res.Data.Columns = []string{"kind", "operations", "mpps", "mpps_low", "mpps_high", "cycles_per_packet"}
	res.Data.Add("none", 0, bareMpps, b.samples[bare].Low, b.samples[bare].High, cycles(bareMpps))
	costs := report.Table{Title: "Cycles an operation", Columns: []string{"kind", "emulated", "base program", "points"}}
	cost := report.Panel{
		Title: "cycles a packet by number of calls",
		X:     report.Axis{Label: "calls", Unit: "per packet"}, Y: report.Axis{Label: "microengine time", Unit: "cycles per packet"},
	}
	for _, kind := range program.Kinds {
		var x, y []float64
		line := report.Series{Name: "emulated, " + kind, Style: 1 + len(cost.Series)}
		for _, r := range runs {
			if r.kind != kind {
				continue
			}
			s := b.samples[r.index]
			res.Data.Add(kind, r.count, s.Mpps, s.Low, s.High, cycles(s.Mpps))
			line.Points = append(line.Points, report.Point{X: float64(r.count), Y: cycles(s.Mpps)})
			if s.Mpps < ioBound*bareMpps {
				x, y = append(x, float64(r.count)), append(y, cycles(s.Mpps))
			}
			if kind == program.ALU {
				rate.Points = append(rate.Points, b.point(float64(r.count), r.index))
				if r.count == 400 {
					claims.measured("ops-400", s.Mpps, "")
				}
			}
		}
		if len(x) < 2 {
			continue
		}
		intercept, slope := leastSquares(x, y)
		costs.Add(kind, slope, intercept, len(x))
		switch kind {
		case program.ALU:
			claims.measured("alu-cycles", slope, "")
			claims.measured("base-cycles", intercept, "")
		case program.Modulo, program.Hash:
			claims.measured(kind+"-cycles", slope, "")
			cost.Series = append(cost.Series, line)
		}
	}
	claims.measured("forward", bareMpps, "")
	claims.measured("forward-netmon", bareMpps, "")

	value := func(id string) float64 { return *claims.find(id).Published }
	for i, kind := range []string{program.Modulo, program.Hash} {
		law := report.Series{Name: "published cost (Netmon), " + kind, Kind: report.Markers, Style: 1 + i}
		for n := 1; n <= calls[kind]; n++ {
			law.Points = append(law.Points, report.Point{X: float64(n), Y: value("base-cycles") + float64(n)*value(kind+"-cycles")})
		}
		cost.Series = append(cost.Series, law)
	}
	res.Claims = claims
	res.Tables = []report.Table{costs}
	res.Figure = report.Figure{
		Caption: "lines: emulated, markers: published",
		Panels: []report.Panel{{
			Title: "forwarding rate by number of arithmetic operations",
			X:     report.Axis{Label: "operations", Unit: "per packet"}, Y: report.Axis{Label: "throughput", Unit: "Mpps"},
			Series: []report.Series{rate, {Name: "published (Cora)", Kind: report.Markers, Points: []report.Point{
				{X: 0, Y: value("forward")}, {X: 400, Y: value("ops-400")},
			}}},
		}, cost},
	}
	res.Notes = []string{
		"A cost is the slope of cycles a packet (cores · clock / rate) over the count, by least squares over the rates below " +
			table.Number(100*ioBound) + " % of the bare one, where the cores and not the packet I/O set the rate.",
		"The costs by kind are parameters of the board file, so that their agreement shows that the mechanism carries them and no more; the rate at other counts is the emulator's.",
	}
	return res, nil
}

// leastSquares returns intercept and slope of y over x, whose values are not
// all equal.
func leastSquares(x, y []float64) (intercept, slope float64) {
	var mx, my, xx, xy float64
	n := float64(len(x))
	for i := range x {
		mx += x[i] / n
		my += y[i] / n
	}
	for i := range x {
		xx += (x[i] - mx) * (x[i] - mx)
		xy += (x[i] - mx) * (y[i] - my)
	}
	slope = xy / xx
	return my - slope*mx, slope
}
