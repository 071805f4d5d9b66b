package plan

import (
	"nicprof/cora/costs"
	"nicprof/cora/frontend"
	"nicprof/p4/ir"
	"nicprof/program"
)

// hostOps are the operations that the host executes for one visit of a block.
// groups is the number of elements that the traffic touches, which are those
// that a host keeps.
func hostOps(v *frontend.Visit, groups int64) []costs.Op {
	var ops []costs.Op
	tables := 0.0
	for _, a := range v.Accesses {
		entries := a.Span
		if entries == 0 || groups > 0 && groups < entries {
			entries = max(1, groups)
		}
		o := costs.Op{Bytes: a.Bytes, Entries: entries, Count: a.PerVisit}
		switch {
		case a.Object.Kind == ir.Table && a.Op == program.Read:
			tables += a.PerVisit
			o = lookup(a.Object, o)
		case a.Locked && a.Op == program.Read:
			o.Kind = costs.Locked
		case a.Locked && a.Op == program.Write:
			continue // the other half of a locked change
		case a.Op == program.Add:
			o.Kind = costs.Add
		case a.Op == program.Write:
			o.Kind = costs.Write
		default:
			o.Kind = costs.Read
		}
		ops = append(ops, o)
	}
	// The hash of a look-up is part of it.
	if n := v.Stateless[program.Hash] - tables; n > 0 {
		ops = append(ops, costs.Op{Kind: costs.HashCall, KeyBytes: 4, Count: n})
	}
	return ops
}

// lookup is a table's: by its hardest kind of match.
func lookup(t *ir.Object, o costs.Op) costs.Op {
	bits := 0
	o.Kind = costs.Exact
	for _, k := range t.Keys {
		bits += k.Bits
		switch k.Match {
		case "lpm":
			if o.Kind == costs.Exact {
				o.Kind = costs.LPM
			}
		case "ternary", "range", "optional":
			o.Kind = costs.Ternary
		}
	}
	if o.Kind != costs.Exact {
		o.Entries = max(t.Elements, 1) // entries are installed, whatever traffic hits
	}
	o.KeyBytes = (bits + 7) / 8
	o.Bytes = (t.Bits + 7) / 8
	return o
}
