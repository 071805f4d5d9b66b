// A Bloom filter that sets a row where the other one was not set.
#include <core.p4>
#include <v1model.p4>

struct metadata_t { }
#include "inet.p4"

control TheIngress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    register<bit<1>>(4096) row0;
    register<bit<1>>(4096) row1;
    bit<32> cell;
    bit<1> set0;
    bit<1> set1;

    apply {
        hash(cell, HashAlgorithm.crc32, 32w0, { hdr.ipv4.srcAddr }, 32w4096);
        row0.read(set0, cell);
        row1.read(set1, cell);
        if (set0 == 0) { row1.write(cell, 1); }
        if (set1 == 0) { row0.write(cell, 1); }
    }
}

V1Switch(TheParser(), TheVerify(), TheIngress(), TheEgress(), TheCompute(), TheDeparser()) main;
