package bmv2

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/bits"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"nicprof/p4/ir"
	"nicprof/p4/source"
)

// reader turns a document into a program.
type reader struct {
	file  string
	doc   *document
	names *names
	prog  *ir.Program
	g     *graph

	types       map[string]*typeInfo
	headers     map[string]*headerInfo
	stacks      map[string][]*headerInfo
	unions      map[string]unionInfo
	unionStacks map[string][]unionInfo
	vars        map[string]*ir.Var
	objects     map[ir.ObjectKind]map[string]*ir.Object
	direct      map[string][]*ir.Object // counters and meters by table
	results     map[*ir.Object][]string // field that a direct meter writes
	externs     map[string]*externInstance
	actions     map[int]*action
	lists       map[int]*fieldList // field lists by ID
	learns      map[int]*fieldList
	sums        map[string]*calculation

	running *action // the action whose primitives are read
	table   *ir.Object
	leave   *target // where exit leads
	temps   int
}

type typeInfo struct {
	name   string
	fields []fieldInfo
}

type fieldInfo struct {
	name   string
	bits   int
	signed bool
}

// headerInfo is a header or metadata instance.
type headerInfo struct {
	name     string // in the JSON
	metadata bool
	typ      *typeInfo
	fields   []*ir.Var
	validity *ir.Var
}

// unionInfo is a header union: its members' names, and their headers.
type unionInfo struct {
	names   []string
	headers []*headerInfo
}

// Read reads a program from p4c's JSON for the behavioral model. name is the
// file's, for messages. Errors are of type *source.Message.
func Read(name string, data []byte) (p *ir.Program, err error) {
	d, m := decode(name, data)
	if m != nil {
		return nil, m
	}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case failure:
			p, err = nil, e.message
		default:
			panic(e)
		}
	}()
	r := &reader{
		file: name, doc: d, names: newNames(d), g: newGraph(),
		prog: &ir.Program{
			Name: filepath.Base(name), Source: "bmv2-json",
			Version: fmt.Sprintf("%d.%d", d.Meta.Version[0], d.Meta.Version[1]),
		},
		vars:    map[string]*ir.Var{},
		objects: map[ir.ObjectKind]map[string]*ir.Object{},
		direct:  map[string][]*ir.Object{},
		results: map[*ir.Object][]string{},
	}
	r.readTypes()
	r.readHeaders()
	r.readArrays()
	r.readActions()
	r.readTables()
	r.readStages()
	code, stuck := r.g.finish()
	if stuck != nil {
		r.fail(stuck.Control, "never ends: a parser's states lead back to themselves on every way")
	}
	r.prog.Code = code
	return r.prog, nil
}

// failure is what fail panics with and Read returns.
type failure struct{ message *source.Message }

// fail ends Read with a message about a place in the JSON.
func (r *reader) fail(at, format string, args ...any) {
	panic(failure{&source.Message{Pos: source.Pos{File: r.file}, Msg: at + ": " + fmt.Sprintf(format, args...)}})
}

func (r *reader) warn(pos source.Pos, format string, args ...any) {
	if !pos.Known() {
		pos = source.Pos{File: r.file}
	}
	m := &source.Message{Pos: pos, Msg: fmt.Sprintf(format, args...)}
	for _, w := range r.prog.Warnings {
		if w.Pos == m.Pos && w.Msg == m.Msg {
			return
		}
	}
	r.prog.Warnings = append(r.prog.Warnings, m)
}

// declare notes a name of a list and refuses a second one.
func declare[K comparable, V any](r *reader, in map[K]V, key K, v V, at string) {
	if _, ok := in[key]; ok {
		r.fail(at, "%v is declared before", key)
	}
	in[key] = v
}

