package microbench

import (
	"context"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/program"
	"nicprof/traffic"
)

// lossyDriver forwards without loss up to ndr, then loses a share that grows
// with the rate, and forwards at most full.
type lossyDriver struct {
	ndr, slope, full float64
	err              error
}

func (lossyDriver) Board() *board.Board { return testBoard() }

func (d lossyDriver) Measure(_ context.Context, _ program.Program, t traffic.Traffic, _ Options) (Sample, error) {
	rate := t.RateMpps
	if rate == 0 {
		return Sample{Mpps: d.full, Low: d.full, High: d.full, Runs: 4, DurationUS: 8000}, d.err
	}
	loss := d.slope * max(0, rate/d.ndr-1)
	pass := min(d.full, rate*(1-min(1, loss)))
	return Sample{Mpps: pass, DroppedMpps: rate - pass, Runs: 4, DurationUS: 8000}, d.err
}

func TestFindNDR(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := lossyDriver{
			ndr:   rapid.Float64Range(0.5, 27).Draw(t, "ndr"),
			slope: rapid.Float64Range(0.01, 2).Draw(t, "slope"),
			full:  28,
		}
		got, err := FindNDR(context.Background(), d, program.Program{}, traffic.Traffic{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		width := ndrResolution * d.full
		pdr := min(d.full, d.ndr*(1+PDRLoss/d.slope))
		if got.NDRMpps > d.ndr*(1+1e-12) || got.NDRMpps < d.ndr-width {
			t.Fatalf("no-drop rate %v, want at most %v below %v", got.NDRMpps, width, d.ndr)
		}
		if got.PDRMpps > pdr*(1+1e-12) || got.PDRMpps < pdr-width {
			t.Fatalf("partial drop rate %v, want at most %v below %v", got.PDRMpps, width, pdr)
		}
		if got.PDRLoss != PDRLoss || got.TrialSeconds != 0.002 || got.Trials < 2 || got.Trials > 20 {
			t.Fatalf("%+v", got)
		}
	})
}

func TestFindNDREdges(t *testing.T) {
	ctx := context.Background()
	clean := lossyDriver{ndr: 100, full: 28}
	if got, err := FindNDR(ctx, clean, program.Program{}, traffic.Traffic{}, Options{}); err != nil || got.NDRMpps != 28 || got.PDRMpps != 28 {
		t.Errorf("without loss: %+v, %v; want the saturated rate", got, err)
	}
	if got, err := FindNDR(ctx, clean, program.Program{}, traffic.Traffic{RateMpps: 5}, Options{}); err != nil || got.NDRMpps != 5 {
		t.Errorf("up to a rate of 5 Mpps: %+v, %v", got, err)
	}
	lossy := lossyDriver{ndr: 1e-6, slope: 1e9, full: 28}
	got, err := FindNDR(ctx, lossy, program.Program{}, traffic.Traffic{}, Options{})
	if err != nil || got.NDRMpps > 1e-6 || math.IsNaN(got.PDRMpps) {
		t.Errorf("always lossy: %+v, %v", got, err)
	}
	if _, err := FindNDR(ctx, lossyDriver{}, program.Program{}, traffic.Traffic{}, Options{}); fault.KindOf(err) != fault.Check {
		t.Errorf("a board that forwards nothing: %v", err)
	}
	broken := lossyDriver{full: 28, err: errors.New("link down")}
	_, err = FindNDR(ctx, broken, program.Program{}, traffic.Traffic{}, Options{})
	wantError(t, err, "link down")
	_, err = FindNDR(ctx, broken, program.Program{}, traffic.Traffic{RateMpps: 1}, Options{})
	wantError(t, err, "link down")
}
