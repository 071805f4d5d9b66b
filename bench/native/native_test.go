package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nicprof/internal/fault"
	"nicprof/internal/linux"
	"nicprof/microbench/host/kernel"
)

// tiny is a scale for tests: it shows that all paths work, not what they give.
var tiny = scale{pairs: 1, threads: 2, attempts: 1, time: 40 * time.Millisecond, stream: 10 * time.Millisecond, beside: time.Second, small: true, besideCap: 2}

// TestWholeRun measures everything that is here against every peer that is
// here. It decides on structure only: each peer gives finite numbers or a note
// that says why not; no time decides.
func TestWholeRun(t *testing.T) {
	if _, err := linux.CPUs(); err != nil {
		t.Skip(err)
	}
	o := options{quick: true, allowNoise: true, scale: tiny, out: filepath.Join(t.TempDir(), "host"), sets: []workingSet{{2 << 20, "l2", true}}}
	var stdout bytes.Buffer
	if err := o.match(""); err != nil {
		t.Fatal(err)
	}
	if err := compare(t.Context(), o, &stdout, io.Discard); err != nil {
		t.Fatalf("%v\n%s", err, stdout.String())
	}
	data, err := os.ReadFile(filepath.Join(o.out, "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	var res Result
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&res); err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	for _, c := range res.Rows {
		rows[c.Peer+" "+c.Group]++
		if c.Failed != "" {
			t.Errorf("%s", &c)
			continue
		}
		for _, v := range []Value{c.Ours, c.Theirs, c.Ratio} {
			if !(v.Median > 0) || math.IsInf(v.Median, 0) || v.Low > v.Median || v.High < v.Median {
				t.Errorf("%s: %+v", &c, v)
			}
		}
		if c.Pairs < 1 || c.Verdict == "" || c.Unit == "" || c.As == "" {
			t.Errorf("%+v", c)
		}
	}
	skipped := strings.Join(res.Skipped, "\n")
	for _, p := range []struct {
		program string
		rows    []string // that it gives when it is here
	}{
		{"likwid-bench", []string{"likwid-bench stream"}}, {"gcc", []string{"C chase", "C fetch-add", "C lock"}},
		{"multichase", []string{"multichase chase"}}, {"lat_mem_rd", []string{"lat_mem_rd chase"}}, {"lh_ticket_spinlock", []string{"lockhammer lock"}},
	} {
		_, err := exec.LookPath(p.program)
		for _, r := range p.rows {
			if here := err == nil; here != (rows[r] > 0) || here == strings.Contains(skipped, p.program) {
				t.Errorf("%s in PATH: %t, rows %q: %d, skipped:\n%s", p.program, here, r, rows[r], skipped)
			}
		}
	}
	if rows["STREAM stream"] == 0 && !strings.Contains(skipped, "STREAM") {
		t.Error("STREAM gives neither a row nor a note")
	}
	for _, program := range []string{"sysbench", "stress-ng"} {
		_, err := exec.LookPath(program)
		figures := 0
		for _, f := range res.Beside {
			if f.Tool == program && f.Value > 0 {
				figures++
			}
		}
		if here := err == nil; here != (figures > 0) || here == strings.Contains(skipped, program) {
			t.Errorf("%s in PATH: %t, %d figures, skipped:\n%s", program, here, figures, skipped)
		}
	}
	md, err := os.ReadFile(filepath.Join(o.out, "bench.md"))
	if err != nil || !strings.Contains(string(md), "nicprof") || strings.Contains(string(md), res.Date.Format("2006-01-02")) {
		t.Errorf("bench.md: %v\n%s", err, md)
	}
}

// steady returns a side that reads the same values again and again.
func steady(lost float64, values ...float64) side {
	n := 0
	return func(context.Context) (reading, error) {
		n++
		return reading{value: values[(n-1)%len(values)], lost: lost}, nil
	}
}

func TestPairsAlternateAndAreJudged(t *testing.T) {
	sc := scale{pairs: 8, threads: 8, attempts: 3}
	for name, c := range map[string]struct {
		ours, theirs     side
		aim              float64
		verdict          string
		pairs, contended int
		ratio            float64
	}{
		"equal":                    {steady(0, 10), steady(0, 10), 0.03, Within, 8, 0, 1},
		"slower":                   {steady(0, 12), steady(0, 10), 0.03, Outside, 8, 0, 1.2},
		"no aim":                   {steady(0, 12), steady(0, 10), 0, Beside, 8, 0, 1.2},
		"wide":                     {steady(0, 8, 12, 10, 8, 12), steady(0, 10), 0.03, Unclear, 8, 0, 1},
		"ours lost its processor":  {steady(1, 12), steady(0, 10), 0.03, Unclear, 24, 24, 1.2},
		"losses far apart":         {steady(0.04, 12), steady(0.01, 10), 0.03, Unclear, 24, 24, 1.2},
		"losses close":             {steady(0.04, 10), steady(0.03, 10), 0.03, Within, 8, 0, 1},
		"theirs lost it half-time": {steady(0, 10), flaky(steady(0, 10), steady(1, 99)), 0.03, Within, 8, 7, 1},
	} {
		row := contest{tells: true, Comparison: Comparison{Aim: c.aim, Threads: 1}, ours: c.ours, theirs: c.theirs}
		if err := row.run(t.Context(), sc); err != nil {
			t.Fatal(err)
		}
		if row.Verdict != c.verdict || row.Pairs != c.pairs || row.Contended != c.contended || !near(row.Ratio.Median, c.ratio) {
			t.Errorf("%s: %+v", name, row.Comparison)
		}
	}
	var order strings.Builder
	note := func(s string) side {
		return func(context.Context) (reading, error) { order.WriteString(s); return reading{value: 1}, nil }
	}
	row := contest{Comparison: Comparison{Threads: 1}, ours: note("A"), theirs: note("B"), placeEvery: 2,
		place: func() error { order.WriteString("."); return nil }, done: func() error { order.WriteString("!"); return nil }}
	if err := row.run(t.Context(), scale{pairs: 5, attempts: 1}); err != nil || order.String() != ".ABAB.ABAB.AB!" {
		t.Errorf("%s, %v", &order, err)
	}
}

// flaky alternates between two sides.
func flaky(a, b side) side {
	n := 0
	return func(ctx context.Context) (reading, error) {
		if n++; n%2 == 1 {
			return a(ctx)
		}
		return b(ctx)
	}
}

// TestFailuresOfARow end the row and are told, and the run goes on; only an
// interrupt ends it.
func TestFailuresOfARow(t *testing.T) {
	broken := func(context.Context) (reading, error) { return reading{}, errors.New("no counter") }
	for name, row := range map[string]*contest{
		"ours":            {ours: broken, theirs: steady(0, 1)},
		"theirs":          {ours: steady(0, 1), theirs: broken},
		"zero":            {ours: steady(0, 0), theirs: steady(0, 1)},
		"not a number":    {ours: steady(0, 1), theirs: steady(0, math.NaN())},
		"infinite":        {ours: steady(0, math.Inf(1)), theirs: steady(0, 1)},
		"without a place": {ours: steady(0, 1), theirs: steady(0, 1), place: func() error { return errors.New("no memory") }},
	} {
		if err := row.run(t.Context(), tiny); err != nil || row.Failed == "" {
			t.Errorf("%s: %v, %+v", name, err, row.Comparison)
		}
		if _, err := json.Marshal(row.Comparison); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	row := &contest{ours: broken, theirs: broken}
	if err := row.run(ctx, tiny); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestNoiseIsRefused: with too many hidden ratios nothing is stored and the
// code is 1, unless noise is allowed.
func TestNoiseIsRefused(t *testing.T) {
	row := func(verdict string) Comparison {
		v := Value{1, 0.9, 1.1, 0}
		return Comparison{Group: "chase", Aim: 0.03, Verdict: verdict, Ours: v, Theirs: v, Ratio: v, Threads: 1, Unit: "ns"}
	}
	for name, c := range map[string]struct {
		rows   []Comparison
		allow  bool
		stored bool
	}{
		"quiet":                   {[]Comparison{row(Within), row(Outside), row(Within), row(Within), row(Unclear)}, false, true},
		"noisy":                   {[]Comparison{row(Within), row(Within), row(Unclear)}, false, false},
		"noisy and allowed":       {[]Comparison{row(Unclear)}, true, true},
		"rows without numbers":    {[]Comparison{row(Within), {Group: "lock", Aim: 0.03, Failed: "no gcc"}}, false, true},
		"nothing to compare with": {nil, false, true},
	} {
		o := options{allowNoise: c.allow, out: t.TempDir()}
		r := newResult(o)
		r.Rows = c.rows
		err := r.report(o, io.Discard)
		_, statErr := os.Stat(filepath.Join(o.out, "bench.json"))
		if stored := statErr == nil; stored != c.stored || c.stored != (err == nil) {
			t.Errorf("%s: stored %t, %v", name, stored, err)
		}
		if err != nil && fault.KindOf(err) != fault.Check {
			t.Errorf("%s: %v is no failed check", name, err)
		}
	}
}

func TestBadUsage(t *testing.T) {
	for _, args := range [][]string{{"--only", "("}, {"extra"}, {"--pairs", "-1"}, {"--nosuch"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); fault.KindOf(err) != fault.Input {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// TestPeersThatFail are reported with what they said.
func TestPeersThatFail(t *testing.T) {
	dir := t.TempDir()
	if _, err := compile(t.Context(), dir); isMissing(err) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"no such processor": {"chase", "65536", "lines", "64", "4096", "0", "1023", "1"},
		"no such order":     {"chase", "65536", "sorted", "64", "4096", "0", "0", "1"},
		"no such kind":      {"contend", "semaphore", "0"},
		"too few arguments": {"contend"},
	} {
		p, err := start(t.Context(), filepath.Join(dir, args[0]), args[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := p.ask(time.Minute, "place"); err == nil {
			t.Errorf("%s: answered %v", name, v)
		}
		if err := p.close(); err == nil {
			t.Errorf("%s: it ends well", name)
		}
	}
	p, err := start(t.Context(), "sleep", "60")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := p.ask(10*time.Millisecond, "place"); err == nil {
		t.Errorf("a peer that hangs: answered %v", v)
	}
	if err := p.close(); err == nil {
		t.Error("a peer that hangs was not killed")
	}
}

// TestPeersDoTheSameWork: the C peer's ring has the same number of lines as
// ours, in all orders, and both sides' contention counts every operation.
func TestPeersDoTheSameWork(t *testing.T) {
	dir := t.TempDir()
	if _, err := compile(t.Context(), dir); isMissing(err) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	cpus, err := linux.CPUs()
	if err != nil {
		t.Skip(err)
	}
	for _, order := range kernel.Orders {
		c := chaser{bytes: 100<<10 + 64, order: order, pages: linux.SmallPages, cpu: cpus[0], seed: 3}
		p, err := startChase(t.Context(), filepath.Join(dir, "chase"), c)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.place(); err != nil {
			t.Fatal(err)
		}
		if v, err := p.ask(time.Minute, "place"); err != nil || len(v) != 1 || int64(v[0]) != c.lines {
			t.Errorf("%s: %v lines, %v; ours %d", order, v, err, c.lines)
		}
		if err := errors.Join(p.close(), c.close()); err != nil {
			t.Error(err)
		}
	}
	for _, kind := range []string{"fetch-add", "spin", "spin-tight", "ticket", "ticket-tight", "mutex"} {
		args := []string{kind}
		for _, cpu := range cpus {
			args = append(args, fmt.Sprint(cpu))
		}
		p, err := start(t.Context(), filepath.Join(dir, "contend"), args...)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := theirContention(p, 40*time.Millisecond); err != nil || !(r.value > 0) {
			t.Errorf("%s: %+v, %v", kind, r, err)
		}
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestContentionRefuses two in at once and a processor that is not there.
func TestContentionRefuses(t *testing.T) {
	cpus, err := linux.CPUs()
	if err != nil {
		t.Skip(err)
	}
	if _, err := contention(func() kernel.Lock { return leaky{} }, cpus[:1], time.Millisecond); err == nil || !strings.Contains(err.Error(), "two were in at once") {
		t.Errorf("a lock that loses counts: %v", err)
	}
	if _, err := contention(nil, append(cpus[:len(cpus):len(cpus)], 1<<20), time.Millisecond); fault.KindOf(err) != fault.Input {
		t.Errorf("a processor outside the mask: %v", err)
	}
}

// leaky is a lock in which every other addition is lost.
type leaky struct{}

func (leaky) Name() string                      { return "leaky" }
func (leaky) Sections(counter *uint64, n int64) { *counter += uint64(n) / 2 }

// TestWindowCountsOnlyFullOverlap: the counted batches of all threads lie
// within a window in which all of them work.
func TestWindowCountsOnlyFullOverlap(t *testing.T) {
	cpus, err := linux.CPUs()
	if err != nil {
		t.Skip(err)
	}
	const d = 20 * time.Millisecond
	workers := together(cpus, d, true, func(int64) { time.Sleep(200 * time.Microsecond) })
	latest, earliest := time.Duration(0), time.Duration(math.MaxInt64)
	for _, w := range workers {
		if w.err != nil {
			t.Fatal(w.err)
		}
		if w.ops == 0 {
			continue // a machine that runs something else all the time
		}
		if w.ops > w.all || w.ops%batch != 0 || w.last-w.first > d {
			t.Errorf("%+v", w)
		}
		latest, earliest = max(latest, w.last), min(earliest, w.first)
	}
	if latest > 0 && latest-earliest > d {
		t.Errorf("batches from %v to %v in a window of %v", earliest, latest, d)
	}
}

func TestLostShareIsNeverNegative(t *testing.T) {
	for _, c := range []struct {
		wall, busy time.Duration
		want       float64
	}{{100, 90, 0.1}, {100, 100, 0}, {100, 101, 0}, {0, 5, 0}, {-1, 0, 0}} {
		if got := lostShare(c.wall, c.busy); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v of %v: %v, want %v", c.busy, c.wall, got, c.want)
		}
	}
}
