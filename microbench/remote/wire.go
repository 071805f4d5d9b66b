package remote

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"nicprof/internal/fault"
	"nicprof/internal/version"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/traffic"
)

// Protocol names the version of the protocol. Both sides must speak the same.
const Protocol = "nicprof-agent/1"

// maxLine bounds a message, its line feed included. The largest ones carry a
// trace's flows or a profile.
const maxLine = 16 << 20

// hello is the first line of an agent. Its protocol comes first and is looked
// at before anything else, so that other versions may change the rest.
type hello struct {
	Protocol string             `json:"protocol"`
	Version  string             `json:"version"` // of the program
	Backend  string             `json:"backend"` // what it measures with
	Classes  []string           `json:"classes"` // of boards that it drives
	Boards   []string           `json:"boards"`  // of its catalogue
	Machine  microbench.Machine `json:"machine"`
}

// request is a line to the agent: an ID that no earlier request of the
// connection had, and exactly one call.
type request struct {
	ID        int64    `json:"id"`
	TimeoutMS int64    `json:"timeout_ms,omitempty"` // 0: none
	Open      *open    `json:"open,omitempty"`
	Measure   *measure `json:"measure,omitempty"`
	Doctor    *doctor  `json:"doctor,omitempty"`
	Cancel    *cancel  `json:"cancel,omitempty"` // has no answer
	Ping      *ping    `json:"ping,omitempty"`
}

// open opens the driver of a board, which measure then uses.
type open struct {
	Board json.RawMessage `json:"board"` // for board.DecodeJSON
}

// doctor asks what would spoil measurements of a board; with Examine the driver
// measures its machine to find out.
type doctor struct {
	Board   json.RawMessage `json:"board"`
	Examine bool            `json:"examine,omitempty"`
}

// measure carries the arguments of microbench.Driver's Measure.
type measure struct {
	Program program.Program    `json:"program"`
	Traffic traffic.Traffic    `json:"traffic"`
	Options microbench.Options `json:"options"`
}

// cancel ends an earlier request, which then has no answer.
type cancel struct {
	ID int64 `json:"id"`
}

// ping asks for a sign of life.
type ping struct{}

// response is a line from the agent: the ID of the request that it answers, or
// 0 when it is about the connection, and exactly one answer.
type response struct {
	ID       int64              `json:"id"`
	Error    *failure           `json:"error,omitempty"`
	Opened   *opened            `json:"opened,omitempty"`
	Measured *measured          `json:"measured,omitempty"`
	Doctor   *microbench.Report `json:"doctor,omitempty"`
	Pong     *ping              `json:"pong,omitempty"`
}

// opened is the board as its driver sees it.
type opened struct {
	Board json.RawMessage `json:"board"` // for board.DecodeJSON
}

// measured is a sample with the profile that its own JSON leaves out.
type measured struct {
	Sample  microbench.Sample   `json:"sample"`
	Profile *microbench.Profile `json:"profile,omitempty"`
}

// failure is an error with its fault.Kind: check, input, missing, or "" for any
// other.
type failure struct {
	Kind string `json:"kind,omitempty"`
	Text string `json:"text"`
}

var kinds = map[fault.Kind]string{fault.Check: "check", fault.Input: "input", fault.Missing: "missing"}

func newFailure(err error) *failure { return &failure{kinds[fault.KindOf(err)], err.Error()} }

// err is the error that the agent had, with its kind.
func (f *failure) err() error {
	switch f.Kind {
	case kinds[fault.Check]:
		return fault.Checkf("%s", f.Text)
	case kinds[fault.Input]:
		return fault.Inputf("%s", f.Text)
	case kinds[fault.Missing]:
		return fault.Missingf("%s", f.Text)
	}
	return errors.New(f.Text)
}

// check refuses a request without an ID of its own or with any other number of
// calls than one.
func (r *request) check() error {
	return exactlyOne(r.ID > 0, "call", r.Open != nil, r.Measure != nil, r.Doctor != nil, r.Cancel != nil, r.Ping != nil)
}

