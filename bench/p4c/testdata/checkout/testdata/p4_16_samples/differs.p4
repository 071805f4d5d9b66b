#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> kind; bit<32> key; }
struct headers { h_t h; }
struct metadata { bit<16> n; }

parser P(packet_in p, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<16>>(256) seen2;
    counter(8, CounterType.packets) ports;
    direct_counter(CounterType.bytes) hits;
    meter(4, MeterType.bytes) rate;
    action go(bit<9> port) { std.egress_spec = port; ports.count((bit<32>)port); }
    table t {
        key = { hdr.h.key : lpm; hdr.h.kind : exact; }
        actions = { go; NoAction; }
        counters = hits;
        default_action = NoAction;
    }
    apply {
        seen2.read(meta.n, (bit<32>)hdr.h.kind);
        seen2.write((bit<32>)hdr.h.kind, meta.n + 1);
        rate.execute_meter((bit<32>)0, meta.n);
        t.apply();
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
