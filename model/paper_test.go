package model

import (
	"math"
	"testing"

	"nicprof/program"
	"nicprof/traffic"
)

func TestCurvesOfTheOwnBaseAreUsed(t *testing.T) {
	m := published()
	forward := m.Bases[0]
	forward.Name = "forward"
	m.Bases = append(m.Bases, forward)
	p := program.Program{Base: "profiling", Accesses: []program.Access{anAccess("imem", program.Write, program.Atomic, 32, 10, 0)}}
	before, err := m.Predict(p, traffic.Traffic{}, Options{Rule: RuleCommon})
	if err != nil {
		t.Fatal(err)
	}
	other := m.Rooflines[5] // imem, write, atomic, 32 B
	other.Base, other.C.Value = "forward", other.C.Value/3
	with := published()
	with.Bases = m.Bases
	with.Rooflines = append([]Roofline{other}, with.Rooflines...)
	after, err := with.Predict(p, traffic.Traffic{}, Options{Rule: RuleCommon})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(after.Mpps/before.Mpps-1) > 1e-12 {
		t.Errorf("a curve of another base moved the prediction from %v to %v Mpps", before.Mpps, after.Mpps)
	}
	p.Base = "forward"
	own, err := with.Predict(p, traffic.Traffic{}, Options{Rule: RuleCommon})
	if err != nil {
		t.Fatal(err)
	}
	if own.Mpps < 1.5*before.Mpps {
		t.Errorf("base forward: %v Mpps, not by its own curve, whose access takes a third of that on profiling (%v Mpps)", own.Mpps, before.Mpps)
	}
}

// The interval of whatever bounds a prediction is the prediction's, and the
// model's own errors stand in where a rule was not judged on samples held out.
func TestIntervalsCarryThrough(t *testing.T) {
	within := func(v, rel float64) Value {
		return Value{Value: v, Low: v * (1 - rel), High: v * (1 + rel), Identified: true}
	}
	m := published()
	m.Bases[0].BareMpps = within(25, 0.01)
	m.Bases[0].CoreUS, m.Bases[0].AccessUS = within(1.9, 0.02), within(0.05, 0.02)
	r := &m.Rooflines[2] // emem, read, bulk, 4 B
	r.A, r.C, r.Roof = within(0.041, 0.03), within(0.001, 0.03), within(200, 0.04)
	p := func(i float64) program.Program {
		return program.Program{Base: "profiling", Accesses: []program.Access{anAccess("emem", program.Read, program.Bulk, 4, i, 1<<23)}}
	}
	for _, c := range []struct {
		name  string
		i     float64
		cores int
		want  float64
	}{
		{"bare rate", 0, 0, 0.01}, {"cores", 2, 4, 0.02}, {"curve", 2, 0, 0.03}, {"roof", 25, 0, 0.04},
	} {
		for _, mape := range []float64{0, 2} {
			m.Quality.MAPE = mape
			got, err := m.Predict(p(c.i), traffic.Traffic{}, Options{Rule: RuleCommon, Cores: c.cores})
			if err != nil {
				t.Fatal(err)
			}
			want := math.Hypot(c.want, 0.01*meanTo95*mape)
			if math.Abs(math.Log(got.High/got.Mpps)/want-1) > 1e-6 || math.Abs(math.Log(got.Mpps/got.Low)/want-1) > 1e-6 {
				t.Errorf("%s, mean error %g %%: %.3f Mpps [%.3f, %.3f], want ± %.4f", c.name, mape, got.Mpps, got.Low, got.High, want)
			}
		}
	}
}
