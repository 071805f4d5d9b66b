package model

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"nicprof/program"
)

// Fixed resources; fronts, banks, lines and DRAM follow.
const (
	resIO = iota
	resCores
	resFirst
)

// index is what Predict looks up instead of searching the model. It points at
// the fitted numbers, so a fitter may change them between predictions.
type index struct {
	memories []memoryIndex
	bases    []*Base
	demands  [][]indexedDemand // by base
	names    []string          // by resource
	curves   map[curveKey][]*Roofline
	rules    map[string]*RuleError
	kinds    [kinds]*OpCost // by program.Kinds, nil: not fitted
	groups   map[string]int // engine → leaf of the composition tree
	law      *lawIndex      // nil: the model has no core costs
}

const kinds = 6

type indexedDemand struct {
	resource int
	us       *Value
}

// memoryIndex resolves a memory's engines and costs.
type memoryIndex struct {
	*Memory
	latency          *Latency
	bank, line, dram int // resources
	engines          []engineIndex
}

type engineIndex struct {
	*Engine
	name    string
	front   int
	classes []classIndex
}

type classIndex struct {
	op    program.Op
	costs []*Cost // by bytes, ascending
}

type curveKey struct {
	Class
	bytes int
}

// prepared returns the model's index, made once.
func (m *Model) prepared() (*index, error) {
	if x := m.idx.Load(); x != nil {
		return x, nil
	}
	x, err := m.newIndex()
	if err != nil {
		return nil, err
	}
	m.idx.Store(x)
	return x, nil
}

// Changed drops what Predict has derived from the model. Call it after changing
// a field of a model that has been used.
func (m *Model) Changed() { m.idx.Store(nil) }

func (m *Model) newIndex() (*index, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	x := &index{
		names:  []string{"io", "me"},
		curves: map[curveKey][]*Roofline{},
		rules:  map[string]*RuleError{},
		groups: map[string]int{},
	}
	if m.BoardClass != "nfp" {
		x.names[resCores] = "cores"
	}
	resource := func(name string) int {
		if i := slices.Index(x.names, name); i >= 0 {
			return i
		}
		x.names = append(x.names, name)
		return len(x.names) - 1
	}
	for i := range m.Memories {
		mem := &m.Memories[i]
		mi := memoryIndex{Memory: mem}
		for j := range mem.Engines {
			e := &mem.Engines[j]
			ei := engineIndex{Engine: e, name: mem.Name + "." + string(e.Mode), front: resource(e.Front)}
			for k := range m.Costs {
				c := &m.Costs[k]
				if c.Memory != mem.Name || c.Mode != e.Mode {
					continue
				}
				at := slices.IndexFunc(ei.classes, func(ci classIndex) bool { return ci.op == c.Op })
				if at < 0 {
					at = len(ei.classes)
					ei.classes = append(ei.classes, classIndex{op: c.Op})
				}
				ei.classes[at].costs = append(ei.classes[at].costs, c)
			}
			for _, ci := range ei.classes {
				slices.SortFunc(ci.costs, func(a, b *Cost) int { return cmp.Compare(a.Bytes, b.Bytes) })
			}
			mi.engines = append(mi.engines, ei)
		}
		mi.latency = &Latency{}
		for j := range m.Queueing.Latency {
			if l := &m.Queueing.Latency[j]; l.Memory == mem.Name {
				mi.latency = l
			}
		}
		mi.bank = resource(mem.Name + ".bank")
		mi.line = resource(mem.Name + ".line")
		if mem.CacheBytes > 0 {
			mi.dram = resource(mem.Name + ".dram")
		}
		x.memories = append(x.memories, mi)
	}
	for i := range m.Bases {
		b := &m.Bases[i]
		var ds []indexedDemand
		for j := range b.Demand {
			ds = append(ds, indexedDemand{resource(b.Demand[j].Resource), &b.Demand[j].US})
		}
		x.bases = append(x.bases, b)
		x.demands = append(x.demands, ds)
	}
	if max(len(x.names), resFirst+len(m.Composition)) > maxResources {
		return nil, fmt.Errorf("the model has %d resources; at most %d are supported", len(x.names), maxResources)
	}
	for i := range m.Rooflines {
		r := &m.Rooflines[i]
		k := curveKey{Class{r.Memory, r.Op, r.Mode}, r.Bytes}
		x.curves[k] = append(x.curves[k], r)
	}
	for _, rs := range x.curves {
		slices.SortFunc(rs, func(a, b *Roofline) int { return cmp.Compare(a.Span, b.Span) })
	}
	for i := range m.Rules {
		x.rules[m.Rules[i].Rule] = &m.Rules[i]
	}
	for i, k := range program.Kinds {
		for j := range m.Stateless {
			if c := &m.Stateless[j]; c.Kind == k {
				x.kinds[i] = c
			}
		}
	}
	for i, g := range m.Composition {
		for _, e := range g.Engines {
			x.groups[e] = i
		}
	}
	x.law = newLawIndex(m)
	return x, nil
}

