package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// sample reads an output of a tool; testdata/README.md says where each is from.
func sample(t testing.TB, name string) string {
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

func TestParsersReadSamples(t *testing.T) {
	if r, err := parseLikwid(sample(t, "likwid-bench.txt")); err != nil || !near(r.bandwidth, 53.16375) || !near(r.seconds, 1.262305) || r.bytes != 16000 || r.cpu != 0 {
		t.Errorf("likwid-bench: %+v, %v", r, err)
	}
	if ns, err := parseMultichase(sample(t, "multichase.txt")); err != nil || !near(ns, 112.4) {
		t.Errorf("multichase: %v, %v", ns, err)
	}
	latency := sample(t, "lat_mem_rd.txt")
	for bytes, want := range map[int64]float64{24 << 10: 1.204, 512 << 10: 4.806, 1 << 20: 13.75} {
		if ns, err := parseLatMemRd(latency, bytes); err != nil || !near(ns, want) {
			t.Errorf("lat_mem_rd of %d B: %v, %v, want %v", bytes, ns, err, want)
		}
	}
	if ns, err := parseLatMemRd(latency, 256<<20); err == nil {
		t.Errorf("lat_mem_rd: a working set that it did not measure gives %v", ns)
	}
	if r, err := parseStream(sample(t, "stream.txt")); err != nil || r.elements != 10_000_000 || !near(r.best["Copy"], 20.1234) || !near(r.best["Triad"], 15.0011) {
		t.Errorf("STREAM: %+v, %v", r, err)
	}
	if ns, err := parseLockhammer(sample(t, "lockhammer.txt")); err != nil || !near(ns, 1e9/3406366) {
		t.Errorf("lockhammer: %v, %v", ns, err)
	}
	if v, err := parseSysbench(sample(t, "sysbench.txt")); err != nil || !near(v, 41846.96*(1<<20)/1e9) {
		t.Errorf("sysbench: %v, %v", v, err)
	}
	for stressor, want := range map[string][]metric{
		"stream":  {{"bogo ops/s", 124.5}, {"memory read rate (MB per sec)", 12371.35}, {"memory write rate (MB per sec)", 8247.57}, {"memory rate (Mflop per sec)", 1081.03}},
		"memrate": {{"bogo ops/s", 13.9}, {"write64stoq MB per sec", 23971.73}},
	} {
		got, err := parseStressNG(sample(t, "stress-ng.txt"), stressor)
		if err != nil || len(got) != len(want) {
			t.Fatalf("stress-ng %s: %v, %v", stressor, got, err)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("stress-ng %s: %v, want %v", stressor, got[i], want[i])
			}
		}
	}
}

// parsers call each parser and say what it takes for a number.
var parsers = map[string]func(out string) (float64, error){
	"likwid-bench.txt": func(out string) (float64, error) { r, err := parseLikwid(out); return r.bandwidth, err },
	"multichase.txt":   parseMultichase,
	"lat_mem_rd.txt":   func(out string) (float64, error) { return parseLatMemRd(out, 1<<20) },
	"stream.txt":       func(out string) (float64, error) { r, err := parseStream(out); return r.best["Copy"], err },
	"lockhammer.txt":   parseLockhammer,
	"sysbench.txt":     parseSysbench,
	"stress-ng.txt": func(out string) (float64, error) {
		m, err := parseStressNG(out, "stream")
		if err != nil {
			return 0, err
		}
		return m[0].value, nil
	},
}

// TestParsersRefuse what another program printed, or what was cut off: a usage
// text, half an output, nothing.
func TestParsersRefuse(t *testing.T) {
	for name, parse := range parsers {
		whole := sample(t, name)
		for what, out := range map[string]string{
			"nothing": "", "a usage": "usage: tool [options]\n  -h  help\n", "ImageMagick": "Version: ImageMagick 6.9.11\nUsage: stream [options ...] input-image raw-image\n", "its beginning": whole[:len(whole)/8],
		} {
			if v, err := parse(out); err == nil {
				t.Errorf("%s: %s is read as %v", name, what, v)
			}
		}
	}
}

// FuzzParsers: whatever a tool prints, a parser gives a positive finite number
// or an error.
func FuzzParsers(f *testing.F) {
	for name := range parsers {
		f.Add(sample(f, name))
	}
	f.Add("MByte/s: 1e400\nTime: NaN sec\nSize (Byte): -1\nGroup: running on hwthread 99999999999999999999 -")
	f.Add("po  locks/wall_sec\n0 | 1 | 2 | 3 4 0\n")
	f.Fuzz(func(t *testing.T, out string) {
		for name, parse := range parsers {
			if v, err := parse(out); err == nil && (!(v >= 0) || math.IsInf(v, 0)) {
				t.Errorf("%s: %v from %q", name, v, out)
			}
		}
		hugeOf(out)
	})
}

func TestHugeOf(t *testing.T) {
	if got := hugeOf("AnonHugePages:      2048 kB\nRss: 4 kB\nAnonHugePages:  4096 kB\nAnonHugePages: x kB\n"); got != 6<<20 {
		t.Errorf("%d", got)
	}
	for _, c := range []struct {
		huge, size int64
		want       string
	}{{0, 1 << 20, "4 KiB"}, {2 << 20, 2 << 20, "huge"}, {4 << 20, 2 << 20, "huge"}, {1 << 20, 2 << 20, "50 % huge"}} {
		if got := pageText(c.huge, c.size, 4096); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.huge, c.size, got, c.want)
		}
	}
}
