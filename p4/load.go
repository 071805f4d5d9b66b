// Package p4 reads a P4 program, from P4_16 source or from the JSON that p4c
// makes for the behavioral model, into one intermediate representation.
package p4

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"

	"nicprof/internal/fault"
	"nicprof/p4/bind"
	"nicprof/p4/bmv2"
	"nicprof/p4/ir"
	"nicprof/p4/prelude"
	"nicprof/p4/source"
	"nicprof/p4/syntax"
)

// Options say how to read a source file. JSON needs none.
type Options struct {
	// Include lists the directories of #include, before the built-in
	// declarations of architectures.
	Include []string
	// Define lists macros as NAME or NAME=VALUE; a NAME alone is 1.
	Define []string
}

// Load reads the program at path; what it is, source or JSON, is told by its
// content. An error is an input fault that carries every message about the
// program.
func Load(path string, opt Options) (*ir.Program, error) {
	data, err := source.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Inputf("%s: there is no such file; expected a P4_16 program or p4c's JSON", path)
	}
	if err != nil {
		return nil, fault.Inputf("read the program: %w", err)
	}
	if isJSON(data) {
		p, err := bmv2.Read(path, data)
		if err != nil {
			return nil, fault.Inputf("%w", err)
		}
		return p, nil
	}
	return Parse(path, data, opt)
}

// Parse reads a program in source from memory, as Load does; its includes are
// looked for beside path.
func Parse(path string, src []byte, opt Options) (*ir.Program, error) {
	define := map[string]string{}
	for _, d := range opt.Define {
		name, value, ok := strings.Cut(d, "=")
		if name == "" {
			return nil, fault.Inputf("define %q: expected NAME or NAME=VALUE", d)
		}
		if !ok {
			value = "1"
		}
		define[name] = value
	}
	f, err := syntax.Parse(path, src, syntax.Options{Include: opt.Include, Define: define, Builtin: prelude.File})
	if err != nil {
		return nil, fault.Inputf("%w", err)
	}
	p, err := bind.Program(f)
	if err != nil {
		return nil, fault.Inputf("%w", err)
	}
	return p, nil
}

// isJSON tells whether a file is JSON by its first character: no P4 program
// begins with a brace.
func isJSON(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n\ufeff"), []byte("{"))
}
