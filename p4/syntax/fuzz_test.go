package syntax

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func seeds(f *testing.F) {
	text, err := os.ReadFile("testdata/grammar.p4")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	for _, s := range []string{
		"#define F(a, ...) a ## 1 #a __VA_ARGS__\nF(x, y) F(F(1), 2)\n#undef F\n",
		"#if defined(A) && (1 + 2 << 3) / 0 ? 1u : -1\n#elif 0x1F == 31\n#else\n#endif\n#line 3 \"f\"\n",
		"#include <a.p4>\n#include \"b.p4\"\n#define N \"a.p4\"\n#include N\nN\n",
		"const bit<8> x = 8w0x_ff |+| (bit<8>) 3 ++ a[3:0] << 1 >> 2;\n",
		"control c(inout H<bit<8>> h)(bit<8> n) { table t { key = { h.a : exact; } actions = { a; } } apply { t.apply(); } }\n",
		"parser p() { state start { transition select(a, b) { (1 &&& 2, 3 .. 4): accept; default: reject; } } }\n",
		"control c() { apply { for (bit<8> i in 0 .. 3) { i += 1; break; } switch (t.apply().action_run) { a: { } default: } } }\n",
		"header_type h { fields { a : 8; } }\ntable t { reads { a : exact; } }\n",
		"@a(b (c)) @d[x = 1] @pragma e 3\nextern E<T> { E(); abstract T f<U>(in T a = 1); }\n",
		"/* never \n", "\"never", "a\\\nb", "0x", "\xff\x00",
	} {
		f.Add(s)
	}
}

// FuzzTokens: the lexer comes to an end, and each token stands in the source
// where it says, behind the one before.
func FuzzTokens(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src string) {
		lines := strings.Split(src, "\n")
		lx := newLexer("t", src)
		line, col := 0, 0
		for n := 0; ; n++ {
			if n > len(src) {
				t.Fatalf("more than %d tokens in %d bytes", n, len(src))
			}
			tok := lx.next()
			if tok.Kind == EOF {
				return
			}
			p := tok.Pos
			if p.Line < line || p.Line == line && p.Col <= col {
				t.Fatalf("%v stands at %v, not behind %d:%d", tok, p, line, col)
			}
			line, col = p.Line, p.Col
			if p.Line > len(lines) || p.Col < 1 || p.Col > len(lines[p.Line-1]) {
				t.Fatalf("%v stands at %v, outside the source", tok, p)
			}
			if rest := lines[p.Line-1][p.Col-1:]; tok.Kind != String && !strings.Contains(src, "\\") && !strings.HasPrefix(rest, tok.Text) {
				t.Fatalf("%v at %v is %q in the source", tok, p, rest)
			}
		}
	})
}

// builtins are files that fuzzed programs can include.
func builtins(name string) ([]byte, bool) {
	text, ok := map[string]string{
		"a.p4": "#ifndef A\n#define A 1\n#include \"b.p4\"\nconst bit<A> a = 1;\n#endif\n",
		"b.p4": "#define B(x) x B(x)\n#include <a.p4>\n",
	}[name]
	return []byte(text), ok
}

// readsFiles tells whether a program may name files outside of this package.
func readsFiles(src string) bool {
	return strings.Contains(src, "include") && strings.Contains(src, "/")
}

// FuzzPreprocess: whatever the directives and macros, the preprocessor stays
// within its bounds, and every message has a place.
func FuzzPreprocess(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src string) {
		if readsFiles(src) {
			t.Skip("it may read files of this machine")
		}
		pp := newPreproc(Options{Builtin: builtins, Define: map[string]string{"D": "D 1 +"}})
		pp.file(SourceFile{Name: "t.p4"}, src)
		if len(pp.out) > maxTokens || len(pp.errs) > maxErrors {
			t.Fatalf("%d tokens, %d errors", len(pp.out), len(pp.errs))
		}
		for _, m := range append(pp.errs, pp.warnings...) {
			if !strings.HasPrefix(m.Error(), "t.p4:") && !strings.Contains(src, "#") {
				t.Fatalf("a message has no place: %v", m)
			}
		}
		for _, tok := range pp.out {
			if tok.Kind == EOF || tok.Kind == includeMark {
				t.Fatalf("a token of kind %d comes through", tok.Kind)
			}
		}
	})
}

// FuzzParse: a program is refused with messages or read; what is read can be
// written and read again to the same text.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src string) {
		if readsFiles(src) {
			t.Skip("it may read files of this machine")
		}
		file, err := Parse("t.p4", []byte(src), Options{Builtin: builtins})
		if err != nil {
			var list Errors
			if !errors.As(err, &list) || len(list) == 0 || len(list) > maxErrors || err.Error() == "" {
				t.Fatalf("it is refused with %v", err)
			}
			return
		}
		text := printFile(file)
		again, err := Parse("printed.p4", []byte(text), Options{})
		if err != nil {
			t.Fatalf("printed it is refused: %v\n%s", err, text)
		}
		if s := printFile(again); s != text {
			t.Fatalf("printed\n%s\nit is read as\n%s", text, s)
		}
	})
}
