package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nicprof/internal/fault"

	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
	"pgregory.net/rapid"
)

func TestVerdicts(t *testing.T) {
	v := Value
	for _, c := range []struct {
		name  string
		claim Claim
		want  Verdict
	}{
		{"nothing published", Claim{Measured: v(3)}, NotPublished},
		{"equal", Claim{Published: v(28), Measured: v(28)}, Reproduced},
		{"no tolerance", Claim{Published: v(28), Measured: v(28.001)}, Differs},
		{"inside", Claim{Published: v(20), Measured: v(20.9), Tolerance: 0.05}, Reproduced},
		{"above", Claim{Published: v(20), Measured: v(21.1), Tolerance: 0.05}, Differs},
		{"below", Claim{Published: v(20), Measured: v(18.9), Tolerance: 0.05}, Differs},
		{"not measured", Claim{Published: v(20)}, Differs},
		{"no number", Claim{Published: v(20), Measured: v(math.NaN()), Tolerance: 1}, Differs},
		{"in the range", Claim{Published: v(5), PublishedHigh: v(10), Measured: v(8.1)}, Reproduced},
		{"over the range", Claim{Published: v(5), PublishedHigh: v(10), Measured: v(10.1)}, Differs},
		{"range with tolerance", Claim{Published: v(5), PublishedHigh: v(10), Measured: v(10.9), Tolerance: 0.1}, Reproduced},
		{"at most, far below", Claim{Published: v(4.41), Bound: AtMost, Measured: v(0.1)}, Reproduced},
		{"at most, above", Claim{Published: v(4.41), Bound: AtMost, Measured: v(4.5)}, Differs},
		{"at least, far above", Claim{Published: v(5), Bound: AtLeast, Measured: v(50)}, Reproduced},
		{"at least, below", Claim{Published: v(5), Bound: AtLeast, Measured: v(4.9)}, Differs},
		{"negative", Claim{Published: v(-10), Measured: v(-10.4), Tolerance: 0.05}, Reproduced},
	} {
		if got := c.claim.Judge(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestDataKeepsSixDigits(t *testing.T) {
	var d Data
	d.Columns = []string{"a", "b", "c", "d"}
	d.Add("x,y", 12.3456789, 3, math.NaN())
	got, err := d.CSV()
	if want := "a,b,c,d\n\"x,y\",12.3457,3,\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// sample is a result with every kind of panel content.
func sample() *Result {
	var curve, points []Point
	for i := 1; i <= 25; i++ {
		x := float64(i)
		y := 1 / (0.04 + 0.005*math.Exp(-10/x)*x)
		curve = append(curve, Point{X: x, Y: y, Low: y * 0.97, High: y * 1.03})
		if i%5 == 0 {
			points = append(points, Point{X: x, Y: y * 1.05})
		}
	}
	r := &Result{
		ID: "cora/sample", Paper: "Cora", Title: "a curve | and its points", Backend: "emulated", Board: "nfp", Seed: 1, Scale: "quick",
		Claims: []Claim{
			{ID: "peak", Text: "forwarding peak", Published: Value(25), Measured: Value(24.6), Unit: "Mpps", Tolerance: 0.05, Source: "Cora, Fig. 7(a)"},
			{ID: "error", Text: "model error", Published: Value(4.41), Bound: AtMost, Measured: Value(6), Unit: "%", Reason: "the curve <jumps>"},
			{ID: "hidden", Text: "not in the paper", Measured: Value(1), Unit: "Mpps"},
		},
		Figure: Figure{Caption: "lines: emulated; markers: published", Panels: []Panel{{
			X: Axis{Label: "accesses a packet", Log: true}, Y: Axis{Label: "throughput", Unit: "Mpps"},
			Series: []Series{{Name: "32 B", Points: curve}, {Name: "32 B", Kind: Markers, Points: points}, {Name: "64 B", Style: 1, Kind: LineMarkers, Points: points}},
		}}},
		Notes: []string{"a note"},
	}
	r.Data.Columns = []string{"intensity", "mpps"}
	for _, p := range curve {
		r.Data.Add(p.X, p.Y)
	}
	return r
}

func matrixSample() *Result {
	r := sample()
	n := math.NaN()
	r.Figure = Figure{Panels: []Panel{{Matrix: &Matrix{
		Rows: []string{"irb", "iwb", "era"}, Cols: []string{"irb", "iwb", "era"},
		Value: [][]float64{{1, 0.9, 0.02}, {n, 0.5, 0.1}, {n, n, 1}},
		Mark:  [][]bool{{false, false, true}, {false, false, false}, {false, false, false}},
		High:  1, LowText: "disjoint", HighText: "shared",
	}}}}
	return r
}

func gridSample() *Result {
	r := sample()
	p := r.Figure.Panels[0]
	p.X.Log, p.Title = false, "IMEM read bulk"
	r.Figure.Panels = []Panel{p, p, p, p, p}
	r.Figure.Columns, r.Figure.Shared = 3, true
	return r
}

func bandSample() *Result {
	r := sample()
	s := Series{Name: "mixes", Kind: Markers}
	for i := 1; i < 20; i++ {
		s.Points = append(s.Points, Point{X: float64(i), Y: float64(i) * (0.9 + 0.01*float64(i))})
	}
	r.Figure.Panels = []Panel{{Band: 0.05, X: Axis{Label: "measured", Unit: "Mpps", Log: true}, Y: Axis{Label: "predicted", Unit: "Mpps", Log: true}, Series: []Series{s}}}
	return r
}

func TestFiguresAreWellFormedStableAndSayTheirBackend(t *testing.T) {
	for name, build := range map[string]func() *Result{"curve": sample, "matrix": matrixSample, "grid": gridSample, "band": bandSample} {
		svg, err := build().SVG()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, _ := build().SVG()
		if !bytes.Equal(svg, again) {
			t.Errorf("%s: two drawings of one result differ", name)
		}
		if !bytes.Contains(svg, []byte("emulated NFP")) {
			t.Errorf("%s: the picture does not say that it is emulated", name)
		}
		if bytes.Contains(svg, []byte("Serif")) || bytes.Contains(svg, []byte("NaN")) {
			t.Errorf("%s: serif font or NaN in the picture", name)
		}
		dec := xml.NewDecoder(bytes.NewReader(svg))
		for {
			if _, err := dec.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: not XML: %v", name, err)
			}
		}
		if dir := os.Getenv("REPORT_SVG_DIR"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, name+".svg"), svg, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestDataAreasStandInLine(t *testing.T) {
	r := gridSample()
	for i := range r.Figure.Panels {
		r.Figure.Panels[i].X.Log = true
	}
	plots, err := r.Figure.plots(3, 2)
	if err != nil {
		t.Fatal(err)
	}
	c := draw.New(vgsvg.New(600, 400))
	cells := layout(plots, c, titleHeight)
	first := plots[0][0].DataCanvas(cells[0][0])
	for j, row := range plots {
		for i, p := range row {
			if p == nil {
				continue
			}
			d := p.DataCanvas(cells[j][i])
			if size, want := d.Size(), first.Size(); math.Abs(float64(size.X-want.X)) > 0.01 || math.Abs(float64(size.Y-want.Y)) > 0.01 {
				t.Errorf("panel %d,%d has a data area of %v, the first of %v", j, i, size, want)
			}
			if row0 := plots[j][0].DataCanvas(cells[j][0]); math.Abs(float64(d.Min.Y-row0.Min.Y)) > 0.01 {
				t.Errorf("panel %d,%d begins at %v, its row at %v", j, i, d.Min.Y, row0.Min.Y)
			}
			if d.Max.X > c.Max.X || d.Min.Y < c.Min.Y {
				t.Errorf("panel %d,%d is outside the canvas", j, i)
			}
		}
	}
}

func TestFigureErrors(t *testing.T) {
	r := sample()
	r.Figure.Panels = nil
	if _, err := r.SVG(); err == nil {
		t.Error("a figure without panels was drawn")
	}
	r = matrixSample()
	r.Figure.Panels[0].Matrix.Value = r.Figure.Panels[0].Matrix.Value[:2]
	if _, err := r.SVG(); err == nil {
		t.Error("a matrix with a missing row was drawn")
	}
	r = matrixSample()
	r.Figure.Panels[0].Matrix.Value[1] = []float64{1}
	if _, err := r.SVG(); err == nil {
		t.Error("a matrix with a short row was drawn")
	}
}

func TestDrawingSurvivesAnyData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		num := rapid.OneOf(rapid.Float64Range(-1e6, 1e6), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), 1e-12}))
		r := sample()
		p := &r.Figure.Panels[0]
		p.X.Log, p.Y.Log = rapid.Bool().Draw(t, "logx"), rapid.Bool().Draw(t, "logy")
		p.Band = rapid.SampledFrom([]float64{0, 0.05}).Draw(t, "band")
		p.Series = nil
		for range rapid.IntRange(0, 3).Draw(t, "series") {
			s := Series{Name: "s", Kind: Kind(rapid.IntRange(0, 2).Draw(t, "kind")), Style: rapid.IntRange(0, 20).Draw(t, "style")}
			for range rapid.IntRange(0, 5).Draw(t, "points") {
				s.Points = append(s.Points, Point{num.Draw(t, "x"), num.Draw(t, "y"), num.Draw(t, "low"), num.Draw(t, "high")})
			}
			p.Series = append(p.Series, s)
		}
		if _, err := r.SVG(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLogTicks(t *testing.T) {
	var labels []string
	for _, k := range (logTicks{}).Ticks(0.5, 100) {
		labels = append(labels, k.Label)
	}
	if got := strings.Join(labels, " "); got != "0.5 1 2 5 10 20 50 100" {
		t.Errorf("ticks %s", got)
	}
	if got := (logTicks{}).Ticks(0.001, 100); got[0].Label != "0.001" || got[1].Label != "" {
		t.Errorf("over three decades the ticks between powers of ten have labels: %v", got[:2])
	}
	for _, r := range [][2]float64{{0, 5}, {-1, 1}, {5, 5}, {5, 1}} {
		if got := (logTicks{}).Ticks(r[0], r[1]); got != nil {
			t.Errorf("range %v gave %v", r, got)
		}
	}
}

func TestLinearTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(-1e4, 1e4).Draw(t, "low")
		high := low + math.Exp(rapid.Float64Range(-5, 10).Draw(t, "span"))
		ticks := (linearTicks{}).Ticks(low, high)
		if len(ticks) < 4 || len(ticks) > 11 {
			t.Fatalf("%d ticks on %v..%v", len(ticks), low, high)
		}
		for i, k := range ticks {
			if k.Value < low-1e-6*(high-low) || k.Value > high+1e-6*(high-low) {
				t.Fatalf("tick %v outside %v..%v", k.Value, low, high)
			}
			if strings.HasPrefix(k.Label, "-0") && k.Value == 0 {
				t.Fatalf("zero is labelled %s", k.Label)
			}
			if i > 0 && k.Label == ticks[i-1].Label {
				t.Fatalf("two ticks are labelled %s", k.Label)
			}
		}
	})
}

