package syntax

import (
	"math/big"
	"strconv"
	"strings"
)

// precedence of binary operators; the tightest is the highest.
var precedence = map[string]int{
	"||": 1,
	"&&": 2,
	"==": 3, "!=": 3,
	"<": 4, ">": 4, "<=": 4, ">=": 4,
	"|":  5,
	"^":  6,
	"&":  7,
	"<<": 8, ">>": 8,
	"++": 9, "+": 9, "-": 9, "|+|": 9, "|-|": 9,
	"*": 10, "/": 10, "%": 10,
}

// operator gives the binary operator that comes next and how many tokens it
// has; 0 when none comes.
func (p *parser) operator() (string, int) {
	t := p.tok()
	if t.Kind != Op {
		return "", 0
	}
	if t.Text == ">" && p.width > 0 {
		return "", 0
	}
	if next := p.at(1); t.Text == ">" && !next.space && !next.line {
		switch {
		case next.is(">"):
			return ">>", 2
		case next.is(">="): // >>= assigns
			return "", 0
		}
	}
	if precedence[t.Text] == 0 || t.Text == "+" && p.at(1).is(":") {
		return "", 0
	}
	return t.Text, 1
}

// expr reads an expression.
func (p *parser) expr() Expr {
	defer p.enter()()
	return p.mux(p.binary(p.unary(), 1))
}

// inner reads an expression between brackets, where > compares.
func (p *parser) inner() Expr {
	width := p.width
	p.width = 0
	x := p.expr()
	p.width = width
	return x
}

// mux reads ? : behind a condition, if it is there.
func (p *parser) mux(c Expr) Expr {
	if !p.accept("?") {
		return c
	}
	m := &MuxExpr{At: At{c.Position()}, Cond: c, Then: p.expr()}
	p.expect(":")
	m.Else = p.expr()
	return m
}

// binary reads operators of at least that precedence behind their left operand.
func (p *parser) binary(x Expr, least int) Expr {
	for n := 0; ; n++ {
		op, toks := p.operator()
		prec := precedence[op]
		if toks == 0 || prec < least {
			return x
		}
		if n > maxTerms {
			p.fail(p.tok(), "the expression has more than %d operators in a row", maxTerms)
		}
		at := p.advance()
		if toks == 2 {
			p.advance()
		}
		y := p.binary(p.unary(), prec+1)
		x = &BinaryExpr{At: At{x.Position()}, Op: op, OpPos: at.Pos, X: x, Y: y}
	}
}

func (p *parser) unary() Expr {
	defer p.enter()()
	t := p.tok()
	at := At{t.Pos}
	switch {
	case p.is("!") || p.is("~") || p.is("-") || p.is("+"):
		p.advance()
		return &UnaryExpr{at, t.Text, p.unary()}
	case p.is("(") && p.isCast():
		p.advance()
		c := &CastExpr{At: at, Type: p.typ()}
		p.expect(")")
		c.X = p.unary()
		return c
	}
	return p.postfix(p.primary())
}

// isCast tells whether the parenthesis that comes next encloses a type.
func (p *parser) isCast() bool {
	i := 1
	if p.at(i).is(".") {
		i++
	}
	t := p.at(i)
	switch {
	case typeKeyword(t):
		return t.Text != "error" || p.at(i+1).is(")")
	case p.isList(i):
		return true
	case !isName(t):
		return false
	case !p.isType(t):
		// (x) before what can only be an operand: a type not declared.
		next := p.at(i + 2)
		return p.at(i+1).is(")") && (isName(next) || next.Kind == Number || next.is("{") || next.is("~") || next.is("!"))
	}
	i++
	if p.at(i).is("<") {
		j, ok := p.skipTypeArgs(i)
		if !ok {
			return false
		}
		i = j
	}
	return p.at(i).is(")") || p.at(i).is("[")
}

