package bind

import (
	"math/big"
	"slices"

	"nicprof/p4/ir"
	"nicprof/p4/source"
	"nicprof/p4/syntax"
)

// eval lowers an expression: it emits what the expression does and gives its
// value. want is the type that its place asks for, nil when it asks for none.
func (b *binder) eval(e syntax.Expr, sc *scope, want typ) value {
	v := b.evalAny(e, sc, want)
	return b.coerce(v, want, e.Position())
}

func (b *binder) evalAny(e syntax.Expr, sc *scope, want typ) value {
	switch e := e.(type) {
	case *syntax.IntLit:
		if e.Width > 0 {
			kind := syntax.Bit
			if e.Signed {
				kind = syntax.Int
			}
			t := &bitsType{kind, e.Width}
			return constant(wrap(e.Value, t), t)
		}
		return constant(e.Value, anyInt)
	case *syntax.BoolLit:
		return boolean(e.Value)
	case *syntax.StringLit:
		return &text{e.Value}
	case *syntax.Ident:
		return b.ident(e, sc)
	case *syntax.ThisExpr:
		if b.this != nil {
			return b.this
		}
		b.errorf(e.Pos, "this stands outside of an instance's methods")
	case *syntax.TypeExpr:
		return &typeName{b.resolve(e.Type, sc)}
	case *syntax.MemberExpr:
		return b.member(e, sc)
	case *syntax.IndexExpr:
		return b.index(e, sc)
	case *syntax.SliceExpr:
		return b.slice(e, sc)
	case *syntax.UnaryExpr:
		return b.unary(e, sc, want)
	case *syntax.BinaryExpr:
		return b.binary(e, sc, want)
	case *syntax.MuxExpr:
		return b.mux(e, sc, want)
	case *syntax.CastExpr:
		return b.cast(e, sc)
	case *syntax.CallExpr:
		return b.call(e, sc, want)
	case *syntax.ListExpr:
		return b.list(e, sc, want)
	case *syntax.RecordExpr:
		return b.record(e, sc, want)
	case *syntax.InvalidExpr:
		return &invalid{}
	case *syntax.DefaultExpr:
		return &rest{}
	}
	return nil
}

func (b *binder) ident(e *syntax.Ident, sc *scope) value {
	if e.Global {
		sc = b.global
	}
	s := sc.find(e.Name)
	if s == nil {
		if e.Name == "error" {
			return &typeName{errorType}
		}
		if b.matchKinds[e.Name] {
			return &scalar{t: kindType, e: &ir.Expr{Op: ir.Any, Text: e.Name}}
		}
		b.undeclared(e.Pos, e.Name, sc, "name")
		return nil
	}
	switch d := s.def.(type) {
	case *typeSym:
		if d.decl == nil {
			return &typeName{d.t}
		}
		return &typeName{b.named(&syntax.NamedType{At: e.At, Name: e.Name, Global: e.Global}, sc, nil, false)}
	case *blockSym:
		return &typeName{b.specialise(d, nil, e.Pos, false)}
	}
	return s.def
}

// member evaluates X.Name: a field, a member of an enum, an outcome.
func (b *binder) member(e *syntax.MemberExpr, sc *scope) value {
	x := b.eval(e.X, sc, nil)
	switch x := x.(type) {
	case *typeName:
		return b.typeMember(x.t, e)
	case *applied:
		switch e.Name {
		case "hit":
			return x.table.hit
		case "miss":
			return not(x.table.hit)
		case "action_run":
			return x.table.run
		}
		b.errorf(e.NamePos, "apply has hit, miss and action_run, not %s", e.Name)
	case *aggregate:
		if v, ok := x.field(e.Name); ok {
			return v
		}
		if _, ok := base(x.t).(*stackType); ok {
			return b.stackMember(x, e)
		}
		if x.t == nil || !known(x.t) {
			return nil
		}
		b.errorf(e.NamePos, "%s has no field %s%s", name(x.t), e.Name, near(e.Name, x.names))
	}
	return nil
}

func near(name string, names []string) string {
	best, least := "", len(name)/2+1
	for _, n := range names {
		if d := distance(name, n); d < least {
			best, least = n, d
		}
	}
	if best == "" {
		return ""
	}
	return "; is " + best + " meant?"
}

