// A cache of hot keys in front of a memcached router, as Cora's McRouter
// (section 8.1): requests of cached keys are answered by the NIC, all others go
// to the router on the host.
//
// State:
//   fast_keys   key -> slot, 24,576 entries (0x600 buckets of 16)
//   keys        key -> slot, 7,340,032 entries (0x70000 buckets of 16)
//   fast0..3,   values of 128 B, one a slot, in four cells of 32 B: the largest
//   slow0..3    atomic access of an NFP
//
// Bucket counts, block size and two look-ups a packet: McRouter in the authors'
// open release. The request format here is a plain one of our own: operation,
// 16 B of key and 128 B of value behind UDP port 11211.
#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

const bit<16> PORT_KV = 11211;
const bit<8> GET = 1; // what is neither GET nor FOUND stores
const bit<8> FOUND = 3;

const bit<32> FAST_SLOTS = 24576;
const bit<32> SLOW_SLOTS = 7340032;

header kv_t {
    bit<8>   op;
    bit<128> key;
    bit<256> value0;
    bit<256> value1;
    bit<256> value2;
    bit<256> value3;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    kv_t       kv;
}

// A slot has one key at a time, so that the slot is the key's flow group.
type bit<32> FlowGroupID;

struct metadata_t {
    FlowGroupID slot;
}

parser KvParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.etherType) {
            TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            PROTO_UDP: parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dstPort) {
            PORT_KV: parse_kv;
            default: accept;
        }
    }
    state parse_kv {
        packet.extract(hdr.kv);
        transition accept;
    }
}

control KvVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control KvIngress(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    register<bit<256>>(FAST_SLOTS) fast0;
    register<bit<256>>(FAST_SLOTS) fast1;
    register<bit<256>>(FAST_SLOTS) fast2;
    register<bit<256>>(FAST_SLOTS) fast3;
    register<bit<256>>(SLOW_SLOTS) slow0;
    register<bit<256>>(SLOW_SLOTS) slow1;
    register<bit<256>>(SLOW_SLOTS) slow2;
    register<bit<256>>(SLOW_SLOTS) slow3;

    action cached(FlowGroupID slot) {
        meta.slot = slot;
    }

    action to_router() {
        standard_metadata.egress_spec = 0;
    }

    action reply() {
        bit<48> mac = hdr.ethernet.srcAddr;
        hdr.ethernet.srcAddr = hdr.ethernet.dstAddr;
        hdr.ethernet.dstAddr = mac;
        bit<32> addr = hdr.ipv4.srcAddr;
        hdr.ipv4.srcAddr = hdr.ipv4.dstAddr;
        hdr.ipv4.dstAddr = addr;
        bit<16> port = hdr.udp.srcPort;
        hdr.udp.srcPort = hdr.udp.dstPort;
        hdr.udp.dstPort = port;
        hdr.udp.checksum = 0;
        hdr.kv.op = FOUND;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    table fast_keys {
        key = { hdr.kv.key: exact; }
        actions = { cached; NoAction; }
        const default_action = NoAction();
        size = 24576;
    }

    table keys {
        key = { hdr.kv.key: exact; }
        actions = { cached; to_router; }
        const default_action = to_router();
        size = 7340032;
    }

    apply {
        if (!hdr.kv.isValid()) {
            mark_to_drop(standard_metadata);
            return;
        }
        if (fast_keys.apply().hit) @branch("fast") {
            if (hdr.kv.op == GET) @branch("fast_get") {
                fast0.read(hdr.kv.value0, (bit<32>)meta.slot);
                fast1.read(hdr.kv.value1, (bit<32>)meta.slot);
                fast2.read(hdr.kv.value2, (bit<32>)meta.slot);
                fast3.read(hdr.kv.value3, (bit<32>)meta.slot);
            } else @branch("fast_set") {
                fast0.write((bit<32>)meta.slot, hdr.kv.value0);
                fast1.write((bit<32>)meta.slot, hdr.kv.value1);
                fast2.write((bit<32>)meta.slot, hdr.kv.value2);
                fast3.write((bit<32>)meta.slot, hdr.kv.value3);
            }
            reply();
        } else if (keys.apply().hit) @branch("slow") {
            if (hdr.kv.op == GET) @branch("slow_get") {
                slow0.read(hdr.kv.value0, (bit<32>)meta.slot);
                slow1.read(hdr.kv.value1, (bit<32>)meta.slot);
                slow2.read(hdr.kv.value2, (bit<32>)meta.slot);
                slow3.read(hdr.kv.value3, (bit<32>)meta.slot);
            } else @branch("slow_set") {
                slow0.write((bit<32>)meta.slot, hdr.kv.value0);
                slow1.write((bit<32>)meta.slot, hdr.kv.value1);
                slow2.write((bit<32>)meta.slot, hdr.kv.value2);
                slow3.write((bit<32>)meta.slot, hdr.kv.value3);
            }
            reply();
        }
    }
}

control KvEgress(inout headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    apply { }
}

// Addresses are swapped, so that the IPv4 header checksum stays as it is.
control KvCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control KvDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.kv);
    }
}

V1Switch(KvParser(), KvVerify(), KvIngress(), KvEgress(), KvCompute(), KvDeparser()) main;
