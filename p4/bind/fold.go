package bind

import (
	"math/big"

	"nicprof/p4/ir"
)

// fold builds x op y of type t, at once when both are constants.
func fold(op string, x, y *scalar, t typ) *scalar {
	if x.e.Op == ir.Const && y.e.Op == ir.Const {
		if n := compute(op, x, y, t); n != nil {
			return constant(n, t)
		}
	}
	switch {
	case op == "&&" && isTrue(x):
		return &scalar{t: t, e: y.e}
	case op == "&&" && isTrue(y):
		return &scalar{t: t, e: x.e}
	}
	s := &scalar{t: t, e: &ir.Expr{Op: ir.ExprOp(op), Args: []*ir.Expr{x.e, y.e}}}
	s.e.Bits, s.e.Signed, s.e.Bool = shape(t)
	if t == nil {
		s.e.Bits = max(x.e.Bits, y.e.Bits)
	}
	return s
}

func isTrue(s *scalar) bool {
	return s.e.Op == ir.Const && s.e.Bool && s.e.Value.Sign() != 0
}

// compute gives x op y, or nil when it has no value.
func compute(op string, x, y *scalar, t typ) *big.Int {
	p, q := x.e.Value, y.e.Value
	n := new(big.Int)
	truth := func(v bool) *big.Int {
		if v {
			n.SetInt64(1)
		}
		return n
	}
	switch op {
	case "==":
		return truth(p.Cmp(q) == 0)
	case "!=":
		return truth(p.Cmp(q) != 0)
	case "<":
		return truth(p.Cmp(q) < 0)
	case "<=":
		return truth(p.Cmp(q) <= 0)
	case ">":
		return truth(p.Cmp(q) > 0)
	case ">=":
		return truth(p.Cmp(q) >= 0)
	case "&&":
		return truth(p.Sign() != 0 && q.Sign() != 0)
	case "||":
		return truth(p.Sign() != 0 || q.Sign() != 0)
	case "+":
		n.Add(p, q)
	case "-":
		n.Sub(p, q)
	case "*":
		n.Mul(p, q)
	case "/", "%":
		if q.Sign() == 0 {
			return nil
		}
		if op == "/" {
			n.Quo(p, q)
		} else {
			n.Rem(p, q)
		}
	case "&":
		n.And(p, q)
	case "|":
		n.Or(p, q)
	case "^":
		n.Xor(p, q)
	case "<<", ">>":
		if !q.IsInt64() || q.Sign() < 0 || q.Int64() > maxWidth {
			return nil
		}
		if op == "<<" {
			n.Lsh(p, uint(q.Int64()))
		} else {
			n.Rsh(p, uint(q.Int64()))
		}
	case "|+|":
		return saturate(n.Add(p, q), t)
	case "|-|":
		return saturate(n.Sub(p, q), t)
	default:
		return nil
	}
	if n.BitLen() > 2*maxWidth {
		return nil
	}
	return wrap(n, t)
}

// saturate bounds n to the values of type t.
func saturate(n *big.Int, t typ) *big.Int {
	w, signed, _ := shape(t)
	if w == 0 {
		return n
	}
	lo, hi := new(big.Int), new(big.Int)
	one := big.NewInt(1)
	if signed {
		hi.Lsh(one, uint(w-1))
		lo.Neg(hi)
	} else {
		hi.Lsh(one, uint(w))
	}
	hi.Sub(hi, one)
	if n.Cmp(lo) < 0 {
		return lo
	}
	if n.Cmp(hi) > 0 {
		return hi
	}
	return n
}

// isValid is the valid bit of a header, or of any header of a union or stack.
func isValid(a *aggregate) *scalar {
	var any *scalar
	for _, h := range headers(a) {
		v := &scalar{t: boolType, e: h.valid.e}
		if any == nil {
			any = v
		} else {
			any = fold("||", any, v, boolType)
		}
	}
	if any == nil {
		return opaque(boolType, "isValid")
	}
	return any
}
