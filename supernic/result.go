package supernic

import (
	"fmt"

	"nicprof/emu/snic"
	"nicprof/sim"
)

// Result is what a scenario came to. Rates are means over the whole run, Gb/s of
// frames.
type Result struct {
	Scenario  *Scenario
	Duration  sim.Time
	Seed      uint64
	PHY       sim.Time // PHY and MAC, both ways: no latency here includes it
	DAGs      []DAGResult
	Resources []Use
	Samples   []sim.Time // at which shares were taken
	Shares    []Share    // those above 0
	Events    []Event
	Choices   []Choice
	Spaces    []Space // address spaces, one a user and NT
}

// DAGResult is what came of a DAG's packets. Offered counts what the wire
// brought, Accepted what the ingress let in, Served what left. Latency is from
// the port to the first beat out, without PHY and MAC.
type DAGResult struct {
	Name, User                string
	Offered, Accepted, Served float64
	P50, P99, Max             sim.Time
	Packets                   int64   // served
	Passes                    float64 // through the scheduler, a packet
	Dropped                   int64
	Causes                    [len(snic.Causes)]int64 // of Dropped, by snic.Causes
}

// Use is the utilisation of a resource, 0..1.
type Use struct {
	Resource string
	Value    float64
}

// Share is the part of a resource that a user had in the time up to At, 0..1.
type Share struct {
	At       sim.Time
	User     int
	Resource string
	Share    float64
}

// ntName names an NT of a region.
func (m *manager) ntName(region, nt int) string {
	return fmt.Sprintf("region%d %s", region, m.s.NTs[nt].Name)
}

func (c *control) result(end sim.Time, seed uint64) *Result {
	r := &Result{Scenario: c.s, Duration: end, Seed: seed, PHY: c.board.PHY(), Samples: c.samples, Shares: c.shares, Events: c.events, Choices: c.choices, Spaces: c.spaces}
	for i, d := range c.s.DAGs {
		x := DAGResult{Name: d.Name, User: d.User}
		if f := c.board.Flow(i); f != nil {
			x.Offered = f.Offered.Gbps(snic.Volume{}, end)
			x.Accepted = f.Accepted.Gbps(snic.Volume{}, end)
			x.Served = f.Served.Gbps(snic.Volume{}, end)
			x.P50, x.P99, x.Max = f.Latency.Quantile(0.5), f.Latency.Quantile(0.99), f.Latency.Max()
			x.Packets = f.Served.Packets
			if x.Packets > 0 {
				x.Passes = float64(f.Passes) / float64(x.Packets)
			}
			x.Causes = f.Dropped
			for _, n := range f.Dropped {
				x.Dropped += n
			}
		}
		r.DAGs = append(r.DAGs, x)
	}
	for _, u := range c.board.Resources(nil) {
		r.Resources = append(r.Resources, Use{u.Name, float64(u.Busy) / float64(end)})
	}
	return r
}
