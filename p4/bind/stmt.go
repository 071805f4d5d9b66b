package bind

import (
	"slices"

	"nicprof/p4/ir"
	"nicprof/p4/source"
	"nicprof/p4/syntax"
)

// frame is a body being inlined: where its returns lead.
type frame struct {
	returns []hole
	result  value
	t       typ // of the result
}

// loop is a for statement being lowered.
type loop struct {
	breaks, continues []hole
}

// inline lowers a body whose returns lead behind it.
func (b *binder) inline(f *frame, body func()) {
	outer, loops := b.frame, b.loops
	b.frame, b.loops = f, nil
	b.spend(1)
	if b.depth++; b.depth > maxDepth {
		b.fatal("calls are nested more than %d deep; P4 knows no recursion", maxDepth)
	}
	body()
	b.depth--
	b.open = append(b.open, f.returns...)
	b.frame, b.loops = outer, loops
}

// store lowers an assignment of a value to a location.
func (b *binder) store(to, v value, pos source.Pos) {
	switch to := to.(type) {
	case *scalar:
		if s, ok := b.coerce(v, to.t, pos).(*scalar); ok {
			b.assign(to, s.e, pos)
		} else {
			b.assign(to, expr(v), pos)
		}
	case *aggregate:
		b.storeAll(to, v, pos)
	}
}

func (b *binder) storeAll(to *aggregate, v value, pos source.Pos) {
	if _, ok := v.(*invalid); ok {
		for _, h := range headers(to) {
			b.validity(h, false, pos)
		}
		return
	}
	from, ok := b.coerce(v, to.t, pos).(*aggregate)
	if !ok || len(from.elems) != len(to.elems) {
		for _, s := range scalars(to) {
			b.assign(s, &ir.Expr{Op: ir.Any, Bits: s.e.Bits}, pos)
		}
		return
	}
	if !from.isVar && overlap(to, from) {
		t := b.temp(to.t, "copy")
		b.store(t, from, pos)
		from = t.(*aggregate)
	}
	for i, e := range to.elems {
		b.store(e, from.elems[i], pos)
	}
	if to.valid != nil && from.valid != nil {
		if isTrue(from.valid) {
			b.validity(to, true, pos)
		} else {
			b.assign(to.valid, from.valid.e, pos)
		}
	}
	if to.next != nil && from.next != nil {
		b.assign(to.next, from.next.e, pos)
	}
}

// overlap tells whether a location assigned early is used by a later element.
func overlap(to, from *aggregate) bool {
	written := map[*ir.Var]bool{}
	for i, e := range to.elems {
		if i > 0 && len(written) > 0 {
			for _, x := range exprs(from.elems[i]) {
				if uses(x, written) {
					return true
				}
			}
		}
		for _, d := range defs(e) {
			written[d.Var] = true
		}
	}
	return false
}

func uses(e *ir.Expr, vars map[*ir.Var]bool) bool {
	if e.Op == ir.Use && vars[e.Var] {
		return true
	}
	return slices.ContainsFunc(e.Args, func(a *ir.Expr) bool { return uses(a, vars) })
}

// validity lowers setValid and setInvalid. A header of a union that becomes
// valid makes the others invalid.
func (b *binder) validity(h *aggregate, valid bool, pos source.Pos) {
	op := ir.SetInvalid
	if valid {
		op = ir.SetValid
	}
	if h.valid == nil || len(h.valid.loc) == 0 {
		return
	}
	in := b.emit(op, pos)
	in.Header, in.Defs = h.name, h.valid.loc
	if valid {
		b.others(h, pos)
	}
}

func (b *binder) others(h *aggregate, pos source.Pos) {
	if h.union == nil {
		return
	}
	for _, o := range headers(h.union) {
		if o != h && o.valid != nil {
			in := b.emit(ir.SetInvalid, pos)
			in.Header, in.Defs = o.name, o.valid.loc
		}
	}
}

func (b *binder) block(s *syntax.BlockStmt, up *scope) {
	if s == nil {
		return
	}
	at := b.at
	if s.Annotations.Find("atomic") != nil {
		b.atomic("", s.Pos)
	}
	if a := s.Annotations.Find("branch"); a != nil {
		if t, ok := a.Text(); ok {
			b.at.region = t
		}
	}
	b.stmts(s.Stmts, newScope(up))
	b.at.atomic, b.at.region = at.atomic, at.region
}

// atomic opens an atomic region.
func (b *binder) atomic(name string, pos source.Pos) {
	for i, r := range b.atomics {
		if r.Pos == pos && r.Name == name {
			b.at.atomic = i + 1
			return
		}
	}
	b.atomics = append(b.atomics, ir.AtomicRegion{Pos: pos, Name: name})
	b.at.atomic = len(b.atomics)
}

func (b *binder) stmts(list []syntax.Stmt, sc *scope) {
	for _, s := range list {
		b.stmt(s, sc)
	}
}

