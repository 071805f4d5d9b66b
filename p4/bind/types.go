package bind

import (
	"fmt"
	"strings"

	"nicprof/p4/source"
	"nicprof/p4/syntax"
)

// typ is a type; nil is one that is not known, which goes with everything.
type typ interface{ String() string }

type (
	// bitsType is bit<w>, int<w>, varbit<w>; int of width 0 is the integer of
	// any size.
	bitsType struct {
		kind  syntax.BitsKind
		width int
	}
	baseType struct{ kind syntax.BaseKind }
	// enumType is an enum; under is nil for a plain one.
	enumType struct {
		decl   *syntax.EnumDecl
		under  typ
		values map[string]*scalar
	}
	// composite is a struct, header or header union.
	composite struct {
		kind   syntax.CompositeKind
		name   string
		fields []field
		arch   bool // declared by the architecture
		open   bool // its fields are being resolved
		size   int  // bits of all fields
		leaves int  // scalars in it
	}
	stackType struct {
		elem typ
		size int
	}
	tupleType struct{ elems []typ }
	listType  struct{ elem typ }
	// externType is an extern with its type arguments bound in scope.
	externType struct {
		decl  *syntax.ExternDecl
		args  []typ
		scope *scope
	}
	// blockType is a parser, control or package, or the type of one, with its
	// type arguments bound in scope.
	blockType struct {
		block *blockSym
		args  []typ
		scope *scope
	}
	// namedType is a typedef or a new type.
	namedType struct {
		name  string
		base  typ
		isNew bool
		flow  bool
	}
	// paramType is a type parameter that is not bound.
	paramType struct{ name string }
)

type field struct {
	name string
	t    typ
	flow bool
	kept bool
}

func (t *bitsType) String() string {
	if t.width == 0 && t.kind == syntax.Int {
		return "int"
	}
	return fmt.Sprintf("%s<%d>", t.kind, t.width)
}
func (t *baseType) String() string   { return string(t.kind) }
func (t *enumType) String() string   { return t.decl.Name }
func (t *composite) String() string  { return t.name }
func (t *stackType) String() string  { return fmt.Sprintf("%s[%d]", name(t.elem), t.size) }
func (t *tupleType) String() string  { return "tuple" + typeArgs(t.elems) }
func (t *listType) String() string   { return "list" + typeArgs([]typ{t.elem}) }
func (t *externType) String() string { return t.decl.Name + typeArgs(t.args) }
func (t *blockType) String() string  { return t.block.name + typeArgs(t.args) }
func (t *namedType) String() string  { return t.name }
func (t *paramType) String() string  { return t.name }

func name(t typ) string {
	if t == nil {
		return "_"
	}
	return t.String()
}

func typeArgs(args []typ) string {
	if len(args) == 0 {
		return ""
	}
	var s []string
	for _, a := range args {
		s = append(s, name(a))
	}
	return "<" + strings.Join(s, ", ") + ">"
}

var (
	boolType   = &baseType{syntax.Bool}
	errorType  = &baseType{syntax.ErrorType}
	stringType = &baseType{syntax.StringT}
	kindType   = &baseType{syntax.MatchKind}
	voidType   = &baseType{syntax.Void}
	anyInt     = &bitsType{kind: syntax.Int}
)

// base is the type behind typedefs and new types, nil when it is not known.
func base(t typ) typ {
	for {
		switch x := t.(type) {
		case *namedType:
			t = x.base
		case *paramType:
			return nil
		default:
			return t
		}
	}
}

// known tells whether a type says something about its values.
func known(t typ) bool { return base(t) != nil }

// identity is equal for the same types only.
func identity(t typ) string {
	switch x := base(t).(type) {
	case *composite:
		return fmt.Sprintf("%s %p", x.name, x)
	case *enumType:
		return fmt.Sprintf("%s %p", x.decl.Name, x)
	case *stackType:
		return fmt.Sprintf("%s[%d]", identity(x.elem), x.size)
	case *tupleType:
		s := "tuple"
		for _, e := range x.elems {
			s += "," + identity(e)
		}
		return s
	case *listType:
		return "list," + identity(x.elem)
	case nil:
		return "_"
	default:
		return x.String()
	}
}