func (r *reader) readTypes() {
	r.types = map[string]*typeInfo{}
	for i, t := range r.doc.HeaderTypes {
		at := fmt.Sprintf("header_types[%d]", i)
		info := &typeInfo{name: t.Name}
		varbit, sum := -1, 0
		for j, raw := range t.Fields {
			here := fmt.Sprintf("%s.fields[%d]", at, j)
			if len(raw) < 2 {
				r.fail(here, "expected a name and a width")
			}
			f := fieldInfo{name: r.text(raw[0], here)}
			if string(raw[1]) == `"*"` {
				varbit = j
			} else if err := json.Unmarshal(raw[1], &f.bits); err != nil || f.bits < 0 {
				r.fail(here, "expected a width in bits, found %s", short(raw[1]))
			}
			if len(raw) > 2 {
				f.signed = string(raw[2]) == "true"
			}
			sum += f.bits
			info.fields = append(info.fields, f)
		}
		if varbit >= 0 {
			info.fields[varbit].bits = max(8*t.MaxLength-sum, 0)
		}
		declare(r, r.types, t.Name, info, at)
	}
}

func (r *reader) readHeaders() {
	r.headers = map[string]*headerInfo{}
	byID := map[int]*headerInfo{}
	for i, h := range r.doc.Headers {
		at := fmt.Sprintf("headers[%d]", i)
		t, ok := r.types[h.Type]
		if !ok {
			r.fail(at, "no header type %q", h.Type)
		}
		info := &headerInfo{name: h.Name, metadata: h.Metadata, typ: t}
		declare(r, r.headers, h.Name, info, at)
		declare(r, byID, h.ID, info, at+".id")
	}
	members := func(ids []int, at string) []*headerInfo {
		var hs []*headerInfo
		for _, id := range ids {
			h, ok := byID[id]
			if !ok {
				r.fail(at, "no header has id %d", id)
			}
			hs = append(hs, h)
		}
		return hs
	}
	r.stacks = map[string][]*headerInfo{}
	for i, s := range r.doc.Stacks {
		at := fmt.Sprintf("header_stacks[%d]", i)
		hs := members(s.Headers, at)
		for _, h := range hs {
			if h.typ != hs[0].typ {
				r.fail(at, "headers %s and %s are of different types", hs[0].name, h.name)
			}
		}
		declare(r, r.stacks, s.Name, hs, at)
	}
	r.unions = map[string]unionInfo{}
	unionByID := map[int]unionInfo{}
	unionType := map[string]*unionType{}
	for i := range r.doc.UnionTypes {
		declare(r, unionType, r.doc.UnionTypes[i].Name, &r.doc.UnionTypes[i], fmt.Sprintf("header_union_types[%d]", i))
	}
	for i, u := range r.doc.Unions {
		at := fmt.Sprintf("header_unions[%d]", i)
		t, ok := unionType[u.UnionType]
		if !ok {
			r.fail(at, "no header union type %q", u.UnionType)
		}
		hs := members(u.Headers, at)
		if len(hs) != len(t.Headers) {
			r.fail(at, "%d headers, but type %s has %d", len(hs), t.Name, len(t.Headers))
		}
		union := unionInfo{headers: hs}
		for j, m := range t.Headers {
			if len(m) == 0 {
				r.fail(at, "member %d of type %s has no name", j, t.Name)
			}
			union.names = append(union.names, m[0])
		}
		declare(r, r.unions, u.Name, union, at)
		declare(r, unionByID, u.ID, union, at+".id")
	}
	r.unionStacks = map[string][]unionInfo{}
	for i, s := range r.doc.UnionStacks {
		at := fmt.Sprintf("header_union_stacks[%d]", i)
		var us []unionInfo
		for _, id := range s.Unions {
			u, ok := unionByID[id]
			if !ok {
				r.fail(at, "no header union has id %d", id)
			}
			us = append(us, u)
		}
		declare(r, r.unionStacks, s.Name, us, at)
	}
}

func (r *reader) header(name, at string) *headerInfo {
	h, ok := r.headers[name]
	if !ok {
		r.fail(at, "no header %q", name)
	}
	return h
}