func (b *binder) stmt(s syntax.Stmt, sc *scope) {
	switch s := s.(type) {
	case *syntax.BlockStmt:
		b.block(s, sc)
	case *syntax.DeclStmt:
		b.local(s.Decl, sc)
	case *syntax.AssignStmt:
		b.assignStmt(s, sc)
	case *syntax.CallStmt:
		b.call(s.Call, sc, nil)
	case *syntax.IfStmt:
		b.ifStmt(s, sc)
	case *syntax.SwitchStmt:
		b.switchStmt(s, sc)
	case *syntax.ReturnStmt:
		if s.Value != nil && b.frame != nil {
			v := b.eval(s.Value, sc, b.frame.t)
			if b.frame.result != nil {
				b.store(b.frame.result, v, s.Pos)
			}
		}
		if b.frame != nil {
			b.frame.returns = append(b.frame.returns, b.open...)
			b.open = nil
		}
	case *syntax.ExitStmt:
		b.exits = append(b.exits, b.open...)
		b.open = nil
	case *syntax.ForStmt:
		b.forStmt(s, sc)
	case *syntax.ForInStmt:
		b.forIn(s, sc)
	case *syntax.BreakStmt:
		if b.loops == nil {
			b.errorf(s.Pos, "break outside of a loop")
			return
		}
		b.loops.breaks = append(b.loops.breaks, b.open...)
		b.open = nil
	case *syntax.ContinueStmt:
		if b.loops == nil {
			b.errorf(s.Pos, "continue outside of a loop")
			return
		}
		b.loops.continues = append(b.loops.continues, b.open...)
		b.open = nil
	}
}

// local lowers a declaration among statements or in a state.
func (b *binder) local(d syntax.Decl, sc *scope) {
	switch d := d.(type) {
	case *syntax.VarDecl:
		t := b.resolve(d.Type, sc)
		v := b.variable(d, t)
		if d.Init != nil {
			b.store(v, b.eval(d.Init, sc, t), d.Pos)
		} else {
			b.clear(v, d.Pos)
		}
		b.declare(sc, d.Name, d.Pos, v)
	case *syntax.ConstDecl:
		b.constDecl(d, sc)
	case *syntax.InstanceDecl:
		b.declare(sc, d.Name, d.Pos, b.instance(d, sc))
	}
}

// variable gives the storage of a declared variable. It is one for each
// declaration and block instance, however often the declaration is lowered.
func (b *binder) variable(d *syntax.VarDecl, t typ) value {
	key := varKey{d, b.prefix, identity(t)}
	if v, ok := b.storages[key]; ok {
		return v
	}
	v := b.storage(t, b.qualify(d.Name), ir.Local, "", isFlow(d.Annotations))
	b.storages[key] = v
	return v
}

type varKey struct {
	decl   *syntax.VarDecl
	prefix string
	t      string
}

// clear makes the headers of a new variable invalid.
func (b *binder) clear(v value, pos source.Pos) {
	for _, h := range headers(v) {
		b.validity(h, false, pos)
	}
}

func (b *binder) assignStmt(s *syntax.AssignStmt, sc *scope) {
	left := b.eval(s.Left, sc, nil)
	b.grow(s.Pos)
	t := typeOf(left)
	if s.Op != "=" {
		x, ok := left.(*scalar)
		y, okY := b.eval(s.Right, sc, nil).(*scalar)
		if ok && okY {
			op := s.Op[:len(s.Op)-1]
			if op != "<<" && op != ">>" {
				x, y = b.unify(x, y, s.Pos)
			}
			b.store(left, fold(op, x, y, t), s.Pos)
		}
		return
	}
	right := b.eval(s.Right, sc, t)
	if left != nil && !assignable(left) {
		b.errorf(s.Left.Position(), "this cannot be assigned to")
		return
	}
	b.store(left, right, s.Pos)
}

// assignable tells whether a value is a place.
func assignable(v value) bool {
	switch v := v.(type) {
	case *scalar:
		return len(v.loc) > 0 || v.e.Op == ir.Any || v.e.Bits == 0
	case *aggregate:
		return v.isVar || len(v.elems) == 0 || assignable(v.elems[0])
	case *instance, *tableSym, *actionSym, *typeName, *text:
		return false
	}
	return true
}

func (b *binder) ifStmt(s *syntax.IfStmt, sc *scope) {
	c, _ := b.eval(s.Cond, sc, boolType).(*scalar)
	if c == nil {
		c = opaque(boolType, "if")
	}
	if c.e.Op == ir.Const {
		live, dead := s.Then, s.Else
		if c.e.Value.Sign() == 0 {
			live, dead = dead, live
		}
		if dead != nil {
			b.scratch(func() { b.stmt(dead, newScope(sc)) })
		}
		if live != nil {
			b.stmt(live, newScope(sc))
		}
		return
	}
	yes, no := b.branch(c.e, s.Pos)
	b.open = yes
	b.stmt(s.Then, newScope(sc))
	then := b.open
	b.open = no
	if s.Else != nil {
		b.stmt(s.Else, newScope(sc))
	}
	b.open = append(b.open, then...)
}

