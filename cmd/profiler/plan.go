package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nicprof/board"
	"nicprof/cora/costs"
	"nicprof/cora/frontend"
	"nicprof/cora/partition"
	"nicprof/cora/plan"
	"nicprof/internal/atomicfile"
	"nicprof/internal/fault"
	"nicprof/internal/table"
	"nicprof/model"
	"nicprof/p4"
)

// allStrategies is the name of all strategies together.
const allStrategies = "all"

// planFlags are the flags of plan.
type planFlags struct {
	model, program, traffic, strategy, rule, out string
	costs                                        string
	measure                                      bool
	target, pcie                                 float64
	entries                                      int64
	perFlow, memory                              map[string]string
	include, define                              []string
	noRepair                                     bool
}

func (a *app) plan() *cobra.Command {
	var f planFlags
	names := []string{}
	for _, s := range partition.Strategies {
		names = append(names, string(s))
	}
	names = append(names, allStrategies)
	c := &cobra.Command{
		Use:   "plan --model M --program P --traffic T",
		Short: "Split a P4 program between NIC and host",
		Long: `Split a P4 program between a SmartNIC and its host: which state blocks go to the
NIC, into which of its memories, and which flow groups of a block stay there, so
that the host has least to do while the NIC sustains the traffic.

The program is P4_16 or bmv2 JSON, the traffic a pcap, a flow CSV or YAML. What
state operations cost the host comes from --host-costs, or from the measurements
that this program brings with it; --measure-host-costs measures this machine.

Exit status 1: no plan that is printed is feasible. It says which limits it
breaks and with what it would not; it is printed and written all the same.`,
		Example: `  profiler plan --model results/nfp --program cora/apps/l4lb.p4 --traffic cora/apps/traffic/l4lb.yaml
  profiler plan --model results/nfp --program cora/apps/natlb.p4 --traffic cora/apps/traffic/natlb.yaml --table-entries 700000 --strategy all
  profiler plan --measure-host-costs --host-costs costs.json`,
		Args: exactArgs(0, "no argument: the program is --program P"),
		RunE: func(c *cobra.Command, _ []string) error {
			if !slices.Contains(names, f.strategy) {
				return fault.Inputf("--strategy %s: expected %s", f.strategy, join(names))
			}
			return a.runPlan(c, &f)
		},
	}
	flags := c.Flags()
	flags.StringVarP(&f.model, "model", "m", "", "model `FILE`, or the directory of a run")
	flags.StringVarP(&f.program, "program", "p", "", "P4_16 source or bmv2 JSON `FILE`")
	flags.StringVarP(&f.traffic, "traffic", "t", "", "traffic `FILE`: pcap, pcapng, flow CSV or YAML")
	flags.Float64Var(&f.target, "target", 0, "`MPPS` to sustain, 0: the traffic's rate")
	flags.StringVar(&f.strategy, "strategy", string(partition.Cora), "`STRATEGY`: "+join(names))
	flags.BoolVar(&f.noRepair, "no-repair", false, "strategy cora as the paper prints it, without repair")
	flags.StringVar(&f.costs, "host-costs", "", "`FILE` of host times by operation or block")
	flags.BoolVar(&f.measure, "measure-host-costs", false, "measure this machine, and write --host-costs if it is given")
	flags.Int64Var(&f.entries, "table-entries", 0, "`N` entries that the NIC's tables hold together, 0: as many as fit")
	flags.StringToStringVar(&f.perFlow, "entries-per-flow", nil, "`TABLE=N` entries that a flow takes, 1 where not given")
	flags.StringToStringVar(&f.memory, "memory", nil, "`KIND=BYTES` of the NIC for state, such as imem=3MB, else the model's")
	flags.Float64Var(&f.pcie, "pcie-gbps", 0, "`GBPS` of PCIe each way, 0: the board's")
	flags.StringVar(&f.rule, "rule", "", "`RULE` of the model: "+join(model.Rules)+", else the model's")
	flags.StringArrayVarP(&f.include, "include", "I", nil, "`DIR` searched for included files")
	flags.StringArrayVarP(&f.define, "define", "D", nil, "`NAME[=VALUE]` of the preprocessor")
	flags.StringVarP(&f.out, "out", "o", "", "`FILE` for the plan; groups files go beside it")
	complete(c, "strategy", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	complete(c, "rule", cobra.FixedCompletions(model.Rules, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (a *app) runPlan(c *cobra.Command, f *planFlags) error {
	host, used, err := a.hostCosts(c.Context(), f)
	if err != nil {
		return err
	}
	if f.measure && f.program == "" && f.traffic == "" {
		if a.json {
			return a.document(host)
		}
		return a.printCosts(host)
	}
	for _, need := range []struct{ value, form string }{{f.program, "--program P"}, {f.traffic, "--traffic T"}} {
		if need.value == "" {
			return missingFlag(c, need.form)
		}
	}
	m, err := openModel(c, f.model)
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := needDir(f.out, "-o"); err != nil {
			return err
		}
	}
	begun := time.Now()
	program, err := p4.Load(f.program, p4.Options{Include: f.include, Define: f.define})
	if err != nil {
		return err
	}
	front, err := frontend.Analyse(program, frontend.Options{})
	if err != nil {
		return err
	}
	o, err := f.options(m)
	if err != nil {
		return err
	}
	o.Seed = a.seed
	b, err := until(c.Context(), func() (*plan.Built, error) {
		return plan.Build(plan.Input{Front: front, Traffic: f.traffic, Model: m, Costs: host, Options: o})
	})
	if err != nil {
		return err
	}
	p := &planner{app: a, built: b, read: time.Since(begun), repair: !f.noRepair}
	if p.inputs, err = f.inputs(m, b, o, used); err != nil {
		return err
	}
	docs, plans, err := p.solve(c.Context(), f.strategy)
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := p.write(f, docs, plans); err != nil {
			return err
		}
	}
	if err := p.show(f, docs); err != nil {
		return err
	}
	if !slices.ContainsFunc(docs, func(d *plan.Document) bool { return d.Feasible }) {
		return fault.Checkf("not feasible: %s", strings.Join(docs[0].Broken, ", "))
	}
	return nil
}

// show prints plans, for people or as JSON.
func (p *planner) show(f *planFlags, docs []*plan.Document) error {
	switch {
	case p.app.json && f.strategy == allStrategies:
		return p.app.document(map[string]any{"plans": docs})
	case p.app.json:
		return p.app.document(docs[0])
	}
	if err := p.print(f, docs); err != nil {
		return err
	}
	p.app.notes(p.built.Notes)
	return nil
}

// options turns the flags into the limits of a plan.
func (f *planFlags) options(m *model.Model) (plan.Options, error) {
	o := plan.Options{TargetMpps: f.target, TableEntries: f.entries, PCIeGbps: f.pcie, Rule: f.rule,
		EntriesPerGroup: map[string]int64{}, MemoryBytes: map[string]int64{}}
	for _, x := range []struct {
		flag  string
		value float64
		unit  string
	}{{"--target", f.target, "Mpps"}, {"--pcie-gbps", f.pcie, "Gb/s"}, {"--table-entries", float64(f.entries), "entries"}} {
		if !(x.value >= 0) || math.IsInf(x.value, 0) {
			return o, fault.Inputf("%s %v: expected a number of %s, 0 or more", x.flag, x.value, x.unit)
		}
	}
	for name, v := range f.perFlow {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 1 {
			return o, fault.Inputf("--entries-per-flow %s=%s: expected a number of entries, such as 2", name, v)
		}
		o.EntriesPerGroup[name] = n
	}
	for name, v := range f.memory {
		n, err := parseBytes(v)
		if err != nil {
			return o, fault.Inputf("--memory %s=%s: %w", name, v, err)
		}
		o.MemoryBytes[name] = n
	}
	if o.PCIeGbps == 0 {
		// A model of a board that is not in the catalogue has no limit of its own.
		if b, err := board.Load(m.Board); err == nil {
			o.PCIeGbps = b.PCIe.Gbps.Value
		}
	}
	return o, nil
}

// parseBytes reads a size such as 3MB, 512 KB or 4194304: powers of 1024.
func parseBytes(s string) (int64, error) {
	number, shift := strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(s)), "B"), 0
	for i, unit := range []string{"K", "M", "G"} {
		if cut, ok := strings.CutSuffix(number, unit); ok {
			number, shift = cut, 10*(i+1)
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > 1<<50>>shift {
		return 0, fault.Inputf("expected bytes, such as 3MB or 4194304")
	}
	return n << shift, nil
}

// hostCosts are the host's: of the file, measured now, or those that the program
// brings.
func (a *app) hostCosts(ctx context.Context, f *planFlags) (*costs.Costs, plan.CostsUsed, error) {
	var c *costs.Costs
	var err error
	from := plan.File{Path: "stored"}
	switch {
	case f.measure:
		bar := a.progress("measure host costs")
		c, err = costs.Measure(ctx, costs.Standard, bar.count)
		bar.end()
		from.Path = "measured"
		if err == nil && f.costs != "" {
			if err = needDir(f.costs, "--host-costs"); err == nil {
				err = c.Write(f.costs)
			}
			if err == nil {
				from, err = file(f.costs)
			}
		}
	case f.costs != "":
		if c, err = costs.Load(f.costs); err == nil {
			from, err = file(f.costs)
		}
	default:
		c = costs.Stored()
	}
	if err != nil {
		return nil, plan.CostsUsed{}, err
	}
	return c, plan.CostsUsed{File: from, Backend: c.Backend, Machine: c.Machine, ClockGHz: c.ClockGHz}, nil
}

// file names a file and its content.
func file(path string) (plan.File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return plan.File{}, fault.Inputf("%w", err)
	}
	sum := sha256.Sum256(data)
	return plan.File{Path: path, SHA256: hex.EncodeToString(sum[:])}, nil
}

func (f *planFlags) inputs(m *model.Model, b *plan.Built, o plan.Options, used plan.CostsUsed) (in plan.Inputs, err error) {
	path := f.model
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, modelFile)
	}
	rule := o.Rule
	if rule == "" {
		rule = m.DefaultRule
	}
	in.Model = plan.ModelInput{Board: m.Board, Backends: m.Backends, Rule: rule}
	in.Traffic = plan.TrafficUsed{Mpps: b.Mpps, Bytes: b.Bytes, Classes: b.Volumes.Classes(), Made: b.Volumes.Path != nil}
	in.HostCosts = used
	in.HostCosts.PacketNS = b.Problem.HostPacketNS
	in.Options = plan.OptionsUsed{TargetMpps: o.TargetMpps, TableEntries: o.TableEntries, EntriesPerGroup: o.EntriesPerGroup,
		MemoryBytes: map[string]int64{}, PCIeGbps: o.PCIeGbps}
	for _, mem := range b.Problem.Memories {
		in.Options.MemoryBytes[mem.Name] = mem.Bytes
	}
	for _, x := range []struct {
		to   *plan.File
		path string
	}{{&in.Program, f.program}, {&in.Model.File, path}, {&in.Traffic.File, f.traffic}} {
		if *x.to, err = file(x.path); err != nil {
			return in, err
		}
	}
	return in, nil
}

