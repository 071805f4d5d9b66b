package model

import "math"

// population is a set of cache lines that are hit equally often.
type population struct {
	lines float64
	rate  float64 // hits a packet of each line
	taken float64 // times a packet that others take it out of the cache
}

// misses sets how many commands of each access miss its memory's cache, by
// Che's approximation: a line is there if it was hit within the characteristic
// time in which the cache's worth of distinct lines is hit.
func (j *job) misses() {
	for k := range j.x.memories {
		mem := &j.x.memories[k]
		if mem.CacheBytes > 0 {
			j.missesOf(mem)
		}
	}
}

func (j *job) missesOf(mem *memoryIndex) {
	capacity := float64(mem.CacheBytes / mem.CacheLine)
	total := 0.0
	for k := range j.accesses {
		if a := &j.accesses[k]; a.mem == mem && j.firstOfArray(k) == k {
			total += a.cacheLines()
		}
	}
	if total <= capacity {
		return
	}
	var buffer [128]population
	ps := buffer[:0]
	for k := range j.accesses {
		a := &j.accesses[k]
		if a.mem != mem {
			continue
		}
		if a.skewed() {
			ps = a.ranks(ps, j.draws(a))
		} else if j.firstUniform(k) == k {
			ps = append(ps, population{lines: a.cacheLines(), rate: j.lineRate(k)})
		}
	}
	t := characteristic(ps, capacity)
	var one [64]population
	for k := range j.accesses {
		a := &j.accesses[k]
		if a.mem != mem {
			continue
		}
		draws := j.draws(a)
		ratio := 0.0
		if a.skewed() {
			missed, all := 0.0, 0.0
			for _, p := range a.ranks(one[:0], draws) {
				all += p.lines * p.rate
				missed += p.lines * p.rate * math.Exp(-p.rate*t)
			}
			ratio = missed / all
		} else {
			ratio = math.Exp(-j.lineRate(j.firstUniform(k)) * t)
		}
		// commands that miss: a command of several lines misses once
		perCommand := math.Ceil(math.Min(float64(a.Bytes), float64(a.engine.MaxBytes)) / float64(mem.CacheLine))
		a.missing = draws * ratio * math.Ceil(float64(a.Bytes)/float64(mem.CacheLine)) / perCommand
	}
}

// firstOfArray returns the first access to the same array: accesses of equal
// span and stride share one.
func (j *job) firstOfArray(k int) int {
	a := &j.accesses[k]
	for o := range k {
		if b := &j.accesses[o]; b.mem == a.mem && b.span == a.span && b.stride == a.stride {
			return o
		}
	}
	return k
}

// firstUniform returns the first uniform access to the same array.
func (j *job) firstUniform(k int) int {
	a := &j.accesses[k]
	for o := range k {
		if b := &j.accesses[o]; b.mem == a.mem && b.span == a.span && b.stride == a.stride && !b.skewed() {
			return o
		}
	}
	return k
}

// lineRate is how often a packet hits one line of a uniform array, by all of
// its uniform accesses; k is their first.
func (j *job) lineRate(k int) float64 {
	rate := 0.0
	for o := range j.accesses {
		if b := &j.accesses[o]; !b.skewed() && b.mem == j.accesses[k].mem && j.firstUniform(o) == k {
			rate += j.draws(b)
		}
	}
	a := &j.accesses[k]
	perLine := max(1, float64(a.mem.CacheLine)/float64(a.stride))
	return rate * min(1, perLine/float64(a.span))
}

func (a *access) skewed() bool { return a.Popularity == "zipf" && a.span > 1 }

// draws is the number of elements that an access chooses a packet.
func (j *job) draws(a *access) float64 {
	if j.base.PerPacket {
		return min(1, a.PerPacket)
	}
	return a.PerPacket
}

// cacheLines is the cache that the array takes, in lines.
func (a *access) cacheLines() float64 { return a.linesIn(float64(a.mem.CacheLine)) }

// linesIn is the cache that the array takes: elements further apart than a line
// leave sets unused, so they count with their distance.
func (a *access) linesIn(line float64) float64 {
	return max(1, float64(a.span)*float64(a.stride)/line)
}

// ranks appends a Zipf array's cache lines by doubling ranges of ranks.
func (a *access) ranks(ps []population, draws float64) []population {
	return a.ranksIn(ps, draws, float64(a.mem.CacheLine))
}

// ranksIn does so for any size of line.
func (a *access) ranksIn(ps []population, draws, line float64) []population {
	n := float64(a.span)
	// several elements a line: ranks are scattered, so a line takes the rate of
	// its most popular element
	perLine := max(1, line/float64(a.stride))
	weight := max(1, float64(a.stride)/line)
	h := harmonic(n, a.Alpha)
	before := 0.0
	for lo := 1.0; lo <= n; lo *= 2 {
		hi := min(2*lo-1, n)
		mass := harmonic(hi, a.Alpha)
		count := hi - lo + 1
		rate := draws * (mass - before) / h / count
		lines := count * weight
		if count > perLine {
			lines = count / perLine * weight
			rate *= perLine
		}
		ps = append(ps, population{lines: lines, rate: rate})
		before = mass
	}
	return ps
}

// filled is how many of the lines are in the cache that were hit within the last
// t packets and not taken out since.
func filled(ps []population, t float64) float64 {
	sum := 0.0
	for _, p := range ps {
		all := p.rate + p.taken
		sum += p.lines * (p.rate / all) * -math.Expm1(-all*t)
	}
	return sum
}

// characteristic solves filled = capacity for t, packets.
func characteristic(ps []population, capacity float64) float64 {
	lo, hi := 0.0, 1.0
	for filled(ps, hi) < capacity {
		lo = hi
		hi *= 4
		if hi > 1e15 {
			return math.Inf(1)
		}
	}
	for range 24 {
		mid := (lo + hi) / 2
		if lo > 0 {
			mid = math.Sqrt(lo * hi)
		}
		if filled(ps, mid) < capacity {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}
