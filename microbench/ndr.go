package microbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"nicprof/internal/fault"
	"nicprof/program"
	"nicprof/traffic"
)

// PDRLoss is the share of packets that a partial drop rate may lose.
const PDRLoss = 0.005

// The search for the no-drop rate follows the ideas of MLRsearch
// (draft-ietf-bmwg-mlrsearch): several goals in one search that share their
// trials, short trials before long ones, and a verdict on a rate from several
// trials, of which some may be bad.
const (
	// ndrWidth is the relative distance between a goal's rate and the lowest rate
	// that fails it. It is half of the 0.5 % that is promised: a wrong verdict by
	// rare random loss then still leaves the rate within 0.5 %.
	ndrWidth = 0.0025
	// ndrVotes trials of the final length decide on a rate, and ndrExceed of them
	// may be bad. They end early when the rest could not change the verdict.
	ndrVotes  = 5
	ndrExceed = 0.5
	// ndrFloor is the lowest rate tried, relative to the highest.
	ndrFloor = 1e-3
	// ndrBudget is the longest search, in final trials; a device that loses now
	// and then at every rate would otherwise be searched down to the floor.
	ndrBudget = 120
	// Default lengths of a final trial.
	ndrSeconds         = 1.0
	ndrEmulatedSeconds = 2e-3 // simulated; a second would be tens of millions of packets
)

// NDR is the result of a search for the no-drop rate: the highest offered
// rate, Mpps, at which most trials lose no packet (RFC 2544, throughput), and
// the partial drop rate, at which most lose no more than PDRLoss. Both are
// rates that were tried, at most 0.5 % below the lowest rate that fails.
// TrialSeconds is the length of the shortest of the trials that decided,
// simulated time on an emulated board: the shorter a trial, the rarer the
// losses that it misses. SearchSeconds is that of all trials together, and
// Contended the number of those that other work on the machine disturbed.
type NDR struct {
	NDRMpps       float64   `json:"ndr_mpps"`
	PDRMpps       float64   `json:"pdr_mpps"`
	PDRLoss       float64   `json:"pdr_loss"`
	TrialSeconds  float64   `json:"trial_seconds"`
	Trials        int       `json:"trials"`
	SearchSeconds float64   `json:"search_seconds"`
	Contended     int       `json:"contended_trials,omitempty"`
	Goals         []NDRGoal `json:"goals"`
}

// NDRGoal is what a search found for one bound on the share of packets lost.
// Mpps is 0 when no rate passed, and UpperMpps, the lowest rate that failed, 0
// when none did. ForwardedMpps is what the median deciding trial at Mpps
// forwarded: the conditional throughput. Why says what ended the search.
type NDRGoal struct {
	Name          string  `json:"name"`
	LossRatio     float64 `json:"loss_ratio"`
	ExceedRatio   float64 `json:"exceed_ratio"` // share of trials that may lose more
	Votes         int     `json:"votes"`        // trials that decide on a rate, at most
	Mpps          float64 `json:"mpps"`
	UpperMpps     float64 `json:"upper_mpps,omitempty"`
	ForwardedMpps float64 `json:"forwarded_mpps"`
	Why           string  `json:"why"`
}

// FindNDR searches between a thousandth of the highest rate and that rate: t's
// own, or what the board takes when saturated. A final trial lasts
// o.TrialSeconds, by default 1 s, or 2 ms of simulated time; those before are
// shorter. Where a higher rate loses less than a lower one, the lower one
// counts. A driver that reports less than no loss is refused with a check
// fault.
func FindNDR(ctx context.Context, d Driver, p program.Program, t traffic.Traffic, o Options) (NDR, error) {
	s := ndrSearch{driver: d, program: p, traffic: t, options: o, top: t.RateMpps}
	n := NDR{PDRLoss: PDRLoss}
	if err := s.warmUp(ctx); err != nil {
		return n, err
	}
	for _, goal := range []NDRGoal{{Name: "ndr"}, {Name: "pdr", LossRatio: PDRLoss}} {
		g, err := s.find(ctx, goal)
		if err != nil {
			return n, err
		}
		n.Goals = append(n.Goals, g)
	}
	n.NDRMpps, n.PDRMpps = n.Goals[0].Mpps, n.Goals[1].Mpps
	n.TrialSeconds, n.Trials, n.SearchSeconds, n.Contended = s.shortest, s.count, s.total, s.contended
	return n, nil
}

// ndrPhase is a stage of the search: trials of one length, and how many of them
// decide on a rate.
type ndrPhase struct {
	seconds float64
	votes   int
}

// ndrSearch is a search under way.
type ndrSearch struct {
	driver  Driver
	program program.Program
	traffic traffic.Traffic
	options Options

	top, least float64 // Mpps
	phases     []ndrPhase
	trials     []ndrTrial
	count      int     // trials made, those not kept included
	spent      float64 // s, as asked for
	total      float64 // s, as measured
	shortest   float64 // s, of the trials in the last phase
	contended  int     // trials
}

