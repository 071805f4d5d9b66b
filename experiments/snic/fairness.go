package snic

import (
	"context"
	"fmt"

	"nicprof/experiments"
	"nicprof/report"
	"nicprof/sim"
	"nicprof/supernic"
	"nicprof/supernic/fair"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "snic/fairness", Paper: paper, Title: "shares of two users whose load changes; the worked example", Run: fairness,
	})
}

// phases of the worked example.
var phases = []string{"before", "load_change", "after_drf", "after_scaleout"}

// worked returns what the time step makes of the dissertation's example: Gb/s by
// phase, and by NT and user. A user's use of NTs is a vector of his ingress.
func worked() ([]map[string]float64, error) {
	nts := []string{"NT1", "NT2", "NT3", "NT4"}
	resources := make([]fair.Resource, 0, 6)
	for _, n := range append(nts, "NT2 again", "NT4 again") {
		resources = append(resources, fair.Resource{Name: n, Unit: "Gb/s", Capacity: 100})
	}
	resources[2].Capacity = 70
	u1 := fair.DAG{Name: "user 1", User: 0, Use: []float64{1, 1.6, 0.8, 0.4, 0, 0}}
	shared := fair.DAG{Name: "user 2", User: 1, Use: []float64{0, 1, 0, 1.5, 0, 0}}
	own := fair.DAG{Name: "user 2", User: 1, Use: []float64{0, 0, 0, 0, 1, 1.5}} // after the scale-out
	var out []map[string]float64
	grants := make([]fair.Grant, 2)
	note := func(served []float64, u2 fair.DAG) {
		at := map[string]float64{}
		for i, n := range nts {
			at[n+"-u1"] = served[0] * u1.Use[i]
			at[n+"-u2"] = served[1] * u2.Use[i]
		}
		at["NT2-u2"] += served[1] * u2.Use[4]
		at["NT4-u2"] += served[1] * u2.Use[5]
		out = append(out, at)
	}
	serve := func(load []float64) []float64 {
		return []float64{min(load[0], grants[0].Limit), min(load[1], grants[1].Limit)}
	}
	before, after := []float64{50, 10}, []float64{50, 50}
	step, err := fair.NewTime(fair.SNIC, resources, []float64{1, 1}, []fair.DAG{u1, shared})
	if err != nil {
		return nil, err
	}
	if err := step.Step(before, grants); err != nil {
		return nil, err
	}
	note(serve(before), shared)
	note(serve(after), shared) // the load has changed, the limits not yet
	if err := step.Step(after, grants); err != nil {
		return nil, err
	}
	note(serve(after), shared)
	scaled, err := fair.NewTime(fair.SNIC, resources, []float64{1, 1}, []fair.DAG{u1, own})
	if err != nil {
		return nil, err
	}
	if err := scaled.Step(after, grants); err != nil {
		return nil, err
	}
	note(serve(after), own)
	return out, nil
}

func fairness(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("fairness")
	if err != nil {
		return report.Result{}, err
	}
	example, err := worked()
	if err != nil {
		return report.Result{}, err
	}
	runs, err := byPolicy(ctx, env, "fairness")
	if err != nil {
		return report.Result{}, err
	}
	res := result()
	res.Data.Columns = []string{"part", "series", "x", "value", "unit"}
	names := []string{"NT1-u1", "NT2-u1", "NT2-u2", "NT3-u1", "NT4-u1", "NT4-u2"}
	panel := report.Panel{Title: "worked example", X: report.Axis{Label: "after", Min: 0.5, Max: 4.5,
		Names: []string{"start", "load change", "DRF", "scale-out"}}, Y: report.Axis{Label: "rate", Unit: "Gb/s"}}
	for i, n := range names {
		line := report.Series{Name: n, Style: i}
		points := report.Series{Name: "published (thesis)", Kind: report.Markers, Style: i}
		for k, phase := range phases {
			claims.Measured(n+"-"+phase, example[k][n], "")
			line.Points = append(line.Points, report.Point{X: float64(k + 1), Y: example[k][n]})
			points.Points = append(points.Points, report.Point{X: float64(k + 1), Y: *claims.Find(n + "-" + phase).Published})
			res.Data.Add("worked example", n, phase, example[k][n], "Gb/s")
		}
		panel.Series = append(panel.Series, line, points)
	}
	panels := []report.Panel{panel}
	for i, p := range policies {
		users := samplesOf(runs[i])
		regions := runs[i].Scenario.Platform.Regions
		dominant := func(s sampleOf) float64 { return s.dominant(regions) }
		shares := report.Panel{Title: p.name, X: report.Axis{Label: "time", Unit: "ms"}, Y: report.Axis{Label: "dominant share", Max: 1}}
		for u, samples := range users {
			line := timeline(runs[i].Scenario.Users[u].Name, u, samples, dominant)
			shares.Series = append(shares.Series, line)
			for _, pt := range line.Points {
				res.Data.Add("dominant share, "+p.name, line.Name, pt.X, pt.Y, "")
			}
		}
		panels = append(panels, shares)
		if p.policy == fair.SNIC {
			held := func(u int) float64 { return meanOver(users[u], sim.Millisecond, 10*sim.Millisecond, dominant) }
			claims.Measured("fair-share", held(0)/held(1), "")
		}
	}
	epoch := runs[0].Scenario.Platform.Epoch
	out, done := scaleOut(runs[0].Events)
	claims.Measured("scale-out", float64(out)/float64(epoch), "")
	claims.Measured("scale-out-done", float64(done)/float64(epoch), "")
	res.Claims = claims
	res.Figure = report.Figure{Columns: 2, Panels: panels, Caption: "lines: " + backend + ", markers: published, in the colour of their line"}
	res.Notes = []string{
		"Worked example: the time step alone, on the dissertation's capacities and vectors; user 2's part of NT2 in the epoch of the load change is what nobody had asked for.",
		"Dominant shares: packets on the emulated board under supernic's control plane, DAGs of figure 3; a user's share of the FPGA is that of the time of all regions. At 30 us user 2's load rises; user 1 pauses from 20 to 24 ms.",
		"DRF and Static share no chain, so they give user 2 a region at deployment, and nothing is contended here; sNIC lets user 2 run in user 1's chains and takes the third region only when they have been overloaded for 10 ms. snic/throughput has loads at which that pays.",
		fmt.Sprintf("The scale-out begins after the %.0f ms of the monitor and ends with PR; both epochs are read from the emulated run's events.", us(runs[0].Scenario.Platform.Monitor)/1000),
	}
	return res, nil
}

// scaleOut returns when the first scale-out began and when its chain served.
func scaleOut(events []supernic.Event) (out, done sim.Time) {
	region := supernic.New
	for _, e := range events {
		switch {
		case e.Kind == supernic.EventScaleOut && region == supernic.New:
			out, region = e.At, e.Region
		case e.Kind == supernic.EventLaunch && region != supernic.New && e.Region == region:
			return out, e.At
		}
	}
	return out, done
}
