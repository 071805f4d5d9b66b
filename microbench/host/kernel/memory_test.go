package kernel

import "golang.org/x/sys/unix"

// pages returns memory outside the Go heap, which lives until the test binary
// ends when t has no Cleanup for it.
func pages(t interface {
	Fatal(...any)
	Cleanup(func())
}, bytes int) []byte {
	mem, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	return mem
}
