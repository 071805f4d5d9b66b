package remote

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"nicprof/internal/fault"
)

// systemKnownHosts are the hosts that the administrator knows.
const systemKnownHosts = "/etc/ssh/ssh_known_hosts"

// knownHosts checks host keys against known_hosts files.
type knownHosts struct {
	callback ssh.HostKeyCallback
	file     string // that a new host would go into
}

func (c *Config) knownHosts() (*knownHosts, error) {
	k := &knownHosts{file: c.KnownHosts}
	files := []string{c.KnownHosts}
	if c.KnownHosts == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fault.Inputf("no ~/.ssh/known_hosts: %w; name a file with --known-hosts", err)
		}
		k.file = filepath.Join(home, ".ssh", "known_hosts")
		files = slices.DeleteFunc([]string{k.file, systemKnownHosts}, func(name string) bool {
			_, err := os.Stat(name)
			return errors.Is(err, fs.ErrNotExist)
		})
	}
	var err error
	if k.callback, err = knownhosts.New(files...); err != nil {
		return nil, fault.Inputf("known hosts: %w", err)
	}
	return k, nil
}

// check is the ssh.HostKeyCallback. Its errors are input faults.
func (k *knownHosts) check(host string, at net.Addr, key ssh.PublicKey) error {
	err := k.callback(host, at, key)
	var wrong *knownhosts.KeyError
	var revoked *knownhosts.RevokedError
	offered := key.Type() + " " + ssh.FingerprintSHA256(key)
	verify := fmt.Sprintf("compare it with what ssh-keygen -lf /etc/ssh/ssh_host_%s_key.pub prints on the console of that machine", keyFile(key))
	switch {
	case err == nil:
		return nil
	case errors.As(err, &revoked):
		return fault.Inputf("host key %s is marked revoked in %s:%d: nothing was sent", offered, revoked.Revoked.Filename, revoked.Revoked.Line)
	case errors.As(err, &wrong) && len(wrong.Want) > 0:
		var known []string
		for _, w := range wrong.Want {
			known = append(known, fmt.Sprintf("%s:%d has %s %s", w.Filename, w.Line, w.Key.Type(), ssh.FingerprintSHA256(w.Key)))
		}
		return fault.Inputf("the host key has changed: now %s, but %s. Somebody may be listening in, or the machine was installed anew: %s; "+
			"if it is the same, remove the old one (ssh-keygen -R %s -f %s) and add the new one", offered, strings.Join(known, ", "), verify,
			knownhosts.Normalize(host), wrong.Want[0].Filename)
	case errors.As(err, &wrong):
		return fault.Inputf("the host key is unknown: %s. To trust it, %s; if it is the same, add this line to %s:\n%s",
			offered, verify, k.file, knownhosts.Line([]string{host}, key))
	}
	return fault.Inputf("host key %s: %w", offered, err)
}

// algorithms restricts what the host may offer to the types of key that are
// known of it, since one of another type would look like a changed key; nil
// when none is.
func (k *knownHosts) algorithms(host string, at net.Addr) []string {
	nobody, err := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	if err != nil {
		panic(err) // the key has the right size
	}
	var known *knownhosts.KeyError
	if !errors.As(k.callback(host, at, nobody), &known) {
		return nil
	}
	var algorithms []string
	for _, w := range known.Want {
		switch typ := w.Key.Type(); {
		case slices.Contains(algorithms, typ):
		case typ == ssh.KeyAlgoRSA: // signed with SHA-2
			algorithms = append(algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		default:
			algorithms = append(algorithms, typ)
		}
	}
	return algorithms
}

// keyFile is the part of a host key's usual file name that says its type.
func keyFile(key ssh.PublicKey) string {
	switch typ := key.Type(); {
	case typ == ssh.KeyAlgoRSA:
		return "rsa"
	case strings.HasPrefix(typ, "ecdsa-"):
		return "ecdsa"
	}
	return "ed25519"
}
