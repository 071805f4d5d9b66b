package ir

import (
	"errors"
	"fmt"
)

// Check verifies what the package comment promises of a program. It returns
// the first few things that are not so.
func Check(p *Program) error {
	c := &checker{p: p, vars: map[*Var]bool{}, objects: map[*Object]bool{}}
	names := map[string]bool{}
	for i, v := range p.Vars {
		c.must(v.ID == i, "location %s has number %d at %d", v.Name, v.ID, i)
		c.must(!names[v.Name], "two locations are called %s", v.Name)
		names[v.Name], c.vars[v] = true, true
	}
	for i, o := range p.Objects {
		c.must(o.ID == i, "object %s has number %d at %d", o.FullName, o.ID, i)
		c.objects[o] = true
	}
	c.must(len(p.Code) > 0, "there is no code")
	ends := 0
	for i, in := range p.Code {
		c.must(in.ID == i, "instruction %d has number %d", i, in.ID)
		if in.Op == End {
			ends++
		}
		c.instr(in)
	}
	c.must(ends == 1, "%d instructions are ends", ends)
	if len(c.errs) == 0 {
		c.paths()
	}
	return errors.Join(c.errs...)
}

type checker struct {
	p       *Program
	vars    map[*Var]bool
	objects map[*Object]bool
	errs    []error
}

func (c *checker) must(ok bool, format string, args ...any) {
	if !ok && len(c.errs) < 10 {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

// instr checks one instruction by itself.
func (c *checker) instr(in *Instr) {
	switch in.Op {
	case End:
		c.must(len(in.Succ) == 0, "the end has successors")
	case Branch:
		c.must(len(in.Succ) == 2 && in.Succ[0].Label != in.Succ[1].Label, "branch %d: edges %v", in.ID, in.Succ)
		c.must(len(in.Args) == 1, "branch %d has %d conditions", in.ID, len(in.Args))
		for _, s := range in.Succ {
			c.must(s.Label == "true" || s.Label == "false", "branch %d: label %s", in.ID, s.Label)
		}
	case Switch, Lookup:
		c.must(len(in.Succ) > 0, "%s %d has no edge", in.Op, in.ID)
	default:
		stuck := len(in.Succ) == 2 && in.Succ[1].Label == "error"
		c.must(len(in.Succ) == 1 || stuck, "%s %d: edges %v", in.Op, in.ID, in.Succ)
	}
	for _, s := range in.Succ {
		c.must(s.To >= 0 && s.To < len(c.p.Code), "instruction %d leads to %d", in.ID, s.To)
	}
	if in.Op == Assign {
		c.must(len(in.Defs) > 0 && len(in.Args) == 1, "assignment %d: %d of %d", in.ID, len(in.Defs), len(in.Args))
	}
	switch in.Op {
	case Lookup, RegRead, RegWrite, Count, MeterExec, Insert:
		c.must(in.Object != nil, "%s %d has no object", in.Op, in.ID)
	}
	c.must(in.Object == nil || c.objects[in.Object], "instruction %d uses an unknown object", in.ID)
	c.must(in.Stage >= 0 && in.Stage < max(len(c.p.Stages), 1), "instruction %d is of stage %d", in.ID, in.Stage)
	c.must(in.Atomic >= 0 && in.Atomic <= len(c.p.Atomics), "instruction %d is of atomic region %d", in.ID, in.Atomic)
	for _, d := range in.Defs {
		c.must(c.vars[d.Var], "instruction %d defines an unknown location", in.ID)
		c.must(d.Lo >= 0 && d.Hi >= d.Lo && d.Hi < max(d.Var.Bits, 1), "instruction %d defines %s[%d:%d]", in.ID, d.Var.Name, d.Hi, d.Lo)
	}
	for _, a := range in.Args {
		c.expr(in, a)
	}
	for _, a := range []*Expr{in.Index, in.Base, in.Max} {
		if a != nil {
			c.expr(in, a)
		}
	}
}

func (c *checker) expr(in *Instr, e *Expr) {
	if e == nil {
		c.must(false, "instruction %d has an expression that is nil", in.ID)
		return
	}
	switch e.Op {
	case Const:
		c.must(e.Value != nil, "instruction %d has a constant without value", in.ID)
	case Use:
		c.must(c.vars[e.Var], "instruction %d uses an unknown location", in.ID)
		if e.Var != nil {
			c.must(e.Lo >= 0 && e.Hi >= e.Lo && e.Hi < max(e.Var.Bits, 1), "instruction %d uses %s[%d:%d]", in.ID, e.Var.Name, e.Hi, e.Lo)
		}
	}
	for _, a := range e.Args {
		c.expr(in, a)
	}
}

// paths checks that every instruction lies on a path from entry to end.
func (c *checker) paths() {
	n := len(c.p.Code)
	next, prev := make([][]int, n), make([][]int, n)
	end := 0
	for i, in := range c.p.Code {
		if in.Op == End {
			end = i
		}
		for _, s := range in.Succ {
			next[i] = append(next[i], s.To)
			prev[s.To] = append(prev[s.To], i)
		}
	}
	from, to := visit(next, 0), visit(prev, end)
	for i, in := range c.p.Code {
		c.must(from[i], "instruction %d (%s) cannot be reached", i, in)
		c.must(to[i], "instruction %d (%s) leads to no end", i, in)
	}
}

func visit(edges [][]int, start int) []bool {
	seen := make([]bool, len(edges))
	seen[start] = true
	for work := []int{start}; len(work) > 0; {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		for _, k := range edges[i] {
			if !seen[k] {
				seen[k] = true
				work = append(work, k)
			}
		}
	}
	return seen
}
