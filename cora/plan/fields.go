package plan

import (
	"fmt"
	"slices"
	"strings"

	"nicprof/cora/frontend"
	"nicprof/p4/ir"
	"nicprof/traffic"
	"nicprof/traffic/capture"
)

// fieldMap says where the header fields of a program lie in a packet. Programs
// name headers as they like; a header is known by its shape and by the one that
// its parser extracts before it.
type fieldMap struct {
	at   map[*ir.Var]traffic.Field // fields, and valid bits (0 bits)
	lost map[string]bool           // headers that no layer describes
}

// shapes are the widths of the fields that tell a layer: the first ones, and all
// bits together.
var shapes = []struct {
	layer  capture.Layer
	before []capture.Layer
	bits   int
	first  []int // widths of the first fields, 0: any
}{
	{capture.IPv4, lower, 160, nil},
	{capture.IPv6, lower, 320, nil},
	{capture.VLAN, lower, 32, []int{3, 1, 12}},
	{capture.VLAN, lower, 32, []int{16}},
	{capture.MPLS, lower, 32, []int{20}},
	{capture.TCP, upper, 160, []int{16, 16}},
	{capture.UDP, upper, 64, []int{16, 16, 16}},
	{capture.SCTP, upper, 96, []int{16, 16, 32}},
	{capture.ICMP, upper, 64, []int{8, 8}},
	{capture.ICMP, upper, 32, []int{8, 8}},
}

var (
	lower = []capture.Layer{capture.Ethernet, capture.VLAN, capture.VLAN2, capture.MPLS}
	upper = []capture.Layer{capture.IPv4, capture.IPv6}
)

// place is where a parser is in a packet: behind which layer, and behind how
// many bits of what that layer carries.
type place struct {
	layer  capture.Layer
	offset int
}

// mapFields follows the parser from its start and places every header that it
// extracts. Of a header that is extracted in several places the first counts.
func mapFields(p *ir.Program) *fieldMap {
	m := &fieldMap{at: map[*ir.Var]traffic.Field{}, lost: map[string]bool{}}
	type item struct {
		instr int
		at    place
	}
	seen := map[item]bool{}
	queue := []item{{0, place{layer: capture.Frame}}}
	for len(queue) > 0 {
		it := queue[0]
		queue = queue[1:]
		if seen[it] {
			continue
		}
		seen[it] = true
		in := p.Code[it.instr]
		if in.Stage >= len(p.Stages) || p.Stages[in.Stage].Kind != ir.Parser {
			if in.Op != ir.Nop && in.Op != ir.Assign {
				continue
			}
		}
		at := it.at
		if in.Op == ir.Extract {
			at = m.extract(in, at)
		}
		for _, e := range in.Succ {
			queue = append(queue, item{e.To, at})
		}
	}
	return m
}

// extract places the fields of a header and returns where the parser is then.
func (m *fieldMap) extract(in *ir.Instr, at place) place {
	var fields []*ir.Var
	var valid *ir.Var
	bits := 0
	for _, d := range in.Defs {
		switch d.Var.Kind {
		case ir.HeaderField:
			fields = append(fields, d.Var)
			bits += d.Var.Bits
		case ir.Validity:
			valid = d.Var
		}
	}
	if len(fields) == 0 {
		return at // what the hardware puts before the packet
	}
	layer, known := layerOf(fields, bits, at)
	offset := 0
	next := place{layer: layer}
	if !known {
		// what a layer carries: behind TCP, UDP and others its payload, behind an
		// EtherType of its own what is not IP
		switch {
		case slices.Contains(lower, at.layer):
			layer, offset = capture.NonIP, 16
		case at.layer == capture.NonIP || at.layer == capture.Payload:
			layer, offset = at.layer, at.offset
		default:
			layer = capture.Payload
		}
		next = place{layer, offset + bits}
	}
	if valid != nil {
		if _, twice := m.at[valid]; !twice && known {
			m.at[valid] = traffic.Field{Layer: layer}
		}
	}
	for _, v := range fields {
		if _, twice := m.at[v]; !twice {
			m.at[v] = traffic.Field{Layer: layer, Offset: offset, Bits: v.Bits}
		}
		offset += v.Bits
	}
	return next
}

func layerOf(fields []*ir.Var, bits int, at place) (capture.Layer, bool) {
	if at.layer == capture.Frame {
		return capture.Ethernet, bits == 112
	}
	for _, s := range shapes {
		if s.bits != bits || !slices.Contains(s.before, at.layer) || len(fields) < len(s.first) {
			continue
		}
		fits := true
		for i, w := range s.first {
			fits = fits && fields[i].Bits == w
		}
		if !fits {
			continue
		}
		if s.layer == capture.VLAN && at.layer == capture.VLAN {
			return capture.VLAN2, true
		}
		return s.layer, true
	}
	return 0, false
}

// key turns a flow group into the key that tells its members apart in traffic.
// Fields that no packet carries (the port a packet came in by, headers that the
// parser does not extract) are left out and named.
func (m *fieldMap) key(g frontend.Group) (k traffic.Key, missing []string) {
	for _, f := range g.Fields {
		at, ok := m.at[f.Var]
		if !ok {
			missing = append(missing, f.Var.Name)
			continue
		}
		if f.Var.Kind == ir.HeaderField {
			at.Offset += f.Var.Bits - 1 - f.Hi
			at.Bits = f.Hi - f.Lo + 1
		}
		k = append(k, at)
	}
	return k, missing
}

// bitsOf is how many values a group may have at most, as a number of bits.
func bitsOf(k traffic.Key) int {
	n := 0
	for _, f := range k {
		n += max(f.Bits, 1)
	}
	return n
}

// same names a key for comparison.
func same(k traffic.Key) string {
	fields := make([]string, len(k))
	for i, f := range k {
		fields[i] = fmt.Sprint(f)
	}
	slices.Sort(fields)
	return strings.Join(fields, "|")
}
