// Network address translation with load balancing, as DPVS does it (Cora,
// sections 8.1 and 8.2): a connection's entry says which server it goes to, and
// each packet counts as load of its virtual service and of its balancer.
//
// State:
//   nat       connection -> server, 16,777,216 entries (2^20 buckets of 16),
//             12 B of key and 20 B of data an entry
//   hits      packets by connection, one counter an entry
//   vip_load  packets by virtual service, 4,096 counters
//   load      packets by balancer, and
//   least     the lowest load of a balancer's group, 256 cells each: read, then
//             written from what was read, so that an NFP needs a lock
//
// Sizes and structure: the NAT of the authors' open release. Its balancer entry
// of 24 B holds more than we read (lock word, service, three words); the pair of
// cells stands for it. DPVS proper inserts two entries a connection, one a
// direction; the paper's experiment counts one, and so does this program.
#include <core.p4>
#include <v1model.p4>

struct metadata_t {
    bit<32> load;
    bit<32> least;
}

#include "inet.p4"

// What the control plane is told of a connection that has no entry.
struct connection_t {
    bit<32> src;
    bit<32> dst;
    bit<16> sport;
    bit<16> dport;
}

control NatIngress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets) hits;
    counter(4096, CounterType.packets) vip_load;
    register<bit<32>>(256) load;
    register<bit<32>>(256) least;

    bit<32> balancer = 0;

    action translate(bit<32> addr, bit<16> port, bit<32> flow, bit<32> vip, bit<32> group, bit<9> out_port) {
        hits.count();
        hdr.ipv4.dstAddr = addr;
        hdr.ipv4.identification = (bit<16>)flow;
        hdr.tcp.dstPort = port;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        standard_metadata.egress_spec = out_port;
        vip_load.count(vip);
        balancer = group;
    }

    action new_connection() {
        digest<connection_t>(1, { hdr.ipv4.srcAddr, hdr.ipv4.dstAddr, hdr.tcp.srcPort, hdr.tcp.dstPort });
        mark_to_drop(standard_metadata);
    }

    table nat {
        key = {
            hdr.ipv4.srcAddr: exact;
            hdr.ipv4.dstAddr: exact;
            hdr.tcp.srcPort: exact;
            hdr.tcp.dstPort: exact;
        }
        actions = { translate; new_connection; }
        const default_action = new_connection();
        size = 16777216;
        counters = hits;
    }

    apply {
        if (hdr.tcp.isValid()) @branch("nat") {
            if (nat.apply().hit) {
                load.read(meta.load, balancer);
                meta.load = meta.load + 1;
                load.write(balancer, meta.load);
                least.read(meta.least, balancer);
                if (meta.load < meta.least) @branch("new_least") {
                    least.write(balancer, meta.load);
                }
            }
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

V1Switch(InetParser(), InetVerify(), NatIngress(), InetEgress(), InetCompute(), InetDeparser()) main;
