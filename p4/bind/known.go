package bind

import (
	"fmt"
	"strings"

	"nicprof/p4/ir"
	"nicprof/p4/syntax"
)

// lowerings lowers the externs that the IR has instructions for. Each tells
// whether it could; what it could not is an Extern.
var lowerings map[string]func(*binder, *extern) (value, bool)

func init() {
	lowerings = map[string]func(*binder, *extern) (value, bool){
		"packet_in.extract":   extract,
		"packet_in.lookahead": lookahead,
		"packet_out.emit":     emit,
		"verify":              verify,
		"static_assert":       func(b *binder, c *extern) (value, bool) { return boolean(true), true },

		"register.read":       func(b *binder, c *extern) (value, bool) { return b.readInto(c, c.arg(0), c.at(1)) },
		"register.write":      func(b *binder, c *extern) (value, bool) { return b.write(c, c.at(0), c.arg(1)) },
		"Register.read":       func(b *binder, c *extern) (value, bool) { return b.readInto(c, nil, c.at(0)) },
		"Register.write":      func(b *binder, c *extern) (value, bool) { return b.write(c, c.at(0), c.arg(1)) },
		"DirectRegister.read": func(b *binder, c *extern) (value, bool) { return b.readInto(c, nil, nil) },
		"DirectRegister.write": func(b *binder, c *extern) (value, bool) {
			return b.write(c, nil, c.arg(0))
		},
		"RegisterAction.execute":       registerAction,
		"RegisterAction.execute_log":   registerAction,
		"DirectRegisterAction.execute": registerAction,

		"counter.count":          countOne,
		"Counter.count":          countOne,
		"CounterArray.increment": countOne,
		"CounterArray.add":       countOne,
		"direct_counter.count":   countDirect,
		"DirectCounter.count":    countDirect,
		"meter.execute_meter":    func(b *binder, c *extern) (value, bool) { return b.meter(c, c.at(0), c.arg(1), nil) },
		"direct_meter.read":      func(b *binder, c *extern) (value, bool) { return b.meter(c, nil, c.arg(0), nil) },
		"Meter.execute": func(b *binder, c *extern) (value, bool) {
			return b.meter(c, c.at(0), b.temp(c.ret, "colour"), c.at(1))
		},
		"DirectMeter.execute": func(b *binder, c *extern) (value, bool) {
			return b.meter(c, nil, b.temp(c.ret, "colour"), c.at(0))
		},

		"hash":            v1hash,
		"Hash.get_hash":   getHash,
		"Hash.get":        getHash,
		"Checksum16.get":  func(b *binder, c *extern) (value, bool) { return b.hashed(c, c.arg(0), "csum16", nil, nil) },
		"random":          random,
		"Random.read":     random,
		"Random.get":      random,
		"verify_checksum": checksum, "verify_checksum_with_payload": checksum,
		"update_checksum": checksum, "update_checksum_with_payload": checksum,

		"SelectByDirection": byDirection,

		"mark_to_drop": drop,
		"drop_packet":  drop,
		"add_entry":    addEntry,
	}
	for _, unit := range []string{"Checksum", "InternetChecksum"} {
		for _, m := range []string{"clear", "add", "subtract", "update", "get", "get_state", "set_state", "verify", "subtract_all_and_deposit"} {
			lowerings[unit+"."+m] = checksumUnit
		}
	}
}

// extract lowers packet.extract: the header's fields and valid bit are defined
// from the packet.
func extract(b *binder, c *extern) (value, bool) {
	for _, h := range headers(c.arg(0)) {
		in := b.emit(ir.Extract, c.pos)
		in.Header, in.Type = h.name, name(h.t)
		in.Defs = append(defs(h), h.valid.loc...)
		if n := c.at(1); n != nil {
			in.Args = []*ir.Expr{n}
		}
		b.others(h, c.pos)
	}
	return nil, true
}

// lookahead is a value of packet bits ahead; nothing is consumed.
func lookahead(b *binder, c *extern) (value, bool) {
	total := bits(c.ret)
	at := 0
	return fill(c.ret, "", func(t typ, path string) *scalar {
		if strings.HasSuffix(path, ".$valid") {
			return boolean(true)
		}
		s := &scalar{t: t, e: &ir.Expr{Op: ir.Lookahead}}
		s.e.Bits, s.e.Signed, s.e.Bool = shape(t)
		s.e.Text = fmt.Sprintf("lookahead[%d:%d] of %d", at, at+s.e.Bits-1, total)
		at += s.e.Bits
		return s
	}), true
}

func emit(b *binder, c *extern) (value, bool) {
	for _, h := range headers(c.arg(0)) {
		in := b.emit(ir.Emit, c.pos)
		in.Header, in.Type = h.name, name(h.t)
		in.Args = append([]*ir.Expr{h.valid.e}, exprs(h)...)
	}
	return nil, true
}

