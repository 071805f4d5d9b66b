package sim_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"nicprof/sim"
)

// network runs a closed network in which cycles collide, memory is shared and
// service is drawn, and returns a trace of its events. A no-op event is added
// at noop if that is positive, and left out of the trace.
func network(seed uint64, noop sim.Time) []byte {
	const (
		think int32 = iota
		access
		nothing
	)
	const cycle = 1250 * sim.Picosecond
	k := sim.New()
	compute, memory := sim.NewStream(seed, "compute"), sim.NewStream(seed, "memory")
	engines := sim.NewServers(6)
	cores := make([]sim.Server, 54)
	if noop > 0 {
		k.At(noop, nothing, -1, 0)
	}
	for i := range int32(54 * 8) {
		k.At(0, think, i, 0)
	}
	var trace bytes.Buffer
	for range 30_000 {
		e, _ := k.Next()
		if e.Kind == nothing {
			e, _ = k.Next()
		}
		binary.Write(&trace, binary.LittleEndian, e)
		switch e.Kind {
		case think:
			d := cycle * sim.Time(10+compute.IntN(40))
			k.At(cores[e.Actor/8].Serve(e.At, d)+d, access, e.Actor, e.Arg+1)
		case access:
			d := memory.Jitter(20*cycle, .2)
			k.At(engines.Serve(e.At, d)+d+100*cycle, think, e.Actor, e.Arg)
		}
	}
	return trace.Bytes()
}

func TestRunsAreByteEqual(t *testing.T) {
	want := network(7, 0)
	for range 19 {
		if !bytes.Equal(network(7, 0), want) {
			t.Fatal("two runs of one seed differ")
		}
	}
	if bytes.Equal(network(8, 0), want) {
		t.Error("another seed gives the same run: the trace shows nothing")
	}
}

// TestNoOpEventChangesNothingElse adds one event that does nothing, before the
// first, at the time of others and between them.
func TestNoOpEventChangesNothingElse(t *testing.T) {
	want := network(7, 0)
	for _, at := range []sim.Time{1, 1250, 100 * 1250, sim.Microsecond + 1, 7 * sim.Microsecond} {
		if !bytes.Equal(network(7, at), want) {
			t.Errorf("a no-op event at %d ps changes the run", at)
		}
	}
}

func TestStreamsAreIndependent(t *testing.T) {
	a, alone := sim.NewStream(1, "a"), sim.NewStream(1, "a")
	b := sim.NewStream(1, "b")
	same := 0
	for range 1000 {
		x := a.Uint64()
		if b.Uint64() == x {
			same++
		}
		b.Uint64()
		if alone.Uint64() != x {
			t.Fatal("drawing from one stream changes another")
		}
	}
	if same > 0 {
		t.Errorf("streams of different names agree in %d of 1000 draws", same)
	}
	if sim.NewStream(2, "a").Uint64() == sim.NewStream(1, "a").Uint64() {
		t.Error("the seed does not matter")
	}
}

func TestDelaysHaveTheirMean(t *testing.T) {
	s := sim.NewStream(1, "delays")
	const n = 200_000
	var exp, jitter float64
	for range n {
		exp += float64(s.Exp(1000))
		d := s.Jitter(1000, .1)
		if d < 900 || d > 1100 {
			t.Fatalf("1000 ± 10 %% gives %d", d)
		}
		jitter += float64(d)
	}
	// Four standard errors, and half a picosecond lost by rounding down.
	if m := exp / n; m < 999.5-9 || m > 999.5+9 {
		t.Errorf("exponential delays of mean 1000 have mean %.1f", m)
	}
	if m := jitter / n; m < 999 || m > 1001 {
		t.Errorf("jittered delays of 1000 have mean %.1f", m)
	}
	if s.Jitter(1000, 0) != 1000 || s.Jitter(0, .5) != 0 {
		t.Error("nothing to vary is varied")
	}
}
