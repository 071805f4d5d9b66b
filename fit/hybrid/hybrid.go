// Package hybrid decides from measurements of two accesses together which of
// them share a bottleneck (Cora, section 5.2): if they do, their throughput is
// the weighted harmonic mean of each alone at the same total intensity; if they
// do not, the slower of each at its own intensity. The decision rests on the
// pair samples alone, with both predictions and their errors as evidence.
package hybrid

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"nicprof/microbench"
	"nicprof/model"
	"nicprof/program"
)

// Case is one pair sample with what both hypotheses expect of it.
type Case struct {
	A, B         program.Access
	Measured     float64 // Mpps
	Harmonic     float64
	Min          float64
	HarmonicPct  float64 // error, per cent of the measured
	MinPct       float64
	Discriminate bool // the hypotheses differ by more than the noise
}

// Result is the interference matrix with its evidence.
type Result struct {
	Pairs []model.Pair
	Cases map[[2]model.Class][]Case // by pair, A before B in the order of Pairs
	Tree  []model.Group
	Notes []string
}

const (
	// apart is the least relative difference between the hypotheses at which a
	// sample says something.
	apart = 0.04
	// clear is the ratio of errors from which the better hypothesis holds.
	clear = 2
	// poor is the error, per cent, at which even the better one explains
	// nothing.
	poor = 20
)

func classOf(a program.Access) model.Class {
	return model.Class{Memory: a.Memory, Op: a.Op, Mode: a.Mode}
}

// alone identifies a single-access measurement.
type alone struct {
	access program.Access // with PerPacket
	base   string
	cores  int
}

func single(s *microbench.Sample, a program.Access) alone {
	return alone{a, s.Program.Base, s.Cores}
}

// Decide reads the pair group: samples of two accesses, and of each alone at
// its own and at the total intensity. A pair without those is not decided.
func Decide(samples []microbench.Sample) Result {
	r := Result{Cases: map[[2]model.Class][]Case{}}
	rate := map[alone]float64{}
	var order [][2]model.Class
	for i := range samples {
		s := &samples[i]
		if s.Group == microbench.GroupPairs && plain(s) && len(s.Program.Accesses) == 1 {
			rate[single(s, s.Program.Accesses[0])] = s.Mpps
		}
	}
	for i := range samples {
		s := &samples[i]
		if s.Group != microbench.GroupPairs || !plain(s) || len(s.Program.Accesses) != 2 {
			continue
		}
		a, b := s.Program.Accesses[0], s.Program.Accesses[1]
		key := [2]model.Class{classOf(a), classOf(b)}
		back := [2]model.Class{key[1], key[0]}
		if _, ok := r.Cases[back]; ok && key != back {
			key, a, b = back, b, a
		}
		if _, ok := r.Cases[key]; !ok {
			order = append(order, key)
			r.Cases[key] = nil
		}
		total := a.PerPacket + b.PerPacket
		wholeA, wholeB := a, b
		wholeA.PerPacket, wholeB.PerPacket = total, total
		ownA, okA := rate[single(s, a)]
		ownB, okB := rate[single(s, b)]
		allA, okTA := rate[single(s, wholeA)]
		allB, okTB := rate[single(s, wholeB)]
		if !(okA && okB && okTA && okTB) || s.Mpps <= 0 {
			continue
		}
		c := Case{A: a, B: b, Measured: s.Mpps, Min: min(ownA, ownB)}
		c.Harmonic = total / (a.PerPacket/allA + b.PerPacket/allB)
		c.HarmonicPct, c.MinPct = 100*(c.Harmonic/s.Mpps-1), 100*(c.Min/s.Mpps-1)
		c.Discriminate = math.Abs(c.Harmonic/c.Min-1) > max(apart, (s.High-s.Low)/s.Mpps)
		r.Cases[key] = append(r.Cases[key], c)
	}
	for _, key := range order {
		r.Pairs = append(r.Pairs, judge(key, r.Cases[key]))
	}
	r.tree()
	return r
}

func plain(s *microbench.Sample) bool {
	return s.Status == microbench.StatusOK && len(s.Program.Locks) == 0 && len(s.Program.Stateless) == 0
}

