package plan

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"nicprof/cora/partition"
	"nicprof/internal/atomicfile"
)

// Document is a plan as JSON has it. Rates are in Mpps at the wire unless the
// name says otherwise.
type Document struct {
	Strategy     partition.Strategy `json:"strategy"`
	Objective    float64            `json:"objective"` // million host instructions a second
	AllHost      float64            `json:"objective_all_host"`
	Bound        *float64           `json:"bound"` // null, like the gap, of a plan that is not feasible
	BoundProved  bool               `json:"bound_proved"`
	Gap          *float64           `json:"gap"`
	HostCores    float64            `json:"host_cores"`
	CoresAllHost float64            `json:"cores_all_host"`
	OfferedMpps  float64            `json:"offered_mpps"`
	CapacityMpps float64            `json:"nic_capacity_mpps"` // what the model says of the NIC with this plan
	CapacityBy   string             `json:"nic_bottleneck"`
	NICMpps      float64            `json:"nic_mpps"`  // packets that never see the host
	HostMpps     float64            `json:"host_mpps"` // packets that do
	DroppedMpps  float64            `json:"dropped_mpps"`
	PCIe         PCIe               `json:"pcie_gbps"`
	Blocks       []BlockDocument    `json:"blocks"`
	Paths        []PathDocument     `json:"paths"`
	Feasible     bool               `json:"feasible"`
	Broken       []string           `json:"broken"`
	Needs        []partition.Need   `json:"needs"`    // with which it would be feasible
	Together     [][]string         `json:"together"` // blocks that are placed as one
	Limits       []string           `json:"limits"`
	Examined     int                `json:"plans_examined"`
	Plans        partition.Counters `json:"plans"`
	Seconds      float64            `json:"seconds"`
	Compared     []Compared         `json:"compared,omitempty"`
	Inputs       Inputs             `json:"inputs"`
	Notes        []string           `json:"notes"`
	Seed         uint64             `json:"seed"`
}

// PCIe is the traffic between NIC and host, Gb/s.
type PCIe struct {
	ToHost float64 `json:"to_host"`
	ToNIC  float64 `json:"to_nic"`
}

// BlockDocument is where a block lies. HostNS is one core's time a visit.
type BlockDocument struct {
	Name        string             `json:"name"`
	Objects     []string           `json:"objects"`
	Target      string             `json:"target"` // nic, host or split
	Memory      string             `json:"memory"` // of the NIC; "" on the host
	GroupsOnNIC int                `json:"flow_groups_on_nic"`
	Groups      int                `json:"flow_groups"`
	Fields      [][]string         `json:"fields"` // that tell its flow groups apart
	Whole       string             `json:"whole,omitempty"`
	Mpps        float64            `json:"mpps"`
	MppsOnNIC   float64            `json:"mpps_on_nic"`
	EntriesNIC  int64              `json:"entries_on_nic"`
	BytesNIC    int64              `json:"bytes_on_nic"`
	LockMpps    map[string]float64 `json:"lock_mpps,omitempty"` // T_lock by memory
	HostNS      float64            `json:"host_ns"`
	HostOnly    string             `json:"host_only,omitempty"`
	Split       *Split             `json:"split,omitempty"`
}

// Split is which flow groups of a block are on the NIC: those of the file, none of
// which has fewer packets a second than the threshold.
type Split struct {
	GroupsFile   string  `json:"nic_groups_file"`
	ThresholdPPS float64 `json:"threshold_pps"`
}

// PathDocument is a path of packets: the blocks in order, and its share.
type PathDocument struct {
	Share   float64  `json:"share"`
	Blocks  []string `json:"blocks"`
	Dropped bool     `json:"dropped,omitempty"`
}

// Compared is what another strategy makes of the same problem.
type Compared struct {
	Strategy    partition.Strategy `json:"strategy"`
	HostCores   float64            `json:"host_cores"`
	DroppedMpps float64            `json:"dropped_mpps"`
	Objective   float64            `json:"objective"`
	Feasible    bool               `json:"feasible"`
}

// Inputs are what a plan was made from.
type Inputs struct {
	Program   File        `json:"program"`
	Model     ModelInput  `json:"model"`
	Traffic   TrafficUsed `json:"traffic"`
	HostCosts CostsUsed   `json:"host_costs"`
	Options   OptionsUsed `json:"options"`
}

// File names a file and its content.
type File struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// ModelInput is the model that was asked.
type ModelInput struct {
	File
	Board    string   `json:"board"`
	Backends []string `json:"backends"`
	Rule     string   `json:"rule"`
}

// TrafficUsed is the traffic.
type TrafficUsed struct {
	File
	Mpps    float64 `json:"mpps"`
	Bytes   float64 `json:"mean_bytes"`
	Classes int     `json:"classes"`
	Made    bool    `json:"synthetic"`
}

// CostsUsed is where the host's costs come from: native (measured) or given.
type CostsUsed struct {
	File
	Backend  string  `json:"backend"`
	Machine  string  `json:"machine,omitempty"`
	ClockGHz float64 `json:"clock_ghz,omitempty"`
	PacketNS float64 `json:"packet_ns"`
}

