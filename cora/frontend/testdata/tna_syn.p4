// A SYN-flood guard for TNA: for each server the half-open connections are
// counted up by SYNs and down by ACKs; an egress register keeps the longest queue
// that packets of the server saw. Ingress hands its result to egress in a header
// of its own, which the second parser extracts.
#include <core.p4>
#include <tna.p4>

header ethernet_h {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_h {
    bit<8>  version_ihl;
    bit<8>  diffserv;
    bit<16> total_len;
    bit<16> identification;
    bit<16> flags_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header tcp_h {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> seq;
    bit<32> ack;
    bit<4>  offset;
    bit<4>  reserved;
    bit<8>  flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

header bridge_h {
    bit<16> half_open;
    bit<10> server;
    bit<6>  _pad;
}

struct ingress_headers_t {
    bridge_h   bridge;
    ethernet_h ethernet;
    ipv4_h     ipv4;
    tcp_h      tcp;
}

struct ingress_metadata_t {
    bit<10> server;
    bit<16> half_open;
}

parser GuardIngressParser(packet_in pkt, out ingress_headers_t hdr, out ingress_metadata_t md,
                          out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        pkt.extract(ig_intr_md);
        pkt.advance(PORT_METADATA_SIZE);
        transition select(ig_intr_md.resubmit_flag) {
            0: parse_ethernet;
            default: reject;
        }
    }
    state parse_ethernet {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        pkt.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            6: parse_tcp;
            default: accept;
        }
    }
    state parse_tcp {
        pkt.extract(hdr.tcp);
        transition accept;
    }
}

control GuardIngress(inout ingress_headers_t hdr, inout ingress_metadata_t md,
                     in ingress_intrinsic_metadata_t ig_intr_md,
                     in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                     inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                     inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Register<bit<16>, bit<10>>(1024) half_open;
    RegisterAction<bit<16>, bit<10>, bit<16>>(half_open) opened = {
        void apply(inout bit<16> value, out bit<16> rv) {
            value = value |+| 1;
            rv = value;
        }
    };
    RegisterAction<bit<16>, bit<10>, bit<16>>(half_open) finished = {
        void apply(inout bit<16> value) {
            value = value |-| 1;
        }
    };
    Counter<bit<64>, bit<10>>(1024, CounterType_t.PACKETS) dropped;

    action forward(PortId_t port) {
        ig_tm_md.ucast_egress_port = port;
    }
    action drop() {
        ig_dprsr_md.drop_ctl = 1;
    }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; drop; }
        const default_action = drop();
        size = 4096;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            routes.apply();
        }
        if (hdr.tcp.isValid()) {
            md.server = hdr.ipv4.dst[9:0];
            if (hdr.tcp.flags & 0x12 == 0x02) {
                md.half_open = opened.execute(md.server);
                if (md.half_open > 1000) {
                    dropped.count(md.server);
                    drop();
                }
            } else if (hdr.tcp.flags & 0x12 == 0x10) {
                finished.execute(md.server);
            }
            hdr.bridge.setValid();
            hdr.bridge.half_open = md.half_open;
            hdr.bridge.server = md.server;
        }
    }
}

control GuardIngressDeparser(packet_out pkt, inout ingress_headers_t hdr, in ingress_metadata_t md,
                             in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    apply {
        pkt.emit(hdr);
    }
}

struct egress_headers_t {
    bridge_h   bridge;
    ethernet_h ethernet;
}

struct egress_metadata_t {
    bit<19> longest;
}

parser GuardEgressParser(packet_in pkt, out egress_headers_t hdr, out egress_metadata_t md,
                         out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        pkt.extract(eg_intr_md);
        pkt.extract(hdr.bridge);
        pkt.extract(hdr.ethernet);
        transition accept;
    }
}

control GuardEgress(inout egress_headers_t hdr, inout egress_metadata_t md,
                    in egress_intrinsic_metadata_t eg_intr_md,
                    in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                    inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
                    inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    Register<bit<32>, bit<10>>(1024) queue;
    RegisterAction<bit<32>, bit<10>, bit<32>>(queue) longest = {
        void apply(inout bit<32> value) {
            if ((bit<32>)eg_intr_md.enq_qdepth > value) {
                value = (bit<32>)eg_intr_md.enq_qdepth;
            }
        }
    };
    apply {
        longest.execute(hdr.bridge.server);
        hdr.bridge.setInvalid();
    }
}

control GuardEgressDeparser(packet_out pkt, inout egress_headers_t hdr, in egress_metadata_t md,
                            in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    apply {
        pkt.emit(hdr);
    }
}

Pipeline(GuardIngressParser(), GuardIngress(), GuardIngressDeparser(),
         GuardEgressParser(), GuardEgress(), GuardEgressDeparser()) pipe;
Switch(pipe) main;
