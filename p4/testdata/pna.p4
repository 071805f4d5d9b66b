// A connection table of PNA whose misses insert entries from the data plane.
#include <core.p4>
#include <pna.p4>

header ether_t { bit<48> dst; bit<48> src; bit<16> kind; }
header ip_t { bit<32> src; bit<32> dst; }
struct headers_t { ether_t ether; ip_t ip; }
struct meta_t { bit<32> backend; }
struct hit_params_t { bit<32> backend; }

control Pre(in headers_t hdr, inout meta_t meta, in pna_pre_input_metadata_t istd,
            inout pna_pre_output_metadata_t ostd) {
    apply { }
}
parser MainParser(packet_in p, out headers_t hdr, inout meta_t meta, in pna_main_parser_input_metadata_t istd) {
    state start { p.extract(hdr.ether); p.extract(hdr.ip); transition accept; }
}
control Main(inout headers_t hdr, inout meta_t meta, in pna_main_input_metadata_t istd,
             inout pna_main_output_metadata_t ostd) {
    Register<bit<32>, bit<32>>(4) next;
    bool added;

    action known(bit<32> backend) { hdr.ip.dst = backend; }
    action unknown() {
        meta.backend = next.read(32w0);
        added = add_entry(action_name = "known", action_params = { meta.backend },
                          expire_time_profile_id = (ExpireTimeProfileId_t)1);
    }
    table connections {
        key = { hdr.ip.src: exact; }
        actions = { @tableonly known; @defaultonly unknown; }
        add_on_miss = true;
        const default_action = unknown;
        size = 65536;
    }
    apply {
        connections.apply();
        if (!added) { drop_packet(); }
    }
}
control MainDeparser(packet_out p, in headers_t hdr, in meta_t meta, in pna_main_output_metadata_t ostd) {
    apply { p.emit(hdr); }
}
PNA_NIC(MainParser(), Pre(), Main(), MainDeparser()) main;
