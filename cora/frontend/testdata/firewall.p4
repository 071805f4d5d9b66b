// A firewall that lets connections in which were opened from inside: a Bloom
// filter of two rows, set on the way out, tested on the way in with addresses
// and ports exchanged.
#include <core.p4>
#include <v1model.p4>

struct metadata_t { bit<1> inbound; }
#include "inet.p4"

control TheIngress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    register<bit<1>>(4096) filter0;
    register<bit<1>>(4096) filter1;
    bit<32> cell0;
    bit<32> cell1;
    bit<1> set0;
    bit<1> set1;

    action cells(bit<32> a, bit<32> b, bit<16> p, bit<16> q) {
        hash(cell0, HashAlgorithm.crc16, 32w0, { a, b, p, q, hdr.ipv4.protocol }, 32w4096);
        hash(cell1, HashAlgorithm.crc32, 32w0, { a, b, p, q, hdr.ipv4.protocol }, 32w4096);
    }
    action direction(bit<1> inbound) { meta.inbound = inbound; }
    table ports {
        key = { standard_metadata.ingress_port: exact; }
        actions = { direction; NoAction; }
        default_action = NoAction();
        size = 512;
    }
    apply {
        if (!hdr.tcp.isValid()) { return; }
        if (!ports.apply().hit) { return; }
        if (meta.inbound == 0) {
            cells(hdr.ipv4.srcAddr, hdr.ipv4.dstAddr, hdr.tcp.srcPort, hdr.tcp.dstPort);
            if (hdr.tcp.syn == 1) {
                filter0.write(cell0, 1);
                filter1.write(cell1, 1);
            }
        } else {
            cells(hdr.ipv4.dstAddr, hdr.ipv4.srcAddr, hdr.tcp.dstPort, hdr.tcp.srcPort);
            filter0.read(set0, cell0);
            filter1.read(set1, cell1);
            if (set0 != 1 || set1 != 1) { mark_to_drop(standard_metadata); }
        }
    }
}

V1Switch(TheParser(), TheVerify(), TheIngress(), TheEgress(), TheCompute(), TheDeparser()) main;
