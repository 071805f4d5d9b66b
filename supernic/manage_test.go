package supernic

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nicprof/emu/snic"
	"nicprof/sim"
)

// fakePlane notes what is done to the data plane.
type fakePlane struct {
	routes  map[int]snic.Route
	ingress map[int]float64
	stopped []int
	pr      map[int]sim.Time // by region, of the last launch
}

func (p *fakePlane) SetRoute(uid int, r snic.Route) error          { p.routes[uid] = r; return nil }
func (p *fakePlane) SetIngress(uid int, gbps float64) error        { p.ingress[uid] = gbps; return nil }
func (p *fakePlane) Stop(region int) error                         { p.stopped = append(p.stopped, region); return nil }
func (p *fakePlane) Launch(region int, _ []int, pr sim.Time) error { p.pr[region] = pr; return nil }

// rig is a manager over a fake data plane.
type rig struct {
	testing.TB
	*manager
	fake *fakePlane
	seen int // events that the test has looked at
}

func newRig(t testing.TB, s *Scenario) *rig {
	memory, err := s.newMemory(1)
	if err != nil {
		t.Fatal(err)
	}
	fake := &fakePlane{routes: map[int]snic.Route{}, ingress: map[int]float64{}, pr: map[int]sim.Time{}}
	r := &rig{TB: t, manager: newManager(s, fake, memory), fake: fake}
	for i, d := range s.DAGs {
		if d.DeployUS == 0 {
			r.deploy(i)
		}
	}
	return r
}

// run lets epochs pass until then, with loads by DAG, Gb/s.
func (r *rig) run(until sim.Time, gbps ...float64) {
	r.Helper()
	for r.now < until {
		r.epoch(r.now+r.s.Platform.Epoch, gbps)
		if err := r.divideSpace(); err != nil || r.err != nil {
			r.Fatal(err, r.err)
		}
	}
}

// news returns the events since the last call as "µs kind NTs@region".
func (r *rig) news() string {
	var lines []string
	for _, e := range r.events[r.seen:] {
		lines = append(lines, fmt.Sprintf("%d %s %s@%d", e.At/sim.Microsecond, e.Kind, strings.ReplaceAll(chainText(r.s.NTs, e.NTs), " ", ""), e.Region))
	}
	r.seen = len(r.events)
	return strings.Join(lines, "\n")
}

func (r *rig) want(what, news string) {
	r.Helper()
	if got := r.news(); got != news {
		r.Errorf("%s:\n%s\nwant\n%s", what, got, news)
	}
}

// served says whether packets of a DAG have a way, of whose regions.
func (r *rig) served(dag int) string {
	if !r.tenants[dag].bound {
		return ""
	}
	return fmt.Sprint(r.fake.routes[dag])
}

// scene returns a scenario of single-NT DAGs, one a user: dag i of NT i.
func scene(t testing.TB, regions, users int, more string) *Scenario {
	text := fmt.Sprintf("board: snic\noverrides: {regions: %d, region_area: 1}\nduration_us: 1e6\nusers: [", regions)
	for i := range users {
		text += fmt.Sprintf("{name: u%d}, ", i)
	}
	text += "]\nnts:\n"
	for i := range users {
		text += fmt.Sprintf("  - {name: n%d, cycles: 10, gbps: 40, area: 1}\n", i)
	}
	text += "dags:\n"
	for i := range users {
		text += fmt.Sprintf("  - {name: d%d, user: u%d, ingress_gbps: 5, nodes: [n%d]}\n", i, i, i)
	}
	return parse(t, text+more)
}

const ms = sim.Millisecond

// What is deployed before the first packet waits in its region without PR; a DAG
// deployed later is launched into a free region, in 5 ms, before it is accessed.
func TestPreLaunch(t *testing.T) {
	s := scene(t, 2, 2, "")
	s.DAGs[1].DeployUS = 100
	r := newRig(t, s)
	r.want("before the first packet", "0 launch n0@0")
	if r.fake.pr[0] != 0 || r.served(0) == "" {
		t.Error("the first DAG does not serve at once")
	}
	r.run(100*sim.Microsecond, 5, 0)
	r.deploy(1)
	r.want("deployed later", "100 pr n1@1")
	r.run(6*ms, 5, 0)
	r.want("not accessed yet", "5100 launch n1@1")
	if r.fake.pr[1] != 5*ms {
		t.Errorf("PR of %v ps", r.fake.pr[1])
	}
	r.run(8*ms, 5, 1)
	r.want("its first packets", "")
	if r.served(1) == "" {
		t.Error("they are not served at once")
	}
}

