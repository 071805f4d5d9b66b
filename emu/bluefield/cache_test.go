package bluefield

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"nicprof/traffic"
)

// small is a hierarchy in which everything overflows quickly: two tiles of two
// cores, L1 of 4 lines, L2 of 16, last level of 64.
func small() *hierarchy {
	h := &hierarchy{mates: 2, llc: newTags(64*64, 64, 4)}
	for range 4 {
		h.l1 = append(h.l1, newTags(4*64, 64, 2))
	}
	for range 2 {
		h.l2 = append(h.l2, newTags(16*64, 64, 4))
	}
	return h
}

// A cache keeps the lines of each set that were used last, in their order.
func TestTagsAreLRU(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const sets, ways = 3, 4
		c := newTags(sets*ways*64, 64, ways)
		want := make([][]int64, sets) // latest first
		for _, line := range rapid.SliceOfN(rapid.Int64Range(0, 30), 1, 200).Draw(t, "lines") {
			s := &want[line%sets]
			at := slices.Index(*s, line)
			if hit := c.touch(line) != nil; hit != (at >= 0) {
				t.Fatalf("line %d: hit %v, the set holds %v", line, hit, *s)
			}
			if at >= 0 {
				*s = slices.Delete(*s, at, at+1)
			} else {
				var out int64 = -1
				if len(*s) == ways {
					out = (*s)[ways-1]
					*s = (*s)[:ways-1]
				}
				if got := lineOf(c.fill(line, 0)); got != out {
					t.Fatalf("line %d drives out %d, want %d", line, got, out)
				}
			}
			*s = slices.Insert(*s, 0, line)
			if rapid.IntRange(0, 9).Draw(t, "remove") == 0 {
				c.remove(line)
				*s = (*s)[1:]
			}
		}
	})
}

// Whatever the cores do, an L2 includes its L1s, who writes is alone, and what is
// newer than the level below is so in one place.
func TestCoherence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := small()
		for range rapid.IntRange(1, 300).Draw(t, "accesses") {
			core := rapid.IntRange(0, 3).Draw(t, "core")
			line := rapid.Int64Range(0, 100).Draw(t, "line")
			write := rapid.Bool().Draw(t, "write")
			from, _ := h.access(core, line, write, true)
			e := h.l1[core].find(line)
			if e == nil || write && *e&flagUnique == 0 {
				t.Fatalf("after an access of line %d from %s, the core's L1 does not have it so", line, sourceNames[from])
			}
			if again, _ := h.access(core, line, write, true); again != fromL1 {
				t.Fatalf("the same access again is served from %s", sourceNames[again])
			}
			check(t, h)
		}
	})
}

func check(t *rapid.T, h *hierarchy) {
	for line := int64(0); line <= 100; line++ {
		tiles, owners, copies, writers := 0, 0, 0, 0
		for tile, l2 := range h.l2 {
			e := l2.find(line)
			if e != nil {
				tiles++
				if *e&flagUnique != 0 {
					owners++
				}
				if *e&flagDirty != 0 && *e&flagUnique == 0 {
					t.Fatalf("line %d: modified in an L2 that shares it", line)
				}
			}
			for mate := range h.mates {
				l1 := h.l1[tile*h.mates+mate].find(line)
				if l1 == nil {
					continue
				}
				copies++
				if e == nil || *e&(flagCore<<mate) == 0 {
					t.Fatalf("line %d: in an L1 and not in its L2", line)
				}
				if *l1&flagUnique != 0 {
					writers++
					if *e&flagUnique == 0 || *e&flagDirty == 0 {
						t.Fatalf("line %d: written by a core whose tile does not own it", line)
					}
				}
			}
		}
		if owners > 0 && tiles > 1 || writers > 0 && copies > 1 {
			t.Fatalf("line %d: %d tiles, %d owners, %d L1s, %d writers", line, tiles, owners, copies, writers)
		}
	}
}

