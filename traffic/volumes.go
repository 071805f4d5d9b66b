package traffic

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"nicprof/internal/fault"
	"nicprof/traffic/capture"
)

// NoGroup is the group of packets that have none of a key's fields.
const NoGroup = -1

// Groups are the flow groups of one key, numbered in the order of their first
// packet.
type Groups struct {
	Key     Key
	Packets []float64 // by group; packets of a capture, packets a second of what has no duration of its own
	Bytes   []float64 // by group; frames with check sequence
	Peak    []float64 // by group, packets a second in its busiest window; nil when no window was asked for

	extract *Extractor // nil: synthetic groups have no fields
	words   []uint64
}

// N returns the number of groups.
func (g *Groups) N() int { return len(g.Packets) }

// Label returns the key's fields of a group as text, "-" for those that its
// packets lack. Synthetic groups are called by function and rank.
func (g *Groups) Label(group int) []string {
	if g.extract == nil {
		return []string{fmt.Sprintf("#%d", group+1)}
	}
	w := g.extract.Words()
	return g.extract.Format(g.words[group*w:][:w])
}

// Volumes is how many packets and bytes every flow group has, under several
// keys at once. Packets that are in the same groups under all keys are one
// class: what moves a class moves all its packets, so that a planner needs to
// look at classes only.
type Volumes struct {
	Keys []*Groups

	// Classes, in the order of their first packet. Of class c, Group[k][c] is
	// the group under Keys[k], or NoGroup.
	Group   [][]int32
	Packets []float64
	Bytes   []float64
	Path    []int32 // of synthetic volumes: which path the class takes; else nil

	// Seconds that Packets and Bytes were counted in: 1 when they are rates,
	// 0 when the time stamps do not tell.
	Seconds      float64
	TotalPackets float64
	TotalBytes   float64

	Cut            int64 // packets whose captured part lacks a field of a key
	LostFragments  int64 // later IP fragments whose first was not there: without ports
	LaterFragments int64 // later IP fragments, these included
	Warnings       []string
}

// Classes returns the number of classes.
func (v *Volumes) Classes() int { return len(v.Packets) }

// Mpps returns the mean rate in million packets a second, 0 when unknown.
func (v *Volumes) Mpps() float64 {
	if v.Seconds == 0 {
		return 0
	}
	return v.TotalPackets / v.Seconds / 1e6
}

// FrameBytes returns the mean frame in bytes, with check sequence.
func (v *Volumes) FrameBytes() float64 { return v.TotalBytes / v.TotalPackets }

// VolumeOptions say how volumes are counted.
type VolumeOptions struct {
	// Window is the length in seconds of the windows in which Peak looks for
	// the busiest, 0 for none. Windows follow the time stamps, from the first
	// packet on.
	Window float64
}

// counter adds packets up by class and group.
type counter struct {
	extract []*Extractor
	tables  []*groupTable
	classes *groupTable
	key     []uint64
	class   []uint64
	groups  []int32
	v       *Volumes

	window float64 // ns
	start  int64   // time of the first packet
	open   [][]windowCount
}

type windowCount struct {
	number  int64
	packets float64
}

func newCounter(keys []Key, o VolumeOptions) (*counter, error) {
	c := &counter{v: &Volumes{}, window: o.Window * 1e9, start: capture.NoTime}
	if !(o.Window >= 0) {
		return nil, fault.Inputf("a window of %v s; expected above 0, or 0 for none", o.Window)
	}
	for _, k := range keys {
		x, err := NewExtractor(k)
		if err != nil {
			return nil, err
		}
		c.extract = append(c.extract, x)
		c.tables = append(c.tables, newGroupTable(x.Words()))
		c.key = make([]uint64, max(len(c.key), x.Words()))
		c.v.Keys = append(c.v.Keys, &Groups{Key: slices.Clone(k), extract: x})
	}
	c.classes = newGroupTable(max(1, (len(keys)+1)/2))
	c.class = make([]uint64, c.classes.width)
	c.groups = make([]int32, len(keys))
	if c.window > 0 {
		c.open = make([][]windowCount, len(keys))
	}
	return c, nil
}

// add counts packets, all alike, of frame bytes each.
func (c *counter) add(h *capture.Headers, packets, frame float64, time int64) error {
	v := c.v
	bytes := packets * frame
	cut := false
	clear(c.class)
	for i, x := range c.extract {
		key := c.key[:x.words]
		ok, short := x.Extract(h, key)
		cut = cut || short
		g := int32(NoGroup)
		if ok {
			t := c.tables[i]
			if t.n == maxGroups {
				return fault.Inputf("more than %d flow groups by %v; take fewer fields", maxGroups, x.key)
			}
			g = t.number(key)
			k := v.Keys[i]
			if int(g) == len(k.Packets) {
				k.Packets, k.Bytes = append(k.Packets, 0), append(k.Bytes, 0)
			}
			k.Packets[g] += packets
			k.Bytes[g] += bytes
			if c.window > 0 && time != capture.NoTime {
				c.peak(i, int(g), packets, time)
			}
		}
		c.groups[i] = g
		c.class[i/2] |= uint64(uint32(g)) << (32 * (i % 2))
	}
	n := int(c.classes.number(c.class))
	if n == len(v.Packets) {
		v.Packets, v.Bytes = append(v.Packets, 0), append(v.Bytes, 0)
	}
	v.Packets[n] += packets
	v.Bytes[n] += bytes
	v.TotalPackets += packets
	v.TotalBytes += bytes
	if cut {
		v.Cut++
	}
	return nil
}

