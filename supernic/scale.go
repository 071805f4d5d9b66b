package supernic

import (
	"cmp"
	"slices"

	"nicprof/sim"
)

const (
	// smoothing is the weight of an epoch in a DAG's smoothed load: the mean over
	// about 16 epochs, so that the randomness of arrivals does not hide overload.
	smoothing = 1.0 / 16
	// lowWater is the utilisation that fewer instances may reach for one to be
	// given up. What lies between it and 1 is the hysteresis.
	lowWater = 0.8
)

// epoch takes what DAGs were offered in the epoch that ends now, Gb/s, and does
// what is due: regions that are ready serve, DAGs that are accessed get a way,
// idle ones give theirs up, and chains scale.
func (m *manager) epoch(now sim.Time, offered []float64) {
	length := now - m.now
	m.now = now
	m.advance()
	for i := range m.tenants {
		t := &m.tenants[i]
		t.load = offered[i]
		t.smooth += (t.load - t.smooth) * smoothing
		if !t.deployed {
			continue
		}
		if t.load > 0 {
			t.quiet, t.accessed = 0, true
		} else {
			t.quiet += length
		}
		switch {
		case t.legs == nil && t.load > 0:
			m.place(t, true)
		case t.bound && t.accessed && t.quiet >= m.s.Platform.Monitor:
			t.accessed = false
			m.leave(t)
		}
	}
	if m.instances() && !m.isolated() {
		m.scale(length)
	}
}

// advance moves regions on whose time has come.
func (m *manager) advance() {
	for i := range m.regions {
		r := &m.regions[i]
		switch {
		case r.state == draining:
			m.do(m.plane.Stop(i))
			t := m.firstOf(r)
			m.configure(i, r.next, m.s.Platform.Save, t)
			if t != nil {
				m.use(t, i)
			}
		case r.state == launching && m.now >= r.ready:
			r.state, r.since = serving, m.now
			t := m.firstOf(r)
			m.event(EventLaunch, r.chain, i, t)
			if t == nil {
				r.state = kept
			}
			if then := r.then; then != nil {
				r.then = nil
				m.operate(i, then)
			}
		}
	}
	for i := range m.tenants {
		m.settle(&m.tenants[i])
	}
}

// firstOf returns the first DAG of those that use a region, or nil.
func (m *manager) firstOf(r *region) *tenant {
	if len(r.dags) == 0 {
		return nil
	}
	return &m.tenants[r.dags[0]]
}

// scale adds an instance where an NT was asked for more than it does during a
// whole monitor period, and gives one up where fewer would have done as long.
func (m *manager) scale(length sim.Time) {
	for i := range m.regions {
		r := &m.regions[i]
		if r.state != serving || len(r.dags) == 0 {
			r.over = 0
			continue
		}
		if m.overloaded(i, func(t *tenant) float64 { return t.load }) || m.overloaded(i, func(t *tenant) float64 { return t.smooth }) {
			r.over += length
		} else {
			r.over = 0
		}
		if r.over >= m.s.Platform.Monitor && m.scaleOut(i) {
			r.over = 0
		}
	}
	for i := range m.tenants {
		t := &m.tenants[i]
		if len(t.grown) == 0 || t.pending != nil || !m.fits(t) {
			t.under = 0
			continue
		}
		if t.under += length; t.under >= m.s.Platform.Monitor {
			m.scaleIn(t)
		}
	}
}

// overloaded says whether an NT of a region is asked for more than it does.
func (m *manager) overloaded(i int, of func(*tenant) float64) bool {
	for k, load := range m.loads(i, of) {
		if load > m.ntGbps(m.regions[i].chain[k])*(1+areaSlack) {
			return true
		}
	}
	return false
}

// growth is a way to add an instance: a chain to launch, and the DAG's route
// with it.
type growth struct {
	t        *tenant
	chain    []int
	legs     func(region int) [][]leg
	whole    bool    // the DAG gets a chain of its own
	resolves bool    // no NT of the overloaded region is overloaded any more
	area     float64 // to configure
}

// scaleOut launches an instance for one of the DAGs that use region i. Of the
// ways to do it, those count first that end the overload, then those that take
// the least area, then those that give a DAG a chain of its own.
func (m *manager) scaleOut(i int) bool {
	var ways []growth
	for _, d := range m.regions[i].dags {
		t := &m.tenants[d]
		if t.pending == nil && t.bound {
			ways = append(ways, m.growths(i, t)...)
		}
	}
	last := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(ways, func(a, b growth) int {
		return cmp.Or(last(!a.resolves)-last(!b.resolves), cmp.Compare(a.area, b.area), last(!a.whole)-last(!b.whole))
	})
	for _, g := range ways {
		if m.grow(g) {
			return true
		}
	}
	return false
}