func (b *binder) typeMember(t typ, e *syntax.MemberExpr) value {
	switch x := base(t).(type) {
	case *baseType:
		if x.kind == syntax.ErrorType {
			n, ok := b.errorsByName[e.Name]
			if !ok {
				b.errorf(e.NamePos, "error %s is not declared", e.Name)
				return nil
			}
			s := constant(big.NewInt(int64(n)), errorType)
			s.e.Text = "error." + e.Name
			return s
		}
	case *enumType:
		if v, ok := x.values[e.Name]; ok {
			return v
		}
		var names []string
		for _, m := range x.decl.Members {
			names = append(names, m.Name)
		}
		b.errorf(e.NamePos, "enum %s has no member %s%s", x.decl.Name, e.Name, near(e.Name, names))
	}
	return nil
}

// stackMember evaluates the members that a header stack has by itself.
func (b *binder) stackMember(a *aggregate, e *syntax.MemberExpr) value {
	n := &bitsType{syntax.Bit, 32}
	switch e.Name {
	case "size":
		return number(int64(len(a.elems)), 32)
	case "next":
		if a.next == nil {
			return nil
		}
		b.index0(a)
		v := b.element(a, a.next.e, ".next")
		b.grown = append(b.grown, a)
		return v
	case "last", "lastIndex":
		if a.next == nil {
			return nil
		}
		b.index0(a)
		last := fold("-", a.next, number(1, 32), n)
		if e.Name == "lastIndex" {
			return last
		}
		return b.element(a, last.e, ".last")
	}
	b.errorf(e.NamePos, "a header stack has no member %s", e.Name)
	return nil
}

// index0 has a stack's next index begin at 0.
func (b *binder) index0(a *aggregate) {
	if a.first != nil && a.first.Op == ir.Nop {
		a.first.Op = ir.Assign
		a.first.Defs, a.first.Args = a.next.loc, []*ir.Expr{number(0, 32).e}
	}
}

func (b *binder) index(e *syntax.IndexExpr, sc *scope) value {
	x := b.eval(e.X, sc, nil)
	i := b.eval(e.Index, sc, nil)
	switch x := x.(type) {
	case *aggregate:
		s, ok := i.(*scalar)
		if !ok {
			return nil
		}
		if s.e.Op != ir.Const {
			return b.element(x, s.e, "[]")
		}
		if n := s.e.Value; !n.IsInt64() || n.Int64() < 0 || n.Int64() >= int64(len(x.elems)) {
			if len(x.elems) > 0 && base(x.t) != nil || x.t == nil {
				b.errorf(e.Index.Position(), "index %s, but there are %d elements", n, len(x.elems))
			}
			return nil
		}
		return x.elems[s.e.Value.Int64()]
	case *instance:
		return x // an array of instances is one object
	}
	return nil
}

func (b *binder) slice(e *syntax.SliceExpr, sc *scope) value {
	x := b.eval(e.X, sc, nil)
	var hi, lo int
	var okHi, okLo bool
	if e.Width != nil {
		var w int
		w, okHi = b.integer(e.Width, sc)
		from, ok := b.eval(e.Lo, sc, nil).(*scalar)
		if ok && from.e.Op != ir.Const && okHi && w > 0 {
			return slideSlice(x, from, w)
		}
		lo, okLo = b.integer(e.Lo, sc)
		hi = lo + w - 1
	} else {
		hi, okHi = b.integer(e.Hi, sc)
		lo, okLo = b.integer(e.Lo, sc)
	}
	if !okHi || !okLo {
		return nil
	}
	s, ok := x.(*scalar)
	if !ok {
		return nil
	}
	if lo < 0 || hi < lo || s.e.Bits > 0 && hi >= s.e.Bits {
		b.errorf(e.Pos, "slice [%d:%d] of a value of %d bits", hi, lo, s.e.Bits)
		return nil
	}
	t := &bitsType{syntax.Bit, hi - lo + 1}
	r := &scalar{t: t}
	switch {
	case s.e.Op == ir.Const:
		n := new(big.Int).Rsh(s.e.Value, uint(lo))
		return constant(wrap(n, t), t)
	case s.e.Op == ir.Use:
		r.e = &ir.Expr{Op: ir.Use, Bits: hi - lo + 1, Var: s.e.Var, Hi: s.e.Lo + hi, Lo: s.e.Lo + lo}
	default:
		r.e = &ir.Expr{Op: ir.Slice, Bits: hi - lo + 1, Args: []*ir.Expr{s.e}, Hi: hi, Lo: lo}
	}
	for _, d := range s.loc {
		r.loc = append(r.loc, ir.Def{Var: d.Var, Hi: d.Lo + hi, Lo: d.Lo + lo, May: d.May})
	}
	return r
}

