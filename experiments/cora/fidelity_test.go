package cora

import (
	"context"
	"os"
	"strings"
	"testing"

	"nicprof/board"
	"nicprof/experiments"
	"nicprof/microbench"
	_ "nicprof/microbench/nfp"
	"nicprof/report"
)

// TestFidelity holds the emulated NFP against every published rate and prints
// the table that docs/fidelity.md carries.
func TestFidelity(t *testing.T) {
	f, err := experiments.Lookup("cora/fidelity")
	if err != nil {
		t.Fatal(err)
	}
	res, err := f.Run(context.Background(), experiments.Env{Seed: 1, Scale: experiments.Quick, Open: func(name string) (microbench.Driver, error) {
		b, err := board.Load(name)
		if err != nil {
			return nil, err
		}
		return microbench.Open(b, microbench.Emulated)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range res.Claims {
		if c.Verdict != report.Reproduced {
			t.Errorf("%s: %s: measured %.3g %s, expected %s", c.ID, c.Text, *c.Measured, c.Unit, c.Expected())
		}
	}
	table, err := res.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", table)
}

// TestDocsCarryTheStoredTable keeps docs/fidelity.md true to results/.
func TestDocsCarryTheStoredTable(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	_, table, ok := strings.Cut(read("results/cora/fidelity/table.md"), "## Error of throughput")
	if !ok {
		t.Fatal("the stored table has no summary")
	}
	docs := read("docs/fidelity.md")
	rows := 0
	for _, line := range strings.Split(table, "\n") {
		if strings.HasPrefix(line, "## ") {
			break
		}
		if strings.HasPrefix(line, "|") {
			rows++
			if !strings.Contains(docs, line) {
				t.Errorf("docs/fidelity.md lacks %q: run make results and update it", line)
			}
		}
	}
	if rows < 4 {
		t.Errorf("%d rows in the stored summary", rows)
	}
}
