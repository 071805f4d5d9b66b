package remote

import (
	"net"
	"strconv"
	"strings"

	"nicprof/internal/fault"
)

// address is where an agent is to be started. User and port are empty when not
// given.
type address struct{ user, host, port string }

// parseAddress reads [USER@]ADDR[:PORT]; an IPv6 address with a port is in
// brackets.
func parseAddress(s string) (address, error) {
	const form = "--host %q: expected USER@ADDR, USER@ADDR:PORT or USER@[IPV6]:PORT, such as root@192.168.100.2"
	var a address
	rest := s
	if user, after, ok := strings.Cut(s, "@"); ok {
		a.user, rest = user, after
		if user == "" {
			return a, fault.Inputf(form, s)
		}
	}
	switch {
	case strings.HasPrefix(rest, "[") && strings.HasSuffix(rest, "]"):
		a.host = rest[1 : len(rest)-1]
	case strings.Count(rest, ":") > 1 && !strings.HasPrefix(rest, "["):
		a.host = rest // a bare IPv6 address
	case strings.Contains(rest, ":"):
		var err error
		if a.host, a.port, err = net.SplitHostPort(rest); err != nil {
			return a, fault.Inputf(form, s)
		}
		if n, err := strconv.Atoi(a.port); err != nil || n < 1 || n > 65535 {
			return a, fault.Inputf("--host %q: port %q is not a number of 1..65535", s, a.port)
		}
	default:
		a.host = rest
	}
	// What begins with a dash would be an option to ssh.
	for _, part := range []string{a.user, a.host} {
		if strings.HasPrefix(part, "-") || strings.ContainsFunc(part, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return a, fault.Inputf(form, s)
		}
	}
	if a.host == "" {
		return a, fault.Inputf(form, s)
	}
	return a, nil
}
