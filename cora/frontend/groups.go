package frontend

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"nicprof/p4/ir"
	"nicprof/p4/source"
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

// findGroups traces the index or key of each access to what came in. Traffic can
// be divided by a group only if no element is reached from two of its values,
// over all accesses: what is not proved to be so stays whole.
func (r *Result) findGroups(b *Block, t *tracer) {
	var first Group // of the accesses so far
	var site source.Pos
	unproved := false // a mark would help
	for _, in := range r.Program.Code {
		if in.Object == nil || r.blockOf[in.Object] != b || !reads(in) && !writes(in) || in.Op == ir.Insert {
			continue
		}
		for _, g := range t.site(in) {
			if len(b.Groups) == 0 {
				first = g
			}
			if k := slices.IndexFunc(b.Groups, func(o Group) bool { return o.String() == g.String() }); k < 0 {
				b.Groups = append(b.Groups, g)
			} else {
				b.Groups[k] = b.Groups[k].with(g)
			}
			switch {
			case b.Why != "":
			case g.value == nil:
				b.Why, site, unproved = g.whyWhole(), in.Pos, true
			case !sameBits(first.value, g.value):
				b.Why, site, unproved = "its accesses choose elements by different bits of "+g.String(), in.Pos, true
			case r.beyond(in) != nil:
				b.Why = "an index reaches beyond the elements of " + in.Object.Name
			}
		}
	}
	slices.SortFunc(b.Groups, func(x, y Group) int { return slices.Compare(x.Names(), y.Names()) })
	open := b.Why
	b.Why = cmp.Or(b.whyWhole(), open)
	b.Partitionable = b.Why == ""
	if b.Why == open && unproved {
		r.warnf(site, "block %s (%s) cannot be divided by flows: %s; if the values of its index are flow groups that share no element, give the index a type named FlowGroupID",
			b.Name, strings.Join(r.namesOf(b.Objects), ", "), open)
	}
}

// whyWhole says why a block cannot be divided by its groups whatever their
// mapping is, "" when nothing is against it.
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
		if o.Direct != nil {
			o = o.Direct
		}
		for _, k := range o.Keys {
			if k.Match != "exact" && k.Match != "selector" {
				return "an entry of " + o.Name + " matches many values (" + k.Match + ")"
			}
		}
	}
	return ""
}

// whyWhole says why unlike values may choose one element.
func (g Group) whyWhole() string {
	return cmp.Or(g.why, "unlike values of "+g.String()+" may choose one element")
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
	exec map[int]*executed
}

// site returns the groups of one access: that of its index or key, or of the
// keys of the table that a direct object belongs to.
func (t *tracer) site(in *ir.Instr) []Group {
	switch {
	case in.Op == ir.Lookup:
		return []Group{t.key(in).done()}
	case in.Index != nil:
		return []Group{t.expr(in.Index, in.ID).done()}
	case in.Object.Direct != nil:
		var out []Group
		for _, l := range t.r.Program.Code {
			if l.Op == ir.Lookup && l.Object == in.Object.Direct {
				out = append(out, t.key(l).done())
			}
		}
		return out
	}
	return []Group{{Exact: true}}
}

// done states the exactness of a group.
func (g Group) done() Group {
	g.Exact = g.value != nil && !g.Marked
	return g
}

// key is the group of a lookup's key. A selector's fields choose a member of
// the entry, not the entry.
func (t *tracer) key(in *ir.Instr) Group {
	g := constantBits(nil)
	for k, a := range in.Args {
		if k < len(in.Object.Keys) && in.Object.Keys[k].Match == "selector" {
			continue
		}
		g = g.beside(t.expr(a, in.ID))
	}
	return g
}

// bit is a bit of a value: of a field as it came in, changed in a way that unlike
// bits stay unlike, or constant.
type bit struct {
	v   *ir.Var // nil: a constant, or of an identifier that how names
	n   int     // bit of v, or the constant
	how string
}

func constantBits(bits []bit) Group { return Group{value: append([]bit{}, bits...)} }

