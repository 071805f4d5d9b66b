package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nicprof/internal/fault"
	"nicprof/p4/ir"
	"nicprof/p4/source"
)

// Directories of a checkout of p4c.
const (
	samples       = "testdata/p4_16_samples"
	sampleOutputs = "testdata/p4_16_samples_outputs"
	bad           = "testdata/p4_16_errors"
	badOutputs    = "testdata/p4_16_errors_outputs"
)

// limit is how long a file may take; one that takes longer is tried again alone.
const (
	limit = 2 * time.Second
	tries = 3
)

// loader reads a program, p4.Load with its options.
type loader func(path string) (*ir.Program, error)

// outcome is what became of one file.
type outcome struct {
	file    string // below its directory
	program *ir.Program
	err     error
	crash   string // panic with its stack
	hung    bool
	took    time.Duration
}

// load reads one file within the limit. A load that does not end is left behind.
func load(read loader, dir, file string, limit time.Duration) outcome {
	done := make(chan outcome, 1)
	start := time.Now()
	go func() {
		o := outcome{file: file}
		defer func() {
			if p := recover(); p != nil {
				o.crash = fmt.Sprintf("%v\n%s", p, debug.Stack())
			}
			o.took = time.Since(start)
			done <- o
		}()
		o.program, o.err = read(filepath.Join(dir, file))
	}()
	select {
	case o := <-done:
		return o
	case <-time.After(limit):
		return outcome{file: file, hung: true, took: limit}
	}
}

// loadAll reads files on all processors and gives the outcomes in order.
func loadAll(read loader, dir string, files []string) []outcome {
	out := make([]outcome, len(files))
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				out[i] = load(read, dir, files[i], limit)
			}
		})
	}
	for i := range files {
		next <- i
	}
	close(next)
	wg.Wait()
	for i := range out { // a busy machine is not a hang: read alone, and again
		for try := 0; out[i].hung && try < tries; try++ {
			out[i] = load(read, dir, files[i], limit)
		}
	}
	return out
}

// programs lists the programs below dir: those in it, and in its directories
// those of which outputs has any result; the others there are included by them.
func programs(dir, outputs string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".p4" {
			return err
		}
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil // a link out of the checkout
		}
		file, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if filepath.Dir(file) != "." {
			results, err := filepath.Glob(filepath.Join(outputs, strings.TrimSuffix(file, ".p4")+`[\-.]*`))
			if err != nil || len(results) == 0 {
				return err
			}
		}
		files = append(files, file)
		return nil
	})
	if err != nil {
		return nil, fault.Inputf("%s is no checkout of p4c: %w", dir, err)
	}
	return files, nil
}

// failure is a file that is not as it should be, and why.
type failure struct{ file, why string }

// sampleReport is the result over the programs that are right.
type sampleReport struct {
	files, accepted int
	refused         []failure
	crashed, hung   []failure
	withInfo, same  int
	objects, alike  int // in P4Info, and those of them that the program declares alike
	differ          []failure
	slowest         time.Duration
	slowestFile     string
	total           time.Duration
}

