package costs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"

	"nicprof/internal/fault"
	"nicprof/internal/linux"
	"nicprof/internal/stats"
	"nicprof/internal/version"
	"nicprof/microbench"
)

// Sizes that Measure covers: tables from what a first-level cache holds to
// beyond a last-level one.
var (
	tableKeys    = []int{4, 12, 16, 32}
	tableEntries = []int64{1 << 8, 1 << 12, 1 << 16, 1 << 20, 1 << 22}
	cellBytes    = []int{4, 32}
	cellCounts   = []int64{1 << 8, 1 << 12, 1 << 16, 1 << 20, 1 << 22}
	ruleCounts   = []int64{16, 128, 1024}
	routeCounts  = []int64{1 << 8, 1 << 12, 1 << 16}
	hashKeys     = []int{4, 12, 32}
)

const (
	entryData = 16   // bytes of data that a table entry has beside its key
	ring      = 1024 // packet buffers
)

// Effort bounds a measurement.
type Effort struct {
	Windows int           // timed windows an operation, odd
	Window  time.Duration // length of one
}

// Standard measures all operations in some twenty seconds.
var Standard = Effort{Windows: 9, Window: 20 * time.Millisecond}

// Measure measures every operation on one processor of this machine, by a thread
// pinned to it, in the thread's own processor time, keys drawn uniformly. The
// clock is found by a chain of dependent instructions.
func Measure(ctx context.Context, e Effort, progress func(done, total int)) (*Costs, error) {
	cpus, err := linux.CPUs()
	if err != nil {
		return nil, err
	}
	unpin, err := linux.Pin(cpus[len(cpus)-1])
	if err != nil {
		return nil, err
	}
	defer unpin()
	c := &Costs{Schema: Schema, Backend: "native", Version: version.Version, Machine: machine()}
	var pages []string
	tests := plan()
	begun, used := linux.Monotonic(), linux.ThreadCPU()
	for i := range tests {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, got, err := tests[i].measure(e)
		if err != nil {
			return nil, err
		}
		c.Points = append(c.Points, p)
		if got != "" && !slices.Contains(pages, got) {
			pages = append(pages, got)
		}
		if progress != nil {
			progress(i+1, len(tests))
		}
	}
	c.ClockGHz = clockGHz(e)
	if wall, cpu := linux.Monotonic()-begun, linux.ThreadCPU()-used; float64(wall) > 1.05*float64(cpu) {
		c.Notes = append(c.Notes, fmt.Sprintf("the thread waited %.0f %% of the time for its processor: times are of the thread, caches were shared with others", 100*(1-float64(cpu)/float64(wall))))
	}
	c.Notes = append(c.Notes, "tables and arrays lie on: "+strings.Join(pages, "; "))
	return c, nil
}

// test is one operation at one size.
type test struct{ Point }

// plan lists the operations, small tables first.
func plan() []test {
	var all []test
	add := func(k Kind, key, bytes int, entries int64) {
		all = append(all, test{Point{Kind: k, KeyBytes: key, Bytes: bytes, Entries: entries}})
	}
	add(Packet, 0, 0, ring)
	for _, k := range hashKeys {
		add(HashCall, k, 0, 0)
	}
	for _, n := range ruleCounts {
		add(Ternary, 16, 0, n)
	}
	for _, n := range routeCounts {
		add(LPM, 4, 0, n)
	}
	for _, key := range tableKeys {
		for _, n := range tableEntries {
			add(Exact, key, entryData, n)
		}
	}
	for _, k := range []Kind{Read, Write, Add, Locked} {
		for _, b := range cellBytes {
			if k == Add && b > 8 {
				continue
			}
			for _, n := range cellCounts {
				add(k, 0, b, n)
			}
		}
	}
	return all
}

