package frontend

import (
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strings"

	"nicprof/p4/ir"
	"nicprof/p4/source"
)

// tableDefault is the number of entries that nfp4build gives a table without a
// size (option --nfirc_default_table_size as Cora's build sets it).
const tableDefault = 65536

// known lists, by name or method, calls that an NFP's P4 firmware has, those that
// only affect what the host or a log is told, and those of other architectures
// that are a move or a test of the parser's or of metadata.
var known = []string{
	"digest", "clone", "clone3", "clone_preserving_field_list", "clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress",
	"truncate", "assert", "assume", "log_msg", "no_op", "exit", "verify", "advance", "push_front", "pop_front",
	"set_multicast_group", "multicast", "send_to_port", "mark_to_drop", "drop_packet", "pack", "emit",
	"length", "port_metadata_unpack", "sizeInBits", "sizeInBytes", "min", "max", "invalidate", "is_validated",
	"psa_clone_i2e", "psa_clone_e2e", "psa_normal", "psa_resubmit", "psa_recirculate", "SelectByDirection",
	"set", "is_zero", "is_negative", "increment", "decrement", // of TNA's counter of the parser
}

// findUnsupported finds calls of externs that an NFP does not execute, and the
// blocks of such externs' instances.
func (r *Result) findUnsupported() {
	r.unsupportedAt = map[int]string{}
	for _, in := range r.Program.Code {
		if in.Op != ir.Extern || in.Object == nil && slices.Contains(known, in.Name[strings.LastIndex(in.Name, ".")+1:]) {
			continue
		}
		what := "extern " + in.Name
		if in.Object != nil {
			what = "extern " + r.names[in.Object] + "." + in.Name
			if b := r.blockOf[in.Object]; b != nil && in.Object.Kind == ir.Other {
				b.HostOnly = "extern " + r.names[in.Object]
			} else {
				continue
			}
		}
		r.unsupportedAt[in.ID] = what
		r.Unsupported = append(r.Unsupported, Unsupported{in.ID, what})
		r.warnf(in.Pos, "%s is none of an NFP's P4 firmware: packets that come here have to visit the host", what)
	}
}

// warnf adds a warning once.
func (r *Result) warnf(pos source.Pos, format string, a ...any) {
	m := &source.Message{Pos: pos, Msg: fmt.Sprintf(format, a...)}
	if !slices.ContainsFunc(r.Warnings, func(o *source.Message) bool { return o.Pos == m.Pos && o.Msg == m.Msg }) {
		r.Warnings = append(r.Warnings, m)
	}
}

// warn collects what someone who brings the program onto an NFP wants to know.
func (r *Result) warn() {
	for _, in := range r.Program.Code {
		r.warnIndex(in)
	}
	for _, a := range r.Program.Atomics {
		if a.Name == "" {
			r.warnf(a.Pos, "nfp4build ignores @atomic: the operations are not one without a lock")
		}
	}
	r.warnFlowCache()
	r.warnAgain()
	for _, o := range r.Program.Objects {
		if o.Kind == ir.Table && !o.SizeDeclared && !o.ConstEntries && len(o.Keys) > 0 {
			r.warnf(o.Pos, "table %s declares no size; nfp4build then makes room for %d entries", r.Name(o), tableDefault)
		}
	}
	r.findLocks()
}

// findLocks decides which blocks need locks, and gives each instruction's
// stateless operations to the first block that holds it.
func (r *Result) findLocks() {
	r.findAdditions()
	r.locks, r.home = map[*Block]*Lock{}, map[int]*Block{}
	for _, b := range r.Blocks {
		r.locks[b] = r.lock(b)
		for _, i := range b.Instructions {
			if r.home[i] == nil {
				r.home[i] = b
			}
			if in := r.Program.Code[i]; r.locks[b] != nil && in.Object != nil && r.blockOf[in.Object] == b {
				delete(r.added, i) // inside the lock the halves stay apart
			}
		}
	}
}

// warnIndex tells of an index that reaches beyond its register.
func (r *Result) warnIndex(in *ir.Instr) {
	o := in.Object
	if in.Index == nil || o == nil || elements(o) == 0 {
		return
	}
	size := big.NewInt(elements(o))
	if c := in.Index; c.Op == ir.Const && c.Value != nil {
		told := slices.ContainsFunc(r.Program.Warnings, func(m *source.Message) bool { // by the reader
			return m.Pos == in.Pos && strings.Contains(m.Msg, "index "+c.Value.String())
		})
		if c.Value.Cmp(size) >= 0 && !told {
			r.warnf(in.Pos, "index %s of %s, which has %s elements: expected 0 to %d", c.Value, r.Name(o), size, elements(o)-1)
		}
		return
	}
	if most := r.beyond(in); most != nil {
		r.warnf(in.Pos, "the index of %s reaches %s, but it has %s elements: expected 0 to %d", r.Name(o), most, size, elements(o)-1)
	}
}

// beyond is the highest value of an access's index where the object has no such
// element, else nil.
func (r *Result) beyond(in *ir.Instr) *big.Int {
	if in.Index == nil || in.Object == nil || elements(in.Object) == 0 {
		return nil
	}
	most := ranger{r: r, memo: map[traced]*big.Int{}}.most(in.Index, in.ID)
	if most == nil || most.Cmp(big.NewInt(elements(in.Object))) < 0 {
		return nil
	}
	return most
}

// ranger bounds values from above.
type ranger struct {
	r    *Result
	memo map[traced]*big.Int
}

func allOnes(bits int) *big.Int {
	one := big.NewInt(1)
	return new(big.Int).Sub(new(big.Int).Lsh(one, uint(bits)), one)
}

