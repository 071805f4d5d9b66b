package partition

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"nicprof/internal/fault"
)

// WriteLP writes p as a mixed integer program in the LP format that CBC, GLPK
// and others read, so that a plan can be held against theirs. The least value
// is the least objective. It needs a predictor that is a Demander.
//
// y_b_m: block b lies in memory m. x_b_m_g: group g of it is on the NIC.
// d_c_k, u_c_k: class c crosses to the host, to the NIC, before its k-th step.
func WriteLP(w io.Writer, p *Problem) error {
	d, ok := p.Predictor.(Demander)
	if !ok {
		return fault.Inputf("the performance model is not linear, so the problem is no linear program")
	}
	if len(p.Together) > 0 {
		return fault.Inputf("blocks that stay together are not written to linear programs")
	}
	in, err := prepare(p)
	if err != nil {
		return err
	}
	l := &lpWriter{in: in, w: bufio.NewWriter(w), rooms: in.rooms()}
	l.base, l.demand, l.back = d.Demands()
	l.objective()
	l.placement()
	l.capacities()
	l.rates()
	if p.PCIeGbps > 0 || slices.Max(l.back) > 0 {
		l.crossings()
	}
	l.binaries()
	return l.w.Flush()
}

type lpWriter struct {
	in     *instance
	w      *bufio.Writer
	rooms  [][]room
	base   []float64
	demand [][][]float64
	back   []float64
	rows   int
}

func (l *lpWriter) printf(format string, a ...any) { fmt.Fprintf(l.w, format, a...) }

func (l *lpWriter) row() {
	l.rows++
	l.printf("\nr%d:", l.rows)
}

// each calls f for every group that may be in a memory.
func (l *lpWriter) each(f func(b, m, g int, volume float64)) {
	for b, rooms := range l.rooms {
		for m := range rooms {
			l.of(b, m, f)
		}
	}
}

func (l *lpWriter) of(b, m int, f func(b, m, g int, volume float64)) {
	room, g := l.rooms[b][m], &l.in.blocks[b]
	if room.most == 0 {
		return
	}
	for at := room.first; at < g.live; at++ {
		f(b, m, int(g.order[at]), g.sorted[at])
	}
}

func (l *lpWriter) objective() {
	l.printf("Minimize\nobj: %.17g one", l.in.total)
	l.each(func(b, m, g int, volume float64) {
		l.printf("\n - %.17g x_%d_%d_%d", volume*l.in.p.Blocks[b].Instructions, b, m, g)
	})
	l.printf("\nSubject To")
	l.row()
	l.printf(" one = 1")
}

func (l *lpWriter) placement() {
	for b, rooms := range l.rooms {
		l.row()
		for m := range rooms {
			l.printf(" + y_%d_%d", b, m)
		}
		l.printf(" <= 1")
		for m, room := range rooms {
			if room.most == 0 {
				l.row()
				l.printf(" y_%d_%d = 0", b, m)
			}
		}
	}
	l.each(func(b, m, g int, _ float64) {
		l.row()
		l.printf(" x_%d_%d_%d - y_%d_%d <= 0", b, m, g, b, m)
	})
}

func (l *lpWriter) capacities() {
	p := l.in.p
	for m := range p.Memories {
		l.row()
		l.printf(" 0 one")
		for b := range p.Blocks {
			if _, bytes := p.Blocks[b].perGroup(); bytes > 0 {
				l.of(b, m, func(b, m, g int, _ float64) { l.printf("\n + %d x_%d_%d_%d", bytes, b, m, g) })
			}
		}
		l.printf(" <= %d", p.Memories[m].Bytes)
	}
	if p.TableEntries > 0 {
		l.row()
		l.printf(" 0 one")
		l.each(func(b, m, g int, _ float64) {
			if entries, _ := p.Blocks[b].perGroup(); p.Blocks[b].Table {
				l.printf("\n + %d x_%d_%d_%d", entries, b, m, g)
			}
		})
		l.printf(" <= %d", p.TableEntries)
	}
	for b := range p.Blocks {
		if p.Blocks[b].MaxEntries == 0 {
			continue
		}
		entries, _ := p.Blocks[b].perGroup()
		l.row()
		l.printf(" 0 one")
		for m := range p.Memories {
			l.of(b, m, func(b, m, g int, _ float64) { l.printf("\n + %d x_%d_%d_%d", entries, b, m, g) })
		}
		l.printf(" <= %d", p.Blocks[b].MaxEntries)
	}
}

