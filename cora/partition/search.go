package partition

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"nicprof/internal/fault"
)

// Limits of the search for placements.
const (
	innerSteps    = 60      // subgradient steps with some memories open
	leafSteps     = 400     // with all chosen
	maxNodes      = 200_000 // placements bounded, times blocks
	maxRounds     = 400     // placements rounded to plans without finding a better one
	maxReserves   = 6       // plans of one placement, each with more of the rate kept for returns
	maxFollowed   = 1 << 27 // steps of paths followed to judge plans, or so many plans
	followedPlans = 16
	maxCuts       = 8    // planes that describe a predictor that is no Demander
	tolerance     = 1e-5 // of the objective, at which cora stops
	maxPrinted    = 1 << 20
	exactNodes    = 3_000_000
	coraNodes     = 100_000
	seeded        = 100_000 // groups up to which the search starts from what state and flow find
	smallInstance = 64      // groups up to which exact needs no planes
)

// search looks for the placement and groups that save most.
type search struct {
	in        *instance
	rooms     [][]room
	order     []int         // blocks, those that can save most first
	base      []float64     // of a Demander
	demand    [][][]float64 // by block, memory and row
	back      []float64
	returning bool // packets that come back from the host lower the NIC's rate
	best      *choice
	bound     float64 // on the saving
	proved    bool
	tolerance float64 // of the objective: good enough to stop
	planes    bool    // bound a predictor that is no Demander by planes
	counts    *counting
	exact     *branching
	link      *pcie   // once PCIe has turned a plan down
	over      *choice // the one turned down that PCIe comes closest to
	overLoad  float64 // Gb/s of it
	refused   float64 // Mpps that come back under the plan that was turned down last for that
	followed  int     // steps of paths, to judge plans
}

// branch is a relaxation with the first depth blocks of the order placed.
type branch struct {
	*relaxation
	depth  int
	linked bool // PCIe has had its look
}

type frontier []branch

func (f frontier) Len() int           { return len(f) }
func (f frontier) Less(i, j int) bool { return f[i].bound > f[j].bound }
func (f frontier) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *frontier) Push(x any)        { *f = append(*f, x.(branch)) }
func (f *frontier) Pop() any {
	old := *f
	x := old[len(old)-1]
	*f = old[:len(old)-1]
	return x
}

func newSearch(in *instance, rooms [][]room, tolerance float64) *search {
	s := &search{in: in, rooms: rooms, tolerance: tolerance, proved: true, planes: true}
	if d, ok := in.p.Predictor.(Demander); ok {
		s.base, s.demand, s.back = d.Demands()
	}
	s.returning = in.feelsReturns()
	for b := range in.blocks {
		s.order = append(s.order, b)
	}
	potential := func(b int) float64 { return in.blocks[b].sum[in.blocks[b].live] * in.p.Blocks[b].Instructions }
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(potential(b), potential(a)) })
	return s
}

// relax bounds what can be saved with some memories chosen.
func (s *search) relax(memory []int, from *relaxation, steps int) *relaxation {
	r := &relaxation{in: s.in, rooms: s.rooms, memory: memory}
	if from != nil {
		r.prices = slices.Clone(from.prices)
	}
	if s.demand != nil {
		for res, us := range s.base {
			row, room := make([]float64, len(memory)), 1-s.in.rate*us
			for b, m := range memory {
				if m >= 0 {
					row[b] = s.demand[b][m][res] / room
				}
			}
			r.rates, r.backs = append(r.rates, row), append(r.backs, s.back[res]/room)
		}
		r.solve(s.target(), steps)
		return r
	}
	if from != nil {
		r.rates, r.backs = from.rates, from.backs
	}
	r.solve(s.target(), steps)
	cuts := 1
	if steps == leafSteps {
		cuts = maxCuts
	}
	for n := 0; s.planes && n < cuts; n++ {
		if r.bound/s.in.total <= s.target() || !r.cut() {
			break
		}
		s.proved = false
		r.solve(s.target(), steps)
	}
	return r
}

