// Package system turns a plan into what both levels of Cora's emulation run: the
// programs of the NIC, one for each way that a packet takes, what packets cost
// the host's cores, and the flows whose state the runtime moves.
//
// One set of blocks is managed: the partitionable blocks under the key of the
// largest table that the plan puts on the NIC (a connection table and its direct
// counters), whose groups are the runtime's flows. All other blocks stay where
// the plan has them. A packet goes to the host at the first block that is there,
// and what follows on the NIC is done when it comes back: the load counters of
// Cora's section 8.1. It crosses once each way; a plan that would have it cross
// more often is run as if the blocks between could wait.
package system

import (
	"fmt"
	"math"
	"slices"

	"nicprof/board"
	"nicprof/cora/frontend"
	"nicprof/cora/partition"
	"nicprof/cora/plan"
	"nicprof/cora/runtime"
	"nicprof/internal/fault"
	"nicprof/p4/ir"
	"nicprof/program"
	"nicprof/traffic"
)

// Side is where a flow's state is.
type Side int

// Sides.
const (
	NIC Side = iota
	Host
)

// None stands for no program.
const None = -1

// Route is what happens to a packet: the NIC runs Out when it comes from the
// wire. If it visits the host, a core takes HostNS for it, and the NIC runs In
// when it comes back; with In None it ends on the host.
type Route struct {
	Out, In int
	Host    bool
	HostNS  float64
}

// Path is packets that visit the same blocks. Managed ones visit the managed
// blocks and take the route of the side where their flow is; the others take
// Routes[NIC] always.
type Path struct {
	Share   float64
	Managed bool
	Routes  [2]Route
}

// System is a plan ready to run. Its programs are resolved against the board and
// have passed its check.
type System struct {
	Board    *board.Board
	Programs []program.Program
	Control  int // the program of a control message
	Paths    []Path
	Shares   []float64 // of the managed packets, by flow
	Mpps     float64   // that the traffic offers
	Bytes    float64   // mean frame
	OnNIC    []bool    // by flow: where the plan puts it
	Entries  uint32    // flows that the NIC may hold
	PacketNS float64   // the host's time for a packet that it only passes on, or a message
	Managed  []string  // names of the managed blocks
	Notes    []string
}

// Placement is where a plan puts blocks: Memory by block (partition.Host or an
// index into the problem's memories), OnNIC by block and group.
type Placement struct {
	Memory []int
	OnNIC  [][]bool
}

// Of returns a plan's placement.
func Of(p *partition.Plan) Placement {
	var out Placement
	for _, b := range p.Blocks {
		m := b.Memory
		if b.Groups == 0 {
			m = partition.Host
		}
		out.Memory, out.OnNIC = append(out.Memory, m), append(out.OnNIC, b.OnNIC)
	}
	return out
}

// AllHost is the placement of everything on the host.
func AllHost(p *partition.Problem) Placement {
	var out Placement
	for range p.Blocks {
		out.Memory, out.OnNIC = append(out.Memory, partition.Host), append(out.OnNIC, nil)
	}
	return out
}

// Options of New.
type Options struct {
	// PacketIONS is the host's time to receive and send a packet beyond the
	// problem's, ns: the stored costs have no packet I/O.
	PacketIONS float64

	// Whole has a flow that is on the host visit all its blocks there, as the flow
	// strategy does.
	Whole bool
}

type maker struct {
	*System
	o       Options
	built   *plan.Built
	place   Placement
	managed []bool // by block
	lookup  int    // block of the table that a missed look-up reads, -1: none
	made    map[string]int
}

// New makes a system of a placement.
func New(b *board.Board, built *plan.Built, place Placement, o Options) (*System, error) {
	p := built.Problem
	m := &maker{
		System: &System{Board: b, Mpps: built.Mpps, Bytes: built.Bytes, PacketNS: p.HostPacketNS + o.PacketIONS},
		o:      o, built: built, place: place, managed: make([]bool, len(p.Blocks)), lookup: -1, made: map[string]int{},
	}
	m.manage()
	for i, path := range built.Mix.Paths {
		if path.Share > 0 {
			m.path(i, p.Paths[i], path.Share)
		}
	}
	if len(m.Paths) == 0 {
		return nil, fault.Inputf("no packet takes any path of the program")
	}
	m.Control = m.control()
	for i := range m.Programs {
		m.Programs[i] = b.Resolve(m.Programs[i])
		if err := b.Check(m.Programs[i], 0, 0); err != nil {
			return nil, err
		}
	}
	return m.System, nil
}

