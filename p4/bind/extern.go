package bind

import (
	"strings"

	"nicprof/p4/ir"
	"nicprof/p4/source"
	"nicprof/p4/syntax"
)

// extern is the call of an extern function or method.
type extern struct {
	name string
	fn   *syntax.FuncDecl
	inst *instance
	pos  source.Pos
	call *syntax.CallExpr
	args []value // by parameter; nil where none is given
	ret  typ     // nil for void or unknown
	void bool
}

// arg gives the argument of a parameter.
func (c *extern) arg(i int) value { return argument(c.args, i) }

func (c *extern) at(i int) *ir.Expr {
	if v := c.arg(i); v != nil {
		return expr(v)
	}
	return nil
}

// object makes the stateful object of an extern instance. What keeps no state
// from packet to packet has none.
func (b *binder) object(i *instance, as syntax.Annotations, n int) {
	x, ok := i.t.(*externType)
	if !ok || i.obj != nil {
		return
	}
	o := &ir.Object{Type: x.String(), Name: i.name, FullName: i.full, Pos: i.pos, Annotations: annotationNames(as)}
	ctor := func(name string) int64 {
		for k, p := range i.ctor {
			if p.Name == name {
				if s, ok := argument(i.args, k).(*scalar); ok && s.e.Op == ir.Const && s.e.Value.IsInt64() {
					return s.e.Value.Int64() * int64(n)
				}
			}
		}
		return 0
	}
	first := func() int64 {
		if len(i.ctor) == 0 {
			return 0
		}
		return ctor(i.ctor[0].Name)
	}
	typeArg := func(k int) int {
		if k < len(x.args) {
			return bits(x.args[k])
		}
		return 0
	}
	switch x.decl.Name {
	case "register", "Register", "DirectRegister":
		o.Kind = ir.Register
		if x.decl.Name != "DirectRegister" {
			o.Elements = first()
		}
		o.Bits, o.IndexBits = typeArg(0), typeArg(1)
		if len(x.decl.TypeParams) == 1 && x.decl.Name == "register" {
			o.IndexBits = 32
		}
	case "counter", "Counter", "CounterArray":
		o.Kind, o.Elements, o.Unit = ir.Counter, first(), b.unit(i)
		switch {
		case x.decl.Name == "Counter":
			o.Bits, o.IndexBits = typeArg(0), typeArg(1)
		case len(x.decl.TypeParams) == 1:
			o.IndexBits = typeArg(0)
		default:
			o.IndexBits = 32
		}
		if x.decl.Name == "CounterArray" {
			o.Unit, o.Bits = "packets", 32
		}
	case "direct_counter", "DirectCounter":
		o.Kind, o.Unit, o.Bits = ir.Counter, b.unit(i), typeArg(0)
	case "meter", "Meter":
		o.Kind, o.Elements, o.Unit, o.IndexBits = ir.Meter, first(), b.unit(i), typeArg(0)
		if len(x.decl.TypeParams) == 0 {
			o.IndexBits = 32
		}
	case "direct_meter", "DirectMeter":
		o.Kind, o.Unit = ir.Meter, b.unit(i)
	case "Lpf", "Wred", "DirectLpf", "DirectWred":
		o.Kind, o.Elements, o.Bits, o.IndexBits = ir.Other, first(), typeArg(0), typeArg(1)
	case "action_profile", "ActionProfile":
		o.Kind, o.Elements = ir.Profile, first()
	case "action_selector", "ActionSelector":
		o.Kind, o.Elements = ir.Selector, ctor("size")
	default:
		if stateless[x.decl.Name] || b.isArch(x.decl.Pos) {
			return
		}
		o.Kind = ir.Other
	}
	i.obj = b.newObject(o)
	if b.apart == 0 && !strings.HasPrefix(strings.ToLower(x.decl.Name), "direct") {
		b.kept[i.obj] = true
	}
}

// stateless are the externs, whoever declares them, that keep nothing from one
// packet to the next.
var stateless = map[string]bool{
	"packet_in": true, "packet_out": true, "Checksum16": true, "Hash": true, "Checksum": true,
	"InternetChecksum": true, "Random": true, "Digest": true, "Mirror": true, "Resubmit": true,
	"RegisterAction": true, "DirectRegisterAction": true, "CRCPolynomial": true, "MathUnit": true,
}

// unit is what a counter or meter counts, by its constructor's enum.
func (b *binder) unit(i *instance) string {
	for _, a := range i.args {
		s, ok := a.(*scalar)
		if !ok {
			continue
		}
		if e, ok := base(s.t).(*enumType); !ok || e.under != nil {
			continue
		}
		m := strings.ToLower(s.e.Text[strings.LastIndex(s.e.Text, ".")+1:])
		if m == "packets_and_bytes" {
			return "both"
		}
		return m
	}
	return ""
}

