package frontend

import (
	"cmp"
	"slices"
	"strings"

	"nicprof/p4/ir"
)

// String gives the group as people read it.
func (g Group) String() string {
	if g.Random == "" && len(g.Fields) == 0 {
		return "one element"
	}
	return strings.Join(g.Names(), ", ")
}

// Names gives the group as the JSON has it: names of fields, or one
// "hash(field, …)".
func (g Group) Names() []string {
	names := []string{}
	for _, f := range g.Fields {
		if !slices.Contains(names, f.Var.Name) {
			names = append(names, f.Var.Name)
		}
	}
	if g.Random != "" {
		return []string{g.Random + "(" + strings.Join(names, ", ") + ")"}
	}
	return names
}

// findGroups traces the index or key of each access to what came in.
func (r *Result) findGroups(b *Block, t *tracer) {
	differ := ""
	for _, in := range r.Program.Code {
		if in.Object == nil || r.blockOf[in.Object] != b || !reads(in) && !writes(in) || in.Op == ir.Insert {
			continue
		}
		for _, g := range t.site(in) {
			k := slices.IndexFunc(b.Groups, func(o Group) bool { return o.String() == g.String() })
			if k < 0 {
				b.Groups = append(b.Groups, g)
				continue
			}
			same := slices.Equal(b.Groups[k].Fields, g.Fields)
			if !same {
				differ = "its accesses choose elements by different bits of " + g.String()
			}
			b.Groups[k] = b.Groups[k].with(g)
			b.Groups[k].Exact = b.Groups[k].Exact && same
		}
	}
	slices.SortFunc(b.Groups, func(x, y Group) int { return slices.Compare(x.Names(), y.Names()) })
	b.Why = cmp.Or(b.whyWhole(), differ)
	b.Partitionable = b.Why == ""
}

// whyWhole says why a block cannot be divided by its groups, "" when it can.
func (b *Block) whyWhole() string {
	if len(b.Groups) == 0 {
		return "no packet touches it"
	}
	for _, g := range b.Groups {
		switch {
		case g.Random != "":
			return "random mapping"
		case len(g.Fields) == 0:
			return "all packets touch one element"
		}
		for _, f := range g.Fields {
			if f.Var.Kind == ir.Intrinsic && !strings.Contains(f.Var.Name, "ingress_port") && !strings.Contains(f.Var.Name, "input_port") {
				return "its elements are chosen by " + f.Var.Name + ", which is not the flow's"
			}
		}
	}
	if len(b.Groups) > 1 {
		return "it is accessed by " + b.Groups[0].String() + " and by " + b.Groups[1].String()
	}
	for _, o := range b.Objects {
		for _, k := range o.Keys {
			if k.Match != "exact" && k.Match != "selector" {
				return "an entry of " + o.Name + " matches many values (" + k.Match + ")"
			}
		}
	}
	return ""
}

// traced is a location's bits where they are used.
type traced struct {
	instr  int
	v      *ir.Var
	hi, lo int
}

// tracer follows values back to what came in with the packet.
type tracer struct {
	r    *Result
	memo map[traced]*Group
}

// site returns the groups of one access: that of its index or key, or of the
// keys of the table that a direct object belongs to.
func (t *tracer) site(in *ir.Instr) []Group {
	switch {
	case in.Op == ir.Lookup:
		return []Group{t.key(in)}
	case in.Index != nil:
		return []Group{t.expr(in.Index, in.ID)}
	case in.Object.Direct != nil:
		var out []Group
		for _, l := range t.r.Program.Code {
			if l.Op == ir.Lookup && l.Object == in.Object.Direct {
				out = append(out, t.key(l))
			}
		}
		return out
	}
	return []Group{{Exact: true}}
}

// key is the group of a lookup's key. A selector's fields choose a member of
// the entry, not the entry.
func (t *tracer) key(in *ir.Instr) Group {
	g := Group{Exact: true}
	for k, a := range in.Args {
		if k < len(in.Object.Keys) && in.Object.Keys[k].Match == "selector" {
			continue
		}
		g = g.with(t.expr(a, in.ID))
	}
	return g
}

// with is the group of two values side by side.
func (g Group) with(o Group) Group {
	g.Fields = union(g.Fields, o.Fields)
	g.Exact = g.Exact && o.Exact
	if g.Random == "" || o.Random != "" && o.Random < g.Random {
		g.Random = o.Random
	}
	return g
}

