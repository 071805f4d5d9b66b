package frontend

import (
	"slices"

	"nicprof/p4/ir"
)

// deps is the dependence graph over instructions.
type deps struct {
	data    [][]int // by instruction: those that use what it defines
	control [][]int // by instruction: those whose execution it decides
}

func newDeps(f *flow) *deps {
	d := &deps{make([][]int, len(f.p.Code)), make([][]int, len(f.p.Code))}
	add := func(list [][]int, from, to int) {
		if n := len(list[from]); n == 0 || list[from][n-1] != to {
			list[from] = append(list[from], to)
		}
	}
	for i := range f.p.Code {
		var from []int
		for _, u := range f.uses[i] {
			from = append(from, u.defs...)
		}
		slices.Sort(from)
		for _, x := range slices.Compact(from) {
			if x != entry {
				add(d.data, x, i)
			}
		}
		for _, g := range f.control[i] {
			add(d.control, g.instr, i)
		}
	}
	return d
}

// reads tells whether an instruction yields something of its object's state. A
// meter's execution reads the bucket (the colour) and writes it; of an extern
// nobody knows, so both are assumed.
func reads(in *ir.Instr) bool {
	switch in.Op {
	case ir.RegRead, ir.Lookup, ir.MeterExec:
		return true
	case ir.Extern:
		return in.Object != nil
	}
	return false
}

// writes tells whether an instruction changes its object's state. A table is
// changed by insertions alone: what the control plane does is no dependence.
func writes(in *ir.Instr) bool {
	switch in.Op {
	case ir.RegWrite, ir.MeterExec, ir.Count, ir.Insert:
		return true
	case ir.Extern:
		return in.Object != nil
	}
	return false
}

// reach marks what the starting instructions reach along the edges, themselves
// only when a cycle leads back.
func reach(n int, from []int, edges ...[][]int) bits {
	seen := newBits(n)
	work := slices.Clone(from)
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		for _, e := range edges {
			for _, to := range e[i] {
				if !seen.has(to) {
					seen.set(to)
					work = append(work, to)
				}
			}
		}
	}
	return seen
}

// reversed returns the edges the other way round.
func reversed(edges [][]int) [][]int {
	r := make([][]int, len(edges))
	for i, to := range edges {
		for _, j := range to {
			r[j] = append(r[j], i)
		}
	}
	return r
}

// objectDeps returns, by object, the objects that it depends on: X on Y when a
// write of X follows from a read of Y by data or control. An operation of
// another object on the way passes the dependence on: what a table or register
// yields depends on the key or index.
func (r *Result) objectDeps() map[*ir.Object]map[*ir.Object]bool {
	of := map[*ir.Object]map[*ir.Object]bool{}
	add := func(x, y *ir.Object) {
		if of[x] == nil {
			of[x] = map[*ir.Object]bool{}
		}
		of[x][y] = true
	}
	for _, read := range r.Program.Code {
		if !reads(read) {
			continue
		}
		if writes(read) {
			add(read.Object, read.Object)
		}
		var seen bits
		if r.Deps == DepsAction {
			seen = r.actionReach(read)
		} else {
			seen = reach(len(r.Program.Code), []int{read.ID}, r.deps.data, r.deps.control)
		}
		for _, write := range r.Program.Code {
			if writes(write) && seen.has(write.ID) {
				add(write.Object, read.Object)
			}
		}
	}
	return of
}

// actionReach is what a read reaches by the coarse analysis: everything behind
// it in the same action, and what a condition decides that the read's value is
// part of.
func (r *Result) actionReach(read *ir.Instr) bits {
	code := r.Program.Code
	seen := newBits(len(code))
	work := []int{read.ID}
	for len(work) > 0 { // along the action's own edges
		i := work[len(work)-1]
		work = work[:len(work)-1]
		for _, s := range code[i].Succ {
			to := code[s.To]
			if !seen.has(s.To) && to.Action == read.Action && to.Control == read.Control && to.Stage == read.Stage {
				seen.set(s.To)
				work = append(work, s.To)
			}
		}
	}
	follows := reach(len(code), []int{read.ID}, r.deps.data)
	for _, in := range code {
		if (in.Op == ir.Branch || in.Op == ir.Switch) && follows.has(in.ID) {
			seen.join(reach(len(code), []int{in.ID}, r.deps.control))
		}
	}
	return seen
}

// components returns the strongly connected components of the objects, each
// and all in the order given.
func components(objects []*ir.Object, depends map[*ir.Object]map[*ir.Object]bool) [][]*ir.Object {
	index := map[*ir.Object]int{}
	for i, o := range objects {
		index[o] = i
	}
	edges := make([][]int, len(objects))
	for i, o := range objects {
		for j, to := range objects {
			if depends[o][to] {
				edges[i] = append(edges[i], j)
			}
		}
	}
	from := make([]bits, len(objects))
	for i := range objects {
		from[i] = reach(len(objects), []int{i}, edges)
	}
	var out [][]*ir.Object
	done := map[int]bool{}
	for i := range objects {
		if done[i] {
			continue
		}
		c := []*ir.Object{objects[i]}
		for j := i + 1; j < len(objects); j++ {
			if from[i].has(j) && from[j].has(i) {
				c, done[j] = append(c, objects[j]), true
			}
		}
		out = append(out, c)
	}
	return out
}
