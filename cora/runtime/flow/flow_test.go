package flow

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"nicprof/board"
	"nicprof/cora/apps"
	"nicprof/cora/costs"
	"nicprof/cora/frontend"
	"nicprof/cora/plan"
	"nicprof/cora/runtime/packet"
	"nicprof/cora/runtime/system"
	"nicprof/model"
	"nicprof/p4"
	"nicprof/sim"
	"nicprof/traffic"
)

// natlb is the DPVS-like application with its largest blocks on the NIC.
func natlb(t *testing.T) *system.System {
	t.Helper()
	m, err := model.Load(filepath.Join("..", "..", "..", "results", "nfp", "model.json"))
	if err != nil {
		t.Fatal(err)
	}
	prog, err := p4.Load(filepath.Join("..", "..", "apps", "natlb.p4"), p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	front, err := frontend.Analyse(prog, frontend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := apps.Files.ReadFile("traffic/natlb.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := traffic.Parse(text, "natlb.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tr.Flows.Count = 2000
	built, err := plan.Build(plan.Input{Front: front, Traffic: "natlb", Given: &tr, Model: m, Costs: costs.Stored(), Options: plan.Options{Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := board.Load("nfp")
	if err != nil {
		t.Fatal(err)
	}
	p := built.Problem
	var place system.Placement
	for i := range p.Blocks {
		where, on := 0, make([]bool, p.Blocks[i].Groups)
		for k := range p.Memories {
			if p.Memories[k].Bytes > p.Memories[where].Bytes {
				where = k
			}
		}
		for g := range on {
			on[g] = true
		}
		place.Memory, place.OnNIC = append(place.Memory, where), append(place.OnNIC, on)
	}
	s, err := system.New(b, built, place, system.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLevelsAgree runs both levels with flows at rest, all of them on the NIC,
// half, and three quarters: rates, the host's cores and the NIC's flows are within
// 5 % of each other, and the packet level accounts for every packet.
func TestLevelsAgree(t *testing.T) {
	s := natlb(t)
	for _, away := range []int{0, 2, 4} { // one flow in so many starts on the host
		s.OnNIC = make([]bool, len(s.Shares))
		for f := range s.OnNIC {
			s.OnNIC[f] = away == 0 || f%away != 0
		}
		o := s.Runtime()
		phases := []system.Phase{{Mpps: 4}}
		pk, err := packet.Run(context.Background(), s, packet.Config{
			Runtime: o, HostCores: 8, Phases: phases,
			Warm: 2 * sim.Millisecond, Length: 10 * sim.Millisecond, Still: true, Seed: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		if c := pk.Counts; c.Offered == 0 || c.Offered != c.Left+c.Ended+c.Dropped+c.Inside {
			t.Errorf("one in %d away: of %d packets %d left, %d ended, %d were dropped, %d are inside",
				away, c.Offered, c.Left, c.Ended, c.Dropped, c.Inside)
		}
		fl, err := Run(context.Background(), s, Config{
			Runtime: o, HostCores: 8, Phases: phases, LengthS: 5, Still: true, Seed: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		a, b := pk.Samples[len(pk.Samples)-1], fl.Samples[len(fl.Samples)-1]
		for _, v := range []struct {
			what         string
			packet, flow float64
		}{
			{"offered", a.Offered, b.Offered},
			{"NIC", a.NIC, b.NIC},
			{"host", a.Host, b.Host},
			{"visits", a.Visits, b.Visits},
			{"cores", a.Cores, b.Cores},
			{"flows on the NIC", float64(a.Flows), float64(b.Flows)},
		} {
			if math.Abs(v.packet-v.flow) > 0.05*max(v.packet, 0.02*a.Offered) {
				t.Errorf("one in %d away: %s: packet level %.4g, flow level %.4g", away, v.what, v.packet, v.flow)
			}
		}
	}
}

// A migration takes time under every load, also one under which none ends within
// a point's window: one flow of an eighth of the packets holds back all others.
func TestMigrationsTakeTime(t *testing.T) {
	s := natlb(t)
	sum := 0.0
	for f := range s.Shares {
		s.Shares[f] = 1 / float64(f+1)
		sum += s.Shares[f]
	}
	for f := range s.Shares {
		s.Shares[f] /= sum
	}
	b := NewBehaviour(s, 0, 1)
	for _, mpps := range []float64{4, 15, 25} {
		p, err := b.At(context.Background(), mpps, 0, s.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if !(p.EvictUS > 1) || !(p.OffloadUS > 1) {
			t.Errorf("%v Mpps: evicted in %v us, offloaded in %v", mpps, p.EvictUS, p.OffloadUS)
		}
	}
}

// Other traffic on PCIe is the flow level's too: the host's packets that do not
// fit are lost.
func TestTrafficOnPCIe(t *testing.T) {
	s := natlb(t)
	s.OnNIC = make([]bool, len(s.Shares))
	c := Config{
		Runtime: s.Runtime(), HostCores: 8, Phases: []system.Phase{{Mpps: 4, Bytes: 1024}},
		LengthS: 1, Still: true, Seed: 1,
	}
	left := func(gbps float64) float64 {
		c.Faults.PCIeGbps = gbps
		r, err := Run(context.Background(), s, c)
		if err != nil {
			t.Fatal(err)
		}
		x := r.Samples[0]
		return x.NIC + x.Host
	}
	alone, beside := left(0), left(40)
	if alone < 3.9 || beside > 0.8*alone {
		t.Errorf("%.2f Mpps left alone, %.2f beside 40 Gb/s", alone, beside)
	}
	c.Behaviour = NewBehaviour(s, 10, 1)
	if _, err := Run(context.Background(), s, c); err == nil {
		t.Error("a behaviour beside other traffic was taken")
	}
}
