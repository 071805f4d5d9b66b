// Package microbench measures programs on boards: the Driver that a board
// implements, the Sample it returns, sweep plans, the crash-safe store, and
// the search for the no-drop rate.
package microbench

import (
	"context"
	"errors"

	"nicprof/board"
	"nicprof/program"
	"nicprof/traffic"
)

// Driver measures programs on one board with one backend. It may be called by
// several goroutines; a driver that owns a real machine lets one in at a time.
type Driver interface {
	Board() *board.Board
	// Measure runs p under t. It returns an input fault for a program or
	// options that the board cannot run, and ctx.Err() when interrupted. The
	// same arguments give the same sample where the backend is emulated. Index,
	// Key and Group of the sample are the caller's.
	Measure(ctx context.Context, p program.Program, t traffic.Traffic, o Options) (Sample, error)
}

// ErrLost is in the error of a driver whose board cannot be reached any more. A
// sweep stops at it and keeps what it has, to be resumed, where any other error
// is that of one workload.
var ErrLost = errors.New("the board cannot be reached any more")

// Located is a Driver that measures on another machine than this.
type Located interface {
	Driver
	Machine() Machine
}

// Options of one measurement.
type Options struct {
	Cores     int     `json:"cores,omitempty"`     // 0: all that the base uses
	Threads   int     `json:"threads,omitempty"`   // contexts a core, 0: the base's
	Seed      uint64  `json:"seed"`                // every random stream derives from it
	Precision float64 `json:"precision,omitempty"` // wanted half-width of the 95 % interval, relative; 0: 0.005
	MaxRuns   int     `json:"max_runs,omitempty"`  // most replications; 0: 8
	Profile   bool    `json:"profile,omitempty"`   // collect the Profile
	// TrialSeconds is how long packets are offered in one trial; 0: the driver's
	// choice. A native driver keeps to it; an emulated one comes as near as it
	// can afford, and Sample.DurationUS says how near.
	TrialSeconds float64 `json:"trial_seconds,omitempty"`
	// AllowNoise reports what a native driver measured on a machine too noisy,
	// marked by a warning, instead of refusing.
	AllowNoise bool `json:"allow_noise,omitempty"`
}

// Fairness says how evenly the cores of a native measurement were served: the
// slowest and the fastest core's packets, Mpps, and the longest wait for a lock,
// µs.
type Fairness struct {
	Least         float64 `json:"least_mpps"`
	Most          float64 `json:"most_mpps"`
	LongestWaitUS float64 `json:"longest_wait_us,omitempty"`
}

// Status of a sample.
const (
	StatusOK     = "ok"
	StatusFailed = "failed"
)

// Latency percentiles of one packet through the board, µs.
type Latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// Sample is one measurement. Throughput is in Mpps with a 95 % interval.
type Sample struct {
	Index       int                `json:"index"`
	Key         string             `json:"key"`   // unique in a plan, names the workload
	Group       string             `json:"group"` // stateless, single, pairs, locks, cores, skew, or "" outside a sweep
	Board       string             `json:"board"`
	Backend     string             `json:"backend"` // emulated, native, remote, imported
	Status      string             `json:"status"`  // ok, failed
	Reason      string             `json:"reason,omitempty"`
	Program     program.Program    `json:"program"`
	Traffic     traffic.Traffic    `json:"traffic"`
	Cores       int                `json:"cores"`
	Threads     int                `json:"threads,omitempty"`
	Mpps        float64            `json:"mpps"`
	Low         float64            `json:"mpps_low"`
	High        float64            `json:"mpps_high"`
	MedianMpps  float64            `json:"mpps_median"`
	DroppedMpps float64            `json:"dropped_mpps,omitempty"`
	OfferedMpps float64            `json:"offered_mpps,omitempty"` // really sent, where a generator may fall short; 0: as asked
	Latency     Latency            `json:"latency_us"`
	Utilisation map[string]float64 `json:"utilisation,omitempty"` // 0..1 by resource
	Bottleneck  string             `json:"bottleneck,omitempty"`
	Runs        int                `json:"runs"` // replications, or imported one-second samples
	Outliers    int                `json:"outliers,omitempty"`
	DurationUS  float64            `json:"duration_us"` // measured (simulated or real) time, all runs
	Seed        uint64             `json:"seed"`
	Warnings    []string           `json:"warnings,omitempty"`
	// CPUNS is the processor time by packet forwarded, ns, of each thread or
	// part that has a hand in it; their sum may exceed the inverse of the rate,
	// since they run side by side. Conditions are facts of the machine that the
	// result depends on, such as a tool's version. Packets accounts for packets
	// on a real interface.
	CPUNS      map[string]float64 `json:"cpu_ns,omitempty"`
	Conditions map[string]string  `json:"conditions,omitempty"`
	Packets    *Packets           `json:"packets,omitempty"`
	Fairness   *Fairness          `json:"fairness,omitempty"`
	Counters   map[string]float64 `json:"counters,omitempty"` // perf events by packet, user code only; one that is absent was not counted
	// EventsPerS are events that the board's own blocks counted, a second, over
	// the whole measurement, warm-up included.
	EventsPerS map[string]float64 `json:"events_per_s,omitempty"`
	// OutageUS is how long a chain served nothing because its region was being
	// configured, µs.
	OutageUS float64  `json:"outage_us,omitempty"`
	Profile  *Profile `json:"-"`
}

// Profile says where a packet's time goes: one Stack a path through the board.
type Profile struct {
	DurationNS int64
	Packets    int64
	Stacks     []Stack
}

// Stack is a path root first (program → access → memory → engine → bank) with
// its busy and waiting time, ns over the whole measurement.
type Stack struct {
	Frames  []string
	Packets int64
	BusyNS  int64
	WaitNS  int64
}
