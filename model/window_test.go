package model

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"nicprof/program"
	"nicprof/traffic"
)

// A core goes on while its window has room for a line, and waits for all lines at an
// atomic change, at a lock and at the packet's end. Each case is worked out by hand.
func TestWindow(t *testing.T) {
	const (
		base = 0.1
		bulk = 0.01       // of the core for an access
		word = 0.02       // for an atomic one
		line = 0.01 + 0.1 // until a line of the memory is there
	)
	far := func(op program.Op, mode program.Mode, n float64) program.Access {
		return wordsOf("dram", op, mode, n, 1<<20)
	}
	wide := far(program.Read, program.Bulk, 1)
	wide.Bytes, wide.Stride = 128, 128
	long := far(program.Write, program.Atomic, 1)
	long.Bytes = 16
	reads := func(n float64) program.Access { return far(program.Read, program.Bulk, n) }
	hit := wordsOf("l1", program.Add, program.Atomic, 1, 8)
	section := program.Program{
		Accesses: []program.Access{reads(1)},
		Locks:    []program.Lock{{Name: "lock", Elements: 1, Idiom: program.Spin, Section: []program.Access{reads(1)}}},
	}
	of := func(a ...program.Access) program.Program { return program.Program{Accesses: a} }
	for name, c := range map[string]struct {
		p      program.Program
		window float64
		us     float64
	}{
		"nothing":                  {of(), 2, base},
		"one line":                 {of(reads(1)), 2, base + bulk + line},
		"two at the same time":     {of(reads(2)), 2, base + 2*bulk + line},
		"the third waits":          {of(reads(3)), 2, base + bulk + line + line},
		"and the fourth overlaps":  {of(reads(4)), 2, base + 2*bulk + line + line},
		"one by one":               {of(reads(3)), 1, base + bulk + 3*line},
		"room for all":             {of(reads(8)), 8, base + 8*bulk + line},
		"two access lines":         {of(reads(2), far(program.Write, program.Bulk, 2)), 4, base + 4*bulk + line},
		"an access of two lines":   {of(wide), 2, base + bulk + line},
		"or one by one":            {of(wide), 1, base + bulk + 2*line},
		"atomic reads wait":        {of(far(program.Read, program.Atomic, 3)), 8, base + 3*(word+line)},
		"atomic additions wait":    {of(far(program.Add, program.Atomic, 3)), 8, base + 3*(word+line)},
		"an atomic write does not": {of(far(program.Write, program.Atomic, 1), reads(1)), 8, base + word + bulk + line},
		"save for the next":        {of(far(program.Write, program.Atomic, 2)), 8, base + 2*(word+line)},
		"or its own rest":          {of(long), 8, base + 2*word + line},
		"a fence waits":            {of(reads(2), hit), 8, base + 2*bulk + line + word},
		"a lock, too, at its ends": {section, 8, base + 2*(bulk+line) + 0.02},
	} {
		m := lawModel()
		m.CoreLaw.Window.Value = c.window
		m.CoreLaw.Caches[1].SharedUS, m.CoreLaw.Caches[1].WrittenUS = Value{}, Value{}
		p, err := m.Predict(c.p, traffic.Traffic{}, Options{Cores: 1})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		// a thousandth of the lines is in the caches
		if got := 1 / p.Mpps; !(math.Abs(got/c.us-1) < 0.005) {
			t.Errorf("%s: %.4f µs, want %.4f", name, got, c.us)
		}
	}
}

// A core's own lines queue at what all cores share, and one that waits for an older line
// of the window says so.
func TestOwnLinesQueue(t *testing.T) {
	m := lawModel()
	m.CoreLaw.Window.Value, m.CoreLaw.Wait = 8, Value{}
	p, err := m.Predict(program.Program{Accesses: []program.Access{wordsOf("dram", program.Read, program.Bulk, 2, 1<<20)}}, traffic.Traffic{}, Options{Cores: 1})
	// asked for at 0.01 and 0.02 µs, served for 0.05 each from 0.01 on
	if want := 0.1 + 0.01 + 0.05 + 0.11; err != nil || math.Abs(1/p.Mpps/want-1) > 0.005 {
		t.Errorf("two lines: %v Mpps, want %.4f: %v", p.Mpps, 1/want, err)
	}
	var c pipe
	c.size = 2
	line := lineTimes{}
	for r := range line.latency {
		line.latency[r] = 5
	}
	for i, want := range []int{0, 0, strands, 0} { // the fourth is asked for as the second comes
		c.spend(1)
		if got := c.ask(&line, false); got != want {
			t.Errorf("line %d waits in %d of %d strands, want %d", i, got, strands, want)
		}
	}
}

// Whatever share of the accesses takes a time, on average they take that share of it,
// and the strands of two accesses meet in every combination.
func TestStrands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Float64Range(0, 1).Draw(t, "from")
		to := rapid.Float64Range(0, 1).Draw(t, "to")
		var latency [strands]float64
		between(&latency, from, to, 3)
		sum := 0.0
		for _, us := range latency {
			if us < 0 || us > 3+1e-9 {
				t.Fatalf("a strand waits %.3f of 3", us)
			}
			sum += us
		}
		if want := 3 * max(0, to-from); math.Abs(sum/strands-want) > 1e-9 {
			t.Fatalf("shares %.4f to %.4f wait %.4f on average, want %.4f", from, to, sum/strands, want)
		}
	})
	var ranks lineTimes
	for r := range ranks.latency {
		ranks.latency[r] = float64(r)
	}
	var p pipe
	p.size = 1
	p.ask(&ranks, true)
	first := p.now
	p.ask(&ranks, true)
	seen := map[[2]float64]bool{}
	for s := range p.now {
		seen[[2]float64{first[s], p.now[s] - first[s]}] = true
	}
	if len(seen) != strands || first == [strands]float64{} {
		t.Errorf("%d of %d strands differ", len(seen), strands)
	}
}
