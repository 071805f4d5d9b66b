package microbench

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"nicprof/internal/table"
)

// machine is a Linux machine as its /proc and /sys describe it.
type machine struct {
	root fs.FS  // its file system
	live *probe // measured just now; nil for a copy of another machine
}

// checks are what is looked at, in the order of the findings.
var checks = []struct {
	topic string
	look  func(*machine) []Finding
}{
	{"processors", (*machine).processors},
	{"frequency", (*machine).frequency},
	{"turbo", (*machine).turbo},
	{"smt", (*machine).smt},
	{"hypervisor", (*machine).hypervisor},
	{"lost time", (*machine).lostTime},
	{"load", (*machine).load},
	{"autogroup", (*machine).autogroup},
	{"isolation", (*machine).isolation},
	{"numa", (*machine).numa},
	{"huge pages", (*machine).hugePages},
	{"memory", (*machine).memory},
	{"cache", (*machine).cache},
	{"cgroup", (*machine).cgroup},
	{"sandbox", (*machine).sandbox},
	{"clock", (*machine).clock},
	{"counters", (*machine).counters},
	{"kernel", (*machine).kernel},
	{"mitigations", (*machine).mitigations},
	{"rights", (*machine).rights},
	{"tools", (*machine).tools},
}

// inspect returns what would spoil a measurement on the machine, and what would
// not. What the machine does not tell is left out.
func (m *machine) inspect() []Finding {
	var found []Finding
	for _, c := range checks {
		for _, f := range c.look(m) {
			f.Topic = c.topic
			found = append(found, f)
		}
	}
	return found
}

func fine(format string, a ...any) []Finding {
	return []Finding{{Level: LevelOK, Text: fmt.Sprintf(format, a...)}}
}

func warn(remedy, format string, a ...any) []Finding {
	return []Finding{{Level: LevelWarning, Text: fmt.Sprintf(format, a...), Remedy: remedy}}
}

// text returns a file's content without blanks around it, and whether there is
// such a file.
func (m *machine) text(name string) (string, bool) {
	data, err := fs.ReadFile(m.root, name)
	return strings.TrimSpace(string(data)), err == nil
}

