package netif

import (
	"context"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"

	"nicprof/internal/linux"
	"nicprof/microbench"
)

// mostBytes is the largest packet of a path, with its check sequence.
var mostBytes = map[string]int{"af_packet": 9216, "af_xdp": 1518}

// spareThreads is how many more threads than processors may run Go code while
// packets are timed, so that the threads with work of their own leave places to
// the others.
const spareThreads = 4

// measure runs the trials of a request.
func measure(ctx context.Context, r request, s *microbench.Sample) error {
	way, err := routeOf(r.program.Base)
	if err != nil {
		return err
	}
	if way.kernel == "" {
		return measureDPDK(ctx, way, r, s)
	}
	if err := checkSizes(r.program, r.traffic, mostBytes[way.kernel]); err != nil {
		return err
	}
	forward := newPacketForwarder
	if way.kernel == "af_xdp" {
		forward = newXDPForwarder
	}
	return overCables(ctx, r, s, forward)
}

// overCables runs trials in a lab with a forwarder.
func overCables(ctx context.Context, r request, s *microbench.Sample, forward newForwarder) error {
	allowed, err := linux.CPUs()
	if err != nil {
		return err
	}
	defer undisturbed()()
	c := place(allowed)
	x, err := newPath(r.program, r.traffic, r.seed, c, forward)
	if err != nil {
		return err
	}
	defer x.close()
	if _, err := x.trial(ctx, r.warmUpTrial(), warmUpRate(r)); err != nil {
		return err
	}
	s.Conditions = x.forwarder.conditions()
	s.Conditions["processors"] = c.String()
	s.Conditions["kernel"] = kernel()
	if len(allowed) == 1 {
		s.Warnings = append(s.Warnings, "one processor only: generator, forwarder and sink take turns")
	}
	return trials(ctx, r, s, func(ctx context.Context) (outcome, error) {
		return x.trial(ctx, r.trial, r.traffic.RateMpps)
	})
}

// warmUpRate is the rate of the trial that does not count; one too low for its
// time saturates.
func warmUpRate(r request) float64 {
	if r.traffic.RateMpps*1e6*r.warmUpTrial().Seconds() < 1 {
		return 0
	}
	return r.traffic.RateMpps
}

// undisturbed keeps the Go runtime and, as far as it may, other processes away
// from the trials. The function returned undoes it.
func undisturbed() func() {
	threads := runtime.GOMAXPROCS(runtime.NumCPU() + spareThreads)
	runtime.GC()
	percent := debug.SetGCPercent(-1)
	_, restore, _ := linux.RaiseAutogroup() // without the right to, the priority stays as it was
	return func() {
		restore()
		debug.SetGCPercent(percent)
		runtime.GOMAXPROCS(threads)
	}
}

// kernel is the release of the running kernel.
func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown"
	}
	return strings.TrimRight(string(u.Release[:]), "\x00")
}
