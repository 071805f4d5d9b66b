package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"

	"nicprof/internal/fault"
)

// push copies a program to the machine, into a directory of its own that is
// removed when the agent ends, and returns the command that runs command with
// the program in PATH. What arrives there is compared by SHA-256.
func push(ctx context.Context, sh shell, file, command string) (string, error) {
	said, err := run(ctx, sh, "uname -sm", nil)
	if err != nil {
		return "", fmt.Errorf("--push: %w", err)
	}
	there, err := platform(said)
	if err != nil {
		return "", err
	}
	program, err := pushed(file, there)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(program)
	// A copy that is cut short removes itself. mktemp's directory is the
	// user's alone.
	dir, err := run(ctx, sh, "sh -c "+quote(`d=$(mktemp -d "${TMPDIR:-/tmp}/nicprof.XXXXXXXX") || exit 1
cat >"$d/profiler" && chmod 700 "$d/profiler" && echo "`+hex.EncodeToString(sum[:])+`  $d/profiler" | sha256sum -c - >/dev/null && echo "$d" && exit 0
rm -rf -- "$d"; echo "the copy did not arrive whole" >&2; exit 1`), program)
	if err != nil {
		return "", fmt.Errorf("--push: %w", err)
	}
	if dir = strings.TrimSpace(dir); !plainPath.MatchString(dir) {
		return "", fault.Missingf("--push: expected the name of a directory from the machine, got %s", excerpt([]byte(dir)))
	}
	return "sh -c " + quote("trap 'rm -rf -- "+dir+"' EXIT\ntrap 'exit 1' HUP INT TERM\nPATH="+dir+":$PATH; export PATH\n"+command), nil
}

// plainPath is a path that a shell takes as it is.
var plainPath = regexp.MustCompile(`^/[A-Za-z0-9._/-]+$`)

// quote makes one word for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// run runs a command on the machine to its end and returns what it prints.
func run(ctx context.Context, sh shell, command string, input []byte) (string, error) {
	l, err := sh.start(ctx, command)
	if err != nil {
		return "", err
	}
	defer l.close()
	stop := context.AfterFunc(ctx, l.close)
	defer stop()
	if input != nil {
		go func() {
			io.Copy(l.in, bytes.NewReader(input)) // an error shows in what the command prints
			if c, ok := l.in.(io.Closer); ok {
				c.Close()
			}
		}()
	}
	const most = 4096 // of a system's or a directory's name
	out, err := io.ReadAll(io.LimitReader(l.out, most))
	if err == nil {
		status, ended := l.wait()
		switch {
		case !ended:
			err = io.ErrUnexpectedEOF
		case status != "exit status 0":
			return "", fault.Missingf("the machine's shell: %s%s", status, l.stderr)
		}
	}
	if err != nil {
		return "", unreachable(ctx, err)
	}
	return string(out), nil
}

// arches maps what uname -m prints to GOARCH, with the machine of an ELF file.
var arches = map[string]struct {
	arch string
	elf  elf.Machine
}{
	"x86_64":  {"amd64", elf.EM_X86_64},
	"aarch64": {"arm64", elf.EM_AARCH64},
	"armv7l":  {"arm", elf.EM_ARM},
	"riscv64": {"riscv64", elf.EM_RISCV},
	"ppc64le": {"ppc64le", elf.EM_PPC64},
	"s390x":   {"s390x", elf.EM_S390},
}

// platform reads what uname -sm prints.
func platform(uname string) (machine string, err error) {
	f := strings.Fields(uname)
	if len(f) != 2 || f[0] != "Linux" || arches[f[1]].arch == "" {
		return "", fault.Missingf("--push: the machine is %s; programs can be copied to Linux on x86_64, aarch64 and a few more", excerpt([]byte(strings.TrimSpace(uname))))
	}
	return f[1], nil
}

// pushed reads the program to copy and checks that it runs on a machine.
func pushed(file, machine string) ([]byte, error) {
	want := arches[machine]
	build := fmt.Sprintf("build it with CGO_ENABLED=0 GOOS=linux GOARCH=%s go build -o profiler-%s ./cmd/profiler and give --push=profiler-%s", want.arch, want.arch, want.arch)
	if file == PushSelf {
		if runtime.GOOS != "linux" || runtime.GOARCH != want.arch {
			return nil, fault.Inputf("--push: the machine is linux/%s, this program is for %s/%s; %s", want.arch, runtime.GOOS, runtime.GOARCH, build)
		}
		var err error
		if file, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return nil, fault.Inputf("--push: %w", err)
	}
	head, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return nil, fault.Inputf("--push=%s: not a program for Linux: %w; %s", file, err, build)
	}
	if head.Machine != want.elf {
		return nil, fault.Inputf("--push=%s: a program for %s, but the machine is linux/%s; %s", file, head.Machine, want.arch, build)
	}
	return program, nil
}
