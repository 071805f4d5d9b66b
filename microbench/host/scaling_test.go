package host

import (
	"slices"
	"testing"

	"nicprof/program"
)

// A loop that the compiler deletes costs nothing however often it runs; one
// that does its work costs a fraction of a cycle at least.
func TestDeletedWork(t *testing.T) {
	row := func(op program.Op, few, many float64) scaled {
		return scaled{program.Access{Memory: "l1", Op: op, Mode: program.Bulk}, few, many}
	}
	rows := []scaled{
		row(program.Read, 14, 14+56*0.25), // four a cycle at 1 GHz
		row(program.Write, 14, 14.6),      // noise only
		row(program.Add, 14, 13.5),
	}
	want := []string{"l1 write bulk", "l1 add bulk"}
	if got := deleted(rows); !slices.Equal(got, want) {
		t.Errorf("deleted work found in %v, want %v", got, want)
	}
}
