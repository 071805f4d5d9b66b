package sim_test

import (
	"slices"
	"testing"

	"nicprof/sim"

	"pgregory.net/rapid"
)

// TestServersAgainstLists compares bookings with the definition: a job starts
// when it has arrived and a server is free, and the busy time up to any moment
// is the overlap of all services with it.
func TestServersAgainstLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "servers")
		group, one := sim.NewServers(n), sim.Server{}
		free := make([]sim.Time, n)
		type span struct{ from, to sim.Time }
		var spans []span
		busy := func(now sim.Time) (sum sim.Time) {
			for _, s := range spans {
				sum += max(0, min(s.to, now)-min(s.from, now))
			}
			return sum
		}
		var now sim.Time
		for range rapid.IntRange(1, 60).Draw(t, "jobs") {
			now += sim.Time(rapid.Int64Range(0, 20).Draw(t, "gap"))
			if got, want := group.Busy(now), busy(now); got != want {
				t.Fatalf("busy %d until %d, want %d", got, now, want)
			}
			service := sim.Time(rapid.Int64Range(0, 50).Draw(t, "service"))
			slices.Sort(free)
			want := max(now, free[0])
			free[0] = want + service
			spans = append(spans, span{want, want + service})
			if got := group.Serve(now, service); got != want {
				t.Fatalf("job at %d starts at %d, want %d", now, got, want)
			}
			if n > 1 {
				continue
			}
			if got := one.Serve(now, service); got != want || one.Free() != free[0] || one.Busy(now) != group.Busy(now) {
				t.Fatalf("one server: start %d, free %d, busy %d; want %d, %d, %d", got, one.Free(), one.Busy(now), want, free[0], group.Busy(now))
			}
		}
	})
}

func TestLineAgainstSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var line sim.Line[int]
		var want []int
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if line.Len() != len(want) {
					t.Fatalf("length %d, want %d", line.Len(), len(want))
				}
			},
			"push": func(*rapid.T) {
				line.Push(next)
				want = append(want, next)
				next++
			},
			"pop": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip()
				}
				if got := line.Pop(); got != want[0] {
					t.Fatalf("popped %d, want %d", got, want[0])
				}
				want = want[1:]
			},
		})
	})
}

// TestSharingByHand follows jobs whose completions are worked out on paper.
func TestSharingByHand(t *testing.T) {
	k := sim.New()
	s := sim.NewSharing(k, depart, 5, 2)
	// Two servers. a (90) and b (40) run alone from 0; c (40) comes at 20, so
	// that each of the three runs at 2/3. b has 20 left: done at 20 + 30 = 50,
	// when c has 20 left and a 50. Two jobs again: c is done at 70, a at 100.
	for i, j := range []struct{ at, work sim.Time }{{0, 90}, {0, 40}, {20, 40}} {
		k.At(j.at, arrive, 0, int64(i)<<32|int64(j.work))
	}
	type done struct {
		job int64
		at  sim.Time
	}
	var got []done
	for e, ok := k.Next(); ok; e, ok = k.Next() {
		if e.Kind == arrive {
			s.Arrive(e.Arg>>32, sim.Time(e.Arg&0xffffffff))
		} else if job, ok := s.Complete(e); ok {
			if e.Actor != 5 {
				t.Errorf("completion of actor %d", e.Actor)
			}
			got = append(got, done{job, e.At})
		}
	}
	if want := []done{{1, 50}, {2, 70}, {0, 100}}; !slices.Equal(got, want) {
		t.Errorf("completions %v, want %v", got, want)
	}
	// Both servers until 70, one until 100.
	if s.Busy() != 170 || s.Len() != 0 {
		t.Errorf("busy %d with %d left, want 170 and none", s.Busy(), s.Len())
	}
}

// TestSharingConservesWork: whatever comes when, all jobs complete, none before
// its work is possible, and the servers' busy time is the work done.
func TestSharingConservesWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := sim.New()
		s := sim.NewSharing(k, depart, 0, rapid.IntRange(1, 4).Draw(t, "servers"))
		n := rapid.IntRange(1, 40).Draw(t, "jobs")
		work, arrived := make([]sim.Time, n), make([]sim.Time, n)
		var total sim.Time
		for i := range n {
			work[i] = sim.Time(rapid.Int64Range(0, 1000).Draw(t, "work"))
			arrived[i] = sim.Time(rapid.Int64Range(0, 2000).Draw(t, "arrival"))
			k.At(arrived[i], arrive, 0, int64(i))
			total += work[i]
		}
		left := n
		for e, ok := k.Next(); ok; e, ok = k.Next() {
			if e.Kind == arrive {
				s.Arrive(e.Arg, work[e.Arg])
			} else if job, ok := s.Complete(e); ok {
				left--
				if e.At < arrived[job]+work[job] {
					t.Fatalf("job %d of %d at %d done at %d", job, work[job], arrived[job], e.At)
				}
			}
		}
		if left != 0 || s.Len() != 0 {
			t.Fatalf("%d jobs never complete", left)
		}
		// A completion is rounded up to a picosecond, for each server at most.
		if d := s.Busy() - total; d < -1 || d > sim.Time(4*n) {
			t.Fatalf("busy %d for %d of work", s.Busy(), total)
		}
	})
}

func TestServersDoNotAllocate(t *testing.T) {
	k := sim.New()
	arrivals := sim.NewStream(1, "arrivals")
	group := sim.NewServers(4)
	station := sim.NewSharing(k, depart, 0, 2)
	var line sim.Line[sim.Time]
	k.After(0, arrive, 0, 0)
	step := func() {
		switch e, _ := k.Next(); e.Kind {
		case arrive:
			group.Serve(e.At, arrivals.Exp(service))
			line.Push(e.At)
			station.Arrive(0, arrivals.Exp(service))
			k.After(arrivals.Exp(service), arrive, 0, 0)
		case depart:
			if _, ok := station.Complete(e); ok {
				line.Pop()
			}
		}
	}
	for range 200_000 {
		step()
	}
	if allocs := testing.AllocsPerRun(20_000, step); allocs != 0 {
		t.Errorf("%v allocations per event", allocs)
	}
}
