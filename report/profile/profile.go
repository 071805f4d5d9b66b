// Package profile turns a measurement's Profile into a pprof profile, so that
// `go tool pprof` shows where a packet's time goes on the board.
package profile

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/google/pprof/profile"

	"nicprof/internal/atomicfile"
	"nicprof/internal/fault"
	"nicprof/microbench"
)

// Sample types of the profile. The default is Busy.
const (
	Packets = "packets" // visits of packets, count
	Busy    = "busy"    // time in service, nanoseconds
	Wait    = "wait"    // time queued before service, nanoseconds
)

// Convert returns s's profile with one pprof sample a stack. Frames are
// functions; a frame of the same name in another place of the tree is the same
// function, so that "-top" sums a memory over all accesses that reach it. It
// refuses a sample that was measured without a profile.
func Convert(s *microbench.Sample) (*profile.Profile, error) {
	if s.Profile == nil {
		return nil, fault.Missingf("board %s, backend %s: this measurement has no profile; use --backend emulated", s.Board, s.Backend)
	}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{
			{Type: Packets, Unit: "count"},
			{Type: Busy, Unit: "nanoseconds"},
			{Type: Wait, Unit: "nanoseconds"},
		},
		DefaultSampleType: Busy,
		PeriodType:        &profile.ValueType{Type: Packets, Unit: "count"},
		Period:            1,
		DurationNanos:     s.Profile.DurationNS,
		Comments: []string{
			fmt.Sprintf("board %s, backend %s, seed %d, %d cores", s.Board, s.Backend, s.Seed, s.Cores),
			fmt.Sprintf("%d packets, %g Mpps", s.Profile.Packets, s.Mpps),
		},
	}
	locations := map[string]*profile.Location{}
	at := func(frame string) *profile.Location {
		l := locations[frame]
		if l == nil {
			id := uint64(len(locations) + 1)
			f := &profile.Function{ID: id, Name: frame, SystemName: frame, Filename: s.Board}
			l = &profile.Location{ID: id, Line: []profile.Line{{Function: f, Line: 1}}}
			p.Function, p.Location, locations[frame] = append(p.Function, f), append(p.Location, l), l
		}
		return l
	}
	for _, st := range s.Profile.Stacks {
		sample := &profile.Sample{Value: []int64{st.Packets, st.BusyNS, st.WaitNS}}
		for _, frame := range slices.Backward(st.Frames) { // pprof wants the leaf first
			sample.Location = append(sample.Location, at(frame))
		}
		p.Sample = append(p.Sample, sample)
	}
	if err := p.CheckValid(); err != nil {
		return nil, fmt.Errorf("profile of board %s: %w", s.Board, err)
	}
	return p, nil
}

// Write writes s's profile to a gzipped pprof file (.pb.gz).
func Write(path string, s *microbench.Sample) error {
	p, err := Convert(s)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		return err
	}
	if err := atomicfile.Write(path, b.Bytes()); err != nil {
		return fault.Inputf("cannot write the profile: %w; choose another --profile", err)
	}
	return nil
}