// verify lowers a parser's verify: when the check fails, it rejects.
func verify(b *binder, c *extern) (value, bool) {
	if b.rejects == nil || c.at(0) == nil {
		return nil, false
	}
	yes, no := b.branch(c.at(0), c.pos)
	*b.rejects = append(*b.rejects, no...)
	b.open = yes
	return nil, true
}

// readInto emits the read of a register into a place, or a new one.
func (b *binder) readInto(c *extern, to value, index *ir.Expr) (value, bool) {
	if c.inst.obj == nil {
		return nil, false
	}
	if to == nil && !c.void {
		to = b.temp(c.ret, c.inst.name)
	}
	in := b.emit(ir.RegRead, c.pos)
	in.Object, in.Index, in.Defs = c.inst.obj, index, defs(to)
	return b.result(c, to), true
}

// result is the value of a call that has one.
func (b *binder) result(c *extern, v value) value {
	if c.void {
		return nil
	}
	return v
}

func (b *binder) write(c *extern, index *ir.Expr, v value) (value, bool) {
	if c.inst.obj == nil {
		return nil, false
	}
	in := b.emit(ir.RegWrite, c.pos)
	in.Object, in.Index, in.Args = c.inst.obj, index, exprs(v)
	return nil, true
}

// registerAction lowers execute of a RegisterAction: read, the apply method's
// body on the value, write, all in one atomic region.
func registerAction(b *binder, c *extern) (value, bool) {
	reg, _ := argument(c.inst.args, 0).(*instance)
	body := c.inst.method("apply")
	if reg == nil || reg.obj == nil || body == nil {
		return nil, false
	}
	index := c.at(0)
	if strings.HasSuffix(c.name, "_log") {
		index = &ir.Expr{Op: ir.Any, Text: "log position"}
		c.args = append([]value{nil}, c.args...)
	}
	outer := b.at.atomic
	b.atomic(c.inst.full, c.inst.pos)
	x := c.inst.t.(*externType)
	var t typ
	if len(x.args) > 0 {
		t = x.args[0]
	}
	cell := b.temp(t, reg.name)
	in := b.emit(ir.RegRead, c.pos)
	in.Object, in.Index, in.Defs = reg.obj, index, defs(cell)
	vals := make([]value, len(body.Params))
	var out value
	for k, p := range body.Params {
		if k == 0 {
			vals[k] = cell
			continue
		}
		vals[k] = b.temp(b.resolve(p.Type, c.inst.scope), p.Name)
		if out == nil {
			out = vals[k]
		}
	}
	b.abstractCall(c.inst, body, vals, c.pos)
	in = b.emit(ir.RegWrite, c.pos)
	in.Object, in.Index, in.Args = reg.obj, index, exprs(cell)
	for k := 1; k < len(c.args); k++ { // further results
		if to := c.arg(k); to != nil && k+1 < len(vals) {
			b.store(to, vals[k+1], c.pos)
		}
	}
	b.at.atomic = outer
	if out == nil && !c.void {
		out = b.temp(c.ret, "none")
	}
	return b.result(c, out), true
}

func countOne(b *binder, c *extern) (value, bool) {
	if c.inst.obj == nil {
		return nil, false
	}
	in := b.emit(ir.Count, c.pos)
	in.Object, in.Index = c.inst.obj, c.at(0)
	if n := c.at(1); n != nil {
		in.Args = []*ir.Expr{n}
	}
	return nil, true
}

func countDirect(b *binder, c *extern) (value, bool) {
	if c.inst.obj == nil {
		return nil, false
	}
	in := b.emit(ir.Count, c.pos)
	in.Object = c.inst.obj
	if n := c.at(0); n != nil {
		in.Args = []*ir.Expr{n}
	}
	return nil, true
}

func (b *binder) meter(c *extern, index *ir.Expr, to value, before *ir.Expr) (value, bool) {
	if c.inst.obj == nil {
		return nil, false
	}
	in := b.emit(ir.MeterExec, c.pos)
	in.Object, in.Index, in.Defs = c.inst.obj, index, defs(to)
	if before != nil {
		in.Args = []*ir.Expr{before}
	}
	return b.result(c, to), true
}

// algorithm names what an argument of a hash algorithm's enum means.
func algorithm(v value) string {
	s, ok := v.(*scalar)
	if !ok {
		return ""
	}
	return strings.ToLower(s.e.Text[strings.LastIndex(s.e.Text, ".")+1:])
}

// hashed emits a hash of data into a place; nil stands for a new one.
func (b *binder) hashed(c *extern, data value, algo string, base, max *ir.Expr) (value, bool) {
	to := b.temp(c.ret, "hash")
	in := b.emit(ir.HashOp, c.pos)
	in.Defs, in.Args, in.Algorithm, in.Base, in.Max = defs(to), exprs(data), algo, base, max
	return to, true
}