func TestWriteAndRead(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, other} {
		if err := Write(d, sample()); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{DataFile, FigureFile, TableFile, JSONFile} {
		a, err := os.ReadFile(filepath.Join(dir, "cora", "sample", f))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := os.ReadFile(filepath.Join(other, "cora", "sample", f))
		if !bytes.Equal(a, b) || len(a) == 0 {
			t.Errorf("%s: the same result gave other bytes, or none", f)
		}
	}
	got, err := Read(dir, "cora/sample")
	if err != nil {
		t.Fatal(err)
	}
	var verdicts []Verdict
	for _, c := range got.Claims {
		verdicts = append(verdicts, c.Verdict)
	}
	if len(verdicts) != 3 || verdicts[0] != Reproduced || verdicts[1] != Differs || verdicts[2] != NotPublished {
		t.Errorf("verdicts read back: %v", verdicts)
	}
}

func TestFigureJSONShape(t *testing.T) {
	r := sample()
	r.Settle()
	doc, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(doc, &m); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"id", "paper", "title", "backend", "seed", "scale", "claims"} {
		if _, ok := m[k]; !ok {
			t.Errorf("figure.json has no %q", k)
		}
	}
	claim := m["claims"].([]any)[2].(map[string]any)
	for _, k := range []string{"id", "text", "published", "measured", "unit", "tolerance", "verdict", "reason"} {
		if _, ok := claim[k]; !ok {
			t.Errorf("a claim has no %q", k)
		}
	}
	if claim["published"] != nil || claim["verdict"] != "not published" {
		t.Errorf("unpublished claim: %v", claim)
	}
}

