package cora

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"nicprof/board"
	"nicprof/experiments"
	"nicprof/internal/table"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/report"
	"nicprof/traffic"
)

// ideal is a board on which every law is exact: the slowest of packet I/O,
// cores, engines and locks sets the rate. Tests bend one law at a time.
type ideal struct {
	board    *board.Board
	cycles   map[string]float64                      // a stateless operation by kind
	access   func(a program.Access) float64          // engine time, µs
	engine   func(a program.Access) string           // accesses through one engine add
	lock     func(idiom program.Idiom) float64       // one lock's rate, Mpps
	override func(p program.Program) (float64, bool) // instead of all of it
}

func newIdeal(t *testing.T) *ideal {
	t.Helper()
	b, err := board.Load(boardName)
	if err != nil {
		t.Fatal(err)
	}
	return &ideal{
		board:  b,
		cycles: map[string]float64{program.ALU: 1.8, program.Multiply: 5, program.Modulo: 469, program.Hash: 947, program.Checksum: 40, program.Header: 60},
		access: func(a program.Access) float64 { return 0.001 + 0.0001*float64(a.Bytes) },
		engine: func(a program.Access) string {
			if a.Memory == "imem" {
				return a.Memory + string(a.Mode)
			}
			return a.Memory
		},
		lock: func(idiom program.Idiom) float64 {
			return map[program.Idiom]float64{program.Spin: 0.45, "sleep-200": 0.53, "sleep-1000": 1.1, program.Ticket: 3}[idiom]
		},
	}
}

func (d *ideal) Board() *board.Board { return d.board }

func (d *ideal) Measure(ctx context.Context, p program.Program, _ traffic.Traffic, o microbench.Options) (microbench.Sample, error) {
	if err := d.board.Check(p, o.Cores, o.Threads); err != nil {
		return microbench.Sample{}, err
	}
	p = d.board.Resolve(p)
	cores := 54.0
	if o.Cores > 0 {
		cores = float64(o.Cores)
	}
	x := d.rate(p, cores)
	if d.override != nil {
		if y, ok := d.override(p); ok {
			x = y
		}
	}
	return microbench.Sample{
		Board: d.board.Name, Backend: microbench.Emulated, Status: microbench.StatusOK, Program: p,
		Cores: int(cores), Threads: 8, Mpps: x, Low: 0.999 * x, High: 1.001 * x,
	}, ctx.Err()
}

func (d *ideal) rate(p program.Program, cores float64) float64 {
	cycles, io := 1425.0, 1/28.0
	if p.Base == "profiling" {
		cycles, io = 1728, 1/26.0
	}
	for kind, n := range p.Stateless {
		cycles += n * d.cycles[kind]
	}
	engines := map[string]float64{}
	for _, a := range p.Accesses {
		cycles += 20 * a.PerPacket
		engines[d.engine(a)] += a.PerPacket * d.access(a)
	}
	times := []float64{io, cycles / (cores * 800)}
	for _, t := range engines {
		times = append(times, t)
	}
	slowest := 0.0
	for _, t := range times {
		slowest = max(slowest, t)
	}
	x := 1 / slowest
	for _, l := range p.Locks {
		if l.Idiom != program.None {
			x = min(x, float64(min(l.Elements, p.Flows.Count))*d.lock(l.Idiom))
		}
	}
	return x
}

