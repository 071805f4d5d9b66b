package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestWriteReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	for _, want := range []string{"first", "second, longer", "3"} {
		if err := Write(path, []byte(want)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Fatalf("read %q, %v; want %q", got, err, want)
		}
	}
	if names, _ := filepath.Glob(filepath.Join(dir, ".*")); len(names) > 0 {
		t.Errorf("temporary files left: %v", names)
	}
}

func TestWriteFailureKeepsOldAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	// A directory that is not empty cannot be replaced by rename.
	path := filepath.Join(dir, "busy")
	if err := os.MkdirAll(filepath.Join(path, "child"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("x")); err == nil {
		t.Fatal("no error when the target is a directory")
	}
	if _, err := os.Stat(filepath.Join(path, "child")); err != nil {
		t.Error("old content gone:", err)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, ".*")); len(names) > 0 {
		t.Errorf("temporary files left: %v", names)
	}
	if err := Write(filepath.Join(dir, "none", "f"), nil); err == nil {
		t.Error("no error when the directory does not exist")
	}
}

// A writer that fails half way leaves the old file, and nothing else.
func TestWriteFuncFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := WriteFunc(path, func(w io.Writer) error {
		if _, err := w.Write([]byte("half of the n")); err != nil {
			t.Error(err)
		}
		return broken
	})
	got, _ := os.ReadFile(path)
	left, _ := os.ReadDir(dir)
	if !errors.Is(err, broken) || string(got) != "old" || len(left) != 1 {
		t.Errorf("%v: %q in %v", err, got, left)
	}
}
