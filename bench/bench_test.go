package main

import (
	"context"
	"testing"
)

// TestGoPeersDoTheSameWork: the heaps order events as the kernel does, ties
// included, in both workloads.
func TestGoPeersDoTheSameWork(t *testing.T) {
	delays := exponentials()
	for _, w := range []workload{{"hold", 16, 0}, {"hold", 3000, 0}, {"nfp", 54 * 8, 0}} {
		var want int64
		for _, p := range goPeers(delays) {
			r, err := p.run(context.Background(), w, checkOps)
			if err != nil {
				t.Fatal(err)
			}
			if want == 0 {
				want = r.checked
			}
			if r.checked != want || want == 0 || r.ns <= 0 {
				t.Errorf("%s, %s with %d pending: operation %d at %d ps in %v ns, want %d ps", p.name, w.name, w.pending, checkOps, r.checked, r.ns, want)
			}
		}
	}
}

func TestProgramsThatFailAreReported(t *testing.T) {
	for name, command := range map[string][]string{
		"no output":  {"true"},
		"bad output": {"echo", "fast"},
		"failure":    {"false"},
	} {
		if r, err := outside("delays", command...)(context.Background(), workloads[0], 1); err == nil {
			t.Errorf("%s: taken as %+v", name, r)
		}
	}
}