// growths returns the ways to add an instance for a DAG that uses region i: the
// whole DAG as one chain in a region, which it moves to, or another instance of
// the NTs that it uses there, which take its packets in turn.
func (m *manager) growths(i int, t *tenant) []growth {
	var ways []growth
	try := func(chain []int, whole bool, legs func(region int) [][]leg) {
		g := growth{t: t, chain: chain, whole: whole, legs: legs}
		for _, nt := range chain {
			g.area += m.s.NTs[nt].Area
		}
		if g.area > m.s.Platform.RegionArea*(1+areaSlack) {
			return
		}
		r := &m.regions[i]
		sum := make([]float64, len(r.chain))
		for _, d := range r.dags {
			o := &m.tenants[d]
			way := o.legs
			if o == t {
				way = legs(New)
			}
			addLoads(sum, r.chain, i, way, o.smooth)
		}
		g.resolves = true
		for k, load := range sum {
			g.resolves = g.resolves && load <= m.ntGbps(r.chain[k])*(1+areaSlack)
		}
		ways = append(ways, g)
	}
	graph := &m.s.graphs[t.dag]
	var all []int
	for _, n := range graph.order(graph.all()) {
		all = append(all, graph.nts[n])
	}
	if m.chainGbps(all) >= t.smooth && (len(t.legs) > 1 || len(t.legs[0]) > 1 || !slices.Equal(t.legs[0][0].nts, all) || m.shared(t)) {
		try(all, true, func(region int) [][]leg { return [][]leg{{{nts: all, regions: []int{region}}}} })
	}
	for a, stage := range t.legs {
		for b, l := range stage {
			if !slices.Contains(l.regions, i) {
				continue
			}
			try(l.nts, false, func(region int) [][]leg { return with(t.legs, a, b, region) })
		}
	}
	return ways
}

// shared says whether another DAG uses a region on a DAG's way.
func (m *manager) shared(t *tenant) bool {
	return slices.ContainsFunc(m.regions, func(r region) bool { return slices.Contains(r.dags, t.dag) && len(r.dags) > 1 })
}

// grow adds an instance, in a region that keeps its chain, or in one that nobody
// uses; not by PR within a monitor period of giving up one of its NTs.
func (m *manager) grow(g growth) bool {
	at := slices.IndexFunc(m.regions, func(r region) bool {
		return r.state == kept && slices.Equal(r.chain, g.chain) && (r.owner < 0 || r.owner == g.t.user)
	})
	hit := at >= 0
	if !hit {
		for _, nt := range g.chain {
			if m.now-m.scaled[nt] < m.s.Platform.Monitor {
				return false
			}
		}
		spaces := m.rooms()
		if len(spaces) == 0 {
			return false
		}
		at = spaces[0]
	}
	m.event(EventScaleOut, g.chain, at, g.t)
	m.why(g.t, "%v ms of overload: another instance of %s in region %d", float64(m.s.Platform.Monitor)/float64(sim.Millisecond), chainText(m.s.NTs, g.chain), at)
	if hit {
		m.join(g.t, at)
	} else {
		m.start(g.t, at, g.chain)
	}
	g.t.grown = append(g.t.grown, step{at, g.t.legs})
	g.t.pending = g.legs(at)
	return true
}

// fits says whether every region would do without the last instance of a DAG:
// for what is offered at lowWater, and for what is guaranteed at all.
func (m *manager) fits(t *tenant) bool {
	for i := range m.regions {
		chain := m.regions[i].chain
		offered, due := make([]float64, len(chain)), make([]float64, len(chain))
		for j := range m.tenants {
			o := &m.tenants[j]
			legs := o.legs
			if o == t {
				legs = t.grown[len(t.grown)-1].before
			}
			addLoads(offered, chain, i, legs, o.smooth)
			addLoads(due, chain, i, legs, max(o.smooth, m.s.DAGs[j].IngressGbps))
		}
		for k, nt := range chain {
			if gbps := m.ntGbps(nt) * (1 + areaSlack); offered[k] > lowWater*gbps || due[k] > gbps {
				return false
			}
		}
	}
	return true
}

// scaleIn gives up the last instance of a DAG.
func (m *manager) scaleIn(t *tenant) {
	last := t.grown[len(t.grown)-1]
	r := &m.regions[last.region]
	m.event(EventScaleIn, r.chain, last.region, t)
	m.why(t, "%v ms in which fewer would have done: the instance of %s in region %d is given up",
		float64(m.s.Platform.Monitor)/float64(sim.Millisecond), chainText(m.s.NTs, r.chain), last.region)
	for _, nt := range r.chain {
		m.scaled[nt] = m.now
	}
	t.under, t.grown, t.legs = 0, t.grown[:len(t.grown)-1], last.before
	t.bound, m.changed = false, true
	m.settle(t)
	r.dags = slices.DeleteFunc(r.dags, func(d int) bool { return d == t.dag })
	m.giveUp(last.region)
}
