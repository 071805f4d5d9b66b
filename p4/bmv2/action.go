package bmv2

import (
	"fmt"
	"regexp"

	"nicprof/p4/ir"
)

// madeAction matches names that p4c gives to actions that it makes of
// statements: act, act_3, and since 2020 the source file's name and a line.
var madeAction = regexp.MustCompile(`^(act(_\d+)?|[A-Za-z]\w*?\d+)$`)

// runAction emits an action's body.
func (r *reader) runAction(a *action) {
	if r.running == a {
		r.fail("action "+a.Name, "calls itself")
	}
	outer, label := r.running, r.g.action
	r.running = a
	if r.g.action == "" && !madeAction.MatchString(a.Name) {
		r.g.action = a.Name
	}
	places := make([]target, len(a.Primitives)+1)
	for i := range a.Primitives {
		r.g.place(&places[i])
		p := &a.Primitives[i]
		r.primitive(p, func(to int64, at string) *target {
			if to <= int64(i) || to > int64(len(a.Primitives)) {
				r.fail(at, "jump from primitive %d to %d; only later primitives can be jumped to", i, to)
			}
			return &places[to]
		}, fmt.Sprintf("action %s, primitives[%d]", a.Name, i))
	}
	r.g.place(&places[len(a.Primitives)])
	r.running, r.g.action = outer, label
}

// renamed gives the P4 names of what the model calls otherwise.
var renamed = map[string]string{
	"clone_ingress_pkt_to_egress": "clone",
	"clone_egress_pkt_to_egress":  "clone",
	"generate_digest":             "digest",
	"drop":                        "mark_to_drop",
}

// updates are P4_14's read-modify-write primitives: dst = dst OP source, or
// dst = a OP b.
var updates = map[string]ir.ExprOp{
	"add_to_field": "+", "subtract_from_field": "-",
	"add": "+", "subtract": "-", "bit_and": "&", "bit_or": "|", "bit_xor": "^", "shift_left": "<<", "shift_right": ">>",
}

