package syntax

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nicprof/p4/source"
)

// preprocess gives the tokens of a source as text, one line for each line that
// they stand on.
func preprocess(src string, opt Options) (string, *preproc) {
	pp := newPreproc(opt)
	pp.file(SourceFile{Name: "t.p4"}, src)
	return spell(pp.out), pp
}

func TestMacros(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"object", "#define N 8\nbit<N> x;", "bit<8> x;"},
		{"byte order mark", "\ufeff#define N 8\nN", "8"},
		{"none", "#define EMPTY\nEMPTY a EMPTY b", "a b"},
		{"undefined again", "#define N 8\n#undef N\nN", "N"},
		{"redefined", "#define N 8\n#define N 9\nN", "9"},
		{"itself", "#define a a b\na", "a b"},
		{"each other", "#define a b\n#define b a\na b", "a b"},
		{"with arguments", "#define F(x, y) y + x\nF(1, (2, 3))", "(2, 3) + 1"},
		{"object that looks like one with arguments", "#define F (x)\nF", "(x)"},
		{"name without arguments", "#define F(x) x\nF; F (1)", "F; 1"},
		{"no parameters", "#define F() 1\nF() F( )", "1 1"},
		{"empty argument", "#define F(x) [x]\nF()", "[]"},
		{"over lines", "#define F(x, y) x y\nF(1,\n  2)", "1 2"},
		{"rescanned with what follows", "#define F(x) x\n#define G F\nG(3)", "3"},
		{"argument expanded first", "#define N 8\n#define F(x) x x\nF(N)", "8 8"},
		{"in its own argument", "#define F(x) x + 1\nF(F(2))", "2 + 1 + 1"},
		{"text", "#define S(x) #x\nS(a  + \"b\\\\\")", `"a + \"b\\\\\""`},
		{"text of what is not expanded", "#define N 8\n#define S(x) #x\n#define T(x) S(x)\nS(N) T(N)", `"N" "8"`},
		{"pasted", "#define P(a, b) a ## b\nP(head, er) P(8, w1) P(, x) P(x, ) P(,)", "header 8w1 x x"},
		{"pasted name expanded", "#define AB 5\n#define P(a, b) a##b\nP(A, B)", "5"},
		{"pasted before expansion", "#define A x\n#define P(a, b) a##b\nP(A, 1)", "A1"},
		{"pasted three times", "#define P(a, b, c) a##b##c\nP(1, , 2)", "12"},
		{"pasted to no token", "#define P(a, b) a##.##b[##3 ## :2]\nP(hdr, f)", "hdr.f[3:2]"},
		{"variadic", "#define V(x, ...) x(__VA_ARGS__)\nV(f, 1, 2) V(g)", "f(1, 2) g()"},
		{"named variadic", "#define V(rest...) f(rest)\nV(1, 2)", "f(1, 2)"},
		{"comma dropped", "#define V(x, ...) f(x, ## __VA_ARGS__)\nV(1) V(1, 2)", "f(1) f(1, 2)"},
		{"hash of P4", "#define I(x) x = {#}\nI(h)", "h = {#}"},
		{"line and file", "#define L __LINE__\n\nL __FILE__", `3 "t.p4"`},
		{"not in strings or comments", "#define a b\n\"a\" /* a */ // a", `"a"`},
		// The example that the C standard gives for rescanning (6.10.3.5).
		{"the standard's", "#define x 3\n#define f(a) f(x * (a))\n#undef x\n#define x 2\n#define g f\n#define z z[0]\n" +
			"#define h g(~\n#define m(a) a(w)\n#define w 0,1\n#define t(a) a\n" +
			"f(y+1) + f(f(z)) % t(t(g)(0) + t)(1);", "f(2 * (y+1)) + f(2 * (f(2 * (z[0])))) % f(2 * (0)) + t(1);"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, pp := preprocess(c.src, Options{})
			if len(pp.errs) > 0 || got != c.want {
				t.Errorf("%s\ngives %s\nnot   %s\n%v", c.src, got, c.want, pp.errs)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	for _, c := range []struct {
		cond string
		want bool
	}{
		{"1", true}, {"0", false}, {"NOTHING", false}, {"N", true}, {"N == 8", true}, {"defined N", true},
		{"defined(N) && !defined(M)", true}, {"defined M || 0", false}, {"1 + 2 * 3 == 7", true},
		{"(1 + 2) * 3 == 9", true}, {"7 / 2 == 3 && -7 / 2 == -3 && -7 % 2 == -1", true}, {"1 << 3 >> 1 == 4", true},
		{"0x10 + 010 + 0b11 == 27", true}, {"-1 < 0", true}, {"-1 < 0u", false}, {"-1 > 0u", true},
		{"0xFFFFFFFFFFFFFFFF == -1", true}, {"-1 >> 1 == -1", true}, {"0xFFFFFFFFFFFFFFFFu >> 63 == 1", true},
		{"1 ? 0 : 1", false}, {"0 ? 1 : 0 ? 0 : 2", true}, {"1 || 1 / 0", true}, {"0 && 1 % 0", false},
		{"~0 == -1", true}, {"(1 & 3) ^ 2 | 4", true}, {"3 > 2 >= 1 != 0", true}, {"10L == 10ull", true}, {"!N", false},
		{"F(2) == 4", true}, {"- - 1 == + 1", true},
	} {
		src := "#define N 8\n#define F(x) (x) * 2\n#if " + c.cond + "\nyes\n#else\nno\n#endif"
		got, pp := preprocess(src, Options{})
		want := map[bool]string{true: "yes", false: "no"}[c.want]
		if len(pp.errs) > 0 || got != want {
			t.Errorf("#if %s gives %s, not %s; %v", c.cond, got, want, pp.errs)
		}
	}
	for _, c := range []struct{ src, want string }{
		{"#if 0\na\n#elif 1\nb\n#elif 1\nc\n#else\nd\n#endif", "b"},
		{"#if 0\na\n#elif 0\nb\n#else\nd\n#endif", "d"},
		{"#ifdef A\na\n#endif\n#ifndef A\nb\n#endif", "b"},
		{"#if 0\n#if 1\na\n#else\nb\n#endif\n#elif 1\nc\n#endif d", "c"},
		{"#if 0\nit's \"open\n#error no\n#include \"none\"\n#bad\n#elif 1\nb\n#endif", "b"},
		{"#if 1\na\n#elif 1 / 0\nb\n#endif", "a"},
	} {
		if got, pp := preprocess(c.src, Options{}); len(pp.errs) > 0 || got != c.want {
			t.Errorf("%s\ngives %s, not %s; %v", c.src, got, c.want, pp.errs)
		}
	}
}

func TestPreprocessorErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"a\n#if 1\nb", "2:2 #if without #endif"},
		{"#else\n", "1:2 #else without #if"},
		{"#if 1\n#else\n#elif 1\n#endif", "3:2 #elif behind #else"},
		{"#if 1 +\n#endif", "1:2 the condition of #if cannot be decided: it ends too early"},
		{"#if 1 / 0\n#endif", "1:2 the condition of #if cannot be decided: it divides by zero"},
		{"#if (1\n#endif", "1:2 the condition of #if cannot be decided: ( without )"},
		{"#if 1 2\n#endif", "1:2 the condition of #if cannot be decided: '2' is not expected here"},
		{"#if 99999999999999999999\n#endif", "1:2 the condition of #if cannot be decided: '99999999999999999999' is not a number of 64 bits"},
		{"#if defined\n#endif", "1:2 the condition of #if cannot be decided: defined takes the name of a macro"},
		{"#error this is wrong", "1:2 #error this is wrong"},
		{"#define 3", "1:2 #define takes the name of a macro"},
		{"#define F(a, a) a", "1:14 'a' is not the name of a new parameter of macro F"},
		{"#define F(a", "1:9 the parameter list of macro F has no )"},
		{"#define F(..., a) a", "1:16 no parameter may stand behind ... in macro F"},
		{"#define F(a b) a", "1:13 the parameters of macro F are to be names separated by commas"},
		{"#define F ## a", "1:9 ## needs a token on both sides"},
		{"#define F(a, b) a\n F(1)", "2:2 macro F takes 2 arguments, but 1 are given"},
		{"#define F(a) a\n F(1", "2:2 the arguments of macro F have no )"},
		{"#define F(a) a\nF(\n#include \"x\"\n)", "3:1 #include stands in the arguments of macro F"},
		{"#include x", "1:2 #include takes \"file\" or <file>"},
		{"#include <none.p4>", "1:10 cannot find the file \"none.p4\": no directory to look in is given"},
		{"#undef", "1:2 #undef takes the name of one macro"},
		{"#line x", "1:2 #line takes a line number and perhaps a file name in quotes"},
	} {
		_, pp := preprocess(c.src, Options{})
		var got []string
		for _, m := range pp.errs {
			got = append(got, fmt.Sprintf("%d:%d %s", m.Pos.Line, m.Pos.Col, m.Msg))
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%s\ngives %s\nnot   %s", c.src, s, c.want)
		}
	}
}

