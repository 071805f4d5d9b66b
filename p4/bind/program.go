// Package bind gives a P4_16 syntax tree its meaning: it resolves names and
// types, evaluates what is constant, and lowers the program to the IR with
// everything inlined. It reports names that are not declared, arguments that
// do not fit and the like; it is no type checker: where a type is not known it
// asks for nothing.
package bind

import (
	"cmp"
	"fmt"

	"path"
	"reflect"
	"slices"
	"strings"

	"nicprof/p4/ir"
	"nicprof/p4/prelude"
	"nicprof/p4/source"
	"nicprof/p4/syntax"
)

// Bounds of a program; what exceeds them is refused.
const (
	maxWork   = 200_000 // instructions, calls and choices among elements, those that are only checked included
	maxVars   = 100_000 // storage locations, and scalars in a type
	maxDepth  = 100     // of calls in each other
	maxUnroll = 64      // iterations of a for loop that are copies of its body
	maxStack  = 4096    // elements of a header stack
	maxWidth  = 1 << 20 // bits of a value
	maxErrors = 20
)

// binder lowers one program.
type binder struct {
	graph
	file   *syntax.File
	global *scope
	errs   syntax.Errors
	seen   map[source.Pos]bool
	arch   string

	errorsByName map[string]int
	matchKinds   map[string]bool

	objects  []*ir.Object
	kept     map[*ir.Object]bool // part of the program though no instruction names them
	atomics  []ir.AtomicRegion
	stages   []ir.Stage
	warnings []*source.Message
	taken    map[string]int
	storages map[varKey]value
	direct   map[directKey]*instance
	running  map[*syntax.FuncDecl]bool // whose bodies are being inlined
	pool     map[string]value
	names    map[string]string // of pooled storage, by its key

	// Of what is being lowered.
	prefix  string
	frame   *frame
	loops   *loop
	exits   []hole
	dropped []hole // of parsers whose rejects end the packet
	rejects *[]hole
	this    *instance
	inTable *tableSym
	grown   []*aggregate
	depth   int
	apart   int // of scratch code in each other
	work    int // spent so far
}

// stop ends the lowering of a program that exceeds a bound.
type stop struct{}

// Program lowers a program. The error is of type syntax.Errors.
func Program(f *syntax.File) (p *ir.Program, err error) {
	b := &binder{
		file: f, global: newScope(nil), seen: map[source.Pos]bool{},
		errorsByName: map[string]int{}, matchKinds: map[string]bool{},
		taken: map[string]int{}, storages: map[varKey]value{},
		direct: map[directKey]*instance{}, running: map[*syntax.FuncDecl]bool{}, kept: map[*ir.Object]bool{}, pool: map[string]value{}, names: map[string]string{},
	}
	defer func() {
		if r := recover(); r != nil {
			if _, mine := r.(stop); !mine {
				panic(r)
			}
			b.sortErrors()
			p, err = nil, b.errs
		}
	}()
	b.emit(ir.Nop, source.Pos{File: f.Name})
	for _, d := range f.Decls {
		b.decl(d)
	}
	arch := b.main()
	b.rest()
	if len(b.errs) > 0 {
		b.sortErrors()
		return nil, b.errs
	}
	p = &ir.Program{Name: path.Base(f.Name), Arch: arch, Source: "p4_16", Stages: b.stages,
		Atomics: b.atomics, Warnings: append(slices.Clone(f.Warnings), b.warnings...)}
	b.hits()
	p.Code = b.finish(source.Pos{File: f.Name})
	b.collect(p)
	return p, nil
}

func (b *binder) errorf(pos source.Pos, format string, args ...any) {
	if b.seen[pos] {
		return
	}
	b.seen[pos] = true
	b.errs = append(b.errs, b.file.Sources.Message(pos, format, args...))
	if len(b.errs) >= maxErrors {
		panic(stop{})
	}
}

// sortErrors puts the messages in the order of the source: those of a file
// together, files as they are first included.
func (b *binder) sortErrors() {
	order := map[string]int{}
	for i, f := range b.file.Sources.Files() {
		order[f.Name] = i
	}
	slices.SortStableFunc(b.errs, func(x, y *source.Message) int {
		return cmp.Or(cmp.Compare(order[x.Pos.File], order[y.Pos.File]), cmp.Compare(x.Pos.Line, y.Pos.Line), cmp.Compare(x.Pos.Col, y.Pos.Col))
	})
}

func (b *binder) warnf(pos source.Pos, format string, args ...any) {
	b.warnings = append(b.warnings, b.file.Sources.Message(pos, format, args...))
}

