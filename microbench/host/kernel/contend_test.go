package kernel

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// TestFetchAddLosesNothing: the values that the threads found are 0, 1, 2, ...
// without a gap or a repeat, which their sum shows, and the word holds their
// number.
func TestFetchAddLosesNothing(t *testing.T) {
	const each = 20_003
	for threads := 1; threads <= 4; threads++ {
		var c Counter
		sums := make([]uint64, threads)
		var wg sync.WaitGroup
		for i := range threads {
			wg.Go(func() { sums[i] = FetchAdd(&c.N, each) })
		}
		wg.Wait()
		n := uint64(threads) * each
		var sum uint64
		for _, s := range sums {
			sum += s
		}
		if c.N != n || sum != n*(n-1)/2 {
			t.Errorf("%d threads: counted to %d with sum %d, want %d and %d", threads, c.N, sum, n, n*(n-1)/2)
		}
	}
}

// TestLocksExclude: a plain counter in the section loses nothing.
func TestLocksExclude(t *testing.T) {
	const each = 5_000
	for _, l := range Locks() {
		for threads := 1; threads <= 4; threads++ {
			var counter uint64
			var wg sync.WaitGroup
			for range threads {
				wg.Go(func() { l.Sections(&counter, each) })
			}
			wg.Wait()
			if want := uint64(threads) * each; counter != want {
				t.Errorf("%s, %d threads: %d sections counted, %d entered: two were in at once", l.Name(), threads, counter, want)
			}
		}
	}
}

// TestCompilerKeepsTheWork reads the machine code of this package for both
// architectures: the loops that are plain Go hold the loads, stores and atomic
// instructions that they are named for. (The kernels in assembly are what they
// say.)
func TestCompilerKeepsTheWork(t *testing.T) {
	gotool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("go is not in PATH: no compiler and no disassembler")
	}
	for arch, loops := range map[string]map[string]string{
		"amd64": {
			`Chase`:              `MOVQ 0\(AX\), AX`,
			`FetchAdd`:           `LOCK XADDQ`,
			`readGo`:             `ADDQ 0x38\(\w+\)`,
			`writeGo`:            `MOVQ \w+, 0x38\(\w+\)`,
			`copyGo`:             `MOVQ \w+, 0x18\(\w+\)`,
			`triadGo`:            `MOVSD_XMM X\d+, 0x18\(\w+\)`,
			`(*Spin).Sections`:   `XCHGL`,
			`(*Ticket).Sections`: `LOCK XADDL`,
		},
		"arm64": {
			`Chase`:              `MOVD \(R0\), R0`,
			`FetchAdd`:           `LDAXR \(`,
			`readGo`:             `LDP 48\(`,
			`writeGo`:            `FSTPD .*48\(`,
			`copyGo`:             `STP .*, 16\(`,
			`triadGo`:            `FMADDD`,
			`(*Spin).Sections`:   `LDAXRW`,
			`(*Ticket).Sections`: `LDAXRW`,
		},
	} {
		object := filepath.Join(t.TempDir(), arch+".a")
		build := exec.Command(gotool, "build", "-o", object, ".")
		build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", arch, err, out)
		}
		listing, err := exec.Command(gotool, "tool", "objdump", "-s", `^nicprof/microbench/host/kernel\.`, object).CombinedOutput()
		if err != nil {
			t.Fatalf("go tool objdump: %v\n%s", err, listing)
		}
		code := map[string]string{} // by function
		for _, text := range strings.Split(string(listing), "TEXT nicprof/microbench/host/kernel.") {
			name, _, _ := strings.Cut(text, "(SB)")
			code[name] = text
		}
		for name, want := range loops {
			if !regexp.MustCompile(want).MatchString(code[name]) {
				t.Errorf("%s: %s has no %s:\n%s", arch, name, want, code[name])
			}
		}
	}
}
