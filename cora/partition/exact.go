package partition

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// maxItems bounds the groups that branch and bound looks at with one placement.
const maxItems = 20_000

// branching is branch and bound over single groups once all memories are
// chosen. The relaxation's prices say what each group's place is worth; a group
// on the side that its price speaks against lowers the bound by that worth, so
// groups with much at stake come first and most of the tree falls away.
type branching struct {
	s      *search
	budget int // nodes left, all placements together
	each   int // most nodes of one placement
	until  int // the budget at which this placement ends
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

func newBranching(s *search, nodes, each int) *branching {
	x := &branching{s: s, budget: nodes, each: each}
	if (s.in.p.PCIeGbps > 0 || s.returning) && s.in.groups() <= maxItems {
		x.tracks = newTracks(s.in)
	}
	return x
}

// solve finds the best plan with the memories of r, offers it to the search and
// returns the bound that is left: that of the best plan, or more when the
// budget of nodes ran out.
func (x *branching) solve(r *relaxation) float64 {
	in := x.s.in
	// of these prices: r's own bound may be lower, by PCIe or before it was
	// this far decided
	bound := r.value(r.prices, make([]float64, len(r.prices))) * in.total
	spare := bound - x.s.enough()
	if spare <= 0 || r.bound <= x.s.enough() {
		return min(r.bound, bound)
	}
	x.items, x.c, x.load, x.left = x.items[:0], newChoice(r.memory), in.newLoad(), math.Inf(-1)
	for b, m := range r.memory {
		x.c.memory[b] = Host
		if m < 0 || r.rooms[b][m].most == 0 {
			continue
		}
		x.c.memory[b] = m
		if !in.p.Blocks[b].Partitionable {
			in.take(x.c, x.load, b, 0, 1)
			continue
		}
		if !x.addItems(r, b, spare) {
			return r.bound
		}
	}
	if !in.holds(x.load) || !in.sustains(x.c, x.load) {
		return math.Inf(-1)
	}
	x.tracks.start(x.c, x.items)
	slices.SortStableFunc(x.items, func(a, b item) int { return cmp.Compare(math.Abs(b.worth), math.Abs(a.worth)) })
	x.taken = make([]bool, len(x.items))
	x.saving = x.c.saving
	x.until = max(0, x.budget-x.each)
	x.descend(0, bound)
	best := x.left
	if x.s.best != nil {
		best = max(best, x.s.best.saving)
	}
	return min(r.bound, best)
}

// addItems lists the groups of a block that may be on either side in a plan
// better than the best: those whose worth is below what there is to spare.
// Those worth more are on the NIC. What MaxEntries leaves out gets a price too:
// the worth of the last group within. It reports whether the items are few
// enough.
func (x *branching) addItems(r *relaxation, b int, spare float64) bool {
	in := x.s.in
	g, i, room := &in.blocks[b], in.p.Blocks[b].Instructions, r.rooms[b][r.memory[b]]
	visit, group := i-r.visitCost(r.prices, b)*in.total, r.groupCost(r.prices, b)*in.total
	if last := room.first + room.most; last < g.live {
		group += max(0, g.sorted[last-1]*visit-group)
	}
	worth := func(at int) float64 { return g.sorted[at]*visit - group }
	// worth falls with volume, or rises where a visit costs more than it saves
	from, to := room.first, g.live
	if visit >= 0 {
		from += sort.Search(g.live-room.first, func(n int) bool { return worth(room.first+n) <= spare })
		to = from + sort.Search(g.live-from, func(n int) bool { return worth(from+n) < -spare })
		if from > room.first {
			in.take(x.c, x.load, b, room.first, from)
		}
	} else {
		from += sort.Search(g.live-room.first, func(n int) bool { return worth(room.first+n) >= -spare })
	}
	if len(x.items)+to-from > maxItems {
		return false
	}
	for at := from; at < to; at++ {
		v := g.sorted[at]
		x.items = append(x.items, item{b, at, worth(at), v * i, v})
	}
	return true
}

// descend decides items from k on; bound holds for what is decided so far.
func (x *branching) descend(k int, bound float64) {
	if bound <= x.s.enough() {
		return
	}
	if x.budget <= x.until {
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
	if in.sustains(x.c, x.load) && x.tracks.set(it.b, int(in.blocks[it.b].order[it.at]), onNIC) && x.takesBack() {
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
	if x.tracks.set(it.b, g, onHost) && x.takesBack() {
		x.descend(k+1, bound)
	}
	x.tracks.set(it.b, g, unknown)
}

// takesBack reports whether the NIC sustains what is on it with the packets that
// must come back from the host.
func (x *branching) takesBack() bool {
	return x.tracks == nil || !x.s.returning || x.s.in.sustainsWith(x.tracks.back, x.c, x.load)
}

// offer hands a complete plan to the search.
func (x *branching) offer() {
	if x.s.best != nil && x.saving <= x.s.best.saving {
		return
	}
	c := x.c.clone()
	for b := range c.runs {
		c.runs[b] = slices.DeleteFunc(c.runs[b], func(r run) bool { return r.from == r.to })
	}
	for k, it := range x.items {
		if x.taken[k] {
			x.s.in.take(c, x.s.in.newLoad(), it.b, it.at, it.at+1)
		}
	}
	x.s.offer(c)
}
