package cora

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"nicprof/cora/costs"
	"nicprof/cora/partition"
	"nicprof/cora/plan"
	"nicprof/experiments"
	"nicprof/model"
	"nicprof/report"
	"nicprof/traffic"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "cora/fig2", Paper: paper, Title: "figure 2: four plans of one application under two traffics", Run: fig2,
	})
}

// fourPlans are the paper's plans of figure 2, as its text tells them. The NIC
// holds either the sketch or all of ConnTable beside the small state.
var fourPlans = []struct{ name, text string }{
	{"a", "sketch, LoadCntr, MinLoad, MinDip on the NIC; ConnTable on the host"},
	{"b", "ConnTable, LoadCntr, MinLoad, MinDip on the NIC; the sketch on the host"},
	{"c", "as a, and the entries of ConnTable with most packets that the rest of the memory holds"},
	{"d", "whole flows on either side (strategy flow)"},
}

// The traffic's rate, and the web server's share of its packets where one of the
// two dominates.
const (
	fig2Mpps  = 0.8
	l4lbHeavy = 0.1
	httpHeavy = 0.9
)

func fig2(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("fig2")
	if err != nil {
		return report.Result{}, err
	}
	m, res, err := quickModel(ctx, env, "cora/fig2")
	if err != nil {
		return res, err
	}
	t, err := trafficOf("l4lb")
	if err != nil {
		return res, err
	}
	t.RateMpps = fig2Mpps
	res.Data.Columns = []string{"http_share", "plan", "objective", "host_cores", "nic_mpps", "dropped_mpps", "feasible"}
	table := report.Table{Title: "Host cores by plan", Columns: []string{"of the packets HTTP", "plan", "what", "host cores", "objective", "NIC alone, Mpps", "feasible"}}
	var lines []report.Series
	crossover := math.NaN()
	for i, p := range fourPlans {
		lines = append(lines, report.Series{Name: "plan " + p.name, Style: i})
	}
	lines = append(lines, report.Series{Name: "strategy cora", Kind: report.Markers, Style: len(fourPlans)})
	for http := 1; http <= 9; http++ {
		share := float64(http) / 10
		plans, err := plansOf(m, t, share, env.Seed)
		if err != nil {
			return res, err
		}
		for i, p := range plans {
			name, text := "cora", "strategy cora"
			if i < len(fourPlans) {
				name, text = fourPlans[i].name, fourPlans[i].text
			}
			res.Data.Add(share, name, p.Objective, p.HostCores, p.NICMpps, p.DroppedMpps, p.Feasible)
			lines[i].Points = append(lines[i].Points, report.Point{X: share, Y: p.HostCores})
			if share == l4lbHeavy || share == httpHeavy {
				table.Add(fmt.Sprintf("%.0f %%", 100*share), name, text, p.HostCores, p.Objective, p.NICMpps, p.Feasible)
			}
		}
		if b, c := plans[1], plans[2]; math.IsNaN(crossover) && c.HostCores < b.HostCores {
			crossover = share
		}
		switch share {
		case l4lbHeavy:
			claims.fig2("l4lb", plans, map[string][2]int{"b-over-a": {1, 0}, "b-over-c": {1, 2}})
		case httpHeavy:
			claims.fig2("http", plans, map[string][2]int{"c-over-b": {2, 1}, "c-over-a": {2, 0}, "c-over-d": {2, 3}})
		}
	}
	claims.measured("crossover", crossover, "")
	res.Claims = claims
	res.Tables = []report.Table{table}
	res.Figure = report.Figure{
		Caption: "all: " + res.Backend + " NIC, native host costs",
		Panels: []report.Panel{{
			X: report.Axis{Label: "share of the web server's packets", Min: 0, Max: 1}, Y: report.Axis{Label: "host cores"}, Series: lines,
		}},
	}
	res.Notes = []string{
		"The program is cora/apps/l4lb.p4, the traffic cora/apps/traffic/l4lb.yaml with 10 % to 90 % of the packets for the web server: one of the two dominates at the ends. The paper prints neither sizes nor shares: rate, memory and shares are ours, chosen after looking at what they make of the four plans.",
		"The NIC's memory for state is set so that the application does not fit, as the paper supposes: the sketch, the small state and half of ConnTable.",
		"0.8 Mpps in all: at 1 Mpps and more, MinLoad of the most popular service is asked for more than its lock sustains, and belongs on the host in every plan.",
		"The objective, instructions left to the host, and host cores need not agree: a look-up in ConnTable is two instructions and tens of nanoseconds, a row of the sketch several instructions and few nanoseconds, and a packet that comes to the host costs it as much whatever it comes for. Where L4LB traffic dominates, the plan with the least objective, c, sends more packets to the host than plan b (column NIC alone), and needs more cores. That is the objective's doing and not the search's: of what it counts, no plan leaves less.",
		"Plan d keeps nothing on the NIC: all flows share the counters of few servers and services, so that they are one component, which moves as a whole and does not fit.",
		"Host cores are of the stored native costs (" + costs.Stored().Machine + "), without packet I/O; the model is fitted to the quick sweep of the emulated board.",
	}
	return res, nil
}

