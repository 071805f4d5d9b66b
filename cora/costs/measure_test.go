package costs

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func newTable(n int64, key, data int) *hashTable {
	b, e := tableBytes(n, key, data)
	t := &hashTable{buckets: make([]byte, b), entries: make([]byte, e), mask: uint64(b/bucketBytes - 1), key: key, entry: key + data}
	t.fill(n)
	return t
}

// What is measured must be the operation: every key is found with its own data,
// and a key that was not inserted is not.
func TestHashTableFindsItsKeys(t *testing.T) {
	for _, key := range tableKeys {
		tab := newTable(5000, key, 8)
		for i := range 5000 {
			e := tab.entries[i*tab.entry+key:]
			binary.LittleEndian.PutUint64(e, uint64(i))
		}
		k := make([]byte, key)
		for i := range 10000 {
			keyOf(k, uint64(i))
			data := tab.find(k)
			switch {
			case i >= 5000 && data != nil:
				t.Fatalf("%d B: key %d found, not inserted", key, i)
			case i < 5000 && (data == nil || binary.LittleEndian.Uint64(data) != uint64(i)):
				t.Fatalf("%d B: key %d: data %v", key, i, data)
			}
		}
	}
}

func TestRoutesFindTheirPrefix(t *testing.T) {
	r := &routes{first: make([]uint32, 1<<24)}
	r.fill(1000)
	hits := 0
	for i, a := range r.addrs {
		if r.find(a) == uint32(i)+1 {
			hits++
		}
	}
	// prefixes drawn at random that agree in 24 bits replace each other
	if hits < 990 {
		t.Errorf("%d of 1000 prefixes found", hits)
	}
	if got := r.find(0xfefefefe); got != 0 {
		t.Errorf("an address without a prefix: %d", got)
	}
}

func TestRulesFindTheFirstThatMatches(t *testing.T) {
	r := &rules{}
	r.fill(100)
	for i := range 100 {
		if got := r.find([2]uint64{uint64(i)<<16 | 99, 1}); got != i {
			t.Errorf("rule %d: got %d", i, got)
		}
	}
	if got := r.find([2]uint64{100 << 16, 0}); got != -1 {
		t.Errorf("no rule matches: got %d", got)
	}
}

// A packet forwarded has a right checksum again; a damaged one is dropped.
func TestForward(t *testing.T) {
	f := &frames{memory: make([]byte, 4*bufferBytes)}
	f.fill(4)
	for i := range 4 {
		b := f.memory[i*bufferBytes:]
		for range 3 {
			if !forward(b) || ones(b[ipAt:ipAt+20]) != 0xffff {
				t.Fatalf("packet %d: not forwarded, or with checksum sum %#x", i, ones(b[ipAt:ipAt+20]))
			}
		}
	}
	f.memory[ipAt+12]++
	if forward(f.memory) {
		t.Error("a packet with a wrong checksum was forwarded")
	}
}

// Adds, locked updates and writes reach the cells they name.
func TestCells(t *testing.T) {
	for _, k := range []Kind{Add, Locked} {
		stride := strideOf(k, 4)
		c := &cells{memory: make([]byte, 16*stride+64), bytes: 4, stride: stride}
		run, at := c.runAdd, 0
		if k == Locked {
			run, at = c.runLocked, 8
		}
		run([]uint32{3, 3, 7})
		for i, want := range map[int]byte{3: 2, 7: 1, 0: 0} {
			if got := c.memory[i*stride+at]; got != want {
				t.Errorf("%s: cell %d: %d, want %d", k, i, got, want)
			}
		}
	}
	c := &cells{memory: make([]byte, 64+64), bytes: 4, stride: 4}
	c.runWrite([]uint32{1, 2})
	if c.memory[8] != 1 {
		t.Errorf("cell 2 holds %d, want 1", c.memory[8])
	}
	if got := c.runRead([]uint32{2, 2}); got != 2 {
		t.Errorf("two reads of 1 sum to %d", got)
	}
}

// Interpolation stays between the points around it, and is exact on them.
func TestTimesBetweenPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "points")
		c := &Costs{}
		lo, hi := 1e18, 0.0
		for i := range n {
			ns := rapid.Float64Range(1, 500).Draw(t, "ns")
			c.Points = append(c.Points, Point{Kind: Exact, KeyBytes: 12, Entries: 1 << (2 * i), NS: ns})
			lo, hi = min(lo, ns), max(hi, ns)
			got, err := c.at(Op{Kind: Exact, KeyBytes: 12, Entries: 1 << (2 * i)})
			if err != nil || math.Abs(got-ns) > 1e-9 {
				t.Fatalf("on a point: %v, %v; want %v", got, err, ns)
			}
		}
		entries := rapid.Int64Range(0, 1<<40).Draw(t, "entries")
		got, err := c.at(Op{Kind: Exact, KeyBytes: 4, Entries: entries})
		if err != nil || got < lo-1e-9 || got > hi+1e-9 {
			t.Fatalf("%d entries: %v, %v; want %v to %v", entries, got, err, lo, hi)
		}
	})
}

