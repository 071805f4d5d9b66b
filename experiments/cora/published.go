// Package cora reproduces figures and tables of Cora (arXiv 2410.22229) on an
// emulated Agilio CX. What is published about a figure lies in one file of
// published/ with its source named; it is only ever held against measurements,
// and drawn as markers.
package cora

import (
	"embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"nicprof/report"
)

//go:embed published/*.csv
var published embed.FS

// paper is the name of the paper in results.
const paper = "Cora"

// readTable reads a file of published/: its header and rows.
func readTable(name string) (map[string]int, [][]string, error) {
	f, err := published.Open("published/" + name + ".csv")
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		return nil, nil, fmt.Errorf("published/%s.csv: %w", name, err)
	}
	column := map[string]int{}
	for i, c := range rows[0] {
		column[c] = i
	}
	return column, rows[1:], nil
}

// claims is a figure's list of claims, to be filled with measurements.
type claims []report.Claim

// readClaims returns the claims of published/NAME.csv, nothing measured yet.
func readClaims(name string) (claims, error) {
	column, rows, err := readTable(name)
	if err != nil {
		return nil, err
	}
	var cs claims
	for _, row := range rows {
		cell := func(c string) string { return row[column[c]] }
		number := func(c string) *float64 {
			if cell(c) == "" || err != nil {
				return nil
			}
			var v float64
			if v, err = strconv.ParseFloat(cell(c), 64); err != nil {
				err = fmt.Errorf("published/%s.csv: %s: %w", name, cell("id"), err)
			}
			return &v
		}
		c := report.Claim{
			ID: cell("id"), Text: cell("text"), Unit: cell("unit"), Source: cell("source"),
			Published: number("published"), PublishedHigh: number("high"),
			Bound: report.Bound(cell("bound")), Calibrated: cell("calibrated") == "yes",
		}
		if tol := number("tolerance"); tol != nil {
			c.Tolerance = *tol
		}
		if err != nil {
			return nil, err
		}
		cs = append(cs, c)
	}
	return cs, nil
}

// find returns the claim of that ID, which must be in the file.
func (cs claims) find(id string) *report.Claim {
	for i := range cs {
		if cs[i].ID == id {
			return &cs[i]
		}
	}
	panic("cora: no claim " + id)
}

// measured sets what was measured for a claim. Why a difference is expected
// goes into why; it is kept only if the claim then differs.
func (cs claims) measured(id string, v float64, why string) {
	c := cs.find(id)
	c.Measured = &v
	if c.Judge() == report.Differs {
		c.Reason = why
	}
}

// curve is a published roofline, T(i) = 1/(a + c·exp(−b/i)·i).
type curve struct {
	name    string // irb, ewa, …
	bytes   int
	span    int64
	a, b, c float64
}

// readCurves returns the rooflines of published/fig7a_curves.csv.
func readCurves() ([]curve, error) {
	column, rows, err := readTable("fig7a_curves")
	if err != nil {
		return nil, err
	}
	var all []curve
	for _, row := range rows {
		var v [5]float64
		for i, c := range []string{"bytes", "span", "a", "b", "c"} {
			if v[i], err = strconv.ParseFloat(row[column[c]], 64); err != nil {
				return nil, fmt.Errorf("published/fig7a_curves.csv: %s: %w", strings.Join(row, ","), err)
			}
		}
		all = append(all, curve{name: row[column["curve"]], bytes: int(v[0]), span: int64(v[1]), a: v[2], b: v[3], c: v[4]})
	}
	return all, nil
}
