package frontend

import (
	"slices"
	"strings"

	"nicprof/p4/ir"
)

// origin is a value at an instruction.
type origin struct {
	expr  *ir.Expr
	instr int
}

// carried lists what an extraction by a further parser finds in a field: what the
// deparsers before it emitted in headers of that type. It is nil for the first
// parser, and for a header that no deparser wrote.
func (r *Result) carried(extract int, v *ir.Var) []origin {
	in := r.Program.Code[extract]
	var out []origin
	for _, e := range r.emitted(in) {
		for _, a := range e.Args[1:] {
			if a.Op == ir.Use && field(a.Var) == field(v) {
				out = append(out, origin{a, e.ID})
			}
		}
	}
	return out
}

// emitted lists the deparser's instructions whose headers an extraction may find.
func (r *Result) emitted(in *ir.Instr) []*ir.Instr {
	stages := r.Program.Stages
	behind := func(i int) bool { return i < in.Stage && stages[i].Kind == ir.Deparser }
	if in.Op != ir.Extract || in.Type == "" || !slices.ContainsFunc(stages[:min(in.Stage, len(stages))], func(s ir.Stage) bool { return s.Kind == ir.Deparser }) {
		return nil
	}
	var out []*ir.Instr
	for _, e := range r.Program.Code {
		if e.Op == ir.Emit && e.Type == in.Type && behind(e.Stage) {
			out = append(out, e)
		}
	}
	return out
}

// field is a location's name within its header.
func field(v *ir.Var) string { return strings.TrimPrefix(v.Name, v.Header) }
