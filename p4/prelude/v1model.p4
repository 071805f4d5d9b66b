// The v1model architecture of the behavioral model's simple_switch, as its
// documentation describes it. From V1MODEL_VERSION 20200408 on, indices have a
// type of their own. Written for nicprof.
#ifndef _V1_MODEL_P4_
#define _V1_MODEL_P4_
#include <core.p4>

#ifndef V1MODEL_VERSION
#define V1MODEL_VERSION 20180101
#endif
const bit<32> __v1model_version = V1MODEL_VERSION;

match_kind { range, optional, selector }

#if V1MODEL_VERSION >= 20200408
#define V1_ONE_TYPE <I>
#define V1_REGISTER_TYPES <T, I>
#define V1_INDEX I
typedef bit<9> PortId_t;
#define V1_PORT PortId_t
#else
#define V1_ONE_TYPE
#define V1_REGISTER_TYPES <T>
#define V1_INDEX bit<32>
#define V1_PORT bit<9>
#endif

struct standard_metadata_t {
    V1_PORT ingress_port;
    V1_PORT egress_spec;
    V1_PORT egress_port;
    bit<32> instance_type;
    bit<32> packet_length;
    bit<32> enq_timestamp;
    bit<19> enq_qdepth;
    bit<32> deq_timedelta;
    bit<19> deq_qdepth;
    bit<48> ingress_global_timestamp;
    bit<48> egress_global_timestamp;
    bit<16> mcast_grp;
    bit<16> egress_rid;
    bit<1>  checksum_error;
    error   parser_error;
    bit<3>  priority;
}

enum CounterType { packets, bytes, packets_and_bytes }
enum MeterType { packets, bytes }
enum CloneType { I2E, E2E }
enum HashAlgorithm {
    crc32, crc32_custom, crc16, crc16_custom, random, identity, csum16, xor16
}
#define V1MODEL_METER_COLOR_GREEN 0
#define V1MODEL_METER_COLOR_YELLOW 1
#define V1MODEL_METER_COLOR_RED 2

// State.
extern register V1_REGISTER_TYPES {
    register(bit<32> size);
    void read(out T result, in V1_INDEX index);
    void write(in V1_INDEX index, in T value);
}
extern counter V1_ONE_TYPE {
    counter(bit<32> size, CounterType type);
    void count(in V1_INDEX index);
}
extern direct_counter {
    direct_counter(CounterType type);
    void count();
}
extern meter V1_ONE_TYPE {
    meter(bit<32> size, MeterType type);
    void execute_meter<T>(in V1_INDEX index, out T result);
}
extern direct_meter<T> {
    direct_meter(MeterType type);
    void read(out T result);
}
extern action_profile { action_profile(bit<32> size); }
extern action_selector {
    action_selector(HashAlgorithm algorithm, bit<32> size, bit<32> outputWidth);
}
extern Checksum16 {
    Checksum16();
    bit<16> get<D>(in D data);
}

// Functions.
extern void hash<O, T, D, M>(out O result, in HashAlgorithm algo, in T base, in D data, in M max);
extern void random<T>(out T result, in T lo, in T hi);
extern void verify_checksum<T, O>(in bool condition, in T data, in O checksum, HashAlgorithm algo);
extern void update_checksum<T, O>(in bool condition, in T data, inout O checksum, HashAlgorithm algo);
extern void verify_checksum_with_payload<T, O>(in bool condition, in T data, in O checksum,
                                               HashAlgorithm algo);
extern void update_checksum_with_payload<T, O>(in bool condition, in T data, inout O checksum,
                                               HashAlgorithm algo);
extern void mark_to_drop();
extern void mark_to_drop(inout standard_metadata_t standard_metadata);
extern void digest<T>(in bit<32> receiver, in T data);
extern void clone(in CloneType type, in bit<32> session);
extern void clone3<T>(in CloneType type, in bit<32> session, in T data);
extern void clone_preserving_field_list(in CloneType type, in bit<32> session, bit<8> index);
extern void resubmit<T>(in T data);
extern void resubmit_preserving_field_list(bit<8> index);
extern void recirculate<T>(in T data);
extern void recirculate_preserving_field_list(bit<8> index);
extern void truncate(in bit<32> length);
extern void assert(in bool check);
extern void assume(in bool check);
extern void log_msg(string msg);
extern void log_msg<T>(string msg, in T data);

// Blocks, in the order that packets take.
parser Parser<H, M>(packet_in b, out H parsedHdr, inout M meta,
                    inout standard_metadata_t standard_metadata);
control VerifyChecksum<H, M>(inout H hdr, inout M meta);
control Ingress<H, M>(inout H hdr, inout M meta, inout standard_metadata_t standard_metadata);
control Egress<H, M>(inout H hdr, inout M meta, inout standard_metadata_t standard_metadata);
control ComputeChecksum<H, M>(inout H hdr, inout M meta);
control Deparser<H>(packet_out b, in H hdr);

package V1Switch<H, M>(Parser<H, M> p, VerifyChecksum<H, M> vr, Ingress<H, M> ig,
                       Egress<H, M> eg, ComputeChecksum<H, M> ck, Deparser<H> dep);

#endif
