package bmv2

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"nicprof/p4/ir"
	"nicprof/p4/source"
)

// block is a parser, pipeline or deparser by its name in the JSON, with what
// kind of stage it is.
type block struct {
	name string
	kind ir.StageKind
}

// architectures lists the blocks of each in the order that packets take.
var architectures = []struct {
	name   string
	blocks []block
}{
	{"pna", []block{{"main_parser", ir.Parser}, {"main_control", ir.Ingress}, {"main_deparser", ir.Deparser}}},
	{"psa", []block{
		{"ingress_parser", ir.Parser}, {"ingress", ir.Ingress}, {"ingress_deparser", ir.Deparser},
		{"egress_parser", ir.Parser}, {"egress", ir.Egress}, {"egress_deparser", ir.Deparser},
	}},
	{"v1model", []block{
		{"parser", ir.Parser}, {"", ir.Verify}, {"ingress", ir.Ingress}, {"egress", ir.Egress}, {"", ir.Compute}, {"deparser", ir.Deparser},
	}},
}

var identifier = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// declaredName gives the name in the P4 source, else the JSON's.
func declaredName(name string, i *info) string {
	if i != nil && identifier.MatchString(i.Fragment) {
		return i.Fragment
	}
	return name
}

// readStages emits the whole program, stage by stage.
func (r *reader) readStages() {
	parsers, pipelines, deparsers := map[string]int{}, map[string]int{}, map[string]int{}
	for i, p := range r.doc.Parsers {
		declare(r, parsers, p.Name, i, fmt.Sprintf("parsers[%d]", i))
	}
	for i, p := range r.doc.Pipelines {
		declare(r, pipelines, p.Name, i, fmt.Sprintf("pipelines[%d]", i))
	}
	for i, p := range r.doc.Deparsers {
		declare(r, deparsers, p.Name, i, fmt.Sprintf("deparsers[%d]", i))
	}
	has := func(b block) bool {
		switch b.kind {
		case ir.Parser:
			_, ok := parsers[b.name]
			return ok
		case ir.Ingress, ir.Egress:
			_, ok := pipelines[b.name]
			return ok
		case ir.Deparser:
			_, ok := deparsers[b.name]
			return ok
		}
		return true
	}
	for _, arch := range architectures {
		known := 0
		for _, b := range arch.blocks {
			if b.name != "" && has(b) {
				known++
			}
		}
		if known == 0 || known < len(parsers)+len(pipelines)+len(deparsers) {
			continue
		}
		r.prog.Arch = arch.name
		for _, b := range arch.blocks {
			if !has(b) {
				continue
			}
			switch b.kind {
			case ir.Parser:
				r.parser(&r.doc.Parsers[parsers[b.name]], fmt.Sprintf("parsers[%d]", parsers[b.name]))
			case ir.Deparser:
				r.deparser(&r.doc.Deparsers[deparsers[b.name]], fmt.Sprintf("deparsers[%d]", deparsers[b.name]))
			case ir.Verify, ir.Compute:
				r.checksums(b.kind)
			default:
				r.pipeline(&r.doc.Pipelines[pipelines[b.name]], b.kind, fmt.Sprintf("pipelines[%d]", pipelines[b.name]))
			}
		}
		return
	}
	r.fail("pipelines", "the parsers, pipelines and deparsers are not those of simple_switch, psa_switch or pna_nic: %s",
		strings.Join(slices.Concat(sortedKeys(parsers), sortedKeys(pipelines), sortedKeys(deparsers)), ", "))
}

// stage starts a stage. What ends a stage early continues at the returned place.
func (r *reader) stage(kind ir.StageKind, name string, pos source.Pos) *target {
	r.prog.Stages = append(r.prog.Stages, ir.Stage{Kind: kind, Name: name, Pos: pos})
	r.g.stage, r.g.control, r.g.action, r.g.pos = len(r.prog.Stages)-1, name, "", pos
	r.leave = &target{}
	return r.leave
}