// ndrTrial is the outcome of one trial.
type ndrTrial struct {
	rate      float64 // Mpps, as asked
	seconds   float64 // as asked
	loss      float64 // share of packets lost; 1 when the generator fell short
	forwarded float64 // Mpps
	sent      float64 // Mpps, by a generator that fell short; 0: as asked
}

// errNDRBudget ends a phase that has used up the search's time.
var errNDRBudget = errors.New("the search's time is used up")

// warmUp makes a trial that does not count, finds the highest rate where the
// traffic gives none, and lays out the phases.
func (s *ndrSearch) warmUp(ctx context.Context) error {
	final := s.options.TrialSeconds
	first, err := s.measure(ctx, s.top, cmp.Or(final, ndrSeconds)/20)
	if err != nil {
		return err
	}
	if final == 0 && first.Backend == Emulated {
		final = ndrEmulatedSeconds
	}
	final = cmp.Or(final, ndrSeconds)
	s.phases = []ndrPhase{{final / 20, 1}, {final / 5, 1}, {final, ndrVotes}}
	if s.top == 0 {
		full, err := s.measure(ctx, 0, final/5)
		if err != nil {
			return err
		}
		s.top = max(full.High, full.Mpps+full.DroppedMpps, full.OfferedMpps)
	}
	if s.top <= 0 {
		return fault.Checkf("the board forwards nothing of this program: there is no rate to search for")
	}
	s.least = ndrFloor * s.top
	return nil
}

// measure offers packets at a rate (0: saturating) for some seconds. Each trial
// at a rate has random streams of its own.
func (s *ndrSearch) measure(ctx context.Context, rate, seconds float64) (Sample, error) {
	const golden = 0x9e3779b97f4a7c15 // spreads successive numbers over all of 64 bits
	o := s.options
	o.TrialSeconds = seconds
	if rate > 0 {
		o.Seed += golden * uint64(s.count)
		o.MaxRuns = 1
	}
	t := s.traffic
	t.RateMpps = rate
	sample, err := s.driver.Measure(ctx, s.program, t, o)
	if err != nil {
		return sample, err
	}
	if sample.Status == StatusFailed {
		return sample, fault.Checkf("a trial at %.6g Mpps failed: %s", rate, sample.Reason)
	}
	if !(sample.DroppedMpps >= 0 && sample.Mpps >= 0) { // NaN included
		return sample, fault.Checkf("a trial at %.6g Mpps forwarded %v and lost %v Mpps: less than no loss means that its counters were read before they had settled, or count other packets too",
			rate, sample.Mpps, sample.DroppedMpps)
	}
	s.count++
	s.spent += seconds
	s.total += sample.DurationUS / 1e6
	if slices.ContainsFunc(sample.Warnings, func(w string) bool { return strings.HasPrefix(w, "contended:") }) {
		s.contended++
	}
	return sample, nil
}

// find runs the phases for one goal; each begins where the one before ended.
func (s *ndrSearch) find(ctx context.Context, g NDRGoal) (NDRGoal, error) {
	g.ExceedRatio, g.Votes = ndrExceed, ndrVotes
	start := s.top
	stopped := false
	last := s.phases[len(s.phases)-1]
	for _, ph := range s.phases {
		err := s.narrow(ctx, ph, g.LossRatio, start)
		if errors.Is(err, errNDRBudget) {
			stopped = true
			break
		}
		if err != nil {
			return g, err
		}
		low, _ := s.bounds(ph, g.LossRatio)
		start = max(low, s.least)
	}
	low, high := s.bounds(last, g.LossRatio)
	g.Mpps = low
	if !math.IsInf(high, 1) {
		g.UpperMpps = high
	}
	g.ForwardedMpps = s.forwarded(last, low)
	g.Why = s.why(g, stopped)
	return g, nil
}

// why says in words what ended the search of a goal.
func (s *ndrSearch) why(g NDRGoal, stopped bool) string {
	var text string
	if stopped {
		text = fmt.Sprintf("stopped after %.3g s of trials; ", s.spent)
	}
	switch {
	case g.Mpps == s.top:
		return fmt.Sprintf("%sthe highest rate tried passes", text)
	case g.UpperMpps == 0:
		return text + "no rate was decided to fail"
	case g.UpperMpps <= s.least:
		text += "even the lowest rate tried fails: "
	case g.Mpps == 0:
		text += "no rate was decided to pass: "
	}
	upper := s.at(s.phases[len(s.phases)-1], g.UpperMpps)
	bad, short, worst, least := 0, 0, 0.0, math.Inf(1)
	for _, t := range upper {
		switch {
		case t.sent > 0:
			short++
			least = min(least, t.sent)
		case t.loss > g.LossRatio:
			bad++
			worst = max(worst, t.loss)
		}
	}
	text += fmt.Sprintf("of %d trials at %.6g Mpps ", len(upper), g.UpperMpps)
	if bad > 0 {
		text += fmt.Sprintf("%d lost more, up to %.3g %%", bad, 100*worst)
	}
	if bad > 0 && short > 0 {
		text += ", and "
	}
	if short > 0 {
		text += fmt.Sprintf("%d sent less, down to %.6g Mpps: the generator cannot keep up", short, least)
	}
	return text
}

