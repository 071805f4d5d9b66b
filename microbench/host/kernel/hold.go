package kernel

import _ "unsafe" // for go:linkname

// Hold keeps the calling goroutine on its thread and processor until Release.
// Else the Go scheduler takes a goroutine away after 10 ms; one that is locked
// to its thread comes back only through another thread, which must find a
// processor where all are busy measuring. In between, the goroutine may neither
// block nor enter the system, and no garbage collection can begin.
func Hold() { procPin() }

// Release ends Hold.
func Release() { procUnpin() }

// They are what sync.Pool uses; the runtime keeps them for linknames.

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()
