package bmv2

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"nicprof/p4/source"
)

// document is the JSON file, as far as the reader uses it.
type document struct {
	Meta struct {
		Version []int `json:"version"`
	} `json:"__meta__"`
	HeaderTypes  []headerType     `json:"header_types"`
	Headers      []header         `json:"headers"`
	Stacks       []group          `json:"header_stacks"`
	UnionTypes   []unionType      `json:"header_union_types"`
	Unions       []group          `json:"header_unions"`
	UnionStacks  []group          `json:"header_union_stacks"`
	FieldLists   []fieldList      `json:"field_lists"`
	LearnLists   []fieldList      `json:"learn_lists"`
	Parsers      []parser         `json:"parsers"`
	ValueSets    []valueSet       `json:"parse_vsets"`
	Deparsers    []deparser       `json:"deparsers"`
	Meters       []array          `json:"meter_arrays"`
	Counters     []array          `json:"counter_arrays"`
	Registers    []array          `json:"register_arrays"`
	Calculations []calculation    `json:"calculations"`
	Checksums    []checksum       `json:"checksums"`
	Actions      []action         `json:"actions"`
	Pipelines    []pipeline       `json:"pipelines"`
	Externs      []externInstance `json:"extern_instances"`
}

// info is source_info: a place in the P4 source. Columns count from 0.
type info struct {
	File     string `json:"filename"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Fragment string `json:"source_fragment"`
}

func (i *info) pos() source.Pos {
	if i == nil || i.Line <= 0 {
		return source.Pos{}
	}
	return source.Pos{File: i.File, Line: i.Line, Col: max(i.Column, 0) + 1}
}

type headerType struct {
	Name      string              `json:"name"`
	Fields    [][]json.RawMessage `json:"fields"` // name, width or "*", signed
	MaxLength int                 `json:"max_length"`
}

type header struct {
	Name     string `json:"name"`
	ID       int    `json:"id"`
	Type     string `json:"header_type"`
	Metadata bool   `json:"metadata"`
}

// group is a header stack, a header union, or a stack of header unions.
type group struct {
	Name      string `json:"name"`
	ID        int    `json:"id"`
	UnionType string `json:"union_type"`
	Headers   []int  `json:"header_ids"`
	Unions    []int  `json:"header_union_ids"`
}

type unionType struct {
	Name    string     `json:"name"`
	Headers [][]string `json:"headers"` // member, type
}

// value is the type-value object that the format is made of, and the expression
// node inside one.
type value struct {
	Type     string          `json:"type"`
	Value    json.RawMessage `json:"value"`
	Bitwidth int             `json:"bitwidth"`

	Op         string          `json:"op"`
	Left       json.RawMessage `json:"left"`
	Right      json.RawMessage `json:"right"`
	Cond       json.RawMessage `json:"cond"`
	Parameters []value         `json:"parameters"` // of a parser's primitive
}

type fieldList struct {
	ID       int     `json:"id"`
	Name     string  `json:"name"`
	Elements []value `json:"elements"`
}

type parser struct {
	Name   string       `json:"name"`
	Init   string       `json:"init_state"`
	States []parseState `json:"parse_states"`
}

type parseState struct {
	Name        string       `json:"name"`
	Ops         []primitive  `json:"parser_ops"`
	Key         []value      `json:"transition_key"`
	Transitions []transition `json:"transitions"`
}

// transition has no type in files of early compilers; "default" is then the value.
type transition struct {
	Type  string  `json:"type"`
	Value *string `json:"value"`
	Mask  *string `json:"mask"`
	Next  *string `json:"next_state"`
}

type valueSet struct {
	Name string `json:"name"`
	Bits int    `json:"compressed_bitwidth"`
	Size int64  `json:"max_size"`
	Info *info  `json:"source_info"`
}

type deparser struct {
	Name       string      `json:"name"`
	Order      []string    `json:"order"`
	Primitives []primitive `json:"primitives"`
	Info       *info       `json:"source_info"`
}

// array is a register, counter or meter array.
type array struct {
	Name    string   `json:"name"`
	Info    *info    `json:"source_info"`
	Size    int64    `json:"size"`
	Bits    int      `json:"bitwidth"`
	Type    string   `json:"type"`
	Direct  bool     `json:"is_direct"`
	Binding string   `json:"binding"`
	Target  []string `json:"result_target"`
}

type calculation struct {
	Name  string  `json:"name"`
	Algo  string  `json:"algo"`
	Input []value `json:"input"`
}

type checksum struct {
	Name        string   `json:"name"`
	Target      []string `json:"target"`
	Calculation string   `json:"calculation"`
	Verify      *bool    `json:"verify"`
	Update      *bool    `json:"update"`
	If          *value   `json:"if_cond"`
	Info        *info    `json:"source_info"`
}

type action struct {
	Name string `json:"name"`
	ID   int    `json:"id"`
	Data []struct {
		Name string `json:"name"`
		Bits int    `json:"bitwidth"`
	} `json:"runtime_data"`
	Primitives []primitive `json:"primitives"`
}

type primitive struct {
	Op         string  `json:"op"`
	Parameters []value `json:"parameters"`
	Info       *info   `json:"source_info"`
}

type pipeline struct {
	Name         string        `json:"name"`
	Info         *info         `json:"source_info"`
	Init         *string       `json:"init_table"`
	Tables       []table       `json:"tables"`
	Conditionals []conditional `json:"conditionals"`
	Calls        []actionCall  `json:"action_calls"`
	Profiles     []profile     `json:"action_profiles"`
}

type profile struct {
	Name     string `json:"name"`
	Size     int64  `json:"max_size"`
	Selector *struct {
		Algo  string  `json:"algo"`
		Input []value `json:"input"`
	} `json:"selector"`
}

type table struct {
	Name      string             `json:"name"`
	Info      *info              `json:"source_info"`
	Keys      []tableKey         `json:"key"`
	Profile   string             `json:"action_profile"`
	Size      int64              `json:"max_size"`
	Timeout   bool               `json:"support_timeout"`
	ActionIDs []int              `json:"action_ids"`
	Actions   []string           `json:"actions"`
	Base      *string            `json:"base_default_next"`
	Next      map[string]*string `json:"next_tables"`
	Default   *struct {
		Action int      `json:"action_id"`
		Const  bool     `json:"action_const"`
		Data   []string `json:"action_data"`
	} `json:"default_entry"`
	Entries []json.RawMessage `json:"entries"`
}

type tableKey struct {
	Match  string          `json:"match_type"`
	Name   string          `json:"name"`
	Target json.RawMessage `json:"target"` // [header, field], or a header with match type valid
	Mask   *string         `json:"mask"`
}

type conditional struct {
	Name  string  `json:"name"`
	Info  *info   `json:"source_info"`
	Cond  value   `json:"expression"`
	True  *string `json:"true_next"`
	False *string `json:"false_next"`
}

type actionCall struct {
	Name   string  `json:"name"`
	Action int     `json:"action_id"`
	Next   *string `json:"next_node"`
}

type externInstance struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Info       *info  `json:"source_info"`
	Attributes []struct {
		Name  string          `json:"name"`
		Value json.RawMessage `json:"value"` // a string, or a number where p4c forgets the quotes
	} `json:"attribute_values"`
}

// attribute gives an attribute's value as text.
func (e *externInstance) attribute(name string) string {
	for _, a := range e.Attributes {
		if a.Name == name {
			return strings.Trim(string(a.Value), `"`)
		}
	}
	return ""
}

