package frontend

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"nicprof/p4/ir"
	"nicprof/program"
)

func analyse(t *testing.T, p *ir.Program, deps string) *Result {
	t.Helper()
	r, err := Analyse(p, Options{Deps: deps})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// summary writes the blocks in short: {MinDip MinLoad}* for a cyclic one.
func summary(r *Result) string {
	var out []string
	for _, b := range r.Blocks {
		var names []string
		for _, o := range b.Objects {
			names = append(names, r.Name(o))
		}
		s := "{" + strings.Join(names, " ") + "}"
		if b.Cyclic {
			s += "*"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func wantBlocks(t *testing.T, r *Result, want string) {
	t.Helper()
	if got := summary(r); got != want {
		t.Errorf("blocks %s, want %s", got, want)
	}
}

func wantGroup(t *testing.T, r *Result, object, want string) {
	t.Helper()
	for _, b := range r.Blocks {
		for _, o := range b.Objects {
			if r.Name(o) != object {
				continue
			}
			var got []string
			for _, g := range b.Groups {
				got = append(got, fmt.Sprint(g.Names()))
			}
			if s := strings.Join(got, " "); s != want {
				t.Errorf("flow groups of %s: %s, want %s", object, s, want)
			}
			return
		}
	}
	t.Errorf("no object %s", object)
}

// balancer has the structure of the paper's Figure 4.
func balancer() *builder {
	b := newBuilder()
	dip, min, load := b.register("DipCntr", 4096), b.register("MinDip", 4), b.register("MinLoad", 4)
	conn := b.object(ir.Table, "connTbl", 1024, 32)
	b.extract("ipv4", "hdr.ipv4.srcAddr", "hdr.ipv4.dstAddr")
	b.lookup(conn, []*ir.Expr{b.use("hdr.ipv4.srcAddr")}, action{"MyIngress.setDip", []string{"d"}, func() {
		b.assign("vip", op("&", b.use("hdr.ipv4.dstAddr"), num(3)))
		b.read("cntr", dip, b.use("hdr.ipv4.dstAddr"))
		b.assign("cntr", op("+", b.use("cntr"), num(1)))
		b.write(dip, b.use("hdr.ipv4.dstAddr"), b.use("cntr"))
		b.read("m", load, b.use("vip"))
		b.cond(op("<", b.use("cntr"), b.use("m")), func() {
			b.write(load, b.use("vip"), b.use("cntr"))
			b.write(min, b.use("vip"), b.use("hdr.ipv4.dstAddr"))
		}, func() {
			b.read("md", min, b.use("vip"))
			b.cond(op("==", b.use("md"), b.use("hdr.ipv4.dstAddr")), func() {
				b.write(load, b.use("vip"), b.use("cntr"))
			}, nil)
		})
	}}, action{"NoAction", nil, nil})
	return b
}

// The first block exists through control dependence alone: no written value
// is computed from MinDip or MinLoad.
func TestLoadBalancer(t *testing.T) {
	r := analyse(t, balancer().done(), "")
	wantBlocks(t, r, "{MinDip MinLoad}* {DipCntr}* {connTbl}")
	wantGroup(t, r, "MinDip", "[hdr.ipv4.dstAddr]")
	wantGroup(t, r, "DipCntr", "[hdr.ipv4.dstAddr]")
	wantGroup(t, r, "connTbl", "[hdr.ipv4.srcAddr]")
	if f := r.Blocks[0].Groups[0].Fields[0]; f.Hi != 1 || f.Lo != 0 || !r.Blocks[0].Groups[0].Exact {
		t.Errorf("MinLoad's index uses bits %d:%d, want 1:0", f.Hi, f.Lo)
	}
	if n := len(r.Blocks[1].Instructions); n != 3 {
		t.Errorf("%d instructions of DipCntr, want read, add and write", n)
	}
	if n := len(r.Blocks[0].Instructions); n != 7 {
		t.Errorf("%d instructions of MinDip and MinLoad, want five accesses and two conditions", n)
	}
}

func TestLoadBalancerAccesses(t *testing.T) {
	r := analyse(t, balancer().done(), "")
	m, err := r.Mix(map[string]float64{"x.p4:9": .25, "x.p4:13": .5, "connTbl.hit": .8})
	if err != nil {
		t.Fatal(err)
	}
	p := m.Program(func(b *Block) string { return map[string]string{"b0": "imem", "b1": "imem", "b2": "emem"}[b.Name] })
	want := []program.Access{
		{Memory: "imem", Op: program.Add, Mode: program.Atomic, Bytes: 4, PerPacket: .8, Span: 4096, Stride: 4},
		{Memory: "emem", Op: program.Read, Mode: program.Bulk, Bytes: 8, PerPacket: 1, Span: 1024, Stride: 8},
	}
	if !slices.EqualFunc(p.Accesses, want, alike) {
		t.Errorf("accesses %+v, want %+v", p.Accesses, want)
	}
	if len(p.Locks) != 1 || p.Locks[0].Elements != 4 || p.Locks[0].Hash {
		t.Fatalf("locks %+v, want one of 4 elements", p.Locks)
	}
	want = []program.Access{
		{Memory: "imem", Op: program.Read, Mode: program.Atomic, Bytes: 4, PerPacket: .8 * 1, Span: 4, Stride: 4},
		{Memory: "imem", Op: program.Write, Mode: program.Atomic, Bytes: 4, PerPacket: .8 * .25, Span: 4, Stride: 4},
		{Memory: "imem", Op: program.Write, Mode: program.Atomic, Bytes: 4, PerPacket: .8 * .25, Span: 4, Stride: 4},
		{Memory: "imem", Op: program.Read, Mode: program.Atomic, Bytes: 4, PerPacket: .8 * .75, Span: 4, Stride: 4},
		{Memory: "imem", Op: program.Write, Mode: program.Atomic, Bytes: 4, PerPacket: .8 * .75 * .5, Span: 4, Stride: 4},
	}
	sum := func(list []program.Access, op program.Op) (n float64) {
		for _, a := range list {
			if a.Op == op && a.Memory == "imem" && a.Mode == program.Atomic && a.Bytes == 4 && a.Span == 4 {
				n += a.PerPacket
			}
		}
		return n
	}
	for _, o := range []program.Op{program.Read, program.Write} {
		if got, want := sum(p.Locks[0].Section, o), sum(want, o); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s in the section: %v a packet, want %v", o, got, want)
		}
	}
	var paths []string
	for _, p := range m.Paths {
		paths = append(paths, fmt.Sprintf("%v %.2f", p.Blocks, p.Share))
	}
	if got := strings.Join(paths, ", "); got != "[2 1 0] 0.80, [2] 0.20" {
		t.Errorf("paths %s", got)
	}
}

func alike(a, b program.Access) bool {
	same := math.Abs(a.PerPacket-b.PerPacket) < 1e-9
	a.PerPacket = b.PerPacket
	return same && a == b
}

func TestSketch(t *testing.T) {
	b := newBuilder()
	b.extract("ipv4", "hdr.ipv4.srcAddr", "hdr.ipv4.dstAddr")
	for i := range 3 {
		row := b.register(fmt.Sprint("row", i), 1024)
		index, value := fmt.Sprint("i", i), fmt.Sprint("v", i)
		b.hash(index, 1024, b.use("hdr.ipv4.srcAddr"), b.use("hdr.ipv4.dstAddr"), num(int64(i)))
		b.read(value, row, b.use(index))
		b.write(row, b.use(index), op("|+|", b.use(value), num(1)))
	}
	r := analyse(t, b.done(), "")
	wantBlocks(t, r, "{row0}* {row1}* {row2}*")
	wantGroup(t, r, "row1", "[hash(hdr.ipv4.dstAddr, hdr.ipv4.srcAddr)]")
	if b := r.Blocks[0]; b.Partitionable || b.Why == "" {
		t.Errorf("a sketch's row can be divided")
	}
	m, err := r.Mix(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range m.Blocks {
		if v.Lock != nil || len(v.Accesses) != 1 || v.Accesses[0].Op != program.Add {
			t.Errorf("a saturating addition needs %+v and the lock %+v; want one atomic addition", v.Accesses, v.Lock)
		}
	}
	if m.Blocks[0].Stateless[program.Hash] != 0 || m.Stateless[program.Hash] != 3 {
		t.Errorf("hashes: %v outside of blocks, want 3", m.Stateless)
	}
}

// The coarse analysis joins what one action reads before it writes.
func TestActionDependences(t *testing.T) {
	two := func() *ir.Program {
		b := newBuilder()
		x, y := b.register("x", 8), b.register("y", 8)
		b.extract("h", "hdr.h.a", "hdr.h.b")
		b.act = "MyIngress.both"
		b.read("vx", x, b.use("hdr.h.a"))
		b.read("vy", y, b.use("hdr.h.a"))
		b.write(x, b.use("hdr.h.a"), b.use("hdr.h.b"))
		b.write(y, b.use("hdr.h.a"), op("+", b.use("vy"), num(1)))
		b.act = ""
		return b.done()
	}
	wantBlocks(t, analyse(t, two(), DepsInstruction), "{y}* {x}")
	wantBlocks(t, analyse(t, two(), DepsAction), "{x y}*")
	// By condition it agrees with the instruction graph.
	wantBlocks(t, analyse(t, balancer().done(), DepsAction), "{MinDip MinLoad}* {DipCntr}* {connTbl}")
	if _, err := Analyse(two(), Options{Deps: "x"}); err == nil {
		t.Error("unknown dependences accepted")
	}
}

// A value read is copied through metadata to another action that writes.
func TestThroughMetadata(t *testing.T) {
	b := newBuilder()
	id, stamp := b.register("flowlet_id", 8192), b.register("flowlet_time", 8192)
	b.extract("ipv4", "hdr.ipv4.srcAddr")
	b.act = "MyIngress.lookup"
	b.hash("meta.index", 8192, b.use("hdr.ipv4.srcAddr"))
	b.read("meta.id", id, b.use("meta.index"))
	b.read("meta.last", stamp, b.use("meta.index"))
	b.write(stamp, b.use("meta.index"), b.use("in.now"))
	b.act = ""
	b.cond(op(">", op("-", b.use("in.now"), b.use("meta.last")), num(50)), func() {
		b.act = "MyIngress.update"
		b.assign("meta.id", op("+", b.use("meta.id"), num(1)))
		b.write(id, b.use("meta.index"), b.use("meta.id"))
		b.act = ""
	}, nil)
	r := analyse(t, b.done(), "")
	wantBlocks(t, r, "{flowlet_id}* {flowlet_time}")
	m, _ := r.Mix(nil)
	if m.Blocks[1].Lock != nil {
		t.Error("the time stamp, which is overwritten whatever it was, has a lock")
	}
}

func TestEarlyReturn(t *testing.T) {
	b := newBuilder()
	seen, count := b.register("seen", 16), b.register("count", 16)
	b.extract("h", "hdr.h.a")
	b.read("s", seen, b.use("hdr.h.a"))
	b.cond(op("==", b.use("s"), num(1)), b.ret, nil)
	b.write(seen, b.use("hdr.h.a"), num(1))
	b.write(count, b.use("hdr.h.a"), num(7))
	r := analyse(t, b.done(), "")
	wantBlocks(t, r, "{seen}* {count}")
	if !r.depends[b.p.Objects[1]][b.p.Objects[0]] {
		t.Error("what comes behind a conditional return does not depend on its condition")
	}
	_ = count
}

// A write of some bits leaves the definition of the others.
func TestSlices(t *testing.T) {
	b := newBuilder()
	x := b.register("x", 8)
	b.extract("h", "hdr.h.a")
	b.read("v", x, b.use("hdr.h.a"))
	v := b.v("v", 32)
	b.add(&ir.Instr{Op: ir.Assign, Defs: []ir.Def{{Var: v, Hi: 7, Lo: 0}}, Args: []*ir.Expr{num(0)}})
	high := &ir.Expr{Op: ir.Slice, Hi: 31, Lo: 8, Bits: 24, Args: []*ir.Expr{b.use("v")}}
	b.write(x, b.use("hdr.h.a"), high)
	wantBlocks(t, analyse(t, b.done(), ""), "{x}*")

	b = newBuilder()
	x = b.register("x", 8)
	b.extract("h", "hdr.h.a")
	b.read("v", x, b.use("hdr.h.a"))
	v = b.v("v", 32)
	b.add(&ir.Instr{Op: ir.Assign, Defs: []ir.Def{{Var: v, Hi: 7, Lo: 0}}, Args: []*ir.Expr{num(0)}})
	low := &ir.Expr{Op: ir.Slice, Hi: 7, Lo: 0, Bits: 8, Args: []*ir.Expr{b.use("v")}}
	b.write(x, b.use("hdr.h.a"), low)
	wantBlocks(t, analyse(t, b.done(), ""), "{x}")
}

// A definition that may not happen leaves the earlier ones.
func TestMayDefinition(t *testing.T) {
	b := newBuilder()
	x := b.register("x", 8)
	b.extract("h", "hdr.h.a")
	b.read("v", x, b.use("hdr.h.a"))
	b.add(&ir.Instr{Op: ir.Assign, Defs: []ir.Def{{Var: b.v("v", 32), Hi: 31, May: true}}, Args: []*ir.Expr{num(0)}})
	b.write(x, b.use("hdr.h.a"), b.use("v"))
	wantBlocks(t, analyse(t, b.done(), ""), "{x}*")
}

// Two Bloom rows of which each is set only where the other was not.
func TestCrossedRows(t *testing.T) {
	b := newBuilder()
	x, y := b.register("x", 64), b.register("y", 64)
	b.extract("h", "hdr.h.a")
	b.hash("i", 64, b.use("hdr.h.a"))
	b.read("vx", x, b.use("i"))
	b.read("vy", y, b.use("i"))
	b.cond(op("==", b.use("vx"), num(0)), func() { b.write(y, b.use("i"), num(1)) }, nil)
	b.cond(op("==", b.use("vy"), num(0)), func() { b.write(x, b.use("i"), num(1)) }, nil)
	wantBlocks(t, analyse(t, b.done(), ""), "{x y}*")
}

func TestGroups(t *testing.T) {
	b := newBuilder()
	b.extract("h", "hdr.h.a", "hdr.h.b", "hdr.h.c")
	reg := func(name string, index *ir.Expr) { b.read("x", b.register(name, 16), index) }
	reg("copy", b.use("hdr.h.a"))
	reg("one", num(3))
	reg("sum", op("+", b.use("hdr.h.a"), b.use("hdr.h.b")))
	b.add(&ir.Instr{Op: ir.Random, Defs: []ir.Def{whole(b.v("r", 32))}})
	reg("rand", b.use("r"))
	b.assign("joined", &ir.Expr{Op: ir.Concat, Bits: 64, Args: []*ir.Expr{b.use("hdr.h.a"), b.use("hdr.h.b")}})
	// b.v made joined 32 bits wide: the low half.
	reg("low", b.use("joined"))
	t1 := b.object(ir.Table, "t", 16, 32)
	b.lookup(t1, []*ir.Expr{b.use("hdr.h.b"), b.use("hdr.h.c")}, action{"MyIngress.set", []string{"data"}, func() { b.assign("meta.i", b.use("data")) }})
	reg("supplied", b.use("meta.i"))
	b.read("pointer", b.p.Objects[0], b.use("hdr.h.a"))
	reg("chased", b.use("pointer"))
	b.assign("hdr.h.a", num(9))
	reg("rewritten", b.use("hdr.h.a"))
	id := b.v("id", 32)
	id.FlowGroup = true
	b.hash("id", 16, b.use("hdr.h.b"))
	reg("marked", b.use("id"))
	b.assign("choice", num(0))
	b.cond(op("==", b.use("hdr.h.c"), num(1)), func() { b.assign("choice", num(1)) }, nil)
	reg("chosen", b.use("choice"))
	r := analyse(t, b.done(), "")
	for object, want := range map[string]string{
		"copy": "[hdr.h.a]", "one": "[]", "sum": "[hdr.h.a hdr.h.b]", "rand": "[random()]", "low": "[hdr.h.b]",
		"supplied": "[hdr.h.b hdr.h.c]", "t": "[hdr.h.b hdr.h.c]", "chased": "[state(hdr.h.a)]", "rewritten": "[]",
		"marked": "[hdr.h.b]", "chosen": "[hdr.h.c]",
	} {
		wantGroup(t, r, object, want)
	}
}

func TestShares(t *testing.T) {
	r := analyse(t, balancer().done(), "")
	for _, c := range []struct {
		set  map[string]float64
		want string
	}{
		{map[string]float64{"conTbl.hit": .5}, "did you mean connTbl.hit"},
		{map[string]float64{"connTbl.hit": 1.5}, "not a ratio"},
		{map[string]float64{"MyIngress.setDip": .7, "NoAction": .7}, "sum to 1.4"},
	} {
		if _, err := r.Mix(c.set); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("shares %v: error %v, want %q", c.set, err, c.want)
		}
	}
	m, err := r.Mix(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Warnings) != 1 || !strings.Contains(m.Warnings[0], "connTbl.hit, x.p4:13, x.p4:9") {
		t.Errorf("warnings %q, want the three shares that were assumed", m.Warnings)
	}
}

// A condition that is tested twice has one outcome.
func TestPathsAgree(t *testing.T) {
	b := newBuilder()
	x, y := b.register("x", 8), b.register("y", 8)
	b.extract("h", "hdr.h.a")
	twice := func() *ir.Expr { return op("<", b.use("hdr.h.a"), num(5)) }
	b.cond(twice(), func() { b.write(x, num(0), num(1)) }, nil)
	b.cond(twice(), func() { b.write(y, num(0), num(1)) }, nil)
	m, err := analyse(t, b.done(), "").Mix(map[string]float64{"x.p4:2": .3})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Paths) != 2 || math.Abs(m.Paths[1].Share-.3) > 1e-12 || len(m.Paths[1].Blocks) != 2 {
		t.Errorf("paths %+v, want both blocks or none", m.Paths)
	}
}
