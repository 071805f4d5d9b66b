package partition

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// fill adds groups to c as long as any fits: block by block, the one first
// whose next group saves most for its price, in each by falling volume, going
// past groups that the NIC's rate has no room for to smaller ones.
func (r *relaxation) fill(c *choice, l *load) {
	in := r.in
	type place struct {
		block, at int
		worth     float64
	}
	worth := func(b, at int) float64 {
		v := in.blocks[b].sorted[at]
		price := v*r.visitCost(r.prices, b) + r.groupCost(r.prices, b)
		return v * in.p.Blocks[b].Instructions / max(price, 1e-300)
	}
	var open []place
	for b, m := range c.memory {
		if m < 0 || r.rooms[b][m].most == 0 {
			continue
		}
		if at := c.gap(b, r.rooms[b][m].first); at < in.blocks[b].live {
			open = append(open, place{b, at, worth(b, at)})
		}
	}
	for len(open) > 0 {
		i := 0
		for j := range open {
			if open[j].worth > open[i].worth {
				i = j
			}
		}
		x := &open[i]
		x.at = in.extend(c, l, x.block, x.at)
		if x.at >= in.blocks[x.block].live {
			open = slices.Delete(open, i, i+1)
			continue
		}
		x.worth = worth(x.block, x.at)
	}
}

// gap is the first position at or after at that no run of block b has.
func (c *choice) gap(b, at int) int {
	for _, r := range c.runs[b] {
		if r.from <= at && at < r.to {
			at = r.to
		}
	}
	return at
}

// extend puts as many groups of block b on the NIC as fit, from position at on,
// which is free, up to its next run. It returns the next position worth a try,
// or the number of groups when there is none.
func (in *instance) extend(c *choice, l *load, b, at int) int {
	g := &in.blocks[b]
	end := g.live
	for _, r := range c.runs[b] {
		if r.from > at {
			end = min(end, r.from)
		}
	}
	most := min(end-at, in.space(c, l, b))
	if most == 0 {
		return g.live
	}
	n := sort.Search(most, func(n int) bool { return !in.tries(c, l, b, at, at+n+1) })
	if n > 0 {
		in.take(c, l, b, at, at+n)
		if n == end-at {
			return c.gap(b, end)
		}
		if n == most {
			return g.live // memories and tables are full, and only get fuller
		}
		at += n
	}
	// too much for the NIC's rate: the first smaller group that is not
	return c.gap(b, at+1+sort.Search(g.live-at-1, func(i int) bool {
		return in.tries(c, l, b, at+1+i, at+2+i)
	}))
}

// tries reports whether the NIC keeps up with groups from…to of block b too.
func (in *instance) tries(c *choice, l *load, b, from, to int) bool {
	g := &in.blocks[b]
	groups, volume := l.groups[b], l.volume[b]
	l.groups[b] += to - from
	l.volume[b] += g.sum[to] - g.sum[from]
	runs := c.runs[b]
	if len(runs) == 0 || from < runs[0].from {
		c.runs[b] = []run{{from, to}}
	}
	ok := in.sustains(c, l)
	c.runs[b] = runs
	l.groups[b], l.volume[b] = groups, volume
	return ok
}

// take puts groups from…to of block b on the NIC.
func (in *instance) take(c *choice, l *load, b, from, to int) {
	g := &in.blocks[b]
	volume := g.sum[to] - g.sum[from]
	l.add(in, b, c.memory[b], to-from, volume)
	c.saving += volume * in.p.Blocks[b].Instructions
	at := slices.IndexFunc(c.runs[b], func(r run) bool { return r.from > from })
	if at < 0 {
		at = len(c.runs[b])
	}
	if at > 0 && c.runs[b][at-1].to == from {
		c.runs[b][at-1].to = to
	} else {
		c.runs[b] = slices.Insert(c.runs[b], at, run{from, to})
	}
}

// printed is the paper's algorithm for one choice of blocks and memories:
// pairs of block and group in order of volume times instructions until the
// first limit. PCIe is judged by the caller.
func (in *instance) printed(memory []int, rooms [][]room) *choice {
	at := func(key float64) *choice {
		c := newChoice(memory)
		for b, m := range memory {
			if m == Host {
				continue
			}
			g, i := &in.blocks[b], in.p.Blocks[b].Instructions
			first := rooms[b][m].first
			n := sort.Search(g.live-first, func(n int) bool { return g.sorted[first+n]*i < key })
			if n > 0 {
				c.runs[b] = []run{{first, first + n}}
				c.saving += (g.sum[first+n] - g.sum[first]) * i
			}
		}
		return c
	}
	fits := func(c *choice) bool {
		l := in.loadOf(c)
		return in.holds(l) && in.sustains(c, l)
	}
	if c := at(0); fits(c) {
		return c
	}
	// the lowest key that fits: keys are compared as numbers of floats, so
	// that the search ends at two neighbouring ones
	low, high := uint64(0), math.Float64bits(math.Inf(1))
	for high-low > 1 {
		mid := low + (high-low)/2
		if fits(at(math.Float64frombits(mid))) {
			high = mid
		} else {
			low = mid
		}
	}
	c := at(math.Float64frombits(high))
	// the groups that share the next key come one by one
	l, key := in.loadOf(c), math.Float64frombits(low)
	if !in.holds(l) || !in.sustains(c, l) {
		return nil // not even nothing
	}
	order := make([]int, len(memory))
	for b := range order {
		order[b] = b
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(in.p.Blocks[b].Instructions, in.p.Blocks[a].Instructions)
	})
	for _, b := range order {
		m := memory[b]
		if m == Host {
			continue
		}
		g, i := &in.blocks[b], in.p.Blocks[b].Instructions
		from := c.gap(b, rooms[b][m].first)
		ties := sort.Search(g.live-from, func(n int) bool { return g.sorted[from+n]*i < key })
		most := min(ties, in.space(c, l, b))
		n := sort.Search(most, func(n int) bool { return !in.tries(c, l, b, from, from+n+1) })
		if n > 0 {
			in.take(c, l, b, from, from+n)
		}
		if n < ties {
			break
		}
	}
	return c
}