// fatal reports a bound that is exceeded.
func (b *binder) fatal(format string, args ...any) {
	b.errs = append(b.errs, &source.Message{Pos: source.Pos{File: b.file.Name}, Msg: fmt.Sprintf(format, args...)})
	panic(stop{})
}

// archOf names the architecture that declares what stands at a place, "" for what
// the program declares, whatever its file is called.
func (b *binder) archOf(pos source.Pos) string {
	if pos.File == b.file.Name {
		return ""
	}
	return prelude.Arch(pos.File)
}

// isArch tells whether a declaration is the architecture's, not the program's.
func (b *binder) isArch(pos source.Pos) bool { return b.archOf(pos) != "" }

// decl binds a declaration of the outermost scope.
func (b *binder) decl(d syntax.Decl) {
	sc := b.global
	switch d := d.(type) {
	case *syntax.ErrorDecl:
		for _, m := range d.Members {
			if _, ok := b.errorsByName[m.Name]; ok {
				b.errorf(m.Pos, "error %s is declared twice", m.Name)
			}
			b.errorsByName[m.Name] = len(b.errorsByName)
		}
	case *syntax.MatchKindDecl:
		for _, m := range d.Members {
			b.matchKinds[m.Name] = true
		}
	case *syntax.ConstDecl:
		b.constDecl(d, sc)
	case *syntax.EnumDecl:
		b.enum(d, sc)
	case *syntax.CompositeDecl:
		b.declare(sc, d.Name, d.Pos, &typeSym{decl: d, scope: sc})
		if len(d.TypeParams) == 0 {
			b.named(&syntax.NamedType{At: d.At, Name: d.Name}, sc, nil, false)
		} else {
			b.fields(&composite{}, d, b.bindTypes(d.TypeParams, nil, sc))
		}
	case *syntax.TypeDecl:
		if d.Decl != nil {
			b.decl(d.Decl)
		}
		t := &namedType{name: d.Name, base: b.resolve(d.Type, sc), isNew: d.New,
			flow: isFlow(d.Annotations) || d.Name == "FlowGroupID" || d.Name == "FlowID"}
		b.declare(sc, d.Name, d.Pos, &typeSym{t: t})
	case *syntax.FuncDecl:
		b.function(d, sc)
	case *syntax.ExternDecl:
		b.externDecl(d, sc)
	case *syntax.ActionDecl:
		b.declare(sc, d.Name, d.Pos, &actionSym{decl: d, full: b.fullName(d.Name, d.Annotations), scope: sc.body()})
	case *syntax.ParserDecl:
		b.blockDecl(d.Name, d.Pos, d, d.TypeParams, d.Params, d.CtorParams, sc)
	case *syntax.ControlDecl:
		b.blockDecl(d.Name, d.Pos, d, d.TypeParams, d.Params, d.CtorParams, sc)
	case *syntax.PackageDecl:
		b.blockDecl(d.Name, d.Pos, d, d.TypeParams, nil, d.Params, sc)
	case *syntax.InstanceDecl:
		b.declare(sc, d.Name, d.Pos, b.instance(d, sc))
	case *syntax.ValueSetDecl:
		b.declare(sc, d.Name, d.Pos, b.valueSet(d, sc))
	}
}

func (b *binder) enum(d *syntax.EnumDecl, sc *scope) {
	t := &enumType{decl: d, values: map[string]*scalar{}}
	if d.Type != nil {
		t.under = b.resolve(d.Type, sc)
	}
	b.declare(sc, d.Name, d.Pos, &typeSym{t: t})
	inner := newScope(sc) // members may name earlier ones
	for i, m := range d.Members {
		if t.values[m.Name] != nil {
			b.errorf(m.Pos, "enum %s has two members %s", d.Name, m.Name)
			continue
		}
		n := constant(bigInt(i), t)
		if m.Value != nil {
			if v, ok := b.eval(m.Value, inner, t.under).(*scalar); ok && v.e.Op == ir.Const {
				n = constant(v.e.Value, t)
			}
		}
		n.e.Text = d.Name + "." + m.Name
		t.values[m.Name] = n
		inner.set(m.Name, m.Pos, n)
	}
}

