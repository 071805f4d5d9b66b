package microbench

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// What follows reads the text formats of /proc and /sys (proc(5), sysfs(5), and
// Documentation/admin-guide of the Linux kernel). A text that is not of the
// format expected gives an error or not ok, and then no finding.

// mostCPUs is the most processors that Linux is built for (NR_CPUS).
const mostCPUs = 8192

// parseCPUList reads a list such as 0-3,8.
func parseCPUList(s string) ([]int, error) {
	var cpus []int
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			return nil, err
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(last); err != nil {
				return nil, err
			}
		}
		if from < 0 || to < from || to >= mostCPUs || len(cpus) >= mostCPUs {
			return nil, fmt.Errorf("list of processors %q", s)
		}
		for c := from; c <= to; c++ {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}

// formatCPUList writes ascending numbers as parseCPUList reads them.
func formatCPUList(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, strconv.Itoa(cpus[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", cpus[i], cpus[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// keyed returns the value of the first line "key: value" or "key : value".
func keyed(text, key string) (string, bool) {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}

// memory returns an entry of /proc/meminfo, bytes.
func memory(meminfo, key string) (int64, bool) {
	v, ok := keyed(meminfo, key)
	if !ok {
		return 0, false
	}
	kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(v, "kB")), 10, 64)
	return kb << 10, err == nil && kb >= 0 && kb < 1<<50
}

// parseBytes reads a size such as 32K or 16M of a cache.
func parseBytes(s string) (int64, error) {
	unit := int64(1)
	for i, suffix := range []string{"K", "M", "G"} {
		if strings.HasSuffix(s, suffix) {
			unit = 1 << (10 * (i + 1))
			s = strings.TrimSuffix(s, suffix)
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, err
	}
	if n < 0 || n > 1<<30 {
		return 0, errors.New("size out of range")
	}
	return n * unit, nil
}

// selected returns the choice in brackets: "always [madvise] never".
func selected(s string) (string, bool) {
	_, rest, ok := strings.Cut(s, "[")
	choice, _, closed := strings.Cut(rest, "]")
	return choice, ok && closed
}

// parseSteal returns the share of all processors' time since boot that the
// hypervisor gave to others, from the first line of /proc/stat: user nice
// system idle iowait irq softirq steal.
func parseSteal(stat string) (float64, bool) {
	line, _, _ := strings.Cut(stat, "\n")
	f := strings.Fields(line)
	const stealAt = 8
	if len(f) <= stealAt || f[0] != "cpu" {
		return 0, false
	}
	var total, steal float64
	for i, s := range f[1 : stealAt+1] {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return 0, false
		}
		total += float64(v)
		if i+1 == stealAt {
			steal = float64(v)
		}
	}
	return steal / max(1, total), total > 0
}

// parseProcess returns the name and the processor time, ticks, of a
// /proc/PID/stat. The name stands in brackets and may hold anything.
func parseProcess(stat string) (name string, ticks uint64, ok bool) {
	open, end := strings.Index(stat, "("), strings.LastIndex(stat, ")")
	if open < 0 || end < open {
		return "", 0, false
	}
	f := strings.Fields(stat[end+1:])
	const user, system = 11, 12 // fields 14 and 15 of proc(5), which counts from pid
	if len(f) <= system {
		return "", 0, false
	}
	u, err1 := strconv.ParseUint(f[user], 10, 64)
	s, err2 := strconv.ParseUint(f[system], 10, 64)
	return stat[open+1 : end], u + s, err1 == nil && err2 == nil
}

// parseCgroups returns the path of a process in the unified hierarchy (the
// empty controller) and in that of each version 1 controller.
func parseCgroups(cgroup string) map[string]string {
	paths := map[string]string{}
	for line := range strings.Lines(cgroup) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) < 3 || !strings.HasPrefix(f[2], "/") {
			continue
		}
		for controller := range strings.SplitSeq(f[1], ",") {
			paths[controller] = path.Clean(f[2])
		}
	}
	return paths
}

// parseQuota reads cpu.max: "max 100000" or "quota period", µs. It returns the
// number of processors, 0 for no limit.
func parseQuota(s string) (float64, error) {
	quota, period, ok := strings.Cut(strings.TrimSpace(s), " ")
	if !ok {
		return 0, fmt.Errorf("quota %q", s)
	}
	if quota == "max" {
		return 0, nil
	}
	q, err := strconv.ParseInt(quota, 10, 64)
	if err != nil {
		return 0, err
	}
	p, err := strconv.ParseInt(period, 10, 64)
	if err != nil {
		return 0, err
	}
	if q < 0 { // version 1: no limit
		return 0, nil
	}
	if p <= 0 {
		return 0, fmt.Errorf("quota %q", s)
	}
	return float64(q) / float64(p), nil
}

// parseKernel returns the first two numbers of a release such as
// 5.15.0-1013-bluefield.
func parseKernel(release string) (major, minor int, ok bool) {
	first, rest, ok := strings.Cut(release, ".")
	if !ok {
		return 0, 0, false
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	major, err1 := strconv.Atoi(first)
	minor, err2 := strconv.Atoi(rest[:end])
	return major, minor, err1 == nil && err2 == nil && major >= 0
}

// parseLimit returns the soft limit of a /proc/PID/limits line.
func parseLimit(limits, name string) (string, bool) {
	for line := range strings.Lines(limits) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			if f := strings.Fields(rest); len(f) > 0 {
				return f[0], true
			}
		}
	}
	return "", false
}

// parsePressure returns the share of the last ten seconds in which some task
// waited, from a file of /proc/pressure: "some avg10=1.23 avg60=...".
func parsePressure(s string) (float64, bool) {
	for line := range strings.Lines(s) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "some" {
			continue
		}
		if v, ok := strings.CutPrefix(f[1], "avg10="); ok {
			percent, err := strconv.ParseFloat(v, 64)
			return percent / 100, err == nil && percent >= 0 && percent <= 100
		}
	}
	return 0, false
}
