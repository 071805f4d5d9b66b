package frontend

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nicprof/p4"
	"nicprof/p4/ir"
)

// parse reads a v1model program that is the shared headers and parser around an
// ingress: what it declares, and what it applies.
func parse(t *testing.T, metadata, locals, apply string) *ir.Program {
	t.Helper()
	src := "#include <core.p4>\n#include <v1model.p4>\n" + metadata + "\n#include \"inet.p4\"\n" +
		"control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {\n" +
		locals + "\napply {\n" + apply + "\n} }\n" +
		"V1Switch(TheParser(), TheVerify(), I(), TheEgress(), TheCompute(), TheDeparser()) main;\n"
	p, err := p4.Parse("testdata/known.p4", []byte(src), p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// For each shape of an index whether traffic can be divided by its group. Where
// not, a warning tells of FlowGroupID.
func TestDivisible(t *testing.T) {
	const meta = "struct metadata_t { bit<32> i; }"
	for _, c := range []struct {
		name, locals, apply string
		why                 string // "" when it can be divided
	}{
		{"field", "", "r.read(v, hdr.ipv4.srcAddr & 1023);", ""},
		{"shift and join", "", "r.read(v, (bit<32>)(hdr.ipv4.srcAddr[4:0] ++ hdr.ipv4.dstAddr[4:0]));", ""},
		{"or of parts", "", "r.read(v, ((bit<32>)hdr.ipv4.ttl << 2) | (bit<32>)hdr.ipv4.protocol[1:0]);", ""},
		{"constant added", "", "r.read(v, (hdr.ipv4.srcAddr & 511) + 512);", ""},
		{"constant xor", "", "r.read(v, (hdr.ipv4.srcAddr ^ 85) & 1023);", ""},
		{"mask with holes", "", "r.read(v, hdr.ipv4.srcAddr & 0x305);", ""},
		{"upper bits of a sum", "", "r.read(v, ((hdr.ipv4.srcAddr + 1) >> 8) & 1023);", "may give one +"},
		{"sum", "", "r.read(v, ((bit<32>)hdr.ipv4.ttl) + ((bit<32>)hdr.ipv4.protocol));", "may give one +"},
		{"xor", "", "r.read(v, ((bit<32>)hdr.ipv4.ttl) ^ ((bit<32>)hdr.ipv4.protocol));", "may give one ^"},
		{"saturation", "", "r.read(v, (bit<32>)(hdr.ipv4.ttl |+| 200));", "may give one |+|"},
		{"choice of slices", "", "if (hdr.ipv4.ttl == 1) { meta.i = (bit<32>)hdr.ipv4.srcAddr[7:0]; } else { meta.i = (bit<32>)hdr.ipv4.srcAddr[15:8]; } r.read(v, meta.i);", "one of several places"},
		{"same on both ways", "", "if (hdr.ipv4.ttl == 1) { meta.i = hdr.ipv4.srcAddr & 7; } else { meta.i = (bit<32>)hdr.ipv4.srcAddr[2:0]; } r.read(v, meta.i);", ""},
		{"not on all ways", "", "if (hdr.ipv4.ttl == 1) { meta.i = hdr.ipv4.srcAddr & 7; } r.read(v, meta.i);", "not written on all ways"},
		{"under one condition twice", "", "if (hdr.tcp.isValid()) { meta.i = hdr.ipv4.srcAddr & 7; } v = 1; if (hdr.tcp.isValid()) { r.read(v, meta.i); }", ""},
		{"rewritten", "", "hdr.ipv4.srcAddr = 5; r.read(v, hdr.ipv4.srcAddr & 7);", "all packets touch one element"},
		{"two mappings", "", "r.read(v, hdr.ipv4.srcAddr & 7); r.write((hdr.ipv4.srcAddr + 1) & 7, 1);", "by different bits"},
		{"exchanged", "", "r.read(v, (bit<32>)(hdr.ipv4.srcAddr[4:0] ++ hdr.ipv4.dstAddr[4:0])); r.write((bit<32>)(hdr.ipv4.dstAddr[4:0] ++ hdr.ipv4.srcAddr[4:0]), 1);", "by different bits"},
		{"entry's number", "action set(bit<32> n) { meta.i = n; } table t { key = { hdr.ipv4.dstAddr: exact; } actions = { set; } size = 16; }",
			"t.apply(); r.read(v, meta.i);", "entries of t supply its index"},
		{"lpm entry's number", "action set(bit<32> n) { meta.i = n; } table t { key = { hdr.ipv4.dstAddr: lpm; } actions = { set; } size = 16; }",
			"t.apply(); r.read(v, meta.i);", "entries of t supply its index"},
		{"marked number", "action set(FlowGroupID n) { id = n; } table t { key = { hdr.ipv4.dstAddr: lpm; } actions = { set; } size = 16; }",
			"t.apply(); r.read(v, (bit<32>)id);", ""},
		{"marked sum", "", "id = (FlowGroupID)(((bit<16>)hdr.ipv4.ttl) + ((bit<16>)hdr.ipv4.protocol)); r.read(v, (bit<32>)id);", ""},
		{"part of a mark", "", "id = (FlowGroupID)(((bit<16>)hdr.ipv4.ttl) + ((bit<16>)hdr.ipv4.protocol)); r.read(v, (bit<32>)((bit<16>)id)[7:0]);", "bits of I.id are used alone"},
		{"beyond", "", "r.read(v, hdr.ipv4.srcAddr & 1024);", "reaches beyond"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parse(t, "type bit<16> FlowGroupID;\n"+meta, "register<bit<32>>(1024) r; bit<32> v = 0; FlowGroupID id;\n"+c.locals, c.apply)
			r := analyse(t, p, "")
			var b *Block
			for _, o := range p.Objects {
				if o.Name == "r" {
					b = r.Block(o)
				}
			}
			if c.why == "" && !b.Partitionable || !strings.Contains(b.Why, c.why) {
				t.Errorf("divisible: %t (%s), want %q", b.Partitionable, b.Why, c.why)
			}
			warned := false
			for _, w := range r.Warnings {
				warned = warned || strings.Contains(w.Msg, "FlowGroupID") && strings.Contains(w.Msg, b.Why)
			}
			if plain := b.Partitionable || c.name == "rewritten" || c.name == "beyond"; warned == plain {
				t.Errorf("warnings %v of %s", r.Warnings, b.Why)
			}
		})
	}
}

// A direct counter's elements are its table's entries.
func TestDirectOfPrefixes(t *testing.T) {
	for match, want := range map[string]string{"exact": "", "lpm": "matches many values"} {
		r := analyse(t, parse(t, "struct metadata_t { }", "direct_counter(CounterType.packets) c; table t { key = { hdr.ipv4.dstAddr: "+match+"; } actions = { NoAction; } size = 16; counters = c; }", "t.apply();"), "")
		for _, b := range r.Blocks {
			if b.Partitionable != (want == "") || !strings.Contains(b.Why, want) {
				t.Errorf("%s: divisible %t (%s), want %q", match, b.Partitionable, b.Why, want)
			}
		}
	}
}

// machine executes a program without loops on one packet and keeps the elements
// that it touches.
type machine struct {
	p       *ir.Program
	known   map[string]string
	touched []string
}

func (m *machine) run(t *rapid.T) {
	for i := 0; m.p.Code[i].Op != ir.End; {
		in := m.p.Code[i]
		next := 0
		switch in.Op {
		case ir.Assign:
			d := in.Defs[0]
			v := Eval(in.Args[0], m.known)
			if v == nil {
				t.Fatalf("no value of %s", Text(in.Args[0]))
			}
			old, _ := new(big.Int).SetString(m.known[d.Var.Name], 10)
			for k := d.Lo; k <= d.Hi; k++ {
				old.SetBit(old, k, v.Bit(k-d.Lo))
			}
			m.known[d.Var.Name] = old.String()
		case ir.Branch:
			if Eval(in.Args[0], m.known).Sign() == 0 {
				next = 1
			}
		case ir.RegRead, ir.RegWrite:
			m.touched = append(m.touched, Eval(in.Index, m.known).String())
		}
		i = in.Succ[next].To
	}
}

// Whatever the program, an element that two packets touch is of one flow group
// when the block can be divided, and packets of one group that touch as many
// elements touch the same.
func TestGroupsAreSound(t *testing.T) {
	divided := 0
	rapid.Check(t, func(t *rapid.T) {
		b := newBuilder()
		fields := []*ir.Var{b.v("hdr.h.a", 3), b.v("hdr.h.b", 3)}
		metas := []*ir.Var{b.v("meta.x", 6), b.v("meta.y", 6)}
		b.extract("h", "hdr.h.a", "hdr.h.b")
		sized := func(o ir.ExprOp, w int, args ...*ir.Expr) *ir.Expr { return &ir.Expr{Op: o, Bits: w, Args: args} }
		constant := func(w int) *ir.Expr {
			return &ir.Expr{Op: ir.Const, Bits: w, Value: big.NewInt(rapid.Int64Range(0, 1<<w-1).Draw(t, "constant"))}
		}
		var draw func(w, depth int) *ir.Expr
		draw = func(w, depth int) *ir.Expr {
			k := rapid.IntRange(0, 11).Draw(t, "operator")
			if depth == 0 {
				k %= 3
			}
			switch k {
			case 0, 1:
				f := fields[k]
				return sized(ir.Cast, w, &ir.Expr{Op: ir.Use, Var: f, Hi: f.Bits - 1, Bits: f.Bits})
			case 2:
				m := rapid.SampledFrom(metas).Draw(t, "metadata")
				lo := rapid.IntRange(0, m.Bits-1).Draw(t, "lo")
				hi := rapid.IntRange(lo, m.Bits-1).Draw(t, "hi")
				return sized(ir.Cast, w, &ir.Expr{Op: ir.Use, Var: m, Hi: hi, Lo: lo, Bits: hi - lo + 1})
			case 3, 4, 5:
				return sized(rapid.SampledFrom([]ir.ExprOp{"&", "|", "^", "+", "-"}).Draw(t, "with"), w, draw(w, depth-1), constant(w))
			case 6:
				return sized(rapid.SampledFrom([]ir.ExprOp{"&", "|", "^", "+", "-"}).Draw(t, "of"), w, draw(w, depth-1), draw(w, depth-1))
			case 7:
				return sized(rapid.SampledFrom([]ir.ExprOp{"<<", ">>"}).Draw(t, "shift"), w, draw(w, depth-1), &ir.Expr{Op: ir.Const, Bits: 8, Value: big.NewInt(rapid.Int64Range(0, int64(w-1)).Draw(t, "by"))})
			case 8:
				return sized("~", w, draw(w, depth-1))
			case 9:
				up := rapid.IntRange(0, 2).Draw(t, "up")
				return &ir.Expr{Op: ir.Slice, Bits: w, Hi: w + up - 1, Lo: up, Args: []*ir.Expr{draw(w+up, depth-1)}}
			case 10:
				if w < 2 {
					return draw(w, depth-1)
				}
				low := rapid.IntRange(1, w-1).Draw(t, "low")
				return sized(ir.Concat, w, draw(w-low, depth-1), draw(low, depth-1))
			}
			c := &ir.Expr{Op: "==", Bits: 1, Bool: true, Args: []*ir.Expr{draw(2, 0), constant(2)}}
			return sized(ir.Mux, w, c, draw(w, depth-1), draw(w, depth-1))
		}
		cells := b.register("cells", 1<<6)
		var conditions []*ir.Expr
		condition := func() *ir.Expr {
			if len(conditions) == 0 || rapid.Bool().Draw(t, "new condition") {
				conditions = append(conditions, &ir.Expr{Op: "==", Bits: 1, Bool: true, Args: []*ir.Expr{draw(3, 0), constant(3)}})
			}
			return rapid.SampledFrom(conditions).Draw(t, "condition")
		}
		var statement func(depth int)
		statement = func(depth int) {
			switch k := rapid.IntRange(0, 5).Draw(t, "statement"); {
			case k <= 2:
				m := rapid.SampledFrom(metas).Draw(t, "to")
				d := ir.Def{Var: m, Hi: m.Bits - 1}
				if rapid.IntRange(0, 3).Draw(t, "whole") == 0 {
					d.Lo = rapid.IntRange(0, d.Hi).Draw(t, "to lo")
				}
				b.add(&ir.Instr{Op: ir.Assign, Defs: []ir.Def{d}, Args: []*ir.Expr{draw(d.Hi-d.Lo+1, 2)}})
			case k == 3 && depth > 0:
				b.cond(condition(), func() { statement(depth - 1) }, func() { statement(depth - 1) })
			case k == 4 && depth > 0:
				b.cond(condition(), func() { statement(depth - 1) }, nil)
			default:
				b.read("v", cells, draw(6, 2))
			}
		}
		for range rapid.IntRange(1, 5).Draw(t, "statements") {
			statement(2)
		}
		b.read("v", cells, draw(6, 2))
		p := b.done()
		r, err := Analyse(p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		block := r.Block(cells)
		if !block.Partitionable {
			return
		}
		divided++
		owner, elements := map[string]string{}, map[string]string{}
		for packet := range 1 << 6 {
			m := &machine{p: p, known: map[string]string{
				"hdr.h.a": fmt.Sprint(packet & 7), "hdr.h.b": fmt.Sprint(packet >> 3), "meta.x": "0", "meta.y": "0",
			}}
			group := ""
			for _, f := range block.Groups[0].Fields {
				group += fmt.Sprint(Eval(&ir.Expr{Op: ir.Use, Var: f.Var, Hi: f.Hi, Lo: f.Lo}, m.known), " ")
			}
			m.run(t)
			for _, e := range m.touched {
				if was, ok := owner[e]; ok && was != group {
					t.Errorf("element %s is of the groups %s and %s", e, was, group)
				}
				owner[e] = group
				if was, ok := elements[group]; ok && was != e {
					t.Errorf("group %s touches the elements %s and %s", group, was, e)
				}
				elements[group] = e
			}
		}
	})
	if divided < 5 {
		t.Errorf("only %d of the programs could be divided: too few to tell", divided)
	}
}
