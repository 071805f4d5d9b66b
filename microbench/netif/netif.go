// Package netif drives boards of class netif: packet paths through a real
// network interface of this machine, measured natively. Board veth forwards
// between two veth pairs by AF_PACKET and AF_XDP, board dpdk by DPDK's testpmd
// over devices without hardware and over the same veth pairs.
package netif

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/traffic"
)

func init() { microbench.Register("netif", New) }

// New returns the driver of a board. There is only the native backend.
func New(b *board.Board, backend string) (microbench.Driver, error) {
	if backend != microbench.Native {
		return nil, fault.Missingf("board %s is an interface of a real machine: it has no %s backend; use --backend %s", b.Name, backend, microbench.Native)
	}
	return &driver{board: b}, nil
}

// driver lets one measurement in at a time: the threads of two would wait for
// each other.
type driver struct {
	board *board.Board
	mu    sync.Mutex
}

func (d *driver) Board() *board.Board { return d.board }

const (
	defaultTrial     = 300 * time.Millisecond
	longestTrial     = 5 * time.Minute
	defaultTrials    = 5
	fewestTrials     = 3 // before the interval may end a measurement
	defaultPrecision = 0.02
	warmUp           = 100 * time.Millisecond // at most a third of a trial
	// contended is the share of a trial in which its threads were ready and did
	// not run, beyond which the trial is repeated, as often as there are trials.
	contended = 0.1
	// noisy is the robust spread of the trials' rates, relative, beyond which
	// nothing is reported.
	noisy = 0.15
)

// request is a measurement, checked and with the defaults written out.
type request struct {
	program   program.Program
	traffic   traffic.Traffic
	trial     time.Duration
	trials    int
	precision float64
	seed      uint64

	allowNoise bool
}

