#include <core.p4>
#include <tna.p4>
header ipv4_t { bit<32> src; bit<32> dst; }
struct headers_t { ipv4_t ip; }
struct md_t { bit<16> idx; bit<32> v; }
struct pair { bit<32> lo; bit<32> hi; }
parser IP(packet_in pkt, out headers_t hdr, out md_t md, out ingress_intrinsic_metadata_t ig_intr_md) {
  state start { pkt.extract(ig_intr_md); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.ip); transition accept; }
}
control IG(inout headers_t hdr, inout md_t md, in ingress_intrinsic_metadata_t ig_intr_md,
   in ingress_intrinsic_metadata_from_parser_t p, inout ingress_intrinsic_metadata_for_deparser_t d, inout ingress_intrinsic_metadata_for_tm_t tm) {
  Hash<bit<16>>(HashAlgorithm_t.CRC16) h;
  Register<pair, bit<16>>(65536) reg;
  RegisterAction<pair, bit<16>, bit<32>>(reg) ra = {
    void apply(inout pair v, out bit<32> rv) {
      if (v.lo > hdr.ip.src) { rv = v.hi; v.hi = v.hi + 1; } else { rv = 0; }
    }
  };
  Counter<bit<64>, bit<16>>(1024, CounterType_t.PACKETS) c;
  DirectRegister<bit<32>>() dr;
  DirectRegisterAction<bit<32>, bit<32>>(dr) dra = { void apply(inout bit<32> v, out bit<32> o) { v = v + 1; o = v; } };
  action hit(bit<9> port) { tm.ucast_egress_port = port; md.v = dra.execute(); }
  table t { key = { hdr.ip.dst : exact; } actions = { hit; NoAction; } size = 100; registers = dr; }
  apply {
    md.idx = h.get({hdr.ip.src, hdr.ip.dst});
    md.v = ra.execute(md.idx);
    c.count(md.idx);
    t.apply();
    if (md.v == 0) d.drop_ctl = 1;
  }
}
control ID(packet_out pkt, inout headers_t hdr, in md_t md, in ingress_intrinsic_metadata_for_deparser_t d) { Checksum() ck; apply { hdr.ip.dst = (bit<32>)ck.update({hdr.ip.src}); pkt.emit(hdr); } }
struct eh_t { ipv4_t ip; }
struct em_t { bit<8> x; }
parser EP(packet_in pkt, out eh_t hdr, out em_t md, out egress_intrinsic_metadata_t m) { state start { pkt.extract(m); transition accept; } }
control EG(inout eh_t hdr, inout em_t md, in egress_intrinsic_metadata_t m, in egress_intrinsic_metadata_from_parser_t p, inout egress_intrinsic_metadata_for_deparser_t d, inout egress_intrinsic_metadata_for_output_port_t o) { apply { md.x = 1; } }
control ED(packet_out pkt, inout eh_t hdr, in em_t md, in egress_intrinsic_metadata_for_deparser_t d) { apply { pkt.emit(hdr); } }
Pipeline(IP(), IG(), ID(), EP(), EG(), ED()) pipe;
Switch(pipe) main;
