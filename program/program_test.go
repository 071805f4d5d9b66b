package program

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nicprof/internal/fault"
	"nicprof/traffic"
)

const countMin = `name: count-min
base: forward
packet_bytes: 64
stateless: {alu: 120}
accesses:
  - {memory: emem, op: read, mode: atomic, bytes: 4, per_packet: 3, span: 65536}
locks:
  - {name: sketch, elements: 4096, idiom: spin, section: [{memory: emem, op: read, mode: atomic, bytes: 4, per_packet: 1}]}
flows: {count: 1000, popularity: zipf, alpha: 0.99}
`

func TestParse(t *testing.T) {
	read := Access{Memory: "emem", Op: Read, Mode: Atomic, Bytes: 4, PerPacket: 1}
	three := read
	three.PerPacket, three.Span = 3, 65536
	want := Program{
		Name: "count-min", Base: "forward", PacketBytes: 64, Stateless: Stateless{ALU: 120},
		Accesses: []Access{three},
		Locks:    []Lock{{Name: "sketch", Elements: 4096, Idiom: Spin, Section: []Access{read}}},
		Flows:    &traffic.Flows{Count: 1000, Popularity: "zipf", Alpha: 0.99},
	}
	got, err := Parse(strings.NewReader(countMin), "count-min.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for in, want := range map[string]Stateless{"stateless: 400": {ALU: 400}, "stateless: {hash: 1, modulo: 0.5}": {Hash: 1, Modulo: .5}} {
		p, err := Parse(strings.NewReader(in), "x")
		if err != nil || !reflect.DeepEqual(p.Stateless, want) {
			t.Errorf("%s: got %v, %v; want %v", in, p.Stateless, err, want)
		}
	}
	if p, err := Parse(strings.NewReader("base: 1200\nchain: [{name: nt1, cycles: 50}]"), "x"); err != nil || p.Base != "1200" || len(p.Chain) != 1 {
		t.Errorf("cycles as base and a chain: got %+v, %v", p, err)
	}
}