// Measure forwards packets in trials of o.TrialSeconds (0: 0.3 s), after a
// short one that does not count, until the 95 % interval is within o.Precision
// (0: 2 %) or o.MaxRuns (0: 5) are done. Trials that differ too much are a
// failed check unless o.AllowNoise is set. Sample.Packets accounts for every
// packet; a loss below zero is a failed check, and one without a cause a
// warning, of which Packets.Check makes a failed check.
func (d *driver) Measure(ctx context.Context, p program.Program, t traffic.Traffic, o microbench.Options) (microbench.Sample, error) {
	r, err := d.request(p, t, o)
	if err != nil {
		return microbench.Sample{}, err
	}
	if err := ctx.Err(); err != nil {
		return microbench.Sample{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := microbench.Sample{
		Board: d.board.Name, Backend: microbench.Native, Status: microbench.StatusOK,
		Program: r.program, Traffic: r.traffic, Cores: 1, Seed: o.Seed,
	}
	if err := measure(ctx, r, &s); err != nil {
		return microbench.Sample{}, err
	}
	return s, nil
}

// request checks what is asked for. These paths forward and do nothing else.
func (d *driver) request(p program.Program, t traffic.Traffic, o microbench.Options) (request, error) {
	switch {
	case len(p.Accesses)+len(p.Locks)+len(p.Chain) > 0 || len(p.Stateless) > 0:
		return request{}, fault.Inputf("board %s forwards packets and does nothing else: a program with accesses, locks or stateless operations cannot run on it; measure it on board host", d.board.Name)
	case !(o.TrialSeconds >= 0 && o.TrialSeconds <= longestTrial.Seconds()):
		return request{}, fault.Inputf("a trial of %v s; expected 0 (%v) to %v", o.TrialSeconds, defaultTrial, longestTrial)
	case o.Profile:
		return request{}, fault.Inputf("board %s has no profile: where a packet's time goes inside the kernel is not measured", d.board.Name)
	}
	if err := d.board.Check(p, o.Cores, o.Threads); err != nil {
		return request{}, err
	}
	if err := t.Check().Err(); err != nil {
		return request{}, err
	}
	r := request{
		program: d.board.Resolve(p), traffic: t, seed: o.Seed,
		trial: defaultTrial, trials: o.MaxRuns, precision: o.Precision, allowNoise: o.AllowNoise,
	}
	known := false
	for _, b := range d.board.Bases {
		known = known || b.Name == r.program.Base
	}
	if !known {
		return request{}, fault.Inputf("base %q: board %s takes its packet paths, not a cycle count; it has %s", r.program.Base, d.board.Name, strings.Join(baseNames(d.board), ", "))
	}
	if o.TrialSeconds > 0 {
		r.trial = time.Duration(o.TrialSeconds * float64(time.Second))
	}
	if r.trials == 0 {
		r.trials = defaultTrials
	}
	if r.precision == 0 {
		r.precision = defaultPrecision
	}
	if packets := t.RateMpps * 1e6 * r.trial.Seconds(); t.RateMpps > 0 && packets < 1 {
		return request{}, fault.Inputf("not one packet in a trial of %v at %v Mpps; raise the rate or the trial's length", r.trial, t.RateMpps)
	} else if packets > math.MaxUint32 {
		return request{}, fault.Inputf("%.0f packets in a trial of %v; lower the rate or the trial's length", packets, r.trial)
	}
	return r, nil
}

func baseNames(b *board.Board) []string {
	var names []string
	for _, base := range b.Bases {
		names = append(names, base.Name)
	}
	return names
}

// warmUpTrial is the length of the trial that does not count.
func (r *request) warmUpTrial() time.Duration { return min(warmUp, r.trial/3) }

// route says what a base is made of: a forwarding program and, for DPDK, the
// device below it and its pages.
type route struct {
	kernel     string // af_packet or af_xdp, "" for DPDK
	device     string // null, ring or veth
	mode       string // of testpmd
	smallPages bool
}

// routeOf reads a base's name: af_packet, af_xdp, or DEVICE-MODE[-small].
func routeOf(base string) (route, error) {
	switch base {
	case "af_packet", "af_xdp":
		return route{kernel: base}, nil
	}
	parts := strings.Split(base, "-")
	r := route{smallPages: len(parts) == 3 && parts[2] == "small"}
	if len(parts) < 2 || len(parts) > 2 && !r.smallPages {
		return route{}, fault.Inputf("base %q: expected af_packet, af_xdp or DEVICE-MODE[-small], such as veth-io", base)
	}
	r.device, r.mode = parts[0], parts[1]
	switch r.device {
	case "null", "ring", "veth":
		return r, nil
	}
	return route{}, fault.Inputf("base %q: device %q is unknown; expected null, ring or veth", base, r.device)
}

// outcome is one trial.
type outcome struct {
	mpps, offered, dropped float64 // a second, million
	packets                microbench.Packets
	seconds                float64            // of offering packets
	latency                []int64            // ns, not sorted
	cpu                    map[string]float64 // ns a packet, by part
	busy                   map[string]float64 // share of the trial on a processor, by part
	waited                 float64            // share of the trial ready and not running, all threads
	warnings               []string
}

// limit names what held a trial back.
func (o *outcome) limit(rate float64) string {
	most, cause := int64(0), ""
	for _, c := range causes {
		if n := o.packets.Dropped[c.name]; n > most {
			most, cause = n, c.blame
		}
	}
	switch {
	case cause != "":
		return cause
	case rate > 0:
		return "offered rate"
	}
	return partGenerator
}

// Parts of a path, as samples name them.
const (
	partGenerator = "generator"
	partForwarder = "forwarder"
	partSink      = "sink"
	partSoftirq   = "softirq threads"
)

// Causes of a loss, by where the packet was last.
const (
	causeToForwarder = "cable to the forwarder"   // interface counters
	causeRing        = "forwarder's receive ring" // full: PACKET_STATISTICS, XDP_STATISTICS
	causeBuffers     = "forwarder's buffers"      // none free: XDP_STATISTICS
	causeTransmit    = "forwarder's transmit"     // not taken by the interface
	causeToSink      = "cable to the sink"        // interface counters
	causeSink        = "sink's receive ring"      // full: PACKET_STATISTICS
)

// causes says who is to blame: rings overflow because of who empties them.
var causes = []struct{ name, blame string }{
	{causeToForwarder, partForwarder},
	{causeRing, partForwarder},
	{causeBuffers, partForwarder},
	{causeTransmit, partForwarder},
	{causeToSink, partSink},
	{causeSink, partSink},
}

// millions is a rate in million a second.
func millions(n int64, seconds float64) float64 { return float64(n) / seconds / 1e6 }

func describe(p microbench.Packets) string {
	return fmt.Sprintf("%d of %d packets sent are unaccounted for, %d duplicated, %d damaged", p.Unaccounted, p.Sent, p.Duplicated, p.Damaged)
}
