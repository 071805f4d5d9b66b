// Package frontend is Cora's compiler front end: from the instructions of a P4
// program to the state blocks that a partition moves as a whole, the flow
// groups that choose the elements of each block, and what a packet does to
// them (accesses, locks, stateless operations, paths).
//
// Analyse builds the dependence graph: data by reaching definitions on bit
// ranges, control by post-dominators, and state, a write of an object that a
// later packet reads. Result.Mix weighs its paths with a traffic's branch
// shares.
package frontend

import (
	"nicprof/p4/ir"
	"nicprof/p4/source"
	"nicprof/program"
)

// Kinds of dependence analysis, for Options.Deps.
const (
	DepsInstruction = "instruction" // the instruction graph
	DepsAction      = "action"      // per action, as the published prototype has it
)

// Options chooses the analysis. Deps "" is DepsInstruction. With DepsAction a
// write depends on every read before it in the same action, and on the reads
// behind the conditions around it, whatever it writes.
type Options struct {
	Deps string
}

// Result is what the analysis found. Its slices belong to it.
type Result struct {
	Program  *ir.Program
	Deps     string
	Blocks   []*Block
	Together [][]*ir.Object // objects of one @atomic region, where there are two or more
	Branches []*Branch      // what a traffic file's branches may set, by place
	Warnings []*source.Message

	// Unsupported lists the instructions that an NFP cannot execute; a packet
	// that comes to one has to visit the host.
	Unsupported []Unsupported

	flow          *flow
	deps          *deps
	depends       map[*ir.Object]map[*ir.Object]bool
	names         map[*ir.Object]string
	blockOf       map[*ir.Object]*Block
	branchAt      map[int]*Branch // by instruction
	locks         map[*Block]*Lock
	home          map[int]*Block // by instruction: the block that its stateless operations count for
	unsupportedAt map[int]string // by instruction
	added         map[int]bool   // reads and writes that are one atomic addition
}

// Name is an object's local name, or its full one where two objects share the
// local one.
func (r *Result) Name(o *ir.Object) string { return r.names[o] }

// Block returns the block of an object (of a profile or selector: none).
func (r *Result) Block(o *ir.Object) *Block { return r.blockOf[o] }

// Block is a state block: one object, or the objects that a dependence cycle
// joins.
type Block struct {
	Index   int // in Result.Blocks
	Name    string
	Objects []*ir.Object // in the order of their declaration

	// Cyclic tells that what is written depends on what was read, of the
	// same object or around the block.
	Cyclic bool

	// Instructions are the IDs of its instructions, ascending: the operations
	// on its objects, what lies between a read of the block and a write that
	// depends on it, and conditions on what it read that belong to no block
	// in that way. Their number is |I| of the plan's objective.
	Instructions []int

	// Groups say what determines the element that is touched: one a distinct
	// way, of all access sites. Partitionable tells that traffic can be
	// divided by them; Why says why not.
	Groups        []Group
	Partitionable bool
	Why           string

	// Elements is the number of elements (cells, table entries) that the
	// program declares, 0 when a table declares none; ElementBytes is what
	// one takes of the NIC's memory, all objects together; Bytes is both
	// multiplied, objects of unlike sizes counted each for itself.
	Elements     int64
	ElementBytes int64
	Bytes        int64

	// HostOnly says why an NFP cannot hold the block, "" when it can.
	HostOnly string
}

// Group is a flow group: the values of Fields choose the element. No field
// means one element for all packets. Exact tells that unlike values are proved
// to choose unlike elements (copies, slices, masks, concatenation, a constant
// added, alike on all ways). Marked tells that the programmer says so instead, by
// a type named FlowGroupID: the group is what the identifier was computed from.
// A group that is neither may have flows of unlike values share an element: sums
// of fields, or an index that a table entry supplies. Random names the function
// behind a random mapping ("hash", "random", or "state" that packets before it
// wrote); then all elements are one group.
type Group struct {
	Fields []Field
	Exact  bool
	Marked bool
	Random string

	value []bit  // what chooses the element, lowest bit first, nil when neither Exact nor Marked
	why   string // why it is nil
}

// Field is the bits Hi..Lo of a header field or of intrinsic metadata as it
// came in: bits that a mask or slice removes are left out.
type Field struct {
	Var    *ir.Var
	Hi, Lo int
}

// Unsupported is an instruction that an NFP cannot execute.
type Unsupported struct {
	Instr int
	What  string // such as: extern rc4 of the program
}

// Branch is a place where packets part. Several instructions are one branch
// when an action or control is used more than once. Arms have the names a
// traffic file sets, each with the share of the packets at the branch that
// take it.
type Branch struct {
	Pos    source.Pos
	What   string // the condition or selector in short, for people
	Arms   []Arm
	Instrs []int
}

// Arm is one way on from a branch. Share is the default: of a table hit 1, of a
// parser's select that is not part of a loop evenly among the cases but none to
// the default case, else evenly.
type Arm struct {
	Name  string
	Label string // the edge's
	Share float64
}

// Mix is a program under given branch shares.
type Mix struct {
	Result *Result
	Shares map[string]float64 // as set by the traffic
	Visits []float64          // by instruction: times that a packet executes it
	Paths  []Path             // by falling share
	Blocks []Visit            // by block

	// Ways are the paths told apart by what header fields decide; where that
	// would be too many they are the paths, without conditions.
	Ways []Way

	// Open holds the branches whose shares mattered: packets came there and
	// what was known of them did not decide.
	Open []*Branch

	// Stateless counts the operations a packet that belong to no block.
	Stateless program.Stateless

	// Warnings say which shares were assumed, and what was cut.
	Warnings []string
}

// Path is one order in which packets visit blocks. A block appears again when
// another one was visited between.
type Path struct {
	Blocks  []int // indices into Result.Blocks
	Share   float64
	Dropped bool
	Host    string // why it has to visit the host whatever the plan, "" when not
}

// Visit is what a packet that visits a block does there: PerVisit of an access
// and the stateless operations are a visiting packet's mean. Share is the
// share of packets that visit it.
type Visit struct {
	Share     float64
	Accesses  []Access
	Lock      *Lock
	Stateless program.Stateless
}

// Access is a state access of a block but for the memory it lies in. Locked
// ones are in the section of the block's lock.
type Access struct {
	Object   *ir.Object
	Op       program.Op
	Mode     program.Mode
	Bytes    int
	PerVisit float64
	Span     int64 // declared elements, 0 when none are
	Stride   int64 // bytes between elements
	Locked   bool
}

// Lock is the lock array that a block needs on an NFP: one lock an element, or
// a single one where the block's objects are indexed unlike each other. Hash
// tells that packets choose the element at random.
type Lock struct {
	Elements int64
	Hash     bool
	Why      string
}
