package bind

import (
	"slices"
	"strings"
	"testing"

	"nicprof/p4/ir"
)

// expect compares the ingress code of a v1model program.
func expect(t *testing.T, locals, body, want string) {
	t.Helper()
	if got := code(lower(t, v1(locals, body))); got != strings.TrimSpace(want) {
		t.Errorf("code is\n%s\nexpected\n%s", got, strings.TrimSpace(want))
	}
}

// Parameters of functions and actions are the caller's places; a value that
// the body may change before it reads it is kept.
func TestParameters(t *testing.T) {
	expect(t, `action add(inout bit<32> x, in bit<32> n) { x = x + n; }
action swap(inout bit<32> x, in bit<32> y) { x = y; hdr.ip.dst = y; }`,
		"add(meta.index, hdr.ip.src); swap(hdr.ip.src, hdr.ip.dst); swap(hdr.ip.src, hdr.ip.src);", `
meta.index = assign (meta.index + hdr.ip.src)
I.swap.y = assign hdr.ip.dst
hdr.ip.src = assign I.swap.y
hdr.ip.dst = assign I.swap.y
I.swap.y#2 = assign hdr.ip.src
hdr.ip.src = assign I.swap.y#2
hdr.ip.dst = assign I.swap.y#2`)
}

// A list is read before it is written where the two overlap.
func TestSwap(t *testing.T) {
	expect(t, "tuple<bit<32>, bit<32>> pair;", "pair = { hdr.ip.src, hdr.ip.dst }; pair = { pair[1], pair[0] };", `
I.pair.f0 = assign hdr.ip.src
I.pair.f1 = assign hdr.ip.dst
I.$copy.f0 = assign I.pair.f1
I.$copy.f1 = assign I.pair.f0
I.pair.f0 = assign I.$copy.f0
I.pair.f1 = assign I.$copy.f1`)
}

// return and exit are edges: return ends the control, exit the block.
func TestEdges(t *testing.T) {
	p := lower(t, v1(`action stop() { exit; }`,
		"if (hdr.ip.kind == 1) { return; } if (hdr.ip.kind == 2) { stop(); } meta.index = 1;"))
	want := `branch (hdr.ip.kind == 16w1) true->5 false->3
branch (hdr.ip.kind == 16w2) true->5 false->4
meta.index = assign 32w1`
	if got := code(p); got != want {
		t.Errorf("code is\n%s\nexpected\n%s", got, want)
	}
	if in := p.Code[5]; in.Op != ir.Emit {
		t.Errorf("the edges lead to %s, expected the deparser", in)
	}
}

// A table without default action misses with NoAction, whether it lists it or
// not.
func TestImplicitDefault(t *testing.T) {
	p := lower(t, v1("action a() { meta.index = 1; } table t { key = { hdr.ip.src: exact; } actions = { a; } }", "t.apply();"))
	want := `I.t.$hit, I.t.$action = lookup I.t hdr.ip.src I.a->3 NoAction->4
meta.index = assign 32w1`
	if got := code(p); got != want {
		t.Errorf("code is\n%s\nexpected\n%s", got, want)
	}
	o := p.Objects[0]
	if o.DefaultAction != "NoAction" || o.SizeDeclared || o.Elements != 0 {
		t.Errorf("table is %+v", o)
	}
}

// What the right operand of && does is done only when the left one holds.
func TestShortCircuit(t *testing.T) {
	expect(t, "action a() { } table t { actions = { a; } default_action = a; }", "if (hdr.ip.isValid() && t.apply().hit) { meta.index = 1; }", `
I.$cond = assign hdr.ip.$valid
branch I.$cond true->4 false->6
I.t.$hit, I.t.$action = lookup I.t I.a->5
I.$cond = assign I.t.$hit
branch I.$cond true->7 false->8
meta.index = assign 32w1`)
}

// mark_to_drop writes egress_spec with its argument and, in the old form,
// without; a constant index keeps its width; blocks carry their annotations.
func TestStatements(t *testing.T) {
	p := lower(t, v1("register<bit<128>>(1) wide; bit<128> w;",
		`wide.read(w, 0); @atomic { wide.write(0, w + 1); } @branch("drops") { mark_to_drop(); } meta.index[7:0] = 3; meta.index[15:8] |= 1;`))
	want := `I.w = read I.wide[32w0]
write I.wide[32w0] (I.w + 128w1) atomic=1
std.egress_spec = drop mark_to_drop region=drops
meta.index[7:0] = assign 8w3
meta.index[15:8] = assign (meta.index[15:8] | 8w1)`
	if got := code(p); got != want {
		t.Errorf("code is\n%s\nexpected\n%s", got, want)
	}
	if o := p.Objects[0]; o.Bits != 128 || o.Elements != 1 || o.IndexBits != 32 {
		t.Errorf("register is %+v", o)
	}
}

// Names are those of the control plane; two instances have their own objects.
func TestNames(t *testing.T) {
	src := strings.Replace(v1(`Sub(16) one; @name("other") Sub(32) two;`, "one.apply(meta.index); two.apply(meta.index);"), "control I(", `
control Sub(inout bit<32> x)(bit<32> size) {
    register<bit<32>>(size) r;
    @name(".global") counter(size, CounterType.bytes) c;
    apply { r.write(x, 1); c.count(x); }
}
control I(`, 1)
	var got []string
	for _, o := range lower(t, src).Objects {
		got = append(got, o.FullName)
	}
	want := []string{"I.one.r", "global", "I.other.r", "global"}
	if !slices.Equal(got, want) {
		t.Errorf("objects are %v, expected %v", got, want)
	}
}

// A type by the name of FlowGroupID, and an annotation, mark flow groups.
func TestFlowGroup(t *testing.T) {
	p := lower(t, strings.Replace(v1("FlowGroupID g; @flow_group bit<8> h; bit<8> k;", "g = (FlowGroupID)hdr.ip.src; h = 1; k = 2;"),
		"header h_t", "type bit<32> FlowGroupID;\nheader h_t", 1))
	var got []string
	for _, v := range p.Vars {
		if v.FlowGroup {
			got = append(got, v.Name)
		}
	}
	if want := []string{"I.g", "I.h"}; !slices.Equal(got, want) {
		t.Errorf("flow groups are %v, expected %v", got, want)
	}
}

// Without a package, parsers and controls stand alone, with a warning.
func TestLibrary(t *testing.T) {
	p := lower(t, "control c(inout bit<8> x) { apply { x = x + 1; } }")
	if len(p.Stages) != 1 || p.Arch != "" || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0].Msg, "c stands alone") {
		t.Errorf("stages %v, architecture %q, warnings %v", p.Stages, p.Arch, p.Warnings)
	}
}

// A loop over a few constants is unrolled, any other one is a cycle.
func TestLoops(t *testing.T) {
	expect(t, "", "for (bit<32> i in 1 .. 2) { meta.index = meta.index + i; }", `
I.i = assign 32w1
meta.index = assign (meta.index + I.i)
I.i = assign 32w2
meta.index = assign (meta.index + I.i)`)
	expect(t, "", "for (bit<32> i = 0; i < hdr.ip.src; i = i + 1) { if (i == 9) { break; } meta.index = i; }", `
I.i = assign 32w0
branch (I.i < hdr.ip.src) true->4 false->7
branch (I.i == 32w9) true->7 false->5
meta.index = assign I.i
I.i = assign (I.i + 32w1) ->3`)
}
