// Package remote measures a board in another machine: an agent there, the same
// program started over SSH, opens the board's driver and speaks a line protocol
// on its standard input and output. Nothing listens on a port but sshd.
// docs/remote.md describes the protocol.
package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/traffic"
)

// Config says which machine holds the board and how to reach it.
type Config struct {
	Host       string // [USER@]ADDR[:PORT]
	Identity   string // file of a private key; "": ssh-agent's keys and ~/.ssh/id_*
	KnownHosts string // file; "": ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts
	SSH        string // command of an OpenSSH client to use instead of the built-in one
	Agent      string // command that starts the agent there; "": DefaultAgent
	// Push copies a program there for the time of the connection: PushSelf or
	// the file of one built for that machine. The command finds it in PATH as
	// profiler.
	Push string

	Timeout   time.Duration // of one measurement; 0: DefaultTimeout
	Reconnect time.Duration // how long to try to get a dropped link back; 0: not at all

	// Note, if set, is told what the user should know.
	Note func(text string)
}

// Defaults of a Config.
const (
	DefaultAgent     = "profiler agent"
	DefaultTimeout   = 15 * time.Minute
	DefaultReconnect = time.Minute
	PushSelf         = "self"
)

// openTimeout bounds opening a board, which may measure a machine's caches, and
// a doctor's look at it.
const openTimeout = 5 * time.Minute

// Driver measures on another machine. Its samples say backend remote, or
// emulated when the agent there emulates. It lets in one measurement at a time.
type Driver struct {
	config Config
	dial   func(context.Context) (*session, error)
	asked  json.RawMessage // the board as described here
	turn   chan struct{}   // holds one: who uses session
	// session is the current link's; nil after it was lost.
	session *session

	// What the first connection said; a later one must say the same.
	board *board.Board
	hello hello
}

// Open connects to the machine and opens the board there. Board of the driver
// is the board as the machine there sees it. A machine that cannot be reached,
// that refuses the keys, or that has no agent of this version is a missing
// fault; a host key that is unknown or has changed is an input fault.
func Open(ctx context.Context, b *board.Board, c Config) (*Driver, error) {
	data, err := json.Marshal(b)
	if err != nil {
		return nil, fault.Inputf("board %s: %w", b.Name, err)
	}
	return openDriver(ctx, data, c, c.dial)
}

func openDriver(ctx context.Context, asked json.RawMessage, c Config, dial func(context.Context) (*session, error)) (*Driver, error) {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	d := &Driver{config: c, dial: dial, asked: asked, turn: make(chan struct{}, 1)}
	if err := d.connect(ctx, time.Time{}); err != nil {
		return nil, d.wrap(err)
	}
	return d, nil
}

// wrap names the machine in an error and gives one that has no kind that of a
// missing board.
func (d *Driver) wrap(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case fault.KindOf(err) == 0:
		return fault.Missingf("%s: %w", d.config.Host, err)
	}
	return fmt.Errorf("%s: %w", d.config.Host, err)
}

// connect makes a session, before a time unless that is zero, and opens the
// board in it.
func (d *Driver) connect(ctx context.Context, before time.Time) error {
	dialling := ctx
	if !before.IsZero() {
		var end context.CancelFunc
		dialling, end = context.WithDeadline(ctx, before)
		defer end()
	}
	s, err := d.dial(dialling)
	if err != nil {
		return err
	}
	if err := d.openBoard(ctx, s); err != nil {
		s.close()
		return err
	}
	d.session = s
	return nil
}

func (d *Driver) openBoard(ctx context.Context, s *session) error {
	a, err := s.call(ctx, request{Open: &open{d.asked}}, openTimeout)
	if err != nil {
		return err
	}
	if a.Opened == nil {
		return errNoAnswer
	}
	b, err := board.DecodeJSON(a.Opened.Board)
	if err != nil {
		return fault.Missingf("what the agent sends: %w", err)
	}
	switch {
	case d.board == nil:
		d.board, d.hello = b, s.hello
	case s.hello.Machine != d.hello.Machine || s.hello.Backend != d.hello.Backend:
		return fault.Missingf("another machine or agent answers than before: %s (%s), not %s (%s)", s.hello.Machine, s.hello.Backend, d.hello.Machine, d.hello.Backend)
	case !reflect.DeepEqual(b, d.board):
		return fault.Missingf("the agent describes board %s otherwise than before the link dropped; start again", d.board.Name)
	}
	return nil
}

var errNoAnswer = fault.Missingf("what the agent sends: an answer to another call than was made")

// Board is the board as the machine there sees it.
func (d *Driver) Board() *board.Board { return d.board }

// Machine is the one that measures.
func (d *Driver) Machine() microbench.Machine { return d.hello.Machine }