func TestSizedTakesTheNextLarger(t *testing.T) {
	c := &Costs{Points: []Point{
		{Kind: Exact, KeyBytes: 4, NS: 1}, {Kind: Exact, KeyBytes: 16, NS: 2}, {Kind: Exact, KeyBytes: 32, NS: 3}}}
	for key, want := range map[int]float64{1: 1, 4: 1, 5: 2, 16: 2, 17: 3, 99: 3} {
		if got, err := c.at(Op{Kind: Exact, KeyBytes: key}); err != nil || got != want {
			t.Errorf("key of %d B: %v, %v; want %v", key, got, err, want)
		}
	}
}

func TestBlockSumsItsOperationsUnlessGiven(t *testing.T) {
	c := &Costs{ClockGHz: 2, Points: []Point{{Kind: Exact, NS: 50}, {Kind: Add, NS: 10}},
		Blocks: map[string]Block{"b1": {NS: 7}, "nat": {Cycles: 300}}}
	ops := []Op{{Kind: Exact, Count: 1}, {Kind: Add, Count: 2.5}}
	for _, x := range []struct {
		name    string
		objects []string
		want    float64
	}{{"b0", nil, 75}, {"b1", nil, 7}, {"b2", []string{"x", "nat"}, 150}} {
		if got, err := c.Block(x.name, x.objects, ops); err != nil || got != x.want {
			t.Errorf("%s: %v, %v; want %v", x.name, got, err, x.want)
		}
	}
	if _, err := c.Block("b3", nil, []Op{{Kind: LPM, Count: 1}}); err == nil {
		t.Error("an operation without a point has a time")
	}
}

// Every kind that Measure measures can be built and run, and its plan covers
// every kind.
func TestPlanBuilds(t *testing.T) {
	seen := map[Kind]bool{}
	for _, x := range plan() {
		if seen[x.Kind] && x.Entries > 1<<12 {
			continue
		}
		seen[x.Kind] = true
		o, _, end, err := x.build()
		if err != nil {
			t.Skipf("memory cannot be mapped: %v", err)
		}
		elements := []uint32{0, 1, 2}
		o.prepare(elements)
		o.run(elements)
		end()
	}
	for _, k := range Kinds {
		if !seen[k] {
			t.Errorf("%s is not in the plan", k)
		}
	}
}

func TestParse(t *testing.T) {
	for _, x := range []struct{ text, want string }{
		{"blocks: {b0: {cycles: 300}}", "costs.yaml:1: blocks.b0.cycles: cycles need the clock"},
		{"clock_ghz: 2\nblocks: {b0: {ns: -1}}", "costs.yaml:2: blocks.b0.ns: -1 is not a time"},
		{"points: [{kind: sort, ns: 1}]", "costs.yaml:1: points[0].kind: \"sort\" is not an operation"},
		{"backend: emulated", "costs.yaml:1: backend: \"emulated\"; expected native or given"},
		{"schema: nicprof-host-costs/9", "costs.yaml:1: schema"},
		{"block: 1", "costs.yaml:1: unknown key \"block\""},
	} {
		_, err := Parse([]byte(x.text), "costs.yaml")
		if err == nil || len(err.Error()) < len(x.want) || err.Error()[:len(x.want)] != x.want {
			t.Errorf("%s: %v; want %s…", x.text, err, x.want)
		}
	}
	c, err := Parse([]byte("clock_ghz: 2.5\nblocks: {nat: {cycles: 500}}\npacket_ns: 120"), "costs.yaml")
	if err != nil || c.Backend != "given" {
		t.Fatalf("%v, %v", c, err)
	}
}

// The costs that come with the program are native and say where they come from.
func TestStored(t *testing.T) {
	c := Stored()
	if c.Backend != "native" || c.Machine == "" || !(c.ClockGHz > 0.1) {
		t.Errorf("stored costs: backend %q, machine %q, %v GHz", c.Backend, c.Machine, c.ClockGHz)
	}
	for _, k := range Kinds {
		if ns, err := c.at(Op{Kind: k, KeyBytes: 4, Bytes: 4, Entries: 1024}); err != nil || !(ns > 0) {
			t.Errorf("%s: %v ns, %v", k, ns, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("clock_ghz: 2.5\nblocks: {nat: {cycles: 500}}"))
	f.Add([]byte(fmt.Sprintf("schema: %s\npoints: [{kind: exact, key_bytes: 4, entries: 256, ns: 20}]", Schema)))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data, "x")
		if err != nil {
			return
		}
		if ns, err := c.at(Op{Kind: Exact, KeyBytes: 4, Entries: 1000}); err == nil && !(ns >= 0 && ns <= maxNS) {
			t.Errorf("%v ns", ns)
		}
	})
}
