package main

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"nicprof/internal/fault"
	"nicprof/internal/table"
	"nicprof/microbench"
	"nicprof/report/profile"
)

// maxTrial is the longest trial, s; RFC 2544 asks for at least a minute.
const maxTrial = 600

// measurement is the JSON of measure.
type measurement struct {
	Board       string             `json:"board"`
	Backend     string             `json:"backend"`
	Program     string             `json:"program"`
	Cores       int                `json:"cores"`
	Mpps        float64            `json:"mpps"`
	Low         float64            `json:"mpps_low"`
	High        float64            `json:"mpps_high"`
	DroppedMpps float64            `json:"dropped_mpps"`
	Bottleneck  string             `json:"bottleneck"`
	Latency     microbench.Latency `json:"latency_us"`
	Utilisation map[string]float64 `json:"utilisation"`
	CPUNS       map[string]float64 `json:"cpu_ns,omitempty"` // processor time by packet and part
	Runs        int                `json:"runs"`
	DurationUS  float64            `json:"duration_us"`
	Warnings    []string           `json:"warnings"`
	Conditions  map[string]string  `json:"conditions,omitempty"`
	Seed        uint64             `json:"seed"`

	Packets  *microbench.Packets  `json:"packets,omitempty"`
	Fairness *microbench.Fairness `json:"fairness,omitempty"`
	Counters map[string]float64   `json:"counters,omitempty"` // perf events by packet
	*microbench.NDR
}

func (a *app) measure() *cobra.Command {
	var on target
	var of workload
	var ndr bool
	var trial float64
	var profileFile, out string
	var dryRun bool
	c := &cobra.Command{
		Use:   "measure --board B PROGRAM | --access SPEC...",
		Short: "Measure one program on one board",
		Long:  "Measure one program on one board: throughput with its interval, latency, what\nlimits it.\n\n" + workloadHelp,
		Example: `  profiler measure --board nfp --access emem:read:bulk:64:10
  profiler measure --board nfp --stateless 400 --base forward
  profiler measure --board nfp --base profiling --lock l:64:spin:empty --flows 1000
  profiler measure --board nfp --access emem:read:bulk:64:10 --ndr
  profiler measure --board nfp --access emem:read:atomic:4:3:65536 --profile p.pb.gz
  profiler measure --board nfp --backend native --access emem:read:bulk:64:10 --dry-run`,
		RunE: func(c *cobra.Command, args []string) error {
			j, err := of.load(c, args)
			if err != nil {
				return err
			}
			if dryRun {
				return a.measureCommands(c, &on, &of, j, out)
			}
			d, err := on.open(c)
			if err != nil {
				return err
			}
			if err := d.Board().Check(j.program, of.cores, 0); err != nil {
				return j.locate(err)
			}
			if !(trial >= 0 && trial <= maxTrial) {
				return fault.Inputf("--trial-seconds %v: expected 0 to %d", trial, maxTrial)
			}
			if profileFile != "" {
				if err := needDir(profileFile, "--profile"); err != nil {
					return err
				}
			}
			o := microbench.Options{Cores: of.cores, Seed: a.seed, Profile: profileFile != "", TrialSeconds: trial}
			s, err := d.Measure(c.Context(), j.program, j.traffic, o)
			if err != nil {
				return j.locate(err)
			}
			if profileFile != "" {
				if err := profile.Write(profileFile, &s); err != nil {
					return err
				}
				a.note("profile written; see it with: go tool pprof -top %s", profileFile)
			}
			m := measurement{
				Board: s.Board, Backend: s.Backend, Program: j.program.Name, Cores: s.Cores,
				Mpps: s.Mpps, Low: s.Low, High: s.High, DroppedMpps: s.DroppedMpps,
				Bottleneck: s.Bottleneck, Latency: s.Latency, Utilisation: s.Utilisation,
				Runs: s.Runs, DurationUS: s.DurationUS, Warnings: list(slices.Concat(j.traffic.Warnings, s.Warnings)), Seed: a.seed,
				CPUNS: s.CPUNS, Conditions: s.Conditions, Packets: s.Packets,
				Fairness: s.Fairness, Counters: s.Counters,
			}
			if ndr {
				o.Profile = false
				a.note("searching for the no-drop rate ...")
				n, err := microbench.FindNDR(c.Context(), d, j.program, j.traffic, o)
				if err != nil {
					return err
				}
				m.NDR = &n
				if n.Contended > 0 {
					m.Warnings = append(m.Warnings, fmt.Sprintf("contended: other work disturbed %d of the %d trials of the search: the rates found may be too low; stop other work", n.Contended, n.Trials))
				}
			}
			printing := a.printMeasurement
			if a.json {
				printing = func(m *measurement) error { return a.document(m) }
			}
			if err := printing(&m); err != nil || m.Packets == nil {
				return err
			}
			return m.Packets.Check()
		},
	}
	on.flags(c)
	of.flags(c.Flags())
	c.Flags().BoolVar(&ndr, "ndr", false, "search for the no-drop and the partial drop rate")
	c.Flags().Float64Var(&trial, "trial-seconds", 0, "offer packets for this long in a trial (default: the driver's choice; 1 s with --ndr, or 2 ms simulated)")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "write the sources of a native card's firmware and print every command, without the card or its tools")
	c.Flags().StringVarP(&out, "out", "o", "", "`DIR` of --dry-run (default runs/BOARD-measure-dry-run)")
	c.Flags().StringVar(&profileFile, "profile", "", "write where time goes to `FILE.pb.gz` for go tool pprof")
	return c
}