// planner solves one problem by several strategies.
type planner struct {
	app    *app
	built  *plan.Built
	inputs plan.Inputs
	read   time.Duration
	repair bool
}

// solve returns the plan of a strategy, or of all, and what the two of the
// literature (state and flow) make of the same problem.
func (p *planner) solve(ctx context.Context, strategy string) (docs []*plan.Document, plans []*partition.Plan, err error) {
	asked := partition.Strategies
	if strategy != allStrategies {
		asked = []partition.Strategy{partition.Strategy(strategy), partition.State, partition.Flow}
	}
	begun := time.Now()
	plans, err = until(ctx, func() ([]*partition.Plan, error) {
		return partition.SolveAll(p.built.Problem, partition.Options{NoRepair: !p.repair}, asked...)
	})
	if err != nil {
		return nil, nil, err
	}
	seconds := time.Since(begun).Seconds()
	for _, x := range plans {
		d := p.built.Document(x)
		d.Inputs, d.Seed, d.Seconds = p.inputs, p.app.seed, seconds
		docs = append(docs, d)
	}
	if strategy == allStrategies {
		return docs, plans, nil
	}
	for _, d := range docs[1:] {
		docs[0].Compared = append(docs[0].Compared, plan.Compared{
			Strategy: d.Strategy, HostCores: d.HostCores, DroppedMpps: d.DroppedMpps, Objective: d.Objective, Feasible: d.Feasible})
	}
	return docs[:1], plans[:1], nil
}

