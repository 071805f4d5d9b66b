package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"nicprof/internal/stats"
)

// reading is one measurement of one side.
type reading struct {
	value float64 // in the comparison's unit
	lost  float64 // of the time, while it ran, that its threads waited for a processor
	pages string  // on which its memory lay; empty: it has no memory to speak of
}

// side measures once.
type side func(ctx context.Context) (reading, error)

// contest is one row: the same work measured by us and by a peer.
type contest struct {
	Comparison
	place        func() error // gives both sides new memory; nil: each reading has its own
	placeEvery   int          // pairs on the same memory; 0 all
	tells        bool         // the peer tells how much of its time it lost
	ours, theirs side
	done         func() error // gives back what the sides hold; may be nil
}

// Comparison is a row of the result.
type Comparison struct {
	Group   string  `json:"group"` // stream, chase, fetch-add or lock
	Name    string  `json:"name"`  // what is done, for instance read/avx2
	Peer    string  `json:"peer"`  // who is compared with
	As      string  `json:"as"`    // what the peer calls it
	Bytes   int64   `json:"working_set_bytes,omitempty"`
	Level   string  `json:"level,omitempty"` // of the memory hierarchy that the working set lies in
	Pages   string  `json:"pages,omitempty"` // got, by us and by the peer if that differs or is known
	Threads int     `json:"threads"`
	Unit    string  `json:"unit"`          // GB/s (10⁹ B) of the bytes the program asks for, or ns
	Aim     float64 `json:"aim,omitempty"` // largest |ratio − 1| aimed at; absent: printed beside, not compared
	Why     string  `json:"why,omitempty"` // why it is not compared, or what explains the ratio

	Ours      Value  `json:"ours"`
	Theirs    Value  `json:"theirs"`
	Ratio     Value  `json:"ratio"` // ours / theirs, of pairs
	Pairs     int    `json:"pairs"`
	Contended int    `json:"contended_pairs"`  // left out, since a side lost its processor meanwhile
	Verdict   string `json:"verdict"`          // within, outside, unclear, or beside
	Failed    string `json:"failed,omitempty"` // why there are no numbers
}

// String is a row as a note of progress.
func (c *Comparison) String() string {
	s := fmt.Sprintf("%s %s, %d B, %d thread(s), against %s %s: ", c.Group, c.Name, c.Bytes, c.Threads, c.Peer, c.As)
	if c.Failed != "" {
		return s + c.Failed
	}
	return s + fmt.Sprintf("%.4g against %.4g %s, ratio %.3f (%.3f to %.3f), %d contended pairs, pages %s, %s",
		c.Ours.Median, c.Theirs.Median, c.Unit, c.Ratio.Median, c.Ratio.Low, c.Ratio.High, c.Contended, c.Pages, c.Verdict)
}

// Value is a median with its distribution-free 95 % interval (or, of fewer than
// six values, their range) and the robust relative spread of the values.
type Value struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Spread float64 `json:"spread"` // MAD × 1.4826 / median
}

// Verdicts.
const (
	Within  = "within"  // the median ratio is within the aim
	Outside = "outside" // the whole interval is outside the aim
	Unclear = "unclear" // noise hides it: the interval is wider than the aim, or too few clean pairs
	Beside  = "beside"  // there is no aim
)

func valueOf(xs []float64) Value {
	s := stats.Sorted(xs)
	low, high, _ := s.MedianInterval()
	median := s.Percentile(50)
	return Value{median, low, high, stats.Spread(xs) / median}
}

// lostLimit is the part of its time that a side may wait for a processor; a
// pair that exceeds it says more about its neighbours than about the code. The
// virtual machine that this was made on loses 0.5 to 2.5 % with nobody else in
// it; one other busy task takes 10 % and more.
const lostLimit = 0.05

// lostApart is how far the losses of the two sides may be apart, where the peer
// tells its own: the rest goes into the ratio.
const lostApart = 0.015

// run measures the pairs, A B A B, until there are enough that nothing else
// ran in, and fills the row. A side that fails fails the row, not the run.
func (c *contest) run(ctx context.Context, sc scale) error {
	pairs := sc.pairs
	if c.Threads > 1 {
		pairs = sc.threads
	}
	if c.done != nil {
		defer c.done() //nolint:errcheck // what a peer says at its end changes no number
	}
	var clean, all [3][]float64 // ours, theirs, ratios
	seen := map[string]bool{}
	for n := 0; n < sc.attempts*pairs && len(clean[0]) < pairs; n++ {
		if c.place != nil && (n == 0 || c.placeEvery > 0 && n%c.placeEvery == 0) {
			if err := c.place(); err != nil {
				return c.fail(ctx, err)
			}
		}
		a, err := c.ours(ctx)
		if err != nil {
			return c.fail(ctx, fmt.Errorf("nicprof: %w", err))
		}
		b, err := c.theirs(ctx)
		if err != nil {
			return c.fail(ctx, fmt.Errorf("%s: %w", c.Peer, err))
		}
		if !(a.value > 0) || !(b.value > 0) || math.IsInf(a.value, 0) || math.IsInf(b.value, 0) {
			return c.fail(ctx, fmt.Errorf("readings of %v and %v %s", a.value, b.value, c.Unit))
		}
		if a.pages != "" {
			pages := a.pages
			if b.pages != "" && b.pages != a.pages {
				pages += " against " + b.pages
			}
			seen[pages] = true
		}
		for i, v := range [3]float64{a.value, b.value, a.value / b.value} {
			all[i] = append(all[i], v)
			if max(a.lost, b.lost) <= lostLimit && (!c.tells || math.Abs(a.lost-b.lost) <= lostApart) {
				clean[i] = append(clean[i], v)
			}
		}
	}
	c.Contended = len(all[0]) - len(clean[0])
	enough := len(clean[0]) >= pairs
	if len(clean[0]) == 0 {
		clean = all
	}
	c.Pairs = len(clean[0])
	c.Ours, c.Theirs, c.Ratio = valueOf(clean[0]), valueOf(clean[1]), valueOf(clean[2])
	c.Pages = strings.Join(sortedKeys(seen), "; ")
	c.Verdict = verdict(c.Ratio, c.Aim, enough)
	return nil
}

// fail notes why a row has no numbers; only the end of the whole run is an
// error.
func (c *contest) fail(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.Failed = err.Error()
	return nil
}

// verdict judges a ratio against an aim.
func verdict(r Value, aim float64, enough bool) string {
	low, high := 1-aim, 1+aim
	switch {
	case aim == 0:
		return Beside
	case !enough || r.High-r.Low > 2*aim:
		return Unclear
	case r.Median >= low && r.Median <= high:
		return Within
	case r.Low > high || r.High < low:
		return Outside
	}
	return Unclear
}

// probe is how much of a short time a spinning thread is not running, seen in
// the gaps between its looks at the clock. It finds what the system's own
// accounts do not show: another guest on the processor. Timer interrupts (here
// 2400 a second of 20 to 60 µs, guest's and host's) are no gaps: they are there
// all the time, for both sides.
func probe(d time.Duration) float64 {
	const gap = 300 * time.Microsecond
	begin := time.Now()
	var lost time.Duration
	for last := begin; ; {
		now := time.Now()
		if away := now.Sub(last); away > gap {
			lost += away
		}
		if last = now; now.Sub(begin) >= d {
			return lost.Seconds() / now.Sub(begin).Seconds()
		}
	}
}
