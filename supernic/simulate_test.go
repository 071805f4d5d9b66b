package supernic

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nicprof/emu/snic"
	"nicprof/sim"
)

func simulate(t testing.TB, s *Scenario, seed uint64) *Result {
	t.Helper()
	r, err := Simulate(t.Context(), s, Options{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every scenario that is delivered runs, and what it says of itself holds.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("../docs/scenarios/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenario", err)
	}
	for _, path := range files {
		s, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		r := simulate(t, s, 1)
		for _, d := range r.DAGs {
			if d.Served <= 0 || d.Causes[snic.DropUnknown]+d.Causes[snic.DropChain] > 0 {
				t.Errorf("%s: DAG %s: %.3f Gb/s served, dropped %v", path, d.Name, d.Served, d.Causes)
			}
		}
		switch filepath.Base(path) {
		case "figure3.yaml":
			// Two stages of a, and b in one pass or two of a's chains.
			if n := len(r.Events); n != 3 || r.DAGs[0].Passes != 2 || r.Events[0].Kind != EventLaunch {
				t.Errorf("%s: %+v", path, r.Events)
			}
		case "scale.yaml":
			for _, kind := range []string{EventScaleOut, EventPR, EventScaleIn, EventThrottle} {
				if !slices.ContainsFunc(r.Events, func(e Event) bool { return e.Kind == kind }) {
					t.Errorf("%s: no %s in %+v", path, kind, r.Events)
				}
			}
		case "switch.yaml":
			for _, kind := range []string{EventSwitch, EventPR, EventVictim} {
				if !slices.ContainsFunc(r.Events, func(e Event) bool { return e.Kind == kind }) {
					t.Errorf("%s: no %s in %+v", path, kind, r.Events)
				}
			}
		}
	}
}

// A tenant that offers ten times what he is guaranteed does not harm one that
// offers what he is: throughput and latency of the modest one are within 5 % of
// those it has alone.
func TestGreedyTenant(t *testing.T) {
	data, err := os.ReadFile("../docs/scenarios/greedy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for seed, size := range []string{"512", "128", "facebook"} {
		seed := uint64(seed)
		s := parse(t, strings.ReplaceAll(string(data), "size: 512", "size: "+size))
		both := simulate(t, s, seed)
		s.offers = slices.DeleteFunc(s.offers, func(o offer) bool { return s.DAGs[o.dag].Name == "g" })
		alone := simulate(t, s, seed)
		g, m, solo := both.DAGs[0], both.DAGs[1], alone.DAGs[1]
		if g.Offered < 9.5*s.DAGs[0].IngressGbps || g.Served < s.DAGs[0].IngressGbps || g.Served > 0.5*g.Offered {
			t.Errorf("size %s: the greedy one offers %.1f Gb/s and gets %.1f", size, g.Offered, g.Served)
		}
		for _, x := range []struct {
			what         string
			beside, solo float64
		}{
			{"throughput, Gb/s", m.Served, solo.Served},
			{"median latency, µs", float64(m.P50) / 1e6, float64(solo.P50) / 1e6},
			{"99th percentile, µs", float64(m.P99) / 1e6, float64(solo.P99) / 1e6},
		} {
			if math.Abs(x.beside/x.solo-1) > 0.05 {
				t.Errorf("size %s: the modest one's %s is %.4g beside the greedy one, %.4g alone", size, x.what, x.beside, x.solo)
			}
		}
		if m.Dropped != 0 {
			t.Errorf("size %s: %d packets of the modest one dropped", size, m.Dropped)
		}
	}
}

// The same when both share one chain: what the greedy one gets is what the modest
// one leaves.
func TestGreedyTenantOnASharedChain(t *testing.T) {
	s := parse(t, `board: snic
overrides: {regions: 1, region_area: 1, credits: 32}
duration_us: 4000
users: [{name: greedy}, {name: modest}]
nts: [{name: n, cycles: 50, gbps: 40, area: 1, shareable: true}]
dags:
  - {name: g, user: greedy, ingress_gbps: 9, nodes: [n]}
  - {name: m, user: modest, ingress_gbps: 15, nodes: [n]}
load:
  - {dag: g, at_us: 0, gbps: 90, size: 512}
  - {dag: m, at_us: 0, gbps: 15, size: 512}
`)
	r := simulate(t, s, 1)
	g, m := r.DAGs[0], r.DAGs[1]
	if math.Abs(m.Served/m.Offered-1) > 0.05 || g.Served < 9 || g.Served+m.Served > 40.5 {
		t.Errorf("greedy %.1f of %.1f Gb/s, modest %.1f of %.1f", g.Served, g.Offered, m.Served, m.Offered)
	}
	if !slices.ContainsFunc(r.Events, func(e Event) bool { return e.Kind == EventThrottle && e.User == 0 }) ||
		slices.ContainsFunc(r.Events, func(e Event) bool { return e.Kind == EventThrottle && e.User == 1 }) {
		t.Errorf("throttled: %+v", r.Events)
	}
}

// A DAG that comes later shares the NT of a greedy one, which offers more than
// the NT can, up to what it is guaranteed.
func TestLateTenantOnAGreedyChain(t *testing.T) {
	r := simulate(t, parse(t, `board: snic
overrides: {regions: 1, region_area: 1, credits: 32}
duration_us: 15000
users: [{name: greedy}, {name: modest}]
nts: [{name: n, cycles: 50, gbps: 40, area: 1, shareable: true}]
dags:
  - {name: g, user: greedy, ingress_gbps: 9, nodes: [n]}
  - {name: m, user: modest, ingress_gbps: 15, nodes: [n], deploy_us: 2000}
load:
  - {dag: g, at_us: 0, gbps: 60, size: 512}
  - {dag: m, at_us: 3000, gbps: 15, size: 512}
`), 1)
	if m := r.DAGs[1]; m.Served < 0.99*m.Offered {
		t.Errorf("modest: %.2f of %.2f Gb/s", m.Served, m.Offered)
	}
	if slices.ContainsFunc(r.Events, func(e Event) bool { return e.Kind == EventSwitch }) {
		t.Errorf("a region was switched to the chain that it had: %+v", r.Events)
	}
}

// The chain that a context switch brings is divided by time as any other: a
// greedy tenant's load waits at the port, not in the packet store.
func TestThrottleAfterASwitch(t *testing.T) {
	r := simulate(t, parse(t, `board: snic
overrides: {regions: 1, region_area: 1, credits: 32}
duration_us: 25000
users: [{name: other}, {name: greedy}]
nts:
  - {name: o, cycles: 10, gbps: 100, area: 1}
  - {name: n, cycles: 50, gbps: 40, area: 1, shareable: true}
dags:
  - {name: x, user: other, ingress_gbps: 1, nodes: [o]}
  - {name: g, user: greedy, ingress_gbps: 9, nodes: [n]}
load:
  - {dag: x, at_us: 0, gbps: 1, size: 512}
  - {dag: x, at_us: 5000, gbps: 0}
  - {dag: g, at_us: 12000, gbps: 60, size: 512}
`), 1)
	if !slices.ContainsFunc(r.Events, func(e Event) bool { return e.Kind == EventThrottle && e.User == 1 }) {
		t.Errorf("60 Gb/s for an NT of 40 were not throttled: %+v", r.Events)
	}
}

// The core and the NTs are all that an unloaded packet meets: 49 cycles, those of
// its way, 16 for another pass and 4 to meet after branches.
func TestUnloadedLatency(t *testing.T) {
	for _, test := range []struct {
		parallelism string
		cycles      sim.Time
	}{{"dag", 49 + 100 + 4 + 16 + 50}, {"none", 49 + 200}} {
		text := `board: snic
overrides: {regions: 3, region_area: 4}
duration_us: 1000
users: [{name: u}]
nts:
  - {name: nt1, cycles: 50, area: 1}
  - {name: nt2, cycles: 50, area: 1}
  - {name: nt3, cycles: 50, area: 1}
  - {name: nt4, cycles: 50, area: 1}
dags: [{name: a, user: u, nodes: [nt1, nt2, nt3, nt4], edges: [[nt1, nt2], [nt2, nt4], [nt3, nt4]]}]
load: [{dag: a, at_us: 0, gbps: 0.01, size: 64}]
policy: {parallelism: ` + test.parallelism + "}\n"
		r := simulate(t, parse(t, text), 1)
		want := test.cycles * 4 * sim.Nanosecond
		if got := r.DAGs[0].P50; got != want {
			t.Errorf("%s: %v ns, want %v", test.parallelism, float64(got)/1000, float64(want)/1000)
		}
	}
}

// Packets are neither lost nor made: what is offered is served, dropped for a
// cause, or still there.
func TestConservation(t *testing.T) {
	s := parse(t, strings.ReplaceAll(twoUsers, "duration_us: 1000", "duration_us: 3000"))
	c, err := newControl(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range c.actions() {
		c.board.Run(a.at)
		if err := a.do(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.divide(); err != nil {
		t.Fatal(err)
	}
	c.board.Run(2 * sim.Millisecond)
	if err := c.board.Offer(0, snic.Load{}); err != nil {
		t.Fatal(err)
	}
	c.board.Run(3 * sim.Millisecond)
	f := c.board.Flow(0)
	dropped := int64(0)
	for _, n := range f.Dropped {
		dropped += n
	}
	if f.Offered.Packets == 0 || f.Offered.Packets != f.Served.Packets+dropped {
		t.Errorf("%d offered, %d served, %d dropped", f.Offered.Packets, f.Served.Packets, dropped)
	}
}

// A chain whose credits do not suffice for its rate counts for less, so that its
// packets do not fill the packet store that others need.
func TestRegionThatCarriesLess(t *testing.T) {
	s := parse(t, `board: snic
overrides: {regions: 2, region_area: 4, credits: 4}
duration_us: 6000
users: [{name: greedy}, {name: modest}]
nts:
  - {name: n1, cycles: 100, gbps: 100, area: 1}
  - {name: n2, cycles: 100, gbps: 100, area: 1}
dags:
  - {name: g, user: greedy, ingress_gbps: 5, nodes: [n1, n2], edges: [[n1, n2]]}
  - {name: m, user: modest, ingress_gbps: 5, nodes: [n1]}
load:
  - {dag: g, at_us: 0, gbps: 90, size: 1024}
  - {dag: m, at_us: 0, gbps: 5, size: 1024}
`)
	r := simulate(t, s, 1)
	store := r.Resources[slices.IndexFunc(r.Resources, func(u Use) bool { return u.Resource == "store" })].Value
	if g := r.DAGs[0]; g.Served > 0.8*g.Offered || store > 0.25 {
		t.Fatalf("greedy %.1f Gb/s, the store is %.2f full: credits do not limit here, or nothing follows them", g.Served, store)
	}
	if m := r.DAGs[1]; m.Dropped > 0 || m.P50 > 2*sim.Microsecond {
		t.Errorf("modest: %d dropped, %v ns", m.Dropped, m.P50/sim.Nanosecond)
	}
}

// The same seed gives the same result, another seed another.
func TestDeterminism(t *testing.T) {
	s := parse(t, twoUsers)
	a, b, other := simulate(t, s, 1), simulate(t, s, 1), simulate(t, s, 2)
	a.Spaces, b.Spaces = nil, nil
	if !reflect.DeepEqual(a, b) {
		t.Error("one seed, two results")
	}
	if reflect.DeepEqual(a.DAGs, other.DAGs) {
		t.Error("two seeds, one result")
	}
}

// Bursts wait for each other at the ingress.
func TestBursts(t *testing.T) {
	p99 := func(burst string) sim.Time {
		text := edit(t, twoUsers, "gbps: 40, size: 512", "gbps: 20, size: 512"+burst)
		return simulate(t, parse(t, edit(t, text, "\n  - {dag: a, at_us: 500, gbps: 80}", "")), 1).DAGs[0].P99
	}
	if one, many := p99(""), p99(", burst: 32"); many < 2*one {
		t.Errorf("99th percentile %v ps alone, %v ps in bursts of 32", one, many)
	}
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Simulate(ctx, parse(t, twoUsers), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
