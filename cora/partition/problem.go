// Package partition splits an application between a SmartNIC and its host, as
// Cora's compiler does (section 6 of the paper): which state blocks go to the
// NIC, into which of its memories, and which of their elements stay there
// under the traffic at hand, so that the instructions left to the host,
// Σ V·φ·|I|, are fewest while the NIC keeps up, its memories and tables hold
// what they are given and PCIe carries what crosses it.
//
// A Problem is independent of P4, captures and boards. Solve returns a Plan by
// one of four strategies with a lower bound of the objective, Evaluate judges
// any assignment.
package partition

import (
	"math"

	"nicprof/internal/fault"
)

// Host is the memory index of a block that lies on the host alone.
const Host = -1

// Memory is a kind of memory of the NIC. Problems list memories in the order
// that a plan prefers when nothing else decides: fast to slow.
type Memory struct {
	Name  string
	Bytes int64 // capacity for the state of all blocks
}

// Block is a state block: objects that stay together, with the groups
// (elements, indices, entries) that traffic touches.
//
// |I| of the objective is Instructions. A Partitionable block may have some
// groups on the NIC and the others on the host; its groups on the NIC take
// EntriesPerGroup entries of EntryBytes each. A block with a random mapping (a
// sketch row) is not partitionable: all its traffic is one group, and it takes
// Elements entries wherever it lies.
type Block struct {
	Name            string
	Instructions    float64 // a visit, on the block's objects, control included
	Groups          int     // groups that the traffic touches: 0…Groups-1
	Elements        int64   // entries that the program declares, 0: as many as the groups take
	EntryBytes      int64   // bytes of one element or table entry on the NIC
	EntriesPerGroup int64   // entries that one group takes, 0: 1
	MaxEntries      int64   // entries that the NIC's copy may hold, 0: no limit of its own
	Partitionable   bool
	Table           bool // its entries count against Problem.TableEntries

	// HostOnly says why no part may be on the NIC (an instruction or extern
	// that it has not); "" when it may.
	HostOnly string

	// MaxGroupMpps is the highest rate of one group on the NIC by memory
	// (T_lock of a locked element), 0 or absent: no limit but the predictor's.
	// A memory with a negative rate cannot hold the block.
	MaxGroupMpps []float64

	// HostNS is the host's time a visit, ns of one core; 0: not known.
	HostNS float64

	each *each // of a union of blocks: what one group takes
}

// End is where a path leaves the NIC and host.
type End int

// Ends of paths. A packet always enters at the NIC.
const (
	Wire    End = iota // leaves by the NIC's wire
	ToHost             // is the host's: a server's request
	Dropped            // is dropped where the last block is
)

// Path is the order in which packets visit blocks.
type Path struct {
	Blocks []int
	End    End
}

// Class is traffic that visits the same groups in the same order: a flow, or
// one branch of a flow. Classes with equal paths and groups may be joined.
type Class struct {
	Mpps   float64
	Bytes  float64 // mean packet size, for PCIe
	Path   int     // index into Problem.Paths
	Groups []int32 // group touched at each step of the path
}

// Use is what the NIC runs of one block.
type Use struct {
	Memory  int     // index into Problem.Memories, or Host
	Share   float64 // visits on the NIC a packet
	Groups  int     // on the NIC
	Largest float64 // visits a packet of the largest of them
}

// Predictor is the NIC's performance model: the rate in Mpps that the NIC
// sustains when every packet passes it, the share of packets that use names
// executes each block (indexed as Problem.Blocks), and returns packets of each
// come back from the host, to be forwarded a second time; and what limits it.
// The rate must not rise when a share or returns rises or a block is added. use
// is only valid during the call.
type Predictor interface {
	Predict(use []Use, returns float64) (mpps float64, limit string, err error)
}

