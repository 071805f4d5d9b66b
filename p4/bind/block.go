package bind

import (
	"strings"

	"nicprof/p4/ir"
	"nicprof/p4/source"
	"nicprof/p4/syntax"
)

type (
	// instance is an instance of an extern, a parser, a control or a package.
	instance struct {
		t     typ
		name  string
		full  string
		pos   source.Pos
		obj   *ir.Object
		args  []value // of the constructor, by parameter; nil when not given
		ctor  []*syntax.Param
		init  *syntax.InstanceDecl // with abstract methods
		scope *scope               // of the abstract methods
		block *blockState
		state value // what a checksum unit has summed up
	}
	// blockState is what all applications of a parser or control share.
	blockState struct {
		params  *scope
		locals  *scope
		done    bool
		tables  []*tableSym
		actions []*actionSym
	}
	// actionSym is an action in its control.
	actionSym struct {
		decl  *syntax.ActionDecl
		full  string
		scope *scope
		data  []value // parameters that table entries supply
		used  bool
	}
)

// qualify gives a name in the present block.
func (b *binder) qualify(name string) string {
	if b.prefix == "" {
		return name
	}
	return b.prefix + "." + name
}

// fullName is a declaration's name in the control plane.
func (b *binder) fullName(name string, as syntax.Annotations) string {
	if a := as.Find("name"); a != nil {
		if t, ok := a.Text(); ok && t != "" {
			if t[0] == '.' {
				return t[1:]
			}
			name = t
		}
	}
	return b.qualify(name)
}

// blockParams gives the parameters of a parser or control.
func blockParams(d syntax.Decl) (params, ctor []*syntax.Param) {
	switch d := d.(type) {
	case *syntax.ParserDecl:
		return d.Params, d.CtorParams
	case *syntax.ControlDecl:
		return d.Params, d.CtorParams
	case *syntax.PackageDecl:
		return nil, d.Params
	}
	return nil, nil
}

// apply lowers the application of a parser or control whose parameters have
// the given values.
func (b *binder) apply(i *instance, vals []value, pos source.Pos) {
	bt := i.t.(*blockType)
	bt.block.used = true
	st := i.block
	if st == nil {
		st = &blockState{params: newScope(bt.scope)}
		st.locals = newScope(st.params)
		i.block = st
	}
	params, ctor := blockParams(bt.block.decl)
	for k, p := range ctor {
		st.params.bind(p.Name, p.Pos, argument(i.args, k))
	}
	for k, p := range params {
		st.params.bind(p.Name, p.Pos, argument(vals, k))
	}
	at, prefix, this := b.at, b.prefix, b.this
	b.prefix, b.at.control, b.at.action, b.this = i.full, i.full, "", nil
	b.inline(&frame{}, func() {
		switch d := bt.block.decl.(type) {
		case *syntax.ControlDecl:
			b.locals(d.Locals, st)
			b.block(d.Apply, st.locals)
		case *syntax.ParserDecl:
			b.locals(d.Locals, st)
			b.states(d, st.locals)
		}
	})
	if !st.done {
		st.done = true
		b.unused(st)
	}
	b.at, b.prefix, b.this = at, prefix, this
}

func argument(vals []value, i int) value {
	if i < len(vals) {
		return vals[i]
	}
	return nil
}

// locals lowers the declarations of a parser or control: the first time all of
// them, then what happens at every application, the variables.
func (b *binder) locals(list []syntax.Decl, st *blockState) {
	sc := st.locals
	for _, d := range list {
		switch d := d.(type) {
		case *syntax.VarDecl:
			t := b.resolve(d.Type, sc)
			v := b.variable(d, t)
			if d.Init != nil {
				b.store(v, b.eval(d.Init, sc, t), d.Pos)
			} else {
				b.clear(v, d.Pos)
			}
			if !st.done {
				b.declare(sc, d.Name, d.Pos, v)
			}
			continue
		}
		if st.done {
			continue
		}
		switch d := d.(type) {
		case *syntax.ConstDecl:
			b.constDecl(d, sc)
		case *syntax.InstanceDecl:
			b.declare(sc, d.Name, d.Pos, b.instance(d, sc))
		case *syntax.ValueSetDecl:
			b.declare(sc, d.Name, d.Pos, b.valueSet(d, sc))
		case *syntax.ActionDecl:
			a := &actionSym{decl: d, full: b.fullName(d.Name, d.Annotations), scope: sc.body()}
			b.declare(sc, d.Name, d.Pos, a)
			st.actions = append(st.actions, a)
		case *syntax.TableDecl:
			t := b.table(d, sc.body())
			b.declare(sc, d.Name, d.Pos, t)
			st.tables = append(st.tables, t)
		case *syntax.FuncDecl:
			b.function(d, sc)
		}
	}
}

// unused lowers, for their errors alone, tables that are not applied and
// actions that are not called.
func (b *binder) unused(st *blockState) {
	b.scratch(func() {
		for _, t := range st.tables {
			if !t.used {
				b.applyTable(t, t.decl.Pos)
			}
		}
		for _, a := range st.actions {
			if !a.used {
				b.action(a, b.actionData(a), a.decl.Pos)
			}
		}
	})
}

// scratch lowers code that does not become part of the program.
func (b *binder) scratch(f func()) {
	code, open, exits, at := b.code, b.open, b.exits, b.at
	frame, loops, rejects := b.frame, b.loops, b.rejects
	b.code, b.open = nil, nil
	b.apart++
	b.emit(ir.Nop, source.Pos{})
	f()
	b.apart--
	b.code, b.open, b.exits, b.at = code, open, exits, at
	b.frame, b.loops, b.rejects = frame, loops, rejects
}

