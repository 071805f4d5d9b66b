package prelude_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"nicprof/p4/bind"
	"nicprof/p4/prelude"
	"nicprof/p4/syntax"
)

// Every file of declarations is right by itself: its names are declared, its
// functions' bodies hold.
func TestDeclarations(t *testing.T) {
	files, err := fs.Glob(os.DirFS("."), "*.p4")
	if err != nil || len(files) < 8 {
		t.Fatalf("files are %v: %v", files, err)
	}
	for _, name := range files {
		for _, define := range []map[string]string{nil, {"V1MODEL_VERSION": "20200408"}} {
			f, err := syntax.Parse("x.p4", []byte("#include <"+name+">\n"), syntax.Options{Builtin: prelude.File, Define: define})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := bind.Program(f); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestFile(t *testing.T) {
	for name, want := range map[string]string{
		"v1model.p4": "package V1Switch", "bmv2/psa.p4": "package PSA_Switch", "dpdk/pna.p4": "package PNA_NIC", "t2na.p4": "package Pipeline",
	} {
		text, ok := prelude.File(name)
		if !ok || !strings.Contains(string(text), want) {
			t.Errorf("%s does not declare %q", name, want)
		}
	}
	for _, name := range []string{"none.p4", "../prelude.go", "prelude.go", ""} {
		if _, ok := prelude.File(name); ok {
			t.Errorf("%q is there", name)
		}
	}
}

func TestArch(t *testing.T) {
	for name, want := range map[string]string{
		"<v1model.p4>": "v1model", "/usr/share/p4c/p4include/bmv2/psa.p4": "psa", "<core.p4>": "core", "tofino2arch.p4": "tna", "my.p4": "",
	} {
		if got := prelude.Arch(name); got != want {
			t.Errorf("%s is of %q, expected %q", name, got, want)
		}
	}
}
