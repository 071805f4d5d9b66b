// Package source says where in a P4 program something stands, and carries the
// messages about it. It knows nothing of the language.
package source

import (
	"fmt"
	"strings"
)

// Pos is a place in a source file as its reader sees it: after #line and
// #include, with 1-based line and column (columns count bytes). The zero Pos
// is unknown.
type Pos struct {
	File string
	Line int
	Col  int
}

// Known tells whether the place is known.
func (p Pos) Known() bool { return p.Line > 0 }

// String gives file:line:column, or file:line when the column is unknown.
func (p Pos) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Message is an error or a warning at a place: what is wrong, what was
// expected and what to do. Text is the source line itself, for the caret;
// Notes say how the place was reached (included from, expanded from macro).
type Message struct {
	Pos   Pos
	Msg   string
	Text  string
	Notes []string
}

// Error gives the message in one to several lines: place and text, the source
// line and a caret under its column, then the notes.
func (m *Message) Error() string {
	var b strings.Builder
	if m.Pos.File != "" || m.Pos.Known() {
		fmt.Fprintf(&b, "%s: ", m.Pos)
	}
	b.WriteString(m.Msg)
	if m.Text != "" {
		fmt.Fprintf(&b, "\n    %s", strings.ReplaceAll(m.Text, "\t", " "))
		if m.Pos.Col > 0 && m.Pos.Col <= len(m.Text)+1 {
			fmt.Fprintf(&b, "\n    %s^", strings.Repeat(" ", len([]rune(m.Text[:m.Pos.Col-1]))))
		}
	}
	for _, n := range m.Notes {
		fmt.Fprintf(&b, "\n    %s", n)
	}
	return b.String()
}