// checkSamples loads every sample and compares what it declares with P4Info.
func checkSamples(read loader, root string) (*sampleReport, error) {
	dir, outputs := filepath.Join(root, samples), filepath.Join(root, sampleOutputs)
	files, err := programs(dir, outputs)
	if err != nil {
		return nil, err
	}
	r := &sampleReport{files: len(files)}
	start := time.Now()
	for _, o := range loadAll(read, dir, files) {
		if o.took > r.slowest {
			r.slowest, r.slowestFile = o.took, o.file
		}
		switch {
		case o.hung:
			r.hung = append(r.hung, failure{o.file, fmt.Sprintf("more than %v", limit)})
		case o.crash != "":
			r.crashed = append(r.crashed, failure{o.file, o.crash})
		case o.err != nil:
			r.refused = append(r.refused, failure{o.file, o.err.Error()})
		default:
			r.accepted++
		}
		info, err := os.ReadFile(filepath.Join(outputs, o.file+".p4info.txtpb"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		want, err := p4info(string(info))
		if err != nil {
			return nil, fault.Inputf("%s.p4info.txtpb: %w", filepath.Join(outputs, o.file), err)
		}
		r.withInfo++
		r.objects += len(want)
		if o.program == nil {
			r.differ = append(r.differ, failure{o.file, "not accepted"})
			continue
		}
		diff, alike := differences(declared(o.program), want)
		r.alike += alike
		if len(diff) > 0 {
			r.differ = append(r.differ, failure{o.file, strings.Join(diff, "\n")})
			continue
		}
		r.same++
	}
	r.total = time.Since(start)
	return r, nil
}

// class is what is wrong with a program of the errors' corpus.
type class string

// Classes of errors that have to be found at their line.
const (
	syntaxError class = "syntax error"
	undeclared  class = "undeclared name"
	argCount    class = "wrong number of arguments"
	other       class = "another error"
)

var (
	// reported is the first line of an error in p4c's expected output:
	// file(line): [--Werror=kind] error: text, or file(line):syntax error, text.
	reported = regexp.MustCompile(`^([^()\s]+)\((\d+)\): ?(?:\[--Werror=([^\]]+)\] error: )?(.*)$`)

	missingName = regexp.MustCompile(`declaration not found`)
	counts      = regexp.MustCompile(`(type )?(parameters expected, but \d+ )?(type )?arguments supplied|No argument supplied|must be bound|cannot be bound`)
)

// expectation is the class of what p4c reports for a file, and the lines at
// which it does.
type expectation struct {
	class class
	lines []int
}

// expect reads p4c's expected output for a file. A file counts to the first of
// the classes of which an error is reported; it is refused where expected when
// it is at any line of that class, that where p4c says the error originates
// among them: it reports a constructor's arguments at the declaration.
func expect(file, stderr string) expectation {
	found := map[class][]int{}
	kind, line := "", 0
	counted, origin := false, false // the error is one of counts; its origin follows
	for _, text := range strings.Split(stderr, "\n") {
		if m := reported.FindStringSubmatch(text); m != nil && filepath.Base(m[1]) == filepath.Base(file) {
			n, err := strconv.Atoi(m[2])
			if err != nil {
				continue
			}
			switch {
			case strings.HasPrefix(m[4], "syntax error"):
				found[syntaxError] = append(found[syntaxError], n)
				continue
			case m[3] != "":
				kind, line, counted, origin = m[3], n, false, false
			case kind == "":
				continue // the place of a note, or of a warning
			case counted && origin:
				found[argCount] = append(found[argCount], n)
				origin = false
			}
			if m[3] != "" && missingName.MatchString(m[4]) {
				found[undeclared] = append(found[undeclared], n)
			}
			if counts.MatchString(m[4]) {
				found[argCount] = append(found[argCount], line)
			}
			continue
		}
		if kind != "" && counts.MatchString(text) {
			found[argCount], counted = append(found[argCount], line), true
		}
		origin = origin || strings.Contains(text, "---- Originating from:")
	}
	for _, c := range []class{syntaxError, undeclared, argCount} {
		if lines := found[c]; len(lines) > 0 {
			return expectation{c, lines}
		}
	}
	return expectation{class: other}
}

// errorReport is the result over the programs that are wrong.
type errorReport struct {
	files, refused int
	crashed, hung  []failure
	expected, met  map[class]int
	missed         map[class][]failure
	total          time.Duration
}

// checkErrors loads every wrong program and looks where it is refused.
func checkErrors(read loader, root string) (*errorReport, error) {
	dir, outputs := filepath.Join(root, bad), filepath.Join(root, badOutputs)
	files, err := programs(dir, outputs)
	if err != nil {
		return nil, err
	}
	r := &errorReport{files: len(files), expected: map[class]int{}, met: map[class]int{}, missed: map[class][]failure{}}
	start := time.Now()
	for _, o := range loadAll(read, dir, files) {
		switch {
		case o.hung:
			r.hung = append(r.hung, failure{o.file, fmt.Sprintf("more than %v", limit)})
		case o.crash != "":
			r.crashed = append(r.crashed, failure{o.file, o.crash})
		case o.err != nil:
			r.refused++
		}
		stderr, err := os.ReadFile(filepath.Join(outputs, o.file+"-stderr"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		e := expect(o.file, string(stderr))
		r.expected[e.class]++
		if e.class == other {
			if o.err != nil {
				r.met[e.class]++
			}
			continue
		}
		if why := e.missed(o); why != "" {
			r.missed[e.class] = append(r.missed[e.class], failure{o.file, why})
		} else {
			r.met[e.class]++
		}
	}
	r.total = time.Since(start)
	return r, nil
}

// missed says in what an outcome is not what was expected, "" if it is.
func (e expectation) missed(o outcome) string {
	if o.err == nil {
		return fmt.Sprintf("accepted; expected an error at line %s", numbers(e.lines))
	}
	for _, m := range messages(o.err) {
		if filepath.Base(m.Pos.File) == filepath.Base(o.file) && slices.Contains(e.lines, m.Pos.Line) {
			return ""
		}
	}
	return fmt.Sprintf("expected an error at line %s; found %s", numbers(e.lines), o.err)
}

func numbers(ns []int) string {
	var s []string
	for _, n := range ns {
		s = append(s, strconv.Itoa(n))
	}
	return strings.Join(s, " or ")
}

// messages gives all messages with places in an error.
func messages(err error) []*source.Message {
	var all []*source.Message
	switch e := err.(type) {
	case *source.Message:
		all = append(all, e)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			all = append(all, messages(inner)...)
		}
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			all = append(all, messages(inner)...)
		}
	}
	return all
}
