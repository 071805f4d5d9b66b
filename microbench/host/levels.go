package host

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"unsafe"

	"nicprof/internal/fault"
	"nicprof/internal/linux"
	"nicprof/microbench/host/kernel"
)

// point of a latency curve: the time of one dependent load, ns, from a set of
// that many bytes.
type point struct {
	Bytes int64
	NS    float64
}

// level is a level of the memory hierarchy as it was found by measurement.
type level struct {
	Name     string  `json:"name"`     // l1, l2, llc, dram, or joined by - where they cannot be told apart
	Bytes    int64   `json:"bytes"`    // of one instance that a program here gets
	Reported int64   `json:"reported"` // of one instance as the machine tells, 0 for the DRAM
	NS       float64 `json:"ns"`       // load to use
	Line     int     `json:"line"`
	Ways     int     `json:"ways"`
	SharedBy int     `json:"shared_by"`
	From     string  `json:"from"`
	Note     string  `json:"note,omitempty"`
}

const (
	// apart is the least ratio of latencies of two levels that are told apart.
	apart = 1.4
	// dramLeast is the least set that is called DRAM where the machine reports
	// a last level too large to be true of one guest: eight times the last
	// level of one core complex of the largest processors known.
	dramLeast = 256 << 20
	// dramMost is the largest set that is measured.
	dramMost = 1 << 30
)

// sizes of a latency curve up to most bytes: two an octave, one above 64 MiB.
func curveSizes(most int64) []int64 {
	var sizes []int64
	for n := int64(8 << 10); n <= most; n *= 2 {
		sizes = append(sizes, n)
		if half := n + n/2; half <= most && n < 64<<20 {
			sizes = append(sizes, half)
		}
	}
	return sizes
}

// curve measures the latency of dependent loads by working set on the calling
// thread's processor, on pages of the size asked for, and returns the pages got.
func curve(ctx context.Context, c clock, sizes []int64, want linux.Pages, order kernel.Order) ([]point, linux.Got, error) {
	region, err := linux.Map(sizes[len(sizes)-1], want)
	if err != nil {
		return nil, linux.Got{}, err
	}
	defer region.Close()
	region.Touch(0, region.Size())
	region.Collapse()
	pages, err := region.Pages()
	if err != nil {
		return nil, linux.Got{}, err
	}
	var points []point
	for _, n := range sizes {
		if ctx.Err() != nil {
			return nil, pages, ctx.Err()
		}
		start, lines, err := kernel.Ring(region.Bytes()[:n], order, 64, 4096, uint64(n))
		if err != nil {
			return nil, pages, err
		}
		points = append(points, point{n, chase(c, start, lines)})
	}
	return points, pages, nil
}

// chase returns ns a step, the least of several passes: whatever disturbs one
// makes it longer.
func chase(c clock, at unsafe.Pointer, lines int64) float64 {
	const (
		passes = 5
		budget = 1e6 // ns a pass
	)
	at = kernel.Chase(at, min(lines, 1<<18)) // into the caches, as far as they hold it
	best := math.Inf(1)
	steps := int64(2000)
	for range passes {
		from := ticks()
		at = kernel.Chase(at, steps)
		ns := c.between(from, ticks(), 1) / float64(steps)
		best = min(best, ns)
		steps = int64(max(2000, min(1<<20, budget/max(best, 0.1))))
	}
	runtime.KeepAlive(at)
	return best
}

