package supernic

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nicprof/internal/fault"
	"nicprof/sim"
	"nicprof/traffic"
)

// twoUsers is a scenario that the tests change.
const twoUsers = `board: snic
overrides: {regions: 3, region_area: 2, credits: 8, clock_mhz: 250}
duration_us: 1000
users: [{name: u1, weight: 2}, {name: u2}]
nts:
  - {name: nt1, cycles: 50, gbps: 100, area: 1, shareable: true}
  - {name: nt2, cycles: 50, gbps: 100, area: 1, shareable: true}
  - {name: nt3, cycles: 50, gbps: 100, area: 1}
dags:
  - {name: a, user: u1, ingress_gbps: 50, nodes: [nt1, nt2, nt3], edges: [[nt1, nt2], [nt2, nt3]]}
  - {name: b, user: u2, ingress_gbps: 10, nodes: [nt2]}
load:
  - {dag: a, at_us: 0, gbps: 40, size: 512}
  - {dag: a, at_us: 500, gbps: 80}
policy: {scheduler: snic, parallelism: auto, fairness: snic, victim_cache: true}
`

func parse(t testing.TB, text string) *Scenario {
	t.Helper()
	s, err := Parse([]byte(text), "s.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// edit replaces old, which must be there once, by new.
func edit(t testing.TB, text, old, new string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q is %d times in the scenario", old, strings.Count(text, old))
	}
	return strings.Replace(text, old, new, 1)
}

func TestScenario(t *testing.T) {
	s := parse(t, twoUsers)
	if len(s.NTs) != 3 || s.NTs[2].Shareable || s.NTs[0].II != 1 || *s.Users[0].Weight != 2 || *s.Users[1].Weight != 1 {
		t.Errorf("NTs %+v, users %+v", s.NTs, s.Users)
	}
	p := s.Platform
	if p.Regions != 3 || p.RegionArea != 2 || p.Credits != 8 || p.Cycle != 4*sim.Nanosecond || p.PR != 5*sim.Millisecond {
		t.Errorf("platform %+v", p)
	}
	// The second entry inherits the first one's size.
	if o := s.offers[1]; o.size.PacketBytes != 512 || o.gbps != 80 || o.at != 500*sim.Microsecond {
		t.Errorf("second load %+v", o)
	}
	// Without a size packets are those of DefaultSize.
	s = parse(t, edit(t, twoUsers, ", size: 512", ""))
	if got := s.offers[0].size.Sizes; got == nil || got.Name != DefaultSize || got.Max() > traffic.MaxPacketBytes {
		t.Errorf("sizes %+v, want packets of %s", got, DefaultSize)
	}
}

// A NT that the scenario does not describe is the board's, if that knows it.
func TestBoardsNTs(t *testing.T) {
	s := parse(t, edit(t, edit(t, twoUsers, "nodes: [nt2]}", "nodes: [firewall]}"), "region_area: 2", "region_area: 4"))
	n := s.NTs[s.nt("firewall")]
	of := s.Platform.Board.FPGA.NT("firewall")
	if float64(n.Cycles) != of.Cycles.Value || n.Gbps != of.Gbps.Value || n.Area != of.Area.Value || !n.Shareable {
		t.Errorf("%+v, the board has %+v", n, of)
	}
}

// Every bad input names the file, its line, the value and what to do.
func TestBadInput(t *testing.T) {
	for _, test := range []struct{ name, old, new, want string }{
		{"cyclic DAG", "[nt2, nt3]]", "[nt2, nt3], [nt3, nt1]]", "s.yaml:10: dags[0].edges: the DAG is cyclic: nt1 → nt2 → nt3 → nt1; take one of these edges out"},
		{"edge to itself", "[nt2, nt3]]", "[nt2, nt2]]", "s.yaml:10: dags[0].edges: the DAG is cyclic: nt2 → nt2"},
		{"unknown NT", "nodes: [nt2]}", "nodes: [nt4x]}", `s.yaml:11: dags[1].nodes[0]: unknown NT "nt4x"; did you mean`},
		{"nothing like it", "nodes: [nt2]}", "nodes: [something]}", `unknown NT "something"; describe it in nts, or use one of nt1, nt2, nt3, dummy`},
		{"area above a region", "name: nt3, cycles: 50, gbps: 100, area: 1", "name: nt3, cycles: 50, gbps: 100, area: 2.5", "s.yaml:8: nts[2].area: 2.5 is above a region's 2: no region can run NT nt3; divide it"},
		{"negative load", "gbps: 40", "gbps: -1", "s.yaml:13: load[0].gbps: -1; a load is never negative: expected 0 (idle) or more"},
		{"one DAG name of two users", "name: b, user: u2", "name: a, user: u2", "s.yaml:11: dags[1].name: DAG a is user u1's already; give u2's another name"},
		{"one DAG name twice", "name: b, user: u2", "name: a, user: u1", "s.yaml:11: dags[1].name: DAG a is there twice"},
		{"zero credits", "credits: 8", "credits: 0", "s.yaml:2: overrides.credits: 0; expected 1 or more: an NT without credits never gets a packet"},
		{"PR of an unknown NT", "policy:", "pr: [{at_us: 100, region: 0, chain: [nt1, firewal]}]\npolicy:", `s.yaml:15: pr[0].chain[1]: unknown NT "firewal"; did you mean firewall?`},
		{"PR of no region", "policy:", "pr: [{at_us: 100, region: 3, chain: [nt1]}]\npolicy:", "s.yaml:15: pr[0].region: there is no region 3; the board has 0..2"},
		{"PR of too much", "policy:", "pr: [{at_us: 100, region: 0, chain: [nt1, nt2, nt3]}]\npolicy:", "s.yaml:15: pr[0].chain: its area, 3, is above a region's 2"},
		{"PR of nothing", "policy:", "pr: [{at_us: 100, region: 0}]\npolicy:", "pr[0].chain: no NT"},
		{"over-subscription", "ingress_gbps: 10", "ingress_gbps: 60", "s.yaml:11: dags[1].ingress_gbps: 60 Gb/s cannot be guaranteed: with those of the DAGs before it is 110, the port has 100"},
		{"key-value scenario", "board: snic", "kind: kv", "s.yaml:1: kind: key-value scenarios are not implemented"},
		{"kind", "board: snic", "kind: rack", "s.yaml:1: kind: there are no scenarios of kind rack"},
		{"no board", "board: snic\n", "", "no board; expected one of class fpga"},
		{"another class", "board: snic", "board: nfp", "s.yaml:1: board: nfp is a board of class nfp; expected one of class fpga"},
		{"unknown board", "board: snic", "board: snick", `s.yaml:1: board: no board "snick"`},
		{"no user", "user: u2", "user: u3", `s.yaml:11: dags[1].user: there is no user "u3"`},
		{"user twice", "{name: u2}", "{name: u1}", "s.yaml:4: users[1].name: user u1 is there twice"},
		{"weight", "weight: 2", "weight: 0", "s.yaml:4: users[0].weight: 0; expected a weight above 0"},
		{"NT twice", "{name: nt3", "{name: nt1", "s.yaml:8: nts[2].name: NT nt1 is described twice"},
		{"cycles", "name: nt3, cycles: 50", "name: nt3, cycles: 0", "s.yaml:8: nts[2].cycles: 0; expected cycles of latency"},
		{"rate", "name: nt3, cycles: 50, gbps: 100", "name: nt3, cycles: 50, gbps: -5", "s.yaml:8: nts[2].gbps: -5; expected Gb/s above 0"},
		{"NT twice in a DAG", "nodes: [nt2]}", "nodes: [nt2, nt2]}", "s.yaml:11: dags[1].nodes[1]: NT nt2 is in the DAG twice"},
		{"edge of a stranger", "[nt2, nt3]]", "[nt2, nt4]]", `s.yaml:10: dags[0].edges[1]: "nt4" is not among the DAG's nodes`},
		{"edge of three", "[nt2, nt3]]", "[nt1, nt2, nt3]]", "s.yaml:10: dags[0].edges[1]: 3 NTs; expected two"},
		{"load of no DAG", "{dag: a, at_us: 500", "{dag: c, at_us: 500", `s.yaml:14: load[1].dag: there is no DAG "c"`},
		{"load out of order", "at_us: 500", "at_us: 0", "s.yaml:14: load[1].at_us: 0; DAG a has an entry for 0 already"},
		{"load after the end", "at_us: 500", "at_us: 1000", "s.yaml:14: load[1].at_us: 1000; expected a time within the 1000 µs of duration_us"},
		{"load of nothing", "gbps: 80}", "burst: 2}", "s.yaml:14: load[1]: expected gbps, or pcap"},
		{"burst", "gbps: 80}", "gbps: 80, burst: -1}", "s.yaml:14: load[1].burst: -1; expected 1.."},
		{"size", "size: 512", "size: 20", "s.yaml:13: load[0].size: 20 is not a packet size"},
		{"size's name", "size: 512", "size: facebok", `s.yaml:13: load[0].size: no size distribution "facebok"`},
		{"no capture", "gbps: 80}", "pcap: none.pcap}", "s.yaml:14: load[1].pcap:"},
		{"capture with a size", "gbps: 80}", "pcap: none.pcap, size: 64}", "s.yaml:14: load[1].pcap: beside size or burst"},
		{"policy", "parallelism: auto", "parallelism: some", `s.yaml:15: policy.parallelism: "some"; expected auto, none, dag, instance`},
		{"duration", "duration_us: 1000", "duration_us: 0", "s.yaml:3: duration_us: 0; expected microseconds above 0"},
		{"unknown key", "duration_us: 1000", "duration_us: 1000\nregions: 3", `unknown key "regions"`},
		{"regions", "regions: 3", "regions: 0", "s.yaml:2: overrides.regions: 0; expected 1..256 regions"},
		{"clock", "clock_mhz: 250", "clock_mhz: -1", "s.yaml:2: overrides.clock_mhz: -1; expected a clock"},
		{"region area", "region_area: 2", "region_area: 0", "s.yaml:2: overrides.region_area: 0; expected an area above 0"},
		{"memory", "name: nt3, cycles: 50", "name: nt3, memory_mb: 2000, cycles: 50", "s.yaml:8: nts[2].memory_mb: 2000; expected 0..1024 MB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse([]byte(edit(t, twoUsers, test.old, test.new)), "s.yaml")
			if err == nil || fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
}

// A file may lack everything: each thing is asked for.
func TestNothing(t *testing.T) {
	_, err := Parse([]byte("board: snic\n"), "s.yaml")
	for _, want := range []string{"duration_us:", "users: nobody", "dags: none"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none.yaml")); fault.KindOf(err) != fault.Input {
		t.Errorf("a file that is not there: %v", err)
	}
}

// A guarantee that the chains cannot keep is refused at deployment.
func TestGuaranteeBeyondTheChain(t *testing.T) {
	slow := edit(t, twoUsers, "name: nt3, cycles: 50, gbps: 100", "name: nt3, cycles: 50, gbps: 30")
	slow = edit(t, slow, "parallelism: auto", "parallelism: none")
	_, err := Simulate(t.Context(), parse(t, slow), Options{Seed: 1})
	if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "s.yaml:9: dags: the desired ingress") || !strings.Contains(err.Error(), "nt3 has 30 Gb/s") {
		t.Errorf("got %v", err)
	}
}

// Memory that is not there is refused at deployment, by the DAG that wants it.
func TestMemoryExhausted(t *testing.T) {
	text := "board: snic\nduration_us: 100\nusers: ["
	for i := range 12 {
		text += "{name: u" + string(rune('a'+i)) + "}, "
	}
	text += "]\nnts: [{name: n, cycles: 1, area: 1, memory_mb: 1000, shareable: true}]\ndags:\n"
	for i := range 12 {
		c := string(rune('a' + i))
		text += "  - {name: d" + c + ", user: u" + c + ", nodes: [n]}\n"
	}
	_, err := Simulate(t.Context(), parse(t, text), Options{Seed: 1})
	// 10 GB are 4768 pages, a space of 1000 MB takes 477: nine fit.
	if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "s.yaml:15: dags[9]: DAG dj cannot be deployed") || !strings.Contains(err.Error(), "memory exhausted") {
		t.Errorf("got %v", err)
	}
}

// A capture is played at its own times, or at another rate.
func TestCapture(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "c.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	w := traffic.NewCaptureWriter(f)
	for i := range 100 {
		w.Write(int64(i)*1000, make([]byte, 60), 64+i) // one a µs
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for _, test := range []struct {
		rate string
		gap  sim.Time
	}{
		{"", sim.Microsecond},
		{", gbps: 1.816", sim.Microsecond / 2}, // 113.5 B a µs are 0.908 Gb/s
	} {
		text := edit(t, twoUsers, "  - {dag: a, at_us: 500, gbps: 80}", "  - {dag: a, at_us: 500, pcap: c.pcap"+test.rate+"}")
		s, err := Parse([]byte(text), filepath.Join(dir, "s.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		l := s.offers[1].load(1000 * sim.Microsecond)
		if n := len(l.Trace); n != int(500*sim.Microsecond/test.gap) {
			t.Errorf("rate %q: %d packets in 500 µs", test.rate, n)
		}
		r := simulate(t, s, 1)
		if got := float64(r.DAGs[0].Packets) - 500*40e3/8/512; math.Abs(got-float64(len(l.Trace))) > 400 {
			t.Errorf("rate %q: %.0f packets served beside the first load's, want about %d", test.rate, got, len(l.Trace))
		}
		if a, b := l.Trace[7], l.Trace[107]; a.Bytes != 71 || b.Bytes != 71 || l.Trace[8].After-a.After != test.gap {
			t.Errorf("rate %q: packets 7 and 107 are %v and %v, packet 8 is %v later", test.rate, a, b, l.Trace[8].After-a.After)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(twoUsers)
	f.Add("board: snic\nduration_us: 1e3\nusers: [{name: u}]\ndags: [{name: d, user: u, nodes: [aes, nat], edges: [[nat, aes]]}]\nload: [{dag: d, gbps: .5}]\n")
	f.Add("kind: kv\n")
	f.Add("board: snic\noverrides: {credits: -1}\ndags: [{edges: [[a], []]}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "pcap") || strings.Contains(text, "cdf") || strings.Contains(text, ".y") {
			return // names files
		}
		s, err := Parse([]byte(text), "s.yaml")
		if err != nil {
			if fault.KindOf(err) != fault.Input {
				t.Fatalf("not the user's fault: %v", err)
			}
			return
		}
		for i, g := range s.graphs {
			if g.cycle() != nil || len(g.order(g.all())) != len(s.DAGs[i].Nodes) {
				t.Fatalf("DAG %d has no order", i)
			}
		}
	})
}
