package frontend

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"nicprof/p4/ir"
	"nicprof/program"
)

// Mix weighs the program's paths with the shares that a traffic's branches set
// (names as in Result.Branches; nil: all as assumed). The error is bad input: a
// share out of range, or for a branch that the program does not have.
func (r *Result) Mix(branches map[string]float64) (*Mix, error) {
	edges, err := r.shares(branches)
	if err != nil {
		return nil, err
	}
	w := newWalk(r, edges, r.fieldBranches())
	w.run()
	if w.cut { // the conditions are too many to keep apart
		w = newWalk(r, edges, nil)
		w.run()
	}
	m := &Mix{Result: r, Shares: branches, Paths: w.paths(), Visits: w.visits}
	m.Ways = w.ways()
	m.Warnings = w.warnings()
	for _, b := range r.Branches {
		if w.open[b] {
			m.Open = append(m.Open, b)
		}
	}
	for _, b := range r.Blocks {
		m.Blocks = append(m.Blocks, m.visit(b))
	}
	m.Stateless = m.rest()
	return m, nil
}

// visit sums up what packets do to a block.
func (m *Mix) visit(b *Block) Visit {
	r := m.Result
	v := Visit{Stateless: program.Stateless{}, Lock: r.locks[b]}
	for _, p := range m.Paths {
		if slices.Contains(p.Blocks, b.Index) {
			v.Share += p.Share
		}
	}
	if v.Share == 0 {
		return v
	}
	for _, in := range r.Program.Code {
		n := m.Visits[in.ID] / v.Share
		if n == 0 || !r.operates(in) || r.blockOf[in.Object] != b {
			continue
		}
		for _, a := range r.accesses(in) {
			a.PerVisit = n
			a.Locked = v.Lock != nil
			v.add(a)
		}
	}
	for _, i := range b.Instructions {
		if r.home[i] != b {
			continue
		}
		for kind, n := range operations(r.Program.Code[i]) {
			v.Stateless[kind] += n * m.Visits[i] / v.Share
		}
	}
	return v
}

// add joins accesses that differ in their number alone.
func (v *Visit) add(a Access) {
	for k := range v.Accesses {
		have := v.Accesses[k]
		have.PerVisit = a.PerVisit
		if have == a {
			v.Accesses[k].PerVisit += a.PerVisit
			return
		}
	}
	v.Accesses = append(v.Accesses, a)
}

// rest counts the stateless operations of the instructions that belong to no
// block.
func (m *Mix) rest() program.Stateless {
	n := program.Stateless{}
	for _, in := range m.Result.Program.Code {
		if m.Result.home[in.ID] != nil || m.Visits[in.ID] == 0 {
			continue
		}
		for kind, k := range operations(in) {
			n[kind] += k * m.Visits[in.ID]
		}
	}
	return n
}

// Program is what the NIC runs when the blocks that memory gives a memory are
// on it, all their traffic included; memory returns "" for a block that is on
// the host. Accesses of a lock's section, and locks, are those of a packet that
// visits the block; program.Lock has every packet take the lock.
func (m *Mix) Program(memory func(*Block) string) program.Program {
	p := program.Program{Name: m.Result.Program.Name, Stateless: maps.Clone(m.Stateless)}
	for _, b := range m.Result.Blocks {
		v := &m.Blocks[b.Index]
		mem := memory(b)
		if mem == "" || v.Share == 0 {
			continue
		}
		for kind, n := range v.Stateless {
			p.Stateless[kind] += n * v.Share
		}
		var section []program.Access
		for _, a := range v.Accesses {
			if a.Locked {
				section = append(section, a.In(mem, v.Share))
			} else {
				p.Accesses = append(p.Accesses, a.In(mem, v.Share))
			}
		}
		if v.Lock != nil {
			p.Locks = append(p.Locks, program.Lock{
				Name: b.Name, Elements: int(min(v.Lock.Elements, math.MaxInt32)), Hash: v.Lock.Hash, Section: section,
			})
		}
	}
	return p
}

// In is the access in a memory, of a program whose packets visit the block with
// this share.
func (a Access) In(memory string, share float64) program.Access {
	return program.Access{
		Memory: memory, Op: a.Op, Mode: a.Mode, Bytes: a.Bytes, PerPacket: a.PerVisit * share,
		Span: a.Span, Stride: a.Stride,
	}
}

// Bounds of a walk.
const (
	maxStates = 1024 // states kept at one instruction
	fewStates = 32   // states kept behind manySteps, in programs with thousands of branches
	manySteps = 200000
	maxRounds = 32   // times round a cycle
	maxPaths  = 1000 // paths reported
	leastMass = 1e-9
)

