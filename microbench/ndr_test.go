package microbench

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/program"
	"nicprof/sim"
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
		pdr := min(d.full, d.ndr*(1+PDRLoss/d.slope))
		if got.NDRMpps > d.ndr*(1+1e-12) || got.NDRMpps < d.ndr*(1-ndrWidth) {
			t.Fatalf("no-drop rate %v, want at most %v of %v below", got.NDRMpps, ndrWidth, d.ndr)
		}
		if got.PDRMpps > pdr*(1+1e-12) || got.PDRMpps < pdr*(1-ndrWidth) {
			t.Fatalf("partial drop rate %v, want at most %v of %v below", got.PDRMpps, ndrWidth, pdr)
		}
		if got.PDRLoss != PDRLoss || got.TrialSeconds != 0.002 || got.Trials < 2 || got.Trials > 60 {
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

// device is a simulated device with a buffer, which honours the length of a
// trial and draws each trial's misfortunes from its seed.
type device struct {
	mpps   float64    // capacity
	noise  float64    // standard deviation of a trial's capacity, relative
	buffer float64    // packets
	random float64    // chance of a packet to be lost, whatever the rate
	burst  float64    // chance of a second to see a burst of losses, whatever the rate
	sends  float64    // Mpps, the most that the generator sends; 0: any rate
	hole   [2]float64 // between these rates 1 % is lost
	early  float64    // Mpps dropped less than were: counters read too early
	log    *trialLog
}

// trialLog is what a device was asked.
type trialLog struct {
	seconds float64
	bursts  int
	bad     map[float64]int // full-length trials with loss by rate
}

func (device) Board() *board.Board { return testBoard() }

func (d device) Measure(_ context.Context, _ program.Program, t traffic.Traffic, o Options) (Sample, error) {
	r := sim.NewStream(o.Seed, "device")
	us := o.TrialSeconds * 1e6
	s := Sample{Backend: Native, Status: StatusOK, Runs: 1, DurationUS: us}
	rate := t.RateMpps
	if rate == 0 || d.sends > 0 && rate > d.sends {
		rate = cmp.Or(d.sends, 2*d.mpps)
		s.OfferedMpps = rate
	}
	sent := math.Round(rate * us)
	lost := max(0, sent-d.mpps*us*(1+d.noise*r.NormFloat64())-d.buffer)
	if d.hole[0] < rate && rate < d.hole[1] {
		lost += 0.01 * sent
	}
	if d.random > 0 { // gaps between random losses are exponential
		for at := r.ExpFloat64() / d.random; at < sent; at += r.ExpFloat64() / d.random {
			lost++
		}
	}
	if r.Float64() < d.burst*o.TrialSeconds {
		s.Warnings = []string{"contended: by a burst"}
		d.log.bursts++
		lost += 0.02 * sent * r.Float64()
	}
	lost = min(sent, math.Ceil(lost))
	s.Mpps, s.DroppedMpps = (sent-lost)/us, lost/us-d.early
	s.Low, s.High = s.Mpps, s.Mpps
	d.log.seconds += o.TrialSeconds
	if o.TrialSeconds == 1 && lost > 0 {
		d.log.bad[t.RateMpps]++
	}
	return s, nil
}

// search finds the rates of a device that is offered up to 10 Gbit/s of 64 B
// packets.
func (d device) search(seed uint64) (NDR, trialLog, error) {
	log := trialLog{bad: map[float64]int{}}
	d.log = &log
	n, err := FindNDR(context.Background(), d, program.Program{}, traffic.Traffic{RateMpps: 14.88}, Options{Seed: seed})
	return n, log, err
}

// TestNDROneMpps: on a device of 1 Mpps both rates are found to 0.5 % in at
// most 36 trial-seconds, whatever the seed, although packets and bursts of them
// are lost now and then: up to one trial in ten is bad.
func TestNDROneMpps(t *testing.T) {
	for name, d := range map[string]device{
		"sharp":            {},
		"buffer of 1024":   {buffer: 1024},
		"random loss":      {buffer: 256, random: 1e-8},
		"more random loss": {buffer: 256, random: 1e-7},
		"rare bursts":      {buffer: 256, burst: 0.03},
		"both":             {buffer: 512, random: 2e-8, burst: 0.02},
		"capacity varies":  {buffer: 256, noise: 2e-4},
	} {
		d.mpps = 1
		var longest, worst float64
		low, high := math.Inf(1), 0.0
		for seed := range uint64(300) {
			n, log, err := d.search(seed)
			if err != nil {
				t.Fatal(err)
			}
			ndr := 1 + d.buffer/1e6 // what the buffer takes up in a trial is not lost
			pdr := ndr / (1 - PDRLoss)
			off := max(math.Abs(n.NDRMpps/ndr-1), math.Abs(n.PDRMpps/pdr-1))
			worst, longest = max(worst, off), max(longest, log.seconds)
			low, high = min(low, n.NDRMpps), max(high, n.NDRMpps)
			if off > 0.005 || log.seconds > 36 || n.TrialSeconds != 1 {
				t.Errorf("%s, seed %d, %v s: %+v", name, seed, log.seconds, n)
			}
			if math.Abs(n.SearchSeconds/log.seconds-1) > 1e-9 || n.Contended != log.bursts {
				t.Errorf("%s: %v s of trials, %d contended: reported %+v", name, log.seconds, log.bursts, n)
			}
		}
		if high > low*1.005 {
			t.Errorf("%s: seeds give %v to %v", name, low, high)
		}
		t.Logf("%s: off by at most %.2f %%, between seeds %.2f %%, at most %.1f s", name, 100*worst, 100*(high/low-1), longest)
	}
}

// TestNDRAnyDevice: the same holds for any capacity and any small buffer.
func TestNDRAnyDevice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := device{
			mpps:   rapid.Float64Range(0.05, 14).Draw(t, "mpps"),
			buffer: float64(rapid.IntRange(0, 2048).Draw(t, "buffer")),
			burst:  rapid.Float64Range(0, 0.02).Draw(t, "burst"),
		}
		n, log, err := d.search(rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		ndr := d.mpps + d.buffer/1e6
		pdr := min(14.88, ndr/(1-PDRLoss))
		if off := max(math.Abs(n.NDRMpps/ndr-1), math.Abs(n.PDRMpps/pdr-1)); off > 0.005 || log.seconds > 36 {
			t.Fatalf("%v s: off by %v: %+v", log.seconds, off, n)
		}
	})
}

