package cora

import (
	"context"
	"math"
	"testing"

	"nicprof/board"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/report"
	"nicprof/traffic"
)

// idealSoC is a board of run-to-completion cores on which every law is exact:
// the slowest of the line, the cores, a contended counter and locks sets the rate.
type idealSoC struct {
	board    *board.Board
	knee     float64 // cores that wait at locks
	transfer float64 // rate of additions to one counter, M/s
	stores   float64 // time of a store to DRAM by all cores over that of a load
}

func newIdealSoC(t *testing.T) *idealSoC {
	t.Helper()
	b, err := board.Load(socBoard)
	if err != nil {
		t.Fatal(err)
	}
	return &idealSoC{board: b, knee: 8, transfer: 12, stores: 1.5}
}

func (d *idealSoC) Board() *board.Board { return d.board }

func (d *idealSoC) Measure(ctx context.Context, p program.Program, _ traffic.Traffic, o microbench.Options) (microbench.Sample, error) {
	if err := d.board.Check(p, o.Cores, o.Threads); err != nil {
		return microbench.Sample{}, err
	}
	p = d.board.Resolve(p)
	base, err := d.board.Base(p.Base)
	if err != nil {
		return microbench.Sample{}, err
	}
	cores := o.Cores
	if cores == 0 {
		cores = 8
	}
	cycles := base.Cycles.Value
	x := math.Inf(1)
	for _, a := range p.Accesses {
		each := map[string]float64{"l1": 5, "l2": 12, "llc": 40, "dram": 100}[a.Memory]
		if a.Memory == "dram" && a.Op == program.Write && cores == 8 {
			each *= d.stores
		}
		cycles += a.PerPacket * each
		if a.Span == 1 && cores > 1 {
			x = min(x, d.transfer/a.PerPacket)
		}
	}
	x = min(x, float64(cores)*2500/cycles, 148.8, 12500/float64(p.PacketBytes+20))
	for _, l := range p.Locks {
		if l.Idiom != program.None {
			free := map[program.Idiom]float64{program.Spin: 30, "sleep-200": 30, "sleep-1000": 30, program.Ticket: 40}[l.Idiom]
			x = min(x, free, free*float64(l.Elements)/d.knee)
		}
	}
	return microbench.Sample{
		Board: d.board.Name, Backend: microbench.Emulated, Status: microbench.StatusOK, Program: p,
		Cores: cores, Threads: 1, Mpps: x, Low: 0.999 * x, High: 1.001 * x,
	}, ctx.Err()
}

func TestAppendixBOfAnExactBoard(t *testing.T) {
	d := newIdealSoC(t)
	res := run(t, "cora/appendix-b", d)
	for id, want := range map[string]float64{
		"line-64": 148.8, "line-1500": 12500 / 1520.0, "forward": 80,
		"dram-reads": 8 * 2500 / 1250.0, "dram-reads-core": 2500 / 1250.0,
		"write-l1": 1, "write-dram": 1, "write-dram-all": 1250 / 1750.0,
		"counter": 12, "counter-core": 10 * 2500 / 650.0,
		"one-lock": 30 / 8.0, "locks": 30, "lock-free": 80, "knee": 8, "knee-ticket": 8,
		"ticket": 4.0 / 3, "sleep-1000": 1,
	} {
		wantMeasured(t, res, id, want, 1e-9)
	}
	for _, c := range res.Claims {
		want := report.NotPublished
		if c.ID == "line-64" || c.ID == "line-1500" {
			want = report.Reproduced
		}
		wantVerdict(t, res, c.ID, want)
	}
	matrix := res.Figure.Panels[len(res.Figure.Panels)-1].Matrix
	for i, row := range matrix.Value {
		for j, v := range row { // times add up
			if j < i != math.IsNaN(v) || math.Abs(v-1) > 1e-6 {
				t.Errorf("%s with %s: %v", matrix.Rows[i], matrix.Cols[j], v)
			}
		}
	}

	d.knee, d.transfer, d.stores = 52, 6, 1
	res = run(t, "cora/appendix-b", d)
	wantMeasured(t, res, "knee", 52, 1e-9)
	wantMeasured(t, res, "counter", 6, 1e-9)
	wantMeasured(t, res, "write-dram-all", 1, 1e-9)
	d.board.Bases[0].Cycles.Value = 4000 // too slow for the line
	res = run(t, "cora/appendix-b", d)
	wantVerdict(t, res, "line-1500", report.Differs)
}
