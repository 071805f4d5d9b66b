package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"nicprof/internal/table"
	"nicprof/model"
)

func (a *app) predict() *cobra.Command {
	var of workload
	var modelPath, rule string
	c := &cobra.Command{
		Use:   "predict --model M PROGRAM | --access SPEC...",
		Short: "Predict one program from a model",
		Long: `Predict one program from a model: throughput with its interval, what limits it,
and why. The arguments are those of measure, without the board.

` + workloadHelp,
		Example: `  profiler predict --model runs/nfp-standard-1/model.json --access emem:read:bulk:64:10
  profiler predict --model runs/nfp-standard-1 --access emem:read:atomic:4:3 --lock l:64:spin:empty --flows 1000
  profiler predict --model runs/nfp-standard-1 --stateless 400 --rule common`,
		RunE: func(c *cobra.Command, args []string) error {
			j, err := of.load(c, args)
			if err != nil {
				return err
			}
			m, err := openModel(c, modelPath)
			if err != nil {
				return err
			}
			x, err := m.Predict(j.program, j.traffic, model.Options{Cores: of.cores, Rule: rule})
			if err != nil {
				return j.locate(err)
			}
			x.Program, x.Seed = j.program.Name, a.seed
			x.Warnings, x.Explain = list(slices.Concat(j.traffic.Warnings, x.Warnings)), list(x.Explain)
			if a.json {
				return a.document(x)
			}
			return a.printPrediction(&x)
		},
	}
	flags := c.Flags()
	flags.StringVarP(&modelPath, "model", "m", "", "model `FILE`, or the directory of a run")
	flags.StringVar(&rule, "rule", "", "`RULE`: "+join(model.Rules)+" (default: the model's)")
	of.flags(flags)
	complete(c, "rule", cobra.FixedCompletions(model.Rules, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (a *app) printPrediction(x *model.Prediction) error {
	t := table.New(fmt.Sprintf("%s on %s, predicted by %s (rule %s)", x.Program, x.Board, x.Model, x.Rule), "", "", "")
	t.Row("throughput", rate(x.Mpps), interval(x.Low, x.High))
	if x.DroppedMpps > 0 {
		t.Row("dropped", rate(x.DroppedMpps), "of the offered packets")
	}
	if x.Lock != "" {
		t.Row("lock", x.Lock, "one flow offers more than the lock takes")
	}
	t.Row("bottleneck", x.Bottleneck, "")
	why := table.New("", "limit", "Mpps alone", "used")
	for _, term := range x.Explain {
		why.Row(term.Resource, term.Mpps, percent(term.Share))
	}
	if err := a.print(t, why); err != nil {
		return err
	}
	for _, w := range x.Warnings {
		a.note("warning: %s", w)
	}
	return nil
}
