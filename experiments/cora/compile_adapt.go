package cora

import (
	"context"
	"fmt"
	"maps"
	"strings"

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
		ID: "cora/compile-adapt", Paper: paper, Title: "section 8.2.1: plans for DPVS by table size, target rate and traffic mix", Run: compileAdapt,
	})
}

// adaptStrategies are the strategies that section 8.2.1's inputs are given to.
var adaptStrategies = []partition.Strategy{partition.Cora, partition.State, partition.Flow}

// The inputs that stay while another is varied: the DPVS of section 8.3, with
// room for 0.7 of its flows.
const (
	adaptMpps  = 15
	adaptTable = 0.7
)

// sweep varies one input of the compiler.
type sweep struct {
	name   string
	axis   string
	values []float64
	set    func(v float64, t *traffic.Traffic, o *plan.Options)
}

// adaptSweeps lists the inputs; table sizes are shares of the flows.
func adaptSweeps() []sweep {
	return []sweep{
		{"table", "entries of the NIC's table, of the flows", []float64{0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}, func(v float64, t *traffic.Traffic, o *plan.Options) {
			o.TableEntries = int64(v * float64(t.Flows.Count))
		}},
		{"rate", "target rate, Mpps", []float64{4, 8, 12, 13, 14, 15, 16, 18}, func(v float64, _ *traffic.Traffic, o *plan.Options) {
			o.TargetMpps = v
		}},
		{"mix", "share of packets that go through NAT", []float64{0.2, 0.4, 0.6, 0.8, 1}, func(v float64, t *traffic.Traffic, _ *plan.Options) {
			t.Branches["nat"] = v
		}},
		{"skew", "exponent of the flows' Zipf law", []float64{0, 0.2, 0.4, 0.6, 0.8, 0.9, 1}, func(v float64, t *traffic.Traffic, _ *plan.Options) {
			t.MaxFlowPPS = nil
			t.Flows.Popularity, t.Flows.Alpha = "zipf", v
		}},
	}
}

// adapted is one point of a sweep: a plan of each strategy.
type adapted struct {
	value float64
	built *plan.Built
	plans []*partition.Plan
}

