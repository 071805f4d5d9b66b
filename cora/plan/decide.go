package plan

import (
	"cmp"
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

// ways has the packets of a capture or CSV take the program's paths by their own
// headers: a branch that fields decide, in the parser or behind it, sends each
// flow where its packets go. What fields do not decide (look-ups, state, shares
// that a user has set) parts the packets of every flow alike.
type ways struct {
	list   []frontend.Way
	set    map[string]float64 // by the user
	vars   []*ir.Var          // that decide, by field of key
	key    traffic.Key
	kinds  [][]chance // what groups of packets take, numbered
	kindOf map[string]int32
	arms   map[*frontend.Branch][]float64 // packets by arm
}

// chance is a path with the share of packets that take it, by its number in ways.
type chance struct {
	way   int
	share float64
}

// findWays lists the ways of the program under what the user has set, and the
// fields that traffic has to tell.
func (b *builder) findWays(set map[string]float64) (*ways, error) {
	m, err := b.Front.Mix(set)
	if err != nil {
		return nil, err
	}
	w := &ways{list: m.Ways, set: set, kindOf: map[string]int32{}, arms: map[*frontend.Branch][]float64{}}
	for _, way := range w.list {
		for _, c := range way.Conditions {
			if w.given(c.Branch) {
				continue
			}
			for _, v := range c.Fields() {
				at, ok := b.fields.at[v]
				if ok && at.Bits <= 64 && !slices.Contains(w.vars, v) {
					w.vars, w.key = append(w.vars, v), append(w.key, at)
				}
			}
		}
	}
	return w, nil
}

// given says whether the user has set a share of a branch.
func (w *ways) given(b *frontend.Branch) bool {
	return slices.ContainsFunc(b.Arms, func(a frontend.Arm) bool {
		_, ok := w.set[a.Name]
		return ok
	})
}

// count works out what the packets of each group decide, counts the packets that
// take each way and arm, and returns the kind of a group: which of kinds its
// packets take.
func (w *ways) count(g *traffic.Groups, none float64) func(group int) int32 {
	kinds := make([]int32, g.N())
	for i, packets := range g.Packets {
		kinds[i] = w.kind(g.Label(i), packets)
	}
	rest := int32(-1)
	if none > 0 {
		rest = w.kind(nil, none)
	}
	return func(group int) int32 {
		if group == traffic.NoGroup {
			return rest
		}
		return kinds[group]
	}
}

// kind is what packets with these fields take; nil: they have none of them.
func (w *ways) kind(label []string, packets float64) int32 {
	known := map[string]string{}
	for i, v := range w.vars {
		has := label != nil && label[i] != "-"
		switch {
		case v.Kind == ir.Validity && has:
			known[v.Name] = "1"
		case v.Kind == ir.Validity:
			known[v.Name] = "0"
		case has:
			if n, ok := number(label[i]); ok {
				known[v.Name] = n
			}
		}
	}
	var take []chance
	var name strings.Builder
	for i, way := range w.list {
		share := way.Given
		for _, c := range way.Conditions {
			switch holds, decided := c.Holds(known); {
			case !decided || w.given(c.Branch):
				share *= c.Chance
			case !holds:
				share = 0
			}
			if share == 0 {
				break
			}
		}
		if share > 0 {
			take = append(take, chance{i, share})
			fmt.Fprintf(&name, "%d:%v ", i, share)
		}
	}
	for _, c := range take {
		for _, x := range w.list[c.way].Conditions {
			if w.arms[x.Branch] == nil {
				w.arms[x.Branch] = make([]float64, len(x.Branch.Arms))
			}
			w.arms[x.Branch][x.Arm] += c.share * packets
		}
	}
	k, ok := w.kindOf[name.String()]
	if !ok {
		k = int32(len(w.kinds))
		w.kindOf[name.String()] = k
		w.kinds = append(w.kinds, take)
	}
	return k
}

// shares are those of the branches' arms, as counted, beside what the user has
// set: for what is the mean over all packets. found lists in words those that
// part packets.
func (w *ways) shares(front *frontend.Result) (shares map[string]float64, found []string) {
	shares = maps.Clone(w.set)
	if shares == nil {
		shares = map[string]float64{}
	}
	names := map[string]int{}
	for _, branch := range front.Branches {
		for _, a := range branch.Arms {
			names[a.Name]++
		}
	}
	for _, branch := range front.Branches {
		total := 0.0
		for _, packets := range w.arms[branch] {
			total += packets
		}
		if total == 0 || w.given(branch) || slices.ContainsFunc(branch.Arms, func(a frontend.Arm) bool { return names[a.Name] > 1 }) {
			continue
		}
		for k, a := range branch.Arms {
			share := w.arms[branch][k] / total
			shares[a.Name] = share
			if share > 0 && share < 1 {
				found = append(found, fmt.Sprintf("%s %.3g", a.Name, share))
			}
		}
	}
	return shares, found
}

// paths are the paths of the ways that packets take, with their shares, the most
// taken first; of is the path of each way, -1 of those that none takes.
func (w *ways) paths(packets []float64, kind []int32) (paths []frontend.Path, of []int) {
	total := 0.0
	taken := make([]float64, len(w.list))
	for class, n := range packets {
		total += n
		for _, c := range w.kinds[kind[class]] {
			taken[c.way] += n * c.share
		}
	}
	index := map[string]int{}
	for i, way := range w.list {
		if taken[i] == 0 {
			continue
		}
		name := fmt.Sprint(way.Blocks, way.Dropped, way.Host)
		k, ok := index[name]
		if !ok {
			k = len(paths)
			index[name] = k
			paths = append(paths, frontend.Path{Blocks: way.Blocks, Dropped: way.Dropped, Host: way.Host})
		}
		paths[k].Share += taken[i] / total
	}
	slices.SortStableFunc(paths, func(a, b frontend.Path) int { return cmp.Compare(b.Share, a.Share) })
	for k, p := range paths {
		index[fmt.Sprint(p.Blocks, p.Dropped, p.Host)] = k
	}
	for i, way := range w.list {
		if taken[i] == 0 {
			of = append(of, -1)
			continue
		}
		of = append(of, index[fmt.Sprint(way.Blocks, way.Dropped, way.Host)])
	}
	return paths, of
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
