// Package fair decides what each user gets of an sNIC's resources. It is pure
// arithmetic on demands: it knows no board, no clock and no packet.
//
// Filler is dominant resource fairness (Ghodsi et al., NSDI 2011) on divisible
// demands with weights and guaranteed floors. Space runs it over FPGA regions
// and on-board memory when DAGs come and go; Time runs it every epoch over the
// time of regions, the ports and the packet store, and turns the outcome into
// one ingress rate a DAG, which is all that is ever enforced.
package fair

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"nicprof/internal/fault"
)

// Problem is a division of resources among the DAGs of users. A DAG asks for
// resources in fixed proportions and takes any level of what it asks, 0 to 1.
// All DAGs of a user rise together, and count together against his weight, so
// that nobody gains by calling one DAG two.
type Problem struct {
	Capacity []float64 // by resource, in its own unit
	Weight   []float64 // by user, above 0; only ratios count
	User     []int     // by DAG: whose it is; nil: DAG i is user i's
	Use      []float64 // by DAG, then resource: what it uses at level 1
	Floor    []float64 // by DAG: the level that it is sure of, 0 to 1; nil: none is
}

func (p *Problem) user(dag int) int {
	if p.User == nil {
		return dag
	}
	return p.User[dag]
}

func (p *Problem) use(dag int) []float64 {
	m := len(p.Capacity)
	return p.Use[dag*m : dag*m+m]
}

func (p *Problem) floor(dag int) float64 {
	if p.Floor == nil {
		return 0
	}
	return p.Floor[dag]
}

// check returns an input fault for numbers that no division can be made of.
func (p *Problem) check(dags int) error {
	m := len(p.Capacity)
	switch {
	case len(p.Use) != dags*m:
		return fault.Inputf("%d DAGs and %d resources need %d uses, not %d", dags, m, dags*m, len(p.Use))
	case p.User == nil && len(p.Weight) != dags, p.User != nil && len(p.User) != dags:
		return fault.Inputf("%d DAGs need a user each", dags)
	case p.Floor != nil && len(p.Floor) != dags:
		return fault.Inputf("%d DAGs need %d floors, or none; not %d", dags, dags, len(p.Floor))
	}
	for u, w := range p.Weight {
		if !(w > 0) || math.IsInf(w, 0) {
			return fault.Inputf("user %d: weight %g; expected a finite number above 0", u, w)
		}
	}
	for r, c := range p.Capacity {
		if !(c >= 0) || math.IsInf(c, 0) {
			return fault.Inputf("resource %d: capacity %g; expected a finite number from 0 on", r, c)
		}
	}
	for i, v := range p.Use {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fault.Inputf("DAG %d: use %g of resource %d; expected a finite number from 0 on", i/m, v, i%m)
		}
	}
	for d := range dags {
		if u := p.user(d); u < 0 || u >= len(p.Weight) {
			return fault.Inputf("DAG %d: there is no user %d", d, u)
		}
		if f := p.floor(d); !(f >= 0 && f <= 1) {
			return fault.Inputf("DAG %d: floor %g; expected 0 to 1", d, f)
		}
	}
	return nil
}

// state of a DAG while the water rises.
type state uint8

const (
	waiting state = iota // its floor is still above the water
	rising
	settled
)

// event is a DAG whose floor the water reaches, or whose demand it meets.
type event struct {
	at  float64
	dag int32
	met bool
}

// Filler divides resources by raising one water level: the dominant share of
// every user, divided by his weight. A DAG stops where its demand is met or
// where a resource that it uses is full. The zero Filler is ready; it keeps its
// memory, so that in steady state a Fill allocates nothing. It is not safe for
// concurrent use.
type Filler struct {
	events []event
	state  []state
	pace   []float64 // by user: the water level that meets his demand
	total  []float64 // by user, then resource: his use at level 1
	floors []float64 // the floors as far as they can be had
	used   []float64 // by DAG, then resource: use at its floor

	free  []float64 // by resource: what nobody has
	slope []sum     // by resource: use per unit of water by rising DAGs
	count []int     // by resource: rising DAGs that use it
	full  []bool    // by resource
}

