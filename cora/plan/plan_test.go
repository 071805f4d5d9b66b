package plan

import (
	"bytes"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nicprof/cora/apps"
	"nicprof/cora/costs"
	"nicprof/cora/frontend"
	"nicprof/cora/partition"
	"nicprof/model"
	"nicprof/p4"
	"nicprof/traffic"
	"nicprof/traffic/capture"
)

// application reads a program of ours, and its traffic.
func application(t *testing.T, name string) (*frontend.Result, traffic.Traffic) {
	t.Helper()
	p, err := p4.Load(filepath.Join("..", "apps", name+".p4"), p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := frontend.Analyse(p, frontend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := "traffic/" + name + ".yaml"
	text, err := apps.Files.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w, err := traffic.Parse(text, file)
	if err != nil {
		t.Fatal(err)
	}
	if w.Flows != nil {
		w.Flows.Count = min(w.Flows.Count, 2000)
	}
	for name := range w.MaxFlowPPS {
		w.MaxFlowPPS[name] = w.RateMpps * 1e6 / 1000
	}
	return r, w
}

func nfp(t *testing.T) *model.Model {
	t.Helper()
	m, err := model.Load(filepath.Join("..", "..", "results", "nfp", "model.json"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Fields are found by the shape of headers, whatever a program calls them.
func TestFieldsByPlace(t *testing.T) {
	for _, x := range []struct {
		app   string
		field string
		want  traffic.Field
	}{
		{"l4lb", "hdr.ipv4.srcAddr", traffic.IPv4Source},
		{"l4lb", "hdr.ethernet.etherType", traffic.Field{Layer: capture.Ethernet, Offset: 96, Bits: 16}},
		{"l4lb", "hdr.tcp.dstPort", traffic.TCPDest},
		{"l4lb", "hdr.tcp.$valid", traffic.Field{Layer: capture.TCP}},
		{"kvcache", "hdr.udp.dstPort", traffic.UDPDest},
		{"kvcache", "hdr.kv.key", traffic.Field{Layer: capture.Payload, Offset: 8, Bits: 128}},
	} {
		r, _ := application(t, x.app)
		m := mapFields(r.Program)
		found := false
		for v, at := range m.at {
			if v.Name == x.field {
				found = true
				if at != x.want {
					t.Errorf("%s: %s is %v, want %v", x.app, x.field, at, x.want)
				}
			}
		}
		if !found {
			t.Errorf("%s: %s has no place", x.app, x.field)
		}
	}
}

// Every application becomes a problem that all strategies solve; its classes
// have all of the traffic, and cora's plan is feasible and no worse than what
// state and flow make of it.
func TestApplications(t *testing.T) {
	m := nfp(t)
	for _, name := range apps.Names {
		r, w := application(t, name)
		b, err := Build(Input{Front: r, Traffic: name, Given: &w, Model: m, Costs: costs.Stored(), Options: Options{Seed: 1}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		sum := 0.0
		for _, c := range b.Problem.Classes {
			sum += c.Mpps
		}
		if math.Abs(sum-w.RateMpps) > 1e-6*w.RateMpps {
			t.Errorf("%s: classes sum to %v Mpps, want %v", name, sum, w.RateMpps)
		}
		cora, err := partition.Solve(b.Problem, partition.Cora, partition.Options{})
		if err != nil || !cora.Feasible {
			t.Errorf("%s: %v, feasible %v", name, err, cora != nil && cora.Feasible)
			continue
		}
		for _, s := range []partition.Strategy{partition.State, partition.Flow} {
			x, err := partition.Solve(b.Problem, s, partition.Options{})
			if err != nil {
				t.Errorf("%s, %s: %v", name, s, err)
			} else if x.Feasible && x.Objective < cora.Objective*(1-1e-9) {
				t.Errorf("%s: %s has objective %v, cora %v", name, s, x.Objective, cora.Objective)
			}
		}
		for i, block := range b.Problem.Blocks {
			if !(block.HostNS > 0) {
				t.Errorf("%s: block %d (%s) costs the host nothing", name, i, block.Name)
			}
		}
	}
}

// A counter that belongs to the entries of a table which cannot be split cannot
// be split either.
func TestDirectCounterStaysWithItsTable(t *testing.T) {
	r, w := application(t, "firewall")
	b, err := Build(Input{Front: r, Traffic: "firewall", Given: &w, Model: nfp(t), Costs: costs.Stored()})
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range b.Blocks {
		if name := r.Name(block.Objects[0]); (name == "permitted" || name == "rules") && b.Problem.Blocks[i].Partitionable {
			t.Errorf("%s can be split", name)
		}
	}
}

// A load of more groups than cells cannot be split, nor one whose cell an entry
// supplies: which share a cell is not known.
func TestSharedCellsAreWhole(t *testing.T) {
	r, w := application(t, "natlb")
	b, err := Build(Input{Front: r, Traffic: "natlb", Given: &w, Model: nfp(t), Costs: costs.Stored()})
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range b.Blocks {
		name := r.Name(block.Objects[0])
		if want := name == "nat" || name == "hits"; b.Problem.Blocks[i].Partitionable != want {
			t.Errorf("%s: split %v, want %v (%s)", name, !want, want, block.Whole)
		}
	}
}

// Packets without the headers that every path needs pass the NIC.
func TestPacketsWithoutHeaders(t *testing.T) {
	r, _ := application(t, "natlb")
	csv := filepath.Join(t.TempDir(), "f.csv")
	text := "src,dst,proto,sport,dport,pps,bytes\n10.0.0.1,10.0.0.2,tcp,1,2,3000000,128\n2001:db8::1,2001:db8::2,tcp,1,2,1000000,128\n"
	if err := os.WriteFile(csv, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	b, err := Build(Input{Front: r, Traffic: csv, Model: nfp(t), Costs: costs.Stored()})
	if err != nil {
		t.Fatal(err)
	}
	x, err := partition.Solve(b.Problem, partition.Cora, partition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(x.OfferedMpps-4) > 1e-9 {
		t.Errorf("%v Mpps offered, want 4", x.OfferedMpps)
	}
	for i, block := range b.Blocks {
		if r.Name(block.Objects[0]) == "nat" && math.Abs(x.Blocks[i].Mpps-3) > 1e-9 {
			t.Errorf("nat is visited by %v Mpps, want the 3 of IPv4", x.Blocks[i].Mpps)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	r, w := application(t, "natlb")
	soc := nfp(t)
	soc.BoardClass = "soc"
	for _, x := range []struct {
		what string
		in   Input
		want string
	}{
		{"another class", Input{Front: r, Given: &w, Model: soc, Costs: costs.Stored()}, "class soc"},
		{"a block that is not there", Input{Front: r, Given: &w, Model: nfp(t), Costs: &costs.Costs{PacketNS: 1, Blocks: map[string]costs.Block{"gone": {NS: 1}}, Points: costs.Stored().Points}}, `"gone"`},
		{"a table that is not there", Input{Front: r, Given: &w, Model: nfp(t), Costs: costs.Stored(), Options: Options{EntriesPerGroup: map[string]int64{"ant": 2}}}, "did you mean nat"},
	} {
		if _, err := Build(x.in); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v; want …%s…", x.what, err, x.want)
		}
	}
}

// Two entries a flow take twice the table.
func TestEntriesPerFlow(t *testing.T) {
	r, w := application(t, "natlb")
	objective := func(perFlow int64) float64 {
		b, err := Build(Input{Front: r, Given: &w, Model: nfp(t), Costs: costs.Stored(),
			Options: Options{TargetMpps: 5, TableEntries: 1000, EntriesPerGroup: map[string]int64{"nat": perFlow}}})
		if err != nil {
			t.Fatal(err)
		}
		x, err := partition.Solve(b.Problem, partition.Cora, partition.Options{})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(b.Blocks, func(e Block) bool { return r.Name(e.Objects[0]) == "nat" })
		if n := int64(x.Blocks[i].Groups) * perFlow; n > 1000 || n < 990 {
			t.Errorf("%d entries a flow: %d entries on the NIC, want 1000", perFlow, n)
		}
		return x.Objective
	}
	if one, two := objective(1), objective(2); two <= one {
		t.Errorf("two entries a flow leave %v to the host, one %v", two, one)
	}
}

// visits are Mpps by object.
func visits(b *Built) map[string]float64 {
	out := map[string]float64{}
	for _, c := range b.Problem.Classes {
		for _, i := range b.Problem.Paths[c.Path].Blocks {
			for _, o := range b.Blocks[i].Objects {
				out[o.Name] += c.Mpps
			}
		}
	}
	return out
}

// Each flow takes the path of its own headers, parser states included: the web
// server's is counted in the sketch, another TCP flow is balanced, and neither
// UDP, ICMP nor what is behind a tag that the parser does not know is.
func TestFlowsTakeTheirOwnPaths(t *testing.T) {
	r, _ := application(t, "l4lb")
	csv := filepath.Join(t.TempDir(), "f.csv")
	text := "src,dst,proto,sport,dport,pps,bytes\n" +
		"10.0.0.1,10.0.0.2,tcp,1,80,30000,128\n10.0.0.3,10.0.0.2,tcp,1,443,70000,128\n" +
		"10.0.0.3,10.0.0.2,udp,1,80,100000,128\n10.0.0.4,10.0.0.2,icmp,0,0,200000,128\n"
	if err := os.WriteFile(csv, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	b, err := Build(Input{Front: r, Traffic: csv, Model: nfp(t), Costs: costs.Stored()})
	if err != nil {
		t.Fatal(err)
	}
	got := visits(b)
	for object, want := range map[string]float64{"sketch0": 0.03, "ConnTable": 0.07, "LoadCntr": 0.07} {
		if math.Abs(got[object]-want) > 1e-9 {
			t.Errorf("%s is visited by %v Mpps, want %v", object, got[object], want)
		}
	}
	share := 0.0
	for _, p := range b.Mix.Paths {
		if len(p.Blocks) == 0 && p.Dropped {
			share += p.Share
		}
	}
	if math.Abs(share-0.75) > 1e-9 {
		t.Errorf("%v of the packets are dropped as no TCP, want 0.75", share)
	}
	// The balanced flow is one entry; the web server's, UDP's and ICMP's are none.
	for i, block := range b.Blocks {
		if block.Objects[0].Name != "ConnTable" {
			continue
		}
		for _, c := range b.Problem.Classes {
			for k, at := range b.Problem.Paths[c.Path].Blocks {
				if at == i && b.Label(i, int(c.Groups[k]))[0] != "10.0.0.3" {
					t.Errorf("ConnTable is visited by %v", b.Label(i, int(c.Groups[k])))
				}
			}
		}
	}
}

// What a user sets of a branch comes before what headers say.
func TestGivenSharesComeFirst(t *testing.T) {
	r, _ := application(t, "l4lb")
	dir := t.TempDir()
	var out bytes.Buffer
	w := traffic.NewCaptureWriter(&out)
	for i, port := range []uint16{80, 443, 443, 443} {
		f := traffic.Flow{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), Proto: 6, SrcPort: 1, DstPort: port}
		w.Write(int64(i)*1000, f.AppendHeaders(nil, 128), 128)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	yaml := filepath.Join(dir, "t.yaml")
	for name, text := range map[string][]byte{filepath.Join(dir, "a.pcap"): out.Bytes(), yaml: []byte("captures: [a.pcap]\nrate_mpps: 1\nbranches: {http: 0.9}\n")} {
		if err := os.WriteFile(name, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]float64{yaml: 0.9, filepath.Join(dir, "a.pcap"): 0.25} {
		b, err := Build(Input{Front: r, Traffic: file, Model: nfp(t), Costs: costs.Stored(), Options: Options{TargetMpps: 1}})
		if err != nil {
			t.Fatal(err)
		}
		x, err := partition.Solve(b.Problem, partition.Cora, partition.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range b.Blocks {
			if block.Objects[0].Name == "sketch0" && math.Abs(x.Blocks[i].Mpps-want) > 1e-9 {
				t.Errorf("%s: the sketch is visited by %v of the packets, want %v", filepath.Base(file), x.Blocks[i].Mpps, want)
			}
		}
	}
}

// Blocks that an @atomic region changes are placed together: split alike where
// their flow groups are the same, and whole where not.
func TestAtomicRegionsStayTogether(t *testing.T) {
	for _, x := range []struct {
		second string // index of the second register
		split  bool
	}{{"hdr.ipv4.srcAddr[9:0]", true}, {"hdr.ipv4.dstAddr[9:0]", false}} {
		dir := t.TempDir()
		if err := apps.Extract(dir); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "atomic.p4")
		text := `#include <core.p4>
#include <v1model.p4>
struct metadata_t { bit<32> n; bit<32> m; }
#include "inet.p4"
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {
    register<bit<32>>(1024) first;
    register<bit<32>>(1024) second;
    apply {
        if (hdr.ipv4.isValid()) {
            @atomic {
                first.read(meta.n, (bit<32>)hdr.ipv4.srcAddr[9:0]);
                first.write((bit<32>)hdr.ipv4.srcAddr[9:0], meta.n + 1);
                second.read(meta.m, (bit<32>)` + x.second + `);
                second.write((bit<32>)` + x.second + `, meta.m ^ 3);
            }
        }
    }
}
V1Switch(InetParser(), InetVerify(), I(), InetEgress(), InetCompute(), InetDeparser()) main;
`
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		p, err := p4.Load(file, p4.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := frontend.Analyse(p, frontend.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := traffic.Traffic{RateMpps: 2, PacketBytes: 128, Flows: &traffic.Flows{Count: 500, Popularity: "zipf", Alpha: 1}}
		// memory for one register and half of the other
		b, err := Build(Input{Front: r, Traffic: "t", Given: &w, Model: nfp(t), Costs: costs.Stored(),
			Options: Options{MemoryBytes: map[string]int64{"imem": 0, "emem": 3000}}})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := partition.Solve(b.Problem, partition.Cora, partition.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := b.Document(plan)
		if len(d.Together) != 1 || len(d.Together[0]) != 2 || len(d.Blocks) != 2 {
			t.Fatalf("%d blocks, together %v; want the two as one", len(d.Blocks), d.Together)
		}
		on := plan.Blocks[0].Groups
		if !plan.Feasible || !slices.Equal(plan.Blocks[0].OnNIC, plan.Blocks[1].OnNIC) || (on > 0) != x.split {
			t.Errorf("%s: feasible %v, %d and %d groups on the NIC; want the same ones, some: %v", x.second, plan.Feasible, on, plan.Blocks[1].Groups, x.split)
		}
	}
}
