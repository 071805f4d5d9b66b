// Package kernel has the inner loops of native measurements: pointer chases,
// streams, atomic additions to one cache line, and lock hand-overs. A kernel
// allocates nothing, calls no clock and returns a value that depends on all it
// loaded, so that its work can be checked and cannot be left out; who times it
// pins the thread and gives it memory that its thread touched first.
package kernel

import (
	"fmt"
	"math/rand/v2"
	"unsafe"
)

// Order is the sequence in which a chase visits the cache lines of its memory.
type Order string

const (
	// Lines visits every line, in random order over the whole memory: where
	// there are more pages than the TLB holds, most steps walk the page table
	// too.
	Lines Order = "lines"
	// PageLocal visits every line, all lines of a page (in random order) before
	// the next page: a step seldom misses in the TLB.
	PageLocal Order = "page-local"
	// Pages visits one line of every page, in random order, at offsets that
	// spread over the sets of the caches: the TLB's share stands out.
	Pages Order = "pages"
)

// Orders lists all orders.
var Orders = []Order{Lines, PageLocal, Pages}

const maxLines = 1 << 32 // a position is held in 32 bits

// Ring links the lines of mem into one cycle in a random order (from seed,
// always the same), and returns where it starts and how many lines it visits.
// mem is memory outside the Go heap (mmap), aligned to line; line and page are
// in bytes. Ring writes into every line that the chase visits, so the pages
// belong to the calling thread's node.
func Ring(mem []byte, order Order, line, page int, seed uint64) (start unsafe.Pointer, lines int64, err error) {
	pointer := int(unsafe.Sizeof(start))
	switch {
	case line < pointer || line&(line-1) != 0:
		return nil, 0, fmt.Errorf("a line of %d B: want a power of two that holds a pointer", line)
	case page < line || page&(page-1) != 0:
		return nil, 0, fmt.Errorf("a page of %d B: want a power of two of at least a line of %d B", page, line)
	case len(mem) < line:
		return nil, 0, fmt.Errorf("%d B hold no line of %d B", len(mem), line)
	case uintptr(unsafe.Pointer(&mem[0]))%uintptr(line) != 0:
		return nil, 0, fmt.Errorf("memory at %p is not aligned to a line of %d B", &mem[0], line)
	case len(mem)/line > maxLines:
		return nil, 0, fmt.Errorf("%d B are more than %d lines of %d B", len(mem), int64(maxLines), line)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	perPage := page / line
	visited := visits(len(mem)/line, perPage, order, rng)
	if visited == nil {
		return nil, 0, fmt.Errorf("order %q: want one of %q", order, Orders)
	}
	at := func(i uint32) unsafe.Pointer { return unsafe.Pointer(&mem[int(i)*line]) }
	for k, i := range visited {
		next := k + 1
		if next == len(visited) {
			next = 0
		}
		*(*unsafe.Pointer)(at(i)) = at(visited[next])
	}
	return at(visited[0]), int64(len(visited)), nil
}

// visits returns the lines of a lap in their order.
func visits(lines, perPage int, order Order, rng *rand.Rand) []uint32 {
	shuffle := func(s []uint32) { rng.Shuffle(len(s), func(i, k int) { s[i], s[k] = s[k], s[i] }) }
	pages := make([]uint32, (lines+perPage-1)/perPage)
	for i := range pages {
		pages[i] = uint32(i)
	}
	var visited []uint32
	switch order {
	case Lines:
		visited = make([]uint32, lines)
		for i := range visited {
			visited[i] = uint32(i)
		}
		shuffle(visited)
	case PageLocal:
		visited = make([]uint32, 0, lines)
		shuffle(pages)
		for _, p := range pages {
			first := int(p) * perPage
			for i := first; i < min(first+perPage, lines); i++ {
				visited = append(visited, uint32(i))
			}
			shuffle(visited[len(visited)-min(perPage, lines-first):])
		}
	case Pages:
		visited = make([]uint32, len(pages))
		for _, p := range pages {
			first := int(p) * perPage
			visited[p] = uint32(first + int(p)%min(perPage, lines-first))
		}
		shuffle(visited)
	}
	return visited
}

// Chase follows the pointers of a ring for that many steps, each of which waits
// for the load before it, and returns where it ends.
func Chase(start unsafe.Pointer, steps int64) unsafe.Pointer {
	p := start
	for ; steps > 0; steps-- {
		p = *(*unsafe.Pointer)(p)
	}
	return p
}
