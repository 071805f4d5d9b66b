package partition

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"nicprof/internal/fault"
)

// A plan names what keeps more from the NIC, and what it breaks.
func TestLimits(t *testing.T) {
	base := func() *Problem {
		p := &Problem{
			Blocks:   []Block{{Name: "nat", Instructions: 1, EntryBytes: 8, Partitionable: true, Table: true}},
			Memories: []Memory{{"emem", 1 << 20}}, Predictor: oneResource(1, 100),
		}
		flows(p, 4, 3, 2, 1)
		return p
	}
	for _, x := range []struct {
		limit   string
		spoil   func(*Problem)
		onNIC   int
		dropped float64
		broken  string
	}{
		{"", func(*Problem) {}, 4, 0, ""},
		{"emem capacity", func(p *Problem) { p.Memories[0].Bytes = 17 }, 2, 0, ""},
		{"table entries", func(p *Problem) { p.TableEntries = 3 }, 3, 0, ""},
		{"table entries", func(p *Problem) { p.TableEntries, p.Blocks[0].EntriesPerGroup = 3, 2 }, 1, 0, ""},
		{"nat entries", func(p *Problem) { p.Blocks[0].MaxEntries = 1 }, 1, 0, ""},
		{"nic throughput: emem", func(p *Problem) { p.Predictor = oneResource(1, 9) }, 3, 0, ""},
		{"nat group rate", func(p *Problem) { p.Blocks[0].MaxGroupMpps = []float64{2} }, 2, 0, ""},
		{"nat needs a multiplier", func(p *Problem) { p.Blocks[0].HostOnly = "needs a multiplier" }, 0, 0, ""},
		// 10 Mpps of 1000 B are 80 Gb/s; one flow fits, 48 Gb/s are left
		{"pcie", func(p *Problem) {
			p.PCIeGbps, p.TableEntries = 40, 1
			for i := range p.Classes {
				p.Classes[i].Bytes = 1000
			}
		}, 1, 6 * (1 - 40.0/48), "pcie"},
		// less than the bare packets
		{"nic throughput: io", func(p *Problem) {
			p.Predictor = &Linear{Resources: []string{"io"}, Base: []float64{1 / 8.0}, Demand: [][][]float64{{{0}}}}
		}, 0, 2, "nic throughput"},
	} {
		p := base()
		x.spoil(p)
		for _, s := range []Strategy{Cora, Exact} {
			plan, err := Solve(p, s, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if plan.Blocks[0].Groups != x.onNIC && x.broken == "" {
				t.Errorf("%s, %s: %d groups on the NIC, expected %d", s, x.limit, plan.Blocks[0].Groups, x.onNIC)
			}
			if x.limit != "" && !slices.Contains(plan.Limits, x.limit) || x.limit == "" && len(plan.Limits) > 0 {
				t.Errorf("%s: limits %q, expected %q", s, plan.Limits, x.limit)
			}
			if d := plan.DroppedMpps - x.dropped; d > 1e-9 || d < -1e-9 || plan.Feasible != (x.broken == "") ||
				strings.Join(plan.Broken, ", ") != x.broken {
				t.Errorf("%s, %s: %v Mpps dropped, breaks %q; expected %v, %q", s, x.limit, plan.DroppedMpps, plan.Broken, x.dropped, x.broken)
			}
		}
	}
}

// state takes what it can hold, and drops what the NIC then does not sustain.
func TestStateOverloads(t *testing.T) {
	p := &Problem{
		Blocks:   []Block{{Name: "nat", Instructions: 1, EntryBytes: 8, Partitionable: true}},
		Memories: []Memory{{"emem", 1 << 20}}, Predictor: oneResource(1, 4),
	}
	flows(p, 4, 3, 2, 1)
	plans, err := SolveAll(p, Options{}, State, Cora)
	if err != nil {
		t.Fatal(err)
	}
	if s := plans[0]; s.Feasible || s.DroppedMpps != 6 || s.Objective != 0 {
		t.Errorf("state: feasible %v, %v Mpps dropped, %v left; expected 6 of 10 dropped", s.Feasible, s.DroppedMpps, s.Objective)
	}
	if c := plans[1]; !c.Feasible || c.DroppedMpps != 0 || c.Objective != 6 {
		t.Errorf("cora: feasible %v, %v Mpps dropped, %v left; expected 6 left", c.Feasible, c.DroppedMpps, c.Objective)
	}
}

// A counter that all flows of one server share takes them along: flow moves
// both or none, cora evicts table entries only.
func TestSharedCounterMigration(t *testing.T) {
	p := &Problem{
		Blocks: []Block{
			{Name: "nat", Instructions: 4, Groups: 4, EntryBytes: 8, Partitionable: true, Table: true},
			{Name: "load", Instructions: 3, Groups: 2, EntryBytes: 4, Partitionable: true},
		},
		Memories: []Memory{{"emem", 1 << 20}}, Predictor: oneResource(2, 1000), TableEntries: 3,
		Paths: []Path{{Blocks: []int{0, 1}}},
	}
	for f, mpps := range []float64{5, 1, 3, 2} {
		p.Classes = append(p.Classes, Class{Mpps: mpps, Bytes: 64, Groups: []int32{int32(f), int32(f / 2)}})
	}
	plans, err := SolveAll(p, Options{}, Flow, Cora)
	if err != nil {
		t.Fatal(err)
	}
	// one server's two flows fit; the other's two need four entries
	if f := plans[0]; f.Objective != (3+2)*(4+3) {
		t.Errorf("flow leaves %v, expected the second server's flows whole", f.Objective)
	}
	if c := plans[1]; c.Objective != 1*4 || c.Blocks[1].Groups != 2 {
		t.Errorf("cora leaves %v and %d counters on the NIC, expected the smallest entry alone on the host", c.Objective, c.Blocks[1].Groups)
	}
}

func TestWriteLPNeedsALinearModel(t *testing.T) {
	p := &Problem{Blocks: []Block{{Name: "nat", Partitionable: true}}, Memories: []Memory{{"emem", 8}},
		Predictor: &curved{base: 1, cost: [][]float64{{1}}, names: []string{"emem"}}}
	flows(p, 1)
	if err := WriteLP(new(bytes.Buffer), p); fault.KindOf(err) != fault.Input {
		t.Errorf("a curved model was written as a linear program: %v", err)
	}
	p.Predictor = oneResource(1, 10)
	var b bytes.Buffer
	if err := WriteLP(&b, p); err != nil || !strings.Contains(b.String(), "x_0_0_0 - y_0_0 <= 0") {
		t.Errorf("%v: %s", err, &b)
	}
}

// A plan that breaks a limit says with how much of it, or at which rate, it would
// hold; at that rate it does.
func TestNeeds(t *testing.T) {
	p := &Problem{
		Blocks:   []Block{{Name: "nat", Instructions: 1, EntryBytes: 8, Partitionable: true, Table: true}},
		Memories: []Memory{{"emem", 1 << 20}}, Predictor: oneResource(1, 4),
	}
	flows(p, 4, 3, 2, 1)
	all := [][]bool{{true, true, true, true}}
	judge := func() *Plan {
		plan, err := Evaluate(p, []int{0}, all)
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	if plan := judge(); plan.Feasible || !slices.Equal(plan.Needs, []Need{{"rate", 10, 4, "Mpps"}}) {
		t.Errorf("feasible %v, needs %v; expected 4 Mpps", plan.Feasible, plan.Needs)
	}
	p.TargetMpps = 4
	if plan := judge(); !plan.Feasible || len(plan.Needs) > 0 {
		t.Errorf("at the rate that it needs: breaks %v, needs %v", plan.Broken, plan.Needs)
	}
	p.Memories[0].Bytes, p.TableEntries = 24, 2
	want := []Need{{"emem capacity", 24, 32, "bytes"}, {"table entries", 2, 4, "entries"}}
	if plan := judge(); plan.Feasible || !slices.Equal(plan.Needs, want) {
		t.Errorf("feasible %v, needs %v; expected %v", plan.Feasible, plan.Needs, want)
	}
	p.Memories[0].Bytes, p.TableEntries = 32, 4
	if plan := judge(); !plan.Feasible {
		t.Errorf("with what it needs: breaks %v", plan.Broken)
	}
}

// A packet that comes back from the host is forwarded twice: what that costs the
// NIC lowers its rate, and a plan leaves room for it.
func TestReturnsCostRate(t *testing.T) {
	p := &Problem{
		Blocks:   []Block{{Name: "nat", Instructions: 1, EntryBytes: 8, Partitionable: true}},
		Memories: []Memory{{"emem", 16}},
		Predictor: &Linear{Resources: []string{"cores"}, Base: []float64{0.05}, Return: []float64{0.05},
			Demand: [][][]float64{{{0.01}}}},
	}
	flows(p, 4, 3, 2, 1)
	for _, x := range []struct {
		onNIC int
		mpps  float64 // 1 / (0.05 + 0.05 of what comes back + 0.01 of the visits)
	}{{0, 1 / 0.1}, {1, 1 / (0.05 + 0.05*0.6 + 0.01*0.4)}, {4, 1 / 0.06}} {
		on := []bool{x.onNIC > 0, x.onNIC > 1, x.onNIC > 2, x.onNIC > 3}
		plan, err := Evaluate(p, []int{0}, [][]bool{on})
		if err != nil {
			t.Fatal(err)
		}
		if d := plan.CapacityMpps/x.mpps - 1; d > 1e-9 || d < -1e-9 {
			t.Errorf("%d groups on the NIC: %v Mpps, expected %v", x.onNIC, plan.CapacityMpps, x.mpps)
		}
	}
	// Two entries fit. At 12 Mpps the NIC takes back 3.6 of them, not all 12.
	p.TargetMpps = 12
	for _, s := range []Strategy{Cora, Exact} {
		plan, err := Solve(p, s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !plan.Feasible || plan.Blocks[0].Groups != 2 || plan.NICMpps < 8.3 {
			t.Errorf("%s: feasible %v with %d groups, %v Mpps on the NIC alone", s, plan.Feasible, plan.Blocks[0].Groups, plan.NICMpps)
		}
	}
}
