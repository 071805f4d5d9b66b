package frontend

import (
	"fmt"
	"strings"

	"nicprof/p4/ir"
)

// Text writes an expression as P4 does, for people.
func Text(e *ir.Expr) string {
	if e == nil {
		return ""
	}
	sub := make([]string, len(e.Args))
	for i, a := range e.Args {
		sub[i] = Text(a)
		if len(a.Args) > 1 && a.Op != ir.Slice {
			sub[i] = "(" + sub[i] + ")"
		}
	}
	switch e.Op {
	case ir.Const:
		if e.Bool {
			return fmt.Sprint(e.Value.Sign() != 0)
		}
		return e.Value.String()
	case ir.Use:
		switch e.Var.Kind {
		case ir.Validity:
			return strings.TrimSuffix(e.Var.Name, ".$valid") + ".isValid()"
		case ir.Hit:
			return strings.TrimSuffix(e.Var.Name, ".$hit") + ".hit"
		}
		if e.Lo > 0 || e.Hi < e.Var.Bits-1 {
			return fmt.Sprintf("%s[%d:%d]", e.Var.Name, e.Hi, e.Lo)
		}
		return e.Var.Name
	case ir.Mux:
		return strings.Join(sub[:1], "") + " ? " + strings.Join(sub[1:], " : ")
	case ir.Slice:
		return fmt.Sprintf("%s[%d:%d]", sub[0], e.Hi, e.Lo)
	case ir.Cast:
		return sub[0]
	case ir.InSet:
		if e.Object != nil {
			return sub[0] + " in " + e.Object.Name
		}
		return sub[0] + " in {" + strings.Join(sub[1:], ", ") + "}"
	case ir.Lookahead, ir.Any:
		if e.Text != "" {
			return e.Text
		}
		return string(e.Op)
	case "neg":
		return "-" + sub[0]
	}
	if len(sub) == 1 {
		return string(e.Op) + sub[0]
	}
	return strings.Join(sub, " "+string(e.Op)+" ")
}
