// Command partition holds the partition planner against general solvers, and
// its time against the number of flows:
//
//	go run ./bench/partition [-time 30s] [-flows 10000,100000,1000000,10000000] [-out DIR]
//
// The problems are synthetic (cora/partition/synthetic). CBC and GLPK get each
// of them as a mixed integer program and the time that -time says; where one of
// them is not installed its columns are empty. Times are
// processor seconds of this machine, ours on one processor. With -out, partition.md, partition-scale.csv and
// partition-scale.svg are stored in DIR.
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
	"runtime"
	"strconv"
	"strings"
	"time"

	"nicprof/internal/atomicfile"
	"nicprof/internal/table"
)

func main() {
	limit := flag.Duration("time", 30*time.Second, "of each solver for each problem")
	flows := flag.String("flows", "10000,100000,1000000,10000000", "numbers of flows to time, rising; empty: none")
	out := flag.String("out", "", "directory to store the tables and the figure in")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *limit, *flows, *out); err != nil {
		fmt.Fprintln(os.Stderr, "partition:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, limit time.Duration, flows, out string) error {
	numbers, err := parseFlows(flows)
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	against, err := compare(ctx, problems(), limit)
	if err != nil {
		return err
	}
	points, err := scale(ctx, numbers)
	if err != nil {
		return err
	}
	tables := []*table.Table{against, scaleTable(points)}
	for _, t := range tables {
		if err := t.Text(w, table.Colors(w, os.Getenv)); err != nil {
			return err
		}
	}
	if out == "" {
		return nil
	}
	return store(out, limit, tables, points)
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

func store(dir string, limit time.Duration, tables []*table.Table, points []point) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# The partition planner against general solvers, and against size\n\n"+
		"Made by `go run ./bench/partition -time %s -out results/cora`: synthetic problems; processor seconds, native, "+
		"(%s/%s, %s), ours on one processor.\n\n", limit, runtime.GOOS, runtime.GOARCH, runtime.Version())
	for _, t := range tables {
		if err := t.Markdown(&b); err != nil {
			return err
		}
		b.WriteByte('\n')
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(dir, "partition.md"), b.Bytes()); err != nil {
		return err
	}
	if len(points) == 0 {
		return nil
	}
	figure := scaleFigure(points)
	csv, err := figure.Data.CSV()
	if err != nil {
		return err
	}
	svg, err := figure.SVG()
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(dir, "partition-scale.csv"), csv); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, "partition-scale.svg"), svg)
}
