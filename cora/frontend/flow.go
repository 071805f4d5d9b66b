package frontend

import (
	"cmp"
	"slices"

	"nicprof/p4/ir"
)

// entry stands for the definition that a location has before the first
// instruction: what the packet or the architecture brought.
const entry = -1

// flow is what the control-flow graph says: order, control dependences, and
// which definitions reach each use.
type flow struct {
	p       *ir.Program
	pred    [][]int
	order   []int    // reverse postorder
	at      []int    // position in order, by instruction
	end     int      // the exit
	control [][]gate // by instruction: what it is directly control dependent on
	dom     []int    // by instruction: its immediate dominator
	post    []int    // by instruction: its immediate post-dominator
	uses    [][]use  // by instruction
	second  map[int][]*ir.Var
}

// gate is one way of a branch that decides whether an instruction is executed.
type gate struct {
	instr int
	edge  int // index into Succ
}

// use is the use of a piece of a location, bits hi..lo, with the instructions
// whose definitions may reach it.
type use struct {
	v      *ir.Var
	hi, lo int
	defs   []int
}

func newFlow(p *ir.Program) *flow {
	f := &flow{p: p, pred: make([][]int, len(p.Code)), at: make([]int, len(p.Code))}
	for _, in := range p.Code {
		if in.Op == ir.End {
			f.end = in.ID
		}
		for _, s := range in.Succ {
			f.pred[s.To] = append(f.pred[s.To], in.ID)
		}
	}
	f.order = postorder(len(p.Code), 0, func(i int) []int { return successors(p.Code[i]) })
	slices.Reverse(f.order)
	for k, i := range f.order {
		f.at[i] = k
	}
	f.controlDependences()
	f.reachingDefinitions()
	f.second = f.carry()
	return f
}

func successors(in *ir.Instr) []int {
	to := make([]int, len(in.Succ))
	for k, s := range in.Succ {
		to[k] = s.To
	}
	return to
}

// postorder lists the nodes that start reaches, each behind those it reaches
// first. It keeps its own stack: programs are deep.
func postorder(n, start int, next func(int) []int) []int {
	type frame struct {
		node int
		rest []int
	}
	seen := make([]bool, n)
	seen[start] = true
	stack := []frame{{start, next(start)}}
	var out []int
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if len(top.rest) == 0 {
			out = append(out, top.node)
			stack = stack[:len(stack)-1]
			continue
		}
		to := top.rest[0]
		top.rest = top.rest[1:]
		if !seen[to] {
			seen[to] = true
			stack = append(stack, frame{to, next(to)})
		}
	}
	return out
}

// postDominators returns the immediate post-dominator of each instruction, the
// exit's being itself.
func (f *flow) postDominators() []int {
	order := postorder(len(f.p.Code), f.end, func(i int) []int { return f.pred[i] })
	return dominators(order, func(i int) []int { return successors(f.p.Code[i]) })
}

// dominators returns the immediate dominator of each node of a graph given by its
// nodes in postorder, the last of them the start, and by their predecessors;
// the start's is itself, and that of nodes not in the order is -1. It is Cooper,
// Harvey and Kennedy's iteration.
func dominators(order []int, pred func(int) []int) []int {
	n := slices.Max(order) + 1
	rank := make([]int, n) // higher is nearer to the start
	for k, i := range order {
		rank[i] = k
	}
	up := slices.Repeat([]int{-1}, n)
	start := order[len(order)-1]
	up[start] = start
	for changed := true; changed; {
		changed = false
		for _, i := range slices.Backward(order) {
			if i == start {
				continue
			}
			join := -1
			for _, p := range pred(i) {
				switch {
				case up[p] < 0:
				case join < 0:
					join = p
				default:
					for p != join {
						for rank[p] < rank[join] {
							p = up[p]
						}
						for rank[join] < rank[p] {
							join = up[join]
						}
					}
				}
			}
			if join != up[i] {
				up[i], changed = join, true
			}
		}
	}
	return up
}