// latencyAt is the mean latency, by logarithms, of the sets from low to high
// bytes, 0 for none.
func latencyAt(points []point, low, high int64) float64 {
	sum, n := 0.0, 0
	for _, p := range points {
		if p.Bytes >= low && p.Bytes <= high {
			sum += math.Log(p.NS)
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return math.Exp(sum / float64(n))
}

// levelsOf says which levels a curve confirms of those that are reported. A
// cache counts as far as the curve stays near its level: a guest's share of a
// last level may be far smaller than the whole. Levels that the curve does not
// tell apart are merged under a joined name. The last level is DRAM.
func levelsOf(reported []cache, points []point) ([]level, error) {
	if len(points) < 8 {
		return nil, fault.Missingf("a latency curve of %d working sets tells no levels", len(points))
	}
	last := points[len(points)-1].Bytes
	far := latencyAt(points, last/4, last)
	var found []level
	below := int64(0)
	for i, c := range reported {
		name := fmt.Sprintf("l%d", c.Level)
		if i > 0 && i == len(reported)-1 {
			name = "llc"
		}
		l := level{Name: name, Reported: c.Bytes, Line: c.Line, Ways: c.Ways, SharedBy: c.SharedBy, From: c.From}
		// The first sets beyond the level before, which this level surely
		// holds if it holds anything.
		low := max(points[0].Bytes, below+below/2)
		high := max(min(c.Bytes/2, 4*low), low)
		l.NS = latencyAt(points, low, high)
		next := far
		if i+1 < len(reported) {
			from := c.Bytes + c.Bytes/2
			if n := latencyAt(points, from, min(4*from, max(from+from/2, reported[i+1].Bytes/2))); n > 0 {
				next = n
			}
		}
		if l.NS == 0 || next < apart*l.NS {
			l.Note = "not told apart from the level beyond"
			found = append(found, l)
			continue
		}
		for _, p := range points {
			if p.Bytes > c.Bytes || p.NS > math.Sqrt(l.NS*next) && p.Bytes > high {
				break
			}
			l.Bytes = p.Bytes
		}
		if 2*l.Bytes >= c.Bytes {
			l.Bytes = c.Bytes // random sets fill no cache without conflicts
		} else {
			l.Bytes = floorPower(l.Bytes)
			l.Note = fmt.Sprintf("of the %s reported a program here gets about this much; the rest is not this guest's", sizeText(c.Bytes))
		}
		below = l.Bytes
		found = append(found, l)
	}
	shared := 1
	if len(reported) > 0 {
		shared = reported[len(reported)-1].SharedBy
	}
	found = append(found, level{Name: "dram", NS: far, Line: 64, SharedBy: shared, From: "measured"})
	return merged(found), nil
}

// merged joins a level that was not told apart (Bytes 0) with the next one.
func merged(levels []level) []level {
	var out []level
	var names []string
	for i, l := range levels {
		names = append(names, l.Name)
		if l.Bytes == 0 && i < len(levels)-1 {
			continue
		}
		if len(names) > 1 {
			l.Note = strings.TrimPrefix(l.Note+"; "+strings.Join(names, " and ")+" cannot be told apart here", "; ")
		}
		l.Name = strings.Join(names, "-")
		names = nil
		out = append(out, l)
	}
	return out
}

// dramBytes is the size of the DRAM's arrays: twice the default working set,
// which is four times the last level. Where that is reported larger than could
// be used, the set is dramLeast or four times the share that was measured, and
// the note says so. It is a power of two within an eighth of the memory.
func dramBytes(levels []level, available int64) (int64, string) {
	share, reported := int64(0), int64(0)
	for _, l := range levels[:len(levels)-1] {
		share, reported = max(share, l.Bytes), max(reported, l.Reported)
	}
	set, note := 4*reported, ""
	if set < 16<<20 {
		set = 16 << 20
	}
	if set > dramMost/2 {
		set = max(dramLeast, 4*share)
		note = fmt.Sprintf("the default working set is four times the last level's share measured or more, not four times the %s reported", sizeText(reported))
	}
	bytes := 2 * ceilPower(set)
	if most := floorPower(available / 8); bytes > most {
		bytes = most
		note = fmt.Sprintf("the memory available bounds the working set to %s, less than four times the last level: part of it may be cached", sizeText(bytes/2))
	}
	return bytes, note
}

func floorPower(n int64) int64 {
	p := int64(1)
	for 2*p <= n {
		p *= 2
	}
	return p
}

func ceilPower(n int64) int64 {
	p := floorPower(n)
	if p < n {
		p *= 2
	}
	return p
}

// sizeText prints bytes in a binary unit.
func sizeText(n int64) string {
	switch {
	case n >= 1<<30 && n%(1<<28) == 0:
		return fmt.Sprintf("%g GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.4g KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
