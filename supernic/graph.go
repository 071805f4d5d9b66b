package supernic

import (
	"math/bits"
	"slices"
)

// set is a set of nodes of a DAG, one a bit.
type set uint32

func (s set) has(n int) bool { return s>>n&1 == 1 }
func (s set) len() int       { return bits.OnesCount32(uint32(s)) }

// each calls f for the nodes of a set in rising order.
func (s set) each(f func(n int)) {
	for ; s != 0; s &= s - 1 {
		f(bits.TrailingZeros32(uint32(s)))
	}
}

// graph is a DAG by numbers: nodes in the order of the file, and for each the
// nodes that a packet takes right before it.
type graph struct {
	nts    []int // by node: its NT
	before []set
}

func (g *graph) all() set { return set(1<<len(g.nts) - 1) }

// ready returns the nodes outside done whose predecessors are all in it.
func (g *graph) ready(done set) set {
	var r set
	for n, before := range g.before {
		if !done.has(n) && before&^done == 0 {
			r |= 1 << n
		}
	}
	return r
}

// order returns the nodes of part in an order that respects the edges, those of
// the file first where it is free.
func (g *graph) order(part set) []int {
	nodes := make([]int, 0, part.len())
	for done := set(0); len(nodes) < part.len(); {
		for n, before := range g.before {
			if part.has(n) && !done.has(n) && before&part&^done == 0 {
				nodes = append(nodes, n)
				done |= 1 << n
				break
			}
		}
	}
	return nodes
}

// cycle returns the nodes of a cycle, the first again at the end, or nil.
func (g *graph) cycle() []int {
	var done set
	for r := g.ready(done); r != 0; r = g.ready(done) {
		done |= r
	}
	left := g.all() &^ done
	if left == 0 {
		return nil
	}
	// Every node that is left has a predecessor that is left.
	n := bits.TrailingZeros32(uint32(left))
	at := map[int]int{}
	var path []int
	for {
		if first, ok := at[n]; ok {
			loop := append(slices.Clone(path[first:]), n)
			slices.Reverse(loop) // the path went from nodes to their predecessors
			return loop
		}
		at[n] = len(path)
		path = append(path, n)
		n = bits.TrailingZeros32(uint32(g.before[n] & left))
	}
}

// components returns the parts of a set that edges within it connect, by their
// first nodes.
func (g *graph) components(part set) []set {
	var found []set
	for left := part; left != 0; {
		c := left & -left
		for grown := true; grown; {
			grown = false
			for n := range g.before {
				if !part.has(n) {
					continue
				}
				if near := g.before[n] & part; c.has(n) && near&^c != 0 {
					c |= near
					grown = true
				} else if !c.has(n) && near&c != 0 {
					c |= 1 << n
					grown = true
				}
			}
		}
		found = append(found, c)
		left &^= c
	}
	return found
}
