package bmv2

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"nicprof/p4/ir"
)

// use reads the whole of a variable.
func use(v *ir.Var) *ir.Expr {
	return &ir.Expr{Op: ir.Use, Bits: v.Bits, Signed: v.Signed, Bool: v.Kind == ir.Validity || v.Kind == ir.Hit, Var: v, Hi: max(v.Bits-1, 0)}
}

// define defines the whole of a variable.
func define(v *ir.Var) ir.Def { return ir.Def{Var: v, Hi: max(v.Bits-1, 0)} }

func constant(n int64) *ir.Expr { return &ir.Expr{Op: ir.Const, Value: big.NewInt(n)} }

// object decodes a nested value object; raw may be absent.
func (r *reader) object(raw json.RawMessage, at string) value {
	var v value
	if err := json.Unmarshal(raw, &v); err != nil {
		r.fail(at, "expected an object with type and value, found %s", short(raw))
	}
	return v
}

func (r *reader) text(raw json.RawMessage, at string) string {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		r.fail(at, "expected a name, found %s", short(raw))
	}
	return s
}

func (r *reader) pair(raw json.RawMessage, at string) (string, string) {
	var p []string
	if err := json.Unmarshal(raw, &p); err != nil || len(p) != 2 {
		r.fail(at, "expected a pair of names, found %s", short(raw))
	}
	return p[0], p[1]
}

func short(raw json.RawMessage) string {
	const most = 60
	switch {
	case len(raw) == 0:
		return "nothing"
	case len(raw) > most:
		return string(raw[:most]) + "…"
	}
	return string(raw)
}

// number reads a hexadecimal string with its sign, or a JSON number.
func (r *reader) number(raw json.RawMessage, at string) *big.Int {
	s := strings.Trim(string(raw), `"`)
	if n, ok := new(big.Int).SetString(s, 0); ok {
		return n
	}
	if n, ok := new(big.Int).SetString(s, 16); ok {
		return n
	}
	r.fail(at, "expected a hexadecimal number, found %s", short(raw))
	return nil
}

// expr reads a value that is read.
func (r *reader) expr(v value, at string) *ir.Expr {
	switch v.Type {
	case "field":
		h, f := r.pair(v.Value, at)
		return use(r.field(h, f, at))
	case "hexstr":
		return &ir.Expr{Op: ir.Const, Bits: max(v.Bitwidth, 0), Value: r.number(v.Value, at)}
	case "bool":
		var b bool
		if err := json.Unmarshal(v.Value, &b); err != nil {
			r.fail(at, "expected true or false, found %s", short(v.Value))
		}
		e := &ir.Expr{Op: ir.Const, Bits: 1, Bool: true, Value: big.NewInt(0)}
		if b {
			e.Value.SetInt64(1)
		}
		return e
	case "string":
		return &ir.Expr{Op: ir.Any, Text: r.text(v.Value, at)}
	case "runtime_data", "local":
		return use(r.data(v.Value, at))
	case "lookahead":
		var p []int
		if err := json.Unmarshal(v.Value, &p); err != nil || len(p) != 2 || p[0] < 0 || p[1] < 0 {
			r.fail(at, "expected a bit offset and a width, found %s", short(v.Value))
		}
		return &ir.Expr{Op: ir.Lookahead, Bits: p[1], Hi: p[0] + p[1] - 1, Lo: p[0]}
	case "stack_field":
		s, f := r.pair(v.Value, at)
		return r.anyOf(s+".last."+f, r.stackFields(r.stack(s, at), f, at))
	case "union_stack_field":
		var p []string
		if err := json.Unmarshal(v.Value, &p); err != nil || len(p) != 3 {
			r.fail(at, "expected a stack's name, a member and a field, found %s", short(v.Value))
		}
		var vars []*ir.Var
		for _, u := range r.unionStack(p[0], at) {
			vars = append(vars, r.field(r.member(u, p[1], at).name, p[2], at))
		}
		return r.anyOf(p[0]+".last."+p[1]+"."+p[2], vars)
	case "header":
		return use(r.valid(r.header(r.text(v.Value, at), at)))
	case "header_union":
		return r.unionValid(r.text(v.Value, at), at)
	case "register":
		var p []json.RawMessage
		if err := json.Unmarshal(v.Value, &p); err != nil || len(p) != 2 {
			r.fail(at, "expected a register and an index, found %s", short(v.Value))
		}
		reg := r.array(ir.Register, r.text(p[0], at), at)
		index := r.expr(r.object(p[1], at), at)
		tmp := r.temporary(reg.Bits)
		r.checkIndex(reg, index)
		r.g.emit(&ir.Instr{Op: ir.RegRead, Object: reg, Index: index, Defs: []ir.Def{define(tmp)}})
		return use(tmp)
	case "expression":
		inner := r.object(v.Value, at)
		if inner.Type != "" {
			return r.expr(inner, at)
		}
		return r.operation(inner, at)
	case "payload":
		return &ir.Expr{Op: ir.Any, Text: "payload"}
	}
	r.fail(at, "type %q cannot be read as a value", v.Type)
	return nil
}

