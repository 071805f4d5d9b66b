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
	Programs  int // 0: 200
	Seed      uint64
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
	Worst  []Case  `json:"worst"`
	Cases  []Case  `json:"-"` // all, in the order of the programs
}

// Check returns a check fault when the mean or the 95th percentile is beyond
// the bounds, per cent.
func (r Result) Check(mean, p95 float64) error {
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
	inside := make([]bool, len(programs))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	var progress sync.Mutex
	done := 0
	for range o.Parallel {
		wg.Go(func() {
			for i := range next {
				c, in, err := run(ctx, m, d, programs[i], i, o)
				if err != nil {
					cancel(fmt.Errorf("program %s: %w", programs[i].Name, err))
					continue
				}
				cases[i], inside[i] = c, in
				progress.Lock()
				done++
				if o.Progress != nil {
					o.Progress(done, len(programs))
				}
				progress.Unlock()
			}
		})
	}
	for i := range programs {
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
	return summarise(cases, inside, o, m), nil
}

// run predicts and measures one program.
func run(ctx context.Context, m *model.Model, d microbench.Driver, p program.Program, i int, o Options) (Case, bool, error) {
	want, err := m.Predict(p, traffic.Traffic{}, model.Options{Rule: o.Rule})
	if err != nil {
		return Case{}, false, err
	}
	s, err := d.Measure(ctx, p, traffic.Traffic{}, microbench.Options{
		Seed:      sim.NewStream(o.Seed, "validate "+strconv.Itoa(i)).Uint64() >> 11,
		Precision: o.Precision, MaxRuns: o.MaxRuns,
	})
	if err != nil {
		return Case{}, false, err
	}
	c := Case{Program: describe(p), Predicted: want.Mpps, Measured: s.Mpps, ErrorPct: 100 * (want.Mpps/s.Mpps - 1), Source: p}
	c.Why = why(&want, &s)
	return c, s.High >= want.Low && s.Low <= want.High, nil
}

func summarise(cases []Case, inside []bool, o Options, m *model.Model) Result {
	r := Result{N: len(cases), Cases: cases, Seed: o.Seed, Rule: o.Rule}
	if r.Rule == "" {
		r.Rule = m.DefaultRule
	}
	pct := make([]float64, len(cases))
	in := 0
	for i, c := range cases {
		pct[i] = math.Abs(c.ErrorPct)
		r.Mean += pct[i] / float64(len(cases))
		if inside[i] {
			in++
		}
	}
	r.Inside = float64(in) / float64(len(cases))
	sorted := stats.Sorted(pct)
	r.Median, r.P95, r.Max = sorted.Percentile(50), sorted.Percentile(95), sorted[len(sorted)-1]
	r.Worst = slices.Clone(cases)
	slices.SortStableFunc(r.Worst, func(a, b Case) int { return cmp.Compare(math.Abs(b.ErrorPct), math.Abs(a.ErrorPct)) })
	r.Worst = r.Worst[:min(o.Worst, len(r.Worst))]
	return r
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