// Two regions cannot be configured at the same time: there is one port for it.
func TestOnePRAtATime(t *testing.T) {
	s := scene(t, 2, 2, "")
	s.DAGs[0].DeployUS, s.DAGs[1].DeployUS = 20, 20
	r := newRig(t, s)
	r.run(20*sim.Microsecond, 0, 0)
	r.deploy(0)
	r.deploy(1)
	r.run(12*ms, 0, 0)
	r.want("two PRs", "20 pr n0@0\n20 pr n1@1\n5020 launch n0@0\n10020 launch n1@1")
}

// A DAG whose NTs run already, with bandwidth to spare, is served at once.
func TestTimeSharing(t *testing.T) {
	s := parse(t, edit(t, twoUsers, "region_area: 2", "region_area: 3"))
	s.DAGs[1].DeployUS = 100
	r := newRig(t, s)
	r.run(100*sim.Microsecond, 40, 0)
	r.news()
	r.deploy(1)
	r.want("another user's DAG", "")
	if got := r.served(1); got != "[[[{0 2}]]]" {
		t.Errorf("its way is %s, want the second NT of region 0", got)
	}
	// Not beyond the bandwidth: 100 Gb/s less the 50 that a is guaranteed.
	s.DAGs[1].IngressGbps = 50.1
	r = newRig(t, s)
	r.deploy(1)
	if got := r.served(1); got != "[[[{1 1}]]]" {
		t.Errorf("its way is %s, want a region of its own", got)
	}
}

// An NT that is not shareable is not shared, whatever else could be: not when it
// serves, and not when it is in the victim cache.
func TestNotShareable(t *testing.T) {
	text := edit(t, twoUsers, "name: b, user: u2, ingress_gbps: 10, nodes: [nt2]", "name: b, user: u2, ingress_gbps: 10, nodes: [nt3]")
	text = edit(t, text, "region_area: 2", "region_area: 3")
	s := parse(t, text)
	s.DAGs[1].DeployUS = 100
	r := newRig(t, s)
	r.run(100*sim.Microsecond, 40, 0)
	r.news()
	r.deploy(1)
	r.want("another user's DAG", "100 pr nt3@1")
	// The same user's would be.
	s = parse(t, edit(t, text, "user: u2, ingress_gbps: 10", "user: u1, ingress_gbps: 10"))
	r = newRig(t, s)
	if got := r.served(1); got != "[[[{0 4}]]]" {
		t.Errorf("the same user's way is %s", got)
	}
	// a becomes idle and its chain is kept; b may not have it, a may.
	s = parse(t, text)
	s.DAGs[1].DeployUS = 20000
	r = newRig(t, s)
	r.run(ms, 40, 0)
	r.run(20*ms, 0, 0)
	r.news()
	r.deploy(1)
	r.want("with a's chain kept", "20000 pr nt3@1")
	r.run(30*ms, 0, 0)
	r.news()
	r.run(31*ms, 40, 0)
	r.want("a again", "30020 victim_hit nt1→nt2→nt3@0")
}

// Policies drf and static share no chain between users.
func TestBaselinesDoNotShare(t *testing.T) {
	for _, fairness := range []string{"drf", "static"} {
		s := parse(t, edit(t, twoUsers, "fairness: snic", "fairness: "+fairness))
		r := newRig(t, s)
		if got := r.served(1); got != "[[[{2 1}]]]" {
			t.Errorf("%s: b's way is %s, want a region of its own", fairness, got)
		}
	}
}

// The last resort is the region that is least loaded: what it serves ends, the
// PR follows, and its DAG's packets wait at the port.
func TestContextSwitch(t *testing.T) {
	s := scene(t, 2, 3, "")
	r := newRig(t, s)
	r.want("two of three DAGs", "0 launch n0@0\n0 launch n1@1")
	r.run(9*ms, 8, 3, 1)
	r.want("regions that have not served a monitor period stay", "")
	if r.fake.ingress[2] != 0 {
		t.Error("packets without a way are let in")
	}
	r.run(10*ms+40*sim.Microsecond, 8, 3, 1)
	r.want("the least loaded region", "10000 context_switch n1@1\n10020 pr n2@1\n10020 context_switch n0@0\n10040 pr n1@0")
	if !slices.Equal(r.fake.stopped, []int{1, 0}) || r.fake.ingress[1] != 0 {
		t.Errorf("stopped regions %v, DAG 1's ingress %v", r.fake.stopped, r.fake.ingress[1])
	}
	// 20 µs for the state, then 5 ms; the second PR waits for the first.
	if r.fake.pr[1] != 5*ms+20*sim.Microsecond || r.fake.pr[0] != 10*ms {
		t.Errorf("PRs of %v and %v ps", r.fake.pr[1], r.fake.pr[0])
	}
	r.run(16*ms, 8, 3, 1)
	r.want("it serves", "15040 launch n2@1")
	if r.served(2) == "" || r.served(1) != "" {
		t.Error("DAG 2 is not served, or DAG 1 still")
	}
}

