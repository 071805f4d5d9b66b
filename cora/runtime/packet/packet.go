// Package packet is the packet level of Cora's emulation: every packet passes
// the emulated NIC (microengines or cores, memories, locks), PCIe and the host's
// cores, and the runtime's own functions decide about each. It is for windows of
// tens of milliseconds and for the timing of single migrations; the monitor's
// interval is then scaled, which whoever prints a result says.
package packet

import (
	"nicprof/cora/runtime"
	"nicprof/cora/runtime/system"
	"nicprof/sim"
)

// Config of a run. Times are of the emulation.
type Config struct {
	Runtime   runtime.Options
	Faults    runtime.Faults
	HostCores int
	Phases    []system.Phase // the first at 0 s, with a rate
	Warm      sim.Time       // before the first phase's time is counted
	Length    sim.Time       // after it
	Sample    sim.Time       // of the timeline, 0: one sample of all
	Still     bool           // the runtime moves no flow of its own accord
	Probe     sim.Time       // between migrations of single flows, there and back; 0: none
	Seed      uint64
}

// Sample is a stretch of the timeline. Rates are Mpps.
type Sample struct {
	AtS     float64 // its end
	Offered float64 // from the wire
	NIC     float64 // left without having seen the host
	Host    float64 // left after the host, or ended there
	Visits  float64 // that a core of the host served
	Dropped Drops
	Cores   float64 // busy, of the host
	Load    runtime.Load
	Flows   uint32     // whose data the NIC holds
	IdleUS  float64    // that a thread of the NIC waited for a packet, mean
	Busy    float64    // threads of the NIC with a packet, mean
	PCIe    [2]float64 // Gb/s to the host, to the NIC

	Evicted, Offloaded uint64 // flows, in this stretch
	Reordered          int64  // packets that left after a later one of their flow
}

// Drops is what is lost, Mpps by place.
type Drops struct {
	Ingress float64 // no thread of the NIC was free for too long
	Return  float64 // packets from the host found no room on the NIC
	ToHost  float64 // PCIe's queue was full
	Ring    float64 // a core's ring was full
	ToNIC   float64 // PCIe's queue was full
}

// Sum is all of it.
func (d Drops) Sum() float64 { return d.Ingress + d.Return + d.ToHost + d.Ring + d.ToNIC }

// Counts are packets over a run, warm-up included: those offered have left, have
// ended on the host, whose they were, have been dropped, or were inside at the
// end.
type Counts struct {
	Offered, Left, Ended, Dropped, Inside int64
}

// Migration is one flow's, as a probe saw it.
type Migration struct {
	AtS       float64
	Evict     bool
	TookUS    float64
	Reordered int64 // packets of all flows, meanwhile
}

// Result of a run.
type Result struct {
	Samples    []Sample
	Counts     Counts
	Migrations []Migration // of probes
	EchoUS     float64     // from a command to its echo, mean; 0: there were none
	Threads    int         // of the NIC
	NIC        *runtime.NIC
	Host       *runtime.Host
	Injector   *runtime.Injector
}
