package supernic

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Branch is a chain of NTs that a packet takes in one go: the NTs in order, and
// the region that runs them (with others, which it skips), or New.
type Branch struct {
	NTs    []int
	Region int
}

// New is the region of a branch that has none yet.
const New = -1

// Plan says how packets of a DAG run: stages one after the other, a pass through
// the scheduler between two, and the branches of a stage at the same time.
type Plan struct {
	Stages [][]Branch
	Cycles int     // an unloaded packet's: NTs, and passes after the first
	New    int     // regions to configure
	Area   float64 // of the NTs to configure
	Share  float64 // of regions to configure that the DAG would fill itself
	Why    []string
}

// areaSlack forgives the rounding of areas that are added up.
const areaSlack = 1e-9

// maxDownsets bounds the search: a DAG with more ways to stop between two stages
// is only cut along one order of its NTs.
const maxDownsets = 256

// running is a region whose chain a DAG could use.
type running struct {
	region int
	chain  []int
	usable []bool    // by NT of the chain: may this user use it
	spare  []float64 // by NT of the chain: Gb/s
	text   string    // whose chain it is
}

// planner finds the plan of one DAG.
type planner struct {
	graph    *graph
	nts      []NT
	area     float64 // of a region
	regions  int     // that the board has
	pass     int     // cycles of another pass
	sync     int     // cycles of meeting again after branches, before another pass
	skip     int     // cycles past an NT of a chain
	everyNT  bool    // every NT is a pass (PANIC)
	parallel bool    // DAG parallelism is allowed
	demand   float64 // Gb/s
	lonely   bool    // nobody else may use what a DAG leaves of its regions
	running  []running

	options map[int]map[set][]option // by width, then by part of the DAG
}

// option is a way to run a part of a DAG as one stage.
type option struct {
	branches []Branch
	cycles   int
	regions  int
	area     float64
}

// cell is the best plan found for a downset with a number of new regions.
type cell struct {
	found  bool
	cycles int
	area   float64
	wide   bool // some stage has several branches
	from   int  // downset, of so many NTs
	size   int
	left   int // its new regions
	stage  []Branch
}

// better says whether a plan whose last stage begins after a downset of size NTs
// replaces the one found. Of plans that are as good the one remains whose earlier
// stages have more, and then whose NTs come first in the file.
func (c *cell) better(cycles int, area float64, size int) bool {
	switch {
	case !c.found || cycles != c.cycles:
		return !c.found || cycles < c.cycles
	case math.Abs(area-c.area) > areaSlack:
		return area < c.area
	}
	return size > c.size
}

// plan returns the plan to deploy, nil if there is none on this board, and never
// one that needs more than free new regions if that can be helped. It takes the
// plan with the fewest new regions, since NTs that run already serve at once, and
// of these the fastest. A plan with parallel branches replaces it if it is faster,
// there are so many free regions, and what it fills of them is within allowed.
func (p *planner) plan(free int, allowed float64) *Plan {
	p.options = map[int]map[set][]option{}
	var base *Plan
	for _, q := range p.search(1) {
		if q != nil {
			base = q
			break
		}
	}
	if base == nil {
		return nil
	}
	chosen := base
	base.Why = p.explain(base)
	if g := p.graph; len(g.components(g.all())) == 1 && p.series() {
		return base
	}
	if !p.parallel {
		base.Why = append(base.Why, "not in parallel: the policy does not allow it")
		return base
	}
	var best, beyond *Plan // within what is allowed, and beyond it
	for k, q := range p.search(len(p.graph.nts)) {
		if q == nil {
			continue
		}
		if k <= free && q.Share <= allowed+areaSlack {
			if best == nil || q.Cycles < best.Cycles {
				best = q
			}
		} else if beyond == nil || q.Cycles < beyond.Cycles {
			beyond = q
		}
	}
	switch {
	case best != nil && best.Cycles < base.Cycles:
		chosen = best
		chosen.Why = append(p.explain(best), fmt.Sprintf("in parallel: %d cycles instead of %d one after the other; %d regions to configure instead of %d",
			best.Cycles, base.Cycles, best.New, base.New))
	case beyond != nil && beyond.Cycles < base.Cycles:
		base.Why = append(base.Why, fmt.Sprintf("not in parallel: %d cycles instead of %d would take %d regions to configure, of which the DAG fills %.3g; %d are free, and the user's fair share leaves %.3g",
			beyond.Cycles, base.Cycles, beyond.New, beyond.Share, free, max(0, allowed)))
	case best != nil || beyond != nil:
		q := best
		if q == nil {
			q = beyond
		}
		base.Why = append(base.Why, fmt.Sprintf("not in parallel: %d cycles, with %d for another pass through the scheduler, are no fewer than %d one after the other",
			q.Cycles, p.pass, base.Cycles))
	}
	return chosen
}

