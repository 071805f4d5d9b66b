package supernic

import (
	"fmt"
	"math"
	"slices"

	"nicprof/emu/snic"
	"nicprof/emu/snic/vm"
	"nicprof/sim"
)

// plane is what the control plane does to the data plane; *snic.Board is one.
type plane interface {
	SetRoute(uid int, r snic.Route) error
	SetIngress(uid int, gbps float64) error
	Stop(region int) error
	Launch(region int, chain []int, pr sim.Time) error
}

// Kinds of events.
const (
	EventLaunch   = "launch"         // a chain begins to serve in a region
	EventPR       = "pr"             // the reconfiguration of a region begins
	EventSwitch   = "context_switch" // a running chain is stopped for another
	EventScaleOut = "scale_out"      // another instance is decided on
	EventScaleIn  = "scale_in"       // an instance is given up
	EventThrottle = "throttle"       // a DAG gets less than it is offered
	EventVictim   = "victim_hit"     // a chain that was kept serves again without PR
)

// Event is something that the control plane did.
type Event struct {
	At     sim.Time
	Kind   string
	NTs    []int // of the chain; none for throttle
	Region int   // New for throttle
	User   int   // -1 if several
	DAG    int   // -1 if none
}

// state of a region.
type state int

const (
	free     state = iota
	draining       // its chain serves what it has, before a context switch
	launching
	serving
	kept // in the victim cache
)

// region of the FPGA as the control plane sees it.
type region struct {
	state state
	chain []int // NTs; nil if free
	owner int   // user whose NTs that are not shareable run here, -1 if there are none
	dags  []int // that use it
	next  []int // chain to launch when drained
	then  []int // chain to launch when that one serves
	ready sim.Time
	since sim.Time // serving: when it began; kept: when it was given up
	over  sim.Time // how long an NT has been overloaded
}

// coming returns the chain that serves or will serve next.
func (r *region) coming() []int {
	if r.state == draining {
		return r.next
	}
	return r.chain
}

// leg is a branch of a DAG's route: NTs in order, and the regions that run them,
// which packets take in turn.
type leg struct {
	nts     []int
	regions []int
}

// tenant is a DAG as the control plane sees it.
type tenant struct {
	dag      int
	user     int
	deployed bool
	accessed bool
	bound    bool    // its packets have a way
	legs     [][]leg // by stage; nil while it has no region
	pending  [][]leg // its next way, once all of that serves
	grown    []step  // instances added to its plan, the last at the end
	load     float64 // Gb/s that it was offered lately
	smooth   float64
	quiet    sim.Time // how long it was offered nothing
	under    sim.Time // how long it would have done without the last instance
	limit    float64  // Gb/s of ingress
	limited  bool
	eased    sim.Time // how long it has had all that it was offered
	cycles   int      // of its plan
}

// step is an instance that was added: its region, and the way before.
type step struct {
	region int
	before [][]leg
}

// way is the way that the DAG has or is about to have.
func (t *tenant) way() [][]leg {
	if t.pending != nil {
		return t.pending
	}
	return t.legs
}

// Choice is why a DAG runs as it does, or, with DAG -1, what the space step
// gives to all.
type Choice struct {
	At  sim.Time
	DAG int
	Why []string
}

// manager launches, shares, scales and gives up chains. It is told what DAGs are
// offered and acts on the data plane; it never reads it.
type manager struct {
	s       *Scenario
	plane   plane
	now     sim.Time
	regions []region
	tenants []tenant
	port    sim.Time   // when the configuration port is free
	scaled  []sim.Time // by NT: when an instance was given up last
	events  []Event
	choices []Choice
	changed bool  // the way of some DAG
	err     error // the first

	memory *vm.Memory
	spaces []Space // in the order of their users' first DAGs

	unspaced bool // a DAG was launched or descheduled since the last space step
}

const never = sim.Time(math.MinInt64 / 2)

