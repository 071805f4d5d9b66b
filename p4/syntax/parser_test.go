package syntax

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nicprof/p4/source"
)

func read(t *testing.T, path string) *File {
	t.Helper()
	f, err := ParseFile(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func declares(t *testing.T, src string) []Decl {
	t.Helper()
	f, err := Parse("t.p4", []byte(src), Options{})
	if err != nil {
		t.Fatalf("%s\n%v", src, err)
	}
	return f.Decls
}

// The tree of a file with every construct, written out and read again, is the
// same tree.
func TestEveryConstructSurvivesPrinting(t *testing.T) {
	f := read(t, "testdata/grammar.p4")
	text := printFile(f)
	g, err := Parse("printed.p4", []byte(text), Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	forget(reflect.ValueOf(f.Decls))
	forget(reflect.ValueOf(g.Decls))
	if !reflect.DeepEqual(f.Decls, g.Decls) {
		t.Errorf("printed and read again it differs:\n%s\n%s", text, printFile(g))
	}
	// The test reaches what it claims: every kind of node is in that file.
	seen := map[string]bool{}
	kinds(reflect.ValueOf(f.Decls), seen)
	for _, k := range []string{"ConstDecl", "VarDecl", "ErrorDecl", "MatchKindDecl", "EnumDecl", "CompositeDecl",
		"TypeDecl", "FuncDecl", "ExternDecl", "ActionDecl", "ParserDecl", "ValueSetDecl", "ControlDecl", "PackageDecl",
		"InstanceDecl", "TableDecl", "BaseType", "BitsType", "NamedType", "SpecializedType", "StackType", "TupleType",
		"ListType", "DontCareType", "BlockStmt", "DeclStmt", "AssignStmt", "CallStmt", "IfStmt", "SwitchStmt",
		"ReturnStmt", "ExitStmt", "EmptyStmt", "ForStmt", "ForInStmt", "BreakStmt", "ContinueStmt", "IntLit", "BoolLit",
		"StringLit", "Ident", "ThisExpr", "TypeExpr", "MemberExpr", "IndexExpr", "SliceExpr", "UnaryExpr", "BinaryExpr",
		"MuxExpr", "CastExpr", "CallExpr", "ListExpr", "RecordExpr", "InvalidExpr", "DefaultExpr"} {
		if !seen[k] {
			t.Errorf("testdata/grammar.p4 gives no %s", k)
		}
	}
}

// kinds collects the names of the node types below x.
func kinds(x reflect.Value, seen map[string]bool) {
	switch x.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !x.IsNil() {
			kinds(x.Elem(), seen)
		}
	case reflect.Slice:
		for i := range x.Len() {
			kinds(x.Index(i), seen)
		}
	case reflect.Struct:
		seen[x.Type().Name()] = true
		for i := range x.NumField() {
			kinds(x.Field(i), seen)
		}
	}
}

// Any tree of operators comes back as it was, so precedence and associativity
// are those of the language.
func TestExpressionsKeepTheirTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawExpr(t, 4)
		src := "const bit<8> x = " + expression(x, 0) + ";"
		f, err := Parse("t.p4", []byte(typesUsed+src), Options{})
		if err != nil {
			t.Fatalf("%s\n%v", src, err)
		}
		got := f.Decls[len(f.Decls)-1].(*ConstDecl).Value
		forget(reflect.ValueOf(&got))
		forget(reflect.ValueOf(&x))
		if !reflect.DeepEqual(got, x) {
			t.Errorf("%s\nis read as\n%s", expression(x, 0), expression(got, 0))
		}
	})
}

const typesUsed = "struct T { } header G<A> { } enum E { m }\n"

func drawType(t *rapid.T) Type {
	return rapid.SampledFrom([]Type{
		&BaseType{Kind: Bool},
		&BitsType{Kind: Int, Width: &IntLit{Text: "8"}},
		&NamedType{Name: "T"},
		&SpecializedType{Base: &NamedType{Name: "G"}, Args: []Type{&BitsType{Kind: Bit, Width: &IntLit{Text: "8"}}}},
		&SpecializedType{Base: &NamedType{Name: "G"}, Args: []Type{&SpecializedType{
			Base: &NamedType{Name: "G"}, Args: []Type{&NamedType{Name: "T"}}}}},
		&TupleType{Args: []Type{&NamedType{Name: "T"}, &BaseType{Kind: Bool}}},
	}).Draw(t, "type")
}

