package bind

import (
	"slices"
	"strings"

	"nicprof/p4/ir"
	"nicprof/p4/syntax"
)

// machine is one application of a parser being lowered.
type machine struct {
	states map[string]*syntax.State
	heads  map[string]*ir.Instr
	scope  *scope
	accept []hole
	reject []hole
}

// states lowers a parser's states from start on. What accepts goes on behind
// it; what rejects leads to where the application's rejects do.
func (b *binder) states(d *syntax.ParserDecl, sc *scope) {
	m := &machine{states: map[string]*syntax.State{}, heads: map[string]*ir.Instr{}, scope: sc}
	for _, s := range d.States {
		if old := m.states[s.Name]; old != nil {
			b.errorf(s.Pos, "state %s is declared twice; first at %s", s.Name, old.Pos)
			continue
		}
		if s.Name == "accept" || s.Name == "reject" {
			b.errorf(s.Pos, "state %s is built in and cannot be declared", s.Name)
		}
		m.states[s.Name] = s
	}
	if m.states["start"] == nil {
		b.errorf(d.Pos, "parser %s has no state start", d.Name)
		return
	}
	outer := b.rejects
	b.rejects = &m.reject
	b.enterState(m, "start")
	b.scratch(func() {
		b.rejects = &[]hole{}
		for _, s := range d.States {
			if m.heads[s.Name] == nil {
				b.open = nil
				b.enterState(m, s.Name)
			}
		}
	})
	b.rejects = outer
	b.open = m.accept
	switch {
	case outer != nil:
		*outer = append(*outer, m.reject...)
	case b.apart > 0:
	case slices.Contains([]string{"tna", "ebpf", "ubpf", "xdp"}, b.arch):
		b.dropped = append(b.dropped, m.reject...)
	default: // v1model, PSA and PNA go on, with parser_error set
		b.exits = append(b.exits, m.reject...)
	}
}

// enterState leads the open edges to a state, which it lowers when it is new.
func (b *binder) enterState(m *machine, name string) {
	switch name {
	case "accept":
		m.accept = append(m.accept, b.open...)
		b.open = nil
		return
	case "reject":
		*b.rejects = append(*b.rejects, b.open...)
		b.open = nil
		return
	}
	if head := m.heads[name]; head != nil {
		b.fill(b.open, head)
		b.open = nil
		return
	}
	s := m.states[name]
	m.heads[name] = b.emit(ir.Nop, s.Pos)
	sc := newScope(m.scope)
	at := b.at
	if s.Annotations.Find("atomic") != nil {
		b.atomic("", s.Pos)
	}
	b.stmts(s.Stmts, sc)
	b.at.atomic = at.atomic
	switch {
	case s.Next != nil:
		b.transition(m, s.Next)
	case s.Select != nil:
		b.selection(m, s.Select, sc)
	default:
		b.enterState(m, "reject")
	}
}

func (b *binder) transition(m *machine, to *syntax.Ident) {
	if m.states[to.Name] == nil && to.Name != "accept" && to.Name != "reject" {
		var names []string
		for n := range m.states {
			names = append(names, n)
		}
		b.errorf(to.Pos, "state %s is not declared%s", to.Name, near(to.Name, names))
		b.open = nil
		return
	}
	b.enterState(m, to.Name)
}

func (b *binder) selection(m *machine, s *syntax.Select, sc *scope) {
	var vals []value
	for _, e := range s.Exprs {
		vals = append(vals, b.eval(e, sc, nil))
	}
	in := b.emit(ir.Switch, s.Pos)
	for _, v := range vals {
		in.Args = append(in.Args, expr(v))
	}
	hasDefault := false
	for _, c := range s.Cases {
		l := b.selectLabel(c, vals, sc)
		b.open = []hole{{in, l}}
		hasDefault = hasDefault || l == "default"
		b.transition(m, c.Next)
	}
	if !hasDefault {
		b.open = []hole{{in, "default"}}
		b.enterState(m, "reject")
	}
}

// selectLabel names a case: by its value in decimal, by its values in
// parentheses when several are selected on.
func (b *binder) selectLabel(c *syntax.SelectCase, vals []value, sc *scope) string {
	var parts []string
	all := true
	for i, k := range c.Keys {
		var t typ
		if i < len(vals) && len(c.Keys) == len(vals) {
			t = typeOf(vals[i])
		} else if len(c.Keys) != len(vals) && len(vals) > 1 && len(c.Keys) > 1 {
			b.errorf(k.Position(), "%d values are selected on, this case has %d", len(vals), len(c.Keys))
		}
		l := b.caseLabel(k, sc, t, false)
		all = all && l == "default"
		if l == "default" {
			l = "_"
		}
		parts = append(parts, l)
	}
	switch {
	case all:
		return "default"
	case len(parts) == 1:
		return parts[0]
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
