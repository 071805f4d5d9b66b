package ir

import (
	"math/big"
	"strings"
	"testing"
)

// small is a program that keeps every promise: x = 1, a branch, y = x[3:0].
func small() *Program {
	x := &Var{Name: "x", Bits: 8}
	y := &Var{ID: 1, Name: "y", Bits: 4}
	one := &Expr{Op: Const, Bits: 8, Value: big.NewInt(1)}
	use := &Expr{Op: Use, Bits: 4, Var: x, Hi: 3}
	return &Program{
		Name: "s.p4", Vars: []*Var{x, y}, Stages: []Stage{{Kind: Ingress, Name: "I"}},
		Code: []*Instr{
			{Op: Assign, Defs: []Def{{Var: x, Hi: 7}}, Args: []*Expr{one}, Succ: []Edge{{To: 1}}},
			{ID: 1, Op: Branch, Args: []*Expr{{Op: "==", Bits: 1, Bool: true, Args: []*Expr{use, one}}}, Succ: []Edge{{2, "true"}, {3, "false"}}},
			{ID: 2, Op: Assign, Defs: []Def{{Var: y, Hi: 3}}, Args: []*Expr{use}, Succ: []Edge{{To: 3}}},
			{ID: 3, Op: End},
		},
	}
}

func TestCheck(t *testing.T) {
	if err := Check(small()); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(p *Program){
		"two locations are called":  func(p *Program) { p.Vars[1].Name = "x" },
		"has number":                func(p *Program) { p.Code[2].ID = 7 },
		"0 instructions are ends":   func(p *Program) { p.Code[3].Op = Nop; p.Code[3].Succ = []Edge{{To: 0}} },
		"cannot be reached":         func(p *Program) { p.Code[1].Succ[0].To = 3 },
		"leads to no end":           func(p *Program) { p.Code[2].Succ[0].To = 2 },
		"label":                     func(p *Program) { p.Code[1].Succ[0].Label = "yes" },
		"leads to 9":                func(p *Program) { p.Code[2].Succ[0].To = 9 },
		"has no object":             func(p *Program) { p.Code[2].Op = RegRead },
		"unknown object":            func(p *Program) { p.Code[2].Object = &Object{} },
		"uses an unknown location":  func(p *Program) { p.Vars = p.Vars[1:]; p.Vars[0].ID = 0 },
		"defines y[9:0]":            func(p *Program) { p.Code[2].Defs[0].Hi = 9 },
		"uses x[8:0]":               func(p *Program) { p.Code[2].Args[0].Hi = 8 },
		"constant without value":    func(p *Program) { p.Code[0].Args[0].Value = nil },
		"is of atomic region":       func(p *Program) { p.Code[0].Atomic = 1 },
		"is of stage":               func(p *Program) { p.Code[0].Stage = 1 },
		"an expression that is nil": func(p *Program) { p.Code[0].Args[0] = nil },
	} {
		p := small()
		spoil(p)
		if err := Check(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, expected %q", err, want)
		}
	}
}

func TestFprint(t *testing.T) {
	var b strings.Builder
	if err := Fprint(&b, small()); err != nil {
		t.Fatal(err)
	}
	want := `program s.p4 arch= source=
stage 0 ingress I
I:
   0  x = assign 8w1
   1  branch (x[3:0] == 8w1) true->2 false->3
   2  y = assign x[3:0]
   3  end
`
	if b.String() != want {
		t.Errorf("text is\n%s\nexpected\n%s", b.String(), want)
	}
}