// number returns a file's content as a number.
func (m *machine) number(name string) (int64, bool) {
	s, _ := m.text(name)
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// list returns a file's content as a list of processors.
func (m *machine) list(name string) []int {
	s, _ := m.text(name)
	cpus, err := parseCPUList(s)
	if err != nil {
		return nil
	}
	return cpus
}

func (m *machine) glob(pattern string) []string {
	names, err := fs.Glob(m.root, pattern)
	if err != nil {
		panic(err) // the pattern is ours
	}
	return names
}

// allowed returns the processors that this process may run on.
func (m *machine) allowed() []int {
	status, _ := m.text("proc/self/status")
	s, _ := keyed(status, "Cpus_allowed_list")
	cpus, err := parseCPUList(s)
	if err != nil {
		return nil
	}
	return cpus
}

// cpuFile names a file of a processor in sysfs.
func cpuFile(cpu int, name string) string {
	return fmt.Sprintf("sys/devices/system/cpu/cpu%d/%s", cpu, name)
}

// byValue groups processors by what a file of theirs says.
func (m *machine) byValue(cpus []int, name string) map[string][]int {
	groups := map[string][]int{}
	for _, c := range cpus {
		if v, ok := m.text(cpuFile(c, name)); ok {
			groups[v] = append(groups[v], c)
		}
	}
	return groups
}

func (m *machine) guest() bool {
	info, _ := m.text("proc/cpuinfo")
	flags, _ := keyed(info, "flags")
	if slices.Contains(strings.Fields(flags), "hypervisor") {
		return true
	}
	_, ok := m.hypervisorName()
	return ok
}

// hypervisorName looks where a hypervisor leaves its name.
func (m *machine) hypervisorName() (string, bool) {
	for _, name := range []string{"sys/hypervisor/type", "proc/device-tree/hypervisor/compatible"} {
		if s, ok := m.text(name); ok && s != "" {
			return strings.Trim(s, "\x00"), true
		}
	}
	vendor, _ := m.text("sys/class/dmi/id/sys_vendor")
	product, _ := m.text("sys/class/dmi/id/product_name")
	both := vendor + " " + product
	for _, known := range []string{"QEMU", "KVM", "VMware", "VirtualBox", "Xen", "Virtual Machine", "Google Compute Engine", "Amazon EC2", "Parallels", "OpenStack", "Bochs"} {
		if strings.Contains(both, known) && !strings.Contains(both, ".metal") {
			return strings.TrimSpace(both), true
		}
	}
	return "", false
}

func (m *machine) processors() []Finding {
	allowed := m.allowed()
	if len(allowed) == 0 {
		return nil
	}
	info, _ := m.text("proc/cpuinfo")
	model, ok := keyed(info, "model name")
	if !ok {
		part, _ := keyed(info, "CPU part")
		if model = "unnamed processor"; part != "" {
			model = "Arm core, part " + part
		}
	}
	online := m.list("sys/devices/system/cpu/online")
	text := fmt.Sprintf("%s; may run on %d of %d processors: %s", model, len(allowed), max(len(online), len(allowed)), formatCPUList(allowed))
	if len(allowed) < 2 {
		return warn("widen the affinity mask, or measure on a machine with more", "%s; a generator and what it measures would share it", text)
	}
	return fine("%s", text)
}

func (m *machine) frequency() []Finding {
	allowed := m.allowed()
	governors := m.byValue(allowed, "cpufreq/scaling_governor")
	if len(governors) == 0 {
		if m.guest() {
			return warn("compare only what was measured in turns in one run", "the hypervisor sets the clock and does not show it to its guests")
		}
		return fine("the kernel does not scale the clock")
	}
	driver, _ := m.text(cpuFile(allowed[0], "cpufreq/scaling_driver"))
	var found []Finding
	for _, g := range slices.Sorted(maps.Keys(governors)) {
		where := formatCPUList(governors[g])
		if g == "performance" {
			found = append(found, fine("governor performance on processors %s (driver %s)", where, driver)...)
		} else {
			found = append(found, warn("cpupower frequency-set -g performance", "governor %s on processors %s (driver %s): the clock follows the load", g, where, driver)...)
		}
	}
	for _, c := range allowed {
		now, ok1 := m.number(cpuFile(c, "cpufreq/scaling_max_freq"))
		most, ok2 := m.number(cpuFile(c, "cpufreq/cpuinfo_max_freq"))
		if ok1 && ok2 && now < most {
			found = append(found, warn(fmt.Sprintf("cpupower frequency-set -u %d", most), "processor %d is limited to %d of %d MHz", c, now/1000, most/1000)...)
			break // the others are most often the same
		}
	}
	return found
}

func (m *machine) turbo() []Finding {
	if off, ok := m.number("sys/devices/system/cpu/intel_pstate/no_turbo"); ok {
		if off == 1 {
			return fine("turbo is off")
		}
		return warn("echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo", "turbo is on: the clock depends on temperature and on how many cores are busy")
	}
	if on, ok := m.number("sys/devices/system/cpu/cpufreq/boost"); ok {
		if on == 0 {
			return fine("boost is off")
		}
		return warn("echo 0 > /sys/devices/system/cpu/cpufreq/boost", "boost is on: the clock depends on temperature and on how many cores are busy")
	}
	return nil
}

func (m *machine) smt() []Finding {
	var pairs []string
	known := false
	allowed := m.allowed()
	for _, c := range allowed {
		siblings := m.list(cpuFile(c, "topology/thread_siblings_list"))
		known = known || len(siblings) > 0
		both := intersect(siblings, allowed)
		if len(both) > 1 && both[0] == c {
			pairs = append(pairs, formatCPUList(both))
		}
	}
	switch {
	case len(pairs) > 0:
		text := "allowed processors share cores: " + strings.Join(pairs[:min(len(pairs), 8)], " and ")
		if len(pairs) > 8 {
			text += fmt.Sprintf(" and %d more", len(pairs)-8)
		}
		return warn("run on one processor a core (taskset -c), or echo off > /sys/devices/system/cpu/smt/control", "%s", text)
	case known && m.guest():
		return fine("no two allowed processors share a core, as far as the hypervisor tells")
	case known:
		return fine("no two allowed processors share a core")
	}
	return nil
}

func (m *machine) hypervisor() []Finding {
	if !m.guest() {
		return fine("no hypervisor")
	}
	name, ok := m.hypervisorName()
	if !ok {
		name = "one that does not name itself"
	}
	found := warn("repeat in turns, and let intervals decide", "guest of a hypervisor (%s): processors, caches and memory may be shared with other guests", name)
	stat, _ := m.text("proc/stat")
	if steal, ok := parseSteal(stat); ok {
		if steal == 0 {
			found = append(found, warn("trust the lost time of a spinning thread instead", "steal time reads 0 since boot: the hypervisor may not report it")...)
		} else {
			found = append(found, warn("ask for dedicated processors", "the hypervisor took %.2g %% of the processors' time since boot", 100*steal)...)
		}
	}
	return found
}

// mostLost is the share of a spinning thread's time above which its machine is
// disturbed.
const mostLost = 0.01

func (m *machine) lostTime() []Finding {
	if m.live == nil {
		return fine("not measured: a copy of a machine has no time to lose")
	}
	s := m.live.spin
	lost := float64(s.gaps) / float64(s.wall)
	text := fmt.Sprintf("a thread that spun for %d ms lost %.1f %% in %d gaps, the longest %s; other threads here had %.1f %%",
		s.wall.Milliseconds(), 100*lost, s.count, micro(s.longest), 100*max(0, float64(s.wall-s.cpu)/float64(s.wall)))
	if lost > mostLost {
		return warn("stop other work, here or in other guests; points so disturbed are measured again", "%s", text)
	}
	return fine("%s", text)
}

func micro(d time.Duration) string { return table.Number(float64(d)/1e3) + " µs" }

func (m *machine) load() []Finding {
	var found []Finding
	cpus := max(1, len(m.allowed()))
	if load, ok := loadAverage(m.root); ok {
		if load < float64(cpus)/2 {
			found = append(found, fine("load average %.1f on %d processors", load, cpus)...)
		} else {
			found = append(found, warn("stop other work: it spoils the timing", "load average %.1f on %d processors", load, cpus)...)
		}
	}
	pressure, _ := m.text("proc/pressure/cpu")
	if share, ok := parsePressure(pressure); ok && share > mostLost {
		found = append(found, warn("stop other work: it spoils the timing", "some thread waited for a processor in %.2g %% of the last 10 s", 100*share)...)
	}
	if m.live != nil {
		for _, c := range m.live.consumers {
			found = append(found, warn("stop it, or keep it off the measured processors", "process %d (%s) takes %.0f %% of a processor", c.pid, c.name, 100*c.share)...)
		}
	}
	return found
}

func (m *machine) autogroup() []Finding {
	if on, ok := m.number("proc/sys/kernel/sched_autogroup_enabled"); !ok || on == 0 {
		return nil
	}
	mine, ok := m.text("proc/self/autogroup")
	if !ok {
		return nil
	}
	if _, nice, ok := strings.Cut(mine, " nice "); ok && strings.HasPrefix(nice, "-") {
		return fine("autogroup scheduling, this session at nice %s", nice)
	}
	return warn("echo -10 > /proc/self/autogroup, as root", "autogroup scheduling: each session has an equal share, whatever nice its jobs have (%s)", mine)
}

func (m *machine) isolation() []Finding {
	isolated := m.list("sys/devices/system/cpu/isolated")
	tickless := m.list("sys/devices/system/cpu/nohz_full")
	if len(isolated) == 0 {
		return warn("boot with isolcpus=N nohz_full=N and run there with taskset", "no processor is isolated: the scheduler may put other threads on each")
	}
	use := intersect(m.allowed(), isolated)
	if len(use) == 0 {
		return warn("taskset -c "+formatCPUList(isolated), "processors %s are isolated, and none of them may be used", formatCPUList(isolated))
	}
	if without := slices.DeleteFunc(slices.Clone(use), func(c int) bool { return slices.Contains(tickless, c) }); len(without) > 0 {
		return warn("boot with nohz_full="+formatCPUList(isolated), "processors %s are isolated, but the timer interrupts %s", formatCPUList(use), formatCPUList(without))
	}
	return fine("processors %s are isolated and without a timer tick", formatCPUList(use))
}

func intersect(a, b []int) []int {
	var both []int
	for _, v := range a {
		if slices.Contains(b, v) {
			both = append(both, v)
		}
	}
	return both
}

func (m *machine) numa() []Finding {
	nodes := m.list("sys/devices/system/node/online")
	if len(nodes) == 0 {
		return nil
	}
	status, _ := m.text("proc/self/status")
	s, _ := keyed(status, "Mems_allowed_list")
	mems, err := parseCPUList(s)
	if err != nil {
		return nil
	}
	var runs []int
	for _, n := range nodes {
		if len(intersect(m.list(fmt.Sprintf("sys/devices/system/node/node%d/cpulist", n)), m.allowed())) > 0 {
			runs = append(runs, n)
		}
	}
	switch {
	case len(nodes) == 1:
		return fine("one memory node")
	case len(runs) > 1:
		return warn(fmt.Sprintf("numactl --cpunodebind=%d --membind=%d, the node of the card", runs[0], runs[0]), "allowed processors lie on memory nodes %s: remote accesses take longer", formatCPUList(runs))
	case len(runs) == 1 && !slices.Contains(mems, runs[0]):
		return warn(fmt.Sprintf("numactl --membind=%d", runs[0]), "processors lie on memory node %d, and memory is taken from node %s", runs[0], formatCPUList(mems))
	}
	return fine("processors of memory node %s of %d", formatCPUList(runs), len(nodes))
}

func (m *machine) hugePages() []Finding {
	var found []Finding
	reserved := false
	for _, dir := range m.glob("sys/kernel/mm/hugepages/hugepages-*kB") {
		total, ok1 := m.number(dir + "/nr_hugepages")
		free, ok2 := m.number(dir + "/free_hugepages")
		if ok1 && ok2 && total > 0 {
			reserved = true
			found = append(found, fine("%d huge pages of %s are reserved, %d free", total, strings.TrimPrefix(path.Base(dir), "hugepages-"), free)...)
		}
	}
	s, _ := m.text("sys/kernel/mm/transparent_hugepage/enabled")
	mode, known := selected(s)
	switch {
	case known && mode != "never":
		found = append(found, fine("transparent huge pages: %s", mode)...)
	case reserved:
	case known:
		found = append(found, warn("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled", "no huge pages: large working sets pay for address translation too")...)
	default:
		found = append(found, warn("echo 512 > /proc/sys/vm/nr_hugepages, or a kernel with transparent huge pages", "no huge pages: large working sets pay for address translation too")...)
	}
	if !reserved {
		found = append(found, warn("echo 512 > /proc/sys/vm/nr_hugepages", "no huge page is reserved: DPDK runs without (--no-huge), at about half the rate")...)
	}
	return found
}

// available is the memory that can be used without swapping, bytes.
func (m *machine) available() (int64, bool) {
	info, _ := m.text("proc/meminfo")
	return memory(info, "MemAvailable")
}

func (m *machine) memory() []Finding {
	info, ok := m.text("proc/meminfo")
	if !ok {
		return nil
	}
	var found []Finding
	if free, ok := m.available(); ok {
		const need = 256 << 20
		if free < need {
			found = append(found, warn(fmt.Sprintf("free memory up to %s", size(need)), "%s of memory available", size(free))...)
		} else {
			found = append(found, fine("%s of memory available", size(free))...)
		}
	}
	total, _ := memory(info, "SwapTotal")
	free, _ := memory(info, "SwapFree")
	if used := total - free; used > 0 {
		found = append(found, warn("swapoff -a, or free memory", "%s of swap is in use: measured memory may be on disk", size(used))...)
	}
	if mode, ok := m.number("proc/sys/vm/overcommit_memory"); ok && mode == 2 {
		limit, _ := memory(info, "CommitLimit")
		found = append(found, warn("sysctl vm.overcommit_memory=0", "memory is not overcommitted: large mappings fail beyond %s in all", size(limit))...)
	}
	return found
}

// size writes bytes with a binary unit.
func size(b int64) string {
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if one := int64(1) << (30 - 10*i); b >= one {
			return table.Number(float64(b)/float64(one)) + " " + unit
		}
	}
	return fmt.Sprintf("%d B", b)
}

