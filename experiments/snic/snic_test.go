package snic

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"nicprof/experiments"
	"nicprof/report"
)

func run(t *testing.T, id string, env experiments.Env) report.Result {
	t.Helper()
	f, err := experiments.Lookup(id)
	if err != nil {
		t.Fatal(err)
	}
	env.Seed, env.Scale = 1, experiments.Quick
	r, err := f.Run(context.Background(), env)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// differing are the claims that differ, and have to say why.
var differing = map[string]bool{"snic/fig13 a-return": true}

func init() {
	for n := range 6 {
		suffix := string(rune('2' + n))
		differing["snic/nt-parallel panic-"+suffix] = true
		if n > 0 {
			differing["snic/nt-parallel half-"+suffix] = true
		}
	}
}

// TestFigures runs every figure: all that is published is reproduced, but for
// claims that are known to differ and give a reason.
func TestFigures(t *testing.T) {
	n := 0
	for _, f := range experiments.List() {
		if !strings.HasPrefix(f.ID, "snic/") {
			continue
		}
		n++
		t.Run(f.ID, func(t *testing.T) {
			r := run(t, f.ID, experiments.Env{})
			for _, c := range r.Claims {
				if c.Measured == nil {
					t.Errorf("%s: nothing measured", c.ID)
				}
				differs := c.Verdict == report.Differs
				if differs != differing[f.ID+" "+c.ID] || differs && c.Reason == "" {
					t.Errorf("%s: %s, paper %s, measured %v, reason %q", c.ID, c.Verdict, c.Expected(), *c.Measured, c.Reason)
				}
			}
			if len(r.Data.Rows) == 0 || len(r.Figure.Panels) == 0 {
				t.Error("no data or no picture")
			}
		})
	}
	if n != 11 {
		t.Errorf("%d figures of SuperNIC, want 11", n)
	}
}

// TestChainIsExact: all 18 published latencies, without tolerance.
func TestChainIsExact(t *testing.T) {
	r := run(t, "snic/nt-chain", experiments.Env{})
	exact := 0
	for _, c := range r.Claims {
		if c.Unit == "us" && c.Tolerance == 0 && c.Published != nil && *c.Measured == *c.Published {
			exact++
		}
	}
	if exact != 18 {
		t.Errorf("%d of 18 published latencies are met exactly", exact)
	}
}

// TestBytesDoNotDependOnParallel: the same seed gives the same bytes.
func TestBytesDoNotDependOnParallel(t *testing.T) {
	for _, id := range []string{"snic/throughput", "snic/fig13"} {
		one, many := run(t, id, experiments.Env{Parallel: 1}), run(t, id, experiments.Env{Parallel: 4})
		a, err := one.Data.CSV()
		if err != nil {
			t.Fatal(err)
		}
		b, err := many.Data.CSV()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s: data differs with one and with four measurements at a time", id)
		}
	}
}

// In the worked example no instance of NT2 does more than its 100 Gb/s, of which
// there are two after the scale-out.
func TestWorkedExample(t *testing.T) {
	at, err := worked()
	if err != nil {
		t.Fatal(err)
	}
	if len(at) != len(phases) {
		t.Fatalf("%d phases, want %d", len(at), len(phases))
	}
	for k, phase := range phases {
		nt2 := at[k]["NT2-u1"] + at[k]["NT2-u2"]
		if limit := map[string]float64{"after_scaleout": 200}[phase]; nt2 > max(100, limit)+1e-9 {
			t.Errorf("%s: NT2 does %g Gb/s of 100", phase, nt2)
		}
	}
}
