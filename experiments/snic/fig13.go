package snic

import (
	"context"
	"fmt"
	"slices"

	emu "nicprof/emu/snic"
	"nicprof/experiments"
	"nicprof/report"
	"nicprof/sim"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "snic/fig13", Paper: paper, Title: "figure 13: execution time of two DAGs by parallelism S1, S2, S3", Run: fig13,
	})
}

// dagScheme is one of the paper's ways to run DAGa, NT1→NT2 beside NT3, then
// NT4, and DAGb, NT2→NT4.
type dagScheme struct {
	name    string
	regions [][]int
	a, b    emu.Route
}

// dagSchemes are S1, one chain that DAGb runs through in part; S2, three chains,
// two of them in parallel; S3, S2 with two instances of two of them.
func dagSchemes() []dagScheme {
	in := func(region int, run uint64) emu.Branch { return emu.Branch{{Region: region, Run: run}} }
	both := func(first, second int, run uint64) emu.Branch {
		return emu.Branch{{Region: first, Run: run}, {Region: second, Run: run}}
	}
	return []dagScheme{
		{"S1", [][]int{{0, 1, 2, 3}}, emu.Route{{in(0, 0b1111)}}, emu.Route{{in(0, 0b1010)}}},
		{"S2", [][]int{{0, 1}, {2}, {3}},
			emu.Route{{in(0, 0b11), in(1, 1)}, {in(2, 1)}}, emu.Route{{in(0, 0b10)}, {in(2, 1)}}},
		{"S3", [][]int{{0, 1}, {0, 1}, {2}, {3}, {3}},
			emu.Route{{both(0, 1, 0b11), in(2, 1)}, {both(3, 4, 1)}}, emu.Route{{both(0, 1, 0b10)}, {both(3, 4, 1)}}},
	}
}

// dagTimes is what a scheme comes to with NTs of so many cycles, in cycles of
// the parts beyond the core: alone, and on average under load.
type dagTimes struct {
	aloneA, aloneB, meanA, meanB float64
	mpps                         float64 // saturation of DAGa
}

func (s dagScheme) rig(cycles int) (rig, error) {
	b, err := loadBoard(boardName, len(s.regions))
	return rig{Config: emu.Config{Board: b, NTs: dummies(slices.Repeat([]int{cycles}, 4)...), Regions: s.regions}}, err
}

// dagGbps is the load of each DAG for the average times.
const dagGbps = 20

func (s dagScheme) measure(env experiments.Env, d int) (t dagTimes, err error) {
	r, err := s.rig(d)
	if err != nil {
		return t, err
	}
	r.Seed = env.Seed
	core := r.Board.FPGA.Cycles()
	for _, x := range []struct {
		route emu.Route
		to    *float64
	}{{s.a, &t.aloneA}, {s.b, &t.aloneB}} {
		r.route = x.route
		alone, err := r.alone()
		if err != nil {
			return t, err
		}
		*x.to = cycles(r.Board, alone) - core
	}
	r.route = s.a
	if _, t.mpps, _, err = r.saturated(emu.Load{Bytes: emu.MinBytes}, span(env, 100*sim.Microsecond, sim.Millisecond)); err != nil {
		return t, err
	}
	sizes, err := facebook()
	if err != nil {
		return t, err
	}
	b, err := r.start(emu.Load{Gbps: dagGbps, Sizes: sizes})
	if err != nil {
		return t, err
	}
	if err := b.SetRoute(1, s.b); err != nil {
		return t, err
	}
	if err := b.Offer(1, emu.Load{Gbps: dagGbps, Sizes: sizes}); err != nil {
		return t, err
	}
	b.Run(span(env, sim.Millisecond, 20*sim.Millisecond))
	t.meanA = cycles(r.Board, b.Flow(0).Latency.Mean()) - core
	t.meanB = cycles(r.Board, b.Flow(1).Latency.Mean()) - core
	return t, nil
}

func fig13(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("fig13")
	if err != nil {
		return report.Result{}, err
	}
	delays := []int{10, 50}
	if env.Scale == experiments.Full {
		delays = []int{5, 10, 15, 20, 25, 30, 40, 50, 60}
	}
	schemes := dagSchemes()
	times := make([]dagTimes, len(schemes)*len(delays))
	err = env.Each(ctx, len(times), func(_ context.Context, i int) (err error) {
		times[i], err = schemes[i/len(delays)].measure(env, delays[i%len(delays)])
		return err
	})
	if err != nil {
		return report.Result{}, err
	}
	res := result()
	res.Data.Columns = []string{"scheme", "nt_cycles", "dag", "alone_cycles", "mean_cycles", "saturation_mpps"}
	table := report.Table{Title: "Execution time beyond the core, cycles of 4 ns", Columns: []string{
		"cycles of an NT", "scheme", "DAGa alone", "DAGa, mean under load", "DAGb alone", "DAGb, mean under load", "DAGa saturated with 64 B, Mpps"}}
	panels := make([]report.Panel, 2)
	for p, name := range []string{"DAGa: (NT1→NT2 beside NT3)→NT4", "DAGb: NT2→NT4"} {
		panels[p] = report.Panel{Title: name, X: report.Axis{Label: "cycles of an NT"}, Y: report.Axis{Label: "mean execution time", Unit: "cycles"}}
	}
	at := map[string]map[int]dagTimes{}
	for i, s := range schemes {
		at[s.name] = map[int]dagTimes{}
		a := report.Series{Name: s.name, Kind: report.LineMarkers, Style: i}
		b := report.Series{Name: s.name, Kind: report.LineMarkers, Style: i}
		for k, d := range delays {
			t := times[i*len(delays)+k]
			at[s.name][d] = t
			a.Points = append(a.Points, report.Point{X: float64(d), Y: t.meanA})
			b.Points = append(b.Points, report.Point{X: float64(d), Y: t.meanB})
			res.Data.Add(s.name, d, "a", t.aloneA, t.meanA, t.mpps)
			res.Data.Add(s.name, d, "b", t.aloneB, t.meanB, "")
		}
		panels[0].Series = append(panels[0].Series, a)
		panels[1].Series = append(panels[1].Series, b)
	}
	for _, d := range delays {
		for _, s := range schemes {
			t := at[s.name][d]
			table.Add(d, s.name, t.aloneA, t.meanA, t.aloneB, t.meanB, t.mpps)
		}
	}
	claims.Measured("a-50", at["S2"][50].meanA/at["S1"][50].meanA, "")
	claims.Measured("a-10", at["S2"][10].meanA/at["S1"][10].meanA, "")
	claims.Measured("b-return", at["S2"][10].aloneB-at["S1"][10].aloneB, "")
	claims.Measured("a-return", at["S2"][50].aloneA-3*50, "the copies of a packet meet in the synchronisation buffer, which takes the 4 cycles that the paper's first version gives it; the text counts the scheduler's 16 only")
	claims.Measured("s3-time", at["S3"][50].meanA/at["S2"][50].meanA, "")
	claims.Measured("s3-rate", at["S3"][50].mpps/at["S2"][50].mpps, "")
	res.Claims, res.Tables = claims, []report.Table{table}
	res.Figure = report.Figure{Panels: panels, Caption: fmt.Sprintf("emulated, %d Gb/s of the Facebook distribution for each DAG; the paper prints no values", dagGbps)}
	res.Notes = []string{
		"Times are latencies less the core's 49 cycles: NTs, further passes through the scheduler, and waiting.",
		"S1 is one region of four NTs, S2 three regions, S3 five; skipping an NT costs nothing (not published).",
	}
	return res, nil
}
