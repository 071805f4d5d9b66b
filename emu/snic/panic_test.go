package snic_test

import (
	"math"
	"testing"

	"nicprof/emu/snic"
	"nicprof/sim"
)

// TestPANICAgainstItsRTL holds the PANIC policy to a Verilator simulation of
// PANIC's own Verilog (packet_gen_parallel at 2d7f246, Verilator 5.006):
// throughput by packet size of three delay engines, Gb/s.
func TestPANICAgainstItsRTL(t *testing.T) {
	bd := load(t, "panic")
	nt := bd.FPGA.NT("delay")
	rtl := []struct{ bytes, gbps float64 }{
		{64, 63.99}, {128, 85.31}, {192, 95.98}, {256, 99.09}, {320, 98.30}, {384, 98.25},
		{512, 100.33}, {640, 99.71}, {768, 99.20}, {1024, 99.64}, {1280, 100.59}, {1536, 99.64},
	}
	sum := 0.0
	for _, p := range rtl {
		c := snic.Config{Board: bd, Policy: snic.PANIC, Seed: 1,
			NTs: []snic.NT{{Name: nt.Name, Cycles: int(nt.Cycles.Value), II: int(nt.II.Value), Gbps: nt.Gbps.Value}}}
		var engines snic.Branch
		for i := range 3 {
			c.Regions = append(c.Regions, []int{0})
			engines = append(engines, snic.Instance{Region: i, Run: 1})
		}
		b, err := snic.New(c)
		if err == nil {
			err = b.SetRoute(0, snic.Route{{engines}})
		}
		if err == nil {
			err = b.Offer(0, snic.Load{Saturate: true, Bytes: int(p.bytes)})
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Run(2 * sim.Microsecond)
		before := b.Flow(0).Served
		b.Run(82 * sim.Microsecond) // 20,000 cycles, as the RTL
		got := b.Flow(0).Served.Gbps(before, 80*sim.Microsecond)
		e := math.Abs(got/p.gbps - 1)
		t.Logf("%4.0f B: %6.2f Gb/s, RTL %6.2f: %+.1f %%", p.bytes, got, p.gbps, 100*(got/p.gbps-1))
		if e > .15 {
			t.Errorf("%v B: %.2f Gb/s, the RTL has %v", p.bytes, got, p.gbps)
		}
		sum += e
	}
	if mean := sum / float64(len(rtl)); mean > .08 {
		t.Errorf("mean error %.1f %%", 100*mean)
	}
}
