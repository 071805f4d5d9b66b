// Package cora reproduces figures and tables of Cora (arXiv 2410.22229) on an
// emulated Agilio CX. What is published about a figure lies in one file of
// published/ with its source named; it is only ever held against measurements,
// and drawn as markers.
package cora

import (
	"embed"
	"fmt"
	"strconv"
	"strings"

	"nicprof/experiments"
	"nicprof/report"
)

//go:embed published/*.csv
var published embed.FS

// paper is the name of the paper in results.
const paper = "Cora"

// readTable reads a file of published/: its header and rows.
func readTable(name string) (map[string]int, [][]string, error) {
	return experiments.ReadTable(published, "published/"+name+".csv")
}

// claims is a figure's list of claims, to be filled with measurements.
type claims []report.Claim

// readClaims returns the claims of published/NAME.csv, nothing measured yet.
func readClaims(name string) (claims, error) {
	cs, err := experiments.ReadClaims(published, "published/"+name+".csv")
	return claims(cs), err
}

// find returns the claim of that ID, which must be in the file.
func (cs claims) find(id string) *report.Claim { return experiments.Claims(cs).Find(id) }

// measured sets what was measured for a claim; why says why a difference is
// expected.
func (cs claims) measured(id string, v float64, why string) {
	experiments.Claims(cs).Measured(id, v, why)
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
