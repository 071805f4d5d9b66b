package perf

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func names(events []Event) []string {
	var s []string
	for _, e := range events {
		s = append(s, e.Name)
	}
	return s
}

func TestEventsOf(t *testing.T) {
	a72 := "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\n"
	for name, c := range map[string]struct {
		cpuinfo string
		a72     bool
	}{
		"Cortex-A72":               {a72, true},
		"second of two core types": {"CPU implementer : 0x41\nCPU part : 0xd03\n\n" + a72, true},
		"Cortex-A78":               {"CPU implementer : 0x41\nCPU part : 0xd42\n", false},
		"same part, other maker":   {"CPU implementer : 0x51\nCPU part : 0xd08\n", false},
		"amd64":                    {"vendor_id : AuthenticAMD\nmodel name : AMD EPYC\n", false},
		"empty":                    {"", false},
	} {
		got := names(EventsOf([]byte(c.cpuinfo)))
		if slices.Contains(got, "STREX_FAIL_SPEC") != c.a72 {
			t.Errorf("%s: %q", name, got)
		}
		for _, want := range []string{"cycles", "page-faults"} {
			if !slices.Contains(got, want) {
				t.Errorf("%s: no %s in %q", name, want, got)
			}
		}
	}
}

func FuzzEventsOf(f *testing.F) {
	f.Add([]byte("CPU implementer\t: 0x41\nCPU part\t: 0xd08\n"))
	f.Add([]byte(":\n::CPU part"))
	f.Fuzz(func(t *testing.T, cpuinfo []byte) {
		if n := len(EventsOf(cpuinfo)); n < len(Software)+len(Hardware) {
			t.Fatalf("%d events", n)
		}
	})
}

// TestScaling: an event counted for a share of the time is scaled to all of it,
// and one never counted is no number.
func TestScaling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := raw{
			value:   rapid.Uint64Range(0, 1<<40).Draw(t, "value before"),
			enabled: rapid.Uint64Range(0, 1<<40).Draw(t, "enabled before"),
		}
		from.running = rapid.Uint64Range(0, from.enabled).Draw(t, "running before")
		running := rapid.Uint64Range(1, 1<<30).Draw(t, "running")
		turns := rapid.Uint64Range(1, 8).Draw(t, "turns") // events that share the counter
		value := rapid.Uint64Range(0, 1<<40).Draw(t, "value")
		to := raw{from.value + value, from.enabled + running*turns, from.running + running}
		got, ok := to.since(from)
		if !ok || got.Value != float64(value)*float64(running*turns)/float64(running) || got.Running*float64(turns) < 1-1e-12 || got.Running > 1 {
			t.Fatalf("%+v, %v", got, ok)
		}
		to.running = from.running
		if c, ok := to.since(from); ok {
			t.Fatalf("an event that never ran counts %+v", c)
		}
	})
}