// series says whether the edges order all NTs.
func (p *planner) series() bool {
	for done := set(0); done != p.graph.all(); {
		r := p.graph.ready(done)
		if r.len() > 1 {
			return false
		}
		done |= r
	}
	return true
}

// search returns the fastest plan by its number of new regions, nil where there
// is none, whose stages have up to width branches. With a width above 1 only
// plans that have a stage of several branches count.
func (p *planner) search(width int) []*Plan {
	downsets := p.downsets()
	most := min(p.regions, len(p.graph.nts))
	cells := make([][2][]cell, len(downsets)) // by downset, without and with a wide stage, by new regions
	for i := range cells {
		cells[i] = [2][]cell{make([]cell, most+1), make([]cell, most+1)}
	}
	cells[0][0][0] = cell{found: true, from: -1}
	for i, d := range downsets {
		for k, t := range downsets[i+1:] {
			if t&d != d {
				continue
			}
			for _, o := range p.stage(t&^d, width) {
				p.extend(cells, i, i+1+k, d.len(), o)
			}
		}
	}
	wide := 0
	if width > 1 {
		wide = 1
	}
	plans := make([]*Plan, most+1)
	for k := range plans {
		if c := cells[len(downsets)-1][wide][k]; c.found {
			plans[k] = p.unroll(cells, downsets, wide, k)
		}
	}
	return plans
}

// extend puts stage o between downsets i, of so many NTs, and t.
func (p *planner) extend(cells [][2][]cell, i, t, size int, o option) {
	for wide := range 2 {
		for k, from := range cells[i][wide] {
			if !from.found || k+o.regions >= len(cells[t][0]) {
				continue
			}
			cycles := from.cycles + o.cycles
			if i > 0 {
				cycles += p.pass
			}
			after := wide
			if len(o.branches) > 1 {
				after = 1
				if t < len(cells)-1 {
					cycles += p.sync
				}
			}
			if to := &cells[t][after][k+o.regions]; to.better(cycles, from.area+o.area, size) {
				*to = cell{found: true, cycles: cycles, area: from.area + o.area, wide: wide == 1, from: i, size: size, left: k, stage: o.branches}
			}
		}
	}
}

// unroll writes down the plan that ends with all NTs done.
func (p *planner) unroll(cells [][2][]cell, downsets []set, wide, k int) *Plan {
	at := len(downsets) - 1
	last := cells[at][wide][k]
	plan := &Plan{Cycles: last.cycles, New: k, Area: last.area}
	for at > 0 {
		c := cells[at][wide][k]
		plan.Stages = append(plan.Stages, c.stage)
		at, k, wide = c.from, c.left, 0
		if c.wide {
			wide = 1
		}
	}
	slices.Reverse(plan.Stages)
	for _, stage := range plan.Stages {
		for _, b := range stage {
			if b.Region == New {
				plan.Share += fills(p.nts, b.NTs, p.demand, p.lonely)
			}
		}
	}
	return plan
}

// fills returns how much of a region a chain takes of its user's share: what it
// fills of its bandwidth, or all of it if nobody else may use it.
func fills(nts []NT, chain []int, gbps float64, lonely bool) float64 {
	least := math.Inf(1)
	for _, n := range chain {
		if !nts[n].Shareable {
			lonely = true
		}
		least = min(least, nts[n].Gbps)
	}
	if lonely {
		return 1
	}
	return gbps / least
}

// downsets returns the sets of NTs after which a stage can end, smaller ones
// first: all that respect the edges if there are not too many, else the prefixes
// of one order.
func (p *planner) downsets() []set {
	seen := map[set]bool{0: true}
	all := []set{0}
	for i := 0; i < len(all) && len(all) <= maxDownsets; i++ {
		d := all[i]
		p.graph.ready(d).each(func(n int) {
			if next := d | 1<<n; !seen[next] {
				seen[next] = true
				all = append(all, next)
			}
		})
	}
	if len(all) <= maxDownsets {
		return all // breadth first: by size
	}
	prefixes := []set{0}
	for _, n := range p.graph.order(p.graph.all()) {
		prefixes = append(prefixes, prefixes[len(prefixes)-1]|1<<n)
	}
	return prefixes
}

// stage returns the ways to run a part of the DAG as one stage of up to width
// branches.
func (p *planner) stage(part set, width int) []option {
	of := p.options[width]
	if of == nil {
		of = map[set][]option{}
		p.options[width] = of
	}
	if found, ok := of[part]; ok {
		return found
	}
	components := p.graph.components(part)
	var found []option
	for branches := 1; branches <= min(width, len(components)); branches++ {
		if o, ok := p.cover(p.divide(components, branches)); ok {
			found = append(found, o)
		}
	}
	of[part] = found
	return found
}

