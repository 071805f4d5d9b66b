package syntax

import (
	"fmt"
	"reflect"
	"strings"

	"nicprof/p4/source"
)

// printer writes a tree as P4 source, with no more parentheses than the
// grammar needs, so that reading it back shows that precedence is right.
type printer struct{ strings.Builder }

func printFile(f *File) string {
	var p printer
	for _, d := range f.Decls {
		p.decl(d)
	}
	return p.String()
}

func (p *printer) f(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *printer) annotations(as Annotations) {
	for _, a := range as {
		if a.Form == Pragma {
			p.f("@pragma %s %s\n", a.Name, tokens(a.Tokens))
			continue
		}
		p.f("@%s", a.Name)
		switch a.Form {
		case Unstructured:
			p.f("(%s)", tokens(a.Tokens))
		case ExprList:
			p.f("[%s]", exprs(a.Exprs))
		case KeyValues:
			p.f("[%s]", arguments(a.Pairs))
		}
		p.f(" ")
	}
}

// tokens separates tokens by spaces, and by a line's end behind a string that
// has no end of its own.
func tokens(list []Token) string {
	s := ""
	for _, t := range list {
		s += spell([]Token{t})
		if t.Kind == Bad && t.Text[0] == '"' {
			s += "\n"
		} else {
			s += " "
		}
	}
	return s
}

func join2[T any](list []T, f func(T) string) string {
	var s []string
	for _, x := range list {
		s = append(s, f(x))
	}
	return strings.Join(s, ", ")
}

func exprs(list []Expr) string { return join2(list, func(x Expr) string { return expression(x, 0) }) }
func idents(list []*Ident) string {
	return join2(list, func(x *Ident) string { return expression(x, 0) })
}
func types(list []Type) string { return join2(list, typeString) }
func arguments(list []*Argument) string {
	return join2(list, func(a *Argument) string {
		if a.Name != "" {
			return a.Name + " = " + expression(a.Value, 0)
		}
		return expression(a.Value, 0)
	})
}

func params(list []*Param) string {
	return "(" + join2(list, func(q *Param) string {
		var p printer
		p.annotations(q.Annotations)
		p.f("%s %s %s", q.Dir, typeString(q.Type), q.Name)
		if q.Default != nil {
			p.f(" = %s", expression(q.Default, 0))
		}
		return p.String()
	}) + ")"
}

func typeParams(list []*Ident) string {
	if len(list) == 0 {
		return ""
	}
	return "<" + idents(list) + ">"
}

func typeString(t Type) string {
	switch t := t.(type) {
	case *BaseType:
		return string(t.Kind)
	case *BitsType:
		if t.Width == nil {
			return string(t.Kind)
		}
		return fmt.Sprintf("%s<(%s)>", t.Kind, expression(t.Width, 0))
	case *NamedType:
		if t.Global {
			return "." + t.Name
		}
		return t.Name
	case *SpecializedType:
		return typeString(t.Base) + "<" + types(t.Args) + ">"
	case *StackType:
		return typeString(t.Elem) + "[" + expression(t.Size, 0) + "]"
	case *TupleType:
		return "tuple<" + types(t.Args) + ">"
	case *ListType:
		return "list<" + typeString(t.Elem) + ">"
	case *DontCareType:
		return "_"
	}
	panic(t)
}

// strength is how tightly an operator binds; taken from the language's
// specification, not from the parser.
func strength(op string) int {
	for i, ops := range strings.Split("&&& ..;?;||;&&;== !=;< > <= >=;|;^;&;<< >>;++ + - |+| |-|;* / %;unary;postfix", ";") {
		for _, o := range strings.Fields(ops) {
			if o == op {
				return i
			}
		}
	}
	panic(op)
}

