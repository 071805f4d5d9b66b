// Package config reads the YAML files that people write: strictly (unknown
// keys, duplicate keys, anchors and wrong kinds are refused), and so that every
// complaint names the file, the line, the value's path and what is expected.
package config

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"nicprof/internal/fault"
)

// Finding is one complaint about the value at Path ("accesses[2].bytes"). Its
// File is "" and its Line 0 while the value is not known to come from a file.
type Finding struct {
	File string
	Line int
	Path string
	Text string
}

func (f Finding) String() string {
	s := f.Text
	if f.Path != "" {
		s = f.Path + ": " + s
	}
	if f.File != "" {
		s = fmt.Sprintf("%s:%d: %s", f.File, f.Line, s)
	}
	return s
}

// Findings collects complaints in the order they are found.
type Findings []Finding

// Add appends a complaint about the value at path.
func (f *Findings) Add(path, format string, a ...any) {
	*f = append(*f, Finding{Path: path, Text: fmt.Sprintf(format, a...)})
}

// AddAll appends other's complaints with their paths below prefix.
func (f *Findings) AddAll(prefix string, other Findings) {
	for _, o := range other {
		o.Path = join(prefix, o.Path)
		*f = append(*f, o)
	}
}

// Err returns the complaints as one fault of the user's, or nil.
func (f Findings) Err() error {
	if len(f) == 0 {
		return nil
	}
	return fault.Inputf("%w", &Error{Findings: f})
}

// Error is a list of complaints; it prints one a line.
type Error struct{ Findings Findings }

func (e *Error) Error() string {
	lines := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Document is one parsed YAML file.
type Document struct {
	name   string
	root   *yaml.Node
	places map[string]place      // by path
	other  map[*yaml.Node]string // file of the nodes that another file gave (Over)
}

type place struct {
	file string
	line int
}

// Parse reads one YAML document. name is the file's name in complaints.
func Parse(data []byte, name string) (*Document, error) {
	d := &Document{name: name, root: new(yaml.Node), places: map[string]place{}}
	if err := yaml.Load(data, d.root); err != nil {
		f := syntax(data, err)
		f.File = name
		return nil, Findings{f}.Err()
	}
	if d.root.Kind == yaml.DocumentNode {
		d.root = d.root.Content[0]
	}
	var found Findings
	d.index("", d.root, d.root.Line, &found)
	if len(found) > 0 {
		return nil, d.fail(found)
	}
	return d, nil
}

// syntax words an error of the YAML parser.
func syntax(data []byte, err error) Finding {
	var le *yaml.LoadError
	if !errors.As(err, &le) || le.Mark.Line == 0 {
		text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: construct errors: "), "<unknown position>: yaml: ")
		switch {
		case strings.Contains(text, "no documents"):
			text = "the file is empty; a YAML document is expected"
		case strings.Contains(text, "found multiple"):
			text = "one YAML document is expected, the file has several (---)"
		}
		return Finding{Line: 1, Text: text}
	}
	for i, line := range strings.Split(string(data), "\n") {
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if i < le.Mark.Line && strings.Contains(indent, "\t") {
			return Finding{Line: i + 1, Text: "a tab in the indentation; indent YAML with spaces"}
		}
	}
	text := "not YAML: " + le.Message
	if le.ContextMsg != "" {
		text += " (" + le.ContextMsg + ")"
	}
	return Finding{Line: le.Mark.Line, Text: text}
}

// index notes the line of every path and refuses what no file needs: anchors,
// keys that are not scalars, duplicate keys.
func (d *Document) index(path string, n *yaml.Node, line int, found *Findings) {
	file := d.name
	if other, ok := d.other[n]; ok {
		file = other
	}
	d.places[path] = place{file, line}
	refuse := func(line int, format string, a ...any) {
		*found = append(*found, Finding{Line: line, Path: path, Text: fmt.Sprintf(format, a...)})
	}
	if n.Anchor != "" || n.Kind == yaml.AliasNode {
		refuse(n.Line, "anchors (&, *) are not supported; write the value out")
		return
	}
	switch n.Kind {
	case yaml.SequenceNode:
		for i, c := range n.Content {
			d.index(fmt.Sprintf("%s[%d]", path, i), c, c.Line, found)
		}
	case yaml.MappingNode:
		seen := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
				refuse(k.Line, "a key is a plain word")
				continue
			}
			if at := seen[k.Value]; at != 0 {
				refuse(k.Line, "key %q is already set on line %d", k.Value, at)
				continue
			}
			seen[k.Value] = k.Line
			d.index(join(path, k.Value), v, k.Line, found)
		}
	}
}

func join(path, key string) string {
	if path == "" || key == "" || key[0] == '[' {
		return path + key
	}
	return path + "." + key
}

// Has says whether the document sets the value at path.
func (d *Document) Has(path string) bool {
	_, ok := d.places[path]
	return ok
}

// Locate puts file and line on err's findings, if it has any without.
func (d *Document) Locate(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	return d.fail(e.Findings)
}

// Failf complains about the value at path.
func (d *Document) Failf(path, format string, a ...any) error {
	var f Findings
	f.Add(path, format, a...)
	return d.fail(f)
}

// fail returns findings as a fault, with file and line on each: those of the
// value, or of the nearest value that contains it.
func (d *Document) fail(found Findings) error {
	located := make(Findings, len(found))
	for i, f := range found {
		if f.File == "" {
			at := d.place(f.Path)
			f.File = at.file
			if f.Line == 0 {
				f.Line = at.line
			}
		}
		located[i] = f
	}
	return located.Err()
}

func (d *Document) place(path string) place {
	for {
		if at, ok := d.places[path]; ok || path == "" {
			return at
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

// Value returns the document as maps, slices and scalars, for a JSON Schema.
func (d *Document) Value() any { return value(d.root) }

// YAML prints the document.
func (d *Document) YAML() ([]byte, error) {
	return yaml.Dump(clone(d.root), yaml.WithLineWidth(-1)) // Dump clears the nodes' tags
}

func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i := range n.Content {
		c.Content[i] = clone(n.Content[i])
	}
	return &c
}
