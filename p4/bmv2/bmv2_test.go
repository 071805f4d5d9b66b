package bmv2

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nicprof/p4/ir"
	"nicprof/p4/source"
)

var update = flag.Bool("update", false, "rewrite the listings in testdata")

func load(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestRead compares whole programs with listings: of v1model every construct
// but unions, of PSA the extern instances.
func TestRead(t *testing.T) {
	for _, name := range []string{"flows", "psa", "union"} {
		t.Run(name, func(t *testing.T) {
			p, err := Read(name+".json", load(t, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := ir.Check(p); err != nil {
				t.Error(err)
			}
			got := listing(p)
			file := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want := string(load(t, name+".txt"))
			if got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// TestRefused spoils one place of a good file and expects to be told which.
func TestRefused(t *testing.T) {
	good := string(load(t, "flows.json"))
	for _, c := range []struct{ name, from, to, want string }{
		{"syntax", `"pipelines": [`, `"pipelines": [,`, "flows.json:75:17: JSON: invalid character ','"},
		{"type", `"max_size": 64`, `"max_size": "64"`, "flows.json:81:63: JSON: string where a whole number is expected, in pipelines.tables.max_size"},
		{"no program", `"pipelines"`, `"pipeline"`, `not a bmv2 program: the JSON has no "pipelines"`},
		{"older", `[2, 18]`, `[2, 4]`, "format version 2.4; versions 2.5 to 2.23 are read"},
		{"newer", `[2, 18]`, `[2, 24]`, "format version 2.24; versions 2.5 to 2.23 are read"},
		{"unversioned", `"version": [2, 18],`, ``, "no format version in __meta__.version"},
		{"key's field", `"target": ["ip", "dst"]`, `"target": ["ip", "dest"]`, `pipelines[0].tables[1].key[0].target: no field "dest" in header ip`},
		{"key's header", `"target": ["ip", "dst"]`, `"target": ["ip6", "dst"]`, `pipelines[0].tables[1].key[0].target: no header "ip6"`},
		{"next table", `"__HIT__": "Ing.acl"`, `"__HIT__": "Ing.accl"`, `pipelines[0].tables[1].next_tables.__HIT__: no table, conditional or action call "Ing.accl"`},
		{"cycle", `"__HIT__": "Ing.acl"`, `"__HIT__": "node_2"`, "leads back to itself"},
		{"action", `"action_ids": [2, 0]`, `"action_ids": [2, 9]`, "pipelines[0].tables[2].action_ids: no action has id 9"},
		{"two actions", `"name": "act", "id": 3`, `"name": "act", "id": 2`, "actions[3].id: 2 is declared before"},
		{"two tables", `"name": "Ing.acl"`, `"name": "Ing.route"`, "pipelines[0].tables[2]: Ing.route is declared before"},
		{"register", `"value": "Ing.last"}, {"type": "field", "value": ["scalars", "userMetadata._flow_bucket0"]}]}`, `"value": "Ing.lost"}, {"type": "field", "value": ["scalars", "userMetadata._flow_bucket0"]}]}`, `action act, primitives[1]: no register "Ing.lost"`},
		{"counter's table", `"is_direct": true, "binding": "Ing.route"}`, `"is_direct": true, "binding": "Ing.rout"}`, `counter Ing.route_hits: is bound to the table "Ing.rout", which does not exist`},
		{"calculation", `"calculation", "value": "calc"`, `"calculation", "value": "calk"`, `action act, primitives[0]: no calculation "calk"`},
		{"state", `"next_state": "ip"}]},`, `"next_state": "ipv6"}]},`, `parsers[0].parse_states[0].transitions[1]: no parser state "ipv6"`},
		{"value set", `"value": "Prs.ports"`, `"value": "Prs.prts"`, `parsers[0].parse_states[0].transitions[0]: no value set "Prs.prts"`},
		{"endless parser", `"next_state": "ip"}]},` + "\n      {\"name\": \"ip\"", `"next_state": "labels"}]},` + "\n      {\"name\": \"ip\"", "parser: never ends"},
		{"jump back", `"value": "0x4"}]}`, `"value": "0x2"}]}`, "action act, primitives[2]: jump from primitive 2 to 2; only later primitives can be jumped to"},
		{"operator", `"op": ">>"`, `"op": ">>>"`, `unknown operator ">>>"`},
		{"operand", `"op": ">>", "left": {"type": "field", "value": ["ip", "src"]}`, `"op": ">>", "left": null`, "operator >> needs a left side"},
		{"parameters", `[{"type": "register_array", "value": "Ing.wide"}, {"type": "hexstr", "value": "0x01"}, `, `[`, "action act, primitives[4]: register_write needs 3 parameters, found 1"},
		{"architecture", `"name": "egress", "id": 1`, `"name": "outgress", "id": 1`, "are not those of simple_switch, psa_switch or pna_nic"},
		{"negative", `"size": 1024, "bitwidth": 32`, `"size": -1, "bitwidth": 32`, "register Ing.last has a negative size"},
		{"stack", `"header_ids": [3, 4]`, `"header_ids": [3, 5]`, "header_stacks[0]: no header has id 5"},
		{"number", `"value": "0x400"`, `"value": "0xgg"`, `expected a hexadecimal number, found "0xgg"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Count(good, c.from) < 1 {
				t.Fatalf("the fixture has no %s", c.from)
			}
			bad := strings.Replace(good, c.from, c.to, 1)
			if c.name == "endless parser" {
				bad = strings.Replace(bad, `"mask": "0x01fe", "next_state": "ip"`, `"mask": "0x01fe", "next_state": "labels"`, 1)
			}
			_, err := Read("flows.json", []byte(bad))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want …%s…", err, c.want)
			}
			var m *source.Message
			if !errors.As(err, &m) || m.Pos.File != "flows.json" {
				t.Errorf("%v is not a message about flows.json", err)
			}
		})
	}
}

// TestDefaultNames reads a program whose keys and sources tell nothing of its
// parameters' names.
func TestDefaultNames(t *testing.T) {
	text := string(load(t, "flows.json"))
	for _, name := range []string{"h.ip.dst", "m.flow.bucket", "h.ip.$valid$"} {
		text = strings.Replace(text, `"name": "`+name+`", `, "", 1)
	}
	text = strings.ReplaceAll(text, `"source_fragment"`, `"fragment"`)
	p, err := Read("flows.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	route := p.Objects[objectNamed(p, "Ing.route")]
	for i, want := range []string{"hdr.ip.dst", "meta.flow_bucket"} {
		if got := route.Keys[i].Field; got != want {
			t.Errorf("key %d is %s, want %s", i, got, want)
		}
	}
}

func objectNamed(p *ir.Program, name string) int {
	for i, o := range p.Objects {
		if o.FullName == name {
			return i
		}
	}
	return -1
}

// TestMasks holds the values of an expression and of its simplified form to
// each other's widths.
func TestMasks(t *testing.T) {
	x := &ir.Var{Name: "x", Bits: 32}
	num := func(n int64) *ir.Expr { return constant(n) }
	op := func(op ir.ExprOp, bits int, args ...*ir.Expr) *ir.Expr {
		return &ir.Expr{Op: op, Bits: bits, Args: args}
	}
	for _, c := range []struct {
		in   *ir.Expr
		want string
	}{
		{op("&", 32, op("+", 32, use(x), num(255)), num(0xff)), "(x + 255):8"},
		{op("&", 32, use(x), num(0xff)), "x[7:0]"},
		{op("&", 32, use(x), num(0xffffffff)), "x"},
		{op("&", 32, use(x), num(0xf0)), "(x & 240):32"},
		{op("&", 32, op(">>", 32, use(x), num(8)), num(0xff)), "x[15:8]"},
		{op("&", 32, op(">>", 32, use(x), num(28)), num(0xff)), "x[31:28]"},
		{op("&", 32, op(">>", 32, use(x), num(40)), num(0xff)), "((x >> 40):32 & 255):32"},
		{op("&", 32, use(x), num(0)), "(x & 0):32"},
	} {
		if got := text(narrowed(c.in)); got != c.want {
			t.Errorf("%s becomes %s, want %s", text(c.in), got, c.want)
		}
	}
}

// FuzzRead reads anything without a panic; what it accepts is a sound graph.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"flows.json", "psa.json", "union.json"} {
		f.Add(load(f, name))
	}
	f.Add([]byte(`{"__meta__":{"version":[2,7]},"pipelines":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read("fuzz.json", data)
		if err != nil {
			var m *source.Message
			if !errors.As(err, &m) || m.Msg == "" {
				t.Fatalf("error %v", err)
			}
			return
		}
		if err := ir.Check(p); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzValues replaces values of a good program by others of the same program,
// two bytes for the place and two for what comes there.
func FuzzValues(f *testing.F) {
	var programs [][]byte
	for _, name := range []string{"flows.json", "psa.json", "union.json"} {
		programs = append(programs, load(f, name))
	}
	f.Add(uint8(0), []byte{0, 100, 0, 9})
	f.Add(uint8(1), []byte{0, 100, 0, 9, 0, 50, 1, 7})
	f.Add(uint8(2), []byte{1, 100, 0, 3})
	f.Add(uint8(8), []byte("\xaf\xc7\x9b\xdc-\xa5")) // a stack's element by a constant, as a value
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		data := programs[int(which)%len(programs)]
		for ; len(edits) >= 4; edits = edits[4:] {
			var doc any
			if err := json.Unmarshal(data, &doc); err != nil {
				t.Fatal(err)
			}
			var values []any
			var put []func(any)
			collect(doc, func(v any, set func(any)) {
				values, put = append(values, v), append(put, set)
			})
			values = append(values, nil, -1.0, 1e9, "", "0x0", []any{}, map[string]any{}, true)
			put[int(binary.BigEndian.Uint16(edits))%len(put)](values[int(binary.BigEndian.Uint16(edits[2:]))%len(values)])
			var err error
			if data, err = json.Marshal(doc); err != nil {
				return // a value within itself
			}
		}
		p, err := Read("fuzz.json", data)
		if err != nil {
			return
		}
		if err := ir.Check(p); err != nil {
			t.Fatal(err)
		}
	})
}

// collect visits every value of a document in order, with how to replace it.
func collect(doc any, visit func(v any, set func(any))) {
	switch d := doc.(type) {
	case map[string]any:
		for _, k := range sortedKeys(d) {
			visit(d[k], func(v any) { d[k] = v })
			collect(d[k], visit)
		}
	case []any:
		for i := range d {
			visit(d[i], func(v any) { d[i] = v })
			collect(d[i], visit)
		}
	}
}

// listing prints a program, one object and instruction a line.
func listing(p *ir.Program) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %s %s\n", p.Name, p.Source, p.Version, p.Arch)
	for _, s := range p.Stages {
		fmt.Fprintf(&b, "stage %s %s %s\n", s.Kind, s.Name, s.Pos)
	}
	for _, o := range p.Objects {
		fmt.Fprintf(&b, "%s %s %s: %d of %d bits", o.Kind, o.FullName, o.Type, o.Elements, o.Bits)
		if o.Unit != "" {
			fmt.Fprintf(&b, ", %s", o.Unit)
		}
		if o.Direct != nil {
			fmt.Fprintf(&b, ", of %s", o.Direct.Name)
		}
		if o.Implementation != nil {
			fmt.Fprintf(&b, ", by %s", o.Implementation.Name)
		}
		if o.Idle {
			b.WriteString(", idle timeout")
		}
		if o.Kind == ir.Table {
			fmt.Fprintf(&b, ", actions %v, default %q", o.Actions, o.DefaultAction)
		}
		for _, k := range o.Keys {
			fmt.Fprintf(&b, ", key %s %s %d", k.Field, k.Match, k.Bits)
		}
		b.WriteByte('\n')
	}
	for _, in := range p.Code {
		fmt.Fprintf(&b, "%d %s", in.ID, in.Op)
		for _, s := range []string{in.Name, in.Algorithm, in.Header} {
			if s != "" {
				fmt.Fprintf(&b, " %s", s)
			}
		}
		if in.Object != nil {
			fmt.Fprintf(&b, " %s", in.Object.FullName)
		}
		if in.Index != nil {
			fmt.Fprintf(&b, " [%s]", text(in.Index))
		}
		if in.Max != nil {
			fmt.Fprintf(&b, " [%s..%s]", text(in.Base), text(in.Max))
		}
		for i, a := range in.Args {
			if i == 0 {
				b.WriteString(" (")
			} else {
				b.WriteString(", ")
			}
			b.WriteString(text(a))
		}
		if len(in.Args) > 0 {
			b.WriteByte(')')
		}
		for _, d := range in.Defs {
			mark := ""
			if d.May {
				mark = "?"
			}
			fmt.Fprintf(&b, " %s%s", mark, d.Var.Name)
		}
		fmt.Fprintf(&b, " @%s/%s", in.Control, in.Action)
		if in.Pos.Known() {
			fmt.Fprintf(&b, " %s", in.Pos)
		}
		for _, e := range in.Succ {
			fmt.Fprintf(&b, " →%d %s", e.To, e.Label)
		}
		b.WriteByte('\n')
	}
	for _, v := range p.Vars {
		fmt.Fprintf(&b, "var %s %s %d\n", v.Name, v.Kind, v.Bits)
	}
	for _, w := range p.Warnings {
		fmt.Fprintln(&b, w)
	}
	return b.String()
}

func text(e *ir.Expr) string {
	var args []string
	for _, a := range e.Args {
		args = append(args, text(a))
	}
	switch {
	case e.Op == ir.Const:
		return e.Value.String()
	case e.Op == ir.Use && e.Bits < e.Var.Bits:
		return fmt.Sprintf("%s[%d:%d]", e.Var.Name, e.Hi, e.Lo)
	case e.Op == ir.Use:
		return e.Var.Name
	case e.Op == ir.InSet:
		return fmt.Sprintf("%s in %s", strings.Join(args, " "), e.Object.Name)
	case len(args) == 2:
		return fmt.Sprintf("(%s %s %s):%d", args[0], e.Op, args[1], e.Bits)
	}
	return fmt.Sprintf("%s %s(%s):%d", e.Op, e.Text, strings.Join(args, ", "), e.Bits)
}
