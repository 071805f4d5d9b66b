package bmv2

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// names finds how the P4 program writes what the JSON names otherwise. Every
// field belongs to a group that shares what stands before it in the P4 source:
// all headers (the name of the parameter that holds them), each flattened
// struct of user metadata, and each other metadata instance.
type names struct {
	prefix map[string]string // by group
	nested map[string]string // flattened metadata field to its path in the struct: _bng_type3 to bng.type
	member map[string]bool   // members of metadata structs that are structs, by group: meta.bng
	order  map[string]int    // place of a flattened field in its struct
	header map[string]bool   // instances that are packet headers
	copied map[string]bool   // instances of the standard metadata's type that are not it: copies that p4c made
}

const (
	headersGroup  = "" // group of all packet headers
	scalars       = "scalars"
	userMetadata  = "userMetadata"
	standardMeta  = "standard_metadata"
	defaultHeader = "hdr"
	defaultMeta   = "meta"
)

var path = regexp.MustCompile(`^\s*([A-Za-z_]\w*(?:\.\w+|\[\d+\])+)\s*(?:=[^=]|$)`)

// split gives a field's group, and its name within what the prefix stands for.
func (n *names) split(instance, field string) (group, rest string) {
	switch {
	case n.header[instance]:
		return headersGroup, instance + "." + field
	case instance == scalars:
		if g, f, ok := strings.Cut(field, "."); ok {
			return g, f
		}
		return scalars, field // a variable
	}
	if g, inner, ok := strings.Cut(instance, "."); ok {
		return g, inner + "." + field
	}
	return instance, field
}

// vote notes that the P4 program writes the field as p, if the two go together.
func (n *names) vote(votes map[string]map[string]int, instance, field, p string) {
	group, rest := n.split(instance, field)
	if group == scalars || n.copied[instance] {
		return
	}
	name, ok := strings.CutSuffix(p, "."+rest)
	if !ok {
		var inner string
		if name, inner, ok = strings.Cut(p, "."); !ok || !strings.HasPrefix(rest, "_") {
			return
		}
		number, ok := strings.CutPrefix(rest, "_"+strings.ReplaceAll(inner, ".", "_"))
		if _, err := strconv.Atoi(number); !ok || err != nil {
			return
		}
		n.nested[group+"."+rest] = inner
		for i, c := range inner {
			if c == '.' {
				n.member[group+"."+inner[:i]] = true
			}
		}
	}
	if name == "" || strings.ContainsAny(name, "[]") {
		return
	}
	if votes[group] == nil {
		votes[group] = map[string]int{}
	}
	votes[group][name]++
}

// newNames reads the table keys' names, those of the first pipeline before
// others, and where they say nothing of a group the assignments' source.
func newNames(d *document) *names {
	n := &names{prefix: map[string]string{}, nested: map[string]string{}, member: map[string]bool{}, order: map[string]int{}, header: map[string]bool{}, copied: map[string]bool{}}
	packet := map[string]bool{} // headers that are extracted or emitted; others are variables
	for _, p := range d.Deparsers {
		for _, h := range p.Order {
			packet[h] = true
		}
	}
	for _, p := range d.Parsers {
		for _, s := range p.States {
			for _, op := range s.Ops {
				var h string
				if strings.HasPrefix(op.Op, "extract") && len(op.Parameters) > 0 && json.Unmarshal(op.Parameters[0].Value, &h) == nil {
					packet[h] = true
				}
			}
		}
	}
	types := map[string]*headerType{}
	for i := range d.HeaderTypes {
		types[d.HeaderTypes[i].Name] = &d.HeaderTypes[i]
	}
	standard := ""
	for _, h := range d.Headers {
		if h.Name == standardMeta {
			standard = h.Type
		}
	}
	for _, h := range d.Headers {
		n.copied[h.Name] = h.Metadata && h.Type == standard && h.Name != standardMeta
		n.header[h.Name] = !h.Metadata && packet[h.Name]
		if h.Name != scalars || types[h.Type] == nil {
			continue
		}
		count := map[string]int{}
		for _, f := range types[h.Type].Fields {
			var field string
			if len(f) == 0 || json.Unmarshal(f[0], &field) != nil {
				continue // told when the type is read
			}
			if g, _, ok := strings.Cut(field, "."); ok {
				n.order[field] = count[g]
				count[g]++
			}
		}
	}
	for _, source := range []func(func(instance, field, p string)){d.firstKeys, d.otherKeys, d.assignments} {
		votes := map[string]map[string]int{}
		source(func(instance, field, p string) { n.vote(votes, instance, field, p) })
		for g, v := range votes {
			if _, ok := n.prefix[g]; !ok {
				n.prefix[g] = mostVoted(v)
			}
		}
	}
	return n
}

