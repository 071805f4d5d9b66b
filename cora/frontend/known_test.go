package frontend

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nicprof/p4"
)

// design is a program, the ingress of v1model with what it declares, whose blocks
// and flow groups were worked out by hand.
type design struct {
	name, meta, locals, apply string
	blocks                    string
	groups                    map[string]string
}

const (
	hashed   = "hash(i, HashAlgorithm.crc32, 32w0, { hdr.ipv4.srcAddr }, 32w1024);\n"
	hashedBy = "[hash(hdr.ipv4.srcAddr)]"
	temps    = "bit<32> i = 0; bit<32> v = 0; bit<32> w = 0; bit<32> x = 0; bit<32> y = 0;\n"
)

// designs are the structures of well-known data-plane algorithms, in programs of
// our own.
var designs = []design{
	{ // Heavy hitters, HashPipe (Sivaraman and others, SOSR 2017): the first stage
		// always takes the new key; the second keeps the larger count, so that its
		// key and count decide about each other.
		"hashpipe", "",
		"register<bit<32>>(1024) key1; register<bit<32>>(1024) count1; register<bit<32>>(1024) key2; register<bit<32>>(1024) count2; bit<32> j = 0;",
		hashed + `
		key1.read(v, i); count1.read(w, i);
		if (v == hdr.ipv4.srcAddr) { count1.write(i, w + 1); return; }
		key1.write(i, hdr.ipv4.srcAddr); count1.write(i, 1);
		hash(j, HashAlgorithm.crc16, 32w0, { v }, 32w1024);
		key2.read(x, j); count2.read(y, j);
		if (x == v) { count2.write(j, y + w); }
		else if (y < w) { key2.write(j, v); count2.write(j, w); }`,
		"{key2 count2}* {key1}* {count1}*",
		map[string]string{"key1": hashedBy, "count1": hashedBy, "key2": hashedBy},
	},
	{ // Count sketch (Charikar and others): each row is added to or subtracted from.
		"count sketch", "",
		"register<int<32>>(1024) row0; register<int<32>>(1024) row1; int<32> s = 0; bit<1> sign = 0;",
		hashed + `
		hash(sign, HashAlgorithm.crc16, 1w0, { hdr.ipv4.srcAddr }, 2w2);
		row0.read(s, i); if (sign == 1) { s = s + 1; } else { s = s - 1; } row0.write(i, s);
		row1.read(s, i); s = sign == 1 ? s + 1 : s - 1; row1.write(i, s);`,
		"{row0}* {row1}*", map[string]string{"row0": hashedBy},
	},
	{ // A key cache (NetCache, SOSP 2017): reads and writes come with different
		// requests, so that nothing follows from itself.
		"key cache", "bit<16> slot;",
		`register<bit<1>>(64) valid; register<bit<32>>(64) value; bit<1> ok = 0;
		action cached(bit<16> slot) { meta.slot = slot; }
		table cache { key = { hdr.tcp.seqNo: exact; } actions = { cached; NoAction; } size = 64; }`,
		`if (!cache.apply().hit) { return; }
		if (hdr.tcp.dstPort == 1) { valid.read(ok, (bit<32>)meta.slot); if (ok == 1) { value.read(hdr.tcp.ackNo, (bit<32>)meta.slot); } }
		else if (hdr.tcp.dstPort == 2) { valid.write((bit<32>)meta.slot, 0); }
		else { value.write((bit<32>)meta.slot, hdr.tcp.ackNo); valid.write((bit<32>)meta.slot, 1); }`,
		"{valid} {value} {cache}", map[string]string{"valid": "[hdr.tcp.seqNo]", "cache": "[hdr.tcp.seqNo]"},
	},
	{ // A SYN counter that blocks a sender: whoever is blocked is not counted any
		// more, and is blocked by the count.
		"SYN flood with early exit", "",
		"register<bit<32>>(1024) syns; register<bit<1>>(1024) blocked; bit<1> b = 0;",
		hashed + `
		blocked.read(b, i);
		if (b == 1) { mark_to_drop(standard_metadata); exit; }
		if (hdr.tcp.syn == 1) { syns.read(v, i); v = v + 1; syns.write(i, v); if (v > 100) { blocked.write(i, 1); } }`,
		"{syns blocked}*", map[string]string{"syns": hashedBy, "blocked": hashedBy},
	},
	{ // The same where counting does not stop: blocked follows from syns alone.
		"SYN flood", "",
		"register<bit<32>>(1024) syns; register<bit<1>>(1024) blocked; bit<1> b = 0;",
		hashed + `
		if (hdr.tcp.syn == 1) { syns.read(v, i); v = v + 1; syns.write(i, v); if (v > 100) { blocked.write(i, 1); } }
		blocked.read(b, i);
		if (b == 1) { mark_to_drop(standard_metadata); }`,
		"{syns}* {blocked}", nil,
	},
	{ // DNS answers pass only to whom asked; an answer ends the request.
		"DNS reflection", "",
		"register<bit<1>>(1024) asked; bit<1> b = 0;",
		`if (hdr.tcp.dstPort == 53) { hash(i, HashAlgorithm.crc32, 32w0, { hdr.ipv4.srcAddr, hdr.ipv4.dstAddr }, 32w1024); asked.write(i, 1); }
		else if (hdr.tcp.srcPort == 53) { hash(i, HashAlgorithm.crc32, 32w0, { hdr.ipv4.dstAddr, hdr.ipv4.srcAddr }, 32w1024);
			asked.read(b, i); if (b == 0) { mark_to_drop(standard_metadata); } else { asked.write(i, 0); } }`,
		"{asked}*", map[string]string{"asked": "[hash(hdr.ipv4.dstAddr, hdr.ipv4.srcAddr)]"},
	},
	{ // Round robin over the members of an ECMP group.
		"round robin", "bit<2> member;",
		`register<bit<2>>(1) turn; action out_by(bit<9> p) { standard_metadata.egress_spec = p; }
		table members { key = { meta.member: exact; } actions = { out_by; } size = 4; }`,
		`turn.read(meta.member, 0); turn.write(0, meta.member + 1); members.apply();`,
		"{turn}* {members}", map[string]string{"turn": "[]", "members": "[state()]"},
	},
	{ // A token bucket of registers: the time of the last packet is overwritten
		// whatever it was.
		"token bucket", "",
		"register<bit<32>>(1024) tokens; register<bit<32>>(1024) last; bit<32> now = 0;",
		hashed + `
		now = (bit<32>)standard_metadata.ingress_global_timestamp;
		tokens.read(v, i); last.read(w, i); last.write(i, now);
		v = v + (now - w); if (v > 1000) { v = 1000; }
		if (v >= 10) { tokens.write(i, v - 10); } else { tokens.write(i, v); mark_to_drop(standard_metadata); }`,
		"{tokens}* {last}", nil,
	},
	{ // The same with the time kept where a packet does not conform.
		"token bucket, time of conforming packets", "",
		"register<bit<32>>(1024) tokens; register<bit<32>>(1024) last; bit<32> now = 0;",
		hashed + `
		now = (bit<32>)standard_metadata.ingress_global_timestamp;
		tokens.read(v, i); last.read(w, i);
		v = v + (now - w);
		if (v >= 10) { tokens.write(i, v - 10); last.write(i, now); } else { mark_to_drop(standard_metadata); }`,
		"{tokens last}*", nil,
	},
	{ // A ring buffer: what may be written depends on both pointers, what may be
		// read too; the slots only follow them.
		"queue", "",
		"register<bit<32>>(1) head; register<bit<32>>(1) tail; register<bit<32>>(256) slots;",
		`head.read(v, 0); tail.read(w, 0);
		if (hdr.tcp.dstPort == 1) { if (w - v < 256) { slots.write(w & 255, hdr.tcp.seqNo); tail.write(0, w + 1); } }
		else { if (v != w) { slots.read(hdr.tcp.seqNo, v & 255); head.write(0, v + 1); } }`,
		"{head tail}* {slots}", map[string]string{"slots": "[state()]", "head": "[]"},
	},
	{ // A replicated store with sequence numbers (NetChain, NSDI 2018).
		"chain replication", "",
		"register<bit<32>>(4096) number; register<bit<32>>(4096) value;",
		`i = hdr.tcp.seqNo & 4095;
		number.read(v, i);
		if (hdr.tcp.dstPort == 1) { value.read(hdr.tcp.ackNo, i); }
		else if (hdr.tcp.dstPort == 2) { number.write(i, v + 1); value.write(i, hdr.tcp.ackNo); }
		else if (hdr.ipv4.dstAddr > v) { number.write(i, hdr.ipv4.dstAddr); value.write(i, hdr.tcp.ackNo); }`,
		"{number}* {value}", map[string]string{"number": "[hdr.tcp.seqNo]", "value": "[hdr.tcp.seqNo]"},
	},
	{ // A Paxos acceptor (Dang and others, NetPaxos): votes follow the promised
		// round, which follows from itself.
		"acceptor", "",
		"register<bit<16>>(65536) round; register<bit<16>>(65536) voted; register<bit<32>>(65536) value; bit<16> r = 0;",
		`i = (bit<32>)hdr.tcp.srcPort;
		round.read(r, i);
		if (hdr.tcp.window >= r) {
			round.write(i, hdr.tcp.window);
			if (hdr.tcp.dstPort == 1) { voted.read(hdr.tcp.checksum, i); value.read(hdr.tcp.ackNo, i); }
			else { voted.write(i, hdr.tcp.window); value.write(i, hdr.tcp.ackNo); }
		}`,
		"{round}* {voted} {value}", map[string]string{"round": "[hdr.tcp.srcPort]", "value": "[hdr.tcp.srcPort]"},
	},
	{ // Round-trip times of a SYN and its answer, smoothed.
		"round-trip time", "",
		"register<bit<32>>(1024) sent; register<bit<32>>(1024) smooth; bit<32> now = 0;",
		`now = (bit<32>)standard_metadata.ingress_global_timestamp;
		if (hdr.tcp.syn == 1 && hdr.tcp.ackNo == 0) { hash(i, HashAlgorithm.crc32, 32w0, { hdr.ipv4.srcAddr, hdr.ipv4.dstAddr }, 32w1024); sent.write(i, now); }
		else if (hdr.tcp.syn == 1) { hash(i, HashAlgorithm.crc32, 32w0, { hdr.ipv4.dstAddr, hdr.ipv4.srcAddr }, 32w1024);
			sent.read(v, i); smooth.read(w, i); smooth.write(i, w - (w >> 3) + ((now - v) >> 3)); }`,
		"{smooth}* {sent}", nil,
	},
	{ // CoDel's control law: the next drop follows from the count, through a table
		// of square roots, and the count from the time of the next drop.
		"CoDel", "bit<32> step;",
		`register<bit<32>>(64) above; register<bit<32>>(64) next; register<bit<32>>(64) count; bit<32> now = 0;
		action interval(bit<32> d) { meta.step = d; }
		table root { key = { w: exact; } actions = { interval; } size = 1024; }`,
		`now = standard_metadata.enq_timestamp; i = (bit<32>)standard_metadata.egress_spec & 63;
		above.read(x, i);
		if (standard_metadata.deq_timedelta < 5000) { above.write(i, 0); }
		else if (x == 0) { above.write(i, now + 100000); }
		else if (now >= x) {
			next.read(v, i); count.read(w, i);
			if (now >= v) { w = w + 1; root.apply(); count.write(i, w); next.write(i, v + meta.step); mark_to_drop(standard_metadata); }
		}`,
		"{next count}* {above}* {root}", map[string]string{"root": "[state(standard_metadata.egress_spec)]"},
	},
	{ // A sender's distinct receivers: a bitmap of pairs, and a count of new ones.
		"super-spreader", "",
		"register<bit<1>>(4096) pairs; register<bit<32>>(1024) receivers; bit<1> b = 0; bit<32> j = 0;",
		hashed + `
		hash(j, HashAlgorithm.crc32, 32w0, { hdr.ipv4.srcAddr, hdr.ipv4.dstAddr }, 32w4096);
		pairs.read(b, j);
		if (b == 0) { pairs.write(j, 1); receivers.read(v, i); receivers.write(i, v + 1); }`,
		"{pairs}* {receivers}*", map[string]string{"pairs": "[hash(hdr.ipv4.dstAddr, hdr.ipv4.srcAddr)]", "receivers": hashedBy},
	},
	{ // Port knocking: a finite automaton for each sender.
		"port knocking", "",
		"register<bit<2>>(65536) state; bit<2> s = 0;",
		`i = hdr.ipv4.srcAddr & 65535; state.read(s, i);
		if (s == 3) { return; }
		if (s == 0 && hdr.tcp.dstPort == 7000) { state.write(i, 1); }
		else if (s == 1 && hdr.tcp.dstPort == 8000) { state.write(i, 2); }
		else if (s == 2 && hdr.tcp.dstPort == 9000) { state.write(i, 3); }
		else { state.write(i, 0); mark_to_drop(standard_metadata); }`,
		"{state}*", map[string]string{"state": "[hdr.ipv4.srcAddr]"},
	},
	{ // NAT with a port allocator: the allocator counts, the map takes what it gives.
		"port allocator", "",
		`register<bit<16>>(1) free; register<bit<32>>(65536) owner; bit<16> p = 0;
		action known(bit<16> port) { hdr.tcp.srcPort = port; }
		table nat { key = { hdr.ipv4.srcAddr: exact; hdr.tcp.srcPort: exact; } actions = { known; NoAction; } size = 65536; }`,
		`if (standard_metadata.ingress_port == 1) {
			if (!nat.apply().hit) { free.read(p, 0); p = p + 1; free.write(0, p); owner.write((bit<32>)p, hdr.ipv4.srcAddr); hdr.tcp.srcPort = p; }
		} else { owner.read(hdr.ipv4.dstAddr, (bit<32>)hdr.tcp.dstPort); }`,
		"{free}* {owner} {nat}", map[string]string{"free": "[]", "owner": "[hdr.tcp.dstPort] [state()]", "nat": "[hdr.ipv4.srcAddr hdr.tcp.srcPort]"},
	},
}

