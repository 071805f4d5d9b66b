package snic

import (
	"context"
	"fmt"

	emu "nicprof/emu/snic"
	"nicprof/experiments"
	"nicprof/report"
	"nicprof/sim"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "snic/vpc", Paper: paper, Title: "virtual private cloud: firewall, NAT, AES and load balancer in one chain", Run: vpc,
	})
}

var vpcNTs = []string{"firewall", "nat", "aes", "load_balancer"}

func vpc(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("vpc")
	if err != nil {
		return report.Result{}, err
	}
	b, err := loadBoard(boardName, 1)
	if err != nil {
		return report.Result{}, err
	}
	var nts []emu.NT
	for _, name := range vpcNTs {
		n := b.FPGA.NT(name)
		if n == nil {
			return report.Result{}, fmt.Errorf("board %s has no NT %s", boardName, name)
		}
		nts = append(nts, emu.NT{Name: name, Cycles: int(n.Cycles.Value), II: int(n.II.Value), Gbps: n.Gbps.Value})
	}
	sizes := []int{64, 128, 256, 512, 1024, 1518}
	chains := [][]int{{0}, {1}, {2}, {3}, {0, 1, 2, 3}}
	names := append(append([]string{}, vpcNTs...), "all four in one chain")
	rates := make([]float64, len(chains)*len(sizes))
	err = env.Each(ctx, len(rates), func(_ context.Context, i int) error {
		r, err := inChains(boardName, nts, chains[i/len(sizes)])
		if err != nil {
			return err
		}
		r.Seed = env.Seed
		rates[i], _, _, err = r.saturated(emu.Load{Bytes: sizes[i%len(sizes)]}, span(env, 100*sim.Microsecond, sim.Millisecond))
		return err
	})
	if err != nil {
		return report.Result{}, err
	}
	res := result()
	res.Data.Columns = []string{"chain", "bytes", "gbps"}
	panel := report.Panel{X: report.Axis{Label: "packet size", Unit: "B"}, Y: report.Axis{Label: "throughput", Unit: "Gb/s"}}
	at := map[string]float64{}
	for i, n := range names {
		line := report.Series{Name: n, Style: i}
		for k, bytes := range sizes {
			v := rates[i*len(sizes)+k]
			line.Points = append(line.Points, report.Point{X: float64(bytes), Y: v})
			res.Data.Add(n, bytes, v)
			if bytes == 1024 {
				at[n] = v
			}
		}
		panel.Series = append(panel.Series, line)
	}
	chain, err := inChains(boardName, nts, chains[len(chains)-1])
	if err != nil {
		return res, err
	}
	alone, err := chain.alone()
	if err != nil {
		return res, err
	}
	claims.Measured("aes", at["aes"], "")
	claims.Measured("firewall", at["firewall"], "")
	claims.Measured("chain", at[names[len(names)-1]], "")
	claims.Measured("chain-latency", us(alone)+b.FPGA.PHYNS.Value/1000, "")
	res.Claims = claims
	res.Figure = report.Figure{Panels: []report.Panel{panel}, Caption: "emulated; end to end the paper's figures are bound by a server's virtual switch and say nothing of the board"}
	res.Notes = []string{"Rates of AES and firewall are published and in the board file; cycles, and the rates of NAT and load balancer, are not published. The areas of the four together exceed a region of the board file (all of them are guesses); here one region holds the chain."}
	return res, nil
}
