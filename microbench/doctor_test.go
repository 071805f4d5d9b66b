package microbench

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"nicprof/board"
	"nicprof/internal/fault"
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
		"no driver":  {class: "fpga", proc: idle, findings: []string{`missing: class "fpga"`}},
		"no tools":   {class: "nfp", backend: Native, proc: idle, findings: []string{"missing: nfp-hwinfo", "missing: install the Netronome SDK 6"}},
		"some tools": {class: "nfp", backend: Native, tools: all[:2], proc: idle, findings: []string{"missing: nfp-rtsym"}, absent: "nfp-hwinfo"},
		"all tools":  {class: "nfp", backend: Native, tools: all, proc: idle, ok: true, findings: []string{"ok: tools of class nfp are in PATH"}},
	} {
		t.Run(name, func(t *testing.T) {
			installTools(t, c.tools...)
			r := toyRegistry()
			r.Register("nfp", func(*board.Board, string) (Driver, error) { return newFake(), nil })
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
