#include <core.p4>
#include <v1model.p4>
header eth_t { bit<48> d; bit<48> s; bit<16> t; }
header mpls_t { bit<20> label; bit<3> tc; bit<1> bos; bit<8> ttl; }
header opt_t { bit<8> len; varbit<320> data; }
header a_t { bit<8> x; } header b_t { bit<16> y; }
header_union u_t { a_t a; b_t b; }
struct headers { eth_t eth; mpls_t[3] mpls; opt_t opt; u_t u; }
struct meta { bit<32> i; bit<8> n; bool f; }
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) {
  value_set<bit<16>>(4) vs;
  state start { p.extract(hdr.eth); transition select(hdr.eth.t, sm.ingress_port) { (0x8847, _): mpls; (0x800 &&& 0xff00, 1): opt; (vs, 2): uu; (1 .. 5, 3): accept; } }
  state mpls { p.extract(hdr.mpls.next); m.n = m.n + 1; transition select(hdr.mpls.last.bos) { 0: mpls; 1: accept; } }
  state opt { p.extract(hdr.opt, (bit<32>)(p.lookahead<bit<8>>()) << 3); verify(hdr.opt.len < 10, error.NoMatch); transition accept; }
  state uu { p.extract(hdr.u.a); transition accept; }
}
control V(inout headers hdr, inout meta m) { apply { } }
control Sub(inout headers h, in bit<8> k, out bit<32> res)(bit<32> size) {
  register<bit<8>>(size) r;
  @name("renamed") counter(size, CounterType.bytes) c;
  bit<8> v;
  action act(in bit<8> q) { h.eth.s = (bit<48>)q; v = q + 1; }
  table tb { key = { h.eth.d : exact @name("dmac"); k : ternary; h.mpls[1].label[7:0] : exact; } actions = { act(k); @defaultonly NoAction; } const entries = { (1, 2, 3) : act(k); } }
  apply { r.read(v, (bit<32>)k); c.count((bit<32>)v); switch (tb.apply().action_run) { act: { res = 1; } default: { res = 2; return; } } res = (bit<32>)v; }
}
bit<8> maxf(in bit<8> a, in bit<8> b) { if (a > b) { return a; } return b; }
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
  Sub(32w64) s1; Sub(128) s2;
  register<bit<32>>(1) one;
  action dec(inout bit<8> x) { x = x - 1; if (x == 0) { mark_to_drop(sm); exit; } }
  apply {
    bit<32> r1; bit<32> r2;
    s1.apply(hdr, m.n, r1);
    s2.apply(hdr, m.n + 1, r2);
    dec(hdr.mpls[0].ttl);
    if (hdr.u.isValid() && maxf(m.n, 8w3) == 3) { hdr.u.b.setValid(); hdr.u.b.y = 5; }
    hdr.mpls.push_front(1);
    hdr.mpls[m.i].ttl = 1;
    @atomic { bit<32> c; one.read(c, 0); one.write(0, c + 1); }
    for (bit<8> j in 1 .. 2) { m.n = m.n + j; if (m.n == 7) break; }
    for (bit<8> j = 0; j < m.n; j = j + 1) { m.i = m.i + 1; }
    m.i[7:0] = hdr.eth.d[47:40] ;
    switch (m.n) { 1: 2: { m.i = 0; } 3: { m.i = 2; } }
    clone(CloneType.I2E, 32w5); 
  }
}
control E(inout headers h, inout meta m, inout standard_metadata_t s) { apply { } }
control C(inout headers h, inout meta m) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
