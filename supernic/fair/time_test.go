package fair_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"nicprof/internal/fault"
	"nicprof/supernic/fair"
)

// gbps returns resources of so many Gb/s each, named as given.
func gbps(capacity float64, names ...string) []fair.Resource {
	var rs []fair.Resource
	for _, n := range names {
		rs = append(rs, fair.Resource{Name: n, Unit: "Gb/s", Capacity: capacity})
	}
	return rs
}

func newTime(t testing.TB, policy fair.Policy, rs []fair.Resource, weights []float64, dags ...fair.DAG) *fair.Time {
	t.Helper()
	step, err := fair.NewTime(policy, rs, weights, dags)
	if err != nil {
		t.Fatal(err)
	}
	return step
}

func step(t testing.TB, s *fair.Time, intended ...float64) []fair.Grant {
	t.Helper()
	grants := make([]fair.Grant, len(intended))
	if err := s.Step(intended, grants); err != nil {
		t.Fatal(err)
	}
	return grants
}

// dissertation is the worked example in Gb/s: user 1's DAG has its ingress at
// NT1, user 2's at NT2.
func dissertation(t testing.TB, policy fair.Policy) *fair.Time {
	rs := gbps(100, "NT1", "NT2", "NT3", "NT4")
	rs[2].Capacity = 70
	return newTime(t, policy, rs, ones(2),
		fair.DAG{Name: "1", User: 0, Use: []float64{1, 1.6, 0.8, 0.4}},
		fair.DAG{Name: "2", User: 1, Use: []float64{0, 1, 0, 1.5}})
}

func TestTimelineOfTheDissertation(t *testing.T) {
	s := dissertation(t, fair.SNIC)
	before := step(t, s, 50, 10)
	if before[0].Gbps != 50 || before[1].Gbps != 10 || before[0].Held || before[1].Held {
		t.Errorf("before the load change %+v, want all of 50 and 10", before)
	}
	// User 2 raises its load: until the next step it gets what nobody wanted.
	if l := before[1].Limit; !near(l, 20) {
		t.Errorf("user 2 may have %g Gb/s of NT2 before the step, want the 20 that user 1's 80 leave", l)
	}
	after := step(t, s, 50, 50)
	if !near(after[0].Gbps, 37.5) || !near(after[1].Gbps, 40) || !after[0].Held || !after[1].Held {
		t.Errorf("after the step %+v, want 37.5 and 40 Gb/s, both held", after)
	}
	if !near(after[0].Limit, 37.5) || !near(after[1].Limit, 40) {
		t.Errorf("limits %g and %g, want what is granted: NT2 is full", after[0].Limit, after[1].Limit)
	}
}

func TestDesiredIngressIsGuaranteed(t *testing.T) {
	rs := gbps(100, "port", "NT")
	for _, c := range []struct {
		name              string
		modest, greedy    float64 // desired
		load, granted     float64 // of the modest one
		greedyGetsAtMost  float64
		weightOfTheGreedy float64
	}{
		{"below an equal share", 30, 20, 30, 30, 70, 1},
		{"above an equal share", 70, 20, 70, 70, 30, 1},
		{"against a heavy weight", 30, 20, 30, 30, 70, 1e6},
		{"best effort above it is by shares", 30, 20, 90, 50, 50, 1},
		{"what it does not use is lent", 70, 20, 10, 10, 90, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTime(t, fair.SNIC, rs, []float64{1, c.weightOfTheGreedy},
				fair.DAG{Name: "modest", User: 0, Desired: c.modest, Use: ones(2)},
				fair.DAG{Name: "greedy", User: 1, Desired: c.greedy, Use: ones(2)})
			g := step(t, s, c.load, 1000)
			if !near(g[0].Gbps, c.granted) || !near(g[1].Gbps, c.greedyGetsAtMost) {
				t.Errorf("granted %g and %g Gb/s, want %g and %g", g[0].Gbps, g[1].Gbps, c.granted, c.greedyGetsAtMost)
			}
		})
	}
}

