package snic

import (
	"context"
	"fmt"
	"slices"

	emu "nicprof/emu/snic"
	"nicprof/experiments"
	"nicprof/report"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "snic/nt-parallel", Paper: paper, Title: "latency by number of parallel NTs: all in parallel, two chains in parallel, PANIC", Run: ntParallel,
	})
}

// equal returns the delays of n NTs of 16 cycles.
func equal(n int) []int { return slices.Repeat([]int{16}, n) }

func ntParallel(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("nt-parallel")
	if err != nil {
		return report.Result{}, err
	}
	half := func(delays func(int) []int) func(int) (rig, error) {
		return func(n int) (rig, error) { return sideBySide(boardName, dummies(delays(n)...), halves(n)...) }
	}
	panic := func(delays func(int) []int) func(int) (rig, error) {
		return func(n int) (rig, error) { return inChains(boardName, dummies(delays(n)...), through(0, n)) }
	}
	schemes := []scheme{
		{"panic", "PANIC", 1, emu.PANIC, panic(equal)},
		{"half", "sNIC, two chains in parallel", 2, emu.Reserve, half(equal)},
		{"all", "sNIC, all in parallel", 0, emu.Reserve, func(n int) (rig, error) {
			chains := make([][]int, n)
			for i := range chains {
				chains[i] = []int{i}
			}
			return sideBySide(boardName, dummies(equal(n)...), chains...)
		}},
		{"", "PANIC, NTs of 16 and 32 cycles", 3, emu.PANIC, panic(alternating)},
		{"", "sNIC, two chains in parallel, NTs of 16 and 32 cycles", 5, emu.Reserve, half(alternating)},
	}
	latency, err := schemeLatencies(ctx, env, schemes)
	if err != nil {
		return report.Result{}, err
	}
	why := map[string]string{
		"panic": "the published column is that of chains of NTs of 16 and 32 cycles in turn (snic/nt-chain); with the NTs of 16 cycles that all-in-parallel's 0.260 us implies, PANIC is faster",
		"half":  "the published column follows no split into two groups of such NTs: it is 0, 208, 336, 528, 544, 672 ns above all-in-parallel's; ours is the longer of the two chains",
	}
	res := result()
	res.Data.Columns = []string{"scheme", "nts", "us"}
	table := report.Table{Title: "Latency, us", Columns: []string{"NTs"}}
	for _, s := range schemes {
		if s.id != "" {
			table.Columns = append(table.Columns, s.name+", published")
		}
		table.Columns = append(table.Columns, s.name)
	}
	halfOverPanic, allOverHalf := 0.0, 0.0
	for k, n := range chainLengths {
		row := []any{n}
		for i, s := range schemes {
			if s.id != "" {
				id := fmt.Sprintf("%s-%d", s.id, n)
				claims.Measured(id, latency[i][k], why[s.id])
				row = append(row, *claims.Find(id).Published)
			}
			row = append(row, latency[i][k])
		}
		table.Add(row...)
		halfOverPanic = max(halfOverPanic, latency[1][k]/latency[0][k], latency[4][k]/latency[3][k])
		allOverHalf = max(allOverHalf, latency[2][k]/latency[1][k])
	}
	claims.Measured("half-beats-panic", halfOverPanic, "")
	claims.Measured("all-best", allOverHalf, "")
	res.Claims, res.Tables = claims, []report.Table{table}
	res.Figure = report.Figure{
		Panels:  []report.Panel{draw(&res, claims, schemes, latency)},
		Caption: "lines: " + backend + ", markers: published, in the colour of their line. The published PANIC column belongs to NTs of 16 and 32 cycles, all in parallel to NTs of 16.",
	}
	res.Notes = []string{
		"The published columns are inconsistent: all in parallel is the core's 196 ns and one NT of 64 ns, PANIC's column is point for point that of snic/nt-chain, whose NTs take 64 and 128 ns in turn. Both readings are drawn.",
		"The published column of two chains in parallel agrees with neither; for 2 NTs it equals all in parallel. That it stays below PANIC holds here for every length and both readings.",
	}
	return res, nil
}
