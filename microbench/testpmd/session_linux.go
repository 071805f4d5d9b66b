package testpmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"nicprof/internal/fault"
)

const (
	// Starting maps and clears the buffers' memory; any answer takes
	// milliseconds.
	startTime  = 20 * time.Second
	answerTime = 10 * time.Second
	quitTime   = 5 * time.Second
)

// Session is a forwarder that waits at its prompt. It is not safe for
// concurrent use.
type Session struct {
	Version string // as ParseVersion has it

	cmd     *exec.Cmd
	dir     string // what it keeps in the file system
	tty     *os.File
	text    chan []byte // what it prints
	ended   chan struct{}
	endErr  error // of the process, once ended is closed
	pending bytes.Buffer
	started string // what it printed before the first prompt
}

// Start runs the forwarder and waits for its prompt. The program is spoken to
// over a terminal of its own: through a pipe it would print its statistics and
// the echo of the commands in any order. The thread that calls Start passes its
// network namespace on. The program dies with the terminal, so also when this
// process is killed; otherwise Close ends it. Where the program is not
// installed the error is a missing fault.
func Start(ctx context.Context, c Config) (*Session, error) {
	args, err := c.Args()
	if err != nil {
		return nil, err
	}
	path := c.Path
	if path == "" {
		if path, err = exec.LookPath(Tool); err != nil {
			return nil, fault.Missingf("%s is not in PATH; install the package dpdk", Tool)
		}
	}
	dir, err := os.MkdirTemp("", "testpmd")
	if err != nil {
		return nil, fault.Missingf("testpmd: a directory for its files: %w", err)
	}
	tty, slave, err := openTerminal()
	if err != nil {
		os.RemoveAll(dir)
		return nil, fault.Missingf("testpmd: a terminal to speak to it: %w", err)
	}
	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.Env = append(os.Environ(), "RUNTIME_DIRECTORY="+dir) // rather than /var/run/dpdk
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	slave.Close()
	if err != nil {
		tty.Close()
		os.RemoveAll(dir)
		return nil, fault.Missingf("testpmd: %w", err)
	}
	shareAutogroup(cmd.Process.Pid)
	s := &Session{cmd: cmd, dir: dir, tty: tty, text: make(chan []byte), ended: make(chan struct{})}
	go s.read()
	s.started, err = s.until(ctx, startTime)
	if err != nil {
		s.kill()
		return nil, err
	}
	s.Version = ParseVersion(s.started)
	return s, nil
}

// shareAutogroup gives a process that has a session, and with it a scheduling
// group, of its own the priority of this process' group, as far as it may: the
// processes of a group of lower priority wait for those of others.
func shareAutogroup(pid int) {
	own, err := os.ReadFile("/proc/self/autogroup")
	if err != nil {
		return // no such scheduling in this kernel
	}
	if _, nice, ok := strings.Cut(strings.TrimSpace(string(own)), " nice "); ok {
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(nice), 0)
	}
}

