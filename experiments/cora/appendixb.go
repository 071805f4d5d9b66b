package cora

import (
	"context"
	"fmt"
	"slices"

	"nicprof/experiments"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/report"
	"nicprof/traffic"
)

func init() {
	experiments.Register(experiments.Figure{
		ID: "cora/appendix-b", Paper: paper, Title: "appendix B: performance model of BlueField-2", Run: appendixB,
	})
}

// levels of the BlueField-2's memories, as its board file names them.
var levels = []string{"l1", "l2", "llc", "dram"}

// socAccess is a curve of appendix B: one kind of access by its number a packet.
type socAccess struct {
	panel, name string
	style       int
	access      program.Access
	index       []int // of the samples
}

// socAccesses lists the curves: loads and stores of a line by level, and atomics
// of a word on state of a core's own, on a table that all cores share and on one
// counter.
func socAccesses() []socAccess {
	var all []socAccess
	add := func(panel, name, memory string, op program.Op, mode program.Mode, bytes int, span int64) {
		style := 0
		for _, x := range all {
			if x.panel == panel {
				style++
			}
		}
		all = append(all, socAccess{panel: panel, name: name, style: style, access: program.Access{Memory: memory, Op: op, Mode: mode, Bytes: bytes, Span: span}})
	}
	for _, op := range []program.Op{program.Read, program.Write} {
		for _, level := range levels {
			add("bulk "+string(op)+", 64 B", level, level, op, program.Bulk, 64, 0)
		}
	}
	const atomics = "atomic, 8 B"
	add(atomics, "add, l1: a core's own table", "l1", program.Add, program.Atomic, 8, 0)
	add(atomics, "read, llc: a shared table", "llc", program.Read, program.Atomic, 8, 0)
	add(atomics, "write, llc: a shared table", "llc", program.Write, program.Atomic, 8, 0)
	add(atomics, "add, llc: a shared table", "llc", program.Add, program.Atomic, 8, 0)
	add(atomics, "add, one shared counter", "llc", program.Add, program.Atomic, 8, 1)
	return all
}

// manyLocks are more locks than any scan of them has, a flow each.
const manyLocks = 1024

func socLocked(idiom program.Idiom, k int) program.Program {
	return program.Program{
		Locks: []program.Lock{{Name: "lock", Elements: k, Idiom: idiom}},
		Flows: &traffic.Flows{Count: manyLocks},
	}
}

// times returns a program of n accesses a packet.
func times(a program.Access, n float64) program.Program {
	a.PerPacket = n
	return program.Program{Accesses: []program.Access{a}}
}

