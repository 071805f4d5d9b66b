package experiments

import (
	"encoding/csv"
	"fmt"
	"io/fs"
	"strconv"

	"nicprof/report"
)

// ReadTable reads a CSV file of published numbers: the positions of its columns
// by name, and its rows. Lines that begin with # say where the numbers are from.
func ReadTable(fsys fs.FS, path string) (map[string]int, [][]string, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(rows) == 0 {
		return nil, nil, fmt.Errorf("%s: no header", path)
	}
	column := map[string]int{}
	for i, c := range rows[0] {
		column[c] = i
	}
	return column, rows[1:], nil
}

// Claims is a figure's list of claims, to be filled with measurements.
type Claims []report.Claim

// ReadClaims returns the claims of a CSV file with the columns id, text,
// published, high, bound, unit, tolerance, calibrated and source. Nothing is
// measured yet.
func ReadClaims(fsys fs.FS, path string) (Claims, error) {
	column, rows, err := ReadTable(fsys, path)
	if err != nil {
		return nil, err
	}
	var cs Claims
	for _, row := range rows {
		cell := func(c string) string { return row[column[c]] }
		number := func(c string) *float64 {
			if cell(c) == "" || err != nil {
				return nil
			}
			var v float64
			if v, err = strconv.ParseFloat(cell(c), 64); err != nil {
				err = fmt.Errorf("%s: %s: %w", path, cell("id"), err)
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

// Find returns the claim of that ID. One that is not there is a programming
// error and panics.
func (cs Claims) Find(id string) *report.Claim {
	for i := range cs {
		if cs[i].ID == id {
			return &cs[i]
		}
	}
	panic("experiments: no claim " + id)
}

// Measured sets what was measured for a claim. Why a difference is expected
// goes into why; it is kept only if the claim then differs.
func (cs Claims) Measured(id string, v float64, why string) {
	c := cs.Find(id)
	c.Measured = &v
	if c.Judge() == report.Differs {
		c.Reason = why
	}
}
