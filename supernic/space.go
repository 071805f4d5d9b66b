package supernic

import (
	"slices"

	"nicprof/supernic/fair"
)

// divideSpace is the space step, once a DAG was launched or descheduled: it
// divides the regions among the chains that serve, by what their DAGs are
// guaranteed or offered, and launches further instances where the fair shares
// come to more than one region.
func (m *manager) divideSpace() error {
	if !m.unspaced {
		return nil
	}
	m.unspaced = false
	step := fair.Space{Policy: fair.Policy(m.s.Policy.Fairness), Regions: len(m.regions), MemoryMB: m.s.Platform.MemoryMB}
	for _, u := range m.s.Users {
		step.Weights = append(step.Weights, *u.Weight)
	}
	var legs [][]leg // by chain of the step: those whose instances it counts
	number := map[int]int{}
	for i := range m.tenants {
		t := &m.tenants[i]
		d := fair.Tenant{Name: m.s.DAGs[i].Name, User: t.user, Gbps: max(t.smooth, m.s.DAGs[i].IngressGbps)}
		for _, stage := range t.way() {
			for _, l := range stage {
				r := l.regions[0]
				if _, ok := number[r]; !ok {
					number[r] = len(step.Chains)
					chain := m.regions[r].coming()
					shareable := !slices.ContainsFunc(chain, func(nt int) bool { return !m.s.NTs[nt].Shareable })
					step.Chains = append(step.Chains, fair.Chain{Name: chainText(m.s.NTs, chain), Gbps: m.chainGbps(chain), Shareable: shareable})
					legs = append(legs, nil)
				}
				d.Chains = append(d.Chains, number[r])
				legs[number[r]] = append(legs[number[r]], l)
			}
		}
		if t.legs == nil {
			d.Gbps = 0
		}
		for _, name := range m.s.DAGs[i].Nodes {
			d.MemoryMB += m.s.NTs[m.s.nt(name)].MemoryMB
		}
		step.DAGs = append(step.DAGs, d)
	}
	division, err := step.Divide()
	if err != nil || len(step.Chains) == 0 {
		return err
	}
	m.choices = append(m.choices, Choice{At: m.now, DAG: -1, Why: step.Explain(&division)})
	if !m.instances() {
		return nil
	}
	for _, p := range division.Pools {
		m.instance(p, legs[p.Chain][0])
	}
	return nil
}

// instance launches what a pool lacks of its instances in regions that nobody
// uses, and lets its DAGs take turns in them.
func (m *manager) instance(p fair.Pool, of leg) {
	first := of.regions[0]
	for n := len(of.regions); n < p.Instances; n++ {
		rooms := m.rooms()
		if len(rooms) == 0 {
			break
		}
		at := rooms[0]
		m.start(&m.tenants[p.DAGs[0]], at, m.regions[first].coming())
		for _, d := range p.DAGs {
			t := &m.tenants[d]
			m.use(t, at)
			for a, stage := range t.way() {
				for b, l := range stage {
					if l.regions[0] == first {
						t.grown = append(t.grown, step{at, t.way()})
						t.pending = with(t.way(), a, b, at)
					}
				}
			}
		}
	}
	for _, d := range p.DAGs {
		m.settle(&m.tenants[d])
	}
}