func newManager(s *Scenario, p plane, memory *vm.Memory) *manager {
	m := &manager{s: s, plane: p, memory: memory, regions: make([]region, s.Platform.Regions), port: never, changed: true}
	for i := range m.regions {
		m.regions[i].owner = -1
	}
	for i, d := range s.DAGs {
		m.tenants = append(m.tenants, tenant{dag: i, user: s.user(d.User), limit: math.Inf(1)})
	}
	m.scaled = make([]sim.Time, len(s.NTs))
	for i := range m.scaled {
		m.scaled[i] = never
	}
	return m
}

// do notes the first error.
func (m *manager) do(err error) {
	if m.err == nil {
		m.err = err
	}
}

func (m *manager) event(kind string, chain []int, region int, t *tenant) {
	e := Event{At: m.now, Kind: kind, NTs: slices.Clone(chain), Region: region, User: -1, DAG: -1}
	if t != nil {
		e.User, e.DAG = t.user, t.dag
	}
	m.events = append(m.events, e)
}

func (m *manager) why(t *tenant, format string, a ...any) {
	m.choices = append(m.choices, Choice{At: m.now, DAG: t.dag, Why: []string{fmt.Sprintf(format, a...)}})
}

// isolated says that no chain is shared between users.
func (m *manager) isolated() bool { return m.s.Policy.Fairness != "snic" }

// instances says that a chain may run in several regions at once.
func (m *manager) instances() bool {
	return m.s.Policy.Parallelism == "auto" || m.s.Policy.Parallelism == "instance"
}

// ntGbps returns the rate of an NT: its own, and one packet every II cycles.
func (m *manager) ntGbps(nt int) float64 { return m.s.NTs[nt].Gbps }

// chainGbps returns the rate of NTs in a chain.
func (m *manager) chainGbps(nts []int) float64 {
	least := math.Inf(1)
	for _, nt := range nts {
		least = min(least, m.ntGbps(nt))
	}
	return least
}

// loads returns what each NT of a region is asked for, Gb/s, if tenants want
// what of says.
func (m *manager) loads(r int, of func(*tenant) float64) []float64 {
	sum := make([]float64, len(m.regions[r].chain))
	for _, d := range m.regions[r].dags {
		t := &m.tenants[d]
		addLoads(sum, m.regions[r].chain, r, t.legs, of(t))
	}
	return sum
}

// addLoads adds to the load of a region's NTs that of a DAG which goes by legs.
func addLoads(sum []float64, chain []int, r int, legs [][]leg, gbps float64) {
	for _, stage := range legs {
		for _, l := range stage {
			if !slices.Contains(l.regions, r) {
				continue
			}
			for _, nt := range l.nts {
				if i := slices.Index(chain, nt); i >= 0 {
					sum[i] += gbps / float64(len(l.regions))
				}
			}
		}
	}
}

// due is what a DAG may ask for: what it is offered, or what it is guaranteed.
func (m *manager) due(t *tenant) float64 {
	return max(t.load, m.s.DAGs[t.dag].IngressGbps)
}

// claimed is what of a chain's rate is not to be shared out: what a DAG is
// guaranteed, so that a load beyond it keeps no other DAG from what that one is
// guaranteed; of a DAG without guarantee, its load.
func (m *manager) claimed(t *tenant) float64 {
	if g := m.s.DAGs[t.dag].IngressGbps; g > 0 {
		return g
	}
	return t.load
}

// running returns the regions whose chains a DAG could use.
func (m *manager) running(t *tenant) []running {
	var found []running
	for i := range m.regions {
		r := &m.regions[i]
		if r.state != serving && r.state != launching && r.state != kept {
			continue
		}
		own := !slices.ContainsFunc(r.dags, func(d int) bool { return m.tenants[d].user != t.user })
		if m.isolated() && !own {
			continue
		}
		c := running{region: i, chain: r.chain, usable: make([]bool, len(r.chain)), spare: m.loads(i, m.claimed), text: m.whose(r)}
		for k, nt := range r.chain {
			c.usable[k] = m.s.NTs[nt].Shareable || own && (r.owner < 0 || r.owner == t.user)
			c.spare[k] = m.ntGbps(nt) - c.spare[k]
		}
		found = append(found, c)
	}
	return found
}