// primitive emits one primitive. jumps gives the place of a primitive of the
// same action, nil where there is none to jump to.
func (r *reader) primitive(p *primitive, jumps func(int64, string) *target, at string) {
	r.g.pos = p.Info.pos()
	ps := p.Parameters
	need := func(n int) {
		if len(ps) < n {
			r.fail(at, "%s needs %d parameters, found %d", p.Op, n, len(ps))
		}
	}
	arg := func(i int) *ir.Expr { return r.expr(ps[i], fmt.Sprintf("%s.parameters[%d]", at, i)) }
	name := func(i int) string { return r.text(ps[i].Value, fmt.Sprintf("%s.parameters[%d]", at, i)) }
	dst := func(i int) []ir.Def { return r.defs(ps[i], fmt.Sprintf("%s.parameters[%d]", at, i)) }
	indexed := func(kind ir.ObjectKind, i int) *ir.Object { return r.array(kind, name(i), at) }

	switch p.Op {
	case "assign", "assign_VL", "modify_field":
		need(2)
		if ps[0].Type == "header" {
			r.assignHeader(r.header(name(0), at), r.header(name(1), at))
			return
		}
		src := arg(1)
		if len(ps) > 2 { // P4_14's mask: what it does not cover is kept
			old, mask := arg(0), arg(2)
			src = &ir.Expr{Op: "|", Bits: old.Bits, Args: []*ir.Expr{
				{Op: "&", Bits: old.Bits, Args: []*ir.Expr{src, mask}},
				{Op: "&", Bits: old.Bits, Args: []*ir.Expr{old, {Op: "~", Bits: old.Bits, Args: []*ir.Expr{mask}}}},
			}}
		}
		r.assign(ps[0], src, at)
	case "add_to_field", "subtract_from_field":
		need(2)
		r.assign(ps[0], &ir.Expr{Op: updates[p.Op], Bits: arg(0).Bits, Args: []*ir.Expr{arg(0), arg(1)}}, at)
	case "add", "subtract", "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right":
		need(3)
		r.assign(ps[0], &ir.Expr{Op: updates[p.Op], Bits: arg(0).Bits, Args: []*ir.Expr{arg(1), arg(2)}}, at)
	case "assign_header", "copy_header":
		need(2)
		r.assignHeader(r.header(name(0), at), r.header(name(1), at))
	case "assign_union", "assign_header_stack", "assign_union_stack":
		need(2)
		r.assignGroups(p.Op, name(0), name(1), at)
	case "add_header", "remove_header":
		need(1)
		r.setValidity(p.Op == "add_header", ps[0], at)
	case "push", "pop":
		need(1)
		by := int64(1)
		if len(ps) > 1 {
			if n := arg(1); n.Op == ir.Const && n.Value.IsInt64() {
				by = n.Value.Int64()
			}
		}
		r.shift(r.stack(name(0), at), p.Op == "push", by)
	case "register_read":
		need(3)
		reg, index := indexed(ir.Register, 1), arg(2)
		r.checkIndex(reg, index)
		r.g.emit(&ir.Instr{Op: ir.RegRead, Object: reg, Index: index, Defs: dst(0)})
	case "register_write":
		need(3)
		reg, index := indexed(ir.Register, 0), arg(1)
		r.checkIndex(reg, index)
		r.g.emit(&ir.Instr{Op: ir.RegWrite, Object: reg, Index: index, Args: []*ir.Expr{arg(2)}})
	case "count":
		need(2)
		c, index := indexed(ir.Counter, 0), arg(1)
		r.checkIndex(c, index)
		r.g.emit(&ir.Instr{Op: ir.Count, Object: c, Index: index})
	case "execute_meter":
		need(3)
		m, index := indexed(ir.Meter, 0), arg(1)
		r.checkIndex(m, index)
		r.g.emit(&ir.Instr{Op: ir.MeterExec, Object: m, Index: index, Defs: dst(2)})
	case "modify_field_with_hash_based_offset":
		need(4)
		sum, ok := r.sums[name(2)]
		if !ok {
			r.fail(at, "no calculation %q", name(2))
		}
		r.g.emit(&ir.Instr{
			Op: ir.HashOp, Algorithm: sum.Algo, Args: r.exprs(sum.Input, "calculation "+sum.Name),
			Base: arg(1), Max: arg(3), Defs: dst(0),
		})
	case "modify_field_rng_uniform":
		need(3)
		r.g.emit(&ir.Instr{Op: ir.Random, Args: []*ir.Expr{arg(1), arg(2)}, Defs: dst(0)})
	case "mark_to_drop", "drop":
		r.drop(p, at)
	case "exit":
		r.g.jump(r.leave)
	case "no_op":
	case "_jump":
		need(1)
		r.g.jump(r.jumpTarget(arg(0), jumps, at))
	case "_jump_if_zero":
		need(2)
		to := r.jumpTarget(arg(1), jumps, at)
		in := r.g.emit(&ir.Instr{Op: ir.Branch, Args: []*ir.Expr{asBool(arg(0))}})
		r.g.choose(in, "false")
		r.g.jump(to)
		r.g.choose(in, "true")
	default:
		r.extern(p, at)
	}
}

func (r *reader) jumpTarget(to *ir.Expr, jumps func(int64, string) *target, at string) *target {
	if jumps == nil || to.Op != ir.Const || !to.Value.IsInt64() {
		r.fail(at, "a jump needs the number of a primitive of the same action")
	}
	return jumps(to.Value.Int64(), at)
}

// defs gives what writing to a parameter defines.
func (r *reader) defs(v value, at string) []ir.Def {
	switch v.Type {
	case "field":
		h, f := r.pair(v.Value, at)
		return []ir.Def{define(r.field(h, f, at))}
	case "runtime_data", "local":
		return []ir.Def{define(r.data(v.Value, at))}
	case "stack_field":
		s, f := r.pair(v.Value, at)
		return may(r.stackFields(r.stack(s, at), f, at))
	case "expression":
		inner := r.object(v.Value, at)
		switch {
		case inner.Type != "":
			return r.defs(inner, at)
		case inner.Op == "access_field":
			h, field := r.access(inner, at)
			if h.single() {
				return []ir.Def{define(h.of[0].vars(r)[field])}
			}
			var vars []*ir.Var
			for _, one := range h.of {
				vars = append(vars, one.vars(r)[field])
			}
			return may(vars)
		}
		r.fail(at, "operator %q cannot be written to", inner.Op)
	}
	r.fail(at, "type %q cannot be written to", v.Type)
	return nil
}

func may(vars []*ir.Var) []ir.Def {
	var ds []ir.Def
	for _, v := range vars {
		d := define(v)
		d.May = true
		ds = append(ds, d)
	}
	return ds
}

