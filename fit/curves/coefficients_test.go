package curves

import (
	"math"
	"strings"
	"testing"

	"nicprof/internal/fault"
)

// TestCoefficients evaluates two rows of the Cora authors' open release (Vela).
func TestCoefficients(t *testing.T) {
	samples, notes, err := parse(strings.NewReader(`# fitted rooflines
op,width,log2n,a,b,c,knee
erb,128,13,0.03,0.0,0.01,23
ewa,32,23,0.071,1.303,0.015,12
`), "f.csv", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(samples) != 50 || len(notes) != 1 || !strings.Contains(notes[0], "2 curves of fitted coefficients") {
		t.Fatalf("%d samples, notes %q", len(samples), notes)
	}
	ten, last := samples[9], samples[49]
	if got := ten.Program.Accesses[0].String(); got != "emem:read:bulk:128:10:8192:128" || ten.Program.Base != "profiling" {
		t.Errorf("%s on %s", got, ten.Program.Base)
	}
	if math.Abs(ten.Mpps-1/0.13) > 1e-9 {
		t.Errorf("10 accesses: %v Mpps, T = 1/(0.03 + 10·0.01) is %v", ten.Mpps, 1/0.13)
	}
	if got := last.Program.Accesses[0].String(); got != "emem:write:atomic:32:25:8388608:32" {
		t.Errorf("last sample %s", got)
	}
	if want := 2.3; math.Abs(last.Mpps-want) > 0.06 { // published as 2.3
		t.Errorf("25 accesses: %.2f Mpps, published %.1f", last.Mpps, want)
	}
}

func TestCoefficientsRefused(t *testing.T) {
	const header = "op,width,log2n,a,b,c,knee\n"
	for row, want := range map[string]string{
		"xrb,4,0,0.04,7,0.001,13":    `f.csv:2: op is "xrb", expected three letters`,
		"ir,4,0,0.04,7,0.001,13":     `f.csv:2: op is "ir", expected three letters`,
		"irb,6,0,0.04,7,0.001,13":    "6 is not a multiple of 4",
		"irb,4,2.5,0.04,7,0.001,13":  "f.csv:2: log2n is 2.5, expected a whole number",
		"irb,4,64,0.04,7,0.001,13":   "f.csv:2: log2n is 64",
		"irb,4,0,-0.04,7,0.001,13":   "f.csv:2: a is -0.04, expected 0 or more",
		"irb,4,0,0,7,0,13":           "the curve takes no time",
		"irb,4,0,many,7,0.001,13":    "f.csv:2:",
		"irb,4,0,0.04,7,0.001,13,14": "f.csv:2",
		"":                           "no curves below the header",
	} {
		_, _, err := parse(strings.NewReader(header+row+"\n"), "f.csv", nil)
		if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", row, err, want)
		}
	}
}
