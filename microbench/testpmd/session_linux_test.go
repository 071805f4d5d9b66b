package testpmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"nicprof/internal/fault"
)

// installed skips a test where the forwarder cannot run.
func installed(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath(Tool); err != nil {
		t.Skipf("%s is not installed", Tool)
	}
	if os.Geteuid() != 0 {
		t.Skip("DPDK's memory and runtime directory need root")
	}
}

func config() Config {
	return Config{
		CPUs: []int{0}, Vdevs: []string{"net_ring0", "net_ring1"}, Mode: "macswap", Mbufs: 4096,
	}
}

// niceOfGroup is the priority of a process' scheduling group, "" where the
// kernel has none.
func niceOfGroup(t *testing.T, pid string) string {
	t.Helper()
	data, err := os.ReadFile("/proc/" + pid + "/autogroup")
	if errors.Is(err, os.ErrNotExist) {
		return ""
	} else if err != nil {
		t.Fatal(err)
	}
	_, nice, _ := strings.Cut(strings.TrimSpace(string(data)), " nice ")
	return nice
}

// A session with the installed program: its rings hold the packets that were
// put into them, none is lost, and it is gone in the end.
func TestSession(t *testing.T) {
	installed(t)
	ctx := t.Context()
	before := niceOfGroup(t, "self")
	s, err := Start(ctx, config())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(s.Version, "DPDK ") {
		t.Errorf("version %q", s.Version)
	}
	// Another process of this session may change our group's priority meanwhile.
	if own := niceOfGroup(t, "self"); own != "" && own == before {
		if its := niceOfGroup(t, strconv.Itoa(s.cmd.Process.Pid)); its != own {
			t.Errorf("nice of its scheduling group %s, of ours %s", its, own)
		}
	}
	const bursts, burst, ports = 4, 32, 2
	if err := s.Forward(ctx, bursts); err != nil {
		t.Fatal(err)
	}
	w, err := s.Window(ctx, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if w.Mpps <= 0 || w.RxMpps <= 0 || w.CPUNS <= 0 || w.Seconds < 0.1 || w.Lost != 0 {
		t.Errorf("window %+v", w)
	}
	f, err := s.Stop(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Ports) != ports || f.Total.TxPackets-f.Total.RxPackets != bursts*burst*ports || f.Total.TxDropped != 0 {
		t.Errorf("%d packets were put into the rings; counted %+v", bursts*burst*ports, f)
	}
	pid, dir := s.cmd.Process.Pid, s.dir
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
		t.Errorf("process %d is still there", pid)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is still there", dir)
	}
}

// An interrupt ends a session that is still starting.
func TestStartInterrupted(t *testing.T) {
	installed(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, config()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

// What keeps the program from starting is told in its own words.
func TestStartRefused(t *testing.T) {
	installed(t)
	c := config()
	c.Vdevs = []string{"net_af_packet0,iface=none9"}
	_, err := Start(t.Context(), c)
	if fault.KindOf(err) != fault.Missing || !strings.Contains(err.Error(), "net_af_packet0") {
		t.Errorf("%v, want a missing fault that names the device", err)
	}
}

// fake is a program in the place of the forwarder.
func fake(t *testing.T, script string) Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), Tool)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	c := config()
	c.Path = path
	return c
}

// A forwarder that does not forward, or dies, is a fault and not a rate.
func TestFakes(t *testing.T) {
	s, err := Start(t.Context(), fake(t, `printf 'testpmd> '; read x; printf 'Ports not started\r\ntestpmd> '; read x; exit 3`))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Forward(t.Context(), 0); fault.KindOf(err) != fault.Check || !strings.Contains(err.Error(), "Ports not started") {
		t.Errorf("forward: %v", err)
	}
	if _, err := s.Ports(t.Context()); fault.KindOf(err) != fault.Missing {
		t.Errorf("after its end: %v", err)
	}
	if err := s.Close(); err == nil {
		t.Error("closed without the exit status 3")
	}
	if _, err := Start(t.Context(), fake(t, "echo EAL: Error - no memory; exit 1")); fault.KindOf(err) != fault.Missing || !strings.Contains(err.Error(), "no memory") {
		t.Errorf("start: %v", err)
	}
	c := config()
	c.Path = "/nonexistent/" + Tool
	if _, err := Start(t.Context(), c); fault.KindOf(err) != fault.Missing {
		t.Errorf("no program: %v", err)
	}
}