// function declares a function; others of its name are overloads. As in p4c,
// two with the same parameters are a mistake only where one is called.
func (b *binder) function(d *syntax.FuncDecl, sc *scope) {
	tsc := b.bindTypes(d.TypeParams, nil, sc)
	for _, p := range d.Params {
		b.resolve(p.Type, tsc)
	}
	b.resolve(d.Return, tsc)
	if old := sc.names[d.Name]; old != nil {
		f, ok := old.def.(*funcSym)
		if ok {
			f.decls = append(f.decls, d)
			f.scope[d] = sc.body()
			return
		}
		b.errorf(d.Pos, "%s is declared twice; first at %s", d.Name, old.pos)
		return
	}
	f := &funcSym{name: d.Name, decls: []*syntax.FuncDecl{d}, scope: map[*syntax.FuncDecl]*scope{}, used: map[*syntax.FuncDecl]bool{}}
	b.declare(sc, d.Name, d.Pos, f)
	f.scope[d] = sc.body()
}

func sameParams(x, y []*syntax.Param) bool {
	return slices.EqualFunc(x, y, func(p, q *syntax.Param) bool { return p.Name == q.Name })
}

func (b *binder) externDecl(d *syntax.ExternDecl, sc *scope) {
	if old := sc.names[d.Name]; old != nil {
		if t, ok := old.def.(*typeSym); ok {
			if e, ok := t.decl.(*syntax.ExternDecl); ok && (e.Forward || d.Forward) {
				if e.Forward {
					t.decl = d
				}
				return
			}
		}
	}
	b.declare(sc, d.Name, d.Pos, &typeSym{decl: d, scope: sc})
	tsc := b.bindTypes(d.TypeParams, nil, sc)
	for _, m := range d.Methods {
		msc := b.bindTypes(m.TypeParams, nil, tsc)
		for _, p := range m.Params {
			b.resolve(p.Type, msc)
		}
		b.resolve(m.Return, msc)
	}
}

func (b *binder) blockDecl(name string, pos source.Pos, d syntax.Decl, tps []*syntax.Ident, params, ctor []*syntax.Param, sc *scope) {
	if old := sc.names[name]; old != nil {
		if k, ok := old.def.(*blockSym); ok && typeOnly(k.decl) && !typeOnly(d) {
			sc.names[name] = nil
			delete(sc.names, name)
		}
	}
	k := &blockSym{name: name, decl: d}
	if old := sc.names[name]; old != nil && overloads(old.def, d) {
		first := old.def.(*blockSym)
		first.more = append(first.more, k)
	} else {
		b.declare(sc, name, pos, k)
	}
	k.scope = sc.body()
	tsc := b.bindTypes(tps, nil, sc)
	seen := map[string]source.Pos{}
	for _, p := range append(slices.Clone(params), ctor...) {
		b.resolve(p.Type, tsc)
		if old, ok := seen[p.Name]; ok {
			b.errorf(p.Pos, "%s is declared twice; first at %s", p.Name, old)
		}
		seen[p.Name] = p.Pos
	}
}

// overloads tells whether a control, parser or package may have the name of
// another one: their constructors' parameters or type parameters differ.
func overloads(old any, d syntax.Decl) bool {
	k, ok := old.(*blockSym)
	if !ok || typeOnly(k.decl) || typeOnly(d) {
		return false
	}
	for _, o := range append([]*blockSym{k}, k.more...) {
		_, p := blockParams(o.decl)
		_, q := blockParams(d)
		if reflect.TypeOf(o.decl) != reflect.TypeOf(d) || sameParams(p, q) && len(typeParams(o.decl)) == len(typeParams(d)) {
			return false
		}
	}
	return true
}

func typeOnly(d syntax.Decl) bool {
	switch d := d.(type) {
	case *syntax.ParserDecl:
		return d.TypeOnly
	case *syntax.ControlDecl:
		return d.TypeOnly
	}
	return false
}

// rest lowers what the program's package does not use, for its errors; without
// a package, parsers and controls are the program.
func (b *binder) rest() {
	alone := len(b.stages) == 0
	for _, d := range b.file.Decls {
		switch d := d.(type) {
		case *syntax.ParserDecl:
			b.standAlone(d.Name, d, alone)
		case *syntax.ControlDecl:
			b.standAlone(d.Name, d, alone)
		case *syntax.FuncDecl:
			if d.Body != nil {
				b.unusedFunction(d)
			}
		case *syntax.ActionDecl:
			if s := b.global.names[d.Name]; s != nil {
				if a, ok := s.def.(*actionSym); ok && !a.used && a.decl == d {
					b.scratch(func() { b.action(a, b.actionData(a), d.Pos) })
				}
			}
		}
	}
}

func (b *binder) unusedFunction(d *syntax.FuncDecl) {
	s := b.global.names[d.Name]
	if s == nil {
		return
	}
	f, ok := s.def.(*funcSym)
	if !ok || f.used[d] || f.scope[d] == nil {
		return
	}
	b.scratch(func() {
		tsc := b.bindTypes(d.TypeParams, nil, f.scope[d])
		vals := make([]value, len(d.Params))
		for i, p := range d.Params {
			vals[i] = b.storage(b.resolve(p.Type, tsc), d.Name+"."+p.Name, ir.Local, "", false)
		}
		b.callBody(d, vals, tsc, nil, d.Pos)
	})
}

