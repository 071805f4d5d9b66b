package plan

import (
	"math"
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

// Packets of a capture or CSV decide branches on their own fields; what a user
// sets comes first.
func TestSharesFromPackets(t *testing.T) {
	r, _ := application(t, "l4lb")
	dir := t.TempDir()
	csv := filepath.Join(dir, "f.csv")
	text := "src,dst,proto,sport,dport,pps,bytes\n10.0.0.1,10.0.0.2,tcp,1,80,30000,128\n10.0.0.3,10.0.0.2,tcp,1,443,70000,128\n10.0.0.3,10.0.0.2,udp,1,80,100000,128\n"
	if err := os.WriteFile(csv, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	b := &builder{Input: Input{Front: r, Traffic: csv}, fields: mapFields(r.Program), out: &Built{}}
	shares, err := b.measureShares(nil)
	if err != nil || math.Abs(shares["http"]-0.3) > 1e-9 {
		t.Errorf("http %v of the TCP packets (%v), want 0.3", shares["http"], err)
	}
	if _, ok := shares["ConnTable.hit"]; ok {
		t.Error("a look-up's outcome was read from packets")
	}
	if shares, err = b.measureShares(map[string]float64{"http": 0.9}); err != nil || shares["http"] != 0.9 {
		t.Errorf("http %v (%v), want the 0.9 that was set", shares["http"], err)
	}
}
