// Package validate holds a model against programs that no fit has seen: random
// ones, predicted and measured.
package validate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"nicprof/internal/fault"
	"nicprof/internal/stats"
	"nicprof/microbench"
	"nicprof/model"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// Options of Run. The zero value is 200 programs by the model's default rule.
type Options struct {
	Programs int // 0: 200
	Seed     uint64
	// Twice measures every program a second time after all of them, one at a
	// time: what a real machine differs from itself by is the least error that a
	// model can have.
	Twice     bool
	Rule      string
	Precision float64 // of the measurements, 0: 0.01
	MaxRuns   int     // replications of one measurement, 0: 4
	Parallel  int     // measurements at a time, 0: one a processor
	Worst     int     // cases listed, 0: 5

	// Progress, if set, is called by one goroutine at a time.
	Progress func(done, total int)
}

// Case is one program, predicted and measured.
type Case struct {
	Program   string  `json:"program"`
	Predicted float64 `json:"predicted"` // Mpps
	Measured  float64 `json:"measured"`
	ErrorPct  float64 `json:"error_pct"` // predicted above measured, per cent of measured
	Why       string  `json:"why"`

	Source program.Program `json:"-"`

	again  float64 // measured the second time, Mpps
	inside bool    // the measured interval meets the predicted one
	noisy  string  // why there is no measurement
}

// Noise is how far the second measurement of a program lay from the first, per
// cent, in absolute values.
type Noise struct {
	N    int     `json:"n"`
	Mean float64 `json:"mean_pct"`
	P95  float64 `json:"p95_pct"`
}

// Kind is the error over the programs of one kind.
type Kind struct {
	Name string  `json:"name"` // with locks, without locks
	N    int     `json:"n"`
	Mean float64 `json:"mean_error_pct"`
	P95  float64 `json:"p95_error_pct"`
}

// Skipped is a program that the machine was too noisy to measure.
type Skipped struct {
	Program string `json:"program"`
	Reason  string `json:"reason"`
}

// Result is the error of the model over the programs, per cent of the measured
// rate, in absolute values.
type Result struct {
	N      int     `json:"n"`
	Mean   float64 `json:"mean_error_pct"`
	Median float64 `json:"median_error_pct"`
	P95    float64 `json:"p95_error_pct"`
	Max    float64 `json:"max_error_pct"`
	Rule   string  `json:"rule"`
	Seed   uint64  `json:"seed"`
	Inside float64 `json:"inside_interval"` // share of measured rates inside the predicted interval
	Kinds  []Kind  `json:"kinds,omitempty"` // of run-to-completion boards
	// Noise is there when every program was measured twice. Measured is then the
	// geometric mean.
	Noise   *Noise    `json:"noise_floor,omitempty"`
	Skipped []Skipped `json:"skipped,omitempty"`
	Worst   []Case    `json:"worst"`
	Cases   []Case    `json:"-"` // all, in the order of the programs
}

// mostSkipped is the share of programs that a machine may be too noisy for.
const mostSkipped = 0.1

// Check returns a check fault when the mean or the 95th percentile is beyond
// the bounds, per cent, or when too many programs could not be measured.
func (r Result) Check(mean, p95 float64) error {
	if n := len(r.Skipped); float64(n) > mostSkipped*float64(n+r.N) {
		return fault.Checkf("%d of %d programs could not be measured, such as: %s", n, n+r.N, r.Skipped[0].Reason)
	}
	if r.Mean <= mean && r.P95 <= p95 {
		return nil
	}
	return fault.Checkf("mean error %.1f %% (bound %g), 95th percentile %.1f %% (bound %g) over %d programs", r.Mean, mean, r.P95, p95, r.N)
}

