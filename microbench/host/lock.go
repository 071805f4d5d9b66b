package host

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"nicprof/program"
	"nicprof/sim"
)

// lockCount is what one worker did with one lock array.
type lockCount struct {
	taken  int64   // times
	waited float64 // ns between the first try that failed and success
	most   float64 // ns, the longest such wait so far
}

func (c lockCount) since(o lockCount) lockCount {
	return lockCount{taken: c.taken - o.taken, waited: c.waited - o.waited, most: c.most}
}

// lockWord is one element of a lock array: a line of its own, so that elements
// do not disturb each other. inside counts the sections, written under the lock
// only and by a plain addition: it falls short when the lock lets two in.
type lockWord struct {
	word   uint32 // spin: 1 is held; ticket: the next ticket
	serves uint32 // ticket: the one that may enter
	inside int64
	mutex  sync.Mutex
}

// lockStride is the distance of lock words: an even number of cache lines of
// 64 B, since some processors fetch lines in pairs.
const lockStride = 128

// lockArray is an array of locks that all workers share.
type lockArray struct {
	memory   unsafe.Pointer
	elements uint64
	idiom    program.Idiom
}

func (l *lockArray) at(i uint64) *lockWord {
	return (*lockWord)(unsafe.Add(l.memory, i*lockStride))
}

// inside is how many sections the counters under the locks have seen.
func (l *lockArray) inside() int64 {
	sum := int64(0)
	for i := range l.elements {
		sum += l.at(i).inside
	}
	return sum
}

// lockUse is one worker's use of a lock array.
type lockUse struct {
	_      apartBytes
	count  lockCount
	total  int64 // sections in all
	random draws // elements, where the flow does not choose
	_      apartBytes
}

// locked is the step that takes an element of a lock around a section.
func locked(l *lockArray, hash bool, use *lockUse, section []step, sleepNS float64, c clock, s *sim.Stream) step {
	use.random = newDraws(int64(l.elements), 1, "", 0).seeded(s.Uint64())
	enter, leave := idiom(l.idiom, c.ticks(sleepNS))
	counted := l.idiom != program.None
	return func(w *worker, p unsafe.Pointer) {
		element := uint64(w.flow) % l.elements
		if hash {
			element = use.random.next()
		}
		word := l.at(element)
		if waited := enter(word); waited > 0 {
			ns := c.between(0, waited, 1)
			use.count.waited += ns
			use.count.most = max(use.count.most, ns)
		}
		if counted {
			word.inside++
		}
		for _, s := range section {
			s(w, p)
		}
		leave(word)
		use.count.taken++
		use.total++
	}
}

// idiom returns how a lock is entered, with the ticks waited if it was held,
// and how it is left.
func idiom(i program.Idiom, sleep uint64) (enter func(*lockWord) uint64, leave func(*lockWord)) {
	switch {
	case i == program.None:
		return func(*lockWord) uint64 { return 0 }, func(*lockWord) {}
	case i == program.Mutex:
		return enterMutex, func(l *lockWord) { l.mutex.Unlock() }
	case i == program.Ticket:
		return enterTicket, func(l *lockWord) { atomic.StoreUint32(&l.serves, l.serves+1) }
	}
	return func(l *lockWord) uint64 {
		if atomic.SwapUint32(&l.word, 1) == 0 {
			return 0
		}
		from := ticks()
		for atomic.SwapUint32(&l.word, 1) != 0 {
			pause()
			if sleep > 0 {
				for until := ticks() + sleep; ticks() < until; {
					pause()
				}
			}
		}
		return ticks() - from
	}, func(l *lockWord) { atomic.StoreUint32(&l.word, 0) }
}

func enterMutex(l *lockWord) uint64 {
	if l.mutex.TryLock() {
		return 0
	}
	from := ticks()
	l.mutex.Lock()
	return ticks() - from
}

func enterTicket(l *lockWord) uint64 {
	mine := atomic.AddUint32(&l.word, 1) - 1
	if atomic.LoadUint32(&l.serves) == mine {
		return 0
	}
	from := ticks()
	for atomic.LoadUint32(&l.serves) != mine {
		pause()
	}
	return ticks() - from
}
