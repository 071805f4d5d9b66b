package snic

import (
	"context"

	"nicprof/experiments"
	"nicprof/report"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "snic/utilisation", Paper: paper, Title: "utilisation of the board by two users whose load changes", Run: utilisation,
	})
	experiments.Register(experiments.Figure{
		ID: "snic/throughput", Paper: paper, Title: "aggregated throughput of two users whose load changes: sNIC, DRF, Static", Run: throughput,
	})
}

// together is what all users had at a time.
func together(users [][]sampleOf) []sampleOf {
	var all []sampleOf
	for k, s := range users[0] {
		sum := sampleOf{at: s.at, regions: map[string]float64{}}
		for _, u := range users {
			sum.ingress += u[k].ingress
			sum.egress += u[k].egress
			sum.store += u[k].store
			for r, v := range u[k].regions {
				sum.regions[r] += v
			}
		}
		all = append(all, sum)
	}
	return all
}

var sharingNotes = []string{
	"Packets of the Facebook distribution on the emulated board under supernic's control plane; three regions for two users. Loads: 50 and 20 Gb/s, from 10 ms on 50 and 45, from 20 ms on 15 and 75.",
	"The set-up of the paper's DRF and Static is not published. Here neither shares chains between users nor moves; Static gives each user a whole number of regions, so that one of three is left over, and promises no more than that.",
}

func utilisation(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("utilisation")
	if err != nil {
		return report.Result{}, err
	}
	runs, err := byPolicy(ctx, env, "utilisation")
	if err != nil {
		return report.Result{}, err
	}
	res := result()
	res.Data.Columns = []string{"policy", "resource", "ms", "utilisation"}
	var panels []report.Panel
	for i, p := range policies {
		all := together(samplesOf(runs[i]))
		regions := runs[i].Scenario.Platform.Regions
		fpga := func(s sampleOf) float64 { return s.fpga(regions) }
		panel := report.Panel{Title: p.name, X: report.Axis{Label: "time", Unit: "ms"}, Y: report.Axis{Label: "utilisation", Max: 1}}
		for style, of := range []struct {
			name string
			f    func(sampleOf) float64
		}{
			{"FPGA regions", fpga},
			{"ingress", func(s sampleOf) float64 { return s.ingress }},
			{"egress", func(s sampleOf) float64 { return s.egress }},
			{"packet store", func(s sampleOf) float64 { return s.store }},
		} {
			line := timeline(of.name, style, all, of.f)
			panel.Series = append(panel.Series, line)
			for _, pt := range line.Points {
				res.Data.Add(p.name, of.name, pt.X, pt.Y)
			}
		}
		panels = append(panels, panel)
		claims.Measured(string(p.policy)+"-fpga", 100*meanOver(all, 0, runs[i].Duration, fpga), "")
	}
	res.Claims = claims
	res.Figure = report.Figure{Columns: 3, Shared: true, Panels: panels, Caption: "emulated; the paper's values are not published"}
	res.Notes = sharingNotes
	return res, nil
}

func throughput(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("throughput")
	if err != nil {
		return report.Result{}, err
	}
	runs, err := byPolicy(ctx, env, "utilisation")
	if err != nil {
		return report.Result{}, err
	}
	res := result()
	res.Data.Columns = []string{"policy", "ms", "gbps"}
	panel := report.Panel{X: report.Axis{Label: "time", Unit: "ms"}, Y: report.Axis{Label: "throughput of both users", Unit: "Gb/s"}}
	mean := make([]float64, len(policies))
	for i, p := range policies {
		link := runs[i].Scenario.Platform.LinkGbps
		line := timeline(p.name, i, together(samplesOf(runs[i])), func(s sampleOf) float64 { return link * s.egress })
		panel.Series = append(panel.Series, line)
		for _, pt := range line.Points {
			res.Data.Add(p.name, pt.X, pt.Y)
		}
		for _, d := range runs[i].DAGs {
			mean[i] += d.Served
		}
		claims.Measured(string(p.policy), mean[i], "")
	}
	claims.Measured("snic-over-drf", mean[0]/mean[1], "")
	claims.Measured("drf-over-static", mean[1]/mean[2], "")
	res.Claims = claims
	res.Figure = report.Figure{Panels: []report.Panel{panel}, Caption: "emulated; the paper's values are not published"}
	res.Notes = sharingNotes
	return res, nil
}
