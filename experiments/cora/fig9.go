package cora

import (
	"context"
	"fmt"
	"math"

	"nicprof/experiments"
	"nicprof/fit/locks"
	"nicprof/program"
	"nicprof/report"
	"nicprof/traffic"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "cora/fig9", Paper: paper, Title: "figure 9: throughput by number of flows, with and without locks", Run: fig9,
	})
}

// lockElements is the size of the lock array, larger than the flow counts, so
// that each flow has a lock of its own.
const lockElements = 4096

// idioms are the ways of taking a lock, and none: the lock-free version.
var idioms = []program.Idiom{program.Spin, "sleep-200", "sleep-1000", program.Ticket, program.None}

func locked(idiom program.Idiom, flows int) program.Program {
	return program.Program{
		Base:  "profiling",
		Locks: []program.Lock{{Name: "lock", Elements: lockElements, Idiom: idiom}},
		Flows: &traffic.Flows{Count: flows},
	}
}

func fig9(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("fig9")
	if err != nil {
		return report.Result{}, err
	}
	b, err := newBench(env, "cora/fig9")
	if err != nil {
		return report.Result{}, err
	}
	flows, few := append([]int{1, 2}, every(4, 4, 64)...), []int{1, 4, 16, 32, 64}
	if env.Scale == experiments.Full {
		flows = append(every(1, 1, 64), 72, 80, 96, 128)
		few = append([]int{1, 2}, every(4, 4, 64)...)
	}
	index := map[program.Idiom][]int{}
	counts := map[program.Idiom][]int{}
	for _, idiom := range idioms {
		counts[idiom] = few
		if idiom == program.Spin {
			counts[idiom] = flows
		}
		for _, k := range counts[idiom] {
			index[idiom] = append(index[idiom], b.add(fmt.Sprintf("%s, %d flows", idiom, k), locked(idiom, k)))
		}
	}
	res, err := b.run(ctx)
	if err != nil {
		return res, err
	}

	res.Data.Columns = []string{"idiom", "flows", "mpps", "mpps_low", "mpps_high"}
	curves := map[program.Idiom]report.Series{}
	for n, idiom := range idioms {
		s := report.Series{Name: string(idiom), Style: n}
		if idiom == program.None {
			s.Name = "lock-free"
		}
		for j, i := range index[idiom] {
			k, m := counts[idiom][j], b.samples[i]
			s.Points = append(s.Points, b.point(float64(k), i))
			res.Data.Add(idiom, k, m.Mpps, m.Low, m.High)
		}
		curves[idiom] = s
	}
	spin, lockFree := curves[program.Spin].Points, last(curves[program.None].Points)
	one, free := spin[0].Y, lockFree.Y
	claims.measured("one-flow", one, "")
	claims.measured("lock-free", free, "")

	ratio, linear := linearity(spin, free)
	claims.measured("linearity", ratio, "")
	claims.measured("linear-range", linear, "")
	for _, idiom := range []program.Idiom{"sleep-200", "sleep-1000", program.Ticket} {
		claims.measured(string(idiom), curves[idiom].Points[0].Y/one, "")
	}

	train, test := alternate(spin)
	model, err := locks.Fit(train, locks.Options{LockFree: locks.Point{Mpps: free, Low: lockFree.Low, High: lockFree.High}})
	if err != nil {
		return res, err
	}
	profiling, err := b.driver.Board().Base("profiling")
	if err != nil {
		return res, err
	}
	cores := profiling.Cores.Value
	byFit := func(k float64) float64 { return model.Mpps(int(k)) }
	byCores := func(k float64) float64 { return min(k*free/cores, free) }
	claims.measured("n-thread", model.NThread.Value, "")
	claims.measured("model-error", meanError(test, byFit), "")
	claims.measured("model-error-cores", meanError(spin, byCores), "")

	errors := report.Table{Title: "Eq. 6 against the spin locks, Mpps and % of error", Columns: []string{
		"flows", "measured", "fitted", "error", fmt.Sprintf("N_thread = %g", cores), "its error"}}
	eq6 := report.Series{Name: fmt.Sprintf("Eq. 6, N_thread %.1f as fitted", model.NThread.Value), Style: 7}
	for _, p := range spin {
		eq6.Points = append(eq6.Points, report.Point{X: p.X, Y: byFit(p.X)})
		errors.Add(int(p.X), p.Y, byFit(p.X), 100*(byFit(p.X)/p.Y-1), byCores(p.X), 100*(byCores(p.X)/p.Y-1))
	}
	res.Claims = claims
	res.Tables = []report.Table{errors}
	res.Figure = lockPicture(curves, eq6, claims)
	res.Figure.Caption = "lines: " + res.Backend + ", markers: published"
	res.Notes = append([]string{
		"The critical section is empty and the lock word lies in IMEM, as in the authors' open release; the paper does not say what its section held.",
		"Each flow has a lock of its own and an equal share of the packets, at random; the card is saturated.",
		"The rate of a spinning lock is set by the memory commands of those who wait: they queue at the engine that also executes the release. With a sleep or a ticket the same lock is faster.",
	}, model.Findings...)
	return res, nil
}

