package nfp_test

import (
	"testing"

	"nicprof/board"
	"nicprof/microbench"
	"nicprof/microbench/microbenchtest"
	"nicprof/microbench/nfp"
)

func open(t testing.TB) microbench.Driver {
	t.Helper()
	b, err := board.Load("nfp")
	if err != nil {
		t.Fatal(err)
	}
	d, err := nfp.New(b, microbench.Emulated)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestConformance(t *testing.T) {
	microbenchtest.Run(t, func(t *testing.T) microbench.Driver { return open(t) })
}