// exprs reads a list of values, each header as its fields and validity.
func (r *reader) exprs(vs []value, at string) []*ir.Expr {
	var es []*ir.Expr
	for i, v := range vs {
		here := fmt.Sprintf("%s[%d]", at, i)
		switch v.Type {
		case "header":
			h := r.header(r.text(v.Value, here), here)
			es = append(es, use(r.valid(h)))
			for _, f := range h.vars(r) {
				es = append(es, use(f))
			}
		case "header_stack":
			for _, h := range r.stack(r.text(v.Value, here), here) {
				es = append(es, use(r.valid(h)))
				for _, f := range h.vars(r) {
					es = append(es, use(f))
				}
			}
		case "parameters_vector", "field_list":
			var inner []value
			if err := json.Unmarshal(v.Value, &inner); err != nil {
				r.fail(here, "expected a list of values, found %s", short(v.Value))
			}
			es = append(es, r.exprs(inner, here)...)
		default:
			es = append(es, r.expr(v, here))
		}
	}
	return es
}

// anyOf is a value of which the JSON only tells the variables it may be.
func (r *reader) anyOf(text string, vars []*ir.Var, also ...*ir.Expr) *ir.Expr {
	e := &ir.Expr{Op: ir.Any, Text: text, Args: also}
	for _, v := range vars {
		e.Args = append(e.Args, use(v))
		e.Bits = max(e.Bits, v.Bits)
	}
	return e
}

var operators = map[string]ir.ExprOp{
	"+": "+", "-": "-", "*": "*", "/": "/", "%": "%", "<<": "<<", ">>": ">>", "&": "&", "|": "|", "^": "^",
	"==": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "and": "&&", "or": "||", "not": "!", "~": "~",
}

