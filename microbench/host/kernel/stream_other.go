//go:build !amd64 && !arm64

package kernel

// processorStreams returns no kernels: this architecture has them in Go alone.
func processorStreams() []Stream { return nil }
