package vm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"nicprof/sim"
)

func memory(t testing.TB, frames, swap int) *Memory {
	t.Helper()
	m, err := New(Config{Frames: frames, SwapPages: swap, SwapLow: 15 * sim.Microsecond, SwapHigh: 20 * sim.Microsecond, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *Memory) space(t testing.TB, name string, share int) *Space {
	t.Helper()
	s, err := m.NewSpace(name, share)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Space) mapped(t testing.TB, pages int, p Perm) *Space {
	t.Helper()
	if err := s.Map(0, int64(pages)*PageBytes, p); err != nil {
		t.Fatal(err)
	}
	return s
}

// touch touches a page for reading, or fails the test.
func (s *Space) touch(t testing.TB, now sim.Time, page int) sim.Time {
	t.Helper()
	ready, err := s.Touch(now, int64(page)*PageBytes, 8, Read)
	if err != nil {
		t.Fatal(err)
	}
	return ready
}

func TestSizesOfThePaper(t *testing.T) {
	if got := unsafe.Sizeof(Space{}.table); got != 4096 {
		t.Errorf("a page table takes %d B, want 4096", got)
	}
	if Pages != 512 {
		t.Errorf("a space has %d pages, want 512", Pages)
	}
}

func TestMemoryIsTakenAtFirstTouch(t *testing.T) {
	m := memory(t, 4, 0)
	s := m.space(t, "nat", 4).mapped(t, Pages, Read|Write)
	if free, _ := m.Free(); free != 4 {
		t.Fatalf("%d frames free after Map, want all 4", free)
	}
	for i := range 3 {
		for range 2 { // the second touch takes nothing
			if ready := s.touch(t, 7, 100*i); ready != 7 {
				t.Errorf("ready at %d, want at once", ready)
			}
		}
	}
	if free, _ := m.Free(); free != 1 || s.Resident() != 3 || s.Counts().FirstTouches != 3 {
		t.Errorf("%d frames free, %d resident, counts %+v; want 1, 3 and 3 first touches", free, s.Resident(), s.Counts())
	}
	if err := s.Unmap(0, SpaceBytes); err != nil {
		t.Fatal(err)
	}
	if free, _ := m.Free(); free != 4 {
		t.Errorf("%d frames free after Unmap, want 4", free)
	}
}

// A frame that changes hands holds nothing of its former owner.
func TestFramesAreCleared(t *testing.T) {
	m := memory(t, 1, 0)
	secret := []byte("the key of another tenant")
	a := m.space(t, "a", 1).mapped(t, 1, Read|Write)
	if _, err := a.Store(0, 5, secret); err != nil {
		t.Fatal(err)
	}
	a.Close()
	got := make([]byte, len(secret))
	if _, err := m.space(t, "b", 1).mapped(t, 1, Read).Load(0, 5, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, make([]byte, len(secret))) {
		t.Errorf("b reads %q of a's", got)
	}
}

func TestRefusedAccessesTouchNobody(t *testing.T) {
	m := memory(t, 4, 4)
	a, b := m.space(t, "a", 2).mapped(t, 2, Read), m.space(t, "b", 2).mapped(t, 2, Read|Write)
	if _, err := b.Store(0, 0, []byte("b's")); err != nil {
		t.Fatal(err)
	}
	before, free := *b, len(m.frames)
	for _, c := range []struct {
		name           string
		address, bytes int64
		op             Perm
		want           error
	}{
		{"behind the end", SpaceBytes, 1, Read, ErrOutside},
		{"across the end", SpaceBytes - 1, 2, Read, ErrOutside},
		{"before the start", -8, 8, Read, ErrOutside},
		{"so long that the end overflows", 1 << 62, 1 << 62, Read, ErrOutside},
		{"of no bytes", 0, 0, Read, ErrOutside},
		{"not mapped", 2 * PageBytes, 8, Read, ErrUnmapped},
		{"into what is not mapped", 2*PageBytes - 4, 8, Read, ErrUnmapped},
		{"read only", 0, 8, Write, ErrPermission},
		{"read only, for both", 0, 8, Read | Write, ErrPermission},
	} {
		counted := a.Counts().Refused()
		ready, err := a.Touch(9, c.address, c.bytes, c.op)
		if !errors.Is(err, c.want) || ready != 9 {
			t.Errorf("%s: ready %d, error %v; want 9 and %v", c.name, ready, err, c.want)
		}
		if a.Counts().Refused() != counted+1 {
			t.Errorf("%s: not counted once against a", c.name)
		}
	}
	if *b != before || len(m.frames) != free || a.Resident() != 0 {
		t.Error("a refused access of a changed b, or took memory")
	}
	if c := a.Counts(); c.Outside != 5 || c.Unmapped != 2 || c.Permission != 2 || c.Accesses != 9 {
		t.Errorf("counts %+v", c)
	}
}

func TestSwapping(t *testing.T) {
	m := memory(t, 2, 6)
	s := m.space(t, "cache", 2).mapped(t, 8, Read|Write)
	now := sim.Time(0)
	for i := range 8 {
		ready, err := s.Store(now, int64(i)*PageBytes, []byte{byte(i + 1)})
		if err != nil {
			t.Fatal(err)
		}
		switch wait := ready - now; {
		case i < 2 && wait != 0:
			t.Errorf("page %d waits %d ps with memory free", i, wait)
		case i >= 2 && (wait < 15*sim.Microsecond || wait > 20*sim.Microsecond):
			t.Errorf("page %d waits %d ps, want a swap of 15 to 20 µs", i, wait)
		}
		now = ready
	}
	for i := range 8 {
		got := make([]byte, 1)
		if _, err := s.Load(now, int64(i)*PageBytes, got); err != nil || got[0] != byte(i+1) {
			t.Errorf("page %d holds %d, error %v; want %d", i, got[0], err, i+1)
		}
	}
	// Two swaps at a time wait for each other.
	first, second := s.touch(t, now, 0), s.touch(t, now, 1)
	if second-first < 15*sim.Microsecond {
		t.Errorf("second swap ready %d ps after the first, want at least its own 15 µs", second-first)
	}
}

// The clock spares what was used since it last passed.
func TestRecentlyUsedPagesStay(t *testing.T) {
	m := memory(t, 3, 10)
	s := m.space(t, "cache", 3).mapped(t, 10, Read)
	for i := range 4 { // the fourth clears all marks and takes page 0
		s.touch(t, 0, i)
	}
	s.touch(t, 0, 1)
	swaps := s.Counts().Swaps
	s.touch(t, 0, 4) // has to take page 2, not 1
	s.touch(t, 0, 1)
	if got := s.Counts().Swaps - swaps; got != 1 {
		t.Errorf("%d swaps, want only page 4's: page 1 was just used", got)
	}
}

// A greedy space pays with its own pages: what a modest one has below its share
// stays, and what it has not yet taken is still to be had.
func TestSharesAreKept(t *testing.T) {
	m := memory(t, 8, 4)
	modest, greedy := m.space(t, "modest", 3).mapped(t, 10, Read), m.space(t, "greedy", 3).mapped(t, Pages, Read)
	modest.touch(t, 0, 0)
	refused := 0
	for i := range 30 {
		if _, err := greedy.Touch(0, int64(i)*PageBytes, 8, Read); err != nil {
			if !errors.Is(err, ErrExhausted) {
				t.Fatal(err)
			}
			refused++
		}
	}
	if refused != 30-9 { // 12 pages in all, less the modest one's 3
		t.Errorf("%d touches refused, want 21", refused)
	}
	for i := range 3 {
		modest.touch(t, 0, i)
	}
	if c := modest.Counts(); c.Refused() != 0 || c.Lost != 0 || modest.Resident() != 3 {
		t.Errorf("the modest space has %d pages and counts %+v; want 3, and none refused or lost", modest.Resident(), c)
	}
	if _, err := modest.Touch(0, 3*PageBytes, 8, Read); !errors.Is(err, ErrExhausted) {
		t.Errorf("above its share the modest space got %v, want %v", err, ErrExhausted)
	}
}

func TestSharesHaveToFit(t *testing.T) {
	m := memory(t, 4, 100)
	a := m.space(t, "a", 3)
	for _, share := range []int{-1, 0, 2} {
		if _, err := m.NewSpace("b", share); !errors.Is(err, ErrExhausted) {
			t.Errorf("share %d beside 3 of 4: %v, want %v", share, err, ErrExhausted)
		}
	}
	if err := a.SetShare(2); err != nil {
		t.Fatal(err)
	}
	m.space(t, "b", 2)
	if err := a.SetShare(3); !errors.Is(err, ErrExhausted) {
		t.Errorf("a share grew into another: %v", err)
	}
	a.Close()
	m.space(t, "c", 2)
}

func TestBadConfig(t *testing.T) {
	for _, c := range []Config{{}, {Frames: 1, SwapPages: -1}, {Frames: 1, SwapLow: 2, SwapHigh: 1}, {Frames: 1, SwapLow: -1}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

// TestAgainstMaps does random things to several spaces and to a map of bytes
// each, and compares all that can be seen.
func TestAgainstMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const pages = 6 // of each space that are used
		frames := rapid.IntRange(3, 8).Draw(t, "frames")
		m, err := New(Config{Frames: frames, SwapPages: rapid.IntRange(0, 8).Draw(t, "swap"), SwapHigh: 1000})
		if err != nil {
			t.Fatal(err)
		}
		type model struct {
			space *Space
			perm  [pages]Perm
			bytes map[int64]uint64
		}
		var all []*model
		for i := range 3 {
			s, err := m.NewSpace(string(rune('a'+i)), 1)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, &model{space: s, bytes: map[int64]uint64{}})
		}
		now := sim.Time(0)
		check := func() {
			taken, slots := 0, 0
			seen := map[int]bool{}
			for _, o := range all {
				here := 0
				for _, e := range o.space.table {
					switch {
					case e&resident != 0:
						if seen[e.number()] {
							t.Fatalf("frame %d belongs to two pages", e.number())
						}
						seen[e.number()] = true
						here++
					case e&swapped != 0:
						slots++
					}
				}
				if here != o.space.Resident() {
					t.Fatalf("%d pages resident, counted %d", here, o.space.Resident())
				}
				taken += here
			}
			free, unused := m.Free()
			if taken+free != frames || slots+unused != len(m.slots) {
				t.Fatalf("%d frames taken and %d free of %d; %d slots taken and %d free of %d", taken, free, frames, slots, unused, len(m.slots))
			}
			if free+unused < m.promised(nil) {
				t.Fatalf("%d frames and %d slots are left for promises of %d", free, unused, m.promised(nil))
			}
		}
		pick := rapid.SampledFrom(all)
		t.Repeat(map[string]func(*rapid.T){
			"map": func(t *rapid.T) {
				o, i := pick.Draw(t, "space"), rapid.IntRange(0, pages-1).Draw(t, "page")
				o.perm[i] = Perm(rapid.IntRange(0, 3).Draw(t, "perm"))
				if err := o.space.Map(int64(i)*PageBytes, PageBytes, o.perm[i]); err != nil {
					t.Fatal(err)
				}
			},
			"unmap": func(t *rapid.T) {
				o, i := pick.Draw(t, "space"), rapid.IntRange(0, pages-1).Draw(t, "page")
				o.perm[i] = 0
				if err := o.space.Unmap(int64(i)*PageBytes, PageBytes); err != nil {
					t.Fatal(err)
				}
				for a := range o.bytes {
					if a/PageBytes == int64(i) {
						delete(o.bytes, a)
					}
				}
			},
			"share": func(t *rapid.T) {
				share := rapid.IntRange(1, frames).Draw(t, "share")
				if err := pick.Draw(t, "space").space.SetShare(share); err != nil && !errors.Is(err, ErrExhausted) {
					t.Fatal(err)
				}
			},
			"access": func(t *rapid.T) {
				o, i := pick.Draw(t, "space"), rapid.IntRange(0, pages-1).Draw(t, "page")
				address := int64(i)*PageBytes + 8*rapid.Int64Range(0, 1).Draw(t, "word")*(PageBytes/8-1)
				store := rapid.Bool().Draw(t, "store")
				word := make([]byte, 8)
				op := Read
				if store {
					op = Write
				}
				below := o.space.pages < o.space.share
				var ready sim.Time
				var err error
				if store {
					v := rapid.Uint64().Draw(t, "value")
					binary.LittleEndian.PutUint64(word, v)
					if ready, err = o.space.Store(now, address, word); err == nil {
						o.bytes[address] = v
					}
				} else if ready, err = o.space.Load(now, address, word); err == nil {
					if got := binary.LittleEndian.Uint64(word); got != o.bytes[address] {
						t.Fatalf("%s at %#x: %d, want %d", o.space.name, address, got, o.bytes[address])
					}
				}
				switch allowed := o.perm[i]&op == op; {
				case ready < now:
					t.Fatal("ready before it began")
				case allowed && err != nil && (!errors.Is(err, ErrExhausted) || below):
					t.Fatalf("refused: %v (below its share: %t)", err, below)
				case !allowed && err == nil:
					t.Fatalf("%s to %s", o.perm[i], op)
				}
				now = ready
			},
			"": func(*rapid.T) { check() },
		})
	})
}

func BenchmarkTouch(b *testing.B) {
	m, err := New(Config{Frames: 5120})
	if err != nil {
		b.Fatal(err)
	}
	s := m.space(b, "nat", 512).mapped(b, Pages, Read|Write)
	b.ReportAllocs()
	address := int64(0)
	for b.Loop() {
		if _, err := s.Touch(0, address, 64, Read); err != nil {
			b.Fatal(err)
		}
		address = (address + 7919*64) % (SpaceBytes - 64)
	}
}
