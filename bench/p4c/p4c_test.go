package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nicprof/p4/ir"
	"nicprof/p4/source"
)

// TestExpect classifies what p4c reports, with its ways of giving the line.
func TestExpect(t *testing.T) {
	for _, c := range []struct {
		name, stderr string
		want         class
		lines        []int
	}{
		{"syntax", "x.p4(47):syntax error, unexpected DEFAULT\n    action default\n", syntaxError, []int{47}},
		{"name", "x.p4(6): [--Werror=not-found] error: T: declaration not found\n", undeclared, []int{6}},
		{"warning first", "x.p4(2): [--Wwarn=unused] warning: 'g' is unused\nx.p4(9): [--Werror=type-error] error: a(): Parameter b must be bound\n", argCount, []int{9}},
		{"cause below", "x.p4(4): [--Werror=type-error] error: 'f(1, 2)'\n  f(1, 2)\n  ---- Actual error:\nx.p4(1): f: 2 arguments supplied while 1 are expected\n", argCount, []int{4}},
		{"cause without place", "x.p4(8): [--Werror=type-error] error: 'p.apply(a)'\n  ---- Actual error:\n  p: 1 arguments supplied while 0 are expected\n", argCount, []int{8}},
		{"origin", "x.p4(9): [--Werror=type-error] error: 'package P'\n  ---- Actual error:\n  P: 1 arguments supplied while 0 are expected\n  ---- Originating from:\nx.p4(20): Constructor invocation\nx.p4(3): [--Wwarn=unused] warning: 'g'\n", argCount, []int{9, 20}},
		{"another file", "y.p4(6): [--Werror=not-found] error: T: declaration not found\n", other, nil},
		{"another error", "x.p4(6): [--Werror=type-error] error: e1 cannot be the target of an assignment\n", other, nil},
		{"none", "", other, nil},
	} {
		got := expect("x.p4", c.stderr)
		if got.class != c.want || !slices.Equal(got.lines, c.lines) {
			t.Errorf("%s: got %s at %v, want %s at %v", c.name, got.class, got.lines, c.want, c.lines)
		}
	}
}