func (r *reader) parser(p *parser, at string) {
	end := r.stage(ir.Parser, p.Name, source.Pos{})
	states := map[string]int{}
	for i, s := range p.States {
		declare(r, states, s.Name, i, fmt.Sprintf("%s.parse_states[%d]", at, i))
	}
	entries := make([]target, len(p.States))
	reached := make([]bool, len(p.States))
	var work []int
	visit := func(name *string, at string) *target {
		if name == nil || *name == "" {
			return end
		}
		i, ok := states[*name]
		if !ok {
			r.fail(at, "no parser state %q", *name)
		}
		if !reached[i] {
			reached[i] = true
			work = append(work, i)
		}
		return &entries[i]
	}
	r.g.jump(visit(&p.Init, at+".init_state"))
	for len(work) > 0 {
		i := work[0]
		work = work[1:]
		r.g.placeLoop(&entries[i])
		s, here := &p.States[i], fmt.Sprintf("%s.parse_states[%d]", at, i)
		for j, op := range s.Ops {
			r.parserOp(op, fmt.Sprintf("%s.parser_ops[%d]", here, j))
		}
		r.transitions(s, end, visit, here)
	}
	r.g.place(end)
}

// transitions emits the end of a state: a jump, or a switch over the key.
func (r *reader) transitions(s *parseState, end *target, visit func(*string, string) *target, at string) {
	if len(s.Key) == 0 {
		next := end
		for i, t := range s.Transitions {
			next = visit(t.Next, fmt.Sprintf("%s.transitions[%d]", at, i))
		}
		r.g.jump(next)
		return
	}
	in := &ir.Instr{Op: ir.Switch, Args: r.exprs(s.Key, at+".transition_key")}
	keys := in.Args
	for i, t := range s.Transitions {
		if t.Type == "parse_vset" {
			if t.Value == nil {
				r.fail(fmt.Sprintf("%s.transitions[%d]", at, i), "no value set")
			}
			set := r.array(ir.ValueSet, *t.Value, fmt.Sprintf("%s.transitions[%d]", at, i))
			in.Args = append(in.Args, &ir.Expr{Op: ir.InSet, Bits: 1, Bool: true, Args: keys, Object: set})
		}
	}
	r.g.emit(in)
	otherwise := false
	for i, t := range s.Transitions {
		here := fmt.Sprintf("%s.transitions[%d]", at, i)
		label := "default"
		switch {
		case t.Type == "default" || t.Value == nil || *t.Value == "default":
			otherwise = true
		case t.Mask != nil:
			label = *t.Value + "&&&" + *t.Mask
		default:
			label = *t.Value
		}
		r.g.choose(in, label)
		r.g.jump(visit(t.Next, here))
	}
	if !otherwise {
		r.g.choose(in, "reject")
		r.g.jump(end)
	}
}

func (r *reader) parserOp(op primitive, at string) {
	r.g.pos = op.Info.pos()
	ps := op.Parameters
	need := func(n int) {
		if len(ps) < n {
			r.fail(at, "%s needs %d parameters, found %d", op.Op, n, len(ps))
		}
	}
	switch op.Op {
	case "extract", "extract_VL":
		need(1)
		r.extract(op, at)
	case "set":
		need(2)
		r.assign(ps[0], r.expr(ps[1], at+".parameters[1]"), at)
	case "verify":
		need(2)
		cond := asBool(r.expr(ps[0], at+".parameters[0]"))
		code := r.expr(ps[1], at+".parameters[1]")
		in := r.g.emit(&ir.Instr{Op: ir.Branch, Args: []*ir.Expr{cond}})
		r.g.choose(in, "false")
		if h, ok := r.headers[standardMeta]; ok {
			for i, f := range h.typ.fields {
				if f.name == "parser_error" {
					r.g.emit(&ir.Instr{Op: ir.Assign, Args: []*ir.Expr{code}, Defs: []ir.Def{define(h.vars(r)[i])}})
				}
			}
		}
		r.g.jump(r.leave)
		r.g.choose(in, "true")
	case "shift", "advance":
		r.g.emit(&ir.Instr{Op: ir.Extern, Name: "advance", Args: r.exprs(ps, at+".parameters")})
	case "primitive":
		need(1)
		r.primitive(&primitive{Op: ps[0].Op, Parameters: ps[0].Parameters, Info: op.Info}, nil, at+".parameters[0]")
	default:
		r.fail(at, "unknown parser operation %q", op.Op)
	}
}