func (r *reader) stack(name, at string) []*headerInfo {
	s, ok := r.stacks[name]
	if !ok {
		r.fail(at, "no header stack %q", name)
	}
	return s
}

func (r *reader) union(name, at string) unionInfo {
	u, ok := r.unions[name]
	if !ok {
		r.fail(at, "no header union %q", name)
	}
	return u
}

func (r *reader) unionStack(name, at string) []unionInfo {
	s, ok := r.unionStacks[name]
	if !ok {
		r.fail(at, "no stack of header unions %q", name)
	}
	return s
}

// member gives a union's member.
func (r *reader) member(u unionInfo, name, at string) *headerInfo {
	i := slices.Index(u.names, name)
	if i < 0 {
		r.fail(at, "no member %q in a header union of %s", name, strings.Join(u.names, ", "))
	}
	return u.headers[i]
}

// newVar adds a variable, under a name that no other has.
func (r *reader) newVar(v ir.Var) *ir.Var {
	name := v.Name
	for i := 2; r.vars[v.Name] != nil; i++ {
		v.Name = fmt.Sprintf("%s#%d", name, i)
	}
	v.ID = len(r.prog.Vars)
	v.FlowGroup = strings.HasSuffix(v.Name, "FlowGroupID") || strings.HasSuffix(v.Name, "FlowID")
	r.prog.Vars = append(r.prog.Vars, &v)
	r.vars[v.Name] = &v
	return &v
}

func (r *reader) temporary(bits int) *ir.Var {
	r.temps++
	return r.newVar(ir.Var{Name: fmt.Sprintf("$read%d", r.temps), Bits: bits, Kind: ir.Local})
}

// vars gives the variables of a header's fields, in order.
func (h *headerInfo) vars(r *reader) []*ir.Var {
	for i := len(h.fields); i < len(h.typ.fields); i++ {
		f := h.typ.fields[i]
		v := ir.Var{Name: r.names.field(h.name, f.name), Bits: f.bits, Signed: f.signed}
		switch {
		case h.name == scalars && !strings.Contains(f.name, "."), !h.metadata && !r.names.header[h.name]:
			v.Kind = ir.Local
		case !h.metadata:
			v.Kind = ir.HeaderField
			v.Header = r.names.instance(h.name)
		case r.names.copied[h.name]:
			v.Kind = ir.Local
		case h.name == standardMeta || strings.HasPrefix(h.name, "psa_") || strings.HasPrefix(h.name, "pna_"):
			v.Kind = ir.Intrinsic
		default:
			v.Kind = ir.Metadata
		}
		h.fields = append(h.fields, r.newVar(v))
	}
	return h.fields
}

func (r *reader) valid(h *headerInfo) *ir.Var {
	if h.validity == nil {
		name := r.names.instance(h.name)
		h.validity = r.newVar(ir.Var{Name: name + ".$valid", Bits: 1, Kind: ir.Validity, Header: name})
	}
	return h.validity
}

func (r *reader) validity(hs []*headerInfo) []*ir.Var {
	var vs []*ir.Var
	for _, h := range hs {
		vs = append(vs, r.valid(h))
	}
	return vs
}

// unionValid is a union's validity: that of any member.
func (r *reader) unionValid(name, at string) *ir.Expr {
	var any *ir.Expr
	for _, h := range r.union(name, at).headers {
		v := use(r.valid(h))
		if any == nil {
			any = v
		} else {
			any = &ir.Expr{Op: "||", Bits: 1, Bool: true, Args: []*ir.Expr{any, v}}
		}
	}
	if any == nil {
		return asBool(constant(0))
	}
	return any
}

func (r *reader) field(instance, field, at string) *ir.Var {
	h := r.header(instance, at)
	if field == "$valid$" {
		return r.valid(h)
	}
	for i, f := range h.typ.fields {
		if f.name == field {
			return h.vars(r)[i]
		}
	}
	r.fail(at, "no field %q in header %s", field, instance)
	return nil
}

