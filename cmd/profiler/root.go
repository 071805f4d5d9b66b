package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"nicprof/internal/fault"
	"nicprof/internal/near"
	"nicprof/internal/table"
	"nicprof/internal/version"
)

// exitInterrupted is the exit code of a run that a signal ended.
const exitInterrupted = 130

// app is what the verbs share: where they print, and the flags that each has.
type app struct {
	out, err io.Writer
	getenv   func(string) string

	json, quiet, markdown bool
	seed                  uint64
}

// execute runs the command and returns its exit code.
func execute(ctx context.Context, args []string, out, errOut io.Writer, getenv func(string) string) int {
	a := &app{out: out, err: errOut, getenv: getenv}
	root := newRoot(a)
	root.SetArgs(joinRaw(args))
	ctx, end := context.WithCancel(ctx)
	defer end() // closes what the verb has opened
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(errOut, "profiler: interrupted")
		return exitInterrupted
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(errOut, "profiler:", line)
	}
	if kind := fault.KindOf(err); kind != 0 {
		return int(kind)
	}
	return 1
}

// newRoot builds the command's tree of verbs.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "profiler",
		Short: "Measure, model and predict programs on SmartNICs",
		Long: `Measure programs on SmartNICs, fit a performance model of a board from the
measurements, and predict other programs with it.

Data goes to standard output, progress and notes to standard error. Exit codes:
0 done, 1 a check failed, 2 bad usage or bad input, 3 the board or its tools are
not there, 130 interrupted (what was measured is kept).`,
		Example: `  profiler boards
  profiler run --board nfp
  profiler measure --board nfp --access emem:read:bulk:64:10`,
		Version:       version.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          unknownVerb,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped "+strconv.Itoa(table.Width)))
	flags := root.PersistentFlags()
	flags.BoolVar(&a.json, "json", false, "print one JSON document on standard output")
	flags.BoolVar(&a.markdown, "markdown", false, "print tables as Markdown")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "print neither progress nor notes")
	flags.Uint64Var(&a.seed, "seed", 1, "seed of every random draw")
	root.SetHelpCommand(&cobra.Command{
		Use:   "help [VERB]",
		Short: "Help about any verb",
		RunE: func(c *cobra.Command, args []string) error {
			verb, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownVerb(root, args)
			}
			return verb.Help()
		},
	})
	root.AddCommand(
		a.boards(), a.run(), a.merge(), a.fit(), a.measure(), a.predict(),
		a.validate(), a.doctor(), a.forward(), a.agent(), a.compare(), a.p4(), a.plan(), a.simulate(), a.reproduce(),
	)
	return root
}

// unknownVerb refuses arguments of a command that only has verbs below it.
func unknownVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2 // typing errors
	return fault.Inputf("%sunknown verb %q%s", prefix(c), args[0], hint(c.SuggestionsFor(args[0]), c))
}

// flagError words an error of the flags' parser.
func flagError(c *cobra.Command, err error) error {
	var meant []string
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		meant = nearFlags(c, unknown.GetSpecifiedName())
	}
	return fault.Inputf("%s%w%s", prefix(c), err, hint(meant, c))
}

func nearFlags(c *cobra.Command, name string) []string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	found := near.Of(name, names)
	for i := range found {
		found[i] = "--" + found[i]
	}
	return found
}

// hint says what was meant, or where to look it up.
func hint(meant []string, c *cobra.Command) string {
	if len(meant) > 0 {
		return "; did you mean " + strings.Join(meant, " or ") + "?"
	}
	return "; see " + c.CommandPath() + " --help"
}

// exactArgs refuses any other number of arguments than n, which what names.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return fault.Inputf("%sexpected %s, got %d arguments; see %s --help", prefix(c), what, len(args), c.CommandPath())
	}
}

// noArgs refuses arguments.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fault.Inputf("%sunexpected argument %q; see %s --help", prefix(c), args[0], c.CommandPath())
}

// missingFlag complains about a flag that a verb cannot do without.
func missingFlag(c *cobra.Command, form string) error {
	return fault.Inputf("%sneeds %s; see %s --help", prefix(c), form, c.CommandPath())
}

// prefix begins an error of a verb with its name.
func prefix(c *cobra.Command) string {
	if !c.HasParent() {
		return ""
	}
	_, verb, _ := strings.Cut(c.CommandPath(), " ")
	return verb + ": "
}