// extract reads a header from the packet: one, or the next of a stack, which
// may be any.
func (r *reader) extract(op primitive, at string) {
	in := &ir.Instr{Op: ir.Extract}
	if len(op.Parameters) > 1 {
		in.Args = r.exprs(op.Parameters[1:], at+".parameters")
	}
	p := op.Parameters[0]
	var hs []*headerInfo
	may := true
	switch p.Type {
	case "regular":
		h := r.header(r.text(p.Value, at), at)
		hs, may = []*headerInfo{h}, false
		in.Header = r.names.instance(h.name)
	case "stack":
		name := r.text(p.Value, at)
		hs = r.stack(name, at)
		in.Header = r.names.headerPrefix() + "." + name + ".next"
	case "union_stack":
		name, member := r.pair(p.Value, at)
		for _, u := range r.unionStack(name, at) {
			hs = append(hs, r.member(u, member, at))
		}
		in.Header = r.names.headerPrefix() + "." + name + ".next." + member
	default:
		r.fail(at, "cannot extract a %q", p.Type)
	}
	for _, h := range hs {
		for _, v := range append(slices.Clone(h.vars(r)), r.valid(h)) {
			d := define(v)
			d.May = may
			in.Defs = append(in.Defs, d)
		}
	}
	r.g.emit(in)
}

func (r *reader) deparser(p *deparser, at string) {
	end := r.stage(ir.Deparser, declaredName(p.Name, p.Info), p.Info.pos())
	for i := range p.Primitives {
		r.primitive(&p.Primitives[i], nil, fmt.Sprintf("%s.primitives[%d]", at, i))
	}
	r.g.pos = p.Info.pos()
	for i, name := range p.Order {
		h := r.header(name, fmt.Sprintf("%s.order[%d]", at, i))
		in := &ir.Instr{Op: ir.Emit, Header: r.names.instance(name), Args: []*ir.Expr{use(r.valid(h))}}
		for _, v := range h.vars(r) {
			in.Args = append(in.Args, use(v))
		}
		r.g.emit(in)
	}
	r.g.place(end)
}

// checksums emits v1model's checksum controls, where there are checksums. A
// checksum says whether it is verified and updated; both if it does not say.
func (r *reader) checksums(kind ir.StageKind) {
	begun := false
	var end *target
	for i := range r.doc.Checksums {
		c := &r.doc.Checksums[i]
		does, name := c.Verify, "verify"
		if kind == ir.Compute {
			does, name = c.Update, "update"
		}
		if does != nil && !*does {
			continue
		}
		if !begun {
			begun = true
			end = r.stage(kind, string(kind), source.Pos{})
		}
		r.checksum(c, name, fmt.Sprintf("checksums[%d]", i))
	}
	if begun {
		r.g.place(end)
	}
}

