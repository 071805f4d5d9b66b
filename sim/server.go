package sim

import "math"

// Server is a single server with a first-come-first-served line, for jobs whose
// service time is known when they arrive. Its whole state is the time at which
// it will be free, so it costs no event. The zero value is idle.
type Server struct {
	free   Time
	booked Time
}

// Serve books a job that arrives at now, which must not be before the arrival
// of the previous one, and returns the time at which its service starts.
func (s *Server) Serve(now, service Time) (start Time) {
	start = max(now, s.free)
	s.free = start + service
	s.booked += service
	return start
}

// Free returns the time at which the last job booked will have been served.
func (s *Server) Free() Time { return s.free }

// Busy returns the time spent serving from 0 to now; now must not be before the
// last arrival. The utilisation over a window is the difference of Busy at its
// ends over its length.
func (s *Server) Busy(now Time) Time { return s.booked - max(0, s.free-now) }

// Servers is a group of equal servers with one first-come-first-served line,
// for jobs whose service time is known when they arrive.
type Servers struct {
	free   []Time // when each will be free: a binary heap
	booked Time
}

// NewServers returns a group of n idle servers.
func NewServers(n int) *Servers { return &Servers{free: make([]Time, n)} }

// Serve books a job as Server.Serve does, on the server that is free first.
func (s *Servers) Serve(now, service Time) (start Time) {
	h := s.free
	start = max(now, h[0])
	s.booked += service
	t := start + service
	i := 0
	for {
		c := 2*i + 1
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if c >= len(h) || t <= h[c] {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = t
	return start
}

// Busy returns the time that all servers together spent serving from 0 to now;
// now must not be before the last arrival.
func (s *Servers) Busy(now Time) Time {
	busy := s.booked
	for _, free := range s.free {
		busy -= max(0, free-now)
	}
	return busy
}

// Line is a first-in-first-out queue in a ring that grows as needed, for
// stations whose service times are not known on arrival. The zero value is
// empty.
type Line[T any] struct {
	ring  []T // its length is a power of two
	first int
	n     int
}

// Len returns the number waiting.
func (l *Line[T]) Len() int { return l.n }

// Push appends v.
func (l *Line[T]) Push(v T) {
	if l.n == len(l.ring) {
		ring := make([]T, max(8, 2*l.n))
		copy(ring[copy(ring, l.ring[l.first:]):], l.ring[:l.first])
		l.ring, l.first = ring, 0
	}
	l.ring[(l.first+l.n)&(len(l.ring)-1)] = v
	l.n++
}

// Front returns the first, which stays; the line must not be empty.
func (l *Line[T]) Front() T {
	if l.n == 0 {
		panic("sim: Front of an empty Line")
	}
	return l.ring[l.first]
}

// Pop removes and returns the first; the line must not be empty.
func (l *Line[T]) Pop() T {
	if l.n == 0 {
		panic("sim: Pop of an empty Line")
	}
	v := l.ring[l.first]
	l.first = (l.first + 1) & (len(l.ring) - 1)
	l.n--
	return v
}

// Sharing is a processor-sharing station: n servers serve all jobs present at
// once, each job at an equal rate, at most that of one server. It announces
// completions by events of its kind and actor, whose Arg belongs to it:
//
//	case kindShared:
//		if job, ok := station.Complete(e); ok {
//			...
//		}
//
// Progress is kept as the service that a job present from the start would have
// received (virtual time), in which a job's completion does not move when
// others come and go. An arrival moves it in real time, so it schedules a new
// event and Complete ignores the one outdated.
type Sharing struct {
	k           *Kernel
	kind, actor int32
	servers     float64

	jobs    []sharedJob // a binary heap by finish, then arrival
	arrived int64
	virtual float64 // virtual time at at, in ps
	at      Time
	current int64   // Arg of the event that is not outdated
	busy    float64 // server time used up to at, in ps
}

type sharedJob struct {
	finish  float64
	arrived int64
	job     int64
}

func (a sharedJob) before(b sharedJob) bool {
	return a.finish < b.finish || a.finish == b.finish && a.arrived < b.arrived
}

// NewSharing returns an idle station of n servers that schedules its events on
// k.
func NewSharing(k *Kernel, kind, actor int32, n int) *Sharing {
	return &Sharing{k: k, kind: kind, actor: actor, servers: float64(n)}
}

// Len returns the number of jobs present.
func (s *Sharing) Len() int { return len(s.jobs) }

// Arrive adds a job that needs work, the time one server takes for it alone.
func (s *Sharing) Arrive(job int64, work Time) {
	s.advance()
	s.arrived++
	j := sharedJob{s.virtual + float64(work), s.arrived, job}
	s.jobs = append(s.jobs, j)
	h, i := s.jobs, len(s.jobs)-1
	for i > 0 && j.before(h[(i-1)/2]) {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = j
	s.schedule()
}

// Complete takes an event of the station off the agenda and returns the job
// that it completes, or false if it is outdated.
func (s *Sharing) Complete(e Event) (job int64, ok bool) {
	if e.Arg != s.current {
		return 0, false
	}
	s.advance()
	h, n := s.jobs, len(s.jobs)-1
	done, last := h[0], h[n]
	h = h[:n]
	s.jobs = h
	i := 0
	for {
		c := 2*i + 1
		if c+1 < n && h[c+1].before(h[c]) {
			c++
		}
		if c >= n || last.before(h[c]) {
			break
		}
		h[i] = h[c]
		i = c
	}
	if n > 0 {
		h[i] = last
		s.virtual = done.finish
		s.schedule()
	} else {
		s.virtual = 0
	}
	return done.job, true
}

// Busy returns the time that all servers together spent serving from 0 to Now.
func (s *Sharing) Busy() Time {
	s.advance()
	return Time(s.busy)
}

// rate returns the service rate of each job present.
func (s *Sharing) rate() float64 { return min(1, s.servers/float64(len(s.jobs))) }

// advance brings the station to the kernel's time. The conversions keep the
// compiler from fusing the operations, which rounds differently on some
// machines.
func (s *Sharing) advance() {
	if len(s.jobs) > 0 {
		d := float64(s.k.Now() - s.at)
		s.busy += float64(d * min(s.servers, float64(len(s.jobs))))
		// An event is rounded up to a picosecond; nobody is served beyond the
		// completion that it stands for.
		s.virtual = min(s.virtual+float64(d*s.rate()), s.jobs[0].finish)
	}
	s.at = s.k.Now()
}

// schedule announces the next completion.
func (s *Sharing) schedule() {
	s.current++
	d := math.Ceil((s.jobs[0].finish - s.virtual) / s.rate())
	s.k.After(Time(d), s.kind, s.actor, s.current)
}
