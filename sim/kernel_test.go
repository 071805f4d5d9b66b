package sim_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"nicprof/sim"

	"pgregory.net/rapid"
)

// reference is the agenda as its definition reads: a slice kept sorted by
// (time, sequence); an event's Arg is its sequence number.
type reference struct {
	now     sim.Time
	pending []sim.Event
}

func (r *reference) at(t sim.Time, seq int64) {
	i, _ := slices.BinarySearchFunc(r.pending, t+1, func(e sim.Event, t sim.Time) int { return cmp.Compare(e.At, t) })
	r.pending = slices.Insert(r.pending, i, sim.Event{At: t, Arg: seq})
}

func (r *reference) next() (sim.Event, bool) {
	if len(r.pending) == 0 {
		return sim.Event{}, false
	}
	e := r.pending[0]
	r.pending = r.pending[1:]
	r.now = e.At
	return e, true
}

// TestAgendaAgainstReference drives the kernel and a sorted list with the same
// random operations. Delays are of every magnitude, many are equal, and bursts
// make slots of many chunks, so that each path of the agenda is taken.
func TestAgendaAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, r := sim.New(), &reference{}
		var seq int64
		// Delays of a multiple of a granule collide often, as cycles do.
		granule := sim.Time(1) << rapid.IntRange(0, 12).Draw(t, "granule bits")
		// Delays of one scale or two collide with the front, others with nothing.
		scales := rapid.SliceOfN(rapid.IntRange(0, 40), 1, 3).Draw(t, "scales")
		magnitude := rapid.SampledFrom(scales)
		schedule := func(d sim.Time) {
			d -= d % granule
			seq++
			k.After(d, 0, 0, seq)
			r.at(r.now+d, seq)
		}
		pop := func(t *rapid.T) {
			got, ok := k.Next()
			want, wantOK := r.next()
			if got != want || ok != wantOK {
				t.Fatalf("Next() = %v, %v; want %v, %v", got, ok, want, wantOK)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if k.Now() != r.now || k.Len() != len(r.pending) {
					t.Fatalf("Now %d, Len %d; want %d, %d", k.Now(), k.Len(), r.now, len(r.pending))
				}
			},
			"one": func(t *rapid.T) {
				schedule(sim.Time(rapid.Int64Range(0, 1<<magnitude.Draw(t, "bits")).Draw(t, "delay")))
			},
			"ties": func(t *rapid.T) {
				d := sim.Time(rapid.Int64Range(0, 1<<magnitude.Draw(t, "bits")).Draw(t, "delay"))
				for range rapid.IntRange(2, 400).Draw(t, "n") {
					schedule(d)
				}
			},
			"burst": func(t *rapid.T) {
				width := int64(1) << magnitude.Draw(t, "bits")
				s := sim.NewStream(rapid.Uint64().Draw(t, "seed"), "burst")
				for range rapid.IntRange(2, 600).Draw(t, "n") {
					schedule(sim.Time(s.Int64N(width)))
				}
			},
			// A crowd at few times, read in part and added to, fills the front.
			"crowd": func(t *rapid.T) {
				spacing := sim.Time(1) << magnitude.Draw(t, "bits")
				s := sim.NewStream(rapid.Uint64().Draw(t, "seed"), "crowd")
				last := 1 + s.IntN(4)
				for range 100 + s.IntN(60) {
					schedule(spacing * sim.Time(last))
				}
				for range s.IntN(6) {
					schedule(spacing * sim.Time(s.IntN(last)))
				}
				for range 200 {
					if s.IntN(4) == 0 {
						pop(t)
					}
					schedule(spacing * sim.Time(s.IntN(last+1)))
				}
			},
			"pop": pop,
			"pops": func(t *rapid.T) {
				for range rapid.IntRange(2, 500).Draw(t, "n") {
					pop(t)
				}
			},
			// Hold: each event schedules its successor, the usual life of a model.
			"hold": func(t *rapid.T) {
				width := int64(1) << magnitude.Draw(t, "bits")
				s := sim.NewStream(rapid.Uint64().Draw(t, "seed"), "hold")
				for range 100 {
					pop(t)
					schedule(sim.Time(s.Int64N(width)))
				}
			},
		})
		for k.Len() > 0 {
			pop(t)
		}
	})
}

