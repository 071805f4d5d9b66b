// Package compare tells what changed between two runs or two models of a
// board: the changes that are beyond doubt and beyond a threshold, and nothing
// else.
//
// A change counts when the 95 % interval of the ratio lies wholly beyond the
// threshold, and when its p value survives Benjamini and Hochberg's control of
// the false discovery rate over all that was compared: a sweep has thousands of
// workloads, of which one in twenty would differ by chance.
package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"nicprof/internal/fault"
	"nicprof/internal/stats"
	"nicprof/microbench"
	"nicprof/model"
)

// DefaultThreshold is the change, per cent, that does not matter.
const DefaultThreshold = 1.0

// discoveries is the share of reported changes that may be chance.
const discoveries = 0.05

// Kinds of a Result.
const (
	Runs   = "run"
	Models = "model"
)

// Change is one quantity that changed, with the 95 % interval of the change,
// per cent of old, and the p value adjusted for the number of comparisons.
type Change struct {
	Key        string  `json:"key"` // workload, or the model's part
	Quantity   string  `json:"quantity"`
	Old        float64 `json:"old"`
	New        float64 `json:"new"`
	Percent    float64 `json:"change_pct"`
	Low        float64 `json:"change_low_pct"`
	High       float64 `json:"change_high_pct"`
	P          float64 `json:"p"`
	Regression bool    `json:"regression"` // slower; otherwise faster
}

// Result of a comparison. Changes holds regressions before improvements, each
// from the largest on.
type Result struct {
	Kind        string   `json:"kind"`
	Board       string   `json:"board"`
	Threshold   float64  `json:"threshold_pct"`
	Compared    int      `json:"compared"`
	Unchanged   int      `json:"unchanged"`          // no change beyond doubt and threshold
	TooFew      int      `json:"not_enough_samples"` // no interval on one side
	OnlyOld     []string `json:"only_old"`           // keys
	OnlyNew     []string `json:"only_new"`           // keys
	Broken      []string `json:"broken"`             // workloads that fail now and did not
	Regressions int      `json:"regressions"`        // among Changes
	Changes     []Change `json:"changes"`
}

// Check returns a check fault when something is slower, or fails now.
func (r *Result) Check() error {
	if r.Regressions == 0 && len(r.Broken) == 0 {
		return nil
	}
	return fault.Checkf("%d of %d are slower by more than %g %%, %d fail now", r.Regressions, r.Compared, r.Threshold, len(r.Broken))
}

// quantity is one number to compare.
type quantity struct {
	key, name string
	stats.Estimate
	moreIsBetter bool
}

// Samples compares the samples of two runs by key. Runs of different boards are
// an input fault. threshold is in per cent.
func Samples(before, after []microbench.Sample, threshold float64) (Result, error) {
	r := Result{Kind: Runs, Threshold: threshold}
	if len(before) == 0 || len(after) == 0 {
		return r, fault.Inputf("nothing to compare: %d old and %d new samples", len(before), len(after))
	}
	if err := r.sameBoard(before[0].Board, after[0].Board); err != nil {
		return r, err
	}
	old, broke := rates(before)
	new, breaks := rates(after)
	for _, key := range breaks {
		if !slices.Contains(broke, key) {
			r.Broken = append(r.Broken, key)
		}
	}
	return r, r.compare(old, new)
}

// rates returns the throughput of the samples that were measured, and the keys
// of those that failed.
func rates(samples []microbench.Sample) (measured []quantity, failed []string) {
	for i := range samples {
		s := &samples[i]
		if s.Status != microbench.StatusOK {
			failed = append(failed, s.Key)
			continue
		}
		n := s.Runs
		if s.Backend == microbench.Emulated {
			n = max(n, 2) // one emulated run has its interval from batches
		}
		measured = append(measured, quantity{s.Key, "mpps", stats.Estimate{Value: s.Mpps, Low: s.Low, High: s.High, N: n}, true})
	}
	return measured, failed
}

// Parameters compares the fitted numbers of two models of a board: rates, and
// the times behind them. threshold is in per cent.
func Parameters(before, after *model.Model, threshold float64) (Result, error) {
	r := Result{Kind: Models, Threshold: threshold}
	if err := r.sameBoard(before.Board, after.Board); err != nil {
		return r, err
	}
	return r, r.compare(parameters(before), parameters(after))
}

