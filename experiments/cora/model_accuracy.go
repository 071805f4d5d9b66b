package cora

import (
	"context"
	"fmt"
	"math"
	"slices"

	"nicprof/board"
	"nicprof/cora/apps"
	"nicprof/cora/partition"
	"nicprof/cora/plan"
	"nicprof/cora/runtime/system"
	"nicprof/experiments"
	"nicprof/fit"
	"nicprof/model"
	"nicprof/program"
	"nicprof/report"
	"nicprof/traffic"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "cora/model-accuracy", Paper: paper, Title: "section 8.2.2: the applications' programs, predicted against measured", Run: modelAccuracy,
	})
}

// accuracyFlows use the locks of an application's load counters evenly.
const accuracyFlows = 1 << 16

// placed is a program that the NIC runs for an application's packets.
type placed struct {
	app, where string
	program    program.Program
}

// placements puts each state block of an application into each of the NIC's
// memories that can hold it, the others staying in the largest.
func placements(built *plan.Built) (all []system.Placement, names []string) {
	p := built.Problem
	base := system.Placement{}
	fits := func(b, m int) bool {
		block := &p.Blocks[b]
		entries := max(block.Elements, int64(block.Groups)*max(1, block.EntriesPerGroup))
		return block.HostOnly == "" && entries*block.EntryBytes <= p.Memories[m].Bytes
	}
	for b := range p.Blocks {
		where, on := partition.Host, make([]bool, p.Blocks[b].Groups)
		for m := range p.Memories {
			if fits(b, m) && (where < 0 || p.Memories[m].Bytes > p.Memories[where].Bytes) {
				where = m
			}
		}
		for g := range on {
			on[g] = where >= 0
		}
		base.Memory, base.OnNIC = append(base.Memory, where), append(base.OnNIC, on)
	}
	all, names = []system.Placement{base}, []string{"largest memory"}
	for b := range p.Blocks {
		for m := range p.Memories {
			if m == base.Memory[b] || base.Memory[b] < 0 || !fits(b, m) {
				continue
			}
			x := base
			x.Memory = slices.Clone(base.Memory)
			x.Memory[b] = m
			all = append(all, x)
			names = append(names, objects(built, b)+" in "+p.Memories[m].Name)
		}
	}
	return all, names
}

// programsOf returns the programs of an application's packets that stay on the
// NIC, under every placement, each once.
//
// Each comes again without stateless operations, so that memories and locks are
// its limit; with brief, of the first placement alone.
func programsOf(b *board.Board, name string, m *model.Model, seed uint64, brief bool) ([]placed, error) {
	t, err := trafficOf(name)
	if err != nil {
		return nil, err
	}
	if t.Flows != nil { // few flows will do: what a program is does not depend on them
		f := *t.Flows
		f.Count = min(f.Count, 10_000)
		t.Flows = &f
	}
	built, err := build(m, name, t, plan.Options{Seed: seed})
	if err != nil {
		return nil, err
	}
	var out []placed
	seen := map[string]bool{}
	all, names := placements(built)
	for i, place := range all {
		s, err := system.New(b, built, place, system.Options{})
		if err != nil {
			return nil, err
		}
		for _, path := range s.Paths {
			r := path.Routes[system.NIC]
			p := s.Programs[r.Out]
			p.PacketBytes = 64 // so that state, and not the wire, is the limit
			key := fmt.Sprintf("%+v", p)
			if r.Host || path.Share < 0.01 || seen[key] || len(p.Accesses)+len(p.Locks) == 0 {
				continue
			}
			seen[key] = true
			out = append(out, placed{name, names[i], p})
			if i == 0 || !brief {
				p.Stateless = nil
				out = append(out, placed{name, names[i] + ", state alone", p})
			}
		}
	}
	return out, nil
}

