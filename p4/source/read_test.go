package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file or a pipe is read to its end; what has none, or is too large, is refused.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.p4")
	if err := os.WriteFile(file, []byte("header h { }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if data, err := Read(file); err != nil || string(data) != "header h { }\n" {
		t.Errorf("read %q, %v", data, err)
	}
	if _, err := Read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
	large := filepath.Join(dir, "large.p4")
	f, err := os.Create(large)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(MaxBytes+1), f.Close()); err != nil { // a hole
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir: "directory", large: "more than 64 MiB", os.DevNull: "neither a regular file nor a pipe"} {
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("error { }"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	through := filepath.Join("/proc/self/fd", fmt.Sprint(r.Fd()))
	if _, err := os.Stat(through); err != nil {
		t.Skip("no /proc/self/fd to name a pipe by")
	}
	if data, err := Read(through); err != nil || string(data) != "error { }" {
		t.Errorf("of a pipe: %q, %v", data, err)
	}
}