// walk follows packets through the program: at each instruction the states that
// they can be in, with their shares. A state is the blocks visited so far and
// what is known of the locations that later conditions test, so that one
// condition tested twice has one outcome.
type walk struct {
	r       *Result
	edges   map[*Branch][]chance
	fields  map[int][]*ir.Expr // branches that header fields decide
	visits  []float64
	at      []map[string]*state // by instruction
	next    []map[string]*state // of the next round
	steps   []step
	ids     map[step]int
	tests   []test
	testIDs map[test]int
	ends    map[end]weight
	facts   map[string]bool // texts of conditions and names of locations worth knowing
	uses    map[*ir.Var][]string
	live    []map[string]bool
	assumed map[string]bool
	open    map[*Branch]bool
	taken   int // steps

	// behindQueue tells, by stage, whether a packet that ingress dropped does not
	// come there.
	behindQueue []bool
	cut         bool
	late        float64
}

// step is a block visited after the steps before it; step 0 is the start.
type step struct{ before, block int }

// test is a way taken at a branch that header fields decide, after the tests
// before it; test 0 is the start.
type test struct{ before, instr, edge int }

// end is how a packet's way through the program ends.
type end struct {
	path    int
	test    int
	dropped bool
	host    string
}

// weight is how many packets: of all packets, and of those whose header fields
// lead there.
type weight struct{ mass, given float64 }

func (w weight) times(share float64) weight { return weight{w.mass * share, w.given * share} }
func (w weight) plus(o weight) weight       { return weight{w.mass + o.mass, w.given + o.given} }
func (w weight) most() float64              { return max(w.mass, w.given) }

type state struct {
	weight
	end   end
	known map[string]string // fact: value
}

func (s *state) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d %t %s", s.end.path, s.end.test, s.end.dropped, s.end.host)
	for _, k := range sortedKeys(s.known) {
		fmt.Fprintf(&b, "\n%s=%s", k, s.known[k])
	}
	return b.String()
}

func newWalk(r *Result, edges map[*Branch][]chance, fields map[int][]*ir.Expr) *walk {
	n := len(r.Program.Code)
	w := &walk{
		r: r, edges: edges, fields: fields, visits: make([]float64, n), at: make([]map[string]*state, n), next: make([]map[string]*state, n),
		steps: []step{{}}, ids: map[step]int{}, tests: []test{{}}, testIDs: map[test]int{}, ends: map[end]weight{},
		assumed: map[string]bool{}, open: map[*Branch]bool{},
	}
	w.behindQueue = []bool{false}
	for k, s := range r.Program.Stages {
		later := k > 0 && (w.behindQueue[k-1] || s.Kind == ir.Egress || s.Kind == ir.Parser)
		w.behindQueue = append(w.behindQueue[:k], later)
	}
	w.findFacts()
	return w
}

// findFacts finds what later conditions test, and where it is still to be
// tested.
func (w *walk) findFacts() {
	code := w.r.Program.Code
	w.facts, w.uses = map[string]bool{}, map[*ir.Var][]string{}
	interesting := map[*ir.Var]bool{}
	tests := make([]map[string]bool, len(code)) // by instruction: facts it tests
	watch := func(i int, e *ir.Expr) {
		if e.Op == ir.Const {
			return
		}
		text := Text(e)
		if tests[i] == nil {
			tests[i] = map[string]bool{}
		}
		tests[i][text] = true
		usesIn(e, func(v *ir.Var, _, _ int) {
			interesting[v] = true
			tests[i][v.Name] = true
			if !slices.Contains(w.uses[v], text) {
				w.uses[v] = append(w.uses[v], text)
			}
		})
	}
	for _, in := range code {
		if in.Op == ir.Branch || in.Op == ir.Switch {
			for _, a := range in.Args {
				watch(in.ID, a)
			}
		}
	}
	for changed := true; changed; { // copies to what is tested
		changed = false
		for _, in := range code {
			if in.Op == ir.Assign && interesting[in.Defs[0].Var] && tests[in.ID] == nil {
				watch(in.ID, in.Args[0])
				changed = changed || tests[in.ID] != nil
			}
		}
	}
	for _, t := range tests {
		maps.Copy(w.facts, t)
	}
	w.live = make([]map[string]bool, len(code))
	for changed := true; changed; {
		changed = false
		for _, i := range slices.Backward(w.r.flow.order) {
			live := map[string]bool{}
			for _, s := range code[i].Succ {
				maps.Copy(live, w.live[s.To])
			}
			for _, d := range code[i].Defs {
				if d.Lo == 0 && d.Hi == d.Var.Bits-1 && !d.May {
					delete(live, d.Var.Name)
				}
			}
			maps.Copy(live, tests[i])
			if len(live) != len(w.live[i]) {
				w.live[i], changed = live, true
			}
		}
	}
}

