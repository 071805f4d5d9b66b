package linux

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"nicprof/internal/fault"
)

// hugeAlign is the boundary of a region: the huge page of amd64, and of arm64
// with 4 KiB pages.
const hugeAlign = 2 << 20

// Map returns size bytes of memory. With HugePages it asks for huge ones, first
// from the pool that the administrator reserved, then transparent ones; what it
// got is told by Pages once the memory is touched. A page of no access lies
// before the region, so that the kernel keeps it apart from its neighbours.
func Map(size int64, want Pages) (*Region, error) {
	if size <= 0 {
		return nil, fault.Inputf("a region of %d B: expected at least 1", size)
	}
	length := (size + hugeAlign - 1) &^ (hugeAlign - 1)
	if want == HugePages {
		mem, err := unix.Mmap(-1, 0, int(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_HUGETLB)
		if err == nil {
			return &Region{whole: mem, base: unsafe.Pointer(&mem[0]), size: size, want: want}, nil
		}
	}
	mem, err := unix.Mmap(-1, 0, int(length+2*hugeAlign), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fault.Missingf("no %d MiB of memory: %w", size>>20, err)
	}
	start := hugeAlign - int(uintptr(unsafe.Pointer(&mem[0]))%hugeAlign)
	inner := mem[start : start+int(length)]
	advice := unix.MADV_NOHUGEPAGE
	if want == HugePages {
		advice = unix.MADV_HUGEPAGE
	}
	if err := unix.Mprotect(inner, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return nil, fault.Missingf("no %d MiB of memory: %w", size>>20, joinUnmap(err, mem))
	}
	// A kernel without transparent huge pages refuses the advice; then the
	// pages are small, which Pages tells.
	_ = unix.Madvise(inner, advice)
	return &Region{whole: mem, base: unsafe.Pointer(&inner[0]), size: size, want: want}, nil
}

func joinUnmap(err error, mem []byte) error {
	if uerr := unix.Munmap(mem); uerr != nil {
		return fmt.Errorf("%w (and %w)", err, uerr)
	}
	return err
}

// Collapse asks the kernel to put a touched region on huge pages now. It is
// a wish: Pages tells what came of it.
func (r *Region) Collapse() {
	if r.want == HugePages {
		_ = unix.Madvise(r.Bytes()[:r.size&^(hugeAlign-1)], unix.MADV_COLLAPSE)
	}
}

// Lock keeps the region in memory. It needs RLIMIT_MEMLOCK or CAP_IPC_LOCK, and
// touches every page that was not.
func (r *Region) Lock() error {
	if err := unix.Mlock(r.Bytes()); err != nil {
		return fault.Missingf("memory cannot be locked: %w; raise ulimit -l", err)
	}
	return nil
}

// Close gives the memory back. Nothing may use it afterwards.
func (r *Region) Close() error { return unix.Munmap(r.whole) }

// Pages says on which pages the region lies now.
func (r *Region) Pages() (Got, error) {
	data, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return Got{}, fault.Missingf("the page sizes cannot be read: %w", err)
	}
	g, ok := parseSmaps(data, uint64(uintptr(r.base)))
	if !ok {
		return Got{}, fault.Missingf("the page sizes cannot be read: no mapping at %p", r.base)
	}
	if size, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"); err == nil && g.Huge == 0 {
		g.Huge, _ = strconv.ParseInt(strings.TrimSpace(string(size)), 10, 64) // a number that cannot be read is unknown
	}
	return g, nil
}

// parseSmaps returns the pages of the mapping that holds an address.
func parseSmaps(data []byte, address uint64) (Got, bool) {
	var g Got
	inside := false
	sc := bufio.NewScanner(bytes.NewReader(data))
	for sc.Scan() {
		line := sc.Text()
		key, rest, _ := strings.Cut(line, " ")
		if !strings.HasSuffix(key, ":") {
			if inside {
				break
			}
			low, high, ok := strings.Cut(key, "-")
			from, err1 := strconv.ParseUint(low, 16, 64)
			to, err2 := strconv.ParseUint(high, 16, 64)
			inside = ok && err1 == nil && err2 == nil && from <= address && address < to
			continue
		}
		if !inside {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if err != nil || kb < 0 || kb > 1<<50 {
			continue // flags
		}
		n := kb << 10
		switch key {
		case "KernelPageSize:":
			g.Page = n
		case "Rss:":
			g.Resident += n
		case "AnonHugePages:":
			g.HugeBytes += n
		case "Private_Hugetlb:", "Shared_Hugetlb:":
			g.HugeBytes += n
			g.Resident += n
		}
	}
	if g.Page >= hugeAlign { // from the reserved pool
		g.Huge = g.Page
	}
	return g, inside && g.Page > 0
}

// Available is the memory that this process may still take: the least of what
// the machine has and what its control groups (version 1 or 2) leave.
func Available() (Memory, error) {
	return available(os.DirFS("/"))
}

func available(root fs.FS) (Memory, error) {
	data, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return Memory{}, fault.Missingf("the memory available cannot be read: %w", err)
	}
	kb, ok := field(data, "MemAvailable:")
	if !ok {
		return Memory{}, fault.Missingf("the memory available cannot be read: /proc/meminfo has no MemAvailable")
	}
	m := Memory{Bytes: kb << 10, From: "MemAvailable"}
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return m, nil // a kernel without control groups
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		top, limit, used := "sys/fs/cgroup", "memory.max", "memory.current"
		switch {
		case parts[0] == "0" && parts[1] == "":
		case strings.Contains(","+parts[1]+",", ",memory,"):
			top, limit, used = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
		default:
			continue
		}
		// A limit holds for all groups below the one that has it. Inside a
		// container the path is often that of the host, and absent here: then
		// its tail is walked up to the top, which is the container's own.
		for dir := path.Join(top, parts[2]); ; dir = path.Dir(dir) {
			if most, err := number(root, path.Join(dir, limit)); err == nil {
				now, _ := number(root, path.Join(dir, used)) // absent at the root: nothing is known to be used
				if stat, err := fs.ReadFile(root, path.Join(dir, "memory.stat")); err == nil {
					cached, _ := field(stat, "inactive_file ") // files that the kernel drops when memory is short
					now = max(0, now-cached)
				}
				if left := max(0, most-now); left < m.Bytes {
					m = Memory{left, "control group " + max("/", strings.TrimPrefix(dir, top)) + " (" + limit + ")"}
				}
			}
			if dir == top || !strings.HasPrefix(dir, top) {
				break
			}
		}
	}
	return m, nil
}

// field returns the number after a key at the start of a line.
func field(data []byte, key string) (int64, bool) {
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			f := strings.Fields(rest)
			if len(f) == 0 {
				return 0, false
			}
			n, err := strconv.ParseInt(f[0], 10, 64)
			return n, err == nil && n >= 0 && n < 1<<50
		}
	}
	return 0, false
}

func number(root fs.FS, name string) (int64, error) {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err == nil && n < 0 {
		err = fmt.Errorf("%s: %d", name, n)
	}
	return n, err
}

// MachineID tells this machine apart from others, as far as the system keeps an
// identity: the machine's id, or its boot's.
func MachineID() string {
	for _, name := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id", "/proc/sys/kernel/random/boot_id"} {
		if data, err := os.ReadFile(name); err == nil {
			if id := strings.TrimSpace(string(data)); id != "" && id != "uninitialized" {
				return id
			}
		}
	}
	return ""
}