func TestOverSubscriptionIsRefused(t *testing.T) {
	rs := gbps(100, "ingress", "NT2")
	dags := []fair.DAG{{Name: "a", Desired: 50, Use: []float64{1, 1.6}}, {Name: "b", Desired: 40, Use: []float64{1, 1}}}
	err := fair.CheckDesired(rs, dags)
	if fault.KindOf(err) != fault.Input {
		t.Fatalf("got %v, want an input fault", err)
	}
	for _, want := range []string{"NT2 has 100 Gb/s, the DAGs want 120 (a 80, b 40)", "ingress_gbps"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "ingress has") {
		t.Errorf("%q names a resource that suffices", err)
	}
	dags[1].Desired = 20
	if err := fair.CheckDesired(rs, dags); err != nil {
		t.Errorf("what fits exactly is refused: %v", err)
	}
}

// served is what a DAG gets in an epoch of what it offers.
func served(offered float64, g fair.Grant) float64 { return min(offered, g.Limit) }

// TestLentShareReturnsAtOnce measures the time to return: epochs from the first
// in which a lender's load is back to the first in which it has its share.
func TestLentShareReturnsAtOnce(t *testing.T) {
	s := newTime(t, fair.SNIC, gbps(100, "port"), ones(2),
		fair.DAG{Name: "lender", User: 0, Desired: 50, Use: ones(1)},
		fair.DAG{Name: "borrower", User: 1, Desired: 50, Use: ones(1)})
	grants := step(t, s, 50, 1000)
	const leaves, returns = 5, 1000
	back := -1
	for epoch := range 2 * returns {
		lender := 50.0
		if epoch >= leaves && epoch < returns {
			lender = 0
		}
		if epoch == returns-1 && !near(served(1000, grants[1]), 100) {
			t.Errorf("the borrower has %g Gb/s while the lender is away, want 100", served(1000, grants[1]))
		}
		if epoch >= returns && back < 0 && near(served(lender, grants[0]), 50) {
			back = epoch - returns
		}
		if epoch > returns && !near(served(lender, grants[0])+served(1000, grants[1]), 100) {
			t.Fatalf("epoch %d: %v do not fill the port", epoch, grants)
		}
		grants = step(t, s, lender, 1000)
	}
	t.Logf("a lent share is back after %d epoch", back)
	if back != 1 {
		t.Errorf("the share is back after %d epochs, want 1", back)
	}
}

// A DAG that rejoins after a long absence, or joins late, gets its share and no
// more: no credit is left from before, and nobody starves meanwhile.
func TestRejoiningNeitherStarvesNorIsStarved(t *testing.T) {
	s := newTime(t, fair.SNIC, gbps(100, "port"), []float64{1, 1, 2},
		fair.DAG{Name: "always", User: 0, Use: ones(1)},
		fair.DAG{Name: "away", User: 1, Use: ones(1)},
		fair.DAG{Name: "late", User: 2, Use: ones(1)})
	for epoch := range 5000 {
		load := []float64{500, 0, 0}
		want := []float64{100, 0, 0}
		if epoch < 100 || epoch >= 4000 {
			load[1], want = 500, []float64{50, 50, 0}
		}
		if epoch >= 4500 {
			load[2], want = 500, []float64{25, 25, 50}
		}
		for d, g := range step(t, s, load...) {
			if !near(g.Gbps, want[d]) {
				t.Fatalf("epoch %d: DAG %d gets %g Gb/s, want %g", epoch, d, g.Gbps, want[d])
			}
		}
	}
}

