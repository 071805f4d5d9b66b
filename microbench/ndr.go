package microbench

import (
	"context"

	"nicprof/internal/fault"
	"nicprof/program"
	"nicprof/traffic"
)

// PDRLoss is the share of packets that a partial drop rate may lose.
const PDRLoss = 0.005

// ndrResolution is the width at which the search stops, relative to the
// highest rate.
const ndrResolution = 0.005

// NDR is the result of a search for the no-drop rate: the highest offered
// rate, Mpps, of which no packet is lost in a trial (RFC 2544, throughput),
// and the partial drop rate, of which at most PDRLoss is. Both are rates that
// were tried, within 0.5 % of the highest one. TrialSeconds is the length of
// the shortest trial, simulated time on an emulated board: the shorter a
// trial, the rarer the losses that it misses.
type NDR struct {
	NDRMpps      float64 `json:"ndr_mpps"`
	PDRMpps      float64 `json:"pdr_mpps"`
	PDRLoss      float64 `json:"pdr_loss"`
	TrialSeconds float64 `json:"trial_seconds"`
	Trials       int     `json:"trials"`
}

// FindNDR searches by halving between 0 and the saturated rate, or t's own
// rate if that is set. It assumes, as RFC 2544 does, that a higher rate never
// loses less.
func FindNDR(ctx context.Context, d Driver, p program.Program, t traffic.Traffic, o Options) (NDR, error) {
	n := NDR{PDRLoss: PDRLoss}
	top := t.RateMpps
	if top == 0 {
		s, err := d.Measure(ctx, p, t, o)
		if err != nil {
			return n, err
		}
		top = s.High
	}
	if top <= 0 {
		return n, fault.Checkf("the board forwards nothing of this program: there is no rate to search for")
	}
	// loss tries a rate and returns the share of packets lost.
	loss := func(rate float64) (float64, error) {
		t.RateMpps = rate
		s, err := d.Measure(ctx, p, t, o)
		if err != nil {
			return 0, err
		}
		n.Trials++
		if trial := s.DurationUS / 1e6 / float64(max(1, s.Runs)); n.Trials == 1 || trial < n.TrialSeconds {
			n.TrialSeconds = trial
		}
		if s.DroppedMpps == 0 {
			return 0, nil
		}
		return s.DroppedMpps / (s.Mpps + s.DroppedMpps), nil
	}
	// search halves [low, high], where low passes; high is tried first.
	search := func(low, limit float64) (float64, error) {
		high := top
		for try := high; ; try = (low + high) / 2 {
			l, err := loss(try)
			switch {
			case err != nil:
				return 0, err
			case l > limit:
				high = try
			case try == top:
				return top, nil
			default:
				low = try
			}
			if high-low <= ndrResolution*top {
				return low, nil
			}
		}
	}
	var err error
	if n.NDRMpps, err = search(0, 0); err != nil {
		return n, err
	}
	n.PDRMpps, err = search(n.NDRMpps, PDRLoss)
	return n, err
}