func v1hash(b *binder, c *extern) (value, bool) {
	in := b.emit(ir.HashOp, c.pos)
	in.Defs, in.Algorithm = defs(c.arg(0)), algorithm(c.arg(1))
	if len(c.args) >= 5 {
		in.Args, in.Base, in.Max = exprs(c.arg(3)), c.at(2), c.at(4)
	} else {
		in.Args = exprs(c.arg(2))
	}
	return nil, true
}

func getHash(b *binder, c *extern) (value, bool) {
	algo := algorithm(argument(c.inst.args, 0))
	if len(c.args) == 3 {
		return b.hashed(c, c.arg(1), algo, c.at(0), c.at(2))
	}
	return b.hashed(c, c.arg(0), algo, nil, nil)
}

func random(b *binder, c *extern) (value, bool) {
	in := b.emit(ir.Random, c.pos)
	in.Name = c.name
	if c.void {
		in.Defs = defs(c.arg(0))
		return nil, true
	}
	to := b.storage(c.ret, b.qualify("$random"), ir.Local, "", false)
	in.Defs = defs(to)
	return to, true
}

// checksum lowers v1model's checksum functions, which act under a condition.
func checksum(b *binder, c *extern) (value, bool) {
	if c.at(0) == nil {
		return nil, false
	}
	yes, no := b.branch(c.at(0), c.pos)
	b.open = yes
	in := b.emit(ir.Checksum, c.pos)
	in.Args, in.Algorithm = exprs(c.arg(1)), algorithm(c.arg(3))
	if strings.HasPrefix(c.name, "verify") {
		in.Name = "verify"
		in.Args = append(in.Args, exprs(c.arg(2))...)
	} else {
		in.Name = "update"
		in.Defs = defs(c.arg(2))
	}
	b.open = append(b.open, no...)
	return nil, true
}

// checksumUnit lowers the methods of an incremental checksum unit, whose
// running sum lives as long as the packet.
func checksumUnit(b *binder, c *extern) (value, bool) {
	i := c.inst
	if i.state == nil {
		i.state = b.storage(&bitsType{syntax.Bit, 16}, b.qualify(i.name+".$sum"), ir.Local, "", false)
	}
	sum := i.state.(*scalar)
	method := c.name[strings.LastIndex(c.name, ".")+1:]
	in := &ir.Instr{Op: ir.Checksum, Name: method, Algorithm: algorithm(argument(i.args, 0))}
	if in.Algorithm == "" {
		in.Algorithm = "csum16"
	}
	if !c.void {
		v := b.other(c, in)
		last := b.code[len(b.code)-1]
		last.Args = append(last.Args, sum.e)
		return v, true
	}
	b.other(c, in)
	last := b.code[len(b.code)-1]
	if method != "clear" && method != "set_state" {
		last.Args = append(last.Args, sum.e)
	}
	last.Defs = append(last.Defs, sum.loc...)
	return nil, true
}

// drop lowers mark_to_drop, with and without its argument, and drop_packet.
// v1model's writes egress_spec either way.
func drop(b *binder, c *extern) (value, bool) {
	in := b.emit(ir.Drop, c.pos)
	in.Name = c.name
	std, _ := c.arg(0).(*aggregate)
	if std == nil {
		std, _ = b.pool["standard_metadata_t"].(*aggregate)
	}
	if std != nil && c.name == "mark_to_drop" {
		if v, ok := std.field("egress_spec"); ok {
			in.Defs = defs(v)
		}
	}
	return nil, true
}

// byDirection lowers PNA's choice between two scalars: NET_TO_HOST, the first
// member, takes the first one.
func byDirection(b *binder, c *extern) (value, bool) {
	x, okX := c.arg(1).(*scalar)
	y, okY := c.arg(2).(*scalar)
	d, okD := c.arg(0).(*scalar)
	if !okX || !okY || !okD {
		return nil, false
	}
	in := &ir.Expr{Op: ir.Mux, Bits: x.e.Bits, Signed: x.e.Signed, Bool: x.e.Bool,
		Args: []*ir.Expr{fold("==", d, constant(bigInt(0), d.t), boolType).e, x.e, y.e}}
	return &scalar{t: x.t, e: in}, true
}

// addEntry lowers PNA's add_entry: the table whose action runs gets an entry
// for the key that missed.
func addEntry(b *binder, c *extern) (value, bool) {
	if b.inTable == nil {
		return nil, false
	}
	t := b.inTable.obj
	t.Insertion = true
	to := b.temp(c.ret, "added")
	in := b.emit(ir.Insert, c.pos)
	in.Object, in.Name, in.Defs = t, c.name, defs(to)
	for _, k := range t.Keys {
		in.Args = append(in.Args, k.Expr)
	}
	in.Args = append(in.Args, exprs(c.arg(1))...)
	return b.result(c, to), true
}
