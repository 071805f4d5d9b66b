package partition

import (
	"cmp"
	"math"
	"slices"

	"nicprof/internal/fault"
)

// slack is the relative rounding that a sum may have above its limit.
const slack = 1e-9

// instance is a problem prepared for search: volumes a group, sorted.
type instance struct {
	p      *Problem
	rate   float64 // Mpps
	scale  float64 // of the classes' rates
	blocks []groups
	total  float64 // the objective with everything on the host
	steps  int     // of the paths of all classes
	use    []Use   // scratch of predict
	back   float64 // Mpps that come back from the host, as predict has it
	asked  int     // predictions
	err    error   // of the predictor, the first
}

// groups are a block's groups by falling volume.
type groups struct {
	volume []float64 // by group, visits in Mpps
	order  []int32   // groups by falling volume
	sorted []float64 // volume by order
	sum    []float64 // sum[n]: volume of the n largest
	live   int       // groups with traffic
}

func prepare(p *Problem) (*instance, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	in := &instance{p: p, scale: 1, blocks: make([]groups, len(p.Blocks)), use: make([]Use, len(p.Blocks))}
	for i := range p.Classes {
		in.rate += p.Classes[i].Mpps
	}
	if p.TargetMpps > 0 {
		in.scale, in.rate = p.TargetMpps/in.rate, p.TargetMpps
	}
	for b := range in.blocks {
		in.blocks[b].volume = make([]float64, p.Blocks[b].Groups)
	}
	for i := range p.Classes {
		c := &p.Classes[i]
		in.steps += len(c.Groups)
		for k, b := range p.Paths[c.Path].Blocks {
			in.blocks[b].volume[c.Groups[k]] += c.Mpps * in.scale
		}
	}
	var s sorter
	for b := range in.blocks {
		in.blocks[b].sort(&s)
		in.total += in.blocks[b].sum[len(in.blocks[b].order)] * p.Blocks[b].Instructions
	}
	return in, nil
}

// sort orders the groups: by falling volume, then by number.
func (g *groups) sort(s *sorter) {
	g.order, g.sorted = s.byFallingValue(g.volume)
	g.sum = make([]float64, len(g.volume)+1)
	for i, v := range g.sorted {
		g.sum[i+1] = g.sum[i] + v
		if v > 0 {
			g.live = i + 1
		}
	}
}

// sorter has the memory that sorting takes, for block after block.
type sorter struct {
	keys, next []uint64
	order      []int32
}

// Digits of the radix sort: so few values that the ends of all buckets stay in
// the processor's address cache. The bits from upper on are enough for most pairs
// of volumes: sign, exponent and 19 bits of 52.
const (
	digitBits = 11
	upper     = 3 * digitBits
)

// byFallingValue returns the indices of v ordered by falling value, equal ones by
// rising index, and the values in that order: a radix sort of the upper bits, for
// values of 0 and above, and of the others where that leaves many alike. It is most
// of the time of a plan of a million groups.
func (s *sorter) byFallingValue(v []float64) ([]int32, []float64) {
	order, sorted := make([]int32, len(v)), make([]float64, len(v))
	for i := range order {
		order[i] = int32(i)
	}
	if len(v) < 512 {
		slices.SortStableFunc(order, func(i, j int32) int { return cmp.Compare(v[j], v[i]) })
		for i, j := range order {
			sorted[i] = v[j]
		}
		return order, sorted
	}
	if len(s.keys) < len(v) {
		*s = sorter{make([]uint64, len(v)), make([]uint64, len(v)), make([]int32, len(v))}
	}
	keys, next := s.keys[:len(v)], s.next[:len(v)]
	from, to := order, s.order[:len(v)]
	for i, x := range v {
		keys[i] = ^math.Float64bits(x + 0) // +0: no negative zero
	}
	pass := func(shift int) {
		var count [1 << digitBits]int32
		for _, k := range keys {
			count[k>>shift&(1<<digitBits-1)]++
		}
		at := int32(0)
		for k, n := range count {
			count[k], at = at, at+n
		}
		for i, k := range keys {
			p := &count[k>>shift&(1<<digitBits-1)]
			next[*p], to[*p] = k, from[i]
			*p++
		}
		keys, next, from, to = next, keys, to, from
	}
	for shift := upper; shift < 64; shift += digitBits {
		pass(shift)
	}
	if !tidy(keys, from) {
		for shift := 0; shift < 64; shift += digitBits {
			pass(shift)
		}
	}
	for i, k := range keys {
		sorted[i] = math.Float64frombits(^k)
	}
	if &from[0] != &order[0] {
		copy(order, from)
	}
	return order, sorted
}