func (r *reader) checksum(c *checksum, name, at string) {
	r.g.pos = c.Info.pos()
	sum, ok := r.sums[c.Calculation]
	if !ok {
		r.fail(at+".calculation", "no calculation %q", c.Calculation)
	}
	if len(c.Target) != 2 {
		r.fail(at+".target", "expected a header and a field")
	}
	v := r.field(c.Target[0], c.Target[1], at+".target")
	in := &ir.Instr{Op: ir.Checksum, Name: name, Algorithm: sum.Algo, Args: r.exprs(sum.Input, "calculation "+sum.Name)}
	if name == "update" {
		in.Defs = []ir.Def{define(v)}
	} else {
		in.Args = append(in.Args, use(v))
	}
	skip := &target{}
	if c.If != nil {
		cond := asBool(r.expr(*c.If, at+".if_cond"))
		if cond.Op != ir.Const || cond.Value.Sign() == 0 {
			branch := r.g.emit(&ir.Instr{Op: ir.Branch, Args: []*ir.Expr{cond}})
			r.g.choose(branch, "false")
			r.g.jump(skip)
			r.g.choose(branch, "true")
		}
	}
	r.g.emit(in)
	r.g.place(skip)
}

// node is a table, conditional or action call of a pipeline.
type node struct {
	name  string
	at    string
	table *table
	cond  *conditional
	call  *actionCall

	entry target
	state int // of the search: 0 new, 1 open, 2 done
}

// pipeline emits a control, its nodes in an order in which each comes behind
// all that lead to it.
func (r *reader) pipeline(p *pipeline, kind ir.StageKind, at string) {
	name := declaredName(p.Name, p.Info)
	end := r.stage(kind, name, p.Info.pos())
	nodes := map[string]*node{}
	for i := range p.Tables {
		n := &node{table: &p.Tables[i], name: p.Tables[i].Name, at: fmt.Sprintf("%s.tables[%d]", at, i)}
		declare(r, nodes, n.name, n, n.at)
	}
	for i := range p.Conditionals {
		n := &node{cond: &p.Conditionals[i], name: p.Conditionals[i].Name, at: fmt.Sprintf("%s.conditionals[%d]", at, i)}
		declare(r, nodes, n.name, n, n.at)
	}
	for i := range p.Calls {
		n := &node{call: &p.Calls[i], name: p.Calls[i].Name, at: fmt.Sprintf("%s.action_calls[%d]", at, i)}
		declare(r, nodes, n.name, n, n.at)
	}
	find := func(name *string, at string) *node {
		if name == nil {
			return nil
		}
		n, ok := nodes[*name]
		if !ok {
			r.fail(at, "no table, conditional or action call %q", *name)
		}
		return n
	}
	var order []*node
	var search func(n *node)
	search = func(n *node) {
		if n == nil || n.state == 2 {
			return
		}
		if n.state == 1 {
			r.fail(n.at, "%s leads back to itself", n.name)
		}
		n.state = 1
		switch {
		case n.table != nil:
			for _, action := range sortedKeys(n.table.Next) {
				search(find(n.table.Next[action], n.at+".next_tables."+action))
			}
			search(find(n.table.Base, n.at+".base_default_next"))
		case n.cond != nil:
			search(find(n.cond.False, n.at+".false_next"))
			search(find(n.cond.True, n.at+".true_next"))
		default:
			search(find(n.call.Next, n.at+".next_node"))
		}
		n.state = 2
		order = append(order, n)
	}
	first := find(p.Init, at+".init_table")
	search(first)
	jump := func(name *string) {
		if name == nil {
			r.g.jump(end)
		} else {
			r.g.jump(&nodes[*name].entry)
		}
	}
	jump(p.Init)
	for _, n := range slices.Backward(order) {
		r.g.place(&n.entry)
		r.g.control = name
		switch {
		case n.cond != nil:
			r.g.pos = n.cond.Info.pos()
			cond := asBool(r.expr(n.cond.Cond, n.at+".expression"))
			in := r.g.emit(&ir.Instr{Op: ir.Branch, Args: []*ir.Expr{cond}})
			r.g.choose(in, "true")
			jump(n.cond.True)
			r.g.choose(in, "false")
			jump(n.cond.False)
		case n.call != nil:
			a, ok := r.actions[n.call.Action]
			if !ok {
				r.fail(n.at, "no action has id %d", n.call.Action)
			}
			r.runAction(a)
			jump(n.call.Next)
		case n.table.made():
			a := r.actionsOf(n.table, n.at)[0]
			r.g.pos = n.table.Info.pos()
			for i, hex := range n.table.Default.Data {
				if i < len(a.Data) {
					value := &ir.Expr{Op: ir.Const, Bits: max(a.Data[i].Bits, 0), Value: r.number(json.RawMessage(hex), n.at+".default_entry")}
					r.g.emit(&ir.Instr{Op: ir.Assign, Args: []*ir.Expr{value}, Defs: []ir.Def{define(r.parameter(a, i))}})
				}
			}
			r.runAction(a)
			next, ok := n.table.Next[a.Name]
			if !ok {
				next = n.table.Base
			}
			jump(next)
		default:
			r.lookup(n, name, jump)
		}
	}
	r.g.place(end)
}