// abstract checks the methods that an instance defines.
func (b *binder) abstract(i *instance, d *syntax.InstanceDecl) {
	x, ok := i.t.(*externType)
	if !ok || x.decl.Forward {
		return
	}
	find := func(name string, abstract bool) *syntax.FuncDecl {
		for _, m := range x.decl.Methods {
			if m.Name == name && m.Abstract == abstract {
				return m
			}
		}
		return nil
	}
	for _, m := range d.Init {
		f, ok := m.(*syntax.FuncDecl)
		if !ok {
			continue
		}
		if find(f.Name, true) == nil {
			b.errorf(f.Pos, "%s has no abstract method %s", x.decl.Name, f.Name)
			continue
		}
		b.scratch(func() { b.abstractCall(i, f, b.freshParams(f, i.scope), f.Pos) })
	}
}

func (i *instance) method(name string) *syntax.FuncDecl {
	if i.init == nil {
		return nil
	}
	for _, m := range i.init.Init {
		if f, ok := m.(*syntax.FuncDecl); ok && f.Name == name {
			return f
		}
	}
	return nil
}

// freshParams makes values for the parameters of a body that nothing calls.
func (b *binder) freshParams(f *syntax.FuncDecl, sc *scope) []value {
	vals := make([]value, len(f.Params))
	for k, p := range f.Params {
		vals[k] = b.storage(b.resolve(p.Type, sc), b.qualify(f.Name+"."+p.Name), ir.Local, "", false)
	}
	return vals
}

// abstractCall inlines a method that an instance defines.
func (b *binder) abstractCall(i *instance, f *syntax.FuncDecl, vals []value, pos source.Pos) value {
	this := b.this
	b.this = i
	v := b.callBody(f, vals, newScope(i.scope), nil, pos)
	b.this = this
	return v
}

// method lowers the call of an extern's method.
func (b *binder) method(i *instance, f *syntax.MemberExpr, e *syntax.CallExpr, sc *scope, want typ) value {
	x, ok := i.t.(*externType)
	if !ok {
		b.evalArgs(e.Args, sc)
		return nil
	}
	var all []*syntax.FuncDecl
	var names []string
	for _, m := range x.decl.Methods {
		names = append(names, m.Name)
		if m.Name == f.Name && !m.Constructor {
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		if !x.decl.Forward {
			b.errorf(f.NamePos, "extern %s has no method %s%s", x.decl.Name, f.Name, near(f.Name, names))
		}
		b.evalArgs(e.Args, sc)
		return nil
	}
	m, list := b.choose("method "+x.decl.Name+"."+f.Name, all, e.Args, e.Pos)
	if m == nil {
		b.evalArgs(e.Args, sc)
		return nil
	}
	if body := i.method(f.Name); body != nil {
		vals := b.bindArgs(m.Params, list, newScope(x.scope), sc, "")
		return b.abstractCall(i, body, vals, e.Pos)
	}
	c := &extern{name: x.decl.Name + "." + f.Name, fn: m, inst: i, pos: e.Pos, call: e}
	b.externArgs(c, list, b.bindTypes(m.TypeParams, b.resolveAll(e.TypeArgs, sc), x.scope), sc, want)
	return b.extern(c)
}

// externArgs evaluates a call's arguments and the type of its result.
func (b *binder) externArgs(c *extern, list []*syntax.Argument, tsc, sc *scope, want typ) {
	if tsc == nil {
		tsc = newScope(b.global)
	}
	c.args = b.bindArgs(c.fn.Params, list, tsc, sc, "")
	t := b.resolve(c.fn.Return, tsc)
	switch {
	case t == nil:
	case base(t) == typ(voidType):
		c.void = true
	case known(t):
		c.ret = t
	default:
		c.ret = want
	}
}

// extern lowers a call of an extern: what the analysis knows by its name, and
// everything else as an instruction that reads in and defines out arguments.
func (b *binder) extern(c *extern) value {
	if f := lowerings[c.name]; f != nil {
		if v, ok := f(b, c); ok {
			b.grow(c.pos)
			return v
		}
	}
	in := &ir.Instr{Op: ir.Extern, Name: c.name}
	v := b.other(c, in)
	b.grow(c.pos)
	return v
}

// other emits an instruction made of a call's arguments and gives its result.
func (b *binder) other(c *extern, like *ir.Instr) value {
	var in *ir.Instr
	var args []*ir.Expr
	var outs []ir.Def
	of := ""
	for k, p := range c.fn.Params {
		v := c.arg(k)
		if v == nil {
			continue
		}
		if p.Dir != syntax.Out {
			switch v := v.(type) {
			case *scalar, *aggregate, *text, *actionSym:
				if a, ok := v.(*aggregate); ok && known(a.t) {
					of = name(a.t)
				}
				if es := exprs(v); len(es) > 0 {
					args = append(args, es...)
				} else {
					args = append(args, expr(v))
				}
			}
		}
		if p.Dir == syntax.Out || p.Dir == syntax.InOut {
			outs = append(outs, defs(v)...)
		}
	}
	var result value
	if !c.void {
		result = b.temp(c.ret, strings.ToLower(c.name[strings.LastIndex(c.name, ".")+1:]))
		outs = append(defs(result), outs...)
	}
	in = b.emit(like.Op, c.pos)
	in.Name, in.Args, in.Defs, in.Object, in.Index, in.Type = like.Name, args, outs, like.Object, like.Index, of
	in.Algorithm, in.Base, in.Max = like.Algorithm, like.Base, like.Max
	if c.inst != nil && in.Object == nil {
		in.Object = c.inst.obj
	}
	return result
}
