package board

import (
	"embed"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"nicprof/internal/config"
	"nicprof/internal/fault"
)

//go:embed boards/*.yaml
var catalogue embed.FS

//go:embed schema.json
var schemaJSON []byte

var schema = sync.OnceValue(func() *jsonschema.Schema { return config.CompileSchema("board.json", schemaJSON) })

// Names lists the catalogue's boards.
func Names() []string {
	entries, err := catalogue.ReadDir("boards")
	if err != nil {
		panic(err) // it is embedded
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	slices.Sort(names)
	return names
}

// Load returns a board of the catalogue, or the one that a .yaml file
// describes. Its error is the user's fault and lists every finding with file
// and line.
func Load(nameOrPath string) (*Board, error) {
	doc, _, err := read(nameOrPath)
	if err != nil {
		return nil, err
	}
	return decode(doc)
}

// Source returns a board as YAML that Load reads. What a board extends is
// written out.
func Source(nameOrPath string) ([]byte, error) {
	doc, data, err := read(nameOrPath)
	if err != nil || data != nil {
		return data, err
	}
	return doc.YAML()
}

// read returns a board's document, laid over the board that it extends, and
// its text if it extends none.
func read(nameOrPath string) (*config.Document, []byte, error) {
	doc, data, err := open(nameOrPath)
	if err != nil {
		return nil, nil, err
	}
	root, ok := doc.Value().(map[string]any)
	if !ok || root["extends"] == nil {
		return doc, data, nil
	}
	name, _ := root["extends"].(string)
	if !slices.Contains(Names(), name) {
		return nil, nil, doc.Failf("extends", "%v is not a board of the catalogue; it has %s", root["extends"], strings.Join(Names(), ", "))
	}
	parent, _, err := open(name)
	if err != nil {
		return nil, nil, err
	}
	if parent.Has("extends") {
		return nil, nil, doc.Failf("extends", "board %s extends another itself; extend that one", name)
	}
	doc, err = doc.Over(parent, "extends", func(n *yaml.Node) { carryOver(n, name) })
	return doc, nil, err
}

// aliases are other names of boards of the catalogue.
var aliases = map[string]string{"bluefield2": "bluefield"}

// open parses a board of the catalogue or a file.
func open(nameOrPath string) (*config.Document, []byte, error) {
	var data []byte
	var err error
	switch ext := filepath.Ext(nameOrPath); {
	case aliases[nameOrPath] != "":
		return open(aliases[nameOrPath])
	case slices.Contains(Names(), nameOrPath):
		data, err = catalogue.ReadFile("boards/" + nameOrPath + ".yaml")
	case ext == ".yaml" || ext == ".yml":
		data, err = os.ReadFile(nameOrPath)
	default:
		return nil, nil, fault.Inputf("no board %q; the catalogue has %s; a board file ends in .yaml", nameOrPath, strings.Join(Names(), ", "))
	}
	if err != nil {
		return nil, nil, fault.Inputf("board file: %w", err)
	}
	doc, err := config.Parse(data, nameOrPath)
	return doc, data, err
}

// carriedOver begins the source of a number that carryOver has marked.
const carriedOver = "carried over from "

// carryOver marks a number that a board takes from another: it is known of
// that board only, so its confidence is L here.
func carryOver(n *yaml.Node, from string) {
	number := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		number = number || n.Content[i].Value == "value"
	}
	var kept []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case number && k.Value == "source" || k.Value == "bytes_source":
			v.SetString(carriedOver + from + ": " + v.Value)
		case number && k.Value == "confidence":
			v.SetString("L")
		case number && k.Value == "calibrated":
			continue
		}
		kept = append(kept, k, v)
	}
	n.Content = kept
}

// decode validates a document against the schema and in itself.
func decode(doc *config.Document) (*Board, error) {
	found := doc.Conform(schema())
	b := new(Board)
	if err := doc.Decode(b); err != nil && len(found) == 0 {
		return nil, err
	} else if err == nil {
		found = append(found, b.findings()...)
	}
	if err := found.Err(); err != nil {
		return nil, doc.Locate(err)
	}
	return b, nil
}
