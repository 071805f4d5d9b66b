package board

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"nicprof/internal/config"
	"nicprof/program"
)

// findings complains about what the schema cannot see in a board: names that
// are used twice or not defined, sizes that do not fit into each other.
func (b *Board) findings() config.Findings {
	var f config.Findings
	bases := map[string]bool{}
	for i, base := range b.Bases {
		path := fmt.Sprintf("bases[%d]", i)
		if bases[base.Name] {
			f.Add(path+".name", "base %q is described twice", base.Name)
		}
		bases[base.Name] = true
		if _, err := strconv.Atoi(base.Name); err == nil {
			f.Add(path+".name", "%q means a base of that many cycles; use a word", base.Name)
		}
		if most := b.Cores.Value; base.Cores.Value > most && most > 0 {
			f.Add(path+".cores", "%v cores; the board has %v", base.Cores.Value, most)
		}
		if most := b.Threads.Value; base.Threads.Value > most && most > 0 {
			f.Add(path+".threads", "%v threads a core; the board has %v", base.Threads.Value, most)
		}
		for j, d := range base.Demand {
			path := fmt.Sprintf("%s.demand[%d]", path, j)
			if m := b.Memory(d.Memory); m == nil {
				f.Add(path+".memory", "%s", b.noMemory(d.Memory))
			} else if m.Engine(program.Mode(d.Mode)) == nil {
				f.Add(path+".mode", "%s", m.noMode(program.Mode(d.Mode)))
			}
		}
	}
	memories := map[string]bool{}
	for i := range b.Memories {
		m := &b.Memories[i]
		path := fmt.Sprintf("memories[%d]", i)
		if memories[m.Name] {
			f.Add(path+".name", "memory %q is described twice", m.Name)
		}
		memories[m.Name] = true
		f.AddAll(path, m.findings())
	}
	if name := b.Locks.Memory; name != "" {
		m := b.Memory(name)
		if m == nil {
			f.Add("locks.memory", "%s", b.noMemory(name))
		} else if e := m.Engine(program.Atomic); e == nil || e.TestSet == nil {
			f.Add("locks.memory", "memory %s has no test_set in an atomic engine, which locks need", name)
		} else if by := m.SharedBy.Value; by > 0 && by < b.Cores.Value {
			f.Add("locks.memory", "memory %s is shared by %v of %v cores; a lock lies where all cores meet", name, by, b.Cores.Value)
		}
	}
	if b.Class == "soc" {
		f = append(f, b.hierarchy()...)
	}
	if b.FPGA != nil {
		f.AddAll("fpga", b.FPGA.findings())
	}
	numbers("", reflect.ValueOf(b).Elem(), func(path string, n Num) {
		ranged := n.Low != 0 || n.High != 0
		switch {
		case ranged && !(n.Low <= n.Value && n.Value <= n.High):
			f.Add(path, "%v is not within its range %v to %v", n.Value, n.Low, n.High)
		case !ranged && b.Class == "soc" && n.Confidence == "L" && !strings.HasPrefix(n.Source, carriedOver):
			f.Add(path, "confidence L without a range; give low and high")
		}
	})
	return f
}

// Limits of a cache hierarchy: cores of a tile, and bytes of a cache.
const (
	mostMates = 6
	mostCache = 1 << 30
)

