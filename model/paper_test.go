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
