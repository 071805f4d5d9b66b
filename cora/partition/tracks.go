package partition

// side is where a group is, as far as it is decided.
type side uint8

const (
	unknown side = iota
	onNIC
	onHost
)

// tracks follows packets of classes through groups of which some are not yet
// decided, and keeps the least that must cross PCIe.
type tracks struct {
	in     *instance
	base   []int32 // number of a block's first group
	first  []int32 // of a group's visits in visits
	visits []int32 // classes by group
	sides  []side  // by group

	toHost, toNIC float64 // Gb/s
	back          float64 // Mpps to the NIC
}

func newTracks(in *instance) *tracks {
	t := &tracks{in: in, base: make([]int32, len(in.blocks)+1)}
	for b := range in.blocks {
		t.base[b+1] = t.base[b] + int32(len(in.blocks[b].volume))
	}
	n := t.base[len(in.blocks)]
	t.first = make([]int32, n+1)
	t.sides = make([]side, n)
	each := func(f func(class, group int32)) {
		for i := range in.p.Classes {
			c := &in.p.Classes[i]
			for k, b := range in.p.Paths[c.Path].Blocks {
				f(int32(i), t.base[b]+c.Groups[k])
			}
		}
	}
	each(func(_, g int32) { t.first[g+1]++ })
	for g := range n {
		t.first[g+1] += t.first[g]
	}
	t.visits = make([]int32, t.first[n])
	next := make([]int32, n)
	copy(next, t.first)
	each(func(c, g int32) {
		t.visits[next[g]] = c
		next[g]++
	})
	return t
}

// start decides all groups but items, which are unknown: as in c.
func (t *tracks) start(c *choice, items []item) {
	if t == nil {
		return
	}
	for i := range t.sides {
		t.sides[i] = onHost
	}
	for b, runs := range c.runs {
		for _, r := range runs {
			for _, g := range t.in.blocks[b].order[r.from:r.to] {
				t.sides[t.base[b]+g] = onNIC
			}
		}
	}
	for _, it := range items {
		t.sides[t.base[it.b]+t.in.blocks[it.b].order[it.at]] = unknown
	}
	t.recount()
}

// clear has all groups on the host.
func (t *tracks) clear() {
	for i := range t.sides {
		t.sides[i] = onHost
	}
	t.recount()
}

func (t *tracks) side(b, g int) side { return t.sides[t.base[b]+int32(g)] }

// most is what crosses the busier way, Gb/s.
func (t *tracks) most() float64 { return max(t.toHost, t.toNIC) }

// recount follows all classes anew.
func (t *tracks) recount() {
	t.toHost, t.toNIC, t.back = 0, 0, 0
	for i := range t.in.p.Classes {
		t.count(i, 1)
	}
}

// count adds what class i must cross, sign times.
func (t *tracks) count(i int, sign float64) {
	c := &t.in.p.Classes[i]
	path := &t.in.p.Paths[c.Path]
	toHost, toNIC, atHost := 0, 0, false
	for k, b := range path.Blocks {
		switch t.sides[t.base[b]+c.Groups[k]] {
		case onNIC:
			if atHost {
				toNIC, atHost = toNIC+1, false
			}
		case onHost:
			if !atHost {
				toHost, atHost = toHost+1, true
			}
		}
	}
	if path.End == Wire && atHost {
		toNIC++
	}
	if path.End == ToHost && !atHost {
		toHost++
	}
	mpps := sign * c.Mpps * t.in.scale
	load := gbps(mpps, c.Bytes)
	t.toHost += float64(toHost) * load
	t.toNIC += float64(toNIC) * load
	t.back += float64(toNIC) * mpps
}

// carried reports whether PCIe can carry what must cross.
func (t *tracks) carried() bool {
	return t.in.p.PCIeGbps == 0 || t.most() <= t.in.p.PCIeGbps*(1+slack)+slack
}

// set decides, or forgets, the side of a group, and reports whether PCIe can
// still carry what must cross. A nil receiver follows nothing.
func (t *tracks) set(b, g int, to side) bool {
	if t == nil {
		return true
	}
	n := t.base[b] + int32(g)
	if t.sides[n] != to {
		last := int32(-1)
		for _, i := range t.visits[t.first[n]:t.first[n+1]] {
			if i != last { // a path may come by twice
				t.count(int(i), -1)
			}
			last = i
		}
		t.sides[n] = to
		last = -1
		for _, i := range t.visits[t.first[n]:t.first[n+1]] {
			if i != last {
				t.count(int(i), 1)
			}
			last = i
		}
	}
	return t.carried()
}
