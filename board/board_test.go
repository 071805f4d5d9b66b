package board

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nicprof/internal/fault"
	"nicprof/program"
	"nicprof/traffic"
)

func load(t *testing.T, name string) *Board {
	t.Helper()
	b, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Every board of the catalogue loads, bears its file's name, and is the same
// when its printed source is loaded as a user's file.
func TestCatalogue(t *testing.T) {
	if !slices.Contains(Names(), "nfp") {
		t.Fatalf("no nfp in %v", Names())
	}
	for _, name := range Names() {
		b := load(t, name)
		if b.Name != name {
			t.Errorf("board %s calls itself %s", name, b.Name)
		}
		src, err := Source(name)
		if err != nil {
			t.Fatal(err)
		}
		again := load(t, write(t, src))
		if !reflect.DeepEqual(again, b) {
			t.Errorf("%s: its source loads as another board", name)
		}
	}
}

func write(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "b.yaml")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// The schema and the Go structs name the same keys, all the way down.
func TestSchemaAgrees(t *testing.T) {
	var s map[string]any
	if err := json.Unmarshal(schemaJSON, &s); err != nil {
		t.Fatal(err)
	}
	defs := s["$defs"].(map[string]any)
	var agree func(path string, node map[string]any, typ reflect.Type)
	agree = func(path string, node map[string]any, typ reflect.Type) {
		for node["$ref"] != nil {
			node = defs[strings.TrimPrefix(node["$ref"].(string), "#/$defs/")].(map[string]any)
		}
		switch typ.Kind() {
		case reflect.Pointer:
			agree(path, node, typ.Elem())
		case reflect.Slice:
			agree(path+"[]", node["items"].(map[string]any), typ.Elem())
		case reflect.Map:
			want := slices.Sorted(slices.Values(program.Kinds))
			if got := keys(node["properties"]); !slices.Equal(got, want) {
				t.Errorf("%s: the schema has %v, program.Kinds is %v", path, got, want)
			}
		case reflect.Struct:
			var want []string
			for i := range typ.NumField() {
				f := typ.Field(i)
				name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
				want = append(want, name)
				if sub, ok := node["properties"].(map[string]any)[name].(map[string]any); ok {
					agree(path+"."+name, sub, f.Type)
				}
			}
			slices.Sort(want)
			if got := keys(node["properties"]); !slices.Equal(got, want) {
				t.Errorf("%s: the schema has %v, the struct %v", path, got, want)
			}
		}
	}
	agree("board", s, reflect.TypeFor[Board]())
}

func keys(m any) []string {
	var names []string
	for k := range m.(map[string]any) {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

// minimal is a small board, complete, for tests of the complaints.
const minimal = `name: tiny
class: nfp
title: A tiny board
clock_mhz: {value: 800, unit: MHz, source: s, confidence: H}
cores: {value: 4, source: s, confidence: H}
threads: {value: 8, source: s, confidence: H}
islands: {value: 1, source: s, confidence: H}
link_gbps: {value: 40, unit: Gb/s, source: s, confidence: H}
variability: {value: 0.5, source: s, confidence: L}
pcie:
  gbps: {value: 62.96, unit: Gb/s, source: s, confidence: H}
  read_ns: {value: 560, unit: ns, source: s, confidence: H}
  reads_mps: {value: 62, unit: M/s, source: s, confidence: H}
  writes_mps: {value: 47, unit: M/s, source: s, confidence: H}
  large_read_gbps: {value: 55, unit: Gb/s, source: s, confidence: H}
bases:
  - name: forward
    text: forwarding
    cycles: {value: 1000, unit: cycles, source: s, confidence: H}
    access_cycles: {value: 30, unit: cycles, source: s, confidence: L}
    lock_cycles: {value: 0, unit: cycles, source: s, confidence: L}
    io_mpps: {value: 28, unit: Mpps, source: s, confidence: H}
    cores: {value: 3, source: s, confidence: H}
    threads: {value: 8, source: s, confidence: H}
    swaps: {value: 6, source: s, confidence: L}
    index: access
    demand:
      - {memory: ram, mode: bulk, commands: {value: 1, source: s, confidence: L}, pipe_cycles: {value: 2, unit: cycles, source: s, confidence: L}, bank_cycles: {value: 2, unit: cycles, source: s, confidence: L}}
  - name: packetwise
    text: one element a packet
    cycles: {value: 1000, unit: cycles, source: s, confidence: H}
    access_cycles: {value: 30, unit: cycles, source: s, confidence: L}
    lock_cycles: {value: 0, unit: cycles, source: s, confidence: L}
    io_mpps: {value: 28, unit: Mpps, source: s, confidence: H}
    cores: {value: 4, source: s, confidence: H}
    threads: {value: 4, source: s, confidence: H}
    swaps: {value: 6, source: s, confidence: L}
    index: packet
stateless:
  alu: {value: 1.8, unit: cycles, source: s, confidence: M}
locks:
  memory: ram
  spin_cycles: {value: 20, unit: cycles, source: s, confidence: L}
  word_stride: {value: 32, unit: B, source: s, confidence: H}
memories:
  - name: ram
    kind: sram
    bytes: 1048576
    bytes_source: s
    latency: {value: 200, unit: cycles, source: s, confidence: M}
    line_bytes: {value: 128, unit: B, source: s, confidence: L}
    banks: {value: 2, source: s, confidence: M}
    bank_bytes: {value: 1024, unit: B, source: s, confidence: M}
    default_span: 8192
    engines:
      - mode: bulk
        max_bytes: {value: 128, unit: B, source: s, confidence: H}
        queue: {value: 32, source: s, confidence: M}
        read: {pipe_min: {value: 1, unit: cycles, source: s, confidence: L}}
        write: {pipe_min: {value: 1, unit: cycles, source: s, confidence: L}}
      - mode: atomic
        max_bytes: {value: 32, unit: B, source: s, confidence: H}
        queue: {value: 32, source: s, confidence: M}
        read: {pipe_min: {value: 1, unit: cycles, source: s, confidence: L}}
        test_set: {pipe_min: {value: 1, unit: cycles, source: s, confidence: L}}
  - name: rom
    kind: sram
    bytes: 65536
    bytes_source: s
    latency: {value: 200, unit: cycles, source: s, confidence: M}
    line_bytes: {value: 128, unit: B, source: s, confidence: L}
    banks: {value: 2, source: s, confidence: M}
    bank_bytes: {value: 1024, unit: B, source: s, confidence: M}
    default_span: 8192
    engines:
      - mode: bulk
        max_bytes: {value: 128, unit: B, source: s, confidence: H}
        queue: {value: 32, source: s, confidence: M}
        read: {pipe_min: {value: 1, unit: cycles, source: s, confidence: L}}
`

// Each change of a good board is one complaint, on its line, that says what is
// expected.
func TestBoardComplaints(t *testing.T) {
	if _, err := Load(write(t, []byte(minimal))); err != nil {
		t.Fatalf("the unchanged board: %v", err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"cores: {value: 4, source: s", "cores: {value: 4, sauce: s", ":5: cores: missing source"},
		{"cores: {value: 4, source: s", "cores: {value: 4, sauce: s", ":5: cores.sauce: unknown key"},
		{"title: A tiny board\n", "title: A tiny board\ncolour: red\n", `:4: colour: unknown key`},
		{"MHz, source: s, confidence: H}", "MHz, source: s}", ":4: clock_mhz: missing confidence"},
		{"MHz, source: s, confidence: H}", "MHz, source: s, confidence: X}", ":4: clock_mhz.confidence: X is not one of H, M, L"},
		{"unit: MHz", "unit: GHz", ":4: clock_mhz.unit: expected MHz, got GHz"},
		{"{value: 800, unit: MHz", "{value: 800", ":4: clock_mhz: missing unit"},
		{"value: 800", "value: -800", ":4: clock_mhz.value: expected more than 0, got -800"},
		{"value: 800", "value: fast", ":4: clock_mhz.value: expected a number"},
		{"value: 800", "value: .nan", ":4: clock_mhz.value: expected a number"},
		{"MHz, source: s", "MHz, source: ''", ":4: clock_mhz.source: is empty"},
		{"cores: {value: 4,", "cores: {value: 4.5,", ":5: cores.value: expected a whole number"},
		{"variability: {value: 0.5", "variability: {value: 1.5", ":9: variability.value: expected at most 1, got 1.5"},
		{"class: nfp", "class: dpu", ":2: class: dpu is not one of nfp, soc, fpga, host, netif"},
		{"    cycles: {value: 1000, unit: cycles, source: s, confidence: H}\n", "", ":17: bases[0]: missing cycles"},
		{"index: access", "index: random", ":26: bases[0].index: random is not one of access, packet"},
		{"name: packetwise", "name: forward", `:29: bases[1].name: base "forward" is described twice`},
		{"name: packetwise", "name: '1200'", `:29: bases[1].name: "1200" means a base of that many cycles; use a word`},
		{"cores: {value: 3", "cores: {value: 5", ":23: bases[0].cores: 5 cores; the board has 4"},
		{"threads: {value: 4", "threads: {value: 9", ":36: bases[1].threads: 9 threads a core; the board has 8"},
		{"{memory: ram, mode: bulk", "{memory: dram, mode: bulk", `:28: bases[0].demand[0].memory: board tiny has no memory "dram"; it has ram, rom`},
		{"{memory: ram, mode: bulk", "{memory: rom, mode: atomic", ":28: bases[0].demand[0].mode: memory rom has no atomic engine; it has bulk"},
		{"  memory: ram", "  memory: rom", ":42: locks.memory: memory rom has no test_set in an atomic engine, which locks need"},
		{"  memory: ram", "  memory: ddr", `:42: locks.memory: board tiny has no memory "ddr"; it has ram, rom`},
		{"- name: rom", "- name: ram", `:66: memories[1].name: memory "ram" is described twice`},
		{"bytes: 1048576", "bytes: 1024", ":54: memories[0].default_span: 8192 elements of 4 B do not fit into 1024 B"},
		{"- mode: atomic", "- mode: bulk", ":61: memories[0].engines[1].mode: the bulk engine is described twice"},
		{"    engines:\n      - mode: bulk", "    engines:\n      - mode: slow", ":56: memories[0].engines[0].mode: slow is not one of bulk, atomic"},
		{"stateless:\n  alu", "stateless:\n  fft", ":39: stateless: missing alu"},
		{"memories:\n", "memories: []\nnotes:\n", ":45: memories: is empty"},
		{"name: tiny\n", "name: tiny\nextends: acme\n", `:2: extends: acme is not a board of the catalogue; it has `},
		{"name: tiny\n", "name: tiny\nextends: [nfp]\n", `:2: extends: [nfp] is not a board of the catalogue; it has `},
		{"name: tiny\n", "name: tiny\nname: tiny\n", `:2: key "name" is already set on line 1`},
		{"pcie:\n  gbps", "pcie:\n\tgbps", ":11: a tab in the indentation"},
		{"    swaps: {value: 6,", "    swaps: 6 #{value: 6,", ":25: bases[0].swaps: expected keys and values"},
	} {
		text := strings.Replace(minimal, c.old, c.new, 1)
		if text == minimal {
			t.Fatalf("%q is not in the board", c.old)
		}
		_, err := Load(write(t, []byte(text)))
		if err == nil || !strings.Contains(err.Error(), "b.yaml"+c.want) {
			t.Errorf("%q for %q:\n got %v\nwant %s", c.new, c.old, err, c.want)
		}
		if fault.KindOf(err) != fault.Input {
			t.Errorf("%q: not a fault of the user's", c.new)
		}
	}
}

// All findings of a file come at once.
func TestAllFindings(t *testing.T) {
	text := strings.NewReplacer("unit: MHz", "unit: GHz", "confidence: M}\n    line", "confidence: Q}\n    line", "name: rom", "name: ram").Replace(minimal)
	_, err := Load(write(t, []byte(text)))
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("want four findings, got %v", err)
	}
}

// Whatever single value of a good board is taken away, the rest is refused or
// the value was optional, and never a panic.
func TestEveryValueMatters(t *testing.T) {
	optional := []string{"demand:", "read:", "write:", "- {memory:"}
	for i, line := range strings.Split(strings.TrimSuffix(minimal, "\n"), "\n") {
		lines := strings.Split(minimal, "\n")
		text := strings.Join(slices.Delete(lines, i, i+1), "\n")
		_, err := Load(write(t, []byte(text)))
		isOptional := slices.ContainsFunc(optional, func(o string) bool { return strings.HasPrefix(strings.TrimSpace(line), o) })
		if err == nil && !isOptional {
			t.Errorf("without line %d, %q, the board still loads", i+1, line)
		}
	}
}

func TestLoadUnknown(t *testing.T) {
	for name, want := range map[string]string{
		"acme":            `no board "acme"; the catalogue has bluefield, `,
		"nowhere.yaml":    "board file: open nowhere.yaml",
		"../boards/nfp":   `no board "../boards/nfp"`,
		"":                `no board ""`,
		t.TempDir() + "/": "no board",
	} {
		_, err := Load(name)
		if err == nil || !strings.Contains(err.Error(), want) || fault.KindOf(err) != fault.Input {
			t.Errorf("%q: got %v, want %s", name, err, want)
		}
	}
}

// A variant takes what it does not say from the board that it extends, and
// every number that it takes is marked.
func TestExtends(t *testing.T) {
	nfp := load(t, "nfp")
	b := load(t, write(t, []byte(`name: mine
extends: nfp
title: My card
clock_mhz: {value: 633, unit: MHz, source: my hwinfo, confidence: H}
memories:
  - name: emem
    cache:
      ways: {value: 16, source: a guess, confidence: L}
    engines:
      - mode: bulk
        read:
          bank_min: {value: 3, unit: cycles, source: measured, confidence: H}
`)))
	if b.ClockMHz.Value != 633 || b.ClockMHz.Confidence != "H" {
		t.Errorf("clock: %+v", b.ClockMHz)
	}
	if want := (Num{Value: nfp.Cores.Value, Unit: nfp.Cores.Unit, Source: "carried over from nfp: " + nfp.Cores.Source, Confidence: "L"}); b.Cores != want {
		t.Errorf("cores: %+v, want %+v", b.Cores, want)
	}
	emem, was := b.Memory("emem"), nfp.Memory("emem")
	if emem.Cache.Ways.Value != 16 || emem.Cache.Bytes.Value != was.Cache.Bytes.Value {
		t.Errorf("cache: %+v", emem.Cache)
	}
	read := emem.Engine(program.Bulk).Read
	if read.BankMin.Value != 3 || read.BankMin.Source != "measured" || read.LineFixed.Value != was.Engine(program.Bulk).Read.LineFixed.Value {
		t.Errorf("bulk read: %+v", read)
	}
	if len(b.Memories) != len(nfp.Memories) || len(b.Bases) != len(nfp.Bases) {
		t.Error("memories or bases got lost")
	}
	_, err := Load(write(t, []byte("name: mine\nextends: nfp\nmemories:\n  - name: emem\n    default_span: 99999999999\n  - name: extra\n    kind: sram\n")))
	if err == nil || !strings.Contains(err.Error(), "b.yaml:5: memories") || !strings.Contains(err.Error(), "b.yaml:6: memories") {
		t.Errorf("complaints about a variant are on its lines: got %v", err)
	}
}

// A board of class soc states what its caches need, and a range for every
// number that is general knowledge; alias and name are one board.
func TestBlueField(t *testing.T) {
	b := load(t, "bluefield")
	if again := load(t, "bluefield2"); !reflect.DeepEqual(again, b) {
		t.Error("bluefield2 is another board than bluefield")
	}
	ranges := 0
	numbers("", reflect.ValueOf(b), func(path string, n Num) {
		if n.High > 0 {
			ranges++
		} else if n.Confidence == "L" {
			t.Errorf("%s: confidence L without a range", path)
		}
	})
	if ranges < 20 {
		t.Errorf("%d ranges", ranges)
	}
	src, err := catalogue.ReadFile("boards/bluefield.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"value: 250, low: 210, high: 310", "value: 320, low: 210, high: 310", "bases[0].cycles: 320 is not within its range 210 to 310"},
		{"value: 250, low: 210, high: 310", "value: 250", "bases[0].cycles: confidence L without a range; give low and high"},
		{"value: 250, low: 210, high: 310", "value: 250, low: 210", "bases[0].cycles: "},
		{"  memory: llc", "  memory: l2", "locks.memory: memory l2 is shared by 2 of 8 cores"},
		{"  atomics: ll-sc", "  atomics: cas", "coherence.atomics: cas is not one of ll-sc, lock"},
		{"    shared_by: {value: 1,", "    shared: {value: 1,", "memories[0]: missing shared_by"},
		{"    shared_by: {value: 1,", "    shared_by: {value: 2,", "memories[0].shared_by: the first cache is a core's own; got 2"},
		{"    shared_by: {value: 2,", "    shared_by: {value: 3,", "memories[1].shared_by: 3 cores a tile; expected at most 6, and a divisor of the 8 cores"},
		{"    shared_by: {value: 8,", "    shared_by: {value: 4,", "memories[2].shared_by: all 8 cores share it; got 4"},
		{"    bytes: 1048576", "    bytes: 32768", "memories[1].bytes: 32768 B, not more than the 32768 B of l1 before it"},
		{"    ways: {value: 2,", "    ways: {value: 3,", "memories[0].bytes: 32768 B are no whole number of sets of 3 lines of 64 B"},
		{"    ways: {value: 2, source: TRM, confidence: M}\n", "", "memories[0]: missing ways"},
		{"    line_bytes: {value: 64,", "    line_bytes: {value: 128,", "memories[1].line_bytes: 64 B; l1 has 128"},
		{"  - name: dram", "  - name: l4\n    kind: sram\n    bytes: 16777216\n    bytes_source: s\n    default_span: 1\n    engines: [{mode: bulk, max_bytes: {value: 8, unit: B, source: s, confidence: H}, read: {pipe_min: {value: 1, unit: cycles, source: s, confidence: H}}}]\n    latency: {value: 200, unit: cycles, source: s, confidence: H}\n    line_bytes: {value: 64, unit: B, source: s, confidence: H}\n    shared_by: {value: 8, source: s, confidence: H}\n    bandwidth: {value: 1, unit: GB/s, source: s, confidence: H}\n  - name: dram", "memories: class soc has 4: caches of a core, of a tile and of all cores, and the DRAM; got 5"},
	} {
		text := strings.Replace(string(src), c.old, c.new, 1)
		if text == string(src) {
			t.Fatalf("%q is not in the board", c.old)
		}
		if _, err := Load(write(t, []byte(text))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q:\n got %v\nwant %s", c.new, c.old, err, c.want)
		}
	}
}

// The default span of a cache level is one working set, whatever the size of an
// access.
func TestDefaultWorkingSet(t *testing.T) {
	b := load(t, "bluefield")
	for _, m := range b.Memories {
		for _, bytes := range []int{4, 8, 64, 128} {
			a := b.Resolve(program.Program{Accesses: []program.Access{{Memory: m.Name, Op: program.Read, Mode: program.Bulk, Bytes: bytes}}}).Accesses[0]
			if got, want := a.Span*a.Stride, m.DefaultSpan*m.DefaultStride; got != want {
				t.Errorf("%s, %d B: %d B", m.Name, bytes, got)
			}
		}
		if part := float64(m.DefaultSpan*m.DefaultStride) / float64(m.Bytes); m.Kind == "sram" && part != 0.5 {
			t.Errorf("%s: %v of it by default", m.Name, part)
		}
	}
	if llc, dram := b.Memory("llc"), b.Memory("dram"); dram.DefaultSpan*dram.DefaultStride < 4*llc.Bytes {
		t.Error("the default working set of the DRAM is less than four times the last level")
	}
}

// Boards that are measured rather than described state only what they are, and
// run what needs nothing else.
func TestMeasuredClasses(t *testing.T) {
	for _, class := range []string{"host", "netif"} {
		b := load(t, write(t, []byte("name: mine\nclass: "+class+`
title: measured
cores: {value: 2, source: s, confidence: H}
bases:
  - name: forward
    text: some path
    cores: {value: 2, source: s, confidence: H}
`)))
		if err := b.Check(program.Program{}, 2, 0); err != nil {
			t.Errorf("%s: %v", class, err)
		}
		err := b.Check(program.Program{Locks: []program.Lock{{Name: "l", Elements: 1}}}, 0, 0)
		if err == nil || !strings.Contains(err.Error(), "locks[0]: board mine has no memory for lock words") {
			t.Errorf("%s: got %v", class, err)
		}
	}
}

func TestBase(t *testing.T) {
	b := load(t, write(t, []byte(minimal)))
	for name, want := range map[string]string{"": "forward", "forward": "forward", "packetwise": "packetwise", "1200": "1200"} {
		if got, err := b.Base(name); err != nil || got.Name != want {
			t.Errorf("%q: got %v, %v", name, got.Name, err)
		}
	}
	cycles, err := b.Base("1200")
	if err != nil || cycles.Cycles.Value != 1200 || cycles.IOMpps.Value != 28 || cycles.Demand != nil {
		t.Errorf("cycles: %+v, %v", cycles, err)
	}
	if len(b.Bases[0].Demand) != 1 {
		t.Error("a base of cycles took the first base's demand away")
	}
	for _, name := range []string{"xdp", "0", "-5", "1e3", "9000000"} {
		_, err := b.Base(name)
		if err == nil || !strings.Contains(err.Error(), "it has forward, packetwise, or a cycle count") || fault.KindOf(err) != fault.Input {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

func TestResolve(t *testing.T) {
	b := load(t, write(t, []byte(minimal)))
	access := func(bytes int, span, stride int64) program.Access {
		return program.Access{Memory: "ram", Op: program.Read, Mode: program.Bulk, Bytes: bytes, PerPacket: 1, Span: span, Stride: stride}
	}
	for _, c := range []struct {
		base         string
		in           program.Access
		span, stride int64
	}{
		{"", access(4, 0, 0), 8192, 4},
		{"", access(12, 0, 0), 8192, 16},
		{"", access(128, 1, 0), 1, 128},
		{"", access(4, 10, 64), 10, 64},
		{"packetwise", access(4, 0, 0), 8192, 128},
		{"packetwise", access(4, 8193, 0), 8193, 32},
		{"packetwise", access(4, 8193, 4), 8193, 4},
	} {
		p := program.Program{Base: c.base, Accesses: []program.Access{c.in}, Locks: []program.Lock{{Name: "l", Elements: 1, Section: []program.Access{c.in}}}}
		r := b.Resolve(p)
		for _, a := range []program.Access{r.Accesses[0], r.Locks[0].Section[0]} {
			if a.Span != c.span || a.Stride != c.stride {
				t.Errorf("base %q, %s: got %s, want span %d stride %d", c.base, c.in, a, c.span, c.stride)
			}
		}
		if r.Locks[0].Idiom != program.Spin || r.PacketBytes != 64 || !reflect.DeepEqual(*r.Flows, traffic.Flows{Count: 1}) || r.Base == "" {
			t.Errorf("defaults: %+v", r)
		}
		if p.Accesses[0] != c.in || p.Locks[0].Section[0] != c.in || p.Locks[0].Idiom != "" {
			t.Error("Resolve changed its argument")
		}
		if again := b.Resolve(r); !reflect.DeepEqual(again, r) {
			t.Errorf("Resolve is not idempotent: %+v, then %+v", r, again)
		}
	}
	small := b.Resolve(program.Program{Accesses: []program.Access{{Memory: "rom", Op: program.Read, Mode: program.Bulk, Bytes: 128}}})
	if got := small.Accesses[0].Span; got != 512 {
		t.Errorf("default span in a memory of 64 KB: %d elements of 128 B, want 512", got)
	}
}

func TestCheck(t *testing.T) {
	b := load(t, write(t, []byte(minimal)))
	prog := func(specs ...string) program.Program {
		var p program.Program
		for _, s := range specs {
			a, err := program.ParseAccess(s)
			if err != nil {
				t.Fatal(err)
			}
			p.Accesses = append(p.Accesses, a)
		}
		return p
	}
	lock := func(spec string) program.Program {
		l, err := program.ParseLock(spec)
		if err != nil {
			t.Fatal(err)
		}
		return program.Program{Locks: []program.Lock{l}}
	}
	for _, c := range []struct {
		p              program.Program
		cores, threads int
		want           string
	}{
		{prog("ram:read:bulk:64:10", "rom:read:bulk:4:1:16384"), 3, 8, ""},
		{program.Program{Base: "packetwise"}, 4, 1, ""},
		{prog("dram:read:bulk:64:1"), 0, 0, `accesses[0].memory: board tiny has no memory "dram"; it has ram, rom`},
		{prog("ram:read:bulk:4:1", "rom:read:atomic:4:1"), 0, 0, "accesses[1].mode: memory rom has no atomic engine; it has bulk"},
		{prog("rom:write:bulk:4:1"), 0, 0, "accesses[0].op: the bulk engine of rom has no write; it has read"},
		{prog("ram:add:atomic:4:1"), 0, 0, "accesses[0].op: the atomic engine of ram has no add; it has read"},
		{prog("rom:read:bulk:4:1:16385"), 0, 0, "accesses[0].span: 16385 elements 4 B apart are more than the 65536 B of rom; at most 16384"},
		{prog("rom:read:bulk:128:1:2:65536"), 0, 0, "accesses[0].span: 2 elements 65536 B apart are more than the 65536 B of rom; at most 1"},
		{prog("ram:read:bulk:4:1:1099511627776:4"), 0, 0, "accesses[0].span: 1099511627776 elements 4 B apart"},
		{program.Program{Base: "xdp"}, 0, 0, `base: board tiny has no base "xdp"`},
		{program.Program{}, 4, 0, "cores: 4; base forward of board tiny runs on 1..3"},
		{program.Program{}, -1, 0, "cores: -1; base forward of board tiny runs on 1..3"},
		{program.Program{}, 0, 9, "threads: 9; a core of board tiny has 1..8"},
		{program.Program{Stateless: program.Stateless{program.Hash: 1}}, 0, 0, "stateless.hash: board tiny has no cost of it; it has alu"},
		{program.Program{Chain: []program.Stage{{Name: "nt", Cycles: 1}}}, 0, 0, "chain: board tiny (class nfp) runs no chain of network tasks"},
		{lock("l:32769:empty"), 0, 0, "locks[0].elements: 32769 lock words 32 B apart are more than the 1048576 B of ram"},
		{lock("l:1:ticket:empty"), 0, 0, "locks[0].idiom: a ticket lock needs an atomic add, which ram has not"},
		{lock("l:1:spin:ddr:read:bulk:4:1"), 0, 0, `locks[0].section[0].memory: board tiny has no memory "ddr"`},
		{program.Program{PacketBytes: 3}, 0, 0, "packet_bytes: 3 is not a packet size"},
	} {
		err := b.Check(c.p, c.cores, c.threads)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%+v: %v", c.p, err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want) || fault.KindOf(err) != fault.Input):
			t.Errorf("%+v: got %v, want %s", c.p, err, c.want)
		}
	}
}

// A board without memories says what its programs are instead.
func TestCheckAccessOfFPGA(t *testing.T) {
	b, err := Load("snic")
	if err != nil {
		t.Fatal(err)
	}
	a, err := program.ParseAccess("emem:read:bulk:4:1")
	if err != nil {
		t.Fatal(err)
	}
	want := `accesses[0].memory: board snic has no memory "emem": its programs are chains`
	if err := b.Check(program.Program{Accesses: []program.Access{a}}, 0, 0); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// FuzzLoad: no board file makes the loader panic, and one that loads passes its
// own checks when a program uses all of it.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte("name: x\nextends: nfp\nmemories: [{name: emem, engines: [{mode: bulk, read: {}}]}]\n"))
	f.Add([]byte("bases: [1]\nmemories: {}\n"))
	path := filepath.Join(f.TempDir(), "b.yaml")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		b, err := Load(path)
		if err != nil {
			if fault.KindOf(err) != fault.Input {
				t.Fatalf("not a fault of the user's: %v", err)
			}
			return
		}
		for _, base := range b.Bases {
			if err := b.Check(program.Program{Base: base.Name}, int(base.Cores.Value), int(base.Threads.Value)); err != nil {
				t.Fatalf("a bare base does not run: %v", err)
			}
		}
		if src, err := Source(path); err != nil || bytes.Contains(src, []byte("\nextends:")) {
			t.Fatalf("source: %v", err)
		}
	})
}

// The NFP-6000 claims of its own only what its file says; the rest is marked,
// and nothing of it counts as calibrated.
func TestNFP6000(t *testing.T) {
	b, nfp := load(t, "nfp6000"), load(t, "nfp")
	if b.ClockMHz.Value != 1200 || b.Islands.Value != 7 || b.SKU != "AMDA0058" {
		t.Errorf("%v MHz, %v islands, %s", b.ClockMHz.Value, b.Islands.Value, b.SKU)
	}
	if got, want := b.Memory("emem").Cache.Bytes.Value, 2*nfp.Memory("emem").Cache.Bytes.Value; got != want {
		t.Errorf("EMEM cache %v B, two EMUs have %v", got, want)
	}
	own, all, nfps := 0, 0, 0
	numbers("", reflect.ValueOf(*b), func(_ string, n Num) {
		all++
		switch carried := strings.HasPrefix(n.Source, "carried over from nfp: "); {
		case !carried:
			own++
		case n.Confidence != "L":
			t.Errorf("carried over with confidence %s: %+v", n.Confidence, n)
		}
		if n.Calibrated != "" {
			t.Errorf("calibrated: %+v", n)
		}
	})
	numbers("", reflect.ValueOf(*nfp), func(string, Num) { nfps++ })
	src, err := catalogue.ReadFile("boards/nfp6000.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := bytes.Count(src, []byte("{value:")); own != want || all != nfps {
		t.Errorf("%d of %d numbers are the card's own; its file has %d, the NFP-4000 %d in all", own, all, want, nfps)
	}
	if err := b.Check(program.Program{}, 78, 8); err != nil {
		t.Error(err)
	}
}