// expression prints x, in parentheses if it binds less than least.
func expression(x Expr, least int) string {
	s, have := "", strength("postfix")
	switch x := x.(type) {
	case *IntLit:
		s = x.Text
	case *BoolLit:
		s = fmt.Sprint(x.Value)
	case *StringLit:
		s = quote(x.Value)
	case *Ident:
		if s = x.Name; x.Global {
			s = "." + s
		}
	case *ThisExpr:
		s = "this"
	case *TypeExpr:
		s = typeString(x.Type)
	case *MemberExpr:
		s = expression(x.X, have) + "." + x.Name
	case *IndexExpr:
		s = expression(x.X, have) + "[" + expression(x.Index, 1) + "]"
	case *SliceExpr:
		if x.Width != nil {
			s = expression(x.X, have) + "[" + expression(x.Lo, 1) + "+:" + expression(x.Width, 1) + "]"
		} else {
			s = expression(x.X, have) + "[" + expression(x.Hi, 1) + ":" + expression(x.Lo, 1) + "]"
		}
	case *UnaryExpr:
		have = strength("unary")
		s = x.Op + " " + expression(x.X, have)
	case *CastExpr:
		have = strength("unary")
		s = "(" + typeString(x.Type) + ")" + expression(x.X, have)
	case *BinaryExpr:
		have = strength(x.Op)
		s = expression(x.X, have) + " " + x.Op + " " + expression(x.Y, have+1)
	case *MuxExpr:
		have = strength("?")
		s = expression(x.Cond, have+1) + " ? " + expression(x.Then, have) + " : " + expression(x.Else, have)
	case *CallExpr:
		s = expression(x.Fun, have)
		if x.TypeArgs != nil {
			s += "<" + types(x.TypeArgs) + ">"
		}
		s += "(" + arguments(x.Args) + ")"
	case *ListExpr:
		s = "{" + exprs(x.Elems) + rest(x.Rest, len(x.Elems)) + "}"
	case *RecordExpr:
		s = "{" + arguments(x.Fields) + rest(x.Rest, len(x.Fields)) + "}"
	case *InvalidExpr:
		s = "{#}"
	case *DefaultExpr:
		s = x.Text
	}
	if have < least {
		return "(" + s + ")"
	}
	return s
}

func rest(rest bool, before int) string {
	switch {
	case rest && before > 0:
		return ", ..."
	case rest:
		return "..."
	}
	return ""
}

func (p *printer) decl(d Decl) {
	switch d := d.(type) {
	case *ConstDecl:
		p.annotations(d.Annotations)
		p.f("const %s %s = %s;\n", typeString(d.Type), d.Name, expression(d.Value, 0))
	case *VarDecl:
		p.annotations(d.Annotations)
		p.f("%s;\n", variable(d))
	case *ErrorDecl:
		p.f("error { %s }\n", idents(d.Members))
	case *MatchKindDecl:
		p.f("match_kind { %s }\n", idents(d.Members))
	case *EnumDecl:
		p.enum(d)
	case *CompositeDecl:
		p.composite(d)
	case *TypeDecl:
		p.typeDecl(d)
	case *FuncDecl:
		p.function(d)
	case *ExternDecl:
		p.annotations(d.Annotations)
		p.f("extern %s%s", d.Name, typeParams(d.TypeParams))
		if d.Forward {
			p.f(";\n")
			return
		}
		p.f(" {\n")
		for _, m := range d.Methods {
			p.function(m)
		}
		p.f("}\n")
	case *ActionDecl:
		p.annotations(d.Annotations)
		p.f("action %s%s ", d.Name, params(d.Params))
		p.stmt(d.Body)
	case *ParserDecl:
		p.annotations(d.Annotations)
		p.f("parser %s%s%s", d.Name, typeParams(d.TypeParams), params(d.Params))
		if d.TypeOnly {
			p.f(";\n")
			return
		}
		p.f("%s {\n", params(d.CtorParams))
		for _, l := range d.Locals {
			p.decl(l)
		}
		for _, s := range d.States {
			p.state(s)
		}
		p.f("}\n")
	case *ValueSetDecl:
		p.annotations(d.Annotations)
		p.f("value_set<%s>(%s) %s;\n", typeString(d.Type), expression(d.Size, 0), d.Name)
	case *ControlDecl:
		p.annotations(d.Annotations)
		p.f("control %s%s%s", d.Name, typeParams(d.TypeParams), params(d.Params))
		if d.TypeOnly {
			p.f(";\n")
			return
		}
		p.f("%s {\n", params(d.CtorParams))
		for _, l := range d.Locals {
			p.decl(l)
		}
		p.f("apply ")
		p.stmt(d.Apply)
		p.f("}\n")
	case *PackageDecl:
		p.annotations(d.Annotations)
		p.f("package %s%s%s;\n", d.Name, typeParams(d.TypeParams), params(d.Params))
	case *InstanceDecl:
		p.annotations(d.Annotations)
		typ, size := d.Type, ""
		if s, ok := typ.(*StackType); ok {
			typ, size = s.Elem, "["+expression(s.Size, 0)+"]"
		}
		p.f("%s(%s) %s%s", typeString(typ), arguments(d.Args), d.Name, size)
		if d.HasInit {
			p.f(" = {\n")
			for _, m := range d.Init {
				p.decl(m)
			}
			p.f("}")
		}
		p.f(";\n")
	case *TableDecl:
		p.table(d)
	}
}

