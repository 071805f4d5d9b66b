package microbench

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"nicprof/board"
	"nicprof/internal/fault"
)

// toyRegistry knows the class of the test board.
func toyRegistry() *Registry {
	var r Registry
	r.Register("toy", func(*board.Board, string) (Driver, error) { return newFake(), nil })
	return &r
}

func TestRegistry(t *testing.T) {
	r := toyRegistry()
	r.Register("abacus", nil)
	if got := r.Classes(); !slices.Equal(got, []string{"abacus", "toy"}) {
		t.Errorf("classes %v are not sorted", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a class registered twice does not panic")
		}
	}()
	r.Register("toy", nil)
}

func TestOpen(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for name, c := range map[string]struct {
		class, backend string
		kind           fault.Kind
		want           []string
	}{
		"default":         {class: "toy"},
		"emulated":        {class: "toy", backend: Emulated},
		"unknown backend": {"toy", "simulated", fault.Input, []string{`"simulated"`, "emulated, native, remote"}},
		"remote":          {"toy", Remote, fault.Input, []string{"--host USER@ADDR"}},
		"no hardware":     {"fpga", Native, fault.Missing, []string{"only emulated", "no public bitstream"}},
		"no driver":       {"fpga", Emulated, fault.Missing, []string{`class "fpga"`, "drives nfp, toy"}},
		"no tools":        {"nfp", Native, fault.Missing, []string{"nfp-hwinfo", "nfp-rtsym", "rtecli", "not in PATH", "--backend emulated"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := toyRegistry()
			r.Register("nfp", func(*board.Board, string) (Driver, error) { return newFake(), nil })
			b := testBoard()
			b.Class = c.class
			d, err := r.Open(b, c.backend)
			if c.want == nil {
				if err != nil || d == nil {
					t.Fatalf("%v, %v", d, err)
				}
				return
			}
			wantError(t, err, c.want...)
			if fault.KindOf(err) != c.kind {
				t.Errorf("%v has kind %v, want %v", err, fault.KindOf(err), c.kind)
			}
		})
	}
}

func TestDefaultBackend(t *testing.T) {
	host := &board.Board{Class: "host"}
	if a, b, c := DefaultBackend(host, ""), DefaultBackend(testBoard(), ""), DefaultBackend(host, Emulated); a != Native || b != Emulated || c != Emulated {
		t.Errorf("host %s, others %s, as asked %s", a, b, c)
	}
}

// installTools puts an executable of each name into PATH, which has no other.
func installTools(t *testing.T, names ...string) {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(dir, n), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}
