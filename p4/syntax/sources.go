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
	moved    map[string][]segment       // lines whose place #line changed, by file as seen
	open     map[string]string          // by file: as which file its lines are seen now
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
		moved:    map[string][]segment{},
		open:     map[string]string{},
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
	file, line := pos.File, pos.Line
	for i := len(s.moved[pos.File]) - 1; i >= 0; i-- {
		if m := s.moved[pos.File][i]; pos.Line >= m.seen && (m.lines < 0 || pos.Line < m.seen+m.lines) {
			file, line = m.file, m.line+pos.Line-m.seen
			break
		}
	}
	if l := s.lines[file]; line > 0 && line <= len(l) {
		return l[line-1]
	}
	return ""
}

// segment is a run of lines that #line gave other numbers: from line of file,
// seen as numbered from seen. lines is negative up to the end of the file.
type segment struct {
	seen  int
	file  string
	line  int
	lines int
}

// renumber notes that the lines of file from line on are seen as those of
// another file from another line on.
func (s *Sources) renumber(file string, line int, seen string, seenLine int) {
	if segs := s.moved[s.open[file]]; len(segs) > 0 {
		for i := len(segs) - 1; i >= 0; i-- {
			if segs[i].file == file && segs[i].lines < 0 {
				segs[i].lines = line - segs[i].line
				break
			}
		}
	}
	s.open[file] = seen
	s.moved[seen] = append(s.moved[seen], segment{seen: seenLine, file: file, line: line, lines: -1})
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

// maxNotes bounds the macros that a message names.
const maxNotes = 8

// expand notes that the macro's text stands at pos.
func (s *Sources) expand(pos source.Pos, name string, def source.Pos) {
	if len(s.expanded[pos]) == maxNotes {
		return
	}
	for _, e := range s.expanded[pos] {
		if e.name == name {
			return
		}
	}
	s.expanded[pos] = append(s.expanded[pos], expansion{name, def})
}