func (m *manager) whose(r *region) string {
	text := "kept"
	for i, d := range r.dags {
		if i == 0 {
			text = "of "
		} else {
			text += ", "
		}
		text += m.s.DAGs[d].Name
	}
	return text + ": " + chainText(m.s.NTs, r.chain)
}

// rooms returns the regions that a new chain could have: free ones, then those
// of the victim cache, the one given up longest ago first.
func (m *manager) rooms() []int {
	var found, cached []int
	for i := range m.regions {
		switch m.regions[i].state {
		case free:
			found = append(found, i)
		case kept:
			cached = append(cached, i)
		}
	}
	slices.SortStableFunc(cached, func(a, b int) int { return int(min(1, max(-1, m.regions[a].since-m.regions[b].since))) })
	return append(found, cached...)
}

// held returns how much of regions a user's DAGs take of his share.
func (m *manager) held(user int) float64 {
	sum := 0.0
	for i := range m.tenants {
		t := &m.tenants[i]
		if t.user != user {
			continue
		}
		for _, stage := range t.legs {
			for _, l := range stage {
				for _, r := range l.regions {
					sum += fills(m.s.NTs, m.regions[r].chain, m.due(t)/float64(len(l.regions)), m.isolated())
				}
			}
		}
	}
	return sum
}

// share returns the regions that a user may have by his weight.
func (m *manager) share(user int) float64 {
	total := 0.0
	for _, u := range m.s.Users {
		total += *u.Weight
	}
	return float64(len(m.regions)) * *m.s.Users[user].Weight / total
}

// planFor plans a DAG with what runs now.
func (m *manager) planFor(t *tenant, spaces int) *Plan {
	p := m.s.Policy
	pl := planner{
		graph: &m.s.graphs[t.dag], nts: m.s.NTs, area: m.s.Platform.RegionArea, regions: len(m.regions),
		pass: m.s.Platform.PassCycles, sync: m.s.Platform.SyncCycles, skip: m.s.Platform.SkipCycles, everyNT: p.Scheduler == "panic",
		parallel: p.Parallelism == "auto" || p.Parallelism == "dag",
		demand:   m.due(t), lonely: m.isolated(), running: m.running(t),
	}
	return pl.plan(spaces, m.share(t.user)-m.held(t.user))
}

// deploy launches a DAG into regions that nobody uses, if there are enough, before
// it is accessed.
func (m *manager) deploy(d int) {
	t := &m.tenants[d]
	t.deployed = true
	m.ingress(t, 0)
	if err := m.openSpaces(t); err != nil {
		m.do(err)
		return
	}
	m.place(t, false)
}

// place gives a DAG regions: chains that serve already, regions that nobody uses,
// and, if it must, regions that others use.
func (m *manager) place(t *tenant, must bool) {
	spaces := m.rooms()
	plan := m.planFor(t, len(spaces))
	if plan == nil {
		if !must {
			m.why(t, "no plan: the board's %d regions of area %v cannot hold the DAG's chains", len(m.regions), m.s.Platform.RegionArea)
		}
		return
	}
	// A kept chain that the plan uses is no space.
	spaces = slices.DeleteFunc(spaces, func(r int) bool { return plan.uses(r) })
	if lacking := plan.New - len(spaces); lacking > 0 {
		if !must {
			m.why(t, "not launched yet: it needs %d regions to configure, %d are free; it will be launched when its packets come", plan.New, len(spaces))
			return
		}
		taken := m.displace(t, plan, lacking)
		if taken == nil {
			return
		}
		spaces = append(spaces, taken...)
	}
	m.choices = append(m.choices, Choice{At: m.now, DAG: t.dag, Why: plan.Why})
	m.apply(t, plan, spaces)
}

