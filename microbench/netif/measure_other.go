//go:build !linux

package netif

import (
	"context"

	"nicprof/internal/fault"
	"nicprof/microbench"
)

func measure(context.Context, request, *microbench.Sample) error {
	return fault.Missingf("packet paths are measured on Linux only: they need its network namespaces and packet sockets")
}
