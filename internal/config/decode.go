package config

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Decode stores the document in the struct that v points to, by its yaml tags.
// It reports every misfit: keys that the struct has not, and values of the
// wrong kind. Types may implement yaml.Unmarshaler. A null leaves its field at
// zero.
func (d *Document) Decode(v any) error {
	var found Findings
	decode("", d.root, reflect.ValueOf(v).Elem(), &found)
	if len(found) == 0 {
		return nil
	}
	return d.fail(found)
}

func decode(path string, n *yaml.Node, v reflect.Value, found *Findings) {
	refuse := func(want string) {
		*found = append(*found, Finding{Line: n.Line, Path: path, Text: fmt.Sprintf("expected %s, got %s", want, describe(n))})
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return
	}
	if u, ok := v.Addr().Interface().(yaml.Unmarshaler); ok {
		if err := u.UnmarshalYAML(n); err != nil {
			*found = append(*found, Finding{Line: n.Line, Path: path, Text: err.Error()})
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		decode(path, n, v.Elem(), found)
	case reflect.Interface:
		v.Set(reflect.ValueOf(value(n)))
	case reflect.Struct:
		if n.Kind != yaml.MappingNode {
			refuse("keys and values")
			return
		}
		decodeStruct(path, n, v, found)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			refuse("a list")
			return
		}
		s := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
		for i, c := range n.Content {
			decode(fmt.Sprintf("%s[%d]", path, i), c, s.Index(i), found)
		}
		v.Set(s)
	case reflect.Map:
		if n.Kind != yaml.MappingNode {
			refuse("keys and values")
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for i := 0; i+1 < len(n.Content); i += 2 {
			e := reflect.New(v.Type().Elem()).Elem()
			decode(join(path, n.Content[i].Value), n.Content[i+1], e, found)
			v.SetMapIndex(reflect.ValueOf(n.Content[i].Value), e)
		}
	default:
		if want := decodeScalar(n, v); want != "" {
			refuse(want)
		}
	}
}

func decodeStruct(path string, n *yaml.Node, v reflect.Value, found *Findings) {
	fields := map[string]int{}
	var known []string
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if name != "" && name != "-" {
			fields[name] = i
			known = append(known, name)
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		f, ok := fields[k.Value]
		if !ok {
			*found = append(*found, Finding{Line: k.Line, Path: path,
				Text: fmt.Sprintf("unknown key %q; known are %s", k.Value, strings.Join(known, ", "))})
			continue
		}
		decode(join(path, k.Value), n.Content[i+1], v.Field(f), found)
	}
}

// decodeScalar sets v and returns "", or what was expected.
func decodeScalar(n *yaml.Node, v reflect.Value) string {
	scalar := n.Kind == yaml.ScalarNode
	switch v.Kind() {
	case reflect.String:
		if !scalar {
			return "a word"
		}
		v.SetString(n.Value)
	case reflect.Bool:
		b, err := strconv.ParseBool(n.Value)
		if !scalar || err != nil {
			return "true or false"
		}
		v.SetBool(b)
	case reflect.Float64:
		f, ok := number(n)
		if !ok {
			return "a number"
		}
		v.SetFloat(f)
	case reflect.Int, reflect.Int64:
		f, ok := number(n)
		if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return "a whole number"
		}
		v.SetInt(int64(f))
	default:
		panic("config: cannot decode into " + v.Type().String())
	}
	return ""
}

// number reads a YAML number in decimal. Numbers with a leading zero are not
// accepted, since YAML versions disagree on whether 017 is 15 or 17.
func number(n *yaml.Node) (float64, bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" && n.ShortTag() != "!!float" {
		return 0, false
	}
	switch digits := strings.TrimLeft(n.Value, "+-"); {
	case len(digits) > 1 && digits[0] == '0' && digits[1] != '.' && digits[1] != 'e' && digits[1] != 'E':
		return 0, false
	case strings.HasPrefix(digits, "."): // .5, .inf, .nan
		n = &yaml.Node{Value: strings.Replace(strings.ToLower(n.Value), ".inf", "inf", 1)}
		n.Value = strings.Replace(n.Value, ".nan", "nan", 1)
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	return f, err == nil
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "keys and values"
	}
	return strconv.Quote(n.Value)
}

// value returns a node as maps, slices and scalars: numbers are float64, save
// that JSON has no NaN and no infinity, which stay text.
func value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.SequenceNode:
		s := make([]any, len(n.Content))
		for i, c := range n.Content {
			s[i] = value(c)
		}
		return s
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = value(n.Content[i+1])
		}
		return m
	}
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		if f, ok := number(n); ok && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
	}
	return n.Value
}