// TestAgendaManyPending compares with a stable sort at a size where slots are
// spread over several wheels.
func TestAgendaManyPending(t *testing.T) {
	const n = 300_000
	s := sim.NewStream(1, "many")
	k := sim.New()
	want := make([]sim.Event, n)
	for i := range want {
		want[i] = sim.Event{At: sim.Time(s.Int64N(n << 10)), Arg: int64(i), Actor: int32(i % 7), Kind: 3}
		k.At(want[i].At, want[i].Kind, want[i].Actor, want[i].Arg)
	}
	slices.SortStableFunc(want, func(a, b sim.Event) int { return cmp.Compare(a.At, b.At) })
	for i := range want {
		if got, ok := k.Next(); !ok || got != want[i] {
			t.Fatalf("event %d is %v, %v; want %v", i, got, ok, want[i])
		}
	}
	if e, ok := k.Next(); ok {
		t.Fatalf("an event too many: %v", e)
	}
}

// TestFullFrontTakesEarlierEvents: one early event and as many late ones of one
// time as fill a chunk, then later ones, then one between.
func TestFullFrontTakesEarlierEvents(t *testing.T) {
	for full := 100; full < 300; full++ {
		k := sim.New()
		k.At(69, 0, 0, 0)
		for range full {
			k.At(80, 0, 0, 0)
		}
		k.Next()
		for range 3 {
			k.At(80, 0, 0, 0)
			k.At(75, 0, 0, 0)
		}
		for i := range 3 {
			if e, _ := k.Next(); e.At != 75 {
				t.Fatalf("%d late events: early event %d comes at %d, want 75", full, i, e.At)
			}
		}
	}
}

func TestTimesOfAnySize(t *testing.T) {
	k := sim.New()
	times := []sim.Time{math.MaxInt64, 0, 1, math.MaxInt64 - 1, 1 << 62, math.MaxInt64, 1<<62 - 1, 1 << 36}
	for i, at := range times {
		k.At(at, 0, 0, int64(i))
	}
	slices.Sort(times)
	for _, want := range times {
		if e, ok := k.Next(); !ok || e.At != want {
			t.Fatalf("got %v, %v; want time %d", e, ok, want)
		}
	}
}

func TestSchedulingInThePastPanics(t *testing.T) {
	k := sim.New()
	k.At(10, 0, 0, 0)
	k.Next()
	k.At(10, 0, 0, 0) // now is not the past
	defer func() {
		if recover() == nil {
			t.Error("no panic for an event before Now")
		}
	}()
	k.At(9, 0, 0, 0)
}

// hold returns a kernel with n pending events and a step that replaces the
// earliest by one an exponential delay later.
func hold(n int) (*sim.Kernel, func()) {
	k, s := sim.New(), sim.NewStream(1, "hold")
	delays := make([]sim.Time, 1<<12)
	for i := range delays {
		delays[i] = s.Exp(sim.Microsecond)
	}
	for i := range n {
		k.At(s.Exp(sim.Microsecond), 0, int32(i), 0)
	}
	i := 0
	return k, func() {
		e, _ := k.Next()
		i = (i + 1) % len(delays)
		k.At(e.At+delays[i], e.Kind, e.Actor, e.Arg)
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	for _, n := range []int{1, 16, 1000, 100_000} {
		_, step := hold(n)
		for range 10 * n {
			step()
		}
		if allocs := testing.AllocsPerRun(20_000, step); allocs != 0 {
			t.Errorf("%d pending: %v allocations per event", n, allocs)
		}
	}
}

func BenchmarkHold(b *testing.B) {
	for _, n := range []int{16, 1000, 100_000, 10_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			if n > 1_000_000 && testing.Short() {
				b.Skip("needs 300 MB")
			}
			_, step := hold(n)
			for range n {
				step()
			}
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				step()
			}
		})
	}
}
