package snic_test

import (
	"testing"

	"nicprof/board"
	"nicprof/emu/snic"
	"nicprof/sim"
)

// load returns a copy of a board of the catalogue that a test may change.
func load(t testing.TB, name string) *board.Board {
	t.Helper()
	b, err := board.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// alternating returns n NTs of 16 and 32 cycles in turn.
func alternating(n int) []snic.NT {
	var nts []snic.NT
	for i := range n {
		nts = append(nts, snic.NT{Name: "nt", Cycles: 16 << (i % 2)})
	}
	return nts
}

// latency returns the latency of packets of 64 B that meet no other.
func latency(t testing.TB, c snic.Config, r snic.Route) sim.Time {
	t.Helper()
	b, err := snic.New(c)
	if err == nil {
		err = b.SetRoute(0, r)
	}
	if err == nil {
		err = b.Offer(0, snic.Load{Gbps: .01, Bytes: 64, Paced: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	b.Run(500 * sim.Microsecond)
	l := &b.Flow(0).Latency
	if l.N() < 8 || l.Min() != l.Max() {
		t.Fatalf("%d packets took %d to %d ps", l.N(), l.Min(), l.Max())
	}
	return l.Mean()
}

// chain returns the latency of n NTs that alternate, in chains of the given
// lengths, a region each.
func chain(t testing.TB, b *board.Board, policy snic.Policy, nts []snic.NT, lengths ...int) sim.Time {
	t.Helper()
	c := snic.Config{Board: b, NTs: nts, Policy: policy}
	var r snic.Route
	next := 0
	for i, n := range lengths {
		var chain []int
		for range n {
			chain = append(chain, next)
			next++
		}
		c.Regions = append(c.Regions, chain)
		r = append(r, snic.Stage{{{Region: i, Run: snic.All(n)}}})
	}
	return latency(t, c, r)
}

// TestChains holds the latency of chains of 2 to 7 NTs to the 18 values of the
// thesis' data_nt_chain.
func TestChains(t *testing.T) {
	b := load(t, "snic")
	want := map[int][3]sim.Time{ // ns: PANIC, single chain, two chains
		2: {452, 388, 452},
		3: {580, 452, 516},
		4: {772, 580, 644},
		5: {900, 644, 708},
		6: {1092, 772, 836},
		7: {1220, 836, 900},
	}
	for n, w := range want {
		nts := alternating(n)
		for i, got := range []sim.Time{
			chain(t, b, snic.PANIC, nts, n),
			chain(t, b, snic.Reserve, nts, n),
			chain(t, b, snic.Reserve, nts, n/2, n-n/2),
		} {
			if got != w[i]*sim.Nanosecond {
				t.Errorf("%d NTs, %s: %d ps, want %d ns", n, [...]string{"PANIC", "single", "half"}[i], got, w[i])
			}
		}
	}
}
