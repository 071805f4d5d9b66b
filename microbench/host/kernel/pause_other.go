//go:build !amd64 && !arm64

package kernel

// pause does nothing where Go has no assembly of ours.
func pause() {}
