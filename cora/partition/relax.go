package partition

import (
	"math"
	"slices"
	"sort"
)

// free marks a block whose memory is not chosen yet: it saves all it could and
// takes nothing.
const free = -2

// relaxation is the partition problem with some memories chosen, groups
// divisible, and what crosses PCIe left out. Its Lagrangian dual bounds what any plan with
// these memories saves: at prices a unit of each row, a group is worth its
// place if its volume times what a visit saves, less what a visit costs,
// exceeds what its entries cost. Groups in order of volume make that one
// binary search a block, whatever their number.
//
// Rows, each normalised to a capacity of 1: the memories, the table entries,
// then what limits the NIC's rate.
type relaxation struct {
	in     *instance
	rooms  [][]room
	memory []int       // by block: index, Host or free
	rates  [][]float64 // rows of the NIC's rate: capacity taken by 1 Mpps of visits, by block
	backs  []float64   // of the same rows: capacity taken by 1 Mpps that comes back from the host
	prices []float64
	bound  float64 // on the saving, of the best prices
}

// Outcome of the groups of one block at given prices.
type bought struct{ from, to int }

// visitCost is the price of 1 Mpps of visits to block b; groupCost that of one
// more group.
func (r *relaxation) visitCost(prices []float64, b int) float64 {
	cost := 0.0
	if r.memory[b] >= 0 {
		for i, row := range r.rates {
			cost += prices[len(r.in.p.Memories)+1+i] * row[b]
		}
	}
	return cost
}

func (r *relaxation) groupCost(prices []float64, b int) float64 {
	m := r.memory[b]
	if m < 0 {
		return 0
	}
	block := &r.in.p.Blocks[b]
	entries, bytes := block.perGroup()
	cost := 0.0
	if bytes > 0 {
		cost = prices[m] * float64(bytes) / float64(r.in.p.Memories[m].Bytes)
	}
	if block.Table && r.in.p.TableEntries > 0 {
		cost += prices[len(r.in.p.Memories)] * float64(entries) / float64(r.in.p.TableEntries)
	}
	return cost
}

// buy returns the groups of block b that are worth scale times their price.
func (r *relaxation) buy(prices []float64, scale float64, b int) bought {
	m := r.memory[b]
	if m == Host {
		return bought{}
	}
	g := &r.in.blocks[b]
	in := r.reach(b)
	if m >= 0 && !r.in.p.Blocks[b].Partitionable {
		return in // the choice of a memory is the choice to be there
	}
	if math.IsInf(scale, 1) {
		return bought{in.from, in.from}
	}
	worth := r.in.p.Blocks[b].Instructions/r.in.total - scale*r.visitCost(prices, b)
	cost := scale * r.groupCost(prices, b)
	if worth <= 0 {
		return bought{in.from, in.from}
	}
	n := sort.Search(in.to-in.from, func(i int) bool { return g.sorted[in.from+i]*worth < cost })
	return bought{in.from, in.from + n}
}

// reach is what of block b could be on the NIC at most.
func (r *relaxation) reach(b int) bought {
	if m := r.memory[b]; m >= 0 {
		x := r.rooms[b][m]
		return bought{x.first, x.first + x.most}
	}
	out := bought{len(r.in.blocks[b].order), 0}
	most := 0
	for _, x := range r.rooms[b] {
		if x.most > 0 {
			out.from = min(out.from, x.first)
			most = max(most, x.most)
		}
	}
	if most == 0 {
		return bought{}
	}
	return bought{out.from, min(out.from+most, r.in.blocks[b].live)}
}

// value of the dual at prices, and how much each row has left.
func (r *relaxation) value(prices, left []float64) float64 {
	d := 0.0
	for i, price := range prices {
		d += price
		left[i] = 1
	}
	k := len(r.in.p.Memories)
	for b := range r.memory {
		x := r.buy(prices, 1, b)
		n := float64(x.to - x.from)
		if n == 0 {
			continue
		}
		g, block := &r.in.blocks[b], &r.in.p.Blocks[b]
		volume := g.sum[x.to] - g.sum[x.from]
		d += volume*(block.Instructions/r.in.total-r.visitCost(prices, b)) - n*r.groupCost(prices, b)
		m := r.memory[b]
		if m < 0 {
			continue
		}
		entries, bytes := block.perGroup()
		if bytes > 0 {
			left[m] -= n * float64(bytes) / float64(r.in.p.Memories[m].Bytes)
		}
		if block.Table && r.in.p.TableEntries > 0 {
			left[k] -= n * float64(entries) / float64(r.in.p.TableEntries)
		}
		for i, row := range r.rates {
			left[k+1+i] -= volume * row[b]
		}
	}
	return d
}

