package bind

import (
	"fmt"

	"nicprof/p4/source"
	"nicprof/p4/syntax"
)

// scope is a lexical scope. What a body sees of an outer scope is what was
// declared there before it.
type scope struct {
	up    *scope
	names map[string]*symbol
	limit int // sequence number that symbols of up stay below; 0: no limit
	seq   *int
}

// symbol is a declared name. def is one of *typeSym, *blockSym, *funcSym,
// *actionSym, *tableSym, *instance, *valueSet, or a value.
type symbol struct {
	pos source.Pos
	seq int
	def any
}

type (
	// typeSym is a declared type. decl is nil when t is all there is.
	typeSym struct {
		decl    syntax.Decl
		scope   *scope
		t       typ
		special map[string]typ
	}
	// blockSym is a declared parser, control or package, or a type of one.
	blockSym struct {
		name  string
		decl  syntax.Decl
		scope *scope
		used  bool        // lowered as a part of the program
		more  []*blockSym // overloads, told apart by their constructor's parameters
	}
	// funcSym is a function with all its overloads.
	funcSym struct {
		name  string
		decls []*syntax.FuncDecl
		scope map[*syntax.FuncDecl]*scope // what each body sees
		used  map[*syntax.FuncDecl]bool
	}
)

func (d *typeSym) keep(key string, t typ) {
	if d.special == nil {
		d.special = map[string]typ{}
	}
	d.special[key] = t
}

func newScope(up *scope) *scope {
	s := &scope{up: up, names: map[string]*symbol{}}
	if up != nil {
		s.seq = up.seq
	} else {
		s.seq = new(int)
	}
	return s
}

// body opens the scope of a body that sees only what is declared so far.
func (s *scope) body() *scope {
	in := newScope(s)
	in.limit = *s.seq + 1
	return in
}

func (s *scope) set(name string, pos source.Pos, def any) *symbol {
	*s.seq++
	sym := &symbol{pos: pos, seq: *s.seq, def: def}
	s.names[name] = sym
	return sym
}

// bind gives a name its value, or another one: bodies that see the name see the
// new value.
func (s *scope) bind(name string, pos source.Pos, def any) {
	if sym := s.names[name]; sym != nil {
		sym.def = def
		return
	}
	s.set(name, pos, def)
}

// find gives the innermost symbol of that name, or nil.
func (s *scope) find(name string) *symbol {
	for limit := 0; s != nil; s = s.up {
		if sym := s.names[name]; sym != nil && (limit == 0 || sym.seq < limit) {
			return sym
		}
		if s.limit > 0 && (limit == 0 || s.limit < limit) {
			limit = s.limit
		}
	}
	return nil
}

// declare adds a name to a scope; a second declaration there is an error.
func (b *binder) declare(sc *scope, name string, pos source.Pos, def any) {
	if old := sc.names[name]; old != nil {
		b.errorf(pos, "%s is declared twice; first at %s", name, old.pos)
		return
	}
	sc.set(name, pos, def)
}

// undeclared reports a name that nothing declares, with the nearest one.
func (b *binder) undeclared(pos source.Pos, name string, sc *scope, what string) {
	if hint := syntax.P414Primitive(name); hint != "" && what == "function" {
		b.errorf(pos, "function %s is not declared; it is P4_14, in place of which P4_16 has %s", name, hint)
		return
	}
	best, least := "", len(name)/2+1
	for s := sc; s != nil; s = s.up {
		for n := range s.names {
			if d := distance(name, n); d < least || d == least && best != "" && n < best {
				best, least = n, d
			}
		}
	}
	hint := ""
	if best != "" {
		hint = "; is " + best + " meant?"
	}
	n := len(b.errs)
	b.errorf(pos, "%s %s is not declared%s", what, name, hint)
	if len(b.errs) == n {
		return
	}
	for _, f := range b.file.Sources.Files() {
		if f.Builtin {
			b.errs[n].Notes = append(b.errs[n].Notes, fmt.Sprintf("%s is nicprof's own; -I DIR gives another", f.Name))
		}
	}
}

// distance is how many letters have to change between two names.
func distance(x, y string) int {
	if d := len(x) - len(y); d > 3 || d < -3 || len(x) > 64 {
		return 1 << 20
	}
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		prev := row[0]
		row[0] = i + 1
		for j := range y {
			cost := prev
			if x[i] != y[j] {
				cost++
			}
			prev = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(y)]
}
