// A stateful firewall: packets pass in both directions once the inside has
// opened a connection that the rules allow; the state of a TCP connection
// follows its flags.
//
// State:
//   rules       who may open a connection, 1,024 ternary entries
//   permitted   packets by rule, one counter an entry
//   sessions    open connections, 65,536 entries; both directions have the same
//               key, so that they stay together
//   tcp_state   state of a connection, one cell of 1 B an entry of sessions: read,
//               then written from what was read
//   seen        when a connection was last seen, one cell of 6 B an entry
//
// Structure and sizes are ours: a firewall's are not published.
#include <core.p4>
#include <v1model.p4>

const bit<8> TCP_FIN = 0x01;
const bit<8> TCP_SYN = 0x02;
const bit<8> TCP_RST = 0x04;
const bit<8> TCP_ACK = 0x10;

const bit<8> OPENING = 1;
const bit<8> OPEN = 2;
const bit<8> CLOSING = 3;
const bit<8> CLOSED = 4;

const bit<9> INSIDE = 1;
const bit<9> OUTSIDE = 2;

struct metadata_t {
    bit<32> low;     // the connection's smaller address,
    bit<32> high;    // the larger,
    bit<16> low_port;
    bit<16> high_port;
    bit<32> session; // and its number
    bit<8>  state;
}

#include "inet.p4"

// What the control plane is told of a connection that the rules allow.
struct opened_t {
    bit<32> low;
    bit<32> high;
    bit<16> low_port;
    bit<16> high_port;
}

control FwIngress(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets) permitted;
    register<bit<8>>(65536) tcp_state;
    register<bit<48>>(65536) seen;

    action forward() {
        if (standard_metadata.ingress_port == INSIDE) {
            standard_metadata.egress_spec = OUTSIDE;
        } else {
            standard_metadata.egress_spec = INSIDE;
        }
    }

    action known(bit<32> session) {
        meta.session = session;
    }

    action deny() {
        mark_to_drop(standard_metadata);
    }

    action permit() {
        permitted.count();
        digest<opened_t>(1, { meta.low, meta.high, meta.low_port, meta.high_port });
    }

    table sessions {
        key = {
            meta.low: exact;
            meta.high: exact;
            meta.low_port: exact;
            meta.high_port: exact;
        }
        actions = { known; NoAction; }
        const default_action = NoAction();
        size = 65536;
        support_timeout = true;
    }

    table rules {
        key = {
            standard_metadata.ingress_port: exact;
            hdr.ipv4.srcAddr: ternary;
            hdr.ipv4.dstAddr: ternary;
            hdr.tcp.dstPort: range;
        }
        actions = { permit; deny; }
        const default_action = deny();
        size = 1024;
        counters = permitted;
    }

    apply {
        if (!hdr.tcp.isValid()) {
            deny();
            exit;
        }
        if (hdr.ipv4.srcAddr < hdr.ipv4.dstAddr) {
            meta.low = hdr.ipv4.srcAddr;
            meta.high = hdr.ipv4.dstAddr;
            meta.low_port = hdr.tcp.srcPort;
            meta.high_port = hdr.tcp.dstPort;
        } else {
            meta.low = hdr.ipv4.dstAddr;
            meta.high = hdr.ipv4.srcAddr;
            meta.low_port = hdr.tcp.dstPort;
            meta.high_port = hdr.tcp.srcPort;
        }
        if (sessions.apply().hit) @branch("known") {
            seen.write(meta.session, standard_metadata.ingress_global_timestamp);
            tcp_state.read(meta.state, meta.session);
            if (meta.state == CLOSED) @branch("closed") {
                deny();
            } else {
                if ((hdr.tcp.flags & TCP_RST) != 0) @branch("reset") {
                    meta.state = CLOSED;
                } else if ((hdr.tcp.flags & TCP_FIN) != 0) @branch("finish") {
                    if (meta.state == CLOSING) { meta.state = CLOSED; } else { meta.state = CLOSING; }
                } else if (meta.state == OPENING && (hdr.tcp.flags & TCP_ACK) != 0) {
                    meta.state = OPEN;
                }
                tcp_state.write(meta.session, meta.state);
                forward();
            }
        } else @branch("new") {
            if ((hdr.tcp.flags & (TCP_SYN | TCP_ACK)) == TCP_SYN) @branch("open") {
                if (rules.apply().hit) { forward(); }
            } else {
                deny();
            }
        }
    }
}

V1Switch(InetParser(), InetVerify(), FwIngress(), InetEgress(), InetCompute(), InetDeparser()) main;
