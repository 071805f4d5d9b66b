package validate

import (
	"fmt"
	"math"

	"nicprof/board"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// RandomPrograms draws n programs that b can run, the same for the same seed:
// one to six accesses over its memories, operations, modes, sizes, spans and
// popularities, some with stateless work, on every base, and some with a lock
// around accesses on the bases whose programs take locks; of a board of class
// fpga, chains of network tasks. None is chosen for
// being easy. Those of a run-to-completion board are microbench.Mixes, by a stream
// that no sweep draws from.
func RandomPrograms(b *board.Board, n int, seed uint64) []program.Program {
	if microbench.RunToCompletion(b) {
		return microbench.Mixes(b, n, sim.NewStream(seed, "validate programs"))
	}
	g := generator{board: b, s: sim.NewStream(seed, "validate programs")}
	out := make([]program.Program, 0, n)
	for tries := 0; len(out) < n && tries < 100*n; tries++ {
		p := b.Resolve(g.program())
		if b.Check(p, 0, 0) != nil {
			continue // such as a span that a small memory cannot hold
		}
		p.Name = fmt.Sprintf("random-%d", len(out)+1)
		out = append(out, p)
	}
	return out
}

type generator struct {
	board *board.Board
	s     *sim.Stream
}

func (g *generator) chance(p float64) bool { return g.s.Float64() < p }

// log draws from lo..hi with a uniform logarithm.
func (g *generator) log(lo, hi float64) float64 {
	return lo * math.Exp(g.s.Float64()*math.Log(hi/lo))
}

func (g *generator) program() program.Program {
	base := &g.board.Bases[g.s.IntN(len(g.board.Bases))]
	p := program.Program{Base: base.Name}
	if g.board.FPGA != nil {
		g.chain(&p)
		return p
	}
	for range 1 + g.s.IntN(6) {
		p.Accesses = append(p.Accesses, g.access(8))
	}
	if g.chance(0.4) {
		p.Stateless = program.Stateless{}
		for range 1 + g.s.IntN(2) {
			kind := program.Kinds[g.s.IntN(len(program.Kinds))]
			op := g.board.Stateless[kind].Value
			if op > 0 { // up to 1500 cycles of it
				p.Stateless[kind] = math.Ceil(g.log(0.02, 1) * 1500 / op)
			}
		}
	}
	if g.chance(0.25) && base.Locks && g.board.Locks.Memory != "" {
		g.lock(&p)
	}
	return p
}

// chain draws one to six network tasks, some with a rate of their own, some
// skipped, now and then side by side, with credits and a packet size.
func (g *generator) chain(p *program.Program) {
	for i := range 1 + g.s.IntN(6) {
		s := program.Stage{Name: fmt.Sprintf("nt%d", i+1), Cycles: int(g.log(1, 80)), II: 1 + g.s.IntN(4)}
		if g.chance(0.3) {
			s.Gbps = math.Round(g.log(5, 100))
		}
		s.Skip = i > 0 && g.chance(0.15)
		p.Chain = append(p.Chain, s)
	}
	p.Parallel = g.chance(0.2)
	if g.chance(0.7) {
		p.Credits = int(g.log(1, 64))
	}
	p.PacketBytes = int(g.log(64, 1500))
}

// access draws one access line of at most n accesses a packet.
func (g *generator) access(n float64) program.Access {
	swept := g.board.Swept()
	m := swept[g.s.IntN(len(swept))]
	e := &m.Engines[g.s.IntN(len(m.Engines))]
	var ops []program.Op
	for _, op := range []program.Op{program.Read, program.Write, program.Add} {
		if e.Command(op) != nil {
			ops = append(ops, op)
		}
	}
	a := program.Access{Memory: m.Name, Op: ops[g.s.IntN(len(ops))], Mode: e.Mode}
	a.Bytes = 4 << g.s.IntN(6)
	if g.chance(0.4) {
		a.Bytes = 4 * (1 + g.s.IntN(program.MaxBytes/4))
	}
	if a.Op == program.Add {
		a.Bytes = min(a.Bytes, int(e.MaxBytes.Value))
	}
	a.PerPacket = 1 + float64(g.s.IntN(int(n)))
	if g.chance(0.2) {
		a.PerPacket = math.Round(100*g.log(0.1, n)) / 100
	}
	switch x := g.s.Float64(); {
	case x < 0.5: // the default span
	case x < 0.65:
		a.Span = int64(g.log(1, 64))
	default:
		const share = 16 // of the memory, so that all arrays of a program fit
		a.Span = int64(g.log(64, float64(m.Bytes)/share/program.MaxBytes))
	}
	if g.chance(0.3) {
		a.Popularity, a.Alpha = "zipf", math.Round(100*(0.5+0.8*g.s.Float64()))/100
	}
	return a
}

// lock puts a lock into the program: its array, idiom, section and the flows
// that take it.
func (g *generator) lock(p *program.Program) {
	idioms := []program.Idiom{program.Spin, program.Spin, program.Ticket, "sleep-200", "sleep-1000", program.None}
	l := program.Lock{Name: "lock", Elements: int(g.log(1, 1024)), Idiom: idioms[g.s.IntN(len(idioms))], Hash: g.chance(0.2)}
	for range g.s.IntN(3) {
		l.Section = append(l.Section, g.access(2))
	}
	p.Locks = []program.Lock{l}
	f := traffic.Flows{Count: int(g.log(1, 10000))}
	if g.chance(0.5) {
		f.Popularity, f.Alpha = "zipf", math.Round(100*(0.5+0.8*g.s.Float64()))/100
	}
	p.Flows = &f
}
