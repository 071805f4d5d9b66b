package partition

import (
	"cmp"
	"slices"
)

// settling is a plan in the making, a group at a time, with what crosses PCIe
// kept up to date.
type settling struct {
	in   *instance
	t    *tracks
	c    *choice
	load *load
	list []candidate // by falling gain for the price
}

// candidate is a group and what its classes gain from it on the NIC, together,
// and for its price.
type candidate struct {
	b, at       int
	gain, worth float64
}

// settle makes a plan of the last look: groups whose classes gain from them
// together, as far as memories, tables and rate allow, those that gain most for
// their price first, then any other that fits. It offers the plan if PCIe carries it
// and the NIC takes what comes back; until that is known, as many packets come
// back as in the look.
func (x *pcie) settle(r *relaxation) {
	in := x.s.in
	defer func(asked int) {
		x.budget -= predictionSteps * (in.asked - asked)
		in.back = 0
	}(in.asked)
	in.back = x.back
	s := &settling{in: in, t: x.t, c: newChoice(r.memory), load: in.newLoad()}
	s.t.clear()
	for b, m := range r.memory {
		if m >= 0 && r.rooms[b][m].most > 0 {
			s.enter(x, r, b)
		}
	}
	if !in.holds(s.load) || !in.sustains(s.c, s.load) {
		return
	}
	slices.SortStableFunc(s.list, func(a, b candidate) int {
		if a.gain <= 0 && b.gain <= 0 {
			return cmp.Compare(b.gain, a.gain)
		}
		return cmp.Compare(b.worth, a.worth)
	})
	for _, i := range s.list {
		if i.gain > 0 {
			s.put(i)
		}
	}
	for pass := 0; pass < 8 && s.untangle(); pass++ {
	}
	if !s.carried() {
		return
	}
	s.fill()
	x.s.offer(in.choose(s.assignment()))
}

// enter lists block b's groups, or puts it on the NIC when it cannot be split.
func (s *settling) enter(x *pcie, r *relaxation, b int) {
	m := r.memory[b]
	g, first := &s.in.blocks[b], r.rooms[b][m].first
	s.c.runs[b] = []run{{first, first}} // the largest there may be, for the predictor
	if !s.in.p.Blocks[b].Partitionable {
		s.load.add(s.in, b, m, 1, g.sorted[0])
		s.t.set(b, 0, onNIC)
		return
	}
	visit, group := r.visitCost(r.prices, b), r.groupCost(r.prices, b)
	for at := first; at < g.live; at++ {
		gain := x.gain[x.t.base[b]+g.order[at]]
		s.list = append(s.list, candidate{b, at, gain, gain / max(g.sorted[at]*visit+group, 1e-300)})
	}
}

func (s *settling) group(i candidate) int { return int(s.in.blocks[i.b].order[i.at]) }

func (s *settling) on(i candidate) bool { return s.t.side(i.b, s.group(i)) == onNIC }

// put has a group on the NIC if memories, tables and rate allow it.
func (s *settling) put(i candidate) bool {
	if s.in.space(s.c, s.load, i.b) == 0 {
		return false
	}
	before := s.load.volume[i.b]
	s.load.add(s.in, i.b, s.c.memory[i.b], 1, s.in.blocks[i.b].sorted[i.at])
	if !s.in.sustains(s.c, s.load) {
		s.load.add(s.in, i.b, s.c.memory[i.b], -1, 0)
		s.load.volume[i.b] = before
		return false
	}
	s.t.set(i.b, s.group(i), onNIC)
	return true
}

// drop has a group on the host.
func (s *settling) drop(i candidate) {
	s.load.add(s.in, i.b, s.c.memory[i.b], -1, -s.in.blocks[i.b].sorted[i.at])
	s.t.set(i.b, s.group(i), onHost)
}

func (s *settling) carried() bool {
	return s.t.carried() && s.in.sustainsWith(s.t.back, s.c, s.load)
}

// untangle moves groups, those with least gain first, where that takes
// crossings away: what did not fit may have left packets that cross more than
// they must. It reports whether to go on.
func (s *settling) untangle() bool {
	changed := false
	for _, i := range slices.Backward(s.list) {
		before := s.t.most()
		if s.t.carried() {
			return false
		}
		if s.on(i) {
			if s.drop(i); s.t.most() < before || !s.put(i) {
				changed = true
			}
		} else if s.put(i) {
			if s.t.most() < before {
				changed = true
			} else {
				s.drop(i)
			}
		}
	}
	return changed
}

// fill puts what else fits on the NIC.
func (s *settling) fill() {
	failed := 0
	for _, i := range s.list {
		if failed > maxTries {
			return
		}
		if s.on(i) {
			continue
		}
		if !s.put(i) {
			failed++
		} else if !s.carried() {
			s.drop(i)
			failed++
		}
	}
}

func (s *settling) assignment() assignment {
	a := s.in.nothing()
	for b, m := range s.c.memory {
		a.memory[b] = m
		for g := range a.on[b] {
			a.on[b][g] = s.t.side(b, g) == onNIC
		}
	}
	return a
}
