// Package curves reads throughput that others have measured into samples: CSV
// files of curves (one point a line) and of one-second samples behind a single
// point. They then go the way of our own measurements.
package curves

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"nicprof/internal/fault"
	"nicprof/internal/stats"
	"nicprof/microbench"
	"nicprof/program"
)

// Backend of the samples, and their board where the file names none.
const Backend = "imported"

// Columns of a curve file, and the keys of set that fill those it lacks. The
// measured ones cannot be set, the optional ones may be missing altogether.
var (
	describing = []string{"memory", "op", "mode", "bytes", "span", "intensity"}
	optional   = []string{"stride", "base", "cores", "board"}
	measured   = []string{"mpps", "low", "high"}
)

const (
	alias       = "per_packet" // of intensity
	defaultBase = "forward"    // as everywhere where none is named
)

// Read reads a CSV file of curves. Its header names the columns memory, op,
// mode, bytes, span (elements), intensity or per_packet (accesses a packet)
// and mpps, and optionally low, high (95 % interval, Mpps), cores, base (the
// program around the accesses, "forward" if it is not named), stride (bytes)
// and board; lines that begin with # are comments. set fills missing columns
// and empty cells. A file of fitted coefficients (see coefficients) is read
// too. The notes are for the reader. Errors name the file and line and are the
// input's fault.
func Read(path string, set map[string]string) ([]microbench.Sample, []string, error) {
	return open(path, func(r io.Reader) ([]microbench.Sample, []string, error) { return parse(r, path, set) })
}

// ReadRaw reads a CSV file with one column pps, a one-second sample a line in
// the order of measurement, as one point of the workload that set describes
// (all of memory, op, mode, bytes, span and intensity). Its interval is of the
// mean; regimes and drift in time are among its Warnings.
func ReadRaw(path string, set map[string]string) (microbench.Sample, error) {
	s, _, err := open(path, func(r io.Reader) ([]microbench.Sample, []string, error) {
		s, err := parseRaw(r, path, set)
		return []microbench.Sample{s}, nil, err
	})
	if err != nil {
		return microbench.Sample{}, err
	}
	return s[0], nil
}

func open(path string, read func(io.Reader) ([]microbench.Sample, []string, error)) ([]microbench.Sample, []string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fault.Inputf("cannot read curves: %w", err)
	}
	defer f.Close()
	return read(f)
}

// row is one line's cells by column, with where it stands.
type row struct {
	where string
	cells map[string]string
}

func parse(r io.Reader, name string, set map[string]string) ([]microbench.Sample, []string, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, nil, fault.Inputf("%s: %w", name, err)
	}
	if isCoefficients(data) {
		return parseCoefficients(data, name, set)
	}
	if set, err = canonical(set); err != nil {
		return nil, nil, err
	}
	rows, header, err := readRows(bytes.NewReader(data), name, slices.Concat(describing, optional, measured), set)
	if err != nil {
		return nil, nil, err
	}
	for _, column := range append(slices.Clone(describing), "mpps") {
		if _, ok := set[column]; !ok && !slices.Contains(header, column) {
			return nil, nil, fault.Inputf("%s: no column %s; add it, or give --set %s=VALUE for all lines", name, column, column)
		}
	}
	if slices.Contains(header, "low") != slices.Contains(header, "high") {
		return nil, nil, fault.Inputf("%s: an interval needs both columns low and high; one is missing", name)
	}
	var samples []microbench.Sample
	curves, withInterval := map[string]bool{}, 0
	for _, row := range rows {
		s, err := row.workload(set)
		if err != nil {
			return nil, nil, err
		}
		if s.Mpps, err = row.number("mpps"); err != nil {
			return nil, nil, err
		}
		if s.Mpps <= 0 {
			return nil, nil, fault.Inputf("%s: mpps is %v, expected a number above 0; leave failed measurements out", row.where, s.Mpps)
		}
		s.Low, s.High, s.MedianMpps = s.Mpps, s.Mpps, s.Mpps
		if row.cells["low"] != "" || row.cells["high"] != "" {
			if s.Low, err = row.number("low"); err != nil {
				return nil, nil, err
			}
			if s.High, err = row.number("high"); err != nil {
				return nil, nil, err
			}
			if s.Low < 0 || s.Low > s.Mpps || s.High < s.Mpps {
				return nil, nil, fault.Inputf("%s: the interval %v to %v does not hold mpps %v", row.where, s.Low, s.High, s.Mpps)
			}
			withInterval++
		}
		s.Index, s.Runs = len(samples), 1
		curve := s.Program.Accesses[0]
		curve.PerPacket = 0
		curves[s.Board+" "+s.Program.Base+" "+curve.String()] = true
		samples = append(samples, s)
	}
	if len(samples) == 0 {
		return nil, nil, fault.Inputf("%s: no points below the header", name)
	}
	notes := []string{fmt.Sprintf("%s: %d point(s) of %d curve(s)", name, len(samples), len(curves))}
	if withInterval < len(samples) {
		notes = append(notes, fmt.Sprintf("%s: %d point(s) without an interval (columns low, high): they weigh as much as the fit's own scatter says", name, len(samples)-withInterval))
	}
	return samples, notes, nil
}

