// Command native compares the native kernels with other tools on this machine,
// in one run:
//
//	go run ./bench/native [--quick] [--allow-noise] [--only REGEXP] [--out DIR]
//
// Each row is the same work done by us and by a peer, measured alternately: ours,
// theirs, ours, theirs. A pair gives a ratio; the row reports the median of the
// ratios and its 95 % interval. Pairs in which a side lost its processor are
// measured again. The result is printed and stored as bench.json and bench.md.
//
// The exit code is 1 when noise hides the ratios (--allow-noise stores them all
// the same, marked), 2 for bad usage, 3 where native measurement is not
// possible.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"time"

	"nicprof/internal/fault"
	"nicprof/internal/linux"
)

// options are what a run is asked for.
type options struct {
	quick      bool
	allowNoise bool
	only       *regexp.Regexp // of rows, as "group name peer"
	out        string         // directory of the results; empty: none are stored
	scale      scale
	sets       []workingSet // empty: those of the levels found here
}

// scale is how much is measured.
type scale struct {
	pairs     int           // of each row
	threads   int           // pairs of a row of several threads, which spread more
	attempts  int           // pairs tried for each clean one wanted
	time      time.Duration // of one reading of a chase or a contention
	stream    time.Duration // of one reading of a stream
	beside    time.Duration // of a figure that is printed beside
	small     bool          // few rows
	besideCap int           // figures of one stressor
}

var (
	full  = scale{pairs: 11, threads: 31, attempts: 3, time: 100 * time.Millisecond, stream: 250 * time.Millisecond, beside: 2 * time.Second, besideCap: 6}
	quick = scale{pairs: 6, threads: 11, attempts: 2, time: 40 * time.Millisecond, stream: 100 * time.Millisecond, beside: time.Second, small: true, besideCap: 6}
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench/native:", err)
		}
		os.Exit(max(1, int(fault.KindOf(err))))
	}
}

// run is main without the process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := options{scale: full}
	flags := flag.NewFlagSet("native", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.quick, "quick", false, "fewer rows and pairs: a minute or two")
	flags.BoolVar(&o.allowNoise, "allow-noise", false, "report on a noisy machine too, with the noisy rows marked")
	only := flags.String("only", "", "`regexp` of the rows to measure, matched against \"group name peer\"")
	flags.StringVar(&o.out, "out", filepath.Join("results", "host"), "`directory` of bench.json and bench.md")
	pairs := flags.Int("pairs", 0, "pairs of each row; 0 takes the scale's own")
	if err := flags.Parse(args); err != nil {
		return fault.Inputf("%w", err)
	}
	if flags.NArg() > 0 {
		return fault.Inputf("unknown argument %q: this command takes flags only", flags.Arg(0))
	}
	if err := o.match(*only); err != nil {
		return err
	}
	if o.quick {
		o.scale = quick
	}
	if *pairs < 0 {
		return fault.Inputf("--pairs %d: want 1 or more", *pairs)
	}
	if *pairs > 0 {
		o.scale.pairs, o.scale.threads = *pairs, *pairs
	}
	return compare(ctx, o, stdout, stderr)
}

// match takes the rows to measure.
func (o *options) match(only string) (err error) {
	if o.only, err = regexp.Compile(only); err != nil {
		return fault.Inputf("--only: %w", err)
	}
	return nil
}

// compare measures all rows and reports them.
func compare(ctx context.Context, o options, stdout, notes io.Writer) error {
	cpus, err := linux.CPUs()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-native")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.out != "" {
		if err := os.MkdirAll(o.out, 0o755); err != nil {
			return fault.Inputf("--out: %w", err)
		}
	}
	res := newResult(o)
	if len(o.sets) == 0 {
		if o.sets, res.Machine.Notes, err = workingSets(); err != nil {
			return err
		}
	}
	contests, err := rows(ctx, o, dir, cpus, res)
	if err != nil {
		return err
	}
	if priority, restore, err := linux.RaiseAutogroup(); err == nil {
		defer restore()
		res.Machine.Priority = priority
	}
	// No collection while somebody measures: the heap stays small, since all
	// measured memory lies outside it.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for i, c := range contests {
		if err := c.run(ctx, o.scale); err != nil {
			return err
		}
		fmt.Fprintf(notes, "%d of %d: %s\n", i+1, len(contests), &c.Comparison)
		res.Rows = append(res.Rows, c.Comparison)
	}
	if err := beside(ctx, o, res, notes); err != nil {
		return err
	}
	return res.report(o, stdout)
}
