// A count-min sketch of three rows.
#include <core.p4>
#include <v1model.p4>

struct metadata_t { bit<32> least; }
#include "inet.p4"

control TheIngress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    register<bit<32>>(1024) row0;
    register<bit<32>>(1024) row1;
    register<bit<32>>(1024) row2;
    bit<32> index;
    bit<32> count;

    apply {
        hash(index, HashAlgorithm.crc32, 32w0, { hdr.ipv4.srcAddr, hdr.ipv4.dstAddr }, 32w1024);
        row0.read(count, index);
        count = count + 1;
        row0.write(index, count);
        meta.least = count;
        hash(index, HashAlgorithm.crc16, 32w0, { hdr.ipv4.srcAddr, hdr.ipv4.dstAddr }, 32w1024);
        row1.read(count, index);
        count = count + 1;
        row1.write(index, count);
        if (count < meta.least) { meta.least = count; }
        hash(index, HashAlgorithm.csum16, 32w0, { hdr.ipv4.srcAddr, hdr.ipv4.dstAddr }, 32w1024);
        row2.read(count, index);
        count = count + 1;
        row2.write(index, count);
        if (count < meta.least) { meta.least = count; }
        if (meta.least > 10000) { mark_to_drop(standard_metadata); }
    }
}

V1Switch(TheParser(), TheVerify(), TheIngress(), TheEgress(), TheCompute(), TheDeparser()) main;
