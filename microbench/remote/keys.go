package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"nicprof/internal/fault"
)

// userKeys are the files in ~/.ssh that are tried when no key is named.
var userKeys = []string{"id_ed25519", "id_ecdsa", "id_rsa"}

// keys are the private keys to offer: those that ssh-agent holds, and those of
// files.
type keys struct {
	files  []ssh.Signer
	socket net.Conn            // to the agent, nil without one
	agent  agent.ExtendedAgent // one for the socket, since it reads ahead
	only   string              // marshalled public key of the one key of the agent to offer; "": all
	passed []string            // what cannot be used, and why

	failure error // of the agent
}

// keys finds the keys. An --identity is the only key offered; when its file is
// encrypted, ssh-agent has to hold it.
func (c *Config) keys() (*keys, error) {
	k := new(keys)
	if socket := os.Getenv("SSH_AUTH_SOCK"); socket != "" {
		var err error
		if k.socket, err = net.Dial("unix", socket); err != nil {
			k.passed = append(k.passed, fmt.Sprintf("ssh-agent at SSH_AUTH_SOCK: %v", err))
		} else {
			k.socket.SetDeadline(time.Now().Add(connectTime))
			k.agent = agent.NewClient(k.socket)
		}
	}
	if c.Identity != "" {
		if err := k.identity(c.Identity); err != nil {
			k.close()
			return nil, fault.Inputf("--identity: %w", err)
		}
		return k, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return k, nil
	}
	for _, name := range userKeys {
		signer, err := readKey(filepath.Join(home, ".ssh", name))
		switch {
		case err == nil:
			k.files = append(k.files, signer)
		case !errors.Is(err, fs.ErrNotExist):
			k.passed = append(k.passed, err.Error())
		}
	}
	if k.agent == nil && len(k.files) == 0 {
		return nil, fault.Missingf("no key to log in with: ssh-agent does not run and there is no unencrypted %s in %s%s; load a key with ssh-add, or name one with --identity",
			strings.Join(userKeys, ", "), filepath.Join(home, ".ssh"), k.reasons())
	}
	return k, nil
}

func (k *keys) identity(file string) error {
	signer, err := readKey(file)
	var encrypted *ssh.PassphraseMissingError
	switch {
	case err == nil:
		k.close()
		k.files, k.agent = []ssh.Signer{signer}, nil
		return nil
	case !errors.As(err, &encrypted) || k.agent == nil:
		return err
	}
	pub := encrypted.PublicKey
	if pub == nil {
		data, perr := os.ReadFile(file + ".pub")
		if perr != nil {
			return fmt.Errorf("%w (%w)", err, perr)
		}
		if pub, _, _, _, perr = ssh.ParseAuthorizedKey(data); perr != nil {
			return fmt.Errorf("%s.pub: %w", file, perr)
		}
	}
	k.only = string(pub.Marshal())
	held, aerr := k.signers()
	if aerr != nil || len(held) == 0 {
		return err
	}
	return nil
}

// readKey reads a private key that needs no passphrase and that nobody else
// may read.
func readKey(file string) (ssh.Signer, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by others (mode %v); chmod 600 it", file, info.Mode().Perm())
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(data)
	if errors.As(err, new(*ssh.PassphraseMissingError)) {
		return nil, fmt.Errorf("%s: %w: load it into ssh-agent with ssh-add", file, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return signer, nil
}

// signers is asked for when the server wants a key.
func (k *keys) signers() ([]ssh.Signer, error) {
	offered := k.files
	if k.agent == nil {
		return offered, nil
	}
	held, err := k.agent.Signers()
	if err != nil {
		k.failure = err
		return offered, nil
	}
	for _, s := range held {
		if k.only == "" || k.only == string(s.PublicKey().Marshal()) {
			offered = append(offered, s)
		}
	}
	return offered, nil
}

// String names the keys that were offered.
func (k *keys) String() string {
	signers, _ := k.signers()
	if len(signers) == 0 {
		return "no key at all" + k.reasons()
	}
	var names []string
	for _, s := range signers {
		names = append(names, s.PublicKey().Type()+" "+ssh.FingerprintSHA256(s.PublicKey()))
	}
	return strings.Join(names, ", ") + k.reasons()
}

func (k *keys) reasons() string {
	passed := k.passed
	if k.failure != nil {
		passed = append(passed, fmt.Sprintf("ssh-agent: %v", k.failure))
	}
	if len(passed) == 0 {
		return ""
	}
	return " (not used: " + strings.Join(passed, "; ") + ")"
}

func (k *keys) close() {
	if k.socket != nil {
		k.socket.Close()
	}
}
