package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"nicprof/emu/snic"
	"nicprof/internal/fault"
	"nicprof/internal/table"
	"nicprof/sim"
	"nicprof/supernic"
)

// simulated is the JSON of simulate for a scenario. Latencies leave out PHY and
// MAC, both ways phy_us.
type simulated struct {
	Board      string              `json:"board"`
	Backend    string              `json:"backend"`
	DurationUS float64             `json:"duration_us"`
	PHYUS      float64             `json:"phy_us"`
	DAGs       []simulatedDAG      `json:"dags"`
	Resources  []simulatedResource `json:"resources"`
	Shares     []simulatedShare    `json:"shares"`
	samples    int                 // times at which shares were taken
	lastUS     float64             // the last of them
	Events     []simulatedEvent    `json:"events"`
	Choices    []simulatedChoice   `json:"choices"`
	Spaces     []simulatedSpace    `json:"spaces"`
	Seed       uint64              `json:"seed"`
}

type simulatedDAG struct {
	Name     string           `json:"name"`
	User     string           `json:"user"`
	Offered  float64          `json:"offered_gbps"`
	Accepted float64          `json:"accepted_gbps"`
	Served   float64          `json:"served_gbps"`
	Latency  simulatedLatency `json:"latency_us"`
	Packets  int64            `json:"packets"`
	Passes   float64          `json:"scheduler_passes"` // a packet
	Dropped  int64            `json:"dropped"`
	Causes   map[string]int64 `json:"dropped_by,omitempty"`
}

type simulatedLatency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

type simulatedResource struct {
	Name        string  `json:"name"`
	Utilisation float64 `json:"utilisation"`
}

type simulatedShare struct {
	AtUS     float64 `json:"at_us"`
	User     string  `json:"user"`
	Resource string  `json:"resource"`
	Share    float64 `json:"share"`
}

// simulatedEvent is an event; its region is null, its nt and user empty where
// there is none.
type simulatedEvent struct {
	AtUS   float64 `json:"at_us"`
	Kind   string  `json:"kind"`
	NT     string  `json:"nt"`
	Region *int    `json:"region"`
	User   string  `json:"user"`
	DAG    string  `json:"dag,omitempty"`
}

// simulatedChoice is why a DAG runs as it does, or without one what the space
// step gives to all.
type simulatedChoice struct {
	AtUS float64  `json:"at_us"`
	DAG  string   `json:"dag"`
	Why  []string `json:"why"`
}

// simulatedSpace is the address space of an NT for a user.
type simulatedSpace struct {
	User  string `json:"user"`
	NT    string `json:"nt"`
	Pages int    `json:"pages"`
}

func microseconds(t sim.Time) float64 { return float64(t) / float64(sim.Microsecond) }

// simulateScenario runs an sNIC scenario.
func (a *app) simulateScenario(c *cobra.Command, f *simulateFlags, path string) error {
	for _, name := range []string{"timeline", "fault", "out"} {
		if c.Flags().Changed(name) {
			return fault.Inputf("--%s is for plans; a scenario has its load in the file", name)
		}
	}
	s, err := supernic.Open(path)
	if err != nil {
		return err
	}
	bar := a.progress("simulate")
	r, err := supernic.Simulate(c.Context(), s, supernic.Options{Seed: a.seed, Progress: bar.count})
	bar.end()
	if err != nil {
		return err
	}
	d := newSimulated(r)
	if a.json {
		return a.document(d)
	}
	return a.printSimulated(filepath.Base(path), d)
}

func newSimulated(r *supernic.Result) *simulated {
	s := r.Scenario
	d := &simulated{
		Board: s.Platform.Board.Name, Backend: "emulated", DurationUS: microseconds(r.Duration), PHYUS: microseconds(r.PHY), Seed: r.Seed,
		DAGs: []simulatedDAG{}, Resources: []simulatedResource{}, Shares: []simulatedShare{}, Events: []simulatedEvent{}, Choices: []simulatedChoice{}, Spaces: []simulatedSpace{},
	}
	for _, x := range r.DAGs {
		y := simulatedDAG{
			Name: x.Name, User: x.User, Offered: x.Offered, Accepted: x.Accepted, Served: x.Served,
			Latency: simulatedLatency{microseconds(x.P50), microseconds(x.P99), microseconds(x.Max)},
			Packets: x.Packets, Passes: x.Passes, Dropped: x.Dropped, Causes: map[string]int64{},
		}
		for i, n := range x.Causes {
			if n > 0 {
				y.Causes[snic.Causes[i].String()] = n
			}
		}
		d.DAGs = append(d.DAGs, y)
	}
	for _, u := range r.Resources {
		d.Resources = append(d.Resources, simulatedResource{u.Resource, u.Value})
	}
	d.samples = len(r.Samples)
	if d.samples > 0 {
		d.lastUS = microseconds(r.Samples[d.samples-1])
	}
	for _, x := range r.Shares {
		d.Shares = append(d.Shares, simulatedShare{microseconds(x.At), s.Users[x.User].Name, x.Resource, x.Share})
	}
	for _, e := range r.Events {
		y := simulatedEvent{AtUS: microseconds(e.At), Kind: e.Kind}
		var names []string
		for _, nt := range e.NTs {
			names = append(names, s.NTs[nt].Name)
		}
		y.NT = strings.Join(names, ",")
		if e.Region != supernic.New {
			y.Region = &e.Region
		}
		if e.User >= 0 {
			y.User = s.Users[e.User].Name
		}
		if e.DAG >= 0 {
			y.DAG = s.DAGs[e.DAG].Name
		}
		d.Events = append(d.Events, y)
	}
	for _, x := range r.Choices {
		y := simulatedChoice{AtUS: microseconds(x.At), Why: x.Why}
		if x.DAG >= 0 {
			y.DAG = s.DAGs[x.DAG].Name
		}
		d.Choices = append(d.Choices, y)
	}
	for _, x := range r.Spaces {
		d.Spaces = append(d.Spaces, simulatedSpace{s.Users[x.User].Name, s.NTs[x.NT].Name, x.Pages})
	}
	return d
}

