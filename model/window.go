package model

import (
	"math"

	"nicprof/internal/fault"
	"nicprof/program"
)

// strands is the number of packets that a core of a window is followed through:
// a prime, so that any two accesses meet every combination of hit and miss.
const strands = 13

// mostWindow is the most lines that a core waits for at the same time.
const mostWindow = 32

// walk is a packet's way through a core.
type walk struct {
	parts   [maxParts]float64 // µs
	us      []float64         // of each shared resource
	hold    [maxLocks]float64 // from taking a lock to giving it back
	section [maxLocks]float64 // of it between the two
	words   float64           // of all locks, taken from other cores
	busy    float64           // in all
	seen    float64           // share of its waits for memory that the core sees
}

// pipe is the time of a core that goes on while the lines that it has asked for
// come, as many as its window holds, in each strand.
type pipe struct {
	now, latest [strands]float64
	free        [strands]float64             // when what all cores share has served the core's lines
	window      [mostWindow][strands]float64 // completion of the latest lines, a ring
	size, at    int
	lines       int // so far
}

func (p *pipe) spend(us float64) {
	for s := range p.now {
		p.now[s] += us
	}
}

// drain waits for all lines.
func (p *pipe) drain() {
	for s := range p.now {
		p.now[s] = max(p.now[s], p.latest[s])
	}
}

// ask asks for a line that comes after a latency, by rank, once there is room for
// it, and returns in how many strands there was none; rank by rank they differ from
// line to line.
func (p *pipe) ask(t *lineTimes, wait bool) (blocked int) {
	step, first := 1+p.lines%(strands-1), (p.lines*5+p.lines/(strands-1)*7)%strands
	p.lines++
	if wait {
		for s := range p.now {
			p.now[s] += t.latency[(s*step+first)%strands]
		}
		return 0
	}
	slot := &p.window[p.at]
	p.at++
	if p.at == p.size {
		p.at = 0
	}
	for s := range p.now {
		if slot[s] > p.now[s] {
			p.now[s] = slot[s]
			blocked++
		}
		r := (s*step + first) % strands
		start := max(p.now[s], p.free[s])
		p.free[s] = start + t.shared[r]
		slot[s] = start + t.latency[r]
		p.latest[s] = max(p.latest[s], slot[s])
	}
	return blocked
}

func (p *pipe) mean() float64 {
	sum := 0.0
	for _, t := range p.now {
		sum += t
	}
	return sum / strands
}

// lineTimes are, by rank, how long a line takes, and of that at what all cores share.
type lineTimes struct{ latency, shared [strands]float64 }

// between adds us to the latencies of the ranks between two shares, of those at the
// ends in part.
func between(latency *[strands]float64, from, to, us float64) {
	if us == 0 || to <= from {
		return
	}
	for r := range latency {
		latency[r] += us * max(0, min(1, to*strands-float64(r))-max(0, from*strands-float64(r)))
	}
}

