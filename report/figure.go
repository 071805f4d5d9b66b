package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Figure is the picture of a result: panels in a grid of Columns (0: one row)
// over one legend that lies below them, off the data. With Shared the panels
// have the same axes, drawn once at the edge of the grid. Caption says what
// lines and markers mean.
type Figure struct {
	Caption string
	Columns int
	Shared  bool
	Panels  []Panel
}

// Panel is one plot: series, or a matrix. Band draws y = x and, dashed, y =
// (1±Band)·x; both axes then have the same range.
type Panel struct {
	Title  string
	X, Y   Axis
	Series []Series
	Matrix *Matrix
	Band   float64
}

// Axis has a label, a unit, and a scale. Zero Min and Max take the range of
// the data; a linear axis then begins at 0. Names label the points 1, 2 and so on
// in the place of numbers.
type Axis struct {
	Label, Unit string
	Log         bool
	Min, Max    float64
	Names       []string
}

// Kind is the way a series is drawn: emulated curves are lines, published
// points are markers.
type Kind int

// Kinds of series.
const (
	Line Kind = iota
	Markers
	LineMarkers
)

// Series is a set of points. Style picks colour, dash pattern and marker, so
// that a curve and the published points it is held against share a colour.
// Series of the same Name share one entry of the legend.
type Series struct {
	Name   string
	Kind   Kind
	Style  int
	Points []Point
}

// Point is a point with an interval in y (Low and High zero: none).
type Point struct{ X, Y, Low, High float64 }

// Matrix is a heat map. Value is indexed by row and column, NaN is blank; Mark
// frames a cell. Low and High are the ends of the colour scale, named by
// LowText and HighText.
type Matrix struct {
	Rows, Cols        []string
	Value             [][]float64
	Mark              [][]bool
	Low, High         float64
	LowText, HighText string
}

// palette is Okabe and Ito's (jfly.uni-koeln.de/color), without its yellow,
// which is too light for lines on white.
var palette = []color.NRGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0x00, 0x00, 0x00, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x80, 0x80, 0x80, 0xff},
}

var dashes = [][]vg.Length{nil, {6, 2}, {2, 2}, {8, 2, 2, 2}, {4, 4}, {10, 3}, {1, 2}, {6, 2, 1, 2, 1, 2}}

var glyphs = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.SquareGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{},
	draw.BoxGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{},
}

var (
	grey = color.NRGBA{0x55, 0x55, 0x55, 0xff}
	pale = color.NRGBA{0xe4, 0xe4, 0xe4, 0xff}
	ink  = color.NRGBA{0x20, 0x20, 0x20, 0xff}
	deep = color.NRGBA{0x08, 0x45, 0x94, 0xff} // full end of the matrix scale
)

// fonts is the text shaper of all figures: Liberation Sans, whose widths are
// Arial's, so that a viewer without it lays the text out alike.
var fonts = text.Plain{Fonts: font.NewCache(liberation.Collection())}

func style(points float64, c color.Color) text.Style {
	return text.Style{Color: c, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(points)}, Handler: fonts}
}

// Sizes of a panel with its axes, and of the margin around the drawing, points.
const (
	singleWidth, singleHeight = 540, 330
	gridWidth, gridHeight     = 225, 185
	matrixSide                = 400
	margin                    = 10
	titleHeight               = 16
	gap                       = 8 // between panels
)

