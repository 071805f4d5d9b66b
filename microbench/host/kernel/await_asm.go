//go:build amd64 || arm64

package kernel

// await polls a word until it holds value, with the processor's hint that this
// is a waiting loop (PAUSE; on arm64 ISB, which unlike YIELD takes time on the
// cores that we know) between two polls, and in any case returns after some
// thousand: a goroutine in assembly cannot be made to wait for one that has to
// run first.
//
//go:noescape
func await(word *uint32, value uint32)