// narrow tries rates in a phase until the lowest that fails is within ndrWidth
// of the highest below it that passes, or all or none of them pass. From start
// it takes growing steps until the verdict changes, and halves from there.
func (s *ndrSearch) narrow(ctx context.Context, ph ndrPhase, limit, start float64) error {
	low, high := s.bounds(ph, limit)
	rate := min(max(start, low), high)
	step, stride, before := ndrWidth, true, false
	for first := true; ; first = false {
		pass, err := s.decide(ctx, ph, limit, rate)
		if err != nil {
			return err
		}
		low, high = s.bounds(ph, limit)
		if low == s.top || high <= s.least || low >= high*(1-ndrWidth) {
			return nil
		}
		stride = stride && (first || pass == before)
		before = pass
		next := (low + high) / 2
		if stride {
			next = s.stride(ph, limit, rate, step, pass)
			step *= 2
		}
		if stride = stride && low < next && next < high; !stride {
			next = (low + high) / 2
		}
		rate = next
	}
}

// stride returns the rate a step above one that passes or below one that fails.
// Below a rate that lost much, the rate that was forwarded is the better guess.
func (s *ndrSearch) stride(ph ndrPhase, limit, rate, step float64, pass bool) float64 {
	if pass {
		return min(rate*(1+step), s.top)
	}
	next := rate * (1 - step)
	if guess := s.forwarded(ph, rate) / (1 - limit); guess > s.least && guess < next {
		next = guess
	}
	return max(next, s.least)
}

// decide makes trials at a rate until the verdict of the phase is known.
func (s *ndrSearch) decide(ctx context.Context, ph ndrPhase, limit, rate float64) (pass bool, err error) {
	for {
		if pass, known := verdict(s.at(ph, rate), ph.votes, limit); known {
			return pass, nil
		}
		if s.spent >= ndrBudget*s.phases[len(s.phases)-1].seconds {
			return false, errNDRBudget
		}
		sample, err := s.measure(ctx, rate, ph.seconds)
		if err != nil {
			return false, err
		}
		t := ndrTrial{rate: rate, seconds: ph.seconds, forwarded: sample.Mpps}
		if sample.DroppedMpps > 0 {
			t.loss = sample.DroppedMpps / (sample.Mpps + sample.DroppedMpps)
		}
		if sent := sample.OfferedMpps; sent > 0 && sent < rate*(1-ndrWidth/2) {
			t.loss, t.sent = 1, sent // no such rate was tried
		}
		s.trials = append(s.trials, t)
		if seconds := sample.DurationUS / 1e6 / float64(max(1, sample.Runs)); ph.seconds == s.phases[len(s.phases)-1].seconds && (s.shortest == 0 || seconds < s.shortest) {
			s.shortest = seconds
		}
	}
}

// verdict is what trials say of a rate: it passes when, whatever the trials
// still to come say, no more than ndrExceed of all votes lose more than limit,
// and fails when more do.
func verdict(trials []ndrTrial, votes int, limit float64) (pass, known bool) {
	mayExceed := int(ndrExceed * float64(votes))
	good, bad := 0, 0
	for _, t := range trials {
		if t.loss <= limit {
			good++
		} else {
			bad++
		}
	}
	return good >= votes-mayExceed, good >= votes-mayExceed || bad > mayExceed
}

// at returns the trials of a phase's length at a rate.
func (s *ndrSearch) at(ph ndrPhase, rate float64) []ndrTrial {
	var trials []ndrTrial
	for _, t := range s.trials {
		if t.rate == rate && t.seconds == ph.seconds {
			trials = append(trials, t)
		}
	}
	return trials
}

// bounds returns the lowest rate that fails in a phase (infinite if none does)
// and the highest below it that passes (0 if none does).
func (s *ndrSearch) bounds(ph ndrPhase, limit float64) (low, high float64) {
	high = math.Inf(1)
	var passed []float64
	for _, t := range s.trials {
		switch pass, known := verdict(s.at(ph, t.rate), ph.votes, limit); {
		case pass:
			passed = append(passed, t.rate)
		case known:
			high = min(high, t.rate)
		}
	}
	for _, rate := range passed {
		if rate < high {
			low = max(low, rate)
		}
	}
	return low, high
}

// forwarded is what the median trial of a phase at a rate forwarded.
func (s *ndrSearch) forwarded(ph ndrPhase, rate float64) float64 {
	var rates []float64
	for _, t := range s.at(ph, rate) {
		rates = append(rates, t.forwarded)
	}
	if len(rates) == 0 {
		return 0
	}
	slices.Sort(rates)
	return rates[len(rates)/2]
}
