package microbench

import (
	"testing"

	"pgregory.net/rapid"

	"nicprof/internal/fault"
)

// Whatever happens to packets, they are accounted for, and what is left over is
// what nobody counted.
func TestPacketsAccount(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		count := rapid.Int64Range(0, 1<<40)
		var sum Packets
		var vanished int64
		for range rapid.IntRange(1, 4).Draw(rt, "trials") {
			p := Packets{Received: count.Draw(rt, "received"), Dropped: map[string]int64{
				"ring": count.Draw(rt, "ring"), "interface": count.Draw(rt, "interface")}}
			gone := rapid.Int64Range(0, 3).Draw(rt, "gone")
			p.Sent = p.Received + p.Dropped["ring"] + p.Dropped["interface"] + gone
			if err := p.Account(); err != nil {
				rt.Fatal(err)
			}
			vanished += gone
			sum.Add(p)
		}
		if sum.Unaccounted != vanished {
			rt.Fatalf("%d vanished, %d unaccounted for", vanished, sum.Unaccounted)
		}
		if got, want := sum.Received+sum.Dropped["ring"]+sum.Dropped["interface"]+sum.Unaccounted, sum.Sent; got != want {
			rt.Fatalf("%d accounted for of %d sent", got, want)
		}
		if err := sum.Check(); (vanished != 0) != (fault.KindOf(err) == fault.Check) {
			rt.Fatalf("%d vanished: %v", vanished, err)
		}
	})
}

func TestPacketsRefused(t *testing.T) {
	for name, p := range map[string]Packets{
		"more received than sent": {Sent: 9, Received: 10},
		"more dropped than lost":  {Sent: 10, Received: 8, Dropped: map[string]int64{"ring": 3}},
		"counter ran backwards":   {Sent: 10, Received: 10, Dropped: map[string]int64{"ring": -1, "interface": 1}},
	} {
		if err := p.Account(); fault.KindOf(err) != fault.Check {
			t.Errorf("%s: %v, want a failed check", name, err)
		}
	}
	for name, p := range map[string]Packets{"duplicated": {Duplicated: 1}, "damaged": {Damaged: 1}} {
		if err := p.Check(); fault.KindOf(err) != fault.Check {
			t.Errorf("%s: %v, want a failed check", name, err)
		}
	}
}

func TestPacketsString(t *testing.T) {
	p := Packets{Sent: 10, Received: 7, Unaccounted: 1, Dropped: map[string]int64{"ring": 2, "cable": 0}}
	if got, want := p.String(), "7 received, 2 dropped at the ring, 1 unaccounted for"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
