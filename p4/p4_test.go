package p4

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nicprof/internal/fault"
	"nicprof/p4/ir"
	"nicprof/p4/syntax"
)

// programs are the applications of the project, and the programs of testdata,
// which use what those do not.
func programs(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, dir := range []string{"testdata", "../cora/apps"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.p4"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if base := filepath.Base(f); base != "inet.p4" && base != "headers.p4" { // parts of others
				all = append(all, f)
			}
		}
	}
	if len(all) < 8 {
		t.Fatalf("found %d programs: %v", len(all), all)
	}
	return all
}

// What the IR promises holds for every program, and a second reading gives the
// same code.
func TestLoad(t *testing.T) {
	for _, f := range programs(t) {
		var texts []string
		for range 2 {
			p, err := Load(f, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := ir.Check(p); err != nil {
				t.Errorf("%s: %v", f, err)
			}
			var b strings.Builder
			if err := ir.Fprint(&b, p); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, b.String())
		}
		if texts[0] != texts[1] {
			t.Errorf("%s: two readings differ", f)
		}
	}
}

func TestDefine(t *testing.T) {
	src := "#include <core.p4>\ncontrol c(inout bit<W> x) { apply { x = x + 1; } }\n"
	p, err := Parse("c.p4", []byte(src), Options{Define: []string{"W=24"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Vars) != 1 || p.Vars[0].Bits != 24 {
		t.Errorf("locations are %v, expected one of 24 bits", p.Vars)
	}
	if _, err := Parse("c.p4", []byte(src), Options{}); fault.KindOf(err) != fault.Input {
		t.Errorf("without W the error is %v, expected an input fault", err)
	}
	if _, err := Parse("c.p4", []byte(src), Options{Define: []string{"=3"}}); fault.KindOf(err) != fault.Input {
		t.Errorf("a macro without name gives %v, expected an input fault", err)
	}
}

// The user's declarations come before the built-in ones.
func TestInclude(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "core.p4"), []byte("const bit<8> OURS = 5;\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	src := []byte("#include <core.p4>\ncontrol c(inout bit<8> x) { apply { x = OURS; } }\n")
	if _, err := Parse("c.p4", src, Options{Include: []string{dir}}); err != nil {
		t.Error(err)
	}
	_, err := Parse("c.p4", src, Options{})
	if err == nil || !strings.Contains(err.Error(), "<core.p4> is nicprof's own") {
		t.Errorf("error is %v, expected to say that the built-in core.p4 served", err)
	}
}

func TestJSON(t *testing.T) {
	for text, want := range map[string]bool{"{}": true, "\n\t {\"a\":1}": true, "// {\n": false, "": false} {
		if got := isJSON([]byte(text)); got != want {
			t.Errorf("isJSON(%q) is %v", text, got)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.p4"), Options{}); fault.KindOf(err) != fault.Input {
		t.Errorf("of a missing file the error is %v, expected an input fault", err)
	}
}

// Programs that grow without bound when inlined or laid out are refused.
func TestBounds(t *testing.T) {
	chain := func(first, step, last string) string {
		text := first
		for i := range 40 {
			text += strings.NewReplacer("NEW", "n"+strings.Repeat("x", i+1), "OLD", "n"+strings.Repeat("x", i)).Replace(step)
		}
		return text + last
	}
	end := "n" + strings.Repeat("x", 40)
	for name, src := range map[string]string{
		"types":     chain("struct n { bit<8> f; }\n", "struct NEW { OLD a; OLD b; }\n", ""),
		"functions": chain("void n(inout bit<8> v) { v = v + 1; }\n", "void NEW(inout bit<8> v) { OLD(v); OLD(v); }\n", "control c(inout bit<8> v) { apply { "+end+"(v); } }\n"),
		"controls":  chain("control n(inout bit<8> v) { apply { v = v + 1; } }\n", "control NEW(inout bit<8> v) { OLD() a; OLD() b; apply { a.apply(v); b.apply(v); } }\n", ""),
		"stacks":    "header h { bit<8> x; }\nstruct s { h[4096] a; }\nstruct t { s[4096] b; }\n",
		"itself":    "struct s { s x; }\n",
		"recursion": "void f(inout bit<8> v) { f(v); }\n",
		"width":     "const bit<100000000> x = 1;\n",
		"shift":     "const int a = 1 << 100000;\nconst int b = a * a * a * a * a * a * a * a * a * a * a * a * a * a * a * a * a * a * a * a * a * a;\nconst bit<(b)> x = 1;\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(name+".p4", []byte(src), Options{})
			if fault.KindOf(err) != fault.Input {
				t.Errorf("error is %v, expected an input fault", err)
			}
		})
	}
}

// Whatever the text, reading it ends, without a panic, in a program that keeps
// the IR's promises or in messages.
func FuzzParse(f *testing.F) {
	for _, name := range programs(f) {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, src string) {
		p, err := Parse("../cora/apps/fuzz.p4", []byte(src), Options{})
		if err != nil {
			var errs syntax.Errors
			if fault.KindOf(err) != fault.Input || !errors.As(err, &errs) || len(errs) == 0 {
				t.Fatalf("error is %v, expected messages", err)
			}
			return
		}
		if err := ir.Check(p); err != nil {
			t.Fatal(err)
		}
	})
}
