// Package vm is an sNIC's on-board memory as its network tasks see it: virtual
// address spaces of 1 GB in pages of 2 MB, each with one flat table of 512
// entries of 8 B (4 KB), pages given out at first touch from a free list, and
// physical memory over-subscribed by swapping pages to the host.
//
// Every space has a share of the physical pages; the shares of all fit. While
// memory is full, a space that has its share gives up a page of its own for a
// new one, and a space below its share takes one of the space farthest above.
// Within a space the page that goes is the first not used since the clock's
// hand last passed. A space may have more pages than its share, in memory or
// swapped out, as long as what others have not yet taken of theirs stays there
// for them. An access to what a space does not have is refused and counted
// against it; it changes nothing anywhere.
package vm

import (
	"errors"
	"fmt"
	"slices"

	"nicprof/sim"
)

// Sizes that the paper gives: a space of 1 GB in pages of 2 MB, by a table of 4 KB.
const (
	PageBytes  = 2 << 20
	SpaceBytes = 1 << 30
	Pages      = SpaceBytes / PageBytes
)

// Perm is what a space may do with a page.
type Perm uint8

// Permissions.
const (
	Read Perm = 1 << iota
	Write
)

func (p Perm) String() string {
	return [...]string{"nothing", "read", "write", "read and write"}[p&(Read|Write)]
}

// Refusals, which errors wrap.
var (
	ErrOutside    = errors.New("outside of the space")
	ErrUnmapped   = errors.New("page not mapped")
	ErrPermission = errors.New("permission refused")
	ErrExhausted  = errors.New("memory exhausted")
)

// Config is a board's memory. A swap, which is the exchange of one page with
// the host, takes SwapLow to SwapHigh, uniformly; one at a time.
type Config struct {
	Frames            int // physical pages
	SwapPages         int // pages that the host keeps for the board
	SwapLow, SwapHigh sim.Time
	Seed              uint64
}

// entry is an entry of a page table: a number and flags.
type entry uint64

const (
	readable entry = 1 << iota
	writable
	resident // in the frame of its number
	swapped  // in the swap slot of its number
	used     // since the clock's hand last passed
	rights   = readable | writable
	flagBits = 8
)

func (e entry) number() int { return int(e >> flagBits) }

func numbered(n int, flags entry) entry { return entry(n)<<flagBits | flags }

// Memory is the physical memory of a board with its swap. It is not safe for
// concurrent use.
type Memory struct {
	config  Config
	spaces  []*Space // in order of creation
	data    [][]byte // by frame; nil as long as all bytes are 0
	slots   [][]byte // by swap slot, likewise
	frames  []int    // free ones
	unused  []int    // swap slots
	channel sim.Server
	times   *sim.Stream
}

// New returns a board's memory, all of it free.
func New(c Config) (*Memory, error) {
	if c.Frames < 1 || c.SwapPages < 0 || c.SwapLow < 0 || c.SwapHigh < c.SwapLow {
		return nil, fmt.Errorf("vm: %d frames, %d swap pages, %d to %d ps a swap; expected one frame or more, and an interval of times",
			c.Frames, c.SwapPages, c.SwapLow, c.SwapHigh)
	}
	return &Memory{
		config: c,
		data:   make([][]byte, c.Frames), slots: make([][]byte, c.SwapPages),
		frames: descending(c.Frames), unused: descending(c.SwapPages),
		times: sim.NewStream(c.Seed, "vm/swap"),
	}, nil
}

// descending returns n-1 … 0: a stack that gives out numbers from 0 on.
func descending(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = n - 1 - i
	}
	return s
}

func pop(s *[]int) int {
	last := len(*s) - 1
	v := (*s)[last]
	*s = (*s)[:last]
	return v
}

// Free returns the number of physical pages and of swap pages that nobody has.
func (m *Memory) Free() (frames, swap int) { return len(m.frames), len(m.unused) }

// promised returns the pages that spaces other than but have not yet taken of
// their shares.
func (m *Memory) promised(but *Space) int {
	n := 0
	for _, s := range m.spaces {
		if s != but {
			n += max(0, s.share-s.pages)
		}
	}
	return n
}

// Counts is what happened in a space.
type Counts struct {
	Accesses int64
	// Refused accesses, by reason.
	Outside, Unmapped, Permission, Exhausted int64
	// Pages: touched for the first time, waited for because of a swap, and
	// driven out to the host.
	FirstTouches, Swaps, Lost int64
}

