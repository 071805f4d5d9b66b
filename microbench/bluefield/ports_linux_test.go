package bluefield

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"nicprof/board"
	"nicprof/emu"
	bluefield "nicprof/emu/bluefield"
	"nicprof/microbench"
	"nicprof/microbench/testpmd"
	"nicprof/program"
	"nicprof/traffic"
)

const ports = "0000:03:00.0,representor=[0,65535]"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == testpmd.Tool {
		if err := standIn(os.Args[1:]); err != nil {
			fmt.Println("EAL: Error -", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// allowed are testpmd's arguments on a BlueField-2, as its user guide has them.
var allowed = regexp.MustCompile(`^-v --lcores \S+ -n \d+ -m \d+ --in-memory -a (\S+) -- -i --nb-cores=(\d+) --rxq=(\d+) --txq=(\d+) --forward-mode=(io|macswap) --burst=\d+$`)

// emulatedRate is the rate of bare forwarding on the emulated board, packets a
// second.
func emulatedRate() (uint64, error) {
	b, err := board.Load("bluefield")
	if err != nil {
		return 0, err
	}
	r, err := bluefield.Run(context.Background(), b, b.Resolve(program.Program{}), traffic.Traffic{}, emu.Config{Seed: 1})
	if err != nil {
		return 0, err
	}
	return uint64(r.Mpps() * 1e6), nil
}

// standIn answers for testpmd on ports that forward as the emulated board does.
// Its prompt and statistics have the form recorded of DPDK 22.11 (package
// testpmd).
func standIn(args []string) error {
	m := allowed.FindStringSubmatch(strings.Join(args, " "))
	if m == nil {
		return fmt.Errorf("unrecognized option among %q", args)
	}
	if m[1] != ports || m[2] != "7" || m[3] != "7" || m[4] != "7" {
		return fmt.Errorf("ports %s, %s forwarding cores, %s and %s queues", m[1], m[2], m[3], m[4])
	}
	pps, err := emulatedRate()
	if err != nil {
		return err
	}
	if m[5] == "io" {
		pps *= 2 // so that the modes can be told apart
	}
	started := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		name := []byte("lcore-worker-1\x00") // by which package testpmd knows the forwarding threads
		unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
		close(started)
		select {}
	}()
	<-started
	fmt.Print("EAL: RTE Version: 'DPDK 22.11.11'\nInteractive-mode selected\ntestpmd> ")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); fmt.Print("testpmd> ") {
		switch in.Text() {
		case "start":
			fmt.Println(m[5] + " packet forwarding - ports=2 - cores=7 - streams=14")
		case "show port stats all":
			for port := range 2 {
				fmt.Printf("\n  %s NIC statistics for port %d  %[1]s\n", strings.Repeat("#", 24), port)
				fmt.Println("  RX-packets: 10         RX-missed: 0          RX-bytes:  640\n  RX-errors: 0\n  RX-nombuf:  0\n" +
					"  TX-packets: 10         TX-errors: 0          TX-bytes:  640")
				fmt.Printf("\n  Rx-pps: %12d          Rx-bps: 0\n  Tx-pps: %12d          Tx-bps: 0\n  %s\n", pps/2, pps/2, strings.Repeat("#", 76))
			}
		case "show fwd stats all", "stop":
			counts := "  RX-packets: 10             RX-dropped: 0             RX-total: 10\n  TX-packets: 10             TX-dropped: 0             TX-total: 10\n"
			fmt.Printf("\n  %s Forward statistics for port 0  %[1]s\n%s  %s\n", strings.Repeat("-", 22), counts, strings.Repeat("-", 76))
			fmt.Printf("\n  %s Accumulated forward statistics for all ports%[1]s\n%s  %s\n", strings.Repeat("+", 15), counts, strings.Repeat("+", 76))
		case "quit":
			fmt.Println("Bye...")
			return nil
		default:
			return fmt.Errorf("bad arguments: %q", in.Text())
		}
	}
	return nil
}

// inner is a driver that has measured already.
type inner struct{ board *board.Board }

func (d inner) Board() *board.Board { return d.board }

func (d inner) Measure(context.Context, program.Program, traffic.Traffic, microbench.Options) (microbench.Sample, error) {
	return microbench.Sample{Mpps: 1, Cores: 8, Conditions: map[string]string{"kernel": "6"}}, nil
}

func (d inner) Examine(context.Context) (microbench.Examination, error) {
	return microbench.Examination{Findings: []microbench.Finding{{Text: "looked"}}}, nil
}

// Bare samples say what the ports forward in each mode; other programs are left
// alone, and a testpmd that does not run is said.
func TestPorts(t *testing.T) {
	b, err := board.Load("bluefield")
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tool := filepath.Join(t.TempDir(), testpmd.Tool)
	if err := os.Symlink(exe, tool); err != nil {
		t.Fatal(err)
	}
	d := joinPorts(inner{b}, ports).(*ported)
	d.path, d.window = tool, 10*time.Millisecond
	s, err := d.Measure(t.Context(), program.Program{}, traffic.Traffic{}, microbench.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pps, err := emulatedRate()
	if err != nil {
		t.Fatal(err)
	}
	for mode, pps := range map[string]uint64{"macswap": pps, "io": 2 * pps} {
		rate := number(float64(2*(pps/2)) / 1e6)
		if got, want := s.Conditions["dpdk_"+mode], rate+" Mpps sent, "+rate+" received"; got != want {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
	}
	if s.Conditions["dpdk"] != "DPDK 22.11.11" || s.Conditions["kernel"] != "6" || s.Mpps != 1 {
		t.Errorf("%+v", s)
	}
	if x, err := d.Examine(t.Context()); err != nil || len(x.Findings) != 1 {
		t.Errorf("examination %+v, %v", x, err)
	}
	s, err = d.Measure(t.Context(), program.Program{Stateless: program.Stateless{program.ALU: 1}}, traffic.Traffic{}, microbench.Options{})
	if err != nil || len(s.Conditions) != 1 {
		t.Errorf("not bare: %v, %v", s.Conditions, err)
	}
	d.ports = "0000:99:00.0"
	s, err = d.Measure(t.Context(), program.Program{}, traffic.Traffic{}, microbench.Options{})
	if err != nil || !strings.Contains(s.Conditions["dpdk_io"], "ports 0000:99:00.0") {
		t.Errorf("no such port: %v, %v", s.Conditions, err)
	}
	if _, same := joinPorts(inner{b}, "").(inner); !same {
		t.Error("no ports are named, and it asks for their rates")
	}
}

// A dry run shows the counters' set-up and, mode by mode, the forwarder's
// arguments, which the stand-in takes.
func TestDryRun(t *testing.T) {
	b, err := board.Load("bluefield")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(PortsVariable, ports)
	d, err := microbench.OpenDryRun(b)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := d.DryRun([]microbench.Workload{{Key: "single/forward/bare"}}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	script, modes := strings.Join(lines, "\n"), 0
	for _, line := range lines {
		if args, ok := strings.CutPrefix(line, testpmd.Tool+" "); ok {
			args, _, _ = strings.Cut(args, " # ")
			if m := allowed.FindStringSubmatch(strings.ReplaceAll(args, "'", "")); m == nil || m[1] != ports {
				t.Errorf("%s", line)
			}
			modes++
		}
	}
	if modes != len(portModes) || !strings.Contains(script, "s/: MISSES_BANK1$//p") || !strings.Contains(script, "# single/forward/bare") {
		t.Errorf("%d modes in\n%s", modes, script)
	}
}
