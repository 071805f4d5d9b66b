// Connection tracking for PNA: a table that the data plane itself fills, with the
// direction's view of the addresses as its key; each connection's packets are
// counted, and each receiver's connections.
#include <core.p4>
#include <pna.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
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

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct metadata_t {
}

struct tracked_t { }

parser TrackParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                   in pna_main_parser_input_metadata_t istd) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control TrackPre(in headers_t hdr, inout metadata_t meta, in pna_pre_input_metadata_t istd,
                 inout pna_pre_output_metadata_t ostd) {
    apply { }
}

control TrackMain(inout headers_t hdr, inout metadata_t meta, in pna_main_input_metadata_t istd,
                  inout pna_main_output_metadata_t ostd) {
    Counter<bit<64>, bit<16>>(65536, PNA_CounterType_t.PACKETS) received;
    Register<bit<32>, bit<16>>(65536) connections;
    DirectCounter<bit<64>>(PNA_CounterType_t.PACKETS_AND_BYTES) packets;

    action tracked() {
        packets.count();
        restart_expire_timer();
    }
    action missed() {
        if (istd.direction == PNA_Direction_t.HOST_TO_NET) {
            add_entry(action_name = "tracked", action_params = (tracked_t){ },
                      expire_time_profile_id = (ExpireTimeProfileId_t)1);
            bit<32> n = connections.read(hdr.ipv4.dst[15:0]);
            connections.write(hdr.ipv4.dst[15:0], n + 1);
        } else {
            drop_packet();
        }
    }
    table ct {
        key = {
            SelectByDirection(istd.direction, hdr.ipv4.src, hdr.ipv4.dst): exact @name("remote");
            SelectByDirection(istd.direction, hdr.ipv4.dst, hdr.ipv4.src): exact @name("local");
        }
        actions = { @tableonly tracked; @defaultonly missed; }
        add_on_miss = true;
        const default_action = missed;
        size = 65536;
        pna_direct_counter = packets;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            ct.apply();
            received.count(hdr.ipv4.dst[15:0]);
        }
    }
}

control TrackDeparser(packet_out packet, in headers_t hdr, in metadata_t meta, in pna_main_output_metadata_t ostd) {
    apply {
        packet.emit(hdr);
    }
}

PNA_NIC(TrackParser(), TrackPre(), TrackMain(), TrackDeparser()) main;