// mostLines is how many events and choices a table shows.
const mostLines = 25

func (a *app) printSimulated(name string, d *simulated) error {
	head := fmt.Sprintf("%s on %s (%s), %s ms, seed %d: Gb/s of frames, µs without %s of PHY and MAC",
		name, d.Board, d.Backend, table.Number(d.DurationUS/1000), d.Seed, table.Number(d.PHYUS))
	dags := table.New(head, "DAG", "user", "offered", "accepted", "served", "p50", "p99", "max", "passes", "dropped")
	for _, x := range d.DAGs {
		dropped := table.Cell{Text: fmt.Sprint(x.Dropped)}
		if x.Dropped > 0 {
			dropped.Tone = table.Warn
		}
		dags.Row(x.Name, x.User, x.Offered, x.Accepted, x.Served, x.Latency.P50, x.Latency.P99, x.Latency.Max, x.Passes, dropped)
	}
	tables := []*table.Table{dags}
	drops := table.New("", "dropped", "packets", "because")
	for _, x := range d.DAGs {
		for _, cause := range snic.Causes {
			if n := x.Causes[cause.String()]; n > 0 {
				drops.Row(x.Name, fmt.Sprint(n), cause.String())
			}
		}
	}
	if drops.Len() > 0 {
		tables = append(tables, drops)
	}
	busy := table.New("", "resource", "busy")
	for _, x := range d.Resources {
		busy.Row(x.Name, percent(x.Utilisation))
	}
	tables = append(tables, busy)
	if t := sharesTable(d); t.Len() > 0 {
		tables = append(tables, t)
	}
	events := table.New("", "at µs", "event", "NTs", "region", "user")
	for i, e := range d.Events {
		if i == mostLines {
			events.Row("…", fmt.Sprintf("%d more; --json has all", len(d.Events)-mostLines), "", "", "")
			break
		}
		region := "–"
		if e.Region != nil {
			region = fmt.Sprint(*e.Region)
		}
		events.Row(e.AtUS, e.Kind, strings.ReplaceAll(e.NT, ",", " → "), region, e.User)
	}
	if events.Len() > 0 {
		tables = append(tables, events)
	}
	choices := table.New("", "DAG", "at µs", "choice")
	rows := 0
	for _, x := range d.Choices {
		for _, why := range x.Why {
			if rows++; rows == mostLines {
				choices.Row("…", "", "more; --json has all")
			}
			if rows < mostLines {
				choices.Row(x.DAG, x.AtUS, why)
			}
		}
	}
	if choices.Len() > 0 {
		tables = append(tables, choices)
	}
	return a.print(tables...)
}

// sharesTable shows what users had of what, at the end and at most.
func sharesTable(d *simulated) *table.Table {
	type key struct{ user, resource string }
	type stat struct{ last, most, sum float64 }
	stats := map[key]*stat{}
	var keys []key
	for _, x := range d.Shares {
		k := key{x.User, x.Resource}
		if stats[k] == nil {
			stats[k] = &stat{}
			keys = append(keys, k)
		}
		s := stats[k]
		s.most, s.sum = max(s.most, x.Share), s.sum+x.Share
		if x.AtUS == d.lastUS {
			s.last = x.Share
		}
	}
	slices.SortStableFunc(keys, func(a, b key) int { return strings.Compare(a.user, b.user) })
	t := table.New("", "user", "share of", "mean", "most", "last")
	for _, k := range keys {
		s := stats[k]
		t.Row(k.user, k.resource, percent(s.sum/float64(d.samples)), percent(s.most), percent(s.last))
	}
	return t
}