// most is the highest value of an expression at instruction i, nil when that is
// not the program's to say: what a table entry supplies is the control plane's.
func (g ranger) most(e *ir.Expr, i int) *big.Int {
	w := width(e)
	limit := func(v *big.Int) *big.Int {
		if top := allOnes(w); w > 0 && (v == nil || v.Cmp(top) > 0) {
			return top
		}
		return v
	}
	switch e.Op {
	case ir.Const:
		return e.Value
	case ir.Use:
		v := g.location(traced{i, e.Var, e.Hi, e.Lo})
		if v == nil {
			return nil
		}
		return limit(v)
	case ir.Cast:
		v := g.most(e.Args[0], i)
		if v == nil {
			return nil
		}
		return limit(v)
	case "&":
		a, b := g.most(e.Args[0], i), g.most(e.Args[1], i)
		if a == nil || b != nil && b.Cmp(a) < 0 {
			a = b
		}
		return a
	case "%":
		if m := e.Args[1]; m.Op == ir.Const && m.Value.Sign() > 0 {
			return new(big.Int).Sub(m.Value, big.NewInt(1))
		}
	case ">>":
		a := g.most(e.Args[0], i)
		if n := e.Args[1]; a != nil && n.Op == ir.Const && n.Value.IsInt64() {
			return new(big.Int).Rsh(a, uint(min(n.Value.Int64(), 1<<20)))
		}
	case "+":
		a, b := g.most(e.Args[0], i), g.most(e.Args[1], i)
		if a == nil || b == nil {
			return nil
		}
		return limit(new(big.Int).Add(a, b))
	case "|", "^":
		a, b := g.most(e.Args[0], i), g.most(e.Args[1], i)
		if a == nil || b == nil {
			return nil
		}
		return limit(allOnes(max(a.BitLen(), b.BitLen())))
	case "<<":
		a := g.most(e.Args[0], i)
		if n := e.Args[1]; a != nil && n.Op == ir.Const && n.Value.IsInt64() {
			return limit(new(big.Int).Lsh(a, uint(min(n.Value.Int64(), 1<<20))))
		}
	case ir.Mux:
		a, b := g.most(e.Args[1], i), g.most(e.Args[2], i)
		if a == nil || b == nil {
			return nil
		}
		if a.Cmp(b) < 0 {
			a = b
		}
		return limit(a)
	case ir.Any:
		return nil
	}
	return limit(nil)
}

// location is the highest value that definitions give bits of a location.
func (g ranger) location(at traced) *big.Int {
	if v, ok := g.memo[at]; ok {
		return v
	}
	g.memo[at] = new(big.Int) // what a cycle brings back adds nothing
	out := new(big.Int)
	for _, d := range g.r.flow.reaching(at.instr, at.v, at.hi, at.lo) {
		v := g.definition(d, at)
		if v == nil {
			out = nil
			break
		}
		if v.Cmp(out) > 0 {
			out = v
		}
	}
	g.memo[at] = out
	return out
}

func (g ranger) definition(d int, at traced) *big.Int {
	all := allOnes(at.hi - at.lo + 1)
	if d == entry {
		if at.v.Kind == ir.Metadata || at.v.Kind == ir.Local {
			return new(big.Int)
		}
		return all
	}
	switch in := g.r.Program.Code[d]; in.Op {
	case ir.Assign:
		if def := in.Defs[0]; def.Lo == at.lo && def.Hi == at.hi {
			return g.most(in.Args[0], d)
		}
	case ir.Lookup:
		return nil
	case ir.HashOp:
		if in.Max == nil {
			break
		}
		base, n := new(big.Int), g.most(in.Max, d)
		if in.Base != nil {
			base = g.most(in.Base, d)
		}
		if base == nil || n == nil {
			return nil
		}
		return new(big.Int).Sub(new(big.Int).Add(base, n), big.NewInt(1))
	}
	return all
}

// warnFlowCache tells of the ways that depend on a register: the firmware's
// flow cache remembers for each flow the actions that its first packet met.
func (r *Result) warnFlowCache() {
	var where []string
	var first source.Pos
	var registers []string
	for _, read := range r.Program.Code {
		if read.Op != ir.RegRead {
			continue
		}
		follows := r.computedFrom([]int{read.ID})
		for _, in := range r.Program.Code {
			if !follows.has(in.ID) || in.Op != ir.Branch && in.Op != ir.Switch && in.Op != ir.Lookup {
				continue
			}
			place := fmt.Sprintf("%s:%d", filepath.Base(in.Pos.File), in.Pos.Line)
			if !slices.Contains(where, place) {
				where = append(where, place)
			}
			if !slices.Contains(registers, r.Name(read.Object)) {
				registers = append(registers, r.Name(read.Object))
			}
			if !first.Known() {
				first = in.Pos
			}
		}
	}
	if len(where) > 0 {
		r.warnf(first, "the way of a packet depends on %s (%s): a flow cache would repeat the first packet's way; build with --disable-component flowcache",
			strings.Join(registers, ", "), strings.Join(where, ", "))
	}
}

// warnAgain tells of values that are assumed of packets which come a second time.
func (r *Result) warnAgain() {
	for _, in := range r.Program.Code {
		vars := r.flow.second[in.ID]
		if len(vars) == 0 {
			continue
		}
		const most = 4
		var names []string
		for _, v := range vars[:min(len(vars), most)] {
			names = append(names, v.Name)
		}
		if more := len(vars) - most; more > 0 {
			names = append(names, fmt.Sprintf("%d more", more))
		}
		r.warnf(in.Pos, "a packet may come again from here (%s): which values it then has of %s is not followed; any that the program gives them are taken as possible",
			in.Name, strings.Join(names, ", "))
	}
}
