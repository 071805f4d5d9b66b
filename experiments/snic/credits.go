package snic

import (
	"context"
	"fmt"
	"math"
	"slices"

	emu "nicprof/emu/snic"
	"nicprof/experiments"
	"nicprof/internal/stats"
	"nicprof/report"
	"nicprof/sim"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "snic/credits", Paper: paper, Title: "throughput of one NT by initial credits and packet size", Run: credits,
	})
}

// The published points, bytes and credits.
var (
	creditSizes  = []int{64, 256, 1024}
	creditCounts = []int{1, 2, 4, 8}
)

func credits(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("credits")
	if err != nil {
		return report.Result{}, err
	}
	sizes := []int{64, 128, 192, 256, 320, 384, 512, 640, 768, 1024, 1280, 1500}
	if env.Scale == experiments.Full {
		sizes = nil
		for b := 64; b <= 1536; b += 16 {
			sizes = append(sizes, b)
		}
	}
	sizes = append(sizes, 4096, 9000)
	r, err := inChains(boardName, dummies(1), []int{0})
	if err != nil {
		return report.Result{}, err
	}
	rates := make([]float64, len(sizes)*len(creditCounts))
	err = env.Each(ctx, len(rates), func(_ context.Context, i int) (err error) {
		rig := r
		rig.Credits, rig.Seed = creditCounts[i%len(creditCounts)], env.Seed
		rates[i], _, _, err = rig.saturated(emu.Load{Bytes: sizes[i/len(creditCounts)]}, span(env, 100*sim.Microsecond, sim.Millisecond))
		return err
	})
	if err != nil {
		return report.Result{}, err
	}

	res := result()
	res.Data.Columns = []string{"bytes", "credits", "gbps", "gibps"}
	full := map[int]int{} // the smallest size that reaches 100 Gb/s, by credits
	lines := make([]report.Series, len(creditCounts))
	for k, c := range creditCounts {
		lines[k] = report.Series{Name: fmt.Sprintf("%d credits", c), Style: k}
	}
	lines[0].Name = "1 credit"
	rate := map[[2]int]float64{}
	for i, v := range rates {
		bytes, k := sizes[i/len(creditCounts)], i%len(creditCounts)
		c := creditCounts[k]
		rate[[2]int{bytes, c}] = v
		res.Data.Add(bytes, c, v, gib(v))
		lines[k].Points = append(lines[k].Points, report.Point{X: float64(bytes), Y: gib(v)})
		if v >= 100 && full[c] == 0 {
			full[c] = bytes
		}
	}
	table := report.Table{Title: "Against the published points", Columns: []string{"bytes", "credits", "published, Gib/s", "measured, Gib/s", "measured, Gb/s", "error, %", "error if the points were Gb/s, %", "calibrated on"}}
	var errs, held []float64
	for _, bytes := range creditSizes {
		for _, c := range creditCounts {
			v := rate[[2]int{bytes, c}]
			id := fmt.Sprintf("%d-%d", bytes, c)
			claims.Measured(id, gib(v), "between one credit and enough of them the rate is set by queueing within the credit loop, of which only the ends are known")
			claim := claims.Find(id)
			calibrated := ""
			if claim.Calibrated {
				calibrated = "yes"
			} else {
				held = append(held, errorPct(claim))
			}
			errs = append(errs, errorPct(claim))
			table.Add(bytes, c, *claim.Published, gib(v), v, errorPct(claim), 100*(v/(*claim.Published)-1), calibrated)
		}
	}
	sorted := stats.Sorted(abs(errs))
	claims.Measured("median-error", sorted.Percentile(50), "")
	claims.Measured("largest-error", sorted.Percentile(100), "")
	claims.Measured("held-out-error", stats.Sorted(abs(held)).Percentile(50), "")
	claims.Measured("over-100", rate[[2]int{1024, 8}], "")
	smaller := math.NaN() // where one of the two never reaches it
	if full[1] > 0 && full[8] > 0 {
		smaller = float64(full[8]) / float64(full[1])
	}
	claims.Measured("smaller-packets", smaller, "")
	res.Claims, res.Tables = claims, []report.Table{table}

	panel := report.Panel{
		X: report.Axis{Label: "packet size", Unit: "B", Log: true}, Y: report.Axis{Label: "throughput", Unit: "Gib/s"},
		Series: lines,
	}
	for k, c := range creditCounts {
		points := report.Series{Name: "published (thesis)", Kind: report.Markers, Style: k}
		for _, bytes := range creditSizes {
			points.Points = append(points.Points, report.Point{X: float64(bytes), Y: *claims.Find(fmt.Sprintf("%d-%d", bytes, c)).Published})
		}
		panel.Series = append(panel.Series, points)
	}
	res.Figure = report.Figure{Panels: []report.Panel{panel}, Caption: "lines: " + backend + ", markers: published, in the colour of their line"}
	res.Notes = []string{
		"The source prints the points as Gbps. Read as Gib/s (2^30 bit/s) a packet's cost at the plateaus is its beats of 64 B and a constant 0.43 cycles; read as 10^9 bit/s it is no constant. Both readings are in the table.",
		fmt.Sprintf("One NT of one cycle under packets back to back. With %d credits, packets of %d B or more reach 100 Gb/s; with 1 credit those of %d B or more.", slices.Max(creditCounts), full[8], full[1]),
	}
	return res, nil
}
