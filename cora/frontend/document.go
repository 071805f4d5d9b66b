package frontend

import (
	"slices"

	"nicprof/p4/ir"
	"nicprof/program"
)

// Document is a Result and a Mix as JSON has them.
type Document struct {
	Program   string            `json:"program"`
	Arch      string            `json:"arch"`
	Deps      string            `json:"deps"`
	Blocks    []BlockDocument   `json:"state_blocks"`
	Together  [][]string        `json:"together"`
	Tables    []TableDocument   `json:"tables"`
	Registers []ArrayDocument   `json:"registers"`
	Counters  []ArrayDocument   `json:"counters"`
	Meters    []ArrayDocument   `json:"meters"`
	Branches  []BranchDocument  `json:"branches"`
	Paths     []PathDocument    `json:"paths"`
	Stateless program.Stateless `json:"stateless"` // operations a packet outside of blocks
	Warnings  []string          `json:"warnings"`
}

// BlockDocument is a Block with what a visiting packet does there.
type BlockDocument struct {
	Name          string            `json:"name"`
	Objects       []string          `json:"objects"`
	Cyclic        bool              `json:"cyclic"`
	Instructions  int               `json:"instructions"`
	FlowGroups    [][]string        `json:"flow_groups"`
	Partitionable bool              `json:"partitionable"`
	Whole         string            `json:"whole,omitempty"` // why it cannot be divided
	HostOnly      string            `json:"host_only,omitempty"`
	Elements      int64             `json:"elements"`
	Bytes         int64             `json:"bytes"`
	Share         float64           `json:"share"` // of the packets that visit it
	Accesses      []AccessDocument  `json:"accesses"`
	Lock          *LockDocument     `json:"lock,omitempty"`
	Stateless     program.Stateless `json:"stateless"` // operations a visit
}

// AccessDocument is an access of a block's objects.
type AccessDocument struct {
	Object   string       `json:"object"`
	Op       program.Op   `json:"op"`
	Mode     program.Mode `json:"mode"`
	Bytes    int          `json:"bytes"`
	PerVisit float64      `json:"per_visit"`
	Locked   bool         `json:"locked"`
}

// LockDocument is the lock that a block needs on an NFP.
type LockDocument struct {
	Elements int64  `json:"elements"`
	Random   bool   `json:"random"`
	Why      string `json:"why"`
}

// TableDocument is a table; sizes are entries and bits, 0 where not declared.
type TableDocument struct {
	Name      string        `json:"name"`
	FullName  string        `json:"full_name"`
	Block     string        `json:"block"`
	Keys      []KeyDocument `json:"keys"`
	Size      int64         `json:"size"`
	EntryBits int           `json:"entry_bits"`
	Actions   []string      `json:"actions"`
}

// KeyDocument is one component of a table's key.
type KeyDocument struct {
	Field string `json:"field"`
	Match string `json:"match"`
	Bits  int    `json:"bits"`
}

// ArrayDocument is a register, counter or meter.
type ArrayDocument struct {
	Name     string `json:"name"`
	FullName string `json:"full_name"`
	Block    string `json:"block"`
	Elements int64  `json:"elements"`
	Bits     int    `json:"bits,omitempty"`
	Unit     string `json:"unit,omitempty"`
	Direct   string `json:"direct,omitempty"` // the table it belongs to
}

// BranchDocument is a place where packets part.
type BranchDocument struct {
	Place string        `json:"place"`
	What  string        `json:"what"`
	Open  bool          `json:"open"` // its shares matter: packets come here and nothing known decides
	Arms  []ArmDocument `json:"arms"`
}

// ArmDocument is one way on, with the share that is assumed when the traffic
// does not set it.
type ArmDocument struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

// PathDocument is one order in which packets visit blocks.
type PathDocument struct {
	Blocks  []string `json:"blocks"`
	Share   float64  `json:"share"`
	Dropped bool     `json:"dropped,omitempty"`
	Host    string   `json:"host,omitempty"`
}

