package cora

import (
	"context"
	"fmt"
	"math"
	"slices"

	"nicprof/experiments"
	"nicprof/fit/hybrid"
	"nicprof/microbench"
	"nicprof/model"
	"nicprof/program"
	"nicprof/report"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "cora/table9", Paper: paper, Title: "table 9: which state accesses share a bottleneck", Run: table9,
	})
}

// expected is the paper's verdict on a pair (Cora, section 5.2), and the claim
// that the pair counts for: accesses of one memory share a bottleneck, unless
// they go through IMEM's two engines.
func expected(a, b model.Class) (verdict, claim string) {
	switch {
	case a.Memory != b.Memory:
		return model.Disjoint, "memories"
	case a.Mode == b.Mode:
		return model.Shared, "same-engine"
	case a.Memory == "imem":
		return model.Disjoint, "imem-modes"
	}
	return model.Shared, "emem-modes"
}

// inPaper reports whether the paper profiles such accesses: it has reads and
// writes, and no atomic adds.
func inPaper(c model.Class) bool { return c.Op == program.Read || c.Op == program.Write }

func table9(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("table9")
	if err != nil {
		return report.Result{}, err
	}
	b, err := newBench(env, "cora/table9")
	if err != nil {
		return report.Result{}, err
	}
	suite := "standard" // the quick suite has pairs of reads only
	if env.Scale == experiments.Full {
		suite = "full"
	}
	if err := b.plan(suite, []string{microbench.GroupPairs}, nil); err != nil {
		return report.Result{}, err
	}
	res, err := b.run(ctx)
	if err != nil {
		return res, err
	}
	found := hybrid.Decide(b.samples)

	res.Data.Columns = []string{"a", "b", "a_per_packet", "b_per_packet", "mpps", "shared_mpps", "disjoint_mpps", "verdict", "paper"}
	evidence := report.Table{Title: "Evidence by pair", Columns: []string{"a", "b", "verdict", "paper", "samples that tell", "error if shared, %", "error if disjoint, %", "note"}}
	count := map[string]*tally{}
	undecided := tally{}
	m := newMatrix(found.Pairs)
	for _, p := range found.Pairs {
		want, claim := expected(p.A, p.B)
		paper := want
		if !inPaper(p.A) || !inPaper(p.B) {
			paper = "–"
		}
		evidence.Add(p.A, p.B, p.Verdict, paper, p.N, p.HarmonicPct, p.MinPct, p.Note)
		cases := found.Cases[[2]model.Class{p.A, p.B}]
		for _, c := range cases {
			res.Data.Add(p.A, p.B, c.A.PerPacket, c.B.PerPacket, c.Measured, c.Harmonic, c.Min, p.Verdict, paper)
		}
		if paper == "–" {
			m.set(p, sharing(cases), false)
			continue
		}
		decided := p.Verdict != model.NotDecided
		undecided.add(!decided)
		m.set(p, sharing(cases), decided && p.Verdict != want)
		if decided {
			if count[claim] == nil {
				count[claim] = &tally{}
			}
			count[claim].add(p.Verdict == want)
		}
	}
	for id, n := range count {
		claims.measured(id, n.percent(), "")
	}
	claims.measured("undecided", undecided.percent(), "")
	res.Claims = claims
	res.Tables = []report.Table{evidence}
	res.Figure = report.Figure{
		Caption: "0: the slower of the two alone (disjoint), 1: weighted harmonic mean (shared); framed: another verdict than the paper's; blank: the two rules predict the same",
		Panels:  []report.Panel{{Matrix: m.Matrix}},
	}
	res.Notes = append([]string{
		"A pair is judged from its own samples and those of its accesses alone; no other measurement and no published number enters.",
		"The paper profiles reads and writes; atomic adds are ours and count for no claim.",
	}, found.Notes...)
	return res, nil
}

// tally counts how many of all agree.
type tally struct{ yes, all int }

func (t *tally) add(yes bool) {
	t.all++
	if yes {
		t.yes++
	}
}

func (t *tally) percent() float64 { return 100 * float64(t.yes) / float64(t.all) }

// sharing says where between the two rules the measured times a packet lie: 0
// at the disjoint one, 1 at the shared one; NaN if no case tells.
func sharing(cases []hybrid.Case) float64 {
	sum, n := 0.0, 0
	for _, c := range cases {
		if c.Discriminate {
			sum += (1/c.Measured - 1/c.Min) / (1/c.Harmonic - 1/c.Min)
			n++
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

// matrix is a report.Matrix by classes of access, upper triangle.
type matrix struct {
	*report.Matrix
	classes []model.Class
}

func newMatrix(pairs []model.Pair) matrix {
	m := matrix{Matrix: &report.Matrix{High: 1, LowText: "disjoint", HighText: "shared"}}
	for _, p := range pairs {
		for _, c := range []model.Class{p.A, p.B} {
			if !slices.Contains(m.classes, c) {
				m.classes = append(m.classes, c)
			}
		}
	}
	for _, c := range m.classes {
		name := fmt.Sprintf("%s %s %s", c.Memory, c.Op, c.Mode)
		m.Rows, m.Cols = append(m.Rows, name), append(m.Cols, name)
		blank := make([]float64, len(m.classes))
		for i := range blank {
			blank[i] = math.NaN()
		}
		m.Value, m.Mark = append(m.Value, blank), append(m.Mark, make([]bool, len(m.classes)))
	}
	return m
}

func (m matrix) set(p model.Pair, value float64, mark bool) {
	i, j := slices.Index(m.classes, p.A), slices.Index(m.classes, p.B)
	i, j = min(i, j), max(i, j)
	m.Value[i][j], m.Mark[i][j] = value, mark
}