func drawExpr(t *rapid.T, depth int) Expr {
	leaf := []Expr{
		&Ident{Name: "a"}, &Ident{Name: "apply"}, &Ident{Name: "b", Global: true}, &IntLit{Text: "7"},
		&IntLit{Text: "8w0xF_F", Width: 8}, &IntLit{Text: "4s1", Width: 4, Signed: true}, &BoolLit{Value: true},
		&StringLit{Value: `say "hi" \`}, &ThisExpr{}, &MemberExpr{X: &Ident{Name: "E"}, Name: "m"},
		&MemberExpr{X: &Ident{Name: "error"}, Name: "NoError"}, &InvalidExpr{},
	}
	kind := 0
	if depth > 0 {
		kind = rapid.IntRange(0, 11).Draw(t, "kind")
	}
	sub := func() Expr { return drawExpr(t, depth-1) }
	switch kind {
	case 1, 2, 3, 4:
		op := rapid.SampledFrom([]string{"||", "&&", "==", "!=", "<", ">", "<=", ">=", "|", "^", "&", "<<", ">>",
			"++", "+", "-", "|+|", "|-|", "*", "/", "%"}).Draw(t, "op")
		return &BinaryExpr{Op: op, X: sub(), Y: sub()}
	case 5:
		return &UnaryExpr{Op: rapid.SampledFrom([]string{"-", "+", "!", "~"}).Draw(t, "op"), X: sub()}
	case 6:
		return &MuxExpr{Cond: sub(), Then: sub(), Else: sub()}
	case 7:
		return &CastExpr{Type: drawType(t), X: sub()}
	case 8:
		if rapid.Bool().Draw(t, "slice") {
			return &SliceExpr{X: sub(), Hi: sub(), Lo: sub()}
		}
		return &IndexExpr{X: sub(), Index: sub()}
	case 9:
		return &MemberExpr{X: sub(), Name: "key"}
	case 10:
		c := &CallExpr{Fun: &MemberExpr{X: &Ident{Name: "f"}, Name: "g"}, Args: []*Argument{{Value: sub()}, {Name: "n", Value: sub()}}}
		if rapid.Bool().Draw(t, "generic") {
			c.TypeArgs = []Type{drawType(t), &DontCareType{}}
		}
		return c
	case 11:
		if rapid.Bool().Draw(t, "record") {
			return &RecordExpr{Fields: []*Argument{{Name: "n", Value: sub()}}, Rest: rapid.Bool().Draw(t, "rest")}
		}
		return &ListExpr{Elems: []Expr{sub(), sub()}, Rest: rapid.Bool().Draw(t, "rest")}
	}
	return rapid.SampledFrom(leaf).Draw(t, "leaf")
}

// What a name is decides between a cast, a call with type arguments, and a
// parenthesis or comparisons.
func TestTypesAndValues(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"const bool x = (T) - a;", "(T)- a"},
		{"const bool x = (v) - a;", "v - a"},
		{"const bool x = f < T > (3);", "f<T>(3)"},
		{"const bool x = f < v > (3);", "f < v > 3"},
		{"const bool x = f<G<T>>(3);", "f<G<T>>(3)"},
		{"const bool x = f<undeclared>();", "f<undeclared>()"},
		{"const bool x = a >> 3;", "a >> 3"},
		{"const bool x = (undeclared) 3;", "(undeclared)3"},
		{"const bool x = G<T>(3);", "G<T>(3)"},
		{"const bool x = a < E.m;", "a < E.m"},
	} {
		d := declares(t, typesUsed+"extern A f<A>(in A a); const bit<8> v = 1; const bit<8> a = 1;"+c.src)
		if got := expression(d[len(d)-1].(*ConstDecl).Value, 0); got != c.want {
			t.Errorf("%s\nis read as %s, not as %s", c.src, got, c.want)
		}
	}
	// A value hides a type of the same name within its scope only.
	d := declares(t, typesUsed+"bit<8> f(in bit<8> T) { return (T) - 1; } bit<8> g(in bit<8> a) { return (T) - 1; }")
	for i, want := range []string{"T - 1", "(T)- 1"} {
		r := d[len(d)-2+i].(*FuncDecl).Body.Stmts[0].(*ReturnStmt)
		if got := expression(r.Value, 0); got != want {
			t.Errorf("function %d returns %s, not %s", i, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		text, value string
		width       int
		signed      bool
	}{
		{"0", "0", 0, false}, {"1_000", "1000", 0, false}, {"0x_ff", "255", 0, false}, {"0B101", "5", 0, false},
		{"0o17", "15", 0, false}, {"0d19", "19", 0, false}, {"8w255", "255", 8, false}, {"4s0b0111", "7", 4, true},
		{"128w0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "340282366920938463463374607431768211455", 128, false},
	} {
		lit := declares(t, "const int x = "+c.text+";")[0].(*ConstDecl).Value.(*IntLit)
		if lit.Value.String() != c.value || lit.Width != c.width || lit.Signed != c.signed {
			t.Errorf("%s is read as %v, width %d, signed %v", c.text, lit.Value, lit.Width, lit.Signed)
		}
	}
	for _, text := range []string{"8w", "0x", "0b2", "08z", "9999999999w1", "12ab"} {
		if _, err := Parse("t.p4", []byte("const int x = "+text+";"), Options{}); err == nil {
			t.Errorf("the number %s is accepted", text)
		}
	}
}

// Every error is at its line and column, says what was expected, and does not
// keep later ones from being found.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"header h {\n bit<8> a\n}", "3:1 expected ';', found '}'"},
		{"const bit<8> x = ;", "1:18 expected an expression, found ';'"},
		{"const bit<8> x = 1", "1:19 expected ';', found end of file"},
		{"bit<8> x;", "1:9 expected '(' of a function: a variable cannot stand outside of controls, parsers and functions; write const for a constant"},
		{"table t { }", "1:1 a table stands in a control"},
		{"control c() {\n}", "2:1 control c has no apply block"},
		{"action default() { }", "1:8 expected the name of an action, found the keyword 'default'"},
		{"const bit<8> x = 3 & _;", "1:22 '_' stands only for a whole argument, key or type argument, not in an expression"},
		{"const bit<8> x = bit<8>;", "1:18 expected an expression, found the type 'bit'"},
		{"struct T { } const bool x = 1 > T;", "1:34 a type stands where a value is expected: expected '.' or '(' behind it, found ';'"},
		{"const varbit x = 1;", "1:14 varbit needs its greatest width: varbit<W>"},
		{"extern E { F(); }", "1:13 the method F needs a type before its name; a constructor is named E"},
		{"parser p() { state s { return; } }", "1:24 'return' cannot stand in a parser state"},
		{"parser p() { state s { transition a; a = 1; } }", "1:38 expected '}' behind the transition of state s, found 'a'"},
		{"control c() { apply { if (true) bit<8> x; } }", "1:33 a declaration here needs a block: { … }"},
		{"control c() { apply { @x return; } }", "1:26 no annotation may stand before 'return'"},
		{"control c() { apply { t.apply()(); } }", "1:32 expected ';', found '('"},
		{"control c() { apply { for (i in 0 .. 3) { } } }", "1:30 the loop variable needs its type: for (bit<8> i in …)"},
		{"error { A, }", "1:12 expected the name of an error, found '}'"},
		{"type struct S { } T;", "1:6 expected a type that is declared already, found the keyword 'struct'"},
		{"const string s = \"abc;", "1:18 the string that begins here has no closing \""},
		{"const bit<8> x = 1; /* never", "1:21 the comment that begins here has no */"},
		{"const bit<8> ä = 1;", "1:14 the character \"ä\" is not part of the language"},
		{"@p4runtime_translation(\"u\", int<8>) type bit<8> T;", "1:29 @p4runtime_translation takes the types string, bit<W> with a literal W, or a width alone"},
		{"@a(b(c) const bit<8> x = 1;", "1:28 the annotation @a at t.p4:1:1 has no ')'"},
		{"control c() { apply { x = ; y = 1; z = 2 +; } }\nconst bit<8> q = ;",
			"1:27 expected an expression, found ';'|1:43 expected an expression, found ';'|2:18 expected an expression, found ';'"},
		{"control c() { apply { x = {2, f = 5}; y = 1; z = ]; } } const bool b = ;",
			"1:33 expected ',' or '}', found '='|1:50 expected an expression, found ']'|1:72 expected an expression, found ';'"},
	} {
		_, err := Parse("t.p4", []byte(c.src), Options{})
		var list Errors
		if !errors.As(err, &list) {
			t.Errorf("%s\nis accepted", c.src)
			continue
		}
		var got []string
		for _, m := range list {
			got = append(got, fmt.Sprintf("%d:%d %s", m.Pos.Line, m.Pos.Col, m.Msg))
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%s\ngives %s\nnot   %s", c.src, s, c.want)
		}
	}
}

func TestErrorsAreBoundedAndUnwrap(t *testing.T) {
	_, err := Parse("t.p4", []byte(strings.Repeat("const bit<8> x = ;\n", 50)), Options{})
	var list Errors
	if !errors.As(err, &list) || len(list) != maxErrors {
		t.Fatalf("%d errors, not %d", len(list), maxErrors)
	}
	var m *source.Message
	if !errors.As(err, &m) || m.Pos.Line != 1 {
		t.Errorf("the first message is not in the error: %v", m)
	}
	want := "t.p4:1:18: expected an expression, found ';'\n    const bit<8> x = ;\n                     ^"
	if got := list[0].Error(); got != want {
		t.Errorf("the message is\n%s\nnot\n%s", got, want)
	}
}

// P4_14 is named as such, with what to do, also in the middle of P4_16.
func TestP414(t *testing.T) {
	for _, src := range []string{
		"header_type ethernet_t { fields { dst : 48; } }",
		"header ethernet_t ethernet;",
		"header vlan_t vlan[2];",
		"metadata m_t meta;",
		"parser start { extract(ethernet); return ingress; }",
		"control ingress { apply(t); }",
		"action set(port, dst) { modify_field(a, port); }",
		"table t { reads { ethernet.dst : exact; } actions { set; } }",
		"register r { width : 32; instance_count : 4; }",
		"field_list l { ethernet.dst; }",
		"field_list_calculation c { input { l; } algorithm : crc16; output_width : 16; }",
		"calculated_field ipv4.checksum { verify c; }",
	} {
		_, err := Parse("t.p4", []byte("const bit<8> a = 1;\n"+src+"\nconst bit<8> b = ;"), Options{})
		var list Errors
		if !errors.As(err, &list) || len(list) != 2 || list[0].Pos.Line != 2 || list[1].Pos.Line != 3 ||
			!strings.Contains(list[0].Msg, "P4_14") || !strings.Contains(list[0].Msg, "p4test") {
			t.Errorf("%s\ngives %v", src, err)
		}
	}
	for _, src := range []string{
		"control c() { table t { reads { a : exact; } } apply { } }",
		"control c() { action a(b, c) { } apply { } }",
		"control c() { table t { actions { a; } } apply { } }",
	} {
		if _, err := Parse("t.p4", []byte(src), Options{}); err == nil || !strings.Contains(err.Error(), "P4_14") {
			t.Errorf("%s\ngives %v", src, err)
		}
	}
	if P414Primitive("modify_field") == "" || P414Primitive("setValid") != "" {
		t.Error("modify_field is a primitive of P4_14 and setValid is none")
	}
}

// No input costs more than its length: nested and long inputs are refused or
// read, and never overflow the stack.
func TestDeepAndLongInputs(t *testing.T) {
	n := 20_000
	for name, src := range map[string]string{
		"parentheses": "const bit<8> x = " + strings.Repeat("(", n),
		"unary":       "const bit<8> x = " + strings.Repeat("-", n) + "1;",
		"casts":       "const bit<8> x = " + strings.Repeat("(bit<8>)", n) + "1;",
		"types":       "const " + strings.Repeat("tuple<", n),
		"blocks":      "control c() { apply { " + strings.Repeat("{", n),
		"ifs":         "control c() { apply { " + strings.Repeat("if (a) ", n),
		"terms":       "const bit<8> x = 1" + strings.Repeat("+1", n) + ";",
		"members":     "const bit<8> x = a" + strings.Repeat(".b", n) + ";",
		"arguments":   "struct T { } const bit<8> x = " + strings.Repeat("f<T<", n),
		"annotations": "@a(" + strings.Repeat("(", n),
		"braces":      strings.Repeat("}", n),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("t.p4", []byte(src), Options{}); err == nil {
				t.Error("accepted")
			}
		})
	}
	chain := "control c() { apply { if (a) x = 1; " + strings.Repeat("else if (b) x = 2;\n", 5000) + "} }"
	declares(t, chain)
}

func TestFiles(t *testing.T) {
	if _, err := ParseFile("testdata/missing.p4", Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
	if _, err := ParseFile("testdata", Options{}); err == nil || errors.As(err, new(Errors)) {
		t.Errorf("a directory gives %v", err)
	}
}
