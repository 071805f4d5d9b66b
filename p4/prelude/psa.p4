// The Portable Switch Architecture, version 1.1 of its specification, with the
// widths of psa_switch and the packet lengths that the DPDK target is given.
// Written for nicprof.
#ifndef __PSA_P4__
#define __PSA_P4__
#include <core.p4>

// Each kind of identifier is a plain width, a type that the control plane may
// see otherwise, both once more for use in headers, and functions between them.
#define PSA_ID(NAME, W) \
    typedef bit<W> NAME ## Uint_t; \
    @p4runtime_translation("p4.org/psa/v1", W) type NAME ## Uint_t NAME ## _t; \
    typedef bit<W> NAME ## InHeaderUint_t; \
    @p4runtime_translation("p4.org/psa/v1", W) type NAME ## InHeaderUint_t NAME ## InHeader_t; \
    NAME ## _t psa_ ## NAME ## _header_to_int(in NAME ## InHeader_t x) { \
        return (NAME ## _t)(NAME ## Uint_t)(NAME ## InHeaderUint_t)x; \
    } \
    NAME ## InHeader_t psa_ ## NAME ## _int_to_header(in NAME ## _t x) { \
        return (NAME ## InHeader_t)(NAME ## InHeaderUint_t)(NAME ## Uint_t)x; \
    }
PSA_ID(PortId, 32)
PSA_ID(MulticastGroup, 32)
PSA_ID(CloneSessionId, 16)
PSA_ID(ClassOfService, 8)
PSA_ID(PacketLength, 16)
PSA_ID(EgressInstance, 16)
PSA_ID(Timestamp, 64)
typedef error ParserError_t;

const PortId_t PSA_PORT_RECIRCULATE = (PortId_t)0xfffffffa;
const PortId_t PSA_PORT_CPU = (PortId_t)0xfffffffd;
const CloneSessionId_t PSA_CLONE_SESSION_TO_CPU = (CloneSessionId_t)0;

match_kind { range, selector, optional }

enum PSA_IdleTimeout_t { NO_TIMEOUT, NOTIFY_CONTROL }
enum PSA_PacketPath_t {
    NORMAL, NORMAL_UNICAST, NORMAL_MULTICAST, CLONE_I2E, CLONE_E2E, RESUBMIT, RECIRCULATE
}

// Intrinsic metadata.
struct psa_ingress_parser_input_metadata_t {
    PortId_t         ingress_port;
    PSA_PacketPath_t packet_path;
}
struct psa_egress_parser_input_metadata_t {
    PortId_t         egress_port;
    PSA_PacketPath_t packet_path;
}
struct psa_ingress_input_metadata_t {
    PortId_t         ingress_port;
    PSA_PacketPath_t packet_path;
    Timestamp_t      ingress_timestamp;
    ParserError_t    parser_error;
}
struct psa_ingress_output_metadata_t {
    ClassOfService_t class_of_service;
    bool             clone;
    CloneSessionId_t clone_session_id;
    bool             drop;
    bool             resubmit;
    MulticastGroup_t multicast_group;
    PortId_t         egress_port;
}
struct psa_egress_input_metadata_t {
    ClassOfService_t class_of_service;
    PortId_t         egress_port;
    PSA_PacketPath_t packet_path;
    EgressInstance_t instance;
    Timestamp_t      egress_timestamp;
    ParserError_t    parser_error;
}
struct psa_egress_deparser_input_metadata_t {
    PortId_t egress_port;
}
struct psa_egress_output_metadata_t {
    bool             clone;
    CloneSessionId_t clone_session_id;
    bool             drop;
}

// State.
enum PSA_CounterType_t { PACKETS, BYTES, PACKETS_AND_BYTES }
extern Counter<W, S> {
    Counter(bit<32> n_counters, PSA_CounterType_t type);
    void count(in S index);
    void count(in S index, in bit<32> pkt_len);
}
extern DirectCounter<W> {
    DirectCounter(PSA_CounterType_t type);
    void count();
    void count(in bit<32> pkt_len);
}
enum PSA_MeterType_t { PACKETS, BYTES }
enum PSA_MeterColor_t { RED, GREEN, YELLOW }
extern Meter<S> {
    Meter(bit<32> n_meters, PSA_MeterType_t type);
    PSA_MeterColor_t execute(in S index);
    PSA_MeterColor_t execute(in S index, in PSA_MeterColor_t color);
    PSA_MeterColor_t dpdk_execute(in S index, in bit<32> pkt_len);
    PSA_MeterColor_t dpdk_execute(in S index, in PSA_MeterColor_t color, in bit<32> pkt_len);
}
extern DirectMeter {
    DirectMeter(PSA_MeterType_t type);
    PSA_MeterColor_t execute();
    PSA_MeterColor_t execute(in PSA_MeterColor_t color);
    PSA_MeterColor_t dpdk_execute(in bit<32> pkt_len);
    PSA_MeterColor_t dpdk_execute(in PSA_MeterColor_t color, in bit<32> pkt_len);
}
extern Register<T, S> {
    Register(bit<32> size);
    Register(bit<32> size, T initial_value);
    T read(in S index);
    void write(in S index, in T value);
}
extern ActionProfile { ActionProfile(bit<32> size); }
enum PSA_HashAlgorithm_t {
    IDENTITY, CRC32, CRC32_CUSTOM, CRC16, CRC16_CUSTOM, ONES_COMPLEMENT16, TARGET_DEFAULT
}
extern ActionSelector {
    ActionSelector(PSA_HashAlgorithm_t algo, bit<32> size, bit<32> outputWidth);
}
extern Digest<T> {
    Digest();
    void pack(in T data);
}

