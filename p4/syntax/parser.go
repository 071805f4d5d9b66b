package syntax

import (
	"fmt"

	"nicprof/p4/source"
)

// Bounds of the parser.
const (
	maxNesting = 1000   // of expressions, types and statements in each other
	maxTerms   = 10_000 // operators and selections in a row in an expression
	maxDigits  = 10_000 // of a literal
	maxWidth   = 1 << 20
)

// Parse reads a program. Its includes are looked for beside name and as opt
// says. When the program is wrong, the error is of type Errors and the file
// holds what could be read of it.
func Parse(name string, src []byte, opt Options) (*File, error) {
	pp := newPreproc(opt)
	if len(src) > maxFileSize {
		return &File{Name: name, Sources: pp.src}, Errors{{Pos: source.Pos{File: name},
			Msg: fmt.Sprintf("the file has %d bytes; a P4 file may have %d", len(src), maxFileSize)}}
	}
	pp.file(SourceFile{Name: name}, string(src))
	p := &parser{src: pp.src, toks: append(pp.out, eof(name, pp.out)), errs: pp.errs}
	p.push()
	if !pp.fatal {
		p.program()
	}
	f := &File{Name: name, Decls: p.decls, Sources: pp.src, Warnings: pp.warnings}
	if len(p.errs) > 0 {
		return f, p.errs
	}
	return f, nil
}

// ParseFile reads the program in the file at path, as Parse does. An error
// about reading the file itself is not of type Errors.
func ParseFile(path string, opt Options) (*File, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, []byte(text), opt)
}

// eof is the token behind the last one, standing right behind it.
func eof(name string, toks []Token) Token {
	t := Token{Kind: EOF, Pos: source.Pos{File: name, Line: 1, Col: 1}, line: true}
	if n := len(toks); n > 0 {
		t.Pos = toks[n-1].Pos
		t.Pos.Col += len(toks[n-1].Text)
	}
	return t
}

// parser is a recursive-descent parser. A syntax error is recorded and unwinds
// to the innermost list of declarations or statements, which goes on behind it.
type parser struct {
	src   *Sources
	toks  []Token // ends with EOF
	i     int
	errs  Errors
	decls []Decl

	// scopes tell, innermost last, for declared names whether they are types:
	// without that, casts and type arguments cannot be told from parentheses
	// and comparisons.
	scopes []map[string]bool
	depth  int
	width  int // inside the angle brackets of bit<W>, where > does not compare
}

// unwind is what a syntax error panics with.
type unwind struct{}

func (p *parser) tok() Token { return p.toks[p.i] }

// at gives the token n places ahead.
func (p *parser) at(n int) Token {
	return p.toks[min(p.i+n, len(p.toks)-1)]
}

func (p *parser) advance() Token {
	t := p.toks[p.i]
	if t.Kind != EOF {
		p.i++
	}
	return t
}

// is tells whether the next token is that operator or keyword.
func (p *parser) is(text string) bool { return word(p.tok(), text) }

func word(t Token, text string) bool {
	return (t.Kind == Op || t.Kind == Name) && t.Text == text
}

func (p *parser) accept(text string) bool {
	if p.is(text) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) expect(text string) Token {
	if !p.is(text) {
		p.fail(p.tok(), "expected '%s', found %v", text, p.tok())
	}
	return p.advance()
}

// fail records a syntax error at the token and unwinds.
func (p *parser) fail(at Token, format string, args ...any) {
	if at.Kind == Bad {
		format, args = "%s", []any{unreadable(at.Text)}
	}
	if n := len(p.errs); n == 0 || n < maxErrors && p.errs[n-1].Pos != at.Pos {
		p.errs = append(p.errs, p.src.Message(at.Pos, format, args...))
	}
	if len(p.errs) >= maxErrors {
		p.i = len(p.toks) - 1
	}
	panic(unwind{})
}

// unreadable says what is wrong with the text of a Bad token.
func unreadable(text string) string {
	switch text[0] {
	case '/':
		return "the comment that begins here has no */"
	case '"':
		return "the string that begins here has no closing \""
	}
	return fmt.Sprintf("the character %q is not part of the language", text)
}

// each runs item for every element of a list up to end, which it does not
// take. Behind a syntax error it goes on with the next element.
func (p *parser) each(end string, item func()) {
	for !p.is(end) && p.tok().Kind != EOF {
		start, depth, width, scopes := p.i, p.depth, p.width, len(p.scopes)
		if p.guarded(item) {
			continue
		}
		p.depth, p.width, p.scopes = depth, width, p.scopes[:scopes]
		p.recover(start, end)
		if p.i == start {
			p.advance()
		}
	}
}

