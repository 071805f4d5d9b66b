// The Portable NIC Architecture as its specification (0.7 and later) describes
// it, with what the DPDK and TC targets add. Written for nicprof.
#ifndef __PNA_P4__
#define __PNA_P4__
#include <core.p4>

// Each kind of identifier is a plain width, a type that the control plane may
// see otherwise, and both once more for use in headers.
#define PNA_TYPES(NAME, W, INHEADER) \
    typedef bit<W> NAME ## Uint_t; \
    @p4runtime_translation("p4.org/pna/v1", INHEADER) type NAME ## Uint_t NAME ## _t; \
    typedef bit<INHEADER> NAME ## InHeaderUint_t; \
    @p4runtime_translation("p4.org/pna/v1", INHEADER) type NAME ## InHeaderUint_t NAME ## InHeader_t;
// Most also have functions between the two.
#define PNA_ID(NAME, W, INHEADER) \
    PNA_TYPES(NAME, W, INHEADER) \
    NAME ## _t pna_ ## NAME ## _header_to_int(in NAME ## InHeader_t x) { \
        return (NAME ## _t)(NAME ## Uint_t)(NAME ## InHeaderUint_t)x; \
    } \
    NAME ## InHeader_t pna_ ## NAME ## _int_to_header(in NAME ## _t x) { \
        return (NAME ## InHeader_t)(NAME ## InHeaderUint_t)(NAME ## Uint_t)x; \
    }
PNA_ID(PortId, 32, 32)
PNA_ID(InterfaceId, 32, 32)
PNA_ID(MulticastGroup, 32, 32)
PNA_ID(MirrorSessionId, 16, 16)
PNA_TYPES(MirrorSlotId, 8, 8)
PNA_ID(ClassOfService, 8, 8)
PNA_ID(PacketLength, 16, 16)
PNA_ID(MulticastInstance, 16, 16)
PNA_ID(Timestamp, 64, 64)
PNA_ID(FlowId, 32, 32)
PNA_ID(ExpireTimeProfileId, 8, 8)
PNA_ID(PassNumber, 3, 8)
PNA_TYPES(SecurityAssocId, 32, 32)
typedef error ParserError_t;

const InterfaceId_t PNA_PORT_CPU = (InterfaceId_t)0xfffffffd;
const MirrorSessionId_t PNA_MIRROR_SESSION_TO_CPU = (MirrorSessionId_t)0;

match_kind { range, selector, optional }

enum PNA_IdleTimeout_t { NO_TIMEOUT, NOTIFY_CONTROL, AUTO_DELETE }
enum PNA_Direction_t { NET_TO_HOST, HOST_TO_NET }
enum PNA_PacketPath_t {
    FROM_NET_PORT, FROM_NET_LOOPEDBACK, FROM_NET_RECIRCULATED,
    FROM_HOST, FROM_HOST_LOOPEDBACK, FROM_HOST_RECIRCULATED
}

// Intrinsic metadata.
struct pna_pre_input_metadata_t {
    PortId_t        input_port;
    ParserError_t   parser_error;
    PNA_Direction_t direction;
    PassNumber_t    pass;
    bool            loopedback;
}
struct pna_pre_output_metadata_t {
    bool              decrypt;
    SecurityAssocId_t said;
    bit<16>           decrypt_start_offset;
}
struct pna_main_parser_input_metadata_t {
    PNA_Direction_t direction;
    PassNumber_t    pass;
    bool            loopedback;
    PortId_t        input_port;
}
struct pna_main_input_metadata_t {
    PNA_Direction_t  direction;
    PassNumber_t     pass;
    bool             loopedback;
    Timestamp_t      timestamp;
    ParserError_t    parser_error;
    ClassOfService_t class_of_service;
    PortId_t         input_port;
}
struct pna_main_output_metadata_t {
    ClassOfService_t class_of_service;
}