// A chain that nobody uses serves again without PR as long as its region is not
// needed; of several the one given up longest ago goes first.
func TestVictimCache(t *testing.T) {
	s := scene(t, 2, 3, "")
	r := newRig(t, s)
	r.run(ms, 5, 5, 0)
	r.run(2*ms, 0, 5, 0)
	r.run(15*ms, 0, 0, 0) // d0 idle since 1 ms, d1 since 2 ms
	r.news()
	r.run(20*ms, 0, 5, 0)
	r.want("d1 again", "15020 victim_hit n1@1")
	r.run(21*ms, 0, 5, 1)
	r.want("d2 takes the kept region, not the serving one", "20020 pr n2@0")
	r.run(26*ms, 5, 5, 1)
	r.want("d0's is gone", "25020 launch n2@0\n25020 context_switch n1@1\n25040 pr n0@1")

	r = newRig(t, s)
	r.run(ms, 5, 5, 0)
	r.run(2*ms, 5, 0, 0)
	r.run(15*ms, 0, 0, 0) // now d1's is the older
	r.news()
	r.run(16*ms, 0, 0, 1)
	r.want("the one given up longest ago", "15020 pr n2@1")

	no := false
	s.Policy.VictimCache = &no
	r = newRig(t, s)
	r.run(ms, 5, 5, 0)
	r.run(15*ms, 0, 5, 0)
	r.news()
	r.run(16*ms, 5, 5, 0)
	r.want("without the cache", "15020 pr n0@0")
}

// A PR that the operator asks for takes the region, whoever has it.
func TestOperator(t *testing.T) {
	s := scene(t, 2, 2, "pr: [{at_us: 1000, region: 0, chain: [n1]}]\n")
	r := newRig(t, s)
	r.run(ms, 5, 5)
	r.news()
	r.operate(0, []int{1})
	r.run(7*ms, 0, 5)
	r.want("the operator's chain", "1000 context_switch n0@0\n1020 pr n1@0\n6040 launch n1@0")
	if r.regions[0].state != kept {
		t.Errorf("the region is in state %d, want a chain that anybody can have", r.regions[0].state)
	}
}

// An instance is added after 10 ms of overload and not before, by PR of 5 ms;
// given up after 10 ms in which one would have done; and what was given up comes
// back without PR.
func TestScaling(t *testing.T) {
	s := scene(t, 2, 1, "")
	r := newRig(t, s)
	r.run(ms, 30)
	r.news()
	r.run(11*ms-20*sim.Microsecond, 70)
	r.want("9.98 ms of overload", "")
	r.run(20*ms, 70)
	r.want("10 ms", "11000 scale_out n0@1\n11000 pr n0@1\n16000 launch n0@1")
	if got := r.served(0); got != "[[[{0 1} {1 1}]]]" {
		t.Errorf("its way is %s, want both in turn", got)
	}
	r.run(40*ms, 35)
	r.want("above the low water mark of one instance", "")
	r.run(60*ms, 20)
	news := r.news()
	if !strings.HasSuffix(news, "scale_in n0@1") || strings.Count(news, "\n") > 0 {
		t.Errorf("with less load: %s", news)
	}
	if got := r.served(0); got != "[[[{0 1}]]]" {
		t.Errorf("its way is %s, want one", got)
	}
	r.run(75*ms, 70)
	news = r.news()
	if !strings.Contains(news, "scale_out n0@1") || !strings.Contains(news, "victim_hit n0@1") || strings.Contains(news, "pr ") {
		t.Errorf("load again: %s", news)
	}
}

// Not every overload is one: bursts that fall within a monitor period scale
// nothing, nor does a load that varies around a mean below the rate.
func TestNoScalingWithoutNeed(t *testing.T) {
	r := newRig(t, scene(t, 2, 1, ""))
	r.run(ms, 30)
	r.news()
	stream := sim.NewStream(1, "load")
	for r.now < 200*ms {
		r.run(r.now+20*sim.Microsecond, 20+30*stream.Float64()) // mean 35 of 40
	}
	r.want("a varying load", "")
	for r.now < 400*ms {
		r.run(r.now+5*ms, 80)
		r.run(r.now+5*ms, 20)
	}
	r.want("bursts of 5 ms", "")
}

