package kernel

import (
	"fmt"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// TestChaseVisitsEachLineOncePerLap, of every order, line and page size.
func TestChaseVisitsEachLineOncePerLap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := 1 << rapid.IntRange(3, 8).Draw(t, "line")
		page := line << rapid.IntRange(0, 7).Draw(t, "lines in a page")
		mem := pages(t, line*rapid.IntRange(1, 700).Draw(t, "lines")+rapid.IntRange(0, line-1).Draw(t, "rest"))
		order := rapid.SampledFrom(Orders).Draw(t, "order")
		start, n, err := Ring(mem, order, line, page, rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		want := len(mem) / line
		if order == Pages {
			want = (want*line + page - 1) / page
		}
		if n != int64(want) {
			t.Fatalf("%d lines, want %d", n, want)
		}
		seen := map[int]bool{}
		turns, last := 0, -1
		for p, k := start, int64(0); k < n; k++ {
			i := int(uintptr(p) - uintptr(unsafe.Pointer(&mem[0])))
			if i < 0 || i%line != 0 || i+line > len(mem) || seen[i] {
				t.Fatalf("step %d is at offset %d, outside, amid a line or visited before", k, i)
			}
			seen[i] = true
			if i/page != last {
				turns, last = turns+1, i/page
			}
			if p = Chase(p, 1); k == n-1 && p != start {
				t.Fatal("a lap does not end where it started")
			}
		}
		if order == PageLocal && turns != (want*line+page-1)/page {
			t.Fatalf("page-local, but pages change %d times in %d lines", turns, n)
		}
		laps := rapid.Int64Range(0, 3).Draw(t, "laps")
		if Chase(start, laps*n) != start || n > 1 && Chase(start, laps*n+1) == start {
			t.Fatalf("%d laps of %d steps end elsewhere", laps, n)
		}
	})
}

func TestRingRefuses(t *testing.T) {
	mem := pages(t, 4096)
	for name, c := range map[string]struct {
		mem        []byte
		order      Order
		line, page int
	}{
		"line not a power of two":   {mem, Lines, 96, 4096},
		"line smaller than pointer": {mem, Lines, 4, 4096},
		"page below line":           {mem, Lines, 64, 32},
		"page not a power of two":   {mem, Lines, 64, 192},
		"no line":                   {mem[:63], Lines, 64, 4096},
		"not aligned":               {mem[8:], Lines, 64, 4096},
		"no such order":             {mem, "sorted", 64, 4096},
	} {
		if _, _, err := Ring(c.mem, c.order, c.line, c.page, 1); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// TestRingsOfASeedAreTheSame, and those of another seed are others.
func TestRingsOfASeedAreTheSame(t *testing.T) {
	path := func(seed uint64) string {
		mem := pages(t, 1<<16)
		p, n, err := Ring(mem, Lines, 64, 4096, seed)
		if err != nil {
			t.Fatal(err)
		}
		var s []uintptr
		for range n {
			s = append(s, uintptr(p)-uintptr(unsafe.Pointer(&mem[0])))
			p = Chase(p, 1)
		}
		return fmt.Sprint(s)
	}
	if first, again, other := path(1), path(1), path(2); first != again || first == other {
		t.Error("a ring does not follow its seed")
	}
}