// Problem is one program under one traffic on one NIC.
type Problem struct {
	Blocks       []Block
	Memories     []Memory
	Paths        []Path
	Classes      []Class
	Together     [][]int // sets of blocks with the same groups that are placed as one: a group on one side, in one memory
	TableEntries int64   // of the NIC, all tables together; 0: no limit
	PCIeGbps     float64 // each way; 0: no limit
	TargetMpps   float64 // rate to sustain; the classes are scaled to it. 0: what they sum to
	HostPacketNS float64 // the host's time to receive and send a packet, ns of one core
	Predictor    Predictor
}

// maxBlocks bounds the placements that a plan has to choose from.
const maxBlocks = 24

// maxPath bounds the visits of one packet.
const maxPath = 64

// Check reports what is wrong with a problem.
func (p *Problem) Check() error {
	if len(p.Blocks) == 0 || len(p.Blocks) > maxBlocks {
		return fault.Inputf("%d state blocks; a plan takes 1 to %d", len(p.Blocks), maxBlocks)
	}
	if p.Predictor == nil {
		return fault.Inputf("no performance model of the NIC")
	}
	if p.TableEntries < 0 || !(p.PCIeGbps >= 0) || !(p.TargetMpps >= 0) || math.IsInf(p.TargetMpps, 0) {
		return fault.Inputf("table entries %d, PCIe %v Gb/s, target %v Mpps; expected 0 or more",
			p.TableEntries, p.PCIeGbps, p.TargetMpps)
	}
	for _, m := range p.Memories {
		if m.Bytes < 0 {
			return fault.Inputf("memory %s: %d bytes; expected 0 or more", m.Name, m.Bytes)
		}
	}
	for i := range p.Blocks {
		if err := p.checkBlock(&p.Blocks[i]); err != nil {
			return err
		}
	}
	for i, path := range p.Paths {
		if len(path.Blocks) > maxPath {
			return fault.Inputf("path %d has %d visits; at most %d", i, len(path.Blocks), maxPath)
		}
		for _, b := range path.Blocks {
			if b < 0 || b >= len(p.Blocks) {
				return fault.Inputf("path %d visits block %d; there are %d", i, b, len(p.Blocks))
			}
		}
	}
	if err := p.checkTogether(); err != nil {
		return err
	}
	return p.checkClasses()
}

func (p *Problem) checkBlock(b *Block) error {
	switch {
	case !(b.Instructions >= 0) || math.IsInf(b.Instructions, 0):
		return fault.Inputf("block %s: %v instructions; expected 0 or more", b.Name, b.Instructions)
	case b.Groups < 0 || b.Groups > math.MaxInt32:
		return fault.Inputf("block %s: %d groups; expected 0 to 2³¹-1", b.Name, b.Groups)
	case !b.Partitionable && b.Groups > 1:
		return fault.Inputf("block %s cannot be split but has %d groups; its traffic is one group", b.Name, b.Groups)
	case b.Elements < 0 || b.EntryBytes < 0 || b.EntriesPerGroup < 0 || b.MaxEntries < 0 || !(b.HostNS >= 0):
		return fault.Inputf("block %s: elements %d, entry bytes %d, entries a group %d, most entries %d, host ns %v; expected 0 or more",
			b.Name, b.Elements, b.EntryBytes, b.EntriesPerGroup, b.MaxEntries, b.HostNS)
	case b.MaxGroupMpps != nil && len(b.MaxGroupMpps) != len(p.Memories):
		return fault.Inputf("block %s: group rates for %d memories; there are %d", b.Name, len(b.MaxGroupMpps), len(p.Memories))
	}
	if hi := b.size(max(int64(b.Groups)*b.entries(), b.Elements)); hi < 0 || hi > math.MaxInt64/maxBlocks {
		return fault.Inputf("block %s: %d entries of %d bytes are more than can be counted", b.Name, b.Elements, b.EntryBytes)
	}
	return nil
}

