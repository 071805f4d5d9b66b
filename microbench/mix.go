package microbench

import (
	"fmt"
	"math"
	"slices"

	"nicprof/board"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// Mixes draws at most n programs that a run-to-completion board can run: one to
// six accesses over its levels, operations, modes, sizes, working sets and
// popularities (atomic ones mostly of a word, as data structures have them), some
// with stateless work, on every base, and a quarter with a lock, its flows and
// its section on the bases whose programs take locks. The same stream draws the
// same programs. It returns fewer when the board can run few of them.
func Mixes(b *board.Board, n int, s *sim.Stream) []program.Program {
	if len(b.Swept()) == 0 { // a host whose levels were not looked for
		return nil
	}
	g := mixer{board: b, Stream: s, idioms: append(idiomsOf(b), program.Spin, program.Spin, program.None)}
	out := make([]program.Program, 0, n)
	for tries := 0; len(out) < n && tries < 100*n; tries++ {
		p := b.Resolve(g.program())
		if b.Check(p, 0, 0) != nil {
			continue // such as a span that a small level cannot hold
		}
		p.Name = fmt.Sprintf("random-%d", len(out)+1)
		out = append(out, p)
	}
	return out
}

type mixer struct {
	*sim.Stream
	board  *board.Board
	idioms []program.Idiom // of locks, by how often they are drawn
}

func (g *mixer) chance(p float64) bool { return g.Float64() < p }

// log draws from lo..hi with a uniform logarithm.
func (g *mixer) log(lo, hi float64) float64 { return lo * math.Exp(g.Float64()*math.Log(hi/lo)) }

// alpha draws a Zipf exponent of 0.5..1.3.
func (g *mixer) alpha() float64 { return math.Round(100*(0.5+0.8*g.Float64())) / 100 }

func (g *mixer) program() program.Program {
	base := &g.board.Bases[g.IntN(len(g.board.Bases))]
	p := program.Program{Base: base.Name}
	for range 1 + g.IntN(6) {
		p.Accesses = append(p.Accesses, g.access(8))
	}
	if g.chance(0.4) {
		p.Stateless = program.Stateless{}
		for range 1 + g.IntN(2) {
			kind := program.Kinds[g.IntN(len(program.Kinds))]
			if op := g.board.Stateless[kind].Value; op > 0 { // up to 1500 cycles of it
				p.Stateless[kind] = math.Ceil(g.log(0.02, 1) * 1500 / op)
			}
		}
	}
	if g.chance(0.25) && base.Locks && g.board.Locks.Memory != "" {
		g.lock(&p)
	}
	return p
}

// access draws one access line of at most n accesses a packet.
func (g *mixer) access(n float64) program.Access {
	swept := g.board.Swept()
	m := swept[g.IntN(len(swept))]
	e := &m.Engines[g.IntN(len(m.Engines))]
	ops := opsOf(e)
	a := program.Access{Memory: m.Name, Op: ops[g.IntN(len(ops))], Mode: e.Mode}
	switch {
	case e.Mode == program.Atomic && g.chance(0.85):
		a.Bytes = 4 << g.IntN(2)
	case g.chance(0.6):
		a.Bytes = 4 << g.IntN(6)
	default:
		a.Bytes = 4 * (1 + g.IntN(program.MaxBytes/4))
	}
	a.PerPacket = 1 + float64(g.IntN(int(n)))
	if g.chance(0.2) {
		a.PerPacket = math.Round(100*g.log(0.1, n)) / 100
	}
	switch x := g.Float64(); {
	case x < 0.5: // the default span
	case x < 0.6:
		a.Span = int64(g.log(1, 64))
	default:
		a.Span = int64(g.log(64, float64(m.Bytes)/program.MaxBytes))
	}
	if g.chance(0.3) {
		a.Popularity, a.Alpha = "zipf", g.alpha()
	}
	return a
}

// lock puts a lock into the program: its array, idiom, section and the flows
// that take it.
func (g *mixer) lock(p *program.Program) {
	l := program.Lock{Name: "lock", Elements: int(g.log(1, 1024)), Idiom: g.idioms[g.IntN(len(g.idioms))], Hash: g.chance(0.2)}
	for range g.IntN(3) {
		l.Section = append(l.Section, g.access(2))
	}
	p.Locks = []program.Lock{l}
	f := traffic.Flows{Count: int(g.log(1, 10000))}
	if g.chance(0.5) {
		f.Popularity, f.Alpha = "zipf", g.alpha()
	}
	p.Flows = &f
}

// opsOf lists the operations of an engine.
func opsOf(e *board.Engine) []program.Op {
	var ops []program.Op
	for _, op := range []program.Op{program.Read, program.Write, program.Add} {
		if e.Command(op) != nil {
			ops = append(ops, op)
		}
	}
	return ops
}

// idiomsOf lists the ways of taking a lock, beside the spin, that a board has.
func idiomsOf(b *board.Board) []program.Idiom {
	all := append(slices.Clone(idioms), program.Mutex)
	return slices.DeleteFunc(all, func(i program.Idiom) bool {
		p := program.Program{Locks: []program.Lock{{Name: "lock", Elements: 1, Idiom: i}}}
		return b.Locks.Memory == "" || b.Check(b.Resolve(p), 0, 0) != nil
	})
}
