package bind

import (
	"math/big"
	mathbits "math/bits"

	"nicprof/p4/ir"
	"nicprof/p4/source"
	"nicprof/p4/syntax"
)

type (
	// tableSym is a table in its control.
	tableSym struct {
		decl    *syntax.TableDecl
		scope   *scope
		full    string
		obj     *ir.Object
		hit     *scalar
		run     *scalar
		actions []tableAction
		used    bool
		ready   bool
	}
	// tableAction is an action of a table with the arguments bound to it.
	tableAction struct {
		action *actionSym
		args   []*syntax.Argument // by parameter; nil where entries supply it
	}
	// valueSet is a set that the control plane fills.
	valueSet struct {
		obj *ir.Object
		t   typ
	}
)

func bigInt(n int) *big.Int { return big.NewInt(int64(n)) }

func (b *binder) valueSet(d *syntax.ValueSetDecl, sc *scope) *valueSet {
	n, _ := b.integer(d.Size, sc)
	t := b.resolve(d.Type, sc)
	v := &valueSet{t: t, obj: b.newObject(&ir.Object{Kind: ir.ValueSet, Type: name(t), Name: d.Name,
		FullName: b.fullName(d.Name, d.Annotations), Pos: d.Pos, Elements: int64(n), Bits: bits(t),
		Annotations: annotationNames(d.Annotations)})}
	if b.apart == 0 {
		b.kept[v.obj] = true
	}
	return v
}

func (b *binder) newObject(o *ir.Object) *ir.Object {
	o.ID = len(b.objects)
	b.objects = append(b.objects, o)
	return o
}

func annotationNames(as syntax.Annotations) []string {
	var names []string
	for _, a := range as {
		names = append(names, a.Name)
	}
	return names
}

// table declares a table; what its keys and actions name is looked up when it
// is first applied.
func (b *binder) table(d *syntax.TableDecl, sc *scope) *tableSym {
	t := &tableSym{decl: d, scope: sc, full: b.fullName(d.Name, d.Annotations)}
	t.obj = b.newObject(&ir.Object{Kind: ir.Table, Type: "table", Name: d.Name, FullName: t.full, Pos: d.Pos,
		Annotations: annotationNames(d.Annotations)})
	for _, p := range d.Props {
		b.property(t, p)
	}
	return t
}

func (b *binder) property(t *tableSym, p *syntax.Property) {
	switch p.Name {
	case "default_action":
		return // with the actions
	case "size":
		n, ok := b.integer(p.Value, t.scope)
		t.obj.SizeDeclared = ok
		t.obj.Elements = int64(max(n, 0))
		return
	}
	v := b.eval(p.Value, t.scope, nil)
	switch v := v.(type) {
	case *instance:
		if v.obj == nil {
			v.name, v.pos = t.decl.Name+"."+p.Name, p.Pos
			if v.full = t.full + "." + p.Name; p.Annotations.Find("name") != nil {
				v.full, _ = p.Annotations.Find("name").Text()
			}
			b.object(v, p.Annotations, 1)
		}
		if v.obj == nil {
			b.mapSize(t, v)
			return
		}
		switch v.obj.Kind {
		case ir.Profile, ir.Selector:
			t.obj.Implementation = v.obj
		default:
			v.obj.Direct = t.obj
		}
	case *scalar:
		on := v.e.Op == ir.Const && v.e.Value.Sign() != 0
		switch p.Name {
		case "add_on_miss":
			t.obj.Insertion = t.obj.Insertion || on
		case "support_timeout", "idle_timeout", "psa_idle_timeout", "pna_idle_timeout", "idle_timeout_with_auto_delete":
			t.obj.Idle = on
		}
	}
}

