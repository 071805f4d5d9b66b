package cora

import (
	"context"

	"nicprof/cora/apps"
	"nicprof/cora/partition"
	"nicprof/cora/plan"
	"nicprof/experiments"
	"nicprof/report"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "cora/table2", Paper: paper, Title: "table 2: plans to choose from, after each step that leaves some out", Run: table2,
	})
}

func table2(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("table2")
	if err != nil {
		return report.Result{}, err
	}
	m, res, err := quickModel(ctx, env, "cora/table2")
	if err != nil {
		return res, err
	}
	res.Data.Columns = []string{"application", "blocks", "classes", "exhaustive_log2", "aggregated_log2", "local_log2", "global_log2", "examined"}
	table := report.Table{Title: "Plans", Columns: []string{"application", "state blocks", "flow classes", "exhaustive", "flow groups", "local ordering", "global ordering", "examined"}}
	panel := report.Panel{
		X: report.Axis{Label: "what is left out by then", Min: 0.8, Max: 4.2,
			Names: []string{"nothing", "flow groups", "local ordering", "global ordering"}},
		Y: report.Axis{Label: "plans, log2", Log: true},
	}
	for k, name := range apps.Names {
		t, err := trafficOf(name)
		if err != nil {
			return res, err
		}
		b, err := build(m, name, t, plan.Options{Seed: env.Seed})
		if err != nil {
			return res, err
		}
		x, err := partition.Solve(b.Problem, partition.Cora, partition.Options{})
		if err != nil {
			return res, err
		}
		n := x.Plans
		res.Data.Add(name, len(b.Blocks), len(b.Problem.Classes), n.Exhaustive.Log2, n.Aggregated.Log2, n.Local.Log2, n.Global.Log2, x.Examined)
		table.Add(name, len(b.Blocks), len(b.Problem.Classes), n.Exhaustive, n.Aggregated, n.Local, n.Global, x.Examined)
		claims.measured(name+"-aggregated", n.Aggregated.Log2, "")
		claims.measured(name+"-local", n.Local.Log2, "")
		claims.measured(name+"-global", n.Global.Log2, "")
		s := report.Series{Name: name, Style: k}
		for i, c := range []partition.Count{n.Exhaustive, n.Aggregated, n.Local, n.Global} {
			s.Points = append(s.Points, report.Point{X: float64(i + 1), Y: c.Log2})
		}
		panel.Series = append(panel.Series, s)
	}
	res.Claims = claims
	res.Tables = []report.Table{table}
	res.Figure = report.Figure{Panels: []report.Panel{panel}}
	res.Notes = []string{
		"Exhaustive: every flow on either side of every block that it visits. Flow groups: every set of groups of every block. Local ordering: of each block the groups with most packets, however many. Global ordering: of all blocks together, by packets times instructions.",
		"The choice of a memory of the NIC for each block comes on top and is not counted.",
		"The programs are those of cora/apps with their traffic files; a model fitted to the quick sweep of the emulated board judges the plans that are examined.",
	}
	return res, nil
}
