package ir

import (
	"fmt"
	"io"
	"strings"
)

// Fprint writes a program as text: stages, objects, and the code with its
// edges. The form is for people and tests; it may change.
func Fprint(w io.Writer, p *Program) error {
	var b strings.Builder
	fmt.Fprintf(&b, "program %s arch=%s source=%s\n", p.Name, p.Arch, p.Source)
	for i, s := range p.Stages {
		fmt.Fprintf(&b, "stage %d %s %s\n", i, s.Kind, s.Name)
	}
	for _, o := range p.Objects {
		fmt.Fprintf(&b, "object %s\n", o.text())
	}
	stage := -1
	for _, in := range p.Code {
		if in.Stage != stage && in.Op != End {
			stage = in.Stage
			if stage < len(p.Stages) {
				fmt.Fprintf(&b, "%s:\n", p.Stages[stage].Name)
			}
		}
		fmt.Fprintf(&b, "%4d  %s\n", in.ID, in)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (o *Object) text() string {
	s := fmt.Sprintf("%s %s elements=%d bits=%d", o.Kind, o.FullName, o.Elements, o.Bits)
	for _, k := range o.Keys {
		s += fmt.Sprintf(" key(%s %s)", k.Field, k.Match)
	}
	if o.Kind == Table {
		s += fmt.Sprintf(" actions=%s default=%s", strings.Join(o.Actions, ","), o.DefaultAction)
	}
	if o.Implementation != nil {
		s += " implementation=" + o.Implementation.FullName
	}
	if o.Direct != nil {
		s += " direct=" + o.Direct.FullName
	}
	if o.Insertion {
		s += " insertion"
	}
	return s
}

// String gives an instruction in one line, with the edges it leads along.
func (in *Instr) String() string {
	var b strings.Builder
	for i, d := range in.Defs {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(d.String())
	}
	if len(in.Defs) > 0 {
		b.WriteString(" = ")
	}
	b.WriteString(string(in.Op))
	for _, s := range []string{in.Name, in.Header, in.Algorithm} {
		if s != "" {
			b.WriteString(" " + s)
		}
	}
	if in.Object != nil {
		b.WriteString(" " + in.Object.FullName)
	}
	if in.Index != nil {
		fmt.Fprintf(&b, "[%s]", in.Index)
	}
	for i, a := range in.Args {
		if i == 0 {
			b.WriteString(" ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(a.String())
	}
	if in.Base != nil {
		fmt.Fprintf(&b, " base %s", in.Base)
	}
	if in.Max != nil {
		fmt.Fprintf(&b, " max %s", in.Max)
	}
	if in.Atomic > 0 {
		fmt.Fprintf(&b, " atomic=%d", in.Atomic)
	}
	if in.Region != "" {
		fmt.Fprintf(&b, " region=%s", in.Region)
	}
	for i, s := range in.Succ {
		switch {
		case s.Label != "":
			fmt.Fprintf(&b, " %s->%d", s.Label, s.To)
		case i > 0 || s.To != in.ID+1:
			fmt.Fprintf(&b, " ->%d", s.To)
		}
	}
	return b.String()
}

// String gives the location, with its bits when they are not all.
func (d Def) String() string {
	s := d.Var.Name
	if d.Lo != 0 || d.Hi != max(d.Var.Bits-1, 0) {
		s += fmt.Sprintf("[%d:%d]", d.Hi, d.Lo)
	}
	if d.May {
		s += "?"
	}
	return s
}

// String gives the expression in the language's notation.
func (e *Expr) String() string {
	if e == nil {
		return "nil"
	}
	arg := func(i int) string {
		if i < len(e.Args) {
			return e.Args[i].String()
		}
		return "?"
	}
	switch e.Op {
	case Const:
		switch {
		case e.Bool && e.Value.Sign() != 0:
			return "true"
		case e.Bool:
			return "false"
		case e.Bits > 0:
			return fmt.Sprintf("%dw%s", e.Bits, e.Value)
		}
		return e.Value.String()
	case Use:
		return Def{Var: e.Var, Hi: e.Hi, Lo: e.Lo}.String()
	case Slice:
		return fmt.Sprintf("%s[%d:%d]", arg(0), e.Hi, e.Lo)
	case Cast:
		return fmt.Sprintf("(%d)%s", e.Bits, arg(0))
	case Mux:
		return fmt.Sprintf("(%s ? %s : %s)", arg(0), arg(1), arg(2))
	case Lookahead, Any, InSet:
		var args []string
		for _, a := range e.Args {
			args = append(args, a.String())
		}
		return fmt.Sprintf("%s{%s}(%s)", e.Op, e.Text, strings.Join(args, ", "))
	case "neg":
		return "-" + arg(0)
	case "~", "!":
		return string(e.Op) + arg(0)
	}
	return fmt.Sprintf("(%s %s %s)", arg(0), e.Op, arg(1))
}
