package syntax

// program reads all declarations.
func (p *parser) program() {
	for p.tok().Kind != EOF {
		p.each("", func() {
			if p.accept(";") {
				return
			}
			if p.p414() {
				return
			}
			p.decls = append(p.decls, p.decl(p.annotations()))
		})
	}
}

// decl reads a declaration of the outermost scope.
func (p *parser) decl(as Annotations) Decl {
	switch t := p.tok(); {
	case p.is("const"):
		return p.constant(as)
	case p.is("extern"):
		return p.extern(as)
	case p.is("action"):
		return p.action(as)
	case p.is("parser"):
		return p.parser(as)
	case p.is("control"):
		return p.control(as)
	case p.is("package"):
		return p.pack(as)
	case p.is("struct") || p.is("header") || p.is("header_union"):
		return p.composite(as)
	case p.is("enum"):
		return p.enum(as)
	case p.is("typedef") || p.is("type"):
		return p.typeDecl(as)
	case p.is("error") && p.at(1).is("{"):
		at := At{p.advance().Pos}
		return &ErrorDecl{at, p.names("an error", false)}
	case p.is("match_kind") && p.at(1).is("{"):
		at := At{p.advance().Pos}
		return &MatchKindDecl{at, p.names("a match kind", true)}
	case p.is("table"):
		p.fail(t, "a table stands in a control")
	case p.is("state") && isName(p.at(1)) && p.at(2).is("{") || p.is("value_set"):
		p.fail(t, "a %s stands in a parser", t.Text)
	case !typeKeyword(t) && !isName(t) && !t.is("."):
		p.fail(t, "expected a declaration, found %v", t)
	}
	typ := p.typ()
	if p.is("(") {
		return p.instance(as, typ)
	}
	id := p.name("a function or an instance")
	if p.is(";") || p.is("=") {
		p.fail(p.tok(), "expected '(' of a function: a variable cannot stand outside of controls, parsers and functions; write const for a constant")
	}
	f := p.function(as, typ, id)
	f.Body = p.block(nil)
	p.pop()
	return f
}

// function reads type parameters and parameters of a function behind its
// name. Its scope is left open for the body.
func (p *parser) function(as Annotations, result Type, id *Ident) *FuncDecl {
	p.declare(id.Name, false)
	p.push()
	f := &FuncDecl{At: id.At, Annotations: as, Name: id.Name, Return: result}
	f.TypeParams = p.typeParams()
	f.Params = p.params()
	return f
}

func (p *parser) constant(as Annotations) Decl {
	p.advance()
	c := &ConstDecl{Annotations: as, Type: p.typ()}
	id := p.name("a constant")
	c.At, c.Name = id.At, id.Name
	p.expect("=")
	c.Value = p.expr()
	p.expect(";")
	p.declare(c.Name, false)
	return c
}

// instance reads the rest of an instantiation behind its type.
func (p *parser) instance(as Annotations, typ Type) Decl {
	n := &InstanceDecl{Annotations: as, Type: typ, Args: p.args()}
	id := p.name("an instance")
	n.At, n.Name = id.At, id.Name
	n.Type = p.array(n.Type)
	p.declare(n.Name, false)
	if p.accept("=") {
		n.HasInit = true
		p.expect("{")
		p.push()
		p.each("}", func() { n.Init = append(n.Init, p.member()) })
		p.pop()
		p.expect("}")
	}
	p.expect(";")
	return n
}

// member reads a function or an instance in the block of an instantiation.
func (p *parser) member() Decl {
	as := p.annotations()
	typ := p.typ()
	if p.is("(") {
		return p.instance(as, typ)
	}
	f := p.function(as, typ, p.name("a method"))
	f.Body = p.block(nil)
	p.pop()
	return f
}

func (p *parser) extern(as Annotations) Decl {
	p.advance()
	i := 1
	if isName(p.tok()) && p.at(1).is("<") {
		if j, ok := p.skipTypeArgs(1); ok {
			i = j
		}
	}
	if isName(p.tok()) && (p.at(i).is("{") || p.at(1).is(";")) {
		return p.externType(as)
	}
	typ := p.typ()
	f := p.function(as, typ, p.name("a function"))
	f.Extern = true
	p.pop()
	p.expect(";")
	return f
}

func (p *parser) externType(as Annotations) Decl {
	id := p.name("an extern")
	e := &ExternDecl{At: id.At, Annotations: as, Name: id.Name}
	p.declare(e.Name, true)
	if e.Forward = p.accept(";"); e.Forward {
		return e
	}
	p.push()
	defer p.pop()
	e.TypeParams = p.typeParams()
	p.expect("{")
	p.each("}", func() { e.Methods = append(e.Methods, p.method(e)) })
	p.expect("}")
	return e
}