// check holds the model's parts against each other.
func (m *Model) check() error {
	if m.Schema != Schema {
		return fmt.Errorf("schema %q; this program writes %s", m.Schema, Schema)
	}
	finite := func(what string, v Value) error {
		for _, f := range []float64{v.Value, v.Low, v.High} {
			if math.IsNaN(f) || math.IsInf(f, 0) {
				return fmt.Errorf("%s is not a finite number", what)
			}
		}
		if v.Value < 0 {
			return fmt.Errorf("%s is negative: %g", what, v.Value)
		}
		return nil
	}
	var errs []error
	for _, b := range m.Bases {
		if b.Cores < 1 || b.Threads < 1 {
			errs = append(errs, fmt.Errorf("base %s: %d cores of %d threads", b.Name, b.Cores, b.Threads))
		}
		errs = append(errs, finite("base "+b.Name+" core_us", b.CoreUS), finite("base "+b.Name+" io_mpps", b.IOMpps))
	}
	known := map[string]bool{}
	for _, mem := range m.Memories {
		for _, e := range mem.Engines {
			known[mem.Name+"."+string(e.Mode)] = true
			if e.MaxBytes < 4 {
				errs = append(errs, fmt.Errorf("memory %s: engine %s has max_bytes %d", mem.Name, e.Mode, e.MaxBytes))
			}
		}
	}
	for _, r := range m.Rooflines {
		c := Class{r.Memory, r.Op, r.Mode}
		name := fmt.Sprintf("roofline %s %d B", c, r.Bytes)
		if !known[c.Engine()] {
			errs = append(errs, fmt.Errorf("%s: no memory of the model has this engine", name))
		}
		if r.Form != "eq1" && r.Form != "eq2" {
			errs = append(errs, fmt.Errorf("%s: form %q, expected eq1 or eq2", name, r.Form))
		}
		errs = append(errs, finite(name+" a_us", r.A), finite(name+" b", r.B), finite(name+" c_us", r.C), finite(name+" roof_mops", r.Roof))
	}
	for _, c := range m.Costs {
		name := fmt.Sprintf("cost %s %d B", c.Class, c.Bytes)
		errs = append(errs, finite(name+" front_us", c.Front), finite(name+" bank_us", c.Bank), finite(name+" line_us", c.Line), finite(name+" same_us", c.Same), finite(name+" miss_us", c.Miss))
	}
	if m.CoreLaw != nil {
		errs = append(errs, m.CoreLaw.check(finite))
	}
	if m.Chains != nil {
		errs = append(errs, m.Chains.check(finite))
	}
	if m.DefaultRule != "" && !slices.Contains(Rules, m.DefaultRule) {
		errs = append(errs, fmt.Errorf("default_rule %q is not one of %v", m.DefaultRule, Rules))
	}
	return errors.Join(errs...)
}

func (x *index) memory(name string) *memoryIndex {
	for i := range x.memories {
		if x.memories[i].Name == name {
			return &x.memories[i]
		}
	}
	return nil
}

func (m *memoryIndex) engine(mode program.Mode) *engineIndex {
	for i := range m.engines {
		if m.engines[i].Mode == mode {
			return &m.engines[i]
		}
	}
	return nil
}

func (e *engineIndex) class(op program.Op) *classIndex {
	for i := range e.classes {
		if e.classes[i].op == op {
			return &e.classes[i]
		}
	}
	return nil
}

// commandCost interpolates between the measured sizes around n.
type commandCost struct{ front, bank, line, same, miss, missFront, rel float64 }

func (c *classIndex) at(n int) commandCost {
	hi := 0
	for hi < len(c.costs)-1 && c.costs[hi].Bytes < n {
		hi++
	}
	h := c.costs[hi]
	out := commandCost{h.Front.Value, h.Bank.Value, h.Line.Value, h.Same.Value, h.Miss.Value, h.MissFront.Value, h.Front.Rel()}
	if hi == 0 || h.Bytes == n {
		return out
	}
	l := c.costs[hi-1]
	w := (float64(n) - float64(l.Bytes)) / float64(h.Bytes-l.Bytes)
	mix := func(a, b float64) float64 { return a + (b-a)*min(w, 1) }
	return commandCost{
		mix(l.Front.Value, h.Front.Value), mix(l.Bank.Value, h.Bank.Value),
		mix(l.Line.Value, h.Line.Value), mix(l.Same.Value, h.Same.Value), mix(l.Miss.Value, h.Miss.Value), mix(l.MissFront.Value, h.MissFront.Value), max(l.Front.Rel(), h.Front.Rel()),
	}
}
