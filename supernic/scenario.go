// Package supernic is the control plane of SuperNIC (sNIC, arXiv 2109.07744): it
// reads a scenario (users, network tasks, their DAGs, their load), plans each
// DAG as chains of NTs in regions of the FPGA, launches and scales the chains,
// shares the board's resources, and drives an emulated board with it.
//
// An NT (network task) is a processing unit on the FPGA, a chain is NTs in one
// region that a packet passes without the scheduler in between, and a DAG is
// what a user deploys: NTs and their order.
package supernic

import (
	"os"
	"path/filepath"

	"nicprof/internal/config"
	"nicprof/internal/fault"
)

// Scenario is a scenario file: what is deployed on a board, and the load.
type Scenario struct {
	Kind       string    `yaml:"kind"`
	BoardName  string    `yaml:"board"`
	Overrides  Overrides `yaml:"overrides"`
	DurationUS float64   `yaml:"duration_us"`
	Users      []User    `yaml:"users"`
	NTs        []NT      `yaml:"nts"` // and, once read, those of the board that a DAG names
	DAGs       []DAG     `yaml:"dags"`
	Load       []Load    `yaml:"load"`
	PR         []PR      `yaml:"pr"`
	Policy     Policy    `yaml:"policy"`

	Platform Platform `yaml:"-"` // the board with Overrides

	offers []offer // of each entry of Load
	graphs []graph // of each DAG
	source *config.Document
}

// Overrides change the board for one scenario; nil leaves a value as it is.
type Overrides struct {
	Regions    *int     `yaml:"regions"`
	RegionArea *float64 `yaml:"region_area"` // in the unit of an NT's area
	Credits    *int     `yaml:"credits"`     // initial credits of an NT
	ClockMHz   *float64 `yaml:"clock_mhz"`
}

// User shares the board by Weight, 1 if it is not given.
type User struct {
	Name   string   `yaml:"name"`
	Weight *float64 `yaml:"weight"`
}

// NT is a network task. Cycles is its latency, II the cycles between packets (1
// if it is not given), Gbps what it processes, Area what it takes of a region,
// MemoryMB what it keeps in the board's memory for each user. Only a Shareable
// one serves several users.
type NT struct {
	Name      string  `yaml:"name"`
	Cycles    int     `yaml:"cycles"`
	II        int     `yaml:"ii"`
	Gbps      float64 `yaml:"gbps"`
	Area      float64 `yaml:"area"`
	MemoryMB  float64 `yaml:"memory_mb"`
	Shareable bool    `yaml:"shareable"`
}

// DAG is a user's NTs and their order: a packet takes the first NT of an edge
// before the second. IngressGbps is the ingress bandwidth that the user asks to
// be guaranteed. The DAG is deployed at DeployUS; 0 is before the first packet.
type DAG struct {
	Name        string     `yaml:"name"`
	User        string     `yaml:"user"`
	IngressGbps float64    `yaml:"ingress_gbps"`
	Nodes       []string   `yaml:"nodes"`
	Edges       [][]string `yaml:"edges"`
	DeployUS    float64    `yaml:"deploy_us"`
}

// Load is what a DAG is offered from AtUS until its next entry: Gbps of frames of
// Size, as traffic files give it (that of the entry before, or else DefaultSize).
// Burst packets, 1 if it is not given, arrive back to back; bursts arrive at
// random (Poisson). With PCAP they are the frames of a capture at its own times,
// which Gbps speeds up or slows down to that mean rate, over and over.
type Load struct {
	DAG   string   `yaml:"dag"`
	AtUS  float64  `yaml:"at_us"`
	Gbps  *float64 `yaml:"gbps"`
	Size  any      `yaml:"size"`
	Burst int      `yaml:"burst"`
	PCAP  string   `yaml:"pcap"`
}

// PR asks for the reconfiguration of a region with a chain of NTs at AtUS,
// whatever runs there, as an operator would.
type PR struct {
	AtUS   float64  `yaml:"at_us"`
	Region int      `yaml:"region"`
	Chain  []string `yaml:"chain"`
}

// Policy of the board; "" is the first choice of each, and no VictimCache is true.
type Policy struct {
	Scheduler   string `yaml:"scheduler"`
	Parallelism string `yaml:"parallelism"`
	Fairness    string `yaml:"fairness"`
	VictimCache *bool  `yaml:"victim_cache"`
}

