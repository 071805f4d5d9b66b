package netif

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/microbench/testpmd"
	"nicprof/program"
	"nicprof/traffic"
)

// privileged skips a test that needs rights, or kernel support, that are not
// there.
func privileged(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skipf("namespaces and packet sockets need %s", rights)
	}
	l, err := newLab(1500)
	if err != nil {
		t.Skip(err)
	}
	l.close()
}

// namespaces is the number of network namespaces of this machine that this
// process refers to, by descriptors and by its threads.
func namespaces(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, dir := range []string{"/proc/self/fd", "/proc/self/task"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := dir + "/" + e.Name()
			if strings.HasSuffix(dir, "task") {
				name += "/ns/net"
			}
			if to, err := os.Readlink(name); err == nil && strings.HasPrefix(to, "net:") {
				found[to] = true
			}
		}
	}
	return found
}

// A measurement accounts for each packet on every path, and leaves neither
// namespaces nor interfaces.
func TestEveryPacketIsAccountedFor(t *testing.T) {
	privileged(t)
	before := namespaces(t)
	for _, c := range []struct {
		board, base string
		traffic     traffic.Traffic
	}{
		{"veth", "af_packet", traffic.Traffic{}},
		{"veth", "af_packet", traffic.Traffic{RateMpps: 0.02, PacketBytes: 1518, Flows: &traffic.Flows{Count: 100}}},
		{"veth", "af_packet", traffic.Traffic{RateMpps: 0.005, PacketBytes: 9000}},
		{"veth", "af_xdp", traffic.Traffic{}},
		{"veth", "af_xdp", traffic.Traffic{RateMpps: 0.02, PacketBytes: 1518}},
		{"dpdk", "veth-5tswap", traffic.Traffic{}},
		{"dpdk", "veth-csum", traffic.Traffic{RateMpps: 0.02, PacketBytes: 1518}},
	} {
		t.Run(fmt.Sprintf("%s/%s/%v", c.board, c.base, c.traffic.RateMpps), func(t *testing.T) {
			if c.board == "dpdk" {
				hasTestpmd(t)
			}
			const seconds = 0.1
			s, err := open(t, c.board).Measure(t.Context(), program.Program{Base: c.base}, c.traffic, microbench.Options{TrialSeconds: seconds, MaxRuns: 1})
			if fault.KindOf(err) == fault.Missing && c.base == "af_xdp" {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			p := s.Packets
			named := int64(0)
			for _, n := range p.Dropped {
				named += n
			}
			if p.Sent != p.Received+named || p.Check() != nil || p.Foreign != 0 {
				t.Errorf("%+v", p)
			}
			if p.Received == 0 || p.Arrived < p.Received || p.Forwarded < p.Received || p.Arrived < p.Forwarded {
				t.Errorf("stages: %+v", p)
			}
			if c.traffic.RateMpps > 0 && p.Due != int64(c.traffic.RateMpps*1e6*seconds+0.5) {
				t.Errorf("%d packets due", p.Due)
			}
			if !(s.Latency.P50 > 0 && s.Latency.P50 <= s.Latency.P99) || s.Mpps <= 0 || s.CPUNS[partForwarder] <= 0 || s.CPUNS[partGenerator] <= 0 || s.CPUNS[partSink] <= 0 {
				t.Errorf("%+v", s)
			}
			if s.Backend != microbench.Native || s.Conditions["path"] == "" || s.Conditions["kernel"] == "" {
				t.Errorf("backend %s, conditions %v", s.Backend, s.Conditions)
			}
		})
	}
	for ns := range namespaces(t) {
		if !before[ns] {
			t.Errorf("namespace %s is left", ns)
		}
	}
}

func hasTestpmd(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath(testpmd.Tool); err != nil {
		t.Skipf("%s is not installed", testpmd.Tool)
	}
}

// leaky is a forwarder with faults: it loses, repeats and damages packets.
type leaky struct {
	*packetForwarder
	lose, repeat, damage int // one packet in so many, 0: none
}

func (l *leaky) begin(mark uint16) error {
	l.stop.Store(false)
	l.run = startWorker(l.cpu, func() error {
		for n := 1; ; {
			h, packet := l.in.peek(0)
			if h == nil {
				if l.stop.Load() {
					return nil
				}
				await(l.in.fd, idlePoll)
				continue
			}
			if forward(packet, mark) {
				if l.damage > 0 && n%l.damage == 0 {
					packet[ttlAt]--
				}
				if l.lose == 0 || n%l.lose != 0 {
					l.out.put(packet)
				}
				if l.repeat > 0 && n%l.repeat == 0 {
					l.out.put(packet)
				}
				n++
			}
			if _, err := l.out.flush(sendTries); err != nil {
				return err
			}
			l.in.release(1)
		}
	})
	return nil
}

// What a forwarder does to packets behind its counters' back is found.
func TestFaultsAreFound(t *testing.T) {
	privileged(t)
	const n = 1000
	trial := func(l leaky) (microbench.Packets, error) {
		p := program.Program{PacketBytes: 64, Flows: &traffic.Flows{Count: 1}}
		x, err := newPath(p, traffic.Traffic{}, 1, place([]int{0}), func(lab *lab, c cpus, longest int) (forwarder, error) {
			f, err := newPacketForwarder(lab, c, longest)
			if err != nil {
				return nil, err
			}
			l.packetForwarder = f.(*packetForwarder)
			return &l, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		defer x.close()
		o, err := x.trial(t.Context(), 200*time.Millisecond, n/0.2/1e6)
		return o.packets, err
	}
	for _, c := range []struct {
		faults leaky
		found  func(microbench.Packets) int64
		every  int64
	}{
		{leaky{}, func(p microbench.Packets) int64 { return p.Sent - p.Received }, n + 1},
		{leaky{lose: 10}, func(p microbench.Packets) int64 { return p.Unaccounted }, 10},
		{leaky{repeat: 100}, func(p microbench.Packets) int64 { return p.Duplicated }, 100},
		{leaky{damage: 20}, func(p microbench.Packets) int64 { return p.Damaged }, 20},
	} {
		p, err := trial(c.faults)
		if err != nil {
			t.Fatal(err)
		}
		// A generator without a processor may send fewer than are due; they are
		// enough for each fault.
		if got, want := c.found(p), p.Sent/c.every; got != want || p.Sent < 100 || (p.Check() != nil) != (want > 0) {
			t.Errorf("one in %d: found %d of %d sent: %+v", c.every, got, p.Sent, p)
		}
	}
}

// A measurement ends soon after an interrupt, and takes its lab with it.
func TestInterrupted(t *testing.T) {
	privileged(t)
	before := namespaces(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := open(t, "veth").Measure(ctx, program.Program{}, traffic.Traffic{RateMpps: 0.01}, microbench.Options{TrialSeconds: longestTrial.Seconds()})
		done <- err
	}()
	time.Sleep(200 * time.Millisecond)
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want %v", err, context.Canceled)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("still measuring 20 s after the interrupt")
	}
	for ns := range namespaces(t) {
		if !before[ns] {
			t.Errorf("namespace %s is left", ns)
		}
	}
}

// withoutRights is set for a copy of this test that runs as another user.
const withoutRights = "NETIF_TEST_WITHOUT_RIGHTS"

// Without the rights a measurement says which, as a missing fault.
func TestNoRights(t *testing.T) {
	if os.Getenv(withoutRights) != "" || os.Geteuid() != 0 {
		_, err := open(t, "veth").Measure(t.Context(), program.Program{}, traffic.Traffic{}, microbench.Options{})
		if fault.KindOf(err) != fault.Missing || !strings.Contains(err.Error(), "CAP_NET_ADMIN") {
			t.Errorf("measure: %v, want a missing fault that names the rights", err)
		}
		_, err = newLab(1500)
		if fault.KindOf(err) != fault.Missing || !strings.Contains(err.Error(), "CAP_NET_ADMIN") {
			t.Errorf("namespaces: %v, want a missing fault that names the rights", err)
		}
		return
	}
	c := exec.Command("/proc/self/exe", "-test.run=^TestNoRights$")
	c.Env = append(os.Environ(), withoutRights+"=1")
	const nobody = 65534
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	c.Dir = "/"
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The namespaces are quiet: nothing arrives that was not sent.
func TestLabIsQuiet(t *testing.T) {
	privileged(t)
	l, err := newLab(1500)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	time.Sleep(100 * time.Millisecond)
	for _, p := range []port{l.send, l.in, l.out, l.sink} {
		if s, err := p.counts(); err != nil || s.RxPackets != 0 || s.TxPackets != 0 {
			t.Errorf("interface %s: %d received, %d sent, %v", p.name, s.RxPackets, s.TxPackets, err)
		}
	}
	links, err := l.inner.netlink.LinkList()
	if err != nil || len(links) != 3 {
		t.Errorf("inner namespace holds %d interfaces (%v), want lo and two cables", len(links), err)
	}
	if here, err := netlink.LinkByName(inName); err == nil {
		t.Errorf("interface %v is outside of the namespaces", here)
	}
	if old, err := netns.Get(); err == nil {
		defer old.Close()
		if old.Equal(l.inner.ns) || old.Equal(l.outer.ns) {
			t.Error("a thread is left in a namespace")
		}
	}
}

func TestHugePages(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		t.Helper()
		data, err := os.ReadFile(dir + "/nr_hugepages")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(data))
	}
	if _, _, err := reserveHugePages(dir, 8); err == nil {
		t.Error("pages of no pool")
	}
	write("free_hugepages", "4\n")
	write("nr_hugepages", "7\n")
	if _, release, err := reserveHugePages(dir, 8); err != nil || read() != "7" {
		t.Errorf("enough free: %v, pool of %s", err, read())
	} else if release(); read() != "7" {
		t.Errorf("pool of %s, was 7", read())
	}
	// A pool that grows on paper only, as in fragmented memory, is put back.
	if _, _, err := reserveHugePages(dir, 16); err == nil || read() != "7" {
		t.Errorf("no memory: %v, pool of %s, was 7", err, read())
	}
	write("free_hugepages", "many\n")
	if _, _, err := reserveHugePages(dir, 8); err == nil {
		t.Error("a torn pool")
	}
}

func TestPlace(t *testing.T) {
	for n, want := range map[int]cpus{1: {4, 4, 4}, 2: {4, 5, 4}, 3: {4, 5, 6}, 8: {4, 5, 6}} {
		allowed := []int{4, 5, 6, 7, 8, 9, 10, 11}[:n]
		if got := place(allowed); got != want {
			t.Errorf("%v: %+v, want %+v", allowed, got, want)
		}
	}
}

// DPDK's devices without cables: packets go through and none is lost.
func TestDPDKWithoutCables(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("DPDK's memory needs root")
	}
	hasTestpmd(t)
	for _, base := range []string{"null-io-small", "ring-5tswap"} {
		s, err := open(t, "dpdk").Measure(t.Context(), program.Program{Base: base}, traffic.Traffic{}, microbench.Options{TrialSeconds: 0.2, MaxRuns: 1})
		if err != nil {
			t.Fatal(err)
		}
		if s.Mpps <= 0 || s.DroppedMpps != 0 || s.CPUNS[partForwarder] <= 0 || s.Bottleneck != partForwarder || !strings.Contains(s.Conditions["path"], "DPDK") || s.Conditions["pages"] == "" {
			t.Errorf("%s: %+v", base, s)
		}
	}
	for name, tr := range map[string]traffic.Traffic{"a rate": {RateMpps: 1}, "jumbo": {PacketBytes: 9000}} {
		if _, err := open(t, "dpdk").Measure(t.Context(), program.Program{Base: "null-io-small"}, tr, microbench.Options{}); fault.KindOf(err) != fault.Input {
			t.Errorf("%s: %v, want an input fault", name, err)
		}
	}
}