// fig2 fills in the claims about one traffic: ratios of host cores between two
// plans, and what strategy cora, the last plan, makes of it.
func (cs claims) fig2(name string, plans []*partition.Plan, ratios map[string][2]int) {
	for claim, r := range ratios {
		cs.measured(name+"-"+claim, plans[r[0]].HostCores/plans[r[1]].HostCores, "")
	}
	best := math.Inf(1)
	for _, p := range plans[:len(fourPlans)] {
		if p.Feasible {
			best = min(best, p.Objective)
		}
	}
	own := plans[len(fourPlans)]
	cs.measured(name+"-cora", own.Objective/best, "")
	cs.measured(name+"-cores", own.HostCores, "")
}

// plansOf makes plans a to d, and strategy cora's, of the load balancer with this
// share of the web server's packets.
func plansOf(m *model.Model, t traffic.Traffic, http float64, seed uint64) ([]*partition.Plan, error) {
	t.Branches = maps.Clone(t.Branches)
	t.Branches["http"] = http
	built, err := build(m, "l4lb", t, plan.Options{Seed: seed})
	if err != nil {
		return nil, err
	}
	p := built.Problem
	block := map[string]int{}
	for i, b := range built.Blocks {
		for _, o := range b.Objects {
			block[o.Name] = i
		}
	}
	sketch := []int{block["sketch0"], block["sketch1"], block["sketch2"]}
	small := []int{block["LoadCntr"], block["MinLoad"]} // MinDip is in MinLoad's block
	table := block["ConnTable"]

	// One memory, in which the application does not fit.
	const memory = 1
	var bytes int64
	for _, b := range slices.Concat(sketch, small) {
		bytes += max(1, p.Blocks[b].Elements) * p.Blocks[b].EntryBytes
	}
	entries := p.Blocks[table].Groups / 2
	p.Memories[0].Bytes, p.Memories[memory].Bytes = 0, bytes+int64(entries)*p.Blocks[table].EntryBytes

	evaluate := func(whole []int, entries int) (*partition.Plan, error) {
		where, on := make([]int, len(p.Blocks)), make([][]bool, len(p.Blocks))
		for b := range p.Blocks {
			where[b], on[b] = partition.Host, make([]bool, p.Blocks[b].Groups)
		}
		for _, b := range whole {
			where[b] = memory
			for g := range on[b] {
				on[b][g] = true
			}
		}
		if entries > 0 {
			where[table] = memory
			for _, g := range largest(built.Volumes.Keys[built.Blocks[table].Key].Packets, entries) {
				on[table][g] = true
			}
		}
		return partition.Evaluate(p, where, on)
	}
	var plans []*partition.Plan
	for _, x := range []struct {
		whole   []int
		entries int
	}{
		{slices.Concat(sketch, small), 0},
		{append(slices.Clone(small), table), 0},
		{slices.Concat(sketch, small), entries},
	} {
		x, err := evaluate(x.whole, x.entries)
		if err != nil {
			return nil, err
		}
		plans = append(plans, x)
	}
	for _, s := range []partition.Strategy{partition.Flow, partition.Cora} {
		x, err := partition.Solve(p, s, partition.Options{})
		if err != nil {
			return nil, err
		}
		plans = append(plans, x)
	}
	return plans, nil
}

// largest returns the n groups with most packets.
func largest(packets []float64, n int) []int {
	order := make([]int, len(packets))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(packets[b], packets[a]) })
	return order[:n]
}