// bits is the width of a type's values, 0 when it has none or it is unknown; a
// header's valid bit does not count.
func bits(t typ) int {
	switch x := base(t).(type) {
	case *bitsType:
		return x.width
	case *baseType:
		if x.kind == syntax.Bool {
			return 1
		}
		return 32 // error, as the behavioral model holds it
	case *enumType:
		if x.under != nil {
			return bits(x.under)
		}
		return 32
	case *composite:
		return x.size
	case *stackType:
		return x.size * bits(x.elem)
	case *tupleType:
		n := 0
		for _, e := range x.elems {
			n += bits(e)
		}
		return n
	}
	return 0
}

// resolve gives the type that is written.
func (b *binder) resolve(t syntax.Type, sc *scope) typ {
	switch t := t.(type) {
	case nil:
		return nil
	case *syntax.BaseType:
		switch t.Kind {
		case syntax.Bool:
			return boolType
		case syntax.ErrorType:
			if len(b.errorsByName) == 0 {
				b.errorf(t.Pos, "type error is not declared; #include <core.p4> declares it")
			}
			return errorType
		case syntax.StringT:
			return stringType
		case syntax.MatchKind:
			return kindType
		}
		return voidType
	case *syntax.BitsType:
		if t.Width == nil {
			if t.Kind == syntax.Int {
				return anyInt
			}
			return &bitsType{t.Kind, 1}
		}
		w, ok := b.integer(t.Width, sc)
		if !ok {
			return nil
		}
		if w < 0 || w > maxWidth {
			b.errorf(t.Width.Position(), "a width of %d bits; expected 0 to %d", w, maxWidth)
			return nil
		}
		return &bitsType{t.Kind, w}
	case *syntax.NamedType:
		return b.named(t, sc, nil, false)
	case *syntax.SpecializedType:
		args := make([]typ, len(t.Args))
		for i, a := range t.Args {
			args[i] = b.resolve(a, sc)
		}
		return b.named(t.Base, sc, args, true)
	case *syntax.StackType:
		elem := b.resolve(t.Elem, sc)
		n, ok := b.integer(t.Size, sc)
		if !ok {
			return nil
		}
		if n < 0 || n > maxStack {
			b.errorf(t.Pos, "a stack of %d elements; at most %d are possible", n, maxStack)
			return nil
		}
		return b.bounded(&stackType{elem, n}, t.Pos)
	case *syntax.TupleType:
		tt := &tupleType{}
		for _, a := range t.Args {
			tt.elems = append(tt.elems, b.resolve(a, sc))
		}
		return b.bounded(tt, t.Pos)
	case *syntax.ListType:
		return &listType{b.resolve(t.Elem, sc)}
	}
	return nil
}

// named gives a declared type. Without arguments a generic one has its
// parameters unbound.
func (b *binder) named(n *syntax.NamedType, sc *scope, args []typ, written bool) typ {
	from := sc
	if n.Global {
		from = b.global
	}
	s := from.find(n.Name)
	if s == nil {
		b.undeclared(n.Pos, n.Name, from, "type")
		return nil
	}
	d, ok := s.def.(*typeSym)
	if !ok {
		if k, ok := s.def.(*blockSym); ok {
			for _, o := range k.more {
				if len(typeParams(k.decl)) != len(args) && len(typeParams(o.decl)) == len(args) {
					k = o
				}
			}
			return b.specialise(k, args, n.Pos, written)
		}
		b.errorf(n.Pos, "%s is not a type", n.Name)
		return nil
	}
	if d.decl == nil {
		return d.t
	}
	params := typeParams(d.decl)
	if written && len(args) != len(params) {
		b.errorf(n.Pos, "%s has %d type parameters, %d type arguments are given", n.Name, len(params), len(args))
		return nil
	}
	if len(params) == 0 && d.t != nil {
		return d.t
	}
	key := n.Name
	for _, a := range args {
		key += "," + identity(a)
	}
	if t, ok := d.special[key]; ok {
		if c, ok := t.(*composite); ok && c.open {
			b.errorf(n.Pos, "%s contains itself", n.Name)
			return nil
		}
		return t
	}
	inner := b.bindTypes(params, args, d.scope)
	switch decl := d.decl.(type) {
	case *syntax.CompositeDecl:
		c := &composite{kind: decl.Kind, name: decl.Name, arch: b.isArch(decl.Pos)}
		d.keep(key, c)
		b.fields(c, decl, inner)
		return c
	case *syntax.ExternDecl:
		e := &externType{decl: decl, args: args, scope: inner}
		if len(args) == 0 {
			for _, p := range params {
				e.args = append(e.args, &paramType{p.Name})
			}
		}
		if !decl.Forward {
			d.keep(key, e)
		}
		return e
	}
	return nil
}

