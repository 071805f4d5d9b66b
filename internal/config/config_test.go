package config

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"nicprof/internal/fault"
)

type thing struct {
	Memory string  `yaml:"memory"`
	Bytes  int     `yaml:"bytes"`
	Rate   float64 `yaml:"rate,omitempty"`
	On     bool    `yaml:"on"`
}

type file struct {
	Name  string             `yaml:"name"`
	Items []thing            `yaml:"items"`
	Costs map[string]float64 `yaml:"costs"`
	One   *thing             `yaml:"one"`
	Any   any                `yaml:"any"`
	Skip  string             `yaml:"-"`
}

func TestDecode(t *testing.T) {
	const in = `
name: 1200          # a number is a fine name
items:
  - {memory: emem, bytes: 1e1, rate: .5, on: true}
  - memory: imem
    rate: .inf
costs: {alu: 1_000, hash: -2.5}
one: {bytes: 0}
any: {cdf: [1, x, true, null]}
`
	d, err := Parse([]byte(in), "f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got file
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := file{
		Name:  "1200",
		Items: []thing{{Memory: "emem", Bytes: 10, Rate: .5, On: true}, {Memory: "imem", Rate: math.Inf(1)}},
		Costs: map[string]float64{"alu": 1000, "hash": -2.5},
		One:   &thing{},
		Any:   map[string]any{"cdf": []any{1.0, "x", true, nil}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for path, line := range map[string]int{"": 2, "items": 3, "items[1]": 5, "items[1].rate": 6, "items[1].bytes": 5, "one.bytes": 8, "nowhere.at[3].all": 2} {
		if got := d.place(path).line; got != line {
			t.Errorf("%q is on line %d, want %d", path, got, line)
		}
	}
	if !d.Has("one.bytes") || d.Has("items[1].bytes") {
		t.Error("Has: one.bytes is set, items[1].bytes is not")
	}
}

func TestComplaints(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "f.yaml:1: the file is empty; a YAML document is expected"},
		{"name: a\n---\nname: b\n", "f.yaml:1: one YAML document is expected, the file has several (---)"},
		{"name: a\nitems:\n\t- {bytes: 1}\n", "f.yaml:3: a tab in the indentation; indent YAML with spaces"},
		{"name: a\none:\n  bytes: 1\n \t rate: 2\n", "f.yaml:4: a tab in the indentation; indent YAML with spaces"},
		{"name: a: b\n", "f.yaml:1: not YAML: mapping values are not allowed in this context"},
		{"name: a\n\nname: b\n", `f.yaml:3: key "name" is already set on line 1`},
		{"name: &x a\n", "f.yaml:1: name: anchors (&, *) are not supported; write the value out"},
		{"one: {<<: {bytes: 1}}\n", "f.yaml:1: one: a key is a plain word"},
		{"{[a]: b}\n", "f.yaml:1: a key is a plain word"},
		{"- 1\n", "f.yaml:1: expected keys and values, got a list"},
		{"items:\n  - {byts: 1}\n", `f.yaml:2: items[0]: unknown key "byts"; known are memory, bytes, rate, on`},
		{"skip: x\n", `f.yaml:1: unknown key "skip"; known are name, items, costs, one, any`},
		{"items: {a: 1}\n", "f.yaml:1: items: expected a list, got keys and values"},
		{"items: [{bytes: 6.5}]\n", `f.yaml:1: items[0].bytes: expected a whole number, got "6.5"`},
		{"items: [{bytes: 017}]\n", `f.yaml:1: items[0].bytes: expected a whole number, got "017"`},
		{"items: [{bytes: \"4\"}]\n", `f.yaml:1: items[0].bytes: expected a whole number, got "4"`},
		{"items: [{bytes: 1e300}]\n", `f.yaml:1: items[0].bytes: expected a whole number, got "1e300"`},
		{"items: [{rate: [1]}]\n", "f.yaml:1: items[0].rate: expected a number, got a list"},
		{"items: [{on: yes}]\n", `f.yaml:1: items[0].on: expected true or false, got "yes"`},
		{"name: {a: b}\n", "f.yaml:1: name: expected a word, got keys and values"},
		{"costs:\n  alu: x\n", `f.yaml:2: costs.alu: expected a number, got "x"`},
		{"costs: 3\n", `f.yaml:1: costs: expected keys and values, got "3"`},
		{"items:\n- {bytes: x}\n- {on: 3}\n", "f.yaml:2: items[0].bytes: expected a whole number, got \"x\"\nf.yaml:3: items[1].on: expected true or false, got \"3\""},
	} {
		d, err := Parse([]byte(c.in), "f.yaml")
		if err == nil {
			err = d.Decode(&file{})
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%q:\n got %v\nwant %s", c.in, err, c.want)
		}
		if fault.KindOf(err) != fault.Input {
			t.Errorf("%q: not a fault of the user's", c.in)
		}
	}
}

func TestLocate(t *testing.T) {
	d, err := Parse([]byte("name: x\nitems:\n  - bytes: 3\n"), "f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var sub, f Findings
	sub.Add("bytes", "odd")
	sub.Add("", "bad")
	f.AddAll("items[0]", sub)
	if got, want := d.Locate(f.Err()).Error(), "f.yaml:3: items[0].bytes: odd\nf.yaml:3: items[0]: bad"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := f.Err().Error(), "items[0].bytes: odd\nitems[0]: bad"; got != want {
		t.Errorf("unlocated: got %q, want %q", got, want)
	}
	other := errors.New("other")
	if d.Locate(other) != other || d.Locate(nil) != nil {
		t.Error("Locate touched an error that has no findings")
	}
	if (Findings{}).Err() != nil {
		t.Error("no findings are no error")
	}
}

// FuzzParse: no input makes the reader panic, and what it complains about has a
// line.
func FuzzParse(f *testing.F) {
	f.Add("name: a\nitems: [{bytes: 4, rate: .nan}]\n")
	f.Add("a: [*b, &c d, {? [x] : y}]\n")
	f.Add("\t- x: !!binary aGk=\n...\n---\n")
	f.Fuzz(func(t *testing.T, in string) {
		d, err := Parse([]byte(in), "f")
		if err == nil {
			d.Value()
			err = d.Decode(&file{})
		}
		if err == nil {
			return
		}
		var e *Error
		if !errors.As(err, &e) || fault.KindOf(err) != fault.Input {
			t.Fatalf("%v is not a list of findings", err)
		}
		for _, finding := range e.Findings {
			if finding.Line < 1 || finding.File != "f" {
				t.Fatalf("%q: no line in %v", in, finding)
			}
		}
	})
}