// SVG draws the result's figure. The title, the backend and the caption are in
// the drawing, so that a copied picture still says that it was emulated.
func (r *Result) SVG() ([]byte, error) {
	f := r.Figure
	if len(f.Panels) == 0 {
		return nil, fmt.Errorf("the figure has no panels")
	}
	cols, rows := f.grid()
	width, height := f.size(cols, rows)
	head := r.heading(width)
	key := f.legend(width)
	c := vgsvg.New(width+2*margin, height+head.height+key.height+3*margin)
	dc := draw.New(c)
	dc.SetColor(color.White)
	dc.Fill(dc.Rectangle.Path())
	dc = draw.Crop(dc, margin, -margin, margin, -margin)
	head.draw(dc)
	key.draw(draw.Crop(dc, 0, 0, 0, key.height-(dc.Max.Y-dc.Min.Y)))

	plots, err := f.plots(cols, rows)
	if err != nil {
		return nil, err
	}
	f.drawPanels(plots, draw.Crop(dc, 0, 0, key.height+margin, -head.height))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

// grid returns the columns and rows of panels.
func (f *Figure) grid() (cols, rows int) {
	cols = f.Columns
	if cols <= 0 || cols > len(f.Panels) {
		cols = len(f.Panels)
	}
	return cols, (len(f.Panels) + cols - 1) / cols
}

// size returns the room for the panels: more for each, the fewer there are.
func (f *Figure) size(cols, rows int) (width, height vg.Length) {
	switch {
	case len(f.Panels) > 4:
		return gridWidth * vg.Length(cols), gridHeight * vg.Length(rows)
	case len(f.Panels) > 1:
		return 1.6 * gridWidth * vg.Length(cols), 1.5 * gridHeight * vg.Length(rows)
	case f.Panels[0].Matrix != nil:
		return matrixSide + 80, matrixSide // names of the rows take the 80
	}
	return singleWidth, singleHeight
}

func (f *Figure) drawPanels(plots [][]*plot.Plot, c draw.Canvas) {
	room := vg.Length(0)
	for _, p := range f.Panels {
		if p.Title != "" {
			room = titleHeight
		}
	}
	cells := layout(plots, c, room)
	title := style(9.5, ink)
	title.XAlign = text.XCenter
	for n, p := range f.Panels {
		j, i := n/len(plots[0]), n%len(plots[0])
		plots[j][i].Draw(cells[j][i])
		data := plots[j][i].DataCanvas(cells[j][i])
		c.FillText(title, vg.Point{X: (data.Min.X + data.Max.X) / 2, Y: data.Max.Y + 5}, p.Title)
	}
}

// layout places a grid of plots, with room for a title over each, so that the
// data areas have one size and stand in line, whatever their axes need.
// (plot.Align is off by some points, since the room that tick labels need
// depends on the size itself.)
func layout(plots [][]*plot.Plot, c draw.Canvas, room vg.Length) [][]draw.Canvas {
	rows, cols := len(plots), len(plots[0])
	left, right := make([]vg.Length, cols), make([]vg.Length, cols)
	top, bottom := make([]vg.Length, rows), make([]vg.Length, rows)
	for j, row := range plots {
		for i, p := range row {
			if p == nil {
				continue
			}
			d := p.DataCanvas(c)
			left[i], right[i] = max(left[i], d.Min.X-c.Min.X), max(right[i], c.Max.X-d.Max.X)
			top[j], bottom[j] = max(top[j], c.Max.Y-d.Max.Y+room), max(bottom[j], d.Min.Y-c.Min.Y)
		}
	}
	width, height := c.Max.X-c.Min.X, c.Max.Y-c.Min.Y
	for i := range cols {
		width -= left[i] + right[i]
	}
	for j := range rows {
		height -= top[j] + bottom[j]
	}
	width = (width - gap*vg.Length(cols-1)) / vg.Length(cols)
	height = (height - gap*vg.Length(rows-1)) / vg.Length(rows)

	cells := make([][]draw.Canvas, rows)
	y := c.Max.Y
	for j, row := range plots {
		x := c.Min.X
		y -= top[j]
		for i, p := range row {
			x += left[i]
			want := vg.Rectangle{Min: vg.Point{X: x, Y: y - height}, Max: vg.Point{X: x + width, Y: y}}
			cell := draw.Canvas{Canvas: c.Canvas, Rectangle: want}
			if p != nil {
				fit(p, &cell, want)
			}
			cells[j] = append(cells[j], cell)
			x += width + right[i] + gap
		}
		y -= height + bottom[j] + gap
	}
	return cells
}

// fit sets the canvas so that the plot's data area is the wanted rectangle.
func fit(p *plot.Plot, cell *draw.Canvas, want vg.Rectangle) {
	for range 8 { // a contraction: each round leaves a few per cent
		d := p.DataCanvas(*cell)
		cell.Min.X += want.Min.X - d.Min.X
		cell.Min.Y += want.Min.Y - d.Min.Y
		cell.Max.X += want.Max.X - d.Max.X
		cell.Max.Y += want.Max.Y - d.Max.Y
	}
}

// plots turns the panels into a grid of gonum plots; cells past the last panel
// are nil.
func (f *Figure) plots(cols, rows int) ([][]*plot.Plot, error) {
	panels := slices.Clone(f.Panels)
	ranges := make([]box, len(panels))
	for i := range panels {
		if panels[i].Band > 0 { // y = x needs one scale
			panels[i].Y.Log = panels[i].X.Log
		}
		ranges[i] = panels[i].bounds()
	}
	if f.Shared {
		all := ranges[0]
		for _, b := range ranges[1:] {
			all = all.union(b)
		}
		for i := range ranges {
			ranges[i] = all
		}
	}
	grid := make([][]*plot.Plot, rows)
	for j := range grid {
		grid[j] = make([]*plot.Plot, cols)
		for i := range grid[j] {
			n := j*cols + i
			if n >= len(panels) {
				continue
			}
			p, err := panels[n].plot(ranges[n])
			if err != nil {
				return nil, fmt.Errorf("panel %q: %w", panels[n].Title, err)
			}
			if f.Shared && i > 0 {
				p.Y.Label.Text, p.Y.Tick.Marker = "", unlabelled{p.Y.Tick.Marker}
			}
			if f.Shared && n+cols < len(panels) {
				p.X.Label.Text, p.X.Tick.Marker = "", unlabelled{p.X.Tick.Marker}
			}
			grid[j][i] = p
		}
	}
	return grid, nil
}

// box is the range of both axes.
type box struct{ x0, x1, y0, y1 float64 }

func (b box) union(o box) box {
	return box{min(b.x0, o.x0), max(b.x1, o.x1), min(b.y0, o.y0), max(b.y1, o.y1)}
}

// bounds returns the panel's ranges: the axes' own, or the data's widened to a
// round end.
func (p *Panel) bounds() box {
	b := box{math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)}
	for _, s := range p.Series {
		for _, q := range p.drawable(s.Points) {
			b.x0, b.x1 = min(b.x0, q.X), max(b.x1, q.X)
			b.y0, b.y1 = min(b.y0, q.Y), max(b.y1, q.Y)
			if q.High > q.Low {
				b.y0, b.y1 = min(b.y0, q.Low), max(b.y1, q.High)
			}
		}
	}
	if math.IsInf(b.x0, 1) {
		b = box{1, 10, 1, 10} // nothing to draw
	}
	if p.Band > 0 {
		b.x0, b.x1 = min(b.x0, b.y0), max(b.x1, b.y1)
		b.y0, b.y1 = b.x0, b.x1
	}
	b.x0, b.x1 = p.X.widen(b.x0, b.x1, false)
	b.y0, b.y1 = p.Y.widen(b.y0, b.y1, true)
	if p.Band > 0 {
		b = box{min(b.x0, b.y0), max(b.x1, b.y1), min(b.x0, b.y0), max(b.x1, b.y1)}
	}
	return b
}

