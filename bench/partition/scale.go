package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"

	"nicprof/cora/partition"
	"nicprof/cora/partition/synthetic"
	"nicprof/internal/table"
	"nicprof/report"
)

// point is one number of flows.
type point struct {
	flows, groups int
	seconds       float64 // of a processor, median of the rounds
	low, high     float64
	megabytes     float64 // taken from the system by then, the problem included
	gap           float64
	plan          *partition.Plan
}

const rounds = 3

// scale times plans of eight blocks.
func scale(ctx context.Context, flows []int) ([]point, error) {
	var out []point
	for _, n := range flows {
		p := synthetic.Chain(n)
		var times []float64
		x := point{flows: n}
		for range rounds {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			runtime.GC()
			plan, seconds, err := ours(p, partition.Cora)
			if err != nil {
				return nil, err
			}
			if !plan.Feasible {
				return nil, fmt.Errorf("%d flows: no plan: %v", n, plan.Broken)
			}
			times = append(times, seconds)
			x.gap, x.plan = plan.Gap, plan
		}
		for b := range p.Blocks {
			x.groups += p.Blocks[b].Groups
		}
		slices.Sort(times)
		x.low, x.seconds, x.high = times[0], times[len(times)/2], times[len(times)-1]
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		x.megabytes = float64(mem.Sys) / 1e6
		out = append(out, x)
	}
	return out, nil
}

func scaleTable(points []point) *table.Table {
	t := table.New(fmt.Sprintf("Strategy cora on eight blocks: processor time of a plan (median of %d), memory taken from the system by then", rounds),
		"flows", "groups of all blocks", "s", "µs a flow", "MB", "on host", "gap")
	for _, x := range points {
		t.Row(x.flows, x.groups, x.seconds, x.seconds/float64(x.flows)*1e6, x.megabytes,
			fmt.Sprintf("%.2f %%", 100*x.plan.Objective/x.plan.AllHost), fmt.Sprintf("%.4f %%", 100*x.gap))
	}
	return t
}

// scaleFigure draws time against flows, and a line of slope 1 through the
// largest number.
func scaleFigure(points []point) *report.Result {
	r := &report.Result{ID: "cora/partition-scale", Paper: "Partition planner", Title: "time of a plan against the number of flows",
		Backend: "native", Board: "host", Scale: "full"}
	r.Data.Columns = []string{"flows", "groups", "seconds", "seconds_low", "seconds_high", "megabytes", "gap"}
	measured := report.Series{Name: "cora, 8 blocks, one processor", Kind: report.LineMarkers}
	for _, x := range points {
		r.Data.Add(x.flows, x.groups, x.seconds, x.low, x.high, x.megabytes, x.gap)
		measured.Points = append(measured.Points, report.Point{X: float64(x.flows), Y: x.seconds, Low: x.low, High: x.high})
	}
	last := points[len(points)-1]
	linear := report.Series{Name: "in proportion to flows", Style: 1}
	for f := float64(points[0].flows); f <= float64(last.flows)*1.001; f *= math.Sqrt(10) {
		linear.Points = append(linear.Points, report.Point{X: f, Y: last.seconds * f / float64(last.flows)})
	}
	r.Figure = report.Figure{
		Caption: "Markers: median of three plans, with the fastest and slowest. One flow is one class of traffic.",
		Panels: []report.Panel{{
			X: report.Axis{Label: "flows", Log: true}, Y: report.Axis{Label: "processor time", Unit: "s", Log: true},
			Series: []report.Series{measured, linear},
		}},
	}
	return r
}