// plans makes the plans of a sweep for DPVS under traffic.
func (s sweep) plans(ctx context.Context, m *model.Model, t traffic.Traffic, seed uint64) ([]adapted, error) {
	var out []adapted
	for _, v := range s.values {
		tr, f := t, *t.Flows
		tr.Flows, tr.Branches, tr.RateMpps = &f, maps.Clone(t.Branches), adaptMpps
		o := plan.Options{Seed: seed, TableEntries: int64(adaptTable * float64(f.Count))}
		s.set(v, &tr, &o)
		built, err := build(m, "natlb", tr, o)
		if err != nil {
			return nil, err
		}
		p := adapted{value: v, built: built}
		for _, strategy := range adaptStrategies {
			x, err := partition.Solve(built.Problem, strategy, partition.Options{})
			if err != nil {
				return nil, err
			}
			p.plans = append(p.plans, x)
		}
		out = append(out, p)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func compileAdapt(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("compile-adapt")
	if err != nil {
		return report.Result{}, err
	}
	m, res, err := quickModel(ctx, env, "cora/compile-adapt")
	if err != nil {
		return res, err
	}
	t, err := trafficOf("natlb")
	if err != nil {
		return res, err
	}
	flows := *t.Flows
	flows.Count /= 5
	if env.Scale == experiments.Quick {
		flows.Count /= 20
	}
	t.Flows = &flows
	res.Data.Columns = []string{"input", "value", "strategy", "feasible", "host_cores", "objective", "nic_mpps", "dropped_mpps", "flows_on_nic", "limits"}
	for _, s := range adaptSweeps() {
		panel := report.Panel{Title: s.name, X: report.Axis{Label: s.axis}, Y: report.Axis{Label: "host cores"}}
		for i, strategy := range adaptStrategies {
			panel.Series = append(panel.Series, report.Series{Name: string(strategy), Kind: report.LineMarkers, Style: i})
		}
		table := report.Table{Title: "Plans of strategy cora by " + s.axis, Columns: []string{s.name, "host cores", "feasible", "Mpps on the NIC", "flows on the NIC", "blocks on the NIC", "limits"}}
		points, err := s.plans(ctx, m, t, env.Seed)
		if err != nil {
			return res, err
		}
		for _, p := range points {
			for i, strategy := range adaptStrategies {
				x, on := p.plans[i], flowsOnNIC(p.built, p.plans[i])
				limits := strings.Join(x.Limits, "; ")
				res.Data.Add(s.name, p.value, string(strategy), x.Feasible, x.HostCores, x.Objective, x.NICMpps, x.DroppedMpps, on, limits)
				claims.adapted(s.name, p.value, strategy, x, float64(on)/float64(t.Flows.Count))
				if x.Feasible {
					panel.Series[i].Points = append(panel.Series[i].Points, report.Point{X: p.value, Y: x.HostCores})
				}
				if strategy == partition.Cora {
					table.Add(p.value, x.HostCores, x.Feasible, x.NICMpps, on, onNIC(p.built, x), limits)
				}
			}
		}
		res.Figure.Panels = append(res.Figure.Panels, panel)
		res.Tables = append(res.Tables, table)
	}
	res.Claims = claims
	res.Figure.Caption = "all: " + res.Backend + " NIC, native host costs; plans that the NIC cannot sustain are left out"
	res.Notes = []string{
		fmt.Sprintf("The program is cora/apps/natlb.p4. What is not varied stays at %v Mpps, a table for %v of the flows, every packet through NAT, and a Zipf law whose largest flow has 50,000 packets a second. The paper's inputs and plans are in no source that we found.", float64(adaptMpps), adaptTable),
		fmt.Sprintf("%d flows instead of the paper's million, with the table in proportion; their state fits faster memories, and the law that gives the largest flow its rate is another.", flows.Count),
		"A packet that comes back from the host costs the NIC its forwarding again, so a table that is too small is a matter of the NIC's rate too: below some size no plan sustains the target. Such a plan is printed as found, everything on the host.",
		"Under a law that is steep enough, the largest flow alone asks for more than a lock of the load counters sustains, and no plan helps.",
		"Host cores are of the stored native costs (" + costs.Stored().Machine + "), without packet I/O; the model is fitted to the quick sweep of the emulated board.",
	}
	return res, nil
}

// adapted fills in the claims about one plan.
func (cs claims) adapted(input string, v float64, s partition.Strategy, x *partition.Plan, flows float64) {
	switch {
	case input == "rate" && x.Feasible:
		cs.measured("highest-"+string(s), v, "") // rates rise
	case input == "table" && v == adaptTable && s == partition.Cora:
		cs.measured("cores", x.HostCores, "")
		cs.measured("nic-share", x.NICMpps/adaptMpps, "")
		cs.measured("flows", flows, "")
	case input == "table" && v == 1 && s == partition.Cora:
		cs.measured("cores-all", x.HostCores, "")
	case input == "skew" && v == 0 && s == partition.Cora:
		cs.measured("cores-even", x.HostCores, "")
	}
}

// flowsOnNIC is how many flows a plan has in tables of the NIC.
func flowsOnNIC(built *plan.Built, p *partition.Plan) int {
	on := 0
	for i, b := range p.Blocks {
		if built.Problem.Blocks[i].Table && b.Memory != partition.Host {
			on += b.Groups
		}
	}
	return on
}

// onNIC lists the blocks that a plan has on the NIC, with their memories.
func onNIC(built *plan.Built, p *partition.Plan) string {
	var s []string
	for i, b := range p.Blocks {
		if b.Groups == 0 || b.Memory == partition.Host {
			continue
		}
		s = append(s, objects(built, i)+" in "+built.Problem.Memories[b.Memory].Name)
	}
	return strings.Join(s, ", ")
}

// objects names a block by what it holds.
func objects(built *plan.Built, block int) string {
	var s []string
	for _, o := range built.Blocks[block].Objects {
		s = append(s, o.Name[strings.LastIndexByte(o.Name, '.')+1:])
	}
	return strings.Join(s, "+")
}
