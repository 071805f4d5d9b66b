package frontend

import (
	"math/big"

	"nicprof/p4/ir"
	"nicprof/p4/source"
)

// builder puts an ir.Program together, one instruction a line of a file x.p4.
type builder struct {
	p     *ir.Program
	vars  map[string]*ir.Var
	open  []hole // edges that lead to the next instruction
	exits []hole
	line  int
	act   string
	area  string
	atom  int
}

type hole struct {
	instr int
	label string
}

func newBuilder() *builder {
	return &builder{p: &ir.Program{
		Name: "x.p4", Arch: "v1model",
		Stages: []ir.Stage{{Kind: ir.Ingress, Name: "MyIngress"}},
	}, vars: map[string]*ir.Var{}}
}

// add appends an instruction behind the open edges.
func (b *builder) add(in *ir.Instr) *ir.Instr {
	in.ID = len(b.p.Code)
	b.line++
	in.Pos = source.Pos{File: "x.p4", Line: b.line}
	in.Action, in.Control, in.Region, in.Atomic = b.act, "MyIngress", b.area, b.atom
	for _, h := range b.open {
		from := b.p.Code[h.instr]
		from.Succ = append(from.Succ, ir.Edge{To: in.ID, Label: h.label})
	}
	b.p.Code = append(b.p.Code, in)
	b.open = []hole{{instr: in.ID}}
	return in
}

// v returns a variable, made when it is new: hdr.… are header fields, meta.…
// metadata, in.… intrinsic, the others local.
func (b *builder) v(name string, bits int) *ir.Var {
	if v := b.vars[name]; v != nil {
		return v
	}
	kind := ir.Local
	switch (name + "   ")[:3] {
	case "hdr":
		kind = ir.HeaderField
	case "met":
		kind = ir.Metadata
	case "in.":
		kind = ir.Intrinsic
	}
	v := &ir.Var{ID: len(b.p.Vars), Name: name, Bits: bits, Kind: kind}
	b.vars[name] = v
	b.p.Vars = append(b.p.Vars, v)
	return v
}

// use reads a variable, 32 bits wide when it is new.
func (b *builder) use(name string) *ir.Expr {
	v := b.v(name, 32)
	return &ir.Expr{Op: ir.Use, Var: v, Hi: v.Bits - 1, Bits: v.Bits}
}

func num(n int64) *ir.Expr { return &ir.Expr{Op: ir.Const, Bits: 32, Value: big.NewInt(n)} }

func op(o ir.ExprOp, args ...*ir.Expr) *ir.Expr {
	e := &ir.Expr{Op: o, Args: args, Bits: 32}
	switch o {
	case "==", "!=", "<", "<=", ">", ">=", "&&", "||", "!":
		e.Bits, e.Bool = 1, true
	}
	return e
}

func whole(v *ir.Var) ir.Def { return ir.Def{Var: v, Hi: v.Bits - 1} }

func (b *builder) object(kind ir.ObjectKind, name string, elements int64, bits int) *ir.Object {
	o := &ir.Object{ID: len(b.p.Objects), Kind: kind, Name: name, FullName: "MyIngress." + name, Elements: elements, Bits: bits, SizeDeclared: elements > 0}
	b.p.Objects = append(b.p.Objects, o)
	return o
}

func (b *builder) register(name string, elements int64) *ir.Object {
	return b.object(ir.Register, name, elements, 32)
}

func (b *builder) extract(header string, fields ...string) {
	in := &ir.Instr{Op: ir.Extract, Header: header}
	for _, f := range fields {
		in.Defs = append(in.Defs, whole(b.v(f, 32)))
	}
	b.add(in)
}

func (b *builder) assign(to string, e *ir.Expr) {
	b.add(&ir.Instr{Op: ir.Assign, Defs: []ir.Def{whole(b.v(to, 32))}, Args: []*ir.Expr{e}})
}

func (b *builder) read(to string, o *ir.Object, index *ir.Expr) {
	b.add(&ir.Instr{Op: ir.RegRead, Object: o, Index: index, Defs: []ir.Def{whole(b.v(to, 32))}})
}

func (b *builder) write(o *ir.Object, index, value *ir.Expr) {
	b.add(&ir.Instr{Op: ir.RegWrite, Object: o, Index: index, Args: []*ir.Expr{value}})
}

func (b *builder) hash(to string, max int64, args ...*ir.Expr) {
	b.add(&ir.Instr{Op: ir.HashOp, Algorithm: "crc32", Defs: []ir.Def{whole(b.v(to, 32))}, Args: args, Base: num(0), Max: num(max)})
}

// cond branches; the way not taken by a nil function is empty.
func (b *builder) cond(e *ir.Expr, yes, no func()) {
	in := b.add(&ir.Instr{Op: ir.Branch, Args: []*ir.Expr{e}})
	var ends []hole
	for k, body := range []func(){yes, no} {
		b.open = []hole{{in.ID, []string{"true", "false"}[k]}}
		if body != nil {
			body()
		}
		ends = append(ends, b.open...)
	}
	b.open = ends
}

// ret leaves for the end.
func (b *builder) ret() {
	b.exits = append(b.exits, b.open...)
	b.open = nil
}

type action struct {
	name string
	data []string
	body func()
}

// lookup applies a table; the last action is the default.
func (b *builder) lookup(o *ir.Object, keys []*ir.Expr, actions ...action) {
	in := &ir.Instr{Op: ir.Lookup, Object: o, Args: keys}
	hit := b.v("MyIngress."+o.Name+".$hit", 1)
	hit.Kind = ir.Hit
	in.Defs = append(in.Defs, whole(hit))
	o.Keys = nil
	for _, k := range keys {
		o.Keys = append(o.Keys, ir.Key{Field: Text(k), Match: "exact", Bits: k.Bits, Expr: k})
	}
	for _, a := range actions {
		for _, d := range a.data {
			v := b.v(d, 32)
			v.Kind = ir.ActionData
			in.Defs = append(in.Defs, whole(v))
		}
		o.DefaultAction = a.name
	}
	b.add(in)
	var ends []hole
	for _, a := range actions {
		b.open = []hole{{in.ID, a.name}}
		b.act = a.name
		b.add(&ir.Instr{Op: ir.Nop})
		if a.body != nil {
			a.body()
		}
		b.act = ""
		ends = append(ends, b.open...)
	}
	b.open = ends
}

// done closes the program.
func (b *builder) done() *ir.Program {
	b.open = append(b.open, b.exits...)
	b.add(&ir.Instr{Op: ir.End})
	b.open = nil
	return b.p
}