func (r *reader) stackFields(hs []*headerInfo, field, at string) []*ir.Var {
	var vs []*ir.Var
	for _, h := range hs {
		vs = append(vs, r.field(h.name, field, at))
	}
	return vs
}

// data gives the variable of an action's parameter.
func (r *reader) data(raw json.RawMessage, at string) *ir.Var {
	var i int
	if err := json.Unmarshal(raw, &i); err != nil {
		r.fail(at, "expected the number of an action's parameter, found %s", short(raw))
	}
	if r.running == nil || i < 0 || i >= len(r.running.Data) {
		r.fail(at, "no action parameter %d", i)
	}
	return r.parameter(r.running, i)
}

func (r *reader) parameter(a *action, i int) *ir.Var {
	name := a.Name + "." + a.Data[i].Name
	if v, ok := r.vars[name]; ok {
		return v
	}
	return r.newVar(ir.Var{Name: name, Bits: max(a.Data[i].Bits, 0), Kind: ir.ActionData})
}

// add adds a stateful object. Elements and Bits must not be negative.
func (r *reader) add(o ir.Object, at string) *ir.Object {
	if o.Elements < 0 || o.Bits < 0 {
		r.fail(at, "%s %s has a negative size", o.Kind, o.FullName)
	}
	if r.objects[o.Kind] == nil {
		r.objects[o.Kind] = map[string]*ir.Object{}
	}
	o.ID = len(r.prog.Objects)
	o.Name = o.FullName[strings.LastIndexByte(o.FullName, '.')+1:]
	declare(r, r.objects[o.Kind], o.FullName, &o, at)
	r.prog.Objects = append(r.prog.Objects, &o)
	return &o
}

// array gives a register, counter, meter, profile or value set.
func (r *reader) array(kind ir.ObjectKind, name, at string) *ir.Object {
	o, ok := r.objects[kind][name]
	if !ok {
		r.fail(at, "no %s %q", strings.ReplaceAll(string(kind), "_", " "), name)
	}
	return o
}

func (r *reader) readArrays() {
	for i, a := range r.doc.Registers {
		r.add(ir.Object{
			Kind: ir.Register, FullName: a.Name, Type: fmt.Sprintf("register<bit<%d>>", a.Bits),
			Pos: a.Info.pos(), Elements: a.Size, Bits: a.Bits,
		}, fmt.Sprintf("register_arrays[%d]", i))
	}
	array := func(a array, kind ir.ObjectKind, at string) {
		o := ir.Object{Kind: kind, FullName: a.Name, Type: string(kind), Pos: a.Info.pos(), Elements: a.Size}
		if a.Direct {
			o.Type, o.Elements = "direct_"+o.Type, 0
		}
		if kind == ir.Meter {
			o.Unit = a.Type
		}
		added := r.add(o, at)
		if a.Direct {
			r.direct[a.Binding] = append(r.direct[a.Binding], added)
			r.results[added] = a.Target
		}
	}
	for i, a := range r.doc.Counters {
		array(a, ir.Counter, fmt.Sprintf("counter_arrays[%d]", i))
	}
	for i, a := range r.doc.Meters {
		array(a, ir.Meter, fmt.Sprintf("meter_arrays[%d]", i))
	}
	for i, v := range r.doc.ValueSets {
		r.add(ir.Object{Kind: ir.ValueSet, FullName: v.Name, Type: "value_set", Pos: v.Info.pos(), Elements: v.Size, Bits: v.Bits}, fmt.Sprintf("parse_vsets[%d]", i))
	}
	r.readExterns()
	r.sums = map[string]*calculation{}
	for i := range r.doc.Calculations {
		c := &r.doc.Calculations[i]
		declare(r, r.sums, c.Name, c, fmt.Sprintf("calculations[%d]", i))
	}
	r.lists, r.learns = map[int]*fieldList{}, map[int]*fieldList{}
	for i := range r.doc.FieldLists {
		l := &r.doc.FieldLists[i]
		declare(r, r.lists, l.ID, l, fmt.Sprintf("field_lists[%d].id", i))
	}
	for i := range r.doc.LearnLists {
		l := &r.doc.LearnLists[i]
		declare(r, r.learns, l.ID, l, fmt.Sprintf("learn_lists[%d].id", i))
	}
}