// Equal backlogged DAGs are served 1 : 1 in every epoch, and near-equal weights
// by their ratio in every epoch: no DAG waits for another's turn.
func TestNoEpochIsBursty(t *testing.T) {
	for _, weight := range []float64{1, 1.001, 1.5} {
		s := newTime(t, fair.SNIC, gbps(100, "port"), []float64{1, weight},
			fair.DAG{Name: "a", User: 0, Use: ones(1)}, fair.DAG{Name: "b", User: 1, Use: ones(1)})
		for epoch := range 100 {
			g := step(t, s, 200+float64(epoch%7), 300-float64(epoch%5))
			if !near(g[1].Gbps/g[0].Gbps, weight) {
				t.Fatalf("weights 1 : %g, epoch %d: served 1 : %g", weight, epoch, g[1].Gbps/g[0].Gbps)
			}
		}
	}
}

func TestLimits(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 15))
	for i := range instances {
		p := withUsers(rng, random(rng))
		m := len(p.Capacity)
		var rs []fair.Resource
		for _, c := range p.Capacity {
			rs = append(rs, fair.Resource{Capacity: c})
		}
		var dags []fair.DAG
		load := make([]float64, len(p.User))
		for d, u := range p.User {
			load[d] = rng.Float64() * float64(rng.IntN(3))
			use := make([]float64, m)
			for r := range use {
				if load[d] > 0 {
					use[r] = p.Use[d*m+r]
				}
			}
			dags = append(dags, fair.DAG{User: u, Desired: p.Floor[d] * rng.Float64() * 0.5, Use: use})
		}
		grants := step(t, newTime(t, fair.SNIC, rs, p.Weight, dags...), load...)
		limits := make([]float64, m)
		for d, g := range grants {
			if g.Gbps > load[d]*(1+slack) || g.Limit < g.Gbps {
				t.Fatalf("instance %d: DAG %d of load %g has %+v", i, d, load[d], g)
			}
			if want := min(load[d], dags[d].Desired); g.Gbps < want*(1-slack) {
				t.Fatalf("instance %d: DAG %d gets %g, guaranteed are %g", i, d, g.Gbps, want)
			}
			for r, v := range dags[d].Use {
				if v > 0 {
					limits[r] += g.Limit * v
				}
			}
		}
		for r, v := range limits {
			if v > rs[r].Capacity*(1+slack) {
				t.Fatalf("instance %d: the limits need %g of resource %d, which has %g", i, v, r, rs[r].Capacity)
			}
		}
	}
}

func TestBaselinesDoNotMove(t *testing.T) {
	drf, static := dissertation(t, fair.DRF), dissertation(t, fair.Static)
	for _, c := range []struct {
		name string
		s    *fair.Time
		want [2]float64 // limits
	}{
		// 1.6·x1/100 = 1.5·x2/100 and 1.6·x1 + x2 = 100
		{"drf", drf, [2]float64{37.5, 40}},
		{"static", static, [2]float64{50 / 1.6, 50 / 1.5}},
	} {
		for _, load := range [][]float64{{50, 10}, {50, 50}, {0, 90}} {
			for d, g := range step(t, c.s, load...) {
				if !near(g.Limit, c.want[d]) || !near(g.Gbps, min(load[d], c.want[d])) {
					t.Errorf("%s: load %v: DAG %d has %+v, want a limit of %g", c.name, load, d, g, c.want[d])
				}
			}
		}
	}
}

// Static divides a resource among those who use it: nobody has a part of a
// region that is another's alone.
func TestStaticLeavesOwnRegionsWhole(t *testing.T) {
	rs := append(gbps(100, "port"), gbps(40, "region of a", "region of b")...)
	s := newTime(t, fair.Static, rs, ones(2),
		fair.DAG{Name: "a", User: 0, Use: []float64{1, 1, 0}}, fair.DAG{Name: "b", User: 1, Use: []float64{1, 0, 1}})
	if g := step(t, s, 90, 90); !near(g[0].Limit, 40) || !near(g[1].Limit, 40) {
		t.Errorf("limits %g and %g, want the 40 Gb/s of each one's region", g[0].Limit, g[1].Limit)
	}
}