// Document puts the mix and what it is of into the form that JSON has.
func (m *Mix) Document() *Document {
	r := m.Result
	d := &Document{
		Program: r.Program.Name, Arch: r.Program.Arch, Deps: r.Deps,
		Blocks: []BlockDocument{}, Together: [][]string{}, Tables: []TableDocument{},
		Registers: []ArrayDocument{}, Counters: []ArrayDocument{}, Meters: []ArrayDocument{},
		Branches: []BranchDocument{}, Paths: []PathDocument{}, Stateless: m.Stateless, Warnings: []string{},
	}
	for _, b := range r.Blocks {
		d.Blocks = append(d.Blocks, m.block(b))
	}
	for _, t := range r.Together {
		d.Together = append(d.Together, r.namesOf(t))
	}
	for _, o := range r.Program.Objects {
		d.object(r, o)
	}
	for _, b := range r.Branches {
		doc := BranchDocument{Place: b.Pos.String(), What: b.What, Open: slices.Contains(m.Open, b)}
		for _, a := range b.Arms {
			doc.Arms = append(doc.Arms, ArmDocument{a.Name, a.Share})
		}
		d.Branches = append(d.Branches, doc)
	}
	for _, p := range m.Paths {
		doc := PathDocument{Blocks: []string{}, Share: p.Share, Dropped: p.Dropped, Host: p.Host}
		for _, b := range p.Blocks {
			doc.Blocks = append(doc.Blocks, r.Blocks[b].Name)
		}
		d.Paths = append(d.Paths, doc)
	}
	for _, w := range r.Warnings {
		d.Warnings = append(d.Warnings, w.Pos.String()+": "+w.Msg)
	}
	d.Warnings = append(d.Warnings, m.Warnings...)
	return d
}

func (r *Result) namesOf(objects []*ir.Object) []string {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = r.Name(o)
	}
	return names
}

func (m *Mix) block(b *Block) BlockDocument {
	r, v := m.Result, m.Blocks[b.Index]
	d := BlockDocument{
		Name: b.Name, Objects: r.namesOf(b.Objects), Cyclic: b.Cyclic, Instructions: len(b.Instructions),
		FlowGroups: [][]string{}, Partitionable: b.Partitionable, Whole: b.Why, HostOnly: b.HostOnly,
		Elements: b.Elements, Bytes: b.Bytes, Share: v.Share, Accesses: []AccessDocument{}, Stateless: v.Stateless,
	}
	for _, g := range b.Groups {
		d.FlowGroups = append(d.FlowGroups, g.Names())
	}
	for _, a := range v.Accesses {
		d.Accesses = append(d.Accesses, AccessDocument{r.Name(a.Object), a.Op, a.Mode, a.Bytes, a.PerVisit, a.Locked})
	}
	if l := v.Lock; l != nil {
		d.Lock = &LockDocument{l.Elements, l.Hash, l.Why}
	}
	return d
}

// object adds an object to the list of its kind.
func (d *Document) object(r *Result, o *ir.Object) {
	b := r.Block(o)
	if b == nil {
		return
	}
	if o.Kind == ir.Table {
		t := TableDocument{
			Name: r.Name(o), FullName: o.FullName, Block: b.Name, Keys: []KeyDocument{},
			Size: o.Elements, EntryBits: EntryBits(o), Actions: append([]string{}, o.Actions...),
		}
		for _, k := range o.Keys {
			t.Keys = append(t.Keys, KeyDocument{k.Field, k.Match, k.Bits})
		}
		d.Tables = append(d.Tables, t)
		return
	}
	a := ArrayDocument{Name: r.Name(o), FullName: o.FullName, Block: b.Name, Elements: elements(o), Bits: o.Bits, Unit: o.Unit}
	if o.Direct != nil {
		a.Direct = r.Name(o.Direct)
	}
	switch o.Kind {
	case ir.Register:
		d.Registers = append(d.Registers, a)
	case ir.Counter:
		d.Counters = append(d.Counters, a)
	case ir.Meter:
		d.Meters = append(d.Meters, a)
	}
}
