package frontend

import (
	"slices"
	"strings"

	"nicprof/p4/ir"
)

// again is an instruction from which a packet comes a second time: through the
// whole pipeline with its headers as they came in (resubmission) or as they left
// (recirculation), or, as a clone, through egress.
type again struct {
	in      *ir.Instr
	headers bool // as they left
	clone   bool
}

// passages finds the instructions from which packets come again.
func passages(p *ir.Program) []again {
	var out []again
	for _, in := range p.Code {
		if in.Op != ir.Extern || in.Object != nil {
			continue
		}
		switch in.Name {
		case "resubmit", "resubmit_preserving_field_list", "Resubmit.emit", "psa_resubmit":
			out = append(out, again{in: in})
		case "recirculate", "recirculate_preserving_field_list", "psa_recirculate":
			out = append(out, again{in: in, headers: true})
		case "clone", "clone3", "clone_preserving_field_list", "Mirror.emit", "psa_clone_i2e", "psa_clone_e2e", "mirror_packet":
			out = append(out, again{in: in, clone: true})
		}
	}
	return out
}

// carry adds to what reaches uses what a packet may bring with it when it comes
// again: any value that the program gives a header field or what is kept of
// metadata. It is not followed which of them. The result names, by instruction
// that packets come again from, the locations for which that made a difference.
func (f *flow) carry() map[int][]*ir.Var {
	out := map[int][]*ir.Var{}
	for _, a := range passages(f.p) {
		for v, defs := range f.brought(a) {
			if f.add(a, v, defs) {
				out[a.in.ID] = append(out[a.in.ID], v)
			}
		}
		slices.SortFunc(out[a.in.ID], func(x, y *ir.Var) int { return strings.Compare(x.Name, y.Name) })
	}
	return out
}

// brought lists, by location, the instructions whose values a packet may bring.
func (f *flow) brought(a again) map[*ir.Var][]int {
	kept := map[*ir.Var]bool{}
	for _, e := range a.in.Args {
		usesIn(e, func(v *ir.Var, _, _ int) { kept[v] = true })
	}
	lists := strings.HasSuffix(a.in.Name, "_preserving_field_list")
	out := map[*ir.Var][]int{}
	for _, in := range f.p.Code {
		late := in.Stage < len(f.p.Stages) && f.p.Stages[in.Stage].Kind == ir.Deparser
		for _, d := range in.Defs {
			v := d.Var
			switch {
			case in.Op == ir.Extract && in.Type != "" && in.Type == a.in.Type: // what is sent along as a header
				out[v] = append(out[v], a.in.ID)
			case in.Op == ir.Extract || in.Op == ir.SetValid || in.Op == ir.SetInvalid:
			case kept[v], lists && v.Kept, a.headers && v.Kind == ir.HeaderField, late && v.Kind == ir.Metadata:
				out[v] = append(out[v], in.ID)
			}
		}
	}
	return out
}

// add adds definitions to the uses that a packet which comes again brings them
// to, and tells whether there is such a use.
func (f *flow) add(a again, v *ir.Var, defs []int) bool {
	found := false
	for i, uses := range f.uses {
		for k, u := range uses {
			if u.v != v {
				continue
			}
			comes := slices.ContainsFunc(u.defs, func(d int) bool { return d == entry || f.p.Code[d].Op == ir.Extract })
			if a.clone {
				comes = f.p.Code[i].Stage > a.in.Stage
			}
			if !comes {
				continue
			}
			more := slices.Concat(u.defs, defs)
			slices.Sort(more)
			more = slices.Compact(more)
			found = found || len(more) > len(u.defs)
			f.uses[i][k].defs = more
		}
	}
	return found
}
