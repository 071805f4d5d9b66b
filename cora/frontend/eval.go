package frontend

import (
	"math/big"

	"nicprof/p4/ir"
)

// Eval is the value of an expression where the values of locations, decimal and
// by name, decide it, else nil.
func Eval(e *ir.Expr, known map[string]string) *big.Int { return eval(e, known) }

// eval is the value of an expression where what is known decides it, else nil.
// known holds values by a location's name and outcomes by a condition's text.
func eval(e *ir.Expr, known map[string]string) *big.Int {
	switch e.Op {
	case ir.Const:
		return e.Value
	case ir.Use:
		if e.Lo != 0 || e.Hi != e.Var.Bits-1 {
			return nil
		}
		return lookUp(e.Var.Name, known)
	case ir.Cast:
		v := eval(e.Args[0], known)
		if v == nil || v.Sign() < 0 || e.Bits > 0 && v.BitLen() > e.Bits {
			return nil
		}
		return v
	case "!":
		if v := eval(e.Args[0], known); v != nil {
			return truth(v.Sign() == 0)
		}
	case "&&", "||":
		stops := e.Op == "||" // the value of an operand that decides alone
		open := false
		for _, a := range e.Args {
			v := eval(a, known)
			switch {
			case v == nil:
				open = true
			case (v.Sign() != 0) == stops:
				return truth(stops)
			}
		}
		if !open {
			return truth(!stops)
		}
	case "==", "!=", "<", "<=", ">", ">=":
		a, b := eval(e.Args[0], known), eval(e.Args[1], known)
		if a != nil && b != nil {
			return truth(compare(e.Op, a.Cmp(b)))
		}
	}
	if e.Bool || e.Bits == 1 {
		return lookUp(Text(e), known)
	}
	return nil
}

func compare(op ir.ExprOp, order int) bool {
	switch op {
	case "==":
		return order == 0
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func truth(b bool) *big.Int {
	if b {
		return big.NewInt(1)
	}
	return new(big.Int)
}

func lookUp(name string, known map[string]string) *big.Int {
	text, ok := known[name]
	if !ok {
		return nil
	}
	v, _ := new(big.Int).SetString(text, 10)
	return v
}

// learn adds what follows from a condition's outcome.
func (w *walk) learn(e *ir.Expr, outcome bool, known map[string]string) {
	switch {
	case e.Op == ir.Use && e.Lo == 0 && e.Hi == e.Var.Bits-1:
		w.note(e.Var.Name, truth(outcome).String(), known)
	case e.Op == "!":
		w.learn(e.Args[0], !outcome, known)
	case e.Op == "&&" && outcome, e.Op == "||" && !outcome:
		for _, a := range e.Args {
			w.learn(a, outcome, known)
		}
	case (e.Op == "==" && outcome || e.Op == "!=" && !outcome) && e.Args[0].Op == ir.Use && e.Args[1].Op == ir.Const:
		if u := e.Args[0]; u.Lo == 0 && u.Hi == u.Var.Bits-1 {
			w.note(u.Var.Name, e.Args[1].Value.String(), known)
		}
	}
	w.note(Text(e), truth(outcome).String(), known)
}

func (w *walk) note(fact, value string, known map[string]string) {
	if w.facts[fact] {
		known[fact] = value
	}
}
