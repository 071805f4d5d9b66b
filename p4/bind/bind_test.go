package bind

import (
	"strings"
	"testing"

	"nicprof/p4/ir"
	"nicprof/p4/prelude"
	"nicprof/p4/syntax"
)

// lower reads a program that has to be right, and checks the IR's promises.
func lower(t *testing.T, src string) *ir.Program {
	t.Helper()
	f, err := syntax.Parse("x.p4", []byte(src), syntax.Options{Builtin: prelude.File})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Program(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Check(p); err != nil {
		t.Fatal(err)
	}
	return p
}

// refused gives the messages about a program that is wrong.
func refused(t *testing.T, src string) syntax.Errors {
	t.Helper()
	f, err := syntax.Parse("x.p4", []byte(src), syntax.Options{Builtin: prelude.File})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Program(f)
	errs, ok := err.(syntax.Errors)
	if !ok {
		t.Fatalf("error is %v, expected messages", err)
	}
	return errs
}

// v1 is a v1model program whose ingress has the given declarations and body.
func v1(locals, body string) string {
	return `#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> src; bit<32> dst; bit<16> kind; }
struct headers_t { h_t ip; }
struct meta_t { bit<32> index; bit<16> hash; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { p.extract(hdr.ip); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
` + locals + "\napply {\n" + body + `
} }
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h.ip); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
`
}

// code gives the instructions of the ingress, one a line, without numbers.
func code(p *ir.Program) string {
	var lines []string
	for _, in := range p.Code {
		if in.Op != ir.End && p.Stages[in.Stage].Kind == ir.Ingress {
			lines = append(lines, in.String())
		}
	}
	return strings.Join(lines, "\n")
}

func TestV1model(t *testing.T) {
	p := lower(t, v1(`register<bit<32>>(1024) seen;
    action set(bit<9> port) { std.egress_spec = port; }
    table route { key = { hdr.ip.dst: lpm; } actions = { set; NoAction; } size = 256; default_action = NoAction(); }`,
		`bit<32> n;
    hash(meta.hash, HashAlgorithm.crc16, 16w0, { hdr.ip.src, hdr.ip.dst }, 32w1024);
    seen.read(n, (bit<32>)meta.hash);
    if (n == 0) { seen.write((bit<32>)meta.hash, 1); mark_to_drop(std); return; }
    if (route.apply().miss) { hdr.ip.kind = 7; }`))
	want := `meta.hash = hash crc16 hdr.ip.src, hdr.ip.dst base 16w0 max 32w1024
I.n = read I.seen[(32)meta.hash]
branch (I.n == 32w0) true->5 false->7
write I.seen[(32)meta.hash] 32w1
std.egress_spec = drop mark_to_drop ->11
I.route.$hit, I.route.$action, I.set.port = lookup I.route hdr.ip.dst I.set->8 NoAction->9
std.egress_spec = assign I.set.port
branch !I.route.$hit true->10 false->11
hdr.ip.kind = assign 16w7`
	if got := code(p); got != want {
		t.Errorf("code is\n%s\nexpected\n%s", got, want)
	}
	if p.Arch != "v1model" || len(p.Stages) != 6 {
		t.Errorf("architecture %q with %d stages", p.Arch, len(p.Stages))
	}
}

func TestRefusals(t *testing.T) {
	for _, x := range []struct{ name, locals, body, at, message string }{
		{"variable", "", "meta.index = indx;", "x.p4:13:14", "name indx is not declared"},
		{"field", "", "meta.indx = 1;", "x.p4:13:6", "has no field indx; is index meant?"},
		{"table", "", "rout.apply();", "x.p4:13:1", "rout is not declared"},
		{"arguments", "register<bit<32>>(4) r;", "r.write(1);", "x.p4:13:1", "takes 2 arguments, 1 given"},
		{"constructor", "register<bit<32>>() r;", "", "x.p4:11:21", "takes 1 argument, 0 given"},
		{"action", "table t { actions = { nothing; } }", "t.apply();", "x.p4:11:23", "action nothing is not declared"},
		{"P4_14", "", "modify_field(meta.index, 1);", "x.p4:13:1", "is P4_14, in place of which P4_16 has an assignment: dst = src;"},
		{"type", "bit_t x;", "", "x.p4:11:1", "type bit_t is not declared"},
		{"twice", "bit<8> x; bit<9> x;", "", "x.p4:11:18", "x is declared twice"},
		{"unused action", "action a() { y = 1; }", "", "x.p4:11:14", "name y is not declared"},
	} {
		errs := refused(t, v1(x.locals, x.body))
		if got := errs[0].Pos.String(); got != x.at || !strings.Contains(errs[0].Msg, x.message) {
			t.Errorf("%s: %s: %s; expected %s: %s", x.name, got, errs[0].Msg, x.at, x.message)
		}
	}
}
