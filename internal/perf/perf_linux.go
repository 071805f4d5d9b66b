package perf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Group counts events of one thread. Events of one type are one group of the
// kernel, counted over exactly the same time, as far as the counters suffice.
type Group struct {
	sets []*set
}

// set is one group of the kernel: a leader and its members, in order of the
// values that a read gives.
type set struct {
	kind   uint32
	leader int
	fds    []int
	events []Event
	base   []raw // state at Start
}

// Open opens events on a thread, 0 being the caller's own, which should then
// be locked to its goroutine. They do not count until Start. Events that
// cannot be opened are returned with the reason; a group in which none could
// is still usable, and counts nothing.
func Open(tid int, events []Event) (*Group, []Unavailable) {
	g := &Group{}
	var missing []Unavailable
	for _, e := range events {
		if err := g.add(tid, e); err != nil {
			missing = append(missing, Unavailable{e.Name, reason(err)})
		}
	}
	return g, missing
}

// add opens an event within the set of its type, or as the leader of a new one
// when there is none or the processor has no counter left for it beside the
// others.
func (g *Group) add(tid int, e Event) error {
	for _, s := range g.sets {
		if s.kind != e.Type {
			continue
		}
		fd, err := open(tid, e, s.leader)
		if err == nil {
			s.fds, s.events, s.base = append(s.fds, fd), append(s.events, e), append(s.base, raw{})
			return nil
		}
		if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSPC) {
			return err
		}
	}
	fd, err := open(tid, e, -1)
	if err != nil {
		return err
	}
	g.sets = append(g.sets, &set{kind: e.Type, leader: fd, fds: []int{fd}, events: []Event{e}, base: make([]raw, 1)})
	return nil
}

// open opens one event, and where the caller may not watch the kernel, its
// user level alone.
func open(tid int, e Event, leader int) (int, error) {
	attr := unix.PerfEventAttr{
		Type:        e.Type,
		Size:        uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Config:      e.Config,
		Read_format: unix.PERF_FORMAT_GROUP | unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
	}
	if leader < 0 {
		attr.Bits |= unix.PerfBitDisabled
	}
	if e.Type != TypeSoftware {
		attr.Bits |= unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
	}
	fd, err := unix.PerfEventOpen(&attr, tid, -1, leader, unix.PERF_FLAG_FD_CLOEXEC)
	forbidden := errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)
	if forbidden && e.Type == TypeSoftware && !e.KernelOnly {
		attr.Bits |= unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
		fd, err = unix.PerfEventOpen(&attr, tid, -1, leader, unix.PERF_FLAG_FD_CLOEXEC)
	}
	return fd, err
}

// reason says why an event did not open.
func reason(err error) string {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EINVAL):
		return "not supported by this machine"
	case errors.Is(err, unix.ENOSYS):
		return "not supported by this kernel"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		level := "unknown"
		if data, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid"); err == nil {
			level = strings.TrimSpace(string(data))
		}
		return "not permitted: needs CAP_PERFMON or a lower kernel.perf_event_paranoid, which is " + level
	case errors.Is(err, unix.EBUSY):
		return "another user holds the counters"
	}
	return err.Error()
}

// Start begins to count, from 0.
func (g *Group) Start() error {
	for _, s := range g.sets {
		state, err := s.read()
		if err != nil {
			return err
		}
		s.base = state
	}
	for _, s := range g.sets {
		if err := unix.IoctlSetInt(s.leader, unix.PERF_EVENT_IOC_ENABLE, unix.PERF_IOC_FLAG_GROUP); err != nil {
			return fmt.Errorf("starting the counters: %w", err)
		}
	}
	return nil
}

// Stop ends counting; Read still gives what was counted.
func (g *Group) Stop() error {
	for _, s := range g.sets {
		if err := unix.IoctlSetInt(s.leader, unix.PERF_EVENT_IOC_DISABLE, unix.PERF_IOC_FLAG_GROUP); err != nil {
			return fmt.Errorf("stopping the counters: %w", err)
		}
	}
	return nil
}

// Read returns the counts since Start by event, and the events that no counter
// was free for in all that time.
func (g *Group) Read() (map[string]Count, []Unavailable, error) {
	counts := map[string]Count{}
	var missing []Unavailable
	for _, s := range g.sets {
		state, err := s.read()
		if err != nil {
			return nil, nil, err
		}
		for i, e := range s.events {
			if c, ok := state[i].since(s.base[i]); ok {
				counts[e.Name] = c
			} else {
				missing = append(missing, Unavailable{e.Name, "never counted: the thread did not run, or no counter was free"})
			}
		}
	}
	return counts, missing, nil
}

// read returns the state of a set's counters. The kernel gives the number of
// values, the time enabled, the time running, and then the values.
func (s *set) read() ([]raw, error) {
	const word = 8
	buf := make([]byte, word*(3+len(s.fds)))
	n, err := unix.Read(s.leader, buf)
	if err != nil {
		return nil, fmt.Errorf("reading the counters: %w", err)
	}
	at := func(i int) uint64 { return binary.NativeEndian.Uint64(buf[word*i:]) }
	if n != len(buf) || at(0) != uint64(len(s.fds)) {
		return nil, fmt.Errorf("reading the counters: got %d bytes for %d events", n, len(s.fds))
	}
	state := make([]raw, len(s.fds))
	for i := range state {
		state[i] = raw{value: at(3 + i), enabled: at(1), running: at(2)}
	}
	return state, nil
}

// Close gives the counters back.
func (g *Group) Close() {
	for _, s := range g.sets {
		for _, fd := range s.fds {
			unix.Close(fd) // an event's descriptor has nothing to flush
		}
	}
	g.sets = nil
}
