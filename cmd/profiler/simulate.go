package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"nicprof/internal/fault"
)

// simulateFlags are the flags of simulate.
type simulateFlags struct {
	timeline string
	faults   []string
	out      string
}

func (a *app) simulate() *cobra.Command {
	var f simulateFlags
	c := &cobra.Command{
		Use:   "simulate PLAN | SCENARIO.yaml",
		Short: "Run an sNIC scenario",
		Long: `Run an sNIC scenario (YAML) on the emulated board: users, network tasks (NTs),
DAGs of them, and their load. Prints what each DAG was offered and got, its
latency, how busy the board was, what each user had of it, and what the control
plane did and why. Plans (JSON), and the flags for them, are refused so far.`,
		Example: `  profiler simulate docs/scenarios/figure3.yaml
  profiler simulate docs/scenarios/greedy.yaml --json`,
		Args: exactArgs(1, "one file: a plan (JSON) or a scenario (YAML)"),
		RunE: func(c *cobra.Command, args []string) error {
			switch path := args[0]; filepath.Ext(path) {
			case ".yaml", ".yml":
				return a.simulateScenario(c, &f, path)
			case ".json":
				return fault.Inputf("%s: plans cannot be simulated yet; expected a scenario (.yaml)", path)
			default:
				return fault.Inputf("%s: expected a plan (.json) or a scenario (.yaml)", path)
			}
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.timeline, "timeline", "", "`FILE` of the traffic over time, for a plan")
	flags.StringArrayVar(&f.faults, "fault", nil, "`KIND=VALUE` that goes wrong, for a plan")
	flags.StringVarP(&f.out, "out", "o", "", "`DIR` for a plan's timeline as CSV and SVG")
	return c
}