func TestDAGThatUsesNothing(t *testing.T) {
	for _, p := range []fair.Policy{fair.SNIC, fair.DRF, fair.Static} {
		s := newTime(t, p, gbps(100, "port"), ones(2), fair.DAG{User: 0, Use: []float64{0}}, fair.DAG{User: 1, Use: ones(1)})
		if g := step(t, s, 500, 10); g[0].Gbps != 500 || !math.IsInf(g[0].Limit, 1) || g[1].Gbps != 10 {
			t.Errorf("%s: %+v", p, g)
		}
	}
}

func TestSharesAndUse(t *testing.T) {
	s := dissertation(t, fair.SNIC)
	share, resource := s.Shares([]float64{37.5, 40})
	if !allNear(share, []float64{0.6, 0.6}) || !slices.Equal(resource, []int{1, 3}) {
		t.Errorf("shares %v of %v", share, resource)
	}
	if used := s.Used([]float64{37.5, 40}); !allNear(used, []float64{37.5, 100, 30, 75}) {
		t.Errorf("used %v", used)
	}
}

func TestMeterBelievesARiseAtOnce(t *testing.T) {
	m := fair.NewMeter(3)
	var got []float64
	for _, v := range []float64{1, 5, 2, 2, 2, 9} {
		got = append(got, m.Observe(v))
	}
	if want := []float64{1, 5, 5, 5, 2, 9}; !slices.Equal(got, want) {
		t.Errorf("believed %v, want %v", got, want)
	}
}

func TestBadTimeInput(t *testing.T) {
	rs := gbps(100, "port")
	for _, d := range []fair.DAG{{Use: ones(2)}, {Use: []float64{-1}}, {Use: ones(1), Desired: -1}, {Use: ones(1), User: 1}, {Use: ones(1), Desired: math.NaN()}} {
		if _, err := fair.NewTime(fair.SNIC, rs, ones(1), []fair.DAG{d}); fault.KindOf(err) != fault.Input {
			t.Errorf("%+v: got %v, want an input fault", d, err)
		}
	}
	s := newTime(t, fair.SNIC, rs, ones(1), fair.DAG{Use: ones(1)})
	for _, load := range []float64{-1, math.NaN(), math.Inf(1)} {
		if err := s.Step([]float64{load}, make([]fair.Grant, 1)); fault.KindOf(err) != fault.Input {
			t.Errorf("load %g: got %v, want an input fault", load, err)
		}
	}
	if err := s.Step(nil, nil); fault.KindOf(err) != fault.Input {
		t.Errorf("no loads: got %v", err)
	}
	if _, err := fair.ParsePolicy("wfq"); fault.KindOf(err) != fault.Input {
		t.Errorf("policy wfq: got %v", err)
	}
}

// manyDAGs is an epoch of many users with guarantees, over-loaded.
func manyDAGs(t testing.TB, users, resources int) (*fair.Time, []float64) {
	rng := rand.New(rand.NewPCG(16, 17))
	var rs []fair.Resource
	for range resources {
		rs = append(rs, fair.Resource{Capacity: 100})
	}
	dags := make([]fair.DAG, users)
	load := make([]float64, users)
	for u := range dags {
		use := make([]float64, resources)
		for r := range use {
			use[r] = rng.Float64()
		}
		dags[u] = fair.DAG{User: u, Desired: 50 / float64(users) * rng.Float64(), Use: use}
		load[u] = 1000 / float64(users) * rng.Float64()
	}
	return newTime(t, fair.SNIC, rs, ones(users), dags...), load
}

func TestStepDoesNotAllocate(t *testing.T) {
	s, load := manyDAGs(t, 500, 16)
	grants := make([]fair.Grant, len(load))
	if n := testing.AllocsPerRun(5, func() {
		if err := s.Step(load, grants); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%g allocations a step in steady state, want 0", n)
	}
}

func BenchmarkStep(b *testing.B) {
	s, load := manyDAGs(b, 10000, 16)
	grants := make([]fair.Grant, len(load))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Step(load, grants); err != nil {
			b.Fatal(err)
		}
	}
}