func modelAccuracy(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("model-accuracy")
	if err != nil {
		return report.Result{}, err
	}
	b, err := newBench(env, "cora/model-accuracy")
	if err != nil {
		return report.Result{}, err
	}
	suite := "quick"
	if env.Scale == experiments.Full {
		suite = "standard"
	}
	if err := b.plan(suite, nil, nil); err != nil {
		return report.Result{}, err
	}
	fitted := len(b.workloads)
	res, err := b.run(ctx)
	if err != nil {
		return res, err
	}
	m, _, err := fit.Fit(b.samples, fit.Options{Board: b.driver.Board(), Suite: suite, Seed: env.Seed})
	if err != nil {
		return res, err
	}
	var programs []placed
	b.workloads = b.workloads[:0]
	for _, name := range apps.Names {
		of, err := programsOf(b.driver.Board(), name, m, env.Seed, env.Scale == experiments.Quick)
		if err != nil {
			return res, err
		}
		for _, p := range of {
			p.program.Flows = &traffic.Flows{Count: accuracyFlows}
			b.add(fmt.Sprintf("%s %d", name, len(programs)+1), p.program)
			programs = append(programs, p)
		}
	}
	if _, err = b.run(ctx); err != nil {
		return res, err
	}
	res.Data.Columns = []string{"application", "placement", "accesses", "locks", "mpps", "mpps_low", "mpps_high", "predicted", "error_pct", "bottleneck"}
	table := report.Table{Title: "Predicted against measured", Columns: []string{"application", "placement", "measured, Mpps", "predicted, Mpps", "error, %", "bottleneck predicted"}}
	panel := report.Panel{X: report.Axis{Label: "measured", Unit: "Mpps"}, Y: report.Axis{Label: "predicted", Unit: "Mpps"}}
	errors := map[string][]float64{}
	most, worst := 0.0, ""
	for i, p := range programs {
		sample := b.samples[i]
		x, err := m.Predict(b.workloads[i].Program, b.workloads[i].Traffic, model.Options{})
		if err != nil {
			return res, err
		}
		e := 100 * (x.Mpps/sample.Mpps - 1)
		if of := errors[""]; len(of) == 0 || math.Abs(e) > slices.Max(of) {
			worst = fmt.Sprintf("The worst prediction is of %s (%s): %.3g Mpps instead of %.3g, limited by %s.", p.app, p.where, x.Mpps, sample.Mpps, x.Bottleneck)
		}
		errors[p.app] = append(errors[p.app], math.Abs(e))
		errors[""] = append(errors[""], math.Abs(e))
		most = max(most, sample.Mpps, x.Mpps)
		res.Data.Add(p.app, p.where, len(p.program.Accesses), len(p.program.Locks), sample.Mpps, sample.Low, sample.High, x.Mpps, e, x.Bottleneck)
		table.Add(p.app, p.where, sample.Mpps, x.Mpps, e, x.Bottleneck)
		k := slices.Index(apps.Names, p.app)
		if len(panel.Series) == 0 || panel.Series[len(panel.Series)-1].Name != p.app {
			panel.Series = append(panel.Series, report.Series{Name: p.app, Kind: report.Markers, Style: k})
		}
		s := &panel.Series[len(panel.Series)-1]
		s.Points = append(s.Points, report.Point{X: sample.Mpps, Y: x.Mpps})
	}
	panel.Series = append(panel.Series, report.Series{Name: "equal", Style: len(apps.Names), Points: []report.Point{{}, {X: most, Y: most}}})
	for name, of := range errors {
		if name == "" {
			claims.measured("mean", mean(of), "")
			claims.measured("worst", slices.Max(of), "")
			continue
		}
		claims.measured(name, mean(of), "")
	}
	res.Claims = claims
	res.Tables = []report.Table{table}
	res.Figure = report.Figure{Panels: []report.Panel{panel}}
	res.Notes = []string{
		worst,
		"The programs are what the NIC runs for packets of cora/apps that stay on it: state blocks in the largest memory that holds them, then one block at a time in each other memory. State alone: without the stateless operations, so that memories and locks are the limit. Paths with less than 1 % of the packets are left out. Packets of 64 B, " + fmt.Sprint(accuracyFlows) + " flows of equal volume.",
		fmt.Sprintf("The model is fitted to the %s sweep of the same board (%d points), in which none of these programs is; its rule is the model's own.", suite, fitted),
		"The paper's section 8.2.2 gives its accuracy in a figure that is in no source that we found; for locks its text says 4.41 % (cora/fig9).",
	}
	return res, nil
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
