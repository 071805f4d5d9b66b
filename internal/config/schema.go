package config

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// CompileSchema compiles a JSON Schema that is part of the program; a schema
// that does not compile is a bug and panics.
func CompileSchema(name string, schema []byte) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, doc); err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
	return c.MustCompile(name)
}

// Conform holds the document against a schema and returns every complaint, by
// line.
func (d *Document) Conform(s *jsonschema.Schema) Findings {
	var ve *jsonschema.ValidationError
	if !errors.As(s.Validate(d.Value()), &ve) {
		return nil
	}
	var found Findings
	d.leaves(ve, &found)
	slices.SortStableFunc(found, func(a, b Finding) int { return a.Line - b.Line })
	return found
}

// leaves collects the innermost causes of a validation error.
func (d *Document) leaves(ve *jsonschema.ValidationError, found *Findings) {
	for _, c := range ve.Causes {
		d.leaves(c, found)
	}
	if len(ve.Causes) > 0 {
		return
	}
	var path strings.Builder
	for _, token := range ve.InstanceLocation {
		if _, err := strconv.Atoi(token); err == nil {
			path.WriteString("[" + token + "]")
		} else {
			path.WriteString("." + token)
		}
	}
	at := strings.TrimPrefix(path.String(), ".")
	if k, ok := ve.ErrorKind.(*kind.AdditionalProperties); ok {
		slices.Sort(k.Properties)
		for _, key := range k.Properties {
			d.complain(found, join(at, key), "unknown key")
		}
		return
	}
	d.complain(found, at, wording(ve.ErrorKind))
}

func (d *Document) complain(found *Findings, path, text string) {
	at := d.place(path)
	*found = append(*found, Finding{File: at.file, Line: at.line, Path: path, Text: text})
}

func wording(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Required:
		return "missing " + strings.Join(k.Missing, ", ")
	case *kind.Enum:
		want := make([]string, len(k.Want))
		for i, w := range k.Want {
			want[i] = fmt.Sprint(w)
		}
		return fmt.Sprintf("%v is not one of %s", k.Got, strings.Join(want, ", "))
	case *kind.Const:
		return fmt.Sprintf("expected %v, got %v", k.Want, k.Got)
	case *kind.Type:
		want := map[string]string{"object": "keys and values", "array": "a list", "string": "text", "number": "a number", "integer": "a whole number", "boolean": "true or false"}
		names := make([]string, len(k.Want))
		for i, w := range k.Want {
			names[i] = want[w]
		}
		return "expected " + strings.Join(names, " or ")
	case *kind.Minimum:
		return limit("at least", k.Want, k.Got)
	case *kind.Maximum:
		return limit("at most", k.Want, k.Got)
	case *kind.ExclusiveMinimum:
		return limit("more than", k.Want, k.Got)
	case *kind.MinLength, *kind.MinItems:
		return "is empty"
	}
	return k.LocalizedString(message.NewPrinter(language.English))
}

func limit(relation string, want, got *big.Rat) string {
	w, _ := want.Float64()
	g, _ := got.Float64()
	return fmt.Sprintf("expected %s %v, got %v", relation, w, g)
}