// guarded runs f and tells whether it came to its end.
func (p *parser) guarded(f func()) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, mine := r.(unwind); !mine {
				panic(r)
			}
		}
	}()
	f()
	return true
}

// recover skips to where the next element of a list may begin: behind a
// semicolon or a block, or at the list's end. The present one began at start.
func (p *parser) recover(start int, end string) {
	depth := 0
	for _, t := range p.toks[start:p.i] {
		if t.is("{") {
			depth++
		} else if t.is("}") {
			depth--
		}
	}
	for ; p.tok().Kind != EOF; p.advance() {
		switch {
		case p.is("{"):
			depth++
		case p.is("}") && depth <= 0 && end == "}":
			return
		case p.is("}"):
			if depth--; depth <= 0 {
				p.advance()
				p.accept(";")
				return
			}
		case p.is(";") && depth <= 0:
			p.advance()
			return
		}
	}
}

// enter bounds the depth of nesting; the caller runs the function it gives.
func (p *parser) enter() func() {
	if p.depth++; p.depth > maxNesting {
		defer func() { p.i = len(p.toks) - 1 }() // read no further
		p.fail(p.tok(), "this is nested more than %d deep", maxNesting)
	}
	return func() { p.depth-- }
}

// Names.

// reserved are the keywords that name nothing else. apply, key, actions,
// state, entries, type, priority, list, break, continue and for are keywords
// where the grammar expects them and names elsewhere.
var reserved = map[string]bool{
	"_": true, "abstract": true, "action": true, "bit": true, "bool": true, "const": true,
	"control": true, "default": true, "else": true, "enum": true, "error": true, "exit": true,
	"extern": true, "false": true, "header": true, "header_union": true, "if": true, "in": true,
	"inout": true, "int": true, "match_kind": true, "out": true, "package": true, "parser": true,
	"return": true, "select": true, "string": true, "struct": true, "switch": true, "table": true,
	"this": true, "transition": true, "true": true, "tuple": true, "typedef": true,
	"value_set": true, "varbit": true, "void": true,
}

func isName(t Token) bool { return t.Kind == Name && !reserved[t.Text] }

// name takes a name; what says of what.
func (p *parser) name(what string) *Ident {
	t := p.tok()
	if !isName(t) {
		if t.Kind == Name {
			p.fail(t, "expected the name of %s, found the keyword '%s'", what, t.Text)
		}
		p.fail(t, "expected the name of %s, found %v", what, t)
	}
	p.advance()
	return &Ident{At: At{t.Pos}, Name: t.Text}
}

func (p *parser) push() { p.scopes = append(p.scopes, map[string]bool{}) }
func (p *parser) pop()  { p.scopes = p.scopes[:len(p.scopes)-1] }

func (p *parser) declare(name string, isType bool) {
	p.scopes[len(p.scopes)-1][name] = isType
}

// isType tells whether the token names a declared type.
func (p *parser) isType(t Token) bool {
	if !isName(t) {
		return false
	}
	for i := len(p.scopes) - 1; i >= 0; i-- {
		if isType, ok := p.scopes[i][t.Text]; ok {
			return isType
		}
	}
	return false
}

// namesType tells whether a name in an expression is that of a type.
func (p *parser) namesType(x Expr) bool {
	id, ok := x.(*Ident)
	if !ok {
		return false
	}
	if id.Global {
		return p.scopes[0][id.Name]
	}
	return p.isType(Token{Kind: Name, Text: id.Name})
}

// Lists between delimiters.

// list reads elements separated by commas up to the closing delimiter, which
// it takes. A comma may stand behind the last element before a brace or a
// square bracket.
func (p *parser) list(end string, item func()) {
	p.elements(end, end == "}" || end == "]", item)
}

// elements is list with the choice whether a comma may stand at the end.
func (p *parser) elements(end string, trailing bool, item func()) {
	width := p.width
	p.width = 0
	if !p.is(end) {
		item()
	}
	for !p.accept(end) {
		if !p.accept(",") {
			p.fail(p.tok(), "expected ',' or '%s', found %v", end, p.tok())
		}
		if !trailing || !p.is(end) {
			item()
		}
	}
	p.width = width
}

// names reads { a, b, … }; what says what they name.
func (p *parser) names(what string, trailing bool) []*Ident {
	p.expect("{")
	var ids []*Ident
	p.elements("}", trailing, func() { ids = append(ids, p.name(what)) })
	return ids
}

// Annotations.

func (p *parser) annotations() Annotations {
	var as Annotations
	for p.is("@") {
		as = append(as, p.annotation())
	}
	return as
}

