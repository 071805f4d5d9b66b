package host

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// cache is one data or unified cache as the machine reports it.
type cache struct {
	Level    int
	Bytes    int64
	Line     int
	Ways     int // 0: unknown
	SharedBy int // processors in use here that share one, 0: unknown
	From     string
}

// sysfsCaches reads the caches of a processor as the kernel lists them. allowed
// are the processors in use.
func sysfsCaches(root fs.FS, cpu int, allowed []int) []cache {
	dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/cache", cpu)
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return nil // as in many virtual machines
	}
	var found []cache
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "index") {
			continue
		}
		read := func(name string) string {
			data, err := fs.ReadFile(root, path.Join(dir, e.Name(), name))
			if err != nil {
				return ""
			}
			return strings.TrimSpace(string(data))
		}
		kind := read("type")
		level, err := strconv.Atoi(read("level"))
		bytes, ok := cacheSize(read("size"))
		if err != nil || !ok || level < 1 || kind != "Data" && kind != "Unified" {
			continue
		}
		c := cache{Level: level, Bytes: bytes, Line: 64, From: "sysfs"}
		if line, err := strconv.Atoi(read("coherency_line_size")); err == nil && line > 0 {
			c.Line = line
		}
		c.Ways, _ = strconv.Atoi(read("ways_of_associativity")) // absent: unknown
		shared := cpuList(read("shared_cpu_list"))
		for _, n := range allowed {
			if slices.Contains(shared, n) {
				c.SharedBy++
			}
		}
		found = append(found, c)
	}
	slices.SortFunc(found, func(a, b cache) int { return cmp.Compare(a.Level, b.Level) })
	return found
}

// cacheSize reads "48K" or "32M".
func cacheSize(s string) (int64, bool) {
	unit := int64(1)
	if n := len(s); n > 0 {
		switch s[n-1] {
		case 'K':
			unit, s = 1<<10, s[:n-1]
		case 'M':
			unit, s = 1<<20, s[:n-1]
		case 'G':
			unit, s = 1<<30, s[:n-1]
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n * unit, err == nil && n > 0 && n < 1<<30
}

// cpuList reads the kernel's "0-3,8".
func cpuList(s string) []int {
	var list []int
	for part := range strings.SplitSeq(s, ",") {
		low, high, ranged := strings.Cut(part, "-")
		from, err := strconv.Atoi(low)
		to := from
		if ranged && err == nil {
			to, err = strconv.Atoi(high)
		}
		if err != nil || from < 0 || to < from || to >= 1<<16 {
			continue
		}
		for n := from; n <= to; n++ {
			list = append(list, n)
		}
	}
	return list
}

// leaf is what cpuid returned.
type leaf struct{ eax, ebx, ecx, edx uint32 }

// cpuidCaches decodes the caches that a processor of the amd64 tells itself:
// leaf 4 (Intel) or 0x8000001D (AMD), which have the same format, or AMD's older
// 0x80000005 and 0x80000006, which a hypervisor may be all that it shows. read
// returns a leaf, zeros where there is none. cpus are in use.
func cpuidCaches(read func(number, sub uint32) leaf, cpus int) []cache {
	for _, number := range []uint32{4, 0x8000001D} {
		var found []cache
		for sub := range uint32(8) {
			l := read(number, sub)
			kind := l.eax & 31 // 0 none, 1 data, 2 instructions, 3 unified
			if kind == 0 {
				break
			}
			if kind == 2 {
				continue
			}
			line, parts, ways := l.ebx&0xfff+1, l.ebx>>12&0x3ff+1, l.ebx>>22+1
			found = append(found, cache{
				Level: int(l.eax >> 5 & 7), Line: int(line), Ways: int(ways),
				Bytes:    int64(line) * int64(parts) * int64(ways) * (int64(l.ecx) + 1),
				SharedBy: min(cpus, int(l.eax>>14&0xfff)+1),
				From:     fmt.Sprintf("cpuid leaf %#x", number),
			})
		}
		if len(found) > 0 {
			return found
		}
	}
	first, rest := read(0x80000005, 0), read(0x80000006, 0)
	var found []cache
	add := func(level int, bytes int64, line uint32, ways, shared int, number uint32) {
		if bytes > 0 && line > 0 {
			found = append(found, cache{Level: level, Bytes: bytes, Line: int(line), Ways: ways, SharedBy: shared,
				From: fmt.Sprintf("cpuid leaf %#x", number)})
		}
	}
	add(1, int64(first.ecx>>24)<<10, first.ecx&0xff, int(first.ecx>>16&0xff), 1, 0x80000005)
	add(2, int64(rest.ecx>>16)<<10, rest.ecx&0xff, oldWays[rest.ecx>>12&0xf], 1, 0x80000006)
	add(3, int64(rest.edx>>18)<<19, rest.edx&0xff, oldWays[rest.edx>>12&0xf], cpus, 0x80000006)
	return found
}

// oldWays are the associativities that leaf 0x80000006 encodes (AMD64
// Architecture Programmer's Manual, volume 3, appendix E.4).
var oldWays = [16]int{1: 1, 2: 2, 4: 4, 6: 8, 8: 16, 10: 32, 11: 48, 12: 64, 13: 96, 14: 128}
