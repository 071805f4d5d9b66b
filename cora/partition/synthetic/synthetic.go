// Package synthetic draws partition problems of a given size that look like
// the applications of Cora's paper: tables and arrays by flow, arrays by fewer
// identifiers, sketches; Zipf volumes; an NFP's two memories with a linear
// performance model in the place of a fitted one.
package synthetic

import (
	"fmt"
	"math"
	"math/rand/v2"

	"nicprof/cora/partition"
)

// linear is the performance model of n blocks: 28 Mpps bare, and for each visit
// times (µs) on the cores and on its memory such that a NIC with everything in
// one memory sustains about half of what Blocks offers.
func linear(r *rand.Rand, n int) *partition.Linear {
	l := &partition.Linear{
		Resources: []string{"cores", "imem", "emem"},
		Base:      []float64{1 / 28.0, 0.001, 0.001},
	}
	for range n {
		us := float64(1+r.IntN(4)) / float64(n)
		l.Demand = append(l.Demand, [][]float64{
			{0.008 * us, 0.06 * us, 0},
			{0.012 * us, 0, 0.08 * us},
		})
	}
	return l
}

// Blocks draws a problem of n blocks with the given number of groups each, and
// twice as many classes of traffic, of Zipf(0.8) volumes. The memories hold
// the given fraction of the state, the tables two thirds of that.
func Blocks(n, groups int, fit float64, seed uint64) *partition.Problem {
	r := rand.New(rand.NewPCG(seed, uint64(n)<<32|uint64(groups)))
	p := &partition.Problem{TargetMpps: 15, PCIeGbps: 64, HostPacketNS: 200}
	var bytes int64
	order := make([]int, n)
	for b := range n {
		block := partition.Block{
			Name: fmt.Sprintf("b%d", b), Instructions: float64(2 + r.IntN(12)), Groups: groups, Partitionable: true,
			EntryBytes: int64(4 << r.IntN(5)), Table: r.IntN(2) == 0, HostNS: 20 + 60*r.Float64(),
		}
		bytes += block.EntryBytes * int64(groups)
		p.Blocks = append(p.Blocks, block)
		order[b] = b
	}
	p.Memories = []partition.Memory{{Name: "imem", Bytes: int64(fit * float64(bytes) / 3)}, {Name: "emem", Bytes: int64(fit * float64(bytes) * 2 / 3)}}
	p.TableEntries = int64(fit * float64(n*groups) * 2 / 3)
	p.Predictor = linear(r, n)
	p.Paths = []partition.Path{{Blocks: order}, {Blocks: order[:(n+1)/2], End: partition.ToHost}, {Blocks: order[n/2:]}}
	for i := range 2 * groups {
		c := partition.Class{Mpps: math.Pow(float64(1+i), -0.8), Bytes: 64 + 200*r.Float64(), Path: r.IntN(len(p.Paths))}
		for range p.Paths[c.Path].Blocks {
			c.Groups = append(c.Groups, int32(r.IntN(groups)))
		}
		p.Classes = append(p.Classes, c)
	}
	return p
}

// Chain is a program of eight blocks under flows of Zipf volumes: four by flow,
// of which two are tables, three by ever fewer identifiers, one sketch. Only
// five of seven flows have a place in the tables.
func Chain(flows int) *partition.Problem {
	r := rand.New(rand.NewPCG(uint64(flows), 3))
	p := &partition.Problem{
		Memories:     []partition.Memory{{Name: "imem", Bytes: 3 << 20}, {Name: "emem", Bytes: 1 << 30}},
		TableEntries: int64(flows) * 10 / 7, PCIeGbps: 64, TargetMpps: 15, HostPacketNS: 200,
		Paths: []partition.Path{{Blocks: []int{0, 1, 2, 3, 4, 5, 6, 7}}, {Blocks: []int{0, 3, 4, 7}}},
	}
	for b := range 8 {
		block := partition.Block{
			Name: fmt.Sprintf("b%d", b), Instructions: float64(2 + b), Groups: flows, Partitionable: true,
			EntryBytes: int64(8 << (b % 3)), Table: b < 2, HostNS: 40,
		}
		switch {
		case b == 7:
			block.Groups, block.Partitionable, block.Elements = 1, false, 3*4096
		case b >= 4:
			block.Groups = max(1, flows>>(2*(b-3)))
		}
		p.Blocks = append(p.Blocks, block)
	}
	p.Predictor = linear(r, 8)
	groups := make([]int32, 0, 8*flows)
	p.Classes = make([]partition.Class, flows)
	for i := range p.Classes {
		c := &p.Classes[i]
		c.Mpps, c.Bytes, c.Path = math.Pow(float64(1+i), -1.1), 256, r.IntN(len(p.Paths))
		from := len(groups)
		for _, b := range p.Paths[c.Path].Blocks {
			g := i
			if p.Blocks[b].Groups < flows {
				g = r.IntN(p.Blocks[b].Groups)
			}
			groups = append(groups, int32(g))
		}
		c.Groups = groups[from:len(groups):len(groups)]
	}
	return p
}
