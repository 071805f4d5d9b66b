package main

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"nicprof/internal/linux"
	"nicprof/microbench/host/kernel"
)

//go:embed peers/*.c peers/*.h
var sources embed.FS

// missingError says that a peer is not installed, and where it comes from.
type missingError struct{ what, from string }

func (e missingError) Error() string { return e.what + " is not here (" + e.from + ")" }

// find returns a program of PATH.
func find(name, from string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", missingError{name, from}
	}
	return path, nil
}

// compile builds the C peers in dir with gcc -O2 and returns gcc's version.
func compile(ctx context.Context, dir string) (version string, err error) {
	gcc, err := find("gcc", "apt-get install gcc libc6-dev")
	if err != nil {
		return "", err
	}
	files, err := sources.ReadDir("peers")
	if err != nil {
		return "", err
	}
	for _, f := range files {
		text, err := sources.ReadFile("peers/" + f.Name())
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name()), text, 0o600); err != nil {
			return "", err
		}
	}
	for _, name := range []string{"chase", "contend"} {
		program := filepath.Join(dir, name)
		if out, err := exec.CommandContext(ctx, gcc, "-O2", "-pthread", "-o", program, program+".c").CombinedOutput(); err != nil {
			return "", fmt.Errorf("compiling %s.c: %w\n%s", name, err, out)
		}
	}
	return firstLine(ctx, gcc, "--version"), nil
}

// firstLine is the first line that a command prints, or that it prints none.
func firstLine(ctx context.Context, command ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil && line == "" {
		return "version unknown"
	}
	return line
}

// process is a C peer that answers commands.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err strings.Builder
}

// start runs a C peer.
func start(ctx context.Context, program string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, program, args...)}
	p.cmd.Stderr = &p.err
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	return p, p.cmd.Start()
}

// ask sends a command and returns the fields of the answer. A peer that does
// not answer in time is killed.
func (p *process) ask(limit time.Duration, command string) ([]float64, error) {
	watchdog := time.AfterFunc(limit, func() { _ = p.cmd.Process.Kill() })
	defer watchdog.Stop()
	if _, err := io.WriteString(p.in, command+"\n"); err != nil {
		return nil, fmt.Errorf("%s: %w %s", command, err, p.err.String())
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%s: no answer within %v: %w %s", command, limit, err, p.err.String())
	}
	var values []float64
	for _, f := range strings.Fields(line) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: answered %q", command, line)
		}
		values = append(values, v)
	}
	return values, nil
}

// close ends the peer.
func (p *process) close() error {
	if err := p.in.Close(); err != nil {
		return err
	}
	return p.cmd.Wait()
}

// answerLimit is how long a peer may take beyond the time of a measurement.
const answerLimit = 2 * time.Minute

// theirChase is the C peer's side of a chase.
type theirChase struct {
	*process
	bytes int64
}

func startChase(ctx context.Context, program string, c chaser) (*theirChase, error) {
	huge := "0"
	if c.pages == linux.HugePages {
		huge = "1"
	}
	p, err := start(ctx, program, fmt.Sprint(c.bytes), string(c.order), fmt.Sprint(cacheLine), fmt.Sprint(smallPage), huge, fmt.Sprint(c.cpu), fmt.Sprint(c.seed))
	return &theirChase{p, c.bytes}, err
}

func (t *theirChase) place() error {
	_, err := t.ask(answerLimit, "place")
	return err
}

func (t *theirChase) measure(d time.Duration) (reading, error) {
	v, err := t.ask(d+answerLimit, fmt.Sprintf("run %d", d.Nanoseconds()))
	if err != nil {
		return reading{}, err
	}
	if len(v) != 3 {
		return reading{}, fmt.Errorf("%d numbers, want 3", len(v))
	}
	r := reading{value: v[0], lost: lostShare(time.Duration(v[1]), time.Duration(v[2])), pages: "pages unknown"}
	if smaps, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", t.cmd.Process.Pid)); err == nil {
		r.pages = pageText(hugeOf(string(smaps)), t.bytes, smallPage)
	}
	return r, nil
}

