package frontend

import (
	"math/big"
	"slices"

	"nicprof/p4/ir"
)

// Eval is the value of an expression where the values of locations, decimal and
// by name, decide it, else nil.
func Eval(e *ir.Expr, known map[string]string) *big.Int { return eval(e, known) }

// eval is the value of an expression where what is known decides it, else nil.
// known holds values by a location's name and outcomes by a condition's text.
func eval(e *ir.Expr, known map[string]string) *big.Int {
	if v := evalOp(e, known); v != nil {
		return v
	}
	if e.Bool || e.Bits == 1 {
		return lookUp(Text(e), known)
	}
	return nil
}

// evalOp is eval of an expression by its operands.
func evalOp(e *ir.Expr, known map[string]string) *big.Int {
	switch e.Op {
	case ir.Const:
		return e.Value
	case ir.Use:
		v := lookUp(e.Var.Name, known)
		if v == nil || e.Lo == 0 && e.Hi == e.Var.Bits-1 || v.Sign() < 0 {
			return v
		}
		return cutOut(v, e.Hi, e.Lo)
	case "&&", "||":
		return junction(e, known)
	case ir.Mux:
		switch c := eval(e.Args[0], known); {
		case c == nil:
			return nil
		case c.Sign() != 0:
			return eval(e.Args[1], known)
		}
		return eval(e.Args[2], known)
	case ir.InSet:
		return inSet(e, known)
	}
	vals := make([]*big.Int, len(e.Args))
	for i, a := range e.Args {
		if vals[i] = eval(a, known); vals[i] == nil {
			return nil
		}
	}
	switch {
	case len(vals) == 0:
		return nil
	case e.Op == "!":
		return truth(vals[0].Sign() == 0)
	case e.Op == "==" || e.Op == "!=" || e.Op == "<" || e.Op == "<=" || e.Op == ">" || e.Op == ">=":
		return truth(compare(e.Op, vals[0].Cmp(vals[1])))
	case slices.ContainsFunc(vals, func(v *big.Int) bool { return v.Sign() < 0 }) || e.Signed:
		return nil
	}
	return arithmetic(e, vals)
}

// junction is the value of && or ||, which one operand may decide alone.
func junction(e *ir.Expr, known map[string]string) *big.Int {
	stops := e.Op == "||"
	open := false
	for _, a := range e.Args {
		switch v := eval(a, known); {
		case v == nil:
			open = true
		case (v.Sign() != 0) == stops:
			return truth(stops)
		}
	}
	if open {
		return nil
	}
	return truth(!stops)
}

// inSet tells whether a value is one of those that are listed: values, masks and
// ranges.
func inSet(e *ir.Expr, known map[string]string) *big.Int {
	v := eval(e.Args[0], known)
	if v == nil || e.Object != nil {
		return nil
	}
	for _, x := range e.Args[1:] {
		var fits bool
		switch {
		case x.Op == "&&&" || x.Op == "..":
			a, b := eval(x.Args[0], known), eval(x.Args[1], known)
			switch {
			case a == nil || b == nil:
				return nil
			case x.Op == "..":
				fits = v.Cmp(a) >= 0 && v.Cmp(b) <= 0
			default:
				fits = new(big.Int).And(v, b).Cmp(new(big.Int).And(a, b)) == 0
			}
		default:
			o := eval(x, known)
			if o == nil {
				return nil
			}
			fits = v.Cmp(o) == 0
		}
		if fits {
			return truth(true)
		}
	}
	return truth(false)
}

// arithmetic is the value of an operator on values that are not negative, nil
// where the width of the result is not known and matters.
func arithmetic(e *ir.Expr, vals []*big.Int) *big.Int {
	out := new(big.Int)
	x := vals[0]
	switch e.Op {
	case ir.Slice:
		return cutOut(x, e.Hi, e.Lo)
	case ir.Cast:
		if e.Bits == 0 {
			return x
		}
		return cutOut(x, e.Bits-1, 0)
	case ir.Concat:
		for k, v := range vals {
			w := width(e.Args[k])
			if w == 0 {
				return nil
			}
			out.Or(out.Lsh(out, uint(w)), v)
		}
		return out
	case "&":
		return out.And(x, vals[1])
	case "|":
		return out.Or(x, vals[1])
	case "^":
		return out.Xor(x, vals[1])
	case ">>":
		if !vals[1].IsInt64() {
			return nil
		}
		return out.Rsh(x, uint(min(vals[1].Int64(), 1<<20)))
	}
	w := width(e)
	if w == 0 {
		return nil
	}
	switch e.Op {
	case "+":
		return cutOut(out.Add(x, vals[1]), w-1, 0)
	case "-":
		return cutOut(out.Sub(x, vals[1]), w-1, 0)
	case "~":
		return cutOut(out.Not(x), w-1, 0)
	case "<<":
		if !vals[1].IsInt64() || vals[1].Int64() >= int64(w) {
			return nil
		}
		return cutOut(out.Lsh(x, uint(vals[1].Int64())), w-1, 0)
	}
	return nil
}

// cutOut is bits hi..lo of a value, of a negative one by two's complement.
func cutOut(v *big.Int, hi, lo int) *big.Int {
	out := new(big.Int).Rsh(v, uint(lo))
	return out.And(out, allOnes(hi-lo+1))
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
