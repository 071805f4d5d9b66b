package nfp

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"nicprof/internal/fault"
)

// sender is a command that sends packets until it is stopped.
type sender struct {
	args []string
	cmd  *exec.Cmd
	said tail
	done chan struct{}
}

// start starts a sender.
func start(args []string) (*sender, error) {
	s := &sender{args: args, cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = &s.said, &s.said
	s.cmd.WaitDelay = time.Second
	if err := s.cmd.Start(); err != nil {
		return nil, fault.Missingf("the sender: %w", err)
	}
	go func() {
		s.cmd.Wait() // how it ended does not matter: it is killed, or asked what it said
		close(s.done)
	}()
	return s, nil
}

// ended tells whether the sender has ended by itself, and what it said.
func (s *sender) ended() (string, bool) {
	select {
	case <-s.done:
		return fmt.Sprintf("%v: %s", s.cmd.ProcessState, excerpt(s.said.String())), true
	default:
		return "", false
	}
}

// stop interrupts the sender, which lets it give its port back, and kills it
// when that does not help.
func (s *sender) stop() error {
	const patience = 5 * time.Second
	if err := s.cmd.Process.Signal(os.Interrupt); err == nil {
		select {
		case <-s.done:
			return nil
		case <-time.After(patience):
		}
	}
	s.cmd.Process.Kill()
	select {
	case <-s.done:
		return nil
	case <-time.After(patience):
		return fault.Checkf("the sender does not end: process %d, %s", s.cmd.Process.Pid, quote(s.args))
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	const most = 4096
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if n := len(t.text) - most; n > 0 {
		t.text = t.text[n:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
