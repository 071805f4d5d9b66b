//go:build !amd64 && !arm64

package host

import "nicprof/program"

// vectorAccessor has no vectors here.
func vectorAccessor(program.Op, int) (accessor, string) { return nil, "" }
