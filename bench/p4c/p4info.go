package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"nicprof/p4/ir"
)

// summary is what a program declares to the control plane, an entry an object:
// "table ingress.t" to its size and keys. P4Info files and programs are reduced
// to it to be compared.
type summary map[string]string

// unknownBits stands for a width that P4Info gives only as a controller sees
// it, of a type with @p4runtime_translation; it agrees with any.
const unknownBits = "?"

// p4info reduces a P4Info file.
func p4info(text string) (summary, error) {
	m, err := parseText(text)
	if err != nil {
		return nil, err
	}
	s := summary{}
	tables := map[string]string{}
	for _, t := range m.messages("tables") {
		name := t.at("preamble").text("name")
		tables[t.at("preamble").text("id")] = name
		var keys []string
		for _, f := range t.messages("match_fields") {
			match := strings.ToLower(f.text("match_type"))
			if match == "" {
				match = strings.ToLower(f.text("other_match_type"))
			}
			bits := f.text("bitwidth")
			if f.at("type_name") != nil && m.translated(f.at("type_name").text("name")) {
				bits = unknownBits
			}
			keys = append(keys, match+" "+bits)
		}
		s["table "+name] = fmt.Sprintf("size %s, keys %s", t.text("size"), strings.Join(keys, ", "))
	}
	for _, r := range m.messages("registers") {
		s["register "+r.at("preamble").text("name")] = fmt.Sprintf("size %s, %s bits", r.text("size"), m.width(r.at("type_spec"), 0))
	}
	for _, kind := range []string{"counter", "meter"} {
		for _, c := range m.messages(kind + "s") {
			s[kind+" "+c.at("preamble").text("name")] = fmt.Sprintf("size %s, %s", c.text("size"), strings.ToLower(c.at("spec").text("unit")))
		}
		for _, c := range m.messages("direct_" + kind + "s") {
			s[kind+" "+c.at("preamble").text("name")] = fmt.Sprintf("of table %s, %s", tables[c.text("direct_table_id")], strings.ToLower(c.at("spec").text("unit")))
		}
	}
	for _, p := range m.messages("action_profiles") {
		s["action profile "+p.at("preamble").text("name")] = "size " + p.text("size")
	}
	for _, v := range m.messages("value_sets") {
		s["value set "+v.at("preamble").text("name")] = "size " + v.text("size")
	}
	return s, nil
}

// translated tells whether a new type is one that the controller sees otherwise.
func (m message) translated(name string) bool {
	for _, t := range m.at("type_info").messages("new_types") {
		if t.text("key") == name {
			return t.at("value", "translated_type") != nil
		}
	}
	return false
}

// width gives the bits of a type, as text; depth bounds types of types.
func (m message) width(spec message, depth int) string {
	if depth > maxDepth {
		return unknownBits
	}
	types := m.at("type_info")
	named := func(list, name string) message {
		for _, t := range types.messages(list) {
			if t.text("key") == name {
				return t.at("value")
			}
		}
		return nil
	}
	sum := func(parts []message) string {
		total := 0
		for _, p := range parts {
			n, err := strconv.Atoi(m.width(p, depth+1))
			if err != nil {
				return unknownBits
			}
			total += n
		}
		return strconv.Itoa(total)
	}
	for kind := range spec {
		inner := spec.at(kind)
		name := inner.text("name")
		switch kind {
		case "bitstring":
			for _, sort := range []string{"bit", "int", "varbit"} {
				if b := inner.at(sort); b != nil {
					return b.text("bitwidth") + b.text("max_bitwidth")
				}
			}
		case "bool":
			return "1"
		case "tuple":
			return sum(inner.messages("members"))
		case "struct":
			var parts []message
			for _, member := range named("structs", name).messages("members") {
				parts = append(parts, member.at("type_spec"))
			}
			return sum(parts)
		case "header":
			var parts []message
			for _, member := range named("headers", name).messages("members") {
				parts = append(parts, message{"bitstring": {{message: member.at("type_spec")}}})
			}
			return sum(parts)
		case "serializable_enum":
			return m.width(message{"bitstring": {{message: message{"bit": {{message: named("serializable_enums", name).at("underlying_type")}}}}}}, depth+1)
		case "new_type":
			t := named("new_types", name)
			if t.at("original_type") == nil {
				return unknownBits
			}
			return m.width(t.at("original_type"), depth+1)
		}
	}
	return unknownBits
}

// defaultSize is the number of entries that P4Info gives a table that declares
// none (P4Runtime specification; p4c writes it).
const defaultSize = 1024

// declared reduces a program.
func declared(p *ir.Program) summary {
	s := summary{}
	for _, o := range p.Objects {
		name := strings.TrimPrefix(o.FullName, ".")
		if slices.Contains(o.Annotations, "hidden") {
			continue
		}
		unit := o.Unit
		if unit == "packets_and_bytes" {
			unit = "both"
		}
		switch o.Kind {
		case ir.Table:
			var keys []string
			for _, k := range o.Keys {
				if k.Match != "selector" {
					keys = append(keys, fmt.Sprintf("%s %d", k.Match, k.Bits))
				}
			}
			size := o.Elements
			if !o.SizeDeclared {
				size = defaultSize
			}
			s["table "+name] = fmt.Sprintf("size %d, keys %s", size, strings.Join(keys, ", "))
		case ir.Register:
			s["register "+name] = fmt.Sprintf("size %d, %d bits", o.Elements, o.Bits)
		case ir.Counter, ir.Meter:
			if o.Direct != nil {
				s[string(o.Kind)+" "+name] = fmt.Sprintf("of table %s, %s", strings.TrimPrefix(o.Direct.FullName, "."), unit)
			} else {
				s[string(o.Kind)+" "+name] = fmt.Sprintf("size %d, %s", o.Elements, unit)
			}
		case ir.Profile, ir.Selector:
			s["action profile "+name] = fmt.Sprintf("size %d", o.Elements)
		case ir.ValueSet:
			s["value set "+name] = fmt.Sprintf("size %d", o.Elements)
		}
	}
	return s
}

// differences lists in what got is not as wanted, an object a line, and counts
// the objects that are.
func differences(got, want summary) (diff []string, alike int) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		g, ok := got[name]
		switch {
		case !ok:
			diff = append(diff, "no "+name)
		case !same(g, want[name]):
			diff = append(diff, fmt.Sprintf("%s has %s; expected %s", name, g, want[name]))
		default:
			alike++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			diff = append(diff, "an unexpected "+name)
		}
	}
	return diff, alike
}

// same compares two descriptions word by word; an unknown width fits any.
func same(a, b string) bool {
	as, bs := strings.Fields(a), strings.Fields(b)
	return slices.EqualFunc(as, bs, func(x, y string) bool {
		return x == y || strings.TrimRight(x, ",") == unknownBits || strings.TrimRight(y, ",") == unknownBits
	})
}
