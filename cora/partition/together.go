package partition

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"nicprof/internal/fault"
)

// union is a problem whose sets of blocks that stay together are one block each.
// A visit of the new block stands for those of its members, in the part of its
// visits that each has. Where that part is the same for all groups the two
// problems are one; where not, the largest counts, so that a plan of the union
// never asks more of the NIC than it seems to.
type union struct {
	in      *instance // of the problem as given
	p       *Problem
	members [][]int // by block of p
	exact   bool
}

// checkTogether reports what is wrong with the sets.
func (p *Problem) checkTogether() error {
	seen := map[int]bool{}
	for _, set := range p.Together {
		for _, b := range set {
			if b < 0 || b >= len(p.Blocks) || seen[b] {
				return fault.Inputf("blocks %v stay together; expected each of 0..%d at most once", set, len(p.Blocks)-1)
			}
			seen[b] = true
			if x, y := &p.Blocks[set[0]], &p.Blocks[b]; x.Groups != y.Groups || x.Partitionable != y.Partitionable {
				return fault.Inputf("blocks %s and %s stay together but do not have the same groups", x.Name, y.Name)
			}
		}
	}
	return nil
}

// apart names the sets that an assignment tears apart.
func (in *instance) apart(a assignment) []string {
	var out []string
	for _, set := range in.p.Together {
		var names []string
		for _, b := range set {
			names = append(names, in.p.Blocks[b].Name)
		}
		torn := false
		for g := range in.p.Blocks[set[0]].Groups {
			on, off, memory := false, false, Host
			for _, b := range set {
				if in.blocks[b].volume[g] == 0 {
					continue
				}
				torn = torn || a.on[b][g] && on && a.memory[b] != memory
				if a.on[b][g] {
					on, memory = true, a.memory[b]
				} else {
					off = true
				}
			}
			torn = torn || on && off
		}
		if torn {
			out = append(out, strings.Join(names, " and ")+" apart")
		}
	}
	return out
}

// unite makes the union of a problem. The error is the user's: classes that are
// in unlike groups of blocks that stay together.
func unite(in *instance) (*union, error) {
	p := *in.p
	u := &union{in: in, p: &p, exact: true}
	p.Together, p.Blocks, p.Paths, p.Classes = nil, nil, nil, nil
	number := make([]int, len(in.p.Blocks)) // by block: of its union
	for b := range number {
		set := []int{b}
		for _, s := range in.p.Together {
			if slices.Contains(s, b) {
				set = s
			}
		}
		if slices.Min(set) < b {
			number[b] = number[slices.Min(set)]
			continue
		}
		number[b] = len(u.members)
		u.members = append(u.members, set)
	}
	keep := make([][]int, len(in.p.Paths)) // steps that begin a visit of a union
	for i, path := range in.p.Paths {
		out := Path{End: path.End}
		for k, b := range path.Blocks {
			if k > 0 && number[path.Blocks[k-1]] == number[b] {
				continue
			}
			keep[i], out.Blocks = append(keep[i], k), append(out.Blocks, number[b])
		}
		p.Paths = append(p.Paths, out)
	}
	volume := make([][]float64, len(u.members))
	for m, set := range u.members {
		volume[m] = make([]float64, in.p.Blocks[set[0]].Groups)
	}
	arena := make([]int32, 0, in.steps)
	for i := range in.p.Classes {
		c := in.p.Classes[i]
		blocks, from := in.p.Paths[c.Path].Blocks, len(arena)
		for k := 1; k < len(blocks); k++ {
			if number[blocks[k-1]] == number[blocks[k]] && c.Groups[k-1] != c.Groups[k] {
				return nil, fault.Inputf("class %d touches groups %d of block %s and %d of block %s, which stay together",
					i, c.Groups[k-1], in.p.Blocks[blocks[k-1]].Name, c.Groups[k], in.p.Blocks[blocks[k]].Name)
			}
		}
		for _, k := range keep[c.Path] {
			arena = append(arena, c.Groups[k])
			volume[number[blocks[k]]][c.Groups[k]] += c.Mpps * in.scale
		}
		c.Groups = arena[from:len(arena):len(arena)]
		p.Classes = append(p.Classes, c)
	}
	part := make([]float64, len(in.p.Blocks))
	for m, set := range u.members {
		for _, b := range set {
			part[b] = u.part(b, volume[m])
		}
		p.Blocks = append(p.Blocks, u.block(set, part, sum(volume[m])))
	}
	p.Predictor = u.predictor(part)
	return u, nil
}

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

// part is the largest part, of any group, that a block has of the visits of its
// union.
func (u *union) part(b int, visits []float64) float64 {
	low, high := math.Inf(1), 0.0
	for g, v := range visits {
		if v > 0 {
			x := u.in.blocks[b].volume[g] / v
			low, high = min(low, x), max(high, x)
		}
	}
	u.exact = u.exact && (high == 0 || low > high*(1-1e-9))
	return high
}

