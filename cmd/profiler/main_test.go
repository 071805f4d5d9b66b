package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"nicprof/cora/apps"
	"nicprof/fit"
	"nicprof/microbench/nfp/cardtest"
	"nicprof/model"
	"nicprof/program"
)

func TestMain(m *testing.M) {
	cardtest.Run()
	testscript.Main(tidy{m}, map[string]func(){"profiler": main})
}

// tidy removes what the tests share.
type tidy struct{ *testing.M }

func (t tidy) Run() int {
	defer func() { os.RemoveAll(shared) }()
	return t.M.Run()
}

// shared is the directory of quickRun, once it is there.
var shared string

// TestScripts runs the command end to end, as users do.
func TestScripts(t *testing.T) {
	run := quickRun(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("NO_COLOR", "")
			e.Setenv("RUN", run)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"card":  card,
			"exits": exits,
			"json":  jsonPaths,
			"poll":  poll,
			"tear":  tear,
			"width": width,
		},
	})
}

// exits CODE COMMAND ARGS... runs a command that has to exit with CODE.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		got = -1
		if exit, ok := err.(interface{ ExitCode() int }); ok {
			got = exit.ExitCode()
		}
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("exit code %d (%v), want %s", got, err, args[0])
	}
}

// card DIR puts the tools of a card that answers from the emulator on PATH, and
// its state into DIR.
func card(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: card DIR")
	}
	dir := ts.MkAbs(args[0])
	bin := filepath.Join(dir, "bin")
	ts.Check(os.MkdirAll(bin, 0o755))
	ts.Check(cardtest.Install(bin))
	ts.Setenv("PATH", bin+string(filepath.ListSeparator)+ts.Getenv("PATH"))
	ts.Setenv(cardtest.Variable, dir)
}

// json FILE PATH... checks that FILE holds exactly one JSON document and that
// it has every PATH, such as latency_us.p50 or explain.0.resource; PATH=VALUE
// also checks the value.
func jsonPaths(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: json FILE PATH[=VALUE]...")
	}
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	var doc any
	ts.Check(d.Decode(&doc))
	if _, err := d.Token(); err != io.EOF {
		ts.Fatalf("%s holds more than one JSON document", args[0])
	}
	for _, arg := range args[1:] {
		path, want, check := strings.Cut(arg, "=")
		v := doc
		for key := range strings.SplitSeq(path, ".") {
			var ok bool
			switch node := v.(type) {
			case map[string]any:
				v, ok = node[key]
			case []any:
				var i int
				if _, err := fmt.Sscan(key, &i); err == nil && i < len(node) {
					v, ok = node[i], true
				}
			}
			if !ok {
				ts.Fatalf("%s: no %s (at %q) in %s", args[0], path, key, ts.ReadFile(args[0]))
			}
		}
		if got, err := json.Marshal(v); err != nil || check && strings.Trim(string(got), `"`) != want {
			ts.Fatalf("%s: %s is %s, want %s", args[0], path, got, want)
		}
	}
}

// poll FILE... waits until one of the files has a line.
func poll(ts *testscript.TestScript, neg bool, args []string) {
	for range 6000 {
		for _, name := range args {
			if data, err := os.ReadFile(ts.MkAbs(name)); err == nil && bytes.Contains(data, []byte("\n")) {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("nothing in %v after a minute", args)
}

// tear FROM TO LINE copies a file of lines, half of line LINE left out; 0 cuts
// the copy in the middle of its last line and drops a third of the others.
func tear(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: tear FROM TO LINE")
	}
	lines := strings.SplitAfter(strings.TrimSuffix(ts.ReadFile(args[0]), "\n"), "\n")
	var at int
	_, err := fmt.Sscan(args[2], &at)
	ts.Check(err)
	if at == 0 {
		lines = lines[:len(lines)*2/3]
		at = len(lines)
		lines[at-1] = strings.TrimSuffix(lines[at-1], "\n")
	}
	half := lines[at-1][:len(lines[at-1])/2]
	if at < len(lines) {
		half += "\n"
	}
	lines[at-1] = half
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Join(lines, "")), 0o644))
}