// Functions of the packet.
extern Hash<O> {
    Hash(PSA_HashAlgorithm_t algo);
    O get_hash<D>(in D data);
    O get_hash<T, D>(in T base, in D data, in T max);
}
extern Checksum<W> {
    Checksum(PSA_HashAlgorithm_t hash);
    void clear();
    void update<T>(in T data);
    W get();
}
extern InternetChecksum {
    InternetChecksum();
    void clear();
    void add<T>(in T data);
    void subtract<T>(in T data);
    bit<16> get();
    bit<16> get_state();
    void set_state(in bit<16> checksum_state);
}
extern Random<T> {
    Random(T min, T max);
    T read();
}
extern bool psa_clone_i2e(in psa_ingress_output_metadata_t istd);
extern bool psa_resubmit(in psa_ingress_output_metadata_t istd);
extern bool psa_normal(in psa_ingress_output_metadata_t istd);
extern bool psa_clone_e2e(in psa_egress_output_metadata_t istd);
extern bool psa_recirculate(in psa_egress_output_metadata_t istd,
                            in psa_egress_deparser_input_metadata_t edstd);
extern void assert(in bool check);
extern void assume(in bool check);

action send_to_port(inout psa_ingress_output_metadata_t meta, in PortId_t egress_port) {
    meta.drop = false;
    meta.multicast_group = (MulticastGroup_t)0;
    meta.egress_port = egress_port;
}
action multicast(inout psa_ingress_output_metadata_t meta, in MulticastGroup_t multicast_group) {
    meta.drop = false;
    meta.multicast_group = multicast_group;
}
action ingress_drop(inout psa_ingress_output_metadata_t meta) { meta.drop = true; }
action egress_drop(inout psa_egress_output_metadata_t meta) { meta.drop = true; }

// Blocks, in the order that packets take.
parser IngressParser<H, M, RESUBM, RECIRCM>(
    packet_in buffer, out H parsed_hdr, inout M user_meta,
    in psa_ingress_parser_input_metadata_t istd, in RESUBM resubmit_meta, in RECIRCM recirculate_meta);
control Ingress<H, M>(
    inout H hdr, inout M user_meta,
    in psa_ingress_input_metadata_t istd, inout psa_ingress_output_metadata_t ostd);
control IngressDeparser<H, M, CI2EM, RESUBM, NM>(
    packet_out buffer, out CI2EM clone_i2e_meta, out RESUBM resubmit_meta, out NM normal_meta,
    inout H hdr, in M meta, in psa_ingress_output_metadata_t istd);
parser EgressParser<H, M, NM, CI2EM, CE2EM>(
    packet_in buffer, out H parsed_hdr, inout M user_meta,
    in psa_egress_parser_input_metadata_t istd, in NM normal_meta, in CI2EM clone_i2e_meta,
    in CE2EM clone_e2e_meta);
control Egress<H, M>(
    inout H hdr, inout M user_meta,
    in psa_egress_input_metadata_t istd, inout psa_egress_output_metadata_t ostd);
control EgressDeparser<H, M, CE2EM, RECIRCM>(
    packet_out buffer, out CE2EM clone_e2e_meta, out RECIRCM recirculate_meta,
    inout H hdr, in M meta, in psa_egress_output_metadata_t istd,
    in psa_egress_deparser_input_metadata_t edstd);

extern PacketReplicationEngine { PacketReplicationEngine(); }
extern BufferingQueueingEngine { BufferingQueueingEngine(); }

package IngressPipeline<IH, IM, NM, CI2EM, RESUBM, RECIRCM>(
    IngressParser<IH, IM, RESUBM, RECIRCM> ip, Ingress<IH, IM> ig,
    IngressDeparser<IH, IM, CI2EM, RESUBM, NM> id);
package EgressPipeline<EH, EM, NM, CI2EM, CE2EM, RECIRCM>(
    EgressParser<EH, EM, NM, CI2EM, CE2EM> ep, Egress<EH, EM> eg,
    EgressDeparser<EH, EM, CE2EM, RECIRCM> ed);
package PSA_Switch<IH, IM, EH, EM, NM, CI2EM, CE2EM, RESUBM, RECIRCM>(
    IngressPipeline<IH, IM, NM, CI2EM, RESUBM, RECIRCM> ingress, PacketReplicationEngine pre,
    EgressPipeline<EH, EM, NM, CI2EM, CE2EM, RECIRCM> egress, BufferingQueueingEngine bqe);

#endif
