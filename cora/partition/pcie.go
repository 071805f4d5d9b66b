package partition

import (
	"cmp"
	"math"
	"slices"
)

// pcie bounds and finds plans where PCIe is what limits them. At a price of
// each Gb/s a way, every class of packets chooses for itself the sides of the
// groups on its path that save most (a group's cost is split among its classes
// by volume); that classes then disagree on a group they share only makes the
// bound weaker. Where most of a group's volume is on the NIC, so is the group
// in the plan that is made of it.
type pcie struct {
	s      *search
	t      *tracks
	prices [2]float64 // of all that PCIe carries to the host, to the NIC
	budget int        // steps of paths left to follow
	steps  int        // of all classes
	votes  []float64  // by group: volume on the NIC

	// of the last look
	worth  [][3]float64 // by block: of 1 Mpps on the NIC, cost of a group, volume above which a group is barred
	volume []float64
	groups []float64
	cross  [2]float64
}

// maxSteps bounds the steps of paths that one plan may follow: about one
// second, and at least a few looks at any traffic.
const maxSteps = 1 << 24

func newPCIe(s *search) *pcie {
	x := &pcie{s: s, t: newTracks(s.in), budget: maxSteps}
	x.votes = make([]float64, len(x.t.sides))
	x.worth = make([][3]float64, len(s.in.blocks))
	x.volume, x.groups = make([]float64, len(s.in.blocks)), make([]float64, len(s.in.blocks))
	x.steps = len(x.t.visits)
	x.budget = max(x.budget, 30*x.steps)
	return x
}

// look has every class choose its sides at prices of r's rows and of PCIe, and
// returns the dual's value: a bound of the saving in units of the total.
func (x *pcie) look(r *relaxation, prices []float64, link [2]float64) float64 {
	in := x.s.in
	x.budget -= x.steps
	d := link[0] + link[1]
	for _, price := range prices {
		d += price
	}
	for b, m := range r.memory {
		block, g := &in.p.Blocks[b], &in.blocks[b]
		visit, group := block.Instructions/in.total-r.visitCost(prices, b), r.groupCost(prices, b)
		bar := -1.0
		if m >= 0 {
			room := r.rooms[b][m]
			if last := room.first + room.most; last < g.live && block.Partitionable {
				scarce := max(0, g.sorted[last-1]*visit-group)
				group += scarce
				d += scarce * float64(room.most)
			}
			bar = g.sorted[room.first]
		} else if reach := r.reach(b); m == free && reach.to > reach.from {
			bar = g.sorted[reach.from]
		}
		x.worth[b] = [3]float64{visit, group, bar}
	}
	clear(x.votes)
	clear(x.volume)
	clear(x.groups)
	x.cross = [2]float64{}
	var came [maxPath]uint8 // bit 0: the best way to be on the NIC came from the host; bit 1: to be on the host, from the NIC
	for i := range in.p.Classes {
		c := &in.p.Classes[i]
		path := &in.p.Paths[c.Path]
		mpps := c.Mpps * in.scale
		load := gbps(mpps, c.Bytes) / in.p.PCIeGbps
		down, up := link[0]*load, link[1]*load
		nic, host := 0.0, math.Inf(-1)
		for k, b := range path.Blocks {
			v := in.blocks[b].volume[c.Groups[k]]
			w := &x.worth[b]
			here := math.Inf(-1)
			if v <= w[2] && v > 0 {
				here = mpps*w[0] - w[1]*mpps/v
			}
			way := uint8(0)
			toNIC, toHost := nic, host
			if host-up > nic {
				toNIC, way = host-up, 1
			}
			if nic-down > host {
				toHost, way = nic-down, way|2
			}
			if r.memory[b] >= 0 && !in.p.Blocks[b].Partitionable {
				toHost = math.Inf(-1)
			}
			came[k] = way
			nic, host = toNIC+here, toHost
		}
		atHost := false
		switch path.End {
		case Wire:
			if atHost = host-up > nic; atHost {
				x.cross[1] += load
				nic = host - up
			}
		case ToHost:
			if atHost = host >= nic-down; !atHost {
				x.cross[0] += load
				host = nic - down
			}
			nic = host
		case Dropped:
			atHost = host > nic
			nic = max(nic, host)
		}
		d += nic
		for k := len(path.Blocks) - 1; k >= 0; k-- {
			b := path.Blocks[k]
			if !atHost {
				n := x.t.base[b] + c.Groups[k]
				x.votes[n] += mpps
				x.volume[b] += mpps
				x.groups[b] += mpps / in.blocks[b].volume[c.Groups[k]]
				if came[k]&1 != 0 {
					x.cross[1] += load
					atHost = true
				}
			} else if came[k]&2 != 0 {
				x.cross[0] += load
				atHost = false
			}
		}
	}
	return d
}

// left is what the last look leaves of each row.
func (x *pcie) left(r *relaxation, left []float64) {
	in, k := x.s.in, len(x.s.in.p.Memories)
	for i := range left {
		left[i] = 1
	}
	for b, m := range r.memory {
		if m < 0 {
			continue
		}
		block := &in.p.Blocks[b]
		entries, bytes := block.perGroup()
		if bytes > 0 {
			left[m] -= x.groups[b] * float64(bytes) / float64(in.p.Memories[m].Bytes)
		}
		if block.Table && in.p.TableEntries > 0 {
			left[k] -= x.groups[b] * float64(entries) / float64(in.p.TableEntries)
		}
		for i, row := range r.rates {
			left[k+1+i] -= x.volume[b] * row[b]
		}
	}
	left[len(left)-2], left[len(left)-1] = 1-x.cross[0], 1-x.cross[1]
}

