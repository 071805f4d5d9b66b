package microbench

import (
	"context"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nicprof/internal/fault"
	"nicprof/program"
	"nicprof/traffic"
)

func TestSweepBytesIndependentOfParallel(t *testing.T) {
	var want string
	for _, parallel := range []int{1, 2, 7} {
		dir := filepath.Join(t.TempDir(), "run")
		cfg := quick(dir)
		cfg.Parallel = parallel
		m := sweepOK(t, newFake(), cfg)
		if m.Status != Complete || m.Measured != m.Workloads || m.Failed != 0 {
			t.Errorf("parallel %d: status %s, %d of %d measured, %d failed", parallel, m.Status, m.Measured, m.Workloads, m.Failed)
		}
		got := read(t, dir, SamplesFile)
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("parallel %d gives other bytes than parallel 1", parallel)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 3 {
			t.Errorf("parallel %d leaves %v, want samples, manifest and board", parallel, entries)
		}
	}
	samples, notes, err := readSamples(strings.NewReader(want), "x")
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	plan, err := Plan(testBoard(), "quick", quick("").Only, 7)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range samples {
		if s.Index != i || s.Key != plan[i].Key || s.Group != plan[i].Group || s.Seed != plan[i].Options.Seed {
			t.Errorf("sample %d is %d %s, want %s", i, s.Index, s.Key, plan[i].Key)
		}
	}
}

func TestSweepOrderIsRandomisedBySeed(t *testing.T) {
	order := func(seed uint64) []string {
		d := newFake()
		var keys []string
		d.hook = func(_ int, p program.Program) error { keys = append(keys, describe(p)); return nil }
		cfg := quick(t.TempDir())
		cfg.Seed = seed
		sweepOK(t, d, cfg)
		return keys
	}
	a, again, b := order(1), order(1), order(2)
	if !slices.Equal(a, again) {
		t.Error("the same seed measures in two orders")
	}
	if slices.Equal(a, b) {
		t.Error("two seeds measure in the same order")
	}
	plan, _ := Plan(testBoard(), "quick", quick("").Only, 1)
	inOrder := 0
	for i, w := range plan {
		if describe(w.Program) == a[i] {
			inOrder++
		}
	}
	if inOrder > len(plan)/2 {
		t.Errorf("%d of %d workloads are measured in plan order", inOrder, len(plan))
	}
}

// TestSweepResumes interrupts a sweep again and again, at random places and by
// Ctrl-C as well as by a kill that loses the manifest's last state and tears
// the last lines; the result must be that of an undisturbed sweep.
func TestSweepResumes(t *testing.T) {
	few := func(dir string) SweepConfig {
		cfg := quick(dir)
		cfg.Only = []string{GroupCores}
		return cfg
	}
	whole := t.TempDir()
	sweepOK(t, newFake(), few(whole))
	want := read(t, whole, SamplesFile)
	checks := flag.Lookup("rapid.checks").Value
	defer checks.Set(checks.String())
	checks.Set("15") // each syncs many files to the disk
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		cfg := few(dir)
		cfg.Resume = true
		for session := 0; ; session++ {
			d := newFake()
			ctx, cancel := context.WithCancel(context.Background())
			stop := rapid.IntRange(2, 30).Draw(rt, "stop after")
			d.hook = func(n int, _ program.Program) error {
				if n > stop {
					cancel()
				}
				return nil
			}
			cfg.Parallel = rapid.IntRange(1, 3).Draw(rt, "parallel")
			m, err := Sweep(ctx, d, cfg)
			cancel()
			if err == nil {
				if len(m.Sessions) != session+1 {
					rt.Fatalf("%d sessions noted, want %d", len(m.Sessions), session+1)
				}
				break
			}
			if !errors.Is(err, context.Canceled) || m.Status != Interrupted {
				rt.Fatalf("status %s, error %v", m.Status, err)
			}
			onDisk, err := ReadManifest(dir)
			if err != nil || onDisk.Status != Interrupted || onDisk.Measured != m.Measured {
				rt.Fatalf("manifest %+v, %v", onDisk, err)
			}
			if m.Measured == 0 {
				continue
			}
			samples, _, err := ReadSamples(dir)
			if err != nil || len(samples) != m.Measured {
				rt.Fatalf("%d samples readable of %d, %v", len(samples), m.Measured, err)
			}
			if rapid.Bool().Draw(rt, "torn") {
				path := filepath.Join(dir, SamplesFile)
				info, err := os.Stat(path)
				if err != nil {
					rt.Fatal(err)
				}
				cut := rapid.Int64Range(1, 100).Draw(rt, "bytes lost")
				if err := os.Truncate(path, info.Size()-cut); err != nil {
					rt.Fatal(err)
				}
			}
		}
		got, err := os.ReadFile(filepath.Join(dir, SamplesFile))
		if err != nil || string(got) != want {
			rt.Fatalf("the resumed run differs from the undisturbed one (%v)", err)
		}
	})
}

