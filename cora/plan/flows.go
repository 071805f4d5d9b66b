package plan

import (
	"slices"
	"strings"

	"nicprof/cora/frontend"
	"nicprof/cora/partition"
	"nicprof/internal/fault"
	"nicprof/traffic"
	"nicprof/traffic/capture"
)

// read counts the traffic under the keys of the program, or makes it up from
// what a YAML file says.
func (b *builder) read() error {
	var t traffic.Traffic
	var v *traffic.Volumes
	fields, err := b.findWays(nil)
	if err != nil {
		return err
	}
	if b.Given != nil {
		t = *b.Given
	} else if t, v, err = traffic.LoadVolumes(b.Traffic, append(slices.Clone(b.keys), fields.key), traffic.VolumeOptions{}); err != nil {
		return err
	}
	if v != nil {
		err = b.follow(v, fields, t.Branches)
	} else if b.out.Mix, err = b.Front.Mix(t.Branches); err == nil {
		v, err = b.synthesise(t)
	}
	if err != nil {
		return fault.Inputf("%s: %w", b.Traffic, err)
	}
	for _, w := range b.out.Mix.Warnings {
		b.note("%s", w)
	}
	for _, w := range slices.Concat(t.Warnings, v.Warnings) {
		b.note("%s: %s", b.Traffic, w)
	}
	b.out.Volumes, b.out.Bytes = v, v.FrameBytes()
	b.out.Mpps = v.Mpps()
	if t.RateMpps > 0 {
		b.out.Mpps = t.RateMpps // replayed at another rate
	}
	if b.out.Mpps == 0 && b.Options.TargetMpps == 0 {
		return fault.Inputf("%s: the traffic has no rate of its own; give --target MPPS", b.Traffic)
	}
	return nil
}

// follow has counted packets take the ways of their own headers.
func (b *builder) follow(v *traffic.Volumes, fields *ways, set map[string]float64) error {
	w, err := b.findWays(set)
	if err != nil {
		return err
	}
	w.vars, w.key = fields.vars, fields.key
	last, none := len(v.Keys)-1, 0.0
	for class, g := range v.Group[last] {
		if g == traffic.NoGroup {
			none += v.Packets[class]
		}
	}
	b.ways, b.kind = w, v.TakeOut(last, w.count(v.Keys[last], none))
	shares, found := w.shares(b.Front)
	if len(found) > 0 {
		b.note("every flow takes the branches of its own headers: %s of the packets", strings.Join(found, ", "))
	}
	if b.out.Mix, err = b.Front.Mix(shares); err != nil {
		return err
	}
	b.out.Mix.Paths, b.pathOf = w.paths(v.Packets, b.kind)
	if slices.ContainsFunc(w.kinds, func(c []chance) bool { return len(c) > 1 }) {
		b.note("what headers do not decide (look-ups, state, shares that are given) parts the packets of every flow alike")
	}
	return nil
}

// synthesise makes volumes up: each key is a function that paths visit.
func (b *builder) synthesise(t traffic.Traffic) (*traffic.Volumes, error) {
	if t.Flows == nil && len(t.MaxFlowPPS) == 0 {
		return nil, fault.Inputf("no flows: expected flows: {count: N, popularity: zipf, alpha: A} or max_flow_pps: {BLOCK: PPS}")
	}
	bytes := float64(t.PacketBytes)
	if t.Sizes != nil {
		bytes = t.Sizes.Mean()
	}
	if bytes == 0 {
		return nil, fault.Inputf("no packet size: expected size: BYTES, NAME or {cdf: FILE, read: step|linear, unit: bytes}")
	}
	rate := t.RateMpps
	if rate == 0 {
		rate = b.Options.TargetMpps
	}
	if rate == 0 {
		return nil, fault.Inputf("the traffic has no rate (rate_mpps); set it, or give --target MPPS")
	}
	s := traffic.Synthesis{PPS: rate * 1e6, FrameBytes: bytes, Seed: b.Options.Seed}
	shape := traffic.Shape{}
	switch {
	case t.Shape.Volumes != nil: // flows: {volumes: …}
		shape = t.Shape
	case t.Flows == nil:
		var err error
		if shape, err = traffic.NamedShape(traffic.ShapeNames()[0]); err != nil {
			return nil, err
		}
	case t.Flows.Popularity == "zipf":
		shape.Alpha = t.Flows.Alpha
	}
	known := map[string]bool{}
	for i, k := range b.keys {
		f := traffic.Function{Name: k.String(), Shape: shape}
		if t.Flows != nil {
			f.Groups = t.Flows.Count
		}
		switch n := bitsOf(k); {
		case t.Flows == nil && n <= 8:
			f.Groups = 1 << n // so few that all come
		case n < 31:
			f.Groups = min(f.Groups, 1<<n)
		}
		for _, block := range b.Front.Blocks {
			if b.keyOf[block.Index] != i {
				continue
			}
			for _, name := range b.names(block) {
				known[name] = true
				if pps, ok := t.MaxFlowPPS[name]; ok {
					f.Name, f.MaxPPS = name, pps
				}
			}
		}
		// Of a shape as many groups as the largest takes; without one Zipf's law
		// with the exponent that fits.
		if f.MaxPPS > 0 && shape != (traffic.Shape{}) {
			f.Groups = 0
		}
		s.Functions = append(s.Functions, f)
	}
	for name := range t.MaxFlowPPS {
		if !known[name] {
			return nil, fault.Inputf("max_flow_pps.%s: %s has no block or object of that name with flow groups", name, b.Front.Program.Name)
		}
	}
	for _, path := range b.out.Mix.Paths {
		p := traffic.Path{Share: path.Share}
		for _, block := range path.Blocks {
			if k := b.keyOf[block]; k >= 0 && !slices.Contains(p.Functions, k) {
				p.Functions = append(p.Functions, k)
			}
		}
		s.Paths = append(s.Paths, p)
	}
	return s.Volumes()
}