// assign emits an assignment. What an element chosen at run time gets depends on
// the index as well.
func (r *reader) assign(to value, src *ir.Expr, at string) {
	in := &ir.Instr{Op: ir.Assign, Args: []*ir.Expr{src}, Defs: r.defs(to, at)}
	if inner := to; len(in.Defs) > 1 && to.Type == "expression" {
		for inner.Type == "expression" {
			inner = r.object(inner.Value, at)
		}
		h, _ := r.access(inner, at)
		in.Args[0] = &ir.Expr{Op: ir.Any, Bits: src.Bits, Text: "stored by index", Args: []*ir.Expr{src, h.index}}
	}
	r.g.emit(in)
}

func (r *reader) assignHeader(to, from *headerInfo) {
	dst, src := to.vars(r), from.vars(r)
	r.g.emit(&ir.Instr{Op: ir.Assign, Args: []*ir.Expr{use(r.valid(from))}, Defs: []ir.Def{define(r.valid(to))}})
	for i := range min(len(dst), len(src)) {
		r.g.emit(&ir.Instr{Op: ir.Assign, Args: []*ir.Expr{use(src[i])}, Defs: []ir.Def{define(dst[i])}})
	}
}

// assignGroups copies a union, a stack, or a stack of unions.
func (r *reader) assignGroups(op, to, from, at string) {
	flat := func(name string) []*headerInfo {
		switch op {
		case "assign_union":
			return r.union(name, at).headers
		case "assign_header_stack":
			return r.stack(name, at)
		}
		var hs []*headerInfo
		for _, u := range r.unionStack(name, at) {
			hs = append(hs, u.headers...)
		}
		return hs
	}
	dst, src := flat(to), flat(from)
	for i := range min(len(dst), len(src)) {
		r.assignHeader(dst[i], src[i])
	}
}

func (r *reader) setValidity(valid bool, v value, at string) {
	h := r.headerExpr(v, at)
	op := ir.SetInvalid
	if valid {
		op = ir.SetValid
	}
	if h.single() {
		one := h.of[0]
		r.g.emit(&ir.Instr{Op: op, Header: r.names.instance(one.name), Defs: []ir.Def{define(r.valid(one))}})
		return
	}
	in := &ir.Instr{Op: op, Defs: may(r.validity(h.of))}
	if h.index != nil {
		in.Args = []*ir.Expr{h.index}
	}
	r.g.emit(in)
}

// shift moves a stack's headers towards its end (push) or its front (pop); the
// places that become free are invalid.
func (r *reader) shift(stack []*headerInfo, push bool, by int64) {
	n := int64(len(stack))
	by = min(max(by, 0), n)
	free := func(h *headerInfo) {
		r.g.emit(&ir.Instr{Op: ir.SetInvalid, Header: r.names.instance(h.name), Defs: []ir.Def{define(r.valid(h))}})
	}
	if push {
		for i := n - 1; i >= by; i-- {
			r.assignHeader(stack[i], stack[i-by])
		}
		for _, h := range stack[:by] {
			free(h)
		}
		return
	}
	for i := range n - by {
		r.assignHeader(stack[i], stack[i+by])
	}
	for _, h := range stack[n-by:] {
		free(h)
	}
}

// drop emits a drop. What it writes is the egress port of the metadata that it
// is given, or of the standard metadata.
func (r *reader) drop(p *primitive, at string) {
	in := &ir.Instr{Op: ir.Drop, Name: "mark_to_drop"}
	meta := standardMeta
	if len(p.Parameters) > 0 && p.Parameters[0].Type == "header" {
		meta = r.text(p.Parameters[0].Value, at)
		r.header(meta, at)
	}
	if h, ok := r.headers[meta]; ok {
		for i, f := range h.typ.fields {
			if f.name == "egress_spec" || f.name == "mcast_grp" {
				in.Defs = append(in.Defs, define(h.vars(r)[i]))
			}
		}
	}
	r.g.emit(in)
}