func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir, "cora/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing figure: %v", err)
	}
	path := filepath.Join(dir, "cora", "sample")
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, doc := range []string{`{"id":"x","colour":1}`, `{"id":`, ``} {
		if err := os.WriteFile(filepath.Join(path, JSONFile), []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Read(dir, "cora/sample")
		if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), JSONFile) {
			t.Errorf("%q: %v", doc, err)
		}
	}
}

func TestWriteIntoAFileIsAnInputError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, sample()); fault.KindOf(err) != fault.Input {
		t.Errorf("got %v", err)
	}
}

func TestWriteRefusesNaNAndRaggedData(t *testing.T) {
	r := sample()
	r.Claims[0].Measured = Value(math.NaN())
	if err := Write(t.TempDir(), r); err == nil {
		t.Error("NaN went into figure.json")
	}
	r = sample()
	r.Tables = []Table{{Title: "t", Columns: []string{"a", "b"}, Rows: [][]string{{"1"}}}}
	if err := Write(t.TempDir(), r); err == nil {
		t.Error("a ragged table was written")
	}
	r = sample()
	r.Data.Rows[3] = []string{"1"}
	if err := Write(t.TempDir(), r); err == nil {
		t.Error("a ragged data.csv was written")
	}
}

func TestMarkdown(t *testing.T) {
	r := sample()
	r.Settle()
	doc, err := r.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	md := strings.Join(strings.Fields(string(doc)), " ")
	for _, want := range []string{
		"# cora/sample: a curve", "backend emulated", "| forwarding peak | 25.00 | 24.60 | Mpps | ±5 % | reproduced |",
		"at most 4.410", "the curve <jumps>", "not published", "- a note",
	} {
		if !strings.Contains(md, want) {
			t.Errorf("table.md lacks %q:\n%s", want, md)
		}
	}
}

func FuzzRead(f *testing.F) {
	r := sample()
	r.Settle()
	doc, err := r.JSON()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(doc)
	f.Add([]byte(`{"claims":[{"published":null}]}`))
	f.Add([]byte("{"))
	dir := f.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "x"), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if err := os.WriteFile(filepath.Join(dir, "x", JSONFile), doc, 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := Read(dir, "x")
		if err != nil {
			if fault.KindOf(err) != fault.Input {
				t.Fatal(err)
			}
			return
		}
		got.Settle()
		if _, err := got.Markdown(); err != nil {
			t.Fatal(err)
		}
	})
}
