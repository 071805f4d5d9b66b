// Package costs knows what a packet costs the host: nanoseconds of one core for
// receiving it and for each state operation of a state block. Costs are
// measured by Measure on the machine at hand, with reference implementations
// of the operations in Go, or given by a user in a file.
//
// A block's time is the sum of its operations' times. Operations of one packet
// that a processor would overlap are therefore counted one after the other.
package costs

import (
	"math"
	"slices"
	"strings"

	"nicprof/internal/fault"
)

// Schema is the version of the file that this build writes.
const Schema = "nicprof-host-costs/1"

// Kind is what a host does to state, or to a packet.
type Kind string

// Kinds of operations.
const (
	Packet   Kind = "packet"  // parse Ethernet, IPv4 and TCP, verify and update the header checksum, rewrite addresses
	Exact    Kind = "exact"   // look a key up in a hash table and read its data
	LPM      Kind = "lpm"     // longest prefix match of 32 bits
	Ternary  Kind = "ternary" // rules with masks in order of priority
	Read     Kind = "read"    // read a cell of an array
	Write    Kind = "write"   // write a cell
	Add      Kind = "add"     // atomic add to a cell
	Locked   Kind = "locked"  // lock an array's cell, read it, write it, unlock
	HashCall Kind = "hash"    // CRC-32 of a key
)

// Kinds lists the kinds that Measure measures.
var Kinds = []Kind{Packet, Exact, LPM, Ternary, Read, Write, Add, Locked, HashCall}

// Point is the time of one operation: KeyBytes of the key (look-ups, hashes),
// Bytes of the data (of an entry or cell), Entries of the table or array. Low
// and High are the quartiles of the windows measured.
type Point struct {
	Kind     Kind    `json:"kind" yaml:"kind"`
	KeyBytes int     `json:"key_bytes,omitempty" yaml:"key_bytes"`
	Bytes    int     `json:"bytes,omitempty" yaml:"bytes"`
	Entries  int64   `json:"entries,omitempty" yaml:"entries"`
	NS       float64 `json:"ns" yaml:"ns"`
	Low      float64 `json:"ns_low,omitempty" yaml:"ns_low"`
	High     float64 `json:"ns_high,omitempty" yaml:"ns_high"`
}

// Block is a block's time a visit as its user gives it: ns, or cycles of the
// file's clock.
type Block struct {
	NS     float64 `json:"ns,omitempty" yaml:"ns"`
	Cycles float64 `json:"cycles,omitempty" yaml:"cycles"`
}

// Costs is a costs file. Backend is native (measured on Machine) or given.
// ClockGHz is the clock at which the operations were measured, found by a chain
// of dependent instructions, and turns cycles into ns.
type Costs struct {
	Schema   string           `json:"schema" yaml:"schema"`
	Backend  string           `json:"backend" yaml:"backend"`
	Machine  string           `json:"machine,omitempty" yaml:"machine"`
	Version  string           `json:"version,omitempty" yaml:"version"`
	ClockGHz float64          `json:"clock_ghz,omitempty" yaml:"clock_ghz"`
	PacketNS float64          `json:"packet_ns,omitempty" yaml:"packet_ns"` // given: instead of a point of kind packet
	Points   []Point          `json:"points,omitempty" yaml:"points"`
	Blocks   map[string]Block `json:"blocks,omitempty" yaml:"blocks"` // by name of a block or of an object in it
	Notes    []string         `json:"notes,omitempty" yaml:"notes"`
}

// Op is Count operations of a kind a visit.
type Op struct {
	Kind     Kind
	KeyBytes int
	Bytes    int
	Entries  int64
	Count    float64
}

// Packet is the time to receive and send on a packet, ns.
func (c *Costs) Packet() (float64, error) {
	if c.PacketNS > 0 {
		return c.PacketNS, nil
	}
	return c.at(Op{Kind: Packet, Count: 1})
}

// Block is the time of one visit of a block, ns: what the file gives for its
// name, else for one of its objects, else the sum of its operations. A block
// that the file cannot tell is an input fault.
func (c *Costs) Block(name string, objects []string, ops []Op) (float64, error) {
	for _, n := range append([]string{name}, objects...) {
		if b, ok := c.Blocks[n]; ok {
			return b.NS + b.cyclesNS(c.ClockGHz), nil
		}
	}
	sum := 0.0
	for _, o := range ops {
		ns, err := c.at(o)
		if err != nil {
			return 0, fault.Inputf("block %s (%s): %w; add blocks: {%s: {ns: …}} to the host costs", name, strings.Join(objects, ", "), err, name)
		}
		sum += o.Count * ns
	}
	return sum, nil
}

func (b Block) cyclesNS(ghz float64) float64 {
	if b.Cycles == 0 {
		return 0
	}
	return b.Cycles / ghz
}

// at is the time of one operation: that of the points of its kind whose key and
// data are the smallest not below its own (else the largest), between two
// numbers of entries in proportion to their logarithm. Beyond the points the
// nearest one counts.
func (c *Costs) at(o Op) (float64, error) {
	var own []Point
	for _, p := range c.Points {
		if p.Kind == o.Kind {
			own = append(own, p)
		}
	}
	if len(own) == 0 {
		return 0, fault.Inputf("the host costs have no operation of kind %s", o.Kind)
	}
	own = sized(own, o.KeyBytes, func(p Point) int { return p.KeyBytes })
	own = sized(own, o.Bytes, func(p Point) int { return p.Bytes })
	slices.SortFunc(own, func(a, b Point) int { return int(a.Entries - b.Entries) })
	i := slices.IndexFunc(own, func(p Point) bool { return p.Entries >= o.Entries })
	switch {
	case i < 0:
		return own[len(own)-1].NS, nil
	case i == 0:
		return own[0].NS, nil
	}
	a, b := own[i-1], own[i]
	w := math.Log(float64(o.Entries)/float64(a.Entries)) / math.Log(float64(b.Entries)/float64(a.Entries))
	return a.NS + w*(b.NS-a.NS), nil
}

// sized keeps the points whose size is the smallest that holds want, or else
// the largest.
func sized(points []Point, want int, size func(Point) int) []Point {
	best := -1
	for _, p := range points {
		s := size(p)
		switch {
		case best < 0, s >= want && (best < want || s < best), best < want && s > best:
			best = s
		}
	}
	return slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return size(p) != best })
}
