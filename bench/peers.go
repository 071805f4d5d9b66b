package main

import (
	"container/heap"
	"context"
	"syscall"

	"nicprof/sim"
)

// goPeers returns the peers that run in this process.
func goPeers(delays []int64) []peer {
	var peers []peer
	for _, p := range []struct {
		name string
		run  func(m *model, pending, ops int) result
	}{
		{"nicprof", runKernel},
		{"4-ary heap", func(m *model, pending, ops int) result { return runHeap(&quaternary{}, m, pending, ops) }},
		{"container/heap", func(m *model, pending, ops int) result { return runHeap(&standard{}, m, pending, ops) }},
	} {
		peers = append(peers, peer{name: p.name, run: func(_ context.Context, w workload, ops int) (result, error) {
			return p.run(&model{nfp: w.name == "nfp", delays: delays}, w.pending, ops), nil
		}})
	}
	return peers
}

// Kinds of events.
const (
	hold int32 = iota
	think
	access
)

// model is what happens in a workload; each actor has one event pending.
type model struct {
	nfp     bool
	delays  []int64
	drawn   int
	cores   [54]sim.Server
	engines [6]sim.Server
}

func (m *model) draw() sim.Time {
	d := m.delays[m.drawn&(len(m.delays)-1)]
	m.drawn++
	return sim.Time(d)
}

// start returns the time and kind of an actor's first event.
func (m *model) start() (at sim.Time, kind int32) {
	if m.nfp {
		return 0, think
	}
	return m.draw(), hold
}

// step returns the time and kind of the event that follows an actor's event.
func (m *model) step(at sim.Time, kind, actor int32) (sim.Time, int32) {
	const cycle = 1250 * sim.Picosecond
	switch kind {
	case think:
		service := cycle * (10 + m.draw()%40)
		core := &m.cores[actor/8]
		core.Serve(at, service)
		return core.Free(), access
	case access:
		engine := &m.engines[m.draw()%6]
		engine.Serve(at, 4*cycle)
		return engine.Free() + 100*cycle, think
	}
	return at + m.draw(), hold
}

// runKernel runs a workload on the project's own kernel.
func runKernel(m *model, pending, ops int) result {
	k := sim.New()
	for actor := range int32(pending) {
		at, kind := m.start()
		k.At(at, kind, actor, 0)
	}
	var r result
	begin := cpuTime()
	for op := range ops {
		e, _ := k.Next()
		if op == checkOps-1 {
			r.checked = int64(e.At)
		}
		at, kind := m.step(e.At, e.Kind, e.Actor)
		k.At(at, kind, e.Actor, 0)
	}
	r.ns = float64(cpuTime()-begin) / float64(ops)
	return r
}

// agenda is a heap of events.
type agenda interface {
	push(e event)
	pop() event
}

// runHeap runs a workload on a heap.
func runHeap(a agenda, m *model, pending, ops int) result {
	var seq uint64
	for actor := range int32(pending) {
		at, kind := m.start()
		seq++
		a.push(event{at, seq, kind, actor})
	}
	var r result
	begin := cpuTime()
	for op := range ops {
		e := a.pop()
		if op == checkOps-1 {
			r.checked = int64(e.at)
		}
		at, kind := m.step(e.at, e.kind, e.actor)
		seq++
		a.push(event{at, seq, kind, e.actor})
	}
	r.ns = float64(cpuTime()-begin) / float64(ops)
	return r
}

// cpuTime returns the CPU time of the process in nanoseconds.
func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it cannot fail for the process itself
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// event is an event of a heap, ordered by time, then sequence.
type event struct {
	at          sim.Time
	seq         uint64
	kind, actor int32
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// quaternary is a heap of values with four children a node, the fastest of the
// plain heaps in Go.
type quaternary struct{ heap []event }

func (q *quaternary) push(e event) {
	q.heap = append(q.heap, e)
	h, i := q.heap, len(q.heap)-1
	for i > 0 && e.before(&h[(i-1)/4]) {
		h[i] = h[(i-1)/4]
		i = (i - 1) / 4
	}
	h[i] = e
}

func (q *quaternary) pop() event {
	top, n := q.heap[0], len(q.heap)-1
	e, h := q.heap[n], q.heap[:n]
	q.heap = h
	for i := 0; n > 0; {
		least := 4*i + 1
		for c := least + 1; c < min(n, 4*i+5); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if least >= n || e.before(&h[least]) {
			h[i] = e
			break
		}
		h[i] = h[least]
		i = least
	}
	return top
}

// standard is the standard library's heap, of pointers.
type standard struct{ heap pointers }

func (s *standard) push(e event) { heap.Push(&s.heap, &e) }
func (s *standard) pop() event   { return *heap.Pop(&s.heap).(*event) }

type pointers []*event

func (p pointers) Len() int           { return len(p) }
func (p pointers) Less(i, j int) bool { return p[i].before(p[j]) }
func (p pointers) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *pointers) Push(x any)        { *p = append(*p, x.(*event)) }
func (p *pointers) Pop() any {
	n := len(*p) - 1
	e := (*p)[n]
	(*p)[n] = nil
	*p = (*p)[:n]
	return e
}