func run(t *testing.T, id string, d microbench.Driver) report.Result {
	t.Helper()
	f, err := experiments.Lookup(id)
	if err != nil {
		t.Fatal(err)
	}
	res, err := f.Run(t.Context(), experiments.Env{Seed: 1, Scale: experiments.Quick, Open: func(name string) (microbench.Driver, error) {
		if name != d.Board().Name {
			t.Errorf("opened board %q", name)
		}
		return d, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := res.SVG(); err != nil {
		t.Error(err)
	}
	if len(res.Data.Rows) == 0 {
		t.Error("no data")
	}
	return res
}

func wantMeasured(t *testing.T, res report.Result, id string, want, tolerance float64) {
	t.Helper()
	c := claims(res.Claims).find(id)
	if c.Measured == nil || math.Abs(*c.Measured-want) > tolerance {
		t.Errorf("claim %s: measured %v, want %v", id, table.Number(deref(c.Measured)), want)
	}
}

func wantVerdict(t *testing.T, res report.Result, id string, want report.Verdict) {
	t.Helper()
	if c := claims(res.Claims).find(id); c.Verdict != want {
		t.Errorf("claim %s: %s (measured %v), want %s", id, c.Verdict, table.Number(deref(c.Measured)), want)
	}
}

func deref(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

func TestPublishedFiles(t *testing.T) {
	files, err := published.ReadDir("published")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".csv")
		column, _, err := readTable(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, ok := column["id"]; !ok {
			continue // not a file of claims
		}
		cs, err := readClaims(name)
		if err != nil {
			t.Error(err)
		}
		seen := map[string]bool{}
		for _, c := range cs {
			if seen[c.ID] || c.ID == "" || c.Text == "" {
				t.Errorf("%s: claim %q is double or empty", name, c.ID)
			}
			seen[c.ID] = true
			if c.Published != nil && c.Source == "" {
				t.Errorf("%s: claim %s has a published number and no source", name, c.ID)
			}
			if c.Published == nil && (c.PublishedHigh != nil || c.Bound != "" || c.Tolerance != 0 || c.Calibrated) {
				t.Errorf("%s: claim %s limits what is not published", name, c.ID)
			}
			if c.Bound != "" && c.Bound != report.AtMost && c.Bound != report.AtLeast {
				t.Errorf("%s: claim %s has the bound %q", name, c.ID, c.Bound)
			}
		}
	}
}

func TestPublishedCurves(t *testing.T) {
	curves, err := readCurves()
	if err != nil {
		t.Fatal(err)
	}
	if len(curves) != 98 {
		t.Errorf("%d curves, want 98", len(curves))
	}
	b, err := board.Load(boardName)
	if err != nil {
		t.Fatal(err)
	}
	type key struct {
		name  string
		bytes int
		span  int64
	}
	rates := map[key]curve{}
	for _, c := range curves {
		rates[key{c.name, c.bytes, c.span}] = c
		p := program.Program{Base: "profiling", Accesses: []program.Access{c.access(10)}}
		if err := b.Check(p, 0, 0); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
	// Rates at 1 and 10 accesses, worked out by hand from the coefficients.
	for k, want := range map[key][2]float64{
		{"irb", 128, 8192}: {27.6, 9.7}, {"era", 32, 8192}: {25.5, 13.5}, {"iwa", 32, 8192}: {28.8, 6.6},
		{"ewa", 8, missSpan}: {13.3, 4.9}, {"ewb", 128, missSpan}: {20.4, 13.5}, {"erb", 128, 8192}: {25.0, 7.7},
	} {
		for n, i := range []float64{1, 10} {
			if got := rates[k].at(i); math.Abs(got-want[n]) > 0.06 {
				t.Errorf("%v at %g accesses: %.2f Mpps, want %.1f", k, i, got, want[n])
			}
		}
	}
}

func TestCurveAccess(t *testing.T) {
	for _, c := range []struct {
		curve curve
		want  program.Access
	}{
		{curve{name: "irb", bytes: 4, span: 8}, program.Access{Memory: "imem", Op: program.Read, Mode: program.Bulk, Bytes: 4, PerPacket: 7, Span: 8}},
		{curve{name: "ewa", bytes: 8, span: 1}, program.Access{Memory: "emem", Op: program.Write, Mode: program.Atomic, Bytes: 8, PerPacket: 7, Span: 1}},
		{curve{name: "era", bytes: 4, span: 1 << 23}, program.Access{Memory: "emem", Op: program.Read, Mode: program.Atomic, Bytes: 32, PerPacket: 7, Span: 1 << 23}},
		{curve{name: "ewb", bytes: 4, span: 1 << 23}, program.Access{Memory: "emem", Op: program.Write, Mode: program.Bulk, Bytes: 4, PerPacket: 7, Span: 1 << 23}},
	} {
		if got := c.curve.access(7); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %+v, want %+v", c.curve, got, c.want)
		}
	}
}

func TestStatelessMeasuresCosts(t *testing.T) {
	d := newIdeal(t)
	res := run(t, "cora/stateless", d)
	wantMeasured(t, res, "alu-cycles", 1.8, 1e-6)
	wantMeasured(t, res, "modulo-cycles", 469, 1e-6)
	wantMeasured(t, res, "hash-cycles", 947, 1e-6)
	wantMeasured(t, res, "base-cycles", 1425, 1e-6)
	wantMeasured(t, res, "forward", 28, 1e-9)
	wantMeasured(t, res, "ops-400", 54*800/(1425+400*1.8), 1e-9)
	for _, c := range res.Claims {
		wantVerdict(t, res, c.ID, report.Reproduced)
	}
	d.cycles[program.ALU] = 4
	res = run(t, "cora/stateless", d)
	wantMeasured(t, res, "alu-cycles", 4, 1e-6)
	wantVerdict(t, res, "alu-cycles", report.Differs)
	wantVerdict(t, res, "ops-400", report.Differs)
	wantVerdict(t, res, "forward", report.Reproduced)
}

// publishedLaw makes a board follow the published curves, scaled.
func publishedLaw(t *testing.T, scale float64) *ideal {
	curves, err := readCurves()
	if err != nil {
		t.Fatal(err)
	}
	d := newIdeal(t)
	d.override = func(p program.Program) (float64, bool) {
		if p.Base != "profiling" || len(p.Accesses) != 1 {
			return 0, false
		}
		a := p.Accesses[0]
		for _, c := range curves {
			want := c.access(a.PerPacket)
			if a.Memory == want.Memory && a.Op == want.Op && a.Mode == want.Mode && a.Bytes == want.Bytes && a.Span == want.Span {
				return scale * c.at(a.PerPacket), true
			}
		}
		return 0, false
	}
	return d
}

func TestRooflinesOfAnExactBoardHaveNoError(t *testing.T) {
	res := run(t, "cora/fig7a", publishedLaw(t, 1))
	// The atomic accesses at span 2²³ moved 32 B whatever their width, and the
	// release has a curve for each width: no board follows all of them.
	wantMeasured(t, res, "median-error", 0, 1e-9)
	wantMeasured(t, res, "p90-error", 0, 1e-9)
	wantMeasured(t, res, "max-error", 0, 6)
	wantMeasured(t, res, "spread", 8.1, 0.1)
	wantVerdict(t, res, "spread", report.Reproduced)

	res = run(t, "cora/fig7a", publishedLaw(t, 1.1))
	wantMeasured(t, res, "median-error", 10, 1e-6)
	wantMeasured(t, res, "spread", 8.1, 0.1)
	if len(res.Tables[0].Rows) != 98 {
		t.Errorf("error table of %d curves", len(res.Tables[0].Rows))
	}
	if row := strings.Join(res.Tables[0].Rows[0], " "); !strings.HasPrefix(row, "irb 4 1 10.00 10.00 10.00") {
		t.Errorf("first row of errors: %s", row)
	}
}

func TestFlatBoardHasNoSpread(t *testing.T) {
	d := newIdeal(t)
	d.override = func(p program.Program) (float64, bool) { return 20, len(p.Accesses) == 1 }
	res := run(t, "cora/fig7a", d)
	wantMeasured(t, res, "spread", 1, 1e-9)
	wantVerdict(t, res, "spread", report.Differs)
	wantVerdict(t, res, "reads-64b-bulk", report.Differs)
}

func TestLocksOfAnExactBoard(t *testing.T) {
	d := newIdeal(t)
	res := run(t, "cora/fig9", d)
	free := 54 * 800 / 1728.0
	wantMeasured(t, res, "one-flow", 0.45, 1e-9)
	wantMeasured(t, res, "lock-free", free, 1e-9)
	wantMeasured(t, res, "n-thread", free/0.45, 0.01)
	wantMeasured(t, res, "linearity", 1, 1e-9)
	wantMeasured(t, res, "linear-range", 60, 0) // 25/0.45 = 55.6 locks, and 10 %
	wantMeasured(t, res, "model-error", 0, 1e-6)
	wantMeasured(t, res, "sleep-1000", 1.1/0.45, 1e-9)
	wantMeasured(t, res, "ticket", 3/0.45, 1e-9)
	wantVerdict(t, res, "model-error", report.Reproduced)
}

func TestBentLocksDiffer(t *testing.T) {
	d := newIdeal(t)
	d.override = func(p program.Program) (float64, bool) {
		if len(p.Locks) == 0 || p.Locks[0].Idiom != program.Spin {
			return 0, false
		}
		k := float64(p.Flows.Count)
		return 25 * k / (k + 54), true // half of Eq. 6 at its knee
	}
	res := run(t, "cora/fig9", d)
	wantVerdict(t, res, "model-error", report.Differs)
	wantVerdict(t, res, "linearity", report.Differs)
}

func TestTable9FindsWhatTheBoardDoes(t *testing.T) {
	classes := []string{"same-engine", "imem-modes", "emem-modes", "memories"}
	d := newIdeal(t)
	// Time enough in the engines that they and not the cores are the limit.
	d.access = func(a program.Access) float64 { return 0.005 + 0.0001*float64(a.Bytes) }
	res := run(t, "cora/table9", d)
	for _, id := range classes {
		wantMeasured(t, res, id, 100, 0)
		wantVerdict(t, res, id, report.Reproduced)
	}
	wantMeasured(t, res, "undecided", 0, 0)
	marked := func(res report.Result) int {
		n := 0
		for _, row := range res.Figure.Panels[0].Matrix.Mark {
			for _, m := range row {
				if m {
					n++
				}
			}
		}
		return n
	}
	if n := marked(res); n != 0 {
		t.Errorf("%d cells framed on a board as the paper's", n)
	}

	d.engine = func(a program.Access) string { return a.Memory } // IMEM's engines are one
	res = run(t, "cora/table9", d)
	wantVerdict(t, res, "imem-modes", report.Differs)
	wantMeasured(t, res, "imem-modes", 0, 0)
	wantMeasured(t, res, "memories", 100, 0)
	if n := marked(res); n != 4 { // read and write, bulk and atomic
		t.Errorf("%d cells framed, want 4", n)
	}

	d.engine = func(a program.Access) string { return a.Memory + string(a.Mode) } // EMEM's are two
	res = run(t, "cora/table9", d)
	wantVerdict(t, res, "emem-modes", report.Differs)
	wantMeasured(t, res, "imem-modes", 100, 0)
}

func TestMixes(t *testing.T) {
	d := newIdeal(t)
	sizes := []int{8, 32, 128}
	all := mixes(1, 100, sizes)
	if !reflect.DeepEqual(all, mixes(1, 100, sizes)) {
		t.Error("the same seed gave other mixes")
	}
	if reflect.DeepEqual(all, mixes(2, 100, sizes)) {
		t.Error("another seed gave the same mixes")
	}
	kinds := map[int]int{}
	for i, p := range all {
		total := 0.0
		for _, a := range p.Accesses {
			total += a.PerPacket
			if a.Mode == program.Atomic && a.Bytes > largestAtomic {
				t.Errorf("mix %d: atomic access of %d B", i, a.Bytes)
			}
			if skewed := a.Popularity == "zipf"; skewed != (i%4 == 3) {
				t.Errorf("mix %d: popularity %q", i, a.Popularity)
			}
		}
		if total > maxMixed || total < 2 {
			t.Errorf("mix %d: %g accesses a packet", i, total)
		}
		kinds[len(p.Accesses)]++
		if err := d.board.Check(p, 0, 0); err != nil {
			t.Errorf("mix %d: %v", i, err)
		}
	}
	if kinds[2] == 0 || kinds[3] == 0 || kinds[4] == 0 || len(kinds) != 3 {
		t.Errorf("mixes by kinds of access: %v", kinds)
	}
}

func TestMixedAccessesOfAnExactBoard(t *testing.T) {
	res := run(t, "cora/fig7b", newIdeal(t))
	for _, c := range res.Claims {
		wantVerdict(t, res, c.ID, report.NotPublished)
	}
	byDefault := *claims(res.Claims).find("default").Measured
	literal := *claims(res.Claims).find("literal").Measured
	// The model's laws are softer than this board's, so its error is not 0.
	if byDefault > 10 || literal < 2*byDefault {
		t.Errorf("error of the default rule %.1f %%, of the literal one, which counts the base's time once an access kind, %.1f %%", byDefault, literal)
	}
	if len(res.Data.Rows) != 40 {
		t.Errorf("%d mixes in data.csv", len(res.Data.Rows))
	}
}

func TestBytesDependOnTheSeedAlone(t *testing.T) {
	write := func(seed uint64, parallel int) map[string][]byte {
		f, err := experiments.Lookup("cora/stateless")
		if err != nil {
			t.Fatal(err)
		}
		b, err := board.Load(boardName)
		if err != nil {
			t.Fatal(err)
		}
		res, err := f.Run(t.Context(), experiments.Env{Seed: seed, Scale: experiments.Quick, Parallel: parallel,
			Open: func(string) (microbench.Driver, error) { return microbench.Open(b, microbench.Emulated) }})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := report.Write(dir, &res); err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{}
		for _, name := range []string{report.DataFile, report.FigureFile, report.TableFile, report.JSONFile} {
			data, err := os.ReadFile(filepath.Join(dir, "cora", "stateless", name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = data
		}
		return files
	}
	one, three, other := write(1, 1), write(1, 3), write(2, 3)
	for name := range one {
		if !bytes.Equal(one[name], three[name]) {
			t.Errorf("%s depends on the number of measurements at a time", name)
		}
		if bytes.Equal(one[name], other[name]) {
			t.Errorf("%s is the same for another seed", name)
		}
	}
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := newIdeal(t)
	for _, f := range experiments.List() {
		_, err := f.Run(ctx, experiments.Env{Seed: 1, Scale: experiments.Quick, Open: func(string) (microbench.Driver, error) { return d, nil }})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", f.ID, err)
		}
	}
}