// The paper's example: user 2's load grows, and NT2, which both share, is
// overloaded; after 10 ms user 2's whole DAG gets a chain of its own in the free
// region, since that takes no more area than another instance for user 1 would.
func TestWorkedExample(t *testing.T) {
	s := parse(t, `board: snic
overrides: {regions: 3, region_area: 2}
duration_us: 40000
users: [{name: u1}, {name: u2}]
nts:
  - {name: nt1, cycles: 10, gbps: 100, area: 1, shareable: true}
  - {name: nt2, cycles: 10, gbps: 50, area: 1, shareable: true}
  - {name: nt3, cycles: 10, gbps: 100, area: 1, shareable: true}
  - {name: nt4, cycles: 10, gbps: 100, area: 1, shareable: true}
dags:
  - {name: a, user: u1, ingress_gbps: 20, nodes: [nt1, nt2, nt3, nt4], edges: [[nt1, nt2], [nt2, nt3], [nt3, nt4]]}
  - {name: b, user: u2, ingress_gbps: 20, nodes: [nt2, nt4], edges: [[nt2, nt4]]}
`)
	r := newRig(t, s)
	r.want("deployment", "0 launch nt1→nt2@0\n0 launch nt3→nt4@1")
	if got := r.served(1); got != "[[[{0 2}]] [[{1 2}]]]" {
		t.Errorf("b's way is %s, want nt2 and nt4 of a's chains", got)
	}
	r.run(40*sim.Microsecond, 40, 5)
	r.run(20*ms, 40, 30)
	r.want("overload", "10040 scale_out nt2→nt4@2\n10040 pr nt2→nt4@2\n15040 launch nt2→nt4@2")
	if got := r.served(1); got != "[[[{2 3}]]]" {
		t.Errorf("b's way is %s, want its own chain", got)
	}
	// Back on a's chains nt2 would have 45 of 50 Gb/s: above the low water mark.
	r.run(60*ms, 40, 5)
	r.want("b's load falls", "")
	r.run(80*ms, 30, 5)
	if news := r.news(); !strings.HasSuffix(news, "scale_in nt2→nt4@2") {
		t.Errorf("a's load falls: %s", news)
	}
}

// A guarantee above what one instance carries gets as many as it takes, if they
// are there.
func TestInstancesAtDeployment(t *testing.T) {
	s := scene(t, 4, 1, "")
	s.DAGs[0].IngressGbps = 100
	r := newRig(t, s)
	if err := r.divideSpace(); err != nil {
		t.Fatal(err)
	}
	r.want("100 Gb/s over NTs of 40", "0 launch n0@0\n0 launch n0@1\n0 launch n0@2")
	if got := r.served(0); got != "[[[{0 1} {1 1} {2 1}]]]" {
		t.Errorf("its way is %s", got)
	}
}

// Two users of one shared NT work in separate address spaces.
func TestAddressSpaces(t *testing.T) {
	text := strings.ReplaceAll(twoUsers, "name: nt2, ", "name: nt2, memory_mb: 3, ")
	r := newRig(t, parse(t, text))
	if a, b := r.served(0), r.served(1); a == "" || b == "" || len(r.regions[2].dags)+len(r.regions[1].dags)+len(r.regions[0].dags) < 3 {
		t.Fatalf("the two do not share: %s, %s", a, b)
	}
	if len(r.spaces) != 2 || r.spaces[0].Pages != 2 {
		t.Fatalf("%d spaces, want one a user: %+v", len(r.spaces), r.spaces)
	}
	one, two := r.space(0, 1), r.space(1, 1)
	if one == nil || two == nil || one == two {
		t.Fatal("the users have not each a space of nt2")
	}
	if _, err := one.Store(0, 100, []byte("secret")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 6)
	if _, err := two.Load(0, 100, got); err != nil || string(got) != "\x00\x00\x00\x00\x00\x00" {
		t.Errorf("user 2 reads %q, %v", got, err)
	}
	if _, err := two.Store(0, 5<<20, []byte("x")); err == nil {
		t.Error("an access beyond the NT's memory is not refused")
	}
	if _, err := one.Load(0, 100, got); err != nil || string(got) != "secret" {
		t.Errorf("user 1 reads %q, %v", got, err)
	}
	if one.Counts().Refused() != 0 || two.Counts().Refused() != 1 {
		t.Errorf("refusals: %+v and %+v", one.Counts(), two.Counts())
	}
}

