package bind

import (
	"fmt"
	"math/big"

	"nicprof/p4/ir"
	"nicprof/p4/source"
	"nicprof/p4/syntax"
)

// value is what an expression gives while a program is lowered: a *scalar, an
// *aggregate, a *text, *invalid, *rest, *typeName, *applied, or a symbol that
// an expression can name (*instance, *tableSym, *actionSym, …). nil is a value
// that is not known; it follows an error, or a type that is not bound.
type value any

type (
	// scalar is one value of the IR. It can be assigned when it has targets.
	scalar struct {
		t   typ
		e   *ir.Expr
		loc []ir.Def
	}
	// aggregate is a struct, header, union, tuple, stack or a list of values.
	// A list without a type has t nil; names are there for fields.
	aggregate struct {
		t     typ
		names []string
		elems []value
		valid *scalar   // of headers
		next  *scalar   // of stacks: index of the next element to extract
		first *ir.Instr // of stacks that a stage is given: sets next to 0, once something uses it
		name  string    // of headers and stacks: the instance
		union *aggregate
		isVar bool
	}
	text    struct{ s string }
	invalid struct{}
	// rest is default, _ or ... where an expression may stand.
	rest struct{}
	// typeName is a type named in an expression.
	typeName struct{ t typ }
	// applied is the outcome of a table's apply.
	applied struct{ table *tableSym }
)

func (a *aggregate) field(name string) (value, bool) {
	for i, n := range a.names {
		if n == name {
			return a.elems[i], true
		}
	}
	return nil, false
}

func typeOf(v value) typ {
	switch v := v.(type) {
	case *scalar:
		return v.t
	case *aggregate:
		if v.t == nil && v.names == nil {
			t := &tupleType{}
			for _, e := range v.elems {
				t.elems = append(t.elems, typeOf(e))
			}
			return t
		}
		return v.t
	case *text:
		return stringType
	case *instance:
		return v.t
	}
	return nil
}

func constant(n *big.Int, t typ) *scalar {
	s := &scalar{t: t, e: &ir.Expr{Op: ir.Const, Value: n}}
	s.e.Bits, s.e.Signed, s.e.Bool = shape(t)
	return s
}

func number(n int64, w int) *scalar {
	return constant(big.NewInt(n), &bitsType{syntax.Bit, w})
}

func boolean(v bool) *scalar {
	n := big.NewInt(0)
	if v {
		n = big.NewInt(1)
	}
	return constant(n, boolType)
}

// shape is what the IR keeps of a scalar's type.
func shape(t typ) (width int, signed, isBool bool) {
	switch x := base(t).(type) {
	case *bitsType:
		return x.width, x.kind == syntax.Int, false
	case *baseType:
		return bits(t), false, x.kind == syntax.Bool
	case *enumType:
		if x.under != nil {
			return shape(x.under)
		}
	}
	return bits(t), false, false
}

// opaque is a value that the IR does not describe.
func opaque(t typ, text string, args ...*ir.Expr) *scalar {
	s := &scalar{t: t, e: &ir.Expr{Op: ir.Any, Text: text, Args: args}}
	s.e.Bits, s.e.Signed, s.e.Bool = shape(t)
	return s
}

// fill builds a value of type t whose scalars come from leaf, which is told
// how each is called behind the value itself.
func fill(t typ, path string, leaf func(t typ, path string) *scalar) value {
	switch x := base(t).(type) {
	case *composite:
		a := &aggregate{t: t}
		for _, f := range x.fields {
			a.names = append(a.names, f.name)
			a.elems = append(a.elems, fill(f.t, path+"."+f.name, leaf))
		}
		if x.kind == syntax.Header {
			a.valid = leaf(boolType, path+".$valid")
		}
		return a
	case *tupleType:
		a := &aggregate{t: t}
		for i, e := range x.elems {
			a.elems = append(a.elems, fill(e, fmt.Sprintf("%s.f%d", path, i), leaf))
		}
		return a
	case *stackType:
		a := &aggregate{t: t}
		for i := range x.size {
			a.elems = append(a.elems, fill(x.elem, fmt.Sprintf("%s[%d]", path, i), leaf))
		}
		return a
	case *externType, *blockType:
		return nil
	}
	return leaf(t, path)
}

func opaqueValue(t typ, text string) value {
	return fill(t, "", func(t typ, path string) *scalar { return opaque(t, text+path) })
}

