// Externs of PSA: a register with an initial value, counters, a meter, a hash
// over a range, an incremental checksum, a digest, an action selector.
#include <core.p4>
#include <psa.p4>

header ether_t { bit<48> dst; bit<48> src; bit<16> kind; }
header ip_t { bit<32> src; bit<32> dst; bit<16> sum; bit<16> length; }
struct headers_t { ether_t ether; ip_t ip; }
struct empty_t { }
struct meta_t { bit<16> bucket; PSA_MeterColor_t colour; bit<32> seen; }
struct news_t { bit<32> src; bit<16> bucket; }

parser InParser(packet_in p, out headers_t hdr, inout meta_t meta,
                in psa_ingress_parser_input_metadata_t istd, in empty_t re, in empty_t rc) {
    InternetChecksum() sum;
    state start {
        p.extract(hdr.ether);
        transition select(hdr.ether.kind) { 0x800: ip; default: accept; }
    }
    state ip {
        p.extract(hdr.ip);
        sum.subtract(hdr.ip.sum);
        sum.add({ hdr.ip.src, hdr.ip.dst });
        verify(sum.get() == 0, error.NoMatch);
        transition accept;
    }
}

control In(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
           inout psa_ingress_output_metadata_t ostd) {
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) hash;
    Register<bit<32>, bit<16>>(1024, 0) seen;
    Counter<bit<64>, bit<16>>(1024, PSA_CounterType_t.PACKETS_AND_BYTES) counts;
    DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS) hits;
    Meter<bit<16>>(1024, PSA_MeterType_t.BYTES) rate;
    ActionSelector(PSA_HashAlgorithm_t.CRC32, 128, 16) paths;

    action to_port(PortId_t port) {
        hits.count();
        send_to_port(ostd, port);
    }
    table routes {
        key = { hdr.ip.dst: lpm; hdr.ip.src: selector; }
        actions = { to_port; NoAction; }
        size = 4096;
        psa_implementation = paths;
        psa_direct_counter = hits;
    }
    apply {
        meta.bucket = hash.get_hash(16w0, { hdr.ip.src, hdr.ip.dst }, 16w1024);
        meta.seen = seen.read(meta.bucket);
        seen.write(meta.bucket, meta.seen + 1);
        counts.count(meta.bucket);
        meta.colour = rate.execute(meta.bucket);
        if (meta.colour == PSA_MeterColor_t.RED) {
            ingress_drop(ostd);
        } else if (hdr.ip.isValid()) {
            routes.apply();
        }
    }
}

control InDeparser(packet_out p, out empty_t ci2e, out empty_t re, out empty_t normal,
                   inout headers_t hdr, in meta_t meta, in psa_ingress_output_metadata_t istd) {
    Digest<news_t>() news;
    apply {
        if (meta.seen == 0) { news.pack({ hdr.ip.src, meta.bucket }); }
        p.emit(hdr);
    }
}

parser EgParser(packet_in p, out headers_t hdr, inout empty_t meta,
                in psa_egress_parser_input_metadata_t istd, in empty_t normal, in empty_t ci2e, in empty_t ce2e) {
    state start { p.extract(hdr.ether); transition accept; }
}
control Eg(inout headers_t hdr, inout empty_t meta, in psa_egress_input_metadata_t istd,
           inout psa_egress_output_metadata_t ostd) {
    apply { if (istd.egress_port == (PortId_t)0) { egress_drop(ostd); } }
}
control EgDeparser(packet_out p, out empty_t ce2e, out empty_t rc, inout headers_t hdr, in empty_t meta,
                   in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) {
    apply { p.emit(hdr); }
}

IngressPipeline(InParser(), In(), InDeparser()) ip;
EgressPipeline(EgParser(), Eg(), EgDeparser()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