// solve lowers the bound by subgradient steps toward target (a saving that is
// known to be possible, in units of the total), until it meets it or the steps
// are used up.
func (r *relaxation) solve(target float64, steps int) {
	n := len(r.in.p.Memories) + 1 + len(r.rates)
	for len(r.prices) < n {
		r.prices = append(r.prices, 0)
	}
	at, left, best := slices.Clone(r.prices), make([]float64, n), slices.Clone(r.prices)
	bound, length, since := math.Inf(1), 1.0, 0
	for range steps {
		d := r.value(at, left)
		if d < bound-1e-7*math.Abs(bound) {
			since = 0
		} else {
			since++
		}
		if d < bound {
			bound = d
			copy(best, at)
		}
		if bound <= target {
			break
		}
		if since >= 8 {
			if length *= 0.6; length < 1e-4 {
				break
			}
			since = 0
			copy(at, best)
			d = r.value(at, left)
		}
		norm := 0.0
		for i, l := range left {
			if l < 0 || at[i] > 0 {
				norm += l * l
			}
		}
		if norm == 0 {
			break // no row is short, no price is left to drop: the best there is
		}
		step := length * max(d-target, 1e-9) / norm
		for i, l := range left {
			at[i] = max(0, at[i]-step*l)
		}
	}
	copy(r.prices, best)
	r.bound = bound * r.in.total
}

// spend returns the choice that buys at scale times the prices.
func (r *relaxation) spend(scale float64) *choice {
	c := newChoice(r.memory)
	for b := range c.memory {
		if c.memory[b] < 0 {
			c.memory[b] = Host
			continue
		}
		if x := r.buy(r.prices, scale, b); x.to > x.from {
			c.runs[b] = append(c.runs[b], run(x))
			c.saving += (r.in.blocks[b].sum[x.to] - r.in.blocks[b].sum[x.from]) * r.in.p.Blocks[b].Instructions
		}
	}
	return c
}

// afford raises all prices alike until what is bought fits, and returns that
// choice; ok tells whether a load fits.
func (r *relaxation) afford(ok func(*choice, *load) bool) *choice {
	fits := func(scale float64) *choice {
		c := r.spend(scale)
		if l := r.in.loadOf(c); ok(c, l) {
			return c
		}
		return nil
	}
	low, high := 0.0, 1.0
	best := fits(0)
	if best != nil {
		return best
	}
	for best = fits(high); best == nil; best = fits(high) {
		low, high = high, high*4
		if high > 1e6 {
			return nil
		}
	}
	for range 40 {
		mid := (low + high) / 2
		if c := fits(mid); c != nil {
			best, high = c, mid
		} else {
			low = mid
		}
		if high-low < 1e-9*high {
			break
		}
	}
	return best
}

// cut adds a row for the NIC's rate where the predictor is no Demander: the
// plane that touches the set of sustained volumes where the way from nothing
// to what the prices buy leaves it. It reports whether a row was needed. The
// row bounds every plan if that set is convex.
func (r *relaxation) cut() bool {
	c := r.afford(func(c *choice, l *load) bool {
		if !r.in.holds(l) {
			return false
		}
		for _, row := range r.rates {
			used := 0.0
			for b, v := range l.volume {
				used += row[b] * v
			}
			if used > 1+slack {
				return false
			}
		}
		return true
	})
	if c == nil {
		return false
	}
	l := r.in.loadOf(c)
	if r.in.sustains(c, l) {
		return false
	}
	full := slices.Clone(l.volume)
	at := func(scale float64, b int, more float64) float64 {
		for i := range full {
			l.volume[i] = scale * full[i]
		}
		if b >= 0 {
			l.volume[b] += more
		}
		return 1 / r.in.rateOf(c, l)
	}
	low, high := 0.0, 1.0
	for range 40 {
		mid := (low + high) / 2
		if at(mid, -1, 0) <= 1/r.in.rate {
			low = mid
		} else {
			high = mid
		}
	}
	here, row, sum := at(low, -1, 0), make([]float64, len(full)), 0.0
	for b, v := range full {
		if v > 0 {
			more := max(v, r.in.rate/1000) * 1e-4
			row[b] = max(0, at(low, b, more)-here) / more
			sum += row[b] * v * low
		}
	}
	if sum <= 0 {
		return false
	}
	for b := range row {
		row[b] /= sum
	}
	probe := r.in.rate * 1e-4
	r.in.back = probe
	back := max(0, at(low, -1, 0)-here) / probe / sum
	r.in.back = 0
	r.rates, r.backs = append(slices.Clip(r.rates), row), append(slices.Clip(r.backs), back)
	return true
}