// width FILE checks that no line of FILE is wider than 80 columns and that it
// holds no escape sequence.
func width(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: width FILE")
	}
	text := ts.ReadFile(args[0])
	if strings.Contains(text, "\x1b") {
		ts.Fatalf("%s holds an escape sequence: %q", args[0], text)
	}
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			ts.Fatalf("%s: a line of %d columns: %s", args[0], n, line)
		}
	}
}

// command runs the command in this process.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = execute(t.Context(), args, &out, &errOut, func(string) string { return "" })
	return code, out.String(), errOut.String()
}

// An interrupt ends every measuring verb with its exit code.
func TestInterrupted(t *testing.T) {
	scenario, err := filepath.Abs("../../docs/scenarios/figure3.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	run := quickRun(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{
		{"run", "--board", "nfp", "--suite", "quick"},
		{"measure", "--board", "nfp", "--base", "forward"},
		{"measure", "--board", "nfp", "--base", "forward", "--ndr"},
		{"validate", "--model", run, "--board", "nfp"},
		{"reproduce", "cora/stateless"},
		{"fit", run, "-o", "m.json"},
		{"simulate", scenario},
	} {
		var out, errOut bytes.Buffer
		code := execute(ctx, args, &out, &errOut, func(string) string { return "" })
		if code != exitInterrupted || out.Len() > 0 || !strings.Contains(errOut.String(), "interrupted") {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q", args, code, out.String(), errOut.String())
		}
	}
}

// A profile says where the packets' time goes: its microengines are as busy as
// the measurement says.
func TestProfile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.pb.gz")
	code, stdout, stderr := command(t, "measure", "--board", "nfp", "--access", "emem:read:bulk:64:10", "--profile", path, "--json")
	if code != 0 || !strings.Contains(stderr, "go tool pprof -top "+path) {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var m struct {
		Utilisation map[string]float64 `json:"utilisation"`
		Cores       float64            `json:"cores"`
	}
	if err := json.Unmarshal([]byte(stdout), &m); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	busy := int64(0)
	memory := map[string]bool{}
	for _, s := range p.Sample {
		leaf := s.Location[0].Line[0].Function.Name
		if leaf == "microengine" {
			busy += s.Value[1]
		}
		memory[leaf] = true
		if root := s.Location[len(s.Location)-1].Line[0].Function.Name; root != "emem:read:bulk:64:10" {
			t.Errorf("root %q is not the program", root)
		}
	}
	if !memory["emem bulk bank 0"] || !memory["emem bulk bank 1"] {
		t.Errorf("no banks among the leaves %v", memory)
	}
	got := float64(busy) / float64(p.DurationNanos) / m.Cores
	if want := m.Utilisation["me"]; math.Abs(got-want) > 0.02*want {
		t.Errorf("the profile says that microengines are %.3f busy, the measurement %.3f", got, want)
	}
}

// The summary lists what the data tell, and leaves out what they do not.
func TestSummary(t *testing.T) {
	known := func(v float64) model.Value {
		return model.Value{Value: v, Low: v * 0.9, High: v * 1.1, Identified: true}
	}
	curve := func(op program.Op, bytes int, roof model.Value) model.Roofline {
		return model.Roofline{Memory: "emem", Op: op, Mode: program.Bulk, Bytes: bytes, Span: 8192, A: known(0.04), Roof: roof}
	}
	emem, imem := model.Class{Memory: "emem", Op: "read", Mode: "bulk"}, model.Class{Memory: "imem", Op: "add", Mode: "atomic"}
	m := &model.Model{
		Board: "nfp", Backends: []string{"emulated"}, DefaultRule: "resources",
		Bases: []model.Base{{Name: "forward", Cores: 54, BareMpps: known(28)}, {Name: "untold", Cores: 54}},
		Rooflines: []model.Roofline{
			curve("read", 4, known(200)), curve("read", 64, known(150)), curve("write", 64, model.Value{Value: 90}),
			curve("add", 32, model.Value{Value: 90}), curve("add", 4, known(50)),
		},
		Interference: []model.Pair{{A: emem, B: emem, Verdict: model.Shared}, {A: emem, B: imem, Verdict: model.Disjoint}, {A: imem, B: imem, Verdict: model.NotDecided}},
		Locks:        []model.Lock{{Idiom: "spin", Base: "profiling", LockMpps: known(0.45), FreeMpps: known(23.33), Linear: 16}, {Idiom: "ticket", Base: "profiling"}},
		Rules:        []model.RuleError{{Rule: "common", N: 9, MeanPct: 20}, {Rule: "resources", N: 9, MeanPct: 2}},
	}
	var out, errOut bytes.Buffer
	a := &app{out: &out, err: &errOut, getenv: func(string) string { return "" }}
	r := newFitReport(m, &fit.Report{Notes: make([]string, mostNotes+3), Findings: []string{"a point lies above its roof"}})
	if err := a.printFit(r); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		"forward  28.00  25.20 to 30.80", "emem.read.bulk      64  8192        150.0  135.0 to 165.0      6.0",
		"emem.write.bulk     64  8192       ≥90.00               –        –",
		"emem.add.bulk        4  8192        50.00  45.00 to 55.00      2.0",
		"1.  emem.read.bulk   H  M\n", "2.  imem.add.atomic     ?\n",
		"spin   profiling", "resources        9     2.0", "default", "a point lies above its roof",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, not := range []string{"untold", "ticket", "200.0"} {
		if strings.Contains(text, not) {
			t.Errorf("%q in\n%s", not, text)
		}
	}
	if n := strings.Count(errOut.String(), "\n"); n != mostNotes+1 || !strings.Contains(errOut.String(), "3 more notes") {
		t.Errorf("%d lines of notes:\n%s", n, errOut.String())
	}
}

