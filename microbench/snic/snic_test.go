package snic_test

import (
	"math"
	"testing"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/microbench/microbenchtest"
	"nicprof/microbench/snic"
	"nicprof/program"
	"nicprof/traffic"
)

func open(t *testing.T, name string) microbench.Driver {
	t.Helper()
	b, err := board.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	d, err := snic.New(b, microbench.Emulated)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDriver(t *testing.T) {
	microbenchtest.Run(t, func(t *testing.T) microbench.Driver { return open(t, "snic") })
}

// TestPANICDriver is the same of a board whose tasks take random times.
func TestPANICDriver(t *testing.T) {
	microbenchtest.Run(t, func(t *testing.T) microbench.Driver { return open(t, "panic") })
}

func TestRegistered(t *testing.T) {
	b := open(t, "snic").Board()
	if _, err := microbench.Open(b, microbench.Emulated); err != nil {
		t.Error(err)
	}
	if _, err := microbench.Open(b, microbench.Native); fault.KindOf(err) != fault.Missing {
		t.Errorf("native: %v, want a missing board", err)
	}
}

func measure(t *testing.T, p program.Program, mpps float64) microbench.Sample {
	t.Helper()
	s, err := open(t, "snic").Measure(t.Context(), p, traffic.Traffic{RateMpps: mpps}, microbench.Options{Seed: 1, Precision: .02, MaxRuns: 3})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLatency: a packet alone takes 1.3 us through the board and what its tasks
// take; known tasks have the board's cycles, skipped ones take nothing, and tasks
// side by side as long as one.
func TestLatency(t *testing.T) {
	nt := func(cycles int) program.Stage { return program.Stage{Name: "nt", Cycles: cycles} }
	skipped := nt(100)
	skipped.Skip = true
	aes := program.Stage{Name: "aes"}
	for _, c := range []struct {
		p      program.Program
		cycles float64
	}{
		{program.Program{}, 0},
		{program.Program{Chain: []program.Stage{nt(16), nt(32)}}, 48},
		{program.Program{Chain: []program.Stage{nt(16), skipped, nt(32)}}, 48},
		{program.Program{Chain: []program.Stage{nt(16), nt(16), nt(16)}, Parallel: true}, 16},
		{program.Program{Chain: []program.Stage{nt(16), nt(32)}, Base: "panic"}, 48 + 16},
		{program.Program{Chain: []program.Stage{aes}}, 40},
	} {
		want := 1.3 + c.cycles*.004
		if got := measure(t, c.p, .02).Latency.P50; math.Abs(got-want) > 1e-9 {
			t.Errorf("%+v: %v us, want %v", c.p, got, want)
		}
	}
}

// TestBottlenecks: what limits a chain is named.
func TestBottlenecks(t *testing.T) {
	nt := program.Stage{Name: "nt", Cycles: 16}
	slow := program.Stage{Name: "slow", Cycles: 16, Gbps: 20}
	for want, p := range map[string]program.Program{
		"credits":   {Chain: []program.Stage{nt}, Credits: 1},
		"region0":   {Chain: []program.Stage{nt, slow}, PacketBytes: 1024},
		"scheduler": {Chain: []program.Stage{nt, nt, nt}, Base: "panic", Credits: 1000},
		"ingress":   {Chain: []program.Stage{nt}, PacketBytes: 1500, Credits: 100},
	} {
		if s := measure(t, p, 0); s.Bottleneck != want && !(want == "ingress" && s.Bottleneck == "egress") {
			t.Errorf("%+v: bottleneck %s, want %s; %v", p, s.Bottleneck, want, s.Utilisation)
		}
	}
}

// TestOutage: the configuration of a region takes its 5 ms, a context switch the
// time to save what was there besides.
func TestOutage(t *testing.T) {
	p := program.Program{Chain: []program.Stage{{Name: "nt", Cycles: 16}}, Configure: program.ConfigureRegion}
	pr := measure(t, p, 1).OutageUS
	p.Configure = program.ContextSwitch
	cs := measure(t, p, 1).OutageUS
	if pr < 5000 || pr > 5003 || cs-pr < 18 || cs-pr > 23 {
		t.Errorf("configuration %v us, context switch %v us", pr, cs)
	}
	if s := measure(t, program.Program{}, 1); s.OutageUS != 0 {
		t.Errorf("an outage of %v us without a configuration", s.OutageUS)
	}
}

// TestComplaints: chains that the board cannot run.
func TestComplaints(t *testing.T) {
	nt := program.Stage{Name: "nt", Cycles: 16}
	skipped := nt
	skipped.Skip = true
	for what, p := range map[string]program.Program{
		"unknown task":            {Chain: []program.Stage{{Name: "warp"}}},
		"nothing runs":            {Chain: []program.Stage{skipped}},
		"too many regions":        {Chain: []program.Stage{nt, nt, nt, nt, nt}, Parallel: true},
		"negative credits":        {Chain: []program.Stage{nt}, Credits: -1},
		"credits of nothing":      {Credits: 4},
		"unknown configuration":   {Chain: []program.Stage{nt}, Configure: "melt"},
		"configures many regions": {Chain: []program.Stage{nt, nt}, Parallel: true, Configure: program.ConfigureRegion},
		"stateless work":          {Stateless: program.Stateless{program.ALU: 10}},
		"negative cycles":         {Chain: []program.Stage{{Name: "nt", Cycles: -1}}},
		"negative rate":           {Chain: []program.Stage{{Name: "nt", Cycles: 1, Gbps: -1}}},
	} {
		if _, err := open(t, "snic").Measure(t.Context(), p, traffic.Traffic{}, microbench.Options{}); fault.KindOf(err) != fault.Input {
			t.Errorf("%s: %v", what, err)
		}
	}
}