// lookup emits a table's application and the bodies of its actions.
func (r *reader) lookup(n *node, control string, jump func(*string)) {
	t, o := n.table, r.objects[ir.Table][n.table.Name]
	if i := strings.LastIndexByte(t.Name, '.'); i > 0 {
		r.g.control = t.Name[:i]
	} else {
		r.g.control = control
	}
	r.g.pos = t.Info.pos()
	hit := r.vars[t.Name+".$hit"]
	if hit == nil {
		hit = r.newVar(ir.Var{Name: t.Name + ".$hit", Bits: 1, Kind: ir.Hit})
	}
	in := &ir.Instr{Op: ir.Lookup, Object: o, Defs: []ir.Def{define(hit)}}
	for _, k := range o.Keys {
		in.Args = append(in.Args, k.Expr)
	}
	actions := r.actionsOf(t, n.at)
	for _, a := range actions {
		for i := range a.Data {
			in.Defs = append(in.Defs, define(r.parameter(a, i)))
		}
	}
	r.g.emit(in)
	onHit, isHit := t.Next["__HIT__"]
	onMiss, isMiss := t.Next["__MISS__"]
	decided := &target{}
	follow := func(action string) {
		next, ok := t.Next[action]
		switch {
		case isHit || isMiss:
			r.g.jump(decided)
		case ok:
			jump(next)
		default:
			jump(t.Base)
		}
	}
	r.table = o
	for _, a := range actions {
		r.g.choose(in, a.Name)
		r.g.action, r.g.pos = a.Name, t.Info.pos()
		if len(actions) == 1 || a.Name != o.DefaultAction {
			for _, d := range r.direct[t.Name] {
				r.countDirect(d)
			}
		}
		r.runAction(a)
		follow(a.Name)
	}
	r.table, r.g.action = nil, ""
	if t.Default == nil && !slices.Contains(o.Actions, noAction) {
		r.g.choose(in, noAction)
		follow(noAction)
	}
	if !isHit && !isMiss {
		return
	}
	r.g.place(decided)
	r.g.pos = t.Info.pos()
	branch := r.g.emit(&ir.Instr{Op: ir.Branch, Args: []*ir.Expr{use(hit)}})
	for _, way := range []struct {
		label string
		next  *string
		given bool
	}{{"true", onHit, isHit}, {"false", onMiss, isMiss}} {
		r.g.choose(branch, way.label)
		if !way.given {
			way.next = t.Base
		}
		jump(way.next)
	}
}

const noAction = "NoAction"

// countDirect emits the access to a direct counter or meter of the entry.
func (r *reader) countDirect(o *ir.Object) {
	if o.Kind == ir.Counter {
		r.g.emit(&ir.Instr{Op: ir.Count, Object: o})
		return
	}
	in := &ir.Instr{Op: ir.MeterExec, Object: o}
	if t := r.results[o]; len(t) == 2 {
		in.Defs = []ir.Def{define(r.field(t[0], t[1], "meter "+o.FullName))}
	}
	r.g.emit(in)
}