// run pushes all packets from the entry to the exit, a round for each time
// round a cycle.
func (w *walk) run() {
	start := &state{weight: weight{1, 1}, known: map[string]string{}}
	for _, v := range w.r.Program.Vars {
		zero := v.Kind == ir.Validity || v.Kind == ir.Metadata && w.r.Program.Arch == "v1model"
		if zero && w.facts[v.Name] {
			start.known[v.Name] = "0"
		}
	}
	w.put(w.at, 0, start)
	order := w.r.flow.order
	for range maxRounds {
		for _, i := range order {
			states := w.at[i]
			w.at[i] = nil
			for _, s := range w.bounded(states) {
				w.step(w.r.Program.Code[i], s)
			}
			if w.cut && w.fields != nil {
				return
			}
		}
		w.at, w.next = w.next, w.at
		if !slices.ContainsFunc(w.at, func(m map[string]*state) bool { return len(m) > 0 }) {
			return
		}
	}
	for _, states := range w.at {
		for _, s := range states {
			w.late += s.mass
		}
	}
}

// bounded returns the states in a fixed order: where there are too many, those
// that differ in what is known are joined, and then the heaviest stand for all.
func (w *walk) bounded(states map[string]*state) []*state {
	most := maxStates
	if w.taken > manySteps {
		most = fewStates
	}
	if len(states) > most {
		w.cut = true
		joined := map[string]*state{}
		for _, k := range sortedKeys(states) {
			s := states[k]
			s.known = map[string]string{}
			w.join(joined, s)
		}
		states = joined
	}
	out := make([]*state, 0, len(states))
	for _, k := range sortedKeys(states) {
		out = append(out, states[k])
	}
	if len(out) > most {
		slices.SortStableFunc(out, func(a, b *state) int { return cmp.Compare(b.mass, a.mass) })
		all, kept := 0.0, 0.0
		for k, s := range out {
			all += s.mass
			if k < most {
				kept += s.mass
			}
		}
		out = out[:most]
		for _, s := range out {
			s.weight = s.times(all / kept)
		}
	}
	return out
}

func (w *walk) join(to map[string]*state, s *state) {
	key := s.key()
	if have := to[key]; have != nil {
		have.weight = have.plus(s.weight)
		return
	}
	to[key] = s
}

// put brings a state to instruction i, without what nothing tests from there.
func (w *walk) put(at []map[string]*state, i int, s *state) {
	if s.most() < leastMass {
		w.late += s.mass
		return
	}
	for k := range s.known {
		if !w.live[i][k] {
			delete(s.known, k)
		}
	}
	if at[i] == nil {
		at[i] = map[string]*state{}
	}
	w.join(at[i], s)
}

// step executes an instruction in a state.
func (w *walk) step(in *ir.Instr, s *state) {
	if s.end.dropped && w.behindQueue[min(in.Stage, len(w.behindQueue)-1)] {
		w.ends[s.end] = w.ends[s.end].plus(s.weight) // nothing leaves the ingress pipeline
		return
	}
	w.visits[in.ID] += s.mass
	w.taken++
	if w.r.operates(in) {
		s.end.path = w.visit(s.end.path, w.r.blockOf[in.Object].Index)
	}
	if what := w.r.unsupportedAt[in.ID]; what != "" && s.end.host == "" {
		s.end.host = what
	}
	switch {
	case in.Op == ir.Drop:
		s.end.dropped = true
	case in.Op == ir.End:
		w.ends[s.end] = w.ends[s.end].plus(s.weight)
		return
	}
	w.define(in, s)
	if len(in.Succ) == 1 && in.Op != ir.Lookup {
		w.move(in, 0, s)
		return
	}
	w.part(in, s)
}

// visit is the path that goes on to a block.
func (w *walk) visit(path, block int) int {
	if path > 0 && w.steps[path].block == block {
		return path
	}
	next := step{path, block}
	id, ok := w.ids[next]
	if !ok {
		id = len(w.steps)
		w.steps = append(w.steps, next)
		w.ids[next] = id
	}
	return id
}