// TestKilledSweepKeepsEverything copies the directory in the middle of a
// sweep, as a kill -9 would leave it.
func TestKilledSweepKeepsEverything(t *testing.T) {
	dir, killed := t.TempDir(), filepath.Join(t.TempDir(), "killed")
	d := newFake()
	const at = 15
	d.hook = func(n int, _ program.Program) error {
		if n == at {
			return os.CopyFS(killed, os.DirFS(dir))
		}
		return nil
	}
	sweepOK(t, d, quick(dir))
	samples, notes, err := ReadSamples(killed)
	// The last answer may still be on its way to the store.
	if err != nil || len(notes) > 0 || len(samples) < at-2 || len(samples) > at-1 {
		t.Fatalf("%d samples after %d measurements, notes %v, %v", len(samples), at-1, notes, err)
	}
	if m, err := ReadManifest(killed); err != nil || m.Status != Running {
		t.Errorf("manifest of a killed run: status %q, %v", m.Status, err)
	}
	cfg := quick(killed)
	cfg.Resume = true
	again := newFake()
	m := sweepOK(t, again, cfg)
	if n := <-again.calls; n != m.Workloads-len(samples) {
		t.Errorf("resuming measured %d, want the %d that were missing", n, m.Workloads-len(samples))
	}
	if read(t, killed, SamplesFile) != read(t, dir, SamplesFile) {
		t.Error("the resumed run differs from the undisturbed one")
	}
}

func TestResumeOfCompleteRunMeasuresNothing(t *testing.T) {
	dir := t.TempDir()
	sweepOK(t, newFake(), quick(dir))
	want := read(t, dir, SamplesFile)
	cfg := quick(dir)
	cfg.Resume = true
	d := newFake()
	if m := sweepOK(t, d, cfg); m.Status != Complete || m.Measured != m.Workloads {
		t.Errorf("manifest %+v", m)
	}
	if n := <-d.calls; n != 0 {
		t.Errorf("measured %d workloads again", n)
	}
	if read(t, dir, SamplesFile) != want {
		t.Error("samples changed")
	}
}

func TestSweepRefuses(t *testing.T) {
	used := t.TempDir()
	sweepOK(t, newFake(), quick(used))
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.tex"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*SweepConfig, *fakeDriver)
		want   []string
	}{
		"non-empty directory": {func(c *SweepConfig, _ *fakeDriver) { c.Resume = false }, []string{"not empty", "--resume", "--out"}},
		"no run there":        {func(c *SweepConfig, _ *fakeDriver) { c.Dir = foreign }, []string{"manifest.json", "not the directory of a run"}},
		"other seed":          {func(c *SweepConfig, _ *fakeDriver) { c.Seed = 8 }, []string{"seed is 7, not 8"}},
		"other suite":         {func(c *SweepConfig, _ *fakeDriver) { c.Suite = "standard" }, []string{"suite is quick, not standard"}},
		"other groups":        {func(c *SweepConfig, _ *fakeDriver) { c.Only = nil }, []string{"plan is another one"}},
		"other backend":       {func(c *SweepConfig, _ *fakeDriver) { c.Backend = Native }, []string{"backend is emulated, not native"}},
		"other shard":         {func(c *SweepConfig, _ *fakeDriver) { c.Shard = Shard{1, 2} }, []string{"part whole, not 1/2"}},
		"other board":         {func(_ *SweepConfig, d *fakeDriver) { d.board.Name = "toy2" }, []string{"board is toy, not toy2"}},
		"changed board":       {func(_ *SweepConfig, d *fakeDriver) { d.board.Notes = []string{"x"} }, []string{"description of board toy has changed"}},
		"infinite board":      {func(_ *SweepConfig, d *fakeDriver) { d.board.LinkGbps.Value = math.Inf(1) }, []string{"board toy"}},
		"unknown suite":       {func(c *SweepConfig, _ *fakeDriver) { c.Suite = "huge" }, []string{`"huge"`, "quick, standard, full"}},
		"unknown group":       {func(c *SweepConfig, _ *fakeDriver) { c.Only = []string{"credits"} }, []string{`"credits"`, "stateless"}},
		"too many shards":     {func(c *SweepConfig, _ *fakeDriver) { c.Shard = Shard{999, 999} }, []string{"999/999", "is empty"}},
		"directory is a file": {func(c *SweepConfig, _ *fakeDriver) { c.Dir = filepath.Join(foreign, "thesis.tex", "run") }, []string{"thesis.tex", "--out"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, d := quick(used), newFake()
			cfg.Resume = true
			c.change(&cfg, d)
			before := read(t, used, SamplesFile) + read(t, used, ManifestFile)
			_, err := Sweep(t.Context(), d, cfg)
			wantError(t, err, c.want...)
			if fault.KindOf(err) != fault.Input {
				t.Errorf("%v is not an input fault", err)
			}
			if read(t, used, SamplesFile)+read(t, used, ManifestFile) != before {
				t.Error("a refused sweep changed the directory")
			}
		})
	}
}