func (p *parser) primary() Expr {
	t := p.tok()
	at := At{t.Pos}
	switch {
	case t.Kind == Number:
		return p.number()
	case t.Kind == String:
		p.advance()
		return &StringLit{at, t.Text}
	case p.is("true") || p.is("false"):
		p.advance()
		return &BoolLit{at, t.Text == "true"}
	case p.is("this"):
		p.advance()
		return &ThisExpr{at}
	case p.is("..."):
		p.advance()
		return &DefaultExpr{at, t.Text}
	case p.is("("):
		p.advance()
		x := p.inner()
		p.expect(")")
		return x
	case p.is("{"):
		return p.braces()
	case p.is("error") && p.at(1).is("."):
		p.advance()
		return &Ident{At: at, Name: "error"}
	case p.is("."):
		p.advance()
		id := p.name("something global")
		return &Ident{At: at, Name: id.Name, Global: true}
	case isName(t):
		p.advance()
		return &Ident{At: at, Name: t.Text}
	case typeKeyword(t):
		p.fail(t, "expected an expression, found the type '%s'", t.Text)
	case p.is("_"):
		p.fail(t, "'_' stands only for a whole argument, key or type argument, not in an expression")
	}
	p.fail(t, "expected an expression, found %v", t)
	return nil
}

// braces reads { … }: a list, a record, {#} or {...}.
func (p *parser) braces() Expr {
	at := At{p.advance().Pos}
	if p.is("#") && !p.tok().space && p.at(1).is("}") && !p.at(1).space {
		p.advance()
		p.advance()
		return &InvalidExpr{at}
	}
	if isName(p.tok()) && p.at(1).is("=") {
		r := &RecordExpr{At: at}
		p.list("}", func() {
			if r.Rest = p.rest(); !r.Rest {
				r.Fields = append(r.Fields, p.keyValue())
			}
		})
		return r
	}
	l := &ListExpr{At: at}
	p.list("}", func() {
		if l.Rest = p.rest(); !l.Rest {
			l.Elems = append(l.Elems, p.expr())
		}
	})
	return l
}

// rest takes ... as the last element of a list.
func (p *parser) rest() bool {
	return p.is("...") && p.at(1).is("}") && p.accept("...")
}

// postfix reads members, indices, slices and calls behind x.
func (p *parser) postfix(x Expr) Expr {
	for n := 0; ; n++ {
		if n > maxTerms {
			p.fail(p.tok(), "more than %d members, indices and calls in a row", maxTerms)
		}
		at := At{x.Position()}
		t := p.tok()
		_, called := x.(*CallExpr)
		switch {
		case p.accept("."):
			id := p.name("a member")
			x = &MemberExpr{At: at, X: x, Name: id.Name, NamePos: id.Pos}
		case p.accept("["):
			x = p.index(at, x)
		case p.is("(") && !called:
			x = p.call(at, x, nil)
		case p.is("<") && p.isTypeArgs():
			args := p.typeArgs()
			if p.is("(") {
				x = p.call(at, x, args)
				break
			}
			id, ok := x.(*Ident)
			if !ok || !p.is(".") {
				p.fail(p.tok(), "expected '(' behind type arguments, found %v", p.tok())
			}
			base := &NamedType{At: at, Name: id.Name, Global: id.Global}
			x = &TypeExpr{at, &SpecializedType{at, base, args}}
		default:
			if p.namesType(x) {
				p.fail(t, "a type stands where a value is expected: expected '.' or '(' behind it, found %v", t)
			}
			return x
		}
	}
}

func (p *parser) index(at At, x Expr) Expr {
	i := p.expr()
	switch {
	case p.accept(":"):
		s := &SliceExpr{At: at, X: x, Hi: i, Lo: p.expr()}
		p.expect("]")
		return s
	case p.is("+"):
		p.advance()
		p.expect(":")
		s := &SliceExpr{At: at, X: x, Lo: i, Width: p.expr()}
		p.expect("]")
		return s
	}
	p.expect("]")
	return &IndexExpr{at, x, i}
}

// isTypeArgs tells whether the '<' that comes next begins type arguments: they
// begin with a type, and a call or, of a type, a member follows. Before () they
// can be nothing else, so that the type need not be declared.
func (p *parser) isTypeArgs() bool {
	j, ok := p.skipTypeArgs(0)
	if !ok {
		return false
	}
	if p.at(j).is("(") && p.at(j+1).is(")") {
		return true
	}
	i := 1
	if p.at(i).is(".") {
		i++
	}
	t := p.at(i)
	if !(typeKeyword(t) || word(t, "_") || p.isType(t) || p.isList(i)) {
		return false
	}
	if word(t, "error") && p.at(i+1).is(".") {
		return false
	}
	return p.at(j).is("(") || p.at(j).is(".") && p.i > 0 && p.isType(p.toks[p.i-1])
}