// move brings a state along an edge.
func (w *walk) move(in *ir.Instr, edge int, s *state) {
	to := in.Succ[edge].To
	back := w.r.flow.at[to] <= w.r.flow.at[in.ID]
	switch {
	case back:
		w.put(w.next, to, s)
	case len(w.r.flow.pred[to]) == 1 && s.most() >= leastMass:
		w.step(w.r.Program.Code[to], s) // nothing to join with
	default:
		w.put(w.at, to, s)
	}
}

// define forgets what an instruction overwrites and learns what it writes.
func (w *walk) define(in *ir.Instr, s *state) {
	value, ok := "", false
	switch in.Op {
	case ir.Assign:
		if v := eval(in.Args[0], s.known); v != nil {
			value, ok = v.String(), true
		}
	case ir.SetValid, ir.Extract:
		value = "1"
	case ir.SetInvalid:
		value = "0"
	}
	for _, d := range in.Defs {
		for _, text := range w.uses[d.Var] {
			delete(s.known, text)
		}
		delete(s.known, d.Var.Name)
		known := ok || value != "" && d.Var.Kind == ir.Validity
		if known && w.facts[d.Var.Name] && d.Lo == 0 && d.Hi == d.Var.Bits-1 && !d.May {
			s.known[d.Var.Name] = value
		}
		if in.Op == ir.Assign && d.Var.Kind == ir.Intrinsic {
			s.end.dropped = drops(d.Var.Name, eval(in.Args[0], s.known), s.end.dropped)
		}
	}
}

// drops tells whether a packet is dropped when a location of the architecture's is
// given a value, nil when that is not known: v1model's port takes a drop back,
// PSA and TNA have a flag.
func drops(location string, value *big.Int, before bool) bool {
	switch name := location[strings.LastIndex(location, ".")+1:]; {
	case name == "egress_spec":
		return false
	case (name == "drop" || name == "drop_ctl") && value != nil:
		return value.Bit(0) == 1
	}
	return before
}

// part splits a state at a branch.
func (w *walk) part(in *ir.Instr, s *state) {
	b := w.r.branchAt[in.ID]
	chances := w.edges[b]
	if in.Op == ir.Lookup {
		w.partLookup(in, s, chances)
		return
	}
	set := slices.ContainsFunc(chances[:len(in.Succ)], func(c chance) bool { return c.set })
	if k := w.decided(in, s); k >= 0 && !set {
		w.move(in, k, s)
		return
	}
	if s.mass > 0 {
		w.open[b] = true
		if !set {
			w.assumed[b.Arms[0].Name] = true
		}
	}
	for k, e := range in.Succ {
		t := &state{s.times(chances[k].share), s.end, maps.Clone(s.known)}
		if w.fields[in.ID] != nil {
			t.given = s.given
			t.end.test = w.tested(test{s.end.test, in.ID, k})
		}
		if t.most() == 0 {
			continue
		}
		if in.Op == ir.Branch {
			w.learn(in.Args[0], e.Label == "true", t.known)
		} else if _, exact := new(big.Int).SetString(e.Label, 10); exact && len(in.Args) == 1 {
			w.note(Text(in.Args[0]), e.Label, t.known)
		}
		w.move(in, k, t)
	}
}

// tested is the number of a test that follows others.
func (w *walk) tested(t test) int {
	id, ok := w.testIDs[t]
	if !ok {
		id = len(w.tests)
		w.tests = append(w.tests, t)
		w.testIDs[t] = id
	}
	return id
}

// partLookup splits a state by the action that the lookup finds, with the
// outcome that goes with it.
func (w *walk) partLookup(in *ir.Instr, s *state, chances []chance) {
	hit := chances[len(in.Succ)]
	if s.mass > 0 {
		w.open[w.r.branchAt[in.ID]] = true
		if !hit.set && len(in.Object.Keys) > 0 {
			w.assumed[w.r.Name(in.Object)+".hit"] = true
		}
	}
	var outcome *ir.Var
	for _, d := range in.Defs {
		if d.Var.Kind == ir.Hit && outcome == nil { // the action that ran comes behind it
			outcome = d.Var
		}
	}
	move := func(k int, share float64, value string) {
		if share <= 0 {
			return
		}
		t := &state{s.times(share), s.end, maps.Clone(s.known)}
		if outcome != nil && w.facts[outcome.Name] {
			t.known[outcome.Name] = value
		}
		w.move(in, k, t)
	}
	for k, e := range in.Succ {
		switch share := chances[k].share; {
		case len(in.Succ) == 1:
			move(k, hit.share, "1")
			move(k, 1-hit.share, "0")
		case e.Label == in.Object.DefaultAction:
			// The default action is a miss's, and a hit's for what its share
			// exceeds the misses.
			miss := min(share, 1-hit.share)
			move(k, miss, "0")
			move(k, share-miss, "1")
		default:
			move(k, share, "1")
		}
	}
}