func (r *response) check() error {
	return exactlyOne(r.ID > 0 || r.ID == 0 && r.Error != nil, "answer",
		r.Error != nil, r.Opened != nil, r.Measured != nil, r.Doctor != nil, r.Pong != nil)
}

func exactlyOne(id bool, what string, set ...bool) error {
	n := 0
	for _, s := range set {
		if s {
			n++
		}
	}
	switch {
	case !id:
		return errors.New("its id is not a positive number")
	case n != 1:
		return fmt.Errorf("it has %d %ss; expected exactly one", n, what)
	}
	return nil
}

// lineReader reads messages, one a line.
type lineReader struct {
	r   *bufio.Reader
	max int // bytes of a line
}

func newLineReader(r io.Reader) *lineReader { return &lineReader{bufio.NewReader(r), maxLine} }

// line returns the next line without its line feed. A stream that ends between
// two lines is io.EOF, one that ends within a line a truncatedError, and a line
// beyond the bound a longLineError.
func (l *lineReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if len(line)+len(part) > l.max {
			return nil, longLineError{l.max, excerpt(append(line, part...))}
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case len(line) > 0:
			return nil, truncatedError{line, err}
		default:
			return nil, err
		}
	}
}

// longLineError is a line beyond the bound.
type longLineError struct {
	max   int
	start string
}

func (e longLineError) Error() string {
	return fmt.Sprintf("a line of more than %d bytes: %s", e.max, e.start)
}

// truncatedError is the end of a stream in the middle of a line.
type truncatedError struct {
	line []byte
	err  error
}

func (e truncatedError) Error() string {
	return fmt.Sprintf("it ended after %d bytes of a line: %s", len(e.line), excerpt(e.line))
}

func (e truncatedError) Unwrap() error { return e.err }

// excerpt quotes the beginning of a line.
func excerpt(line []byte) string {
	const most = 60
	if len(line) > most {
		return fmt.Sprintf("%q...", line[:most])
	}
	return fmt.Sprintf("%q", line)
}

// decode reads exactly one JSON value and refuses unknown fields.
func decode(line []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			return nil
		}
		err = errors.New("more after its JSON value")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("its JSON is incomplete")
	}
	return fmt.Errorf("%s is not a message: %w", excerpt(line), err)
}

// parseHello reads an agent's first line. It refuses other versions before it
// looks at the rest.
func parseHello(line []byte) (hello, error) {
	var head struct {
		Protocol string `json:"protocol"`
		Version  string `json:"version"`
	}
	if err := json.Unmarshal(line, &head); err != nil || head.Protocol == "" {
		return hello{}, fault.Missingf("no agent answers: expected its greeting, got %s; "+
			"does --agent name a command such as \"profiler agent\", and does a start-up file of the shell there print something?", excerpt(line))
	}
	if head.Protocol != Protocol || head.Version != version.Version {
		return hello{}, fault.Missingf("the agent is of another version: %s %s, this program is %s %s; "+
			"install this version there, or copy it with --push", head.Version, head.Protocol, version.Version, Protocol)
	}
	var h hello
	if err := decode(line, &h); err != nil {
		return hello{}, fault.Missingf("the agent's greeting: %w", err)
	}
	return h, nil
}

// lineWriter writes messages, whole lines at a time, by any goroutine.
type lineWriter struct {
	mu  sync.Mutex
	w   io.Writer
	max int
}

func newLineWriter(w io.Writer) *lineWriter { return &lineWriter{w: w, max: maxLine} }

// tooLongError is a message that the other side would refuse.
type tooLongError struct{ size, max int }

func (e tooLongError) Error() string {
	return fmt.Sprintf("a message of %d bytes; at most %d can be sent", e.size, e.max)
}

func (l *lineWriter) write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fault.Inputf("%w", err) // a number that is not finite
	}
	line = append(line, '\n')
	if len(line) > l.max {
		return tooLongError{len(line), l.max}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.w.Write(line)
	return err
}

// Times of a connection. Each side takes the other for gone after silence.
const (
	pingEvery    = 5 * time.Second
	silence      = 30 * time.Second
	greetingTime = 30 * time.Second
)
