package main

import (
	"container/heap"
	"context"
	"syscall"

	"nicprof/sim"
)

// agenda is the least that a kernel offers: events with one number to them.
type agenda interface {
	schedule(at sim.Time, kind, actor int32)
	next() (at sim.Time, kind, actor int32)
}

// goPeers returns the peers that run in this process.
func goPeers(delays []int64) []peer {
	var peers []peer
	for _, p := range []struct {
		name string
		make func() agenda
	}{
		{"nicprof", func() agenda { return kernel{sim.New()} }},
		{"4-ary heap", func() agenda { return &quaternary{} }},
		{"container/heap", func() agenda { return &standard{} }},
	} {
		peers = append(peers, peer{name: p.name, run: func(_ context.Context, w workload, ops int) (result, error) {
			return run(p.make(), w, ops, delays), nil
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

// run runs a workload on an agenda.
func run(a agenda, w workload, ops int, delays []int64) result {
	const cycle = 1250 * sim.Picosecond
	drawn := 0
	draw := func() sim.Time {
		d := delays[drawn&(len(delays)-1)]
		drawn++
		return sim.Time(d)
	}
	var cores [54]sim.Server
	var engines [6]sim.Server
	for i := range int32(w.pending) {
		if w.name == "nfp" {
			a.schedule(0, think, i)
		} else {
			a.schedule(draw(), hold, i)
		}
	}
	var r result
	begin := cpuTime()
	for op := 1; op <= ops; op++ {
		at, kind, actor := a.next()
		if op == checkOps {
			r.checked = int64(at)
		}
		switch kind {
		case hold:
			a.schedule(at+draw(), hold, actor)
		case think:
			service := cycle * (10 + draw()%40)
			core := &cores[actor/8]
			core.Serve(at, service)
			a.schedule(core.Free(), access, actor)
		case access:
			engine := &engines[draw()%6]
			engine.Serve(at, 4*cycle)
			a.schedule(engine.Free()+100*cycle, think, actor)
		}
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

// kernel is the project's own.
type kernel struct{ *sim.Kernel }

func (k kernel) schedule(at sim.Time, kind, actor int32) { k.At(at, kind, actor, 0) }

func (k kernel) next() (sim.Time, int32, int32) {
	e, _ := k.Next()
	return e.At, e.Kind, e.Actor
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
type quaternary struct {
	seq  uint64
	heap []event
}

func (q *quaternary) schedule(at sim.Time, kind, actor int32) {
	q.seq++
	e := event{at, q.seq, kind, actor}
	q.heap = append(q.heap, e)
	h, i := q.heap, len(q.heap)-1
	for i > 0 && e.before(&h[(i-1)/4]) {
		h[i] = h[(i-1)/4]
		i = (i - 1) / 4
	}
	h[i] = e
}

func (q *quaternary) next() (sim.Time, int32, int32) {
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
	return top.at, top.kind, top.actor
}

// standard is the standard library's heap, of pointers.
type standard struct {
	seq  uint64
	heap pointers
}

func (s *standard) schedule(at sim.Time, kind, actor int32) {
	s.seq++
	heap.Push(&s.heap, &event{at, s.seq, kind, actor})
}

func (s *standard) next() (sim.Time, int32, int32) {
	e := heap.Pop(&s.heap).(*event)
	return e.at, e.kind, e.actor
}

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