// hierarchy complains about the memories of a board of class soc: a cache a
// core, one a tile and one for all, and the DRAM, each larger than the one
// before.
func (b *Board) hierarchy() config.Findings {
	var f config.Findings
	if len(b.Memories) != 4 {
		f.Add("memories", "class soc has 4: caches of a core, of a tile and of all cores, and the DRAM; got %d", len(b.Memories))
		return f
	}
	cores := b.Cores.Value
	for i := range b.Memories {
		m := &b.Memories[i]
		path := fmt.Sprintf("memories[%d]", i)
		switch by := m.SharedBy.Value; {
		case i == 0 && by != 1:
			f.Add(path+".shared_by", "the first cache is a core's own; got %v", by)
		case i == 1 && (by > mostMates || math.Mod(cores, by) != 0):
			f.Add(path+".shared_by", "%v cores a tile; expected at most %d, and a divisor of the %v cores", by, mostMates, cores)
		case i >= 2 && by != cores:
			f.Add(path+".shared_by", "all %v cores share it; got %v", cores, by)
		}
		if i > 0 && m.Bytes <= b.Memories[i-1].Bytes {
			f.Add(path+".bytes", "%d B, not more than the %d B of %s before it", m.Bytes, b.Memories[i-1].Bytes, b.Memories[i-1].Name)
		}
		line := m.LineBytes.Value
		if line != b.Memories[0].LineBytes.Value {
			f.Add(path+".line_bytes", "%v B; %s has %v", line, b.Memories[0].Name, b.Memories[0].LineBytes.Value)
		}
		if i == 3 {
			continue
		}
		ways := m.Ways.Value
		if ways == 0 {
			f.Add(path, "missing ways")
		} else if sets := float64(m.Bytes) / line / ways; sets < 1 || sets != math.Trunc(sets) || m.Bytes > mostCache {
			f.Add(path+".bytes", "%d B are no whole number of sets of %v lines of %v B, or more than %d B", m.Bytes, ways, line, mostCache)
		}
	}
	return f
}

// numbers calls f with every number below v that is set, and its path.
func numbers(path string, v reflect.Value, f func(path string, n Num)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			numbers(path, v.Elem(), f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			numbers(fmt.Sprintf("%s[%d]", path, i), v.Index(i), f)
		}
	case reflect.Map:
		for _, k := range slices.Sorted(maps.Keys(v.Interface().(OpCycles))) {
			numbers(path+"."+k, v.MapIndex(reflect.ValueOf(k)), f)
		}
	case reflect.Struct:
		if n, ok := v.Interface().(Num); ok {
			if n.Source != "" {
				f(path, n)
			}
			return
		}
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			if path != "" {
				name = path + "." + name
			}
			numbers(name, v.Field(i), f)
		}
	}
}

func (m *Memory) findings() config.Findings {
	var f config.Findings
	if m.Bytes > 0 && m.DefaultSpan > m.Bytes/4 {
		f.Add("default_span", "%d elements of 4 B do not fit into %d B", m.DefaultSpan, m.Bytes)
	}
	if m.Cache != nil && m.Bytes > 0 && m.Cache.Bytes.Value > float64(m.Bytes) {
		f.Add("cache.bytes", "a cache of %v B before a memory of %d B", m.Cache.Bytes.Value, m.Bytes)
	}
	modes := map[program.Mode]bool{}
	for i, e := range m.Engines {
		path := fmt.Sprintf("engines[%d]", i)
		if modes[e.Mode] {
			f.Add(path+".mode", "the %s engine is described twice", e.Mode)
		}
		modes[e.Mode] = true
		if e.Read == nil && e.Write == nil && e.Add == nil && e.TestSet == nil {
			f.Add(path, "an engine without a command; expected read, write, add or test_set")
		}
		if e.Mode == program.Bulk && (e.Add != nil || e.TestSet != nil) {
			f.Add(path, "add and test_set are commands of an atomic engine")
		}
	}
	return f
}

