package bind

import (
	"fmt"
	"slices"

	"nicprof/p4/ir"
	"nicprof/p4/source"
	"nicprof/p4/syntax"
)

// optional tells whether a parameter may go without argument.
func optional(p *syntax.Param) bool {
	return p.Default != nil || p.Annotations.Find("optional") != nil
}

// pair gives every parameter its argument, nil where it has none. When it
// cannot, that is an error, or only false when quiet.
func (b *binder) pair(what string, params []*syntax.Param, args []*syntax.Argument, pos source.Pos, quiet bool) ([]*syntax.Argument, bool) {
	list := make([]*syntax.Argument, len(params))
	fail := func(pos source.Pos, format string, a ...any) ([]*syntax.Argument, bool) {
		if !quiet {
			b.errorf(pos, format, a...)
		}
		return nil, false
	}
	if len(args) > len(params) {
		return fail(pos, "%s takes %s, %d given", what, count(params), len(args))
	}
	for i, a := range args {
		k := i
		if a.Name != "" {
			k = slices.IndexFunc(params, func(p *syntax.Param) bool { return p.Name == a.Name })
			if k < 0 {
				return fail(a.Pos, "%s has no parameter %s", what, a.Name)
			}
			if list[k] != nil {
				return fail(a.Pos, "%s is given twice", a.Name)
			}
		}
		list[k] = a
	}
	for k, p := range params {
		if list[k] == nil && !optional(p) {
			return fail(pos, "%s takes %s, %d given: %s is missing", what, count(params), len(args), p.Name)
		}
	}
	return list, true
}

func count(params []*syntax.Param) string {
	n := 0
	for _, p := range params {
		if !optional(p) {
			n++
		}
	}
	s := fmt.Sprintf("%d arguments", len(params))
	if len(params) == 1 {
		s = "1 argument"
	}
	if n < len(params) {
		s = fmt.Sprintf("%d to %s", n, s)
	}
	return s
}

// choose finds the overload that arguments fit.
func (b *binder) choose(what string, all []*syntax.FuncDecl, args []*syntax.Argument, pos source.Pos) (*syntax.FuncDecl, []*syntax.Argument) {
	for i, f := range all {
		if list, ok := b.pair(what, f.Params, args, pos, true); ok {
			for _, o := range all[i+1:] {
				if f.Body != nil && o.Body != nil && sameParams(f.Params, o.Params) {
					b.errorf(pos, "%s is declared twice with these parameters, at %s and %s", what, f.Pos, o.Pos)
				}
			}
			return f, list
		}
	}
	switch len(all) {
	case 0:
		if len(args) > 0 {
			b.errorf(pos, "the %s takes no arguments, %d given", what, len(args))
		}
	case 1:
		b.pair(what, all[0].Params, args, pos, false)
	default:
		b.errorf(pos, "no %s takes %d arguments", what, len(args))
	}
	return nil, nil
}

// call lowers a call and gives its value.
func (b *binder) call(e *syntax.CallExpr, sc *scope, want typ) value {
	switch f := e.Fun.(type) {
	case *syntax.MemberExpr:
		return b.methodCall(e, f, sc, want)
	case *syntax.Ident:
		from := sc
		if f.Global {
			from = b.global
		}
		s := from.find(f.Name)
		if s == nil {
			b.undeclared(f.Pos, f.Name, from, "function")
			b.evalArgs(e.Args, sc)
			return nil
		}
		switch d := s.def.(type) {
		case *funcSym:
			return b.callFunction(d, e, sc, want)
		case *actionSym:
			list, ok := b.pair("action "+d.decl.Name, d.decl.Params, e.Args, e.Pos, false)
			if !ok {
				b.evalArgs(e.Args, sc)
				return nil
			}
			vals := b.bindArgs(d.decl.Params, list, d.scope, sc, "")
			b.action(d, b.copies(d, vals, e.Pos), e.Pos)
			return nil
		case *typeSym, *blockSym:
			t := b.named(&syntax.NamedType{At: f.At, Name: f.Name, Global: f.Global}, sc, b.resolveAll(e.TypeArgs, sc), len(e.TypeArgs) > 0)
			return b.made(b.construct(t, e.Args, sc, e.Pos, f.Pos))
		}
		b.errorf(f.Pos, "%s is not something that can be called", f.Name)
	case *syntax.TypeExpr:
		return b.made(b.construct(b.resolve(f.Type, sc), e.Args, sc, e.Pos, f.Pos))
	default:
		b.eval(e.Fun, sc, nil)
	}
	b.evalArgs(e.Args, sc)
	return nil
}

