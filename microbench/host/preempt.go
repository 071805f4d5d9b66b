package host

import _ "unsafe" // for go:linkname

// A worker keeps its thread while it measures. The scheduler would otherwise
// take it away every 10 ms; for a goroutine that is locked to its thread this
// means a hand-over through another thread, which has to wait for a processor
// where all are busy measuring: milliseconds lost. Between the two calls a
// goroutine may neither block nor enter the system.
//
// They are what sync.Pool uses; the runtime keeps them for linknames.

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()