// decided returns the edge that what is known of a state decides, -1 when it
// does not.
func (w *walk) decided(in *ir.Instr, s *state) int {
	if len(in.Args) != 1 {
		return -1
	}
	v := eval(in.Args[0], s.known)
	if v == nil {
		return -1
	}
	if in.Op == ir.Branch {
		label := "false"
		if v.Sign() != 0 {
			label = "true"
		}
		return slices.IndexFunc(in.Succ, func(e ir.Edge) bool { return e.Label == label })
	}
	for k, e := range in.Succ {
		if e.Label == v.String() {
			return k
		}
	}
	return -1
}

// paths lists the paths that packets took, by falling share, whatever their
// header fields.
func (w *walk) paths() []Path {
	all := map[end]float64{}
	total := 0.0
	for _, e := range w.ordered() {
		mass := w.ends[e].mass
		e.test = 0
		if mass > 0 {
			all[e] += mass
		}
	}
	var out []Path
	for e, mass := range all {
		out = append(out, w.path(e, mass))
	}
	slices.SortFunc(out, func(a, b Path) int { return cmp.Or(cmp.Compare(b.Share, a.Share), comparePaths(a, b)) })
	if len(out) > maxPaths {
		out, w.cut = out[:maxPaths], true
	}
	for _, p := range out {
		total += p.Share
	}
	if total == 0 {
		return nil
	}
	for i := range w.visits { // per packet that the paths are of
		w.visits[i] /= total
	}
	for i := range out {
		out[i].Share /= total
	}
	return out
}

// ordered lists how packets ended, in an order of its own.
func (w *walk) ordered() []end {
	all := slices.Collect(maps.Keys(w.ends))
	slices.SortFunc(all, func(a, b end) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.test, b.test), strings.Compare(a.host, b.host), cmp.Compare(number(a.dropped), number(b.dropped)))
	})
	return all
}

// path is the path that ends so.
func (w *walk) path(e end, share float64) Path {
	p := Path{Share: share, Dropped: e.dropped, Host: e.host, Blocks: []int{}}
	for s := e.path; s > 0; s = w.steps[s].before {
		p.Blocks = append(p.Blocks, w.steps[s].block)
	}
	slices.Reverse(p.Blocks)
	return p
}

func comparePaths(a, b Path) int {
	return cmp.Or(slices.Compare(a.Blocks, b.Blocks), strings.Compare(a.Host, b.Host), cmp.Compare(number(a.Dropped), number(b.Dropped)))
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ways lists the paths told apart by header fields, those without chance among
// them, in the order in which the walk found their conditions.
func (w *walk) ways() []Way {
	total := 0.0
	for _, e := range w.ordered() {
		total += w.ends[e].mass
	}
	var out []Way
	for _, e := range w.ordered() {
		x := w.ends[e]
		way := Way{Path: w.path(e, x.mass/total), Given: x.given}
		for t := e.test; t > 0; t = w.tests[t].before {
			in := w.r.Program.Code[w.tests[t].instr]
			b := w.r.branchAt[in.ID]
			arm := slices.IndexFunc(b.Arms, func(a Arm) bool { return a.Label == in.Succ[w.tests[t].edge].Label })
			way.Conditions = append(way.Conditions, Condition{
				Branch: b, Arm: arm, Chance: w.edges[b][w.tests[t].edge].share, in: in, args: w.fields[in.ID],
			})
		}
		slices.Reverse(way.Conditions)
		out = append(out, way)
	}
	return out
}

// warnings say what the shares rest on.
func (w *walk) warnings() []string {
	var out []string
	if names := sortedKeys(w.assumed); len(names) > 0 {
		const most = 8
		more := ""
		if len(names) > most {
			more = fmt.Sprintf(" and %d more", len(names)-most)
			names = names[:most]
		}
		out = append(out, fmt.Sprintf("assumed shares (hits 1, else evenly): %s%s; set them in the traffic's branches", strings.Join(names, ", "), more))
	}
	if w.cut {
		out = append(out, "too many combinations of branches: the rarest are left out of the paths")
	}
	if w.late > 1e-6 {
		out = append(out, fmt.Sprintf("%.2g of the packets are still in a loop after %d rounds and are left out", w.late, maxRounds))
	}
	return out
}