// No macro, however it grows, and no include, however it goes in circles,
// keeps the reader from coming to an end.
func TestBounds(t *testing.T) {
	var blow strings.Builder
	blow.WriteString("#define M0 x x x x x x x x x x\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&blow, "#define M%d %s\n", i, strings.Repeat(fmt.Sprintf("M%d ", i-1), 10))
	}
	blow.WriteString("M39")
	args := "#define D(x) x x\n" + strings.Repeat("D(", 60) + "a" + strings.Repeat(")", 60)
	var chain strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&chain, "#define C%d C%d\n", i, i+1)
	}
	chain.WriteString("C0")
	for name, c := range map[string]struct{ src, want string }{
		"exponential":      {blow.String(), "more than"},
		"twice in itself":  {args, "tokens"},
		"chain of macros":  {chain.String(), "nested more than"},
		"nested arguments": {"#define I(x) x\n" + strings.Repeat("I(", 500) + "a" + strings.Repeat(")", 500), "nested more than"},
		"nested condition": {"#if " + strings.Repeat("(", 100000) + "\n#endif", "nested more than"},
		"negations":        {"#if " + strings.Repeat("!", 100000) + "1\n#endif", "nested more than"},
		"many tokens":      {strings.Repeat(";", maxTokens+1), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, pp := preprocess(c.src, Options{})
			if len(pp.errs) == 0 || !strings.Contains(pp.errs[0].Msg, c.want) {
				t.Error(pp.errs)
			}
		})
	}

	dir := t.TempDir()
	self := filepath.Join(dir, "self.p4")
	write(t, self, "#include \"self.p4\"\n#include \"self.p4\"\nconst bit<8> x = 1;\n")
	_, err := ParseFile(self, Options{})
	if err == nil || !strings.Contains(err.Error(), "include itself") {
		t.Errorf("a file that includes itself gives %v", err)
	}
	if _, err := Parse("t.p4", []byte("#include \"/dev/zero\"\n"), Options{}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("including a device gives %v", err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestIncludes(t *testing.T) {
	dir := t.TempDir()
	main := filepath.Join(dir, "main.p4")
	write(t, main, `#include <first.p4>
#include "near/second.p4"
#include <core.p4>
#define NAME "third.p4"
#include NAME
control c() { apply {
#include "body.p4"
} }
`)
	write(t, filepath.Join(dir, "lib", "first.p4"), "#ifndef G\n#define G\nconst bit<8> first = 1;\n#include \"first.p4\"\n#endif\n")
	write(t, filepath.Join(dir, "near", "second.p4"), "#include \"beside.p4\"\nconst bit<8> second = 2;\n")
	write(t, filepath.Join(dir, "near", "beside.p4"), "const bit<8> beside = 2;\n")
	write(t, filepath.Join(dir, "third.p4"), "const bit<8> third = 3;\n")
	write(t, filepath.Join(dir, "body.p4"), "bit<8> x = first;\n")
	opt := Options{
		Include: []string{filepath.Join(dir, "none"), filepath.Join(dir, "lib")},
		Builtin: func(name string) ([]byte, bool) {
			return []byte("const bit<8> core = 0;\n"), name == "core.p4" || name == "first.p4"
		},
	}
	f, err := ParseFile(main, opt)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range f.Decls {
		if c, ok := d.(*ConstDecl); ok {
			rel, _ := filepath.Rel(dir, c.Pos.File)
			if strings.HasPrefix(c.Pos.File, "<") {
				rel = c.Pos.File
			}
			got = append(got, fmt.Sprintf("%s in %s:%d", c.Name, rel, c.Pos.Line))
		}
	}
	want := "first in lib/first.p4:3, beside in near/beside.p4:1, second in near/second.p4:2, core in <core.p4>:1, third in third.p4:1"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("it declares %s\nnot %s", s, want)
	}
	body := f.Decls[len(f.Decls)-1].(*ControlDecl).Apply.Stmts
	if len(body) != 1 || filepath.Base(body[0].Position().File) != "body.p4" {
		t.Errorf("the included body is %v", body)
	}
	for _, s := range f.Sources.Files() {
		if want := s.Name == "<core.p4>"; s.Builtin != want {
			t.Errorf("%s: built in %v", s.Name, s.Builtin)
		}
	}
}

// A message is where the reader sees the text, with the line of that file, and
// says through which includes and macros it got there.
func TestPositions(t *testing.T) {
	dir := t.TempDir()
	main, inc := filepath.Join(dir, "main.p4"), filepath.Join(dir, "inc.p4")
	write(t, main, "// comment\n\n#include \"inc.p4\"\n")
	write(t, inc, "#define WRONG(x) = x +\n#define TWICE WRONG(2)\n\tconst bit<8> \\\n  y TWICE;\n")
	_, err := ParseFile(main, Options{})
	var list Errors
	if !errors.As(err, &list) {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%[1]s:4:10: expected an expression, found ';'\n      y TWICE;\n             ^\n    included from %[2]s:3", inc, main)
	if got := list[0].Error(); got != want {
		t.Errorf("the message is\n%s\nnot\n%s", got, want)
	}

	// An error in the text of a macro is where the macro is used.
	_, err = Parse("t.p4", []byte("#define BAD const bit<8> = 1\n  BAD;"), Options{})
	want = "t.p4:2:3: expected the name of a constant, found '='\n      BAD;\n      ^\n    expanded from macro BAD defined at t.p4:1:9"
	if err == nil || err.Error() != want {
		t.Errorf("the message is\n%v\nnot\n%s", err, want)
	}

	// #line renames what is behind it; the line shown is still the true one.
	_, err = Parse("t.p4", []byte("\n#line 40 \"gen.p4\"\nconst bit<8> a = 1;\nconst bit<8> b = ;\n# 7 \"t.y\"\nconst bit<8> c = );"), Options{})
	want = "gen.p4:41:18: expected an expression, found ';'\n    const bit<8> b = ;\n                     ^\n" +
		"t.y:7:18: expected an expression, found ')'\n    const bit<8> c = );\n                     ^"
	if err == nil || err.Error() != want {
		t.Errorf("the message is\n%v\nnot\n%s", err, want)
	}
}

// Tokens know their place across comments, joined lines and line ends of
// Windows, and strings may go over lines.
func TestTokens(t *testing.T) {
	src := "a /* x\n y */ b\\\n\\\r\nc  \"s\\\"\nt\" d\r\n>>= 1..2 |+|= x@y"
	lx := newLexer("t", src)
	var got []string
	for {
		tok := lx.next()
		if tok.Kind == EOF {
			break
		}
		got = append(got, fmt.Sprintf("%d:%d %s", tok.Pos.Line, tok.Pos.Col, tok.Text))
	}
	want := "1:1 a|2:7 bc|4:4 s\"\nt|5:4 d|6:1 >|6:2 >=|6:5 1|6:6 ..|6:8 2|6:10 |+|=|6:15 x|6:16 @|6:17 y"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("the tokens are %s\nnot            %s", s, want)
	}
}

func TestPragmas(t *testing.T) {
	d := declares(t, "#pragma once\n@pragma stage 3 \"x\"\nconst bit<8> a = 1; @name(\"b.c\") const bit<8> b = 1;")
	a := d[0].(*ConstDecl).Annotations.Find("stage")
	if a == nil || len(a.Tokens) != 2 || a.Tokens[0].Text != "3" {
		t.Errorf("@pragma stage is read as %+v", a)
	}
	if s, ok := d[1].(*ConstDecl).Annotations.Find("name").Text(); !ok || s != "b.c" {
		t.Errorf("@name is read as %q", s)
	}
}

func TestDefinedMacros(t *testing.T) {
	got, pp := preprocess("#ifdef A\nA B\n#endif", Options{Define: map[string]string{"A": "8w1 + B", "B": ""}})
	if got != "8w1 +" || len(pp.errs) > 0 {
		t.Errorf("it gives %q, %v", got, pp.errs)
	}
	f, err := Parse("t.p4", []byte("#warning look here\nconst bit<8> a = 1;\n# TODO"), Options{})
	if err != nil || len(f.Warnings) != 2 || f.Warnings[1].Msg != "unknown preprocessor directive #TODO is ignored" || f.Warnings[0].Msg != "#warning look here" || f.Warnings[0].Pos != (source.Pos{File: "t.p4", Line: 1, Col: 2}) {
		t.Errorf("warnings are %v, %v", f.Warnings, err)
	}
}
