package frontend

import (
	"slices"

	"nicprof/p4/ir"
	"nicprof/program"
)

// Sizes of what an NFP keeps for an object, bytes. Its registers are arrays of
// 32-bit words, its counters are 64 bits wide. A meter is two token buckets and
// the time of the last packet, which is our layout.
const (
	wordBytes    = 4
	counterBytes = 8
	meterBytes   = 16
)

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// elementBytes is the memory of one element of an object.
func elementBytes(o *ir.Object) int64 {
	switch o.Kind {
	case ir.Counter:
		return counterBytes * int64(units(o))
	case ir.Meter:
		return meterBytes
	}
	n := EntryBits(o)
	if o.Implementation != nil {
		n += o.Implementation.Bits
	}
	return roundUp(max(1, (int64(n)+7)/8), wordBytes)
}

// EntryBits is the width of an element: of a table's entry the keys, the action
// data and the action's number.
func EntryBits(o *ir.Object) int {
	n := o.Bits
	for _, k := range o.Keys {
		n += k.Bits
	}
	return n
}

// units is how many counters a counter's element is.
func units(o *ir.Object) int {
	if o.Unit == "both" || o.Unit == "packets_and_bytes" {
		return 2
	}
	return 1
}

// elements is the number of elements that the program declares; a direct
// object has those of its table.
func elements(o *ir.Object) int64 {
	switch {
	case o.Direct != nil:
		return elements(o.Direct)
	case o.Kind == ir.Table && o.ConstEntries:
		return int64(o.Entries)
	}
	return o.Elements
}

// measure fills in the sizes of a block.
func (r *Result) measure(b *Block) {
	for _, o := range b.Objects {
		b.Elements = max(b.Elements, elements(o))
		b.ElementBytes += elementBytes(o)
		b.Bytes += elements(o) * elementBytes(o)
	}
}

// operates tells whether an instruction is an operation on a block's object.
func (r *Result) operates(in *ir.Instr) bool {
	return in.Object != nil && r.blockOf[in.Object] != nil && (reads(in) || writes(in))
}

// accesses lists what an instruction does to its object's memory, PerVisit being
// once. A read that is half of an atomic addition stands for both halves.
func (r *Result) accesses(in *ir.Instr) []Access {
	o := in.Object
	a := Access{Object: o, Mode: program.Atomic, Bytes: int(elementBytes(o)), PerVisit: 1, Span: elements(o), Stride: elementBytes(o)}
	as := func(ops ...program.Op) []Access {
		var out []Access
		for _, op := range ops {
			a.Op = op
			out = append(out, a)
		}
		return out
	}
	switch {
	case o.Kind == ir.Counter:
		a.Bytes = counterBytes
		out := as(program.Add)
		if units(o) == 2 {
			out = append(out, out[0])
		}
		return out
	case in.Op == ir.RegRead && r.added[in.ID]:
		return as(program.Add)
	case in.Op == ir.RegRead:
		return as(program.Read)
	case in.Op == ir.RegWrite && r.added[in.ID]:
		return nil
	case in.Op == ir.RegWrite:
		return as(program.Write)
	case in.Op == ir.Lookup:
		a.Mode = program.Bulk
		return as(program.Read)
	case in.Op == ir.Insert:
		a.Mode = program.Bulk
		return as(program.Write)
	}
	return as(program.Read, program.Write) // meter, extern
}

// findAdditions finds the reads and writes that one atomic addition does: the
// value read, plus something that does not depend on it, is written back to the
// same index, whatever the value was. The memory engines add in 32 and 64 bits
// and return the value.
func (r *Result) findAdditions() {
	r.added = map[int]bool{}
	for _, w := range r.Program.Code {
		if w.Op != ir.RegWrite || w.Object.Bits != 32 && w.Object.Bits != 64 {
			continue
		}
		read := r.addend(w)
		if read == nil {
			continue
		}
		follows := r.computedFrom([]int{read.ID})
		decided := slices.ContainsFunc(r.flow.control[w.ID], func(g gate) bool { return follows.has(g.instr) })
		if !decided {
			r.added[read.ID], r.added[w.ID] = true, true
		}
	}
}

// addend returns the read of the object of w whose value w adds to, nil when
// it writes something else.
func (r *Result) addend(w *ir.Instr) *ir.Instr {
	e, at := w.Args[0], w.ID
	for e.Op == ir.Use || e.Op == ir.Cast && width(e) == width(e.Args[0]) {
		if e.Op == ir.Cast {
			e = e.Args[0]
			continue
		}
		defs := r.flow.reaching(at, e.Var, e.Hi, e.Lo)
		if len(defs) != 1 || defs[0] == entry || r.Program.Code[defs[0]].Op != ir.Assign {
			return nil
		}
		at = defs[0]
		in := r.Program.Code[at]
		if d := in.Defs[0]; d.Hi != e.Hi || d.Lo != e.Lo {
			return nil
		}
		e = in.Args[0]
	}
	if e.Op != "+" && e.Op != "|+|" && e.Op != "-" || len(e.Args) != 2 {
		return nil
	}
	for k, a := range e.Args {
		if a.Op != ir.Use || e.Op == "-" && k == 1 {
			continue
		}
		defs := r.flow.reaching(at, a.Var, a.Hi, a.Lo)
		if len(defs) != 1 || defs[0] == entry {
			continue
		}
		read := r.Program.Code[defs[0]]
		if read.Op != ir.RegRead || read.Object != w.Object || !r.sameValue(read.Index, read.ID, w.Index, w.ID) {
			continue
		}
		follows := r.computedFrom([]int{read.ID})
		depends := false
		usesIn(e.Args[1-k], func(v *ir.Var, hi, lo int) {
			for _, d := range r.flow.reaching(at, v, hi, lo) {
				depends = depends || d == read.ID || d != entry && follows.has(d)
			}
		})
		if !depends {
			return read
		}
	}
	return nil
}

