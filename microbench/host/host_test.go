package host

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/internal/linux"
	"nicprof/microbench"
	"nicprof/microbench/microbenchtest"
	"nicprof/program"
	"nicprof/traffic"
)

// testBoard is a machine of small levels, so that a test needs little memory and
// no curve.
func testBoard(t *testing.T) *board.Board {
	t.Helper()
	cpus, err := linux.CPUs()
	if err != nil {
		t.Skip(err)
	}
	template, err := board.Load("host")
	if err != nil {
		t.Fatal(err)
	}
	return describe(template, cpus, finding{DRAM: 32 << 20, Levels: []level{
		{Name: "l1", Bytes: 32 << 10, Reported: 32 << 10, Line: 64, SharedBy: 1, From: "test"},
		{Name: "llc", Bytes: 1 << 20, Reported: 1 << 20, Line: 64, SharedBy: len(cpus), From: "test"},
		{Name: "dram", Line: 64, SharedBy: len(cpus), From: "test"},
	}})
}

func open(t *testing.T) microbench.Driver {
	t.Helper()
	d, err := New(testBoard(t), microbench.Native)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// quick is a measurement whose noise decides nothing.
var quick = microbench.Options{Seed: 1, AllowNoise: true, Precision: 1, TrialSeconds: 0.001}

func TestConformance(t *testing.T) { microbenchtest.Run(t, open) }

func TestOtherBackendsAreMissing(t *testing.T) {
	for _, backend := range []string{microbench.Emulated, microbench.Remote} {
		if _, err := New(testBoard(t), backend); fault.KindOf(err) != fault.Missing {
			t.Errorf("%s: %v, want a missing fault", backend, err)
		}
	}
}

// Every operation on every level, and every lock idiom, runs and says on what it
// ran.
func TestSamplesSayHowTheyWereMeasured(t *testing.T) {
	d := open(t)
	var programs []program.Program
	for i := range d.Board().Memories {
		m := d.Board().Memories[i].Name
		for _, spec := range []string{":read:bulk:64:2", ":write:bulk:12:1.5", ":read:atomic:8:2", ":write:atomic:4:2", ":add:atomic:16:2", ":add:atomic:8:2:1", ":read:bulk:8:40:100:128:zipf:0.9"} {
			a, err := program.ParseAccess(m + spec)
			if err != nil {
				t.Fatal(err)
			}
			programs = append(programs, program.Program{Accesses: []program.Access{a}})
		}
	}
	for _, spec := range []string{"l:1:spin:empty", "l:1:mutex:empty", "l:3:ticket:empty", "l:1:sleep-200:hash:llc:add:atomic:8:1", "l:1:none:l1:read:bulk:4:1"} {
		l, err := program.ParseLock(spec)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, program.Program{Locks: []program.Lock{l}, Flows: &traffic.Flows{Count: 100, Popularity: "zipf", Alpha: 1}})
	}
	for _, kind := range program.Kinds {
		programs = append(programs, program.Program{Stateless: program.Stateless{kind: 2.5}})
	}
	for _, p := range programs {
		s, err := d.Measure(t.Context(), p, traffic.Traffic{}, quick)
		if err != nil {
			t.Errorf("%+v: %v", p, err)
			continue
		}
		if s.Backend != microbench.Native || !(s.Mpps > 0) || s.Conditions["clock"] != clockName || s.CPUNS["cores"] <= 0 {
			t.Errorf("%+v: %+v", p, s)
		}
		if f := s.Fairness; f == nil || !(f.Least > 0 && f.Least <= f.Most) {
			t.Errorf("%+v: fairness %+v", p, f)
		}
		if len(p.Accesses) > 0 && (s.Conditions["pages"] == "" || s.Conditions["instructions"] == "") {
			t.Errorf("%+v: conditions %v", p, s.Conditions)
		}
	}
}

// Offered packets are forwarded or dropped.
func TestOfferedPacketsAreAccountedFor(t *testing.T) {
	d := open(t)
	o := quick
	o.TrialSeconds = 0.005
	few, err := d.Measure(t.Context(), program.Program{}, traffic.Traffic{RateMpps: 0.01}, o)
	if err != nil {
		t.Fatal(err)
	}
	if few.Mpps > 0.1 || few.Latency.P50 <= 0 {
		t.Errorf("0.01 Mpps offered: %v forwarded, latency %+v", few.Mpps, few.Latency)
	}
	many, err := d.Measure(t.Context(), program.Program{Stateless: program.Stateless{program.Hash: 100}}, traffic.Traffic{RateMpps: 1000}, o)
	if err != nil {
		t.Fatal(err)
	}
	if !(many.DroppedMpps > many.Mpps) || many.Mpps+many.DroppedMpps > 1100 {
		t.Errorf("1000 Mpps offered: %v forwarded, %v dropped", many.Mpps, many.DroppedMpps)
	}
}

func TestWhatThisMachineCannotRun(t *testing.T) {
	d := open(t)
	access := func(spec string) program.Program {
		a, err := program.ParseAccess(spec)
		if err != nil {
			t.Fatal(err)
		}
		return program.Program{Accesses: []program.Access{a}}
	}
	for name, c := range map[string]struct {
		p    program.Program
		o    microbench.Options
		want string
	}{
		"too many cores":   {program.Program{}, microbench.Options{Cores: runtime.NumCPU() + 1}, "cores"},
		"base of cycles":   {program.Program{Base: "1200"}, microbench.Options{}, "emulation only"},
		"split atomics":    {access("dram:add:atomic:8:1:10:12"), microbench.Options{}, "multiple of 8"},
		"set above memory": {access("dram:read:bulk:64:1:1000000000"), microbench.Options{}, "more than"},
	} {
		if _, err := d.Measure(t.Context(), c.p, traffic.Traffic{}, c.o); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an input fault with %q", name, err, c.want)
		}
	}
	small := arena{}
	if _, err := small.get(0, 1<<45, []int{0}); fault.KindOf(err) != fault.Input {
		t.Errorf("an array of 32 TiB: %v, want an input fault", err)
	}
}

