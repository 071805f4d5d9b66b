package supernic

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"nicprof/internal/config"
	"nicprof/internal/near"
)

// Limits of what a scenario may hold.
const (
	maxDurationUS = 60e6
	maxNodes      = 32 // NTs of a DAG
	maxCycles     = 1e6
	maxGbps       = 1e5
	maxMemoryMB   = 1024 // an address space
	maxBurst      = 1 << 16
)

// check complains about what cannot be, and builds the DAGs' graphs.
func (s *Scenario) check(found *config.Findings) {
	if !(s.DurationUS > 0 && s.DurationUS <= maxDurationUS) {
		found.Add("duration_us", "%v; expected microseconds above 0, up to %v", s.DurationUS, maxDurationUS)
	}
	s.checkUsers(found)
	s.checkNTs(found)
	s.checkDAGs(found)
	s.checkLoad(found)
	s.checkPR(found)
	for _, p := range []struct {
		path, value string
		choices     []string
	}{
		{"scheduler", s.Policy.Scheduler, Schedulers},
		{"parallelism", s.Policy.Parallelism, Parallelisms},
		{"fairness", s.Policy.Fairness, Fairnesses},
	} {
		if !slices.Contains(p.choices, p.value) {
			found.Add("policy."+p.path, "%q; expected %s", p.value, strings.Join(p.choices, ", "))
		}
	}
}

func (s *Scenario) checkUsers(found *config.Findings) {
	if len(s.Users) == 0 {
		found.Add("users", "nobody; expected users: [{name: u1, weight: 1}]")
	}
	for i, u := range s.Users {
		path := fmt.Sprintf("users[%d]", i)
		if u.Name == "" {
			found.Add(path, "expected a name")
		} else if s.user(u.Name) < i {
			found.Add(path+".name", "user %s is there twice; give each user a name of his own", u.Name)
		}
		if w := *u.Weight; !(w > 0) || math.IsInf(w, 0) {
			found.Add(path+".weight", "%v; expected a weight above 0", w)
		}
	}
}

func (s *Scenario) checkNTs(found *config.Findings) {
	for i, n := range s.NTs {
		path := fmt.Sprintf("nts[%d]", i)
		if n.Name == "" {
			found.Add(path, "expected a name")
		} else if s.nt(n.Name) < i {
			found.Add(path+".name", "NT %s is described twice; give each NT a name of its own", n.Name)
		}
		if n.Cycles < 1 || n.Cycles > maxCycles {
			found.Add(path+".cycles", "%d; expected cycles of latency, 1 or more", n.Cycles)
		}
		if n.II < 1 || n.II > maxCycles {
			found.Add(path+".ii", "%d; expected cycles between two packets, 1 or more", n.II)
		}
		if !(n.Gbps > 0 && n.Gbps <= maxGbps) {
			found.Add(path+".gbps", "%v; expected Gb/s above 0 (left out: the data path's %v)", n.Gbps, s.Platform.BusGbps)
		}
		switch {
		case !(n.Area > 0):
			found.Add(path+".area", "%v; expected an area above 0, in the unit of overrides.region_area", n.Area)
		case n.Area > s.Platform.RegionArea:
			found.Add(path+".area", "%v is above a region's %v: no region can run NT %s; divide it into smaller NTs, or raise overrides.region_area",
				n.Area, s.Platform.RegionArea, n.Name)
		}
		if !(n.MemoryMB >= 0 && n.MemoryMB <= maxMemoryMB) {
			found.Add(path+".memory_mb", "%v; expected 0..%d MB, an address space", n.MemoryMB, maxMemoryMB)
		}
	}
}

// unknownNT complains about an NT that nobody describes.
func (s *Scenario) unknownNT(found *config.Findings, path, name string) {
	var names []string
	for _, n := range s.NTs {
		names = append(names, n.Name)
	}
	for _, n := range s.Platform.Board.FPGA.NTs {
		if !slices.Contains(names, n.Name) {
			names = append(names, n.Name)
		}
	}
	if meant := near.Of(name, names); len(meant) > 0 {
		found.Add(path, "unknown NT %q; did you mean %s?", name, strings.Join(meant, " or "))
		return
	}
	found.Add(path, "unknown NT %q; describe it in nts, or use one of %s", name, strings.Join(names, ", "))
}

func (s *Scenario) checkDAGs(found *config.Findings) {
	if len(s.DAGs) == 0 {
		found.Add("dags", "none; expected dags: [{name: a, user: u1, ingress_gbps: 10, nodes: [nt1]}]")
	}
	s.graphs = make([]graph, len(s.DAGs))
	sum := 0.0
	for i, d := range s.DAGs {
		path := fmt.Sprintf("dags[%d]", i)
		switch first := s.dag(d.Name); {
		case d.Name == "":
			found.Add(path, "expected a name")
		case first < i && s.DAGs[first].User != d.User:
			found.Add(path+".name", "DAG %s is user %s's already; give %s's another name", d.Name, s.DAGs[first].User, d.User)
		case first < i:
			found.Add(path+".name", "DAG %s is there twice; give each DAG a name of its own", d.Name)
		}
		if s.user(d.User) < 0 {
			found.Add(path+".user", "there is no user %q; expected one of users", d.User)
		}
		if !(d.IngressGbps >= 0 && d.IngressGbps <= maxGbps) {
			found.Add(path+".ingress_gbps", "%v; expected the Gb/s to guarantee, 0 or more", d.IngressGbps)
		} else if sum += d.IngressGbps; sum > s.Platform.LinkGbps*(1+areaSlack) && sum-d.IngressGbps <= s.Platform.LinkGbps {
			found.Add(path+".ingress_gbps", "%v Gb/s cannot be guaranteed: with those of the DAGs before it is %v, the port has %v; lower some (what is above is served as best can be)",
				d.IngressGbps, sum, s.Platform.LinkGbps)
		}
		if !(d.DeployUS >= 0 && d.DeployUS < s.DurationUS) {
			found.Add(path+".deploy_us", "%v; expected a time within the %v µs of duration_us", d.DeployUS, s.DurationUS)
		}
		s.graphs[i] = s.graph(found, path, &d)
	}
}

