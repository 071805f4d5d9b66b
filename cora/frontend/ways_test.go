package frontend

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// taken are the blocks that a packet's ways visit, with their shares, by what
// its headers decide.
func taken(t *testing.T, m *Mix, known map[string]string) string {
	t.Helper()
	var out []string
	for _, w := range m.Ways {
		holds := true
		for _, c := range w.Conditions {
			h, decided := c.Holds(known)
			if !decided {
				t.Fatalf("%s is not decided by %v", c, known)
			}
			if holds = h; !holds {
				break
			}
		}
		if !holds {
			continue
		}
		s := fmt.Sprintf("%v %.2g", w.Blocks, w.Given)
		if w.Dropped {
			s += " dropped"
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func bigs(list []int64) []*big.Int {
	var out []*big.Int
	for _, n := range list {
		out = append(out, big.NewInt(n))
	}
	return out
}

// A packet takes the ways of its own headers, whatever the mean packet does: one
// that is no TCP is not balanced though all packets are assumed to be TCP's.
func TestWays(t *testing.T) {
	p := parse(t, "struct metadata_t { bit<16> port; }", `
		register<bit<32>>(16) web; register<bit<32>>(16) other; register<bit<32>>(16) all; bit<32> v;
		table t { key = { hdr.ipv4.srcAddr: exact; } actions = { NoAction; } size = 4; }`, `
		if (!hdr.tcp.isValid()) { mark_to_drop(standard_metadata); return; }
		meta.port = hdr.tcp.dstPort;
		if (meta.port == 80 || meta.port >= 0x1f90 && meta.port <= 8090) { web.read(v, 0); } else { other.read(v, 0); }
		if (t.apply().hit) { all.read(v, 0); }`)
	r := analyse(t, p, "")
	m, err := r.Mix(map[string]float64{"t.hit": .75})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Paths) != 4 {
		t.Errorf("paths %+v, want web or other, then a hit or none", m.Paths)
	}
	const tcp = "hdr.ethernet.etherType=2048 hdr.ipv4.protocol=6 hdr.tcp.dstPort="
	for text, want := range map[string]string{
		"hdr.ethernet.etherType=2054":                      "[] 1 dropped",
		"hdr.ethernet.etherType=2048 hdr.ipv4.protocol=1":  "[] 1 dropped",
		"hdr.ethernet.etherType=2048 hdr.ipv4.protocol=17": "[] 1 dropped",
		tcp + "80":   "[0 3 2] 0.75, [0 3] 0.25",
		tcp + "8081": "[0 3 2] 0.75, [0 3] 0.25",
		tcp + "22":   "[1 3 2] 0.75, [1 3] 0.25",
	} {
		known := map[string]string{}
		for _, f := range strings.Fields(text) {
			name, value, _ := strings.Cut(f, "=")
			known[name] = value
		}
		if got := taken(t, m, known); got != want {
			t.Errorf("%s: ways %s, want %s", text, got, want)
		}
	}
	// A way's share is that of its conditions, times what is given then.
	for _, w := range m.Ways {
		chance := w.Given
		for _, c := range w.Conditions {
			chance *= c.Chance
		}
		if math.Abs(chance-w.Share) > 1e-12 {
			t.Errorf("way %v: share %v, conditions and what is given make %v", w.Blocks, w.Share, chance)
		}
	}
}

// Cases of a switch: values, masks, ranges, several values, and the rest.
func TestCases(t *testing.T) {
	p := parse(t, "struct metadata_t { }", `register<bit<32>>(16) r0; register<bit<32>>(16) r1; register<bit<32>>(16) r2; bit<32> v;`,
		`switch (hdr.ipv4.ttl) { 1: 2: { r0.read(v, 0); } 64: { r1.read(v, 0); } default: { r2.read(v, 0); } }`)
	m, err := analyse(t, p, "").Mix(nil)
	if err != nil {
		t.Fatal(err)
	}
	for ttl, want := range map[string]string{"1": "[0] 1", "2": "[0] 1", "64": "[1] 1", "63": "[2] 1"} {
		if got := taken(t, m, map[string]string{"hdr.ethernet.etherType": "2048", "hdr.ipv4.ttl": ttl}); got != want {
			t.Errorf("TTL %s: ways %s, want %s", ttl, got, want)
		}
	}
	for _, c := range []struct {
		label string
		vals  []int64
		fits  bool
	}{
		{"5", []int64{5}, true}, {"5", []int64{6}, false}, {"default", []int64{6}, true},
		{"(5, _)", []int64{5, 9}, true}, {"(5, 1)", []int64{5, 9}, false}, {"(_, 9)", []int64{1, 9}, true},
		{"2048&&&65280", []int64{2049}, true}, {"2048&&&65280", []int64{4096}, false},
		{"3..5", []int64{5}, true}, {"3..5", []int64{6}, false}, {"(3..5, 8&&&8)", []int64{3, 12}, true},
	} {
		got, decided := matches(c.label, bigs(c.vals))
		if !decided || got != c.fits {
			t.Errorf("%v is in case %s: %t (decided %t), want %t", c.vals, c.label, got, decided, c.fits)
		}
	}
	if _, decided := matches("MyParser.set", bigs([]int64{1})); decided {
		t.Error("a value set that the control plane fills is decided")
	}
}