// mapSize takes a table's size from the eBPF map that implements it.
func (b *binder) mapSize(t *tableSym, v *instance) {
	x, ok := v.t.(*externType)
	if !ok || x.decl.Name != "array_table" && x.decl.Name != "hash_table" {
		return
	}
	if s, ok := argument(v.args, 0).(*scalar); ok && s.e.Op == ir.Const && s.e.Value.IsInt64() {
		t.obj.Elements, t.obj.SizeDeclared = s.e.Value.Int64(), true
	}
}

// prepare looks up a table's keys and actions.
func (b *binder) prepare(t *tableSym) {
	if t.ready {
		return
	}
	t.ready = true
	t.hit = b.location(boolType, t.full+".$hit", ir.Hit, "", false)
	for _, a := range t.decl.Actions {
		b.tableAction(t, a)
	}
	if p := t.decl.Prop("default_action"); p != nil {
		b.defaultAction(t, p)
	}
	if t.obj.DefaultAction == "" && t.decl.Prop("default_action") == nil {
		b.implicitDefault(t)
	}
	data := 0
	for _, a := range t.actions {
		t.obj.Actions = append(t.obj.Actions, a.action.full)
		n := 0
		for i, p := range a.action.decl.Params {
			if a.args[i] == nil {
				n += bits(b.resolve(p.Type, a.action.scope))
			}
		}
		data = max(data, n)
	}
	number := mathbits.Len(uint(max(len(t.actions)-1, 0)))
	t.obj.Bits = data + number
	t.run = b.location(&bitsType{syntax.Bit, max(number, 1)}, t.full+".$action", ir.Hit, "", false)
	for _, k := range t.decl.Keys {
		v := b.eval(k.Expr, t.scope, nil)
		key := ir.Key{Field: written(k.Expr), Match: k.Match.Name, Expr: expr(v)}
		key.Bits = key.Expr.Bits
		if !b.matchKinds[k.Match.Name] {
			b.undeclared(k.Match.Pos, k.Match.Name, newScope(nil), "match kind")
		}
		if a := k.Annotations.Find("name"); a != nil {
			if s, ok := a.Text(); ok {
				key.Field = s
			}
		}
		t.obj.Keys = append(t.obj.Keys, key)
	}
	if e := t.decl.Entries; e != nil {
		t.obj.ConstEntries = e.Const
		t.obj.Entries = len(e.List)
		b.entries(t, e)
	}
}

// implicitDefault makes NoAction what a table without default action does on a
// miss.
func (b *binder) implicitDefault(t *tableSym) {
	t.obj.DefaultAction = "NoAction"
	for _, a := range t.actions {
		if a.action.decl.Name == "NoAction" {
			t.obj.DefaultAction = a.action.full
			return
		}
	}
	if s := b.global.names["NoAction"]; s != nil {
		if a, ok := s.def.(*actionSym); ok && len(a.decl.Params) == 0 {
			t.actions = append(t.actions, tableAction{a, nil})
		}
	}
}

// tableAction adds an action to a table.
func (b *binder) tableAction(t *tableSym, ref *syntax.ActionRef) {
	a := b.lookupAction(ref.Action, t.scope)
	if a == nil {
		return
	}
	params := a.decl.Params
	ta := tableAction{a, make([]*syntax.Argument, len(params))}
	if len(ref.Args) > len(params) {
		b.errorf(ref.Pos, "action %s takes %s, %d given", a.decl.Name, count(params), len(ref.Args))
		return
	}
	for i, arg := range ref.Args {
		for k, p := range params {
			if arg.Name == p.Name || arg.Name == "" && k == i {
				ta.args[k] = arg
			}
		}
	}
	for i, p := range params {
		if p.Dir == syntax.NoDir && ta.args[i] != nil {
			b.errorf(ta.args[i].Pos, "%s of action %s cannot be bound here: table entries give it", p.Name, a.decl.Name)
			return
		}
		if p.Dir != syntax.NoDir && ta.args[i] == nil && !optional(p) {
			b.errorf(ref.Pos, "action %s takes %s, %d given: %s must be bound here", a.decl.Name, count(params), len(ref.Args), p.Name)
			return
		}
	}
	t.actions = append(t.actions, ta)
}

