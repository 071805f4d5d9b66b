package explore

import (
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nicprof/internal/fault"
)

const plenty = 5_000_000 // states

func TestProtocolHolds(t *testing.T) {
	for _, b := range Standard(false) {
		t.Run(b.Name, func(t *testing.T) {
			r, err := Explore(b, plenty)
			if err != nil {
				t.Fatal(err)
			}
			if r.Failure != "" || r.Cut {
				t.Errorf("cut %v; %s\n%s", r.Cut, r.Failure, strings.Join(r.Trace, "\n"))
			}
			if r.States < 1000 || r.Quiet == 0 || r.Longest == 0 {
				t.Errorf("%d states, %d of them quiet, longest way %d: there is nothing to it", r.States, r.Quiet, r.Longest)
			}
			t.Logf("%d states, %d steps, %d quiet states, at most %d steps to one, %d overtakings", r.States, r.Steps, r.Quiet, r.Longest, r.Overtaken)
		})
	}
}

func TestEachStepIsNeeded(t *testing.T) {
	want := []struct{ failure, trace string }{
		{"is served on an entry of the NIC that is invalid", "the NIC obeys EVICT of entry 0, migration 1 (entry valid)"},
		{"is served on an entry of the NIC that is invalid", "the NIC obeys EVICT of entry 0, migration 1 (entry to_cpu)"},
		{"the host's live copy says 0", "the host takes the echo of TO_CPU"},
		{"is served on an entry of the NIC that is invalid", "the NIC ends the service of packet 1"},
		{"its load counter says 0", "served on the host, leaves by the wire"},
		{"are a pair, but to_cpu and valid on the NIC", "the host starts to evict flow 0"},
		{"the host's live copy says 0", "the echo of EVICT of entry 0, migration 1 is lost"},
		{"circle of steps", "OFFLOAD of entry 0, migration 1 is lost"},
		{"the NIC's live copy says 0", "the echo of OFFLOAD of entry 0, migration 2 is lost"},
		{"is on the host, but its entry on the NIC is to_cpu for ever", "is doubled"},
		{"the NIC's live copy says 0", "the host sends OFFLOAD of entry 0, migration 1 again"},
	}
	for i, b := range Broken() {
		t.Run(b.Break.String()+" "+b.Name, func(t *testing.T) {
			r, err := Explore(b, plenty)
			if err != nil {
				t.Fatal(err)
			}
			trace := strings.Join(r.Trace, "\n")
			if !strings.Contains(r.Failure, want[i].failure) || !strings.Contains(trace, want[i].trace) {
				t.Errorf("failure %q, want %q\n%s", r.Failure, want[i].failure, trace)
			}
			b.Break = Nothing
			if r, err := Explore(b, plenty); err != nil || r.Failure != "" {
				t.Errorf("with nothing left out: %q, %v", r.Failure, err)
			}
		})
	}
}

func TestProtocolWithoutNumbersHoldsWhileNoMessageGoesAstray(t *testing.T) {
	b := Bounds{Entries: 1, Start: OnNIC, Room: 1, Packets: 3, Moves: 2, OnNIC: 3, Break: NoEpochs}
	if r, err := Explore(b, plenty); err != nil || r.Failure != "" || r.Cut {
		t.Errorf("%q, cut %v, %v\n%s", r.Failure, r.Cut, err, strings.Join(r.Trace, "\n"))
	}
}

// A circle in the graph must be found even though every state on it is sound.
func TestCircleIsFound(t *testing.T) {
	b := Bounds{Entries: 1, Start: OnNIC, Room: 1, Packets: 1, Moves: 1, OnNIC: 2, RepeatEvery: 2}
	x := &explorer{b: b, w: newWorld(&b), states: newStore()}
	x.run(plenty)
	if x.r.Failure != "" {
		t.Fatal(x.r.Failure)
	}
	x.auto = append(x.auto, edge{x.auto[0].to, x.auto[0].from})
	x.ends()
	if !strings.Contains(x.r.Failure, "circle") {
		t.Errorf("failure %q", x.r.Failure)
	}
}

func TestKeyKeepsTheState(t *testing.T) {
	b := Standard(false)[6]
	x := &explorer{b: b, w: newWorld(&b), states: newStore()}
	x.run(20_000)
	other := newWorld(&b)
	for s := range int32(x.states.len()) {
		k := string(x.states.key(s))
		other.load([]byte(k))
		if again := string(other.key(nil)); again != k {
			t.Fatalf("state %d: %x, read and written %x", s, k, again)
		}
	}
}

func TestBoundsAreChecked(t *testing.T) {
	for _, b := range []Bounds{
		{Entries: 0, OnNIC: 1}, {Entries: 5, OnNIC: 1, Room: 5}, {Entries: 3, Pairs: true, OnNIC: 1, Room: 3},
		{Entries: 1, OnNIC: 0, Room: 1}, {Entries: 1, OnNIC: 1, Room: 1, Packets: 9}, {Entries: 1, OnNIC: 1, Room: 1, Lose: 17},
		{Entries: 1, OnNIC: 1, Room: 3, Slots: 2},
	} {
		if _, err := Explore(b, plenty); fault.KindOf(err) != fault.Input {
			t.Errorf("%+v: %v", b, err)
		}
	}
	if r, err := Explore(Standard(false)[0], 100); err != nil || !r.Cut {
		t.Errorf("100 states: cut %v, %v", r.Cut, err)
	}
}

// Walks at random go further than explorations can: more flows, packets and
// moves, and more of each that goes wrong. A host that stalls is a walk in which
// it takes nothing for long; the walks' choices are skewed to make such.
func TestWalksBeyondTheBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := func(most int) int { return rapid.IntRange(0, most).Draw(t, "bound") }
		b := Bounds{
			Entries: maxEntries, Pairs: rapid.Bool().Draw(t, "pairs"), Start: Start(some(2)), Room: maxEntries,
			Packets: maxPackets, Moves: some(16), OnNIC: 1 + some(5), RepeatEvery: 1 + some(5),
			Lose: some(16), Duplicate: some(8), Delay: some(8), Write: some(3), Repeat: some(8), LosePacket: some(4),
		}
		if b.Start != OnNIC {
			b.Room = 1 + some(3)
		}
		if err := b.check(); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		stalled := [timeout + 1]float64{}
		for k := range stalled {
			stalled[k] = r.Float64()
		}
		w := newWorld(&b)
		var way []string
		for {
			w.check()
			if w.failure != "" {
				t.Fatalf("%s\n%s", w.failure, strings.Join(way, "\n"))
			}
			steps := w.steps(nil)
			if len(steps) == 0 {
				break
			}
			s := steps[r.IntN(len(steps))]
			if s.kind <= timeout && r.Float64() < stalled[s.kind] {
				s = steps[r.IntN(len(steps))]
			}
			way = append(way, w.text(s))
			before := w.left
			w.failWrite, w.wrote = false, false
			if !w.apply(s) {
				w.left.write = before.write // nothing was written, so nothing failed
			}
		}
		if w.quiet(); w.failure != "" {
			t.Fatalf("%s\n%s", w.failure, strings.Join(way, "\n"))
		}
	})
}
