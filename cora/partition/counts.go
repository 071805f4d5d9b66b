package partition

import (
	"cmp"
	"math"
	"slices"
)

// counting is branch and bound over how many groups each block has on the NIC,
// once all memories are chosen. At the relaxation's prices of the NIC's rate, the
// groups of a block differ in their volume alone, so the largest of them are worth
// most, and what memories and tables hold is a matter of their number: as many
// decisions as blocks, where single groups would be thousands. Whole numbers that
// do not fill a memory are what the relaxation's bound leaves out.
type counting struct {
	s      *search
	r      *relaxation
	budget int // nodes left, all placements together
	until  int // the budget at which this placement ends

	list  []counted
	c     *choice // with the blocks that cannot be split
	load  *load
	value float64 // bound at the relaxation's prices, of the total
	left  float64 // bound of what is decided but not proved worse
}

// counted is a block whose number of groups is to be decided.
type counted struct {
	b, m        int
	first, most int
	visit       float64 // worth of 1 Mpps on the NIC, of the total
	group       float64 // price of a group
	best        int     // number of groups at these prices
	lastOf      bool    // of its memory
}

// Nodes of counting, for cora's and for exact's search.
const (
	coraCounts  = 400_000
	exactCounts = 4_000_000
)

// worth of n groups, their price paid.
func (x *counting) worth(b *counted, n int) float64 {
	g := &x.s.in.blocks[b.b]
	return b.visit*(g.sum[b.first+n]-g.sum[b.first]) - float64(n)*b.group
}

// solve bounds the saving of every plan with r's memories, and offers the plans
// that it meets.
func (x *counting) solve(r *relaxation) float64 {
	in := x.s.in
	x.r, x.c, x.load, x.list = r, newChoice(r.memory), in.newLoad(), x.list[:0]
	x.value, x.left = r.value(r.prices, make([]float64, len(r.prices))), math.Inf(-1)
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
		k := counted{b: b, m: m, first: r.rooms[b][m].first, most: r.rooms[b][m].most,
			visit: in.p.Blocks[b].Instructions/in.total - r.visitCost(r.prices, b), group: r.groupCost(r.prices, b)}
		k.best = r.buy(r.prices, 1, b).to - k.first
		x.list = append(x.list, k)
	}
	if !in.holds(x.load) {
		return math.Inf(-1)
	}
	// the memory whose places are dearest first, in each the largest entries: the
	// small ones fill what is left
	size := func(k counted) int64 { _, bytes := in.p.Blocks[k.b].perGroup(); return bytes }
	slices.SortStableFunc(x.list, func(a, b counted) int {
		return cmp.Or(cmp.Compare(r.prices[b.m], r.prices[a.m]), cmp.Compare(a.m, b.m), cmp.Compare(size(b), size(a)))
	})
	for i := range x.list {
		x.list[i].lastOf = i+1 == len(x.list) || x.list[i+1].m != x.list[i].m
	}
	x.until = max(0, x.budget-max(x.budget/8, 1000))
	x.decide(0, x.value)
	bound := x.left * in.total
	if x.s.best != nil {
		bound = max(bound, x.s.best.saving)
	}
	return min(r.bound, bound)
}

// decide has the blocks from k on; bound holds for what is decided so far.
func (x *counting) decide(k int, bound float64) {
	if bound*x.s.in.total <= x.s.enough() {
		return
	}
	if x.budget <= x.until {
		x.left = max(x.left, bound)
		return
	}
	x.budget--
	if k == len(x.list) {
		x.offer(bound)
		return
	}
	b := &x.list[k]
	most := min(b.most, x.s.in.space(x.c, x.load, b.b))
	best := min(b.best, most)
	if b.lastOf && b.visit > 0 && (!x.s.in.p.Blocks[b.b].Table || x.s.in.p.TableEntries == 0) {
		x.with(k, most, bound) // nothing else could use the room
		return
	}
	// from the best number outwards, as long as the bound allows
	for n := best; n >= 0 && x.with(k, n, bound); n-- {
	}
	for n := best + 1; n <= most && x.with(k, n, bound); n++ {
	}
}

// with decides for n groups of block k, and reports whether numbers further from
// the best are worth a try.
func (x *counting) with(k, n int, bound float64) bool {
	in, b := x.s.in, &x.list[k]
	after := bound - (x.worth(b, b.best) - x.worth(b, n))
	if after*in.total <= x.s.enough() {
		return false
	}
	g := &in.blocks[b.b]
	before, runs := x.load.volume[b.b], x.c.runs[b.b]
	x.load.add(in, b.b, b.m, n, g.sum[b.first+n]-g.sum[b.first])
	if n > 0 {
		x.c.runs[b.b] = []run{{b.first, b.first + n}}
	}
	next := after
	if b.lastOf && in.p.Memories[b.m].Bytes > 0 {
		next -= x.r.prices[b.m] * float64(in.p.Memories[b.m].Bytes-x.load.bytes[b.m]) / float64(in.p.Memories[b.m].Bytes)
	}
	x.decide(k+1, next)
	x.load.add(in, b.b, b.m, -n, 0)
	x.load.volume[b.b], x.c.runs[b.b] = before, runs
	return true
}

// offer hands a complete plan to the search: bound is what it is worth with the
// rate at its price, which it may be without.
func (x *counting) offer(bound float64) {
	in := x.s.in
	if in.p.TableEntries > 0 {
		bound -= x.r.prices[len(in.p.Memories)] * float64(in.p.TableEntries-x.load.table) / float64(in.p.TableEntries)
	}
	if bound*in.total <= x.s.enough() {
		return
	}
	if x.s.link != nil { // what crosses PCIe turns plans down that know nothing of it
		x.left = max(x.left, bound)
		return
	}
	c := x.c.clone()
	c.saving = 0
	for b, runs := range c.runs {
		for _, r := range runs {
			c.saving += (in.blocks[b].sum[r.to] - in.blocks[b].sum[r.from]) * in.p.Blocks[b].Instructions
		}
	}
	x.s.offer(c)
	if bound*in.total > x.s.enough() {
		x.left = max(x.left, bound)
	}
}
