package nfp

import (
	"nicprof/board"
	"nicprof/program"
	"nicprof/sim"
)

// cost is the time of one command of a fixed size in the resources of an
// engine.
type cost struct {
	pipe, bank, line, hazard sim.Time
}

// costOf turns a board's command timing into times for a command of n bytes.
func costOf(c *board.Command, n int, cycle float64) cost {
	b := float64(n)
	t := func(cycles float64) sim.Time { return sim.Time(cycles*cycle + 0.5) }
	rate := func(minimum, perCycle float64) float64 {
		if perCycle > 0 {
			return max(minimum, b/perCycle)
		}
		return minimum
	}
	pipe := rate(c.PipeMin.Value, c.PipeBytes.Value)
	bank := rate(c.BankMin.Value, c.BankBytes.Value)
	line := c.LineFixed.Value
	if c.LineBytes.Value > 0 {
		line += b / c.LineBytes.Value
	}
	if n < 8 && c.SubWord.Value > 1 {
		pipe, bank, line = pipe*c.SubWord.Value, bank*c.SubWord.Value, line*c.SubWord.Value
	}
	return cost{pipe: t(pipe), bank: t(bank), line: t(line), hazard: t(c.Hazard.Value)}
}

// lineSlots is the size of a memory's line table: the few dozen commands in
// flight rarely collide in it.
const lineSlots = 1024

type lineState struct {
	line       int64
	free, busy sim.Time
}

// engine executes the commands of one mode: a queue of commands in flight, a
// pipeline, and the banks and lines of its memory.
type engine struct {
	mem      *memory
	front    *sim.Server // the pipeline, shared between engines where the board says so
	reads    *sim.Server // the pipeline of reads, where they have their own
	own      [2]sim.Server
	lastLine int64
	inFlight []sim.Time      // min-heap of completion times, at most cap
	pending  sim.Line[int32] // contexts whose command waits for a place in inFlight
	id       int32
}

// memory is one memory with its banks, line table and cache.
type memory struct {
	name      string
	half      sim.Time // one way between a microengine and the memory
	lineBytes int64
	bankBytes int64
	banks     []sim.Server
	lines     [lineSlots]lineState
	hotLine   sim.Time // busy time of the busiest line
	cache     *cache
	dram      sim.Server
	missLat   sim.Time
	missRead  sim.Time
	missWrite sim.Time
	missAdd   sim.Time
	missMore  sim.Time
	front     sim.Server
	shared    bool
	engines   [2]*engine // bulk, atomic
	arrays    []array
	next      int64 // next free address
}

// array is a range of elements that accesses of equal span and stride share.
type array struct {
	base, span, stride int64
}

// mustWait reports whether a command sent now has to wait for a place in the
// queue. The engine's clock is one way ahead of the microengines'.
func (e *engine) mustWait(now sim.Time) bool {
	return e.pending.Len() > 0 || len(e.inFlight) == cap(e.inFlight) && e.inFlight[0] > now+e.mem.half
}

// vacancy returns when the queue has room for a command sent then.
func (e *engine) vacancy(now sim.Time) sim.Time {
	if len(e.inFlight) < cap(e.inFlight) {
		return now
	}
	return max(now, e.inFlight[0]-e.mem.half)
}

// enter records a command in flight until done, in the place of the earliest
// one when the queue is full.
func (e *engine) enter(done sim.Time) {
	h := e.inFlight
	if len(h) < cap(h) {
		h = append(h, done)
		i := len(h) - 1
		for i > 0 && h[(i-1)/2] > done {
			h[i] = h[(i-1)/2]
			i = (i - 1) / 2
		}
		h[i] = done
		e.inFlight = h
		return
	}
	i, n := 0, len(h)
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && h[c+1] < h[c] {
			c++
		}
		if h[c] >= done {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = done
}

// serve executes a command of n bytes at addr that arrives at the engine at t.
// It returns when the pipeline takes the command up, and when its work is done
// at the memory. A command that misses leaves its place in the queue to
// others while the line is fetched (the cache is non-blocking).
func (e *engine) serve(t sim.Time, c *cost, op program.Op, atomic, posted bool, addr, n int64) (start, done sim.Time) {
	m := e.mem
	front := e.front
	if op == program.Read {
		front = e.reads
	}
	line := addr / m.lineBytes
	pipe := c.pipe
	if line == e.lastLine {
		pipe = max(pipe, c.hazard)
	}
	e.lastLine = line
	start = front.Serve(t, pipe)
	done = start + pipe
	filled := start
	if m.cache != nil {
		if lines := m.cache.touch(addr, n); lines > 0 {
			service := m.missRead
			switch op {
			case program.Write:
				service = m.missWrite
			case program.Add:
				service = m.missAdd
			}
			m.dram.Serve(start, service+sim.Time(lines-1)*m.missMore)
			if hold := m.dram.Free() - front.Free(); atomic && op == program.Write && hold > 0 {
				// the atomic engine merges into the line that it waits for
				front.Serve(front.Free(), hold)
			}
			filled = m.dram.Free() + m.missLat
		}
	}
	if c.bank > 0 {
		b := &m.banks[m.bank(addr)]
		b.Serve(start, c.bank)
		done = max(done, b.Free())
	}
	if c.line > 0 {
		s := &m.lines[uint64(line)%lineSlots]
		if s.line != line {
			*s = lineState{line: line}
		}
		s.free = max(start, s.free) + c.line
		s.busy += c.line
		m.hotLine = max(m.hotLine, s.busy)
		done = max(done, s.free)
	}
	if posted {
		done = max(done, filled) // nobody waits, so the queue bounds the misses
	}
	e.enter(done)
	return start, max(done, filled)
}

func (m *memory) bank(addr int64) int64 { return addr / m.bankBytes % int64(len(m.banks)) }

// array returns the array of that span and stride, laid out after the others.
func (m *memory) array(span, stride int64) int {
	for i, a := range m.arrays {
		if a.span == span && a.stride == stride {
			return i
		}
	}
	m.arrays = append(m.arrays, array{base: m.next, span: span, stride: stride})
	const align = 4096
	m.next += (span*stride + align - 1) / align * align
	return len(m.arrays) - 1
}

// cache is a set-associative LRU cache. tags holds line+1 by set and way, most
// recently used first. A miss is charged by the command that misses; the
// write-back of what it evicts is part of that.
type cache struct {
	lineBytes int64
	sets      int64
	ways      int64
	tags      []int64
}

func newCache(bytes, lineBytes, ways int64) *cache {
	sets := bytes / lineBytes / ways
	return &cache{lineBytes: lineBytes, sets: sets, ways: ways, tags: make([]int64, sets*ways)}
}

// touch brings the lines of n bytes at addr into the cache and returns how
// many of them were not there.
func (c *cache) touch(addr, n int64) int {
	missed := 0
	for line := addr / c.lineBytes; line <= (addr+n-1)/c.lineBytes; line++ {
		if !c.line(line) {
			missed++
		}
	}
	return missed
}

func (c *cache) line(line int64) bool {
	first := line % c.sets * c.ways
	set := c.tags[first : first+c.ways]
	tag := line + 1
	if set[0] == tag {
		return true
	}
	for i := 1; i < len(set); i++ {
		if set[i] == tag {
			copy(set[1:i+1], set[:i])
			set[0] = tag
			return true
		}
	}
	copy(set[1:], set)
	set[0] = tag
	return false
}
