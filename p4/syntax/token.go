package syntax

import "nicprof/p4/source"

// Kind is the kind of a token.
type Kind uint8

// Kinds of tokens. Keywords are names to the lexer; the parser knows them.
const (
	EOF    Kind = iota
	Name        // identifier or keyword
	Number      // integer literal as written
	String      // string literal, escapes undone
	Op          // operator or punctuation
	Bad         // a character that starts no token of the language
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

// hideSet names the macros whose expansion gave the token; they do not expand
// in it again.
type hideSet struct {
	name string
	up   *hideSet
}

func (h *hideSet) has(name string) bool {
	for ; h != nil; h = h.up {
		if h.name == name {
			return true
		}
	}
	return false
}