// hugeOf sums the huge pages of all mappings of an smaps file, in bytes.
func hugeOf(smaps string) int64 {
	var kib int64
	lines(smaps, func(line string) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "AnonHugePages:" {
			if v, err := strconv.ParseInt(f[1], 10, 40); err == nil {
				kib += v
			}
		}
	})
	return kib << 10
}

// theirContention measures the C peer's threads at one line once.
func theirContention(p *process, d time.Duration) (reading, error) {
	v, err := p.ask(d+answerLimit, fmt.Sprintf("run %d", d.Nanoseconds()))
	switch {
	case err != nil:
		return reading{}, err
	case len(v) != 6:
		return reading{}, fmt.Errorf("%d numbers, want 6", len(v))
	case v[4] != v[5]:
		return reading{}, fmt.Errorf("%.0f operations done, %.0f counted: two were in at once", v[4], v[5])
	}
	return reading{value: 1e9 / v[0], lost: max(0, v[3])}, nil
}

// likwidNames are the kernels of likwid-bench by operation and class.
var likwidNames = map[kernel.Op]map[kernel.Class]string{
	kernel.Read:  {kernel.Scalar: "load", kernel.AVX2: "load_avx", kernel.AVX512: "load_avx512", kernel.NEON: "load_neon"},
	kernel.Write: {kernel.Scalar: "store", kernel.AVX2: "store_avx", kernel.AVX512: "store_avx512", kernel.NEON: "store_neon", kernel.NTSSE2: "store_mem", kernel.NTAVX2: "store_mem_avx", kernel.NTAVX512: "store_mem_avx512"},
	kernel.Copy:  {kernel.Scalar: "copy", kernel.AVX2: "copy_avx", kernel.AVX512: "copy_avx512", kernel.NTAVX2: "copy_mem_avx", kernel.NTAVX512: "copy_mem_avx512"},
	kernel.Triad: {kernel.Scalar: "stream", kernel.AVX2: "stream_avx", kernel.AVX512: "stream_avx512"},
}

// likwid measures a kernel of likwid-bench in a process of its own, as often as
// takes d at the bandwidth expected (GB/s). likwid-bench counts its iterations
// itself when not told, which takes a second longer and is no better.
func likwid(ctx context.Context, program, test string, bytes int64, cpu int, d time.Duration, expected float64) (reading, error) {
	iterations := max(10, int64(d.Seconds()*expected*1e9/float64(bytes)))
	ctx, cancel := context.WithTimeout(ctx, d+answerLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-t", test, "-w", fmt.Sprintf("S0:%dB:1", bytes), "-i", fmt.Sprint(iterations))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	begin := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return reading{}, fmt.Errorf("%s: %w %s", strings.Join(cmd.Args, " "), err, short(stderr.String()))
	}
	r, err := parseLikwid(string(out))
	switch {
	case err != nil:
		return reading{}, err
	case r.bytes != bytes:
		return reading{}, fmt.Errorf("%s took %d B for %d B", test, r.bytes, bytes)
	case r.cpu != cpu:
		return reading{}, fmt.Errorf("%s ran on processor %d, ours on %d", test, r.cpu, cpu)
	}
	reading := reading{value: r.bandwidth}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && float64(u.Nivcsw) > switchLimit*time.Since(begin).Seconds() {
		reading.lost = 1
	}
	return reading, nil
}

// switchLimit is how many times a second the processor may be taken from
// likwid-bench. Of its own loss it tells nothing; here it was switched out 6 to
// 20 times a second on a silent machine and some hundred times beside others.
const switchLimit = 40

// isMissing says that a peer is not installed.
func isMissing(err error) bool {
	var m missingError
	return errors.As(err, &m)
}