func (a Axis) widen(low, high float64, headroom bool) (float64, float64) {
	if a.Min != 0 || a.Max != 0 {
		return a.Min, a.Max
	}
	if a.Log {
		return low / 1.06, high * 1.06
	}
	low = min(0, low)
	if headroom || high == low {
		high += 0.06*(high-low) + 1e-9
	}
	return low, high
}

// drawable drops the points and intervals that a logarithmic axis cannot show,
// and those that are no numbers.
func (p *Panel) drawable(in []Point) []Point {
	out := make([]Point, 0, len(in))
	for _, q := range in {
		bad := math.IsNaN(q.X+q.Y) || math.IsInf(q.X+q.Y, 0)
		if bad || p.X.Log && q.X <= 0 || p.Y.Log && q.Y <= 0 {
			continue
		}
		if math.IsNaN(q.Low+q.High) || math.IsInf(q.Low+q.High, 0) || p.Y.Log && q.Low <= 0 {
			q.Low, q.High = 0, 0
		}
		out = append(out, q)
	}
	return out
}

func (p *Panel) plot(b box) (*plot.Plot, error) {
	g := plot.New()
	g.BackgroundColor = nil
	p.X.apply(&g.X, b.x0, b.x1)
	p.Y.apply(&g.Y, b.y0, b.y1)
	if p.Matrix != nil {
		return g, p.Matrix.add(g)
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = pale, pale
	grid.Horizontal.Width, grid.Vertical.Width = 0.5, 0.5
	g.Add(grid)
	if p.Band > 0 {
		for _, k := range []float64{1 - p.Band, 1, 1 + p.Band} {
			l := polyline{plotter.XYs{{X: b.x0, Y: k * b.x0}, {X: b.x1, Y: k * b.x1}}, draw.LineStyle{Color: grey, Width: 0.8}}
			if k != 1 {
				l.sty.Dashes = []vg.Length{3, 3}
			}
			g.Add(l)
		}
	}
	for _, s := range p.Series {
		s.add(g, p.drawable(s.Points))
	}
	g.X.Min, g.X.Max, g.Y.Min, g.Y.Max = b.x0, b.x1, b.y0, b.y1
	return g, nil
}

// polyline is a line that stays within the data area.
type polyline struct {
	xy  plotter.XYs
	sty draw.LineStyle
}

func (l polyline) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	pts := make([]vg.Point, len(l.xy))
	for i, q := range l.xy {
		pts[i] = vg.Point{X: trX(q.X), Y: trY(q.Y)}
	}
	c.StrokeLines(l.sty, c.ClipLinesXY(pts)...)
}