// manage chooses the managed blocks, their flows, and how many the NIC may hold.
func (m *maker) manage() {
	p := m.built.Problem
	pivot := -1
	for i, b := range p.Blocks {
		if b.Partitionable && m.built.Blocks[i].Key >= 0 && b.HostOnly == "" && m.place.Memory[i] != partition.Host &&
			(pivot < 0 || b.Elements > p.Blocks[pivot].Elements || b.Elements == p.Blocks[pivot].Elements && b.Table && !p.Blocks[pivot].Table) {
			pivot = i
		}
	}
	if pivot < 0 {
		m.Shares, m.OnNIC = []float64{1}, []bool{true}
		return
	}
	table := &p.Blocks[pivot]
	for i, b := range p.Blocks {
		if b.Partitionable && m.place.Memory[i] != partition.Host && m.built.Blocks[i].Key == m.built.Blocks[pivot].Key && b.Elements == table.Elements {
			m.managed[i] = true
			m.Managed = append(m.Managed, b.Name)
			if b.Table && m.lookup < 0 {
				m.lookup = i
			}
		}
	}
	groups := m.built.Volumes.Keys[m.built.Blocks[pivot].Key]
	total := 0.0
	for _, v := range groups.Packets {
		total += v
	}
	m.Shares = make([]float64, groups.N())
	for g, v := range groups.Packets {
		m.Shares[g] = v / total
	}
	m.OnNIC = make([]bool, groups.N())
	copy(m.OnNIC, m.place.OnNIC[pivot])
	m.Entries = uint32(min(m.capacity(), math.MaxInt32))
}

// capacity is how many flows the NIC may hold: what the table declares, what the
// tables of the NIC have together, and what the memories have left.
func (m *maker) capacity() int64 {
	p := m.built.Problem
	most := int64(math.MaxInt64)
	left := make([]int64, len(p.Memories))
	each := make([]int64, len(p.Memories)) // bytes a flow
	for i, mem := range p.Memories {
		left[i] = mem.Bytes
	}
	entries, eachEntries := p.TableEntries, int64(0)
	for i, b := range p.Blocks {
		mem := m.place.Memory[i]
		if mem == partition.Host {
			continue
		}
		per := max(1, b.EntriesPerGroup)
		if m.managed[i] {
			each[mem] += per * b.EntryBytes
			if b.Table {
				eachEntries += per
			}
			if b.MaxEntries > 0 {
				most = min(most, b.MaxEntries/per)
			}
			continue
		}
		n := max(b.Elements, 1)
		if b.Partitionable {
			n = 0
			for _, on := range m.place.OnNIC[i] {
				if on {
					n += per
				}
			}
		}
		left[mem] -= n * b.EntryBytes
		if b.Table {
			entries -= n
		}
	}
	if p.TableEntries > 0 && eachEntries > 0 {
		most = min(most, max(0, entries)/eachEntries)
	}
	for i := range left {
		if each[i] > 0 {
			most = min(most, max(0, left[i])/each[i])
		}
	}
	return most
}

// path adds the routes of a path; a block that the plan splits and the runtime
// does not move divides it in two, as if groups were on a path by chance.
func (m *maker) path(index int, path partition.Path, share float64) {
	sides := make([]Side, len(path.Blocks))
	m.divide(index, path, share, sides, 0)
}

func (m *maker) divide(index int, path partition.Path, share float64, sides []Side, at int) {
	for ; at < len(path.Blocks); at++ {
		b := path.Blocks[at]
		sides[at] = NIC
		if m.place.Memory[b] == partition.Host {
			sides[at] = Host
			continue
		}
		if m.managed[b] || !m.built.Problem.Blocks[b].Partitionable {
			continue
		}
		on := m.onNIC(b)
		if on > 0 && on < 1 {
			m.note("block %s is split and not moved: %.3g of its packets find it on the NIC", m.built.Problem.Blocks[b].Name, on)
			m.divide(index, path, share*on, slices.Clone(sides), at+1)
			sides[at], share = Host, share*(1-on)
		} else if on == 0 {
			sides[at] = Host
		}
	}
	out := Path{Share: share}
	for _, b := range path.Blocks {
		out.Managed = out.Managed || m.managed[b]
	}
	for side := range out.Routes {
		out.Routes[side] = m.route(path, sides, Side(side))
	}
	m.Paths = append(m.Paths, out)
}

// onNIC is the share of a block's packets whose group is on the NIC.
func (m *maker) onNIC(b int) float64 {
	v := m.built.Volumes.Keys[m.built.Blocks[b].Key].Packets
	on, all := 0.0, 0.0
	for g, n := range v {
		all += n
		if g < len(m.place.OnNIC[b]) && m.place.OnNIC[b][g] {
			on += n
		}
	}
	return on / all
}

// route is what happens to packets of a path whose flow is on a side.
func (m *maker) route(path partition.Path, sides []Side, side Side) Route {
	var before, after []int // blocks on the NIC
	r := Route{In: None, HostNS: m.PacketNS}
	missed := false
	for k, b := range path.Blocks {
		at := sides[k]
		if m.managed[b] && side == Host {
			at = Host
		}
		if m.managed[b] && side == Host && !r.Host && b == m.lookup {
			missed = true
		}
		if m.o.Whole && r.Host {
			at = Host
		}
		switch {
		case at == Host:
			r.Host = true
			r.HostNS += m.built.Problem.Blocks[b].HostNS
		case r.Host:
			after = append(after, b)
		default:
			before = append(before, b)
		}
	}
	if m.o.Whole && r.Host { // the whole flow is on the host
		for _, b := range before {
			r.HostNS += m.built.Problem.Blocks[b].HostNS
		}
		before, after = nil, nil
	}
	lookup := -1
	if missed {
		lookup = m.lookup
	}
	if path.End == partition.ToHost {
		r.Host = true
	}
	r.Out = m.program(before, lookup, true)
	if r.Host && path.End == partition.Wire {
		r.In = m.program(after, -1, false)
	}
	if !r.Host {
		r.HostNS = 0
	}
	return r
}

