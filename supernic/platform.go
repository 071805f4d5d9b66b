package supernic

import (
	"errors"
	"math"

	"nicprof/board"
	"nicprof/internal/config"
	"nicprof/sim"
)

// Platform is what of a board of class fpga the control plane works with.
type Platform struct {
	Board      *board.Board // with the scenario's overrides
	Regions    int
	RegionArea float64
	Credits    int
	Cycle      sim.Time
	PassCycles int      // of another pass through the scheduler
	SyncCycles int      // of meeting again after parallel branches
	SkipCycles int      // past an NT of a chain that a packet does not use
	LinkGbps   float64  // one port
	BusGbps    float64  // the data path, without gaps
	MemoryMB   int      // of the board
	PR         sim.Time // one region; regions are configured one after the other
	Save       sim.Time // state to memory before a context switch
	Epoch      sim.Time // between two fair allocations
	Monitor    sim.Time // of overload or idleness before anything is scaled
}

// Limits of what a scenario may ask for.
const (
	maxRegions  = 256
	maxCredits  = 1 << 16
	maxClockMHz = 10000
)

// platform loads the scenario's board and applies the overrides, about which it
// complains to found.
func (s *Scenario) platform(found *config.Findings) (Platform, error) {
	if s.BoardName == "" {
		return Platform{}, errors.New("no board; expected one of class fpga, such as snic")
	}
	b, err := board.Load(s.BoardName)
	if err != nil {
		return Platform{}, err
	}
	f := b.FPGA
	if f == nil {
		return Platform{}, errors.New(s.BoardName + " is a board of class " + b.Class + "; expected one of class fpga, such as snic")
	}
	over := func(to *board.Num, value float64, ok bool, path, want string) {
		if !ok {
			found.Add("overrides."+path, "%v; expected %s", value, want)
			return
		}
		*to = board.Num{Value: value, Unit: to.Unit, Source: "scenario", Confidence: "H"}
	}
	if v := s.Overrides.Regions; v != nil {
		over(&f.Regions.Count, float64(*v), *v >= 1 && *v <= maxRegions, "regions", "1..256 regions")
	}
	if v := s.Overrides.RegionArea; v != nil {
		over(&f.Regions.Area, *v, *v > 0 && !math.IsInf(*v, 0), "region_area", "an area above 0, in the unit of the NTs' areas")
	}
	if v := s.Overrides.Credits; v != nil {
		over(&f.Scheduler.Credits, float64(*v), *v >= 1 && *v <= maxCredits, "credits", "1 or more: an NT without credits never gets a packet")
	}
	if v := s.Overrides.ClockMHz; v != nil {
		over(&b.ClockMHz, *v, *v > 0 && *v <= maxClockMHz, "clock_mhz", "a clock above 0 and up to 10000 MHz")
	}
	of := func(v float64, unit sim.Time) sim.Time { return sim.Time(math.Round(v * float64(unit))) }
	return Platform{
		Board: b, Regions: int(f.Regions.Count.Value), RegionArea: f.Regions.Area.Value, Credits: int(f.Scheduler.Credits.Value),
		Cycle: of(1/b.ClockMHz.Value, sim.Microsecond), PassCycles: int(f.Stage(board.SchedulerStage)), SyncCycles: int(f.Stage(board.SyncStage)), SkipCycles: int(f.Regions.Skip.Value),
		LinkGbps: b.LinkGbps.Value, BusGbps: f.BusBits.Value * b.ClockMHz.Value / 1000,
		MemoryMB: int(f.VM.Bytes.Value / 1e6),
		PR:       of(f.Regions.PRms.Value, sim.Millisecond), Save: of(f.Regions.SaveUS.Value, sim.Microsecond),
		Epoch: of(f.Control.EpochUS.Value, sim.Microsecond), Monitor: of(f.Control.MonitorMS.Value, sim.Millisecond),
	}, nil
}