// build makes the state of a test. pages says what the memory lies on.
func (t *test) build() (o operation, pages string, end func(), err error) {
	var regions []*linux.Region
	end = func() {
		for _, r := range regions {
			r.Close()
		}
	}
	memory := func(n int64) []byte {
		if err != nil {
			return nil
		}
		var r *linux.Region
		if r, err = linux.Map(n, linux.HugePages); err != nil {
			return nil
		}
		regions = append(regions, r)
		b := r.Bytes()[:n]
		clear(b) // so that the pages exist, and locks are open
		r.Collapse()
		return b
	}
	n := t.Entries
	switch t.Kind {
	case Packet:
		f := &frames{memory: memory(n * bufferBytes)}
		if err == nil {
			f.fill(n)
		}
		o = direct(f.run)
	case Exact:
		b, e := tableBytes(n, t.KeyBytes, t.Bytes)
		h := &hashTable{buckets: memory(b), entries: memory(e), mask: uint64(b/bucketBytes - 1), key: t.KeyBytes, entry: t.KeyBytes + t.Bytes}
		if err == nil {
			h.fill(n)
		}
		o = h
	case LPM:
		r := &routes{}
		if m := memory(4 << 24); err == nil {
			r.first = unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(m))), 1<<24)
			r.fill(n)
		}
		o = direct(r.run)
	case Ternary:
		r := &rules{}
		r.fill(n)
		o = direct(r.run)
	case HashCall:
		o = &hashes{bytes: t.KeyBytes}
	default:
		stride := strideOf(t.Kind, t.Bytes)
		c := &cells{memory: memory(n*int64(stride) + 64), bytes: t.Bytes, stride: stride}
		o = map[Kind]direct{Read: c.runRead, Write: c.runWrite, Add: c.runAdd, Locked: c.runLocked}[t.Kind]
	}
	if err != nil {
		end()
		return nil, "", nil, err
	}
	return o, pagesOf(regions), end, nil
}

// pagesOf says which pages regions lie on, "" when the system does not tell.
func pagesOf(regions []*linux.Region) string {
	var huge, all int64
	for _, r := range regions {
		got, err := r.Pages()
		if err != nil {
			return ""
		}
		huge, all = huge+got.HugeBytes, all+got.Resident
	}
	switch {
	case all == 0:
		return ""
	case huge >= all:
		return "huge pages"
	case huge > 0:
		return "huge and small pages"
	}
	return "small pages"
}

// packets is how many packets' elements are drawn beforehand: more than a
// second-level cache has lines.
const packets = 1 << 18

// measure runs a test for some windows and returns its time an operation.
func (t *test) measure(e Effort) (Point, string, error) {
	o, pages, end, err := t.build()
	if err != nil {
		return Point{}, "", err
	}
	defer end()
	elements := make([]uint32, packets)
	r := rand.New(rand.NewPCG(1, uint64(t.Entries)))
	for i := range elements {
		elements[i] = uint32(r.Int64N(max(1, t.Entries)))
	}
	o.prepare(elements)
	sum := o.run(elements) // warm
	ns := windows(e, func() int { sum += o.run(elements); return packets })
	runtime.KeepAlive(sum)
	p := t.Point
	p.NS, p.Low, p.High = quartiles(ns)
	if !(p.NS > 0) {
		return Point{}, "", fault.Checkf("%s took no time; the clock of threads does not tell", t.Kind)
	}
	return p, pages, nil
}

// windows times work until each window is long enough, and returns ns a unit of
// what work says that it did.
func windows(e Effort, work func() int) []float64 {
	out := make([]float64, 0, e.Windows)
	for range e.Windows {
		n, from := 0, linux.ThreadCPU()
		spent := time.Duration(0)
		for spent < e.Window {
			n += work()
			spent = linux.ThreadCPU() - from
		}
		out = append(out, float64(spent)/float64(n))
	}
	return out
}

func quartiles(ns []float64) (median, low, high float64) {
	s := stats.Sorted(ns)
	return s.Percentile(50), s.Percentile(25), s.Percentile(75)
}

// clockGHz times a chain of shifts and exclusive ors, each of which waits a cycle
// for the one before.
func clockGHz(e Effort) float64 {
	const steps, cycles = 1 << 16, 6
	x := uint64(1)
	ns := windows(e, func() int {
		for range steps {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		return steps
	})
	runtime.KeepAlive(x)
	return cycles / slices.Min(ns)
}

// machine is what a reader has to know of where costs were measured.
func machine() string {
	m := microbench.ThisMachine()
	cpu := m.CPU
	if cpu == "" {
		cpu = "processor without a name"
	}
	return fmt.Sprintf("%s, %d processors, %s/%s, %s", cpu, m.CPUs, m.OS, m.Arch, m.Go)
}
