package syntax

import (
	"fmt"
	"strings"

	"nicprof/p4/source"
)

// Sources is the text that a program was read from and how each place was
// reached, so that a message about any position can show its line, the
// includes that lead there and the macro it comes from.
type Sources struct {
	lines    map[string][]string        // by file
	moved    map[source.Pos]string      // lines whose place #line changed; Col 0
	included map[string]source.Pos      // file to the #include that first read it
	expanded map[source.Pos][]expansion // use of a macro, outermost first
	files    []SourceFile
}

// SourceFile is a file that was read.
type SourceFile struct {
	Name    string     // as its positions give it
	Builtin bool       // it came from Options.Builtin
	From    source.Pos // the #include that first asked for it; zero for the program itself
}

// expansion is one macro used at a place.
type expansion struct {
	name string
	def  source.Pos
}

func newSources() *Sources {
	return &Sources{
		lines:    map[string][]string{},
		moved:    map[source.Pos]string{},
		included: map[string]source.Pos{},
		expanded: map[source.Pos][]expansion{},
	}
}

// Files gives the files that were read, in order.
func (s *Sources) Files() []SourceFile { return s.files }

// Message builds a message about a place, with its source line and the notes
// that say how the place was reached. The text is formatted as by fmt.Sprintf.
func (s *Sources) Message(pos source.Pos, format string, args ...any) *source.Message {
	m := &source.Message{Pos: pos, Msg: fmt.Sprintf(format, args...), Text: s.text(pos)}
	for _, e := range s.expanded[pos] {
		if e.def.Known() {
			m.Notes = append(m.Notes, fmt.Sprintf("expanded from macro %s defined at %s", e.name, e.def))
		} else {
			m.Notes = append(m.Notes, fmt.Sprintf("expanded from macro %s", e.name))
		}
	}
	for at, ok := s.included[pos.File]; ok; at, ok = s.included[at.File] {
		m.Notes = append(m.Notes, fmt.Sprintf("included from %s:%d", at.File, at.Line))
	}
	return m
}

func (s *Sources) text(pos source.Pos) string {
	if t, ok := s.moved[source.Pos{File: pos.File, Line: pos.Line}]; ok {
		return t
	}
	if l := s.lines[pos.File]; pos.Line > 0 && pos.Line <= len(l) {
		return l[pos.Line-1]
	}
	return ""
}

// add keeps the text of a file. The first #include of a file is the one that
// notes name; a chain of includes therefore never closes on itself.
func (s *Sources) add(f SourceFile, src string) {
	if _, ok := s.lines[f.Name]; ok {
		return
	}
	s.lines[f.Name] = strings.Split(strings.ReplaceAll(src, "\r\n", "\n"), "\n")
	s.files = append(s.files, f)
	if f.From.Known() {
		s.included[f.Name] = f.From
	}
}

// expand notes that the macro's text stands at pos.
func (s *Sources) expand(pos source.Pos, name string, def source.Pos) {
	for _, e := range s.expanded[pos] {
		if e.name == name {
			return
		}
	}
	s.expanded[pos] = append(s.expanded[pos], expansion{name, def})
}
