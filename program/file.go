package program

import (
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v4"

	"nicprof/internal/config"
	"nicprof/internal/fault"
)

// Locator puts the program file's name and lines on an error that another
// package (board.Check, say) found in the program.
type Locator func(error) error

// Load reads and validates the program file at path.
func Load(path string) (Program, Locator, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Program{}, nil, fault.Inputf("program file: %w", err)
	}
	p, doc, err := parse(data, path)
	if err != nil {
		return Program{}, nil, err
	}
	return p, doc.Locate, nil
}

// Parse reads and validates a program file. name is the file's name in errors,
// which are faults of the user's with a line each.
func Parse(r io.Reader, name string) (Program, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return Program{}, fault.Inputf("%s: %w", name, err)
	}
	p, _, err := parse(data, name)
	return p, err
}

func parse(data []byte, name string) (Program, *config.Document, error) {
	var p Program
	doc, err := config.Parse(data, name)
	if err != nil {
		return Program{}, nil, err
	}
	if err := doc.Decode(&p); err != nil {
		return Program{}, nil, err
	}
	found := p.findings()
	// A zero in the struct means the default; a zero in the file is a mistake.
	zero := func(path string, v int64, what string) {
		if v == 0 && doc.Has(path) {
			found.Add(path, "%s is 0; leave it out for the default", what)
		}
	}
	zero("packet_bytes", int64(p.PacketBytes), "the packet size")
	p.eachAccess(func(path string, a *Access) {
		zero(path+".span", a.Span, "the number of elements")
		zero(path+".stride", a.Stride, "the distance between elements")
	})
	if err := found.Err(); err != nil {
		return Program{}, nil, doc.Locate(err)
	}
	return p, doc, nil
}

// eachAccess calls f for every access of the program with its path, those of
// the locks' sections included.
func (p *Program) eachAccess(f func(path string, a *Access)) {
	for i := range p.Accesses {
		f(fmt.Sprintf("accesses[%d]", i), &p.Accesses[i])
	}
	for i := range p.Locks {
		for j := range p.Locks[i].Section {
			f(fmt.Sprintf("locks[%d].section[%d]", i, j), &p.Locks[i].Section[j])
		}
	}
}

// UnmarshalYAML reads a map by kind or a plain count of ALU operations.
func (s *Stateless) UnmarshalYAML(n *yaml.Node) error {
	var count float64
	if n.Kind == yaml.ScalarNode && n.Load(&count) == nil {
		*s = Stateless{ALU: count}
		return nil
	}
	var kinds map[string]float64
	if n.Kind != yaml.MappingNode || n.Load(&kinds) != nil {
		return fmt.Errorf("expected a number of ALU operations, or numbers by kind such as {alu: 120, hash: 1}")
	}
	*s = kinds
	return nil
}