// Fill sets level, by DAG, to the weighted max-min fair levels above the
// floors: none can rise but at the expense of one whose user has no larger
// share for his weight, or of a floor. Where the floors themselves do not fit,
// they are divided first, by the same rule. A DAG that uses nothing gets 1.
//
// It takes O(n log n) for n DAGs and a fixed number of resources m: 2n events
// in order, each O(m), and a pass over all DAGs a resource that fills up.
func (f *Filler) Fill(p Problem, level []float64) error {
	if err := p.check(len(level)); err != nil {
		return err
	}
	f.reset(len(p.Weight), len(level), len(p.Capacity))
	f.paces(&p)
	for d := range level {
		level[d] = p.floor(d)
	}
	if p.Floor != nil && !f.fits(&p, level) {
		f.used = resize(f.used, len(p.Use))
		for d := range level {
			for r, v := range p.use(d) {
				f.used[d*len(p.Capacity)+r] = v * level[d]
			}
		}
		floors := p
		floors.Use, floors.Floor = f.used, nil
		f.paces(&floors)
		f.raise(&floors, nil, level)
		for d := range level {
			level[d] *= p.floor(d)
		}
		f.paces(&p)
	}
	f.floors = append(f.floors[:0], level...)
	f.raise(&p, f.floors, level)
	return nil
}

// fits says whether all floors can be had at once, up to rounding.
func (f *Filler) fits(p *Problem, floor []float64) bool {
	copy(f.free, p.Capacity)
	for d := range floor {
		for r, v := range p.use(d) {
			f.free[r] -= floor[d] * v
		}
	}
	for r, free := range f.free {
		if free < -rounding*p.Capacity[r] {
			return false
		}
	}
	return true
}

// rounding is the error that sums of a hundred thousand uses may have, as a
// fraction of the capacity.
const rounding = 1e-9

func resize[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

func (f *Filler) reset(users, dags, resources int) {
	f.events = f.events[:0]
	f.state = resize(f.state, dags)
	f.pace = resize(f.pace, users)
	f.total = resize(f.total, users*resources)
	f.free = resize(f.free, resources)
	f.slope = resize(f.slope, resources)
	f.count = resize(f.count, resources)
	f.full = resize(f.full, resources)
}

// paces finds each user's dominant share at level 1, over his weight.
func (f *Filler) paces(p *Problem) {
	m := len(p.Capacity)
	clear(f.total)
	for d := range f.state {
		total := f.total[p.user(d)*m:]
		for r, v := range p.use(d) {
			total[r] += v
		}
	}
	for u, w := range p.Weight {
		dominant := 0.0
		for r, c := range p.Capacity {
			if c > 0 {
				dominant = max(dominant, f.total[u*m+r]/c)
			}
		}
		f.pace[u] = min(dominant/w, math.MaxFloat64)
	}
}

// raise fills from the floors up (nil: from 0).
func (f *Filler) raise(p *Problem, floor, level []float64) {
	f.events = f.events[:0]
	clear(f.state)
	clear(f.slope)
	clear(f.count)
	copy(f.free, p.Capacity)
	for d := range level {
		pace, start := f.pace[p.user(d)], 0.0
		if floor != nil {
			start = floor[d]
		}
		level[d] = start
		for r, v := range p.use(d) {
			f.free[r] -= start * v
		}
		if start < 1 {
			f.events = append(f.events, event{at: start * pace, dag: int32(d)}, event{at: pace, dag: int32(d), met: true})
		}
	}
	for r, c := range p.Capacity {
		f.full[r] = f.free[r] <= 1e-12*c // a resource of no capacity too
	}
	slices.SortFunc(f.events, func(a, b event) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		if c := cmp.Compare(a.dag, b.dag); c != 0 {
			return c
		}
		return order(a.met) - order(b.met)
	})

	water := 0.0
	for i := 0; i < len(f.events); {
		e := f.events[i]
		r, fills := f.nextFull(water)
		if r >= 0 && fills <= e.at {
			f.advance(fills - water)
			water = fills
			f.fill(p, r, water, level)
			continue
		}
		f.advance(e.at - water)
		water = e.at
		i++
		d := int(e.dag)
		switch {
		case !e.met && f.blocked(p, d):
			f.state[d] = settled
		case !e.met:
			f.state[d] = rising
			f.change(p, d, 1)
		case f.state[d] == rising:
			level[d] = 1
			f.settle(p, d)
		}
	}
}

