package syntax

import "slices"

// block reads { statements }.
func (p *parser) block(as Annotations) *BlockStmt {
	defer p.enter()()
	b := &BlockStmt{At: At{p.expect("{").Pos}, Annotations: as}
	p.push()
	p.each("}", func() { b.Stmts = append(b.Stmts, p.stmt(true)) })
	p.pop()
	b.End = p.expect("}").Pos
	return b
}

// stmt reads a statement or, when decls, a declaration.
func (p *parser) stmt(decls bool) Stmt {
	defer p.enter()()
	as := p.annotations()
	t := p.tok()
	at := At{t.Pos}
	next := p.at(1)
	switch {
	case p.is("{"):
		return p.block(as)
	case p.is("if"):
		return p.ifStmt(as)
	case p.is("switch"):
		return p.switchStmt(as)
	case p.is("for") && next.is("("):
		return p.forStmt(as)
	case p.is("const") || p.isDecl():
		if !decls {
			p.fail(t, "a declaration here needs a block: { … }")
		}
		return &DeclStmt{at, p.localDecl(as)}
	case !p.is("return") && !p.is("exit") && !p.is(";") && !next.is(";"):
		s := p.simple(as)
		p.expect(";")
		return s
	}
	if len(as) > 0 {
		p.fail(t, "no annotation may stand before %v", t)
	}
	p.advance()
	switch {
	case t.is(";"):
		return &EmptyStmt{at}
	case word(t, "exit"):
		p.expect(";")
		return &ExitStmt{at}
	case word(t, "break"):
		p.expect(";")
		return &BreakStmt{at}
	case word(t, "continue"):
		p.expect(";")
		return &ContinueStmt{at}
	case word(t, "return"):
		r := &ReturnStmt{At: at}
		if !p.is(";") {
			r.Value = p.expr()
		}
		p.expect(";")
		return r
	}
	p.fail(next, "expected a statement: '%s' alone is none", t.Text)
	return nil
}

// assignOps are the operators that assign.
var assignOps = []string{"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", "|+|=", "|-|="}

// simple reads an assignment or a call without its semicolon.
func (p *parser) simple(as Annotations) Stmt {
	t := p.tok()
	if !isName(t) && !p.is(".") && !p.is("this") && !p.is("(") {
		p.fail(t, "expected a statement, found %v", t)
	}
	x := p.postfix(p.primary())
	op := p.tok()
	if op.is(">") && p.at(1).is(">=") && !p.at(1).space {
		p.advance()
		p.advance()
		return &AssignStmt{At{t.Pos}, as, x, ">>=", p.expr()}
	}
	if op.Kind == Op && slices.Contains(assignOps, op.Text) {
		p.advance()
		return &AssignStmt{At{t.Pos}, as, x, op.Text, p.expr()}
	}
	call, ok := x.(*CallExpr)
	if !ok {
		p.fail(op, "expected '=' or '(' of a statement, found %v", op)
	}
	return &CallStmt{At{t.Pos}, as, call}
}

func (p *parser) ifStmt(as Annotations) Stmt {
	s := &IfStmt{At: At{p.advance().Pos}, Annotations: as}
	first := s
	// A chain of else if is read in a loop: it may be long.
	for {
		p.expect("(")
		s.Cond = p.expr()
		p.expect(")")
		s.Then = p.stmt(false)
		if !p.accept("else") {
			return first
		}
		if !p.is("if") {
			s.Else = p.stmt(false)
			return first
		}
		next := &IfStmt{At: At{p.advance().Pos}}
		s.Else = next
		s = next
	}
}

func (p *parser) switchStmt(as Annotations) Stmt {
	s := &SwitchStmt{At: At{p.advance().Pos}, Annotations: as}
	p.expect("(")
	s.Expr = p.expr()
	p.expect(")")
	p.expect("{")
	p.each("}", func() {
		t := p.tok()
		c := &SwitchCase{At: At{t.Pos}}
		if p.accept("default") {
			c.Label = &DefaultExpr{At{t.Pos}, "default"}
		} else {
			c.Label = p.expr()
		}
		p.expect(":")
		if p.is("{") || p.is("@") {
			c.Body = p.block(p.annotations())
		}
		s.Cases = append(s.Cases, c)
	})
	p.expect("}")
	return s
}

func (p *parser) forStmt(as Annotations) Stmt {
	at := At{p.advance().Pos}
	p.expect("(")
	p.push()
	defer p.pop()
	s := &ForStmt{At: at, Annotations: as}
	for !p.is(";") {
		as := p.annotations()
		start := At{p.tok().Pos}
		if next := p.at(1); isName(p.tok()) && word(next, "in") {
			p.fail(next, "the loop variable needs its type: for (bit<8> %s in …)", p.tok().Text)
		}
		if !p.isDecl() {
			s.Init = append(s.Init, p.simple(as))
		} else {
			v := p.variable(as)
			if p.is("in") && len(s.Init) == 0 && v.Init == nil {
				p.advance()
				return p.forIn(at, s.Annotations, v)
			}
			s.Init = append(s.Init, &DeclStmt{start, v})
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
	s.Cond = p.expr()
	p.expect(";")
	for !p.is(")") {
		s.Post = append(s.Post, p.simple(p.annotations()))
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	s.Body = p.stmt(false)
	return s
}

// forIn reads the rest of for (Type x in … behind the keyword in.
func (p *parser) forIn(at At, as Annotations, v *VarDecl) Stmt {
	s := &ForInStmt{At: at, Annotations: as, Var: v, Over: p.expr()}
	if p.is("..") {
		op := p.advance()
		s.Over = &BinaryExpr{At: At{s.Over.Position()}, Op: "..", OpPos: op.Pos, X: s.Over, Y: p.expr()}
	}
	p.expect(")")
	s.Body = p.stmt(false)
	return s
}

// variable reads Type Name [= value].
func (p *parser) variable(as Annotations) *VarDecl {
	v := &VarDecl{Annotations: as, Type: p.typ()}
	p.variableName(v)
	return v
}

func (p *parser) variableName(v *VarDecl) {
	id := p.name("a variable")
	v.At, v.Name = id.At, id.Name
	v.Type = p.array(v.Type)
	if p.accept("=") {
		v.Init = p.expr()
	}
	p.declare(v.Name, false)
}

// localDecl reads a constant, a variable or an instance with its semicolon.
func (p *parser) localDecl(as Annotations) Decl {
	if p.is("const") {
		return p.constant(as)
	}
	t := p.typ()
	if p.is("(") {
		return p.instance(as, t)
	}
	v := &VarDecl{Annotations: as, Type: t}
	p.variableName(v)
	p.expect(";")
	return v
}