func (p *Plan) uses(region int) bool {
	for _, stage := range p.Stages {
		for _, b := range stage {
			if b.Region == region {
				return true
			}
		}
	}
	return false
}

// apply gives a DAG the regions of its plan, new ones out of spaces.
func (m *manager) apply(t *tenant, plan *Plan, spaces []int) {
	t.legs = make([][]leg, len(plan.Stages))
	for i, stage := range plan.Stages {
		for _, b := range stage {
			at := b.Region
			if at != New {
				m.join(t, at)
			} else {
				at, spaces = spaces[0], spaces[1:]
				m.start(t, at, b.NTs)
			}
			t.legs[i] = append(t.legs[i], leg{nts: b.NTs, regions: []int{at}})
		}
	}
	t.cycles = plan.Cycles
	m.changed, m.unspaced = true, true
	m.settle(t)
}

// join lets a DAG use a region whose chain is there.
func (m *manager) join(t *tenant, i int) {
	r := &m.regions[i]
	if r.state == kept {
		r.state, r.since = serving, m.now
		m.event(EventVictim, r.chain, i, t)
	}
	m.use(t, i)
}

// use counts a DAG among those that use a region.
func (m *manager) use(t *tenant, i int) {
	r := &m.regions[i]
	if !slices.Contains(r.dags, t.dag) {
		r.dags = append(r.dags, t.dag)
	}
	for _, nt := range r.chain {
		if !m.s.NTs[nt].Shareable && r.owner < 0 {
			r.owner = t.user
		}
	}
}

// start launches a chain in a region for a DAG.
func (m *manager) start(t *tenant, i int, chain []int) {
	r := &m.regions[i]
	if r.state == draining {
		r.next, r.dags = chain, []int{t.dag}
		return
	}
	*r = region{owner: -1}
	m.configure(i, chain, 0, t)
	m.use(t, i)
}

// configure begins a region's PR, after save. Before the first packet there is
// no PR to wait for.
func (m *manager) configure(i int, chain []int, save sim.Time, t *tenant) {
	r := &m.regions[i]
	r.chain, r.next = chain, nil
	m.changed = true
	if m.now == 0 && save == 0 {
		r.state, r.since, r.ready = serving, 0, 0
		m.do(m.plane.Launch(i, chain, 0))
		m.event(EventLaunch, chain, i, t)
		return
	}
	m.port = max(m.port, m.now+save) + m.s.Platform.PR
	r.state, r.ready = launching, m.port
	m.do(m.plane.Launch(i, chain, r.ready-m.now))
	m.event(EventPR, chain, i, t)
}

// displace chooses regions for a context switch: those that are asked for least,
// of chains that have served a monitor period at least, so that none comes and
// goes without having worked. It returns nil if there are not enough.
func (m *manager) displace(t *tenant, plan *Plan, n int) []int {
	var found []int
	busy := map[int]float64{}
	for i := range m.regions {
		r := &m.regions[i]
		unbound := func(d int) bool { return !m.tenants[d].bound }
		if r.state != serving || m.now-r.since < m.s.Platform.Monitor || plan.uses(i) || slices.ContainsFunc(r.dags, unbound) {
			continue
		}
		for k, load := range m.loads(i, func(t *tenant) float64 { return t.smooth }) {
			busy[i] = max(busy[i], load/m.ntGbps(r.chain[k]))
		}
		found = append(found, i)
	}
	if len(found) < n {
		return nil
	}
	slices.SortStableFunc(found, func(a, b int) int {
		switch {
		case busy[a] < busy[b]:
			return -1
		case busy[a] > busy[b]:
			return 1
		}
		return 0
	})
	found = found[:n]
	for i := range m.regions {
		if plan.uses(i) {
			m.join(t, i) // or it would be given up with the DAGs that leave it
		}
	}
	for _, i := range found {
		m.drain(i)
	}
	return found
}