// Where a line is found, step by step.
func TestSources(t *testing.T) {
	h := small()
	for i, c := range []struct {
		core  int
		write bool
		from  source
	}{
		{0, false, fromDRAM},
		{0, false, fromL1},
		{1, false, fromL2},
		{2, false, fromLLC},
		{0, true, fromTile},  // takes the others' copies away
		{0, true, fromL1},    //
		{1, false, fromMate}, // modified beside
		{1, true, fromL2},    // the core beside has a clean copy
		{3, true, fromTile},  //
		{2, true, fromMate},
		{0, false, fromTile},
		{2, false, fromL1},
	} {
		if from, _ := h.access(c.core, 7, c.write, true); from != c.from {
			t.Errorf("access %d, core %d, write %v: from %s, want %s", i, c.core, c.write, sourceNames[from], sourceNames[c.from])
		}
	}
}

// A modified line that nobody has room for goes down once: to the last level,
// and from there to the DRAM.
func TestWriteBacks(t *testing.T) {
	h := small()
	var down moved
	const lines = 1000
	for line := range int64(lines) {
		from, out := h.access(0, line, true, false)
		if from != fromDRAM {
			t.Fatalf("line %d from %s", line, sourceNames[from])
		}
		down.toLLC += out.toLLC
		down.toDRAM += out.toDRAM
	}
	if down.toLLC != lines-16 || down.toDRAM < lines-16-64 || down.toDRAM > lines-16 {
		t.Errorf("%d lines written: %d left the L2 of 16, %d the last level of 64", lines, down.toLLC, down.toDRAM)
	}
}

// hits returns the share of accesses that a cache of that size serves, drawn by
// next.
func hits(c *tags, n int, next func() int64) float64 {
	hit := 0
	for i := range 2 * n {
		line := next()
		if c.touch(line) == nil {
			c.fill(line, 0)
		} else if i >= n {
			hit++
		}
	}
	return float64(hit) / float64(n)
}

// Of uniform elements a cache holds its size, whatever the working set; of Zipf
// ones, what Che's approximation says (Che, Tung, Wang, JSAC 2002); and arrays
// that compete share a cache by their rates.
func TestHitRatios(t *testing.T) {
	const lines, ways, n = 16384, 16, 400000
	r := rand.New(rand.NewPCG(1, 2))
	for _, span := range []int64{8192, 16384, 20000, 32768, 131072} {
		got := hits(newTags(lines*64, 64, ways), n, func() int64 { return r.Int64N(span) })
		want := min(1, lines/float64(span))
		if math.Abs(got-want) > 0.02 {
			t.Errorf("uniform over %d lines: %.3f hit, want %.3f", span, got, want)
		}
	}
	const span, alpha = 131072, 0.9
	z := traffic.NewZipf(span, alpha)
	scatter := traffic.NewPermutation(span, 1)
	got := hits(newTags(lines*64, 64, ways), n, func() int64 { return scatter.At(z.Draw(r)) })
	if want := che(lines, weights(span, alpha)); math.Abs(got-want) > 0.02 {
		t.Errorf("Zipf %v over %d lines: %.3f hit, Che's approximation %.3f", alpha, span, got, want)
	}
	// one array at three times the other's rate
	const a, b = 12000, 24000
	got = hits(newTags(lines*64, 64, ways), n, func() int64 {
		if r.IntN(4) > 0 {
			return r.Int64N(a)
		}
		return a + r.Int64N(b)
	})
	both := append(slices.Repeat([]float64{0.75 / a}, a), slices.Repeat([]float64{0.25 / b}, b)...)
	if want := che(lines, both); math.Abs(got-want) > 0.02 {
		t.Errorf("two arrays: %.3f hit, Che's approximation %.3f", got, want)
	}
}

func weights(n int, alpha float64) []float64 {
	w := make([]float64, n)
	sum := 0.0
	for i := range w {
		w[i] = math.Pow(float64(i+1), -alpha)
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
	return w
}

// che returns the hit ratio of an LRU cache of that many lines under
// independent references of these probabilities.
func che(lines float64, p []float64) float64 {
	low, high := 0.0, 1e9
	for range 60 {
		t := math.Sqrt(max(low, 1) * high)
		held := 0.0
		for _, p := range p {
			held += 1 - math.Exp(-p*t)
		}
		if held > lines {
			high = t
		} else {
			low = t
		}
	}
	hit := 0.0
	for _, p := range p {
		hit += p * (1 - math.Exp(-p*high))
	}
	return hit
}
