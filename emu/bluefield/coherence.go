package bluefield

import "nicprof/sim"

// inTransit is a line that moves between cores. The slots are few: lines that
// several cores want at once are fewer.
type inTransit struct {
	line       int64
	free, busy sim.Time
}

const transitSlots = 4096

// request brings a line to a core, alone if it writes, and returns when it is
// there.
func (m *machine) request(c *core, s *step, line int64, write, shared bool) (done sim.Time) {
	now := m.kernel.Now()
	from, out := m.caches.access(int(c.id), line, write, shared)
	switch from {
	case fromL1:
		done = now + m.latencies[levelL1]
	case fromL2:
		start := m.l2Server(c).Serve(now, m.l2Line)
		done = max(start, m.moving(line)) + m.latency.Jitter(m.latencies[levelL2], m.jitter)
	case fromMate:
		start := m.l2Server(c).Serve(now, m.l2Line)
		done = m.transfer(line, start, m.latency.Jitter(m.sameTile, m.jitter))
	case fromLLC, fromTile, fromDRAM:
		half := m.latencies[levelLLC] / 2
		start := m.llc.Serve(now+half, m.llcLine) - half
		switch from {
		case fromLLC:
			done = max(start, m.moving(line)-half) + m.latency.Jitter(2*half, m.jitter)
		case fromTile:
			done = m.transfer(line, start, m.latency.Jitter(m.otherTile, m.jitter))
		case fromDRAM:
			half := m.latencies[levelDRAM] / 2
			start = max(start, m.dram.Serve(now+half, m.dramLine)-half)
			done = start + m.latency.Jitter(2*half, m.jitter)
		}
	}
	for range out.toLLC {
		m.llc.Serve(now+m.latencies[levelLLC]/2, m.llcLine)
	}
	for range out.toDRAM {
		m.dram.Serve(now+m.latencies[levelDRAM]/2, m.dramLine)
	}
	if write && from != fromL1 {
		m.deprive(c, line, done)
	}
	if m.profile && m.meter.On {
		a := &s.found[from]
		a.Visits++
		a.Busy += done - now
	}
	return done
}

func (m *machine) l2Server(c *core) *sim.Server { return &m.l2[int(c.id)/m.caches.mates] }

// transfer moves a line between cores, one transfer of a line after the other.
func (m *machine) transfer(line int64, at, d sim.Time) (done sim.Time) {
	t := &m.transit[line%transitSlots]
	if t.line != line {
		*t = inTransit{line: line}
	}
	t.free = max(at, t.free) + d
	t.busy += d
	m.hotLine = max(m.hotLine, t.busy)
	return t.free
}

// deprive tells the other cores that one of them gets a line for itself at done:
// monitors are lost and spins on a copy end. A core sees so at any moment of the
// transfer.
func (m *machine) deprive(c *core, line int64, done sim.Time) {
	now := m.kernel.Now()
	for i := range m.cores {
		o := &m.cores[i]
		if o == c || o.monitor != line && o.watching != line {
			continue
		}
		leaves := done - sim.Time(m.latency.Float64()*float64(min(done-now, m.otherTile)))
		if o.monitor == line {
			o.lost = min(o.lost, leaves)
		}
		if o.watching == line {
			o.watching = -1
			m.after(o, leaves+m.issue.Jitter(m.steps[o.step].lock.spin, m.jitter), phaseSend)
		}
	}
}

// moving returns when a line is at rest, if it is known to move.
func (m *machine) moving(line int64) sim.Time {
	if t := &m.transit[line%transitSlots]; t.line == line {
		return t.free
	}
	return 0
}