// target is the saving already found, in units of the total.
func (s *search) target() float64 {
	if s.best == nil {
		return 0
	}
	return s.best.saving / s.in.total
}

// enough is a bound that is not worth opening.
func (s *search) enough() float64 {
	if s.best == nil {
		return math.Inf(-1)
	}
	return s.best.saving + s.tolerance*(s.in.total-s.best.saving) + 1e-12*s.in.total
}

// run searches placements by falling bound. It leaves it where the NIC does not
// keep up with bare packets.
func (s *search) run() {
	if !s.in.sustains(newChoice(nil), s.in.newLoad()) {
		return
	}
	memory := make([]int, len(s.in.blocks))
	for b := range memory {
		memory[b] = free
	}
	open := &frontier{{s.relax(memory, nil, innerSteps), 0, false}}
	s.dive((*open)[0])
	rounds := 0
	s.bound = 0
	for nodes := 0; open.Len() > 0 && nodes < maxNodes/len(memory) && rounds < maxRounds; {
		x := heap.Pop(open).(branch)
		if x.bound <= s.enough() {
			s.bound = max(s.bound, x.bound)
			break
		}
		if s.link != nil && !x.linked {
			x.linked = true
			s.link.tighten(x.relaxation)
			heap.Push(open, x)
			continue
		}
		if x.depth == len(s.order) {
			r := s.relax(x.memory, x.relaxation, leafSteps)
			r.bound = min(r.bound, x.bound)
			if r.bound > s.enough() {
				rounds++
				if s.round(r) {
					rounds = 0
				}
				if s.link != nil && r.bound > s.enough() {
					s.link.solve(r)
				}
			}
			if r.bound > s.enough() {
				r.bound = s.counts.solve(r)
			}
			if s.exact != nil {
				r.bound = s.exact.solve(r)
			}
			s.bound = max(s.bound, r.bound)
			continue
		}
		for _, m := range s.choices(s.order[x.depth]) {
			nodes++
			memory := slices.Clone(x.memory)
			memory[s.order[x.depth]] = m
			r := s.relax(memory, x.relaxation, innerSteps)
			r.bound = min(r.bound, x.bound)
			heap.Push(open, branch{r, x.depth + 1, false})
		}
	}
	if open.Len() > 0 {
		s.bound = max(s.bound, (*open)[0].bound)
	}
	if s.best != nil {
		s.bound = max(s.bound, s.best.saving)
	}
}

// dive chooses the memories of one block after another, each time the one with
// the highest bound, makes a plan, and then moves single blocks to other memories
// as long as that makes better plans.
func (s *search) dive(x branch) {
	r := x.relaxation
	try := func(from *relaxation, b, m, steps int) *relaxation {
		memory := slices.Clone(from.memory)
		memory[b] = m
		return s.relax(memory, from, steps)
	}
	for _, b := range s.order[x.depth:] {
		var best *relaxation
		for _, m := range s.choices(b) {
			if y := try(r, b, m, innerSteps); best == nil || y.bound > best.bound {
				best = y
			}
		}
		r = best
	}
	r = s.relax(r.memory, r, leafSteps)
	s.round(r)
	for better := true; better; {
		better = false
		for _, b := range s.order {
			for _, m := range s.choices(b) {
				if m == r.memory[b] {
					continue
				}
				if y := try(r, b, m, innerSteps); y.bound > s.enough() && s.round(y) {
					r, better = y, true
				}
			}
		}
	}
}

// choices of memory for a block. A block that can be split is on the host when
// none of its groups is on the NIC, so it needs no choice of its own for that.
func (s *search) choices(b int) []int {
	var out []int
	for m, x := range s.rooms[b] {
		if x.most > 0 {
			out = append(out, m)
		}
	}
	if len(out) == 0 || !s.in.p.Blocks[b].Partitionable {
		out = append(out, Host)
	}
	return out
}

