package cora

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"nicprof/experiments"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/report"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "cora/fidelity", Paper: paper, Title: "fidelity of the emulated Agilio CX against everything published about it", Run: fidelity,
	})
}

// cachedSpan is an array that EMEM's cache holds whole.
const cachedSpan = 1 << 16

// published is one measured rate and the workload that the emulator runs for
// it.
type publishedRate struct {
	set, name string
	mpps      float64
	cores     int
	program   program.Program
}

// readRates returns the rates of published/xdp_rates.csv and netmon.csv.
func readRates() ([]publishedRate, error) {
	var all []publishedRate
	each := func(file string, f func(cell func(string) string, number func(string) float64)) error {
		column, rows, err := readTable(file)
		if err != nil {
			return err
		}
		for _, row := range rows {
			cell := func(c string) string { return row[column[c]] }
			f(cell, func(c string) float64 {
				v, e := strconv.ParseFloat(cell(c), 64)
				if e != nil && err == nil {
					err = fmt.Errorf("published/%s.csv: %w", file, e)
				}
				return v
			})
		}
		return err
	}
	access := func(memory string, op program.Op, mode program.Mode, n float64, span int64) program.Access {
		return program.Access{Memory: memory, Op: op, Mode: mode, Bytes: 4, PerPacket: n, Span: span}
	}
	err := each("xdp_rates", func(cell func(string) string, number func(string) float64) {
		n := number("per_packet")
		a := access("emem", program.Read, program.Bulk, n, 1)
		if cell("op") == "add" {
			a = access("emem", program.Add, program.Atomic, n, 1)
		}
		all = append(all, publishedRate{
			set: "xdp", name: fmt.Sprintf("%g %s, %s cores", n, a.Op, cell("cores")),
			mpps: number("mpps"), cores: int(number("cores")),
			program: program.Program{Base: "xdp", Accesses: []program.Access{a}},
		})
	})
	if err != nil {
		return nil, err
	}
	err = each("netmon", func(cell func(string) string, number func(string) float64) {
		n, span := number("rows"), int64(cachedSpan)
		name := fmt.Sprintf("%g %s %ss", n, cell("memory"), cell("program"))
		if cell("columns") != "" {
			span = int64(n * number("columns"))
			name += ", beyond the cache"
		}
		p := program.Program{Base: "netmon", Accesses: []program.Access{access(cell("memory"), program.Add, program.Atomic, n, span)}}
		if cell("program") == "pair" {
			p.Accesses = []program.Access{
				access(cell("memory"), program.Read, program.Atomic, n, span),
				access(cell("memory"), program.Write, program.Atomic, n, span),
			}
		}
		all = append(all, publishedRate{set: "netmon", name: name, mpps: number("mpps"), program: p})
	})
	return all, err
}

