package model

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nicprof/internal/fault"
)

func TestFileRoundTrip(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")
	m := withCosts(published())
	if err := m.Save(first); err != nil {
		t.Fatal(err)
	}
	read, err := Load(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Save(second); err != nil {
		t.Fatal(err)
	}
	a, _ := os.ReadFile(first)
	b, _ := os.ReadFile(second)
	if !bytes.Equal(a, b) || len(a) == 0 {
		t.Error("a model that is read and written again has other bytes")
	}
	emem, _ := natLB()
	want, err := m.Predict(emem, Traffic{}, Options{Rule: RuleResources})
	if err != nil {
		t.Fatal(err)
	}
	got, err := read.Predict(emem, Traffic{}, Options{Rule: RuleResources})
	if err != nil {
		t.Fatal(err)
	}
	if got.Mpps != want.Mpps || got.Low != want.Low {
		t.Errorf("the model read back predicts %v, the written one %v", got.Mpps, want.Mpps)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good, err := withCosts(published()).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(good, "m.json"); err != nil {
		t.Fatal("the unchanged file:", err)
	}
	for name, c := range map[string]struct {
		old, new string
		want     string
	}{
		"newer":         {Schema, "nicprof-model/2", "newer"},
		"older":         {Schema, "nicprof-model/0", "fit the samples again"},
		"other":         {Schema, "nicprof-plan/1", "not a model's"},
		"unknown field": {`"board"`, `"colour": 1, "board"`, `"colour"`},
		"type":          {`"clock_mhz": 800`, `"clock_mhz": "fast"`, "m.json:"},
		"negative":      {`"clock_mhz": 800`, `"clock_mhz": -1`, "clock_mhz"},
		"enum":          {`"eq2"`, `"eq9"`, "form"},
		"torn":          {"\n}\n", "\n", "m.json:"},
		"two objects":   {"\n}\n", "\n}\n{}", "m.json"},
		"bad engine":    {`"mode": "atomic"`, `"mode": "turbo"`, "mode"},
		"no schema":     {`"schema"`, `"Schemata"`, "schema"},
	} {
		data := strings.Replace(string(good), c.old, c.new, 1)
		if data == string(good) {
			t.Fatalf("%s: nothing replaced", name)
		}
		_, err := Decode([]byte(data), "m.json")
		if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v; want an input fault that says %q", name, err, c.want)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.json")); fault.KindOf(err) != fault.Input {
		t.Errorf("missing file: %v", err)
	}
}

// A model that cannot predict is not written.
func TestSaveRefusesBroken(t *testing.T) {
	m := published()
	m.DefaultRule = "guess"
	path := filepath.Join(t.TempDir(), "m.json")
	if err := m.Save(path); err == nil {
		t.Error("saved a model whose default rule does not exist")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file was left")
	}
}

func FuzzDecode(f *testing.F) {
	good, err := withCosts(published()).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"schema":"nicprof-model/1"}`))
	f.Add([]byte(`{"schema":"nicprof-model/1","bases":null}`))
	f.Add([]byte("[]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data, "fuzz")
		if err != nil {
			if fault.KindOf(err) != fault.Input {
				t.Fatalf("not an input fault: %v", err)
			}
			return
		}
		if _, err := m.Encode(); err != nil {
			t.Fatalf("read but not written: %v", err)
		}
		emem, _ := natLB()
		for _, rule := range Rules {
			_, _ = m.Predict(emem, Traffic{}, Options{Rule: rule}) // must not panic
		}
	})
}
