// Package perf counts what a thread does with the kernel's perf events
// (perf_event_open(2)): cycles, instructions and misses where the machine has
// counters for them, and page faults, switches and CPU time everywhere. A
// counter is either a number or a reason why it is none; it is never a zero
// that nothing counted.
package perf

import (
	"bufio"
	"bytes"
	"strings"
)

// Event is one thing to count. Type and Config are those of perf_event_attr.
// Hardware events count user-level code only.
type Event struct {
	Name   string
	Type   uint32
	Config uint64
	// KernelOnly says that the event happens inside the kernel, so that counting
	// user level alone would always give 0.
	KernelOnly bool
}

// Types of events (perf_event_open(2)).
const (
	TypeHardware = 0
	TypeSoftware = 1
	TypeCache    = 3 // PERF_TYPE_HW_CACHE
	TypeRaw      = 4
)

// missOf is the config of a cache's read misses: cache | read<<8 | miss<<16.
func missOf(cache uint64) uint64 { return cache | 1<<16 }

// Software are the kernel's own counters. task-clock is CPU time in ns.
var Software = []Event{
	{Name: "task-clock", Type: TypeSoftware, Config: 1},
	{Name: "page-faults", Type: TypeSoftware, Config: 2},
	{Name: "context-switches", Type: TypeSoftware, Config: 3, KernelOnly: true},
	{Name: "cpu-migrations", Type: TypeSoftware, Config: 4, KernelOnly: true},
}

// Hardware are the counters that most processors have, by the names of
// perf-list(1).
var Hardware = []Event{
	{Name: "cycles", Type: TypeHardware, Config: 0},
	{Name: "instructions", Type: TypeHardware, Config: 1},
	{Name: "cache-misses", Type: TypeHardware, Config: 3},
	{Name: "branch-misses", Type: TypeHardware, Config: 5},
	{Name: "L1-dcache-load-misses", Type: TypeCache, Config: missOf(0)},
	{Name: "LLC-load-misses", Type: TypeCache, Config: missOf(2)},
	{Name: "dTLB-load-misses", Type: TypeCache, Config: missOf(3)},
}

// CortexA72 are raw events of the Arm Cortex-A72, the core of BlueField-1 and
// BlueField-2 (numbers: Arm Cortex-A72 MPCore Technical Reference Manual,
// table of performance monitor events). The last two say how often a
// store-exclusive passed and failed: LL/SC contention.
var CortexA72 = []Event{
	{Name: "L2D_CACHE_REFILL", Type: TypeRaw, Config: 0x17},
	{Name: "BUS_ACCESS", Type: TypeRaw, Config: 0x19},
	{Name: "LDREX_SPEC", Type: TypeRaw, Config: 0x6c},
	{Name: "STREX_PASS_SPEC", Type: TypeRaw, Config: 0x6d},
	{Name: "STREX_FAIL_SPEC", Type: TypeRaw, Config: 0x6e},
}

// EventsOf returns the events worth opening on a processor, by the text of its
// /proc/cpuinfo: those that are common, and those of a Cortex-A72.
func EventsOf(cpuinfo []byte) []Event {
	events := append(append([]Event(nil), Software...), Hardware...)
	if cortexA72(cpuinfo) {
		events = append(events, CortexA72...)
	}
	return events
}

// cortexA72 looks for Arm's implementer code and the core's part number.
func cortexA72(cpuinfo []byte) bool {
	var arm, a72 bool
	for lines := bufio.NewScanner(bytes.NewReader(cpuinfo)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		switch strings.TrimSpace(key) {
		case "CPU implementer":
			arm = strings.TrimSpace(value) == "0x41"
		case "CPU part":
			a72 = a72 || arm && strings.TrimSpace(value) == "0xd08"
		}
	}
	return a72
}

// Count is what was counted between Start and Read. Where there are more events
// than counters the kernel takes turns: then Running, the share of the time
// that this event was counted, is below 1 and Value is scaled up from it, an
// estimate.
type Count struct {
	Value   float64 `json:"value"`
	Running float64 `json:"running"`
}

// Unavailable is an event that is not counted, and why.
type Unavailable struct {
	Event  string `json:"event"`
	Reason string `json:"reason"`
}

// raw is a counter's state: its value and the ns that it was enabled and
// really counting.
type raw struct{ value, enabled, running uint64 }

// since returns the count from an earlier state on, and whether the event was
// counted at all meanwhile.
func (r raw) since(from raw) (Count, bool) {
	enabled, running := float64(r.enabled-from.enabled), float64(r.running-from.running)
	if running == 0 {
		return Count{}, false
	}
	return Count{Value: float64(r.value-from.value) * enabled / running, Running: running / enabled}, true
}
