package remote

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"nicprof/internal/fault"
)

// clientShell runs each command by the system's ssh.
type clientShell struct{ argv []string } // all but the command

// clientShell puts the command line of the system's ssh together. What matters
// for security comes before the user's options, since ssh takes the first of
// two.
func (c *Config) clientShell(at address) (shell, error) {
	given := strings.Fields(c.SSH)
	if len(given) == 0 {
		return nil, fault.Inputf("--ssh is empty; expected the command of an OpenSSH client, such as \"ssh -p 2222\"")
	}
	path, err := exec.LookPath(given[0])
	if err != nil {
		return nil, fault.Missingf("--ssh: %w; install openssh-client, or leave --ssh out for the built-in client", err)
	}
	argv := []string{path, "-T",
		"-o", "BatchMode=yes", "-o", "PasswordAuthentication=no", "-o", "KbdInteractiveAuthentication=no",
		"-o", "StrictHostKeyChecking=yes", "-o", "ClearAllForwardings=yes", "-o", "ForwardAgent=no",
		"-o", fmt.Sprintf("ConnectTimeout=%d", int(connectTime.Seconds())),
	}
	if c.Identity != "" {
		argv = append(argv, "-i", c.Identity, "-o", "IdentitiesOnly=yes")
	}
	if c.KnownHosts != "" {
		argv = append(argv, "-o", "UserKnownHostsFile="+c.KnownHosts)
	}
	if at.port != "" {
		argv = append(argv, "-p", at.port)
	}
	if at.user != "" {
		argv = append(argv, "-l", at.user)
	}
	argv = append(argv, given[1:]...)
	return clientShell{append(argv, "--", at.host)}, nil
}

func (clientShell) close() {}

// sshFailed is the exit code of ssh when it, not the command, has failed.
const sshFailed = 255

func (s clientShell) start(_ context.Context, command string) (*link, error) {
	cmd := exec.Command(s.argv[0], append(s.argv[1:len(s.argv):len(s.argv)], command)...)
	said := new(tail)
	cmd.Stderr = said
	cmd.WaitDelay = time.Second // a child of ssh's may hold standard error open
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fault.Missingf("--ssh: %w", err)
	}
	// Wait closes the pipe that out reads, so it comes after out's end.
	wait := sync.OnceValue(cmd.Wait)
	return &link{in: in, out: out, stderr: said, refused: refused,
		wait: func() (string, bool) {
			err := wait()
			var exit *exec.ExitError
			if errors.As(err, &exit) && (exit.ExitCode() == sshFailed || exit.ExitCode() < 0) {
				return "", false
			}
			return cmd.ProcessState.String(), cmd.ProcessState != nil
		},
		close: func() {
			in.Close()
			cmd.Process.Kill() // sshd ends the command's input then
			go wait()
		},
	}, nil
}

// refused recognises what an OpenSSH client says when it gives up.
func refused(said string) error {
	switch {
	case strings.Contains(said, "Host key verification failed"):
		return fault.Inputf("ssh does not accept the host key%s", said)
	case strings.Contains(said, "Permission denied ("):
		return fault.Missingf("no key that ssh offers is accepted%s", said)
	}
	return nil
}
