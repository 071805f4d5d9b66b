package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTableSaysWhatHoldsAndWhatNot(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	if err := run(&out, false, 1_000_000, dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "exploration.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one flow there and back", "no-second-echo", "### no-epochs, an echo is lost", "the host sends OFFLOAD of entry 0, migration 2 again"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("exploration.md has no %q", want)
		}
	}
	if strings.Contains(out.String(), "no:") {
		t.Error(out.String())
	}
}

func TestCutExplorationFails(t *testing.T) {
	if err := run(&strings.Builder{}, false, 1000, ""); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("got %v", err)
	}
}