func TestParseComplaints(t *testing.T) {
	access := func(fields string) string {
		return "accesses:\n  - {memory: emem, op: read, mode: bulk, bytes: 4, per_packet: 1}\n  - {" + fields + "}\n"
	}
	for _, c := range []struct{ in, want string }{
		{access("memory: emem, op: read, mode: bulk, bytes: 6, per_packet: 1"), "p.yaml:3: accesses[1].bytes: 6 is not a multiple of 4; allowed are 4, 8, …, 128"},
		{access("memory: emem, op: read, mode: bulk, bytes: 0, per_packet: 1"), "p.yaml:3: accesses[1].bytes: 0 is out of range; allowed are 4, 8, …, 128"},
		{access("memory: emem, op: read, mode: bulk, per_packet: 1"), "p.yaml:3: accesses[1].bytes: 0 is out of range; allowed are 4, 8, …, 128"},
		{access("memory: emem, op: read, mode: bulk, bytes: 256, per_packet: 1"), "p.yaml:3: accesses[1].bytes: 256 is out of range; allowed are 4, 8, …, 128"},
		{access("memory: emem, op: add, mode: bulk, bytes: 4, per_packet: 1"), "p.yaml:3: accesses[1].mode: add is atomic; a bulk engine only reads and writes: use add:atomic"},
		{access("memory: emem, op: swap, mode: bulk, bytes: 4, per_packet: 1"), `p.yaml:3: accesses[1].op: "swap" is not an operation; expected read, write or add`},
		{access("memory: emem, op: read, mode: fast, bytes: 4, per_packet: 1"), `p.yaml:3: accesses[1].mode: "fast" is not a mode; expected bulk or atomic`},
		{access("op: read, mode: bulk, bytes: 4, per_packet: 1"), `p.yaml:3: accesses[1].memory: "" is not a name; expected letters, digits, _, - and .`},
		{access("memory: emem, op: read, mode: bulk, bytes: 4, per_packet: -1"), "p.yaml:3: accesses[1].per_packet: -1 accesses a packet; expected 0..10000, fractions allowed"},
		{access("memory: emem, op: read, mode: bulk, bytes: 4, per_packet: .nan"), "p.yaml:3: accesses[1].per_packet: NaN accesses a packet; expected 0..10000, fractions allowed"},
		{access("memory: emem, op: read, mode: bulk, bytes: 4, per_packet: .inf"), "p.yaml:3: accesses[1].per_packet: +Inf accesses a packet; expected 0..10000, fractions allowed"},
		{access("memory: emem, op: read, mode: bulk, bytes: 4, per_packet: 1, span: 0"), "p.yaml:3: accesses[1].span: the number of elements is 0; leave it out for the default"},
		{access("memory: emem, op: read, mode: bulk, bytes: 4, per_packet: 1, span: -8"), "p.yaml:3: accesses[1].span: -8 elements; expected 1..2^40"},
		{access("memory: emem, op: read, mode: bulk, bytes: 4, per_packet: 1, stride: 6"), "p.yaml:3: accesses[1].stride: 6 bytes between elements; expected a positive multiple of 4"},
		{access("memory: emem, op: read, mode: bulk, bytes: 4, per_packet: 1, alpha: 0.9"), "p.yaml:3: accesses[1].alpha: 0.9 is set without popularity: zipf"},
		{access("memory: emem, op: read, mode: bulk, bytes: 4, per_packet: 1, popularity: zipf"), "p.yaml:3: accesses[1].alpha: 0 is not a Zipf exponent; expected above 0 up to 20, such as 0.99"},
		{access("memory: emem, op: read, mode: bulk, bytes: 4, per_packet: 1, popularity: hot"), `p.yaml:3: accesses[1].popularity: "hot" is not a popularity; expected uniform or zipf`},
		{access("memory: emem, op: read, mode: bulk, byts: 4, per_packet: 1"), `p.yaml:3: accesses[1]: unknown key "byts"; known are memory, op, mode, bytes, per_packet, span, stride, popularity, alpha`},
		{"name: x\naccesses:\n\t- {memory: emem}\n", "p.yaml:3: a tab in the indentation; indent YAML with spaces"},
		{"packet_bytes: 20\n", "p.yaml:1: packet_bytes: 20 is not a packet size; expected 64..9216 bytes"},
		{"packet_bytes: 0\n", "p.yaml:1: packet_bytes: the packet size is 0; leave it out for the default"},
		{"stateless: lots\n", "p.yaml:1: stateless: expected a number of ALU operations, or numbers by kind such as {alu: 120, hash: 1}"},
		{"stateless:\n  alu: 1\n  fft: 2\n", "p.yaml:3: stateless.fft: unknown kind of operation; known are alu, multiply, modulo, hash, checksum, header"},
		{"stateless: -3\n", "p.yaml:1: stateless.alu: -3 operations a packet; expected 0..10000000"},
		{"locks:\n  - {name: a, elements: 0}\n", "p.yaml:2: locks[0].elements: 0 locks; expected 1..16777216"},
		{"locks:\n  - {name: a, elements: 1, idiom: sleep-}\n", `p.yaml:2: locks[0].idiom: "sleep-" is not a lock idiom; expected spin, sleep-CYCLES (1..1048576), ticket, mutex or none`},
		{"locks:\n  - {name: a, elements: 1}\n  - {name: a, elements: 1}\n", `p.yaml:3: locks[1].name: "a" is already the name of locks[0]`},
		{"locks:\n  - name: a\n    elements: 1\n    section:\n      - {memory: imem, op: read, mode: bulk, bytes: 5, per_packet: 1}\n", "p.yaml:5: locks[0].section[0].bytes: 5 is not a multiple of 4; allowed are 4, 8, …, 128"},
		{"flows: {count: 0}\n", "p.yaml:1: flows.count: 0 flows; expected 1..2^40"},
		{"flows: {count: 10, popularity: zipf, alpha: -1}\n", "p.yaml:1: flows.alpha: -1 is not a Zipf exponent; expected above 0 up to 20, such as 0.99"},
		{"chain: [{name: nt1, cycles: -1}]\n", "p.yaml:1: chain[0].cycles: -1 cycles; expected 1..1048576, or none for an NT that the board knows"},
		{"chain: [{name: nt1, gbps: -1, ii: -2}]\n", "p.yaml:1: chain[0].ii: a packet every -2 cycles; expected 1..1048576\np.yaml:1: chain[0].gbps: -1 Gb/s; expected 0 (no limit) to 1048576"},
		{"credits: 4\n", "p.yaml:1: chain: parallel, credits and configure need a chain of network tasks"},
		{"chain: [{name: a}]\ncredits: -1\n", "p.yaml:2: credits: -1 credits; expected 1..65536, or none for the board's"},
		{"chain: [{name: a}]\nconfigure: melt\n", `p.yaml:2: configure: "melt"; expected pr or context-switch`},
		{"", "p.yaml:1: the file is empty; a YAML document is expected"},
	} {
		_, err := Parse(strings.NewReader(c.in), "p.yaml")
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\n got %v\nwant %s", c.in, err, c.want)
		}
		if fault.KindOf(err) != fault.Input {
			t.Errorf("%s: not a fault of the user's", c.in)
		}
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.yaml")
	if _, _, err := Load(path); fault.KindOf(err) != fault.Input {
		t.Errorf("a missing file: got %v", err)
	}
	if err := os.WriteFile(path, []byte(countMin), 0o666); err != nil {
		t.Fatal(err)
	}
	p, locate, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	p.Accesses[0].Bytes = 6
	if got, want := locate(p.Validate()).Error(), path+":6: accesses[0].bytes: 6 is not"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q…", got, want)
	}
}