// slideSlice gives w bits of x from a bit on that only the run time knows: any
// of them may be read, or written.
func slideSlice(x value, from *scalar, w int) value {
	s, ok := x.(*scalar)
	if !ok {
		return nil
	}
	t := &bitsType{syntax.Bit, w}
	r := &scalar{t: t, e: &ir.Expr{Op: ir.Any, Bits: w, Args: []*ir.Expr{s.e, from.e}, Text: "slice"}}
	for _, d := range s.loc {
		d.May = true
		r.loc = append(r.loc, d)
	}
	return r
}

func not(s *scalar) *scalar {
	if s.e.Op == ir.Const {
		return boolean(s.e.Value.Sign() == 0)
	}
	return &scalar{t: boolType, e: &ir.Expr{Op: "!", Bits: 1, Bool: true, Args: []*ir.Expr{s.e}}}
}

func (b *binder) unary(e *syntax.UnaryExpr, sc *scope, want typ) value {
	s, ok := b.eval(e.X, sc, want).(*scalar)
	if !ok {
		return nil
	}
	switch e.Op {
	case "!":
		return not(s)
	case "+":
		return &scalar{t: s.t, e: s.e}
	}
	if s.e.Op == ir.Const && s.t != nil {
		n := new(big.Int)
		if e.Op == "-" {
			n.Neg(s.e.Value)
		} else {
			n.Not(s.e.Value)
		}
		return constant(wrap(n, s.t), s.t)
	}
	op := ir.ExprOp(e.Op)
	if e.Op == "-" {
		op = "neg"
	}
	return &scalar{t: s.t, e: &ir.Expr{Op: op, Bits: s.e.Bits, Signed: s.e.Signed, Args: []*ir.Expr{s.e}}}
}

var compares = []string{"==", "!=", "<", ">", "<=", ">="}

func (b *binder) binary(e *syntax.BinaryExpr, sc *scope, want typ) value {
	switch e.Op {
	case "&&", "||":
		return b.logical(e, sc)
	case "<<", ">>":
		x, _ := b.eval(e.X, sc, want).(*scalar)
		y, _ := b.eval(e.Y, sc, nil).(*scalar)
		if x == nil || y == nil {
			return nil
		}
		return fold(e.Op, x, y, x.t)
	case "++":
		x, _ := b.eval(e.X, sc, nil).(*scalar)
		y, _ := b.eval(e.Y, sc, nil).(*scalar)
		if x == nil || y == nil {
			return nil
		}
		t := &bitsType{syntax.Bit, x.e.Bits + y.e.Bits}
		if x.e.Signed {
			t.kind = syntax.Int
		}
		if t.width > maxWidth {
			b.errorf(e.Pos, "a value of %d bits; at most %d are possible", t.width, maxWidth)
			return nil
		}
		if x.e.Op == ir.Const && y.e.Op == ir.Const {
			n := new(big.Int).Lsh(wrap(x.e.Value, &bitsType{syntax.Bit, x.e.Bits}), uint(y.e.Bits))
			n.Or(n, wrap(y.e.Value, &bitsType{syntax.Bit, y.e.Bits}))
			return constant(wrap(n, t), t)
		}
		return &scalar{t: t, e: &ir.Expr{Op: ir.Concat, Bits: t.width, Signed: x.e.Signed, Args: []*ir.Expr{x.e, y.e}}}
	case "&&&", "..":
		x := b.eval(e.X, sc, want)
		y := b.eval(e.Y, sc, want)
		return &scalar{t: want, e: &ir.Expr{Op: ir.ExprOp(e.Op), Args: []*ir.Expr{expr(x), expr(y)}}}
	}
	isCompare := slices.Contains(compares, e.Op)
	inner := want
	if isCompare {
		inner = nil
	}
	v := b.eval(e.X, sc, inner)
	w := b.eval(e.Y, sc, inner)
	x, okX := v.(*scalar)
	y, okY := w.(*scalar)
	if isCompare && (!okX || !okY) {
		return b.compare(e.Op, v, w, e.Pos)
	}
	if !okX || !okY {
		return nil
	}
	x, y = b.unify(x, y, e.Pos)
	t := x.t
	if isCompare {
		t = boolType
	}
	if (e.Op == "/" || e.Op == "%") && y.e.Op == ir.Const && y.e.Value.Sign() == 0 {
		b.errorf(e.Pos, "division by zero")
		return nil
	}
	return fold(e.Op, x, y, t)
}

