package cora

import (
	"context"
	"fmt"

	"nicprof/experiments"
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

// counted is a measurement of count operations of a kind a packet.
type counted struct {
	kind  string
	count int
	index int // of the sample
}

// planStateless adds every kind that the board has, at several counts.
func planStateless(b *bench) []counted {
	step, parts := 100, 4
	if b.env.Scale == experiments.Full {
		step, parts = 25, 8
	}
	var all []counted
	for _, kind := range program.Kinds {
		if _, ok := b.driver.Board().Stateless[kind]; !ok {
			continue
		}
		counts := every(step, step, 800)
		if n, ok := calls[kind]; ok {
			counts = every(max(1, n/parts), max(1, n/parts), n)
		}
		for _, n := range counts {
			p := program.Program{Base: "forward", Stateless: program.Stateless{kind: float64(n)}}
			all = append(all, counted{kind, n, b.add(fmt.Sprintf("%s=%d", kind, n), p)})
		}
	}
	return all
}

func stateless(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("stateless")
	if err != nil {
		return report.Result{}, err
	}
	b, err := newBench(env, "cora/stateless")
	if err != nil {
		return report.Result{}, err
	}
	bare := b.add("bare", program.Program{Base: "forward"})
	runs := planStateless(b)
	res, err := b.run(ctx)
	if err != nil {
		return res, err
	}
	base, err := b.driver.Board().Base("forward")
	if err != nil {
		return res, err
	}
	cycles := func(mpps float64) float64 { return base.Cores.Value * b.driver.Board().ClockMHz.Value / mpps }

	res.Data.Columns = []string{"kind", "operations", "mpps", "mpps_low", "mpps_high", "cycles_per_packet"}
	datum := func(kind string, count, index int) {
		s := b.samples[index]
		res.Data.Add(kind, count, s.Mpps, s.Low, s.High, cycles(s.Mpps))
	}
	bareMpps := b.samples[bare].Mpps
	claims.measured("forward", bareMpps, "")
	claims.measured("forward-netmon", bareMpps, "")
	datum("none", 0, bare)
	rate := []report.Point{b.point(0, bare)}
	lines := map[string][]report.Point{} // cycles by count
	for _, r := range runs {
		datum(r.kind, r.count, r.index)
		mpps := b.samples[r.index].Mpps
		lines[r.kind] = append(lines[r.kind], report.Point{X: float64(r.count), Y: cycles(mpps)})
		if r.kind == program.ALU {
			rate = append(rate, b.point(float64(r.count), r.index))
			if r.count == 400 {
				claims.measured("ops-400", mpps, "")
			}
		}
	}

	costs := report.Table{Title: "Cycles an operation", Columns: []string{"kind", "measured", "base program", "points"}}
	for _, kind := range program.Kinds {
		intercept, slope, n := costOf(lines[kind], cycles(ioBound*bareMpps))
		if n < 2 {
			continue
		}
		costs.Add(kind, slope, intercept, n)
		switch kind {
		case program.ALU:
			claims.measured("alu-cycles", slope, "")
			claims.measured("base-cycles", intercept, "")
		case program.Modulo, program.Hash:
			claims.measured(kind+"-cycles", slope, "")
		}
	}
	res.Claims = claims
	res.Tables = []report.Table{costs}
	res.Figure = statelessPicture(rate, lines, claims)
	res.Figure.Caption = "lines: " + res.Backend + ", markers: published"
	res.Notes = []string{
		fmt.Sprintf("A cost is the slope of cycles a packet (cores · clock / rate) over the count, by least squares over the rates below %g %% of the bare one, where the cores and not the packet I/O set the rate.", 100*ioBound),
		"The costs by kind are parameters of the board file, so that their agreement shows that the mechanism carries them and no more; the rate at other counts is the emulator's.",
	}
	return res, nil
}

// costOf fits a line through the points above least cycles, by least squares.
// n is their number; with fewer than two there is no line.
func costOf(points []report.Point, least float64) (intercept, slope float64, n int) {
	var mx, my, xx, xy float64
	for _, p := range points {
		if p.Y > least {
			n++
			mx += p.X
			my += p.Y
		}
	}
	mx, my = mx/float64(n), my/float64(n)
	for _, p := range points {
		if p.Y > least {
			xx += (p.X - mx) * (p.X - mx)
			xy += (p.X - mx) * (p.Y - my)
		}
	}
	slope = xy / xx
	return my - slope*mx, slope, n
}

// statelessPicture draws the rate by arithmetic operations, and the cycles by
// calls of the two kinds whose cost is published.
func statelessPicture(rate []report.Point, lines map[string][]report.Point, claims claims) report.Figure {
	value := func(id string) float64 { return *claims.find(id).Published }
	byOps := report.Panel{
		Title: "forwarding rate by number of arithmetic operations",
		X:     report.Axis{Label: "operations", Unit: "per packet"}, Y: report.Axis{Label: "throughput", Unit: "Mpps"},
		Series: []report.Series{
			{Name: "arithmetic operations", Points: rate},
			{Name: "published (Cora)", Kind: report.Markers, Points: []report.Point{{X: 0, Y: value("forward")}, {X: 400, Y: value("ops-400")}}},
		},
	}
	byCalls := report.Panel{
		Title: "cycles a packet by number of calls",
		X:     report.Axis{Label: "calls", Unit: "per packet"}, Y: report.Axis{Label: "microengine time", Unit: "cycles per packet"},
	}
	for i, kind := range []string{program.Modulo, program.Hash} {
		law := report.Series{Name: kind + ", published cost (Netmon)", Kind: report.Markers, Style: 1 + i}
		for n := 1; n <= calls[kind]; n++ {
			law.Points = append(law.Points, report.Point{X: float64(n), Y: value("base-cycles") + float64(n)*value(kind+"-cycles")})
		}
		byCalls.Series = append(byCalls.Series, report.Series{Name: kind + " calls", Style: 1 + i, Points: lines[kind]}, law)
	}
	return report.Figure{Panels: []report.Panel{byOps, byCalls}}
}
