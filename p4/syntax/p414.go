package syntax

import "fmt"

const convert = "only P4_16 is read here; p4c converts it: p4test --std p4-14 --pp NEW.p4 OLD.p4"

// p414 tells whether the next declaration is one of P4_14, and if so reports
// it and skips it.
func (p *parser) p414() bool {
	what := p.p414Decl()
	if what == "" {
		return false
	}
	t := p.tok()
	start := p.i
	p.guarded(func() { p.fail(t, "this is P4_14, an older language (%s): %s", what, convert) })
	p.advance()
	p.recover(start, "")
	return true
}

// p414Decl names the P4_14 declaration that comes next, "" if none does.
func (p *parser) p414Decl() string {
	t, a, b, c := p.tok(), p.at(1), p.at(2), p.at(3)
	if t.Kind != Name || a.Kind != Name {
		return ""
	}
	what := t.Text
	switch what {
	case "header_type", "field_list", "field_list_calculation", "calculated_field", "parser_exception",
		"register", "counter", "meter", "action_profile", "action_selector", "primitive_action", "action_function",
		"blackbox_type":
		if b.is("{") || b.is("(") && what == "primitive_action" || what == "calculated_field" && (b.is("{") || b.is(".")) {
			return what
		}
	case "parser", "control":
		if b.is("{") {
			return what + " without parameters"
		}
	case "header", "metadata", "parser_value_set":
		if b.Kind == Name && c.is(";") || b.Kind == Name && c.is("[") || b.is(";") && what == "parser_value_set" {
			return what + " of an instance"
		}
	case "table":
		if b.is("{") && (word(c, "reads") || word(c, "actions") && p.at(4).is("{")) {
			return "table with reads or without ="
		}
	case "action":
		if b.is("(") && c.Kind == Name && (p.at(4).is(",") || p.at(4).is(")")) {
			return "action whose parameters have no type"
		}
	}
	return ""
}

// blockProperty says what is wrong with a table property that is followed by
// its block at once.
func blockProperty(name string) string {
	switch name {
	case "reads":
		return "reads is P4_14; P4_16 writes key = { expression: match_kind; … }"
	case "actions":
		return "actions { is P4_14; P4_16 writes actions = { … }"
	}
	return fmt.Sprintf("expected '=' behind the property %s", name)
}

// P414Primitive tells what P4_16 writes for a primitive action of P4_14; "" if
// the name is none. A call of one is correct syntax in P4_16, so that only a
// name that is not declared gives it away.
func P414Primitive(name string) string { return primitives[name] }

var primitives = map[string]string{
	"modify_field":                        "an assignment: dst = src;",
	"modify_field_with_hash_based_offset": "hash(dst, algorithm, base, { fields }, size);",
	"modify_field_rng_uniform":            "random(dst, low, high);",
	"modify_field_conditionally":          "if (condition) dst = src;",
	"add_to_field":                        "an assignment: dst = dst + value;",
	"subtract_from_field":                 "an assignment: dst = dst - value;",
	"add":                                 "an assignment: dst = a + b;",
	"subtract":                            "an assignment: dst = a - b;",
	"bit_and":                             "an assignment: dst = a & b;",
	"bit_or":                              "an assignment: dst = a | b;",
	"bit_xor":                             "an assignment: dst = a ^ b;",
	"shift_left":                          "an assignment: dst = a << n;",
	"shift_right":                         "an assignment: dst = a >> n;",
	"add_header":                          "header.setValid();",
	"remove_header":                       "header.setInvalid();",
	"copy_header":                         "an assignment: dst = src;",
	"drop":                                "mark_to_drop(standard_metadata);",
	"no_op":                               "NoAction();",
	"register_read":                       "register.read(dst, index);",
	"register_write":                      "register.write(index, value);",
	"count":                               "counter.count(index);",
	"execute_meter":                       "meter.execute_meter(index, dst);",
	"clone_ingress_pkt_to_egress":         "clone(CloneType.I2E, session);",
	"clone_egress_pkt_to_egress":          "clone(CloneType.E2E, session);",
	"generate_digest":                     "digest(receiver, { fields });",
}
