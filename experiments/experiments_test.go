package experiments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/report"
	"nicprof/traffic"
)

func figure(id string) Figure {
	return Figure{ID: id, Paper: "Paper", Title: "title of " + id, Run: func(context.Context, Env) (report.Result, error) {
		return report.Result{Claims: []report.Claim{{ID: "a", Published: report.Value(1), Measured: report.Value(1)}}}, nil
	}}
}

func TestRegistryListsSortedAndFillsResults(t *testing.T) {
	var r Registry
	for _, id := range []string{"snic/fig9", "cora/fig9", "cora/fig7a"} {
		r.Register(figure(id))
	}
	var ids []string
	for _, f := range r.List() {
		ids = append(ids, f.ID)
	}
	if got := strings.Join(ids, " "); got != "cora/fig7a cora/fig9 snic/fig9" {
		t.Errorf("listed %s", got)
	}
	f, err := r.Lookup("cora/fig9")
	if err != nil {
		t.Fatal(err)
	}
	res, err := f.Run(t.Context(), Env{Seed: 7, Scale: Quick})
	if err != nil {
		t.Fatal(err)
	}
	if res.ID != "cora/fig9" || res.Paper != "Paper" || res.Title != "title of cora/fig9" || res.Seed != 7 || res.Scale != "quick" {
		t.Errorf("result not filled: %+v", res)
	}
	if res.Claims[0].Verdict != report.Reproduced {
		t.Errorf("claim not judged: %+v", res.Claims[0])
	}
}

func TestUnknownFigureNamesNearOnes(t *testing.T) {
	var r Registry
	for _, id := range []string{"cora/fig7a", "cora/fig7b", "cora/fig9", "snic/chains"} {
		r.Register(figure(id))
	}
	for id, want := range map[string]string{
		"cora/fig99": "did you mean cora/fig9?",
		"cora/fig7":  "did you mean cora/fig7a, cora/fig7b, cora/fig9?",
		"chains":     "did you mean snic/chains?",
		"cora":       "did you mean cora/fig7a, cora/fig7b, cora/fig9?",
		"xyz":        "list shows all figures",
	} {
		_, err := r.Lookup(id)
		if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", id, err, want)
		}
	}
}

func TestRegisterPanicsOnProgrammingErrors(t *testing.T) {
	var r Registry
	r.Register(figure("cora/fig9"))
	for _, f := range []Figure{figure("cora/fig9"), {ID: "cora/x"}, {Run: figure("y").Run}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("figure %q was registered", f.ID)
				}
			}()
			r.Register(f)
		}()
	}
}

func TestParseScale(t *testing.T) {
	if s, err := ParseScale("full"); s != Full || err != nil {
		t.Errorf("full: %v, %v", s, err)
	}
	if _, err := ParseScale("huge"); fault.KindOf(err) != fault.Input {
		t.Errorf("huge: %v", err)
	}
}

func TestStrict(t *testing.T) {
	claim := func(id string, published, measured float64, reason string) report.Claim {
		c := report.Claim{ID: id, Published: report.Value(published), Measured: report.Value(measured), Tolerance: 0.05, Unit: "Mpps", Reason: reason}
		c.Verdict = c.Judge()
		return c
	}
	result := func(claims ...report.Claim) report.Result {
		return report.Result{ID: "cora/fig9", Seed: 1, Scale: "quick", Claims: claims}
	}
	good, bad, excused := claim("one", 10, 10, ""), claim("one", 10, 12, ""), claim("one", 10, 12, "known")
	stored := result(good)
	for _, c := range []struct {
		name   string
		stored *report.Result
		got    report.Result
		want   string
	}{
		{"all well", nil, result(good), ""},
		{"same as stored", &stored, result(good), ""},
		{"differs without reason", nil, result(bad), "one differs (paper 10.00, measured 12.00 Mpps) and no reason is given"},
		{"differs with reason", nil, result(excused), ""},
		{"changed verdict", &stored, result(excused), "the stored result (seed 1, quick scale) says reproduced"},
		{"new claim", &stored, result(good, claim("two", 1, 1, "")), "two is reproduced and was not in the stored result"},
		{"claim gone", &stored, result(), "one of the stored result is gone"},
	} {
		err := Strict(c.stored, c.got)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if fault.KindOf(err) != fault.Check || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// fake measures the number of ALU operations; it fails where told.
type fake struct {
	failAt float64
	calls  atomic.Int64
}

func (f *fake) Board() *board.Board { return &board.Board{Name: "fake"} }

func (f *fake) Measure(ctx context.Context, p program.Program, _ traffic.Traffic, _ microbench.Options) (microbench.Sample, error) {
	f.calls.Add(1)
	n := p.Stateless[program.ALU]
	if n == f.failAt {
		return microbench.Sample{}, fmt.Errorf("broke at %v", n)
	}
	return microbench.Sample{Mpps: n}, ctx.Err()
}

func workloads(n int) []microbench.Workload {
	ws := make([]microbench.Workload, n)
	for i := range ws {
		ws[i] = microbench.Workload{Key: fmt.Sprint("w", i), Group: "g", Program: program.Program{Stateless: program.Stateless{program.ALU: float64(i)}}}
	}
	return ws
}

func TestMeasureKeepsOrderWhateverParallel(t *testing.T) {
	for _, parallel := range []int{0, 1, 2, 7, 100} {
		var done []int
		env := Env{Parallel: parallel, Progress: func(d, total int) {
			if total != 20 {
				t.Errorf("total %d", total)
			}
			done = append(done, d)
		}}
		got, err := env.Measure(t.Context(), &fake{failAt: -1}, workloads(20))
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range got {
			if s.Mpps != float64(i) || s.Key != fmt.Sprint("w", i) || s.Group != "g" || s.Index != i {
				t.Fatalf("parallel %d: sample %d is %+v", parallel, i, s)
			}
		}
		if len(done) != 20 || !slices.IsSorted(done) || done[19] != 20 {
			t.Errorf("parallel %d: progress %v", parallel, done)
		}
	}
	if got, err := (Env{}).Measure(t.Context(), &fake{failAt: -1}, nil); err != nil || len(got) != 0 {
		t.Errorf("no workloads: %v, %v", got, err)
	}
}

func TestMeasureStopsAtTheFirstError(t *testing.T) {
	d := &fake{failAt: 3}
	_, err := Env{Parallel: 1}.Measure(t.Context(), d, workloads(1000))
	if err == nil || !strings.Contains(err.Error(), "workload w3: broke at 3") {
		t.Fatalf("got %v", err)
	}
	if n := d.calls.Load(); n > 10 {
		t.Errorf("%d measurements after an error in the fourth", n)
	}
}

func TestMeasureReturnsTheInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	env := Env{Parallel: 2, Progress: func(done, _ int) {
		if done == 5 {
			cancel()
		}
	}}
	if _, err := env.Measure(ctx, &fake{failAt: -1}, workloads(1000)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
