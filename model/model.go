// Package model is the fitted performance model of a board: the file others
// load, Predict and Explain. Emulators lie below it and cannot read it.
//
// Times are in µs, rates in Mpps (million packets a second) or Mops/s, so that
// a rate is the inverse of a time without a factor.
package model

import (
	"sync/atomic"

	"nicprof/program"
	"nicprof/traffic"
)

// Schema is the version this build writes.
const Schema = "nicprof-model/1"

// Value is a fitted number with its 95 % interval. Identified is false where
// the data cannot tell; then Value is what a prediction may use in its place (a
// bound, or the number that the fit stopped at) and Note says why.
type Value struct {
	Value      float64 `json:"value"`
	Low        float64 `json:"low,omitempty"`
	High       float64 `json:"high,omitempty"`
	Identified bool    `json:"identified"`
	Note       string  `json:"note,omitempty"`
}

// Rel returns the half-width of the interval relative to the value, 0 when
// there is none.
func (v Value) Rel() float64 {
	if !v.Identified || v.Value <= 0 || v.High <= v.Low {
		return 0
	}
	return (v.High - v.Low) / 2 / v.Value
}

// Quality is the goodness of a fit.
type Quality struct {
	N             int     `json:"n"`
	R2            float64 `json:"r2"`
	MAPE          float64 `json:"mape_pct"`     // mean absolute error of Mpps, per cent
	MaxPct        float64 `json:"max_pct"`      // largest
	HeldOutPct    float64 `json:"held_out_pct"` // mean, leave one intensity out
	Outliers      int     `json:"outliers"`
	ResidualScale float64 `json:"residual_scale"` // robust, of log residuals
}

// Roofline is one curve (t, o, m, s, span): 1/T = max(A + C·e^(−B/i)·i, i/Roof)
// with A in µs a packet, C in µs an access, B in accesses. Form eq2 has the
// queuing term of Cora's Eq. 2, eq1 is Eq. 1 with B = 0; a Roof that is not
// identified bounds nothing. CoreUS and MemUS keep the per-core cost and the
// memory's time apart.
type Roofline struct {
	Memory  string       `json:"memory"`
	Op      program.Op   `json:"op"`
	Mode    program.Mode `json:"mode"`
	Bytes   int          `json:"bytes"`
	Span    int64        `json:"span"`
	Stride  int64        `json:"stride"`
	Base    string       `json:"base"`
	Form    string       `json:"form"` // eq1, eq2: chosen by cross-validation
	A       Value        `json:"a_us"`
	B       Value        `json:"b"`
	C       Value        `json:"c_us"`
	Roof    Value        `json:"roof_mops"` // T_M of the access, Mops/s
	CoreUS  Value        `json:"core_us"`   // per-core time of one access (Dm), µs
	MemUS   Value        `json:"mem_us"`    // engine time of one access, µs (1/asymptotic roof)
	Quality Quality      `json:"quality"`
}

// Class is a kind of access: memory, operation and mode.
type Class struct {
	Memory string       `json:"memory"`
	Op     program.Op   `json:"op"`
	Mode   program.Mode `json:"mode"`
}

func (c Class) String() string { return c.Memory + "." + string(c.Op) + "." + string(c.Mode) }

// Engine is the (memory, mode) a class goes through, such as "emem.atomic".
func (c Class) Engine() string { return c.Memory + "." + string(c.Mode) }

// Memory is what the board's description says of a memory: its capacity, and
// what an access that leaves something out means.
type Memory struct {
	Name          string   `json:"name"`
	Bytes         int64    `json:"bytes"`
	LineBytes     int64    `json:"line_bytes"`
	Banks         int      `json:"banks"`
	BankBytes     int64    `json:"bank_bytes"` // interleave between banks
	CacheBytes    int64    `json:"cache_bytes,omitempty"`
	CacheLine     int64    `json:"cache_line_bytes,omitempty"`
	DefaultSpan   int64    `json:"default_span"`
	DefaultStride int64    `json:"default_stride,omitempty"`
	SharedBy      int      `json:"shared_by,omitempty"` // cores that share an array in it, 0: all
	Engines       []Engine `json:"engines"`
}

