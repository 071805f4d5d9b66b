package partition

import (
	"math"
	"testing"
)

// oneResource is a NIC that sustains rate Mpps when every packet takes one
// visit of cost 1 of each block.
func oneResource(blocks int, rate float64) *Linear {
	l := &Linear{Resources: []string{"emem"}, Base: []float64{0}}
	for range blocks {
		l.Demand = append(l.Demand, [][]float64{{1 / rate}})
	}
	return l
}

// flows are classes with their own group in every block.
func flows(p *Problem, rates ...float64) {
	var order []int
	for b := range p.Blocks {
		order = append(order, b)
		p.Blocks[b].Groups = len(rates)
	}
	p.Paths = []Path{{Blocks: order}}
	for g, r := range rates {
		c := Class{Mpps: r, Bytes: 64}
		for range order {
			c.Groups = append(c.Groups, int32(g))
		}
		p.Classes = append(p.Classes, c)
	}
}

// The paper says of its two orderings that they only leave out plans that are
// strictly worse. Three problems say otherwise; the repair solves each.
func TestOrderingLosesPlans(t *testing.T) {
	// Local ordering: the NIC sustains 10 Mpps of the block. The flow of 6 is
	// first, no flow of 5 fits beside it; both flows of 5 would have.
	local := &Problem{
		Blocks:   []Block{{Name: "nat", Instructions: 1, EntryBytes: 8, Partitionable: true}},
		Memories: []Memory{{"emem", 1 << 20}}, Predictor: oneResource(1, 10),
	}
	flows(local, 6, 5, 5)

	// The first limit ends it: after the flow of 6 comes one of 5 that the
	// NIC has no rate for, and then ten of 0.3 that it would have.
	stop := &Problem{
		Blocks:   []Block{{Name: "nat", Instructions: 1, EntryBytes: 8, Partitionable: true}},
		Memories: []Memory{{"emem", 1 << 20}}, Predictor: oneResource(1, 10),
	}
	flows(stop, 6, 5, .3, .3, .3, .3, .3, .3, .3, .3, .3, .3)

	// Global ordering: volume times instructions does not see what memory an
	// entry takes. Keys of 128 bytes come before counters of 4.
	global := &Problem{
		Blocks: []Block{
			{Name: "keys", Instructions: 3, EntryBytes: 128, Partitionable: true},
			{Name: "counters", Instructions: 2, EntryBytes: 4, Partitionable: true},
		},
		Memories: []Memory{{"imem", 256}}, Predictor: oneResource(2, 1e6),
	}
	flows(global, 9, 8, 7, 7, 6, 6, 6, 6)

	for _, x := range []struct {
		name          string
		p             *Problem
		printed, best float64
	}{
		{"local ordering", local, 10, 6},
		{"first limit", stop, 8, 5},
		// as printed: all counters alone, or two keys alone, or one key and the
		// counters before the second key; best: a key and all counters
		{"global ordering", global, math.NaN(), 3 * (55 - 9)},
	} {
		printed, err := Solve(x.p, Cora, Options{NoRepair: true})
		if err != nil {
			t.Fatal(err)
		}
		repaired, err := Solve(x.p, Cora, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !printed.Feasible || !repaired.Feasible {
			t.Errorf("%s: not feasible: %v %v", x.name, printed.Broken, repaired.Broken)
		}
		if !math.IsNaN(x.printed) && math.Abs(printed.Objective-x.printed) > 1e-9 {
			t.Errorf("%s: as printed %v, expected %v", x.name, printed.Objective, x.printed)
		}
		if math.Abs(repaired.Objective-x.best) > 1e-9 {
			t.Errorf("%s: repaired %v, expected %v", x.name, repaired.Objective, x.best)
		}
		if printed.Objective <= repaired.Objective {
			t.Errorf("%s: nothing is lost: %v, %v", x.name, printed.Objective, repaired.Objective)
		}
		t.Logf("%s: as printed %v, repaired %v", x.name, printed.Objective, repaired.Objective)
	}
}
