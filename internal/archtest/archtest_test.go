// Package archtest keeps the house in order: which room may import which.
package archtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "nicprof"

// rooms are the top-level directories that hold Go code, from the top of the
// house down: an import may only point to a room further down, or stay in its
// own.
var rooms = []string{
	"bench",
	"cmd",
	"experiments",
	"report",
	"cora",
	"kv",
	"supernic",
	"p4",
	"fit",
	"model",
	"microbench",
	"emu",
	"board",
	"program",
	"traffic",
	"sim",
	"internal",
}

// check returns what is wrong with the imports of all Go files of a source
// tree, tests included.
func check(tree fs.FS) (findings []string, err error) {
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			base := entry.Name()
			if name != "." && (base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		room, level := roomOf(path.Dir(name))
		if level < 0 {
			findings = append(findings, fmt.Sprintf("%s: %q is no room of the house", name, room))
			return nil
		}
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			inside, ok := strings.CutPrefix(imported+"/", module+"/")
			if !ok {
				continue
			}
			at := files.Position(spec.Pos())
			switch target, below := roomOf(inside); {
			case below < 0:
				findings = append(findings, fmt.Sprintf("%s: import %q: %q is no room of the house", at, imported, target))
			case below < level:
				findings = append(findings, fmt.Sprintf("%s: %s must not import %q: %s lies above it", at, room, imported, target))
			}
		}
		return nil
	})
	return findings, err
}

// roomOf returns the room of a directory and its place in rooms, or -1.
func roomOf(dir string) (room string, level int) {
	room, _, _ = strings.Cut(dir, "/")
	return room, slices.Index(rooms, room)
}

func TestImportsPointDown(t *testing.T) {
	findings, err := check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Error(f)
	}
}

func TestFindings(t *testing.T) {
	source := func(imports ...string) *fstest.MapFile {
		s := "package p\n"
		for _, i := range imports {
			s += "import " + strconv.Quote(i) + "\n"
		}
		return &fstest.MapFile{Data: []byte(s)}
	}
	for _, c := range []struct {
		name string
		tree fstest.MapFS
		want []string
	}{
		{"down, sideways and out", fstest.MapFS{
			"cmd/profiler/main.go":        source("fmt", "nicprof/model", "github.com/spf13/cobra"),
			"fit/roofline/fit.go":         source("nicprof/fit/hybrid", "nicprof/internal/fault", "nicprofile/cmd"),
			"emu/nfp/testdata/broken.go":  {Data: []byte("not Go")},
			"emu/nfp/.hidden/upward.go":   source("nicprof/model"),
			"emu/nfp/description.txt":     {Data: []byte("import \"nicprof/model\"")},
			"microbench/nfp/backend.go":   source("nicprof/emu/nfp"),
			"internal/archtest/arch.go":   source("nicprof/internal/fault"),
			"board/boards/description.go": source(),
		}, nil},
		{"up", fstest.MapFS{"emu/nfp/emu.go": source("nicprof/sim", "nicprof/model")}, []string{
			`emu/nfp/emu.go:3:8: emu must not import "nicprof/model": model lies above it`}},
		{"up, by a test", fstest.MapFS{"sim/x_test.go": source("nicprof/board")}, []string{
			`sim/x_test.go:2:8: sim must not import "nicprof/board": board lies above it`}},
		{"up, from internal", fstest.MapFS{"internal/stats/s.go": source("nicprof/sim")}, []string{
			`internal/stats/s.go:2:8: internal must not import "nicprof/sim": sim lies above it`}},
		{"unknown rooms", fstest.MapFS{"util/u.go": source(), "sim/s.go": source("nicprof/util"), "main.go": source()}, []string{
			`main.go: "." is no room of the house`,
			`sim/s.go:2:8: import "nicprof/util": "util" is no room of the house`,
			`util/u.go: "util" is no room of the house`}},
		{"the module itself", fstest.MapFS{"sim/s.go": source("nicprof")}, []string{
			`sim/s.go:2:8: import "nicprof": "" is no room of the house`}},
	} {
		got, err := check(c.tree)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	if _, err := check(fstest.MapFS{"sim/s.go": {Data: []byte("no Go")}}); err == nil {
		t.Error("a file that does not parse is passed over")
	}
}

// TestDependenciesAreExplained: docs/dependencies.md has a row for each module
// that the house imports and each tool, and none for others.
func TestDependenciesAreExplained(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	required, direct := modules(string(mod))
	var explained []string
	for row := range strings.Lines(string(doc)) {
		if name, ok := strings.CutPrefix(row, "| `"); ok {
			name, _, _ = strings.Cut(name, "`")
			explained = append(explained, name)
		}
	}
	for _, m := range direct {
		if !slices.Contains(explained, m) {
			t.Errorf("docs/dependencies.md gives no reason for %s", m)
		}
	}
	for _, m := range explained {
		if !slices.Contains(required, m) {
			t.Errorf("docs/dependencies.md explains %s, which go.mod does not require", m)
		}
	}
}

// modules returns the modules that a go.mod requires, and those of them that
// are required directly.
func modules(mod string) (required, direct []string) {
	var tools []string
	for line := range strings.Lines(mod) {
		code, comment, _ := strings.Cut(line, "//")
		f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(code), "require "))
		switch {
		case len(f) == 2 && f[0] == "tool":
			tools = append(tools, f[1])
		case len(f) == 2 && strings.HasPrefix(f[1], "v"):
			required = append(required, f[0])
			if strings.TrimSpace(comment) != "indirect" {
				direct = append(direct, f[0])
			}
		}
	}
	for _, m := range required {
		for _, tool := range tools {
			if strings.HasPrefix(tool, m+"/") && !slices.Contains(direct, m) {
				direct = append(direct, m)
			}
		}
	}
	return required, direct
}

func TestModules(t *testing.T) {
	required, direct := modules(`module nicprof

go 1.26.0

tool example.org/lint/cmd/lint

require example.org/one v1.0.0

require (
	example.org/two/v2 v2.0.1
	example.org/far v0.0.0-20260101000000-000000000000 // indirect
	example.org/lint v0.1.0 // indirect
)
`)
	if want := []string{"example.org/one", "example.org/two/v2", "example.org/far", "example.org/lint"}; !slices.Equal(required, want) {
		t.Errorf("required %q, want %q", required, want)
	}
	if want := []string{"example.org/one", "example.org/two/v2", "example.org/lint"}; !slices.Equal(direct, want) {
		t.Errorf("direct %q, want %q", direct, want)
	}
}
