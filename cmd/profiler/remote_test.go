package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"nicprof/microbench"
)

// sshd is a real server of the test's own, on loopback, with keys of its own.
type sshd struct {
	dir, addr string // of keys, and 127.0.0.1:PORT
	me        string
}

// startSSHD runs Debian's sshd on a free port until the test ends. It reads
// nothing of /etc/ssh and of the user's home: neither keys nor the shell's
// start-up files.
func startSSHD(t *testing.T) *sshd {
	t.Helper()
	binary, err := exec.LookPath("sshd")
	if err != nil {
		binary = "/usr/sbin/sshd"
	}
	for _, program := range []string{binary, "ssh", "ssh-keygen"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%v; install openssh-server and openssh-client", err)
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	s := &sshd{dir: t.TempDir(), me: me.Username}
	for _, name := range []string{"host", "id", "stranger"} {
		keygen(t, "-N", "", "-f", s.path(name))
	}
	if os.Geteuid() == 0 { // where sshd shuts its unprivileged half in; a boot script makes it
		if err := os.Mkdir("/run/sshd", 0o755); err == nil {
			t.Cleanup(func() { os.Remove("/run/sshd") })
		}
	}
	for attempt := 0; ; attempt++ {
		s.addr = freePort(t)
		_, port, _ := net.SplitHostPort(s.addr)
		write(t, s.path("sshd_config"), fmt.Sprintf("ListenAddress 127.0.0.1\nPort %s\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\n"+
			"StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nMaxStartups 100\nSetEnv HOME=%s\n",
			port, s.path("host"), s.path("id.pub"), s.dir))
		cmd := exec.Command(binary, "-D", "-E", s.path("log"), "-f", s.path("sshd_config"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			cmd.Wait()
			close(ended)
		}()
		if s.answers(ended) {
			t.Cleanup(func() {
				cmd.Process.Kill()
				<-ended
			})
			break
		}
		cmd.Process.Kill()
		<-ended
		if attempt == 3 { // the port may have been taken by somebody else
			log, err := os.ReadFile(s.path("log"))
			t.Fatalf("sshd does not start: %s%v", log, err)
		}
	}
	s.know(t, s.addr, "host.pub")
	return s
}

// answers waits for the server, or for its end.
func (s *sshd) answers(ended <-chan struct{}) bool {
	for range 1000 {
		if c, err := net.Dial("tcp", s.addr); err == nil {
			c.Close()
			return true
		}
		select {
		case <-ended:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return false
}

func (s *sshd) path(name string) string { return filepath.Join(s.dir, name) }

// know writes known_hosts: at addr answers who has the public key.
func (s *sshd) know(t *testing.T, addr, key string) {
	t.Helper()
	pub, err := os.ReadFile(s.path(key))
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(addr)
	write(t, s.path("known_hosts"), fmt.Sprintf("# hosts of this test\n[%s]:%s %s", host, port, pub))
}

// target are the flags for the machine behind an address; more may follow.
func (s *sshd) target(addr string, more ...string) []string {
	return append([]string{"--backend", "remote", "--host", s.me + "@" + addr, "--identity", s.path("id"),
		"--known-hosts", s.path("known_hosts"), "--agent", emulator()}, more...)
}

// emulator is the command that starts an agent of emulated boards.
func emulator() string {
	path, err := exec.LookPath("profiler") // this program, see TestMain
	if err != nil {
		panic(err)
	}
	return path + " agent --backend emulated"
}

func keygen(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ssh-keygen", append([]string{"-q", "-t", "ed25519"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// bare is a quick measurement.
var bare = []string{"measure", "--board", "nfp", "--base", "forward", "--json"}

// The command over SSH, by the built-in client and by the system's: the same
// document as at hand, since the far side emulates the board, with keys from
// files and from ssh-agent.
func TestRemote(t *testing.T) {
	s := startSSHD(t)
	code, want, stderr := command(t, bare...)
	if code != 0 {
		t.Fatal(stderr)
	}
	check := func(t *testing.T, args ...string) {
		t.Helper()
		if code, got, stderr := command(t, append(bare[:len(bare):len(bare)], args...)...); code != 0 || got != want {
			t.Errorf("exit code %d: %s\n%s\nwant\n%s", code, stderr, got, want)
		}
	}
	t.Run("built-in client", func(t *testing.T) { check(t, s.target(s.addr)...) })
	t.Run("system's ssh", func(t *testing.T) { check(t, s.target(s.addr, "--ssh", "ssh -F none")...) })
	t.Run("system's ssh configuration", func(t *testing.T) {
		host, port, _ := net.SplitHostPort(s.addr)
		write(t, s.path("config"), fmt.Sprintf("Host card\n HostName %s\n Port %s\n User %s\n IdentityFile %s\n UserKnownHostsFile %s\n",
			host, port, s.me, s.path("id"), s.path("known_hosts")))
		check(t, "--backend", "remote", "--host", "card", "--ssh", "ssh -F "+s.path("config"), "--agent", emulator())
	})
	t.Run("a board file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "b.yaml")
		write(t, path, "name: half\nextends: nfp\ncores: {value: 60, source: test, confidence: L}\n")
		args := []string{"measure", "--board", path, "--base", "forward", "--cores", "20", "--json"}
		_, want, _ := command(t, args...)
		code, got, stderr := command(t, append(args, s.target(s.addr)...)...)
		if code != 0 || got != want || !strings.Contains(got, `"board": "half"`) {
			t.Errorf("exit code %d: %s\n%s\nwant\n%s", code, stderr, got, want)
		}
	})
	t.Run("encrypted key", func(t *testing.T) {
		pem, err := os.ReadFile(s.path("id"))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := ssh.ParseRawPrivateKey(pem)
		if err != nil {
			t.Fatal(err)
		}
		write(t, s.path("locked"), string(pem))
		if err := os.Chmod(s.path("locked"), 0o600); err != nil {
			t.Fatal(err)
		}
		keygen(t, "-p", "-P", "", "-N", "passphrase", "-f", s.path("locked"))
		args := append(bare[:len(bare):len(bare)], s.target(s.addr, "--identity", s.path("locked"))...)
		t.Setenv("SSH_AUTH_SOCK", "")
		if code, _, stderr := command(t, args...); code != 2 || !strings.Contains(stderr, "load it into ssh-agent with ssh-add") {
			t.Errorf("without ssh-agent: exit code %d: %s", code, stderr)
		}
		ring := agent.NewKeyring()
		t.Setenv("SSH_AUTH_SOCK", serveAgent(t, ring))
		if code, _, stderr := command(t, args...); code != 2 || !strings.Contains(stderr, "load it into ssh-agent with ssh-add") {
			t.Errorf("with an empty ssh-agent: exit code %d: %s", code, stderr)
		}
		if err := ring.Add(agent.AddedKey{PrivateKey: raw}); err != nil {
			t.Fatal(err)
		}
		check(t, s.target(s.addr, "--identity", s.path("locked"))...)
		// Without --identity the agent's keys are offered too.
		t.Setenv("HOME", t.TempDir())
		check(t, "--backend", "remote", "--host", s.me+"@"+s.addr, "--known-hosts", s.path("known_hosts"), "--agent", emulator())
	})
	t.Run("doctor", func(t *testing.T) {
		code, stdout, stderr := command(t, append([]string{"doctor", "--board", "nfp"}, s.target(s.addr)...)...)
		for _, want := range []string{"nfp (class nfp, emulated)", s.me + "@" + s.addr + " answers within", microbench.ThisMachine().Host, "backend emulated", "driver of class nfp opens"} {
			if !strings.Contains(strings.Join(strings.Fields(stdout), " "), want) {
				t.Errorf("no %q in\n%s", want, stdout)
			}
		}
		if code != 0 {
			t.Errorf("exit code %d: %s", code, stderr)
		}
		if code, _, stderr := command(t, append([]string{"doctor", "--board", "nfp"}, s.target(s.addr, "--agent", strings.TrimSuffix(emulator(), " --backend emulated"))...)...); code != 3 || !strings.Contains(stderr, "nfp-nffw") {
			t.Errorf("a card that is not there: exit code %d: %s", code, stderr)
		}
	})
	t.Run("copied program", func(t *testing.T) {
		check(t, s.target(s.addr, "--push", "--ssh", "ssh -F none", "--agent", "profiler agent --backend emulated")...)
	})
}

// serveAgent is the socket of an ssh-agent that holds keys.
func serveAgent(t *testing.T, ring agent.Agent) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				agent.ServeAgent(ring, c)
			}()
		}
	}()
	return socket
}

