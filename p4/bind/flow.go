package bind

import (
	"nicprof/p4/ir"
	"nicprof/p4/source"
)

// hole is an edge that leads to the next instruction, or wherever its list of
// holes is filled.
type hole struct {
	from  *ir.Instr
	label string
}

// place is where code stands: what every instruction carries.
type place struct {
	stage   int
	control string
	action  string
	region  string
	atomic  int
}

// graph is the control-flow graph being built.
type graph struct {
	code []*ir.Instr
	open []hole
	at   place
	vars []*ir.Var
}

// emit appends an instruction behind the open edges.
func (b *binder) emit(op ir.Op, pos source.Pos) *ir.Instr {
	in := &ir.Instr{Op: op, Pos: pos, Stage: b.at.stage, Control: b.at.control, Action: b.at.action,
		Region: b.at.region, Atomic: b.at.atomic}
	in.ID = len(b.code)
	b.spend(1)
	b.code = append(b.code, in)
	b.fill(b.open, in)
	b.open = []hole{{from: in}}
	return in
}

// spend counts what the program costs to lower.
func (b *binder) spend(n int) {
	if b.work += n; b.work > maxWork {
		b.fatal("with everything inlined the program has more than %d instructions, calls and choices among elements", maxWork)
	}
}

// fill leads edges to an instruction.
func (b *binder) fill(holes []hole, to *ir.Instr) {
	for _, h := range holes {
		h.from.Succ = append(h.from.Succ, ir.Edge{To: to.ID, Label: h.label})
	}
}

// branch emits a branch on a condition and gives its two edges.
func (b *binder) branch(cond *ir.Expr, pos source.Pos) (yes, no []hole) {
	in := b.emit(ir.Branch, pos)
	in.Args = []*ir.Expr{cond}
	return []hole{{in, "true"}}, []hole{{in, "false"}}
}

// assign emits Defs = e for one scalar.
func (b *binder) assign(to *scalar, e *ir.Expr, pos source.Pos) {
	if len(to.loc) == 0 {
		return
	}
	in := b.emit(ir.Assign, pos)
	in.Defs, in.Args = to.loc, []*ir.Expr{e}
}

// finish closes the graph: what cannot be reached goes, and so do no-ops that
// join nothing; a loop without a way out gets one to the end.
func (b *binder) finish(pos source.Pos) []*ir.Instr {
	b.open = append(b.open, b.dropped...)
	end := b.emit(ir.End, pos)
	b.open = nil
	for _, in := range b.code {
		if len(in.Succ) == 0 && in != end {
			in.Succ = []ir.Edge{{To: end.ID}}
		}
	}
	for {
		ends := b.reaching(end)
		stuck := -1
		for i, r := range b.reached() {
			if r && !ends[i] {
				stuck = i
				break
			}
		}
		if stuck < 0 {
			break
		}
		in := b.code[stuck]
		in.Succ = append(in.Succ, ir.Edge{To: end.ID, Label: "error"})
	}
	for _, in := range b.code {
		for i := range in.Succ {
			in.Succ[i].To = b.skip(in.Succ[i].To)
		}
	}
	keep := b.reached()
	id := make([]int, len(b.code))
	var code []*ir.Instr
	for i, in := range b.code {
		if keep[i] {
			id[i] = len(code)
			code = append(code, in)
		}
	}
	for _, in := range code {
		in.ID = id[in.ID]
		for i := range in.Succ {
			in.Succ[i].To = id[in.Succ[i].To]
		}
		if in.Op == ir.Branch && in.Succ[0].Label == "false" {
			in.Succ[0], in.Succ[1] = in.Succ[1], in.Succ[0]
		}
	}
	return code
}

// skip follows no-ops to the first instruction that does something.
func (b *binder) skip(i int) int {
	for n := 0; n < len(b.code); n++ {
		in := b.code[i]
		if in.Op != ir.Nop || len(in.Succ) != 1 || in.Succ[0].To == i {
			break
		}
		i = in.Succ[0].To
	}
	return i
}

func (b *binder) reached() []bool {
	seen := make([]bool, len(b.code))
	work := []int{0}
	seen[0] = true
	for len(work) > 0 {
		in := b.code[work[len(work)-1]]
		work = work[:len(work)-1]
		for _, s := range in.Succ {
			if !seen[s.To] {
				seen[s.To] = true
				work = append(work, s.To)
			}
		}
	}
	return seen
}

func (b *binder) reaching(end *ir.Instr) []bool {
	preds := make([][]int, len(b.code))
	for i, in := range b.code {
		for _, s := range in.Succ {
			preds[s.To] = append(preds[s.To], i)
		}
	}
	seen := make([]bool, len(b.code))
	work := []int{end.ID}
	seen[end.ID] = true
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		for _, p := range preds[i] {
			if !seen[p] {
				seen[p] = true
				work = append(work, p)
			}
		}
	}
	return seen
}
