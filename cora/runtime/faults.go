package runtime

import (
	"math"
	"strconv"
	"strings"

	"nicprof/internal/fault"
	"nicprof/internal/near"
	"nicprof/sim"
)

// Faults are what an emulation is told to go wrong. The zero value is none.
type Faults struct {
	Lose      float64 // share of control messages, either way
	Duplicate float64 // share of control messages that arrive twice
	Delay     float64 // share of control messages that arrive late
	DelayUS   float64 // by how much
	Write     float64 // share of writes of keys into the NIC's table that fail
	StallAtS  float64 // when a host core stops taking packets
	StallMS   float64 // for how long
	PCIeGbps  float64 // other traffic on PCIe, each way
}

var faultKinds = []string{"lose", "duplicate", "delay", "write", "stall", "pcie"}

// Set adds a fault in the form KIND=VALUES: lose=SHARE, duplicate=SHARE,
// delay=SHARE:MICROSECONDS, write=SHARE, stall=AT_SECONDS:MILLISECONDS,
// pcie=GBPS.
func (f *Faults) Set(text string) error {
	kind, values, _ := strings.Cut(text, "=")
	parts := strings.Split(values, ":")
	fields := map[string][]*float64{
		"lose": {&f.Lose}, "duplicate": {&f.Duplicate}, "delay": {&f.Delay, &f.DelayUS},
		"write": {&f.Write}, "stall": {&f.StallAtS, &f.StallMS}, "pcie": {&f.PCIeGbps},
	}[kind]
	if fields == nil {
		hint := "there are " + strings.Join(faultKinds, ", ")
		if meant := near.Of(kind, faultKinds); len(meant) > 0 {
			hint = "did you mean " + strings.Join(meant, " or ") + "?"
		}
		return fault.Inputf("fault %q: no kind %q; %s", text, kind, hint)
	}
	if len(parts) != len(fields) {
		return fault.Inputf("fault %q: %d values; expected %s", text, len(parts), map[string]string{
			"lose": "lose=SHARE", "duplicate": "duplicate=SHARE", "delay": "delay=SHARE:MICROSECONDS",
			"write": "write=SHARE", "stall": "stall=AT_SECONDS:MILLISECONDS", "pcie": "pcie=GBPS",
		}[kind])
	}
	for i, p := range parts {
		v, err := strconv.ParseFloat(p, 64)
		share := i == 0 && kind != "stall" && kind != "pcie"
		if err != nil || !(v >= 0) || math.IsInf(v, 0) || share && v > 1 {
			return fault.Inputf("fault %q: %q; expected a number of at least 0, and a share of at most 1", text, p)
		}
		*fields[i] = v
	}
	return nil
}

// Injector draws faults of messages and writes.
type Injector struct {
	f Faults
	r *sim.Stream

	Lost, Duplicated, Delayed, WritesFailed uint64
}

// NewInjector returns an injector with a stream of its own under a seed.
func NewInjector(f Faults, seed uint64) *Injector {
	return &Injector{f: f, r: sim.NewStream(seed, "cora faults")}
}

// Control draws what becomes of a control message: how many times it arrives,
// and how late the last of them is, µs.
func (i *Injector) Control() (times int, lateUS float64) {
	if i.hit(i.f.Lose) {
		i.Lost++
		return 0, 0
	}
	times = 1
	if i.hit(i.f.Duplicate) {
		i.Duplicated++
		times = 2
	}
	if i.hit(i.f.Delay) {
		i.Delayed++
		lateUS = i.f.DelayUS
	}
	return times, lateUS
}

// WriteFails draws whether a write into the NIC's table fails; it is for
// NIC.WriteFails.
func (i *Injector) WriteFails() bool {
	fails := i.hit(i.f.Write)
	if fails {
		i.WritesFailed++
	}
	return fails
}

// hit draws nothing for faults that are off, so that turning one on leaves the
// draws of the others alone.
func (i *Injector) hit(share float64) bool { return share > 0 && i.r.Float64() < share }
