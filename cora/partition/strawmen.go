package partition

import (
	"cmp"
	"slices"
	"sort"
)

// byDeclaration places whole blocks as their declarations ask, whatever the
// traffic: the largest first, each into the memory with most bytes left. It
// reports whether all fit; those that do not lie in the memory that would have
// been theirs.
func (in *instance) byDeclaration(blocks []int) (memory []int, fit bool) {
	memory, fit = make([]int, len(in.blocks)), true
	for b := range memory {
		memory[b] = Host
	}
	left := make([]int64, len(in.p.Memories))
	for m := range left {
		left[m] = in.p.Memories[m].Bytes
	}
	order := slices.Clone(blocks)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(in.wants(b), in.wants(a)) })
	for _, b := range order {
		best := Host
		for m := range left {
			if in.p.Blocks[b].maxGroup(m) >= 0 && (best == Host || left[m] > left[best]) {
				best = m
			}
		}
		if best == Host {
			fit = false
			continue
		}
		memory[b] = best
		left[best] -= in.wants(b)
		fit = fit && left[best] >= 0
	}
	return memory, fit
}

// wants is the memory of a whole block: as declared, or for all its groups
// where that is more.
func (in *instance) wants(b int) int64 {
	_, declared := in.p.Blocks[b].declared()
	_, each := in.p.Blocks[b].perGroup()
	return max(declared, each*int64(in.p.Blocks[b].Groups))
}

// state is Gallium's rule: as many blocks as the NIC supports and holds, each
// whole and for all traffic, smallest first. It asks no performance model, so
// its plan may ask more of the NIC than it sustains.
func (in *instance) state() assignment {
	var order, chosen []int
	for b := range in.blocks {
		if in.p.Blocks[b].HostOnly == "" {
			order = append(order, b)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(in.wants(a), in.wants(b)) })
	var table int64
	memory, _ := in.byDeclaration(nil)
	for _, b := range order {
		block := &in.p.Blocks[b]
		entries, _ := block.declared()
		entries = max(entries, int64(block.Groups)*block.entries())
		if int64(block.Groups) > block.mostGroups() || block.each == nil && block.MaxEntries > 0 && entries > block.MaxEntries ||
			block.Table && in.p.TableEntries > 0 && table+entries > in.p.TableEntries {
			continue
		}
		placed, fit := in.byDeclaration(append(chosen, b))
		if !fit {
			continue
		}
		chosen, memory = append(chosen, b), placed
		if block.Table {
			table += entries
		}
	}
	a := in.nothing()
	for _, b := range chosen {
		a.memory[b] = memory[b]
		for g := range a.on[b] {
			a.on[b][g] = true
		}
	}
	return a
}

// component is flows that share elements with one another, so that they can
// only be on the NIC together.
type component struct {
	mpps   float64 // packets
	nodes  []int32 // groups of all blocks, numbered through
	volume []float64
	groups []int
	barred bool
}

// flow is iPipe's rule: a flow is processed as a whole on one side, and takes
// with it all flows that share an element with one of its elements. Flows with
// most packets go to the NIC first, as long as each block keeps to the part of
// the memories and tables that its declared size gives it and the NIC keeps up.
func (in *instance) flow(rooms [][]room) assignment {
	a := in.nothing()
	var blocks []int
	for b := range in.blocks {
		if in.p.Blocks[b].HostOnly == "" {
			blocks = append(blocks, b)
		}
	}
	memory, _ := in.byDeclaration(blocks)
	budget := in.budgets(memory)
	list := in.components(memory, rooms)
	slices.SortStableFunc(list, func(x, y *component) int { return cmp.Compare(y.mpps, x.mpps) })
	l, c := in.newLoad(), newChoice(memory)
	for b, m := range memory {
		if m >= 0 && rooms[b][m].most > 0 {
			c.runs[b] = []run{{rooms[b][m].first, rooms[b][m].first}} // the largest that may be there
		}
	}
	var held []*component // in memory; the rate comes after
	for _, x := range list {
		if x.barred {
			continue
		}
		fits := true
		for b, n := range x.groups {
			fits = fits && l.groups[b]+n <= budget[b]
		}
		if fits {
			held = append(held, x)
			in.addComponent(l, memory, x, 1)
		}
	}
	n := sort.Search(len(held), func(n int) bool {
		l := in.newLoad()
		for _, x := range held[:n+1] {
			in.addComponent(l, memory, x, 1)
		}
		return !in.sustains(c, l)
	})
	l = in.newLoad()
	for i, x := range held {
		if i > n+maxTries {
			break
		}
		in.addComponent(l, memory, x, 1)
		if i >= n && !in.sustains(c, l) {
			in.addComponent(l, memory, x, -1)
			continue
		}
		in.mark(a, memory, x)
	}
	return a
}

