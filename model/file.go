package model

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"nicprof/internal/atomicfile"
	"nicprof/internal/fault"
)

//go:embed schema.json
var schemaJSON []byte

var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaJSON))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("model.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("model.json")
})

// JSONSchema returns the JSON Schema of model files.
func JSONSchema() []byte { return bytes.Clone(schemaJSON) }

// Load reads a model file. A file that is not one, has an unknown field or
// comes from another version is refused with what to do.
func Load(path string) (*Model, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fault.Inputf("%w (a model file is written by `profiler run` or `profiler fit`)", err)
	}
	if err != nil {
		return nil, fault.Inputf("%w", err)
	}
	return Decode(data, path)
}

// Decode reads a model from data; name stands for it in errors.
func Decode(data []byte, name string) (*Model, error) {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fault.Inputf("%s%s: not a model file, which is one JSON object: %w", name, lineOf(data, err), err)
	}
	if err := checkSchema(head.Schema); err != nil {
		return nil, fault.Inputf("%s: %w", name, err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	m := new(Model)
	if err := dec.Decode(m); err != nil {
		return nil, fault.Inputf("%s%s: %s; a %s file has the fields of its schema only", name, lineOf(data, err), strings.TrimPrefix(err.Error(), "json: "), Schema)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fault.Inputf("%s: more follows the model's closing brace; one JSON object is expected", name)
	}
	if err := validate(data); err != nil {
		return nil, fault.Inputf("%s: %w", name, err)
	}
	if err := m.check(); err != nil {
		return nil, fault.Inputf("%s: %w", name, err)
	}
	return m, nil
}

// lineOf returns ":LINE" for JSON errors that know their offset.
func lineOf(data []byte, err error) string {
	var at int64 = -1
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &kind):
		at = kind.Offset
	}
	if at < 0 || at > int64(len(data)) {
		return ""
	}
	return ":" + strconv.Itoa(1+bytes.Count(data[:at], []byte("\n")))
}

func checkSchema(got string) error {
	if got == Schema {
		return nil
	}
	const prefix = "nicprof-model/"
	if got == "" {
		return errors.New(`no "schema" field, so this is not a model file; expected "` + Schema + `"`)
	}
	v, ok := strings.CutPrefix(got, prefix)
	n, err := strconv.Atoi(v)
	mine, _ := strconv.Atoi(strings.TrimPrefix(Schema, prefix))
	switch {
	case !ok || err != nil:
		return errors.New("schema " + strconv.Quote(got) + " is not a model's; expected " + strconv.Quote(Schema))
	case n > mine:
		return errors.New("schema " + got + " is newer than this program reads (" + Schema + "): update profiler, or fit the samples again with this one")
	}
	return errors.New("schema " + got + " is older than this program reads (" + Schema + "): fit the samples again with `profiler fit`")
}

// validate holds a document against the JSON Schema.
func validate(data []byte) error {
	s, err := compiled()
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	var ve *jsonschema.ValidationError
	if err := s.Validate(doc); errors.As(err, &ve) {
		for len(ve.Causes) > 0 {
			ve = ve.Causes[0]
		}
		return errors.New("field " + strings.Join(ve.InstanceLocation, ".") + ": " + ve.ErrorKind.LocalizedString(printer))
	} else if err != nil {
		return err
	}
	return nil
}

// Encode returns the model file's bytes: the same for the same model.
func (m *Model) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, err
	}
	return append(data, '\n'), nil
}

// Save writes the model file by a temporary file and a rename.
func (m *Model) Save(path string) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	return atomicfile.Write(path, data)
}

// printer words the schema's complaints.
var printer = message.NewPrinter(language.English)