// isZero tells whether a bit is always 0.
func (b bit) isZero() bool { return b == bit{} }

// sameBits tells whether two values are one function of the fields.
func sameBits(a, b []bit) bool {
	trim := func(x []bit) []bit {
		for len(x) > 0 && x[len(x)-1].isZero() {
			x = x[:len(x)-1]
		}
		return x
	}
	return slices.Equal(trim(a), trim(b))
}

// with joins what determines two values, which are not told apart any more.
func (g Group) with(o Group) Group {
	g.Fields = union(g.Fields, o.Fields)
	g.Exact = g.Exact && o.Exact
	g.Marked = g.Marked || o.Marked
	g.why = cmp.Or(g.why, o.why)
	if g.Random == "" || o.Random != "" && o.Random < g.Random {
		g.Random = o.Random
	}
	return g
}

// beside is the group of a value whose upper bits g has and whose lower bits o.
func (g Group) beside(o Group) Group {
	out := g.with(o)
	out.value = nil
	if g.value != nil && o.value != nil {
		out.value = slices.Concat(o.value, g.value)
	}
	return out
}

// inexact is the group of a value that determines less than its fields.
func (g Group) inexact(why string) Group {
	g.value = nil
	g.why = cmp.Or(g.why, why)
	return g
}

// changed is the group of a value of which bits became others, one to one.
func (g Group) changed(how string) Group {
	if g.value == nil {
		return g
	}
	g.value = slices.Clone(g.value)
	for k := range g.value {
		g.value[k].how += how
	}
	return g
}

// union joins fields: the bits of each in ranges that neither meet nor touch.
func union(a, b []Field) []Field {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y Field) int {
		return cmp.Or(strings.Compare(x.Var.Name, y.Var.Name), cmp.Compare(x.Lo, y.Lo), cmp.Compare(x.Hi, y.Hi))
	})
	var out []Field
	for _, f := range all {
		if n := len(out) - 1; n >= 0 && out[n].Var == f.Var && f.Lo <= out[n].Hi+1 {
			out[n].Hi = max(out[n].Hi, f.Hi)
		} else {
			out = append(out, f)
		}
	}
	return out
}

// expr is the group of an expression's value at instruction i.
func (t *tracer) expr(e *ir.Expr, i int) Group {
	w := width(e)
	if w == 0 && e.Op == ir.Const {
		w = e.Value.BitLen()
	}
	return t.bits(e, max(w, 1)-1, 0, i)
}

// bits is the group of bits hi..lo of an expression's value, which has one bit of
// value for each.
func (t *tracer) bits(e *ir.Expr, hi, lo, i int) Group {
	switch e.Op {
	case ir.Const:
		value := make([]bit, 0, hi-lo+1)
		for k := lo; k <= hi; k++ {
			value = append(value, bit{n: int(e.Value.Bit(k))})
		}
		return Group{value: value}
	case ir.Use:
		return t.padded(hi, lo, e.Hi-e.Lo+1, e.Signed, func(hi, lo int) Group { return t.location(traced{i, e.Var, hi + e.Lo, lo + e.Lo}) })
	case ir.Slice:
		return t.bits(e.Args[0], hi+e.Lo, lo+e.Lo, i)
	case ir.Cast:
		inner := e.Args[0]
		w := width(inner)
		if w == 0 {
			w = hi + 1
		}
		return t.padded(hi, lo, w, inner.Signed, func(hi, lo int) Group { return t.bits(inner, hi, lo, i) })
	case ir.Concat:
		g := constantBits(nil)
		base := 0
		for _, part := range slices.Backward(e.Args) {
			w := width(part)
			if hi >= base && lo < base+w {
				g = t.bits(part, min(hi-base, w-1), max(lo-base, 0), i).beside(g)
			}
			base += w
		}
		return g
	case ir.Mux:
		return t.arms([]Group{t.bits(e.Args[1], hi, lo, i), t.bits(e.Args[2], hi, lo, i)}, func() Group { return t.expr(e.Args[0], i) })
	case ir.Lookahead:
		return Group{Random: "packet"}
	case ir.Any:
		return Group{Random: "unknown"}
	}
	return t.operator(e, hi, lo, i)
}

