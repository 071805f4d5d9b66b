package frontend

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"nicprof/p4/ir"
	"pgregory.net/rapid"
)

// drawProgram makes up a program without cycles: assignments to parts of a few
// locations, register accesses, and branches, nested and with early returns.
func drawProgram(t *rapid.T) *ir.Program {
	b := newBuilder()
	names := []string{"a", "b", "c"}
	registers := []*ir.Object{b.register("r0", 8), b.register("r1", 8)}
	b.extract("h", "hdr.h.x")
	name := rapid.SampledFrom(names)
	var body func(depth int)
	body = func(depth int) {
		for range rapid.IntRange(1, 4).Draw(t, "statements") {
			if len(b.open) == 0 {
				return // behind a return
			}
			switch rapid.IntRange(0, 5).Draw(t, "statement") {
			case 0, 1:
				v := b.v(name.Draw(t, "to"), 32)
				lo := rapid.IntRange(0, 31).Draw(t, "lo")
				d := ir.Def{Var: v, Hi: rapid.IntRange(lo, 31).Draw(t, "hi"), Lo: lo, May: rapid.IntRange(0, 4).Draw(t, "may") == 0}
				b.add(&ir.Instr{Op: ir.Assign, Defs: []ir.Def{d}, Args: []*ir.Expr{drawUse(t, b, name)}})
			case 2:
				b.read(name.Draw(t, "to"), rapid.SampledFrom(registers).Draw(t, "register"), num(0))
			case 3:
				b.write(rapid.SampledFrom(registers).Draw(t, "register"), num(0), drawUse(t, b, name))
			case 4:
				if depth < 3 {
					inner := func() { body(depth + 1) }
					b.cond(op("==", drawUse(t, b, name), num(0)), inner, rapid.SampledFrom([]func(){nil, inner}).Draw(t, "else"))
				}
			case 5:
				if depth > 0 && rapid.IntRange(0, 3).Draw(t, "return") == 0 {
					b.ret()
				}
			}
		}
	}
	body(0)
	return b.done()
}

func drawUse(t *rapid.T, b *builder, name *rapid.Generator[string]) *ir.Expr {
	lo := rapid.IntRange(0, 31).Draw(t, "from")
	hi := rapid.IntRange(lo, 31).Draw(t, "to")
	return &ir.Expr{Op: ir.Slice, Hi: hi, Lo: lo, Bits: hi - lo + 1, Args: []*ir.Expr{b.use(name.Draw(t, "name"))}}
}

// walkPaths calls f with every path from entry to exit.
func walkPaths(p *ir.Program, f func(path []int)) {
	var from func(path []int)
	from = func(path []int) {
		in := p.Code[path[len(path)-1]]
		if in.Op == ir.End {
			f(path)
		}
		for _, s := range in.Succ {
			from(append(slices.Clone(path), s.To))
		}
	}
	from([]int{0})
}

// Along every path each bit that is used was last written by an instruction
// that the analysis has, and it has no other.
func TestReachingDefinitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		want := map[string]bool{}
		walkPaths(p, func(path []int) {
			last := map[string][]int{} // by bit: the definitions that may be the last
			for _, i := range path {
				usesOf(p.Code[i], func(v *ir.Var, hi, lo int) {
					for bit := lo; bit <= hi; bit++ {
						at := fmt.Sprint(v.Name, bit)
						defs := last[at]
						if defs == nil {
							defs = []int{entry}
						}
						for _, d := range defs {
							want[fmt.Sprint(i, " ", at, " ", d)] = true
						}
					}
				})
				for _, d := range p.Code[i].Defs {
					for bit := d.Lo; bit <= d.Hi; bit++ {
						at := fmt.Sprint(d.Var.Name, bit)
						switch {
						case !d.May:
							last[at] = []int{i}
						case last[at] == nil:
							last[at] = []int{entry, i}
						default:
							last[at] = append(slices.Clone(last[at]), i)
						}
					}
				}
			}
		})
		got := map[string]bool{}
		for i, uses := range newFlow(p).uses {
			for _, u := range uses {
				for bit := u.lo; bit <= u.hi; bit++ {
					for _, d := range u.defs {
						got[fmt.Sprint(i, " ", u.v.Name, bit, " ", d)] = true
					}
				}
			}
		}
		for k := range want {
			if !got[k] {
				t.Errorf("no definition for use %s", k)
			}
		}
		for k := range got {
			if !want[k] {
				t.Errorf("no path for use %s", k)
			}
		}
	})
}

// An instruction is control dependent on a branch, by the definition: on one of
// the branch's ways every path to the exit comes to it, on another one a path
// does not.
func TestControlDependence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		f := newFlow(p)
		always := func(from, i int) bool { // every path from there comes to i
			var avoids func(at int) bool
			seen := map[int]bool{}
			avoids = func(at int) bool {
				if at == i || seen[at] {
					return false
				}
				seen[at] = true
				if at == f.end {
					return true
				}
				return slices.ContainsFunc(p.Code[at].Succ, func(s ir.Edge) bool { return avoids(s.To) })
			}
			return !avoids(from)
		}
		for _, b := range p.Code {
			if len(b.Succ) < 2 {
				continue
			}
			for _, in := range p.Code {
				var some, all = false, true
				for _, s := range b.Succ {
					a := always(s.To, in.ID)
					some, all = some || a, all && a
				}
				want := some && !all
				got := slices.ContainsFunc(f.control[in.ID], func(g gate) bool { return g.instr == b.ID })
				if got != want {
					t.Errorf("instruction %d depends on branch %d: %t, want %t", in.ID, b.ID, got, want)
				}
			}
		}
	})
}

// Whatever the shares, all packets are on a path, and a block's share is that
// of the packets that touch it.
func TestMixAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, err := Analyse(drawProgram(t), Options{})
		if err != nil {
			t.Fatal(err)
		}
		set := map[string]float64{}
		for _, b := range r.Branches {
			if rapid.Bool().Draw(t, "set") {
				set[b.Arms[0].Name] = rapid.Float64Range(0, 1).Draw(t, "share")
			}
		}
		m, err := r.Mix(set)
		if err != nil {
			t.Fatal(err)
		}
		total := 0.0
		for _, p := range m.Paths {
			total += p.Share
		}
		if math.Abs(total-1) > 1e-9 || math.Abs(m.Visits[r.flow.end]-1) > 1e-6 {
			t.Errorf("paths sum to %v, %v packets at the exit", total, m.Visits[r.flow.end])
		}
		seen := map[*ir.Object]int{}
		for _, b := range r.Blocks {
			for _, o := range b.Objects {
				seen[o]++
			}
			if s := m.Blocks[b.Index].Share; s < 0 || s > 1+1e-9 {
				t.Errorf("share %v of block %s", s, b.Name)
			}
		}
		for _, o := range r.Program.Objects {
			if seen[o] != 1 {
				t.Errorf("%s is in %d blocks", o.Name, seen[o])
			}
		}
	})
}