// TestNDRHardDevices: a device whose loss does not just rise with the rate gets
// a result that holds for what was tried, and says why it ended there.
func TestNDRHardDevices(t *testing.T) {
	const top = 14.88
	for name, c := range map[string]struct {
		device
		ndr, pdr [2]float64 // the result lies between
		why      string     // of the no-drop rate
	}{
		"never loses":               {device{mpps: 20}, [2]float64{top, top}, [2]float64{top, top}, "the highest rate tried passes"},
		"always loses":              {device{mpps: 1, random: 0.2}, [2]float64{0, 0}, [2]float64{0, 0}, "even the lowest rate tried fails"},
		"loses a little":            {device{mpps: 1, random: 1e-3}, [2]float64{0, 0}, [2]float64{0.995, 1.01}, "even the lowest rate tried fails"},
		"one in a hundred thousand": {device{mpps: 1, random: 1e-5}, [2]float64{0.01, 0.3}, [2]float64{0.995, 1.01}, "lost more"},
		"capacity varies much":      {device{mpps: 1, noise: 0.01}, [2]float64{0.97, 1.02}, [2]float64{0.975, 1.025}, "lost more"},
		"slow generator":            {device{mpps: 1, sends: 0.6}, [2]float64{0.597, 0.601}, [2]float64{0.597, 0.601}, "sent less, down to 0.6 Mpps"},
		"slow":                      {device{mpps: 0.02}, [2]float64{0.0199, 0.02}, [2]float64{0.02, 0.0201}, "lost more"},
	} {
		for seed := range uint64(20) {
			n, log, err := c.search(seed)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if n.NDRMpps < c.ndr[0] || n.NDRMpps > c.ndr[1] || n.PDRMpps < c.pdr[0] || n.PDRMpps > c.pdr[1] {
				t.Errorf("%s, seed %d: want %v and %v: %+v", name, seed, c.ndr, c.pdr, n)
			}
			if !strings.Contains(n.Goals[0].Why, c.why) {
				t.Errorf("%s: %q does not say %q", name, n.Goals[0].Why, c.why)
			}
			if log.seconds > ndrBudget+1 {
				t.Errorf("%s: %v s of trials", name, log.seconds)
			}
		}
	}
}

// TestNDRNotMonotone: where a higher rate loses less than a lower one, no rate
// up to the no-drop rate was tried and found to lose, and the lowest that was is
// no further than the width.
func TestNDRNotMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Float64Range(0.3, 1.2).Draw(t, "from")
		d := device{mpps: 1, hole: [2]float64{from, from + rapid.Float64Range(0, 0.5).Draw(t, "wide")},
			random: rapid.SampledFrom([]float64{0, 1e-8, 1e-7}).Draw(t, "random")}
		n, log, err := d.search(rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		lowest := math.Inf(1)
		for rate, bad := range log.bad {
			if bad > ndrVotes/2 {
				lowest = min(lowest, rate)
			}
		}
		if n.NDRMpps >= lowest || n.NDRMpps < lowest*(1-ndrWidth) || n.Goals[0].UpperMpps != lowest || n.PDRMpps < n.NDRMpps {
			t.Fatalf("lowest rate that fails %v: %+v", lowest, n)
		}
	})
}

func TestNDRRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		d    device
		want string
	}{
		"loss below zero": {device{mpps: 1, early: 0.01, random: 1e-9}, "settled"},
		"no number":       {device{mpps: 1, early: math.NaN()}, "NaN"},
	} {
		c.d.buffer = 1e12 // nothing else is lost
		_, _, err := c.d.search(1)
		wantError(t, err, c.want)
		if fault.KindOf(err) != fault.Check {
			t.Errorf("%s: %v is no check fault", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := FindNDR(ctx, newFake(), program.Program{}, traffic.Traffic{}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