// made keeps a nil instance from becoming a value.
func (b *binder) made(i *instance) value {
	if i == nil {
		return nil
	}
	return i
}

func (b *binder) resolveAll(list []syntax.Type, sc *scope) []typ {
	var ts []typ
	for _, t := range list {
		ts = append(ts, b.resolve(t, sc))
	}
	return ts
}

// bindArgs evaluates arguments for parameters: out and inout ones are the
// caller's places, in ones its values.
func (b *binder) bindArgs(params []*syntax.Param, list []*syntax.Argument, tsc, sc *scope, label string) []value {
	vals := make([]value, len(params))
	places := map[*ir.Var]bool{}
	for i, p := range params {
		t := b.resolve(p.Type, tsc)
		switch {
		case list[i] == nil && p.Default != nil:
			vals[i] = b.eval(p.Default, tsc, t)
		case list[i] == nil:
		case p.Dir == syntax.Out || p.Dir == syntax.InOut:
			v := b.eval(list[i].Value, sc, nil)
			if _, ok := v.(*rest); ok {
				v = b.temp(t, "unused")
			}
			if v != nil && !assignable(v) {
				if _, ok := v.(*instance); !ok {
					b.errorf(list[i].Value.Position(), "the argument of an %s parameter must be assignable", p.Dir)
					v = nil
				}
			}
			vals[i] = b.retype(v, t)
			for _, d := range defs(v) {
				places[d.Var] = true
			}
		default:
			v := b.eval(list[i].Value, sc, t)
			vals[i] = b.readOnly(b.retype(v, t))
		}
		b.infer(p.Type, vals[i], tsc)
	}
	for i, p := range params {
		if p.Dir == syntax.Out || p.Dir == syntax.InOut || list[i] == nil {
			continue
		}
		s, ok := vals[i].(*scalar)
		if ok && s.e.Op != ir.Const && (s.e.Op != ir.Use || places[s.e.Var]) && label != "" {
			vals[i] = b.copied(s, label+p.Name, list[i].Pos)
		}
	}
	return vals
}

// copied assigns a value to a location of its own.
func (b *binder) copied(s *scalar, name string, pos source.Pos) value {
	to := b.location(s.t, name, ir.Local, "", false)
	b.assign(to, s.e, pos)
	return b.readOnly(to)
}

// copies keeps what an action's parameters stand for when its body may change
// it before they are read.
func (b *binder) copies(a *actionSym, vals []value, pos source.Pos) []value {
	if len(a.decl.Body.Stmts) == 0 {
		return vals
	}
	if len(a.decl.Body.Stmts) == 1 {
		switch a.decl.Body.Stmts[0].(type) {
		case *syntax.AssignStmt, *syntax.CallStmt:
			return vals
		}
	}
	vals = slices.Clone(vals)
	for i, p := range a.decl.Params {
		s, ok := vals[i].(*scalar)
		isData := ok && s.e.Op == ir.Use && s.e.Var.Kind == ir.ActionData
		if ok && s.e.Op != ir.Const && !isData && p.Dir != syntax.Out && p.Dir != syntax.InOut {
			vals[i] = b.copied(s, a.full+"."+p.Name, pos)
		}
	}
	return vals
}

// retype gives a value the declared type of what stands for it.
func (b *binder) retype(v value, t typ) value {
	if s, ok := v.(*scalar); ok && known(t) {
		return &scalar{t: t, e: s.e, loc: s.loc}
	}
	return v
}

func (b *binder) readOnly(v value) value {
	if s, ok := v.(*scalar); ok {
		return &scalar{t: s.t, e: s.e}
	}
	return v
}