func TestParseAccess(t *testing.T) {
	want := Access{Memory: "emem", Op: Read, Mode: Bulk, Bytes: 64, PerPacket: 10, Span: 8192, Stride: 128}
	if got, err := ParseAccess("emem:read:bulk:64:10:8192:128"); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for spec, want := range map[string]string{
		"":                                        "expected MEMORY:OP:MODE:BYTES:PER_PACKET[:SPAN[:STRIDE]]",
		"emem:read:bulk:64":                       "expected MEMORY:OP:MODE:BYTES:PER_PACKET[:SPAN[:STRIDE]]",
		"emem:read:bulk:64:1:2:4:8":               "expected MEMORY:OP:MODE:BYTES:PER_PACKET[:SPAN[:STRIDE]]",
		"emem:read:bulk:6:1":                      "bytes: 6 is not a multiple of 4",
		"emem:read:bulk:256:1":                    "bytes: 256 is out of range",
		"emem:read:bulk:x:1":                      `BYTES: "x" is not a whole number`,
		"emem:read:bulk:4:x":                      `PER_PACKET: "x" is not a number`,
		"emem:read:bulk:4:NaN":                    "per_packet: NaN accesses a packet",
		"emem:read:bulk:4:-1":                     "per_packet: -1 accesses a packet",
		"emem:read:bulk:4:1:0":                    `SPAN: "0" is not a whole number of at least 1`,
		"emem:read:bulk:4:1:":                     `SPAN: "" is not a whole number of at least 1`,
		"emem:read:bulk:4:1:8:0":                  `STRIDE: "0" is not a whole number of at least 1`,
		"emem:read:bulk:4:1:99999999999999999999": `SPAN: "99999999999999999999"`,
		"emem:read:bulk:4:1:1099511627777":        "span: 1099511627777 elements; expected 1..2^40",
		"emem:add:bulk:4:1":                       "use add:atomic",
		"emem:read:bulk:4:1:zipf:0":               "alpha: 0 is not a Zipf exponent",
		"emem:read:bulk:4:1:zipf:x":               `"x" is not a Zipf exponent`,
		"e mem:read:bulk:4:1":                     `"e mem" is not a name`,
	} {
		_, err := ParseAccess(spec)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "access ") || fault.KindOf(err) != fault.Input {
			t.Errorf("%q: got %v, want %s", spec, err, want)
		}
	}
}

func TestParseLock(t *testing.T) {
	rd := Access{Memory: "emem", Op: Read, Mode: Atomic, Bytes: 4, PerPacket: 1}
	wr := rd
	wr.Op = Write
	for spec, want := range map[string]Lock{
		"sketch:1:spin:emem:read:atomic:4:1+emem:write:atomic:4:1": {Name: "sketch", Elements: 1, Idiom: Spin, Section: []Access{rd, wr}},
		"sketch:8:emem:read:atomic:4:1":                            {Name: "sketch", Elements: 8, Section: []Access{rd}},
		"l:1:empty":                                                {Name: "l", Elements: 1},
		"l:2:sleep-200:empty":                                      {Name: "l", Elements: 2, Idiom: "sleep-200"},
		"l:2:ticket:hash:empty":                                    {Name: "l", Elements: 2, Idiom: Ticket, Hash: true},
		"l:2:none:empty":                                           {Name: "l", Elements: 2, Idiom: None},
	} {
		if got, err := ParseLock(spec); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, %v; want %+v", spec, got, err, want)
		}
	}
	for spec, want := range map[string]string{
		"":                              "expected NAME:ELEMENTS[:IDIOM]",
		"l:1":                           "expected NAME:ELEMENTS[:IDIOM]",
		"l:x:empty":                     `ELEMENTS: "x" is not a whole number`,
		"l:0:empty":                     "elements: 0 locks; expected 1..",
		":1:empty":                      `name: "" is not a name`,
		"l:1:spin":                      "expected NAME:ELEMENTS[:IDIOM]",
		"l:1:futex:empty":               "with IDIOM spin, sleep-CYCLES, ticket, mutex or none",
		"l:1:sleep-0:empty":             `"sleep-0" is not a lock idiom`,
		"l:1:spin:emem:read:bulk:6:1":   "bytes: 6 is not a multiple of 4",
		"l:1:spin:emem:read:bulk:4:1++": "expected MEMORY:OP:MODE",
	} {
		_, err := ParseLock(spec)
		if err == nil || !strings.Contains(err.Error(), want) || fault.KindOf(err) != fault.Input {
			t.Errorf("%q: got %v, want %s", spec, err, want)
		}
	}
}

