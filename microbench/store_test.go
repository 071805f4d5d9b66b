package microbench

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nicprof/internal/fault"
)

// sampleLine is a line as a sweep writes it.
func sampleLine(t testing.TB, index int, key string) string {
	t.Helper()
	line, err := encodeSample(&Sample{Index: index, Key: key, Status: StatusOK, Mpps: 2, Low: 1, High: 3})
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

func TestReadSamples(t *testing.T) {
	a, b := sampleLine(t, 0, "a"), sampleLine(t, 1, "b")
	for name, c := range map[string]struct {
		content string
		keys    []string
		note    string
		errs    []string
	}{
		"whole":             {content: a + b, keys: []string{"a", "b"}},
		"no last line feed": {content: a + strings.TrimSuffix(b, "\n"), keys: []string{"a", "b"}},
		"torn last line":    {content: a + b[:20], keys: []string{"a"}, note: "samples.jsonl:2: the last line is torn (20 bytes)"},
		"torn middle line":  {content: a + b[:20] + "\n" + a, errs: []string{"samples.jsonl:2:", "middle of a JSON value"}},
		"lines run together": {content: a + strings.TrimSuffix(b, "\n") + a,
			errs: []string{"samples.jsonl:2:", "more after the JSON value"}},
		"blank line":       {content: a + "\n" + b, errs: []string{"samples.jsonl:2:"}},
		"unknown field":    {content: `{"index":0,"status":"ok","speed":1}` + "\n", errs: []string{"samples.jsonl:1:", `"speed"`}},
		"unknown status":   {content: `{"index":0,"status":"fine"}` + "\n", errs: []string{":1:", `"fine"`, "ok or failed"}},
		"negative rate":    {content: `{"index":0,"status":"ok","mpps":-1,"mpps_low":-1}` + "\n", errs: []string{":1:", "negative"}},
		"outside interval": {content: `{"index":0,"status":"ok","mpps":5,"mpps_low":1,"mpps_high":2}` + "\n", errs: []string{":1:", "outside its interval"}},
		"not JSON":         {content: "memory,op\n", errs: []string{":1:", "not a sample"}},
		"empty":            {content: "", errs: []string{"no samples"}},
		"only a torn line": {content: a[:20], errs: []string{":1:", "torn", "measure again"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), SamplesFile)
			if err := os.WriteFile(path, []byte(c.content), 0o644); err != nil {
				t.Fatal(err)
			}
			samples, notes, err := ReadSamples(path)
			if c.errs != nil {
				wantError(t, err, c.errs...)
				if fault.KindOf(err) != fault.Input {
					t.Errorf("%v is not an input fault", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var keys []string
			for _, s := range samples {
				keys = append(keys, s.Key)
			}
			if !slices.Equal(keys, c.keys) {
				t.Errorf("keys %v, want %v", keys, c.keys)
			}
			if all := strings.Join(notes, "|"); (c.note == "") != (all == "") || !strings.Contains(all, c.note) {
				t.Errorf("notes %q, want %q", all, c.note)
			}
		})
	}
	_, _, err := ReadSamples(filepath.Join(t.TempDir(), "none"))
	wantError(t, err, "none", "expected the directory of a run")
}

func TestReadManifestRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		errs    []string
	}{
		"newer":         {`{"format":"nicprof-run/2","wheels":4}`, []string{`"nicprof-run/2"`, `"nicprof-run/1"`, "use the version that wrote it"}},
		"other file":    {`{"a":1}`, []string{`format ""`}},
		"unknown field": {`{"format":"nicprof-run/1","wheels":4}`, []string{`"wheels"`}},
		"torn":          {`{"format":"nicprof-run/1","boa`, []string{"manifest.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, ManifestFile), []byte(c.content), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := ReadManifest(dir)
			wantError(t, err, c.errs...)
			if fault.KindOf(err) != fault.Input {
				t.Errorf("%v is not an input fault", err)
			}
		})
	}
}

func FuzzReadSamples(f *testing.F) {
	a := sampleLine(f, 0, "a")
	for _, seed := range []string{"", "\n", a, a + a[:30], a[:30] + "\n" + a, a + `{"index":1,"x":2}` + "\n", "null\n", "[1]\n", "{}\x00\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		samples, notes, err := readSamples(strings.NewReader(string(data)), "f")
		if err != nil {
			if fault.KindOf(err) != fault.Input {
				t.Fatalf("%v is not an input fault", err)
			}
			return
		}
		if lines := strings.Count(string(data), "\n"); len(samples) < lines || len(samples)+len(notes) > lines+1 {
			t.Fatalf("%d samples and %d notes from %d lines", len(samples), len(notes), lines)
		}
		// What was read can be stored and read again.
		var stored []byte
		for i := range samples {
			line, err := encodeSample(&samples[i])
			if err != nil {
				t.Fatal(err)
			}
			stored = append(stored, line...)
		}
		again, notes, err := readSamples(strings.NewReader(string(stored)), "f")
		if err != nil || len(notes) > 0 || toJSON(t, again) != toJSON(t, samples) {
			t.Fatalf("read back %s, notes %v, %v; want %s", toJSON(t, again), notes, err, toJSON(t, samples))
		}
	})
}
