package netif

import (
	"context"
	"errors"
	"strings"
	"testing"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/traffic"
)

func open(t *testing.T, name string) microbench.Driver {
	t.Helper()
	b, err := board.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	d, err := microbench.Open(b, "") // native is the default
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What these paths cannot do is refused before anything is set up.
func TestRefused(t *testing.T) {
	access := program.Access{Memory: "l1", Op: program.Read, Mode: program.Bulk, Bytes: 4, PerPacket: 1}
	for name, c := range map[string]struct {
		board   string
		program program.Program
		traffic traffic.Traffic
		options microbench.Options
		want    string
	}{
		"accesses":     {"veth", program.Program{Accesses: []program.Access{access}}, traffic.Traffic{}, microbench.Options{}, "nothing else"},
		"stateless":    {"veth", program.Program{Stateless: program.Stateless{"alu": 9}}, traffic.Traffic{}, microbench.Options{}, "nothing else"},
		"locks":        {"dpdk", program.Program{Locks: []program.Lock{{Name: "l", Elements: 1}}}, traffic.Traffic{}, microbench.Options{}, "nothing else"},
		"unknown base": {"veth", program.Program{Base: "netmap"}, traffic.Traffic{}, microbench.Options{}, "af_packet, af_xdp"},
		"cycles":       {"veth", program.Program{Base: "1200"}, traffic.Traffic{}, microbench.Options{}, "not a cycle count"},
		"two cores":    {"veth", program.Program{}, traffic.Traffic{}, microbench.Options{Cores: 2}, "cores"},
		"no rate":      {"veth", program.Program{}, traffic.Traffic{RateMpps: -1}, microbench.Options{}, "rate_mpps"},
		"no packet":    {"veth", program.Program{}, traffic.Traffic{RateMpps: 1e-6}, microbench.Options{}, "not one packet"},
		"too many":     {"veth", program.Program{}, traffic.Traffic{RateMpps: 1e6}, microbench.Options{TrialSeconds: 10}, "lower the rate"},
		"endless":      {"veth", program.Program{}, traffic.Traffic{}, microbench.Options{TrialSeconds: 1e9}, "expected 0"},
		"backwards":    {"veth", program.Program{}, traffic.Traffic{}, microbench.Options{TrialSeconds: -1}, "expected 0"},
		"profile":      {"veth", program.Program{}, traffic.Traffic{}, microbench.Options{Profile: true}, "profile"},
	} {
		_, err := open(t, c.board).Measure(t.Context(), c.program, c.traffic, c.options)
		if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an input fault that says %q", name, err, c.want)
		}
	}
}

func TestOnlyNative(t *testing.T) {
	b, err := board.Load("veth")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := microbench.Open(b, microbench.Emulated); fault.KindOf(err) != fault.Missing {
		t.Errorf("%v, want a missing fault", err)
	}
}