func parseRaw(r io.Reader, name string, set map[string]string) (microbench.Sample, error) {
	set, err := canonical(set)
	if err != nil {
		return microbench.Sample{}, err
	}
	for _, column := range describing {
		if _, ok := set[column]; !ok {
			return microbench.Sample{}, fault.Inputf("%s: what was measured is not described: %s is missing; give it with --raw or --set, such as %s=VALUE", name, column, column)
		}
	}
	rows, header, err := readRows(r, name, []string{"pps"}, nil)
	if err != nil {
		return microbench.Sample{}, err
	}
	if !slices.Equal(header, []string{"pps"}) {
		return microbench.Sample{}, fault.Inputf("%s: expected a header line pps over one packet rate a line", name)
	}
	var rates []float64 // Mpps
	for _, row := range rows {
		pps, err := row.number("pps")
		if err != nil {
			return microbench.Sample{}, err
		}
		if pps < 0 {
			return microbench.Sample{}, fault.Inputf("%s: %v packets a second, expected 0 or more", row.where, pps)
		}
		rates = append(rates, pps/1e6)
	}
	if len(rates) == 0 {
		return microbench.Sample{}, fault.Inputf("%s: no samples below the header", name)
	}
	s, err := row{where: name}.workload(set)
	if err != nil {
		return microbench.Sample{}, err
	}
	sum, err := stats.Summarise(rates)
	if err != nil {
		return microbench.Sample{}, fault.Inputf("%s: %w", name, err)
	}
	if sum.Mean <= 0 {
		return microbench.Sample{}, fault.Inputf("%s: no packet in any second; leave failed measurements out", name)
	}
	s.Mpps, s.Low, s.High, s.MedianMpps = sum.Mean, max(sum.MeanLow, 0), sum.MeanHigh, sum.Median
	s.Runs, s.Outliers, s.DurationUS = sum.N, sum.Outliers, 1e6*float64(sum.N)
	for _, f := range sum.Findings {
		s.Warnings = append(s.Warnings, f.Text)
	}
	return s, nil
}

// canonical returns set with the alias under its column's name. Keys that no
// set may give are refused.
func canonical(set map[string]string) (map[string]string, error) {
	known := slices.Concat(describing, []string{alias}, optional)
	out := map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(set)) {
		if !slices.Contains(known, k) {
			return nil, fault.Inputf("--set %s: no such column to fill; known are %s", k, strings.Join(known, ", "))
		}
		if k != alias {
			out[k] = set[k]
		}
	}
	if v, ok := set[alias]; ok {
		if _, both := set["intensity"]; both {
			return nil, fault.Inputf("--set gives both intensity and %s, which are the same; give one", alias)
		}
		out["intensity"] = v
	}
	return out, nil
}

