package plan

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"strings"

	"nicprof/cora/frontend"
	"nicprof/p4/ir"
	"nicprof/traffic"
)

// decision is a branch that the fields of a packet decide, as it came in.
type decision struct {
	branch *frontend.Branch
	instr  *ir.Instr
	vars   []*ir.Var
	key    traffic.Key
}

// measureShares adds to the shares that a user has set those of branches which
// packets of a capture or CSV decide by their own fields.
func (b *builder) measureShares(set map[string]float64) (map[string]float64, error) {
	decisions := b.decisions(set)
	if len(decisions) == 0 {
		return set, nil
	}
	var keys []traffic.Key
	for _, d := range decisions {
		keys = append(keys, d.key)
	}
	_, v, err := traffic.LoadVolumes(b.Traffic, keys, traffic.VolumeOptions{})
	if err != nil || v == nil {
		return set, err
	}
	shares := maps.Clone(set)
	if shares == nil {
		shares = map[string]float64{}
	}
	var found []string
	for i, d := range decisions {
		arms, ok := d.count(v.Keys[i])
		if !ok {
			continue
		}
		for k, a := range d.branch.Arms {
			shares[a.Name] = arms[k]
			if arms[k] > 0 && arms[k] < 1 {
				found = append(found, fmt.Sprintf("%s %.3g", a.Name, arms[k]))
			}
		}
	}
	if len(found) > 0 {
		b.note("shares of branches counted from the packets: %s", strings.Join(found, ", "))
	}
	return shares, nil
}

// decisions lists the branches that header fields alone decide, and for which
// nobody has set a share. A parser's are not among them: which headers a packet
// has decides which paths it can take.
func (b *builder) decisions(set map[string]float64) []decision {
	names := map[string]int{}
	for _, branch := range b.Front.Branches {
		for _, a := range branch.Arms {
			names[a.Name]++
		}
	}
	var out []decision
	for _, branch := range b.Front.Branches {
		in := b.Front.Program.Code[branch.Instrs[0]]
		if p := b.Front.Program; in.Stage < len(p.Stages) && p.Stages[in.Stage].Kind == ir.Parser {
			continue
		}
		if in.Op != ir.Branch && in.Op != ir.Switch || len(in.Args) != 1 || len(branch.Instrs) > 1 || len(branch.Arms) != len(in.Succ) {
			continue
		}
		if slices.ContainsFunc(branch.Arms, func(a frontend.Arm) bool {
			_, given := set[a.Name]
			return given || names[a.Name] > 1
		}) {
			continue
		}
		d := decision{branch: branch, instr: in}
		if b.decides(&d, in.Args[0]) && len(d.vars) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// decides collects the fields of an expression, and says whether it has nothing
// but fields of packets as they came in.
func (b *builder) decides(d *decision, e *ir.Expr) bool {
	if e.Op == ir.Any || e.Op == ir.Lookahead || e.Op == ir.InSet {
		return false
	}
	if e.Op == ir.Use && !slices.Contains(d.vars, e.Var) {
		at, ok := b.fields.at[e.Var]
		if !ok || at.Bits == 0 || at.Bits > 64 || b.rewritten(e.Var, d.instr) {
			return false
		}
		d.vars, d.key = append(d.vars, e.Var), append(d.key, at)
	}
	return !slices.ContainsFunc(e.Args, func(a *ir.Expr) bool { return !b.decides(d, a) })
}

// rewritten says whether a packet may come to an instruction with another value
// in a field than it came in with.
func (b *builder) rewritten(v *ir.Var, at *ir.Instr) bool {
	code := b.Front.Program.Code
	for _, in := range code {
		if in.Op == ir.Extract || !slices.ContainsFunc(in.Defs, func(d ir.Def) bool { return d.Var == v }) {
			continue
		}
		seen := make([]bool, len(code))
		queue := []int{in.ID}
		for len(queue) > 0 {
			i := queue[0]
			queue = queue[1:]
			for _, e := range code[i].Succ {
				if e.To == at.ID {
					return true
				}
				if !seen[e.To] {
					seen[e.To] = true
					queue = append(queue, e.To)
				}
			}
		}
	}
	return false
}

// count returns the share of each arm, of the packets that have the fields. It is
// false where the expression is not one that can be worked out.
func (d *decision) count(g *traffic.Groups) ([]float64, bool) {
	arms := make([]float64, len(d.branch.Arms))
	total := 0.0
	for i, packets := range g.Packets {
		if !g.Complete(i) {
			continue
		}
		known := map[string]string{}
		for k, text := range g.Label(i) {
			n, ok := number(text)
			if !ok {
				return nil, false
			}
			known[d.vars[k].Name] = n
		}
		v := frontend.Eval(d.instr.Args[0], known)
		if v == nil {
			return nil, false
		}
		k := d.arm(v)
		if k < 0 {
			return nil, false
		}
		arms[k] += packets
		total += packets
	}
	if total == 0 {
		return nil, false
	}
	for k := range arms {
		arms[k] /= total
	}
	return arms, true
}

// arm is the way that a value chooses, -1 for none.
func (d *decision) arm(v *big.Int) int {
	label := v.String()
	if d.instr.Op == ir.Branch {
		label = fmt.Sprint(v.Sign() != 0)
	}
	other := -1
	for k, a := range d.branch.Arms {
		switch a.Label {
		case label:
			return k
		case "default":
			other = k
		default:
			if _, ok := new(big.Int).SetString(a.Label, 10); !ok && d.instr.Op == ir.Switch {
				return -1 // a mask or a range
			}
		}
	}
	return other
}

// number turns a field as traffic prints it into a decimal number.
func number(text string) (string, bool) {
	if _, ok := new(big.Int).SetString(text, 10); ok {
		return text, true
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Is4() {
		four := a.As4()
		return fmt.Sprint(binary.BigEndian.Uint32(four[:])), true
	}
	if m, err := net.ParseMAC(text); err == nil {
		return new(big.Int).SetBytes(m).String(), true
	}
	return "", false
}
