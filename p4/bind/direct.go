package bind

import (
	"nicprof/p4/ir"
)

// hits adds what a v1model program need not say: a direct counter counts at
// every hit of its table. That is an access of each entry's action, all but the
// default one, unless an action of the program counts for itself.
func (b *binder) hits() {
	if b.arch != "v1model" {
		return
	}
	counts := map[*ir.Object][]*ir.Object{} // by table
	said := map[*ir.Object]bool{}
	for _, in := range b.code {
		if in.Op == ir.Count {
			said[in.Object] = true
		}
	}
	for _, o := range b.objects {
		if o.Kind == ir.Counter && o.Direct != nil && !said[o] {
			counts[o.Direct] = append(counts[o.Direct], o)
		}
	}
	// after gives the first and last of the counts behind an edge, if any.
	after := func(in *ir.Instr, label string) (first, last *ir.Instr) {
		if in.Op != ir.Lookup || label == in.Object.DefaultAction && len(in.Object.Actions) > 1 {
			return nil, nil
		}
		for _, o := range counts[in.Object] {
			c := &ir.Instr{ID: len(b.code), Op: ir.Count, Pos: in.Pos, Object: o,
				Stage: in.Stage, Control: in.Control, Action: label, Region: in.Region, Atomic: in.Atomic}
			b.code = append(b.code, c)
			if last != nil {
				last.Succ = []ir.Edge{{To: c.ID}}
			} else {
				first = c
			}
			last = c
		}
		return first, last
	}
	for _, in := range b.code {
		for i, e := range in.Succ {
			if first, last := after(in, e.Label); first != nil {
				last.Succ = []ir.Edge{{To: e.To}}
				in.Succ[i].To = first.ID
			}
		}
	}
	for i, h := range b.open {
		if first, last := after(h.from, h.label); first != nil {
			b.fill([]hole{h}, first)
			b.open[i] = hole{from: last}
		}
	}
}