func (p *parser) method(e *ExternDecl) *FuncDecl {
	as := p.annotations()
	if t := p.tok(); isName(t) && p.at(1).is("(") {
		if t.Text != e.Name {
			p.fail(p.at(1), "the method %s needs a type before its name; a constructor is named %s", t.Text, e.Name)
		}
		p.advance()
		p.push()
		f := &FuncDecl{At: At{t.Pos}, Annotations: as, Name: t.Text, Constructor: true, Params: p.params()}
		p.pop()
		p.expect(";")
		return f
	}
	abstract := p.accept("abstract")
	typ := p.typ()
	if p.is("(") {
		p.fail(p.tok(), "a constructor has no type arguments, and a method has a name behind its type")
	}
	f := p.function(as, typ, p.name("a method"))
	f.Abstract = abstract
	p.pop()
	p.expect(";")
	return f
}

func (p *parser) action(as Annotations) Decl {
	p.advance()
	id := p.name("an action")
	p.declare(id.Name, false)
	a := &ActionDecl{At: id.At, Annotations: as, Name: id.Name}
	p.push()
	defer p.pop()
	a.Params = p.params()
	a.Body = p.block(nil)
	return a
}

func (p *parser) pack(as Annotations) Decl {
	p.advance()
	id := p.name("a package")
	p.declare(id.Name, true)
	d := &PackageDecl{At: id.At, Annotations: as, Name: id.Name}
	p.push()
	defer p.pop()
	d.TypeParams = p.typeParams()
	d.Params = p.params()
	p.expect(";")
	return d
}

func (p *parser) composite(as Annotations) *CompositeDecl {
	kind := p.advance()
	id := p.name("a " + kind.Text)
	p.declare(id.Name, true)
	d := &CompositeDecl{At: id.At, Annotations: as, Kind: CompositeKind(kind.Text), Name: id.Name}
	p.push()
	defer p.pop()
	d.TypeParams = p.typeParams()
	p.expect("{")
	p.each("}", func() {
		f := &Field{Annotations: p.annotations(), Type: p.typ()}
		id := p.name("a field")
		f.At, f.Name = id.At, id.Name
		f.Type = p.array(f.Type)
		p.expect(";")
		d.Fields = append(d.Fields, f)
	})
	p.expect("}")
	return d
}

func (p *parser) enum(as Annotations) *EnumDecl {
	p.advance()
	d := &EnumDecl{Annotations: as}
	if !isName(p.tok()) || !p.at(1).is("{") {
		d.Type = p.typ()
	}
	id := p.name("an enum")
	d.At, d.Name = id.At, id.Name
	p.declare(d.Name, true)
	p.expect("{")
	p.list("}", func() {
		m := &EnumMember{Annotations: p.annotations()}
		id := p.name("a member")
		m.At, m.Name = id.At, id.Name
		if d.Type != nil {
			p.expect("=")
			m.Value = p.expr()
		}
		d.Members = append(d.Members, m)
	})
	return d
}

func (p *parser) typeDecl(as Annotations) Decl {
	d := &TypeDecl{Annotations: as, New: p.advance().Text == "type"}
	inner := p.annotations()
	first := p.tok()
	switch {
	case p.is("struct") || p.is("header") || p.is("header_union"):
		c := p.composite(inner)
		d.Decl, d.Type = c, &NamedType{At: c.At, Name: c.Name}
	case p.is("enum"):
		e := p.enum(inner)
		d.Decl, d.Type = e, &NamedType{At: e.At, Name: e.Name}
	default:
		d.Type = p.typ()
	}
	if d.New && d.Decl != nil {
		p.fail(first, "expected a type that is declared already, found the keyword '%s'", first.Text)
	}
	id := p.name("a type")
	d.At, d.Name = id.At, id.Name
	p.declare(d.Name, true)
	p.expect(";")
	return d
}

func (p *parser) parser(as Annotations) Decl {
	p.advance()
	id := p.name("a parser")
	p.declare(id.Name, true)
	d := &ParserDecl{At: id.At, Annotations: as, Name: id.Name}
	p.push()
	defer p.pop()
	d.TypeParams = p.typeParams()
	d.Params = p.params()
	if d.TypeOnly = p.accept(";"); d.TypeOnly {
		return d
	}
	if p.is("(") {
		d.CtorParams = p.params()
	}
	p.expect("{")
	p.each("}", func() {
		as := p.annotations()
		switch {
		case p.is("state"):
			d.States = append(d.States, p.state(as))
		case len(d.States) > 0:
			p.fail(p.tok(), "expected a state or '}', found %v: declarations stand before the states", p.tok())
		case p.is("value_set"):
			d.Locals = append(d.Locals, p.valueSet(as))
		default:
			d.Locals = append(d.Locals, p.localDecl(as))
		}
	})
	p.expect("}")
	return d
}

func (p *parser) valueSet(as Annotations) Decl {
	p.advance()
	p.expect("<")
	v := &ValueSetDecl{Annotations: as, Type: p.typ()}
	p.expect(">")
	p.expect("(")
	v.Size = p.expr()
	p.expect(")")
	id := p.name("a value set")
	v.At, v.Name = id.At, id.Name
	p.declare(v.Name, false)
	p.expect(";")
	return v
}