// extern emits any other primitive. Those of extern instances are named
// _Type_method and get the instance first.
func (r *reader) extern(p *primitive, at string) {
	ps := p.Parameters
	if len(ps) == 0 || ps[0].Type != "extern" {
		in := &ir.Instr{Op: ir.Extern, Name: p.Op}
		if n, ok := renamed[p.Op]; ok {
			in.Name = n
		}
		in.Args = r.exprs(ps, at+".parameters")
		in.Args = append(in.Args, r.listed(p, in.Args)...)
		if p.Op == "add_entry" && r.table != nil {
			in.Op, in.Object, r.table.Insertion = ir.Insert, r.table, true
		}
		r.g.emit(in)
		return
	}
	instance := r.text(ps[0].Value, at)
	e, ok := r.externs[instance]
	if !ok {
		r.fail(at+".parameters[0]", "no extern instance %q", instance)
	}
	arg := func(i int) *ir.Expr { return r.expr(ps[i], fmt.Sprintf("%s.parameters[%d]", at, i)) }
	dst := func(i int) []ir.Def { return r.defs(ps[i], fmt.Sprintf("%s.parameters[%d]", at, i)) }
	in := &ir.Instr{}
	switch method := methodOf(p.Op, e.Type); {
	case e.Type == "Counter" && len(ps) == 2, e.Type == "DirectCounter" && len(ps) <= 2:
		in.Op, in.Object = ir.Count, r.array(ir.Counter, instance, at)
		if len(ps) == 2 && e.Type == "Counter" {
			in.Index = arg(1)
			r.checkIndex(in.Object, in.Index)
		}
	case e.Type == "Meter" && len(ps) >= 2:
		in.Op, in.Object, in.Index = ir.MeterExec, r.array(ir.Meter, instance, at), arg(len(ps)-1)
		if len(ps) > 2 {
			in.Defs = dst(1)
		}
		r.checkIndex(in.Object, in.Index)
	case e.Type == "Hash" && method == "get_hash" && len(ps) == 3:
		in.Op, in.Algorithm, in.Defs = ir.HashOp, e.attribute("algo"), dst(1)
		in.Args = r.exprs(ps[2:], at+".parameters")
	case e.Type == "Hash" && method == "get_hash_mod" && len(ps) == 5:
		in.Op, in.Algorithm, in.Defs = ir.HashOp, e.attribute("algo"), dst(1)
		in.Base, in.Args, in.Max = arg(2), r.exprs(ps[3:4], at+".parameters"), arg(4)
	case e.Type == "InternetChecksum" || e.Type == "Checksum":
		// What was added so far lasts for the packet: a variable.
		sum := r.vars[instance+".$sum"]
		if sum == nil {
			sum = r.newVar(ir.Var{Name: instance + ".$sum", Bits: 16, Kind: ir.Local})
		}
		if method == "get" && len(ps) >= 2 {
			in.Op, in.Args, in.Defs = ir.Assign, []*ir.Expr{use(sum)}, dst(1)
			break
		}
		in.Op, in.Name, in.Algorithm, in.Defs = ir.Checksum, method, "csum16", []ir.Def{define(sum)}
		if method != "clear" {
			in.Args = append(r.exprs(ps[1:], at+".parameters"), use(sum))
		}
	default:
		in.Op, in.Name, in.Object = ir.Extern, method, r.objects[ir.Other][instance]
		for i, v := range ps[1:] {
			here := fmt.Sprintf("%s.parameters[%d]", at, i+1)
			in.Args = append(in.Args, r.exprs([]value{v}, here)...)
			if v.Type == "field" && in.Object != nil { // the JSON does not tell in from out
				in.Defs = append(in.Defs, may(varsOf(r.defs(v, here)))...)
			}
		}
	}
	r.g.emit(in)
}

func varsOf(ds []ir.Def) []*ir.Var {
	var vs []*ir.Var
	for _, d := range ds {
		vs = append(vs, d.Var)
	}
	return vs
}

// methodOf gives the method that a primitive _Type_method calls.
func methodOf(op, typ string) string {
	if prefix := "_" + typ + "_"; len(op) > len(prefix) && op[:len(prefix)] == prefix {
		return op[len(prefix):]
	}
	return op
}

// listed gives the fields of the list that a digest, or what keeps metadata
// over a second pass, names by number.
func (r *reader) listed(p *primitive, args []*ir.Expr) []*ir.Expr {
	lists := r.lists
	switch p.Op {
	case "generate_digest":
		lists = r.learns
	case "clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress", "resubmit", "recirculate":
	default:
		return nil
	}
	if len(args) == 0 {
		return nil
	}
	id := args[len(args)-1]
	if id.Op != ir.Const || !id.Value.IsInt64() {
		return nil
	}
	l, ok := lists[int(id.Value.Int64())]
	if !ok {
		return nil
	}
	return r.exprs(l.Elements, "field list "+l.Name)
}
