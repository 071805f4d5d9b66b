package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"nicprof/internal/atomicfile"
	"nicprof/internal/fault"
	"nicprof/internal/table"
)

// Files that Write makes in a result's directory.
const (
	DataFile   = "data.csv"
	FigureFile = "figure.svg"
	TableFile  = "table.md"
	JSONFile   = "figure.json"
)

// Dir returns the directory of a result below out.
func Dir(out, id string) string { return filepath.Join(out, filepath.FromSlash(id)) }

// Write settles r's claims and puts its four files into out/ID, each replaced
// whole and figure.json last, so that a figure.json is never newer than the
// data it judges. The same Result gives the same bytes.
func Write(out string, r *Result) error {
	r.Settle()
	dir := Dir(out, r.ID)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault.Inputf("cannot make the result directory: %w; choose another --out", err)
	}
	data, err := r.Data.CSV()
	if err != nil {
		return fmt.Errorf("%s: %w", r.ID, err)
	}
	svg, err := r.SVG()
	if err != nil {
		return fmt.Errorf("%s: %w", r.ID, err)
	}
	tables, err := r.Markdown()
	if err != nil {
		return fmt.Errorf("%s: %w", r.ID, err)
	}
	doc, err := r.JSON()
	if err != nil {
		return fmt.Errorf("%s: %w", r.ID, err)
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{DataFile, data}, {FigureFile, svg}, {TableFile, tables}, {JSONFile, doc}} {
		if err := atomicfile.Write(filepath.Join(dir, f.name), f.data); err != nil {
			return fault.Inputf("cannot write the result: %w; choose another --out", err)
		}
	}
	return nil
}

// Read returns the claims part (figure.json) of a result stored below out. The
// error wraps fs.ErrNotExist when there is none.
func Read(out, id string) (*Result, error) {
	path := filepath.Join(Dir(out, id), JSONFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var r Result
	if err := dec.Decode(&r); err != nil {
		return nil, fault.Inputf("%s: not a figure.json of this version: %w; remove it or choose another --out", path, err)
	}
	return &r, nil
}

// JSON returns figure.json.
func (r *Result) JSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// CSV returns comma-separated values with a header line.
func (d *Data) CSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for i, row := range append([][]string{d.Columns}, d.Rows...) {
		if len(row) != len(d.Columns) {
			return nil, fmt.Errorf("data row %d has %d cells, the header has %d", i, len(row), len(d.Columns))
		}
		if err := w.Write(row); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// ClaimTable returns the claims as a table: paper against measured.
func (r *Result) ClaimTable() Table {
	t := Table{Title: "Claims", Columns: []string{"claim", "paper", "measured", "unit", "tolerance", "verdict", "reason", "source"}}
	for _, c := range r.Claims {
		verdict, measured := string(c.Verdict), "–"
		if c.Calibrated {
			verdict += " (calibrated)"
		}
		if c.Measured != nil {
			measured = table.Number(*c.Measured)
		}
		t.Add(c.Text, c.Expected(), measured, c.Unit, c.allowance(), verdict, c.Reason, c.Source)
	}
	return t
}

// Expected writes the published side of a claim: a number, a range, a bound,
// or "not published".
func (c Claim) Expected() string {
	if c.Published == nil {
		return string(NotPublished)
	}
	s := table.Number(*c.Published)
	if c.PublishedHigh != nil {
		s += " to " + table.Number(*c.PublishedHigh)
	}
	if c.Bound != "" {
		s = string(c.Bound) + " " + s
	}
	return s
}

func (c Claim) allowance() string {
	if c.Published == nil {
		return "–"
	}
	return fmt.Sprintf("±%g %%", 100*c.Tolerance)
}

// Markdown returns table.md.
func (r *Result) Markdown() ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: %s\n\n%s\n", r.ID, r.Title, r.provenance())
	for _, t := range append([]Table{r.ClaimTable()}, r.Tables...) {
		fmt.Fprintf(&b, "\n## %s\n\n", t.Title)
		if err := t.markdown(&b); err != nil {
			return nil, err
		}
	}
	if len(r.Notes) > 0 {
		b.WriteString("\n## Notes\n\n")
		for _, n := range r.Notes {
			fmt.Fprintf(&b, "- %s\n", n)
		}
	}
	return []byte(b.String()), nil
}

// provenance is the line under a title: paper, backend, board, seed, scale.
func (r *Result) provenance() string {
	return fmt.Sprintf("%s · backend %s · board %s · seed %d · %s scale", r.Paper, r.Backend, r.Board, r.Seed, r.Scale)
}

func (t *Table) markdown(w io.Writer) error {
	out := table.New("", t.Columns...)
	for i, row := range t.Rows {
		if len(row) != len(t.Columns) {
			return fmt.Errorf("table %q: row %d has %d cells for %d columns", t.Title, i+1, len(row), len(t.Columns))
		}
		cells := make([]any, len(row))
		for k, c := range row {
			cells[k] = c
		}
		out.Row(cells...)
	}
	return out.Markdown(w)
}
