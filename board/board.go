// Package board describes SmartNIC boards: clocks, cores, memories, engines,
// links, and the base programs (firmware) measured on them. A board file is
// YAML; every number in it carries its source and a confidence.
package board

import "nicprof/program"

// Num is one number of a board file with where it comes from. Confidence is H
// (primary source), M (secondary or derived) or L (general knowledge: a range,
// never a claim). Low and High bound the value, in its unit, where it is known
// as a range only; both are 0 where it is not. Calibrated names what the number
// was fitted against, if it was.
type Num struct {
	Value      float64 `json:"value" yaml:"value"`
	Low        float64 `json:"low,omitempty" yaml:"low,omitempty"`
	High       float64 `json:"high,omitempty" yaml:"high,omitempty"`
	Unit       string  `json:"unit,omitempty" yaml:"unit,omitempty"`
	Source     string  `json:"source" yaml:"source"`
	Confidence string  `json:"confidence" yaml:"confidence"`
	Calibrated string  `json:"calibrated,omitempty" yaml:"calibrated,omitempty"`
}

// Board is one board. Class picks the mechanism: nfp (many-core), soc
// (run-to-completion cores with caches), fpga (see FPGA), host (the machine itself, also
// the cores of a soc), netif (paths of packets over a real interface, one a
// base). Of a host and a netif most is measured, not described, so that their
// files may leave it out; so may a file of class fpga what only cores have.
type Board struct {
	Name        string     `json:"name" yaml:"name"`
	Class       string     `json:"class" yaml:"class"`
	Title       string     `json:"title" yaml:"title"`
	SKU         string     `json:"sku,omitempty" yaml:"sku,omitempty"`
	ClockMHz    Num        `json:"clock_mhz" yaml:"clock_mhz"`
	Cores       Num        `json:"cores" yaml:"cores"`     // cores (NFP: microengines) a program may use
	Threads     Num        `json:"threads" yaml:"threads"` // hardware contexts per core
	Islands     Num        `json:"islands" yaml:"islands"`
	LinkGbps    Num        `json:"link_gbps" yaml:"link_gbps"` // all ports together, one direction
	PCIe        PCIe       `json:"pcie" yaml:"pcie"`
	Bases       []Base     `json:"bases" yaml:"bases"` // the first is the default
	Stateless   OpCycles   `json:"stateless" yaml:"stateless"`
	Locks       LockSpec   `json:"locks" yaml:"locks"`
	Memories    []Memory   `json:"memories" yaml:"memories"`
	Coherence   *Coherence `json:"coherence,omitempty" yaml:"coherence,omitempty"` // of cores with caches
	FPGA        *FPGA      `json:"fpga,omitempty" yaml:"fpga,omitempty"`           // of class fpga
	Variability Num        `json:"variability" yaml:"variability"`                 // ± fraction of issue chunks and latencies
	Notes       []string   `json:"notes,omitempty" yaml:"notes,omitempty"`
}

// Coherence is what cores with caches do beyond their caches. A tile is the
// cores that share a second-level cache. Atomics is "ll-sc" (a loop of
// load-exclusive and store-exclusive, which fails when the line is lost between
// them) or "lock" (an instruction that holds the line).
type Coherence struct {
	Atomics     string `json:"atomics" yaml:"atomics"`
	Window      Num    `json:"window" yaml:"window"`               // line fills that a core has in flight
	SameTileNS  Num    `json:"same_tile_ns" yaml:"same_tile_ns"`   // a modified line, from the core beside
	OtherTileNS Num    `json:"other_tile_ns" yaml:"other_tile_ns"` // the same, from another tile
	RetryCycles Num    `json:"retry_cycles" yaml:"retry_cycles"`   // of an atomic loop after a failed store
}

// OpCycles is the issue cycles of one stateless operation by program.Kinds.
type OpCycles map[string]Num

// PCIe is the host interface: DMA servers in both directions.
type PCIe struct {
	Gbps          Num `json:"gbps" yaml:"gbps"`
	ReadNS        Num `json:"read_ns" yaml:"read_ns"`                 // unloaded 64 B DMA read
	ReadsMps      Num `json:"reads_mps" yaml:"reads_mps"`             // 64 B DMA reads, million/s
	WritesMps     Num `json:"writes_mps" yaml:"writes_mps"`           // 64 B DMA writes, million/s
	LargeReadGbps Num `json:"large_read_gbps" yaml:"large_read_gbps"` // DMA read at 2048 B
}

