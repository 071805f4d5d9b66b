// Package ir is the typed intermediate representation of a P4 program: scalar
// storage locations, stateful objects, and one control-flow graph of
// instructions over the whole pipeline (parser, ingress, egress, deparser),
// with controls, functions and actions inlined where they are called. The
// P4_16 front end and the bmv2 JSON reader both end here; it knows nothing of
// NICs.
//
// What an analysis may rely on:
//
//   - Code[i].ID == i, Code[0] is the entry, the one instruction of kind End is
//     the exit, and every instruction lies on a path from entry to exit.
//     Cycles come from parser loops and for statements alone.
//   - A table's apply is one Lookup: it reads the keys and defines Hit and the
//     action data of its actions; its edges lead, one an action, to that
//     action's inlined body. All bodies meet again behind it.
//   - return and exit are edges. An action called directly is inlined too.
//   - inout, out and in parameters are resolved to the caller's locations.
//   - A header's fields are named with the ingress (first match-action)
//     control's parameter names: hdr.ipv4.srcAddr, wherever they are used.
package ir

import (
	"math/big"

	"nicprof/p4/source"
)

// VarKind is what kind of storage a Var is.
type VarKind string

// Kinds of storage.
const (
	HeaderField VarKind = "header"    // a field of a header, set by Extract
	Validity    VarKind = "validity"  // a header's valid bit
	Metadata    VarKind = "metadata"  // user metadata
	Intrinsic   VarKind = "intrinsic" // of the architecture: ports, time stamps, lengths
	Local       VarKind = "local"     // variables and temporaries
	ActionData  VarKind = "data"      // a parameter that the table entry supplies
	Hit         VarKind = "hit"       // outcome of a lookup: 1 hit, 0 miss
)

// Var is a scalar storage location of Bits bits (a varbit field: its maximum).
// Name is unique: hdr.ipv4.srcAddr, hdr.mpls[0].label, meta.bucket,
// standard_metadata.egress_spec, MyIngress.tmp, MyIngress.setDip.port,
// hdr.ipv4.$valid, MyIngress.connTbl.$hit.
type Var struct {
	ID     int
	Name   string
	Bits   int
	Signed bool
	Kind   VarKind
	Header string // header instance of HeaderField and Validity
	Type   string // name of the P4 type when it is a named one (type, typedef, enum)

	// FlowGroup marks a flow group identifier: its type is named FlowGroupID
	// or FlowID, or it carries @flow_group / @FlowGroupID.
	FlowGroup bool

	// Kept marks a field of a field list (@field_list), which a clone or a
	// packet that passes again may keep.
	Kept bool
}

// ObjectKind is the kind of a stateful object.
type ObjectKind string

// Kinds of objects. An Other is a stateful extern that none of the others
// describes (a user's extern instance, a packet generator); Object.Type names it.
const (
	Table    ObjectKind = "table"
	Register ObjectKind = "register"
	Counter  ObjectKind = "counter"
	Meter    ObjectKind = "meter"
	Profile  ObjectKind = "profile"  // action profile
	Selector ObjectKind = "selector" // action selector
	ValueSet ObjectKind = "value_set"
	Other    ObjectKind = "extern"
)

// Key is one component of a table's key. Field is the key's control-plane name
// (its @name, else the expression as written with canonical field names).
type Key struct {
	Field string
	Match string // exact, lpm, ternary, range, optional, selector, …
	Bits  int
	Expr  *Expr
}

// Object is a stateful object. Sizes are in elements (entries of a table) and
// bits; zero means not declared (a table without size, a direct object).
type Object struct {
	ID       int
	Kind     ObjectKind
	Type     string // declared type as written: register<bit<32>>, Counter
	Name     string // local name
	FullName string // control-plane name: MyIngress.connTbl, or @name
	Pos      source.Pos

	Elements  int64  // cells of a register, counter, meter; maximum entries of a table, profile, selector
	Bits      int    // of one cell; of a table entry: action data plus the action's number
	IndexBits int    // declared width of the index type, 0 if not declared
	Unit      string // counters and meters: packets, bytes, both

	// Tables.
	Keys           []Key
	SizeDeclared   bool
	Actions        []string // full names
	DefaultAction  string
	ConstEntries   bool
	Entries        int     // entries the program itself declares
	Insertion      bool    // the data plane inserts or removes entries (add_on_miss, add_entry)
	Idle           bool    // idle timeout
	Implementation *Object // profile or selector behind the table
	Direct         *Object // the table that a direct counter, meter or register belongs to

	Annotations []string // names without @
}

// Op is the kind of an instruction.
type Op string

