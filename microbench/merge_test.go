package microbench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"nicprof/internal/fault"
)

// shards sweeps every part of a plan and returns their directories.
func shards(t *testing.T, n int) []string {
	t.Helper()
	var dirs []string
	for k := 1; k <= n; k++ {
		cfg := quick(filepath.Join(t.TempDir(), fmt.Sprint(k)))
		cfg.Shard = Shard{k, n}
		cfg.Parallel = k
		sweepOK(t, newFake(), cfg)
		dirs = append(dirs, cfg.Dir)
	}
	return dirs
}

func TestMergeEqualsUnsharded(t *testing.T) {
	whole := t.TempDir()
	want := sweepOK(t, newFake(), quick(whole))
	for _, n := range []int{1, 2, 5} {
		dirs := shards(t, n)
		dirs[0], dirs[n-1] = dirs[n-1], dirs[0] // in any order
		out := filepath.Join(t.TempDir(), "merged")
		m, notes, err := Merge(dirs, out)
		if err != nil || len(notes) > 0 {
			t.Fatal(err, notes)
		}
		if read(t, out, SamplesFile) != read(t, whole, SamplesFile) {
			t.Errorf("%d parts merged differ from the unsharded run", n)
		}
		if m.Status != Complete || m.Measured != want.Measured || m.Shard.N != 0 || len(m.Parts) != n {
			t.Errorf("manifest %s", toJSON(t, m))
		}
		if got, err := ReadManifest(out); err != nil || toJSON(t, got) != toJSON(t, m) {
			t.Errorf("read %s, %v", toJSON(t, got), err)
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	dirs := shards(t, 3)
	whole := t.TempDir()
	sweepOK(t, newFake(), quick(whole))
	other := func(change func(*SweepConfig, *fakeDriver)) string {
		cfg, d := quick(filepath.Join(t.TempDir(), "other")), newFake()
		cfg.Shard = Shard{3, 3}
		change(&cfg, d)
		sweepOK(t, d, cfg)
		return cfg.Dir
	}
	edited := func(edit func(manifest, samples string) (string, string)) string {
		dir := filepath.Join(t.TempDir(), "edited")
		m, s := edit(read(t, dirs[2], ManifestFile), read(t, dirs[2], SamplesFile))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string]string{ManifestFile: m, SamplesFile: s} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	for name, c := range map[string]struct {
		third string // in place of part 3
		want  []string
	}{
		"missing part":  {"", []string{"part 3/3 is missing"}},
		"twice":         {dirs[0], []string{"both hold part 1/3"}},
		"whole run":     {whole, []string{"whole run, not a shard"}},
		"no run":        {t.TempDir(), []string{"not the directory of a run"}},
		"mixed seeds":   {other(func(c *SweepConfig, _ *fakeDriver) { c.Seed = 8 }), []string{"seed is 8, not 7"}},
		"mixed suites":  {other(func(c *SweepConfig, _ *fakeDriver) { c.Suite = "standard" }), []string{"suite is standard, not quick"}},
		"mixed boards":  {other(func(_ *SweepConfig, d *fakeDriver) { d.board.Name = "toy2" }), []string{"board is toy2, not toy"}},
		"mixed groups":  {other(func(c *SweepConfig, _ *fakeDriver) { c.Only = []string{GroupCores} }), []string{"plan is another one"}},
		"mixed parts":   {other(func(c *SweepConfig, _ *fakeDriver) { c.Shard = Shard{4, 4} }), []string{"one of 4 parts, not of 3"}},
		"mixed version": {edited(func(m, s string) (string, string) { return strings.Replace(m, `"version": "`, `"version": "9`, 1), s }), []string{"version is 9"}},
		"unfinished": {edited(func(m, s string) (string, string) {
			return strings.Replace(m, `"status": "complete"`, `"status": "interrupted"`, 1), s
		}), []string{"is interrupted", "--resume"}},
		"lost sample": {edited(func(m, s string) (string, string) {
			return m, strings.Join(strings.SplitAfter(s, "\n")[1:], "")
		}), []string{"sample 2 is missing"}},
		"sample twice": {edited(func(m, s string) (string, string) {
			first, rest, _ := strings.Cut(s, "\n")
			return m, first + "\n" + strings.Replace(first, `"key":"`, `"key":"again `, 1) + "\n" + rest
		}), []string{"sample 2 ", "there twice"}},
		"other part's samples": {edited(func(m, _ string) (string, string) { return m, read(t, dirs[0], SamplesFile) }), []string{"not of part 3/3"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := append([]string{}, dirs[:2]...)
			if c.third != "" {
				in = append(in, c.third)
			}
			out := filepath.Join(t.TempDir(), "out")
			_, _, err := Merge(in, out)
			wantError(t, err, c.want...)
			if fault.KindOf(err) != fault.Input {
				t.Errorf("%v is not an input fault", err)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("a refused merge made its output")
			}
		})
	}
	_, _, err := Merge(dirs, whole)
	wantError(t, err, "not empty", "--out")
	_, _, err = Merge(nil, whole)
	wantError(t, err, "nothing to merge")
}

// TestMergeOfMachines: emulated shards come from anywhere, native ones from one
// kind of machine.
func TestMergeOfMachines(t *testing.T) {
	for name, c := range map[string]struct {
		backend, key, value string
		refused, note       string
	}{
		"emulated, other processor": {Emulated, "cpu", "Another CPU", "", ""},
		"native, same machine":      {Native, "", "", "", ""},
		"native, other name":        {Native, "host", "elsewhere", "", "machines of one kind"},
		"native, other processor":   {Native, "cpu", "Another CPU", "Another CPU", ""},
		"native, more processors":   {Native, "cpus", "999", "999 x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dirs := shards(t, 2)
			for i, dir := range dirs {
				var m map[string]any
				if err := json.Unmarshal([]byte(read(t, dir, ManifestFile)), &m); err != nil {
					t.Fatal(err)
				}
				m["backend"] = c.backend
				if machine := m["machine"].(map[string]any); i == 1 && c.key != "" {
					machine[c.key] = c.value
					if n, err := strconv.Atoi(c.value); err == nil {
						machine[c.key] = n
					}
				}
				if err := os.WriteFile(filepath.Join(dir, ManifestFile), []byte(toJSON(t, m)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			_, notes, err := Merge(dirs, filepath.Join(t.TempDir(), "out"))
			if c.refused != "" {
				wantError(t, err, c.refused, "unlike machines")
			} else if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(notes, " "); (c.note == "") != (got == "") || !strings.Contains(got, c.note) {
				t.Errorf("notes %q, want %q", got, c.note)
			}
		})
	}
}

func TestShardsAreDisjointAndCover(t *testing.T) {
	plan, err := Plan(testBoard(), "quick", nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < 9; n++ {
		seen := map[int]int{}
		for k := 1; k <= n; k++ {
			part := Shard{k, n}.Of(plan)
			if d := len(part) - len(plan)/n; d < 0 || d > 1 {
				t.Errorf("part %d/%d has %d of %d workloads", k, n, len(part), len(plan))
			}
			for _, w := range part {
				seen[w.Index]++
			}
		}
		for i := range plan {
			if seen[i] != 1 {
				t.Errorf("workload %d is in %d of %d parts", i, seen[i], n)
			}
		}
	}
}

func TestParseShard(t *testing.T) {
	for _, c := range []struct {
		spec string
		env  map[string]string
		want Shard
		err  string
	}{
		{spec: "", want: Shard{}},
		{spec: "2/8", want: Shard{2, 8}},
		{spec: "1/1", want: Shard{1, 1}},
		{spec: "0/8", err: `"0/8": expected K/N`},
		{spec: "9/8", err: "expected K/N"},
		{spec: "2", err: "expected K/N"},
		{spec: "a/b", err: "expected K/N"},
		{spec: "-1/-1", err: "expected K/N"},
		{spec: "auto", err: "neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX"},
		{spec: "auto", env: map[string]string{"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_COUNT": "4"}, want: Shard{1, 4}},
		{spec: "auto", env: map[string]string{"SLURM_ARRAY_TASK_ID": "4", "SLURM_ARRAY_TASK_COUNT": "4"}, want: Shard{4, 4}},
		{spec: "auto", env: map[string]string{"SLURM_ARRAY_TASK_ID": "14", "SLURM_ARRAY_TASK_MIN": "10", "SLURM_ARRAY_TASK_STEP": "2", "SLURM_ARRAY_TASK_COUNT": "3"}, want: Shard{3, 3}},
		{spec: "auto", env: map[string]string{"SLURM_ARRAY_TASK_ID": "1"}, err: "SLURM_ARRAY_TASK_COUNT is not"},
		{spec: "auto", env: map[string]string{"SLURM_ARRAY_TASK_ID": "x", "SLURM_ARRAY_TASK_COUNT": "3"}, err: `SLURM_ARRAY_TASK_ID is "x"`},
		{spec: "auto", env: map[string]string{"SLURM_ARRAY_TASK_ID": "9", "SLURM_ARRAY_TASK_COUNT": "3"}, err: "part 9 of 3"},
		{spec: "auto", env: map[string]string{"JOB_COMPLETION_INDEX": "0", "JOB_COMPLETIONS": "3"}, want: Shard{1, 3}},
		{spec: "auto", env: map[string]string{"JOB_COMPLETION_INDEX": "2", "JOB_COMPLETIONS": "3"}, want: Shard{3, 3}},
		{spec: "auto", env: map[string]string{"JOB_COMPLETION_INDEX": "2"}, err: "JOB_COMPLETIONS is not"},
	} {
		got, err := ParseShard(c.spec, func(name string) string { return c.env[name] })
		if c.err != "" {
			wantError(t, err, c.err)
			if fault.KindOf(err) != fault.Input {
				t.Errorf("%v is not an input fault", err)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%q %v: %v, %v; want %v", c.spec, c.env, got, err, c.want)
		}
	}
}

func FuzzParseShard(f *testing.F) {
	for _, s := range []string{"", "1/2", "auto", "2/1", "1/99999999999999999999", "/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sh, err := ParseShard(s, func(string) string { return s })
		if err == nil && sh != (Shard{}) && (sh.K < 1 || sh.K > sh.N) {
			t.Fatalf("%q gives %+v", s, sh)
		}
	})
}
