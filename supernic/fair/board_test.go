package fair_test

import (
	"math"
	"testing"

	"nicprof/board"
	"nicprof/emu/snic"
	"nicprof/sim"
	"nicprof/supernic/fair"
)

// boardRun is DAGs of a user each that share one chain of the emulated board,
// all at 100 Gb/s, with a time step every epoch of 20 µs.
type boardRun struct {
	board  *snic.Board
	step   *fair.Time
	grants []fair.Grant
	load   []float64
	before []snic.Volume
}

const (
	epoch   = 20 * sim.Microsecond
	windows = 10 // of 2 µs in an epoch
	bytes   = 1024
)

func onBoard(t *testing.T, weights []float64) *boardRun {
	t.Helper()
	b, err := board.Load("snic")
	if err != nil {
		t.Fatal(err)
	}
	r := &boardRun{load: make([]float64, len(weights)), grants: make([]fair.Grant, len(weights)), before: make([]snic.Volume, len(weights))}
	if r.board, err = snic.New(snic.Config{Board: b, NTs: []snic.NT{{Name: "nt", Cycles: 16}}, Regions: [][]int{{0}}, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	var dags []fair.DAG
	for u := range weights {
		dags = append(dags, fair.DAG{User: u, Use: ones(1)})
		if err := r.board.SetRoute(u, snic.Route{{{{Region: 0, Run: 1}}}}); err != nil {
			t.Fatal(err)
		}
	}
	r.step = newTime(t, fair.SNIC, gbps(100, "port"), weights, dags...)
	return r
}

func (r *boardRun) offer(t *testing.T, dag int, gbps float64) {
	t.Helper()
	r.load[dag] = gbps
	if err := r.board.Offer(dag, snic.Load{Gbps: gbps, Bytes: bytes, Paced: true}); err != nil {
		t.Fatal(err)
	}
}

// epoch divides, enforces and runs; it returns Gb/s by DAG and window.
func (r *boardRun) epoch(t *testing.T) [][windows]float64 {
	t.Helper()
	if err := r.step.Step(r.load, r.grants); err != nil {
		t.Fatal(err)
	}
	for d, g := range r.grants {
		if err := r.board.SetIngress(d, g.Limit); err != nil {
			t.Fatal(err)
		}
	}
	served := make([][windows]float64, len(r.load))
	for w := range windows {
		r.board.Run(r.board.Now() + epoch/windows)
		for d := range served {
			v := r.board.Flow(d).Served
			served[d][w] = v.Gbps(r.before[d], epoch/windows)
			r.before[d] = v
		}
	}
	return served
}

// onePacket is a packet's bytes over a window, Gb/s.
const onePacket = bytes * 8000 * windows / float64(epoch)

// Equal DAGs are served 1 : 1, and near-equal ones without gaps: in every 2 µs
// each has its rate but for the packets at the edges.
func TestPacketsOfNearEqualWeightsComeEvenly(t *testing.T) {
	for _, weight := range []float64{1, 1.01, 3} {
		r := onBoard(t, []float64{1, weight})
		for d := range r.load {
			r.offer(t, d, 100)
		}
		r.epoch(t) // fills the pipeline
		var total [2]float64
		for range 50 {
			for d, ws := range r.epoch(t) {
				for _, got := range ws {
					total[d] += got
					if math.Abs(got-r.grants[d].Gbps) > 2.5*onePacket {
						t.Fatalf("weights 1 : %g: DAG %d has %.1f Gb/s in 2 µs, its rate is %.1f", weight, d, got, r.grants[d].Gbps)
					}
				}
			}
		}
		if got := total[1] / total[0]; math.Abs(got/weight-1) > 0.005 {
			t.Errorf("weights 1 : %g: served 1 : %.4f", weight, got)
		}
	}
}

// A DAG that rejoins after 2 ms has its share from the first epoch on, and the
// DAG that stayed keeps its own: no pass or credit is left over.
func TestPacketsAfterRejoining(t *testing.T) {
	r := onBoard(t, []float64{1, 1})
	r.offer(t, 0, 100)
	r.offer(t, 1, 100)
	for n := range 200 {
		switch n {
		case 50:
			r.offer(t, 1, 0)
		case 150:
			r.offer(t, 1, 100)
		}
		served := r.epoch(t)
		want := [2]float64{50, 50}
		if n >= 50 && n < 150 {
			want = [2]float64{100, 0}
		}
		if n == 0 || n == 50 || n == 150 {
			continue // what is under way ends, and begins
		}
		for d, ws := range served {
			mean := 0.0
			for _, v := range ws {
				mean += v / windows
			}
			if math.Abs(mean-want[d]) > onePacket {
				t.Fatalf("epoch %d: DAG %d is served %.1f Gb/s, want %.0f", n, d, mean, want[d])
			}
		}
	}
}
