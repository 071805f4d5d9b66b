//go:build !amd64 && !arm64

package kernel

import "sync/atomic"

// await polls a word until it holds value.
func await(word *uint32, value uint32) {
	for atomic.LoadUint32(word) != value {
	}
}
