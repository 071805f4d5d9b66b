package host

// askProcessor returns the caches that the processor tells.
func askProcessor(cpus int) []cache {
	return cpuidCaches(func(number, sub uint32) leaf {
		if last, _, _, _ := cpuid(number&0x80000000, 0); number > last {
			return leaf{}
		}
		var l leaf
		l.eax, l.ebx, l.ecx, l.edx = cpuid(number, sub)
		return l
	}, cpus)
}
