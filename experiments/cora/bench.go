package cora

import (
	"context"

	"nicprof/experiments"
	"nicprof/internal/stats"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/report"
	"nicprof/sim"
	"nicprof/traffic"
)

// Boards of Cora's experiments in the catalogue.
const (
	boardName = "nfp"
	socBoard  = "bluefield"
)

// bench collects the measurements of a figure, which then run together.
type bench struct {
	env       experiments.Env
	driver    microbench.Driver
	id        string
	runs      int // most replications a point, 0: the driver's own
	workloads []microbench.Workload
	samples   []microbench.Sample
}

// newBench opens Cora's Netronome board.
func newBench(env experiments.Env, id string) (*bench, error) { return newBenchOn(env, id, boardName) }

// newBenchOn opens a board. Precision and runs follow the scale: a quick figure
// takes one replication a point, whose interval is that of its batches, a full
// one as many as the driver's own precision wants.
func newBenchOn(env experiments.Env, id, name string) (*bench, error) {
	d, err := env.Open(name)
	if err != nil {
		return nil, err
	}
	b := &bench{env: env, driver: d, id: id, runs: 1}
	if env.Scale == experiments.Full {
		b.runs = 0
	}
	return b, nil
}

// add plans a measurement of p on all cores and returns its index in samples. The
// key names it within the figure; its random streams follow from the figure's
// seed, ID and key.
func (b *bench) add(key string, p program.Program) int { return b.addOn(key, p, 0) }

// addOn is add on so many cores.
func (b *bench) addOn(key string, p program.Program, cores int) int {
	p.Name = key
	b.workloads = append(b.workloads, microbench.Workload{
		Key:     key,
		Program: p,
		Traffic: traffic.Traffic{Flows: p.Flows},
		Options: microbench.Options{
			Seed:    sim.NewStream(b.env.Seed, b.id+"/"+key).Uint64() >> 11, // 53 bits, which JSON keeps
			MaxRuns: b.runs,
			Cores:   cores,
		},
	})
	return len(b.workloads) - 1
}

// plan adds the workloads of a suite that keep wants (nil: all), as a sweep of
// the same seed measures them, but for the replications of a quick figure.
// Those planned already are left out.
func (b *bench) plan(suite string, groups []string, keep func(microbench.Workload) bool) error {
	ws, err := microbench.Plan(b.driver.Board(), suite, groups, b.env.Seed)
	if err != nil {
		return err
	}
	planned := map[string]bool{}
	for _, w := range b.workloads {
		planned[w.Key] = true
	}
	for _, w := range ws {
		if planned[w.Key] || keep != nil && !keep(w) {
			continue
		}
		if b.runs > 0 {
			w.Options.MaxRuns = b.runs
		}
		b.workloads = append(b.workloads, w)
	}
	return nil
}

// run measures everything planned and begins the figure's result.
func (b *bench) run(ctx context.Context) (report.Result, error) {
	var err error
	if b.samples, err = b.env.Measure(ctx, b.driver, b.workloads); err != nil {
		return report.Result{}, err
	}
	return report.Result{Board: b.driver.Board().Name, Backend: b.samples[0].Backend}, nil
}

// point is sample i at x, with its interval.
func (b *bench) point(x float64, i int) report.Point {
	s := b.samples[i]
	return report.Point{X: x, Y: s.Mpps, Low: s.Low, High: s.High}
}

// every returns from, from+step, … up to to.
func every(from, step, to int) []int {
	var v []int
	for x := from; x <= to; x += step {
		v = append(v, x)
	}
	return v
}

// quantile returns the q-quantile, 0 to 1, of values.
func quantile(values []float64, q float64) float64 { return stats.Sorted(values).Percentile(100 * q) }