func fidelity(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("fidelity")
	if err != nil {
		return report.Result{}, err
	}
	curves, err := readCurves()
	if err != nil {
		return report.Result{}, err
	}
	rates, err := readRates()
	if err != nil {
		return report.Result{}, err
	}
	b, err := newBench(env, "cora/fidelity")
	if err != nil {
		return report.Result{}, err
	}
	for _, c := range curves {
		for _, i := range compared {
			rates = append(rates, publishedRate{
				set: "rooflines", name: fmt.Sprintf("%s %d B, span %d, intensity %g", c.name, c.bytes, c.span, i), mpps: c.at(i),
				program: program.Program{Base: "profiling", Accesses: []program.Access{c.access(i)}},
			})
		}
	}
	one := func(id string, p program.Program) {
		rates = append(rates, publishedRate{set: id, name: claims.find(id).Text, mpps: *claims.find(id).Published, program: p})
	}
	one("forward", program.Program{Base: "forward"})
	one("ops-400", program.Program{Base: "forward", Stateless: program.Stateless{program.ALU: 400}})
	reads := func(mode program.Mode, bytes int) program.Program {
		return program.Program{Base: "forward", Accesses: []program.Access{{Memory: "emem", Op: program.Read, Mode: mode, Bytes: bytes, PerPacket: 10}}}
	}
	one("reads-64b-bulk", reads(program.Bulk, 64))
	one("reads-32b-atomic", reads(program.Atomic, 32))
	bulk := func(bytes int, span int64) program.Program {
		return program.Program{Base: "profiling", Accesses: []program.Access{{Memory: "emem", Op: program.Read, Mode: program.Bulk, Bytes: bytes, PerPacket: 10, Span: span}}}
	}
	one("held-out-64", bulk(64, cachedSpan))
	one("held-out-32", bulk(32, 4))
	one("held-out-16", bulk(16, missSpan))
	one("one-lock", locked(program.Spin, 1))
	one("lock-free", locked(program.None, 1))

	for _, r := range rates {
		i := b.add(r.set+": "+r.name, r.program)
		b.workloads[i].Options.Cores = r.cores
	}
	res, err := b.run(ctx)
	if err != nil {
		return res, err
	}
	res.Data.Columns = []string{"set", "workload", "published_mpps", "mpps", "mpps_low", "mpps_high", "error_pct"}
	errs := map[string][]float64{}
	points := map[string][]report.Point{}
	for i, r := range rates {
		s := b.samples[i]
		e := 100 * (s.Mpps/r.mpps - 1)
		res.Data.Add(r.set, r.name, r.mpps, s.Mpps, s.Low, s.High, e)
		errs[r.set] = append(errs[r.set], math.Abs(e))
		points[r.set] = append(points[r.set], report.Point{X: r.mpps, Y: s.Mpps})
		if slices.ContainsFunc(claims, func(c report.Claim) bool { return c.ID == r.set }) {
			claims.measured(r.set, s.Mpps, "")
			points["single"] = append(points["single"], report.Point{X: r.mpps, Y: s.Mpps})
		}
	}
	summary := report.Table{Title: "Error of throughput, emulated against published, %", Columns: []string{"set", "rates", "mean", "median", "90th percentile", "worst"}}
	figure := report.Panel{
		X: report.Axis{Label: "published", Unit: "Mpps", Log: true}, Y: report.Axis{Label: "emulated", Unit: "Mpps", Log: true},
		Band: 0.15,
	}
	for style, set := range []string{"rooflines", "xdp", "netmon"} {
		e := errs[set]
		slices.Sort(e)
		mean := 0.0
		for _, v := range e {
			mean += v / float64(len(e))
		}
		worst := e[len(e)-1]
		summary.Add(set, len(e), mean, quantile(e, 0.5), quantile(e, 0.9), worst)
		switch set {
		case "rooflines":
			claims.measured("rooflines-median", quantile(e, 0.5), "")
			claims.measured("rooflines-p90", quantile(e, 0.9), "")
		case "xdp":
			claims.measured("xdp-mean", mean, "")
		}
		claims.measured(set+"-max", worst, "")
		figure.Series = append(figure.Series, report.Series{Name: set, Style: style, Kind: report.Markers, Points: points[set]})
	}
	figure.Series = append(figure.Series, report.Series{Name: "single figures", Style: 3, Kind: report.Markers, Points: points["single"]})
	res.Claims = claims
	res.Tables = []report.Table{summary, farthest(rates, b.samples)}
	res.Figure = report.Figure{Caption: "each marker is one published rate; dashed: ±15 %", Panels: []report.Panel{figure}}
	res.Notes = []string{
		"XDP's map reads are run as 4 B bulk reads of one line: their 198 M reads/s is the line's busy time, which Vela's bulk reads of one element show too (4 cycles); Vela's atomic reads of one element are faster (2.4 cycles).",
		"Netmon's rates of cached sketches do not say their size; a span of 65,536 counters stands for it.",
		"Vela's coefficients are rounded to three decimals of a µs: a slope of 0.004 may be 0.0045 and the next row's 0.005 may be 0.0046, so twins such as ewa 4 B at spans of 1, 8 and 8192 bracket the emulated curve.",
	}
	return res, nil
}

// farthest lists the rates with the largest errors.
func farthest(rates []publishedRate, samples []microbench.Sample) report.Table {
	t := report.Table{Title: "Largest errors", Columns: []string{"set", "workload", "published, Mpps", "emulated, Mpps", "error, %"}}
	order := make([]int, len(rates))
	for i := range order {
		order[i] = i
	}
	errorOf := func(i int) float64 { return 100 * (samples[i].Mpps/rates[i].mpps - 1) }
	slices.SortStableFunc(order, func(i, j int) int {
		return int(math.Copysign(1, math.Abs(errorOf(j))-math.Abs(errorOf(i))))
	})
	for _, i := range order[:15] {
		t.Add(rates[i].set, rates[i].name, rates[i].mpps, samples[i].Mpps, errorOf(i))
	}
	return t
}
