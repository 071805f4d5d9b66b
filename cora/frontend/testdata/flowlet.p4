// A flowlet switch: the number of a flow's burst is read in one action and
// written in another, through metadata.
#include <core.p4>
#include <v1model.p4>

struct metadata_t {
    bit<16> id;
    bit<13> index;
    bit<48> last;
}
#include "inet.p4"

control TheIngress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    register<bit<16>>(8192) flowlet_id;
    register<bit<48>>(8192) flowlet_time;

    action look() {
        hash(meta.index, HashAlgorithm.crc16, 13w0,
             { hdr.ipv4.srcAddr, hdr.ipv4.dstAddr, hdr.ipv4.protocol, hdr.tcp.srcPort, hdr.tcp.dstPort }, 26w8192);
        flowlet_id.read(meta.id, (bit<32>)meta.index);
        flowlet_time.read(meta.last, (bit<32>)meta.index);
        flowlet_time.write((bit<32>)meta.index, standard_metadata.ingress_global_timestamp);
    }
    action renew() {
        meta.id = meta.id + 1;
        flowlet_id.write((bit<32>)meta.index, meta.id);
    }
    action forward(bit<9> port) { standard_metadata.egress_spec = port; }
    table next_hop {
        key = { hdr.ipv4.dstAddr: lpm; meta.id: exact; }
        actions = { forward; NoAction; }
        default_action = NoAction();
        size = 1024;
    }
    apply {
        look();
        if (standard_metadata.ingress_global_timestamp - meta.last > 50000) { renew(); }
        next_hop.apply();
    }
}

V1Switch(TheParser(), TheVerify(), TheIngress(), TheEgress(), TheCompute(), TheDeparser()) main;