// operation reads an expression node.
func (r *reader) operation(v value, at string) *ir.Expr {
	side := func(raw json.RawMessage, name string) *ir.Expr {
		here := at + "." + name
		return r.expr(r.object(raw, here), here)
	}
	right := func() *ir.Expr { return side(v.Right, "right") }
	left := func() *ir.Expr { return side(v.Left, "left") }
	switch v.Op {
	case "d2b":
		return asBool(right())
	case "b2d":
		return right()
	case "valid":
		o := r.object(v.Right, at+".right")
		if o.Type == "expression" { // of a stack's element
			h := r.headerExpr(o, at+".right")
			if h.single() {
				return use(r.valid(h.of[0]))
			}
			return r.anyOf("isValid", r.validity(h.of), h.index)
		}
		return use(r.valid(r.header(r.text(o.Value, at), at)))
	case "valid_union":
		return r.unionValid(r.text(r.object(v.Right, at+".right").Value, at), at)
	case "?":
		c, t, f := side(v.Cond, "cond"), left(), right()
		return &ir.Expr{Op: ir.Mux, Bits: max(t.Bits, f.Bits), Signed: t.Signed, Bool: t.Bool && f.Bool, Args: []*ir.Expr{c, t, f}}
	case "two_comp_mod", "sat_cast", "usat_cast":
		x, bits := left(), right()
		e := &ir.Expr{Op: ir.Cast, Signed: v.Op != "usat_cast", Args: []*ir.Expr{x}}
		if bits.Op == ir.Const && bits.Value.IsInt64() {
			e.Bits = int(min(max(bits.Value.Int64(), 0), 1<<20))
		}
		if v.Op != "two_comp_mod" && (x.Op == "+" || x.Op == "-") {
			e.Op, e.Args = "|"+x.Op+"|", x.Args
		}
		return e
	case "last_stack_index", "size_stack":
		s := r.text(r.object(v.Right, at+".right").Value, at)
		e := r.anyOf(s+"."+v.Op, r.validity(r.stack(s, at)))
		e.Bits = 32
		return e
	case "access_field":
		h, field := r.access(v, at)
		if h.single() {
			return use(h.of[0].vars(r)[field])
		}
		var vars []*ir.Var
		for _, one := range h.of {
			vars = append(vars, one.vars(r)[field])
		}
		return r.anyOf("element of a header stack", vars, h.index)
	case "dereference_header_stack", "dereference_union_stack", "access_union_header":
		h := r.headerExpr(value{Type: "expression", Value: r.again(v)}, at)
		if h.single() {
			return use(r.valid(h.of[0]))
		}
		return r.anyOf("element of a header stack", r.validity(h.of), h.index)
	}
	op, ok := operators[v.Op]
	if !ok {
		r.fail(at, "unknown operator %q", v.Op)
	}
	e := &ir.Expr{Op: op}
	if l := v.Left; len(l) > 0 && string(l) != "null" {
		e.Args = append(e.Args, left())
	} else if op != "!" && op != "~" && op != "-" {
		r.fail(at, "operator %s needs a left side", v.Op)
	}
	e.Args = append(e.Args, right())
	if op == "-" && len(e.Args) == 1 {
		e.Op = "neg"
	}
	switch op {
	case "==", "!=", "<", "<=", ">", ">=", "&&", "||", "!":
		e.Bits, e.Bool = 1, true
	case "<<", ">>":
		e.Bits, e.Signed = e.Args[0].Bits, e.Args[0].Signed
	default:
		for _, a := range e.Args {
			e.Bits, e.Signed = max(e.Bits, a.Bits), e.Signed || a.Signed
		}
	}
	for _, a := range e.Args {
		if a.Op == ir.Const && a.Bits == 0 && op != "<<" && op != ">>" {
			a.Bits = widthOf(e.Args)
		}
	}
	return narrowed(e)
}

// widthOf gives the widest operand's width.
func widthOf(args []*ir.Expr) int {
	bits := 0
	for _, a := range args {
		bits = max(bits, a.Bits)
	}
	return bits
}

// again is the JSON of a value read before.
func (r *reader) again(v value) json.RawMessage {
	raw, err := json.Marshal(map[string]any{"op": v.Op, "left": v.Left, "right": v.Right})
	if err != nil {
		r.fail(v.Op, "%v", err)
	}
	return raw
}

// asBool gives x != 0, which a boolean already is.
func asBool(x *ir.Expr) *ir.Expr {
	switch {
	case x.Bool:
		return x
	case x.Op == ir.Use && x.Bits <= 1 || x.Op == ir.Const && (x.Value.Sign() == 0 || x.Value.Cmp(big.NewInt(1)) == 0):
		b := *x
		b.Bits, b.Bool = 1, true
		return &b
	}
	zero := constant(0)
	zero.Bits = x.Bits
	return &ir.Expr{Op: "!=", Bits: 1, Bool: true, Args: []*ir.Expr{x, zero}}
}

// narrowed turns a mask that keeps the low bits of an operation, which p4c adds
// because the model computes without bounds, into the operation's width, one of
// a shifted or whole variable into a slice, and drops one that keeps everything.
func narrowed(e *ir.Expr) *ir.Expr {
	if e.Op != "&" || len(e.Args) != 2 || e.Args[1].Op != ir.Const {
		return e
	}
	bits := lowMask(e.Args[1].Value)
	if bits == 0 {
		return e
	}
	x := e.Args[0]
	switch x.Op {
	case "+", "-", "*", "<<", "neg", "~":
		n := *x
		n.Bits = bits
		return &n
	case ir.Const:
		return e
	case ">>":
		by := x.Args[1]
		if x.Args[0].Op == ir.Use && by.Op == ir.Const && by.Value.IsInt64() {
			if lo, most := by.Value.Int64(), x.Args[0].Bits; lo >= 0 && lo < int64(most) {
				return slice(x.Args[0], min(int(lo)+bits, most)-1, int(lo))
			}
		}
	case ir.Use:
		if bits < x.Bits {
			return slice(x, bits-1, 0)
		}
	}
	if x.Bits > 0 && x.Bits <= bits {
		return x
	}
	return e
}