// Check holds a program against the board: memories, operations, spans, bases,
// stateless kinds, and cores and threads (contexts a core) wanted, 0 for all of
// the base. Its error is the user's fault; each finding says what there is
// instead. A program that passes runs on the board.
func (b *Board) Check(p program.Program, cores, threads int) error {
	if err := p.Validate(); err != nil {
		return err
	}
	var f config.Findings
	base, err := b.Base(p.Base)
	if err != nil {
		return err
	}
	most := int(base.Cores.Value)
	if b.FPGA != nil {
		most = int(b.FPGA.Regions.Count.Value)
	}
	if cores < 0 || cores > most {
		f.Add("cores", "%d; base %s of board %s runs on 1..%d", cores, base.Name, b.Name, most)
	}
	if most := int(b.Threads.Value); threads < 0 || threads > most {
		f.Add("threads", "%d; a core of board %s has 1..%d", threads, b.Name, most)
	}
	for _, kind := range program.Kinds {
		if _, ok := b.Stateless[kind]; p.Stateless[kind] > 0 && !ok {
			f.Add("stateless."+kind, "board %s has no cost of it; it has %s", b.Name, strings.Join(b.kinds(), ", "))
		}
	}
	if len(p.Chain) > 0 && b.Class != "fpga" {
		f.Add("chain", "board %s (class %s) runs no chain of network tasks", b.Name, b.Class)
	}
	if b.FPGA != nil {
		f = append(f, b.FPGA.check(p, max(1, cores), b.Name)...)
	}
	r := b.Resolve(p)
	for i, a := range r.Accesses {
		f.AddAll(fmt.Sprintf("accesses[%d]", i), b.checkAccess(a))
	}
	for i, l := range r.Locks {
		path := fmt.Sprintf("locks[%d]", i)
		m := b.Memory(b.Locks.Memory)
		if m == nil {
			f.Add(path, "board %s has no memory for lock words", b.Name)
			continue
		}
		if stride := int64(b.Locks.WordStride.Value); int64(l.Elements) > m.Bytes/stride {
			f.Add(path+".elements", "%d lock words %d B apart are more than the %d B of %s", l.Elements, stride, m.Bytes, m.Name)
		}
		if l.Idiom == program.Mutex && b.Class != "host" {
			f.Add(path+".idiom", "a mutex puts a waiting thread to sleep, and board %s (class %s) has no operating system to do so; use spin, ticket or sleep-CYCLES", b.Name, b.Class)
		}
		if l.Idiom == program.Ticket && m.Engine(program.Atomic).Add == nil {
			f.Add(path+".idiom", "a ticket lock needs an atomic add, which %s has not", m.Name)
		}
		for j, a := range l.Section {
			f.AddAll(fmt.Sprintf("%s.section[%d]", path, j), b.checkAccess(a))
		}
	}
	return f.Err()
}

// checkAccess complains about a resolved access.
func (b *Board) checkAccess(a program.Access) config.Findings {
	var f config.Findings
	m := b.Memory(a.Memory)
	if m == nil {
		f.Add("memory", "%s", b.noMemory(a.Memory))
		return f
	}
	if e := m.Engine(a.Mode); e == nil {
		f.Add("mode", "%s", m.noMode(a.Mode))
	} else if e.Command(a.Op) == nil {
		f.Add("op", "the %s engine of %s has no %s; it has %s", a.Mode, m.Name, a.Op, strings.Join(e.ops(), ", "))
	}
	if most := m.span(a); a.Span > most {
		f.Add("span", "%d elements %d B apart are more than the %d B of %s; at most %d", a.Span, a.Stride, m.Bytes, m.Name, most)
	}
	return f
}

func (b *Board) noMemory(name string) string {
	if len(b.Memories) == 0 {
		return fmt.Sprintf("board %s has no memory %q: its programs are chains of network tasks, without accesses", b.Name, name)
	}
	var have []string
	for _, m := range b.Memories {
		have = append(have, m.Name)
	}
	return fmt.Sprintf("board %s has no memory %q; it has %s", b.Name, name, strings.Join(have, ", "))
}

func (m *Memory) noMode(mode program.Mode) string {
	var have []string
	for _, e := range m.Engines {
		have = append(have, string(e.Mode))
	}
	return fmt.Sprintf("memory %s has no %s engine; it has %s", m.Name, mode, strings.Join(have, ", "))
}

func (e *Engine) ops() []string {
	var have []string
	for _, op := range []program.Op{program.Read, program.Write, program.Add} {
		if e.Command(op) != nil {
			have = append(have, string(op))
		}
	}
	return have
}

func (b *Board) kinds() []string {
	var have []string
	for _, kind := range program.Kinds {
		if _, ok := b.Stateless[kind]; ok {
			have = append(have, kind)
		}
	}
	return have
}
