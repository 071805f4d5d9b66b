package board

import (
	"bytes"
	"encoding/json"
	"io"

	"nicprof/internal/fault"
)

// DecodeJSON reads a board that json.Marshal wrote: in another process, which
// loaded it from a file or found it out by looking at its machine. So it is not
// held against the schema of board files, only against itself. Its error is an
// input fault.
func DecodeJSON(data []byte) (*Board, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	b := new(Board)
	if err := d.Decode(b); err != nil {
		return nil, fault.Inputf("not a board: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fault.Inputf("not a board: more after its JSON value")
	}
	if b.Name == "" || b.Class == "" || len(b.Bases) == 0 {
		return nil, fault.Inputf("not a board: name %q, class %q, %d bases; expected a name, a class and at least one base", b.Name, b.Class, len(b.Bases))
	}
	if err := b.findings().Err(); err != nil {
		return nil, fault.Inputf("board %s: %w", b.Name, err)
	}
	return b, nil
}