func TestParseStateless(t *testing.T) {
	if s, err := ParseStateless("400"); err != nil || s[ALU] != 400 || len(s) != 1 {
		t.Errorf("got %v, %v", s, err)
	}
	for _, in := range []string{"", "x", "-1", "NaN", "Inf", "1e9"} {
		if _, err := ParseStateless(in); fault.KindOf(err) != fault.Input {
			t.Errorf("%q: got %v", in, err)
		}
	}
}

func TestSleep(t *testing.T) {
	for idiom, want := range map[Idiom]int{Spin: 0, Ticket: 0, "sleep-200": 200, "sleep-1048576": 1 << 20, "sleep-1048577": 0, "sleep--1": 0, "sleep-+5": 0, "sleep-05": 0, "sleep-": 0} {
		if got := idiom.Sleep(); got != want {
			t.Errorf("%s: %d, want %d", idiom, got, want)
		}
	}
}

func genAccess(t *rapid.T) Access {
	a := Access{
		Memory:    rapid.StringMatching(`[a-zA-Z0-9_.-]{1,8}`).Draw(t, "memory"),
		Op:        rapid.SampledFrom([]Op{Read, Write, Add}).Draw(t, "op"),
		Mode:      Atomic,
		Bytes:     4 * rapid.IntRange(1, MaxBytes/4).Draw(t, "words"),
		PerPacket: rapid.Float64Range(0, MaxPerPacket).Draw(t, "per_packet"),
		Span:      rapid.Int64Range(0, traffic.MaxFlows).Draw(t, "span"),
		Stride:    4 * rapid.Int64Range(0, 1<<40).Draw(t, "stride/4"),
	}
	if a.Op != Add {
		a.Mode = rapid.SampledFrom([]Mode{Bulk, Atomic}).Draw(t, "mode")
	}
	if rapid.Bool().Draw(t, "zipf") {
		a.Popularity, a.Alpha = "zipf", rapid.Float64Range(1e-9, traffic.MaxAlpha).Draw(t, "alpha")
	}
	return a
}

// A spec printed from a valid value reads back as that value, so that a key of
// a sample says exactly what was measured.
func TestSpecsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := genAccess(t)
		if got, err := ParseAccess(a.String()); err != nil || got != a {
			t.Fatalf("%s: got %+v, %v; want %+v", a, got, err, a)
		}
		l := Lock{
			Name:     rapid.StringMatching(`[a-zA-Z0-9_.-]{1,8}`).Draw(t, "name"),
			Elements: rapid.IntRange(1, MaxElements).Draw(t, "elements"),
			Idiom:    rapid.SampledFrom([]Idiom{"", Spin, Ticket, Mutex, None, "sleep-17"}).Draw(t, "idiom"),
			Hash:     rapid.Bool().Draw(t, "hash"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "section") {
			l.Section = append(l.Section, genAccess(t))
		}
		if got, err := ParseLock(l.String()); err != nil || !reflect.DeepEqual(got, l) {
			t.Fatalf("%s: got %+v, %v; want %+v", l, got, err, l)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(countMin)
	f.Add("stateless: {alu: [1]}\naccesses: [{}]\nlocks: [{section: [{}]}]\nflows: {}\n")
	f.Fuzz(func(t *testing.T, in string) {
		p, err := Parse(strings.NewReader(in), "f")
		if err != nil && fault.KindOf(err) != fault.Input {
			t.Fatalf("not a fault of the user's: %v", err)
		}
		if err == nil && p.Validate() != nil {
			t.Fatalf("parsed a program that is not valid: %v", p.Validate())
		}
	})
}

func FuzzParseAccess(f *testing.F) {
	f.Add("emem:read:bulk:64:10:8192:128:zipf:0.99")
	f.Add("emem:add:atomic:4:0.5::8")
	f.Fuzz(func(t *testing.T, spec string) {
		a, err := ParseAccess(spec)
		if err != nil {
			return
		}
		if b, err := ParseAccess(a.String()); err != nil || b != a {
			t.Fatalf("%q: %+v reads back as %+v, %v", spec, a, b, err)
		}
	})
}

func FuzzParseLock(f *testing.F) {
	f.Add("sketch:1:spin:emem:read:atomic:4:1+emem:write:atomic:4:1")
	f.Add("l:2:sleep-200:hash:empty")
	f.Fuzz(func(t *testing.T, spec string) {
		l, err := ParseLock(spec)
		if err != nil {
			return
		}
		if m, err := ParseLock(l.String()); err != nil || !reflect.DeepEqual(m, l) {
			t.Fatalf("%q: %+v reads back as %+v, %v", spec, l, m, err)
		}
	})
}