// actionData makes the parameters of an action that table entries supply.
func (b *binder) actionData(a *actionSym) []value {
	if a.data == nil {
		a.data = make([]value, len(a.decl.Params))
		for i, p := range a.decl.Params {
			t := b.resolve(p.Type, a.scope)
			kind := ir.ActionData
			if p.Dir != syntax.NoDir {
				kind = ir.Local
			}
			a.data[i] = b.storage(t, a.full+"."+p.Name, kind, "", isFlow(p.Annotations))
		}
	}
	return a.data
}

// action inlines an action's body with the given parameters. PSA's actions that
// drop are drops.
func (b *binder) action(a *actionSym, vals []value, pos source.Pos) {
	a.used = true
	if std, ok := argument(vals, 0).(*aggregate); ok && strings.HasSuffix(a.decl.Name, "gress_drop") && b.isArch(a.decl.Pos) {
		in := b.emit(ir.Drop, pos)
		in.Name = a.decl.Name
		v, _ := std.field("drop")
		in.Defs = defs(v)
		return
	}
	sc := newScope(a.scope)
	for i, p := range a.decl.Params {
		b.declare(sc, p.Name, p.Pos, argument(vals, i))
	}
	outer := b.at.action
	b.at.action = a.full
	b.inline(&frame{}, func() { b.block(a.decl.Body, sc) })
	b.at.action = outer
}

func (b *binder) constDecl(d *syntax.ConstDecl, sc *scope) {
	t := b.resolve(d.Type, sc)
	v := b.eval(d.Value, sc, t)
	if s, ok := v.(*scalar); ok {
		v = &scalar{t: t, e: s.e}
		if t == nil {
			v = &scalar{t: s.t, e: s.e}
		}
	}
	b.declare(sc, d.Name, d.Pos, v)
}

// instance makes the instance that a declaration asks for.
func (b *binder) instance(d *syntax.InstanceDecl, sc *scope) value {
	n := 1
	dt := d.Type
	if st, ok := dt.(*syntax.StackType); ok {
		dt = st.Elem
		n, _ = b.integer(st.Size, sc)
	}
	t := b.resolve(dt, sc)
	i := b.construct(t, d.Args, sc, d.Position(), dt.Position())
	if i == nil {
		return nil
	}
	i.name, i.full, i.pos = d.Name, b.fullName(d.Name, d.Annotations), d.Pos
	if i.t == nil {
		return i
	}
	if d.HasInit {
		i.init = d
		i.scope = newScope(sc)
		for _, m := range d.Init {
			switch m := m.(type) {
			case *syntax.InstanceDecl:
				b.declare(i.scope, m.Name, m.Pos, b.instance(m, sc))
			case *syntax.FuncDecl:
				b.resolve(m.Return, b.bindTypes(m.TypeParams, nil, sc))
			}
		}
	}
	if _, ok := t.(*externType); ok {
		b.object(i, d.Annotations, n)
	}
	b.abstract(i, d)
	return i
}

// construct calls a constructor. pos is where its arguments are counted, at
// where the type stands.
func (b *binder) construct(t typ, args []*syntax.Argument, sc *scope, pos, at source.Pos) *instance {
	i := &instance{t: base(t), pos: pos}
	switch x := base(t).(type) {
	case *externType:
		var all []*syntax.FuncDecl
		if !x.decl.Forward {
			for _, m := range x.decl.Methods {
				if m.Constructor || m.Name == x.decl.Name && m.Return == nil {
					all = append(all, m)
				}
			}
		}
		m, list := b.choose("constructor of "+x.decl.Name, all, args, pos)
		if m == nil {
			b.evalArgs(args, sc)
			return i
		}
		i.ctor = m.Params
		i.args = b.ctorArgs(m.Params, list, x.scope, sc)
	case *blockType:
		for _, o := range x.block.more {
			_, ctor := blockParams(x.block.decl)
			_, other := blockParams(o.decl)
			if _, ok := b.pair("", ctor, args, pos, true); ok {
				break
			}
			if _, ok := b.pair("", other, args, pos, true); ok {
				x = b.specialise(o, x.args, pos, false).(*blockType)
				i.t = x
			}
		}
		_, ctor := blockParams(x.block.decl)
		list, ok := b.pair("constructor of "+x.block.name, ctor, args, pos, false)
		if !ok {
			b.evalArgs(args, sc)
			return i
		}
		i.ctor = ctor
		i.args = b.ctorArgs(ctor, list, x.scope, sc)
		i.name, i.full = x.block.name, b.qualify(x.block.name)
	case nil:
		b.evalArgs(args, sc)
	default:
		b.errorf(at, "%s is not something that can be instantiated", name(t))
		b.evalArgs(args, sc)
		return nil
	}
	return i
}

func (b *binder) ctorArgs(params []*syntax.Param, list []*syntax.Argument, tsc, sc *scope) []value {
	vals := make([]value, len(params))
	for k, p := range params {
		t := b.resolve(p.Type, tsc)
		switch {
		case list[k] != nil:
			vals[k] = b.eval(list[k].Value, sc, t)
		case p.Default != nil:
			vals[k] = b.eval(p.Default, tsc, t)
		}
	}
	return vals
}

func (b *binder) evalArgs(args []*syntax.Argument, sc *scope) []value {
	var vals []value
	for _, a := range args {
		vals = append(vals, b.eval(a.Value, sc, nil))
	}
	return vals
}
