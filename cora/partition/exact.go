package partition

import (
	"cmp"
	"math"
	"slices"
)

// branching is branch and bound over single groups once all memories are
// chosen. The relaxation's prices say what each group's place is worth; a group
// on the side that its price speaks against lowers the bound by that worth, so
// groups with much at stake come first and most of the tree falls away.
type branching struct {
	s      *search
	budget int // nodes left, all placements together
	tracks *tracks

	items  []item
	load   *load
	c      *choice
	left   float64 // bound of the part that the budget did not reach
	saving float64
	taken  []bool
}

// item is one group of a block that may be on either side.
type item struct {
	b, at  int
	worth  float64 // at the relaxation's prices; positive: on the NIC
	saving float64
	volume float64
}

const defaultNodes = 20_000_000

func newBranching(s *search, nodes int) *branching {
	if nodes <= 0 {
		nodes = defaultNodes
	}
	x := &branching{s: s, budget: nodes}
	if s.in.p.PCIeGbps > 0 {
		x.tracks = newTracks(s.in)
	}
	return x
}

// solve finds the best plan with the memories of r, offers it to the search and
// returns the bound that is left: that of the best plan, or more when the
// budget of nodes ran out.
func (x *branching) solve(r *relaxation) float64 {
	if r.bound <= x.s.enough() {
		return r.bound
	}
	in := x.s.in
	x.items, x.c, x.load, x.saving, x.left = x.items[:0], newChoice(r.memory), in.newLoad(), 0, math.Inf(-1)
	if x.tracks != nil {
		x.tracks.reset()
	}
	for b, m := range r.memory {
		g := &in.blocks[b]
		reach := bought{}
		if m >= 0 {
			reach = bought{r.rooms[b][m].first, g.live}
			if r.rooms[b][m].most == 0 {
				reach.to = reach.from
			}
		}
		if x.tracks != nil {
			for at, n := range g.order {
				if at < reach.from || at >= reach.to {
					x.tracks.set(b, int(n), onHost)
				}
			}
		}
		if reach.to == reach.from {
			x.c.memory[b] = Host
			continue
		}
		if !in.p.Blocks[b].Partitionable {
			if x.tracks != nil {
				x.tracks.set(b, int(g.order[0]), onNIC)
			}
			in.take(x.c, x.load, b, 0, 1)
			x.saving += g.sorted[0] * in.p.Blocks[b].Instructions
			continue
		}
		x.addItems(r, b, reach)
	}
	if !in.holds(x.load) || !in.sustains(x.c, x.load) {
		return math.Inf(-1)
	}
	slices.SortStableFunc(x.items, func(a, b item) int { return cmp.Compare(math.Abs(b.worth), math.Abs(a.worth)) })
	x.taken = make([]bool, len(x.items))
	x.descend(0, r.bound)
	best := x.left
	if x.s.best != nil {
		best = max(best, x.s.best.saving)
	}
	return min(r.bound, best)
}

// addItems lists the groups of a block with their worth at the prices. What
// MaxEntries leaves out gets a price too: the worth of the last group within.
func (x *branching) addItems(r *relaxation, b int, reach bought) {
	in := x.s.in
	g, i := &in.blocks[b], in.p.Blocks[b].Instructions
	visit, group := i-r.visitCost(r.prices, b)*in.total, r.groupCost(r.prices, b)*in.total
	scarce := 0.0
	if most := r.rooms[b][r.memory[b]].most; reach.from+most < reach.to {
		scarce = max(0, g.sorted[reach.from+most-1]*visit-group)
	}
	for at := reach.from; at < reach.to; at++ {
		v := g.sorted[at]
		x.items = append(x.items, item{b, at, v*visit - group - scarce, v * i, v})
	}
}

// descend decides items from k on; bound holds for what is decided so far.
func (x *branching) descend(k int, bound float64) {
	if bound <= x.s.enough() {
		return
	}
	if x.budget <= 0 {
		x.left = max(x.left, bound)
		return
	}
	x.budget--
	if k == len(x.items) {
		x.offer()
		return
	}
	it := &x.items[k]
	against := bound - math.Abs(it.worth)
	if it.worth > 0 {
		x.put(k, bound)
		x.leave(k, against)
	} else {
		x.leave(k, bound)
		x.put(k, against)
	}
}

// put has item k on the NIC.
func (x *branching) put(k int, bound float64) {
	it, in := &x.items[k], x.s.in
	if bound <= x.s.enough() || in.space(x.c, x.load, it.b) == 0 {
		return
	}
	before, runs := x.load.volume[it.b], x.c.runs[it.b]
	x.load.add(in, it.b, x.c.memory[it.b], 1, it.volume)
	if len(runs) == 0 || it.at < runs[0].from {
		x.c.runs[it.b] = []run{{it.at, it.at}} // the largest, for the predictor
	}
	if in.sustains(x.c, x.load) && x.tracks.set(it.b, int(in.blocks[it.b].order[it.at]), onNIC) {
		x.taken[k] = true
		x.saving += it.saving
		x.descend(k+1, bound)
		x.saving -= it.saving
		x.taken[k] = false
	}
	x.tracks.set(it.b, int(in.blocks[it.b].order[it.at]), unknown)
	x.load.add(in, it.b, x.c.memory[it.b], -1, -it.volume)
	x.load.volume[it.b], x.c.runs[it.b] = before, runs
}

// leave has item k on the host.
func (x *branching) leave(k int, bound float64) {
	if bound <= x.s.enough() {
		return
	}
	it := &x.items[k]
	g := int(x.s.in.blocks[it.b].order[it.at])
	if x.tracks.set(it.b, g, onHost) {
		x.descend(k+1, bound)
	}
	x.tracks.set(it.b, g, unknown)
}

// offer hands a complete plan to the search.
func (x *branching) offer() {
	if x.s.best != nil && x.saving <= x.s.best.saving {
		return
	}
	a := x.s.in.nothing()
	copy(a.memory, x.c.memory)
	for b := range a.memory {
		if a.memory[b] >= 0 && !x.s.in.p.Blocks[b].Partitionable {
			a.on[b][0] = true
		}
	}
	for k, it := range x.items {
		if x.taken[k] {
			a.on[it.b][x.s.in.blocks[it.b].order[it.at]] = true
		}
	}
	x.s.offer(x.s.in.choose(a))
}
