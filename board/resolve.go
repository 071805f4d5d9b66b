package board

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"nicprof/internal/config"
	"nicprof/program"
	"nicprof/traffic"
)

// maxBaseCycles bounds a base that is given as a cycle count: at 800 MHz it is
// a hundred packets a second and core.
const maxBaseCycles = 8_000_000

// DefaultPacketBytes is the packet size of a program that gives none.
const DefaultPacketBytes = 64

// Base returns the base program of that name; "" is the board's first. A name
// that is a number is a base of that many issue cycles, with the packet I/O of
// the first base and no memory demand of its own.
func (b *Board) Base(name string) (Base, error) {
	if name == "" {
		return b.Bases[0], nil
	}
	var have []string
	for _, base := range b.Bases {
		if base.Name == name {
			return base, nil
		}
		have = append(have, base.Name)
	}
	cycles, err := strconv.Atoi(name)
	if err != nil || cycles < 1 || cycles > maxBaseCycles {
		var f config.Findings
		f.Add("base", "board %s has no base %q; it has %s, or a cycle count of 1..%d", b.Name, name, strings.Join(have, ", "), maxBaseCycles)
		return Base{}, f.Err()
	}
	base := b.Bases[0]
	base.Name, base.Text = name, "given as a cycle count"
	base.Cycles = Num{Value: float64(cycles), Unit: "cycles", Source: "given by the user", Confidence: "H"}
	base.Demand = nil
	return base, nil
}

// Resolve returns the program with the board's defaults written out: base,
// packet size, flows, lock idioms, and the span (as far as the memory holds it)
// and stride of each access. It leaves alone what the board does not know (Check names it).
func (b *Board) Resolve(p program.Program) program.Program {
	if p.Base == "" {
		p.Base = b.Bases[0].Name
	}
	if p.PacketBytes == 0 {
		p.PacketBytes = DefaultPacketBytes
	}
	if p.Flows == nil {
		p.Flows = &traffic.Flows{Count: 1}
	}
	base, _ := b.Base(p.Base)
	resolve := func(list []program.Access) []program.Access {
		list = slices.Clone(list)
		for i := range list {
			b.resolveAccess(&list[i], base.Index)
		}
		return list
	}
	p.Accesses = resolve(p.Accesses)
	p.Locks = slices.Clone(p.Locks)
	for i := range p.Locks {
		if p.Locks[i].Idiom == "" {
			p.Locks[i].Idiom = program.Spin
		}
		p.Locks[i].Section = resolve(p.Locks[i].Section)
	}
	return p
}

// resolveAccess fills in span and stride. A base that takes one element a
// packet (Index "packet") keeps its arrays as the published rooflines were
// measured: elements 128 B apart up to 8192 of them, 32 B apart above (Vela's
// microbenchmark). Otherwise elements are packed, each on a power of two. In a
// cache level the default is a working set, DefaultSpan elements DefaultStride
// bytes apart: elements further apart are fewer.
func (b *Board) resolveAccess(a *program.Access, index string) {
	m := b.Memory(a.Memory)
	if m == nil {
		return
	}
	if a.Popularity == "uniform" {
		a.Popularity = ""
	}
	byDefault := a.Span == 0
	if byDefault {
		a.Span = m.DefaultSpan
	}
	if a.Stride == 0 {
		switch {
		case index == "packet" && a.Span <= 8192:
			a.Stride = 128
		case index == "packet":
			a.Stride = 32
		default:
			a.Stride = max(m.DefaultStride, 1<<bits.Len64(uint64(max(a.Bytes, 1)-1)))
		}
	}
	if !byDefault {
		return
	}
	if m.SharedBy.Value > 0 && m.DefaultStride > 0 {
		a.Span = a.Span * m.DefaultStride / a.Stride
	}
	a.Span = max(1, min(a.Span, m.span(*a)))
}

// span returns how many of the access's elements the memory holds.
func (m *Memory) span(a program.Access) int64 { return (m.Bytes-int64(a.Bytes))/a.Stride + 1 }