func (p *Problem) checkClasses() error {
	total := 0.0
	for i := range p.Classes {
		c := &p.Classes[i]
		if !(c.Mpps >= 0) || math.IsInf(c.Mpps, 0) || !(c.Bytes >= 0) || math.IsInf(c.Bytes, 0) {
			return fault.Inputf("class %d: %v Mpps of %v bytes; expected 0 or more", i, c.Mpps, c.Bytes)
		}
		if c.Path < 0 || c.Path >= len(p.Paths) {
			return fault.Inputf("class %d takes path %d; there are %d", i, c.Path, len(p.Paths))
		}
		blocks := p.Paths[c.Path].Blocks
		if len(c.Groups) != len(blocks) {
			return fault.Inputf("class %d: %d groups on a path of %d blocks", i, len(c.Groups), len(blocks))
		}
		for k, g := range c.Groups {
			if b := &p.Blocks[blocks[k]]; g < 0 || int(g) >= b.Groups {
				return fault.Inputf("class %d touches group %d of block %s; it has %d", i, g, b.Name, b.Groups)
			}
		}
		total += c.Mpps
	}
	if !(total > 0) || math.IsInf(total, 0) {
		return fault.Inputf("the traffic has no packets")
	}
	return nil
}

func (b *Block) entries() int64 { return max(1, b.EntriesPerGroup) }

func (b *Block) size(entries int64) int64 {
	if b.EntryBytes > 0 && entries > math.MaxInt64/b.EntryBytes {
		return -1
	}
	return entries * b.EntryBytes
}

// perGroup is what one group on the NIC takes.
func (b *Block) perGroup() (entries, bytes int64) {
	if b.each != nil {
		return b.each.entries, b.each.bytes
	}
	n := b.entries()
	if !b.Partitionable {
		n = max(n, b.Elements)
	}
	return n, n * b.EntryBytes
}

// mostGroups is how many groups of it the NIC's copy may hold.
func (b *Block) mostGroups() int64 {
	switch {
	case b.MaxEntries == 0:
		return math.MaxInt32
	case b.each != nil:
		return b.MaxEntries
	}
	entries, _ := b.perGroup()
	return b.MaxEntries / entries
}

// declared is what the program's text asks for.
func (b *Block) declared() (entries, bytes int64) {
	if b.each != nil {
		return int64(b.Groups) * b.each.entries, int64(b.Groups) * b.each.bytes
	}
	n := b.Elements
	if n == 0 {
		n = int64(b.Groups) * b.entries()
	}
	return n, n * b.EntryBytes
}

// maxGroup is the highest rate of one group in memory m, Mpps.
func (b *Block) maxGroup(m int) float64 {
	if b.MaxGroupMpps == nil || b.MaxGroupMpps[m] == 0 {
		return math.Inf(1)
	}
	return b.MaxGroupMpps[m]
}

// Linear is a predictor with a constant demand on each resource: the time in µs
// that a packet takes of it, plus that of each visit of a block and of each
// return from the host. The rate is what the most demanded resource allows (the
// model's rule "resources").
type Linear struct {
	Resources []string
	Base      []float64     // by resource, µs a packet
	Demand    [][][]float64 // by block, memory, resource, µs a visit
	Return    []float64     // by resource, µs a packet that comes back; nil: nothing
}

// Predict returns the rate of the most demanded resource.
func (l *Linear) Predict(use []Use, returns float64) (mpps float64, limit string, err error) {
	most := 0.0
	for r, us := range l.Base {
		if l.Return != nil {
			us += returns * l.Return[r]
		}
		for b, u := range use {
			if u.Memory != Host {
				us += u.Share * l.Demand[b][u.Memory][r]
			}
		}
		if us > most {
			most, limit = us, l.Resources[r]
		}
	}
	return 1 / most, limit, nil
}

// Demands returns the predictor's rows; see Demander.
func (l *Linear) Demands() (base []float64, demand [][][]float64, back []float64) {
	if l.Return == nil {
		return l.Base, l.Demand, make([]float64, len(l.Base))
	}
	return l.Base, l.Demand, l.Return
}

// Demander is a Predictor whose rate is exactly that of Linear with these
// demands; bounds are then proved.
type Demander interface {
	Demands() (base []float64, demand [][][]float64, back []float64)
}