// windows makes a measurement of one worker whose windows took those packets.
func windows(packets []int64, spoil func(k int, v *window)) *measurement {
	w := &worker{}
	for k, n := range packets {
		w.windows[k] = window{ns: 1e7, cpuNS: 1e7, spinNS: 3000, packets: n}
		if spoil != nil {
			spoil(k, &w.windows[k])
		}
	}
	return &measurement{driver: &Driver{board: &board.Board{Name: "host"}}, cores: 1, workers: []*worker{w}}
}

func same(n int) []int64 {
	p := make([]int64, n)
	for i := range p {
		p[i] = int64(100000 + 10*i)
	}
	return p
}

func TestDisturbedWindowsAreLeftOut(t *testing.T) {
	for name, spoil := range map[string]func(*window){
		"off the processor": func(v *window) { v.cpuNS = 9e6 },
		"in a gap":          func(v *window) { v.gapNS = 1e6 },
		"page fault":        func(v *window) { v.faults = linux.Faults{Minor: 1} },
	} {
		m := windows(same(9), func(k int, v *window) {
			if k == 2 || k == 5 {
				v.packets = 1
				spoil(v)
			}
		})
		s, err := m.summarise(9)
		if err != nil || s.Runs != 7 || s.Low < 9.9 || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "contended: 2 of 9") {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

// Where nothing is undisturbed the calmest windows count, marked; and none when
// others took too much even of those.
func TestCalmestWindowsCount(t *testing.T) {
	lose := func(share ...float64) *measurement {
		return windows(same(len(share)), func(k int, v *window) { v.gapNS = share[k] * v.ns })
	}
	m := lose(0.2, 0.1, 0.5, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1)
	if got, lost := m.calmest(9); !slices.Equal(got, []int{0, 1, 3, 4, 6, 7, 8}) || lost != 0.2 {
		t.Errorf("windows %v, which lost up to %v", got, lost)
	}
	s, err := m.summarise(9)
	if err != nil || s.Runs != wanted || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "contended: 9 of 9") || !strings.Contains(s.Warnings[0], "lost 20.0 %") {
		t.Errorf("%+v, %v", s, err)
	}
	faults := windows(same(9), func(_ int, v *window) { v.faults = linux.Faults{Minor: 1} })
	for name, m := range map[string]*measurement{"gaps": lose(0.3, 0.3, 0.3, 0.3, 0.3, 0.1, 0.1, 0.1, 0.1), "page faults": faults} {
		if _, err := m.summarise(9); fault.KindOf(err) != fault.Check || !strings.Contains(err.Error(), "too noisy: other work took") {
			t.Errorf("%s: %v, want a failed check", name, err)
		}
		m.options.AllowNoise = true
		if s, err := m.summarise(9); err != nil || s.Runs != wanted || len(s.Warnings) == 0 {
			t.Errorf("%s, noise allowed: %+v, %v", name, s, err)
		}
	}
}

func TestVaryingRatesAreRefused(t *testing.T) {
	m := windows([]int64{100, 130, 90, 110, 70, 140, 105}, nil)
	if _, err := m.summarise(7); fault.KindOf(err) != fault.Check || !strings.Contains(err.Error(), "machine too noisy") {
		t.Errorf("%v, want a failed check", err)
	}
	m.options.AllowNoise = true
	if s, err := m.summarise(7); err != nil || !strings.Contains(strings.Join(s.Warnings, " "), "noisy") {
		t.Errorf("noise allowed: %+v, %v", s, err)
	}
	if s, err := windows(same(7), nil).summarise(7); err != nil || len(s.Warnings) > 0 {
		t.Errorf("even rates: %+v, %v", s, err)
	}
}

func TestClockSubtractsItsCostAndIsNeverNegative(t *testing.T) {
	c := clock{nsPerTick: 0.5, overhead: 20}
	for _, x := range []struct {
		from, to uint64
		readings int64
		want     float64
	}{{1000, 3000, 1, 980}, {1000, 1010, 1, 0}, {1000, 990, 0, 0}, {0, 100, 2, 10}} {
		if got := c.between(x.from, x.to, x.readings); got != x.want {
			t.Errorf("%d to %d with %d readings: %v ns, expected %v", x.from, x.to, x.readings, got, x.want)
		}
	}
	real := calibrate()
	if !(real.nsPerTick > 0) || real.overhead < 0 || real.overhead > 1e5 {
		t.Errorf("calibrated: %+v", real)
	}
	start, from := time.Now(), ticks()
	for time.Since(start) < 2*time.Millisecond {
	}
	if ns := real.ns(ticks() - from); ns < 1.9e6 {
		t.Errorf("2 ms passed, the ticks say %v ns", ns)
	}
}

func TestMemoryIsGivenBack(t *testing.T) {
	d := open(t)
	count := func() int {
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Skip(err)
		}
		return strings.Count(string(maps), "\n")
	}
	measure := func() {
		if _, err := d.Measure(t.Context(), program.Program{Locks: []program.Lock{{Name: "l", Elements: 8}}}, traffic.Traffic{}, quick); err != nil {
			t.Fatal(err)
		}
	}
	measure()
	before := count()
	for range 10 {
		measure()
	}
	if after := count(); after > before+8 {
		t.Errorf("%d mappings after ten measurements, %d before", after, before)
	}
}
