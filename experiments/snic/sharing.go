package snic

import (
	"context"
	"embed"
	"fmt"

	"nicprof/experiments"
	"nicprof/report"
	"nicprof/sim"
	"nicprof/supernic"
	"nicprof/supernic/fair"
)

//go:embed scenarios/*.yaml
var scenarios embed.FS

// policies are the ways to share the board, in the order of the figures.
var policies = []struct {
	policy fair.Policy
	name   string
}{{fair.SNIC, "sNIC"}, {fair.DRF, "DRF"}, {fair.Static, "Static"}}

// readScenario returns a scenario of this package.
func readScenario(name string) (*supernic.Scenario, error) {
	path := "scenarios/" + name + ".yaml"
	data, err := scenarios.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return supernic.Parse(data, path)
}

// byPolicy runs a scenario under each policy.
func byPolicy(ctx context.Context, env experiments.Env, name string) ([]*supernic.Result, error) {
	runs := make([]*supernic.Result, len(policies))
	return runs, env.Each(ctx, len(policies), func(ctx context.Context, i int) error {
		s, err := readScenario(name)
		if err != nil {
			return err
		}
		s.Policy.Fairness = string(policies[i].policy)
		if policies[i].policy == fair.Static {
			// Static cannot promise more than one user's part of the regions.
			for d := range s.DAGs {
				s.DAGs[d].IngressGbps = min(s.DAGs[d].IngressGbps, s.NTs[0].Gbps)
			}
		}
		runs[i], err = supernic.Simulate(ctx, s, supernic.Options{Seed: env.Seed})
		return err
	})
}

// sampleOf is what a user had at one time of a run.
type sampleOf struct {
	at             sim.Time
	regions        map[string]float64 // largest share of an NT's time, by region
	ingress, store float64
	egress         float64
}

// fpga is the user's share of the FPGA: of the time of all regions.
func (s sampleOf) fpga(regions int) float64 {
	sum := 0.0
	for i := range regions { // in order: sums of floats depend on it
		sum += s.regions[fmt.Sprintf("region%d", i)]
	}
	return sum / float64(regions)
}

func (s sampleOf) dominant(regions int) float64 {
	return max(s.fpga(regions), s.ingress, s.egress, s.store)
}

// samplesOf returns what each user had over time.
func samplesOf(r *supernic.Result) [][]sampleOf {
	users := make([][]sampleOf, len(r.Scenario.Users))
	at := map[sim.Time]int{}
	for i, t := range r.Samples {
		at[t] = i
		for u := range users {
			users[u] = append(users[u], sampleOf{at: t, regions: map[string]float64{}})
		}
	}
	for _, x := range r.Shares {
		s := &users[x.User][at[x.At]]
		switch x.Resource {
		case "ingress":
			s.ingress = x.Share
		case "egress":
			s.egress = x.Share
		case "packet store":
			s.store = x.Share
		default:
			var region int
			if _, err := fmt.Sscanf(x.Resource, "region%d", &region); err == nil {
				name := fmt.Sprintf("region%d", region)
				s.regions[name] = max(s.regions[name], x.Share)
			}
		}
	}
	return users
}

// meanOver is the mean of f over the samples of a span of time.
func meanOver(samples []sampleOf, from, to sim.Time, f func(sampleOf) float64) float64 {
	sum, n := 0.0, 0
	for _, s := range samples {
		if s.at > from && s.at <= to {
			sum += f(s)
			n++
		}
	}
	return sum / float64(n)
}

func timeline(name string, style int, samples []sampleOf, f func(sampleOf) float64) report.Series {
	s := report.Series{Name: name, Style: style}
	for _, v := range samples {
		s.Points = append(s.Points, report.Point{X: us(v.at) / 1000, Y: f(v)})
	}
	return s
}
