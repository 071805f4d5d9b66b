package microbench

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nicprof/board"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// testBoard is a board with two memories, one cached, and two bases.
func testBoard() *board.Board {
	n := func(v float64) board.Num { return board.Num{Value: v, Source: "test", Confidence: "L"} }
	cmd := &board.Command{PipeMin: n(4)}
	engines := func(q float64) []board.Engine {
		return []board.Engine{
			{Mode: program.Bulk, MaxBytes: n(128), Queue: n(q), Read: cmd, Write: cmd},
			{Mode: program.Atomic, MaxBytes: n(32), Queue: n(q), Read: cmd, Write: cmd, Add: cmd, TestSet: cmd},
		}
	}
	return &board.Board{
		Name: "toy", Class: "toy",
		ClockMHz: n(1000), Cores: n(8), Threads: n(4),
		Bases: []board.Base{
			{Name: "forward", Cycles: n(100), IOMpps: n(28), Cores: n(8), Threads: n(4), Index: "access"},
			{Name: "profiling", Cycles: n(120), IOMpps: n(25), Cores: n(8), Threads: n(4), Index: "packet"},
		},
		Stateless: board.OpCycles{program.ALU: n(2)},
		Locks:     board.LockSpec{Memory: "near", WordStride: n(32)},
		Memories: []board.Memory{
			{Name: "near", Bytes: 4 << 20, DefaultSpan: 8192, Engines: engines(8)},
			{Name: "far", Bytes: 2 << 30, DefaultSpan: 8192, Engines: engines(8),
				Cache: &board.Cache{Bytes: n(3 << 20), LineBytes: n(64)}},
		},
	}
}

// fakeDriver answers from its arguments and seed alone.
type fakeDriver struct {
	board *board.Board
	hook  func(n int, p program.Program) error // before the nth answer, from 1
	calls chan int
}

func newFake() *fakeDriver {
	d := &fakeDriver{board: testBoard(), calls: make(chan int, 1)}
	d.calls <- 0
	return d
}

func (d *fakeDriver) Board() *board.Board { return d.board }

func (d *fakeDriver) Measure(ctx context.Context, p program.Program, t traffic.Traffic, o Options) (Sample, error) {
	n := <-d.calls + 1
	d.calls <- n
	if d.hook != nil {
		if err := d.hook(n, p); err != nil {
			return Sample{}, err
		}
	}
	if ctx.Err() != nil {
		return Sample{}, ctx.Err()
	}
	x := 20 + sim.NewStream(o.Seed, "fake").Float64()
	return Sample{
		Board: d.board.Name, Backend: Emulated, Status: StatusOK,
		Program: p, Traffic: t, Cores: max(1, o.Cores), Seed: o.Seed,
		Mpps: x, Low: x - 0.1, High: x + 0.1, MedianMpps: x,
		Utilisation: map[string]float64{"b": 0.5, "a": 1}, Bottleneck: "a", Runs: 1, DurationUS: 10,
	}, nil
}

// quick is a sweep of a group with a few dozen workloads.
func quick(dir string) SweepConfig {
	return SweepConfig{Dir: dir, Backend: Emulated, Suite: "quick", Only: []string{GroupSkew, GroupCores}, Seed: 7, Parallel: 1}
}

func sweepOK(t *testing.T, d Driver, cfg SweepConfig) Manifest {
	t.Helper()
	m, err := Sweep(t.Context(), d, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// wantError checks that an error says each of the texts.
func wantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one that says %q", texts)
	}
	for _, s := range texts {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("error %q does not say %q", err, s)
		}
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