func mostVoted(v map[string]int) string {
	best := ""
	for name, count := range v {
		if best == "" || count > v[best] || count == v[best] && name < best {
			best = name
		}
	}
	return best
}

type votingFunc = func(instance, field, p string)

func (d *document) firstKeys(vote votingFunc) {
	if len(d.Pipelines) > 0 {
		d.Pipelines[0].keys(vote)
	}
}

func (d *document) otherKeys(vote votingFunc) {
	if len(d.Pipelines) > 1 {
		for i := range d.Pipelines[1:] {
			d.Pipelines[1+i].keys(vote)
		}
	}
}

func (p *pipeline) keys(vote votingFunc) {
	for _, t := range p.Tables {
		for _, k := range t.Keys {
			var target []string
			if json.Unmarshal(k.Target, &target) == nil && len(target) == 2 && k.Name != "" {
				vote(target[0], target[1], k.Name)
			}
		}
	}
}

func (d *document) assignments(vote votingFunc) {
	for _, a := range d.Actions {
		for _, p := range a.Primitives {
			if p.Op != "assign" || p.Info == nil || len(p.Parameters) == 0 {
				continue
			}
			var target []string
			if p.Parameters[0].Type != "field" || json.Unmarshal(p.Parameters[0].Value, &target) != nil || len(target) != 2 {
				continue
			}
			if m := path.FindStringSubmatch(p.Info.Fragment); m != nil {
				vote(target[0], target[1], m[1])
			}
		}
	}
}

// headerPrefix gives the name of the parameter that holds the headers.
func (n *names) headerPrefix() string {
	if p, ok := n.prefix[headersGroup]; ok {
		return p
	}
	return defaultHeader
}

// instance gives the P4 name of a header instance.
func (n *names) instance(name string) string {
	if n.header[name] {
		return n.headerPrefix() + "." + name
	}
	return name
}

// field gives the P4 name of a field.
func (n *names) field(instance, field string) string {
	group, rest := n.split(instance, field)
	prefix, voted := n.prefix[group]
	switch {
	case group == scalars:
		return field
	case group == headersGroup:
		return n.headerPrefix() + "." + rest
	case instance == scalars:
		rest = n.flattened(group, rest)
	}
	if !voted {
		prefix = group
		if instance == scalars || group == userMetadata {
			prefix = defaultMeta
		}
	}
	return prefix + "." + rest
}

// flattened undoes p4c's flattening of structs in a struct, which turns the
// field b of the member a, the 4th field in all, to _a_b3. What is a member's
// name is seen from keys and assignments of any of its fields; else underscores
// stay.
func (n *names) flattened(group, rest string) string {
	full := group + "." + rest
	if inner, ok := n.nested[full]; ok {
		return inner
	}
	plain, ok := strings.CutPrefix(rest, "_")
	if !ok {
		return rest
	}
	short, ok := strings.CutSuffix(plain, strconv.Itoa(n.order[full]))
	if !ok || short == "" {
		return rest
	}
	inner := ""
	for i, c := range short {
		if c == '_' && n.member[group+"."+inner+short[len(inner):i]] {
			inner = short[:i] + "."
			short = inner + short[i+1:]
		}
	}
	return short
}
