package syntax

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"nicprof/p4/source"
)

// Bounds of a program. What exceeds them is refused, so that no input, however
// made, takes more than a moment.
const (
	maxErrors   = 20
	maxTokens   = 1 << 19 // after preprocessing
	maxWork     = 1 << 19 // tokens that macros produce, those of macros in them included
	maxIncludes = 1 << 10 // files read
	maxDepth    = 64      // of includes, and of macros in arguments of macros
	maxChain    = 256     // of macros that expand to macros
	maxFileSize = 1 << 24 // bytes
)

// Options are the preprocessor's.
type Options struct {
	// Include lists the directories that #include looks in, in this order,
	// behind the directory of the including file for #include "x".
	Include []string
	// Builtin gives a file that no directory has, by the name in #include.
	Builtin func(name string) (text []byte, ok bool)
	// Define gives macros, without parameters, and their text.
	Define map[string]string
}

// preproc turns a file into the tokens of the program: it includes, expands
// and skips.
type preproc struct {
	opt      Options
	src      *Sources
	macros   map[string]*macro
	out      []Token
	errs     Errors
	warnings []*source.Message

	work, includes, depth, nested int

	fatal bool // a bound is exceeded; read no further
}

// macro is a macro's definition. The last parameter of a variadic one takes
// all further arguments.
type macro struct {
	name     string
	pos      source.Pos // unknown for those of Options.Define
	function bool
	variadic bool
	params   []string
	body     []Token
	special  func(at Token) Token // __FILE__, __LINE__
}

// reader is a file in the course of being read.
type reader struct {
	lx    *lexer
	file  SourceFile
	conds []cond
	mark  Token // name of the #include that an includeMark stands for
	angle bool
}

// cond is an open #if.
type cond struct {
	pos    source.Pos
	taken  bool // a branch was taken
	active bool // the present one is
	parent bool // what surrounds the #if is active
	last   bool // #else was seen
}

func newPreproc(opt Options) *preproc {
	pp := &preproc{opt: opt, src: newSources(), macros: map[string]*macro{}}
	pp.macros["__LINE__"] = &macro{name: "__LINE__", special: func(at Token) Token {
		at.Kind, at.Text = Number, strconv.Itoa(at.Pos.Line)
		return at
	}}
	pp.macros["__FILE__"] = &macro{name: "__FILE__", special: func(at Token) Token {
		at.Kind, at.Text = String, at.Pos.File
		return at
	}}
	for name, text := range opt.Define {
		m := &macro{name: name}
		for lx := newLexer("", text); ; {
			t := lx.next()
			if t.Kind == EOF {
				break
			}
			m.body = append(m.body, t)
		}
		pp.macros[name] = m
	}
	return pp
}

func (pp *preproc) errorf(pos source.Pos, format string, args ...any) {
	if len(pp.errs) < maxErrors {
		pp.errs = append(pp.errs, pp.src.Message(pos, format, args...))
	}
}

func (pp *preproc) warn(pos source.Pos, format string, args ...any) {
	if len(pp.warnings) < maxErrors {
		pp.warnings = append(pp.warnings, pp.src.Message(pos, format, args...))
	}
}

func (pp *preproc) fatalf(pos source.Pos, format string, args ...any) {
	if !pp.fatal {
		pp.fatal = true
		pp.errorf(pos, format, args...)
	}
}

// file reads a whole file into pp.out.
func (pp *preproc) file(f SourceFile, text string) {
	pp.src.add(f, text)
	r := &reader{lx: newLexer(f.Name, text), file: f}
	in := &feed{pull: func() (Token, bool) { return pp.text(r) }}
	for {
		t, ok := pp.expand(in)
		switch {
		case !ok:
			for _, c := range r.conds {
				pp.errorf(c.pos, "#if without #endif")
			}
			return
		case t.Kind == includeMark:
			pp.include(r)
		case len(pp.out) >= maxTokens:
			pp.fatalf(t.Pos, "the program has more than %d tokens", maxTokens)
		default:
			pp.out = append(pp.out, t)
		}
	}
}

