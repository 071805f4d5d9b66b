package counters

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/traffic"
)

// sysroot is a file system as the driver lays it out, with two tiles and one
// half of the last-level cache; files hold what was written last.
func sysroot(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "sys/class/hwmon/hwmon1")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("../hwmon0/name", "coretemp\n")
	write("name", "bfperf\n")
	for _, tile := range []string{"tile0", "tile1"} {
		write(tile+"/event_list", "0x0: DISABLE\n0x4c: MEMORY_READS\n0x4d: MEMORY_WRITES\n0x71: A72_WRITE\n0x72: A72_READ\n")
		for i := range 4 {
			write(fmt.Sprintf("%s/event%d", tile, i), "0x0: DISABLE\n")
			write(fmt.Sprintf("%s/counter%d", tile, i), "0x10\n")
		}
	}
	write("l3cache0/event_list", "0x17: HITS_BANK0\n0x18: HITS_BANK1\n0x19: MISSES_BANK0\n")
	write("l3cache0/enable", "0\n")
	for i := range 2 {
		write(fmt.Sprintf("l3cache0/event%d", i), "0x0: DISABLE\n")
		write(fmt.Sprintf("l3cache0/counter%d", i), "0x0\n")
	}
	return root
}

func choose(t testing.TB, root string) (string, Selection) {
	t.Helper()
	dir, err := Find(root)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Select(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, s
}

func set(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// inner is a driver during whose measurements the card counts.
type inner struct {
	microbench.Driver
	b       *board.Board
	measure func()
}

func (d *inner) Board() *board.Board { return d.b }

func (d *inner) Measure(context.Context, program.Program, traffic.Traffic, microbench.Options) (microbench.Sample, error) {
	d.measure()
	return microbench.Sample{Mpps: 1}, nil
}

// The events of all blocks are set up by number, the switched blocks switched
// off meanwhile, and samples get the rates, added up over the blocks of a kind.
func TestJoin(t *testing.T) {
	root := sysroot(t)
	dir, s := choose(t, root)
	var writes []string
	for _, w := range s.Writes() {
		rel, err := filepath.Rel(dir, w.File)
		if err != nil {
			t.Fatal(err)
		}
		writes = append(writes, rel+"="+w.Text)
	}
	want := "l3cache0/enable=0 l3cache0/event0=0x17 l3cache0/event1=0x18 " +
		"tile0/event0=0x72 tile0/event1=0x71 tile0/event2=0x4c tile0/event3=0x4d " +
		"tile1/event0=0x72 tile1/event1=0x71 tile1/event2=0x4c tile1/event3=0x4d l3cache0/enable=1"
	if got := strings.Join(writes, " "); got != want {
		t.Errorf("writes\n%s\nwant\n%s", got, want)
	}
	missing := strings.Join(s.Unavailable, "; ")
	if !strings.Contains(missing, "l3cache0.MISSES_BANK0: no counter left") || !strings.Contains(missing, "l3cache0.MISSES_BANK1: not in event_list") {
		t.Errorf("unavailable: %s", missing)
	}
	var took time.Duration
	from := time.Now()
	d := Join(&inner{b: &board.Board{Name: "b"}, measure: func() {
		for _, name := range []string{"l3cache0/enable", "tile1/event2"} {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.HasPrefix(string(text), map[string]string{"l3cache0/enable": "1", "tile1/event2": "0x4c"}[name]) {
				t.Errorf("%s is %q while measuring (%v)", name, text, err)
			}
		}
		set(t, filepath.Join(dir, "tile0/counter2"), "0x110\n") // 256 reads
		set(t, filepath.Join(dir, "tile1/counter2"), "0x90\n")  // 128
		time.Sleep(10 * time.Millisecond)
	}}, root)
	sample, err := d.Measure(t.Context(), program.Program{}, traffic.Traffic{}, microbench.Options{})
	took = time.Since(from)
	if err != nil || d.Board().Name != "b" || sample.Mpps != 1 || len(sample.Warnings) != 0 {
		t.Fatalf("%+v, %v", sample, err)
	}
	// at most 10 ms and at least all that the call took
	reads := sample.EventsPerS["tile.MEMORY_READS"]
	if reads > 384/0.010 || reads < 384/took.Seconds() || sample.EventsPerS["tile.A72_READ"] != 0 || len(sample.EventsPerS) != 6 {
		t.Errorf("rates %v, over %v", sample.EventsPerS, took)
	}
}

// A sample without counters is still one, and says why.
func TestUncounted(t *testing.T) {
	root := sysroot(t)
	dir, _ := choose(t, root)
	for name, c := range map[string]struct {
		measure func()
		want    string
	}{
		"backwards": {func() { set(t, filepath.Join(dir, "tile0/counter0"), "0x1\n") }, "ran backwards"},
		"no number": {func() { set(t, filepath.Join(dir, "tile0/counter0"), "many\n") }, "not a count"},
		"gone":      {func() { os.Remove(filepath.Join(dir, "tile0/counter0")) }, "no such file"},
	} {
		set(t, filepath.Join(dir, "tile0/counter0"), "0x10\n")
		sample, err := Join(&inner{measure: c.measure}, root).Measure(t.Context(), program.Program{}, traffic.Traffic{}, microbench.Options{})
		if err != nil || sample.Mpps != 1 || sample.EventsPerS != nil || !strings.Contains(sample.Conditions["card_counters"], c.want) {
			t.Errorf("%s: %+v, %v", name, sample, err)
		}
	}
	sample, err := Join(&inner{measure: func() {}}, t.TempDir()).Measure(t.Context(), program.Program{}, traffic.Traffic{}, microbench.Options{})
	if err != nil || sample.Mpps != 1 || !strings.Contains(sample.Conditions["card_counters"], "mlxbf-pmc") {
		t.Errorf("no device: %+v, %v", sample, err)
	}
}

func TestNoCounters(t *testing.T) {
	if _, err := Find(t.TempDir()); fault.KindOf(err) != fault.Missing || !strings.Contains(err.Error(), "mlxbf-pmc") {
		t.Errorf("no device: %v", err)
	}
	root := sysroot(t)
	dir := filepath.Join(root, "sys/class/hwmon/hwmon1")
	set(t, filepath.Join(dir, "tile0/event_list"), "what is this\n")
	if _, err := Select(dir); fault.KindOf(err) != fault.Check {
		t.Errorf("another format: %v", err)
	}
	for _, block := range []string{"tile0", "tile1", "l3cache0"} {
		if err := os.RemoveAll(filepath.Join(dir, block)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Select(dir); fault.KindOf(err) != fault.Missing || !strings.Contains(err.Error(), "tile: no such block") {
		t.Errorf("no blocks: %v", err)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("0x0: DISABLE\n0x4c: MEMORY_READS\n")
	f.Fuzz(func(t *testing.T, text string) {
		events, err := parseEvents(text)
		if err != nil && events != nil {
			t.Error("events and an error")
		}
		for name := range events {
			if name == "" || strings.ContainsAny(name, "\n") {
				t.Errorf("an event %q", name)
			}
		}
	})
}
