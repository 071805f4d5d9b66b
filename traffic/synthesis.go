package traffic

import (
	"math"

	"nicprof/internal/fault"
)

// Synthesis makes up the volumes of flow groups where only the statistics are
// known that operators have (Cora, section 6.2): the rate, the share of each
// branch, the largest flow of each function, and how flow volumes are
// distributed in general.
//
// Each function's groups sum to its part of the traffic and have its shape,
// exactly. How the groups of two functions on one path meet is not known; they
// are paired at random, in portions as large as go, so that there are no more
// classes than groups. The same synthesis and seed give the same volumes.
type Synthesis struct {
	PPS        float64 // packets a second of all traffic
	FrameBytes float64 // mean frame, with check sequence
	Functions  []Function
	Paths      []Path // disjoint parts of the traffic
	Seed       uint64
}

// Function is what keeps state by flow group: a state block. Two that have the
// same groups are one function here.
type Function struct {
	Name   string
	Shape  Shape
	Groups int     // 0: as many as Largest takes
	MaxPPS float64 // its largest group, packets a second; 0: as the shape has it
}

// Path is a share of the packets (0..1) and the functions, by index, that they
// visit. Shares sum to 1.
type Path struct {
	Share     float64
	Functions []int
}

// Volumes returns the volumes: Keys in the order of Functions, groups from the
// largest on, Path in the order of Paths. An error is the user's fault.
func (s Synthesis) Volumes() (*Volumes, error) {
	if !(s.PPS > 0 && s.PPS <= 1e15) {
		return nil, fault.Inputf("a rate of %v packets a second; expected above 0: a planner needs to know how much arrives (rate_mpps)", s.PPS)
	}
	if !(s.FrameBytes >= MinPacketBytes && s.FrameBytes <= MaxPacketBytes) {
		return nil, fault.Inputf("frames of %v bytes; expected %d..%d", s.FrameBytes, MinPacketBytes, MaxPacketBytes)
	}
	total := 0.0
	volume := make([]float64, len(s.Functions))
	for i, p := range s.Paths {
		if !(p.Share >= 0 && p.Share <= 1) {
			return nil, fault.Inputf("path %d: a share of %v; expected 0..1", i+1, p.Share)
		}
		total += p.Share
		seen := map[int]bool{}
		for _, f := range p.Functions {
			if f < 0 || f >= len(s.Functions) || seen[f] {
				return nil, fault.Inputf("path %d: function %d; expected each of 0..%d at most once", i+1, f, len(s.Functions)-1)
			}
			seen[f] = true
			volume[f] += p.Share * s.PPS
		}
	}
	if math.Abs(total-1) > 1e-6 {
		return nil, fault.Inputf("the shares of the %d paths sum to %v, not to 1", len(s.Paths), total)
	}
	v := &Volumes{Group: make([][]int32, len(s.Functions)), Seconds: 1}
	for i, f := range s.Functions {
		g := &Groups{}
		v.Keys = append(v.Keys, g)
		if volume[i] == 0 {
			continue // no packet comes there
		}
		var err error
		if g.Packets, err = f.Shape.Rates(volume[i], f.Groups, f.MaxPPS); err != nil {
			return nil, fault.Inputf("%s: %w", f.Name, err)
		}
		g.Bytes = make([]float64, len(g.Packets))
		for j, packets := range g.Packets {
			g.Bytes[j] = packets * s.FrameBytes
		}
	}
	for i, p := range s.Paths {
		if p.Share > 0 {
			s.pair(v, i, p.Share/total*s.PPS)
		}
	}
	v.TotalPackets = sum(v.Packets)
	v.TotalBytes = v.TotalPackets * s.FrameBytes
	return v, nil
}

// track is one function's groups laid end to end over the packets of a path,
// in random order.
type track struct {
	function int
	order    *Permutation
	rates    []float64
	scale    float64
	place    int
	group    int32
	end      float64 // where the current group ends
}

func (t *track) advance() {
	t.place++
	t.group = int32(t.order.At(int64(t.place)))
	t.end += t.rates[t.group] * t.scale
}

// pair cuts a path's packets wherever a group of any of its functions ends, and
// makes each piece a class.
func (s Synthesis) pair(v *Volumes, path int, pps float64) {
	var tracks []*track
	for _, f := range s.Paths[path].Functions {
		g := v.Keys[f]
		n := len(g.Packets)
		// Every path has its own order, and every function.
		seed := mix(s.Seed ^ mix(uint64(path)<<32|uint64(f)))
		t := &track{function: f, order: NewPermutation(int64(n), seed), rates: g.Packets, scale: pps / sum(g.Packets), place: -1}
		t.advance()
		tracks = append(tracks, t)
	}
	for at := 0.0; ; {
		next, last := pps, true
		for _, t := range tracks {
			if t.place < len(t.rates)-1 {
				next, last = min(next, t.end), false
			}
		}
		if next > at || last {
			for i := range v.Group {
				v.Group[i] = append(v.Group[i], NoGroup)
			}
			for _, t := range tracks {
				v.Group[t.function][len(v.Packets)] = t.group
			}
			v.Packets = append(v.Packets, max(next-at, 0))
			v.Bytes = append(v.Bytes, max(next-at, 0)*s.FrameBytes)
			v.Path = append(v.Path, int32(path))
			at = next
		}
		if last {
			return
		}
		for _, t := range tracks {
			for t.place < len(t.rates)-1 && (t.end <= next || next == pps) {
				t.advance()
			}
		}
	}
}
