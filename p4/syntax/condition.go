package syntax

import (
	"fmt"
	"strconv"
	"strings"
)

// eval decides the expression of a #if: integers of 64 bits as in C.
func (pp *preproc) eval(word Token, rest []Token) bool {
	e := &evaluator{toks: pp.expandDefined(rest)}
	v := e.ternary(true)
	if e.err == "" && len(e.toks) > 0 {
		e.fail("%v is not expected here", e.toks[0])
	}
	if e.err != "" {
		pp.errorf(word.Pos, "the condition of #%s cannot be decided: %s", word.Text, e.err)
		return false
	}
	return v.n != 0
}

// expandDefined expands macros except behind defined, which it decides.
func (pp *preproc) expandDefined(toks []Token) []Token {
	var out []Token
	for len(toks) > 0 {
		i := 0
		for i < len(toks) && !(toks[i].Kind == Name && toks[i].Text == "defined") {
			i++
		}
		out = append(out, toks[:i]...)
		if i == len(toks) {
			break
		}
		t, rest := toks[i], toks[i+1:]
		switch {
		case len(rest) > 0 && rest[0].Kind == Name:
			toks, rest = rest[1:], rest[:1]
		case len(rest) > 2 && rest[0].is("(") && rest[1].Kind == Name && rest[2].is(")"):
			toks, rest = rest[3:], rest[1:2]
		default:
			out = append(out, t) // the evaluator complains
			toks = rest
			continue
		}
		t.Kind, t.Text = Number, "0"
		if pp.macros[rest[0].Text] != nil {
			t.Text = "1"
		}
		out = append(out, t)
	}
	return pp.expandAll(out)
}

// evaluator reads an expression of #if from its tokens. err is the first
// thing wrong with it.
type evaluator struct {
	toks  []Token
	depth int
	err   string
}

// number is a value of the preprocessor: 64 bits, signed or not.
type number struct {
	n        int64
	unsigned bool
}

func (e *evaluator) fail(format string, args ...any) number {
	if e.err == "" {
		e.err = fmt.Sprintf(format, args...)
	}
	e.toks = nil
	return number{}
}

// accept takes the operator if it is next. ">>" is two tokens.
func (e *evaluator) accept(op string) bool {
	if op == ">>" {
		if len(e.toks) < 2 || !e.toks[0].is(">") || !e.toks[1].is(">") || e.toks[1].space {
			return false
		}
		e.toks = e.toks[2:]
		return true
	}
	if len(e.toks) == 0 || !e.toks[0].is(op) {
		return false
	}
	e.toks = e.toks[1:]
	return true
}

func truth(b bool) number {
	if b {
		return number{n: 1}
	}
	return number{}
}

// ternary reads a whole expression. What is not live is read but not
// computed: it may divide by zero.
func (e *evaluator) ternary(live bool) number {
	if e.depth++; e.depth > maxNesting {
		return e.fail("it is nested more than %d deep", maxNesting)
	}
	defer func() { e.depth-- }()
	c := e.binary(0, live)
	if !e.accept("?") {
		return c
	}
	a := e.ternary(live && c.n != 0)
	if !e.accept(":") {
		return e.fail("? without :")
	}
	b := e.ternary(live && c.n == 0)
	if c.n == 0 {
		a, b = b, a
	}
	return number{a.n, a.unsigned || b.unsigned}
}

// levels of binary operators, weakest first.
var levels = [][]string{
	{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="},
	{"<=", ">=", "<", ">"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"},
}

func (e *evaluator) binary(level int, live bool) number {
	if level == len(levels) {
		return e.unary(live)
	}
	x := e.binary(level+1, live)
next:
	for e.err == "" {
		for _, op := range levels[level] {
			if !e.accept(op) {
				continue
			}
			right := live
			if op == "&&" {
				right = live && x.n != 0
			} else if op == "||" {
				right = live && x.n == 0
			}
			x = e.apply(op, x, e.binary(level+1, right), live)
			continue next
		}
		break
	}
	return x
}

func (e *evaluator) apply(op string, x, y number, live bool) number {
	u := x.unsigned || y.unsigned
	switch op {
	case "||":
		return truth(x.n != 0 || y.n != 0)
	case "&&":
		return truth(x.n != 0 && y.n != 0)
	case "==":
		return truth(x.n == y.n)
	case "!=":
		return truth(x.n != y.n)
	case "<", ">=":
		less := x.n < y.n
		if u {
			less = uint64(x.n) < uint64(y.n)
		}
		return truth(less == (op == "<"))
	case ">", "<=":
		greater := x.n > y.n
		if u {
			greater = uint64(x.n) > uint64(y.n)
		}
		return truth(greater == (op == ">"))
	case "|":
		return number{x.n | y.n, u}
	case "^":
		return number{x.n ^ y.n, u}
	case "&":
		return number{x.n & y.n, u}
	case "+":
		return number{x.n + y.n, u}
	case "-":
		return number{x.n - y.n, u}
	case "*":
		return number{x.n * y.n, u}
	case "<<", ">>":
		n := y.n
		left := op == "<<"
		if n < 0 && !y.unsigned {
			n, left = -n, !left
		}
		switch {
		case left:
			return number{x.n << uint64(n), x.unsigned}
		case x.unsigned:
			return number{int64(uint64(x.n) >> uint64(n)), true}
		}
		return number{x.n >> uint64(n), false}
	}
	if y.n == 0 {
		if live {
			return e.fail("it divides by zero")
		}
		return number{0, u}
	}
	switch {
	case op == "/" && u:
		return number{int64(uint64(x.n) / uint64(y.n)), true}
	case op == "/":
		return number{x.n / y.n, false}
	case u:
		return number{int64(uint64(x.n) % uint64(y.n)), true}
	}
	return number{x.n % y.n, false}
}

func (e *evaluator) unary(live bool) number {
	if e.depth++; e.depth > maxNesting {
		return e.fail("it is nested more than %d deep", maxNesting)
	}
	defer func() { e.depth-- }()
	if len(e.toks) == 0 {
		return e.fail("it ends too early")
	}
	t := e.toks[0]
	e.toks = e.toks[1:]
	switch {
	case t.Kind == Number:
		return e.number(t)
	case t.Kind == Name && t.Text == "defined":
		return e.fail("defined takes the name of a macro")
	case t.Kind == Name:
		return number{} // not a macro
	case t.is("("):
		x := e.ternary(live)
		if !e.accept(")") {
			return e.fail("( without )")
		}
		return x
	case t.is("!"):
		return truth(e.unary(live).n == 0)
	case t.is("-"):
		x := e.unary(live)
		return number{-x.n, x.unsigned}
	case t.is("+"):
		return e.unary(live)
	case t.is("~"):
		x := e.unary(live)
		return number{^x.n, x.unsigned}
	}
	return e.fail("%v is not expected here", t)
}

// number reads a literal of C: decimal, octal, 0x or 0b, with suffixes u and l.
func (e *evaluator) number(t Token) number {
	text := strings.ToLower(t.Text)
	digits := strings.TrimRight(text, "ul")
	suffix := text[len(digits):]
	n, err := strconv.ParseUint(digits, 0, 64)
	if err != nil || strings.Count(suffix, "u") > 1 || strings.Count(suffix, "l") > 2 || strings.Contains(digits, "_") {
		return e.fail("%v is not a number of 64 bits", t)
	}
	return number{int64(n), strings.Contains(suffix, "u") || n > 1<<63-1}
}
