package host

import (
	"sync"
	"testing"

	"nicprof/internal/linux"
	"nicprof/program"
	"nicprof/sim"
)

// Every idiom lets one in at a time, under contention of more goroutines than
// there are processors.
func TestIdiomsExclude(t *testing.T) {
	for _, i := range []program.Idiom{program.Spin, program.Mutex, program.Ticket, "sleep-100"} {
		t.Run(string(i), func(t *testing.T) {
			const workers, each, elements = 2, 5000, 3
			r, err := linux.Map(elements*lockStride, linux.SmallPages)
			if err != nil {
				t.Skip(err)
			}
			defer r.Close()
			l := &lockArray{memory: r.Base(), elements: elements, idiom: i}
			var done sync.WaitGroup
			uses := make([]lockUse, workers)
			for k := range workers {
				done.Go(func() {
					w := &worker{}

					s := locked(l, false, &uses[k], nil, 20, clock{nsPerTick: 1}, sim.NewStream(1, "test"))
					for n := range each {
						w.flow = uint32(n * 7)
						s(w, nil)
					}
				})
			}
			done.Wait()
			total := int64(0)
			for k := range uses {
				total += uses[k].total
				if uses[k].count.taken != each || uses[k].count.waited < 0 || uses[k].count.most > uses[k].count.waited {
					t.Errorf("worker %d: %+v", k, uses[k])
				}
			}
			if got := l.inside(); got != total || total != workers*each {
				t.Errorf("%d sections, %d counted under the lock", total, got)
			}
		})
	}
}

// Flow f takes element f mod the elements.
func TestFlowsTakeTheirElements(t *testing.T) {
	r, err := linux.Map(4*lockStride, linux.SmallPages)
	if err != nil {
		t.Skip(err)
	}
	defer r.Close()
	l := &lockArray{memory: r.Base(), elements: 4, idiom: program.Spin}
	use := lockUse{}
	s := locked(l, false, &use, nil, 0, clock{nsPerTick: 1}, sim.NewStream(1, "test"))
	w := &worker{}
	for _, f := range []uint32{1, 5, 9, 2, 4} {
		w.flow = f
		s(w, nil)
	}
	for i, want := range []int64{1, 3, 1, 0} {
		if got := l.at(uint64(i)).inside; got != want {
			t.Errorf("element %d taken %d times, expected %d", i, got, want)
		}
	}
}

// A lock that lets two in is found out.
func TestABrokenLockIsFound(t *testing.T) {
	r, err := linux.Map(lockStride, linux.SmallPages)
	if err != nil {
		t.Skip(err)
	}
	defer r.Close()
	l := &lockArray{memory: r.Base(), elements: 1, idiom: program.Spin}
	m := measurement{
		program: program.Program{Locks: []program.Lock{{Name: "broken"}}},
		locks:   []*lockArray{l},
		workers: []*worker{{locks: []*lockUse{{total: 7}}}},
	}
	l.at(0).inside = 6 // one addition was lost
	if err := m.excluded(); err == nil {
		t.Error("a lost addition was not noticed")
	}
	l.at(0).inside = 7
	if err := m.excluded(); err != nil {
		t.Error(err)
	}
}