// maxTries bounds the components that are tried one by one once the NIC's rate
// is nearly used up.
const maxTries = 2000

func (in *instance) addComponent(l *load, memory []int, x *component, sign int) {
	for b, n := range x.groups {
		if n > 0 {
			l.add(in, b, memory[b], sign*n, float64(sign)*x.volume[b])
		}
	}
}

func (in *instance) mark(a assignment, memory []int, x *component) {
	for _, node := range x.nodes {
		b, g := in.node(node)
		a.memory[b] = memory[b]
		a.on[b][g] = true
	}
}

// node splits a group's number into block and group.
func (in *instance) node(n int32) (b, g int) {
	g = int(n)
	for b = range in.blocks {
		if g < len(in.blocks[b].volume) {
			return b, g
		}
		g -= len(in.blocks[b].volume)
	}
	return b, g
}

// budgets divides each memory that the declared sizes overfill, and the table
// entries, in proportion to them: the groups that each block may have.
func (in *instance) budgets(memory []int) []int {
	p := in.p
	declared := make([]float64, len(p.Memories))
	table := 0.0
	for b, m := range memory {
		if m >= 0 {
			declared[m] += float64(in.wants(b))
			if p.Blocks[b].Table {
				entries, _ := p.Blocks[b].declared()
				table += float64(entries)
			}
		}
	}
	out := make([]int, len(memory))
	for b, m := range memory {
		if m < 0 {
			continue
		}
		block := &p.Blocks[b]
		entries, bytes := block.perGroup()
		n := float64(block.Groups)
		if bytes > 0 {
			share := float64(p.Memories[m].Bytes)
			if declared[m] > share {
				share *= float64(in.wants(b)) / declared[m]
			} else {
				share = float64(in.wants(b))
			}
			n = min(n, share/float64(bytes))
		}
		own, _ := block.declared()
		if block.Table && p.TableEntries > 0 && table > float64(p.TableEntries) {
			n = min(n, float64(p.TableEntries)*float64(own)/table/float64(entries))
		}
		n = min(n, float64(block.mostGroups()))
		out[b] = int(n)
	}
	return out
}

// components joins the groups that some flow visits both of.
func (in *instance) components(memory []int, rooms [][]room) []*component {
	base := make([]int32, len(in.blocks)+1)
	for b := range in.blocks {
		base[b+1] = base[b] + int32(len(in.blocks[b].volume))
	}
	parent := make([]int32, base[len(in.blocks)])
	for i := range parent {
		parent[i] = int32(i)
	}
	root := func(x int32) int32 {
		for parent[x] != x {
			parent[x] = parent[parent[x]]
			x = parent[x]
		}
		return x
	}
	for i := range in.p.Classes {
		c := &in.p.Classes[i]
		blocks := in.p.Paths[c.Path].Blocks
		for k := 1; k < len(blocks); k++ {
			x, y := root(base[blocks[0]]+c.Groups[0]), root(base[blocks[k]]+c.Groups[k])
			parent[max(x, y)] = min(x, y)
		}
	}
	of := make(map[int32]*component)
	var out []*component
	for b := range in.blocks {
		m := memory[b]
		for g, v := range in.blocks[b].volume {
			n := base[b] + int32(g)
			x := of[root(n)]
			if x == nil {
				x = &component{volume: make([]float64, len(in.blocks)), groups: make([]int, len(in.blocks))}
				of[root(n)] = x
				out = append(out, x)
			}
			x.nodes = append(x.nodes, n)
			x.volume[b] += v
			x.groups[b]++
			if m < 0 || rooms[b][m].most == 0 || v > in.blocks[b].sorted[rooms[b][m].first] {
				x.barred = true
			}
		}
	}
	for i := range in.p.Classes {
		c := &in.p.Classes[i]
		if blocks := in.p.Paths[c.Path].Blocks; len(blocks) > 0 {
			of[root(base[blocks[0]]+c.Groups[0])].mpps += c.Mpps * in.scale
		}
	}
	return out
}
