package capture

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"nicprof/internal/fault"
)

// Source reads one capture, or several at once in the order of their times.
//
// Every file has a time base of its own, and files may have been taken one
// after another, at the same time, or by clocks that have nothing to do with
// each other: a file from 1970 beside one of today. What counts as duration is
// therefore the time that some file covers; see Seconds.
type Source struct {
	files []*file
	last  *file // whose packet was returned last
}

// file is one capture of a source, with the packet that comes next.
type file struct {
	in    io.Closer
	r     *Reader
	next  Packet
	ended bool

	first, last int64 // earliest and latest time, NoTime before the first
	previous    int64
	timed       int64
	untimed     int64
	backwards   int64 // packets earlier than the one before them
	unknown     map[LinkType]int64
}

// Open opens captures. An error is the user's fault.
func Open(paths ...string) (*Source, error) {
	s := &Source{}
	for _, path := range paths {
		in, err := os.Open(path)
		if err != nil {
			s.Close()
			return nil, fault.Inputf("capture: %w", err)
		}
		if err := s.add(in, path); err != nil {
			in.Close()
			s.Close()
			return nil, err
		}
		s.files[len(s.files)-1].in = in
	}
	return s, nil
}

// FromReader returns a source of one capture that is open already.
func FromReader(in io.Reader, name string) (*Source, error) {
	s := &Source{}
	if err := s.add(in, name); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Source) add(in io.Reader, name string) error {
	r, err := NewReader(in, name)
	if err != nil {
		return err
	}
	s.files = append(s.files, &file{r: r, first: NoTime, last: NoTime, previous: NoTime})
	return nil
}

// Close closes the files that Open opened.
func (s *Source) Close() {
	for _, f := range s.files {
		if f.in != nil {
			f.in.Close()
		}
	}
}

// Next reads the packet that comes next into p, or returns io.EOF. The packets
// of each file stay in its order; those of link types without known headers
// are left out, and counted. With several files, Port is the number of the
// file, from 0.
func (s *Source) Next(p *Packet) error {
	if len(s.files) == 1 {
		return s.files[0].read(p)
	}
	for i, f := range s.files {
		if s.last != nil && s.last != f || f.ended {
			continue
		}
		if err := f.read(&f.next); errors.Is(err, io.EOF) {
			f.ended = true
		} else if err != nil {
			return err
		}
		f.next.Port = i
	}
	s.last = nil
	for _, f := range s.files {
		if !f.ended && (s.last == nil || f.next.Time < s.last.next.Time) {
			s.last = f
		}
	}
	if s.last == nil {
		s.last = &file{ended: true} // nothing waits to be read any more
		return io.EOF
	}
	*p = s.last.next
	return nil
}

// read reads the file's next packet of a known link type, and keeps account of
// its time.
func (f *file) read(p *Packet) error {
	for {
		if err := f.r.Next(p); err != nil {
			return err
		}
		if p.Link != Ethernet2 && !p.Link.Known() {
			if f.unknown == nil {
				f.unknown = map[LinkType]int64{}
			}
			f.unknown[p.Link]++
			continue
		}
		break
	}
	t := p.Time
	if t == NoTime {
		f.untimed++
		return nil
	}
	if f.timed == 0 {
		f.first, f.last = t, t
	} else if t < f.previous {
		f.backwards++
	}
	f.first, f.last, f.previous = min(f.first, t), max(f.last, t), t
	f.timed++
	return nil
}

// Seconds returns the time that the files read so far cover: from the first to
// the last packet of each, time that several of them cover counted once. It
// also returns the gaps that packets leave in it, one less than the packets of
// each stretch: gaps over seconds is the mean rate. Both are 0 for captures
// whose time stamps do not tell.
func (s *Source) Seconds() (seconds, gaps float64) {
	files := slices.DeleteFunc(slices.Clone(s.files), func(f *file) bool { return f.timed == 0 })
	slices.SortStableFunc(files, func(a, b *file) int { return cmp.Compare(a.first, b.first) })
	for i := 0; i < len(files); {
		first, last, packets := files[i].first, files[i].last, files[i].timed
		for i++; i < len(files) && files[i].first <= last; i++ {
			last, packets = max(last, files[i].last), packets+files[i].timed
		}
		if d := float64(uint64(last)-uint64(first)) / 1e9; d > 0 {
			seconds += d
			gaps += float64(packets - 1)
		}
	}
	return seconds, gaps
}

// Warnings says what the files have that they should not have, once all is
// read.
func (s *Source) Warnings() []string {
	var w []string
	for _, f := range s.files {
		w = append(w, f.r.Warnings()...)
		add := func(format string, a ...any) { w = append(w, f.r.name+": "+fmt.Sprintf(format, a...)) }
		for _, link := range sorted(f.unknown) {
			add("%d packets of link type %d were left out; expected Ethernet, raw IP, Linux cooked or loopback", f.unknown[link], link)
		}
		if f.untimed > 0 {
			add("%d packets have no time (simple packet blocks); they count as packets, not in the rate", f.untimed)
		}
		if f.backwards > 0 {
			add("%d packets are earlier than the one before them", f.backwards)
		}
	}
	return w
}

// Unknown describes the link types that were left out, "" when there were
// none.
func (s *Source) Unknown() string {
	var links []string
	for _, f := range s.files {
		for _, link := range sorted(f.unknown) {
			links = append(links, fmt.Sprintf("link type %d", link))
		}
	}
	slices.Sort(links)
	return strings.Join(slices.Compact(links), ", ")
}

func sorted(m map[LinkType]int64) []LinkType {
	var keys []LinkType
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
