package bluefield

import (
	"nicprof/emu"
	"nicprof/sim"
)

// begin starts the measurement: all busy times are counted from here.
func (m *machine) begin(now sim.Time) {
	m.meter.Begin(now)
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

// finish summarises the run.
func (m *machine) finish() *emu.Result {
	now := m.kernel.Now()
	m.meter.Finish(now)
	var busy sim.Time
	for i := range m.cores {
		busy += m.cores[i].busy
	}
	m.meter.Use("core", busy/sim.Time(len(m.cores)))
	m.meter.Use("line", m.hotLine)
	for _, l := range m.locks {
		var most sim.Time
		for i := range l.words {
			w := &l.words[i]
			if w.users > 0 {
				w.busy += now - max(w.since, m.meter.Start)
			}
			most = max(most, w.busy)
		}
		m.meter.Use("lock."+l.name, most)
	}
	if m.profile {
		m.stacks()
	}
	return &m.meter.Result
}

// stacks turns the steps' accounts into paths: program, line of the program,
// and then the core or where the line was found.
func (m *machine) stacks() {
	for i := range m.steps {
		s := &m.steps[i]
		m.meter.Add(s.issued, m.program, s.frame, []string{"core"})
		for from, a := range s.found {
			m.meter.Add(a, m.program, s.frame, []string{sourceNames[from]})
		}
	}
}