// text gives the next token that #if does not skip, and obeys directives on
// the way.
func (pp *preproc) text(r *reader) (Token, bool) {
	for !pp.fatal {
		r.lx.skip = r.skipping()
		t := r.lx.next()
		switch {
		case t.Kind == EOF:
			return t, false
		case t.line && t.is("#"):
			r.lx.stay = true
			var line []Token
			for u := r.lx.next(); u.Kind != EOF; u = r.lx.next() {
				line = append(line, u)
			}
			r.lx.stay = false
			if pp.directive(r, t, line) {
				return Token{Kind: includeMark, Pos: t.Pos, line: true}, true
			}
		case r.lx.skip:
		default:
			return t, true
		}
	}
	return Token{}, false
}

func (r *reader) skipping() bool {
	return len(r.conds) > 0 && !r.conds[len(r.conds)-1].active
}

// directive obeys a line that begins with #, and tells whether a file is to be
// included here. Its text is already read.
func (pp *preproc) directive(r *reader, hash Token, line []Token) (include bool) {
	if len(line) == 0 {
		return false
	}
	word, rest := line[0], line[1:]
	switch word.Text {
	case "if", "ifdef", "ifndef":
		c := cond{pos: word.Pos, parent: !r.skipping()}
		if c.parent {
			c.active = pp.condition(word, rest)
			c.taken = c.active
		}
		r.conds = append(r.conds, c)
		return false
	case "elif", "else", "endif":
		pp.branch(r, word, rest)
		return false
	}
	if r.skipping() {
		return false
	}
	switch word.Text {
	case "include":
		return pp.includeName(r, word, rest)
	case "define":
		pp.define(word, rest)
	case "undef":
		if len(rest) != 1 || rest[0].Kind != Name {
			pp.errorf(word.Pos, "#undef takes the name of one macro")
			return false
		}
		delete(pp.macros, rest[0].Text)
	case "line":
		pp.line(r, word, rest)
	case "error":
		pp.errorf(word.Pos, "#error %s", spell(rest))
	case "warning":
		pp.warn(word.Pos, "#warning %s", spell(rest))
	case "pragma", "ident":
		// Of no meaning here, as for other P4 compilers; @pragma is in the tree.
	default:
		if word.Kind == Number { // # 12 "file", as a preprocessor writes it
			pp.line(r, word, line)
			return false
		}
		pp.warn(word.Pos, "unknown preprocessor directive #%s is ignored", word.Text)
	}
	return false
}

// condition decides a #if, #ifdef, #ifndef or #elif.
func (pp *preproc) condition(word Token, rest []Token) bool {
	if word.Text == "if" || word.Text == "elif" {
		return pp.eval(word, rest)
	}
	if len(rest) == 0 || rest[0].Kind != Name {
		pp.errorf(word.Pos, "#%s takes the name of a macro", word.Text)
		return false
	}
	return (pp.macros[rest[0].Text] != nil) == (word.Text == "ifdef")
}

func (pp *preproc) branch(r *reader, word Token, rest []Token) {
	if len(r.conds) == 0 {
		pp.errorf(word.Pos, "#%s without #if", word.Text)
		return
	}
	c := &r.conds[len(r.conds)-1]
	if word.Text == "endif" {
		r.conds = r.conds[:len(r.conds)-1]
		return
	}
	if c.last {
		pp.errorf(word.Pos, "#%s behind #else", word.Text)
		return
	}
	c.last = word.Text == "else"
	c.active = c.parent && !c.taken && (c.last || pp.condition(word, rest))
	c.taken = c.taken || c.active
}

// line obeys #line N "file", which numbers the lines behind it.
func (pp *preproc) line(r *reader, word Token, args []Token) {
	args = pp.expandAll(args)
	n, err := 0, errors.New("no number")
	if len(args) > 0 && args[0].Kind == Number {
		n, err = strconv.Atoi(args[0].Text)
	}
	name := r.lx.file
	if len(args) > 1 && args[1].Kind == String {
		name = args[1].Text
	} else if len(args) > 1 {
		err = errors.New("no name")
	}
	if err != nil || n < 0 || n > 1<<30 {
		pp.errorf(word.Pos, "#line takes a line number and perhaps a file name in quotes")
		return
	}
	pp.src.renumber(r.file.Name, r.lx.phys+1, name, n)
	r.lx.file, r.lx.line = name, n-1
}