func TestInterruptedBeforeItBegins(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := open(t, "veth").Measure(ctx, program.Program{}, traffic.Traffic{}, microbench.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

// Every base of the boards has a route, and nothing else has.
func TestRoutes(t *testing.T) {
	for _, name := range []string{"veth", "dpdk"} {
		for _, b := range open(t, name).Board().Bases {
			if _, err := routeOf(b.Name); err != nil {
				t.Error(err)
			}
		}
	}
	for base, want := range map[string]route{
		"af_xdp":        {kernel: "af_xdp"},
		"veth-5tswap":   {device: "veth", mode: "5tswap"},
		"null-io-small": {device: "null", mode: "io", smallPages: true},
	} {
		if got, err := routeOf(base); err != nil || got != want {
			t.Errorf("%s: %+v, %v", base, got, err)
		}
	}
	for _, base := range []string{"", "null", "disk-io", "null-io-large", "null-io-small-small"} {
		if _, err := routeOf(base); fault.KindOf(err) != fault.Input {
			t.Errorf("%q: %v, want an input fault", base, err)
		}
	}
}

// trialsOf runs made-up trials.
func trialsOf(t *testing.T, r request, outcomes []outcome) microbench.Sample {
	t.Helper()
	var s microbench.Sample
	next := 0
	err := trials(t.Context(), r, &s, func(context.Context) (outcome, error) {
		o := outcomes[next%len(outcomes)]
		next++
		return o, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSummary(t *testing.T) {
	lossy := outcome{
		mpps: 1, offered: 1.5, dropped: 0.5, seconds: 0.1, latency: []int64{1000, 3000},
		packets: microbench.Packets{Sent: 150, Received: 100, Dropped: map[string]int64{causeRing: 40, causeSink: 10}},
		cpu:     map[string]float64{partForwarder: 500}, busy: map[string]float64{partForwarder: 1.2},
	}
	faster := lossy
	faster.mpps, faster.cpu = 1.1, map[string]float64{partForwarder: 300}
	s := trialsOf(t, request{trials: 4, precision: 0.001}, []outcome{lossy, faster})
	if s.Runs != 4 || abs(s.Mpps-1.05) > 1e-12 || !(s.Low < 1.05 && s.High > 1.05) || abs(s.OfferedMpps-1.5) > 1e-12 || abs(s.DroppedMpps-0.5) > 1e-12 {
		t.Errorf("%+v", s)
	}
	if s.CPUNS[partForwarder] != 400 || s.Utilisation[partForwarder] != 1 || s.Bottleneck != partForwarder || abs(s.DurationUS-4e5) > 1e-6 {
		t.Errorf("%+v", s)
	}
	if s.Packets.Sent != 600 || s.Packets.Dropped[causeSink] != 40 || s.Latency.P50 != 2 {
		t.Errorf("%+v, latency %+v", s.Packets, s.Latency)
	}
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "wider than asked") {
		t.Errorf("warnings %q", s.Warnings)
	}
}

// Trials that differ too much are refused, or marked where that is allowed.
func TestNoise(t *testing.T) {
	outcomes := []outcome{{mpps: 1, seconds: 0.1}, {mpps: 1.5, seconds: 0.1}, {mpps: 0.6, seconds: 0.1}}
	r := request{trials: 3, precision: 0.01}
	next := 0
	err := trials(t.Context(), r, new(microbench.Sample), func(context.Context) (outcome, error) {
		next++
		return outcomes[next-1], nil
	})
	if fault.KindOf(err) != fault.Check || !strings.Contains(err.Error(), "--allow-noise") {
		t.Errorf("%v, want a failed check", err)
	}
	nothing := func(context.Context) (outcome, error) { return outcome{seconds: 0.1}, nil }
	if err := trials(t.Context(), r, new(microbench.Sample), nothing); fault.KindOf(err) != fault.Check {
		t.Errorf("nothing forwarded: %v, want a failed check", err)
	}
	r.allowNoise = true
	if s := trialsOf(t, r, outcomes); len(s.Warnings) == 0 || !strings.Contains(s.Warnings[0], "too noisy") {
		t.Errorf("warnings %q", s.Warnings)
	}
}

// Equal trials end early; disturbed ones are repeated, but not for ever.
func TestTrialsEnd(t *testing.T) {
	good := outcome{mpps: 1, offered: 1, seconds: 0.1}
	if s := trialsOf(t, request{trials: 9, precision: 0.02}, []outcome{good}); s.Runs != fewestTrials || len(s.Warnings) != 0 || s.Bottleneck != partGenerator {
		t.Errorf("%+v", s)
	}
	bad := good
	bad.waited = 0.5
	if s := trialsOf(t, request{trials: 3, precision: 0.02}, []outcome{bad, good}); s.Runs != 3 || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "repeated") {
		t.Errorf("%+v", s)
	}
	if s := trialsOf(t, request{trials: 2, precision: 0.02}, []outcome{bad}); s.Runs != 2 || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "contended") {
		t.Errorf("%+v", s)
	}
}

// What a measurement must not hide is a warning of its sample.
func TestWarnings(t *testing.T) {
	o := outcome{mpps: 1, offered: 0.9, seconds: 0.1, packets: microbench.Packets{Due: 100, Sent: 90, Received: 88, Unaccounted: 1, Dropped: map[string]int64{causeRing: 1}}}
	r := request{trials: 1, traffic: traffic.Traffic{RateMpps: 1}}
	s := trialsOf(t, r, []outcome{o})
	for _, want := range []string{"1 of 90 packets sent are unaccounted for", "sent 90 of 100 packets in time"} {
		if !strings.Contains(strings.Join(s.Warnings, "\n"), want) {
			t.Errorf("no %q in %q", want, s.Warnings)
		}
	}
	o.packets = microbench.Packets{Due: 100, Sent: 100, Received: 100}
	if s := trialsOf(t, r, []outcome{o}); s.Bottleneck != "offered rate" || len(s.Warnings) != 0 {
		t.Errorf("%+v", s)
	}
}