// Run predicts and measures random programs of the driver's board. Its result
// depends on the seed, not on Parallel.
func Run(ctx context.Context, m *model.Model, d microbench.Driver, o Options) (Result, error) {
	if o.Programs == 0 {
		o.Programs = 200
	}
	if o.Programs < 1 {
		return Result{}, fault.Inputf("%d programs; expected at least 1", o.Programs)
	}
	if o.Precision == 0 {
		o.Precision = 0.01
	}
	if o.MaxRuns == 0 {
		o.MaxRuns = 4
	}
	if o.Worst == 0 {
		o.Worst = 5
	}
	if o.Parallel == 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	b := d.Board()
	if m.Board != b.Name {
		return Result{}, fault.Inputf("the model is of board %s, not %s: fit one of this board", m.Board, b.Name)
	}
	programs := RandomPrograms(b, o.Programs, o.Seed)
	cases := make([]Case, len(programs))
	passes := 1
	if o.Twice {
		passes, o.Parallel = 2, 1
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	var progress sync.Mutex
	done := 0
	for range o.Parallel {
		wg.Go(func() {
			for i := range next {
				p := programs[i%len(programs)]
				if err := cases[i%len(programs)].run(ctx, m, d, p, i, o); err != nil {
					cancel(fmt.Errorf("program %s: %w", p.Name, err))
					continue
				}
				progress.Lock()
				done++
				if o.Progress != nil {
					o.Progress(done, passes*len(programs))
				}
				progress.Unlock()
			}
		})
	}
	for i := range passes * len(programs) {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return Result{}, err
	}
	return summarise(cases, o, m)
}

// run predicts and measures a program; i counts the measurements. A machine too
// noisy for this one leaves the case without a measurement.
func (c *Case) run(ctx context.Context, m *model.Model, d microbench.Driver, p program.Program, i int, o Options) error {
	if c.noisy != "" {
		return nil
	}
	want, err := m.Predict(p, traffic.Traffic{}, model.Options{Rule: o.Rule})
	if err != nil {
		return err
	}
	s, err := d.Measure(ctx, p, traffic.Traffic{}, microbench.Options{
		Seed:      sim.NewStream(o.Seed, "validate "+strconv.Itoa(i)).Uint64() >> 11,
		Precision: o.Precision, MaxRuns: o.MaxRuns,
	})
	if fault.KindOf(err) == fault.Check {
		c.Program, c.noisy = describe(p), err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	if c.Measured > 0 {
		c.again = s.Mpps
		return nil
	}
	*c = Case{Program: describe(p), Predicted: want.Mpps, Measured: s.Mpps, Source: p}
	c.Why = why(&want, &s)
	c.inside = s.High >= want.Low && s.Low <= want.High
	return nil
}

// summarise judges the cases that were measured.
func summarise(all []Case, o Options, m *model.Model) (Result, error) {
	r := Result{Seed: o.Seed, Rule: o.Rule}
	if r.Rule == "" {
		r.Rule = m.DefaultRule
	}
	var cases []Case
	var differences []float64
	for _, c := range all {
		if c.noisy != "" {
			r.Skipped = append(r.Skipped, Skipped{c.Program, c.noisy})
			continue
		}
		if c.again > 0 {
			differences = append(differences, 100*math.Abs(c.again/c.Measured-1))
			c.Measured = math.Sqrt(c.Measured * c.again)
		}
		c.ErrorPct = 100 * (c.Predicted/c.Measured - 1)
		cases = append(cases, c)
	}
	if len(cases) == 0 {
		return r, fault.Checkf("none of %d programs could be measured, such as: %s", len(all), r.Skipped[0].Reason)
	}
	r.N, r.Cases = len(cases), cases
	r.Mean, r.P95, r.Median, r.Max = errorsOf(cases, func(*Case) bool { return true })
	if len(differences) > 0 {
		sorted := stats.Sorted(differences)
		r.Noise = &Noise{N: len(sorted), Mean: mean(sorted), P95: sorted.Percentile(95)}
	}
	for _, k := range []struct {
		name  string
		locks bool
	}{{"without locks", false}, {"with locks", true}} {
		of := func(c *Case) bool { return (len(c.Source.Locks) > 0) == k.locks }
		n := 0
		for i := range cases {
			if of(&cases[i]) {
				n++
			}
		}
		if n > 0 && m.CoreLaw != nil {
			x := Kind{Name: k.name, N: n}
			x.Mean, x.P95, _, _ = errorsOf(cases, of)
			r.Kinds = append(r.Kinds, x)
		}
	}
	in := 0
	for _, c := range cases {
		if c.inside {
			in++
		}
	}
	r.Inside = float64(in) / float64(len(cases))
	r.Worst = slices.Clone(cases)
	slices.SortStableFunc(r.Worst, func(a, b Case) int { return cmp.Compare(math.Abs(b.ErrorPct), math.Abs(a.ErrorPct)) })
	r.Worst = r.Worst[:min(o.Worst, len(r.Worst))]
	return r, nil
}

// errorsOf are the absolute errors of some cases, per cent.
func errorsOf(cases []Case, want func(*Case) bool) (average, p95, median, most float64) {
	var pct []float64
	for i := range cases {
		if want(&cases[i]) {
			pct = append(pct, math.Abs(cases[i].ErrorPct))
		}
	}
	sorted := stats.Sorted(pct)
	return mean(pct), sorted.Percentile(95), sorted.Percentile(50), sorted[len(sorted)-1]
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x / float64(len(v))
	}
	return sum
}

// describe writes a program in one line.
func describe(p program.Program) string {
	s := []string{p.Base}
	for _, kind := range program.Kinds {
		if n := p.Stateless[kind]; n > 0 {
			s = append(s, kind+"="+strconv.FormatFloat(n, 'g', -1, 64))
		}
	}
	for _, a := range p.Accesses {
		s = append(s, a.String())
	}
	for _, l := range p.Locks {
		s = append(s, l.String())
	}
	if len(p.Chain) > 0 {
		s = append(s, microbench.DescribeChain(p))
	}
	if f := p.Flows; f != nil && len(p.Locks) > 0 {
		s = append(s, strconv.Itoa(f.Count)+" flows"+popularity(f.Popularity, f.Alpha))
	}
	return strings.Join(s, " + ")
}

func popularity(kind string, alpha float64) string {
	if kind != "zipf" {
		return ""
	}
	return " zipf " + strconv.FormatFloat(alpha, 'g', -1, 64)
}

// why says where prediction and measurement part: the resource that each takes
// for the bottleneck, and how busy the predicted one really was.
func why(p *model.Prediction, s *microbench.Sample) string {
	if math.Abs(p.Mpps/s.Mpps-1) < 0.01 {
		return "agrees"
	}
	real, known := s.Utilisation[p.Bottleneck]
	if s.Backend == microbench.Native || s.Backend == microbench.Remote {
		return fmt.Sprintf("bound by %s as predicted; what bounds a real core was not measured", p.Bottleneck)
	}
	switch {
	case p.Bottleneck == s.Bottleneck && p.Mpps > s.Mpps:
		return fmt.Sprintf("%s is the bottleneck in both, and takes longer than the fit says", p.Bottleneck)
	case p.Bottleneck == s.Bottleneck:
		return fmt.Sprintf("%s is the bottleneck in both, and takes less time than the fit says", p.Bottleneck)
	case known && real > 0.9:
		return fmt.Sprintf("%s (%.0f %% busy) and %s (%.0f %%) are both near saturation: the knee is softer or harder than the norm", p.Bottleneck, 100*real, s.Bottleneck, 100*s.Utilisation[s.Bottleneck])
	case known:
		return fmt.Sprintf("predicted bottleneck %s was %.0f %% busy; measured: %s", p.Bottleneck, 100*real, s.Bottleneck)
	}
	return fmt.Sprintf("predicted bottleneck %s; measured: %s", p.Bottleneck, s.Bottleneck)
}
