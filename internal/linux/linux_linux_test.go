package linux

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unsafe"

	"nicprof/internal/fault"
)

func TestPinPutsThreadOnOneProcessorAndBack(t *testing.T) {
	before, err := CPUs()
	if err != nil || len(before) == 0 {
		t.Fatalf("processors %v, %v", before, err)
	}
	for _, cpu := range before {
		unpin, err := Pin(cpu)
		if err != nil {
			t.Fatal(err)
		}
		if now, err := CPUs(); err != nil || len(now) != 1 || now[0] != cpu {
			t.Errorf("pinned to %d: mask %v, %v", cpu, now, err)
		}
		unpin()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if after, err := CPUs(); err != nil || len(after) != len(before) {
		t.Errorf("unpinned: mask %v, %v, before %v", after, err, before)
	}
}

func TestPinRefusesProcessorOutsideMask(t *testing.T) {
	for _, cpu := range []int{-1, maxCPUs - 1, maxCPUs, 1 << 30} {
		if _, err := Pin(cpu); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "affinity mask") {
			t.Errorf("processor %d: %v, want an input fault about the mask", cpu, err)
		}
	}
}

func TestThreadUsageCountsWorkAndFaults(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := ThreadUsage()
	r, err := Map(64<<12, SmallPages)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.Touch(0, r.Size())
	for ThreadCPU()-before.CPU < 5*time.Millisecond {
	}
	after := ThreadUsage()
	if got := after.Faults.Sub(before.Faults).Minor; got < 64 {
		t.Errorf("64 fresh pages touched: %d faults", got)
	}
	if after.Waited < before.Waited {
		t.Errorf("waited %v, before %v", after.Waited, before.Waited)
	}
	again := ThreadFaults()
	r.Touch(0, r.Size())
	if now := ThreadFaults().Sub(again); now.Minor > 2 {
		t.Errorf("pages touched before: %d faults", now.Minor)
	}
}

func TestMonotonicRises(t *testing.T) {
	last := Monotonic()
	for range 1000 {
		now := Monotonic()
		if now < last {
			t.Fatalf("%v after %v", now, last)
		}
		last = now
	}
}

