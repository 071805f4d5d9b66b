package bluefield

import (
	"testing"

	"nicprof/board"
	"nicprof/emu"
	"nicprof/program"
	"nicprof/traffic"
)

// uncertain are the numbers of the board that are known as ranges only, and that
// the emulator uses.
var uncertain = []struct {
	name   string
	number func(*board.Board) *board.Num
}{
	{"clock", func(b *board.Board) *board.Num { return &b.ClockMHz }},
	{"base cycles", func(b *board.Board) *board.Num { return &b.Bases[0].Cycles }},
	{"cycles around an access", func(b *board.Board) *board.Num { return &b.Bases[0].AccessCycles }},
	{"cycles around a lock", func(b *board.Board) *board.Num { return &b.Bases[0].LockCycles }},
	{"spin loop", func(b *board.Board) *board.Num { return &b.Locks.SpinCycles }},
	{"window of line fills", func(b *board.Board) *board.Num { return &b.Coherence.Window }},
	{"line within a tile", func(b *board.Board) *board.Num { return &b.Coherence.SameTileNS }},
	{"line between tiles", func(b *board.Board) *board.Num { return &b.Coherence.OtherTileNS }},
	{"retry of an atomic", func(b *board.Board) *board.Num { return &b.Coherence.RetryCycles }},
	{"l2 latency", func(b *board.Board) *board.Num { return &b.Memory("l2").Latency }},
	{"llc latency", func(b *board.Board) *board.Num { return &b.Memory("llc").Latency }},
	{"llc bandwidth", func(b *board.Board) *board.Num { return &b.Memory("llc").Bandwidth }},
	{"dram latency", func(b *board.Board) *board.Num { return &b.Memory("dram").Latency }},
	{"dram bandwidth", func(b *board.Board) *board.Num { return &b.Memory("dram").Bandwidth }},
	{"atomic addition", func(b *board.Board) *board.Num { return &b.Memory("llc").Engine(program.Atomic).Add.PipeMin }},
	{"test-and-set", func(b *board.Board) *board.Num { return &b.Memory("llc").Engine(program.Atomic).TestSet.PipeMin }},
	{"variability", func(b *board.Board) *board.Num { return &b.Variability }},
}

// outcome is what the board gives under some of the numbers.
type outcome struct{ forward, reads, counter, one, many float64 }

func (o outcome) knee() float64 { return o.many / o.one }

func outcomeOf(t *testing.T, b *board.Board) outcome {
	lock := func(k int) float64 {
		return run(t, b, locked(k, program.Spin), traffic.Traffic{}, emu.Config{Seed: 1}).Mpps()
	}
	return outcome{
		forward: saturated(t, b, 8, "").Mpps(),
		reads:   saturated(t, b, 8, "", "dram:read:bulk:64:10").Mpps(),
		counter: 4 * saturated(t, b, 8, "", "llc:add:atomic:8:4:1").Mpps(),
		one:     lock(1), many: lock(1024),
	}
}

// What the emulator says of the board holds over every range: the knee of locks
// is one of a few cores, not of hundreds of contexts; the counter passes from
// core to core. The log (go test -v) is the table of docs/bluefield.md.
func TestRanges(t *testing.T) {
	if testing.Short() {
		t.Skip("34 boards")
	}
	t.Logf("%-24s %10s  %7s %7s %7s %7s %7s %5s", "", "", "forward", "reads", "counter", "1 lock", "1024", "knee")
	log := func(name string, value float64, o outcome) {
		t.Logf("%-24s %10.4g  %7.1f %7.1f %7.2f %7.2f %7.1f %5.1f", name, value, o.forward, o.reads, o.counter, o.one, o.many, o.knee())
	}
	log("as in the file", 0, outcomeOf(t, load(t, nil)))
	for _, u := range uncertain {
		for _, end := range []func(*board.Num) float64{
			func(n *board.Num) float64 { return n.Low },
			func(n *board.Num) float64 { return n.High },
		} {
			var value float64
			b := load(t, func(b *board.Board) {
				n := u.number(b)
				value = end(n)
				n.Value = value
			})
			o := outcomeOf(t, b)
			log(u.name, value, o)
			if o.knee() < 4 || o.knee() > 20 {
				t.Errorf("%s %v: the knee lies at %.1f locks", u.name, value, o.knee())
			}
			// a transfer each, of which a seventh are within the tile
			per := b.Coherence.OtherTileNS.Value*6/7 + b.Coherence.SameTileNS.Value/7
			if most := 1000 / per; o.counter > most*1.15 || o.counter < most/2 {
				t.Errorf("%s %v: %.1f M additions/s to one counter, a transfer each would be %.1f", u.name, value, o.counter, most)
			}
		}
	}
}