// Whatever users offer: no NT that is not shareable ever serves two users, every
// way leads through chains that serve, no chain exceeds its region, and an NT
// that was scaled down is not configured again for more instances within the
// monitor period.
func TestManagerInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		regions := rapid.IntRange(1, 4).Draw(t, "regions")
		text := fmt.Sprintf("board: snic\noverrides: {regions: %d, region_area: 2}\nduration_us: 1e6\nusers: [{name: u0}, {name: u1}, {name: u2}]\nnts:\n", regions)
		for i := range 4 {
			text += fmt.Sprintf("  - {name: n%d, cycles: 20, gbps: %d, area: 1, shareable: %v}\n", i, 20+10*i, rapid.Bool().Draw(t, "shareable"))
		}
		text += "dags:\n"
		dags := rapid.IntRange(1, 5).Draw(t, "dags")
		for d := range dags {
			nodes := rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 1, 3, rapid.ID[int]).Draw(t, "nodes")
			var names, edges []string
			for i, n := range nodes {
				names = append(names, fmt.Sprintf("n%d", n))
				if i > 0 {
					edges = append(edges, fmt.Sprintf("[n%d, n%d]", nodes[i-1], n))
				}
			}
			text += fmt.Sprintf("  - {name: d%d, user: u%d, ingress_gbps: %d, nodes: [%s], edges: [%s]}\n",
				d, rapid.IntRange(0, 2).Draw(t, "user"), rapid.IntRange(0, 10).Draw(t, "ingress"), strings.Join(names, ", "), strings.Join(edges, ", "))
		}
		text += fmt.Sprintf("policy: {victim_cache: %v}\n", rapid.Bool().Draw(t, "cache"))
		s, err := Parse([]byte(text), "s.yaml")
		if err != nil {
			t.Fatal(err)
		}
		memory, err := s.newMemory(1)
		if err != nil {
			t.Fatal(err)
		}
		fake := &fakePlane{routes: map[int]snic.Route{}, ingress: map[int]float64{}, pr: map[int]sim.Time{}}
		m := newManager(s, fake, memory)
		for d := range dags {
			m.deploy(d)
		}
		for range rapid.IntRange(1, 8).Draw(t, "phases") {
			loads := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0, 5, 15, 60}), dags, dags).Draw(t, "loads")
			for range rapid.IntRange(1, 1200).Draw(t, "epochs") {
				m.epoch(m.now+s.Platform.Epoch, loads)
				if err := m.divideSpace(); err != nil || m.err != nil {
					t.Fatal(err, m.err)
				}
				if m.changed || int(m.now/s.Platform.Epoch)%64 == 0 {
					m.changed = false
					sound(t, m, fake)
				}
			}
		}
		down := map[int]sim.Time{}
		for i, e := range m.events {
			for _, nt := range e.NTs {
				switch at, was := down[nt]; {
				case e.Kind == EventScaleIn:
					down[nt] = e.At
				case e.Kind == EventScaleOut && was && e.At-at < s.Platform.Monitor && m.events[i+1].Kind == EventPR:
					t.Fatalf("NT %d scaled down at %d µs, configured again at %d", nt, at/sim.Microsecond, e.At/sim.Microsecond)
				}
			}
		}
	})
}

// sound checks a manager's state.
func sound(t *rapid.T, m *manager, fake *fakePlane) {
	users := map[[2]int]int{} // by region and NT that is not shareable
	for i := range m.tenants {
		x := &m.tenants[i]
		if !x.bound {
			continue
		}
		if x.legs == nil {
			t.Fatalf("DAG %d has a way without regions", i)
		}
		if got, want := fmt.Sprint(fake.routes[i]), fmt.Sprint(m.route(x.legs)); got != want {
			t.Fatalf("DAG %d goes %s, its legs say %s", i, got, want)
		}
		for _, stage := range x.legs {
			for _, l := range stage {
				for _, r := range l.regions {
					g := &m.regions[r]
					if g.state != serving || !slices.Contains(g.dags, i) {
						t.Fatalf("DAG %d goes through region %d in state %d, used by %v", i, r, g.state, g.dags)
					}
					for _, nt := range l.nts {
						if !slices.Contains(g.chain, nt) {
							t.Fatalf("DAG %d wants NT %d of region %d, which runs %v", i, nt, r, g.chain)
						}
						if m.s.NTs[nt].Shareable {
							continue
						}
						if u, ok := users[[2]int{r, nt}]; ok && u != x.user {
							t.Fatalf("users %d and %d share NT %d of region %d", u, x.user, nt, r)
						}
						users[[2]int{r, nt}] = x.user
					}
				}
			}
		}
	}
	for i, r := range m.regions {
		area := 0.0
		for _, nt := range r.chain {
			area += m.s.NTs[nt].Area
		}
		if area > m.s.Platform.RegionArea+1e-9 {
			t.Fatalf("region %d holds area %v", i, area)
		}
	}
}
