package board

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"nicprof/internal/config"
	"nicprof/program"
)

// FPGA is what a board of class fpga has beside its clock and link: a
// data path that every packet takes, a central scheduler, and regions that run
// chains of network tasks (NTs) and are configured one by one. Its bases are
// the policies of the scheduler (SNIC, PANIC), and its cores the regions.
type FPGA struct {
	BusBits Num `json:"bus_bits" yaml:"bus_bits"` // width of the data path
	BusGap  Num `json:"bus_gap" yaml:"bus_gap"`   // cycles between two packets on it
	// Stages are those of the core that every packet passes, in order. One is
	// the scheduler's, whose cycles every further pass takes again, and a later
	// one the synchronisation buffer's.
	Stages    []Pipe    `json:"stages" yaml:"stages"`
	Scheduler Scheduler `json:"scheduler" yaml:"scheduler"`
	Store     Store     `json:"store" yaml:"store"`
	Regions   Regions   `json:"regions" yaml:"regions"`
	PHYNS     Num       `json:"phy_ns" yaml:"phy_ns"`               // PHY and MAC, both ways together
	LinkBytes Num       `json:"link_bytes" yaml:"link_bytes"`       // buffer of the reliable link layer
	VM        VM        `json:"vm,omitzero" yaml:"vm"`              // memory of NTs
	Control   Control   `json:"control,omitzero" yaml:"control"`    // periods of the control plane
	NTs       []NT      `json:"nts,omitempty" yaml:"nts,omitempty"` // known network tasks
}

// Pipe is a stage of the data path: Cycles of latency, fully pipelined.
type Pipe struct {
	Name   string `json:"name" yaml:"name"`
	Cycles Num    `json:"cycles" yaml:"cycles"`
}

// Names of the stages that the mechanism knows apart.
const (
	SchedulerStage = "scheduler"
	SyncStage      = "sync"
)

// Names of the scheduler's policies, which are the bases of a board of class
// fpga.
const (
	PolicySNIC  = "snic"  // credits of a whole chain at once where there are
	PolicyPANIC = "panic" // one NT a pass
)

// Scheduler is the central packet scheduler. A packet takes it for Interval
// cycles a pass. The credit loop is the cycles between two uses of one credit
// beside those of the NT: Dispatch from taking the credit to the first beat at
// the NT, and Return from the NT's end to the credit's being there again. A
// credit on its way back shares the region's port with packet data, which goes
// first, but for no more than Yield cycles.
type Scheduler struct {
	Interval Num `json:"interval" yaml:"interval"`
	Credits  Num `json:"credits" yaml:"credits"` // of each NT
	Dispatch Num `json:"dispatch" yaml:"dispatch"`
	Return   Num `json:"return" yaml:"return"`
	Yield    Num `json:"yield" yaml:"yield"`
}

// Store is the packet store: cells of CellBytes, of which Threshold are kept
// free: with no more left the ingress stops.
type Store struct {
	Cells     Num `json:"cells" yaml:"cells"`
	CellBytes Num `json:"cell_bytes" yaml:"cell_bytes"`
	Threshold Num `json:"threshold" yaml:"threshold"`
}

// Regions are the parts of the FPGA that partial reconfiguration (PR) fills.
// Area is in a unit of its own, that of the NTs' areas.
type Regions struct {
	Count     Num `json:"count" yaml:"count"`
	Area      Num `json:"area" yaml:"area"`               // of one region
	PRms      Num `json:"pr_ms" yaml:"pr_ms"`             // reconfiguration of one region
	Bitstream Num `json:"bitstream" yaml:"bitstream"`     // bytes of one region's
	SaveUS    Num `json:"save_us" yaml:"save_us"`         // an NT's state to memory, before a context switch
	Buffer    Num `json:"buffer" yaml:"buffer"`           // packets that the scheduler holds for a region that is being configured
	Skip      Num `json:"skip_cycles" yaml:"skip_cycles"` // past an NT of the chain that a packet does not use
}

// VM is the paged memory of NTs.
type VM struct {
	Bytes     Num `json:"bytes" yaml:"bytes"`             // on the board
	SpaceSize Num `json:"space_bytes" yaml:"space_bytes"` // of one address space
	PageBytes Num `json:"page_bytes" yaml:"page_bytes"`
	SwapUS    Num `json:"swap_us" yaml:"swap_us"` // one page
}

// Control is the periods of the control plane.
type Control struct {
	EpochUS   Num `json:"epoch_us" yaml:"epoch_us"`     // between two fair allocations
	DRFUS     Num `json:"drf_us" yaml:"drf_us"`         // to compute one
	MonitorMS Num `json:"monitor_ms" yaml:"monitor_ms"` // overload or idleness that scales
}

