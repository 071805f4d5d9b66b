package microbench

import (
	"cmp"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strconv"
	"time"

	"nicprof/internal/linux"
	"nicprof/internal/perf"
)

// probe is what a short measurement of this machine says: files tell neither
// what another guest takes nor which counters really count.
type probe struct {
	spin      spin
	clockNS   float64 // one read of the clock
	counters  []string
	uncounted []perf.Unavailable
	consumers []consumer
	look      func(name string) bool // for a program in PATH
}

// spin is what a thread that did nothing but read the clock saw.
type spin struct {
	wall, cpu time.Duration // its time, and its time on a processor
	gaps      time.Duration // sum of the gaps between two reads
	longest   time.Duration
	count     int
}

// consumer is another process that took processor time meanwhile.
type consumer struct {
	pid   int
	name  string
	share float64 // of one processor
}

const (
	spinTime = 200 * time.Millisecond
	// shortestGap is above the longest work of an undisturbed timer tick, and far
	// above a read of the clock.
	shortestGap = 20 * time.Microsecond
	// A process that takes less than leastShare is not named, nor are more than
	// mostConsumers.
	leastShare    = 0.1
	mostConsumers = 3
)

// probeHere measures this machine for about spinTime.
func probeHere(root fs.FS) *probe {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := &probe{look: func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	}}
	before := processTimes(root)
	p.spin = spinFor(spinTime)
	p.consumers = consumersOf(before, processTimes(root), p.spin.wall, os.Getpid())
	p.clockNS = clockRead()
	p.counters, p.uncounted = tryCounters(root)
	return p
}

// spinFor reads the clock until d is over. A gap is time that the thread could
// not use: another thread's, an interrupt's, or another guest's. Time that a
// hypervisor takes without telling counts as the thread's own processor time,
// but shows as a gap.
func spinFor(d time.Duration) spin {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var s spin
	cpu := linux.ThreadCPU()
	start := time.Now()
	for last := time.Duration(0); last < d; {
		now := time.Since(start)
		if gap := now - last; gap > shortestGap {
			s.gaps += gap
			s.count++
			s.longest = max(s.longest, gap)
		}
		last = now
		s.wall = now
	}
	s.cpu = linux.ThreadCPU() - cpu
	return s
}

// clockRead is what one read of the clock takes, ns: the least mean of many, a
// mean since the clock may be coarse.
func clockRead() float64 {
	const reads, tries = 100, 50
	least := time.Duration(1<<63 - 1)
	for range tries {
		start := time.Now()
		last := start
		for range reads {
			last = time.Now()
		}
		least = min(least, last.Sub(start))
	}
	return float64(least) / reads
}

// tryCounters opens each perf event and lets it count a little.
func tryCounters(root fs.FS) (counted []string, missing []perf.Unavailable) {
	cpuinfo, _ := fs.ReadFile(root, "proc/cpuinfo") // without it there are no raw events
	events := perf.EventsOf(cpuinfo)
	g, missing := perf.Open(0, events)
	defer g.Close()
	if err := g.Start(); err != nil {
		return nil, append(missing, perf.Unavailable{Event: "any", Reason: err.Error()})
	}
	spinFor(time.Millisecond)
	counts, idle, err := g.Read()
	if err != nil {
		return nil, append(missing, perf.Unavailable{Event: "any", Reason: err.Error()})
	}
	for _, e := range events {
		if _, ok := counts[e.Name]; ok {
			counted = append(counted, e.Name)
		}
	}
	return counted, append(missing, idle...)
}

// process is what a process took so far.
type process struct {
	name  string
	ticks uint64
}

// processTimes returns what each visible process took so far.
func processTimes(root fs.FS) map[int]process {
	times := map[int]process{}
	entries, err := fs.ReadDir(root, "proc")
	if err != nil {
		return times
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		data, err := fs.ReadFile(root, path.Join("proc", e.Name(), "stat"))
		if err != nil {
			continue // it has ended
		}
		if name, ticks, ok := parseProcess(string(data)); ok {
			times[pid] = process{name, ticks}
		}
	}
	return times
}

// tick is the unit of processor time in /proc: Linux shows 100 a second to user
// space on every architecture that Go runs on.
const tick = 10 * time.Millisecond

// consumersOf returns the processes other than self that took most between two
// readings, the biggest first.
func consumersOf(before, after map[int]process, wall time.Duration, self int) []consumer {
	var list []consumer
	for pid, now := range after {
		was, ok := before[pid]
		if !ok || pid == self || now.ticks < was.ticks {
			continue
		}
		share := float64(now.ticks-was.ticks) * float64(tick) / float64(wall)
		if share >= leastShare {
			list = append(list, consumer{pid, now.name, share})
		}
	}
	slices.SortFunc(list, func(a, b consumer) int {
		return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(a.pid, b.pid))
	})
	return list[:min(len(list), mostConsumers)]
}