// cacheLevel is a cache of the first allowed processor.
type cacheLevel struct {
	level  int64
	bytes  int64
	shared []int // processors behind it
}

// lastLevel returns the last cache that sysfs shows.
func (m *machine) lastLevel() (last cacheLevel, ok bool) {
	allowed := m.allowed()
	if len(allowed) == 0 {
		return last, false
	}
	for _, dir := range m.glob(cpuFile(allowed[0], "cache/index*")) {
		level, ok1 := m.number(dir + "/level")
		s, _ := m.text(dir + "/size")
		bytes, err := parseBytes(s)
		if ok1 && err == nil && level > last.level {
			last = cacheLevel{level, bytes, m.list(dir + "/shared_cpu_list")}
		}
	}
	return last, last.level > 0
}

// guestCache is the most last-level cache a processor that a guest can count
// as its own: today's servers have up to 12 MiB a core (AMD with stacked cache).
const guestCache = 12 << 20

func (m *machine) cache() []Finding {
	last, ok := m.lastLevel()
	if !ok {
		return warn("doctor --board host measures where the levels lie", "sysfs shows no caches")
	}
	var found []Finding
	text := fmt.Sprintf("level %d cache of %s, shared by %d processors", last.level, size(last.bytes), max(1, len(last.shared)))
	if m.guest() && last.bytes > guestCache*int64(max(1, len(last.shared))) {
		found = append(found, warn("call no working set DRAM below four times its size, nor rely on having all of it", "%s: more than so few have of their own, so other guests share it", text)...)
	} else {
		found = append(found, fine("%s", text)...)
	}
	limit := m.memoryLimit()
	info, _ := m.text("proc/meminfo")
	if total, ok := memory(info, "MemTotal"); ok && (limit == 0 || total < limit) {
		limit = total
	}
	if limit > 0 && 4*last.bytes > limit {
		found = append(found, warn("label results from memory by their working set", "4 times the last cache (%s) exceeds the memory of %s: no working set here is surely DRAM", size(4*last.bytes), size(limit))...)
	}
	return found
}

