package frontend

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nicprof/p4"
	"nicprof/p4/ir"
	"nicprof/traffic"
)

// load reads a program of testdata.
func load(t *testing.T, name string) *ir.Program {
	t.Helper()
	p, err := p4.Load(filepath.Join("testdata", name+".p4"), p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const fiveTuple = "[hash(hdr.ipv4.dstAddr, hdr.ipv4.protocol, hdr.ipv4.srcAddr, hdr.tcp.dstPort, hdr.tcp.srcPort)]"

// Programs in source whose blocks and groups are known.
func TestKnownPrograms(t *testing.T) {
	for _, c := range []struct {
		name   string
		blocks string // by the instruction graph
		action string // by the coarse analysis, "" when it says the same
		groups map[string]string
	}{
		{"balancer", "{MinDip MinLoad}* {DipCntr}* {connTbl}", "", map[string]string{
			"MinDip": "[hdr.ipv4.dstAddr]", "DipCntr": "[hdr.ipv4.dstAddr]", "connTbl": "[hdr.ipv4.srcAddr]",
		}},
		{"sketch", "{row0}* {row1}* {row2}*", "", map[string]string{
			"row0": "[hash(hdr.ipv4.dstAddr, hdr.ipv4.srcAddr)]", "row2": "[hash(hdr.ipv4.dstAddr, hdr.ipv4.srcAddr)]",
		}},
		{"firewall", "{filter0} {filter1} {ports}", "", map[string]string{
			"filter0": fiveTuple, "filter1": fiveTuple, "ports": "[standard_metadata.ingress_port]",
		}},
		{"flowlet", "{flowlet_id}* {flowlet_time} {next_hop}", "{flowlet_id flowlet_time}* {next_hop}", map[string]string{
			"flowlet_id": fiveTuple, "flowlet_time": fiveTuple,
			"next_hop": "[" + strings.Replace(fiveTuple[1:], "hash", "state", 1),
		}},
		{"crossed", "{row0 row1}*", "", map[string]string{"row0": "[hash(hdr.ipv4.srcAddr)]"}},
		{"oneway", "{row0} {row1}", "{row0}* {row1}", nil},
		{"traps", "{wide}* {rates}* {single} {small} {beyond} {ports}", "{single rates}* {wide}* {small} {beyond} {ports}", map[string]string{
			"wide": "[]", "single": "[]", "small": "[] [hdr.ipv4.srcAddr]", "beyond": "[] [hash(hdr.ipv4.srcAddr)]",
			"rates": "[hdr.ipv4.diffserv]", "ports": "[standard_metadata.ingress_port]",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := load(t, c.name)
			r := analyse(t, p, DepsInstruction)
			wantBlocks(t, r, c.blocks)
			for object, want := range c.groups {
				wantGroup(t, r, object, want)
			}
			if c.action == "" {
				c.action = c.blocks
			}
			wantBlocks(t, analyse(t, p, DepsAction), c.action)
		})
	}
}

// What a sketch needs is an atomic addition, what the least load needs a lock.
func TestLocks(t *testing.T) {
	for _, c := range []struct {
		name  string
		block int
		want  *Lock
	}{
		{"balancer", 0, &Lock{Elements: 4, Why: "what is written follows from what was read"}},
		{"balancer", 1, nil},
		{"sketch", 0, nil},
		{"firewall", 0, nil},
		{"crossed", 0, &Lock{Elements: 4096, Hash: true, Why: "what is written follows from what was read"}},
		{"traps", 1, &Lock{Elements: 8, Why: "a meter's bucket is read and written"}},
	} {
		m, err := analyse(t, load(t, c.name), "").Mix(nil)
		if err != nil {
			t.Fatal(err)
		}
		switch got := m.Blocks[c.block].Lock; {
		case (got == nil) != (c.want == nil):
			t.Errorf("%s b%d: lock %+v, want %+v", c.name, c.block, got, c.want)
		case got != nil && *got != *c.want:
			t.Errorf("%s b%d: lock %+v, want %+v", c.name, c.block, *got, *c.want)
		}
	}
}

// The bits that an index uses of a field, not only the field.
func TestExactGroups(t *testing.T) {
	r := analyse(t, load(t, "balancer"), "")
	g := r.Blocks[0].Groups[0]
	if f := g.Fields[0]; !g.Exact || f.Hi != 1 || f.Lo != 0 {
		t.Errorf("MinLoad is indexed by bits %d to %d, exactly: %t; want 1 to 0, exactly", f.Hi, f.Lo, g.Exact)
	}
	if !r.Blocks[0].Partitionable {
		t.Errorf("MinLoad cannot be divided: %s", r.Blocks[0].Why)
	}
	b := newBuilder()
	b.extract("ipv4", "hdr.ipv4.srcAddr", "hdr.ipv4.dstAddr")
	cells := b.register("cells", 16)
	low, high := b.use("hdr.ipv4.dstAddr"), b.use("hdr.ipv4.dstAddr")
	low.Hi, low.Lo, low.Bits = 3, 0, 4
	high.Hi, high.Lo, high.Bits = 7, 4, 4
	b.read("v", cells, low)
	b.write(cells, high, num(1))
	if r := analyse(t, b.done(), ""); r.Blocks[0].Partitionable || !strings.Contains(r.Blocks[0].Why, "different bits") {
		t.Errorf("cells that are read by one part of an address and written by another can be divided: %q", r.Blocks[0].Why)
	}
	r = analyse(t, load(t, "firewall"), "")
	if r.Blocks[0].Groups[0].Exact || r.Blocks[0].Partitionable {
		t.Error("a Bloom filter's row can be divided by connections")
	}
}

// What a person who brings a program onto an NFP has to know, each at its line.
func TestWarnings(t *testing.T) {
	r := analyse(t, load(t, "traps"), "")
	var got []string
	for _, w := range r.Warnings {
		w := *w
		w.Pos.File = filepath.Base(w.Pos.File)
		got = append(got, w.Pos.String()+": "+w.Msg)
	}
	want := []string{
		"traps.p4:27:9: the index of small reaches 31, but it has 16 elements",
		"traps.p4:28:9: index 16 of beyond, which has 16 elements",
		"traps.p4:30:9: the index of beyond reaches 31, but it has 16 elements",
		"traps.p4:31:9: the index of ports reaches 511, but it has 8 elements",
		"nfp4build ignores @atomic",
		"traps.p4:37:9: the way of a packet depends on small",
		"traps.p4:38:9: extern scramble is none of an NFP's P4 firmware",
	}
	for _, w := range want {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, w) }) {
			t.Errorf("no warning %q in\n%s", w, strings.Join(got, "\n"))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d warnings, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	if len(r.Together) != 1 || r.Name(r.Together[0][0]) != "single" || r.Name(r.Together[0][1]) != "small" {
		t.Errorf("together: %v, want single and small", r.Together)
	}
	if len(r.Unsupported) != 1 {
		t.Errorf("unsupported: %v, want the extern", r.Unsupported)
	}
	m, err := r.Mix(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Paths {
		if p.Host != "extern scramble" {
			t.Errorf("path %+v does not visit the host", p)
		}
	}
}

// mark_to_drop drops with and without its argument; a 128-bit register is
// accessed in 16 bytes, one of a single element has an index of no bits.
func TestTraps(t *testing.T) {
	m, err := analyse(t, load(t, "traps"), "").Mix(map[string]float64{"traps.p4:37": 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Paths) == 0 || slices.ContainsFunc(m.Paths, func(p Path) bool { return !p.Dropped }) {
		t.Errorf("paths %+v, want all dropped", m.Paths)
	}
	for _, a := range m.Blocks[0].Accesses {
		if a.Bytes != 16 || a.Span != 8 || a.Stride != 16 {
			t.Errorf("access %+v of a register of 8 times 128 bits", a)
		}
	}
	for _, a := range m.Blocks[2].Accesses {
		if a.Bytes != 4 || a.Span != 1 {
			t.Errorf("access %+v of a register of one element", a)
		}
	}
}

// The applications have the branches that their traffic files set.
func TestApplications(t *testing.T) {
	files, err := filepath.Glob("../apps/traffic/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traffic files (%v)", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		p, err := p4.Load("../apps/"+name+".p4", p4.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tr, err := traffic.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		r := analyse(t, p, "")
		m, err := r.Mix(tr.Branches)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range r.Blocks {
			if v := m.Blocks[b.Index]; (v.Share > 0) != (len(v.Accesses) > 0) {
				t.Errorf("%s: %v of the packets visit %s, with the accesses %v", name, v.Share, r.title(b), v.Accesses)
			}
		}
		switch name {
		case "l4lb":
			wantBlocks(t, r, "{MinLoad MinDip}* {sketch0}* {sketch1}* {sketch2}* {LoadCntr}* {ConnTable}")
			if got := m.Blocks[1].Share; math.Abs(got-.8) > 1e-9 {
				t.Errorf("%v of the packets visit the sketch, want the web server's 0.8", got)
			}
		case "firewall": // some of the 2 % of new connections
			k := slices.IndexFunc(p.Objects, func(o *ir.Object) bool { return o.Name == "rules" })
			if got := m.Blocks[r.Block(p.Objects[k]).Index].Share; got <= 0 || got > .02+1e-9 {
				t.Errorf("%v of the packets come to the rules, want at most 0.02", got)
			}
		}
	}
}