// program is what the NIC runs in one pass of a packet: blocks with all their
// accesses, the look-up of a table that misses, and, when it comes from the wire,
// the stateless operations of every packet.
func (m *maker) program(blocks []int, lookup int, fromWire bool) int {
	key := fmt.Sprint(blocks, lookup, fromWire)
	if i, ok := m.made[key]; ok {
		return i
	}
	p := program.Program{Stateless: program.Stateless{}, PacketBytes: int(math.Round(m.Bytes))}
	if fromWire {
		for kind, n := range m.built.Mix.Stateless {
			p.Stateless[kind] = n
		}
	}
	for _, b := range blocks {
		m.visit(&p, b)
	}
	if lookup >= 0 {
		m.look(&p, lookup)
	}
	for kind, n := range p.Stateless {
		if n == 0 {
			delete(p.Stateless, kind)
		}
	}
	i := len(m.Programs)
	m.Programs = append(m.Programs, p)
	m.made[key] = i
	return i
}

// visit adds a block's accesses, lock and stateless operations to a program.
func (m *maker) visit(p *program.Program, b int) {
	v := &m.built.Mix.Blocks[b]
	for kind, n := range v.Stateless {
		p.Stateless[kind] += n
	}
	var section []program.Access
	for _, a := range v.Accesses {
		if a.Locked {
			section = append(section, m.access(a, b))
		} else {
			p.Accesses = append(p.Accesses, m.access(a, b))
		}
	}
	if v.Lock != nil {
		p.Locks = append(p.Locks, program.Lock{
			Name: m.built.Problem.Blocks[b].Name, Elements: int(min(v.Lock.Elements, math.MaxInt32)), Hash: v.Lock.Hash, Section: section,
		})
	}
}

// look adds the look-up of a block's tables.
func (m *maker) look(p *program.Program, b int) {
	v := &m.built.Mix.Blocks[b]
	p.Stateless[program.Hash] += v.Stateless[program.Hash]
	for _, a := range v.Accesses {
		if a.Object.Kind == ir.Table && a.Op == program.Read {
			p.Accesses = append(p.Accesses, m.access(a, b))
		}
	}
}

// access is a block's access in its memory, over the elements that may be there.
func (m *maker) access(a frontend.Access, b int) program.Access {
	out := a.In(m.built.Problem.Memories[m.place.Memory[b]].Name, 1)
	if block := &m.built.Problem.Blocks[b]; block.Partitionable && block.Groups > 0 {
		out.Span = min(max(1, out.Span), int64(block.Groups))
	}
	return out
}

// control is what the NIC runs for a control message: it looks the entry up and
// writes it.
func (m *maker) control() int {
	i := m.program(nil, m.lookup, false)
	if m.lookup < 0 {
		return i
	}
	p := m.Programs[i]
	p.Accesses = slices.Clone(p.Accesses)
	for _, a := range p.Accesses {
		a.Op = program.Write
		p.Accesses = append(p.Accesses, a)
	}
	m.Programs = append(m.Programs, p)
	return len(m.Programs) - 1
}

func (m *maker) note(format string, a ...any) {
	if s := fmt.Sprintf(format, a...); !slices.Contains(m.Notes, s) {
		m.Notes = append(m.Notes, s)
	}
}

// HostShare is the share of all packets that visit the host when flows are where
// onNIC says.
func (s *System) HostShare(onNIC []bool) float64 {
	on := 0.0
	for f, share := range s.Shares {
		if onNIC[f] {
			on += share
		}
	}
	total, all := 0.0, 0.0
	for _, p := range s.Paths {
		all += p.Share
		by := [2]float64{on, 1 - on}
		if !p.Managed {
			by = [2]float64{1, 0}
		}
		for side, r := range p.Routes {
			if r.Host {
				total += p.Share * by[side]
			}
		}
	}
	return total / all
}

// Runtime returns options of the runtime for the system, with the constants of
// runtime.Defaults.
func (s *System) Runtime() runtime.Options {
	o := runtime.Defaults()
	o.Entries = s.Entries
	o.Slots = max(uint32(len(s.Shares)), s.Entries)
	return o
}

// Phase is a stretch of a timeline: what changes at its start. Zero values leave
// things as they are.
type Phase struct {
	AtS     float64
	Mpps    float64
	Bytes   float64
	Entries uint32    // flows that the NIC may hold
	Shares  []float64 // of the managed packets, by flow
}

// Sampler draws flows by their shares.
func Sampler(shares []float64) traffic.Popularity {
	return traffic.Flows{Count: len(shares), Shares: shares}.Sampler()
}
