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

func divide(t testing.TB, s fair.Space) fair.Division {
	t.Helper()
	d, err := s.Divide()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func space(regions int, chains []fair.Chain, dags ...fair.Tenant) fair.Space {
	users := 0
	for _, d := range dags {
		users = max(users, d.User+1)
	}
	return fair.Space{Policy: fair.SNIC, Regions: regions, MemoryMB: 1024, Chains: chains, Weights: ones(users), DAGs: dags}
}

// regions returns the regions by pool.
func regions(d fair.Division) []int {
	var n []int
	for _, p := range d.Pools {
		n = append(n, p.Instances)
	}
	return n
}

func TestMoreThanOneRegion(t *testing.T) {
	d := divide(t, space(4, []fair.Chain{{Name: "aes", Gbps: 30}}, fair.Tenant{Name: "a", Gbps: 75, Chains: []int{0}}))
	if got := regions(d); !slices.Equal(got, []int{3}) || !near(d.Pools[0].Need, 2.5) {
		t.Errorf("75 Gb/s on a chain of 30: needs %g, gets %v; want 2.5 and 3 regions", d.Pools[0].Need, got)
	}
	if !near(d.LevelOfRegions[0], 1) {
		t.Errorf("carries %g of the load, want all", d.LevelOfRegions[0])
	}
}

func TestLessThanOneRegion(t *testing.T) {
	s := space(4, []fair.Chain{{Name: "fw", Gbps: 100, Shareable: true}},
		fair.Tenant{Name: "a", User: 0, Gbps: 50, Chains: []int{0}}, fair.Tenant{Name: "b", User: 1, Gbps: 30, Chains: []int{0}})
	d := divide(t, s)
	if len(d.Pools) != 1 || d.Pools[0].Instances != 1 || !near(d.Pools[0].Need, 0.8) {
		t.Errorf("two users of half a region and a third: pools %+v, want one of 0.8 in 1 region", d.Pools)
	}
	for _, p := range []fair.Policy{fair.DRF, fair.Static} {
		s.Policy = p
		if d := divide(t, s); !slices.Equal(regions(d), []int{1, 1}) {
			t.Errorf("%s: regions %v, want one a user: it shares no chain", p, regions(d))
		}
	}
	s.Policy, s.Chains[0].Shareable = fair.SNIC, false
	if d := divide(t, s); !slices.Equal(regions(d), []int{1, 1}) {
		t.Errorf("a chain that is not shareable: regions %v, want one a user", regions(d))
	}
}

// What nobody else may use is charged whole, so that who shares has more.
func TestSharingIsRewarded(t *testing.T) {
	chains := []fair.Chain{{Name: "shared", Gbps: 100, Shareable: true}, {Name: "own", Gbps: 100}}
	d := divide(t, space(2, chains,
		fair.Tenant{Name: "a", User: 0, Gbps: 160, Chains: []int{0}}, fair.Tenant{Name: "b", User: 1, Gbps: 160, Chains: []int{1}}))
	if !near(d.Level[0], 1/1.6) || !near(d.Level[1], 0.5) {
		t.Errorf("levels %v of 1.6 regions; want 1 region for each: 0.625 of what the first asks for, 0.5 of the second's two", d.Level)
	}
}

func TestScarceRegions(t *testing.T) {
	chains := []fair.Chain{{Name: "x", Gbps: 100}, {Name: "y", Gbps: 100}, {Name: "z", Gbps: 100}}
	s := space(2, chains,
		fair.Tenant{Name: "a", User: 0, Gbps: 300, Chains: []int{0}},
		fair.Tenant{Name: "b", User: 1, Gbps: 20, Chains: []int{1}},
		fair.Tenant{Name: "c", User: 2, Gbps: 10, Chains: []int{2}})
	d := divide(t, s)
	if d.Regions() != 2 || len(d.Unplaced()) != 1 {
		t.Errorf("%d regions in use and %d pools without; want 2 and 1", d.Regions(), len(d.Unplaced()))
	}
	if text := strings.Join(s.Explain(&d), "\n"); !strings.Contains(text, "context switches") || !strings.Contains(text, "chain x for a") {
		t.Errorf("explanation %q", text)
	}
	s.Regions = 5
	if d = divide(t, s); !slices.Equal(regions(d), []int{3, 1, 1}) || len(d.Unplaced()) != 0 {
		t.Errorf("of 5 regions %v, want 3, 1, 1", regions(d))
	}
}

func TestStaticLeavesRegionsThatDoNotDivide(t *testing.T) {
	chains := []fair.Chain{{Name: "x", Gbps: 100}}
	s := space(5, chains, fair.Tenant{User: 0, Gbps: 900, Chains: []int{0}}, fair.Tenant{User: 1, Gbps: 900, Chains: []int{0}})
	for p, want := range map[fair.Policy]int{fair.Static: 4, fair.DRF: 5} {
		s.Policy = p
		if d := divide(t, s); d.Regions() != want {
			t.Errorf("%s uses %d of 5 regions, want %d", p, d.Regions(), want)
		}
	}
}

func TestMemoryIsDividedToo(t *testing.T) {
	s := space(8, []fair.Chain{{Name: "kv", Gbps: 100, Shareable: true}},
		fair.Tenant{Name: "big", User: 0, Gbps: 10, Chains: []int{0}, MemoryMB: 3000},
		fair.Tenant{Name: "small", User: 1, Gbps: 10, Chains: []int{0}, MemoryMB: 3})
	d := divide(t, s)
	if d.Pages[1] < 1 || d.Pages[1] > 2 || d.Pages[0]+d.Pages[1] != 512 {
		t.Errorf("pages %v, want 512 in all and 1 or 2 for 3 MB", d.Pages)
	}
	if near(d.Level[0], 1) || !near(d.Level[1], 1) {
		t.Errorf("levels %v: memory is the first one's dominant resource and short", d.Level)
	}
}

// TestRoundingToRegions prints and bounds what is lost by whole regions: less
// than one region a pool, and less than one region of a DAG with one chain.
func TestRoundingToRegions(t *testing.T) {
	rng := rand.New(rand.NewPCG(18, 19))
	var lost, largest, alone, pools, without float64
	var dags int
	for i := range instances {
		s := fair.Space{Policy: fair.SNIC, Regions: 1 + rng.IntN(16), MemoryMB: rng.IntN(10000)}
		for range 1 + rng.IntN(5) {
			s.Chains = append(s.Chains, fair.Chain{Gbps: 10 + 90*rng.Float64(), Shareable: rng.IntN(2) == 0})
		}
		for u := range 1 + rng.IntN(6) {
			s.Weights = append(s.Weights, 0.5+rng.Float64())
			for range 1 + rng.IntN(2) {
				d := fair.Tenant{User: u, Gbps: 200 * rng.Float64() * rng.Float64(), MemoryMB: 1000 * rng.Float64() * float64(rng.IntN(2))}
				for range 1 + rng.IntN(2) {
					d.Chains = append(d.Chains, rng.IntN(len(s.Chains)))
				}
				slices.Sort(d.Chains)
				d.Chains = slices.Compact(d.Chains)
				s.DAGs = append(s.DAGs, d)
			}
		}
		d := divide(t, s)
		if d.Regions() > s.Regions {
			t.Fatalf("instance %d: %d regions of %d", i, d.Regions(), s.Regions)
		}
		pages := 0
		for _, n := range d.Pages {
			pages += n
		}
		if 2*pages > s.MemoryMB {
			t.Fatalf("instance %d: %d MB of %d", i, 2*pages, s.MemoryMB)
		}
		poolOf := make([][]int, len(s.DAGs))
		for n, p := range d.Pools {
			if p.Granted-float64(p.Instances) >= 1 {
				t.Fatalf("instance %d: a pool has %d regions for %g", i, p.Instances, p.Granted)
			}
			if float64(p.Instances) >= p.Need+1 {
				t.Fatalf("instance %d: a pool has %d regions, and need of %g", i, p.Instances, p.Need)
			}
			pools++
			if p.Instances == 0 && p.Need > 0 {
				without++
			}
			for _, dag := range p.DAGs {
				poolOf[dag] = append(poolOf[dag], n)
			}
		}
		for n, dag := range s.DAGs {
			loss := d.Level[n] - d.LevelOfRegions[n]
			if d.LevelOfRegions[n] < -slack || d.LevelOfRegions[n] > 1+slack {
				t.Fatalf("instance %d: level %g", i, d.LevelOfRegions[n])
			}
			dags++
			lost += max(0, loss)
			largest = max(largest, loss)
			if pool := d.Pools[poolOf[n][0]]; len(dag.Chains) == 1 && len(pool.DAGs) == 1 {
				inRegions := loss * dag.Gbps / s.Chains[dag.Chains[0]].Gbps
				if inRegions >= 1 {
					t.Fatalf("instance %d: a DAG alone on its chain lost %g regions", i, inRegions)
				}
				alone = max(alone, inRegions)
			}
		}
	}
	t.Logf("%d instances, %d DAGs: rounding takes %.1f %% of a DAG's load in the mean, at most %.0f %%; of DAGs alone on one chain at most %.2f regions; %.1f %% of pools get no region",
		instances, dags, 100*lost/float64(dags), 100*largest, alone, 100*without/pools)
}

func TestBadSpaceInput(t *testing.T) {
	for _, c := range []struct {
		edit func(*fair.Space)
		want string
	}{
		{func(s *fair.Space) { s.Regions = -1 }, "-1 regions"},
		{func(s *fair.Space) { s.Chains[0].Gbps = 0 }, "chain x carries 0"},
		{func(s *fair.Space) { s.DAGs[0].Gbps = -3 }, "DAG a asks for -3 Gb/s"},
		{func(s *fair.Space) { s.DAGs[0].MemoryMB = math.NaN() }, "DAG a asks for"},
		{func(s *fair.Space) { s.DAGs[0].User = 1 }, "there is no user 1"},
		{func(s *fair.Space) { s.DAGs[0].Chains[0] = 2 }, "there is no chain 2"},
		{func(s *fair.Space) { s.Weights[0] = 0 }, "weight 0"},
	} {
		s := space(2, []fair.Chain{{Name: "x", Gbps: 100}}, fair.Tenant{Name: "a", Gbps: 1, Chains: []int{0}})
		c.edit(&s)
		if _, err := s.Divide(); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an input fault with %q", err, c.want)
		}
	}
}

func TestNobodyAsksForSpace(t *testing.T) {
	s := space(2, []fair.Chain{{Name: "x", Gbps: 100}}, fair.Tenant{Name: "idle", Chains: []int{0}})
	d := divide(t, s)
	if d.Regions() != 0 || !near(d.Level[0], 1) || len(d.Unplaced()) != 0 {
		t.Errorf("%+v: an idle DAG needs nothing and has it", d)
	}
}
