package fair

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"nicprof/internal/fault"
)

// Chain is a chain of network tasks as space sees it: an instance takes one
// region, whatever its area, and carries so much. Users who may share a chain
// share its instances.
type Chain struct {
	Name      string
	Gbps      float64 // of one instance
	Shareable bool
}

// Tenant is what the space step knows of a DAG: its load, the chains that all
// of this load passes, and its on-board memory.
type Tenant struct {
	Name     string
	User     int
	Gbps     float64 // the load to find space for
	Chains   []int   // indices of Space.Chains
	MemoryMB float64
}

// Space is the space step: it divides the FPGA, whose capacity is counted in
// regions of bandwidth, and on-board memory. A DAG's load asks for load/rate of
// a region of each of its chains; where nobody else may use the rest of a
// region, it asks for all of it. The divisible shares are DRF's; they are then
// rounded to regions and pages. It runs when a DAG is launched or descheduled.
type Space struct {
	Policy   Policy
	Regions  int
	MemoryMB int
	Chains   []Chain
	Weights  []float64 // by user
	DAGs     []Tenant
}

// pageMB is the size of a page of on-board memory.
const pageMB = 2

// Pool is a set of instances of one chain for one user or, where the chain is
// shared, for several.
type Pool struct {
	Chain     int
	DAGs      []int
	Need      float64 // regions for all of the DAGs' load: above 1 is several instances, below 1 a part of one
	Granted   float64 // of these, what the users' fair shares come to
	Instances int     // regions that the pool gets
}

// Division is what the space step decided. Level and LevelOfRegions are
// fractions of each DAG's load that there is space for, before and after
// rounding to whole regions.
type Division struct {
	Level          []float64
	Pools          []Pool
	LevelOfRegions []float64
	Pages          []int // of memory, by DAG
}

// Unplaced returns the pools that got no region. They run only by taking turns
// in one, which costs a context switch a turn.
func (d *Division) Unplaced() []Pool {
	var none []Pool
	for _, p := range d.Pools {
		if p.Instances == 0 && p.Need > 0 {
			none = append(none, p)
		}
	}
	return none
}

// Regions returns the number of regions that the pools take.
func (d *Division) Regions() int {
	n := 0
	for _, p := range d.Pools {
		n += p.Instances
	}
	return n
}

func (s *Space) check() error {
	if s.Regions < 0 || s.MemoryMB < 0 {
		return fault.Inputf("%d regions and %d MB of memory; expected numbers from 0 on", s.Regions, s.MemoryMB)
	}
	for _, c := range s.Chains {
		if !(c.Gbps > 0) || math.IsInf(c.Gbps, 0) {
			return fault.Inputf("chain %s carries %g Gb/s; expected a finite number above 0", c.Name, c.Gbps)
		}
	}
	for _, d := range s.DAGs {
		if !(d.Gbps >= 0) || math.IsInf(d.Gbps, 0) || !(d.MemoryMB >= 0) || math.IsInf(d.MemoryMB, 0) {
			return fault.Inputf("DAG %s asks for %g Gb/s and %g MB; expected finite numbers from 0 on", d.Name, d.Gbps, d.MemoryMB)
		}
		if d.User < 0 || d.User >= len(s.Weights) {
			return fault.Inputf("DAG %s: there is no user %d", d.Name, d.User)
		}
		for _, c := range d.Chains {
			if c < 0 || c >= len(s.Chains) {
				return fault.Inputf("DAG %s: there is no chain %d", d.Name, c)
			}
		}
	}
	return nil
}

// Divide runs the step.
func (s *Space) Divide() (Division, error) {
	if err := s.check(); err != nil {
		return Division{}, err
	}
	d := Division{Pools: s.pools(), Level: make([]float64, len(s.DAGs)), LevelOfRegions: make([]float64, len(s.DAGs)), Pages: make([]int, len(s.DAGs))}
	use := s.ask(d.Pools)
	pages := s.MemoryMB / pageMB
	if s.Policy != Static {
		everybody := func(int) bool { return true }
		return d, s.divide(&d, use, s.Regions, pages, everybody)
	}
	weights := 0.0
	for _, w := range s.Weights {
		weights += w
	}
	for u, w := range s.Weights {
		part := w / weights
		of := func(dag int) bool { return s.DAGs[dag].User == u }
		if err := s.divide(&d, use, int(part*float64(s.Regions)+rounding), int(part*float64(pages)+rounding), of); err != nil {
			return Division{}, err
		}
	}
	return d, nil
}

// pools groups the DAGs that use the same instances of a chain, in order of
// chains and users.
func (s *Space) pools() []Pool {
	type key struct{ chain, user int }
	const everybody = -1
	pools := map[key]*Pool{}
	for i, d := range s.DAGs {
		for _, c := range slices.Compact(slices.Sorted(slices.Values(d.Chains))) {
			k := key{c, d.User}
			if s.Chains[c].Shareable && s.Policy == SNIC {
				k.user = everybody
			}
			if pools[k] == nil {
				pools[k] = &Pool{Chain: c}
			}
			p := pools[k]
			p.DAGs = append(p.DAGs, i)
			p.Need += d.Gbps / s.Chains[c].Gbps
		}
	}
	keys := make([]key, 0, len(pools))
	for k := range pools {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.chain, b.chain), cmp.Compare(a.user, b.user))
	})
	sorted := make([]Pool, len(keys))
	for i, k := range keys {
		sorted[i] = *pools[k]
	}
	return sorted
}

