package emu

import "nicprof/sim"

// Meter gathers the Result of one run: from Begin on it times packets and
// batches, and watches servers.
type Meter struct {
	Result
	On    bool     // measuring: the warm-up is over
	Start sim.Time // of the measurement

	want       int
	parallel   sim.Time
	batchStart sim.Time
	round      sim.Time // sum of the batch's rounds
	watched    []watched
}

// watched is a server whose busy time counts for a resource.
type watched struct {
	name   string
	ahead  sim.Time
	server *sim.Server
	from   sim.Time
}

// Expect makes room for so many packets, in batches of batch, or of a sixtieth of
// them if it is 0. parallel is the contexts or cores that a saturated board runs
// packets on, 0 at an offered rate.
func (m *Meter) Expect(packets, batch, parallel int) {
	if batch == 0 {
		batch = max(1, packets/60)
	}
	m.want, m.Batch, m.parallel = packets, batch, sim.Time(parallel)
	m.Batches = make([]sim.Time, 0, packets/batch+1)
	m.Latency = make([]sim.Time, 0, packets)
}

// Watch reports a server's utilisation under a name; of servers of one name the
// busiest. ahead is how far ahead of the clock it is booked.
func (m *Meter) Watch(name string, ahead sim.Time, s *sim.Server) {
	m.watched = append(m.watched, watched{name: name, ahead: ahead, server: s})
}

// Begin starts the measurement.
func (m *Meter) Begin(now sim.Time) {
	m.On, m.Start, m.batchStart = true, now, now
	for i := range m.watched {
		w := &m.watched[i]
		w.from = w.server.Busy(now + w.ahead)
	}
}

// Full tells whether all packets are measured.
func (m *Meter) Full() bool { return int(m.Packets) >= m.want }

// Leave records a packet that leaves now, with its latency and its round: the
// time since its context or core had finished the packet before. Under
// saturation the time of a batch is, by Little's law, the mean round over the
// number of contexts: they run in convoys, in which completions come in bursts
// while rounds hardly vary.
func (m *Meter) Leave(now, latency, round sim.Time) {
	m.Packets++
	m.Latency = append(m.Latency, latency)
	m.round += round
	if int(m.Packets)%m.Batch != 0 {
		return
	}
	d := now - m.batchStart
	if m.parallel > 0 {
		d = m.round / m.parallel
	}
	m.Batches = append(m.Batches, d)
	m.batchStart, m.round = now, 0
}

// Finish ends the measurement and reports the servers watched.
func (m *Meter) Finish(now sim.Time) {
	m.Duration = now - m.Start
	for _, w := range m.watched {
		m.Use(w.name, w.server.Busy(now+w.ahead)-w.from)
	}
}

// Use reports a resource that was busy for a time of the measurement, after
// Finish. Of resources of one name the busiest counts.
func (m *Meter) Use(name string, busy sim.Time) {
	v := min(1, float64(busy)/float64(m.Duration))
	for i := range m.Utilisation {
		if u := &m.Utilisation[i]; u.Resource == name {
			u.Value = max(v, u.Value)
			return
		}
	}
	m.Utilisation = append(m.Utilisation, Use{Resource: name, Value: v})
}

// Account sums the visits and times of one place in the program.
type Account struct {
	Visits     int64
	Busy, Wait sim.Time
}

// Add reports an account, if there were visits, under the program's name and the
// frames below it.
func (m *Meter) Add(a Account, program string, frames ...[]string) {
	if a.Visits == 0 {
		return
	}
	if program == "" {
		program = "program"
	}
	path := []string{program}
	for _, f := range frames {
		path = append(path, f...)
	}
	m.Stacks = append(m.Stacks, Stack{Frames: path, Visits: a.Visits, Busy: a.Busy, Wait: a.Wait})
}
