package main

import (
	"github.com/spf13/cobra"

	"nicprof/internal/fault"
	"nicprof/microbench"
)

func (a *app) merge() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "merge DIR... --out DIR",
		Short: "Join the shards of a run",
		Long: `Join the directories of runs that measured the shards of one plan into the
directory of the whole run, byte for byte what an unsharded run stores. Shards
of other boards, seeds, suites or versions, and native ones of unlike machines,
are refused.`,
		Example: `  profiler run --board nfp --suite quick --only stateless --shard 1/2 --out s1
  profiler run --board nfp --suite quick --only stateless --shard 2/2 --out s2
  profiler merge s1 s2 --out whole`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fault.Inputf("%sexpected the directories of all shards; see %s --help", prefix(c), c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, dirs []string) error {
			if out == "" {
				return missingFlag(c, "--out DIR")
			}
			m, notes, err := microbench.Merge(dirs, out)
			a.notes(notes)
			if err != nil {
				return err
			}
			if a.json {
				return a.document(map[string]any{"dir": out, "manifest": m})
			}
			return a.printf("%d samples of board %s (suite %s, seed %d) joined in %s\nnext: profiler fit %s", m.Measured, m.Board, m.Suite, m.Seed, out, out)
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "", "`DIR` of the joined run")
	return c
}