func (b *binder) fields(c *composite, decl *syntax.CompositeDecl, sc *scope) {
	seen := map[string]bool{}
	c.open = true
	defer func() { c.open = false }()
	for _, f := range decl.Fields {
		if seen[f.Name] {
			b.errorf(f.Pos, "%s has two fields %s", decl.Name, f.Name)
			continue
		}
		if a := f.Annotations.Find("length"); a != nil && len(a.Tokens) == 1 && a.Tokens[0].Kind == syntax.Name {
			if n := a.Tokens[0]; !seen[n.Text] && sc.find(n.Text) == nil {
				b.undeclared(n.Pos, n.Text, sc, "name")
			}
		}
		seen[f.Name] = true
		t := b.bounded(b.resolve(f.Type, sc), f.Pos)
		c.fields = append(c.fields, field{f.Name, t, isFlow(f.Annotations), f.Annotations.Find("field_list") != nil})
		if c.kind == syntax.HeaderUnion {
			c.size = max(c.size, bits(t))
		} else {
			c.size += bits(t)
		}
		if c.leaves += leaves(t); c.leaves > maxVars {
			b.errorf(f.Pos, "%s has more than %d scalars", decl.Name, maxVars)
			c.fields, c.size, c.leaves = nil, 0, 0
			return
		}
	}
}

// bounded refuses a type of more scalars than a program may have.
func (b *binder) bounded(t typ, pos source.Pos) typ {
	if leaves(t) > maxVars {
		b.errorf(pos, "%s has more than %d scalars", name(t), maxVars)
		return nil
	}
	return t
}

// leaves is how many scalars a value of the type has, valid bits included.
func leaves(t typ) int {
	switch x := base(t).(type) {
	case *composite:
		return x.leaves + 1
	case *stackType:
		return 1 + x.size*leaves(x.elem)
	case *tupleType:
		n := 1
		for _, e := range x.elems {
			n += leaves(e)
		}
		return n
	}
	return 1
}

func (b *binder) specialise(k *blockSym, args []typ, pos source.Pos, written bool) typ {
	params := typeParams(k.decl)
	if written && len(args) != len(params) {
		b.errorf(pos, "%s has %d type parameters, %d type arguments are given", k.name, len(params), len(args))
		return nil
	}
	return &blockType{block: k, args: args, scope: b.bindTypes(params, args, k.scope)}
}

// bindTypes opens a scope in which type parameters name their arguments.
func (b *binder) bindTypes(params []*syntax.Ident, args []typ, up *scope) *scope {
	if len(params) == 0 {
		return up
	}
	sc := newScope(up)
	for i, p := range params {
		var t typ = &paramType{p.Name}
		if i < len(args) && args[i] != nil {
			t = args[i]
		}
		sc.set(p.Name, p.Pos, &typeSym{t: t})
	}
	return sc
}

func typeParams(d syntax.Decl) []*syntax.Ident {
	switch d := d.(type) {
	case *syntax.CompositeDecl:
		return d.TypeParams
	case *syntax.ExternDecl:
		return d.TypeParams
	case *syntax.ParserDecl:
		return d.TypeParams
	case *syntax.ControlDecl:
		return d.TypeParams
	case *syntax.PackageDecl:
		return d.TypeParams
	}
	return nil
}

// isFlow tells whether annotations mark a flow group identifier.
func isFlow(as syntax.Annotations) bool {
	return as.Find("flow_group") != nil || as.Find("FlowGroupID") != nil
}