// mixed is the group of a value that two values are combined into, so that
// unlike pairs may give the same.
func (g Group) mixed(o Group) Group {
	exact := g.Exact && o.Exact && (len(g.Fields) == 0 || len(o.Fields) == 0)
	g = g.with(o)
	g.Exact = exact
	return g
}

// union joins fields by name, their bits to one range each.
func union(a, b []Field) []Field {
	out := slices.Clone(a)
	for _, f := range b {
		if k := slices.IndexFunc(out, func(o Field) bool { return o.Var == f.Var }); k >= 0 {
			out[k].Hi, out[k].Lo = max(out[k].Hi, f.Hi), min(out[k].Lo, f.Lo)
		} else {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(x, y Field) int { return cmp.Compare(x.Var.Name, y.Var.Name) })
	return out
}

// expr is the group of an expression's value at instruction i.
func (t *tracer) expr(e *ir.Expr, i int) Group {
	width := e.Bits
	if e.Op == ir.Use {
		width = e.Hi - e.Lo + 1
	}
	return t.exprBits(e, max(width, 1)-1, 0, i)
}

// exprBits is the group of bits hi..lo of an expression's value.
func (t *tracer) exprBits(e *ir.Expr, hi, lo, i int) Group {
	switch e.Op {
	case ir.Const:
		return Group{Exact: true}
	case ir.Use:
		if hi+e.Lo > e.Hi {
			hi = e.Hi - e.Lo
		}
		return t.location(traced{i, e.Var, hi + e.Lo, lo + e.Lo})
	case ir.Slice:
		return t.exprBits(e.Args[0], hi+e.Lo, lo+e.Lo, i)
	case ir.Cast:
		inner := e.Args[0]
		if w := width(inner); w > 0 {
			if lo >= w {
				return Group{Exact: true}
			}
			hi = min(hi, w-1)
		}
		return t.exprBits(inner, hi, lo, i)
	case ir.Concat:
		g := Group{Exact: true}
		base := 0
		for _, part := range slices.Backward(e.Args) {
			w := width(part)
			if hi >= base && lo < base+w {
				g = g.with(t.exprBits(part, min(hi-base, w-1), max(lo-base, 0), i))
			}
			base += w
		}
		return g
	case ir.Mux:
		return t.arms([]Group{t.exprBits(e.Args[1], hi, lo, i), t.exprBits(e.Args[2], hi, lo, i)}, func() Group { return t.expr(e.Args[0], i) })
	case ir.Lookahead:
		return Group{Random: "packet"}
	case ir.Any:
		return Group{Random: "unknown"}
	}
	return t.operator(e, hi, lo, i)
}

// operator is exprBits of an operator's result.
func (t *tracer) operator(e *ir.Expr, hi, lo, i int) Group {
	if len(e.Args) == 2 {
		n := e.Args[1]
		if n.Op == ir.Const && n.Value != nil && n.Value.IsInt64() {
			shift := int(min(n.Value.Int64(), 1<<20))
			switch e.Op {
			case ">>":
				if w := width(e.Args[0]); w > 0 && lo+shift >= w {
					return Group{Exact: true}
				} else if w > 0 {
					hi = min(hi, w-1-shift)
				}
				return t.exprBits(e.Args[0], hi+shift, lo+shift, i)
			case "<<":
				if hi < shift {
					return Group{Exact: true}
				}
				return t.exprBits(e.Args[0], hi-shift, max(lo-shift, 0), i)
			}
		}
		for k, mask := range e.Args {
			if e.Op == "&" && mask.Op == ir.Const && mask.Value != nil && mask.Value.Sign() >= 0 {
				return t.masked(e.Args[1-k], mask, hi, lo, i)
			}
		}
	}
	g := Group{Exact: true}
	for _, a := range e.Args {
		g = g.mixed(t.expr(a, i))
	}
	switch e.Op {
	case "+", "-", "^", "~", "neg": // a constant operand permutes the values
	default:
		g.Exact = g.Exact && len(g.Fields) == 0
	}
	return g
}

// masked is the group of a value's bits hi..lo where a constant mask leaves
// them.
func (t *tracer) masked(e, mask *ir.Expr, hi, lo, i int) Group {
	top := min(hi, mask.Value.BitLen()-1)
	for lo <= top && mask.Value.Bit(lo) == 0 {
		lo++
	}
	if lo > top {
		return Group{Exact: true}
	}
	return t.exprBits(e, top, lo, i)
}

// width is the width of an expression's value, 0 when unknown.
func width(e *ir.Expr) int {
	if e.Op == ir.Use {
		return e.Hi - e.Lo + 1
	}
	return e.Bits
}

// arms is the group of a value that comes from one of several places: what
// determines each and, unless they agree, what decides between them.
func (t *tracer) arms(all []Group, decides func() Group) Group {
	g := Group{Exact: true}
	if len(all) == 1 {
		return all[0]
	}
	agree := true
	for _, a := range all {
		agree = agree && len(a.Fields) > 0 && slices.Equal(a.Names(), all[0].Names())
		g = g.with(a)
	}
	if !agree {
		g = g.with(decides())
	}
	g.Exact = len(g.Fields) == 0
	return g
}

// location is the group of a location's bits where they are used. A type that
// is marked as a flow group identifier ends random mappings: the programmer
// says that its values are the groups.
func (t *tracer) location(at traced) Group {
	if g := t.memo[at]; g != nil {
		return *g
	}
	t.memo[at] = &Group{Exact: true} // what a cycle brings back adds nothing
	defs := t.r.flow.reaching(at.instr, at.v, at.hi, at.lo)
	var all []Group
	original := false
	for _, d := range defs {
		from, ok := t.definition(d, at)
		came := d == entry || t.r.Program.Code[d].Op == ir.Extract
		again := came && original // the header of another path through the parser
		original = original || came
		if ok && !again {
			all = append(all, from)
		}
	}
	g := t.arms(all, func() Group { return t.deciding(defs, at.instr) })
	if at.v.FlowGroup {
		g.Random = ""
	}
	t.memo[at] = &g
	return g
}

// definition is the group of the value that instruction d gave a location; ok
// is false where it gave none.
func (t *tracer) definition(d int, at traced) (g Group, ok bool) {
	whole := Group{Fields: []Field{{at.v, at.hi, at.lo}}, Exact: true}
	if d == entry {
		brought := at.v.Kind == ir.HeaderField || at.v.Kind == ir.Intrinsic
		return whole, brought
	}
	in := t.r.Program.Code[d]
	switch in.Op {
	case ir.Extract:
		return whole, at.v.Kind == ir.HeaderField
	case ir.SetValid, ir.SetInvalid:
		return Group{}, false
	case ir.Assign:
		for _, def := range in.Defs {
			if def.Var == at.v && def.Lo <= at.lo && def.Hi >= at.hi {
				return t.exprBits(in.Args[0], at.hi-def.Lo, at.lo-def.Lo, d), true
			}
		}
		return t.expr(in.Args[0], d), true
	case ir.Lookup:
		g = t.key(in)
		g.Exact = false
		return g, true
	case ir.RegRead, ir.MeterExec:
		for _, s := range t.site(in) {
			g = g.with(s)
		}
		g.Exact, g.Random = false, "state"
		return g, true
	}
	g = Group{Exact: true}
	for _, a := range in.Args {
		g = g.with(t.expr(a, d))
	}
	switch {
	case in.Op == ir.HashOp && in.Algorithm == "identity":
		g.Exact = g.Exact && in.Max == nil
	case in.Op == ir.HashOp || in.Op == ir.Checksum:
		g.Exact, g.Random = false, "hash"
	case in.Op == ir.Random:
		g.Exact, g.Random = false, "random"
	default:
		g.Exact, g.Random = false, cmp.Or(in.Name, string(in.Op))
	}
	return g, true
}

// deciding is the group of the conditions that choose which of the definitions
// reaches instruction i. Which headers a packet has is not traced: all packets
// of a flow have the same.
func (t *tracer) deciding(defs []int, i int) Group {
	g := Group{Exact: true}
	common := t.gates(i)
	for _, d := range defs {
		if d == entry {
			continue
		}
		gates := t.gates(d)
		for _, in := range t.r.Program.Code {
			if b := in.ID; !gates.has(b) || common.has(b) {
				continue
			}
			if in.Op == ir.Lookup {
				g = g.mixed(t.key(in))
				continue
			}
			for _, a := range in.Args {
				g = g.mixed(t.expr(a, in.ID))
			}
		}
	}
	return g
}

// gates collects the branches that an instruction is control dependent on,
// near and far.
func (t *tracer) gates(i int) bits {
	seen := newBits(len(t.r.Program.Code))
	work := []int{i}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		for _, g := range t.r.flow.control[i] {
			if !seen.has(g.instr) {
				seen.set(g.instr)
				work = append(work, g.instr)
			}
		}
	}
	return seen
}