func (b *binder) lookupAction(id *syntax.Ident, sc *scope) *actionSym {
	if id.Global {
		sc = b.global
	}
	s := sc.find(id.Name)
	if s == nil {
		b.undeclared(id.Pos, id.Name, sc, "action")
		return nil
	}
	a, ok := s.def.(*actionSym)
	if !ok {
		b.errorf(id.Pos, "%s is not an action", id.Name)
		return nil
	}
	return a
}

func (b *binder) defaultAction(t *tableSym, p *syntax.Property) {
	var id *syntax.Ident
	var args []*syntax.Argument
	switch v := p.Value.(type) {
	case *syntax.CallExpr:
		id, _ = v.Fun.(*syntax.Ident)
		args = v.Args
	case *syntax.Ident:
		id = v
	}
	if id == nil {
		b.errorf(p.Value.Position(), "default_action is the call of an action")
		return
	}
	a := b.lookupAction(id, t.scope)
	if a == nil {
		return
	}
	t.obj.DefaultAction = a.full
	known := false
	for _, ta := range t.actions {
		known = known || ta.action == a
	}
	if !known {
		// p4c asks for it in the list; for a table without it, it is one.
		if t.decl.HasActions && len(t.decl.Actions) > 0 {
			b.errorf(p.Value.Position(), "the default action %s is not in the table's list of actions", id.Name)
			return
		}
		t.actions = append(t.actions, tableAction{a, make([]*syntax.Argument, len(a.decl.Params))})
	}
	b.pair("action "+id.Name, a.decl.Params, args, p.Value.Position(), false)
	b.evalArgs(args, t.scope)
}

// entries checks the entries that the program declares.
func (b *binder) entries(t *tableSym, e *syntax.Entries) {
	for _, x := range e.List {
		if len(x.Keys) != len(t.obj.Keys) && len(x.Keys) > 0 {
			if _, any := x.Keys[0].(*syntax.DefaultExpr); !any || len(x.Keys) > 1 {
				b.errorf(x.Pos, "an entry of %s has %d keys, not %d", t.decl.Name, len(t.obj.Keys), len(x.Keys))
			}
		}
		for _, k := range x.Keys {
			b.eval(k, t.scope, nil)
		}
		if a := b.lookupAction(x.Action.Action, t.scope); a != nil {
			for _, arg := range x.Action.Args {
				b.eval(arg.Value, t.scope, nil)
			}
		}
	}
}

// applyTable lowers a table's application: the lookup, and every action's body
// behind its edge.
func (b *binder) applyTable(t *tableSym, pos source.Pos) value {
	t.used = true
	b.prepare(t)
	var args []*ir.Expr
	for _, k := range t.decl.Keys {
		args = append(args, expr(b.eval(k.Expr, t.scope, nil)))
	}
	in := b.emit(ir.Lookup, pos)
	in.Object, in.Args = t.obj, args
	in.Defs = append(append(in.Defs, t.hit.loc...), t.run.loc...)
	outer := b.inTable
	b.inTable = t
	var out []hole
	for _, ta := range t.actions {
		b.open = []hole{{in, ta.action.full}}
		data := b.actionData(ta.action)
		vals := make([]value, len(data))
		for i, p := range ta.action.decl.Params {
			if ta.args[i] == nil {
				vals[i] = data[i]
				in.Defs = append(in.Defs, defs(data[i])...)
				continue
			}
			t := b.resolve(p.Type, ta.action.scope)
			vals[i] = b.retype(b.eval(ta.args[i].Value, b.inTable.scope, t), t)
		}
		b.action(ta.action, vals, pos)
		out = append(out, b.open...)
	}
	b.inTable = outer
	if len(t.actions) == 0 {
		out = []hole{{in, "NoAction"}}
	}
	b.open = out
	return &applied{t}
}
