package partition

import (
	"math"
	"slices"
)

// pcie bounds and finds plans where PCIe, or packets that come back from the
// host, are what limits them. At a price of each Gb/s a way, and of each packet
// that the NIC's rate has to take a second time, every class of packets chooses for itself the sides of the
// groups on its path that save most. What a group is worth is split among the
// classes that visit it, by volume at first; classes that disagree on a group
// make the bound weaker, so with every look each passes some of what it would
// gain from the group to the others, until they gain alike. (This is the dual
// of the linear relaxation by chains; the passing is diffusion, as in sequential
// tree-reweighted message passing.)
type pcie struct {
	s      *search
	t      *tracks
	prices [2]float64 // of all that PCIe carries to the host, to the NIC
	rows   []float64  // prices of the other rows, with these
	budget int        // steps of paths left to follow
	shift  []float64  // by class and step: passed to this class
	first  []int32    // of a class' steps in shift
	gain   []float64  // by group: of being on the NIC, all its classes together
	own    []float64  // by class and step: of being on the NIC
	pass   float64    // part of a difference that is passed on

	// of the last look
	worth  [][3]float64 // by block: of 1 Mpps on the NIC, cost of a group, volume above which a group is barred
	volume []float64
	groups []float64
	cross  [2]float64 // of all that PCIe carries
	back   float64    // Mpps to the NIC

	// of the class followed last: what step k saves on each side; the best of
	// all up to step k that ends there; the best of all from step k on
	here, before, after [maxPath + 1][2]float64
}

// maxSteps bounds the steps of paths that one plan may follow: about one
// second, and at least a few looks at any traffic.
const maxSteps = 1 << 24

// predictionSteps is how many steps take as long as a prediction.
const predictionSteps = 10

// Subgradient steps with PCIe priced.
const (
	tightenSteps = 8
	solveSteps   = 200
)

func newPCIe(s *search) *pcie {
	in := s.in
	x := &pcie{s: s, t: newTracks(in), budget: maxSteps}
	x.worth = make([][3]float64, len(in.blocks))
	x.volume, x.groups = make([]float64, len(in.blocks)), make([]float64, len(in.blocks))
	x.gain = make([]float64, len(x.t.sides))
	x.shift, x.own = make([]float64, len(x.t.visits)), make([]float64, len(x.t.visits))
	x.first = make([]int32, len(in.p.Classes)+1)
	longest := 1
	for i := range in.p.Classes {
		n := len(in.p.Classes[i].Groups)
		x.first[i+1] = x.first[i] + int32(n)
		longest = max(longest, n)
	}
	x.pass = 1 / float64(longest)
	x.budget = max(x.budget, 40*len(x.shift))
	return x
}

// look has every class choose its sides at prices of r's rows and of PCIe, and
// returns the dual's value: a bound of the saving in units of the total.
func (x *pcie) look(r *relaxation, prices []float64, link [2]float64) float64 {
	in := x.s.in
	x.budget -= len(x.shift)
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
	clear(x.gain)
	clear(x.volume)
	clear(x.groups)
	x.cross, x.back = [2]float64{}, 0
	back := 0.0 // price of 1 Mpps that comes back
	for i, us := range r.backs {
		back += prices[len(in.p.Memories)+1+i] * us
	}
	for i := range in.p.Classes {
		d += x.follow(r, i, link, back)
	}
	x.share()
	return d
}

// sides of a packet in a table.
const (
	nic = iota
	host
)

// follow finds the sides that save class i most, adds what they take, and
// notes what it would gain from each group on the NIC. It returns the saving.
func (x *pcie) follow(r *relaxation, i int, link [2]float64, back float64) float64 {
	in := x.s.in
	c := &in.p.Classes[i]
	path := &in.p.Paths[c.Path]
	mpps := c.Mpps * in.scale
	load := 0.0
	if in.p.PCIeGbps > 0 {
		load = gbps(mpps, c.Bytes) / in.p.PCIeGbps
	}
	down, up := link[0]*load, link[1]*load+back*mpps
	n, steps := len(path.Blocks), int(x.first[i])
	here, before, after := &x.here, &x.before, &x.after
	at := [2]float64{0, math.Inf(-1)}
	for k, b := range path.Blocks {
		v := in.blocks[b].volume[c.Groups[k]]
		w := &x.worth[b]
		h := [2]float64{math.Inf(-1), 0}
		if v > 0 && v <= w[2] {
			h[nic] = mpps*w[0] - w[1]*mpps/v + x.shift[steps+k]
			if r.memory[b] >= 0 && !in.p.Blocks[b].Partitionable {
				h[host] = math.Inf(-1)
			}
		}
		at = [2]float64{max(at[nic], at[host]-up) + h[nic], max(at[host], at[nic]-down) + h[host]}
		here[k], before[k] = h, at
	}
	switch path.End {
	case Wire:
		after[n] = [2]float64{0, -up}
	case ToHost:
		after[n] = [2]float64{-down, 0}
	case Dropped:
		after[n] = [2]float64{}
	}
	if n == 0 {
		x.end(path.End, nic, load, mpps)
		return after[0][nic]
	}
	for k := n - 1; k >= 0; k-- {
		h, next := here[k], after[k+1]
		after[k] = [2]float64{
			h[nic] + max(next[nic], next[host]-down),
			h[host] + max(next[host], next[nic]-up),
		}
		if k == n-1 {
			after[k] = [2]float64{h[nic] + next[nic], h[host] + next[host]}
		}
	}
	best, side := 0.0, nic
	for k, b := range path.Blocks {
		// the best with step k on each side
		on := before[k][nic] + after[k][nic] - here[k][nic]
		off := before[k][host] + after[k][host] - here[k][host]
		if math.IsInf(here[k][nic], -1) {
			on = math.Inf(-1)
		}
		if math.IsInf(here[k][host], -1) {
			off = math.Inf(-1)
		}
		x.own[steps+k] = on - off
		x.gain[x.t.base[b]+c.Groups[k]] += on - off
		best = max(on, off)
		// the way there
		come := [2]float64{after[k][nic], after[k][host]}
		if side == nic {
			come[host] -= down
		} else {
			come[nic] -= up
		}
		to := nic
		if come[host] > come[nic] {
			to = host
		}
		x.count(side, to, load, mpps)
		side = to
		if side == nic {
			x.volume[b] += mpps
			x.groups[b] += mpps / in.blocks[b].volume[c.Groups[k]]
		}
	}
	x.end(path.End, side, load, mpps)
	return best
}