func (b *binder) switchStmt(s *syntax.SwitchStmt, sc *scope) {
	v := b.eval(s.Expr, sc, nil)
	m, _ := s.Expr.(*syntax.MemberExpr)
	onAction := m != nil && m.Name == "action_run"
	in := b.emit(ir.Switch, s.Pos)
	in.Args = []*ir.Expr{expr(v)}
	var out, open []hole
	hasDefault := false
	for _, c := range s.Cases {
		label := b.caseLabel(c.Label, sc, typeOf(v), onAction)
		hasDefault = hasDefault || label == "default"
		open = append(open, hole{in, label})
		if c.Body == nil {
			continue
		}
		b.open, open = open, nil
		b.block(c.Body, sc)
		out = append(out, b.open...)
	}
	out = append(out, open...)
	if !hasDefault {
		out = append(out, hole{in, "default"})
	}
	b.open = out
}

// caseLabel names a case: an action by its full name, a value in decimal.
func (b *binder) caseLabel(e syntax.Expr, sc *scope, t typ, onAction bool) string {
	if _, ok := e.(*syntax.DefaultExpr); ok {
		return "default"
	}
	v := b.eval(e, sc, t)
	switch v := v.(type) {
	case *actionSym:
		return v.full
	case *scalar:
		if onAction {
			b.errorf(e.Position(), "a case of action_run is the name of an action")
		}
		return label(v.e)
	case *valueSet:
		return v.obj.FullName
	}
	return label(expr(v))
}

// label is how a constant names an edge.
func label(e *ir.Expr) string {
	switch e.Op {
	case ir.Const:
		return e.Value.String()
	case "&&&", "..":
		return label(e.Args[0]) + string(e.Op) + label(e.Args[1])
	}
	return "?"
}

func (b *binder) forStmt(s *syntax.ForStmt, up *scope) {
	sc := newScope(up)
	b.stmts(s.Init, sc)
	head := b.emit(ir.Nop, s.Pos)
	var no []hole
	if s.Cond != nil {
		c, _ := b.eval(s.Cond, sc, boolType).(*scalar)
		if c == nil {
			c = opaque(boolType, "for")
		}
		b.open, no = b.branch(c.e, s.Cond.Position())
	}
	l := b.loopBody(func() { b.stmt(s.Body, newScope(sc)) })
	b.open = append(b.open, l.continues...)
	b.stmts(s.Post, sc)
	b.fill(b.open, head)
	b.open = append(no, l.breaks...)
}

func (b *binder) loopBody(body func()) *loop {
	outer := b.loops
	l := &loop{}
	b.loops = l
	body()
	b.loops = outer
	return l
}

// forIn lowers a loop over a range or a list: a copy of the body for each
// element when they are known and few, else a cycle.
func (b *binder) forIn(s *syntax.ForInStmt, up *scope) {
	sc := newScope(up)
	var t typ
	if s.Var.Type != nil {
		t = b.resolve(s.Var.Type, sc)
	}
	v := b.variable(s.Var, t)
	b.declare(sc, s.Var.Name, s.Var.Pos, v)
	var items []value
	r, isRange := s.Over.(*syntax.BinaryExpr)
	isRange = isRange && r.Op == ".."
	var lo, hi *scalar
	if isRange {
		lo, _ = b.eval(r.X, up, t).(*scalar)
		hi, _ = b.eval(r.Y, up, t).(*scalar)
		if lo == nil || hi == nil {
			lo, hi = opaque(t, ".."), opaque(t, "..")
		}
		if lo.e.Op == ir.Const && hi.e.Op == ir.Const && hi.e.Value.IsInt64() && lo.e.Value.IsInt64() {
			if n := hi.e.Value.Int64() - lo.e.Value.Int64() + 1; n <= maxUnroll && n > -maxUnroll {
				items = []value{}
				for i := lo.e.Value.Int64(); i <= hi.e.Value.Int64(); i++ {
					items = append(items, number(i, lo.e.Bits))
				}
			}
		}
	} else if a, ok := b.eval(s.Over, up, nil).(*aggregate); ok {
		items = append([]value{}, a.elems...)
	}
	var breaks []hole
	if items != nil {
		for _, item := range items {
			b.store(v, item, s.Pos)
			l := b.loopBody(func() { b.stmt(s.Body, newScope(sc)) })
			b.open = append(b.open, l.continues...)
			breaks = append(breaks, l.breaks...)
		}
		b.open = append(b.open, breaks...)
		return
	}
	i, ok := v.(*scalar)
	if !ok || lo == nil {
		b.stmt(s.Body, newScope(sc))
		return
	}
	b.assign(i, lo.e, s.Pos)
	head := b.emit(ir.Nop, s.Pos)
	yes, no := b.branch(fold("<=", i, hi, boolType).e, s.Pos)
	b.open = yes
	l := b.loopBody(func() { b.stmt(s.Body, newScope(sc)) })
	b.open = append(b.open, l.continues...)
	b.assign(i, fold("+", i, number(1, i.e.Bits), i.t).e, s.Pos)
	b.fill(b.open, head)
	b.open = append(no, l.breaks...)
}