// write writes the plan's file, and the groups files beside it: one a block that
// is split, with the strategy's name before it when there are several plans.
func (p *planner) write(f *planFlags, docs []*plan.Document, plans []*partition.Plan) error {
	var v any = docs[0]
	if f.strategy == allStrategies {
		v = map[string]any{"plans": docs}
		for _, d := range docs {
			for i := range d.Blocks {
				if s := d.Blocks[i].Split; s != nil {
					s.GroupsFile = string(d.Strategy) + "." + s.GroupsFile
				}
			}
		}
	}
	before := plan.GroupsFiles(f.out)
	for i, d := range docs {
		if err := p.built.WriteGroups(d, plans[i], filepath.Dir(f.out)); err != nil {
			return err
		}
	}
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(f.out, append(data, '\n')); err != nil {
		return err
	}
	// groups files of the plan that was there and is not any more
	now := plan.GroupsFiles(f.out)
	for _, name := range before {
		if !slices.Contains(now, name) {
			if err := os.Remove(filepath.Join(filepath.Dir(f.out), name)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fault.Inputf("groups file of the plan before: %w", err)
			}
		}
	}
	return nil
}

func (p *planner) print(f *planFlags, docs []*plan.Document) error {
	what := fmt.Sprintf("%s on %s under %s", filepath.Base(f.program), p.inputs.Model.Board, filepath.Base(f.traffic))
	if f.strategy == allStrategies {
		return p.printAll(what, docs)
	}
	d := docs[0]
	where := table.New(fmt.Sprintf("%s: strategy %s", what, d.Strategy), "block", "state", "where", "flow groups on NIC", "of its packets", "bytes on NIC")
	reasons := table.New("", "not all on the NIC", "because")
	for _, b := range d.Blocks {
		on := b.Target
		if b.Memory != "" {
			on = b.Target + " " + b.Memory
		}
		groups := fmt.Sprintf("%d of %d", b.GroupsOnNIC, b.Groups)
		if b.Whole != "" {
			groups = "whole"
			if b.Target == "host" {
				groups = "–"
			}
		}
		where.Row(b.Name, strings.Join(b.Objects, ", "), on, groups, share(b.MppsOnNIC, b.Mpps), b.BytesNIC)
		if why := why(d, &b); why != "" {
			reasons.Row(b.Name, why)
		}
	}
	paths := table.New("paths", "packets", "blocks in order")
	for i, path := range d.Paths {
		if i == mostNotes {
			paths.Row("…", fmt.Sprintf("%d more", len(d.Paths)-mostNotes))
			break
		}
		steps := strings.Join(path.Blocks, " → ")
		if path.Dropped {
			steps += " → dropped"
		}
		if steps == "" {
			steps = "no state"
		}
		paths.Row(percent(path.Share), steps)
	}
	sum := table.New("", "", "", "")
	sum.Row("offered", rate(d.OfferedMpps), fmt.Sprintf("the NIC sustains %s (%s)", rate(d.CapacityMpps), d.CapacityBy))
	sum.Row("NIC alone", rate(d.NICMpps), share(d.NICMpps, d.OfferedMpps)+" of the packets never see the host")
	sum.Row("over the host", rate(d.HostMpps), fmt.Sprintf("PCIe %s Gb/s to the host, %s back", table.Number(d.PCIe.ToHost), table.Number(d.PCIe.ToNIC)))
	if d.DroppedMpps > 0 {
		sum.Row("dropped", rate(d.DroppedMpps), "at least: the plan asks more of the NIC than it has")
	}
	sum.Row("host cores", table.Number(d.HostCores), "")
	sum.Row("all on the host", table.Number(d.CoresAllHost), "cores")
	for _, o := range d.Compared {
		note := "cores"
		if o.DroppedMpps > 0 {
			note += ", and drops " + rate(o.DroppedMpps)
		}
		sum.Row("strategy "+string(o.Strategy), table.Number(o.HostCores), note)
	}
	bound := "no bound nor gap: the plan is not feasible"
	if d.Feasible {
		proof := "no plan can have fewer"
		if !d.BoundProved {
			proof = "by a relaxation that takes the model for convex"
		}
		bound = fmt.Sprintf("bound %s, gap %s (%s)", table.Number(*d.Bound), percent(*d.Gap), proof)
	}
	sum.Row("objective", table.Number(d.Objective), "million instructions a second; "+bound)
	if limits := strings.Join(d.Limits, ", "); limits != "" {
		sum.Row("limited by", "", limits)
	}
	sum.Row("plans", strconv.Itoa(d.Examined), fmt.Sprintf("examined, of %s; %s with flow groups, %s and %s after ordering", d.Plans.Exhaustive, d.Plans.Aggregated, d.Plans.Local, d.Plans.Global))
	sum.Row("host costs", p.inputs.HostCosts.Backend, p.costsText())
	tables := []*table.Table{where, paths, sum}
	if reasons.Len() > 0 {
		tables = slices.Insert(tables, 1, reasons)
	}
	if !d.Feasible {
		tables = slices.Insert(tables, 0, broken(d))
	}
	return p.app.print(tables...)
}

