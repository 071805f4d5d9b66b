package microbench_test

import (
	"os"
	"path/filepath"
	"testing"

	"nicprof/board"
	"nicprof/microbench"
	_ "nicprof/microbench/nfp"
	"nicprof/program"
	"nicprof/traffic"
)

func openNFP(t *testing.T) microbench.Driver {
	t.Helper()
	b, err := board.Load("nfp")
	if err != nil {
		t.Fatal(err)
	}
	d, err := microbench.Open(b, "")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestEmulatedSweep runs a small group on the emulated card, in one go, two at
// a time, and in shards.
func TestEmulatedSweep(t *testing.T) {
	d := openNFP(t)
	sweep := func(parallel int, shard microbench.Shard) string {
		dir := t.TempDir()
		m, err := microbench.Sweep(t.Context(), d, microbench.SweepConfig{
			Dir: dir, Backend: microbench.Emulated, Suite: "quick", Only: []string{microbench.GroupStateless},
			Seed: 1, Parallel: parallel, Shard: shard,
		})
		if err != nil || m.Failed > 0 || m.Status != microbench.Complete {
			t.Fatalf("%s, %d failed, %v", m.Status, m.Failed, err)
		}
		return dir
	}
	bytes := func(dir string) string {
		data, err := os.ReadFile(filepath.Join(dir, microbench.SamplesFile))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	want := bytes(sweep(1, microbench.Shard{}))
	if bytes(sweep(2, microbench.Shard{})) != want {
		t.Error("two at a time give other bytes than one")
	}
	merged := filepath.Join(t.TempDir(), "merged")
	parts := []string{sweep(1, microbench.Shard{K: 1, N: 2}), sweep(2, microbench.Shard{K: 2, N: 2})}
	if _, _, err := microbench.Merge(parts, merged); err != nil {
		t.Fatal(err)
	}
	if bytes(merged) != want {
		t.Error("merged shards differ from the whole run")
	}
	samples, notes, err := microbench.ReadSamples(merged)
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	bare := samples[0]
	for _, s := range samples[1:] {
		if s.Mpps > bare.Mpps*1.01 {
			t.Errorf("%s: %v Mpps, bare %v", s.Key, s.Mpps, bare.Mpps)
		}
	}
}

func TestEmulatedNDR(t *testing.T) {
	d := openNFP(t)
	p := program.Program{Accesses: []program.Access{{Memory: "emem", Op: program.Read, Mode: program.Bulk, Bytes: 64, PerPacket: 10}}}
	o := microbench.Options{Seed: 1, Precision: 0.02, MaxRuns: 1}
	full, err := d.Measure(t.Context(), p, traffic.Traffic{}, o)
	if err != nil {
		t.Fatal(err)
	}
	n, err := microbench.FindNDR(t.Context(), d, p, traffic.Traffic{}, o)
	if err != nil {
		t.Fatal(err)
	}
	if n.NDRMpps > n.PDRMpps || n.PDRMpps > full.High || n.NDRMpps < 0.8*full.Mpps || !(n.TrialSeconds > 0) {
		t.Errorf("%+v, saturated %v Mpps", n, full.Mpps)
	}
	at, err := d.Measure(t.Context(), p, traffic.Traffic{RateMpps: n.NDRMpps}, o)
	if err != nil || at.DroppedMpps != 0 {
		t.Errorf("at the no-drop rate of %v Mpps %v are dropped, %v", n.NDRMpps, at.DroppedMpps, err)
	}
}

// TestEmulatedTrial: at an offered rate the simulated time is what was asked
// for, within what fills the ingress buffer and what can be afforded.
func TestEmulatedTrial(t *testing.T) {
	d := openNFP(t)
	const rate = 20.0                                                                // Mpps
	for asked, want := range map[float64]float64{1e-3: 1000, 1e-9: 300, 60: 10000} { // s, µs
		s, err := d.Measure(t.Context(), program.Program{Base: "forward"}, traffic.Traffic{RateMpps: rate},
			microbench.Options{Seed: 1, MaxRuns: 1, TrialSeconds: asked})
		if err != nil {
			t.Fatal(err)
		}
		if s.DurationUS < 0.95*want || s.DurationUS > 1.05*want {
			t.Errorf("asked for %v s: %v µs, want about %v", asked, s.DurationUS, want)
		}
	}
}
