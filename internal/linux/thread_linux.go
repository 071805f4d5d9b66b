package linux

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"nicprof/internal/fault"
)

// maxCPUs is the size of the kernel's affinity masks here.
const maxCPUs = len(unix.CPUSet{}) * strconv.IntSize

// CPUs returns the processors that the calling thread may run on, ascending.
func CPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fault.Missingf("the affinity mask cannot be read: %w", err)
	}
	var cpus []int
	for i := range maxCPUs {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus, nil
}

// Pin locks the calling goroutine to its thread and the thread to one
// processor. The function returned undoes both; it must be called by the same
// goroutine.
func Pin(cpu int) (unpin func(), err error) {
	runtime.LockOSThread()
	var old, set unix.CPUSet
	if err = unix.SchedGetaffinity(0, &old); err == nil {
		if cpu < 0 || cpu >= maxCPUs || !old.IsSet(cpu) {
			err = fault.Inputf("processor %d is not in the affinity mask of this process; see taskset -p %d", cpu, os.Getpid())
		} else {
			set.Set(cpu)
			err = unix.SchedSetaffinity(0, &set)
		}
	}
	if err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("pin a thread to processor %d: %w", cpu, err)
	}
	return func() {
		// Should the mask have shrunk meanwhile, the thread stays pinned and
		// ends with its goroutine, for it is not unlocked.
		if unix.SchedSetaffinity(0, &old) == nil {
			runtime.UnlockOSThread()
		}
	}, nil
}

// ThreadID is the kernel's number of the calling thread.
func ThreadID() int { return unix.Gettid() }

// ThreadCPU is the calling thread's time on a processor since it began.
func ThreadCPU() time.Duration { return readClock(unix.CLOCK_THREAD_CPUTIME_ID) }

// Monotonic is the time since some start, by a clock that nothing adjusts. It
// is a system call: time milliseconds with it, not nanoseconds.
func Monotonic() time.Duration { return readClock(unix.CLOCK_MONOTONIC_RAW) }

func readClock(id int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		panic(err) // every kernel that Go runs on has these clocks
	}
	return time.Duration(t.Nano())
}

// ThreadUsage returns what the calling thread has used so far.
func ThreadUsage() Usage {
	u := Usage{CPU: ThreadCPU(), Faults: ThreadFaults()}
	data, err := os.ReadFile("/proc/thread-self/schedstat")
	if err == nil {
		u.Waited, u.Scheduled = parseSchedstat(data)
	}
	return u
}

// ThreadFaults returns the calling thread's page faults so far.
func ThreadFaults() Faults {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &r); err != nil {
		panic(err) // only a wrong argument fails
	}
	return Faults{Minor: r.Minflt, Major: r.Majflt}
}

// parseSchedstat reads the second of "on-cpu-ns run-delay-ns timeslices".
func parseSchedstat(data []byte) (time.Duration, bool) {
	f := bytes.Fields(data)
	if len(f) != 3 {
		return 0, false
	}
	ns, err := strconv.ParseInt(string(f[1]), 10, 64)
	return time.Duration(ns), err == nil && ns >= 0
}

// autogroup is the file of this session's scheduling group: "/autogroup-7 nice 0".
const autogroup = "/proc/self/autogroup"

// RaiseAutogroup gives the scheduling group of this session the highest
// priority that the process may set, and says what it is now; restore puts it
// back. Under autogroup scheduling the nice value of a process counts within
// its session only, so that background work in another session is as strong as
// this one.
func RaiseAutogroup() (now string, restore func(), err error) {
	restore = func() {}
	before, err := os.ReadFile(autogroup)
	if err != nil {
		return "", restore, fault.Missingf("no autogroup scheduling here")
	}
	_, nice, ok := strings.Cut(strings.TrimSpace(string(before)), " nice ")
	if !ok {
		return "", restore, fault.Missingf("%s: %q is not a group with its nice value", autogroup, before)
	}
	if err := os.WriteFile(autogroup, []byte("-20"), 0); err != nil {
		return "autogroup nice " + nice, restore, fault.Missingf("the priority of the autogroup cannot be raised: %w", err)
	}
	return "autogroup nice -20", func() {
		// Lowering a priority is allowed to all; should the session have
		// ended, there is nothing to put back.
		_ = os.WriteFile(autogroup, []byte(nice), 0)
	}, nil
}