// openTerminal returns both ends of a new pseudo-terminal.
func openTerminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			master.Close()
		}
	}()
	conn, err := master.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	var n int
	var ioctl error
	err = conn.Control(func(fd uintptr) {
		if ioctl = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); ioctl == nil {
			n, ioctl = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err = errors.Join(err, ioctl); err != nil {
		return nil, nil, err
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	return master, slave, err
}

// read hands on what the program prints, until it ends.
func (s *Session) read() {
	for {
		buf := make([]byte, 4096)
		n, err := s.tty.Read(buf)
		if n > 0 {
			s.text <- buf[:n]
		}
		if err != nil { // EIO: the program has closed its end
			break
		}
	}
	s.endErr = s.cmd.Wait()
	s.tty.Close()
	os.RemoveAll(s.dir)
	close(s.ended)
}

// until returns what the program prints up to its prompt.
func (s *Session) until(ctx context.Context, limit time.Duration) (string, error) {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for {
		if text := s.pending.String(); strings.HasSuffix(text, prompt) {
			s.pending.Reset()
			return strings.TrimSuffix(text, prompt), nil
		}
		select {
		case more := <-s.text:
			s.pending.Write(more)
		case <-s.ended:
			return "", s.complaint()
		case <-ctx.Done():
			return "", ctx.Err()
		case <-timeout.C:
			return "", fault.Checkf("testpmd: no answer within %v; it printed %s", limit, excerpt(s.pending.String()))
		}
	}
}

// errorLine is a line in which the program says why it cannot run.
var errorLine = regexp.MustCompile(`(?mi)^.*(error|fail|cannot|invalid|unrecognized|no such|not enough|panic).*$`)

// complaint is the error of a program that ended by itself.
func (s *Session) complaint() error {
	why := excerpt(s.pending.String())
	if lines := errorLine.FindAllString(s.pending.String(), 3); lines != nil {
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		why = strings.Join(lines, "; ")
	}
	return fault.Missingf("testpmd ended (%v): %s", s.endErr, why)
}

// command sends a line and returns the answer.
func (s *Session) command(ctx context.Context, line string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if _, err := io.WriteString(s.tty, line+"\n"); err != nil {
		return "", fault.Checkf("testpmd: %s: %w", line, err)
	}
	return s.until(ctx, answerTime)
}

// Forward starts forwarding. bursts is the number of bursts that each port
// sends first, so that there is something to forward where nothing arrives from
// outside; 0 for none.
func (s *Session) Forward(ctx context.Context, bursts int) error {
	line := "start"
	if bursts > 0 {
		line += " tx_first " + strconv.Itoa(bursts)
	}
	answer, err := s.command(ctx, line)
	if err == nil && !strings.Contains(answer, "packet forwarding") {
		err = fault.Checkf("testpmd does not forward: it answers %s", excerpt(answer))
	}
	return err
}

// Counts returns what the forwarding engine has counted since Forward.
func (s *Session) Counts(ctx context.Context) (Forward, error) {
	answer, err := s.command(ctx, "show fwd stats all")
	if err != nil {
		return Forward{}, err
	}
	return ParseForward(answer)
}

// Ports returns what the ports have counted since they were started, and their
// rates since Ports was last called.
func (s *Session) Ports(ctx context.Context) ([]Port, error) {
	answer, err := s.command(ctx, "show port stats all")
	if err != nil {
		return nil, err
	}
	return ParsePorts(answer)
}

// Stop ends forwarding and returns the final counts.
func (s *Session) Stop(ctx context.Context) (Forward, error) {
	answer, err := s.command(ctx, "stop")
	if err != nil {
		return Forward{}, err
	}
	return ParseForward(answer)
}

// Close ends the program, by force when it does not end by itself.
func (s *Session) Close() error {
	_, err := io.WriteString(s.tty, "quit\n")
	timeout := time.NewTimer(quitTime)
	defer timeout.Stop()
	for {
		select {
		case <-s.text:
		case <-s.ended:
			return s.endErr
		case <-timeout.C:
			s.kill()
			return errors.Join(err, fault.Checkf("testpmd did not quit within %v and was killed", quitTime))
		}
	}
}

// kill ends the program by force.
func (s *Session) kill() {
	_ = s.cmd.Process.Kill()
	for {
		select {
		case <-s.text:
		case <-s.ended:
			return
		}
	}
}

// Usage is the processor time of the forwarding threads: Ran on a processor,
// Waited for one although ready to run.
type Usage struct{ Ran, Waited time.Duration }

// Usage reads the forwarding threads' processor time since they were started.
func (s *Session) Usage() (Usage, error) {
	dir := fmt.Sprintf("/proc/%d/task", s.cmd.Process.Pid)
	names, err := filepath.Glob(dir + "/*/comm")
	if err != nil {
		return Usage{}, err
	}
	var u Usage
	found := false
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(comm), "worker-") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(filepath.Dir(name), "schedstat"))
		if err != nil {
			return Usage{}, fault.Checkf("testpmd: processor time of its threads: %w", err)
		}
		var ran, waited int64
		if _, err := fmt.Sscan(string(data), &ran, &waited); err != nil {
			return Usage{}, fault.Checkf("testpmd: processor time of its threads: %q: %w", data, err)
		}
		u.Ran += time.Duration(ran)
		u.Waited += time.Duration(waited)
		found = true
	}
	if !found {
		return Usage{}, fault.Checkf("testpmd: process %d has no forwarding thread", s.cmd.Process.Pid)
	}
	return u, nil
}