// padded is the group of bits hi..lo of a value of w bits: bits above are zero, or
// copies of the sign.
func (t *tracer) padded(hi, lo, w int, signed bool, inner func(hi, lo int) Group) Group {
	if hi < w {
		return inner(hi, lo)
	}
	above := zeros(hi - max(w, lo) + 1)
	if signed {
		sign := inner(w-1, w-1)
		for k := 1; k < len(above.value); k++ {
			sign = sign.beside(inner(w-1, w-1))
		}
		above = sign
	}
	if lo >= w {
		return above
	}
	return above.beside(inner(w-1, lo))
}

func zeros(n int) Group { return Group{value: make([]bit, n)} }

// operator is bits of an operator's result.
func (t *tracer) operator(e *ir.Expr, hi, lo, i int) Group {
	if len(e.Args) == 2 {
		if g, ok := t.byConstant(e, hi, lo, i); ok {
			return g
		}
	}
	switch e.Op {
	case "~":
		return t.bits(e.Args[0], hi, lo, i).changed("~")
	case "^", "|", "+":
		// From bit 0 on, as a sum carries.
		if g := t.merged(t.bits(e.Args[0], hi, 0, i), t.bits(e.Args[1], hi, 0, i)); g.value != nil {
			return g.from(lo)
		}
	}
	var g Group
	for _, a := range e.Args {
		g = g.with(t.expr(a, i))
	}
	return g.inexact("different values of " + g.String() + " may give one " + string(e.Op))
}

// merged is the group of two values of which no bit may be set in both, so that
// they lie side by side.
func (t *tracer) merged(a, b Group) Group {
	out := a.with(b)
	out.value = nil
	if a.value == nil || b.value == nil {
		return out
	}
	value := make([]bit, len(a.value))
	for k := range value {
		switch x, y := a.value[k], b.value[k]; {
		case y.isZero():
			value[k] = x
		case x.isZero():
			value[k] = y
		default:
			return out
		}
	}
	out.value = value
	return out
}

// from is the group of a value without its lowest n bits. Where these change
// others by a carry it is not exact.
func (g Group) from(n int) Group {
	if slices.ContainsFunc(g.value[:n], func(b bit) bool { return strings.Trim(b.how, "~") != "" }) {
		return g.inexact("its index is a part of a sum")
	}
	g.value = g.value[n:]
	fields := g.Fields
	g.Fields = nil
	for _, b := range g.value {
		if b.v != nil {
			g.Fields = union(g.Fields, []Field{{b.v, b.n, b.n}})
		}
	}
	if g.Marked {
		g.Fields = fields
	}
	return g
}

