// Package table prints small tables for people: plain text that fits 80
// columns, and Markdown. It is our face over tablewriter, which draws; layout
// (which column gives way, where a cell breaks), number formatting and colours
// are decided here, so that the same cells give the same bytes everywhere. Raw
// data belongs into CSV or JSON, not here.
package table

import (
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
	"golang.org/x/term"
)

// Width is the number of columns that a text table fits into.
const Width = 80

// gap is the number of blanks between two columns.
const gap = 2

// Tone colours a cell where colours are on.
type Tone string

// Tones are ANSI SGR parameters.
const (
	Good Tone = "32" // green
	Warn Tone = "33" // yellow
	Bad  Tone = "31" // red
	bold Tone = "1"
)

// Of returns text as a cell of this tone.
func (t Tone) Of(text string) Cell { return Cell{text, t} }

// Cell is a cell with a tone.
type Cell struct {
	Text string
	Tone Tone
}

// Table is a table under construction. A column whose cells are all numbers
// (with a sign, a unit or as "1 to 2") is aligned to the right.
type Table struct {
	title   string
	columns []string
	rows    [][]Cell
}

// New returns an empty table. The title may be empty.
func New(title string, columns ...string) *Table { return &Table{title: title, columns: columns} }

// Row appends a row. A float64 is written by Number, a Cell keeps its tone,
// anything else is printed as fmt does. A row of the wrong length is a
// programming error and panics.
func (t *Table) Row(cells ...any) {
	if len(cells) != len(t.columns) {
		panic(fmt.Sprintf("table: %d cells in a table of %d columns", len(cells), len(t.columns)))
	}
	row := make([]Cell, len(cells))
	for i, c := range cells {
		switch v := c.(type) {
		case Cell:
			row[i] = v
		case float64:
			row[i].Text = Number(v)
		default:
			row[i].Text = fmt.Sprint(v)
		}
	}
	t.rows = append(t.rows, row)
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Number writes v with four significant digits, without an exponent; NaN and
// infinities as "–".
func Number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	digits := 0
	if a := math.Abs(v); a > 0 && a < 1000 {
		digits = min(6, 3-int(math.Floor(math.Log10(a))))
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// Colors says whether colours may be written to w: it is a terminal that is not
// dumb, and NO_COLOR (no-color.org) is unset or empty. getenv is os.Getenv.
func Colors(w io.Writer, getenv func(string) string) bool {
	f, ok := w.(*os.File)
	return ok && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// Text prints the table for a terminal, no line wider than Width. A table whose
// columns have no names has no header.
func (t *Table) Text(w io.Writer, colors bool) error {
	paint := func(c Cell) string {
		if !colors || c.Tone == "" || c.Text == "" {
			return c.Text
		}
		return "\x1b[" + string(c.Tone) + "m" + c.Text + "\x1b[0m"
	}
	if t.title != "" {
		for _, line := range wrap(t.title, Width) {
			if _, err := fmt.Fprintln(w, paint(Cell{line, bold})); err != nil {
				return err
			}
		}
	}
	widths := t.layout()
	line := func(cells []Cell) []string {
		out := make([]string, len(cells))
		for i, c := range cells {
			parts := wrap(c.Text, widths[i])
			for k := range parts {
				parts[k] = paint(Cell{parts[k], c.Tone})
			}
			out[i] = strings.Join(parts, "\n")
		}
		return out
	}
	header := make([]Cell, len(t.columns))
	for i, c := range t.columns {
		header[i] = Cell{c, bold}
	}
	padding := make([]tw.Padding, len(t.columns))
	for i := range padding {
		padding[i] = tw.Padding{Right: strings.Repeat(" ", gap), Overwrite: true}
	}
	padding[len(padding)-1] = tw.PaddingNone
	var b strings.Builder
	tab := t.writer(&b,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Settings: tw.Settings{
				Separators: tw.Separators{BetweenColumns: tw.Off, BetweenRows: tw.Off},
				Lines:      tw.Lines{ShowHeaderLine: tw.On, ShowFooterLine: tw.Off, ShowTop: tw.Off, ShowBottom: tw.Off},
			},
		})),
		tablewriter.WithHeaderPaddingPerColumn(padding),
		tablewriter.WithRowPaddingPerColumn(padding))
	if strings.Join(t.columns, "") != "" {
		tab.Header(line(header))
	}
	for _, row := range t.rows {
		if err := tab.Append(line(row)); err != nil {
			return err
		}
	}
	if err := tab.Render(); err != nil {
		return err
	}
	return trim(w, b.String())
}