// broken says why a plan is not feasible, and with what it would be.
func broken(d *plan.Document) *table.Table {
	t := table.New("not feasible: "+strings.Join(d.Broken, ", "), "feasible with", "now", "needed")
	flags := map[string]string{"rate": "--target", "pcie": "--pcie-gbps", "table entries": "--table-entries"}
	for _, n := range d.Needs {
		what := n.What
		switch flag, capacity := flags[n.What], strings.TrimSuffix(n.What, " capacity"); {
		case flag != "":
			what += " (" + flag + ")"
		case capacity != n.What:
			what += " (--memory " + capacity + "=BYTES)"
		}
		most := "at least "
		if n.What == "rate" {
			most = "at most "
		}
		t.Row(what, table.Number(n.Have)+" "+n.Unit, most+table.Number(n.Need)+" "+n.Unit)
	}
	return t
}

func share(part, whole float64) string {
	if whole == 0 {
		return "–"
	}
	return percent(part / whole)
}

// why says why a block is not on the NIC, or not all of it: of the plan's limits
// those of its own, or else those that blocks share.
func why(d *plan.Document, b *plan.BlockDocument) string {
	switch {
	case b.HostOnly != "":
		return b.HostOnly
	case b.Target == "nic":
		return ""
	case b.Mpps == 0:
		return "no packet visits it"
	}
	var own, shared []string
	for _, limit := range d.Limits {
		if rest, ok := strings.CutPrefix(limit, b.Name+" "); ok {
			own = append(own, ownLimit(rest, b))
		} else if !ofBlock(d, limit) {
			shared = append(shared, limit)
		}
	}
	if len(own) == 0 {
		own = shared
	}
	s := strings.Join(own, "; ")
	if b.Whole != "" {
		if s != "" {
			s += "; "
		}
		s += "it cannot be split: " + b.Whole
	}
	return s
}