func (a Axis) apply(g *plot.Axis, low, high float64) {
	g.Label.Text = a.Label
	if a.Unit != "" {
		g.Label.Text += " (" + a.Unit + ")"
	}
	g.Label.TextStyle.Font, g.Label.TextStyle.Handler = style(9, ink).Font, fonts
	g.Label.Padding = 2
	g.Tick.Label.Font, g.Tick.Label.Handler = style(8, ink).Font, fonts
	g.Tick.Length, g.Padding = 4, 2
	g.LineStyle.Color, g.Tick.LineStyle.Color = grey, grey
	g.Min, g.Max = low, high
	g.Tick.Marker = linearTicks{}
	if a.Log {
		g.Scale, g.Tick.Marker = plot.LogScale{}, logTicks{}
	}
	if len(a.Names) > 0 {
		g.Tick.Marker = named(a.Names)
	}
}

func (s *Series) line() draw.LineStyle {
	n := s.Style % len(palette)
	return draw.LineStyle{Color: palette[n], Width: 1.4, Dashes: dashes[n]}
}

func (s *Series) glyph() draw.GlyphStyle {
	n := s.Style % len(palette)
	return draw.GlyphStyle{Color: palette[n], Radius: 2.4, Shape: glyphs[n]}
}

func (s *Series) add(g *plot.Plot, pts []Point) {
	xy := make(plotter.XYs, len(pts))
	for i, q := range pts {
		xy[i] = plotter.XY{X: q.X, Y: q.Y}
		if q.High > q.Low {
			bar := plotter.XYs{{X: q.X, Y: q.Low}, {X: q.X, Y: q.High}}
			g.Add(polyline{bar, draw.LineStyle{Color: s.line().Color, Width: 0.7}})
		}
	}
	if s.Kind != Markers {
		g.Add(polyline{xy, s.line()})
	}
	if s.Kind != Line {
		g.Add(&plotter.Scatter{XYs: xy, GlyphStyle: s.glyph()})
	}
}