func (p *parser) call(at At, fun Expr, types []Type) *CallExpr {
	c := &CallExpr{At: at, Fun: fun, TypeArgs: types, Lparen: p.tok().Pos}
	c.Args = p.args()
	return c
}

// args reads an argument list with its parentheses.
func (p *parser) args() []*Argument {
	p.expect("(")
	var list []*Argument
	p.list(")", func() {
		t := p.tok()
		a := &Argument{At: At{t.Pos}}
		if isName(t) && p.at(1).is("=") {
			a.Name = t.Text
			p.advance()
			p.advance()
		}
		if p.is("_") {
			a.Value = &DefaultExpr{At{p.advance().Pos}, "_"}
		} else {
			a.Value = p.expr()
		}
		list = append(list, a)
	})
	return list
}

// number reads an integer literal: 10, 0xF, 8w0b1_0, 4s7.
func (p *parser) number() *IntLit {
	t := p.tok()
	if t.Kind != Number {
		p.fail(t, "expected a number, found %v", t)
	}
	lit := &IntLit{At: At{t.Pos}, Text: t.Text}
	digits := t.Text
	if len(digits) > maxDigits {
		p.fail(t, "the number has more than %d digits", maxDigits)
	}
	n := 0
	for n < len(digits) && digit(digits[n]) {
		n++
	}
	if n < len(digits) && (digits[n] == 'w' || digits[n] == 's') {
		w, err := strconv.Atoi(digits[:n])
		if err != nil || w > maxWidth {
			p.fail(t, "the width of %v is more than %d bits", t, maxWidth)
		}
		lit.Width, lit.Signed = w, digits[n] == 's'
		digits = digits[n+1:]
	}
	if digits == "" {
		p.fail(t, "%v has a width but no value", t)
	}
	base := 10
	if len(digits) > 1 && digits[0] == '0' {
		if b := strings.IndexByte("bodx", digits[1]|0x20); b >= 0 {
			base = [...]int{2, 8, 10, 16}[b]
			digits = digits[2:]
		}
	}
	v, ok := new(big.Int).SetString(strings.ReplaceAll(digits, "_", ""), base)
	if !ok {
		p.fail(t, "%v is not a number of base %d", t, base)
	}
	p.advance()
	lit.Value = v
	return lit
}

// Key sets.

// keyset reads what stands before the colon in a select case or a table entry:
// one key, or several in parentheses.
func (p *parser) keyset() []Expr {
	if !p.is("(") || p.isCast() {
		return []Expr{p.key()}
	}
	defer p.enter()()
	p.advance()
	var keys []Expr
	p.list(")", func() { keys = append(keys, p.key()) })
	if p.is(":") || len(keys) != 1 || isKeyOnly(keys[0]) {
		return keys
	}
	// The parenthesis was the beginning of an expression.
	return []Expr{p.keyRest(p.mux(p.binary(p.postfix(keys[0]), 1)))}
}

// key reads a simple key: default, _, a value, value &&& mask or low .. high.
func (p *parser) key() Expr {
	if p.is("default") || p.is("_") {
		t := p.advance()
		return &DefaultExpr{At{t.Pos}, t.Text}
	}
	return p.keyRest(p.expr())
}

// isKeyOnly tells whether x stands in key sets alone.
func isKeyOnly(x Expr) bool {
	switch x := x.(type) {
	case *DefaultExpr:
		return true
	case *BinaryExpr:
		return x.Op == "&&&" || x.Op == ".."
	}
	return false
}

func (p *parser) keyRest(x Expr) Expr {
	if !p.is("&&&") && !p.is("..") {
		return x
	}
	op := p.advance()
	return &BinaryExpr{At: At{x.Position()}, Op: op.Text, OpPos: op.Pos, X: x, Y: p.expr()}
}