func variable(v *VarDecl) string {
	s := typeString(v.Type) + " " + v.Name
	if v.Init != nil {
		s += " = " + expression(v.Init, 0)
	}
	return s
}

func (p *printer) enum(d *EnumDecl) {
	p.annotations(d.Annotations)
	p.f("enum ")
	if d.Type != nil {
		p.f("%s ", typeString(d.Type))
	}
	p.f("%s {", d.Name)
	for _, m := range d.Members {
		p.annotations(m.Annotations)
		p.f("%s", m.Name)
		if m.Value != nil {
			p.f(" = %s", expression(m.Value, 0))
		}
		p.f(", ")
	}
	p.f("}\n")
}

func (p *printer) composite(d *CompositeDecl) {
	p.annotations(d.Annotations)
	p.f("%s %s%s {\n", d.Kind, d.Name, typeParams(d.TypeParams))
	for _, f := range d.Fields {
		p.annotations(f.Annotations)
		p.f("%s %s;\n", typeString(f.Type), f.Name)
	}
	p.f("}\n")
}

func (p *printer) typeDecl(d *TypeDecl) {
	p.annotations(d.Annotations)
	if d.New {
		p.f("type ")
	} else {
		p.f("typedef ")
	}
	if d.Decl != nil {
		p.decl(d.Decl)
	} else {
		p.f("%s", typeString(d.Type))
	}
	p.f(" %s;\n", d.Name)
}

func (p *printer) function(d *FuncDecl) {
	p.annotations(d.Annotations)
	if d.Extern {
		p.f("extern ")
	}
	if d.Abstract {
		p.f("abstract ")
	}
	if d.Return != nil {
		p.f("%s ", typeString(d.Return))
	}
	p.f("%s%s%s", d.Name, typeParams(d.TypeParams), params(d.Params))
	if d.Body == nil {
		p.f(";\n")
		return
	}
	p.stmt(d.Body)
}

func (p *printer) state(s *State) {
	p.annotations(s.Annotations)
	p.f("state %s {\n", s.Name)
	for _, st := range s.Stmts {
		p.stmt(st)
	}
	switch {
	case s.Next != nil:
		p.f("transition %s;\n", s.Next.Name)
	case s.Select != nil:
		p.f("transition select(%s) {\n", exprs(s.Select.Exprs))
		for _, c := range s.Select.Cases {
			p.f("(%s): %s;\n", exprs(c.Keys), c.Next.Name)
		}
		p.f("}\n")
	}
	p.f("}\n")
}

