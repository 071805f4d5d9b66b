package host

// ticks reads the generic timer's virtual counter after the instructions before
// it. It counts at a rate of its own, 1 MHz to 1 GHz: a tick is no cycle.
func ticks() uint64

// pause tells the core that it spins.
func pause()

const clockName = "virtual counter (cntvct)"
