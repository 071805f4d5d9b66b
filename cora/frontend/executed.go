package frontend

import (
	"slices"

	"nicprof/p4/ir"
)

// executed is what must have happened when packets come to an instruction:
// instructions that were executed and outcomes of conditions.
type executed struct {
	r      *Result
	at     int
	done   []int
	truths []outcome
}

// outcome is the value of a condition, as it was at an instruction.
type outcome struct {
	e     *ir.Expr
	instr int
	value bool
}

// executedAt collects what dominates instruction i: the branches that must have
// been taken, and the extraction of headers that must be valid.
func (r *Result) executedAt(i int) *executed {
	x := &executed{r: r, at: i}
	code := r.Program.Code
	if in := code[i]; in.Op == ir.Emit { // only a valid header matters
		x.learn(outcome{in.Args[0], i, true})
	}
	for to := i; ; to = r.flow.dom[to] {
		x.done = append(x.done, to)
		from := r.flow.dom[to]
		if from < 0 || from == to {
			break
		}
		if p := r.flow.pred[to]; len(p) == 1 && code[p[0]].Op == ir.Branch {
			b := code[p[0]]
			k := slices.IndexFunc(b.Succ, func(e ir.Edge) bool { return e.To == to })
			x.learn(outcome{b.Args[0], b.ID, b.Succ[k].Label == "true"})
		}
	}
	return x
}

// learn adds what follows from an outcome.
func (x *executed) learn(o outcome) {
	x.truths = append(x.truths, o)
	switch e := o.e; {
	case e.Op == "!":
		x.learn(outcome{e.Args[0], o.instr, !o.value})
	case e.Op == "&&" && o.value, e.Op == "||" && !o.value:
		for _, a := range e.Args {
			x.learn(outcome{a, o.instr, o.value})
		}
	case e.Op == ir.Use && e.Var.Kind == ir.Validity && o.value:
		var made []int
		for _, d := range x.r.flow.reaching(o.instr, e.Var, e.Hi, e.Lo) {
			if d != entry && x.r.Program.Code[d].Op != ir.SetInvalid { // a header is not valid from the start
				made = append(made, d)
			}
		}
		if len(made) == 1 {
			x.done = append(x.done, made[0])
		}
	}
}

// has tells whether an instruction must have been executed.
func (x *executed) has(i int) bool { return x.hasDepth(i, 0) }

func (x *executed) hasDepth(i, depth int) bool {
	f := x.r.flow
	if depth > maxCopies {
		return false
	}
	for _, d := range x.done {
		if above(f.dom, i, d) || above(f.post, i, d) && f.at[i] < f.at[x.at] {
			return true
		}
	}
	return slices.ContainsFunc(f.control[i], func(g gate) bool {
		b := x.r.Program.Code[g.instr]
		return f.at[i] < f.at[x.at] && b.Op == ir.Branch && x.implied(b.Args[0], b.ID, b.Succ[g.edge].Label == "true") && x.hasDepth(b.ID, depth+1)
	})
}

// implied tells whether a condition at instruction i must have had an outcome.
func (x *executed) implied(e *ir.Expr, i int, value bool) bool {
	if slices.ContainsFunc(x.truths, func(o outcome) bool { return o.value == value && x.r.sameValue(o.e, o.instr, e, i) }) {
		return true
	}
	switch {
	case e.Op == "!":
		return x.implied(e.Args[0], i, !value)
	case e.Op == "&&" && value, e.Op == "||" && !value:
		return !slices.ContainsFunc(e.Args, func(a *ir.Expr) bool { return !x.implied(a, i, value) })
	case e.Op == "&&", e.Op == "||":
		return slices.ContainsFunc(e.Args, func(a *ir.Expr) bool { return x.implied(a, i, value) })
	}
	return false
}

// overwritten tells whether the value that instruction d gave a location cannot
// be the one that instruction i uses, since another of the definitions must have
// come behind it.
func (t *tracer) overwritten(d int, defs []int, i int) bool {
	x := t.exec[i]
	if x == nil {
		x = t.r.executedAt(i)
		t.exec[i] = x
	}
	f := t.r.flow
	return slices.ContainsFunc(defs, func(o int) bool {
		if o == entry || o == d || d != entry && f.at[o] < f.at[d] {
			return false // what is in no loop leads to nothing before it in the order
		}
		in := t.r.Program.Code[o]
		return x.has(o) && !t.r.loops(o) && !slices.ContainsFunc(in.Defs, func(def ir.Def) bool { return def.May })
	})
}

// loops tells whether a packet may come to an instruction more than once.
func (r *Result) loops(i int) bool {
	return slices.ContainsFunc(r.Program.Code[i].Succ, func(e ir.Edge) bool { return r.reaches(e.To, i) })
}