// unify gives an integer literal the type of the other operand.
func (b *binder) unify(x, y *scalar, pos source.Pos) (*scalar, *scalar) {
	if v, ok := b.coerce(x, y.t, pos).(*scalar); ok {
		x = v
	}
	if v, ok := b.coerce(y, x.t, pos).(*scalar); ok {
		y = v
	}
	return x, y
}

// compare lowers == and != of structs, headers, tuples and stacks.
func (b *binder) compare(op string, v, w value, pos source.Pos) value {
	if x, ok := v.(*aggregate); ok && x.t != nil {
		w = b.coerce(w, x.t, pos)
	} else if y, ok := w.(*aggregate); ok && y.t != nil {
		v = b.coerce(v, y.t, pos)
	}
	x, okX := v.(*aggregate)
	y, okY := w.(*aggregate)
	if !okX || !okY {
		// Against an invalid header, or something without a value.
		if _, ok := w.(*invalid); ok && okX && len(headers(x)) > 0 {
			return not(isValid(x))
		}
		return opaque(boolType, op, append(exprs(v), exprs(w)...)...)
	}
	all := boolean(true)
	and := func(p, q *scalar) {
		p, q = b.unify(p, q, pos)
		all = fold("&&", all, fold("==", p, q, boolType), boolType)
	}
	p, q := scalars(x), scalars(y)
	for i := range min(len(p), len(q)) {
		and(p[i], q[i])
	}
	if x.valid != nil && y.valid != nil {
		and(x.valid, y.valid)
	}
	if op == "!=" {
		return not(all)
	}
	return all
}

// logical lowers && and ||. When the right operand does something, it is a
// branch.
func (b *binder) logical(e *syntax.BinaryExpr, sc *scope) value {
	x, _ := b.eval(e.X, sc, boolType).(*scalar)
	if x == nil {
		x = opaque(boolType, e.Op)
	}
	if !acts(e.Y) {
		y, _ := b.eval(e.Y, sc, boolType).(*scalar)
		if y == nil {
			y = opaque(boolType, e.Op)
		}
		return fold(e.Op, x, y, boolType)
	}
	t, ok := b.temp(boolType, "cond").(*scalar)
	if !ok {
		return nil
	}
	b.assign(t, x.e, e.Pos)
	yes, no := b.branch(t.e, e.Pos)
	if e.Op == "||" {
		yes, no = no, yes
	}
	b.open = yes
	if y, ok := b.eval(e.Y, sc, boolType).(*scalar); ok {
		b.assign(t, y.e, e.Y.Position())
	}
	b.open = append(b.open, no...)
	return t
}

// acts tells whether an expression may do more than give a value.
func acts(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.CallExpr:
		if m, ok := e.Fun.(*syntax.MemberExpr); ok && len(e.Args) == 0 && (m.Name == "isValid" || m.Name == "lookahead" ||
			m.Name == "minSizeInBits" || m.Name == "minSizeInBytes" || m.Name == "maxSizeInBits" || m.Name == "maxSizeInBytes") {
			return acts(m.X)
		}
		return true
	case *syntax.MemberExpr:
		return acts(e.X)
	case *syntax.IndexExpr:
		return acts(e.X) || acts(e.Index)
	case *syntax.SliceExpr:
		return acts(e.X)
	case *syntax.UnaryExpr:
		return acts(e.X)
	case *syntax.BinaryExpr:
		return acts(e.X) || acts(e.Y)
	case *syntax.MuxExpr:
		return acts(e.Cond) || acts(e.Then) || acts(e.Else)
	case *syntax.CastExpr:
		return acts(e.X)
	case *syntax.ListExpr:
		return slices.ContainsFunc(e.Elems, acts)
	case *syntax.RecordExpr:
		return slices.ContainsFunc(e.Fields, func(a *syntax.Argument) bool { return acts(a.Value) })
	}
	return false
}

