// Package program says what happens to one packet: the base program around
// it, stateless operations by kind, state accesses by memory, operation, mode
// and size, and locks. It knows nothing of boards; board.Check holds a program
// against one.
package program

import "nicprof/traffic"

// Op is a memory operation of an access.
type Op string

// Mode is the engine an access goes through.
type Mode string

// Idiom is the way a lock is taken.
type Idiom string

// Operations, modes and lock idioms. A sleep idiom is "sleep-CYCLES".
const (
	Read  Op = "read"
	Write Op = "write"
	Add   Op = "add"

	Bulk   Mode = "bulk"
	Atomic Mode = "atomic"

	Spin   Idiom = "spin"
	Ticket Idiom = "ticket"
	Mutex  Idiom = "mutex" // waiters sleep in the system; hosts only
	None   Idiom = "none"
)

// Access is a state access: PerPacket accesses of Bytes bytes to one of Span
// elements that lie Stride bytes apart. The zero Span and Stride mean the
// board's defaults (board.Resolve fills them in). Popularity says how the
// element is chosen: "" or "uniform", or "zipf" with exponent Alpha.
type Access struct {
	Memory     string  `json:"memory" yaml:"memory"`
	Op         Op      `json:"op" yaml:"op"`
	Mode       Mode    `json:"mode" yaml:"mode"`
	Bytes      int     `json:"bytes" yaml:"bytes"`
	PerPacket  float64 `json:"per_packet" yaml:"per_packet"`
	Span       int64   `json:"span,omitempty" yaml:"span,omitempty"`
	Stride     int64   `json:"stride,omitempty" yaml:"stride,omitempty"`
	Popularity string  `json:"popularity,omitempty" yaml:"popularity,omitempty"`
	Alpha      float64 `json:"alpha,omitempty" yaml:"alpha,omitempty"`
}

// Lock is an array of Elements locks, one of which every packet takes around
// the accesses of Section. Flow f takes element f mod Elements, or a random
// one when Hash is set.
type Lock struct {
	Name     string   `json:"name" yaml:"name"`
	Elements int      `json:"elements" yaml:"elements"`
	Idiom    Idiom    `json:"idiom,omitempty" yaml:"idiom,omitempty"`
	Hash     bool     `json:"hash,omitempty" yaml:"hash,omitempty"`
	Section  []Access `json:"section,omitempty" yaml:"section,omitempty"`
}

// Kinds of stateless operations, with the unit that Program.Stateless counts.
const (
	ALU      = "alu"      // plain arithmetic on header words
	Multiply = "multiply" // software multiply steps
	Hash     = "hash"     // slow software hash, one call
	Modulo   = "modulo"   // software modulo, one call
	Checksum = "checksum" // IPv4 header checksum, one header
	Header   = "header"   // one header added or removed
)

// Kinds lists the stateless kinds in the order tables print them.
var Kinds = []string{ALU, Multiply, Modulo, Hash, Checksum, Header}

// Stateless counts stateless operations per packet by kind. In YAML it is
// either a map or a plain count of ALU operations.
type Stateless map[string]float64

// Stage is one network task (NT) of an sNIC chain. A packet takes Cycles through
// it; it accepts one every II cycles (0: 1) and no more than Gbps (0: no limit).
// Without Cycles it is the NT that the board knows by that name. With Skip the
// packet passes it by.
type Stage struct {
	Name   string  `json:"name" yaml:"name"`
	Cycles int     `json:"cycles" yaml:"cycles"`
	II     int     `json:"ii,omitempty" yaml:"ii,omitempty"`
	Gbps   float64 `json:"gbps,omitempty" yaml:"gbps,omitempty"`
	Skip   bool    `json:"skip,omitempty" yaml:"skip,omitempty"`
}

// What Program.Configure may be.
const (
	ConfigureRegion = "pr"             // an idle region gets the chain
	ContextSwitch   = "context-switch" // the region runs a chain, which is stopped and saved first
)

// Program is what happens to one packet. Base names a board's base program
// ("forward", "profiling", "xdp", …) or is a cycle count ("1200").
type Program struct {
	Name        string         `json:"name,omitempty" yaml:"name,omitempty"`
	Base        string         `json:"base,omitempty" yaml:"base,omitempty"`
	PacketBytes int            `json:"packet_bytes,omitempty" yaml:"packet_bytes,omitempty"`
	Stateless   Stateless      `json:"stateless,omitempty" yaml:"stateless,omitempty"`
	Accesses    []Access       `json:"accesses,omitempty" yaml:"accesses,omitempty"`
	Locks       []Lock         `json:"locks,omitempty" yaml:"locks,omitempty"`
	Flows       *traffic.Flows `json:"flows,omitempty" yaml:"flows,omitempty"`

	// Of an sNIC. The chain's NTs run one after the other in one region, or with
	// Parallel side by side, a region each, and have Credits each (0: the
	// board's). Configure, "pr" or "context-switch", has its region configured
	// while packets come.
	Chain     []Stage `json:"chain,omitempty" yaml:"chain,omitempty"`
	Parallel  bool    `json:"parallel,omitempty" yaml:"parallel,omitempty"`
	Credits   int     `json:"credits,omitempty" yaml:"credits,omitempty"`
	Configure string  `json:"configure,omitempty" yaml:"configure,omitempty"`
}
