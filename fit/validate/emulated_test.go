package validate_test

import (
	"context"
	"testing"

	"nicprof/board"
	"nicprof/fit/validate"
	"nicprof/microbench"
	_ "nicprof/microbench/nfp"
	"nicprof/model"
)

// TestReferenceModelPredictsTheBoard holds the reference model (make results)
// against random programs measured on the emulated board, within the bounds of
// the validate verb: a change of the emulator or of a rule that the stored model
// does not stand fails here.
func TestReferenceModelPredictsTheBoard(t *testing.T) {
	if testing.Short() {
		t.Skip("measures 200 programs")
	}
	b, err := board.Load("nfp")
	if err != nil {
		t.Fatal(err)
	}
	d, err := microbench.Open(b, microbench.Emulated)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Load("../../results/nfp/model.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := validate.Run(context.Background(), m, d, validate.Options{Programs: 200, Seed: 1, Worst: 5})
	if err != nil {
		t.Fatal(err)
	}
	const mean, p95 = 5, 12
	if err := r.Check(mean, p95); err != nil {
		t.Error(err)
	}
	if r.Median > 1 {
		t.Errorf("median error %.2f %%, it was 0.3", r.Median)
	}
	for _, c := range r.Worst {
		t.Logf("%+.0f %%: %s: %s", c.ErrorPct, c.Program, c.Why)
	}
}