// divide puts independent components together into n branches that take about
// equally long: the longest first, each to the branch that is shortest so far.
func (p *planner) divide(components []set, n int) []set {
	if n == 1 {
		var all set
		for _, c := range components {
			all |= c
		}
		return []set{all}
	}
	sorted := slices.Clone(components)
	slices.SortStableFunc(sorted, func(a, b set) int { return cmp.Compare(p.cycles(b), p.cycles(a)) })
	branches := make([]set, n)
	for _, c := range sorted {
		shortest := 0
		for i := range branches {
			if p.cycles(branches[i]) < p.cycles(branches[shortest]) {
				shortest = i
			}
		}
		branches[shortest] |= c
	}
	return branches
}

func (p *planner) cycles(part set) int {
	sum := 0
	part.each(func(n int) { sum += p.nts[p.graph.nts[n]].Cycles })
	return sum
}

// cover finds a region for each branch: one that runs its NTs already, or a new
// one if they fit.
func (p *planner) cover(parts []set) (option, bool) {
	var o option
	taken := map[int]bool{}
	for _, part := range parts {
		b := Branch{Region: New}
		area, cycles := 0.0, 0
		for _, n := range p.graph.order(part) {
			nt := p.graph.nts[n]
			b.NTs = append(b.NTs, nt)
			area += p.nts[nt].Area
			cycles += p.nts[nt].Cycles
		}
		if p.everyNT {
			cycles += p.pass * (len(b.NTs) - 1)
		}
		if r := p.share(b.NTs, taken); r != nil {
			b.Region = r.region
			taken[r.region] = true
			cycles += p.skip * (len(r.chain) - len(b.NTs))
		} else if area > p.area*(1+areaSlack) {
			return option{}, false
		} else {
			o.regions++
			o.area += area
		}
		o.cycles = max(o.cycles, cycles)
		o.branches = append(o.branches, b)
	}
	return o, true
}

// share returns the region that can run these NTs in this order beside what it
// does already: of several the one with the fewest NTs to skip, then with the
// most bandwidth to spare.
func (p *planner) share(nts []int, taken map[int]bool) *running {
	var best *running
	most := 0.0
	for i := range p.running {
		r := &p.running[i]
		if taken[r.region] {
			continue
		}
		spare, ok := r.spareFor(nts)
		if !ok || spare < p.demand*(1-areaSlack) {
			continue
		}
		if best == nil || len(r.chain) < len(best.chain) || len(r.chain) == len(best.chain) && spare > most {
			best, most = r, spare
		}
	}
	return best
}

// spareFor returns the bandwidth that the chain has left for these NTs, or false
// if it does not have them in this order or the user may not use them.
func (r *running) spareFor(nts []int) (float64, bool) {
	spare, at := 0.0, 0
	for i, nt := range r.chain {
		if at < len(nts) && nt == nts[at] && r.usable[i] {
			if at == 0 || r.spare[i] < spare {
				spare = r.spare[i]
			}
			at++
		}
	}
	return spare, at == len(nts)
}

// explain says how the plan runs and why.
func (p *planner) explain(plan *Plan) []string {
	var why []string
	for i, stage := range plan.Stages {
		var parts []string
		for _, b := range stage {
			text := p.names(b.NTs)
			if b.Region == New {
				text += " in a region of its own"
			} else {
				r := p.at(b.Region)
				text += fmt.Sprintf(" in region %d (%s), which has bandwidth to spare", b.Region, r.text)
				if skipped := without(r.chain, b.NTs); len(skipped) > 0 {
					text += ", past " + p.names(skipped)
				}
			}
			parts = append(parts, text)
		}
		why = append(why, fmt.Sprintf("stage %d: %s", i+1, strings.Join(parts, "; at the same time ")))
	}
	if len(plan.Stages) > 1 {
		area := 0.0
		for _, nt := range p.graph.nts {
			area += p.nts[nt].Area
		}
		if area > p.area*(1+areaSlack) {
			why = append(why, fmt.Sprintf("not one chain: its area would be %v, a region's is %v", area, p.area))
		}
	}
	return why
}

func (p *planner) at(region int) *running {
	return &p.running[slices.IndexFunc(p.running, func(r running) bool { return r.region == region })]
}

func (p *planner) names(nts []int) string { return chainText(p.nts, nts) }

// chainText names the NTs of a chain.
func chainText(nts []NT, chain []int) string {
	var names []string
	for _, n := range chain {
		names = append(names, nts[n].Name)
	}
	return strings.Join(names, " → ")
}

// without returns the NTs of chain that are not among nts.
func without(chain, nts []int) []int {
	var left []int
	for _, n := range chain {
		if !slices.Contains(nts, n) {
			left = append(left, n)
		}
	}
	return left
}