// along calls visit with the directory of a control group and of each above it,
// as far as they are visible: limits hold from all of them.
func (m *machine) along(mount, group string, visit func(dir string)) {
	for {
		visit(path.Join(mount, group))
		if group == "/" || group == "." || group == "" {
			return
		}
		group = path.Dir(group)
	}
}

// memoryLimit is the least limit of the control groups, bytes; 0: none.
func (m *machine) memoryLimit() int64 {
	cgroup, _ := m.text("proc/self/cgroup")
	groups := parseCgroups(cgroup)
	least := int64(0)
	take := func(file string) {
		const unlimited = 1 << 60 // version 1 writes the largest number of pages
		if n, ok := m.number(file); ok && n > 0 && n < unlimited && (least == 0 || n < least) {
			least = n
		}
	}
	m.along("sys/fs/cgroup", groups[""], func(dir string) { take(dir + "/memory.max") })
	m.along("sys/fs/cgroup/memory", groups["memory"], func(dir string) { take(dir + "/memory.limit_in_bytes") })
	return least
}

func (m *machine) cgroup() []Finding {
	cgroup, ok := m.text("proc/self/cgroup")
	if !ok {
		return nil
	}
	groups := parseCgroups(cgroup)
	quota, throttled := 0.0, int64(0)
	take := func(s string) {
		if q, err := parseQuota(s); err == nil && q > 0 && (quota == 0 || q < quota) {
			quota = q
		}
	}
	stalls := func(dir string) {
		stat, _ := m.text(dir + "/cpu.stat")
		for line := range strings.Lines(stat) {
			if rest, ok := strings.CutPrefix(line, "nr_throttled "); ok {
				if n, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64); err == nil {
					throttled = max(throttled, n)
				}
			}
		}
	}
	m.along("sys/fs/cgroup", groups[""], func(dir string) {
		s, _ := m.text(dir + "/cpu.max")
		take(s)
		stalls(dir)
	})
	m.along("sys/fs/cgroup/cpu", groups["cpu"], func(dir string) {
		q, _ := m.text(dir + "/cpu.cfs_quota_us")
		p, _ := m.text(dir + "/cpu.cfs_period_us")
		take(q + " " + p)
		stalls(dir)
	})
	var found []Finding
	if quota > 0 {
		text := fmt.Sprintf("a quota of %.3g processors on %d", quota, len(m.allowed()))
		if throttled > 0 {
			text += fmt.Sprintf(", throttled %d times", throttled)
		}
		found = append(found, warn("lift the quota; bind processors instead (cpuset)", "%s: threads stop until the next period", text)...)
	}
	if limit := m.memoryLimit(); limit > 0 {
		found = append(found, warn("raise the limit, or keep working sets below", "memory is limited to %s", size(limit))...)
	}
	if online := m.list("sys/devices/system/cpu/online"); len(m.allowed()) < len(online) {
		found = append(found, fine("a set of processors: %s of %s", formatCPUList(m.allowed()), formatCPUList(online))...)
	}
	if len(found) == 0 {
		return fine("no limit of processors or memory")
	}
	return found
}