// What keeps a machine from measuring has its exit code and says what to do;
// nothing is written.
func TestRemoteFaults(t *testing.T) {
	s := startSSHD(t)
	out := filepath.Join(t.TempDir(), "run")
	wrongArch := filepath.Join(t.TempDir(), "notes.txt")
	write(t, wrongArch, "no program")
	for _, c := range []struct {
		name  string
		known string // host key known
		args  []string
		code  int
		want  []string
	}{
		{"host key changed", "stranger.pub", nil, 2, []string{"the host key has changed", s.path("known_hosts") + ":2 has ssh-ed25519", "ssh-keygen -R", "on the console"}},
		{"host key unknown", "", nil, 2, []string{"the host key is unknown: ssh-ed25519 SHA256:", "add this line to " + s.path("known_hosts"), "ssh-ed25519 AAAA"}},
		{"host key changed, system's ssh", "stranger.pub", []string{"--ssh", "ssh -F none"}, 2, []string{"ssh does not accept the host key", "HAS CHANGED", "known_hosts:2"}},
		{"key refused", "host.pub", []string{"--identity", s.path("stranger")}, 3, []string{"refuses user " + s.me + " with ssh-ed25519 SHA256:", "authorized_keys"}},
		{"key refused, system's ssh", "host.pub", []string{"--ssh", "ssh -F none", "--identity", s.path("stranger")}, 3, []string{"no key that ssh offers is accepted", "Permission denied"}},
		{"nobody listens", "host.pub", []string{"--host", s.me + "@" + freePort(t)}, 3, []string{"cannot be reached", "refused", "sshd"}},
		{"no such agent", "host.pub", []string{"--agent", "/nowhere/profiler agent"}, 3, []string{"exit status 127", "/nowhere/profiler", "--push"}},
		{"agent of another version", "host.pub", []string{"--agent", `echo '{"protocol":"nicprof-agent/2","version":"9.9"}'; cat >/dev/null`}, 3, []string{"of another version: 9.9 nicprof-agent/2", "install this version there"}},
		{"truncated line", "host.pub", []string{"--agent", `printf '{"protocol":"nicp'`}, 3, []string{"it ended after 17 bytes of a line", "exit status 0"}},
		{"no card", "host.pub", []string{"--agent", strings.TrimSuffix(emulator(), " --backend emulated")}, 3, []string{"nfp-nffw is not in PATH"}},
		{"copy of no program", "host.pub", []string{"--push=" + wrongArch}, 2, []string{"notes.txt: not a program for Linux", "GOARCH=" + runtime.GOARCH}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.known == "" {
				write(t, s.path("known_hosts"), "")
			} else {
				s.know(t, s.addr, c.known)
			}
			args := append([]string{"run", "--board", "nfp", "--suite", "quick", "--out", out}, s.target(s.addr)...)
			code, stdout, stderr := command(t, append(args, c.args...)...)
			if code != c.code || stdout != "" {
				t.Errorf("exit code %d, want %d; stdout %q", code, c.code, stdout)
			}
			for _, want := range append(c.want, "profiler: ") {
				if !strings.Contains(stderr, want) {
					t.Errorf("no %q in %s", want, stderr)
				}
			}
			if _, err := os.Stat(out); err == nil {
				t.Errorf("%s was made", out)
			}
		})
	}
}