// Engine executes the commands of one mode; a larger access is several
// commands. Front names the pipeline that its commands pass: engines of one
// Front add their demands.
type Engine struct {
	Mode     program.Mode `json:"mode"`
	MaxBytes int          `json:"max_bytes"`
	Front    string       `json:"front"`
	Posted   []program.Op `json:"posted,omitempty"` // operations that nobody waits for
}

// Demand is the time of one packet on a resource.
type Demand struct {
	Resource string `json:"resource"`
	US       Value  `json:"us"`
}

// Base is a base program as fitted: CoreUS of one core a packet, WaitUS that a
// packet waits outside its core, AccessUS of one core a memory command, LockUS of one core a lock taken, the packet-I/O
// ceiling, and its own time on the memories' engines. BareMpps is its rate
// without any access.
type Base struct {
	Name      string   `json:"name"`
	Cores     int      `json:"cores"`
	Threads   int      `json:"threads"`
	PerPacket bool     `json:"index_per_packet"` // one element a packet and access line
	BareMpps  Value    `json:"bare_mpps"`
	IOMpps    Value    `json:"io_mpps"`
	CoreUS    Value    `json:"core_us"`
	WaitUS    Value    `json:"wait_us"`
	AccessUS  Value    `json:"access_us"`
	LockUS    Value    `json:"lock_us"`
	Demand    []Demand `json:"demand,omitempty"`
}

// OpCost is the core time of one stateless operation of a kind, µs.
type OpCost struct {
	Kind string `json:"kind"`
	US   Value  `json:"us"`
}

// Cost is what one command of a class and size demands, µs: of its engine's
// front, of one bank, of the addressed line, and, when it misses the cache, of
// the DRAM behind it and (MissFront) once more of the front. Same is its time on
// the front when it follows a command to the same line (0: no longer than any).
type Cost struct {
	Class
	Bytes     int   `json:"bytes"`
	Front     Value `json:"front_us"`
	Bank      Value `json:"bank_us"`
	Line      Value `json:"line_us"`
	Same      Value `json:"same_us"`
	Miss      Value `json:"miss_us"`
	MissFront Value `json:"miss_front_us"`
}

// Pair is the finding of a pair of classes: whether they share a bottleneck.
// The evidence is the mean absolute error, per cent, of both hypotheses over N
// pair samples on which they differ by more than the noise.
type Pair struct {
	A           Class   `json:"a"`
	B           Class   `json:"b"`
	Verdict     string  `json:"verdict"` // shared, disjoint, not decided
	N           int     `json:"n"`
	HarmonicPct float64 `json:"harmonic_error_pct"`
	MinPct      float64 `json:"min_error_pct"`
	Margin      float64 `json:"margin"` // worse error over better error
	Note        string  `json:"note,omitempty"`
}

// Verdicts of a Pair.
const (
	Shared     = "shared"
	Disjoint   = "disjoint"
	NotDecided = "not decided"
)

// Group is a leaf of the composition tree: engines whose accesses combine as a
// weighted harmonic mean. Between groups the slowest counts.
type Group struct {
	Name    string   `json:"name"`
	Engines []string `json:"engines"`
}

// Lock holds what was fitted of one lock idiom under one base. LockMpps is one
// lock's rate with an empty section, FreeMpps the same program's with the lock
// left out, Threads = FreeMpps/LockMpps (Eq. 6). Linear is the largest number
// of equally hit locks at which the rate still grows linearly. HoldUS is the
// part of the hold time that is neither a round trip nor the section.
type Lock struct {
	Idiom    program.Idiom `json:"idiom"`
	Base     string        `json:"base"`
	LockMpps Value         `json:"lock_mpps"`
	FreeMpps Value         `json:"free_mpps"`
	Threads  Value         `json:"n_thread"`
	Linear   int           `json:"linear_locks"`
	ErrorPct float64       `json:"error_pct"` // mean error of Eq. 6 over the scan
	HoldUS   Value         `json:"hold_us"`
}

