package snic

import (
	"context"
	"fmt"

	"nicprof/experiments"
	"nicprof/report"
	"nicprof/sim"
	"nicprof/supernic"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "snic/launch", Paper: paper, Title: "from the first packet to service: pre-launch, victim cache, context switch", Run: launch,
	})
}

// accesses are the accesses of scenarios/launch.yaml: a DAG, and when its
// packets come.
var accesses = []struct {
	name string
	dag  int
	at   sim.Time
	by   string // the event that brings service
}{
	{"pre-launched", 0, sim.Millisecond, supernic.EventLaunch},
	{"descheduled, still there", 0, 25 * sim.Millisecond, supernic.EventVictim},
	{"no region free: context switch", 2, 41 * sim.Millisecond, supernic.EventLaunch},
}

func launch(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("launch")
	if err != nil {
		return report.Result{}, err
	}
	s, err := readScenario("launch")
	if err != nil {
		return report.Result{}, err
	}
	run, err := supernic.Simulate(ctx, s, supernic.Options{Seed: env.Seed})
	if err != nil {
		return report.Result{}, err
	}
	res := result()
	res.Data.Columns = []string{"access", "wait_ms", "prs"}
	table := report.Table{Title: "Accesses", Columns: []string{"access", "wait, ms", "PRs"}}
	line := report.Series{Name: "from the first packet to service", Kind: report.Markers}
	for i, a := range accesses {
		wait, prs, served := waitOf(run.Events, a.dag, a.at, a.by)
		if !served || run.DAGs[a.dag].Served == 0 {
			return report.Result{}, fmt.Errorf("%s: DAG %s was not served by a %s", a.name, s.DAGs[a.dag].Name, a.by)
		}
		table.Add(a.name, wait, prs)
		res.Data.Add(a.name, wait, prs)
		line.Points = append(line.Points, report.Point{X: float64(i + 1), Y: wait})
		switch i {
		case 0:
			claims.Measured("pre-launch", float64(prs), "")
		case 1:
			claims.Measured("victim", float64(prs), "")
			claims.Measured("victim-ms", wait, "")
		case 2:
			claims.Measured("switch-ms", wait, "")
		}
	}
	claims.Measured("pr", prTime(run.Events), "")
	events := report.Table{Title: "Events", Columns: []string{"ms", "what", "region", "DAG"}}
	for _, e := range run.Events {
		dag := ""
		if e.DAG >= 0 {
			dag = s.DAGs[e.DAG].Name
		}
		events.Add(us(e.At)/1000, e.Kind, e.Region, dag)
	}
	res.Claims, res.Tables = claims, []report.Table{table, events}
	res.Figure = report.Figure{
		Panels: []report.Panel{{
			X: report.Axis{Label: "what the DAG finds", Min: 0.5, Max: 3.5,
				Names: []string{"pre-launched", "victim cache", "context switch"}},
			Y:      report.Axis{Label: "wait of the first packet", Unit: "ms"},
			Series: []report.Series{line},
		}},
		Caption: "emulated; the paper prints no values",
	}
	res.Notes = []string{
		"The control plane acts at the end of an epoch of 20 us. A DAG that is idle for the monitor's 10 ms gives up its region, whose chain stays until another needs it.",
		"A context switch takes the region that is asked for least: it ends what it serves, saves its state, and is configured anew.",
	}
	return res, nil
}

// waitOf returns the time in ms from the access to the DAG's chain serving, the
// PRs in between, and whether the event that brings service was there. Where it
// was before the access, nothing waited.
func waitOf(events []supernic.Event, dag int, at sim.Time, by string) (wait float64, prs int, served bool) {
	const within = 15 * sim.Millisecond
	before := false
	for _, e := range events {
		if e.DAG != dag || e.At > at+within {
			continue
		}
		if e.At < at {
			before = e.Kind == by
			continue
		}
		switch e.Kind {
		case supernic.EventPR:
			prs++
		case by:
			return us(e.At-at) / 1000, prs, true
		}
	}
	return 0, prs, before
}

// prTime returns how long the first PR took, ms.
func prTime(events []supernic.Event) float64 {
	for i, e := range events {
		if e.Kind != supernic.EventPR {
			continue
		}
		for _, l := range events[i:] {
			if l.Kind == supernic.EventLaunch && l.Region == e.Region {
				return us(l.At-e.At) / 1000
			}
		}
	}
	return 0
}