// add draws the cells, rows from the top.
func (m *Matrix) add(g *plot.Plot) error {
	if len(m.Value) != len(m.Rows) {
		return fmt.Errorf("%d rows of values for %d names", len(m.Value), len(m.Rows))
	}
	up := make([]string, len(m.Rows))
	for i, n := range m.Rows {
		if len(m.Value[i]) != len(m.Cols) {
			return fmt.Errorf("row %s has %d values for %d columns", n, len(m.Value[i]), len(m.Cols))
		}
		up[len(up)-1-i] = n
	}
	g.Add(cells{m})
	g.NominalX(m.Cols...)
	g.NominalY(up...)
	g.X.Tick.Label.Rotation = math.Pi / 2
	g.X.Tick.Label.XAlign, g.X.Tick.Label.YAlign = text.XRight, text.YCenter
	g.X.Min, g.X.Max, g.Y.Min, g.Y.Max = -0.5, float64(len(m.Cols))-0.5, -0.5, float64(len(m.Rows))-0.5
	g.X.Padding, g.Y.Padding = 4, 4
	if max(len(m.Rows), len(m.Cols)) > smallNames {
		g.X.Tick.Label.Font, g.Y.Tick.Label.Font = style(5.5, ink).Font, style(5.5, ink).Font
	}
	return nil
}

// smallNames is the number of rows or columns beyond which names of the usual
// size overlap.
const smallNames = 16

type cells struct{ *Matrix }

func (m cells) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	size := 8.0
	if len(m.Cols) > 12 {
		size = 6.5
	}
	for i := range m.Rows {
		y := float64(len(m.Rows) - 1 - i)
		for j, v := range m.Value[i] {
			if math.IsNaN(v) {
				continue
			}
			x := float64(j)
			r := vg.Rectangle{Min: vg.Point{X: trX(x-0.5) + 0.5, Y: trY(y-0.5) + 0.5}, Max: vg.Point{X: trX(x+0.5) - 0.5, Y: trY(y+0.5) - 0.5}}
			share := m.share(v)
			c.SetColor(shade(share))
			c.Fill(r.Path())
			st := style(size, ink)
			if share > 0.5 {
				st.Color = color.White
			}
			st.XAlign, st.YAlign = text.XCenter, text.YCenter
			// A value wider than its cell is left to the colour and to the data.
			if s := cellText(v); st.Width(s) < r.Size().X {
				c.FillText(st, vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}, s)
			}
			if m.Mark != nil && m.Mark[i][j] {
				c.SetLineStyle(draw.LineStyle{Color: palette[1], Width: 2})
				c.Stroke(r.Path())
			}
		}
	}
}

// cellText writes v with two decimals, and no minus before a zero.
func cellText(v float64) string {
	if math.Abs(v) < 0.005 {
		v = 0
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func (m *Matrix) share(v float64) float64 {
	return min(1, max(0, (v-m.Low)/(m.High-m.Low)))
}

// shade is the matrix scale: near white at 0, deep blue at 1.
func shade(s float64) color.NRGBA {
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + s*(float64(b)-float64(a)))) }
	return color.NRGBA{mix(0xf3, deep.R), mix(0xf6, deep.G), mix(0xfa, deep.B), 0xff}
}

// heading is the title and the lines under it, wrapped to the width.
type heading struct {
	title, sub []string
	height     vg.Length
}

func (r *Result) heading(width vg.Length) heading {
	board := strings.ToUpper(r.Board)
	sub := r.Backend + " " + board + ", " + fmt.Sprintf("seed %d, %s scale", r.Seed, r.Scale)
	if r.Figure.Caption != "" {
		sub += " · " + r.Figure.Caption
	}
	h := heading{title: wrap(r.Paper+", "+r.Title, titleStyle(), width), sub: wrap(sub, style(8.5, grey), width)}
	h.height = vg.Length(15*len(h.title)+12*len(h.sub)) + 4
	return h
}

func titleStyle() text.Style {
	st := style(12, ink)
	st.Font.Weight = 2 // bold
	return st
}

func (h heading) draw(c draw.Canvas) {
	y := c.Max.Y - 11
	for _, l := range h.title {
		c.FillText(titleStyle(), vg.Point{X: c.Min.X, Y: y}, l)
		y -= 15
	}
	y += 2
	for _, l := range h.sub {
		c.FillText(style(8.5, grey), vg.Point{X: c.Min.X, Y: y}, l)
		y -= 12
	}
}

