package microbench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/internal/perf"
)

func TestDoctor(t *testing.T) {
	idle := fstest.MapFS{
		"proc/loadavg": {Data: []byte("0.00 0.01 0.05 1/100 200\n")},
		"proc/meminfo": {Data: []byte("MemTotal:       99999999 kB\nMemAvailable:   88888888 kB\n")},
	}
	busy := fstest.MapFS{
		"proc/loadavg": {Data: []byte("9999.0 1 1 1/100 200\n")},
		"proc/meminfo": {Data: []byte("MemAvailable:   2048 kB\n")},
	}
	all := []string{"nfp-hwinfo", "nfp-nffw", "nfp-rtsym", "nfp", "nfp4build", "rtecli"}
	for name, c := range map[string]struct {
		class, backend string
		tools          []string
		proc           fstest.MapFS
		ok             bool
		findings       []string // "level: part of the text or remedy"
		absent         string
	}{
		"emulated, idle": {class: "toy", proc: idle, ok: true,
			findings: []string{"ok: driver of class toy opens", "ok: load average 0.0", "ok: of memory available", "ok: same on every machine"}, absent: "warning"},
		"emulated, busy": {class: "toy", proc: busy, ok: true,
			findings: []string{"warning: its results do not change", "warning: lower --parallel"}},
		"native, busy":   {class: "toy", backend: Native, proc: busy, ok: true, findings: []string{"warning: spoils the timing"}, absent: "same on every machine"},
		"unknown system": {class: "toy", proc: fstest.MapFS{}, ok: true, findings: []string{"ok: processors"}, absent: "load average"},
		"garbled system": {class: "toy", proc: fstest.MapFS{"proc/loadavg": {Data: []byte("x\n")}, "proc/meminfo": {Data: []byte("MemAvailable: x kB\n")}},
			ok: true, findings: []string{"ok: processors"}, absent: "of memory available"},
		"no rights": {class: "netif", backend: Native, proc: fstest.MapFS{"proc/self/status": {Data: []byte("CapEff:\t0000000000002000\n")}},
			findings: []string{"missing: it takes CAP_NET_ADMIN, CAP_SYS_ADMIN", "warning: CAP_BPF"}},
		"rights": {class: "netif", backend: Native, proc: fstest.MapFS{"proc/self/status": {Data: []byte("CapEff:\t000001ffffffffff\n")}},
			ok: true, findings: []string{"ok: all rights"}},
		"no driver":  {class: "fpga", proc: idle, findings: []string{`missing: class "fpga"`}},
		"no tools":   {class: "nfp", backend: Native, proc: idle, findings: []string{"missing: nfp-hwinfo", "missing: install the Netronome SDK 6"}},
		"some tools": {class: "nfp", backend: Native, tools: all[:2], proc: idle, findings: []string{"missing: nfp-rtsym"}, absent: "nfp-hwinfo"},
		"all tools":  {class: "nfp", backend: Native, tools: all, proc: idle, ok: true, findings: []string{"ok: tools of class nfp are in PATH"}},
	} {
		t.Run(name, func(t *testing.T) {
			installTools(t, c.tools...)
			r := toyRegistry()
			for _, class := range []string{"nfp", "netif"} {
				r.Register(class, func(*board.Board, string) (Driver, error) { return newFake(), nil })
			}
			b := testBoard()
			b.Class = c.class
			rep, err := r.doctor(t.Context(), b, c.backend, &machine{root: c.proc}, true)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range slices.Concat(rep.Findings, rep.Machine) {
				got = append(got, f.Level+": "+f.Text+" / "+f.Remedy)
				if f.Level != LevelOK && strings.TrimSpace(f.Text+f.Remedy) == "" {
					t.Errorf("finding %+v says nothing", f)
				}
			}
			for _, want := range c.findings {
				level, text, _ := strings.Cut(want, ": ")
				if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, level+": ") && strings.Contains(s, text) }) {
					t.Errorf("no finding %q in %q", want, got)
				}
			}
			if c.absent != "" && strings.Contains(strings.Join(got, "\n"), c.absent) {
				t.Errorf("%q is said in %q", c.absent, got)
			}
			if rep.OK != c.ok || (rep.Err() == nil) != c.ok {
				t.Errorf("ok %v, error %v; want ok %v", rep.OK, rep.Err(), c.ok)
			}
			if err := rep.Err(); err != nil && fault.KindOf(err) != fault.Missing {
				t.Errorf("%v is not a missing fault", err)
			}
			if c.ok != (len(rep.Groups) > 0) {
				t.Errorf("groups %v", rep.Groups)
			}
		})
	}
}

