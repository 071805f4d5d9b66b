// Every construct of the language once. Read by the tests; it means nothing.
#define PAIR(a, b) a; b
@pkginfo[organization = "nicprof", version = "1" ++ "2"]
const bit<16> ETHER = 16w0x_08_00;
const int<8> MINUS = -8s1;
const bool YES = !false;
const string TEXT = "a \"quoted\" \\ text";
error { NoError, TooShort }
match_kind { exact, lpm, ternary, }
typedef bit<48> Mac;
@p4runtime_translation("example.org/port", bit<32>)
type bit<9> PortId;
@p4runtime_translation("example.org/name", string) type bit<7> Name;
typedef struct Inner { bit<1> x; } Alias;
enum Color { RED, GREEN, }
enum bit<8> Kind { A = 1, @hidden B = A + 1 }

header H<T> { bit<8> a; T b; varbit<320> rest; @len int<4> s; bit<(2 * 4)> w; }
header Stacked { bit<8>[4] cells; bit<4> more[2]; }
header_union U { H<bit<8>> h; Stacked s; }
struct Headers { H<bit<8>>[3] stack; U u; tuple<bit<8>, bool> pair; list<Mac> macs; Color[2][3] grid; }

extern Forward;
extern Reg<T, I> {
    Reg(I size);
    Reg(I size, T initial);
    @pure T read(in I index);
    void write(in I index, in T value);
    abstract void apply(inout T value, @optional out T result);
}
extern T first<T, S>(in T value, in S other = 1);
extern void log(string text);

parser PType<H>(packet_in pkt, out H hdr);
control CType<H>(inout H hdr);
package Pipe<H>(PType<H> p, CType<H> c = none());

bit<32> twice(in bit<32> x) {
    return x + x;
}
T same<T>(in T x) { return x; }

@name("top.p")
parser P(packet_in pkt, out Headers hdr)(bit<8> depth) {
    value_set<bit<16>>(4) tpids;
    value_set<tuple<bit<16>, bit<8>>>(8) pairs;
    bit<8> left = depth;
    Reg<bit<8>, bit<32>>(32w16) inside;
    state start {
        pkt.extract(hdr.stack.next);
        @here { left = left - 1; }
        if (left > 3) left = 3; else { ; }
        const bit<8> five = 5;
        transition select(hdr.stack.last.a, left[3:0], pkt.lookahead<bit<16>>()) {
            (0, 1, tpids): more;
            (1 .. five, 2 &&& 0xF, _): more;
            (_, _, (bit<16>) 3): accept;
            default: reject;
        }
    }
    @loop state more {
        transition select(left) {
            0: accept;
            (1): accept;
            (left + 1) * 2: accept;
            3 &&& 7: start;
            4 .. 6: start;
            _: type;
        }
    }
    state type { transition apply; }
    state apply { }
}

control C(inout Headers hdr, out bit<9> port)(Reg<bit<8>, bit<8>> shared) {
    @hidden action nop() { }
    action set(bit<9> p, @optional in bit<8> q) { port = p; exit; }
    Reg<bit<8>, bit<8>>(8) own = {
        void apply(inout bit<8> value, out bit<8> result) {
            result = value;
            value = value |+| 1;
        }
        Reg<bit<8>, bit<8>>(2) nested;
    };
    Reg<bit<8>, bit<8>>(8) many[4];
    Sub() sub;
    bit<8> counter;
    @size(3) table t {
        key = {
            hdr.stack[0].a : exact @name("first");
            hdr.u.isValid() : ternary;
            counter[7:4] ++ counter[0+:4] : lpm @a @b("c d" (e, f));
        }
        actions = { nop; @defaultonly set(1); .nop(); }
        const default_action = set(1, q = 2);
        largest_priority_wins = false;
        @note entries = {
            (0, true, _): nop();
            const priority = 10: (1 &&& 3, default, 4 .. 5): set(3) @x;
            2: nop;
        }
        size = 1 << 10;
        implementation = own;
    }
    apply @atomic {
        bit<8> key = 0;
        Headers entries = { ... };
        bit<8> state;
        bool b = t.apply().hit && !sub.apply(hdr).miss || port < 3 && 4 > key;
        switch (t.apply().action_run) {
            nop: { key = 1; }
            set:
            default: @quiet { return; }
        }
        switch (key) {
            1: 2: { key += 2; }
            (3): { }
            Kind.A: { exit; }
        }
        key = (bit<8>) port << 2 >> 1 & ~key ^ 3 | 4;
        key = b ? key == 1 ? 2 : 3 : 4 - 5 - 6;
        key = -(-key) * (2 + 3) / 4 % 5 |-| +key;
        port[3:0] = port[7:4] ++ 2w1 ++ 2w0b11;
        port[0+:4] = 1;
        hdr.u.s = {#};
        hdr.pair = { 1, true };
        hdr.stack[key] = { a = 1, b = 2, ... };
        entries.stack[1] = (H<bit<8>>) { 1, 2, ... };
        state = first<bit<8>, _>(key, other = 3);
        state = .twice(key);
        state = same<bit<(8 >> 1)>>(key)[3:0] ++ 4w0;
        key <<= 1; key >>= 1; key -= 1; key *= 2; key /= 3; key %= 4; key &= 5; key |= 6; key ^= 7;
        key |+|= 1; key |-|= 2;
        (state) = key;
        if (error.NoError == error.TooShort) exit; else if (b) { } else log("x");
        C<bit<8>>.apply(hdr, port);
        Sub.apply(hdr);
        own.write(_, this.size);
        for (bit<8> i = 0, bit<8> j = 1; i < 8; i += 1, j = j + i) {
            if (i == 2) break;
            if (i == 3) continue;
        }
        for (;key < 3;) { ; }
        @unroll for (bit<8> i in 0 .. key) key = i;
        for (H<bit<8>> h in hdr.stack) { @fast key = h.a; }
        bit<W + 1> wide = 1 > 0 ? 1 : 2;
        PAIR(key = 1, key = 2);
    }
}
;
Pipe<Headers>(P(3), C(Reg<bit<8>, bit<8>>(4))) main;