// graph turns a DAG's nodes and edges into numbers. It complains about unknown
// NTs and cycles.
func (s *Scenario) graph(found *config.Findings, path string, d *DAG) graph {
	if len(d.Nodes) == 0 || len(d.Nodes) > maxNodes {
		found.Add(path+".nodes", "%d NTs; expected 1..%d", len(d.Nodes), maxNodes)
		return graph{}
	}
	g := graph{nts: make([]int, len(d.Nodes)), before: make([]set, len(d.Nodes))}
	for i, name := range d.Nodes {
		at := fmt.Sprintf("%s.nodes[%d]", path, i)
		if g.nts[i] = s.nt(name); g.nts[i] < 0 {
			s.unknownNT(found, at, name)
		}
		if slices.Index(d.Nodes, name) < i {
			found.Add(at, "NT %s is in the DAG twice; describe a second one in nts by another name", name)
		}
	}
	for i, e := range d.Edges {
		at := fmt.Sprintf("%s.edges[%d]", path, i)
		if len(e) != 2 {
			found.Add(at, "%d NTs; expected two, [before, after]", len(e))
			continue
		}
		from, to := slices.Index(d.Nodes, e[0]), slices.Index(d.Nodes, e[1])
		for k, n := range []int{from, to} {
			if n < 0 {
				found.Add(at, "%q is not among the DAG's nodes; expected one of %s", e[k], strings.Join(d.Nodes, ", "))
			}
		}
		if from >= 0 && to >= 0 {
			g.before[to] |= 1 << from
		}
	}
	if loop := g.cycle(); loop != nil {
		var names []string
		for _, n := range loop {
			names = append(names, d.Nodes[n])
		}
		found.Add(path+".edges", "the DAG is cyclic: %s; take one of these edges out: a packet passes each NT once", strings.Join(names, " → "))
		return graph{}
	}
	return g
}

func (s *Scenario) checkLoad(found *config.Findings) {
	last := map[string]float64{}
	for i, l := range s.Load {
		path := fmt.Sprintf("load[%d]", i)
		if s.dag(l.DAG) < 0 {
			found.Add(path+".dag", "there is no DAG %q; expected one of dags", l.DAG)
		}
		if !(l.AtUS >= 0 && l.AtUS < s.DurationUS) {
			found.Add(path+".at_us", "%v; expected a time within the %v µs of duration_us", l.AtUS, s.DurationUS)
		}
		if before, ok := last[l.DAG]; ok && l.AtUS <= before {
			found.Add(path+".at_us", "%v; DAG %s has an entry for %v already; expected entries in the order of their times", l.AtUS, l.DAG, before)
		}
		last[l.DAG] = l.AtUS
		switch {
		case l.Gbps == nil && l.PCAP == "":
			found.Add(path, "expected gbps, or pcap")
		case l.Gbps != nil && *l.Gbps < 0:
			found.Add(path+".gbps", "%v; a load is never negative: expected 0 (idle) or more", *l.Gbps)
		case l.Gbps != nil && !(*l.Gbps <= maxGbps):
			found.Add(path+".gbps", "%v; expected 0..%v Gb/s", *l.Gbps, float64(maxGbps))
		}
		if l.Burst < 1 || l.Burst > maxBurst {
			found.Add(path+".burst", "%d; expected 1..%d packets back to back", l.Burst, maxBurst)
		}
		if l.PCAP != "" && (l.Size != nil || l.Burst > 1) {
			found.Add(path+".pcap", "beside size or burst; a capture has sizes and times of its own")
		}
	}
}

func (s *Scenario) checkPR(found *config.Findings) {
	for i, p := range s.PR {
		path := fmt.Sprintf("pr[%d]", i)
		if p.Region < 0 || p.Region >= s.Platform.Regions {
			found.Add(path+".region", "there is no region %d; the board has 0..%d", p.Region, s.Platform.Regions-1)
		}
		if !(p.AtUS >= 0 && p.AtUS < s.DurationUS) {
			found.Add(path+".at_us", "%v; expected a time within the %v µs of duration_us", p.AtUS, s.DurationUS)
		}
		if len(p.Chain) == 0 {
			found.Add(path+".chain", "no NT; expected those to run, in order")
		}
		area := 0.0
		for k, name := range p.Chain {
			n := s.nt(name)
			if n < 0 {
				s.unknownNT(found, fmt.Sprintf("%s.chain[%d]", path, k), name)
				continue
			}
			if slices.Index(p.Chain, name) < k {
				found.Add(fmt.Sprintf("%s.chain[%d]", path, k), "NT %s is in the chain twice", name)
			}
			area += s.NTs[n].Area
		}
		if area > s.Platform.RegionArea*(1+areaSlack) {
			found.Add(path+".chain", "its area, %v, is above a region's %v; leave NTs out", area, s.Platform.RegionArea)
		}
	}
}
