package bluefield

import (
	"testing"

	"nicprof/board"
	"nicprof/emu"
	"nicprof/program"
	"nicprof/traffic"
)

// BenchmarkRun measures one run, its caches' filling included.
func BenchmarkRun(b *testing.B) {
	bf, err := board.Load("bluefield")
	if err != nil {
		b.Fatal(err)
	}
	for _, spec := range []string{"l1:read:bulk:64:16", "l2:read:bulk:64:16", "llc:write:bulk:64:16", "dram:read:bulk:64:16", "llc:add:atomic:8:16:1"} {
		b.Run(spec, func(b *testing.B) {
			a, err := program.ParseAccess(spec)
			if err != nil {
				b.Fatal(err)
			}
			p := bf.Resolve(program.Program{Accesses: []program.Access{a}})
			packets := int64(0)
			for i := range b.N {
				r, err := Run(b.Context(), bf, p, traffic.Traffic{}, emu.Config{Seed: uint64(i)})
				if err != nil {
					b.Fatal(err)
				}
				packets += r.Packets
			}
			b.ReportMetric(float64(packets)/b.Elapsed().Seconds(), "packets/s")
		})
	}
}
