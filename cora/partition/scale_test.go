package partition

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// chainProblem is a program of eight blocks under flows of Zipf(1.1) volumes:
// four tables and arrays by flow, three by fewer identifiers, one sketch.
func chainProblem(flows int) *Problem {
	r := rand.New(rand.NewPCG(uint64(flows), 3))
	p := &Problem{
		Memories:     []Memory{{"imem", 3 << 20}, {"emem", 1 << 30}},
		TableEntries: int64(flows) * 7 / 5, PCIeGbps: 64, TargetMpps: 15,
		Paths: []Path{{Blocks: []int{0, 1, 2, 3, 4, 5, 6, 7}}, {Blocks: []int{0, 3, 4, 7}}},
	}
	linear := &Linear{Resources: []string{"cores", "imem", "emem"}, Base: []float64{1 / 28.0, 0.001, 0.001}}
	for b := range 8 {
		n := flows
		if b >= 4 {
			n = max(1, flows/(1<<(2*(b-3))))
		}
		block := Block{
			Name: fmt.Sprintf("b%d", b), Instructions: float64(2 + b), Groups: n, Partitionable: true,
			EntryBytes: int64(8 << (b % 3)), Table: b < 2, HostNS: 40,
		}
		if b == 7 {
			block.Groups, block.Partitionable, block.Elements = 1, false, 3*4096
		}
		p.Blocks = append(p.Blocks, block)
		linear.Demand = append(linear.Demand, [][]float64{{0.004, 0.009, 0}, {0.006, 0, 0.011}})
	}
	p.Predictor = linear
	groups := make([]int32, 8*flows)
	p.Classes = make([]Class, flows)
	for i := range p.Classes {
		c := &p.Classes[i]
		c.Mpps, c.Bytes, c.Path = math.Pow(float64(1+r.IntN(flows)), -1.1), 256, i%4/3
		at := groups[8*i : 8*i]
		for _, b := range p.Paths[c.Path].Blocks {
			g := int32(i)
			if p.Blocks[b].Groups < flows {
				g = int32(r.IntN(p.Blocks[b].Groups))
			}
			at = append(at, g)
		}
		c.Groups = at
	}
	return p
}

func BenchmarkCora(b *testing.B) {
	for _, flows := range []int{10_000, 100_000, 1_000_000} {
		p := chainProblem(flows)
		b.Run(fmt.Sprint(flows), func(b *testing.B) {
			for b.Loop() {
				plan, err := Solve(p, Cora, Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(100*plan.Gap, "%gap")
				b.ReportMetric(plan.Objective/plan.AllHost, "host")
				if b.N == 1 {
					b.Logf("feasible %v, gap %.4f %%, objective %.4g of %.4g, limits %v, pcie %.1f, capacity %.2f by %s, %d predictions", plan.Feasible, 100*plan.Gap, plan.Objective, plan.AllHost, plan.Limits, plan.ToHostGbps, plan.CapacityMpps, plan.NICLimit, plan.Examined)
				}
			}
		})
	}
}