// RuleError is a rule's error on samples left out of the fit, per cent.
type RuleError struct {
	Rule    string  `json:"rule"`
	N       int     `json:"n"`
	MeanPct float64 `json:"mean_pct"`
	P95Pct  float64 `json:"p95_pct"`
	MaxPct  float64 `json:"max_pct"`
	// Kinds has the same by kind of program, of run-to-completion boards: locks
	// are predicted worse than the rest.
	Kinds []KindError `json:"kinds,omitempty"`
}

// KindError is a rule's error on programs with locks that exclude, or without.
type KindError struct {
	Locks   bool    `json:"locks"`
	N       int     `json:"n"`
	MeanPct float64 `json:"mean_pct"`
	P95Pct  float64 `json:"p95_pct"`
}

// p95 is the error that 95 % of the held-out samples like a program stay below.
func (e *RuleError) p95(p *Program) float64 {
	for _, k := range e.Kinds {
		if k.Locks == Locked(p) {
			return k.P95Pct
		}
	}
	return e.P95Pct
}

// Locked says whether a program takes a lock that keeps others out.
func Locked(p *Program) bool {
	for i := range p.Locks {
		if p.Locks[i].Idiom != program.None {
			return true
		}
	}
	return false
}

// Model is the fitted model of a board. Build one with fit.Fit or Load; Predict
// may be called from several goroutines while nobody changes the fields.
type Model struct {
	Schema       string      `json:"schema"`
	Board        string      `json:"board"`
	BoardClass   string      `json:"class"`
	Backends     []string    `json:"backends"` // of the samples: emulated, native, remote, imported
	Suite        string      `json:"suite,omitempty"`
	Seed         uint64      `json:"seed"`
	Version      string      `json:"version"` // of the program that fitted
	Samples      int         `json:"samples"`
	ClockMHz     float64     `json:"clock_mhz,omitempty"`
	LinkGbps     float64     `json:"link_gbps,omitempty"`
	Memories     []Memory    `json:"memories"`
	Bases        []Base      `json:"bases"` // the first is the default
	Stateless    []OpCost    `json:"stateless"`
	Rooflines    []Roofline  `json:"rooflines"`
	Costs        []Cost      `json:"costs"`
	Queueing     Queueing    `json:"queueing"`
	Interference []Pair      `json:"interference"`
	Composition  []Group     `json:"composition"`
	Locks        []Lock      `json:"locks"`
	CoreLaw      *CoreLaw    `json:"core_law,omitempty"` // of run-to-completion cores
	Chains       *Chains     `json:"chains,omitempty"`   // of an sNIC, whose model is nothing else
	Rules        []RuleError `json:"rules"`
	DefaultRule  string      `json:"default_rule"`
	Quality      Quality     `json:"quality"` // of the default rule on the fitted samples
	Notes        []string    `json:"notes,omitempty"`

	idx atomic.Pointer[index]
}

// Traffic and Program are the arguments of Predict, as of Driver.Measure.
type (
	Program = program.Program
	Traffic = traffic.Traffic
)

// Queueing says how the resources' bounds meet. A core's contexts wait for each
// other CoreWait times as long as exponential service would make them, packets
// for packet I/O IOWait times as long, and all contexts at every other resource
// Wait times as long, 0..1; 0 is the hard bottleneck law. Latency is a command's
// round trip by memory.
// Depth is the number of commands that an engine has in flight: busy lines
// beyond it stay idle.
type Queueing struct {
	CoreWait   Value     `json:"core_wait"`
	IOWait     Value     `json:"io_wait"`
	Wait       Value     `json:"wait"`
	Latency    []Latency `json:"latency"`
	Depth      Value     `json:"depth"`        // commands in flight of an engine
	LockMemory string    `json:"lock_memory"`  // where lock words lie
	TestUS     Value     `json:"test_set_us"`  // engine time of one attempt at a lock
	SpinUS     Value     `json:"spin_loop_us"` // core time between two attempts
	TurnUS     Value     `json:"turn_us"`      // wait for the core by context ahead
}

// Latency is the round trip of a command, µs, and what a cache miss adds.
type Latency struct {
	Memory string `json:"memory"`
	US     Value  `json:"us"`
	MissUS Value  `json:"miss_us"`
}