func TestResumeNotesTornLine(t *testing.T) {
	dir := t.TempDir()
	sweepOK(t, newFake(), quick(dir))
	path := filepath.Join(dir, SamplesFile)
	want := read(t, path)
	if err := os.WriteFile(path, []byte(want[:len(want)-10]), 0o644); err != nil {
		t.Fatal(err)
	}
	var notes []string
	cfg := quick(dir)
	cfg.Resume = true
	cfg.Note = func(s string) { notes = append(notes, s) }
	d := newFake()
	sweepOK(t, d, cfg)
	if len(notes) != 1 || !strings.Contains(notes[0], "torn") || !strings.Contains(notes[0], "measured again") {
		t.Errorf("notes %q", notes)
	}
	if n := <-d.calls; n != 1 {
		t.Errorf("measured %d workloads, want the torn one", n)
	}
	if read(t, path) != want {
		t.Error("the resumed run differs from the undisturbed one")
	}
}

func TestTwoSweepsInOneDirectory(t *testing.T) {
	dir := t.TempDir()
	d := newFake()
	d.hook = func(n int, _ program.Program) error {
		if n == 3 {
			cfg := quick(dir)
			cfg.Resume = true
			_, err := Sweep(t.Context(), newFake(), cfg)
			if err == nil || !strings.Contains(err.Error(), "another sweep is running") {
				t.Errorf("second sweep: %v", err)
			}
		}
		return nil
	}
	sweepOK(t, d, quick(dir))
	samples, _, err := ReadSamples(dir)
	if err != nil || len(samples) != <-d.calls {
		t.Errorf("%d samples, %v", len(samples), err)
	}
}

func TestSweepRecordsFailures(t *testing.T) {
	d := newFake()
	d.hook = func(_ int, p program.Program) error {
		if len(p.Accesses) > 0 && p.Accesses[0].Op == program.Write {
			return errors.New("bus error")
		}
		return nil
	}
	dir := t.TempDir()
	m := sweepOK(t, d, quick(dir))
	samples, _, err := ReadSamples(dir)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, s := range samples {
		write := len(s.Program.Accesses) > 0 && s.Program.Accesses[0].Op == program.Write
		if write != (s.Status == StatusFailed) || write != (s.Reason == "bus error") {
			t.Errorf("%s: status %s, reason %q", s.Key, s.Status, s.Reason)
		}
		if write {
			failed++
		}
	}
	if m.Status != Complete || m.Failed != failed || failed == 0 {
		t.Errorf("status %s, %d failed, want %d", m.Status, m.Failed, failed)
	}
}

// spoiled returns what no board can have measured.
type spoiled struct {
	*fakeDriver
	spoil func(*Sample)
}

func (d spoiled) Measure(ctx context.Context, p program.Program, t traffic.Traffic, o Options) (Sample, error) {
	s, err := d.fakeDriver.Measure(ctx, p, t, o)
	d.spoil(&s)
	return s, err
}

func TestSweepRefusesImpossibleSamples(t *testing.T) {
	for name, spoil := range map[string]func(*Sample){
		"not a number":     func(s *Sample) { s.Latency.P99 = math.NaN() },
		"outside interval": func(s *Sample) { s.Low = s.Mpps + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			m := sweepOK(t, spoiled{newFake(), spoil}, quick(dir))
			samples, _, err := ReadSamples(dir)
			if err != nil || m.Failed != m.Workloads || samples[0].Reason == "" {
				t.Errorf("%d of %d failed, reason %q, %v", m.Failed, m.Workloads, samples[0].Reason, err)
			}
		})
	}
}

