// Command partition holds the partition planner against general solvers, and
// its time against the number of flows:
//
//	go run ./bench/partition [-only REGEXP] [-time 30s] [-flows 10000,100000,1000000,10000000] [-out DIR [-note TEXT]]
//
// The problems are synthetic (cora/partition/synthetic). CBC and GLPK get each
// of them as a mixed integer program and the time that -time says; where one of
// them is not installed its columns are empty. Times are
// processor seconds of this machine, ours on one processor. With -out, DIR gets partition.md of the
// first part and partition-scale.md, .csv and .svg of the second; -only none and
// -flows "" leave a part out.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"nicprof/internal/atomicfile"
	"nicprof/internal/table"
)

func main() {
	only := flag.String("only", "", "regular expression of problems to hold against the solvers")
	limit := flag.Duration("time", 30*time.Second, "of each solver for each problem")
	flows := flag.String("flows", "10000,100000,1000000,10000000", "numbers of flows to time, rising; empty: none")
	out := flag.String("out", "", "directory to store the tables and the figure in")
	note := flag.String("note", "", "`sentence` about the machine for the stored tables")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *only, *limit, *flows, *out, *note); err != nil {
		fmt.Fprintln(os.Stderr, "partition:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, only string, limit time.Duration, flows, out, note string) error {
	numbers, err := parseFlows(flows)
	if err != nil {
		return err
	}
	chosen, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	list := slices.DeleteFunc(problems(), func(x problem) bool { return !chosen.MatchString(x.name) })
	runtime.GOMAXPROCS(1)
	if len(list) > 0 {
		t, err := compare(ctx, list, limit)
		if err != nil {
			return err
		}
		if err := show(w, t, out, "partition", "The partition planner against general solvers", note); err != nil {
			return err
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	points, err := scale(ctx, numbers)
	if err != nil {
		return err
	}
	if err := show(w, scaleTable(points), out, "partition-scale", "The partition planner against size", note); err != nil || out == "" {
		return err
	}
	return storeFigure(out, points)
}

func parseFlows(s string) ([]int, error) {
	var out []int
	for _, f := range strings.Split(s, ",") {
		if f == "" {
			continue
		}
		n, err := strconv.Atoi(f)
		if err != nil || n < 1 || len(out) > 0 && n <= out[len(out)-1] {
			return nil, fmt.Errorf("-flows %s: expected rising numbers with commas, such as 10000,100000", s)
		}
		out = append(out, n)
	}
	return out, nil
}

// show prints a table, and stores it where out is a directory.
func show(w io.Writer, t *table.Table, out, name, title, note string) error {
	if err := t.Text(w, table.Colors(w, os.Getenv)); err != nil || out == "" {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\nMade by `go run ./bench/partition -out results/cora`: synthetic problems; processor seconds, native (%s/%s, %s), ours on one processor.%s\n\n",
		title, runtime.GOOS, runtime.GOARCH, runtime.Version(), strings.TrimRight(" "+note, " "))
	if err := t.Markdown(&b); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(out, name+".md"), b.Bytes())
}

func storeFigure(out string, points []point) error {
	figure := scaleFigure(points)
	csv, err := figure.Data.CSV()
	if err != nil {
		return err
	}
	svg, err := figure.SVG()
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(out, "partition-scale.csv"), csv); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(out, "partition-scale.svg"), svg)
}
