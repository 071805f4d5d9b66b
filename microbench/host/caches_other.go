//go:build !amd64

package host

// askProcessor has nobody to ask: only the kernel may read the cache registers
// of the other processors.
func askProcessor(int) []cache { return nil }