func parameters(m *model.Model) []quantity {
	var all []quantity
	add := func(key, name string, v model.Value, moreIsBetter bool) {
		if v.Identified {
			all = append(all, quantity{key, name, estimate(v), moreIsBetter})
		}
	}
	for _, b := range m.Bases {
		key := "base " + b.Name
		add(key, "bare_mpps", b.BareMpps, true)
		add(key, "io_mpps", b.IOMpps, true)
		add(key, "core_us", b.CoreUS, false)
		add(key, "access_us", b.AccessUS, false)
		add(key, "lock_us", b.LockUS, false)
	}
	for _, c := range m.Stateless {
		add("stateless "+c.Kind, "us", c.US, false)
	}
	for _, l := range m.Rooflines {
		key := fmt.Sprintf("roofline %s %d B span %d on %s", model.Class{Memory: l.Memory, Op: l.Op, Mode: l.Mode}, l.Bytes, l.Span, l.Base)
		add(key, "a_us", l.A, false)
		add(key, "c_us", l.C, false)
		add(key, "roof_mops", l.Roof, true)
	}
	for _, c := range m.Costs {
		key := fmt.Sprintf("cost %s %d B", c.Class, c.Bytes)
		add(key, "front_us", c.Front, false)
		add(key, "bank_us", c.Bank, false)
		add(key, "line_us", c.Line, false)
		add(key, "miss_us", c.Miss, false)
	}
	for _, l := range m.Locks {
		key := fmt.Sprintf("lock %s on %s", l.Idiom, l.Base)
		add(key, "lock_mpps", l.LockMpps, true)
		add(key, "free_mpps", l.FreeMpps, true)
	}
	return all
}

// estimate takes a fitted number with its interval; one without counts as a
// single sample.
func estimate(v model.Value) stats.Estimate {
	if v.High <= v.Low || v.Low > v.Value || v.High < v.Value {
		return stats.Estimate{Value: v.Value, Low: v.Value, High: v.Value, N: 1}
	}
	return stats.Estimate{Value: v.Value, Low: v.Low, High: v.High, N: 2}
}

func (r *Result) sameBoard(before, after string) error {
	if r.Board = after; before == after {
		return nil
	}
	return fault.Inputf("the old %s is of board %s, the new one of %s: only the same board can be compared", r.Kind, before, after)
}

func (r *Result) compare(before, after []quantity) error {
	type id struct{ key, name string }
	olds := map[id]*quantity{}
	for i := range before {
		olds[id{before[i].key, before[i].name}] = &before[i]
	}
	var changes []Change
	var doubt []float64 // p values, parallel to changes
	found := map[id]bool{}
	for _, q := range after {
		at := id{q.key, q.name}
		old := olds[at]
		if old == nil {
			r.OnlyNew = append(r.OnlyNew, q.key)
			continue
		}
		found[at] = true
		c, err := stats.CompareEstimates(old.Estimate, q.Estimate)
		if err != nil {
			return fault.Inputf("%s, %s: %w", q.key, q.name, err)
		}
		r.Compared++
		if c.Verdict == stats.TooFew {
			r.TooFew++
			continue
		}
		change := Change{Key: q.key, Quantity: q.name, Old: c.Old, New: c.New}
		if c.Percent != nil && c.Verdict == stats.Different {
			change.Percent, change.Low, change.High = c.Percent.Change, c.Percent.Low, c.Percent.High
		}
		change.Regression = change.Percent < 0 == q.moreIsBetter
		changes, doubt = append(changes, change), append(doubt, c.P)
	}
	for _, q := range before {
		if !found[id{q.key, q.name}] {
			r.OnlyOld = append(r.OnlyOld, q.key)
		}
	}
	r.OnlyOld, r.OnlyNew = unique(r.OnlyOld), unique(r.OnlyNew)
	r.Broken = unique(r.Broken)
	r.Changes = []Change{}
	for i, p := range stats.FalseDiscovery(doubt) {
		c := changes[i]
		if p >= discoveries || !(c.Low > r.Threshold || c.High < -r.Threshold) {
			r.Unchanged++
			continue
		}
		c.P = p
		if c.Regression {
			r.Regressions++
		}
		r.Changes = append(r.Changes, c)
	}
	slices.SortStableFunc(r.Changes, func(a, b Change) int {
		if a.Regression != b.Regression {
			if a.Regression {
				return -1
			}
			return 1
		}
		return cmp.Compare(math.Abs(b.Percent), math.Abs(a.Percent))
	})
	return nil
}

// unique returns the keys in their order, each once; never nil, for JSON.
func unique(keys []string) []string {
	out := []string{}
	seen := map[string]bool{}
	for _, k := range keys {
		if !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	}
	return out
}