func appendixB(ctx context.Context, env experiments.Env) (report.Result, error) {
	claims, err := readClaims("appendixb")
	if err != nil {
		return report.Result{}, err
	}
	b, err := newBenchOn(env, "cora/appendix-b", socBoard)
	if err != nil {
		return report.Result{}, err
	}
	intensities, elements, suite := []float64{1, 4, 10, 16, 25}, []int{1, 2, 4, 8, 16, 64, manyLocks}, "quick"
	if env.Scale == experiments.Full {
		intensities = nil
		for _, i := range every(1, 2, 25) {
			intensities = append(intensities, float64(i))
		}
		elements = append(every(1, 1, 16), 24, 32, 48, 64, 128, 256, manyLocks)
		suite = "standard"
	}

	curves := socAccesses()
	for i := range curves {
		c := &curves[i]
		for _, n := range intensities {
			c.index = append(c.index, b.add(fmt.Sprintf("%s %s, %g", c.panel, c.name, n), times(c.access, n)))
		}
	}
	locks := map[program.Idiom][]int{}
	for _, idiom := range idioms {
		for _, k := range elements {
			locks[idiom] = append(locks[idiom], b.add(fmt.Sprintf("%s, %d locks", idiom, k), socLocked(idiom, k)))
		}
	}
	ask := planSoC(b)
	bare := ask.index["64 B frames"]
	if err := b.plan(suite, []string{microbench.GroupPairs}, nil); err != nil {
		return report.Result{}, err
	}
	res, err := b.run(ctx)
	if err != nil {
		return res, err
	}

	res.Data.Columns = []string{"panel", "curve", "x", "mpps", "mpps_low", "mpps_high", "bottleneck"}
	var panels []report.Panel
	for _, c := range curves {
		if len(panels) == 0 || panels[len(panels)-1].Title != c.panel {
			panels = append(panels, report.Panel{
				Title: c.panel, X: report.Axis{Label: "accesses", Unit: "per packet"}, Y: report.Axis{Label: "throughput", Unit: "Mpps"},
			})
		}
		p := &panels[len(panels)-1]
		p.Series = append(p.Series, b.series(&res.Data, c.panel, c.name, c.style, intensities, c.index))
	}
	ways := report.Panel{
		Title: "locks", X: report.Axis{Label: "locks, equally popular", Log: true}, Y: report.Axis{Label: "throughput", Unit: "Mpps", Log: true},
	}
	counts := make([]float64, len(elements))
	for i, k := range elements {
		counts[i] = float64(k)
	}
	for n, idiom := range idioms {
		name := string(idiom) + " lock"
		if idiom == program.None {
			name = "lock-free"
		}
		ways.Series = append(ways.Series, b.series(&res.Data, "locks", name, n, counts, locks[idiom]))
	}
	matrix, pairs := interference(b, 1/b.samples[bare].Mpps, &res.Data)

	ask.claim(claims, b)
	ratio := func(idiom program.Idiom, i, j int) float64 {
		return b.samples[locks[idiom][i]].Mpps / b.samples[locks[program.Spin][j]].Mpps
	}
	most := len(elements) - 1
	one, many := b.samples[locks[program.Spin][0]], b.samples[locks[program.Spin][most]]
	claims.measured("one-lock", one.Mpps, "")
	claims.measured("locks", many.Mpps, "")
	claims.measured("lock-free", b.samples[locks[program.None][most]].Mpps, "")
	claims.measured("knee", many.Mpps/one.Mpps, "")
	ticket := locks[program.Ticket]
	claims.measured("knee-ticket", b.samples[ticket[most]].Mpps/b.samples[ticket[0]].Mpps, "")
	claims.measured("ticket", ratio(program.Ticket, 0, 0), "")
	claims.measured("sleep-1000", ratio("sleep-1000", 0, 0), "")

	res.Claims = claims
	res.Tables = []report.Table{ask.table(b), pairs}
	res.Figure = report.Figure{
		Columns: 2,
		Caption: "the appendix's values are not public. Pairs: time of both accesses over the sum of each alone, base time apart",
		Panels:  append(panels, ways, report.Panel{Title: "interference of pairs", Matrix: matrix}),
	}
	res.Notes = []string{
		"No number of the appendix is in the public text, so no rate here is held against the paper. Latencies, bandwidths and cycles of the board file are general knowledge and stand there as ranges; the curves follow from their middles.",
		"A level's table is as large as half of it, DRAM's five times the last level. Tables in l1 are each core's own, in l2 each tile's, in llc and dram all cores'.",
		fmt.Sprintf("The knee lies near the number of cores, for no more than %g packets can wait at locks; on the Netronome card 432 contexts wait, and it lies at about 52 locks (cora/fig9).", b.driver.Board().Cores.Value),
		"A load and a store of plain state cost a core the same. All cores together store more slowly than they load where lines have to move: between tiles in llc, back to the DRAM in dram. There is no engine that prefers one of them, as on the Netronome card.",
		"A core runs its packets to completion, so that the times of its accesses add up (1). Pairs are slower than that where their tables compete for a cache, and faster where one's latency hides the other's work.",
	}
	return res, nil
}