// Base is the program around the accesses (the firmware). Cycles are issue
// cycles per packet; AccessCycles are the issue cycles around each access
// command; IOMpps is the packet-I/O ceiling; Demand is the base's own memory
// commands per packet. Index says how an access chooses its element: "access"
// (anew each time) or "packet" (one element per packet and access line, as a
// program driven by operation descriptors does). Locks says that programs on
// this base take locks, so that random ones do too.
type Base struct {
	Name         string   `json:"name" yaml:"name"`
	Text         string   `json:"text" yaml:"text"`
	Cycles       Num      `json:"cycles" yaml:"cycles"`
	AccessCycles Num      `json:"access_cycles" yaml:"access_cycles"`
	LockCycles   Num      `json:"lock_cycles" yaml:"lock_cycles"`
	IOMpps       Num      `json:"io_mpps" yaml:"io_mpps"`
	Cores        Num      `json:"cores" yaml:"cores"` // of class fpga: instances of a chain, unless more are asked for
	Threads      Num      `json:"threads" yaml:"threads"`
	Swaps        Num      `json:"swaps" yaml:"swaps"` // context swaps within Cycles
	Index        string   `json:"index" yaml:"index"`
	Locks        bool     `json:"locks,omitempty" yaml:"locks,omitempty"`
	Demand       []Demand `json:"demand,omitempty" yaml:"demand,omitempty"`
}

// Demand is Commands posted commands per packet on a memory, each holding the
// engine front PipeCycles and one bank BankCycles.
type Demand struct {
	Memory     string `json:"memory" yaml:"memory"`
	Mode       string `json:"mode" yaml:"mode"`
	Commands   Num    `json:"commands" yaml:"commands"`
	PipeCycles Num    `json:"pipe_cycles" yaml:"pipe_cycles"`
	BankCycles Num    `json:"bank_cycles" yaml:"bank_cycles"`
}

// LockSpec says where lock words lie and what the lock commands are.
type LockSpec struct {
	Memory     string `json:"memory" yaml:"memory"`
	SpinCycles Num    `json:"spin_cycles" yaml:"spin_cycles"` // issue cycles of one turn of the spin loop
	WordStride Num    `json:"word_stride" yaml:"word_stride"` // bytes between lock words
}

// Memory is one memory with its engines. Latency is the unloaded round trip in
// cycles (of a cache level: load to use). SharedFront says that the engines' pipelines are one server. PerIsland
// says that every island has one of its own, which the island's cores use. Scratch
// says that no state which a program declares lies there (firmware and host
// buffers), so that sweeps and random programs leave it out.
//
// Of classes soc and host the memories are the levels of the cache hierarchy
// and the DRAM, from the fastest on. All arrays lie in the DRAM; an array that
// a program declares in a level has a working set (span x stride) that fits
// there. SharedBy is the number of cores that share one instance of the level,
// and also the scope of the array: every instance has a copy of its own, as
// memories an island have. So an array in a level private to a core is that
// core's own (per-core state), one in the last level or the DRAM is shared by
// all cores. Bytes and Bandwidth are those of one instance.
type Memory struct {
	Name          string   `json:"name" yaml:"name"`
	Kind          string   `json:"kind" yaml:"kind"` // sram, dram
	Bytes         int64    `json:"bytes" yaml:"bytes"`
	BytesSource   string   `json:"bytes_source" yaml:"bytes_source"`
	Latency       Num      `json:"latency" yaml:"latency"`
	LineBytes     Num      `json:"line_bytes" yaml:"line_bytes"`
	Banks         Num      `json:"banks" yaml:"banks"`
	BankBytes     Num      `json:"bank_bytes" yaml:"bank_bytes"` // interleave between banks
	SharedFront   bool     `json:"shared_front,omitempty" yaml:"shared_front,omitempty"`
	PerIsland     bool     `json:"per_island,omitempty" yaml:"per_island,omitempty"`
	Scratch       bool     `json:"scratch,omitempty" yaml:"scratch,omitempty"`
	SharedBy      Num      `json:"shared_by,omitzero" yaml:"shared_by,omitempty"`
	Ways          Num      `json:"ways,omitzero" yaml:"ways,omitempty"`           // associativity
	Bandwidth     Num      `json:"bandwidth,omitzero" yaml:"bandwidth,omitempty"` // GB/s
	DefaultSpan   int64    `json:"default_span" yaml:"default_span"`
	DefaultStride int64    `json:"default_stride,omitempty" yaml:"default_stride,omitempty"`
	Cache         *Cache   `json:"cache,omitempty" yaml:"cache,omitempty"`
	Engines       []Engine `json:"engines" yaml:"engines"`
}

