package bind

import (
	"slices"
	"strings"
	"testing"

	"nicprof/p4/ir"
	"nicprof/p4/prelude"
	"nicprof/p4/syntax"
)

// TestDirectCountersCountHits finds the accesses that v1model makes of itself:
// one in each action that an entry runs, none where an action counts.
func TestDirectCountersCountHits(t *testing.T) {
	const program = `#include <v1model.p4>
header h_t { bit<8> k; }
struct H { h_t h; }
struct M { }
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t s) { state start { p.extract(hdr.h); transition accept; } }
control V(inout H hdr, inout M m) { apply { } }
control I(inout H hdr, inout M m, inout standard_metadata_t s) {
    direct_counter(CounterType.packets) hits;
    action a() { s.egress_spec = 1; }
    action b() { s.egress_spec = 2; COUNT }
    table t { key = { hdr.h.k : exact; } actions = { a; b; NoAction; } default_action = NoAction; counters = hits; }
    apply { t.apply(); }
}
control E(inout H hdr, inout M m, inout standard_metadata_t s) { apply { } }
control C(inout H hdr, inout M m) { apply { } }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
`
	for _, c := range []struct {
		count string
		want  []string
	}{
		{"", []string{"I.a", "I.b"}},
		{"hits.count();", []string{"I.b"}},
	} {
		src := strings.Replace(program, "COUNT", c.count, 1)
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
		var got []string
		for _, in := range p.Code {
			if in.Op == ir.Count {
				got = append(got, in.Action)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("with %q, %v count; want %v", c.count, got, c.want)
		}
	}
}