// block is the union of blocks whose visits are in these parts of its own.
func (u *union) block(set []int, part []float64, visits float64) Block {
	first := &u.in.p.Blocks[set[0]]
	if len(set) == 1 {
		return *first
	}
	out := Block{Groups: first.Groups, Partitionable: first.Partitionable, each: &each{}, MaxGroupMpps: make([]float64, len(u.in.p.Memories))}
	var names []string
	for _, b := range set {
		x := &u.in.p.Blocks[b]
		names = append(names, x.Name)
		if part[b] == 0 {
			continue // no packet visits it: it stays on the host
		}
		share := sum(u.in.blocks[b].volume) / visits
		out.Instructions += share * x.Instructions
		out.HostNS += share * x.HostNS
		if out.HostOnly == "" {
			out.HostOnly = x.HostOnly
		}
		entries, bytes := x.perGroup()
		out.each.bytes += bytes
		if x.Table {
			out.Table = true
			out.each.entries += entries
		}
		if x.MaxEntries > 0 {
			groups := x.mostGroups()
			if groups == 0 {
				out.HostOnly = x.Name + " has no room for an entry"
			}
			if out.MaxEntries == 0 || groups < out.MaxEntries {
				out.MaxEntries = groups
			}
		}
		for m := range out.MaxGroupMpps {
			most := x.maxGroup(m)
			if most > 0 {
				most /= part[b]
			}
			switch have := out.MaxGroupMpps[m]; {
			case most < 0 || have < 0:
				out.MaxGroupMpps[m] = -1
			case !math.IsInf(most, 1) && (have == 0 || most < have):
				out.MaxGroupMpps[m] = most
			}
		}
	}
	out.Name = strings.Join(names, "+")
	return out
}

// each is what one group of a union takes: entries of tables, and bytes.
type each struct{ entries, bytes int64 } // MaxEntries of a union counts groups

// predictor asks the problem's about a union's blocks.
func (u *union) predictor(part []float64) Predictor {
	e := &expander{u.in.p.Predictor, u.members, part, make([]Use, len(part))}
	d, ok := e.of.(Demander)
	if !ok {
		return e
	}
	base, demand, back := d.Demands()
	out := &linearExpander{expander: e, base: base, back: back}
	for _, set := range u.members {
		memories := make([][]float64, len(u.p.Memories))
		for m := range memories {
			memories[m] = make([]float64, len(base))
			for _, b := range set {
				for r, us := range demand[b][m] {
					memories[m][r] += part[b] * us
				}
			}
		}
		out.demand = append(out.demand, memories)
	}
	return out
}

// expander is the predictor of a union.
type expander struct {
	of      Predictor
	members [][]int
	part    []float64
	use     []Use
}

// Predict asks about the members of each block.
func (e *expander) Predict(use []Use, returns float64) (float64, string, error) {
	for m, set := range e.members {
		for _, b := range set {
			e.use[b] = use[m]
			e.use[b].Share *= e.part[b]
			e.use[b].Largest *= e.part[b]
		}
	}
	return e.of.Predict(e.use, returns)
}

// linearExpander is that of a Demander.
type linearExpander struct {
	*expander
	base   []float64
	demand [][][]float64
	back   []float64
}

// Demands are those of the members, together.
func (l *linearExpander) Demands() (base []float64, demand [][][]float64, back []float64) {
	return l.base, l.demand, l.back
}

// expand judges a plan of the union as one of the problem given, with a bound: the
// union's if the two are the same problem, or that of a problem whose blocks need
// not stay together.
func (u *union) expand(plan, relaxed *Plan) *Plan {
	a := u.in.nothing()
	for m, set := range u.members {
		for _, b := range set {
			a.memory[b] = plan.Blocks[m].Memory
			for g, on := range plan.Blocks[m].OnNIC {
				a.on[b][g] = on && (len(set) == 1 || u.in.blocks[b].volume[g] > 0)
			}
		}
	}
	out := u.in.judge(a)
	out.Strategy, out.Examined, out.Plans = plan.Strategy, plan.Examined, plan.Plans
	bound := plan
	if relaxed != nil {
		bound = relaxed
	}
	out.setBound(bound.Bound, bound.BoundProved)
	return out
}

// unionOf is the problem to solve in p's place, and nil where that is p itself.
func unionOf(p *Problem) (*union, error) {
	if len(p.Together) == 0 {
		return nil, nil
	}
	in, err := prepare(p)
	if err != nil {
		return nil, err
	}
	u, err := unite(in)
	if err != nil {
		return nil, fmt.Errorf("blocks that stay together: %w", err)
	}
	return u, nil
}
