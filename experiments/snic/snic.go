// Package snic reproduces figures of SuperNIC (arXiv 2109.07744) on the emulated
// board. What is published about a figure, by the paper or by the dissertation
// that its first version is a chapter of, lies in one file of published/ with
// its source named; it is only ever held against measurements, and drawn as
// markers.
package snic

import (
	"embed"
	"fmt"
	"math"

	"nicprof/board"
	emu "nicprof/emu/snic"
	"nicprof/experiments"
	"nicprof/report"
	"nicprof/sim"
	"nicprof/traffic"
)

//go:embed published/*.csv
var published embed.FS

// Names in results.
const (
	paper     = "SuperNIC"
	backend   = "emulated"
	boardName = "snic"
	asicName  = "snic-asic"
)

func readClaims(name string) (experiments.Claims, error) {
	return experiments.ReadClaims(published, "published/"+name+".csv")
}

// result begins a figure's result.
func result() report.Result { return report.Result{Board: boardName, Backend: backend} }

// cycles returns a time in cycles of the board's clock.
func cycles(b *board.Board, t sim.Time) float64 { return float64(t) / 1e6 * b.ClockMHz.Value }

func ns(t sim.Time) float64 { return float64(t) / float64(sim.Nanosecond) }

func us(t sim.Time) float64 { return float64(t) / float64(sim.Microsecond) }

// gib turns Gb/s into Gib/s, the unit in which the dissertation's throughputs
// fit a bus of 64 bytes a cycle.
func gib(gbps float64) float64 { return gbps * 1e9 / (1 << 30) }

// rig is a board laid out with one DAG.
type rig struct {
	emu.Config
	route emu.Route
}

// dummies returns NTs of so many cycles each.
func dummies(cycles ...int) []emu.NT {
	var nts []emu.NT
	for i, c := range cycles {
		nts = append(nts, emu.NT{Name: fmt.Sprintf("NT%d", i+1), Cycles: c})
	}
	return nts
}

// alternating returns the delays of the dissertation's chains: 16 and 32 cycles
// in turn.
func alternating(n int) []int {
	var c []int
	for i := range n {
		c = append(c, 16<<(i%2))
	}
	return c
}

// loadBoard loads a board and gives it as many regions as chains need, since how
// many the prototype has is not published.
func loadBoard(name string, regions int) (*board.Board, error) {
	b, err := board.Load(name)
	if err != nil {
		return nil, err
	}
	if n := &b.FPGA.Regions.Count; float64(regions) > n.Value {
		n.Value, n.Source = float64(regions), "this figure"
	}
	return b, nil
}

// inChains lays NTs out in chains, a region each, one after the other.
func inChains(name string, nts []emu.NT, chains ...[]int) (rig, error) {
	b, err := loadBoard(name, len(chains))
	if err != nil {
		return rig{}, err
	}
	r := rig{Config: emu.Config{Board: b, NTs: nts, Regions: chains}}
	for i, c := range chains {
		r.route = append(r.route, emu.Stage{{{Region: i, Run: emu.All(len(c))}}})
	}
	return r, nil
}

// sideBySide lays NTs out in chains that run at the same time.
func sideBySide(name string, nts []emu.NT, chains ...[]int) (rig, error) {
	r, err := inChains(name, nts, chains...)
	if err != nil {
		return rig{}, err
	}
	var all emu.Stage
	for _, s := range r.route {
		all = append(all, s...)
	}
	r.route = emu.Route{all}
	return r, nil
}

// through returns from, from+1, … to-1.
func through(from, to int) []int {
	var s []int
	for i := from; i < to; i++ {
		s = append(s, i)
	}
	return s
}

// start sets the load going.
func (r rig) start(l emu.Load) (*emu.Board, error) {
	b, err := emu.New(r.Config)
	if err != nil {
		return nil, err
	}
	if err := b.SetRoute(0, r.route); err != nil {
		return nil, err
	}
	return b, b.Offer(0, l)
}

// alone returns the latency of packets of 64 B that meet no other, without PHY
// and MAC.
func (r rig) alone() (sim.Time, error) {
	b, err := r.start(emu.Load{Gbps: 0.01, Bytes: emu.MinBytes, Paced: true})
	if err != nil {
		return 0, err
	}
	b.Run(500 * sim.Microsecond)
	l := &b.Flow(0).Latency
	if l.N() == 0 || l.Min() != l.Max() {
		return 0, fmt.Errorf("%d packets that meet no other take %d to %d ps", l.N(), l.Min(), l.Max())
	}
	return l.Mean(), nil
}

// saturated returns the rate of packets back to back, and their passes through
// the scheduler, once the board has settled for as long as it is then watched.
func (r rig) saturated(l emu.Load, over sim.Time) (gbps, mpps, passes float64, err error) {
	l.Saturate = true
	b, err := r.start(l)
	if err != nil {
		return 0, 0, 0, err
	}
	b.Run(over)
	f := b.Flow(0)
	served, before := f.Served, f.Passes
	b.Run(b.Now() + over)
	packets := float64(f.Served.Packets - served.Packets)
	return f.Served.Gbps(served, over), packets / us(over), float64(f.Passes-before) / packets, nil
}

// facebook is the packets of the messages of Facebook's Hadoop cluster, of the
// paper's distributions the one that is public.
func facebook() (*traffic.Sizes, error) {
	s, err := traffic.NamedSizes("facebook")
	if err != nil {
		return nil, err
	}
	return s.Packets(), nil
}

// span chooses a time by the figure's scale.
func span(env experiments.Env, quick, full sim.Time) sim.Time {
	if env.Scale == experiments.Full {
		return full
	}
	return quick
}

// markers are the published points of claims with IDs that begin with a prefix
// and end with x, in order.
func markers(claims experiments.Claims, name string, style int, format string, xs []int, x func(int) float64) report.Series {
	s := report.Series{Name: name, Kind: report.Markers, Style: style}
	for _, v := range xs {
		if c := claims.Find(fmt.Sprintf(format, v)); c.Published != nil {
			s.Points = append(s.Points, report.Point{X: x(v), Y: *c.Published})
		}
	}
	return s
}

func identity(v int) float64 { return float64(v) }

// errorPct is measured against published, %.
func errorPct(c *report.Claim) float64 { return 100 * (*c.Measured/(*c.Published) - 1) }

func abs(v []float64) []float64 {
	a := make([]float64, len(v))
	for i := range v {
		a[i] = math.Abs(v[i])
	}
	return a
}
