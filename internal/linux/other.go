//go:build !linux

package linux

import (
	"time"

	"nicprof/internal/fault"
)

// errNoLinux is what the calls return here.
func errNoLinux(what string) error {
	return fault.Missingf("%s: only Linux tells; measure natively on a Linux machine", what)
}

// CPUs needs Linux.
func CPUs() ([]int, error) { return nil, errNoLinux("the affinity mask") }

// Pin needs Linux.
func Pin(int) (func(), error) { return nil, errNoLinux("a pinned thread") }

// ThreadID is unknown.
func ThreadID() int { return 0 }

// ThreadCPU is unknown.
func ThreadCPU() time.Duration { return 0 }

var start = time.Now()

// Monotonic is the time since the program began.
func Monotonic() time.Duration { return time.Since(start) }

// ThreadUsage is unknown.
func ThreadUsage() Usage { return Usage{} }

// ThreadFaults are unknown.
func ThreadFaults() Faults { return Faults{} }

// RaiseAutogroup needs Linux.
func RaiseAutogroup() (string, func(), error) {
	return "", func() {}, errNoLinux("autogroup scheduling")
}

// Map needs Linux.
func Map(int64, Pages) (*Region, error) { return nil, errNoLinux("mapped memory") }

// Collapse does nothing.
func (r *Region) Collapse() {}

// Lock needs Linux.
func (r *Region) Lock() error { return errNoLinux("locked memory") }

// Close has nothing to give back.
func (r *Region) Close() error { return nil }

// Pages needs Linux.
func (r *Region) Pages() (Got, error) { return Got{}, errNoLinux("page sizes") }

// Available needs Linux.
func Available() (Memory, error) { return Memory{}, errNoLinux("the memory available") }

// MachineID is unknown.
func MachineID() string { return "" }
