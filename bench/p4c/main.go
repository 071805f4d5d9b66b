// Command p4c reads the test programs of a checkout of p4c, the reference
// compiler, and reports how far the P4 front end agrees with it:
//
//	go run ./bench/p4c -p4c DIR [-v] [-o FILE]
//
// Of the programs that are right it reports how many are accepted, and of those
// with a P4Info file how many declare the same tables (keys with match kind and
// width, sizes), registers, counters, meters, action profiles and value sets.
// Of the programs that are wrong it reports how many are refused, and at the
// line where p4c reports a syntax error, an undeclared name or a wrong number of
// arguments. A file may take 2 seconds; panics and hangs are named.
//
// Nothing is included from the checkout but what the programs keep beside them:
// core.p4 and the architectures are our own declarations.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"nicprof/internal/atomicfile"
	"nicprof/internal/fault"
	"nicprof/internal/table"
	"nicprof/p4"
	"nicprof/p4/ir"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench/p4c:", err)
		}
		os.Exit(max(1, int(fault.KindOf(err))))
	}
}

// run is main without the process.
func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("p4c", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("p4c", "", "`directory` of a checkout of p4c")
	verbose := flags.Bool("v", false, "name every file that is not as expected, and why")
	out := flags.String("o", "", "`file` for the report as Markdown")
	if err := flags.Parse(args); err != nil {
		return fault.Inputf("%w", err)
	}
	if *root == "" || flags.NArg() > 0 {
		return fault.Inputf("give the directory of a checkout of p4c: -p4c DIR")
	}
	s, err := checkSamples(read, *root)
	if err != nil {
		return err
	}
	e, err := checkErrors(read, *root)
	if err != nil {
		return err
	}
	tables := report(s, e)
	for _, t := range tables {
		if err := t.Text(stdout, table.Colors(stdout, os.Getenv)); err != nil {
			return err
		}
		fmt.Fprintln(stdout)
	}
	if *verbose {
		names(stdout, s, e)
	}
	fmt.Fprintf(stderr, "samples in %.1f s, errors in %.1f s; slowest %s in %.0f ms\n",
		s.total.Seconds(), e.total.Seconds(), s.slowestFile, 1000*s.slowest.Seconds())
	if *out == "" {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# The front end against p4c's test programs\n\np4c at commit %s. Written by `go run ./bench/p4c -p4c DIR -o FILE`.\n", commit(*root))
	for _, t := range tables {
		b.WriteByte('\n')
		if err := t.Markdown(&b); err != nil {
			return err
		}
	}
	return atomicfile.Write(*out, []byte(b.String()))
}

// read is the loader of programs: no directory of the checkout is searched, so
// that the architectures are our own declarations.
func read(path string) (*ir.Program, error) { return p4.Load(path, p4.Options{}) }

// commit gives the commit that is checked out, from git's files; "unknown" where
// the directory is no repository.
func commit(root string) string {
	head, err := os.ReadFile(filepath.Join(root, ".git", "HEAD"))
	if err != nil {
		return "unknown"
	}
	ref, isRef := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: ")
	if !isRef {
		return ref
	}
	if id, err := os.ReadFile(filepath.Join(root, ".git", filepath.FromSlash(ref))); err == nil {
		return strings.TrimSpace(string(id))
	}
	packed, err := os.ReadFile(filepath.Join(root, ".git", "packed-refs"))
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(packed)) {
		if id, name, _ := strings.Cut(strings.TrimSpace(line), " "); name == ref {
			return id
		}
	}
	return "unknown"
}

// report makes the tables: how many files are as expected, and why samples are
// refused.
func report(s *sampleReport, e *errorReport) []*table.Table {
	t := table.New("p4c's test programs", "programs", "expected", "number", "as expected", "per cent")
	row := func(what, expected string, n, met int) {
		share := "–"
		if n > 0 {
			share = fmt.Sprintf("%.1f", 100*float64(met)/float64(n))
		}
		t.Row(what, expected, n, met, share)
	}
	row("p4_16_samples", "accepted", s.files, s.accepted)
	row("with P4Info", "the same objects", s.withInfo, s.same)
	row("objects in P4Info", "declared alike", s.objects, s.alike)
	expected, met := 0, 0
	for _, c := range []class{syntaxError, undeclared, argCount} {
		row("p4_16_errors, "+string(c), "refused at the line", e.expected[c], e.met[c])
		expected += e.expected[c]
		met += e.met[c]
	}
	row("p4_16_errors, these three", "refused at the line", expected, met)
	row("p4_16_errors, "+string(other), "refused (not an aim)", e.expected[other], e.met[other])
	all := s.files + e.files
	row("all", "no panic", all, all-len(s.crashed)-len(e.crashed))
	row("all", "no hang", all, all-len(s.hung)-len(e.hung))

	why := table.New("Why samples are refused", "message", "files", "one of them")
	for _, g := range grouped(s.refused) {
		why.Row(g.why, len(g.files), g.files[0])
	}
	if why.Len() == 0 {
		return []*table.Table{t}
	}
	return []*table.Table{t, why}
}

// group is files that are refused for the same reason.
type group struct {
	why   string
	files []string
}

var (
	place     = regexp.MustCompile(`^\S+?:\d+(:\d+)?: `)
	directory = regexp.MustCompile(`\S*/`)
	quoted    = regexp.MustCompile(`"[^"]*"|\b\d+\b`)
)

// grouped joins failures whose first message is the same but for its place,
// names and numbers; the largest group first.
func grouped(fs []failure) []group {
	var groups []group
	for _, f := range fs {
		first, _, _ := strings.Cut(f.why, "\n")
		why := quoted.ReplaceAllString(directory.ReplaceAllString(place.ReplaceAllString(first, ""), ""), "…")
		i := slices.IndexFunc(groups, func(g group) bool { return g.why == why })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{why: why})
		}
		groups[i].files = append(groups[i].files, f.file)
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(len(b.files), len(a.files)) })
	return groups
}

// names prints every file that is not as expected.
func names(w io.Writer, s *sampleReport, e *errorReport) {
	list := func(what string, fs []failure) {
		for _, f := range fs {
			fmt.Fprintf(w, "%s: %s: %s\n", what, f.file, strings.ReplaceAll(f.why, "\n", "\n    "))
		}
	}
	list("panic", append(slices.Clone(s.crashed), e.crashed...))
	list("hang", append(slices.Clone(s.hung), e.hung...))
	list("refused", s.refused)
	list("P4Info", s.differ)
	for _, c := range []class{syntaxError, undeclared, argCount} {
		list(string(c), e.missed[c])
	}
}