// peak counts packets into the window that is open for a group, and closes it
// when time has passed it.
func (c *counter) peak(key, group int, packets float64, time int64) {
	k := c.v.Keys[key]
	for len(k.Peak) <= group {
		k.Peak = append(k.Peak, 0)
		c.open[key] = append(c.open[key], windowCount{})
	}
	if c.start == capture.NoTime {
		c.start = time
	}
	w := &c.open[key][group]
	// A packet from before the open window is counted in it.
	if n := int64(float64(time-c.start) / c.window); n > w.number {
		*w = windowCount{number: n}
	}
	w.packets += packets
	k.Peak[group] = max(k.Peak[group], w.packets/c.window*1e9)
}

// finish returns the volumes.
func (c *counter) finish() *Volumes {
	v := c.v
	n := c.classes.n
	c.classes.slots = nil
	v.Group = make([][]int32, len(v.Keys))
	for i, k := range v.Keys {
		c.tables[i].slots = nil
		k.words = c.tables[i].keys
		if c.window > 0 {
			for len(k.Peak) < k.N() { // groups of packets without time
				k.Peak = append(k.Peak, 0)
			}
		}
		v.Group[i] = make([]int32, n)
		for class := range n {
			v.Group[i][class] = int32(c.classes.keys[class*c.classes.width+i/2] >> (32 * (i % 2)))
		}
	}
	return v
}

// CaptureVolumes counts the packets of captures by flow group under each of
// the keys. Several captures are read as one, in the order of their times; see
// capture.Source for what they may differ in. An error is the user's fault.
func CaptureVolumes(paths []string, keys []Key, o VolumeOptions) (*Volumes, error) {
	if len(paths) == 0 {
		return nil, fault.Inputf("no capture; expected at least one pcap or pcapng")
	}
	s, err := capture.Open(paths...)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return sourceVolumes(s, keys, o, paths[0])
}

func sourceVolumes(s *capture.Source, keys []Key, o VolumeOptions, name string) (*Volumes, error) {
	c, err := newCounter(keys, o)
	if err != nil {
		return nil, err
	}
	v := c.v
	for p, err := range packets(s, v) {
		if err != nil {
			return nil, err
		}
		if err := c.add(p.headers, 1, float64(p.FrameBytes()), p.Time); err != nil {
			return nil, err
		}
	}
	if v.TotalPackets == 0 {
		return nil, noPackets(s, name)
	}
	c.finish()
	seconds, gaps := s.Seconds()
	if gaps > 0 {
		// The last packet of a stretch has a gap too, which nobody saw.
		v.Seconds = seconds * v.TotalPackets / gaps
	}
	v.Warnings = append(v.Warnings, s.Warnings()...)
	if v.Cut > 0 {
		v.Warnings = append(v.Warnings, fmt.Sprintf("%d of %.0f packets were captured without a field that tells their group; capture more of each (tcpdump -s)", v.Cut, v.TotalPackets))
	}
	if v.LostFragments > 0 {
		v.Warnings = append(v.Warnings, fmt.Sprintf("%d IP fragments came without the first of their datagram; their ports are unknown", v.LostFragments))
	}
	return v, nil
}

func noPackets(s *capture.Source, name string) error {
	if links := s.Unknown(); links != "" {
		return fault.Inputf("%s: %s; expected a capture of Ethernet, raw IP, Linux cooked or loopback", name, links)
	}
	return fault.Inputf("%s: a capture without packets", name)
}

// dissected is a packet with its headers.
type dissected struct {
	capture.Packet
	headers *capture.Headers
}

// packets gives the packets of a source with their headers, those of later
// fragments from their first, and counts what is lost in v.
func packets(s *capture.Source, v *Volumes) iter.Seq2[*dissected, error] {
	return func(yield func(*dissected, error) bool) {
		var fragments capture.Fragments
		p := dissected{headers: new(capture.Headers)}
		for {
			if err := s.Next(&p.Packet); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				yield(nil, err)
				return
			}
			p.headers.Parse(&p.Packet)
			if p.headers.LaterFragment() {
				v.LaterFragments++
			}
			fragments.Resolve(p.headers, p.Time)
			if !yield(&p, nil) {
				return
			}
		}
		v.LostFragments = fragments.Lost()
	}
}