// sameValue tells whether two expressions are the same in form and in the
// definitions of what they use.
func (r *Result) sameValue(a *ir.Expr, i int, b *ir.Expr, j int) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Op != b.Op || len(a.Args) != len(b.Args) || a.Hi != b.Hi || a.Lo != b.Lo || a.Var != b.Var || a.Object != b.Object {
		return false
	}
	switch a.Op {
	case ir.Const:
		return a.Value.Cmp(b.Value) == 0
	case ir.Any, ir.Lookahead:
		return false
	case ir.Use:
		return slices.Equal(r.flow.reaching(i, a.Var, a.Hi, a.Lo), r.flow.reaching(j, b.Var, b.Hi, b.Lo))
	}
	for k := range a.Args {
		if !r.sameValue(a.Args[k], i, b.Args[k], j) {
			return false
		}
	}
	return true
}

// lock returns the lock that a block needs on an NFP, whose cores run many
// packets at once: where a write follows from a read, unless one atomic
// addition does both, and where an @atomic region holds several operations.
func (r *Result) lock(b *Block) *Lock {
	why := r.whyLock(b)
	if why == "" {
		return nil
	}
	l := &Lock{Elements: 1, Why: why}
	if len(b.Groups) > 0 {
		l.Hash = b.Groups[0].Random != ""
	}
	if len(b.Groups) == 1 && len(b.Groups[0].Fields) == 0 && b.Groups[0].Random == "" {
		return l
	}
	if len(b.Objects) == 1 || len(b.Groups) == 1 {
		l.Elements = max(1, b.Elements)
		for _, o := range b.Objects {
			l.Elements = min(l.Elements, max(1, elements(o)))
		}
	}
	return l
}

func (r *Result) whyLock(b *Block) string {
	code := r.Program.Code
	in := map[int]int{} // operations on the block by @atomic region
	for _, read := range code {
		if read.Object == nil || r.blockOf[read.Object] != b || read.Object.Kind == ir.Table {
			continue
		}
		if read.Op == ir.MeterExec {
			return "a meter's bucket is read and written"
		}
		if read.Atomic > 0 && !r.added[read.ID] {
			if in[read.Atomic]++; in[read.Atomic] > 1 {
				return "an @atomic region holds several operations"
			}
		}
		if !reads(read) {
			continue
		}
		seen := reach(len(code), []int{read.ID}, r.deps.data, r.deps.control)
		for _, w := range code {
			if writes(w) && w.Object != nil && r.blockOf[w.Object] == b && seen.has(w.ID) && !(r.added[w.ID] && r.added[read.ID] && w.Object == read.Object) {
				return "what is written follows from what was read"
			}
		}
	}
	return ""
}

// operations counts the stateless operations of an instruction by kind.
// Extracting and emitting headers is the base program's.
func operations(in *ir.Instr) program.Stateless {
	n := program.Stateless{}
	for _, a := range in.Args {
		countOps(a, n)
	}
	countOps(in.Index, n)
	switch in.Op {
	case ir.Assign:
		n[program.ALU]++ // the move
	case ir.Branch, ir.Switch:
		n[program.ALU]++ // the jump
	case ir.HashOp:
		if in.Algorithm == "identity" {
			n[program.ALU]++
		} else {
			n[program.Hash]++
		}
		if in.Max != nil && !powerOfTwo(in.Max) {
			n[program.Modulo]++
		}
	case ir.Checksum:
		n[program.Checksum]++
	case ir.SetValid, ir.SetInvalid:
		n[program.Header]++
	case ir.Lookup:
		n[program.Hash]++ // of the key
	}
	return n
}

func powerOfTwo(e *ir.Expr) bool {
	return e.Op == ir.Const && e.Value != nil && e.Value.Sign() > 0 && e.Value.TrailingZeroBits() == uint(e.Value.BitLen()-1)
}

// countOps counts the operators of an expression. Bits that are only taken out
// of a word, or put beside others, are free: an NFP's instructions shift and
// mask their operands.
func countOps(e *ir.Expr, n program.Stateless) {
	if e == nil {
		return
	}
	switch e.Op {
	case ir.Const, ir.Use, ir.Slice, ir.Cast, ir.Concat, ir.Any, ir.Lookahead:
	case "*":
		n[program.Multiply]++
	case "/", "%":
		n[program.Modulo]++
	default:
		n[program.ALU]++
	}
	for _, a := range e.Args {
		countOps(a, n)
	}
}