func TestRegionsHoldTheirBytesOnPagesThatAreTold(t *testing.T) {
	for _, want := range []Pages{SmallPages, HugePages} {
		const size = 5<<20 + 12345
		r, err := Map(size, want)
		if err != nil {
			t.Fatal(err)
		}
		if uintptr(r.Base())%hugeAlign != 0 || r.Size() != size || len(r.Bytes()) != size {
			t.Errorf("base %p, size %d", r.Base(), r.Size())
		}
		if g, err := r.Pages(); err != nil || g.Resident != 0 {
			t.Errorf("untouched: %+v, %v", g, err)
		}
		r.Touch(0, size)
		r.Collapse()
		*(*byte)(unsafe.Add(r.Base(), size-1)) = 7
		g, err := r.Pages()
		if err != nil || g.Page < 4096 || g.Resident < size || g.HugeBytes > g.Resident {
			t.Errorf("touched: %+v, %v", g, err)
		}
		if want == SmallPages && g.HugeBytes != 0 {
			t.Errorf("huge pages that nobody asked for: %+v", g)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, size := range []int64{0, -1} {
		if _, err := Map(size, SmallPages); fault.KindOf(err) != fault.Input {
			t.Errorf("a region of %d B: %v", size, err)
		}
	}
	if _, err := Map(1<<50, SmallPages); fault.KindOf(err) != fault.Missing {
		t.Errorf("a region of 2^50 B: %v, want a missing fault", err)
	}
}

func TestRegionOfNeighboursIsCountedAlone(t *testing.T) {
	var rs []*Region
	for range 3 {
		r, err := Map(2<<20, SmallPages)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		rs = append(rs, r)
	}
	rs[1].Touch(0, 1<<20)
	for i, want := range []int64{0, 1 << 20, 0} {
		if g, err := rs[i].Pages(); err != nil || g.Resident != want {
			t.Errorf("region %d: %+v, %v; want %d B resident", i, g, err, want)
		}
	}
}

const smaps = `55d0c0000000-55d0c0021000 rw-p 00000000 00:00 0                          [heap]
Size:                132 kB
KernelPageSize:        4 kB
Rss:                  80 kB
AnonHugePages:         0 kB
VmFlags: rd wr mr mw me ac sd
7f0000000000-7f0000800000 rw-p 00000000 00:00 0
Size:               8192 kB
KernelPageSize:        4 kB
MMUPageSize:           4 kB
Rss:                6144 kB
AnonHugePages:      4096 kB
VmFlags: rd wr mr mw me ac sd hg
7f1000000000-7f1000400000 rw-p 00000000 00:0f 42                         /anon_hugepage (deleted)
Size:               4096 kB
KernelPageSize:     2048 kB
Rss:                   0 kB
AnonHugePages:         0 kB
Private_Hugetlb:    4096 kB
`

func TestParseSmaps(t *testing.T) {
	for _, c := range []struct {
		address uint64
		want    Got
		ok      bool
	}{
		{0x7f0000000000, Got{Page: 4 << 10, HugeBytes: 4 << 20, Resident: 6 << 20}, true},
		{0x7f00007fffff, Got{Page: 4 << 10, HugeBytes: 4 << 20, Resident: 6 << 20}, true},
		{0x7f0000800000, Got{}, false},
		{0x7f1000000000, Got{Page: 2 << 20, Huge: 2 << 20, HugeBytes: 4 << 20, Resident: 4 << 20}, true},
		{1, Got{}, false},
	} {
		if g, ok := parseSmaps([]byte(smaps), c.address); ok != c.ok || ok && g != c.want {
			t.Errorf("%#x: %+v, %v, want %+v, %v", c.address, g, ok, c.want, c.ok)
		}
	}
}

func FuzzParseSmaps(f *testing.F) {
	f.Add([]byte(smaps), uint64(0x7f0000000000))
	f.Add([]byte("0-f\nKernelPageSize: 4 kB"), uint64(3))
	f.Fuzz(func(t *testing.T, data []byte, address uint64) {
		if g, ok := parseSmaps(data, address); ok && (g.Page <= 0 || g.HugeBytes < 0 || g.Resident < 0) {
			t.Errorf("%+v", g)
		}
	})
}

func FuzzParseSchedstat(f *testing.F) {
	f.Add([]byte("123 456 7\n"))
	f.Add([]byte("1 -2 3"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if d, ok := parseSchedstat(data); ok && d < 0 {
			t.Errorf("%q: %v", data, d)
		}
	})
}

func TestParseSchedstat(t *testing.T) {
	if d, ok := parseSchedstat([]byte("123 456 7\n")); !ok || d != 456 {
		t.Errorf("%v, %v", d, ok)
	}
}

func TestAvailableIsTheLeastLimit(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	info := file("MemTotal: 999 kB\nMemAvailable:    8192 kB\n")
	for name, c := range map[string]struct {
		fs   fstest.MapFS
		want int64
		from string
	}{
		"no groups": {fstest.MapFS{"proc/meminfo": info}, 8 << 20, "MemAvailable"},
		"version 2": {fstest.MapFS{"proc/meminfo": info, "proc/self/cgroup": file("0::/a/b\n"),
			"sys/fs/cgroup/a/memory.max":       file("3145728\n"),
			"sys/fs/cgroup/a/memory.current":   file("2097152\n"),
			"sys/fs/cgroup/a/memory.stat":      file("anon 5\ninactive_file 1048576\n"),
			"sys/fs/cgroup/a/b/memory.max":     file("max\n"),
			"sys/fs/cgroup/a/b/memory.current": file("17\n")}, 2 << 20, "control group /a (memory.max)"},
		"version 1": {fstest.MapFS{"proc/meminfo": info, "proc/self/cgroup": file("4:memory:/x\n0::/\n"),
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("1048576"),
			"sys/fs/cgroup/memory/x/memory.usage_in_bytes": file("2097152")}, 0, "control group /x (memory.limit_in_bytes)"},
		"a container": {fstest.MapFS{"proc/meminfo": info, "proc/self/cgroup": file("0::/host/path/absent\n"),
			"sys/fs/cgroup/memory.max": file("4194304"), "sys/fs/cgroup/memory.current": file("0")}, 4 << 20, "control group / (memory.max)"},
		"unlimited": {fstest.MapFS{"proc/meminfo": info, "proc/self/cgroup": file("4:memory:/x\n"),
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("9223372036854771712")}, 8 << 20, "MemAvailable"},
	} {
		m, err := available(c.fs)
		if err != nil || m != (Memory{c.want, c.from}) {
			t.Errorf("%s: %+v, %v, want %d from %s", name, m, err, c.want, c.from)
		}
	}
	for name, fs := range map[string]fstest.MapFS{
		"no meminfo": {}, "torn meminfo": {"proc/meminfo": file("MemAvailable:\n")}, "negative": {"proc/meminfo": file("MemAvailable: -4 kB")},
	} {
		if _, err := available(fs); fault.KindOf(err) != fault.Missing {
			t.Errorf("%s: %v, want a missing fault", name, err)
		}
	}
}

func TestAutogroupIsRaisedAndPutBack(t *testing.T) {
	before, err := os.ReadFile(autogroup)
	if err != nil {
		t.Skip("no autogroup scheduling in this kernel")
	}
	now, restore, err := RaiseAutogroup()
	if err != nil {
		if fault.KindOf(err) != fault.Missing {
			t.Error(err)
		}
		t.Skip("no right to raise a priority: ", err)
	}
	raised, err := os.ReadFile(autogroup)
	if err != nil || !strings.Contains(string(raised), now[len("autogroup "):]) {
		t.Errorf("%q is %q, %v", now, raised, err)
	}
	restore()
	if after, err := os.ReadFile(autogroup); err != nil || string(after) != string(before) {
		t.Errorf("put back: %q, before %q, %v", after, before, err)
	}
}
