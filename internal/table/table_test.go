package table

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"pgregory.net/rapid"
)

func text(t *testing.T, tab *Table, colors bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := tab.Text(&b, colors); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func sample() *Table {
	tab := New("Rates", "T_0_Mpps", "resource", "note")
	tab.Row(15.1234, "emem", Good.Of("fine"))
	tab.Row(0.45, "imem lock", "")
	tab.Row(math.NaN(), "a|b", Bad.Of("two words"))
	return tab
}

func TestText(t *testing.T) {
	got := text(t, sample(), false)
	const want = `Rates
T_0_Mpps  resource   note
──────────────────────────────
   15.12  emem       fine
  0.4500  imem lock
       –  a|b        two words
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestColorsAddOnlyEscapes(t *testing.T) {
	plain, colored := text(t, sample(), false), text(t, sample(), true)
	if !strings.Contains(colored, "\x1b[32mfine\x1b[0m") || !strings.Contains(colored, "\x1b[31mtwo words") {
		t.Errorf("tones are missing in %q", colored)
	}
	var stripped strings.Builder
	for line := range strings.Lines(colored) {
		for {
			before, rest, ok := strings.Cut(line, "\x1b[")
			stripped.WriteString(before)
			if !ok {
				break
			}
			_, line, _ = strings.Cut(rest, "m")
		}
	}
	if stripped.String() != plain {
		t.Errorf("without escapes:\n%q\nplain:\n%q", stripped.String(), plain)
	}
}

func TestMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := sample().Markdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"**Rates**\n\n", "| T_0_Mpps | resource ", `a\|b`, "two words"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	if lines := strings.Split(strings.TrimSpace(b.String()), "\n"); !strings.Contains(lines[3], "-:|") && !strings.Contains(lines[3], "-: |") {
		t.Errorf("numbers are not aligned to the right: %s", lines[3])
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 15.1234: "15.12", 0.45: "0.4500", 1234.5: "1234", 0.00001234: "0.000012",
		-3.14159: "-3.142", 100: "100.0", math.Inf(1): "–",
	} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestNumericColumns(t *testing.T) {
	for cell, want := range map[string]bool{
		"1": true, "-1.5 %": true, "+50%": true, "15.0 to 15.2": true, "12 µs": true, "–": true, "25 Mpps": true,
		"emem": false, "3 of 4 words": false, "4:1": false, "1-2": false,
	} {
		tab := New("", "c")
		tab.Row(cell)
		if got := tab.numeric(0); got != want {
			t.Errorf("%q: numeric is %v", cell, got)
		}
	}
}

// Whatever the cells, no line is wider than the page and no character is lost.
func TestTextFits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(rt, "columns")
		word := rapid.StringMatching(`[a-z:/µ…0-9]{0,60}( [a-z]{1,9}){0,6}`)
		names := make([]string, n)
		for i := range names {
			names[i] = rapid.StringMatching(`[A-Za-z_]{1,12}( [a-z]{1,8})?`).Draw(rt, "name")
		}
		tab := New(word.Draw(rt, "title"), names...)
		var all strings.Builder
		for range rapid.IntRange(1, 4).Draw(rt, "rows") {
			row := make([]any, n)
			for i := range row {
				s := word.Draw(rt, "cell")
				row[i] = s
				all.WriteString(s)
			}
			tab.Row(row...)
		}
		var b bytes.Buffer
		if err := tab.Text(&b, false); err != nil {
			rt.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if w := twwidth.Width(strings.TrimSuffix(line, "\n")); w > Width {
				rt.Fatalf("%d columns: %s", w, line)
			}
		}
		lost := map[rune]int{}
		for _, r := range all.String() {
			lost[r]++
		}
		for _, r := range b.String() {
			lost[r]--
		}
		for r, n := range lost {
			if n > 0 && r != ' ' {
				rt.Fatalf("%d %q lost in\n%s", n, r, b.String())
			}
		}
	})
}

func TestColorsOnlyOnTerminals(t *testing.T) {
	env := func(string) string { return "" }
	if Colors(new(bytes.Buffer), env) {
		t.Error("colours in a buffer")
	}
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if Colors(f, env) {
		t.Error("colours in a file")
	}
}

func TestRowOfWrongLengthPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	New("", "a", "b").Row("only one")
}