func TestTextFormat(t *testing.T) {
	m, err := parseText(`# comment
a { b: "x\"y\342\227\225\n◕" 'z' c: 5; d: [1, 2] e < f: TRUE > }
a: { b: "second" }
g: -1.5e3 # end`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want string }{
		{m.at("a").text("b"), "x\"y◕\n◕z"},
		{m.at("a").text("c"), "5"},
		{m.at("a")["d"][1].text, "2"},
		{m.at("a", "e").text("f"), "TRUE"},
		{m.messages("a")[1].text("b"), "second"},
		{m.text("g"), "-1.5e3"},
		{m.at("a", "none").text("f"), ""},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	for _, bad := range []string{"a {", "a: ", `a: "x`, "a: 1 }", "[", "a: {{", strings.Repeat("a{", 1000)} {
		if m, err := parseText(bad); err == nil {
			t.Errorf("%.10q was read as %v", bad, m)
		}
	}
}

func FuzzTextFormat(f *testing.F) {
	f.Add(`a { b: "x" c: [1, 2] } # end`)
	f.Fuzz(func(t *testing.T, src string) {
		m, err := parseText(src)
		if (m == nil) == (err == nil) {
			t.Errorf("message %v, error %v", m, err)
		}
	})
}

// TestWidths finds the width of every kind of type.
func TestWidths(t *testing.T) {
	m, err := parseText(`type_info {
  structs { key: "s" value {
    members { name: "a" type_spec { bitstring { bit { bitwidth: 3 } } } }
    members { name: "b" type_spec { bool { } } } } }
  headers { key: "h" value { members { name: "a" type_spec { bit { bitwidth: 48 } } } members { name: "b" type_spec { varbit { max_bitwidth: 16 } } } } }
  serializable_enums { key: "e" value { underlying_type { bitwidth: 5 } } }
  new_types { key: "n" value { original_type { bitstring { int { bitwidth: 7 } } } } }
  new_types { key: "t" value { translated_type { sdn_bitwidth: 32 } } }
}`)
	if err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]string{
		`bitstring { bit { bitwidth: 9 } }`: "9",
		`bool { }`:                          "1",
		`struct { name: "s" }`:              "4",
		`header { name: "h" }`:              "64",
		`serializable_enum { name: "e" }`:   "5",
		`new_type { name: "n" }`:            "7",
		`new_type { name: "t" }`:            unknownBits,
		`tuple { members { bool { } } members { struct { name: "s" } } }`: "5",
		`enum { name: "unknown" }`:                                        unknownBits,
	} {
		s, err := parseText(spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.width(s, 0); got != want {
			t.Errorf("%s has %s bits, want %s", spec, got, want)
		}
	}
}

func TestDifferences(t *testing.T) {
	want := summary{"table t": "size 8, keys exact 32, lpm ?", "register r": "size 4, 8 bits", "counter c": "size 1, bytes"}
	got := summary{"table t": "size 8, keys exact 32, lpm 9", "register r": "size 4, 16 bits", "meter m": "size 1, bytes"}
	diff, alike := differences(got, want)
	expected := []string{"no counter c", "register r has size 4, 16 bits; expected size 4, 8 bits", "an unexpected meter m"}
	if !slices.Equal(diff, expected) || alike != 1 {
		t.Errorf("got %q, %d alike; want %q, 1 alike", diff, alike, expected)
	}
}

// TestLoad catches panics and leaves what does not end.
func TestLoad(t *testing.T) {
	crash := load(func(string) (*ir.Program, error) { panic("lost") }, ".", "a.p4", time.Minute)
	if !strings.Contains(crash.crash, "lost") || !strings.Contains(crash.crash, "p4c_test.go") {
		t.Errorf("a panic gives %q", crash.crash)
	}
	never := make(chan struct{})
	defer close(never)
	hang := load(func(string) (*ir.Program, error) { <-never; return nil, nil }, ".", "a.p4", time.Millisecond)
	if !hang.hung {
		t.Errorf("a load without end gives %+v", hang)
	}
	path := ""
	fine := load(func(p string) (*ir.Program, error) { path = p; return &ir.Program{}, nil }, "dir", "a.p4", time.Minute)
	if fine.program == nil || fine.hung || path != filepath.Join("dir", "a.p4") {
		t.Errorf("%s gives %+v", path, fine)
	}
}

// TestMissed looks for the expected line in all messages of an error.
func TestMissed(t *testing.T) {
	at := func(file string, line int) error {
		return &source.Message{Pos: source.Pos{File: file, Line: line}, Msg: "m"}
	}
	e := expectation{undeclared, []int{3, 7}}
	for _, c := range []struct {
		err  error
		want string
	}{
		{at("d/x.p4", 7), ""},
		{fmt.Errorf("read: %w", errors.Join(at("d/x.p4", 1), at("d/x.p4", 3))), ""},
		{at("d/x.p4", 4), "expected an error at line 3 or 7; found"},
		{at("d/y.p4", 3), "expected an error at line 3 or 7; found"},
		{nil, "accepted; expected an error at line 3 or 7"},
	} {
		if got := e.missed(outcome{file: "x.p4", err: c.err}); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
}

func TestGrouped(t *testing.T) {
	groups := grouped([]failure{
		{"a.p4", "a.p4:3:4: \"x\" is not declared\n  x"},
		{"b.p4", "b.p4:9: too long"},
		{"c.p4", "dir/c.p4:30:14: \"y\" is not declared"},
	})
	if len(groups) != 2 || groups[0].why != "… is not declared" || !slices.Equal(groups[0].files, []string{"a.p4", "c.p4"}) {
		t.Errorf("got %+v", groups)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"-p4c", filepath.Join("testdata", "none")}, {"-p4c", "testdata", "more"}} {
		var out bytes.Buffer
		if err := run(args, &out, &out); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

func TestCommit(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef01234567"
	for name, files := range map[string]map[string]string{
		"detached": {"HEAD": id + "\n"},
		"loose":    {"HEAD": "ref: refs/heads/main\n", "refs/heads/main": id + "\n"},
		"packed":   {"HEAD": "ref: refs/heads/main\n", "packed-refs": "# pack-refs\n" + id + " refs/heads/main\n"},
	} {
		root := t.TempDir()
		for file, text := range files {
			path := filepath.Join(root, ".git", file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := commit(root); got != id {
			t.Errorf("%s: got %s", name, got)
		}
	}
	if got := commit(t.TempDir()); got != "unknown" {
		t.Errorf("no repository: got %s", got)
	}
}

// TestRun reads a checkout in miniature and writes both reports.
func TestRun(t *testing.T) {
	root := filepath.Join("testdata", "checkout")
	out := filepath.Join(t.TempDir(), "p4c.md")
	var stdout, stderr bytes.Buffer
	if err := run([]string{"-p4c", root, "-v", "-o", out}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	report, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][]string{
		{"p4_16_samples", "accepted", "3", "3", "100.0"},
		{"with P4Info", "the same objects", "2", "1", "50.0"},
		{"objects in P4Info", "declared alike", "10", "9", "90.0"},
		{"p4_16_errors, syntax error", "refused at the line", "1", "1", "100.0"},
		{"p4_16_errors, undeclared name", "refused at the line", "1", "1", "100.0"},
		{"p4_16_errors, wrong number of arguments", "refused at the line", "1", "1", "100.0"},
		{"p4_16_errors, these three", "refused at the line", "3", "3", "100.0"},
	} {
		if !hasRow(string(report), row) {
			t.Errorf("no row %q in\n%s", row, report)
		}
	}
	for _, want := range []string{"P4Info: differs.p4: no register I.seen", "an unexpected register I.seen2"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, stdout.String())
		}
	}
}

func hasRow(markdown string, cells []string) bool {
	for line := range strings.Lines(markdown) {
		var found []string
		for _, cell := range strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			found = append(found, strings.TrimSpace(cell))
		}
		if slices.Equal(found, cells) {
			return true
		}
	}
	return false
}
