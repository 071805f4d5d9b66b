package bluefield_test

import (
	"testing"

	"nicprof/board"
	"nicprof/microbench"
	"nicprof/microbench/bluefield"
	"nicprof/microbench/microbenchtest"
)

func TestConformance(t *testing.T) {
	microbenchtest.Run(t, func(t *testing.T) microbench.Driver {
		b, err := board.Load("bluefield")
		if err != nil {
			t.Fatal(err)
		}
		d, err := bluefield.New(b, microbench.Emulated)
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}
