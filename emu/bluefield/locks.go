package bluefield

import (
	"nicprof/program"
	"nicprof/sim"
)

// lock is an array of lock words.
type lock struct {
	name  string
	idiom program.Idiom
	hash  bool
	words []lockWord
	array int
	spin  sim.Time
	sleep sim.Time
}

// lockWord is one lock, as its line's last owner left it.
type lockWord struct {
	holder          int32
	ticket, serving int64    // of a ticket lock
	users           int32    // cores that hold it or want it
	since, busy     sim.Time // of any user, and in all
}

// acquire takes a lock: load-exclusive, test, store-exclusive; and on failure
// spins on the loaded copy until it is lost, or sleeps.
func (m *machine) acquire(c *core, s *step) (waits bool) {
	l := s.lock
	switch c.phase {
	case phaseStart:
		if !m.drained(c) {
			return true
		}
		c.word = int32(c.flow % int64(len(l.words)))
		if l.hash {
			c.word = int32(m.choice.IntN(len(l.words)))
		}
		m.enter(&l.words[c.word])
		c.ticket = -1
		m.spend(c, s, s.first+s.issue/2, phaseSend)
		return true
	case phaseSend:
		line := m.wordLine(c, l)
		if l.idiom == program.Ticket && c.ticket < 0 {
			m.exclusive(c, s, line, m.request(c, s, line, true, true))
			return true
		}
		done := m.request(c, s, line, false, true)
		c.monitor, c.lost = line, never
		m.after(c, done, phaseTest)
		return true
	case phaseTest:
		return m.test(c, s)
	}
	// store-exclusive
	w := &l.words[c.word]
	if l.idiom == program.Ticket && c.ticket < 0 {
		if m.stored(c, s) {
			c.ticket = w.ticket
			w.ticket++
			return m.test(c, s)
		}
		return true
	}
	if c.monitor < 0 { // its line is here
		return false
	}
	// Another core's store-exclusive may be on its way: the home node lets one
	// succeed.
	if c.lost < never {
		c.monitor = -1
		m.retries++
		m.after(c, max(c.lost, m.kernel.Now())+m.issue.Jitter(m.retry, m.jitter), phaseSend)
		return true
	}
	c.monitor = -1
	w.holder = c.id
	m.after(c, m.request(c, s, m.wordLine(c, l), true, true), phaseStore)
	return true
}

// test looks at the lock word that has been loaded.
func (m *machine) test(c *core, s *step) (waits bool) {
	l := s.lock
	w := &l.words[c.word]
	ticket := l.idiom == program.Ticket
	switch {
	case ticket && w.serving == c.ticket:
		w.holder = c.id
		c.monitor = -1
		return false
	case !ticket && w.holder < 0:
		d := m.issue.Jitter(s.issue/2, m.jitter)
		c.busy += d
		m.after(c, m.kernel.Now()+d, phaseStore)
	case l.sleep > 0:
		c.monitor = -1
		m.after(c, m.kernel.Now()+m.issue.Jitter(l.sleep, m.jitter), phaseSend)
	case c.lost < never: // while it was on its way
		c.monitor = -1
		m.after(c, max(c.lost, m.kernel.Now())+m.issue.Jitter(l.spin, m.jitter), phaseSend)
	default:
		c.monitor, c.watching = -1, m.wordLine(c, l)
	}
	return true
}

func (m *machine) wordLine(c *core, l *lock) int64 {
	return m.arrays[l.array].at(int(c.id), int64(c.word)) / m.lineBytes
}

// enter and exit count the users of a lock.
func (m *machine) enter(w *lockWord) {
	if w.users == 0 {
		w.since = m.kernel.Now()
	}
	w.users++
}

func (m *machine) exit(w *lockWord) {
	if w.users--; w.users == 0 && m.meter.On {
		w.busy += m.kernel.Now() - max(w.since, m.meter.Start)
	}
}

// release stores the lock word after all accesses of the section.
func (m *machine) release(c *core, s *step) (waits bool) {
	switch c.phase {
	case phaseStart:
		if !m.drained(c) {
			return true
		}
		m.spend(c, s, s.issue, phaseSend)
		return true
	default:
		w := &s.lock.words[c.word]
		w.holder = -1
		w.serving++
		m.exit(w)
		m.fill(c, m.request(c, s, m.wordLine(c, s.lock), true, true))
		return false
	}
}