// Policies of the scheduler, of parallelism and of fairness, the default first.
var (
	Schedulers   = []string{"snic", "panic"}
	Parallelisms = []string{"auto", "none", "dag", "instance"}
	Fairnesses   = []string{"snic", "drf", "static"}
)

// DefaultSize is the packet size of a load that names none: messages of
// Facebook's Hadoop cluster cut into packets, see traffic.NamedSizes.
const DefaultSize = "facebook"

// Open reads a scenario file. Its error is the user's fault and lists every
// finding with file and line.
func Open(path string) (*Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Inputf("scenario file: %w", err)
	}
	return Parse(data, path)
}

// Parse reads a scenario. name is the file's path, where those that it names
// begin.
func Parse(data []byte, name string) (*Scenario, error) {
	doc, err := config.Parse(data, name)
	if err != nil {
		return nil, err
	}
	root, ok := doc.Value().(map[string]any)
	if !ok {
		return nil, doc.Failf("", "expected a scenario: board, duration_us, users, nts, dags, load")
	}
	switch kind := root["kind"]; kind {
	case nil, "snic":
	case "kv":
		return nil, doc.Failf("kind", "key-value scenarios are not implemented; expected snic")
	default:
		return nil, doc.Failf("kind", "there are no scenarios of kind %v; expected snic", kind)
	}
	s := &Scenario{source: doc}
	if err := doc.Decode(s); err != nil {
		return nil, err
	}
	var found config.Findings
	if s.Platform, err = s.platform(&found); err != nil {
		return nil, doc.Failf("board", "%v", err)
	}
	s.fill()
	s.check(&found)
	if len(found) == 0 {
		if err := s.readOffers(filepath.Dir(name), &found); err != nil {
			return nil, err
		}
	}
	if err := found.Err(); err != nil {
		return nil, doc.Locate(err)
	}
	return s, nil
}

// fill sets what the file leaves out: NTs that the board knows, and defaults.
func (s *Scenario) fill() {
	named := map[string]bool{}
	for _, n := range s.NTs {
		named[n.Name] = true
	}
	add := func(name string) {
		if n := s.Platform.Board.FPGA.NT(name); n != nil && !named[name] {
			named[name] = true
			s.NTs = append(s.NTs, NT{
				Name: n.Name, Cycles: int(n.Cycles.Value), II: int(n.II.Value), Gbps: n.Gbps.Value,
				Area: n.Area.Value, MemoryMB: n.MemoryMB.Value, Shareable: true,
			})
		}
	}
	for _, d := range s.DAGs {
		for _, name := range d.Nodes {
			add(name)
		}
	}
	for _, p := range s.PR {
		for _, name := range p.Chain {
			add(name)
		}
	}
	for i := range s.NTs {
		n := &s.NTs[i]
		if n.II == 0 {
			n.II = 1
		}
		if n.Gbps == 0 {
			n.Gbps = s.Platform.BusGbps
		}
	}
	for i := range s.Users {
		if u := &s.Users[i]; u.Weight == nil {
			one := 1.0
			u.Weight = &one
		}
	}
	for i := range s.Load {
		if l := &s.Load[i]; l.Burst == 0 {
			l.Burst = 1
		}
	}
	set := func(v *string, choices []string) {
		if *v == "" {
			*v = choices[0]
		}
	}
	set(&s.Policy.Scheduler, Schedulers)
	set(&s.Policy.Parallelism, Parallelisms)
	set(&s.Policy.Fairness, Fairnesses)
	if s.Policy.VictimCache == nil {
		yes := true
		s.Policy.VictimCache = &yes
	}
}

// nt returns the number of the NT of that name, or -1.
func (s *Scenario) nt(name string) int {
	for i := range s.NTs {
		if s.NTs[i].Name == name {
			return i
		}
	}
	return -1
}

// user returns the number of the user of that name, or -1.
func (s *Scenario) user(name string) int {
	for i := range s.Users {
		if s.Users[i].Name == name {
			return i
		}
	}
	return -1
}

// dag returns the number of the DAG of that name, or -1.
func (s *Scenario) dag(name string) int {
	for i := range s.DAGs {
		if s.DAGs[i].Name == name {
			return i
		}
	}
	return -1
}
