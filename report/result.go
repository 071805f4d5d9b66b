// Package report brings results to eyes: a Result is one figure of a paper
// with its claims, its data, its picture and its tables; Write puts it on disk
// as figure.json, data.csv, figure.svg and table.md. The package holds no
// numbers of its own and measures nothing.
package report

import (
	"fmt"
	"math"
	"strconv"

	"nicprof/internal/table"
)

// Verdict is the outcome of a claim.
type Verdict string

// Verdicts. Differs wants a reason.
const (
	Reproduced   Verdict = "reproduced"
	Differs      Verdict = "differs"
	NotPublished Verdict = "not published"
)

// Bound says how a measured value is held against a published one.
type Bound string

// Bounds. The zero Bound is "within the tolerance on both sides".
const (
	AtMost  Bound = "at most"
	AtLeast Bound = "at least"
)

// Claim is one statement of a paper with a number in it. Published is nil where
// the paper prints none; PublishedHigh makes it a range. Tolerance is a
// fraction of the published value (0.05 is 5 %). Calibrated says that the
// published number went into the emulator's parameters, so that agreement
// shows a mechanism that carries it and no prediction. Source names where the
// published number was read.
type Claim struct {
	ID            string   `json:"id"`
	Text          string   `json:"text"`
	Published     *float64 `json:"published"`
	PublishedHigh *float64 `json:"published_high,omitempty"`
	Bound         Bound    `json:"bound,omitempty"`
	Measured      *float64 `json:"measured"`
	Unit          string   `json:"unit"`
	Tolerance     float64  `json:"tolerance"`
	Verdict       Verdict  `json:"verdict"`
	Reason        string   `json:"reason"`
	Calibrated    bool     `json:"calibrated,omitempty"`
	Source        string   `json:"source,omitempty"`
}

// Value returns a pointer to v, for Claim's optional numbers.
func Value(v float64) *float64 { return &v }

// Judge returns the verdict that the claim's numbers give. It is the only
// place where a verdict is decided.
func (c Claim) Judge() Verdict {
	if c.Published == nil {
		return NotPublished
	}
	if c.Measured == nil || math.IsNaN(*c.Measured) {
		return Differs
	}
	low, high := *c.Published, *c.Published
	if c.PublishedHigh != nil {
		high = *c.PublishedHigh
	}
	low -= c.Tolerance * math.Abs(low)
	high += c.Tolerance * math.Abs(high)
	if *c.Measured < low && c.Bound != AtMost || *c.Measured > high && c.Bound != AtLeast {
		return Differs
	}
	return Reproduced
}

// Result is one figure, run. Claims, and the fields before them, are
// figure.json; Data is data.csv; Figure is figure.svg; Tables and Notes fill
// table.md.
type Result struct {
	ID      string   `json:"id"`
	Paper   string   `json:"paper"`
	Title   string   `json:"title"`
	Backend string   `json:"backend"` // emulated, native, remote
	Board   string   `json:"board"`
	Seed    uint64   `json:"seed"`
	Scale   string   `json:"scale"`
	Claims  []Claim  `json:"claims"`
	Notes   []string `json:"notes,omitempty"`

	Data   Data    `json:"-"`
	Tables []Table `json:"-"`
	Figure Figure  `json:"-"`
}

// Settle judges every claim.
func (r *Result) Settle() {
	for i := range r.Claims {
		r.Claims[i].Verdict = r.Claims[i].Judge()
	}
}

// Data is the numbers behind a figure, for machines.
type Data struct {
	Columns []string
	Rows    [][]string
}

// Add appends a row; a float64 is written with six significant digits, NaN as
// an empty cell.
func (d *Data) Add(cells ...any) { d.Rows = append(d.Rows, row(cells, precise)) }

// Table is a table for people, printed by internal/table.
type Table struct {
	Title   string
	Columns []string
	Rows    [][]string
}

// Add appends a row; a float64 is written with four significant digits.
func (t *Table) Add(cells ...any) { t.Rows = append(t.Rows, row(cells, table.Number)) }

func row(cells []any, number func(float64) string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		if v, ok := c.(float64); ok {
			out[i] = number(v)
			continue
		}
		out[i] = fmt.Sprint(c)
	}
	return out
}

func precise(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