// measureCommands shows the commands of one native measurement.
func (a *app) measureCommands(c *cobra.Command, on *target, of *workload, j job, out string) error {
	b, d, err := on.dryRunner(c)
	if err != nil {
		return err
	}
	if d == nil {
		return fault.Inputf("--dry-run shows the tools that drive a native card: it goes with --backend native and a board such as nfp")
	}
	if err := b.Check(j.program, of.cores, 0); err != nil {
		return j.locate(err)
	}
	if out == "" {
		out = filepath.Join("runs", b.Name+"-measure-dry-run")
	}
	w := microbench.Workload{Program: j.program, Traffic: j.traffic, Options: microbench.Options{Cores: of.cores, Seed: a.seed}}
	return a.showDryRun(b, d, []microbench.Workload{w}, out)
}

func (a *app) printMeasurement(m *measurement) error {
	t := table.New(fmt.Sprintf("%s on %s (%s), seed %d", m.Program, m.Board, m.Backend, m.Seed), "", "", "")
	t.Row("throughput", rate(m.Mpps), interval(m.Low, m.High))
	if m.DroppedMpps > 0 {
		t.Row("dropped", rate(m.DroppedMpps), "of the offered packets")
	}
	if n := m.NDR; n != nil {
		t.Row("no-drop rate", rate(n.NDRMpps), n.Goals[0].Why)
		t.Row("partial drop rate", rate(n.PDRMpps), fmt.Sprintf("at most %g %% lost; %s", 100*n.PDRLoss, n.Goals[1].Why))
		t.Row("trials", n.Trials, fmt.Sprintf("final ones of %s s, %s s in all", table.Number(n.TrialSeconds), table.Number(n.SearchSeconds)))
	}
	if p := m.Packets; p != nil {
		t.Row("packets", fmt.Sprintf("%d sent", p.Sent), p.String())
	}
	if m.Latency.P99 > 0 {
		t.Row("latency", table.Number(m.Latency.P50)+" µs", "median; 99 % within "+table.Number(m.Latency.P99)+" µs")
	} else {
		t.Row("latency", "not measured", "")
	}
	t.Row("bottleneck", m.Bottleneck, fmt.Sprintf("on %d cores", m.Cores))
	if f := m.Fairness; f != nil {
		wait := ""
		if f.LongestWaitUS > 0 {
			wait = "longest wait for a lock " + table.Number(f.LongestWaitUS) + " µs"
		}
		t.Row("one core", table.Number(f.Least)+" to "+rate(f.Most), wait)
	}
	use := table.New("", "resource", "utilisation")
	for _, name := range byUse(m.Utilisation) {
		use.Row(name, percent(m.Utilisation[name]))
	}
	tables := []*table.Table{t, use}
	if len(m.CPUNS) > 0 {
		cpu := table.New("", "part", "processor time by packet")
		for _, name := range byUse(m.CPUNS) {
			cpu.Row(name, table.Number(m.CPUNS[name])+" ns")
		}
		tables = append(tables, cpu)
	}
	if err := a.print(tables...); err != nil {
		return err
	}
	for _, w := range m.Warnings {
		a.note("warning: %s", w)
	}
	return nil
}

// byUse returns the resources of a utilisation, the busiest first.
func byUse(use map[string]float64) []string {
	return slices.SortedFunc(maps.Keys(use), func(x, y string) int {
		return cmp.Or(cmp.Compare(use[y], use[x]), cmp.Compare(x, y))
	})
}

func rate(mpps float64) string { return table.Number(mpps) + " Mpps" }

func interval(low, high float64) string {
	if high <= low {
		return "no interval"
	}
	return table.Number(low) + " to " + table.Number(high) + " Mpps (95 %)"
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