func TestSweepProgress(t *testing.T) {
	var seen []Progress
	cfg := quick(t.TempDir())
	cfg.Progress = func(p Progress) { seen = append(seen, p) }
	m := sweepOK(t, newFake(), cfg)
	if len(seen) != m.Workloads+1 {
		t.Fatalf("%d reports for %d workloads", len(seen), m.Workloads)
	}
	for i, p := range seen {
		if p.Done != i || p.Total != m.Workloads || p.Left < 0 || (i > 0) == (p.Key == "") {
			t.Errorf("report %d: %+v", i, p)
		}
	}
	if last := seen[len(seen)-1]; last.Left != 0 {
		t.Errorf("time left at the end: %v", last.Left)
	}
}

func TestManifestSaysWhatWasRun(t *testing.T) {
	dir := t.TempDir()
	m := sweepOK(t, newFake(), quick(dir))
	got, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if toJSON(t, got) != toJSON(t, m) {
		t.Errorf("read %s\nreturned %s", toJSON(t, got), toJSON(t, m))
	}
	if len(m.BoardSHA256) != 64 || len(m.PlanSHA256) != 64 || m.Version == "" || m.Machine.CPUs < 1 || m.Machine.Go == "" ||
		len(m.Sessions) != 1 || m.Sessions[0].Measured != m.Workloads || m.Sessions[0].Started == "" {
		t.Errorf("manifest %s", toJSON(t, m))
	}
}

// located is a driver of a board elsewhere.
type located struct {
	*fakeDriver
	at Machine
}

func (d located) Machine() Machine { return d.at }

// A lost board stops the sweep: what was measured is kept, nothing is stored as
// failed, and the resumed sweep has the bytes of an undisturbed one. Only the
// machine that measured the first part may measure the rest.
func TestSweepStopsAtLostBoard(t *testing.T) {
	whole := t.TempDir()
	sweepOK(t, newFake(), quick(whole))
	cfg := quick(t.TempDir())
	cfg.Backend, cfg.Parallel = Remote, 3
	d := located{newFake(), Machine{Host: "card", OS: "linux", Arch: "arm64", CPUs: 8}}
	d.hook = func(n int, _ program.Program) error {
		if n > 10 {
			return fault.Missingf("card is down: %w", ErrLost)
		}
		return nil
	}
	m, err := Sweep(t.Context(), d, cfg)
	wantError(t, err, "card is down")
	if fault.KindOf(err) != fault.Missing || m.Status != Interrupted || m.Reason != err.Error() || m.Failed > 0 {
		t.Errorf("%v; manifest %+v", err, m)
	}
	if m.Measured < 8 || m.Measured > 10 || m.Machine != d.at {
		t.Errorf("%d measured on %v, want those before the loss, on %v", m.Measured, m.Machine, d.at)
	}
	cfg.Resume = true
	other := located{newFake(), d.at}
	other.at.Host, other.at.CPU = "spare", "Cortex-A72"
	_, err = Sweep(t.Context(), other, cfg)
	wantError(t, err, "it was measured on card (linux/arm64, 8 x unnamed CPU), not on spare (linux/arm64, 8 x Cortex-A72)")
	if fault.KindOf(err) != fault.Input {
		t.Errorf("%v is no input fault", err)
	}
	d.hook, d.at.Go = nil, "go9"
	if m = sweepOK(t, d, cfg); m.Status != Complete || len(m.Sessions) != 2 || m.Machine != d.at {
		t.Errorf("manifest %+v", m)
	}
	if read(t, cfg.Dir, SamplesFile) != read(t, whole, SamplesFile) {
		t.Error("the resumed sweep has other samples")
	}
}

// TestBoardOfARun: a run's directory holds the board that its driver knew, of a
// shard and of what is merged too, so that it can be fitted again elsewhere.
func TestBoardOfARun(t *testing.T) {
	dirs := shards(t, 2)
	out := filepath.Join(t.TempDir(), "merged")
	if _, _, err := Merge(dirs, out); err != nil {
		t.Fatal(err)
	}
	for _, dir := range append(dirs, out) {
		b, err := ReadBoard(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := toJSON(t, b), toJSON(t, testBoard()); got != want {
			t.Errorf("%s holds\n%s, want\n%s", dir, got, want)
		}
	}
	if b, err := ReadBoard(t.TempDir()); b != nil || err != nil {
		t.Errorf("of no board: %v, %v", b, err)
	}
	if err := os.WriteFile(filepath.Join(out, BoardFile), []byte(`{"name":"toy"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := ReadBoard(out)
	wantError(t, err, BoardFile, "at least one base")
}
