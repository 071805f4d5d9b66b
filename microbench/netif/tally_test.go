package netif

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// Of a stream that loses, repeats and shuffles packets, the tally tells each.
func TestTally(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 500).Draw(rt, "sent")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		var order []uint64
		lost, again := 0, 0
		for i := range uint64(n) {
			switch r.IntN(10) {
			case 0:
				lost++
			case 1:
				again++
				order = append(order, i, i)
			default:
				order = append(order, i)
			}
		}
		swaps := 0
		for i := 1; i < len(order); i++ {
			// A swap of neighbours that no other swap touches delays one packet.
			if order[i] != order[i-1] && r.IntN(8) == 0 && (i < 2 || order[i-2] < order[i-1]) && (i+1 == len(order) || order[i] < order[i+1]) {
				order[i], order[i-1] = order[i-1], order[i]
				swaps++
				i += 2
			}
		}
		tl := newTally(uint64(n))
		for i, seq := range order {
			tl.add(probe{sequence: seq, sent: int64(10 * i), whole: true}, int64(10*i+5))
		}
		if got := int64(n) - tl.received; got != int64(lost) {
			rt.Fatalf("%d lost, tally says %d", lost, got)
		}
		if tl.duplicated != int64(again) || tl.reordered != int64(swaps) || tl.damaged != 0 || tl.backwards != 0 {
			rt.Fatalf("%d repeated, %d late: %+v", again, swaps, tl)
		}
		if len(tl.latency) != int(tl.received) {
			rt.Fatalf("%d latencies of %d packets", len(tl.latency), tl.received)
		}
		for _, l := range tl.latency {
			if l != 5 {
				rt.Fatalf("latency %d, want 5", l)
			}
		}
	})
}

func TestTallyOfTheImpossible(t *testing.T) {
	tl := newTally(10)
	tl.add(probe{sequence: 1 << 60, whole: true}, 1) // never sent
	tl.add(probe{sequence: 1}, 1)                    // changed on its way
	tl.add(probe{sequence: 2, sent: 7, whole: true}, 6)
	if tl.damaged != 2 || tl.received != 1 || tl.backwards != 1 || len(tl.latency) != 0 {
		t.Errorf("%+v", tl)
	}
}

// A long trial keeps a part of the latencies, spread over all of it.
func TestTallyThinsLatencies(t *testing.T) {
	const n = 3 * mostLatencies
	tl := newTally(n)
	for i := range uint64(n) {
		tl.add(probe{sequence: i, sent: int64(i), whole: true}, int64(2*i))
	}
	if tl.received != n || len(tl.latency) > mostLatencies || len(tl.latency) < mostLatencies/2 {
		t.Fatalf("%d received, %d latencies", tl.received, len(tl.latency))
	}
	if first, last := tl.latency[0], tl.latency[len(tl.latency)-1]; first != 0 || last < n-10 {
		t.Errorf("latencies of packets %d to %d of %d", first, last, n)
	}
}
