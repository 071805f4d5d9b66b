package snic

import (
	"context"
	"fmt"

	emu "nicprof/emu/snic"
	"nicprof/experiments"
	"nicprof/report"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "snic/nt-chain", Paper: paper, Title: "latency by length of an NT chain: one region, two regions, PANIC", Run: ntChain,
	})
}

// Numbers of NTs in the figures of chains and of parallel NTs.
var chainLengths = through(2, 8)

// scheme is a way to run n NTs.
type scheme struct {
	id, name string
	style    int
	policy   emu.Policy
	rig      func(n int) (rig, error)
}

// halves splits n NTs into two chains.
func halves(n int) [][]int { return [][]int{through(0, n/2), through(n/2, n)} }

// schemeLatencies returns the latency of each scheme by chainLengths, us.
func schemeLatencies(ctx context.Context, env experiments.Env, schemes []scheme) ([][]float64, error) {
	latency := make([][]float64, len(schemes))
	for i := range latency {
		latency[i] = make([]float64, len(chainLengths))
	}
	return latency, env.Each(ctx, len(schemes)*len(chainLengths), func(_ context.Context, i int) error {
		s, k := schemes[i/len(chainLengths)], i%len(chainLengths)
		r, err := s.rig(chainLengths[k])
		if err != nil {
			return err
		}
		r.Policy, r.Seed = s.policy, env.Seed
		t, err := r.alone()
		latency[i/len(chainLengths)][k] = us(t)
		return err
	})
}

// draw adds a line a scheme and the published points.
func draw(res *report.Result, claims experiments.Claims, schemes []scheme, latency [][]float64) report.Panel {
	p := report.Panel{X: report.Axis{Label: "NTs", Min: 1.5, Max: 7.5}, Y: report.Axis{Label: "latency without PHY and MAC", Unit: "us"}}
	for i, s := range schemes {
		line := report.Series{Name: s.name, Style: s.style}
		for k, n := range chainLengths {
			line.Points = append(line.Points, report.Point{X: float64(n), Y: latency[i][k]})
			res.Data.Add(s.name, n, latency[i][k])
		}
		p.Series = append(p.Series, line)
		if s.id != "" {
			p.Series = append(p.Series, markers(claims, "published (thesis)", s.style, s.id+"-%d", chainLengths, identity))
		}
	}
	return p
}

func ntChain(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("nt-chain")
	if err != nil {
		return report.Result{}, err
	}
	whole := func(n int) (rig, error) { return inChains(boardName, dummies(alternating(n)...), through(0, n)) }
	schemes := []scheme{
		{"panic", "PANIC", 1, emu.PANIC, whole},
		{"half", "sNIC, two chains", 2, emu.Reserve, func(n int) (rig, error) {
			return inChains(boardName, dummies(alternating(n)...), halves(n)...)
		}},
		{"single", "sNIC, one chain", 0, emu.Reserve, whole},
	}
	latency, err := schemeLatencies(ctx, env, schemes)
	if err != nil {
		return report.Result{}, err
	}
	res := result()
	res.Data.Columns = []string{"scheme", "nts", "us"}
	exact := 0.0
	for i, s := range schemes {
		for k, n := range chainLengths {
			id := fmt.Sprintf("%s-%d", s.id, n)
			claims.Measured(id, latency[i][k], "")
			if claims.Find(id).Judge() == report.Reproduced {
				exact++
			}
		}
	}
	claims.Measured("exact", exact, "")
	res.Claims = claims
	res.Figure = report.Figure{Panels: []report.Panel{draw(&res, claims, schemes, latency)}, Caption: "lines: " + backend + ", markers: published, in the colour of their line"}
	res.Notes = []string{
		"NTs take 16 and 32 cycles in turn, which is what the published steps of 64 and 128 ns are; a region is taken to hold seven of them.",
		"Packets of 64 B meet no other. The stages of the board file, the NTs and the passes through the scheduler add up to the latency; no total is written anywhere.",
	}
	return res, nil
}
