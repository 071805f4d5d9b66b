package main

import (
	"strings"
	"testing"
)

// A user who had nothing in a stretch has it in his mean, and at the end.
func TestSharesTable(t *testing.T) {
	d := simulated{samples: 4, lastUS: 40, Shares: []simulatedShare{
		{10, "u", "ingress", 0.4}, {20, "u", "ingress", 0.2}, {40, "v", "ingress", 0.8},
	}}
	var out strings.Builder
	if err := sharesTable(&d).Text(&out, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"u", "15.0", "40.0", "0.0"}, {"v", "20.0", "80.0", "80.0"}} {
		found := false
		for line := range strings.Lines(out.String()) {
			f := strings.Fields(strings.ReplaceAll(line, "%", ""))
			found = found || len(f) == 5 && f[0] == want[0] && f[2] == want[1] && f[3] == want[2] && f[4] == want[3]
		}
		if !found {
			t.Errorf("no line %v in\n%s", want, out.String())
		}
	}
}