func (b *binder) standAlone(name string, d syntax.Decl, alone bool) {
	s := b.global.names[name]
	if s == nil || typeOnly(d) {
		return
	}
	k, ok := s.def.(*blockSym)
	if !ok || k.used || k.decl != d {
		return
	}
	t := b.specialise(k, nil, s.pos, false).(*blockType)
	i := &instance{t: t, name: name, full: name, pos: s.pos}
	_, i.ctor = blockParams(d)
	for _, p := range i.ctor {
		pt := b.resolve(p.Type, t.scope)
		if x, ok := pt.(*blockType); ok {
			i.args = append(i.args, &instance{t: x, name: p.Name, full: p.Name})
			continue
		}
		i.args = append(i.args, opaqueValue(pt, p.Name))
	}
	if alone && len(typeParams(d)) == 0 && !b.isArch(s.pos) && len(i.ctor) == 0 {
		b.warnf(s.pos, "no package is instantiated (main): %s stands alone", name)
		b.stage(i, stageKind("", d), nil)
		return
	}
	b.scratch(func() { b.stageBody(i, nil) })
}

// stageKind tells what a block is, by what the architecture calls its type.
func stageKind(as string, d syntax.Decl) ir.StageKind {
	as = strings.ToLower(as)
	if c, ok := d.(*syntax.ControlDecl); ok {
		for _, p := range c.Params {
			if n, ok := p.Type.(*syntax.NamedType); ok && n.Name == "packet_out" {
				return ir.Deparser
			}
		}
	} else {
		return ir.Parser
	}
	switch {
	case strings.Contains(as, "deparse"):
		return ir.Deparser
	case strings.Contains(as, "verify"):
		return ir.Verify
	case strings.Contains(as, "compute"):
		return ir.Compute
	case strings.Contains(as, "egress"):
		return ir.Egress
	}
	return ir.Ingress
}

// slot is a programmable block of the package: an instance and the type that
// the architecture gives it.
type slot struct {
	inst *instance
	as   *blockType // nil for a block whose type is not declared
}

// main lowers the stages of the program's package and names its architecture.
func (b *binder) main() string {
	s := b.global.names["main"]
	if s == nil {
		return ""
	}
	i, ok := s.def.(*instance)
	if !ok || i.t == nil {
		return ""
	}
	bt, ok := i.t.(*blockType)
	if !ok {
		return ""
	}
	b.arch = b.archOf(b.global.names[bt.block.name].pos)
	slots := b.slots(i, nil)
	b.nameStorage(slots)
	for _, sl := range slots {
		as := ""
		if sl.as != nil {
			as = sl.as.block.name
		}
		b.stage(sl.inst, stageKind(as, sl.inst.t.(*blockType).block.decl), sl.as)
	}
	return b.arch
}

// slots lists the blocks in a package and the packages in it, in order.
func (b *binder) slots(i *instance, list []slot) []slot {
	bt, ok := i.t.(*blockType)
	if !ok {
		return list
	}
	d, ok := bt.block.decl.(*syntax.PackageDecl)
	if !ok {
		return list
	}
	// The package's own type parameters stand for the storage that its blocks
	// share.
	sc := b.bindTypes(d.TypeParams, nil, bt.block.scope)
	for k, p := range d.Params {
		a, ok := argument(i.args, k).(*instance)
		if !ok {
			continue
		}
		at, ok := a.t.(*blockType)
		if !ok {
			continue
		}
		if _, ok := at.block.decl.(*syntax.PackageDecl); ok {
			list = b.slots(a, list)
			continue
		}
		as, _ := b.resolve(p.Type, sc).(*blockType)
		list = append(list, slot{a, as})
	}
	return list
}

// key says which storage a block's parameter stands for: blocks share what the
// package gives the same type parameter, headers of one type, and the
// architecture's metadata.
func (b *binder) key(p *syntax.Param, k int, bt, as *blockType, used map[string]bool) (string, typ) {
	t := b.resolve(p.Type, bt.scope)
	role := ""
	if as != nil {
		params, _ := blockParams(as.block.decl)
		if k < len(params) {
			r := b.resolve(params[k].Type, as.scope)
			if x, ok := r.(*paramType); ok {
				role = x.name
			}
			if !known(t) {
				t = r
			}
		}
	}
	key := identity(t)
	if c, ok := base(t).(*composite); ok {
		switch {
		case c.arch:
			key = c.name
		case role != "" && !hasHeader(t):
			key = role
		}
	} else if role != "" {
		key = role
	}
	for used[key] {
		key += "'"
	}
	used[key] = true
	return key, t
}

