package partition

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// verdict is what the checker below finds of a plan.
type verdict struct {
	objective     float64
	toHost, toNIC float64
	back          float64 // Mpps that come back from the host
	broken        []string
}

// check judges a plan from the definitions alone, a packet class at a time. It
// shares no code with the planner.
func check(p *Problem, memory []int, on [][]bool) verdict {
	var v verdict
	breaks := func(f string, a ...any) { v.broken = append(v.broken, fmt.Sprintf(f, a...)) }
	offered := 0.0
	for _, c := range p.Classes {
		offered += c.Mpps
	}
	factor := 1.0
	if p.TargetMpps > 0 {
		factor = p.TargetMpps / offered
	}
	rate := make(map[[2]int]float64) // visits of a group
	for _, c := range p.Classes {
		mpps := c.Mpps * factor
		places := []bool{true} // NIC side of each place the packet passes
		for k, b := range p.Paths[c.Path].Blocks {
			g := int(c.Groups[k])
			rate[[2]int{b, g}] += mpps
			places = append(places, on[b][g])
			if !on[b][g] {
				v.objective += mpps * p.Blocks[b].Instructions
			}
		}
		switch p.Paths[c.Path].End {
		case Wire:
			places = append(places, true)
		case ToHost:
			places = append(places, false)
		}
		for k := 1; k < len(places); k++ {
			gigabits := mpps * 1e6 * c.Bytes * 8 / 1e9
			if places[k-1] && !places[k] {
				v.toHost += gigabits
			}
			if !places[k-1] && places[k] {
				v.toNIC += gigabits
				v.back += mpps
			}
		}
	}
	if p.PCIeGbps > 0 && (v.toHost > p.PCIeGbps*(1+1e-7) || v.toNIC > p.PCIeGbps*(1+1e-7)) {
		breaks("pcie %v %v", v.toHost, v.toNIC)
	}
	bytes, entries := make([]float64, len(p.Memories)), 0.0
	use := make([]Use, len(p.Blocks))
	for b, block := range p.Blocks {
		use[b].Memory = Host
		own := 0.0
		for g, nic := range on[b] {
			if !nic {
				continue
			}
			if block.HostOnly != "" {
				breaks("%s is for the host", block.Name)
			}
			m := memory[b]
			n := 1.0
			if block.EntriesPerGroup > 0 {
				n = float64(block.EntriesPerGroup)
			}
			if !block.Partitionable && float64(block.Elements) > n {
				n = float64(block.Elements)
			}
			own += n
			bytes[m] += n * float64(block.EntryBytes)
			r := rate[[2]int{b, g}]
			if block.MaxGroupMpps != nil {
				if most := block.MaxGroupMpps[m]; most < 0 || most > 0 && r > most*(1+1e-7) {
					breaks("%s group %d: %v over %v", block.Name, g, r, most)
				}
			}
			share := r / (offered * factor)
			use[b] = Use{m, use[b].Share + share, use[b].Groups + 1, max(use[b].Largest, share)}
		}
		if block.MaxEntries > 0 && own > float64(block.MaxEntries) {
			breaks("%s: %v entries", block.Name, own)
		}
		if block.Table {
			entries += own
		}
	}
	for _, set := range p.Together {
		for g := range on[set[0]] {
			places := map[int]bool{} // where packets find group g
			for _, b := range set {
				if rate[[2]int{b, g}] > 0 && on[b][g] {
					places[memory[b]] = true
				} else if rate[[2]int{b, g}] > 0 {
					places[Host] = true
				}
			}
			if len(places) > 1 {
				breaks("group %d of blocks %v apart", g, set)
			}
		}
	}
	for m, used := range bytes {
		if used > float64(p.Memories[m].Bytes) {
			breaks("%s: %v bytes", p.Memories[m].Name, used)
		}
	}
	if p.TableEntries > 0 && entries > float64(p.TableEntries) {
		breaks("%v table entries", entries)
	}
	if mpps, limit, err := p.Predictor.Predict(use, v.back/(offered*factor)); err != nil || mpps < offered*factor*(1-1e-7) {
		breaks("the NIC sustains %v of %v (%s, %v)", mpps, offered*factor, limit, err)
	}
	return v
}

// curved is a performance model that is no Demander: Eq. 2's queueing penalty
// on each memory, over all accesses to it.
type curved struct {
	base  float64
	cost  [][]float64 // by block and memory, µs
	knee  float64
	back  float64 // µs a packet that comes back
	names []string
}