func (p *parser) state(as Annotations) *State {
	p.advance()
	id := p.name("a state")
	s := &State{At: id.At, Annotations: as, Name: id.Name}
	p.expect("{")
	p.push()
	defer p.pop()
	p.each("}", func() {
		switch t := p.tok(); {
		case p.accept("transition"):
			p.transition(s)
			if !p.is("}") {
				p.fail(p.tok(), "expected '}' behind the transition of state %s, found %v", s.Name, p.tok())
			}
		case p.is("return") || p.is("exit") || p.is("switch"):
			p.fail(t, "'%s' cannot stand in a parser state", t.Text)
		default:
			s.Stmts = append(s.Stmts, p.stmt(true))
		}
	})
	p.expect("}")
	return s
}

func (p *parser) transition(s *State) {
	if !p.is("select") {
		s.Next = p.name("the next state")
		p.expect(";")
		return
	}
	sel := &Select{At: At{p.advance().Pos}}
	s.Select = sel
	p.expect("(")
	p.list(")", func() { sel.Exprs = append(sel.Exprs, p.expr()) })
	p.expect("{")
	p.each("}", func() {
		c := &SelectCase{At: At{p.tok().Pos}, Keys: p.keyset()}
		p.expect(":")
		c.Next = p.name("the next state")
		p.expect(";")
		sel.Cases = append(sel.Cases, c)
	})
	p.expect("}")
}

func (p *parser) control(as Annotations) Decl {
	p.advance()
	id := p.name("a control")
	p.declare(id.Name, true)
	d := &ControlDecl{At: id.At, Annotations: as, Name: id.Name}
	p.push()
	defer p.pop()
	d.TypeParams = p.typeParams()
	d.Params = p.params()
	if d.TypeOnly = p.accept(";"); d.TypeOnly {
		return d
	}
	if p.is("(") {
		d.CtorParams = p.params()
	}
	p.expect("{")
	p.each("}", func() {
		if p.p414() {
			return
		}
		as := p.annotations()
		switch {
		case d.Apply != nil:
			p.fail(p.tok(), "expected '}' behind the apply block of control %s, found %v", d.Name, p.tok())
		case p.is("apply") && (p.at(1).is("{") || p.at(1).is("@")) && len(as) == 0:
			p.advance()
			d.Apply = p.block(p.annotations())
		case p.is("action"):
			d.Locals = append(d.Locals, p.action(as))
		case p.is("table"):
			d.Locals = append(d.Locals, p.table(as))
		default:
			d.Locals = append(d.Locals, p.localDecl(as))
		}
	})
	if d.Apply == nil {
		p.fail(p.tok(), "control %s has no apply block", d.Name)
	}
	p.expect("}")
	return d
}

func (p *parser) table(as Annotations) Decl {
	p.advance()
	id := p.name("a table")
	p.declare(id.Name, false)
	t := &TableDecl{At: id.At, Annotations: as, Name: id.Name}
	p.expect("{")
	p.each("}", func() { p.property(t) })
	p.expect("}")
	return t
}

func (p *parser) property(t *TableDecl) {
	as := p.annotations()
	isConst := p.accept("const")
	tok := p.tok()
	id := p.name("a property of a table")
	if p.is("{") {
		p.fail(tok, "%s", blockProperty(id.Name))
	}
	p.expect("=")
	switch {
	case id.Name == "key":
		p.expect("{")
		t.HasKey = true
		p.each("}", func() {
			k := &KeyElement{At: At{p.tok().Pos}, Expr: p.expr()}
			p.expect(":")
			k.Match = p.name("a match kind")
			k.Annotations = p.annotations()
			p.expect(";")
			t.Keys = append(t.Keys, k)
		})
		p.expect("}")
	case id.Name == "actions":
		p.expect("{")
		t.HasActions = true
		p.each("}", func() {
			as := p.annotations()
			a := p.actionRef()
			a.Annotations = as
			p.expect(";")
			t.Actions = append(t.Actions, a)
		})
		p.expect("}")
	case id.Name == "entries":
		p.expect("{")
		t.Entries = &Entries{At: id.At, Annotations: as, Const: isConst}
		p.each("}", func() { t.Entries.List = append(t.Entries.List, p.entry()) })
		p.expect("}")
	default:
		q := &Property{At: id.At, Annotations: as, Const: isConst, Name: id.Name, Value: p.expr()}
		p.expect(";")
		t.Props = append(t.Props, q)
	}
}

func (p *parser) actionRef() *ActionRef {
	at := At{p.tok().Pos}
	global := p.accept(".")
	id := p.name("an action")
	id.Global = global
	a := &ActionRef{At: at, Action: id}
	if a.HasArgs = p.is("("); a.HasArgs {
		a.Args = p.args()
	}
	return a
}

func (p *parser) entry() *Entry {
	e := &Entry{At: At{p.tok().Pos}, Const: p.accept("const")}
	if p.is("priority") && p.at(1).is("=") {
		p.advance()
		p.advance()
		e.Priority = p.expr()
		p.expect(":")
	}
	e.Keys = p.keyset()
	p.expect(":")
	e.Action = p.actionRef()
	e.Annotations = p.annotations()
	p.expect(";")
	return e
}