// tighten lowers r's bound by what PCIe takes, at the prices found last.
func (x *pcie) tighten(r *relaxation) {
	if x.budget > 0 {
		r.bound = min(r.bound, x.look(r, r.prices, x.prices)*x.s.in.total)
	}
}

// solve lowers the relaxation's bound by subgradient steps on all prices, PCIe's included,
// and offers the plans that it passes.
func (x *pcie) solve(of *relaxation) {
	copied := *of
	r := &copied
	n := len(r.prices)
	at, left := append(slices.Clone(r.prices), x.prices[:]...), make([]float64, n+2)
	best, bound, length, since := slices.Clone(at), math.Inf(1), 1.0, 0
	for step := 0; step < 200 && x.budget > 0 && length > 1e-3; step++ {
		d := x.look(r, at[:n], [2]float64(at[n:]))
		x.left(r, left)
		if since++; d < bound-1e-6*math.Abs(bound) {
			since = 0
		}
		if d < bound {
			bound = d
			copy(best, at)
		}
		if bound <= x.s.target() {
			break
		}
		if since >= 6 {
			since, length = 0, length*0.6
			copy(at, best)
			d = x.look(r, at[:n], [2]float64(at[n:]))
			x.left(r, left)
		}
		norm := 0.0
		for i, l := range left {
			if l < 0 || at[i] > 0 {
				norm += l * l
			}
		}
		if norm == 0 {
			break
		}
		for i, l := range left {
			at[i] = max(0, at[i]-length*max(d-x.s.target(), 1e-9)/norm*l)
		}
	}
	r.prices, x.prices = best[:n], [2]float64(best[n:])
	of.bound = min(of.bound, bound*x.s.in.total)
	x.round(r)
}

// round makes plans of r's prices and those of PCIe, each raised in turn where
// what is chosen does not fit, and offers them.
func (x *pcie) round(r *relaxation) {
	prices := slices.Clone(r.prices)
	for _, rows := range []float64{1, 1.003, 1.01, 1.03, 1.1, 1.3, 2} {
		for i := range prices {
			prices[i] = r.prices[i] * rows
		}
		low, high := 0.9, 8.0
		for range 12 {
			if x.budget <= 0 {
				return
			}
			link := (low + high) / 2
			x.look(r, prices, [2]float64{x.prices[0] * link, x.prices[1] * link})
			if x.settle(r) {
				high = link
			} else {
				low = link
			}
			if high-low < 0.003 {
				break
			}
		}
	}
}

// settle makes a plan of the votes of the last look: groups most of whose
// volume is on the NIC, as far as memories, tables and rate allow, those with
// most saving for their price first, then any other that fits. It offers the
// plan and reports whether PCIe carries it.
func (x *pcie) settle(r *relaxation) bool {
	in := x.s.in
	c, l := newChoice(r.memory), in.newLoad()
	type candidate struct {
		b, at int
		vote  bool
		worth float64
	}
	var list []candidate
	for b, m := range r.memory {
		if m < 0 || r.rooms[b][m].most == 0 {
			continue
		}
		g := &in.blocks[b]
		c.runs[b] = []run{{r.rooms[b][m].first, r.rooms[b][m].first}} // the largest, for the predictor
		if !in.p.Blocks[b].Partitionable {
			l.add(in, b, m, 1, g.sorted[0])
			continue
		}
		visit, group := r.visitCost(r.prices, b), r.groupCost(r.prices, b)
		for at := r.rooms[b][m].first; at < g.live; at++ {
			v := g.sorted[at]
			list = append(list, candidate{b, at, 2*x.votes[x.t.base[b]+g.order[at]] > v,
				v * in.p.Blocks[b].Instructions / max(v*visit+group, 1e-300)})
		}
	}
	if !in.holds(l) || !in.sustains(c, l) {
		return false
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		if a.vote != b.vote {
			if a.vote {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.worth, a.worth)
	})
	for i := range x.t.sides {
		x.t.sides[i] = onHost
	}
	for b, m := range r.memory {
		if m >= 0 && !in.p.Blocks[b].Partitionable {
			x.t.sides[x.t.base[b]] = onNIC
		}
	}
	x.t.recount()
	fits := func(i candidate) bool {
		if in.space(c, l, i.b) == 0 {
			return false
		}
		before := l.volume[i.b]
		l.add(in, i.b, c.memory[i.b], 1, in.blocks[i.b].sorted[i.at])
		if in.sustains(c, l) {
			return true
		}
		l.add(in, i.b, c.memory[i.b], -1, 0)
		l.volume[i.b] = before
		return false
	}
	failed := 0
	for _, i := range list {
		g := int(in.blocks[i.b].order[i.at])
		if i.vote {
			if fits(i) {
				x.t.set(i.b, g, onNIC)
			}
			continue
		}
		if failed > maxTries {
			break
		}
		before := max(x.t.toHost, x.t.toNIC)
		if ok := x.t.set(i.b, g, onNIC); !ok && max(x.t.toHost, x.t.toNIC) > before || !fits(i) {
			x.t.set(i.b, g, onHost)
			failed++
		}
	}
	ok := max(x.t.toHost, x.t.toNIC) <= in.p.PCIeGbps*(1+slack)
	if !ok {
		return false
	}
	a := in.nothing()
	for b, m := range c.memory {
		a.memory[b] = m
		for g := range a.on[b] {
			a.on[b][g] = x.t.sides[x.t.base[b]+int32(g)] == onNIC
		}
	}
	x.s.offer(in.choose(a))
	return true
}