// names are a block's and its objects'.
func (b *builder) names(block *frontend.Block) []string {
	names := []string{block.Name}
	for _, o := range block.Objects {
		names = append(names, b.Front.Name(o))
	}
	return names
}

// route is a path of the mix as the problem has it.
type route struct {
	index int // of the problem's paths
	share float64
}

// classes turns the volumes into the problem's classes: of a synthetic class the
// path that it was made for, of a counted one the paths of its own headers, by the
// shares of what headers do not decide. Packets without a field that a path's
// block needs cannot take that path.
func (b *builder) classes() error {
	p, v := b.out.Problem, b.out.Volumes
	routes := b.routes()
	taken := b.taken(routes)
	scale := b.out.Mpps / v.TotalPackets
	if b.out.Mpps == 0 {
		scale = b.Options.TargetMpps / v.TotalPackets
	}
	var lost float64
	arena := make([]int32, 0, v.Classes()*4)
	for c := range v.Classes() {
		bytes := 0.0
		if v.Packets[c] > 0 {
			bytes = v.Bytes[c] / v.Packets[c]
		}
		var take []route
		if v.Path != nil {
			take = routes[v.Path[c] : v.Path[c]+1]
		} else {
			take = taken[b.kind[c]]
		}
		open := 0.0
		for _, r := range take {
			if b.passes(c, r.index) {
				open += r.share
			}
		}
		if open == 0 {
			lost += v.Packets[c]
			p.Classes = append(p.Classes, partition.Class{Mpps: v.Packets[c] * scale, Bytes: bytes, Path: len(p.Paths) - 1})
			continue
		}
		for _, r := range take {
			if r.share == 0 || !b.passes(c, r.index) {
				continue
			}
			at := len(arena)
			for _, block := range p.Paths[r.index].Blocks {
				g := int32(0)
				if k := b.out.Blocks[block].Key; k >= 0 {
					g = v.Group[k][c]
				}
				arena = append(arena, g)
			}
			p.Classes = append(p.Classes, partition.Class{
				Mpps: v.Packets[c] * scale * r.share / open, Bytes: bytes, Path: r.index, Groups: arena[at:len(arena):len(arena)],
			})
		}
	}
	if lost >= v.TotalPackets {
		return fault.Inputf("no packet of the traffic has the headers that the program's blocks are chosen by: none could visit a block")
	}
	if lost > 0 {
		b.note("%.3g %% of the packets lack the headers that every path needs; they pass the NIC without visiting a block", 100*lost/v.TotalPackets)
	}
	return nil
}

// taken lists the routes that packets of each kind take, with the shares that
// take them.
func (b *builder) taken(routes []route) [][]route {
	if b.ways == nil {
		return nil
	}
	var out [][]route
	for _, chances := range b.ways.kinds {
		var take []route
		for _, c := range chances {
			k := b.pathOf[c.way]
			if k < 0 {
				continue
			}
			at := slices.IndexFunc(take, func(r route) bool { return r.index == routes[k].index })
			if at < 0 {
				at = len(take)
				take = append(take, route{routes[k].index, 0})
			}
			take[at].share += c.share
		}
		out = append(out, take)
	}
	return out
}

// passes says whether a class has the fields that a path's blocks need.
func (b *builder) passes(class, path int) bool {
	for _, block := range b.out.Problem.Paths[path].Blocks {
		k := b.keyOf[block]
		if k < 0 {
			continue
		}
		g := b.out.Volumes.Group[k][class]
		if g == traffic.NoGroup || !alternatives(b.keys[k]) && !b.out.Volumes.Keys[k].Complete(int(g)) {
			return false
		}
	}
	return true
}

// routes lists the mix's paths as the problem's, an empty path last. A packet
// that must visit the host whatever the plan comes to a block of the host's at
// its end.
func (b *builder) routes() []route {
	p := b.out.Problem
	host := -1
	var routes []route
	for _, path := range b.out.Mix.Paths {
		out := partition.Path{Blocks: slices.Clone(path.Blocks)}
		if path.Dropped {
			out.End = partition.Dropped
		}
		if path.Host != "" {
			if host < 0 {
				host = len(p.Blocks)
				p.Blocks = append(p.Blocks, partition.Block{Name: "host", Groups: 1, HostOnly: path.Host})
				b.out.Blocks = append(b.out.Blocks, Block{Block: &frontend.Block{Name: "host", Index: host, HostOnly: path.Host}, Key: -1, Whole: path.Host})
				b.keyOf = append(b.keyOf, -1)
				n := p.Predictor.(*nic)
				n.mix.Blocks = append(n.mix.Blocks, frontend.Visit{})
			}
			out.Blocks = append(out.Blocks, host)
		}
		routes = append(routes, route{len(p.Paths), path.Share})
		p.Paths = append(p.Paths, out)
	}
	p.Paths = append(p.Paths, partition.Path{})
	return routes
}

// alternatives says whether a key has fields of headers that exclude each other,
// as a program's has that reads addresses of IPv4 and of IPv6.
func alternatives(k traffic.Key) bool {
	layers := map[capture.Layer]bool{}
	for _, f := range k {
		layers[f.Layer] = true
	}
	n := func(of ...capture.Layer) (n int) {
		for _, l := range of {
			if layers[l] {
				n++
			}
		}
		return n
	}
	return n(capture.IPv4, capture.IPv6, capture.NonIP) > 1 || n(capture.TCP, capture.UDP, capture.SCTP, capture.ICMP) > 1
}