func TestJoinRaw(t *testing.T) {
	for in, want := range map[string]string{
		"fit a.csv --raw op=read r.csv -o m":     "fit a.csv --raw op=read,file=r.csv -o m",
		"fit --raw=op=read r.csv a.csv":          "fit --raw op=read,file=r.csv a.csv",
		"fit a.csv --raw k=1 r.csv --raw k=2 r2": "fit a.csv --raw k=1,file=r.csv --raw k=2,file=r2",
		"fit a.csv --raw op=read":                "fit a.csv --raw op=read",
		"run --board nfp":                        "run --board nfp",
	} {
		if got := strings.Join(joinRaw(strings.Fields(in)), " "); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// Progress is a line a tenth, or on a terminal one line that is drawn over.
func TestProgress(t *testing.T) {
	show := func(p progress) string {
		var b bytes.Buffer
		p.app.err = &b
		for done := range 101 {
			p.show(done, 100, time.Duration(100-done)*time.Second)
		}
		p.end()
		return b.String()
	}
	plain := show(progress{app: &app{}, what: "measuring"})
	if n := strings.Count(plain, "\n"); n != 10 || !strings.HasPrefix(plain, "measuring: 10 of 100 (10 %), 1m30s left\n") || strings.Contains(plain, "\x1b") {
		t.Errorf("%d lines, want 10: %s", n, plain)
	}
	bar := show(progress{app: &app{}, what: "measuring", terminal: true})
	_, last, _ := strings.Cut(bar[strings.LastIndex(bar, "\r"):], "\x1b[K")
	if want := "measuring  [==============================] 100/100 100 %\n"; last != want || strings.Count(bar, "\n") != 1 {
		t.Errorf("the bar ends as %q, want %q; in all %q", last, want, bar)
	}
	for _, terminal := range []bool{false, true} {
		if text := show(progress{app: &app{quiet: true}, what: "measuring", terminal: terminal}); text != "" {
			t.Errorf("--quiet, terminal %v: %q", terminal, text)
		}
	}
}

// verbs calls f for every verb, those below verbs included.
func verbs(root *cobra.Command, f func(*cobra.Command)) {
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "completion" && c.Name() != "help" {
			f(c)
			verbs(c, f)
		}
	}
}

// Every verb has a summary and an example that names it, and its help fits the
// page.
func TestHelp(t *testing.T) {
	verbs(newRoot(&app{out: io.Discard, err: io.Discard}), func(c *cobra.Command) {
		if c.Short == "" || !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s: summary %q, example %q", c.CommandPath(), c.Short, c.Example)
		}
		for line := range strings.Lines(c.UsageString() + c.Long) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 && !strings.Contains(c.Example, strings.TrimSpace(line)) {
				t.Errorf("%s: a line of %d columns: %s", c.CommandPath(), n, line)
			}
		}
		code, help, stderr := command(t, append(strings.Fields(c.CommandPath())[1:], "--help")...)
		if code != 0 || stderr != "" || !strings.Contains(help, c.Example) {
			t.Errorf("%s --help: exit code %d, stderr %q, stdout\n%s", c.CommandPath(), code, stderr, help)
		}
	})
}

