//go:build !linux

package remote

import (
	"context"

	"nicprof/internal/fault"
)

func claimMachine(context.Context) (release func(), err error) {
	return nil, fault.Missingf("a native agent needs Linux")
}
