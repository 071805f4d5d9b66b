package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nicprof/internal/fault"
)

// link is a running agent: its standard input and output, and how it ends.
type link struct {
	in     io.Writer
	out    io.Reader
	stderr *tail
	// wait returns how the agent ended once out has: a status, or false when
	// the link was lost before one arrived.
	wait  func() (status string, ended bool)
	close func() // ends the agent and the link at once
	// refused, if set, finds in what was said why there never was a link and
	// will not be one.
	refused func(said string) error
}

// linkError is the end of a link. The call that it interrupted may be made
// again on another.
type linkError struct {
	err error
	// agent says that the link held and the agent itself ended.
	agent bool
}

func (e *linkError) Error() string { return e.err.Error() }
func (e *linkError) Unwrap() error { return e.err }

// session is a conversation with an agent.
type session struct {
	link    *link
	hello   hello
	out     *lineWriter
	silence time.Duration
	done    chan struct{} // closed when err is set

	sending sync.Mutex   // held while a request gets its ID and is written
	last    atomic.Int64 // ID

	mu      sync.Mutex
	pending map[int64]chan response
	err     error
}

// newSession reads the agent's greeting. It closes the link on error.
func newSession(ctx context.Context, l *link) (*session, error) {
	return startSession(ctx, l, greetingTime, pingEvery, silence)
}

func startSession(ctx context.Context, l *link, greeting, every, silence time.Duration) (*session, error) {
	s := &session{link: l, out: newLineWriter(l.in), silence: silence, done: make(chan struct{}), pending: map[int64]chan response{}}
	lines := newLineReader(l.out)
	ctx, cancel := context.WithTimeoutCause(ctx, greeting, fault.Missingf("no greeting from the agent within %s", greeting))
	defer cancel()
	hung := context.AfterFunc(ctx, l.close)
	line, err := lines.line()
	if !hung() {
		return nil, fmt.Errorf("%w%s", context.Cause(ctx), l.stderr)
	}
	if err != nil {
		err = s.ended(err)
		l.close()
		return nil, err
	}
	if s.hello, err = parseHello(line); err != nil {
		l.close()
		return nil, err
	}
	go s.read(lines)
	go s.pings(every)
	return s, nil
}

// endTime is how long an agent may take to end after its output has.
const endTime = 5 * time.Second

// ended says why nothing more can be read from the agent.
func (s *session) ended(err error) error {
	if long := (longLineError{}); errors.As(err, &long) {
		return fault.Missingf("what the agent sends: %w", err)
	}
	hung := time.AfterFunc(endTime, s.link.close)
	status, ended := s.link.wait()
	hung.Stop()
	said := s.link.stderr.String()
	where := "" // in the stream, if in the middle of a line
	if cut := (truncatedError{}); errors.As(err, &cut) {
		where = ": " + cut.Error()
	}
	if ended {
		return &linkError{fmt.Errorf("the agent ended: %s%s%s", status, where, said), true}
	}
	if s.link.refused != nil {
		if err := s.link.refused(said); err != nil {
			return err
		}
	}
	return &linkError{fmt.Errorf("the link was cut%s%s", where, said), false}
}

// read hands answers to the calls that wait for them, until the link ends.
func (s *session) read(lines *lineReader) {
	var silent atomic.Bool
	watchdog := time.AfterFunc(s.silence, func() {
		silent.Store(true)
		s.link.close()
	})
	defer watchdog.Stop()
	for {
		line, err := lines.line()
		if err != nil {
			if silent.Load() {
				err = &linkError{fmt.Errorf("nothing heard from the agent for %s", s.silence), false}
			} else {
				err = s.ended(err)
			}
			s.fail(err)
			return
		}
		watchdog.Reset(s.silence)
		if err := s.deliver(line); err != nil {
			s.fail(err)
			return
		}
	}
}

func (s *session) deliver(line []byte) error {
	var r response
	err := decode(line, &r)
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return fault.Missingf("what the agent sends: %w", err)
	}
	if r.ID == 0 {
		err := r.Error.err()
		if fault.KindOf(err) == fault.Missing { // it took the link for dropped
			err = &linkError{err, false}
		}
		return err
	}
	if r.ID > s.last.Load() {
		return fault.Missingf("what the agent sends: an answer to request %d, which nobody made", r.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer := s.pending[r.ID]; answer != nil {
		delete(s.pending, r.ID)
		answer <- r
	}
	return nil
}

// fail ends the session and every call under way.
func (s *session) fail(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
		close(s.done)
	}
	s.mu.Unlock()
	s.link.close()
}

// pings keeps both sides from taking the other for gone.
func (s *session) pings(every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if _, err := s.send(request{Ping: &ping{}}, nil); err != nil {
				return
			}
		case <-s.done:
			return
		}
	}
}

// send numbers a request and writes it; the answer goes to answer, if set.
func (s *session) send(r request, answer chan response) (int64, error) {
	s.sending.Lock()
	defer s.sending.Unlock()
	r.ID = s.last.Add(1)
	if err := s.expect(r.ID, answer); err != nil {
		return 0, err
	}
	err := s.out.write(r)
	switch long := (tooLongError{}); {
	case err == nil:
		return r.ID, nil
	case errors.As(err, &long):
		return 0, fault.Inputf("the program or its traffic makes %w", err)
	case fault.KindOf(err) != 0:
		return 0, err
	}
	return 0, &linkError{fmt.Errorf("the link was cut: %w", err), false}
}

// expect notes where the answer to a request goes.
func (s *session) expect(id int64, answer chan response) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && answer != nil {
		s.pending[id] = answer
	}
	return s.err
}

// call makes a request and waits for its answer, at most for timeout. When ctx
// ends, the agent is told to stop and ctx's error returned.
func (s *session) call(ctx context.Context, r request, timeout time.Duration) (response, error) {
	r.TimeoutMS = timeout.Milliseconds()
	answer := make(chan response, 1)
	id, err := s.send(r, answer)
	if err != nil {
		return response{}, err
	}
	// The agent's own report of a missed deadline comes first, if it can.
	late := time.NewTimer(timeout + s.silence/2)
	defer late.Stop()
	giveUp := func(err error) (response, error) {
		s.mu.Lock()
		delete(s.pending, id)
		s.mu.Unlock()
		s.send(request{Cancel: &cancel{id}}, nil) // a link that fails now ends the call too
		return response{}, err
	}
	select {
	case a := <-answer:
		if a.Error != nil {
			return response{}, a.Error.err()
		}
		return a, nil
	case <-s.done:
		return response{}, s.failed()
	case <-ctx.Done():
		return giveUp(ctx.Err())
	case <-late.C:
		return giveUp(fault.Checkf("no answer from the agent %s after the call's deadline of %s", s.silence/2, timeout))
	}
}

// failed is why the session has ended, or nil.
func (s *session) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// close leaves: the agent ends when its input does.
func (s *session) close() { s.fail(&linkError{errors.New("the link was closed"), false}) }

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// tailBytes is how much of an agent's standard error goes into messages.
const tailBytes = 2048

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// String is what was written, as the end of an error's text.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.text))
	if text == "" {
		return ""
	}
	return "; it said: " + strings.ReplaceAll(text, "\r", "")
}