// infer binds type parameters that a parameter's type names to the type of its
// argument.
func (b *binder) infer(t syntax.Type, v value, sc *scope) {
	n, ok := t.(*syntax.NamedType)
	if !ok || sc == nil {
		return
	}
	s := sc.names[n.Name]
	if s == nil {
		return
	}
	d, ok := s.def.(*typeSym)
	if !ok || d.decl != nil {
		return
	}
	if _, open := d.t.(*paramType); !open {
		return
	}
	if vt := typeOf(v); vt != nil {
		s.def = &typeSym{t: vt}
	}
}

func (b *binder) callFunction(d *funcSym, e *syntax.CallExpr, sc *scope, want typ) value {
	f, list := b.choose("function "+d.name, d.decls, e.Args, e.Pos)
	if f == nil {
		b.evalArgs(e.Args, sc)
		return nil
	}
	if len(e.TypeArgs) > 0 && len(e.TypeArgs) != len(f.TypeParams) {
		b.errorf(e.Pos, "function %s has %d type parameters, %d type arguments are given", d.name, len(f.TypeParams), len(e.TypeArgs))
	}
	tsc := b.bindTypes(f.TypeParams, b.resolveAll(e.TypeArgs, sc), d.scope[f])
	if f.Body == nil {
		c := &extern{name: d.name, fn: f, pos: e.Pos, call: e}
		b.externArgs(c, list, tsc, sc, want)
		return b.extern(c)
	}
	d.used[f] = true
	vals := b.bindArgs(f.Params, list, tsc, sc, b.qualify(f.Name)+".")
	return b.callBody(f, vals, tsc, want, e.Pos)
}

// callBody inlines a function's body.
func (b *binder) callBody(f *syntax.FuncDecl, vals []value, tsc *scope, want typ, pos source.Pos) value {
	if b.running[f] {
		b.errorf(pos, "function %s is not declared in its own body: P4 knows no recursion", f.Name)
		return nil
	}
	b.running[f] = true
	defer delete(b.running, f)
	inner := newScope(tsc)
	for i, p := range f.Params {
		b.declare(inner, p.Name, p.Pos, vals[i])
	}
	t := b.resolve(f.Return, tsc)
	fr := &frame{t: t}
	if t != nil && base(t) != typ(voidType) {
		if !known(t) {
			t = want
		}
		fr.t = t
		fr.result = b.temp(t, f.Name)
	}
	b.inline(fr, func() { b.block(f.Body, inner) })
	return fr.result
}

func (b *binder) methodCall(e *syntax.CallExpr, f *syntax.MemberExpr, sc *scope, want typ) value {
	x := b.eval(f.X, sc, nil)
	switch x := x.(type) {
	case *tableSym:
		if f.Name != "apply" {
			b.errorf(f.NamePos, "a table has apply, not %s", f.Name)
			return nil
		}
		if len(e.Args) > 0 {
			b.errorf(e.Pos, "apply of a table takes no arguments, %d given", len(e.Args))
		}
		return b.applyTable(x, e.Pos)
	case *typeName:
		if n, ok := sizes(f.Name, x.t); ok {
			b.noArguments(e, f.Name)
			return n
		}
		bt, ok := x.t.(*blockType)
		if !ok || f.Name != "apply" {
			if known(x.t) {
				b.errorf(f.NamePos, "%s has no method %s", name(x.t), f.Name)
			}
			break
		}
		// Type.apply(…) is an instance without a name, one at each place.
		key := directKey{f, b.prefix, identity(bt)}
		i := b.direct[key]
		if i == nil {
			i = b.construct(bt, nil, sc, e.Pos, f.Pos)
			b.direct[key] = i
		}
		b.applyInstance(i, e, sc)
		return nil
	case *instance:
		if bt, ok := x.t.(*blockType); ok {
			if f.Name != "apply" {
				b.errorf(f.NamePos, "%s has apply, not %s", bt.block.name, f.Name)
				break
			}
			b.applyInstance(x, e, sc)
			return nil
		}
		if x.t == nil {
			break
		}
		return b.method(x, f, e, sc, want)
	case *aggregate:
		return b.builtin(x, f, e, sc)
	case *scalar:
		if n, ok := sizes(f.Name, x.t); ok {
			b.noArguments(e, f.Name)
			return n
		}
		if known(x.t) {
			b.errorf(f.NamePos, "%s has no method %s", name(x.t), f.Name)
		}
	}
	b.evalArgs(e.Args, sc)
	return nil
}

