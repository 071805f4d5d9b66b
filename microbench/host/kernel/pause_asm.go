//go:build amd64 || arm64

package kernel

// pause tells the processor that this is a waiting loop: PAUSE, or ISB, which
// unlike YIELD takes time on the arm64 cores that we know.
func pause()
