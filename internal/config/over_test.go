package config

import (
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

const parentText = `name: p
size: {value: 1, source: a}
list: [1, 2]
costs: {alu: {value: 2, source: a}, hash: {value: 3, source: a}}
parts:
  - {name: x, n: 1, engines: [{mode: bulk, q: 1}, {mode: atomic, q: 2}]}
  - {name: y, n: 2, demand: [{memory: m, mode: bulk, n: 1}, {memory: k, mode: bulk, n: 2}]}
`

func over(t *testing.T, child string) (*Document, []string) {
	t.Helper()
	p, err := Parse([]byte(parentText), "p.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse([]byte(child), "c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var inherited []string
	d, err := c.Over(p, "extends", func(n *yaml.Node) {
		if v := get(n, "value"); v != nil {
			inherited = append(inherited, v.Value)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return d, inherited
}

func TestOver(t *testing.T) {
	d, inherited := over(t, `extends: p
name: c
list: [9]
costs: {hash: {value: 7}}
extra: true
parts:
  - name: y
    demand: [{memory: k, mode: bulk, n: 5}]
  - {name: z}
  - {name: x, engines: [{mode: atomic, q: 8}]}
`)
	want := map[string]any{
		"name":  "c",
		"size":  map[string]any{"value": 1.0, "source": "a"},
		"list":  []any{9.0},
		"costs": map[string]any{"alu": map[string]any{"value": 2.0, "source": "a"}, "hash": map[string]any{"value": 7.0}},
		"extra": true,
		"parts": []any{
			map[string]any{"name": "x", "n": 1.0, "engines": []any{map[string]any{"mode": "bulk", "q": 1.0}, map[string]any{"mode": "atomic", "q": 8.0}}},
			map[string]any{"name": "y", "n": 2.0, "demand": []any{map[string]any{"memory": "m", "mode": "bulk", "n": 1.0}, map[string]any{"memory": "k", "mode": "bulk", "n": 5.0}}},
			map[string]any{"name": "z"},
		},
	}
	if got := d.Value(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if want := []string{"1", "2"}; !reflect.DeepEqual(inherited, want) {
		t.Errorf("inherited numbers %v, want %v: hash is the child's", inherited, want)
	}
	for path, want := range map[string]string{
		"size.value":            "p.yaml:2: size.value: x",
		"costs.hash.value":      "c.yaml:4: costs.hash.value: x",
		"parts[0].engines[1].q": "c.yaml:10: parts[0].engines[1].q: x",
		"parts[0].engines[0].q": "p.yaml:6: parts[0].engines[0].q: x",
		"parts[2].n":            "c.yaml:9: parts[2].n: x",
	} {
		if got := d.Failf(path, "x").Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	out, err := d.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(out, "again")
	if err != nil || !reflect.DeepEqual(again.Value(), d.Value()) {
		t.Errorf("printed and read again (%v):\n%s\n%v", err, out, again.Value())
	}
}

// A list that names an item twice is not joined, so that a check of names sees
// both.
func TestOverKeepsDuplicates(t *testing.T) {
	d, _ := over(t, "parts: [{name: x, n: 5}, {name: x, n: 6}]\n")
	if got := strings.Count(strings.ReplaceAll(string(must(d.YAML())), " ", ""), "name:x"); got != 2 {
		t.Errorf("%d items named x, want both:\n%s", got, must(d.YAML()))
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
