package frontend

import (
	"cmp"
	"fmt"
	"slices"

	"nicprof/internal/fault"
	"nicprof/p4/ir"
)

// Analyse finds the state blocks of a program, their flow groups, and what a
// person who brings it onto a NIC has to know. The error is bad input: an
// unknown kind of dependences.
func Analyse(p *ir.Program, o Options) (*Result, error) {
	switch o.Deps {
	case "":
		o.Deps = DepsInstruction
	case DepsInstruction, DepsAction:
	default:
		return nil, fault.Inputf("dependences %q: expected %s or %s", o.Deps, DepsInstruction, DepsAction)
	}
	r := &Result{Program: p, Deps: o.Deps, Warnings: slices.Clone(p.Warnings)}
	r.flow = newFlow(p)
	r.deps = newDeps(r.flow)
	r.depends = r.objectDeps()
	objects := r.stateful()
	r.name(objects)
	r.findBlocks(objects)
	r.findTogether()
	r.findBranches()
	r.findUnsupported()
	r.warn()
	return r, nil
}

// stateful lists the objects that blocks are made of: registers, counters,
// meters and tables, and extern instances that the program calls. A profile or
// selector belongs to its tables, a value set to its parser.
func (r *Result) stateful() []*ir.Object {
	called := map[*ir.Object]bool{}
	for _, in := range r.Program.Code {
		if in.Op == ir.Extern && in.Object != nil {
			called[in.Object] = true
		}
	}
	var out []*ir.Object
	for _, o := range r.Program.Objects {
		switch o.Kind {
		case ir.Table, ir.Register, ir.Counter, ir.Meter:
			out = append(out, o)
		case ir.Other:
			if called[o] {
				out = append(out, o)
			}
		}
	}
	return out
}

// name gives each object its local name where that is unique.
func (r *Result) name(objects []*ir.Object) {
	count := map[string]int{}
	for _, o := range objects {
		count[o.Name]++
	}
	r.names = map[*ir.Object]string{}
	for _, o := range objects {
		r.names[o] = o.Name
		if count[o.Name] > 1 || o.Name == "" {
			r.names[o] = o.FullName
		}
	}
}

// findBlocks makes a block of each cycle of objects and of each other object:
// larger ones first, then cyclic ones, then by declaration.
func (r *Result) findBlocks(objects []*ir.Object) {
	for _, c := range components(objects, r.depends) {
		b := &Block{Objects: c, Cyclic: len(c) > 1 || r.depends[c[0]][c[0]]}
		r.Blocks = append(r.Blocks, b)
	}
	cyclic := func(b *Block) int {
		if b.Cyclic {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(r.Blocks, func(a, b *Block) int {
		return cmp.Or(cmp.Compare(len(b.Objects), len(a.Objects)), cmp.Compare(cyclic(a), cyclic(b)))
	})
	r.blockOf = map[*ir.Object]*Block{}
	back := [][][]int{reversed(r.deps.data), reversed(r.deps.control)}
	t := &tracer{r: r, memo: map[traced]*Group{}, exec: map[int]*executed{}}
	held := newBits(len(r.Program.Code))
	for i, b := range r.Blocks {
		b.Index, b.Name = i, fmt.Sprint("b", i)
		for _, o := range b.Objects {
			r.blockOf[o] = b
		}
		r.findInstructions(b, back)
		for _, i := range b.Instructions {
			held.set(i)
		}
		r.findGroups(b, t)
		r.measure(b)
	}
	for _, b := range r.Blocks {
		r.addTests(b, held)
	}
}

// findInstructions collects the operations on a block's objects and what lies
// between a read and a write that depends on it. back holds the reversed edges
// of the graph.
func (r *Result) findInstructions(b *Block, back [][][]int) {
	code := r.Program.Code
	var read, written []int
	own := func(in *ir.Instr) bool { return in.Object != nil && slices.Contains(b.Objects, in.Object) }
	for _, in := range code {
		if own(in) && reads(in) {
			read = append(read, in.ID)
		}
		if own(in) && writes(in) {
			written = append(written, in.ID)
		}
	}
	after := reach(len(code), read, r.deps.data, r.deps.control)
	before := reach(len(code), written, back...)
	for _, in := range code {
		i := in.ID
		between := after.has(i) && before.has(i) && !reads(in) && !writes(in)
		if own(in) && (reads(in) || writes(in)) || between {
			b.Instructions = append(b.Instructions, i)
		}
	}
}

// addTests adds to a block the conditions on what it read, but for those that
// belong to a block already because they decide what that one writes.
func (r *Result) addTests(b *Block, held bits) {
	var read []int
	for _, in := range r.Program.Code {
		if in.Object != nil && r.blockOf[in.Object] == b && reads(in) {
			read = append(read, in.ID)
		}
	}
	tested := r.computedFrom(read)
	for _, in := range r.Program.Code {
		if (in.Op == ir.Branch || in.Op == ir.Switch) && tested.has(in.ID) && !held.has(in.ID) {
			b.Instructions = append(b.Instructions, in.ID)
		}
	}
	slices.Sort(b.Instructions)
}

// computedFrom marks what follows from state reads by data, up to the next
// operation on state.
func (r *Result) computedFrom(read []int) bits {
	seen := newBits(len(r.Program.Code))
	work := slices.Clone(read)
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		for _, to := range r.deps.data[i] {
			if seen.has(to) {
				continue
			}
			seen.set(to)
			if in := r.Program.Code[to]; !reads(in) && !writes(in) {
				work = append(work, to)
			}
		}
	}
	return seen
}

// findTogether lists the objects that one @atomic region touches.
func (r *Result) findTogether() {
	for n := range r.Program.Atomics {
		var objects []*ir.Object
		for _, in := range r.Program.Code {
			if in.Atomic == n+1 && in.Object != nil && r.blockOf[in.Object] != nil && !slices.Contains(objects, in.Object) {
				objects = append(objects, in.Object)
			}
		}
		if len(objects) > 1 {
			slices.SortFunc(objects, func(a, b *ir.Object) int { return cmp.Compare(a.ID, b.ID) })
			if !slices.ContainsFunc(r.Together, func(t []*ir.Object) bool { return slices.Equal(t, objects) }) {
				r.Together = append(r.Together, objects)
			}
		}
	}
}
