package microbench

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"nicprof/internal/fault"
	"nicprof/program"
)

// TestDiskFull sweeps onto a file system of 64 KB.
func TestDiskFull(t *testing.T) {
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a small tmpfs (needs root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(small, 0); err != nil {
			t.Error(err)
		}
	})
	dir := filepath.Join(small, "run")
	// Samples of 2 KB, so that some fit and not all do.
	long := func(s *Sample) { s.Warnings = []string{strings.Repeat("x", 2000)} }
	m, err := Sweep(t.Context(), spoiled{newFake(), long}, quick(dir))
	wantError(t, err, "no space left", "--resume")
	if !errors.Is(err, syscall.ENOSPC) || fault.KindOf(err) != fault.Input {
		t.Errorf("error %v", err)
	}
	samples, notes, rerr := ReadSamples(dir)
	if rerr != nil || len(notes) > 0 || len(samples) == 0 || len(samples) != m.Measured {
		t.Fatalf("%d samples readable of %d, notes %v, %v", len(samples), m.Measured, notes, rerr)
	}
	if _, err := ReadManifest(dir); err != nil {
		t.Error(err)
	}
	for _, name := range []string{SamplesFile, pendingFile} {
		if data := []byte(read(t, dir, name)); len(data) > 0 && !bytes.HasSuffix(data, []byte("\n")) {
			t.Errorf("%s ends in half a line", name)
		}
	}
	// With space again the sweep goes on to the same result.
	if err := syscall.Mount("tmpfs", small, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	cfg := quick(dir)
	cfg.Resume = true
	d := newFake()
	measured := 0
	d.hook = func(int, program.Program) error { measured++; return nil }
	sweepOK(t, spoiled{d, long}, cfg)
	if measured != m.Workloads-m.Measured {
		t.Errorf("measured %d, want the %d that were missing", measured, m.Workloads-m.Measured)
	}
	whole := t.TempDir()
	sweepOK(t, spoiled{newFake(), long}, quick(whole))
	if read(t, dir, SamplesFile) != read(t, whole, SamplesFile) {
		t.Error("the resumed run differs from the undisturbed one")
	}
}

// TestDeviceFull writes to the device that is always full.
func TestDeviceFull(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	st := &store{order: []int{0}, lines: map[int][]byte{}, samples: f, pending: f, size: map[*os.File]int64{}}
	err = st.put(0, []byte(sampleLine(t, 0, "a")))
	wantError(t, err, "no space left", "free some space")
	if st.next != 0 || st.lines[0] != nil {
		t.Error("a sample that was not written counts as stored")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