// NT is a network task: Cycles of latency, one packet every II cycles and no
// more than Gbps. MemoryMB is what it keeps in the board's memory.
type NT struct {
	Name     string `json:"name" yaml:"name"`
	Text     string `json:"text" yaml:"text"`
	Cycles   Num    `json:"cycles" yaml:"cycles"`
	II       Num    `json:"ii" yaml:"ii"`
	Gbps     Num    `json:"gbps,omitzero" yaml:"gbps,omitempty"` // 0: no limit of its own
	Area     Num    `json:"area" yaml:"area"`
	MemoryMB Num    `json:"memory_mb,omitzero" yaml:"memory_mb,omitempty"`
}

// NT returns the network task of that name, or nil.
func (f *FPGA) NT(name string) *NT {
	for i := range f.NTs {
		if f.NTs[i].Name == name {
			return &f.NTs[i]
		}
	}
	return nil
}

// Cycles returns the latency of the core: the sum of its stages.
func (f *FPGA) Cycles() float64 {
	total := 0.0
	for _, s := range f.Stages {
		total += s.Cycles.Value
	}
	return total
}

// Stage returns the cycles of the stage of that name, 0 if there is none.
func (f *FPGA) Stage(name string) float64 {
	for _, s := range f.Stages {
		if s.Name == name {
			return s.Cycles.Value
		}
	}
	return 0
}

// StagesOf returns the network tasks of a program's chain with what the board
// knows of them filled in.
func (f *FPGA) StagesOf(chain []program.Stage) []program.Stage {
	chain = slices.Clone(chain)
	for i := range chain {
		s := &chain[i]
		if n := f.NT(s.Name); n != nil && s.Cycles == 0 {
			s.Cycles = int(n.Cycles.Value)
			if s.II == 0 {
				s.II = int(math.Ceil(n.II.Value))
			}
			if s.Gbps == 0 {
				s.Gbps = n.Gbps.Value
			}
		}
	}
	return chain
}

// check complains about a program of so many instances that the regions cannot
// run.
func (f *FPGA) check(p program.Program, instances int, name string) config.Findings {
	var found config.Findings
	runs := 0
	for i, s := range p.Chain {
		if !s.Skip {
			runs++
		}
		if s.Cycles == 0 && f.NT(s.Name) == nil {
			var have []string
			for _, n := range f.NTs {
				have = append(have, n.Name)
			}
			found.Add(fmt.Sprintf("chain[%d]", i), "board %s knows no network task %q; give its cycles, or use one of %s", name, s.Name, strings.Join(have, ", "))
		}
	}
	regions := instances
	if p.Parallel {
		regions *= runs
	}
	switch n := int(f.Regions.Count.Value); {
	case len(p.Chain) > 0 && runs == 0:
		found.Add("chain", "every network task is skipped")
	case regions > n:
		found.Add("chain", "takes %d regions; board %s has %d", regions, name, n)
	}
	if p.Configure != "" && (p.Parallel || instances > 1) {
		found.Add("configure", "configures one region: no parallel tasks, no second instance")
	}
	if len(p.Stateless) > 0 {
		found.Add("stateless", "board %s has no cores; what packets need done is a chain of network tasks", name)
	}
	return found
}

func (f *FPGA) findings() config.Findings {
	var found config.Findings
	at := map[string]int{}
	for i, s := range f.Stages {
		if _, twice := at[s.Name]; twice {
			found.Add(fmt.Sprintf("stages[%d].name", i), "stage %q is described twice", s.Name)
		}
		at[s.Name] = i
	}
	scheduler, ok := at[SchedulerStage]
	sync, also := at[SyncStage]
	switch {
	case !ok || !also:
		found.Add("stages", "expected one stage named %s and, after it, one named %s", SchedulerStage, SyncStage)
	case sync < scheduler:
		found.Add(fmt.Sprintf("stages[%d]", sync), "%s comes after %s: headers that return from regions meet there", SyncStage, SchedulerStage)
	}
	if ok && f.Scheduler.Dispatch.Value > f.Stages[scheduler].Cycles.Value {
		found.Add("scheduler.dispatch", "%v cycles are part of the %v of stage %s", f.Scheduler.Dispatch.Value, f.Stages[scheduler].Cycles.Value, SchedulerStage)
	}
	if f.Store.Threshold.Value >= f.Store.Cells.Value {
		found.Add("store.threshold", "%v of %v cells kept free leave none", f.Store.Threshold.Value, f.Store.Cells.Value)
	}
	if page, space := f.VM.PageBytes.Value, f.VM.SpaceSize.Value; page > space || f.VM.Bytes.Value < page {
		found.Add("vm.page_bytes", "a page of %v B does not fit into a space of %v B and a memory of %v B", page, space, f.VM.Bytes.Value)
	}
	names := map[string]bool{}
	for i, n := range f.NTs {
		path := fmt.Sprintf("nts[%d]", i)
		if names[n.Name] {
			found.Add(path+".name", "network task %q is described twice", n.Name)
		}
		names[n.Name] = true
		if n.Area.Value > f.Regions.Area.Value {
			found.Add(path+".area", "%v; a region has %v", n.Area.Value, f.Regions.Area.Value)
		}
	}
	return found
}
