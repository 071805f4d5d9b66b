package perf

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openHere locks the test to its thread and opens events on it.
func openHere(t *testing.T, events ...Event) (*Group, []Unavailable) {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	g, missing := Open(0, events)
	t.Cleanup(g.Close)
	return g, missing
}

func software(name string) Event {
	for _, e := range Software {
		if e.Name == name {
			return e
		}
	}
	panic(name)
}

// touch maps fresh memory and writes to each of its pages.
func touch(pages int) error {
	size := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, pages*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	if err := unix.Madvise(mem, unix.MADV_NOHUGEPAGE); err != nil && err != unix.EINVAL { // EINVAL: a kernel without huge pages
		return err
	}
	for i := 0; i < len(mem); i += size {
		mem[i] = 1
	}
	return unix.Munmap(mem)
}

func touchOK(t *testing.T, pages int) {
	t.Helper()
	if err := touch(pages); err != nil {
		t.Fatal(err)
	}
}

// TestPageFaults: each fresh page that is touched is a fault, counted from
// Start to Stop and not beyond.
func TestPageFaults(t *testing.T) {
	const pages = 300
	g, missing := openHere(t, software("page-faults"), software("task-clock"))
	if len(missing) > 0 {
		t.Skipf("no software events here: %v", missing)
	}
	touchOK(t, pages) // before Start: must not count
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	counts, _, err := g.Read()
	if err != nil {
		t.Fatal(err)
	}
	if before := counts["page-faults"].Value; before >= pages {
		t.Errorf("%v faults before the first touch: those before Start are counted", before)
	}
	touchOK(t, pages)
	if err := g.Stop(); err != nil {
		t.Fatal(err)
	}
	stopped, unscheduled, err := g.Read()
	if err != nil || len(unscheduled) > 0 {
		t.Fatal(err, unscheduled)
	}
	if got := stopped["page-faults"]; got.Value < pages || got.Running != 1 {
		t.Errorf("%+v faults, want at least %d, counted all the time", got, pages)
	}
	if got := stopped["task-clock"].Value; got <= 0 {
		t.Errorf("task-clock %v ns", got)
	}
	touchOK(t, pages)
	if again, _, err := g.Read(); err != nil || again["page-faults"] != stopped["page-faults"] {
		t.Errorf("after Stop %v became %v, %v", stopped, again, err)
	}
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	if again, _, err := g.Read(); err != nil || again["page-faults"].Value >= pages {
		t.Errorf("a second Start does not begin at 0: %v, %v", again, err)
	}
}

// TestOtherThread counts another thread by its id: the faults of the caller are
// not its own.
func TestOtherThread(t *testing.T) {
	const pages = 300
	ids, work, done := make(chan int), make(chan int, 1), make(chan error, 1)
	runtime.LockOSThread() // so that the worker has another thread
	defer runtime.UnlockOSThread()
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		ids <- unix.Gettid()
		done <- touch(<-work)
	}()
	g, missing := Open(<-ids, []Event{software("page-faults")})
	defer g.Close()
	if len(missing) > 0 {
		work <- 1
		t.Skipf("no software events here: %v", missing)
	}
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	touchOK(t, pages*3)
	work <- pages
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	counts, _, err := g.Read()
	if got := counts["page-faults"].Value; err != nil || got < pages || got >= pages*3 {
		t.Errorf("%v faults, %v; want about %d", got, err, pages)
	}
}

// TestEachEvent: whatever the machine has, every event is either a number or a
// reason, and none is both.
func TestEachEvent(t *testing.T) {
	cpuinfo, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	events := append(EventsOf(cpuinfo), Event{Name: "no such event", Type: TypeHardware, Config: 1 << 20})
	g, missing := openHere(t, events...)
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	sum := 0
	for i := range 1 << 22 {
		sum += i ^ sum
	}
	runtime.KeepAlive(sum)
	counts, unscheduled, err := g.Read()
	if err != nil {
		t.Fatal(err)
	}
	why := map[string]string{}
	for _, u := range append(missing, unscheduled...) {
		why[u.Event] = u.Reason
	}
	for _, e := range events {
		c, counted := counts[e.Name]
		if counted == (why[e.Name] != "") {
			t.Errorf("%s: counted %v, reason %q", e.Name, counted, why[e.Name])
		}
		if counted && (c.Running <= 0 || c.Running > 1) {
			t.Errorf("%s: %+v", e.Name, c)
		}
	}
	if c, ok := counts["instructions"]; ok && c.Value < 1<<22 {
		t.Errorf("%v instructions for a loop of %d turns", c.Value, 1<<22)
	}
	if why["no such event"] == "" {
		t.Error("an event that no machine has is counted")
	}
}

func TestReasons(t *testing.T) {
	for err, want := range map[error]string{
		unix.ENOENT: "not supported by this machine",
		unix.EACCES: "perf_event_paranoid",
		unix.ENOSYS: "kernel",
		unix.EBUSY:  "another user",
		unix.EMFILE: "too many open files",
	} {
		if got := reason(fmt.Errorf("wrapped: %w", err)); !strings.Contains(got, want) {
			t.Errorf("%v: %q does not say %q", err, got, want)
		}
	}
}

// TestCloseFreesDescriptors: opening and closing many groups leaves none open.
func TestCloseFreesDescriptors(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := open()
	for range 50 {
		g, _ := Open(0, Software)
		g.Close()
	}
	if after := open(); after > before+10 {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