// define obeys #define.
func (pp *preproc) define(word Token, rest []Token) {
	if len(rest) == 0 || rest[0].Kind != Name || rest[0].Text == "defined" {
		pp.errorf(word.Pos, "#define takes the name of a macro")
		return
	}
	m := &macro{name: rest[0].Text, pos: rest[0].Pos, body: rest[1:]}
	if len(m.body) > 0 && m.body[0].is("(") && !m.body[0].space {
		if !pp.parameters(m) {
			return
		}
	}
	if n := len(m.body); n > 0 && (m.body[0].is("##") || m.body[n-1].is("##")) {
		pp.errorf(m.pos, "## needs a token on both sides")
		return
	}
	pp.macros[m.name] = m
}

// parameters moves the parameter list from a macro's body to its parameters.
func (pp *preproc) parameters(m *macro) bool {
	m.function = true
	end := slices.IndexFunc(m.body, func(t Token) bool { return t.is(")") })
	if end < 0 {
		pp.errorf(m.pos, "the parameter list of macro %s has no )", m.name)
		return false
	}
	list := m.body[1:end]
	m.body = m.body[end+1:]
	for i := 0; i < len(list); i++ {
		t := list[i]
		switch {
		case m.variadic:
			pp.errorf(t.Pos, "no parameter may stand behind ... in macro %s", m.name)
			return false
		case t.is("..."):
			m.variadic = true
			m.params = append(m.params, "__VA_ARGS__")
		case t.Kind == Name && !slices.Contains(m.params, t.Text):
			m.params = append(m.params, t.Text)
			if i+1 < len(list) && list[i+1].is("...") {
				m.variadic = true
				i++
			}
		default:
			pp.errorf(t.Pos, "%v is not the name of a new parameter of macro %s", t, m.name)
			return false
		}
		if i+1 < len(list) {
			if i++; !list[i].is(",") || i+1 == len(list) {
				pp.errorf(list[i].Pos, "the parameters of macro %s are to be names separated by commas", m.name)
				return false
			}
		}
	}
	return true
}

// includeName reads the name of a #include.
func (pp *preproc) includeName(r *reader, word Token, rest []Token) bool {
	if len(rest) > 0 && rest[0].Kind == Name {
		rest = pp.expandAll(rest)
	}
	if len(rest) == 1 && rest[0].Kind == String {
		r.mark, r.angle = rest[0], false
		return true
	}
	if n := len(rest); n > 2 && rest[0].is("<") && rest[n-1].is(">") {
		name := rest[0]
		name.Kind, name.Text = String, spell(rest[1:n-1])
		r.mark, r.angle = name, true
		return true
	}
	pp.errorf(word.Pos, `#include takes "file" or <file>`)
	return false
}

// include reads the file that the last #include of r names.
func (pp *preproc) include(r *reader) {
	name := r.mark
	pp.depth++
	pp.includes++
	defer func() { pp.depth-- }()
	switch {
	case pp.depth > maxDepth:
		pp.fatalf(name.Pos, "includes are nested more than %d deep: does %q include itself? #ifndef guards against it", maxDepth, name.Text)
		return
	case pp.includes > maxIncludes:
		pp.fatalf(name.Pos, "the program includes more than %d files", maxIncludes)
		return
	}
	var dirs []string
	if !r.angle && !r.file.Builtin {
		dirs = append(dirs, filepath.Dir(r.file.Name))
	}
	if filepath.IsAbs(name.Text) {
		dirs = []string{""}
	} else {
		dirs = append(dirs, pp.opt.Include...)
	}
	for _, d := range dirs {
		path := filepath.Join(d, name.Text)
		text, err := readFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			pp.fatalf(name.Pos, "%v", err)
			return
		}
		pp.file(SourceFile{Name: path, From: name.Pos}, text)
		return
	}
	if pp.opt.Builtin != nil {
		if text, ok := pp.opt.Builtin(name.Text); ok {
			pp.file(SourceFile{Name: "<" + name.Text + ">", Builtin: true, From: name.Pos}, string(text))
			return
		}
	}
	where := "no directory to look in is given"
	if len(dirs) > 0 {
		where = "it is not in " + strings.Join(dirs, ", ")
	}
	pp.fatalf(name.Pos, "cannot find the file %q: %s", name.Text, where)
}

// readFile reads a regular file of bounded size.
func readFile(path string) (string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !st.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	if st.Size() > maxFileSize {
		return "", fmt.Errorf("%s has %d bytes; a P4 file may have %d", path, st.Size(), maxFileSize)
	}
	b, err := os.ReadFile(path)
	return string(b), err
}