// stateless are PSA's and PNA's externs that keep nothing from packet to packet
// that the data plane reads.
var stateless = []string{"Hash", "InternetChecksum", "Checksum", "Random", "Digest"}

// readExterns reads extern instances. Those of counters are in counter_arrays
// as well.
func (r *reader) readExterns() {
	r.externs = map[string]*externInstance{}
	for i := range r.doc.Externs {
		e := &r.doc.Externs[i]
		at := fmt.Sprintf("extern_instances[%d]", i)
		declare(r, r.externs, e.Name, e, at)
		if slices.Contains(stateless, e.Type) {
			continue
		}
		o := ir.Object{Kind: ir.Other, FullName: e.Name, Type: e.Type, Pos: e.Info.pos()}
		switch e.Type {
		case "Counter", "DirectCounter":
			o.Kind = ir.Counter
		case "Meter", "DirectMeter":
			o.Kind = ir.Meter
			o.Unit = strings.ToLower(e.attribute("type"))
		case "Register":
			o.Kind = ir.Register
		}
		if known, ok := r.objects[o.Kind][e.Name]; ok {
			known.Type = e.Type
			continue
		}
		for _, name := range []string{"n_counters", "n_meters", "size"} {
			if v := e.attribute(name); v != "" {
				n, ok := new(big.Int).SetString(v, 0)
				if !ok || !n.IsInt64() {
					r.fail(at, "expected a size in %s, found %s", name, v)
				}
				o.Elements = n.Int64()
			}
		}
		r.add(o, at)
	}
}

func (r *reader) readActions() {
	r.actions = map[int]*action{}
	for i := range r.doc.Actions {
		a := &r.doc.Actions[i]
		declare(r, r.actions, a.ID, a, fmt.Sprintf("actions[%d].id", i))
	}
}

// actionsOf gives a table's actions; files name them and give their IDs.
func (r *reader) actionsOf(t *table, at string) []*action {
	var as []*action
	if t.ActionIDs != nil {
		for _, id := range t.ActionIDs {
			a, ok := r.actions[id]
			if !ok {
				r.fail(at+".action_ids", "no action has id %d", id)
			}
			as = append(as, a)
		}
	} else {
	named:
		for _, name := range t.Actions {
			for i := range r.doc.Actions {
				if r.doc.Actions[i].Name == name {
					as = append(as, &r.doc.Actions[i])
					continue named
				}
			}
			r.fail(at+".actions", "no action %q", name)
		}
	}
	if t.Default != nil {
		a, ok := r.actions[t.Default.Action]
		if !ok {
			r.fail(at+".default_entry", "no action has id %d", t.Default.Action)
		}
		if !slices.Contains(as, a) {
			as = append(as, a)
		}
	}
	return as
}

var madeTable = regexp.MustCompile(`(^|\.)tbl_\w+$`)

// made tells whether p4c made the table of a statement.
func (t *table) made() bool {
	return len(t.Keys) == 0 && t.Default != nil && t.Default.Const && len(t.Actions) <= 1 && madeTable.MatchString(t.Name)
}

func (r *reader) readTables() {
	for pi := range r.doc.Pipelines {
		p := &r.doc.Pipelines[pi]
		at := fmt.Sprintf("pipelines[%d]", pi)
		for i, a := range p.Profiles {
			o := ir.Object{Kind: ir.Profile, FullName: a.Name, Type: "action_profile", Elements: a.Size}
			if a.Selector != nil {
				o.Kind, o.Type = ir.Selector, "action_selector"
			}
			r.add(o, fmt.Sprintf("%s.action_profiles[%d]", at, i))
		}
		for i := range p.Tables {
			if t := &p.Tables[i]; !t.made() {
				r.readTable(p, t, fmt.Sprintf("%s.tables[%d]", at, i))
			}
		}
	}
	for _, name := range sortedKeys(r.direct) {
		t, ok := r.objects[ir.Table][name]
		for _, o := range r.direct[name] {
			if !ok {
				r.fail(string(o.Kind)+" "+o.FullName, "is bound to the table %q, which does not exist", name)
			}
			o.Direct = t
		}
	}
}

