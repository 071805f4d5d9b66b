// Indices and externs that an NFP has trouble with.
#include <core.p4>
#include <v1model.p4>

extern void scramble<T>(inout T value);
struct metadata_t { }
#include "inet.p4"

control TheIngress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    register<bit<128>>(8) wide;
    register<bit<32>>(1) single;
    register<bit<32>>(16) small;
    register<bit<32>>(16) beyond;
    counter(8, CounterType.packets_and_bytes) ports;
    meter(8, MeterType.bytes) rates;
    bit<128> w;
    bit<32> v;
    bit<32> i;
    bit<2> colour;

    apply {
        wide.read(w, 3);
        wide.write(3, w);
        single.read(v, 0);
        small.read(v, (bit<32>)hdr.ipv4.srcAddr[3:0]);
        small.read(v, (bit<32>)hdr.ipv4.srcAddr[4:0]);
        beyond.read(v, 16);
        hash(i, HashAlgorithm.crc32, 32w0, { hdr.ipv4.srcAddr }, 32w32);
        beyond.read(v, i);
        ports.count((bit<32>)standard_metadata.ingress_port);
        rates.execute_meter((bit<32>)hdr.ipv4.diffserv[2:0], colour);
        @atomic {
            small.read(v, 1);
            single.write(0, v);
        }
        if (v == 5) { mark_to_drop(standard_metadata); }
        scramble(hdr.ipv4.identification);
        if (v == 6) { mark_to_drop(); }
    }
}

V1Switch(TheParser(), TheVerify(), TheIngress(), TheEgress(), TheCompute(), TheDeparser()) main;
