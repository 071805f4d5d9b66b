// Package emulated is the driver of every emulated board: it runs an emulator
// in replications until the interval of the throughput is as narrow as asked.
package emulated

import (
	"context"
	"hash/fnv"
	"math"
	"strconv"
	"strings"

	"nicprof/board"
	"nicprof/emu"
	"nicprof/internal/stats"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// New returns the driver that measures a board by an emulator. waiting names
// the bottleneck when no resource is: all cores or contexts wait, and the
// latency of the path decides.
func New(b *board.Board, run emu.Run, waiting string) microbench.Driver {
	return &driver{board: b, run: run, waiting: waiting}
}

type driver struct {
	board   *board.Board
	run     emu.Run
	waiting string
}

func (d *driver) Board() *board.Board { return d.board }

const (
	level            = 0.95
	defaultPrecision = 0.005
	defaultRuns      = 8
	// A run that has not settled is repeated, longer, up to longestRun times
	// and longestTime.
	longestRun  = 16
	longestTime = 30 * sim.Millisecond
	// A trial of a given time has at least shortestTrial packets, to fill the
	// ingress buffer if the rate is too high, and at most longestTrial: some
	// seconds of work.
	shortestTrial = 6000
	longestTrial  = 200_000
	busy          = 0.85 // utilisation under which no resource is the bottleneck
	alwaysHeld    = 0.95 // of a lock
)

// Measure runs the emulator in independent replications until the 95 %
// interval of the throughput is within o.Precision of it or o.MaxRuns are done;
// then the sample carries a warning. At an offered rate with o.TrialSeconds each
// replication simulates that time, within bounds, settled or not.
func (d *driver) Measure(ctx context.Context, p program.Program, t traffic.Traffic, o microbench.Options) (microbench.Sample, error) {
	if err := d.board.Check(p, o.Cores, o.Threads); err != nil {
		return microbench.Sample{}, err
	}
	p = d.board.Resolve(p)
	base, err := d.board.Base(p.Base)
	if err != nil {
		return microbench.Sample{}, err
	}
	s := microbench.Sample{
		Board: d.board.Name, Backend: microbench.Emulated, Status: microbench.StatusOK,
		Program: p, Traffic: t, Cores: o.Cores, Threads: o.Threads, Seed: o.Seed,
	}
	if s.Cores == 0 {
		s.Cores = int(base.Cores.Value)
	}
	if s.Threads == 0 {
		s.Threads = int(base.Threads.Value)
	}
	if o.Precision == 0 {
		o.Precision = defaultPrecision
	}
	if o.MaxRuns == 0 {
		o.MaxRuns = defaultRuns
	}
	length := 1
	packets := 0 // the emulator's choice
	timed := o.TrialSeconds > 0 && t.RateMpps > 0
	if timed {
		packets = int(min(max(o.TrialSeconds*1e6*t.RateMpps, shortestTrial), longestTrial))
	}
	m := measurement{sample: &s, waiting: d.waiting, use: map[string]float64{}}
	for {
		run, err := d.run(ctx, d.board, p, t, emu.Config{
			Cores: o.Cores, Threads: o.Threads, Seed: replicationSeed(o.Seed, m.runs), Profile: o.Profile,
			Length: length, Packets: packets,
		})
		if err != nil {
			return microbench.Sample{}, err
		}
		batches := perPacket(run)
		e := sim.Steady(batches, level)
		if m.runs == 0 && !timed {
			m.findings = stats.InTime(rates(batches[e.Dropped:]))
			if (len(m.findings) > 0 || !e.Steady) && length < longestRun && run.Duration < longestTime/4 {
				length *= 4 // not settled: again, longer
				continue
			}
		}
		m.add(run, batches, e)
		if m.precise(o.Precision) || m.runs >= o.MaxRuns {
			break
		}
	}
	m.summarise(o.Precision)
	return s, nil
}

// replicationSeed gives each replication streams of its own.
func replicationSeed(seed uint64, run int) uint64 {
	if run == 0 {
		return seed
	}
	h := fnv.New64a()
	h.Write(strconv.AppendUint(strconv.AppendUint(nil, seed, 10), uint64(run), 10))
	return h.Sum64()
}

// measurement gathers replications.
type measurement struct {
	sample   *microbench.Sample
	waiting  string
	runs     int
	times    []float64 // µs a packet: steady-state mean of each replication
	first    sim.Estimate
	series   []float64 // Mpps of the steady batches in order
	findings []stats.Finding
	latency  []sim.Time
	use      map[string]float64
	order    []string
	duration sim.Time
	packets  int64
	dropped  int64
	outage   sim.Time
	profile  *microbench.Profile
}

// perPacket returns the time a packet of each batch, µs.
func perPacket(r *emu.Result) []float64 {
	times := make([]float64, len(r.Batches))
	for i, d := range r.Batches {
		times[i] = float64(d) / float64(sim.Microsecond) / float64(r.Batch)
	}
	return times
}

// rates inverts times.
func rates(times []float64) []float64 {
	mpps := make([]float64, len(times))
	for i, t := range times {
		mpps[i] = 1 / t
	}
	return mpps
}

func (m *measurement) add(r *emu.Result, batches []float64, e sim.Estimate) {
	m.series = append(m.series, rates(batches[e.Dropped:])...)
	if m.runs == 0 {
		m.first = e
	}
	m.times = append(m.times, e.Mean)
	m.runs++
	m.latency = append(m.latency, r.Latency...)
	for _, u := range r.Utilisation {
		if _, ok := m.use[u.Resource]; !ok {
			m.order = append(m.order, u.Resource)
		}
		m.use[u.Resource] += u.Value
	}
	m.duration += r.Duration
	m.packets += r.Packets
	m.dropped += r.Dropped
	m.outage += r.Outage
	m.addProfile(r)
}

// interval is that of the time a packet: by batch means within the first
// replication, by Student's t over them all.
func (m *measurement) interval() sim.Interval {
	if m.runs == 1 {
		return m.first.Interval
	}
	return sim.Replications(m.times, level)
}

func (m *measurement) precise(relative float64) bool {
	if m.runs == 1 && !m.first.Steady {
		return false
	}
	if m.runs == 2 { // the t quantile of one degree of freedom decides nothing
		return false
	}
	i := m.interval()
	return i.Half() <= relative*i.Mean
}

func (m *measurement) summarise(precision float64) {
	s := m.sample
	i := m.interval()
	// an interval that reaches a time of zero has no upper rate; a hundredfold
	// says as much
	s.Mpps, s.Low, s.High = 1/i.Mean, 1/i.High, 1/max(i.Low, i.Mean/100)
	s.Runs = m.runs
	s.DurationUS = float64(m.duration) / float64(sim.Microsecond)
	s.MedianMpps = stats.Median(m.series)
	s.Outliers = len(stats.Outliers(m.series))
	s.DroppedMpps = float64(m.dropped) / s.DurationUS
	s.OutageUS = float64(m.outage) / float64(m.runs) / float64(sim.Microsecond)
	s.Utilisation = make(map[string]float64, len(m.use))
	best := 0.0
	for _, name := range m.order {
		v := m.use[name] / float64(m.runs)
		if v == 0 {
			continue
		}
		s.Utilisation[name] = math.Round(v*1e4) / 1e4
		// a lock that is always held is why its spinners saturate an engine
		held := strings.HasPrefix(name, "lock.") && v > alwaysHeld
		if v > best || held {
			best, s.Bottleneck = v, name
		}
	}
	switch {
	case s.Traffic.RateMpps > 0 && m.dropped == 0:
		s.Bottleneck = "offered rate"
	case best < busy:
		s.Bottleneck = m.waiting
	}
	latency := make([]float64, len(m.latency))
	for i, l := range m.latency {
		latency[i] = float64(l) / float64(sim.Microsecond)
	}
	sorted := stats.Sorted(latency)
	s.Latency = microbench.Latency{P50: sorted.Percentile(50), P99: sorted.Percentile(99)}
	if !m.precise(precision) {
		s.Warnings = append(s.Warnings, "the interval is wider than asked after "+strconv.Itoa(m.runs)+" replications")
	}
	for _, f := range m.findings {
		s.Warnings = append(s.Warnings, f.Text)
	}
	s.Profile = m.profile
}

func (m *measurement) addProfile(r *emu.Result) {
	if r.Stacks == nil {
		return
	}
	if m.profile == nil {
		m.profile = &microbench.Profile{}
	}
	p := m.profile
	p.DurationNS += int64(r.Duration / sim.Nanosecond)
	p.Packets += r.Packets
	for i, st := range r.Stacks {
		if i == len(p.Stacks) {
			p.Stacks = append(p.Stacks, microbench.Stack{Frames: st.Frames})
		}
		p.Stacks[i].Packets += st.Visits
		p.Stacks[i].BusyNS += int64(st.Busy / sim.Nanosecond)
		p.Stacks[i].WaitNS += int64(st.Wait / sim.Nanosecond)
	}
}
