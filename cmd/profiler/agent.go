package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/microbench/remote"
)

func (a *app) agent() *cobra.Command {
	backend := microbench.Native
	c := &cobra.Command{
		Use:   "agent",
		Short: "Be the board side of --backend remote",
		Long: `Be the board side of --backend remote: open drivers and measure on this machine
as told by requests on standard input, answering on standard output, until
standard input ends. It listens nowhere; profiler on another machine starts it
over SSH. docs/remote.md describes the protocol.`,
		Example: "  profiler agent --backend emulated",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if serves := []string{microbench.Native, microbench.Emulated}; !slices.Contains(serves, backend) {
				return fault.Inputf("%sbackend %q; an agent measures with %s", prefix(c), backend, join(serves))
			}
			if in, ok := c.InOrStdin().(*os.File); ok && term.IsTerminal(int(in.Fd())) {
				a.note("this end of the protocol is meant for a program; leave with Ctrl-D")
			}
			// A link that drops must not kill the agent before its driver has
			// cleaned up; writing then fails instead.
			signal.Ignore(syscall.SIGPIPE)
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGHUP)
			defer stop()
			served := remote.Agent{Backend: backend, Log: func(text string) { a.note("agent: %s", text) }}
			return served.Serve(ctx, c.InOrStdin(), a.out)
		},
	}
	c.Flags().StringVar(&backend, "backend", backend, "`KIND` that its boards are measured with: native or emulated")
	return c
}

// remoteFlags say which machine measures, and how to reach it.
type remoteFlags struct{ remote.Config }

func (r *remoteFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&r.Host, "host", "", "`USER@ADDR[:PORT]` of the board's machine, for --backend remote")
	f.StringVar(&r.Identity, "identity", "", "private key `FILE` (default: ssh-agent's keys and ~/.ssh/id_*)")
	f.StringVar(&r.KnownHosts, "known-hosts", "", "`FILE` of host keys (default ~/.ssh/known_hosts)")
	f.StringVar(&r.SSH, "ssh", "", "connect by this `COMMAND`, such as \"ssh -J gate\", and its configuration")
	f.StringVar(&r.Agent, "agent", remote.DefaultAgent, "`COMMAND` that starts the agent there")
	f.StringVar(&r.Push, "push", "", "copy this program, or `FILE` built for the machine, there for the time")
	f.Lookup("push").NoOptDefVal = remote.PushSelf
	f.DurationVar(&r.Timeout, "timeout", remote.DefaultTimeout, "longest measurement there, `TIME`")
	f.DurationVar(&r.Reconnect, "reconnect", remote.DefaultReconnect, "try for `TIME` to get a dropped link back")
}

// checkRemote refuses flags that do not go together.
func (t *target) checkRemote(c *cobra.Command) error {
	if t.backend != microbench.Remote {
		own := pflag.NewFlagSet("", pflag.ContinueOnError)
		new(remoteFlags).flags(own)
		var err error
		own.VisitAll(func(f *pflag.Flag) {
			if given := c.Flags().Lookup(f.Name); given.Changed && err == nil {
				err = fault.Inputf("--%s %s goes with --backend %s", f.Name, given.Value, microbench.Remote)
			}
		})
		return err
	}
	switch {
	case t.remote.Host == "":
		return fault.Inputf("--backend %s needs the machine that holds the board: --host USER@ADDR", microbench.Remote)
	case t.remote.Timeout < time.Millisecond:
		return fault.Inputf("--timeout %v: expected at least a millisecond, such as 10m", t.remote.Timeout)
	case t.remote.Reconnect < 0:
		return fault.Inputf("--reconnect %v: expected a time such as 1m, or 0 not to try", t.remote.Reconnect)
	}
	return nil
}

// remoteConfig is what the flags say, with notes on standard error.
func (t *target) remoteConfig(c *cobra.Command) remote.Config {
	config := t.remote.Config
	config.Note = func(text string) {
		if quiet, _ := c.Flags().GetBool("quiet"); !quiet {
			c.PrintErrln("note:", text)
		}
	}
	return config
}

// openRemote opens a board in another machine until the verb ends.
func (t *target) openRemote(c *cobra.Command, b *board.Board) (microbench.Driver, error) {
	d, err := remote.Open(c.Context(), b, t.remoteConfig(c))
	if err != nil {
		return nil, err
	}
	context.AfterFunc(c.Context(), d.Close)
	return d, nil
}

// examine is what doctor reports on boards.
func (t *target) examine(c *cobra.Command, boards []*board.Board, examine bool) ([]microbench.Report, error) {
	if err := t.checkRemote(c); err != nil {
		return nil, err
	}
	if t.backend == microbench.Remote {
		return remote.Doctor(c.Context(), boards, examine, t.remoteConfig(c))
	}
	reports := []microbench.Report{}
	for _, b := range boards {
		report, err := microbench.Doctor(c.Context(), b, t.backend, examine)
		if err != nil {
			return nil, err
		}
		reports = append(reports, report)
	}
	return reports, nil
}