// Measure has the program measured there. A link that drops is made anew, and
// the measurement with it; when that fails for config.Reconnect, the error is a
// missing fault with microbench.ErrLost in it. When the agent itself ends twice
// in one measurement, the error is that of this measurement.
func (d *Driver) Measure(ctx context.Context, p program.Program, t traffic.Traffic, o microbench.Options) (microbench.Sample, error) {
	if err := d.board.Check(p, o.Cores, o.Threads); err != nil {
		return microbench.Sample{}, err
	}
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return microbench.Sample{}, ctx.Err()
	}
	for crashes := 0; ; {
		s, err := d.measure(ctx, p, t, o)
		var cut *linkError
		switch {
		case err == nil:
			return s, nil
		case ctx.Err() != nil:
			return s, ctx.Err()
		case !errors.As(err, &cut) && d.session.failed() != nil: // the agent broke the protocol
			d.session = nil
			return s, d.lost(err)
		case !errors.As(err, &cut):
			return s, err
		case cut.agent:
			if crashes++; crashes == 2 {
				return s, fmt.Errorf("%s: twice in this measurement %w", d.config.Host, err)
			}
		}
		if err := d.reconnect(ctx, err); err != nil {
			return s, err
		}
	}
}

// measure makes one attempt in the current session.
func (d *Driver) measure(ctx context.Context, p program.Program, t traffic.Traffic, o microbench.Options) (microbench.Sample, error) {
	if d.session == nil { // an earlier measurement lost it and did not get it back
		return microbench.Sample{}, &linkError{errors.New("the link is down"), false}
	}
	a, err := d.session.call(ctx, request{Measure: &measure{p, t, o}}, d.config.Timeout)
	switch {
	case err != nil:
		return microbench.Sample{}, err
	case a.Measured == nil:
		return microbench.Sample{}, d.wrap(errNoAnswer)
	}
	s := a.Measured.Sample
	s.Profile = a.Measured.Profile
	if s.Backend == microbench.Native {
		s.Backend = microbench.Remote
	}
	return s, nil
}

// reconnect gets the link back that err says was cut.
func (d *Driver) reconnect(ctx context.Context, err error) error {
	if d.session != nil {
		d.session.close()
		d.session = nil
		d.note("%s: %v; connecting again", d.config.Host, err)
	}
	pause := backoff()
	for until := time.Now().Add(d.config.Reconnect); ; {
		wait := pause()
		if time.Now().Add(wait).After(until) {
			return d.lost(err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
		switch err = d.connect(ctx, until); {
		case err == nil:
			d.note("%s: connected again", d.config.Host)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !retriable(err):
			return d.lost(err)
		}
	}
}

func (d *Driver) lost(err error) error {
	return fault.Missingf("%s: %w; %w", d.config.Host, err, microbench.ErrLost)
}

// retriable tells what may pass from what somebody has to change.
func retriable(err error) bool {
	return errors.As(err, new(*linkError)) || errors.Is(err, context.DeadlineExceeded)
}

// backoff doubles the pause from attempt to attempt, up to ten seconds.
func backoff() func() time.Duration {
	next := 100 * time.Millisecond
	return func() time.Duration {
		wait := next
		next = min(2*next, 10*time.Second)
		return wait
	}
}

func (d *Driver) note(format string, a ...any) {
	if d.config.Note != nil {
		d.config.Note(fmt.Sprintf(format, a...))
	}
}

// Close leaves the machine, when the measurement under way has ended.
func (d *Driver) Close() {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	if d.session != nil {
		d.session.close()
		d.session = nil
	}
}

// Doctor asks the machine what it can measure of each board, and what would
// spoil a measurement; see microbench.Doctor.
func Doctor(ctx context.Context, boards []*board.Board, examine bool, c Config) ([]microbench.Report, error) {
	d := &Driver{config: c}
	started := time.Now()
	s, err := c.dial(ctx)
	if err != nil {
		return nil, d.wrap(err)
	}
	defer s.close()
	reached := microbench.Finding{Level: microbench.LevelOK, Text: fmt.Sprintf("%s answers within %d ms: %s, backend %s, %s",
		c.Host, time.Since(started).Milliseconds(), s.hello.Machine, s.hello.Backend, s.hello.Version)}
	var reports []microbench.Report
	for _, b := range boards {
		data, err := json.Marshal(b)
		if err != nil {
			return nil, fault.Inputf("board %s: %w", b.Name, err)
		}
		a, err := s.call(ctx, request{Doctor: &doctor{data, examine}}, openTimeout)
		if err != nil {
			return nil, d.wrap(err)
		}
		if a.Doctor == nil {
			return nil, d.wrap(errNoAnswer)
		}
		r := *a.Doctor
		if r.Backend == microbench.Native {
			r.Backend = microbench.Remote
		}
		r.Findings = append([]microbench.Finding{reached}, r.Findings...)
		reports = append(reports, r)
	}
	return reports, nil
}