// ofBlock says whether a limit is one block's.
func ofBlock(d *plan.Document, limit string) bool {
	return slices.ContainsFunc(d.Blocks, func(b plan.BlockDocument) bool { return strings.HasPrefix(limit, b.Name+" ") })
}

// ownLimit words a block's own limit.
func ownLimit(limit string, b *plan.BlockDocument) string {
	if limit == "group rate" && len(b.LockMpps) > 0 {
		var by []string
		for _, memory := range slices.Sorted(maps.Keys(b.LockMpps)) {
			by = append(by, memory+" "+rate(b.LockMpps[memory]))
		}
		return fmt.Sprintf("a flow group asks for more than its lock sustains (%s)", strings.Join(by, ", "))
	}
	if limit == "group rate" {
		return "a flow group asks for more than the NIC sustains"
	}
	return limit
}

// costsText says where the host's times come from, with the published rates
// beside them.
func (p *planner) costsText() string {
	h := p.inputs.HostCosts
	from := h.Path
	if h.Machine != "" {
		from += " (" + h.Machine + ")"
	}
	return fmt.Sprintf("%s; %s ns a packet without packet I/O; Cora's host did 1.38 and 0.90 Mpps a core", from, table.Number(h.PacketNS))
}

func (p *planner) printAll(what string, docs []*plan.Document) error {
	t := table.New(what, "strategy", "host cores", "NIC alone", "dropped", "PCIe to host", "objective", "gap")
	state := table.New("", "strategy", "state on the NIC")
	for _, d := range docs {
		var on []string
		for _, b := range d.Blocks {
			switch b.Target {
			case "nic":
				on = append(on, b.Name+" "+b.Memory)
			case "split":
				on = append(on, fmt.Sprintf("%s %s %s", b.Name, b.Memory, share(b.MppsOnNIC, b.Mpps)))
			}
		}
		note := strings.Join(on, ", ")
		if note == "" {
			note = "none"
		}
		if !d.Feasible {
			note += "; not feasible: " + strings.Join(d.Broken, ", ")
		}
		state.Row(d.Strategy, note)
		gap := "–"
		if d.Feasible {
			gap = percent(*d.Gap)
		}
		t.Row(d.Strategy, d.HostCores, rate(d.NICMpps), rate(d.DroppedMpps), table.Number(d.PCIe.ToHost)+" Gb/s", d.Objective, gap)
	}
	d := docs[0]
	sum := table.New("", "", "")
	sum.Row("offered", rate(d.OfferedMpps))
	sum.Row("all on the host", table.Number(d.CoresAllHost)+" cores")
	sum.Row("host costs", p.inputs.HostCosts.Backend+": "+p.costsText())
	return p.app.print(t, state, sum)
}

func (a *app) printCosts(c *costs.Costs) error {
	t := table.New(fmt.Sprintf("host costs, measured on %s at %s GHz", c.Machine, table.Number(c.ClockGHz)), "operation", "key", "data", "entries", "ns", "cycles", "quartiles")
	for _, p := range c.Points {
		t.Row(p.Kind, bytesText(p.KeyBytes), bytesText(p.Bytes), p.Entries, p.NS, p.NS*c.ClockGHz, table.Number(p.Low)+" to "+table.Number(p.High))
	}
	if err := a.print(t); err != nil {
		return err
	}
	a.notes(c.Notes)
	return nil
}

func bytesText(n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%d B", n)
}