func (m *machine) sandbox() []Finding {
	var signs []string
	for _, name := range []string{".dockerenv", "run/.containerenv"} {
		if _, err := fs.Stat(m.root, name); err == nil {
			signs = append(signs, "/"+name+" exists")
		}
	}
	cgroup, _ := m.text("proc/1/cgroup")
	for _, word := range []string{"docker", "kubepods", "lxc", "containerd"} {
		if strings.Contains(cgroup, word) {
			signs = append(signs, "process 1 is in a group of "+word)
		}
	}
	version, _ := m.text("proc/version")
	if strings.Contains(version, "gVisor") {
		signs = append(signs, "the kernel is gVisor")
	}
	status, _ := m.text("proc/self/status")
	if v, _ := keyed(status, "Seccomp"); v == "2" {
		signs = append(signs, "system calls are filtered")
	}
	if len(signs) == 0 {
		return fine("no container")
	}
	return warn("run outside, or give the container its own processors and the rights below", "a container: %s", strings.Join(signs, ", "))
}

func (m *machine) clock() []Finding {
	source, ok := m.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
	if !ok {
		return nil
	}
	text := "clock source " + source
	if m.live != nil {
		text += fmt.Sprintf(", a read takes %.0f ns", m.live.clockNS)
	}
	switch source {
	case "tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page":
	default:
		return warn("boot with clocksource=tsc tsc=reliable where the processor has an invariant TSC", "%s: not read in user space, so each read is a system call", text)
	}
	found := fine("%s", text)
	info, _ := m.text("proc/cpuinfo")
	if flags, ok := keyed(info, "flags"); ok {
		for _, f := range []string{"constant_tsc", "nonstop_tsc"} {
			if !slices.Contains(strings.Fields(flags), f) {
				found = append(found, warn("use the system's clock, not the TSC", "the processor does not promise %s: TSC ticks are no time", f)...)
			}
		}
	}
	return found
}