// Refused returns the number of accesses that were refused.
func (c Counts) Refused() int64 { return c.Outside + c.Unmapped + c.Permission + c.Exhausted }

// Space is the address space of one network task for one user. Addresses are
// bytes from 0 on.
type Space struct {
	name     string
	memory   *Memory
	table    [Pages]entry
	share    int
	pages    int // touched: in memory or swapped out
	resident int
	hand     int // of the clock, a page
	counts   Counts
}

// NewSpace returns an address space in which nothing is mapped, with a share of
// physical pages. The error wraps ErrExhausted where the shares would not fit.
func (m *Memory) NewSpace(name string, share int) (*Space, error) {
	s := &Space{name: name, memory: m}
	if err := s.SetShare(share); err != nil {
		return nil, err
	}
	m.spaces = append(m.spaces, s)
	return s, nil
}

// SetShare changes a space's share, one page or more. The error wraps
// ErrExhausted where it would not fit beside the shares and pages of others.
func (s *Space) SetShare(share int) error {
	m := s.memory
	shares := 0
	for _, other := range m.spaces {
		if other != s {
			shares += other.share
		}
	}
	left := min(len(m.data)-shares, s.pages+len(m.frames)+len(m.unused)-m.promised(s))
	if share < 1 || share > left {
		return fmt.Errorf("%s: %w: a share of %d pages; 1 to %d are left of %d", s.name, ErrExhausted, share, left, len(m.data))
	}
	s.share = share
	return nil
}

// Close takes all pages of the space back. Nothing is mapped in it any more,
// and its share is free for others.
func (s *Space) Close() {
	s.Unmap(0, SpaceBytes)
	m := s.memory
	m.spaces = slices.DeleteFunc(m.spaces, func(other *Space) bool { return other == s })
}

// Counts returns what happened in the space so far.
func (s *Space) Counts() Counts { return s.counts }

// Resident returns the number of physical pages that the space has.
func (s *Space) Resident() int { return s.resident }

// pagesOf returns the pages of [address, address+bytes).
func (s *Space) pagesOf(address, bytes int64) (first, last int, err error) {
	if address < 0 || bytes < 1 || bytes > SpaceBytes || address > SpaceBytes-bytes {
		return 0, 0, s.refusal(ErrOutside, address, bytes)
	}
	return int(address / PageBytes), int((address + bytes - 1) / PageBytes), nil
}

func (s *Space) refusal(why error, address, bytes int64) error {
	return fmt.Errorf("%s: %w: %d bytes at %#x", s.name, why, bytes, address)
}

// Map lets the space use the pages of [address, address+bytes) in the ways of
// p. It takes no memory: a page gets some at its first touch. The contents of
// pages that are mapped already stay. The error wraps ErrOutside.
func (s *Space) Map(address, bytes int64, p Perm) error {
	first, last, err := s.pagesOf(address, bytes)
	if err != nil {
		return err
	}
	for i := first; i <= last; i++ {
		s.table[i] = s.table[i]&^rights | entry(p)&rights
	}
	return nil
}

// Unmap takes pages from the space; their contents are gone. The error wraps
// ErrOutside.
func (s *Space) Unmap(address, bytes int64) error {
	first, last, err := s.pagesOf(address, bytes)
	if err != nil {
		return err
	}
	m := s.memory
	for i := first; i <= last; i++ {
		e := s.table[i]
		s.table[i] = 0
		switch n := e.number(); {
		case e&resident != 0:
			m.data[n] = nil
			m.frames = append(m.frames, n)
			s.resident--
			s.pages--
		case e&swapped != 0:
			m.slots[n] = nil
			m.unused = append(m.unused, n)
			s.pages--
		}
	}
	return nil
}

// Touch is an access of bytes at an address, at time now, that moves no data.
// It returns when the access can go to memory: now, unless pages had to be
// swapped. An access over several pages goes page by page. One that is refused
// changes nothing but the space's counts, except that memory may be exhausted
// at a later page than the first; the error wraps a refusal.
func (s *Space) Touch(now sim.Time, address, bytes int64, p Perm) (ready sim.Time, err error) {
	return s.access(now, address, bytes, p, func(int, int64, int64) {})
}