func (r *reader) readTable(p *pipeline, t *table, at string) {
	o := ir.Object{
		Kind: ir.Table, FullName: t.Name, Type: "table", Pos: t.Info.pos(),
		Elements: t.Size, SizeDeclared: t.Size > 0, Entries: len(t.Entries), ConstEntries: t.Entries != nil, Idle: t.Timeout,
	}
	if t.Profile != "" {
		var ok bool
		if o.Implementation, ok = r.objects[ir.Profile][t.Profile]; !ok {
			if o.Implementation, ok = r.objects[ir.Selector][t.Profile]; !ok {
				r.fail(at+".action_profile", "no action profile %q", t.Profile)
			}
		}
	}
	for i, k := range t.Keys {
		o.Keys = append(o.Keys, r.tableKey(k, fmt.Sprintf("%s.key[%d]", at, i)))
	}
	if o.Implementation != nil && o.Implementation.Kind == ir.Selector {
		for i := range p.Profiles {
			if a := &p.Profiles[i]; a.Name == t.Profile {
				for j, v := range a.Selector.Input {
					e := r.expr(v, fmt.Sprintf("action_profiles[%d].selector.input[%d]", i, j))
					k := ir.Key{Match: "selector", Bits: e.Bits, Expr: e}
					if e.Var != nil {
						k.Field = e.Var.Name
					}
					o.Keys = append(o.Keys, k)
				}
			}
		}
	}
	actions := r.actionsOf(t, at)
	data := 0
	for _, a := range actions {
		o.Actions = append(o.Actions, a.Name)
		sum := 0
		for i := range a.Data {
			sum += r.parameter(a, i).Bits
		}
		data = max(data, sum)
	}
	if len(actions) > 1 {
		data += bits.Len(uint(len(actions) - 1))
	}
	o.Bits = data
	if t.Default != nil {
		o.DefaultAction = r.actions[t.Default.Action].Name
	}
	r.add(o, at)
}

// tableKey reads a key. Its field is named as the P4 program writes it, unless
// @name gave the key a name of its own.
func (r *reader) tableKey(k tableKey, at string) ir.Key {
	var e *ir.Expr
	if k.Match == "valid" {
		e = use(r.valid(r.header(r.text(k.Target, at+".target"), at+".target")))
		k.Match = "exact"
	} else {
		h, f := r.pair(k.Target, at+".target")
		e = use(r.field(h, f, at+".target"))
	}
	key := ir.Key{Field: k.Name, Match: k.Match, Bits: e.Bits, Expr: e}
	if key.Field == "" {
		key.Field = e.Var.Name
	}
	if k.Mask != nil {
		mask := &ir.Expr{Op: ir.Const, Bits: e.Bits, Value: r.number(json.RawMessage(*k.Mask), at+".mask")}
		key.Expr = narrowed(&ir.Expr{Op: "&", Bits: e.Bits, Args: []*ir.Expr{e, mask}})
	}
	return key
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// checkIndex warns of a constant index behind the last element.
func (r *reader) checkIndex(o *ir.Object, index *ir.Expr) {
	if index == nil || index.Op != ir.Const || o.Direct != nil {
		return
	}
	if index.Value.Sign() < 0 || index.Value.Cmp(big.NewInt(o.Elements)) >= 0 {
		r.warn(r.g.pos, "index %s of %s %s, which has %d elements: the access is out of range", index.Value, o.Kind, o.FullName, o.Elements)
	}
}