func hasHeader(t typ) bool {
	switch x := base(t).(type) {
	case *composite:
		return x.kind != syntax.Struct || slices.ContainsFunc(x.fields, func(f field) bool { return hasHeader(f.t) })
	case *stackType:
		return hasHeader(x.elem)
	}
	return false
}

// nameStorage names what blocks share with the first match-action control's
// names, and with its first user's what that control does not have.
func (b *binder) nameStorage(slots []slot) {
	taken := map[string]bool{}
	name := func(sl slot) {
		bt := sl.inst.t.(*blockType)
		params, _ := blockParams(bt.block.decl)
		used := map[string]bool{}
		for k, p := range params {
			key, _ := b.key(p, k, bt, sl.as, used)
			if b.names[key] != "" {
				continue
			}
			n := p.Name
			if taken[n] {
				n = bt.block.name + "." + n
			}
			taken[n] = true
			b.names[key] = n
		}
	}
	for _, sl := range slots {
		as := ""
		if sl.as != nil {
			as = sl.as.block.name
		}
		if stageKind(as, sl.inst.t.(*blockType).block.decl) == ir.Ingress {
			name(sl)
			break
		}
	}
	for _, sl := range slots {
		name(sl)
	}
}

// stage lowers a block of the pipeline.
func (b *binder) stage(i *instance, kind ir.StageKind, as *blockType) {
	bt := i.t.(*blockType)
	b.at = place{stage: len(b.stages)}
	b.stages = append(b.stages, ir.Stage{Kind: kind, Name: bt.block.name, Pos: bt.block.decl.Position()})
	i.full = bt.block.name
	b.stageBody(i, as)
}

func (b *binder) stageBody(i *instance, as *blockType) {
	bt := i.t.(*blockType)
	params, _ := blockParams(bt.block.decl)
	used := map[string]bool{}
	var vals []value
	for k, p := range params {
		key, t := b.key(p, k, bt, as, used)
		v, ok := b.pool[key]
		if !ok {
			n := b.names[key]
			if n == "" {
				n = p.Name
			}
			v = b.storage(t, n, ir.Metadata, "", isFlow(p.Annotations))
			b.pool[key] = v
			b.stacks(v, p.Pos)
		}
		vals = append(vals, v)
	}
	b.exits, b.rejects = nil, nil
	b.apply(i, vals, i.pos)
	b.open = append(b.open, b.exits...)
	b.exits = nil
}

// stacks leaves a place before the block where the next index of every header
// stack can be set.
func (b *binder) stacks(v value, pos source.Pos) {
	a, ok := v.(*aggregate)
	if !ok {
		return
	}
	if a.next != nil {
		a.first = b.emit(ir.Nop, pos)
	}
	for _, e := range a.elems {
		b.stacks(e, pos)
	}
}

// collect gives the program the variables and objects that its code uses.
func (b *binder) collect(p *ir.Program) {
	vars := map[*ir.Var]bool{}
	objects := map[*ir.Object]bool{}
	var walk func(e *ir.Expr)
	walk = func(e *ir.Expr) {
		if e == nil {
			return
		}
		if e.Var != nil {
			vars[e.Var] = true
		}
		if e.Object != nil {
			objects[e.Object] = true
		}
		for _, a := range e.Args {
			walk(a)
		}
	}
	var object func(o *ir.Object)
	object = func(o *ir.Object) {
		if o == nil || objects[o] {
			return
		}
		objects[o] = true
		for _, k := range o.Keys {
			walk(k.Expr)
		}
		object(o.Implementation)
		object(o.Direct)
	}
	for _, in := range p.Code {
		for _, d := range in.Defs {
			vars[d.Var] = true
		}
		for _, a := range in.Args {
			walk(a)
		}
		walk(in.Index)
		walk(in.Base)
		walk(in.Max)
		object(in.Object)
	}
	for o := range b.kept {
		object(o)
	}
	for _, o := range b.objects {
		if o.Direct != nil && objects[o.Direct] {
			objects[o] = true
		}
	}
	for _, v := range b.vars {
		if vars[v] {
			v.ID = len(p.Vars)
			p.Vars = append(p.Vars, v)
		}
	}
	for _, o := range b.objects {
		if objects[o] {
			o.ID = len(p.Objects)
			p.Objects = append(p.Objects, o)
		}
	}
}