func (m *machine) counters() []Finding {
	paranoid, known := m.number("proc/sys/kernel/perf_event_paranoid")
	level := ""
	if known {
		level = fmt.Sprintf(" (kernel.perf_event_paranoid %d)", paranoid)
	}
	if m.live == nil {
		if known {
			return fine("not opened on a copy of a machine%s", level)
		}
		return nil
	}
	var found []Finding
	if len(m.live.counters) > 0 {
		found = fine("perf events that count: %s%s", strings.Join(m.live.counters, ", "), level)
	}
	byReason := map[string][]string{}
	for _, u := range m.live.uncounted {
		byReason[u.Reason] = append(byReason[u.Reason], u.Event)
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		remedy := "measure on a machine whose counters are visible"
		if strings.HasPrefix(reason, "not permitted") {
			remedy = "sysctl kernel.perf_event_paranoid=1, or run as root"
		} else if m.guest() {
			remedy = "ask for a guest with a virtual PMU, or measure on the metal"
		}
		found = append(found, warn(remedy, "no %s: %s", strings.Join(byReason[reason], ", "), reason)...)
	}
	return found
}

func (m *machine) kernel() []Finding {
	release, ok := m.text("proc/sys/kernel/osrelease")
	if !ok {
		return nil
	}
	major, minor, ok := parseKernel(release)
	if !ok {
		return nil
	}
	protocols, known := m.text("proc/net/protocols")
	switch {
	case major < 4 || major == 4 && minor < 18:
		return warn("a kernel from 4.18 on", "Linux %s has no AF_XDP", release)
	case known && !strings.Contains("\n"+protocols, "\nXDP "):
		return warn("a kernel with CONFIG_XDP_SOCKETS=y", "Linux %s is built without AF_XDP", release)
	}
	return fine("Linux %s, with AF_XDP", release)
}

// costly are mitigations that each system call or return pays for, and so each
// packet that goes through the kernel; memory accesses do not.
var costly = []struct{ file, text, name string }{
	{"meltdown", "PTI", "page-table isolation"},
	{"spectre_v2", "Retpoline", "retpolines"},
	{"spectre_v2", "Mitigation: IBRS", "IBRS"},
	{"mds", "Clear CPU buffers", "buffer clearing (MDS)"},
	{"mmio_stale_data", "Clear CPU buffers", "buffer clearing (MMIO)"},
	{"retbleed", "untrained return thunk", "untrained returns"},
	{"spec_rstack_overflow", "Safe RET", "safe returns"},
}

