package cora

import (
	"context"
	"fmt"
	"math"
	"slices"

	"nicprof/experiments"
	"nicprof/program"
	"nicprof/report"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "cora/fig7a", Paper: paper, Title: "figure 7(a): rooflines of single state accesses", Run: fig7a,
	})
}

// at returns the published rate at i accesses a packet, Mpps.
func (c curve) at(i float64) float64 { return 1 / (c.a + c.c*math.Exp(-c.b/i)*i) }

var (
	memories   = map[byte]string{'i': "imem", 'e': "emem"}
	operations = map[byte]program.Op{'r': program.Read, 'w': program.Write}
	modes      = map[byte]program.Mode{'b': program.Bulk, 'a': program.Atomic}
)

// missSpan is the span that misses EMEM's cache in the published measurements.
// Their atomic accesses moved missBytes there, whatever their width says.
const (
	missSpan  = 1 << 23
	missBytes = 32
)

// access returns what the published curve measured, i times a packet.
func (c curve) access(i float64) program.Access {
	a := program.Access{
		Memory: memories[c.name[0]], Op: operations[c.name[1]], Mode: modes[c.name[2]],
		Bytes: c.bytes, PerPacket: i, Span: c.span,
	}
	if c.span == missSpan && a.Mode == program.Atomic {
		a.Bytes = missBytes
	}
	return a
}

// compared are the intensities at which the published fits, which were made
// over 1 to 25, are compared. The quick scale takes a part of them.
var compared = []float64{1, 2, 5, 10, 15, 20, 25}

func fig7a(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("fig7a")
	if err != nil {
		return report.Result{}, err
	}
	curves, err := readCurves()
	if err != nil {
		return report.Result{}, err
	}
	b, err := newBench(env, "cora/fig7a")
	if err != nil {
		return report.Result{}, err
	}
	intensities := compared
	if env.Scale == experiments.Quick {
		intensities = []float64{1, 2, 5, 10, 25}
	}
	first := make([]int, len(curves))
	for n, c := range curves {
		first[n] = len(b.workloads)
		for _, i := range intensities {
			a := c.access(i)
			b.add(fmt.Sprintf("%s %d B, span %d, intensity %g", c.name, c.bytes, c.span, i), program.Program{Base: "profiling", Accesses: []program.Access{a}})
		}
	}
	bare := b.add("bare profiling", program.Program{Base: "profiling"})
	ten := func(mode program.Mode, bytes int) int {
		a := program.Access{Memory: "emem", Op: program.Read, Mode: mode, Bytes: bytes, PerPacket: 10}
		return b.add(fmt.Sprintf("forward, 10 EMEM reads, %d B %s", bytes, mode), program.Program{Base: "forward", Accesses: []program.Access{a}})
	}
	bulk, atomic := ten(program.Bulk, 64), ten(program.Atomic, 32)
	res, err := b.run(ctx)
	if err != nil {
		return res, err
	}

	res.Data.Columns = []string{"curve", "bytes", "span", "intensity", "mpps", "mpps_low", "mpps_high", "mops", "published_mpps", "published_mops", "error_pct"}
	table := report.Table{Title: "Error of each curve, measured here against published, %", Columns: []string{"curve", "bytes", "span", "mean", "mean absolute", "worst", "at intensity"}}
	var all, atTen []float64
	for n, c := range curves {
		var errs []float64
		for k, i := range intensities {
			s := b.samples[first[n]+k]
			want := c.at(i)
			e := 100 * (s.Mpps/want - 1)
			errs, all = append(errs, e), append(all, math.Abs(e))
			res.Data.Add(c.name, c.bytes, c.span, i, s.Mpps, s.Low, s.High, i*s.Mpps, want, i*want, e)
			if i == 10 {
				atTen = append(atTen, s.Mpps)
			}
		}
		mean, abs, far := 0.0, 0.0, 0
		for k, e := range errs {
			mean += e / float64(len(errs))
			abs += math.Abs(e) / float64(len(errs))
			if math.Abs(e) > math.Abs(errs[far]) {
				far = k
			}
		}
		table.Add(c.name, c.bytes, c.span, mean, abs, errs[far], intensities[far])
	}
	claims.measured("bare", b.samples[bare].Mpps, "")
	claims.measured("reads-64b-bulk", b.samples[bulk].Mpps, "")
	claims.measured("reads-32b-atomic", b.samples[atomic].Mpps, "")
	claims.measured("spread", slices.Max(atTen)/slices.Min(atTen), "")
	claims.measured("median-error", quantile(all, 0.5), "")
	claims.measured("p90-error", quantile(all, 0.9), "")
	claims.measured("max-error", quantile(all, 1), "")
	res.Claims = claims
	res.Tables = []report.Table{table}
	res.Figure = rooflines(b, curves, first, intensities)
	res.Figure.Caption = "lines: " + res.Backend + ", markers: published fits of measured curves; one colour a width"
	res.Notes = []string{
		"M(i) = i·T(i); its error is that of T(i). The published coefficients are rounded to three decimals, so c of 0.002 µs and less carries up to 50 % of rounding: curves are compared, never coefficients.",
		"Elements lie 128 B apart up to a span of 8192 and 32 B apart above, as in the published measurements; their atomic accesses at a span of 2²³ moved 32 B whatever the width says, and so do ours.",
		"The published bulk accesses at span 2²³ touch 256 MB and miss the 3 MB cache.",
	}
	return res, nil
}

// rooflines draws M(i) of the published spans: a row of panels a memory and
// span, a column an operation and mode.
func rooflines(b *bench, curves []curve, first []int, intensities []float64) report.Figure {
	widths := map[int]int{4: 0, 8: 1, 32: 2, 128: 3} // to styles
	f := report.Figure{Columns: 4, Shared: true}
	rows := []struct {
		memory byte
		span   int64
		text   string
	}{
		{'i', 8192, "IMEM, 8192 elements"},
		{'i', 1, "IMEM, one element"},
		{'e', 8192, "EMEM, 8192 elements"},
		{'e', 1, "EMEM, one element"},
		{'e', missSpan, "EMEM, 2²³ elements"},
	}
	names := map[string]string{"rb": "read bulk", "wb": "write bulk", "ra": "read atomic", "wa": "write atomic"}
	for _, row := range rows {
		for _, op := range []string{"rb", "wb", "ra", "wa"} {
			p := report.Panel{
				Title: row.text + ": " + names[op],
				X:     report.Axis{Label: "intensity", Unit: "accesses per packet", Log: true}, Y: report.Axis{Label: "accesses", Unit: "Mops/s", Log: true},
			}
			for n, c := range curves {
				if c.name != string(row.memory)+op || c.span != row.span {
					continue
				}
				style, name := widths[c.bytes], fmt.Sprintf("%d B", c.bytes)
				line := report.Series{Name: name, Style: style}
				for k, i := range intensities {
					q := b.point(i, first[n]+k)
					q.Y, q.Low, q.High = i*q.Y, i*q.Low, i*q.High
					line.Points = append(line.Points, q)
				}
				marks := report.Series{Name: name, Style: style, Kind: report.Markers}
				for _, i := range compared {
					marks.Points = append(marks.Points, report.Point{X: i, Y: i * c.at(i)})
				}
				p.Series = append(p.Series, line, marks)
			}
			f.Panels = append(f.Panels, p)
		}
	}
	return f
}