// proxy passes connections on to a server until it is told to cut them.
type proxy struct {
	addr string
	cut  func() // all connections, and no new ones
	heal func()
}

func startProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var broken bool
	var open []net.Conn
	p := &proxy{addr: l.Addr().String()}
	set := func(b bool) {
		mu.Lock()
		defer mu.Unlock()
		broken = b
		for _, c := range open {
			c.Close()
		}
		open = nil
	}
	p.cut, p.heal = func() { set(true) }, func() { set(false) }
	t.Cleanup(func() {
		l.Close()
		p.cut()
	})
	go func() {
		for {
			here, err := l.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", to)
			mu.Lock()
			if err != nil || broken {
				here.Close()
				if err == nil {
					there.Close()
				}
			} else {
				open = append(open, here, there)
				go io.Copy(there, here)
				go io.Copy(here, there)
			}
			mu.Unlock()
		}
	}()
	return p
}

// A link that is cut in the middle of a sweep and stays down stops the sweep
// with what it has; one that comes back does not. Either way the samples are
// those of an undisturbed sweep of the board at hand, to the byte.
func TestRemoteSweepCut(t *testing.T) {
	s := startSSHD(t)
	p := startProxy(t, s.addr)
	s.know(t, p.addr, "host.pub")
	dir := t.TempDir()
	sweep := func(name string) []string {
		return []string{"run", "--board", "nfp", "--suite", "quick", "--only", "cores", "--no-fit", "--out", filepath.Join(dir, name), "--json"}
	}
	samples := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name, microbench.SamplesFile))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if code, _, stderr := command(t, sweep("here")...); code != 0 {
		t.Fatal(stderr)
	}
	// after calls f once, when some samples of a run are stored.
	after := func(name string, f func()) (stop func()) {
		var over atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			for !over.Load() {
				data, _ := os.ReadFile(filepath.Join(dir, name, "pending.jsonl"))
				if bytes.Count(data, []byte("\n")) >= 5 {
					f()
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
		return func() {
			over.Store(true)
			<-done
		}
	}

	stop := after("cut", p.cut)
	code, stdout, stderr := command(t, append(sweep("cut"), s.target(p.addr, "--reconnect", "0s")...)...)
	stop()
	if code != 3 || stdout != "" || !strings.Contains(stderr, "the link was cut") || !strings.Contains(stderr, "go on with the same command and --resume") {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	m, err := microbench.ReadManifest(filepath.Join(dir, "cut"))
	if err != nil || m.Status != microbench.Interrupted || m.Measured < 5 || m.Measured >= m.Workloads || m.Failed > 0 {
		t.Errorf("%v; manifest %+v", err, m)
	}
	if m.Backend != microbench.Remote || m.Machine != microbench.ThisMachine() || !strings.Contains(m.Reason, "the link was cut") {
		t.Errorf("manifest %+v", m)
	}
	if _, err := os.Stat(filepath.Join(dir, "cut", "pending.jsonl")); err == nil {
		t.Error("a file of an unfinished sweep is left")
	}
	// The machine is still away: nothing is lost by trying.
	if code, _, stderr := command(t, append(append(sweep("cut"), "--resume"), s.target(p.addr)...)...); code != 3 || !strings.Contains(stderr, "cannot be reached") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	p.heal()
	code, stdout, stderr = command(t, append(append(sweep("cut"), "--resume"), s.target(p.addr)...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var r sweepReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.Manifest.Status != microbench.Complete || r.Manifest.Sessions[1].Measured != m.Workloads-m.Measured {
		t.Errorf("%v; %+v", err, r.Manifest)
	}
	if samples("cut") != samples("here") {
		t.Error("the resumed sweep has other samples")
	}

	stop = after("back", p.heal) // cuts what is there, lets new ones in
	code, _, stderr = command(t, append(sweep("back"), s.target(p.addr)...)...)
	stop()
	if code != 0 || !strings.Contains(stderr, "connected again") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if samples("back") != samples("here") {
		t.Error("the sweep that went on has other samples")
	}
}

// When its client goes, the agent does too, and with it the copied program.
func TestRemoteCleansUp(t *testing.T) {
	s := startSSHD(t)
	p := startProxy(t, s.addr)
	s.know(t, p.addr, "host.pub")
	left := func() []string {
		dirs, err := filepath.Glob(filepath.Join(os.TempDir(), "nicprof.*", "profiler"))
		if err != nil {
			t.Fatal(err)
		}
		return dirs
	}
	before := len(left())
	out := filepath.Join(t.TempDir(), "run")
	done := make(chan string, 1)
	go func() {
		args := append([]string{"run", "--board", "nfp", "--suite", "full", "--out", out}, s.target(p.addr, "--push", "--agent", "profiler agent --backend emulated", "--reconnect", "0s")...)
		var said bytes.Buffer
		code := execute(t.Context(), args, io.Discard, &said, func(string) string { return "" })
		done <- fmt.Sprintf("exit code %d: %s", code, &said)
	}()
	for { // until the copied program measures
		pending, _ := os.ReadFile(filepath.Join(out, "pending.jsonl"))
		if bytes.Contains(pending, []byte("\n")) {
			break
		}
		select {
		case end := <-done:
			t.Fatal(end)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if len(left()) != before+1 {
		t.Errorf("copied programs %v", left())
	}
	p.cut()
	if end := <-done; !strings.HasPrefix(end, "exit code 3: ") {
		t.Error(end)
	}
	for range 1000 {
		if len(left()) == before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("left after ten seconds: %v", left())
}

// number is a JSON number with a fraction or an exponent.
var number = regexp.MustCompile(`-?[0-9]+(?:\.[0-9]+(?:e[-+]?[0-9]+)?|e[-+]?[0-9]+)`)

// nearJSON says where two texts differ by more than numbers do that are within
// a relative tolerance of each other.
func nearJSON(a, b []byte, tolerance float64) error {
	if x, y := number.ReplaceAll(a, []byte("#")), number.ReplaceAll(b, []byte("#")); !bytes.Equal(x, y) {
		return fmt.Errorf("other fields than numbers differ:\n%s\n%s", x, y)
	}
	others := number.FindAll(b, -1)
	for i, text := range number.FindAll(a, -1) {
		x, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			return err
		}
		y, err := strconv.ParseFloat(string(others[i]), 64)
		if err != nil {
			return err
		}
		if math.Abs(x-y) > tolerance*math.Abs(x) {
			return fmt.Errorf("%v and %v", x, y)
		}
	}
	return nil
}

// The agent of another architecture, arm64 under qemu, measures an emulated
// board to the same numbers but for their last bits: Go fuses multiplication
// and addition there, which rounds once instead of twice.
func TestRemoteARM64(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command for arm64")
	}
	qemu, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		if qemu, err = exec.LookPath("qemu-aarch64-static"); err != nil {
			t.Skipf("%v; install qemu-user", err)
		}
	}
	s := startSSHD(t)
	path := filepath.Join(t.TempDir(), "profiler-arm64")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	args := []string{"run", "--board", "nfp", "--suite", "quick", "--only", "stateless", "--no-fit"}
	dir := t.TempDir()
	for name, more := range map[string][]string{
		"here":  nil,
		"arm64": s.target(s.addr, "--agent", qemu+" "+path+" agent --backend emulated"),
	} {
		if code, _, stderr := command(t, append(append(args[:len(args):len(args)], "--out", filepath.Join(dir, name)), more...)...); code != 0 {
			t.Fatalf("%s: exit code %d: %s", name, code, stderr)
		}
	}
	var samples [2][]byte
	for i, name := range []string{"here", "arm64"} {
		if samples[i], err = os.ReadFile(filepath.Join(dir, name, microbench.SamplesFile)); err != nil {
			t.Fatal(err)
		}
	}
	if runtime.GOARCH == "arm64" {
		if !bytes.Equal(samples[0], samples[1]) {
			t.Error("the same architecture has other samples")
		}
	} else if err := nearJSON(samples[0], samples[1], 1e-9); err != nil {
		t.Errorf("arm64 has other samples: %v", err)
	}
	if m, err := microbench.ReadManifest(filepath.Join(dir, "arm64")); err != nil || m.Machine.Arch != "arm64" {
		t.Errorf("%v; measured on %v", err, m.Machine)
	}
	// A program for another machine is not copied there.
	if runtime.GOARCH == "arm64" {
		return
	}
	if code, _, stderr := command(t, append(append(bare[:len(bare):len(bare)], s.target(s.addr)...), "--push="+path)...); code != 2 || !strings.Contains(stderr, "a program for EM_AARCH64, but the machine is linux/"+runtime.GOARCH) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