// archive is a machine's files as a file system, and the findings wanted.
func archive(t testing.TB, file string) (fstest.MapFS, []string) {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	root := fstest.MapFS{}
	var want []string
	for _, f := range a.Files {
		if f.Name == "want" {
			want = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
			continue
		}
		root[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return root, want
}

// TestMachines looks at copies of machines of several kinds.
func TestMachines(t *testing.T) {
	files, err := filepath.Glob("testdata/machines/*.txtar")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	topics := map[string]bool{}
	for _, file := range files {
		root, want := archive(t, file)
		var got []string
		for _, f := range DoctorOf(root).Machine {
			topics[f.Topic] = true
			got = append(got, f.Level+" "+f.Topic+": "+f.Text)
			if (f.Level == LevelOK) != (f.Remedy == "") {
				t.Errorf("%s: %+v: a remedy is for what is not ok", file, f)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", file, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	doc, err := os.ReadFile("../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		if !topics[c.topic] {
			t.Errorf("no machine shows a finding of %s", c.topic)
		}
		if !strings.Contains(string(doc), "\n## "+c.topic+"\n") {
			t.Errorf("docs/doctor.md has no heading %q", c.topic)
		}
	}
}

// FuzzMachines puts any text into any file of a machine: doctor leaves out what
// it cannot read and never fails.
func FuzzMachines(f *testing.F) {
	files, err := filepath.Glob("testdata/machines/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	var roots []fstest.MapFS
	for n, file := range files {
		root, _ := archive(f, file)
		roots = append(roots, root)
		for i, name := range slices.Sorted(maps.Keys(root)) {
			f.Add(n, i, root[name].Data)
		}
	}
	for _, text := range []string{"", "-", "max", "max max", "9-0", "0-99999999", "Cpus_allowed_list: 0-8191", "[", "18446744073709551616", "-1 0", "(", "1 )(", "cpu 1 2 3 4 5 6 7 18446744073709551615"} {
		f.Add(0, 0, []byte(text))
	}
	f.Fuzz(func(t *testing.T, n, i int, data []byte) {
		root := maps.Clone(roots[uint(n)%uint(len(roots))])
		names := slices.Sorted(maps.Keys(root))
		root[names[uint(i)%uint(len(names))]] = &fstest.MapFile{Data: data}
		for _, c := range DoctorOf(root).Machine {
			if c.Text == "" || (c.Level == LevelOK) != (c.Remedy == "") {
				t.Errorf("%+v", c)
			}
		}
	})
}

func TestCPUListRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := rapid.SliceOfDistinct(rapid.IntRange(0, mostCPUs-1), rapid.ID).Draw(t, "cpus")
		slices.Sort(set)
		got, err := parseCPUList(formatCPUList(set))
		if err != nil || !slices.Equal(got, set) {
			t.Fatalf("%v became %q and %v, %v", set, formatCPUList(set), got, err)
		}
	})
	for _, bad := range []string{"a", "1-", "-1", "3-1", "0-8192", "1,,2", "0-1-2"} {
		if got, err := parseCPUList(bad); err == nil {
			t.Errorf("%q reads as %v", bad, got)
		}
	}
}

// TestParse: each format as the kernel writes it, and close to it.
func TestParse(t *testing.T) {
	type result struct {
		value any
		ok    bool
	}
	pair := func(v any, ok bool) result { return result{v, ok} }
	fails := func(v any, err error) result { return result{v, err == nil} }
	process := func(s string) result {
		name, ticks, ok := parseProcess(s)
		return result{fmt.Sprint(name, " ", ticks), ok}
	}
	kernel := func(s string) result {
		major, minor, ok := parseKernel(s)
		return result{fmt.Sprint(major, ".", minor), ok}
	}
	share := func(v float64, ok bool) result { return result{v, ok} }
	for i, c := range []struct {
		got  result
		want any // nil: must not be read
	}{
		{share(parseSteal("cpu  50 0 25 20 0 0 0 5 99 99\ncpu0 1\n")), 0.05}, // guest time is within user time
		{share(parseSteal("cpu  50 0 25 25 0 0 0 0\n")), 0.0},
		{share(parseSteal("cpu  50 0 25 25 0 0 0\n")), nil}, // before Linux 2.6.11
		{share(parseSteal("cpu 0 0 0 0 0 0 0 0\n")), nil},
		{process("42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14"), "a) b (c 23"},
		{process("42 (short) S 1 2 3"), nil},
		{process("42 no name"), nil},
		{kernel("5.15.0-1013-bluefield"), "5.15"},
		{kernel("6.18"), "6.18"},
		{kernel("6"), nil},
		{kernel("6.x"), nil},
		{fails(parseQuota("150000 100000\n")), 1.5},
		{fails(parseQuota("max 100000")), 0.0},
		{fails(parseQuota("-1 100000")), 0.0},
		{fails(parseQuota("50000 0")), nil},
		{fails(parseQuota("50000")), nil},
		{fails(parseBytes("1280K")), int64(1280 << 10)},
		{fails(parseBytes("512M")), int64(512 << 20)},
		{fails(parseBytes("1T")), nil},
		{fails(parseBytes("9999999999999G")), nil},
		{pair(selected("always [madvise] never")), "madvise"},
		{pair(selected("[always")), nil},
		{pair(parsePressure("some avg10=12.50 avg60=1.00 avg300=0.10 total=1\nfull avg10=99.00\n")), 0.125},
		{pair(parsePressure("full avg10=99.00\n")), nil},
		{pair(parsePressure("some avg10=NaN\n")), nil},
		{pair(memory("MemTotal: 8 kB\nMemFree:  4 kB\n", "MemFree")), int64(4096)},
		{pair(memory("MemFree:  -4 kB\n", "MemFree")), nil},
		{pair(parseLimit("Max file locks  unlimited unlimited locks\nMax locked memory         65536   65536  bytes\n", "Max locked memory")), "65536"},
		{pair(parseLimit("Max locked memory", "Max locked memory")), nil},
	} {
		if c.got.ok != (c.want != nil) || c.got.ok && c.got.value != c.want {
			t.Errorf("case %d: %v, want %v", i, c.got, c.want)
		}
	}
	groups := parseCgroups("4:memory:/job/7\n2:cpu,cpuacct:/job\n0::/a/../b\nbroken\n1:x\n")
	if want := map[string]string{"memory": "/job/7", "cpu": "/job", "cpuacct": "/job", "": "/b"}; !maps.Equal(groups, want) {
		t.Errorf("groups %v, want %v", groups, want)
	}
}

// TestProbeFindings: what was measured becomes findings, a disturbance a warning
// and an absent counter a reason.
func TestProbeFindings(t *testing.T) {
	root, _ := archive(t, "testdata/machines/guest.txtar")
	quiet := spin{wall: 200 * time.Millisecond, cpu: 200 * time.Millisecond}
	taken := spin{wall: 200 * time.Millisecond, cpu: 199 * time.Millisecond, gaps: 20 * time.Millisecond, count: 4, longest: 9 * time.Millisecond}
	p := probe{spin: quiet, clockNS: 25, counters: []string{"task-clock"},
		uncounted: []perf.Unavailable{{Event: "cycles", Reason: "not supported by this machine"}, {Event: "instructions", Reason: "not supported by this machine"}},
		consumers: []consumer{{77, "cc1", 0.5}},
		look:      func(name string) bool { return name == "ssh" }}
	found := func(p probe) string {
		var lines []string
		for _, f := range (&machine{root, &p}).inspect() {
			lines = append(lines, f.Level+" "+f.Topic+": "+f.Text)
		}
		return strings.Join(lines, "\n")
	}
	got := found(p)
	for _, want := range []string{
		"ok lost time: a thread that spun for 200 ms lost 0.0 % in 0 gaps",
		"warning load: process 77 (cc1) takes 50 % of a processor",
		"ok clock: clock source kvm-clock, a read takes 25 ns",
		"ok counters: perf events that count: task-clock",
		"warning counters: no cycles, instructions: not supported by this machine",
		"ok tools: helpers: ssh", "warning tools: gcc",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	p.spin = taken
	if got, want := found(p), "warning lost time: a thread that spun for 200 ms lost 10.0 % in 4 gaps, the longest 9000 µs; other threads here had 0.5 %"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}

func TestConsumers(t *testing.T) {
	before := map[int]process{1: {"init", 5}, 2: {"busy", 10}, 3: {"self", 0}, 4: {"idle", 9}, 5: {"reused", 90}, 6: {"a", 0}, 7: {"b", 0}, 8: {"c", 0}}
	after := map[int]process{1: {"init", 5}, 2: {"busy", 30}, 3: {"self", 20}, 4: {"idle", 10}, 5: {"reused", 80}, 6: {"a", 4}, 7: {"b", 8}, 8: {"c", 3}, 9: {"new", 50}}
	got := consumersOf(before, after, 200*time.Millisecond, 3)
	if want := []consumer{{2, "busy", 1}, {7, "b", 0.4}, {6, "a", 0.2}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestProbeHere: the figures of a probe agree with each other, and every event
// is counted or has a reason.
func TestProbeHere(t *testing.T) {
	s := spinFor(5 * time.Millisecond)
	if s.wall < 5*time.Millisecond || s.gaps > s.wall || s.longest > s.gaps || s.cpu < 0 || (s.count == 0) != (s.gaps == 0) {
		t.Errorf("%+v", s)
	}
	if runtime.GOOS != "linux" {
		t.Skip("the rest needs Linux")
	}
	p := probeHere(os.DirFS("/"))
	if len(p.counters)+len(p.uncounted) < len(perf.Software)+len(perf.Hardware) || !(p.clockNS > 0) || p.spin.cpu <= 0 {
		t.Errorf("%+v", p)
	}
	for _, c := range p.consumers {
		if c.pid == os.Getpid() {
			t.Error("this process is among the other consumers")
		}
	}
}

// examined is a driver that looks at its machine.
type examined struct {
	*fakeDriver
	found Examination
	err   error
}

func (d examined) Examine(ctx context.Context) (Examination, error) {
	if ctx.Err() != nil {
		return Examination{}, ctx.Err()
	}
	return d.found, d.err
}

// TestExamine: what a driver finds out about its machine is in the report, in
// words, as tables and as the groups of the board that it found, when that is
// asked for.
func TestExamine(t *testing.T) {
	d := examined{fakeDriver: newFake(), found: Examination{
		Findings: []Finding{{Level: LevelWarning, Text: "two levels cannot be told apart", Remedy: "none"}},
		Tables:   []Table{{Title: "latency", Columns: []string{"bytes", "ns"}, Rows: [][]any{{"4 KiB", 1.5}}}},
	}}
	d.board.Notes = []string{"far: 1 GiB of it is seen"}
	report := func(ctx context.Context, d Driver, examine bool) (Report, error) {
		var r Registry
		r.Register("toy", func(*board.Board, string) (Driver, error) { return d, nil })
		template := testBoard()
		template.Memories = nil
		return r.doctor(ctx, template, Native, &machine{root: fstest.MapFS{}}, examine)
	}
	rep, err := report(t.Context(), d, true)
	if err != nil {
		t.Fatal(err)
	}
	text := toJSON(t, rep)
	for _, want := range []string{"cannot be told apart", "far: 1 GiB", `"columns":["bytes","ns"],"rows":[["4 KiB",1.5]]`, `"single"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if rep, err := report(t.Context(), d, false); err != nil || strings.Contains(toJSON(t, rep), "told apart") || rep.Tables != nil {
		t.Errorf("examined without being asked: %+v, %v", rep, err)
	}
	d.err = errors.New("no memory to map")
	if rep, err := report(t.Context(), d, true); err != nil || !rep.OK || !strings.Contains(toJSON(t, rep), "not examined: no memory to map") {
		t.Errorf("an examination that fails: %+v, %v", rep, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := report(ctx, d, true); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
