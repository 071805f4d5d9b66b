// Package source says where in a P4 program something stands, and carries the
// messages about it. It knows nothing of the language.
package source

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
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
// line and a caret under its column, then the notes. Of a long line it shows the
// part around the column; what is not printable shows as a point.
func (m *Message) Error() string {
	var b strings.Builder
	if m.Pos.File != "" || m.Pos.Known() {
		fmt.Fprintf(&b, "%s: ", m.Pos)
	}
	b.WriteString(m.Msg)
	if line, caret := excerpt(m.Text, m.Pos.Col-1); line != "" {
		fmt.Fprintf(&b, "\n    %s", line)
		if caret >= 0 {
			fmt.Fprintf(&b, "\n    %s^", strings.Repeat(" ", caret))
		}
	}
	for _, n := range m.Notes {
		fmt.Fprintf(&b, "\n    %s", n)
	}
	return b.String()
}

// Most characters of a source line that a message shows, and of these most
// before the caret.
const (
	maxExcerpt = 160
	maxBefore  = 100
)

// excerpt is a line as it can be printed, and where in it the byte at stands:
// -1 when it is not in the line.
func excerpt(text string, at int) (line string, caret int) {
	caret = -1
	var out []rune
	for i, r := range text {
		if i <= at {
			caret = len(out)
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = '.'
			if text[i] == '\t' {
				r = ' '
			}
		}
		out = append(out, r)
	}
	if at >= len(text) {
		caret = -1
		if at == len(text) { // behind the last character
			caret = len(out)
		}
	}
	first := max(0, min(caret-maxBefore, len(out)-maxExcerpt))
	if first > 0 {
		out, caret = out[first:], caret-first
		copy(out, []rune("..."))
	}
	if len(out) > maxExcerpt {
		out = append(out[:maxExcerpt], []rune("...")...)
	}
	return string(out), caret
}