// ask returns what each DAG asks for, regions and pages. In a pool of one user
// the DAGs ask for whole regions between them.
func (s *Space) ask(pools []Pool) []float64 {
	use := make([]float64, 2*len(s.DAGs))
	for _, p := range pools {
		for _, d := range p.DAGs {
			use[2*d] += s.charge(p, d)
		}
	}
	for d, t := range s.DAGs {
		use[2*d+1] = t.MemoryMB / pageMB
	}
	return use
}

// charge returns the regions that a DAG is charged for in a pool at level 1: its
// load's, and where no other user could use what is left of the last region, a
// part of that.
func (s *Space) charge(p Pool, dag int) float64 {
	chain := s.Chains[p.Chain]
	regions := s.DAGs[dag].Gbps / chain.Gbps
	if p.Need > 0 && (!chain.Shareable || s.Policy != SNIC) {
		regions *= math.Ceil(p.Need-rounding) / p.Need
	}
	return regions
}

// divide divides regions and pages among the DAGs that take part and writes the
// outcome into d.
func (s *Space) divide(d *Division, use []float64, regions, pages int, takesPart func(dag int) bool) error {
	p := Problem{Capacity: []float64{float64(regions), float64(pages)}, Weight: s.Weights, User: make([]int, len(s.DAGs)), Use: slices.Clone(use)}
	for i, t := range s.DAGs {
		p.User[i] = t.User
		if !takesPart(i) {
			clear(p.Use[2*i : 2*i+2])
		}
	}
	level := make([]float64, len(s.DAGs))
	var filler Filler
	if err := filler.Fill(p, level); err != nil {
		return err
	}

	// To whole regions, and to whole pages.
	var mine []int // pools
	var want []float64
	for i := range d.Pools {
		pool := &d.Pools[i]
		if !takesPart(pool.DAGs[0]) {
			continue
		}
		for _, t := range pool.DAGs {
			pool.Granted += level[t] * s.charge(*pool, t)
		}
		mine, want = append(mine, i), append(want, pool.Granted)
	}
	for i, n := range apportion(want, regions) {
		d.Pools[mine[i]].Instances = n
	}
	memory := make([]float64, len(s.DAGs))
	for i := range memory {
		memory[i] = level[i] * p.Use[2*i+1]
	}
	for i, n := range apportion(memory, pages) {
		if takesPart(i) {
			d.Level[i], d.Pages[i] = level[i], n
		}
	}

	// What the regions carry of each DAG.
	q := Problem{Capacity: make([]float64, len(mine)), Weight: s.Weights, User: p.User, Use: make([]float64, len(s.DAGs)*len(mine))}
	for i, pool := range mine {
		q.Capacity[i] = float64(d.Pools[pool].Instances)
		for _, t := range d.Pools[pool].DAGs {
			q.Use[t*len(mine)+i] = s.DAGs[t].Gbps / s.Chains[d.Pools[pool].Chain].Gbps
		}
	}
	if err := filler.Fill(q, level); err != nil {
		return err
	}
	for i := range level {
		if takesPart(i) {
			d.LevelOfRegions[i] = level[i]
		}
	}
	return nil
}

// apportion rounds wants to whole units that are no more than total: down, then
// one more each as long as there are, first for those who would have none, in
// order of what they want, then for those who lack most of one. Nobody ends
// with a whole unit less than he wants, as long as the wants fit.
func apportion(want []float64, total int) []int {
	n := make([]int, len(want))
	var short []int
	for i, w := range want {
		n[i] = int(w + rounding)
		total -= n[i]
		if w-float64(n[i]) > rounding {
			short = append(short, i)
		}
	}
	slices.SortStableFunc(short, func(a, b int) int {
		none := func(i int) int { return min(n[i], 1) }
		return cmp.Or(
			cmp.Compare(none(a), none(b)),
			cmp.Compare(want[b]-float64(n[b]), want[a]-float64(n[a])))
	})
	for _, i := range short[:min(len(short), max(0, total))] {
		n[i]++
	}
	return n
}

// Explain says in words what was decided, a line a pool.
func (s *Space) Explain(d *Division) []string {
	var lines []string
	for _, p := range d.Pools {
		var names []string
		for _, i := range p.DAGs {
			names = append(names, s.DAGs[i].Name)
		}
		line := fmt.Sprintf("chain %s for %s: the load fills %.3g regions, the fair shares come to %.3g", s.Chains[p.Chain].Name, strings.Join(names, ", "), p.Need, p.Granted)
		switch {
		case p.Instances == 0 && p.Need > 0:
			line += "; no region is left, so it has to take turns by context switches"
		case p.Instances == 1:
			line += "; 1 region"
		default:
			line += fmt.Sprintf("; %d regions", p.Instances)
		}
		lines = append(lines, line)
	}
	return lines
}
