// A load balancer with the structure of the paper's Figure 4: counters of the
// servers, and the least loaded one of each service.
#include <core.p4>
#include <v1model.p4>

typedef bit<32> FlowID;
struct metadata_t { }
#include "inet.p4"

control TheIngress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    register<bit<32>>(4096) DipCntr;
    register<bit<32>>(4) MinDip;
    register<bit<32>>(4) MinLoad;

    action setDip(bit<32> dip, bit<9> port) {
        hdr.ethernet.dstAddr = (bit<48>)dip;
        standard_metadata.egress_spec = port;
    }
    table connTbl {
        key = { hdr.ipv4.srcAddr: exact; }
        actions = { setDip; NoAction; }
        default_action = NoAction();
        size = 1024;
    }
    apply {
        FlowID vip = (FlowID)(hdr.ipv4.dstAddr & 3);
        bit<32> cntr;
        bit<32> least;
        bit<32> least_dip;
        connTbl.apply();
        DipCntr.read(cntr, hdr.ipv4.dstAddr);
        cntr = cntr + 1;
        DipCntr.write(hdr.ipv4.dstAddr, cntr);
        MinLoad.read(least, vip);
        if (cntr < least) {
            MinLoad.write(vip, cntr);
            MinDip.write(vip, hdr.ipv4.dstAddr);
        } else {
            MinDip.read(least_dip, vip);
            if (least_dip == hdr.ipv4.dstAddr) {
                MinLoad.write(vip, cntr);
            }
        }
    }
}

V1Switch(TheParser(), TheVerify(), TheIngress(), TheEgress(), TheCompute(), TheDeparser()) main;