// controlDependences finds, by Ferrante, Ottenstein and Warren, the branches
// that decide whether an instruction is executed: those with a way on which
// the instruction post-dominates and another on which it does not. Nesting,
// early return and exit, and hit or miss all come out of the graph.
func (f *flow) controlDependences() {
	up := f.postDominators()
	f.post = up
	back := slices.Clone(f.order)
	slices.Reverse(back)
	f.dom = dominators(back, func(i int) []int { return f.pred[i] })
	f.control = make([][]gate, len(f.p.Code))
	for _, in := range f.p.Code {
		if len(in.Succ) < 2 {
			continue
		}
		for e, s := range in.Succ {
			for i := s.To; i != up[in.ID] && i >= 0; i = up[i] {
				f.control[i] = append(f.control[i], gate{in.ID, e})
				if i == f.end {
					break
				}
			}
		}
	}
}

// locations numbers the pieces of the variables that definitions and uses cut
// them into.
type locations struct {
	cuts  map[*ir.Var][]int // ascending lowest bits, the first is 0
	first map[*ir.Var]int   // number of the first piece
	n     int
}

func newLocations(p *ir.Program) *locations {
	l := &locations{map[*ir.Var][]int{}, map[*ir.Var]int{}, 0}
	var vars []*ir.Var
	cut := func(v *ir.Var, hi, lo int) {
		if _, ok := l.cuts[v]; !ok {
			vars = append(vars, v)
			l.cuts[v] = []int{0}
		}
		l.cuts[v] = append(l.cuts[v], lo, hi+1)
	}
	for _, in := range p.Code {
		for _, d := range in.Defs {
			cut(d.Var, d.Hi, d.Lo)
		}
		usesOf(in, cut)
	}
	for _, v := range vars {
		cuts := l.cuts[v]
		slices.Sort(cuts)
		cuts = slices.Compact(cuts)
		if len(cuts) > 1 && cuts[len(cuts)-1] >= v.Bits {
			cuts = cuts[:len(cuts)-1]
		}
		l.cuts[v], l.first[v] = cuts, l.n
		l.n += len(cuts)
	}
	return l
}

// pieces returns the numbers first to last-1 of the pieces of bits hi..lo.
func (l *locations) pieces(v *ir.Var, hi, lo int) (first, last int) {
	cuts := l.cuts[v]
	a, exact := slices.BinarySearch(cuts, lo)
	if !exact {
		a--
	}
	b, _ := slices.BinarySearch(cuts, hi+1)
	return l.first[v] + a, l.first[v] + b
}

// bits are the highest and lowest bit of a piece of v.
func (l *locations) bits(v *ir.Var, piece int) (hi, lo int) {
	cuts, k := l.cuts[v], piece-l.first[v]
	if k+1 < len(cuts) {
		return cuts[k+1] - 1, cuts[k]
	}
	return v.Bits - 1, cuts[k]
}

// usesOf calls f with the locations that an instruction reads.
func usesOf(in *ir.Instr, f func(v *ir.Var, hi, lo int)) {
	for _, a := range in.Args {
		usesIn(a, f)
	}
	for _, e := range []*ir.Expr{in.Index, in.Base, in.Max} {
		usesIn(e, f)
	}
}

func usesIn(e *ir.Expr, f func(v *ir.Var, hi, lo int)) {
	switch {
	case e == nil:
	case e.Op == ir.Use:
		f(e.Var, e.Hi, e.Lo)
	case e.Op == ir.Slice && len(e.Args) == 1 && e.Args[0].Op == ir.Use:
		u := e.Args[0]
		f(u.Var, min(u.Lo+e.Hi, u.Hi), u.Lo+e.Lo)
	default:
		for _, a := range e.Args {
			usesIn(a, f)
		}
	}
}

// bits is a set of small numbers.
type bits []uint64

func newBits(n int) bits      { return make(bits, (n+63)/64) }
func (b bits) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bits) clear(i int)    { b[i/64] &^= 1 << (i % 64) }
func (b bits) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

// join adds o and tells whether b grew.
func (b bits) join(o bits) bool {
	grew := uint64(0)
	for i, w := range o {
		grew |= w &^ b[i]
		b[i] |= w
	}
	return grew != 0
}

// site is a definition of one piece of a location.
type site struct {
	piece, instr int
	may          bool
}

