package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/user"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"nicprof/internal/fault"
)

// connectTime bounds making a connection, and each command that prepares one.
const connectTime = 20 * time.Second

// shell runs commands on the machine of the board.
type shell interface {
	// start runs a command line by the login shell there. ctx bounds the start
	// alone.
	start(ctx context.Context, command string) (*link, error)
	close()
}

// dial connects to the machine and starts the agent there.
func (c *Config) dial(ctx context.Context) (*session, error) {
	at, err := parseAddress(c.Host)
	if err != nil {
		return nil, err
	}
	var sh shell
	if c.SSH != "" {
		sh, err = c.clientShell(at)
	} else {
		sh, err = c.connect(ctx, at)
	}
	if err != nil {
		return nil, err
	}
	command := cmp.Or(c.Agent, DefaultAgent)
	if c.Push != "" {
		if command, err = push(ctx, sh, c.Push, command); err != nil {
			sh.close()
			return nil, err
		}
	}
	l, err := sh.start(ctx, command)
	if err != nil {
		sh.close()
		return nil, err
	}
	end := l.close
	l.close = sync.OnceFunc(func() {
		end()
		sh.close()
	})
	s, err := newSession(ctx, l)
	if cut := (*linkError)(nil); errors.As(err, &cut) && cut.agent {
		return nil, fault.Missingf("%q does not start an agent: %w; install profiler there, name it with --agent \"PATH agent\", or copy it with --push", command, err)
	}
	return s, err
}

// sshShell is a connection of the built-in client.
type sshShell struct{ client *ssh.Client }

func (s sshShell) close() { s.client.Close() }

// connect makes a connection of the built-in client: keys only, and only to a
// host whose key is known.
func (c *Config) connect(ctx context.Context, at address) (shell, error) {
	if at.user == "" {
		me, err := user.Current()
		if err != nil {
			return nil, fault.Inputf("--host %q names no user: expected USER@ADDR", c.Host)
		}
		at.user = me.Username
	}
	target := net.JoinHostPort(at.host, cmp.Or(at.port, "22"))
	hosts, err := c.knownHosts()
	if err != nil {
		return nil, err
	}
	keys, err := c.keys()
	if err != nil {
		return nil, err
	}
	defer keys.close()
	ctx, end := context.WithTimeoutCause(ctx, connectTime, fmt.Errorf("no connection within %s", connectTime))
	defer end()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", target)
	if err != nil {
		return nil, unreachable(ctx, err)
	}
	hung := context.AfterFunc(ctx, func() { conn.Close() })
	sc, channels, requests, err := ssh.NewClientConn(conn, target, &ssh.ClientConfig{
		User:              at.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeysCallback(keys.signers)},
		HostKeyCallback:   hosts.check,
		HostKeyAlgorithms: hosts.algorithms(target, conn.RemoteAddr()),
	})
	if !hung() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		var key *fault.Error
		var none *ssh.AlgorithmNegotiationError
		switch {
		case errors.As(err, &key): // the host's
			return nil, key
		case errors.As(err, &none):
			return nil, fault.Missingf("%s: %w; a host key of another type than the known hosts have is one cause", target, err)
		case strings.Contains(err.Error(), "unable to authenticate"): // the library has no type for it
			return nil, fault.Missingf("%s refuses user %s with %s; add the public key to ~/.ssh/authorized_keys there (ssh-copy-id), or name another with --identity", target, at.user, keys)
		}
		return nil, unreachable(ctx, err)
	}
	return sshShell{ssh.NewClient(sc, channels, requests)}, nil
}

// unreachable says that there was no connection, which may pass.
func unreachable(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, context.Canceled) {
			return cause
		}
		err = cause
	}
	return fault.Missingf("cannot be reached: %w; is the machine up and sshd running there?", &linkError{err, false})
}

func (s sshShell) start(ctx context.Context, command string) (*link, error) {
	stop := context.AfterFunc(ctx, s.close)
	defer stop()
	session, err := s.client.NewSession()
	if err != nil {
		return nil, unreachable(ctx, err)
	}
	said := new(tail)
	session.Stderr = said
	in, err := session.StdinPipe()
	if err == nil {
		var out io.Reader
		if out, err = session.StdoutPipe(); err == nil {
			if err = session.Start(command); err == nil {
				return &link{in: in, out: out, stderr: said, wait: func() (string, bool) { return sshStatus(session.Wait()) }, close: func() {
					in.Close()
					session.Close()
				}}, nil
			}
		}
	}
	session.Close()
	return nil, unreachable(ctx, err)
}

// sshStatus tells the end of a command from that of a connection.
func sshStatus(err error) (status string, ended bool) {
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return "exit status 0", true
	case !errors.As(err, &exit):
		return "", false
	case exit.Signal() != "":
		return "signal " + exit.Signal(), true
	}
	return fmt.Sprintf("exit status %d", exit.ExitStatus()), true
}