// lockPicture draws the paper's figure, and beside it the other ways of taking
// a lock.
func lockPicture(curves map[program.Idiom]report.Series, eq6 report.Series, claims claims) report.Figure {
	mark := report.Series{Name: "published (Cora)", Kind: report.Markers, Style: 4, Points: []report.Point{
		{X: 1, Y: *claims.find("one-flow").Published},
		{X: last(eq6.Points).X, Y: *claims.find("lock-free").Published},
	}}
	axes := report.Panel{
		X: report.Axis{Label: "flows of equal rate, each with its own lock"}, Y: report.Axis{Label: "throughput", Unit: "Mpps"},
	}
	byFlows, ways := axes, axes
	byFlows.Title, ways.Title = "spin locks", "ways of taking a lock"
	ways.X.Log, ways.Y.Log = true, true
	byFlows.Series = []report.Series{curves[program.Spin], curves[program.None], eq6, mark}
	for _, idiom := range idioms {
		ways.Series = append(ways.Series, curves[idiom])
	}
	return report.Figure{Panels: []report.Panel{byFlows, ways}}
}

// linearity compares the rate of k locks with k times one lock's, the first
// point's. It returns the ratio farthest from 1 among the points that should
// stay below half of the lock-free rate, and the largest k up to which all
// ratios are within 10 %.
func linearity(spin []report.Point, free float64) (farthest, to float64) {
	farthest, to = 1, 1
	unbroken := true
	for _, p := range spin {
		straight := p.X * spin[0].Y / spin[0].X
		ratio := p.Y / straight
		if straight < free/2 && math.Abs(math.Log(ratio)) > math.Abs(math.Log(farthest)) {
			farthest = ratio
		}
		if unbroken = unbroken && math.Abs(ratio-1) <= 0.1; unbroken {
			to = p.X
		}
	}
	return farthest, to
}

// alternate splits points into every other one, from the first on, for fitting,
// and the rest for testing.
func alternate(points []report.Point) (train []locks.Point, test []report.Point) {
	for i, p := range points {
		if i%2 == 1 {
			test = append(test, p)
			continue
		}
		train = append(train, locks.Point{Elements: int(p.X), Mpps: p.Y, Low: p.Low, High: p.High})
	}
	return train, test
}

// meanError is the mean absolute error of a prediction, per cent of the
// measured.
func meanError(points []report.Point, predict func(x float64) float64) float64 {
	sum := 0.0
	for _, p := range points {
		sum += 100 * math.Abs(predict(p.X)/p.Y-1)
	}
	return sum / float64(len(points))
}

func last[T any](s []T) T { return s[len(s)-1] }
