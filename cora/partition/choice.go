package partition

import (
	"math"
	"slices"
	"sort"
)

// run is an interval of a block's groups in their order of falling volume.
type run struct{ from, to int }

// choice is a placement and the groups on the NIC, as few runs a block.
type choice struct {
	memory []int
	runs   [][]run
	saving float64 // of the objective, against all on the host
}

func newChoice(memory []int) *choice {
	return &choice{memory: slices.Clone(memory), runs: make([][]run, len(memory))}
}

func (c *choice) clone() *choice {
	d := &choice{slices.Clone(c.memory), make([][]run, len(c.runs)), c.saving}
	for b := range c.runs {
		d.runs[b] = slices.Clone(c.runs[b])
	}
	return d
}

// choose is the choice that an assignment is.
func (in *instance) choose(a assignment) *choice {
	c := newChoice(a.memory)
	for b := range in.blocks {
		g := &in.blocks[b]
		for at := 0; at < len(g.order); at++ {
			if !a.on[b][g.order[at]] {
				continue
			}
			from := at
			for at < len(g.order) && a.on[b][g.order[at]] {
				at++
			}
			c.runs[b] = append(c.runs[b], run{from, at})
			c.saving += (g.sum[at] - g.sum[from]) * in.p.Blocks[b].Instructions
		}
	}
	return c
}

// assignment spreads a choice over groups.
func (in *instance) assignment(c *choice) assignment {
	a := in.nothing()
	for b, runs := range c.runs {
		a.memory[b] = c.memory[b]
		for _, r := range runs {
			for _, g := range in.blocks[b].order[r.from:r.to] {
				a.on[b][g] = true
			}
		}
	}
	return a
}

// room says what block b may have in memory m: groups from position first on
// (those before exceed what the NIC gives one group), at most most of them.
type room struct{ first, most int }

// rooms computes the room of every block in every memory.
func (in *instance) rooms() [][]room {
	p := in.p
	out := make([][]room, len(p.Blocks))
	for b := range p.Blocks {
		out[b] = make([]room, len(p.Memories))
		for m := range p.Memories {
			out[b][m] = in.room(b, m)
		}
	}
	return out
}

func (in *instance) room(b, m int) room {
	block, g := &in.p.Blocks[b], &in.blocks[b]
	if block.HostOnly != "" || block.maxGroup(m) < 0 || g.live == 0 {
		return room{}
	}
	entries, bytes := block.perGroup()
	most := int64(g.live)
	if bytes > 0 {
		most = min(most, in.p.Memories[m].Bytes/bytes)
	}
	if block.Table && in.p.TableEntries > 0 {
		most = min(most, in.p.TableEntries/entries)
	}
	most = min(most, block.mostGroups())
	if most == 0 {
		return room{}
	}
	clear(in.use)
	for i := range in.use {
		in.use[i].Memory = Host
	}
	first := sort.Search(g.live, func(i int) bool {
		if g.sorted[i] > block.maxGroup(m)*(1+slack) {
			return false
		}
		share := g.sorted[i] / in.rate
		in.use[b] = Use{m, share, 1, share}
		mpps, _ := in.predict()
		return mpps >= in.rate*(1-slack)
	})
	return room{first, min(int(most), g.live-first)}
}

// load is what a choice takes.
type load struct {
	groups []int
	volume []float64
	bytes  []int64
	table  int64
}

func (in *instance) newLoad() *load {
	return &load{make([]int, len(in.blocks)), make([]float64, len(in.blocks)), make([]int64, len(in.p.Memories)), 0}
}

// add puts n groups of a volume of block b into memory m.
func (l *load) add(in *instance, b, m, n int, volume float64) {
	block := &in.p.Blocks[b]
	entries, bytes := block.perGroup()
	l.groups[b] += n
	l.volume[b] += volume
	l.bytes[m] += int64(n) * bytes
	if block.Table {
		l.table += int64(n) * entries
	}
}

func (in *instance) loadOf(c *choice) *load {
	l := in.newLoad()
	for b, runs := range c.runs {
		for _, r := range runs {
			l.add(in, b, c.memory[b], r.to-r.from, in.blocks[b].sum[r.to]-in.blocks[b].sum[r.from])
		}
	}
	return l
}

// space is how many more groups of block b memories and tables hold.
func (in *instance) space(c *choice, l *load, b int) int {
	block, m := &in.p.Blocks[b], c.memory[b]
	entries, bytes := block.perGroup()
	n := int64(math.MaxInt32)
	if bytes > 0 {
		n = min(n, (in.p.Memories[m].Bytes-l.bytes[m])/bytes)
	}
	if block.Table && in.p.TableEntries > 0 {
		n = min(n, (in.p.TableEntries-l.table)/entries)
	}
	n = min(n, block.mostGroups()-int64(l.groups[b]))
	return int(max(0, n))
}

// holds reports whether memories and tables hold a load.
func (in *instance) holds(l *load) bool {
	for m, used := range l.bytes {
		if used > in.p.Memories[m].Bytes {
			return false
		}
	}
	if in.p.TableEntries > 0 && l.table > in.p.TableEntries {
		return false
	}
	for b, n := range l.groups {
		if int64(n) > in.p.Blocks[b].mostGroups() {
			return false
		}
	}
	return true
}

// rateOf is what the NIC sustains under a load of a choice, Mpps.
func (in *instance) rateOf(c *choice, l *load) float64 {
	for b := range in.use {
		in.use[b] = Use{Memory: Host}
		if l.groups[b] > 0 {
			largest := in.blocks[b].sorted[c.runs[b][0].from]
			in.use[b] = Use{c.memory[b], l.volume[b] / in.rate, l.groups[b], largest / in.rate}
		}
	}
	mpps, _ := in.predict()
	return mpps
}

func (in *instance) sustains(c *choice, l *load) bool {
	return in.rateOf(c, l) >= in.rate*(1-slack)
}

// sustainsWith is sustains with so many Mpps that come back from the host.
func (in *instance) sustainsWith(back float64, c *choice, l *load) bool {
	defer func(before float64) { in.back = before }(in.back)
	in.back = back
	return in.sustains(c, l)
}

// feelsReturns says whether the NIC's rate falls when packets come back from the
// host.
func (in *instance) feelsReturns() bool {
	for b := range in.use {
		in.use[b] = Use{Memory: Host}
	}
	without, _ := in.predict()
	in.back = in.rate
	with, _ := in.predict()
	in.back = 0
	return with < without*(1-slack)
}
