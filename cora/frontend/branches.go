package frontend

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"nicprof/internal/fault"
	"nicprof/internal/near"
	"nicprof/p4/ir"
)

// findBranches names the ways on from each branch: an @branch region by its
// name, a table's by TABLE.hit and TABLE.miss and by the full names of its
// actions, others by FILE:LINE (true) and FILE:LINE:CASE.
func (r *Result) findBranches() {
	r.branchAt = map[int]*Branch{}
	byName := map[string]*Branch{}
	for _, in := range r.Program.Code {
		if in.Op != ir.Branch && in.Op != ir.Switch && in.Op != ir.Lookup {
			continue
		}
		if len(in.Succ) < 2 && in.Op != ir.Lookup {
			continue
		}
		b := r.branch(in)
		var key strings.Builder
		for _, a := range b.Arms {
			fmt.Fprintf(&key, "%s\n%s\n", a.Name, a.Label)
		}
		if have := byName[key.String()]; have != nil {
			have.Instrs = append(have.Instrs, in.ID)
			r.branchAt[in.ID] = have
			continue
		}
		byName[key.String()] = b
		r.branchAt[in.ID] = b
		r.Branches = append(r.Branches, b)
	}
	slices.SortStableFunc(r.Branches, func(a, b *Branch) int {
		return cmp.Or(strings.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
}

// branch describes the branch at an instruction.
func (r *Result) branch(in *ir.Instr) *Branch {
	b := &Branch{Pos: in.Pos, Instrs: []int{in.ID}}
	if in.Op == ir.Lookup {
		table := r.Name(in.Object)
		b.What = "lookup in " + table
		b.Arms = append(b.Arms, Arm{Name: table + ".hit", Share: 1}, Arm{Name: table + ".miss"})
		if len(in.Succ) > 1 {
			b.Arms = append(b.Arms, r.actionArms(in)...)
		}
		return b
	}
	if len(in.Args) > 0 {
		b.What = Text(in.Args[0])
	}
	place := fmt.Sprintf("%s:%d", filepath.Base(in.Pos.File), in.Pos.Line)
	parser := in.Stage < len(r.Program.Stages) && r.Program.Stages[in.Stage].Kind == ir.Parser
	cases, loops := 0, false
	for _, s := range in.Succ {
		if !rest(s.Label) {
			cases++
		}
		loops = loops || parser && r.reaches(s.To, in.ID)
	}
	for _, s := range in.Succ {
		a := Arm{Name: place, Label: s.Label, Share: 1 / float64(len(in.Succ))}
		if s.Label != "true" {
			a.Name += ":" + s.Label
		}
		if in.Op == ir.Switch && parser && cases > 0 && !loops {
			a.Share = 1 / float64(cases)
			if rest(s.Label) {
				a.Share = 0
			}
		}
		if region := r.Program.Code[s.To].Region; region != "" && region != in.Region {
			a.Name = region
		}
		b.Arms = append(b.Arms, a)
	}
	if in.Op == ir.Branch && parser {
		r.acceptPackets(in, b)
	}
	return b
}

// reaches tells whether a way leads from one instruction to another.
func (r *Result) reaches(from, to int) bool {
	seen := newBits(len(r.Program.Code))
	work := []int{from}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		if i == to {
			return true
		}
		for _, s := range r.Program.Code[i].Succ {
			if !seen.has(s.To) {
				seen.set(s.To)
				work = append(work, s.To)
			}
		}
	}
	return false
}

// rest tells whether a case of a parser's select takes what the others leave.
func rest(label string) bool { return label == "default" || label == "reject" }

// acceptPackets assumes that packets pass a parser's verify.
func (r *Result) acceptPackets(in *ir.Instr, b *Branch) {
	fails := func(i int) bool {
		to := r.Program.Code[i]
		return to.Op == ir.End || slices.ContainsFunc(to.Defs, func(d ir.Def) bool { return strings.HasSuffix(d.Var.Name, "parser_error") })
	}
	for k, s := range in.Succ {
		if fails(s.To) && len(in.Succ) == 2 && !fails(in.Succ[1-k].To) {
			b.Arms[k].Share, b.Arms[1-k].Share = 0, 1
		}
	}
}

// actionArms are a lookup's ways by action, for those that hit or, of the
// default action, miss.
func (r *Result) actionArms(in *ir.Instr) []Arm {
	isDefault := func(a string) bool { return a == in.Object.DefaultAction }
	idle := func(a string) bool { return strings.HasSuffix("."+a, ".NoAction") }
	hits := 0
	for _, s := range in.Succ {
		if !isDefault(s.Label) && !idle(s.Label) {
			hits++
		}
	}
	var arms []Arm
	for _, s := range in.Succ {
		a := Arm{Name: s.Label, Label: s.Label}
		switch {
		case hits == 0 && !isDefault(s.Label):
			a.Share = 1 // NoAction beside the default
		case hits > 0 && !isDefault(s.Label) && !idle(s.Label):
			a.Share = 1 / float64(hits)
		}
		arms = append(arms, a)
	}
	return arms
}

// chance is a share that a user set, or the one that was assumed.
type chance struct {
	share float64
	set   bool
}

// shares resolves what a traffic file sets to the chance of each edge, by
// branch. A branch's edges that were not set share what the others leave, in
// the proportion of their defaults.
func (r *Result) shares(set map[string]float64) (map[*Branch][]chance, error) {
	used := map[string]bool{}
	get := func(name string) (float64, bool) {
		v, ok := set[name]
		used[name] = used[name] || ok
		return v, ok
	}
	out := map[*Branch][]chance{}
	for _, b := range r.Branches {
		arms := b.Arms
		edges := make([]chance, len(r.Program.Code[b.Instrs[0]].Succ))
		if in := r.Program.Code[b.Instrs[0]]; in.Op == ir.Lookup {
			hit := r.hitChance(in, get)
			arms = slices.Clone(arms[2:])
			for k := range arms {
				if arms[k].Label == in.Object.DefaultAction {
					arms[k].Share = 1 - hit.share
				} else {
					arms[k].Share *= hit.share
				}
			}
			edges = append(edges, hit) // last: the chance of a hit
		}
		left, rest, some := 1.0, 0.0, false
		for k, a := range arms {
			if v, ok := get(a.Name); ok {
				edges[k] = chance{v, true}
				left -= v
				some = true
			} else {
				rest += a.Share
			}
		}
		if left < -1e-9 {
			return nil, fault.Inputf("branches: the shares at %s (%s) sum to %v; expected 1 at most", b.Pos, b.What, 1-left)
		}
		left = max(0, left)
		open := 0
		for k := range arms {
			if !edges[k].set {
				open++
			}
		}
		if some && open == 0 && left > 1e-9 {
			return nil, fault.Inputf("branches: the shares at %s (%s) sum to %v; expected 1", b.Pos, b.What, 1-left)
		}
		for k, a := range arms {
			switch {
			case edges[k].set:
			case rest > 0:
				edges[k].share = left * a.Share / rest
			default:
				edges[k].share = left / float64(open)
			}
			edges[k].set = some
		}
		if len(arms) == 0 && len(edges) > 1 {
			edges[0].share = 1 // one action
		}
		out[b] = edges
	}
	return out, r.unknown(set, used)
}

// hitChance is the share of a table's lookups that hit, by its local or full
// name.
func (r *Result) hitChance(in *ir.Instr, get func(string) (float64, bool)) chance {
	for _, name := range []string{r.Name(in.Object), in.Object.FullName} {
		hit, ok := get(name + ".hit")
		if miss, other := get(name + ".miss"); !ok && other {
			return chance{1 - miss, true}
		}
		if ok {
			return chance{hit, true}
		}
	}
	return chance{share: 1}
}

// unknown refuses shares that belong to no branch of the program, and shares
// that are no ratio.
func (r *Result) unknown(set map[string]float64, used map[string]bool) error {
	var names []string
	for _, b := range r.Branches {
		for _, a := range b.Arms {
			names = append(names, a.Name)
		}
	}
	for _, name := range sortedKeys(set) {
		if v := set[name]; !(v >= 0 && v <= 1) || math.IsNaN(v) {
			return fault.Inputf("branches.%s: %v is not a ratio; expected 0..1", name, v)
		}
		if used[name] {
			continue
		}
		hint := "profiler p4 lists the names"
		if meant := near.Of(name, names); len(meant) > 0 {
			hint = "did you mean " + strings.Join(meant, " or ") + "?"
		}
		return fault.Inputf("branches.%s: %s has no such branch; %s", name, r.Program.Name, hint)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