// readRows reads a CSV with a header whose columns must be among known.
// Missing columns and empty cells are filled from set, whose values must not
// contradict a cell.
func readRows(r io.Reader, name string, known []string, set map[string]string) (rows []row, header []string, err error) {
	cr := csv.NewReader(r)
	cr.Comment, cr.TrimLeadingSpace = '#', true
	header, err = cr.Read()
	if err == io.EOF {
		return nil, nil, fault.Inputf("%s: empty; expected a header line with columns such as %s", name, strings.Join(known, ","))
	}
	if err != nil {
		return nil, nil, csvFault(name, err)
	}
	line, _ := cr.FieldPos(0)
	for k, h := range header {
		h = strings.TrimSpace(h)
		if h == alias {
			h = "intensity"
		}
		switch {
		case !slices.Contains(known, h):
			return nil, nil, fault.Inputf("%s:%d: unknown column %q; known are %s", name, line, h, strings.Join(known, ", "))
		case slices.Contains(header[:k], h):
			return nil, nil, fault.Inputf("%s:%d: column %s is there twice", name, line, h)
		}
		header[k] = h
	}
	for {
		record, err := cr.Read()
		if err == io.EOF {
			return rows, header, nil
		}
		if err != nil {
			return nil, nil, csvFault(name, err)
		}
		line, _ := cr.FieldPos(0)
		row := row{where: fmt.Sprintf("%s:%d", name, line), cells: map[string]string{}}
		for k, h := range header {
			cell := strings.TrimSpace(record[k])
			if want, ok := set[h]; ok && cell != "" && cell != want {
				return nil, nil, fault.Inputf("%s: column %s says %q, --set says %q; drop one", row.where, h, cell, want)
			}
			row.cells[h] = cell
		}
		rows = append(rows, row)
	}
}

func csvFault(name string, err error) error {
	var p *csv.ParseError
	if errors.As(err, &p) {
		return fault.Inputf("%s:%d: %w; expected one value for each column of the header", name, p.Line, p.Err)
	}
	return fault.Inputf("%s: %w", name, err)
}

// number reads a cell as a finite number.
func (r row) number(column string) (float64, error) {
	v, err := strconv.ParseFloat(r.cells[column], 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fault.Inputf("%s: %s is %q, expected a number", r.where, column, r.cells[column])
	}
	return v, nil
}

// workload builds the sample that the row's cells, filled by set, describe.
func (r row) workload(set map[string]string) (microbench.Sample, error) {
	get := func(column string) string {
		if v := r.cells[column]; v != "" {
			return v
		}
		return set[column]
	}
	for _, column := range describing {
		if get(column) == "" {
			return microbench.Sample{}, fault.Inputf("%s: %s is empty; fill the cell, or give --set %s=VALUE", r.where, column, column)
		}
	}
	whole := func(column string) int64 {
		if get(column) == "" {
			return 0
		}
		v, err := strconv.ParseInt(get(column), 10, 64)
		if err != nil || v < 1 {
			return -1
		}
		return v
	}
	for _, column := range []string{"bytes", "span", "stride", "cores"} {
		if whole(column) < 0 {
			return microbench.Sample{}, fault.Inputf("%s: %s is %q, expected a whole number of 1 or more", r.where, column, get(column))
		}
	}
	a := program.Access{Memory: get("memory"), Op: program.Op(get("op")), Mode: program.Mode(get("mode")),
		Bytes: int(whole("bytes")), Span: whole("span"), Stride: whole("stride")}
	var err error
	if a.PerPacket, err = strconv.ParseFloat(get("intensity"), 64); err != nil {
		return microbench.Sample{}, fault.Inputf("%s: intensity is %q, expected accesses a packet", r.where, get("intensity"))
	}
	s := microbench.Sample{Group: microbench.GroupSingle, Board: get("board"), Backend: Backend, Status: "ok",
		Program: program.Program{Base: get("base"), Accesses: []program.Access{a}}, Cores: int(whole("cores"))}
	if s.Board == "" {
		s.Board = Backend
	}
	if s.Program.Base == "" {
		s.Program.Base = defaultBase
	}
	if err := s.Program.Validate(); err != nil {
		return microbench.Sample{}, fault.Inputf("%s: %w", r.where, err)
	}
	s.Key = Backend + "/" + s.Program.Base + "/" + a.String()
	if s.Cores > 0 {
		s.Key += fmt.Sprintf("/%d-cores", s.Cores)
	}
	s.Key += "/" + filepath.Base(r.where)
	return s, nil
}