func (m *machine) mitigations() []Finding {
	const dir = "sys/devices/system/cpu/vulnerabilities/"
	if len(m.glob(dir+"*")) == 0 {
		return nil
	}
	var on []string
	for _, c := range costly {
		if s, _ := m.text(dir + c.file); strings.Contains(s, c.text) {
			on = append(on, c.name)
		}
	}
	if len(on) == 0 {
		return fine("no mitigation that makes system calls costly")
	}
	return warn("compare packet rates through the kernel only with machines that do the same", "system calls pay for %s", strings.Join(on, ", "))
}

// capabilities that parts of the suite need (capabilities(7)).
var capabilities = []struct {
	bit       int
	name, use string
}{
	{12, "CAP_NET_ADMIN", "network namespaces, AF_XDP and promiscuous interfaces"},
	{13, "CAP_NET_RAW", "raw packets"},
	{14, "CAP_IPC_LOCK", "locked memory beyond its limit"},
	{21, "CAP_SYS_ADMIN", "making network namespaces and huge pages"},
	{23, "CAP_SYS_NICE", "a higher priority"},
	{38, "CAP_PERFMON", "perf events of the kernel"},
	{39, "CAP_BPF", "loading XDP programs"},
}

// classRights are the capabilities that the native driver of a class cannot do
// without.
var classRights = map[string][]string{
	"netif": {"CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN"},
}

// held returns the capabilities of this process, a bit each.
func (m *machine) held() (uint64, bool) {
	status, _ := m.text("proc/self/status")
	s, _ := keyed(status, "CapEff")
	has, err := strconv.ParseUint(s, 16, 64)
	return has, err == nil
}

// lacks returns the capabilities that a class cannot do without and this
// process has not.
func (m *machine) lacks(class string) []string {
	has, known := m.held()
	var missing []string
	for _, c := range capabilities {
		if known && has>>c.bit&1 == 0 && slices.Contains(classRights[class], c.name) {
			missing = append(missing, c.name)
		}
	}
	return missing
}

func (m *machine) rights() []Finding {
	has, known := m.held()
	if !known {
		return nil
	}
	var found []Finding
	var names []string
	for _, c := range capabilities {
		if has>>c.bit&1 == 1 {
			names = append(names, c.name)
		} else {
			found = append(found, warn("run as root, or setcap "+strings.ToLower(c.name)+"+ep", "%s is missing, for %s", c.name, c.use)...)
		}
	}
	if len(names) == len(capabilities) {
		found = fine("all rights: %s", strings.Join(names, ", "))
	}
	limits, _ := m.text("proc/self/limits")
	if v, ok := parseLimit(limits, "Max locked memory"); ok && v != "unlimited" && has>>14&1 == 0 {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			found = append(found, warn("ulimit -l unlimited", "at most %s of memory can be locked", size(n))...)
		}
	}
	return found
}

// helpers are programs that parts of the suite run when they are there.
var helpers = []tool{
	{"likwid-bench", "is the peer of streaming bandwidth", "package likwid"},
	{"gcc", "builds the peers written in C, and firmware against its shim", "package gcc"},
	{"sysbench", "is printed beside native results", "package sysbench"},
	{"stress-ng", "is printed beside native results", "package stress-ng"},
	{"dpdk-testpmd", "forwards packets with DPDK", "package dpdk"},
	{"ssh", "reaches remote boards", "package openssh-client"},
}

func (m *machine) tools() []Finding {
	var there []string
	var found []Finding
	for _, t := range helpers {
		if m.has(t.name) {
			there = append(there, t.name)
		} else {
			found = append(found, warn("install "+t.from, "%s, which %s, is not there", t.name, t.use)...)
		}
	}
	if len(there) > 0 {
		found = append(fine("helpers: %s", strings.Join(there, ", ")), found...)
	}
	return found
}

// has says whether the machine has a program.
func (m *machine) has(name string) bool {
	if m.live != nil {
		return m.live.look(name)
	}
	for _, dir := range []string{"usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin", "opt/mellanox/dpdk/bin"} {
		if info, err := fs.Stat(m.root, path.Join(dir, name)); err == nil && !info.IsDir() {
			return true
		}
	}
	return false
}
