package host

// ticks reads the time-stamp counter after the instructions before it. It
// counts at a constant rate on processors of the last fifteen years, which is
// not that of the core: a tick is no cycle.
func ticks() uint64

// pause tells the core that it spins.
func pause()

// cpuid is the instruction of that name.
func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)

const clockName = "time-stamp counter (rdtscp)"
