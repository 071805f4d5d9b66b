// A shaper for PSA: ingress meters a customer (VLAN) and remembers when it was
// last seen; egress smooths the customer's delay, and tells the next packets in
// ingress nothing. What ingress knows of the customer crosses in metadata of the
// deparser, a second look at a packet in metadata of resubmission.
#include <core.p4>
#include <psa.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header vlan_t {
    bit<3>  priority;
    bit<1>  eligible;
    bit<12> customer;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t     vlan;
}

struct ingress_meta_t {
    bit<12> customer;
    bit<32> idle;
    bit<32> before;
}

struct egress_meta_t {
    bit<12> customer;
}

struct bridge_t {
    bit<12> customer;
}

struct second_t {
    bit<32> idle;
}

struct none_t { }

parser ShIngressParser(packet_in packet, out headers_t hdr, inout ingress_meta_t meta,
                       in psa_ingress_parser_input_metadata_t istd, in second_t second, in none_t recirculated) {
    state start {
        meta.before = second.idle;
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x8100: parse_vlan;
            default: accept;
        }
    }
    state parse_vlan {
        packet.extract(hdr.vlan);
        transition accept;
    }
}

control ShIngress(inout headers_t hdr, inout ingress_meta_t meta, in psa_ingress_input_metadata_t istd,
                  inout psa_ingress_output_metadata_t ostd) {
    Meter<bit<12>>(4096, PSA_MeterType_t.BYTES) rate;
    Register<bit<32>, bit<12>>(4096) idle;
    Register<bit<32>, bit<12>>(4096) sum;
    DirectCounter<bit<64>>(PSA_CounterType_t.BYTES) sent;

    action out_by(PortId_t port) {
        sent.count();
        send_to_port(ostd, port);
    }
    action discard() {
        sent.count();
        ingress_drop(ostd);
    }
    table customers {
        key = { meta.customer: exact; }
        actions = { out_by; discard; }
        const default_action = discard();
        size = 4096;
        psa_direct_counter = sent;
    }

    apply {
        meta.customer = hdr.vlan.customer;
        if (rate.execute(meta.customer) == PSA_MeterColor_t.RED) {
            ingress_drop(ostd);
            exit;
        }
        if (istd.packet_path == PSA_PacketPath_t.RESUBMIT) {
            idle.write(meta.customer, meta.before + 1);
            sum.write(meta.customer, 0);
        } else {
            meta.idle = idle.read(meta.customer);
            meta.idle = meta.idle + sum.read(meta.customer);
            ostd.resubmit = true;
        }
        customers.apply();
    }
}

control ShIngressDeparser(packet_out packet, out none_t cloned, out second_t second, out bridge_t bridge,
                          inout headers_t hdr, in ingress_meta_t meta, in psa_ingress_output_metadata_t istd) {
    apply {
        if (psa_resubmit(istd)) {
            second.idle = meta.idle;
        }
        bridge.customer = meta.customer;
        packet.emit(hdr);
    }
}

parser ShEgressParser(packet_in packet, out headers_t hdr, inout egress_meta_t meta,
                      in psa_egress_parser_input_metadata_t istd, in bridge_t bridge, in none_t ci2e, in none_t ce2e) {
    state start {
        meta.customer = bridge.customer;
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control ShEgress(inout headers_t hdr, inout egress_meta_t meta, in psa_egress_input_metadata_t istd,
                 inout psa_egress_output_metadata_t ostd) {
    Register<bit<32>, bit<12>>(4096) smooth;
    apply {
        bit<32> old = smooth.read(meta.customer);
        smooth.write(meta.customer, old - (old >> 3) + ((bit<32>)istd.egress_timestamp >> 3));
    }
}

control ShEgressDeparser(packet_out packet, out none_t cloned, out none_t recirculated, inout headers_t hdr,
                         in egress_meta_t meta, in psa_egress_output_metadata_t istd,
                         in psa_egress_deparser_input_metadata_t edstd) {
    apply {
        packet.emit(hdr);
    }
}

IngressPipeline(ShIngressParser(), ShIngress(), ShIngressDeparser()) ip;
EgressPipeline(ShEgressParser(), ShEgress(), ShEgressDeparser()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
