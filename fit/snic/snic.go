// Package snic fits the law of boards that run chains of network tasks: data
// path, scheduler, credit loop, and the latency of what a packet passes.
package snic

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/internal/stats"
	"nicprof/microbench"
	"nicprof/model"
	"nicprof/program"
)

// nothing is a time, µs, below which only rounding is left.
const nothing = 1e-9

// saturated is the utilisation from which on a resource is what limits a sample.
const saturated = 0.98

// Fit returns the law that samples of a sweep show, on a board whose description
// says what no sample does: the width of its data path, its regions and credits,
// the network tasks that it knows. A number that the samples do not show is not
// identified, with a note. Its error is an input fault: the samples lack what the
// law cannot do without.
func Fit(samples []microbench.Sample, b *board.Board) (*model.Chains, error) {
	f := b.FPGA
	c := &model.Chains{
		BeatBytes: int(f.BusBits.Value) / 8,
		Regions:   int(f.Regions.Count.Value),
		Credits:   int(f.Scheduler.Credits.Value),
	}
	for _, base := range b.Bases {
		if base.Name == board.PolicyPANIC {
			c.PerTask = append(c.PerTask, base.Name)
		}
	}
	for _, n := range f.NTs {
		c.NTs = append(c.NTs, f.StagesOf([]program.Stage{{Name: n.Name}})...)
	}
	for _, part := range []func(*model.Chains, []microbench.Sample) error{bus, latency, scheduler, credits, configuration} {
		if err := part(c, samples); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// bus fits the time of packets that the data path limits.
func bus(c *model.Chains, samples []microbench.Sample) error {
	var rows [][]float64
	var t []float64
	for i := range samples {
		if s := &samples[i]; s.Traffic.RateMpps == 0 && s.Utilisation["ingress"] >= saturated {
			rows = append(rows, []float64{math.Ceil(float64(s.Program.PacketBytes) / float64(c.BeatBytes)), 1})
			t = append(t, 1/s.Mpps)
		}
	}
	v, ok := least(rows, t)
	if !ok {
		return missing("packets of several sizes that the data path limits", microbench.GroupCredits)
	}
	c.BeatUS, c.GapUS = v[0], v[1]
	return nil
}

// latency fits the latency of packets that are alone.
func latency(c *model.Chains, samples []microbench.Sample) error {
	const columns = 4
	var rows [][]float64
	var t []float64
	for i := range samples {
		s := &samples[i]
		p := &s.Program
		if s.Traffic.RateMpps == 0 || s.DroppedMpps > 0 || p.Configure != "" {
			continue
		}
		cycles, skipped := 0, 0
		for _, nt := range p.Chain {
			switch {
			case nt.Skip:
				skipped++
			case p.Parallel:
				cycles = max(cycles, nt.Cycles)
			default:
				cycles += nt.Cycles
			}
		}
		rows = append(rows, []float64{1, float64(cycles), float64(c.Passes(p) - 1), float64(skipped)})
		t = append(t, s.Latency.P50)
	}
	// What never varies is not identified.
	var used []int
	for k := range columns {
		if slices.ContainsFunc(rows, func(r []float64) bool { return r[k] != 0 }) {
			used = append(used, k)
		}
	}
	for i, r := range rows {
		var own []float64
		for _, k := range used {
			own = append(own, r[k])
		}
		rows[i] = own
	}
	v, ok := least(rows, t)
	if !ok || len(used) < 2 || used[1] != 1 {
		return missing("packets alone in chains of several lengths", microbench.GroupChains)
	}
	all := [columns]model.Value{}
	for k, note := range map[int]string{2: "no sample has further passes", 3: "no sample passes a task by"} {
		all[k].Note = note
	}
	for i, k := range used {
		all[k] = v[i]
	}
	c.CoreUS, c.CycleUS, c.PassUS, c.SkipUS = all[0], all[1], all[2], all[3]
	return nil
}

// scheduler fits the time of a pass from packets that the scheduler limits.
func scheduler(c *model.Chains, samples []microbench.Sample) error {
	var rows [][]float64
	var t []float64
	for i := range samples {
		if s := &samples[i]; s.Traffic.RateMpps == 0 && s.Utilisation["scheduler"] >= saturated && s.Program.Credits >= enough {
			rows = append(rows, []float64{float64(c.Passes(&s.Program))})
			t = append(t, 1/s.Mpps)
		}
	}
	v, ok := least(rows, t)
	if !ok {
		return missing("packets with credits enough that the scheduler limits", microbench.GroupChains)
	}
	c.IntervalUS = v[0]
	return nil
}

// enough credits for packets not to come back to the scheduler for lack of them.
const enough = 256

// credits fits the credit loop: alone from one credit and packets of one beat,
// its stretch from the others that credits limit.
func credits(c *model.Chains, samples []microbench.Sample) error {
	type point struct {
		credits     int
		bytes, loop float64
	}
	var rows [][]float64
	var alone []float64
	var others []point
	for i := range samples {
		s := &samples[i]
		p := &s.Program
		if s.Traffic.RateMpps > 0 || s.Bottleneck != "credits" || len(p.Chain) != 1 || p.Credits == 0 {
			continue
		}
		loop := float64(p.Credits)/s.Mpps - float64(p.Chain[0].Cycles)*c.CycleUS.Value
		if p.Credits == 1 && p.PacketBytes <= c.BeatBytes {
			rows, alone = append(rows, []float64{1}), append(alone, loop)
		} else {
			others = append(others, point{p.Credits, float64(p.PacketBytes), loop})
		}
	}
	v, ok := least(rows, alone)
	if !ok {
		return missing("packets of one beat with one credit", microbench.GroupCredits)
	}
	c.LoopUS = v[0]
	if len(others) < 3 {
		c.AheadUS.Note, c.YieldUS.Note = "too few samples that credits limit", "too few samples that credits limit"
		return nil
	}
	cost := func(ahead, yield float64) float64 {
		c.AheadUS.Value, c.YieldUS.Value = ahead, yield
		sum := 0.0
		for _, q := range others {
			e := math.Log((c.LoopUS.Value + c.Stretch(q.credits, q.bytes)) / q.loop)
			sum += e * e
		}
		return sum
	}
	ahead, yield := search(cost, 2*c.LoopUS.Value)
	cost(ahead, yield)
	const note = "least squares of the samples that credits limit; no interval"
	c.AheadUS = model.Value{Value: ahead, Identified: true, Note: note}
	c.YieldUS = model.Value{Value: yield, Identified: true, Note: note}
	return nil
}

// search returns the minimum of a function of two numbers from 0 to most: a grid,
// and finer ones around its best point.
func search(f func(x, y float64) float64, most float64) (x, y float64) {
	const points = 24
	width := most
	x, y = most/2, most/2
	for width > most/1e4 {
		best := math.Inf(1)
		cx, cy := x, y
		for i := range points + 1 {
			for j := range points + 1 {
				u := max(0, cx+width*(float64(i)/points-.5))
				v := max(0, cy+width*(float64(j)/points-.5))
				if q := f(u, v); q < best {
					best, x, y = q, u, v
				}
			}
		}
		width /= 4
	}
	return x, y
}

// configuration fits how long regions serve nothing.
func configuration(c *model.Chains, samples []microbench.Sample) error {
	for how, v := range map[string]*model.Value{program.ConfigureRegion: &c.ConfigureUS, program.ContextSwitch: &c.SwitchUS} {
		var rows [][]float64
		var t []float64
		for i := range samples {
			if s := &samples[i]; s.Program.Configure == how && s.OutageUS > 0 {
				rows, t = append(rows, []float64{1}), append(t, s.OutageUS)
			}
		}
		if found, ok := least(rows, t); ok {
			*v = found[0]
		} else {
			v.Note = "no sample configures a region so"
		}
	}
	return nil
}

func missing(what, group string) error {
	return fault.Inputf("the samples have no %s: measure group %s of the sweep too", what, group)
}

// least fits t = rows · v by least squares of the relative error, with 95 %
// intervals by the residuals; false if the rows do not determine v.
func least(rows [][]float64, t []float64) ([]model.Value, bool) {
	if len(rows) == 0 || len(rows) < len(rows[0]) {
		return nil, false
	}
	n, k := len(rows), len(rows[0])
	a := mat.NewDense(n, k, nil)
	y := mat.NewVecDense(n, nil)
	for i, r := range rows {
		for j, x := range r {
			a.Set(i, j, x/t[i])
		}
		y.SetVec(i, 1)
	}
	var qr mat.QR
	qr.Factorize(a)
	var v mat.VecDense
	if qr.Cond() > 1e10 || qr.SolveVecTo(&v, false, y) != nil {
		return nil, false
	}
	var e mat.VecDense
	e.MulVec(a, &v)
	e.SubVec(&e, y)
	var inverse mat.Dense
	var normal mat.Dense
	normal.Mul(a.T(), a)
	spread := 0.0
	if df := n - k; df > 0 && inverse.Inverse(&normal) == nil {
		spread = stats.TQuantile(df) * math.Sqrt(mat.Dot(&e, &e)/float64(df))
	}
	out := make([]model.Value, k)
	for j := range out {
		half := 0.0
		if spread > 0 {
			half = spread * math.Sqrt(max(0, inverse.At(j, j)))
		}
		x := v.AtVec(j)
		if x < nothing {
			x = 0
		}
		if half < nothing {
			half = 0
		}
		out[j] = model.Value{Value: x, Low: max(0, x-half), High: x + half, Identified: true}
	}
	return out, true
}

// HeldOut returns the error of predictions of samples by a law fitted without
// those of their packet size and credits, and how many samples there are.
func HeldOut(samples []microbench.Sample, b *board.Board, predict func(*model.Chains, *microbench.Sample) (float64, error)) (model.RuleError, error) {
	type fold struct{ bytes, credits int }
	folds := map[fold][]microbench.Sample{}
	var order []fold
	for _, s := range samples {
		if s.Traffic.RateMpps > 0 {
			continue
		}
		k := fold{s.Program.PacketBytes, s.Program.Credits}
		if folds[k] == nil {
			order = append(order, k)
		}
		folds[k] = append(folds[k], s)
	}
	slices.SortFunc(order, func(x, y fold) int {
		return cmp.Or(cmp.Compare(x.bytes, y.bytes), cmp.Compare(x.credits, y.credits))
	})
	var errs []float64
	for _, k := range order {
		rest := slices.DeleteFunc(slices.Clone(samples), func(s microbench.Sample) bool {
			return s.Traffic.RateMpps == 0 && s.Program.PacketBytes == k.bytes && s.Program.Credits == k.credits
		})
		c, err := Fit(rest, b)
		if err != nil {
			continue // the law needs this fold
		}
		for i := range folds[k] {
			got, err := predict(c, &folds[k][i])
			if err != nil {
				return model.RuleError{}, fmt.Errorf("sample %s: %w", folds[k][i].Key, err)
			}
			errs = append(errs, 100*math.Abs(got/folds[k][i].Mpps-1))
		}
	}
	r := model.RuleError{Rule: model.RuleResources, N: len(errs)}
	if len(errs) > 0 {
		sum := 0.0
		for _, e := range errs {
			sum += e
		}
		sorted := stats.Sorted(errs)
		r.MeanPct, r.P95Pct, r.MaxPct = sum/float64(len(errs)), sorted.Percentile(95), slices.Max(errs)
	}
	return r, nil
}
