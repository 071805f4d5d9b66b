//go:build amd64 || arm64

package host

import "unsafe"

// sized makes an accessor of a function that takes the bytes of an element.
func sized(f func(base unsafe.Pointer, at *offsets, k, bytes int, v uint64) uint64, bytes int) accessor {
	return func(base unsafe.Pointer, at *offsets, k int, v uint64) uint64 { return f(base, at, k, bytes, v) }
}
