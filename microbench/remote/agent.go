package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/internal/version"
	"nicprof/microbench"
)

// Agent is the board side of a connection.
type Agent struct {
	Backend string // of the drivers it opens: microbench.Native or Emulated
	// Open defaults to that of package microbench.
	Open func(b *board.Board, backend string) (microbench.Driver, error)
	// Log, if set, is told what nobody else can be told.
	Log func(text string)

	silence time.Duration // 0: the constant
}

// mostRequests bounds the calls that wait for their answer.
const mostRequests = 16

// Serve speaks the protocol on in and out until in ends, which is how a client
// leaves; then it returns nil. It measures one program at a time and, where the
// backend is native, waits while another agent of this machine measures. When
// it returns, for whatever reason, no measurement is under way any more. It
// returns an input fault on a line that is no request, a missing one when the
// client has been silent for too long, and ctx.Err() when ctx ends; the client
// is told the first two.
func (a *Agent) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	c := &conversation{Agent: a, out: newLineWriter(out), running: map[int64]context.CancelFunc{}, turn: make(chan struct{}, 1)}
	defer c.calls.Wait()
	defer stop()
	err := c.out.write(hello{
		Protocol: Protocol, Version: version.Version, Backend: a.Backend,
		Classes: microbench.Classes(), Boards: board.Names(), Machine: microbench.ThisMachine(),
	})
	if err != nil {
		return err
	}
	lines := make(chan []byte)
	ended := make(chan error, 1)
	go func() {
		r := newLineReader(in)
		for {
			line, err := r.line()
			if err != nil {
				ended <- err
				return
			}
			select {
			case lines <- line:
			case <-ctx.Done():
				return
			}
		}
	}()
	limit := a.silence
	if limit == 0 {
		limit = silence
	}
	quiet := time.NewTimer(limit)
	defer quiet.Stop()
	for {
		select {
		case line := <-lines:
			quiet.Reset(limit)
			if err := c.handle(ctx, line); err != nil {
				return c.refuse(err)
			}
		case err := <-ended:
			if err == io.EOF {
				return nil
			}
			return c.refuse(fault.Inputf("what the client sends: %w", err))
		case <-quiet.C:
			return c.refuse(fault.Missingf("nothing heard from the client for %s: the link is taken for dropped", limit))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// conversation is one connection of an agent.
type conversation struct {
	*Agent
	out   *lineWriter
	turn  chan struct{} // holds one: the call that uses the machine
	calls sync.WaitGroup

	mu      sync.Mutex
	last    int64 // ID
	running map[int64]context.CancelFunc
	driver  microbench.Driver
}

// refuse tells the client why the conversation ends; it may not listen.
func (c *conversation) refuse(err error) error {
	return errors.Join(err, c.out.write(response{Error: newFailure(err)}))
}

// handle starts what a line asks for. An error ends the conversation.
func (c *conversation) handle(ctx context.Context, line []byte) error {
	var r request
	if err := decode(line, &r); err != nil {
		return fault.Inputf("what the client sends: %w", err)
	}
	if err := r.check(); err != nil {
		return fault.Inputf("request %s: %w", excerpt(line), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.ID <= c.last {
		return fault.Inputf("request %d after request %d: each has a higher id than the one before", r.ID, c.last)
	}
	c.last = r.ID
	switch {
	case r.Cancel != nil:
		if end := c.running[r.Cancel.ID]; end != nil {
			end()
		}
		return nil
	case r.Ping != nil:
		return c.out.write(response{ID: r.ID, Pong: &ping{}})
	case len(c.running) == mostRequests:
		return fault.Inputf("more than %d requests wait for their answer", mostRequests)
	}
	ctx, end := context.WithCancel(ctx)
	c.running[r.ID] = end
	c.calls.Go(func() {
		defer func() {
			end()
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.running, r.ID)
		}()
		answer := c.answer(ctx, &r)
		if ctx.Err() != nil {
			return // nobody waits for it any more
		}
		answer.ID = r.ID
		err := c.out.write(answer)
		if long := (tooLongError{}); errors.As(err, &long) {
			err = c.out.write(response{ID: r.ID, Error: newFailure(fault.Inputf("the answer is %w", err))})
		}
		if err != nil && c.Log != nil {
			c.Log(fmt.Sprintf("answer to request %d: %v", r.ID, err))
		}
	})
	return nil
}

// answer carries out a call, in its turn and within its time.
func (c *conversation) answer(ctx context.Context, r *request) response {
	timeout := time.Duration(r.TimeoutMS) * time.Millisecond
	if timeout > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, timeout)
		defer end()
	}
	answer, err := c.call(ctx, r)
	if err == nil {
		return answer
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fault.Checkf("not done after %s, the call's deadline; allow more with --timeout", timeout)
	}
	return response{Error: newFailure(err)}
}

func (c *conversation) call(ctx context.Context, r *request) (response, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return response{}, ctx.Err()
	}
	if c.Backend == microbench.Native {
		release, err := claimMachine(ctx)
		if err != nil {
			return response{}, err
		}
		defer release()
	}
	switch {
	case r.Open != nil:
		b, err := board.DecodeJSON(r.Open.Board)
		if err != nil {
			return response{}, err
		}
		return c.open(b)
	case r.Doctor != nil:
		b, err := board.DecodeJSON(r.Doctor.Board)
		if err != nil {
			return response{}, err
		}
		report, err := microbench.Doctor(ctx, b, c.Backend, r.Doctor.Examine)
		return response{Doctor: &report}, err
	}
	if c.driver == nil {
		return response{}, fault.Inputf("no board is open: a request to open one comes before the first measurement")
	}
	s, err := c.driver.Measure(ctx, r.Measure.Program, r.Measure.Traffic, r.Measure.Options)
	return response{Measured: &measured{s, s.Profile}}, err
}

func (c *conversation) open(b *board.Board) (response, error) {
	open := c.Open
	if open == nil {
		open = microbench.Open
	}
	d, err := open(b, c.Backend)
	if err != nil {
		return response{}, err
	}
	data, err := json.Marshal(d.Board())
	if err != nil {
		return response{}, err
	}
	c.driver = d
	return response{Opened: &opened{data}}, nil
}