func (p *parser) annotation() *Annotation {
	a := &Annotation{At: At{p.advance().Pos}}
	t := p.tok()
	if t.Kind != Name || t.Text == "_" {
		p.fail(t, "expected the name of an annotation, found %v", t)
	}
	p.advance()
	a.Name = t.Text
	switch {
	case a.Name == "pragma":
		p.pragma(a)
	case p.accept("("):
		a.Form = Unstructured
		p.body(a)
	case p.accept("["):
		p.structured(a)
	}
	p.checkKnown(a)
	return a
}

// pragma reads @pragma name tokens, which ends with its line.
func (p *parser) pragma(a *Annotation) {
	t := p.tok()
	if t.Kind != Name || t.line {
		p.fail(t, "expected a name behind @pragma")
	}
	p.advance()
	a.Name, a.Form = t.Text, Pragma
	for !p.tok().line {
		a.Tokens = append(a.Tokens, p.advance())
	}
}

// body reads the tokens of an unstructured annotation; parentheses in it are
// balanced.
func (p *parser) body(a *Annotation) {
	for depth := 0; ; {
		t := p.advance()
		switch {
		case t.Kind == EOF:
			p.fail(t, "the annotation @%s at %v has no ')'", a.Name, a.Pos)
		case t.is("("):
			depth++
		case t.is(")") && depth == 0:
			return
		case t.is(")"):
			depth--
		}
		a.Tokens = append(a.Tokens, t)
	}
}

func (p *parser) structured(a *Annotation) {
	a.Form = ExprList
	if isName(p.tok()) && p.at(1).is("=") {
		a.Form = KeyValues
		p.list("]", func() { a.Pairs = append(a.Pairs, p.keyValue()) })
		return
	}
	p.list("]", func() { a.Exprs = append(a.Exprs, p.expr()) })
}

func (p *parser) keyValue() *Argument {
	k := p.name("a key")
	p.expect("=")
	return &Argument{At: k.At, Name: k.Name, Value: p.expr()}
}

// checkKnown checks the body of annotations whose form the control plane
// relies on.
func (p *parser) checkKnown(a *Annotation) {
	switch {
	case a.Name == "pkginfo" && a.Form != KeyValues && len(a.Tokens) == 0:
		p.fail(Token{Pos: a.Pos}, "@pkginfo needs a list of key=value pairs")
	case a.Name == "p4runtime_translation" && a.Form == Unstructured:
		t := a.Tokens
		end := Token{Pos: a.Pos}
		if len(t) > 0 {
			end = t[len(t)-1]
		}
		if len(t) < 3 || t[0].Kind != String || !t[1].is(",") {
			p.fail(end, `@p4runtime_translation takes a URI in quotes and a type: string, bit<W> or a width`)
		}
		switch t = t[2:]; {
		case len(t) == 1 && (word(t[0], "string") || t[0].Kind == Number):
		case len(t) == 4 && word(t[0], "bit") && t[1].is("<") && t[2].Kind == Number && t[3].is(">"):
		default:
			p.fail(t[0], "@p4runtime_translation takes the types string, bit<W> with a literal W, or a width alone")
		}
	}
}

// Types.

var baseTypes = map[string]BaseKind{
	"bool": Bool, "error": ErrorType, "string": StringT, "match_kind": MatchKind, "void": Void,
}

// typeKeyword tells whether the token begins a type as a keyword does.
func typeKeyword(t Token) bool {
	if t.Kind != Name {
		return false
	}
	switch t.Text {
	case "bit", "int", "varbit", "tuple":
		return true
	}
	return baseTypes[t.Text] != ""
}

func isBits(t Token) bool { return word(t, "bit") || word(t, "int") || word(t, "varbit") }

// isList tells whether list<…> begins n tokens ahead.
func (p *parser) isList(n int) bool {
	return word(p.at(n), "list") && p.at(n+1).is("<") && !p.isType(p.at(n))
}

// typ reads a type.
func (p *parser) typ() Type {
	defer p.enter()()
	return p.array(p.elem())
}

// array reads [size] behind a type or a declared name, as often as it comes.
func (p *parser) array(t Type) Type {
	for n := 0; p.is("["); n++ {
		if n > maxNesting {
			p.fail(p.tok(), "an array has more than %d dimensions", maxNesting)
		}
		p.advance()
		t = &StackType{At: At{t.Position()}, Elem: t, Size: p.expr()}
		p.expect("]")
	}
	return t
}

