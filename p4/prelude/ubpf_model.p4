// The user-space eBPF architecture that p4c-ubpf compiles for. From
// UBPF_MODEL_VERSION 20200515 on, blocks are given standard metadata. Written
// for nicprof.
#ifndef _UBPF_MODEL_P4_
#define _UBPF_MODEL_P4_
#include <core.p4>

#ifndef UBPF_MODEL_VERSION
#define UBPF_MODEL_VERSION 20200515
#endif
const bit<32> __ubpf_model_version = UBPF_MODEL_VERSION;

#if UBPF_MODEL_VERSION >= 20200515
enum ubpf_action { ABORT, DROP, PASS, REDIRECT }
struct standard_metadata {
    bit<32>     input_port;
    bit<32>     packet_length;
    ubpf_action output_action;
    bit<32>     output_port;
    bool        clone;
    bit<32>     clone_port;
}
#define UBPF_STD , inout standard_metadata std
#else
#define UBPF_STD
#endif

extern Register<T, S> {
    Register(bit<32> size);
    T read(in S index);
    void write(in S index, in T value);
}
enum HashAlgorithm { lookup3 }
extern void hash<D>(out bit<32> result, in HashAlgorithm algo, in D data);
extern bit<16> csum_replace2(in bit<16> csum, in bit<16> old, in bit<16> new);
extern bit<16> csum_replace4(in bit<16> csum, in bit<32> old, in bit<32> new);
extern bit<48> ubpf_time_get_ns();
extern void mark_to_drop();
extern void mark_to_pass();
extern void truncate(in bit<32> len);

parser parse<H, M>(packet_in packet, out H headers, inout M meta UBPF_STD);
control pipeline<H, M>(inout H headers, inout M meta UBPF_STD);
@deparser control deparser<H>(packet_out b, in H headers);
package ubpf<H, M>(parse<H, M> prs, pipeline<H, M> p, deparser<H> dprs);

#endif