// drain stops the chain of a region. What it serves still ends; what comes for
// its DAGs waits at the port.
func (m *manager) drain(i int) {
	r := &m.regions[i]
	var only *tenant
	if len(r.dags) == 1 {
		only = &m.tenants[r.dags[0]]
	}
	m.event(EventSwitch, r.chain, i, only)
	for _, d := range slices.Clone(r.dags) {
		m.leave(&m.tenants[d])
	}
	*r = region{state: draining, chain: r.chain, owner: -1}
}

// operate configures a region with a chain because the operator says so.
func (m *manager) operate(i int, chain []int) {
	r := &m.regions[i]
	switch r.state {
	case serving:
		m.drain(i)
		r.next = chain
	case free, kept:
		*r = region{owner: -1}
		m.configure(i, chain, 0, nil)
		if r.state == serving {
			r.state = kept
		}
	case draining, launching: // it is being configured: this chain comes next
		r.then = chain
	}
}

// leave takes a DAG's regions away; those that nobody else uses are kept.
func (m *manager) leave(t *tenant) {
	m.ingress(t, 0)
	t.bound = false
	for i := range m.regions {
		r := &m.regions[i]
		at := slices.Index(r.dags, t.dag)
		if at < 0 {
			continue
		}
		r.dags = slices.Delete(r.dags, at, at+1)
		m.giveUp(i)
	}
	t.legs, t.pending, t.grown = nil, nil, nil
	m.changed, m.unspaced = true, true
}

// giveUp keeps a chain that nobody uses for later, or forgets it.
func (m *manager) giveUp(i int) {
	r := &m.regions[i]
	if len(r.dags) > 0 || r.state != serving {
		return
	}
	if *m.s.Policy.VictimCache {
		r.state, r.since = kept, m.now
	} else {
		*r = region{owner: -1}
	}
}

// settle gives a DAG its next way, or its first, once the chains of all regions
// on it serve.
func (m *manager) settle(t *tenant) {
	if t.pending != nil && m.serves(t.pending) {
		t.legs, t.pending = t.pending, nil
		t.bound, m.changed = false, true
	}
	if t.bound || t.legs == nil || !m.serves(t.legs) {
		return
	}
	m.do(m.plane.SetRoute(t.dag, m.route(t.legs)))
	t.bound = true
	m.ingress(t, t.limit)
}

// serves says whether the chains of all regions on a way serve.
func (m *manager) serves(legs [][]leg) bool {
	for _, stage := range legs {
		for _, l := range stage {
			for _, i := range l.regions {
				if m.regions[i].state != serving {
					return false
				}
			}
		}
	}
	return true
}

// with is legs with another region in the instances of leg b of stage a.
func with(legs [][]leg, a, b, region int) [][]leg {
	next := make([][]leg, len(legs))
	for k := range next {
		next[k] = slices.Clone(legs[k])
	}
	next[a][b].regions = append(slices.Clone(legs[a][b].regions), region)
	return next
}

// ingress opens or closes the port for a DAG.
func (m *manager) ingress(t *tenant, gbps float64) { m.do(m.plane.SetIngress(t.dag, gbps)) }

// route is legs as the data plane takes them.
func (m *manager) route(legs [][]leg) snic.Route {
	var route snic.Route
	for _, stage := range legs {
		var s snic.Stage
		for _, l := range stage {
			var b snic.Branch
			for _, i := range l.regions {
				in := snic.Instance{Region: i}
				for _, nt := range l.nts {
					in.Run |= 1 << slices.Index(m.regions[i].chain, nt)
				}
				b = append(b, in)
			}
			s = append(s, b)
		}
		route = append(route, s)
	}
	return route
}