// tidy sorts what is sorted by the upper digits by the lower ones, too, and keeps
// the order of equal keys. It is false where too many keys have the same upper
// digits.
func tidy(keys []uint64, order []int32) bool {
	const most = 64
	for from := 0; from < len(keys); {
		to, equal := from+1, true
		for to < len(keys) && keys[to]>>upper == keys[from]>>upper {
			equal = equal && keys[to] == keys[from]
			to++
		}
		switch {
		case equal:
		case to-from > most:
			return false
		default:
			for i := from + 1; i < to; i++ {
				k, o, j := keys[i], order[i], i
				for ; j > from && keys[j-1] > k; j-- {
					keys[j], order[j] = keys[j-1], order[j-1]
				}
				keys[j], order[j] = k, o
			}
		}
		from = to
	}
	return true
}

// assignment says where blocks and groups lie.
type assignment struct {
	memory []int
	on     [][]bool
}

// groups is how many groups with traffic all blocks have.
func (in *instance) groups() int {
	n := 0
	for b := range in.blocks {
		n += in.blocks[b].live
	}
	return n
}

func (in *instance) nothing() assignment {
	a := assignment{make([]int, len(in.blocks)), make([][]bool, len(in.blocks))}
	for b := range a.on {
		a.memory[b] = Host
		a.on[b] = make([]bool, len(in.blocks[b].volume))
	}
	return a
}

// predict is the rate that the NIC sustains under in.use. A predictor that
// fails sustains nothing; the error is kept.
func (in *instance) predict() (float64, string) {
	in.asked++
	mpps, limit, err := in.p.Predictor.Predict(in.use, max(0, in.back/in.rate)) // a running sum may end below 0
	if err != nil || math.IsNaN(mpps) {
		if in.err == nil {
			in.err = err
		}
		return 0, limit
	}
	return mpps, limit
}

// crossings is what crosses PCIe.
type crossings struct {
	toHost, toNIC float64 // Gb/s
	packets       float64 // Mpps to the host, a packet counted at each crossing
	host          float64 // Mpps of packets that see the host
	back          float64 // Mpps that come back from it, a packet counted at each return
}

// gbps of mpps packets of bytes.
func gbps(mpps, bytes float64) float64 { return mpps * bytes * 8 / 1000 }

// cross follows every packet along its path.
func (in *instance) cross(on [][]bool) crossings {
	var x crossings
	for i := range in.p.Classes {
		c := &in.p.Classes[i]
		path := &in.p.Paths[c.Path]
		toHost, toNIC, atHost := 0, 0, false
		for k, b := range path.Blocks {
			switch nic := on[b][c.Groups[k]]; {
			case nic && atHost:
				toNIC, atHost = toNIC+1, false
			case !nic && !atHost:
				toHost, atHost = toHost+1, true
			}
		}
		switch {
		case path.End == Wire && atHost:
			toNIC++
		case path.End == ToHost && !atHost:
			toHost++
		}
		if toHost > 0 {
			mpps := c.Mpps * in.scale
			x.toHost += float64(toHost) * gbps(mpps, c.Bytes)
			x.toNIC += float64(toNIC) * gbps(mpps, c.Bytes)
			x.packets += float64(toHost) * mpps
			x.host += mpps
			x.back += float64(toNIC) * mpps
		}
	}
	return x
}

