package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"nicprof/fit"
	"nicprof/fit/curves"
	"nicprof/fit/hybrid"
	"nicprof/internal/fault"
	"nicprof/internal/table"
	"nicprof/microbench"
	"nicprof/model"
)

// fitReport is what a fit has to say: the model's main numbers.
type fitReport struct {
	Model    *model.Model  `json:"-"`
	Board    string        `json:"board"`
	Backends []string      `json:"backends"`
	Samples  int           `json:"samples"`
	Rule     string        `json:"default_rule"`
	Quality  model.Quality `json:"quality"`
	Notes    []string      `json:"notes"`
	Findings []string      `json:"findings"`
}

func newFitReport(m *model.Model, r *fit.Report) *fitReport {
	return &fitReport{
		Model: m, Board: m.Board, Backends: m.Backends, Samples: m.Samples, Rule: m.DefaultRule,
		Quality: m.Quality, Notes: list(r.Notes), Findings: list(r.Findings),
	}
}

// methods are the fitting methods, the default first.
var methods = []string{"lm", "nelder-mead"}

func (a *app) fit() *cobra.Command {
	var out, method string
	var raw []string
	set := map[string]string{}
	c := &cobra.Command{
		Use:   "fit DIR|samples.jsonl|curves.csv [-o model.json]",
		Short: "Fit a model to samples, or to curves that others have measured",
		Long: `Fit a model to the samples of a run, or to a CSV file of curves with the columns
memory, op, mode, bytes, span, intensity (or per_packet) and mpps, and
optionally cores, low, high and board; lines that begin with # are comments.
--set fills missing columns. --raw KEYS FILE adds one-second samples (a pps
column) as one point of the workload that KEYS name.`,
		Example: `  profiler fit runs/nfp-standard-1
  profiler fit rates.csv --set memory=emem,mode=atomic,bytes=4,span=1 -o xdp.json
  profiler fit rates.csv --set memory=emem,mode=atomic,bytes=4,span=1 --raw op=read,intensity=4,cores=25 raw.csv -o xdp.json`,
		Args: exactArgs(1, "the directory of a run, a samples.jsonl or a CSV file of curves"),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(methods, method) {
				return fault.Inputf("--method %s: expected %s", method, strings.Join(methods, " or "))
			}
			in, err := a.readForFit(args[0], set, raw)
			if err != nil {
				return err
			}
			if out == "" {
				out = in.out
			}
			if err := needDir(out, "-o"); err != nil {
				return err
			}
			in.options.Method = method
			m, r, err := fitSamples(c.Context(), in.samples, in.options)
			if err != nil {
				return err
			}
			if err := saveModel(m, out); err != nil {
				return err
			}
			rep := newFitReport(m, r)
			if a.json {
				return a.document(struct {
					File string `json:"file"`
					*fitReport
				}{out, rep})
			}
			if err := a.printFit(rep); err != nil {
				return err
			}
			return a.printf("\nmodel: %s\nnext: profiler predict --model %s %s", out, out, anAccess(m))
		},
	}
	flags := c.Flags()
	flags.StringVarP(&out, "out", "o", "", "model `FILE` (default model.json, of a run beside it)")
	flags.StringVar(&method, "method", methods[0], "`METHOD`: lm (Levenberg-Marquardt) or nelder-mead")
	flags.StringToStringVar(&set, "set", nil, "fill missing columns of a CSV file: `KEY=VALUE,...`")
	flags.StringArrayVar(&raw, "raw", nil, "add one-second samples: `KEYS FILE`")
	complete(c, "method", cobra.FixedCompletions(methods, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// until does work that does not look at ctx; when ctx ends first, it returns
// ctx's error at once.
func until[T any](ctx context.Context, work func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := work()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// fitSamples fits until ctx ends; then it returns ctx's error at once.
func fitSamples(ctx context.Context, samples []microbench.Sample, o fit.Options) (*model.Model, *fit.Report, error) {
	type result struct {
		m *model.Model
		r *fit.Report
	}
	f, err := until(ctx, func() (result, error) {
		m, r, err := fit.Fit(samples, o)
		return result{m, r}, err
	})
	return f.m, f.r, err
}

// fitInput is what a fit starts from.
type fitInput struct {
	samples []microbench.Sample
	options fit.Options
	out     string // default model file
}

// readForFit reads samples or curves, and the raw points that are added to them.
func (a *app) readForFit(path string, set map[string]string, raw []string) (fitInput, error) {
	in := fitInput{out: modelFile, options: fit.Options{Seed: a.seed}}
	info, err := os.Stat(path)
	if err != nil {
		return in, fault.Inputf("cannot read the samples: %w", err)
	}
	var notes []string
	if filepath.Ext(path) == ".csv" {
		in.samples, notes, err = curves.Read(path, set)
	} else {
		if len(set) > 0 {
			return in, fault.Inputf("--set fills columns of a CSV file; %s has samples, which are complete", path)
		}
		in.samples, notes, err = microbench.ReadSamples(path)
	}
	a.notes(notes)
	if err != nil {
		return in, err
	}
	dir := path
	if !info.IsDir() {
		dir = filepath.Dir(path)
	}
	if m, err := microbench.ReadManifest(dir); err == nil && filepath.Ext(path) != ".csv" {
		if in.options.Board, err = microbench.ReadBoard(dir); err != nil {
			return in, err
		}
		in.options.Suite, in.options.Seed = m.Suite, m.Seed
		in.out = filepath.Join(dir, modelFile)
	}
	for _, r := range raw {
		s, err := readRaw(r, set)
		if err != nil {
			return in, err
		}
		in.samples = append(in.samples, s)
	}
	return in, nil
}

// rawFile is the key that joinRaw puts the file of --raw under.
const rawFile = "file"

// joinRaw rewrites the two arguments of --raw KEYS FILE into one that a flag
// can take: KEYS,file=FILE.
func joinRaw(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		keys, inline := strings.CutPrefix(args[i], "--raw=")
		switch {
		case args[i] == "--raw" && i+2 < len(args):
			out = append(out, "--raw", args[i+1]+","+rawFile+"="+args[i+2])
			i += 2
		case inline && i+1 < len(args):
			out = append(out, "--raw", keys+","+rawFile+"="+args[i+1])
			i++
		default:
			out = append(out, args[i])
		}
	}
	return out
}

func readRaw(arg string, set map[string]string) (microbench.Sample, error) {
	keys, file, ok := strings.Cut(arg, ","+rawFile+"=")
	if !ok {
		return microbench.Sample{}, fault.Inputf("--raw %s: expected KEYS FILE, such as --raw op=read,intensity=4,cores=25 raw.csv", arg)
	}
	all := map[string]string{}
	for k, v := range set {
		all[k] = v
	}
	for pair := range strings.SplitSeq(keys, ",") {
		k, v, ok := strings.Cut(pair, "=")
		if !ok {
			return microbench.Sample{}, fault.Inputf("--raw %s: %q is not KEY=VALUE", keys, pair)
		}
		all[k] = v
	}
	return curves.ReadRaw(file, all)
}

// Most lines of a summary's lists; --json has them all.
const (
	topCurves   = 8
	topFindings = 5
)

// printFit prints a model's summary.
func (a *app) printFit(r *fitReport) error {
	m := r.Model
	tables := []*table.Table{basesTable(m), rooflineTable(m)}
	if m.Chains != nil {
		tables = []*table.Table{chainsTable(m.Chains)}
	}
	if len(m.Interference) > 0 {
		tables = append(tables, matrixTable(m.Interference))
	}
	if len(m.Locks) > 0 {
		tables = append(tables, locksTable(m))
	}
	if len(m.Rules) > 0 {
		tables = append(tables, rulesTable(m))
	}
	tables = slices.DeleteFunc(tables, func(t *table.Table) bool { return t.Len() == 0 })
	if err := a.print(tables...); err != nil {
		return err
	}
	q := m.Quality
	if err := a.printf("\n%d samples fitted, rule %s: R² %.4f, mean error %.1f %%, largest %.1f %%", q.N, r.Rule, q.R2, q.MAPE, q.MaxPct); err != nil {
		return err
	}
	if len(r.Findings) > 0 {
		t := table.New("Findings", "")
		for _, f := range r.Findings[:min(len(r.Findings), topFindings)] {
			t.Row(f)
		}
		if err := a.printf(""); err != nil {
			return err
		}
		if err := a.print(t); err != nil {
			return err
		}
		if more := len(r.Findings) - t.Len(); more > 0 {
			a.note("note: %d more findings; --json lists all", more)
		}
	}
	a.notes(r.Notes)
	return nil
}

func title(m *model.Model, what string) string {
	return fmt.Sprintf("%s of board %s (%s)", what, m.Board, strings.Join(m.Backends, ", "))
}

func basesTable(m *model.Model) *table.Table {
	t := table.New(title(m, "Bare rates"), "base", "Mpps", "95 %", "I/O Mpps", "core µs", "cores")
	for _, b := range m.Bases {
		if !b.BareMpps.Identified && !b.CoreUS.Identified {
			continue // curves alone tell nothing of the base
		}
		t.Row(b.Name, value(b.BareMpps), bounds(b.BareMpps), value(b.IOMpps), value(b.CoreUS), b.Cores)
	}
	return t
}

// rooflineTable lists, of each class of access, the curve that moves the most
// bytes a second. Where the data tell no roof, the highest rate seen stands for
// it, marked ≥; a curve whose roof is told goes first.
func rooflineTable(m *model.Model) *table.Table {
	class := func(r *model.Roofline) model.Class { return model.Class{Memory: r.Memory, Op: r.Op, Mode: r.Mode} }
	speed := func(r *model.Roofline) float64 { return r.Roof.Value * float64(r.Bytes) }
	var top []*model.Roofline
	for i := range m.Rooflines {
		r := &m.Rooflines[i]
		if r.Roof.Value <= 0 {
			continue
		}
		at := slices.IndexFunc(top, func(o *model.Roofline) bool { return class(o) == class(r) })
		switch {
		case at < 0:
			top = append(top, r)
		case r.Roof.Identified != top[at].Roof.Identified:
			if r.Roof.Identified {
				top[at] = r
			}
		case speed(r) > speed(top[at]):
			top[at] = r
		}
	}
	slices.SortStableFunc(top, func(a, b *model.Roofline) int { return cmp.Compare(speed(b), speed(a)) })
	t := table.New(fmt.Sprintf("Rooflines, of each class the one of most bytes a second (%d curves)", len(m.Rooflines)),
		"access", "bytes", "span", "peak Mops/s", "95 %", "knee at", "error %")
	for _, r := range top[:min(len(top), topCurves)] {
		peak := table.Number(r.Roof.Value)
		if !r.Roof.Identified {
			peak = "≥" + peak
		}
		t.Row(class(r), r.Bytes, r.Span, peak, bounds(r.Roof), knee(r), fmt.Sprintf("%.1f", r.Quality.MAPE))
	}
	return t
}

// knee is the number of accesses a packet from which on the roof limits a
// curve: where the roof's line meets the rate without accesses, 1/a.
func knee(r *model.Roofline) string {
	if !(r.A.Value > 0) || !r.Roof.Identified {
		return "–"
	}
	return fmt.Sprintf("%.1f", r.Roof.Value*r.A.Value)
}

// matrixTable is the interference matrix in the form of Cora's Table 9. Rows
// carry numbers so that it fits a page.
func matrixTable(pairs []model.Pair) *table.Table {
	header, rows := hybrid.Matrix(pairs)
	columns := []string{"", "class"}
	for i := range header {
		columns = append(columns, fmt.Sprint(i+1))
	}
	t := table.New("Interference: H shared (harmonic), M disjoint (minimum), ? not decided", columns...)
	for i, row := range rows {
		cells := []any{fmt.Sprint(i+1, "."), row[0]}
		for _, verdict := range row[1:] {
			short, ok := map[string]string{"harmonic": "H", "min": "M"}[verdict]
			if !ok {
				short = verdict
			}
			cells = append(cells, short)
		}
		t.Row(cells...)
	}
	return t
}

func locksTable(m *model.Model) *table.Table {
	t := table.New("Locks, empty section", "idiom", "base", "one lock Mpps", "lock-free Mpps", "N_thread", "linear up to", "error %")
	for _, l := range m.Locks {
		if !l.LockMpps.Identified {
			continue // a note says why
		}
		t.Row(string(l.Idiom), l.Base, value(l.LockMpps), value(l.FreeMpps), value(l.Threads), l.Linear, fmt.Sprintf("%.1f", l.ErrorPct))
	}
	return t
}

func rulesTable(m *model.Model) *table.Table {
	t := table.New("Rules, error on samples left out of the fit", "rule", "samples", "mean %", "95th percentile %", "largest %", "")
	for _, r := range m.Rules {
		mark := ""
		if r.Rule == m.DefaultRule {
			mark = "default"
		}
		t.Row(r.Rule, r.N, fmt.Sprintf("%.1f", r.MeanPct), fmt.Sprintf("%.1f", r.P95Pct), fmt.Sprintf("%.1f", r.MaxPct), mark)
	}
	return t
}

// value prints a fitted number, "–" where the data cannot tell.
func value(v model.Value) string {
	if !v.Identified {
		return "–"
	}
	return table.Number(v.Value)
}

func bounds(v model.Value) string {
	if !v.Identified || v.High <= v.Low {
		return "–"
	}
	return table.Number(v.Low) + " to " + table.Number(v.High)
}

// needDir complains about a file that cannot be made since its directory is not
// there, before any work is done for it. flag names what chose its place.
func needDir(path, flag string) error {
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return fault.Inputf("%s %s: there is no directory %s; make it, or choose another place", flag, path, filepath.Dir(path))
	}
	return nil
}

// openModel loads a model file, or that of a run's directory.
func openModel(c *cobra.Command, path string) (*model.Model, error) {
	if path == "" {
		return nil, missingFlag(c, "--model FILE|DIR")
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, modelFile)
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return nil, fault.Inputf("%w; fit the run first: profiler fit %s", err, filepath.Dir(path))
		}
	}
	return model.Load(path)
}

// chainsTable lists the law of chains of network tasks.
func chainsTable(c *model.Chains) *table.Table {
	t := table.New("Chains of network tasks", "part", "ns", "95 %", "")
	for _, row := range []struct {
		part string
		v    model.Value
	}{
		{"a beat on the data path", c.BeatUS},
		{"between two packets on it", c.GapUS},
		{"scheduler, a pass", c.IntervalUS},
		{"credit loop beside the NT", c.LoopUS},
		{"data under way before a credit waits", c.AheadUS},
		{"longest wait of a credit", c.YieldUS},
		{"latency without an NT", c.CoreUS},
		{"latency of a further pass", c.PassUS},
		{"latency of an NT's cycle", c.CycleUS},
		{"latency of an NT passed by", c.SkipUS},
		{"configuration of a region", c.ConfigureUS},
		{"context switch", c.SwitchUS},
	} {
		switch v := row.v; {
		case !v.Identified:
			t.Row(row.part, "not measured", "", v.Note)
		case v.High > v.Low:
			t.Row(row.part, 1000*v.Value, table.Number(1000*v.Low)+" to "+table.Number(1000*v.High), v.Note)
		default:
			t.Row(row.part, 1000*v.Value, "", v.Note)
		}
	}
	return t
}