// Load reads len(b) bytes at an address; else it is Touch.
func (s *Space) Load(now sim.Time, address int64, b []byte) (ready sim.Time, err error) {
	return s.access(now, address, int64(len(b)), Read, func(frame int, from, to int64) {
		n := to - from
		if data := s.memory.data[frame]; data != nil {
			copy(b[:n], data[from:to])
		} else {
			clear(b[:n])
		}
		b = b[n:]
	})
}

// Store writes b at an address; else it is Touch.
func (s *Space) Store(now sim.Time, address int64, b []byte) (ready sim.Time, err error) {
	return s.access(now, address, int64(len(b)), Write, func(frame int, from, to int64) {
		if s.memory.data[frame] == nil {
			s.memory.data[frame] = make([]byte, PageBytes)
		}
		b = b[copy(s.memory.data[frame][from:to], b):]
	})
}

// access calls do for the part of the access in each page, once that is in a
// frame.
func (s *Space) access(now sim.Time, address, bytes int64, p Perm, do func(frame int, from, to int64)) (sim.Time, error) {
	s.counts.Accesses++
	first, last, err := s.pagesOf(address, bytes)
	if err != nil {
		s.counts.Outside++
		return now, err
	}
	for i := first; i <= last; i++ {
		switch has := Perm(s.table[i] & rights); {
		case has == 0:
			s.counts.Unmapped++
			return now, s.refusal(ErrUnmapped, address, bytes)
		case has&p != p:
			s.counts.Permission++
			return now, fmt.Errorf("%w, to %s; the space may %s", s.refusal(ErrPermission, address, bytes), p, has)
		}
	}
	ready := now
	for i := first; i <= last; i++ {
		if s.table[i]&resident == 0 {
			if ready, err = s.bring(ready, i); err != nil {
				s.counts.Exhausted++
				return now, err
			}
		}
		s.table[i] |= used
		start := int64(i) * PageBytes
		do(s.table[i].number(), max(address, start)-start, min(address+bytes, start+PageBytes)-start)
	}
	return ready, nil
}

// bring gives page i a frame, with its contents if it was swapped out.
func (s *Space) bring(now sim.Time, i int) (ready sim.Time, err error) {
	m := s.memory
	e := s.table[i]
	var contents []byte
	swap := e&swapped != 0
	switch {
	case swap:
		slot := e.number()
		contents, m.slots[slot] = m.slots[slot], nil
		m.unused = append(m.unused, slot)
	case s.pages >= s.share && len(m.frames)+len(m.unused) <= m.promised(s):
		return now, fmt.Errorf("%s: %w: it has %d pages, its share is %d, and the others' shares need what is left of %d pages and %d of swap; map less, or close a space",
			s.name, ErrExhausted, s.pages, s.share, len(m.data), len(m.slots))
	default:
		s.pages++
		s.counts.FirstTouches++
	}
	if len(m.frames) == 0 {
		m.giver(s).giveUp()
		swap = true
	}
	frame := pop(&m.frames)
	m.data[frame] = contents
	s.table[i] = numbered(frame, e&rights|resident)
	s.resident++
	if !swap {
		return now, nil
	}
	s.counts.Swaps++
	takes := m.config.SwapLow
	if spread := int64(m.config.SwapHigh - m.config.SwapLow); spread > 0 {
		takes += sim.Time(m.times.Int64N(spread + 1))
	}
	return m.channel.Serve(now, takes) + takes, nil
}

// giver returns the space that gives a page up when s wants one and none is
// free. Some space is above its share if s is below, since shares fit.
func (m *Memory) giver(s *Space) *Space {
	if s.resident >= s.share {
		return s
	}
	from := s
	for _, other := range m.spaces {
		if other.resident-other.share > from.resident-from.share {
			from = other
		}
	}
	return from
}

// giveUp swaps out the first page, from the clock's hand on, that was not used
// since the hand last passed.
func (s *Space) giveUp() {
	m := s.memory
	for ; ; s.hand = (s.hand + 1) % Pages {
		e := s.table[s.hand]
		if e&resident == 0 {
			continue
		}
		if e&used != 0 {
			s.table[s.hand] &^= used
			continue
		}
		frame, slot := e.number(), pop(&m.unused)
		m.slots[slot], m.data[frame] = m.data[frame], nil
		m.frames = append(m.frames, frame)
		s.table[s.hand] = numbered(slot, e&rights|swapped)
		s.resident--
		s.counts.Lost++
		return
	}
}