func (c *curved) Predict(use []Use, returns float64) (float64, string, error) {
	most, limit := c.base+returns*c.back, "base"
	for m := range c.names {
		visits, us := 0.0, 0.0
		for b, u := range use {
			if u.Memory == m {
				visits += u.Share
				us += u.Share * c.cost[b][m]
			}
		}
		if visits > 0 {
			if t := c.base + returns*c.back + us*math.Exp(-c.knee/visits); t > most {
				most, limit = t, c.names[m]
			}
		}
	}
	return 1 / most, limit, nil
}

// randomProblem draws a problem with a few blocks whose limits are likely to
// matter: memory, table entries, the NIC's rate, single groups, PCIe.
func randomProblem(r *rand.Rand, blocks, groups, classes int) *Problem {
	p := &Problem{Memories: []Memory{{Name: "imem"}, {Name: "emem"}}}
	if r.IntN(4) == 0 {
		p.Memories = append(p.Memories, Memory{Name: "cls"})
	}
	resources := []string{"cores", "imem", "emem", "cls"}[:1+len(p.Memories)]
	linear := &Linear{Resources: resources, Base: make([]float64, len(resources))}
	linear.Base[0] = 1 / 28.0
	curve := &curved{base: 1 / 28.0, knee: 0.2 + r.Float64()}
	if r.IntN(2) == 0 { // packets that come back cost something
		curve.back = 0.04 * r.Float64()
		linear.Return = make([]float64, len(resources))
		for i := range linear.Return {
			linear.Return[i] = 0.04 * r.Float64()
		}
	}
	total := 0.0
	for _, m := range p.Memories {
		curve.names = append(curve.names, m.Name)
	}
	for b := range blocks {
		n := 1 + r.IntN(groups)
		block := Block{
			Name: fmt.Sprintf("b%d", b), Instructions: float64(1 + r.IntN(8)), Groups: n, Partitionable: true,
			EntryBytes: int64(4 << r.IntN(5)), EntriesPerGroup: int64(r.IntN(3)), Table: r.IntN(2) == 0,
			HostNS: 10 + 50*r.Float64(),
		}
		if r.IntN(4) == 0 {
			block.Partitionable, block.Groups, block.Elements, block.Table = false, 1, int64(1+r.IntN(8)), false
		}
		if r.IntN(12) == 0 {
			block.HostOnly = "needs an extern that the NIC has not"
		}
		if r.IntN(8) == 0 {
			block.MaxEntries = int64(1 + r.IntN(2*groups))
		}
		if r.IntN(3) == 0 {
			for range p.Memories {
				block.MaxGroupMpps = append(block.MaxGroupMpps, []float64{-1, 0, 1, 3}[r.IntN(4)])
			}
		}
		total += float64(block.Groups) * float64(block.EntryBytes) * float64(max(1, block.EntriesPerGroup))
		p.Blocks = append(p.Blocks, block)
		var demand [][]float64
		var cost []float64
		for m := range p.Memories {
			us := make([]float64, len(resources))
			us[0] = 0.03 * r.Float64()
			us[1+m] = 0.08 * r.Float64()
			demand, cost = append(demand, us), append(cost, 0.1*r.Float64())
		}
		linear.Demand = append(linear.Demand, demand)
		curve.cost = append(curve.cost, cost)
	}
	for m := range p.Memories {
		p.Memories[m].Bytes = int64(total * r.Float64() * 0.8)
	}
	if r.IntN(2) == 0 {
		p.TableEntries = int64(1 + r.IntN(blocks*groups))
	}
	p.Predictor = linear
	if r.IntN(3) == 0 {
		p.Predictor = curve
	}
	for range 1 + r.IntN(3) {
		end := End(r.IntN(3))
		p.Paths = append(p.Paths, Path{r.Perm(blocks)[:1+r.IntN(blocks)], end})
	}
	load := 0.0
	for range classes {
		c := Class{Mpps: math.Exp(2 * r.NormFloat64()), Bytes: 64 + 1400*r.Float64(), Path: r.IntN(len(p.Paths))}
		for _, b := range p.Paths[c.Path].Blocks {
			c.Groups = append(c.Groups, int32(r.IntN(p.Blocks[b].Groups)))
		}
		load += c.Mpps * c.Bytes
		p.Classes = append(p.Classes, c)
	}
	p.TargetMpps = 8 + 12*r.Float64()
	if r.IntN(3) == 0 {
		sum := 0.0
		for _, c := range p.Classes {
			sum += c.Mpps
		}
		// between a little more than one crossing of all packets and less
		p.PCIeGbps = load / sum * p.TargetMpps * 8 / 1000 * (0.5 + r.Float64())
	}
	return p
}
