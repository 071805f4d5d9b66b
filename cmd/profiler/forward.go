package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/internal/table"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/traffic"
)

// forwarding is the JSON of forward.
type forwarding struct {
	PacketBytes int          `json:"packet_bytes"`
	Paths       []packetPath `json:"paths"`
	Notes       []string     `json:"notes"`
	Seed        uint64       `json:"seed"`
}

// packetPath is the bare forwarding rate of one packet path, or why there is
// none. CPUNS is processor time by packet and part, WallNS the inverse of the
// rate.
type packetPath struct {
	Board       string              `json:"board"`
	Base        string              `json:"base"`
	Backend     string              `json:"backend"`
	Missing     string              `json:"missing,omitempty"`
	Mpps        float64             `json:"mpps,omitempty"`
	Low         float64             `json:"mpps_low,omitempty"`
	High        float64             `json:"mpps_high,omitempty"`
	OfferedMpps float64             `json:"offered_mpps,omitempty"`
	LossRatio   float64             `json:"loss_ratio"`
	WallNS      float64             `json:"wall_ns,omitempty"`
	CPUNS       map[string]float64  `json:"cpu_ns,omitempty"`
	Latency     *microbench.Latency `json:"latency_us,omitempty"`
	Runs        int                 `json:"runs,omitempty"`
	Packets     *microbench.Packets `json:"packets,omitempty"`
	Conditions  map[string]string   `json:"conditions,omitempty"`
	Warnings    []string            `json:"warnings,omitempty"`
}

func (p *packetPath) name() string { return p.Board + " " + p.Base }

// quickSeconds and quickTrials are the trials of --quick.
const (
	quickSeconds = 0.1
	quickTrials  = 3
)

func (a *app) forward() *cobra.Command {
	var quick, allowNoise bool
	var bytes int
	var duration time.Duration
	c := &cobra.Command{
		Use:   "forward [--quick] [--packet-bytes N] [--duration D]",
		Short: "Forward packets by every path of this machine, side by side",
		Long: `Forward packets by every path of this machine and print the rates side by side,
with what was lost and the processor time that a packet took: a ring in memory,
AF_PACKET and AF_XDP between two veth pairs, and DPDK's testpmd on devices
without hardware and on the veth pairs. A path whose tool or right is missing is
listed with the reason; the veth pairs need root, and so do huge pages. Exits
with 1 when a packet is unaccounted for or the machine is too noisy.`,
		Example: "  profiler forward --quick --allow-noise",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := traffic.CheckPacketBytes(bytes).Err(); err != nil {
				return fault.Inputf("--packet-bytes: %w", err)
			}
			if duration < 0 {
				return fault.Inputf("--duration %v: expected the length of a trial, such as 300ms", duration)
			}
			o := microbench.Options{Cores: 1, Seed: a.seed, TrialSeconds: duration.Seconds(), AllowNoise: allowNoise}
			if quick {
				o.MaxRuns = quickTrials
				if duration == 0 {
					o.TrialSeconds = quickSeconds
				}
			}
			return a.forwardAll(c, bytes, quick, o)
		},
	}
	c.Flags().BoolVar(&quick, "quick", false, "three short trials of each path, and of DPDK's modes only io and 5tswap")
	c.Flags().BoolVar(&allowNoise, "allow-noise", false, "report in spite of noise, marked")
	c.Flags().IntVar(&bytes, "packet-bytes", board.DefaultPacketBytes, "`N` bytes a packet, check sequence included")
	c.Flags().DurationVar(&duration, "duration", 0, "`LENGTH` of a trial (default: each path's own)")
	return c
}

