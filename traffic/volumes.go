package traffic

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"

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
	table   *groupTable
}

// N returns the number of groups.
func (g *Groups) N() int { return len(g.Packets) }

// Label returns the key's fields of a group as text, "-" for those that its
// packets lack. Synthetic groups are called by their rank, the largest 1.
func (g *Groups) Label(group int) []string {
	if g.extract == nil {
		return []string{strconv.Itoa(group + 1)}
	}
	return g.extract.Format(g.table.entry(group))
}

// Complete reports whether the packets of a group have all fields of the key.
func (g *Groups) Complete(group int) bool {
	if g.extract == nil {
		return true
	}
	all := ^uint64(0) >> (64 - len(g.Key))
	return len(g.Key) == 0 || g.table.entry(group)[0]&all == all
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

// counter adds packets up by class, a batch at a time, so that the table's waits
// for memory overlap. Packets are of one class if all fields of all keys are
// equal, so one look-up by those fields finds it; its groups are worked out when
// its first packet comes.
type counter struct {
	v       *Volumes
	keys    []keyCounter
	fields  *Extractor // of all keys
	classes *groupTable
	batch   []uint64 // fields of the packets in the batch
	hashes  [batchSize]uint32
	class   [batchSize]int
	packets [batchSize]float64
	bytes   [batchSize]float64
	times   [batchSize]int64
	n       int // packets in the batch

	window float64 // ns, 0 for none
	start  int64   // time of the first packet
}

// keyCounter is the part of a counter for one key.
type keyCounter struct {
	extract *Extractor
	fields  []int // of the counter's fields: those of the key
	all     bool  // they are all of them: every class is a group
	table   *groupTable
	batch   []uint64 // fields of the new classes of the batch
	group   []int32  // by class

	peak []float64 // packets a second, by group
	open []openWindow
}

// openWindow is the window that a group's last packet was in.
type openWindow struct {
	number  int64
	packets float64
}

const batchSize = 32

func newCounter(keys []Key, o VolumeOptions) (*counter, error) {
	if !(o.Window >= 0 && o.Window <= 1e9) {
		return nil, fault.Inputf("a window of %v s; expected above 0, or 0 for none", o.Window)
	}
	c := &counter{v: &Volumes{}, keys: make([]keyCounter, len(keys)), window: o.Window * 1e9, start: capture.NoTime}
	var all Key
	for i, k := range keys {
		x, err := NewExtractor(k)
		if err != nil {
			return nil, err
		}
		c.keys[i] = keyCounter{extract: x, table: newNumberTable(x.words), batch: make([]uint64, batchSize*x.words)}
		for _, f := range k {
			at := slices.Index(all, f)
			if at < 0 {
				at = len(all)
				all = append(all, f)
			}
			c.keys[i].fields = append(c.keys[i].fields, at)
		}
	}
	var err error
	if c.fields, err = NewExtractor(all); err != nil {
		return nil, fault.Inputf("all keys together: %w", err)
	}
	for i := range c.keys {
		own := slices.Clone(c.keys[i].fields)
		slices.Sort(own)
		c.keys[i].all = len(slices.Compact(own)) == len(all) && len(all) == len(keys[i])
	}
	c.classes = newGroupTable(c.fields.words)
	c.batch = make([]uint64, batchSize*c.fields.words)
	return c, nil
}

// add counts packets, all alike, of frame bytes each.
func (c *counter) add(h *capture.Headers, packets, frame float64, time int64) error {
	w := c.fields.words
	if _, cut := c.fields.Extract(h, c.batch[c.n*w:][:w]); cut {
		c.v.Cut++
	}
	c.packets[c.n], c.bytes[c.n], c.times[c.n] = packets, packets*frame, time
	c.n++
	c.v.TotalPackets += packets
	c.v.TotalBytes += packets * frame
	if c.n == batchSize {
		return c.flush()
	}
	return nil
}

// flush counts the batch.
func (c *counter) flush() error {
	w := c.fields.words
	for j := range c.n {
		c.hashes[j] = hash(c.batch[j*w:][:w])
	}
	c.classes.touch(c.hashes[:c.n])
	known := c.classes.n
	for j := range c.n {
		c.class[j] = c.classes.number(c.batch[j*w:][:w], c.hashes[j])
		c.classes.add(c.class[j], c.packets[j], c.bytes[j])
	}
	for i := range c.keys {
		c.place(&c.keys[i], known)
	}
	if c.window > 0 {
		c.peaks()
	}
	if c.classes.n > maxGroups-batchSize {
		return fault.Inputf("more than %d classes of packets; take fewer fields", c.classes.n)
	}
	c.n = 0
	return nil
}

// place finds the groups under a key of the classes from known on, which are new.
func (c *counter) place(k *keyCounter, known int) {
	w := k.extract.words
	var in [batchSize]bool
	n := c.classes.n - known
	for j := range n {
		words := k.batch[j*w:][:w]
		in[j] = k.extract.project(c.fields, k.fields, c.classes.entry(known+j), words)
		c.hashes[j] = hash(words)
	}
	if !k.all {
		k.table.touch(c.hashes[:n])
	}
	for j := range n {
		words, g := k.batch[j*w:][:w], NoGroup
		switch {
		case in[j] && k.all:
			g = k.table.push(words)
		case in[j]:
			g = k.table.number(words, c.hashes[j])
		}
		k.group = append(k.group, int32(g))
	}
}

// peaks counts the packets of the batch into their groups' windows.
func (c *counter) peaks() {
	for j := range c.n {
		for i := range c.keys {
			k := &c.keys[i]
			if g := k.group[c.class[j]]; g != NoGroup && c.times[j] != capture.NoTime {
				c.peak(k, int(g), c.packets[j], c.times[j])
			}
		}
	}
}

// peak counts packets into the window that is open for a group, and opens
// another when time has passed it. A packet from before is counted in it.
func (c *counter) peak(k *keyCounter, group int, packets float64, time int64) {
	for len(k.peak) <= group {
		k.peak = append(k.peak, 0)
		k.open = append(k.open, openWindow{})
	}
	if c.start == capture.NoTime {
		c.start = time
	}
	w := &k.open[group]
	if n := int64((float64(time) - float64(c.start)) / c.window); n > w.number {
		*w = openWindow{number: n}
	}
	w.packets += packets
	k.peak[group] = max(k.peak[group], w.packets/c.window*1e9)
}

// finish returns the volumes.
func (c *counter) finish() (*Volumes, error) {
	if err := c.flush(); err != nil {
		return nil, err
	}
	v := c.v
	v.Packets, v.Bytes = c.classes.counts()
	c.classes = nil
	for i := range c.keys {
		k := &c.keys[i]
		k.table.slots = nil
		g := &Groups{Key: slices.Clone(k.extract.key), extract: k.extract, table: k.table}
		g.Packets, g.Bytes = make([]float64, k.table.n), make([]float64, k.table.n)
		for class, n := range k.group {
			if n != NoGroup {
				g.Packets[n] += v.Packets[class]
				g.Bytes[n] += v.Bytes[class]
			}
		}
		if c.window > 0 {
			g.Peak = append(k.peak, make([]float64, g.N()-len(k.peak))...) // groups of packets without time
		}
		v.Keys, v.Group = append(v.Keys, g), append(v.Group, k.group)
	}
	return v, nil
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
	large := 0
	for p, err := range packets(s, v) {
		if err != nil {
			return nil, err
		}
		size := p.FrameBytes()
		if size > MaxPacketBytes {
			large++
		}
		if err := c.add(p.headers, 1, float64(size), p.Time); err != nil {
			return nil, err
		}
	}
	if v.TotalPackets == 0 {
		return nil, noPackets(s, name)
	}
	if _, err := c.finish(); err != nil {
		return nil, err
	}
	seconds, gaps := s.Seconds()
	if gaps > 0 {
		// The last packet of a stretch has a gap too, which nobody saw.
		v.Seconds = seconds * v.TotalPackets / gaps
	}
	v.Warnings = append(v.Warnings, s.Warnings()...)
	if v.Cut > 0 {
		v.Warnings = append(v.Warnings, fmt.Sprintf("%d of %.0f packets were captured without a field that tells their group; capture more of each (tcpdump -s)", v.Cut, v.TotalPackets))
	}
	if large > 0 {
		v.Warnings = append(v.Warnings, fmt.Sprintf("%d packets are larger than a jumbo frame (%d bytes); capture with segmentation offload off: on the wire they were several", large, MaxPacketBytes))
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