// Evaluate judges an assignment: memory by block (an index into
// Problem.Memories, or Host) and, by block and group, whether the group is on
// the NIC.
func Evaluate(p *Problem, memory []int, on [][]bool) (*Plan, error) {
	in, err := prepare(p)
	if err != nil {
		return nil, err
	}
	if len(memory) != len(p.Blocks) || len(on) != len(p.Blocks) {
		return nil, fault.Inputf("an assignment of %d memories and %d blocks; there are %d blocks", len(memory), len(on), len(p.Blocks))
	}
	for b := range p.Blocks {
		if memory[b] < Host || memory[b] >= len(p.Memories) || len(on[b]) != p.Blocks[b].Groups {
			return nil, fault.Inputf("block %s: memory %d of %d, sides of %d groups of %d", p.Blocks[b].Name,
				memory[b], len(p.Memories), len(on[b]), p.Blocks[b].Groups)
		}
		if memory[b] == Host && slices.Contains(on[b], true) {
			return nil, fault.Inputf("block %s has groups on the NIC but no memory there", p.Blocks[b].Name)
		}
	}
	plan := in.judge(assignment{memory, on})
	return plan, in.err
}

// judge fills in a plan but for its strategy, bound and counters.
func (in *instance) judge(a assignment) *Plan {
	p := in.p
	plan := &Plan{Blocks: make([]BlockPlan, len(p.Blocks)), AllHost: in.total, OfferedMpps: in.rate}
	memory := make([]int64, len(p.Memories))
	var table int64
	hostNS, allNS := 0.0, in.rate*p.HostPacketNS
	for b := range p.Blocks {
		bp, host := in.blockPlan(a, b)
		plan.Blocks[b] = bp
		block := &p.Blocks[b]
		plan.Objective += host * block.Instructions
		hostNS += host * block.HostNS
		allNS += bp.Mpps * block.HostNS
		if block.HostNS == 0 {
			plan.UnknownCost = append(plan.UnknownCost, block.Name)
		}
		if bp.Groups == 0 {
			continue
		}
		memory[bp.Memory] += bp.Bytes
		if block.Table {
			table += bp.Entries
		}
		if block.HostOnly != "" || block.maxGroup(bp.Memory) < 0 {
			plan.Broken = append(plan.Broken, block.Name+" cannot be on the NIC")
		}
		if int64(bp.Groups) > block.mostGroups() {
			plan.Broken = append(plan.Broken, block.Name+" entries")
			plan.need(block.Name+" entries", float64(block.MaxEntries), float64(bp.Entries), "entries")
		}
	}
	for m, used := range memory {
		if used > p.Memories[m].Bytes {
			plan.Broken = append(plan.Broken, p.Memories[m].Name+" capacity")
			plan.need(p.Memories[m].Name+" capacity", float64(p.Memories[m].Bytes), float64(used), "bytes")
		}
	}
	if p.TableEntries > 0 && table > p.TableEntries {
		plan.Broken = append(plan.Broken, "table entries")
		plan.need("table entries", float64(p.TableEntries), float64(table), "entries")
	}
	plan.Broken = append(plan.Broken, in.apart(a)...)
	x := in.cross(a.on)
	in.back = x.back
	defer func() { in.back = 0 }()
	sustained := in.judgeRates(a, plan)
	plan.ToHostGbps, plan.ToNICGbps, plan.HostMpps = x.toHost, x.toNIC, x.host
	plan.NICMpps = max(0, in.rate-x.host)
	plan.HostCores = (hostNS + x.packets*p.HostPacketNS) / 1000
	plan.CoresAllHost = allNS / 1000
	if load := max(x.toHost, x.toNIC); p.PCIeGbps > 0 && load > p.PCIeGbps*(1+slack) {
		plan.Broken = append(plan.Broken, "pcie")
		plan.DroppedMpps = max(plan.DroppedMpps, x.host*(1-p.PCIeGbps/load))
		plan.need("pcie", p.PCIeGbps, load, "Gb/s")
		sustained = min(sustained, in.rate*p.PCIeGbps/load)
	}
	if sustained < in.rate*(1-slack) && sustained > 0 {
		plan.need("rate", in.rate, sustained, "Mpps")
	}
	plan.Feasible = len(plan.Broken) == 0
	plan.Limits = in.limits(a, plan, memory, table)
	return plan
}