func (b *binder) mux(e *syntax.MuxExpr, sc *scope, want typ) value {
	c, _ := b.eval(e.Cond, sc, boolType).(*scalar)
	if c == nil {
		c = opaque(boolType, "?:")
	}
	if c.e.Op == ir.Const {
		live, dead := e.Then, e.Else
		if c.e.Value.Sign() == 0 {
			live, dead = dead, live
		}
		b.scratch(func() { b.eval(dead, sc, want) })
		return b.eval(live, sc, want)
	}
	if (acts(e.Then) || acts(e.Else)) && known(want) {
		t := b.temp(want, "mux")
		yes, no := b.branch(c.e, e.Pos)
		b.open = yes
		b.store(t, b.eval(e.Then, sc, want), e.Then.Position())
		then := b.open
		b.open = no
		b.store(t, b.eval(e.Else, sc, want), e.Else.Position())
		b.open = append(b.open, then...)
		return t
	}
	x := b.eval(e.Then, sc, want)
	y := b.eval(e.Else, sc, want)
	p, okP := x.(*scalar)
	q, okQ := y.(*scalar)
	if okP && okQ {
		p, q = b.unify(p, q, e.Pos)
		r := choose(c.e, p, q).(*scalar)
		r.loc = nil
		return r
	}
	x, y = b.coerce(x, typeOf(y), e.Pos), b.coerce(y, typeOf(x), e.Pos)
	return choose(c.e, x, y)
}

func (b *binder) cast(e *syntax.CastExpr, sc *scope) value {
	t := b.resolve(e.Type, sc)
	v := b.eval(e.X, sc, nil)
	switch x := v.(type) {
	case *scalar:
		if !known(t) {
			return &scalar{t: t, e: x.e}
		}
		if a, ok := base(t).(*composite); ok && len(a.fields) > 0 {
			return b.coerce(&aggregate{elems: []value{x}}, t, e.Pos)
		}
		w, signed, isBool := shape(t)
		if x.e.Op == ir.Const {
			c := constant(wrap(x.e.Value, t), t)
			if c.e.Text = x.e.Text; w == 0 {
				c.e.Bits = 0
			}
			return c
		}
		if w == x.e.Bits && isBool == x.e.Bool && signed == x.e.Signed {
			return &scalar{t: t, e: x.e}
		}
		return &scalar{t: t, e: &ir.Expr{Op: ir.Cast, Bits: w, Signed: signed, Bool: isBool, Args: []*ir.Expr{x.e}}}
	case *aggregate:
		if x.t == nil {
			return b.coerce(x, t, e.Pos)
		}
		if a, ok := base(t).(*composite); ok && len(a.fields) == len(x.elems) {
			return b.coerce(&aggregate{elems: x.elems}, t, e.Pos)
		}
		return x
	}
	return b.coerce(v, t, e.Pos)
}

func (b *binder) list(e *syntax.ListExpr, sc *scope, want typ) value {
	a := &aggregate{}
	et := func(i int) typ {
		switch x := base(want).(type) {
		case *composite:
			if i < len(x.fields) {
				return x.fields[i].t
			}
		case *tupleType:
			if i < len(x.elems) {
				return x.elems[i]
			}
		case *stackType:
			return x.elem
		case *listType:
			return x.elem
		}
		return nil
	}
	for i, x := range e.Elems {
		a.elems = append(a.elems, b.eval(x, sc, et(i)))
	}
	return a
}

func (b *binder) record(e *syntax.RecordExpr, sc *scope, want typ) value {
	a := &aggregate{names: []string{}}
	c, _ := base(want).(*composite)
	for _, f := range e.Fields {
		var ft typ
		if c != nil {
			i := slices.IndexFunc(c.fields, func(x field) bool { return x.name == f.Name })
			if i < 0 {
				var names []string
				for _, x := range c.fields {
					names = append(names, x.name)
				}
				b.errorf(f.Pos, "%s has no field %s%s", c.name, f.Name, near(f.Name, names))
				continue
			}
			ft = c.fields[i].t
		}
		a.names = append(a.names, f.Name)
		a.elems = append(a.elems, b.eval(f.Value, sc, ft))
	}
	return a
}

// integer evaluates a compile-time integer.
func (b *binder) integer(e syntax.Expr, sc *scope) (int, bool) {
	v := b.eval(e, sc, nil)
	s, ok := v.(*scalar)
	if !ok {
		return 0, false
	}
	if s.e.Op != ir.Const {
		if s.e.Op != ir.Any {
			b.errorf(e.Position(), "this has to be a compile-time constant")
		}
		return 0, false
	}
	if !s.e.Value.IsInt64() || s.e.Value.Int64() > 1<<40 || s.e.Value.Int64() < -1<<40 {
		b.errorf(e.Position(), "%s is out of range here", s.e.Value)
		return 0, false
	}
	return int(s.e.Value.Int64()), true
}