// shapes are ways to write things that an analysis may get wrong.
var shapes = []design{
	{"chain of indices", "",
		"register<bit<32>>(16) a; register<bit<32>>(16) b; register<bit<32>>(16) c;",
		"a.read(v, hdr.ipv4.srcAddr & 15); b.read(w, v); c.write(hdr.ipv4.srcAddr & 15, w);",
		"{a} {b} {c}", map[string]string{"b": "[state(hdr.ipv4.srcAddr)]", "c": "[hdr.ipv4.srcAddr]"}},
	{"cycle through an index", "", // b only yields what a's value chose
		"register<bit<32>>(16) a; register<bit<32>>(16) b;",
		"a.read(v, hdr.ipv4.srcAddr & 15); b.read(w, v); a.write(hdr.ipv4.srcAddr & 15, w);",
		"{a}* {b}", nil},
	{"cycle of two through an index", "",
		"register<bit<32>>(16) a; register<bit<32>>(16) b;",
		"a.read(v, hdr.ipv4.srcAddr & 15); b.read(w, v); a.write(hdr.ipv4.srcAddr & 15, w); b.write(v, v);",
		"{a b}*", nil},
	{"actions that share a register", "",
		`register<bit<32>>(16) r; action up() { r.read(v, 3); r.write(3, v + 1); } action reset() { r.write(3, 0); }
		table t { key = { hdr.ipv4.ttl: exact; } actions = { up; reset; NoAction; } const entries = { 1: up(); 2: reset(); } }`,
		"t.apply();", "{r}* {t}", map[string]string{"r": "[]", "t": "[hdr.ipv4.ttl]"}},
	{"actions that share a register, apart", "", // no action both reads and writes
		`register<bit<32>>(16) r; action look() { r.read(v, 3); } action reset() { r.write(3, 0); }
		table t { key = { hdr.ipv4.ttl: exact; } actions = { look; reset; } size = 4; }`,
		"t.apply();", "{r} {t}", nil},
	{"action run", "",
		`register<bit<32>>(16) a; register<bit<32>>(16) b; action yes() { a.read(v, 0); } action no() { }
		table t { key = { hdr.ipv4.ttl: exact; } actions = { yes; no; } size = 4; }`,
		"switch (t.apply().action_run) { yes: { if (v == 0) { b.write(0, 1); } } no: { b.read(w, 0); a.write(0, w); } }",
		"{a b}* {t}", nil}, // not by one packet: by one that takes the first case after one that took the second
	{"inout and functions", "bit<32> total;",
		`register<bit<32>>(16) r; action add(inout bit<32> sum, in bit<32> n) { sum = sum + n; }`,
		"r.read(meta.total, 1); add(meta.total, 2); r.write(1, twice(meta.total));",
		"{r}*", nil},
	{"overwritten by an out argument", "bit<32> total;",
		`register<bit<32>>(16) r; action set(out bit<32> sum) { sum = 4; }`,
		"r.read(meta.total, 1); set(meta.total); r.write(1, meta.total);",
		"{r}", nil},
	{"slice on the left", "bit<32> total;",
		"register<bit<32>>(16) r; register<bit<8>>(16) s;",
		"r.read(meta.total, 1); meta.total[15:8] = 7; r.write(2, (bit<32>)meta.total[15:8]); s.write(0, meta.total[7:0]);",
		"{r} {s}", nil},
	{"copy of a struct", "pair p; pair q;",
		"register<bit<32>>(16) r; register<bit<32>>(16) s;",
		"r.read(meta.p.a, 1); meta.p.b = 5; meta.q = meta.p; s.write(meta.q.b, meta.q.a); r.write(1, meta.q.b);",
		"{r} {s}", map[string]string{"s": "[]"}},
	{"nested controls", "",
		"Meter_() one; Meter_() two;",
		"one.apply(hdr.ipv4.srcAddr, v); two.apply(v, w); if (w > 5) { mark_to_drop(standard_metadata); }",
		"{I.one.r}* {I.two.r}*", map[string]string{"I.one.r": "[hdr.ipv4.srcAddr]", "I.two.r": "[state(hdr.ipv4.srcAddr)]"}},
	{"conditional operator", "",
		"register<bit<32>>(16) r; register<bit<32>>(16) s;",
		"r.read(v, 0); s.write(0, v == 1 ? 32w5 : 32w6); s.read(w, 1); r.write(0, hdr.ipv4.ttl == 1 ? w : 32w0);",
		"{r s}*", nil},
	{"direct objects", "",
		`direct_counter(CounterType.packets_and_bytes) c; direct_meter<bit<8>>(MeterType.bytes) m; bit<8> colour = 0;
		action seen() { c.count(); m.read(colour); }
		table t { key = { hdr.ipv4.srcAddr: exact; } actions = { seen; NoAction; } size = 16; counters = c; meters = m; }`,
		"t.apply(); if (colour == 2) { mark_to_drop(standard_metadata); }",
		"{m}* {c} {t}", map[string]string{"c": "[hdr.ipv4.srcAddr]", "m": "[hdr.ipv4.srcAddr]"}},
	{"hit in a condition", "",
		`register<bit<32>>(16) r; table t { key = { v: exact; } actions = { NoAction; } size = 4; }`,
		"r.read(v, 0); if (t.apply().hit && hdr.ipv4.ttl > 1) { r.write(0, 1); }",
		"{r}* {t}", nil},
	{"miss decides another's state", "",
		`register<bit<32>>(16) r; table t { key = { hdr.ipv4.srcAddr: exact; } actions = { NoAction; } size = 4; }`,
		"if (t.apply().miss) { r.write(0, 1); } r.read(v, 0);",
		"{r} {t}", nil},
	{"resubmitted", "@field_list(1) bit<32> seen; bit<32> lost;",
		"register<bit<32>>(16) a; register<bit<32>>(16) b;",
		`if (standard_metadata.instance_type == 6) { a.write(0, meta.seen); b.write(0, meta.lost); }
		else { a.read(meta.seen, 0); b.read(meta.lost, 0); resubmit_preserving_field_list(1); }`,
		"{a}* {b}", nil},
	{"not resubmitted", "@field_list(1) bit<32> seen; bit<32> lost;",
		"register<bit<32>>(16) a; register<bit<32>>(16) b;",
		`if (standard_metadata.instance_type == 6) { a.write(0, meta.seen); b.write(0, meta.lost); }
		else { a.read(meta.seen, 0); b.read(meta.lost, 0); }`,
		"{a} {b}", nil},
	{"recirculated header", "",
		"register<bit<32>>(16) a; register<bit<32>>(16) b;",
		`a.read(v, hdr.tcp.seqNo & 15); b.write(0, hdr.tcp.ackNo); a.write(0, hdr.tcp.ackNo);
		hdr.tcp.ackNo = v; recirculate(standard_metadata.instance_type);`,
		"{a}* {b}", map[string]string{"a": "[] [hdr.tcp.seqNo]"}},
	{"loop", "",
		"register<bit<32>>(16) r;",
		"for (bit<32> k in 32w0..3) { r.read(v, k); w = w + v; } r.write(0, w);",
		"{r}*", nil},
}