// blockPlan describes block b under a, and the rate of its visits on the host.
func (in *instance) blockPlan(a assignment, b int) (bp BlockPlan, host float64) {
	g, block := &in.blocks[b], &in.p.Blocks[b]
	bp = BlockPlan{Memory: Host, OnNIC: a.on[b]}
	for i, on := range a.on[b] {
		if !on {
			host += g.volume[i]
		} else {
			bp.Groups++
			bp.MppsOnNIC += g.volume[i]
			if bp.Groups == 1 || g.volume[i] < bp.SmallestMpps {
				bp.SmallestMpps = g.volume[i]
			}
		}
	}
	if bp.Groups > 0 {
		bp.Memory = a.memory[b]
		entries, bytes := block.perGroup()
		bp.Entries, bp.Bytes = int64(bp.Groups)*entries, int64(bp.Groups)*bytes
	}
	bp.Mpps = bp.MppsOnNIC + host
	return bp, host
}

// judgeRates holds the NIC's rate and that of single groups against the load. It
// returns the rate up to which they hold, Mpps.
func (in *instance) judgeRates(a assignment, plan *Plan) (sustained float64) {
	clear(in.use)
	over := 0.0
	sustained = math.Inf(1)
	for b := range in.blocks {
		bp := &plan.Blocks[b]
		in.use[b] = Use{Memory: bp.Memory, Share: bp.MppsOnNIC / in.rate, Groups: bp.Groups}
		if bp.Groups == 0 {
			continue
		}
		largest, most, excess := 0.0, in.p.Blocks[b].maxGroup(bp.Memory), 0.0
		for i, on := range a.on[b] {
			if v := in.blocks[b].volume[i]; on {
				largest = max(largest, v)
				if v > most*(1+slack) {
					excess += v - most
				}
			}
		}
		in.use[b].Largest = largest / in.rate
		if excess > 0 && most > 0 {
			plan.Broken = append(plan.Broken, in.p.Blocks[b].Name+" group rate")
			over = max(over, excess)
			sustained = min(sustained, in.rate*most/largest)
		}
	}
	plan.CapacityMpps, plan.NICLimit = in.predict()
	if plan.CapacityMpps < in.rate*(1-slack) {
		plan.Broken = append(plan.Broken, "nic throughput")
	}
	plan.DroppedMpps = max(over, in.rate-plan.CapacityMpps, 0)
	return min(sustained, plan.CapacityMpps)
}

// limits says what keeps the largest group that is still on the host from the
// NIC, by block.
func (in *instance) limits(a assignment, plan *Plan, memory []int64, table int64) []string {
	var out []string
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	p := in.p
	for b := range p.Blocks {
		block, bp, g := &p.Blocks[b], &plan.Blocks[b], &in.blocks[b]
		next := slices.IndexFunc(g.order, func(i int32) bool { return !a.on[b][i] && g.volume[i] > 0 })
		if next < 0 {
			continue
		}
		volume := g.sorted[next]
		if block.HostOnly != "" {
			add(block.Name + " " + block.HostOnly)
			continue
		}
		entries, bytes := block.perGroup()
		if block.Table && p.TableEntries > 0 && table+entries > p.TableEntries {
			add("table entries")
		}
		if int64(bp.Groups) >= block.mostGroups() {
			add(block.Name + " entries")
		}
		for m := range p.Memories {
			if bp.Memory != Host && m != bp.Memory {
				continue
			}
			if memory[m]+bytes > p.Memories[m].Bytes {
				add(p.Memories[m].Name + " capacity")
				continue
			}
			if volume > block.maxGroup(m)*(1+slack) {
				add(block.Name + " group rate")
				continue
			}
			use := in.use[b]
			in.use[b] = Use{m, use.Share + volume/in.rate, use.Groups + 1, max(use.Largest, volume/in.rate)}
			if mpps, limit := in.predict(); mpps < in.rate*(1-slack) {
				add("nic throughput: " + limit)
			}
			in.use[b] = use
		}
	}
	if p.PCIeGbps > 0 && max(plan.ToHostGbps, plan.ToNICGbps) > p.PCIeGbps*0.99 {
		add("pcie")
	}
	return out
}
