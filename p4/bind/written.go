package bind

import (
	"strings"

	"nicprof/p4/syntax"
)

// written gives an expression as the control plane names a key by it.
func written(e syntax.Expr) string {
	switch e := e.(type) {
	case *syntax.Ident:
		if e.Global {
			return "." + e.Name
		}
		return e.Name
	case *syntax.IntLit:
		return e.Text
	case *syntax.BoolLit:
		if e.Value {
			return "true"
		}
		return "false"
	case *syntax.ThisExpr:
		return "this"
	case *syntax.MemberExpr:
		return written(e.X) + "." + e.Name
	case *syntax.IndexExpr:
		return written(e.X) + "[" + written(e.Index) + "]"
	case *syntax.SliceExpr:
		if e.Width != nil {
			return written(e.X) + "[" + written(e.Lo) + "+:" + written(e.Width) + "]"
		}
		return written(e.X) + "[" + written(e.Hi) + ":" + written(e.Lo) + "]"
	case *syntax.UnaryExpr:
		return e.Op + written(e.X)
	case *syntax.BinaryExpr:
		return written(e.X) + " " + e.Op + " " + written(e.Y)
	case *syntax.MuxExpr:
		return written(e.Cond) + " ? " + written(e.Then) + " : " + written(e.Else)
	case *syntax.CastExpr:
		return written(e.X)
	case *syntax.CallExpr:
		if m, ok := e.Fun.(*syntax.MemberExpr); ok && m.Name == "isValid" && len(e.Args) == 0 {
			return written(m.X) + ".$valid$" // as P4Runtime names it
		}
		var args []string
		for _, a := range e.Args {
			args = append(args, written(a.Value))
		}
		return written(e.Fun) + "(" + strings.Join(args, ", ") + ")"
	}
	return "?"
}
