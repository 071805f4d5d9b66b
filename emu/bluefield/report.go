package bluefield

import (
	"nicprof/emu"
	"nicprof/sim"
)

// account sums the visits and times of one place in the program.
type account struct {
	visits     int64
	busy, wait sim.Time
}

// closeBatch records the time of a batch. Under saturation that is, by Little's
// law, the mean round of a core over the number of cores: completions come in
// bursts while rounds hardly vary.
func (m *machine) closeBatch(now sim.Time) {
	d := now - m.batchStart
	if m.arrival == 0 {
		d = m.round / sim.Time(len(m.cores))
	}
	m.result.Batches = append(m.result.Batches, d)
	m.batchStart, m.round = now, 0
}

// measure starts the measurement: all busy times are counted from here.
func (m *machine) measure(now sim.Time) {
	m.measuring = true
	m.start, m.batchStart = now, now
	for i := range m.meters {
		w := &m.meters[i]
		w.from = w.server.Busy(now + w.ahead)
	}
	for i := range m.cores {
		m.cores[i].busy = 0
	}
	m.hotLine = 0
	for i := range m.transit {
		m.transit[i].busy = 0
	}
	for _, l := range m.locks {
		for i := range l.words {
			l.words[i].busy = 0
		}
	}
}

// meter watches a server's busy time. Meters of one name report the busiest.
// Servers behind the caches are booked ahead of the clock.
type meter struct {
	name   string
	ahead  sim.Time
	server *sim.Server
	from   sim.Time
}

func (m *machine) meter(name string, ahead sim.Time, s *sim.Server) {
	m.meters = append(m.meters, meter{name: name, ahead: ahead, server: s})
}

// finish summarises the run.
func (m *machine) finish() *emu.Result {
	r := &m.result
	now := m.kernel.Now()
	r.Duration = now - m.start
	r.Batch = m.batch
	span := float64(r.Duration)
	add := func(name string, busy sim.Time) {
		v := min(1, float64(busy)/span)
		for i := range r.Utilisation {
			if u := &r.Utilisation[i]; u.Resource == name {
				u.Value = max(v, u.Value)
				return
			}
		}
		r.Utilisation = append(r.Utilisation, emu.Use{Resource: name, Value: v})
	}
	for _, w := range m.meters {
		add(w.name, w.server.Busy(now+w.ahead)-w.from)
	}
	var busy sim.Time
	for i := range m.cores {
		busy += m.cores[i].busy
	}
	add("core", busy/sim.Time(len(m.cores)))
	add("line", m.hotLine)
	for _, l := range m.locks {
		var most sim.Time
		for i := range l.words {
			w := &l.words[i]
			if w.users > 0 {
				w.busy += now - max(w.since, m.start)
			}
			most = max(most, w.busy)
		}
		add("lock."+l.name, most)
	}
	if m.profile {
		m.stacks()
	}
	return r
}

// stacks turns the steps' accounts into paths: program, line of the program,
// and then the core or where the line was found.
func (m *machine) stacks() {
	root := m.program
	if root == "" {
		root = "program"
	}
	add := func(a account, frames []string, last string) {
		if a.visits == 0 {
			return
		}
		path := append(append([]string{root}, frames...), last)
		m.result.Stacks = append(m.result.Stacks, emu.Stack{Frames: path, Visits: a.visits, Busy: a.busy, Wait: a.wait})
	}
	for i := range m.steps {
		s := &m.steps[i]
		add(s.issued, s.frame, "core")
		for from, a := range s.found {
			add(a, s.frame, sourceNames[from])
		}
	}
}