// round makes a plan of a relaxation and reports whether it is the best so far.
// Where the NIC does not sustain the packets that would come back from the host,
// it makes another that leaves rate for as many.
func (s *search) round(r *relaxation) bool {
	defer func() { s.in.back = 0 }()
	for range maxReserves {
		s.refused = 0
		if s.make(r) {
			return true
		}
		if s.refused <= s.in.back || s.followed > max(maxFollowed, followedPlans*s.in.steps) {
			return false
		}
		s.in.back = s.refused
	}
	return false
}

// make makes a plan of a relaxation and offers it.
func (s *search) make(r *relaxation) bool {
	c := r.afford(func(c *choice, l *load) bool { return s.in.holds(l) && s.in.sustains(c, l) })
	if c == nil {
		// no price tells what to leave out: begin with nothing that can be
		// left out
		c = r.spend(math.Inf(1))
	}
	l := s.in.loadOf(c)
	if !s.in.holds(l) || !s.in.sustains(c, l) {
		return false
	}
	r.fill(c, l)
	return s.offer(c)
}

// offer makes c the best plan if it saves more than the one before, and
// memories, tables, the NIC's rate and PCIe allow it.
func (s *search) offer(c *choice) bool {
	if s.best != nil && c.saving <= s.best.saving {
		return false
	}
	l := s.in.loadOf(c)
	if !s.in.holds(l) || !s.in.sustains(c, l) {
		return false
	}
	if s.in.p.PCIeGbps > 0 || s.returning {
		s.followed += s.in.steps
		x := s.in.cross(s.in.assignment(c).on)
		load := max(x.toHost, x.toNIC)
		over := s.in.p.PCIeGbps > 0 && load > s.in.p.PCIeGbps*(1+slack)
		slow := s.returning && !s.in.sustainsWith(x.back, c, l)
		if (over || slow) && s.link == nil {
			s.link = newPCIe(s)
		}
		if over && (s.over == nil || load < s.overLoad) {
			s.over, s.overLoad = c, load
		}
		if slow {
			s.refused = x.back
		}
		if over || slow {
			return false
		}
	}
	s.best = c
	return true
}

// printedBest runs the paper's algorithm over every choice of blocks and
// memories.
func (s *search) printedBest() error {
	n := 1
	options := make([][]int, len(s.rooms))
	for b := range s.rooms {
		options[b] = []int{Host}
		for m, x := range s.rooms[b] {
			if x.most > 0 {
				options[b] = append(options[b], m)
			}
		}
		if n *= len(options[b]); n > maxPrinted {
			return fault.Inputf("the paper's search has more than %d choices of memories for %d blocks; leave the repair on", maxPrinted, len(s.rooms))
		}
	}
	memory := make([]int, len(options))
	for i := range n {
		for b, o := range options {
			memory[b] = o[i%len(o)]
			i /= len(o)
		}
		if c := s.in.printed(memory, s.rooms); c != nil {
			s.offer(c)
		}
	}
	return nil
}

// Solve partitions p by a strategy. The plan is Feasible unless the strategy
// does not look (state) or no plan keeps the constraints: then it is the one
// found that drops least. Its Bound holds for every strategy.
func Solve(p *Problem, strategy Strategy, o Options) (*Plan, error) {
	plans, err := SolveAll(p, o, strategy)
	if err != nil {
		return nil, err
	}
	return plans[0], nil
}

// SolveAll partitions p by several strategies, in less time than one by one:
// they share the bound.
func SolveAll(p *Problem, o Options, strategies ...Strategy) ([]*Plan, error) {
	for _, x := range strategies {
		if !slices.Contains(Strategies, x) {
			return nil, fault.Inputf("strategy %q; the strategies are %v", x, Strategies)
		}
	}
	u, err := unionOf(p)
	if err != nil {
		return nil, err
	}
	if u == nil {
		return solveAll(p, o, strategies...)
	}
	plans, err := solveAll(u.p, o, strategies...)
	if err != nil {
		return nil, err
	}
	var relaxed *Plan
	if !u.exact {
		free := *p
		free.Together = nil
		if relaxed, err = Solve(&free, Cora, Options{}); err != nil {
			return nil, err
		}
	}
	for i, x := range plans {
		plans[i] = u.expand(x, relaxed)
	}
	return plans, nil
}