// byConstant is operator where one operand is a constant.
func (t *tracer) byConstant(e *ir.Expr, hi, lo, i int) (Group, bool) {
	x, c, first := e.Args[0], e.Args[1], false
	if c.Op != ir.Const {
		x, c, first = c, x, true
	}
	if c.Op != ir.Const || c.Value.Sign() < 0 && e.Op != "+" && e.Op != "-" {
		return Group{}, false
	}
	op, n := e.Op, c.Value
	power := n.Sign() > 0 && int(n.TrailingZeroBits()) == n.BitLen()-1
	switch {
	case op == "*" && power:
		op, n = "<<", big.NewInt(int64(n.BitLen()-1))
	case op == "/" && power && !first:
		op, n = ">>", big.NewInt(int64(n.BitLen()-1))
	case op == "%" && power && !first:
		op, n = "&", new(big.Int).Sub(n, big.NewInt(1))
	}
	w := hi + 1
	if x := width(x); x > 0 {
		w = x
	}
	switch {
	case op == "&" || op == "|":
		return t.masked(x, n, op == "|", hi, lo, i), true
	case op == "^":
		g := t.bits(x, hi, lo, i)
		if g.value != nil {
			g.value = slices.Clone(g.value)
			for k := range g.value {
				if n.Bit(lo+k) == 1 {
					g.value[k].how += "~"
				}
			}
		}
		return g, true
	case first && op != "+" && op != "-":
		return Group{}, false
	case op == ">>" && !e.Signed && n.IsInt64():
		shift := int(min(n.Int64(), 1<<20))
		return t.padded(hi, lo, max(w-shift, 0), false, func(hi, lo int) Group { return t.bits(x, hi+shift, lo+shift, i) }), true
	case op == "<<" && n.IsInt64():
		shift := int(min(n.Int64(), 1<<20))
		if hi < shift {
			return zeros(hi - lo + 1), true
		}
		if lo >= shift {
			return t.bits(x, hi-shift, lo-shift, i), true
		}
		return t.bits(x, hi-shift, 0, i).beside(zeros(shift - lo)), true
	case op == "+" || op == "-":
		// Bits above the sum's lowest ones depend on these too, unless nothing is
		// added there.
		if cutOut(n, max(lo-1, 0), 0).Sign() != 0 && lo > 0 || first && op == "-" && lo > 0 {
			return Group{}, false
		}
		if g := t.bits(x, hi, lo, i); op == "+" {
			if m := t.merged(g, t.bits(c, hi, lo, i)); m.value != nil {
				return m, true
			}
		}
		how := fmt.Sprintf("%s%s:%d", op, cutOut(n, hi, lo), hi-lo+1)
		if first {
			how += "'"
		}
		return t.bits(x, hi, lo, i).changed(how), true
	}
	return Group{}, false
}

// masked is the group of a value's bits hi..lo where a constant leaves them: an
// AND those where it is 1, an OR those where it is 0. Each run of bits is asked
// for by itself.
func (t *tracer) masked(x *ir.Expr, mask *big.Int, or bool, hi, lo, i int) Group {
	fixed, n := uint(0), 0
	if or {
		fixed, n = 1, 1
	}
	g := constantBits(nil)
	for k := lo; k <= hi; {
		top := k
		for top < hi && mask.Bit(top+1) == mask.Bit(k) {
			top++
		}
		run := Group{value: slices.Repeat([]bit{{n: n}}, top-k+1)}
		if mask.Bit(k) != fixed {
			run = t.bits(x, top, k, i)
		}
		g = run.beside(g)
		k = top + 1
	}
	return g
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
	if len(all) == 1 {
		return all[0]
	}
	var g Group
	agree, equal := true, true
	for _, a := range all {
		agree = agree && len(a.Fields) > 0 && slices.Equal(a.Names(), all[0].Names())
		equal = equal && a.value != nil && slices.Equal(a.value, all[0].value)
		g = g.with(a)
	}
	if equal {
		g.value = all[0].value
		return g
	}
	g = g.inexact("its index comes from one of several places")
	if !agree {
		g = g.with(decides())
	}
	return g
}

// location is the group of a location's bits where they are used. A type that
// is marked as a flow group identifier ends mappings that are not one to one: the
// programmer says that its values are the groups.
func (t *tracer) location(at traced) Group {
	if g := t.memo[at]; g != nil {
		return *g
	}
	t.memo[at] = &Group{why: "its index is computed in a loop"}
	g := constantBits(nil)
	for _, p := range t.r.flow.pieces(at.instr, at.v, at.hi, at.lo) {
		g = t.piece(p.defs, traced{at.instr, at.v, p.hi, p.lo}).beside(g)
	}
	if at.v.FlowGroup && g.value == nil && len(g.Fields) > 0 {
		if at.lo == 0 && at.hi == at.v.Bits-1 {
			g.Random, g.why, g.Marked = "", "", true
			names := strings.Join(g.Names(), ", ")
			for k := range at.v.Bits {
				g.value = append(g.value, bit{n: k, how: "id of " + names})
			}
		} else {
			g.value, g.why = nil, "bits of "+at.v.Name+" are used alone"
		}
	}
	t.memo[at] = &g
	return g
}