// reachingDefinitions fills in uses: the classic forward iteration, on pieces
// of locations, with sets at the heads of straight runs of instructions.
func (f *flow) reachingDefinitions() {
	code := f.p.Code
	l := newLocations(f.p)
	var sites []site
	for piece := range l.n {
		sites = append(sites, site{piece: piece, instr: entry})
	}
	for _, in := range code {
		for _, d := range in.Defs {
			a, b := l.pieces(d.Var, d.Hi, d.Lo)
			for piece := a; piece < b; piece++ {
				sites = append(sites, site{piece, in.ID, d.May})
			}
		}
	}
	slices.SortStableFunc(sites, func(a, b site) int { return cmp.Or(cmp.Compare(a.piece, b.piece), cmp.Compare(a.instr, b.instr)) })
	from := make([]int, l.n+1) // first site of each piece
	own := make([][]int, len(code))
	for s, x := range sites {
		from[x.piece+1] = s + 1
		if x.instr >= 0 {
			own[x.instr] = append(own[x.instr], s)
		}
	}
	apply := func(i int, set bits) {
		for _, s := range own[i] {
			if x := sites[s]; !x.may {
				for k := from[x.piece]; k < from[x.piece+1]; k++ {
					set.clear(k)
				}
			}
			set.set(s)
		}
	}
	isHead := func(i int) bool {
		return i == 0 || len(f.pred[i]) != 1 || len(code[f.pred[i][0]].Succ) != 1
	}
	in := map[int]bits{}
	for _, i := range f.order {
		if isHead(i) {
			in[i] = newBits(len(sites))
		}
	}
	for piece := range l.n {
		in[0].set(from[piece])
	}
	set := newBits(len(sites))
	// run goes through a straight run of instructions and returns its last.
	run := func(i int, visit func(int)) int {
		copy(set, in[i])
		for {
			visit(i)
			apply(i, set)
			if len(code[i].Succ) != 1 || isHead(code[i].Succ[0].To) {
				return i
			}
			i = code[i].Succ[0].To
		}
	}
	for changed := true; changed; {
		changed = false
		for _, i := range f.order {
			if !isHead(i) {
				continue
			}
			last := run(i, func(int) {})
			for _, s := range code[last].Succ {
				if in[s.To].join(set) && f.at[s.To] <= f.at[i] {
					changed = true // a cycle: once more
				}
			}
		}
	}
	f.uses = make([][]use, len(code))
	for _, i := range f.order {
		if !isHead(i) {
			continue
		}
		run(i, func(i int) {
			usesOf(code[i], func(v *ir.Var, hi, lo int) {
				a, b := l.pieces(v, hi, lo)
				for piece := a; piece < b; piece++ {
					u := use{v: v}
					u.hi, u.lo = l.bits(v, piece)
					for s := from[piece]; s < from[piece+1]; s++ {
						if set.has(s) {
							u.defs = append(u.defs, sites[s].instr)
						}
					}
					f.uses[i] = append(f.uses[i], u)
				}
			})
		})
	}
}

// reaching returns the instructions whose definitions of bits hi..lo of v, which
// instruction i uses, may reach it.
func (f *flow) reaching(i int, v *ir.Var, hi, lo int) []int {
	var defs []int
	for _, u := range f.uses[i] {
		if u.v != v || u.hi < lo || u.lo > hi {
			continue
		}
		defs = append(defs, u.defs...)
	}
	slices.Sort(defs)
	return slices.Compact(defs)
}

// pieces returns the pieces of bits hi..lo of v that instruction i uses, from the
// lowest on, each with the instructions whose definitions may reach it.
func (f *flow) pieces(i int, v *ir.Var, hi, lo int) []use {
	var out []use
	for _, u := range f.uses[i] {
		if u.v != v || u.hi < lo || u.lo > hi {
			continue
		}
		u.hi, u.lo = min(u.hi, hi), max(u.lo, lo)
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b use) int { return cmp.Compare(a.lo, b.lo) })
	return slices.CompactFunc(out, func(a, b use) bool { return a.lo == b.lo })
}

// above tells whether a is b or lies above it in a tree of dominators.
func above(up []int, a, b int) bool {
	for {
		if a == b {
			return true
		}
		if b < 0 || up[b] == b || up[b] < 0 {
			return false
		}
		b = up[b]
	}
}
