package snic_test

import (
	"testing"

	"nicprof/emu/snic"
	"nicprof/sim"
)

// BenchmarkChain emulates packets through four NTs in one chain, every stage an
// event.
func BenchmarkChain(b *testing.B) {
	c := snic.Config{Board: load(b, "snic"), NTs: alternating(4), Credits: 64}
	r := layChains(&c, 4)
	bd := start(b, c, r, snic.Load{Gbps: 40, Bytes: 128})
	bd.Run(100 * sim.Microsecond)
	from := bd.Flow(0).Served.Packets
	b.ReportAllocs()
	for b.Loop() {
		bd.Run(bd.Now() + 100*sim.Microsecond)
	}
	b.ReportMetric(float64(bd.Flow(0).Served.Packets-from)/b.Elapsed().Seconds()/1e6, "Mpackets/s")
}