// windowed follows a packet through a core that goes on while up to a window of
// lines are on their way, but not past an atomic change, a lock or its end.
func (l *lawIndex) windowed(j *job, w *walk) error {
	p := pipe{size: int(l.Window.Value)}
	waits := 0.0 // for memory, if none of them overlapped
	section := func(lock int) error {
		for k := range j.accesses {
			if a := &j.accesses[k]; a.lock == lock && !a.word {
				if err := l.access(a, &p, w, &waits); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := section(-1); err != nil {
		return err
	}
	for i := range j.p.Locks {
		lock := &j.p.Locks[i]
		if lock.Idiom == program.None {
			if err := section(i); err != nil {
				return err
			}
			continue
		}
		p.drain()
		before := p.mean() + l.take(j, i, &p, w, &waits)
		taken := p.mean()
		if err := section(i); err != nil {
			return err
		}
		p.drain()
		w.hold[i], w.section[i] = p.mean()-before, p.mean()-taken
	}
	p.drain()
	own := w.parts[partBase] + w.parts[partStateless]
	w.busy, w.seen = own+p.mean(), 1
	if waits > 0 {
		w.seen = min(1, (p.mean()-w.parts[partAccess]-w.parts[partLock])/waits)
	}
	return nil
}

// take has a core take a lock and give it back, and returns what of that passes
// before it holds the lock.
func (l *lawIndex) take(j *job, lock int, p *pipe, w *walk, waits *float64) (early float64) {
	c, _ := l.lockCost(j.p.Locks[lock].Idiom)
	p.spend(c.TakeUS.Value)
	w.parts[partLock] += c.TakeUS.Value
	for k := range j.accesses {
		if a := &j.accesses[k]; a.lock == lock && a.word {
			t := l.latencies(a, 1, 1, c.MoveUS.Value, w, waits)
			p.ask(&t, true)
			moved := l.moved(a) * c.MoveUS.Value
			w.words += moved
			early += min(1, l.Early.Value) * moved
		}
	}
	return early
}

// moved is how often an access's line comes from another core, one of the same tile
// counted as it is nearer.
func (l *lawIndex) moved(a *access) float64 { return a.far + a.near*l.Near.Value }

// latencies returns how long the lines of an access take, by rank, when only a share
// of it happens: longest what misses all caches. It counts that as often as it
// happens into parts and shared resources.
func (l *lawIndex) latencies(a *access, share, times, stolen float64, w *walk, waits *float64) (t lineTimes) {
	first := 0.0
	for c := range l.Caches {
		cache := &l.Caches[c]
		missing := share * a.away(c)
		if missing <= 0 {
			continue
		}
		first = max(first, missing)
		us := opTime(cache.Miss, a.Op, a.Mode)
		between(&t.latency, 0, missing, us)
		lines := times * a.linesOf(cache.LineBytes)
		w.parts[partMiss+c] += missing * lines * us
		*waits += missing * lines * us
		if at := l.behind[c]; at >= 0 {
			shared := cache.SharedUS.Value
			if a.Op != program.Read {
				shared = cache.WrittenUS.Value
			}
			w.us[resFirst+at] += missing * lines * shared
			between(&t.shared, 0, missing, shared)
		}
	}
	between(&t.latency, first, first+share*a.far, stolen)
	between(&t.latency, first+share*a.far, first+share*(a.far+a.near), stolen*l.Near.Value)
	us := share * times * a.linesOf(a.mem.LineBytes) * l.moved(a) * stolen
	w.parts[partStolen] += us
	*waits += us
	return t
}

// access has a core make the accesses of a line of the program.
func (l *lawIndex) access(a *access, p *pipe, w *walk, waits *float64) error {
	us, _, ok := l.issue(a.Op, a.Mode, a.Bytes, a.engine.MaxBytes)
	if !ok {
		return fault.Inputf("the model has no core cost of %s:%s: it was fitted without it", a.Op, a.Mode)
	}
	if a.skewed() {
		us += l.DrawUS.Value
	}
	w.parts[partAccess] += us * a.PerPacket
	change := a.Mode == program.Atomic && a.Op != program.Read
	wait := a.Mode == program.Atomic && (a.Op != program.Write || a.Bytes > a.engine.MaxBytes)
	whole, part := math.Modf(a.PerPacket)
	blocked := 0
	for _, n := range [...]struct {
		times int
		share float64
	}{{int(whole), 1}, {1, part}} {
		if n.times == 0 || n.share == 0 {
			continue
		}
		t := l.latencies(a, n.share, float64(n.times), opTime(l.Stolen, a.Op, a.Mode), w, waits)
		for range n.times {
			if change {
				p.drain()
			}
			p.spend(us * n.share)
			for range int(a.linesOf(a.mem.LineBytes)) {
				blocked += p.ask(&t, wait)
			}
		}
	}
	a.blocked = float64(blocked) / (strands * math.Ceil(a.PerPacket) * a.linesOf(a.mem.LineBytes))
	return nil
}
