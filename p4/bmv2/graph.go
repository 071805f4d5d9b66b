package bmv2

import (
	"nicprof/p4/ir"
	"nicprof/p4/source"
)

// graph builds the control-flow graph front to back. open are the edges whose
// end is the next instruction; where there are none, what is emitted cannot be
// reached and is left out.
type graph struct {
	code []*ir.Instr
	open []openEdge

	stage   int // of the instructions emitted from here on
	control string
	action  string
	pos     source.Pos
}

type openEdge struct {
	from  *ir.Instr
	label string
}

// target is a place to jump to. Jumps before it is placed wait in pending.
type target struct {
	at      *ir.Instr // once placed as the head of a loop
	pending []openEdge
}

func newGraph() *graph {
	g := &graph{}
	entry := &ir.Instr{Op: ir.Nop}
	g.code = []*ir.Instr{entry}
	g.open = []openEdge{{entry, ""}}
	return g
}

// emit appends an instruction behind the open edges and continues behind it.
func (g *graph) emit(in *ir.Instr) *ir.Instr {
	if len(g.open) == 0 {
		return in
	}
	in.ID, in.Stage, in.Control, in.Action = len(g.code), g.stage, g.control, g.action
	if !in.Pos.Known() {
		in.Pos = g.pos
	}
	g.code = append(g.code, in)
	g.connect(in)
	g.open = []openEdge{{in, ""}}
	return in
}

func (g *graph) connect(in *ir.Instr) {
	for _, e := range g.open {
		e.from.Succ = append(e.from.Succ, ir.Edge{To: in.ID, Label: e.label})
	}
	g.open = nil
}

// choose replaces the open edge behind in, the last instruction, by one with a
// label; it is a no-op where in cannot be reached.
func (g *graph) choose(in *ir.Instr, label string) {
	g.open = nil
	if in.ID > 0 {
		g.open = []openEdge{{in, label}}
	}
}

// jump ends the path here and continues it at t.
func (g *graph) jump(t *target) {
	if t.at != nil {
		g.connect(t.at)
		return
	}
	t.pending = append(t.pending, g.open...)
	g.open = nil
}

// place continues here the paths that jumped to t.
func (g *graph) place(t *target) {
	g.open = append(g.open, t.pending...)
	t.pending = nil
}

// placeLoop does the same for a place that may be jumped back to.
func (g *graph) placeLoop(t *target) {
	g.place(t)
	if in := g.emit(&ir.Instr{Op: ir.Nop}); in.ID > 0 {
		t.at = in
	}
}

// finish ends the program, leaves out what only joins paths, and numbers the
// rest. It gives an instruction from which the end cannot be reached, if any.
func (g *graph) finish() ([]*ir.Instr, *ir.Instr) {
	g.pos, g.action = source.Pos{}, ""
	g.emit(&ir.Instr{Op: ir.End})
	if stuck := g.stuck(); stuck != nil {
		return nil, stuck
	}
	// Every path leads to the end, so that a chain of Nops does.
	next := func(id int) int {
		for in := g.code[id]; in.Op == ir.Nop; in = g.code[id] {
			id = in.Succ[0].To
		}
		return id
	}
	var code []*ir.Instr
	number := make([]int, len(g.code))
	for i, in := range g.code {
		if i == 0 || in.Op != ir.Nop {
			number[i] = len(code)
			code = append(code, in)
		}
	}
	for i, in := range code {
		for j := range in.Succ {
			in.Succ[j].To = number[next(in.Succ[j].To)]
		}
		in.ID = i
	}
	return code, nil
}

// stuck gives the first instruction from which the last one cannot be reached.
func (g *graph) stuck() *ir.Instr {
	before := make([][]int, len(g.code))
	for i, in := range g.code {
		for _, e := range in.Succ {
			before[e.To] = append(before[e.To], i)
		}
	}
	leads := make([]bool, len(g.code))
	last := g.code[len(g.code)-1]
	if last.Op != ir.End {
		return g.code[0]
	}
	leads[last.ID] = true
	for work := []int{last.ID}; len(work) > 0; {
		id := work[len(work)-1]
		work = work[:len(work)-1]
		for _, p := range before[id] {
			if !leads[p] {
				leads[p] = true
				work = append(work, p)
			}
		}
	}
	for i, ok := range leads {
		if !ok {
			return g.code[i]
		}
	}
	return nil
}
