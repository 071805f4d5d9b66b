package model

import (
	"math"
	"strconv"
	"strings"

	"nicprof/program"
)

// lock returns the parameters of an idiom, of that base if it was measured
// under it. A sleep that was not measured takes the nearest one's.
func (m *Model) lock(idiom program.Idiom, base string) *Lock {
	if idiom == "" {
		idiom = program.Spin
	}
	if idiom == program.None {
		return nil
	}
	var best *Lock
	score := math.Inf(1)
	for i := range m.Locks {
		l := &m.Locks[i]
		distance := 0.0
		if l.Idiom != idiom {
			if (l.Idiom == program.Ticket) != (idiom == program.Ticket) {
				continue
			}
			distance = 1 + math.Abs(sleepCycles(l.Idiom)-sleepCycles(idiom))
		}
		if l.Base != base {
			distance += 0.5
		}
		if distance < score {
			best, score = l, distance
		}
	}
	return best
}

// sleepCycles is the pause of an idiom between two attempts, cycles.
func sleepCycles(i program.Idiom) float64 {
	text, ok := strings.CutPrefix(string(i), "sleep-")
	if !ok {
		return 0
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return n
}

// lockWork is what the locks of a program need to be solved.
type lockWork struct {
	front  int // resource that lock commands pass
	memory *memoryIndex
}

// lockDemand adds the commands of uncontended locks to their engine, and
// returns the round trips that a packet waits for.
func (m *Model) lockDemand(j *job, us []float64, w *lockWork) float64 {
	w.memory = j.x.memory(m.Queueing.LockMemory)
	if w.memory == nil {
		return 0
	}
	e := w.memory.engine(program.Atomic)
	w.front = e.front
	const word = 4
	release := 0.0
	if c := e.class(program.Write); c != nil {
		release = c.at(word).front
	}
	n := float64(len(j.p.Locks))
	us[w.front] += n * (m.Queueing.TestUS.Value + release)
	return n * w.memory.latency.US.Value
}

// lockTime solves lock l: the time of one packet on its hottest element. A
// spinning context sends attempts through the same engine as the holder's
// commands, so the hold time grows with the number of spinners, and that falls
// with the rate. The iteration rises from the saturated side, where a burst
// leaves a board, to the first point that holds.
func (m *Model) lockTime(j *job, l int, us []float64, trip, free float64, w *lockWork, out *resourceTimes) float64 {
	lock := &j.p.Locks[l]
	f := m.lock(lock.Idiom, j.base.Name)
	if lock.Idiom == program.None || f == nil || w.memory == nil {
		return 0
	}
	q := &m.Queueing
	hot, flow := elementShare(lock, j.flows)
	// the section's own time, and how many of its commands pass the lock's engine
	fixed, through := f.HoldUS.Value+j.base.AccessUS.Value, 1.0
	for k := range j.accesses {
		a := &j.accesses[k]
		if a.lock != l {
			continue
		}
		n := a.PerPacket * a.commands()
		fixed += n * j.base.AccessUS.Value
		if a.engine.front == w.front {
			through += n
		} else {
			fixed += n*a.mem.latency.US.Value + a.missing*a.mem.latency.MissUS.Value
		}
	}
	latency := w.memory.latency.US.Value
	contexts := float64(j.cores * j.threads)
	ticket := lock.Idiom == program.Ticket
	pause := q.SpinUS.Value
	if m.ClockMHz > 0 {
		pause += sleepCycles(lock.Idiom) / m.ClockMHz
	}
	hold := fixed + through*latency
	rate := 0.0
	for range 60 {
		wait := latency
		if spinners := contexts - rate*trip; !ticket && spinners > 0 {
			left := max(0.05, 1-rate*us[w.front])
			wait = max(wait, spinners*q.TestUS.Value/left-pause)
			// the next attempt comes as soon as one of the lock's spinners is back
			hold = fixed + through*wait + (pause+wait)/(1+spinners*hot)
		} else {
			hold = fixed + through*latency
		}
		next := min(1/free, 1/(hot*hold))
		if math.Abs(next-rate) < 1e-6*next {
			break
		}
		rate = next
	}
	out.tLock[l], out.flow[l] = 1/hold, flow
	return hot * hold
}