func solveAll(p *Problem, o Options, strategies ...Strategy) ([]*Plan, error) {
	in, err := prepare(p)
	if err != nil {
		return nil, err
	}
	s := newSearch(in, in.rooms(), tolerance)
	s.counts = &counting{s: s, budget: coraCounts}
	s.exact = newBranching(s, coraNodes, coraNodes/50)
	if in.groups() <= seeded {
		for _, a := range []assignment{in.state(), in.flow(s.rooms)} {
			if in.judge(a).Feasible {
				s.offer(in.choose(a))
			}
		}
	}
	s.run()
	searched := in.asked
	plans := make([]*Plan, len(strategies))
	for i, x := range strategies {
		in.asked = 0
		if plans[i], err = s.plan(x, o); err != nil {
			return nil, err
		}
		if in.err != nil {
			return nil, in.err
		}
		plans[i].Examined = in.asked
		if x == Exact || x == Cora && !o.NoRepair {
			plans[i].Examined += searched
		}
	}
	return plans, nil
}

// plan is a strategy's plan, once the search has run.
func (s *search) plan(strategy Strategy, o Options) (*Plan, error) {
	in := s.in
	var plan *Plan
	switch strategy {
	case State:
		plan = in.judge(in.state())
	case Flow:
		plan = in.judge(in.flow(s.rooms))
	case Exact:
		s = s.prove(cmp.Or(o.Nodes, exactNodes))
		plan = s.judgeBest()
	case Cora:
		found := s
		if o.NoRepair {
			found = newSearch(in, s.rooms, 0)
			if err := found.printedBest(); err != nil {
				return nil, err
			}
		}
		plan = found.judgeBest()
	}
	plan.Strategy = strategy
	plan.setBound(max(0, in.total-s.bound), s.proved)
	plan.Plans = in.count()
	return plan, nil
}

// judgeBest judges the best plan, or the one that drops least where none keeps
// the constraints.
func (s *search) judgeBest() *Plan {
	if s.best != nil {
		return s.in.judge(s.in.assignment(s.best))
	}
	least := s.in.judge(s.in.nothing())
	others := []assignment{s.in.state(), s.in.flow(s.rooms)}
	if s.over != nil {
		others = append(others, s.in.assignment(s.over))
	}
	for _, a := range others {
		if x := s.in.judge(a); x.DroppedMpps < least.DroppedMpps {
			least = x
		}
	}
	return least
}

// prove goes on from what the search found without tolerance, with nodes of
// branch and bound to spend. Bounds of a small instance need no planes, so that
// they hold for a predictor of any shape.
func (s *search) prove(nodes int) *search {
	p := newSearch(s.in, s.rooms, 1e-12)
	p.best, p.over, p.overLoad = s.best, s.over, s.overLoad
	if s.link != nil {
		p.link = newPCIe(p)
		p.link.prices, p.link.rows = s.link.prices, s.link.rows
	}
	p.planes = s.in.groups() > smallInstance
	p.counts = &counting{s: p, budget: exactCounts}
	p.exact = newBranching(p, nodes, max(1, nodes/4))
	p.run()
	if p.bound > s.bound {
		p.bound, p.proved = s.bound, s.proved
	}
	return p
}

// count is how many plans there are to choose from.
func (in *instance) count() Counters {
	var exhaustive, groups uint64
	for i := range in.p.Classes {
		exhaustive += uint64(len(in.p.Classes[i].Groups))
	}
	local := countOf(1)
	for b := range in.blocks {
		groups += uint64(in.blocks[b].live)
		local = local.times(uint64(in.blocks[b].live) + 1)
	}
	return Counters{powerOf2(exhaustive), powerOf2(groups), local, countOf(groups + 1)}
}