// Oldest and newest format versions that are read, of major version 2.
const (
	major       = 2
	oldestMinor = 5
	newestMinor = 23
)

// decode reads the file and checks its version. Errors have its line and column.
func decode(name string, data []byte) (*document, *source.Message) {
	var top map[string]json.RawMessage
	if m := unmarshal(name, data, &top); m != nil {
		return nil, m
	}
	at := source.Pos{File: name}
	if _, ok := top["pipelines"]; !ok {
		return nil, &source.Message{Pos: at, Msg: `not a bmv2 program: the JSON has no "pipelines"; compile with p4c-bm2-ss, p4c-bm2-psa or p4c-bm2-pna`}
	}
	var d document
	if m := unmarshal(name, data, &d); m != nil {
		return nil, m
	}
	v, remedy := d.Meta.Version, "compile the program with a newer p4c"
	switch {
	case len(v) != 2:
		return nil, &source.Message{Pos: at, Msg: fmt.Sprintf("no format version in __meta__.version: the file is older than version %d.%d, the oldest that is read; %s", major, oldestMinor, remedy)}
	case v[0] == major && v[1] >= oldestMinor && v[1] <= newestMinor:
		return &d, nil
	case v[0] > major || v[0] == major && v[1] > newestMinor:
		remedy = fmt.Sprintf("compile the program with a p4c that writes version %d.%d, or give its P4 source", major, newestMinor)
	}
	return nil, &source.Message{Pos: at, Msg: fmt.Sprintf("format version %d.%d; versions %d.%d to %d.%d are read: %s", v[0], v[1], major, oldestMinor, major, newestMinor, remedy)}
}

func unmarshal(name string, data []byte, into any) *source.Message {
	err := json.Unmarshal(data, into)
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return messageAt(name, data, syntax.Offset, "JSON: "+syntax.Error())
	case errors.As(err, &kind):
		msg := fmt.Sprintf("JSON: %s where %s is expected", kind.Value, expected(kind.Type.Kind().String()))
		if kind.Field != "" {
			msg += ", in " + kind.Field
		}
		return messageAt(name, data, kind.Offset, msg)
	}
	return &source.Message{Pos: source.Pos{File: name}, Msg: "JSON: " + err.Error()}
}

// expected names a Go kind in JSON's words.
func expected(kind string) string {
	switch kind {
	case "struct", "map":
		return "an object"
	case "slice":
		return "an array"
	case "bool":
		return "true or false"
	case "string":
		return "a string"
	}
	return "a whole number"
}

// messageAt builds a message at a byte offset, which the decoder gives behind
// the offending byte.
func messageAt(name string, data []byte, offset int64, msg string) *source.Message {
	at := int(min(max(offset-1, 0), int64(len(data))))
	start := bytes.LastIndexByte(data[:at], '\n') + 1
	end := len(data)
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		end = max(at+i, start)
	}
	m := &source.Message{
		Pos: source.Pos{File: name, Line: bytes.Count(data[:start], []byte("\n")) + 1, Col: at - start + 1},
		Msg: msg,
	}
	if end-start <= maxLine {
		m.Text = string(data[start:end])
	}
	return m
}

// maxLine is the longest line that a message repeats; JSON without line breaks
// is not repeated.
const maxLine = 200
