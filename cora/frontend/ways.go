package frontend

import (
	"math/big"
	"slices"
	"strings"

	"nicprof/p4/ir"
)

// Way is a path of the packets whose own headers meet its conditions. Paths are
// ways with the conditions left out: a planner that knows each flow's headers
// takes ways, so that a flow takes the paths of its own packets and not those of
// the mean packet.
type Way struct {
	Path

	// Conditions are the branches on the way that header fields decide, in the
	// order of the program.
	Conditions []Condition

	// Given is the share that takes this way of the packets that meet all the
	// conditions: what tables, registers and the like decide. Path.Share counts
	// the conditions' own chances in.
	Given float64
}

// Condition is a branch whose outcome fields of the packet's headers decide, as
// they came in, valid bits among them.
type Condition struct {
	Branch *Branch
	Arm    int     // index into Branch.Arms
	Chance float64 // of the arm, as the traffic sets it or as assumed

	in   *ir.Instr
	args []*ir.Expr // over fields as they came in
}

// Fields lists the header fields and valid bits that decide, by name.
func (c Condition) Fields() []*ir.Var {
	var vars []*ir.Var
	for _, a := range c.args {
		usesIn(a, func(v *ir.Var, _, _ int) {
			if !slices.Contains(vars, v) {
				vars = append(vars, v)
			}
		})
	}
	slices.SortFunc(vars, func(a, b *ir.Var) int { return strings.Compare(a.Name, b.Name) })
	return vars
}

// Holds tells whether a packet meets the condition, whose fields have the
// values known: decimal, by a location's name, a valid bit 1 or 0. It is not
// decided where a field that matters is not among them.
func (c Condition) Holds(known map[string]string) (holds, decided bool) {
	k, ok := chosen(c.in, c.args, known)
	return ok && c.in.Succ[k].Label == c.Branch.Arms[c.Arm].Label, ok
}

// String gives the condition in short: the branch's name, and the outcome.
func (c Condition) String() string { return c.Branch.Arms[c.Arm].Name }

// chosen is the edge that values choose at a branch or switch.
func chosen(in *ir.Instr, args []*ir.Expr, known map[string]string) (edge int, ok bool) {
	vals := make([]*big.Int, len(args))
	for i, a := range args {
		vals[i] = eval(a, known)
	}
	if in.Op == ir.Branch {
		if vals[0] == nil {
			return 0, false
		}
		want := "false"
		if vals[0].Sign() != 0 {
			want = "true"
		}
		k := slices.IndexFunc(in.Succ, func(e ir.Edge) bool { return e.Label == want })
		return k, k >= 0
	}
	for k, e := range in.Succ {
		fits, decided := matches(e.Label, vals)
		if !decided {
			return 0, false
		}
		if fits {
			return k, true
		}
	}
	return 0, false
}

// matches tells whether values are those of a case's label: one a value in
// parentheses when there are several, "_" any value, A&&&B masked, A..B a range.
func matches(label string, vals []*big.Int) (fits, decided bool) {
	if label == "default" {
		return true, true
	}
	parts := []string{label}
	if len(vals) > 1 {
		inner, ok := strings.CutPrefix(label, "(")
		if !ok {
			return false, false
		}
		parts = strings.Split(strings.TrimSuffix(inner, ")"), ", ")
	}
	if len(parts) != len(vals) {
		return false, false
	}
	open := false
	for i, p := range parts {
		ok, known := inCase(p, vals[i])
		if known && !ok {
			return false, true // whatever the others are
		}
		open = open || !known
	}
	return !open, !open
}

func inCase(text string, v *big.Int) (fits, decided bool) {
	if text == "_" {
		return true, true
	}
	if v == nil {
		return false, false
	}
	two := func(sep string) (a, b *big.Int, ok bool) {
		x, y, found := strings.Cut(text, sep)
		if !found {
			return nil, nil, false
		}
		a, okA := new(big.Int).SetString(x, 10)
		b, okB := new(big.Int).SetString(y, 10)
		return a, b, okA && okB
	}
	if a, mask, ok := two("&&&"); ok {
		return new(big.Int).And(v, mask).Cmp(new(big.Int).And(a, mask)) == 0, true
	}
	if lo, hi, ok := two(".."); ok {
		return v.Cmp(lo) >= 0 && v.Cmp(hi) <= 0, true
	}
	if n, ok := new(big.Int).SetString(text, 10); ok {
		return v.Cmp(n) == 0, true
	}
	return false, false // a value set, or an action
}

// fieldBranches finds the branches that header fields decide and on which a
// packet's path depends: for each their arguments over the fields as they came
// in.
func (r *Result) fieldBranches() map[int][]*ir.Expr {
	code := r.Program.Code
	out := map[int][]*ir.Expr{}
	for _, in := range code {
		if in.Op != ir.Branch && in.Op != ir.Switch || r.branchAt[in.ID] == nil {
			continue
		}
		decides := reach(len(code), []int{in.ID}, r.deps.data, r.deps.control)
		if !slices.ContainsFunc(code, func(o *ir.Instr) bool {
			return decides.has(o.ID) && (r.operates(o) || o.Op == ir.Drop || r.unsupportedAt[o.ID] != "")
		}) {
			continue
		}
		var args []*ir.Expr
		fields := 0
		for _, a := range in.Args {
			o := r.origin(a, in.ID, 0)
			if o == nil {
				args = nil
				break
			}
			usesIn(o, func(*ir.Var, int, int) { fields++ })
			args = append(args, o)
		}
		if len(args) > 0 && fields > 0 {
			out[in.ID] = args
		}
	}
	return out
}

// maxCopies bounds how far a value is followed back through assignments.
const maxCopies = 16

// origin is an expression at instruction i over header fields as they came in,
// nil when it is none.
func (r *Result) origin(e *ir.Expr, i, depth int) *ir.Expr {
	switch {
	case e.Op == ir.Any || e.Op == ir.Lookahead || e.Object != nil || depth > maxCopies:
		return nil
	case e.Op == ir.Use:
		return r.originOf(e, i, depth)
	case len(e.Args) == 0:
		return e
	}
	out := *e
	out.Args = make([]*ir.Expr, len(e.Args))
	for k, a := range e.Args {
		if out.Args[k] = r.origin(a, i, depth); out.Args[k] == nil {
			return nil
		}
	}
	return &out
}

// originOf is origin of a location: a field that was not rewritten, or what was
// assigned on all paths.
func (r *Result) originOf(e *ir.Expr, i, depth int) *ir.Expr {
	defs := r.flow.reaching(i, e.Var, e.Hi, e.Lo)
	cameIn := func(d int) bool { return d == entry || r.Program.Code[d].Op == ir.Extract }
	if e.Var.Kind == ir.HeaderField || e.Var.Kind == ir.Validity {
		if !slices.ContainsFunc(defs, func(d int) bool { return !cameIn(d) }) {
			return e
		}
	}
	if len(defs) != 1 || defs[0] == entry {
		return nil
	}
	in := r.Program.Code[defs[0]]
	if in.Op != ir.Assign || in.Defs[0].May || in.Defs[0].Hi != e.Hi || in.Defs[0].Lo != e.Lo {
		return nil
	}
	return r.origin(in.Args[0], in.ID, depth+1)
}