func order(met bool) int {
	if met {
		return 1
	}
	return 0
}

// nextFull returns the resource that fills up first if nothing else happens,
// and the water level at which it does; -1 if none.
func (f *Filler) nextFull(water float64) (resource int, at float64) {
	resource = -1
	for r, n := range f.count {
		slope := f.slope[r].total()
		if n == 0 || slope == 0 {
			continue
		}
		if t := water + max(0, f.free[r])/slope; resource < 0 || t < at {
			resource, at = r, t
		}
	}
	return resource, at
}

func (f *Filler) advance(by float64) {
	for r := range f.slope {
		f.free[r] -= f.slope[r].total() * by
	}
}

func (f *Filler) blocked(p *Problem, dag int) bool {
	for r, v := range p.use(dag) {
		if v > 0 && f.full[r] {
			return true
		}
	}
	return false
}

// fill settles all rising DAGs that use a resource that is now full.
func (f *Filler) fill(p *Problem, full int, water float64, level []float64) {
	f.full[full], f.free[full] = true, 0
	for d, s := range f.state {
		if s == rising && p.use(d)[full] > 0 {
			level[d] = min(1, water/f.pace[p.user(d)])
			f.settle(p, d)
		}
	}
}

func (f *Filler) settle(p *Problem, dag int) {
	f.state[dag] = settled
	f.change(p, dag, -1)
}

// change adds a DAG to the slopes of its resources, or takes it out.
func (f *Filler) change(p *Problem, dag, by int) {
	pace := f.pace[p.user(dag)]
	for r, v := range p.use(dag) {
		if v == 0 {
			continue
		}
		f.count[r] += by
		if f.count[r] == 0 {
			f.slope[r] = sum{}
			continue
		}
		f.slope[r].add(float64(by) * v / pace)
	}
}

// sum is a sum that keeps the rounding error of its terms (Knuth's two-sum), so
// that taking a large term out again leaves the small ones as they were.
type sum struct{ value, rest float64 }

func (s *sum) add(v float64) {
	t := s.value + v
	back := t - s.value
	s.rest += (s.value - (t - back)) + (v - back)
	s.value = t
}

func (s *sum) total() float64 { return max(0, s.value+s.rest) }

// Shares returns each user's dominant share: the largest fraction that his DAGs
// have of any resource, and which resource that is (-1: he uses none).
func (p *Problem) Shares(level []float64) (share []float64, resource []int) {
	m := len(p.Capacity)
	used := make([]float64, len(p.Weight)*m)
	for d, l := range level {
		for r, v := range p.use(d) {
			used[p.user(d)*m+r] += l * v
		}
	}
	share, resource = make([]float64, len(p.Weight)), make([]int, len(p.Weight))
	for u := range p.Weight {
		resource[u] = -1
		for r, c := range p.Capacity {
			if s := used[u*m+r] / c; c > 0 && s > share[u] {
				share[u], resource[u] = s, r
			}
		}
	}
	return share, resource
}

// Used returns what all DAGs together use of each resource, in its unit.
func (p *Problem) Used(level []float64) []float64 {
	used := make([]float64, len(p.Capacity))
	for d, l := range level {
		for r, v := range p.use(d) {
			used[r] += l * v
		}
	}
	return used
}

func (p *Problem) String() string {
	return fmt.Sprintf("capacity %v, weight %v, user %v, use %v, floor %v", p.Capacity, p.Weight, p.User, p.Use, p.Floor)
}