// storage makes the locations of a variable of type t.
func (b *binder) storage(t typ, name string, kind ir.VarKind, header string, flow bool) value {
	switch x := base(t).(type) {
	case *composite:
		a := &aggregate{t: t, name: name, isVar: true}
		inner := header
		if x.kind == syntax.Header {
			inner = name
			a.valid = b.location(boolType, name+".$valid", ir.Validity, name, false)
		}
		if x.arch && kind != ir.Local {
			kind, inner = ir.Intrinsic, "" // a header that TNA puts before the packet's is no packet's
		}
		for _, f := range x.fields {
			v := b.storage(f.t, name+"."+f.name, kind, inner, f.flow)
			if f.kept {
				for _, s := range scalars(v) {
					s.e.Var.Kept = true
				}
			}
			if h, ok := v.(*aggregate); ok && x.kind == syntax.HeaderUnion {
				h.union = a
			}
			a.names = append(a.names, f.name)
			a.elems = append(a.elems, v)
		}
		return a
	case *tupleType:
		a := &aggregate{t: t, name: name, isVar: true}
		for i, e := range x.elems {
			a.elems = append(a.elems, b.storage(e, fmt.Sprintf("%s.f%d", name, i), kind, header, false))
		}
		return a
	case *stackType:
		a := &aggregate{t: t, name: name, isVar: true}
		for i := range x.size {
			a.elems = append(a.elems, b.storage(x.elem, fmt.Sprintf("%s[%d]", name, i), kind, header, false))
		}
		a.next = b.location(&bitsType{syntax.Bit, 32}, name+".$next", ir.Local, "", false)
		return a
	case *externType:
		return &instance{t: t, name: name}
	case *blockType, *listType:
		return nil
	}
	return b.location(t, name, kind, header, flow)
}

// location makes one scalar location. A field of a header is a header field
// wherever the header lives.
func (b *binder) location(t typ, name string, kind ir.VarKind, header string, flow bool) *scalar {
	if header != "" && kind != ir.Validity {
		kind = ir.HeaderField
	}
	v := &ir.Var{Name: b.unique(name), Kind: kind, Header: header, FlowGroup: flow}
	v.Bits, v.Signed, _ = shape(t)
	for u := t; u != nil; {
		switch x := u.(type) {
		case *namedType:
			if v.Type == "" {
				v.Type = x.name
			}
			v.FlowGroup = v.FlowGroup || x.flow
			u = x.base
			continue
		case *enumType:
			if v.Type == "" {
				v.Type = x.decl.Name
			}
		}
		break
	}
	if v.ID = len(b.vars); v.ID >= maxVars {
		b.fatal("the program has more than %d storage locations", maxVars)
	}
	b.vars = append(b.vars, v)
	return variable(v, t)
}

func variable(v *ir.Var, t typ) *scalar {
	s := &scalar{t: t, e: &ir.Expr{Op: ir.Use, Var: v, Hi: max(v.Bits-1, 0)}}
	s.e.Bits, s.e.Signed, s.e.Bool = shape(t)
	s.loc = []ir.Def{{Var: v, Hi: s.e.Hi}}
	return s
}

// unique makes a name that no other location has.
func (b *binder) unique(name string) string {
	n := b.taken[name]
	for {
		n++
		try := name
		if n > 1 {
			try = fmt.Sprintf("%s#%d", name, n)
		}
		if n == 1 || b.taken[try] == 0 {
			b.taken[name] = n
			if n > 1 {
				b.taken[try] = 1
			}
			return try
		}
	}
}

// temp makes a location for an intermediate value.
func (b *binder) temp(t typ, what string) value {
	if base(t) == nil {
		t = nil
	}
	return b.storage(t, b.qualify("$"+what), ir.Local, "", false)
}

// scalars lists the scalars of a value, without valid bits.
func scalars(v value) []*scalar {
	switch v := v.(type) {
	case *scalar:
		return []*scalar{v}
	case *aggregate:
		var all []*scalar
		for _, e := range v.elems {
			all = append(all, scalars(e)...)
		}
		return all
	}
	return nil
}

func exprs(v value) []*ir.Expr {
	var all []*ir.Expr
	for _, s := range scalars(v) {
		all = append(all, s.e)
	}
	return all
}

// defs lists the locations that an assignment to the value defines.
func defs(v value) []ir.Def {
	var all []ir.Def
	for _, s := range scalars(v) {
		all = append(all, s.loc...)
	}
	return all
}

// headers lists the headers in a value: itself, those of a struct, a union or
// a stack.
func headers(v value) []*aggregate {
	a, ok := v.(*aggregate)
	if !ok {
		return nil
	}
	if a.valid != nil {
		return []*aggregate{a}
	}
	var all []*aggregate
	for _, e := range a.elems {
		all = append(all, headers(e)...)
	}
	return all
}

// expr gives a value as one expression of the IR.
func expr(v value) *ir.Expr {
	switch v := v.(type) {
	case *scalar:
		return v.e
	case *aggregate:
		es := exprs(v)
		if len(es) == 1 {
			return es[0]
		}
		return &ir.Expr{Op: ir.Any, Bits: bits(v.t), Args: es, Text: name(v.t)}
	case *text:
		return &ir.Expr{Op: ir.Any, Text: v.s}
	case *actionSym:
		return &ir.Expr{Op: ir.Any, Text: v.full}
	}
	return &ir.Expr{Op: ir.Any}
}