const helpers = `
struct pair { bit<32> a; bit<32> b; }
bit<32> twice(in bit<32> n) { return n << 1; }
control Meter_(in bit<32> at, out bit<32> was) {
	register<bit<32>>(16) r;
	apply { r.read(was, at & 15); r.write(at & 15, was + 1); }
}
`

func TestDesigns(t *testing.T) {
	for _, c := range slices.Concat(designs, shapes) {
		t.Run(c.name, func(t *testing.T) {
			r := analyse(t, parse(t, helpers+"struct metadata_t {"+c.meta+"}", temps+c.locals, c.apply), "")
			wantBlocks(t, r, c.blocks)
			for object, want := range c.groups {
				wantGroup(t, r, object, want)
			}
		})
	}
}

// Whole programs of the other architectures.
func TestArchitectures(t *testing.T) {
	for _, c := range []struct {
		name, blocks string
		groups       map[string]string
	}{
		{"tna_syn", "{half_open}* {queue}* {dropped} {routes}", map[string]string{
			"half_open": "[hdr.ipv4.dst]", "queue": "[hdr.ipv4.dst]", "routes": "[hdr.ipv4.dst]",
		}},
		// The second look at a packet joins idle with what the first one read of it.
		{"psa_shaper", "{rate}* {idle}* {smooth}* {sum} {sent} {customers}", map[string]string{
			"rate": "[hdr.vlan.customer]", "smooth": "[hdr.vlan.customer]", "sent": "[hdr.vlan.customer]",
		}},
		// A table that its own misses fill is cyclic.
		{"pna_track", "{connections}* {ct}* {received} {packets}", map[string]string{
			"connections": "[hdr.ipv4.dst]", "ct": "[TrackMain.istd.direction hdr.ipv4.dst hdr.ipv4.src]",
		}},
		{"../../../p4/testdata/tna", "{reg}* {dr}* {c} {t}", map[string]string{
			"reg": "[hash(hdr.ip.dst, hdr.ip.src)]", "dr": "[hdr.ip.dst]", "c": "[hash(hdr.ip.dst, hdr.ip.src)]",
		}},
		{"../../../p4/testdata/psa", "{seen}* {rate}* {counts} {hits} {routes}", map[string]string{
			"seen": "[hash(hdr.ip.dst, hdr.ip.src)]", "routes": "[hdr.ip.dst]",
		}},
		{"../../../p4/testdata/pna", "{connections}* {next}", map[string]string{"next": "[]", "connections": "[hdr.ip.src]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := p4.Load(filepath.Join("testdata", c.name+".p4"), p4.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r := analyse(t, p, "")
			wantBlocks(t, r, c.blocks)
			for object, want := range c.groups {
				wantGroup(t, r, object, want)
			}
			if !strings.HasPrefix(filepath.Base(c.name), p.Arch) || p.Arch == "" {
				t.Errorf("architecture %q", p.Arch)
			}
			for _, u := range r.Unsupported {
				if u.What != "extern restart_expire_timer" {
					t.Errorf("packets visit the host for %s", u.What)
				}
			}
		})
	}
}