// OptionsUsed are the limits that the user set.
type OptionsUsed struct {
	TargetMpps      float64          `json:"target_mpps"`
	TableEntries    int64            `json:"table_entries"`
	EntriesPerGroup map[string]int64 `json:"entries_per_flow,omitempty"`
	MemoryBytes     map[string]int64 `json:"memory_bytes"`
	PCIeGbps        float64          `json:"pcie_gbps"`
}

// Document describes a plan for the problem.
func (b *Built) Document(x *partition.Plan) *Document {
	d := &Document{
		Strategy: x.Strategy, Objective: x.Objective, AllHost: x.AllHost, BoundProved: x.BoundProved,
		HostCores: x.HostCores, CoresAllHost: x.CoresAllHost, OfferedMpps: x.OfferedMpps, CapacityMpps: x.CapacityMpps, CapacityBy: x.NICLimit,
		NICMpps: x.NICMpps, HostMpps: x.HostMpps, DroppedMpps: x.DroppedMpps, PCIe: PCIe{x.ToHostGbps, x.ToNICGbps},
		Feasible: x.Feasible, Broken: notNil(x.Broken), Needs: notNil(x.Needs), Together: [][]string{}, Limits: notNil(x.Limits), Examined: x.Examined, Plans: x.Plans, Notes: notNil(b.Notes),
	}
	if x.Feasible {
		d.Bound, d.Gap = &x.Bound, &x.Gap
	}
	for _, set := range b.Problem.Together {
		var names []string
		for _, i := range set {
			names = append(names, b.Problem.Blocks[i].Name)
		}
		d.Together = append(d.Together, names)
	}
	for i, bp := range x.Blocks {
		p, own := &b.Problem.Blocks[i], &b.Blocks[i]
		e := BlockDocument{
			Name: p.Name, Objects: []string{}, Target: target(bp), GroupsOnNIC: bp.Groups, Groups: p.Groups, Fields: [][]string{},
			Whole: own.Whole, Mpps: bp.Mpps, MppsOnNIC: bp.MppsOnNIC, EntriesNIC: bp.Entries, BytesNIC: bp.Bytes,
			HostNS: p.HostNS, HostOnly: p.HostOnly,
		}
		for m, mpps := range own.Lock {
			if e.LockMpps == nil {
				e.LockMpps = map[string]float64{}
			}
			e.LockMpps[b.Problem.Memories[m].Name] = mpps
		}
		for _, o := range own.Objects {
			e.Objects = append(e.Objects, b.Mix.Result.Name(o))
		}
		for _, g := range own.Groups {
			e.Fields = append(e.Fields, g.Names())
		}
		if bp.Groups > 0 {
			e.Memory = b.Problem.Memories[bp.Memory].Name
		}
		if e.Target == "split" {
			e.Split = &Split{GroupsFile: p.Name + ".groups", ThresholdPPS: bp.SmallestMpps * 1e6}
		}
		d.Blocks = append(d.Blocks, e)
	}
	for _, path := range b.Mix.Paths {
		e := PathDocument{Share: path.Share, Blocks: []string{}, Dropped: path.Dropped}
		for _, k := range path.Blocks {
			e.Blocks = append(e.Blocks, b.Problem.Blocks[k].Name)
		}
		d.Paths = append(d.Paths, e)
	}
	return d
}

func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// target says where a block's flow groups are, those that packets touch.
func target(bp partition.BlockPlan) string {
	switch {
	case bp.Groups == 0:
		return "host"
	case bp.MppsOnNIC < bp.Mpps*(1-1e-9):
		return "split"
	}
	return "nic"
}

// WriteGroups writes, beside the plan's file, the flow groups on the NIC of each
// block that is split: a group a line, the fields' values separated by commas.
func (b *Built) WriteGroups(d *Document, x *partition.Plan, dir string) error {
	for i, e := range d.Blocks {
		if e.Split == nil {
			continue
		}
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		fmt.Fprintf(w, "# flow groups of block %s (%s) on the NIC, strategy %s\n", e.Name, strings.Join(e.Objects, ", "), d.Strategy)
		fields := b.Volumes.Keys[b.Blocks[i].Key].Key.String()
		if fields == "" {
			fields = "rank of the flow group, the largest 1 (made-up traffic has no header fields)"
		}
		fmt.Fprintf(w, "# %s\n", fields)
		for g, on := range x.Blocks[i].OnNIC {
			if on {
				fmt.Fprintln(w, strings.Join(b.Label(i, g), ","))
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if err := atomicfile.Write(filepath.Join(dir, e.Split.GroupsFile), out.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// GroupsFiles lists the groups files that a plan's file names, none where there is
// no such file or it holds no plan.
func GroupsFiles(path string) []string {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	type blocks struct {
		Blocks []struct {
			Split *Split `json:"split"`
		} `json:"blocks"`
	}
	var one blocks
	var all struct {
		Plans []blocks `json:"plans"` // of one plan it is the numbers of plans
	}
	plans := []blocks{}
	if json.Unmarshal(data, &one) == nil {
		plans = append(plans, one)
	}
	if json.Unmarshal(data, &all) == nil {
		plans = append(plans, all.Plans...)
	}
	var out []string
	for _, d := range plans {
		for _, b := range d.Blocks {
			if b.Split != nil && b.Split.GroupsFile == filepath.Base(b.Split.GroupsFile) {
				out = append(out, b.Split.GroupsFile)
			}
		}
	}
	return out
}
