package syntax

import (
	"strings"

	"nicprof/p4/source"
)

// lexer splits one file into tokens. A file that cannot be split further gives
// Bad tokens, which are errors only where they are not skipped by #if.
type lexer struct {
	text    string // lines that end in a backslash are joined
	splices []int  // offsets in text at which lines were joined, ascending
	off     int

	stay bool // give EOF at the end of the line, and stay there
	skip bool // what is read is skipped by #if: a string ends on its line

	file  string // as seen by the reader
	line  int    // number of the line at start, as seen by the reader
	phys  int    // number of that line in the file
	start int    // offset of the line's first byte
}

func newLexer(file, src string) *lexer {
	src = strings.TrimPrefix(src, "\ufeff") // byte order mark
	lx := &lexer{text: src, file: file, line: 1, phys: 1}
	if strings.Contains(src, "\\\n") || strings.Contains(src, "\\\r\n") {
		lx.join(src)
	}
	return lx
}

// join removes every backslash that ends a line, together with the line's end.
func (lx *lexer) join(src string) {
	var b strings.Builder
	for {
		i := strings.IndexByte(src, '\\')
		if i < 0 {
			break
		}
		b.WriteString(src[:i])
		rest := src[i+1:]
		switch {
		case strings.HasPrefix(rest, "\n"):
			src = rest[1:]
			lx.splices = append(lx.splices, b.Len())
		case strings.HasPrefix(rest, "\r\n"):
			src = rest[2:]
			lx.splices = append(lx.splices, b.Len())
		default:
			b.WriteByte('\\')
			src = rest
		}
	}
	b.WriteString(src)
	lx.text = b.String()
}

// newLine makes off the first byte of a line.
func (lx *lexer) newLine(off int) {
	lx.line++
	lx.phys++
	lx.start = off
}

// seek moves to off, which lies on the same logical line.
func (lx *lexer) seek(off int) {
	for len(lx.splices) > 0 && lx.splices[0] <= off {
		lx.newLine(lx.splices[0])
		lx.splices = lx.splices[1:]
	}
	lx.off = off
}

func (lx *lexer) pos() source.Pos {
	return source.Pos{File: lx.file, Line: lx.line, Col: lx.off - lx.start + 1}
}

// operators by first byte, longest first. A '>' is never joined with another
// one, because it may close nested type arguments: the parser joins them.
var operators = func() (table [256][]string) {
	for _, o := range strings.Fields(`|+|= |-|= &&& <<= |+| |-| ...
		<< <= >= == != && || ++ .. ## += -= *= /= %= &= |= ^=
		+ - * / % & | ^ ~ ! < > = ( ) [ ] { } . , ; : ? @ #`) {
		table[o[0]] = append(table[o[0]], o)
	}
	return table
}()

func operatorAt(s string) string {
	for _, o := range operators[s[0]] {
		if strings.HasPrefix(s, o) {
			return o
		}
	}
	return ""
}

func letter(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// next gives the next token, EOF at the end again and again.
func (lx *lexer) next() Token {
	t := Token{line: lx.off == 0}
	if bad := lx.skipSpace(&t); bad {
		return t
	}
	t.Pos = lx.pos()
	s := lx.text[lx.off:]
	if s == "" || s[0] == '\n' {
		t.Kind, t.line = EOF, true
		return t
	}
	n := 0
	switch c := s[0]; {
	case letter(c) || digit(c):
		t.Kind = Name
		if digit(c) {
			t.Kind = Number
		}
		for n < len(s) && (letter(s[n]) || digit(s[n])) {
			n++
		}
		t.Text = s[:n]
	case c == '"':
		t.Kind, t.Text, n = lexString(s, lx.stay || lx.skip)
	default:
		if t.Text = operatorAt(s); t.Text != "" {
			t.Kind, n = Op, len(t.Text)
			break
		}
		t.Kind, n = Bad, 1
		for n < len(s) && s[n]&0xC0 == 0x80 { // the rest of a UTF-8 character
			n++
		}
		t.Text = s[:n]
	}
	lx.skipLines(lx.off + n)
	return t
}

// skipLines moves to off, over ends of lines too.
func (lx *lexer) skipLines(off int) {
	for {
		i := strings.IndexByte(lx.text[lx.off:off], '\n')
		if i < 0 {
			break
		}
		lx.seek(lx.off + i + 1)
		lx.newLine(lx.off)
	}
	lx.seek(off)
}

// skipSpace moves behind white space and comments, and notes in t what it saw.
// An unterminated comment becomes a Bad token up to the end of the file.
func (lx *lexer) skipSpace(t *Token) (bad bool) {
	for lx.off < len(lx.text) {
		rest := lx.text[lx.off:]
		switch c := rest[0]; {
		case c == '\n' && lx.stay:
			return false
		case c == '\n':
			lx.seek(lx.off + 1)
			lx.newLine(lx.off)
			t.line = true
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
			lx.seek(lx.off + 1)
		case strings.HasPrefix(rest, "//"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			lx.seek(lx.off + n)
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				t.Kind, t.Text, t.Pos = Bad, "/*", lx.pos()
				lx.seek(len(lx.text))
				return true
			}
			lx.skipLines(lx.off + n + 4)
		default:
			return false
		}
		t.space = true
	}
	return false
}

// lexString reads the string literal that s begins with. It may hold ends of
// lines unless oneLine; one that does not end is Bad up to the end of its line.
func lexString(s string, oneLine bool) (kind Kind, text string, n int) {
	var b strings.Builder
	line := len(s)
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return String, b.String(), i + 1
		case '\n':
			line = min(line, i)
			if oneLine {
				return Bad, s[:i], i
			}
		case '\\':
			if i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\') {
				i++
			}
		}
		b.WriteByte(s[i])
	}
	return Bad, s[:line], line
}
