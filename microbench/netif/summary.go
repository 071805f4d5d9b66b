package netif

import (
	"context"
	"fmt"
	"math"
	"slices"

	"nicprof/internal/fault"
	"nicprof/internal/stats"
	"nicprof/microbench"
	"nicprof/sim"
)

// trials repeats a trial until the interval of the rate is as narrow as asked
// or all trials are made, and puts them into the sample. A trial that other
// work has disturbed is repeated, as often as there are trials.
func trials(ctx context.Context, r request, s *microbench.Sample, trial func(context.Context) (outcome, error)) error {
	var kept []outcome
	repeats := 0
	for len(kept) < r.trials {
		o, err := trial(ctx)
		if err != nil {
			return err
		}
		if o.waited > contended && repeats < r.trials {
			repeats++
			continue
		}
		kept = append(kept, o)
		if len(kept) >= fewestTrials && precise(kept, r.precision) {
			break
		}
	}
	if slices.Max(rates(kept)) == 0 {
		return fault.Checkf("nothing was forwarded in %d trials", len(kept))
	}
	if spread := stats.Spread(rates(kept)) / stats.Median(rates(kept)); len(kept) >= fewestTrials && spread > noisy {
		text := fmt.Sprintf("the rates of %d trials vary by ±%.0f %%, more than ±%.0f %%: the machine is too noisy", len(kept), 100*spread, 100*noisy)
		if !r.allowNoise {
			return fault.Checkf("%s; stop other work, or add --allow-noise", text)
		}
		s.Warnings = append(s.Warnings, text)
	}
	summarise(r, s, kept, repeats)
	return nil
}

func rates(trials []outcome) []float64 {
	mpps := make([]float64, len(trials))
	for i, o := range trials {
		mpps[i] = o.mpps
	}
	return mpps
}

func precise(trials []outcome, relative float64) bool {
	i := sim.Replications(rates(trials), 0.95)
	return i.Mean > 0 && i.Half() <= relative*i.Mean
}

// summarise fills in the sample.
func summarise(r request, s *microbench.Sample, trials []outcome, repeats int) {
	mpps := rates(trials)
	i := sim.Interval{Mean: mpps[0], Low: mpps[0], High: mpps[0]}
	if len(mpps) > 1 {
		i = sim.Replications(mpps, 0.95)
	}
	s.Mpps, s.Low, s.High = i.Mean, max(0, i.Low), i.High
	s.MedianMpps = stats.Median(mpps)
	s.Outliers = len(stats.Outliers(mpps))
	s.Runs = len(trials)
	s.CPUNS, s.Utilisation = map[string]float64{}, map[string]float64{}
	limits := map[string]int{}
	var packets microbench.Packets
	var latency []float64
	waited := 0.0
	n := float64(len(trials))
	for _, o := range trials {
		s.OfferedMpps += o.offered / n
		s.DroppedMpps += o.dropped / n
		s.DurationUS += o.seconds * 1e6
		for part, ns := range o.cpu {
			s.CPUNS[part] += ns / n
		}
		for part, share := range o.busy {
			s.Utilisation[part] += min(1, share) / n
		}
		limits[o.limit(r.traffic.RateMpps)]++
		packets.Add(o.packets)
		for _, ns := range o.latency {
			latency = append(latency, float64(ns)/1e3)
		}
		waited = max(waited, o.waited)
		for _, w := range o.warnings {
			if !slices.Contains(s.Warnings, w) {
				s.Warnings = append(s.Warnings, w)
			}
		}
	}
	most := 0
	for limit, n := range limits {
		if n > most || n == most && limit < s.Bottleneck {
			most, s.Bottleneck = n, limit
		}
	}
	if packets.Sent > 0 {
		s.Packets = &packets
	}
	if len(latency) > 0 {
		sorted := stats.Sorted(latency)
		s.Latency = microbench.Latency{P50: sorted.Percentile(50), P99: sorted.Percentile(99)}
	}
	warn := func(format string, a ...any) { s.Warnings = append(s.Warnings, fmt.Sprintf(format, a...)) }
	if packets.Check() != nil {
		warn("%s", describe(packets))
	}
	if due := packets.Due; due > 0 && packets.Sent < due {
		warn("the generator sent %d of %d packets in time: the offered rate was %.4g Mpps, not %.4g", packets.Sent, due, s.OfferedMpps, r.traffic.RateMpps)
	}
	if waited > contended {
		warn("contended: the threads of a trial were ready without running for %.0f %% of its time, after %d repeats; stop other work, or give more processors", 100*waited, repeats)
	} else if repeats > 0 {
		warn("%d trials were repeated: other work disturbed them", repeats)
	}
	if len(trials) >= fewestTrials && !precise(trials, r.precision) {
		warn("the interval is wider than asked after %d trials", len(trials))
	}
	for part, share := range s.Utilisation {
		s.Utilisation[part] = math.Round(share*1e4) / 1e4
	}
}
