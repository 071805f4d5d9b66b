package hybrid

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nicprof/microbench"
	"nicprof/model"
	"nicprof/program"
)

// machine is a bottleneck law: each class takes us of its server, on top of a
// base of bare us a packet that no server sees.
type machine struct {
	server map[model.Class]string
	us     map[model.Class]float64
	bare   float64
}

func (m machine) mpps(p program.Program) float64 {
	busy := map[string]float64{}
	worst := m.bare
	for _, a := range p.Accesses {
		s := m.server[classOf(a)]
		busy[s] += a.PerPacket * m.us[classOf(a)]
		worst = max(worst, busy[s])
	}
	return 1 / worst
}

// sweep measures what the pair group of a plan has: each class alone and every
// pair, at three splits of 24 accesses.
func (m machine) sweep(classes []model.Class, noise func() float64) []microbench.Sample {
	var out []microbench.Sample
	add := func(as ...program.Access) {
		p := program.Program{Base: "profiling", Accesses: as}
		v := m.mpps(p) * noise()
		out = append(out, microbench.Sample{Group: microbench.GroupPairs, Status: microbench.StatusOK, Program: p, Cores: 54, Mpps: v, Low: v * 0.995, High: v * 1.005})
	}
	of := func(c model.Class, n float64) program.Access {
		return program.Access{Memory: c.Memory, Op: c.Op, Mode: c.Mode, Bytes: 32, PerPacket: n, Span: 8192}
	}
	for _, c := range classes {
		for _, n := range []float64{6, 12, 18, 24} {
			add(of(c, n))
		}
	}
	for i, a := range classes {
		for _, b := range classes[i:] {
			for _, n := range []float64{6, 12, 18} {
				add(of(a, n), of(b, 24-n))
			}
		}
	}
	return out
}

var nfp = []model.Class{
	{Memory: "imem", Op: program.Read, Mode: program.Bulk}, {Memory: "imem", Op: program.Write, Mode: program.Bulk},
	{Memory: "imem", Op: program.Read, Mode: program.Atomic}, {Memory: "imem", Op: program.Write, Mode: program.Atomic},
	{Memory: "emem", Op: program.Read, Mode: program.Bulk}, {Memory: "emem", Op: program.Write, Mode: program.Bulk},
	{Memory: "emem", Op: program.Read, Mode: program.Atomic}, {Memory: "emem", Op: program.Write, Mode: program.Atomic},
}

// cora is the structure behind Cora's Table 9: IMEM's engines apart, EMEM's
// behind one front.
func cora(c model.Class) string {
	if c.Memory == "emem" {
		return "emem"
	}
	return c.Engine()
}

func quiet() float64 { return 1 }

func TestTable9FromPairsAlone(t *testing.T) {
	m := machine{server: map[model.Class]string{}, us: map[model.Class]float64{}, bare: 0.04}
	for i, c := range nfp {
		m.server[c], m.us[c] = cora(c), 0.005+0.001*float64(i)
	}
	r := Decide(m.sweep(nfp, quiet))
	if len(r.Pairs) != len(nfp)*(len(nfp)+1)/2 {
		t.Fatalf("%d pairs", len(r.Pairs))
	}
	for _, p := range r.Pairs {
		want := model.Disjoint
		if cora(p.A) == cora(p.B) {
			want = model.Shared
		}
		if p.Verdict != want {
			t.Errorf("%s with %s: %s (%+v), want %s", p.A, p.B, p.Verdict, p, want)
		}
	}
	var leaves []string
	for _, g := range r.Tree {
		leaves = append(leaves, g.Name+"="+strings.Join(g.Engines, "+"))
	}
	if want := []string{"emem=emem.atomic+emem.bulk", "imem.atomic=imem.atomic", "imem.bulk=imem.bulk"}; !slices.Equal(leaves, want) {
		t.Errorf("tree %v, want %v", leaves, want)
	}
	header, rows := Matrix(r.Pairs)
	if len(header) != len(nfp) || len(rows) != len(nfp) || rows[0][1] != "harmonic" || rows[0][3] != "min" || rows[3][1] != "" {
		t.Errorf("matrix %v %v", header, rows)
	}
}

// Any assignment of engines to servers and any times: what is decided is right,
// under 1 % noise.
func TestDecidesRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := machine{server: map[model.Class]string{}, us: map[model.Class]float64{}, bare: 0.02}
		server := map[string]string{}
		for _, c := range nfp {
			if _, ok := server[c.Engine()]; !ok {
				server[c.Engine()] = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "server")
			}
			m.server[c], m.us[c] = server[c.Engine()], rapid.Float64Range(0.002, 0.02).Draw(t, "us")
		}
		noise := func() float64 { return 1 + 0.01*rapid.Float64Range(-1, 1).Draw(t, "noise") }
		for _, p := range Decide(m.sweep(nfp, noise)).Pairs {
			shared := m.server[p.A] == m.server[p.B]
			if p.Verdict == model.Shared && !shared || p.Verdict == model.Disjoint && shared {
				t.Fatalf("%s with %s: %+v; they share: %v", p.A, p.B, p, shared)
			}
			if p.Verdict == model.NotDecided && p.Note == "" {
				t.Fatalf("%s with %s is not decided without a reason", p.A, p.B)
			}
		}
	})
}

// Two accesses that never leave the packet-I/O ceiling tell nothing.
func TestNotDecidedBelowTheKnee(t *testing.T) {
	m := machine{server: map[model.Class]string{}, us: map[model.Class]float64{}, bare: 1}
	for _, c := range nfp {
		m.server[c], m.us[c] = "x", 0.001
	}
	r := Decide(m.sweep(nfp[:2], quiet))
	for _, p := range r.Pairs {
		if p.Verdict != model.NotDecided || p.N != 0 {
			t.Errorf("%+v", p)
		}
	}
}

// A pair without its accesses alone has no evidence.
func TestNotMeasured(t *testing.T) {
	m := machine{server: map[model.Class]string{}, us: map[model.Class]float64{}, bare: 0.01}
	for _, c := range nfp {
		m.server[c], m.us[c] = "x", 0.01
	}
	samples := m.sweep(nfp[:2], quiet)
	samples = slices.DeleteFunc(samples, func(s microbench.Sample) bool { return len(s.Program.Accesses) == 1 })
	for _, p := range Decide(samples).Pairs {
		if p.Verdict != model.NotDecided || !strings.Contains(p.Note, "not measured") {
			t.Errorf("%+v", p)
		}
	}
}

// The evidence is kept: both predictions beside the measurement.
func TestEvidence(t *testing.T) {
	m := machine{server: map[model.Class]string{nfp[0]: "x", nfp[3]: "y"}, us: map[model.Class]float64{nfp[0]: 0.01, nfp[3]: 0.015}, bare: 0.01}
	r := Decide(m.sweep([]model.Class{nfp[0], nfp[3]}, quiet))
	cases := r.Cases[[2]model.Class{nfp[0], nfp[3]}]
	if len(cases) != 3 {
		t.Fatalf("%d cases", len(cases))
	}
	c := cases[1] // 12 and 12
	if math.Abs(c.Min-1/0.18) > 1e-9 || math.Abs(c.Harmonic-1/0.3) > 1e-9 || math.Abs(c.Measured-c.Min) > 1e-9 || !c.Discriminate {
		t.Errorf("%+v", c)
	}
}