// Cache sits before a DRAM. A miss adds MissLatency cycles to the command and
// holds the DRAM server for the cycles of its kind.
type Cache struct {
	Bytes       Num `json:"bytes" yaml:"bytes"`
	LineBytes   Num `json:"line_bytes" yaml:"line_bytes"`
	Ways        Num `json:"ways" yaml:"ways"`
	MissLatency Num `json:"miss_latency" yaml:"miss_latency"`
	ReadMiss    Num `json:"read_miss" yaml:"read_miss"`
	WriteMiss   Num `json:"write_miss" yaml:"write_miss"`
	AddMiss     Num `json:"add_miss" yaml:"add_miss"`
	ExtraLine   Num `json:"extra_line" yaml:"extra_line"` // each further line of one command
}

// Engine executes commands of one mode. MaxBytes is the largest command; a
// larger access is several commands. Queue is the number of commands in flight.
// Duplex says that reads have a pipeline apart from the other commands'.
type Engine struct {
	Mode     program.Mode `json:"mode" yaml:"mode"`
	MaxBytes Num          `json:"max_bytes" yaml:"max_bytes"`
	Queue    Num          `json:"queue" yaml:"queue"`
	Duplex   bool         `json:"duplex,omitempty" yaml:"duplex,omitempty"`
	Read     *Command     `json:"read,omitempty" yaml:"read,omitempty"`
	Write    *Command     `json:"write,omitempty" yaml:"write,omitempty"`
	Add      *Command     `json:"add,omitempty" yaml:"add,omitempty"`
	TestSet  *Command     `json:"test_set,omitempty" yaml:"test_set,omitempty"`
}

// Command is the time of one command of B bytes in the three resources of an
// engine, in cycles: the pipeline max(PipeMin, B/PipeBytes), one bank
// max(BankMin, B/BankBytes), and the addressed line LineFixed + B/LineBytes.
// Pipe and bank take SubWord times as long, and the line too, when B is below
// 8 (read-modify-write of an ECC word). Hazard cycles are added to the
// pipeline when the command follows one to the same line. A zero rate means
// that the resource is not used by size. Posted commands are not waited for.
type Command struct {
	PipeMin   Num  `json:"pipe_min" yaml:"pipe_min"`
	PipeBytes Num  `json:"pipe_bytes" yaml:"pipe_bytes"`
	BankMin   Num  `json:"bank_min" yaml:"bank_min"`
	BankBytes Num  `json:"bank_bytes" yaml:"bank_bytes"`
	LineFixed Num  `json:"line_fixed" yaml:"line_fixed"`
	LineBytes Num  `json:"line_bytes" yaml:"line_bytes"`
	SubWord   Num  `json:"sub_word" yaml:"sub_word"`
	Hazard    Num  `json:"hazard" yaml:"hazard"`
	Posted    bool `json:"posted,omitempty" yaml:"posted,omitempty"`
}

// Memory returns the memory of that name, or nil.
func (b *Board) Memory(name string) *Memory {
	for i := range b.Memories {
		if b.Memories[i].Name == name {
			return &b.Memories[i]
		}
	}
	return nil
}

// Swept returns the memories that sweeps and random programs access.
func (b *Board) Swept() []*Memory {
	var swept []*Memory
	for i := range b.Memories {
		if !b.Memories[i].Scratch {
			swept = append(swept, &b.Memories[i])
		}
	}
	return swept
}

// Engine returns the memory's engine of that mode, or nil.
func (m *Memory) Engine(mode program.Mode) *Engine {
	for i := range m.Engines {
		if m.Engines[i].Mode == mode {
			return &m.Engines[i]
		}
	}
	return nil
}

// Command returns the engine's timing of an operation, or nil.
func (e *Engine) Command(op program.Op) *Command {
	switch op {
	case program.Read:
		return e.Read
	case program.Write:
		return e.Write
	case program.Add:
		return e.Add
	}
	return nil
}
