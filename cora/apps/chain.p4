// A service chain of two branches (Cora, section 8.1): packets to servers pass a
// firewall and a load balancer, packets to clients a monitor and address
// translation. The paper spreads traffic evenly over the two.
//
// State, branch inbound:
//   acl       who may reach the servers, 4,096 entries by longest prefix
//   servers   service -> server, 65,536 entries by connection
//   load      packets by service, 4,096 cells of 4 B: read, then written from
//             what was read
// branch outbound:
//   row0..1   count-min sketch of bytes by receiver, 65,536 cells of 4 B a row
//   sources   client -> public address, 1,048,576 entries
//   usage     bytes by client, one counter an entry
//
// The two branches and their equal shares are published; which functions they
// hold and their sizes are not, and are ours.
#include <core.p4>
#include <v1model.p4>

const bit<9> FROM_CLIENTS = 1;

struct metadata_t {
    bit<32> service;
    bit<32> bytes;
}

#include "inet.p4"

control ChainIngress(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    register<bit<32>>(4096) load;
    register<bit<32>>(65536) row0;
    register<bit<32>>(65536) row1;
    direct_counter(CounterType.bytes) usage;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action to_server(bit<32> addr, bit<32> service, bit<9> port) {
        hdr.ipv4.dstAddr = addr;
        meta.service = service;
        standard_metadata.egress_spec = port;
    }

    action translate(bit<32> addr, bit<16> port) {
        usage.count();
        hdr.ipv4.srcAddr = addr;
        hdr.tcp.srcPort = port;
        standard_metadata.egress_spec = FROM_CLIENTS;
    }

    table acl {
        key = { hdr.ipv4.srcAddr: lpm; }
        actions = { drop; NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    table servers {
        key = {
            hdr.ipv4.srcAddr: exact;
            hdr.ipv4.dstAddr: exact;
            hdr.tcp.srcPort: exact;
            hdr.tcp.dstPort: exact;
        }
        actions = { to_server; drop; }
        const default_action = drop();
        size = 65536;
    }

    table sources {
        key = {
            hdr.ipv4.srcAddr: exact;
            hdr.tcp.srcPort: exact;
        }
        actions = { translate; drop; }
        const default_action = drop();
        size = 1048576;
        counters = usage;
    }

    apply {
        if (!hdr.tcp.isValid()) {
            drop();
            return;
        }
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        if (standard_metadata.ingress_port == FROM_CLIENTS) @branch("inbound") {
            switch (acl.apply().action_run) {
                drop: { return; }
            }
            if (servers.apply().hit) {
                bit<32> packets;
                load.read(packets, meta.service);
                load.write(meta.service, packets + 1);
            }
        } else @branch("outbound") {
            bit<32> cell0;
            bit<32> cell1;
            hash(cell0, HashAlgorithm.crc32, 32w0, { hdr.ipv4.dstAddr }, 32w65536);
            hash(cell1, HashAlgorithm.crc16, 32w0, { hdr.ipv4.dstAddr }, 32w65536);
            row0.read(meta.bytes, cell0);
            row0.write(cell0, meta.bytes + standard_metadata.packet_length);
            row1.read(meta.bytes, cell1);
            row1.write(cell1, meta.bytes + standard_metadata.packet_length);
            sources.apply();
        }
    }
}

V1Switch(InetParser(), InetVerify(), ChainIngress(), InetEgress(), InetCompute(), InetDeparser()) main;