// sizes gives the value of the methods that tell a type's size. Of a varbit
// both sizes are the largest.
func sizes(method string, t typ) (value, bool) {
	switch method {
	case "minSizeInBits", "maxSizeInBits":
		return constant(bigInt(bits(t)), anyInt), true
	case "minSizeInBytes", "maxSizeInBytes":
		return constant(bigInt((bits(t)+7)/8), anyInt), true
	}
	return nil, false
}

// noArguments reports arguments of a method that has no parameters.
func (b *binder) noArguments(e *syntax.CallExpr, method string) {
	if len(e.Args)+len(e.TypeArgs) > 0 {
		b.errorf(e.Pos, "%s takes no arguments, %d are given, and no type arguments, %d are given", method, len(e.Args), len(e.TypeArgs))
	}
}

type directKey struct {
	at     *syntax.MemberExpr
	prefix string
	t      string
}

// applyInstance lowers the application of a parser or control to arguments.
func (b *binder) applyInstance(i *instance, e *syntax.CallExpr, sc *scope) {
	bt, ok := i.t.(*blockType)
	if !ok {
		b.evalArgs(e.Args, sc)
		return
	}
	params, _ := blockParams(bt.block.decl)
	list, ok := b.pair("apply of "+bt.block.name, params, e.Args, e.Pos, false)
	if !ok {
		b.evalArgs(e.Args, sc)
		return
	}
	vals := b.bindArgs(params, list, bt.scope, sc, i.full+".")
	b.apply(i, vals, e.Pos)
}

// builtin lowers the methods of headers, unions and stacks.
func (b *binder) builtin(a *aggregate, f *syntax.MemberExpr, e *syntax.CallExpr, sc *scope) value {
	vals := b.evalArgs(e.Args, sc)
	c, _ := base(a.t).(*composite)
	_, isStack := base(a.t).(*stackType)
	want := 0
	switch f.Name {
	case "push_front", "pop_front":
		want = 1
	}
	if known(a.t) && len(e.Args) != want {
		b.errorf(e.Pos, "%s takes %d arguments, %d given", f.Name, want, len(e.Args))
		return nil
	}
	if n, ok := sizes(f.Name, a.t); ok {
		return n
	}
	switch {
	case f.Name == "isValid":
		return isValid(a)
	case f.Name == "setValid", f.Name == "setInvalid":
		b.grow(e.Pos)
		if isStack || c != nil && c.kind == syntax.HeaderUnion {
			for _, h := range headers(a) {
				b.validity(h, f.Name == "setValid", e.Pos)
			}
			return nil
		}
		b.validity(a, f.Name == "setValid", e.Pos)
		return nil
	case isStack && (f.Name == "push_front" || f.Name == "pop_front"):
		if s, ok := vals[0].(*scalar); ok && s.e.Op == ir.Const {
			b.shift(a, int(s.e.Value.Int64()), f.Name == "push_front", e.Pos)
		}
		return nil
	}
	if known(a.t) {
		b.errorf(f.NamePos, "%s has no method %s", name(a.t), f.Name)
	}
	return nil
}

// shift lowers push_front and pop_front: elements move up or down by n.
func (b *binder) shift(a *aggregate, n int, up bool, pos source.Pos) {
	size := len(a.elems)
	n = min(max(n, 0), size)
	move := func(i, from int) {
		if from >= 0 && from < size {
			b.store(a.elems[i], a.elems[from], pos)
		} else {
			for _, h := range headers(a.elems[i]) {
				b.validity(h, false, pos)
			}
		}
	}
	if up {
		for i := size - 1; i >= 0; i-- {
			move(i, i-n)
		}
	} else {
		for i := range size {
			move(i, i+n)
		}
	}
	if a.next != nil {
		b.index0(a)
		op := "|-|"
		if up {
			op = "|+|"
		}
		b.assign(a.next, fold(op, a.next, number(int64(n), 32), a.next.t).e, pos)
	}
}

// grow moves the next index of the stacks whose next element was written.
func (b *binder) grow(pos source.Pos) {
	for _, a := range b.grown {
		b.assign(a.next, fold("+", a.next, number(1, 32), a.next.t).e, pos)
	}
	b.grown = nil
}
