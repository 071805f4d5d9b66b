package cora

import (
	"slices"
	"strings"
	"testing"

	"nicprof/cora/apps"
	"nicprof/cora/partition"
	"nicprof/cora/plan"
	"nicprof/experiments"
	"nicprof/microbench"
	"nicprof/model"
	"nicprof/traffic"
)

// idealModel is the model that the quick sweep of the ideal board gives.
func idealModel(t *testing.T) *model.Model {
	t.Helper()
	d := newIdeal(t)
	m, _, err := quickModel(t.Context(), experiments.Env{Seed: 1, Scale: experiments.Quick, Open: func(string) (microbench.Driver, error) { return d, nil }}, "test")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestPlansAdaptToTheTable(t *testing.T) {
	m := idealModel(t)
	tr, err := trafficOf("natlb")
	if err != nil {
		t.Fatal(err)
	}
	tr.Flows = &traffic.Flows{Count: 1000}
	s := adaptSweeps()[0]
	points, err := s.plans(t.Context(), m, tr, 1)
	if err != nil {
		t.Fatal(err)
	}
	last, feasible := 0.0, 0
	for i, p := range points {
		x := p.plans[0]
		if on, room := flowsOnNIC(p.built, x), int(p.value*1000); on > room {
			t.Errorf("%d flows in a table for %d", on, room)
		}
		for k, other := range p.plans {
			if other.Feasible && (!x.Feasible || x.Objective > other.Objective*(1+1e-9)) {
				t.Errorf("room for %v: cora's plan %v, %v; strategy %s has one of %v", p.value, x.Feasible, x.Objective, adaptStrategies[k], other.Objective)
			}
		}
		if !x.Feasible {
			continue
		}
		if feasible++; feasible > 1 && x.Objective > last*(1+1e-9) {
			t.Errorf("more room (%v) leaves more to the host: %v after %v", p.value, x.Objective, last)
		}
		last = x.Objective
		if i == len(points)-1 && (x.HostCores != 0 || !strings.Contains(onNIC(p.built, x), "nat in ")) {
			t.Errorf("room for all: %v host cores, on the NIC %s", x.HostCores, onNIC(p.built, x))
		}
	}
	if feasible < 2 {
		t.Errorf("%d feasible plans of %d", feasible, len(points))
	}
}

func TestPlacementsMoveOneBlockAtATime(t *testing.T) {
	m := idealModel(t)
	for _, name := range apps.Names {
		tr, err := trafficOf(name)
		if err != nil {
			t.Fatal(err)
		}
		tr.Flows.Count = min(tr.Flows.Count, 1000)
		built, err := build(m, name, tr, plan.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		all, names := placements(built)
		if len(all) < 2 || len(all) != len(names) {
			t.Errorf("%s: %d placements, %d names", name, len(all), len(names))
		}
		for i, place := range all[1:] {
			moved := 0
			for b, where := range place.Memory {
				if where != all[0].Memory[b] {
					moved++
				}
				if where == partition.Host && slices.Contains(place.OnNIC[b], true) {
					t.Errorf("%s, %s: block %d has groups on the NIC and is not there", name, names[i+1], b)
				}
			}
			if moved != 1 {
				t.Errorf("%s, %s: %d blocks moved", name, names[i+1], moved)
			}
		}
		programs, err := programsOf(newIdeal(t).board, name, m, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		alone := 0
		for _, p := range programs {
			if strings.HasSuffix(p.where, "state alone") {
				alone++
				if len(p.program.Stateless) > 0 {
					t.Errorf("%s: %s has stateless operations", name, p.where)
				}
			}
		}
		if alone == 0 || alone == len(programs) {
			t.Errorf("%s: %d of %d programs are state alone", name, alone, len(programs))
		}
	}
}