// elem reads a type that is no array.
func (p *parser) elem() Type {
	t := p.tok()
	at := At{t.Pos}
	switch {
	case t.Kind == Name && baseTypes[t.Text] != "":
		p.advance()
		return &BaseType{at, baseTypes[t.Text]}
	case isBits(t):
		p.advance()
		return p.bits(&BitsType{At: at, Kind: BitsKind(t.Text)})
	case p.is("tuple"):
		p.advance()
		return &TupleType{at, p.typeArgs()}
	case p.isList(0):
		p.advance()
		args := p.typeArgs()
		if len(args) != 1 {
			p.fail(t, "list<> takes one type")
		}
		return &ListType{at, args[0]}
	}
	n := &NamedType{At: at, Global: p.accept(".")}
	if !isName(p.tok()) {
		p.fail(p.tok(), "expected a type, found %v", p.tok())
	}
	n.Name = p.advance().Text
	if p.is("<") {
		return &SpecializedType{at, n, p.typeArgs()}
	}
	return n
}

// bits reads the width of bit, int and varbit.
func (p *parser) bits(t *BitsType) Type {
	if !p.is("<") {
		if t.Kind == Varbit {
			p.fail(p.tok(), "varbit needs its greatest width: varbit<W>")
		}
		return t
	}
	p.advance()
	p.width++
	t.Width = p.expr()
	p.width--
	p.expect(">")
	return t
}

func (p *parser) typeArgs() []Type {
	p.expect("<")
	var args []Type
	p.list(">", func() {
		if p.is("_") {
			args = append(args, &DontCareType{At{p.advance().Pos}})
			return
		}
		args = append(args, p.typ())
	})
	return args
}

// typeParams reads <T, U> if it is there, and declares them.
func (p *parser) typeParams() []*Ident {
	var ids []*Ident
	if p.accept("<") {
		p.list(">", func() {
			id := p.name("a type parameter")
			p.declare(id.Name, true)
			ids = append(ids, id)
		})
	}
	return ids
}

// params reads a parameter list with its parentheses, and declares them.
func (p *parser) params() []*Param {
	p.expect("(")
	var list []*Param
	p.list(")", func() {
		q := &Param{Annotations: p.annotations()}
		if p.is("in") || p.is("out") || p.is("inout") {
			q.Dir = Direction(p.advance().Text)
		}
		q.Type = p.typ()
		id := p.name("a parameter")
		q.At, q.Name = id.At, id.Name
		if p.accept("=") {
			q.Default = p.expr()
		}
		p.declare(q.Name, false)
		list = append(list, q)
	})
	return list
}

// Looking ahead.

// skipTypeArgs gives the place behind the type arguments that begin with '<'
// i tokens ahead, if what stands there can be such.
func (p *parser) skipTypeArgs(i int) (int, bool) {
	depth, width := 0, 0
	for n := 0; n < maxNesting; n++ {
		switch t := p.at(i); {
		case t.is("<"):
			depth++
			if isBits(p.at(i - 1)) {
				width = depth
			}
		case depth == width && precedence[t.Text] != 0 && !t.is(">"):
		case t.is(">"):
			if depth--; depth == 0 {
				return i + 1, true
			}
		case t.is("("):
			j, ok := p.skipBalanced(i)
			if !ok {
				return 0, false
			}
			i = j
			continue
		case t.is("[") || t.is("]") || t.is(",") || t.is(".") || t.Kind == Number:
		case isName(t) || word(t, "_") || typeKeyword(t):
		default:
			return 0, false
		}
		i++
	}
	return 0, false
}

// skipBalanced gives the place behind the bracket that closes the one i
// tokens ahead.
func (p *parser) skipBalanced(i int) (int, bool) {
	depth := 0
	for ; ; i++ {
		switch t := p.at(i); {
		case t.Kind == EOF || t.is(";"):
			return 0, false
		case t.is("(") || t.is("[") || t.is("{"):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
	}
}

// isDecl tells whether a declaration that begins with a type comes next: a
// variable, an instance or a function, rather than a statement.
func (p *parser) isDecl() bool {
	i := 0
	if p.is(".") {
		i++
	}
	t := p.at(i)
	if typeKeyword(t) || p.isList(i) {
		return t.Text != "error" || !p.at(1).is(".")
	}
	if !isName(t) {
		return false
	}
	i++
	if p.at(i).is("<") {
		j, ok := p.skipTypeArgs(i)
		if !ok {
			return false
		}
		i = j
	}
	for p.at(i).is("[") {
		j, ok := p.skipBalanced(i)
		if !ok {
			return false
		}
		i = j
	}
	if p.at(i).is("(") {
		j, ok := p.skipBalanced(i)
		return ok && isName(p.at(j))
	}
	return isName(p.at(i))
}