// slice gives bits hi to lo of a use.
func slice(x *ir.Expr, hi, lo int) *ir.Expr {
	return &ir.Expr{Op: ir.Use, Bits: hi - lo + 1, Var: x.Var, Hi: x.Lo + hi, Lo: x.Lo + lo}
}

// lowMask gives n for the mask of the n low bits, else 0.
func lowMask(m *big.Int) int {
	if m.Sign() <= 0 {
		return 0
	}
	n := m.BitLen()
	if m.TrailingZeroBits() != 0 || new(big.Int).Add(m, big.NewInt(1)).BitLen() != n+1 {
		return 0
	}
	return n
}

// chosen is a header that an expression names: one, or one of several by index.
type chosen struct {
	of    []*headerInfo
	index *ir.Expr
}

func (c chosen) single() bool { return len(c.of) == 1 && c.index == nil }

// access reads access_field: the header and the number of its field.
func (r *reader) access(v value, at string) (chosen, int) {
	h := r.headerExpr(r.object(v.Left, at+".left"), at+".left")
	var field int
	if err := json.Unmarshal(v.Right, &field); err != nil || field < 0 {
		r.fail(at+".right", "expected the number of a field, found %s", short(v.Right))
	}
	for _, one := range h.of {
		if field >= len(one.vars(r)) {
			r.fail(at+".right", "header %s has no field %d", one.name, field)
		}
	}
	return h, field
}

// headerExpr reads an expression that names a header.
func (r *reader) headerExpr(v value, at string) chosen {
	if v.Type == "header" {
		return chosen{of: []*headerInfo{r.header(r.text(v.Value, at), at)}}
	}
	if v.Type != "expression" {
		r.fail(at, "type %q does not name a header", v.Type)
	}
	e := r.object(v.Value, at)
	if e.Type != "" {
		return r.headerExpr(e, at)
	}
	var c chosen
	switch e.Op {
	case "dereference_header_stack":
		c.of = r.stack(r.text(r.object(e.Left, at+".left").Value, at), at)
		c.index = r.expr(r.object(e.Right, at+".right"), at+".right")
	case "dereference_union_stack":
		for _, u := range r.unionStack(r.text(r.object(e.Left, at+".left").Value, at), at) {
			c.of = append(c.of, u.headers...)
		}
		c.index = r.expr(r.object(e.Right, at+".right"), at+".right")
		return c
	case "access_union_header":
		var member int
		if err := json.Unmarshal(e.Right, &member); err != nil || member < 0 {
			r.fail(at+".right", "expected the number of a member, found %s", short(e.Right))
		}
		return r.unionMember(r.object(e.Left, at+".left"), member, at)
	default:
		r.fail(at, "operator %q does not name a header", e.Op)
	}
	if i := c.index; i.Op == ir.Const && i.Value.IsInt64() {
		n := i.Value.Int64()
		if n < 0 || n >= int64(len(c.of)) {
			r.fail(at, "index %d of a header stack of %d", n, len(c.of))
		}
		return chosen{of: c.of[n : n+1]}
	}
	return c
}

// unionMember gives a member of a union, or of every union of a stack.
func (r *reader) unionMember(v value, member int, at string) chosen {
	pick := func(u unionInfo) *headerInfo {
		if member >= len(u.headers) {
			r.fail(at, "a header union of %d members has no member %d", len(u.headers), member)
		}
		return u.headers[member]
	}
	if v.Type == "header_union" {
		return chosen{of: []*headerInfo{pick(r.union(r.text(v.Value, at), at))}}
	}
	e := v
	for e.Type == "expression" {
		e = r.object(e.Value, at)
	}
	if e.Op != "dereference_union_stack" {
		r.fail(at, "expected a header union, found operator %q", e.Op)
	}
	var c chosen
	for _, u := range r.unionStack(r.text(r.object(e.Left, at+".left").Value, at), at) {
		c.of = append(c.of, pick(u))
	}
	c.index = r.expr(r.object(e.Right, at+".right"), at+".right")
	return c
}