// end adds the crossing at the end of a path.
func (x *pcie) end(at End, side int, load, mpps float64) {
	switch at {
	case Wire:
		x.count(side, nic, load, mpps)
	case ToHost:
		x.count(side, host, load, mpps)
	}
}

// count adds a crossing where a packet changes its side.
func (x *pcie) count(from, to int, load, mpps float64) {
	if from < to {
		x.cross[0] += load
	} else if from > to {
		x.cross[1] += load
		x.back += mpps
	}
}

// share passes gains between the classes that visit a group.
func (x *pcie) share() {
	in := x.s.in
	for i := range in.p.Classes {
		c := &in.p.Classes[i]
		for k, b := range in.p.Paths[c.Path].Blocks {
			n := x.t.base[b] + c.Groups[k]
			if visits := x.t.first[n+1] - x.t.first[n]; visits > 1 && !math.IsInf(x.gain[n], 0) {
				x.shift[int(x.first[i])+k] += x.pass * (x.gain[n]/float64(visits) - x.own[int(x.first[i])+k])
			}
		}
	}
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
	for i, us := range r.backs {
		left[k+1+i] -= x.back * us
	}
	left[len(left)-2], left[len(left)-1] = 1-x.cross[0], 1-x.cross[1]
}

// tighten lowers r's bound by what PCIe takes, from the prices found last on.
func (x *pcie) tighten(r *relaxation) { x.descend(r, tightenSteps) }

// solve lowers the relaxation's bound by what PCIe takes and offers the plans
// that its prices suggest.
func (x *pcie) solve(r *relaxation) {
	if r := x.descend(r, solveSteps); r.bound > x.s.enough() {
		x.round(r)
	}
}

// descend lowers the bound by subgradient steps on all prices, PCIe's included.
// It returns the relaxation at the best prices.
func (x *pcie) descend(of *relaxation, most int) *relaxation {
	copied := *of
	r := &copied
	if len(x.rows) == len(r.prices) {
		r.prices = x.rows // those of other memories are a better start than those without PCIe
	}
	n := len(r.prices)
	at, left := append(slices.Clone(r.prices), x.prices[:]...), make([]float64, n+2)
	best, bound, length, since := slices.Clone(at), math.Inf(1), 1.0, 0
	goal := func(bound float64) float64 {
		if x.s.best == nil {
			return 0.97 * bound // no plan is known that would say how far down it can go
		}
		return x.s.target()
	}
	for step := 0; step < most && x.budget > 0 && length > 1e-3; step++ {
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
			at[i] = max(0, at[i]-length*max(d-goal(bound), 1e-9)/norm*l)
		}
	}
	r.prices, x.prices = best[:n], [2]float64(best[n:])
	x.rows = r.prices
	r.bound = min(of.bound, bound*x.s.in.total)
	of.bound = r.bound
	return r
}

// round makes plans of r's prices and those of PCIe, each raised in turn where
// what is chosen does not fit, and offers them.
func (x *pcie) round(r *relaxation) {
	prices := slices.Clone(r.prices)
	for _, rows := range raised {
		for i := range prices {
			prices[i] = r.prices[i] * rows
		}
		for _, link := range raised {
			if x.budget <= 0 {
				return
			}
			x.look(r, prices, [2]float64{x.prices[0] * link, x.prices[1] * link})
			x.settle(r)
		}
	}
}

// raised are the factors on prices at which plans are made.
var raised = []float64{1, 1.01, 1.03, 1.1, 1.3, 2}
