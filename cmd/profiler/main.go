// Command profiler measures programs on SmartNICs, fits a performance model of
// a board from the measurements, and predicts other programs with it.
//
// It prints data on standard output, and progress and notes on standard error.
// It exits with 0 when done, 1 when a check failed, 2 on bad usage or bad
// input, 3 when the board or its tools are not there, and 130 when interrupted.
// `profiler --help` lists the verbs.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	// Boards' drivers and papers' figures register themselves.
	_ "nicprof/experiments/cora"
	_ "nicprof/experiments/snic"
	_ "nicprof/microbench/bluefield"
	_ "nicprof/microbench/host"
	_ "nicprof/microbench/netif"
	_ "nicprof/microbench/nfp"
	_ "nicprof/microbench/snic"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv))
}