// Kinds of instructions, with the fields of Instr they use.
const (
	Nop        Op = "nop"         // joins paths
	End        Op = "end"         // the one exit
	Assign     Op = "assign"      // Defs[0] = Args[0]
	Extract    Op = "extract"     // Defs = fields and valid bit of Header, from the packet
	Emit       Op = "emit"        // Header into the packet, if valid; reads its fields
	SetValid   Op = "set_valid"   // Defs: valid bit; the fields become undefined
	SetInvalid Op = "set_invalid" // Defs: valid bit
	Branch     Op = "branch"      // Args[0] is the condition; edges "true", "false"
	Switch     Op = "switch"      // Args: selector(s); edges labelled by case ("default")
	Lookup     Op = "lookup"      // Object, Args = keys; Defs: Hit, action data; edges by action's full name
	RegRead    Op = "read"        // Defs[0] = Object[Index]
	RegWrite   Op = "write"       // Object[Index] = Args[0]
	Count      Op = "count"       // Object[Index] += 1 (packets) or Args[0] (bytes)
	MeterExec  Op = "meter"       // Defs[0] = colour of Object[Index]; Args: colour before
	Insert     Op = "insert"      // data-plane insertion into the table Object; Args: key, data
	HashOp     Op = "hash"        // Defs[0] = base + Algorithm(Args) mod Max
	Checksum   Op = "checksum"    // verify or update; Args, Defs
	Random     Op = "random"      // Defs[0] is drawn; not a function of the packet
	Drop       Op = "drop"        // mark_to_drop and its like
	Extern     Op = "extern"      // any other call: Name, Args, Defs, Object when on an instance
)

// Def is what an instruction defines: bits Hi..Lo of a location. May marks a
// definition that may not happen (a header stack indexed at run time); it does
// not kill earlier ones. Defs of part of a location do not kill the rest.
type Def struct {
	Var    *Var
	Hi, Lo int
	May    bool
}

// Edge is a successor with the label that chooses it ("" for the only one).
type Edge struct {
	To    int
	Label string
}

// Instr is one instruction.
type Instr struct {
	ID   int
	Op   Op
	Pos  source.Pos
	Defs []Def
	Args []*Expr
	Succ []Edge

	Object *Object // state operations
	Index  *Expr   // nil: direct (the entry that matched) or not indexed

	Name      string // Extern: method or function; Drop: its name; Checksum: verify or update
	Algorithm string // HashOp, Checksum: crc16, crc32, identity, csum16, …
	Base, Max *Expr  // HashOp: lowest value and range; nil when the full range
	Header    string // Extract, Emit, SetValid, SetInvalid
	Type      string // Extract, Emit: the header's type; Extern: that of an argument that is a header or struct

	Stage   int    // index into Program.Stages
	Control string // name of the innermost parser or control instance
	Action  string // full name of the action entered from a table or called, "" outside
	Region  string // innermost block annotated @branch("NAME"), "" when none
	Atomic  int    // innermost @atomic block or RegisterAction (1-based index into Program.Atomics), 0 when none
}

// ExprOp is the kind of an expression node.
type ExprOp string

// Kinds of expressions. Binary and unary operators are named by their P4 token
// ("+", "|+|", "&&", "~", …; unary minus is "neg", unary plus is dropped).
const (
	Const     ExprOp = "const"
	Use       ExprOp = "use" // bits Hi..Lo of Var
	Mux       ExprOp = "?:"  // Args: condition, then, else
	Concat    ExprOp = "++"
	Slice     ExprOp = "slice"     // bits Hi..Lo of Args[0]
	Cast      ExprOp = "cast"      // Args[0] to Bits
	Lookahead ExprOp = "lookahead" // packet bits ahead
	InSet     ExprOp = "in"        // Args[0] in a value set, range or mask: Args[1:], or Object
	Any       ExprOp = "any"       // a run-time value the IR does not describe; Text says which
)

// Expr is an expression tree. Bits is 0 for a value of unknown width (an
// integer literal without one) and 1 for a boolean (Bool set).
type Expr struct {
	Op     ExprOp
	Bits   int
	Signed bool
	Bool   bool
	Value  *big.Int // Const
	Var    *Var     // Use
	Hi, Lo int      // Use, Slice
	Args   []*Expr
	Object *Object // InSet of a value set
	Text   string  // Any; as written where that helps a message
}

// StageKind is what a programmable block of the architecture is.
type StageKind string

// Kinds of stages.
const (
	Parser   StageKind = "parser"
	Ingress  StageKind = "ingress" // match-action; PNA's main control too
	Egress   StageKind = "egress"
	Verify   StageKind = "verify" // checksum controls
	Compute  StageKind = "compute"
	Deparser StageKind = "deparser"
)

// Stage is one programmable block in the order that packets take.
type Stage struct {
	Kind StageKind
	Name string // as declared: MyIngress
	Pos  source.Pos
}

// AtomicRegion is an @atomic block, or the body of a RegisterAction.
type AtomicRegion struct {
	Pos  source.Pos
	Name string // RegisterAction's instance, or ""
}

// Program is a whole P4 program.
type Program struct {
	Name     string // file name without directory
	Arch     string // v1model, psa, pna, tna; "" when it instantiates no known package
	Source   string // p4_16 or bmv2-json
	Version  string // language or JSON version as the file gives it
	Vars     []*Var
	Objects  []*Object
	Stages   []Stage
	Code     []*Instr
	Atomics  []AtomicRegion
	Warnings []*source.Message
}