// coerce gives a value the type that its place asks for: integer literals get
// a width, lists become structs.
func (b *binder) coerce(v value, t typ, pos source.Pos) value {
	to := base(t)
	if to == nil {
		return v
	}
	switch v := v.(type) {
	case *scalar:
		if v.e.Op == ir.Const && v.e.Bits == 0 && v.t != nil && base(v.t) == typ(anyInt) {
			if w, _, _ := shape(t); w > 0 {
				return constant(wrap(v.e.Value, t), t)
			}
			return &scalar{t: t, e: v.e}
		}
		if v.t == nil {
			return &scalar{t: t, e: v.e, loc: v.loc}
		}
	case *aggregate:
		if v.t != nil {
			return v
		}
		return b.shapeList(v, t, pos)
	case *invalid:
		return v
	case *rest:
		return zero(t)
	}
	return v
}

// shapeList makes a list or a record a value of type t.
func (b *binder) shapeList(v *aggregate, t typ, pos source.Pos) value {
	a := &aggregate{t: t}
	item := func(i int, name string, et typ) {
		e := value(nil)
		if v.names != nil && name != "" {
			e, _ = v.field(name)
		} else if i < len(v.elems) {
			e = v.elems[i]
		}
		if e == nil && (v.names != nil || i >= len(v.elems)) {
			e = zero(et)
		}
		a.elems = append(a.elems, b.coerce(e, et, pos))
	}
	switch x := base(t).(type) {
	case *composite:
		for i, f := range x.fields {
			a.names = append(a.names, f.name)
			item(i, f.name, f.t)
		}
		if x.kind == syntax.Header {
			a.valid = boolean(true)
		}
	case *tupleType:
		for i, et := range x.elems {
			item(i, "", et)
		}
	case *stackType:
		for i := range x.size {
			item(i, "", x.elem)
		}
	case *listType:
		for i := range v.elems {
			item(i, "", x.elem)
		}
	default:
		return v
	}
	return a
}

// zero is the default value of a type.
func zero(t typ) value {
	return fill(t, "", func(t typ, _ string) *scalar { return constant(new(big.Int), t) })
}

// wrap reduces an integer to the width of a type.
func wrap(n *big.Int, t typ) *big.Int {
	w, signed, _ := shape(t)
	if w <= 0 || w > maxWidth {
		return n
	}
	m := new(big.Int).Lsh(big.NewInt(1), uint(w))
	r := new(big.Int).Mod(n, m)
	if signed && r.Bit(w-1) == 1 {
		r.Sub(r, m)
	}
	return r
}

// element gives the element of a stack or list at an index that is known only
// at run time: a choice when read, and any of them when written.
func (b *binder) element(a *aggregate, idx *ir.Expr, label string) value {
	if len(a.elems) == 0 {
		return nil
	}
	b.spend(len(a.elems))
	v := a.elems[len(a.elems)-1]
	for i := len(a.elems) - 2; i >= 0; i-- {
		is := &ir.Expr{Op: "==", Bits: 1, Bool: true, Args: []*ir.Expr{idx, {Op: ir.Const, Bits: idx.Bits, Value: big.NewInt(int64(i))}}}
		v = choose(is, a.elems[i], v)
	}
	if h, ok := v.(*aggregate); ok && len(a.elems) > 1 {
		h.name = a.name + label
		h.isVar = true
	}
	return v
}

// choose merges two values of one type by a condition.
func choose(c *ir.Expr, x, y value) value {
	switch x := x.(type) {
	case *scalar:
		y, ok := y.(*scalar)
		if !ok {
			return x
		}
		s := &scalar{t: x.t, e: &ir.Expr{Op: ir.Mux, Bits: x.e.Bits, Signed: x.e.Signed, Bool: x.e.Bool, Args: []*ir.Expr{c, x.e, y.e}}}
		if x.t == nil || x.e.Bits == 0 {
			s.t, s.e.Bits = y.t, y.e.Bits
		}
		if x.loc != nil && y.loc != nil {
			for _, d := range append(append([]ir.Def{}, x.loc...), y.loc...) {
				d.May = true
				s.loc = append(s.loc, d)
			}
		}
		return s
	case *aggregate:
		y, ok := y.(*aggregate)
		if !ok || len(x.elems) != len(y.elems) {
			return x
		}
		a := &aggregate{t: x.t, names: x.names}
		if a.t == nil {
			a.t = y.t
		}
		for i := range x.elems {
			a.elems = append(a.elems, choose(c, x.elems[i], y.elems[i]))
		}
		if x.valid != nil && y.valid != nil {
			a.valid = choose(c, x.valid, y.valid).(*scalar)
		}
		return a
	}
	return x
}