func (p *printer) table(d *TableDecl) {
	p.annotations(d.Annotations)
	p.f("table %s {\n", d.Name)
	if d.HasKey {
		p.f("key = {\n")
		for _, k := range d.Keys {
			p.f("%s : %s ", expression(k.Expr, 0), k.Match.Name)
			p.annotations(k.Annotations)
			p.f(";\n")
		}
		p.f("}\n")
	}
	if d.HasActions {
		p.f("actions = {\n")
		for _, a := range d.Actions {
			p.annotations(a.Annotations)
			p.f("%s;\n", actionRef(a))
		}
		p.f("}\n")
	}
	if e := d.Entries; e != nil {
		p.annotations(e.Annotations)
		p.f("%sentries = {\n", constant(e.Const))
		for _, e := range e.List {
			p.f("%s", constant(e.Const))
			if e.Priority != nil {
				p.f("priority = %s: ", expression(e.Priority, 0))
			}
			p.f("(%s) : %s ", exprs(e.Keys), actionRef(e.Action))
			p.annotations(e.Annotations)
			p.f(";\n")
		}
		p.f("}\n")
	}
	for _, q := range d.Props {
		p.annotations(q.Annotations)
		p.f("%s%s = %s;\n", constant(q.Const), q.Name, expression(q.Value, 0))
	}
	p.f("}\n")
}

func constant(c bool) string {
	if c {
		return "const "
	}
	return ""
}

func actionRef(a *ActionRef) string {
	s := expression(a.Action, 0)
	if a.HasArgs {
		s += "(" + arguments(a.Args) + ")"
	}
	return s
}

func (p *printer) stmt(s Stmt) {
	switch s := s.(type) {
	case *BlockStmt:
		p.annotations(s.Annotations)
		p.f("{\n")
		for _, t := range s.Stmts {
			p.stmt(t)
		}
		p.f("}\n")
	case *DeclStmt:
		p.decl(s.Decl)
	case *AssignStmt, *CallStmt:
		p.f("%s;\n", simple(s))
	case *IfStmt:
		p.annotations(s.Annotations)
		p.f("if (%s) ", expression(s.Cond, 0))
		if s.Else == nil {
			p.stmt(s.Then)
			return
		}
		p.stmt(s.Then)
		p.f("else ")
		p.stmt(s.Else)
	case *SwitchStmt:
		p.annotations(s.Annotations)
		p.f("switch (%s) {\n", expression(s.Expr, 0))
		for _, c := range s.Cases {
			p.f("%s: ", expression(c.Label, 1))
			if c.Body != nil {
				p.stmt(c.Body)
			}
		}
		p.f("}\n")
	case *ReturnStmt:
		p.f("return ")
		if s.Value != nil {
			p.f("%s", expression(s.Value, 0))
		}
		p.f(";\n")
	case *ExitStmt:
		p.f("exit;\n")
	case *EmptyStmt:
		p.f(";\n")
	case *BreakStmt:
		p.f("break;\n")
	case *ContinueStmt:
		p.f("continue;\n")
	case *ForStmt:
		p.annotations(s.Annotations)
		p.f("for (%s; %s; %s) ", join2(s.Init, simple), expression(s.Cond, 0), join2(s.Post, simple))
		p.stmt(s.Body)
	case *ForInStmt:
		p.annotations(s.Annotations)
		p.f("for (%s in %s) ", variable(s.Var), expression(s.Over, 0))
		p.stmt(s.Body)
	}
}

func simple(s Stmt) string {
	var p printer
	switch s := s.(type) {
	case *DeclStmt:
		v := s.Decl.(*VarDecl)
		p.annotations(v.Annotations)
		p.f("%s", variable(v))
	case *AssignStmt:
		p.annotations(s.Annotations)
		p.f("%s %s %s", expression(s.Left, 0), s.Op, expression(s.Right, 0))
	case *CallStmt:
		p.annotations(s.Annotations)
		p.f("%s", expression(s.Call, 0))
	}
	return p.String()
}

// forget clears every position below x, and what of tokens is no meaning.
func forget(x reflect.Value) {
	switch x.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !x.IsNil() {
			forget(x.Elem())
		}
	case reflect.Slice:
		for i := range x.Len() {
			forget(x.Index(i))
		}
	case reflect.Struct:
		switch v := x.Addr().Interface().(type) {
		case *source.Pos:
			*v = source.Pos{}
			return
		case *Token:
			*v = Token{Kind: v.Kind, Text: v.Text}
			return
		case *IntLit:
			v.Pos, v.Value = source.Pos{}, nil // Text says it
			return
		}
		for i := range x.NumField() {
			forget(x.Field(i))
		}
	}
}
