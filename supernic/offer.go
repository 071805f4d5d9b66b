package supernic

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"nicprof/internal/config"
	"nicprof/internal/fault"
	"nicprof/sim"
	"nicprof/traffic"
	"nicprof/traffic/capture"
)

// offer is an entry of load, ready to be played.
type offer struct {
	dag    int
	at     sim.Time
	gbps   float64
	size   traffic.Traffic // its PacketBytes or Sizes
	burst  int
	frames []frame // of a capture, instead of size and burst
	pcap   string
}

// frame is a packet of a capture: its size, and the time since the one before.
type frame struct {
	gap   sim.Time
	bytes int
}

// maxFrames bounds the packets of a capture that are replayed.
const maxFrames = 5_000_000

// readOffers turns the load into offers in the order of the file. Captures and
// distributions lie in dir. It complains about them to found.
func (s *Scenario) readOffers(dir string, found *config.Findings) error {
	last := make([]offer, len(s.DAGs))
	for i := range last {
		if err := last[i].size.SetSize(DefaultSize, dir, found); err != nil {
			return err
		}
	}
	for i, l := range s.Load {
		path := fmt.Sprintf("load[%d]", i)
		d := s.dag(l.DAG)
		o := offer{dag: d, at: sim.Time(l.AtUS * float64(sim.Microsecond)), size: last[d].size, burst: l.Burst}
		if l.Gbps != nil {
			o.gbps = *l.Gbps
		}
		if l.Size != nil {
			var of config.Findings
			o.size = traffic.Traffic{}
			if err := o.size.SetSize(l.Size, dir, &of); err != nil {
				return err
			}
			found.AddAll(path, of)
		}
		if l.PCAP != "" {
			o.pcap = l.PCAP
			if !filepath.IsAbs(o.pcap) {
				o.pcap = filepath.Join(dir, o.pcap)
			}
			frames, err := readFrames(o.pcap)
			if err != nil {
				found.Add(path+".pcap", "%v", err)
				continue
			}
			o.frames = frames
			if err := o.pace(l.Gbps); err != nil {
				found.Add(path+".pcap", "%v", err)
			}
		}
		last[d] = o
		s.offers = append(s.offers, o)
	}
	return nil
}

// pace sets the rate of a capture's frames: that of their times, or gbps.
func (o *offer) pace(gbps *float64) error {
	var total sim.Time
	bits := 0.0
	for _, f := range o.frames {
		total += f.gap
		bits += 8 * float64(f.bytes)
	}
	own := 0.0
	if total > 0 {
		own = bits / (float64(total) / 1000)
	}
	switch {
	case gbps == nil && total == 0:
		return fault.Inputf("%s: its packets have no times to go by; expected gbps", o.pcap)
	case gbps == nil:
		o.gbps = own
	case *gbps == 0:
		o.gbps = 0
	case total == 0:
		for i := range o.frames {
			o.frames[i].gap = sim.Time(8000 * float64(o.frames[i].bytes) / *gbps)
		}
	default:
		for i := range o.frames {
			o.frames[i].gap = sim.Time(float64(o.frames[i].gap) * own / *gbps)
		}
	}
	return nil
}

// readFrames reads the sizes and times of a capture. The first frame's gap is the
// mean one, so that the capture can be played over and over.
func readFrames(path string) ([]frame, error) {
	source, err := capture.Open(path)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	var frames []frame
	last := int64(capture.NoTime)
	var total sim.Time
	var p capture.Packet
	for {
		if err := source.Next(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		f := frame{bytes: p.FrameBytes()}
		if f.bytes > traffic.MaxPacketBytes {
			return nil, fault.Inputf("%s: packet %d: %d bytes; expected at most %d: switch segmentation offload off when capturing", path, p.Number, f.bytes, traffic.MaxPacketBytes)
		}
		if p.Time != capture.NoTime {
			if last != capture.NoTime && p.Time > last {
				f.gap = sim.Time(p.Time-last) * sim.Nanosecond
			}
			last = p.Time
		}
		total += f.gap
		if frames = append(frames, f); len(frames) > maxFrames {
			return nil, fault.Inputf("%s: more than %d packets; cut the capture (editcap -r FILE OUT 1-%d)", path, maxFrames, maxFrames)
		}
	}
	if len(frames) == 0 {
		return nil, fault.Inputf("%s: no packet; expected at least one", path)
	}
	if len(frames) > 1 {
		frames[0].gap = total / sim.Time(len(frames)-1)
	}
	return frames, nil
}
