package board

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"nicprof/internal/fault"
)

// Every board of the catalogue comes out of its JSON as it went in.
func TestJSON(t *testing.T) {
	for _, name := range Names() {
		b := load(t, name)
		data, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeJSON(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !reflect.DeepEqual(again, b) {
			t.Errorf("%s: another board", name)
		}
	}
}

func TestJSONComplaints(t *testing.T) {
	for text, want := range map[string]string{
		``:                             "EOF",
		`{"name":"x"`:                  "unexpected EOF",
		`{"name":"x","sauce":1}`:       `unknown field "sauce"`,
		`{"name":7}`:                   "cannot unmarshal number",
		`{"name":"x","class":"nfp"}`:   "0 bases",
		`{"class":"nfp","bases":[{}]}`: `name ""`,
		`{"name":"x","bases":[{}]}`:    `class ""`,
		`{"name":"x"} {"name":"y"}`:    "more after",
		`{"name":"x","class":"c","bases":[{"name":"a"},{"name":"a"}]}`: `base "a" is described twice`,
	} {
		_, err := DecodeJSON([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || fault.KindOf(err) != fault.Input {
			t.Errorf("%s: %v, want an input fault that says %q", text, err, want)
		}
	}
}