// rates: base + Σ demand·V/rate + back·U/rate ≤ 1/rate, times the rate.
func (l *lpWriter) rates() {
	for r, us := range l.base {
		l.row()
		l.printf(" 0 one")
		l.each(func(b, m, g int, volume float64) {
			if d := l.demand[b][m][r]; d > 0 {
				l.printf("\n + %.17g x_%d_%d_%d", volume*d, b, m, g)
			}
		})
		if l.back[r] > 0 {
			l.eachStep(func(i, k int, mpps, _ float64) { l.printf("\n + %.17g u_%d_%d", mpps*l.back[r], i, k) })
		}
		l.printf(" <= %.17g", 1-l.in.rate*us)
	}
}

// eachStep calls f for every place where class i may change its side: before its
// k-th step, or at the end of its path.
func (l *lpWriter) eachStep(f func(i, k int, mpps, gbps float64)) {
	p := l.in.p
	for i := range p.Classes {
		c := &p.Classes[i]
		path := &p.Paths[c.Path]
		mpps := c.Mpps * l.in.scale
		if mpps == 0 {
			continue
		}
		for k := 0; k <= len(path.Blocks); k++ {
			if k < len(path.Blocks) || path.End != Dropped {
				f(i, k, mpps, gbps(mpps, c.Bytes))
			}
		}
	}
}

// crossings gives every such place a variable for each direction that is at
// least the change of side, and bounds what PCIe carries.
func (l *lpWriter) crossings() {
	p := l.in.p
	side := func(sign string, b int, g int32) {
		for m := range p.Memories {
			if room := l.rooms[b][m]; room.most > 0 && l.in.blocks[b].volume[g] <= l.in.blocks[b].sorted[room.first] &&
				l.in.blocks[b].volume[g] > 0 {
				l.printf(" %s x_%d_%d_%d", sign, b, m, g)
			}
		}
	}
	var loads [2][]string
	l.eachStep(func(i, k int, _, load float64) {
		c := &p.Classes[i]
		path := &p.Paths[c.Path]
		before := func(sign string) {
			if k > 0 {
				side(sign, path.Blocks[k-1], c.Groups[k-1])
			} else {
				l.printf(" %s one", sign)
			}
		}
		after := func(sign string) {
			switch {
			case k < len(path.Blocks):
				side(sign, path.Blocks[k], c.Groups[k])
			case path.End == Wire:
				l.printf(" %s one", sign)
			}
		}
		for way, name := range []string{"d", "u"} {
			l.row()
			l.printf(" %s_%d_%d", name, i, k)
			if way == 0 {
				before("-")
				after("+")
			} else {
				before("+")
				after("-")
			}
			l.printf(" >= 0")
			loads[way] = append(loads[way], fmt.Sprintf("\n + %.17g %s_%d_%d", load, name, i, k))
		}
	})
	if p.PCIeGbps == 0 {
		return
	}
	for _, terms := range loads {
		l.row()
		for _, s := range terms {
			l.printf("%s", s)
		}
		l.printf(" <= %.17g", p.PCIeGbps)
	}
}

func (l *lpWriter) binaries() {
	l.printf("\nBinary")
	for b, rooms := range l.rooms {
		for m := range rooms {
			l.printf("\ny_%d_%d", b, m)
		}
	}
	l.each(func(b, m, g int, _ float64) { l.printf("\nx_%d_%d_%d", b, m, g) })
	l.printf("\nEnd\n")
}
