// Everything around the ingress control of an application on IPv4 with TCP:
// parser, header checksum, deparser. The program declares metadata_t before it
// includes this file.
#include "headers.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    tcp_t      tcp;
}

#define IPV4_CHECKED(h) { h.version, h.ihl, h.diffserv, h.totalLen, \
        h.identification, h.flags, h.fragOffset, h.ttl, h.protocol, \
        h.srcAddr, h.dstAddr }

parser InetParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
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
            PROTO_TCP: parse_tcp;
            default: accept;
        }
    }
    state parse_tcp {
        packet.extract(hdr.tcp);
        transition accept;
    }
}

control InetVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_CHECKED(hdr.ipv4),
                        hdr.ipv4.hdrChecksum, HashAlgorithm.csum16);
    }
}

control InetEgress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    apply { }
}

control InetCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_CHECKED(hdr.ipv4),
                        hdr.ipv4.hdrChecksum, HashAlgorithm.csum16);
    }
}

control InetDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.tcp);
    }
}