func judge(key [2]model.Class, cases []Case) model.Pair {
	p := model.Pair{A: key[0], B: key[1], Verdict: model.NotDecided}
	for _, c := range cases {
		if c.Discriminate {
			p.N++
			p.HarmonicPct += math.Abs(c.HarmonicPct)
			p.MinPct += math.Abs(c.MinPct)
		}
	}
	switch {
	case len(cases) == 0:
		p.Note = "not measured: each access alone at its own and at the total intensity is needed beside the pair"
		return p
	case p.N == 0:
		p.Note = "both rules predict the same within the noise"
		return p
	}
	p.HarmonicPct /= float64(p.N)
	p.MinPct /= float64(p.N)
	worse, better := max(p.HarmonicPct, p.MinPct), min(p.HarmonicPct, p.MinPct)
	const least = 0.1 // per cent, below which errors do not differ
	p.Margin = worse / max(better, least)
	switch {
	case better > poor:
		p.Note = fmt.Sprintf("neither rule holds: errors of %.0f and %.0f %%", p.HarmonicPct, p.MinPct)
	case p.Margin < clear:
		p.Note = fmt.Sprintf("the errors of both rules differ by less than a factor of %d", clear)
	case p.HarmonicPct < p.MinPct:
		p.Verdict = model.Shared
	default:
		p.Verdict = model.Disjoint
	}
	return p
}

// tree joins engines that share a bottleneck into leaves. Accesses through the
// same engine are always together, as it is the engine that they share.
func (r *Result) tree() {
	var engines []string
	leaf := map[string]int{}
	at := func(c model.Class) string {
		e := c.Engine()
		if _, ok := leaf[e]; !ok {
			leaf[e] = len(engines)
			engines = append(engines, e)
		}
		return e
	}
	votes := map[[2]string][2]int{} // shared, disjoint
	for _, p := range r.Pairs {
		a, b := at(p.A), at(p.B)
		key := [2]string{min(a, b), max(a, b)}
		v := votes[key]
		switch p.Verdict {
		case model.Shared:
			v[0]++
		case model.Disjoint:
			v[1]++
		}
		votes[key] = v
	}
	slices.Sort(engines)
	for i, e := range engines {
		leaf[e] = i
	}
	for i, a := range engines {
		for _, b := range engines[i+1:] {
			v := votes[[2]string{a, b}]
			if v[0] > 0 && v[1] > 0 {
				r.Notes = append(r.Notes, fmt.Sprintf("%s and %s: %d pairs share a bottleneck, %d do not; the majority counts", a, b, v[0], v[1]))
			}
			if v[0] > v[1] {
				from, to := leaf[b], leaf[a]
				for e, l := range leaf {
					if l == from {
						leaf[e] = to
					}
				}
			}
		}
		if v := votes[[2]string{a, a}]; v[1] > v[0] {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: accesses through the same engine look independent in %d of %d pairs", a, v[1], v[0]+v[1]))
		}
	}
	for i, e := range engines {
		if leaf[e] != i && slices.ContainsFunc(engines[:i], func(o string) bool { return leaf[o] == leaf[e] }) {
			continue
		}
		var members []string
		for _, o := range engines {
			if leaf[o] == leaf[e] {
				members = append(members, o)
			}
		}
		r.Tree = append(r.Tree, model.Group{Name: name(members), Engines: members})
	}
}

// name is a leaf's name: its memory's where the leaf is several engines of one.
func name(members []string) string {
	if len(members) == 1 {
		return members[0]
	}
	memory, _, _ := strings.Cut(members[0], ".")
	for _, m := range members[1:] {
		if other, _, _ := strings.Cut(m, "."); other != memory {
			return strings.Join(members, "+")
		}
	}
	return memory
}

// Matrix returns the verdicts as a table: a header of classes, and a row for
// each with one cell a column, the lower triangle empty. Cells read "harmonic",
// "min", "?" (not decided) or "-" (not measured).
func Matrix(pairs []model.Pair) (header []string, rows [][]string) {
	var classes []model.Class
	cell := map[[2]model.Class]string{}
	for _, p := range pairs {
		for _, c := range []model.Class{p.A, p.B} {
			if !slices.Contains(classes, c) {
				classes = append(classes, c)
			}
		}
		text := "?"
		switch p.Verdict {
		case model.Shared:
			text = "harmonic"
		case model.Disjoint:
			text = "min"
		}
		cell[[2]model.Class{p.A, p.B}], cell[[2]model.Class{p.B, p.A}] = text, text
	}
	for _, c := range classes {
		header = append(header, c.String())
	}
	for i, a := range classes {
		row := []string{a.String()}
		for j, b := range classes {
			text := ""
			if j >= i {
				if text = cell[[2]model.Class{a, b}]; text == "" {
					text = "-"
				}
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return header, rows
}
