// Package experiments is the registry of figures that this project reproduces.
// A figure measures, holds what it measured against what its paper printed,
// and returns a report.Result; one package per paper below this one registers
// its figures.
package experiments

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"nicprof/internal/fault"
	"nicprof/internal/near"
	"nicprof/internal/table"
	"nicprof/microbench"
	"nicprof/report"
)

// Scale is how finely a figure is measured.
type Scale string

// Scales. Quick takes seconds a figure and has the same claims as Full.
const (
	Quick Scale = "quick"
	Full  Scale = "full"
)

// ParseScale returns the scale of that name.
func ParseScale(s string) (Scale, error) {
	if s != string(Quick) && s != string(Full) {
		return "", fault.Inputf("scale %q is unknown; expected %s or %s", s, Quick, Full)
	}
	return Scale(s), nil
}

// Env is what a figure gets from its caller. Open returns the driver of a
// board by its catalogue name. Parallel is the number of measurements at a
// time (0: one a processor); no result depends on it. Progress, if set, is
// called after each measurement, one call at a time.
type Env struct {
	Seed     uint64
	Scale    Scale
	Parallel int
	Open     func(board string) (microbench.Driver, error)
	Progress func(done, total int)
}

// Figure is one figure or table of a paper. ID is PAPER/NAME. Run measures and
// judges it.
type Figure struct {
	ID    string
	Paper string
	Title string
	Run   func(ctx context.Context, env Env) (report.Result, error)
}

// Registry holds figures by ID.
type Registry struct{ figures []Figure }

var registry Registry

// Register makes a figure known to List and Lookup. It is called from the init
// function of a paper's package.
func Register(f Figure) { registry.Register(f) }

// List returns the registered figures, sorted by ID.
func List() []Figure { return registry.List() }

// Lookup returns the registered figure of that ID. An unknown one is an input
// fault that names near ones.
func Lookup(id string) (Figure, error) { return registry.Lookup(id) }

// Register adds a figure. One registered twice, or without ID or Run, is a
// programming error and panics. The figure's Run is wrapped: what is known from
// the figure and the Env is filled into its Result, and its claims are judged.
func (r *Registry) Register(f Figure) {
	if f.ID == "" || f.Run == nil {
		panic("experiments: a figure needs an ID and a Run")
	}
	i, twice := r.find(f.ID)
	if twice {
		panic("experiments: figure " + f.ID + " registered twice")
	}
	run := f.Run
	f.Run = func(ctx context.Context, env Env) (report.Result, error) {
		res, err := run(ctx, env)
		if err != nil {
			return report.Result{}, fmt.Errorf("%s: %w", f.ID, err)
		}
		res.ID, res.Paper, res.Title = f.ID, f.Paper, f.Title
		res.Seed, res.Scale = env.Seed, string(env.Scale)
		res.Settle()
		return res, nil
	}
	r.figures = slices.Insert(r.figures, i, f)
}

// List returns the figures, sorted by ID.
func (r *Registry) List() []Figure { return slices.Clone(r.figures) }

// Lookup returns the figure of that ID; see the function of that name.
func (r *Registry) Lookup(id string) (Figure, error) {
	if i, ok := r.find(id); ok {
		return r.figures[i], nil
	}
	var ids, meant []string
	for _, f := range r.figures {
		ids = append(ids, f.ID)
		if _, name, _ := strings.Cut(f.ID, "/"); name == id || strings.HasPrefix(f.ID, id+"/") {
			meant = append(meant, f.ID)
		}
	}
	if len(meant) == 0 {
		meant = near.Of(id, ids)
	}
	hint := "list shows all figures"
	if len(meant) > 0 {
		hint = "did you mean " + strings.Join(meant, ", ") + "?"
	}
	return Figure{}, fault.Inputf("there is no figure %q; %s", id, hint)
}

func (r *Registry) find(id string) (int, bool) {
	return slices.BinarySearchFunc(r.figures, id, func(f Figure, id string) int { return strings.Compare(f.ID, id) })
}

// Strict returns a fault.Check error that lists the claims of a result which
// differ without a reason, or whose verdict is not the stored one (stored nil:
// nothing stored). A claim that is new or gone is a changed verdict too.
func Strict(stored *report.Result, r report.Result) error {
	var found []string
	for _, c := range r.Claims {
		if c.Verdict == report.Differs && c.Reason == "" {
			found = append(found, fmt.Sprintf("%s differs (paper %s, measured %s %s) and no reason is given", c.ID, c.Expected(), measured(c), c.Unit))
		}
	}
	if stored != nil {
		for _, c := range r.Claims {
			switch was := verdictOf(stored.Claims, c.ID); {
			case was == "":
				found = append(found, fmt.Sprintf("%s is %s and was not in the stored result", c.ID, c.Verdict))
			case was != c.Verdict:
				found = append(found, fmt.Sprintf("%s is %s (measured %s %s), the stored result (seed %d, %s scale) says %s", c.ID, c.Verdict, measured(c), c.Unit, stored.Seed, stored.Scale, was))
			}
		}
		for _, c := range stored.Claims {
			if verdictOf(r.Claims, c.ID) == "" {
				found = append(found, fmt.Sprintf("%s of the stored result is gone", c.ID))
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fault.Checkf("%s: %s", r.ID, strings.Join(found, "; "))
}

func verdictOf(claims []report.Claim, id string) report.Verdict {
	for _, c := range claims {
		if c.ID == id {
			return c.Verdict
		}
	}
	return ""
}

func measured(c report.Claim) string {
	if c.Measured == nil {
		return "nothing"
	}
	return table.Number(*c.Measured)
}

// Measure runs workloads on a driver, Parallel at a time, and returns their
// samples in the order of the workloads. It stops at the first error and
// returns it; an interrupt returns ctx's error.
func (e Env) Measure(ctx context.Context, d microbench.Driver, ws []microbench.Workload) ([]microbench.Sample, error) {
	samples := make([]microbench.Sample, len(ws))
	err := e.Each(ctx, len(ws), func(ctx context.Context, i int) error {
		w := ws[i]
		s, err := d.Measure(ctx, w.Program, w.Traffic, w.Options)
		s.Index, s.Key, s.Group = i, w.Key, w.Group
		samples[i] = s
		if err != nil {
			return fmt.Errorf("workload %s: %w", w.Key, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return samples, nil
}

// Each calls do for 0 to n-1, Parallel at a time. It stops at the first error
// and returns it; an interrupt returns ctx's error.
func (e Env) Each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	inner, stop := context.WithCancel(ctx)
	defer stop()
	workers := e.Parallel
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	next := make(chan int)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex // of what follows, and of Progress
		done  int
		first error
	)
	for range min(workers, n) {
		wg.Go(func() {
			for i := range next {
				err := do(inner, i)
				mu.Lock()
				switch {
				case err != nil && first == nil:
					first = err
					stop()
				case err == nil:
					done++
					if e.Progress != nil {
						e.Progress(done, n)
					}
				}
				mu.Unlock()
			}
		})
	}
	for i := range n {
		if inner.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return first
}
