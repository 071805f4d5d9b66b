// A web server's packets and a layer-4 load balancer on one host: the example
// of Cora's Figure 1 (arXiv 2410.22229, section 2).
//
//   http   a count-min sketch counts packets by sender
//   l4lb   a connection's first packet goes to the least loaded server, whose
//          choice the control plane is asked to remember; later packets find
//          it in ConnTable, and count as that server's load
//
// State:
//   sketch0..2   rows of the sketch, 65,536 cells of 4 B; several senders share
//                a cell, so that a row cannot be split between NIC and host
//   ConnTable    sender -> server, 65,536 entries
//   LoadCntr     packets by server, 4,096 cells of 4 B
//   MinLoad      lowest load by service, and
//   MinDip       the server that has it, 4 cells of 4 B each
//
// What each state does and how packets pass them is the paper's text. 4,096
// servers and 4 services are the sizes of the load balancer in the authors'
// open release (its Figure 4 program); the sketch's shape and ConnTable's size
// are ours, as none are published for this example.
#include <core.p4>
#include <v1model.p4>

const bit<16> PORT_HTTP = 80;

// Packets with one of these have the same service (FlowGroupID of the paper).
type bit<32> FlowGroupID;

// What the control plane is told of a new connection.
struct connection_t {
    bit<32> sender;
    bit<32> server;
}

struct metadata_t {
    bit<32> estimate; // packets of this sender, as the sketch has it
}

#include "inet.p4"

control LbIngress(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    register<bit<32>>(65536) sketch0;
    register<bit<32>>(65536) sketch1;
    register<bit<32>>(65536) sketch2;

    register<bit<32>>(4096) LoadCntr;
    register<bit<32>>(4) MinLoad;
    register<bit<32>>(4) MinDip;

    bit<32> server = 0;

    action to_server(bit<32> dip, bit<32> number, bit<9> port) {
        hdr.ipv4.dstAddr = dip;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        standard_metadata.egress_spec = port;
        server = number;
    }

    table ConnTable {
        key = { hdr.ipv4.srcAddr: exact; }
        actions = { to_server; NoAction; }
        const default_action = NoAction();
        size = 65536;
    }

    apply {
        if (!hdr.tcp.isValid()) {
            mark_to_drop(standard_metadata);
            return;
        }
        if (hdr.tcp.dstPort == PORT_HTTP) @branch("http") {
            bit<32> cell0;
            bit<32> cell1;
            bit<32> cell2;
            bit<32> count0;
            bit<32> count1;
            bit<32> count2;
            hash(cell0, HashAlgorithm.crc32, 32w0, { hdr.ipv4.srcAddr }, 32w65536);
            hash(cell1, HashAlgorithm.crc16, 32w0, { hdr.ipv4.srcAddr }, 32w65536);
            hash(cell2, HashAlgorithm.crc32, 32w0, { hdr.ipv4.srcAddr, 8w1 }, 32w65536);

            sketch0.read(count0, cell0);
            count0 = count0 + 1;
            sketch0.write(cell0, count0);
            sketch1.read(count1, cell1);
            count1 = count1 + 1;
            sketch1.write(cell1, count1);
            sketch2.read(count2, cell2);
            count2 = count2 + 1;
            sketch2.write(cell2, count2);

            meta.estimate = count0;
            if (count1 < meta.estimate) { meta.estimate = count1; }
            if (count2 < meta.estimate) { meta.estimate = count2; }
            standard_metadata.egress_spec = 1;
        } else @branch("l4lb") {
            FlowGroupID vip = (FlowGroupID)(hdr.ipv4.dstAddr & 3);
            bit<32> chosen;
            bit<32> least;
            bit<32> load;
            if (ConnTable.apply().hit) {
                LoadCntr.read(load, server);
                load = load + 1;
                LoadCntr.write(server, load);

                MinLoad.read(least, (bit<32>)vip);
                MinDip.read(chosen, (bit<32>)vip);
                if (load < least) @branch("new_least") {
                    MinLoad.write((bit<32>)vip, load);
                    MinDip.write((bit<32>)vip, server);
                } else if (chosen == server) @branch("still_least") {
                    MinLoad.write((bit<32>)vip, load);
                }
            } else {
                MinDip.read(chosen, (bit<32>)vip);
                digest<connection_t>(1, { hdr.ipv4.srcAddr, chosen });
                standard_metadata.egress_spec = 2;
            }
        }
    }
}

V1Switch(InetParser(), InetVerify(), LbIngress(), InetEgress(), InetCompute(), InetDeparser()) main;