// interference compares the time that pairs of accesses take of a packet with the
// sum of what each takes alone. bare is the time of a packet without accesses, us.
func interference(b *bench, bare float64, data *report.Data) (*report.Matrix, report.Table) {
	alone := map[program.Access]float64{}
	var pairs []microbench.Sample
	var names []string
	name := func(a program.Access) string { return fmt.Sprintf("%s %s %s", a.Memory, a.Op, a.Mode) }
	for _, s := range b.samples {
		switch list := s.Program.Accesses; {
		case s.Group != microbench.GroupPairs:
		case len(list) == 1:
			alone[list[0]] = 1/s.Mpps - bare
			if !slices.Contains(names, name(list[0])) {
				names = append(names, name(list[0]))
			}
		default:
			pairs = append(pairs, s)
		}
	}
	m := &report.Matrix{Rows: names, Cols: names, Low: 0.5, High: 2, LowText: "hidden", HighText: "twice as slow"}
	count := make([][]float64, len(names))
	for i := range names {
		m.Value, m.Mark = append(m.Value, make([]float64, len(names))), append(m.Mark, make([]bool, len(names)))
		count[i] = make([]float64, len(names))
	}
	t := report.Table{Title: "Pairs of accesses, Mpps", Columns: []string{"a", "b", "together", "if times add up", "time over sum"}}
	for _, s := range pairs {
		x, y := s.Program.Accesses[0], s.Program.Accesses[1]
		sum := bare + alone[x] + alone[y]
		factor := (1/s.Mpps - bare) / (sum - bare)
		i, j := slices.Index(names, name(x)), slices.Index(names, name(y))
		i, j = min(i, j), max(i, j)
		m.Value[i][j] += factor
		count[i][j]++
		t.Add(fmt.Sprintf("%g× %s", x.PerPacket, name(x)), fmt.Sprintf("%g× %s", y.PerPacket, name(y)), s.Mpps, 1/sum, factor)
		data.Add("pairs", name(x)+" + "+name(y), x.PerPacket, s.Mpps, s.Low, s.High, s.Bottleneck)
	}
	for i := range m.Value {
		for j := range m.Value[i] {
			m.Value[i][j] /= count[i][j] // NaN where there is none
		}
	}
	return m, t
}

// series draws samples over x and adds them to the data.
func (b *bench) series(data *report.Data, panel, name string, style int, x []float64, index []int) report.Series {
	s := report.Series{Name: name, Style: style}
	for n, i := range index {
		p := b.point(x[n], i)
		s.Points = append(s.Points, p)
		data.Add(panel, name, p.X, p.Y, p.Low, p.High, b.samples[i].Bottleneck)
	}
	return s
}

// socQuestions are the single measurements that appendix B's claims need.
type socQuestions struct {
	index map[string]int
	order []string
}

func planSoC(b *bench) socQuestions {
	q := socQuestions{index: map[string]int{}}
	ask := func(name string, p program.Program, cores int) {
		q.index[name] = b.addOn(name, p, cores)
		q.order = append(q.order, name)
	}
	ask("64 B frames, base of 100 cycles", program.Program{Base: "100"}, 0)
	ask("1500 B frames", program.Program{PacketBytes: 1500}, 0)
	ask("64 B frames", program.Program{}, 0)
	for _, level := range []string{"l1", "dram"} {
		for _, op := range []program.Op{program.Read, program.Write} {
			for _, cores := range []int{1, 0} {
				a := program.Access{Memory: level, Op: op, Mode: program.Bulk, Bytes: 64}
				ask(fmt.Sprintf("10 %s %ss on %s", level, op, socCores(cores)), times(a, 10), cores)
			}
		}
	}
	add := program.Access{Memory: "llc", Op: program.Add, Mode: program.Atomic, Bytes: 8, Span: 1}
	for _, cores := range []int{1, 0} {
		ask("10 additions to one counter on "+socCores(cores), times(add, 10), cores)
	}
	return q
}

func socCores(n int) string {
	if n == 0 {
		return "all cores"
	}
	return "one core"
}

func (q socQuestions) claim(claims claims, b *bench) {
	mpps := func(name string) float64 { return b.samples[q.index[name]].Mpps }
	claims.measured("line-64", mpps("64 B frames, base of 100 cycles"), "")
	claims.measured("line-1500", mpps("1500 B frames"), "")
	claims.measured("forward", mpps("64 B frames"), "")
	claims.measured("dram-reads", mpps("10 dram reads on all cores"), "")
	claims.measured("dram-reads-core", mpps("10 dram reads on one core"), "")
	claims.measured("write-l1", mpps("10 l1 writes on one core")/mpps("10 l1 reads on one core"), "")
	claims.measured("write-dram", mpps("10 dram writes on one core")/mpps("10 dram reads on one core"), "")
	claims.measured("write-dram-all", mpps("10 dram writes on all cores")/mpps("10 dram reads on all cores"), "")
	claims.measured("counter", 10*mpps("10 additions to one counter on all cores"), "")
	claims.measured("counter-core", 10*mpps("10 additions to one counter on one core"), "")
}

func (q socQuestions) table(b *bench) report.Table {
	t := report.Table{Title: "Single measurements", Columns: []string{"program", "Mpps", "from", "to", "bottleneck"}}
	for _, name := range q.order {
		s := b.samples[q.index[name]]
		t.Add(name, s.Mpps, s.Low, s.High, s.Bottleneck)
	}
	return t
}