// forwardAll measures the paths and prints them.
func (a *app) forwardAll(c *cobra.Command, bytes int, quick bool, o microbench.Options) error {
	f := forwarding{PacketBytes: bytes, Seed: a.seed}
	var failed error
	missing := 0
	for _, name := range []string{"host", "veth", "dpdk"} {
		b, err := board.Load(name)
		if err != nil {
			return err
		}
		d, opened := microbench.Open(b, "")
		for _, base := range b.Bases {
			if quick && leftOut(name, base.Name) {
				f.Notes = append(f.Notes, name+" "+base.Name+" is left out by --quick")
				continue
			}
			p := packetPath{Board: name, Base: base.Name, Backend: microbench.DefaultBackend(b, "")}
			a.note("%s ...", p.name())
			err := opened
			if err == nil {
				err = p.measure(c, d, bytes, o)
			}
			switch {
			case c.Context().Err() != nil:
				return c.Context().Err()
			case fault.KindOf(err) == fault.Missing:
				missing++
				p.Missing = err.Error()
			case fault.KindOf(err) == fault.Input: // such as packets too large for this path
				p.Missing = err.Error()
			case err != nil:
				p.Missing = err.Error()
				failed = errors.Join(failed, fmt.Errorf("%s: %w", p.name(), err))
			}
			if p.Packets != nil {
				if err := p.Packets.Check(); err != nil {
					failed = errors.Join(failed, fmt.Errorf("%s: %w", p.name(), err))
				}
			}
			f.Paths = append(f.Paths, p)
		}
	}
	if err := a.printForwarding(&f); err != nil {
		return err
	}
	if failed != nil {
		return fault.Checkf("%w", failed)
	}
	if missing == len(f.Paths) {
		return fault.Missingf("no packet path can be measured here; see the reasons above")
	}
	return nil
}

// leftOut says whether --quick leaves a base out.
func leftOut(boardName, base string) bool {
	return boardName == "dpdk" && !strings.HasSuffix(base, "-io") && !strings.HasSuffix(base, "-5tswap")
}

// measure fills in the path's rate.
func (p *packetPath) measure(c *cobra.Command, d microbench.Driver, bytes int, o microbench.Options) error {
	s, err := d.Measure(c.Context(), program.Program{Base: p.Base, PacketBytes: bytes}, traffic.Traffic{}, o)
	if err != nil {
		return err
	}
	p.Mpps, p.Low, p.High, p.OfferedMpps = s.Mpps, s.Low, s.High, s.OfferedMpps
	p.CPUNS, p.Runs, p.Packets, p.Conditions, p.Warnings = s.CPUNS, s.Runs, s.Packets, s.Conditions, s.Warnings
	if s.Mpps > 0 {
		p.WallNS = 1e3 / s.Mpps
		p.LossRatio = s.DroppedMpps / (s.Mpps + s.DroppedMpps)
	}
	if s.Latency.P99 > 0 {
		p.Latency = &s.Latency
	}
	return nil
}

func (a *app) printForwarding(f *forwarding) error {
	if a.json {
		f.Notes = list(f.Notes)
		return a.document(f)
	}
	t := table.New(fmt.Sprintf("Forwarding packets of %d B, saturated, one forwarding thread; processor time by packet, ns", f.PacketBytes),
		"path", "Mpps", "95 %", "lost", "wall ns", "forwarder", "generator", "sink")
	why := table.New("Notes", "path", "note")
	for i := range f.Paths {
		p := &f.Paths[i]
		if p.Missing != "" {
			t.Row(p.name(), "–", "–", "–", "–", "–", "–", "–")
			why.Row(p.name(), "not measured: "+p.Missing)
			continue
		}
		t.Row(p.name(), p.Mpps, fmt.Sprintf("±%.0f %%", 50*(p.High-p.Low)/p.Mpps), percent(p.LossRatio), p.WallNS,
			p.cpu("forwarder", "cores"), p.cpu("generator"), p.cpu("sink"))
		for _, w := range p.Warnings {
			why.Row(p.name(), w)
		}
	}
	tables := []*table.Table{t}
	if why.Len() > 0 {
		tables = append(tables, why)
	}
	if err := a.print(tables...); err != nil {
		return err
	}
	a.note("all paths are measured natively, on this machine and under its load; a path's parts run side by side on their own threads")
	for _, n := range f.Notes {
		a.note("note: %s", n)
	}
	return nil
}

// cpu is the processor time of a part, which has one of the names.
func (p *packetPath) cpu(names ...string) float64 {
	for _, name := range names {
		if ns, ok := p.CPUNS[name]; ok {
			return ns
		}
	}
	return math.NaN()
}