// wrap breaks s at spaces into lines no wider than width.
func wrap(s string, st text.Style, width vg.Length) []string {
	var lines []string
	line := ""
	for _, w := range strings.Fields(s) {
		if line != "" && st.Width(line+" "+w) > width {
			lines, line = append(lines, line), w
			continue
		}
		line = strings.TrimSpace(line + " " + w)
	}
	return append(lines, line)
}

// legend is the key under the panels: entries in rows, and below them the colour
// scale of a matrix.
type legend struct {
	rows   [][]entry
	scale  *Matrix
	height vg.Length
}

type entry struct {
	name  string
	parts []Series
	width vg.Length
}

const (
	thumbWidth = 26
	rowHeight  = 14
)

func (f *Figure) legend(width vg.Length) legend {
	var l legend
	var all []entry
	for _, p := range f.Panels {
		if p.Matrix != nil {
			l.scale = p.Matrix
		}
		for _, s := range p.Series {
			all = addEntry(all, s)
		}
	}
	used := width + 1 // the first entry opens a row
	for _, e := range all {
		e.width = thumbWidth + style(8.5, ink).Width(e.name) + 18
		if used+e.width > width {
			l.rows, used = append(l.rows, nil), 0
		}
		used += e.width
		l.rows[len(l.rows)-1] = append(l.rows[len(l.rows)-1], e)
	}
	l.height = vg.Length(rowHeight * len(l.rows))
	if l.scale != nil {
		l.height += rowHeight
	}
	return l
}

func addEntry(all []entry, s Series) []entry {
	if s.Name == "" {
		return all
	}
	for i := range all {
		if all[i].name != s.Name {
			continue
		}
		for _, q := range all[i].parts {
			if q.Kind == s.Kind && q.Style == s.Style {
				return all
			}
		}
		all[i].parts = append(all[i].parts, s)
		return all
	}
	return append(all, entry{name: s.Name, parts: []Series{s}})
}

func (l legend) draw(c draw.Canvas) {
	y := c.Max.Y - rowHeight/2
	for _, row := range l.rows {
		var total vg.Length
		for _, e := range row {
			total += e.width
		}
		x := c.Min.X + max(0, (c.Max.X-c.Min.X-total)/2)
		for _, e := range row {
			for _, s := range e.parts {
				if s.Kind != Markers {
					c.StrokeLine2(s.line(), x, y, x+thumbWidth-6, y)
				}
				if s.Kind != Line {
					c.DrawGlyph(s.glyph(), vg.Point{X: x + (thumbWidth-6)/2, Y: y})
				}
			}
			st := style(8.5, ink)
			st.YAlign = text.YCenter
			c.FillText(st, vg.Point{X: x + thumbWidth, Y: y}, e.name)
			x += e.width
		}
		y -= rowHeight
	}
	if l.scale != nil {
		l.drawScale(c, y+rowHeight/2)
	}
}

func (l legend) drawScale(c draw.Canvas, top vg.Length) {
	const steps, w = 40, 4
	x0 := (c.Min.X+c.Max.X)/2 - steps*w/2
	for i := range steps {
		x := x0 + vg.Length(i*w)
		r := vg.Rectangle{Min: vg.Point{X: x, Y: top - 10}, Max: vg.Point{X: x + w + 0.5, Y: top}} // no gap between the steps
		c.SetColor(shade((float64(i) + 0.5) / steps))
		c.Fill(r.Path())
	}
	st := style(8.5, ink)
	st.YAlign = text.YCenter
	c.FillText(st, vg.Point{X: x0 + steps*w + 6, Y: top - 5}, fmt.Sprintf("%g: %s", l.scale.High, l.scale.HighText))
	st.XAlign = text.XRight
	c.FillText(st, vg.Point{X: x0 - 6, Y: top - 5}, fmt.Sprintf("%g: %s", l.scale.Low, l.scale.LowText))
}