// Markdown prints the table as Markdown, cells whole.
func (t *Table) Markdown(w io.Writer) error {
	if t.title != "" {
		if _, err := fmt.Fprintf(w, "**%s**\n\n", escape(t.title)); err != nil {
			return err
		}
	}
	cells := func(row []Cell) []string {
		out := make([]string, len(row))
		for i, c := range row {
			out[i] = escape(c.Text)
		}
		return out
	}
	tab := t.writer(w, tablewriter.WithRenderer(renderer.NewMarkdown()))
	header := make([]string, len(t.columns))
	for i, c := range t.columns {
		header[i] = escape(c)
	}
	tab.Header(header)
	for _, row := range t.rows {
		if err := tab.Append(cells(row)); err != nil {
			return err
		}
	}
	return tab.Render()
}

// writer returns a tablewriter that neither rewrites headers nor wraps cells.
func (t *Table) writer(w io.Writer, options ...tablewriter.Option) *tablewriter.Table {
	align := make(tw.Alignment, len(t.columns))
	for i := range align {
		align[i] = tw.AlignLeft
		if t.numeric(i) {
			align[i] = tw.AlignRight
		}
	}
	return tablewriter.NewTable(w, append(options,
		tablewriter.WithEastAsian(tw.Off), // "…" is one column wide whatever the locale
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithAlignment(align))...)
}

// escape keeps a cell within its Markdown cell.
func escape(s string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s) }

// trim writes text without the blanks that end its lines.
func trim(w io.Writer, text string) error {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n"))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var number = regexp.MustCompile(`^(–|[-+−±≤≥<>]?[0-9][0-9.,]*( ?(%|×|[a-zA-Zµ/]{1,8}))?( to [-+−]?[0-9.]+)?)$`)

// numeric says whether a column holds numbers only.
func (t *Table) numeric(col int) bool {
	for _, row := range t.rows {
		if s := row[col].Text; s != "" && !number.MatchString(s) {
			return false
		}
	}
	return len(t.rows) > 0
}

// layout returns the columns' widths. Where the natural widths do not fit, the
// widest column gives way first, down to its longest word (numbers) or to
// minText; only then are words cut.
func (t *Table) layout() []int {
	const minText = 10
	widths, least := make([]int, len(t.columns)), make([]int, len(t.columns))
	total := gap * (len(t.columns) - 1)
	for i, name := range t.columns {
		widths[i], least[i] = twwidth.Width(name), longestWord(name)
		for _, row := range t.rows {
			widths[i] = max(widths[i], twwidth.Width(row[i].Text))
			least[i] = max(least[i], longestWord(row[i].Text))
		}
		if !t.numeric(i) {
			least[i] = min(least[i], minText)
		}
		total += widths[i]
	}
	for ; total > Width; total-- {
		widest, shrinkable := -1, false
		for i, w := range widths {
			can := w > least[i]
			if widest < 0 || can && !shrinkable || can == shrinkable && w > widths[widest] {
				widest, shrinkable = i, can
			}
		}
		if widths[widest] == 1 {
			break // more columns than the page has room for
		}
		widths[widest]--
	}
	return widths
}

func longestWord(s string) int {
	longest := 0
	for word := range strings.FieldsSeq(s) {
		longest = max(longest, twwidth.Width(word))
	}
	return longest
}

// wrap breaks s into lines of at most width columns: at blanks, and within a
// longer word after a separator of specs and paths if there is one.
func wrap(s string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		if line != "" && twwidth.Width(line)+1+twwidth.Width(word) <= width {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for twwidth.Width(word) > width {
			cut := breakAt([]rune(word), width)
			lines = append(lines, string([]rune(word)[:cut]))
			word = string([]rune(word)[cut:])
		}
		line = word
	}
	return append(lines, line)
}

// breakAt returns how many runes of a word to leave on a line of that width.
func breakAt(word []rune, width int) int {
	fits, after := 0, 0
	for i, used := 0, 0; i < len(word); i++ {
		if used += twwidth.Width(string(word[i])); used > width {
			break
		}
		fits = i + 1
		if strings.ContainsRune(":/,+", word[i]) {
			after = i + 1
		}
	}
	if after > fits/2 {
		return after
	}
	return max(fits, 1)
}