// State.
enum PNA_CounterType_t { PACKETS, BYTES, PACKETS_AND_BYTES }
extern Counter<W, S> {
    Counter(bit<32> n_counters, PNA_CounterType_t type);
    void count(in S index, @optional in bit<32> increment);
}
extern DirectCounter<W> {
    DirectCounter(PNA_CounterType_t type);
    void count(@optional in bit<32> increment);
}
enum PNA_MeterType_t { PACKETS, BYTES }
enum PNA_MeterColor_t { RED, GREEN, YELLOW }
extern Meter<S> {
    Meter(bit<32> n_meters, PNA_MeterType_t type);
    PNA_MeterColor_t execute(in S index);
    PNA_MeterColor_t execute(in S index, in PNA_MeterColor_t color);
    PNA_MeterColor_t dpdk_execute(in S index, in bit<32> pkt_len);
    PNA_MeterColor_t dpdk_execute(in S index, in PNA_MeterColor_t color, in bit<32> pkt_len);
}
extern DirectMeter {
    DirectMeter(PNA_MeterType_t type);
    PNA_MeterColor_t execute(in PNA_MeterColor_t color, @optional in bit<32> pkt_len);
    PNA_MeterColor_t execute();
    PNA_MeterColor_t dpdk_execute(in bit<32> pkt_len);
    PNA_MeterColor_t dpdk_execute(in PNA_MeterColor_t color, in bit<32> pkt_len);
}
extern Register<T, S> {
    Register(bit<32> size);
    Register(bit<32> size, T initial_value);
    T read(in S index);
    void write(in S index, in T value);
}
extern ActionProfile { ActionProfile(bit<32> size); }
enum PNA_HashAlgorithm_t {
    IDENTITY, CRC32, CRC32_CUSTOM, CRC16, CRC16_CUSTOM, ONES_COMPLEMENT16, TOEPLITZ, TARGET_DEFAULT
}
extern ActionSelector {
    ActionSelector(PNA_HashAlgorithm_t algo, bit<32> size, bit<32> outputWidth);
}
extern Digest<T> {
    Digest();
    void pack(in T data);
}
enum ipsec_status { IPSEC_SUCCESS, IPSEC_ERROR }
extern ipsec_accelerator {
    ipsec_accelerator();
    void set_sa_index<T>(in T sa_index);
    void set_ip_header_offset<T>(in T offset);
    void enable();
    void disable();
    bool from_ipsec(out ipsec_status status);
}

// Insertion into the table whose miss runs the action.
extern bool add_entry<T>(string action_name, in T action_params,
                         in ExpireTimeProfileId_t expire_time_profile_id);
extern FlowId_t allocate_flow_id();
extern void set_entry_expire_time(in ExpireTimeProfileId_t expire_time_profile_id);
extern void restart_expire_timer();

// Functions of the packet.
extern Hash<O> {
    Hash(PNA_HashAlgorithm_t algo);
    O get_hash<D>(in D data);
    O get_hash<T, D>(in T base, in D data, in T max);
}
extern Checksum<W> {
    Checksum(PNA_HashAlgorithm_t hash);
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
extern T SelectByDirection<T>(in PNA_Direction_t direction, in T n2h_value, in T h2n_value);
extern void drop_packet();
extern void send_to_port(PortId_t dest_port);
extern void mirror_packet(MirrorSlotId_t mirror_slot_id, MirrorSessionId_t mirror_session_id);
extern void recirculate();

// Blocks, in the order that packets take.
control PreControlT<PH, PM>(
    in PH pre_hdr, inout PM pre_user_meta,
    in pna_pre_input_metadata_t istd, inout pna_pre_output_metadata_t ostd);
parser MainParserT<MH, MM>(
    packet_in pkt, out MH main_hdr, inout MM main_user_meta, in pna_main_parser_input_metadata_t istd);
control MainControlT<MH, MM>(
    inout MH main_hdr, inout MM main_user_meta,
    in pna_main_input_metadata_t istd, inout pna_main_output_metadata_t ostd);
control MainDeparserT<MH, MM>(
    packet_out pkt, in MH main_hdr, in MM main_user_meta, in pna_main_output_metadata_t ostd);
package PNA_NIC<PH, PM, MH, MM>(
    MainParserT<MH, MM> main_parser, PreControlT<PH, PM> pre_control,
    MainControlT<MH, MM> main_control, MainDeparserT<MH, MM> main_deparser);

#endif