// Every example of the help works as printed, in the order of the page, on what
// the examples before it have left.
func TestExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("measures")
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "docs/scenarios"), os.DirFS("../../docs/scenarios")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	// What the examples take as given: users' files, and a run of the standard
	// suite, here of the quick one.
	write(t, "myboard.yaml", boardFile(t))
	write(t, "rates.csv", rates)
	write(t, "raw.csv", raw)
	if err := os.CopyFS("cora/apps", apps.Files); err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"runs/nfp-standard-1", "runs/old", "runs/new", "results/nfp"} {
		copyRun(t, quickRun(t), run)
	}
	copyRun(t, quickRun(t), "old")
	copyRun(t, quickRun(t), "new")
	root := newRoot(&app{out: io.Discard, err: io.Discard})
	var lines []string
	collect := func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	collect(root)
	verbs(root, collect)
	for _, line := range lines {
		if slow(line) {
			t.Logf("not run, it takes long: %s", line)
			continue
		}
		args := strings.Fields(line)
		if args[0] != "profiler" {
			t.Errorf("not a command of ours: %s", line)
			continue
		}
		if code, _, stderr := command(t, args[1:]...); code != 0 {
			t.Errorf("%s\nexit code %d: %s", line, code, stderr)
		}
	}
}

// rates are read rates by accesses a packet and cores, in the form of published
// ones: limited by the cores, then by the memory.
const rates = `# cores and accesses
op,per_packet,cores,mpps
read,4,5,11.1
read,4,10,22.2
read,4,20,44.1
read,4,50,49.4
read,8,5,8.2
read,8,10,16.4
read,8,20,24.4
read,8,50,24.6
read,12,5,6.5
read,12,10,13.0
read,12,20,16.4
read,12,50,16.5
`

const raw = "pps\n49000000\n49100000\n48900000\n49050000\n48950000\n49020000\n48980000\n"

func boardFile(t *testing.T) string {
	t.Helper()
	code, yaml, stderr := command(t, "boards", "show", "nfp")
	if code != 0 {
		t.Fatal(stderr)
	}
	return yaml
}

// quickRun returns the directory of a run of the quick suite without its locks,
// which take longest. The tests of this package share it.
func quickRun(t testing.TB) string {
	t.Helper()
	dir, err := quick()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var quick = sync.OnceValues(func() (string, error) {
	var err error
	if shared, err = os.MkdirTemp("", "profiler-test"); err != nil {
		return "", err
	}
	dir := filepath.Join(shared, "run")
	var out, errOut bytes.Buffer
	args := []string{"run", "--board", "nfp", "--suite", "quick", "--only", "stateless,single,pairs,cores,skew", "--out", dir}
	if code := execute(context.Background(), args, &out, &errOut, func(string) string { return "" }); code != 0 {
		return "", fmt.Errorf("exit code %d: %s", code, errOut.String())
	}
	return dir, nil
})

func copyRun(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// Every command that README.md and docs show is one that the command takes.
func TestDocs(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	// On a line of a block, or in back quotes and maybe over two lines.
	shown := regexp.MustCompile("(?m)(?:^ *(?:\\$ )?(?:go run ./cmd/)?profiler ([^`#|>&\n]*))|(?:`(?:go run ./cmd/)?profiler ([^`#|>&]*)`)")
	commands := 0
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shown.FindAllStringSubmatch(string(text), -1) {
			commands++
			verb, rest, err := newRoot(&app{out: io.Discard, err: io.Discard}).Find(joinRaw(strings.Fields(m[1] + m[2])))
			if err == nil {
				err = verb.ParseFlags(rest)
			}
			if err != nil || !verb.HasParent() {
				t.Errorf("%s: %q: %v", file, m[0], err)
			}
		}
	}
	if commands == 0 {
		t.Error("no command found: does this test still read the documents?")
	}
}

// slow tells the examples that take too long for a test: the scripts run the
// same verbs on less.
func slow(line string) bool {
	return line == "profiler run --board nfp" ||
		strings.HasPrefix(line, "profiler validate") ||
		strings.HasPrefix(line, "profiler plan --measure-host-costs") ||
		strings.HasPrefix(line, "profiler reproduce all")
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
