//go:build !amd64 && !arm64

package host

import "nicprof/internal/linux"

// ticks is the monotonic clock in nanoseconds.
func ticks() uint64 { return uint64(linux.Monotonic()) }

// pause does nothing here.
func pause() {}

const clockName = "monotonic clock"
