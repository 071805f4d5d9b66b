package snic_test

import (
	"math"
	"slices"
	"testing"

	"nicprof/emu/snic"
	"nicprof/sim"
)

// saturated returns the rate of one NT of a cycle under packets back to back,
// Gib/s of packet bytes.
func saturated(t testing.TB, c snic.Config, bytes int) float64 {
	t.Helper()
	c.NTs = []snic.NT{{Name: "dummy", Cycles: 1}}
	c.Regions = [][]int{{0}}
	b, err := snic.New(c)
	if err == nil {
		err = b.SetRoute(0, snic.Route{{{{Region: 0, Run: 1}}}})
	}
	if err == nil {
		err = b.Offer(0, snic.Load{Saturate: true, Bytes: bytes})
	}
	if err != nil {
		t.Fatal(err)
	}
	b.Run(20 * sim.Microsecond)
	before := b.Flow(0).Served
	b.Run(220 * sim.Microsecond)
	return b.Flow(0).Served.Gbps(before, 200*sim.Microsecond) * 1e9 / (1 << 30)
}

// TestCredits holds throughput by packet size and credits to the thesis'
// data_credit, read as Gib/s, of which four points were calibrated on.
func TestCredits(t *testing.T) {
	b := load(t, "snic")
	published := map[int][4]float64{
		64:   {11, 22, 41, 51},
		256:  {46, 67, 108, 108},
		1024: {116, 116, 116, 116},
	}
	var errs []float64
	for bytes, row := range published {
		for i, want := range row {
			got := saturated(t, snic.Config{Board: b, Credits: 1 << i}, bytes)
			e := math.Abs(got/want - 1)
			t.Logf("%4d B, %d credits: %6.1f Gib/s, published %3.0f: %+.1f %%", bytes, 1<<i, got, want, 100*(got/want-1))
			if e > .2 {
				t.Errorf("%d B, %d credits: %.1f Gib/s, published %v", bytes, 1<<i, got, want)
			}
			errs = append(errs, e)
		}
	}
	slices.Sort(errs)
	if median := (errs[5] + errs[6]) / 2; median > .06 {
		t.Errorf("median error %.1f %%", 100*median)
	}
}

// TestCreditsOfOtherSizes: sizes between and beyond the published ones never gain
// by fewer credits, keep below the data path's rate, which they reach with eight,
// and with one credit gain by size.
func TestCreditsOfOtherSizes(t *testing.T) {
	b := load(t, "snic")
	before := 0.0
	for _, bytes := range []int{64, 128, 192, 256, 320, 384, 512, 640, 1024, 1280} {
		path := float64(bytes) * 8 / ((float64(bytes)/64 + b.FPGA.BusGap.Value) * 4e-9) / (1 << 30)
		last := 0.0
		for i := range 4 {
			got := saturated(t, snic.Config{Board: b, Credits: 1 << i}, bytes)
			if got < last*.999 || got > path*1.001 || i == 3 && bytes >= 128 && got < path*.98 {
				t.Errorf("%d B, %d credits: %.1f Gib/s, with half the credits %.1f, data path %.1f", bytes, 1<<i, got, last, path)
			}
			if i == 0 && got < before {
				t.Errorf("%d B, one credit: %.1f Gib/s, smaller packets %.1f", bytes, got, before)
			} else if i == 0 {
				before = got
			}
			last = got
		}
	}
}
