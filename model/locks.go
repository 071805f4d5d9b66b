package model

import (
	"math"
	"slices"
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
	front    int     // resource that lock commands pass
	commands float64 // of a packet there, of accesses and locks
	memory   *memoryIndex
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
	w.commands = 2 * n
	for k := range j.accesses {
		if a := &j.accesses[k]; a.engine.front == w.front {
			w.commands += a.PerPacket * a.commands()
		}
	}
	us[w.front] += n * (m.Queueing.TestUS.Value + release)
	return n * w.memory.latency.US.Value
}

// lockTime solves lock l: the time of one packet on its hottest element. A
// spinning context sends attempts through the same engine as the holder's
// commands, so the hold time grows with the number of spinners, and that falls
// with the rate. Several rates may hold, see settle.
func (m *Model) lockTime(j *job, l int, net *network, free float64, w *lockWork, out *resourceTimes) float64 {
	lock := &j.p.Locks[l]
	f := m.lock(lock.Idiom, j.base.Name)
	if lock.Idiom == program.None || f == nil || w.memory == nil {
		return 0
	}
	q := &m.Queueing
	hot, flow := elementShare(lock, j.flows)
	h := holder{fixed: f.HoldUS.Value + j.base.AccessUS.Value, through: 1, turns: 1, q: q}
	for k := range j.accesses {
		a := &j.accesses[k]
		if a.lock != l {
			continue
		}
		n := a.PerPacket * a.commands()
		h.fixed += n * j.base.AccessUS.Value
		posted := slices.Contains(a.engine.Posted, a.Op)
		if !posted {
			h.turns += n
		}
		switch {
		case a.engine.front == w.front && posted:
			h.admitted += n
		case a.engine.front == w.front:
			h.through += n
		case !posted:
			h.fixed += n*a.mem.latency.US.Value + a.missing*a.mem.latency.MissUS.Value
		}
	}
	h.latency = w.memory.latency.US.Value
	h.net = net
	h.spins = lock.Idiom != program.Ticket
	h.pause = q.SpinUS.Value
	if m.ClockMHz > 0 {
		h.pause += sleepCycles(lock.Idiom) / m.ClockMHz
	}
	h.front, h.commands, h.hot = net.us[w.front], w.commands, hot
	// queues over all elements, balanced at the worst: k of n contexts' places
	balance := 1 + (1/hot-1)/(net.cores*net.threads)
	time := func(rate float64) float64 { return hot * h.hold(rate) * balance }
	const most = 0.5 // of the packets
	gathered := net.lockstep() && hot > most
	rate := settle(func(x float64) bool { return x*time(x) <= 1 }, 1/free, gathered)
	hold := h.hold(rate)
	out.tLock[l], out.flow[l] = 1/hold, flow
	return hot * hold * balance
}

// settle returns the rate, at most top, at which a board settles; holds says
// whether the lock lets a rate through. Packets come one by one from packet I/O
// and the cores, so a board starts without spinners and falls to the first rate
// that holds. Where an engine is the bottleneck it serves all contexts in turn:
// if most go to one element they reach it together, and the board climbs from
// that crowd.
func settle(holds func(float64) bool, top float64, gathered bool) float64 {
	const steps = 24
	lo, hi := 0.0, top
	if gathered {
		for k := 1; k <= steps; k++ {
			if hi = top * float64(k) / steps; !holds(hi) {
				break
			}
			lo = hi
		}
	} else {
		for k := steps; k > 0; k-- {
			if lo = top * float64(k) / steps; holds(lo) {
				break
			}
			hi, lo = lo, 0
		}
	}
	for range 14 {
		if mid := (lo + hi) / 2; holds(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// holder is what the hold time of a lock depends on.
type holder struct {
	q        *Queueing
	fixed    float64 // µs that no load changes
	through  float64 // commands through the lock's engine that the holder waits for
	admitted float64 // posted ones: the holder waits for their place in the queue
	turns    float64 // times that the holder waits for its core
	latency  float64 // of an idle lock engine
	spins    bool
	pause    float64 // of a spinner between two attempts
	front    float64 // time of a packet on the lock's engine
	commands float64 // of a packet there
	hot      float64
	net      *network // what the contexts that do not spin are in
}

// hold is the time that an element is not to be had, at a packet rate.
func (h *holder) hold(rate float64) float64 {
	others := (h.net.threads - 1) / h.net.threads
	busy := min(1, rate*h.net.busy/h.net.cores)
	turn := h.q.TurnUS.Value * others * busy / (1 - others*busy)
	hold := h.fixed + h.turns*turn
	// the queue of the packets' own commands
	queue := h.net.wait * rate * h.front
	idle := h.latency + queue/max(1-queue, 0.01)*h.front/h.commands
	spinners := h.net.cores*h.net.threads - h.net.inside(rate)
	if !h.spins || spinners <= 0 {
		return hold + h.through*idle + h.admitted*(idle-h.latency)
	}
	const least = 0.05 // of the engine is left to spinners
	left := max(least, 1-rate*h.front)
	wait := max(idle, spinners*h.q.TestUS.Value/left-h.pause)
	// with waiters the next attempt comes as soon as one of them is back
	waiters := spinners * h.hot
	lag := (h.pause + wait) * waiters / sq(1+waiters)
	return hold + h.through*wait + h.admitted*(wait-h.latency) + lag
}
