package syntax

import (
	"strings"

	"nicprof/p4/source"
)

// Kind is the kind of a token.
type Kind uint8

// Kinds of tokens. Keywords are names to the lexer; the parser knows them.
const (
	EOF    Kind = iota
	Name        // identifier or keyword
	Number      // integer literal as written
	String      // string literal, escapes undone
	Op          // operator or punctuation
	Bad         // text that starts no token of the language

	includeMark // #include between tokens; for the preprocessor alone
)

// Token is a lexical element. Pos is where the reader sees it: for what comes
// out of a macro, the place where the macro is used.
type Token struct {
	Kind Kind
	Text string
	Pos  source.Pos

	space bool // white space or a comment stands before it
	line  bool // first of its line
	hide  *hideSet
}

func (t Token) is(op string) bool { return t.Kind == Op && t.Text == op }

// String gives the token as a message quotes it.
func (t Token) String() string {
	switch t.Kind {
	case EOF:
		return "end of file"
	case String:
		return quote(t.Text)
	}
	if len(t.Text) > 40 {
		return "'" + t.Text[:40] + "…'"
	}
	return "'" + t.Text + "'"
}

// quote writes a string literal of P4, which knows the escapes \" and \\.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// spell gives tokens as text, with a space where the source has one.
func spell(toks []Token) string {
	var b strings.Builder
	for i, t := range toks {
		if i > 0 && (t.space || t.line) {
			b.WriteByte(' ')
		}
		if t.Kind == String {
			b.WriteString(quote(t.Text))
		} else {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// hideSet names the macros whose expansion gave the token; they do not expand
// in it again.
type hideSet struct {
	name string
	up   *hideSet
	n    int // names in it
}

func (h *hideSet) with(name string) *hideSet {
	if h.has(name) {
		return h
	}
	n := 1
	if h != nil {
		n += h.n
	}
	return &hideSet{name, h, n}
}

// union adds the names of a to h.
func (h *hideSet) union(a *hideSet) *hideSet {
	for ; a != nil && a != h; a = a.up {
		h = h.with(a.name)
	}
	return h
}

func (h *hideSet) has(name string) bool {
	for ; h != nil; h = h.up {
		if h.name == name {
			return true
		}
	}
	return false
}