// piece is location of bits that the same definitions reach.
func (t *tracer) piece(defs []int, at traced) Group {
	whole := Group{Fields: []Field{{at.v, at.hi, at.lo}}}
	for k := at.lo; k <= at.hi; k++ {
		whole.value = append(whole.value, bit{v: at.v, n: k})
	}
	var all []Group
	original, initial := false, false
	for _, d := range defs {
		brought := at.v.Kind == ir.HeaderField || at.v.Kind == ir.Intrinsic
		switch {
		case brought && (d == entry || t.r.Program.Code[d].Op == ir.Extract && t.r.carried(d, at.v) == nil):
			if !original && !t.overwritten(d, defs, at.instr) { // one header of several paths through the parser
				all, original = append(all, whole), true
			}
		case d == entry && at.v.Kind == ir.Validity || d != entry && at.v.Kind == ir.Validity && t.r.Program.Code[d].Op == ir.Extract:
			initial = true
		case d == entry:
			initial = initial || !t.overwritten(d, defs, at.instr)
		case t.r.Program.Code[d].Op == ir.SetValid || t.r.Program.Code[d].Op == ir.SetInvalid:
			initial = true
		case !t.overwritten(d, defs, at.instr):
			all = append(all, t.definition(d, at))
		}
	}
	if len(all) == 0 {
		return zeros(at.hi - at.lo + 1)
	}
	g := t.arms(all, func() Group { return t.deciding(defs, at.instr) })
	if initial { // on some way nothing was written
		if len(g.Fields) > 0 {
			g = g.inexact(at.v.Name + " is not written on all ways to its use")
		} else {
			g.value = nil
		}
	}
	return g
}

// definition is the group of the value that instruction d gave a location.
func (t *tracer) definition(d int, at traced) Group {
	in := t.r.Program.Code[d]
	var g Group
	switch in.Op {
	case ir.Extract: // what another parser finds that the deparser before it wrote
		var all []Group
		for _, c := range t.r.carried(d, at.v) {
			all = append(all, t.bits(c.expr, at.hi, at.lo, c.instr))
		}
		return t.arms(all, func() Group { return Group{} })
	case ir.Assign:
		for _, def := range in.Defs {
			if def.Var == at.v && def.Lo <= at.lo && def.Hi >= at.hi {
				return t.bits(in.Args[0], at.hi-def.Lo, at.lo-def.Lo, d)
			}
		}
		return t.expr(in.Args[0], d).inexact("")
	case ir.Lookup:
		return t.key(in).inexact("entries of " + in.Object.Name + " supply its index, and two may supply the same")
	case ir.RegRead, ir.MeterExec:
		for _, s := range t.site(in) {
			g = g.with(s)
		}
		g.Random = "state"
		return g.inexact("")
	}
	for _, a := range in.Args {
		g = g.with(t.expr(a, d))
	}
	switch {
	case in.Op == ir.HashOp && in.Algorithm == "identity" && in.Max == nil && len(in.Args) == 1:
		return t.bits(in.Args[0], at.hi, at.lo, d)
	case in.Op == ir.HashOp && in.Algorithm == "identity":
		return g.inexact("its index is a part of " + g.String())
	case in.Op == ir.HashOp || in.Op == ir.Checksum:
		g.Random = "hash"
	case in.Op == ir.Random:
		g.Random = "random"
	default:
		g.Random = cmp.Or(in.Name, string(in.Op))
	}
	return g.inexact("")
}

// deciding is the group of the conditions that choose which of the definitions
// reaches instruction i. Which headers a packet has is not traced: all packets
// of a flow have the same.
func (t *tracer) deciding(defs []int, i int) Group {
	var g Group
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
				g = g.with(t.key(in))
				continue
			}
			for _, a := range in.Args {
				g = g.with(t.expr(a, in.ID))
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
